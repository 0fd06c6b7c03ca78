"""What the entries of a plan file may refer to."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recordwise.plan import Schema
from recordwise.plan.query import KeyList


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """The schema, what has a name of its own, and where files are looked for. None stands for something with a problem."""

    schema: Schema
    folder: Path
    mechanisms: dict[str, Any] = field(default_factory=dict)
    keys: dict[str, KeyList | None] = field(default_factory=dict)
