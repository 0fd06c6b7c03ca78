"""The thirteen tasks of a newcomer: those that no other file plays, and where the others are played."""

import csv
import json
import random
import re
import socket
import time
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow.parquet as pq
import pytest

import recordwise as rw
from recordwise.release.verify import verify

TESTS = Path(__file__).parents[1]
TASKS = {
    "a first release from a messy CSV": ("cli/test_messy_files.py::test_loans_with_dollars_dates_and_trailing_blanks",),
    "two hierarchies with ranges, totals, rounding, status": (
        "cli/test_thirteen_tasks.py::test_two_hierarchies_with_ranges_totals_rounding_and_status",
    ),
    "sizes from last year's table": (
        "cli/test_thirteen_tasks.py::test_last_years_table_sizes_the_noise_first_from_a_file_then_from_the_release",
    ),
    "a plan that reaches an error for counties of 1,000": (
        "cli/test_first_hour.py::test_a_plan_is_found_that_reaches_an_error_of_a_size_of_counties",
        "cli/test_thirteen_tasks.py::test_a_first_plan_becomes_one_that_reaches_a_goal_with_a_budget_of_its_own",
    ),
    "a refusal and its way out": ("cli/test_first_hour.py::test_a_refusal_says_how_and_what_it_says_is_accepted",),
    "second year, change, revision": (
        "cli/test_first_hour.py::test_a_second_year_a_change_a_revision_and_a_larger_budget",
    ),
    "all formats and the page": ("cli/test_thirteen_tasks.py::test_every_format_and_the_page_of_one_release",),
    "private keys, quantiles, ratios, averages, firms": (
        "cli/test_thirteen_tasks.py::test_private_keys_quantiles_ratios_averages_and_firms_in_one_release",
    ),
    "a shop's loss": ("cli/test_thirteen_tasks.py::test_a_shop_looks_up_its_loss",),
    "reading the release in pandas, DuckDB and R": (
        "cli/test_thirteen_tasks.py::test_a_release_is_read_and_asked_and_a_wrong_name_is_answered_with_the_right_one",
        "cli/test_messy_files.py::test_a_release_is_read_in_pandas_and_duckdb_with_its_codes",
        "cli/test_messy_files.py::test_a_release_is_read_in_r_with_its_codes",
    ),
    "the site": (
        "browser/test_site.py::test_every_link_of_the_site_leads_somewhere_and_none_is_loaded_from_elsewhere",
        "browser/test_site.py::test_the_search_finds_pages_without_a_network",
    ),
    "cron, kill, Postgres, Spark, 2 M rows": (
        "cli/test_production_page.py::test_the_script_for_cron_releases_once_and_a_retry_is_no_failure",
        "cli/test_thirteen_tasks.py::test_a_second_run_is_told_what_was_charged_and_what_to_do",
        "release/test_killed.py::test_a_release_killed_at_four_random_moments_leaves_whole_books_and_whole_folders",
        "engines/test_postgres_session.py::test_a_release_from_a_server_is_the_release_from_the_same_records",
        "session/test_both_engines.py::test_both_engines_publish_the_same_tables_with_the_same_noise",
        "cli/test_thirteen_tasks.py::test_two_million_rows_are_published_within_a_minute",
    ),
    "progress and offline": ("cli/test_thirteen_tasks.py::test_a_first_hour_needs_no_network_and_says_how_far_it_is",),
}


@pytest.mark.parametrize("task", TASKS)
def test_each_task_is_played_somewhere(task: str) -> None:
    for place in TASKS[task]:
        name, _, test = place.partition("::")
        assert re.search(rf"^def {test}\(", (TESTS / name).read_text(), re.MULTILINE), place
    assert len(TASKS) == 13


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(result: Any) -> str:
    return " ".join((result.stdout + result.stderr).split())


def done(result: Any) -> str:
    assert result.exit_code == 0, result.output
    return told(result)


PLACES = "state,county\nNY,N1\nNY,N2\nCT,C1\n"
SECTORS = "sector,industry\n31-33,311\n31-33,336\n44-45,445\n"


def write_plants(name: str, seed: int) -> dict[tuple[str, str], int]:
    """Write 600 plants of three counties and industries; the employees of each cell."""
    made, totals = random.Random(seed), dict[tuple[str, str], int]()
    with Path(name).open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["plant_id", "county", "industry", "emp"])
        for number in range(600):
            cell = made.choice(("N1", "N2", "C1")), made.choice(("311", "336", "445"))
            emp = int(made.paretovariate(1.2))
            totals[cell] = totals.get(cell, 0) + emp
            rows.writerow([number, *cell, emp])
    return totals


