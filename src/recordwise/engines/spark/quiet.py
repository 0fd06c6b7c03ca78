"""Spark writes failures to its logs, and those can quote records. While a statement of ours runs, the driver writes nothing."""

import logging
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


@contextmanager
def quietly(session: Any) -> Iterator[None]:
    """Nothing is logged here, by Java or by Python, until the statement is over; then all is as its owner wants it.

    Executors follow where Spark was told to (spark.executor.syncLogLevel.enabled).
    """
    from pyspark.logger import PySparkLogger

    with ExitStack() as stack:
        stack.enter_context(_java_log_off(session.sparkContext))
        for name in PYTHON_LOGS:
            stack.enter_context(_python_log_off(PySparkLogger.getLogger(name)))
        yield


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
