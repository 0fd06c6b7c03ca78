"""Tables made nonnegative and additive after the release, at no cost."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from build import employers
from recordwise.errors import ParameterError
from recordwise.noise import Seeded
from recordwise.release.nesting import parents
from recordwise.release.published import read_groups
from recordwise.release.tables import ReleasedTable

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
    # Four codes of industries are not listed.
    with employers(table, measures={"emp": 1, "pay": 1, "quarter": 1}, max_outside="accept") as session:
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
@pytest.mark.costly
def test_fitted_cells_are_not_negative_and_children_never_exceed_their_parent(release, name):
    fitted = release.consistent()
    both = summed(fitted, name)
    assert (fitted["county_by_naics3"][f"{name}_fit"].to_numpy() >= 0).all()
    assert (both[f"{name}_fit_y"] - both[f"{name}_fit_x"] >= -1e-6 * both[f"{name}_fit_y"].abs().max()).all()
    assert fitted.to_json()["consistent"]["fits"][f"q1:{name}"]["converged"]


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


@pytest.mark.costly
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
        ({"at_most": {"quarter": "nothing"}}, "Available are q1: count, emp, pay, quarter."),
        ({"at_most": {"q2:quarter": "pay"}}, "does not name two counts or sums of one query"),
        ({"at_most": {"q1:quarter": "q2:pay"}}, "does not name two counts or sums of one query"),
        ({"at_most": {"quarter": "pay", "emp": "pay"}}, "two rules with 'pay' on the same side"),
        ({"at_most": {"quarter": "pay", "q1:quarter": "emp"}}, "two rules with 'quarter' on the same side"),
        ({"at_most": {"quarter": "pay", "pay": "quarter"}}, "is circular"),
        ({"at_most": {"pay": "pay"}}, "is circular"),
        ({"at_most": {"quarter": "pay"}, "method": "ols"}, "cannot be enforced by ols"),
        ({"at_most": {"count": "emp"}, "zero_counts": True}, "names a count"),
    ],
)
def test_bad_parameters_are_named(release, given, told):
    with pytest.raises(ParameterError, match=told):
        release.consistent(**given)


def test_a_chain_of_rules_holds_at_every_link(release):
    fitted = release.consistent(at_most={"emp": "quarter", "quarter": "pay"})
    for table in fitted.tables:
        emp, quarter, pay = (table.data[f"{name}_fit"].to_numpy() for name in ("emp", "quarter", "pay"))
        assert (emp <= quarter * (1 + 1e-12) + 1e-9).all()
        assert (quarter <= pay * (1 + 1e-12) + 1e-9).all()


@pytest.fixture(scope="module")
def two_queries(opened):
    """Columns have their default names; both queries sum the quarter, the first alone the year."""
    keys = rw.Keys.product(county=COUNTIES, naics=LISTED)
    mechanism = rw.UnitSplit(at=2000, rho="0.0005")
    first = rw.query().group_by("county", keys=keys).levels(rw.prefix("naics", [2, 3])).count(rw.Gaussian(rho=0.05))
    first = first.sum("pay", mechanism).sum("quarter", mechanism)
    second = rw.query().group_by("naics", keys=keys).sum("quarter", mechanism).sum("emp", mechanism)
    # Another condition keeps it apart: tables about the same records are fitted together.
    third = rw.query().where("emp >= 0").group_by("county", keys=keys).sum("quarter", mechanism).sum("pay", mechanism)
    third = third.sum("emp", mechanism, alias="emp_1").sum("emp", mechanism, alias="emp_2")
    return opened.run(first, second, third, rng=Seeded(3))


def broken(release, smaller, larger):
    """In which tables some cell breaks the rule."""
    found = set()
    for table in release.tables:
        if {f"{smaller}_fit", f"{larger}_fit"} <= set(table.data.column_names):
            low, high = (table.data[f"{name}_fit"].to_numpy() for name in (smaller, larger))
            found |= {table.name} if (low > high * (1 + 1e-12) + 1e-9).any() else set()
    return found


@pytest.mark.parametrize("names", [("quarter", "pay"), ("sum_quarter", "sum_pay"), ("quarter", "sum_pay")])
@pytest.mark.costly
def test_a_rule_by_measures_or_columns_holds_in_every_query_that_has_both(two_queries, names):
    everywhere = {"q1_county_by_naics2", "q1_county_by_naics3", "q3_county"}
    assert "q1_county_by_naics3" in broken(two_queries.consistent(), "sum_quarter", "sum_pay")
    assert not broken(two_queries.consistent(at_most=dict([names])), "sum_quarter", "sum_pay") & everywhere


@pytest.mark.parametrize("names", [("q1:quarter", "pay"), ("sum_quarter", "q1:sum_pay"), ("q1:quarter", "q1:pay")])
@pytest.mark.costly
def test_a_rule_for_one_query_leaves_the_others_alone(two_queries, names):
    free, ruled = two_queries.consistent(), two_queries.consistent(at_most=dict([names]))
    assert not any(name.startswith("q1") for name in broken(ruled, "sum_quarter", "sum_pay"))
    for name in ("q2_naics", "q3_county"):
        assert ruled[name].equals(free[name])
    assert not ruled["q1_county_by_naics3"].equals(free["q1_county_by_naics3"])


def test_a_measure_that_is_summed_twice_must_be_named_by_its_column(two_queries):
    with pytest.raises(ParameterError, match="several sums: emp_1, emp_2"):
        two_queries.consistent(at_most={"q3:emp": "pay"})
    fitted = two_queries.consistent(at_most={"q3:emp_2": "pay"})
    assert broken(fitted, "emp_2", "sum_pay") == set()


@pytest.mark.costly
def test_priorities_order_the_tables_of_several_queries(two_queries):
    names = [table.name for table in two_queries.tables]
    as_usual = two_queries.consistent(method="sequential")
    finest_first = two_queries.consistent(method="sequential", priority=list(reversed(names)))
    assert not finest_first["q1_county_by_naics3"].equals(as_usual["q1_county_by_naics3"])
    kept = np.maximum(finest_first["q1_county_by_naics3"]["sum_pay"].to_numpy(), 0.0)
    np.testing.assert_allclose(
        finest_first["q1_county_by_naics3"]["sum_pay_fit"].to_numpy(), kept, rtol=1e-9, atol=1e-6
    )
    with pytest.raises(ParameterError, match="exactly these tables"):
        two_queries.consistent(method="sequential", priority=names[:-1])


def test_a_table_of_a_mechanism_from_elsewhere_is_refused_in_words(opened):
    release = opened.run_external(lambda rows: {"answer": [1.5]}, split={"emp": 50}, rho="0.1", seeded=True)
    with pytest.raises(ParameterError, match="an external mechanism"):
        release.consistent()


def test_answers_are_weighted_by_their_variances(opened):
    """With complete keys and nothing negative a total is the mean of its own answer and of its cells' sum, by inverse variances.

    The shares make the two tables' deviations differ by a factor of four, so that weights by deviations give other totals.
    """
    asked = (
        rw.query()
        .group_by(keys=rw.Keys.product(naics=LISTED))
        .levels(rw.prefix("naics", 2), rw.prefix("naics", 3), share=["0.05", "0.95"])
    )
    release = opened.run(asked.sum("emp", rw.UnitSplit(at=50, rho=1), alias="emp"), rng=Seeded(4))
    coarse, fine = (release[name].to_pandas() for name in ("naics2", "naics3"))
    fitted = release.consistent(complete=True, method="ols")["naics2"].to_pandas().set_index("naics2")["emp_fit"]
    fine["naics2"] = fine["naics3"].str[:2]
    fine["variance"] = fine["emp_sd"] ** 2
    below = fine.groupby("naics2")[["emp", "variance"]].sum()
    own = coarse.set_index("naics2")
    weights = 1 / own["emp_sd"] ** 2, 1 / below["variance"]
    expected = (own["emp"] * weights[0] + below["emp"] * weights[1]) / (weights[0] + weights[1])
    np.testing.assert_allclose(fitted.sort_index(), expected.sort_index(), rtol=1e-9)


def test_weights_at_negative_totals_are_those_at_zero(opened):
    """Against the same refits by dense least squares: at a negative total a logarithm's noise would count as too small."""
    keys = rw.Keys.product(county=COUNTIES, naics=[str(n) for n in range(126, 132)])
    log = rw.LogTransform(offset=50, sigma="0.9")
    asked = rw.query().group_by("county", keys=keys).levels(rw.prefix("naics", [2, 3])).sum("emp", log, alias="emp")
    release = opened.run(asked, rng=Seeded(8))
    coarse, fine = (release[name].to_pandas() for name in ("county_by_naics2", "county_by_naics3"))
    up = (fine["county"] + fine["naics3"].str[:2]).to_numpy()[None, :] == (
        coarse["county"] + coarse["naics2"]
    ).to_numpy()[:, None]
    matrix = np.vstack([np.eye(len(fine)), up])
    answers, sd = (np.concatenate([fine[name], coarse[name]]) for name in ("emp", "emp_sd"))
    mechanisms = [
        rw.LogTransform(offset=50, sigma=Fraction(float(each)))
        for each in np.concatenate([fine["emp_sigma"], coarse["emp_sigma"]])
    ]
    spread, lowest = sd**2, 0.0
    for _ in range(4):
        totals = matrix @ np.linalg.lstsq(matrix / np.sqrt(spread)[:, None], answers / np.sqrt(spread), rcond=None)[0]
        lowest = min(lowest, totals.min())
        spread = np.array(
            [float(each.variance(np.array([max(total, 0.0)]))[0]) for each, total in zip(mechanisms, totals)]
        )
    assert lowest < -5
    fitted = release.consistent(complete=True, method="ols")
    for name, part in (("county_by_naics3", totals[: len(fine)]), ("county_by_naics2", totals[len(fine) :])):
        np.testing.assert_allclose(fitted[name]["emp_fit"].to_numpy(), part, rtol=1e-7, atol=1e-7)


