"""Generated records for any schema, from public lists alone.

Columns come from the lists of a plan, and measures are as skewed as real ones. No record is read. A record depends on the plan,
the seed and its number only, so that records can be made a million at a time.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.expressions import (
    Case,
    DatePart,
    Expression,
    Field,
    In,
    IsNull,
    Level,
    Prefix,
    leaves,
    operand_name,
)
from recordwise.plan.keys.bands import sizes_at
from recordwise.plan.keys.cells import arrow_type, encode_column
from recordwise.plan.keys.hierarchies import Hierarchy
from recordwise.plan.plan import Plan
from recordwise.plan.query import Query
from recordwise.plan.schema import DEFAULT_BOUND_STEPS, Column, Measure
from recordwise.plan.statistics import Drawable
from recordwise.plan.statistics.totals import IntArray
from recordwise.policy.columns import PARTS, parts_of_days
from recordwise.policy.constructors import By
from recordwise.progress import tracked
from recordwise.synthetic.establishments import firm, scrambled_ids, uniforms

if TYPE_CHECKING:
    from recordwise.plan.file.read import PlanFile


# What is publicly known about the columns of records: the cells of a plan, code lists, prefixes of codes and parts of
# dates. Records that should fall into published cells are drawn from these lists, one list after another, each given
# the columns that are already known: a county from the keys, then a date among the days of the year that the keys
# name.


MOST_DRAWN = 200_000
"""At most this many cells of a public domain are considered; it may have 2^62."""
SPREAD = 0.7
"""Cells whose size is not known are as different as ranks to this power."""
FIRST_YEAR, LAST_YEAR = 2015, 2024
LONGEST_SPAN = 120
WEIGHTS, PLACES = 9_001, 9_002
"""Streams of random numbers that no column uses."""


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A column as distinct values and each row's index."""

    values: pa.Array
    codes: IntArray

    @classmethod
    def of(cls, column: Any) -> "Coded":
        """A column of any length, NULL among its values."""
        made = encode_column(column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column]))
        return cls(made.dictionary, np.asarray(made.indices.to_numpy(), np.int64))

    def taken(self, rows: IntArray) -> "Coded":
        return Coded(self.values, self.codes[rows])

    def column(self) -> pa.Array:
        return self.values.take(pa.array(self.codes))


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """A public list of possible combinations with their frequencies."""

    columns: dict[Expression, Coded]
    weights: FloatArray

    def touches(self, known: dict[Expression, Coded]) -> bool:
        """Whether some of its columns are known and others are not."""
        return any(each in known for each in self.columns) and any(each not in known for each in self.columns)

    def drawn(self, known: dict[Expression, Coded], chance: FloatArray) -> dict[Expression, Coded]:
        """Draw unknown columns from rows that agree with known ones."""
        wanted = [each for each in self.columns if each not in known]
        if not wanted:
            return {}
        total = np.cumsum(self.weights)
        rows = np.searchsorted(total, chance * total[-1]).clip(max=len(total) - 1)
        given = [each for each in self.columns if each in known]
        if given:
            rows = self._given(known, given, chance, rows)
        return {each: self.columns[each].taken(rows) for each in wanted}

    def _given(
        self, known: dict[Expression, Coded], given: Sequence[Expression], chance: FloatArray, otherwise: IntArray
    ) -> IntArray:
        ours, theirs = np.zeros(len(self.weights), np.int64), np.zeros(len(chance), np.int64)
        matching = np.ones(len(chance), np.bool_)
        for each in given:
            own, other = self.columns[each], known[each]
            place = pc.index_in(other.values.cast(own.values.type), value_set=own.values).fill_null(-1)
            found = np.asarray(place.to_numpy(zero_copy_only=False), np.int64)[other.codes]
            matching &= found >= 0
            ours, theirs = ours * len(own.values) + own.codes, theirs * len(own.values) + np.maximum(found, 0)
        order = np.argsort(ours, kind="stable")
        total = np.concatenate([[0.0], np.cumsum(self.weights[order])])
        low, high = (np.searchsorted(ours[order], theirs, side=side) for side in ("left", "right"))
        target = total[low] + chance * (total[high] - total[low])
        rows = np.clip(np.searchsorted(total, target, side="right") - 1, low, np.maximum(high - 1, low))
        return np.where(matching & (high > low), order[np.minimum(rows, len(order) - 1)], otherwise)


