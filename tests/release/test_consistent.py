"""Tables made nonnegative and additive after the release, at no cost."""

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from recordwise.errors import ParameterError
from recordwise.noise import Seeded

COUNTIES = [f"{i:05d}" for i in range(6)]
LISTED = [str(110 + i) for i in range(12)]


@pytest.fixture(scope="module")
def opened():
    chance = np.random.default_rng(7)
    rows = 3000
    emp = np.minimum(np.floor(chance.pareto(1.1, rows) + 1), 20_000).astype(int)
    pay = emp * chance.integers(20, 90, rows)
    table = pa.table(
        {
            "id": np.arange(rows),
            "emp": emp,
            "pay": pay,
            "quarter": pay // 4,
            "county": chance.choice(COUNTIES, rows),
            "naics": (110 + chance.integers(0, 16, rows)).astype(str),
        }
    )
    with rw.Session(table, unit="id", measures={"emp": 1, "pay": 1, "quarter": 1}) as session:
        yield session


@pytest.fixture(scope="module")
def release(opened):
    keys = rw.Keys.product(county=COUNTIES, naics=LISTED)
    asked = (
        rw.query()
        .group_by("county", keys=keys)
        .levels(rw.prefix("naics", [2, 3]))
        .count(rw.Gaussian(rho=0.05))
        .sum("emp", rw.UnitSplit(at=50, rho=0.05), alias="emp")
        .sum("pay", rw.LogTransform(offset=1000, sigma=0.4), alias="pay")
        .sum("quarter", rw.UnitSplit(at=2000, rho=0.05), alias="quarter")
    )
    return opened.run(asked, rng=Seeded(3))


def summed(fitted, name):
    """Fitted children added up by parent, beside the fitted parents."""
    fine, coarse = fitted["county_by_naics3"].to_pandas(), fitted["county_by_naics2"].to_pandas()
    fine["naics2"] = fine["naics3"].str[:2]
    added = fine.groupby(["county", "naics2"])[f"{name}_fit"].sum().reset_index()
    return added.merge(coarse[["county", "naics2", f"{name}_fit"]], on=["county", "naics2"])


@pytest.mark.parametrize("name", ["count", "emp", "pay", "quarter"])
def test_fitted_cells_are_not_negative_and_children_never_exceed_their_parent(release, name):
    fitted = release.consistent()
    both = summed(fitted, name)
    assert (fitted["county_by_naics3"][f"{name}_fit"].to_numpy() >= 0).all()
    assert (both[f"{name}_fit_y"] - both[f"{name}_fit_x"] >= -1e-6 * both[f"{name}_fit_y"].abs().max()).all()
    assert fitted.description["consistent"]["fits"][f"q1:{name}"]["converged"]


@pytest.mark.parametrize("name", ["count", "emp", "quarter"])
def test_with_complete_keys_children_add_up_to_their_parent(release, name):
    both = summed(release.consistent(complete=True), name)
    np.testing.assert_allclose(both[f"{name}_fit_x"], both[f"{name}_fit_y"], rtol=1e-9, atol=1e-6)


def test_noisy_answers_stay_and_nothing_is_charged(opened, release):
    before = len(opened.history())
    fitted = release.consistent()
    assert len(opened.history()) == before
    assert fitted.policy == release.policy
    assert fitted.digest == release.digest
    for name in release["county_by_naics3"].column_names:
        assert fitted["county_by_naics3"][name].equals(release["county_by_naics3"][name])


def test_edit_rules_hold_in_every_cell(release):
    fitted = release.consistent(zero_counts=True, at_most={"quarter": "pay"})["county_by_naics3"].to_pandas()
    assert (fitted["quarter_fit"] <= fitted["pay_fit"] * (1 + 1e-12)).all()
    empty = fitted[fitted["count_fit"] == 0]
    assert (empty[["emp_fit", "pay_fit", "quarter_fit"]] == 0).all(axis=None)


def test_the_rule_about_quarters_changes_cells_that_break_it(release):
    free = release.consistent()["county_by_naics3"].to_pandas()
    assert (free["quarter_fit"] > free["pay_fit"]).any()


def test_fitting_brings_the_finest_sums_closer_to_the_truth(opened, release):
    exact = rw.Gaussian(sigma="1/1000")
    keys = rw.Keys.product(county=COUNTIES, naics=LISTED)
    asked = rw.query().group_by("county", "naics", keys=keys).sum("emp", exact, alias="emp")
    truth = opened.run(asked, rng=Seeded(1)).table["emp"].to_numpy()
    fitted = release.consistent()["county_by_naics3"]
    noisy_error = np.mean((fitted["emp"].to_numpy() - truth) ** 2)
    fitted_error = np.mean((fitted["emp_fit"].to_numpy() - truth) ** 2)
    assert fitted_error < noisy_error


def test_fitted_columns_are_saved(release, tmp_path):
    import pyarrow.parquet

    release.consistent().save(tmp_path / "out")
    saved = pyarrow.parquet.read_table(tmp_path / "out" / "county_by_naics2.parquet")
    assert {"count_fit", "emp_fit", "pay_fit", "quarter_fit"} <= set(saved.column_names)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"method": "magic"}, "method"),
        ({"method": "sequential", "priority": ["county"]}, "priority"),
        ({"at_most": {"quarter": "nothing"}}, "at_most"),
    ],
)
def test_bad_parameters_are_named(release, given, told):
    with pytest.raises(ParameterError, match=told):
        release.consistent(**given)
