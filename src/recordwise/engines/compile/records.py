"""The record universe as SQL trees.

Levels, the view ``records``, and its checks. In the view a measure is a whole number of steps: integers and
decimals are converted by exact integer arithmetic, floats by T-LATTICE. Every check looks at one record
alone, except the check that ids are unique.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Literal

import pyarrow as pa
from sqlglot import exp

from recordwise.engines.compile.expressions import RECORDS, aliased, balanced_tree, column, constant, prefix_tree
from recordwise.errors import SourceError
from recordwise.plan.schema import (
    LARGEST_BOUND_STEPS,
    MONTHS,
    Column,
    DateFormat,
    Measure,
    NumberFormat,
    Schema,
    policy_measure,
)
from recordwise.policy.columns import WRITTEN

# The coarser levels of hierarchies as columns of the view ``records``: a public list of codes joined to each record
# (T-HIERARCHY). Each finest code is listed once, so that the join keeps every record exactly once; a record whose
# code is not listed has NULL at every coarser level.


WITHOUT_LEVELS = "held"


def list_name(number: int) -> str:
    """The table that holds the codes of a hierarchy of the schema."""
    return f"codes_of_hierarchy_{number}"


def code_lists(schema: Schema) -> Iterator[tuple[str, pa.Table]]:
    """Yield the public lists that the view joins, by name."""
    for number, each in enumerate(schema.hierarchies):
        names = [*(f"level{place}" for place in range(len(each.coarser))), "code"]
        yield list_name(number), each.codes.rename_columns(names)


def with_levels(records: exp.Select, schema: Schema) -> exp.Select:
    """Add the coarser levels of codes to records."""
    if not schema.hierarchies:
        return records
    select = exp.select(exp.Column(this=exp.Star(), table=exp.to_identifier(WITHOUT_LEVELS))).from_(
        records.subquery(WITHOUT_LEVELS, copy=False)
    )
    for number, each in enumerate(schema.hierarchies):
        name = list_name(number)
        same = exp.EQ(this=column(each.finest, WITHOUT_LEVELS), expression=column("code", name))
        select = select.join(exp.to_table(name), on=same, join_type="left")
        for place, level in enumerate(each.coarser):
            quoted = exp.to_identifier(level, quoted=True)
            select = select.select(aliased(column(f"level{place}", name), quoted))
    return select


# The view ``records`` and the checks that validate it.


SOURCE = "source"
FLOAT_WHOLE_LIMIT = 2**53
FLOAT_LATTICE_LIMIT = 2**50
"""Beyond this many steps a float cannot separate two neighbors on a fractional lattice (T-LATTICE)."""
NAN, INFINITE, NEGATIVE, BEYOND = "is not a number (NaN)", "is infinite", "is negative", "is beyond its public bound"
OFF = "is off the lattice of step {}"
FAULTS = {name: -LARGEST_BOUND_STEPS - code for code, name in enumerate((NAN, INFINITE, NEGATIVE, BEYOND, OFF), 1)}
"""What stands in a column of steps in the place of a value that is none, below every number of steps a record can have: of each
record at most one can be true."""
FLOATS = ("float", "text", "number")
MOST_DIGITS = 37
"""Digits plus scale of a decimal; one more would overflow when the point is moved."""

READABLE = {
    "DOUBLE": r"^ *[+-]?(([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN]) *\z",
    "BIGINT": r"^ *[+-]?[0-9]+ *\z",
    "DATE": rf"^{WRITTEN}\z",
    "BOOLEAN": r"^([tT]([rR][uU][eE])?|[fF]([aA][lL][sS][eE])?|[yY]([eE][sS])?|[nN][oO]?|[01])\z",
}
"""What a text may look like that is read as a number, a whole number, a date or a truth value."""


SPELLED = r"^[\s\p{Z}]|[\s\p{Z}]\z|[\p{Cc}\p{Cf}]|^[+-]?[0-9]+([.]0*|([.][0-9]*)?[eE][+][0-9]+)\z"
"""Ids that may be another spelling of an id: blanks around it, signs that nobody sees, and whole numbers as programs write floats:
1.0, 1e+05."""
SPELLING = "is a whole number written as a float, or has blanks around it or invisible signs"


@dataclass(frozen=True, slots=True)
class StorageType:
    """The storage of a source's column.

    ``other`` covers types allowed only for ids; ``text`` measures come from CSV. ``steps``: a measure that a
    server converted to a whole number of steps, or to a negative code of ``FAULTS``. ``number``: a SAS number,
    which is always a float.
    """

    kind: Literal["integer", "wide", "decimal", "float", "text", "boolean", "date", "zoned", "steps", "number", "other"]
    scale: int = 0
    comma: bool = False
    """Whether text has a decimal comma."""
    untyped: bool = False
    """Whether it is text only because its format knows nothing else: 1 and 1.0 may then be one id."""


@dataclass(frozen=True, slots=True)
class Check:
    """A condition that no record may satisfy."""

    column: str
    problem: str
    broken: exp.Expr
    code: str = ""
    """The kind of problem, where a program acts on it."""
    advice: str = ""
    """What to declare if the values are right."""


def records_tree(schema: Schema, stored: dict[str, StorageType]) -> exp.Expr:
    """CREATE VIEW records: a record is a row of the source."""
    select = with_derived(rows_select(schema, stored).from_(SOURCE), schema, "rows")
    temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
    return exp.Create(this=exp.to_table(RECORDS), kind="VIEW", expression=select, properties=temporary)


def rows_select(schema: Schema, stored: dict[str, StorageType]) -> exp.Select:
    """Return the selection of a row's columns.

    Ids as they are, measures in steps, conditional columns in their declared type; those of the unit come first.
    """
    held = [measure for measure in schema.measures if not measure.derive]
    steps = [quoted_alias(steps_tree(measure, stored[measure.name]), measure.name) for measure in held]
    conditional = {
        each.name: quoted_alias(_conditional_tree(each, stored[each.name]), each.name) for each in schema.columns
    }
    ids = [conditional.pop(name) if name in conditional else column(name) for name in schema.id_columns()]
    return exp.select(*ids, *steps, *conditional.values())


def with_derived(records: exp.Select, schema: Schema, name: str) -> exp.Select:
    """Add derived measures and coarser hierarchy levels to records."""
    return with_levels(_with_measures(records, schema, name), schema)


def _with_measures(records: exp.Select, schema: Schema, name: str) -> exp.Select:
    if not any(measure.derive for measure in schema.measures):
        return records
    derived = [
        quoted_alias(_derived_tree(measure, schema), measure.name) for measure in schema.measures if measure.derive
    ]
    return exp.select(exp.Star(), *derived).from_(records.subquery(name, copy=False))


def _derived_tree(measure: Measure, schema: Schema) -> exp.Expr:
    """Return a linear form in whole numbers of its steps."""
    total: exp.Expr | None = None
    for base, multiple in policy_measure(measure.name, schema).multiples():
        part = exp.Mul(this=_cast(column(base.name), "BIGINT"), expression=_cast(constant(multiple), "BIGINT"))
        total = part if total is None else exp.Add(this=total, expression=part)
    assert total is not None
    return exp.Paren(this=total)


def quoted_alias(tree: exp.Expr, name: str) -> exp.Expr:
    return aliased(tree, exp.to_identifier(name, quoted=True))


def checks(schema: Schema, stored: dict[str, StorageType]) -> Iterator[Check]:
    """Every check of the validation pass, column by column."""
    for identifier in schema.id_columns():
        yield Check(identifier, "is NULL", _is_null(column(identifier)))
        if stored[identifier].untyped and (text := _id_text(schema, identifier, stored)) is not None:
            yield Check(identifier, SPELLING, exp.RegexpLike(this=text, expression=exp.Literal.string(SPELLED)))
    for measure in schema.record_measures():
        yield from _measure_checks(measure, stored[measure.name])
    for each in schema.columns:
        if each.null == "refuse":
            yield Check(each.name, "is NULL", _is_null(column(each.name)))
        unread = _unread(each, stored[each.name])
        if unread is not None:
            advice = DATE_ADVICE.format(name=each.name) if each.type == "date" else ""
            yield Check(each.name, f"cannot be read as {each.type}", unread, advice=advice)


def _id_text(schema: Schema, name: str, stored: Mapping[str, StorageType]) -> exp.Expr | None:
    """Return an id as it is compared; None where it is no text, so that all spellings are one value."""
    given = next((each for each in schema.columns if each.name == name), None)
    if given is None:
        return column(name)
    return _conditional_tree(given, stored[name]) if given.type == "text" else None


def _unread(given: Column, stored: StorageType) -> exp.Expr | None:
    """Return where a stored value lacks the declared type.

    None if the storage cannot hold such a value.
    """
    raw, value = column(given.name), _conditional_tree(given, stored)
    if given.trim and stored.kind == "text":
        return exp.EQ(this=value, expression=exp.Literal.string(""))
    if _whole_float(given, stored):
        changed = exp.NEQ(this=_cast(value.copy(), "DOUBLE"), expression=raw)
        # Spark makes 2^63 the largest whole number of 64 bits, which as a float is 2^63 again.
        beyond = exp.GTE(this=raw.copy(), expression=exp.Literal.number(f"{float(2**63)!r}"))
        return _and(_is_known(raw), exp.or_(_is_null(value), changed, beyond))
    if given.type == "date":
        years = exp.Extract(this=exp.Var(this="YEAR"), expression=value.copy())
        outside = exp.or_(
            exp.LT(this=years, expression=constant(1)), exp.GT(this=years.copy(), expression=constant(9999))
        )
        # The year of an infinite date is NULL.
        return _and(_is_known(raw), exp.Coalesce(this=outside, expressions=[exp.true()]))
    if stored.kind == "text" and given.type != "text":
        return _and(_is_known(raw), _is_null(value))
    return None


def _measure_checks(measure: Measure, stored: StorageType) -> Iterator[Check]:
    name, raw = measure.name, column(measure.name)
    if measure.null == "refuse":
        yield Check(name, "is NULL", _is_null(raw))
    if stored.kind == "steps":
        for problem, code in FAULTS.items():
            broken = exp.EQ(this=raw, expression=constant(code))
            yield Check(name, problem.format(measure.step), broken, advice=_value_advice(measure, problem))
        return
    # A comparison with NULL is not true, so only floats need an additional test: NaN is above every bound.
    known: exp.Expr = exp.true()
    if stored.kind == "text":
        known, raw = _is_known(raw), _read_number(raw, stored, measure.number)
        yield Check(name, "cannot be read as a number", _and(known, _is_null(raw)), advice=_number_advice(measure))
    if stored.kind in FLOATS:
        finite = exp.not_(exp.or_(exp.IsNan(this=raw), exp.IsInf(this=raw)))
        yield Check(name, NAN, exp.IsNan(this=raw))
        yield Check(name, INFINITE, exp.IsInf(this=raw))
        known = _and(_is_known(raw), finite)
    limit = _limit_tree(largest_steps(measure, stored) * measure.step, stored)
    least = exp.Neg(this=exp.Paren(this=limit.copy())) if measure.signed else constant(0)
    above, below = exp.GT(this=raw, expression=limit), exp.LT(this=raw.copy(), expression=least)
    if not measure.signed:
        yield Check(name, NEGATIVE, _and(known, below), advice=_value_advice(measure, NEGATIVE))
    beyond = exp.Paren(this=exp.or_(above, below)) if measure.signed else above
    yield Check(name, BEYOND, _and(known, beyond))
    inside = _and(known, exp.not_(below.copy()), exp.not_(above.copy()))
    off = _off_lattice(measure, stored, raw)
    if off is not None:
        # CASE keeps the arithmetic away from values that would overflow; those are counted as beyond the bound.
        outside = exp.Case(ifs=[exp.If(this=inside, true=off)])
        yield Check(name, OFF.format(measure.step), outside, advice=_value_advice(measure, OFF))


def _value_advice(measure: Measure, problem: str) -> str:
    """Return what to declare if the values are right."""
    if problem == NEGATIVE and not measure.signed:
        return f"If {measure.name} may be negative, say so: signed = true."
    return f"If {measure.name} has values between, declare a finer step." if problem == OFF else ""


DATE_ADVICE = 'If dates of {name} are not written year-month-day, say how: date = "%d.%m.%Y".'


def _number_advice(measure: Measure) -> str:
    """Return how to say how numbers are written."""
    written = measure.number or NumberFormat(thousands=",", prefix="$")
    said = ", ".join(f'{each.name} = "{value}"' for each in fields(written) if (value := getattr(written, each.name)))
    if measure.number is None:
        return f"If {measure.name} has separators or a currency sign, say so: number = {{ {said} }}."
    return f"Numbers of {measure.name} are declared to be written so: number = {{ {said} }}; correct it, or the rows."


def largest_steps(measure: Measure, stored: StorageType) -> int:
    """Return the most steps a record may have.

    Its public bound, or what a float can hold exactly (T-LATTICE).
    """
    if stored.kind not in FLOATS:
        return measure.bound_steps
    # Text slightly beyond 2^53 is read as 2^53 itself, so that point is allowed only for stored floats.
    exact = (FLOAT_WHOLE_LIMIT - (stored.kind == "text")) // measure.step.numerator
    return min(measure.bound_steps, exact if measure.step.denominator == 1 else min(exact, FLOAT_LATTICE_LIMIT))


def _limit_tree(limit: Fraction, stored: StorageType) -> exp.Expr:
    """Return the bound in stored units, rounded down."""
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


def _off_lattice(measure: Measure, stored: StorageType, raw: exp.Expr) -> exp.Expr | None:
    """Return whether a value lies between two lattice points.

    None if the storage cannot hold such a value.
    """
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


def steps_tree(measure: Measure, stored: StorageType) -> exp.Expr:
    """Return a stored value in whole steps.

    A missing one is 0 if the measure declares it.
    """
    steps = _stored_steps(measure, stored)
    return steps if measure.null == "refuse" else exp.Coalesce(this=steps, expressions=[constant(0)])


def _stored_steps(measure: Measure, stored: StorageType) -> exp.Expr:
    raw, step = column(measure.name), measure.step
    if stored.kind == "steps":
        return raw
    if stored.kind in FLOATS:
        return _float_steps(step, _read_number(raw, stored, measure.number) if stored.kind == "text" else raw)
    up, down = step.denominator, step.numerator * 10**stored.scale
    if stored.kind == "integer" and up == down == 1:
        # The opposite of the least number of a narrow type does not fit that type.
        return _cast(raw, "BIGINT") if measure.signed else raw
    scaled = exp.Paren(this=exp.Mul(this=_whole_tree(stored, raw), expression=constant(up)))
    return _cast(exp.IntDiv(this=scaled, expression=constant(down)), "BIGINT")


def _whole_tree(stored: StorageType, raw: exp.Expr) -> exp.Expr:
    """The digits of an integer or a decimal as a 128-bit integer."""
    if stored.kind == "decimal" and stored.scale:
        unit = exp.Cast(this=constant(10**stored.scale), to=exp.DataType.build(f"DECIMAL({stored.scale + 1}, 0)"))
        return _cast(exp.Paren(this=exp.Mul(this=raw.copy(), expression=unit)), "INT128")
    return _cast(raw.copy(), "INT128")


def _float_steps(step: Fraction, raw: exp.Expr) -> exp.Expr:
    """Return the nearest whole number of steps.

    Validation has shown that the float is the one nearest to that step (T-LATTICE).
    """
    scaled = raw.copy()
    if step.denominator != 1:
        scaled = exp.Mul(this=scaled, expression=_cast(constant(step.denominator), "DOUBLE"))
    if step.numerator != 1:
        scaled = exp.Div(this=scaled, expression=_cast(constant(step.numerator), "DOUBLE"))
    return _try(exp.Round(this=scaled), "BIGINT")


def _conditional_tree(given: Column, stored: StorageType) -> exp.Expr:
    raw = column(given.name)
    if given.type == "text" and given.trim and stored.kind == "text":
        return exp.Trim(this=raw, expression=exp.Literal.string(" "))
    if given.type == "text":
        return raw if stored.kind == "text" else _cast(raw, "VARCHAR")
    if given.date and stored.kind == "text":
        return _read_date(raw, DateFormat(given.date))
    target = {"integer": "BIGINT", "boolean": "BOOLEAN", "date": "DATE"}[given.type]
    if stored.kind == "text" and target == "DATE":
        return _parse_text(raw, target, first=10)
    if stored.kind == "text":
        return _parse_text(raw, target)
    return _try(raw, target) if _whole_float(given, stored) else _cast(raw, target)


def _whole_float(given: Column, stored: StorageType) -> bool:
    """Return whether whole numbers are stored as floats."""
    return given.type == "integer" and stored.kind in ("number", "float")


def type_problem(name: str, role: str, stored: StorageType) -> SourceError | None:
    """Return an error if a role cannot use its column's storage."""
    usable = {
        "measure": ("integer", "wide", "decimal", "float", "text", "steps", "number"),
        "text": ("text",),
        "integer": ("integer", "text", "number", "float"),
        "boolean": ("boolean", "text"),
        "date": ("date", "text"),
    }[role]
    if stored.kind in usable:
        return None
    how = "a time with a time zone" if stored.kind == "zoned" else stored.kind
    advice = "Store the local day or time, without a zone." if stored.kind == "zoned" else ""
    return SourceError(
        source=f"column '{name}'", problem=f"it is declared as {role} but stored as {how}", advice=advice
    )


