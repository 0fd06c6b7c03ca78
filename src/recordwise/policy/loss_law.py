"""Epsilon at delta and power, from the privacy-loss distribution of lattice noise.

All noise of the release must be discrete Gaussian; the distribution is computed from its shifts in steps (T-LOSS-LAW).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from recordwise.errors import ParameterError, UnknownFormError
from recordwise.exact.arithmetic import FloatArray, normal_cdf
from recordwise.exact.numbers import float_upper, fraction_text, read_fraction
from recordwise.policy.atoms import One
from recordwise.policy.bands import BandTable
from recordwise.policy.conditions import EVERY
from recordwise.policy.evaluate.numpy import signed_record
from recordwise.policy.evaluate.tables import Record, is_record
from recordwise.policy.json import Bands
from recordwise.policy.meaning import Meaning, check_share, power_zcdp
from recordwise.policy.meaning import epsilon as zcdp_epsilon
from recordwise.policy.policy import Policy, compose

# The distribution, and what follows from it, rounded up. Noise of few lattice steps is taken point by point. Noise of
# many steps is replaced by continuous Gaussian noise of slightly less variance, which can be turned into it by
# drawing, so that it reveals no less.


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
    """A shift of numbers with discrete Gaussian noise.

    Noise of ``sigma`` lattice steps, a move of ``steps`` of them, ``times`` independently.
    """

    sigma: float
    steps: int
    times: int = 1

    @property
    def rho(self) -> float:
        """The zCDP loss of the move."""
        return self.times * self.steps**2 / (2 * self.sigma**2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrivacyLoss:
    """A pair of laws that bounds what a record changes.

    No harder to distinguish than what was published with and without the record.
    """

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
        mu = math.sqrt(2 * smooth + sum(2 * shift.rho * borrowed_loss(shift.sigma) for shift in fine))
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
        """Return an epsilon for which (epsilon, delta)-DP holds.

        Args:
            delta: Between 0 and 1.

        Returns:
            The epsilon, rounded up.

        Example:
            >>> round(PrivacyLoss.of([Shift(0.7, 1)]).epsilon(1e-5), 3)
            6.956
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
        """Return the largest power of a membership test.

        Args:
            false_alarm: The false-positive rate of the test.

        Returns:
            A bound on the power, never above that of the zCDP loss.
        """
        alpha = check_share(false_alarm, "false_alarm")
        known = power_zcdp(self.rho, alpha)
        if self.rho == 0 or self.rho > LARGEST_LOSS:
            return known
        if self.mu == 0:
            found = best_power(self.losses, self.masses, alpha) * self.factor + self.slack
            return min(known, found * (1 + RELATIVE))
        spread = math.sqrt(2 * self.rho)
        # Beyond the last one the bound is above 1.
        tried = np.linspace(-4 * spread - self.rho, min(4 * spread + self.rho, -math.log(alpha)), 161)
        for _ in range(3):
            powers = alpha * np.exp(tried) + self.delta_at(tried)
            best = int(np.argmin(powers))
            tried = np.linspace(tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)], 41)
        return min(known, float(powers.min()) * (1 + RELATIVE))


def best_power(losses: FloatArray, masses: FloatArray, false_alarm: float) -> float:
    """Return the power of the best test, from losses and masses.

    It rejects where the loss is largest, and at one loss by chance.
    """
    order = np.argsort(-losses)
    with np.errstate(over="ignore"):
        alarms = np.cumsum((masses * np.exp(-losses))[order])
    full = int(np.searchsorted(alarms, false_alarm))
    if full == len(order):
        return 1.0
    rest = (false_alarm - (alarms[full - 1] if full else 0.0)) * math.exp(min(losses[order[full]], LARGEST_LOG))
    return float(min(masses[order[:full]].sum() + rest, 1.0))


