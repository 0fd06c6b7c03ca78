"""Where records and public lists come from; naming a source opens nothing.

An engine binds a source later, reading names and types first.
"""

import codecs
import csv
import fnmatch
import glob
import hashlib
import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from recordwise.errors import (
    DataError,
    KeysError,
    ParameterError,
    RecordError,
    RecordwiseError,
    SourceError,
    own_errors_of,
)
from recordwise.plan.arrays import as_array
from recordwise.plan.publication import LABEL

__all__ = ["Csv", "Database", "Postgres", "SparkMaster"]

# Files that hold records: their kinds, by their endings, and where they lie.


PARQUET_ENDINGS = (".parquet", ".pq")
CSV_ENDINGS = {".csv": ",", ".tsv": "\t"}
OTHER_DELIMITERS = (";", "\t", "|")
COMPRESSED = (".gz", ".zst")
ARROW_ENDINGS = (".arrow", ".feather", ".ipc")
STAT_ENDINGS = (".sas7bdat", ".xpt", ".dta", ".sav", ".zsav", ".por")
DATABASE_ENDINGS = (".duckdb", ".ddb", ".sqlite", ".sqlite3", ".db")
UTF8 = "utf-8"
STATED = re.compile(r"[^=%?\\]+=(?:[^=%?\\]|%[2-7][0-9a-fA-F])+")
"""A folder that holds a value of a column, as every engine reads it: ``state=06``, or ``%2F`` for what no name can have."""
KINDS = (
    "Parquet (.parquet, .pq, or a folder of them), CSV (.csv, .tsv, also with .gz or .zst), Arrow (.arrow, .feather, .ipc), "
    "SAS (.sas7bdat, .xpt), Stata (.dta) and SPSS (.sav, .zsav, .por)"
)


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """One table in Parquet files or folders, whose names may hold columns."""

    paths: tuple[Path, ...]
    folder: Path | None = None

    def partitions(self) -> tuple[str, ...]:
        """Return the columns in folder names, the same for every file."""
        if self.folder is None:
            return ()
        stated = {tuple(part for part in self._folders(path) if "=" in part) for path in self.paths}
        names = {tuple(part.partition("=")[0] for part in parts) for parts in stated}
        if len(names) != 1:
            raise SourceError(
                source="the folder", problem="the names of its folders state different columns for different files"
            )
        found = names.pop()
        twice = len({name.casefold() for name in found}) < len(found)
        if twice or not all(STATED.fullmatch(part) for parts in stated for part in parts):
            raise SourceError(
                source="the folder",
                problem="the names of its folders cannot be read as columns",
                advice="Each must be name=value, with plain letters and no name twice; or name the files: 'folder/**/*.parquet'.",
            )
        return found

    def _folders(self, path: Path) -> tuple[str, ...]:
        return path.relative_to(self.folder or path.parent).parts[:-1]

    def listed(self) -> tuple[Path, ...]:
        """Return the files that exist now."""
        return self.paths if self.folder is None else folder_files(self.folder)


