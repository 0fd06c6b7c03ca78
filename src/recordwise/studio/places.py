"""States of cells, and three places whose numbers are drawn with and without noise."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from recordwise.exact.arithmetic import FloatArray
from recordwise.mechanisms.base import Mechanism, Noisy
from recordwise.mechanisms.transformed import TransformedNoise, to_grid
from recordwise.noise.randomness import Seeded
from recordwise.plan.expressions import Prefix
from recordwise.plan.schema import NO_LOOK, Schema
from recordwise.planning.search.goals import GoalTable
from recordwise.planning.simulate.evaluate import column_of
from recordwise.studio.trade import PlaceCell, TradePlace, short

if TYPE_CHECKING:
    from recordwise.studio.make import Case, Fitted

FEWEST, MOST = 2, 60
"""How many states there may be."""
USUAL = ("state", "st", "statefp", "region", "province")
CODES = 2
"""Digits of the codes of states at the beginning of those of counties."""
"""Significant digits of the numbers in the file."""
DRAWS = 6
SHARES = (0.2, 0.6, 0.97)
"""The places that are shown, by the rank of their totals."""
NAMES = ("a small place", "a middling place", "a large place")
CELLS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What is a state in a plan: a level, a column, or the beginning of a code."""

    name: str
    by: Any
    schema: Schema

    def of(self, tables: Sequence[GoalTable]) -> tuple[Any, list[str]]:
        """Return the state of each counted cell of some tables, -1 for none, and the codes of states."""
        columns = []
        for table in tables:
            own = column_of(table.part, self.by, self.schema)  # type: ignore[arg-type]
            rows = np.flatnonzero(table.counted)
            columns.append([None] * len(rows) if own is None else _texts(own).take(pa.array(rows)).to_pylist())
        codes = sorted({each for own in columns for each in own if each is not None})
        place = {each: at for at, each in enumerate(codes)}
        return np.array([place.get(each, -1) for own in columns for each in own], np.int64), codes


def _texts(column: Any) -> Any:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return (
        whole.dictionary_decode().cast(pa.string()) if pa.types.is_dictionary(whole.type) else whole.cast(pa.string())
    )


def state_of(tables: Sequence[GoalTable], schema: Schema) -> State | None:
    """Return what is a state: a level or column of that name, a level with few codes, or two digits of long codes."""
    levels = [name for each in schema.hierarchies for name in each.levels]
    groups = list(dict.fromkeys(name for table in tables for name in table.part.level.names()))
    named = [name for name in (*levels, *groups) if name.lower() in USUAL]
    few = [
        name
        for each in schema.hierarchies[:1]
        for name in each.levels[:-1]
        if FEWEST <= len(each.codes.column(name).unique()) <= MOST
    ]
    begun = [Prefix(name, CODES) for name in groups if _has_long_codes(tables, name)]
    for name, by in [*((each, each) for each in (*named, *few)), *((str(each.column), each) for each in begun)]:
        found = State(name=name, by=by, schema=schema)
        if FEWEST <= len(found.of(tables)[1]) <= MOST:
            return found
    return None


def _has_long_codes(tables: Sequence[GoalTable], name: str) -> bool:
    for table in tables:
        if name in table.part.cells.column_names:
            codes = _texts(table.part.cells.column(name)).unique().to_pylist()
            return len(codes) > MOST and all(
                each is not None and each.isdigit() and len(each) > CODES for each in codes
            )
    return False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shown:
    """A place: the cells of one value of a column, by their rows in a table."""

    name: str
    rows: tuple[int, ...]
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """Three places of the table of the main goal, with all statistics that have that table; CONFIDENTIAL if the records are."""

    shown: tuple[Shown, ...]
    tables: tuple[GoalTable, ...]
    statistics: tuple[int, ...]
    labels: tuple[str, ...]
    is_exact: bool
    """Whether totals may be shown; otherwise round numbers of their sizes are."""

    def total(self, table: GoalTable, row: int) -> float:
        """Return what is shown without noise."""
        exact = float(table.part.total[row])
        return exact if self.is_exact else 10.0 ** round(math.log10(max(exact, 1.0)))


