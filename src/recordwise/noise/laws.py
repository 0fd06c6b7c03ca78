"""Laws on the integers: what each can do, the laws by name, counts of draws.

A lattice law derives everything from its exponent. Parameters are exact and in lattice steps.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np
from flint import arb

from recordwise.errors import ExtremeDrawError, ParameterError, RangeError, own_argument_errors, own_errors_of
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.functions import Function, log, x
from recordwise.exact.numbers import (
    Number,
    arb_float_lower,
    arb_float_upper,
    ball,
    bits_in_force,
    positive,
    rational,
    working_precision,
)
from recordwise.noise import probabilities, sampler
from recordwise.noise.probabilities import Weights, absolute_moment, log_slope_limit, tail
from recordwise.noise.randomness import BitSource, LazyUniform, Secure, dyadic, random_word, uniform_below
from recordwise.noise.sampler import Draws, IntArray, Side, table_for

# What every law on the integers can do: exact draws and bounds of its probabilities.


Integers: TypeAlias = int | IntArray | Sequence[int]
REACH = 1 << 62
LARGEST = (1 << 63) - 1
RARE = arb("1e-30")


@own_errors_of
class LatticeLaw:
    """A symmetric law on the integers, sampled exactly (T-EXACT).

    P(Z = k) is proportional to exp(-f(|k|)); see docs/theory/noise.md.
    """

    __slots__ = ()

    def __str__(self) -> str:
        parts = [f"{field.name}={getattr(self, field.name)}" for field in fields(self)]  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(parts)})"

    @property
    def exponent(self) -> Function:
        """f, up to a constant."""
        raise NotImplementedError

    @property
    def inflection(self) -> int:
        """The integer up to which exp(-f) is concave, then convex.

        0 for a concave f, where it is convex throughout.
        """
        return 0

    def draw(self, size: int, rng: BitSource | None = None) -> Draws:
        """Return independent draws, those beyond 64 bits separately.

        ``rng=None`` is the secure source.

        Args:
            size: How many draws.
            rng: A source of random bits; the secure source unless given.

        Returns:
            The draws.
        """
        return sampler.draw(table_for(self._side()), check_cell_count(size), rng or Secure())

    def sample(self, size: int, rng: BitSource | None = None) -> IntArray:
        """Return independent draws.

        A draw that does not fit 64 bits (probability below 1e-30) raises; ``add_to`` carries it.

        Args:
            size: How many draws.
            rng: A source of random bits; the secure source unless given.

        Returns:
            The draws, in lattice steps.
        """
        return fitting(self.draw(size, rng))

    def sample_above(self, threshold: int, size: int, rng: BitSource | None = None) -> IntArray:
        """Return draws conditional on Z >= threshold (T-EXACT).

        At any depth of the tail.

        Args:
            threshold: The threshold, in lattice steps.
            size: How many draws.
            rng: A source of random bits; the secure source unless given.

        Returns:
            The draws, in lattice steps.
        """
        source = rng or Secure()
        if abs(threshold) > REACH:
            raise ParameterError(parameter="threshold", problem="must lie within 2^62 steps")
        if threshold >= 1:
            table = table_for(replace(self._side(), first=threshold, signed=False))
            return add_offset(sampler.draw(table, check_cell_count(size), source), threshold)
        kept: list[IntArray] = [np.empty(0, dtype=np.int64)]
        missing = check_cell_count(size)
        while missing:
            drawn = self.sample(missing, source)
            kept.append(drawn[drawn >= threshold])
            missing -= len(kept[-1])
        return np.concatenate(kept)

    def add_to(self, totals: IntArray, rng: BitSource | None = None) -> IntArray:
        """Add noise to totals, then clip to 64 bits (T-RANGE).

        Totals are 64-bit, or Python integers in an object array where they are longer.

        Args:
            totals: The exact totals, in lattice steps.
            rng: A source of random bits; the secure source unless given.

        Returns:
            The noisy totals.
        """
        drawn = self.draw(len(totals), rng)
        if totals.dtype == np.int64 and not drawn.extremes:
            with np.errstate(over="ignore"):
                noisy = totals + drawn.values
            if not np.any((totals ^ noisy) & (drawn.values ^ noisy) < 0):
                return noisy
        noise = drawn.values.astype(object)
        for place, value in drawn.extremes.items():
            noise[place] = value
        exact = [int(total) + int(z) for total, z in zip(totals.tolist(), noise)]
        return np.array([min(max(value, -LARGEST - 1), LARGEST) for value in exact], dtype=np.int64)

    def pmf(self, k: Integers) -> FloatArray | float:
        """P(Z = k).

        Args:
            k: One integer, or an array of them.

        Returns:
            A probability for each k.
        """
        with working_precision():
            return each(k, [float(p.exp().mid()) for p in self._log_pmf(k)])

    def log_pmf(self, k: Integers) -> FloatArray | float:
        """ln P(Z = k).

        Args:
            k: One integer, or an array of them.

        Returns:
            A number for each k.
        """
        return each(k, [float(p.mid()) for p in self._log_pmf(k)])

    def cdf(self, k: Integers) -> FloatArray | float:
        """P(Z <= k).

        Args:
            k: One integer, or an array of them.

        Returns:
            A probability for each k.
        """
        return each(k, [float(p.mid()) for p in self._tails([-i for i in integer_list(k)])])

    def log_cdf(self, k: Integers) -> FloatArray | float:
        """ln P(Z <= k).

        Args:
            k: One integer, or an array of them.

        Returns:
            A number for each k.
        """
        return each(k, [float(p.mid()) for p in self._log_tails([-i for i in integer_list(k)])])

    def sf(self, k: Integers) -> FloatArray | float:
        """P(Z >= k): the threshold itself passes.

        Args:
            k: One integer, or an array of them.

        Returns:
            A probability for each k.
        """
        return each(k, [float(p.mid()) for p in self._tails(integer_list(k))])

    def log_sf(self, k: Integers) -> FloatArray | float:
        """ln P(Z >= k).

        Args:
            k: One integer, or an array of them.

        Returns:
            A number for each k.
        """
        return each(k, [float(p.mid()) for p in self._log_tails(integer_list(k))])

    def sf_upper(self, k: Integers) -> FloatArray | float:
        """Return a float not below P(Z >= k).

        Within two units in the last place.

        Args:
            k: One integer, or an array of them.

        Returns:
            A probability for each k.
        """
        with working_precision():
            return each(k, [arb_float_upper(p) for p in self._tails(integer_list(k))])

    def sf_lower(self, k: Integers) -> FloatArray | float:
        """Return a float not above P(Z >= k).

        Within two units in the last place.

        Args:
            k: One integer, or an array of them.

        Returns:
            A probability for each k.
        """
        with working_precision():
            return each(k, [arb_float_lower(p) for p in self._tails(integer_list(k))])

    def quantile(self, p: Number) -> int:
        """The smallest k with P(Z <= k) >= p.

        Args:
            p: A probability between 0 and 1.

        Returns:
            The quantile, in lattice steps.
        """
        level = rational(p, parameter="p")
        if not 0 < level < 1:
            raise ParameterError(parameter="p", problem=f"must lie between 0 and 1, not {p}")
        reach = probabilities.last_at_least(self.exponent, min(level, 1 - level))
        return -reach if 2 * level <= 1 else reach

    @property
    def variance(self) -> float:
        """The variance of the lattice law, infinite for heavy tails."""
        return float(probabilities.absolute_moment(self.exponent, 2).mid())

    @property
    def mean_abs(self) -> float:
        """E |Z|; infinite if the tail is too heavy."""
        return float(probabilities.absolute_moment(self.exponent, 1).mid())

    def _side(self) -> Side:
        return Side(exponent=self.exponent, inflection=self.inflection)

    def _log_pmf(self, k: Integers) -> list[arb]:
        exponent = self.exponent
        with working_precision(probabilities.BITS + probabilities.GUARD):
            total = probabilities.normalizer(exponent).log()
            sizes = [abs(i) for i in integer_list(k)]
            known = {size: probabilities.drop(exponent, 0, size) - total for size in set(sizes)}
            return [known[size] for size in sizes]

    def _log_tails(self, starts: list[int]) -> list[arb]:
        known = probabilities.log_tails(self.exponent, [i if i >= 1 else 1 - i for i in starts])
        with working_precision(probabilities.BITS + probabilities.GUARD):
            return [known[i] if i >= 1 else (-known[1 - i].exp()).log1p() for i in starts]

    def _tails(self, starts: list[int]) -> list[arb]:
        known = probabilities.log_tails(self.exponent, [i if i >= 1 else 1 - i for i in starts])
        with working_precision(probabilities.BITS + probabilities.GUARD):
            return [known[i].exp() if i >= 1 else -known[1 - i].expm1() for i in starts]


@lru_cache(maxsize=1024)
def check_range(law: str, exponent: Function) -> None:
    """Refuse a law with infinite mass or a heavy tail (T-RANGE).

    Its weights have no finite sum, or P(|Z| >= 2^62) is above 1e-30.
    """
    if log_slope_limit(exponent) <= 1:
        raise ParameterError(parameter=law, problem="has no certified normalizer: its exponent grows too slowly")
    with working_precision(128):
        if 2 * Weights(exponent, reference=0).beyond_upper(REACH) <= RARE:
            return
        exact = math.log(2) + probabilities.log_tail(exponent, REACH)
    if not exact <= RARE.log():
        raise RangeError(law=law, log10_probability=float(exact.mid()) / math.log(10))


def check_cell_count(size: int) -> int:
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0:
        raise ParameterError(parameter="size", problem="must be a nonnegative integer")
    return int(size)


def fitting(drawn: Draws) -> IntArray:
    if drawn.extremes:
        raise ExtremeDrawError(count=len(drawn.extremes))
    return drawn.values


def add_offset(drawn: Draws, threshold: int) -> IntArray:
    """Return threshold + offset, raising beyond 64 bits."""
    beyond = int(np.count_nonzero(drawn.values > LARGEST - threshold)) + len(drawn.extremes)
    if beyond:
        raise ExtremeDrawError(count=beyond)
    return drawn.values + threshold


def integer_list(k: Integers) -> list[int]:
    """Integer arguments as Python integers; anything else is refused."""
    array = np.atleast_1d(np.asarray(k, dtype=object))
    if not all(isinstance(i, (int, np.integer)) and not isinstance(i, bool) for i in array.flat):
        raise ParameterError(parameter="k", problem="must be an integer or an array of integers")
    return [int(i) for i in array.flat]


def each(k: Integers, values: list[float]) -> FloatArray | float:
    """Results in the shape of the argument."""
    return values[0] if np.ndim(k) == 0 else np.array(values, dtype=np.float64).reshape(np.shape(k))


# Calibration: the scale at which the LATTICE law, not its continuous counterpart, has a given variance.


Family: TypeAlias = Callable[[Fraction], Function]
"""The exponent at a scale. The variance grows with the scale (T-CALIBRATE)."""
DIGITS = 12
"""Significant decimal digits of a calibrated scale."""
TOLERANCE = 1e-13


def scale_for_variance(family: Family, variance: Number) -> Fraction:
    """Return the smallest scale that certainly reaches a variance (T-CALIBRATE).

    Of 12 significant digits; the variance is that of the lattice law.
    """
    wanted = positive(variance, parameter="variance")
    if log_slope_limit(family(Fraction(1))) <= 3:
        raise ParameterError(parameter="variance", problem="is infinite at every scale of this law")
    root = _root(lambda log_scale: _gap(family, Fraction(math.exp(log_scale)), wanted), math.log(wanted) / 2)
    unit = Fraction(10) ** (math.floor(root / math.log(10)) + 1 - DIGITS)
    scale = math.ceil(Fraction(math.exp(root)) / unit) * unit
    while _reaches(family, scale - unit, wanted):
        scale -= unit
    while not _reaches(family, scale, wanted):
        scale += unit
    return scale


def _reaches(family: Family, scale: Fraction, wanted: Fraction) -> bool:
    with working_precision():
        return bool(absolute_moment(family(scale), 2) >= ball(wanted))


def _gap(family: Family, scale: Fraction, wanted: Fraction) -> float:
    """Approximately ln(variance / wanted)."""
    with working_precision():
        ratio: arb = absolute_moment(family(scale), 2) / ball(wanted)
        return float(ratio.log().mid())


def _root(gap: Callable[[float], float], start: float) -> float:
    """Return an approximate root of an increasing function."""
    step, low, high = 1.0, start, start
    gap_low = gap_high = gap(start)
    while gap_low > 0:
        low, step = low - step, 2 * step
        gap_low = gap(low)
    while gap_high < 0:
        high, step = high + step, 2 * step
        gap_high = gap(high)
    middle, last = high, 0.0
    while high - low > TOLERANCE and gap_high > gap_low:
        middle = high - gap_high * (high - low) / (gap_high - gap_low)
        here = gap(middle)
        if abs(here) < TOLERANCE:
            break
        if here < 0:
            low, gap_low, gap_high = middle, here, gap_high / 2 if last < 0 else gap_high
        else:
            high, gap_high, gap_low = middle, here, gap_low / 2 if last > 0 else gap_low
        last = here
    return middle


# The laws.


CERTIFYING_BITS = 256


@lru_cache(maxsize=1024)
def _gaussian_exponent(sigma: Fraction) -> Function:
    return x**2 / (2 * sigma**2)


@own_errors_of
@dataclass(frozen=True, slots=True, init=False)
class DiscreteGaussian(LatticeLaw):
    """P(Z = k) proportional to exp(-k**2 / (2 sigma**2))."""

    sigma: Fraction

    def __init__(self, sigma: Number) -> None:
        object.__setattr__(self, "sigma", positive(sigma, parameter="sigma"))
        check_range(str(self), self.exponent)

    @classmethod
    def for_variance(cls, variance: Number) -> "DiscreteGaussian":
        """Return the law with at least a lattice variance (T-CALIBRATE).

        Args:
            variance: The wanted variance, in squared lattice steps.

        Returns:
            The law.
        """
        return cls(scale_for_variance(_gaussian_exponent, variance))

    @property
    def exponent(self) -> Function:
        return _gaussian_exponent(self.sigma)

    @property
    def inflection(self) -> int:
        return int(self.sigma)


@lru_cache(maxsize=1024)
def discrete_gaussian(sigma: Fraction) -> DiscreteGaussian:
    """Return the law for a sigma, checked once."""
    return DiscreteGaussian(sigma)


@own_errors_of
@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplace(LatticeLaw):
    """P(Z = k) proportional to exp(-|k| / scale)."""

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", positive(scale, parameter="scale"))
        check_range(str(self), self.exponent)

    @classmethod
    def for_variance(cls, variance: Number) -> "DiscreteLaplace":
        """Return the law with at least a lattice variance (T-CALIBRATE).

        Args:
            variance: The wanted variance, in squared lattice steps.

        Returns:
            The law.
        """
        return cls(scale_for_variance(lambda scale: x / scale, variance))

    @property
    def exponent(self) -> Function:
        return x / self.scale


@own_errors_of
@dataclass(frozen=True, slots=True, init=False)
class GeneralizedGaussian(LatticeLaw):
    """The lattice law of generalized Gaussian noise.

    P(Z = k) is proportional to exp(-(|k| / scale)**shape), 0 < shape <= 1.
    """

    scale: Fraction
    shape: Fraction

    def __init__(self, scale: Number, shape: Number) -> None:
        object.__setattr__(self, "scale", positive(scale, parameter="scale"))
        object.__setattr__(self, "shape", _check_shape(shape))
        check_range(str(self), self.exponent)

    @classmethod
    def for_variance(cls, variance: Number, *, shape: Number) -> "GeneralizedGaussian":
        """Return the law with at least a lattice variance (T-CALIBRATE).

        Args:
            variance: The wanted variance, in squared lattice steps.
            shape: The shape, above 0 and at most 1.

        Returns:
            The law.
        """
        power = _check_shape(shape)
        return cls(scale_for_variance(lambda scale: (x / scale) ** power, variance), power)

    @property
    def exponent(self) -> Function:
        return (x / self.scale) ** self.shape


def _check_shape(shape: Number) -> Fraction:
    power = positive(shape, parameter="shape")
    if power > 1:
        raise ParameterError(
            parameter="shape", problem=f"must be at most 1, not {shape}", advice="Above 1 the exponent is not concave."
        )
    return power


@own_errors_of
@dataclass(frozen=True, slots=True, init=False)
class Polylog(LatticeLaw):
    """The lattice law of polylog noise.

    P(Z = k) is proportional to exp(-rate * ln(|k| / scale + offset)**power), power >= 1, offset >= e**(power -
    1).
    """

    scale: Fraction
    rate: Fraction
    offset: Fraction
    power: Fraction

    def __init__(self, scale: Number, rate: Number, offset: Number, power: Number) -> None:
        given = {"scale": scale, "rate": rate, "offset": offset, "power": power}
        for name, value in given.items():
            object.__setattr__(self, name, positive(value, parameter=name))
        _check_polylog(self.rate, self.offset, self.power)
        check_range(str(self), self.exponent)

    @classmethod
    def for_variance(cls, variance: Number, *, rate: Number, offset: Number, power: Number) -> "Polylog":
        """Return the law with at least a lattice variance (T-CALIBRATE).

        Args:
            variance: The wanted variance, in squared lattice steps.
            rate: The rate.
            offset: The offset.
            power: The power.

        Returns:
            The law.
        """
        d, o, p = (
            positive(rate, parameter="rate"),
            positive(offset, parameter="offset"),
            positive(power, parameter="power"),
        )
        _check_polylog(d, o, p)
        return cls(scale_for_variance(lambda scale: d * log(x / scale + o) ** p, variance), d, o, p)

    @property
    def exponent(self) -> Function:
        return self.rate * log(x / self.scale + self.offset) ** self.power


def _check_polylog(rate: Fraction, offset: Fraction, power: Fraction) -> None:
    """Refuse an exponent not concave or, at power 1, without mean."""
    if power < 1:
        raise ParameterError(parameter="power", problem=f"must be at least 1, not {power}")
    with working_precision(CERTIFYING_BITS):
        needed = ball(power - 1).exp()
        concave = ball(offset) >= needed
    if not concave:
        raise ParameterError(
            parameter="offset",
            problem=f"must be at least e^(power - 1) = {float(needed):.17g}, not {float(offset):.17g}",
            advice="Below that, the exponent is not concave and losses could exceed the policy.",
        )
    if power == 1 and rate <= 2:
        lacks = "a normalizer" if rate <= 1 else "a mean"
        raise ParameterError(
            parameter="rate", problem=f"must be above 2 at power 1, not {rate}", advice=f"The law would lack {lacks}."
        )


@own_errors_of
@dataclass(frozen=True, slots=True, init=False)
class ConcaveLaw(LatticeLaw):
    """A lattice law with certified concave exponent f (T-CONCAVE).

    P(Z = k) is proportional to exp(-f(|k|)).
    """

    exponent_function: Function

    def __init__(self, f: Function) -> None:
        f.concave()
        object.__setattr__(self, "exponent_function", f)
        check_range(str(self), f)

    @property
    def exponent(self) -> Function:
        return self.exponent_function


# Averages of draws, for simulations.


@dataclass(frozen=True, slots=True)
class AveragedLaw:
    """The law of a weighted sum of independent draws."""

    draws: tuple[tuple[LatticeLaw, float], ...]
    """Each law with its weight."""

    @property
    def variance(self) -> float:
        """In squared lattice steps."""
        return sum(weight**2 * float(law.variance) for law, weight in self.draws)

    def draw(self, count: int, source: BitSource) -> "AveragedDraws":
        """Return averages of fresh draws.

        Args:
            count: How many.
            source: Random bits.
        """
        each = [weight * law.draw(count, source).values.astype(np.float64) for law, weight in self.draws]
        return AveragedDraws(np.sum(each, axis=0))


@dataclass(frozen=True, slots=True)
class AveragedDraws:
    """Averages, which are no whole numbers."""

    values: FloatArray


# Binomial draws: how many of n independent draws reach a threshold, without drawing them.


SLACK = dyadic(1, 20)


@own_argument_errors
def binomial_exact(n: int, law: LatticeLaw, threshold: int, rng: BitSource | None = None) -> int:
    """Draw the number of n draws with Z >= threshold (T-BINOMIAL).

    Exactly Binomial(n, P(Z >= threshold)), in time that does not grow with n; see docs/theory/noise.md.

    Args:
        n: The number of draws.
        law: The law of Z.
        threshold: The threshold, in lattice steps.
        rng: A source of random bits; the secure source unless given.

    Returns:
        How many of the draws reach the threshold.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise ParameterError(parameter="n", problem="must be a nonnegative integer")
    if threshold < 1:
        return n - binomial_exact(n, law, 1 - threshold, rng)
    return Passing(law=law, threshold=threshold, n=n).draw(rng or Secure())


