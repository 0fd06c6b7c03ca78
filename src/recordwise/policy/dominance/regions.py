"""The parts of the universe on which every condition is constant.

A region fixes what conditions see (a representative value for each column) and leaves each measure a range of lattice steps. The
representatives are exhaustive: whatever a record holds, some region has the same truth value in every condition and contains
its amounts (T-REGIONS, docs/theory/dominance.md).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, pairwise, product
from math import ceil, floor, prod
from typing import Any, TypeAlias

import numpy as np

from recordwise.errors import ParameterError, RecordError
from recordwise.exact.numbers import arb_float_upper, ball, working_precision
from recordwise.policy.bands import BandTable, IntArray
from recordwise.policy.columns import Cell, ConditionColumn, Measure, Truth, Value, day_of, representatives
from recordwise.policy.conditions import AllOf, Among, AnyOf, Compare, Condition, InBand
from recordwise.policy.evaluate.numpy import PRECISION, compared_names, terms_ball
from recordwise.policy.policy import Maximum, Policy, Terms, terms_bands

# The combinations of bands that records can be in, one axis for all band tables of a comparison (T-SIZE, T-REGIONS).
# Tables whose columns determine those of the next coarser one are a chain, as the levels of a code are. The finest
# table that lists a record determines its bands in the coarser ones, and the record is in the lowest band of the
# finer ones. So the cells of each table, with their bands in all coarser ones, are all combinations. Other tables are
# looked up for all combinations of the values that they distinguish. Where those are too many, bands are combined
# freely, which lists more than can occur; a counterexample is then confirmed by its own columns.


OTHER = "\u2022"
"""A letter that continues a prefix to a text that no finer table lists."""
MOST_LOOKUPS = 50_000_000
LOOKUPS_AT_ONCE = 1_000_000
MOST_REGIONS = 100_000
"""A comparison of more parts than this is given up."""
MOST_LISTED = MOST_REGIONS + 1
"""No more combinations are listed. A list that is cut is too long for a comparison, so it is never taken for all of them."""


def combinations(tables: Sequence[BandTable]) -> list[dict[str, Any]]:
    """Return the combinations of bands that records can show.

    With a value of each column for a readable counterexample.
    """
    found: list[list[dict[str, Any]]] = []
    for group in _connected_tables(tables):
        ordered = _order_tables(group)
        found.append(_of_chain(ordered) if _is_chain(ordered) else _band_combinations(ordered) or _freely(ordered))
    choices = islice(product(*found), MOST_LISTED)
    return [{name: value for part in choice for name, value in part.items()} for choice in choices]


def _connected_tables(tables: Sequence[BandTable]) -> list[list[BandTable]]:
    """Tables that look at a common column, together."""
    groups: list[list[BandTable]] = []
    for table in tables:
        names = {column.name for column in table.columns}
        touched = [group for group in groups if any(column.name in names for each in group for column in each.columns)]
        groups = [group for group in groups if group not in touched]
        groups.append([table, *(each for group in touched for each in group)])
    return groups


def _order_tables(tables: list[BandTable]) -> list[BandTable]:
    """Finest first: more columns, then longer prefixes."""
    return sorted(tables, key=lambda table: sum(column.length or 10_000 for column in table.columns), reverse=True)


def _determines(fine: BandTable, column: ConditionColumn) -> int | None:
    """Return the finer table's column that determines a column, or None."""
    return next((at for at, own in enumerate(fine.columns) if own.determines(column)), None)


def _is_chain(tables: list[BandTable]) -> bool:
    """Return whether each table determines the next, with unlisted records."""
    return all(
        fine.columns != coarse.columns and all(_determines(fine, column) is not None for column in coarse.columns)
        for fine, coarse in pairwise(tables)
    )


