"""The parts of the audit's bound on samples of a few numbers, worked out by hand or by counting."""

import math
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from recordwise.audit import bound
from recordwise.audit.bound import (
    CEILINGS,
    Candidate,
    Evidence,
    Lesson,
    Range,
    Reading,
    Stake,
    Witness,
    _best,
    _bin_numbers,
    _cuts,
    _edges,
    _sums,
    is_answer,
    learn_witness,
    loss_lower,
    mean_lower,
    sequences_repeat,
    signs,
    tolerance,
)

LN2 = math.log(2)
WITHIN = Range(low=-LN2, high=LN2)
TWO = np.array([0.0, LN2])
"""As a witness without the record: exp(0) = 1 and exp(ln 2) = 2, of mean 3/2 and variance 1/4."""


def evidence(pairs: int = 10, delta: float = 0.0, log_alarms: float = 3.0) -> Evidence:
    return Evidence(pairs=pairs, delta=delta, log_alarms=log_alarms)


# The stake.


@pytest.mark.parametrize(
    ("pairs", "bet"),
    [
        # The spread is (ln 2 / 2)^2 + (1/4) / 1.75^2 + 1/10, and 0.5 / (2 ln 2 + 1.5 / 1.75) is smaller than its bet.
        (10, 0.5 / (2 * LN2 + 6 / 7)),
        (10_000, math.sqrt(6 / (10_000 * (LN2**2 / 4 + 0.25 / 1.75**2 + 1e-4)))),
    ],
)
def test_a_stake_is_centered_and_as_large_as_its_evidence_allows(pairs: int, bet: float) -> None:
    stake = Stake.of(TWO, TWO, WITHIN, evidence(pairs, delta=0.2))
    # The mean of exp is 1.5; the least, 1/2, has the share 0.2 that delta excuses: (1.5 - 0.1) / 0.8.
    assert stake.center == pytest.approx(1.75, rel=1e-12)
    assert stake.bet == pytest.approx(bet, rel=1e-12)
    assert (stake.within, stake.evidence.pairs) == (WITHIN, pairs)


def test_the_present_and_the_absent_have_their_own_place_in_a_stake() -> None:
    """Of a witness that does not vary with the record, only what it does without it is spread, and the other way round."""
    still = np.zeros(2)
    many = evidence(10**6)
    assert Stake.of(still, TWO, WITHIN, many).center == pytest.approx(1.5)
    assert Stake.of(TWO, still, WITHIN, many).center == pytest.approx(1.0)
    spread = {"absent": 0.25 / 1.5**2, "present": LN2**2 / 4}
    for here, there, wanted in ((still, TWO, spread["absent"]), (TWO, still, spread["present"])):
        bet = math.sqrt(2 * 3.0 / (10**6 * (wanted + 1e-6)))
        assert Stake.of(here, there, WITHIN, many).bet == pytest.approx(bet, rel=1e-12)


def test_a_witness_without_a_range_has_a_finite_bet() -> None:
    nothing = np.zeros(3)
    assert Stake.of(nothing, nothing, Range(low=0.0, high=0.0), evidence(10**30)).bet == pytest.approx(math.sqrt(6))
    assert Stake.of(nothing, nothing, Range(low=0.0, high=0.0), evidence(1, log_alarms=1e30)).bet == 0.5 / 1e-9


def test_the_loss_of_a_mean_excuses_delta() -> None:
    stake = Stake(within=WITHIN, evidence=evidence(delta=0.2), center=2.0, bet=0.1)
    # delta * (ln 2 - (1/2) / 2) is excused, and 1 - ln(center) added.
    assert stake.loss(0.5) == pytest.approx((0.5 - 0.2 * (LN2 - 0.25)) / 0.8 + 1 - LN2, rel=1e-12)
    plain = Stake(within=WITHIN, evidence=evidence(), center=1.0, bet=0.1)
    assert plain.loss(0.5) == 1.5


