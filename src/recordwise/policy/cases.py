"""The tests a policy's conditions are made of: what a look-up asks for, and which groups a picture shows."""

from collections.abc import Iterator
from typing import TypeAlias

from recordwise.policy.conditions import AllOf, Among, AnyOf, Compare, Condition, Null
from recordwise.policy.policy import Maximum, Policy

Test: TypeAlias = Among | Compare | Null


def tests_of(policy: Policy) -> Iterator[Test]:
    """Every test of every condition, those inside maxima too, in the order of the terms."""
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
