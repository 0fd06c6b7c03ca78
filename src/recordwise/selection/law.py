"""The law of a selection: a key is kept iff its number of pieces plus discrete Gaussian noise reaches a threshold."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb

from recordwise.errors import ParameterError
from recordwise.exact import Number, arb_float_upper, float_upper, positive, rational, sqrt_upper, working_precision
from recordwise.noise import DiscreteGaussian
from recordwise.noise.probabilities import tail

MOST_STEPS = 256
EXACT_STEPS = 64
"""So many first entries of the table of deltas are not rounded up to a larger number of pieces."""
NEARLY_SURE = Fraction(1, 10**6)
"""The table of deltas ends where a key is missed with less than this chance; beyond it delta is 1."""
PRECISION = 192

Steps = tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLoss:
    """What several records lose together by a selection; both numbers are rounded up."""

    rho: float
    delta: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionLaw:
    """Keep a key iff pieces + Z >= threshold, Z discrete Gaussian (T-SELECT, docs/theory/selection.md)."""

    sigma: Fraction
    threshold: int

    @classmethod
    def for_delta(cls, *, rho: Number, delta: Number) -> "SelectionLaw":
        """Loss ``rho`` for one piece, and the smallest threshold that a lone piece reaches with at most ``delta``."""
        sigma, chance = selection_sigma(rho), rational(delta, parameter="delta")
        if not 0 < chance < 1:
            raise ParameterError(parameter="delta", problem=f"must lie between 0 and 1, not {delta}")
        return _for_delta(sigma, chance)

    @property
    def noise(self) -> DiscreteGaussian:
        return DiscreteGaussian(self.sigma)

    def keep_probability(self, pieces: int) -> float:
        """The chance that a key with so many pieces is published."""
        return float(self.noise.sf(self.threshold - pieces))

    def deltas(self) -> Steps:
        """delta by number of pieces, from the lattice tail, rounded up; a number between two entries takes the larger one's."""
        return _deltas(self)

    def group_loss(self, pieces: Iterable[int]) -> GroupLoss:
        """The joint loss of records, from how many of their pieces are in each key (T-SELECT-GROUP).

        No bound from the records' own rho and delta would be valid, so this is the only way to a group's loss.
        """
        counts = [int(each) for each in pieces]
        if any(count < 0 for count in counts):
            raise ParameterError(parameter="pieces", problem="must not be negative")
        rho = Fraction(sum(count**2 for count in counts)) / (2 * self.sigma**2)
        exponent = self.noise.exponent
        with working_precision(PRECISION):
            hidden = arb(1)
            for count in counts:
                hidden *= tail(exponent, 1 - (self.threshold - count), bits=PRECISION) if count else arb(1)
            delta = arb_float_upper(1 - hidden)
        return GroupLoss(rho=float_upper(rho), delta=min(max(delta, 0.0), 1.0))


def selection_sigma(rho: Number) -> Fraction:
    """The noise at which one piece costs ``rho``."""
    return sqrt_upper(1 / (2 * positive(rho, parameter="rho")))


@lru_cache(maxsize=256)
def _for_delta(sigma: Fraction, delta: Fraction) -> SelectionLaw:
    # quantile is the smallest k with P(Z >= k + 1) <= delta, and a lone piece needs Z >= threshold - 1.
    return SelectionLaw(sigma=sigma, threshold=DiscreteGaussian(sigma).quantile(1 - delta) + 2)


@lru_cache(maxsize=256)
def _deltas(law: SelectionLaw) -> Steps:
    noise = law.noise
    last = max(law.threshold + noise.quantile(1 - NEARLY_SURE), 1)
    spaced = np.ceil(np.linspace(1, last, MOST_STEPS - EXACT_STEPS)).astype(np.int64)
    counts = sorted({*range(1, min(last, EXACT_STEPS) + 1), *spaced.tolist()})
    tails = np.minimum(noise.sf_upper([law.threshold - m for m in counts]), 1.0)
    # Rounding up separately could leave two neighbours a unit apart in the wrong order.
    return tuple((m, Fraction(float(chance))) for m, chance in zip(counts, np.maximum.accumulate(tails)))
