"""The jobs. Each takes a folder and by what its size is divided, and says whether its target was kept."""

import json
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import recordwise as rw
from load.tables import write_rows
from recordwise.exact import functions
from recordwise.ledger.ledger import Ledger
from recordwise.policy import Policy, among, constant, gaussian_sum, gaussian_transform, split
from recordwise.release.verify import verify

ROWS, CELLS, QUERIES, CHARGES, PROCESSES = 100_000_000, 5_000_000, 10_000, 1_000, 32
MEMORY_LIMIT_MB = 2_000
ADMISSION_SECONDS = 0.05


def rows(folder: str, divided: int) -> dict[str, Any]:
    """A release from many rows within two gigabytes, ids checked for uniqueness, spilling as it must."""
    path = Path(folder) / "rows.parquet"
    began = time.monotonic()
    write_rows(path, ROWS // divided)
    written = time.monotonic() - began
    keys = rw.Keys.product(county=[f"{number:05d}" for number in range(3_000)], naics=[f"{n:02d}" for n in range(20)])
    asked = rw.query().group_by("county", "naics", keys=keys).count(rw.Gaussian(rho="0.1"), alias="n")
    asked = asked.sum("emp", rw.UnitSplit(at=50, rho="0.1")).sum("pay", rw.LogTransform(offset=1000, sigma="0.2"))
    roles: dict[str, Any] = {"unit": "id", "measures": {"emp": 1, "pay": 1}, "tuned_on": "synthetic"}
    with rw.Session(path, ledger=Path(folder) / "l", memory_limit="1GB", **roles) as session:
        began = time.monotonic()
        session.validate()
        validated = time.monotonic() - began
        began = time.monotonic()
        session.run(asked).save(Path(folder) / "out")
        released = time.monotonic() - began
    sound = verify(Path(folder) / "l", against=[Path(folder) / "out"]) == []
    peak = _peak()
    return {
        "rows": ROWS // divided,
        "file_mb": round(path.stat().st_size / 1e6),
        "writing_seconds": round(written, 1),
        "validating_seconds": round(validated, 1),
        "releasing_seconds": round(released, 1),
        "kept": sound and peak <= MEMORY_LIMIT_MB,
    }


def cells(folder: str, divided: int) -> dict[str, Any]:
    """Many cells in one release, drawn, saved and verified."""
    path, count = Path(folder) / "rows.parquet", CELLS // divided
    write_rows(path, 1_000_000 // divided)
    keys = rw.Keys.product(
        county=[f"{number:05d}" for number in range(count // 20)], naics=[f"{n:02d}" for n in range(20)]
    )
    asked = rw.query().group_by("county", "naics", keys=keys).count(rw.Gaussian(rho="0.1"), alias="n")
    asked = asked.sum("emp", rw.UnitSplit(at=50, rho="0.1"))
    roles: dict[str, Any] = {"unit": "id", "measures": {"emp": 1, "pay": 1}, "tuned_on": "synthetic"}
    # With few cells most records are in none of them.
    roles["max_outside"] = "accept"
    with rw.Session(path, ledger=Path(folder) / "l", **roles) as session:
        began = time.monotonic()
        release = session.run(asked)
        drawn = time.monotonic() - began
        began = time.monotonic()
        release.save(Path(folder) / "out")
        saved = time.monotonic() - began
    sound = verify(Path(folder) / "l", against=[Path(folder) / "out"]) == []
    return {
        "cells": release.table.num_rows,
        "values": 2 * release.table.num_rows,
        "running_seconds": round(drawn, 1),
        "saving_seconds": round(saved, 1),
        "kept": sound and release.table.num_rows == count // 20 * 20,
    }


def question(number: int) -> Policy:
    """A query of an agency's year: a count, or a sum of one of several kinds, for a part of the records or all."""
    part: list[Policy] = [
        constant("1/100"),
        gaussian_sum("emp", sigma=500),
        split("1/1000", {"emp": 50}),
        gaussian_transform("pay", functions.log(functions.x / 1000 + 1), sigma="1/2", grid="1/1048576"),
    ]
    chosen = part[number % len(part)] * (1 + number % 3)
    return chosen.where(among("sector", [f"{number % 10}"])) if number % 5 == 0 else chosen


def queries(folder: str, divided: int) -> dict[str, Any]:
    """Many charges in one ledger: how long the last ones take to be admitted and committed."""
    path, count = Path(folder) / "l", QUERIES // divided
    budget = sum((question(number) for number in range(60)), Policy()) * QUERIES
    ledger, bare = Ledger(path, dataset="d", budget=budget), BareTable(Path(folder) / "bare")
    took, processor, beside = [], [], []
    for number in range(count):
        began, used = time.perf_counter(), time.process_time()
        ledger.check(question(number), query=f"q{number}")
        charge = ledger.charge(question(number), query=f"q{number}", details=[{"statistics": ["n"]}])
        took.append(time.perf_counter() - began)
        processor.append(time.process_time() - used)
        ledger.record_release(charge, digest="d" * 64, privacy_label="private")
        beside.append(bare.commit())
    ledger.close()
    began, used = time.perf_counter(), time.process_time()
    ledger = Ledger(path, dataset="d", budget=budget)
    ledger.charge(question(0), query="first after opening")
    reopened, reopened_processor = time.perf_counter() - began, time.process_time() - used
    ledger.close()
    tenth = max(1, count // 10)
    last = took[-tenth:]
    return {
        "queries": count,
        "median_ms_of_the_first_tenth": _ms(took[:tenth]),
        "median_ms_of_the_last_tenth": _ms(last),
        "p99_ms_of_the_last_tenth": round(1000 * sorted(last)[int(0.99 * (tenth - 1))], 2),
        "processor_ms_of_the_first_tenth": _ms(processor[:tenth]),
        "processor_ms_of_the_last_tenth": _ms(processor[-tenth:]),
        "ms_of_a_bare_commit_beside_it": _ms(beside[-tenth:]),
        "ms_of_the_first_after_opening": round(1000 * reopened, 1),
        "processor_ms_of_the_first_after_opening": round(1000 * reopened_processor, 1),
        "ledger_mb": round(path.stat().st_size / 1e6, 1),
        "kept": statistics.median(last) < ADMISSION_SECONDS,
    }


def _ms(seconds: list[float]) -> float:
    return round(1000 * statistics.median(seconds), 2)


class BareTable:
    """A table of SQLite with the same settings, into which one row of a charge's size is committed: what the disk itself costs."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("CREATE TABLE rows (text TEXT)")

    def commit(self) -> float:
        """Seconds for one row."""
        began = time.perf_counter()
        self._connection.execute("INSERT INTO rows VALUES (?)", ("x" * 900,))
        return time.perf_counter() - began


def processes(folder: str, divided: int) -> dict[str, Any]:
    """Many processes on one ledger, charging until the budget is spent: never more, never fewer."""
    script, path = Path(__file__).parents[1] / "tests" / "ledger" / "chargers.py", Path(folder) / "l"
    count = max(PROCESSES, CHARGES // divided)
    command = [sys.executable, str(script), str(path), str(PROCESSES), f"1/{count}", "1"]
    began = time.monotonic()
    done = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    took = time.monotonic() - began
    ledger = Ledger.existing(path)
    exact = ledger.spent() == constant(1) and sum(done["counts"]) == count
    ledger.close()
    return {
        "processes": PROCESSES,
        "charges": sum(done["counts"]),
        "fewest_and_most_by_one": [min(done["counts"]), max(done["counts"])],
        "charging_seconds": round(took, 1),
        "kept": exact and done["codes"] == [0] * PROCESSES and verify(path) == [],
    }


def _peak() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


JOBS: dict[str, Callable[[str, int], dict[str, Any]]] = {
    "queries": queries,
    "processes": processes,
    "cells": cells,
    "rows": rows,
}
