"""The elementary tests in a policy's conditions, used to ask for a record's values and to choose the groups of a chart."""

from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from typing import TypeAlias

from recordwise.policy.conditions import AllOf, Among, AnyOf, Compare, Condition, Null, holds
from recordwise.policy.dates import representatives
from recordwise.policy.policy import Maximum, Policy

Test: TypeAlias = Among | Compare | Null


def tests_of(policy: Policy) -> Iterator[Test]:
    """Every test of every condition, including those inside maxima, in the order of the terms."""
    for terms in (policy.rho, policy.delta_terms):
        for condition, atom in terms:
            yield from _leaves(condition)
            for inner in atom.policies if isinstance(atom, Maximum) else ():
                yield from tests_of(inner)


def example_date(policy: Policy, name: str) -> date:
    """A date that meets as many of the tests of its parts as a date can."""
    tests = [test for test in tests_of(policy) if test.column.name == name and test.column.part]
    constants = [(test.column.part, value) for test in tests for value in _constants(test)]
    return max(representatives(constants), key=lambda day: sum(holds(test, {name: day}) for test in tests))


def _constants(test: Test) -> Iterator[Fraction]:
    if isinstance(test, Compare):
        yield test.bound
    elif isinstance(test, Among):
        yield from (value for value in test.values if isinstance(value, Fraction))


def _leaves(condition: Condition) -> Iterator[Test]:
    match condition:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from _leaves(part)
        case Among() | Compare() | Null():
            yield condition
