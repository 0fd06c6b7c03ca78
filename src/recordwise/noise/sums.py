r"""Certified sums of the weights of a lattice law, over a range or a whole tail, to any accuracy (T-SUM, docs/theory/noise.md).

Where the weights change fast from one integer to the next they are added one by one; where they change slowly the
Euler-Maclaurin formula takes over, with a rigorous integral and a remainder bounded by Cauchy's estimate on complex balls.
"""

from functools import lru_cache

from flint import acb, arb, arb_series

from recordwise.arithmetic import BallArithmetic
from recordwise.errors import ParameterError
from recordwise.exact import bits_in_force, working_length, working_precision
from recordwise.functions import Function
from recordwise.noise.balls import HolomorphicArithmetic, SeriesArithmetic
from recordwise.noise.growth import log_slope_lower

DIRECT_TERMS = 96
"""Ranges up to this long are added term by term: shorter work than one integral."""
MOST_PRECISION = 1 << 16


class Weights:
    r"""``x**moment * exp(f(reference) - f(x))`` at the precision that was in force when it was made."""

    __slots__ = ("_base", "exponent", "moment")

    def __init__(self, exponent: Function, *, reference: int, moment: int = 0) -> None:
        self.exponent, self.moment = exponent, moment
        self._base = exponent.value(BallArithmetic(), arb(reference))

    def at(self, k: int) -> arb:
        return arb(k) ** self.moment * (self._base - self.exponent.value(BallArithmetic(), arb(k))).exp()

    def holomorphic(self, z: acb) -> acb:
        return z**self.moment * (self._base - self.exponent.value(HolomorphicArithmetic(), z)).exp()

    def taylor(self, k: int, length: int) -> list[arb]:
        """The coefficients about k."""
        with working_length(length):
            x = arb_series([arb(k), 1])
            series = x**self.moment * (self._base - self.exponent.value(SeriesArithmetic(), x)).exp()
            return [series[i] for i in range(length)]

    def spread(self, k: int) -> int:
        """About how many steps from k the exponent takes to grow by one; guides the work, certifies nothing."""
        with working_length(2):
            slope = self.exponent.value(SeriesArithmetic(), arb_series([arb(k), 1]))[1]
            return int((1 / slope).mid().floor().unique_fmpz())

    def growth(self, start: int, end: int) -> float:
        """About f(end) - f(start)."""
        return float(
            (self.exponent.value(BallArithmetic(), arb(end)) - self.exponent.value(BallArithmetic(), arb(start))).mid()
        )

    def beyond_upper(self, k: int) -> arb:
        """A bound on the sum over all integers from k on (T-GROWTH); infinite where none is certified."""
        slack = (log_slope_lower(self.exponent, arb(k)) - self.moment - 1).lower()
        return (self.at(k) * (1 + k / slack)).upper() if slack > 0 else arb.pos_inf()


@lru_cache(maxsize=4096)
def tail_sum(exponent: Function, start: int, *, moment: int = 0, bits: int = 80) -> arb:
    """Sum over k >= start >= 1 of ``k**moment * exp(f(start) - f(k))``, to ``bits`` correct bits."""
    return _accurate(exponent, start, None, moment, bits)


@lru_cache(maxsize=4096)
def range_sum(exponent: Function, start: int, end: int, *, moment: int = 0, bits: int = 80) -> arb:
    """Sum over start <= k < end of ``k**moment * exp(f(start) - f(k))``, to ``bits`` correct bits."""
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
    total = arb(0)
    if end is None:
        end = _cut(weights, start)
        total += arb(0).union(weights.beyond_upper(end))
    needed = _radius_needed()
    while end - start > DIRECT_TERMS:
        radius = min(start // 2, weights.spread(start))
        if radius >= needed:
            return total + _euler_maclaurin(weights, start, end, radius)
        total = sum((weights.at(k) for k in range(start, start + DIRECT_TERMS)), total)
        start += DIRECT_TERMS
    return sum((weights.at(k) for k in range(start, end)), total)


def _cut(weights: Weights, start: int) -> int:
    """A point from which on all weights together are negligible at the precision in force."""
    small = weights.at(start) * arb(2) ** (-bits_in_force())
    step = 1
    while not weights.beyond_upper(start + step) <= small:
        step *= 2
        if step.bit_length() > MOST_PRECISION:
            raise ParameterError(parameter="law", problem="has weights whose sum is not certified finite")
    return start + step


def _radius_needed() -> int:
    """At this radius the best order of the formula leaves less than the precision in force, with room for growth."""
    return bits_in_force() // 7 + 4


def _euler_maclaurin(weights: Weights, start: int, end: int, radius: int) -> arb:
    order, factor = _order(radius)
    total = _integral(weights, start, end)
    ends = [(weights.taylor(start, order), -1), (weights.taylor(end, order), 1)]
    for coefficients, sign in ends:
        total -= sign * coefficients[0] / 2
        for i in range(2, order, 2):
            total += sign * coefficients[i - 1] * arb.bernoulli(i) / i
    error = factor * _sup_integral(weights, start, end, radius)
    return total + arb(0, error.upper())


def _order(radius: int) -> tuple[int, arb]:
    """The even order 2q and the factor 8 (2q)!/(2 pi r)^(2q) of the remainder, about as small as the precision in force."""
    base, wanted = 2 * arb.pi() * radius, arb(2) ** (-bits_in_force() - 16)
    order, factor = 2, 16 / base**2
    while not factor < wanted and order < 6 * radius:
        factor *= (order + 1) * (order + 2) / base**2
        order += 2
    return order, factor


def _integral(weights: Weights, start: int, end: int) -> arb:
    """The integral of the weights, in the logarithm of x: a power-law tail is then as short as any other."""

    def integrand(y: acb, analytic: bool) -> acb:
        x = y.exp()
        return x * weights.holomorphic(x)

    return acb.integral(integrand, arb(start).log(), arb(end).log()).real


def _sup_integral(weights: Weights, start: int, end: int, radius: int) -> arb:
    """A bound on the integral over x of the largest weight within ``radius`` of x in the complex plane."""
    total, x = arb(0), start
    while x < end:
        width = min(end - x, _box_width(weights, x, radius))
        box = acb(arb(x - radius).union(arb(x + width + radius)), arb(0, radius))
        total += width * weights.holomorphic(box).abs_upper()
        x += width
    return total


def _box_width(weights: Weights, x: int, radius: int) -> int:
    """Wide enough to need few boxes, narrow enough that the weight at its left end is near the largest in it."""
    width = max(radius, min(x, weights.spread(x)))
    while width > radius and weights.growth(x, x + width) > 2:
        width = max(radius, width // 2)
    return width
