"""CONFIDENTIAL releases of a plan, drawn repeatedly from the same totals.

In memory, to measure their errors. Nothing here is charged, and nothing it returns is private, whatever the
noise is drawn from.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.engines.compile.owner import AMOUNT, TIMES
from recordwise.engines.engine import Engine
from recordwise.exact.arithmetic import FloatArray
from recordwise.ledger.chain import START
from recordwise.noise.randomness import BitSource
from recordwise.plan.cost import plan_policy
from recordwise.plan.describe import plan_json, schema_json, table_name
from recordwise.plan.keys.cells import Rows
from recordwise.plan.keys.keys import Keys
from recordwise.plan.plan import POSITION, FoundTotals, Plan, PlannedTable, TableTotals
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.plan.statistics import Drawable, Statistic, Sum
from recordwise.plan.statistics.base import Form
from recordwise.plan.statistics.totals import Confidential
from recordwise.release.draw import PreparedTable, in_turn, prepare_table, publish_table
from recordwise.release.published import Published
from recordwise.release.release import Release
from recordwise.release.tables import digest_of
from recordwise.session.checks import with_sizes
from recordwise.session.owner import FOR_OWNER

# CONFIDENTIAL: exact quantiles of the records of each cell, from values and how often each occurs.


ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class CellValues(Confidential):
    """CONFIDENTIAL: the frequency of each value in each cell, in ascending order."""

    position: Any
    value: FloatArray
    risen: Any
    """How many records there are up to this row, in all cells up to this one."""
    records: Any
    """How many records each cell has."""

    @classmethod
    def of(cls, position: Any, value: FloatArray, times: Any, cells: int) -> "CellValues":
        """Values in any order."""
        order = np.lexsort((value, position))
        records = np.bincount(position, weights=times, minlength=cells).astype(np.int64)
        return cls(position=position[order], value=value[order], risen=np.cumsum(times[order]), records=records)

    def with_zeros(self, records: Any) -> "CellValues":
        """Return the counts padded with zeros to each cell's ``records``."""
        cells = np.arange(len(records))
        times = np.diff(self.risen, prepend=0)
        return CellValues.of(
            np.append(cells, self.position),
            np.append(np.zeros(len(cells)), self.value),
            np.append(records - self.records, times),
            len(records),
        )

    def quantile(self, p: float) -> FloatArray:
        """Return the p-quantile of each cell; NaN for empty cells."""
        before = np.cumsum(self.records) - self.records
        place = np.maximum(np.ceil(p * self.records * (1 - ROUNDING)).astype(np.int64), 1)
        held = self.records > 0
        found = np.full(len(self.records), np.nan)
        found[held] = self.value[np.searchsorted(self.risen, (before + place)[held])]
        return found


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class SimulatedTable(Confidential):
    """CONFIDENTIAL: the exact values of the variables of one table."""

    name: str
    table: PlannedTable
    cells: pa.Table
    """The public cells; where keys are selected, those that hold records."""
    exact: dict[str, FloatArray]
    """By variable, without clamping."""
    kept: dict[str, FloatArray]
    """By variable, with the contributions clamped as its mechanism clamps them; a quantile, on its grid."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Contributions(Confidential):
    """CONFIDENTIAL: the frequency of each nonzero absolute contribution by public cell."""

    position: Any
    amount: FloatArray
    times: Any


class Simulation(Confidential):
    """CONFIDENTIAL: exact numbers of a plan, and releases drawn from them."""

    def __init__(self, engine: Engine, plan: Plan, *, confidence: float = 0.95) -> None:
        self.plan, self._engine, self._confidence = with_sizes(plan), engine, confidence
        wholes = [_wholes(query, plan.schema) for query in self.plan.queries]
        asked = Plan(schema=plan.schema, queries=(*self.plan.queries, *(each for each in wholes if each is not None)))
        found = {(each.table.query, each.table.level): each for each in engine.totals(asked)}
        self._found = tuple(found[own.query, own.level] for own in self.plan.tables())
        numbers = dict(enumerate((own for own, whole in enumerate(wholes) if whole is not None), len(wholes)))
        self._others = {(numbers[query], level): each for (query, level), each in found.items() if query in numbers}

    def tables(self) -> tuple[SimulatedTable, ...]:
        """The exact values of every table."""
        return tuple(self._table(each.table, each) for each in self._found)

    def _table(self, own: PlannedTable, found: TableTotals | FoundTotals) -> SimulatedTable:
        query = self.plan.queries[own.query]
        drawn, cells = query.draws(), _cells(found)
        kept = {each: self._values(each, found) for each in drawn if each.totals(self.plan.schema)}
        exact = {each: self._unclamped(own, each, cells, value) for each, value in kept.items()}
        variables = [*query.statistics, *(each for each in drawn if each not in query.statistics)]
        quantiles = {each.alias: self._quantile(own, each, found) for each in variables if each.bins()}
        read_off = {alias: pair for alias, pair in quantiles.items() if pair is not None}
        return SimulatedTable(
            name=table_name(self.plan, own),
            table=own,
            cells=cells,
            exact=_of_variables(variables, drawn, exact) | {alias: pair[0] for alias, pair in read_off.items()},
            kept=_of_variables(variables, drawn, kept) | {alias: pair[1] for alias, pair in read_off.items()},
        )

    def _quantile(
        self, own: PlannedTable, part: Any, found: TableTotals | FoundTotals
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return each cell's exact and grid quantile; None if not listable."""
        measure = self.plan.schema.measure(part.measure)
        if isinstance(found, FoundTotals) or measure is None or measure.signed:
            return None
        (bins,), table, step = part.bins(), found.exact.reveal(), float(measure.step)
        counted, points = table.bins[bins], np.array(bins.grid.steps(measure.step)) * step
        on_grid = CellValues.of(counted.position, points[counted.point], counted.held, table.cells)
        listed = self.contributions(own, part.measure)
        values = CellValues.of(listed.position, listed.amount, listed.times, table.cells).with_zeros(on_grid.records)
        return values.quantile(float(part.p)), on_grid.quantile(float(part.p))

    def _unclamped(self, own: PlannedTable, part: Drawable, cells: pa.Table, clamped: FloatArray) -> FloatArray:
        """The values without clamping, where there is any."""
        if not _is_clamped(part, self.plan.schema):
            return clamped
        other = self._others[own.query, own.level]
        values = self._values(Sum(measure=str(part.of), mechanism=FOR_OWNER), other)
        if not cells.num_columns or isinstance(other, TableTotals):
            return values
        return Keys(Rows.of(cells)).match_values(_cells(other), values)

    def _values(self, part: Drawable, found: TableTotals | FoundTotals) -> FloatArray:
        """Return the exact values in units, combining both signed parts."""
        held, parts = found.exact.reveal().totals, part.totals(self.plan.schema)
        rows = [np.asarray(held[each], np.float64) for each in parts]
        step = part.step(self.plan.schema)
        return (rows[0] if len(rows) == 1 else rows[0] - rows[1]) * float(step)

    @cached_property
    def _prepared_tables(self) -> tuple[tuple[TableTotals | FoundTotals, PreparedTable | None], ...]:
        return tuple((each, self._mechanisms(each)) for each in self._found)

    def _mechanisms(self, found: TableTotals | FoundTotals) -> PreparedTable | None:
        if isinstance(found, FoundTotals):
            return None
        return prepare_table(self.plan, found.table, found.cells, confidence=self._confidence)

    @cached_property
    def _description(self) -> Published:
        return Published.of(
            dataset="a simulation",
            plan=plan_json(self.plan),
            schema=schema_json(self.plan.schema),
            confidence=self._confidence,
            hierarchies=[each.to_json() for each in self.plan.schema.hierarchies],
        )

    def draw(self, rng: BitSource) -> Release:
        """One release, NOT PRIVATE.

        Args:
            rng: Where its noise is from.

        Returns:
            The release; nothing was charged for it.
        """
        tables = in_turn(
            publish_table(
                self.plan, each.table, _cells(each), each.exact.reveal(), ready, rng, confidence=self._confidence
            )
            for each, ready in self._prepared_tables
        )
        policy = plan_policy(self.plan)
        return Release(
            tables=tables,
            policy=policy,
            paper_policy=policy,
            published=self._description,
            digest=digest_of({table.name: table.data for table in tables}, policy),
            head=START,
            private=False,
        )

    def contributions(self, table: PlannedTable, measure: str) -> Contributions:
        """The contributions of a measure to the public cells of a table.

        Args:
            table: A table of the plan with public keys.
            measure: A measure without a sign.

        Returns:
            Cells, contributions and how often each occurs, in one order whatever that of the engine.
        """
        found = self._engine.owner_passes().contributions(self.plan, table, measure).reveal()
        found = found.sort_by([(POSITION, "ascending"), (AMOUNT, "ascending")])
        declared = self.plan.schema.measure(measure)
        step = float(declared.step) if declared else 1.0
        return Contributions(
            position=found.column(POSITION).to_numpy(),
            amount=np.asarray(found.column(AMOUNT).cast(pa.float64()).to_numpy(), np.float64) * step,
            times=np.asarray(found.column(TIMES).to_numpy(), np.int64),
        )


