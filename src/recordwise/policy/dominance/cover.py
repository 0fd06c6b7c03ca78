"""Terms of a policy that terms of a budget are proved to pay for, whatever the record (T-COVER, docs/theory/dominance.md)."""

from fractions import Fraction
from functools import lru_cache
from math import ceil

from recordwise.exact.functions import Function, Variable, x
from recordwise.exact.functions import Sum as Terms
from recordwise.exact.numbers import ball
from recordwise.policy.atoms import Atom, ClampedSquare, One, PieceCount, Pieces, PurePieces, SelectionDelta, Square
from recordwise.policy.concave_atoms import Additive, AdditiveTable, CertifiedSum, LaplaceSum
from recordwise.policy.dominance.comparison import Sum
from recordwise.policy.evaluate.evaluator import BALLS, Steps
from recordwise.policy.measure import Measure


def cover(gain: Sum, cost: Sum) -> tuple[Sum, Sum]:
    """Pay for each gain from costs that are proved to be at least a multiple of it; what is left of both.

    Gains that few costs can pay for come first, and are paid by costs that can pay for few others.
    """
    gains, costs = list(gain.values()), list(cost.values())
    ratios = [[ratio_upper(atom, payer) for payer in cost] for atom in gain]
    uses = [sum(row[payer] is not None for row in ratios) for payer in range(len(costs))]
    payers = [[(uses[p], ratio, p) for p, ratio in enumerate(row) if ratio is not None] for row in ratios]
    for own in sorted(range(len(gains)), key=lambda own: len(payers[own])):
        for _, ratio, payer in sorted(payers[own]):
            paid = min(gains[own], costs[payer] / ratio)
            gains[own] -= paid
            costs[payer] -= paid * ratio
    return {a: c for a, c in zip(gain, gains) if c}, {a: c for a, c in zip(cost, costs) if c}


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
        case ClampedSquare(), _:
            return _clamped_ratio(atom, payer)
        case PurePieces(at, _, rho), Pieces(at=finer):
            ratio = _pieces_ratio(dict(at), dict(finer))
            return ratio and rho * ratio**2
        case PurePieces(at, epsilon), PieceCount(at=finer):
            ratio = _pieces_ratio(dict(at), dict(finer))
            return ratio and epsilon * ratio
        case Pieces(at), Pieces(at=finer):
            ratio = _pieces_ratio(dict(at), dict(finer))
            return ratio and ratio**2
        case PieceCount(at), Pieces(at=finer) | PieceCount(at=finer):
            return _pieces_ratio(dict(at), dict(finer))
        case Additive() | AdditiveTable(), PieceCount(at):
            return _slope_ratio(atom, dict(at))
        case LaplaceSum(measure, _, scale), PieceCount(at):
            return next((threshold / scale for other, threshold in at if other == measure), None)
        case LaplaceSum(measure, _, scale), Additive(other, same) if (measure, x / scale) == (other, same):
            return Fraction(1)
        case Additive(measure, function, "tanh"), Additive(other, same, "pure") if (measure, function) == (other, same):
            return Fraction(1)
        case AdditiveTable(measure, function, steps), Additive(other, same) if (measure, function) == (other, same):
            return Fraction(1) if _below_tanh(measure, function, steps, None) else None
        case CertifiedSum(measure, function, knots, less), Additive(other, same) if (measure, function) == (
            other,
            same,
        ):
            return Fraction(1) if _below_tanh(measure, function, knots, less) else None
        case _:
            return None


def _clamped_ratio(atom: ClampedSquare, payer: Atom) -> Fraction | None:
    match payer:
        case One():
            return atom.to**2
        case Square(measure) if measure == atom.measure:
            return Fraction(1)
        case ClampedSquare(measure, further) if measure == atom.measure:
            return max(Fraction(1), atom.to / further) ** 2
        case Pieces(at):
            return next((min(threshold, atom.to) ** 2 for other, threshold in at if other == atom.measure), atom.to**2)
        case PieceCount():
            return atom.to**2
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
    linear = isinstance(atom, Additive) or _below_tanh(atom.measure, atom.function, atom.steps, None)
    return slope * at[atom.measure] if linear and atom.measure in at else None


@lru_cache(maxsize=64)
def _below_tanh(measure: Measure, function: Function, steps: Steps, less: Fraction | None) -> bool:
    """Whether each level is below eps*tanh(eps/2) from the entry before on, and what holds beyond the last one is, too."""
    simple = Additive(measure, function, "tanh")
    before = 0
    for count, level in steps:
        smallest = simple.value(BALLS, {measure.name: ball(measure.step * (before + 1))})
        if not ball(level) <= smallest:
            return False
        before = count
    # Beyond, eps - less stays below eps*tanh(eps/2) = eps - 2 eps/(e^eps + 1): the last term falls from eps = 2 on.
    rise = function.increase(BALLS, ball(measure.step * before))
    return less is None or bool(rise >= 2 and 2 * rise / (rise.exp() + 1) <= ball(less))
