"""Engines read records and compute exact totals. They draw no noise and know no mechanism."""

from typing import TYPE_CHECKING, Any

from recordwise.engines.duckdb.engine import DuckDB
from recordwise.engines.engine import Engine
from recordwise.plan.results import FoundTotals, TableTotals, integers
from recordwise.plan.sources import SparkMaster

if TYPE_CHECKING:
    from recordwise.engines.spark.engine import Spark

__all__ = ["DuckDB", "Engine", "FoundTotals", "Spark", "SparkMaster", "TableTotals", "integers"]


def __getattr__(name: str) -> Any:
    """Spark's engine, imported when it is first used."""
    if name != "Spark":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from recordwise.engines.spark.engine import Spark

    return Spark
