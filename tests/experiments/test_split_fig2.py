"""Figure 2 of the splitting paper: simulated values, counties with cows, and the claim of 10 % error with 1 % above rho."""

import json
import math

import numpy as np
import pytest

import recordwise as rw
from build import employers
from experiments.frame import data_folder, write
from experiments.split_fig2 import cattle, herds, run, simulated, smallest
from experiments.split_fig2.errors import loss_cdf, relative_errors, share_above
from recordwise.noise import Seeded


def small(kind="uniform"):
    return simulated.simulate(kind, 20_000, np.random.default_rng(1))


def test_group_totals_are_exact():
    data = small("Dirichlet(1)")
    expected = [int(data.values["HT1"][data.group == group].sum()) for group in range(simulated.GROUPS)]
    assert data.totals("HT1").tolist() == expected


@pytest.mark.costly
def test_the_share_above_rho_is_the_share_above_the_threshold():
    data = small()
    for row in simulated.error_rows(data, 2, Seeded(1)):
        beyond = np.mean(data.values[row["value"]] > row["at"] / simulated.STEP)
        assert row["share_above_rho"] == beyond


def test_the_session_counts_the_same_share_above_rho():
    import pyarrow as pa

    data = small()
    cents = data.values["HT1"]
    table = pa.table({"id": np.arange(len(cents)), "group": data.group, "ht1": cents / 100})
    with employers(table, measures={"ht1": "0.01"}, columns={"group": "integer"}) as session:
        policy = rw.UnitSplit(at=10, rho=1).policy(rw.policy.Measure("ht1", simulated.STEP), tight=False)
        summary = session.owner.loss_summary(policy, edges=[0.5, 1.0, 2.0])
    assert summary.share_above(1.0) == np.mean(cents > 1000)


def test_empty_groups_have_no_relative_error():
    errors = relative_errors(np.array([[1.0, 8.0], [3.0, 11.0]]), np.array([0.0, 10.0]))
    assert errors.tolist() == [0.2, 0.1]


def test_a_loss_of_exactly_rho_is_not_above_rho():
    assert share_above(np.array([0.1, math.nextafter(0.1, 1), 0.4]), 0.1) == pytest.approx(1 / 3)
    assert loss_cdf(np.array([1.0, 4.0]), np.array([0.5, 1.0, 4.0])).tolist() == [0.0, 0.5, 1.0]


def test_the_median_error_by_formula_is_that_of_drawn_noise():
    """DKW: with 200,000 errors the sample median's level is off by more than 0.0073 once in 1e9; the formula brackets it."""
    data, at = small(), 20
    exact = data.totals("HT2") * float(simulated.STEP)
    mechanism = rw.UnitSplit(at=at, rho=1)
    noisy = mechanism.release(np.tile(data.totals("HT2"), (200, 1)), step=simulated.STEP, rng=Seeded(2)).values()
    errors = relative_errors(noisy, exact)
    assert len(errors) == 200_000
    half = math.sqrt(math.log(2 / 1e-9) / (2 * len(errors)))

    def accepted(sigma):
        return abs(np.mean(errors <= smallest.median_error(exact, sigma)) - 0.5) < half

    assert accepted(at / math.sqrt(2))
    assert not accepted(1.05 * at / math.sqrt(2))


def test_the_threshold_leaves_less_than_one_percent_and_no_smaller_one_does():
    for tail in simulated.TAILS.values():
        at = smallest.least_threshold(tail, 0.01)
        assert at**-tail < 0.01 <= (at - float(simulated.STEP)) ** -tail


def test_the_claim_needs_more_records_in_uneven_groups():
    sigma = 46.42 / math.sqrt(2)
    errors = {kind: smallest.typical_error(kind, 1.2, simulated.RECORDS, sigma, 1) for kind in simulated.KINDS}
    assert errors["uniform"] < errors["Dirichlet(1)"] < smallest.GOAL


