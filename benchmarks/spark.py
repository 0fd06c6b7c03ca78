"""A private query on Spark beside plain Spark SQL for the same totals at the same keys, and DuckDB beside both: ratios, no seconds.

    python -m benchmarks.spark [--rows 8000000] [--repeats 3] [--master local[2]] [--one-level]

All kinds run in turns in one Spark, so that a busy machine and a warm compiler serve all of them; the best of each counts.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.goals import record
from benchmarks.queries import LEVELS, MEASURES, SUMS, plan_of

ONE = (3,)
SUM_KINDS = {
    "BIGINT, which can overflow": "SUM({0})",
    "high and low halves": "SUM(SHIFTRIGHT(CAST({0} AS BIGINT), 31)), SUM(CAST({0} AS BIGINT) & 2147483647)",
    "DECIMAL(38, 0)": "SUM(CAST({0} AS DECIMAL(38, 0)))",
}


def best_in_turns(runs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The best wall time of each, after one round that nobody counts."""
    found: dict[str, float] = {}
    for turn in range(repeats + 1):
        for name, run in runs.items():
            started = time.perf_counter()
            run()
            taken = time.perf_counter() - started
            if turn:
                found[name] = min(found.get(name, taken), taken)
    return found


def plain(spark: Any, path: str, levels: tuple[int, ...]) -> Callable[[], object]:
    """By hand: a group-by for each level, joined with the keys of that level, which Spark already has."""
    statements = [
        f"""SELECT k.county, k.code, {", ".join(f"coalesce(s.{name}, 0) AS {name}" for name in ("n", *MEASURES))}
            FROM (SELECT DISTINCT county, substring(naics, 1, {level}) AS code FROM pairs) AS k
            LEFT JOIN (SELECT county, substring(naics, 1, {level}) AS code, {SUMS} FROM parquet.`{path}` GROUP BY 1, 2) AS s
            ON k.county = s.county AND k.code = s.code ORDER BY 1, 2"""
        for level in levels
    ]
    return lambda: [spark.sql(statement).toArrow() for statement in statements]


def session_on(path: str, **how: Any) -> Any:
    from recordwise.session import Session

    return Session(
        path,
        unit="estab_id",
        measures=dict.fromkeys(MEASURES, 1),
        columns={"county": "text", "naics": "text"},
        firm="firm_id",
        tuned_on="synthetic",
        **how,
    )


def sums(spark: Any, path: str, repeats: int) -> None:
    """What an exact sum costs: the same aggregate with three kinds of sums."""
    texts = {
        kind: f"SELECT county, substring(naics, 1, 3), COUNT(*), {', '.join(text.format(m) for m in MEASURES)} "
        f"FROM parquet.`{path}` GROUP BY 1, 2"
        for kind, text in SUM_KINDS.items()
    }
    found = best_in_turns(
        {
            kind: lambda text=text: spark.sql(text).write.format("noop").mode("overwrite").save()
            for kind, text in texts.items()
        },
        repeats,
    )
    base = found["BIGINT, which can overflow"]
    for kind, taken in found.items():
        print(f"sums of {kind}: {taken / base:.2f}", flush=True)


def compare(spark: Any, path: str, levels: tuple[int, ...], repeats: int) -> None:
    plan = plan_of(levels)
    with session_on(path, engine="spark", spark=spark) as there, session_on(path) as here:
        checked = best_in_turns({"spark": there.validate, "duckdb": here.validate}, repeats)
        validation, of_duckdb = checked["spark"], checked["duckdb"]
        before = peak()
        runs = {
            "plain": plain(spark, path, levels),
            "exact": lambda: there._engine.totals(plan),
            "private": lambda: there.run(*plan.queries),
            "duckdb": lambda: here.run(*plan.queries),
        }
        found = best_in_turns(runs, repeats)
    base, count = found["plain"], len(levels)
    print(f"{count} level(s): exact pass / plain Spark SQL {found['exact'] / base:.2f}")
    print(f"{count} level(s): private query / plain Spark SQL {found['private'] / base:.2f}  (goal 1.3)")
    print(f"{count} level(s): validation / plain Spark SQL {validation / base:.2f}")
    if count == 1:
        record("validation_spark", validation / base)
    print(f"{count} level(s): with its validation {(found['private'] + validation) / base:.2f}")
    print(f"{count} level(s): private query on DuckDB / on Spark {found['duckdb'] / found['private']:.2f}")
    print(f"{count} level(s): validation on DuckDB / on Spark {of_duckdb / validation:.2f}")
    print(f"{count} level(s): Python of the driver, peak {peak():.0f} MB, of which {before:.0f} MB before the queries")
    print(f"(for orientation: plain Spark SQL took {base:.2f} s here)", flush=True)


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--one-level", action="store_true")
    chosen = parser.parse_args(arguments)
    from pyspark.sql import SparkSession

    from recordwise.synthetic import public_keys, write_establishments

    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    builder = SparkSession.builder.master(chosen.master).config(map=quiet).config("spark.driver.memory", "3g")
    spark = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    spark.createDataFrame(public_keys().select(["county", "naics"])).cache().createOrReplaceTempView("pairs")
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "establishments.parquet")
        write_establishments(path, chosen.rows)
        sums(spark, path, chosen.repeats)
        for levels in (ONE,) if chosen.one_level else (ONE, LEVELS):
            compare(spark, path, levels, chosen.repeats)
    spark.stop()


if __name__ == "__main__":
    main()
