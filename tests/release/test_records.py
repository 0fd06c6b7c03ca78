"""Microdata of releases: they add up to every table, are not negative, and say what they are."""

import json
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from scipy import optimize

import recordwise as rw
from build import employers
from recordwise.errors import ParameterError, SolverError
from recordwise.noise import Seeded
from recordwise.postprocess import sum_error_bound_pure, sum_error_bound_zcdp
from recordwise.release.formats import records as making

RACES, ORIGINS = list("abc"), list("wxyz")
LISTED = [str(110 + i) for i in range(12)]
METHODS = ("nnls", "top_down", "max_fit", "sequential", "reweighted")


@pytest.fixture(scope="module")
def opened():
    chance = np.random.default_rng(5)
    rows = 400
    table = pa.table(
        {
            "id": np.arange(rows),
            "firm": (np.arange(rows) % 7).astype(str),
            "emp": chance.integers(0, 40, rows),
            "profit": chance.integers(-9, 9, rows),
            "race": chance.choice(RACES, rows, p=[0.9, 0.08, 0.02]),
            "origin": chance.choice(ORIGINS, rows, p=[0.85, 0.1, 0.03, 0.02]),
            # Four codes of sixteen are not listed.
            "naics": (110 + chance.integers(0, 16, rows)).astype(str),
        }
    )
    measures = {"emp": 1, "profit": rw.Measure.of("profit", signed=True)}
    with employers(table, measures=measures, firm="firm", max_outside="accept") as session:
        yield session


@pytest.fixture(scope="module")
def margins(opened):
    """The four tables of [A]: sum, rows, columns and cells."""
    keys = rw.Keys.product(race=RACES, origin=ORIGINS)
    noise = rw.GeneralizedGaussian(shape=1, scale=2)
    asked = rw.query().levels((), "race", keys=keys).levels((), "origin").count(noise)
    return opened.run(asked.sum("emp", rw.UnitSplit(at=40, rho=1)), rng=Seeded(4))


@pytest.fixture(scope="module")
def levels(opened):
    keys = rw.Keys.product(race=RACES, naics=LISTED)
    asked = rw.query().group_by("race", keys=keys).levels((), rw.prefix("naics", [2, 3])).count(rw.Gaussian(rho=0.05))
    return opened.run(asked, rng=Seeded(4))


def sums_over(records, release):
    """Each table of the release as a plain sum over records, in the order of its rows."""
    frame, found = records.data.to_pandas(), {}
    frame["all_of_them"] = 1.0 if records.whole else frame["weight"]
    for table in release.tables:
        keys = list(table.keys)
        if not keys:
            found[table.name] = np.array([frame["all_of_them"].sum()])
            continue
        frame[keys] = frame[keys].astype(object)
        own = frame.groupby(keys)["all_of_them"].sum()
        cells = table.data.select(keys).to_pandas()
        found[table.name] = np.array([own.get(tuple(row) if len(row) > 1 else row[0], 0.0) for row in cells.values])
    return found


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("given", ["margins", "levels"])
@pytest.mark.costly
def test_every_table_is_a_plain_sum_over_the_records(request, given, method):
    release = request.getfixturevalue(given)
    fitted = release.consistent(method=method)
    weighted = release.records(weighted=True, method=method)
    whole = release.records(whole=True, method=method)
    assert (weighted.data["weight"].to_numpy() > 0).all()
    for name, sums in sums_over(weighted, release).items():
        np.testing.assert_allclose(sums, fitted[name]["count_fit"], rtol=1e-7, atol=1e-6)
    for name, sums in sums_over(whole, release).items():
        assert (np.abs(sums - fitted[name]["count_fit"].to_numpy()) < 1 + 1e-6).all()
        assert whole.about["moved_more"][name] == 0
    assert whole.data.num_rows == whole.about["total"]


@pytest.fixture
def by_hand(monkeypatch):
    """Two tables of three cells and their total whose numbers are rounded as given."""
    cells, total = SimpleNamespace(name="cells"), SimpleNamespace(name="total")

    def made(fitted, rounded, step, rows=slice(None)):
        monkeypatch.setattr(making, "rounding_nesting", lambda nesting: None)
        monkeypatch.setattr(making, "round_tables", lambda fits, nested, rests: rounded)
        nesting = SimpleNamespace(
            by_table=lambda totals: [totals[:3], totals[3:]],
            remainders=(),
            tables=(cells, total),
            cells=SimpleNamespace(owners=((cells, rows),)),
        )
        found = SimpleNamespace(totals=np.array([fitted]))
        return making.whole_cells(nesting, found, step)

    return made


