"""Does a query fit its schema? Every problem is collected, so that a plan is mended in one go."""

from collections.abc import Iterator, Mapping

from recordwise.plan.average import Average
from recordwise.plan.column_types import fits, is_value, kind_of
from recordwise.plan.fields import Case, Field, Group, Prefix
from recordwise.plan.levels import Level
from recordwise.plan.predicates import Compare, In, IsNull, Predicate, leaves, operand_name
from recordwise.plan.published_names import name_problems
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.policy import By


def query_problems(query: Query, schema: Schema) -> list[str]:
    """All that is wrong with a query, as sentences without an end."""
    problems = [] if query.statistics else ["a query asks for no statistic"]
    for statistic in query.statistics:
        problems += statistic.problems(schema)
        if isinstance(statistic, Average) and statistic.parts(query.draws()) is None:
            problems.append(statistic.needs_count())
    if query.condition is not None:
        problems += predicate_problems(query.condition, schema)
    for group in {group.name: group for level in query.tables() for group in level.groups}.values():
        problems += group_problems(group, schema)
    for level in query.tables():
        problems += _level_problems(level, query)
        problems += _selection_problems(level, query, schema)
    return list(dict.fromkeys(problems))


def _level_problems(level: Level, query: Query) -> Iterator[str]:
    yield from name_problems(level, query)
    if level.groups and not any(keys.covers(level.groups) for keys in query.key_lists):
        yield f"no public keys for {' x '.join(level.names())}"


def _selection_problems(level: Level, query: Query, schema: Schema) -> Iterator[str]:
    """A selection publishes cells nobody listed, so every parameter must be defined for any of them."""
    selection = query.selection_of(level)
    if selection is None:
        return
    if not any(group_problems(group, schema) for group in level.groups):
        yield from selection.problems(level.groups, schema)
    for statistic in query.draws():
        at = getattr(statistic.mechanism, "at", None)
        thresholds = list(at.values()) if isinstance(at, Mapping) else [at]
        for threshold in thresholds:
            if isinstance(threshold, By) and threshold.default is None:
                yield f"the thresholds of '{statistic.alias}' need a default, because the keys are selected"


def group_problems(group: Group, schema: Schema) -> list[str]:
    """What is wrong with a group: its name, its column, its labels."""
    value, problems = group.expression, []
    own = value.name if isinstance(value, Field) else None
    taken = {schema.unit, schema.firm, *schema.measure_names(), *schema.column_names()}
    if isinstance(value, Prefix):
        own = value.column
    if group.name in taken and group.name != own:
        problems.append(f"a group is named '{group.name}' like another column")
    if isinstance(value, Case):
        return problems + _case_problems(group.name, value, schema)
    column = schema.column(value.name if isinstance(value, Field) else value.column)
    if column is None:
        problems.append(f"'{own}' is grouped by but is not a conditional column (group a measure by a CASE)")
    elif isinstance(value, Prefix) and column.type != "text":
        problems.append(f"a prefix of '{own}' needs a column of type text")
    return problems


def _case_problems(name: str, case: Case, schema: Schema) -> list[str]:
    problems = [problem for predicate, _ in case.branches for problem in predicate_problems(predicate, schema)]
    if not any(all(is_value(label, kind) for label in case.labels()) for kind in ("text", "integer")):
        problems.append(f"the labels of '{name}' must be all text or all whole numbers of 64 bits")
    return problems


def predicate_problems(predicate: Predicate, schema: Schema) -> list[str]:
    """Unknown columns and constants of another type."""
    return [problem for leaf in leaves(predicate) for problem in _leaf_problems(leaf, schema)]


def _leaf_problems(leaf: Compare | In | IsNull, schema: Schema) -> Iterator[str]:
    name = operand_name(leaf.operand)
    kind = kind_of(name, schema)
    if kind is None:
        yield f"'{name}' is used in a condition but is neither a conditional column nor a measure"
    elif isinstance(leaf.operand, Prefix) and kind != "text":
        yield f"a prefix of '{name}' needs a column of type text"
    elif not isinstance(leaf, IsNull):
        literals = leaf.literals if isinstance(leaf, In) else (leaf.literal,)
        if any(not fits(literal, kind) for literal in literals):
            yield f"'{name}' is compared with a constant that is not of type {kind}"
        if kind == "boolean" and isinstance(leaf, Compare) and leaf.operator not in ("=", "<>"):
            yield f"'{name}' is a boolean and has no order"
