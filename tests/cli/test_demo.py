"""``recordwise demo``: from nothing to published files."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A small demo, run once."""
    from typer.testing import CliRunner

    from recordwise.cli import app

    out = tmp_path_factory.mktemp("demo") / "demo"
    result = CliRunner().invoke(app, ["demo", "--establishments", "30000", "--out", str(out)])
    assert result.exit_code == 0, result.stderr
    return out, result


@pytest.mark.costly
def test_it_leaves_a_folder_that_can_be_published(demo, run):
    out, _ = demo
    assert {path.name for path in out.iterdir()} >= {
        "plan.toml",
        "keys.parquet",
        "establishments.parquet",
        "demo.ledger",
        "release",
    }
    assert json.loads((out / "release" / "release.json").read_text())["mark"] == "private"
    assert run("ledger", "verify", out / "demo.ledger", "--against", out / "release").exit_code == 0
    assert run("check", out / "plan.toml").exit_code == 0


def test_it_says_that_accuracy_is_known_only_for_synthetic_records(demo):
    _, result = demo
    before, after = result.stdout.split("Known only because these establishments are synthetic", 1)
    assert "Median relative error" in before
    assert "1,000 to 9,999" in after


def test_it_shows_an_establishment_looking_itself_up(demo):
    out, result = demo
    assert f"recordwise loss {out}/release/policy.json emp=4 payann=140" in result.stdout
    assert "A membership test with a 5% false-positive rate" in result.stdout


@pytest.mark.costly
def test_large_cells_are_accurate_and_giants_pay_less_under_slow_noise(run_json, tmp_path):
    told = run_json("demo", "--establishments", "30000", "--out", tmp_path / "demo")
    errors = [row["errors"]["emp"] for row in told["accuracy"]]
    assert errors == sorted(errors, reverse=True)
    giant = next(row for row in told["losses"] if row["name"] == "giant")
    assert giant["emp_slow"] < giant["emp"] / 1000


def test_county_tables_are_laid_out_when_a_folder_is_named(run_json, tmp_path):
    rows = {
        "fips": ["06001", "06001", "06003", "06003"],
        "naics": ["44", "441110", "441110", "722511"],
        "digits": pa.array([2, 6, 6, 6], pa.int8()),
        "establishments": pa.array([40, 40, 3, 25], pa.int32()),
        "employees": pa.array([800, 800, 0, 30_000], pa.int32()),
        "payroll_1000usd": [40_000, 40_000, 7, 2_000_000],
    }
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table(rows), tmp_path / "data" / "cbp_county_2017.parquet")
    run_json("demo", "--data", tmp_path / "data", "--out", tmp_path / "demo")
    made = pq.read_table(tmp_path / "demo" / "establishments.parquet").group_by(["county", "naics"])
    totals = (
        made.aggregate([("emp", "sum"), ("payann", "sum"), ("estab_id", "count")]).sort_by("payann_sum").to_pylist()
    )
    assert [(row["estab_id_count"], row["emp_sum"], row["payann_sum"]) for row in totals] == [
        (3, 0, 7),
        (40, 800, 40_000),
        (25, 30_000, 2_000_000),
    ]


def test_the_environment_names_the_folder_too(run, tmp_path, monkeypatch):
    monkeypatch.setenv("RECORDWISE_DATA", str(tmp_path))
    result = run("demo", "--out", tmp_path / "demo")
    assert result.exit_code == 2
    assert "does not contain cbp_county_2017.parquet" in result.stderr
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize("words", [["--establishments", "0"], ["--establishments", "5", "--data", "."]])
def test_demands_that_make_no_sense_are_refused(run, tmp_path, words):
    result = run("demo", *words, "--out", tmp_path / "demo")
    assert result.exit_code == 2
    assert not (tmp_path / "demo").exists()


def test_an_existing_folder_is_not_touched(run, tmp_path):
    assert run("demo", "--establishments", "10", "--out", tmp_path).exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_the_default_folder_is_the_first_free_one(tmp_path, monkeypatch):
    from recordwise.cli.demo import new_folder

    monkeypatch.chdir(tmp_path)
    assert [str(new_folder(None)) for _ in range(3)] == ["demo-release", "demo-release-2", "demo-release-3"]
