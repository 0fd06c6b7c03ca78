"""Post-processing against scipy.optimize.nnls on the same draws, and large hierarchies: ratios, not seconds, are the result."""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import nnls as textbook

from benchmarks.goals import record, table
from recordwise.postprocess import Fit, Workload, max_fit, nnls, ols, reweighted_fit, sequential_fit

DRAWS = 1000
METHODS: dict[str, Callable[..., Fit]] = {
    "ols": ols,
    "nnls": nnls,
    "reweighted_fit": reweighted_fit,
    "sequential_fit": sequential_fit,
    "max_fit": max_fit,
}
GOALS = {
    "nnls": "20 x textbook",
    "reweighted_fit": "20 x textbook",
    "sequential_fit": "at most 3 x nnls",
    "max_fit": "at most 3 x nnls",
}


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def small_problem() -> tuple[Workload, np.ndarray]:
    """9 x 24 cells, a few large and most empty or small, as in the histograms of [A]; Laplace noise of scale 8."""
    rng = np.random.default_rng(0)
    workload = Workload.marginals((9, 24), {"sum": (), "rows": (0,), "columns": (1,), "cells": (0, 1)})
    table = np.where(rng.random(216) < 0.15, np.floor(np.exp(rng.normal(2.5, 1.8, size=216))), 0.0)
    return workload, workload.answer(table) + rng.laplace(scale=8, size=(DRAWS, workload.queries))


def small_tables(rounds: int = 5) -> dict[str, float]:
    """Seconds of each method and of the textbook one, the best of interleaved rounds."""
    workload, answers = small_problem()
    matrix = np.vstack([group.rows.toarray() for group in workload.groups])
    for method in METHODS.values():
        method(workload, answers[:2], 128.0)
    best = dict.fromkeys([*METHODS, "textbook"], math.inf)
    for _ in range(rounds):
        for name, method in METHODS.items():
            best[name] = min(best[name], timed(lambda method=method: method(workload, answers, 128.0)))
        best["textbook"] = min(best["textbook"], timed(lambda: [textbook(matrix, row) for row in answers]))
    return best