def _cells(found: TableTotals | FoundTotals) -> pa.Table:
    return found.cells.reveal() if isinstance(found, FoundTotals) else found.cells


def _is_clamped(part: Drawable, schema: Schema) -> bool:
    return any(getattr(each, "at_most", None) is not None for each in part.totals(schema))


def _wholes(query: Query, schema: Schema) -> Query | None:
    """Return a query's clamped sums without clamping; None without any."""
    clamped = dict.fromkeys(part.of for part in query.draws() if _is_clamped(part, schema))
    asked = replace(query, statistics=(), name="")
    for measure in clamped:
        asked = asked.sum(str(measure), FOR_OWNER)
    return asked if clamped else None


def _of_variables(
    variables: list[Any], drawn: tuple[Drawable, ...], values: dict[Drawable, FloatArray]
) -> dict[str, FloatArray]:
    """Return every variable that is a ratio of drawn linear forms."""
    found = {}
    for each in variables:
        if set(each.parts(drawn)) <= set(values):
            found[each.alias] = _value(each, drawn, values)
    return found


def _value(statistic: Statistic, drawn: tuple[Drawable, ...], values: dict[Drawable, FloatArray]) -> FloatArray:
    top, bottom = (_weighted_sum(form, values) for form in statistic.forms(drawn))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(top if not statistic.forms(drawn)[1] else top / bottom)


def _weighted_sum(form: Form, values: dict[Drawable, FloatArray]) -> Any:
    return sum((float(share) * values[part] for part, share in form), 0.0)
