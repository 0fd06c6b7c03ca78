"""Files that hold records: what kind they are by their endings, and where they are laid out. Naming them opens nothing."""

import codecs
import csv
import fnmatch
import glob
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from recordwise.errors import ParameterError, SourceError

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
    """One table in one or many Parquet files, or in a folder of them, with columns in the names of its folders or without."""

    paths: tuple[Path, ...]
    folder: Path | None = None

    def partitions(self) -> tuple[str, ...]:
        """The columns that the names of folders hold (``state=06/year=2024``), which must be the same for every file."""
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
        """The files there are now; a folder can have gained or lost some."""
        return self.paths if self.folder is None else folder_files(self.folder)


@dataclass(frozen=True, slots=True)
class CsvFiles:
    """One table in one or many CSV files with a header line. Every field is read as text and cast by the declared schema."""

    paths: tuple[Path, ...]
    delimiter: str = ","
    decimal: str = "."
    encoding: str = UTF8

    def header(self) -> tuple[str, ...]:
        """The names in the first line, which must be the same in every file."""
        headers = {self._header(path) for path in self.paths}
        if len(headers) != 1:
            raise SourceError(source="the CSV source", problem="its files have different header lines")
        names = headers.pop()
        if not names:
            raise SourceError(source="the CSV source", problem="a file of it is empty: it has no header line")
        if len({name.casefold() for name in names}) < len(names):
            advice = NO_HEADER if look_like_values(names) else ""
            raise SourceError(source="the CSV source", problem="its header line names a column twice", advice=advice)
        return names

    def _header(self, path: Path) -> tuple[str, ...]:
        try:
            with self.opened(path) as lines:
                names = tuple(next(self._reader(lines), ()))
            "".join(names).encode()
            return names
        except (UnicodeError, csv.Error, OSError, pa.ArrowException):
            # The decoder's error carries the bytes it read ahead, records among them.
            raise SourceError(
                source="the CSV source",
                problem=f"a file does not start with a line of {self._words()} text, with fields separated by {self.delimiter!r}",
                advice="State its delimiter and encoding under [csv], with rw.Csv(...), or with init --encoding NAME.",
            ) from None

    def guessed(self) -> "CsvFiles":
        """With the delimiter that the header line is written with, as far as it shows; records are not read."""
        tried = [replace(self, delimiter=each) for each in (self.delimiter, *OTHER_DELIMITERS)]
        return max(tried, key=CsvFiles._fields)

    def _fields(self) -> int:
        try:
            return len(self._header(self.paths[0]))
        except SourceError:
            return 0

    def _words(self) -> str:
        return self.encoding.upper() if self.encoding == UTF8 else self.encoding

    def _reader(self, lines: Iterable[str]) -> Any:
        return csv.reader(lines, delimiter=self.delimiter, strict=True)

    @contextmanager
    def opened(self, path: Path) -> Iterator[io.TextIOBase]:
        """The text of a file, unpacked and decoded; a byte that is none becomes half a character, which is not text either."""
        encoding = "utf-8-sig" if self.encoding == UTF8 else self.encoding
        with (
            pa.input_stream(str(path), compression=compression(path)) as packed,
            io.TextIOWrapper(packed, encoding=encoding, errors="surrogateescape", newline="") as lines,
        ):
            yield lines

    def torn_line(self) -> str | None:
        """Where the first line is that cannot be read, by its number and without its text; None where there is none."""
        wanted = len(self.header())
        for number, path in enumerate(self.paths, 1):
            where = f" of file {number}" if len(self.paths) > 1 else ""
            problem = self._torn(path, wanted)
            if problem is not None:
                return problem.format(where)
        return None

    def _torn(self, path: Path, wanted: int) -> str | None:
        with self.opened(path) as lines:
            reader = self._reader(lines)
            try:
                for row in reader:
                    # An empty line is no record to any reader.
                    if row and len(row) != wanted:
                        return f"line {reader.line_num}{{}} has more or fewer fields than the header"
                    "".join(row).encode()
            except UnicodeError:
                return f"line {reader.line_num}{{}} holds text that is not {self._words()}"
            except (csv.Error, OSError, pa.ArrowException):
                return f"line {reader.line_num}{{}} cannot be read: a quote is not closed, or followed by more text"
        return None


@dataclass(frozen=True, slots=True)
class ArrowFiles:
    """One table in one or many files of Arrow's own (IPC or Feather); copied over in batches when the table is first read."""

    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class StatFiles:
    """One table in one or many files of SAS, Stata or SPSS, all of one kind; copied over in chunks when the table is first read."""

    paths: tuple[Path, ...]


AnyFiles = ParquetFiles | CsvFiles | ArrowFiles | StatFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvOptions:
    """How CSV files are written: what separates fields, the decimal sign of numbers, and the encoding of the text."""

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
            name = codecs.lookup(self.encoding).name
        except LookupError:
            raise ParameterError(parameter="encoding", problem="is not known", advice="Use utf-8 or cp1252.") from None
        object.__setattr__(self, "encoding", name)


VALUE = re.compile(r"\s*([+-]?[\d.,]+|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*)?\s*")
NO_HEADER = (
    "The first line must hold the names of the columns; some of its fields look like values, so they are not shown."
)


def look_like_values(names: Iterable[str]) -> bool:
    """Whether the names of columns may be the values of a record: in a CSV file without a header line they are. An empty field, a
    number or a date is hardly ever a name."""
    return any(VALUE.fullmatch(part) for name in names for part in re.split(r"[,;\t|]", name))


def compression(path: Path) -> str | None:
    """How a file is packed, by its ending."""
    return {".gz": "gzip", ".zst": "zstd"}.get(path.suffix.lower())


def ending(path: Path) -> str:
    """What a file is by its name; what it is packed with does not count."""
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


def laid_out(pattern: str) -> list[Path]:
    """The files of a path or a glob, so that the engine is allowed these and no others. A file of that very name comes first."""
    literal = not glob.has_magic(pattern) or Path(pattern).exists()
    found = [pattern] if literal else sorted(glob.glob(pattern, recursive=True))
    paths = [Path(each).resolve() for each in found]
    whole_folder = len(paths) == 1 and paths[0].is_dir()
    if not paths or not (whole_folder or all(path.is_file() for path in paths)):
        raise SourceError(source=f"'{pattern}'", problem="there is no such file")
    return paths


def folder_files(folder: Path) -> tuple[Path, ...]:
    """The Parquet files in a folder and the folders in it; names that begin with _ or . are not data."""
    below = sorted(path for path in folder.rglob("*") if not _hidden(path.relative_to(folder)))
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
    """Refuse a file that is named like a glob for another of them: an engine would read that one twice."""
    texts = [str(path) for path in paths]
    for each in filter(glob.has_magic, texts):
        if any(fnmatch.fnmatchcase(text, each) for text in texts if text != each):
            raise SourceError(
                source="the source", problem="the name of one of its files is a glob for another", advice="Rename it."
            )
    if len(set(texts)) < len(texts):
        raise SourceError(source="the source", problem="a file of it is named twice")


def _hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)
