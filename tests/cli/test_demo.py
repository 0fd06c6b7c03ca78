"""``recordwise demo``: two years of ten made-up states, from nothing to published files."""

import json
import re
import tomllib
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from recordwise.cli.demo import DEFAULT_ROWS, LEVELS, YEARS, own_command, show, write_inputs
from recordwise.synthetic.states import public_sizes, state_establishments, states

ROWS = 20_000


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A small demo, run once."""
    from typer.testing import CliRunner

    from recordwise.cli import app

    out = tmp_path_factory.mktemp("demo") / "demo"
    result = CliRunner().invoke(app, ["demo", "--establishments", str(ROWS), "--out", str(out), "--json"])
    assert result.exit_code == 0, result.stderr
    return out, json.loads(result.stdout)


@pytest.mark.costly
def test_it_leaves_two_years_that_can_be_published_and_their_change(demo, run):
    out, _ = demo
    years = [str(year) for year in YEARS]
    names = {"places.csv", "industries.csv", "sizes.csv", "demo.ledger", "change", *years}
    assert {path.name for path in out.iterdir()} >= names | {f"plan-{year}.toml" for year in years}
    for year in years:
        assert json.loads((out / year / "release.json").read_text())["mark"] == "private"
    # The slow part of a release's own tests; here the last year is enough.
    assert run("ledger", "verify", out / "demo.ledger", "--against", out / years[1]).exit_code == 0
    assert (out / "change" / "establishments_county_by_industry.csv").exists()
    assert any((out / years[1]).glob("*.xlsx"))
    # Its Laplace noise is added up too.
    assert 'id="area-form"' in (out / years[1] / "report.html").read_text(encoding="utf-8")
    assert run("ask", out / years[1], "emp", "--growth-from", out / years[0]).exit_code == 0


@pytest.mark.costly
def test_its_basic_tables_add_up_and_have_a_status(demo):
    out, _ = demo
    folder = out / str(YEARS[1])
    counties, states_ = (
        pq.read_table(folder / f"establishments_{place}_by_sector_basic.parquet") for place in ("county", "state")
    )
    assert pc.sum(counties["sum_emp"]).as_py() == pc.sum(states_["sum_emp"]).as_py()
    assert set(counties["sum_emp_status"].to_pylist()) <= {"reliable", "use with caution", "unreliable"}


@pytest.mark.costly
def test_its_screen_fits_and_names_what_to_try_next(demo, capsys):
    out, found = demo
    show(out, ROWS, found)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 32
    assert max(len(line) for line in lines if not line.startswith("  $")) <= 130
    for commands in (("explain",), ("ask",), ("studio", "loss")):
        assert any(line.startswith(f"  $ {own_command()} {each} {out}") for line in lines for each in commands)
    assert all(any(line.startswith(f"{place} by {activity} ") for line in lines) for place, activity in LEVELS)
    assert any(line.startswith("hospital ") for line in lines)


@pytest.mark.costly
def test_large_cells_are_reliable_and_one_flat_noise_has_fewer(demo):
    _, told = demo
    cells = {(each["level"], each["size"]): each for each in told["reliable"]}
    middle, largest = (cells["county by sector", size] for size in (1, 2))
    assert largest["reliable"] >= 0.8 * largest["cells"]
    assert middle["reliable"] >= 1.3 * middle["flat"]
    both = {each["name"]: each for each in told["losses"]}
    assert all(each["both"] == pytest.approx(sum(each["losses"])) for each in both.values())
    assert 10 * both["corner shop"]["both"] < both["factory"]["both"]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_its_noise_is_the_one_that_recommend_finds_for_the_stated_goal(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_inputs(tmp_path, DEFAULT_ROWS)
    plan = Path("plan-2025.toml").read_text()
    (line,) = re.findall(r"^#   recordwise (plan recommend .*)$", plan, re.MULTILINE)
    result = run(*line.split(), "--out", "found.toml")
    assert result.exit_code == 0, result.output
    assert "as in the plan is recommended" in " ".join(result.stdout.split())
    asked, found = (tomllib.loads(text)["queries"][0]["sum"]["emp"] for text in (plan, Path("found.toml").read_text()))
    assert found["mechanism"]["scale"] == asked["mechanism"]["scale"]
    assert found["floor"] == asked["floor"]


def test_every_code_has_a_name_and_places_are_made_up():
    known = states()
    for table, code, name in ((known.places, "county", "county_name"), (known.industries, "industry", "industry_name")):
        assert len(set(table[code].to_pylist())) == table.num_rows
        assert all(table[name].to_pylist())
    assert len(set(known.places["county_name"].to_pylist())) == known.places.num_rows == 240
    assert len(set(known.places["state_name"].to_pylist())) == 10
    assert known.weights.sum() == pytest.approx(1)


def test_years_are_about_the_same_establishments_and_public_sizes_fit_them():
    first, second = (state_establishments(50_000, year=year) for year in (0, 1))
    ids = [set(each["estab_id"].to_pylist()) for each in (first, second)]
    assert 0.9 < len(ids[0] & ids[1]) / 50_000 < 0.96
    assert state_establishments(50_000)["emp"].equals(first["emp"])
    sizes = public_sizes(50_000)
    assert pc.sum(sizes["establishments"]).as_py() == pytest.approx(50_000, rel=0.03)
    # Pareto tails: the mean size of an establishment is known to a tenth or so.
    assert pc.sum(sizes["employees"]).as_py() == pytest.approx(pc.sum(first["emp"]).as_py(), rel=0.2)


def test_demands_that_make_no_sense_are_refused(run, tmp_path):
    result = run("demo", "--establishments", "0", "--out", tmp_path / "demo")
    assert result.exit_code == 2
    assert not (tmp_path / "demo").exists()


def test_an_existing_folder_is_not_touched(run, tmp_path):
    assert run("demo", "--establishments", "10", "--out", tmp_path).exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_the_default_folder_is_the_first_free_one(tmp_path, monkeypatch):
    from recordwise.cli.demo import new_folder

    monkeypatch.chdir(tmp_path)
    assert [str(new_folder(None)) for _ in range(3)] == ["demo-release", "demo-release-2", "demo-release-3"]