def _cast(tree: exp.Expr, to: str) -> exp.Expr:
    return exp.Cast(this=tree, to=exp.DataType(this=exp.DType[to]))


def _read_number(text: exp.Expr, stored: StorageType, written: NumberFormat | None) -> exp.Expr:
    """Read a text as a number in its declared format.

    With a decimal comma a point is refused, and the reverse: neither is a thousands separator.
    """
    if written is not None:
        bare = text.copy()
        for each in written.removed():
            bare = _replaced(bare, each, "")
        return _where_like(text, written.pattern(), _try(_replaced(bare, written.decimal, "."), "DOUBLE"))
    if not stored.comma:
        return _parse_text(text, "DOUBLE")
    pattern = READABLE["DOUBLE"].replace("[.]", "[,]")
    return _where_like(text, pattern, _try(_replaced(text, ",", "."), "DOUBLE"))


def _read_date(text: exp.Expr, written: DateFormat) -> exp.Expr:
    """Read a text as a date, part by part, as it is declared to be written."""
    pattern, groups = written.pattern(), written.groups()

    def part(name: str) -> exp.Expr:
        return _call("REGEXP_EXTRACT", text.copy(), exp.Literal.string(pattern), constant(groups[name]))

    if "b" in groups:
        # Three letters of a month stand at a multiple of four, so that the place gives its number.
        place = exp.func("INSTR", exp.Literal.string(" ".join(MONTHS)), _call("LOWER", part("b")))
        number = exp.IntDiv(this=exp.Paren(this=exp.Add(this=place, expression=constant(3))), expression=constant(4))
        month: exp.Expr = _cast(number, "VARCHAR")
    else:
        month = part("m")
    dash = exp.Literal.string("-")
    day = _call("CONCAT", part("Y"), dash, _two_digits(month), dash.copy(), _two_digits(part("d")))
    return _where_like(text, pattern, _try(day, "DATE"))


