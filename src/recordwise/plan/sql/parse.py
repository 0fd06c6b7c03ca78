"""Conversion of SQL text to the ``Query`` the builder would make.

One SELECT from one table, with GROUP BY and a few aggregates. Each aggregate becomes a statistic of the
query.
"""

from collections.abc import Mapping

from sqlglot import exp

from recordwise.errors import SqlError
from recordwise.plan.expressions import Case, Expression, Group
from recordwise.plan.keys.keys import GivenKeys
from recordwise.plan.query import Query
from recordwise.plan.sql.gate import read_statement
from recordwise.plan.sql.grammar import column_name, expression, only, predicate, unsupported
from recordwise.plan.statistics import KINDS, Statistic, StatisticMechanism
from recordwise.plan.statistics.base import NamedMechanisms


def aggregate(node: exp.Expr) -> bool:
    """Return whether a SELECT item is a statistic, allowed or not."""
    return isinstance(node, exp.AggFunc | exp.WithinGroup) or (
        isinstance(node, ARITHMETIC) and node.find(exp.AggFunc) is not None
    )


ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Paren)
"""What may combine aggregates: a linear form, or the ratio of two."""


def read_statistic(node: exp.Expr, alias: str | None, mechanisms: NamedMechanisms) -> Statistic:
    """Read one aggregate, ratio or combination of sums.

    COUNT(*), COUNT(DISTINCT column), SUM, AVG, MEDIAN or QUANTILE_CONT.
    """
    for kind in KINDS:
        found = kind.read_sql(node, alias, mechanisms)
        if found is not None:
            return found
    raise unsupported(node)


TABLE = "t"


def parse_sql(text: str, *, mechanisms: Mapping[str, StatisticMechanism], keys: GivenKeys | None = None) -> Query:
    """Parse a statement.

    ``mechanisms`` has one per statistic: by alias, by measure or firm column, or "*" for COUNT(*).
    """
    statement = read_statement(text)
    if type(statement) is not exp.Select:
        raise unsupported(statement)
    only(statement, "expressions", "from_", "where", "group")
    _check_table(statement.args.get("from_"))
    named = _named_expressions(statement.expressions)
    groups = _groups(statement.args.get("group"), named)
    _check_all_grouped(named, groups)
    read = Query(groups=groups).at(keys)
    where = statement.args.get("where")
    read = read if where is None else read.where(predicate(where.this))
    return _statistics(read, statement.expressions, dict(mechanisms))


def _check_table(source: exp.Expr | None) -> None:
    table = source.this if source is not None else None
    if type(table) is not exp.Table or type(table.this) is not exp.Identifier:
        raise SqlError(construct="no plain table in FROM", advice=f"Write FROM {TABLE}.")
    only(table, "this")
    if table.name != TABLE:
        raise SqlError(construct="another table in FROM", advice=f"The open table is called {TABLE}.")


def _named_expressions(items: list[exp.Expr]) -> list[Group]:
    """Return the SELECT items that are not aggregates, by published name."""
    named = []
    for item in items:
        inner, alias = _split_alias(item)
        if aggregate(inner):
            continue
        value = expression(inner)
        if isinstance(value, Case) and alias is None:
            raise SqlError(construct="CASE without a name", advice="Add AS name.")
        named.append(Group(alias or _default_name(value), value))
    return named


def _split_alias(item: exp.Expr) -> tuple[exp.Expr, str | None]:
    if type(item) is not exp.Alias:
        return item, None
    only(item, "this", "alias")
    return item.this, str(item.args["alias"].this)


def _default_name(value: Expression) -> str:
    return "" if isinstance(value, Case) else value.default_name()


def _groups(group: exp.Expr | None, named: list[Group]) -> tuple[Group, ...]:
    """Return the groups in the order of GROUP BY."""
    if group is None:
        return ()
    only(group, "expressions")
    found = []
    for item in group.expressions:
        by_alias = next((each for each in named if type(item) is exp.Column and each.name == column_name(item)), None)
        value = by_alias.expression if by_alias else expression(item)
        listed = by_alias or next((each for each in named if each.expression == value), None)
        if listed is None and isinstance(value, Case):
            raise SqlError(construct="a CASE in GROUP BY that the SELECT list does not name")
        found.append(listed or Group(_default_name(value), value))
    return tuple(found)


def _check_all_grouped(named: list[Group], groups: tuple[Group, ...]) -> None:
    for group in named:
        if group not in groups:
            raise SqlError(construct=f"'{group.name[:40]}' is selected but not grouped by")


def _statistics(read: Query, items: list[exp.Expr], mechanisms: dict[str, StatisticMechanism]) -> Query:
    named = NamedMechanisms(mechanisms)
    for item in items:
        inner, alias = _split_alias(item)
        if aggregate(inner):
            read = read.ask(read_statistic(inner, alias, named))
    if not read.statistics:
        raise SqlError(construct="no COUNT and no SUM, AVG or MEDIAN in the SELECT list")
    idle = sorted(set(mechanisms) - named.used)
    if idle:
        raise SqlError(
            construct=f"no statistic for the mechanism of {', '.join(idle)}", advice="Remove it or correct its name."
        )
    return read
