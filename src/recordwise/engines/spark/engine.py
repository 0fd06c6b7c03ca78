"""Spark: one exact pass over records that do not fit one machine. Cells come to the driver, records do not."""

import uuid
from contextlib import suppress
from typing import Any

from recordwise.engines.compile.expressions import RECORDS
from recordwise.engines.compile.records import SOURCE, checks, records_tree
from recordwise.engines.duckdb.connection import Connection
from recordwise.engines.engine import Engine
from recordwise.engines.sources.untyped import open_typed
from recordwise.engines.spark.binding import bind
from recordwise.engines.spark.dialect import spark_sql
from recordwise.engines.spark.master import Attached, attach
from recordwise.engines.spark.sources import SparkFrame, frame_of, open_spark_source
from recordwise.engines.spark.store import SparkStore, failure
from recordwise.engines.spark.validation import validate
from recordwise.engines.totals import Passes
from recordwise.errors import ParameterError, RecordwiseError, SourceError
from recordwise.plan.schema import Schema
from recordwise.plan.sources import CsvFiles, ParquetFiles

DEFAULT_MEMORY = "700MB"


class Spark(Engine):
    """A table of records behind Spark. Opening reads no record; the first thing that needs records validates them all."""

    dialect = "spark"

    def __init__(self, source: Any, schema: Schema, *, spark: Any = None, memory_limit: str = DEFAULT_MEMORY) -> None:
        opened = open_typed(source, schema, open_spark_source)
        self._attached: Attached = attach(_session_of(opened, spark))
        self._cells = Connection(files=(), memory_limit=memory_limit, threads=None)
        self._view = f"recordwise_{uuid.uuid4().hex}"
        try:
            self._store = SparkStore(self._attached.session, self._cells)
            files = opened.paths if isinstance(opened, ParquetFiles | CsvFiles) else ()
            super().__init__(Passes(self._store, schema), files=files)
            self._stored = self._bound(opened)
        except BaseException:
            self._release()
            raise

    def _bound(self, opened: Any) -> Any:
        """The views ``source`` and ``records`` in our own session. The way from another session leads over a global view."""
        try:
            frame = frame_of(self._attached.session, self._attached.given, opened)
            stored = bind(frame, self.schema)
            _check_repeatable(frame)
            frame.createGlobalTempView(self._view)
            self._attached.session.table(f"global_temp.{self._view}").createOrReplaceTempView(SOURCE)
            records = records_tree(self.schema, stored).expression
            self._attached.session.sql(spark_sql(records)).createOrReplaceTempView(RECORDS)
        except RecordwiseError:
            raise
        except Exception as error:
            raise failure(error) from None
        return stored

    def _check_records(self) -> None:
        """Twice: once for what a record says alone, once for the ids."""
        validate(self._store, list(checks(self.schema, self._stored)), self.schema)

    def _release(self) -> None:
        """Remove our view, forget the cells, and stop Spark if it was started here."""
        with suppress(Exception):
            self._attached.session.catalog.dropGlobalTempView(self._view)
        self._cells.close()
        self._attached.close()


def _session_of(opened: Any, spark: Any) -> Any:
    """The session or master that was given, or the one a DataFrame belongs to."""
    if isinstance(opened, SparkFrame):
        own = opened.frame.sparkSession
        if spark is not None and spark is not own:
            raise ParameterError(
                parameter="spark", problem="is not the session of the DataFrame", advice="Leave it out."
            )
        return own
    if spark is None:
        raise ParameterError(
            parameter="spark",
            problem="is missing",
            advice="Give a SparkSession or a master such as 'local[2]' or 'spark://host:7077'.",
        )
    return spark


def _check_repeatable(frame: Any) -> None:
    """A DataFrame is computed again for each pass; what was validated must be what is summed."""
    if not frame._jdf.queryExecution().analyzed().deterministic():
        raise SourceError(
            source="the DataFrame",
            problem="it is not deterministic, so that each pass could see other records",
            advice="Write it to Parquet and open that.",
        )
