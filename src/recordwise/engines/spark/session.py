"""The session in which our Spark statements run.

On a master to start, or next to an existing session. It shares executors and catalog with that one and
changes none of its settings.
"""

import logging
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from recordwise.errors import ExtraError, MissingPartError, ParameterError, SourceError
from recordwise.plan.sources import ANSI, SparkMaster

# Checks, before anything is started, that pyspark and a suitable Java are installed.


OLDEST_JAVA = 17
OLDEST_PYSPARK = 4
INSTALL = "pip install 'recordwise[spark]'"


def pyspark_sql() -> Any:
    """The module ``pyspark.sql``, imported only when needed."""
    try:
        import pyspark
        import pyspark.sql
    except ImportError:
        raise ExtraError(what="engine 'spark'", extra="spark") from None
    if int(pyspark.__version__.partition(".")[0]) < OLDEST_PYSPARK:
        raise MissingPartError(
            needed_by="engine 'spark'",
            part=f"pyspark {OLDEST_PYSPARK}",
            found=f"pyspark {pyspark.__version__}",
            advice=f"Install it: {INSTALL}",
        )
    return pyspark.sql


def check_java() -> None:
    """Refuse to start without a Java version that Spark 4 supports."""
    program = java_program()
    version = None if program is None else java_version(program)
    if version is None or version < OLDEST_JAVA:
        raise MissingPartError(
            needed_by="engine 'spark'",
            part=f"Java {OLDEST_JAVA} or newer",
            found="no working Java" if version is None else f"Java {version}",
            advice=f"Install a Java runtime (version {OLDEST_JAVA} or 21, for example) and put it on the PATH or set JAVA_HOME.",
        )


def java_program() -> str | None:
    """The Java program that Spark's own scripts would use."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java")


def java_version(program: str) -> int | None:
    """Return Java's major version.

    17 for ``openjdk version "17.0.15"``, 8 for ``java version "1.8.0_402"``.
    """
    try:
        said = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(found.group(1)) if found else None


# Silences Spark's logs on the driver while our statements run, because logged failures can quote records.


QUIET = {
    "spark.log.level": "OFF",
    "spark.executor.syncLogLevel.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""For a Spark started here: no log on the driver or the executors, and no web page that shows plans."""
OFF = "OFF"
PYTHON_LOGS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Python loggers that repeat the text of every failed statement."""


class _Silence:
    """A process-wide switch for logs.

    The first statement to start turns them off, the last to finish turns them back on.
    """

    def __init__(self) -> None:
        self._turn, self._running, self._off = threading.Lock(), 0, ExitStack()

    def begin(self, session: Any) -> None:
        from pyspark.logger import PySparkLogger

        with self._turn:
            if not self._running:
                with ExitStack() as stack:
                    stack.enter_context(_java_log_off(session.sparkContext))
                    for name in PYTHON_LOGS:
                        stack.enter_context(_python_log_off(PySparkLogger.getLogger(name)))
                    self._off = stack.pop_all()
            self._running += 1

    def end(self) -> None:
        with self._turn:
            self._running -= 1
            if not self._running:
                self._off.close()


_SILENCE = _Silence()


@contextmanager
def quietly(session: Any) -> Iterator[None]:
    """Suppress Java's and Python's logging during a statement.

    Executors follow if Spark is configured that way (spark.executor.syncLogLevel.enabled).
    """
    _SILENCE.begin(session)
    try:
        yield
    finally:
        _SILENCE.end()


_FOUND: list[Any] = [None, None]
"""The last Java that was asked, and its class of log managers."""


def _log_manager(jvm: Any) -> Any:
    """Return Java's log manager class, looked up once."""
    if _FOUND[0] is not jvm:
        _FOUND[:] = jvm, jvm.org.apache.logging.log4j.LogManager
    return _FOUND[1]


@contextmanager
def _java_log_off(context: Any) -> Iterator[None]:
    before = str(_log_manager(context._jvm).getRootLogger().getLevel())
    if before == OFF:
        yield
        return
    context.setLogLevel(OFF)
    try:
        yield
    finally:
        context.setLogLevel(before)


@contextmanager
def _python_log_off(logger: logging.Logger) -> Iterator[None]:
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


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


class StrictSession:
    """A strict SparkSession of ours."""

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


def attach(spark: Any) -> StrictSession:
    """Return our session on a master or next to another."""
    sql = pyspark_sql()
    if isinstance(spark, str):
        return _start(SparkMaster(url=spark))
    if isinstance(spark, SparkMaster):
        return _start(spark)
    if isinstance(spark, sql.SparkSession):
        return StrictSession(require_ansi(spark), dedicated=False)
    raise ParameterError(
        parameter="spark",
        problem=f"is a {type(spark).__name__}",
        advice="Give a SparkSession or a master such as 'local[2]' or 'spark://host:7077'.",
    )


def active_session() -> Any | None:
    """The session this process has made already, if there is one."""
    return pyspark_sql().SparkSession.getActiveSession()


def _start(master: SparkMaster) -> StrictSession:
    """Start a new Spark.

    One that already runs in this process is shared if it is on the same master.
    """
    running = active_session()
    if running is not None and running.sparkContext.master == master.url:
        return StrictSession(require_ansi(running), dedicated=False)
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
    return StrictSession(builder.getOrCreate(), dedicated=True)


def require_ansi(session: Any) -> Any:
    """Return a session whose expressions cannot overflow silently."""
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
    """Return a new session with every setting our statements need.

    Raise if one cannot be set.
    """
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
