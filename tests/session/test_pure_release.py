"""Releases under a budget in pure epsilon: plan file, ledger, refusals, files, page, firms and the command line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import quickjs
from typer.testing import CliRunner

import recordwise as rw
from build import employers, records, session
from recordwise.cli import app
from recordwise.engines.owner import EDGES
from recordwise.errors import BudgetError, LedgerError, ParameterError, PlanFileError, SourceError
from recordwise.ledger.ledger import Ledger
from recordwise.plan.cost import plan_policy
from recordwise.policy import Policy, constant, meaning, pure_budget
from recordwise.policy.meaning import likely_log_odds
from recordwise.release.page.page import model_js, page_file
from recordwise.release.page.questions import SENTENCES, details
from recordwise.release.page.view import payload, view_of
from recordwise.release.verify import verify

LAPLACE = rw.GeneralizedGaussian(shape=1, scale=500)
BY_COUNTY = rw.query().group_by("county", keys=rw.Keys.of({"county": ["01", "02", "03"]}))
PURE = BY_COUNTY.count(rw.GeneralizedGaussian(shape=1, scale=4), alias="n").sum("emp", LAPLACE)
MIXED = PURE.sum("pay", rw.Gaussian(sigma=4000))
PLAN = """\
dataset = "small"
source = "records.parquet"
ledger = "small.ledger"
tuned_on = "synthetic"
max_outside = "accept"
schema = { unit = "id", firm = "firm", measures = { emp = { step = 1, bound = 5000 } }, columns = { county = "text" } }
budget = [BUDGET]
examples = { small = { emp = 4 }, large = { emp = 2000 } }