def halvings(source: BitSource) -> int:
    """Return the number of zeros before the first one bit.

    i with probability 2**-(i+1).
    """
    zeros = 0
    while (word := random_word(source)) == 0:
        zeros += 64
    return zeros + 64 - word.bit_length()


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing:
    """The binomial law of the number of draws that reach the threshold."""

    law: LatticeLaw
    threshold: int
    n: int

    @property
    def first_precision(self) -> int:
        return 128 + 2 * self.n.bit_length()

    def draw(self, source: BitSource) -> int:
        """Draw a count by picking a side, a block and a position.

        Blocks have halving probabilities; accept the count in proportion to its probability.
        """
        center, shift = frame(self)
        while True:
            right, block, offset = random_word(source) & 1, halvings(source), uniform_below(source, shift)
            distance = (block << shift) + offset
            count = center + distance if right else center - 1 - distance
            if LazyUniform(source).below(partial(self.acceptance, count, center, block)):
                return count

    def center(self) -> int:
        """Return a count from which probabilities fall on both sides."""
        mean = (self.n + 1) * self._passes()
        center = int((mean + SLACK).mid().floor().unique_fmpz())
        if not (mean - 1 <= center and center <= mean + 2 * SLACK):
            raise ArithmeticError("the mean of a binomial law was not enclosed well enough")
        return center

    def width_shift(self, center: int) -> int:
        """Return the smallest power of two that halves the probability."""
        shift = 0
        while not (
            self._log_ratio(center + (1 << shift), center) <= -arb.const_log2()
            and self._log_ratio(center - 1 - (1 << shift), center - 1) <= -arb.const_log2()
        ):
            shift += 1
        return shift

    def acceptance(self, count: int, center: int, block: int) -> arb:
        """P(count) over the envelope 2 P(center) 2**-block, at most 1."""
        with working_precision(bits_in_force() + self.first_precision):
            return (self._log_ratio(count, center) + (block - 1) * arb.const_log2()).exp()

    def _log_ratio(self, count: int, reference: int) -> arb:
        """ln P(count) - ln P(reference); minus infinity for an impossible count."""
        if not 0 <= count <= self.n or not 0 <= reference <= self.n:
            return arb.neg_inf()
        ways = sum((arb(1 + i).lgamma() - arb(1 + j).lgamma() for i, j in self._factorials(count, reference)), arb(0))
        return ways + (count - reference) * (self._passes().log() - self._fails().log())

    def _factorials(self, count: int, reference: int) -> list[tuple[int, int]]:
        return [(reference, count), (self.n - reference, self.n - count)]

    def _passes(self) -> arb:
        return tail(self.law.exponent, self.threshold, bits=bits_in_force())

    def _fails(self) -> arb:
        return tail(self.law.exponent, 1 - self.threshold, bits=bits_in_force())


@lru_cache(maxsize=256)
def frame(passing: Passing) -> tuple[int, int]:
    """The center of the envelope and the width of its blocks."""
    with working_precision(passing.first_precision):
        center = passing.center()
        return center, passing.width_shift(center)
