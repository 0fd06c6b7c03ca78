"""Ten made-up states in two years: records, code lists with names, and public sizes.

Counties are as unequal as real ones, industries have the wages and sizes of the calibration figures, and every name of a
place is made up.
An establishment stays from year to year, closes, or is replaced by a new one elsewhere; those that stay grow or shrink.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from recordwise.exact.arithmetic import FloatArray
from recordwise.synthetic.establishments import (
    CELL_SEED,
    LOCAL_SPREAD,
    IntArray,
    employment,
    figures,
    firm,
    payroll,
    read_rows,
    scrambled_ids,
    uniforms,
)

# fmt: off
STATES = (
    "Ardenia", "Belmora", "Corvana", "Doveland", "Estoria", "Falmark", "Grenvale", "Hartmoor",
    "Ivoria", "Juniper",
)
FIRST = (
    "Alder", "Amber", "Birch", "Cedar", "Copper", "Eagle", "Fern", "Granite",
    "Heron", "Hollow", "Iron", "Maple", "Otter", "Raven", "Silver", "Willow",
)
SECOND = (
    "Bay", "Bluff", "Bridge", "Creek", "Falls", "Field", "Ford", "Glen",
    "Grove", "Harbor", "Hill", "Lake", "Mill", "Ridge", "Valley",
)
# fmt: on
COUNTIES = 240
CLOSED, GROWTH, SPREAD, RAISE = 0.07, 0.03, 0.12, 1.035
"""The share of establishments that close in a year; by how much sectors and establishments differ in growth; and wages rise."""
GOLDEN = (5**0.5 - 1) / 2
SIZES = 2_000
"""Points at which the mean size of an establishment is worked out."""


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """The counties and industries, with what is expected in each cell."""

    places: pa.Table
    """A row for each county: ``state``, ``state_name``, ``county``, ``county_name``."""
    industries: pa.Table
    """A row for each industry: ``sector``, ``sector_name``, ``industry``, ``industry_name``."""
    weights: FloatArray
    """Of the cells, counties by industries; they add up to 1."""
    wages: FloatArray
    size_steps: FloatArray
    growth: FloatArray
    """By industry: the growth of those that stay from one year to the next."""


@cache
def states() -> States:
    """Return the ten states."""
    from scipy.special import ndtri

    known, listed = figures(), read_rows("industry_names.csv")
    industries = pa.table(dict(zip(("sector", "sector_name", "industry", "industry_name"), map(list, zip(*listed)))))
    named = np.array([row[2] for row in listed])
    of = np.searchsorted(named, np.array([code[:3] for code in known.industries]))
    shares = np.bincount(of, weights=known.industry_shares)
    paid = np.bincount(of, weights=known.industry_shares * known.wages)
    ranked = np.sort(known.county_shares)[::-1]
    counties = ranked[np.linspace(5, len(ranked) - 1, COUNTIES).astype(np.int64)]
    local = ndtri(uniforms(CELL_SEED, 1, 0, COUNTIES * len(named))).reshape(COUNTIES, len(named))
    weights = counties[:, None] * shares[None, :] * np.exp(LOCAL_SPREAD * local)
    sectors = np.unique(np.array([row[0] for row in listed]), return_inverse=True)[1]
    moved = GROWTH * ndtri(uniforms(CELL_SEED, 2, 0, int(sectors.max()) + 1))
    return States(
        places=_places(),
        industries=industries,
        weights=weights / weights.sum(),
        wages=paid / shares,
        size_steps=known.size_steps[np.unique(of, return_index=True)[1]],
        growth=np.exp(moved[sectors]),
    )


def _places() -> pa.Table:
    """Return the counties: the largest are spread over the states, whose numbers of counties differ."""
    chosen = np.floor(len(STATES) * uniforms(CELL_SEED, 3, 0, COUNTIES) ** 1.4).astype(np.int64)
    chosen[: len(STATES)] = np.arange(len(STATES))
    number = np.array([int((chosen[:at] == each).sum()) + 1 for at, each in enumerate(chosen)])
    order = np.argsort(uniforms(CELL_SEED, 4, 0, len(FIRST) * len(SECOND)))[:COUNTIES]
    letters = [name[0] for name in STATES]
    return pa.table(
        {
            "state": [letters[each] for each in chosen],
            "state_name": [STATES[each] for each in chosen],
            "county": [f"{letters[each]}{own:03d}" for each, own in zip(chosen, number)],
            "county_name": [f"{FIRST[each // len(SECOND)]} {SECOND[each % len(SECOND)]}" for each in order.tolist()],
        }
    )


def state_establishments(rows: int, *, year: int = 0, seed: int = 1) -> pa.Table:
    """Return the establishments of the ten states in a year.

    Columns estab_id, firm_id, county, industry, emp and payann ($1,000).

    Args:
        rows: The number of establishments.
        year: 0, or 1 for the year after it.
        seed: The seed of the generator; the same seed gives the same establishments.

    Returns:
        The table.
    """
    known, number = states(), np.arange(rows, dtype=np.int64)
    cell, emp, paid = _opened(rows, seed, 0)
    if year:
        closed = uniforms(seed, 50, 0, rows) < CLOSED
        own = known.growth[cell % len(known.wages)] * np.exp(SPREAD * _normal(seed, 51, rows))
        emp = np.where(closed, emp, np.floor(emp * own + uniforms(seed, 53, 0, rows)))
        paid = np.where(closed, paid, np.maximum(1, np.floor(RAISE * own * paid))).astype(np.int64)
        new = _opened(rows, seed, 20)
        cell, emp, paid = (np.where(closed, other, each) for other, each in zip(new, (cell, emp, paid)))
        number = np.where(closed, number + rows, number)
    places, industries = np.divmod(cell, len(known.wages))
    return pa.table(
        {
            "estab_id": scrambled_ids(number),
            "firm_id": firm(number, rows, uniforms(seed, 8, 0, rows), uniforms(seed, 9, 0, rows)),
            "county": _codes(places, known.places["county"]),
            "industry": _codes(industries, known.industries["industry"]),
            "emp": emp.astype(np.int32),
            "payann": paid,
        }
    )


def public_sizes(rows: int) -> pa.Table:
    """Return what is expected in each cell: establishments, employees and payroll.

    No record is used, as if a register of another office had published them.

    Args:
        rows: The number of establishments.

    Returns:
        A row for each county and industry.
    """
    known = states()
    even = (np.arange(SIZES) + 0.5) / SIZES
    within = np.asarray(np.arange(1, SIZES + 1) * GOLDEN % 1.0, np.float64)
    sizes = [employment(np.broadcast_to(each, (SIZES, len(each))), even, within) for each in known.size_steps]
    mean = np.array([each.mean() for each in sizes])
    paid = np.array([np.maximum(each, 0.4).mean() for each in sizes]) * known.wages
    places, industries = np.divmod(np.arange(known.weights.size), len(mean))
    count = rows * known.weights.ravel()
    return pa.table(
        {
            "county": known.places["county"].take(pa.array(places)),
            "industry": known.industries["industry"].take(pa.array(industries)),
            "establishments": np.rint(count).astype(np.int64),
            "employees": np.rint(count * mean[industries]).astype(np.int64),
            "payroll": np.rint(count * paid[industries]).astype(np.int64),
        }
    )


def _opened(rows: int, seed: int, stream: int) -> tuple[IntArray, FloatArray, IntArray]:
    """Return cell, employees and payroll of establishments that have just opened."""
    known = states()

    def chance(number: int) -> FloatArray:
        return uniforms(seed, stream + number, 0, rows)

    cell = np.searchsorted(np.cumsum(known.weights), chance(1)).clip(max=known.weights.size - 1)
    industry = cell % len(known.wages)
    emp = employment(known.size_steps[industry], chance(2), chance(3))
    return cell, emp, payroll(emp, known.wages[industry], chance(4), chance(5))


def _normal(seed: int, stream: int, count: int) -> FloatArray:
    first, second = uniforms(seed, stream, 0, count), uniforms(seed, stream + 1, 0, count)
    return np.asarray(np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second))


def _codes(index: IntArray, values: pa.ChunkedArray) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int16)), values.combine_chunks())
