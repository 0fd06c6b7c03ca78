"""``recordwise plan``: tables, pictures, JSON and plans; bad input ends with a sentence."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from recordwise.plan.file import load_plan

EMP = ("--statistic", "emp", "--within", "0.2", "--share", "0.9")


@pytest.mark.costly
def test_compare_shows_the_plans_own_mechanism_and_the_older_rules(folder, run):
    result = run("plan", "compare", folder / "plan.toml", "--statistic", "emp", "--data", "synthetic")
    assert result.exit_code == 0, result.output
    assert "today's plan" in result.stdout
    assert "10%-rule would withhold" in result.stdout
    assert "CONFIDENTIAL" not in result.stdout


@pytest.mark.costly
def test_results_are_confidential_unless_the_records_are_said_not_to_be(folder, run, run_json, terminal):
    assert "CONFIDENTIAL" in run("plan", "compare", folder / "plan.toml", "--statistic", "emp").stdout
    assert "CONFIDENTIAL" in run_json("plan", "compare", folder / "plan.toml", "--statistic", "emp")["privacy_label"]


@pytest.mark.costly
def test_compare_at_equal_error_adds_the_usual_families(folder, run_json):
    words = ("--variance", "400", "--at-total", "500", "--firms", "--realized", "--data", "synthetic")
    found = run_json("plan", "compare", folder / "plan.toml", "--statistic", "emp", *words)
    assert len(found["mechanisms"]) == 8
    assert {"losses", "firm_losses", "realized_losses", "share_above", "relative_error"} <= set(found["mechanisms"][0])
    assert found["instead"]["cells"] == 4


@pytest.mark.parametrize("ending", ["png", "svg"])
@pytest.mark.costly
def test_sweep_draws_and_lists_every_point(folder, run, ending, terminal):
    pytest.importorskip("matplotlib", reason="the plots extra is not installed: no figure is drawn here")
    words = ("--threshold", "5", "--threshold", "50", "--rho", "0.1", "--rho", "1", "--plot", folder / f"s.{ending}")
    result = run("plan", "compare", folder / "plan.toml", "--statistic", "emp", *words)
    assert result.exit_code == 0, result.output
    assert len([line for line in result.stdout.splitlines() if line.strip().startswith(("5 ", "50 "))]) == 4
    assert (folder / f"s.{ending}").stat().st_size > 5000


LEVELS = """
[[queries]]
name = "ladder"
group_by = "county"
levels = { by = [{ prefix = "naics", length = 2 }, { prefix = "naics", length = 4 }], share = [0.5, 0.5] }
keys = "areas"
count = { kind = "Gaussian", rho = 0.1 }
sum.emp = { kind = "UnitSplit", at = 20, rho = 0.5, as = "emp" }
"""


@pytest.fixture
def levels(folder):
    """A plan with a second query of two levels."""
    (folder / "plan.toml").write_text((folder / "plan.toml").read_text() + LEVELS)
    return folder / "plan.toml"


@pytest.mark.costly
def test_compare_takes_the_whole_plan_with_its_levels_and_statistics(levels, run, run_json):
    """It refused a query of several levels."""
    found = run_json("plan", "compare", levels, "--data", "synthetic")
    names = [each["name"] for each in found["tables"]]
    assert len(names) == 3 + 2 * 2
    assert "emp by county x naics4" in names
    assert [each["name"] for each in found["mechanisms"]] == ["today's plan"]
    shown = run("plan", "compare", levels, "--data", "synthetic").stdout
    assert "errors of the cells, table by table" in shown
    one = run_json("plan", "compare", levels, "--table", "ladder_county_by_naics4", "--data", "synthetic")
    assert [each["name"] for each in one["tables"]] == ["count by county x naics4", "emp by county x naics4"]
    assert one["mechanisms"][0]["losses"]["maximum"] < found["mechanisms"][0]["losses"]["maximum"]
    emp = run_json("plan", "compare", levels, "--table", "2", "--statistic", "emp", "--data", "synthetic")
    assert [each["name"] for each in emp["tables"]] == ["emp by county x naics2", "emp by county x naics4"]


@pytest.mark.costly
def test_compare_at_equal_error_takes_a_total_for_each_measure(levels, run_json):
    words = ("--relative-error", "0.1", "--at-total", "count=50", "--at-total", "emp=500", "--at-total", "payann=20000")
    found = run_json("plan", "compare", levels, *words, "--data", "synthetic")
    assert len(found["mechanisms"]) == 8


def test_sweep_takes_thresholds_for_each_measure(levels, run_json):
    words = ("--threshold", "emp=20", "--threshold", "emp=50", "--threshold", "payann=1000", "--rho", "1")
    points = run_json("plan", "compare", levels, *words, "--data", "synthetic")["points"]
    assert [(each["measure"], each["at"]) for each in points] == [("emp", 20), ("emp", 50), ("payann", 1000)]


def test_sweep_takes_clamps_and_names_the_best(folder, run):
    words = ("--clamp", "5", "--clamp", "50", "--rho", "1", "--statistic", "emp", "--at-least", "count=1")
    shown = run("plan", "compare", folder / "plan.toml", *words, "--data", "synthetic").stdout
    assert "Clamping of emp" in shown
    assert "the least mean error is at a clamp of" in " ".join(shown.split())


@pytest.mark.costly
def test_fitness_takes_the_whole_plan(levels, run_json):
    words = ("--within", "0.3", "--share", "0.8", "--at-least", "payann=100", "--data", "synthetic")
    found = run_json("plan", "recommend", levels, "--by-table", *words)
    assert all(len(each["tables"]) == 7 for each in found["families"])


def test_allocate_splits_each_query_over_its_levels(levels, run, run_json):
    words = ("plan", "recommend", levels, "--keep-mechanisms", "--within", "0.2", "--data", "synthetic")
    found = run_json(*words)
    ladder = {each["table"]: each for each in found["tables"]}
    assert ladder["emp by county x naics2"]["share"] == ladder["count by county x naics2"]["share"]
    assert ladder["emp by county x naics2"]["share"] + ladder["emp by county x naics4"]["share"] == 1
    shown = run(*words).stdout
    assert "times its goal" in shown


@pytest.mark.costly
def test_fitness_lists_every_family_and_what_it_needs(folder, run_json):
    found = run_json("plan", "recommend", folder / "plan.toml", "--by-table", *EMP, "--data", "synthetic")
    names = {each["name"] for each in found["families"]}
    assert "as in the plan" in names
    assert len(names) + len(found["infeasible"]) == 8
    assert all(table["share_met"] >= 0.9 for each in found["families"] for table in each["tables"])


@pytest.mark.costly
def test_recommend_tries_the_best_clamp_on_request(folder, run_json):
    words = ("plan", "recommend", folder / "plan.toml", *EMP, "--data", "synthetic")
    tried = run_json(*words, "--clamps")
    named = [*(each["name"] for each in tried["families"]), *tried["infeasible"]]
    assert any(name.startswith("clamped at") for name in named)


@pytest.mark.costly
def test_recommend_writes_a_plan_that_check_accepts(folder, run):
    out = folder / "new" / "plan.toml"
    result = run("plan", "recommend", folder / "plan.toml", *EMP, "--data", "synthetic", "--out", out)
    assert result.exit_code == 0, result.output
    assert "meets the goals with the smallest balanced (geometric mean of median and 99th-percentile) loss" in " ".join(
        result.stdout.split()
    )
    assert run("check", out).exit_code == 0
    assert load_plan(out).tuned_on == "synthetic"
    again = run("plan", "recommend", folder / "plan.toml", *EMP, "--data", "synthetic", "--out", out)
    assert again.exit_code == 2
    assert "already exists" in again.stderr


@pytest.mark.costly
def test_a_plan_recommended_from_confidential_records_is_not_accepted_without_a_reason(folder, run, terminal):
    words = ("plan", "recommend", folder / "plan.toml", *EMP, "--out")
    assert run(*words, folder / "a.toml").exit_code == 0
    refused = run("check", folder / "a.toml")
    assert refused.exit_code == 2
    assert "tuning_reason" in refused.stderr
    assert run(*words, folder / "b.toml", "--tuning-reason", "totals are public").exit_code == 0
    accepted = run("check", folder / "b.toml")
    assert accepted.exit_code == 0, accepted.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("compare", "--statistic", "employees"), "'employees' is not a statistic of the plan"),
        (("compare", "--table", "9"), "'9' is not a table of the plan"),
        (("compare", "--data", "mine"), "must be one of"),
        (("compare", "--statistic", "emp", "--variance", "400"), "at_total is required"),
        (("compare", "--variance", "emp=400", "--variance", "5"), "all of the form NAME=NUMBER"),
        (("compare", "--variance", "4", "--variance", "5"), "--variance is given twice"),
        (("compare", "--variance", "emp=400", "--at-total", "500"), "has no number for 'count'"),
        (("compare", "--plot", "a.gif"), "is not a .png"),
        (("compare", "--threshold", "5", "--rho", "1"), "must be given for each of emp, payann"),
        (("compare", "--statistic", "emp", "--threshold", "x", "--rho", "1"), "thresholds must be a finite number"),
        (("compare", "--statistic", "count", "--threshold", "5", "--rho", "1"), "a count has no thresholds"),
        (("recommend", "--by-table", "--statistic", "emp", "--within", "-1"), "within must be above 0"),
        (("recommend", "--by-table", "--within", "emp=0.1"), "has no number for 'count'"),
        (("recommend", "--keep-mechanisms", "--within", "0"), "within must be above 0"),
        (("recommend", "--within", "0.1", "--at-least", "payan=5"), "names 'payan', which the plan does not publish"),
        (("recommend", "--within", "0.1", "--at-least", "payan=5"), "did you mean 'payann'"),
        (("recommend", "--by-table", "--within", "emp=.1", "--within", "payroll=.1"), "names 'payroll', which"),
        (("compare", "--statistic", "emp", "--threshold", "5"), "must be given together"),
        (("recommend", "--by-table", "--within", "0.1", "--out", "new.toml"), "is for the plan of the best family"),
        (("recommend", "--by-table", "--within", "0.1", "--clamps"), "is for the families of a whole plan"),
        (("frontier", "--rank-by", "mean"), "rank_by must be one of"),
        (("frontier", "--loss-at", "emp:1"), "is not of the form RECORD:LOSS"),
        (("frontier", "--median", "1", "--plot", "a.png"), "--plot is for the whole frontier"),
        (("frontier", "--median", "1", "--loss", "1"), "--loss is for the whole frontier"),
        (("recommend", "--within", "0.1", "--rank-by", "mean"), "rank_by must be one of"),
        (("recommend", "--within", "0.1", "--table", "1", "--statistic", "n"), "'n' is not a statistic of the plan"),
    ],
)
@pytest.mark.costly
def test_bad_input_ends_with_a_sentence(folder, run, words, told, terminal):
    command, *rest = words
    result = run("plan", command, folder / "plan.toml", *rest)
    assert result.exit_code == 2
    assert told in result.stderr
    assert "Traceback" not in result.output
    machine = run("plan", command, folder / "plan.toml", *rest, "--json")
    assert told in json.loads(machine.stdout)["message"]


def test_a_look_at_records_that_are_not_confidential_touches_no_ledger(folder, run):
    words = ("plan", "compare", folder / "plan.toml", "--statistic", "emp", "--data", "synthetic")
    assert run(*words).exit_code == 0
    assert not (folder / "small.ledger").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("compare",),
        ("compare", "--statistic", "emp", "--threshold", "20", "--rho", "1"),
        ("recommend", *EMP),
        ("recommend", "--by-table", *EMP),
        ("recommend", "--keep-mechanisms", *EMP),
        ("frontier", "--statistic", "count", "--loss", "2"),
    ],
)
@pytest.mark.costly
def test_a_look_at_confidential_records_is_noted_and_a_release_then_needs_a_reason(folder, run, words, terminal):
    command, *rest = words
    assert run("plan", command, folder / "plan.toml", *rest).exit_code == 0
    shown = run("ledger", "show", folder / "small.ledger").stdout
    assert "confidential records were viewed" in " ".join(shown.split())
    checked = run("check", folder / "plan.toml")
    assert "will be refused unless the plan gives tuning_reason" in " ".join(
        checked.stdout.split() + checked.stderr.split()
    )
    refused = run("release", folder / "plan.toml", "--out", folder / "out", "--yes")
    assert refused.exit_code != 0
    assert "records were viewed" in " ".join(refused.stderr.split())
    assert not (folder / "out").exists()
    plan = (folder / "plan.toml").read_text()
    (folder / "plan.toml").write_text(plan.replace("[schema]", 'tuning_reason = "agreed"\n\n[schema]', 1))
    assert run("release", folder / "plan.toml", "--out", folder / "out", "--yes").exit_code == 0
    assert run("ledger", "verify", folder / "small.ledger", "--against", folder / "out").exit_code == 0


MORE = r"""
[keys.listed]
file = "listed.csv"