[[queries]]
group_by = ["county"]
keys = { rows = { county = ["01", "02", "03"] } }
count = { kind = "GeneralizedGaussian", shape = 1, scale = 4 }
sum.emp = { kind = "GeneralizedGaussian", shape = 1, scale = 500 }
"""


def small(**more: Any) -> rw.Session:
    return session(records(200), measures={"emp": rw.plan.Measure.of("emp", step=1, bound=5000), "pay": 1}, **more)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    pq.write_table(records(200), tmp_path / "records.parquet")
    return tmp_path


def written(place: Path, budget: str) -> Path:
    (place / "plan.toml").write_text(PLAN.replace("BUDGET", budget))
    return place / "plan.toml"


def run(*words: Any) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})


@pytest.mark.theorem("T-PURE")
@pytest.mark.costly
def test_a_pure_budget_is_charged_in_epsilon_and_refuses_when_it_is_used_up(tmp_path: Path) -> None:
    with small(ledger=tmp_path / "a.ledger", budget=pure_budget("10.5")) as opened:
        release = opened.run(PURE)
        assert release.policy.epsilon_pure({"emp": 5000, "county": "01"}) == 10.25
        assert opened.remaining({"emp": 5000, "county": "01"}) == pytest.approx(0.25)
        with pytest.raises(BudgetError, match=r"emp=2501 it needs pure epsilon 5\.252 and 5\.248 is left"):
            opened.run(PURE)
        # What is left is spent exactly.
        opened.run(BY_COUNTY.count(rw.GeneralizedGaussian(shape=1, scale=4)))
        assert opened.remaining({"emp": 5000, "county": "01"}) == 0
    assert verify(tmp_path / "a.ledger") == []
    found = Ledger.existing(tmp_path / "a.ledger")
    assert found.budget == pure_budget("10.5")
    assert "pure differential privacy" in found.history()[0].body["guarantee"]
    found.close()


def test_what_has_no_pure_loss_is_refused_and_nothing_is_charged(tmp_path: Path) -> None:
    with small(ledger=tmp_path / "a.ledger", budget=pure_budget(10**9, {"emp": 1, "pay": 1})) as opened:
        for asked in (MIXED, BY_COUNTY.count(rw.Gaussian(rho="0.001"))):
            with pytest.raises(BudgetError, match="budget is in pure epsilon, and this has none"):
                opened.run(asked)
        assert [event.kind for event in opened.history()] == ["opened"]
        opened.run(PURE)
    # The same ledger with a zCDP budget of the same numbers is another budget.
    with pytest.raises(LedgerError, match="another budget"):
        small(ledger=tmp_path / "a.ledger", budget=constant(10**9))


@pytest.mark.costly
def test_a_refusal_names_the_gaussian_statistics_and_laplace_noise_as_accurate(place: Path) -> None:
    """What it says can be pasted, and is then within the budget."""
    plan = written(place, "{ pure_epsilon = 9 }")
    laplace = plan.read_text()
    mixed = laplace.replace(
        'count = { kind = "GeneralizedGaussian", shape = 1, scale = 4 }', 'count = { kind = "Gaussian", sigma = 3 }'
    )
    plan.write_text(mixed.replace("scale = 500", "scale = 1000"))
    refused = run("check", plan).stdout
    assert "Without a pure epsilon: count." in " ".join(refused.split())
    assert "costs every example less" not in refused, "Gaussian noise costs less in rho, and has no pure epsilon"
    (line,) = [each.strip() for each in refused.splitlines() if each.strip().startswith("- count: ")]
    assert line == '- count: { kind = "GeneralizedGaussian", shape = 1, scale = 2.12 }'
    plan.write_text(
        mixed.replace("scale = 500", "scale = 1000").replace('{ kind = "Gaussian", sigma = 3 }', line.split(": ", 1)[1])
    )
    assert "covers the plan in pure epsilon" in run("check", plan).stdout
    assert run("release", plan, "--out", place / "out", "--yes").exit_code == 0
    shown = run("ledger", "show", place / "small.ledger").stdout
    assert shown.count("pure epsilon") == 2
    assert "emp / 1000" in shown.split("Spent")[1].split("Budget")[0]


@pytest.mark.costly
def test_recommendations_under_a_pure_budget_have_a_pure_epsilon(place: Path) -> None:
    plan = rw.load_plan(written(place, "{ pure_epsilon = 2, at = { emp = 5 } }"))
    goals = {"within": "0.5", "share": "0.5"}
    with rw.Session.from_plan(plan) as opened:
        asked = rw.planning.plan_goals(opened, plan, **goals)
        found = rw.planning.recommend(opened, asked, plan=plan, data="synthetic")
        assert "Laplace" in [each.name for each in found.candidates]
        assert all(each.policy.pure_problem() is None for each in found.candidates)
        both = {"Gaussian": rw.Gaussian(sigma=1), "Laplace": rw.GeneralizedGaussian(shape=1, scale=1)}
        some = rw.planning.recommend(opened, asked, plan=plan, candidates=both, data="synthetic")
        assert some.best.name == "Laplace"
        assert "no pure epsilon" in some.infeasible["Gaussian"]
        with pytest.raises(ParameterError, match="have no pure epsilon"):
            rw.planning.recommend(
                opened, asked, plan=plan, candidates={"Gaussian": rw.Gaussian(sigma=1)}, data="synthetic"
            )


@pytest.mark.theorem("T-MEANING")
def test_odds_that_a_pure_loss_limits_are_not_called_likely_to_pass_the_limit(place: Path) -> None:
    """In `loss` and on the page: the smaller of what the pure and the zCDP loss say."""
    plan = written(place, "{ pure_epsilon = 11 }")
    assert run("release", plan, "--out", place / "out", "--yes").exit_code == 0
    small, large = (run("loss", place / "out" / "policy.json", f"emp={emp}").stdout for emp in (40, 5000))
    assert "in no case by more than 1.39" in small
    assert "with probability at most 5%" not in small + large
    assert likely_log_odds(9.0, pure=10.25) == 10.25
    assert likely_log_odds(0.01, pure=3.0) == likely_log_odds(0.01) < 3
    assert details(0.05, 0.0, pure=0.33)[-1] == SENTENCES["never"].format(tail="1.39")
    assert details(0.01, 0.0, pure=3.0)[-1] == details(0.01, 0.0)[-1]


def test_a_mixed_plan_falls_back_to_zcdp_and_says_so() -> None:
    with small() as opened:
        (warning,) = opened.warnings_of(MIXED)
        assert "only some of it has a pure loss" in warning
        assert "sum_pay" in warning
        assert opened.warnings_of(PURE) == ()
        assert opened.policy_of(MIXED).pure_problem()
        assert opened.policy_of(PURE).pure_problem() is None


@pytest.mark.costly
def test_releases_say_whether_their_loss_is_pure_and_files_that_disagree_are_refused(tmp_path: Path) -> None:
    with small() as opened:
        pure, mixed = opened.run(PURE), opened.run(MIXED)
    for release, is_pure in ((pure, True), (mixed, False)):
        folder = tmp_path / str(is_pure)
        release.save(folder)
        policies = json.loads((folder / "policy.json").read_text())
        assert json.loads((folder / "release.json").read_text())["pure_epsilon"] is is_pure
        assert ("pure" in policies) is is_pure
        assert rw.read(folder).policy == release.policy
    assert Policy.from_json(json.loads((tmp_path / "True" / "policy.json").read_text())["pure"]) == pure.policy.pure()
    planted = json.loads((tmp_path / "True" / "policy.json").read_text())
    planted["pure"] = pure_budget("0.001").to_json()
    (tmp_path / "True" / "policy.json").write_text(json.dumps(planted))
    with pytest.raises(SourceError, match="pure losses"):
        rw.read(tmp_path / "True")


def test_the_page_computes_pure_losses_of_records_and_firms_as_python_does() -> None:
    budget = pure_budget(10**6)
    with small(budget=budget) as opened:
        release = opened.run(PURE)
    view = view_of(release, {})
    assert payload(view)["pureBudget"] is True
    context = quickjs.Context()
    context.eval(f"const model = {model_js(release.policy, release.parts, view.budget, release.firms)};")
    assert context.eval("model.pure({emp: 700, county: '01'})") == pytest.approx(1.65)
    assert context.eval("model.budget({emp: 700})") == 10**6
    units = {"emp": [700, 30, 4], "county": ["01", "01", "02"]}
    rows = [{"record": {"emp": emp, "county": c}, "place": {"county": c}} for emp, c in zip(*units.values())]
    for typed in (rows, [row | {"place": {}} for row in rows]):
        known = release.firms.loss(units if typed is rows else {"emp": units["emp"]})
        found = json.loads(context.eval(f"JSON.stringify(model.firm({json.dumps(typed)}))"))
        assert found["epsilon"] == pytest.approx(known.epsilon, rel=1e-9)
        assert found["rho"] == pytest.approx(known.rho, rel=1e-9)
    context.eval(page_file("pure.js"))
    for emp in (0, 700, 5000):
        record, rho = json.dumps({"emp": emp}), float(release.policy.loss({"emp": emp}))
        told = meaning(rho, pure=float(release.policy.epsilon_pure({"emp": emp})))
        known = json.dumps({"epsilon": meaning(rho).epsilon, "power": meaning(rho).power})
        found = json.loads(context.eval(f"JSON.stringify(withPure({known}, {record}))"))
        assert found["epsilon"] == pytest.approx(told.epsilon, rel=1e-9)
        assert found["power"] == pytest.approx(told.power, rel=1e-9)
        assert found["from"] == "the pure loss"
    with small() as opened:
        mixed = opened.run(MIXED)
    context.eval(f"const other = {model_js(mixed.policy, mixed.parts, None, mixed.firms)};")
    assert context.eval("other.pure === undefined")


@pytest.mark.theorem("T-PURE")
def test_the_owner_sees_the_pure_losses_of_records_and_firms() -> None:
    rows = records(200)
    with small() as opened:
        policy = opened.policy_of(PURE).pure()
        columns = {"emp": rows["emp"].to_numpy(), "county": rows["county"].to_pylist()}
        losses = policy.loss(columns)
        found = opened.owner.loss_summary(policy, data="synthetic")
        np.testing.assert_array_equal(found.counts, counted(losses))
        firms = rows["firm"].to_numpy()
        added = np.bincount(firms, weights=losses)[np.unique(firms)]
        same_counts(opened.owner.firm_loss_summary(policy), added)
        # Laplace noise: what units change together costs the sum of what they cost alone.
        same_counts(opened.owner.firm_loss_summary(PURE, pure=True), added)
        with pytest.raises(ParameterError, match="no pure epsilon"):
            opened.owner.firm_loss_summary(MIXED, pure=True)
        with pytest.raises(ParameterError, match="bound"):
            opened.owner.firm_loss_summary(policy, bound="sum of pure epsilons")
        # Under zCDP a firm loses at most eps tanh(eps/2) of the count in each cell, as Python finds firm by firm.
        firm = rw.plan.cost.firm_policy(rw.plan.Plan(schema=opened.schema, queries=(PURE,)))
        single = [
            firm.loss({name: np.asarray(column)[firms == each] for name, column in columns.items()}).rho
            for each in np.unique(firms)
        ]
        same_counts(opened.owner.firm_loss_summary(PURE), np.array(single))


def counted(values: Any) -> Any:
    return np.bincount(np.searchsorted(EDGES, values, side="left"), minlength=len(EDGES) + 1)


def same_counts(found: Any, values: Any) -> None:
    """Sums in another order may move a firm across an edge that it stands on."""
    low, high = (np.cumsum(counted(values * (1 + sign * 1e-9))) for sign in (-1, 1))
    risen = np.cumsum(found.counts)
    assert np.all(high <= risen)
    assert np.all(risen <= low)


def test_a_firm_of_many_units_in_a_cell_of_a_count_loses_linearly_not_quadratically() -> None:
    with small() as opened:
        firm = rw.plan.cost.firm_policy(
            rw.plan.Plan(schema=opened.schema, queries=(BY_COUNTY.count(rw.GeneralizedGaussian(shape=1, scale=4)),))
        )
    found = firm.loss({"county": ["01"] * 100})
    assert found.epsilon == pytest.approx(25)
    assert found.rho == pytest.approx(25, rel=1e-6)
    # Below its true value no bound may be: Laplace noise moved by 100.
    assert found.rho >= rw.GeneralizedGaussian(shape=1, scale=4).policy("n").loss({"n": 100})


@pytest.mark.costly
def test_plan_files_state_pure_budgets_and_check_and_loss_show_them(place: Path) -> None:
    plan = written(place, "{ pure_epsilon = 11 }")
    file = rw.load_plan(plan)
    assert file.budget == pure_budget(11)
    assert plan_policy(file.plan).pure_problem() is None
    checked = run("check", plan)
    assert checked.exit_code == 0
    assert "pure epsilon" in checked.stdout
    assert "covers the plan in pure epsilon" in checked.stdout
    assert [each["pure_epsilon"] for each in rw.planning.check(plan).examples] == [0.258, 4.25]
    released = run("release", plan, "--yes", "--out", place / "out")
    assert released.exit_code == 0, released.output
    found = json.loads(run("loss", place / "out" / "policy.json", "emp=700", "--json").stdout)
    assert found["pure_epsilon"] == pytest.approx(1.65)
    assert found["epsilon"] == pytest.approx(1.65)
    assert found["epsilon_from"] == "the pure loss"
    assert "pure epsilon      1.65 at delta 0" in run("loss", place / "out" / "policy.json", "emp=700").stdout
    (place / "firm.csv").write_text("emp,county\n700,01\n30,01\n")
    firm = json.loads(run("loss", place / "out" / "policy.json", "--firm", place / "firm.csv", "--json").stdout)
    assert firm["pure_epsilon"] == pytest.approx(0.5 + 730 / 500)
    history = json.loads(run("loss", place / "small.ledger", "emp=700", "--json").stdout)
    assert history["pure_epsilon"] == pytest.approx(1.65)
    assert history["periods"][0]["left"] == pytest.approx(11 - 1.65)
    assert history["periods"][0]["left_in"] == "epsilon"
    assert "9.35 of pure epsilon" in run("loss", place / "small.ledger", "emp=700").stdout
    shown = json.loads(run("ledger", "show", place / "small.ledger", "--plan", plan, "--json").stdout)
    assert shown["examples"]["large"][0] == {"period": "small", "loss": 4.25, "left": 6.75}
    assert "pure epsilon 11" in run("ledger", "show", place / "small.ledger").stdout
    assert "pure epsilon" in run("release", plan, "--yes", "--again", "--out", place / "more").output
    assert not (place / "more").exists()


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ("{ pure_epsilon = 11 }, { rho = 1 }", "mixes parts in pure_epsilon with parts in rho"),
        ("{ pure_epsilon = 11, rho = 1 }", "pure_epsilon alone"),
        ('{ pure_epsilon = 11, at = { emp = 5 }, growth = "square" }', "pure_epsilon alone"),
        ("{ pure_epsilon = -1 }", "pure_epsilon"),
        ('{ measure = "emp", mechanism = { kind = "Gaussian", sigma = 5 }, pure = true }', "no pure epsilon"),
    ],
)
def test_plan_files_refuse_pure_budgets_that_mean_nothing(place: Path, budget: str, words: str) -> None:
    with pytest.raises(PlanFileError, match=words):
        rw.load_plan(written(place, budget))


def test_pure_budgets_may_grow_with_the_record(place: Path) -> None:
    file = rw.load_plan(written(place, "{ pure_epsilon = 0.5, at = { emp = 100 } }"))
    assert file.budget == pure_budget("0.5", {rw.policy.Measure("emp"): 100})
    mechanism = '{ kind = "GeneralizedGaussian", shape = 1, scale = 500 }'
    text = f'{{ measure = "emp", mechanism = {mechanism}, pure = true }}, {{ pure_epsilon = 0.25 }}'
    file = rw.load_plan(written(place, text))
    assert file.budget == LAPLACE.policy("emp").pure() + pure_budget("0.25")
    assert run("check", written(place, text)).exit_code == 0
    assert run("check", written(place, text.replace("0.25", "0.2"))).exit_code == 3


def test_the_policy_of_a_budget_by_a_mechanism_stays_zcdp(place: Path) -> None:
    text = '{ rho = 1 }, { measure = "emp", mechanism = { kind = "GeneralizedGaussian", shape = 1, scale = 400 } }'
    budget = rw.load_plan(written(place, text)).budget
    assert budget is not None
    assert not budget.is_pure
    assert run("check", written(place, text)).exit_code == 0


@pytest.mark.parametrize(("given", "cost"), [({"rho": "0.1"}, constant("0.1")), ({"epsilon": "0.5"}, None)])
@pytest.mark.costly
def test_an_external_mechanism_may_take_records_whole_and_costs_each_the_same(given: Any, cost: Policy | None) -> None:
    rows, seen = records(200), list[pa.Table]()
    with small() as opened:
        release = opened.run_external(lambda table: seen.append(table) or 0, split=None, **given)
        with pytest.raises(ParameterError, match="at least one measure"):
            opened.run_external(len, split={}, rho=1)
    (table,) = seen
    assert table.num_rows == rows.num_rows
    for name in ("id", "emp", "pay"):
        assert sorted(table[name].to_pylist()) == sorted(rows[name].to_pylist())
    assert release.policy.loss({"emp": 10**6}) == release.policy.loss({"emp": 0})
    if cost is None:
        assert release.policy.epsilon_pure({}) == 0.5
        assert release.firms.loss({"id": [1, 2, 3]}).epsilon == pytest.approx(1.5)
    else:
        assert release.policy == cost
        assert release.firms.loss({"id": [1, 2, 3]}).rho == pytest.approx(0.9)


def test_an_unsplit_table_needs_no_measure() -> None:
    with employers(records(50).select(["id", "county"]), "county", measures={}) as opened:
        release = opened.run_external(lambda table: table.num_rows, split=None, rho=1, where="county = '02'")
    assert release.policy.loss({"county": "01"}) == 0
    assert release.policy.loss({"county": "02"}) == 1


@pytest.mark.costly
def test_the_owner_sees_pure_epsilons_of_units_over_the_periods(tmp_path: Path) -> None:
    frames = {"2025": {"id": [1, 2], "emp": [10, 120]}, "2026": {"id": [2, 3], "emp": [60, 5]}}

    def on(ledger: str, period: str) -> rw.Session:
        return session(records(), tmp_path / ledger, series=rw.Series(name="patterns", period=period))

    for period in frames:
        with on("pure.ledger", period) as opened:
            policy = opened.run(PURE).policy.pure()
        with on("mixed.ledger", period) as opened:
            opened.run(MIXED if period == "2026" else PURE)
    with on("pure.ledger", "2026") as opened:
        found = opened.owner.history_losses(frames, pure=True)
    losses = [[float(policy.loss({"emp": emp})) for emp in sizes] for sizes in ((10, 120), (60, 5))]
    assert losses[0][1] == pytest.approx(1 / 4 + 120 / 500)
    assert found.total.tolist() == pytest.approx([losses[0][0], losses[0][1] + losses[1][0], losses[1][1]])
    with on("mixed.ledger", "2026") as opened:
        looks = len(opened.history())
        with pytest.raises(ParameterError, match="no pure epsilon"):
            opened.owner.history_losses(frames, pure=True)
        assert len(opened.history()) == looks
