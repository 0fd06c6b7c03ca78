"""Changes between two releases worked out by hand: crosswalks, joined cells, reaches, ends, percentages and their words."""

import math
from fractions import Fraction
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recordwise.errors import ParameterError
from recordwise.plan.publication import Labels, StatusRules
from recordwise.policy.firms import FirmPolicy
from recordwise.policy.series import CARRY, Step
from recordwise.release.change import (
    BOTH,
    COARSE,
    LEAST,
    ONLY_BEFORE,
    ONLY_NOW,
    PARTS,
    PRESENCE,
    Carrying,
    Change,
    Crosswalk,
    Numbers,
    Variable,
    _carried_alone,
    _change_table,
    _check,
    _common_codes,
    _differences,
    _join_cells,
    _numbers,
    exact_reach,
    gaussian_reach,
    merge_codes,
    quantile,
    read_crosswalk,
    renamed_cells,
    sigma_of,
)
from recordwise.release.tables import ReleasedTable

Z = NormalDist().inv_cdf(0.975)
RULES = StatusRules()


# Crosswalks.


def test_codes_that_pairs_link_directly_or_by_others_have_one_common_code() -> None:
    found = read_crosswalk({"code": [("a", "y"), ("a", "x"), ("b", "y"), ("c", "z"), ("d", "z")]})
    before, now = found.columns["code"]
    assert before == {"a": "x+y", "b": "x+y", "c": "z", "d": "z"}
    assert now == {"y": "x+y", "x": "x+y", "z": "z"}
    assert read_crosswalk({"code": {"a": "x", "b": 7}}).columns["code"] == ({"a": "x", "b": "7"}, {"x": "x", 7: "7"})
    assert found.of(["place", "code"]) == ["code"]
    assert found.of(["place"]) == []


@pytest.mark.parametrize("pairs", [[], [("a",)], [("a", "b", "c")], [("a", None)], [(None, "b")], {}])
def test_what_is_no_pair_of_codes_is_refused(pairs: Any) -> None:
    with pytest.raises(ParameterError, match=r"crosswalk of 'code'.*pairs of an earlier and a later code"):
        read_crosswalk({"code": pairs})


def test_groups_of_a_list_are_the_same_on_both_sides_and_name_other_columns() -> None:
    found = read_crosswalk({"code": [("a", "b")]}, {"place": ({"p": "south"}, {"q": "south"})})
    assert found.columns["place"] == ({"p": "south"}, {"q": "south"})
    assert set(found.columns) == {"code", "place"}
    with pytest.raises(ParameterError, match="both name 'code'"):
        read_crosswalk({"code": [("a", "b")]}, {"code": ({"a": "x"}, {"a": "x"})})


PAIRS = Crosswalk(columns={"code": ({1: "one", 2: "one"}, {5: "one"})})


def test_cells_have_the_common_code_of_their_side_and_others_their_own_as_text() -> None:
    data = pa.table({"code": [1, 5, None, 9], "place": ["p", "q", "r", "s"]})
    before, now = (_common_codes(data, ["code", "place"], PAIRS, side) for side in (0, 1))
    assert before.column("code").to_pylist() == ["one", "5", None, "9"]
    assert now.column("code").to_pylist() == ["1", "one", None, "9"]
    assert before.column("place").to_pylist() == ["p", "q", "r", "s"]


def test_earlier_cells_are_renamed_and_left_out_without_a_single_counterpart() -> None:
    cells = pa.table({"code": ["a", "b", "c", "d"], "at": [0, 1, 2, 3]})
    found = renamed_cells(cells, {"code": {"a": "c", "b": None, "c": "x"}, "other": {"a": None}})
    assert found.to_pydict() == {"code": ["c", "x", "d"], "at": [0, 2, 3]}
    assert renamed_cells(cells, {}).equals(cells)
    missing = pa.table({"code": ["a", None], "at": [0, 1]})
    assert renamed_cells(missing, {"code": {"a": "c"}}).to_pydict() == {"code": ["c", None], "at": [0, 1]}


