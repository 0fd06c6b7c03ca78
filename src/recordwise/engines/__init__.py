"""Read records and compute exact totals. Engines draw no noise and know no mechanism.

Takes a source and a plan; returns exact integers in a box that only the session opens. Imports plan and the rows below it.

In reading order:

- ``engine``: the interface between a session and its engine, its passes, and the problems it reports
- ``registry``: the engines by name, and whether a plan fits its source
- ``sources``: records stored in files, databases and frames
- ``compile``: a plan as SQL trees, the same for every engine
- ``owner``: confidential summaries for the owner of the data
- ``duckdb``: the engine for one machine
- ``spark``: the engine for a cluster
"""

from typing import TYPE_CHECKING, Any

from recordwise.engines.duckdb.engine import DuckDB
from recordwise.engines.engine import Engine
from recordwise.plan.plan import FoundTotals, TableTotals, integers
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
