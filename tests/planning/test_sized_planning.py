"""Planning with noise in proportion to public sizes: each cell has the error of its band, and families are searched (T-SIZE)."""

from fractions import Fraction

import numpy as np
import pytest

import recordwise as rw
from planning.small_table import CODES, COUNTIES, cell_sums, rows
from recordwise.errors import ParameterError, PlanError
from recordwise.planning import Goal, compare, recommend
from recordwise.planning.search.goals import sized_families, with_error

TOTALS = {cell: sum(values) for cell, values in cell_sums(rows(), "emp").items()}
CELLS = [(county, code) for county in COUNTIES for code in CODES]
SIZES = {cell: round(TOTALS[cell] * (0.6, 1.5, 1.0)[place % 3]) for place, cell in enumerate(CELLS)}
KEYS = rw.Keys.of(
    {"county": [c for c, _ in CELLS], "naics": [n for _, n in CELLS], "last": [SIZES[cell] for cell in CELLS]},
    size="last",
    sized_on="public: last year",
)
SIZED = rw.Sized(rw.Gaussian(sigma="0.02"), floor=500)
WITH_LOW = rw.Sized(rw.Gaussian(sigma="0.02"), floor=500, low=rw.GeneralizedGaussian(shape="0.5", scale="0.005"))


def shape():
    return rw.query().group_by("county", "naics", keys=KEYS)


def goal(**more):
    return Goal("emp", shape(), **({"within": "0.05", "share": "0.8"} | more))


def edge_of(cell, floor=500):
    """The least size of a cell's band, by hand."""
    edge = floor
    while 2 * edge <= SIZES[cell]:
        edge *= 2
    return edge


