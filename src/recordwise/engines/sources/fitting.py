"""Does a plan fit its source? Names and types are read, no record; what cannot be reached from here is said to be so."""

from typing import Any

from recordwise.engines.duckdb.engine import DuckDB
from recordwise.engines.registry import engine_kind
from recordwise.engines.sources.extras import missing_extra
from recordwise.engines.sources.postgres import UNREACHABLE
from recordwise.engines.spark.sources import RemotePaths, SparkTable
from recordwise.errors import SourceError
from recordwise.plan.schema import Schema

FITS = "has the declared columns, in types they can be read from"


def source_state(given: Any, schema: Schema, *, engine: str) -> str:
    """What is known about the source of a plan, in words.

    Raises:
        SourceError: It is not there, or does not fit the schema.
    """
    missing = missing_extra(given)
    if missing is not None:
        return f"not read, because the extra '{missing.extra}' is not installed"
    opened = engine_kind(engine).open_source(given)
    if isinstance(opened, RemotePaths | SparkTable):
        return "not read, because only Spark can find it"
    try:
        DuckDB(opened, schema).close()
    except SourceError as error:
        if error.problem in UNREACHABLE:
            return f"not read: {error.problem}"
        raise
    return FITS