def plan_lists(plan: Plan, seed: int) -> Iterator[Listed]:
    """Yield the public cells of every table."""
    found = []
    for query in plan.queries:
        for level in query.tables():
            listed = _cells(plan, query, level, seed)
            if listed is not None:
                found.append(listed)
    yield from sorted(found, key=lambda each: (-len(each.columns), -len(each.weights)))


def _cells(plan: Plan, query: Query, level: Level, seed: int) -> Listed | None:
    keys, groups = query.keys_of(level), level.groups
    if keys is not None and keys.selection is None:
        cells = keys.cells(groups, plan.schema)
        sizes = None if keys.sizes is None else sizes_at(keys, groups, plan.schema, ("count", *keys.sizes.columns))
    elif keys is not None and keys.domain is not None:
        domain, sizes = keys.domain.bound(groups, plan.schema), None
        places = np.arange(domain.size) if domain.size <= MOST_DRAWN else _some_places(domain.size, seed)
        cells = domain.keys(places)
    else:
        return None
    columns: dict[Expression, Coded] = {
        group.expression: Coded.of(cells.column(group.name))
        for group in groups
        if not isinstance(group.expression, Case)
    }
    return Listed(columns, _weights(cells.num_rows, sizes, seed)) if columns else None


def _some_places(size: int, seed: int) -> IntArray:
    return np.unique((uniforms(seed, PLACES, 0, MOST_DRAWN) * size).astype(np.int64))


def _weights(rows: int, sizes: FloatArray | None, seed: int) -> FloatArray:
    """Return weights proportional to public sizes.

    Otherwise a few large cells and many small ones.
    """
    if sizes is not None and sizes.sum() > 0:
        return sizes
    rank = np.argsort(np.argsort(uniforms(seed, WEIGHTS, 0, rows)))
    return np.asarray((rank + 1.0) ** -SPREAD)


def code_list(hierarchy: Hierarchy) -> Listed:
    """The codes of a hierarchy with their levels."""
    columns: dict[Expression, Coded] = {
        Field(level): Coded.of(hierarchy.codes.column(level)) for level in hierarchy.levels
    }
    return Listed(columns, np.ones(hierarchy.codes.num_rows))


def prefix_list(column: str, prefixes: Sequence[Prefix], lists: Sequence[Listed]) -> Listed:
    """Return the codes of a text column with their prefixes."""
    whole = [each.columns[Field(column)].values for each in lists if Field(column) in each.columns]
    known = pa.concat_arrays([pa.array([], pa.string()), *(each.cast(pa.string()) for each in whole)]).unique()
    for prefix in sorted(prefixes, key=lambda each: -each.length):
        asked = [each.columns[prefix].values for each in lists if prefix in each.columns]
        starts = pc.utf8_slice_codeunits(known, 0, prefix.length)
        for values in asked:
            missing = values.filter(pc.invert(pc.is_in(values, value_set=starts)))
            known = pa.concat_arrays([known, missing]).unique()
    columns: dict[Expression, Coded] = {Field(column): Coded.of(known)}
    columns |= {each: Coded.of(pc.utf8_slice_codeunits(known, 0, each.length)) for each in prefixes}
    return Listed(columns, np.ones(len(known)))