def test_merged_cells_add_values_and_variances_and_keep_an_interval_only_where_they_are_alone() -> None:
    data = pa.table(
        {
            "place": ["p", "p", "q", "p", "p"],
            "code": [1, 2, 1, 9, 1],
            "n": [10, 20, 30, 40, 5],
            "n_sd": [3.0, 4.0, 2.0, 7.0, 12.0],
            "n_low": [1.0, 2.0, 3.0, 4.0, 5.0],
            "n_high": [11.0, 22.0, 33.0, 44.0, 55.0],
        }
    )
    found = {
        (row["place"], row["code"]): row for row in merge_codes(data, ["place", "code"], ["n"], PAIRS, 0).to_pylist()
    }
    assert set(found) == {("p", "one"), ("q", "one"), ("p", "9")}
    whole = found["p", "one"]
    assert (whole["n"], whole["n_sd"], whole[f"n{PARTS}"], whole[f"n{LEAST}"]) == (35.0, 13.0, 3.0, 3.0)
    assert (whole["n_low"], whole["n_high"]) == (None, None)
    alone = found["p", "9"]
    assert (alone["n"], alone["n_sd"], alone[f"n{PARTS}"], alone[f"n{LEAST}"]) == (40.0, 7.0, 1.0, 7.0)
    assert (alone["n_low"], alone["n_high"]) == (4.0, 44.0)


# Cells of two releases side by side.


def test_cells_are_joined_by_all_keys_in_order_and_a_renamed_one_takes_its_later_place() -> None:
    now = pa.table({"place": ["q", "p", "p"], "code": ["c", "x", "b"]})
    before = pa.table({"place": ["p", "p", "q", "q"], "code": ["a", "b", "c", "d"]})
    cells, rows, earlier = _join_cells(now, before, ["place", "code"], {"code": {"a": "x", "d": None}})
    assert cells.to_pydict() == {
        "place": ["p", "p", "q", "q"],
        "code": ["b", "x", "c", "d"],
        PRESENCE: [BOTH, BOTH, BOTH, ONLY_BEFORE],
    }
    assert (rows.tolist(), earlier.tolist()) == ([2, 1, 0, -1], [1, 0, 2, 3])
    cells, rows, earlier = _join_cells(now, before, ["place", "code"], {})
    assert cells.column(PRESENCE).to_pylist() == [ONLY_BEFORE, BOTH, ONLY_NOW, BOTH, ONLY_BEFORE]
    assert (rows.tolist(), earlier.tolist()) == ([-1, 2, 1, 0, -1], [0, 1, -1, 2, 3])
    now, before = pa.table({"code": ["b", None]}), pa.table({"code": [None, "a"]})
    cells, rows, earlier = _join_cells(now, before, ["code"], {"code": {"a": "b"}})
    assert cells.to_pydict() == {"code": ["b", None], PRESENCE: [BOTH, BOTH]}
    assert (rows.tolist(), earlier.tolist()) == ([0, 1], [1, 0])
    names = ["row", "_row"]
    cells, rows, earlier = _join_cells(now.rename_columns(names[:1]), before.rename_columns(names[:1]), names[:1], {})
    assert (rows.tolist(), earlier.tolist()) == ([-1, 0, 1], [1, -1, 0])
    two = pa.table({"row": ["a", "b"], "_row": ["x", "y"]})
    cells, rows, earlier = _join_cells(two, two, names, {"_row": {"x": "y", "y": "x"}})
    assert (cells.select(names).to_pydict()["row"], earlier.tolist()) == (["a", "a", "b", "b"], [-1, 0, 1, -1])
    cells, rows, earlier = _join_cells(now, before, [], {})
    assert (cells.to_pydict(), rows.tolist(), earlier.tolist()) == ({PRESENCE: [BOTH]}, [0], [0])