def chosen_places(case: "Case") -> Places:
    """Return a small, a middling and a large place."""
    main = case.references[case.main]
    pairs = [
        (number, each.level)
        for number, each in enumerate(case.references)
        if each.place[0] == main.place[0] and each.level.part.number == main.level.part.number
    ]
    part, is_exact = main.level.part, case.origin in NO_LOOK
    names = part.level.names()
    column = next((name for name in names if _is_place(name, case)), names[0] if names else "")
    totals = np.where(main.level.counted, part.total, 0.0)
    codes = _texts(part.cells.column(column)).to_pylist() if column else ["all"] * len(totals)
    known = {code: at for at, code in enumerate(dict.fromkeys(codes))}
    number = np.array([known[each] for each in codes])
    sums = np.bincount(number, weights=totals, minlength=len(known))
    order = np.argsort(sums, kind="stable")[int((sums <= 0).sum()) :]
    chosen = dict.fromkeys(int(order[min(int(each * len(order)), len(order) - 1)]) for each in SHARES)
    labels, found = case.words.values(column), []
    for at, name in zip(chosen, NAMES):
        rows = np.flatnonzero((number == at) & (totals > 0))
        rows = rows[np.argsort(-totals[rows], kind="stable")][:CELLS]
        code = next(each for each, own in known.items() if own == at)
        cells = tuple(_cell_name(case, part.cells, int(row), column) for row in rows)
        found.append(
            Shown(
                name=f"{labels.get(code, code)}: {name}" if is_exact and column else name,
                rows=tuple(map(int, rows)),
                cells=cells if is_exact else tuple(f"cell {place + 1}" for place in range(len(rows))),
            )
        )
    return Places(
        shown=tuple(found),
        tables=tuple(each for _, each in pairs),
        statistics=tuple(each for each, _ in pairs),
        labels=tuple(case.vocabulary.statistic(each.asked.query, each.asked.statistic.alias) for _, each in pairs),
        is_exact=is_exact,
    )


def _is_place(name: str, case: "Case") -> bool:
    if case.state is None:
        return False
    listed = case.view.schema.hierarchy(name)
    return name == case.state.name or (listed is not None and case.state.name in listed.levels)