def test_the_expected_bound_is_the_mean_gain_less_its_slack() -> None:
    stake = Stake(within=WITHIN, evidence=evidence(pairs=50), center=2.0, bet=0.1)
    present = np.array([0.0, 4.0])
    # Gains: 2 - (1/2 + 1) / 2; spread: 4 + (1/4)^2; slack: 0.1 * 4.0625 / 2 + 3 / (0.1 * 50).
    mean = 2 - 0.75 - (0.203125 + 0.6)
    assert stake.expected_bound(present, TWO) == pytest.approx(mean + 1 - LN2, rel=1e-12)


# The bound on a mean.


@pytest.mark.parametrize(("count", "bet", "log_alarms"), [(10, 0.5, 3.0), (100, 0.25, 3.0), (7, 2.0, 0.5)])
def test_the_bound_on_a_mean_of_equal_values_has_a_formula(count: int, bet: float, log_alarms: float) -> None:
    """(1 + bet * (4 - mean))^count = exp(log_alarms)."""
    found = mean_lower(np.full(count, 4.0), bet=bet, log_alarms=log_alarms)
    assert found == pytest.approx(4 - (math.exp(log_alarms / count) - 1) / bet, rel=1e-9)


def test_the_bound_on_the_mean_of_two_values_solves_a_square() -> None:
    """(1 - b m) (1 + b (1 - m)) = e^a, with b = 1/4."""
    for log_alarms in (0.1, 0.3, 1.0):
        b, right = 0.25, math.exp(log_alarms)
        root = min(np.roots([b * b, -(2 * b + b * b), 1 + b - right]).real)
        assert mean_lower(np.array([0.0, 1.0]), bet=b, log_alarms=log_alarms) == pytest.approx(root, abs=1e-9)


@pytest.mark.parametrize("root", [-5.0, 0.5, 2.0, 4.0])
def test_the_bound_is_found_far_below_the_largest_value_and_far_above_the_least(root: float) -> None:
    """Of 0 and 10 at a bet of 0.09: the capital that the bound leaves is (1 - 0.09 m) (1 + 0.09 (10 - m))."""
    log_alarms = math.log((1 - 0.09 * root) * (1.9 - 0.09 * root))
    assert mean_lower(np.array([0.0, 10.0]), bet=0.09, log_alarms=log_alarms) == pytest.approx(root, abs=1e-9)


def test_a_mean_far_below_needs_the_capital_to_double_with_each_value() -> None:
    """At one whole bet below the least value each stake is 2: ten of them win 2^10, and no more."""
    ten = np.full(10, 3.0)
    assert mean_lower(ten, bet=0.5, log_alarms=10 * LN2 * (1 - 1e-12)) == pytest.approx(1.0)
    assert mean_lower(ten, bet=0.5, log_alarms=10 * LN2 * (1 + 1e-12)) == -math.inf


def test_a_loss_is_bounded_by_as_many_pairs_as_there_are() -> None:
    stake = Stake(within=WITHIN, evidence=evidence(log_alarms=1.0), center=2.0, bet=0.5)
    present, absent = np.full(30, 3.0), np.full(20, LN2)
    # Gains of 3 - 2 / 2 = 2 in each of 20 pairs.
    mean = 2 - (math.exp(1 / 20) - 1) / 0.5
    for given in ((present, absent), (present[:20], np.full(30, LN2))):
        assert loss_lower(*given, stake) == pytest.approx(mean + 1 - LN2, rel=1e-9)
    mixed = np.append(np.full(20, 3.0), -50.0)
    assert loss_lower(mixed, absent, stake) == pytest.approx(mean + 1 - LN2, rel=1e-9)
    assert loss_lower(np.full(30, -9.0), absent, stake) == 0.0


# Readings.


