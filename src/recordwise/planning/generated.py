"""Generated records for any schema: columns from the public lists of a plan, measures as skewed as real ones. Nothing is read.

A record depends on the plan, the seed and its number only, so that records can be made a million at a time.
"""

import itertools
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.fields import Case, DatePart, Expression, Field, Prefix
from recordwise.plan.key_columns import arrow_type
from recordwise.plan.plan import Plan
from recordwise.plan.predicates import In, IsNull, leaves, operand_name
from recordwise.plan.schema import Column, Measure
from recordwise.plan.statistics.totals import IntArray
from recordwise.planning.public_lists import Coded, Listed, code_list, day_list, plan_lists, prefix_list
from recordwise.planning.record_sizes import usual_sizes
from recordwise.policy.constructors import By
from recordwise.progress import tracked
from recordwise.synthetic.figures import uniforms
from recordwise.synthetic.synthetic import firm, scrambled

if TYPE_CHECKING:
    from recordwise.plan.file.read import PlanFile

BATCH = 1_000_000
MOST_RECORDS = 2**40
SKEW = 1.5
"""Standard deviation of the logarithm of a measure."""
ALIKE = 0.9
"""Correlation of the logarithms of two measures."""
NOTHING, MISSING, BELOW_ZERO, UNKNOWN = 0.05, 0.02, 0.3, 0.02
"""Shares of the records with 0, without a value, below 0 and with NULL as a category, where a schema allows each."""
MOST_ROWS = 4
"""A unit that may have several rows has one to so many."""
CODES = tuple(f"{110_000 + 4_421 * number:06d}" for number in range(200))
"""The values of a text column about which nothing is public."""
PER_CELL, LEAST, MOST = 10, 10_000, 1_000_000
FOR_MEASURES, FOR_COLUMNS, FOR_LISTS = 1_000, 5_000, 10_000
"""The first streams of random numbers for each; smaller numbers are for whole records."""


def usual_rows(plan: Plan) -> int:
    """How many records to generate: ten for each cell of the largest table, from ten thousand to a million."""
    lists = list(plan_lists(plan, 0))
    cells = max((len(each.weights) for each in lists), default=0)
    return int(min(max(PER_CELL * cells, LEAST), MOST))


def write_records(file: "PlanFile", path: Path, rows: int, *, seed: int = 0) -> int:
    """Write generated records of a plan's schema as a Parquet file.

    Args:
        file: The plan; of its text only what is public is used, and its source is not touched.
        path: The file to write.
        rows: The number of units; where a unit may have several rows there are more rows than units.
        seed: The same seed gives the same records.

    Returns:
        The number of rows.
    """
    import pyarrow.parquet as pq

    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= MOST_RECORDS:
        raise ParameterError(parameter="rows", problem=f"must be a whole number from 1 to {MOST_RECORDS:,}")
    maker, writer, written = Maker(file.plan, file.examples, rows, seed), None, 0
    try:
        for start in tracked(range(0, rows, BATCH), "generating records"):
            table = maker.table(start, min(BATCH, rows - start))
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
            written += table.num_rows
    finally:
        if writer is not None:
            writer.close()
    return written


