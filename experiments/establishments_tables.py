"""The published tables of figures 3 to 5: county x industry at every NAICS level, cells with at least 100 establishments."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from experiments.establishments import MEASURES, Records

DIGITS = (2, 3, 4, 5, 6)
LEAST = 100
"""Establishments a cell must have to be among the queries, as in the paper."""
ATTRIBUTES = ("estab", *MEASURES)
"""Those of Table 6."""
OUTSIDE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """One table: the queries of one NAICS level."""

    digits: int
    starts: np.ndarray
    """Where each cell of the level, asked or not, begins among the sorted records."""
    asked: np.ndarray
    """Which of those cells are queries."""
    query: np.ndarray
    """For each record the number of its query, or OUTSIDE."""
    totals: dict[str, np.ndarray]
    """The exact answer of every query, by attribute."""

    @property
    def queries(self) -> int:
        return len(self.totals["estab"])

    def clamped_totals(self, values: np.ndarray, bound: int) -> np.ndarray:
        """What top-coding leaves of the sums: every value cut at a bound first."""
        return np.add.reduceat(np.minimum(values, bound), self.starts)[self.asked]


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """The five tables, and the records in the order of their firms."""

    records: Records
    levels: tuple[Level, ...]
    by_firm: np.ndarray
    """Places of the records, firm after firm, and within a firm cell after cell."""

    @property
    def queries(self) -> int:
        return sum(level.queries for level in self.levels)


def tables(records: Records, *, least: int = LEAST) -> Tables:
    """The exact answers of the whole workload."""
    by_firm = np.argsort(records.firm, kind="stable")
    return Tables(records, tuple(_levels(records, least)), by_firm)


def _levels(records: Records, least: int) -> Iterator[Level]:
    for digits in DIGITS:
        code = records.county.astype(np.int64) * 1_000_000 + records.naics // 10 ** (6 - digits)
        first = np.flatnonzero(np.diff(code, prepend=-1))
        sizes = np.diff(first, append=len(records))
        asked = sizes >= least
        cell = np.repeat(np.arange(len(first), dtype=np.int32), sizes)
        number = np.where(asked, np.cumsum(asked) - 1, OUTSIDE).astype(np.int32)
        totals = {"estab": sizes[asked]}
        totals |= {name: np.add.reduceat(records.measures[name], first)[asked] for name in MEASURES}
        yield Level(digits=digits, starts=first, asked=asked, query=number[cell], totals=totals)


def pair_begins(firm: np.ndarray, cell: np.ndarray) -> np.ndarray:
    """Whether a record, in the order of firms and cells, is the first of its firm in its cell."""
    first = np.ones(len(firm), dtype=bool)
    first[1:] = (firm[1:] != firm[:-1]) | (cell[1:] != cell[:-1])
    return first
