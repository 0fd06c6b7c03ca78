"""Engines read records and compute exact totals. They draw no noise and know no mechanism."""

from recordwise.engines.duckdb.engine import DuckDB
from recordwise.engines.engine import Engine
from recordwise.engines.spark.engine import Spark
from recordwise.plan.results import FoundTotals, TableTotals, integers
from recordwise.plan.sources import SparkMaster

__all__ = ["DuckDB", "Engine", "FoundTotals", "Spark", "SparkMaster", "TableTotals", "integers"]
