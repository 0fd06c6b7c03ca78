"""The papers' experiments by one command each."""

import importlib
import json
import sys
import warnings
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from experiments.command import names, reproduce
from experiments.frame import Claim, Reproduction
from recordwise.errors import UnkeptLedgerWarning


def run(*arguments):
    app = typer.Typer()
    app.command()(reproduce)
    return CliRunner().invoke(app, list(map(str, arguments)))


def done(*, runs, seed, tell):
    tell("working")
    # As a session over generated records does; the tests make an error of every warning that is not ignored.
    warnings.warn("a session without a ledger file", UnkeptLedgerWarning, stacklevel=2)
    return Reproduction(
        name="good-one",
        title="Good",
        source="nobody",
        setting=(),
        data="none",
        runs=runs,
        seed=seed,
        claims=[
            Claim(statement="one", paper="1", ours="1", agrees=True),
            Claim(statement="two", paper="1", ours="2", agrees=False, why="it is another number"),
        ],
    )


def failing(*, runs, seed, tell):
    raise ValueError(f"a record with {runs}")


@pytest.fixture
def made_up(monkeypatch):
    """Two experiments in place of the real ones, one of which fails."""
    command = sys.modules["experiments.command"]
    modules = {
        "experiments.good_one.run": SimpleNamespace(RUNS=7, STEPS=1, reproduce=done),
        "experiments.bad_one.run": SimpleNamespace(RUNS=7, STEPS=1, reproduce=failing),
        "experiments.frame": importlib.import_module("experiments.frame"),
    }
    monkeypatch.setattr(command, "names", lambda: ["bad-one", "good-one"])
    monkeypatch.setattr(command, "import_module", modules.__getitem__)


def test_the_experiments_are_listed_with_what_they_do():
    result = run("--list")
    assert result.exit_code == 0
    assert set(names()) <= set(result.output.split())
    assert "Abowd" in result.output


@pytest.mark.costly
def test_a_small_run_of_the_microdata_tables_fails_nowhere(tmp_path):
    result = run("microdata", "--runs", 5, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    told = json.loads((tmp_path / "out" / "reproduction.json").read_text())
    assert told["numbers"]["failures"] == 0
    assert (tmp_path / "out" / "reproduction.html").exists()


def test_an_unknown_experiment_is_refused_by_name():
    result = run("nothing")
    assert result.exit_code == 2
    assert "microdata" in result.output


def test_without_matplotlib_the_command_names_the_extra(made_up, monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules["experiments.command"], "find_spec", lambda _: None)
    result = run("good-one", "--out", tmp_path)
    assert result.exit_code == 2
    assert "recordwise[plots]" in result.output


def test_runs_have_a_default_of_their_own_and_files_a_folder_of_their_own(made_up, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    result = run("good-one", "--seed", 5)
    assert result.exit_code == 0, result.output
    told = json.loads((tmp_path / "reproductions" / "good-one" / "reproduction.json").read_text())
    assert (told["runs"], told["seed"]) == (7, 5)


def test_a_claim_that_fails_is_shown_with_its_reason(made_up, tmp_path):
    result = run("good-one", "--out", tmp_path)
    assert "does not agree: it is another number" in result.output


def test_a_failure_among_all_neither_hides_nor_stops_the_others(made_up, tmp_path):
    result = run("all", "--runs", 2, "--out", tmp_path)
    assert result.exit_code == 1
    assert "bad-one failed" in result.output
    assert "a record with" not in result.output
    assert json.loads((tmp_path / "good-one" / "reproduction.json").read_text())["runs"] == 2
    assert "1 of 2" in (tmp_path / "index.html").read_text()
