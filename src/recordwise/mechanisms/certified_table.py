"""The published loss of fat-tailed noise: few knots with straight lines between them, and a formula beyond the last (T-KNOTS).

Certified losses at numbers of data steps so close that one is hardly above the one before make a staircase that the true loss stays
below, because the loss never falls as the record grows. The lines are laid on top of that staircase. Beyond the last knot the loss
is at most f(x) - f(0) less a constant (T-BEYOND), so that a table has an end and the policy has none.
"""

import hashlib
import json
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.functions import Function
from recordwise.exact.numbers import fraction_text
from recordwise.mechanisms.certified_loss import NUMPY, SLACK, Nodes, certified_losses
from recordwise.noise.lattice import LatticeLaw

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
    """Knots (steps, loss) and the constant that is taken off f(x) - f(0) beyond the last; the digest is over all of it."""

    parameters: str
    knots: tuple[tuple[int, Fraction], ...]
    less: Fraction
    digest: str = field(default="", repr=False)

    def expected_digest(self) -> str:
        knots = [[count, fraction_text(level)] for count, level in self.knots]
        text = json.dumps([self.parameters, knots, fraction_text(self.less)])
        return hashlib.sha256(text.encode()).hexdigest()

    def sealed(self) -> "Certificate":
        return replace(self, digest=self.expected_digest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """All that a certificate depends on: the law's exponent in lattice steps, a data step in them, and where accuracy begins."""

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
    """The certificate of exactly these parameters: kept from an earlier call in this process if its digest is right, or made.

    There is no file of certificates: a loss that is too low would be a hole, and a digest shows accidents, not intent (T-KNOTS).
    """
    parameters = noise.parameters()
    kept = KEPT.get(parameters)
    if kept is not None and kept.parameters == parameters and kept.digest == kept.expected_digest():
        KEPT.move_to_end(parameters)
        return kept
    KEPT[parameters] = made = _made(noise, law(), parameters)
    while len(KEPT) > MOST_KEPT:
        KEPT.popitem(last=False)
    return made


def _made(noise: Noise, law: LatticeLaw, parameters: str) -> Certificate:
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
    return Certificate(parameters=parameters, knots=knots, less=_short(less, up=False)).sealed()


def _epsilon(exponent: Function, shift: int) -> float:
    return float(exponent.increase(NUMPY, np.array([float(shift)]))[0])


def _from_pure(exponent: Function, shifts: list[int]) -> FloatArray:
    """eps*tanh(eps/2), which holds at every shift (T-PURE)."""
    epsilon = exponent.increase(NUMPY, np.array([float(shift) for shift in shifts])) * SLACK
    return np.asarray(epsilon * np.tanh(epsilon / 2) * SLACK)


def _batches(counts: list[int], losses: list[float], noise: Noise) -> Iterator[list[int]]:
    """Numbers of data steps to certify next, by how fast the loss grew over the ones before."""
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
    """Knots of lines that lie on or above the staircase, and hardly above it.

    Numbers of steps after one certified number up to the next need the loss of the latter, so a line must reach it one step after
    the former. Each line goes as far as one can from its first knot, with the smallest slope that is high enough everywhere.
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
    starts: list[int], losses: list[float], place: int, level: float, accurate_from: int
) -> tuple[int, float]:
    """The last place that one line can reach from here, and its slope."""
    low, high = 0.0, math.inf
    last, slope = place + 1, max(0.0, (losses[place + 1] - level) / (starts[place + 1] - starts[place]))
    for other in range(place + 1, len(starts)):
        room = ROOM * (COARSE if BEFORE * starts[other] < accurate_from else 1.0)
        distance = starts[other] - starts[place]
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
    """A number that the loss at every shift from this one on is below f(x) - f(0) by; None where none is certified (T-BEYOND)."""
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
    """Whether no order has more than epsilon - saved[0]: each interval of orders, and those beyond the last."""
    between = epsilon * TILTS[:-1] >= saved[0] * (1 + TILTS[:-1]) - saved[1:]
    last = epsilon * TILTS[-1] >= saved[0] * (1 + TILTS[-1])
    return bool(saved[0] > 0 and 2 * saved[0] <= epsilon and np.all(between) and last)
