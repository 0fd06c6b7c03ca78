"""The README: short, its commands and its code run as printed, its links lead somewhere, its picture is what the script draws."""

import json
import re
import runpy
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import recordwise as rw
import stranger
from recordwise.cli import app

README, ROOT = stranger.README, stranger.ROOT


def test_it_fits_two_screens_and_shows_three_pictures_two_commands_and_ten_lines_of_use() -> None:
    assert len(README.splitlines()) <= 78
    assert len(re.findall(r"^!\[", README, re.MULTILINE)) == 3
    assert re.findall(r"^make (\w+) ", README, re.MULTILINE) == ["demo", "test"]
    (code,) = stranger.blocks("python")
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 11


def four_questions(page: str) -> str:
    """What a visitor asks, with the answers and the commands that make them."""
    return page.split("\n## Four questions\n\n")[1].split("\n\n")[0]


@pytest.mark.costly
def test_what_a_visitor_asks_is_answered_alike_on_both_first_pages_by_commands_that_exist() -> None:
    told = four_questions(README)
    assert told.replace("](docs/", "](") == four_questions((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    rows = [line.strip("|").split("|") for line in told.splitlines()[2:]]
    assert len(rows) == 4
    made_by = [command for row in rows for command in re.findall(r"`([^`]+)`", row[2])]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for program, *words in map(str.split, made_by):
        if program == "recordwise":
            assert CliRunner().invoke(app, [*words, "--help"]).exit_code == 0
        else:
            assert program == "make"
            assert words[0] in targets
    listed = CliRunner().invoke(app, ["audit", "--list"]).stdout
    assert f" {len(listed.splitlines())} kinds of release" in rows[2][1]


def test_every_link_leads_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert len(targets) >= 10
    assert [target for target in targets if not (ROOT / target).exists()] == []


@pytest.mark.costly
def test_a_stranger_publishes_their_own_csv_in_at_most_six_commands(tmp_path: Path, monkeypatch) -> None:
    """With the package at hand instead of its first command; tests/supply/test_wheel.py runs that one too."""
    monkeypatch.chdir(tmp_path)
    (script,) = re.findall(r"`python (\S+)` writes the records", README)
    runpy.run_path(str(ROOT / script), run_name="__main__")
    assert Path("shops.csv").read_text() == stranger.SHOPS
    assert len(stranger.commands()) <= 6
    for line, said in stranger.typed():
        program, *words = shlex.split(line)
        assert program == "recordwise"
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (line, done.output)
        assert stranger.comes_back(said, done.stdout), (line, done.stdout)
        assert not stranger.comes_back(said.upper(), done.stdout)
    # Whoever types the lines of Python next does so in the same folder.
    (code,) = stranger.blocks("python")
    exec(compile(code, "README.md", "exec"), {})
    assert Path("published-from-python/report.html").exists()
    assert {"county.parquet", "county.csv", "report.html"} <= {path.name for path in Path("published").iterdir()}


def test_the_lines_of_python_run(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shops.csv").write_text(stranger.SHOPS)
    (code,) = stranger.blocks("python")
    exec(compile(code, "README.md", "exec"), {})
    assert f"# {capsys.readouterr().out.strip()}\n" in code
    assert Path("published-from-python/report.html").exists()
    shares = []
    for amount in (2_000, 52_000, 159_000):
        told = CliRunner().invoke(app, ["loss", "published-from-python/policy.json", f"sales={amount}", "--json"])
        shares.append(f"{json.loads(told.stdout)['power_of_a_5_percent_test']:.1%}".replace("%", " %"))
    plain = " ".join(README.split())
    assert f"the shop of 2,000 in at most {shares[0]} of cases, that of 52,000 in {shares[1]}, the largest" in plain
    assert f"in {shares[2]}. Which noise" in plain


def test_the_numbers_next_to_the_lines_are_theirs() -> None:
    sales: dict[str, list[int]] = {name: [] for name in ("001", "003")}
    for line in stranger.SHOPS.splitlines()[1:]:
        _, county, amount = line.split(",")
        sales[county].append(int(amount))
    totals = [sum(each) for each in sales.values()]
    assert f"{totals[0] / 1e6:.1f} and {totals[1] / 1e6:.1f} million" in README
    noise = rw.Gaussian(sigma=72_835)
    reach = noise.error_quantiles(np.array(totals, float), confidence=0.95).max()
    assert f"within ± {round(reach, -3):,.0f}" in README
    assert reach <= 0.02 * min(totals) * 1.001


@pytest.mark.costly
def test_the_tutorial_meets_its_goal_and_costs_the_largest_establishment_what_it_says() -> None:
    from recordwise.synthetic import establishments

    told = " ".join((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8").split())
    records = establishments(50_000)
    columns = {name: records[name].to_numpy().astype(float) for name in ("emp", "payann")}
    losses = {"polylog": 0.0, "gaussian": 0.0}
    for name, scale, least in (("emp", 10, 600), ("payann", 475, 27_000)):
        assert f'sum.{name} = {{ kind = "Polylog", power = 2, rate = 1, offset = 3, scale = {scale} }}' in told
        noise = rw.Polylog(power=2, rate=1, offset=3, scale=scale)
        reach = float(noise.error_quantiles(np.array([float(least)]), confidence=0.95)[0])
        assert reach <= 0.1 * least
        same = rw.Gaussian(relative_error=str(reach / least), at_total=least, confidence=0.95)
        losses["polylog"] += noise.policy(name).loss(columns)
        losses["gaussian"] += same.policy(name).loss(columns)
    assert "cells with 600 employees or 27 million dollars of payroll within 10 %, at 95 %" in told
    most = {name: float(np.max(each)) for name, each in losses.items()}
    assert (
        f"would cost the largest establishment {most['gaussian']:,.0f}; polylog noise costs it {most['polylog']:.0f}."
        in told
    )


@pytest.mark.slow
def test_the_noise_is_what_recommend_chooses_for_the_stated_goal(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shops.csv").write_text(stranger.SHOPS)
    cells = rw.query().group_by("county", keys=["001", "003"])
    types = {"unit": "shop_id", "measures": {"sales": 1}, "columns": {"county": "text"}}
    with rw.Session("shops.csv", **types, tuned_on="public") as session:
        found = rw.planning.recommend(session, rw.planning.Goal("sales", cells, within="0.02"), data="public")
    assert found.rows()[1][0][4] == "Gaussian(sigma=72835.2)"


def drawn_lines(text: str) -> list[list[float]]:
    """The coordinates of every line of a picture, in points."""
    paths = re.findall(r'd="(M[^"]*)" clip-path', text)
    return [[float(number) for number in re.findall(r"-?[\d.]+", path)] for path in paths]


@pytest.mark.costly
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