def mixed_delta(epsilon: FloatArray, mu: FloatArray, losses: FloatArray, masses: FloatArray) -> FloatArray:
    """Return the mean over the losses of two normals' delta.

    Unit normals ``mu`` apart, at what the losses leave of each epsilon.
    """
    over, apart = _left_over(epsilon, mu, losses)
    low = normal_cdf(-apart / 2 - over / apart)
    # Far out the second term is a product of a huge and a tiny number.
    with np.errstate(over="ignore"):
        second = np.where(low > 0, np.exp(np.minimum(over, LARGEST_LOG)) * low, 0.0)
    return np.asarray(np.maximum(normal_cdf(apart / 2 - over / apart) - second, 0.0) @ masses)


def mixed_alarms(epsilon: FloatArray, mu: FloatArray, losses: FloatArray, masses: FloatArray) -> FloatArray:
    """Return how often the loss exceeds each epsilon where the record is absent, for the same normals and losses."""
    over, apart = _left_over(epsilon, mu, losses)
    return np.asarray(normal_cdf(-apart / 2 - over / apart) @ (masses * np.exp(-losses)))


def _left_over(epsilon: FloatArray, mu: FloatArray, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what each loss leaves of each epsilon, and how far apart the normals are."""
    return epsilon[:, None] - losses[None, :], np.maximum(mu, TOGETHER)[:, None]


def borrowed_loss(sigma: float) -> float:
    """Return how much giving up the variance ``BORROWED`` raises the loss.

    ``sigma`` is in lattice steps.
    """
    return 1 / (1 - BORROWED / sigma**2)


@lru_cache(maxsize=256)
def coarse_loss(shifts: tuple[Shift, ...], points: int = POINTS) -> tuple[FloatArray, FloatArray, float]:
    """Return coarse noise's loss distribution on a grid, and lost mass."""
    if not shifts:
        return np.zeros(1), np.ones(1), 0.0
    numbers = sum(shift.times for shift in shifts)
    width = math.sqrt(2 * sum(shift.rho for shift in shifts)) / (points * math.sqrt(1 + numbers / 10))
    return convolved([(*_on_grid(shift, width), shift.times) for shift in shifts], width)


def convolved(laws: Sequence[tuple[int, FloatArray, int]], width: float) -> tuple[FloatArray, FloatArray, float]:
    """Return the law of a sum of independent losses on a grid, and lost mass.

    Each law is its first grid point, its masses, and how many such numbers there are.
    """
    numbers = sum(times for _, _, times in laws)
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
    """Return the law of a shift's privacy loss on a grid.

    The loss is rho + steps Z/sigma^2; each mass is divided among its two grid neighbors so that both laws keep
    their mass (T-LOSS-LAW).
    """
    losses, weights = shift_losses(shift.sigma, shift.steps)
    return on_grid(losses, weights, width)


def shift_losses(sigma: float, steps: int) -> tuple[FloatArray, FloatArray]:
    """Return the loss at each discrete Gaussian draw, with its probability."""
    reach = math.ceil(REACH * sigma) + 1
    noise = np.arange(-reach, reach + 1)
    weights = np.exp(-(noise**2) / (2 * sigma**2))
    losses = steps**2 / (2 * sigma**2) + steps / sigma**2 * noise
    return np.asarray(losses, np.float64), np.asarray(weights / weights.sum(), np.float64)


def on_grid(losses: FloatArray, weights: FloatArray, width: float) -> tuple[int, FloatArray]:
    """Return a loss's first grid point, and its masses."""
    below = np.floor(losses / width)
    # The share of the lower neighbour is (e^(width - rest) - 1)/(e^width - 1), rest being the distance from it; less is safe.
    share = np.expm1(width - (losses - below * width)) / math.expm1(width) * (1 - RELATIVE)
    share = np.clip(share, 0.0, 1.0)
    start = int(below.min())
    place = (below - start).astype(np.int64)
    masses = np.zeros(int(place.max()) + 2)
    np.add.at(masses, place, weights * share)
    np.add.at(masses, place + 1, weights * (1 - share))
    return start, masses


# A release as shifts in steps: part by part, and for one record.


COARSEST = 1
"""Lattice steps of sigma below which nothing is replaced by continuous noise."""
TABLE_DELTA, TABLE_FALSE_ALARM = 1e-5, 0.05
"""Where a page states epsilon and power."""
RATIO, LARGEST_MU, SMALLEST_MU = 1.02, 12.0, 0.02
"""Of the entries of a table: a number between two of them is rounded up by about 2 % at most."""
TABLE_POINTS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class LatticePart:
    """Numbers with discrete Gaussian noise of ``sigma`` lattice steps.

    ``policy`` is the loss of one of them.
    """

    sigma: Fraction
    policy: Policy
    times: int = 1
    """How many such numbers a record changes, independently drawn."""
    varies: bool = False
    """Whether ``sigma`` is the smallest of several, which differ by group."""
    bands: BandTable | None = None
    """Where noise follows the sizes of cells: which of ``sigmas`` a record's cell has; ``sigma`` is the smallest of them."""
    sigmas: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        if len(self.sigmas) != (0 if self.bands is None else len(self.bands.edges)):
            raise ParameterError(parameter="sigmas", problem="need one for each band")

    def of(self, record: Record) -> "LatticePart":
        """Return the part with the sigma of the record's band.

        Args:
            record: A record as a mapping of scalars.

        Returns:
            The part without bands.
        """
        if self.bands is None:
            return self
        groups, _ = signed_record(self.policy.rho, record)
        return replace(self, sigma=self.sigmas[self.bands.band_of(groups)], bands=None, sigmas=())

    def is_smoothed(self) -> bool:
        """Return whether continuous noise replaces the part.

        For fine noise, and for noise without an exact lattice.
        """
        return self.varies or self.bands is not None or self.sigma >= FINE

    def is_fixed(self) -> bool:
        """Whether the shift is the same for every record."""
        return all(condition == EVERY and atom == One() for condition, atom in self.policy.rho)

    def shift(self, rho: float) -> Shift:
        """The whole number of steps that a loss stands for, rounded up.

        Args:
            rho: What one of the numbers costs the record.

        Returns:
            The shift of all of them.
        """
        steps = math.ceil(float(self.sigma) * math.sqrt(2 * rho) * (1 - 1e-9))
        return Shift(float(self.sigma), steps, self.times)

    def smooth(self) -> Policy:
        """The loss of continuous noise that reveals no less."""
        return self.policy * (self.times * self.weight())

    def weight(self) -> Fraction:
        """Return how much giving up the variance ``BORROWED`` raises the loss."""
        return 1 / (1 - Fraction(BORROWED) / self.sigma**2)

    def weights(self) -> float | tuple[float, ...]:
        """The same, rounded up, for each band where there are several."""
        if self.bands is None:
            return float_upper(self.weight())
        return tuple(float_upper(replace(self, sigma=each, bands=None, sigmas=()).weight()) for each in self.sigmas)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatticePolicy:
    """All numbers that a fixed plan draws with discrete Gaussian noise."""

    parts: tuple[LatticePart, ...]

    def policy(self) -> Policy:
        """The zCDP loss of all numbers: the policy of the release."""
        return compose([part.policy * part.times for part in self.parts])

    def loss(self, record: Record) -> PrivacyLoss:
        """The privacy-loss distribution of one record.

        Args:
            record: A record as a mapping of scalars.

        Returns:
            The distribution, rounded up.

        Raises:
            ParameterError: If a table is given in place of one record.
        """
        if not is_record(record):
            raise ParameterError(parameter="record", problem="must be one record, not a table")
        parts = [part.of(record) for part in self.parts]
        smooth = [part for part in parts if part.is_smoothed()]
        return PrivacyLoss.of(
            [part.shift(float(part.policy.loss(record))) for part in parts if not part.is_smoothed()],
            smooth=float(compose([part.smooth() for part in smooth]).loss(record)),
            smooth_numbers=sum(part.times for part in smooth),
        )

    def meaning(self, record: Record, *, delta: float = 1e-5, false_alarm: float = 0.05) -> Meaning:
        """Return a record's epsilon and test power from the exact laws.

        Args:
            record: A record as a mapping of scalars.
            delta: Where epsilon is stated.
            false_alarm: The false-positive rate of the test.

        Returns:
            The loss with its epsilon and power.

        Example:
            >>> from fractions import Fraction
            >>> from recordwise.policy import gaussian_sum, meaning
            >>> part = LatticePart(sigma=Fraction(100), policy=gaussian_sum("emp", sigma=100))
            >>> exact = LatticePolicy(parts=(part,)).meaning({"emp": 45})
            >>> round(exact.epsilon, 3), round(meaning(exact.rho).epsilon, 3)
            (1.772, 1.927)
        """
        found = self.loss(record)
        return Meaning(
            rho=float(self.policy().loss(record)),
            delta=delta,
            epsilon=found.epsilon(delta),
            power=found.power(false_alarm),
            false_alarm=false_alarm,
        )

    def table(self) -> "MeaningTable | None":
        """Return a page's table of epsilon and power, or None.

        None where noise is too coarse for it.
        """
        if any(part.sigma <= COARSEST and not part.is_fixed() for part in self.parts):
            return None
        exact = [part for part in self.parts if part.is_fixed() and not part.is_smoothed()]
        smooth = [part for part in self.parts if part not in exact]
        shifts = (part.shift(float(part.policy.loss({}))) for part in exact)
        base = [shift for shift in shifts if shift.steps]
        weights = tuple(part.weights() if part in smooth else 0.0 for part in self.parts)
        found = MeaningTable.of(
            base,
            compose([part.smooth() for part in smooth]),
            weights=weights,
            numbers=sum(part.times for part in smooth),
        )
        return found if np.all(np.isfinite(found.epsilon)) else None

    def to_json(self) -> list[Any]:
        """The saved form."""
        return [_part_json(part) for part in self.parts]

    @classmethod
    def from_json(cls, form: Any, bands: Bands | None = None) -> "LatticePolicy":
        """Read back what ``to_json`` wrote; an unknown form is refused.

        Args:
            form: The saved form.
            bands: The band tables that it names, by digest.

        Returns:
            The policy.

        Raises:
            UnknownFormError: If the form is not one that this version knows.
        """
        try:
            return cls(parts=tuple(_part_from_json(*row, bands=bands) for row in form))
        except (LookupError, TypeError, ValueError):
            raise UnknownFormError(what="lattice noise", found=type(form).__name__) from None


def _part_json(part: LatticePart) -> list[Any]:
    """Return the part's JSON, its band table named by digest."""
    known = [fraction_text(part.sigma), part.times, part.varies, part.policy.to_json()]
    return known if part.bands is None else [*known, part.bands.digest, [fraction_text(each) for each in part.sigmas]]


def _part_from_json(
    sigma: str,
    times: int,
    varies: bool,
    policy: Any,
    table: str | None = None,
    sigmas: tuple[str, ...] = (),
    *,
    bands: Bands | None,
) -> LatticePart:
    found = LatticePart(
        sigma=read_fraction(sigma),
        times=int(times),
        varies=bool(varies),
        policy=Policy.from_json(policy, bands),
        bands=None if table is None else dict(bands or {})[table],
        sigmas=tuple(map(read_fraction, sigmas)),
    )
    if found.sigmas and (found.varies or found.sigma != min(found.sigmas)):
        raise ValueError("no sigma for each band")
    if found.sigma <= (COARSEST if found.varies else 0) or found.times < 1 or found.policy.delta_terms:
        raise ValueError("no lattice noise")
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeaningTable:
    """Epsilon and power by the smooth part's loss, rounded up."""

    smooth: Policy
    weights: tuple[float | tuple[float, ...], ...]
    """The smooth part of a loss is this many times what each part costs, by band where there are several; 0 for parts that are in
    every entry."""
    rho: FloatArray
    """0, then halves of squares of ``SMALLEST_MU`` times powers of ``RATIO``."""
    epsilon: FloatArray
    power: FloatArray

    @classmethod
    def of(
        cls, base: Iterable[Shift], smooth: Policy, *, weights: tuple[float | tuple[float, ...], ...], numbers: int
    ) -> "MeaningTable":
        """Return the table for records that all have shifts ``base``."""
        # Rounded up, so that plans share their tables.
        found = _table(tuple(sorted(base)), 1 << max(numbers - 1, 0).bit_length())
        return cls(smooth=smooth, weights=weights, rho=found[0], epsilon=found[1], power=found[2])

    def at(self, rho: float) -> tuple[float, float]:
        """Return epsilon and power at a loss of the smooth part.

        Infinity and 1 beyond the table.
        """
        place = int(np.searchsorted(self.rho, rho * (1 - 1e-12)))
        if place == len(self.rho):
            return math.inf, 1.0
        return float(self.epsilon[place]), float(self.power[place])


@lru_cache(maxsize=64)
def _table(base: tuple[Shift, ...], numbers: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return losses of the smooth part with their epsilons and powers."""
    entries = math.ceil(math.log(LARGEST_MU / SMALLEST_MU) / math.log(RATIO))
    mu = np.concatenate([[0.0], SMALLEST_MU * RATIO ** np.arange(entries)])
    losses, masses, slack = coarse_loss(base, TABLE_POINTS)
    factor, apart = (1 + RIPPLE) ** numbers * (1 + RELATIVE), mu * (1 + RELATIVE)

    def delta(epsilon: FloatArray) -> FloatArray:
        return mixed_delta(epsilon, apart, losses, masses) * factor + slack

    def alarms(epsilon: FloatArray) -> FloatArray:
        return mixed_alarms(epsilon, apart, losses, masses)

    widest = mu**2 / 2 + 8 * mu
    highest = widest + max(float(losses[-1]), 0.0)
    epsilon = _least_below(delta, TABLE_DELTA * (1 - RELATIVE), np.zeros(len(mu)), highest)
    # Every epsilon bounds the power. The derivative of this bound is 0 where the false alarms are as many as allowed.
    reach = widest + float(np.abs(losses).max())
    best = _least_below(alarms, TABLE_FALSE_ALARM, -reach, reach)
    power = TABLE_FALSE_ALARM * np.exp(np.minimum(best, LARGEST_LOG)) + delta(best)
    found = np.where(delta(epsilon) <= TABLE_DELTA, epsilon, np.inf)
    return mu**2 / 2, found, np.minimum(power * (1 + RELATIVE), 1.0)


SEARCH_STEPS, CLOSE = 16, 1e-7


def _least_below(
    function: Callable[[FloatArray], FloatArray], wanted: float, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return where falling functions reach a number, or a little to the right.

    Regula falsi in the root of twice the negative logarithm, which is nearly a straight line for tails of normals. The end that
    stays counts half (Illinois); every fourth step halves, for what falls in steps.
    """

    def height(place: FloatArray) -> FloatArray:
        return np.asarray(np.sqrt(-2 * np.log(np.clip(function(place), 1e-300, 1.0)))) - math.sqrt(
            -2 * math.log(wanted)
        )

    at_low, at_high = height(low), height(high)
    low, high = low, np.where(at_low >= 0, low, high)
    before = np.zeros(len(low))
    for step in range(SEARCH_STEPS):
        share = 0.5 if step % 4 == 3 else np.clip(at_low / np.minimum(at_low - at_high, -1e-300), 1e-6, 1 - 1e-6)
        middle = low + (high - low) * share
        found = height(middle)
        reached = found >= 0
        at_low, at_high = (
            np.where(reached, np.where(before > 0, at_low / 2, at_low), found),
            np.where(reached, found, np.where(before < 0, at_high / 2, at_high)),
        )
        low, high, before = np.where(reached, low, middle), np.where(reached, middle, high), np.where(reached, 1, -1)
        if np.all(high - low <= CLOSE * np.maximum(np.abs(high), 1.0)):
            break
    return high