def test_numbers_of_cells_that_are_not_listed_are_missing_and_a_cell_that_was_not_added_up_is_one_part() -> None:
    plain = pa.table({"n": [5, 6], "n_sd": [1.0, 2.0], "n_low": [3.0, 2.0], "n_high": [7.0, 10.0]})
    found = _numbers(plain, "n", np.array([1, -1, 0]))
    np.testing.assert_array_equal(found.value, [6, np.nan, 5])
    np.testing.assert_array_equal(found.sd, [2, np.nan, 1])
    np.testing.assert_array_equal(found.low, [2, np.nan, 3])
    np.testing.assert_array_equal(found.high, [10, np.nan, 7])
    np.testing.assert_array_equal(found.parts, [1, 1, 1])
    np.testing.assert_array_equal(found.least_sd, found.sd)
    added = plain.append_column(f"n{PARTS}", pa.array([3.0, 1.0])).append_column(f"n{LEAST}", pa.array([0.5, 2.0]))
    found = _numbers(added, "n", np.array([0, 1]))
    assert (found.parts.tolist(), found.least_sd.tolist()) == ([3.0, 1.0], [0.5, 2.0])


# Reaches of sums of noises.


def lattice(sigma: float) -> tuple[np.ndarray, np.ndarray]:
    points = np.arange(-400, 401)
    masses = np.exp(-(points**2) / (2 * sigma**2))
    return points, masses / masses.sum()


@pytest.mark.parametrize("sigma", [0.21, 0.3, 0.6, 1.0, 2.5, 2.99])
def test_a_sigma_is_that_of_the_lattice_law_with_this_sd_and_a_millionth_above(sigma: float) -> None:
    points, masses = lattice(sigma)
    sd = math.sqrt(float((points**2 * masses).sum()))
    found = sigma_of(np.array([[sd, np.nan], [7.0, sd]]))
    assert found.shape == (2, 2)
    assert np.isnan(found[0, 1])
    assert found[1, 0] == 7.0 * (1 + 1e-6)
    assert found[0, 0] == found[1, 1] == pytest.approx(sigma * (1 + 1e-6), rel=1e-9)


def test_noise_that_is_nearly_always_0_is_taken_for_a_fifth_of_a_step() -> None:
    found = sigma_of(np.array([0.0, 1e-9]))
    assert found == pytest.approx([0.2 * (1 + 1e-6)] * 2, rel=1e-12)


def test_a_reach_adds_the_sd_what_sigmas_are_above_it_and_half_a_step_for_each_part() -> None:
    """From 3 steps on sigma and sd agree but for the millionth, so that the reach is that of z sd and half a root of the parts."""
    sd, parts, least = np.array([50.0, 30.0]), np.array([4.0, 9.0]), np.array([25.0, 10.0])
    for level, z in ((0.95, Z), (0.5, NormalDist().inv_cdf(0.75))):
        expected = z * (sd * (1 + 1e-6) + np.sqrt(parts) * least * 1e-6) + np.sqrt(parts) / 2
        np.testing.assert_allclose(gaussian_reach(sd, parts, least, level), expected, rtol=1e-12)
    points, masses = lattice(0.4)
    own = math.sqrt(float((points**2 * masses).sum()))
    assert own < 0.4
    expected = Z * (own * (1 + 1e-6) + (0.4 * (1 + 1e-6) - own)) + 0.5
    assert gaussian_reach(np.array([own]), np.ones(1), np.array([own]), 0.95) == pytest.approx([expected], rel=1e-8)


def test_an_exact_reach_is_known_below_sixty_four_steps_of_both_together_and_equal_noises_on_each_side() -> None:
    def side(sd: float, parts: float = 1.0, least: float | None = None) -> tuple[Any, Any, Any]:
        return np.array([sd]), np.array([parts]), np.array([sd if least is None else least])

    leg = COARSE / math.sqrt(2)
    assert np.isfinite(exact_reach([side(leg - 0.01), side(leg - 0.01)], 0.95)[0])
    assert np.isnan(exact_reach([side(leg + 0.01), side(leg + 0.01)], 0.95)[0])
    assert np.isfinite(exact_reach([side(2.0, 4.0, 1.0), side(1.0)], 0.95)[0])
    assert np.isnan(exact_reach([side(2.0, 4.0, 0.999), side(1.0)], 0.95)[0])
    assert np.isnan(exact_reach([side(1.0), side(2.0, 4.0, 0.999)], 0.95)[0])
    every = [np.array([1.0, 90.0, np.nan, 1.0]), np.ones(4), np.array([1.0, 90.0, np.nan, 1.0])]
    found = exact_reach([tuple(every), tuple(every)], 0.9)  # type: ignore[list-item]
    assert np.isnan(found).tolist() == [False, True, True, False]
    _, masses = lattice(1.0)
    both = np.convolve(masses, masses)
    inside = [both[np.abs(np.arange(-800, 801)) <= k].sum() for k in range(6)]
    assert found[0] == found[3] == next(k for k in range(6) if inside[k] >= 0.9)