@dataclass(frozen=True, slots=True)
class CsvFiles:
    """One table in CSV files with headers, cast by the declared schema."""

    paths: tuple[Path, ...]
    delimiter: str = ","
    decimal: str = "."
    encoding: str = UTF8

    def header(self, declared: Collection[str] = ()) -> tuple[str, ...]:
        """Return the header's names, which must agree in every file.

        Without the blanks around them, unless a schema has ``declared`` a name with its blanks.
        """
        headers = {self._header(path) for path in self.paths}
        if len(headers) != 1:
            raise SourceError(source="the CSV source", problem="its files have different header lines")
        names = tuple(name if name in declared else name.strip() for name in headers.pop())
        if not names:
            raise SourceError(source="the CSV source", problem="a file of it is empty: it has no header line")
        if len({name.casefold() for name in names}) < len(names):
            advice = NO_HEADER if look_like_values(names) else ""
            raise SourceError(source="the CSV source", problem="its header line names a column twice", advice=advice)
        return names

    def _header(self, path: Path) -> tuple[str, ...]:
        try:
            with self.open_text(path) as lines:
                names = tuple(next(self._reader(lines), ()))
            "".join(names).encode()
            return names
        except (UnicodeError, csv.Error, OSError, pa.ArrowException):
            # The decoder's error carries the bytes it read ahead, records among them.
            raise SourceError(
                source="the CSV source",
                problem=f"a file does not start with a line of {self._charset()} text, with fields separated by {self.delimiter!r}",
                advice="State its delimiter and encoding under [csv], with rw.sources.Csv(...), or with init --encoding NAME.",
            ) from None

    def with_guessed_delimiter(self) -> "CsvFiles":
        """Return the files with the delimiter inferred from the header alone."""
        tried = [replace(self, delimiter=each) for each in (self.delimiter, *OTHER_DELIMITERS)]
        return max(tried, key=CsvFiles._fields)

    def _fields(self) -> int:
        try:
            return len(self._header(self.paths[0]))
        except SourceError:
            return 0

    def _charset(self) -> str:
        return self.encoding.upper() if self.encoding == UTF8 else self.encoding

    def _reader(self, lines: Iterable[str]) -> Any:
        return csv.reader(lines, delimiter=self.delimiter, strict=True)

    @contextmanager
    def open_text(self, path: Path) -> Iterator[io.TextIOBase]:
        """Open a file's text, unpacked and decoded; invalid bytes stay invalid."""
        encoding = "utf-8-sig" if self.encoding == UTF8 else self.encoding
        with (
            pa.input_stream(str(path), compression=compression(path)) as packed,
            io.TextIOWrapper(packed, encoding=encoding, errors="surrogateescape", newline="") as lines,
        ):
            yield lines

    def torn_line(self) -> str | None:
        """Return the number, not text, of the first unreadable line, or None."""
        wanted = len(self.header())
        for number, path in enumerate(self.paths, 1):
            where = f" of file {number}" if len(self.paths) > 1 else ""
            problem = self._first_torn_line(path, wanted)
            if problem is not None:
                return problem.format(where)
        return None

    def _first_torn_line(self, path: Path, wanted: int) -> str | None:
        with self.open_text(path) as lines:
            reader = self._reader(lines)
            try:
                for row in reader:
                    # An empty line is no record to any reader.
                    if row and len(row) != wanted:
                        return f"line {reader.line_num}{{}} has more or fewer fields than the header"
                    "".join(row).encode()
            except UnicodeError:
                return f"line {reader.line_num}{{}} holds text that is not {self._charset()}"
            except (csv.Error, OSError, pa.ArrowException):
                return f"line {reader.line_num}{{}} cannot be read: a quote is not closed, or followed by more text"
        return None


@dataclass(frozen=True, slots=True)
class ArrowFiles:
    """One table in Arrow files (IPC or Feather), copied in batches."""

    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class StatFiles:
    """One table in files of SAS, Stata or SPSS, copied in chunks."""

    paths: tuple[Path, ...]


AnyFiles = ParquetFiles | CsvFiles | ArrowFiles | StatFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvOptions:
    """The format of CSV files: delimiter, decimal sign and encoding."""

    delimiter: str | None = None
    """A comma, or a tab in .tsv files, unless given."""
    decimal: str = "."
    encoding: str = UTF8

    def __post_init__(self) -> None:
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n\0'):
            raise ParameterError(parameter="delimiter", problem="must be one character, and no quote")
        if self.decimal not in (".", ","):
            raise ParameterError(parameter="decimal", problem="must be '.' or ','")
        if self.decimal == self.delimiter or (self.decimal == "," and self.delimiter is None):
            raise ParameterError(
                parameter="decimal", problem="separates fields already", advice="Give another delimiter, ';' say."
            )
        try:
            # Some codecs that Python knows are for no text: rot13, base64, hex.
            "".encode(self.encoding)
            name = codecs.lookup(self.encoding).name
        except (LookupError, ValueError):
            raise ParameterError(parameter="encoding", problem="is not known", advice="Use utf-8 or cp1252.") from None
        object.__setattr__(self, "encoding", name)


VALUE = re.compile(r"\s*([+-]?[\d.,]+|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*)?\s*")
NO_HEADER = (
    "The first line must hold the names of the columns; some of its fields look like values, so they are not shown."
)


def look_like_values(names: Iterable[str]) -> bool:
    """Return whether column names may be values of a record.

    In a CSV file without a header line they are. An empty field, a number or a date is hardly ever a name.
    """
    return any(VALUE.fullmatch(part) for name in names for part in re.split(r"[,;\t|]", name))


def compression(path: Path) -> str | None:
    """How a file is packed, by its ending."""
    return {".gz": "gzip", ".zst": "zstd"}.get(path.suffix.lower())


def ending(path: Path) -> str:
    """Return a file's type by its name, ignoring compression."""
    bare = path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
    found = bare.suffix.lower()
    return found if bare is path or found in CSV_ENDINGS else path.suffix.lower()


