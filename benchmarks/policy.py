"""Losses of 8 million records under a sum of five policies: numpy against one pass over the columns, DuckDB against a plain sum."""

import argparse
import resource
import time
import tracemalloc
from collections.abc import Callable
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow

from recordwise.exact.functions import log, x
from recordwise.policy import Policy, additive, by, constant, gaussian_sum, gaussian_transform, split

INDUSTRIES = ["Mining", "Retail", "Farming", "Banking"]
Columns = dict[str, np.ndarray]


def five_policies() -> dict[str, Policy]:
    """A count, two sums with thresholds (one by industry), a transform and fat-tailed noise: three measures, one group."""
    at = by("industry", {"Mining": 500, "Retail": 50}, default=100)
    return {
        "count": constant("0.05"),
        "split sum by industry": split("0.1", {"emp": at, "payroll": 5_000_000}),
        "Gaussian sum": gaussian_sum("hours", sigma=4000),
        "log transform": gaussian_transform("payroll", log(x + 1000), sigma="0.2", grid=Fraction(1, 2**22)),
        "fourth root": additive("hours", (x / 10 + 1) ** "1/4"),
    }


def establishments(rows: int) -> Columns:
    rng = np.random.default_rng(1)
    emp = np.floor(rng.pareto(1.1, rows) * 5).clip(0, 2e6).astype(np.int64)
    columns = {
        "emp": emp,
        "hours": emp * rng.integers(1000, 2000, rows),
        "payroll": emp * rng.integers(20_000, 90_000, rows),
    }
    return columns | {"industry": rng.integers(0, len(INDUSTRIES), rows)}


def one_pass(columns: Columns) -> float:
    """The yardstick: the sum of squares of the three measures, as doubles."""
    return sum(float(np.square(columns[name].astype(np.float64)).sum()) for name in ("emp", "hours", "payroll"))


def seconds(action: Callable[[], object], times: int = 3) -> float:
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def report(rows: int) -> None:
    columns = establishments(rows)
    base = seconds(lambda: one_pass(columns))
    print(f"numpy, {rows:,} records, one pass of squares over three measures: {base:.3f} s = 1.0")
    texts = np.array(INDUSTRIES)[columns["industry"]]
    table = {
        **{name: columns[name] for name in ("emp", "hours", "payroll")},
        "industry": pyarrow.array(texts).dictionary_encode(),
    }
    policies = five_policies()
    for name, policy in policies.items():
        print(f"  {name:24} {seconds(lambda p=policy: p.loss(table), 2) / base:6.1f} passes")
    total = sum(policies.values(), Policy())
    print(f"  {'sum of the five':24} {seconds(lambda: total.loss(table)) / base:6.1f} passes")
    tracemalloc.start()
    total.loss(table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(
        f"  peak memory beyond the table: {peak / rows:.1f} bytes a record ({peak / 2**20:.0f} MiB; the result alone is 8)"
    )
    in_duckdb(table, total, policies)
    print(f"peak memory of the whole run: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f} MiB")


def in_duckdb(table: dict[str, object], total: Policy, policies: dict[str, Policy]) -> None:
    connection = duckdb.connect()
    connection.register("arrow", pyarrow.table(table))
    connection.execute("CREATE TABLE records AS SELECT emp, hours, payroll, industry::VARCHAR AS industry FROM arrow")
    squares = ", ".join(f"SUM({name}::DOUBLE * {name})" for name in ("emp", "hours", "payroll"))
    plain = f"SELECT {squares}, COUNT(industry) FROM records"
    base = seconds(lambda: connection.execute(plain).fetchall())
    print(f"DuckDB, a plain aggregate of the same columns: {base:.3f} s = 1.0")
    for name, policy in [*policies.items(), ("sum of the five", total)]:
        query = f"SELECT SUM(loss), MAX(loss) FROM (SELECT {policy.to_sql('duckdb')} AS loss FROM records)"
        print(f"  {name:24} {seconds(lambda q=query: connection.execute(q).fetchall(), 2) / base:6.1f} aggregates")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000_000)
    report(parser.parse_args().rows)


if __name__ == "__main__":
    main()
