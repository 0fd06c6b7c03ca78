"""The checks of a table in two statements: one pass that shuffles nothing, and one for the uniqueness of ids."""

from sqlglot import exp

from recordwise.engines.compile.expressions import column
from recordwise.engines.compile.records import SOURCE, Check
from recordwise.engines.store import Store
from recordwise.errors import DataError, RecordError
from recordwise.plan.schema import Schema

REPEATED = "repeats an id that must be unique"


def validate(store: Store, found: list[Check], schema: Schema) -> None:
    """Raise ``DataError`` with counts and column names if a record breaks the schema."""
    (counts,) = store.of_records(_counts(found)).to_pylist()
    (ids,) = store.of_records(_ids(schema)).to_pylist()
    problems = [
        RecordError(column=check.column, problem=check.problem, count=counts[f"c{number}"])
        for number, check in enumerate(found)
        if counts[f"c{number}"]
    ]
    if ids["known"] > ids["different"]:
        problems.append(RecordError(column=schema.unit, problem=REPEATED, count=ids["known"] - ids["different"]))
    if problems:
        raise DataError(problems=tuple(problems))


def _counts(found: list[Check]) -> exp.Expr:
    select = exp.select().from_(SOURCE)
    for number, check in enumerate(found):
        counted = exp.Filter(this=exp.Count(this=exp.Star()), expression=exp.Where(this=check.broken))
        select = select.select(exp.alias_(counted, f"c{number}"))
    return select


def _ids(schema: Schema) -> exp.Expr:
    """Ids are told apart by a group-by, which spills; a count of distinct values beside other counts would carry those along."""
    unit = column(schema.unit)
    grouped = exp.select(exp.alias_(exp.Count(this=unit), "held")).from_(SOURCE)
    grouped = grouped.where(exp.not_(exp.Is(this=unit.copy(), expression=exp.null()))).group_by(unit.copy())
    known = exp.Coalesce(this=exp.Sum(this=column("held")), expressions=[exp.Literal.number(0)])
    return exp.select(exp.alias_(known, "known"), exp.alias_(exp.Count(this=exp.Star()), "different")).from_(
        grouped.subquery("ids")
    )
