"""The aggregates SQL text may hold, each as a statistic of the query."""

from collections.abc import Mapping
from fractions import Fraction

from sqlglot import exp

from recordwise.errors import SqlError
from recordwise.plan.average import SumAndCount
from recordwise.plan.mechanism import Mechanism
from recordwise.plan.query import Query
from recordwise.plan.whitelist import column_name, literal, only, refused
from recordwise.quantiles import TreeQuantile


def aggregate(node: exp.Expr) -> bool:
    """Whether an item of the SELECT list is a statistic, allowed or not."""
    return isinstance(node, exp.AggFunc | exp.WithinGroup)


def add_statistic(
    read: Query, node: exp.Expr, alias: str | None, mechanisms: Mapping[str, Mechanism], used: set[str]
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
    read: Query, node: exp.Expr, alias: str | None, mechanisms: Mapping[str, Mechanism], used: set[str]
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


def _mechanism(mechanisms: Mapping[str, Mechanism], used: set[str], alias: str | None, default: str) -> Mechanism:
    name = alias if alias in mechanisms else default
    if name is None or name not in mechanisms:
        raise SqlError(construct=f"no mechanism for '{(alias or default)[:40]}'", advice="Add it to mechanisms.")
    used.add(name)
    return mechanisms[name]
