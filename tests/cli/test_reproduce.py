"""The papers' experiments by one command each."""

import json

from typer.testing import CliRunner

from recordwise.cli import app


def test_the_experiments_are_listed():
    result = CliRunner().invoke(app, ["reproduce", "--list"])
    assert result.exit_code == 0
    assert "microdata" in result.output.split()


def test_a_small_run_of_the_microdata_tables_fails_nowhere(tmp_path):
    result = CliRunner().invoke(app, ["reproduce", "microdata", "--runs", "5", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    told = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert told["failures"] == 0


def test_an_unknown_experiment_is_refused_by_name():
    result = CliRunner().invoke(app, ["reproduce", "nothing"])
    assert result.exit_code == 2
    assert "microdata" in result.output