WORDS = ("--sum", "emp=20", "--hierarchy", "places.csv", "--hierarchy", "sectors.csv", "--tuned-on", "public")


@pytest.fixture
def plants(here: Path) -> dict[tuple[str, str], int]:
    (here / "places.csv").write_text(PLACES)
    (here / "sectors.csv").write_text(SECTORS)
    return write_plants("plants.csv", 1)


@pytest.mark.costly
def test_two_hierarchies_with_ranges_totals_rounding_and_status(plants: Any, run: Any) -> None:
    assert "no blank left" in done(run("init", "plants.csv", "--header", *WORDS))
    plan = Path("plan.toml")
    text = plan.read_text()
    for name, total in (("places", "nation"), ("sectors", "total")):
        found = re.search(rf"\[hierarchies.{name}\]\n(?:.*\n)+?levels = \[(.*)\]\n", text)
        assert found is not None
        text = text.replace(
            f"levels = [{found[1]}]", f'levels = ["{total}", {found[1]}]\ntotals = {{ {total} = "all" }}'
        )
        text = text.replace(f"by = [{found[1]}]", f'by = ["{total}", {found[1]}]')
    rules = '[outputs.round]\nemp = 10\n\n[outputs.status]\ngood = 0.1\nfair = 0.3\notherwise = "poor"\n'
    plan.write_text(text + rules)
    shown = done(run("check", "plan.toml"))
    assert "Basic tables combine all levels" in shown
    assert "Budget: covers the plan" in shown
    done(run("release", "plan.toml", "--out", "out", "--yes"))
    cells = {each.stem: pq.read_table(each).to_pylist() for each in Path("out").glob("*_basic.parquet")}
    assert len(cells) == 9
    emp = {tuple(list(row.values())[:2]): row for rows in cells.values() for row in rows}
    assert emp["all", "all"]["sum_emp"] == sum(emp["all", each]["sum_emp"] for each in ("31-33", "44-45"))
    assert emp["NY", "31-33"]["sum_emp"] == sum(emp[a, b]["sum_emp"] for a in ("N1", "N2") for b in ("311", "336"))
    assert {row["sum_emp"] % 10 for row in emp.values()} == {0}
    assert {row["sum_emp_status"] for row in emp.values()} <= {"good", "fair", "poor"}
    assert "These are the errors of the numbers that were made to add up" in Path("out/report.html").read_text()
    best = pq.read_table("out/nation_by_total.parquet").to_pylist()[0]
    assert best["sum_emp_best_low"] < best["sum_emp_best"] < best["sum_emp_best_high"]


@pytest.mark.costly
def test_last_years_table_sizes_the_noise_first_from_a_file_then_from_the_release(plants: Any, run: Any) -> None:
    rows = "".join(f"{county},{industry},{emp}\n" for (county, industry), emp in plants.items())
    Path("last.csv").write_text("county,industry,employees\n" + rows)
    done(run("init", "plants.csv", "--header", *WORDS, "--sizes", "last.csv"))
    plan = Path("plan.toml")
    series = '\n[series]\nname = "plants"\nperiod = "${year}"\n'
    text = plan.read_text().replace('dataset = "plants"', 'dataset = "plants ${year}"') + series
    plan.write_text(text)
    assert "Sizes of cells: public: last.csv" in done(run("check", "plan.toml", "--set", "year=2025"))
    done(run("release", "plan.toml", "--set", "year=2025", "--out", "2025", "--yes"))
    write_plants("plants.csv", 2)
    size = 'size.emp = { release = "2025", column = "sum_emp_best" }'
    text = re.sub(r"size\.emp = .*\nsized_on = .*", size, text)
    assert size in text
    plan.write_text(text)
    shown = done(run("release", "plan.toml", "--set", "year=2026", "--out", "2026", "--yes"))
    assert "Promise over time" in shown
    assert "budget" in json.loads(Path("2026/release.json").read_text())["sized_noise"]
    assert verify("plants.ledger", against=["2025", "2026"]) == []