def test_bins_hold_about_as_many_samples_each() -> None:
    ten = np.arange(10.0)
    assert _edges(ten).tolist() == [9.0]
    assert _edges(np.arange(79.0)).tolist() == [78.0]
    assert _edges(np.arange(80.0)).tolist() == [39.0, 79.0]
    assert _edges(np.arange(120.0)).tolist() == [39.0, 79.0, 119.0]
    assert len(_edges(np.arange(64 * 40.0))) == len(_edges(np.arange(70 * 40.0))) == 64
    assert len(_edges(np.arange(64 * 40.0 - 1))) == 63
    assert _edges(np.repeat([1.0, 2.0], [200, 40])).tolist() == [1.0, 2.0]
    assert _edges(np.array([])).tolist() == []


def test_a_value_is_in_the_bin_that_ends_with_it() -> None:
    edges = np.array([1.0, 2.0])
    assert _bin_numbers(edges, np.array([np.nan, 0.0, 1.0, 1.5, 2.0, 3.0])).tolist() == [0, 1, 1, 2, 2, 3]


def test_a_reading_is_the_log_ratio_of_frequencies() -> None:
    """Ten of each: eight against two at 1, one against seven at 2, one against one that is not there; two bins by 1 and 2."""
    present = np.array([1.0] * 8 + [2.0] + [np.nan])
    absent = np.array([1.0] * 2 + [2.0] * 7 + [np.nan])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bound, "LEAST_IN_A_BIN", 4)
        found = Reading.learn("a", present, absent)
    assert found.edges.tolist() == [1.0, 2.0]
    expected = [math.log(1.5 / 1.5), math.log(8.5 / 2.5), math.log(1.5 / 7.5), 0.0]
    assert found.heights.tolist() == pytest.approx(expected, abs=1e-12)
    assert found.feature == "a"
    told = found.evaluate(np.array([np.nan, 0.5, 1.5, 9.0]))
    assert told.tolist() == pytest.approx(expected, abs=1e-12)


def test_a_reading_of_samples_of_different_number_compares_shares() -> None:
    found = Reading.learn("a", np.zeros(3), np.zeros(7))
    assert found.heights.tolist() == pytest.approx([math.log(0.5 / 4) - math.log(0.5 / 8), math.log(3.5 / 4 / (7.5 / 8)),
                                                    math.log(2)])  # fmt: skip


# Witnesses.


def reading(feature: str, *heights: float) -> Reading:
    """By the values up to 1, up to 2, and above."""
    return Reading(feature=feature, edges=np.arange(1.0, len(heights) - 1), heights=np.array(heights))


FIRST, SECOND = reading("a", 0.0, -1.0, 2.0, 0.5), reading("b", 0.25, 0.5, -3.0, 0.0)


def test_a_witness_adds_its_readings_and_clips_their_sum() -> None:
    features = {"a": np.array([1.0, 2.0, np.nan]), "b": np.array([1.0, 2.0, 2.0])}
    for ceiling, wanted in ((9.0, [-0.5, -1.0, -3.0]), (0.75, [-0.5, -0.75, -0.75])):
        for reverse in (False, True):
            witness = Witness(readings=(FIRST, SECOND), ceiling=ceiling, reverse=reverse)
            assert witness.evaluate(features).tolist() == [-each if reverse else each for each in wanted]
    up = Witness(readings=(FIRST,), ceiling=1.5, reverse=False)
    assert up.evaluate({"a": np.array([2.0])}).tolist() == [1.5]


def test_the_range_of_a_witness_holds_whatever_is_published() -> None:
    both = (FIRST, SECOND)
    assert Witness(readings=both, ceiling=9.0, reverse=False).within == Range(low=-4.0, high=2.5)
    assert Witness(readings=both, ceiling=9.0, reverse=True).within == Range(low=-2.5, high=4.0)
    assert Witness(readings=both, ceiling=3.0, reverse=False).within == Range(low=-3.0, high=2.5)


def test_lessons_add_up() -> None:
    one = Lesson((FIRST,), np.array([1.0, 2.0]), np.array([3.0, 5.0]))
    two = Lesson((SECOND,), np.array([10.0, 20.0]), np.array([30.0, 50.0]))
    both = one + two
    assert [each.feature for each in both.readings] == ["a", "b"]
    assert (both.present.tolist(), both.absent.tolist()) == ([11.0, 22.0], [33.0, 55.0])


