"""Epsilon at delta and the power of a test from the privacy-loss distribution of lattice Gaussian noise, rounded up (T-LOSS-LAW).

Noise of few lattice steps is taken point by point. Noise of many steps is replaced by continuous Gaussian noise of slightly less
variance, which can be turned into it by drawing: so it reveals no less.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from recordwise.exact.arithmetic import FloatArray, normal_cdf
from recordwise.policy.conversions import check_share
from recordwise.policy.conversions import epsilon as zcdp_epsilon
from recordwise.policy.meaning import power_zcdp

FINE = 32
"""Lattice steps of sigma from which noise is replaced by continuous noise."""
BORROWED = 0.5
"""The variance, in squared lattice steps, that the continuous noise lacks."""
RIPPLE = 2 * math.exp(-2 * math.pi**2 * BORROWED) * (1 + 1e-3)
"""How far its density may be off, relatively: the theta function of ``BORROWED`` less 1."""
REACH = 12.0
"""Standard deviations after which noise is counted as lost: less than 1e-32 of its mass."""
LOST = 1e-30
POINTS = 120
"""Of the common grid, to one standard deviation of the loss; more where there are many numbers, so that what rounding to the grid
adds to the variance stays below a thousandth of it."""
RELATIVE = 1e-9
"""Above the rounding of sums of positive numbers, relatively."""
TOGETHER = 1e-9
"""Normals closer than that are taken to be so far apart."""
LARGEST_LOG = 700.0
LARGEST_LOSS = 1e4
"""Beyond it nothing is hidden, and the conversion from zCDP says so as well."""


@dataclass(frozen=True, slots=True, order=True)
class Shift:
    """A number with discrete Gaussian noise of ``sigma`` lattice steps that moves by ``steps`` of them, ``times`` independently."""

    sigma: float
    steps: int
    times: int = 1

    @property
    def rho(self) -> float:
        """The zCDP loss of the move."""
        return self.times * self.steps**2 / (2 * self.sigma**2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrivacyLoss:
    """A pair of laws that is no harder to tell apart than what was published with and without a record."""

    losses: FloatArray
    """Where the loss of the coarse noise has its mass."""
    masses: FloatArray
    mu: float
    """The distance of two unit normals: the fine noise together."""
    factor: float
    """By which probabilities may exceed those of this pair, from the ripples of ``RIPPLE``."""
    slack: float
    """Added to every delta: what was lost and rounded."""
    rho: float
    """The zCDP loss, whose conversions hold as well."""

    @classmethod
    def of(cls, shifts: Iterable[Shift], *, smooth: float = 0.0, smooth_numbers: int = 0) -> "PrivacyLoss":
        """The loss of several numbers drawn independently.

        Args:
            shifts: By how much each number moves with the record.
            smooth: The zCDP loss of further numbers, already replaced by continuous noise.
            smooth_numbers: How many those are.

        Returns:
            The pair of laws, rounded up.
        """
        moved = [shift for shift in shifts if shift.steps]
        fine = [shift for shift in moved if shift.sigma >= FINE]
        coarse = tuple(sorted(shift for shift in moved if shift.sigma < FINE))
        mu = math.sqrt(2 * smooth + sum(2 * shift.rho * borrowed(shift.sigma) for shift in fine))
        numbers = smooth_numbers + sum(shift.times for shift in fine)
        losses, masses, slack = coarse_loss(coarse)
        return cls(
            losses=losses,
            masses=masses,
            mu=mu * (1 + RELATIVE),
            factor=(1 + RIPPLE) ** numbers,
            slack=slack,
            rho=(smooth + sum(shift.rho for shift in moved)) * (1 + RELATIVE),
        )

    def delta_at(self, epsilon: Any) -> FloatArray:
        """The delta at each epsilon, rounded up.

        Args:
            epsilon: One epsilon or several; they may be negative.

        Returns:
            An array of deltas, at most 1 each.
        """
        wanted = np.atleast_1d(np.asarray(epsilon, np.float64))
        found = mixed_delta(wanted, np.full(wanted.shape, self.mu), self.losses, self.masses)
        return np.minimum(found * self.factor * (1 + RELATIVE) + self.slack, 1.0)

    def epsilon(self, delta: float) -> float:
        """An epsilon for which (epsilon, delta)-DP holds, never above that of the zCDP loss.

        Args:
            delta: Between 0 and 1.

        Returns:
            The epsilon, rounded up.
        """
        share, known = check_share(delta, "delta"), zcdp_epsilon(self.rho, delta)
        if self.rho == 0 or self.rho > LARGEST_LOSS or float(self.delta_at(known)[0]) > share:
            return known
        if float(self.delta_at(0.0)[0]) <= share:
            return 0.0
        low, high = 0.0, known
        while high - low > 1e-10 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if float(self.delta_at(middle)[0]) > share else (low, middle)
        return high

    def power(self, false_alarm: float = 0.05) -> float:
        """The largest power of a membership test at a false-positive rate: every epsilon bounds it, and the best one is taken.

        Args:
            false_alarm: The false-positive rate of the test.

        Returns:
            A bound on the power, never above that of the zCDP loss.
        """
        alpha = check_share(false_alarm, "false_alarm")
        known = power_zcdp(self.rho, alpha)
        if self.rho == 0 or self.rho > LARGEST_LOSS:
            return known
        spread = math.sqrt(2 * self.rho)
        # Beyond the last one the bound is above 1.
        tried = np.linspace(-4 * spread - self.rho, min(4 * spread + self.rho, -math.log(alpha)), 161)
        for _ in range(3):
            powers = alpha * np.exp(tried) + self.delta_at(tried)
            best = int(np.argmin(powers))
            tried = np.linspace(tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)], 41)
        return min(known, float(powers.min()) * (1 + RELATIVE))


def mixed_delta(epsilon: FloatArray, mu: FloatArray, losses: FloatArray, masses: FloatArray) -> FloatArray:
    """The mean over the losses of the delta of two unit normals ``mu`` apart, at what they leave of each epsilon."""
    over, apart = epsilon[:, None] - losses[None, :], np.maximum(mu, TOGETHER)[:, None]
    low = normal_cdf(-apart / 2 - over / apart)
    # Far out the second term is a product of a huge and a tiny number.
    with np.errstate(over="ignore"):
        second = np.where(low > 0, np.exp(np.minimum(over, LARGEST_LOG)) * low, 0.0)
    return np.asarray(np.maximum(normal_cdf(apart / 2 - over / apart) - second, 0.0) @ masses)


def borrowed(sigma: float) -> float:
    """By how much the loss grows if noise of so many lattice steps gives up the variance ``BORROWED``."""
    return 1 / (1 - BORROWED / sigma**2)


@lru_cache(maxsize=256)
def coarse_loss(shifts: tuple[Shift, ...], points: int = POINTS) -> tuple[FloatArray, FloatArray, float]:
    """The distribution of the loss of coarse noise on a common grid, and the mass that was lost or rounded."""
    if not shifts:
        return np.zeros(1), np.ones(1), 0.0
    numbers = sum(shift.times for shift in shifts)
    width = math.sqrt(2 * sum(shift.rho for shift in shifts)) / (points * math.sqrt(1 + numbers / 10))
    laws = [(*_on_grid(shift, width), shift.times) for shift in shifts]
    size = sum(times * (len(masses) - 1) for _, masses, times in laws) + 1
    length = 1 << max(size - 1, 1).bit_length()
    product = np.ones(length // 2 + 1, np.complex128)
    for _, masses, times in laws:
        product *= np.fft.rfft(masses, length) ** times
    found = np.maximum(np.fft.irfft(product, length)[:size], 0.0)
    first = sum(times * start for start, _, times in laws)
    # A Fourier transform and its inverse are off by a few roundings for each doubling of the length, in the norm of squares.
    rounding = 8 * (numbers + 2) * length.bit_length() * 2.0**-53 * math.sqrt(length)
    rounding *= max(float(np.sqrt(np.sum(masses**2))) for _, masses, _ in laws)
    # At either end no more than that is moved up, or counted as lost.
    low = int(np.searchsorted(np.cumsum(found), rounding))
    high = size - int(np.searchsorted(np.cumsum(found[::-1]), rounding))
    masses = found[low:high]
    masses[0] += found[:low].sum()
    return (
        np.asarray((first + np.arange(low, high)) * width, np.float64),
        masses,
        rounding + numbers * LOST + float(found[high:].sum()),
    )


def _on_grid(shift: Shift, width: float) -> tuple[int, FloatArray]:
    """The law of the loss rho + steps Z/sigma^2, each mass divided among its two grid neighbors so that both laws keep their
    mass (T-LOSS-LAW)."""
    reach = math.ceil(REACH * shift.sigma) + 1
    noise = np.arange(-reach, reach + 1)
    weights = np.exp(-(noise**2) / (2 * shift.sigma**2))
    losses = shift.steps**2 / (2 * shift.sigma**2) + shift.steps / shift.sigma**2 * noise
    below = np.floor(losses / width)
    # The share of the lower neighbour is (e^(width - rest) - 1)/(e^width - 1), rest being the distance from it; less is safe.
    share = np.expm1(width - (losses - below * width)) / math.expm1(width) * (1 - RELATIVE)
    share = np.clip(share, 0.0, 1.0)
    start = int(below[0])
    place = (below - start).astype(np.int64)
    masses = np.zeros(int(place[-1]) + 2)
    np.add.at(masses, place, weights * share)
    np.add.at(masses, place + 1, weights * (1 - share))
    return start, masses / weights.sum()


def sigma_steps(sigma: Fraction, step: Fraction) -> float:
    """A sigma in lattice steps."""
    return float(sigma / step)


def epsilon_of(shifts: Sequence[Shift], delta: float) -> float:
    """The epsilon at ``delta`` of numbers with discrete Gaussian noise, drawn independently and fixed beforehand, rounded up.

    Args:
        shifts: By how much each number moves with the record.
        delta: Between 0 and 1.

    Returns:
        The epsilon.

    Example:
        >>> round(epsilon_of([Shift(0.7, 1)], 1e-5), 3)
        6.956
    """
    return PrivacyLoss.of(shifts).epsilon(delta)
