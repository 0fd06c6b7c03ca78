"""The elementary tests in a policy's conditions: what a look-up asks for, and which groups a chart shows."""

from collections.abc import Iterator
from typing import TypeAlias

from recordwise.policy.conditions import AllOf, Among, AnyOf, Compare, Condition, Null
from recordwise.policy.policy import Maximum, Policy

Test: TypeAlias = Among | Compare | Null


def tests_of(policy: Policy) -> Iterator[Test]:
    """Every test of every condition, including those inside maxima, in the order of the terms."""
    for terms in (policy.rho, policy.delta_terms):
        for condition, atom in terms:
            yield from _leaves(condition)
            for inner in atom.policies if isinstance(atom, Maximum) else ():
                yield from tests_of(inner)


def _leaves(condition: Condition) -> Iterator[Test]:
    match condition:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from _leaves(part)
        case Among() | Compare() | Null():
            yield condition
