"""The page about planning runs as it is printed, and the gallery has every picture it shows."""

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.costly
def test_every_block_of_the_page_runs_in_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = re.findall(r"^```python\n(.*?)^```", (DOCS / "planning.md").read_text(), flags=re.DOTALL | re.MULTILINE)
    assert len(found) == 5
    names: dict[str, object] = {}
    for text in found:
        exec(compile(text, "planning.md", "exec"), names)
    assert "meets the goals" in capsys.readouterr().out
    assert names["advice"].changes()


def test_every_command_of_the_page_exists(tmp_path):
    from typer.testing import CliRunner

    from recordwise.cli import app

    lines = re.findall(r"^recordwise plan (\w+) plan.toml (.*)$", (DOCS / "planning.md").read_text(), re.MULTILINE)
    known = {"compare", "recommend", "frontier", "evaluate"}
    assert {command for command, _ in lines} == known
    for command, words in lines:
        shown = CliRunner().invoke(app, ["plan", command, "--help"], env={"COLUMNS": "300", "TERM": "dumb"}).stdout
        assert all(option in shown for option in re.findall(r"--[\w-]+", words)), (command, words)


def test_the_gallery_shows_every_picture_there_is_and_no_other():
    pages = "".join((DOCS / name).read_text() for name in ("mechanisms.md", "planning.md"))
    shown = set(re.findall(r"\]\(gallery/(\w+\.svg)\)", pages))
    assert shown == {path.name for path in (DOCS / "gallery").glob("*.svg")}
    assert all((DOCS / "gallery" / name).stat().st_size < 150_000 for name in shown)


@pytest.mark.slow
def test_the_script_of_the_gallery_draws_every_picture(tmp_path):
    runpy.run_path(str(DOCS / "gallery" / "draw.py"))["main"](tmp_path, rows=3000)
    # The county release needs public files that are not part of the project.
    drawn = {path.name for path in (DOCS / "gallery").glob("*.svg")} - {"counties.svg"}
    assert {path.name for path in tmp_path.iterdir()} == drawn
