"""The tight loss of additive lattice noise, certified from the law that is drawn (T-TABLE, docs/theory/tight.md).

The privacy-loss variable L(k) = f(|k - n|) - f(|k|) is monotone left of 0, between 0 and the shift n, and right of n. Cutting each
stretch into blocks and taking the larger end of L in each gives, with the exact mass of the block, an upper bound of every Renyi
divergence; the zCDP loss over all orders follows from finitely many because (a-1) D_a is convex in the order a.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from recordwise.arithmetic import FloatArray, NumpyArithmetic
from recordwise.functions import Function
from recordwise.noise import LatticeLaw

NUMPY = NumpyArithmetic()
FIRST_ORDER = 1 + 1e-3
ORDER_RATIO = 1.15
"""Of the distances of successive orders from 1."""
BLOCK_RATIO = 1.012
LINEAR_BLOCKS = 64
FLOAT_SLACK = 1e-11
"""Relative slack for the float64 masses (1e-12) and exponents (1e-13), generous."""
MOST_ENTRIES = 400
ENTRY_RATIO = 1.03
BEYOND_GAP = 0.01
"""The table ends where eps*tanh(eps/2), which holds beyond it, is within this of the tight loss."""


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The integers cut into blocks, with upper bounds of their masses under a law: a left tail, blocks, a right tail."""

    edges: FloatArray
    mass: FloatArray

    @classmethod
    def of(cls, law: LatticeLaw) -> "Blocks":
        """Every lattice point near 0, ever wider blocks away from it, until a tail holds next to nothing."""
        top = 8.0 * float(law.quantile(1 - Fraction(1, 10**15))) + LINEAR_BLOCKS
        growing = np.geomspace(LINEAR_BLOCKS, top, 2 + int(math.log(top / LINEAR_BLOCKS) / math.log(BLOCK_RATIO)))
        away = np.unique(np.floor(np.concatenate([np.arange(1, LINEAR_BLOCKS + 1), growing])))
        above = np.asarray(law.sf(away.astype(np.int64)), np.float64)
        # By symmetry P(-a <= Z < -b) = P(b < Z <= a); only the middle block {0} is left over.
        inner, right = 1.0 - 2 * above[0], -np.diff(above)
        mass = np.concatenate([above[-1:], right[::-1], [inner], right, above[-1:]])
        slack = FLOAT_SLACK * np.concatenate([above[-1:], above[:-1][::-1], [1.0], above[:-1], above[-1:]])
        return cls(np.concatenate([1 - away[::-1], away]), mass + slack)


def certified_loss(blocks: Blocks, exponent: Function, shift: int) -> float:
    """An upper bound, within about 1 %, of sup over orders of D_a/a for a law against itself shifted by whole lattice steps."""
    if shift == 0:
        return 0.0
    loss = _block_losses(exponent, blocks.edges, shift)
    epsilon = float(exponent.increase(NUMPY, np.array([float(shift)]))[0]) * (1 + FLOAT_SLACK)
    orders = _orders(epsilon, blocks.mass, loss)
    over_all_orders = max(_between(orders, _cumulants(blocks.mass, loss, orders)), epsilon / float(orders[-1]))
    return min(over_all_orders, epsilon * math.tanh(epsilon / 2)) * (1 + FLOAT_SLACK)


def _block_losses(exponent: Function, edges: FloatArray, shift: int) -> FloatArray:
    """The largest L in the left tail, in each block [edge_i, edge_i+1 - 1], and in the right tail.

    L falls from 0 both to the left (towards 0) and up to the shift, and rises again beyond the shift (towards 0), so over a block
    that has 0 at an end or not at all it is largest at one of the ends.
    """

    def loss(k: FloatArray) -> FloatArray:
        here, there = exponent.increase(NUMPY, np.abs(k)), exponent.increase(NUMPY, np.abs(k - shift))
        return np.asarray(there - here + FLOAT_SLACK * (here + there))

    first, last = loss(edges[:-1]), loss(edges[1:] - 1)
    return np.concatenate([loss(edges[:1] - 1), np.maximum(first, last), np.maximum(loss(edges[-1:]), FLOAT_SLACK)])


def _cumulants(mass: FloatArray, loss: FloatArray, orders: FloatArray) -> FloatArray:
    """Upper bounds of (a-1) D_a."""
    kept = mass > 0
    exponents = (orders - 1)[:, None] * loss[kept] + np.log(mass[kept])
    top = exponents.max(axis=1)
    return np.asarray(np.log(np.exp(exponents - top[:, None]).sum(axis=1)) + top + FLOAT_SLACK)


def _between(orders: FloatArray, cumulants: FloatArray) -> float:
    """An upper bound of D_a/a for every order up to the last.

    K(a) = (a-1) D_a is convex with K(1) = 0, so between two orders it is below its chord c + s*a; (c + s*a)/(a(a-1)) is largest at
    an end or where s*a**2 + 2*c*a - c = 0. Up to the first order, D_a/a is at most D of the first.
    """
    slope = np.diff(cumulants) / np.diff(orders)
    start = cumulants[:-1] - slope * orders[:-1]
    root = (-start + np.sqrt(np.maximum(start**2 + slope * start, 0.0))) / np.maximum(slope, 1e-300)
    inside = np.clip(root, orders[:-1], orders[1:])
    at_chord = (start + slope * inside) / (inside * (inside - 1))
    at_orders = cumulants / (orders * (orders - 1))
    return float(max(cumulants[0] / (orders[0] - 1), at_orders.max(), at_chord.max()))


def _orders(epsilon: float, mass: FloatArray, loss: FloatArray) -> FloatArray:
    """Orders from just above 1 to where even epsilon/order is no larger than the divergence at the first."""
    first = FIRST_ORDER - 1
    divergence = float(_cumulants(mass, loss, np.array([FIRST_ORDER]))[0]) / first
    last = max(epsilon / max(divergence, 1e-300) - 1, 2 * first)
    return 1 + np.geomspace(first, last, 2 + math.ceil(math.log(last / first) / math.log(ORDER_RATIO)))


def step_table(loss_of: Callable[[int], float], epsilon_of: Callable[[int], float]) -> tuple[tuple[int, Fraction], ...]:
    """Losses at growing numbers of data steps, until the closed form beyond is as good."""
    entries: list[tuple[int, Fraction]] = []
    count, highest = 1, 0.0
    while len(entries) < MOST_ENTRIES:
        highest = max(highest, loss_of(count))
        entries.append((count, Fraction(highest)))
        epsilon = epsilon_of(count)
        if epsilon * math.tanh(epsilon / 2) <= highest * (1 + BEYOND_GAP):
            break
        count = max(count + 1, int(count * ENTRY_RATIO))
    return tuple(entries)