def test_herds_stay_in_their_classes_and_add_up():
    rng = np.random.default_rng(4)
    for operations, cows in (({1: 6, 10: 2}, 40), ({50: 3, 500: 2}, 9_000), ({50: 3, 500: 2}, 1_200), ({20: 4}, 170)):
        county = herds.County(state="S", district="1", operations=operations, cows=cows)
        made = herds.county_herds(county, rng)
        low = np.repeat(list(operations), list(operations.values()))
        high = np.array([herds.UPPER[each] for each in low])
        assert made.sum() == cows
        assert np.all(made >= low)
        assert np.all((made <= high) | (low == herds.TOP))


def test_herds_of_a_withheld_county_are_as_drawn():
    county = herds.County(state="S", district="1", operations={1: 50, 500: 5}, cows=None)
    made = herds.county_herds(county, np.random.default_rng(4))
    assert len(made) == 55
    assert np.all(made[:50] <= 9)
    assert np.all(made[50:] >= 500)


def test_the_policy_of_a_small_county_is_rho():
    assert cattle.policy(1.0, 100, tight=False).loss({"cows": 100}) == pytest.approx(1.0, rel=1e-9)
    assert cattle.policy(1.0, 100, tight=False).loss({"cows": 101}) == pytest.approx(0.5 + 0.5 * 4, rel=1e-9)


def test_a_survey_has_a_county_for_each_record_and_districts_inside_states(quick):
    found = herds.survey(1)
    assert len(found.cows) == len(found.state) == len(found.district) == len(found.herd) > 1000
    pairs = {(int(district), int(state)) for district, state in zip(found.district, found.state)}
    assert len(pairs) == len({district for district, _ in pairs})
    sums = cattle.totals(found, found.cows)
    assert sums["state"].sum() == sums["district"].sum() == found.cows.sum()


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """No real data, and a search of four halvings."""
    monkeypatch.setenv("RECORDWISE_DATA", str(tmp_path / "nothing"))
    monkeypatch.setattr(smallest, "STEPS", 4)
    monkeypatch.setattr(smallest, "REPETITIONS", 2)
    monkeypatch.setattr(simulated, "THRESHOLDS", (10, 50))
    monkeypatch.setattr(simulated, "CLAMPS", (10, 50))
    monkeypatch.setattr(cattle, "THRESHOLDS", (500, 50_000))


@pytest.mark.slow
def test_a_small_run_writes_its_files_and_says_that_the_data_is_generated(quick, tmp_path):
    done = run.reproduce(runs=2, seed=5, tell=lambda _: None)
    write(done, tmp_path / "out")
    told = json.loads((tmp_path / "out" / "reproduction.json").read_text())
    assert "generator" in told["data"]
    assert len(told["claims"]) == 7
    assert {path.name for path in (tmp_path / "out").glob("*.png")} == {"split-fig2-sim.png", "split-fig2-cis.png"}


@pytest.mark.slow
def test_the_claims_of_section_6_3_hold():
    """At a fixed seed; the margins (4 to 7 % against 10 %) are many times the 1 % uncertainty of the medians."""
    done = run.reproduce(runs=20, seed=20211, tell=lambda _: None)
    assert [claim.statement for claim in done.claims if not claim.agrees] == []
    least = {(row["kind"], row["value"]): row["smallest_records"] for row in done.tables["smallest"]}
    assert 50_000 < least["uniform", "HT1"] < 56_000
    assert 35_000 < least["uniform", "HT2"] < 41_000


@pytest.mark.slow
@pytest.mark.skipif(
    data_folder(herds.OPERATIONS, herds.COWS) is None, reason="the NASS files are not in the data folder"
)
def test_the_real_herds_add_up_to_every_published_county():
    rng = np.random.default_rng(6)
    counties = herds.read_counties(data_folder())
    assert sum(sum(county.operations.values()) for county in counties) == 36_024
    for county in counties:
        made = herds.county_herds(county, rng)
        assert made.min() >= min(county.operations)
        if county.cows is not None:
            assert made.sum() == county.cows
