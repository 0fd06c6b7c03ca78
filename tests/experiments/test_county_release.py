"""County business patterns from the real files: every level, basic and research tables, all formats, read by readers not ours."""

import json
import shutil
import subprocess

import numpy as np
import openpyxl
import pandas
import pyreadstat
import pytest
from typer.testing import CliRunner

from experiments import county_release
from experiments.frame import data_folder
from recordwise.cli import app
from recordwise.release.formats import known_formats

STATES = ("10", "44")
PLACES, INDUSTRIES = ("nation", "state", "county"), ("total", "sector", "naics3")
VARIABLES = {"est": None, "emp": "emp", "qp1": "payqtr1", "ap": "payann"}
READ = {
    "csv": pandas.read_csv,
    "sas": pyreadstat.read_xport,
    "sas8": pyreadstat.read_xport,
    "stata": pyreadstat.read_dta,
}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        data_folder(*county_release.FILES) is None, reason="the county files are not in the data folder"
    ),
]


def run(*words):
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("county")
    plan = county_release.write_inputs(place, data_folder(), STATES)
    run("release", plan, "--out", place / "release", "--yes")
    run("ledger", "verify", place / "patterns.ledger", "--against", place / "release")
    return place


def table(folder, place, industry, kind=""):
    return pandas.read_parquet(folder / "release" / f"patterns_{place}_by_{industry}{kind}.parquet")


@pytest.fixture(scope="module")
def truth(folder):
    """The records with what they have at every level, from the lists alone."""
    records = pandas.read_parquet(folder / "establishments.parquet").astype({"county": str, "naics": str})
    for name in ("counties", "industries"):
        listed = pandas.read_csv(folder / f"{name}.csv", dtype=str)
        records = records.merge(listed, on="county" if name == "counties" else "naics", how="inner")
    return records.assign(nation="US", total="00", est=1)


def test_every_level_of_the_basic_tables_adds_up_exactly(folder):
    lists = {name: pandas.read_csv(folder / f"{name}.csv", dtype=str) for name in ("counties", "industries")}
    states = lists["counties"].set_index("county")["state"]
    sectors = lists["industries"].drop_duplicates("naics3").set_index("naics3")["sector"]
    finest = table(folder, "county", "naics3", "_basic").assign(nation="US", total="00")
    finest = finest.assign(state=finest["county"].map(states), sector=finest["naics3"].map(sectors))
    for place in PLACES:
        for industry in INDUSTRIES:
            found = table(folder, place, industry, "_basic").set_index([place, industry])[list(VARIABLES)]
            added = finest.groupby([place, industry])[list(VARIABLES)].sum()
            assert (found.sort_index() == added.sort_index()).all().all()
            assert (found >= 0).all().all()


def test_research_tables_are_unbiased_and_have_the_stated_error(folder, truth):
    """Errors in units of the stated sd: their mean and mean square, each outside 6 standard errors with probability below 1e-8."""
    for variable, measure in VARIABLES.items():
        errors = []
        for place in PLACES:
            for industry in INDUSTRIES:
                found = table(folder, place, industry).set_index([place, industry])
                exact = truth.groupby([place, industry])[measure or "est"].sum().reindex(found.index, fill_value=0)
                errors.append((found[variable] - exact) / found[f"{variable}_sd"])
        whole = np.concatenate(errors)
        assert abs(whole.mean()) < 6 / np.sqrt(len(whole))
        assert abs((whole**2).mean() - 1) < 6 * np.sqrt(2 / len(whole))


def test_the_status_follows_from_the_published_columns(folder):
    for place, industry in (("county", "naics3"), ("state", "sector")):
        basic, research = (table(folder, place, industry, kind) for kind in ("_basic", ""))
        for variable in VARIABLES:
            value, sd = research[f"{variable}_fit"], research[f"{variable}_best_sd"]
            error = (sd / np.maximum(value, 2 * sd)).fillna(0)
            wanted = np.select([error <= 0.165, error <= 0.333], ["reliable", "use with caution"], "unreliable")
            assert basic[f"{variable}_status"].tolist() == wanted.tolist()


