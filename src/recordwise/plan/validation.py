"""Validation as trees: one pass that counts what breaks the schema, and what tells whether ids are unique."""

from sqlglot import exp

from recordwise.plan.records import SOURCE, Check, Stored
from recordwise.plan.schema import Schema
from recordwise.plan.trees import column

HELD, REPEATED, FINGERPRINT = "held", "repeated", "fingerprint"


def validation_tree(found: list[Check]) -> exp.Expr:
    """One pass: how many records there are, and how many meet each condition."""
    select = exp.select(exp.alias_(exp.Count(this=exp.Star()), HELD)).from_(SOURCE)
    for number, check in enumerate(found):
        counted = exp.Filter(this=exp.Count(this=exp.Star()), expression=exp.Where(this=check.broken))
        select = select.select(exp.alias_(counted, f"c{number}"))
    return select


def repeated_tree(schema: Schema) -> exp.Expr:
    """How many ids are not new, by a count that spills."""
    different = exp.Count(this=exp.Distinct(expressions=[column(schema.unit)]))
    known = exp.Count(this=column(schema.unit))
    return exp.select(exp.alias_(exp.Sub(this=known, expression=different), REPEATED)).from_(SOURCE)


def fingerprints_tree(schema: Schema, stored: Stored) -> exp.Expr:
    """A 64-bit number for each id, the same for equal ids: the id itself where it is a whole number, else a hash of it."""
    unit = column(schema.unit)
    if stored.kind == "integer":
        number: exp.Expr = exp.Cast(this=unit, to=exp.DataType.build("BIGINT"))
    else:
        number = exp.Anonymous(this="hash", expressions=[unit])
    return exp.select(exp.alias_(number, FINGERPRINT)).from_(SOURCE)
