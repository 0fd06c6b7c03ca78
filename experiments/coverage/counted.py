"""Cells of so many records: counts, distinct counts, averages, quantiles, and counts that selected their key."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

import recordwise as rw
from experiments.coverage.chosen import AVERAGED, COUNT, COUNTS, QUANTILE, SUMS
from experiments.coverage.lines import LEVEL, SIZES, Tally, alias
from recordwise.noise import Seeded

MOST_ROWS = 2_000_000
AMOUNT = 50
"""Every record's value, except where quantiles are asked for."""
SPREAD = (10, 9000)
"""Those go from the first to the second in equal steps."""
QUANTILES = {"quantile .5": ("median", Fraction(1, 2)), "quantile .9": ("ninth", Fraction(9, 10))}
FEWER = 10
"""Trees are drawn in so many times fewer cells."""
LISTED_FROM = 2
"""The noisy count from which on a cell of the public domain is listed."""


def counts(tally: Tally, size: int, cells: int, seed: int) -> None:
    """Counts of records and of firms, and averages."""
    asked = rw.query().group_by("cell", keys=_cells(size, cells))
    for name, mechanism in COUNTS.items():
        asked = asked.count(mechanism, alias=alias(name))
        asked = asked.count_distinct("firm", mechanism, alias=f"firms_{alias(name)}")
    for name in AVERAGED:
        asked = asked.avg("emp", sum=SUMS[name], count=COUNT, alias=f"avg_{alias(name)}")
    for release in _releases(asked, size, np.full(size, AMOUNT), cells, seed):
        tally.saw("counts", release)
        for name in COUNTS:
            tally.line("counts", release.table, alias(name), size, column="count", mechanism=name, size=size)
            distinct = f"firms_{alias(name)}"
            tally.line(
                "counts", release.table, distinct, (size + 1) // 2, column="distinct count", mechanism=name, size=size
            )
        for name in AVERAGED:
            average = f"avg_{alias(name)}"
            tally.leave("counts", average, f"{average}_sum")
            if size:
                tally.line("counts", release.table, average, AMOUNT, column="average", mechanism=name, size=size)


def selected(tally: Tally, size: int, cells: int, seed: int) -> None:
    """Counts that selected their key, from the data and from a public domain, and a sum beside them."""
    everything = {"cell": list(range(_number(size, cells)))}
    chosen = {
        "from data": rw.Keys.select(rho="0.1", delta="0.01"),
        "from a domain": rw.Keys.select_from(everything, rho="0.1", threshold=LISTED_FROM),
    }
    for place, (name, keys) in enumerate(chosen.items()):
        asked = rw.query().group_by("cell", keys=keys).sum("emp", SUMS["Gaussian, sigma 30"], alias="emp")
        for release in _releases(asked, size, np.full(size, AMOUNT), cells, seed + place * 1000):
            tally.saw(name, release)
            about: dict[str, Any] = {"mechanism": f"Gaussian, rho .1, selected {name}", "size": size}
            tally.line(name, release.table, "rows_selected_on", size, column="selected count", **about)
            tally.line(name, release.table, "emp", size * AMOUNT, column="sum in selected cells", **about)


def quantiles(tally: Tally, size: int, cells: int, seed: int) -> None:
    """Values in equal steps, so that quantiles differ."""
    asked = rw.query().group_by("cell", keys=_cells(size, cells // FEWER))
    for name, share in QUANTILES.values():
        asked = asked.quantile("emp", p=share, alias=name, **QUANTILE)
    values = np.rint(np.linspace(*SPREAD, size)).astype(np.int64)
    for release in _releases(asked, size, values, cells // FEWER, seed):
        tally.saw("quantiles", release)
        for column, (name, share) in QUANTILES.items():
            tally.leave("quantiles", name)
            if size:
                exact = values[int(np.ceil(share * size)) - 1]
                tally.line("quantiles", release.table, name, exact, column=column, mechanism="TreeQuantile", size=size)


def _number(size: int, cells: int) -> int:
    """How many cells of a size fit into one table of records."""
    return max(1, min(cells, MOST_ROWS // max(size, 1)))


def _cells(size: int, cells: int) -> rw.Keys:
    return rw.Keys.of({"cell": list(range(_number(size, cells)))})


def _releases(asked: rw.Query, size: int, values: Any, cells: int, seed: int) -> Iterator[rw.Release]:
    """As many releases as it takes to have so many cells, at most ten."""
    here = _number(size, cells)
    cell = np.repeat(np.arange(here), size)
    firm = cell * 10**6 + np.tile(np.arange(size) // 2, here)
    table = pa.table({"id": np.arange(size * here), "emp": np.tile(values, here), "cell": cell, "firm": firm})
    with rw.Session(table, unit="id", firm="firm", measures={"emp": 1}, tuned_on="synthetic") as session:
        for number in range(min(10, -(-cells // here))):
            yield session.run(asked, rng=Seeded(seed + number), confidence=LEVEL)


def all_sizes(tally: Tally, cells: int, seed: int, *, sizes: Sequence[int] = SIZES) -> None:
    """Every column of counted records, in cells of every size."""
    for place, size in enumerate(sizes):
        for kind in (counts, selected, quantiles):
            kind(tally, size, cells, seed + 100 * place)
