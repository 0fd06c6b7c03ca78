"""A series by the command line: one plan for every year, losses over the years, and what a second run does."""

import json

import pytest

from recordwise.release.verify import verify

SERIES = """
[series]
name = "county patterns"
period = "${year}"

[examples]
"corner shop" = { emp = 4, payann = 140 }
"""


@pytest.fixture
def yearly(folder):
    """The plan of conftest with a series, for any year."""
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text().replace('dataset = "small"', 'dataset = "small ${year}"') + SERIES)
    return folder


@pytest.fixture
def release(yearly, run_json):
    def made(year, *words, exit_code=0, out=None):
        place = yearly / (out or f"out{year}")
        words = ("release", yearly / "plan.toml", "--set", f"year={year}", "--out", place, "--yes", *words)
        return run_json(*words, exit_code=exit_code)

    return made


@pytest.mark.costly
def test_two_years_add_up_for_a_history_and_each_has_its_budget(yearly, release, run_json, run) -> None:
    for year in (2025, 2026):
        release(year)
    ledger = yearly / "small.ledger"
    assert verify(ledger, against=[yearly / "out2025", yearly / "out2026"]) == []
    words = ["emp@2025=4", "payann@2025=100", "emp@2026=5", "payann@2026=200"]
    found = run_json("loss", ledger, *words)
    alone = [
        run_json("loss", yearly / f"out{year}" / "policy.json", f"emp={emp}", f"payann={pay}")["loss"]
        for year, emp, pay in ((2025, 4, 100), (2026, 5, 200))
    ]
    assert [each["loss"] for each in found["periods"]] == alone
    assert found["loss"] == sum(alone)
    assert found["total"] == "within budgets that were declared at the start of the series"
    left = run_json("loss", ledger, "emp@2025=4", "payann@2025=100")
    assert [each["record"] is None for each in left["periods"]] == [False, True]
    same = run_json("loss", ledger, "emp=4", "payann=100")
    assert same["loss"] == 2 * alone[0]
    shown = run("loss", ledger, *words).stdout
    assert "loss over all published periods" in shown
    assert "lacks payann" in run("loss", ledger, "emp@2025=4").stderr
    assert "names no period" in run("loss", ledger, "emp@2052=4").stderr
    assert "is not used in any period" in run("loss", ledger, "size=4").stderr
    assert "emp is beyond 2^62 steps" in run("loss", ledger, "emp@2025=1e19", "payann=1").stderr


@pytest.mark.costly
def test_ledger_show_prints_what_each_period_cost_the_examples_and_what_is_left(yearly, release, run, run_json) -> None:
    for year in (2025, 2026):
        release(year)
    words = ("ledger", "show", yearly / "small.ledger", "--plan", yearly / "plan.toml", "--set", "year=2026")
    found = run_json(*words)
    (rows,) = found["examples"].values()
    assert [row["period"] for row in rows] == ["2025", "2026"]
    assert rows[0]["loss"] == rows[1]["loss"] > 0
    assert rows[0]["left"] > 0
    assert [each["budget_declared"] for each in found["periods"]] == ["declared at the start of the series"] * 2
    shown = run(*words).stdout
    assert "corner shop, the same in every period" in shown
    assert "Budget of 2026, declared at the start of the series" in shown


@pytest.mark.costly
def test_a_second_run_exits_with_4_and_charges_nothing(yearly, release, run) -> None:
    release(2026)
    for more in ((), ("--resume",)):
        found = release(2026, *more, exit_code=4, out="another")
        assert (found["error"], found["state"]) == ("AlreadyReleasedError", "released")
    assert not (yearly / "another").exists()
    done = run("release", yearly / "plan.toml", "--set", "year=2026", "--out", yearly / "third", "--yes")
    assert (done.exit_code, "was already released" in done.stderr) == (4, True)
    release(2026, "--again", out="paid-twice")
    assert verify(yearly / "small.ledger", against=[yearly / "out2026", yearly / "paid-twice"]) == []
    kinds = [event["kind"] for event in _events(yearly, run) if event["kind"] != "opened"]
    assert kinds == ["charged", "released", "charged", "released"]
    assert release(2026, "--again", "--resume", exit_code=2)["error"] == "ParameterError"