def files_of(paths: Sequence[Path], options: CsvOptions | None = None) -> AnyFiles:
    """Files of one kind, by their endings."""
    listed = tuple(paths)
    if len(listed) == 1 and listed[0].is_dir():
        return ParquetFiles(folder_files(listed[0]), listed[0])
    _check_globs(listed)
    endings = {ending(path) for path in listed}
    if endings <= set(CSV_ENDINGS) and len(endings) == 1:
        chosen = options or CsvOptions()
        delimiter = chosen.delimiter or CSV_ENDINGS[endings.pop()]
        return CsvFiles(listed, delimiter, chosen.decimal, chosen.encoding)
    if options is not None:
        raise SourceError(source="the source", problem="options of CSV are given, and its files are not all CSV")
    if endings <= set(PARQUET_ENDINGS):
        return ParquetFiles(listed)
    if endings <= set(ARROW_ENDINGS):
        return ArrowFiles(listed)
    if endings <= set(STAT_ENDINGS) and len(endings) == 1:
        return StatFiles(listed)
    raise SourceError(
        source="the source", problem="its files are not all of one kind that is known", advice=f"Known: {KINDS}."
    )


def matching_files(pattern: str) -> list[Path]:
    """Return a path's or glob's files, the only ones engines may read."""
    literal = not glob.has_magic(pattern) or Path(pattern).exists()
    found = [pattern] if literal else sorted(glob.glob(pattern, recursive=True))
    paths = [Path(each).resolve() for each in found]
    whole_folder = len(paths) == 1 and paths[0].is_dir()
    if not paths or not (whole_folder or all(path.is_file() for path in paths)):
        raise SourceError(source=f"'{pattern}'", problem="there is no such file")
    return paths


def folder_files(folder: Path) -> tuple[Path, ...]:
    """Return a folder's Parquet files, recursively, without names starting _ or dot."""
    below = sorted(path for path in folder.rglob("*") if not _is_hidden(path.relative_to(folder)))
    logs = [folder / "_delta_log", folder / ".hoodie", *(folder / "metadata").glob("*.metadata.json")]
    if any(log.exists() for log in logs):
        raise SourceError(
            source="the folder",
            problem="it is a table of Delta, Iceberg or Hudi, whose folder also holds rows that were deleted",
            advice="Open it with Spark by its name, or write the rows to Parquet.",
        )
    files = [path for path in below if path.is_file()]
    strange = [path for path in files if path.suffix.lower() not in PARQUET_ENDINGS]
    if not files or strange:
        what = "files that are not Parquet" if strange else "no Parquet file"
        raise SourceError(
            source="the folder", problem=f"it holds {what}", advice="Name the files instead: 'folder/*.csv'."
        )
    found = tuple(path.resolve() for path in files)
    _check_globs(found)
    return found


def _check_globs(paths: tuple[Path, ...]) -> None:
    """Refuse a name that is a glob for another, read twice otherwise."""
    texts = [str(path) for path in paths]
    for each in filter(glob.has_magic, texts):
        if any(fnmatch.fnmatchcase(text, each) for text in texts if text != each):
            raise SourceError(
                source="the source", problem="the name of one of its files is a glob for another", advice="Rename it."
            )
    if len(set(texts)) < len(texts):
        raise SourceError(source="the source", problem="a file of it is named twice")


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)


# Tables that we published ourselves are not public lists: they are recognized by the label in the file, or by the
# release they lie in. A NOT PRIVATE table may reveal exact totals. A private one is noisy, but noise scaled by it
# makes a later charge depend on it, which only a budget of the same ledger covers (T-SIZE): it is named as
# ``FromRelease``. A copy that another program wrote has no label, and away from its folder a private CSV file has
# none either: these cannot be recognized (docs/limits.md).


PRIVATE = "private"
COMMENT = b"# NOT PRIVATE"
"""How the CSV file of a table that is not private begins."""
PUBLISHED = "is a table of a release of ours, private but not a public list"
UNPROTECTED = (
    "is a table of a release that is NOT PRIVATE, so its numbers may tell the totals: it is never a public list"
)
NAME_IT = (
    "For sizes, name the release: size = { release = FOLDER, column = NAME } in a plan, FromRelease in Python. For keys, name the "
    "public list that its cells are from."
)
FROM_ELSEWHERE = (
    "Take sizes and keys from a table that somebody else published, or from a private release by FromRelease."
)


def refuse_own_table(table: pa.Table, name: str) -> None:
    """Refuse a table with our label in its Parquet metadata."""
    metadata: dict[bytes, bytes] = table.schema.metadata or {}
    if LABEL in metadata:
        raise _release_error(name, private=metadata[LABEL].decode(errors="replace") == PRIVATE)


