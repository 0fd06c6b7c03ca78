"""The Spark engine: binding, checks, and one exact pass over the records.

It is for records that do not fit on one machine. Cells come to the driver; records do not.
"""

import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from recordwise.engines.compile.expressions import RECORDS, column
from recordwise.engines.compile.records import (
    BROKEN,
    COLLAPSED,
    DIFFERENT,
    KNOWN,
    SOURCE,
    Check,
    StorageType,
    bits_tree,
    broken_tree,
    checks,
    close,
    code_lists,
    collapse_checks,
    collapsed_records_tree,
    collapsed_tree,
    id_storage,
    id_table,
    records_tree,
    same_names,
    shuffled_tree,
    span_columns,
    span_tree,
)
from recordwise.engines.duckdb.connection import Connection
from recordwise.engines.engine import (
    Engine,
    Passes,
    Store,
    broken_rows,
    check_present,
    check_types,
    differing_units,
    repeats,
    watched_files,
)
from recordwise.engines.sources.copy import method_of
from recordwise.engines.sources.files import check_quotes, open_typed, torn_line_error, unique_names
from recordwise.engines.spark.session import StrictSession, active_session, attach
from recordwise.engines.spark.sources import (
    ENCODINGS,
    ReadHere,
    SparkFrame,
    frame_of,
    in_spark,
    open_spark_source,
    plain_types,
)
from recordwise.engines.spark.store import SparkStore, failure, spark_sql
from recordwise.errors import DataError, EngineError, ParameterError, RecordwiseError, SourceError
from recordwise.plan.schema import Schema
from recordwise.plan.sources import ArrowFiles, CsvFiles, Database, Frame, Relation, StatFiles

# Binding a DataFrame: does every declared column exist, and how is it stored? Reads metadata and no record.


MOST_DIGITS = 36
"""Digits plus scale of a decimal; Spark would round the product that moves the point of a longer one."""
_KINDS = {
    "tinyint": StorageType("integer"),
    "smallint": StorageType("integer"),
    "int": StorageType("integer"),
    "bigint": StorageType("integer"),
    "float": StorageType("float"),
    "double": StorageType("float"),
    "string": StorageType("text"),
    "boolean": StorageType("boolean"),
    "date": StorageType("date"),
    "timestamp_ntz": StorageType("date"),
    "timestamp": StorageType("zoned"),
}


def wanted_columns(schema: Schema) -> list[str]:
    return list(schema.names())


def bind(frame: Any, schema: Schema) -> dict[str, StorageType]:
    """Return how each column is stored, refusing unusable types."""
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    _check_names(list(frame.columns), wanted_columns(schema))
    for name in wanted_columns(schema):
        _check_order(name, kinds[name])
    stored = {name: _storage_type(kind) for name, kind in kinds.items()}
    check_types(schema, stored)
    return stored


def _check_names(present: list[str], wanted: list[str]) -> None:
    check_present(wanted, present)
    unique_names(wanted, present, "the source")


def _check_order(name: str, kind: Any) -> None:
    """Refuse a collation, which would merge different texts."""
    if kind.typeName() == "string" and kind.simpleString() != "string":
        raise SourceError(source=f"column '{name}'", problem="it has a collation", advice="Cast it to STRING.")


def _storage_type(kind: Any) -> StorageType:
    if kind.typeName() == "decimal":
        fits = kind.precision + kind.scale <= MOST_DIGITS
        return StorageType("decimal", kind.scale) if fits or kind.scale == 0 else StorageType("other")
    return _KINDS.get(kind.simpleString(), StorageType("other"))


# The checks of a table: one pass that shuffles nothing, and one for the uniqueness of ids. Where a unit has several
# rows the second pass makes them one record, and the records are checked once more.


NO_UNICODE, REPLACED = "holds text that is not UTF-8", "holds the sign for what cannot be read"
UNDECODED = "undecoded"
"""The code of text that Spark may have been unable to read."""
SIGN = "\N{REPLACEMENT CHARACTER}"


def text_checks(schema: Schema, stored: Mapping[str, StorageType], *, decoded: bool = False) -> list[Check]:
    """Return checks for invalid text.

    Spark keeps any bytes of a Parquet file; of CSV, which it has ``decoded``, it makes one sign of all that it
    cannot read, so that two texts become one.
    """
    names = [name for name in schema.names() if stored[name].kind == "text"]
    if decoded:
        sign = exp.Literal.string(SIGN)
        found = {name: exp.Anonymous(this="CONTAINS", expressions=[column(name), sign]) for name in names}
        return [Check(name, REPLACED, tree, code=UNDECODED) for name, tree in found.items()]
    valid = {name: exp.Anonymous(this="IS_VALID_UTF8", expressions=[column(name)]) for name in names}
    return [Check(name, NO_UNICODE, exp.not_(tree)) for name, tree in valid.items()]


