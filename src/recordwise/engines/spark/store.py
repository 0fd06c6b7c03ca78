"""A ``Store`` with records on executors and cells on the driver."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from recordwise.engines.compile.expressions import ELEMENT, constant
from recordwise.engines.duckdb.connection import Connection
from recordwise.engines.duckdb.engine import DuckDBStore
from recordwise.engines.spark.session import quietly
from recordwise.engines.spark.sources import in_spark
from recordwise.errors import EngineError
from recordwise.plan.arrays import numpy_of
from recordwise.plan.plan import WIDE

# Rewrites the plan's trees for Spark where the emitter alone does not, so that every value is the same as in DuckDB.


WIDE_TYPE = exp.DataType.build("DECIMAL(38, 0)")
INFINITY = exp.Cast(this=exp.Literal.string("Infinity"), to=exp.DataType(this=exp.DType.DOUBLE))


OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
BRACKETED = (exp.Func, exp.Case, exp.Column, exp.Literal)


def spark_sql(tree: exp.Expr) -> str:
    """The statement in Spark's SQL."""
    return _as_function(tree.transform(_respell)).sql(dialect="spark", copy=False)


def _as_function(node: exp.Expr) -> exp.Expr:
    """Write operators as functions.

    Spark's parser takes a minute for a long policy in nested parentheses, and seconds for this form.
    """
    for name, value in list(node.args.items()):
        if isinstance(value, exp.Expression):
            node.set(name, _as_function(value))
        elif isinstance(value, list):
            node.set(name, [_as_function(each) if isinstance(each, exp.Expression) else each for each in value])
    if type(node) in OPERATORS:
        return exp.Anonymous(this=f"`{OPERATORS[type(node)]}`", expressions=[node.this, node.args["expression"]])
    return node.this if isinstance(node, exp.Paren) and _stands_alone(node.this) else node


def _stands_alone(node: exp.Expr) -> bool:
    """Return whether an expression needs no parentheses.

    sqlglot classes AND and OR as functions, but they do need them.
    """
    return isinstance(node, BRACKETED) and not isinstance(node, exp.Binary)


def _respell(node: exp.Expr) -> exp.Expr:
    match node:
        case exp.TryCast():
            # Without this flag the emitter writes a plain CAST, which fails where DuckDB's gives NULL.
            node.set("safe", True)
        case exp.DataType() if node.this == exp.DType.INT128:
            return WIDE_TYPE.copy()
        case exp.IsInf():
            return exp.EQ(this=exp.Abs(this=node.this), expression=INFINITY.copy())
        case exp.Anonymous() if node.this == ELEMENT:
            node.set("this", "ELEMENT_AT")
        case exp.Round():
            # Spark's ROUND uses decimals. Rounding a lattice value to the nearest whole number is never a tie (T-LATTICE).
            return exp.Anonymous(this="RINT", expressions=[node.this])
    return node


# Exact sums from 64-bit sums: each number is split into a high and a low half, the halves are summed, and Arrow joins
# them. Two BIGINT sums cost little more than one; a DECIMAL(38, 0) sum takes about twice the time (docs/performance.md). A
# record has at most 2^62 steps, so no half exceeds 2^31 and a cell can hold four billion records of the largest size.
# Beyond that, Spark in ANSI mode fails instead of wrapping around.


BITS = 31
HIGH, LOW = "_high", "_low"


def sum_names(tree: exp.Expr) -> list[str]:
    """The names of the sums a query returns."""
    return [each.alias for each in tree.expressions if _sum_in(each) is not None]


def halve_sums(tree: exp.Expr) -> exp.Expr:
    """The same query with each returned sum split in two."""
    cut = tree.copy()
    cut.set("expressions", [part for each in cut.expressions for part in _halves(each)])
    return cut


def _halves(projection: exp.Expr) -> list[exp.Expr]:
    if _sum_in(projection) is None:
        return [projection]
    return [_half(projection, HIGH, _high_half), _half(projection, LOW, _low_half)]


def _sum_in(projection: exp.Expr) -> exp.Sum | None:
    """Return the projected sum, with or without a filter.

    A sum inside an expression is a float sum and stays as it is.
    """
    value = projection.unalias()
    value = value.this if isinstance(value, exp.Filter) else value
    return value if isinstance(value, exp.Sum) else None


