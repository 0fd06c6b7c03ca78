"""What shares cost a statistic, by hand: size classes, variances, starting points and the words about them."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import recordwise as rw
from recordwise.errors import ParameterError
from recordwise.plan import Plan, Schema
from recordwise.plan.cost import cell_mechanisms
from recordwise.postprocess.linear import AnswerTree
from recordwise.session import shares
from recordwise.session.shares import BestShares, ShareCost, best_shares
from recordwise.session.split import least_split

SCHEMA = Schema.of(unit="id", measures={"emp": 1, "pay": "2.5"}, columns={"county": "text", "naics": "text"})
CODES = ["0101", "0102", "0201"]
NOISE = rw.Gaussian(sigma=5)


def sized(**columns: Any) -> rw.Keys:
    return rw.Keys.of({"county": CODES} | columns, size={name: name for name in columns}, sized_on="public: a table")


def planned(*queries: Any) -> Plan:
    return Plan(schema=SCHEMA, queries=queries)


def cost(**changed: Any) -> ShareCost:
    """Two tables, of three answers and of one; one answer does not count."""
    given: dict[str, Any] = {
        "variables": ("a",),
        "tree": AnswerTree.of(np.full(4, -1)),
        "level": np.array([0, 0, 0, 1]),
        "variance": np.array([1.0, 2.0, 3.0, 4.0]),
        "group": np.array([0, 0, -1, 1]),
        "scale": np.array([0.5, 0.25, 9.0, 2.0]),
        "sized": True,
    }
    return ShareCost(**(given | changed))


def test_sizes_from_the_middle_cell_on_count_by_powers_of_ten() -> None:
    size = np.array([9.0, 10.0, 99.0, 100.0, 999.0, 0.0, 1000.0, 9.999])
    level = np.array([2, 2, 2, 5, 5, 2, 5, 5])
    group, scale = shares._classes(size, level, 2, None)
    assert group.tolist() == [-1, 0, 0, 1, 1, -1, 2, -1]
    np.testing.assert_allclose(
        scale, [0, 1 / 10**2 / 2, 1 / 99**2 / 2, 1 / 100**2 / 2, 1 / 999**2 / 2, 0, 1e-6, 0], rtol=1e-14
    )


def test_a_middle_cell_needs_cells_of_the_finest_table_with_a_size() -> None:
    group, scale = shares._classes(np.array([0.0, 5.0]), np.array([0, 1]), 0, None)
    assert group.tolist() == [-1, -1]
    assert scale.tolist() == [0, 0]


def test_a_power_of_ten_that_is_missed_by_rounding_is_of_its_own_class() -> None:
    """Of 0.7 x 1000 / 0.7 the logarithm may be a little less than 3."""
    size = np.array([0.7, 700 * (1 - 1e-12)])
    assert shares._classes(size, np.array([0, 1]), 0, None)[0].tolist() == [0, 1]
    pairs = np.array([0.7, 0.7, 700 * (1 - 1e-12), 700.0, 700 * (1 - 1e-6)])
    assert shares._classes(pairs, np.array([0, 0, 1, 1, 1]), 0, None)[0].tolist() == [0, 0, 2, 2, 1]


def test_a_goal_counts_cells_from_its_smallest_size_on_by_what_it_allows() -> None:
    goal: Any = {1000: "0.1", 100: "0.5"}
    size = np.array([99.0, 100.0, 999.0, 1000.0, 5000.0, 100.0])
    group, scale = shares._classes(size, np.array([0, 0, 0, 0, 0, 1]), 0, goal)
    assert group.tolist() == [-1, 0, 0, 1, 1, 2]
    wanted = [0, 1 / 50**2 / 2, 1 / 499.5**2 / 2, 1 / 100**2 / 2, 1 / 500**2 / 2, 1 / 50**2]
    np.testing.assert_allclose(scale, wanted, rtol=1e-14)
    for wrong in ({0: "0.1"}, {10: 0}):
        with pytest.raises(ParameterError, match="goal"):
            shares._classes(size, np.zeros(6, int), 0, wrong)  # type: ignore[arg-type]


def test_a_cost_is_the_mean_of_what_counts_at_the_shares_of_its_table() -> None:
    own = cost()
    assert own.means(own.variance).tolist() == [0.5 + 0.5, 8.0]
    assert own(np.array([0.25, 0.5])).tolist() == [4.0, 16.0]


def test_shares_without_a_fit_follow_the_worst_class_of_each_table() -> None:
    assert shares._alone(cost()).tolist() == [1 / 9, 8 / 9]
    several = cost(group=np.array([0, 1, -1, 2]), scale=np.array([1.0, 3.0, 9.0, 0.5]))
    assert shares._alone(several).tolist() == [6 / 8, 2 / 8]
    hardly = cost(scale=np.array([0.0, 0.0, 0.0, 2.0]))
    np.testing.assert_allclose(shares._alone(hardly), [1e-6 / (1 + 1e-6), 1 / (1 + 1e-6)], rtol=1e-12)
    uncounted = cost(group=np.array([-1, -1, -1, 0]), scale=np.array([0.0, 0.0, 0.0, 2.0]))
    np.testing.assert_allclose(shares._alone(uncounted), [1e-6 / (1 + 1e-6), 1 / (1 + 1e-6)], rtol=1e-12)


def test_statistics_are_one_if_variances_and_scales_are_in_proportion() -> None:
    own = cost()
    assert shares._proportional(own, cost(variance=own.variance * 7, scale=own.scale * 3))
    assert not shares._proportional(own, cost(variance=np.array([1.0, 2.0, 3.0, 4.1])))
    assert not shares._proportional(own, cost(scale=np.array([0.5, 0.25, 9.0, 2.1])))
    assert not shares._proportional(own, cost(group=np.array([0, 0, 1, 1])))
    assert shares._proportional(own, cost(variance=own.variance * np.array([1, 1, 1, 1 + 1e-10])))
    assert not shares._proportional(own, cost(variance=own.variance * np.array([1, 1, 1, 1 + 1e-8])))


def test_shares_have_three_digits_and_the_largest_takes_what_is_left() -> None:
    least = Fraction(1, 1000)
    assert shares.rounded_shares(np.array([0.12345, 0.7, 0.17655]), least) == (
        Fraction("0.123"), 1 - Fraction("0.123") - Fraction("0.177"), Fraction("0.177"),
    )  # fmt: skip
    assert shares.rounded_shares(np.array([0.0001, 0.9999]), least) == (Fraction(1, 1000), Fraction(999, 1000))
    found = shares.rounded_shares(np.array([0.00012345, 0.99987655]), Fraction(1, 10_000))
    assert found == (Fraction("0.000123"), 1 - Fraction("0.000123"))


def test_levels_cross_where_two_axes_have_several() -> None:
    assert [shares._crosses(each) for each in ([], [3], [3, 1], [1, 1], [2, 2], [2, 1, 2])] == [False] * 4 + [True] * 2


def test_the_worst_cost_is_told_next_to_the_least_of_each_statistic() -> None:
    worst = shares._Worst([cost(), cost()], [1.0, 4.0])
    at = np.array([1.0, 1.0])
    assert worst.costs(at).tolist() == [1.0, 8.0, 0.25, 2.0]
    assert worst(at) == worst(at) == 8.0
    assert worst(np.array([0.01, 1.0])) == 100.0
    assert len(worst.known) == 2


def test_variances_are_those_of_the_whole_loss_in_steps_of_the_measure() -> None:
    """At half of the loss the variance is twice as large; a total has at least one step."""
    query = rw.query().levels((), "county", keys=sized(emp=[1, 2, 3]))
    mechanism = rw.LogTransform(offset=10, sigma="0.5")
    plan = planned(query.sum("pay", mechanism).sum("emp", NOISE))
    (pay, emp), (_, table) = plan.queries[0].draws(), plan.tables()
    found = shares._full_variance(plan, table, pay, np.array([0.0, 6.0, 2.5]))
    (own,) = cell_mechanisms(plan, table, pay, plan.cells(table))
    expected = own.mechanism.variance_of(np.array([2.5, 5.0, 2.5]), step=Fraction(5, 2)) / 2
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(shares._full_variance(plan, table, emp, np.ones(3)), 25, rtol=1e-6)


def test_sizes_are_known_if_every_table_has_one_above_0() -> None:
    tables: Any = ["whole", "parts"]
    held: dict[str, Any] = {"whole": np.array([6.0]), "parts": np.array([1.0, 5.0])}

    def sizes() -> Any:
        return shares._sizes_in_order(tables, "part", [1, 0], [1, 3], lambda table, part: held[table])  # type: ignore[arg-type, return-value]

    assert sizes().tolist() == [1, 5, 0, 6]
    for wrong in (None, np.array([0.0])):
        held["whole"] = wrong
        assert sizes() is None


def test_public_sizes_are_those_of_the_statistic_or_of_its_sized_noise() -> None:
    keys = sized(emp=[1, 2, 3])
    asked = rw.query().levels((), rw.prefix("county", 2), "county", keys=keys)
    ratio = rw.Sized(rw.Gaussian(sigma="0.1"), floor=1)
    plan = planned(asked.sum("emp", NOISE).sum("pay", NOISE), asked.sum("pay", NOISE), asked.sum("emp", ratio))
    tables = plan.tables()
    emp, pay = plan.queries[0].draws()
    assert [shares.public_sizes(plan, each, emp).tolist() for each in tables[:3]] == [[6], [3, 3], [1, 2, 3]]  # type: ignore[union-attr]
    assert shares.public_sizes(plan, tables[0], pay) is None
    assert shares.public_sizes(plan, tables[-1], plan.queries[2].draws()[0]).tolist() == [1, 2, 3]  # type: ignore[union-attr]
    bare = planned(rw.query().levels((), "county", keys={"county": CODES}).sum("emp", NOISE))
    assert shares.public_sizes(bare, bare.tables()[1], bare.queries[0].draws()[0]) is None


def test_a_published_rest_counts_for_nothing() -> None:
    plan = planned(rw.query().levels((), "county", keys={"county": CODES}, all_other="publish").count(NOISE))
    whole, parts = plan.tables()
    assert shares._listed(plan, whole, 1).tolist() == [True]
    count = plan.cells(parts).num_rows
    listed = shares._listed(plan, parts, count)
    assert (count, int(listed.sum())) == (4, 3)
    assert listed.tolist() == [code in CODES for code in plan.cells(parts).column("county").to_pylist()]


def test_answers_of_tables_that_no_other_tells_are_by_themselves() -> None:
    keys = rw.Keys.product(county=CODES, naics=["11", "12"])
    nested = planned(rw.query().levels((), rw.prefix("county", 2), "county", keys={"county": CODES}).count(NOISE))
    _, order, counts, covered = shares.public_tree(nested, nested.tables(), complete=True)
    assert (order, counts, covered.tolist()) == ([2, 1, 0], [1, 2, 3], [1, 1, 1, 2, 1, 3])
    apart = planned(
        rw.query().group_by("county", keys={"county": CODES}).count(NOISE),
        rw.query().group_by("naics", keys={"naics": ["11", "12"]}).count(NOISE),
    )
    tree, order, counts, covered = shares.public_tree(apart, apart.tables())
    assert (order, counts) == ([0, 1], [3, 2])
    assert covered.tolist() == [1 / 3] * 3 + [1 / 2] * 2
    assert tree.weights(np.arange(1.0, 6.0)).fitted.tolist() == [1, 2, 3, 4, 5]
    crossed = planned(rw.query().levels((), "county").levels((), "naics", keys=keys).count(NOISE))
    _, order, counts, _ = shares.public_tree(crossed, crossed.tables(), complete=True)
    assert (order[0], order[-1], sorted(counts)) == (3, 0, [1, 2, 3, 6])


def test_one_table_or_statistics_without_totals_have_even_shares() -> None:
    one = best_shares(planned(rw.query().levels("county", keys={"county": CODES}).count(NOISE)))
    assert (one.axes, one.tables, one.now, one.equal, one.sized, one.variables) == (((1,),), (), 1, 1, False, ())
    with pytest.raises(ParameterError, match="by size, and no sizes are public"):
        best_shares(planned(rw.query().levels((), "county", keys={"county": CODES}).count(NOISE)), goal={10: "0.1"})


def test_statistics_in_proportion_are_named_together_and_sizes_of_one_serve_the_others() -> None:
    asked = rw.query().levels((), "county", keys=sized(emp=[10, 20, 300]))
    plan = planned(
        asked.sum("emp", NOISE).count(NOISE, alias="n").count_distinct("id", rw.Gaussian(sigma=9), alias="m")
    )
    found = best_shares(plan, complete=True)
    assert found.variables == ("sum_emp", "n", "m")
    assert found.sized
    alike = best_shares(planned(rw.query().levels((), "county", keys={"county": CODES}).count(NOISE)), complete=True)
    assert not alike.sized
    assert sum(map(sum, found.axes)) == 1
    given = best_shares(plan, complete=True, sizes=lambda table, part: None)
    assert not given.sized


def test_shares_are_told_next_to_those_of_the_plan_and_equal_ones() -> None:
    """Without a fit a table of n cells with one variance needs a share in proportion to the square of one over its size."""
    keys = rw.Keys.of({"county": CODES, "emp": [10, 10, 10]}, size={"emp": "emp"}, sized_on="public: a table")
    thirds = rw.query().levels("county", (), share=["0.9", "0.1"], keys=keys)
    plan = planned(thirds.sum("emp", NOISE))
    found = best_shares(plan, complete=True)
    assert len(found.axes) == 1
    (own,) = shares._costs(plan, plan.tables(), plan.queries[0].draws(), None, True, shares._public(plan))
    needed = max(own(np.array([float(each) for each in found.axes[0]])))
    assert found.now == pytest.approx(max(own(np.array([0.9, 0.1]))) / needed, rel=1e-12)
    assert found.equal == pytest.approx(max(own(np.array([0.5, 0.5]))) / needed, rel=1e-12)
    applied = found.applied(plan.queries[0])
    assert [level.share for level in applied.tables()] == list(found.axes[0])
    assert applied.best is None
    asked = rw.query().levels("county", (), share="best", keys=keys).sum("emp", NOISE)
    assert found.applied(asked).best.found == found.axes  # type: ignore[union-attr]


def test_cells_that_need_not_be_complete_are_fitted_to_less() -> None:
    plan = planned(rw.query().levels((), "county", keys=sized(emp=[10, 20, 300])).sum("emp", NOISE))
    listed = best_shares(plan)
    assert listed.equal == best_shares(plan, complete=False).equal == pytest.approx(2, rel=0.01)
    assert best_shares(plan, complete=True).equal == pytest.approx(1.5, rel=0.01)


def test_an_axis_of_one_level_has_the_whole_share_and_crossing_ones_have_two() -> None:
    pairs = rw.Keys.product(county=CODES, naics=["11", "12"])
    plan = planned(rw.query().levels((), "county").levels("naics", keys=pairs).count(NOISE))
    first, second = best_shares(plan, complete=True).axes
    assert len(first) == 2
    assert sum(first) == 1
    assert second == (1,)


def test_statistics_without_a_variance_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = rw.query().levels((), "county", keys=sized(emp=[10, 20, 300]))
    plan = planned(asked.sum("emp", NOISE).count(rw.Gaussian(sigma=9), alias="n").count(NOISE, alias="m"))
    known = shares._full_variance

    def some(plan: Plan, table: Any, part: Any, size: Any) -> Any:
        found = known(plan, table, part, size)
        if part.alias == "n":
            found[0] = np.inf
        return found

    monkeypatch.setattr(shares, "_full_variance", some)
    assert best_shares(plan, complete=True).variables == ("sum_emp", "m")
    assert best_shares(plan, complete=True, goal={1000: "0.1"}).variables == ()
    assert best_shares(plan, complete=True, goal={300: "0.1"}).variables == ("sum_emp", "m")


def test_statistics_that_differ_are_each_held_against_the_least_that_they_need() -> None:
    """One needs the whole, the other the parts; both together need more than either alone."""
    cells = {"county": CODES, "emp": [10, 20, 300], "pay": [900, 1000, 1100]}
    keys = rw.Keys.of(cells, size={"emp": "emp", "pay": "pay"}, sized_on="public: a table")
    plan = planned(rw.query().levels((), "county", keys=keys).sum("emp", NOISE).sum("pay", rw.Gaussian(sigma=50)))
    found = best_shares(plan, complete=True)
    assert found.variables == ("sum_emp", "sum_pay")
    parts = shares._costs(plan, plan.tables(), plan.queries[0].draws(), None, True, shares._public(plan))
    least = [least_split(each, shares._alone(each), 1e-3).cost for each in parts]

    def worst(own: Any) -> float:
        return max(float(np.max(part(np.array(own, float)))) / by for part, by in zip(parts, least))

    needed = worst(found.axes[0])
    assert needed <= 1.003 * min(worst([each, 1 - each]) for each in np.linspace(0.005, 0.995, 199))
    assert found.equal == pytest.approx(worst([0.5, 0.5]) / needed, rel=1e-12)


def test_the_words_about_shares_have_the_right_numbers() -> None:
    halves = (Fraction(1, 4), Fraction(3, 4))
    found = BestShares(query=1, variables=("a", "b"), axes=(halves, (Fraction(1),)), now=1.049, equal=2.345, sized=True)
    assert found.text() == (
        "a, b: for the same relative errors of fitted cells by size class, equal shares would need 2.35 times the variance "
        "of share = [25.00%, 75.00%]."
    )
    more = BestShares(query=1, variables=("a",), axes=(halves, halves), now=1.05, equal=2.0, sized=False)
    assert more.text().endswith(
        "share = [25.00%, 75.00%] and share = [25.00%, 75.00%]; those of the plan need 1.05 times as much, taking the cells of the "
        "finest table as alike."
    )
    free = BestShares(query=1, variables=("a",), axes=(halves,), tables=halves[::-1], now=1, equal=2.0, sized=True)
    assert free.text().endswith("of table_share = [75.00%, 25.00%].")
    assert found.to_json() == {
        "query": 1, "variables": ["a", "b"], "now": 1.049, "equal": 2.345, "shares": [[0.25, 0.75]], "sized": True,
    }  # fmt: skip
    assert free.to_json()["table_shares"] == [0.75, 0.25]