def test_resume_makes_a_release_that_was_never_charged(yearly, release) -> None:
    first = release(2026, "--resume")
    assert first["privacy_label"] == "private"
    assert not list(yearly.glob("small.ledger.unfinished-*"))


def _events(folder, run) -> list:
    return json.loads(run("ledger", "show", folder / "small.ledger", "--json").stdout)["events"]


@pytest.mark.costly
def test_parameters_are_recorded_and_a_budget_of_one_period_needs_a_series(yearly, release, run) -> None:
    release(2026)
    stated = json.loads((yearly / "out2026" / "release.json").read_text())
    assert stated["parameters"] == {"year": "2026"}
    assert (stated["series"]["name"], stated["series"]["period"]) == ("county patterns", "2026")
    plan = yearly / "plan.toml"
    plan.write_text(plan.read_text().replace("[[budget]]\nrho = 1\n", '[[budget]]\nrho = 1\nperiod = "2027"\n'))
    done = run("check", plan, "--set", "year=2027", "--no-source")
    assert done.exit_code == 0, done.stderr
    plan.write_text(plan.read_text().replace(SERIES, "").replace("${year}", "2027"))
    assert "needs a table [series]" in run("check", plan, "--no-source").stderr


@pytest.mark.costly
def test_change_compares_two_years_and_writes_every_cell(yearly, release, run, run_json) -> None:
    for year in (2025, 2026):
        release(year)
    folders = (yearly / "out2025", yearly / "out2026")
    found = run_json("change", *folders, "--out", yearly / "change", "--ledger", yearly / "small.ledger")
    assert {place.rpartition(".")[2]: level for place, level in found["confidence"].items()} == {
        "count": 0.95,
        "sum_emp": 0.95,
        "sum_payann": pytest.approx(0.9),
    }
    (file,) = (yearly / "change").iterdir()
    assert '"listed","count_before","count_now","count_change","count_change_sd"' in file.read_text().splitlines()[0]
    assert "clearly changed" in run("change", *folders).stdout
    (yearly / "codes.csv").write_text("before,now\n06037,17031\n06037,06037\n17031,17031\n")
    merged = run_json("change", *folders, "--crosswalk", f"county={yearly / 'codes.csv'}")
    assert list(merged["cells"].values()) == [found["cells"][file.stem] // 2]
    assert run("change", *folders, "--crosswalk", "county").exit_code == 2
    assert run("change", folders[0], yearly).exit_code == 2
    assert run("change", folders[0], folders[0]).exit_code == 2


@pytest.mark.costly
def test_changes_of_releases_made_to_add_up_are_those_of_the_drawn_numbers_and_hold_no_formula(
    yearly, release, run, run_json
) -> None:
    plan = yearly / "plan.toml"
    plan.write_text(plan.read_text().replace("06037", "=1+1"))
    for year in (2025, 2026):
        release(year)
        run("postprocess", yearly / f"out{year}", "--out", yearly / f"fit{year}")
    run_json("change", yearly / "out2025", yearly / "out2026", "--out", yearly / "drawn")
    run_json("change", yearly / "fit2025", yearly / "fit2026", "--out", yearly / "fitted")
    (first,), (second,) = ((yearly / name).iterdir() for name in ("drawn", "fitted"))
    assert first.read_text() == second.read_text()
    assert '"\'=1+1"' in first.read_text()
    assert '"=1+1"' not in first.read_text()


@pytest.mark.costly
def test_the_page_shows_earlier_periods_that_the_plan_names_and_a_missing_one_is_told_before_the_charge(
    yearly, release, run
) -> None:
    release(2025)
    plan = yearly / "plan.toml"
    plan.write_text(plan.read_text().replace('period = "${year}"\n', 'period = "${year}"\nearlier = ["out2025"]\n'))
    release(2026)
    assert "history-chart" in (yearly / "out2026" / "report.html").read_text()
    assert verify(yearly / "small.ledger", against=[yearly / "out2025", yearly / "out2026"]) == []
    plan.write_text(plan.read_text().replace('["out2025"]', '["out2025", "nowhere"]'))
    refused = run("release", plan, "--set", "year=2027", "--out", yearly / "out2027", "--yes")
    assert refused.exit_code == 2
    assert "nowhere" in refused.stderr
    assert "2027" not in run("ledger", "show", yearly / "small.ledger").stdout
