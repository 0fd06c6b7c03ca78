"""``recordwise plan``: tables, pictures, JSON and plans; bad input ends with a sentence."""

import json

import pytest

from recordwise.planfile import load_plan

GOAL = ("--measure", "emp", "--within", "0.2", "--share", "0.9")


def test_compare_shows_the_plans_own_mechanism_and_the_older_rules(folder, run):
    result = run("plan", "compare", folder / "plan.toml", "--measure", "emp", "--data", "synthetic")
    assert result.exit_code == 0, result.output
    assert "sum_emp" in result.stdout
    assert "10%-rule would withhold" in result.stdout
    assert "CONFIDENTIAL" not in result.stdout


def test_results_are_confidential_unless_the_records_are_said_not_to_be(folder, run, run_json):
    assert "CONFIDENTIAL" in run("plan", "compare", folder / "plan.toml", "--measure", "emp").stdout
    assert "CONFIDENTIAL" in run_json("plan", "compare", folder / "plan.toml", "--measure", "emp")["mark"]


def test_compare_at_equal_error_adds_the_usual_families(folder, run_json):
    words = ("--variance", "400", "--at-total", "500", "--firms", "--realised", "--data", "synthetic")
    found = run_json("plan", "compare", folder / "plan.toml", "--measure", "emp", *words)
    assert len(found["mechanisms"]) == 8
    assert {"losses", "firm_losses", "realised_losses", "share_above", "relative_error"} <= set(found["mechanisms"][0])
    assert found["instead"]["cells"] == 4


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_sweep_draws_and_lists_every_point(folder, run, ending):
    pytest.importorskip("matplotlib", reason="the plots extra is not installed: no figure is drawn here")
    words = ("--threshold", "5", "--threshold", "50", "--rho", "0.1", "--rho", "1", "--plot", folder / f"s.{ending}")
    result = run("plan", "sweep", folder / "plan.toml", "--measure", "emp", *words)
    assert result.exit_code == 0, result.output
    assert len([line for line in result.stdout.splitlines() if line.strip().startswith(("5 ", "50 "))]) == 4
    assert (folder / f"s.{ending}").stat().st_size > 5000


def test_fitness_lists_every_family_and_what_it_needs(folder, run_json):
    found = run_json("plan", "fitness", folder / "plan.toml", *GOAL, "--data", "synthetic")
    names = {each["name"] for each in found["families"]}
    assert "sum_emp (of the plan)" in names
    assert len(names) + len(found["infeasible"]) == 8
    assert all(table["share_met"] >= 0.9 for each in found["families"] for table in each["tables"])


def test_recommend_writes_a_plan_that_check_accepts(folder, run):
    out = folder / "new" / "plan.toml"
    result = run("plan", "recommend", folder / "plan.toml", *GOAL, "--data", "synthetic", "--out", out)
    assert result.exit_code == 0, result.output
    assert "meets the goals with the smallest 99th-percentile loss" in " ".join(result.stdout.split())
    assert run("check", out).exit_code == 0
    assert load_plan(out).tuned_on == "synthetic"
    again = run("plan", "recommend", folder / "plan.toml", *GOAL, "--data", "synthetic", "--out", out)
    assert again.exit_code == 2
    assert "exists already" in again.stderr


def test_a_plan_recommended_from_confidential_records_is_not_accepted_without_a_reason(folder, run):
    words = ("plan", "recommend", folder / "plan.toml", *GOAL, "--out")
    assert run(*words, folder / "a.toml").exit_code == 0
    refused = run("check", folder / "a.toml")
    assert refused.exit_code == 2
    assert "accept_tuning" in refused.stderr
    assert run(*words, folder / "b.toml", "--accept-tuning", "totals are public").exit_code == 0
    accepted = run("check", folder / "b.toml")
    assert accepted.exit_code == 0, accepted.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("compare", "--measure", "employees"), "has no mechanism in query 1"),
        (("compare", "--measure", "emp", "--query", "9"), "a number from 1 to 1"),
        (("compare", "--measure", "emp", "--data", "mine"), "must say what the records are"),
        (("compare", "--measure", "emp", "--variance", "400"), "at_total is needed"),
        (("compare", "--measure", "emp", "--plot", "a.gif"), "is no .png"),
        (("sweep", "--measure", "emp", "--threshold", "x", "--rho", "1"), "thresholds must be a finite number"),
        (("fitness", "--measure", "emp", "--within", "-1"), "within must be above 0"),
        (("recommend", "--measure", "emp", "--within", "0.1", "--rank-by", "mean"), "rank_by must be one of"),
    ],
)
def test_bad_input_ends_with_a_sentence(folder, run, words, told):
    command, *rest = words
    result = run("plan", command, folder / "plan.toml", *rest)
    assert result.exit_code == 2
    assert told in result.stderr
    assert "Traceback" not in result.output
    machine = run("plan", command, folder / "plan.toml", *rest, "--json")
    assert told in json.loads(machine.stdout)["message"]


def test_planning_touches_no_ledger(folder, run):
    assert run("plan", "compare", folder / "plan.toml", "--measure", "emp").exit_code == 0
    assert not (folder / "small.ledger").exists()
