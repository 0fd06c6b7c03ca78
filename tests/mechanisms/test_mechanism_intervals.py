"""Coverage of noise intervals, exactly, from the probabilities of the law that is drawn, at the grids that are really used."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

import recordwise as rw
from mechanisms.drawn_laws import laid, moved
from mechanisms.mechanism_catalogue import ONE_SIDED, SIGNED, TOTALS, Entry
from recordwise.mechanisms import Noisy
from recordwise.mechanisms.base import last_digits, rounded
from recordwise.noise import LatticeLaw

PROBES = 1 << 10
FINEST_UNIT = 100
"""A unit of an end's last digit is at most this part of what one scale of noise is worth."""


def last_noise(holds: Callable[[NDArray[np.int64]], NDArray[np.bool_]], reach: int) -> int:
    """The largest noise from 0 to ``reach`` for which an interval still holds its total; the ends never fall as the noise grows."""
    low, high = 0, reach
    while high - low > 1:
        around = np.unique(np.linspace(low, high, PROBES).astype(np.int64))
        held = holds(around)
        assert np.all(np.diff(held.astype(np.int8)) <= 0)
        low = int(around[np.count_nonzero(held) - 1])
        high = int(around[min(int(np.count_nonzero(held)), len(around) - 1)])
    return low


def covering_noise(entry: Entry, noisy: Noisy, law: LatticeLaw, total: float, confidence: float) -> tuple[int, int]:
    """The smallest and the largest noise for which the interval holds the total."""
    reach = 3 * law.quantile((1 + confidence) / 2) + 4096

    def low_holds(noise: NDArray[np.int64]) -> NDArray[np.bool_]:
        return entry.mechanism.estimate(moved(noisy, noise), confidence=confidence).low <= total

    def high_holds(noise: NDArray[np.int64]) -> NDArray[np.bool_]:
        return entry.mechanism.estimate(moved(noisy, -noise), confidence=confidence).high >= total

    return -last_noise(high_holds, reach), last_noise(low_holds, reach)


def rounding_allowed(entry: Entry, total: float) -> tuple[float, float]:
    """How far, in the noise's units, rounding may move the ends of an interval around this total: down from it and up from it."""
    mechanism = entry.mechanism
    unit = max(float(mechanism._noise_worth(np.array(total))), 0.0) / FINEST_UNIT
    here = mechanism._apply_function(total)
    grid = float(mechanism.grid(entry.step))
    return float(here - mechanism._apply_function(max(total - unit, 0.0))) / grid, float(
        mechanism._apply_function(total + unit) - here
    ) / grid


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("entry", ONE_SIDED, ids=str)
@pytest.mark.theorem("T-INTERVAL")
@pytest.mark.costly
@pytest.mark.sampled
def test_coverage_is_at_least_the_level_and_at_most_two_atoms_and_a_last_digit_more(
    entry: Entry, confidence: float
) -> None:
    """Rounding outward may add lattice points whose distance from the end is lost in a float; they are counted too.

    At total 0 a transform's interval is cut at 0, so that no noise is too low: it holds with (1 + confidence)/2 at least.
    """
    for total in TOTALS:
        noisy, law = laid(entry.mechanism, [total], entry.step)
        amount = float(total * entry.step)
        low, high = covering_noise(entry, noisy, law, amount, confidence)
        quantile = law.quantile((1 + confidence) / 2)
        lost = math.ceil(abs(int(noisy.points[0])) * 2.0**-43)
        atom = float(law.pmf(quantile))
        cut = entry.transforms and total == 0
        coverage = 1 - (0.0 if cut else float(law.cdf(low - 1))) - float(law.sf(high + 1))
        down, up = rounding_allowed(entry, amount) if entry.transforms else (0.0, 0.0)
        below = 0.0 if cut else float(law.cdf(-quantile - math.ceil(down)))
        most = 1 - below - float(law.sf(quantile + math.ceil(up))) + 2 * (1 + lost) * atom
        assert coverage >= confidence
        assert coverage <= most * (1 + 1e-12)
        assert entry.transforms or coverage <= confidence + 2 * (1 + lost) * atom


