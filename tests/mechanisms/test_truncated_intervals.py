"""The interval of a count that selected its own key covers given selection, where the plain one does not."""

from fractions import Fraction

import numpy as np
import pytest

from mechanisms.lattice_truth import tail
from recordwise.mechanisms.key_selection import (
    SelectionLaw,
    _at_least,
    _invert_tests,
    truncated_deviations,
    truncated_intervals,
)

LAWS = [
    (SelectionLaw(sigma=Fraction(9, 4), threshold=13), 0.95),
    (SelectionLaw(sigma=Fraction(1, 2), threshold=3), 0.9),
    (SelectionLaw(sigma=Fraction(8), threshold=30), 0.99),
    (SelectionLaw(sigma=Fraction(8), threshold=-5), 0.95),
]


def coverage(law, confidence, count, interval):
    """P(the interval holds the count | the key was kept), summed over the lattice law."""
    reach = int(12 * law.sigma) + 2
    first = max(law.threshold, count - reach)
    values = np.arange(first, max(first, count) + reach + 1)
    weights = np.exp(-((values - count).astype(float) ** 2) / (2 * float(law.sigma) ** 2))
    low, high = interval(values)
    return float(weights[(low <= count) & (count <= high)].sum() / weights.sum())


@pytest.mark.theorem("T-TRUNCATED")
@pytest.mark.parametrize(("law", "confidence"), LAWS, ids=str)
@pytest.mark.costly
def test_given_selection_the_interval_covers_every_count(law, confidence):
    for count in range(61):
        covered = coverage(
            law, confidence, count, lambda v: truncated_intervals(law, v, confidence=confidence, least=0)
        )
        assert covered >= confidence - 1e-12


@pytest.mark.theorem("T-TRUNCATED")
@pytest.mark.parametrize(("law", "confidence"), LAWS, ids=str)
def test_the_next_count_below_an_interval_would_be_rejected(law, confidence):
    values = law.threshold + np.arange(0, 40, 3)
    alpha, half = (1 - confidence) / 2, law.noise.quantile((1 + confidence) / 2)
    low, high = _invert_tests(law, values, alpha, 0, half)
    below = low > 0
    assert np.all(_at_least(law, values, low) > alpha * (1 - 1e-6))
    assert np.all(_at_least(law, values, low - 1)[below] <= alpha)
    assert np.all(1 - _at_least(law, values + 1, high + 1) <= alpha)


@pytest.mark.theorem("T-TRUNCATED")
def test_the_plain_interval_fails_given_selection():
    """An empty cell that passed: the plain interval never reaches down to 0."""
    law, confidence = LAWS[0]
    half = law.noise.quantile((1 + confidence) / 2)
    assert coverage(law, confidence, 0, lambda v: (v - half, v + half)) == 0
    assert coverage(law, confidence, 9, lambda v: (v - half, v + half)) < 0.75


@pytest.mark.theorem("T-TRUNCATED")
@pytest.mark.parametrize(("law", "confidence"), LAWS, ids=str)
def test_far_above_the_threshold_the_interval_is_the_plain_one(law, confidence):
    """No tail of these laws is exactly half of what the interval may miss, so that truncation does not cost a step."""
    half = law.noise.quantile((1 + confidence) / 2)
    far = np.array([law.threshold + int(14 * law.sigma) + half, law.threshold + 10_000])
    low, high = truncated_intervals(law, far, confidence=confidence, least=0)
    assert np.all((low == far - half) & (high == far + half))


@pytest.mark.theorem("T-TRUNCATED")
def test_a_lower_end_far_above_the_threshold_is_a_step_lower_where_a_tail_leaves_no_room():
    law, _ = LAWS[0]
    confidence = 1 - 2 * float(tail(law.sigma, 5)) * (1 + 5e-10)
    assert law.noise.quantile((1 + confidence) / 2) == 4
    low, high = truncated_intervals(law, np.array([10_000]), confidence=confidence, least=0)
    assert (low[0], high[0]) == (10_000 - 5, 10_000 + 4)


def test_the_ends_grow_with_the_noisy_count():
    law, confidence = LAWS[2]
    low, high = truncated_intervals(law, np.arange(law.threshold, law.threshold + 400), confidence=confidence, least=0)
    assert np.all(np.diff(low) >= 0)
    assert np.all(np.diff(high) >= 0)
    assert low[0] == 0


def test_the_step_that_makes_far_counts_safe_is_enough():
    """The one place where the proof needs a number: the mass of one lattice point beats what truncation can add (T-TRUNCATED)."""
    for law, confidence in LAWS:
        half = law.noise.quantile((1 + confidence) / 2)
        beyond = 9 * law.sigma
        cut = tail(law.sigma, int(beyond))
        here = tail(law.sigma, half + 1) - tail(law.sigma, half + 2)
        assert here > (1 - Fraction(str(confidence))) / 2 * cut


@pytest.mark.theorem("T-TRUNCATED")
@pytest.mark.parametrize("law", [LAWS[0][0], LAWS[2][0], LAWS[3][0]], ids=str)
def test_given_selection_the_deviation_is_that_of_the_truncated_law_on_average(law):
    """Its mean over the lattice law against the exact deviation; sigma in its place is up to 8 times too large."""
    for count in (0, 1, 5, 9, 13, 20, 30, 40, 60, 100):
        reach = int(12 * law.sigma) + 2
        first = max(law.threshold, count - reach)
        values = np.arange(first, max(first, count) + reach + 1)
        weights = np.exp(-((values - count).astype(float) ** 2) / (2 * float(law.sigma) ** 2))
        mean = np.average(values, weights=weights)
        exact = np.sqrt(np.average((values - mean) ** 2, weights=weights))
        said = np.average(truncated_deviations(law, values, least=0), weights=weights)
        assert 0.8 < said / exact < 1.34


def test_far_above_the_threshold_the_deviation_is_the_noise_s_and_at_it_that_of_the_smallest_count():
    law, _ = LAWS[0]
    plain = np.sqrt(law.noise.variance)
    far = truncated_deviations(law, np.array([10_000, law.threshold + 30, law.threshold]), least=1)
    assert far[:2] == pytest.approx([plain, plain], rel=1e-6)
    weights = np.exp(-((np.arange(13, 60) - 1.0) ** 2) / (2 * float(law.sigma) ** 2))
    mean = np.average(np.arange(13, 60), weights=weights)
    assert far[2] == pytest.approx(np.sqrt(np.average((np.arange(13, 60) - mean) ** 2, weights=weights)), rel=1e-9)
