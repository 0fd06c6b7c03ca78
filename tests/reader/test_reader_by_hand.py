"""Answers, ratios, ranks, slopes, conditions and regions with numbers of a hand, each written out again beside the code."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse
from scipy.stats import norm

from reader.test_reader_derived import made
from recordwise.errors import ParameterError, SourceError
from recordwise.reader import asking, derived
from recordwise.reader.answers import Quotients, _blocks, _fieller, _joined, _quotients, _side, _tiled
from recordwise.reader.derived import (
    FEW_ROWS,
    Noisy,
    Ranks,
    _earlier_regions,
    _largest_of_pairs,
    _merged,
    _same_codes,
    _slope_set,
)
from recordwise.reader.questions import (
    DEEPEST,
    Among,
    Joined,
    Not,
    Question,
    Regions,
    condition_of,
    short_digest,
    with_label,
)

Z = norm.ppf(0.975)
COVARIANCE = np.array([[4.0, 1, -0.5], [1, 9, 2], [-0.5, 2, 16]])
VALUES = np.array([100.0, 40, -60])
HALVES = np.array([0.5, 0.25, 1.0])


def three(**other: Any) -> Any:
    return made(VALUES, COVARIANCE, halves=HALVES, **other)


# Differences, sums and what is left of answers.


def test_a_difference_has_the_covariance_of_both_and_both_half_steps() -> None:
    for first, second, cov in (("c0", "c1", 4 + 9 - 2), ("c1", "c2", 9 + 16 - 4), ("c2", "c0", 16 + 4 + 1)):
        one, other = int(first[1]), int(second[1])
        found = three().difference(first, second)
        value = VALUES[one] - VALUES[other]
        reach = Z * math.sqrt(cov) + HALVES[one] + HALVES[other]
        assert (found.value, found.sd) == pytest.approx((value, math.sqrt(cov)))
        assert (found.low, found.high) == pytest.approx((value - reach, value + reach))
        assert found.covariance == pytest.approx(np.array([[cov]]))
        assert (found.normal, found.moments, found.errors) == (False, False, None)
        assert found.question == f"total of emp by county: {first} less {second}"
    same = three().difference("c1", "c1")
    assert (same.value, same.sd) == (0, 0)


def test_a_difference_without_normal_errors_is_by_the_law_or_by_its_draws() -> None:
    asked: list[Any] = []

    def law(sums: Any, levels: Any) -> Any:
        asked.append((np.asarray(sums).tolist(), tuple(levels)))
        return [np.array([7.0]), np.array([9.0])]

    found = three(normal=False, law=law).difference("c0", "c2")
    assert (found.low, found.high) == (160 - 7, 160 + 7)
    assert asked == [([[1, 0, -1]], (0.95, 0.975))]

    # Draws 1 to 2,000 in the difference: the 1,901st and the 1,951st are the ranks of both levels.
    def drawn(draws: int, purpose: str, *_: Any) -> Any:
        assert (draws, purpose) == (2000, "c0:c2")
        return np.arange(1.0, draws + 1)[:, None] * [1, 5, -1] * np.where(np.arange(draws) % 2, 1, -1)[:, None]

    found = three(normal=False, errors=drawn).difference("c0", "c2")
    assert found.high - found.value == pytest.approx(2 * 1901, rel=1e-8)
    by_draws = three(normal=False, errors=lambda draws, purpose, *_: drawn(draws, "c0:c2"))
    reaches = by_draws._reaches(np.array([[1.0, 0, -1], [0, 1, 0]]), "x")
    assert reaches[0] == pytest.approx([2 * 1901, 5 * 1901], rel=1e-8)
    assert reaches[1] == pytest.approx([2 * 1951, 5 * 1951], rel=1e-8)
    assert reaches[0][0] > 2 * 1901
    nothing = three(normal=False, law=lambda *_: None, errors=drawn).difference("c0", "c2")
    assert nothing.high == found.high


def test_weighted_sums_have_the_covariance_half_steps_and_errors_of_their_parts() -> None:
    weights = np.array([[1.0, 1, 0], [0, -2, 0.5]])
    answer = three(errors=lambda draws, purpose, *_: np.tile(VALUES, (draws, 1)))
    found = answer.combined(weights, ["a", "b"])
    assert found.labels == ("a", "b")
    assert found.values.tolist() == [140, -110]
    exact = weights @ COVARIANCE @ weights.T
    assert found.covariance == pytest.approx(exact)
    assert found.sds == pytest.approx(np.sqrt(np.diag(exact)))
    assert found.halves.tolist() == [0.75, 1.0]
    assert found.highs - found.values == pytest.approx(Z * found.sds + [0.75, 1.0])
    assert found.values - found.lows == pytest.approx(Z * found.sds + [0.75, 1.0])
    assert found.errors(3, "x").tolist() == [[140, -110]] * 3
    assert found.wides is None
    assert found.law is None
    law = three(normal=False, wides=np.ones(3), law=lambda sums, levels: [np.abs(sums) @ [1.0, 2, 4]] * 2)
    joined = law.combined(weights, ["a", "b"])
    assert (joined.highs - joined.values).tolist() == [3, 6]
    assert joined.wides.tolist() == [3, 6]
    assert joined.law(np.array([[1.0, 1]]), [0.5])[0].tolist() == [1 + 2 * 1 + 4 * 0.5]


def test_some_of_the_answers_keep_what_belongs_to_them() -> None:
    answer = three(
        codes=("x", "y", "z"),
        sources=("s0", "s1"),
        wides=np.array([1.0, 2, 3]),
        errors=lambda draws, *_: np.tile([1.0, 2, 3], (draws, 1)),
        law=lambda sums, levels: [sums @ [1.0, 10, 100]],
    )
    some = answer.only(["c2", "c0"])
    assert (some.labels, some.codes, some.sources) == (("c2", "c0"), ("z", "x"), ("s0",))
    assert (some.values.tolist(), some.halves.tolist(), some.wides.tolist()) == ([-60, 100], [1, 0.5], [3, 1])
    assert (some.lows.tolist(), some.highs.tolist()) == (answer.lows[[2, 0]].tolist(), answer.highs[[2, 0]].tolist())
    assert some.covariance.tolist() == [[16, -0.5], [-0.5, 4]]
    assert some.errors(2, "x").tolist() == [[3, 1]] * 2
    assert some.law(np.array([[1.0, 2]]), [0.5])[0].tolist() == [102]
    assert answer.only(["c0", "c1", "c2"]) is answer
    assert answer.only(["c1", "c0", "c2"]).values.tolist() == [40, 100, -60]
    assert three().only(["c1"]).codes == ()


def test_labels_and_codes_name_answers_and_others_are_refused() -> None:
    answer = three(codes=("x", "y", "c0"))
    assert answer._pair("c1", "x") == (1, 0)
    # A label is meant before a code.
    assert answer._pair("c0", "y") == (0, 1)
    with pytest.raises(ParameterError, match=r"not among the answers: 'q'\. They are c0, c1, c2"):
        answer.difference("q", "x")
    assert len(answer) == 3
    for name in ("value", "sd", "low", "high"):
        with pytest.raises(ParameterError, match="is one of 3"):
            getattr(answer, name)
    one = three().only(["c2"])
    assert (one.value, one.sd) == (-60, 4)
    assert (one.low, one.high) == pytest.approx((-60 - 1.96 * 4, -60 + 1.96 * 4))


def test_what_is_cut_derived_or_grows_is_refused_for_what_it_cannot_give() -> None:
    cut, derived_ones, growing = three(clipped=True), three(moments=False), three(errors=None)
    plain = three()
    plain.require_moments("x")
    plain.require_additive("x")
    plain._require_linear()
    for answer in (cut, derived_ones):
        with pytest.raises(ParameterError, match="no x are computed"):
            answer.require_moments("x")
    growing.require_moments("x")
    for answer in (cut, growing):
        with pytest.raises(ParameterError, match="no x are computed"):
            answer.require_additive("x")
    derived_ones.require_additive("x")
    for answer in (cut, three(normal=False)):
        with pytest.raises(ParameterError, match="no ratio is taken"):
            answer._require_linear()
    three(normal=False, wides=np.ones(3))._require_linear()


# Ratios.


def test_the_ends_of_a_ratio_are_where_the_difference_reaches_its_own_error() -> None:
    """Fieller: |a - r b| = z sqrt(v - 2 r c + r^2 w) + h + |r| k at both ends, on either side of the ratio."""
    for first, second in (("c0", "c1"), ("c0", "c2"), ("c2", "c1"), ("c1", "c0")):
        one, other = int(first[1]), int(second[1])
        found = three().ratio(first, second)
        ratio = VALUES[one] / VALUES[other]
        assert found.value == pytest.approx(ratio)
        assert found.low < ratio < found.high
        for end in (found.low, found.high):
            spread = COVARIANCE[one, one] - 2 * end * COVARIANCE[one, other] + end**2 * COVARIANCE[other, other]
            reach = Z * math.sqrt(spread) + HALVES[one] + abs(end) * HALVES[other]
            assert abs(VALUES[one] - end * VALUES[other]) == pytest.approx(reach, rel=1e-9)
        variance = COVARIANCE[one, one] - 2 * ratio * COVARIANCE[one, other] + ratio**2 * COVARIANCE[other, other]
        assert found.sd == pytest.approx(math.sqrt(variance) / abs(VALUES[other]))
        assert found.covariance[0, 0] == pytest.approx(variance / VALUES[other] ** 2)
    share = three().share("c1", "c0")
    assert (share.labels, share.percent, share.value) == (("c1 as a share of c0",), True, 0.4)


def test_a_denominator_is_clear_if_it_is_beyond_its_reach() -> None:
    """Standard errors of 1 and half steps of 0.5: clear beyond 1.96 + 0.5, on either side of 0."""
    edge = Z + 0.5
    values = np.array([edge - 1e-9, edge + 1e-9, -edge + 1e-9, -edge - 1e-9])
    answer = made(values, np.eye(4), halves=np.full(4, 0.5))
    assert Quotients(Z, None).different(_side(answer)).tolist() == [False, True, False, True]
    wide = made(values, np.eye(4), normal=False, wides=np.array([9.0, edge, edge, edge]))
    assert Quotients(Z, 0.95).different(_side(wide)).tolist() == [False, True, False, True]
    assert answer.wide_reach() == pytest.approx(np.full(4, norm.ppf(0.9875) + 0.5))
    assert wide.wide_reach().tolist() == [9, edge, edge, edge]
    with pytest.raises(ParameterError, match="denominator that is not clearly"):
        answer.ratio("c1", "c0")
    with pytest.raises(ParameterError, match="denominators all of which are not"):
        made([5.0, 6.0], np.eye(2), of="a").per(made([0.1, 0.2], np.eye(2), of="b"))


def test_ratios_by_corners_hold_every_quotient_of_both_intervals() -> None:
    given: dict[str, Any] = {"normal": False, "wides": np.array([10.0, 5, 20])}
    answer = three(**given)
    found = answer.ratio("c0", "c2")
    corners = [(100 + a) / (-60 + b) for a in (-10, 10) for b in (-20, 20)]
    assert (found.low, found.high) == pytest.approx((min(corners), max(corners)))
    assert found.notes[-1].startswith(
        "Errors are not normal: the interval holds every quotient of the two intervals at 97.5% each"
    )
    assert found.notes[-1].endswith("right in at least 95% of cases.")
    assert found.method.endswith(", intervals by corners")
    assert not three().ratio("c0", "c1").notes
    # One of two with other errors makes corners of both, and then both need one confidence.
    other = made(VALUES, COVARIANCE, of="other", confidence=0.9)
    with pytest.raises(ParameterError, match="has another confidence"):
        answer.per(other)
    assert three().per(other).normal is False


def test_shares_are_of_the_last_or_of_the_second_half_one_by_one() -> None:
    values = np.array([10.0, 30, 100, 60])
    covariance = np.diag([1.0, 2, 3, 4]) + 0.5
    answer = made(values, covariance)
    found = answer.shares(of="all")
    assert found.labels == ("c0", "c1", "c2")
    assert found.values == pytest.approx([1 / 6, 0.5, 10 / 6])
    assert found.question.endswith(": as a share of all")
    assert found.percent
    each = answer.shares(each=True)
    assert each.labels == ("c0", "c1")
    assert each.values == pytest.approx([0.1, 0.5])
    assert each.question.endswith(": as a share")
    # The errors of 10/100 and 30/60: of (a - r b)/b.
    one, other = np.array([1, 0, -0.1, 0]) / 100, np.array([0, 1, 0, -0.5]) / 60
    assert each.covariance == pytest.approx(np.array([one, other]) @ covariance @ np.array([one, other]).T)
    unclear = made(np.array([10.0, 30, 100, 0.5]), np.eye(4)).shares(each=True)
    assert unclear.labels == ("c0",)
    assert unclear.notes == ("Left out, as the denominator is not clearly different from 0: 1 (c1).",)


def test_ratios_of_two_statistics_are_independent_and_those_of_one_are_refused() -> None:
    top, bottom = three(of="d:pay"), made(np.array([10.0, 20, 30]), np.diag([0.1, 0.2, 0.3]), of="d:emp")
    found = top.per(bottom)
    assert found.values.tolist() == [10, 2, -2]
    ratio = found.values
    exact = (COVARIANCE + np.outer(ratio, ratio) * np.diag([0.1, 0.2, 0.3])) / np.outer([10, 20, 30], [10, 20, 30])
    assert found.covariance == pytest.approx(exact)
    about = dict(top.release)
    shared = {
        name: made(np.array([10.0, 20, 30]), np.eye(3), of="e:emp", release={**about, **more})
        for name, more in {
            "other stage": {"digest": "e", "stages": "s1 s2"},
            "same release": {"digest": "d", "stages": "s1"},
            "no stage": {"digest": "e", "stages": "s3"},
        }.items()
    }
    staged = three(of="d:pay", release={**about, "stages": "s2 s1"})
    with pytest.raises(ParameterError, match="shares its noise with this one"):
        staged.per(shared["other stage"])
    assert len(staged.per(shared["same release"])) == len(staged.per(shared["no stage"])) == 3
    with pytest.raises(ParameterError, match="has other labels"):
        top.per(made([1.0], np.eye(1), of="x"))
    with pytest.raises(ParameterError, match="same statistic of the same release"):
        top.per(top)
    with pytest.raises(ParameterError, match="no ratio is taken"):
        top.per(made(np.array([10.0, 20, 30]), np.eye(3), of="x", clipped=True))


def test_growth_since_two_releases_has_the_errors_of_the_later_one_in_common() -> None:
    now = made(np.array([110.0, 60]), np.diag([4.0, 1]), of="n:emp")
    one = made(np.array([100.0, 50]), np.diag([2.0, 3]), of="a:emp", release={**now.release, "title": "first"})
    two = made(np.array([80.0, 40]), np.diag([1.0, 5]), of="b:emp")
    found = now.grown([one, two], ["2020", "2021"])
    assert found.labels == ("c0, since 2020", "c1, since 2020", "c0, since 2021", "c1, since 2021")
    assert found.values == pytest.approx([0.1, 0.2, 0.375, 0.5])
    assert found.percent
    # Of now, one and two: the row of each growth.
    rows = np.array(
        [
            [1 / 100, 0, -1.1 / 100, 0, 0, 0],
            [0, 1 / 50, 0, -1.2 / 50, 0, 0],
            [1 / 80, 0, 0, 0, -1.375 / 80, 0],
            [0, 1 / 40, 0, 0, 0, -1.5 / 40],
        ]
    )
    assert found.covariance == pytest.approx(rows @ np.diag([4.0, 1, 2, 3, 1, 5]) @ rows.T)
    alone = now.growth(one)
    assert alone.labels == ("c0", "c1")
    assert alone.question.endswith(": growth since first")
    ratio = made(np.array([110.0, 100]), np.diag([4.0, 2])).ratio("c0", "c1")
    assert (alone.lows[0], alone.highs[0]) == pytest.approx((ratio.low - 1, ratio.high - 1))


def test_growth_since_a_release_whose_noise_is_carried_on_has_less_error() -> None:
    """What follows carries half of the errors before: their covariance is half of the earlier variance."""
    one = made(np.array([100.0, 50]), np.diag([2.0, 3]), of="a:emp")
    now = made(
        np.array([110.0, 60]), np.diag([4.0, 1]), of="n:emp", release={**one.release, "digest": "e", "follows": "d 0.5"}
    )
    assert now._carried(one) == 0.5
    found = now.growth(one)
    exact = [(4 - 2 * 1.1 * 1 + 1.1**2 * 2) / 100**2, (1 - 2 * 1.2 * 1.5 + 1.2**2 * 3) / 50**2]
    assert np.diag(found.covariance) == pytest.approx(exact)
    assert made([1.0], np.eye(1), of="n:emp")._carried(one) is None
    for other in ({"of": "a:pay"}, {"release": {**one.release, "digest": "x"}}, {"labels": ("c0", "q")}):
        assert now._carried(made(one.values, one.covariance, **{"of": "a:emp", **other})) is None


def test_sides_are_tiled_joined_and_put_along_a_diagonal() -> None:
    answer = made(np.array([1.0, 2]), np.array([[1.0, 0.5], [0.5, 2]]), halves=np.array([0.1, 0.2]))
    side = _side(answer)
    tiled = _tiled(side, 2)
    assert tiled.values.tolist() == [1, 2, 1, 2]
    assert tiled.covariance.tolist() == [[1, 0.5, 1, 0.5], [0.5, 2, 0.5, 2]] * 2
    joined = _joined([side, _side(answer, np.array([1]))])
    assert (joined.values.tolist(), joined.halves.tolist()) == ([1, 2, 2], [0.1, 0.2, 0.2])
    assert joined.covariance.tolist() == [[1, 0.5, 0], [0.5, 2, 0], [0, 0, 2]]
    assert _blocks([np.ones((1, 1)), np.full((2, 2), 3.0)]).tolist() == [[1, 0, 0], [0, 3, 3], [0, 3, 3]]
    with pytest.raises(ParameterError, match="denominator that is"):
        _quotients(side, side, side.covariance, Quotients(Z, None))
    # Without any error the ends are the ratio itself.
    exact = made(np.array([3.0, 6]), np.zeros((2, 2)))
    ends = _fieller(_side(exact, np.array([0])), _side(exact, np.array([1])), np.zeros((1, 1)), Z)
    assert [each[0] for each in ends] == pytest.approx([0.5, 0.5], abs=1e-300)


def test_reliability_is_the_part_of_the_spread_that_is_not_noise() -> None:
    """The noise adds the trace less the mean of the covariance to the sum of squares."""
    found = three().reliability()
    assert found == pytest.approx(1 - (29 - COVARIANCE.sum() / 3) / np.sum((VALUES - VALUES.mean()) ** 2))


def test_texts_are_numbers_or_percents_with_the_decimals_that_the_smallest_error_asks_for() -> None:
    assert made(np.array([1236.0]), np.array([[4.0]])).texts == [("1,236", "2", "1,232", "1,240")]
    # One decimal for an error of 1 %, for all of them: 12.34 % less 1.96 times 1 % is 10.38 %.
    percents = made(np.array([0.1234, 0.5]), np.diag([0.01**2, 0.2**2]), percent=True).texts
    assert percents == [("12.3%", "1.0%", "10.4%", "14.3%"), ("50.0%", "20.0%", "10.8%", "89.2%")]
    one = made(np.array([5.0]), np.eye(1), release={**three().release, "private": "", "privacy_label": "NOT PRIVATE"})
    assert " (NOT PRIVATE), with a standard error of " in one.sentence
    assert "(p)" not in made(np.array([5.0]), np.eye(1)).sentence
    assert three().sentence.startswith("Total of emp by county: c0: 100")
    assert repr(three()) == "<3 answers: total of emp by county>"
    noted = made(np.array([5.0]), np.eye(1), sources=("a", "b"), notes=("n",))
    assert repr(noted).splitlines()[1:] == ["From a.", "From b.", "n"]
    shown = three(notes=("first", "second"))._repr_html_()
    assert (
        shown.index("total of emp by county")
        < shown.index("standard error")
        < shown.index("first")
        < shown.index("second")
    )


# Ranks.


def test_the_largest_pair_of_each_value_is_scaled_by_its_own_deviation() -> None:
    errors = np.array([[1.0, 4, -2], [0, 0, 5]])
    inverse = np.array([[0.0, 0.5, 1], [0.5, 0, 0.1], [1, 0.1, 0]])
    found = _largest_of_pairs(errors, inverse)
    # First draw: |1 - 4| / 2, |1 + 2|, |4 + 2| / 10.
    assert found.tolist() == [[3, 1.5, 3], [5, 0.5, 5]]


def test_rank_sets_of_pairs_count_who_is_clearly_above_and_below() -> None:
    """Errors of pairs stay within 10 alone and 20 together, whatever the pair."""
    values = np.array([100.0, 88, 75, 74])

    def drawn(draws: int, *_: Any) -> Any:
        return np.zeros((draws, 4))

    answer = made(values, np.eye(4), normal=False, errors=drawn)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(derived, "_quantiles", lambda _: (np.full(4, 10.0), 20.0, np.ones((4, 4))))
        found = answer.rank()
        assert (found.best.tolist(), found.worst.tolist()) == ([1, 2, 3, 3], [1, 2, 4, 4])
        assert (found.all_best.tolist(), found.all_worst.tolist()) == ([1, 1, 2, 2], [2, 4, 4, 4])
        assert found.top(1) == ((), ("c0", "c1"))
        assert found.top(2) == (("c0",), ("c0", "c1", "c2", "c3"))
        assert found.sentence(2).endswith(
            "for certain among the top 2: 1; possibly: 4 (all at once with 95% confidence)."
        )
        assert found.sentence() == found.sentence(10)
        # Half steps of normal errors count for both of a pair.
        stepped = made(values, np.eye(4), halves=np.full(4, 1.0)).rank()
        assert (stepped.best.tolist(), stepped.worst.tolist()) == ([1, 1, 3, 3], [2, 2, 4, 4])


def test_ranks_by_intervals_count_those_entirely_above_and_below() -> None:
    answer = made(np.array([10.0, 20, 29, 60]), np.diag([1.0, 4, 9, 16]), halves=np.array([0.0, 0.1, 0.2, 0.3]))
    level = 0.95**0.25
    reach = norm.ppf((1 + level) / 2) * answer.sds + answer.halves
    best, worst = derived._by_intervals(answer)
    above = [sum(answer.values[j] - reach[j] > answer.values[i] + reach[i] for j in range(4)) for i in range(4)]
    below = [sum(answer.values[j] + reach[j] < answer.values[i] - reach[i] for j in range(4)) for i in range(4)]
    assert best.tolist() == [1 + each for each in above] == [4, 2, 2, 1]
    assert worst.tolist() == [4 - each for each in below] == [4, 3, 3, 1]


def test_normal_errors_of_ranks_have_the_covariance_of_the_answers() -> None:
    """2,000 draws: the mean product of two errors is within six standard errors; false alarms below 1e-7."""
    drawn = derived._normal_errors(three())
    assert drawn.shape == (2000, 3)
    found = drawn.T @ drawn / 2000
    scale = np.sqrt((np.outer(np.diag(COVARIANCE), np.diag(COVARIANCE)) + COVARIANCE**2) / 2000)
    assert np.all(np.abs(found - COVARIANCE) < 6 * scale)


@pytest.mark.parametrize(
    ("cells", "draws"), [(0, 2000), (1, 2000), (10_000, 2000), (20_000, 1000), (40_000, 500), (10**9, 500)]
)
def test_fewer_errors_are_drawn_where_each_takes_many_numbers(cells: int, draws: int) -> None:
    asked: list[Any] = []

    def errors(count: int, purpose: str, left: float) -> Any:
        asked.append((count, purpose, left))
        return np.zeros((count, 3))

    derived._drawn_errors(three(normal=False, errors=errors, cells=cells), 4.0)
    derived._drawn_errors(three(normal=False, errors=errors, cells=cells), 0.0)
    assert asked == [(draws, "rank", derived.LEFT_OUT / 4), (draws, "rank", 0.0)]


def test_a_table_of_ranks_begins_with_the_largest_value() -> None:
    answer = three()
    given = {name: np.array(each) for name, each in {"best": [1, 2, 3], "worst": [1, 3, 3]}.items()}
    ranks = Ranks(answer=answer, **given, all_best=np.array([1, 1, 2]), all_worst=np.array([2, 3, 3]), method="m")
    shuffled = Ranks(
        answer=answer.only(["c2", "c0", "c1"]), **given, all_best=given["best"], all_worst=given["worst"], method="m"
    )
    assert ranks.table.to_pydict() == {
        "label": ["c0", "c1", "c2"],
        "value": [100, 40, -60],
        "rank": [1, 2, 3],
        "best": [1, 2, 3],
        "worst": [1, 3, 3],
        "all_best": [1, 1, 2],
        "all_worst": [2, 3, 3],
    }
    assert shuffled.table["label"].to_pylist() == ["c0", "c1", "c2"]
    assert shuffled.table["best"].to_pylist() == [2, 3, 1]
    shown = ranks._repr_html_()
    for text in ("rank, this one alone", "rank, all at once", "2 to 3", "1 to 2"):
        assert text in shown


# Regressions.


def noisy(seed: int, count: int, columns: int = 1) -> Noisy:
    rng = np.random.default_rng(seed)
    errors = np.array([_spread(rng, count) for _ in range(columns)])
    return Noisy(
        columns=rng.normal(0, 5, (count, columns)),
        response=rng.normal(0, 5, count),
        weights=rng.uniform(0.5, 2, count),
        column_errors=errors,
        response_errors=_spread(rng, count),
    )


def _spread(rng: Any, count: int) -> Any:
    root = rng.normal(size=(count, count)) / 3
    return root @ root.T


@pytest.mark.parametrize("seed", range(4))
def test_sums_over_rows_and_columns_are_those_of_loops(seed: int) -> None:
    """What noise adds to a spread, its uncertainty, the products, and the variance of scores; each as a double sum."""
    model = noisy(seed, 6, 2)
    w, x, errors = model.weights, model.columns, model.column_errors
    total = w.sum()
    for k in range(2):
        added = sum(w[i] * errors[k, i, i] for i in range(6))
        added -= sum(w[i] * errors[k, i, j] * w[j] for i in range(6) for j in range(6)) / total
        assert model.added[k] == pytest.approx(added)
        linear = sum(x[i, k] * w[i] * errors[k, i, j] * w[j] * x[j, k] for i in range(6) for j in range(6))
        twice = sum(w[i] * errors[k, i, j] * w[j] * errors[k, j, i] for i in range(6) for j in range(6))
        assert model.uncertain()[k] == pytest.approx(math.sqrt(max(4 * linear - 2 * twice, 0)))
        assert model.products[k] == pytest.approx(sum(w[i] * x[i, k] * model.response[i] for i in range(6)))
        for other in range(2):
            assert model.spread[k, other] == pytest.approx(sum(w[i] * x[i, k] * x[i, other] for i in range(6)))


@pytest.mark.parametrize("seed", range(6))
def test_the_variance_of_scores_is_that_of_their_sum_over_pairs(seed: int) -> None:
    model = noisy(seed, 7)
    none, between, two = model.scores()
    w, x, y, e, f = model.weights, model.columns[:, 0], model.response, model.column_errors[0], model.response_errors
    off = [(i, j) for i in range(7) for j in range(7) if i != j]
    own = [7 / 5 * sum((w * x * y) ** 2), 7 / 5 * sum((w * (x**2 - np.diag(e))) ** 2)]
    more = [
        sum(w[i] * x[i] * f[i, j] * w[j] * x[j] for i, j in off),
        sum(w[i] * x[i] * e[i, j] * w[j] * x[j] + w[i] * e[i, j] ** 2 * w[j] for i, j in off),
    ]
    cross = 7 / 5 * sum(w * x * y * w * (x**2 - np.diag(e)))
    if min(own[0] + more[0], own[1] + more[1]) <= 0 or (own[0] + more[0]) * (own[1] + more[1]) < cross**2:
        more = [max(each, 0.0) for each in more]
    assert (none, between, two) == pytest.approx((own[0] + more[0], cross, own[1] + more[1]))


@pytest.mark.parametrize("seed", range(4))
def test_the_covariance_of_scores_of_several_columns_is_that_of_double_sums(seed: int) -> None:
    model, slopes = noisy(seed, 8, 2), np.array([0.7, -1.3])
    w, x, e, f = model.weights, model.columns, model.column_errors, model.response_errors
    rest = model.response - x @ slopes
    scores = [[w[i] * (x[i, k] * rest[i] + e[k, i, i] * slopes[k]) for k in range(2)] for i in range(8)]
    off = [(i, j) for i in range(8) for j in range(8) if i != j]
    known = 8 / (8 - 2 - 1) * np.array(scores).T @ np.array(scores)
    for k in range(2):
        for m in range(2):
            for i, j in off:
                error = f[i, j] + sum(slopes[c] ** 2 * e[c, i, j] for c in range(2))
                known[k, m] += w[i] * x[i, k] * error * w[j] * x[j, m]
                known[k, m] += slopes[k] * slopes[m] * w[i] * e[k, i, j] * e[m, i, j] * w[j]
    assert np.linalg.eigvalsh(known)[0] > 0
    assert model.sandwich(slopes) == pytest.approx(known)


class Given(Noisy):
    """Scores and products that are given."""

    __slots__ = ("product", "told")
    told: Any
    product: float

    def scores(self) -> Any:
        return self.told

    @property
    def products(self) -> Any:
        return np.array([self.product])


@pytest.mark.parametrize(
    ("told", "kept", "product", "found"),
    [
        # (kept b - product)^2 <= none - 2 one b + two b^2 at z = 1.
        ((1.0, 0.0, 0.0), 2.0, 6.0, (2.5, 3.5, "")),
        ((1.0, 0.0, 3.0), 2.0, 6.0, (12 - math.sqrt(144 - 35), 12 + math.sqrt(144 - 35), "")),
        ((9.0, 0.0, 4.0), 2.0, 3.0, (-np.inf, np.inf, "Every slope fits: the noise is larger than what it hides.")),
        ((9.0, 0.0, 9.0), 2.0, 1.0, (-np.inf, np.inf, "Every slope fits: the noise is larger than what it hides.")),
        ((1.0, 0.0, 5.0), 2.0, 3.0, (-np.inf, np.inf, "Every slope fits but those between -12.63 and 0.6332.")),
    ],
)
def test_the_set_of_slopes_is_two_ends_all_or_all_but_an_interval(
    told: Any, kept: float, product: float, found: Any
) -> None:
    model = object.__new__(Given)
    object.__setattr__(model, "told", told)
    object.__setattr__(model, "product", product)
    low, high, said = _slope_set(model, kept, 1.0)
    assert (low, high) == pytest.approx(found[:2])
    assert said == found[2]


@pytest.mark.parametrize(("largest", "few"), [(1.0, False), (1e4, True)])
def test_of_an_interval_without_ends_the_reason_is_told(largest: float, few: bool) -> None:
    """One row far beyond all others decides the slope; or noise does, where no row is."""
    rng = np.random.default_rng(4)
    x = np.append(rng.normal(0, 1, 19), largest)
    found = made(3 * x + rng.normal(0, 0.1, 20), np.eye(20) * 0.01).regress({"x": x})
    assert np.isinf(found.lows[0]) == few
    assert (FEW_ROWS in found.notes) == few
    assert "the noise is larger" not in repr(found)


def test_slopes_of_exact_columns_are_those_of_weighted_least_squares() -> None:
    rng = np.random.default_rng(2)
    x, z, w = rng.normal(5, 2, 12), rng.normal(0, 3, 12), rng.uniform(0.5, 3, 12)
    y = 4 + 2 * x - 3 * z + rng.normal(0, 0.1, 12)
    found = made(y, np.eye(12) * 0.01).regress({"x": x, "z": z}, weights=w)
    design = np.column_stack([np.ones(12), x, z])
    known = np.linalg.solve(design.T @ (design * w[:, None]), design.T @ (w * y))
    assert (found.intercept, *found.slopes) == pytest.approx(tuple(known))
    assert found.naive == pytest.approx(known[1:])
    assert found.reliabilities.tolist() == [1, 1]
    centered = design[:, 1:] - w @ design[:, 1:] / w.sum()
    rest = (y - w @ y / w.sum()) - centered @ found.slopes
    inverse = np.linalg.inv(centered.T @ (centered * w[:, None]))
    scores = w[:, None] * centered * rest[:, None]
    exact = np.sqrt(np.diag(inverse @ (12 / 9 * scores.T @ scores) @ inverse))
    assert found.sds == pytest.approx(exact)
    assert found.highs - found.slopes == pytest.approx(Z * exact)
    assert found.slopes - found.lows == pytest.approx(Z * exact)
    assert found.notes == ()
    assert found.reliability_text().splitlines() == [
        "Stata: eivreg y x z, reliab(x 1 z 1)",
        "R: eivtools::eivreg(y ~ x + z, data, reliability = c(x = 1, z = 1))",
    ]


def test_regressions_are_refused_alone_for_each_reason() -> None:
    response = made(np.arange(5.0), np.eye(5) * 1e-4, of="d:pay")
    line: list[float] = [0.0, 1, 4, 9, 16]
    assert response.regress({"x": line, "y": [1.0, 0, 0, 2, 0]}).names == ("x", "y")
    cases: list[tuple[Any, Any, str]] = [
        ({}, None, "must be at least one, and three fewer than the 5 values"),
        ({"x": line, "y": [1.0, 0, 0, 2, 0], "z": [0.0, 1, 0, 0, 3]}, None, "must be at least one, and three fewer"),
        ({"x": line[:4]}, None, "must have 5 values"),
        ({"x": made(line, np.eye(5), of="d:pay")}, None, "same statistic of one release"),
        ({"x": made(line, np.eye(5), of="q", labels=tuple("abcde"))}, None, "have other labels"),
        ({"x": made(line, np.eye(5), of="q", clipped=True)}, None, "no regressions are computed"),
        ({"x": line}, [1.0, 1, 1, 1, 0], "must be 5 positive numbers"),
        ({"x": line}, [1.0, 1, 1, 1, np.inf], "must be 5 positive numbers"),
        ({"x": line}, [1.0, 1, 1, 1], "must be 5 positive numbers"),
        ({"x": line, "y": made(line[::-1], np.eye(5) * 1e4, of="q")}, None, "mostly noise, or nearly the same"),
    ]
    for covariates, weights, problem in cases:
        with pytest.raises(ParameterError, match=problem):
            response.regress(covariates, weights=weights)


# Conditions and regions.


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a = 1", "a is 1"),
        ("a = '1 and 2'", "a is 1 and 2"),
        ("a <> 1", "a is not 1"),
        ("a != 1", "a is not 1"),
        ("a IN (1, '2', 1)", "a is 1, 2"),
        ("a not in (1)", "a is not 1"),
        ("not a = 1", "a is not 1"),
        ("not not a = 1", "not (a is not 1)"),
        ("not (a = 1 or b = 2)", "not (a is 1 or b is 2)"),
        ("a = 1 and b = 2 or c = 3", "a is 1 and b is 2 or c is 3"),
        ("a = 1 and (b = 2 or c = 3)", "a is 1 and (b is 2 or c is 3)"),
        ("(a = 1)", "a is 1"),
    ],
)
def test_conditions_are_told_in_words(text: str, told: str) -> None:
    condition = condition_of(text)
    assert condition is not None
    assert condition.text({}) == told
    assert condition_of(condition) is condition


def test_conditions_nest_as_deep_as_forty_and_no_deeper() -> None:
    for opened, closed in (("(", ")"), ("not ", "")):
        assert condition_of(opened * (DEEPEST - 1) + "a = 1" + closed * (DEEPEST - 1)) is not None
        with pytest.raises(ParameterError, match="too many parentheses"):
            condition_of(opened * DEEPEST + "a = 1" + closed * DEEPEST)
    # Beside each other is not within each other.
    assert condition_of(" or ".join(["(a = 1)"] * 60)) is not None


def test_conditions_from_mappings_and_what_neither_passes_nor_fails() -> None:
    assert condition_of(None) is None
    assert condition_of({}) is None
    assert condition_of({"a": "1"}) == Among("a", ("1",))
    assert condition_of({"a": [1, 2, 1], "b": 3}) == Joined((Among("a", ("1", "2")), Among("b", ("3",))), every=True)
    with pytest.raises(ParameterError, match="names no code of 'a'"):
        condition_of({"a": []})
    known = {
        "a": (np.array([1, 0, 0], bool), np.array([0, 1, 0], bool)),
        "b": (np.array([1, 1, 0], bool), np.array([0, 0, 1], bool)),
    }

    def truth(text: str) -> list[list[bool]]:
        condition = condition_of(text)
        assert condition is not None
        return [each.tolist() for each in condition.truth(lambda test: known[test.column])]

    assert truth("a = 1") == [[True, False, False], [False, True, False]]
    assert truth("not a = 1") == [[False, True, False], [True, False, False]]
    assert truth("a = 1 and b = 1") == [[True, False, False], [False, True, True]]
    assert truth("a = 1 or b = 1") == [[True, True, False], [False, False, False]]
    nested = condition_of("not (a = 1 or b = 2 and c = 3)")
    assert isinstance(nested, Not)
    assert [each.column for each in nested.tests()] == ["a", "b", "c"]


def test_questions_name_their_columns_once_and_say_what_was_asked() -> None:
    labels = {"emp": "employees", "a=1": "One"}
    plain = Question.of("emp", None)
    assert (plain.columns, plain.text(labels)) == ((), "total of employees")
    assert (plain.complete, plain.nonnegative, plain.query, plain.whole) == (None, False, None, None)
    by = Question.of("emp", "a = 1 and b = 2 and a = 3", by="b")
    assert (by.columns, by.text(labels)) == (
        ("a", "b"),
        "total of employees where a is One (1) and b is 2 and a is 3 by b",
    )
    regions = {"county": ["1", "2"], "region": ["r", "r"]}
    made_of = Question.of("pay", {"a": "1"}, regions=regions)
    assert made_of.columns == ("a", "county")
    assert made_of.text({}) == f"total of pay where a is 1 by 1 regions (list {short_digest(['1,r,1.0', '2,r,1.0'])})"
    assert Question.of("pay", None, by="county", regions=regions).by is None
    assert short_digest(["b", "a"]) == short_digest(["a", "b"])
    assert len(short_digest(["a"])) == 12
    assert (with_label("a", "1", labels), with_label("a", "2", labels)) == ("One (1)", "2")


@pytest.mark.parametrize(
    ("given", "column", "problem"),
    [
        ({"code": ["1"], "region": ["r", "s"]}, None, "different lengths"),
        ({"code": ["1"]}, None, "must have the columns code and region"),
        ({"code": ["1"], "region": ["r"], "more": [1]}, None, "must have the columns code and region"),
        ({"region": ["r"], "share": [1]}, None, "must have the columns code and region"),
        ({"code": [None], "region": ["r"]}, None, "without a code or a region"),
        ({"code": ["1"], "region": [None]}, None, "without a code or a region"),
        ({"code": ["1"], "region": ["r"], "share": [-1e-9]}, None, "share that is no number of at least 0"),
        ({"code": ["1"], "region": ["r"], "share": [np.inf]}, None, "share that is no number of at least 0"),
        ({"code": ["1"], "region": ["r"], "share": ["x"]}, None, "share that is no number of at least 0"),
        ({"code": ["1", "2"], "region": ["r", "r"], "share": ["30", ".7"]}, None, "share above 1"),
        ({"code": ["1", "1"], "region": ["r", "r"]}, None, "names a code twice"),
        ({"county": ["1"], "region": ["r"]}, "state", "differs from the column of the regions, 'county'"),
        (3, None, "must be a CSV file, a frame, or a mapping"),
    ],
)
def test_regions_are_refused_alone_for_each_reason(given: Any, column: str | None, problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        Regions.of(given, column)


def test_regions_have_shares_of_one_unless_they_are_given() -> None:
    found = Regions.of({"code": [1, 1, "2"], "region": ["r", "s", "s"], "share": [0, "0.5", ""]}, "county")
    assert (found.column, found.codes, found.regions, found.shares.tolist()) == (
        "county",
        ("1", "1", "2"),
        ("r", "s", "s"),
        [0, 0.5, 1],
    )
    assert Regions.of({"code": ["1"], "region": ["r"]}, None).column is None
    for column in (None, "county"):
        assert Regions.of({"county": ["1"], "region": ["r"]}, column).column == "county"
    assert Regions.of(pa.table({"code": ["1"], "region": ["r"], "share": [None]}), None).shares.tolist() == [1]


@pytest.mark.parametrize(
    ("text", "problem"),
    [("code,region\n1,r,3\n", "more or fewer entries"), ("code,region\n1\n", "more or fewer entries")],
)
def test_lines_of_regions_have_as_many_entries_as_the_first(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "zones.csv"
    file.write_text(text)
    with pytest.raises(SourceError, match=problem):
        Regions.of(file, None)
    with pytest.raises(SourceError, match="the file does not exist"):
        Regions.of(tmp_path / "none.csv", None)
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe,region")
    with pytest.raises(SourceError, match="cannot be read as CSV"):
        Regions.of(tmp_path / "bytes.csv", None)
    file.write_text("\ufeffcode,region\n1,r\n", encoding="utf-8")
    assert Regions.of(str(file), None).codes == ("1",)


# Cells of questions.


def test_regions_weigh_the_cells_of_their_codes_and_say_what_is_missing() -> None:
    regions = Regions.of(
        {
            "code": ["a", "b", "q", "b", "x", "c"],
            "region": ["r", "r", "r", "s", "gone", "s"],
            "share": [1, 0.25, 1, 0.75, 1, 1],
        },
        "county",
    )
    texts = pa.array(["b", "a", None, "b", "d", "c"])
    labels, weights, notes, missing = asking._region_weights(regions, "county", texts)
    assert labels == ("r", "s", "gone")
    assert weights.toarray().tolist() == [[0.25, 1, 0, 0.25, 0, 0], [0.75, 0, 0, 0.75, 0, 1], [0] * 6]
    assert missing == ("r", "gone")
    assert notes == (
        "1 regions have no code of county in the table and are left out.",
        "Codes of 1 regions are not in the table and add nothing there: r.",
    )
    whole = asking._region_weights(Regions.of({"code": ["a"], "region": ["r"]}, "county"), "county", texts)
    assert whole[2:] == ((), ())
    assert asking._incidence(texts, pa.array(["c", "b"])).toarray().tolist() == [[0, 0, 0, 0, 0, 1], [1, 0, 0, 1, 0, 0]]


def test_ends_add_up_unless_one_is_missing() -> None:
    rows = sparse.csr_array(np.array([[1.0, 2, 0], [0, 1, 1], [1, 0, 0]]))
    assert asking._added(rows, np.array([3.0, 4, np.nan])).tolist() == [11, np.inf, 3]


def test_what_cutting_adds_is_the_mean_of_what_is_cut() -> None:
    """At totals of 0, 0.5, 1 and 2 standard errors: the mean of max(0, -(t + Z)), by quadrature."""
    z = np.linspace(-12, 12, 240_001)
    means = [float(np.mean(np.maximum(-(t + z), 0) * norm.pdf(z)) * 24) for t in (0, 0.5, 1, 2)]
    told = [float(part.split(" at ")[0]) for part in asking.bias_text().split(", ")]
    assert told == pytest.approx(means, abs=0.006)
    assert [part.split(" at ")[1] for part in asking.bias_text().split(", ")] == ["0", "0.5", "1", "2"]


# Growth over codes that changed.


def test_values_of_codes_that_became_one_are_added_up() -> None:
    answer = three(codes=("x", "y", "z"))
    merged = _merged(answer, {"x": "x+z", "z": "x+z"})
    assert merged.labels == ("x+z", "c1")
    assert merged.values.tolist() == [40, 40]
    assert merged.covariance == pytest.approx(np.array([[4 + 16 - 1.0, 3], [3, 9]]))
    assert _same_codes({"a": 1}, [("a", "1")])
    assert _same_codes([("a", "b"), ("c", "d")], [("c", "d"), ("a", "b")])
    assert not _same_codes({"a": "c"}, [("a", "b")])
    assert not _same_codes({}, [("a", "b")])


def test_regions_of_earlier_codes_take_whole_groups() -> None:
    """Today's b was b and old; today's c and d were one code, e."""
    before, now = {"b": "b", "old": "b", "e": "c+d"}, {"b": "b", "c": "c+d", "d": "c+d"}
    regions = Regions.of(
        {"code": ["a", "b", "c", "d"], "region": ["r", "s", "t", "t"], "share": [1, 0.5, 1, 1]}, "county"
    )
    found = _earlier_regions(regions, (before, now))
    rows = sorted(zip(found.codes, found.regions, found.shares.tolist()))
    assert rows == [("a", "r", 1), ("b", "s", 0.5), ("e", "t", 1), ("old", "s", 0.5)]
    divided = Regions.of({"code": ["c", "d"], "region": ["r", "s"]}, "county")
    with pytest.raises(ParameterError, match=r"divide codes that were or became one: c\+d"):
        _earlier_regions(divided, (before, now))