def test_fits_under_a_rule_stay_near_what_was_drawn(opened):
    asked = rw.query().group_by("county", keys=rw.Keys.of({"county": COUNTIES}))
    for name in ("quarter", "pay"):
        asked = asked.sum(name, rw.UnitSplit(at=2000, rho=50), alias=name)
    fitted = opened.run(asked, rng=Seeded(3)).consistent(at_most={"quarter": "pay"})
    for table in fitted.tables:
        for name in [name for name in table.data.column_names if name.endswith("_fit")]:
            drawn = name.removesuffix("_fit")
            off = np.abs(table.data[name].to_numpy() - table.data[drawn].to_numpy())
            assert np.all(off <= 8 * table.data[f"{drawn}_sd"].to_numpy())


def test_tables_whose_keys_were_selected_are_refused(opened):
    asked = rw.query().group_by("county", keys=rw.Keys.select(rho=1, delta="1e-6")).count(rw.Gaussian(rho=1))
    with pytest.raises(ParameterError, match="privately selected keys"):
        opened.run(asked, rng=Seeded(1)).consistent()


@pytest.mark.parametrize(("seed", "kept"), [(2, False), (104, True)])
def test_sums_are_nothing_where_the_fitted_count_is_and_only_on_request(opened, seed, kept):
    """Cells without a record: half of the noisy counts are negative, and where they add up to less than 0 none is kept."""
    keys = rw.Keys.product(county=COUNTIES, naics=[f"99{number}" for number in range(10)])
    asked = rw.query().group_by("county", "naics", keys=keys).count(rw.Gaussian(rho=0.05))
    empty = opened.run(asked.sum("emp", rw.UnitSplit(at=50, rho=0.05), alias="emp"), rng=Seeded(seed))
    free, fitted = (empty.consistent(zero_counts=each).table.to_pandas() for each in (False, True))
    assert ((free["count_fit"] == 0) & (free["emp_fit"] > 0)).any()
    assert (fitted["emp_fit"][fitted["count_fit"] == 0] == 0).all()
    assert (fitted["count_fit"] > 0).any() == kept
    assert (fitted["emp_fit_low"] <= fitted["emp_fit"]).all()


