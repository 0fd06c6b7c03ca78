"""Errors by number of cells: of the sum, of a cell, and of all cells at once."""

import math
from dataclasses import dataclass

import numpy as np

from experiments.frame import Tell
from experiments.uncertainty.constructions import EPSILON, Construction, constructions, least_cell_error
from recordwise.postprocess import easy_table, hard_table

CELLS = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000)
CHUNK = 2_000_000
"""Cells drawn in one go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One construction at one number of cells: root mean squared errors, the worst of three tables, beside the bounds."""

    construction: str
    noise: str
    cells: int
    sum_error: float
    sum_error_se: float
    sum_table: str
    """The table with the largest error of the sum."""
    sum_upper: float
    sum_lower: float
    """What no construction can stay below, given this one's promise for cells."""
    cell_error: float
    cell_error_se: float
    cell_table: str
    cell_upper: float
    cell_lower: float
    """What no construction can stay below, given this one's promise for the sum."""
    simultaneous: float
    """Root of the mean of the largest squared error of a cell, on the table where that is largest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """On one table: means of squares and their standard errors."""

    total: float
    total_se: float
    cell: float
    cell_se: float
    largest: float


def tables(cells: int) -> dict[str, np.ndarray]:
    """Empty, one filled cell, all filled."""
    return {
        "empty": np.zeros(cells),
        "hard": hard_table(cells=cells, epsilon=EPSILON),
        "easy": easy_table(cells=cells, epsilon=EPSILON),
    }


def measured(*, runs: int, seed: int, tell: Tell, sizes: tuple[int, ...] = CELLS) -> list[Line]:
    lines = []
    for cells in sizes:
        tell(f"{cells:,} cells")
        for number, each in enumerate(constructions()):
            rng = np.random.default_rng([seed, cells, number])
            lines.append(
                line_of(each, cells, {name: errors(each, table, runs, rng) for name, table in tables(cells).items()})
            )
    return lines


def errors(each: Construction, table: np.ndarray, runs: int, rng: np.random.Generator) -> Errors:
    """Cells that hold the same are alike, so their squares are averaged: the worst kind of cell, not the luckless cell."""
    kinds = [np.flatnonzero(table == value) for value in np.unique(table)]
    totals, largest, by_kind = [], [], []
    for draws in chunks(runs, len(table)):
        off = each.fit(table, draws, rng) - table
        totals.append(off.sum(axis=1) ** 2)
        squared = off**2
        largest.append(squared.max(axis=1))
        by_kind.append(np.stack([squared[:, kind].mean(axis=1) for kind in kinds], axis=1))
    total, kinds_mean = np.concatenate(totals), np.concatenate(by_kind)
    worst = int(np.argmax(kinds_mean.mean(axis=0)))
    return Errors(
        total=float(total.mean()),
        total_se=float(total.std(ddof=1) / math.sqrt(runs)),
        cell=float(kinds_mean[:, worst].mean()),
        cell_se=float(kinds_mean[:, worst].std(ddof=1) / math.sqrt(runs)),
        largest=float(np.concatenate(largest).mean()),
    )


def chunks(runs: int, cells: int) -> list[int]:
    size = max(1, min(runs, CHUNK // cells))
    return [min(size, runs - start) for start in range(0, runs, size)]


def line_of(each: Construction, cells: int, found: dict[str, Errors]) -> Line:
    in_sum = max(found, key=lambda name: found[name].total)
    in_cell = max(found, key=lambda name: found[name].cell)
    promised = each.promised(cells)
    total, cell = math.sqrt(found[in_sum].total), math.sqrt(found[in_cell].cell)
    return Line(
        construction=each.name,
        noise=each.noise,
        cells=cells,
        sum_error=total,
        sum_error_se=found[in_sum].total_se / (2 * total),
        sum_table=in_sum,
        sum_upper=promised.sum,
        sum_lower=each.least_sum_error(cells, promised.cell),
        cell_error=cell,
        cell_error_se=found[in_cell].cell_se / (2 * cell),
        cell_table=in_cell,
        cell_upper=promised.cell,
        cell_lower=least_cell_error(each, cells, promised.sum),
        simultaneous=math.sqrt(max(one.largest for one in found.values())),
    )
