"""Counterexamples where measures are derived: records on the steps of their measures, within their bounds, that lose too much."""

from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from recordwise.exact.functions import x
from recordwise.policy import ConditionColumn, Measure, Policy, additive, constant, gaussian_sum
from recordwise.policy.firms import CellKey

STEPS = [(1, 1), ("1/100", 5), ("1/3", "1/4"), (5, 7), ("0.5", 12)]
SHARES = [(1, -45), (3, "1/3"), ("2/7", "-1/5")]


def measures(steps: Any, shares: Any) -> tuple[Measure, Measure, Measure]:
    a, b = (Measure(name, Fraction(step)) for name, step in zip("ab", steps))
    return a, b, Measure.linear("rest", {a: Fraction(shares[0]), b: Fraction(shares[1])})


def budgets(a: Measure, b: Measure, rest: Measure) -> dict[str, tuple[Policy, Policy]]:
    """Limits with what goes beyond them: soon, only after many steps, only where one measure is large enough for another limit."""
    base = gaussian_sum(a, sigma=10) + gaussian_sum(b, sigma=10)
    return {
        "twice": (base + gaussian_sum(rest, sigma=20), base + gaussian_sum(rest, sigma=20) * 2),
        "far out": (constant(50) + base, base + gaussian_sum(rest, sigma=20)),
        "beyond a line": (additive(a, x) + additive(b, x), gaussian_sum(rest, sigma=40)),
        "beyond a steep line": (additive(a, 300 * x) + additive(b, 300 * x), gaussian_sum(rest, sigma=1)),
    }


@pytest.mark.parametrize("steps", STEPS, ids=str)
@pytest.mark.parametrize("shares", SHARES, ids=str)
@pytest.mark.parametrize("name", budgets(*measures(STEPS[0], SHARES[0])))
def test_a_witness_is_a_record_of_the_lattice_that_exceeds(steps: Any, shares: Any, name: str) -> None:
    a, b, rest = measures(steps, shares)
    limit, spent = budgets(a, b, rest)[name]
    verdict = limit.dominates(spent)
    assert verdict.answer == "no", verdict.reason
    witness = verdict.witness
    assert witness is not None
    assert set(witness) == {"a", "b"}
    for measure in (a, b):
        assert (Fraction(witness[measure.name]) / measure.step).denominator == 1
        assert Fraction(witness[measure.name]) >= 0
    assert spent.loss(dict(witness)) > limit.loss(dict(witness))


@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_a_witness_is_within_the_bounds_of_its_measures(steps: Any) -> None:
    """Where one measure may not be as large as needed, another is; where none may, nothing is claimed."""
    _, _, rest = measures(steps, (1, 2))
    limit, spent = constant(50), gaussian_sum(rest, sigma=20)
    for bounds in ({"a": 100}, {"b": 20}):
        witness = limit.dominates(spent, bounds=bounds).witness
        assert witness is not None
        assert all(Fraction(witness[name]) <= most for name, most in bounds.items())
        assert spent.loss(dict(witness)) > 50
    assert limit.dominates(spent, bounds={"a": 20, "b": 10}).answer != "no"


TEXTS = ["".join(letters) for size in range(5) for letters in product("xy", repeat=size)]


@pytest.mark.parametrize("own", [None, 1, 2, 4])
@pytest.mark.parametrize("other", [None, 1, 2, 3, 4])
@pytest.mark.parametrize("name", ["code", "place"])
def test_records_that_agree_on_a_cell_agree_on_what_it_determines(
    own: int | None, other: int | None, name: str
) -> None:
    """By trying all pairs of texts of up to four letters; another column is free."""
    agree = all(
        name == "code" and one[:other] == two[:other]
        for one in TEXTS
        for two in TEXTS
        if (own is None and one == two) or (own is not None and one[:own] == two[:own])
    )
    # Texts may be longer than four letters: a prefix of four does not determine the whole.
    agree &= not (own is not None and other is None)
    assert CellKey(column=ConditionColumn("code", own)).determines(ConditionColumn(name, other)) == agree