def _two_digits(text: exp.Expr) -> exp.Expr:
    return _call("LPAD", text, constant(2), exp.Literal.string("0"))


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _replaced(text: exp.Expr, old: str, new: str) -> exp.Expr:
    return _call("REPLACE", text.copy(), exp.Literal.string(old), exp.Literal.string(new))


def _where_like(text: exp.Expr, pattern: str, value: exp.Expr) -> exp.Expr:
    """Return a value where a text matches a pattern, and NULL elsewhere."""
    plain = exp.RegexpLike(this=text.copy(), expression=exp.Literal.string(pattern))
    return exp.Case(ifs=[exp.If(this=plain, true=value)])


def _parse_text(text: exp.Expr, to: str, *, first: int | None = None) -> exp.Expr:
    """Read a text as a number, date or truth value.

    Or its first characters; NULL where it is none. Engines alone would accept different forms: 1_000, 5d or
    0x10.
    """
    start = text if first is None else prefix_tree(text.copy(), first)
    return _where_like(text, READABLE[to], _try(start, to))


def _try(tree: exp.Expr, to: str) -> exp.Expr:
    return exp.TryCast(this=tree.copy(), to=exp.DataType(this=exp.DType[to]))


def _is_null(tree: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Is(this=tree.copy(), expression=exp.null()))


