"""What is fuzzed, one file a door, and how many of each million inputs it gets: cheap ones get most."""

from collections.abc import Callable

from fuzz.target import Target
from fuzz.targets.csv_file import CsvTable
from fuzz.targets.ledger_file import LedgerFile
from fuzz.targets.parquet_file import ParquetTable
from fuzz.targets.plan_file import PlanText
from fuzz.targets.planted import Planted
from fuzz.targets.policy_json import PolicyJson
from fuzz.targets.sql_text import SqlText

TARGETS: dict[str, Callable[[], Target]] = {
    "policy": PolicyJson,
    "sql": SqlText,
    "plan": PlanText,
    "ledger": LedgerFile,
    "csv": CsvTable,
    "parquet": ParquetTable,
    "planted": Planted,
}
SHARES = {"policy": 900_000, "sql": 80_000, "plan": 8_000, "ledger": 8_000, "csv": 2_000, "parquet": 2_000}
FRESH = {"policy": 0.04, "sql": 0.06, "plan": 0.1, "ledger": 0.3, "csv": 0.2, "parquet": 0.1, "planted": 1.0}
"""The share of inputs that are not changes of earlier ones but made anew."""
