"""The frontier: more loss buys more reliable cells, limits are kept, and the expected share is that of real releases."""

from collections import OrderedDict
from dataclasses import replace

import numpy as np
import pytest

import recordwise as rw
from build import employers, few
from planning.small_table import CODES, COUNTIES, opened, shape
from recordwise.errors import ParameterError
from recordwise.exact.functions import log, x
from recordwise.mechanisms import certified_loss
from recordwise.noise import Seeded
from recordwise.plan.publication import StatusRules
from recordwise.planning import frontier, recommend_within
from recordwise.planning.losses import balance
from recordwise.planning.plots import plot_frontier

FAMILIES = {"Gaussian": rw.Gaussian(sigma=1), "logarithm": rw.LogTransform(offset=100, sigma=1)}


def ladder(**more):
    keys = rw.Keys.product(county=COUNTIES, naics=CODES)
    return (
        rw.query()
        .group_by("county")
        .levels(rw.prefix("naics", [1, 3]), share=["0.25", "0.75"], keys=keys, **more)
        .count(rw.Gaussian(rho="0.0005"), alias="n")
        .sum("emp", rw.UnitSplit(at=50, rho="0.005"), alias="emp")
    )


@pytest.fixture(scope="module")
def found(session):
    return frontier(session, ladder(), candidates=FAMILIES, data="synthetic")


@pytest.mark.costly
def test_more_loss_buys_more_reliable_cells(found):
    losses, shares = found.curve()
    assert np.all(np.diff(losses) > 0)
    assert np.all(np.diff(shares) >= -1e-9)
    assert shares[-1] > 0.9 > 0.3 > shares[0]


def test_todays_plan_is_never_above_the_frontier(found):
    loss = found.today.loss("median")
    # Losses of points are searched to a tenth of a percent.
    assert found.at_loss(loss) >= found.today.reliable.share - 0.002
    assert found.at_share(found.today.reliable.share) <= loss * 1.01
    assert "At the same loss the frontier has" in found.summary()
    assert found.at_share(1.5) == np.inf


@pytest.mark.parametrize("releases", few([40, 100], 1))
@pytest.mark.costly
def test_the_expected_share_is_that_of_real_releases(session, found, releases):
    """Seeded releases of today's plan, 30 values of cells with records in each: five standard errors apart at most."""
    counted, reliable = 0, []
    for seed in range(releases):
        release = session.run(ladder(), rng=Seeded(seed))
        values = []
        for table in release.tables:
            held = np.isin(table.data.column("county").to_pylist(), COUNTIES[:3])
            for name in ("n", "emp"):
                value = table.data.column(name).to_numpy()[held]
                sd = table.data.column(f"{name}_sd").to_numpy()[held]
                values.append(sd / np.maximum(value, 2 * sd) <= 0.165)
        reliable.append(np.concatenate(values).mean())
        counted += len(np.concatenate(values))
    assert counted == releases * 2 * (3 * 2 + 3 * 3)
    error = np.std(reliable) / np.sqrt(len(reliable))
    assert abs(np.mean(reliable) - found.today.reliable.share) < 5 * error + 0.003


@pytest.mark.costly
def test_limits_are_kept_and_nearly_reached(session, found):
    best = recommend_within(session, ladder(), median="0.01", p99=3, candidates=FAMILIES, data="synthetic")
    assert best.loss("median") <= 0.01
    assert best.loss("p99") <= 3
    assert max(best.loss("median") / 0.01, best.loss("p99") / 3) > 0.98
    at = recommend_within(session, ladder(), at=[({"emp": 100}, 0.05)], candidates=FAMILIES, data="synthetic")
    policy = session.policy_of(*at.queries)
    assert 0.049 < policy.loss({"emp": 100}) <= 0.05
    with pytest.raises(ParameterError, match="at least one limit"):
        recommend_within(session, ladder(), data="synthetic")
    with pytest.raises(ParameterError, match="whose loss is not known"):
        recommend_within(session, ladder(), at=[({"pay": 1}, 1)], candidates=FAMILIES, data="synthetic")