def _is_known(tree: exp.Expr) -> exp.Expr:
    return exp.not_(_is_null(tree))


def _and(*parts: exp.Expr) -> exp.Expr:
    return exp.and_(*(part.copy() for part in parts if not isinstance(part, exp.Boolean)))


BROKEN = "broken"


def broken_tree(found: list[Check], table: str = SOURCE, *, others: Sequence[exp.Expr] = ()) -> exp.Expr:
    """Count the records that meet any condition, in one pass."""
    return exp.select(aliased(_count_where(any_broken(found)), BROKEN), *others).from_(table)


def any_broken(found: Sequence[Check]) -> exp.Expr:
    """Whether a record meets any of the conditions."""
    return balanced_tree(exp.Or, [check.broken.copy() for check in found])


def validation_tree(found: list[Check], table: str = SOURCE) -> exp.Expr:
    """One pass: how many records meet each condition."""
    counts = [aliased(_count_where(check.broken), f"c{number}") for number, check in enumerate(found)]
    return exp.select(*counts).from_(table)


def _count_where(condition: exp.Expr) -> exp.Expr:
    return exp.Filter(this=exp.Count(this=exp.Star()), expression=exp.Where(this=condition))


# Several rows of a unit become one record, as trees: before anything else reads the records, and in whole numbers
# (T-COLLAPSE). Rows are grouped by the unit and by every column whose rule is ``same``. If each unit then occurs
# once, its rows agree; the units that occur more than once are those whose rows differ.


