"""Changes between two releases: of the same cells, and of cells that were added up because their codes changed."""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

import recordwise as rw
from experiments.coverage.chosen import AVERAGED, COUNT, COUNTS, QUANTILE, SUMS
from experiments.coverage.counted import AMOUNT, SPREAD
from experiments.coverage.lines import LEVEL, SIZES, Tally, alias
from experiments.coverage.plain import clamped, keys_of, released_sums, sizes_of
from recordwise.noise import Seeded

ADDED = ("a", "b", "c")
"""Codes that were split and merged, so that only their sum can be compared."""
PAIRS = [*((code, ADDED[0]) for code in ADDED), *((ADDED[0], code) for code in ADDED[1:])]
MERGED = ("Gaussian, sigma .365", "Gaussian, sigma 1", "Gaussian, sigma 30", "UnitSplit at 50", "Sized Gaussian")


def both(make: Callable[[int], rw.Release], seed: int, crosswalk: Any = None) -> Any:
    """The change between two releases of the same cells. Their noise is seeded, so that the page can be made again; they are called
    private here because changes of releases that are not are refused, and nothing of them is kept."""
    before, now = (replace(make(seed + number), private=True) for number in range(2))
    return now.change(before, crosswalk=crosswalk)


def sums(tally: Tally, cells: int, seed: int, *, names: Collection[str] = SUMS) -> None:
    """Changes of sums that did not change, absolute and in percent of totals of at least 1."""
    change = both(lambda number: released_sums(cells, number, names=names), seed)
    ((table, data),) = change.tables.items()
    tally.saw_table("changes", data, [alias(name) for name in names])
    sizes = sizes_of(cells)[data.column("cell").to_numpy()]
    for name in names:
        _both_lines(tally, "changes", change, table, data, alias(name), "sum", name, sizes)


def others(tally: Tally, cells: int, seed: int) -> None:
    """Changes of counts, averages, ratios and quantiles, of cells with at most a hundred records."""
    sizes = sizes_of(cells)[sizes_of(cells) <= 100]
    change = both(lambda number: _released_counts(sizes, number), seed)
    ((table, data),) = change.tables.items()
    names = {alias(name): ("count", name) for name in COUNTS}
    names |= {f"avg_{alias(name)}": ("average", name) for name in AVERAGED} | {
        "median": ("quantile .5", "TreeQuantile")
    }
    tally.saw_table("other changes", data, names)
    here = sizes[data.column("cell").to_numpy()]
    for variable, (column, name) in names.items():
        some = here if column == "count" else np.where(here > 0, here, -1)
        _both_lines(tally, "other changes", change, table, data, variable, column, name, some)
    parts = [f"avg_{alias(name)}_sum" for name in AVERAGED]
    tally.leave("other changes", *(part + end for part in parts for end in ("_change", "_percent")))


def added(tally: Tally, cells: int, seed: int) -> None:
    """Changes of sums over three cells whose codes changed; the first of them has the whole total."""
    change = both(lambda number: _released_parts(cells, number), seed, {"code": PAIRS})
    ((table, data),) = change.tables.items()
    tally.saw_table("added", data, [alias(name) for name in MERGED])
    sizes = sizes_of(cells)[data.column("cell").to_numpy()]
    for name in MERGED:
        _both_lines(tally, "added", change, table, data, alias(name), "sum of three cells", name, sizes)


def _both_lines(
    tally: Tally,
    release: str,
    change: Any,
    table: str,
    data: pa.Table,
    variable: str,
    column: str,
    name: str,
    sizes: Any,
) -> None:
    level = change.confidence[f"{table}.{variable}"]
    for end, words in (("_change", "change of"), ("_percent", "percentage change of")):
        if f"{variable}{end}_low" not in data.column_names:
            continue
        tally.leave(release, variable + end)
        for size in SIZES:
            rows = np.flatnonzero(sizes == size)
            if not len(rows) or (end == "_percent" and not clamped(name, size)):
                continue
            about = {"column": f"{words} {column}", "mechanism": name, "size": size, "level": round(level, 6)}
            tally.line(release, data, variable + end, 0, rows=rows, unbounded="quantile" in column, **about)


def _released_counts(sizes: Any, seed: int) -> rw.Release:
    cell = np.repeat(np.arange(len(sizes)), sizes)
    spread = np.concatenate([np.rint(np.linspace(*SPREAD, size)) for size in sizes.tolist()]).astype(np.int64)
    values = {"emp": np.full(len(cell), AMOUNT), "pay": spread}
    table = pa.table({"id": np.arange(len(cell)), "cell": cell} | values)
    asked = rw.query().group_by("cell", keys=keys_of(sizes))
    for name, mechanism in COUNTS.items():
        asked = asked.count(mechanism, alias=alias(name))
    for name in AVERAGED:
        asked = asked.avg("emp", sum=SUMS[name], count=COUNT, alias=f"avg_{alias(name)}")
    asked = asked.quantile("pay", p="0.5", alias="median", **QUANTILE)
    with rw.Session(table, unit="id", measures={"emp": 1, "pay": 1}, tuned_on="synthetic") as session:
        return session.run(asked, rng=Seeded(seed), confidence=LEVEL)


def _released_parts(cells: int, seed: int) -> rw.Release:
    sizes = sizes_of(cells)
    cell, code = np.repeat(np.arange(len(sizes)), 3), np.tile(ADDED, len(sizes))
    totals = (sizes[:, None] * [1, 0, 0]).reshape(-1)
    keys = rw.Keys.of({"cell": cell, "code": code, "last": totals}, size="last", sized_on="public: made up")
    asked = rw.query().group_by("cell", "code", keys=keys)
    for name in MERGED:
        asked = asked.sum("emp", SUMS[name], alias=alias(name))
    table = pa.table({"id": np.arange(len(cell)), "emp": totals, "cell": cell, "code": code})
    with rw.Session(table, unit="id", measures={"emp": 1}, tuned_on="synthetic") as session:
        return session.run(asked, rng=Seeded(seed), confidence=LEVEL)
