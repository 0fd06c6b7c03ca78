"""What is kept of an answer: its numbers, and words that are names; sentences are not."""

import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

PASSING = re.compile(r"[ /]|^\d{4}-\d\d-\d\d|^\d+\.\d+\.\d|^[0-9a-f]{32,}$")
"""Sentences, paths, days, versions and digests."""


def leaves(value: Any) -> list[Any]:
    """All numbers and names in an answer, in its order."""
    if isinstance(value, bool | np.bool_ | Enum) or value is None:
        return [str(value)]
    if isinstance(value, str):
        return [] if PASSING.search(value) else [value]
    if isinstance(value, int | float | Fraction | np.number):
        return [plain(float(value))]
    if isinstance(value, pa.Table):
        return [each for name in value.column_names for each in [name, *leaves(value[name].to_pylist())]]
    if isinstance(value, Mapping):
        return [each for name, part in value.items() for each in [*leaves(name), *leaves(part)]]
    if isinstance(value, np.ndarray):
        return leaves(value.tolist())
    if isinstance(value, list | tuple):
        return [each for part in value for each in leaves(part)]
    if is_dataclass(value):
        return [each for field in fields(value) for each in leaves(getattr(value, field.name))]
    return []


def plain(value: float) -> float | str:
    """To nine digits; JSON has no number that is none."""
    return float(f"{value:.9g}") if math.isfinite(value) else str(value)


def table_leaves(release: Any) -> dict[str, Any]:
    """Every column of every table of a release."""
    return {
        f"{table.name}, {column}": leaves(table.data[column].to_pylist())
        for table in (*release.tables, *release.basic_tables)
        for column in table.data.column_names
    }