def day_list(column: str, parts: Sequence[DatePart], lists: Sequence[Listed]) -> Listed:
    """Return the days of the years that the keys name."""
    named = [
        int(year)
        for part in parts
        for each in lists
        if part in each.columns and part.part in ("year", "isoyear")
        for year in each.columns[part].values.to_pylist()
        if year is not None and PARTS["year"][0] <= year < PARTS["year"][1]
    ]
    first, last = (min(named), max(named)) if named else (FIRST_YEAR, LAST_YEAR)
    first = max(first, last - LONGEST_SPAN)
    ends = np.array([f"{first:04d}-01-01", f"{last + 1:04d}-01-01"], "datetime64[D]").astype(np.int64)
    days = np.arange(*ends)
    split = parts_of_days(days)
    columns: dict[Expression, Coded] = {Field(column): Coded.of(pa.array(days.astype(np.int32), pa.date32()))}
    columns |= {part: Coded.of(pa.array(split[part.part])) for part in parts}
    return Listed(columns, np.ones(len(days)))


# The usual size of a record in each measure, as far as that is public: from sizes of cells, made-up examples,
# mechanisms or the bound of the measure.


COUNT = "count"
STEPS = 10
"""The size of a record, in steps, where nothing says more."""
BELOW_THRESHOLD = 5
"""A threshold or an offset is chosen this many times above the usual record."""


