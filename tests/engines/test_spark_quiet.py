"""Logs belong to the process: while any statement of ours runs they are off, and afterwards they are as their owner had them."""

from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from recordwise.engines.spark.session import PYTHON_LOGS, quietly


class Context:
    """The part of a SparkContext that has a log level."""

    def __init__(self, level: str) -> None:
        self.level = level
        root = SimpleNamespace(getLevel=lambda: self.level)
        manager = SimpleNamespace(getRootLogger=lambda: root)
        log4j = SimpleNamespace(LogManager=manager)
        logging = SimpleNamespace(log4j=log4j)
        self._jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(logging=logging)))

    def setLogLevel(self, level: str) -> None:  # noqa: N802
        self.level = level


@pytest.mark.parametrize("level", ["WARN", "OFF"])
def test_the_first_of_two_statements_to_end_leaves_the_logs_off(level: str) -> None:
    """Two threads with a session each: the second began while the logs were off already."""
    logger = pytest.importorskip("pyspark.logger").PySparkLogger
    loggers = [logger.getLogger(name) for name in PYTHON_LOGS]
    session = SimpleNamespace(sparkContext=Context(level))
    first, second = ExitStack(), ExitStack()
    first.enter_context(quietly(session))
    second.enter_context(quietly(session))
    first.close()
    assert session.sparkContext.level == "OFF"
    assert all(each.disabled for each in loggers)
    second.close()
    assert session.sparkContext.level == level
    assert not any(each.disabled for each in loggers)


def test_a_failure_to_switch_off_is_no_statement_under_way() -> None:
    pytest.importorskip("pyspark.logger")
    broken, whole = SimpleNamespace(sparkContext=None), SimpleNamespace(sparkContext=Context("WARN"))
    with pytest.raises(AttributeError), quietly(broken):
        pass
    with quietly(whole):
        assert whole.sparkContext.level == "OFF"
    assert whole.sparkContext.level == "WARN"