class Maker:
    """Makes the records of one plan."""

    def __init__(self, plan: Plan, examples: Mapping[str, Mapping[str, Any]], rows: int, seed: int) -> None:
        self._plan, self._schema, self._rows, self._seed = plan, plan.schema, rows, seed
        self._sizes = usual_sizes(plan, examples)
        self._lists = list(plan_lists(plan, seed))
        self._links = list(_links(plan, self._lists))

    def table(self, start: int, count: int) -> pa.Table:
        """The records with the numbers from ``start`` on."""
        number = np.arange(start, start + count, dtype=np.int64)
        columns: dict[str, pa.Array] = {self._schema.unit: pa.array(scrambled(number))}
        if self._schema.firm:
            chained, which = self._chance(1, start, count), self._chance(2, start, count)
            columns[self._schema.firm] = pa.array(firm(number, self._rows, chained, which))
        steps = {each.name: self._steps(place, each, start, count) for place, each in enumerate(self._held())}
        columns |= {name: each.column() for name, each in self._columns(start, count).items()}
        if self._schema.collapse is not None:
            return self._in_rows(columns, steps, start, count)
        return pa.table(columns | {each.name: self._stored(each, steps[each.name], start) for each in self._held()})

    def _held(self) -> tuple[Measure, ...]:
        return self._schema.held_measures()

    def _chance(self, stream: int, start: int, count: int) -> FloatArray:
        return uniforms(self._seed, stream, start, count)

    def _columns(self, start: int, count: int) -> dict[str, Coded]:
        """Every conditional column: from the lists in turn, each given what is known, then by itself."""
        known: dict[Expression, Coded] = {}
        streams = itertools.count(FOR_LISTS)
        for listed in self._lists:
            known |= listed.drawn(known, self._chance(next(streams), start, count))
            for link in self._links:
                if link.touches(known):
                    known |= link.drawn(known, self._chance(next(streams), start, count))
        for link in self._links:
            known |= link.drawn(known, self._chance(next(streams), start, count))
        found = {}
        for place, each in enumerate(self._schema.columns):
            chance = self._chance(FOR_COLUMNS + place, start, count)
            made = known.get(Field(each.name))
            found[each.name] = self._alone(each, chance) if made is None else made
        return found

    def _alone(self, column: Column, chance: FloatArray) -> Coded:
        """A column about which only the constants it is compared with are public."""
        values = _values(column, self._plan)
        if column.null == "category":
            nulls = pa.nulls(1, values.type)
            unknown = chance < UNKNOWN
            codes = (chance * len(values)).astype(np.int64)
            return Coded(pa.concat_arrays([values, nulls]), np.where(unknown, len(values), codes))
        return Coded(values, (chance * len(values)).astype(np.int64))

    def _steps(self, place: int, measure: Measure, start: int, count: int) -> IntArray:
        """A measure in whole steps: lognormal around its usual size, with zeros, and signs where it has them."""
        from scipy.special import ndtri

        own = FOR_MEASURES + 10 * place
        common, alone = (ndtri(self._chance(each, start, count)) for each in (3, own))
        level = np.exp(SKEW * (ALIKE**0.5 * common + (1 - ALIKE) ** 0.5 * alone))
        steps = np.minimum(np.rint(self._sizes[measure.name] / float(measure.step) * level), measure.bound_steps)
        steps = np.where(self._chance(6, start, count) < NOTHING, 0, steps)
        if measure.signed:
            steps = np.where(self._chance(own + 2, start, count) < BELOW_ZERO, -steps, steps)
        return np.asarray(steps, np.int64)

    def _stored(self, measure: Measure, steps: IntArray, start: int) -> pa.Array:
        """A measure in its own units, as the nearest float where its step is no whole number; NULL where that counts as 0."""
        step = measure.step
        values = steps * step.numerator if step.denominator == 1 else steps * step.numerator / step.denominator
        if measure.null != "zero":
            return pa.array(values)
        place = self._held().index(measure)
        return pa.array(values, mask=self._chance(FOR_MEASURES + 10 * place + 3, start, len(steps)) < MISSING)

    def _in_rows(self, columns: dict[str, pa.Array], steps: Mapping[str, IntArray], start: int, count: int) -> pa.Table:
        """Units with one to several rows that collapse to the record: sums in parts, of a maximum one row and less elsewhere."""
        times = 1 + (self._chance(4, start, count) ** 2 * MOST_ROWS).astype(np.int64)
        unit = np.repeat(np.arange(count), times)
        first = np.concatenate([[0], np.cumsum(times)[:-1]])
        place = np.arange(len(unit)) - first[unit]
        share = self._chance(5, MOST_ROWS * start, len(unit))
        made = {name: each.take(pa.array(unit)) for name, each in columns.items()}
        for each in self._held():
            own = _by_rule(str(self._schema.rule(each.name)), steps[each.name][unit], place, times[unit], share)
            made[each.name] = self._stored(each, own, MOST_ROWS * start)
        return pa.table(made)


def _by_rule(rule: str, steps: IntArray, place: IntArray, times: IntArray, share: FloatArray) -> IntArray:
    """The values of rows that collapse to a given value; in absolute terms none is larger."""
    if rule == "sum":
        part = np.sign(steps) * (np.abs(steps) // times)
        return np.where(place == 0, steps - part * (times - 1), part)
    if rule == "max":
        smaller = np.where(steps > 0, np.floor(steps * share), steps)
        return np.where(place == 0, steps, smaller).astype(np.int64)
    return steps


def _links(plan: Plan, lists: list[Listed]) -> Iterator[Listed]:
    """What ties columns to their levels, prefixes and parts."""
    codes = [code_list(each) for each in plan.schema.hierarchies]
    yield from codes
    groups = {group.expression: None for query in plan.queries for level in query.tables() for group in level.groups}
    for column in plan.schema.columns:
        prefixes = [each for each in groups if isinstance(each, Prefix) and each.column == column.name]
        parts = [each for each in groups if isinstance(each, DatePart) and each.column == column.name]
        made = prefix_list(column.name, prefixes, [*lists, *codes]) if prefixes else None
        if made is not None and len(made.weights):
            yield made
        if column.type == "date":
            yield day_list(column.name, parts, lists)


def _values(column: Column, plan: Plan) -> pa.Array:
    """Values for a column that no list has: those that conditions and thresholds name, and others."""
    named = list(dict.fromkeys(_literals(column.name, plan)))
    if column.type == "boolean":
        return pa.array([True, False])
    if column.type == "integer":
        whole = [int(each) for each in named if isinstance(each, Fraction) and each.denominator == 1]
        return pa.array(list(dict.fromkeys([*whole, *range(10)])), arrow_type("integer"))
    texts = [each for each in named if isinstance(each, str)]
    # As often as others, so that conditions on them hold for some records and not for others.
    return pa.array([*(texts * len(CODES))[: len(CODES) if texts else 0], *CODES])


def _literals(name: str, plan: Plan) -> Iterator[Any]:
    """The constants that a column is compared with."""
    for query in plan.queries:
        cases = [group.expression for level in query.tables() for group in level.groups]
        tests = [test for each in cases if isinstance(each, Case) for test, _ in each.branches]
        for leaf in [leaf for each in (query.condition, *tests) if each is not None for leaf in leaves(each)]:
            if operand_name(leaf.operand) == name and not isinstance(leaf, IsNull):
                yield from leaf.literals if isinstance(leaf, In) else (leaf.literal,)
        for part in query.draws():
            at = part.threshold(part.mechanism, plan.schema)
            if isinstance(at, By) and at.column.name == name:
                yield from (value for value, _ in at.values)
