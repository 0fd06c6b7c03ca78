"""The tight loss of additive lattice noise, certified, and its published table.

The loss is computed from the law that is drawn (T-CERTIFIED, docs/theory/certified-loss.md). With L(k) = f(|k - n|) - f(|k|) the
log-ratio of a law p and itself shifted by n, reflection about n/2 turns the Renyi divergence into a sum of nonnegative terms,

    exp((a-1) D_a) - 1  =  sum over k < n/2 of  p(k) phi(L(k)),    phi(l) = (exp((a-1) l) - 1) (1 - exp(-a l)),

so that small losses lose no digits. Between two nodes p is below its chord, because it is convex, and phi(L(k)) below its own chord
but for two corrections that shrink with the square of the distance; the loss over all orders follows from finitely many because
(a-1) D_a is convex in the order a. Many shifts are certified at once.
"""

import hashlib
import json
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from flint import arb, arb_series

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray, NumpyArithmetic
from recordwise.exact.functions import Function, Log, Power, Sum, Variable
from recordwise.exact.numbers import arb_float_upper, fraction_text, working_length, working_precision
from recordwise.mechanisms.inverses import slope
from recordwise.noise.laws import LatticeLaw
from recordwise.noise.probabilities import SeriesArithmetic

NUMPY = NumpyArithmetic()
BoolArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
FIRST_ORDER = 1 + 1e-4
ORDER_RATIO = 1.1**16
"""Of the distances of successive orders from 1, to begin with."""
HALVINGS = 6
"""How often an interval of orders may be halved; its ratio is then 1.1**(1/4)."""
NEAR = 1 + 3e-4
"""Intervals whose bound is this close to the largest loss found at an order are not halved."""
SINGLE_POINTS = 60
"""Nodes up to here are neighbors: nothing lies between them."""
NODE_RATIO = 1.05
DEEP = 45.0
"""Nodes reach to where the weight has fallen by this exponent; what lies beyond is one block, its mass certified."""
FLOAT_ERROR = 2.0**-42
"""The relative error allowed for f in float64 (T-OUTWARD); a weight exp(-f), f <= 45, is then off by less than 2e-11."""
SLACK = 1 + 1e-10
BEND_RATIO = 1.1
FURTHEST = 2.0**80
LARGEST_EXPONENT = 600.0
"""exp of more overflows; the largest exponent is then taken out first."""


@dataclass(frozen=True, slots=True, eq=False)
class Bends:
    """The distance of f' from convex."""

    edges: FloatArray
    upto: FloatArray
    """Bounds the integral of the negative part from the first edge to each."""
    largest: FloatArray
    """Bounds the negative part from each edge on, up to the last edge."""

    @classmethod
    def of(cls, exponent: Function) -> "Bends":
        count = math.ceil(math.log(FURTHEST / SINGLE_POINTS) / math.log(BEND_RATIO))
        edges = np.asarray(SINGLE_POINTS * BEND_RATIO ** np.arange(count + 1), np.float64)
        bent = np.zeros(count)
        if not _slope_is_convex(exponent):
            bent = SLACK * np.array([_bend(exponent, low, high) for low, high in pairwise(edges.tolist())])
        upto = SLACK * np.append(0.0, np.cumsum(bent * np.diff(edges)))
        return cls(edges, upto, np.append(np.maximum.accumulate(bent[::-1])[::-1], np.inf))

    def within(self, low: FloatArray, high: FloatArray, window: FloatArray) -> FloatArray:
        """Bound the integral over windows in [low, high].

        Infinite beyond the last edge.
        """
        after = np.minimum(np.searchsorted(self.edges, high, side="left"), len(self.edges) - 1)
        before = np.maximum(np.searchsorted(self.edges, low, side="right") - 1, 0)
        part = np.minimum(self.upto[after] - self.upto[before], window * self.largest[before])
        return np.asarray(np.where(high > self.edges[-1], np.inf, np.maximum(part, 0.0)))