def test_the_quantile_of_a_sum_of_noises_is_the_first_that_holds_the_level() -> None:
    _, masses = lattice(0.6)
    for times in (1, 2, 5):
        law = np.ones(1)
        for _ in range(times):
            law = np.convolve(law, masses)
        away = np.abs(np.arange(len(law)) - len(law) // 2)
        for level in (0.3, 0.8, 0.99):
            wanted = next(k for k in range(20) if law[away <= k].sum() >= level)
            assert quantile(((0.6, times),), level) == wanted


# Differences, their ends and percentages.


def numbers(value: list[float], sd: list[float], **more: Any) -> Numbers:
    values, spread = np.array(value, float), np.array(sd, float)
    ends = {"low": values - 2 * spread, "high": values + 3 * spread}
    given: dict[str, Any] = {"parts": np.ones(len(values)), "least_sd": spread} | ends | more
    return Numbers(value=values, sd=spread, **given)


def variable(**changed: Any) -> Variable:
    given: dict[str, Any] = {
        "name": "n",
        "gaussian": True,
        "additive": True,
        "nonnegative": True,
        "step": 1.0,
        "one_lattice": True,
    } | changed
    return Variable(**given)


def columns(own: Variable, now: Numbers, before: Numbers, level: float = 0.95) -> dict[str, list[Any]]:
    return {name: column.to_pylist() for name, column in _differences(own, now, before, level, RULES).items()}


def test_coarse_noise_on_one_lattice_gives_whole_ends_and_anything_else_wider_ones() -> None:
    now, before = numbers([110.0], [1.0]), numbers([100.0], [1.0])
    found = columns(variable(), now, before)
    assert (found["n_before"], found["n_now"], found["n_change"]) == ([100.0], [110.0], [10.0])
    assert found["n_change_sd"] == [pytest.approx(math.sqrt(2))]
    # P(|sum of two| <= 3) is .9868 and P(<= 2) .923 for two discrete Gaussians of sigma 1.
    assert (found["n_change_low"], found["n_change_high"]) == ([7.0], [13.0])
    for other in (variable(one_lattice=False), variable(carried=Carrying(carry=0.0, reach=np.array([np.nan])))):
        apart = columns(other, now, before)
        # Both sides reach z + 1/2, taken together by the root of the squares: 3.479; rounded outward to hundredths.
        assert math.hypot(Z + 0.5, Z + 0.5) == pytest.approx(3.479, abs=0.001)
        assert apart["n_change_low"] == [pytest.approx(6.52, abs=0.011)]
        assert apart["n_change_high"] == [pytest.approx(13.48, abs=0.011)]
        assert apart["n_change_low"][0] <= 10 - 3.479 <= 10 + 3.479 <= apart["n_change_high"][0]


def test_on_a_lattice_of_cents_ends_are_three_cents_off_and_rounded_outward() -> None:
    """By a hundredth of the last digit of a width of .06."""
    now, before = numbers([1.10], [0.01]), numbers([1.00], [0.01])
    found = columns(variable(step=0.01), now, before)
    assert found["n_change_low"][0] <= 0.07 <= found["n_change_low"][0] + 1.1e-4
    assert found["n_change_high"][0] - 1.1e-4 <= 0.13 <= found["n_change_high"][0]


def test_the_difference_of_large_whole_numbers_keeps_its_ends_only_while_floats_are_exact() -> None:
    small, large = 2.0**51, 2.0**52
    (one,) = columns(variable(), numbers([small], [1.0]), numbers([small - 10], [1.0]))["n_change_low"]
    assert one == 7.0
    (two,) = columns(variable(), numbers([large], [1.0]), numbers([large - 10], [1.0]))["n_change_low"]
    assert two < 7.0
    # Both values and the reach of 3 are 2^52 together, or 2 less.
    at_limit = (large + 6) / 2
    (three,) = columns(variable(), numbers([at_limit], [1.0]), numbers([at_limit - 9], [1.0]))["n_change_low"]
    assert three < 6.0
    (four,) = columns(variable(), numbers([at_limit - 1], [1.0]), numbers([at_limit - 10], [1.0]))["n_change_low"]
    assert four == 6.0


def test_noise_that_is_not_gaussian_takes_the_ends_of_both_sides() -> None:
    now, before = numbers([110.0], [4.0]), numbers([100.0], [3.0])
    found = columns(variable(gaussian=False), now, before)
    # Now from 102 to 122, before from 94 to 109.
    assert found["n_change_low"] == [pytest.approx(-7.0, abs=0.36)]
    assert found["n_change_high"] == [pytest.approx(28.0, abs=0.36)]
    assert found["n_change_low"][0] <= 102 - 109 < 122 - 94 <= found["n_change_high"][0]
    # In percent: from 102/109 to 122/94.
    assert found["n_percent"] == [pytest.approx(10.0)]
    assert found["n_percent_low"][0] <= 100 * (102 / 109 - 1) < found["n_percent_low"][0] + 0.4
    assert found["n_percent_high"][0] >= 100 * (122 / 94 - 1) > found["n_percent_high"][0] - 0.4


def test_carried_noise_has_the_sd_and_the_reach_of_what_is_fresh_where_it_is_carried() -> None:
    now, before = numbers([110.0, 60.0], [10.0, 10.0]), numbers([100.0, 50.0], [10.0, 10.0])
    law = Carrying(carry=0.8, reach=13.0).only(np.array([True, False]))
    assert (law.carry.tolist(), law.reach[0], np.isnan(law.reach[1])) == ([0.8, 0.0], 13.0, True)  # type: ignore[union-attr,index]
    found = columns(variable(carried=law), now, before)
    # Variance 100 + 100 - 2 * .8 * 100 where noise is carried, 200 where it is not.
    assert found["n_change_sd"] == pytest.approx([math.sqrt(40), math.sqrt(200)])
    assert found["n_change_low"][0] == pytest.approx(-3.0, abs=0.27)
    assert found["n_change_high"][0] == pytest.approx(23.0, abs=0.27)
    wide = math.hypot(10 * Z + 0.5, 10 * Z + 0.5)
    assert found["n_change_high"][1] - found["n_change_low"][1] == pytest.approx(2 * wide, rel=0.021)
    # Of a ratio r = 1.1: variance 100 + (r^2 - 2 r .8) 100, relative to 100 and in percent.
    assert found["n_percent_sd"][0] == pytest.approx(math.sqrt(100 + (1.21 - 1.76) * 100))
    assert found["n_percent_sd"][1] == pytest.approx(100 * math.sqrt(100 + 1.44 * 100) / 50)


def fieller(n: float, d: float, reach: float, shared: float) -> tuple[float, float]:
    """All r with (n - r d)^2 <= reach^2 - 2 r shared + r^2 reach^2, in percent of change."""
    roots = np.roots([d**2 - reach**2, -2 * n * d + 2 * shared, n**2 - reach**2]).real
    return 100 * (roots.min() - 1), 100 * (roots.max() - 1)


@pytest.mark.parametrize("carry", [0.0, 0.8])
def test_percentages_hold_fieller_s_set_at_the_reach_of_both(carry: float) -> None:
    now, before = numbers([550.0], [10.0]), numbers([500.0], [10.0])
    law = None if carry == 0 else Carrying(carry=np.array([carry]), reach=np.array([30.0]))
    found = columns(variable(carried=law), now, before)
    reach = Z * 10 + 0.5
    low, high = fieller(550.0, 500.0, reach, carry * reach**2)
    assert found["n_percent_low"][0] == pytest.approx(low, abs=0.02 * (high - low))
    assert found["n_percent_high"][0] == pytest.approx(high, abs=0.02 * (high - low))
    assert found["n_percent_low"][0] <= low + 1e-3
    assert found["n_percent_high"][0] >= high - 1e-3


def test_percentages_need_an_earlier_value_above_0_and_their_sd_one_well_above_its_noise() -> None:
    """The interval wide enough for two reaches 2.24 sd and half a step, at most half of the value."""
    wide = NormalDist().inv_cdf((1 + 0.975) / 2) + 0.5
    values = [-5.0, 0.0, 2 * wide - 0.01, 2 * wide + 0.01, 100.0]
    found = columns(variable(), numbers([50.0] * 5, [1.0] * 5), numbers(values, [1.0] * 5))
    assert [each is None for each in found["n_percent"]] == [True, True, False, False, False]
    assert [each is None for each in found["n_percent_sd"]] == [True, True, True, False, False]
    assert found["n_percent"][4] == -50.0
    assert found["n_percent_sd"][4] == pytest.approx(math.sqrt(1 + 0.25))
    assert "n_percent" not in columns(variable(nonnegative=False), numbers([5.0], [1.0]), numbers([5.0], [1.0]))


def test_the_status_of_a_change_follows_from_its_size_and_sd_and_is_missing_with_it() -> None:
    """Limits .165 and .333: of an sd of root 2, changes of 8.571 and 4.247."""
    now = numbers([108.6, 108.5, 104.3, 104.2, 91.3, 100.0, math.nan], [1.0] * 7)
    found = columns(variable(), now, numbers([100.0] * 7, [1.0] * 7))
    words = ["reliable", "use with caution", "use with caution", "unreliable", "reliable", "unreliable", None]
    assert found["n_change_status"] == words
    assert found["n_change"][6] is None
    assert found["n_before"][6] == 100.0


def test_a_value_that_is_missing_leaves_ends_that_are_known() -> None:
    """An average without a value has an interval all the same."""
    now = numbers([math.nan], [math.nan], low=np.array([2.0]), high=np.array([6.0]))
    before = numbers([3.0], [1.0], low=np.array([1.0]), high=np.array([5.0]))
    found = columns(variable(gaussian=False), now, before)
    assert found["n_change"] == [None]
    assert found["n_change_low"][0] <= -3.0 < found["n_change_low"][0] + 0.1
    assert found["n_change_high"][0] >= 5.0 > found["n_change_high"][0] - 0.1


# Whole tables.


def table(codes: list[str], values: list[float]) -> ReleasedTable:
    data: dict[str, Any] = {"code": codes, "n": values, "n_sd": [10.0] * len(codes)}
    data |= {"n_low": [value - 20 for value in values], "n_high": [value + 20 for value in values]}
    data |= {f"m{end}": data[f"n{end}"] for end in ("", "_sd", "_low", "_high")}
    return ReleasedTable(name="t", keys=("code",), variables=("n", "m"), data=pa.table(data))


def step_of(renamed: dict[str, Any]) -> Step:
    return Step(kind=CARRY, noise=FirmPolicy(parts=()), carry=Fraction(4, 5), renamed=renamed)


LAW = Carrying(carry=0.8, reach=13.0)
BOTH_KINDS = [variable(carried=LAW), variable(name="m", additive=False, gaussian=False)]


def test_only_sums_and_counts_are_added_up_and_confidence_is_lower_where_noise_is_not_gaussian() -> None:
    now, before = table(["a", "b"], [100, 200]), table(["a", "b"], [90, 150])
    found, levels = _change_table(now, before, BOTH_KINDS, read_crosswalk({}), 0.9, RULES)
    assert levels == {"n": 0.9, "m": pytest.approx(0.8)}
    assert found.column("m_change").to_pylist() == [10.0, 50.0]
    _, levels = _change_table(now, before, BOTH_KINDS, read_crosswalk({}), 0.4, RULES)
    assert levels == {"n": 0.4, "m": 0.0}
    merged, levels = _change_table(
        now, before, [variable(), BOTH_KINDS[1]], read_crosswalk({"code": {"a": "c", "b": "c"}}), 0.9, RULES
    )
    assert set(levels) == {"n"}
    assert "m_change" not in merged.column_names


def test_noise_is_carried_on_in_cells_of_both_releases_by_the_codes_they_have_now() -> None:
    now, before = table(["a", "x", "c"], [100, 200, 300]), table(["a", "b", "d"], [90, 150, 250])
    found, _ = _change_table(
        now, before, BOTH_KINDS[:1], read_crosswalk({}), 0.95, RULES, step_of({"code": {"b": "x"}})
    )
    rows = {row["code"]: row for row in found.to_pylist()}
    assert {code: row[PRESENCE] for code, row in rows.items()} == {
        "a": BOTH,
        "x": BOTH,
        "c": ONLY_NOW,
        "d": ONLY_BEFORE,
    }
    assert rows["x"]["n_change"] == 50.0
    assert rows["x"]["n_change_sd"] == pytest.approx(math.sqrt(40))


def test_a_crosswalk_over_carried_noise_may_rename_and_add_up_fresh_cells_only() -> None:
    """The cell a was carried on; x is new, so that b is joined to it with fresh noise."""
    now, before = table(["a", "x"], [100, 200]), table(["a", "b"], [90, 150])
    pairs = read_crosswalk({"code": [("b", "x"), ("a", "a")]})
    found, _ = _change_table(now, before, BOTH_KINDS[:1], pairs, 0.95, RULES, step_of({"code": {"b": None}}))
    rows = {row["code"]: row for row in found.to_pylist()}
    assert rows["a"]["n_change_sd"] == pytest.approx(math.sqrt(40))
    assert rows["x"]["n_change_sd"] == pytest.approx(math.sqrt(200))
    assert rows["x"]["n_change"] == 50.0


@pytest.mark.parametrize("pairs", [[("a", "a"), ("b", "a")], [("a", "a"), ("a", "x")]])
def test_cells_with_carried_noise_are_not_added_up_on_either_side(pairs: Any) -> None:
    now, before = table(["a", "x"], [100, 200]), table(["a", "b"], [90, 150])
    with pytest.raises(ParameterError, match="adds up cells whose noise the later release carries on"):
        _change_table(now, before, BOTH_KINDS[:1], read_crosswalk({"code": pairs}), 0.95, RULES, step_of({}))


def test_a_cell_is_carried_alone_where_it_is_one_cell_of_each_release() -> None:
    now, before = table(["a", "x"], [1, 2]), table(["a", "b"], [1, 2])
    pairs = read_crosswalk({"code": [("b", "x"), ("a", "a")]})
    cells = pa.table({"code": ["x", "a", "none"]})
    assert _carried_alone(now, before, pairs, step_of({}), cells).tolist() == [False, True, False]


def test_cells_without_a_code_are_one_cell_also_where_codes_are_added_up() -> None:
    now, before = table(["a", None, "x"], [100, 7, 200]), table(["a", "b", None], [90, 150, 5])
    pairs = read_crosswalk({"code": [("b", "x"), ("a", "a")]})
    found, _ = _change_table(now, before, BOTH_KINDS[:1], pairs, 0.95, RULES, step_of({"code": {"b": None}}))
    rows = {row["code"]: row for row in found.to_pylist()}
    assert {code: row[PRESENCE] for code, row in rows.items()} == {"a": BOTH, "x": BOTH, None: BOTH}
    assert [rows[code]["n_change_sd"] for code in ("a", None, "x")] == pytest.approx(
        [math.sqrt(40), math.sqrt(40), math.sqrt(200)]
    )
    assert rows[None]["n_change"] == 2.0


# Words.


def made(**more: Any) -> Change:
    data = pa.table(
        {
            "code": ["a"],
            PRESENCE: [BOTH],
            "n_before": [1.0],
            "n_now": [2.0],
            "n_change": [1.0],
            "n_change_sd": [1.0],
            "n_change_status": ["reliable"],
            "n_percent": [100.0],
            "n_percent_low": [1.0],
        }
    )
    given: dict[str, Any] = {"tables": {"t": data}, "confidence": {"t.n": 0.9}, "before": "d1", "now": "d2"} | more
    return Change(**given)


def test_a_change_says_what_it_is_from_and_to_and_how_many_cells_it_has() -> None:
    assert made().to_json() == {"before": "d1", "now": "d2", "confidence": {"t.n": 0.9}, "cells": {"t": 1}}
    content = made(dataset="small").content()
    assert content.dataset == "small_change"
    assert content.notes == ("Changes from release d1 to release d2. Both have noise of their own.",)
    assert made()["t"].num_rows == 1


def test_each_column_of_a_change_has_a_title_a_unit_and_a_meaning() -> None:
    words = Labels(labels={"code": "Code", "code=a": "Alpha"}, units={"n": "firms"})
    titles = {"t": "The table", "t.n": "Firms"}
    (described,) = made(words=words, titles=titles).content().tables
    assert described.title == "The table"
    assert described.table.variables == ("n_before", "n_now", "n_change", "n_percent")
    assert described.table.keys[0] == "code"
    found = {each.name: (each.title, each.unit, each.meaning) for each in described.columns}
    assert found == {
        "code": ("Code", "", "identifies the cell"),
        "code_name": ("Code, name", "", "what the code is called"),
        PRESENCE: (PRESENCE, "", "whether the cell is listed in both releases, only now or only before"),
        "n_before": ("Firms, before", "firms", "before of n"),
        "n_now": ("Firms, now", "firms", "now of n"),
        "n_change": ("Firms, change", "firms", "change of n"),
        "n_change_sd": ("Firms, change, sd", "firms", "change of n: sd"),
        "n_change_status": ("Firms, change, status", "firms", "change of n: status"),
        "n_percent": ("Firms, change in percent", "percent", "change in percent of n"),
        "n_percent_low": ("Firms, change in percent, low", "percent", "change in percent of n: low"),
    }
    (bare,) = made().content().tables
    assert (bare.title, bare.columns[2].title) == ("t", "n, before")
    assert [each.name for each in bare.columns][:2] == ["code", PRESENCE]


def test_changes_are_saved_only_in_formats_that_are_known(tmp_path: Any) -> None:
    for formats in ((), ("ods",), ("csv", "ods")):
        with pytest.raises(ParameterError, match="name no format"):
            made().save(tmp_path / "out", formats=formats)
        assert not (tmp_path / "out").exists()
    folder = made().save(tmp_path / "out")
    assert sorted(path.name for path in folder.iterdir()) == ["t.csv"]
    assert folder == tmp_path / "out"


def test_a_format_whose_package_is_missing_is_refused_before_anything_is_written(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(chosen: Any) -> None:
        raise ParameterError(parameter="formats", problem=f"need packages: {[each.name for each in chosen]}")

    monkeypatch.setattr("recordwise.release.change.require_packages", missing)
    with pytest.raises(ParameterError, match="need packages"):
        made().save(tmp_path / "out", formats=["csv", "csv"])
    assert not (tmp_path / "out").exists()


# Which two releases may be compared.


def release(digest: str, *, follows: tuple[str, ...] = (), refines: tuple[str, ...] = (), private: bool = True) -> Any:
    published = SimpleNamespace(follows=follows, lineage=lambda own: frozenset((own, *follows, *refines)))
    return SimpleNamespace(digest=digest, private=private, published=published)


def test_releases_that_share_noise_are_compared_only_with_the_one_they_follow() -> None:
    first, second = release("a"), release("b", follows=("a",))
    third, refined = release("c", follows=("b", "a")), release("d", refines=("a",))
    _check(second, first)
    _check(third, second)
    _check(first, release("e"))
    for now, before in ((first, second), (third, first), (refined, first), (first, refined), (second, refined)):
        with pytest.raises(ParameterError, match="refine or follow one another"):
            _check(now, before)
    with pytest.raises(ParameterError, match="is this release itself"):
        _check(first, release("a"))
    for now, before in ((release("a", private=False), release("b")), (release("a"), release("b", private=False))):
        with pytest.raises(ParameterError, match="must both be private"):
            _check(now, before)
