"""Where records come from. Naming a source opens nothing; an engine later binds it, reading names and types first."""

import glob
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from recordwise.errors import DataError, ParameterError, RecordError, RecordwiseError, SourceError
from recordwise.plan.files import (
    ARROW_ENDINGS,
    COMPRESSED,
    CSV_ENDINGS,
    DATABASE_ENDINGS,
    PARQUET_ENDINGS,
    STAT_ENDINGS,
    UTF8,
    ArrowFiles,
    CsvFiles,
    CsvOptions,
    ParquetFiles,
    StatFiles,
    files_of,
    laid_out,
)
from recordwise.plan.frames import as_arrow

DUCKDB, SPARK = "duckdb", "spark"
ENGINES = (DUCKDB, SPARK)
"""The engines a plan file may name; ``recordwise.engines.registry`` opens them."""
POSTGRES_SCHEMES = ("postgresql://", "postgres://")
_NAME = r'"(?:[^"\0]|"")+"|[^".\0]+'
_TABLE_NAME = re.compile(rf"(?:{_NAME})(?:\.(?:{_NAME}))?")


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A table in memory, as Arrow."""

    table: pa.Table


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """A relation of the user's own DuckDB connection; its rows are copied in batches when the table is first read."""

    relation: Any


@dataclass(frozen=True, slots=True)
class Postgres:
    """A table or view of a PostgreSQL server, copied once, in one snapshot, when the table is first read.

    ``uri`` is an address as libpq reads it. A password in it is neither shown nor kept anywhere; better it is not in it at all
    but in a password file, a service file or PGPASSWORD.

    Args:
        uri: The address of the server, ``postgresql://...``.
        table: The table or view, ``table`` or ``schema.table``.
    """

    uri: str = field(repr=False)
    table: str = field(kw_only=True)
    """``table`` or ``schema.table``, exactly as in the catalog; a part that contains a dot is written in double quotes."""

    def __post_init__(self) -> None:
        if not isinstance(self.uri, str) or not self.uri.startswith(POSTGRES_SCHEMES):
            raise ParameterError(parameter="uri", problem="must start with postgresql://")
        check_table_name(self.table)

    def names(self) -> tuple[str, ...]:
        """The parts of the table's name, bare."""
        return bare_names(self.table)


@dataclass(frozen=True, slots=True)
class Database:
    """A table or view in a file of DuckDB or SQLite, opened read-only and copied over when the table is first read.

    Args:
        path: The file.
        table: ``table`` or ``schema.table``; a part with a dot in it stands in double quotes.
    """

    path: str | Path
    table: str = field(kw_only=True)
    """``table`` or ``schema.table``; a part with a dot in it stands in double quotes."""

    def __post_init__(self) -> None:
        check_table_name(self.table)

    def names(self) -> tuple[str, ...]:
        """The parts of the table's name, bare."""
        return bare_names(self.table)

    def file(self) -> Path:
        """The file, which must be there."""
        (found,) = laid_out(glob.escape(str(self.path)))
        return found


@dataclass(frozen=True, slots=True, init=False)
class Csv:
    """CSV files that are not written the usual way: ``rw.Csv("firms.csv", delimiter=";", decimal=",", encoding="cp1252")``.

    Args:
        paths: A path, a glob, or several.
        delimiter: What separates fields: a comma, or a tab in .tsv files, unless given.
        decimal: The decimal sign of numbers, "." or ",".
        encoding: How the text is encoded, by a name that Python knows.
    """

    paths: tuple[str, ...]
    options: CsvOptions

    def __init__(
        self,
        paths: str | Path | Sequence[str | Path],
        *,
        delimiter: str | None = None,
        decimal: str = ".",
        encoding: str = UTF8,
    ) -> None:
        listed = [paths] if isinstance(paths, str | Path) else list(paths)
        object.__setattr__(self, "paths", tuple(str(each) for each in listed))
        object.__setattr__(self, "options", CsvOptions(delimiter=delimiter, decimal=decimal, encoding=encoding))


def check_table_name(name: Any) -> None:
    """Refuse what is not the name of a table."""
    if not isinstance(name, str) or _TABLE_NAME.fullmatch(name) is None:
        raise ParameterError(
            parameter="table",
            problem="must be a table name, or a schema name and a table name with a dot between",
            advice="A name with a dot or quotes in it stands in double quotes: 'public.\"a.b\"'.",
        )


def bare_names(name: str) -> tuple[str, ...]:
    """The parts of a table's name without quotes."""
    parts = re.findall(_NAME, name)
    return tuple(part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts)