@pytest.mark.costly
def test_a_budget_is_kept_for_every_possible_record():
    budget = rw.policy.constant("0.01") + rw.policy.split("0.02", {"emp": 50})
    with opened(budget=budget) as session:
        gaussian = {"Gaussian": rw.Gaussian(sigma=1)}
        best = recommend_within(session, ladder(), budget=True, candidates=gaussian, data="synthetic")
        policy = session.policy_of(*best.queries)
        assert budget.dominates(policy)
        assert not budget.dominates(policy * "1.1")


def test_what_a_plan_sets_aside_without_having_said_so_is_noted():
    with opened(budget=rw.policy.constant(1) + rw.policy.split("0.5", {"emp": 50})) as session:
        best = recommend_within(session, ladder(), budget=True, candidates=FAMILIES, data="synthetic")
    assert not [each for each in best.notes() if "aside" in each]
    aside = replace(best, left=replace(best.left, reserve=1))
    (note,) = [each for each in aside.notes() if "aside" in each]
    assert not [each for each in replace(aside, within_budget=False).notes() if "aside" in each]
    assert "one revision" in note
    assert "reserve = { revisions = 0 }" in note


LOG_RATE = rw.policy.constant("0.1") + rw.policy.additive("emp", 2 * log(1 + x / 10), bound="pure")
SLOW = {"Polylog": rw.Polylog(power=2, rate=1, offset=8, scale=100)}


@pytest.mark.costly
def test_a_budget_that_grows_like_a_logarithm_is_kept_whether_it_is_the_sessions_own_or_given():
    """Within the bounds of the schema: log**2 outgrows a logarithm only beyond them."""
    asked = rw.query().group_by("county", keys=rw.Keys.product(county=COUNTIES))
    asked = asked.count(rw.Gaussian(rho="0.01"), alias="n").sum("emp", rw.Gaussian(sigma=100), alias="emp")
    how = {"candidates": SLOW, "statistics": ["emp"], "data": "synthetic"}
    bounds = {"emp": 100_000}
    with opened(budget=LOG_RATE, measures={"emp": rw.plan.Measure.of("emp", bound=100_000)}) as session:
        own = recommend_within(session, asked, budget=True, **how)
        given = recommend_within(session, asked, budget=LOG_RATE, **how)
        policies = [session.policy_of(*each.queries) for each in (own, given)]
    assert policies[0] == policies[1]
    assert LOG_RATE.dominates(policies[0], bounds=bounds)
    assert not LOG_RATE.dominates(policies[0])
    assert not LOG_RATE.dominates(policies[0] * "1.1", bounds=bounds)


def test_a_pure_budget_chooses_among_noise_that_has_a_pure_loss():
    budget = rw.policy.pure_budget(1) + rw.policy.pure_budget("0.5", {"emp": 50})
    asked = rw.query().group_by("county", keys=rw.Keys.product(county=COUNTIES))
    asked = asked.count(rw.GeneralizedGaussian(shape=1, scale=10)).sum("emp", rw.Gaussian(sigma=100), alias="emp")
    laplace, gaussian = rw.GeneralizedGaussian(shape=1, scale=100), rw.Gaussian(sigma=100)
    with opened(budget=budget) as session:
        how = {"statistics": ["emp"], "budget": True, "data": "synthetic"}
        best = recommend_within(session, asked, candidates={"Laplace": laplace, "Gaussian": gaussian}, **how)
        policy = session.policy_of(*best.queries)
        with pytest.raises(ParameterError, match="whatever the noise"):
            recommend_within(session, asked, candidates={"Gaussian": gaussian}, **how)
    assert best.name == "Laplace"
    assert budget.dominates(policy)


@pytest.mark.costly
def test_fitted_levels_are_more_reliable_at_the_same_loss(session, found):
    query = ladder(all_other="publish")
    gaussian = {"Gaussian": rw.Gaussian(sigma=1)}
    losses = [found.today.loss("median") * part for part in (0.3, 1)]
    raw = frontier(session, query, candidates=gaussian, losses=losses, data="synthetic")
    fitted = frontier(session, query, candidates=gaussian, losses=losses, fitted=True, data="synthetic")
    assert fitted.today.reliable.share > raw.today.reliable.share
    assert np.all(fitted.curve()[1] > raw.curve()[1])


