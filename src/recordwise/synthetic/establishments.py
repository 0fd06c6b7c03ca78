"""Synthetic establishments as skewed as real ones."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from recordwise.errors import ParameterError, own_argument_errors
from recordwise.exact.arithmetic import FloatArray

# The calibration figures, and the county x industry cells derived from them.


_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def uniforms(seed: int, stream: int, start: int, count: int) -> FloatArray:
    """Return numbers strictly between 0 and 1 for rows of a stream."""
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
    """The existing county x industry pairs, as indexes, with cumulative weights."""

    county: IntArray
    industry: IntArray
    steps: FloatArray


@cache
def figures() -> Figures:
    """Read the three small tables of the package."""
    counties, industries, sizes = (read_rows(f"{name}.csv") for name in ("counties", "industries", "size_classes"))
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


def read_rows(name: str) -> list[list[str]]:
    with (FIGURES / name).open(newline="") as file:
        return list(csv.reader(file))[1:]


@cache
def cells() -> Cells:
    """Return the 350,000 county x industry pairs with the largest weight."""
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


@own_argument_errors
def public_keys() -> pa.Table:
    """The pairs as a public list of keys: columns ``county`` and ``naics``."""
    known, pairs = figures(), cells()
    return pa.table(
        {
            "county": pa.array(known.counties).take(pa.array(pairs.county)),
            "naics": pa.array(known.industries).take(pa.array(pairs.industry)),
        }
    )


LOWER: Final = np.array([1, 5, 10, 20, 50, 100, 250, 500, 1000], dtype=np.float64)
UPPER: Final = np.array([5, 10, 20, 50, 100, 250, 500, 1000, 1000], dtype=np.float64)
TAIL = 1.5
"""Pareto exponent of employment above 1,000."""
LARGEST_EMPLOYER = 60_000
IDLE = 0.15
"""Share of the smallest class without employees in March, which paid wages at another time of the year."""
WAGE_SPREAD = 0.55
CHAINED = 0.25
"""Share of establishments that belong to a chain; chain k has about 1/sqrt(k) of the largest chain's establishments."""
ESTABLISHMENTS_PER_CHAIN = 12
BATCH = 1_000_000
ID_BITS = 46


@own_argument_errors
def establishments(rows: int, *, seed: int = 1) -> pa.Table:
    """Return a table of ``rows`` establishments.

    Columns id, firm, county, naics, emp, payann and payqtr1 (both $1,000).

    Args:
        rows: The number of rows.
        seed: The seed of the generator; the same seed gives the same rows.

    Returns:
        The table.
    """
    return pa.Table.from_batches(list(batches(rows, seed=seed)))


@own_argument_errors
def write_establishments(path: str | Path, rows: int, *, seed: int = 1) -> None:
    """Write a table of establishments to Parquet.

    A million rows at a time.

    Args:
        path: The file to write.
        rows: The number of rows.
        seed: The seed of the generator; the same seed gives the same rows.
    """
    import pyarrow.parquet as pq

    made = batches(rows, seed=seed)
    first = next(made)
    with pq.ParquetWriter(str(path), first.schema) as writer:
        writer.write_batch(first)
        for batch in made:
            writer.write_batch(batch)


@own_argument_errors
def batches(rows: int, *, seed: int = 1) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches.

    A row depends on the seed, its number and the number of rows only.

    Args:
        rows: The number of rows.
        seed: The seed of the generator; the same seed gives the same rows.

    Returns:
        The batches, in order.
    """
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows < 2**ID_BITS:
        raise ParameterError(parameter="rows", problem="must be an integer of at least 1")
    for start in range(0, rows, BATCH):
        yield _batch(figures(), cells(), rows, start, min(BATCH, rows - start), seed)


def _batch(known: Figures, pairs: Cells, rows: int, start: int, count: int, seed: int) -> pa.RecordBatch:
    def stream(number: int) -> FloatArray:
        return uniforms(seed, number, start, count)

    pair = np.searchsorted(pairs.steps, stream(1)).clip(max=len(pairs.steps) - 1)
    industry = pairs.industry[pair]
    emp = employment(known.size_steps[industry], stream(2), stream(3))
    payann = payroll(emp, known.wages[industry], stream(4), stream(5))
    payqtr1 = np.floor(payann * (0.15 + 0.1 * (stream(6) + stream(7)))).astype(np.int64)
    number = np.arange(start, start + count, dtype=np.int64)
    return pa.record_batch(
        {
            "estab_id": scrambled_ids(number),
            "firm_id": firm(number, rows, stream(8), stream(9)),
            "county": _text(pairs.county[pair], known.counties),
            "naics": _text(industry, known.industries),
            "emp": emp.astype(np.int32),
            "payann": payann,
            "payqtr1": payqtr1,
        }
    )


def employment(steps: FloatArray, which: FloatArray, within: FloatArray) -> FloatArray:
    """Return log-uniform head counts by size class, with a Pareto tail."""
    size = np.zeros(len(which), dtype=np.int64)
    for number in range(len(LOWER) - 1):
        size += which > steps[:, number]
    low, high = LOWER[size], UPPER[size]
    emp = np.floor(low * (high / low) ** within)
    top = size == len(LOWER) - 1
    emp[top] = np.floor(np.minimum(LOWER[-1] * (1 - within[top]) ** (-1 / TAIL), LARGEST_EMPLOYER))
    # The same uniform number decides idleness inside the smallest class: its upper end is set to zero.
    smallest = np.where(size == 0, which / steps[:, 0], 0.0)
    emp[smallest > 1 - IDLE] = 0
    return emp


def payroll(emp: FloatArray, wage: FloatArray, first: FloatArray, second: FloatArray) -> IntArray:
    """Return employees x industry wage x a lognormal factor of mean 1."""
    normal = np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second)
    factor = np.exp(WAGE_SPREAD * normal - WAGE_SPREAD**2 / 2)
    paid: FloatArray = np.maximum(1, np.floor(np.maximum(emp, 0.4) * wage * factor))
    return paid.astype(np.int64)


def firm(number: IntArray, rows: int, chained: FloatArray, which: FloatArray) -> IntArray:
    """Return firms: single establishments (odd), and chains (even) for a quarter."""
    chains = max(1, int(rows * CHAINED / ESTABLISHMENTS_PER_CHAIN))
    chain = np.floor(chains * which**2).astype(np.int64)
    return np.where(chained < CHAINED, 2 * chain, 2 * number + 1)


def scrambled_ids(number: IntArray) -> IntArray:
    """Return distinct ids in scrambled order, by an odd multiplier."""
    mixed = number.astype(np.uint64) * np.uint64(0x2545F4914F6D)
    return (mixed & np.uint64(2**ID_BITS - 1)).astype(np.int64)


def _text(index: IntArray, values: tuple[str, ...]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int16)), pa.array(values))