ANSI = "spark.sql.ansi.enabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkMaster:
    """A master to start Spark on (``local[2]``, ``spark://host:7077``), with settings of Spark's own.

    Args:
        url: The master.
        options: Settings of Spark, by name.
    """

    url: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.options.get(ANSI, "true") != "true":
            raise ParameterError(parameter=ANSI, problem="cannot be off: integer overflow would wrap around silently")


Source = ParquetFiles | CsvFiles | ArrowFiles | StatFiles | Database | Frame | Relation | Postgres


PlanSource = tuple[str, ...] | Postgres | Database | Csv
"""What a plan file names as its source."""


def open_source(given: Any) -> Source:
    """A source out of a path, a glob, a list of paths, a frame, a DuckDB relation, a ``Postgres``, ``Database`` or ``Csv``."""
    if isinstance(given, Database):
        return Database(given.file(), table=given.table)
    if isinstance(given, Source):
        return given
    if isinstance(given, Csv):
        return files_of([path for each in given.paths for path in _expand(each)], given.options)
    if isinstance(given, str | Path):
        return files_of(_expand(str(given)))
    if isinstance(given, list | tuple) and given and all(isinstance(each, str | Path) for each in given):
        return files_of([path for each in given for path in _expand(str(each))])
    if type(given).__name__ == "DuckDBPyRelation":
        return Relation(given)
    return Frame(_as_table(given))


def _as_table(given: Any) -> pa.Table:
    """A frame as Arrow. Arrow's error can quote the value it cannot hold, so ours names only the column."""
    try:
        table = as_arrow(given)
    except Exception:
        raise _no_frame(given, _names(given)) from None
    if not isinstance(table, pa.Table):
        raise _no_frame(given, [])
    if len(set(table.column_names)) < table.num_columns:
        raise _named_twice()
    return table


def _names(given: Any) -> list[Any]:
    """The columns of a frame or a mapping; empty for anything else."""
    frame = hasattr(given, "columns") and (hasattr(given, "to_arrow") or hasattr(given, "to_numpy"))
    return list(given) if isinstance(given, Mapping) else list(given.columns) if frame else []


def _no_frame(given: Any, names: list[Any]) -> RecordwiseError:
    """Why an object could not become a table: names the columns that cannot be converted on their own."""
    if not names:
        return SourceError(source=f"a {type(given).__name__}", problem="it is not a path, frame or relation")
    if len({str(name) for name in names}) < len(names):
        return _named_twice()
    broken = [name for name in names if not _converts(given, name)]
    if not broken:
        return SourceError(source="the frame", problem="its columns do not form a table")
    problem = "holds values of several types, or one that no Arrow type can hold"
    return DataError(problems=tuple(RecordError(column=str(name), problem=problem) for name in broken))


def _converts(given: Any, name: Any) -> bool:
    try:
        as_arrow({name: given[name]} if isinstance(given, Mapping) else given[[name]])
    except Exception:
        return False
    return True


def _named_twice() -> SourceError:
    return SourceError(source="the frame", problem="two of its columns have the same name")


def _expand(pattern: str) -> list[Path]:
    """Expand a glob here, so that the engine is allowed to read these files and no others."""
    if "://" in pattern:
        # An address can contain a password, so it is not repeated.
        known = pattern.startswith(POSTGRES_SCHEMES)
        raise SourceError(
            source="a PostgreSQL address" if known else "an address",
            problem="it needs the name of a table" if known else "only files and PostgreSQL are supported",
            advice='In Python use rw.Postgres(address, table="schema.table"); in a plan file add table = "schema.table".',
        )
    if pattern.lower().endswith(DATABASE_ENDINGS):
        raise SourceError(
            source="a database file",
            problem="it needs the name of a table",
            advice='In Python use rw.Database(file, table="t"); in a plan file add table = "t".',
        )
    return laid_out(pattern)


SPARK_ENDINGS = (*PARQUET_ENDINGS, *CSV_ENDINGS, *COMPRESSED, *ARROW_ENDINGS, *STAT_ENDINGS, *DATABASE_ENDINGS)


def is_table_name(text: str) -> bool:
    """Whether a text names a table in Spark's catalog rather than a file."""
    return not text.lower().endswith(SPARK_ENDINGS) and not any(letter in text for letter in "/\\*?[")


def found_by_spark(text: str) -> bool:
    """Whether a text names a table or an address rather than a file on this machine."""
    return "://" in text or is_table_name(text)
