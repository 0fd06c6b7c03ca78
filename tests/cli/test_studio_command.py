"""``recordwise studio``: what it refuses before it serves anything, and what it serves."""

import importlib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from recordwise.cli import app
from recordwise.studio import server

studio: Any = importlib.import_module("recordwise.cli.studio")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plan.toml", "--records", "a.parquet", "--data", "open"], "must be one of"),
        (["--records", "a.parquet"], "needs a plan"),
        (["--set", "year=2026"], "needs a plan"),
        (["plan.toml", "--set", "year"], "NAME=VALUE"),
    ],
)
def test_what_does_not_belong_together_is_refused(words: list[str], said: str) -> None:
    found = CliRunner().invoke(app, ["studio", *words])
    assert found.exit_code == 2
    assert said in found.output


@pytest.mark.parametrize(("name", "said"), [("nope.toml", "No such file"), ("shops.csv", "not valid TOML")])
def test_what_is_no_plan_is_refused_on_the_terminal_before_anything_is_served(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "serve", lambda *_, **__: pytest.fail("it was served"))
    (tmp_path / "shops.csv").write_text("id,county\n1,001\n")
    found = CliRunner().invoke(app, ["studio", str(tmp_path / name)])
    assert found.exit_code == 2
    assert said in " ".join(found.output.split())


def test_records_that_are_not_there_are_refused_before_a_look_is_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "serve", lambda *_, **__: pytest.fail("it was served"))
    monkeypatch.setattr(studio, "load_with_parameters", lambda plan, given: None)
    words = [str(tmp_path / "plan.toml"), "--records", str(tmp_path / "nope.parquet")]
    found = CliRunner().invoke(app, ["studio", *words])
    assert found.exit_code == 2
    assert "there is no such file" in " ".join(found.output.split())


def test_the_plan_its_records_and_the_folder_are_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[tuple[Any, bool]] = []
    monkeypatch.setattr(server, "serve", lambda desk, *, browser, tell: served.append((desk, browser)))
    monkeypatch.setattr(studio, "load_with_parameters", lambda plan, given: None)
    monkeypatch.chdir(tmp_path)
    plan = tmp_path / "plan.toml"
    (tmp_path / "r.csv").write_text("id,county\n1,001\n")
    runs: list[list[str]] = [
        [],
        [str(plan), "--no-browser"],
        [str(plan), "--records", "r.csv", "--data", "public"],
        [str(plan), "--records", "r.csv", "--set", "year=2026"],
    ]
    for words in runs:
        assert CliRunner().invoke(app, ["studio", *words]).exit_code == 0
    assert [(each.subject and each.subject.data, browser) for each, browser in served] == [
        (None, True),
        ("synthetic", False),
        ("public", True),
        ("confidential", True),
    ]
    assert [each.subject and each.subject.parameters for each, _ in served] == [None, {}, {}, {"year": "2026"}]
    assert {each.folder.resolve() for each, _ in served} == {tmp_path.resolve()}
