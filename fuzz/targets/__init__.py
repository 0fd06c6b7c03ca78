"""What is fuzzed, one file a door, and how many of each million inputs it gets: cheap ones get most."""

from collections.abc import Callable

from fuzz.target import Target
from fuzz.targets.csv_file import CsvTable
from fuzz.targets.ledger_file import LedgerFile
#from fuzz.targets.parquet_file import ParquetTable
from fuzz.targets.plan_file import PlanText
from fuzz.targets.policy_json import PolicyJson
from fuzz.targets.sql_text import SqlText

TARGETS: dict[str, Callable[[], Target]] = {
    "policy": PolicyJson,
    "sql": SqlText,
    "plan": PlanText,
    "ledger": LedgerFile,
    "csv": CsvTable,
#    "parquet": ParquetTable,
}
SHARES = {"policy": 450_000, "sql": 300_000, "plan": 100_000, "ledger": 80_000, "csv": 50_000, "parquet": 20_000}