@pytest.mark.costly
def test_a_first_plan_becomes_one_that_reaches_a_goal_with_a_budget_of_its_own(plants: Any, run: Any) -> None:
    words = ("--by", "county", "--keys", "N1,N2,C1", "--sum", "emp=20", "--tuned-on", "public")
    done(run("init", "plants.csv", "--header", *words))
    goal = ("plan", "recommend", "plan.toml", "--within", "0.05", "--statistic", "emp", "--data", "public")
    small = done(run(*goal))
    assert "within the budget is recommended" in small
    assert "Nothing was charged to the budget yet: --new-budget" in small
    assert "has a budget that covers it and a revision" in done(run(*goal, "--new-budget", "--out", "new.toml"))
    shown = done(run("check", "new.toml"))
    assert "Budget: covers the plan" in shown
    assert "Reserved for 1 revision" in shown
    done(run("release", "new.toml", "--out", "out", "--yes"))
    refused = run(*goal[:2], "new.toml", *goal[3:], "--new-budget")
    assert (refused.exit_code, "recordwise ledger amend new.toml --reason TEXT" in told(refused)) == (2, True)


@pytest.mark.costly
def test_every_format_and_the_page_of_one_release(plants: Any, run: Any) -> None:
    words = ("--by", "county", "--keys", "N1,N2,C1", "--sum", "emp=20", "--tuned-on", "public")
    done(run("init", "plants.csv", "--header", *words))
    formats = ["parquet", "csv", "long", "xlsx", "sas", "sas8", "stata", "sdmx-csv", "r"]
    Path("plan.toml").write_text(Path("plan.toml").read_text() + f"\n[outputs]\nformats = {json.dumps(formats)}\n")
    done(run("release", "plan.toml", "--out", "out", "--yes"))
    data = pq.read_table("out/county.parquet").to_pandas()
    read = {
        "csv": pd.read_csv("out/county.csv"),
        "xlsx": pd.read_excel(next(Path("out").glob("*.xlsx")), sheet_name="county"),
        "stata": pd.read_stata(next(Path("out").glob("*.dta"))),
    }
    for name, frame in read.items():
        values = [round(float(each), 3) for each in frame.to_numpy().ravel() if isinstance(each, int | float)]
        for value in data["sum_emp"]:
            assert round(float(value), 3) in values, name
    page = Path("out/report.html").read_text()
    assert "Reserved" in page or "budget" in page
    assert not re.search(r"""(?:src|href)=["']https?://""", page)
    assert verify("plants.ledger", against=["out"]) == []


EVERYTHING = """\
dataset = "plants"
source = "firms.csv"
ledger = "firms.ledger"
tuned_on = "public"

[schema]
unit = "plant_id"
firm = "firm"
measures.emp = { step = 1, bound = 100_000 }
columns.county = "text"

[[queries]]
group_by = ["county"]
keys = { select = { rho = 0.5, delta = 1e-6, pieces = { emp = 50 } } }
count = { kind = "Gaussian", rho = 0.5 }
sum.emp = { kind = "UnitSplit", at = 50, rho = 0.5 }
avg.emp = { sum = { kind = "UnitSplit", at = 50, rho = 0.5 } }
ratio.per_plant = { of = "emp", to = "count" }
quantile.emp = { p = 0.5, grid = { log = [1, 1e5], bits = 6 }, rho = 0.5, as = "half" }
count_distinct.firm = { kind = "Gaussian", rho = 0.5, as = "firms" }
"""


@pytest.mark.costly
def test_private_keys_quantiles_ratios_averages_and_firms_in_one_release(plants: Any, run: Any) -> None:
    lines = Path("plants.csv").read_text().splitlines()
    Path("firms.csv").write_text(
        "\n".join([f"{lines[0]},firm", *(f"{each},f{n % 50}" for n, each in enumerate(lines[1:]))])
    )
    Path("plan.toml").write_text(EVERYTHING)
    shown = run("check", "plan.toml")
    assert shown.exit_code == 0, told(shown)
    done(run("release", "plan.toml", "--out", "out", "--yes"))
    rows = pq.read_table("out/county.parquet").to_pylist()
    assert {row["county"] for row in rows} <= {"N1", "N2", "C1"}
    for row in rows:
        assert row["per_plant"] == pytest.approx(row["sum_emp"] / row["count"], rel=1e-6)
        assert row["half"] >= 0
        assert abs(row["firms"] - 50) < 30
        assert abs(row["avg_emp"] - row["per_plant"]) < 5


