"""Spark writes failures to its logs, and those can quote records. While a statement of ours runs, the driver writes nothing."""

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
"""For a Spark we start: no log on the driver, none on the executors, no page that shows plans."""
OFF = "OFF"
PYTHON_LOGS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers in Python that repeat the text of every failure of a statement."""


class _Silence:
    """Logs belong to the process: the first statement to begin switches them off, the last to end lets them speak again."""

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
    """Nothing is logged here, by Java or by Python, until the statement is over; then all is as its owner wants it.

    Executors follow where Spark was told to (spark.executor.syncLogLevel.enabled).
    """
    _SILENCE.begin(session)
    try:
        yield
    finally:
        _SILENCE.end()


@contextmanager
def _java_log_off(context: Any) -> Iterator[None]:
    before = str(context._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel())
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
