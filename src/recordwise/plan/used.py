"""The part of a schema that a plan uses, so that a release describes that part of the table and nothing else."""

from collections.abc import Iterator
from dataclasses import replace

from recordwise.plan.fields import Case, Field, Group
from recordwise.plan.plan import Plan
from recordwise.plan.predicates import leaves, operand_name
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.policy.policy import Policy


def used_schema(plan: Plan, *policies: Policy | None) -> Schema:
    """The ids, and the measures and columns that its queries or policies name."""
    return schema_of(plan.schema, used_names(plan, *policies))


def used_names(plan: Plan, *policies: Policy | None) -> set[str]:
    """The measures, columns and levels that its queries or policies name, and the firm if firms are counted."""
    return _named({name for query in plan.queries for name in _names(query)}, *policies)


def schema_of(schema: Schema, names: set[str], *policies: Policy | None) -> Schema:
    """The schema without the measures and columns that neither the names nor the policies mention."""
    names = _named(names, *policies)
    names = names | {each.finest for each in schema.hierarchies if not names.isdisjoint(each.levels)}
    names = names | {base for each in schema.measures if each.name in names for base, _ in each.derive}
    used = {schema.firm, *names}
    return replace(
        schema,
        collapse=None if schema.collapse is None else tuple(each for each in schema.collapse if each[0] in used),
        measures=tuple(each for each in schema.measures if each.name in names),
        columns=tuple(each for each in schema.columns if each.name in names),
        hierarchies=tuple(each for each in schema.hierarchies if each.finest in names),
    )


def _named(names: set[str], *policies: Policy | None) -> set[str]:
    for policy in filter(None, policies):
        measures = (*policy.measures(), *policy.inputs())
        names = names | {column.name for column in policy.columns()} | {each.name for each in measures}
    return names


def _names(query: Query) -> Iterator[str]:
    if query.condition is not None:
        yield from (operand_name(leaf.operand) for leaf in leaves(query.condition))
    for level in query.tables():
        for group in level.groups:
            yield from _group_names(group)
    yield from (each.of for each in query.draws() if each.of)


def _group_names(group: Group) -> Iterator[str]:
    value = group.expression
    if isinstance(value, Case):
        yield from (operand_name(leaf.operand) for test, _ in value.branches for leaf in leaves(test))
    else:
        yield value.name if isinstance(value, Field) else value.column
