"""Where records come from. Naming a source opens nothing; an engine binds it later and reads names and types first."""

import csv
import glob
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from recordwise.errors import DataError, ParameterError, RecordError, RecordwiseError, SourceError
from recordwise.plan.frames import as_arrow

DUCKDB, SPARK = "duckdb", "spark"
ENGINES = (DUCKDB, SPARK)
"""What a plan file may name as its engine; ``recordwise.engines.registry`` opens them."""
POSTGRES_SCHEMES = ("postgresql://", "postgres://")
SAS_ENDINGS = (".sas7bdat", ".xpt")
_NAME = r'"(?:[^"\0]|"")+"|[^".\0]+'
_TABLE_NAME = re.compile(rf"(?:{_NAME})(?:\.(?:{_NAME}))?")


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """One table in one or many Parquet files."""

    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class CsvFiles:
    """One table in one or many CSV files with a header line. Every field is read as text and cast by the declared schema."""

    paths: tuple[Path, ...]
    delimiter: str = ","

    def header(self) -> tuple[str, ...]:
        """The names in the first line, which must be the same in every file."""
        headers = {self._header(path) for path in self.paths}
        if len(headers) != 1:
            raise SourceError(source="the CSV source", problem="its files have different header lines")
        names = headers.pop()
        if len({name.casefold() for name in names}) < len(names):
            raise SourceError(source="the CSV source", problem="its header line names a column twice")
        return names

    def _header(self, path: Path) -> tuple[str, ...]:
        try:
            with path.open(newline="", encoding="utf-8-sig") as lines:
                return tuple(next(csv.reader(lines, delimiter=self.delimiter, strict=True), ()))
        except (UnicodeDecodeError, csv.Error):
            # The decoder's error carries the bytes it read ahead, records among them.
            raise SourceError(
                source="the CSV source", problem="a file does not start with a line of UTF-8 text"
            ) from None


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A table in memory, as Arrow."""

    table: pa.Table


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """A relation of the user's own DuckDB connection; its rows are copied over in batches when the table is first read."""

    relation: Any


@dataclass(frozen=True, slots=True)
class SasFiles:
    """One table in one or many SAS files, all SAS7BDAT or all XPORT; copied over in chunks when the table is first read."""

    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Postgres:
    """A table or view of a PostgreSQL server, copied over once, in one snapshot, when the table is first read.

    ``uri`` is an address as libpq reads it. A password in it is neither shown nor kept anywhere; better it is not in it at all
    but in a password file, a service file or PGPASSWORD.

    Args:
        uri: The address of the server, ``postgresql://...``.
        table: The table or view, ``table`` or ``schema.table``.
    """

    uri: str = field(repr=False)
    table: str = field(kw_only=True)
    """``table`` or ``schema.table``, letter by letter as the catalogue has it; a part with a dot in it stands in double quotes."""

    def __post_init__(self) -> None:
        if not isinstance(self.uri, str) or not self.uri.startswith(POSTGRES_SCHEMES):
            raise ParameterError(parameter="uri", problem="must start with postgresql://")
        if not isinstance(self.table, str) or _TABLE_NAME.fullmatch(self.table) is None:
            raise ParameterError(
                parameter="table",
                problem="must be the name of a table, or of a schema and a table with a dot between",
                advice="A name with a dot or quotes in it stands in double quotes: 'public.\"a.b\"'.",
            )

    def names(self) -> tuple[str, ...]:
        """The parts of the table's name, bare."""
        parts = re.findall(_NAME, self.table)
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
            raise ParameterError(parameter=ANSI, problem="cannot be off: integers would wrap around unnoticed")


Source = ParquetFiles | CsvFiles | SasFiles | Frame | Relation | Postgres


def open_source(given: Any) -> Source:
    """A source out of a path, a glob, a list of paths, a frame, a DuckDB relation or a ``Postgres``."""
    if isinstance(given, Source):
        return given
    if isinstance(given, str | Path):
        return _files(_expand(str(given)))
    if isinstance(given, list | tuple) and given and all(isinstance(each, str | Path) for each in given):
        return _files([path for each in given for path in _expand(str(each))])
    if type(given).__name__ == "DuckDBPyRelation":
        return Relation(given)
    return Frame(_as_table(given))


def _as_table(given: Any) -> pa.Table:
    """A frame as Arrow. What Arrow says about a value it cannot hold quotes it, so only the column is told."""
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
    """The columns of a frame or a mapping; none of anything else."""
    frame = hasattr(given, "columns") and (hasattr(given, "to_arrow") or hasattr(given, "to_numpy"))
    return list(given) if isinstance(given, Mapping) else list(given.columns) if frame else []


def _no_frame(given: Any, names: list[Any]) -> RecordwiseError:
    """What is wrong with something that did not become a table: the columns that do not by themselves."""
    if not names:
        return SourceError(source=f"a {type(given).__name__}", problem="it is no path, frame or relation")
    if len({str(name) for name in names}) < len(names):
        return _named_twice()
    broken = [name for name in names if not _converts(given, name)]
    if not broken:
        return SourceError(source="the frame", problem="its columns do not make one table")
    problem = "holds values of several types, or one that no type of Arrow can hold"
    return DataError(problems=tuple(RecordError(column=str(name), problem=problem) for name in broken))


def _converts(given: Any, name: Any) -> bool:
    try:
        as_arrow({name: given[name]} if isinstance(given, Mapping) else given[[name]])
    except Exception:
        return False
    return True


def _named_twice() -> SourceError:
    return SourceError(source="the frame", problem="it names a column twice")


def _expand(pattern: str) -> list[Path]:
    """A glob is laid out here, so that the engine is allowed these files and no others."""
    if "://" in pattern:
        # An address can hold a password, so it is not repeated.
        known = pattern.startswith(POSTGRES_SCHEMES)
        raise SourceError(
            source="a PostgreSQL address" if known else "an address",
            problem="it needs the name of a table" if known else "only files and PostgreSQL are known",
            advice='In Python use rw.Postgres(address, table="schema.table"); in a plan file add table = "schema.table".',
        )
    found = sorted(glob.glob(pattern, recursive=True)) if glob.has_magic(pattern) else [pattern]
    paths = [Path(each).resolve() for each in found]
    if not paths or not all(path.is_file() for path in paths):
        raise SourceError(source=f"'{pattern}'", problem="there is no such file")
    return paths


def _files(paths: Iterable[Path]) -> Source:
    listed = tuple(paths)
    suffixes = {path.suffix.lower() for path in listed}
    if suffixes <= {".parquet", ".pq"}:
        return ParquetFiles(listed)
    if suffixes <= {".csv", ".tsv"} and len(suffixes) == 1:
        return CsvFiles(listed, "," if suffixes == {".csv"} else "\t")
    if suffixes <= set(SAS_ENDINGS) and len(suffixes) == 1:
        return SasFiles(listed)
    raise SourceError(source="the source", problem="its files are neither all Parquet nor all CSV nor all SAS")


SPARK_ENDINGS = (".parquet", ".pq", ".csv", ".tsv")


def is_table_name(text: str) -> bool:
    """Whether a text names a table of Spark's catalog rather than a file."""
    return not text.lower().endswith(SPARK_ENDINGS) and not any(letter in text for letter in "/\\*?[")


def found_by_spark(text: str) -> bool:
    """Whether a text names a table or an address rather than a file of this machine."""
    return "://" in text or is_table_name(text)