@pytest.mark.costly
def test_another_status_rule_counts_other_cells(session, found):
    loose = StatusRules(limits=(("fair", 0.3), ("poor", 0.4)), otherwise="bad")
    other = frontier(session, ladder(), candidates=FAMILIES, rules=loose, losses=[0.001], data="synthetic")
    assert (other.status, other.limit) == ("fair", 0.3)
    assert other.today.reliable.share > found.today.reliable.share


def test_results_can_be_read_in_several_ways(found):
    headers, body = found.rows()
    assert all(len(row) == len(headers) for row in body)
    assert body[-1][0] == "today's plan"
    assert [row[0] for row in body].count("today's plan") == 1
    assert "synthetic" in found._repr_html_()
    assert found.to_json()["today"]["share"] == found.today.reliable.share
    assert set(found.today.reliable.by_table) == {
        *("n by county x naics1", "n by county x naics3", "emp by county x naics1", "emp by county x naics3")
    }


def test_the_figure_marks_todays_plan(found):
    pytest.importorskip("matplotlib", reason="the plots extra is not installed: no figure is drawn here")
    axes = plot_frontier(found).axes[0]
    assert "today's plan, all cells" in [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.costly
def test_a_balanced_rank_is_between_median_and_p99(session):
    found = frontier(session, ladder(), candidates=FAMILIES, rank_by="balanced", losses=[0.01, 0.1], data="synthetic")
    for point, loss in zip(found.points, (0.01, 0.1)):
        assert point.loss("balanced") == pytest.approx((point.loss("median") * point.loss("p99")) ** 0.5)
        assert point.loss("balanced") == pytest.approx(loss, rel=0.02)
    assert [balance(each) for each in ([2.0, 8.0], [0.0, 8.0], [0.0, 0.0], [1.0, np.inf])] == [4.0, 8.0, 0.0, np.inf]


@pytest.mark.parametrize(
    "noise", few([rw.GeneralizedGaussian(shape="0.5", scale=20), rw.Polylog(power=2, rate=1, offset=3, scale=40)], 1)
)
@pytest.mark.costly
def test_losses_from_fat_tailed_noise_at_another_scale_are_those_of_its_own_policy(session, noise):
    """More and less noise than the plan has: by a curve of the law at a scale of 1, and by the policy of what is drawn."""
    query = shape().count(rw.Gaussian(rho="0.05"), alias="n").sum("emp", noise, alias="emp").where("emp > 2")
    given = {"as it is": {"emp": noise, "count": rw.Gaussian(rho="0.05")}}
    for limit in (0.06, 0.6, 6):
        best = recommend_within(session, query, p99=limit, candidates=given, data="synthetic")
        # The curve leads to the noise; the losses of the point are those of all records under its own policy.
        assert limit * 0.97 <= best.loss("p99") <= limit


@pytest.mark.costly
def test_the_usual_families_are_certified_a_few_times_only(monkeypatch):
    """It took more than a minute for six records: the policy of fat-tailed noise was computed anew for every plan and loss."""
    asked, made = [], certified_loss._make_certificate
    monkeypatch.setattr(certified_loss, "KEPT", OrderedDict())
    monkeypatch.setattr(certified_loss, "_make_certificate", lambda *given: asked.append(1) or made(*given))
    table = {"id": [1, 2, 3, 4, 5, 6], "county": ["01"] * 3 + ["02"] * 3, "emp": [4, 20, 900, 3, 8, 31]}
    query = rw.query().group_by("county", keys=["01", "02"]).sum("emp", rw.UnitSplit(at=50, rho="0.1"), alias="emp")
    with employers(table, "county") as session:
        found = frontier(session, query, data="synthetic")
    assert len(found.points) == 13
    assert len(asked) < 25
