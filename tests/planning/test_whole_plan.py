"""Planning on a whole plan: every table, level and statistic of it, or those that are named."""

from fractions import Fraction

import numpy as np
import pytest

import recordwise as rw
from planning.small_table import CODES, COUNTIES, rows, shape
from recordwise.errors import ParameterError
from recordwise.planning import compare, plan_goals, recommend
from recordwise.planning.scope import scope_of

KEYS = rw.Keys.product(county=COUNTIES, naics=CODES)
GRID = rw.mechanisms.Grid.log(1, 10**6, bits=6)


def ladder():
    """Two levels, with everything a query can ask for."""
    return (
        rw.query()
        .group_by("county")
        .levels(rw.prefix("naics", [1, 3]), share=["0.25", "0.75"], keys=KEYS)
        .count(rw.Gaussian(rho="0.1"))
        .sum("emp", rw.UnitSplit(at=50, rho="0.5"), alias="emp")
        .avg("emp", sum=rw.UnitSplit(at=50, rho="0.5"))
        .avg("pay", sum=rw.UnitSplit(at=2000, rho="0.25"), alias="pay")
        .quantile("emp", p="0.5", grid=GRID, rho="0.05")
        .named("ladder")
    )


def plan():
    return [ladder(), shape().sum("emp", rw.LogTransform(offset=50, sigma="0.5"), alias="slow").where("emp > 1")]


def test_the_plan_as_it_stands_costs_what_its_release_would_charge(session):
    (found,) = compare(session, query=plan(), data="synthetic").candidates
    policy, table = session.policy_of(*plan()), rows()
    losses = np.sort(np.asarray(policy.loss({name: table[name] for name in ("emp", "pay", "county", "naics")})))
    assert found.name == "today's plan"
    assert found.losses.rho.maximum == losses[-1]
    assert found.losses.rho.quantile(0.5) == losses[len(losses) // 2 - 1]


def test_every_table_has_the_error_of_its_own_share(session):
    found = compare(session, query=plan(), data="synthetic")
    names = [each.name for each in found.tables]
    assert names == [
        *("count by county x naics1", "emp by county x naics1", "pay_sum by county x naics1"),
        *("count by county x naics3", "emp by county x naics3", "pay_sum by county x naics3"),
        "slow by county x naics",
    ]
    table, split = rows(), rw.UnitSplit(at=50, rho="0.5")
    totals = {
        (county, code): table["emp"][(table["county"] == county) & (table["naics"] == code)].sum()
        for county in COUNTIES
        for code in CODES
    }
    held = np.array([each for each in totals.values() if each], float)
    own = split.shared(Fraction(3, 4)).error_quantiles(held, confidence=0.95, step=1)
    found_errors = found.relative_errors("today's plan", "emp by county x naics3")
    assert np.sort(found_errors) == pytest.approx(np.sort(own / held))


def test_a_candidate_replaces_every_statistic_it_names_and_averages_follow(session):
    gaussian = rw.Gaussian(sigma=30)
    scope = scope_of(plan(), session.schema)
    changed, other = scope.queries(lambda asked: gaussian if asked.measure == "emp" else asked.statistic.mechanism)
    aliases = [each.alias for each in changed.draws()]
    assert aliases == [each.alias for each in ladder().draws()]
    assert [each.mechanism == gaussian for each in changed.draws()] == [False, True, False, False]
    average = next(each for each in changed.statistics if each.alias == "avg_emp")
    assert average.sum == gaussian
    assert other.statistics[0].mechanism == gaussian
    assert (changed.name, changed.axes, changed.key_lists) == (ladder().name, ladder().axes, ladder().key_lists)
    found = compare(session, {"mixed": {"emp": gaussian, "slow": rw.UnitSplit(at=9, rho=1)}}, query=plan())
    assert found["mixed"].losses.rho.maximum == pytest.approx(
        float(np.max(session.policy_of(*_mixed(gaussian)).loss({n: rows()[n] for n in ("emp", "pay")})))
    )


def _mixed(gaussian):
    query = (
        rw.query()
        .group_by("county")
        .levels(rw.prefix("naics", [1, 3]), share=["0.25", "0.75"], keys=KEYS)
        .count(rw.Gaussian(rho="0.1"))
        .sum("emp", gaussian, alias="emp")
        .avg("pay", sum=rw.UnitSplit(at=2000, rho="0.25"), alias="pay")
        .quantile("emp", p="0.5", grid=GRID, rho="0.05")
    )
    return query, shape().sum("emp", rw.UnitSplit(at=9, rho=1), alias="slow").where("emp > 1")


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"tables": ["2"]}, ["slow by county x naics"]),
        ({"tables": ["ladder_county_by_naics1"], "statistics": ["emp"]}, ["emp by county x naics1"]),
        ({"tables": ["ladder"], "statistics": ["count"]}, ["count by county x naics1", "count by county x naics3"]),
        ({"statistics": ["slow"]}, ["slow by county x naics"]),
    ],
)
def test_tables_and_statistics_narrow_the_plan_and_what_is_left_out_costs_nothing(session, given, names):
    whole = compare(session, query=plan(), data="synthetic")["today's plan"]
    found = compare(session, query=plan(), data="synthetic", **given)
    assert [each.name for each in found.tables] == names
    assert 0 < found["today's plan"].losses.rho.maximum < whole.losses.rho.maximum


def test_one_table_of_several_pays_its_own_share(session):
    (one,) = compare(session, query=plan(), tables=["ladder_county_by_naics1"], statistics=["emp"]).candidates
    policy = rw.UnitSplit(at=50, rho="0.5").shared(Fraction(1, 4)).policy("emp")
    assert one.losses.rho.maximum == float(np.max(policy.loss({"emp": rows()["emp"]})))