def test_compare_gives_every_cell_the_error_of_its_band(session):
    table = compare(session, {"sized": SIZED, "low": WITH_LOW}, measure="emp", query=shape(), data="synthetic")
    for name, mechanism in (("sized", SIZED), ("low", WITH_LOW)):
        (found,) = (each for each in table.candidates if each.name == name)
        by_hand = [
            float(mechanism.at_size(Fraction(edge_of(cell))).error_quantiles(np.array([TOTALS[cell]]))[0])
            for cell in CELLS
        ]
        assert sorted(found.errors) == pytest.approx(sorted(by_hand))
        losses = np.sort(session.policy_of(shape().sum("emp", mechanism)).loss(rows()))
        assert found.losses.rho.quantile(0.5) == pytest.approx(losses[len(losses) // 2 - 1], rel=1e-9)


def met(mechanism, within=0.05):
    """The share of the cells with records that meet the goal, each by the law of its own band."""
    held = [cell for cell in CELLS if TOTALS[cell] > 0]
    errors = [
        float(mechanism.at_size(Fraction(edge_of(cell))).error_quantiles(np.array([TOTALS[cell]]))[0]) for cell in held
    ]
    return float(np.mean([error <= within * TOTALS[cell] for error, cell in zip(errors, held)]))


@pytest.mark.parametrize("mechanism", [SIZED, WITH_LOW], ids=["gaussian", "low"])
@pytest.mark.costly
def test_the_noise_that_fitness_finds_meets_the_goal_and_more_does_not(session, mechanism):
    found = recommend(session, goal(), candidates={"sized": mechanism}, keep_offsets=True, data="synthetic")
    (fitted,) = found["sized"].calibrated
    assert met(fitted.mechanism) == pytest.approx(fitted.share_met)
    assert met(fitted.mechanism) >= 0.8
    error = float(fitted.mechanism.mechanism.resized(500).error_quantiles(np.array([500.0]))[0]) / 500
    assert met(with_error(fitted.mechanism, error * 1.05, confidence=0.95, step=1)) < 0.8


@pytest.mark.costly
def test_keys_without_sizes_are_refused_or_left_out(session):
    plain = rw.query().group_by("county", "naics", keys=rw.Keys.product(county=COUNTIES, naics=CODES))
    with pytest.raises(PlanError, match="give no size"):
        compare(session, {"sized": SIZED}, measure="emp", query=plain, data="synthetic")
    found = recommend(session, Goal("emp", plain, within="0.05", share="0.8"), data="synthetic")
    assert not [each.name for each in found.ranking() if each.name.startswith("sized")]


def test_recommend_searches_floors_and_fat_tailed_low_bands(session):
    tried = sized_families(Fraction(500))
    assert len([name for name in tried if "fat-tailed" in name]) == len(tried) / 2
    # Each law of a low band is certified anew, which takes seconds: one of them is enough here.
    few = [*[name for name in tried if "fat-tailed" not in name][1:3], "sized, floor 500, fat-tailed below"]
    candidates = {"Gaussian": rw.Gaussian(sigma=1), **{name: tried[name] for name in few}}
    found = recommend(session, goal(at_least=500), candidates=candidates, rank_by="median", data="synthetic")
    names = [each.name for each in found.ranking()]
    assert found.best.name.startswith("sized")
    assert len([name for name in names if name.startswith("sized")]) == 3
    losses = {each.name: np.median(session.policy_of(*each.queries()).loss(rows())) for each in found.ranking()}
    assert losses[found.best.name] == pytest.approx(min(losses.values()), rel=1e-6)


@pytest.mark.slow
def test_without_candidates_sized_families_are_tried_where_keys_have_sizes(session):
    found = recommend(session, goal(at_least=500), data="synthetic")
    assert any(each.name.startswith("sized, floor") for each in found.ranking())


def levels():
    return rw.query().group_by("county", keys=KEYS).levels(rw.prefix("naics", 1), rw.prefix("naics", 3))


@pytest.mark.theorem("T-EVEN")
def test_a_budget_of_sized_noise_is_split_so_that_no_table_is_farther_from_its_goal(session):
    goals = [Goal("emp", levels(), within="0.05", share="0.8", at_least=500)]
    found = recommend(session, goals, keep_mechanisms=SIZED, data="synthetic")
    ratios = [each.ratio for each in found.shares]
    assert max(ratios) <= min(ratios) * 1.02
    assert sum(each.share for each in found.shares) == 1
    for each in found.shares:
        assert each.table.ratio(SIZED.at_share(each.share)) == pytest.approx(each.ratio)
    even = max(each.table.ratio(SIZED.at_share(Fraction(1, 2))) for each in found.shares)
    assert max(ratios) <= even
    assert found.policy == session.policy_of(*(each.table.with_mechanism(each.mechanism) for each in found.shares))


def test_shares_for_fitted_errors_of_sized_noise_need_less_loss_than_those_for_raw_errors(session):
    """They were refused: every cell has the variance of its own band in the fit."""
    goals = [Goal("emp", levels(), within="0.05", share="0.8", at_least=500)]
    raw = recommend(session, goals, keep_mechanisms=SIZED, data="synthetic")
    fitted = recommend(session, goals, keep_mechanisms=SIZED, fitted=True, complete=True, data="synthetic")
    assert fitted.worst < raw.worst
    with pytest.raises(ParameterError, match="GeneralizedGaussian has another law"):
        recommend(session, goals, keep_mechanisms=WITH_LOW, fitted=True, complete=True, data="synthetic")


@pytest.mark.costly
def test_laplace_noise_of_a_plan_is_a_candidate_that_meets_the_goal_and_keeps_the_shares(session):
    """A share w of its loss has a scale larger by 1/w, where Gaussian noise grows by the root (T-ADD)."""
    laplace = rw.Sized(rw.GeneralizedGaussian(shape=1, scale="0.02"), floor=500)
    shares = [Fraction(1, 10), Fraction(9, 10)]
    asked = rw.query().group_by("county", keys=KEYS).levels(rw.prefix("naics", 1), "naics", share=shares)
    wanted = Goal("emp", asked, within="0.05", share="0.8", levels=[1])
    found = recommend(session, wanted, plan=asked.sum("emp", laplace), data="synthetic")
    assert any(
        "stay as the plan states them, because some of its tables have no goal" in each for each in found.advice.notes()
    )
    own = found["as in the plan"]
    (query,) = own.queries()
    assert [each.share for each in query.tables()] == shares
    (statistic,) = query.draws()
    finest = statistic.mechanism.at_share(Fraction(9, 10))
    assert met(finest) >= 0.8
    assert met(finest.each(lambda inner: inner.with_scale_times(Fraction(101, 100)))) < 0.8
    losses = session.policy_of(query).loss(rows())
    assert own.losses.rho.maximum == pytest.approx(losses.max())
