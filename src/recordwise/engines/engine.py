"""The interface between a session and its engine.

``DuckDB`` and ``Spark`` bind and check records; the rest is shared here. An engine also records what
identifies the validated files, so that it can refuse files that changed since.
"""

import os
import stat
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa
from sqlglot import exp

from recordwise.engines.compile.records import (
    BROKEN,
    DIFFERS,
    SOURCE,
    Check,
    StorageType,
    broken_tree,
    differing_tree,
    same_names,
    type_problem,
    validation_tree,
)
from recordwise.engines.totals import Passes
from recordwise.errors import EngineError, ExtraError, PlanError, RecordError, RecordwiseError, SourceError
from recordwise.plan.describe import schema_of, used_schema
from recordwise.plan.expressions import Predicate
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.results import FoundTotals, Sensitive, TableTotals
from recordwise.plan.schema import Schema
from recordwise.plan.sources import (
    NO_HEADER,
    STAT_ENDINGS,
    Database,
    Postgres,
    StatFiles,
    folder_files,
    look_like_values,
)
from recordwise.plan.statistics.totals import Splitting

if TYPE_CHECKING:
    from recordwise.engines.owner import OwnerPasses


Mark = tuple[int, int, int]


def file_marks(paths: Iterable[Path]) -> tuple[Mark, ...]:
    """Return number, size and change time of each file.

    The change time, unlike the modification time, cannot be set back. For a folder: the names of its files,
    which have marks too.
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
    """Return the files that must not change after validation."""
    if isinstance(source, Database):
        return (Path(source.path),)
    paths: tuple[Path, ...] = getattr(source, "paths", ())
    folder = getattr(source, "folder", None)
    return paths if folder is None else (folder, *paths)


MOST_PIECES = 100_000_000


class Engine(ABC):
    """A table of records.

    Opening it reads no record; the first operation on records validates them all. Records are read only as they
    were validated: the files must not change between validation and the end of a pass. Threads that share an
    engine take turns.
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
        """Raise ``DataError`` if a record breaks this part of the schema.

        With counts and column names.
        """

    @abstractmethod
    def _release(self) -> None:
        """Close everything that was opened."""

    def close(self) -> None:
        """Close everything that was opened, after any pass that is in progress."""
        with self._turn:
            self._release()

    def validate(self, names: Iterable[str] | None = None) -> None:
        """Raise ``DataError`` if a record breaks the schema.

        With counts and column names; reads every record once. Ids are always checked; of measures and columns those
        in ``names``, or all. A table that is refused counts as not validated, whatever it was before.
        """
        with self._turn, self._masking_errors():
            wanted = self._checked.union(self.schema.declared_names() if names is None else names)
            self._validated, before = None, file_marks(self._files)
            self._check_records(schema_of(self.schema, set(wanted)))
            self._validated, self._checked = before, wanted

    def totals(
        self, plan: Plan, *, names: Iterable[str] | None = None, tables: tuple[PlannedTable, ...] | None = None
    ) -> tuple[TableTotals | FoundTotals, ...]:
        """Return the exact totals of every table of a plan.

        In the plan's order, or of ``tables`` with its keys. Measures and columns that the plan does not use are not
        validated, unless they are in ``names``.
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
        """Return a histogram of a number computed from each record.

        Bin i counts edges[i-1] < value <= edges[i]. For the owner only.
        """
        with self._reading(self.schema) as passes:
            return passes.summarize(value, edges, condition)

    def summarize_firms(self, value: exp.Expr, edges: Sequence[float], *, bound: str = "tight") -> Sensitive[pa.Table]:
        """Return a histogram of the joint loss of each firm.

        From the losses of its units. For the owner only.
        """
        with self._reading(self.schema) as passes:
            return passes.summarize_firms(value, edges, bound)

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
        """Run one exclusive pass over validated, unchanged records."""
        with self._turn, self._masking_errors():
            self._ready(schema, names)
            yield self._passes
            self._check_unchanged()

    @contextmanager
    def _masking_errors(self) -> Iterator[None]:
        """Hide exceptions that may quote records, except their type."""
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


# What validation counted, as problems with the names of columns and without a value; the same words on every engine.


MOST_NAMED = 40
NOT_SHOWN = "The first line must hold the names of the columns. It may be a record, so it is not shown."
REPEATS = "repeats an id that must be unique"


def check_present(wanted: Iterable[str], present: Sequence[str], *, source: str = "the source") -> None:
    """Refuse a source without a declared column, listing its columns."""
    missing = [name for name in wanted if name not in present]
    if not missing:
        return
    if look_like_values(present):
        raise SourceError(source=source, problem=f"it has no column {', '.join(missing)}", advice=NO_HEADER)
    from recordwise.plan.file.node import suggestion

    near = suggestion(missing[0], present)
    more = "" if len(present) <= MOST_NAMED else f" and {len(present) - MOST_NAMED} more"
    listed = ", ".join(present[:MOST_NAMED]) + more if present else "none"
    raise SourceError(
        source=source,
        problem=f"it has no column {', '.join(missing)}{near if near.endswith('?') else ''}",
        advice=f"Its columns: {listed}.",
    )


def check_header(wanted: Iterable[str], first_line: Sequence[str]) -> None:
    """Refuse CSV without a declared column.

    Its first line is shown only if it holds half of the declared names; otherwise it may be a record.
    """
    declared = list(wanted)
    missing = [name for name in declared if name not in first_line]
    folded = {name.casefold() for name in first_line}
    if 2 * sum(name.casefold() in folded for name in declared) >= len(declared):
        check_present(declared, first_line)
    elif missing:
        raise SourceError(
            source="the source", problem=f"its first line has no column {', '.join(missing)}", advice=NOT_SHOWN
        )


def check_types(schema: Schema, stored: Mapping[str, StorageType]) -> None:
    """Refuse all columns stored in ways their roles cannot use."""
    roles = [(measure.name, "measure") for measure in schema.record_measures()]
    roles += [(column.name, str(column.type)) for column in schema.columns]
    found = [problem for name, role in roles if (problem := type_problem(name, role, stored[name])) is not None]
    if len(found) == 1:
        raise found[0]
    if found:
        told = "; ".join(f"{each.source}: {each.problem}" for each in found)
        advice = " ".join(dict.fromkeys(each.advice for each in found if each.advice))
        raise SourceError(source="the source", problem=told, advice=advice)


def broken_rows(
    fetch: Callable[[exp.Expr], pa.Table],
    found: list[Check],
    table: str = SOURCE,
    *,
    counted: str = "row",
    met: int | None = None,
) -> list[RecordError]:
    """Return a problem for each check that rows meet.

    With the number of rows or units. One count for all checks comes first, unless it is known: most tables have
    nothing else to count.
    """
    if not found:
        return []
    if met is None:
        (counts,) = fetch(broken_tree(found, table)).to_pylist()
        met = counts[BROKEN]
    if not met:
        return []
    (counts,) = fetch(validation_tree(found, table)).to_pylist()
    return [
        RecordError(column=check.column, problem=check.problem, count=counts[f"c{number}"], counted=counted)
        for number, check in enumerate(found)
        if counts[f"c{number}"]
    ]


def differing_units(fetch: Callable[[exp.Expr], pa.Table], schema: Schema) -> list[RecordError]:
    """Return the columns in which rows of a unit wrongly differ."""
    names = same_names(schema)
    (counts,) = fetch(differing_tree(schema, names)).to_pylist()
    return [
        RecordError(column=name, problem=DIFFERS, count=counts[f"d{number}"], counted="unit")
        for number, name in enumerate(names)
        if counts[f"d{number}"]
    ]


# Optional dependencies: which source needs which, whether it is installed, and the command that installs it.


MODULES = {"postgres": "adbc_driver_postgresql", "stat": "pyreadstat", "spark": "pyspark"}
NEEDS = {"postgres": "a PostgreSQL source", "stat": "a source of SAS, Stata or SPSS", "spark": "engine 'spark'"}


def load_optional(module: str, *, extra: str) -> Any:
    """Import an optional module when it is first needed."""
    try:
        return import_module(module)
    except ImportError:
        raise ExtraError(what=NEEDS[extra], extra=extra) from None


def missing_extra(given: Any, *, of_engine: str | None = None) -> ExtraError | None:
    """Return the missing extra of an engine or source, or None."""
    extra = of_engine or _extra_of(given)
    if extra is None or find_spec(MODULES[extra]) is not None:
        return None
    return ExtraError(what=NEEDS[extra], extra=extra)


def _extra_of(given: Any) -> str | None:
    if isinstance(given, Postgres):
        return "postgres"
    named = given if isinstance(given, list | tuple) else [given]
    stat = isinstance(given, StatFiles) or any(str(each).lower().endswith(STAT_ENDINGS) for each in named)
    return "stat" if stat else None