COLLAPSED = "collapsed"
DIFFERS = "differs between the rows of a unit"
FOUND = "found"
_RULES: dict[str, type[exp.Expr]] = {"sum": exp.Sum, "max": exp.Max, "min": exp.Min}


def collapsed_tree(
    schema: Schema, stored: dict[str, StorageType], found: Sequence[Check] = (), *, widened: bool = False
) -> exp.Select:
    """Return one row for each unit.

    The rows of a unit must agree where the schema requires it. A sum has 128 bits until its bound is checked.
    With checks of rows, those that meet one get a unit of NULL, so that the pass which joins rows also counts
    them. ``widened``: for engines whose sum of 64-bit numbers has 64 bits.
    """
    rows = rows_select(schema, stored)
    if found:
        unit, *others = rows.expressions
        aside = exp.Case(ifs=[exp.If(this=any_broken(found), true=exp.null())], default=unit.unalias().copy())
        rows.set("expressions", [quoted_alias(aside, schema.unit_columns[0]), *others])
    grouped = [column(name) for name in (*schema.unit_columns, *same_names(schema))]
    select = exp.select(*grouped)
    for name, rule in schema.collapse or ():
        if rule in _RULES:
            value = column(name)
            if widened and rule == "sum":
                value = exp.Cast(this=value, to=exp.DataType(this=exp.DType.INT128))
            select = select.select(quoted_alias(_RULES[rule](this=value), name))
    return select.from_(rows.from_(SOURCE).subquery("rows", copy=False)).group_by(*(tree.copy() for tree in grouped))


