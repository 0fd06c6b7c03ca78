"""``recordwise release``: publishes once, or refuses before anything is spent."""

import json
from importlib.metadata import version

import pyarrow.parquet as pq
import pytest

from recordwise.ledger.ledger import Ledger


def events(folder):
    return [event.kind for event in Ledger.existing(folder / "small.ledger").history()]


@pytest.mark.costly
def test_a_release_writes_every_file_and_one_charge(released):
    assert sorted(path.name for path in (released / "out").iterdir()) == [
        "county_by_naics3.csv",
        "county_by_naics3.parquet",
        "datapackage.json",
        "policy.json",
        "release.json",
        "report.html",
    ]
    assert events(released) == ["opened", "charged", "released"]
    table = pq.read_table(released / "out" / "county_by_naics3.parquet")
    assert table.num_rows == 4
    assert {"county", "naics3", "count", "sum_emp", "sum_emp_sd", "sum_payann_low"} <= set(table.column_names)


def test_json_names_the_head_that_the_ledger_has(folder, run_json):
    told = run_json("release", folder / "plan.toml", "--out", folder / "out", "--yes")
    last = Ledger.existing(folder / "small.ledger").history()[-1]
    assert told["ledger"] == {"length": last.sequence, "digest": last.digest}
    assert told["privacy_label"] == "private"
    assert json.loads((folder / "out" / "release.json").read_text())["digest"] == told["digest"]


def test_outputs_of_the_plan_are_followed(folder, run):
    with (folder / "plan.toml").open("a") as plan:
        plan.write('\n[outputs]\nformats = ["parquet"]\n')
    assert run("release", folder / "plan.toml", "--out", folder / "out", "--yes").exit_code == 0
    assert not list((folder / "out").glob("*.csv"))


def test_a_format_nobody_knows_is_refused_before_anything_is_spent(folder, run):
    with (folder / "plan.toml").open("a") as plan:
        plan.write('\n[outputs]\nformats = ["parquet", "json_lines"]\n')
    for words in (["check"], ["release", "--out", folder / "out", "--yes"]):
        result = run(*words, folder / "plan.toml")
        assert result.exit_code == 2
        assert (
            "unknown format: 'json_lines'. Choose from parquet, csv, xlsx, sas, sas8, stata, sdmx-csv, long, cbp, r."
            in result.stderr
        )
    assert not (folder / "small.ledger").exists()


def test_a_plan_names_a_format_that_an_installed_package_adds(folder, run, own_package):
    with (folder / "plan.toml").open("a") as plan:
        plan.write('\n[outputs]\nformats = ["parquet", "json_lines"]\n')
    assert run("check", folder / "plan.toml").exit_code == 0
    assert run("release", folder / "plan.toml", "--out", folder / "out", "--yes").exit_code == 0
    assert [path.suffix for path in sorted((folder / "out").glob("county*"))] == [".jsonl", ".parquet"]
    assert run("ledger", "verify", folder / "small.ledger", "--against", folder / "out").exit_code == 0


def test_nobody_to_ask_means_nothing_is_spent(folder, run):
    result = run("release", folder / "plan.toml", "--out", folder / "out")
    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert not (folder / "small.ledger").exists()
    assert not (folder / "out").exists()


@pytest.mark.parametrize("kind", ["folder", "file", "below a file"])
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_spent(folder, run, kind):
    out = folder / "out"
    if kind == "folder":
        out.mkdir()
    else:
        out.write_text("mine")
    target = out / "deeper" if kind == "below a file" else out
    result = run("release", folder / "plan.toml", "--out", target, "--yes")
    assert result.exit_code == 2
    assert "Nothing was spent" in result.stderr
    assert not (folder / "small.ledger").exists()


@pytest.mark.costly
def test_beyond_the_budget_nothing_is_spent_and_the_code_is_3(released, run):
    assert run("release", released / "plan.toml", "--out", released / "second", "--yes", "--again").exit_code == 0
    before = events(released)
    result = run("release", released / "plan.toml", "--out", released / "third", "--yes", "--again")
    assert result.exit_code == 3
    assert "does not cover" in result.stderr
    assert "Nothing was spent" in result.stderr
    assert events(released) == before
    assert not (released / "third").exists()


def test_a_table_that_breaks_the_schema_is_refused_without_a_charge(folder, run):
    import pyarrow as pa

    table = pq.read_table(folder / "establishments.parquet")
    doubled = pa.concat_tables([table, table.slice(0, 3)])
    (folder / "establishments.parquet").unlink()
    pq.write_table(doubled, folder / "establishments.parquet")
    result = run("release", folder / "plan.toml", "--out", folder / "out", "--yes")
    assert result.exit_code == 2
    assert "repeats an id" in result.stderr
    assert events(folder) == ["opened"]


def test_a_missing_source_is_refused(folder, run):
    (folder / "establishments.parquet").unlink()
    result = run("release", folder / "plan.toml", "--out", folder / "out", "--yes")
    assert result.exit_code == 2
    assert "there is no such file" in result.stderr


def test_a_ledger_of_another_dataset_is_refused(released, run):
    text = (released / "plan.toml").read_text().replace('dataset = "small"', 'dataset = "other"')
    (released / "plan.toml").write_text(text)
    result = run("release", released / "plan.toml", "--out", released / "next", "--yes")
    assert result.exit_code == 2
    assert "another dataset" in result.stderr


def test_the_version_is_that_of_the_installed_package(run):
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"recordwise {version('recordwise')}\n")
