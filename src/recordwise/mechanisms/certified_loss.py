"""The tight loss of additive lattice noise, certified from the law that is drawn (T-CERTIFIED, docs/theory/certified-loss.md).

With L(k) = f(|k - n|) - f(|k|) the log-ratio of a law p and itself shifted by n, reflection about n/2 turns the Renyi divergence
into a sum of terms that are not negative,

    exp((a-1) D_a) - 1  =  sum over k < n/2 of  p(k) (exp((a-1) L) - 1) (1 - exp(-a L)),

so that small losses lose no digits. Over a block of integers the last two factors are bounded at the end nearer to 0, and p by the
chord of a convex function; the loss over all orders follows from finitely many because (a-1) D_a is convex in the order a.

The published table holds these losses at round numbers of data steps, so close that rounding up to the next one costs little.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from recordwise.exact.arithmetic import FloatArray, NumpyArithmetic
from recordwise.exact.functions import Function
from recordwise.mechanisms.function_inverse import slope
from recordwise.noise.lattice import LatticeLaw

MOST_ENTRIES = 600
CLOSENESS = 25
"""Successive entries differ by at most one part in 25; up to 50 steps every number has an entry."""
BEYOND_GAP = 0.01
"""The table ends where eps*tanh(eps/2), which holds beyond it, is within this of the tight loss."""


def next_entry(count: int) -> int:
    """The first entry that is not below a number of steps: a multiple of the spacing, or the count at which the spacing grows."""
    unit, wider = spacings(count)
    return min(-(-count // unit) * unit, CLOSENESS * wider)


def spacings(count: int) -> tuple[int, int]:
    """The largest of 1, 2, 5, 10, 20, 50, ... that is at most a 25th of the count (at least 1), and the one after it."""
    decade = 10 ** (len(str(count // CLOSENESS)) - 1)
    units = [decade, 2 * decade, 5 * decade, 10 * decade]
    place = max(i for i, unit in enumerate(units[:3]) if i == 0 or CLOSENESS * unit <= count)
    return units[place], units[place + 1]


def step_table(
    loss_of: Callable[[int], float], closed_form: Callable[[int], float]
) -> tuple[tuple[int, Fraction], ...]:
    """Losses at growing numbers of data steps, until the closed form that holds beyond is as good.

    The true loss never falls as the record grows (T-TABLE), so a bound at one entry may be raised to the largest one before it.
    """
    entries: list[tuple[int, Fraction]] = []
    count, highest = 1, 0.0
    while len(entries) < MOST_ENTRIES:
        closed = closed_form(count)
        highest = max(highest, min(loss_of(count), closed))
        entries.append((count, Fraction(highest)))
        if closed <= highest * (1 + BEYOND_GAP):
            break
        count = next_entry(count + 1)
    return tuple(entries)


NUMPY = NumpyArithmetic()
FIRST_ORDER = 1 + 1e-4
ORDER_RATIO = 1.1**16
"""Of the distances of successive orders from 1, to begin with."""
HALVINGS = 5
"""How often an interval of orders may be halved; its ratio is then 1.1**(1/2)."""
NEAR = 1 + 1e-4
"""Intervals whose bound is this close to the largest loss found at an order are not halved."""
SINGLE_POINTS = 200
BLOCK_RATIO = 1.005
DEEP = 45.0
"""Blocks reach to where the weight has fallen by this exponent; what lies beyond is one block, its mass certified."""
FLOAT_ERROR = 2.0**-42
"""Relative error allowed to f in float64 (T-OUTWARD); a weight exp(-f), f <= 45, is then off by less than 2e-11."""
SLACK = 1 + 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The integers from 0 on cut into blocks, the last one without end: ``starts``, ``ends`` and upper bounds of their ``mass``."""

    starts: FloatArray
    ends: FloatArray
    mass: FloatArray

    @classmethod
    def of(cls, law: LatticeLaw, exponent: Function) -> "Blocks":
        """Single integers near 0, ever wider blocks away from it."""
        top = _where_risen(exponent, DEEP)
        growing = np.geomspace(SINGLE_POINTS, top, 2 + int(math.log(top / SINGLE_POINTS) / math.log(BLOCK_RATIO)))
        starts = np.unique(np.floor(np.concatenate([np.arange(SINGLE_POINTS), growing])))
        ends = np.append(starts[1:] - 1, np.inf)
        chord = (_weight(exponent, starts[:-1]) + _weight(exponent, ends[:-1])) / 2
        inside = chord * (ends[:-1] - starts[:-1] + 1) * float(law.pmf(0))
        return cls(starts, ends, SLACK * np.append(inside, float(law.sf_upper(int(starts[-1])))))


def _weight(exponent: Function, k: FloatArray) -> FloatArray:
    """exp(f(0) - f(k))."""
    return np.exp(-exponent.increase(NUMPY, k))


def _where_risen(exponent: Function, rise: float) -> float:
    """About the first power of 1.01 at which f has risen that far; at least somewhat beyond the single points."""
    reach = 1.01 ** np.arange(math.log(2 * SINGLE_POINTS, 1.01), math.log(2.0**61, 1.01))
    place = int(np.searchsorted(exponent.increase(NUMPY, reach), rise))
    return float(reach[min(place, len(reach) - 1)])


