"""Exact draws and probability bounds of laws on the integers."""

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from flint import arb

from recordwise.errors import ExtremeDrawError, ParameterError, RangeError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.functions import Function
from recordwise.exact.numbers import (
    Number,
    arb_float_lower,
    arb_float_upper,
    rational,
    working_precision,
)
from recordwise.noise import probabilities, sampler
from recordwise.noise.probabilities import Weights, log_slope_limit
from recordwise.noise.randomness import BitSource, Secure
from recordwise.noise.sampler import Draws
from recordwise.noise.table import IntArray, Side, table_for

Integers: TypeAlias = int | IntArray | Sequence[int]
REACH = 1 << 62
LARGEST = (1 << 63) - 1
RARE = arb("1e-30")


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
