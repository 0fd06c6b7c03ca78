"""Several rows for a unit become one record, as trees: before anything else reads the records, and in whole numbers (T-COLLAPSE).

Rows are grouped by the unit and by every column whose rule is ``same``. If each unit is then there once, its rows agree; if not,
the units that are there more than once are those whose rows differ.
"""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from recordwise.engines.compile.expressions import RECORDS, aliased, column, constant
from recordwise.engines.compile.records import (
    BEYOND,
    BROKEN,
    SOURCE,
    Check,
    Stored,
    any_broken,
    named,
    rows_select,
    with_derived,
)
from recordwise.plan.schema import Schema

COLLAPSED = "collapsed"
DIFFERS = "differs between the rows of a unit"
FOUND = "found"
_RULES: dict[str, type[exp.Expr]] = {"sum": exp.Sum, "max": exp.Max, "min": exp.Min}


def collapsed_tree(
    schema: Schema, stored: dict[str, Stored], found: Sequence[Check] = (), *, widened: bool = False
) -> exp.Select:
    """One row for each unit, if the rows of every unit agree where they must. A sum has 128 bits until its bound is checked.

    With checks of rows, those that meet one are put aside under a unit of NULL, so that the pass which joins rows also says whether
    there are any. ``widened``: for engines whose sum of 64-bit numbers has 64 bits.
    """
    rows = rows_select(schema, stored)
    if found:
        unit, *others = rows.expressions
        aside = exp.Case(ifs=[exp.If(this=any_broken(found), true=exp.null())], default=unit.copy())
        rows.set("expressions", [named(aside, schema.unit), *others])
    grouped = [column(name) for name in (schema.unit, *same_names(schema))]
    select = exp.select(*grouped)
    for name, rule in schema.collapse or ():
        if rule in _RULES:
            value = column(name)
            if widened and rule == "sum":
                value = exp.Cast(this=value, to=exp.DataType(this=exp.DType.INT128))
            select = select.select(named(_RULES[rule](this=value), name))
    return select.from_(rows.from_(SOURCE).subquery("rows", copy=False)).group_by(*(tree.copy() for tree in grouped))


def any_aside_tree(schema: Schema) -> exp.Expr:
    """How many records stand for rows that were put aside."""
    aside = exp.Is(this=column(schema.unit), expression=exp.null())
    return exp.select(aliased(exp.Count(this=exp.Star()), BROKEN)).from_(COLLAPSED).where(aside)


def collapsed_records_tree(schema: Schema) -> exp.Expr:
    """CREATE VIEW records over the collapsed rows, every measure in 64 bits."""
    select = exp.select(column(schema.unit), *(_narrow(name, rule) for name, rule in schema.collapse or ()))
    select = with_derived(select.from_(COLLAPSED), schema, "units")
    temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
    return exp.Create(this=exp.to_table(RECORDS), kind="VIEW", expression=select, properties=temporary)


def _narrow(name: str, rule: str) -> exp.Expr:
    if rule != "sum":
        return column(name)
    return named(exp.Cast(this=column(name), to=exp.DataType(this=exp.DType.BIGINT)), name)


def same_names(schema: Schema) -> tuple[str, ...]:
    """The columns in which all rows of a unit must agree."""
    return tuple(name for name, rule in schema.collapse or () if rule == "same")


def collapse_checks(schema: Schema) -> Iterator[Check]:
    """What a collapsed record may not meet: each of its rows is within the bound, their sum need not be."""
    for measure in schema.measures:
        if schema.rule(measure.name) == "sum":
            beyond = exp.GT(this=exp.Abs(this=column(measure.name)), expression=constant(measure.bound_steps))
            yield Check(measure.name, BEYOND, beyond)


def differing_tree(schema: Schema, names: tuple[str, ...]) -> exp.Expr:
    """How many units are there more than once, and for each column how many have several values of it, NULL among them."""
    unit = column(schema.unit)
    per_unit = exp.select(aliased(exp.Count(this=exp.Star()), FOUND))
    for number, name in enumerate(names):
        missing = exp.Case(
            ifs=[exp.If(this=exp.Is(this=column(name), expression=exp.null()), true=constant(1))], default=constant(0)
        )
        different = exp.Count(this=exp.Distinct(expressions=[column(name)]))
        per_unit = per_unit.select(aliased(exp.Add(this=different, expression=exp.Max(this=missing)), f"d{number}"))
    per_unit = per_unit.from_(COLLAPSED).group_by(unit)
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
