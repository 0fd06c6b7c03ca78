"""Basic tables: rounded values that add up, a status by the rule, and research tables that keep what is withheld."""

import json

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from build import generous, keys, question, records, session
from recordwise.errors import ParameterError, SourceError
from recordwise.noise import Seeded
from recordwise.plan.publication import StatusRules
from recordwise.release.dictionary import relative_error, sd_column, value_column
from recordwise.release.verify import verify


def levels() -> rw.Query:
    """The total by county, and the sectors in it."""
    by = rw.query().group_by("county", keys=keys()).levels(rw.prefix("naics", 2), rw.prefix("naics", 3))
    return by.count(rw.Gaussian(rho="0.1"), alias="n").sum("emp", rw.UnitSplit(at=50, rho="0.1"))


@pytest.fixture(scope="module")
def release() -> rw.Release:
    with session(records(), budget=generous()) as opened:
        return opened.run(levels(), rng=Seeded(3))


@pytest.mark.parametrize("unit", [1, 10, "0.5"])
@pytest.mark.costly
def test_every_level_adds_up_exactly_in_basic_tables(release, unit) -> None:
    made = release.basic(complete=True, units={"emp": unit})
    coarse, fine = (table.data.to_pandas() for table in made.basic_tables)
    assert [table.name for table in made.basic_tables] == ["county_by_naics2_basic", "county_by_naics3_basic"]
    summed = fine.assign(naics2=fine["naics3"].str[:2]).groupby(["county", "naics2"])[["n", "sum_emp"]].sum()
    wanted = coarse.set_index(["county", "naics2"])[["n", "sum_emp"]]
    assert (summed.loc[wanted.index] == wanted).all().all()
    step = float(unit)
    assert np.all(np.mod(fine["sum_emp"], step) == 0)
    fitted = made["county_by_naics3"].to_pandas()
    assert np.all(np.abs(fine["sum_emp"] - fitted["sum_emp_fit"]) < step)
    assert fine["sum_emp"].min() >= 0
    assert fine["n"].dtype == np.int64


def test_the_status_agrees_with_its_rule_recomputed_from_published_columns(release) -> None:
    made = release.basic()
    for table, basic in zip(made.tables, made.basic_tables):
        for name in ("n", "sum_emp"):
            value, sd = (table.data[each(table, name)].to_numpy() for each in (value_column, sd_column))
            errors = sd / np.maximum(value, 2 * sd)
            wanted = np.select([errors <= 0.165, errors <= 0.333], ["reliable", "use with caution"], "unreliable")
            assert basic.data[f"{name}_status"].to_pylist() == wanted.tolist()
    assert "n_fit" in made.tables[0].data.column_names
    assert relative_error(np.array([1.0]), np.array([np.inf]))[0] == np.inf


def test_a_withheld_value_stays_in_the_research_table(release) -> None:
    rules = StatusRules(limits=(("good", 0.1),), otherwise="bad", withheld=("bad",))
    made = release.basic(rules=rules)
    for table, basic in zip(made.tables, made.basic_tables):
        bad = np.array(basic.data["sum_emp_status"].to_pylist()) == "bad"
        assert np.array_equal(basic.data["sum_emp"].is_null().to_numpy(), bad)
        assert table.data["sum_emp"].null_count == 0
        assert bad.any()


@pytest.mark.costly
def test_basic_tables_are_saved_described_verified_and_read_back(tmp_path) -> None:
    ledger = tmp_path / "small.ledger"
    with session(records(), ledger=ledger, budget=generous()) as opened:
        made = opened.run(question()).basic(units={"pay": 100})
    folder = made.save(tmp_path / "out", formats=["parquet", "csv", "xlsx", "sdmx-csv"])
    assert verify(ledger, against=[folder]) == []
    stated = json.loads((folder / "release.json").read_text())["basic"]
    assert set(stated["moved_more"].values()) == {0}
    assert max(stated["largest_change"].values()) < 1
    assert stated["rounded_to"] == {"n": "1", "sum_emp": "1", "sum_pay": "100"}
    again = rw.read(folder)
    assert [table.name for table in again.basic_tables] == ["county_by_naics2_basic", "county_by_naics3_basic"]
    assert all(one.data.equals(two.data) for one, two in zip(again.basic_tables, made.basic_tables))
    # A folder with fits and basic tables is fitted anew, as from the noisy answers alone.
    other = again.consistent(method="ols")
    assert other.basic_tables == ()
    assert other.published.basic is None
    assert other.to_json()["consistent"]["method"] == "ols"
    assert verify(ledger, against=[other.save(tmp_path / "other")]) == []
    assert again.consistent().to_json()["consistent"]["digest"] == made.to_json()["consistent"]["digest"]
    package = json.loads((folder / "datapackage.json").read_text())
    fields = {each["name"] for each in package["resources"][2]["schema"]["fields"]}
    assert fields == {"county", "naics2", "n", "n_status", "sum_emp", "sum_emp_status", "sum_pay", "sum_pay_status"}
    import pyarrow.parquet as pq

    path = folder / "county_by_naics2_basic.parquet"
    table = pq.read_table(path)
    other = table.set_column(2, "n", pa.array(np.asarray(table["n"]) + 1)).replace_schema_metadata(
        table.schema.metadata
    )
    pq.write_table(other, path)
    assert any("its basic tables are not those" in problem for problem in verify(ledger, against=[folder]))
    with pytest.raises(SourceError, match="basic tables are not those that were saved"):
        rw.read(folder)


def test_a_signed_measure_is_fitted_by_least_squares_and_may_be_negative() -> None:
    table = records().append_column("profit", pa.array(np.arange(500) % 7 - 5))
    asked = rw.query().group_by("county", keys=keys()).sum("profit", rw.Gaussian(sigma=3))
    measures = {"emp": 1, "profit": rw.Measure.of("profit", signed=True)}
    with session(table, measures=measures) as opened:
        (basic,) = opened.run(asked, rng=Seeded(1)).basic().basic_tables
    assert basic.data["sum_profit"].to_numpy().min() < 0


@pytest.mark.parametrize(
    "how, words",
    [
        ({"units": {"pay": 10}}, "name 'pay', which is neither a measure nor published"),
        ({"units": {"emp": 0}}, "the unit of 'sum_emp'"),
        ({"fit": "none"}, "must be one of"),
    ],
)
def test_what_cannot_be_is_refused(release, how, words) -> None:
    with pytest.raises(ParameterError, match=words):
        release.basic(**how)
    with pytest.raises(ParameterError, match="already has basic tables"):
        release.basic().basic()


@pytest.mark.parametrize(
    "rules, words",
    [
        ({"limits": (("a", 0.3), ("b", 0.2))}, "positive and increase"),
        ({"limits": (("a", 0.3),), "otherwise": "a"}, "a name of its own"),
        ({"withheld": ("never",)}, "names no status: 'never'"),
    ],
)
def test_rules_that_contradict_themselves_are_refused(rules, words) -> None:
    with pytest.raises(ParameterError, match=words):
        StatusRules(**rules)
