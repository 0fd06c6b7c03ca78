"""What an agency waits for: releases with basic tables, and planning of sized cells, each in a process of its own.

    python -m benchmarks agency

Times are processor time of the whole work of a part, without imports; releases are measured with the extra ``fast`` and without
it. The table in docs/performance.md between the two marks is written by it.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.goals import record, rows

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
START, END = "<!-- measured by python -m benchmarks agency -->", "<!-- end -->"
SIZED = 35_000
PLAN = """\
dataset = "sized"
source = "not read"
ledger = "sized.ledger"
tuned_on = "synthetic"

[schema]
unit = "estab_id"
measures.emp = 1
columns.county = "text"
columns.naics = "text"

[keys.cells]
file = "keys.csv"
size = "last"
sized_on = "public: made up"

[[queries]]
name = "patterns"
group_by = "county"
levels = { by = [{ prefix = "naics", length = 2 }, { prefix = "naics", length = 6 }] }
keys = "cells"
sum.emp = { kind = "Sized", floor = 100, mechanism = { kind = "Gaussian", sigma = 0.05 } }
"""


def memory() -> float:
    """The largest memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def basic_tables(make: Callable[[], Any]) -> dict[str, float]:
    """A release drawn, fitted and made basic tables of."""
    from recordwise.postprocess import linear  # noqa: F401  imports are not counted

    before, start = memory(), time.process_time()
    made = make()
    drawn, clock = time.process_time() - start, time.perf_counter()
    found = made.basic(complete=True)
    both = (*found.tables, *found.basic_tables)
    return {
        "cells": sum(table.data.num_rows for table in found.tables),
        "seconds": time.process_time() - start,
        "drawing": drawn,
        "clock": time.perf_counter() - clock,
        "memory": (memory() - before) / sum(table.data.nbytes for table in both),
    }


def two_states() -> dict[str, float]:
    """Two states, counties by four-digit industry, all levels, three statistics."""
    from benchmarks.crossed import RECORDS, release

    return basic_tables(lambda: release(2, 60, RECORDS))


def million() -> dict[str, float]:
    """The same of all states: more than a million cells."""
    from benchmarks.crossed import release

    return basic_tables(lambda: release(51, 60, 1_000_000))


def national() -> dict[str, float]:
    """All counties by industries of two and three digits, four variables."""
    import numpy as np
    import pyarrow as pa

    import recordwise as rw
    from recordwise.noise import Seeded

    codes = [f"{11 + i // 5}{1 + i % 5}" for i in range(88)]
    places = [f"{i:05d}" for i in range(3_200)]
    chance, records = np.random.default_rng(1), 1_000_000
    emp = np.minimum(np.floor(chance.pareto(1.1, records) * 4 + 1), 20_000).astype(np.int64)
    table = pa.table(
        {
            "id": np.arange(records),
            "emp": emp,
            "payann": emp * 40,
            "payqtr1": emp * 10,
            "county": chance.choice(places, records),
            "naics": chance.choice(codes, records),
        }
    )
    keys = rw.Keys.product(county=places, naics=codes)
    asked = rw.query().group_by("county").levels(rw.prefix("naics", [2, 3]), keys=keys).count(rw.Gaussian(sigma=5))
    for name, sigma in (("emp", 100), ("payann", 4000), ("payqtr1", 1000)):
        asked = asked.sum(name, rw.Gaussian(sigma=sigma))

    def make() -> Any:
        measures = {"emp": 1, "payann": 1, "payqtr1": 1}
        with rw.Session(table, unit="id", measures=measures, tuned_on="synthetic") as session:
            return session.run(asked, rng=Seeded(1))

    return basic_tables(make)


def check() -> dict[str, float]:
    """``check`` of a plan with sized cells."""
    import numpy as np
    import pyarrow.csv as pv

    from recordwise.planning import check as checked
    from recordwise.synthetic import public_keys

    sizes = np.random.default_rng(1).lognormal(4, 2, SIZED)
    with tempfile.TemporaryDirectory() as folder:
        pv.write_csv(public_keys().slice(0, SIZED).append_column("last", [sizes]), f"{folder}/keys.csv")
        (Path(folder) / "plan.toml").write_text(PLAN)
        start = time.process_time()
        checked(f"{folder}/plan.toml", source=False)
        return {"seconds": time.process_time() - start}


def recommend() -> dict[str, float]:
    """``recommend`` for sized cells, all usual candidates."""
    import recordwise as rw
    from benchmarks.sized import sized_keys
    from recordwise.planning import Goal
    from recordwise.planning import recommend as recommended
    from recordwise.synthetic import establishments

    by = rw.query().group_by("county", "naics", keys=sized_keys(SIZED))
    columns = {"county": "text", "naics": "text"}
    how: dict[str, Any] = {"unit": "estab_id", "columns": columns, "tuned_on": "synthetic", "max_outside": "accept"}
    with rw.Session(establishments(200_000), measures={"emp": 1}, **how) as session:
        session.validate()
        start = time.process_time()
        recommended(session, Goal("emp", by, within="0.1", at_least=100, share="0.9"), data="synthetic")
        return {"seconds": time.process_time() - start}


PARTS = {each.__name__: each for each in (two_states, national, million, check, recommend)}
RELEASES = ("two_states", "national", "million")


def apart(name: str, *, plain: bool = False) -> dict[str, float]:
    """Return what a part measures in a fresh process; ``plain`` as without the extra ``fast``."""
    hidden = (
        "import sys; sys.modules.update(dict.fromkeys(('numba', 'llvmlite', 'llvmlite.binding')));" if plain else ""
    )
    code = f"{hidden}import json; from benchmarks.agency import PARTS; print(json.dumps(PARTS[{name!r}]()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    for name in PARTS:
        found = apart(name)
        record(f"agency_{name}", found["seconds"])
        print(name, found, flush=True)
        if name in RELEASES:
            record(f"agency_{name}_memory", found["memory"])
            plain = apart(name, plain=True)
            record(f"agency_{name}_plain", plain["seconds"] / found["seconds"])
            print(name, "plain", plain, flush=True)
    write()


def write() -> None:
    """Put the table into the page."""
    load = f"{os.getloadavg()[2]:.1f}"
    lines = ["| | now | goal | |", "|---|---|---|---|", *rows("agency_")]
    told = f"Measured {date.today().isoformat()} on two cores, {load} processes running on average."
    before, _, rest = PAGE.read_text().partition(START)
    _, _, after = rest.partition(END)
    PAGE.write_text("\n".join([before + START, "", told, "", *lines, "", END + after]))


if __name__ == "__main__":
    main()