def test_changes_of_whole_cells_are_counted_in_steps_and_from_a_whole_one_on(by_hand):
    rounded = [np.array([2, 0, 5]), np.array([7])]
    sizes, changes = by_hand([0.5, 0.0, 2.25, 4.125], rounded, 0.5)
    assert sizes.tolist() == [2, 0, 5]
    assert changes == {
        "unit": 0.5,
        "largest_change": {"cells": 1.0, "total": 1.25},
        "moved_more": {"cells": 1, "total": 1},
    }
    _, changes = by_hand([0.51, 0.0, 2.25, 3.25], rounded, 0.5)
    assert changes["moved_more"] == {"cells": 0, "total": 0}
    assert changes["largest_change"] == {"cells": pytest.approx(0.98), "total": 0.5}


@pytest.mark.parametrize(("cells", "rows"), [([2, -1, 5], slice(None)), ([2, 1, 5], slice(0, 2))], ids=str)
def test_whole_cells_that_are_negative_or_of_nobody_are_refused(by_hand, cells, rows):
    with pytest.raises(SolverError, match="a cell is negative or without an owner"):
        by_hand([2.0, 1.0, 5.0, 8.0], [np.array(cells), np.array([8])], 1.0, rows)


def test_the_weights_are_those_of_the_textbook(margins):
    """Nonnegative least squares of all answers, by another solver."""
    tables = {table.name: table for table in margins.tables}
    finest = tables["race_by_origin"].data
    rows = []
    for table in margins.tables:
        for cell in table.data.select(list(table.keys)).to_pylist() or [{}]:
            rows.append([all(each[name] == value for name, value in cell.items()) for each in finest.to_pylist()])
    answers = np.concatenate([table.data["count"].to_numpy() for table in margins.tables])
    expected, _ = optimize.nnls(np.array(rows, float), answers)
    records = margins.records(weighted=True, complete=True).data
    found = dict(zip(zip(records["race"].to_pylist(), records["origin"].to_pylist()), records["weight"].to_pylist()))
    cells = zip(finest["race"].to_pylist(), finest["origin"].to_pylist())
    np.testing.assert_allclose([found.get(cell, 0.0) for cell in cells], expected, atol=1e-8)
    assert 0 < len(found) < len(expected)


def test_values_of_records_add_up_to_the_fitted_sums(margins):
    records = margins.records(weighted=True, values=["emp"], complete=True).data.to_pandas()
    fitted = margins.consistent(method="nnls", zero_counts=True, complete=True)["race"]
    own = (records["weight"] * records["sum_emp"]).groupby(records["race"].astype(object)).sum()
    np.testing.assert_allclose([own.get(race, 0.0) for race in RACES], fitted["sum_emp_fit"], rtol=1e-7, atol=1e-6)


def test_records_of_a_measure_are_one_for_each_unit(margins):
    whole = margins.records(whole=True, of="emp")
    assert abs(whole.data.num_rows - margins.consistent(method="nnls")["total"]["sum_emp_fit"][0].as_py()) < 1
    assert margins.records(whole=True, of="q1:sum_emp").data.equals(whole.data)


def test_a_published_rest_becomes_records_without_the_finer_key(opened):
    keys = rw.Keys.of({"naics": ["110", "111"]})
    asked = rw.query().levels((), rw.prefix("naics", [2, 3]), keys=keys, all_other="publish")
    release = opened.run(asked.count(rw.Gaussian(sigma="1/5")), rng=Seeded(4))
    records = release.records(whole=True).data.to_pandas().astype(object)
    exact = opened.run(rw.query().count(rw.Gaussian(sigma="1/5")), rng=Seeded(4)).table["count"][0].as_py()
    assert len(records) == exact
    counts = release["naics3"].to_pandas()
    assert (records["naics2"] == "11").sum() == release["naics2"]["count"][0].as_py()
    assert records["naics3"].value_counts().to_dict() == dict(zip(counts["naics3"][:2], counts["count"][:2]))
    assert ((records["naics2"] == "11") & records["naics3"].isna()).any()


def refused(release, match, **more):
    with pytest.raises(ParameterError, match=match):
        release.records(**{"weighted": True, **more})


