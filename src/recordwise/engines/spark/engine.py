"""Spark: one exact pass over records that do not fit one machine. Cells come to the driver, records do not."""

import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlglot import exp

from recordwise.engines.connection import Connection
from recordwise.engines.engine import MOST_PIECES
from recordwise.engines.file_marks import Mark, file_marks
from recordwise.engines.owner_passes import OwnerPasses
from recordwise.engines.passes import Passes
from recordwise.engines.results import FoundTotals, TableTotals
from recordwise.engines.sources import CsvFiles, ParquetFiles
from recordwise.engines.spark.binding import bind
from recordwise.engines.spark.dialect import spark_sql
from recordwise.engines.spark.master import Attached, attach
from recordwise.engines.spark.sources import SparkFrame, frame_of, open_spark_source
from recordwise.engines.spark.store import SparkStore, failure
from recordwise.engines.spark.validation import validate
from recordwise.errors import ParameterError, PlanError, RecordwiseError, SourceError
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.predicates import Predicate
from recordwise.plan.records import SOURCE, checks, records_tree
from recordwise.plan.schema import Schema
from recordwise.plan.splitting import Splitting
from recordwise.plan.trees import RECORDS
from recordwise.sensitive import Sensitive

DEFAULT_MEMORY = "700MB"


class Spark:
    """A table of records behind Spark. Opening reads no record; the first thing that needs records validates them all."""

    dialect = "spark"

    def __init__(self, source: Any, schema: Schema, *, spark: Any = None, memory_limit: str = DEFAULT_MEMORY) -> None:
        self.schema = schema
        opened = open_spark_source(source)
        self._files: tuple[Path, ...] = opened.paths if isinstance(opened, ParquetFiles | CsvFiles) else ()
        self._validated: tuple[Mark, ...] | None = None
        self._attached: Attached = attach(_session_of(opened, spark))
        self._cells = Connection(files=(), memory_limit=memory_limit, threads=None)
        self._view = f"recordwise_{uuid.uuid4().hex}"
        try:
            self._store = SparkStore(self._attached.session, self._cells)
            self._passes = Passes(self._store, schema)
            self._stored = self._bound(opened)
        except BaseException:
            self.close()
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

    def validate(self) -> None:
        """Read every record, twice: once for what a record says alone, once for the ids."""
        before = self._fingerprint()
        validate(self._store, list(checks(self.schema, self._stored)), self.schema)
        self._validated = before

    def totals(self, plan: Plan) -> tuple[TableTotals | FoundTotals, ...]:
        """The exact totals of every table of a plan, in the plan's order."""
        self._ready(plan.schema)
        found = self._passes.totals(plan)
        self._check_unchanged()
        return found

    def split_table(
        self, splitting: Splitting, *, condition: Predicate | None = None, at_most: int = MOST_PIECES
    ) -> Sensitive[pa.Table]:
        """The unit-split rows themselves, for a foreign mechanism. These ARE records, and they do travel to the driver."""
        self._ready(self.schema)
        return self._passes.split_table(splitting, condition, at_most)

    def summarise(
        self, value: exp.Expr, edges: Sequence[float], *, condition: Predicate | None = None
    ) -> Sensitive[pa.Table]:
        """A histogram of a number of each record: bin i counts edges[i-1] < value <= edges[i]. For the owner only."""
        self._ready(self.schema)
        return self._passes.summarise(value, edges, condition)

    def summarise_firms(self, value: exp.Expr, edges: Sequence[float], *, bound: str = "tight") -> Sensitive[pa.Table]:
        """A histogram of the joint loss of each firm, from the losses of its units. For the owner only."""
        self._ready(self.schema)
        return self._passes.summarise_firms(value, edges, bound)

    def summarise_beside_totals(
        self, plan: Plan, table: PlannedTable, value: exp.Expr, edges: Sequence[float]
    ) -> Sensitive[pa.Table]:
        """A histogram over the records of a table's public cells, of a value that may use its cell's ``total0``, ``total1``..."""
        self._ready(plan.schema)
        return self._passes.summarise_beside_totals(plan, table, value, edges)

    def owner_passes(self) -> OwnerPasses:
        """What the owner looks at while planning."""
        self._ready(self.schema)
        return OwnerPasses(self._passes)

    def close(self) -> None:
        """Remove our view, forget the cells, and stop Spark if it was started here."""
        with suppress(Exception):
            self._attached.session.catalog.dropGlobalTempView(self._view)
        self._cells.close()
        self._attached.close()

    def __enter__(self) -> "Spark":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ready(self, schema: Schema) -> None:
        """Records are read only as validated: same schema, same files."""
        if schema != self.schema:
            raise PlanError(problems=("the plan was made for another schema",))
        if self._validated is None:
            self.validate()
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        if self._validated != self._fingerprint():
            raise SourceError(source="the source", problem="its files changed since they were validated")

    def _fingerprint(self) -> tuple[Mark, ...]:
        return file_marks(self._files)


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