def any_aside_tree(schema: Schema) -> exp.Expr:
    """How many records stand for rows that were put aside."""
    aside = exp.Is(this=column(schema.unit_columns[0]), expression=exp.null())
    return exp.select(aliased(exp.Count(this=exp.Star()), BROKEN)).from_(COLLAPSED).where(aside)


def collapsed_records_tree(schema: Schema) -> exp.Expr:
    """CREATE VIEW records over the collapsed rows, every measure in 64 bits."""
    select = exp.select(
        *map(column, schema.unit_columns), *(_narrow(name, rule) for name, rule in schema.collapse or ())
    )
    select = with_derived(select.from_(COLLAPSED), schema, "units")
    temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
    return exp.Create(this=exp.to_table(RECORDS), kind="VIEW", expression=select, properties=temporary)


def _narrow(name: str, rule: str) -> exp.Expr:
    if rule != "sum":
        return column(name)
    return quoted_alias(exp.Cast(this=column(name), to=exp.DataType(this=exp.DType.BIGINT)), name)


def same_names(schema: Schema) -> tuple[str, ...]:
    """The columns in which all rows of a unit must agree."""
    return tuple(name for name, rule in schema.collapse or () if rule == "same")


def collapse_checks(schema: Schema) -> Iterator[Check]:
    """Yield the checks of a collapsed record's sums against their bounds."""
    for measure in schema.measures:
        if schema.rule(measure.name) == "sum":
            beyond = exp.GT(this=exp.Abs(this=column(measure.name)), expression=constant(measure.bound_steps))
            yield Check(measure.name, BEYOND, beyond)


