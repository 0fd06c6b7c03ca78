"""``recordwise check``: everything about a plan, and nothing of the data."""

import json
import re

import pytest

import recordwise as rw
from recordwise.errors import ParameterError


def change(folder, old, new):
    text = (folder / "plan.toml").read_text()
    assert text.count(old) == 1, old
    (folder / "plan.toml").write_text(text.replace(old, new))


@pytest.mark.costly
def test_a_plan_is_explained_without_its_data(folder, run):
    (folder / "establishments.parquet").unlink()
    result = run("check", folder / "plan.toml", "--no-source")
    assert result.exit_code == 0
    for words in (
        "0.00125 * emp^2",
        "2 * (ln(payann + 2000) - 7.6009)^2",
        "Losses at example records",
        "county_by_naics3",
        "UnitSplit(at=20, rho=0.5)",
        "Budget: covers the plan",
        "The source: not looked at.",
    ):
        assert words in result.stdout
    assert not (folder / "small.ledger").exists()


def test_a_wrong_path_is_a_problem(folder, run, run_json):
    assert "has the declared columns" in run("check", folder / "plan.toml").stdout
    (folder / "establishments.parquet").unlink()
    result = run("check", folder / "plan.toml")
    assert result.exit_code == 2
    assert "there is no such file" in result.stderr
    assert run_json("check", folder / "plan.toml", exit_code=2)["error"] == "SourceError"
    assert run("check", folder / "plan.toml", "--no-source").exit_code == 0


def test_what_does_not_fit_the_source_is_told_at_once_and_no_record_is_read(folder, run):
    change(folder, 'columns.naics = "text"', 'columns.naics = "boolean"\ncolumns.emp2 = "text"')
    change(folder, '{ prefix = "naics", length = 3 }', '"naics"')
    change(folder, 'naics = ["441110", "722511"]', "naics = [true, false]")
    result = run("check", folder / "plan.toml")
    assert result.exit_code == 2
    assert "it has no column emp2" in result.stderr
    assert "estab_id" in result.stderr
    change(folder, 'columns.emp2 = "text"', 'columns.payqtr1 = "text"')
    result = run("check", folder / "plan.toml")
    assert result.exit_code == 2
    told = " ".join(result.stderr.split())
    assert "column 'payqtr1' was refused: it is declared as text but stored as integer" in told


def test_the_expected_errors_are_those_of_the_noise_laws(folder, run_json):
    found = {row["variable"]: row for row in run_json("check", folder / "plan.toml")["expected_error"]}
    assert found["sum_emp"]["least_sd"] == pytest.approx([20, 20, 20], rel=1e-9)
    log = rw.LogTransform(offset=2000, sigma="0.5")
    # A usual record has a fifth of the offset and of the threshold.
    assert found["sum_payann"]["totals"] == [4_000, 40_000, 400_000]
    assert found["sum_emp"]["totals"] == [40, 400, 4_000]
    assert found["count"]["totals"] == [10, 100, 1_000]
    assert found["sum_payann"]["most_sd"] == pytest.approx(
        list(log.variance([4_000, 40_000, 400_000]) ** 0.5), rel=1e-12
    )
    assert found["count"]["cells"] == 4


@pytest.mark.costly
def test_example_losses_are_those_of_the_policy(folder, run_json):
    change(folder, "[keys.areas]", "[examples]\nshop = { emp = 4, payann = 140 }\n\n[keys.areas]")
    (found,) = run_json("check", folder / "plan.toml")["examples"]
    policy = (
        rw.Gaussian(rho="0.1").policy_of_count()
        + rw.UnitSplit(at=20, rho="0.5").policy("emp")
        + rw.LogTransform(offset=2000, sigma="0.5").policy("payann")
    )
    assert found["loss"] == policy.loss({"emp": 4, "payann": 140})
    assert found["epsilon"] == rw.policy.epsilon(found["loss"], 1e-5)


def test_all_problems_are_told_with_their_lines(folder, run, run_json):
    change(folder, 'kind = "UnitSplit", at = 20, rho = 0.5', 'kind = "UnitSplitt", at = 20, rho = 0.5')
    change(folder, 'tuned_on = "synthetic"', 'tuned_on = "nothing"')
    change(folder, "rho = 1\n", "rho = -1\n")
    lines = (folder / "plan.toml").read_text().splitlines()
    told = run_json("check", folder / "plan.toml", exit_code=2)["problems"]
    assert [lines[each["line"] - 1] for each in told] == [
        'tuned_on = "nothing"',
        "rho = -1",
        'sum.emp = { kind = "UnitSplitt", at = 20, rho = 0.5 }',
    ]
    plain = run("check", folder / "plan.toml")
    assert plain.exit_code == 2
    assert plain.stdout == ""
    assert all(f"line {each['line']}: " in plain.stderr for each in told)


@pytest.mark.costly
def test_a_plan_beyond_its_budget_ends_with_3_and_a_witness(folder, run, run_json):
    change(folder, "rho = 2\nat", "rho = 0.1\nat")
    result = run("check", folder / "plan.toml")
    assert result.exit_code == 3
    assert "Budget: refused" in result.stdout
    assert "a release would be refused, by its budget" in " ".join(result.stdout.split())
    assert "no problem found" not in result.stdout
    told = run_json("check", folder / "plan.toml", exit_code=3)
    assert told["budget"] == "refused"
    assert "Nothing was spent" in told["refusal"]


@pytest.mark.parametrize("number", ["1e300", "1e70"])
def test_a_budget_beyond_all_numbers_is_told_with_its_line(folder, run, number):
    change(folder, "rho = 1\n", f"rho = {number}\n")
    result = run("check", folder / "plan.toml")
    assert result.exit_code == 2
    assert re.search(r"plan\.toml was refused.*line \d+: budget\[1\]\.rho: rho must be", result.stderr, re.DOTALL)


