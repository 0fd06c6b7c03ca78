"""A few thousand generated establishments for the figures that need millions."""

from functools import cache
from typing import Any

import pyarrow as pa

import recordwise as rw
from build import employers
from experiments.establishments import MEASURES, Records, sorted_records
from experiments.establishments_tables import Tables, tables
from recordwise.synthetic import establishments

ROWS = 60_000
LEAST = 20
"""Establishments a cell must have here; with 100 hardly a cell would."""


@cache
def small_table() -> pa.Table:
    return establishments(ROWS, seed=3)


@cache
def small_records() -> Records:
    return sorted_records(small_table())


@cache
def small_tables() -> Tables:
    return tables(small_records(), least=LEAST)


def small_session(**more: Any) -> rw.Session:
    roles: dict[str, Any] = {"unit": "estab_id", "firm": "firm_id", "measures": dict.fromkeys(MEASURES, 1)}
    return employers(small_table(), "county", "naics", **roles, **more)