def usual_sizes(plan: Plan, examples: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return the middle size of a record in each measure.

    In its units and at most its bound; only measures that records hold.

    Args:
        plan: The plan, with the sizes of earlier releases read.
        examples: Made-up records by name.

    Returns:
        A positive size for each measure.
    """
    return {each.name: min(_usual(each, plan, examples), float(each.bound)) for each in plan.schema.record_measures()}


def _usual(measure: Measure, plan: Plan, examples: Mapping[str, Mapping[str, Any]]) -> float:
    known = mean_size(plan, measure.name)
    if known is not None:
        return known
    given = [abs(float(each[measure.name])) for each in examples.values() if measure.name in each]
    if positive := [value for value in given if value > 0]:
        return float(np.exp(np.mean(np.log(positive[: (len(positive) + 1) // 2]))))
    if made_for := [float(each) for each in _made_for(plan, measure.name)]:
        return max(min(made_for) / BELOW_THRESHOLD, float(measure.step))
    stated = measure.bound < DEFAULT_BOUND_STEPS * measure.step
    return float(np.sqrt(float(measure.step) * float(measure.bound))) if stated else STEPS * float(measure.step)


def derived_size(name: str, plan: Plan, usual: Mapping[str, float]) -> float:
    """Return the usual size in any measure, also derived.

    Args:
        name: A measure of the plan.
        plan: The plan.
        usual: What ``usual_sizes`` found.

    Returns:
        A positive size.
    """
    if name in usual:
        return usual[name]
    measure = plan.schema.measure(name)
    if measure is None:
        return 1.0
    found = abs(sum(float(share) * usual[base] for base, share in measure.derive))
    return max(found, float(measure.step))


def mean_size(plan: Plan, measure: str) -> float | None:
    """Return a measure's public total per public record."""
    for query in plan.queries:
        for keys in query.key_lists:
            sizes = keys.sizes
            total, number = (None, None) if sizes is None else (sizes.columns.get(measure), sizes.columns.get(COUNT))
            if total is not None and number is not None and total.sum() > 0 and number.sum() > 0:
                return float(total.sum() / number.sum())
    return None


def _made_for(plan: Plan, measure: str) -> Iterator[Fraction]:
    """Yield the record sizes that mechanisms are designed for.

    Thresholds, bounds, offsets, and the middles of grids.
    """
    for query in plan.queries:
        for part in query.draws():
            if part.of == measure:
                yield from record_of(part, plan)
            for bins in part.bins():
                if bins.measure == measure:
                    yield Fraction(float(np.sqrt(max(float(bins.grid.low), 1.0) * float(bins.grid.high))))


def record_of(part: Drawable, plan: Plan) -> Iterator[Fraction]:
    """The threshold, clamping bound or offset of a statistic's mechanism."""
    at = part.threshold(part.mechanism, plan.schema)
    if isinstance(at, By):
        yield min(number for _, number in at.values)
    elif at:
        yield at
    for each in part.mechanism.inside():
        found = each.to or getattr(each, "offset", None)
        if found and each is part.mechanism:
            yield Fraction(found)


# The records.


BATCH = 1_000_000
MOST_RECORDS = 2**40
SKEW = 1.5
"""Standard deviation of the logarithm of a measure."""
ALIKE = 0.9
"""Correlation of the logarithms of two measures."""
NOTHING, MISSING, BELOW_ZERO, UNKNOWN = 0.05, 0.02, 0.3, 0.02
"""Shares of the records with 0, without a value, below 0 and with NULL as a category, where a schema allows each."""
MOST_ROWS = 4
"""A unit that may have several rows has one to this many."""
CODES = tuple(f"{110_000 + 4_421 * number:06d}" for number in range(200))
"""The values of a text column about which nothing is public."""
PER_CELL, LEAST, MOST = 10, 10_000, 1_000_000
FOR_MEASURES, FOR_COLUMNS, FOR_LISTS = 1_000, 5_000, 10_000
"""The first streams of random numbers for each; smaller numbers are for whole records."""


def usual_rows(plan: Plan) -> int:
    """Return how many records to generate.

    Ten for each cell of the largest table, from ten thousand to a million.
    """
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
        columns: dict[str, pa.Array] = {name: pa.array(scrambled_ids(number)) for name in self._generated_ids()}
        if self._schema.firm:
            chained, which = self._chance(1, start, count), self._chance(2, start, count)
            columns[self._schema.firm] = pa.array(firm(number, self._rows, chained, which))
        steps = {each.name: self._steps(place, each, start, count) for place, each in enumerate(self._held())}
        columns |= {name: each.column() for name, each in self._columns(start, count).items()}
        if self._schema.collapse is not None:
            return self._in_rows(columns, steps, start, count)
        return pa.table(columns | {each.name: self._stored(each, steps[each.name], start) for each in self._held()})

    def _generated_ids(self) -> list[str]:
        """Return the columns of the id that nothing is grouped by; one of them makes every record's id its own."""
        found = [name for name in self._schema.unit_columns if name not in self._schema.column_names()]
        if not found:
            raise ParameterError(
                parameter="unit",
                problem="consists of columns that are grouped by, so no records can be generated for it",
                advice="Use records of your own: --records FILE.",
            )
        return found

    def _held(self) -> tuple[Measure, ...]:
        return self._schema.record_measures()

    def _chance(self, stream: int, start: int, count: int) -> FloatArray:
        return uniforms(self._seed, stream, start, count)

    def _columns(self, start: int, count: int) -> dict[str, Coded]:
        """Return every conditional column.

        From the lists in turn, each conditional on the columns so far, then by itself.
        """
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
        """Return a column known only by its compared constants."""
        values = _values(column, self._plan)
        if column.null == "category":
            nulls = pa.nulls(1, values.type)
            unknown = chance < UNKNOWN
            codes = (chance * len(values)).astype(np.int64)
            return Coded(pa.concat_arrays([values, nulls]), np.where(unknown, len(values), codes))
        return Coded(values, (chance * len(values)).astype(np.int64))

    def _steps(self, place: int, measure: Measure, start: int, count: int) -> IntArray:
        """Return a measure in whole steps.

        Lognormal around its usual size, with zeros, and signs where it has them.
        """
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
        """Return a measure in its units.

        The nearest float where its step is no whole number; NULL where that counts as 0.
        """
        step = measure.step
        values = steps * step.numerator if step.denominator == 1 else steps * step.numerator / step.denominator
        if measure.null != "zero":
            return pa.array(values)
        place = self._held().index(measure)
        return pa.array(values, mask=self._chance(FOR_MEASURES + 10 * place + 3, start, len(steps)) < MISSING)

    def _in_rows(self, columns: dict[str, pa.Array], steps: Mapping[str, IntArray], start: int, count: int) -> pa.Table:
        """Split units into several rows that collapse to the record.

        Sums in parts; of a maximum one row and less elsewhere.
        """
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
    """Return the values of rows that collapse to a value."""
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
    """Return values for a column that no list has."""
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