def _cell_name(case: "Case", cells: Any, row: int, column: str) -> str:
    """Return what a cell of a place is called: its other groups."""
    named = []
    for name in cells.column_names:
        if name != column and name in {each.name for each in case.references[case.main].level.part.level.groups}:
            code = str(cells.column(name)[row].as_py())
            named.append(case.words.values(name).get(code, code))
    return ", ".join(named) or "all"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawn:
    """Draws of the three places: the same seed at every position, so that noise shrinks as the control moves."""

    places: Places
    seed: int

    @property
    def number(self) -> int:
        """How often they are drawn."""
        return DRAWS

    def shown(self) -> tuple[TradePlace, ...]:
        """Return the places without noise."""
        places = self.places
        return tuple(
            TradePlace(
                name=each.name,
                cells=tuple(
                    PlaceCell(
                        statistic=statistic,
                        name=f"{cell}: {label}",
                        total=short(places.total(table, row)),
                    )
                    for row, cell in zip(each.rows, each.cells)
                    for statistic, table, label in zip(places.statistics, places.tables, places.labels)
                ),
            )
            for each in places.shown
        )

    def of(self, fitted: "Fitted") -> list[tuple[tuple[tuple[float, ...], ...], ...]]:
        """Return the draws of a candidate at every position; cells of other statistics are 0."""
        places, own = self.places, fitted.reference
        at = next((place for place, each in enumerate(places.tables) if each.asked.place == own.place), None)
        rows = [row for each in places.shown for row in each.rows]
        if at is None or not rows:
            empty = tuple(tuple(0.0 for _ in place.cells) for place in self.shown())
            return [tuple(empty for _ in range(DRAWS)) for _ in fitted.mechanisms]
        table = places.tables[at]
        totals = np.array([places.total(table, row) for row in rows])
        drawn = self._values(fitted, table, rows, totals)
        return [self._laid_out(each, at) for each in drawn]

    def _values(self, fitted: "Fitted", table: GoalTable, rows: Sequence[int], totals: FloatArray) -> list[FloatArray]:
        """Return the drawn values, a row for each draw: noise is drawn once and scaled, on the scale it is drawn on."""
        from recordwise.studio.make import is_plain

        if is_plain(fitted.scalable, table):
            middle = fitted.scalable.drawn(fitted.reference.place).mechanism
            noise = self._once(middle, table, rows, totals) - totals
            return [totals + noise / math.sqrt(each) for each in fitted.factors]
        middle = fitted.scalable.drawn(fitted.reference.place).mechanism
        drawn = {
            tuple(served): self._standard(each, whole, table)
            for each, served, whole in self._served(middle, table, rows, totals)
        }
        return [self._scaled(each, table, rows, totals, drawn) for each in fitted.mechanisms]

    def _scaled(
        self,
        mechanism: Mechanism,
        table: GoalTable,
        rows: Sequence[int],
        totals: FloatArray,
        drawn: dict[tuple[int, ...], FloatArray],
    ) -> FloatArray:
        """Return what a transform would publish at another noise scale.

        The rounding of its lattice is left out: the places only illustrate, and tables of noise for every position take long.
        """
        found = np.zeros((DRAWS, len(rows)))
        for each, columns, whole in self._served(mechanism, table, rows, totals):
            grid, step = each.grid(table.step), table.step
            points = to_grid(each.function, whole, step, grid)
            noise = np.rint(drawn[tuple(columns)] * float(each.noise_scale / grid)).astype(np.int64)
            noisy = Noisy(points=points + noise, grid=grid, step=step, private=False)
            found[:, columns] = np.asarray(each.estimate(noisy).value, np.float64).reshape(DRAWS, len(columns))
        return found

    def _standard(self, mechanism: TransformedNoise, whole: Any, table: GoalTable) -> FloatArray:
        """Return noise of a transform in multiples of its scale."""
        noisy = mechanism.release(whole, step=table.step, rng=Seeded(self.seed))
        exact = to_grid(mechanism.function, whole, noisy.step, noisy.grid)
        return np.asarray((noisy.points - exact).astype(np.float64) * float(noisy.grid / mechanism.noise_scale))

    def _served(
        self, mechanism: Mechanism, table: GoalTable, rows: Sequence[int], totals: FloatArray
    ) -> Iterator[tuple[Any, list[int], Any]]:
        """Yield each mechanism that draws for the places, the cells it draws for, and their totals in steps, for all draws."""
        part, place = table.part, {row: number for number, row in enumerate(rows)}
        only = np.zeros(len(part.total), bool)
        only[list(rows)] = True
        for each, served in part.served(mechanism, part.level.share, only):
            columns = [place[int(row)] for row in served]
            yield each, columns, np.tile(np.round(totals[columns] / float(part.step)).astype(np.int64), DRAWS)

    def _once(self, mechanism: Mechanism, table: GoalTable, rows: Sequence[int], totals: FloatArray) -> FloatArray:
        """Return what a mechanism publishes."""
        found = np.zeros((DRAWS, len(rows)))
        for number, (each, columns, whole) in enumerate(self._served(mechanism, table, rows, totals)):
            noisy = each.release(whole, step=table.step, rng=Seeded(self.seed * 1009 + number))
            found[:, columns] = np.asarray(each.estimate(noisy).value, np.float64).reshape(DRAWS, len(columns))
        return found

    def _laid_out(self, values: FloatArray, at: int) -> tuple[tuple[tuple[float, ...], ...], ...]:
        """Return values by draw, place and cell, 0 for other statistics."""
        width, start, found = len(self.places.tables), 0, []
        for each in self.places.shown:
            block = np.zeros((DRAWS, len(each.rows) * width))
            block[:, at::width] = values[:, start : start + len(each.rows)]
            start += len(each.rows)
            found.append(block)
        return tuple(tuple(tuple(short(value) for value in block[draw]) for block in found) for draw in range(DRAWS))
