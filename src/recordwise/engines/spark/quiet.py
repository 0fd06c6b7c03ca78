"""Silences Spark's logs on the driver while our statements run, because logged failures can quote records."""

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

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
    """Logs belong to the process: the first statement to start turns them off, the last to finish turns them back on."""

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
    """Suppress logging by Java and by Python until the statement is over, then restore it.

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
    """The class, found once: for each part of its name Java looks through every archive of Spark."""
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
