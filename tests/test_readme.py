"""The README: short, its commands and its code run as printed, its links lead somewhere, its picture is what the script draws."""

import re
import runpy
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import stranger
from recordwise.cli import app

README, ROOT = stranger.README, stranger.ROOT


def test_it_fits_two_screens_and_shows_one_picture_two_commands_and_ten_lines_of_use() -> None:
    assert len(README.splitlines()) <= 75
    assert len(re.findall(r"^!\[", README, re.MULTILINE)) == 1
    assert re.findall(r"^make (\w+) ", README, re.MULTILINE) == ["demo", "test"]
    (code,) = stranger.blocks("python")
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 10


def test_every_link_leads_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert len(targets) >= 10
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_a_stranger_publishes_their_own_csv_in_at_most_six_commands(tmp_path: Path, monkeypatch) -> None:
    """With the package at hand instead of its first command; tests/supply/test_wheel.py runs that one too."""
    monkeypatch.chdir(tmp_path)
    Path("shops.csv").write_text(stranger.SHOPS)
    assert len(stranger.commands()) <= 6
    for line, said in stranger.typed():
        program, *words = shlex.split(line)
        assert program == "recordwise"
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (line, done.output)
        assert stranger.comes_back(said, done.stdout), (line, done.stdout)
        assert not stranger.comes_back(said.upper(), done.stdout)
    assert {"county.parquet", "county.csv", "report.html"} <= {path.name for path in Path("published").iterdir()}


def test_the_lines_of_python_run(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shops.csv").write_text(stranger.SHOPS)
    (code,) = stranger.blocks("python")
    exec(compile(code, "README.md", "exec"), {})
    assert float(capsys.readouterr().out) > 0
    assert Path("published-from-python/report.html").exists()


def drawn_lines(text: str) -> list[list[float]]:
    """The coordinates of every line of a picture, in points."""
    paths = re.findall(r'd="(M[^"]*)" clip-path', text)
    return [[float(number) for number in re.findall(r"-?[\d.]+", path)] for path in paths]


def test_the_picture_is_what_its_script_draws(tmp_path: Path) -> None:
    """Its words, and its lines to half a point, which is a quarter of their width."""
    import matplotlib

    script = runpy.run_path(str(ROOT / "docs" / "assets" / "draw.py"))
    with matplotlib.rc_context({"svg.hashsalt": "recordwise", "svg.fonttype": "none"}):
        script["picture"]().savefig(tmp_path / "loss.svg", metadata={"Date": None})
    drawn, kept = ((folder / "loss.svg").read_text() for folder in (tmp_path, ROOT / "docs" / "assets"))
    words = [re.findall(r"<text[^>]*>([^<]*)<", text) for text in (drawn, kept)]
    assert words[0] == words[1]
    assert "giant" in words[1]
    lines = drawn_lines(drawn)
    assert max(map(len, lines)) > 50  # the bent curve, not the lines of the grid
    assert lines == [pytest.approx(line, abs=0.5) for line in drawn_lines(kept)]
