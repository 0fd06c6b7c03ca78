"""The checks of a table: one pass that shuffles nothing, and one for the uniqueness of ids.

Where a unit has several rows the second makes them one record, and the records are checked once more.
"""

from collections.abc import Mapping

from sqlglot import exp

from recordwise.engines.compile.collapse import COLLAPSED, collapse_checks, same_names
from recordwise.engines.compile.expressions import column
from recordwise.engines.compile.ids import DIFFERENT, KNOWN, bits_tree, close, shuffled_tree, span_columns, span_tree
from recordwise.engines.compile.records import BROKEN, SOURCE, Check, Stored, broken_tree
from recordwise.engines.problems import REPEATS, broken_rows, differing_units
from recordwise.engines.store import Store
from recordwise.errors import DataError, RecordError
from recordwise.plan.schema import Schema

NO_UNICODE, REPLACED = "holds text that is not UTF-8", "holds the sign for what cannot be read"
SIGN = "\N{REPLACEMENT CHARACTER}"


def text_checks(schema: Schema, stored: Mapping[str, Stored], *, decoded: bool = False) -> list[Check]:
    """What Spark takes for text and is none. It keeps any bytes of a Parquet file; of CSV, which it has ``decoded``, it makes one
    sign of all that it cannot read, so that two texts become one."""
    names = [name for name in schema.names() if stored[name].kind == "text"]
    if decoded:
        sign = exp.Literal.string(SIGN)
        found = {name: exp.Anonymous(this="CONTAINS", expressions=[column(name), sign]) for name in names}
        return [Check(name, REPLACED, tree) for name, tree in found.items()]
    valid = {name: exp.Anonymous(this="IS_VALID_UTF8", expressions=[column(name)]) for name in names}
    return [Check(name, NO_UNICODE, exp.not_(tree)) for name, tree in valid.items()]


def validate(store: Store, found: list[Check], schema: Schema, unit: Stored) -> None:
    """Raise ``DataError`` with counts and column names if a row breaks the schema or, unless rows are collapsed, repeats an id."""
    beside = span_columns(schema) if unit.kind == "integer" else []
    (seen,) = store.of_records(broken_tree(found, beside=beside)).to_pylist()
    problems = broken_rows(store.of_records, found, met=seen[BROKEN])
    if schema.collapse is None:
        repeated = _repeated(store, schema, unit, SOURCE, seen)
        problems += [RecordError(column=schema.unit, problem=REPEATS, count=repeated)] if repeated else []
    if problems:
        raise DataError(problems=tuple(problems))


def validate_collapsed(store: Store, schema: Schema, unit: Stored) -> None:
    """Raise ``DataError`` with numbers of units if a record that was made of rows breaks the schema, or its rows differ."""
    problems = broken_rows(store.of_records, list(collapse_checks(schema)), COLLAPSED, counted="unit")
    if same_names(schema) and _repeated(store, schema, unit, COLLAPSED):
        problems += differing_units(store.of_records, schema)
    if problems:
        raise DataError(problems=tuple(problems))


def _repeated(store: Store, schema: Schema, unit: Stored, table: str, span: Mapping[str, int] | None = None) -> int:
    """How many ids are not new. Whole numbers close together are counted by bits, and others are shuffled.

    Of ids that are no whole numbers a hash is shuffled, and the id only where that met.
    """
    if unit.kind == "integer":
        if span is None:
            (span,) = store.of_records(span_tree(schema, table)).to_pylist()
        return _counted(store, bits_tree(schema, table) if close(span) else shuffled_tree(schema, table))
    hashed = exp.Anonymous(this="XXHASH64", expressions=[column(schema.unit)])
    return _counted(store, shuffled_tree(schema, table, by=hashed)) and _counted(store, shuffled_tree(schema, table))


def _counted(store: Store, tree: exp.Expr) -> int:
    (found,) = store.of_records(tree).to_pylist()
    return int(found[KNOWN]) - int(found[DIFFERENT])