def _slope_is_convex(exponent: Function) -> bool:
    """Return whether a rule certifies that the slope is convex.

    Roots, logarithms, sums and compositions have completely monotone slopes.
    """
    match exponent:
        case Variable():
            return True
        case Sum(terms):
            return all(_slope_is_convex(part) for _, part in terms)
        case Power(base, degree):
            return degree <= 1 and _slope_is_convex(base)
        case Log(argument):
            return _slope_is_convex(argument)
        case _:
            return False


def _bend(exponent: Function, low: float, high: float) -> float:
    """Return the largest -f''' on an interval, at least 0."""
    with working_precision(64), working_length(4):
        series = exponent.value(SeriesArithmetic(), arb_series([arb(low).union(arb(high)), 1]))
        return max(0.0, 6 * arb_float_upper(-series[3]))


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """The integers at which a law is summed.

    These are 0 = s_0 < s_1 < ..., all of the first ones and ever fewer; the last stands for everything from it
    on.
    """

    points: FloatArray
    mass: FloatArray
    """Upper bounds of P(s_i <= Z < s_(i+1)); of the last, P(Z >= s)."""
    later: FloatArray
    """The part of that mass which counts at the next node, where p and a value are both replaced by their chords."""
    bends: Bends

    @classmethod
    def of(cls, law: LatticeLaw, exponent: Function, *, ratio: float = NODE_RATIO) -> "Nodes":
        top = _where_risen(exponent, DEEP)
        growing = np.geomspace(SINGLE_POINTS, top, 2 + int(math.log(top / SINGLE_POINTS) / math.log(ratio)))
        points = np.unique(np.floor(np.concatenate([np.arange(SINGLE_POINTS), growing])))
        here = _weight(exponent, points) * float(law.pmf(0))
        count, fall = np.diff(points), np.diff(here)
        half, square = (count - 1) / (2 * count), (count - 1) * (2 * count - 1) / (6 * count**2)
        mass = count * (here[:-1] + half * fall)
        later = count * (half * here[:-1] + square * fall)
        beyond = float(law.sf_upper(int(points[-1])))
        return cls(points, SLACK * np.append(mass, beyond), SLACK * np.append(later, 0.0), Bends.of(exponent))


def _weight(exponent: Function, k: FloatArray) -> FloatArray:
    """exp(f(0) - f(k))."""
    return np.exp(-exponent.increase(NUMPY, k))


def _where_risen(exponent: Function, rise: float) -> float:
    """Return approximately where f has risen by ``rise``."""
    reach = 1.01 ** np.arange(math.log(2 * SINGLE_POINTS, 1.01), math.log(2.0**61, 1.01))
    place = int(np.searchsorted(exponent.increase(NUMPY, reach), rise))
    return float(reach[min(place, len(reach) - 1)])


def certified_loss(nodes: Nodes, exponent: Function, shift: int) -> float:
    """Return an upper bound of a law's loss at a shift.

    Within about 0.2 % of sup over orders of D_a/a for the law against itself shifted by whole lattice steps.
    """
    return float(certified_losses(nodes, exponent, [shift])[0]) if shift else 0.0


def certified_losses(nodes: Nodes, exponent: Function, shifts: list[int]) -> FloatArray:
    """Return certified losses of several shifts of similar size."""
    n = np.array([float(shift) for shift in shifts])
    weight, loss = _half_line(nodes, exponent, n)
    epsilon = exponent.increase(NUMPY, n) * SLACK
    orders, cumulants = _refine_orders(weight, loss, _orders(epsilon, weight, loss))
    return np.asarray(np.maximum(_between(orders, cumulants), epsilon / orders[-1]) * SLACK)


