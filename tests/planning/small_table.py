"""A skewed table small enough to work out everything by hand beside planning."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import recordwise as rw
from build import employers

COUNTIES = ["01", "02", "03", "04"]
CODES = ["111", "112", "221"]
ROWS = 3000


def rows() -> dict[str, Any]:
    chance = np.random.default_rng(11)
    emp = np.minimum(np.floor(chance.pareto(1.1, ROWS) * 4 + 1), 20_000).astype(np.int64)
    return {
        "id": np.arange(ROWS),
        "firm": chance.integers(0, ROWS // 4, ROWS),
        "county": chance.choice(COUNTIES[:3], ROWS),
        "naics": chance.choice(CODES, ROWS),
        "emp": emp,
        "pay": emp * 37 + chance.integers(0, 30, ROWS),
    }


def opened(**more: Any) -> rw.Session:
    return employers(pa.table(rows()), **({"measures": {"emp": 1, "pay": "0.5"}, "firm": "firm"} | more))


def shape() -> Any:
    return rw.query().group_by("county", "naics", keys=rw.Keys.product(county=COUNTIES, naics=CODES))


def cell_sums(table: dict[str, Any], measure: str) -> dict[tuple[str, str], list[float]]:
    """The contributions to each cell, largest first."""
    found: dict[tuple[str, str], list[float]] = {(county, code): [] for county in COUNTIES for code in CODES}
    for county, code, value in zip(table["county"], table["naics"], table[measure]):
        found[county, code].append(float(value))
    return {cell: sorted(values, reverse=True) for cell, values in found.items()}


def write(path: Path) -> Path:
    pq.write_table(pa.table(rows()), path)
    return path
