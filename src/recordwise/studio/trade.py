"""The trade file: everything the studio shows, worked out once, so that a move only looks numbers up.

What records lose adds up over statistics, so a file of candidates for each statistic holds all their combinations. The lists of a
point are in the order of the lists of the file: ``losses.records`` in that of ``records``, ``errors`` and ``statuses`` in that of
the statistic's ``sizes``, ``by_table`` in that of ``tables``, ``by_state`` in that of ``states``; and ``drawn[draw][place][cell]``.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recordwise.errors import ParameterError, own_errors_of
from recordwise.exact.text import digits_text
from recordwise.plan.schema import NO_LOOK
from recordwise.planning.result import mark_of, owner_only
from recordwise.studio import form

VERSION = 1
MOST_BYTES = 50_000_000
"""No trade file is larger; a larger one is not read."""
DIGITS = 6


def short(value: float) -> float:
    """Return a number with six digits, so that the file stays small."""
    return float(digits_text(value, DIGITS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """One place of the main control."""

    goal: str
    """In words, as ``words.read_goal`` reads it."""
    within: float
    """The largest relative error, in percent: the number typed next to the control."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordClass:
    """Records of similar size."""

    name: str
    share: float
    """Of all records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledRecord:
    """One record, standing for others of its class."""

    size_class: int
    weight: float
    budget: float | None
    """What the budget has left for it; None without a budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A record of the plan's examples, or a firm made of them."""

    name: str
    record: str
    """In words."""
    budget: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellClass:
    """Cells of similar size, of one table, or of one state."""

    name: str
    cells: int
    code: str = ""
    """Of a state; otherwise empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointLosses:
    """What one statistic costs, or what all others do."""

    records: tuple[float, ...]
    examples: tuple[float, ...]
    firms: tuple[float, ...]
    extremes: tuple[float, ...]
    """Of the largest possible records, which decide how long a budget lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One candidate of one statistic at one position."""

    mechanism: str
    """In words."""
    entry: dict[str, Any]
    """As a plan file states it."""
    noise: float
    """Its amount: in units of the statistic, on the transformed scale, or as a share of the size."""
    losses: PointLosses
    errors: tuple[float, ...]
    """The margin of error (1.96 standard errors) of the typical cell of each size, as a share of its total."""
    statuses: tuple[tuple[float, ...], ...]
    """For each size of cells, the share of each status."""
    by_table: tuple[tuple[float, ...], ...]
    by_state: tuple[float, ...]
    """The share of the cells of each state with the first status."""
    all_cells: tuple[float, ...]
    """The share of each status among all cells of the statistic."""
    drawn: tuple[tuple[tuple[float, ...], ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A mechanism that may be chosen for a statistic, at every position."""

    name: str
    about: str
    """What it does, in a sentence."""
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeStatistic:
    """A statistic of a query and the mechanisms it may have."""

    key: str
    """``QUERY:NAME``, the query by its number from 1."""
    label: str
    unit: str
    goals: tuple[str, ...]
    """What each position means for this statistic, in words."""
    sizes: tuple[CellClass, ...]
    tables: tuple[CellClass, ...]
    states: tuple[CellClass, ...]
    """Empty where no state is known."""
    candidates: tuple[Candidate, ...]
    today: str
    """The candidate with the plan's own mechanism."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceCell:
    """One cell of a place."""

    statistic: int
    name: str
    total: float
    """Without noise; of confidential records not their total but a round number of its size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TradePlace:
    """A place whose numbers are shown with and without noise."""

    name: str
    cells: tuple[PlaceCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeBaseline:
    """An older rule in place of noise: what it withholds and how far off it is."""

    name: str
    statistic: int
    withheld: tuple[float, ...]
    """The share of the cells of each size of the statistic without a value."""
    errors: tuple[float | None, ...]
    """The mean relative error of the values that it publishes."""
    withheld_of_all: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How long the budget lasts, as far as known without proof."""

    words: str
    """What the budget is for: one period, or the dataset."""
    noun: str
    """What it lasts for: "years", or "releases of this period"."""
    extremes: tuple[float, ...]
    """What is left for the largest possible records."""


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class Trade:
    """What each choice gives and costs; CONFIDENTIAL if the records are.

    Args:
        version: Of this form; 1.
        title: Of the publication.
        plan: The name of the plan file.
        plan_digest: The SHA-256 digest of the plan file as it was read.
        records_digest: The SHA-256 digest of the place and time of the file of records; empty if they were generated.
        data: What the records are: "public", "synthetic", "past" or "confidential".
        generated: Whether they were generated by the studio.
        about: What a record is called: establishments, farms.
        statuses: The statuses of cells, the best first.
        limits: The largest relative standard error of each status but the last.
        positions: Of the main control, from the least loss to the most accuracy.
        today: The position nearest to the plan as it is.
        main: The statistic that the main control is about.
        record_classes: The sizes of records.
        records: The sampled records, by class.
        examples: The named examples.
        firms: Firms made of the examples.
        chances: Losses at which the best test for presence finds a record with a probability of 5.5 %, 6.5 %, and so on: the
            number of them that a loss reaches, plus 5, is the probability in percent.
        statistics: The statistics.
        others: What the statistics cost whose mechanism is not chosen here.
        places: Three places with their numbers.
        draws: How often they were drawn.
        budget: None where the plan states none.
        baselines: Older rules, where they were computed.
    """

    version: int
    title: str
    plan: str
    plan_digest: str
    records_digest: str
    data: str
    generated: bool
    about: str
    statuses: tuple[str, ...]
    limits: tuple[float, ...]
    positions: tuple[Position, ...]
    today: int
    main: int
    record_classes: tuple[RecordClass, ...]
    records: tuple[SampledRecord, ...]
    examples: tuple[Example, ...]
    firms: tuple[Example, ...]
    chances: tuple[float, ...]
    statistics: tuple[TradeStatistic, ...]
    others: PointLosses
    places: tuple[TradePlace, ...]
    draws: int
    budget: Budget | None
    baselines: tuple[TradeBaseline, ...]

    @property
    def is_confidential(self) -> bool:
        """Whether the records were neither declared public nor generated."""
        return self.data not in NO_LOOK

    @property
    def label(self) -> str:
        """What every view and export says about the records."""
        return mark_of(self.data)

    def to_json(self) -> dict[str, Any]:
        """Return the file's content."""
        content: dict[str, Any] = form.write(self)
        return {"label": self.label} | content

    @classmethod
    def from_json(cls, content: Any) -> "Trade":
        """Read what ``to_json`` returned.

        Args:
            content: The content of a trade file.

        Returns:
            The trade.

        Raises:
            ParameterError: It has another form, or its lists do not fit together.
        """
        if not isinstance(content, dict) or content.get("version") != VERSION:
            raise ParameterError(
                parameter="trade file", problem=f"is not of version {VERSION}", advice="Make the file again."
            )
        found = form.read(cls, {name: each for name, each in content.items() if name != "label"}, what="trade file")
        _check(found)
        return found

    def text(self) -> str:
        """Return the file as text."""
        return json.dumps(self.to_json(), separators=(",", ":"), allow_nan=False)

    def digest(self) -> str:
        """Return the SHA-256 digest of the text."""
        return hashlib.sha256(self.text().encode()).hexdigest()

    def save(self, path: str | Path) -> Path:
        """Write the file, for its owner only if records are confidential.

        Args:
            path: The file; one that exists is replaced.

        Returns:
            The file.
        """
        file = Path(path)
        owner_only(file, self.data)
        file.write_text(self.text(), encoding="utf-8")
        return file

    @classmethod
    def load(cls, path: str | Path) -> "Trade":
        """Read a trade file.

        Args:
            path: The file.

        Returns:
            The trade.
        """
        file = Path(path)
        if file.stat().st_size > MOST_BYTES:
            raise ParameterError(parameter="trade file", problem="is too large", advice="Make the file again.")
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except ValueError:
            raise ParameterError(parameter="trade file", problem="is no JSON", advice="Make the file again.") from None
        return cls.from_json(content)

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON schema of the file."""
        found = form.json_schema(cls, title="recordwise trade file")
        found["$defs"][cls.__name__]["properties"]["label"] = {"type": "string"}
        found["$defs"][cls.__name__]["required"].append("label")
        return found


def _check(trade: Trade) -> None:
    """Refuse a file whose lists do not fit together."""
    held = (len(trade.records), len(trade.examples), len(trade.firms), len(trade.others.extremes))
    cells = tuple(len(place.cells) for place in trade.places)
    fits = bool(trade.positions and trade.statistics) and 0 <= trade.main < len(trade.statistics)
    fits = fits and 0 <= trade.today < len(trade.positions) and _lengths(trade.others) == held
    fits = fits and all(0 <= each.size_class < len(trade.record_classes) for each in trade.records)
    fits = fits and all(0 <= cell.statistic < len(trade.statistics) for place in trade.places for cell in place.cells)
    for each in trade.statistics:
        wanted = (len(each.sizes), len(each.sizes), len(each.tables), len(each.states))
        fits = fits and len(each.goals) == len(trade.positions)
        fits = fits and each.today in {candidate.name for candidate in each.candidates}
        for candidate in each.candidates:
            fits = fits and len(candidate.points) == len(trade.positions)
            for point in candidate.points:
                own = (len(point.errors), len(point.statuses), len(point.by_table), len(point.by_state))
                fits = fits and own == wanted and _lengths(point.losses) == held and len(point.drawn) == trade.draws
                fits = fits and all(tuple(map(len, draw)) == cells for draw in point.drawn)
    if not fits:
        raise ParameterError(
            parameter="trade file", problem="has lists that do not fit together", advice="Make the file again."
        )


def _lengths(losses: PointLosses) -> tuple[int, int, int, int]:
    return len(losses.records), len(losses.examples), len(losses.firms), len(losses.extremes)
