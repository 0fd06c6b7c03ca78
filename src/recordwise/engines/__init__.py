"""Engines see records and compute exact totals. They draw no noise and know no mechanism."""

from recordwise.engines.duckdb_engine import DuckDB
from recordwise.engines.engine import Engine
from recordwise.engines.results import FoundTotals, TableTotals
from recordwise.engines.spark import Spark, SparkMaster
from recordwise.engines.wide import integers

__all__ = ["DuckDB", "Engine", "FoundTotals", "Spark", "SparkMaster", "TableTotals", "integers"]