@pytest.mark.parametrize("feature", ["t.n", "t.answer", "t.sd", "t.n_sdx"])
def test_published_answers_are_answers(feature: str) -> None:
    assert is_answer(feature)


@pytest.mark.parametrize(
    "feature",
    ["a - b", "lowest bit of t.n", "t is there", "n_sd", "n_cv", "n_low", "n_high", "n_sigma", "n_variance"],
)
def test_what_is_said_about_answers_is_none(feature: str) -> None:
    assert not is_answer(feature)


def lesson(shift: float, feature: str = "a", count: int = 400) -> Lesson:
    """Two values, the one more likely with the record."""
    share = np.arange(count) / count
    chance = math.exp(shift) / (1 + math.exp(shift))
    present, absent = np.where(share < chance, 2.0, 1.0), np.where(share < 0.5, 2.0, 1.0)
    learned = Reading.learn(feature, present, absent)
    return Lesson((learned,), learned.evaluate(present), learned.evaluate(absent))


def test_every_ceiling_is_tried_in_both_directions() -> None:
    given, told = lesson(1.0), evidence(pairs=1000)
    found = _cuts(given, told)
    assert [(each.witness.reverse, each.witness.ceiling) for each in found] == [
        (reverse, ceiling) for reverse in (False, True) for ceiling in CEILINGS
    ]
    assert tuple(map(float, range(1, 9))) == CEILINGS
    for each in found:
        sides = [np.clip(own, -each.witness.ceiling, each.witness.ceiling) for own in (given.present, given.absent)]
        first, second = [-own for own in sides[::-1]] if each.witness.reverse else sides
        stake = Stake.of(first, second, each.witness.within, told)
        assert (each.stake.bet, each.stake.center) == (stake.bet, stake.center)
        assert each.score == stake.expected_bound(first, second)
        assert each.lesson is given


def test_the_best_four_lessons_come_first() -> None:
    given = [lesson(shift, str(shift)) for shift in (0.1, 0.9, 0.3, 1.5, 0.5, 1.1)]
    found = _best(given, evidence(pairs=100_000))
    assert [each.lesson.readings[0].feature for each in found] == ["1.5", "1.1", "0.9", "0.5"]
    assert all(before.score > after.score for before, after in pairwise(found))
    assert [each.score for each in found] == [
        max(own.score for own in _cuts(each.lesson, evidence(pairs=100_000))) for each in found
    ]


def scored(monkeypatch: pytest.MonkeyPatch, scores: dict[tuple[str, ...], float]) -> list[Any]:
    """Lessons by name, whose sums have the scores of a table."""

    class Named:
        def __init__(self, *names: str) -> None:
            self.names = names

        def __add__(self, other: Any) -> Any:
            return Named(*self.names, *other.names)

    def best(lessons: list[Any], _: Any) -> list[Any]:
        known = [SimpleNamespace(lesson=each, score=scores.get(each.names, -9.0)) for each in lessons]
        return sorted(known, key=lambda each: -each.score)

    monkeypatch.setattr(bound, "_best", best)
    return [Named("a"), Named("b")]