def _half(projection: exp.Expr, suffix: str, cut: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    copy = projection.copy()
    total = _sum_in(copy)
    assert total is not None
    total.set("this", cut(exp.Cast(this=total.this, to=exp.DataType(this=exp.DType.BIGINT))))
    copy.set("alias", exp.to_identifier(copy.alias + suffix))
    return copy


def _high_half(whole: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="SHIFTRIGHT", expressions=[whole, constant(BITS)])


def _low_half(whole: exp.Expr) -> exp.Expr:
    return exp.BitwiseAnd(
        this=whole, expression=exp.Cast(this=constant(2**BITS - 1), to=exp.DataType(this=exp.DType.BIGINT))
    )


def join_halves(table: pa.Table, sums: Sequence[str]) -> pa.Table:
    """Join the halves into 128-bit integers.

    Under the original names of the sums; a missing sum counts as 0.
    """
    halves = {name + suffix for name in sums for suffix in (HIGH, LOW)}
    columns = {name: table.column(name) for name in table.column_names if name not in halves}
    columns |= {name: _wide_integers(table.column(name + HIGH), table.column(name + LOW)) for name in sums}
    return pa.table(columns)


def _wide_integers(high: pa.ChunkedArray, low: pa.ChunkedArray) -> pa.Array:
    """Return high * 2^31 + low in two's complement."""
    upper, lower = (numpy_of(half.fill_null(0)) for half in (high, low))
    shifted = upper.astype(np.uint64) << np.uint64(BITS)
    with np.errstate(over="ignore"):
        words = shifted + lower.astype(np.uint64)
    carry = (words < shifted).astype(np.int64)
    both = np.stack([words.view(np.int64), (upper >> np.int64(64 - BITS)) + carry], axis=1)
    return pa.Array.from_buffers(WIDE, len(both), [None, pa.py_buffer(np.ascontiguousarray(both))])


MOST_BROADCAST = 1_000_000
"""A lent table of up to this many rows is broadcast to every executor; a larger one is joined with a shuffle."""


class SparkStore:
    """A store that runs statements over records in Spark.

    They return aggregates; roll-ups and public keys stay on the driver unless a statement over records needs
    them.
    """

    def __init__(self, session: Any, cells: Connection) -> None:
        self.session = session
        self._cells = DuckDBStore(cells)
        self._lent: dict[str, pa.Table] = {}
        self._kept: dict[str, Any] = {}

    def of_records(self, tree: exp.Expr) -> pa.Table:
        try:
            with quietly(self.session):
                self._ship(tree)
                return join_halves(self.session.sql(spark_sql(halve_sums(tree))).toArrow(), sum_names(tree))
        except Exception as error:
            raise failure(error) from None

    def of_cells(self, tree: exp.Expr) -> pa.Table:
        return self._cells.of_cells(tree)

    def store_cells(self, name: str, tree: exp.Expr) -> None:
        self.lend(name, self.of_records(tree))

    def store_pairs(self, name: str, tree: exp.Expr) -> None:
        """Persist the pairs, because every level counts firms from them."""
        try:
            with quietly(self.session):
                self._ship(tree)
                pairs = self.session.sql(spark_sql(tree)).persist()
                pairs.createOrReplaceTempView(name)
        except Exception as error:
            raise failure(error) from None
        self._kept[name] = pairs

    def lend(self, name: str, table: pa.Table) -> None:
        self._cells.lend(name, table)
        self._lent[name] = table
        self.session.catalog.dropTempView(name)

    def _ship(self, tree: exp.Expr) -> None:
        """Make the lent tables of a statement into Spark views."""
        for name in {table.name for table in tree.find_all(exp.Table)} & self._lent.keys():
            table = self._lent[name]
            frame = in_spark(self.session, table)
            small = table.num_rows <= MOST_BROADCAST
            (frame.hint("broadcast") if small else frame).createOrReplaceTempView(name)

    def drop(self, *names: str) -> None:
        for name in names:
            self._lent.pop(name, None)
            if name in self._kept:
                self._kept.pop(name).unpersist()
            self.session.catalog.dropTempView(name)
        self._cells.drop(*names)


def failure(error: Exception) -> EngineError:
    """Return an error without Spark's text.

    That can quote a record: neither keep nor chain it; raise this ``from None``. Spark's error class, such as
    ARITHMETIC_OVERFLOW, names a condition and not a value.
    """
    return EngineError(engine="spark", kind=type(error).__name__)
