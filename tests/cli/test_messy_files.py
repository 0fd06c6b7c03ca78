"""A newcomer's first hour with files as they come: what is typed, what is refused and how, and that the numbers are right."""

import csv
import re
import shutil
import stat
import subprocess
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from recordwise.ledger.ledger import Ledger
from recordwise.release.files import load_release

EXACT = ("rho = 0.1", "rho = 1000000000000")
"""So little noise that the published totals are those of the records."""
ANY_LOSS = ("rho = 0.21", "rho = 2100000000000")
"""The budget that init wrote, for as little noise."""


def told(result):
    return " ".join(result.stderr.split())


def edited(plan: Path, *changes: tuple[str, str]) -> None:
    text = plan.read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    plan.write_text(text)


def totals(folder: Path, name: str) -> dict[str, float]:
    rows = load_release(folder).tables[0].data.to_pylist()
    key = next(iter(rows[0]))
    return {row[key]: round(row[name], 2) for row in rows}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.costly
def test_loans_with_dollars_dates_and_trailing_blanks(here, run):
    rows = [
        ("L1", "$1,234.50 ", "12/31/2020", "Kent  "),
        ("L2", "-$5", "1/2/2021", "Kent"),
        ("L3", "7 ", "02/03/2021", "Essex "),
    ]
    with (here / "loans.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("Loan No", " Amount", "Approved ", "County"), *rows])
    words = (
        "--unit",
        "Loan No",
        "--sum",
        "Amount=500",
        "--step",
        "Amount=0.01",
        "--by",
        "County",
        "--keys",
        "Kent,Essex",
    )
    assert run("init", "loans.csv", "--header", *words, "--tuned-on", "public").exit_code == 0
    shown = run("check", "plan.toml")
    assert "Stored as text: Amount; no value was read" in " ".join(shown.stdout.split())
    refused = run("release", "plan.toml", "--out", "out", "--yes")
    assert (refused.exit_code, "'Amount' cannot be read as a number in 2 rows" in told(refused)) == (2, True)
    (line,) = re.findall(r"number = \{.*?\}", told(refused))
    edited(here / "plan.toml", ("step = 0.01", f"step = 0.01, {line}"))
    refused = run("release", "plan.toml", "--out", "out", "--yes")
    assert "'Amount' is negative in 1 row" in told(refused)
    assert "signed = true" in told(refused)
    edited(here / "plan.toml", ("step = 0.01,", "step = 0.01, signed = true,"))
    refused = run("release", "plan.toml", "--out", "out", "--yes")
    assert "are outside its published cells" in told(refused)
    trimmed = 'columns.County = { type = "text", trim = true }\ncolumns.Approved = { date = "%m/%d/%Y" }'
    edited(here / "plan.toml", ('columns.County = "text"', trimmed), ANY_LOSS, EXACT)
    edited(here / "plan.toml", ("[[queries]]", "[[queries]]\nwhere = 'EXTRACT(YEAR FROM \"Approved\") >= 2020'"))
    done = run("release", "plan.toml", "--out", "out", "--yes")
    assert done.exit_code == 0, done.output
    assert totals(here / "out", "sum_Amount") == {"Kent": 1229.5, "Essex": 7.0}
    assert sum(event.kind == "charged" for event in Ledger.existing(here / "loans.ledger").history()) == 1


@pytest.mark.costly
def test_a_semicolon_file_of_windows_with_decimal_commas(here, run):
    text = "Betrieb Nr;Région;Umsatz\n1;Île;1.234,50 €\n2;Île;0,25\n3;Süd;7 €\n"
    (here / "betriebe.csv").write_bytes(text.encode("cp1252"))
    words = (
        "--encoding",
        "cp1252",
        "--unit",
        "Betrieb Nr",
        "--sum",
        "Umsatz=500",
        "--step",
        "Umsatz=0.01",
        "--by",
        "Région",
    )
    assert run("init", "betriebe.csv", "--header", *words, "--keys", "Île,Süd", "--tuned-on", "public").exit_code == 0
    written = 'step = 0.01, number = { thousands = ".", decimal = ",", suffix = "€" }'
    edited(here / "plan.toml", ("step = 0.01", written), ANY_LOSS, EXACT)
    assert run("check", "plan.toml").exit_code == 0
    assert run("release", "plan.toml", "--out", "out", "--yes").exit_code == 0
    assert totals(here / "out", "sum_Umsatz") == {"Île": 1234.75, "Süd": 7.0}


ACCOUNTS = """\
dataset = "accounts"
source = "accounts.csv"
ledger = "accounts.ledger"
tuned_on = "public"
[schema]
unit = "id"
measures."NET.PROFIT" = { step = 1, signed = true }
measures."Net assets (k)" = 1
columns."SIC.CODE" = "text"
[keys.cells]
rows = { "SIC.CODE" = ["01", "02"] }
[[queries]]
where = '"NET.PROFIT" > -1000000'
group_by = ["SIC.CODE"]
keys = "cells"
count = { kind = "Gaussian", rho = 0.1 }
sum."NET.PROFIT" = { kind = "Gaussian", sigma = 1000 }
sum."Net assets (k)" = { kind = "UnitSplit", at = 100, rho = 0.1 }
ratio.margin = { of = "NET.PROFIT", to = "count" }
combine.twice = "2 * NET.PROFIT"
[labels]
"NET.PROFIT" = "net profit"
"SIC.CODE=01" = "Farms"
[examples]
small = { "NET.PROFIT" = -5, "Net assets (k)" = 7, "SIC.CODE" = "01" }
[outputs]
formats = ["parquet", "csv", "xlsx"]
"""


@pytest.mark.costly
def test_accounts_with_negative_values_and_names_with_dots_and_blanks(here, run):
    rows = "id,NET.PROFIT,Net assets (k),SIC.CODE\n1,-500,10,01\n2,200,20,01\n3,50,30,02\n"
    (here / "accounts.csv").write_text(rows)
    (here / "plan.toml").write_text(ACCOUNTS)
    words = ("NET.PROFIT=-500", "Net assets (k)=10")
    for line in (
        ("check", "plan.toml"),
        ("release", "plan.toml", "--out", "noisy", "--yes"),
        ("loss", "noisy/policy.json", *words),
        ("loss", "noisy/policy.json", *words, "--json"),
    ):
        done = run(*line)
        assert done.exit_code == 0, (line, done.output)
    edited(here / "plan.toml", EXACT, ("sigma = 1000", "sigma = 0.000001"))
    assert run("release", "plan.toml", "--out", "out", "--yes").exit_code == 0
    assert totals(here / "out", "sum_NET.PROFIT") == {"01": -300.0, "02": 50.0}
    assert totals(here / "out", "margin") == {"01": -150.0, "02": 50.0}
    assert totals(here / "out", "twice") == {"01": -600.0, "02": 100.0}
    edited(here / "plan.toml", ('"NET.PROFIT" > -1000000', "NET.PROFIT > -1000000"))
    refused = told(run("check", "plan.toml"))
    assert '"NET.PROFIT", in double quotes' in refused


@pytest.mark.costly
def test_utilities_with_an_id_of_two_columns(here, run):
    (here / "u.csv").write_text("UTILITYID,STATE,kwh\n1,NY,5\n1,CT,6\n2,NY,7\n")
    words = ("--sum", "kwh=5", "--by", "STATE", "--keys", "NY,CT", "--tuned-on", "public")
    assert run("init", "u.csv", "--header", *words).exit_code == 0
    refused = told(run("release", "plan.toml", "--out", "out", "--yes"))
    assert "'UTILITYID' repeats an id that must be unique in 1 row" in refused
    (line,) = re.findall(r"unit = \[.*?\]", refused)
    assert line == 'unit = ["UTILITYID", "STATE"]'
    edited(here / "plan.toml", ('unit = "UTILITYID"', line), ANY_LOSS, EXACT)
    assert run("release", "plan.toml", "--out", "out", "--yes").exit_code == 0
    assert totals(here / "out", "sum_kwh") == {"NY": 12.0, "CT": 6.0}


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    from typer.testing import CliRunner

    from recordwise.cli import app

    folder = tmp_path_factory.mktemp("published")
    (folder / "u.csv").write_text("shop_id,county,sales\n1,001,5\n2,003,6\n3,003,7\n")
    words = ["--sum", "sales=5", "--by", "county", "--keys", "001,003", "--tuned-on", "public"]
    out = str(folder / "plan.toml")
    for line in (
        ["init", str(folder / "u.csv"), "--header", *words, "--out", out],
        ["release", out, "--out", str(folder / "out"), "--yes"],
    ):
        done = CliRunner().invoke(app, line)
        assert done.exit_code == 0, done.output
    return folder / "out"


@pytest.mark.costly
def test_a_release_is_read_in_pandas_and_duckdb_with_its_codes(published):
    frame = pd.read_parquet(published / "county.parquet")
    text = pd.read_csv(published / "county.csv", dtype={"county": str}, comment="#")
    rows = duckdb.sql(f"SELECT county, sum_sales FROM '{published / 'county.parquet'}' ORDER BY county").fetchall()
    assert frame["county"].tolist() == text["county"].tolist() == [code for code, _ in rows] == ["001", "003"]
    assert frame["sum_sales"].tolist() == pytest.approx([value for _, value in rows])
    assert text["sum_sales"].tolist() == pytest.approx(frame["sum_sales"].tolist())


@pytest.mark.process
@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_a_release_is_read_in_r_with_its_codes(published):
    script = f"x <- read.csv('{published / 'county.csv'}', colClasses = c(county = 'character')); cat(x$county, sum(x$sum_sales))"
    done = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, check=True)
    first, second, total = done.stdout.split()
    assert (first, second) == ("001", "003")
    frame = pd.read_parquet(published / "county.parquet")
    assert float(total) == pytest.approx(frame["sum_sales"].sum(), rel=1e-5)