def test_a_shop_looks_up_its_loss(plants: Any, run: Any, run_json: Any) -> None:
    words = ("--by", "county", "--keys", "N1,N2,C1", "--sum", "emp=20", "--tuned-on", "public")
    done(run("init", "plants.csv", "--header", *words))
    done(run("release", "plan.toml", "--out", "out", "--yes"))
    said = done(run("loss", "out/policy.json", "emp=40"))
    assert said.startswith("A record with emp = 40")
    assert run_json("loss", "out/policy.json", "emp=40")["loss"] == pytest.approx(0.1 + 0.1 * 4)
    wrong = run("loss", "out/policy.json", "epm=40")
    assert (wrong.exit_code, "did you mean 'emp'" in told(wrong)) == (2, True)


@pytest.mark.costly
def test_a_first_hour_needs_no_network_and_says_how_far_it_is(
    plants: Any, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(*_: Any) -> None:
        raise OSError("no network")

    monkeypatch.setattr(socket.socket, "connect", nowhere)
    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    done(run("init", "plants.csv", "--header", *WORDS))
    done(run("check", "plan.toml"))
    assert "covers this release and covers a revision in full" in done(run("explain", "plan.toml"))
    released = run("release", "plan.toml", "--out", "out", "--yes")
    done(released)
    assert "does not cover it once more, but a reserve is kept for a revision" in done(run("explain", "plan.toml"))
    steps = re.findall(r"^recordwise: (.*?) \((\d+)%, [\d.]+ s\)$", released.stderr, re.MULTILINE)
    assert [each for each, _ in steps][:2] == ["reading records", "charging the ledger"]
    assert [int(share) for _, share in steps] == sorted(int(share) for _, share in steps)
    assert steps[-1][1] == "100"
    done(run("loss", "out/policy.json", "emp=40"))
    done(run("ledger", "verify", "plants.ledger", "--against", "out"))


def test_a_release_is_read_and_asked_and_a_wrong_name_is_answered_with_the_right_one(plants: Any, run: Any) -> None:
    words = ("--by", "county", "--keys", "N1,N2,C1", "--sum", "emp=20", "--tuned-on", "public")
    done(run("init", "plants.csv", "--header", *words))
    done(run("release", "plan.toml", "--out", "out", "--yes"))
    frame = pd.read_csv("out/county.csv", dtype={"county": str}).set_index("county")
    rows = duckdb.sql("SELECT county, sum_emp FROM 'out/county.parquet'").fetchall()
    assert {county: pytest.approx(frame.loc[county, "sum_emp"]) for county, _ in rows} == dict(rows)
    north = frame.loc[["N1", "N2"], "sum_emp"].sum()
    told_by_reader = rw.read("out").total("emp", {"county": ["N1", "N2"]})
    assert told_by_reader.value == pytest.approx(north)
    assert f"{north:,.0f}" in done(run("ask", "out", "emp", "--where", "county=N1,N2"))
    wrong = run("ask", "out", "epm", "--where", "county=N1,N2")
    assert (wrong.exit_code, "'epm' is not published: did you mean 'emp'?" in told(wrong)) == (2, True)
    wrong = run("ask", "out", "emp", "--where", "conty=N1")
    assert (wrong.exit_code, "did you mean 'county'?" in told(wrong)) == (2, True)


def test_a_second_run_is_told_what_was_charged_and_what_to_do(plants: Any, run: Any) -> None:
    words = ("--by", "county", "--keys", "N1,N2,C1", "--sum", "emp=20", "--tuned-on", "public")
    done(run("init", "plants.csv", "--header", *words))
    done(run("release", "plan.toml", "--out", "out", "--yes"))
    again = run("release", "plan.toml", "--out", "second", "--yes")
    assert again.exit_code not in (0, 1)
    assert "was already released (charge " in told(again)
    assert "Nothing was charged now. To publish it again, state a revision" in told(again)
    assert not Path("second").exists()
    assert verify("plants.ledger", against=["out"]) == []


@pytest.mark.slow
def test_two_million_rows_are_published_within_a_minute(here: Path, run: Any) -> None:
    from recordwise.synthetic import write_establishments

    write_establishments(here / "many.parquet", 2_000_000)
    words = ("--unit", "estab_id", "--sum", "emp=50", "--by", "county", "--keys", "06037,17031", "--tuned-on", "public")
    done(run("init", "many.parquet", *words))
    plan = here / "plan.toml"
    plan.write_text(plan.read_text().replace("max_outside = 0.01", 'max_outside = "accept"'))
    started = time.monotonic()
    done(run("release", "plan.toml", "--out", "out", "--yes"))
    assert time.monotonic() - started < 60
