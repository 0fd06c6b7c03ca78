"""The records Spark can read: a DataFrame, a table, files its executors can read, or a frame in this process."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from recordwise.engines.problems import check_headed
from recordwise.engines.sources.parquet_files import check_parquet, named_by_folders
from recordwise.engines.spark.remote import check_remote
from recordwise.errors import SourceError
from recordwise.plan.files import UTF8, ArrowFiles, CsvFiles, ParquetFiles, StatFiles
from recordwise.plan.schema import Schema
from recordwise.plan.sources import Database, Frame, Relation, is_table_name, open_source

WHOLE = ("tinyint", "smallint", "int", "bigint")
DATES = {"date": pa.date32(), "timestamp_ntz": pa.timestamp("us")}
CONDITIONAL = {"string": pa.string(), "boolean": pa.bool_(), **dict.fromkeys(WHOLE, pa.int64()), **DATES}


@dataclass(frozen=True, slots=True, eq=False)
class SparkFrame:
    """A Spark DataFrame; it must give the same rows each time it is read."""

    frame: Any

    def arrow_schema(self) -> pa.Schema:
        """Column names and the types that can be conditional; any other type is reported as binary."""
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
    """A source from a DataFrame, a table name, one or more paths, or a frame in memory. Reads nothing."""
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
    """The DataFrame of a source; names are looked up in the given session, files are opened in ours."""
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
            check_headed(schema.names(), source.header())
            return _csv(session, source)
        case Frame(table):
            return in_spark(session, plain_types(table))
        case _:
            raise TypeError(type(source).__name__)


def _address(path: Path) -> str:
    """A file for Spark, letter by letter: what stands for other letters in an address is none to it, and a glob must not be one."""
    return "file://" + re.sub(r"[][{}*?\\]", lambda found: f"\\{found.group()}", path.as_posix())


def _csv(session: Any, source: CsvFiles) -> Any:
    """Read CSV without guessing: all fields are text under the header's names, empty is NULL, and a malformed line fails."""
    quoted = ", ".join(f"`{name.replace('`', '``')}` STRING" for name in source.header())
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
    """A table as a DataFrame. Spark stops where a piece of it has no rows and loses those after it, so no such piece is sent."""
    pieces = [piece for piece in table.to_batches() if piece.num_rows]
    return session.createDataFrame(pa.Table.from_batches(pieces, table.schema))


def plain_types(table: pa.Table) -> pa.Table:
    """In types that Spark has: no dictionaries, no unsigned integers. A time without a zone is its day: Spark would give it one."""
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