@pytest.mark.costly
def test_preflight_writes_a_file_for_its_owner_where_there_is_no_terminal(here, run, published):
    (here / "u.csv").write_text("shop_id,county,sales\n1,001,5\n2,003,6\n3,009,7\n")
    words = ("--sum", "sales=5", "--by", "county", "--keys", "001,003", "--tuned-on", "public")
    assert run("init", "u.csv", "--header", *words).exit_code == 0
    assert "--to FILE" in told(run("preflight", "plan.toml"))
    assert not (here / "u.ledger").exists()
    done = run("preflight", "plan.toml", "--to", "seen.txt")
    assert done.exit_code == 2  # a third of the records are outside
    assert done.stdout.split() == ["Wrote", "seen.txt."]
    assert stat.S_IMODE((here / "seen.txt").stat().st_mode) == 0o600
    assert "CONFIDENTIAL" in (here / "seen.txt").read_text()
    assert Ledger.existing(here / "u.ledger").looks() == {"preflight": 1}
    before = (here / "seen.txt").read_text()
    assert "exists already" in told(run("preflight", "plan.toml", "--to", "seen.txt"))
    (here / "link.txt").symlink_to(published / "new.txt")
    (published / "below").mkdir(exist_ok=True)
    for inside in (published / "new.txt", published / "below" / "new.txt"):
        assert "the folder of a release" in told(run("preflight", "plan.toml", "--to", inside))
        assert not inside.exists()
    assert "exists already" in told(run("preflight", "plan.toml", "--to", "link.txt"))
    assert "does not exist" in told(run("preflight", "plan.toml", "--to", "none/seen.txt"))
    assert (here / "seen.txt").read_text() == before
    assert Ledger.existing(here / "u.ledger").looks() == {"preflight": 1}
    assert [each.name for each in here.iterdir() if each.name.startswith(".")] == []


@pytest.mark.costly
def test_a_plan_of_the_first_version_publishes_as_it_did(here, run):
    old = Path(__file__).parents[1] / "old_files" / "0.1.0"
    for name in ("plan.toml", "establishments.csv"):
        shutil.copy(old / name, here / name)
    done = run("release", "plan.toml", "--out", "out", "--yes")
    assert done.exit_code == 0, done.output