@pytest.mark.parametrize("entry", [e for e in ONE_SIDED if not e.transforms], ids=str)
def test_ends_of_additive_intervals_are_printed_as_exact_lattice_points(entry: Entry) -> None:
    """Read from their shortest decimal, as a reader of a file does, they are multiples of the lattice, up to 2**53 steps."""
    noisy, law = laid(entry.mechanism, [0, 7, 23087, 10**9, 10**11], entry.step)
    found = entry.mechanism.estimate(moved(noisy, 5), confidence=0.95)
    half_width = law.quantile(0.975)
    for points, ends in ((noisy.points + 5 - half_width, found.low), (noisy.points + 5 + half_width, found.high)):
        for point, end in zip(points.tolist(), ends.tolist()):
            assert end == float(point * noisy.grid)
            if abs(point) * noisy.grid.numerator < 2**53 and noisy.grid.denominator in (1, 100):
                assert Fraction(repr(end)) == point * noisy.grid


def test_an_end_too_large_for_a_float_is_rounded_outward() -> None:
    mechanism = rw.Gaussian(sigma=3)
    for total in (2**53 + 1, 2**60 + 1, 10**30 + 7):
        noisy, law = laid(mechanism, [total])
        found = mechanism.estimate(noisy)
        assert int(found.low[0]) <= total - law.quantile(0.975) < total + law.quantile(0.975) <= int(found.high[0])


@pytest.mark.parametrize("entry", [e for e in ONE_SIDED if e.transforms], ids=str)
def test_ends_of_transformed_intervals_have_no_digits_that_mean_nothing(entry: Entry) -> None:
    """A unit of the last digit is between a 100th and a 10,000th of what one scale of noise is worth there."""
    noisy, law = laid(entry.mechanism, TOTALS, entry.step)
    for noise in (-int(law.quantile(0.9)), 12345, int(law.quantile(0.999))):
        found = entry.mechanism.estimate(moved(noisy, noise))
        for end in (*found.low.tolist(), *found.high.tolist()):
            worth = float(entry.mechanism._noise_worth(np.array(end)))
            last = Decimal(repr(end)).normalize().as_tuple().exponent
            assert end == 0 or 10.0 ** int(last) >= worth / 10_000 / 1.0001, end


def test_rounding_to_the_last_digit_never_reverses_two_ends() -> None:
    """Across the decades where the last digit changes, for a logarithm (always) and a fourth root (at every other one or so)."""
    for mechanism in (rw.LogTransform(offset=10, sigma="0.3"), rw.RootTransform(degree=4, offset=0, sigma="0.2")):
        digits = last_digits(mechanism._noise_worth)
        ends = np.sort(np.concatenate([10.0**k * np.linspace(0.98, 1.02, 401) for k in range(-4, 13)]))
        for up in (False, True):
            found = rounded(ends, digits, up=up)
            assert np.all(np.diff(found) >= 0)
            # One rounding of the product may go the other way; the inverse's own allowance is 512 times as large.
            assert np.all(found >= ends * (1 - 2.0**-52) if up else found <= ends * (1 + 2.0**-52))
            assert np.all(np.abs(found - ends) <= mechanism._noise_worth(ends) / FINEST_UNIT * (1 + 1e-9))


@pytest.mark.parametrize("entry", [e for e in ONE_SIDED if e.transforms], ids=str)
def test_at_total_zero_no_noise_is_too_low(entry: Entry) -> None:
    noisy, law = laid(entry.mechanism, [0], entry.step)
    found = entry.mechanism.estimate(moved(noisy, -np.array([1, 10, int(law.quantile(0.999999))])))
    assert np.all(found.low == 0)
    assert np.all(found.high >= 0)


@pytest.mark.parametrize("entry", ONE_SIDED, ids=str)
def test_a_higher_level_holds_a_lower_one(entry: Entry) -> None:
    noisy, _ = laid(entry.mechanism, TOTALS, entry.step)
    narrow, wide = (entry.mechanism.estimate(noisy, confidence=confidence) for confidence in (0.5, 0.99))
    assert np.all(wide.low <= narrow.low)
    assert np.all(narrow.high <= wide.high)
    assert wide.confidence == 0.99


@pytest.mark.parametrize("entry", SIGNED, ids=str)
def test_a_signed_interval_holds_whenever_both_parts_do(entry: Entry) -> None:
    """Each part misses with at most (1 - confidence)/2, so the difference holds at least as often as stated."""
    confidence = 0.9
    noisy, law = laid(entry.mechanism, [[50], [20]], entry.step)
    reach = law.quantile((3 + confidence) / 4)
    for one in (-reach, reach):
        for other in (-reach, reach):
            found = entry.mechanism.estimate(moved(noisy, np.array([[one], [other]])), confidence=confidence)
            assert found.low[0] <= 30 <= found.high[0]
    assert float(law.sf(reach + 1)) <= (1 - confidence) / 4
