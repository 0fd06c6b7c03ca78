"""SQL text to the same ``Query`` the builder makes. One SELECT from one table, GROUP BY and a few aggregates; nothing else.

The aggregates SQL text may hold, each as a statistic of the query.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sqlglot import exp

from recordwise.errors import SqlError
from recordwise.mechanisms.quantile import TreeQuantile
from recordwise.plan.fields import Case, Expression, Group
from recordwise.plan.given_keys import GivenKeys
from recordwise.plan.query import Query
from recordwise.plan.sql.gate import read_statement
from recordwise.plan.sql.grammar import column_name, expression, literal, only, predicate, refused
from recordwise.plan.statistics import StatisticMechanism, SumAndCount


def aggregate(node: exp.Expr) -> bool:
    """Whether an item of the SELECT list is a statistic, allowed or not."""
    return isinstance(node, exp.AggFunc | exp.WithinGroup)


def add_statistic(
    read: Query, node: exp.Expr, alias: str | None, mechanisms: Mapping[str, StatisticMechanism], used: set[str]
) -> Query:
    """One COUNT(*), COUNT(DISTINCT column), SUM, AVG, MEDIAN or QUANTILE_CONT."""
    if type(node) is exp.Count:
        return _count(read, node, alias, mechanisms, used)
    if type(node) in (exp.Sum, exp.Avg):
        only(node, "this")
        column = _column(node.this)
        mechanism = _mechanism(mechanisms, used, alias, column)
        if type(node) is exp.Sum:
            return read.sum(column, mechanism, alias=alias)
        parts = mechanism if isinstance(mechanism, SumAndCount) else SumAndCount(sum=mechanism)
        return read.avg(column, sum=parts.sum, count=parts.count, alias=alias)
    column, p = _quantile(node)
    mechanism = _mechanism(mechanisms, used, alias, column)
    if not isinstance(mechanism, TreeQuantile):
        raise SqlError(construct="a quantile without a grid", advice="Give TreeQuantile(grid=..., rho=...) for it.")
    return read.quantile(column, p=p, grid=mechanism.grid, rho=mechanism.rho, alias=alias)


def _count(
    read: Query, node: exp.Expr, alias: str | None, mechanisms: Mapping[str, StatisticMechanism], used: set[str]
) -> Query:
    only(node, "this", "big_int")
    if type(node.this) is exp.Star:
        only(node.this)
        return read.count(_mechanism(mechanisms, used, alias, "*"), alias=alias or "count")
    if type(node.this) is exp.Distinct and len(node.this.expressions) == 1:
        only(node.this, "expressions")
        column = _column(node.this.expressions[0])
        return read.count_distinct(column, _mechanism(mechanisms, used, alias, column), alias=alias)
    raise SqlError(construct="COUNT of something else", advice="Offered are COUNT(*) and COUNT(DISTINCT column).")


def _quantile(node: exp.Expr) -> tuple[str, Fraction]:
    """The column and share of MEDIAN(x), QUANTILE_CONT(x, p) or PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x)."""
    if type(node) is exp.Median:
        only(node, "this")
        return _column(node.this), Fraction(1, 2)
    if type(node) is exp.PercentileCont:
        only(node, "this", "expression")
        return _column(node.this), _share(node.args.get("expression"))
    if type(node) is exp.WithinGroup and type(node.this) is exp.PercentileCont:
        only(node, "this", "expression")
        only(node.this, "this")
        order = node.args["expression"]
        only(order, "expressions")
        (ordered,) = order.expressions if len(order.expressions) == 1 else (order,)
        if type(ordered) is not exp.Ordered or ordered.args.get("desc"):
            raise SqlError(construct="WITHIN GROUP of something else", advice="Write ORDER BY column.")
        only(ordered, "this", "nulls_first")
        return _column(ordered.this), _share(node.this.this)
    raise refused(node)


def _share(node: exp.Expr | None) -> Fraction:
    share = None if node is None else literal(node)
    if not isinstance(share, Fraction) or not 0 < share < 1:
        raise SqlError(construct="a quantile whose share is not a number between 0 and 1")
    return share


def _column(node: exp.Expr) -> str:
    if type(node) is not exp.Column:
        raise SqlError(construct=f"an aggregate of {type(node).key.upper()}", advice="Aggregate a column as it is.")
    return column_name(node)


def _mechanism(mechanisms: Mapping[str, StatisticMechanism], used: set[str], alias: str | None, default: str) -> Any:
    name = alias if alias in mechanisms else default
    if name is None or name not in mechanisms:
        raise SqlError(construct=f"no mechanism for '{(alias or default)[:40]}'", advice="Add it to mechanisms.")
    used.add(name)
    return mechanisms[name]


TABLE = "t"


def parse_sql(text: str, *, mechanisms: Mapping[str, StatisticMechanism], keys: GivenKeys | None = None) -> Query:
    """Read a statement. ``mechanisms`` names one for each statistic: by alias, by measure or firm column, or "*" for COUNT(*)."""
    statement = read_statement(text)
    if type(statement) is not exp.Select:
        raise refused(statement)
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
    """The items of the SELECT list that are no aggregates, under the names they will be published by."""
    named = []
    for item in items:
        inner, alias = _unaliased(item)
        if aggregate(inner):
            continue
        value = expression(inner)
        if isinstance(value, Case) and alias is None:
            raise SqlError(construct="CASE without a name", advice="Add AS name.")
        named.append(Group(alias or _default_name(value), value))
    return named


def _unaliased(item: exp.Expr) -> tuple[exp.Expr, str | None]:
    if type(item) is not exp.Alias:
        return item, None
    only(item, "this", "alias")
    return item.this, str(item.args["alias"].this)


def _default_name(value: Expression) -> str:
    return "" if isinstance(value, Case) else value.default_name()


def _groups(group: exp.Expr | None, named: list[Group]) -> tuple[Group, ...]:
    """GROUP BY in its own order; an item is an alias of the SELECT list or an expression."""
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
    used: set[str] = set()
    for item in items:
        inner, alias = _unaliased(item)
        if aggregate(inner):
            read = add_statistic(read, inner, alias, mechanisms, used)
    if not read.statistics:
        raise SqlError(construct="no COUNT and no SUM, AVG or MEDIAN in the SELECT list")
    idle = sorted(set(mechanisms) - used)
    if idle:
        raise SqlError(
            construct=f"no statistic for the mechanism of {', '.join(idle)}", advice="Remove it or name it right."
        )
    return read
