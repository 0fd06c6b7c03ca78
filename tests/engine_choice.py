"""One way to open a table on either engine, for tests that must hold on both."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from recordwise.engines import DuckDB, Spark

FEW = 30
"""Spark takes a second for a plan that DuckDB runs in ten milliseconds, so it gets so many times fewer random examples."""


@dataclass(frozen=True)
class Choice:
    """An engine by name, and the SparkSession if it is Spark."""

    name: str
    spark: Any = None

    def __call__(self, source: Any, schema: Any, **how: Any) -> Any:
        if self.name == "duckdb":
            return DuckDB(source, schema, **how)
        how.pop("threads", None)
        return Spark(source, schema, spark=self.spark, **how)

    def session_options(self) -> dict[str, Any]:
        return {"engine": self.name} | ({"spark": self.spark} if self.spark else {})

    def some(self, cases: list[Any]) -> list[Any]:
        """All of them, or every fifth where one statement with all of them would take Spark's compiler minutes."""
        return cases if self.name == "duckdb" else cases[::5]

    def examples(self, wanted: int) -> int:
        return wanted if self.name == "duckdb" else max(3, wanted // FEW)


QUICK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
}
"""Most tables have ten rows: Spark interprets a statement in two thirds of the time in which it writes and compiles Java for it."""
AS_INSTALLED = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
}
"""As Spark is installed, with compiled statements whose parts are added up over two partitions."""
EVERYWHERE = "RECORDWISE_SPARK_AS_INSTALLED"
"""If this variable is set, every test has Spark as it is installed; a slow test runs them all like that."""
USUAL = AS_INSTALLED if os.environ.get(EVERYWHERE) else QUICK


JAVA_OPTIONS = [
    # Thousands of small statements: most of what the second compiler of Java would optimize runs once.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    # What is compiled needs more room than such a Java gives it, and would be swept out and compiled again.
    "-XX:ReservedCodeCacheSize=240m",
    # Verifying ten thousand classes of Spark is a fifth of its start.
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
]


@contextmanager
def as_installed(spark: Any) -> Iterator[None]:
    """``spark``, and sessions beside it that are opened meanwhile, have the settings Spark is installed with."""
    change(spark, AS_INSTALLED)
    beside = spark.newSession()
    assert all(beside.conf.get(name) == value for name, value in AS_INSTALLED.items() if ".sql." in name)
    assert spark.sparkContext.defaultParallelism == 2
    try:
        yield
    finally:
        change(spark, USUAL)


def change(spark: Any, settings: dict[str, str]) -> None:
    """New sessions get their settings from what is shared by all of them, tables their partitions from the context."""
    for shared in (spark.sparkContext._jsc.sc().conf(), spark._jsparkSession.sharedState().conf()):
        for name, value in settings.items():
            shared.set(name, value)
    for name, value in settings.items():
        if ".sql." in name:
            spark.conf.set(name, value)


def need_java() -> None:
    """Skip loudly where there is no Java; fail if nothing may be left out."""
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        reason = "SPARK WAS NOT TESTED: there is no Java on this machine"
        if os.environ.get("RECORDWISE_REQUIRE_ALL"):
            pytest.fail(f"{reason}, and RECORDWISE_REQUIRE_ALL is set")
        pytest.skip(reason)


def local_spark() -> Any:
    """A small Spark in this process."""
    need_java()
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": " ".join(JAVA_OPTIONS),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        **USUAL,
        "spark.ui.enabled": "false",
        # Nobody reads the plan of a statement, which is written out for each of them.
        "spark.sql.ui.explainMode": "simple",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    # Not by the builder of the session, whose settings every later session would keep.
    SparkContext.getOrCreate(
        SparkConf().setMaster("local[2]").setAppName("recordwise-tests").setAll(list(settings.items()))
    )
    return SparkSession.builder.getOrCreate()