def validate(store: Store, found: list[Check], schema: Schema, unit: StorageType) -> None:
    """Raise ``DataError`` if a row breaks the schema or repeats an id.

    With counts and column names. Ids may repeat if rows are collapsed.
    """
    others = span_columns(schema) if unit.kind == "integer" else []
    (seen,) = store.of_records(broken_tree(found, others=others)).to_pylist()
    problems = broken_rows(store.of_records, found, met=seen[BROKEN])
    if schema.collapse is None:
        repeated = _count_repeated_ids(store, schema, unit, id_table(schema), seen)
        problems += repeats(schema, repeated)
    if problems:
        raise DataError(problems=tuple(problems))


def validate_collapsed(store: Store, schema: Schema, unit: StorageType) -> None:
    """Raise ``DataError`` if a collapsed record breaks the schema.

    Or if its rows differ; with numbers of units.
    """
    problems = broken_rows(store.of_records, list(collapse_checks(schema)), COLLAPSED, counted="unit")
    if same_names(schema) and _count_repeated_ids(store, schema, unit, COLLAPSED):
        problems += differing_units(store.of_records, schema)
    if problems:
        raise DataError(problems=tuple(problems))


def _count_repeated_ids(
    store: Store, schema: Schema, unit: StorageType, table: str, span: Mapping[str, int] | None = None
) -> int:
    """Count the repeated ids.

    Whole numbers close together are counted by bits, others are shuffled: of other ids a hash, and the id only
    where hashes meet.
    """
    if unit.kind == "integer":
        if span is None:
            (span,) = store.of_records(span_tree(schema, table)).to_pylist()
        return _count_repeats(store, bits_tree(schema, table) if close(span) else shuffled_tree(schema, table))
    hashed = exp.Anonymous(this="XXHASH64", expressions=[*map(column, schema.unit_columns)])
    return _count_repeats(store, shuffled_tree(schema, table, by=hashed)) and _count_repeats(
        store, shuffled_tree(schema, table)
    )


def _count_repeats(store: Store, tree: exp.Expr) -> int:
    (found,) = store.of_records(tree).to_pylist()
    return int(found[KNOWN]) - int(found[DIFFERENT])


# Records that Spark cannot read where they are: they go through this process to Spark, as Arrow, once, when they are
# first read.


_TYPES = {"text": pa.string(), "number": pa.float64(), "date": pa.date32()}


def is_local_source(source: Any) -> bool:
    """Whether a source goes through this process."""
    if isinstance(source, CsvFiles):
        packed = any(path.suffix.lower() == ".zst" for path in source.paths)
        return packed or source.encoding not in ENCODINGS
    return isinstance(source, ArrowFiles | StatFiles | Database | Relation)


def local_head(source: Any, schema: Schema) -> tuple[pa.Table, dict[str, StorageType] | None]:
    """Return the declared columns without a record, and their storage."""
    found = method_of(type(source)).columns(source, schema)
    if isinstance(found, pa.Table):
        return plain_types(found), None
    return pa.schema([(name, _TYPES[each.kind]) for name, each in found.items()]).empty_table(), found


def local_records(source: Any, schema: Schema, stored: dict[str, StorageType]) -> pa.Table:
    """All records, in the memory of this process."""
    parts = method_of(type(source)).parts(source, schema, stored)
    return plain_types(pa.concat_tables(parts))


# The engine.


DEFAULT_MEMORY = "700MB"


