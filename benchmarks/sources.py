"""Records from PostgreSQL and from SAS files beside reading them by hand into DuckDB for the same totals, in one run: ratios.

    python -m benchmarks.sources [--rows 1000000]

By hand: the whole result of the driver in memory, no check of any record, the same GROUP BY. Ours copies in bounded memory,
validates every record and computes exact totals at the keys. Every measurement is a process of its own; the best of three counts.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MEASURES = ("emp", "payann", "payqtr1")
COLUMNS = ("estab_id", "firm_id", "county", "naics", *MEASURES)
REPEATS = 3
TABLE = "establishments"
GROUPED = (
    "SELECT county, left(naics, 3), COUNT(*), "
    + ", ".join(f"SUM({name})" for name in MEASURES)
    + " FROM {} GROUP BY ALL"
)


def plan_of() -> Any:
    from recordwise.mechanisms import Gaussian
    from recordwise.plan import Keys, Plan, Prefix, Schema
    from recordwise.plan.query import query
    from recordwise.synthetic import public_keys

    schema = Schema.of(
        unit="estab_id",
        firm="firm_id",
        measures=dict.fromkeys(MEASURES, 1),
        columns={"county": "text", "naics": "text"},
    )
    asked = query().group_by("county", Prefix("naics", 3), keys=Keys.of(public_keys())).count(Gaussian(rho=1))
    for measure in MEASURES:
        asked = asked.sum(measure, Gaussian(sigma=100))
    return Plan(schema=schema, queries=(asked,))


def ours(source: Any) -> Callable[[], None]:
    from recordwise.engines import DuckDB

    plan = plan_of()

    def run() -> None:
        with DuckDB(source, plan.schema) as engine:
            engine.totals(plan)

    return run


def ours_postgres(uri: str) -> Callable[[], None]:
    from recordwise.plan.sources import Postgres

    return ours(Postgres(uri, table=TABLE))


def plain_postgres(uri: str) -> Callable[[], None]:
    import duckdb
    from adbc_driver_postgresql import dbapi

    def run() -> None:
        with dbapi.connect(uri) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(COLUMNS)} FROM {TABLE}")
            records = cursor.fetch_arrow_table()
        with duckdb.connect() as made:
            made.register("records", records)
            made.sql(GROUPED.format("records")).to_arrow_table()

    return run


def plain_sas(path: str) -> Callable[[], None]:
    import duckdb
    import pyarrow as pa
    import pyreadstat

    def run() -> None:
        columns, _ = pyreadstat.read_xport(path, usecols=list(COLUMNS), output_format="dict")
        with duckdb.connect() as made:
            made.register("records", pa.table(columns))
            made.sql(GROUPED.format("records")).to_arrow_table()

    return run


KINDS: dict[str, Callable[[str], Callable[[], None]]] = {
    "ours_postgres": ours_postgres,
    "plain_postgres": plain_postgres,
    "ours_sas": ours,
    "plain_sas": plain_sas,
}


def measure(kind: str, source: str) -> None:
    run = KINDS[kind](source)
    started = time.perf_counter()
    run()
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "peak": peak}))


def compare(name: str, source: str) -> None:
    """Ours and by hand in turns."""
    runs: dict[str, list[dict[str, float]]] = {"ours": [], "plain": []}
    for _ in range(REPEATS):
        for who, found in runs.items():
            command = [sys.executable, "-m", "benchmarks.sources", "--measure", f"{who}_{name}", source]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found.append(json.loads(done.stdout))
    best = {who: {each: min(run[each] for run in found) for each in found[0]} for who, found in runs.items()}
    ratios = {each: best["ours"][each] / best["plain"][each] for each in ("seconds", "peak")}
    print(
        f"{name}: copy, validation and totals / by hand: wall {ratios['seconds']:.2f}, peak memory {ratios['peak']:.2f}",
        end=" ",
    )
    print(f"(for orientation: by hand {best['plain']['seconds']:.2f} s, {best['plain']['peak']:.0f} MB here)")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--measure", nargs=2)
    chosen = parser.parse_args(arguments)
    if chosen.measure:
        measure(*chosen.measure)
        return
    sys.path.insert(0, str(HERE.parent / "tests"))
    from engines.postgres_server import programs, running_server
    from recordwise.synthetic import establishments

    table = establishments(chosen.rows).select(list(COLUMNS))
    if programs() is None:
        print("LEFT OUT: PostgreSQL is not installed")
    else:
        with running_server() as server:
            server.ingest(TABLE, table)
            compare("postgres", server.uri())
    with tempfile.TemporaryDirectory() as folder:
        import pyreadstat

        path = str(Path(folder) / "establishments.xpt")
        pyreadstat.write_xport(table.to_pandas(), path, file_format_version=8)
        compare("sas", path)


if __name__ == "__main__":
    main()