def _half_line(nodes: Nodes, exponent: Function, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return weights and log-ratios that bound the sum below n/2.

    For each shift, over all of the negative side, 0 included, and the positive integers below n/2. The node
    nearest to n/2 counts in full.
    """
    left = _side(nodes, 0, *_negative_side(nodes, exponent, n))
    right = _side(nodes, 1, *_positive_side(nodes, exponent, n))
    return np.concatenate([left[0], right[0]], axis=1), np.concatenate([left[1], right[1]], axis=1)


def _negative_side(nodes: Nodes, exponent: Function, n: FloatArray) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Return log-ratios, included nodes and nonconvexity of the negative side."""
    s = nodes.points
    bent = nodes.bends.within(s[:-1], s[1:] + n[:, None], n[:, None])
    return _rise(exponent, s, s + n[:, None]), np.ones((len(n), len(s)), np.bool_), bent


def _positive_side(nodes: Nodes, exponent: Function, n: FloatArray) -> tuple[FloatArray, BoolArray, FloatArray]:
    s = nodes.points[1 : int(np.searchsorted(nodes.points, n.max() / 2))]
    inside = 2 * s < n[:, None]
    far = np.maximum(n[:, None] - s, s)
    return np.where(inside, _rise(exponent, s, far), 0.0), inside, nodes.bends.within(s[:-1], far[:, :-1], n[:, None])


def _side(
    nodes: Nodes, first: int, loss: FloatArray, inside: BoolArray, bent: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return weights and log-ratios from ``first`` on (T-CERTIFIED (4))."""
    part = slice(first, first + loss.shape[1])
    mass, later = nodes.mass[part], nodes.later[part]
    both = inside[:, :-1] & inside[:, 1:]
    width = np.diff(nodes.points[part])
    wide = both & (width > 1)
    bow = np.zeros_like(loss)
    bow[:, :-1] = np.where(wide, width**2 / 8 * bent, 0.0)
    bow[:, 1:] = np.maximum(bow[:, 1:], bow[:, :-1].copy())
    falling = np.minimum.accumulate(loss, axis=1) + SLACK * bow
    loss = np.where(inside, np.maximum.accumulate(falling[:, ::-1], axis=1)[:, ::-1], 0.0)
    # The first one is the largest.
    if not np.all(np.isfinite(loss[:, :1])):
        raise ParameterError(
            parameter="record",
            problem="is too large beside the noise for its loss to be computed",
            advice="Calibrate at a smaller record, or take more noise.",
        )
    weight = np.where(inside, mass, 0.0)
    weight[:, :-1] -= np.where(both, later[:-1], 0.0)
    weight[:, 1:] += np.where(both, later[:-1], 0.0)
    return weight + _concave_part(loss, np.where(wide, mass[:-1], 0.0)), loss


def _concave_part(loss: FloatArray, mass: FloatArray) -> FloatArray:
    """Return the weight added to nodes where phi exceeds its chord.

    The same at every order.
    """
    extra = np.zeros_like(loss)
    fall, present = np.diff(loss, axis=1), -np.expm1(-loss[:, :-1])
    bend = fall**2 / 8 * np.exp(-loss[:, 1:]) * mass
    np.divide(SLACK * bend, present, out=extra[:, :-1], where=present > 0)
    return extra


def _rise(exponent: Function, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return an upper bound on f(high) - f(low).

    The difference, or the tangent at ``low`` if rounding would dominate.
    """
    here, there = exponent.increase(NUMPY, low), exponent.increase(NUMPY, high)
    difference = there - here + FLOAT_ERROR * (here + there)
    return np.minimum(difference, (high - low) * slope(exponent, low) * SLACK)


def _refine_orders(weight: FloatArray, loss: FloatArray, orders: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Add orders where they matter to one of the shifts.

    Any orders give a valid bound; closer ones give a smaller one.
    """
    cumulants = _cumulants(weight, loss, orders)
    for _ in range(HALVINGS):
        reached = NEAR * _at_orders(orders, cumulants)
        wide = np.flatnonzero(np.any(_at_chords(orders, cumulants) > reached[:, None], axis=0))
        if not len(wide):
            break
        middle = 1 + np.sqrt((orders[wide] - 1) * (orders[wide + 1] - 1))
        cumulants = np.insert(cumulants, wide + 1, _cumulants(weight, loss, middle), axis=1)
        orders = np.insert(orders, wide + 1, middle)
    return orders, cumulants


def _cumulants(weight: FloatArray, loss: FloatArray, orders: FloatArray) -> FloatArray:
    """Upper bounds of (a-1) D_a, a row for each shift."""
    present = -np.expm1(-loss)
    columns = [_cumulant(weight, loss, present, float(order - 1)) for order in orders]
    return np.stack(columns, axis=1) * SLACK


def _cumulant(weight: FloatArray, loss: FloatArray, present: FloatArray, less: float) -> FloatArray:
    """Return the cumulant of the log-ratios.

    With e = exp(less * l) - 1 and r = 1 - exp(-l), phi is e (e + r)/(1 + e): one exponential and no
    cancellation.
    """
    exponents = less * loss
    top = exponents.max(axis=1)
    if top.max() < LARGEST_EXPONENT:
        risen = np.expm1(exponents, out=exponents)
        part = (risen + present) / (1 + risen)
        return np.asarray(np.log1p(np.einsum("ij,ij,ij->i", weight, risen, part)))
    part = -np.expm1(-exponents)
    grown = np.exp(exponents - top[:, None]) * part * (part + (1 - part) * present)
    with np.errstate(divide="ignore"):
        return np.asarray(np.logaddexp(0.0, np.log(np.sum(weight * grown, axis=1)) + top))


def _between(orders: FloatArray, cumulants: FloatArray) -> FloatArray:
    """Return an upper bound of D_a/a up to the last order."""
    return np.asarray(np.maximum(_at_orders(orders, cumulants), _at_chords(orders, cumulants).max(axis=-1)))


def _at_orders(orders: FloatArray, cumulants: FloatArray) -> FloatArray:
    """Return the largest D_a/a at the orders and below."""
    below = cumulants[..., 0] / (orders[0] - 1)
    return np.asarray(np.maximum(below, (cumulants / (orders * (orders - 1))).max(axis=-1)))


def _at_chords(orders: FloatArray, cumulants: FloatArray) -> FloatArray:
    """An upper bound on D_a/a between each two orders.

    K(a) = (a-1) D_a is convex with K(1) = 0, so between two orders it is below its chord c + s*a; (c + s*a)/(a(a-1)) is largest at
    an end or where s*a**2 + 2*c*a - c = 0.
    """
    slopes = np.diff(cumulants) / np.diff(orders)
    start = cumulants[..., :-1] - slopes * orders[:-1]
    root = (-start + np.sqrt(np.maximum(start**2 + slopes * start, 0.0))) / np.maximum(slopes, 1e-300)
    inside = np.clip(root, orders[:-1], orders[1:])
    return np.asarray((start + slopes * inside) / (inside * (inside - 1)))


def _orders(epsilon: FloatArray, weight: FloatArray, loss: FloatArray) -> FloatArray:
    """Return orders from just above 1 to the largest that matters."""
    first = FIRST_ORDER - 1
    divergence = _cumulants(weight, loss, np.array([FIRST_ORDER]))[:, 0] / first
    last = max(float((epsilon / np.maximum(divergence, 1e-300)).max()) - 1, 2 * first)
    return 1 + np.geomspace(first, last, 2 + math.ceil(math.log(last / first) / math.log(ORDER_RATIO)))


# The published loss of fat-tailed noise: few knots with straight lines between them, and a formula beyond the last
# (T-KNOTS). Losses are certified at numbers of data steps so close that each is hardly above the one before. They
# make a staircase that the true loss stays below, because the loss never falls as the record grows. The lines are
# laid on top of that staircase. Beyond the last knot the loss is at most f(x) - f(0) less a constant (T-BEYOND), so
# that the table ends and the policy does not.


SPACING = 0.005
"""How much the loss grows from one certified number of steps to the next, and..."""
ROOM = 0.003
"""...how far lines may lie above the staircase, relatively: together with certification less than 1 % above the true loss."""
COARSE = 10.0
"""Well below a thousandth of the scale both are this many times as wide: such a record loses next to nothing."""
BEFORE = 2
"""Both are narrow from this part of a thousandth on: no wide stretch or line reaches where accuracy is promised."""
ABOVE = 0.009
"""More than both together, and what certified losses of neighboring shifts may differ by from their own."""
BEYOND_GAP = 0.002
"""The table ends where the formula for what lies beyond is this close to the certified loss."""
AT_ONCE = 48
MOST_STEPS = 2**62
"""More a record cannot have."""
MOST_POINTS = 20_000
DIGITS = 6
TAIL_RATIO = 1.004
LEAST_TILT = 1e-3
TILTS = LEAST_TILT * 1.25 ** np.arange(34)
"""Orders less 1 at which the loss beyond a shift is bounded."""
TILT_ERROR = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Knots (steps, loss) and the constant beyond the last.

    The constant is subtracted from f(x) - f(0).
    """

    parameters: str
    knots: tuple[tuple[int, Fraction], ...]
    less: Fraction
    digest: str = field(default="", repr=False)

    def expected_digest(self) -> str:
        knots = [[count, fraction_text(level)] for count, level in self.knots]
        text = json.dumps([self.parameters, knots, fraction_text(self.less)])
        return hashlib.sha256(text.encode()).hexdigest()

    def seal(self) -> "Certificate":
        return replace(self, digest=self.expected_digest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """All that a certificate depends on.

    The law's exponent in lattice steps, a data step in them, and where accuracy begins.
    """

    exponent: Function
    step: int
    """Lattice steps in one data step."""
    accurate_from: int
    """In data steps."""

    def parameters(self) -> str:
        return json.dumps([self.exponent.to_json(), self.step, self.accurate_from], sort_keys=True)


KEPT: "OrderedDict[str, Certificate]" = OrderedDict()
MOST_KEPT = 256


def certificate(noise: Noise, law: Callable[[], LatticeLaw]) -> Certificate:
    """Return the certificate of exactly these parameters.

    From an earlier call in this process if its digest is right, otherwise computed. There is no file of
    certificates: a loss that is too low would be a hole, and a digest shows accidents, not intent (T-KNOTS).
    """
    parameters = noise.parameters()
    kept = KEPT.get(parameters)
    if kept is not None and kept.parameters == parameters and kept.digest == kept.expected_digest():
        KEPT.move_to_end(parameters)
        return kept
    KEPT[parameters] = made = _make_certificate(noise, law(), parameters)
    while len(KEPT) > MOST_KEPT:
        KEPT.popitem(last=False)
    return made


def _make_certificate(noise: Noise, law: LatticeLaw, parameters: str) -> Certificate:
    nodes = Nodes.of(law, noise.exponent)
    tail = Nodes.of(law, noise.exponent, ratio=TAIL_RATIO)
    counts: list[int] = []
    losses: list[float] = []
    less = 0.0
    for batch in _batches(counts, losses, noise):
        shifts = [count * noise.step for count in batch]
        found = np.minimum(certified_losses(nodes, noise.exponent, shifts), _from_pure(noise.exponent, shifts))
        counts += batch
        losses += np.maximum.accumulate(np.append(losses[-1:], found))[-len(batch) :].tolist()
        beyond = less_beyond(tail, noise.exponent, shifts[-1])
        rise = _epsilon(noise.exponent, shifts[-1])
        if beyond is not None and rise - beyond <= losses[-1] * (1 + BEYOND_GAP):
            less = beyond
            break
    knots = tuple(_knots(counts, losses, noise.accurate_from))
    return Certificate(parameters=parameters, knots=knots, less=_short(less, up=False)).seal()


def _epsilon(exponent: Function, shift: int) -> float:
    return float(exponent.increase(NUMPY, np.array([float(shift)]))[0])


def _from_pure(exponent: Function, shifts: list[int]) -> FloatArray:
    """eps*tanh(eps/2), which holds at every shift (T-PURE)."""
    epsilon = exponent.increase(NUMPY, np.array([float(shift) for shift in shifts])) * SLACK
    return np.asarray(epsilon * np.tanh(epsilon / 2) * SLACK)


def _batches(counts: list[int], losses: list[float], noise: Noise) -> Iterator[list[int]]:
    """Yield numbers of data steps to certify next."""
    while not counts or (counts[-1] < MOST_STEPS and len(counts) < MOST_POINTS):
        growth = 2.0
        if len(counts) > AT_ONCE // 2:
            before = max(0, len(counts) - AT_ONCE)
            growth = math.log(losses[-1] / losses[before]) / math.log(counts[-1] / counts[before])
        batch: list[int] = []
        count = counts[-1] if counts else 0
        for _ in range(AT_ONCE):
            spacing = SPACING * (COARSE if BEFORE * count < noise.accurate_from else 1.0)
            count = min(max(count + 1, int(count * (1 + spacing / max(growth, 0.02)))), MOST_STEPS)
            batch.append(count)
            if count == MOST_STEPS:
                break
        yield batch


def _knots(counts: list[int], losses: list[float], accurate_from: int) -> Iterator[tuple[int, Fraction]]:
    """Yield knots of lines on or barely above the staircase.

    Numbers of steps after one certified number up to the next need the loss of the latter, so a line must reach
    it one step after the former. Each line goes as far as possible from its first knot, with the smallest slope
    that is high enough everywhere.
    """
    starts = [1, *(count + 1 for count in counts[:-1])]
    place, level = 0, _short(losses[0], up=True)
    yield starts[0], level
    while place < len(starts) - 1:
        last, slope = _furthest(starts, losses, place, float(level), accurate_from)
        reached = max(float(level) + slope * (starts[last] - starts[place]), losses[last])
        place, level = last, max(level, _short(reached, up=True))
        yield starts[place], level
    if counts[-1] > starts[-1]:
        yield counts[-1], level


def _furthest(
    starts: list[int], losses: list[float], first: int, level: float, accurate_from: int
) -> tuple[int, float]:
    """Return the last index one line can reach, and its slope."""
    low, high = 0.0, math.inf
    last, slope = first + 1, max(0.0, (losses[first + 1] - level) / (starts[first + 1] - starts[first]))
    for other in range(first + 1, len(starts)):
        room = ROOM * (COARSE if BEFORE * starts[other] < accurate_from else 1.0)
        distance = starts[other] - starts[first]
        low = max(low, (losses[other] * SLACK - level) / distance)
        high = min(high, (losses[other] * (1 + room) - level) / distance)
        if low > high:
            break
        last, slope = other, low
    return last, slope


def _short(value: float, *, up: bool) -> Fraction:
    """A decimal of a few digits on the side asked for."""
    if value <= 0:
        return Fraction(0)
    unit = Fraction(10) ** (math.floor(math.log10(value)) + 1 - DIGITS)
    scaled = Fraction(value) / unit
    return (math.ceil(scaled) if up else math.floor(scaled)) * unit


def less_beyond(nodes: Nodes, exponent: Function, shift: int) -> float | None:
    """Return a certified margin below f(x) - f(0) (T-BEYOND).

    The loss at every shift from this one on is below by that margin; None where none is certified.
    """
    n, s = float(shift), nodes.points
    here, there, rise = (exponent.increase(NUMPY, k) for k in (s, s + n, np.array([n])))
    bow = np.append(np.diff(s) ** 2 / 8 * nodes.bends.within(s[:-1], s[1:] + n, np.array(n)), 0.0)
    bow[1:] = np.maximum(bow[1:], bow[:-1].copy())
    weight = nodes.mass - nodes.later
    weight[1:] += nodes.later[:-1]
    near, far = there - here - rise + bow, here + there - rise
    # Integers beyond the shift count a second time, at the log-ratio of the far end of their block.
    crossed = np.append(s[1:], np.inf) > n
    end = exponent.increase(NUMPY, np.maximum(s[1:] - n, 0.0))
    over = np.append(here[:-1] + rise - end, rise)
    saved = np.empty(len(TILTS))
    for place, tilt in enumerate(TILTS):
        kept = weight @ (np.exp(tilt * near) + np.exp(-tilt * far)) + nodes.mass @ (crossed * np.exp(-tilt * over))
        saved[place] = -math.log(SLACK * (kept - float(nodes.mass[0]) / SLACK)) / tilt - TILT_ERROR
    return float(saved[0]) if _holds_beyond(saved, float(rise[0])) else None


def _holds_beyond(saved: FloatArray, epsilon: float) -> bool:
    """Return whether no order has more than epsilon - saved[0]."""
    between = epsilon * TILTS[:-1] >= saved[0] * (1 + TILTS[:-1]) - saved[1:]
    last = epsilon * TILTS[-1] >= saved[0] * (1 + TILTS[-1])
    return bool(saved[0] > 0 and 2 * saved[0] <= epsilon and np.all(between) and last)
