"""The bound of the audit itself: it does not cry wolf, and it hears one."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from build import few
from recordwise.audit.audit import LOG_ALARMS, bound_on_loss, lowest_bit
from recordwise.audit.bound import mean_lower, sequences_repeat, tolerance

Floats = NDArray[np.float64]
CELLS = 50_000


def chance(seed: int) -> np.random.Generator:
    return np.random.default_rng([20261115, seed])


@pytest.mark.theorem("T-BET")
@pytest.mark.parametrize("kind", ["coin", "rare", "uniform"])
@pytest.mark.costly
def test_a_mean_is_overstated_no_more_often_than_stated_and_not_by_being_far_below(kind: str) -> None:
    """At a false alarm of 1 %, over 1,000 repetitions: more than 35 alarms would happen to a true 1 % less than once in 1e9."""
    draw = {
        "coin": lambda rng: rng.integers(0, 2, 400).astype(float),
        "rare": lambda rng: (rng.random(400) < 0.02).astype(float),
        "uniform": lambda rng: rng.random(400),
    }[kind]
    mean = {"coin": 0.5, "rare": 0.02, "uniform": 0.5}[kind]
    spread = {"coin": 0.25, "rare": 0.0196, "uniform": 1 / 12}[kind]
    bet = min(0.5, math.sqrt(2 * math.log(100) / (400 * spread)))
    bounds = [mean_lower(draw(chance(at)), bet=bet, log_alarms=math.log(100)) for at in range(1000)]
    assert np.mean(np.array(bounds) > mean) <= 0.035
    assert np.median(bounds) > mean - 1.5 * math.sqrt(2 * math.log(100) * spread / 400) - 0.01


def test_too_few_samples_bound_nothing() -> None:
    assert mean_lower(np.ones(5), bet=0.5, log_alarms=LOG_ALARMS) == -math.inf


def gaussian_pair(mu: float, seed: int, cells: int = CELLS) -> tuple[dict[str, Floats], dict[str, Floats]]:
    rng = chance(seed)
    return {"a": mu + rng.normal(size=cells)}, {"a": rng.normal(size=cells)}


@pytest.mark.theorem("T-AUDIT")
@pytest.mark.parametrize("rho", few([0.5, 2.0, 1.0], 2))
@pytest.mark.costly
def test_the_bound_stays_below_the_loss_and_within_a_fifth_of_it(rho: float) -> None:
    for seed in range(10):
        bound = bound_on_loss(*gaussian_pair(math.sqrt(2 * rho), seed))
        assert 0.8 * rho < bound < rho


@pytest.mark.theorem("T-AUDIT")
@pytest.mark.costly
def test_noise_a_tenth_too_narrow_is_heard_every_time_at_the_strongest_loss() -> None:
    """The bound is four of its standard deviations above the policy: missed once in 100,000; 20 of 20."""
    assert all(bound_on_loss(*gaussian_pair(math.sqrt(2) / 0.9, seed)) > 1.0 for seed in range(20))


@pytest.mark.costly
def test_a_bound_on_two_equal_samples_is_zero() -> None:
    for seed in range(20):
        assert bound_on_loss(*gaussian_pair(0.0, seed)) == 0.0


@pytest.mark.theorem("T-AUDIT")
@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_an_event_of_probability_delta_is_excused_by_delta_and_by_nothing_less(delta: float) -> None:
    """With the record a cell shows with probability delta, without it never: the loss is (0, delta)."""
    shows = np.where(chance(5).random(CELLS) < delta, 0.0, np.nan)
    never = np.full(CELLS, np.nan)
    assert bound_on_loss({"a": shows}, {"a": never}, delta=delta) == 0.0
    assert bound_on_loss({"a": shows}, {"a": never}, delta=delta / 2) > 0
    assert bound_on_loss({"a": shows}, {"a": never}) > 2 * delta


def test_the_losses_of_independent_answers_add_up_in_the_bound() -> None:
    rng = chance(6)
    shift = {"a": 0.8, "b": 0.8, "c": 0.8}
    present, absent = ({name: on * mu + rng.normal(size=CELLS) for name, mu in shift.items()} for on in (1, 0))
    assert 0.8 * 3 * 0.32 < bound_on_loss(present, absent) < 3 * 0.32


@pytest.mark.theorem("T-FRESH")
def test_a_stream_used_twice_is_heard_at_any_distance_and_fresh_noise_never() -> None:
    rng = chance(7)
    for _ in range(20):
        noise, other = rng.normal(size=(2, 20_000))
        assert not sequences_repeat(noise, noise, log_alarms=LOG_ALARMS)
        assert not sequences_repeat(noise, other, log_alarms=LOG_ALARMS)
        assert sequences_repeat(noise, np.exp(noise), log_alarms=LOG_ALARMS)
    for period in (7, 4096, 9000):
        again = np.tile(rng.normal(size=period), 20_000 // period + 1)[:20_000]
        assert sequences_repeat(again, again, log_alarms=LOG_ALARMS)
    whole = rng.integers(0, 3, 20_000).astype(float)
    assert not sequences_repeat(whole, whole, log_alarms=LOG_ALARMS)


@pytest.mark.theorem("T-FRESH")
def test_the_tolerance_is_exceeded_no_more_often_than_stated() -> None:
    """At a false alarm of e**-1, none of 200 repetitions with 2,000 signs exceeds it: the bound is not tight, but a bound."""
    rng = chance(8)
    exceeded = 0
    for _ in range(200):
        signs = np.where(rng.random(2000) < 0.3, 1.0, -1.0)
        agreement = np.fft.irfft(np.abs(np.fft.rfft(signs)) ** 2, 2000) / 2000
        exceeded += np.max(np.abs(agreement[1:] - signs.mean() ** 2)) > tolerance(2000, 1.0)
    assert exceeded <= 100


@pytest.mark.parametrize(
    "number, place",
    [(1.0, 0), (6.0, 1), (0.75, -2), (1 + 2.0**-52, -52), (2.0**-1074, -1074), (-3.5, -1), (2.0**60, 60)],
)
def test_the_lowest_bit_of_a_float_is_found(number: float, place: int) -> None:
    assert lowest_bit(np.array([number]))[0] == place


def test_the_lowest_bit_of_what_is_no_number_is_none() -> None:
    assert np.isnan(lowest_bit(np.array([np.nan, np.inf]))).all()