def test_unknown_tables_and_statistics_are_refused_with_the_names_there_are(session):
    with pytest.raises(ParameterError, match="ladder_county_by_naics3"):
        compare(session, query=plan(), tables=["county"])
    with pytest.raises(ParameterError, match="slow"):
        compare(session, query=plan(), statistics=["payroll"])
    with pytest.raises(ParameterError, match="no count and no sum"):
        compare(session, query=plan(), statistics=["median_emp"])
    with pytest.raises(ParameterError, match="must be a query, several queries or a plan"):
        compare(session, query="plan.toml")


def test_a_sweep_takes_each_measure_by_itself(session):
    found = compare(session, query=plan(), thresholds={"emp": [5, 60], "pay": [2000]}, rhos=[1], data="synthetic")
    assert [(each.measure, each.at) for each in found.points] == [("emp", 5), ("emp", 60), ("pay", 2000)]
    assert set(found.curves()) == {"emp, ρ = 1", "pay, ρ = 1"}
    headers, body = found.rows()
    assert all(len(row) == len(headers) for row in body)
    with pytest.raises(ParameterError, match="each of emp, pay"):
        compare(session, query=plan(), thresholds=[5], rhos=[1])


def test_goals_of_a_plan_are_one_for_each_statistic_and_narrow_alike(session):
    goals = plan_goals(session, plan(), within={"count": "0.2", "emp": "0.1", "pay": "0.3"}, at_least={"slow": 7})
    assert [(each.statistic, float(each.within), each.at_least) for each in goals] == [
        *(("count", 0.2, 0), ("emp", 0.1, 0), ("pay_sum", 0.3, 0)),
        ("slow", 0.1, 7),
    ]
    (one,) = plan_goals(session, plan(), within="0.1", tables=["ladder_county_by_naics3"], statistics=["emp"])
    assert [query.tables()[0].names() for query in one.queries()] == [("county", "naics3")]
    found = recommend(session, one, candidates={"Gaussian": rw.Gaussian(sigma=1)}, keep_offsets=True, data="synthetic")[
        "Gaussian"
    ]
    assert [each.table.name for each in found.calibrated] == ["emp by county x naics3"]


def test_an_allocation_within_a_plan_evens_the_levels_out_and_keeps_the_loss(session):
    goals = plan_goals(session, ladder(), within="0.1", statistics=["emp"])
    found = recommend(session, goals, plan=ladder(), keep_mechanisms=True, data="synthetic")
    ratios = [each.ratio for each in found.shares]
    assert ratios[0] == pytest.approx(ratios[1], rel=0.01)
    (query,) = found.queries()
    assert sum(level.share for level in query.tables()) == 1
    assert [each.share for each in found.shares] == [level.share for level in query.tables()]
    assert query.statistics == ladder().statistics
    before = recommend(session, goals, keep_mechanisms=rw.UnitSplit(at=50, rho="0.5"), data="synthetic")
    assert found.worst == pytest.approx(before.worst, rel=0.01)
    assert found.losses.rho.maximum == pytest.approx(compare(session, query=ladder()).candidates[0].losses.rho.maximum)


def test_one_split_serves_all_statistics_of_a_query(session):
    """The worst table is as good as can be: no nearby split has a smaller largest ratio."""
    goals = plan_goals(session, ladder(), within={"count": "0.5", "emp": "0.1", "pay": "0.02"})
    found = recommend(session, goals, plan=ladder(), keep_mechanisms=True, data="synthetic")
    coarse, fine = (each.share for each in found.queries()[0].tables())
    for moved in (Fraction(1, 50), Fraction(-1, 50)):
        shares = {"naics1": coarse + moved, "naics3": fine - moved}
        others = [
            each.ratio * float(each.share / shares[each.table.part.level.names()[1]]) ** 0.5 for each in found.shares
        ]
        assert max(others) >= found.worst * (1 - 1e-3)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"keep_mechanisms": True}, "True with a plan"),
        ({"keep_mechanisms": rw.Gaussian(sigma=1), "plan": ladder()}, "True with a plan"),
        ({"keep_mechanisms": rw.Gaussian(sigma=1), "candidates": {"Gaussian": rw.Gaussian(sigma=1)}}, "keeps them"),
        ({"keep_mechanisms": rw.Gaussian(sigma=1), "firms": True}, "keeps them"),
    ],
)
def test_mechanisms_that_are_kept_are_not_chosen_too(session, how, words):
    goals = plan_goals(session, ladder(), within="0.1", statistics=["emp"])
    with pytest.raises(ParameterError, match=words):
        recommend(session, goals, data="synthetic", **how)


@pytest.mark.parametrize("how", [{"mechanisms": {"Gaussian": rw.Gaussian(sigma=1)}}, {"variance": 4}, {"firms": True}])
def test_a_grid_is_compared_by_itself(session, how):
    with pytest.raises(ParameterError, match="are a grid, with no mechanisms"):
        compare(session, query=ladder(), thresholds={"emp": [5], "pay": [5]}, rhos=[1], data="synthetic", **how)


def test_planning_shows_its_functions_and_what_users_make():
    functions = {"check", "compare", "evaluate", "explain", "frontier", "recommend", "recommend_within", "rehearse"}
    made = {"Goal", "MultiplicativeNoise", "PercentRule", "clamped", "families", "plan_goals", "plan_text"}
    assert set(dir(rw.planning)) == functions | made
