"""What type a policy expects in a column: the type of the constants it compares the column with."""

from fractions import Fraction

from recordwise.policy import Policy
from recordwise.policy.conditions import AllOf, Among, AnyOf, Compare, Condition
from recordwise.policy.policy import Maximum


def column_type(policy: Policy, name: str) -> type:
    """str, bool or Fraction; text where nothing is said."""
    for terms in (policy.rho, policy.delta_terms):
        for condition, atom in terms:
            found = _type_in(condition, name)
            if found is None and isinstance(atom, Maximum):
                found = next((column_type(inner, name) for inner in atom.policies), None)
            if found is not None:
                return found
    return str


def _type_in(condition: Condition, name: str) -> type | None:
    match condition:
        case AllOf(parts) | AnyOf(parts):
            return next((found for part in parts if (found := _type_in(part, name)) is not None), None)
        case Among(column, values) if column.name == name:
            return type(values[0])
        case Compare(column) if column.name == name:
            return Fraction
        case _:
            return None