def test_a_cell_of_the_null_category_lies_in_the_coarser_cell_of_that_category():
    fine = pa.table({"county": ["a", None, "a"], "open": [True, True, None]})
    coarse = pa.table({"county": [None, "a"]})
    tables = [
        ReleasedTable(name="t", keys=tuple(each.column_names), variables=(), data=each) for each in (coarse, fine)
    ]
    by = [read_groups({"name": name, "column": name} for name in each.column_names) for each in (coarse, fine)]
    assert parents(tables[0], by[0], tables[1], by[1]).tolist() == [1, 0, 1]
    assert parents(tables[1], by[1], tables[1], by[1]).tolist() == [0, 1, 2]


def test_a_coarser_cell_keeps_the_records_of_finer_cells_that_are_not_published(opened):
    """Of sixteen industries three are published, and their sum stays far below the total of all."""
    asked = rw.query().group_by("county", keys=rw.Keys.product(county=COUNTIES, naics=LISTED[:3]))
    asked = asked.levels(rw.prefix("naics", [1, 3])).count(rw.Gaussian(rho=50))
    release = opened.run(asked, rng=Seeded(4))
    loose, strict = (
        [table.data["count_fit"].to_numpy().sum() for table in release.consistent(complete=each).tables]
        for each in (False, True)
    )
    assert max(loose) > 2 * min(loose)
    assert max(strict) == pytest.approx(min(strict))
