"""``recordwise studio``: what it refuses before it serves anything, and what it serves."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from recordwise.cli import app
from recordwise.studio import server


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


def test_the_plan_its_records_and_the_folder_are_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[tuple[Any, bool]] = []
    monkeypatch.setattr(server, "serve", lambda desk, *, browser, tell: served.append((desk, browser)))
    monkeypatch.chdir(tmp_path)
    plan = tmp_path / "plan.toml"
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