def _of_chain(tables: list[BandTable]) -> list[dict[str, Any]]:
    found = [_unlisted_record(tables)]
    for at, table in enumerate(tables):
        coarser = tables[at + 1 :]
        bands = np.stack([table.bands, *(_bands_in(table, each) for each in coarser)])
        combined, first = np.unique(bands, axis=1, return_index=True)
        for own, row in zip(combined.T.tolist(), first.tolist()):
            held = {each.key: 0 for each in tables[:at]} | {
                each.key: band for each, band in zip((table, *coarser), own)
            }
            found.append(_unlisted_record(tables) | _values_at(table, row, whole=at == 0) | held)
    return found


def _bands_in(fine: BandTable, coarse: BandTable) -> IntArray:
    """Return the band in a coarser table of each finer cell."""
    own, numbers = fine.numbers_of_cells(), []
    for number, column in enumerate(coarse.columns):
        place = _determines(fine, column)
        assert place is not None
        shown = [_shorten(value, column) for value in fine.values[place]]
        numbers.append(coarse.value_numbers(number, shown)[own[place]])
    return coarse.bands_at(numbers)


def _shorten(value: Cell | None, column: ConditionColumn) -> Cell | None:
    return value[: column.length] if column.length and isinstance(value, str) else value


def _values_at(table: BandTable, row: int, *, whole: bool) -> dict[str, Any]:
    """Return values that put a record into a cell.

    A prefix is continued, unless no finer table could list it.
    """
    shown = {}
    for column, numbers, held in zip(table.columns, table.numbers_of_cells(), table.values):
        value = held[int(numbers[row])]
        shown[column.name] = value if whole else _continue_prefix(value, column)
    return shown


def _unlisted_record(tables: list[BandTable]) -> dict[str, Any]:
    """A record that no table lists."""
    return {column.name: OTHER for table in tables for column in table.columns} | {each.key: 0 for each in tables}


def _band_combinations(tables: list[BandTable]) -> list[dict[str, Any]]:
    """Return the bands of all values that the tables distinguish.

    Nothing where those are too many. A text that no table lists in full is distinguished only by its longest
    listed prefix, so that prefix with another letter after it stands for all such texts.
    """
    columns = [column for table in tables for column in table.columns]
    different = {column.name: _distinct_values(tables, column.name) for column in columns}
    shape, codes = tuple(map(len, different.values())), prod(len(table.edges) for table in tables)
    if any(column.part for column in columns) or prod(shape) * len(tables) > MOST_LOOKUPS or codes >= 2**62:
        return []
    seen: dict[int, int] = {}
    for start in range(0, prod(shape), LOOKUPS_AT_ONCE):
        rows = np.arange(start, min(start + LOOKUPS_AT_ONCE, prod(shape)))
        own = dict(zip(different, np.unravel_index(rows, shape)))
        code = np.zeros(len(rows), np.int64)
        for table in tables:
            numbers = [
                _numbers(table, at, different[each.name])[own[each.name]] for at, each in enumerate(table.columns)
            ]
            code = code * len(table.edges) + table.bands_at(numbers)
        for each, first in zip(*(found.tolist() for found in np.unique(code, return_index=True))):
            seen.setdefault(each, start + first)
    found = []
    for each, row in seen.items():
        bands = np.unravel_index(each, [len(table.edges) for table in tables])
        values = zip(different.items(), np.unravel_index(row, shape))
        shown: dict[str, Any] = {name: held[int(place)] for (name, held), place in values}
        found.append(shown | {table.key: int(band) for table, band in zip(tables, bands)})
    return found


def _distinct_values(tables: list[BandTable], name: str) -> list[Any]:
    """Return one value of a column for each distinguishable case."""
    found: dict[Any, None] = {OTHER: None}
    for table in tables:
        for column, held in zip(table.columns, table.values):
            if column.name == name:
                found |= dict.fromkeys(_continue_prefix(value, column) for value in held)
    return list(found)


def _continue_prefix(value: Cell | None, column: ConditionColumn) -> Cell | None:
    whole = column.length is None or not isinstance(value, str) or len(value) < column.length
    return value if whole else f"{value}{OTHER}"


def _numbers(table: BandTable, at: int, values: Sequence[Any]) -> IntArray:
    return table.value_numbers(at, [_shorten(value, table.columns[at]) for value in values])