def test_noise_beyond_all_numbers_is_told_with_its_table(folder, run):
    change(folder, 'count = { kind = "Gaussian", rho = 0.1', 'count = { kind = "Gaussian", rho = 1e50')
    result = run("check", folder / "plan.toml")
    assert result.exit_code == 2
    assert "the noise of count in " in " ".join(result.stderr.split())


def test_a_ledger_in_a_folder_that_is_missing_is_told(folder, run):
    assert "ledger's folder" not in run("check", folder / "plan.toml").stdout
    change(folder, 'ledger = "', 'ledger = "missing/')
    assert "missing, does not exist: a release is refused" in " ".join(
        run("check", folder / "plan.toml").stdout.split()
    )


@pytest.mark.costly
def test_what_the_ledger_holds_already_counts(released, run):
    assert run("check", released / "plan.toml").exit_code == 0
    run("release", released / "plan.toml", "--out", released / "second", "--yes", "--again")
    assert (released / "second").exists()
    assert run("check", released / "plan.toml").exit_code == 3


def test_without_a_budget_the_condition_of_the_guarantee_is_told(folder, run):
    text = (folder / "plan.toml").read_text()
    start, end = text.index("[[budget]]"), text.index("[keys.areas]")
    (folder / "plan.toml").write_text(text[:start] + text[end:])
    assert "only if this list of queries was fixed in advance" in run("check", folder / "plan.toml").stdout.replace(
        "\n  ", " "
    )


def test_a_clamped_sum_is_told_to_be_biased(folder, run):
    change(folder, 'kind = "UnitSplit", at = 20, rho = 0.5', 'kind = "Clamped", to = 20, rho = 0.5')
    assert "sum_emp is clamped" in run("check", folder / "plan.toml").stdout


def test_examples_are_made_up_from_public_thresholds(folder, run_json):
    found = {row["name"]: row["record"] for row in run_json("check", folder / "plan.toml")["examples"]}
    assert found["usual large"] == "emp 20, payann 2,000"
    assert found["giant"] == "emp 20,000, payann 2,000,000"


def test_examples_that_a_small_bound_makes_equal_are_shown_once(folder, run_json):
    change(folder, "measures.emp = 1", "measures.emp = { step = 1, bound = 20 }")
    change(folder, "measures.payann = 1", "measures.payann = { step = 1, bound = 2000 }")
    found = {row["name"]: row["record"] for row in run_json("check", folder / "plan.toml")["examples"]}
    assert found == {"small": "emp 2, payann 200", "usual large": "emp 20, payann 2,000"}
    text = (folder / "plan.toml").read_text().partition("sum.emp")[0]
    (folder / "plan.toml").write_text(text)
    assert [row["name"] for row in run_json("check", folder / "plan.toml")["examples"]] == ["every record"]


def test_a_group_without_a_promise_is_refused_by_any_budget(folder, run):
    at = 'at = { by = "naics", values = { "441110" = 20, "722511" = 20 } }'
    change(folder, 'kind = "UnitSplit", at = 20, rho = 0.5', f'kind = "UnitSplit", {at}, rho = 0.5')
    change(folder, '{ prefix = "naics", length = 3 }', '"naics"')
    change(folder, "[keys.areas]", '[examples]\nshop = { emp = 4, payann = 140, naics = "1" }\n\n[keys.areas]')
    result = run("check", folder / "plan.toml")
    assert result.exit_code == 3
    assert "shop: column 'naics' contains a group that is not covered by this policy" in result.stdout


@pytest.mark.costly
def test_selected_keys_show_their_delta_and_quantiles_their_error(folder, run, run_json):
    text = (folder / "plan.toml").read_text()
    head, _, _ = text.partition("[keys.areas]")
    budget = "[[budget]]\nselect = { rho = 0.1, delta = 1e-6, pieces = { emp = 50 } }\n\n"
    query = (
        '[[queries]]\ngroup_by = "county"\n'
        "keys = { select = { rho = 0.1, delta = 1e-6, pieces = { emp = 50 } } }\n"
        "quantile.emp = { p = 0.5, rho = 0.1, grid = { log = [1, 1e5] } }\n"
    )
    (folder / "plan.toml").write_text(head + budget + query)
    result = run("check", folder / "plan.toml")
    assert result.exit_code == 0, result.output
    assert "epsilon at 1e-05 + delta" in result.stdout
    assert "median_emp: cells of 10, 100 and 1,000 usual records, with made-up records." in result.stdout
    told = run_json("check", folder / "plan.toml")
    (quantile,) = told["expected_error"]
    assert quantile["cells"] is None
    assert quantile["most_sd"][0] > quantile["most_sd"][-1] > 0
    assert all(0 < row["selection_delta"] < row["delta"] for row in told["examples"])
    assert run("release", folder / "plan.toml", "--out", folder / "out", "--yes").exit_code == 0


def test_python_gets_what_the_command_prints(folder, run_json, tmp_path):
    found = rw.planning.check(folder / "plan.toml")
    printed = run_json("check", folder / "plan.toml")
    assert json.loads(json.dumps(found.to_json(), default=str)) == printed
    assert "no record was read" in repr(found)
    page = found._repr_html_()
    assert "Losses at example records" in page
    assert "Expected error: county_by_naics3" in page
    assert found.summary() in found.to_json()["words"]
    assert len(found.save(tmp_path / "losses.csv").read_text().splitlines()) == 1 + len(printed["examples"])
    with pytest.raises(ParameterError, match="already exists"):
        found.save(tmp_path / "losses.csv")
