"""The Spark engine: one exact pass over records that do not fit on one machine. Cells come to the driver; records do not."""

import uuid
from contextlib import suppress
from dataclasses import replace
from typing import Any

from sqlglot import exp

from recordwise.engines.compile.collapse import COLLAPSED, collapsed_records_tree, collapsed_tree
from recordwise.engines.compile.expressions import RECORDS
from recordwise.engines.compile.levels import code_lists
from recordwise.engines.compile.records import SOURCE, Stored, checks, records_tree
from recordwise.engines.duckdb.connection import Connection
from recordwise.engines.engine import Engine, watched_files
from recordwise.engines.problems import check_types
from recordwise.engines.sources.csv_quotes import check_quotes
from recordwise.engines.sources.csv_text import torn
from recordwise.engines.sources.untyped import open_typed
from recordwise.engines.spark.binding import bind
from recordwise.engines.spark.carried import carried_head, carried_records, is_carried
from recordwise.engines.spark.dialect import spark_sql
from recordwise.engines.spark.master import Attached, active_session, attach
from recordwise.engines.spark.sources import ReadHere, SparkFrame, frame_of, in_spark, open_spark_source
from recordwise.engines.spark.store import SparkStore, failure
from recordwise.engines.spark.validation import REPLACED, text_checks, validate, validate_collapsed
from recordwise.engines.totals import Passes
from recordwise.errors import DataError, EngineError, ParameterError, RecordwiseError, SourceError
from recordwise.plan.files import CsvFiles
from recordwise.plan.schema import Schema
from recordwise.plan.sources import Frame

DEFAULT_MEMORY = "700MB"


class Spark(Engine):
    """A table of records read by Spark. Opening it reads no record; the first operation on records validates them all."""

    dialect = "spark"

    def __init__(self, source: Any, schema: Schema, *, spark: Any = None, memory_limit: str = DEFAULT_MEMORY) -> None:
        opened = open_typed(source, schema, open_spark_source)
        self._attached: Attached = attach(_session_of(opened, spark))
        self._cells = Connection(files=(), memory_limit=memory_limit, threads=None)
        self._view = f"recordwise_{uuid.uuid4().hex}"
        self._collapsed: Any = None
        self._carried, self._arrived = (opened if is_carried(opened) else None), False
        try:
            self._store = SparkStore(self._attached.session, self._cells)
            self._csv = opened if isinstance(opened, CsvFiles) else None
            super().__init__(
                Passes(self._store, schema), files=watched_files(opened) if isinstance(opened, ReadHere) else ()
            )
            self._stored = self._bound(opened)
        except BaseException:
            self._release()
            raise

    def _bound(self, opened: Any) -> Any:
        """Create the views ``source`` and ``records`` in our own session; a frame of another session is passed by a global view."""
        try:
            known = None
            if self._carried is not None:
                head, known = carried_head(opened, self.schema)
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

    def _look_at(self, frame: Any, stored: dict[str, Stored]) -> None:
        frame.createOrReplaceGlobalTempView(self._view)
        self._attached.session.table(f"global_temp.{self._view}").createOrReplaceTempView(SOURCE)
        for name, codes in code_lists(self.schema):
            in_spark(self._attached.session, codes).hint("broadcast").createOrReplaceTempView(name)
        if self.schema.collapse is None:
            self._view_of(records_tree(self.schema, stored).expression, RECORDS)

    def _carry(self) -> None:
        """Take the records to Spark, once; a table that was refused is read again."""
        if self._carried is None or self._arrived:
            return
        try:
            table = carried_records(self._carried, self.schema, self._stored)
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
        found, csv, unit = list(checks(schema, self._stored)), self._csv, self._stored[schema.unit]
        try:
            validate(self._store, [*found, *text_checks(schema, self._stored, decoded=csv is not None)], schema, unit)
        except EngineError:
            if csv is not None:
                raise torn(csv) from None
            raise
        except DataError as error:
            if csv is None or not any(each.problem == REPLACED for each in error.problems):
                raise
            if csv.torn_line() is not None:
                raise torn(csv) from None
            # The sign itself stands in the file.
            validate(self._store, found, schema, unit)
        if schema.collapse is not None:
            self._collapse(schema)

    def _collapse(self, schema: Schema) -> None:
        """Make one record of the rows of each unit, kept by the executors for every later pass, and check them."""
        self._forget_collapsed()
        try:
            self._collapsed = self._view_of(
                collapsed_tree(schema, self._stored, widened=True), COLLAPSED, persisted=True
            )
            validate_collapsed(self._store, schema, self._stored[schema.unit])
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
        """Remove our view, drop the cells, and stop Spark if it was started here."""
        with suppress(Exception):
            self._forget_collapsed()
        with suppress(Exception):
            self._attached.session.catalog.dropGlobalTempView(self._view)
        self._cells.close()
        self._attached.close()


def _session_of(opened: Any, spark: Any) -> Any:
    """The session or master that was given, or the session of the DataFrame."""
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
    """Refuse a nondeterministic DataFrame: it is recomputed in each pass, and what is summed must be what was validated."""
    if not frame._jdf.queryExecution().analyzed().deterministic():
        raise SourceError(
            source="the DataFrame",
            problem="it is not deterministic, so each pass could see different records",
            advice="Write it to Parquet and open that.",
        )