def differing_tree(schema: Schema, names: tuple[str, ...]) -> exp.Expr:
    """Count repeated units, and those with differing values per column."""
    per_unit = exp.select(aliased(exp.Count(this=exp.Star()), FOUND))
    for number, name in enumerate(names):
        missing = exp.Case(
            ifs=[exp.If(this=exp.Is(this=column(name), expression=exp.null()), true=constant(1))], default=constant(0)
        )
        different = exp.Count(this=exp.Distinct(expressions=[column(name)]))
        per_unit = per_unit.select(aliased(exp.Add(this=different, expression=exp.Max(this=missing)), f"d{number}"))
    per_unit = per_unit.from_(COLLAPSED).group_by(*map(column, schema.unit_columns))
    columns = [FOUND, *(f"d{number}" for number in range(len(names)))]
    several = [
        exp.Filter(
            this=exp.Count(this=exp.Star()),
            expression=exp.Where(this=exp.GT(this=column(each), expression=constant(1))),
        )
        for each in columns
    ]
    return exp.select(*(aliased(tree, name) for tree, name in zip(several, columns))).from_(
        per_unit.subquery("units", copy=False)
    )


# The uniqueness of ids as SQL trees. Whole numbers are distinguished by bits: 32 neighbors share a word, in which
# each sets its own bit. Ids that are close together then need few words, and the set bits are the different ids,
# counted exactly (T-UNIQUE).


KNOWN, DIFFERENT = "known", "different"
LEAST, MOST, HELD = "least", "most", "held"
FINGERPRINT, ID = "fingerprint", "id"
WORD_BITS = 5
MOST_APART = 16
"""Whole numbers are counted by bits where at most this many numbers lie between two of them, on average."""