def _freely(tables: list[BandTable]) -> list[dict[str, Any]]:
    """Return every choice of bands, whether or not records have it."""
    options = []
    for table in tables:
        bands, first = np.unique(table.bands, return_index=True)
        shown = {band: _values_at(table, row, whole=True) for band, row in zip(bands.tolist(), first.tolist())}
        options.append([{table.key: 0}, *({table.key: band, **values} for band, values in shown.items())])
    return [_merge(tables, choice) for choice in islice(product(*options), MOST_LISTED)]


def _merge(tables: list[BandTable], choice: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found = _unlisted_record(tables)
    for part in choice:
        found |= part
    return found


# The regions.


Range: TypeAlias = tuple[int, int | None]
"""Lattice steps from the first to the last, both included; None: unbounded."""

ANY_AMOUNT: Range = (0, None)


@dataclass(frozen=True, slots=True)
class Region:
    """What conditions see, and the range of every measure."""

    groups: dict[str, Cell | None]
    ranges: dict[str, Range]


def regions(
    terms: Terms, measures: Iterable[Measure], bounds: Mapping[str, Fraction] | None = None
) -> Iterator[Region] | None:
    """Return all regions, or None if there are too many."""
    by_name = {measure.name: measure for measure in measures}
    everywhere = dict.fromkeys(by_name, ANY_AMOUNT)
    given = bounds or {}
    limits = {name: floor(given[name] / measure.step) for name, measure in by_name.items() if name in given}
    sides = axes(terms, by_name)
    if prod(map(len, sides)) > MOST_REGIONS:
        return None
    found = (_within(_join_regions(everywhere, choice), limits) for choice in product(*sides))
    return (region for region in found if region is not None)


Test: TypeAlias = tuple[ConditionColumn, Value | None]
Option: TypeAlias = tuple[Cell | None, Range]
Side: TypeAlias = list[Region]


def axes(terms: Terms, measures: Mapping[str, Measure]) -> list[Side]:
    """Return one axis of regions for each column in a condition.

    And one for the bands of cells. An axis lists parts of regions. A column used both by a condition and by
    bands is combined freely with them, which lists more than can occur.
    """
    tests, compared = _tests(terms), compared_names(terms)
    tables = list(terms_bands(terms).values())
    sides: list[Side] = [[Region(shown, {}) for shown in combinations(tables)]] if tables else []
    for name in sorted({column.name for column, _ in tests}):
        own = [test for test in tests if test[0].name == name]
        options = _options(own, measures.get(name), compared=name in compared)
        sides.append([Region({name: value}, {name: span} if name in measures else {}) for value, span in options])
    return sides


def _join_regions(everywhere: dict[str, Range], choice: tuple[Region, ...]) -> Region:
    groups: dict[str, Cell | None] = {}
    ranges = dict(everywhere)
    for part in choice:
        groups |= part.groups
        ranges |= part.ranges
    return Region(groups, ranges)


def _within(region: Region, limits: dict[str, int]) -> Region | None:
    """Return the region within the limits, or None if it is empty."""
    ranges = dict(region.ranges)
    for name, limit in limits.items():
        first, last = ranges[name]
        if first > limit:
            return None
        ranges[name] = (first, limit if last is None else min(last, limit))
    return Region(region.groups, ranges)


def _tests(terms: Terms) -> set[Test]:
    """Return every column in a condition with its literals."""
    found: set[Test] = set()
    for condition, atom in terms:
        found |= _condition_tests(condition)
        if isinstance(atom, Maximum):
            found |= {test for policy in atom.policies for test in _tests(policy.rho)}
    return found


def _condition_tests(condition: Condition) -> set[Test]:
    match condition:
        case AllOf(parts) | AnyOf(parts):
            return {test for part in parts for test in _condition_tests(part)}
        case Among(column, values):
            return {(column, value) for value in values}
        case Compare(column, _, bound):
            return {(column, bound)}
        case InBand():
            return set()
        case _:
            return {(getattr(condition, "column"), None)}  # noqa: B009


def _options(tests: list[Test], measure: Measure | None, *, compared: bool) -> list[Option]:
    """Return representatives of one column.

    One that is compared with a number (``compared``) has only numbers and NULL.
    """
    if any(column.part for column, _ in tests):
        return [(value, ANY_AMOUNT) for value in [*_date_values(tests), None]]
    literals = {value for _, value in tests if value is not None}
    numbers = sorted(value for value in literals if isinstance(value, Fraction))
    if measure is not None:
        return _amount_options(numbers, measure)
    texts = {value for value in literals if isinstance(value, str)}
    longest = max((column.length for column, _ in tests if column.length), default=0)
    truths = list(Truth) if any(isinstance(value, Truth) for value in literals) else []
    others = [] if compared else [*_text_values(texts, longest), *truths]
    return [(value, ANY_AMOUNT) for value in [*others, *_number_values(numbers), None]]


def _text_values(texts: set[str], longest: int) -> list[Value]:
    """Return the listed texts and one that is in no list.

    With prefixes: every beginning of a listed text, alone and followed by a letter in no list, which is all
    that prefixes can distinguish.
    """
    used = {letter for text in texts for letter in text}
    other = next(chr(code) for code in range(0x2022, 0x110000) if chr(code) not in used)
    if not longest:
        return [*sorted(texts), other]
    nodes = {text[:end] for text in texts for end in range(len(text) + 1)} | {""}
    return [*sorted(nodes | {node + other * (longest + 1) for node in nodes})]


def _date_values(tests: list[Test]) -> list[Cell]:
    """Return dates, and the listed texts that are dates.

    Other texts have no loss where a date part is needed.
    """
    parts = [(column.part, value) for column, value in tests if column.part and isinstance(value, Fraction)]
    texts = {value for column, value in tests if not column.part and isinstance(value, str) and day_of(value)}
    return [*representatives(parts), *sorted(texts)]


def _number_values(numbers: list[Fraction]) -> list[Value]:
    if not numbers:
        return []
    middles = [(left + right) / 2 for left, right in pairwise(numbers)]
    return [numbers[0] - 1, *numbers, *middles, numbers[-1] + 1]


def _amount_options(numbers: list[Fraction], measure: Measure) -> list[Option]:
    """Return ranges of lattice steps between the literals.

    On both sides of zero for a signed measure; representatives carry the sign.
    """
    positive = _spans(sorted({abs(number) for number in numbers if number >= 0}), measure)
    negative = _spans(sorted({abs(number) for number in numbers if number <= 0}), measure)
    options: list[Option] = [(measure.step * span[0], span) for span in positive]
    if not measure.signed:
        return options
    return options + [
        (-measure.step * max(span[0], 1), (max(span[0], 1), span[1])) for span in negative if span[1] != 0
    ]


def _spans(bounds: list[Fraction], measure: Measure) -> list[Range]:
    spans: list[Range] = []
    start = 0
    for bound in bounds:
        steps = bound / measure.step
        if start <= ceil(steps) - 1:
            spans.append((start, ceil(steps) - 1))
        if steps.denominator == 1:
            spans.append((int(steps), int(steps)))
        start = max(start, floor(steps) + 1)
    return [*spans, (start, None)]


def minimum(policy: Policy) -> float:
    """Return the smallest loss over all regions."""
    with working_precision(PRECISION):
        parts = regions(policy.rho, policy.measures())
        if parts is None:
            raise ParameterError(
                parameter="policy", problem="has conditions with too many combinations to find its minimum"
            )
        values = [value for region in parts if (value := _least_in(policy, region)) is not None]
    return min(values, default=float("inf"))


def _least_in(policy: Policy, region: Region) -> float | None:
    amounts = {m.name: ball(m.step * region.ranges[m.name][0]) for m in policy.measures()}
    try:
        return arb_float_upper(terms_ball(policy.rho, region.groups, amounts))
    except RecordError:
        return None