class Spark(Engine):
    """A table of records read by Spark.

    Opening it reads no record; the first operation on records validates them all.
    """

    dialect = "spark"

    def __init__(self, source: Any, schema: Schema, *, spark: Any = None, memory_limit: str = DEFAULT_MEMORY) -> None:
        opened = open_typed(source, schema, open_spark_source)
        self._attached: StrictSession = attach(_session_of(opened, spark))
        self._cells = Connection(files=(), memory_limit=memory_limit, threads=None)
        self._view = f"recordwise_{uuid.uuid4().hex}"
        self._collapsed: Any = None
        self._carried, self._arrived = (opened if is_local_source(opened) else None), False
        try:
            self._store = SparkStore(self._attached.session, self._cells)
            self._csv = opened if isinstance(opened, CsvFiles) else None
            super().__init__(
                Passes(self._store, schema), files=watched_files(opened) if isinstance(opened, ReadHere) else ()
            )
            self._stored = self._bind_views(opened)
        except BaseException:
            self._release()
            raise

    def _bind_views(self, opened: Any) -> Any:
        """Create the views ``source`` and ``records`` in our session."""
        try:
            known = None
            if self._carried is not None:
                head, known = local_head(opened, self.schema)
                opened = Frame(head)
            frame = frame_of(self._attached.session, self._attached.given, opened, self.schema)
            stored = bind(frame, self.schema) if known is None else known
            check_types(self.schema, stored)
            if self._csv is not None:
                comma = self._csv.decimal == ","
                stored = {name: replace(each, comma=comma, untyped=True) for name, each in stored.items()}
            _check_repeatable(frame)
            self._look_at(frame, stored)
        except RecordwiseError:
            raise
        except Exception as error:
            raise failure(error) from None
        return stored

    def _look_at(self, frame: Any, stored: dict[str, StorageType]) -> None:
        frame.createOrReplaceGlobalTempView(self._view)
        self._attached.session.table(f"global_temp.{self._view}").createOrReplaceTempView(SOURCE)
        for name, codes in code_lists(self.schema):
            in_spark(self._attached.session, codes).hint("broadcast").createOrReplaceTempView(name)
        if self.schema.collapse is None:
            self._view_of(records_tree(self.schema, stored).expression, RECORDS)

    def _carry(self) -> None:
        """Copy the records to Spark, once."""
        if self._carried is None or self._arrived:
            return
        try:
            table = local_records(self._carried, self.schema, self._stored)
            self._look_at(in_spark(self._attached.session, table), self._stored)
        except RecordwiseError:
            raise
        except Exception as error:
            raise failure(error) from None
        self._arrived = True

    def _check_records(self, schema: Schema) -> None:
        if self._csv is not None:
            check_quotes(self._csv)
        self._carry()
        try:
            self._check_rows(schema)
        except RecordwiseError:
            self._arrived = False
            raise

    def _check_rows(self, schema: Schema) -> None:
        """Twice: once for what a record says alone, once for the ids."""
        found, csv, unit = list(checks(schema, self._stored)), self._csv, id_storage(schema, self._stored)
        try:
            validate(self._store, [*found, *text_checks(schema, self._stored, decoded=csv is not None)], schema, unit)
        except EngineError:
            if csv is not None:
                raise torn_line_error(csv) from None
            raise
        except DataError as error:
            if csv is None or not any(each.code == UNDECODED for each in error.problems):
                raise
            if csv.torn_line() is not None:
                raise torn_line_error(csv) from None
            # The sign itself stands in the file.
            validate(self._store, found, schema, unit)
        if schema.collapse is not None:
            self._collapse(schema)

    def _collapse(self, schema: Schema) -> None:
        """Collapse the rows of each unit into one record, and check."""
        self._forget_collapsed()
        try:
            self._collapsed = self._view_of(
                collapsed_tree(schema, self._stored, widened=True), COLLAPSED, persisted=True
            )
            validate_collapsed(self._store, schema, id_storage(schema, self._stored))
            self._view_of(collapsed_records_tree(schema).expression, RECORDS)
        except RecordwiseError:
            self._forget_collapsed()
            raise
        except Exception as error:
            self._forget_collapsed()
            raise failure(error) from None

    def _view_of(self, tree: exp.Expr, name: str, *, persisted: bool = False) -> Any:
        frame = self._attached.session.sql(spark_sql(tree))
        frame = frame.persist() if persisted else frame
        frame.createOrReplaceTempView(name)
        return frame

    def _forget_collapsed(self) -> None:
        if self._collapsed is not None:
            self._collapsed.unpersist()
            self._collapsed = None
            for name in (RECORDS, COLLAPSED):
                self._attached.session.catalog.dropTempView(name)

    def _release(self) -> None:
        """Remove our view, drop the cells, and stop our Spark."""
        with suppress(Exception):
            self._forget_collapsed()
        with suppress(Exception):
            self._attached.session.catalog.dropGlobalTempView(self._view)
        self._cells.close()
        self._attached.close()


def _session_of(opened: Any, spark: Any) -> Any:
    """Return the session or master, or the DataFrame's session."""
    if isinstance(opened, SparkFrame):
        own = opened.frame.sparkSession
        if spark is not None and spark is not own:
            raise ParameterError(
                parameter="spark", problem="is not the session of the DataFrame", advice="Leave it out."
            )
        return own
    if spark is None:
        spark = active_session()
    if spark is None:
        raise ParameterError(
            parameter="spark",
            problem="is missing, and no Spark session is active",
            advice="Give a SparkSession or a master such as 'local[2]' or 'spark://host:7077'.",
        )
    return spark


def _check_repeatable(frame: Any) -> None:
    """Refuse a nondeterministic DataFrame.

    It is recomputed in each pass, and what is summed must be what was validated.
    """
    if not frame._jdf.queryExecution().analyzed().deterministic():
        raise SourceError(
            source="the DataFrame",
            problem="it is not deterministic, so each pass could see different records",
            advice="Write it to Parquet and open that.",
        )