def different_tree(schema: Schema, table: str = SOURCE) -> exp.Expr:
    """Count ids and distinct ids by group-by, ignoring NULL."""
    grouped = _known_ids(schema, table).group_by(*map(column, schema.unit_columns))
    return _total_over_groups(exp.Count(this=exp.Star()), grouped)


def shuffled_tree(schema: Schema, table: str = SOURCE, *, by: exp.Expr | None = None) -> exp.Expr:
    """The same for Spark, or how many different values of ``by``.

    Left alone, Spark groups the ids of each partition before it sends them, and hardly any are equal. A count of distinct values
    next to other counts would carry those along.
    """
    values = [column(name) for name in schema.unit_columns] if by is None else [by]
    names = [f"{ID}{number}" for number in range(len(values))]
    taken = exp.select(*map(aliased, values, names)).from_(table).where(exp.not_(_unknown(schema)))
    taken = taken.hint(exp.Anonymous(this="REPARTITION", expressions=[*map(column, names)]))
    grouped = exp.select(aliased(exp.Count(this=exp.Star()), KNOWN)).from_(taken.subquery("taken", copy=False))
    return _total_over_groups(exp.Count(this=exp.Star()), grouped.group_by(*map(column, names)))


def bits_tree(schema: Schema, table: str = SOURCE) -> exp.Expr:
    """Count whole-number ids and distinct ones, ignoring NULL."""
    number = exp.cast(column(schema.unit_columns[0]), exp.DType.BIGINT)
    word = exp.BitwiseRightShift(this=number, expression=constant(WORD_BITS))
    place = exp.cast(
        exp.Paren(this=exp.BitwiseAnd(this=number.copy(), expression=constant(2**WORD_BITS - 1))), exp.DType.INT
    )
    bit = exp.BitwiseLeftShift(this=exp.cast(constant(1), exp.DType.BIGINT), expression=place)
    marked = aliased(exp.BitwiseOrAgg(this=bit), "bits")
    grouped = _known_ids(schema, table).select(marked).group_by(word)
    return _total_over_groups(_total(exp.BitwiseCount(this=column("bits"))), grouped)


def _known_ids(schema: Schema, table: str) -> exp.Select:
    return exp.select(aliased(exp.Count(this=exp.Star()), KNOWN)).from_(table).where(exp.not_(_unknown(schema)))


def _unknown(schema: Schema) -> exp.Expr:
    return exp.or_(*(_is_null(column(name)) for name in schema.unit_columns))


def id_table(schema: Schema) -> str:
    """Return where ids are compared; parts of an id may be columns, and are one value as those read them."""
    return SOURCE if len(schema.unit_columns) == 1 else RECORDS


def id_storage(schema: Schema, stored: Mapping[str, StorageType]) -> StorageType:
    """Return how the id is stored; one of several columns is only compared, never counted by bits."""
    return stored[schema.unit_columns[0]] if len(schema.unit_columns) == 1 else StorageType("other")


def _total_over_groups(different: exp.Expr, grouped: exp.Select) -> exp.Expr:
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
    unit = column(schema.unit_columns[0])
    return [
        aliased(exp.Min(this=unit), LEAST),
        aliased(exp.Max(this=unit.copy()), MOST),
        aliased(exp.Count(this=exp.Star()), HELD),
    ]


def close(span: Mapping[str, int]) -> bool:
    """Return whether ids lie close together by their stated span.

    A file that misstates it costs time, not exactness.
    """
    return span[LEAST] is not None and span[MOST] - span[LEAST] <= MOST_APART * span[HELD]


def fingerprints_tree(schema: Schema, stored: StorageType, table: str = SOURCE) -> exp.Expr:
    """Return each id as a 64-bit number or hash."""
    units = [column(name) for name in schema.unit_columns]
    if stored.kind == "integer":
        number: exp.Expr = exp.Coalesce(this=exp.cast(units[0], exp.DType.BIGINT), expressions=[constant(0)])
    else:
        number = exp.Anonymous(this="hash", expressions=units)
    return exp.select(aliased(number, FINGERPRINT)).from_(table)
