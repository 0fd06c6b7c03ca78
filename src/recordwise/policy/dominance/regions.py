"""The parts of the universe of records on which every condition of a policy is constant.

A region fixes what conditions see (a representative value for each column) and leaves each measure a range of lattice steps. The
representatives are exhaustive: whatever a record holds, some region has the same truth value in every condition and contains
its amounts (T-REGIONS, docs/theory/dominance.md).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from math import ceil, floor, prod
from typing import TypeAlias

from recordwise.errors import ParameterError, RecordError
from recordwise.exact.numbers import arb_float_upper, ball, working_precision
from recordwise.policy.conditions import AllOf, Among, AnyOf, Compare, Condition, ConditionColumn, InBand
from recordwise.policy.dates import day_of, representatives
from recordwise.policy.dominance.bands import MOST_REGIONS, combinations
from recordwise.policy.evaluate.numpy import PRECISION, compared_names, terms_ball
from recordwise.policy.literals import Cell, Truth, Value
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Maximum, Policy, Terms, terms_bands

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
    """All regions, or None if there are too many. ``bounds``: no amount of a measure is larger than this."""
    by_name = {measure.name: measure for measure in measures}
    everywhere = dict.fromkeys(by_name, ANY_AMOUNT)
    given = bounds or {}
    limits = {name: floor(given[name] / measure.step) for name, measure in by_name.items() if name in given}
    sides = axes(terms, by_name)
    if prod(map(len, sides)) > MOST_REGIONS:
        return None
    found = (_within(_joined(everywhere, choice), limits) for choice in product(*sides))
    return (region for region in found if region is not None)


Test: TypeAlias = tuple[ConditionColumn, Value | None]
Option: TypeAlias = tuple[Cell | None, Range]
Side: TypeAlias = list[Region]


def axes(terms: Terms, measures: Mapping[str, Measure]) -> list[Side]:
    """What a record can show: one axis for each column that a condition looks at, and one for the bands of cells.

    An axis lists parts of regions. A column that a condition looks at and that bands are read from too is combined freely with
    them, which lists more than can occur.
    """
    tests, held = _tests(terms), compared_names(terms)
    tables = list(terms_bands(terms).values())
    sides: list[Side] = [[Region(shown, {}) for shown in combinations(tables)]] if tables else []
    for name in sorted({column.name for column, _ in tests}):
        own = [test for test in tests if test[0].name == name]
        options = _options(own, measures.get(name), held=name in held)
        sides.append([Region({name: value}, {name: span} if name in measures else {}) for value, span in options])
    return sides


def _joined(everywhere: dict[str, Range], choice: tuple[Region, ...]) -> Region:
    groups: dict[str, Cell | None] = {}
    ranges = dict(everywhere)
    for part in choice:
        groups |= part.groups
        ranges |= part.ranges
    return Region(groups, ranges)


def _within(region: Region, limits: dict[str, int]) -> Region | None:
    """The region with its ranges ended at the limits; None if nothing is left of one."""
    ranges = dict(region.ranges)
    for name, limit in limits.items():
        first, last = ranges[name]
        if first > limit:
            return None
        ranges[name] = (first, limit if last is None else min(last, limit))
    return Region(region.groups, ranges)


def _tests(terms: Terms) -> set[Test]:
    """Every column used in a condition, with every literal it is compared with."""
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


def _options(tests: list[Test], measure: Measure | None, *, held: bool) -> list[Option]:
    """Representatives of one column; one that is compared with a number (``held``) has only numbers and NULL."""
    if any(column.part for column, _ in tests):
        return [(value, ANY_AMOUNT) for value in [*_date_values(tests), None]]
    literals = {value for _, value in tests if value is not None}
    numbers = sorted(value for value in literals if isinstance(value, Fraction))
    if measure is not None:
        return _amount_options(numbers, measure)
    texts = {value for value in literals if isinstance(value, str)}
    longest = max((column.length for column, _ in tests if column.length), default=0)
    truths = list(Truth) if any(isinstance(value, Truth) for value in literals) else []
    others = [] if held else [*_text_values(texts, longest), *truths]
    return [(value, ANY_AMOUNT) for value in [*others, *_number_values(numbers), None]]


def _text_values(texts: set[str], longest: int) -> list[Value]:
    """The listed texts and one that is in no list. With prefixes: every beginning of a listed text, alone and continued by a
    letter in no list, which is all that prefixes can distinguish."""
    used = {letter for text in texts for letter in text}
    other = next(chr(code) for code in range(0x2022, 0x110000) if chr(code) not in used)
    if not longest:
        return [*sorted(texts), other]
    nodes = {text[:end] for text in texts for end in range(len(text) + 1)} | {""}
    return [*sorted(nodes | {node + other * (longest + 1) for node in nodes})]


def _date_values(tests: list[Test]) -> list[Cell]:
    """Dates, and the texts in lists that are one: a text that is no date has no loss where a part of it is asked for."""
    parts = [(column.part, value) for column, value in tests if column.part and isinstance(value, Fraction)]
    texts = {value for column, value in tests if not column.part and isinstance(value, str) and day_of(value)}
    return [*representatives(parts), *sorted(texts)]


def _number_values(numbers: list[Fraction]) -> list[Value]:
    if not numbers:
        return []
    middles = [(left + right) / 2 for left, right in pairwise(numbers)]
    return [numbers[0] - 1, *numbers, *middles, numbers[-1] + 1]


def _amount_options(numbers: list[Fraction], measure: Measure) -> list[Option]:
    """Ranges of lattice steps between the literals, on both sides of zero for a signed measure; representatives carry the sign."""
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
    """The smallest loss over all regions; every atom is smallest where the amounts are."""
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
