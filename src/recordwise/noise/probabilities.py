"""Probabilities and moments of a lattice law as Arb balls.

Including far tails; see T-SUM in docs/theory/noise.md. Where weights change fast from one integer to the
next they are added one by one; where they change slowly, the Euler-Maclaurin formula is used, with a
rigorous integral and a remainder bounded by Cauchy's estimate on complex balls. For this, exponents are
also evaluated on complex balls and power series, to the right of the imaginary axis, where every expression
is holomorphic.
"""

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Generic, NoReturn, TypeAlias, TypeVar

import numpy as np
from flint import acb, arb, arb_series

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import BallArithmetic, BallColumns, NumpyArithmetic
from recordwise.exact.functions import Function, Log, Power, Sum, Variable
from recordwise.exact.numbers import ball, bits_in_force, working_length, working_precision

# How fast an exponent f grows relative to the logarithm: bounds on ``x f'(x)``, derived from the expression. They
# determine whether the weights exp(-f) can be summed at all, which moments exist, and how much mass lies beyond a
# point. The rules and their proof are T-GROWTH in docs/theory/noise.md; the key is that ``f(exp(y))`` is convex in y
# for most expressions, so that ``x f'(x)`` only grows.


Slope: TypeAlias = Fraction | float
"""A limit of x f'(x): a rational, or infinity."""


def log_slope_lower(function: Function, start: arb) -> arb:
    """Return a lower bound of ``x f'(x)`` for all x >= start.

    A ball whose every point is such a bound, or is the value at ``start`` > 0 itself.
    """
    match function:
        case Variable():
            return start
        case Sum():
            return sum((ball(weight) * log_slope_lower(part, start) for weight, part in function.terms), arb(0))
        case Power(base, exponent) if exponent >= 1 or log_convex(base):
            value = base.value(BallArithmetic(), start)
            return ball(exponent) * value ** ball(exponent - 1) * log_slope_lower(base, start)
        case Log(argument) if log_convex(argument):
            return log_slope_lower(argument, start) / argument.value(BallArithmetic(), start)
        case _:
            return arb(0)


def log_convex(function: Function) -> bool:
    """Return whether ln f(exp(y)) is certified convex in y."""
    match function:
        case Variable():
            return True
        case Sum():
            return function.shift >= 0 and all(log_convex(part) for _, part in function.terms)
        case Power(base, _):
            return log_convex(base)
        case _:
            return False


def degree(function: Function) -> Fraction:
    """Return the d for which f(x) grows as x**d."""
    match function:
        case Variable():
            return Fraction(1)
        case Sum():
            return max(degree(part) for _, part in function.terms)
        case Power(base, exponent):
            return exponent * degree(base)
        case _:
            return Fraction(0)


def log_slope_limit(function: Function) -> Slope:
    """Return a lower bound of the limit of ``x f'(x)``.

    A rational or infinity, as x goes to infinity; exact except for iterated logarithms.
    """
    if degree(function) > 0:
        return math.inf
    match function:
        case Sum():
            return sum((weight * log_slope_limit(part) for weight, part in function.terms), Fraction(0))
        case Log(argument):
            return degree(argument) if log_convex(argument) else Fraction(0)
        case Power(base, exponent):
            return math.inf if exponent > 1 and log_slope_limit(base) > 0 else Fraction(0)
        case _:
            return Fraction(0)


# Sums over the lattice: probabilities, moments and tails.


T = TypeVar("T", acb, arb_series)


class _Ring(Generic[T]):
    """The common part of complex balls and series."""

    def add(self, left: T, right: T) -> T:
        return left + right

    def multiply(self, left: T, right: T) -> T:
        return left * right

    def divide(self, left: T, right: T) -> T:
        return left / right

    def _unordered(self, *_: T) -> NoReturn:
        raise TypeError("an exponent does not use comparisons")

    maximum = minimum = tanh = exp_remainder = if_positive = _unordered


class HolomorphicArithmetic(_Ring[acb]):
    """Complex balls.

    A root or logarithm outside the right half-plane gives a result that is not finite.
    """

    def constant(self, value: arb) -> acb:
        return acb(value)

    def power(self, base: acb, exponent: Fraction) -> acb:
        if exponent.denominator == 1:
            return base ** int(exponent)
        return (self._log(base) * ball(exponent)).exp()

    def log1p(self, value: acb) -> acb:
        return self._log(value + 1)

    def power_less_one(self, value: acb, exponent: Fraction) -> acb:
        return self.power(value + 1, exponent) - 1

    def _log(self, value: acb) -> acb:
        return value.log() if value.real > 0 else acb("nan")