@pytest.mark.parametrize(
    ("scores", "wanted"),
    [
        ({("a",): 1.0, ("a", "b"): 1.02}, ("a", "b")),
        # One more reading is added only if it is worth a hundredth.
        ({("a",): 1.0, ("a", "b"): 1.005}, ("a",)),
        ({("a",): 1.0, ("a", "b"): 1.01}, ("a",)),
        ({("a",): -1.0, ("a", "b"): -0.995}, ("a",)),
        ({("a",): -1.0, ("a", "b"): -0.98}, ("a", "b")),
        ({("a",): 1.0, ("a", "b"): 0.5, ("a", "b", "a"): 2.0}, ("a", "b", "a")),
        ({("a",): 1.0, ("a", "b"): 1.5, ("a", "b", "a"): 2.0, ("a", "b", "a", "a"): 9.0}, ("a", "b", "a")),
        ({("b",): 3.0, ("a", "b"): 2.0}, ("b",)),
    ],
)
def test_a_reading_is_added_while_it_is_worth_it(
    scores: dict[tuple[str, ...], float], wanted: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    added = scored(monkeypatch, scores)
    found: Any = _sums(added, evidence())
    assert found.lesson.names == wanted


def test_answers_and_whatever_is_likely_are_tried_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def sums(added: list[Lesson], _: Evidence) -> Candidate:
        seen.append([each.readings[0].feature for each in added])
        return Candidate(float(len(seen)), added[0], f"witness {len(seen)}", f"stake {len(seen)}")  # type: ignore[arg-type]

    monkeypatch.setattr(bound, "_sums", sums)
    chance = np.random.default_rng(1)
    names = ["x", "y", "x_sd", "z", "y_sd", "lowest bit of x"]
    present = {name: chance.normal(size=200) + (name.endswith("_sd")) for name in names}
    absent = {name: chance.normal(size=200) for name in names}
    assert learn_witness(present, absent, evidence(pairs=200)) == ("witness 2", "stake 2")
    answers, likely = seen
    assert answers == ["x", "y", "z"]
    assert len(likely) == 4
    assert {"x_sd", "y_sd"} == set(likely[:2])
    seen.clear()
    only = {"x_sd": present["x_sd"]}
    assert learn_witness(only, {"x_sd": absent["x_sd"]}, evidence(pairs=200)) == ("witness 1", "stake 1")
    assert seen == [["x_sd"]]


# Repeated noise.


def test_signs_are_those_beside_a_median_of_one_sample_in_ten() -> None:
    numbers = np.arange(30.0)
    # 0, 10 and 20 are set aside, whose median is 10.
    assert signs(numbers).tolist() == [-1.0] * 9 + [1.0] * 18
    numbers[11], numbers[29] = np.nan, 10.0
    assert signs(numbers).tolist() == [-1.0] * 10 + [1.0] * 16 + [-1.0]
    assert signs(np.array([5.0, -1.0, 0.0, 3.0])).tolist() == [-1.0, -1.0, 1.0]
    nine, ten = np.full(9, 4.0), np.full(10, 4.0)
    assert signs(nine).tolist() == [1.0] * 8
    assert signs(ten).tolist() == [-1.0] * 9


def test_the_tolerance_is_that_of_the_theorem() -> None:
    needed = 2.0 + math.log(604)
    assert tolerance(100, 2.0) == pytest.approx(math.sqrt(0.06 * needed) + 2 * math.sqrt(0.02 * needed), rel=1e-12)


@pytest.mark.parametrize("itself", [True, False])
def test_the_largest_agreement_at_any_lag_is_what_is_compared(itself: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(4)
    first = chance.normal(size=60)
    second = first if itself else chance.normal(size=47)
    left, right = signs(first), signs(second)
    count = len(right)
    left = left[:count]
    lags = range(1 if itself else 0, count)
    excess = [
        abs(sum(left[at] * right[(at + lag) % count] for at in range(count)) / count - left.mean() * right.mean())
        for lag in lags
    ]
    asked = []
    for limit, repeats in ((max(excess) * (1 - 1e-9), True), (max(excess) * (1 + 1e-9), False)):
        monkeypatch.setattr(bound, "tolerance", lambda *given, limit=limit: asked.append(given) or limit)
        assert sequences_repeat(first, second, log_alarms=7.0) is repeats
    assert asked == [(count, 7.0)] * 2


def test_too_few_samples_repeat_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of eleven samples nine are left, which is too few; of twelve ten."""
    monkeypatch.setattr(bound, "tolerance", lambda *_: -1.0)
    for count, repeats in ((11, False), (12, True)):
        noise = np.arange(float(count))
        assert sequences_repeat(noise, noise + 1, log_alarms=1.0) is repeats
        assert sequences_repeat(noise, np.arange(100.0), log_alarms=1.0) is repeats
