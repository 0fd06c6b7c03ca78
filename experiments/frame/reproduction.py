"""What an experiment hands back: claims, numbers, tables and pictures. It writes nothing itself."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from experiments.frame.claim import Claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tell = Callable[[str], None]
"""How an experiment says what it is doing."""
Row = Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure, its caption, and what it shows in words for those who cannot see it."""

    name: str
    """Of the file, without ``.png``."""
    figure: "Figure"
    caption: str
    alt: str

    @cached_property
    def png(self) -> bytes:
        """The figure as it is written to its file and shown on the page, drawn once."""
        held = io.BytesIO()
        self.figure.savefig(held, format="png")
        return held.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """One experiment, done."""

    name: str
    """As the command spells it: ``slow-cdf``."""
    title: str
    source: str
    """The paper, and its figure or table."""
    setting: Sequence[str]
    """What was run, one sentence each; settings that are ours and not the paper's are said to be."""
    data: str
    """Which data: see ``data_note``."""
    runs: int
    seed: int
    claims: Sequence[Claim]
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """By name: written as ``NAME.csv``; every row has the same columns."""
    pictures: Sequence[Picture] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)
    """What else is worth keeping; must be JSON."""
    shown: Sequence[str] = ()
    """Names of the (short) tables that the page shows in full."""

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "setting": list(self.setting),
            "data": self.data,
            "runs": self.runs,
            "seed": self.seed,
            "claims": [claim.to_json() for claim in self.claims],
            "numbers": dict(self.numbers),
        }
