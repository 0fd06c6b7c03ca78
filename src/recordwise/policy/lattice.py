"""A release whose noise is all discrete Gaussian, as its privacy-loss distribution needs it: shifts in steps (T-LOSS-LAW)."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from recordwise.errors import ParameterError, UnknownFormError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import float_upper, fraction_text, read_fraction
from recordwise.policy.atoms import One
from recordwise.policy.bands import BandTable
from recordwise.policy.conditions import EVERY
from recordwise.policy.evaluate.numpy import signed_record
from recordwise.policy.evaluate.tables import Record, is_record
from recordwise.policy.json import Bands
from recordwise.policy.meaning import Meaning
from recordwise.policy.policy import Policy, composed
from recordwise.policy.privacy_loss import (
    BORROWED,
    FINE,
    LARGEST_LOG,
    RELATIVE,
    RIPPLE,
    PrivacyLoss,
    Shift,
    coarse_loss,
    mixed_delta,
)

COARSEST = 1
"""Lattice steps of sigma below which nothing is replaced by continuous noise."""
TABLE_DELTA, TABLE_FALSE_ALARM = 1e-5, 0.05
"""Where a page states epsilon and power."""
RATIO, LARGEST_MU, SMALLEST_MU = 1.02, 12.0, 0.02
"""Of the entries of a table: a number between two of them is rounded up by about 2 % at most."""
TABLE_POINTS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class LatticePart:
    """Numbers with discrete Gaussian noise of ``sigma`` lattice steps; ``policy`` is what one of them costs a record."""

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
        """The part as one record meets it: with the sigma of its own cell's band.

        Args:
            record: A record as a mapping of scalars.

        Returns:
            The part without bands.
        """
        if self.bands is None:
            return self
        groups, _ = signed_record(self.policy.rho, record)
        return replace(self, sigma=self.sigmas[self.bands.band_of(groups)], bands=None, sigmas=())

    def smoothed(self) -> bool:
        """Whether it is replaced by continuous noise: fine noise, and noise whose lattice is not known exactly."""
        return self.varies or self.bands is not None or self.sigma >= FINE

    def fixed(self) -> bool:
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
        """By how much the loss grows if the noise gives up the variance ``BORROWED``; in the band where it grows most."""
        return 1 / (1 - Fraction(BORROWED) / self.sigma**2)

    def weights(self) -> float | tuple[float, ...]:
        """The same, rounded up, for each band where there are several."""
        if self.bands is None:
            return float_upper(self.weight())
        return tuple(float_upper(replace(self, sigma=each, bands=None, sigmas=()).weight()) for each in self.sigmas)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatticePolicy:
    """What a plan, fixed beforehand, draws: every number with discrete Gaussian noise. Public, like a policy."""

    parts: tuple[LatticePart, ...]

    def policy(self) -> Policy:
        """The zCDP loss of all numbers: the policy of the release."""
        return composed([part.policy * part.times for part in self.parts])

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
        smooth = [part for part in parts if part.smoothed()]
        return PrivacyLoss.of(
            [part.shift(float(part.policy.loss(record))) for part in parts if not part.smoothed()],
            smooth=float(composed([part.smooth() for part in smooth]).loss(record)),
            smooth_numbers=sum(part.times for part in smooth),
        )

    def meaning(self, record: Record, *, delta: float = 1e-5, false_alarm: float = 0.05) -> Meaning:
        """What a record's loss means: an epsilon at ``delta`` and the power of the best membership test, from the exact laws.

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
        """Epsilon and power by the loss of the smooth part, for a page; None where noise is too coarse for it."""
        if any(part.sigma <= COARSEST and not part.fixed() for part in self.parts):
            return None
        exact = [part for part in self.parts if part.fixed() and not part.smoothed()]
        smooth = [part for part in self.parts if part not in exact]
        shifts = (part.shift(float(part.policy.loss({}))) for part in exact)
        base = [shift for shift in shifts if shift.steps]
        weights = tuple(part.weights() if part in smooth else 0.0 for part in self.parts)
        found = MeaningTable.of(
            base,
            composed([part.smooth() for part in smooth]),
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
            return cls(parts=tuple(_part(*row, bands=bands) for row in form))
        except (LookupError, TypeError, ValueError):
            raise UnknownFormError(what="lattice noise", found=type(form).__name__) from None


def _part_json(part: LatticePart) -> list[Any]:
    """The band table by its digest; it is saved with the policy, which names it as well."""
    known = [fraction_text(part.sigma), part.times, part.varies, part.policy.to_json()]
    return known if part.bands is None else [*known, part.bands.digest, [fraction_text(each) for each in part.sigmas]]


def _part(
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
    """Epsilon and power, each rounded up to the next entry, by the loss of the smooth part of a release."""

    smooth: Policy
    weights: tuple[float | tuple[float, ...], ...]
    """The smooth part of a loss is so many times what each part costs, by band where there are several; 0 for parts that are in
    every entry."""
    rho: FloatArray
    """0, then halves of squares of ``SMALLEST_MU`` times powers of ``RATIO``."""
    epsilon: FloatArray
    power: FloatArray

    @classmethod
    def of(
        cls, base: Iterable[Shift], smooth: Policy, *, weights: tuple[float | tuple[float, ...], ...], numbers: int
    ) -> "MeaningTable":
        """The table for records that all have the shifts ``base``; ``numbers`` is how many numbers are smooth."""
        # Rounded up, so that plans share their tables.
        found = _table(tuple(sorted(base)), 1 << max(numbers - 1, 0).bit_length())
        return cls(smooth=smooth, weights=weights, rho=found[0], epsilon=found[1], power=found[2])

    def at(self, rho: float) -> tuple[float, float]:
        """Epsilon and power at a loss of the smooth part; infinity and 1 beyond the table."""
        place = int(np.searchsorted(self.rho, rho * (1 - 1e-12)))
        if place == len(self.rho):
            return math.inf, 1.0
        return float(self.epsilon[place]), float(self.power[place])


@lru_cache(maxsize=64)
def _table(base: tuple[Shift, ...], numbers: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Losses of the smooth part, and epsilon and power at each, for all of them at once."""
    entries = math.ceil(math.log(LARGEST_MU / SMALLEST_MU) / math.log(RATIO))
    mu = np.concatenate([[0.0], SMALLEST_MU * RATIO ** np.arange(entries)])
    losses, masses, slack = coarse_loss(base, TABLE_POINTS)
    factor = (1 + RIPPLE) ** numbers * (1 + RELATIVE)

    def delta(epsilon: FloatArray) -> FloatArray:
        return mixed_delta(epsilon, mu * (1 + RELATIVE), losses, masses) * factor + slack

    return mu**2 / 2, _least_epsilon(delta, mu, losses), _least_power(delta, mu, losses)


def _least_epsilon(delta: Callable[[FloatArray], FloatArray], mu: FloatArray, losses: FloatArray) -> FloatArray:
    """The upper end of a bisection: delta is kept there, up to a width of a few digits beyond what is shown."""
    low, high = np.zeros(len(mu)), mu**2 / 2 + 8 * mu + max(float(losses[-1]), 0.0)
    for _ in range(26):
        middle = (low + high) / 2
        kept = delta(middle) <= TABLE_DELTA
        low, high = np.where(kept, low, middle), np.where(kept, middle, high)
    return np.where(delta(high) <= TABLE_DELTA, high, np.inf)


def _least_power(delta: Callable[[FloatArray], FloatArray], mu: FloatArray, losses: FloatArray) -> FloatArray:
    """Every epsilon bounds the power; a golden section finds a good one."""
    reach = mu**2 / 2 + 4 * mu + float(np.abs(losses).max())
    low, high, golden = -reach, reach.copy(), (math.sqrt(5) - 1) / 2

    def bound(epsilon: FloatArray) -> FloatArray:
        return TABLE_FALSE_ALARM * np.exp(np.minimum(epsilon, LARGEST_LOG)) + delta(epsilon)

    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = bound(left), bound(right)
    best = np.minimum(at_left, at_right)
    for _ in range(14):
        keep = at_left < at_right
        low, high = np.where(keep, low, left), np.where(keep, right, high)
        # One of the two inner points stays, and is the other one now.
        tried = np.where(keep, high - golden * (high - low), low + golden * (high - low))
        found = bound(tried)
        left, right = np.where(keep, tried, right), np.where(keep, left, tried)
        at_left, at_right = np.where(keep, found, at_right), np.where(keep, at_left, found)
        best = np.minimum(best, found)
    return np.minimum(best * (1 + RELATIVE), 1.0)
