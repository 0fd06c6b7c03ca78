"""Budgets that cover charges only because amounts are bounded: the bounds of the declared schema count, and only those."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from recordwise.errors import BudgetError
from recordwise.ledger.ledger import Ledger, amount_bounds
from recordwise.plan.describe import schema_json
from recordwise.plan.schema import Measure, Schema
from recordwise.policy import Policy, constant, gaussian_sum
from recordwise.policy.series import Series

SUM = gaussian_sum("emp", sigma=10)
"""Costs a record of 100 employees 50."""


def schema(bound: int | None) -> dict[str, Any]:
    measures = [] if bound is None else [Measure.of("emp", bound=bound)]
    return schema_json(Schema(unit="id", measures=tuple(measures)))


def opened(path: Path, budget: Policy, bound: int | None = 100, **more: Any) -> Ledger:
    declared = Series(name="s", period="2025", every_period=budget)
    return Ledger(path, dataset="d", budget=budget, schema=schema(bound), series=declared, **more)


def test_bounds_are_those_of_measures_that_have_a_name_and_a_bound() -> None:
    assert amount_bounds(schema(100)) == {"emp": "100"}
    assert amount_bounds({"measures": [{"name": "emp"}, {"bound": "7"}, {"name": "pay", "bound": "9"}]}) == {"pay": "9"}
    assert amount_bounds(schema(None)) == amount_bounds(None) == amount_bounds({}) == amount_bounds("x") == {}


@pytest.mark.parametrize("budget, fits", [("50", True), ("49.9", False)])
def test_a_charge_fits_up_to_the_bound(budget: str, fits: bool, tmp_path: Path) -> None:
    for bound in (100, None):
        ledger = opened(tmp_path / f"{bound}", constant(budget), bound)
        if fits and bound:
            assert ledger.charge(SUM, query="q").sequence > 0
        else:
            with pytest.raises(BudgetError):
                ledger.charge(SUM, query="q")
        ledger.close()


@pytest.mark.theorem("T-AMEND")
def test_the_bounds_count_when_a_budget_is_amended(tmp_path: Path) -> None:
    path = tmp_path / "l"
    with_budget = opened(path, constant(60))
    with_budget.charge(SUM, query="q")
    with_budget.close()
    with pytest.raises(BudgetError, match="what was charged and reserved"):
        opened(path, constant("49.9"), amendment="less is enough")
    opened(path, constant("50"), amendment="less is enough").close()
    ledger = opened(path, constant(50))
    assert ledger.spent() == SUM
    with pytest.raises(BudgetError):
        ledger.charge(SUM * Fraction(1, 10**6), query="q")
    ledger.close()
