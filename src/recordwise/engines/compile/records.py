"""The record universe as trees: the view ``records`` that every query reads, and the one pass that checks it.

In the view a measure is a whole number of steps. How a stored number becomes one depends on how it is stored: integers and
decimals by exact integer arithmetic, floats by T-LATTICE. Every check looks at one record alone, except that ids are unique.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from sqlglot import exp

from recordwise.engines.compile.expressions import RECORDS, column, constant
from recordwise.errors import SourceError
from recordwise.plan.schema import Column, Measure, Schema

SOURCE = "source"
FLOAT_WHOLE_LIMIT = 2**53
FLOAT_LATTICE_LIMIT = 2**50
"""Beyond so many steps a float can no longer tell two neighbors of a fractional lattice apart (T-LATTICE)."""
NAN, INFINITE, NEGATIVE, BEYOND = "is not a number (NaN)", "is infinite", "is negative", "is beyond its public bound"
OFF = "is off the lattice of step {}"
FAULTS = {NAN: -1, INFINITE: -2, NEGATIVE: -3, BEYOND: -4, OFF: -5}
"""What stands in a column of steps in the place of a value that is none: of each record at most one can be true."""
FLOATS = ("float", "text", "number")
MOST_DIGITS = 37
"""Digits and scale of a decimal together; one more would overflow when the point is moved."""

READABLE = {
    "DOUBLE": r"^ *[+-]?(([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN]) *\z",
    "BIGINT": r"^ *[+-]?[0-9]+ *\z",
    "BOOLEAN": r"^([tT]([rR][uU][eE])?|[fF]([aA][lL][sS][eE])?|[yY]([eE][sS])?|[nN][oO]?|[01])\z",
}
"""What a text may look like that is read as a number, a whole number or a truth value."""


@dataclass(frozen=True, slots=True)
class Stored:
    """How a source stores a column. ``other`` covers what only an id may be; ``text`` measures come from CSV.

    ``steps``: a measure that a server made a whole number of steps, or a negative code of ``FAULTS``. ``number``: a number of SAS,
    which is a float whatever it means.
    """

    kind: Literal["integer", "wide", "decimal", "float", "text", "boolean", "steps", "number", "other"]
    scale: int = 0


@dataclass(frozen=True, slots=True)
class Check:
    """A condition that no record may meet."""

    column: str
    problem: str
    broken: exp.Expr


def records_tree(schema: Schema, stored: dict[str, Stored]) -> exp.Expr:
    """CREATE VIEW records: ids as they are, measures in steps, conditional columns in their declared type."""
    select = exp.select(column(schema.unit))
    if schema.firm:
        select = select.select(column(schema.firm))
    for measure in schema.measures:
        select = select.select(_named(steps_tree(measure, stored[measure.name]), measure.name))
    for each in schema.columns:
        select = select.select(_named(_conditional_tree(each, stored[each.name]), each.name))
    temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
    return exp.Create(this=exp.to_table(RECORDS), kind="VIEW", expression=select.from_(SOURCE), properties=temporary)


def _named(tree: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(tree, exp.to_identifier(name, quoted=True))


def checks(schema: Schema, stored: dict[str, Stored]) -> Iterator[Check]:
    """Everything validation looks for, column by column."""
    for identifier in [schema.unit, *([schema.firm] if schema.firm else [])]:
        yield Check(identifier, "is NULL", _is_null(column(identifier)))
    for measure in schema.measures:
        yield from _measure_checks(measure, stored[measure.name])
    for each in schema.columns:
        if each.null == "refuse":
            yield Check(each.name, "is NULL", _is_null(column(each.name)))
        unread = _unread(each, stored[each.name])
        if unread is not None:
            yield Check(each.name, f"cannot be read as {each.type}", unread)


def _unread(given: Column, stored: Stored) -> exp.Expr | None:
    """Where a stored value is none of the declared type; None where the storage cannot hold one."""
    raw, value = column(given.name), _conditional_tree(given, stored)
    if stored.kind == "number":
        return _and(_known(raw), exp.or_(_is_null(value), exp.NEQ(this=_cast(value.copy(), "DOUBLE"), expression=raw)))
    if stored.kind == "text" and given.type != "text":
        return _and(_known(raw), _is_null(value))
    return None


def _measure_checks(measure: Measure, stored: Stored) -> Iterator[Check]:
    name, raw = measure.name, column(measure.name)
    yield Check(name, "is NULL", _is_null(raw))
    if stored.kind == "steps":
        for problem, code in FAULTS.items():
            yield Check(name, problem.format(measure.step), exp.EQ(this=raw, expression=constant(code)))
        return
    # A comparison with NULL is not true, so only floats need a test beside it: NaN is above every bound.
    known: exp.Expr = exp.true()
    if stored.kind == "text":
        known, raw = _known(raw), _read(raw, "DOUBLE")
        yield Check(name, "cannot be read as a number", _and(known, _is_null(raw)))
    if stored.kind in FLOATS:
        finite = exp.not_(exp.or_(exp.IsNan(this=raw), exp.IsInf(this=raw)))
        yield Check(name, NAN, exp.IsNan(this=raw))
        yield Check(name, INFINITE, exp.IsInf(this=raw))
        known = _and(_known(raw), finite)
    yield Check(name, NEGATIVE, _and(known, exp.LT(this=raw, expression=constant(0))))
    limit = largest_steps(measure, stored)
    beyond = exp.GT(this=raw, expression=_limit_tree(limit * measure.step, stored))
    yield Check(name, BEYOND, _and(known, beyond))
    inside = _and(known, exp.GTE(this=raw, expression=constant(0)), exp.not_(beyond.copy()))
    off = _off_lattice(measure, stored, raw)
    if off is not None:
        # CASE keeps the arithmetic away from values it could overflow on; those are counted as beyond the bound.
        yield Check(name, OFF.format(measure.step), exp.Case(ifs=[exp.If(this=inside, true=off)]))


def largest_steps(measure: Measure, stored: Stored) -> int:
    """The most steps a record may have: its public bound, or what a float can hold exactly (T-LATTICE)."""
    if stored.kind not in FLOATS:
        return measure.bound_steps
    # A text just beyond 2^53 is read as 2^53 itself, so that point is left to stored floats.
    exact = (FLOAT_WHOLE_LIMIT - (stored.kind == "text")) // measure.step.numerator
    return min(measure.bound_steps, exact if measure.step.denominator == 1 else min(exact, FLOAT_LATTICE_LIMIT))


def _limit_tree(limit: Fraction, stored: Stored) -> exp.Expr:
    """The bound in the units of the stored column, rounded down to what the column can hold."""
    if stored.kind in FLOATS:
        return exp.Div(
            this=_cast(constant(limit.numerator), "DOUBLE"), expression=_cast(constant(limit.denominator), "DOUBLE")
        )
    if stored.kind == "decimal":
        whole = min(limit * 10**stored.scale // 1, 10**MOST_DIGITS - 1)
        text = (
            f"{whole // 10**stored.scale}.{whole % 10**stored.scale:0{stored.scale}d}" if stored.scale else str(whole)
        )
        return exp.Literal.number(text)
    return constant(int(limit // 1))


def _off_lattice(measure: Measure, stored: Stored, raw: exp.Expr) -> exp.Expr | None:
    """A value between two lattice points; None where the storage cannot hold one."""
    step = measure.step
    if stored.kind in ("integer", "wide", "decimal"):
        up, down = step.denominator, step.numerator * 10**stored.scale
        if up % down == 0:
            return None
        scaled = exp.Mul(this=_whole_tree(stored, raw), expression=constant(up))
        return exp.NEQ(this=exp.Mod(this=exp.Paren(this=scaled), expression=constant(down)), expression=constant(0))
    back = exp.Mul(this=_float_steps(step, raw), expression=constant(step.numerator))
    nearest = exp.Div(this=_cast(back, "DOUBLE"), expression=_cast(constant(step.denominator), "DOUBLE"))
    return exp.NEQ(this=nearest, expression=raw.copy())


def steps_tree(measure: Measure, stored: Stored) -> exp.Expr:
    """A stored value as a whole number of steps."""
    raw, step = column(measure.name), measure.step
    if stored.kind == "steps":
        return raw
    if stored.kind in FLOATS:
        return _float_steps(step, _read(raw, "DOUBLE") if stored.kind == "text" else raw)
    up, down = step.denominator, step.numerator * 10**stored.scale
    if stored.kind == "integer" and up == down == 1:
        return raw
    scaled = exp.Paren(this=exp.Mul(this=_whole_tree(stored, raw), expression=constant(up)))
    return _cast(exp.IntDiv(this=scaled, expression=constant(down)), "BIGINT")


def _whole_tree(stored: Stored, raw: exp.Expr) -> exp.Expr:
    """The digits of an integer or a decimal as a 128-bit integer."""
    if stored.kind == "decimal" and stored.scale:
        unit = exp.Cast(this=constant(10**stored.scale), to=exp.DataType.build(f"DECIMAL({stored.scale + 1}, 0)"))
        return _cast(exp.Paren(this=exp.Mul(this=raw.copy(), expression=unit)), "INT128")
    return _cast(raw.copy(), "INT128")


def _float_steps(step: Fraction, raw: exp.Expr) -> exp.Expr:
    """The nearest whole number of steps; validation has shown that the float is the one nearest to it (T-LATTICE)."""
    scaled = raw.copy()
    if step.denominator != 1:
        scaled = exp.Mul(this=scaled, expression=_cast(constant(step.denominator), "DOUBLE"))
    if step.numerator != 1:
        scaled = exp.Div(this=scaled, expression=_cast(constant(step.numerator), "DOUBLE"))
    return _try(exp.Round(this=scaled), "BIGINT")


def _conditional_tree(given: Column, stored: Stored) -> exp.Expr:
    raw = column(given.name)
    if given.type == "text":
        return raw if stored.kind == "text" else _cast(raw, "VARCHAR")
    target = "BIGINT" if given.type == "integer" else "BOOLEAN"
    if stored.kind == "text":
        return _read(raw, target)
    return _try(raw, target) if stored.kind == "number" else _cast(raw, target)


def type_problem(name: str, role: str, stored: Stored) -> SourceError | None:
    """Whether a column is stored in a way its role can use; checked before any record is read."""
    usable = {
        "measure": ("integer", "wide", "decimal", "float", "text", "steps", "number"),
        "text": ("text",),
        "integer": ("integer", "text", "number"),
        "boolean": ("boolean", "text"),
    }[role]
    if stored.kind in usable:
        return None
    return SourceError(source=f"column '{name}'", problem=f"it is declared {role} and stored as {stored.kind}")


def _cast(tree: exp.Expr, to: str) -> exp.Expr:
    return exp.Cast(this=tree, to=exp.DataType.build(to))


def _read(text: exp.Expr, to: str) -> exp.Expr:
    """A text as a number or truth value, NULL where it is none. Left alone, each engine has its own: 1_000, 5d or 0x10."""
    plain = exp.RegexpLike(this=text.copy(), expression=exp.Literal.string(READABLE[to]))
    return exp.Case(ifs=[exp.If(this=plain, true=_try(text, to))])


def _try(tree: exp.Expr, to: str) -> exp.Expr:
    return exp.TryCast(this=tree.copy(), to=exp.DataType.build(to))


def _is_null(tree: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Is(this=tree.copy(), expression=exp.null()))


def _known(tree: exp.Expr) -> exp.Expr:
    return exp.not_(_is_null(tree))


def _and(*parts: exp.Expr) -> exp.Expr:
    return exp.and_(*(part.copy() for part in parts if not isinstance(part, exp.Boolean)))


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
