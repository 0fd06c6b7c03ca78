"""Fitted columns: many small trees in one release, each fitted by itself, and small crossed tables."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import recordwise as rw
from experiments.coverage.chosen import PUBLIC_SIZES, SUMS
from experiments.coverage.lines import LEVEL, SIZES, Tally, alias
from recordwise.noise import Seeded

LEAVES = ("1111", "1112", "1113", "1121", "1122", "1123")
MIXED = dict(zip(LEAVES, (0, 10, 10_000, 1, 3, 100)))
UNLISTED = ("1112", "1122")
"""Finest codes that have no cell of their own where a rest is published."""
LENGTHS = (2, 3, 4)
SHAPES = (*(f"alike {size}" for size in SIZES), *(f"alone {size}" for size in SIZES), "mixed")
"""Trees whose six finest cells are all of one size, trees with one cell that is not empty, and one with a cell of every size."""
FITTED = tuple(
    name
    for name in SUMS
    if name
    not in (
        "Gaussian, sigma 2",
        "UnitSplit at 50",
        "Clamped to 5,000",
        "Polylog",
        "LogTransform, Laplace",
        "Polylog (demo)",
    )
)
NONNEGATIVE = (
    "Gaussian, sigma .365",
    "Gaussian, sigma 1",
    "Gaussian, sigma 30",
    "GeneralizedGaussian, shape 1/2",
    "LogTransform, offset 10, sigma .2",
    "LogTransform, offset 10, sigma 1",
    *(
        name
        for name in SUMS
        if name.endswith(("(README)", "(tutorial)", "(demo)", "(demo, tutorial)")) and name in FITTED
    ),
    "RootTransform 2, sigma .5",
    "Transform",
    "Sized Gaussian",
)
SEQUENTIAL = ("Gaussian, sigma 30", "LogTransform, offset 10, sigma .2")
CROSSED = (
    "Gaussian, sigma .365",
    "Gaussian, sigma 1",
    "Gaussian, sigma 30",
    "GeneralizedGaussian, shape 1/2",
    "LogTransform, offset 10, sigma .2",
    "RootTransform 2, sigma .5",
)
ENDS = {"best": "_best", "fit": "_fit"}
AT_ONCE = 100
"""Crossed tables in one release that are few enough for a formula."""
INDUSTRIES = ("a", "b", "c")
PLACES = ("x", "y")


def leaf_sizes(shape: str) -> dict[str, int]:
    """The totals of a tree's finest cells."""
    kind, _, size = shape.partition(" ")
    if kind == "mixed":
        return MIXED
    return {code: int(size) if kind == "alike" or code == LEAVES[0] else 0 for code in LEAVES}


def trees(
    tally: Tally, number: int, seed: int, *, method: str, rest: bool = False, names: Sequence[str] = FITTED
) -> None:
    """So many trees of every shape; with complete keys, or with a published rest in place of two finest cells.

    By least squares ``_fit`` is the best linear estimate, so that only ``_best`` is measured; by other methods only ``_fit``.
    """
    release = _released_trees(number, seed, rest, names).consistent(method=method, complete=not rest)
    column, end, other_end = ("best", "_best", "_fit") if method == "ols" else (f"fit ({method})", "_fit", "_best")
    name = f"trees, {column}, {rest}"
    setting = "rest published" if rest else "complete keys"
    tally.saw(name, release)
    tally.leave(name, *(alias(each) + left for each in names for left in ("", other_end)))
    for table in release.tables:
        data = table.data
        code = next(column for column in data.column_names if column.startswith("naics"))
        codes, shapes = (np.array(data.column(each).to_pylist(), dtype=object) for each in (code, "county"))
        shapes = np.array([each.partition("-")[0] for each in shapes.tolist()], dtype=object)
        listed = "all_other" in data.column_names
        other = np.array(data.column("all_other").to_pylist()) if listed else np.zeros(len(codes), bool)
        for cell, shape, label, size in measured_cells(int(code[-1])):
            rows = np.flatnonzero((codes == cell) & (shapes == shape) & ~other)
            for noise in names:
                about: dict[str, Any] = {"column": f"{column}, {label}, {setting}", "mechanism": noise, "size": size}
                tally.line(name, data, alias(noise) + end, size, rows=rows, **about)