def hierarchy(levels: tuple[int, ...]) -> tuple[Workload, np.ndarray]:
    """A tree of places crossed with 10 x 10 x 10: its total, three margins and one two-way margin at every place, and all cells."""
    rng = np.random.default_rng(1)
    leaf = np.arange(levels[-1])
    trees = {"place": {f"level{k}": leaf * nodes // levels[-1] for k, nodes in enumerate(levels)}}
    trees |= {name: {name: np.arange(10)} for name in ("a", "b", "c")}
    margins = [(), ("a",), ("b",), ("c",), ("a", "b")]
    groups = [(level, *margin) for level in trees["place"] for margin in margins]
    workload = Workload.hierarchy(trees, [*groups, (f"level{len(levels) - 1}", "a", "b", "c")])
    shares = rng.dirichlet(np.full(1000, 0.1), size=levels[-1]) * rng.gamma(0.2, 5000.0, size=(levels[-1], 1))
    exact = workload.answer(rng.poisson(shares).ravel().astype(float))
    return workload, exact + rng.normal(scale=math.sqrt(20), size=len(exact))


def large_tables() -> list[tuple[int, float, float, int, float]]:
    """Cells, seconds, KKT residual, Newton steps and megabytes at the peak, for growing hierarchies with four levels."""
    import resource

    rows = []
    for levels in ((1, 3, 9, 27), (1, 5, 25, 100), (1, 10, 50, 300), (1, 10, 100, 1000)):
        workload, answers = hierarchy(levels)
        start = time.perf_counter()
        fit = nnls(workload, answers, 20.0)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append((workload.cells, seconds, float(fit.kkt), int(fit.iterations), peak))
    return rows


NESTED_LEVELS = (0.35, 0.26, 0.19, 0.13, 0.067)
"""The tables of one code at five lengths, as shares of all published cells."""


def nested_tables(published: int, *, complete: bool) -> tuple[Workload, np.ndarray]:
    """Five nested tables; without complete keys every coarser cell has an unpublished remainder, which half of them need."""
    rng = np.random.default_rng(2)
    sizes = [max(1, int(share * published)) for share in NESTED_LEVELS]
    cells = sizes[0] if complete else sum(sizes)
    starts, owner = np.cumsum([0, *sizes]), np.arange(cells)
    rows, columns = [], []
    for level, size in enumerate(sizes):
        inside = np.flatnonzero(owner < starts[level + 1])
        place = owner[inside] if level == 0 else np.where(owner[inside] >= starts[level], owner[inside], 0)
        if level:
            finer = owner[inside] < starts[level]
            up = (owner[inside][finer] - starts[level - 1]) * size // sizes[level - 1] + starts[level]
            place[finer], owner[inside[finer]] = up, up
        rows.append(place)
        columns.append(inside)
    matrix = sparse.csr_array(
        (np.ones(sum(map(len, rows))), (np.concatenate(rows), np.concatenate(columns))), shape=(starts[-1], cells)
    )
    table = np.where(rng.random(cells) < 0.5, np.floor(rng.pareto(1.0, size=cells) * 5), 0.0)
    exact = matrix @ table
    names = {f"length {6 - level}": size for level, size in enumerate(sizes)}
    return Workload.matrix(matrix, names), exact + rng.normal(scale=math.sqrt(20), size=len(exact))


def two_way(places: int, codes: int) -> tuple[Workload, np.ndarray]:
    """States and counties crossed with sectors and industries: all four tables, of which two cross."""
    rng = np.random.default_rng(3)
    leaf, code = np.arange(places), np.arange(codes)
    trees = {
        "place": {"state": leaf * 20 // places, "county": leaf},
        "code": {"sector": code * 10 // codes, "industry": code},
    }
    tables = [("state", "sector"), ("county", "sector"), ("state", "industry"), ("county", "industry")]
    workload = Workload.hierarchy(trees, tables)
    table = np.where(rng.random(workload.cells) < 0.5, np.floor(rng.pareto(1.0, size=workload.cells) * 5), 0.0)
    exact = workload.answer(table)
    return workload, exact + rng.normal(scale=math.sqrt(20), size=len(exact))


def incomplete_two_way(places: int, codes: int) -> tuple[Workload, np.ndarray]:
    """The same with seven in ten of the finest cells listed, and an unpublished remainder for every coarser cell."""
    rng = np.random.default_rng(4)
    listed = np.flatnonzero(rng.random(places * codes) < 0.7)
    place, code = listed // codes, listed % codes
    state, sector = place // 25, code // 20
    keys = [place * codes + sector, state * codes + code, state * codes + sector]
    finer = [sparse.eye_array(len(listed), format="csr"), *map(_membership, keys)]
    last, above = finer[3], [_above(finer[3], each) for each in finer[1:3]]
    rows = sparse.block_array(
        [
            [finer[0], None, None, None],
            [finer[1], sparse.eye_array(finer[1].shape[0]), None, None],
            [finer[2], None, sparse.eye_array(finer[2].shape[0]), None],
            [last, *above, sparse.eye_array(last.shape[0])],
        ],
        format="csr",
    )
    names = ("county industry", "county sector", "state industry", "state sector")
    workload = Workload.matrix(sparse.csr_array(rows), {name: each.shape[0] for name, each in zip(names, finer)})
    table = np.where(rng.random(workload.cells) < 0.5, np.floor(rng.pareto(1.0, size=workload.cells) * 5), 0.0)
    exact = workload.answer(table)
    return workload, exact + rng.normal(scale=math.sqrt(20), size=len(exact))


def _membership(keys: np.ndarray) -> Any:
    """Which cell of a coarser table each finest cell is in."""
    codes, which = np.unique(keys, return_inverse=True)
    return sparse.csr_array((np.ones(len(keys)), (which, np.arange(len(keys)))), shape=(len(codes), len(keys)))


def _above(coarse: Any, fine: Any) -> Any:
    """Which cell of a coarser table each cell of a finer one is in."""
    shared = (coarse @ fine.T).tocsr()
    shared.data[:] = 1.0
    return shared


SIZES = (100_000, 1_000_000)
OTHER_FITS = ("reweighted_fit", "sequential_fit")


def seconds_of(name: str, what: str, problem: tuple[Workload, np.ndarray], *, repeats: int = 1) -> float:
    """The seconds of one fit, or the best of several."""
    taken = math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        fit = METHODS[name](*problem, 20.0, noise="gaussian")
        taken = min(taken, time.perf_counter() - start)
    print(
        f"  {name}, {problem[0].queries:,} published cells, {what}: {taken:.1f} s, KKT {float(fit.kkt):.0e}", flush=True
    )
    return taken


def two_way_goals() -> None:
    for cells, shape in zip(SIZES, [(500, 200), (2000, 500)]):
        for name in OTHER_FITS:
            record(f"{name}_{cells}", seconds_of(name, "two-way hierarchy", two_way(*shape)))


def crossing_fits() -> None:
    for name in ("nnls", *OTHER_FITS):
        seconds_of(name, "two-way hierarchy, incomplete", incomplete_two_way(60, 100))


def nested_goals() -> None:
    """Incomplete keys against complete ones, and the other fits of incomplete keys."""
    for published in SIZES:
        parts = [nested_tables(published, complete=complete) for complete in (True, False)]
        complete, incomplete = (
            seconds_of("nnls", what, part, repeats=3) for what, part in zip(("complete", "incomplete"), parts)
        )
        record("nnls_incomplete", incomplete / complete)
        for name in OTHER_FITS:
            seconds_of(name, "incomplete", parts[1])


def main() -> None:
    seconds = small_tables()
    print(f"postprocess: {DRAWS} draws of 216 cells, Sum, rows, columns and cells")
    for name in METHODS:
        speed, cost = seconds["textbook"] / seconds[name], seconds[name] / seconds["nnls"]
        goal = f"  (goal {GOALS[name]})" if name in GOALS else ""
        print(f"  {name:15} {speed:6.1f} x as fast as scipy.optimize.nnls, {cost:5.2f} x the time of nnls{goal}")
    print(
        "postprocess: nnls on a 4-level hierarchy with margins (goals: 1e5 cells < 5 s, 1e6 cells < 60 s and < 2 GB, KKT 1e-6)"
    )
    before: tuple[int, float] | None = None
    for cells, taken, kkt, steps, peak in large_tables():
        growth = (
            ""
            if before is None
            else f", cost grows as cells^{math.log(taken / before[1]) / math.log(cells / before[0]):.2f}"
        )
        print(f"  {cells:9,} cells: {taken:6.1f} s, KKT {kkt:.1e}, {steps} Newton steps, peak {peak:,.0f} MB{growth}")
        before = (cells, taken)
    print("postprocess: nested tables with complete and incomplete keys, and a two-way hierarchy")
    nested_goals()
    two_way_goals()
    crossing_fits()
    print(table(only_measured=True))


if __name__ == "__main__":
    main()