@pytest.mark.costly
def test_what_cannot_become_records_says_why(opened, margins):
    one, total = rw.Gaussian(sigma=1), rw.query()
    refused(margins, "weighted or whole", weighted=False)
    refused(margins, "weighted or whole", whole=True)
    refused(margins, "negative cells", method="ols")
    refused(margins, "must be one of", method="magic")
    refused(margins, "Choose one of q1:count, q1:sum_emp", of="pay")
    refused(margins, "no other sum of the same tables", values=["pay"])
    averages = opened.run(total.quantile("emp", p="0.5", grid=rw.mechanisms.Grid.linear(0, 64, bits=4), rho=1))
    refused(averages, "no count and no sum")
    signed = opened.run(total.sum("profit", one))
    refused(signed, "may be negative", of="profit")
    firms = opened.run(total.group_by("race", keys=RACES).count_distinct("firm", one))
    refused(firms, "counts a firm in each of its cells")
    selected = opened.run(total.group_by("race", keys=rw.Keys.select(rho=1, delta="1e-6")).count(one))
    refused(selected, "privately selected keys")
    crossed = opened.run(
        total.levels("race", "origin", keys=[rw.Keys.of({"race": RACES}), rw.Keys.of({"origin": ORIGINS})]).count(one)
    )
    refused(crossed, r"no table in which all of these are nested: .*Next time publish one by all of their columns")
    external = opened.run_external(lambda table: [1.0], split={"emp": 50}, rho=1, name="own", seeded=True)
    refused(external, "external mechanism")


def test_gamma_and_slack_reach_the_fit_and_are_published(margins):
    wide, narrow = (margins.consistent(method="max_fit", slack=each) for each in (2, 0.001))
    assert not wide["race"]["count_fit"].equals(narrow["race"]["count_fit"])
    assert wide.to_json()["consistent"]["slack"] == 2
    loose, strict = (margins.records(weighted=True, method="reweighted", gamma=each) for each in (0.5, 0.999999))
    assert not loose.data.equals(strict.data)
    assert (
        loose.about["gamma"],
        margins.consistent(method="reweighted", gamma=0.9).published.fit.options,
    ) == (
        0.5,
        {"gamma": 0.9},
    )


def test_files_say_what_the_records_are(levels, tmp_path):
    made = levels.records(whole=True)
    made.save(tmp_path / "out")
    about = json.loads((tmp_path / "out" / "records.json").read_text())
    saved = pyarrow.parquet.read_table(tmp_path / "out" / "records.parquet")
    assert saved.to_pylist() == made.data.to_pylist()
    inside = json.loads(saved.schema.metadata[b"recordwise_records"])
    assert about["mark"] == inside["mark"] == levels.privacy_label
    assert about["release"] == levels.digest
    assert {each["table"] for each in about["sums"]} == {"race", "race_by_naics2", "race_by_naics3"}
    text = pyarrow.csv.ConvertOptions(
        column_types={name: pa.string() for name in saved.column_names}, strings_can_be_null=True
    )
    file = tmp_path / "out" / "records.csv"
    assert file.read_text().splitlines()[0] == f"# {levels.privacy_label}"
    read = pyarrow.csv.read_csv(file, pyarrow.csv.ReadOptions(skip_rows=1), convert_options=text)
    assert read.to_pylist() == made.data.to_pylist()
    with pytest.raises(ParameterError, match="parquet and csv"):
        made.save(tmp_path / "other", formats=["xlsx"])


def test_bounds_follow_from_the_losses_of_the_plan(levels, margins):
    rho, sigma = 0.05, np.sqrt(1 / (2 * 0.05 / 3))
    total = next(each for each in levels.records(weighted=True).sums if each.table == "race")
    assert total.cells == 12
    assert total.noise == pytest.approx(sigma, rel=1e-6)
    assert total.least_sum_error == pytest.approx(sum_error_bound_zcdp(cells=12, cell_error=sigma, rho=rho), rel=1e-3)
    needed = sum_error_bound_zcdp(cells=12, cell_error=total.least_cell_error, rho=rho)
    assert needed == pytest.approx(total.noise, rel=1e-3)
    people = next(each for each in margins.records(weighted=True).sums if each.table == "total")
    pure = sum_error_bound_pure(cells=12, cell_error=people.noise, epsilon=0.5)
    assert people.least_sum_error == pytest.approx(pure, rel=1e-3)
    money = margins.records(weighted=True, of="emp").sums
    assert [each.cells for each in money] == [1, 3, 4, 12]
    assert all(each.least_sum_error > 0 for each in money)


def test_there_is_no_bound_where_noise_grows_with_the_total(opened):
    asked = rw.query().group_by("race", keys=RACES).sum("emp", rw.LogTransform(offset=10, sigma=1))
    made = opened.run(asked, rng=Seeded(1)).records(weighted=True)
    assert (made.sums, made.no_bound) == ((), "the noise grows with the total, so that no cell has one error")
