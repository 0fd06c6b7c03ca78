"""The records that Spark can read.

A DataFrame, a table, files its executors can read, or a frame in this process.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from recordwise.engines.engine import check_header, check_present
from recordwise.engines.sources.files import (
    ADVICE,
    beside_folders,
    check_parquet,
    named_by_folders,
    no_zone,
    unique_names,
)
from recordwise.errors import SourceError
from recordwise.plan.schema import Schema
from recordwise.plan.sources import (
    UTF8,
    ArrowFiles,
    CsvFiles,
    Database,
    Frame,
    ParquetFiles,
    Relation,
    StatFiles,
    is_table_name,
    open_source,
)

# Parquet files that only Spark can find: names and types of every file, from the footers, and no record. Spark takes
# the types of one file; a column that another file lacks would be missing values there without a word.


def check_remote(session: Any, frame: Any, schema: Schema) -> None:
    """Refuse files that lack or differ in a declared column."""
    files, first = sorted(frame.inputFiles()), dict[str, str]()
    for number, address in enumerate(files, 1):
        where = f"file {number} of {len(files)}" if len(files) > 1 else "the source"
        found = _storage_by_column(session, address)
        names = schema.names()
        folders = {part.partition("=")[0] for part in unquote(urlsplit(address).path).split("/")[:-1] if "=" in part}
        named = tuple(name for name in names if name in folders)
        beside_folders(named, list(found), where)
        check_present([name for name in names if name not in named], list(found), source=where)
        unique_names(names, list(found), where)
        for name in found.keys() & set(names):
            if found[name].startswith("int96"):
                raise no_zone(name, where)
            if found[name] != first.setdefault(name, found[name]):
                raise SourceError(
                    source=f"column '{name}'",
                    problem=f"{where} stores it as {found[name]}, and the first as {first[name]}",
                    advice=ADVICE,
                )


def _storage_by_column(session: Any, address: str) -> dict[str, str]:
    """How a file stores its columns, as Parquet writes it."""
    java = session._jvm
    path = java.org.apache.hadoop.fs.Path(java.java.net.URI(address))
    settings = session._jsparkSession.sessionState().newHadoopConf()
    file = java.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(path, settings)
    reader = java.org.apache.parquet.hadoop.ParquetFileReader.open(file)
    try:
        fields = list(reader.getFooter().getFileMetaData().getSchema().getFields())
    finally:
        reader.close()
    found = {field.getName(): _plain(str(field), field.getName()) for field in fields}
    if len(found) < len(fields):
        raise SourceError(source="the source", problem="two columns of one of its files have the same name")
    return found


def _plain(written: str, name: str) -> str:
    """Return a field's type without name, number and nullability."""
    bare = re.sub(r"^(required|optional) ", "", written)
    return re.sub(r" = \d+$", "", bare.replace(f" {name}", "", 1))


WHOLE = ("tinyint", "smallint", "int", "bigint")
DATES = {"date": pa.date32(), "timestamp_ntz": pa.timestamp("us")}
CONDITIONAL = {"string": pa.string(), "boolean": pa.bool_(), **dict.fromkeys(WHOLE, pa.int64()), **DATES}


@dataclass(frozen=True, slots=True, eq=False)
class SparkFrame:
    """A Spark DataFrame with the same rows each time it is read."""

    frame: Any

    def arrow_schema(self) -> pa.Schema:
        """Return column names and types, binary unless they can be conditional."""
        fields = {each.name: each.dataType.simpleString() for each in self.frame.schema.fields}
        return pa.schema({name: CONDITIONAL.get(kind, pa.binary()) for name, kind in fields.items()})


@dataclass(frozen=True, slots=True)
class SparkTable:
    """A table or view by its name in Spark's catalog."""

    name: str


@dataclass(frozen=True, slots=True)
class RemotePaths:
    """Parquet that only Spark can find: ``hdfs://``, ``s3a://``."""

    paths: tuple[str, ...]


ReadHere = ParquetFiles | CsvFiles | ArrowFiles | StatFiles | Database | Relation | Frame
SparkSource = SparkFrame | SparkTable | RemotePaths | ReadHere


