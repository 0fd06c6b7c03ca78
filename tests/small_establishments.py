"""A few thousand generated establishments for the figures that need millions."""

from functools import cache

import pyarrow as pa

from experiments.establishments import Records, sorted_records
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
