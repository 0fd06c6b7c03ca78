"""``recordwise export``, and releases with basic tables and other formats from the command line."""

import json

import numpy as np
import openpyxl
import pandas
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from recordwise.cli import app
from recordwise.cli.release import release_json
from recordwise.release.files import load_release

BASIC = """
[outputs]
formats = ["parquet", "csv", "xlsx"]
tables = ["research", "basic"]

[outputs.round]
emp = 5

[outputs.status]
good = 0.2
otherwise = "poor"
withhold = ["poor"]
"""


@pytest.fixture(scope="module")
def released(furnished, tmp_path_factory):
    """A release with basic tables, which is only read; its ledger is beside it."""
    plan = furnished(tmp_path_factory.mktemp("basic")) / "plan.toml"
    plan.write_text(plan.read_text() + BASIC)
    done = CliRunner().invoke(app, ["release", str(plan), "--out", str(plan.with_name("out")), "--yes"])
    assert done.exit_code == 0, done.output
    plan.with_name("said.txt").write_text(done.output)
    return plan.with_name("out")


@pytest.mark.costly
def test_the_screen_shows_the_errors_of_the_basic_tables_and_says_so(released):
    said = released.with_name("said.txt").read_text()
    assert "These are the errors of the basic tables" in " ".join(said.split())
    assert "county_by_naics3_basic.parquet" in said
    assert "county_by_naics3.parquet" not in said
    drawn = pq.read_table(released / "county_by_naics3.parquet")
    told = release_json(load_release(released), released)
    for name, found in told["basic_tables"]["county_by_naics3_basic"]["accuracy"].items():
        ends = (end for end in ("_fit_sd", "_best_sd", "_sd") if name + end in drawn.column_names)
        value, sd = (drawn.column(name + end).to_numpy() for end in ("_fit", next(ends)))
        assert found["median_sd"] == np.median(sd)
        assert found["median_cv"] == np.median(sd / value)
        assert found["share_cv_below_0.1"] == np.mean(sd / value < 0.1)
    assert told["tables"]["county_by_naics3"]["accuracy"]["sum_emp"]["median_sd"] == np.median(drawn["sum_emp_sd"])


@pytest.mark.costly
def test_a_plan_with_basic_tables_is_released_verified_and_exported(released, folder, run):
    stated = json.loads((released / "release.json").read_text())
    (name, *_), rules = stated["basic"]["tables"], stated["basic"]["status"]
    assert rules == {"limits": {"good": 0.2}, "otherwise": "poor", "withheld": ["poor"]}
    basic = pandas.read_csv(released / f"{name}.csv")
    assert set(basic["sum_emp_status"]) <= {"good", "poor"}
    assert (basic["sum_emp"].isna() == (basic["sum_emp_status"] == "poor")).all()
    assert (basic["sum_emp"].dropna() % 5 == 0).all()
    assert run("ledger", "verify", released.with_name("small.ledger"), "--against", released).exit_code == 0
    done = run("export", released, "--format", "xlsx", "--out", folder / "all.xlsx", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["privacy_label"] == "private"
    assert openpyxl.load_workbook(folder / "all.xlsx").sheetnames[:2] == ["Cover", "Contents"]
    assert run("export", released, "--format", "csv", "--table", name, "--out", folder / "t.csv").exit_code == 0
    assert (folder / "t.csv").read_bytes() == (released / f"{name}.csv").read_bytes()


@pytest.mark.parametrize(
    "more, words",
    [
        (("--format", "csv"), "must be given: csv has a file for each table"),
        (("--format", "ods"), "is unknown: 'ods'"),
        (("--format", "csv", "--table", "x"), "is not in the release: 'x'"),
    ],
)
def test_what_cannot_be_exported_is_said_and_nothing_is_written(released, folder, run, more, words):
    done = run("export", released, *more, "--out", folder / "file")
    assert done.exit_code == 2
    assert words in done.output
    assert not (folder / "file").exists()


@pytest.mark.parametrize(
    "text, words",
    [
        ('[outputs]\ntables = ["basic"]\n', "must include research"),
        ("[outputs.round]\nemp = 5\n", 'add tables = ["research", "basic"]'),
        ('[outputs]\ntables = ["research", "basic"]\n[outputs.status]\na = 0.3\nb = 0.2\n', "positive and increase"),
    ],
)
def test_outputs_that_cannot_be_are_refused_before_anything_is_spent(folder, run, text, words):
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text() + text)
    done = run("release", plan, "--out", folder / "out", "--yes")
    assert done.exit_code == 2
    assert words in done.output
    assert not (folder / "small.ledger").exists()


def test_a_format_that_has_no_place_for_the_keys_is_refused_before_anything_is_spent(folder, run):
    plan = folder / "plan.toml"
    text = plan.read_text().replace("length = 3 }", 'length = 3, as = "activity" }')
    plan.write_text(text + '[outputs]\nformats = ["parquet", "cbp"]\n')
    done = run("release", plan, "--out", folder / "out", "--yes")
    assert done.exit_code == 2
    assert "knows no other keys than nation, state, county and naics" in done.output
    assert not (folder / "small.ledger").exists()
