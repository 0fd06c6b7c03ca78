"""Where Spark runs: on a master to start, or in an existing session. Either way our statements run in a session of their own.

That session shares executors and catalog with the given one and changes none of its settings.
"""

from contextlib import suppress
from typing import Any

from recordwise.engines.spark.needs import check_java, pyspark_sql
from recordwise.engines.spark.quiet import QUIET, quietly
from recordwise.errors import ParameterError, SourceError
from recordwise.plan.sources import ANSI, SparkMaster

FORCED = {
    # When this is off, integer overflow wraps around silently.
    ANSI: "true",
    # Names and text are literal: emp is not EMP, ${x} is not a variable, \ escapes as the emitter writes it.
    "spark.sql.caseSensitive": "true",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.session.timeZone": "UTC",
    # What the names of folders hold is text, like the fields of a CSV file.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # What a file states about its values (least and largest ones, Bloom filters) decides nothing: it can state anything.
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.aggregatePushdown": "false",
    "spark.sql.orc.filterPushdown": "false",
    "spark.sql.orc.aggregatePushdown": "false",
    # Nor are types of Parquet guessed or days moved to another calendar, and no file is left out.
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # A cell is a row of Arrow, whatever the session it is lent by prefers.
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
}
PROBE = "SELECT 2147483647 + 1"
"""Must fail; where ANSI mode is off, it wraps around."""


class Attached:
    """A strict SparkSession of our own, stopped at the end if its Spark was started here."""

    def __init__(self, given: Any, *, dedicated: bool) -> None:
        self.given = given
        self._dedicated = dedicated
        try:
            self.session = strict(given)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._dedicated:
            self.given.stop()


def attach(spark: Any) -> Attached:
    """A session of our own on a master, or beside an existing session."""
    sql = pyspark_sql()
    if isinstance(spark, str):
        return _started(SparkMaster(url=spark))
    if isinstance(spark, SparkMaster):
        return _started(spark)
    if isinstance(spark, sql.SparkSession):
        return Attached(checked(spark), dedicated=False)
    raise ParameterError(
        parameter="spark",
        problem=f"is a {type(spark).__name__}",
        advice="Give a SparkSession or a master such as 'local[2]' or 'spark://host:7077'.",
    )


def active_session() -> Any | None:
    """The session this process has made already, if there is one."""
    return pyspark_sql().SparkSession.getActiveSession()


def _started(master: SparkMaster) -> Attached:
    """A new Spark; one that already runs in this process is shared if it is on the same master."""
    running = active_session()
    if running is not None and running.sparkContext.master == master.url:
        return Attached(checked(running), dedicated=False)
    if running is not None:
        raise ParameterError(
            parameter="spark",
            problem=f"asks for {master.url}, but this process already runs Spark on another master",
            advice="Stop that session, or pass it as spark=.",
        )
    check_java()
    builder = pyspark_sql().SparkSession.builder.master(master.url).appName("recordwise")
    for name, value in {**QUIET, **FORCED, **master.options}.items():
        builder = builder.config(name, value)
    return Attached(builder.getOrCreate(), dedicated=True)


def checked(session: Any) -> Any:
    """A session whose own expressions cannot overflow silently, because a DataFrame made in it carries them along."""
    if not hasattr(session, "_jsparkSession"):
        raise SourceError(
            source="the Spark session",
            problem="it is a Spark Connect session, whose plans cannot be checked here",
            advice="Run recordwise where the driver is, with a classic session.",
        )
    if session.conf.get(ANSI) != "true":
        raise _no_ansi("ANSI mode is off, so integer overflow wraps around silently")
    return session


def strict(given: Any) -> Any:
    """A new session beside the given one, with every setting our statements rely on; an error if one cannot be set."""
    session = given.newSession()
    for name, value in FORCED.items():
        with suppress(Exception):
            session.conf.set(name, value)
    if any(session.conf.get(name) != value for name, value in FORCED.items()) or _wraps(session):
        raise _no_ansi("ANSI mode, or another setting that exact sums need, cannot be switched on")
    return session


def _wraps(session: Any) -> bool:
    with quietly(session), suppress(Exception):
        session.sql(PROBE).collect()
        return True
    return False


def _no_ansi(problem: str) -> SourceError:
    return SourceError(source="the Spark session", problem=problem, advice=f"Set {ANSI} to true.")
