"""The uniqueness of ids as SQL trees.

Whole numbers are told apart by bits: 32 neighbors share a word, in which each sets a bit of its own. Ids that are close together
then need few words, and the set bits are the different ids, counted exactly (T-UNIQUE).
"""

from collections.abc import Mapping

from sqlglot import exp

from recordwise.engines.compile.expressions import aliased, column, constant
from recordwise.engines.compile.records import SOURCE, Stored
from recordwise.plan.schema import Schema

KNOWN, DIFFERENT = "known", "different"
LEAST, MOST, HELD = "least", "most", "held"
FINGERPRINT, ID = "fingerprint", "id"
WORD_BITS = 5
MOST_APART = 16
"""Whole numbers are counted by bits where at most this many numbers lie between two of them, on average."""


def different_tree(schema: Schema, table: str = SOURCE) -> exp.Expr:
    """How many ids are not NULL, and how many different ones, by a group-by, which spills."""
    return _summed(exp.Count(this=exp.Star()), _known(schema, table).group_by(column(schema.unit)))


def shuffled_tree(schema: Schema, table: str = SOURCE, *, by: exp.Expr | None = None) -> exp.Expr:
    """The same for Spark, or how many different values of ``by``.

    Left alone, Spark groups the ids of each partition before it sends them, and hardly any are equal. A count of distinct values
    beside other counts would carry those along.
    """
    taken = exp.select(aliased(column(schema.unit) if by is None else by, ID)).from_(table)
    taken = taken.where(exp.not_(_unknown(schema))).hint(exp.Anonymous(this="REPARTITION", expressions=[column(ID)]))
    grouped = exp.select(aliased(exp.Count(this=exp.Star()), KNOWN)).from_(taken.subquery("taken", copy=False))
    return _summed(exp.Count(this=exp.Star()), grouped.group_by(column(ID)))


def bits_tree(schema: Schema, table: str = SOURCE) -> exp.Expr:
    """How many ids are not NULL, and how many different ones; ids that are whole numbers."""
    number = exp.cast(column(schema.unit), exp.DType.BIGINT)
    word = exp.BitwiseRightShift(this=number, expression=constant(WORD_BITS))
    place = exp.cast(
        exp.Paren(this=exp.BitwiseAnd(this=number.copy(), expression=constant(2**WORD_BITS - 1))), exp.DType.INT
    )
    bit = exp.BitwiseLeftShift(this=exp.cast(constant(1), exp.DType.BIGINT), expression=place)
    marked = aliased(exp.BitwiseOrAgg(this=bit), "bits")
    grouped = _known(schema, table).select(marked).group_by(word)
    return _summed(_total(exp.BitwiseCount(this=column("bits"))), grouped)


def _known(schema: Schema, table: str) -> exp.Select:
    return exp.select(aliased(exp.Count(this=exp.Star()), KNOWN)).from_(table).where(exp.not_(_unknown(schema)))


def _unknown(schema: Schema) -> exp.Expr:
    return exp.Is(this=column(schema.unit), expression=exp.null())


def _summed(different: exp.Expr, grouped: exp.Select) -> exp.Expr:
    return exp.select(aliased(_total(column(KNOWN)), KNOWN), aliased(different, DIFFERENT)).from_(
        grouped.subquery("ids", copy=False)
    )


def _total(tree: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=exp.Sum(this=tree), expressions=[constant(0)])


def span_tree(schema: Schema, table: str = SOURCE) -> exp.Expr:
    """The least and the largest id, and how many records there are."""
    return exp.select(*span_columns(schema)).from_(table)


def span_columns(schema: Schema) -> list[exp.Expr]:
    """What ``span_tree`` asks, for a pass that asks more."""
    unit = column(schema.unit)
    return [
        aliased(exp.Min(this=unit), LEAST),
        aliased(exp.Max(this=unit.copy()), MOST),
        aliased(exp.Count(this=exp.Star()), HELD),
    ]


def close(span: Mapping[str, int]) -> bool:
    """Whether ids with this span lie close together. A file that misstates it costs time, not exactness."""
    return span[LEAST] is not None and span[MOST] - span[LEAST] <= MOST_APART * span[HELD]


def fingerprints_tree(schema: Schema, stored: Stored, table: str = SOURCE) -> exp.Expr:
    """A 64-bit number for each id, the same for equal ids: the id itself where it is a whole number, else a hash of it."""
    unit = column(schema.unit)
    if stored.kind == "integer":
        number: exp.Expr = exp.Coalesce(this=exp.cast(unit, exp.DType.BIGINT), expressions=[constant(0)])
    else:
        number = exp.Anonymous(this="hash", expressions=[unit])
    return exp.select(aliased(number, FINGERPRINT)).from_(table)
