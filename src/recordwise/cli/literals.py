"""The constants that a policy compares a column with, which determine the column's type and make up examples."""

from collections.abc import Iterator
from fractions import Fraction

from recordwise.policy.conditions import AllOf, Among, AnyOf, Compare, Condition, InBand
from recordwise.policy.policy import Maximum, Policy


def constants_of(policy: Policy, name: str) -> Iterator[str | bool | Fraction]:
    """Every constant compared with a column, in the order of the terms."""
    for terms in (policy.rho, policy.delta_terms):
        for condition, atom in terms:
            yield from _beside(condition, name)
            for inner in atom.policies if isinstance(atom, Maximum) else ():
                yield from constants_of(inner, name)


def _beside(condition: Condition, name: str) -> Iterator[str | bool | Fraction]:
    match condition:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from _beside(part, name)
        case Among(column, values) if column.name == name:
            yield from (value if isinstance(value, (str, Fraction)) else bool(value.value) for value in values)
        case Compare(column, _, bound) if column.name == name:
            yield bound
        case InBand(table, _):
            for column, held in zip(table.columns, table.values):
                listed = (value for value in held[:FEW] if value is not None and column.name == name)
                yield from (value if isinstance(value, (str, Fraction)) else bool(value.value) for value in listed)
        case _:
            return


FEW = 20
"""So many values of a table of bands are enough to tell its type."""
