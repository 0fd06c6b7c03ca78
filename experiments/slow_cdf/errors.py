"""The errors of real releases: unbiased, and as large as the formulas say?"""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

import recordwise as rw
from experiments.frame import Tell
from experiments.slow_mechanisms import MEASURE, Entry, entries

CLASSES = (0, 10, 100, 1000, 10_000, math.inf)
"""Cells by exact total: 0 to 9, 10 to 99, and so on."""


def drawn() -> list[Entry]:
    """Each mechanism once: two policies of one noise are drawn together."""
    return list({id(each.mechanism): each for each in reversed(entries())}.values())[::-1]


def errors(
    session: rw.Session, grouped: Any, cells: pa.Table, *, runs: int, seed: int, tell: Tell
) -> dict[str, np.ndarray]:
    """By mechanism: estimate minus exact total, a row for each run."""
    asked = grouped
    for each in drawn():
        asked = asked.sum(MEASURE, each.mechanism, alias=each.key)
    found: dict[str, list[np.ndarray]] = {each.key: [] for each in drawn()}
    for run in range(runs):
        tell(f"release {run + 1} of {runs}")
        table = session.run(asked, rng=rw.noise.Seeded(seed + run)).tables[0].data
        exact = exact_in_order(table, cells)
        for key, rows in found.items():
            rows.append(table.column(key).to_numpy() - exact)
    return {key: np.array(rows) for key, rows in found.items()}


def exact_in_order(table: pa.Table, cells: pa.Table) -> np.ndarray:
    """The exact totals in the order of the released cells."""
    known = dict(
        zip(zip(cells["county"].to_pylist(), cells["naics3"].to_pylist()), cells["emp_sum"].to_pylist(), strict=True)
    )
    placed = zip(table["county"].to_pylist(), table[table.column_names[1]].to_pylist(), strict=True)
    return np.array([known[key] for key in placed], dtype=np.float64)


def error_rows(found: dict[str, np.ndarray], exact: np.ndarray) -> list[dict[str, object]]:
    """By mechanism and size of cell: root mean squared error beside the formula, median relative error."""
    rows: list[dict[str, object]] = []
    for each in drawn():
        spread = np.asarray(each.mechanism.variance(exact), dtype=np.float64)
        for low, high in pairwise(CLASSES):
            inside = (exact >= low) & (exact < high)
            if inside.any():
                rows.append(_row(each, low, found[each.key][:, inside], exact[inside], spread[inside]))
    return rows


def _row(each: Entry, low: float, off: np.ndarray, exact: np.ndarray, spread: np.ndarray) -> dict[str, object]:
    relative = np.abs(off) / np.maximum(exact, 1)
    return {
        "mechanism": each.label,
        "cells_from_total": int(low),
        "cells": int(off.shape[1]),
        "root_mean_squared_error": float(np.sqrt(np.mean(off**2))),
        "by_formula": float(np.sqrt(np.mean(spread))),
        "median_relative_error": float(np.median(relative)),
    }


def standardized_bias(off: np.ndarray, spread: np.ndarray) -> float:
    """The mean error in standard errors, cells weighted alike: standard normal for an unbiased mechanism with very many cells."""
    return float(np.sum(off / np.sqrt(spread)) / math.sqrt(off.size))
