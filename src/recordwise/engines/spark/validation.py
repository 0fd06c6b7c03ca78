"""The checks of a table in two statements: one pass that shuffles nothing, and one for the uniqueness of ids.

Where a unit has several rows the second makes them one record, and the records are checked once more.
"""

from sqlglot import exp

from recordwise.engines.compile.collapse import COLLAPSED, collapse_checks, same_names
from recordwise.engines.compile.expressions import column
from recordwise.engines.compile.records import SOURCE, Check, validation_tree
from recordwise.engines.problems import REPEATS, counted_problems, differing_units
from recordwise.engines.store import Store
from recordwise.errors import DataError, RecordError
from recordwise.plan.schema import Schema


def validate(store: Store, found: list[Check], schema: Schema) -> None:
    """Raise ``DataError`` with counts and column names if a row breaks the schema or, unless rows are collapsed, repeats an id."""
    (counts,) = store.of_records(validation_tree(found)).to_pylist()
    problems = counted_problems(found, counts)
    if schema.collapse is None:
        known, different = _ids(store, schema, SOURCE)
        if known > different:
            problems.append(RecordError(column=schema.unit, problem=REPEATS, count=known - different))
    if problems:
        raise DataError(problems=tuple(problems))


def validate_collapsed(store: Store, schema: Schema) -> None:
    """Raise ``DataError`` with numbers of units if a record that was made of rows breaks the schema, or its rows differ."""
    found = list(collapse_checks(schema))
    (counts,) = store.of_records(validation_tree(found, COLLAPSED)).to_pylist()
    problems = counted_problems(found, counts, counted="unit")
    if same_names(schema):
        known, different = _ids(store, schema, COLLAPSED)
        problems += differing_units(store.of_records, schema) if known > different else []
    if problems:
        raise DataError(problems=tuple(problems))


def _ids(store: Store, schema: Schema, table: str) -> tuple[int, int]:
    """How many ids there are that are not NULL, and how many different ones."""
    (found,) = store.of_records(_ids_tree(schema, table)).to_pylist()
    return int(found["known"]), int(found["different"])


def _ids_tree(schema: Schema, table: str) -> exp.Expr:
    """Ids are told apart by a group-by, which spills; a count of distinct values beside other counts would carry those along."""
    unit = column(schema.unit)
    grouped = exp.select(exp.alias_(exp.Count(this=unit), "held")).from_(table)
    grouped = grouped.where(exp.not_(exp.Is(this=unit.copy(), expression=exp.null()))).group_by(unit.copy())
    known = exp.Coalesce(this=exp.Sum(this=column("held")), expressions=[exp.Literal.number(0)])
    return exp.select(exp.alias_(known, "known"), exp.alias_(exp.Count(this=exp.Star()), "different")).from_(
        grouped.subquery("ids")
    )
