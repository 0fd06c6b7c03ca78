"""Selection from a huge public domain, medians by group beside plain DuckDB, and quantile error beside other mechanisms.

    python -m benchmarks.private_keys [--cells 1000000000] [--occupied 1000000] [--rows 8000000] [--groups 3000]

Times are ratios within one run; the selection is told in seconds and peak memory because nothing else does it.
"""

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

REPEATS = 3
P = 0.5


def best(run: Callable[[], Any]) -> float:
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)


def selection(cells: int, occupied: int) -> None:
    """A product of three columns, most of it empty; every step but the engine's pass."""
    from recordwise.mechanisms import Gaussian
    from recordwise.noise import Secure
    from recordwise.plan import Keys, Plan, Schema
    from recordwise.plan.query import query
    from recordwise.plan.statistics import ExactTable
    from recordwise.release.draw import select_cells

    side = round(cells ** (1 / 3))
    names = ("a", "b", "c")
    schema = Schema.of(unit="id", columns=dict.fromkeys(names, "integer"))
    keys = Keys.select_from({name: np.arange(side) for name in names}, rho=0.1, threshold=12)
    plan = Plan(schema=schema, queries=(query().group_by(*names, keys=keys).count(Gaussian(rho=0.1)),))
    rng = np.random.default_rng(0)
    places = np.unique(rng.integers(0, side**3, occupied))
    found = pa.table({name: places // side ** (2 - i) % side for i, name in enumerate(names)})
    counts = rng.geometric(0.05, len(places))
    (table,) = plan.tables()
    exact = ExactTable(cells=len(places), totals={table.totals[0]: counts}, bins={})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = best(lambda: select_cells(plan, table, found, exact, Secure(), confidence=0.95))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(
        f"selection from {side**3:,} cells, {len(places):,} of them not empty: {seconds:.2f} s, {grown / 1024:.0f} MB more"
    )


def medians(rows: int, groups: int) -> None:
    """Median of every group: engine pass, noise, least squares and interval, over DuckDB's exact quantile_cont of the column."""
    import duckdb

    from recordwise.engines import DuckDB
    from recordwise.mechanisms.quantile import Grid
    from recordwise.noise import Secure
    from recordwise.plan import Keys, Plan, Schema
    from recordwise.plan.query import query
    from recordwise.release.draw import draw_table, prepare_table

    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "id": np.arange(rows),
            "county": rng.integers(0, groups, rows),
            "pay": np.exp(rng.normal(5, 2.5, rows)).astype(np.int64),
        }
    )
    schema = Schema.of(unit="id", measures={"pay": 1}, columns={"county": "integer"})
    asked = query().group_by("county", keys=Keys.of({"county": np.arange(groups)}))
    plan = Plan(schema=schema, queries=(asked.quantile("pay", p=P, grid=Grid.log(1, 1e9, bits=10), rho=0.1),))
    plain = duckdb.connect()
    plain.register("arrow", table)
    plain.execute("CREATE TABLE t AS SELECT * FROM arrow")
    theirs = best(lambda: plain.sql(f"SELECT county, quantile_cont(pay, {P}) FROM t GROUP BY county").to_arrow_table())
    with DuckDB(plain.table("t"), schema, memory_limit="4GB") as engine:
        engine.validate()
        passes = best(lambda: engine.totals(plan))
        (exact,) = engine.totals(plan)
        prepared = prepare_table(plan, exact.table, exact.cells, confidence=0.95)
        drawing = best(lambda: draw_table(prepared, exact.exact.reveal(), Secure())())
    print(
        f"median of {groups:,} groups, {rows:,} records: {(passes + drawing) / theirs:.1f} times plain DuckDB quantile_cont "
        f"({passes / theirs:.1f} the exact pass, {drawing / theirs:.1f} noise and estimates)"
    )


def errors(repeats: int = 200) -> None:
    """Mean relative error of the median of heavy-tailed samples, all at the same rho, over sample sizes and budgets."""
    print(f"relative error of the median, Pareto(1.1) * 100, mean of {repeats}:")
    print(f"{'records':>8} {'rho':>6} {'tree, log':>10} {'clamped':>10} {'OpenDP':>10} {'sampling':>10}")
    for size in (100, 1_000, 10_000):
        for rho in (0.01, 0.1, 1.0):
            found: dict[str, list[float]] = {name: [] for name in ("tree", "clamped", "opendp")}
            sampling = []
            for seed in range(repeats):
                values = (np.random.default_rng(seed).pareto(1.1, size) * 100).astype(np.int64)
                exact = float(np.quantile(values, P))
                for name, answer in answers(values, rho).items():
                    found[name].append(abs(answer - exact) / exact)
                sampling.append(abs(exact - 100 * (2 ** (1 / 1.1) - 1)) / exact)
            cells = " ".join(f"{np.mean(each):10.3f}" for each in (*found.values(), sampling))
            print(f"{size:>8} {rho:>6} {cells}")


def answers(values: np.ndarray[Any, np.dtype[np.int64]], rho: float) -> dict[str, float]:
    """Our tree on a log grid; the same on a linear grid clamped at 10,000, as one would without a log grid; OpenDP's exponential
    mechanism over the points of our log grid."""
    from recordwise.mechanisms.quantile import Grid

    log, linear = Grid.log(1, 1e9, bits=10), Grid.linear(0, 10_000, bits=10)
    return {"tree": tree(values, log, rho), "clamped": tree(values, linear, rho), "opendp": opendp(values, log, rho)}


def tree(values: np.ndarray[Any, np.dtype[np.int64]], grid: Any, rho: float) -> float:
    from fractions import Fraction

    from recordwise.mechanisms.quantile import TreeQuantile

    mechanism = TreeQuantile(grid=grid, rho=rho)
    leaves = np.bincount(grid.bins(values, Fraction(1)), minlength=grid.size)[None, :]
    found = mechanism.estimate(mechanism.release(leaves), p=P)
    return float(grid.steps(Fraction(1))[int(found.value[0])])


def opendp(values: np.ndarray[Any, np.dtype[np.int64]], grid: Any, rho: float) -> float:
    from fractions import Fraction

    import opendp.prelude as dp

    dp.enable_features("contrib")
    candidates = sorted({float(point) for point in grid.steps(Fraction(1))})
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()

    def build(scale: float) -> Any:
        return space >> dp.m.then_private_quantile(dp.zero_concentrated_divergence(), candidates, P, scale)

    scale = dp.binary_search_param(build, d_in=1, d_out=rho, T=float)
    return float(build(scale)(values.astype(float).tolist()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=10**9)
    parser.add_argument("--occupied", type=int, default=10**6)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--groups", type=int, default=3000)
    parser.add_argument(
        "--errors", type=int, default=200, help="samples per size and budget; 0 leaves the comparison out"
    )
    given = parser.parse_args()
    selection(given.cells, given.occupied)
    medians(given.rows, given.groups)
    if given.errors:
        errors(given.errors)


if __name__ == "__main__":
    main()
