"""A hundred million rows and five million cells, beside plain SQL for the same totals at the same cells: seconds and peak memory.

    python -m benchmarks.large [--rows 100000000] [--cells 5000000] [--only duckdb spark] [--folder DIR]

Needs 2 GB of disk. Every measurement is a process of its own. The peak of a DuckDB process is that of Python and engine together;
Spark's engine is a Java process of its own, whose peak is read from the system when the work is done.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.goals import record

KINDS = 20
MEMORY, JAVA_MEMORY = "4GB", "6g"
SELECT = """
SELECT ((i * 7919) % {rows}) AS id, lpad(CAST(hash(i) % {areas} AS VARCHAR), 6, '0') AS area,
       lpad(CAST(hash(i + 1) % {kinds} AS VARCHAR), 2, '0') AS kind,
       CAST(4 / pow((hash(i + 2) % 1000000 + 1) / 1000000.0, 0.8) AS BIGINT) AS emp
FROM range({rows}) AS r(i)
"""
TOTALS = """SELECT k.area, k.kind, coalesce(s.n, 0) AS n, coalesce(s.emp, 0) AS emp FROM pairs AS k
    LEFT JOIN (SELECT area, kind, COUNT(*) AS n, SUM(emp) AS emp FROM {source} GROUP BY area, kind) AS s
    ON k.area = s.area AND k.kind = s.kind ORDER BY 1, 2"""


def write(path: Path, rows: int, cells: int) -> None:
    import duckdb

    settings: dict[str, Any] = {"memory_limit": "1GB", "preserve_insertion_order": False}
    with duckdb.connect(config=settings) as connection:
        made = connection.sql(SELECT.format(rows=rows, areas=cells // KINDS, kinds=KINDS))
        made.write_parquet(str(path), compression="zstd")


def pairs(cells: int) -> Any:
    """The public cells, as Arrow."""
    import recordwise as rw

    areas = [f"{number:06d}" for number in range(cells // KINDS)]
    return rw.Keys.product(area=areas, kind=[f"{number:02d}" for number in range(KINDS)])


def plain_duckdb(path: str, cells: int) -> Callable[[], object]:
    import duckdb

    connection = duckdb.connect(config={"memory_limit": MEMORY, "preserve_insertion_order": False})
    connection.register("pairs", pairs(cells).table)
    return lambda: connection.sql(TOTALS.format(source=f"read_parquet('{path}')")).to_arrow_table()


def plain_spark(path: str, cells: int) -> Callable[[], object]:
    spark, keys = spark_session(), pairs(cells).table
    import pyarrow as pa

    text = pa.schema([("area", pa.string()), ("kind", pa.string())])
    spark.createDataFrame(keys.cast(text)).createOrReplaceTempView("pairs")
    return lambda: spark.sql(TOTALS.format(source=f"parquet.`{path}`")).toArrow()


def spark_session() -> Any:
    from pyspark.sql import SparkSession

    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    sizes = {
        "spark.driver.memory": JAVA_MEMORY,
        "spark.driver.maxResultSize": "2g",
        "spark.sql.shuffle.partitions": "16",
    }
    return SparkSession.builder.master("local[2]").config(map=quiet | sizes).getOrCreate()


def private(path: str, cells: int, **how: Any) -> tuple[Callable[[], object], Callable[[], object]]:
    """Validation, and the private query."""
    import recordwise as rw

    warnings.simplefilter("ignore")
    asked = rw.query().group_by("area", "kind", keys=pairs(cells))
    asked = asked.count(rw.Gaussian(rho="0.1")).sum("emp", rw.UnitSplit(at=50, rho="0.1"))
    roles: dict[str, Any] = {"unit": "id", "measures": {"emp": 1}, "columns": {"area": "text", "kind": "text"}}
    session = rw.Session(path, tuned_on="synthetic", memory_limit=MEMORY, **roles, **how)
    return session.validate, lambda: session.run(asked)


def measure(kind: str, path: str, cells: int) -> dict[str, float]:
    """One process: seconds of each step, and peaks of memory in MB."""
    steps: dict[str, Callable[[], object]]
    if kind.startswith("plain"):
        steps = {"query": {"plain_duckdb": plain_duckdb, "plain_spark": plain_spark}[kind](path, cells)}
    else:
        how = {"engine": "spark", "spark": spark_session()} if kind == "our_spark" else {}
        validate, run = private(path, cells, **how)
        steps = {"validation": validate, "query": run}
    found = {}
    for name, step in steps.items():
        began = time.perf_counter()
        step()
        found[name] = time.perf_counter() - began
    return found | {"python": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "java": java_peak()}


def java_peak() -> float:
    """The largest resident memory that a Java process started by this one has had, in MB; 0 without one."""
    peaks = [0.0]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            lines = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        except (OSError, ValueError):
            continue
        if lines["Name"].strip() == "java" and int(lines["PPid"]) == os.getpid():
            peaks.append(int(lines["VmHWM"].split()[0]) / 1024)
    return max(peaks)


def compare(path: Path, cells: int, engines: list[str]) -> None:
    for engine in engines:
        found = {}
        for kind in (f"plain_{engine}", f"our_{engine}"):
            command = [sys.executable, "-m", "benchmarks.large", "--cells", str(cells), "--measure", kind, str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[kind] = json.loads(done.stdout.splitlines()[-1])
            print(kind, ", ".join(f"{name} {value:.1f}" for name, value in found[kind].items()), flush=True)
        plain, ours = found[f"plain_{engine}"], found[f"our_{engine}"]
        record(f"large_{engine}", ours["query"] / plain["query"])
        record(f"large_{engine}_validation", ours["validation"] / plain["query"])
        record(f"large_{engine}_memory", (ours["python"] + ours["java"]) / (plain["python"] + plain["java"]))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--cells", type=int, default=5_000_000)
    parser.add_argument("--only", nargs="+", choices=["duckdb", "spark"], default=["duckdb", "spark"])
    parser.add_argument("--folder", help="where to write the rows; a temporary folder unless given")
    parser.add_argument("--measure", nargs=2)
    chosen = parser.parse_args(arguments)
    if chosen.measure:
        kind, path = chosen.measure
        print(json.dumps(measure(kind, path, chosen.cells)))
        return
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        path = Path(folder) / "rows.parquet"
        write(path, chosen.rows, chosen.cells)
        print(f"{chosen.rows:,} rows, {path.stat().st_size / 1e6:.0f} MB; {chosen.cells:,} cells", flush=True)
        compare(path, chosen.cells, chosen.only)


if __name__ == "__main__":
    main()