class SeriesArithmetic(_Ring[arb_series]):
    """Power series about a point to the length in force (``flint.ctx.cap``)."""

    def constant(self, value: arb) -> arb_series:
        return arb_series([value])

    def power(self, base: arb_series, exponent: Fraction) -> arb_series:
        return base ** int(exponent) if exponent.denominator == 1 else (base.log() * ball(exponent)).exp()

    def log1p(self, value: arb_series) -> arb_series:
        return (value + 1).log()

    def power_less_one(self, value: arb_series, exponent: Fraction) -> arb_series:
        return self.power(value + 1, exponent) - 1


DIRECT_TERMS = 96
"""Ranges up to this length are added term by term, which is less work than one integral."""
MOST_PRECISION = 1 << 16
LONGEST = 32
"""A sum without end that is not finite is given up if it reaches farther than this many doublings for each bit of the precision."""
NOT_FINITE = "has weights whose sum is not certified finite"


class Weights:
    r"""The weights ``x**moment * exp(f(reference) - f(x))``.

    At the precision that was in force when the object was made.
    """

    __slots__ = ("_base", "exponent", "moment")

    def __init__(self, exponent: Function, *, reference: int, moment: int = 0) -> None:
        self.exponent, self.moment = exponent, moment
        self._base = exponent.value(BallArithmetic(), arb(reference))

    def at(self, k: int) -> arb:
        weight = (self._base - self.exponent.value(BallArithmetic(), arb(k))).exp()
        return arb(k) ** self.moment * weight if self.moment else weight

    def at_each(self, points: Iterable[int]) -> list[arb]:
        """The same at many points."""
        columns = BallColumns()
        x = columns.column(points)
        weights = [fall.exp() for fall in self._base - self.exponent.value(columns, x)]
        return [k**self.moment * weight for k, weight in zip(x, weights)] if self.moment else weights

    def holomorphic(self, z: acb) -> acb:
        weight = (self._base - self.exponent.value(HolomorphicArithmetic(), z)).exp()
        return z**self.moment * weight if self.moment else weight

    def taylor(self, k: int, length: int) -> list[arb]:
        """The coefficients about k."""
        with working_length(length):
            x = arb_series([arb(k), 1])
            series = x**self.moment * (self._base - self.exponent.value(SeriesArithmetic(), x)).exp()
            return [series[i] for i in range(length)]

    def spread(self, k: int) -> int:
        """Return approximately the steps over which the exponent grows by one.

        Certifies nothing.
        """
        with working_length(2):
            slope = self.exponent.value(SeriesArithmetic(), arb_series([arb(k), 1]))[1]
            return int((1 / slope).mid().floor().unique_fmpz())

    def growth(self, start: int, end: int) -> float:
        """About f(end) - f(start)."""
        return float(
            (self.exponent.value(BallArithmetic(), arb(end)) - self.exponent.value(BallArithmetic(), arb(start))).mid()
        )

    def beyond_upper(self, k: int) -> arb:
        """Return a bound on the sum from k, maybe infinite (T-GROWTH)."""
        slack = (log_slope_lower(self.exponent, arb(k)) - self.moment - 1).lower()
        return (self.at(k) * (1 + k / slack)).upper() if slack > 0 else arb.pos_inf()


@lru_cache(maxsize=4096)
def tail_sum(exponent: Function, start: int, *, moment: int = 0, bits: int = 80) -> arb:
    """Sum ``k**moment * exp(f(start) - f(k))`` over k >= start >= 1.

    To ``bits`` correct bits.
    """
    return _accurate(exponent, start, None, moment, bits)


@lru_cache(maxsize=4096)
def range_sum(exponent: Function, start: int, end: int, *, moment: int = 0, bits: int = 80) -> arb:
    """Sum ``k**moment * exp(f(start) - f(k))`` over start <= k < end.

    To ``bits`` correct bits.
    """
    return _accurate(exponent, start, end, moment, bits)


def _accurate(exponent: Function, start: int, end: int | None, moment: int, bits: int) -> arb:
    precision = bits + 48
    while precision <= MOST_PRECISION:
        with working_precision(precision):
            total = _sum(Weights(exponent, reference=start, moment=moment), start, end)
            if total.is_finite() and total.rel_accuracy_bits() >= bits:
                return total
        precision *= 2
    raise ParameterError(parameter="law", problem="has weights whose sum could not be enclosed")


