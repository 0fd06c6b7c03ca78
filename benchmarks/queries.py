"""The exact pass of a plan beside plain DuckDB SQL for the same totals at the same keys, in one run: ratios, not seconds.

    python -m benchmarks.queries [--rows 8000000] [--growth]

Every measurement is a process of its own, so that peak memory is its own too; the smallest of three times counts.
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

from benchmarks.goals import record

MEASURES = ("emp", "payann", "payqtr1")
LEVELS = (2, 3, 4, 5, 6)
REPEATS = 3
ROUNDS = 3
SMALL = 2_000_000
SUMS = "COUNT(*) AS n, " + ", ".join(f"SUM({measure}) AS {measure}" for measure in MEASURES)


def wide_keys() -> Any:
    """Every county with every three-digit industry: about 264,000 cells, of which most are empty."""
    from recordwise.plan import Keys
    from recordwise.synthetic import public_keys

    pairs = public_keys()
    industries = sorted({code[:3] for code in pairs["naics"].to_pylist()})
    return Keys.product(county=sorted(set(pairs["county"].to_pylist())), naics=industries)


def plan_of(levels: tuple[int, ...]) -> Any:
    """A count and three sums at the public pairs of each level; () stands for all pairs of county and three-digit industry."""
    from recordwise.mechanisms import Gaussian
    from recordwise.plan import Keys, Plan, Prefix, Schema
    from recordwise.plan.query import query
    from recordwise.synthetic import public_keys

    schema = Schema.of(
        unit="estab_id",
        measures=dict.fromkeys(MEASURES, 1),
        columns={"county": "text", "naics": "text"},
        firm="firm_id",
    )
    keys = Keys.of(public_keys()) if levels else wide_keys()
    asked = query().group_by("county", keys=keys).levels(*(Prefix("naics", each) for each in levels or (3,)))
    asked = asked.count(Gaussian(rho=1))
    for measure in MEASURES:
        asked = asked.sum(measure, Gaussian(sigma=100))
    return Plan(schema=schema, queries=(asked,))


def ours(path: str, levels: tuple[int, ...]) -> Callable[[], object]:
    from recordwise.engines import DuckDB

    plan = plan_of(levels)
    engine = DuckDB(path, plan.schema)
    started, used = time.perf_counter(), time.process_time()
    engine.validate()
    found = {"validation": time.perf_counter() - started, "validation_processor": time.process_time() - used}
    print(json.dumps(found), file=sys.stderr)
    return lambda: engine.totals(plan)


def private(path: str, levels: tuple[int, ...]) -> Callable[[], object]:
    """The whole private query: budget check, exact pass, charge, noise, estimates and intervals."""
    from recordwise.session import Session

    plan = plan_of(levels)
    session = Session(
        path,
        unit="estab_id",
        measures=dict.fromkeys(MEASURES, 1),
        columns={"county": "text", "naics": "text"},
        firm="firm_id",
        tuned_on="synthetic",
    )
    session.validate()
    return lambda: session.run(*plan.queries)


def plain(path: str, levels: tuple[int, ...]) -> Callable[[], object]:
    """What somebody would write by hand: a group-by for each level and a join with the keys of that level, unsorted.

    ``substring`` rather than ``left``: DuckDB runs it a quarter faster, and the comparison is to be with the better of the two.
    """
    import duckdb

    from recordwise.synthetic import public_keys

    connection = duckdb.connect(config={"memory_limit": "700MB"})
    connection.register("pairs", public_keys() if levels else wide_keys().table)
    statements = [
        f"""SELECT k.county, k.code, {", ".join(f"coalesce(s.{name}, 0) AS {name}" for name in ("n", *MEASURES))}
            FROM (SELECT DISTINCT county, left(naics, {level}) AS code FROM pairs) AS k
            LEFT JOIN (SELECT county, left(naics, {level}) AS code, {SUMS} FROM read_parquet('{path}') GROUP BY ALL) AS s
            USING (county, code) ORDER BY ALL"""
        for level in levels or (3,)
    ]
    return lambda: [connection.sql(statement).to_arrow_table() for statement in statements]


def measure(kind: str, path: str, levels: tuple[int, ...]) -> None:
    """One process: the best wall time, the best processor time (steadier on a shared machine) and the peak memory."""
    run = {"ours": ours, "private": private, "plain": plain}[kind](path, levels)
    walls, processors = [], []
    for _ in range(REPEATS):
        started, used = time.perf_counter(), time.process_time()
        run()
        walls.append(time.perf_counter() - started)
        processors.append(time.process_time() - used)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": min(walls), "processor": min(processors), "peak": peak}))


def in_process(kind: str, path: str, levels: tuple[int, ...]) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.queries", "--measure", kind, path, ",".join(map(str, levels))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    if kind == "ours":
        found |= json.loads(done.stderr.splitlines()[-1])
    return found


def alternately(path: str) -> dict[tuple[str, int], dict[str, float]]:
    """Every kind at all pairs, at one level and at five, in turns, so that a busy machine slows all; the best of each counts."""
    kinds = [(kind, levels) for levels in ((), (3,), LEVELS) for kind in ("ours", "private", "plain")]
    rounds = [{(kind, len(levels)): in_process(kind, path, levels) for kind, levels in kinds} for _ in range(ROUNDS)]
    return {
        which: {number: min(each[which][number] for each in rounds) for number in rounds[0][which]}
        for which in rounds[0]
    }


def compare(path: str) -> dict[tuple[str, int], dict[str, float]]:
    """One level and five levels, ours beside plain."""
    found = alternately(path)

    def ratio(above: tuple[str, int], below: tuple[str, int]) -> str:
        wall, processor = (found[above][each] / found[below][each] for each in ("seconds", "processor"))
        return f"wall {wall:.2f}, processor {processor:.2f}"

    print(f"all pairs:   private query / plain SQL {ratio(('private', 0), ('plain', 0))}  (goal 1.3)")
    print(f"one level:   exact pass / plain SQL  {ratio(('ours', 1), ('plain', 1))}")
    print(f"five levels: exact pass / plain SQL  {ratio(('ours', 5), ('plain', 5))}")
    print(f"one level:   private query / plain SQL {ratio(('private', 1), ('plain', 1))}  (goal 1.3)")
    print(f"five levels: private query / plain SQL {ratio(('private', 5), ('plain', 5))}")
    print(f"five levels / one level, private     {ratio(('private', 5), ('private', 1))}  (goal 2)")
    print(f"five levels / one level, exact pass  {ratio(('ours', 5), ('ours', 1))}")
    print(f"five levels / one level, plain       {ratio(('plain', 5), ('plain', 1))}")
    wall = found["ours", 1]["validation"] / found["plain", 1]["seconds"]
    processor = found["ours", 1]["validation_processor"] / found["plain", 1]["processor"]
    print(f"validation / plain SQL, one level    wall {wall:.2f}, processor {processor:.2f}")
    print("peak memory: " + ", ".join(f"{kind} at {n} {each['peak']:.0f} MB" for (kind, n), each in found.items()))
    print(f"(for orientation: plain SQL for one level took {found['plain', 1]['seconds']:.2f} s here)")
    return found


def keep(found: dict[tuple[str, int], dict[str, float]], *, small: bool) -> None:
    """The numbers that have a goal."""
    if small:
        record("query_small", found["private", 0]["seconds"] / found["plain", 0]["seconds"])
        return
    record("query", found["private", 0]["seconds"] / found["plain", 0]["seconds"])
    record("levels", found["private", 5]["seconds"] / found["private", 1]["seconds"])
    record("validation", found["ours", 1]["validation"] / found["plain", 1]["seconds"])


def growth(directory: Path, rows: int) -> None:
    """Time by number of rows. The keys (350,000 pairs at five levels) cost the same whatever the rows, so it is affine."""
    from recordwise.synthetic import write_establishments

    found = {}
    for part in (8, 4, 2, 1):
        path = str(directory / f"{part}.parquet")
        write_establishments(path, rows // part)
        found[part] = min(in_process("ours", path, LEVELS)["processor"] for _ in range(ROUNDS))
    for part, used in found.items():
        print(
            f"growth, five levels: {rows // part:>10,} rows, processor time / that at {rows:,} rows {used / found[1]:.2f}"
        )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--measure", nargs=3)
    chosen = parser.parse_args(arguments)
    if chosen.measure:
        kind, path, levels = chosen.measure
        measure(kind, path, tuple(int(each) for each in levels.split(",") if each))
        return
    from recordwise.synthetic import write_establishments

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "establishments.parquet"
        for rows in (SMALL, chosen.rows):
            write_establishments(path, rows)
            print(f"{rows:,} rows")
            keep(compare(str(path)), small=rows == SMALL)
        if chosen.growth:
            growth(Path(directory), chosen.rows)


if __name__ == "__main__":
    main()
