"""The Spark engine: one exact pass over records that do not fit on one machine. Cells come to the driver; records do not."""

import uuid
from contextlib import suppress
from dataclasses import replace
from typing import Any

from sqlglot import exp

from recordwise.engines.compile.collapse import COLLAPSED, collapsed_records_tree, collapsed_tree
from recordwise.engines.compile.expressions import RECORDS
from recordwise.engines.compile.records import SOURCE, checks, records_tree
from recordwise.engines.duckdb.connection import Connection
from recordwise.engines.engine import Engine, watched_files
from recordwise.engines.sources.csv_text import torn
from recordwise.engines.sources.untyped import open_typed
from recordwise.engines.spark.binding import bind
from recordwise.engines.spark.dialect import spark_sql
from recordwise.engines.spark.master import Attached, active_session, attach
from recordwise.engines.spark.sources import SparkFrame, frame_of, open_spark_source
from recordwise.engines.spark.store import SparkStore, failure
from recordwise.engines.spark.validation import validate, validate_collapsed
from recordwise.engines.totals import Passes
from recordwise.errors import EngineError, ParameterError, RecordwiseError, SourceError
from recordwise.plan.files import CsvFiles, ParquetFiles
from recordwise.plan.schema import Schema

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
        try:
            self._store = SparkStore(self._attached.session, self._cells)
            self._csv = opened if isinstance(opened, CsvFiles) else None
            files = watched_files(opened) if isinstance(opened, ParquetFiles | CsvFiles) else ()
            super().__init__(Passes(self._store, schema), files=files)
            self._stored = self._bound(opened)
        except BaseException:
            self._release()
            raise

    def _bound(self, opened: Any) -> Any:
        """Create the views ``source`` and ``records`` in our own session; a frame of another session is passed by a global view."""
        try:
            frame = frame_of(self._attached.session, self._attached.given, opened)
            stored = bind(frame, self.schema)
            if self._csv is not None and self._csv.decimal == ",":
                stored = {name: replace(each, comma=True) for name, each in stored.items()}
            _check_repeatable(frame)
            frame.createGlobalTempView(self._view)
            self._attached.session.table(f"global_temp.{self._view}").createOrReplaceTempView(SOURCE)
            if self.schema.collapse is None:
                self._view_of(records_tree(self.schema, stored).expression, RECORDS)
        except RecordwiseError:
            raise
        except Exception as error:
            raise failure(error) from None
        return stored

    def _check_records(self, schema: Schema) -> None:
        """Twice: once for what a record says alone, once for the ids."""
        try:
            validate(self._store, list(checks(schema, self._stored)), schema)
        except EngineError:
            if self._csv is not None:
                raise torn(self._csv) from None
            raise
        if schema.collapse is not None:
            self._collapse(schema)

    def _collapse(self, schema: Schema) -> None:
        """Make one record of the rows of each unit, kept by the executors for every later pass, and check them."""
        self._forget_collapsed()
        try:
            self._collapsed = self._view_of(collapsed_tree(schema, self._stored), COLLAPSED, persisted=True)
            validate_collapsed(self._store, schema)
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
