"""DuckDB: one exact pass over the records, in bounded memory, locked to the files it was given."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlglot import exp

from recordwise.engines.binding import bind
from recordwise.engines.connection import Connection
from recordwise.engines.copying import COPIED, copy_records, forget_copy
from recordwise.engines.distinct import repeated_ids
from recordwise.engines.duckdb_store import DuckDBStore
from recordwise.engines.engine import MOST_PIECES
from recordwise.engines.file_marks import Mark, file_marks
from recordwise.engines.owner_passes import OwnerPasses
from recordwise.engines.passes import Passes
from recordwise.engines.results import FoundTotals, TableTotals
from recordwise.engines.sources import CsvFiles, ParquetFiles, SasFiles, open_source
from recordwise.errors import DataError, PlanError, RecordError, SourceError
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.predicates import Predicate
from recordwise.plan.records import Stored, checks, records_tree, type_problem
from recordwise.plan.schema import Schema
from recordwise.plan.splitting import Splitting
from recordwise.plan.validation import HELD, validation_tree
from recordwise.sensitive import Sensitive

DEFAULT_MEMORY = "700MB"


class DuckDB:
    """A table of records behind DuckDB. Opening reads no record; the first thing that needs records validates them all."""

    dialect = "duckdb"

    def __init__(
        self, source: Any, schema: Schema, *, memory_limit: str = DEFAULT_MEMORY, threads: int | None = None
    ) -> None:
        self.schema = schema
        self._source = open_source(source)
        files = self._source.paths if isinstance(self._source, ParquetFiles | CsvFiles) else ()
        self._files: tuple[Path, ...] = self._source.paths if isinstance(self._source, SasFiles) else files
        self._connection = Connection(files=files, memory_limit=memory_limit, threads=threads)
        self._passes = Passes(DuckDBStore(self._connection), schema)
        self._validated: tuple[Mark, ...] | None = None
        self._prepared = False
        try:
            self._stored = self._bound()
        except BaseException:
            self.close()
            raise

    def _bound(self) -> dict[str, Stored]:
        """How each column is stored, if its role can use it."""
        stored = bind(self._connection, self._source, self.schema)
        roles = [(measure.name, "measure") for measure in self.schema.measures]
        for name, role in roles + [(each.name, str(each.type)) for each in self.schema.columns]:
            problem = type_problem(name, role, stored[name])
            if problem is not None:
                raise problem
        return stored

    def validate(self) -> None:
        """Read every record once; raise ``DataError`` with counts and column names if one breaks the schema."""
        before = self._fingerprint()
        self._prepare()
        found = list(checks(self.schema, self._stored))
        (counts,) = self._connection.fetch(validation_tree(found)).to_pylist()
        problems = [
            RecordError(column=check.column, problem=check.problem, count=counts[f"c{number}"])
            for number, check in enumerate(found)
            if counts[f"c{number}"]
        ]
        unit = self._stored[self.schema.unit]
        # The first check counts the ids that are NULL.
        repeated = repeated_ids(self._connection, self.schema, unit, records=counts[HELD], unknown=counts["c0"])
        if repeated:
            repeats = "repeats an id that must be unique"
            problems.append(RecordError(column=self.schema.unit, problem=repeats, count=repeated))
        if problems:
            self._forget()
            raise DataError(problems=tuple(problems))
        self._validated = before

    def _prepare(self) -> None:
        """The view every query reads; records that are elsewhere are copied first, once."""
        if not self._prepared:
            if isinstance(self._source, COPIED):
                copy_records(self._connection, self._source, self.schema, self._stored)
            self._connection.run(records_tree(self.schema, self._stored))
        self._prepared = True

    def _forget(self) -> None:
        """A copy that was refused goes away: once its rows are corrected they come over anew."""
        if isinstance(self._source, COPIED):
            forget_copy(self._connection)
            self._prepared = False

    def totals(self, plan: Plan) -> tuple[TableTotals | FoundTotals, ...]:
        """The exact totals of every table of a plan, in the plan's order."""
        self._ready(plan.schema)
        found = self._passes.totals(plan)
        self._check_unchanged()
        return found

    def split_table(
        self, splitting: Splitting, *, condition: Predicate | None = None, at_most: int = MOST_PIECES
    ) -> Sensitive[pa.Table]:
        """The unit-split rows themselves, measures in steps, for a foreign mechanism."""
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
        """A histogram over the records of a table's public cells, of a value that may use its cell's ``total0``, ``total1``...

        For realised losses: (change of the answer)^2/(2 sigma^2), say. For the owner only.
        """
        self._ready(plan.schema)
        return self._passes.summarise_beside_totals(plan, table, value, edges)

    def owner_passes(self) -> OwnerPasses:
        """What the owner looks at while planning."""
        self._ready(self.schema)
        return OwnerPasses(self._passes)

    def close(self) -> None:
        """Close the connection and remove what it spilled."""
        self._connection.close()

    def __enter__(self) -> "DuckDB":
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