def certified_loss(blocks: Blocks, exponent: Function, shift: int) -> float:
    """An upper bound, within about 1 %, of sup over orders of D_a/a for a law against itself shifted by whole lattice steps."""
    if shift == 0:
        return 0.0
    mass, loss = _half_line(blocks, exponent, float(shift))
    epsilon = _increase(exponent, float(shift)) * SLACK
    orders, cumulants = _refined(mass, loss, _orders(epsilon, mass, loss))
    return max(_between(orders, cumulants), epsilon / float(orders[-1])) * SLACK


def _refined(mass: FloatArray, loss: FloatArray, orders: FloatArray) -> tuple[FloatArray, FloatArray]:
    """More orders where they matter. Any orders give a bound that holds; closer ones give a smaller one."""
    cumulants = _cumulants(mass, loss, orders)
    for _ in range(HALVINGS):
        reached = _at_orders(orders, cumulants)
        wide = np.flatnonzero(_at_chords(orders, cumulants) > NEAR * reached)
        if not len(wide):
            break
        middle = 1 + np.sqrt((orders[wide] - 1) * (orders[wide + 1] - 1))
        orders = np.insert(orders, wide + 1, middle)
        cumulants = np.insert(cumulants, wide + 1, _cumulants(mass, loss, middle))
    return orders, cumulants


def _increase(exponent: Function, k: float) -> float:
    return float(exponent.increase(NUMPY, np.array([k]))[0])


def _half_line(blocks: Blocks, exponent: Function, shift: float) -> tuple[FloatArray, FloatArray]:
    """Masses and largest log-ratios of the blocks below shift/2: all of the negative side, and some of the other.

    A block's log-ratio is largest at its end nearer to 0, to the left because f is concave, to the right because f increases. A
    block that holds shift/2 counts in full, at the log-ratio of its start.
    """
    right = blocks.starts[1:][2 * blocks.starts[1:] < shift]
    left_loss = _rise(exponent, blocks.starts, blocks.starts + shift)
    right_loss = _rise(exponent, right, shift - right)
    return np.concatenate([blocks.mass, blocks.mass[1 : 1 + len(right)]]), np.concatenate([left_loss, right_loss])


def _rise(exponent: Function, low: FloatArray, high: FloatArray) -> FloatArray:
    """An upper bound of f(high) - f(low): the difference, or the tangent at ``low`` where that is lost in rounding."""
    here, there = exponent.increase(NUMPY, low), exponent.increase(NUMPY, high)
    difference = there - here + FLOAT_ERROR * (here + there)
    return np.minimum(difference, (high - low) * slope(exponent, low) * SLACK)


def _cumulants(mass: FloatArray, loss: FloatArray, orders: FloatArray) -> FloatArray:
    """Upper bounds of (a-1) D_a; the largest exponent of each order is taken out, so that none overflows."""
    exponents = np.multiply.outer(orders - 1, loss)
    top = exponents.max(axis=1)
    grown = np.exp(exponents - top[:, None]) * np.expm1(-exponents) * np.expm1(-np.multiply.outer(orders, loss))
    return np.asarray(np.logaddexp(0.0, np.log(grown @ mass) + top) * SLACK)


def _between(orders: FloatArray, cumulants: FloatArray) -> float:
    """An upper bound of D_a/a for every order up to the last."""
    return max(_at_orders(orders, cumulants), float(_at_chords(orders, cumulants).max()))


def _at_orders(orders: FloatArray, cumulants: FloatArray) -> float:
    """The largest D_a/a at the orders themselves and below the first, where it is at most D of the first."""
    return float(max(cumulants[0] / (orders[0] - 1), (cumulants / (orders * (orders - 1))).max()))


def _at_chords(orders: FloatArray, cumulants: FloatArray) -> FloatArray:
    """An upper bound of D_a/a between each two orders.

    K(a) = (a-1) D_a is convex with K(1) = 0, so between two orders it is below its chord c + s*a; (c + s*a)/(a(a-1)) is largest at
    an end or where s*a**2 + 2*c*a - c = 0.
    """
    slopes = np.diff(cumulants) / np.diff(orders)
    start = cumulants[:-1] - slopes * orders[:-1]
    root = (-start + np.sqrt(np.maximum(start**2 + slopes * start, 0.0))) / np.maximum(slopes, 1e-300)
    inside = np.clip(root, orders[:-1], orders[1:])
    return np.asarray((start + slopes * inside) / (inside * (inside - 1)))


def _orders(epsilon: float, mass: FloatArray, loss: FloatArray) -> FloatArray:
    """Orders from just above 1 to where even epsilon/order is no larger than the divergence at the first."""
    first = FIRST_ORDER - 1
    divergence = float(_cumulants(mass, loss, np.array([FIRST_ORDER]))[0]) / first
    last = max(epsilon / max(divergence, 1e-300) - 1, 2 * first)
    return 1 + np.geomspace(first, last, 2 + math.ceil(math.log(last / first) / math.log(ORDER_RATIO)))
