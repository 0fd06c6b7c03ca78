"""Budgets in epsilon at delta for named records: the zCDP loss that has no more, and a stated shape for all others."""

import tomllib
from decimal import Decimal

import pytest

from recordwise.plan.file.node import Node, Problems, line_index
from recordwise.plan.file.sections import read_budget
from recordwise.plan.schema import Schema
from recordwise.policy import Policy, epsilon

SCHEMA = Schema.of(unit="id", measures={"emp": 1, "payann": 1}, columns={})
LAW = "epsilon = 2\ndelta = 1e-6\nfor = { emp = 20, payann = 1000 }\n"


def read(text: str, *, in_series: bool = False) -> tuple[Policy | None, list[str]]:
    problems = Problems(line_index(text))
    values = tomllib.loads(text, parse_float=Decimal)["budget"]
    found = read_budget(Node(values, ("budget",), problems), SCHEMA, in_series=in_series)
    return None if found is None else next(iter(found.values())), [str(each) for each in problems.in_order()]


@pytest.mark.theorem("T-EPSILON")
@pytest.mark.parametrize(("growth", "power"), [("square", 2), ("linear", 1)])
def test_a_law_becomes_the_largest_loss_that_has_no_more_epsilon(growth: str, power: int) -> None:
    budget, problems = read(f'[[budget]]\n{LAW}growth = "{growth}"\n')
    assert (problems, budget is None) == ([], False)
    assert budget is not None
    loss = budget.loss({"emp": 20, "payann": 1000})
    assert str(loss).startswith("0.08815")
    assert epsilon(loss, 1e-6) <= 2 < epsilon(loss * 1.00002, 1e-6)
    assert budget.loss({"emp": 60, "payann": 5}) == pytest.approx(3**power * loss)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"[[budget]]\n{LAW}", "must contain epsilon, delta, for and growth"),
        ("[[budget]]\nepsilon = 2\ndelta = 1e-6\n", "says nothing about larger ones"),
        (f'[[budget]]\n{LAW}growth = "square"\nrho = 1\n', "must contain epsilon, delta, for and growth"),
        (f'[[budget]]\n{LAW}growth = "square"\n[[budget]]\nrho = 1\n', "in epsilon next to others"),
        (f'[[budget]]\n{LAW}growth = "cubic"\n', "not a valid choice"),
        (f'[[budget]]\n{LAW.replace("1e-6", "2")}growth = "square"\n', "delta"),
    ],
)
def test_a_law_without_a_shape_or_next_to_other_parts_is_refused(text: str, problem: str) -> None:
    budget, problems = read(text)
    assert budget is None
    assert any(problem in each for each in problems), problems


def test_each_period_may_have_a_law_of_its_own() -> None:
    parts = [f'[[budget]]\n{LAW}growth = "square"\nperiod = "{year}"\n' for year in (2025, 2026)]
    budget, problems = read("".join(parts), in_series=True)
    assert problems == []
    assert budget is not None