def measured_cells(length: int) -> Iterator[tuple[str, str, str, int]]:
    """Code, shape, what the line is called and the exact total: one cell of each tree for each line."""
    for size in SIZES:
        if length == LENGTHS[-1]:
            yield LEAVES[0], f"alike {size}", "finest among equals", size
            yield LEAVES[0], f"alone {size}", "finest among empty ones", size
            yield next(code for code in LEAVES if MIXED[code] == size), "mixed", "finest among others", size
        if length == LENGTHS[0]:
            yield LEAVES[0][:length], f"alone {size}", "coarsest", size


def _released_trees(number: int, seed: int, rest: bool, names: Sequence[str]) -> rw.Release:
    places, totals, codes = [], [], []
    for shape in SHAPES:
        held = {code: size for code, size in leaf_sizes(shape).items() if size}
        places += [f"{shape}-{k}" for k in range(number) for _ in held]
        codes += list(held) * number
        totals += list(held.values()) * number
    table = pa.table({"id": np.arange(len(totals)), "emp": totals, "county": places, "naics": codes})
    every = [(shape, k) for shape in SHAPES for k in range(number)]
    leaves = [code for code in LEAVES if not rest or code not in UNLISTED]
    counties = np.repeat([f"{shape}-{k}" for shape, k in every], len(leaves))
    known = [PUBLIC_SIZES[leaf_sizes(shape)[code]] for shape, _ in every for code in leaves]
    frame = {"county": counties, "naics": np.tile(leaves, len(every)), "last": known}
    keys = rw.Keys.of(frame, size="last", sized_on="public: made up")
    published = "publish" if rest else None
    asked = rw.query().group_by("county").levels(rw.prefix("naics", list(LENGTHS)), keys=keys, all_other=published)
    for noise in names:
        asked = asked.sum("emp", SUMS[noise], alias=alias(noise))
    with rw.Session(table, unit="id", measures={"emp": 1}, tuned_on="synthetic", max_outside="accept") as session:
        return session.run(asked, rng=Seeded(seed), confidence=LEVEL)


def crossed(tally: Tally, number: int, seed: int, *, formula: bool) -> None:
    """So many tables of two places by three industries, each with both of its margins: small enough for a formula, or not."""
    at_once = min(number, AT_ONCE) if formula else number
    for start in range(0, number, at_once):
        release = _released_crossed(at_once, seed + start).consistent(complete=True)
        name = "crossed, formula" if formula else "crossed, drawn"
        tally.saw(name, release)
        tally.leave(name, *(alias(each) for each in CROSSED))
        data = release["cells"]
        sizes = np.array([SIZES[PLACES.index(x) * 3 + INDUSTRIES.index(y)] for x, y in _pairs(data)])
        for size in SIZES:
            for noise in CROSSED:
                for column, end in ENDS.items():
                    about: dict[str, Any] = {"column": f"{column}, {name}", "mechanism": noise, "size": size}
                    rows = np.flatnonzero(sizes == size)
                    tally.line(name, data, alias(noise) + end, size, rows=rows, **about)


def _pairs(data: pa.Table) -> Iterator[tuple[str, str]]:
    return zip(data.column("place").to_pylist(), data.column("industry").to_pylist())


def _released_crossed(number: int, seed: int) -> rw.Release:
    counties, places, industries = np.arange(number), np.repeat(PLACES, 3), np.tile(INDUSTRIES, 2)
    every = {
        "county": np.repeat(counties, 6),
        "place": np.tile(places, number),
        "industry": np.tile(industries, number),
    }
    totals = np.tile(SIZES, number)
    table = pa.table({"id": np.arange(6 * number), "emp": totals} | every).filter(pa.array(totals > 0))
    names = {"cells": ("place", "industry"), "by_place": ("place",), "by_industry": ("industry",)}
    queries = []
    for name, columns in names.items():
        by = ("county", *columns)
        distinct = pa.table({each: every[each] for each in by}).group_by(list(by)).aggregate([])
        asked = rw.query().group_by(*by, keys=rw.Keys.of(distinct.select(list(by)))).named(name)
        for noise in CROSSED:
            asked = asked.sum("emp", SUMS[noise], alias=alias(noise))
        queries.append(asked)
    with rw.Session(table, unit="id", measures={"emp": 1}, tuned_on="synthetic") as session:
        return session.run(*queries, rng=Seeded(seed), confidence=LEVEL)
