"""The budget of a plan file: parts that add up to one policy function."""

from recordwise.exact import Number
from recordwise.plan.analysis import policy_measure
from recordwise.plan.schema import Schema
from recordwise.planfile.mechanisms import checked_positive, read_joint, read_mechanism
from recordwise.planfile.node import Node, suggestion
from recordwise.planfile.private import read_select
from recordwise.policy import Policy, constant, split


def read_budget(node: Node, schema: Schema) -> Policy | None:
    """The sum of the parts: a constant, a split, what one sum by a mechanism would cost, or one selection of keys."""
    parts = [_part(each, schema) for each in node.items()]
    if not parts:
        node.problem("must have at least one part")
    if not parts or None in parts:
        return None
    return sum((part for part in parts if part is not None), Policy())


def _part(node: Node, schema: Schema) -> Policy | None:
    entries = node.table("rho", "at", "measure", "mechanism", "select")
    if not isinstance(node.value, dict) or len(entries) < len(node.value):
        return None
    given = set(entries)
    if given == {"measure", "mechanism"}:
        return _of_mechanism(entries["measure"], entries["mechanism"], schema)
    if given == {"select"}:
        found = read_select(entries["select"], schema)
        return None if found is None else node.attempt(lambda: found.policy(schema))
    if given not in ({"rho"}, {"rho", "at"}):
        node.problem("must hold rho, rho and at, measure and mechanism, or select")
        return None
    rho = checked_positive(entries["rho"])
    if "at" not in entries:
        return None if rho is None else constant(rho)
    return _split(rho, entries["at"], schema)


def _split(rho: Number | None, node: Node, schema: Schema) -> Policy | None:
    at = read_joint(node, schema)
    return None if at is None or rho is None else node.attempt(lambda: split(rho, at))


def _of_mechanism(measure: Node, mechanism: Node, schema: Schema) -> Policy | None:
    name, found = measure.text(), read_mechanism(mechanism, schema, {})
    if name is not None and schema.measure(name) is None:
        measure.problem(f"'{name}' is not a measure{suggestion(name, schema.measure_names())}")
        return None
    if name is None or found is None:
        return None
    policy: Policy | None = mechanism.attempt(lambda: found.policy(policy_measure(name, schema)))
    return policy
