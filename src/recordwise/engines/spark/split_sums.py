"""Exact sums from 64-bit sums: each number is split into a high and a low half, the halves are summed, and Arrow joins them.

Two BIGINT sums cost little more than one; a DECIMAL(38, 0) sum takes about twice the time (docs/scale.md). A record has at most
2^62 steps, so no half exceeds 2^31 and a cell can hold four billion records of the largest size. Beyond that, Spark in ANSI mode
fails instead of wrapping around.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from sqlglot import exp

from recordwise.engines.compile.expressions import constant
from recordwise.plan.arrays import numpy_of
from recordwise.plan.results import WIDE

BITS = 31
HIGH, LOW = "_high", "_low"


def summed(tree: exp.Expr) -> list[str]:
    """The names of the sums a query returns."""
    return [each.alias for each in tree.expressions if _sum_in(each) is not None]


def halved(tree: exp.Expr) -> exp.Expr:
    """The same query with each returned sum split in two."""
    cut = tree.copy()
    cut.set("expressions", [part for each in cut.expressions for part in _parts(each)])
    return cut


def _parts(projection: exp.Expr) -> list[exp.Expr]:
    if _sum_in(projection) is None:
        return [projection]
    return [_half(projection, HIGH, _high_half), _half(projection, LOW, _low_half)]


def _sum_in(projection: exp.Expr) -> exp.Sum | None:
    """The returned sum, with or without a filter; a sum inside an expression is a float sum and stays as it is."""
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


def joined(table: pa.Table, sums: Sequence[str]) -> pa.Table:
    """The halves joined as 128-bit integers, under the original names of the sums; a missing sum counts as 0."""
    halves = {name + suffix for name in sums for suffix in (HIGH, LOW)}
    columns = {name: table.column(name) for name in table.column_names if name not in halves}
    columns |= {name: _joined(table.column(name + HIGH), table.column(name + LOW)) for name in sums}
    return pa.table(columns)


def _joined(high: pa.ChunkedArray, low: pa.ChunkedArray) -> pa.Array:
    """high * 2^31 + low in two's complement, carrying from the low words into the high ones."""
    upper, lower = (numpy_of(half.fill_null(0)) for half in (high, low))
    shifted = upper.astype(np.uint64) << np.uint64(BITS)
    with np.errstate(over="ignore"):
        words = shifted + lower.astype(np.uint64)
    carry = (words < shifted).astype(np.int64)
    both = np.stack([words.view(np.int64), (upper >> np.int64(64 - BITS)) + carry], axis=1)
    return pa.Array.from_buffers(WIDE, len(both), [None, pa.py_buffer(np.ascontiguousarray(both))])
