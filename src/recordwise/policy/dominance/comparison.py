"""One comparison in one region: what is spent, what the budget offers, and the measures that decide.

Every atom of several measures is the largest of its parts, one part for each measure (T-PARTS, docs/theory/dominance.md). What
follows sees parts only, functions of one measure: a new atom needs nothing here as long as that holds.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any, cast

from recordwise.exact.numbers import ball, midpoint
from recordwise.policy.atoms import Atom
from recordwise.policy.dominance.curves import curve
from recordwise.policy.dominance.regions import Range, Region
from recordwise.policy.evaluate.evaluator import BALLS
from recordwise.policy.measure import Measure

Sum = dict[Atom, Fraction]
"""Coefficient of each atom, none of them a maximum."""
Part = tuple[Measure, Atom]
MOST_OPENINGS = 64
"""How many ways of choosing the largest part of every joint gain are looked at one by one."""


class DoubtError(Exception):
    """Neither proved nor refuted; carries the reason."""


@dataclass(frozen=True, slots=True)
class Term:
    """coefficient * max(floor, the parts): an atom as a function of the measures that decide."""

    coefficient: Fraction
    floor: Fraction
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Is the sum of the gains at most the largest of the budgets wherever the measures are in their ranges?"""

    gains: tuple[Term, ...]
    budgets: tuple[tuple[Term, ...], ...]
    spans: dict[Measure, Range]

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures that a gain depends on; all others are best at their lower end."""
        return tuple(sorted(self.spans))

    def marks(self, measure: Measure) -> list[int]:
        """The piece lengths of a measure in steps, longest first: where its staircases rise."""
        terms = [*self.gains, *(term for budget in self.budgets for term in budget)]
        atoms = [atom for term in terms for own, atom in term.parts if own == measure]
        lengths = {int(at / measure.step) for atom in atoms for _, at in getattr(atom, "at", ())}
        return sorted(lengths, reverse=True)


def comparison(gain: Sum, budgets: list[Sum], region: Region) -> Comparison:
    """The comparison of a sum of gains with the largest of several sums of costs, in a region."""
    wanted = {measure for atom in gain for measure in atom.measures()}
    gains = tuple(_gain(atom, coefficient) for atom, coefficient in gain.items())
    costs = tuple(tuple(_cost(atom, c, wanted, region) for atom, c in budget.items()) for budget in budgets)
    spans = {measure: _useful(measure, gains, region.ranges[measure.name]) for measure in wanted}
    return Comparison(gains, costs, spans)


def _gain(atom: Atom, coefficient: Fraction) -> Term:
    if not atom.measures():
        return Term(coefficient, constant_upper(atom), ())
    parts = parts_of(atom)
    if parts is None:
        raise DoubtError(f"a loss of several measures at once ({atom.kind}) can only be covered by the same term")
    return Term(coefficient, Fraction(0), parts)


def constant_upper(atom: Atom) -> Fraction:
    """Not below an atom that depends on no measure."""
    exact = atom.exactly({})
    return midpoint(atom.value(BALLS, {}).upper()) if exact is None else exact


def _cost(atom: Atom, coefficient: Fraction, wanted: set[Measure], region: Region) -> Term:
    parts = tuple(part for part in parts_of(atom) or () if part[0] in wanted)
    return Term(coefficient, _least(atom, region), parts)


def _useful(measure: Measure, gains: tuple[Term, ...], span: Range) -> Range:
    """Beyond the point from which on no gain rises, a larger amount only costs more: the range may end there."""
    ends = [atom.constant_from() for gain in gains for own, atom in gain.parts if own == measure]
    if any(end is None for end in ends):
        return span
    last = max([span[0], *(end for end in ends if end is not None)])
    return (span[0], last if span[1] is None else min(last, span[1]))


def parts_of(atom: Atom) -> tuple[Part, ...] | None:
    """The parts whose largest the atom is; None for an atom that is no such maximum."""
    measures = atom.measures()
    if len(measures) == 1:
        return ((measures[0], atom),)
    at = getattr(atom, "at", None)
    if at is None:
        return None
    return tuple((item[0], cast(Atom, replace(cast(Any, atom), at=(item,)))) for item in at)


def _least(atom: Atom, region: Region) -> Fraction:
    """Not above the atom anywhere in the region: its value at the lower end of every range."""
    lowest = {measure.name: measure.step * region.ranges[measure.name][0] for measure in atom.measures()}
    exact = atom.exactly(lowest)
    if exact is not None:
        return exact
    return max(Fraction(0), midpoint(atom.value(BALLS, {name: ball(value) for name, value in lowest.items()}).lower()))


def openings(gains: tuple[Term, ...], spans: dict[Measure, Range]) -> Iterator[tuple[Term, ...]]:
    """The gains with one part chosen in each joint term: their sum is the largest of these. Where that would be too many, one sum
    that is not below any of them: all parts together, less what the others are at least."""
    if prod(max(1, len(gain.parts)) for gain in gains) > MOST_OPENINGS:
        yield tuple(term for gain in gains for term in _added(gain, spans))
        return
    choices = [[replace(gain, parts=(part,)) for part in gain.parts] or [gain] for gain in gains]
    yield from product(*choices)


def _added(gain: Term, spans: dict[Measure, Range]) -> Iterator[Term]:
    for part in gain.parts:
        yield replace(gain, parts=(part,))
    if not gain.parts:
        yield gain
    elif len(gain.parts) > 1:
        lowest = min(curve(measure, atom).bounds(spans[measure][0])[0] for measure, atom in gain.parts)
        yield Term(-gain.coefficient * (len(gain.parts) - 1), lowest, ())
