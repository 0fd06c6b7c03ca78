"""Coverage of noise intervals, exactly, from the probabilities of the law that is drawn, at the grids that are really used."""

import math

import numpy as np
import pytest
from drawn_laws import laid, moved
from mechanism_catalogue import ONE_SIDED, SIGNED, TOTALS, Entry

from recordwise.mechanisms import Estimates, Noisy
from recordwise.noise import LatticeLaw

LEVELS = [0.5, 0.9, 0.95, 0.999]
WINDOW = 4096
"""How far around the noise quantile the ends of the interval are looked for, in lattice steps."""


def covering_noise(entry: Entry, noisy: Noisy, law: LatticeLaw, total: float, level: float) -> tuple[int, int]:
    """The smallest and the largest noise for which the interval holds the total; the ends are nondecreasing in the noise."""
    quantile = law.quantile((1 + level) / 2)
    around = np.arange(max(1, quantile - WINDOW), quantile + WINDOW)
    above: Estimates = entry.mechanism.estimate(moved(noisy, around), level=level)
    below: Estimates = entry.mechanism.estimate(moved(noisy, -around), level=level)
    assert np.all(np.diff(above.low) >= 0)
    assert np.all(np.diff(below.high) <= 0)
    return -int(np.count_nonzero(below.high >= total) + around[0] - 1), int(
        np.count_nonzero(above.low <= total) + around[0] - 1
    )


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("entry", ONE_SIDED, ids=str)
@pytest.mark.theorem("T-INTERVAL")
def test_coverage_is_at_least_the_level_and_at_most_two_atoms_more(entry: Entry, level: float) -> None:
    """Rounding outward may add lattice points whose distance from the end is lost in a float; they are counted too.

    At total 0 a transform's interval is cut at 0, so that no noise is too low: it holds with (1 + level)/2 at least.
    """
    for total in TOTALS:
        noisy, law = laid(entry.mechanism, [total], entry.step)
        low, high = covering_noise(entry, noisy, law, float(total * entry.step), level)
        quantile = law.quantile((1 + level) / 2)
        lost = math.ceil(abs(int(noisy.points[0])) * 2.0**-43)
        atom = float(law.pmf(quantile))
        cut = entry.transforms and total == 0
        below = 0.0 if cut else float(law.cdf(low - 1))
        coverage = 1 - below - float(law.sf(high + 1))
        assert coverage >= level
        assert coverage <= (level if not cut else (1 + level) / 2) + 2 * (1 + lost) * atom


@pytest.mark.parametrize("entry", [e for e in ONE_SIDED if e.transforms], ids=str)
def test_at_total_zero_no_noise_is_too_low(entry: Entry) -> None:
    noisy, law = laid(entry.mechanism, [0], entry.step)
    found = entry.mechanism.estimate(moved(noisy, -np.array([1, 10, int(law.quantile(0.999999))])))
    assert np.all(found.low == 0)
    assert np.all(found.high >= 0)


@pytest.mark.parametrize("entry", ONE_SIDED, ids=str)
def test_a_higher_level_holds_a_lower_one(entry: Entry) -> None:
    noisy, _ = laid(entry.mechanism, TOTALS, entry.step)
    narrow, wide = (entry.mechanism.estimate(noisy, level=level) for level in (0.5, 0.99))
    assert np.all(wide.low <= narrow.low)
    assert np.all(narrow.high <= wide.high)
    assert wide.level == 0.99


@pytest.mark.parametrize("entry", SIGNED, ids=str)
def test_a_signed_interval_holds_whenever_both_parts_do(entry: Entry) -> None:
    """Each part misses with at most (1 - level)/2, so the difference holds with at least the level; it may hold more often."""
    level = 0.9
    noisy, law = laid(entry.mechanism, [[50], [20]], entry.step)
    reach = law.quantile((3 + level) / 4)
    for one in (-reach, reach):
        for other in (-reach, reach):
            found = entry.mechanism.estimate(moved(noisy, np.array([[one], [other]])), level=level)
            assert found.low[0] <= 30 <= found.high[0]
    assert float(law.sf(reach + 1)) <= (1 - level) / 4