[[queries]]
where = "emp > 3"
group_by = "county"
keys = ["listed"]
avg.emp = { sum = { kind = "Gaussian", sigma = 40 }, count = { kind = "Gaussian", rho = 0.05 } }

[[queries]]
sql = "SELECT COUNT(*) AS n FROM t WHERE naics = '722511'"
mechanisms = { "*" = { kind = "Gaussian", rho = 0.02 } }

[outputs]
csv = false
confidence = 0.9

[examples]
shop = { emp = 4, payann = 140 }

[labels]
emp = "how many \"people\" work here"
"""


@pytest.fixture
def rich(folder):
    """A plan with everything in it, and a release of it already charged."""
    (folder / "listed.csv").write_text("county\n06037\n")
    (folder / "plan.toml").write_text((folder / "plan.toml").read_text() + MORE)
    return folder / "plan.toml"


@pytest.mark.costly
def test_a_recommended_plan_carries_everything_else_over(rich, folder, run):
    """It was written with a ledger of its own and no budget, so that the same records could be spent anew."""
    out = folder / "new" / "plan.toml"
    result = run("plan", "recommend", rich, *EMP, "--data", "synthetic", "--out", out)
    assert result.exit_code == 0, result.output
    old, new = load_plan(rich), load_plan(out)
    assert new.ledger.resolve() == old.ledger.resolve()
    assert new.budget == old.budget
    assert new.budget is not None
    assert (new.dataset, new.words, new.examples) == (old.dataset, old.words, old.examples)
    assert (new.formats, new.confidence, new.plan.schema) == (old.formats, old.confidence, old.plan.schema)
    assert [Path(each).resolve() for each in new.source] == [Path(each).resolve() for each in old.source]
    changed = [each for query in new.plan.queries for each in query.draws() if each.planned_as == "emp"]
    assert [each.alias for query in new.plan.queries for each in query.statistics] == [
        each.alias for query in old.plan.queries for each in query.statistics
    ]
    assert len(changed) == 2
    same = [replace(each, statistics=()) for each in old.plan.queries]
    assert [replace(each, statistics=()) for each in new.plan.queries] == same
    for before, after in zip(old.plan.queries, new.plan.queries):
        kept = [each for each in before.draws() if each.planned_as != "emp"]
        assert [each for each in after.draws() if each.planned_as != "emp"] == kept
    assert run("check", out).exit_code == 0


@pytest.mark.costly
def test_the_budget_holds_over_the_plan_and_what_was_recommended_from_it(folder, run):
    out = folder / "elsewhere" / "plan.toml"
    assert run("release", folder / "plan.toml", "--out", folder / "a", "--yes").exit_code == 0
    assert run("plan", "recommend", folder / "plan.toml", *EMP, "--data", "synthetic", "--out", out).exit_code == 0
    spent = run("release", out, "--out", folder / "b", "--yes")
    run("release", out, "--out", folder / "revised", "--yes", "--again")
    refused = run("release", out, "--out", folder / "c", "--yes", "--again")
    assert spent.exit_code == 3 or refused.exit_code == 3
    assert "does not cover" in spent.stderr + refused.stderr
    assert [path.name for path in folder.rglob("*.ledger")] == ["small.ledger"]


@pytest.mark.parametrize(
    "before, data, reason, told",
    [
        (("synthetic", None), "public", None, ("synthetic", None)),
        (("public", None), "past", None, ("past", None)),
        (("confidential", "agreed"), "synthetic", None, ("confidential", "agreed")),
        (("confidential", "agreed"), "confidential", "again", ("confidential", "agreed; again")),
        (("public", None), "confidential", "again", ("confidential", "again")),
    ],
)
@pytest.mark.costly
def test_a_recommended_plan_says_what_all_of_it_was_tuned_on(folder, run, before, data, reason, told, terminal):
    tuned = f'tuned_on = "{before[0]}"' + (f'\naccept_tuning = "{before[1]}"' if before[1] else "")
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text().replace('tuned_on = "synthetic"', tuned))
    given = ("--tuning-reason", reason) if reason else ()
    words = ("plan", "recommend", plan, *EMP, "--data", data, "--out", folder / "new.toml", *given)
    assert run(*words).exit_code == 0
    found = load_plan(folder / "new.toml")
    assert (found.tuned_on, found.tuning_reason) == told


SQL = """[[queries]]
sql = "SELECT county, COUNT(*) AS n, SUM(emp) AS e FROM t GROUP BY county"
keys = { rows = { county = ["06037"] } }
mechanisms = { "*" = { kind = "Gaussian", rho = 0.02 }, emp = { kind = "UnitSplit", at = 20, rho = 0.5 } }
"""


@pytest.mark.costly
def test_sql_gets_its_mechanisms_under_the_names_it_has_for_them(folder, run):
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text()[: plan.read_text().index("[[queries]]")] + SQL)
    words = ("plan", "recommend", plan, "--within", "0.5", "--statistic", "e", "--data", "synthetic")
    result = run(*words, "--out", folder / "new.toml")
    assert result.exit_code == 0, result.output
    old, new = load_plan(plan).plan.queries[0], load_plan(folder / "new.toml").plan.queries[0]
    assert [each.alias for each in new.statistics] == ["n", "e"]
    assert new.statistics[0] == old.statistics[0]
    assert new.statistics[1].mechanism != old.statistics[1].mechanism
    assert (new.groups, new.key_lists) == (old.groups, old.key_lists)


@pytest.mark.parametrize(
    ("more", "code"), [("AVG(emp) AS a", 0), ("SUM(emp) AS f", 2)], ids=["an average follows", "another sum does not"]
)
@pytest.mark.costly
def test_sql_where_one_mechanism_serves_two_statistics_is_not_guessed(folder, run, more, code):
    plan = folder / "plan.toml"
    two = SQL.replace("SUM(emp) AS e FROM t", f"SUM(emp) AS e, {more} FROM t")
    plan.write_text(plan.read_text()[: plan.read_text().index("[[queries]]")] + two)
    words = ("plan", "recommend", plan, "--within", "0.5", "--statistic", "e", "--data", "synthetic")
    result = run(*words, "--out", folder / "new.toml")
    assert result.exit_code == code, result.output
    if code:
        assert "serves two statistics" in result.stderr
    else:
        new = load_plan(folder / "new.toml").plan.queries[0]
        assert new.statistics[2].sum == new.statistics[1].mechanism


@pytest.mark.costly
def test_a_recommended_plan_of_several_levels_and_statistics_keeps_its_queries(levels, folder, run, run_json):
    """It was written as six queries of one statistic each, without counts, budget or labels."""
    words = (
        "plan",
        "recommend",
        levels,
        "--table",
        "ladder",
        "--within",
        "0.5",
        "--share",
        "0.5",
        "--data",
        "synthetic",
    )
    result = run(*words, "--out", folder / "new.toml")
    assert result.exit_code == 0, result.output
    shown = " ".join(result.stdout.split())
    assert "What changes in the plan" in shown
    assert "county x naics4" in shown
    old, new = load_plan(levels).plan, load_plan(folder / "new.toml").plan
    assert [(each.name, each.key_lists, len(each.tables())) for each in new.queries] == [
        (each.name, each.key_lists, len(each.tables())) for each in old.queries
    ]
    assert [each.alias for each in new.queries[1].statistics] == ["count", "emp"]
    assert new.queries[0] == old.queries[0]
    assert sum(level.share for level in new.queries[1].tables()) == 1
    found = run_json(*words)
    assert {each["statistic"] for each in found["changes"]} == {"count", "emp"}
    assert all(each["query"] == "ladder" for each in found["changes"])
    best = next(each for each in found["families"] if each["name"] == found["best"])
    assert all(table["share_met"] >= 0.5 for table in best["tables"])


@pytest.mark.costly
def test_a_recommendation_that_protects_hardly_anybody_says_so_and_what_would_have_to_give(folder, run, run_json):
    plan = folder / "plan.toml"
    text = plan.read_text()
    plan.write_text(text[: text.index("[[budget]]")] + text[text.index("[keys.areas]") :])
    words = (
        "plan",
        "recommend",
        plan,
        "--within",
        "0.0005",
        "--statistic",
        "count",
        "--statistic",
        "emp",
        "--data",
        "synthetic",
    )
    shown = " ".join(run(*words).stdout.split())
    assert "of the records lose more than 5: hardly protected" in shown
    assert "A looser goal" in shown
    assert "Sized noise" in shown
    loose = run_json("plan", "recommend", plan, "--within", "0.9", "--share", "0.1", "--data", "synthetic")
    assert not any("hardly" in each for each in loose["notes"])


@pytest.mark.costly
def test_a_recommendation_stays_within_what_is_left_of_the_budget(folder, run, run_json):
    words = ("plan", "recommend", folder / "plan.toml", "--within", "0.02", "--data", "synthetic")
    before = run_json(*words)
    assert any("left of the budget" in each for each in before["notes"])
    assert run("release", folder / "plan.toml", "--out", folder / "a", "--yes").exit_code == 0
    result = run(*words, "--out", folder / "new.toml")
    assert result.exit_code == 0, result.output
    assert run("check", folder / "new.toml").exit_code == 0
    assert run("release", folder / "new.toml", "--out", folder / "b", "--yes").exit_code == 0


@pytest.mark.costly
def test_a_plan_without_a_budget_and_without_charges_gets_one_that_covers_it_and_a_revision(folder, run):
    plan = folder / "plan.toml"
    text = plan.read_text()
    plan.write_text(text[: text.index("[[budget]]")] + text[text.index("[keys.areas]") :])
    result = run("plan", "recommend", plan, "--within", "0.2", "--data", "synthetic", "--out", folder / "new.toml")
    assert result.exit_code == 0, result.output
    assert "a budget that covers it and a revision" in result.stdout
    assert run("release", folder / "new.toml", "--out", folder / "b", "--yes").exit_code == 0
    assert run("release", folder / "new.toml", "--out", folder / "revised", "--yes", "--again").exit_code == 0
    assert run("release", folder / "new.toml", "--out", folder / "c", "--yes", "--again").exit_code == 3
    later = run("plan", "recommend", plan, "--within", "0.2", "--data", "synthetic", "--out", folder / "later.toml")
    assert later.exit_code == 2
    assert "budget" in later.stderr


@pytest.mark.costly
def test_a_plan_without_a_budget_whose_ledger_was_charged_gets_none(folder, run):
    plan = folder / "plan.toml"
    text = plan.read_text()
    plan.write_text(text[: text.index("[[budget]]")] + text[text.index("[keys.areas]") :])
    assert run("release", plan, "--out", folder / "a", "--yes").exit_code == 0
    words = ("plan", "recommend", plan, *EMP, "--data", "synthetic", "--out", folder / "new.toml")
    assert run(*words).exit_code == 0
    assert load_plan(folder / "new.toml").budget is None


@pytest.mark.costly
def test_the_frontier_is_a_table_a_figure_and_a_file(folder, run, run_json):
    pytest.importorskip("matplotlib", reason="the plots extra is not installed: no figure is drawn here")
    words = ("plan", "frontier", folder / "plan.toml", "--statistic", "count", "--loss", "1", "--loss", "5")
    written = ("--out", folder / "frontier.csv", "--plot", folder / "frontier.svg")
    result = run(*words, "--data", "synthetic", *written)
    assert result.exit_code == 0, result.output
    assert "Today" in result.stdout
    lines = (folder / "frontier.csv").read_text().splitlines()
    assert len(lines) == 4
    assert lines[-1].startswith("today's plan,")
    assert (folder / "frontier.svg").stat().st_size > 5000
    assert len(run_json(*words, "--data", "synthetic")["points"]) == 2
    again = run(*words, "--data", "synthetic", *written)
    assert again.exit_code == 2
    assert "already exists" in again.stderr


@pytest.mark.costly
def test_the_best_plan_within_losses_keeps_them(folder, run, run_json):
    words = ("plan", "frontier", folder / "plan.toml", "--statistic", "count", "--median", "0.5", "--data", "synthetic")
    assert run_json(*words)["losses"]["median"] <= 0.5
    shown = run(*words, "--within-budget").stdout
    assert "The most reliable plan within these losses" in shown


@pytest.mark.costly
def test_the_best_plan_within_losses_is_written_as_a_plan(folder, run, run_json):
    out = folder / "new" / "plan.toml"
    words = ("plan", "frontier", folder / "plan.toml", "--statistic", "count", "--median", "0.5", "--data", "synthetic")
    result = run(*words, "--out", out)
    assert result.exit_code == 0, result.output
    assert "What changes in the plan" in result.stdout
    assert "of the cells are" in result.stdout
    assert run("check", out).exit_code == 0
    old, new = load_plan(folder / "plan.toml"), load_plan(out)
    assert (new.budget, new.ledger.resolve()) == (old.budget, old.ledger.resolve())
    before, after = old.plan.queries[0].statistics, new.plan.queries[0].statistics
    assert before[1:] == after[1:]
    assert before[0].mechanism != after[0].mechanism
    again = run_json(*words, "--out", out, exit_code=2)
    assert "already exists" in again["message"]
    told = run_json(*words)
    assert [each["statistic"] for each in told["changes"]] == ["count"]