def _sum(weights: Weights, start: int, end: int | None) -> arb:
    total, is_endless = arb(0), end is None
    if end is None:
        end = _negligible_from(weights, start)
        total += arb(0).union(weights.beyond_upper(end))
    needed = _radius_needed()
    while end - start > DIRECT_TERMS:
        radius = min(start // 2, weights.spread(start))
        if radius >= needed:
            total += _euler_maclaurin(weights, start, end, radius)
            if is_endless and not total.is_finite() and end.bit_length() > LONGEST * bits_in_force():
                # With more bits it would end as many times farther out.
                raise ParameterError(parameter="law", problem=NOT_FINITE)
            return total
        total = sum(weights.at_each(range(start, start + DIRECT_TERMS)), total)
        start += DIRECT_TERMS
    return sum(weights.at_each(range(start, end)), total)


def _negligible_from(weights: Weights, start: int) -> int:
    """Return a point beyond which all weights together are negligible: the first at a power of two from the start."""
    small = weights.at(start) * arb(2) ** (-bits_in_force())

    def is_negligible(power: int) -> bool:
        return bool(weights.beyond_upper(start + (1 << power)) <= small)

    # Beyond any point there is less than beyond a nearer one, so that powers need not be tried one by one.
    low, high = -1, 0
    while not is_negligible(high):
        if high == MOST_PRECISION - 1:
            raise ParameterError(parameter="law", problem=NOT_FINITE)
        low, high = high, min(2 * high + 1, MOST_PRECISION - 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_negligible(middle) else (middle, high)
    return start + (1 << high)


def _radius_needed() -> int:
    """Return the radius needed for the precision in force."""
    return bits_in_force() // 7 + 4


def _euler_maclaurin(weights: Weights, start: int, end: int, radius: int) -> arb:
    order, factor = _order(radius)
    total = _integral(weights, start, end)
    if not total.is_finite():
        return total
    ends = [(weights.taylor(start, order), -1), (weights.taylor(end, order), 1)]
    for coefficients, sign in ends:
        total -= sign * coefficients[0] / 2
        for i in range(2, order, 2):
            total += sign * coefficients[i - 1] * arb.bernoulli(i) / i
    error = factor * _sup_integral(weights, start, end, radius)
    return total + arb(0, error.upper())


def _order(radius: int) -> tuple[int, arb]:
    """Return the even order 2q and the factor of the remainder.

    8 (2q)!/(2 pi r)^(2q), about as small as the precision in force.
    """
    base, wanted = 2 * arb.pi() * radius, arb(2) ** (-bits_in_force() - 16)
    order, factor = 2, 16 / base**2
    while not factor < wanted and order < 6 * radius:
        factor *= (order + 1) * (order + 2) / base**2
        order += 2
    return order, factor


def _integral(weights: Weights, start: int, end: int) -> arb:
    """Integrate the weights in the logarithm of x."""

    def integrand(y: acb, analytic: bool) -> acb:
        x = y.exp()
        return x * weights.holomorphic(x)

    return acb.integral(integrand, arb(start).log(), arb(end).log()).real


def _sup_integral(weights: Weights, start: int, end: int, radius: int) -> arb:
    """Bound the integral of the largest weight within ``radius`` of x.

    In the complex plane.
    """
    total, x = arb(0), start
    while x < end:
        width = min(end - x, _box_width(weights, start, x, radius))
        box = acb(arb(x - radius).union(arb(x + width + radius)), arb(0, radius))
        total += width * weights.holomorphic(box).abs_upper()
        x += width
    return total


def _box_width(weights: Weights, start: int, x: int, radius: int) -> int:
    """Return a box width that balances number and tightness.

    Wide enough that few boxes are needed, narrow enough that the weight at a box's left end is near the largest
    in it; the smaller the weights are relative to the first, the wider a box may be.
    """
    allowed = 2 + weights.growth(start, x) / 2
    # A spread may be beyond every float.
    width = max(radius, min(x, int(Fraction(allowed) * weights.spread(x))))
    while width > radius and weights.growth(x, x + width) > allowed:
        width = max(radius, width // 2)
    return width


BITS = 80
GUARD = 64
ENOUGH_BITS = 60
"""A tail found by subtraction has at least this many correct bits."""


def drop(exponent: Function, start: int, end: int) -> arb:
    """Return f(start) - f(end) to about the precision in force."""
    with working_precision(bits_in_force() + GUARD):
        return exponent.value(BallArithmetic(), arb(start)) - exponent.value(BallArithmetic(), arb(end))


@lru_cache(maxsize=256)
def normalizer(exponent: Function, *, bits: int = BITS) -> arb:
    """The sum of exp(f(0) - f(|k|)) over all integers."""
    with working_precision(bits + GUARD):
        return 1 + 2 * drop(exponent, 0, 1).exp() * tail_sum(exponent, 1, bits=bits)


@lru_cache(maxsize=4096)
def log_tail(exponent: Function, start: int, *, bits: int = BITS) -> arb:
    """ln P(Z >= start) for start >= 1."""
    with working_precision(bits + GUARD):
        return (
            drop(exponent, 0, start)
            + tail_sum(exponent, start, bits=bits).log()
            - normalizer(exponent, bits=bits).log()
        )


def log_tails(exponent: Function, starts: Iterable[int]) -> dict[int, arb]:
    """Return ln P(Z >= start) for many starts >= 1."""
    found: dict[int, arb] = {}
    with working_precision(BITS + GUARD):
        total = normalizer(exponent).log()
        above: tuple[int, arb] | None = None
        for start in sorted(set(starts), reverse=True):
            if above is None:
                relative = tail_sum(exponent, start)
            else:
                relative = range_sum(exponent, start, above[0]) + drop(exponent, start, above[0]).exp() * above[1]
            above = (start, relative)
            found[start] = drop(exponent, 0, start) + relative.log() - total
    return found


def tail(exponent: Function, start: int, *, bits: int = BITS) -> arb:
    """P(Z >= start) for any integer start, with relative accuracy."""
    with working_precision(bits + GUARD):
        if start >= 1:
            return log_tail(exponent, start, bits=bits).exp()
        return -log_tail(exponent, 1 - start, bits=bits).expm1()


@lru_cache(maxsize=1024)
def absolute_moment(exponent: Function, power: int) -> arb:
    """E |Z|**power; infinite if it is not certified finite."""
    if log_slope_limit(exponent) <= power + 1:
        return arb.pos_inf()
    with working_precision(BITS + GUARD):
        return 2 * drop(exponent, 0, 1).exp() * tail_sum(exponent, 1, moment=power) / normalizer(exponent)


@lru_cache(maxsize=4096)
def last_at_least(exponent: Function, probability: Fraction) -> int:
    """Return the largest m >= 0 with P(Z >= m) >= probability.

    For a probability of at most a half, by Newton on the log of the tail.
    """
    low, high, guess = 0, -1, near(exponent, float(probability))
    tails: dict[int, arb] = {}
    with working_precision(BITS + GUARD):
        wanted = ball(probability).log() + normalizer(exponent).log()
        while high - low != 1:
            tails[guess] = _tail_beside(exponent, guess, tails)
            gap = drop(exponent, 0, guess) + tails[guess].log() - wanted
            low, high = (guess, high) if surely_positive(gap) else (low, guess)
            jump = guess + math.floor(float((gap * tails[guess]).mid()))
            guess = max(low + 1, jump) if high < 0 else min(max(low + 1, jump), high - 1)
    return low


def _tail_beside(exponent: Function, start: int, tails: dict[int, arb]) -> arb:
    """Return ``tail_sum`` from a start, using a known nearby tail."""
    for known, relative in tails.items():
        if 0 < known - start <= DIRECT_TERMS:
            return range_sum(exponent, start, known) + drop(exponent, start, known).exp() * relative
        if 0 < start - known <= DIRECT_TERMS:
            found = (relative - range_sum(exponent, known, start)) * drop(exponent, start, known).exp()
            if found.rel_accuracy_bits() >= ENOUGH_BITS:
                return found
    return tail_sum(exponent, start)


@lru_cache(maxsize=256)
def near(exponent: Function, probability: float) -> int:
    """Return approximately the largest m with P(Z >= m) >= probability.

    Certifies nothing.
    """
    points = np.concatenate([np.arange(64.0), np.geomspace(64, 2.0**60, 3500)])
    with np.errstate(all="ignore"):
        weights = np.exp(-exponent.increase(NumpyArithmetic(), points))
    between = np.append((weights[1:] + weights[:-1]) / 2 * np.diff(points), 0.0)
    tails = np.cumsum(between[::-1])[::-1] + weights / 2
    level = probability * (2 * tails[0] - weights[0])
    held = tails > 0
    return max(1, int(np.interp(-math.log(level), -np.log(tails[held]), points[held]))) if level > 0 else 1


def surely_positive(value: arb) -> bool:
    """The sign of a nonzero real."""
    if value > 0 or value < 0:
        return bool(value > 0)
    raise ArithmeticError("the requested probability agrees with a tail of the law to 24 digits")
