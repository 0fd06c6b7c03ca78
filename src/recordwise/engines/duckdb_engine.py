"""DuckDB: one exact pass over the records, in bounded memory, locked to the files it was given."""

from typing import Any

from recordwise.engines.binding import bind
from recordwise.engines.connection import Connection
from recordwise.engines.copying import COPIED, copy_records, forget_copy
from recordwise.engines.distinct import repeated_ids
from recordwise.engines.duckdb_store import DuckDBStore
from recordwise.engines.engine import Engine
from recordwise.engines.passes import Passes
from recordwise.engines.sources import CsvFiles, ParquetFiles, SasFiles, open_source
from recordwise.engines.untyped import open_typed
from recordwise.errors import DataError, RecordError
from recordwise.plan.records import Stored, checks, records_tree, type_problem
from recordwise.plan.schema import Schema
from recordwise.plan.validation import HELD, validation_tree

DEFAULT_MEMORY = "700MB"


class DuckDB(Engine):
    """A table of records behind DuckDB. Opening reads no record; the first thing that needs records validates them all."""

    dialect = "duckdb"

    def __init__(
        self, source: Any, schema: Schema, *, memory_limit: str = DEFAULT_MEMORY, threads: int | None = None
    ) -> None:
        self._source = open_typed(source, schema, open_source)
        read = self._source.paths if isinstance(self._source, ParquetFiles | CsvFiles) else ()
        self._connection = Connection(files=read, memory_limit=memory_limit, threads=threads)
        watched = self._source.paths if isinstance(self._source, SasFiles) else read
        super().__init__(Passes(DuckDBStore(self._connection), schema), files=watched)
        self._prepared = False
        try:
            self._stored = self._bound()
        except BaseException:
            self._release()
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

    def _check_records(self) -> None:
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

    def _release(self) -> None:
        """Close the connection and remove what it spilled."""
        self._connection.close()
