"""What is left of a budget, the largest share of a plan that it covers, and the budget that a plan without one gets."""

from fractions import Fraction
from pathlib import Path

import pytest

import build
import recordwise as rw
from planning.small_table import opened, shape
from recordwise.errors import BudgetError
from recordwise.plan.cost import plan_policy
from recordwise.plan.file import PlanFile, load_plan
from recordwise.plan.file.write import toml_text
from recordwise.planning.explain import _budget
from recordwise.planning.losses import Left, left_of
from recordwise.planning.new_plan import proposed_budget

COUNTED = shape().count(rw.Gaussian(rho="0.3"), alias="n")


def left(most: str) -> Left:
    """A budget of which so much is left."""
    limit = Fraction(most)
    budget = rw.policy.constant(limit)
    error = BudgetError(query="q", witness=None, needed=1, left=0, reason="too much")
    return Left(budget=budget, refused=lambda policy: None if budget.dominates(policy) else error, is_new=False)


@pytest.mark.parametrize(("most", "share"), [("0.3", "0.3"), ("0.07", "0.07"), ("2", "1"), ("1e-9", None)])
def test_the_largest_share_that_is_covered_is_found(most: str, share: str | None) -> None:
    """A share has two digits, the search ends next to the largest one, and it is never above it."""
    found = left(most).share_covered(rw.policy.constant)
    if share is None:
        assert found is None
    else:
        assert found is not None
        assert 0.97 * float(share) <= found <= Fraction(share)


def test_what_was_charged_before_is_not_left() -> None:
    budget = rw.policy.constant("0.5")
    with opened(budget=budget) as session:
        policy = session.policy_of(COUNTED)
        assert left_of(session, COUNTED).refusal(policy) is None
        assert left_of(session, COUNTED).is_new
        session.run(COUNTED)
        after = left_of(session, COUNTED)
        told = after.refusal(policy)
        assert told is not None
        assert "needs a loss of 0.3, and 0.2 is left" in told
        assert after.refusal(policy * Fraction(2, 3)) is None
        assert not after.is_new


def test_a_budget_is_proposed_only_where_there_is_none_and_nothing_was_charged() -> None:
    with opened() as session:
        assert left_of(session, COUNTED).needs_budget
        session.run(COUNTED)
        assert not left_of(session, COUNTED).needs_budget
    with opened(budget=rw.policy.constant(1)) as session:
        assert not left_of(session, COUNTED).needs_budget


HEAD = """\
dataset = "small"
source = "records.parquet"
ledger = "small.ledger"
tuned_on = "synthetic"

[schema]
unit = "id"
measures.emp = 1
measures.pay = 1
columns.county = "text"
columns.naics = "text"
"""
QUERIES = {
    "counts": 'group_by = "county"\nkeys = { rows = { county = ["01"] } }\ncount = { kind = "Gaussian", rho = "1/3" }\n',
    "sums": """group_by = "county"
keys = { rows = { county = ["01"] } }
count = { kind = "Gaussian", rho = "1/7" }
sum.emp = { kind = "UnitSplit", at = 20, rho = 0.5 }
sum.pay = { kind = "LogTransform", offset = 2000, sigma = 0.5 }
""",
    "selected keys": """group_by = "county"
keys = { select = { rho = 0.25, delta = 1e-9 } }
count = { kind = "Gaussian", rho = 0.1 }
""",
    "selected by pieces": """group_by = "county"
keys = { select = { rho = 0.25, delta = 1e-9, pieces = { emp = 50 } } }
sum.emp = { kind = "UnitSplit", at = 50, rho = 0.1 }
""",
    "quantiles": """group_by = "county"
keys = { rows = { county = ["01"] } }
quantile.emp = { p = 0.5, grid = { log = [1, 1000], bits = 5 }, rho = "1/3" }
""",
}


@pytest.mark.parametrize("query", QUERIES)
def test_a_proposed_budget_covers_the_plan_once(tmp_path, query) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(f"{HEAD}\n[[queries]]\n{QUERIES[query]}")
    file = load_plan(path)
    parts = proposed_budget(file.plan.queries, file.plan.schema)
    written = toml_text({"tuned_on": "synthetic", "budget": parts}).replace('tuned_on = "synthetic"', "")
    path.write_text(f"{written}\n{HEAD}\n[[queries]]\n{QUERIES[query]}")
    budget, policy = load_plan(path).budget, plan_policy(file.plan)
    assert budget is not None
    assert budget.dominates(policy)
    assert not budget.dominates(policy + rw.policy.constant("1e-4"))


@pytest.mark.costly
def test_what_is_left_for_a_revision_is_next_to_the_reserve_of_its_own_release(tmp_path: Path) -> None:
    """Two releases with a reserve each; before, a revision was given the oldest one, whoever had made it."""

    def plan(name: str, rho: int, revision: int) -> PlanFile:
        """A plan of one count, as a file."""
        text = build.PLAN[: build.PLAN.index("count =")]
        text = text.replace("budget = [{ rho = 100 }, { rho = 100, at = { emp = 1 } }]", "budget = [{ rho = 10 }]")
        text = f'{text}count = {{ kind = "Gaussian", rho = {rho}, as = "{name}" }}\n'
        series = f'\n[series]\nname = "s"\nperiod = "2026"\nrevision = {revision}\n'
        (tmp_path / f"{name}{revision}.toml").write_text("reserve = { revisions = 1 }\n" + text + series)
        return load_plan(tmp_path / f"{name}{revision}.toml")

    build.write_records(tmp_path / "records.parquet", 60)
    for name, rho in (("large", 4), ("small", 1)):
        file = plan(name, rho, 0)
        with rw.Session.from_plan(file) as session:
            session.run(*file.plan.queries)
    for name, rho, fits in (("small", 1, True), ("small", 4, False), ("large", 4, True)):
        file = plan(name, rho, 1)
        cost = rw.policy.constant(rho)
        assert ("does not cover it" not in _budget(file, cost)) is fits
        with rw.Session.from_plan(file) as session:
            assert (left_of(session, file).refused(cost) is None) is fits
        with rw.Session.from_plan(file, data="synthetic") as session:
            assert (left_of(session, file).refused(cost) is None) is fits
