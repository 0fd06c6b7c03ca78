"""A refusal and its way out, a plan that reaches a goal, a second year, its change and a revision, as a new user meets them."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from recordwise.release.verify import verify

COUNTIES = ("06037", "17031")
LOW = "[[budget]]\nrho = 1\n\n[[budget]]\nrho = 2\n"
SERIES = """
[series]
name = "county patterns"
period = "${year}"
revision = "${revision}"

[parameters]
revision = 0
"""


@pytest.fixture
def yearly(folder: Path) -> Path:
    """The plan of conftest for any year, with a reserve for one revision."""
    plan = folder / "plan.toml"
    text = plan.read_text().replace('dataset = "small"', 'dataset = "small ${year}"\nreserve = { revisions = 1 }')
    plan.write_text(text + SERIES)
    return folder


def pasted(plan: Path, shown: str) -> None:
    """Paste the lines below "all noise" into the plan's only query."""
    lines = shown.split("all noise ")[1].splitlines()
    new = dict(each.strip().split(" = ", 1) for each in lines[2:5])
    old = plan.read_text().splitlines()
    kept = [f"{name} = {new[name]}" if (name := each.split(" = ")[0]) in new else each for each in old]
    plan.write_text("\n".join(kept))


@pytest.mark.costly
def test_a_refusal_says_how_and_what_it_says_is_accepted(folder: Path, run: Any) -> None:
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text().replace("rho = 2\n", "rho = 0.4\n"))
    refused = run("check", plan)
    assert refused.exit_code == 3
    for words in (
        "for emp=",
        "Most of it is sum_emp in table",
        "What would fit",
        "- the plan without",
        "nothing was charged to it yet",
    ):
        assert words in refused.stdout, refused.stdout
    pasted(plan, refused.stdout)
    accepted = run("check", plan)
    assert (accepted.exit_code, "Budget: covers the plan" in accepted.stdout) == (0, True), accepted.output


@pytest.mark.costly
def test_a_plan_is_found_that_reaches_an_error_of_a_size_of_counties(folder: Path, run: Any, run_json: Any) -> None:
    """Cells of 1,000 employees within 5 % at 95 %: the recommended plan states so, can be checked, and can be revised."""
    plan, new = folder / "plan.toml", folder / "new.toml"
    text = plan.read_text().replace(LOW, "").replace("at = { emp = 20, payann = 1000 }\n", "")
    plan.write_text(text.replace('group_by = ["county", { prefix = "naics", length = 3 }]', 'group_by = ["county"]'))
    words = ("--within", "0.05", "--at-least", "1000", "--statistic", "emp", "--data", "synthetic", "--out", new)
    assert run("plan", "recommend", plan, *words).exit_code == 0
    found = run_json("check", new)
    (sd,) = {tuple(each["most_sd"]) for each in found["expected_error"] if each["variable"] == "sum_emp"}
    assert found["reserve"] == 1
    assert found["budget"] == "covers the plan"
    records = pq.read_table(folder / "establishments.parquet", columns=["county", "emp"])
    totals = records.group_by("county").aggregate([("emp", "sum")]).to_pydict()
    large = [int(emp) for emp, county in zip(totals["emp_sum"], totals["county"]) if county in COUNTIES and emp >= 1000]
    assert large
    assert 0.95 * 0.05 * min(large) < max(sd) * 1.96 < 1.01 * 0.05 * min(large)


@pytest.mark.costly
def test_a_second_year_a_change_a_revision_and_a_larger_budget(yearly: Path, run: Any, run_json: Any) -> None:
    plan, ledger = yearly / "plan.toml", yearly / "small.ledger"

    def release(year: int, out: str, *more: str, exit_code: int = 0) -> Any:
        words = ("--set", f"year={year}", *more, "--out", yearly / out, "--yes")
        return run_json("release", plan, *words, exit_code=exit_code)

    shown = run("check", plan, "--set", "year=2025")
    assert "Reserved for 1 revision: the full charge again for every record" in " ".join(shown.stdout.split())
    for year in (2025, 2026):
        release(year, f"out{year}")
    assert run("change", yearly / "out2025", yearly / "out2026", "--out", yearly / "change").exit_code == 0
    again = release(2026, "paid-twice", "--again", exit_code=3)
    assert f"recordwise ledger amend {plan} --set year=2026 --reason TEXT" in again["message"]
    assert "new file" not in again["message"]
    release(2026, "revised", "--set", "revision=1")
    assert "no other release may use it" in " ".join(run("ledger", "show", ledger).stdout.split())

    plan.write_text(plan.read_text().replace("rho = 2\n", "rho = 9\n"))
    refused = release(2026, "more", "--again", exit_code=2)
    assert f"recordwise ledger amend {plan} --set year=2026 --reason TEXT" in refused["message"]
    amended = run_json("ledger", "amend", plan, "--set", "year=2026", "--reason", "a survey was added", "--yes")
    assert "after 2 releases (a survey was added)" in amended["amendment"]
    release(2026, "more", "--again")
    stated = json.loads((yearly / "more" / "release.json").read_text())
    assert "this total was not fixed in advance" in stated["guarantee"]
    assert "this total was not fixed in advance" in (yearly / "more" / "report.html").read_text()
    loss = run_json("loss", ledger, "emp=4", "payann=100")
    assert "amended" in loss["total"]
    assert verify(ledger, against=[yearly / each for each in ("out2025", "out2026", "revised", "more")]) == []


def test_a_budget_is_amended_on_a_terminal_or_with_yes_and_prints_no_question_as_json(released: Path, run: Any) -> None:
    result = run("ledger", "amend", released / "plan.toml", "--reason", "x", "--json")
    assert result.exit_code == 2
    assert "[y/N]" not in result.stdout
    assert "nobody can confirm; pass --yes. The budget is as it was." in " ".join(result.stderr.split())


@pytest.mark.costly
def test_a_budget_may_be_given_on_the_command_line_and_is_never_too_low(released: Path, run: Any) -> None:
    plan = released / "plan.toml"
    words = ("ledger", "amend", plan, "--reason", "why", "--yes", "--budget")
    low = run(*words, "[{ rho = 0.01 }]")
    assert (low.exit_code, "what was charged and reserved" in low.stderr) == (3, True)
    done = run(*words, "[{ rho = 3 }, { rho = 3, at = { emp = 20, payann = 1000 } }]")
    assert done.exit_code == 0, done.output
    assert "Write in the plan" in done.stdout
    assert (
        "has this budget already" in run(*words, "[{ rho = 3 }, { rho = 3, at = { emp = 20, payann = 1000 } }]").stderr
    )