@pytest.mark.parametrize("kind", ["", "_basic"])
@pytest.mark.parametrize("name", [each for each in known_formats() if each != "xlsx"])
def test_exported_tables_have_the_same_values(folder, tmp_path, name, kind):
    exact = table(folder, "county", "naics3", kind)
    out = tmp_path / f"table.{known_formats()[name].extension}"
    run("export", folder / "release", "--format", name, "--out", out, "--table", f"patterns_county_by_naics3{kind}")
    if name == "parquet":
        assert pandas.read_parquet(out).equals(exact)
    elif name == "cbp":
        found = pandas.read_csv(out, dtype={"FIPSTATE": str, "FIPSCTY": str})
        assert (found["FIPSTATE"] + found["FIPSCTY"]).tolist() == exact["county"].tolist()
        assert found["NAICS"].tolist() == [f"{code}///" for code in exact["naics3"]]
        column = "emp" if kind else "emp_fit"
        assert found["EMP"].tolist() == exact[column].round().astype(int).tolist()
    elif name == "sdmx-csv":
        found = pandas.read_csv(out, dtype={"COUNTY": str, "NAICS3": str})
        for variable in VARIABLES:
            part = found[found["INDICATOR"] == variable.upper()]
            assert part["COUNTY"].tolist() == exact["county"].tolist()
            assert part["NAICS3"].tolist() == exact["naics3"].tolist()
            assert part["OBS_VALUE"].tolist() == exact[variable].tolist()
            status = table(folder, "county", "naics3", "_basic")[f"{variable}_status"]
            assert part["STATUS"].tolist() == status.tolist()
            assert part["OBS_STATUS"].tolist() == np.where(status == "reliable", "A", "U").tolist()
            if not kind:
                assert part["SD"].tolist() == [float(f"{sd:.4g}") for sd in exact[f"{variable}_sd"]]
    elif name == "long":
        found = pandas.read_csv(out, dtype={"county": str, "naics3": str})
        assert found["statistic"].unique().tolist() == list(VARIABLES)
        for variable in VARIABLES:
            part = found[found["statistic"] == variable].reset_index(drop=True)
            assert part[["county", "naics3"]].equals(exact[["county", "naics3"]])
            status = table(folder, "county", "naics3", "_basic")[f"{variable}_status"]
            assert part["status"].tolist() == status.tolist()
            ends = {"": "value"} | {f"_{end}": end for end in ("sd", "low", "high") if not kind}
            columns = {variable + end: part[own] for end, own in ends.items()}
            same_values(pandas.DataFrame(columns), exact[[*columns]])
            assert part["value"].tolist() == exact[variable].tolist()
    elif name == "r":
        same_values(read_by_r(folder, tmp_path, f"patterns_county_by_naics3{kind}"), exact)
    else:
        dtype = {"dtype": {"county": str, "naics3": str}} if name == "csv" else {}
        read = READ[name](str(out), **dtype)
        found = read if name == "csv" else read[0]
        assert found.iloc[:, 0].tolist() == exact["county"].tolist()
        assert found[["est", "emp", "qp1", "ap"]].astype(float).equals(exact[["est", "emp", "qp1", "ap"]].astype(float))


def read_by_r(folder, place, table):
    """A table as recordwise.R reads it from the CSV file beside it, every number with all its digits."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        pytest.skip("no Rscript on this machine: recordwise.R is NOT tested")
    for name, file in (("csv", f"{table}.csv"), ("r", "recordwise.R")):
        (place / file).unlink(missing_ok=True)
        run("export", folder / "release", "--format", name, "--out", place / file, "--table", table)
    script = f"""
        source("recordwise.R", chdir = TRUE)
        found <- rw_table("{table}")
        for (name in names(found)) if (is.numeric(found[[name]])) found[[name]] <- sprintf("%.17g", found[[name]])
        write.csv(found, "read.csv", row.names = FALSE)
    """
    subprocess.run([rscript, "--vanilla", "-"], cwd=place, input=script, text=True, check=True, timeout=100)
    return pandas.read_csv(place / "read.csv", dtype={"county": str, "naics3": str})


def same_values(found, exact):
    """Text and whole numbers are equal; a value is rounded by at most a hundredth of its sd, an error to four digits."""
    for name in exact.columns:
        if exact[name].dtype.kind != "f":
            assert found[name].tolist() == exact[name].tolist()
            continue
        one, other = (each[name].to_numpy(np.float64) for each in (found, exact))
        assert np.array_equal(np.isnan(one), ~np.isfinite(other))
        one, other = one[np.isfinite(other)], other[np.isfinite(other)]
        if name.endswith(("_sd", "_cv")):
            assert np.all(np.abs(one - other) <= 5.1e-4 * np.abs(other))
            continue
        variable = name.split("_")[0]
        kept = np.isfinite(exact[name].to_numpy())
        fitted = f"{variable}_{(name + '_').split('_')[1]}_sd"
        sd = exact[fitted if fitted in exact.columns else f"{variable}_sd"].to_numpy()[kept]
        alone = np.where(sd > 0, 0.0101 * sd, 1e-5 * np.abs(other))
        assert np.all(np.abs(one - other) <= alone + 1e-9 * np.abs(other))


def test_the_workbook_has_every_table_with_the_same_values_and_the_titles_of_levels(folder, tmp_path):
    run("export", folder / "release", "--format", "xlsx", "--out", tmp_path / "all.xlsx")
    book = openpyxl.load_workbook(tmp_path / "all.xlsx", read_only=True)
    package = json.loads((folder / "release" / "datapackage.json").read_text())
    names = [each["name"] for each in package["resources"]]
    assert len(set(names)) == 2 * len(PLACES) * len(INDUSTRIES)
    assert (book.sheetnames[4], book.sheetnames[-1]) == ("Codes", "Add up your own area")
    assert set(book.sheetnames[5:-1]) == set(names)
    named = {row[:2]: row[2] for row in book["Dictionary"].iter_rows(min_row=5, max_col=3, values_only=True)}
    for name in names:
        exact = pandas.read_parquet(folder / "release" / f"{name}.parquet")
        titles, *rows = book[name].iter_rows(min_row=4, values_only=True)
        assert [named[name, title] for title in titles] == list(exact.columns)
        same_values(pandas.DataFrame(rows, columns=exact.columns), exact)
    words = " ".join(str(cell) for row in book["Dictionary"].iter_rows(values_only=True) for cell in row)
    assert "All industries" in words


def test_the_release_names_its_lists_and_their_digests(folder):
    described = json.loads((folder / "release" / "release.json").read_text())
    assert [each["name"] for each in described["hierarchies"]] == ["place", "industry"]
    assert described["hierarchies"][0]["source"].startswith("public: list of counties")
