"""Upper bounds of a difference of policies in one region: terms paid for by terms proved larger, the rest measure by measure."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil

from recordwise.exact.functions import Sum as Terms
from recordwise.exact.functions import Variable
from recordwise.exact.numbers import ball, midpoint
from recordwise.policy.atoms import Atom, One, PieceCount, Pieces, SelectionDelta, Square
from recordwise.policy.concave_atoms import Additive, AdditiveTable
from recordwise.policy.dominance.regions import Region
from recordwise.policy.dominance.supremum import supremum
from recordwise.policy.evaluate.evaluator import BALLS
from recordwise.policy.measure import Measure

Sum = dict[Atom, Fraction]
"""Coefficient of each atom, none of them a maximum."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Whether the difference is certainly at most 0 in the region, and the point where it looked largest."""

    certain: bool
    point: dict[str, Fraction]


def cover(gain: Sum, cost: Sum) -> tuple[Sum, Sum]:
    """Pay for each gain from costs that are proved to be at least a multiple of it; what is left of both."""
    gain, cost = dict(gain), dict(cost)
    for atom in list(gain):
        for payer in sorted(cost, key=lambda payer: payer != atom):
            ratio = ratio_upper(atom, payer)
            if ratio is None or not cost[payer]:
                continue
            paid = min(gain[atom], cost[payer] / ratio)
            gain[atom] -= paid
            cost[payer] -= paid * ratio
    return {a: c for a, c in gain.items() if c}, {a: c for a, c in cost.items() if c}


def ratio_upper(atom: Atom, payer: Atom) -> Fraction | None:
    """A number k with atom <= k * payer for every record, where one is proved (T-COVER); None otherwise."""
    if atom == payer:
        return Fraction(1)
    match atom, payer:
        case One(), Pieces() | PieceCount():
            return Fraction(1)
        case One(), SelectionDelta(_, steps):
            return 1 / steps[0][1] if steps[0][1] else None
        case SelectionDelta(), One():
            return Fraction(1)
        case Square(measure), Pieces(at):
            return next((threshold**2 for other, threshold in at if other == measure), None)
        case Pieces(at), Pieces(at=finer):
            ratio = _pieces_ratio(dict(at), dict(finer))
            return ratio and ratio**2
        case PieceCount(at), Pieces(at=finer) | PieceCount(at=finer):
            return _pieces_ratio(dict(at), dict(finer))
        case Additive() | AdditiveTable(), PieceCount(at):
            return _slope_ratio(atom, dict(at))
        case Additive(measure, function, "tanh"), Additive(other, same, "pure") if (measure, function) == (other, same):
            return Fraction(1)
        case AdditiveTable(measure, function), Additive(other, same) if (measure, function) == (other, same):
            return Fraction(1) if _table_below_tanh(atom) else None
        case _:
            return None


def _pieces_ratio(at: dict[Measure, Fraction], finer: dict[Measure, Fraction]) -> Fraction | None:
    """ceil(x/S) <= ceil(T/S) * ceil(x/T), measure by measure."""
    if not set(at) <= set(finer):
        return None
    return Fraction(max((ceil(finer[measure] / at[measure]) for measure in at), default=1))


def _slope_ratio(atom: Additive | AdditiveTable, at: dict[Measure, Fraction]) -> Fraction | None:
    """A loss of at most w x, as of Laplace noise, is at most w T ceil(x/T)."""
    match atom.function:
        case Variable():
            slope = Fraction(1)
        case Terms(((slope, Variable()),)):
            pass
        case _:
            return None
    linear = isinstance(atom, Additive) or _table_below_tanh(atom)
    return slope * at[atom.measure] if linear and atom.measure in at else None


@lru_cache(maxsize=64)
def _table_below_tanh(table: AdditiveTable) -> bool:
    simple = Additive(table.measure, table.function, "tanh")
    before = 0
    for count, level in table.steps:
        smallest = simple.value(BALLS, {table.measure.name: ball(table.measure.step * (before + 1))})
        if not ball(level) <= smallest:
            return False
        before = count
    return True


def separable_bound(gain: Sum, cost: Sum, region: Region, measures: list[Measure], deadline: float) -> Bound:
    """Whether the sum of the largest values, measure by measure, is at most 0; and where they are attained."""
    wanted = {measure for atom in gain for measure in atom.measures()}
    alone, constant = _separate(gain, cost, wanted, region)
    upper: Fraction | None = constant
    point = {measure.name: measure.step * region.ranges[measure.name][0] for measure in measures}
    for measure, net in alone.items():
        enough = -constant if len(alone) == 1 else None
        found = supremum(net, measure, region.ranges[measure.name], enough=enough, deadline=deadline)
        upper = None if upper is None or found.upper is None else upper + found.upper
        point[measure.name] = measure.step * found.steps
    return Bound(upper is not None and upper <= 0, point)


def _separate(
    gain: Sum, cost: Sum, wanted: set[Measure], region: Region
) -> tuple[dict[Measure, dict[Atom, Fraction]], Fraction]:
    """Net coefficients by measure, and the constant. Joint pieces are bounded by sums: at most sum(m_i**2) - (k - 1) as a gain,
    at least any weighted mean of the m_i**2 as a cost; their number likewise, without the squares."""
    alone: dict[Measure, dict[Atom, Fraction]] = {}
    constant = Fraction(0)
    for atoms, sign in ((gain, 1), (cost, -1)):
        for atom, coefficient in atoms.items():
            named = atom.measures() if sign > 0 else tuple(m for m in atom.measures() if m in wanted)
            if not named:
                constant += sign * coefficient * _least(atom, region)
                continue
            if sign > 0 and isinstance(atom, (Pieces, PieceCount)):
                constant -= coefficient * (len(named) - 1)
            for measure in named:
                share = coefficient if sign > 0 else coefficient / len(named)
                part = _only(atom, measure)
                row = alone.setdefault(measure, {})
                row[part] = row.get(part, Fraction(0)) + sign * share
    netted = {measure: {atom: net for atom, net in row.items() if net} for measure, row in alone.items()}
    return {measure: row for measure, row in netted.items() if row}, constant


def _only(atom: Atom, measure: Measure) -> Atom:
    """A joint atom looked at through one of its measures."""
    match atom:
        case Pieces(at):
            return Pieces(tuple(item for item in at if item[0] == measure))
        case PieceCount(at):
            return PieceCount(tuple(item for item in at if item[0] == measure))
        case SelectionDelta(at, steps):
            return SelectionDelta(tuple(item for item in at if item[0] == measure), steps)
        case _:
            return atom


def _least(atom: Atom, region: Region) -> Fraction:
    """Not above the atom anywhere in the region: its value at the lower end of every range."""
    lowest = {measure.name: measure.step * region.ranges[measure.name][0] for measure in atom.measures()}
    exact = atom.exactly(lowest)
    if exact is not None:
        return exact
    return max(Fraction(0), midpoint(atom.value(BALLS, {name: ball(value) for name, value in lowest.items()}).lower()))