def open_spark_source(given: Any) -> SparkSource:
    """Return a source from any input, without reading it.

    A DataFrame, a table name, one or more paths, or a frame in memory.
    """
    if isinstance(given, SparkSource):
        return given
    if is_spark_frame(given):
        return SparkFrame(given)
    if isinstance(given, list | tuple) and len(given) == 1:
        return open_spark_source(given[0])
    texts = _texts(given)
    if texts and all(_remote(text) for text in texts):
        return RemotePaths(texts)
    if isinstance(given, str) and is_table_name(given):
        return SparkTable(given)
    found = open_source(given)
    if isinstance(found, ReadHere):
        return found
    raise SourceError(source=f"a {type(given).__name__}", problem="Spark cannot read it", advice="Use engine='duckdb'.")


def is_spark_frame(given: Any) -> bool:
    """Decided by the module name, so that pyspark need not be installed."""
    return type(given).__module__.startswith("pyspark.") and type(given).__name__ == "DataFrame"


def _texts(given: Any) -> tuple[str, ...]:
    listed = given if isinstance(given, list | tuple) else [given]
    return tuple(str(each) for each in listed) if all(isinstance(each, str | Path) for each in listed) else ()


def _remote(text: str) -> bool:
    return "://" in text


ENCODINGS = {UTF8: "UTF-8", "iso8859-1": "ISO-8859-1", "ascii": "US-ASCII"}
"""Those of the encodings that Python knows that Spark reads too."""


def frame_of(session: Any, given: Any, source: SparkSource, schema: Schema) -> Any:
    """Return the DataFrame of a source.

    Names are looked up in the user's session, files are opened in ours.
    """
    match source:
        case SparkFrame(frame):
            return frame
        case SparkTable(name):
            return given.table(name)
        case RemotePaths(paths):
            found = session.read.parquet(*paths)
            check_remote(session, found, schema)
            return found
        case ParquetFiles(paths, folder):
            check_parquet(source, schema)
            named = named_by_folders(source, schema)
            reader = session.read.option("basePath", f"file://{folder}") if named else session.read
            found = reader.parquet(*map(_address, paths))
            # Where every folder says that it is missing, Spark has no type for it.
            return found.withColumns({name: found[name].cast("string") for name in named}) if named else found
        case CsvFiles():
            header = source.header(schema.names())
            check_header(schema.names(), header)
            return _csv(session, source, header)
        case Frame(table):
            return in_spark(session, plain_types(table))
        case _:
            raise TypeError(type(source).__name__)


def _address(path: Path) -> str:
    """Return a file's address for Spark, without escapes or globs."""
    return "file://" + re.sub(r"[][{}*?\\]", lambda found: f"\\{found.group()}", path.as_posix())


def _csv(session: Any, source: CsvFiles, header: Sequence[str]) -> Any:
    """Read CSV without guessing.

    All fields are text under the header's names, empty is NULL, and a malformed line fails.
    """
    quoted = ", ".join(f"`{name.replace('`', '``')}` STRING" for name in header)
    return session.read.csv(
        [_address(path) for path in source.paths],
        schema=quoted,
        header=True,
        sep=source.delimiter,
        quote='"',
        escape='"',
        multiLine=True,
        nullValue="",
        emptyValue="",
        mode="FAILFAST",
        encoding=ENCODINGS[source.encoding],
        ignoreLeadingWhiteSpace=False,
        ignoreTrailingWhiteSpace=False,
    )


def in_spark(session: Any, table: pa.Table) -> Any:
    """Return a table as a DataFrame.

    Spark stops at a batch without rows and loses those after it, so no such batch is sent.
    """
    pieces = [piece for piece in table.to_batches() if piece.num_rows]
    return session.createDataFrame(pa.Table.from_batches(pieces, table.schema))


def plain_types(table: pa.Table) -> pa.Table:
    """Convert a table to types that Spark has.

    No dictionaries, no unsigned integers. A time without a zone becomes its day: Spark would give it a zone.
    """
    for number, field in enumerate(table.schema):
        if pa.types.is_date64(field.type) or (pa.types.is_timestamp(field.type) and field.type.tz is None):
            days = table.column(number).cast(pa.date32(), safe=False)
            table = table.set_column(number, field.name, days)
    return table.cast(pa.schema([field.with_type(_plain_type(field.type)) for field in table.schema]))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    signed = {"uint8": pa.int16(), "uint16": pa.int32(), "uint32": pa.int64(), "uint64": pa.decimal128(20, 0)}
    return signed.get(str(kind), kind)
