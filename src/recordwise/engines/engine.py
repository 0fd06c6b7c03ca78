"""The interface between a session and its engine. ``DuckDB`` and ``Spark`` bind and check records; the rest is shared here.

An engine also records what identifies the validated files, so that it can refuse files that changed since.
"""

import os
import stat
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa
from sqlglot import exp

from recordwise.engines.totals import Passes
from recordwise.errors import EngineError, PlanError, RecordwiseError, SourceError
from recordwise.plan.files import folder_files
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.predicates import Predicate
from recordwise.plan.results import FoundTotals, Sensitive, TableTotals
from recordwise.plan.schema import Schema
from recordwise.plan.sources import Database
from recordwise.plan.splitting import Splitting
from recordwise.plan.used import schema_of, used_schema

if TYPE_CHECKING:
    from recordwise.engines.owner import OwnerPasses

Mark = tuple[int, int, int]


def file_marks(paths: Iterable[Path]) -> tuple[Mark, ...]:
    """Number, size and time of the last change of each file. That time, unlike the one of the last writing, cannot be set back.

    Of a folder it is the names of the files in it, whose own marks stand beside.
    """
    try:
        return tuple(_mark(path) for path in paths)
    except OSError:
        raise SourceError(source="the source", problem="a file of it can no longer be read") from None


def _mark(path: Path) -> Mark:
    found = os.stat(path)
    if stat.S_ISDIR(found.st_mode):
        names = folder_files(path)
        return found.st_ino, len(names), hash(names)
    return found.st_ino, found.st_size, found.st_ctime_ns


def watched_files(source: Any) -> tuple[Path, ...]:
    """What must not change once it was validated: the files of a source, the folder they are in if that is the source."""
    if isinstance(source, Database):
        return (Path(source.path),)
    paths: tuple[Path, ...] = getattr(source, "paths", ())
    folder = getattr(source, "folder", None)
    return paths if folder is None else (folder, *paths)


MOST_PIECES = 100_000_000


class Engine(ABC):
    """A table of records. Opening it reads no record; the first operation on records validates them all.

    Records are read only as they were validated: the files must not change between validation and the end of a pass.
    Threads that share an engine take turns.
    """

    dialect: ClassVar[str]
    """The SQL dialect in which ``value`` of a summary must be written."""

    def __init__(self, passes: Passes, *, files: Sequence[Path]) -> None:
        self.schema: Schema = passes.schema
        self._passes = passes
        self._files = tuple(files)
        self._validated: tuple[Mark, ...] | None = None
        self._checked: frozenset[str] = frozenset()
        self._turn = threading.RLock()

    @abstractmethod
    def _check_records(self, schema: Schema) -> None:
        """Read every record once; raise ``DataError`` with counts and column names if one breaks this part of the schema."""

    @abstractmethod
    def _release(self) -> None:
        """Close everything that was opened."""

    def close(self) -> None:
        """Close everything that was opened, after any pass that is in progress."""
        with self._turn:
            self._release()

    def validate(self, names: Iterable[str] | None = None) -> None:
        """Read every record once; raise ``DataError`` with counts and column names if one breaks the schema.

        Ids are always looked at; of measures and columns those in ``names``, or all. A table that is refused counts as not
        validated, whatever it was before.
        """
        with self._turn, self._told():
            wanted = self._checked.union(self.schema.declared_names() if names is None else names)
            self._validated, before = None, file_marks(self._files)
            self._check_records(schema_of(self.schema, set(wanted)))
            self._validated, self._checked = before, wanted

    def totals(
        self, plan: Plan, *, names: Iterable[str] | None = None, tables: tuple[PlannedTable, ...] | None = None
    ) -> tuple[TableTotals | FoundTotals, ...]:
        """The exact totals of every table of a plan, in the plan's order, or of ``tables`` with its keys.

        Measures and columns that the plan does not use are not validated, unless they are in ``names``.
        """
        used = (*used_schema(plan).declared_names(), *(names or ()))
        with self._reading(plan.schema, used) as passes:
            return passes.totals(plan, tables)

    def split_table(
        self, splitting: Splitting, *, condition: Predicate | None = None, at_most: int = MOST_PIECES
    ) -> Sensitive[pa.Table]:
        """The unit-split rows themselves, measures in steps, for an external mechanism.

        These ARE records: with Spark they travel to the driver, and no other result does.
        """
        with self._reading(self.schema) as passes:
            return passes.split_table(splitting, condition, at_most)

    def summarize(
        self, value: exp.Expr, edges: Sequence[float], *, condition: Predicate | None = None
    ) -> Sensitive[pa.Table]:
        """A histogram of a number computed from each record: bin i counts edges[i-1] < value <= edges[i]. For the owner only."""
        with self._reading(self.schema) as passes:
            return passes.summarize(value, edges, condition)

    def summarize_firms(self, value: exp.Expr, edges: Sequence[float], *, bound: str = "tight") -> Sensitive[pa.Table]:
        """A histogram of the joint loss of each firm, from the losses of its units. For the owner only."""
        with self._reading(self.schema) as passes:
            return passes.summarize_firms(value, edges, bound)

    def summarize_beside_totals(
        self, plan: Plan, table: PlannedTable, value: exp.Expr, edges: Sequence[float]
    ) -> Sensitive[pa.Table]:
        """A histogram over the records of a table's public cells, of a value that may use its cell's ``total0``, ``total1``...

        Used for realized losses such as (change of the answer)^2/(2 sigma^2). For the owner only.
        """
        with self._reading(plan.schema) as passes:
            return passes.summarize_beside_totals(plan, table, value, edges)

    def owner_passes(self) -> "OwnerPasses":
        """The passes that answer the owner's questions while planning."""
        from recordwise.engines.owner import OwnerPasses

        return OwnerPasses(partial(self._reading, self.schema))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _reading(self, schema: Schema, names: Iterable[str] | None = None) -> Iterator[Passes]:
        """One pass, alone, over records that are and stay as they were validated; all their columns unless ``names`` are given."""
        with self._turn, self._told():
            self._ready(schema, names)
            yield self._passes
            self._check_unchanged()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Failures here may quote records: for an exception that is not ours, only its type is reported."""
        try:
            yield
        except RecordwiseError:
            raise
        except Exception as error:
            raise EngineError(engine=self.dialect, kind=type(error).__name__) from None

    def _ready(self, schema: Schema, names: Iterable[str] | None = None) -> None:
        if schema != self.schema:
            raise PlanError(problems=("the plan was made for a different schema",))
        wanted = frozenset(schema.declared_names() if names is None else names)
        if self._validated is None or not wanted <= self._checked:
            self.validate(wanted)
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        if self._validated != file_marks(self._files):
            raise SourceError(source="the source", problem="its files have changed since they were validated")
