"""Draws how many of n independent draws reach a threshold, without drawing them."""

from dataclasses import dataclass
from functools import lru_cache, partial

from flint import arb

from recordwise.errors import ParameterError
from recordwise.exact.numbers import bits_in_force, working_precision
from recordwise.noise.lattice import LatticeLaw
from recordwise.noise.probabilities import tail
from recordwise.noise.randomness import BitSource, LazyUniform, Secure, dyadic, one_word, uniform_below

SLACK = dyadic(1, 20)


def binomial_exact(n: int, law: LatticeLaw, threshold: int, rng: BitSource | None = None) -> int:
    """The number of n independent draws with Z >= threshold: exactly Binomial(n, P(Z >= threshold)), in time that does not
    grow with n (T-BINOMIAL, docs/theory/noise.md).

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
    """The number of zeros before the first one in a stream of fair bits: i with probability 2**-(i+1)."""
    zeros = 0
    while (word := one_word(source)) == 0:
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
        """Pick a side, a block by halving probabilities and a position in it; accept the count in proportion to its probability."""
        center, shift = frame(self)
        while True:
            right, block, offset = one_word(source) & 1, halvings(source), uniform_below(source, shift)
            distance = (block << shift) + offset
            count = center + distance if right else center - 1 - distance
            if LazyUniform(source).below(partial(self.acceptance, count, center, block)):
                return count

    def center(self) -> int:
        """A count from which probabilities fall to the right, and from whose left neighbor they fall to the left."""
        mean = (self.n + 1) * self._passes()
        center = int((mean + SLACK).mid().floor().unique_fmpz())
        if not (mean - 1 <= center and center <= mean + 2 * SLACK):
            raise ArithmeticError("the mean of a binomial law was not enclosed well enough")
        return center

    def width_shift(self, center: int) -> int:
        """The smallest power of two over which the probability halves on both sides."""
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
