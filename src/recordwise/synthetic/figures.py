"""The calibration figures, and the county x industry cells derived from them."""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from recordwise.exact.arithmetic import FloatArray

_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def uniforms(seed: int, stream: int, start: int, count: int) -> FloatArray:
    """Numbers strictly between 0 and 1 for rows ``start`` to ``start + count`` of one stream."""
    origin = (seed * 1_000_003 + stream * 7_919 + 1) * 0xD1342543DE82EF95 % 2**64
    with np.errstate(over="ignore"):
        state = (np.arange(start, start + count, dtype=np.uint64) + np.uint64(origin)) * _ODD
        state = (state ^ (state >> np.uint64(30))) * _MIX[0]
        state = (state ^ (state >> np.uint64(27))) * _MIX[1]
        state ^= state >> np.uint64(31)
    return ((state >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


FIGURES = Path(__file__).parent / "figures"
CELLS = 350_000
SMALLEST_COUNTY = 3
"""The number of industries that even the smallest county has."""
LOCAL_SPREAD = 1.0
"""Standard deviation of the log of (cell / what county and industry alone predict), as in the 2017 county tables."""
CELL_SEED = 2017

IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class Figures:
    """Shares and means; see ``derive``."""

    counties: tuple[str, ...]
    county_shares: FloatArray
    industries: tuple[str, ...]
    industry_shares: FloatArray
    wages: FloatArray
    """Annual payroll per employee in $1,000, by industry."""
    size_steps: FloatArray
    """By industry: the cumulative shares of the nine employment-size classes."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The county x industry pairs that exist, as indexes, and their cumulative weights."""

    county: IntArray
    industry: IntArray
    steps: FloatArray


@cache
def figures() -> Figures:
    """Read the three small tables of the package."""
    counties, industries, sizes = (_rows(f"{name}.csv") for name in ("counties", "industries", "size_classes"))
    by_subsector = {row[0]: np.cumsum(np.array(row[1:], dtype=np.float64)) for row in sizes}
    overall = np.mean(list(by_subsector.values()), axis=0)
    steps = np.array([by_subsector.get(row[0][:3], overall) for row in industries])
    return Figures(
        counties=tuple(row[0] for row in counties),
        county_shares=np.array([row[1] for row in counties], dtype=np.float64),
        industries=tuple(row[0] for row in industries),
        industry_shares=np.array([row[1] for row in industries], dtype=np.float64),
        wages=np.array([row[2] for row in industries], dtype=np.float64),
        size_steps=steps / steps[:, -1:],
    )


def _rows(name: str) -> list[list[str]]:
    with (FIGURES / name).open(newline="") as file:
        return list(csv.reader(file))[1:]


@cache
def cells() -> Cells:
    """The 350,000 pairs with the largest weight: county share x industry share x local factor, the same for all seeds."""
    from scipy.special import ndtri

    known = figures()
    counties, industries = len(known.counties), len(known.industries)
    local = ndtri(uniforms(CELL_SEED, 0, 0, counties * industries)).reshape(counties, industries)
    score = np.log(known.county_shares)[:, None] + np.log(known.industry_shares)[None, :] + LOCAL_SPREAD * local
    ranked = score.copy()
    for row, best in enumerate(np.argpartition(score, -SMALLEST_COUNTY, axis=1)[:, -SMALLEST_COUNTY:]):
        ranked[row, best] = np.inf
    chosen = np.sort(np.argpartition(ranked.ravel(), -CELLS)[-CELLS:])
    weights = np.exp(score.ravel()[chosen])
    return Cells(chosen // industries, chosen % industries, np.cumsum(weights) / weights.sum())


def public_keys() -> pa.Table:
    """The pairs as a public list of keys: columns ``county`` and ``naics``."""
    known, pairs = figures(), cells()
    return pa.table(
        {
            "county": pa.array(known.counties).take(pa.array(pairs.county)),
            "naics": pa.array(known.industries).take(pa.array(pairs.industry)),
        }
    )