def refuse_own_file(path: Path) -> None:
    """Refuse a labeled CSV file, and any file in a release folder."""
    with path.open("rb") as file:
        if file.read(len(COMMENT)) == COMMENT:
            raise _release_error(f"the file {path.name}", private=False)
    for folder in dict.fromkeys((path.absolute().parent, path.resolve().parent)):
        for described in _descriptions(folder):
            if described.has(path):
                raise _release_error(f"the file {path.name}", private=described.label == PRIVATE)


def _release_error(name: str, *, private: bool) -> KeysError:
    return KeysError(
        column=name,
        problem=PUBLISHED if private else UNPROTECTED,
        advice=NAME_IT if private else FROM_ELSEWHERE,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFolder:
    """What a folder of ours says is in it: all that is needed to refuse its files.

    ``release/`` reads the same files in full; here they may be damaged, or of any version.
    """

    label: str
    digests: Mapping[str, Any]
    """The files by name, with their digests; empty in the first version."""
    names: frozenset[str]
    stems: frozenset[str]
    """The names of tables, without the endings of files."""

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> "OwnFolder":
        """Read release.json or datapackage.json."""
        digests, resources = form.get("sha256"), form.get("resources") or ()
        listed = dict(digests) if isinstance(digests, dict) else {}
        parts = [each for each in resources if isinstance(each, dict)]
        return cls(
            label=str(form.get("mark", form.get("privacy_label"))),
            digests=listed,
            names=frozenset((*listed, *(str(each.get("path")) for each in parts))),
            # The first version lists its tables only.
            stems=frozenset((*(str(each.get("name")) for each in parts), *(form.get("accuracy") or {}))),
        )

    def has(self, path: Path) -> bool:
        """Return whether it lists a file, by name or digest."""
        own = {path.name, path.resolve().name}
        if own & self.names or {name.partition(".")[0] for name in own} & self.stems:
            return True
        return bool(self.digests) and _digest(path) in self.digests.values()


def _descriptions(folder: Path) -> Iterator[OwnFolder]:
    """Yield a folder's descriptions of a release in it, if any."""
    for name, key in (("release.json", "recordwise_release"), ("datapackage.json", "privacy_label")):
        try:
            form = json.loads((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(form, dict) and key in form:
            yield OwnFolder.read(form)


def _digest(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


# Frames of any library, and lists of values, as Arrow tables and columns.


def as_public(frame: Any) -> pa.Table:
    """Return a public list as Arrow; refuse one labeled as our release."""
    table = as_arrow(frame)
    refuse_own_table(table, "the list")
    return table


def as_arrow(frame: Any) -> pa.Table:
    """Return an Arrow table from a frame or mapping, without imports."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, Mapping):
        return _in_rows({name: as_array(name, values) for name, values in frame.items()})
    if hasattr(frame, "to_arrow") and hasattr(frame, "columns"):
        return frame.to_arrow()
    if hasattr(frame, "to_numpy") and hasattr(frame, "columns"):
        return _from_pandas(frame)
    if hasattr(frame, "__arrow_c_stream__"):
        return _from_stream(frame)
    raise KeysError(
        column="the list", problem=f"is a {type(frame).__name__}, not a frame", advice="Give a frame or a mapping."
    )


def _from_stream(frame: Any) -> pa.Table:
    """Return a table from any library with an Arrow stream."""
    try:
        return pa.RecordBatchReader.from_stream(frame).read_all()
    except (pa.ArrowException, TypeError, ValueError):
        raise KeysError(column="the list", problem="is a stream of Arrow that is no table") from None


def _in_rows(columns: Mapping[str, pa.Array]) -> pa.Table:
    if len({len(column) for column in columns.values()}) > 1:
        raise KeysError(
            column="the list",
            problem="has columns of different lengths",
            advice="Each row is one cell. For all combinations of the values, use Keys.product.",
        )
    return pa.table(dict(columns))


def _from_pandas(frame: Any) -> pa.Table:
    """Convert a pandas frame, hiding Arrow's errors that quote values."""
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise KeysError(
            column="a column of the frame", problem="mixes types or has values that cannot be keys"
        ) from None


# Sources: frames, files, databases and Spark tables.


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
    """A relation of the user's DuckDB connection."""

    relation: Any


@own_errors_of
@dataclass(frozen=True, slots=True)
class Postgres:
    """A table or view of a PostgreSQL server.

    Copied once, in one snapshot, when the table is first read. ``uri`` is an address as libpq reads it. A
    password in it is neither shown nor stored anywhere; it is better in a password file, a service file or
    PGPASSWORD.

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


@own_errors_of
@dataclass(frozen=True, slots=True)
class Database:
    """A table or view in a file of DuckDB or SQLite.

    Opened read-only and copied when the table is first read.

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
        (found,) = matching_files(glob.escape(str(self.path)))
        return found


@own_errors_of
@dataclass(frozen=True, slots=True, init=False)
class Csv:
    """CSV files in another format.

    For example ``rw.sources.Csv("firms.csv", delimiter=";", decimal=",", encoding="cp1252")``.

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


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class SparkMaster:
    """A master to start Spark on, with Spark's settings.

    Such as ``local[2]`` or ``spark://host:7077``.

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
    """Return a source from any supported input.

    A path, a glob, a list of paths, a frame, a DuckDB relation, a ``Postgres``, ``Database`` or ``Csv``.
    """
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
    """Return a frame as Arrow, with errors that quote no value."""
    try:
        table = as_arrow(given)
    except Exception:
        raise _no_frame(given, _names(given)) from None
    if not isinstance(table, pa.Table):
        raise _no_frame(given, [])
    if len(set(table.column_names)) < table.num_columns:
        raise _duplicate_error()
    return table


def _names(given: Any) -> list[Any]:
    """The columns of a frame or a mapping; empty for anything else."""
    frame = hasattr(given, "columns") and (hasattr(given, "to_arrow") or hasattr(given, "to_numpy"))
    return list(given) if isinstance(given, Mapping) else list(given.columns) if frame else []


def _no_frame(given: Any, names: list[Any]) -> RecordwiseError:
    """Return why an object is no table, naming columns that fail."""
    if not names:
        return SourceError(source=f"a {type(given).__name__}", problem="it is not a path, frame or relation")
    if len({str(name) for name in names}) < len(names):
        return _duplicate_error()
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


def _duplicate_error() -> SourceError:
    return SourceError(source="the frame", problem="two of its columns have the same name")


def _expand(pattern: str) -> list[Path]:
    """Expand a glob to the only files that the engine may read."""
    if "://" in pattern:
        # An address can contain a password, so it is not repeated.
        known = pattern.startswith(POSTGRES_SCHEMES)
        raise SourceError(
            source="a PostgreSQL address" if known else "an address",
            problem="it needs the name of a table" if known else "only files and PostgreSQL are supported",
            advice='In Python use rw.sources.Postgres(address, table="schema.table"); in a plan file add table = "schema.table".',
        )
    if pattern.lower().endswith(DATABASE_ENDINGS):
        raise SourceError(
            source="a database file",
            problem="it needs the name of a table",
            advice='In Python use rw.sources.Database(file, table="t"); in a plan file add table = "t".',
        )
    return matching_files(pattern)


SPARK_ENDINGS = (*PARQUET_ENDINGS, *CSV_ENDINGS, *COMPRESSED, *ARROW_ENDINGS, *STAT_ENDINGS, *DATABASE_ENDINGS)


def is_table_name(text: str) -> bool:
    """Return whether a text names a Spark table, not a file."""
    return not text.lower().endswith(SPARK_ENDINGS) and not any(letter in text for letter in "/\\*?[")


def names_spark_table(text: str) -> bool:
    """Return whether a text names a table or address, not a file."""
    return "://" in text or is_table_name(text)


# Public lists of codes in files: keys, and the codes of hierarchies.


def read_code_file(path: Path) -> pa.Table:
    """Return a CSV or Parquet file as a table.

    In CSV every field is text, so that '01' keeps its zero; the declared types are applied later.

    Raises:
        KeysError: The file cannot be read, or is a table of a release of ours.
    """
    import pyarrow.csv
    import pyarrow.parquet

    try:
        refuse_own_file(path)
        if path.suffix.lower() in (".parquet", ".pq"):
            # A file alone needs no dataset, which would load pandas.
            with pyarrow.parquet.ParquetFile(path) as file:
                table = file.read()
            refuse_own_table(table, f"the file {path.name}")
            return table
        with pyarrow.csv.open_csv(path) as opened:
            names = opened.schema.names
        as_text = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
        return pyarrow.csv.read_csv(path, convert_options=as_text)
    except FileNotFoundError:
        raise KeysError(column=f"the file {path.name}", problem="does not exist") from None
    except UnicodeDecodeError:
        raise KeysError(column=f"the file {path.name}", problem="is not in UTF-8") from None
    except (OSError, pa.ArrowInvalid, pa.ArrowTypeError):
        raise KeysError(column=f"the file {path.name}", problem="cannot be read as CSV or Parquet") from None


def file_digest(path: Path) -> str:
    """The SHA-256 digest of a file's bytes."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
