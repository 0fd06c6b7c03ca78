"""What an agency waits for: releases with basic tables, and planning of sized cells, each in a process of its own.

    python -m benchmarks agency

Times are processor time of the whole work of a part, without imports; releases are measured with the extra ``fast`` and without
it, and beside 0.2.0 (from the history of this repository, in a worktree of its own) where that can do them. Memory is what the
process takes at most beyond what it took before, with the records in memory and a small release made, so that imports, the
engine and compiled code are not counted; the tables are the research and basic tables as Arrow holds them. Releases of two states
with more and fewer industries, places, levels and statistics show what costs follow. docs/performance.md has all of it between the
two marks.
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
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.earlier import BEFORE, earlier_version
from benchmarks.goals import read_goals, record, rows

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
START, END = "<!-- measured by python -m benchmarks agency -->", "<!-- end -->"
LONGEST = 180
"""Seconds after which a part of the version before is given up."""
CODES = sorted({f"{11 + i // 15}{1 + i // 3 % 5}{i % 3}" + str(i % 7) for i in range(290)})
RECORDS = 157_000
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


def peak() -> float:
    """The largest memory of this process since ``forget_peak``, in bytes."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def forget_peak() -> None:
    """Begin to measure the largest memory anew, where the system can."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def crossed(
    states: int, counties: int, records: int, codes: list[str], *, statistics: int = 3, levels: tuple[int, int] = (2, 3)
) -> Callable[[], Any]:
    """Records of states and counties by industry in memory, and what releases their levels crossed."""
    import numpy as np
    import pyarrow as pa

    import recordwise as rw
    from recordwise.noise import Seeded

    rng = np.random.default_rng(1)
    places = [f"{state:02d}{county:03d}" for state in range(states) for county in range(counties)]
    emp = np.minimum(np.floor(rng.pareto(1.1, records) * 4 + 1), 20_000).astype(np.int64)
    measures = [f"m{number}" for number in range(statistics - 1)]
    table = pa.table(
        {
            "id": np.arange(records),
            **{name: emp * (number + 1) for number, name in enumerate(measures)},
            "county": rng.choice(places, records),
            "naics": rng.choice(codes, records),
        }
    )
    keys = rw.Keys.product(county=places, naics=codes)
    asked = rw.query().levels(rw.prefix("county", [2, 5][-levels[0] :]))
    asked = asked.levels(rw.prefix("naics", [2, 3, 4][-levels[1] :]), keys=keys).count(rw.Gaussian(sigma=5))
    for number, name in enumerate(measures):
        asked = asked.sum(name, rw.Gaussian(sigma=100 * (number + 1)))

    def make() -> Any:
        with rw.Session(table, unit="id", measures=dict.fromkeys(measures, 1), tuned_on="synthetic") as session:
            return session.run(asked, rng=Seeded(1))

    return make


def basic_tables(prepare: Callable[[], Callable[[], Any]], small: Callable[[], Any]) -> dict[str, float]:
    """A release drawn, fitted and made basic tables of."""
    small().basic(complete=True)
    make = prepare()
    forget_peak()
    before, start = peak(), time.process_time()
    made = make()
    drawn = time.process_time() - start
    fitted = made.consistent(complete=True)
    both = time.process_time() - start
    found = fitted.basic(complete=True)
    tables = (*found.tables, *found.basic_tables)
    return {
        "cells": sum(table.data.num_rows for table in found.tables),
        "seconds": time.process_time() - start,
        "drawing": drawn,
        "fitting": both - drawn,
        "rounding": time.process_time() - start - both,
        "memory": (peak() - before) / sum(table.data.nbytes for table in tables),
    }


def two_states() -> dict[str, float]:
    """Two states, counties by four-digit industry, all levels, three statistics."""
    return basic_tables(lambda: crossed(2, 60, RECORDS, CODES), crossed(1, 2, 1_000, CODES))


def million() -> dict[str, float]:
    """The same of all states: more than a million cells."""
    return basic_tables(lambda: crossed(51, 60, 1_000_000, CODES), crossed(1, 2, 1_000, CODES))


def national() -> dict[str, float]:
    """All counties by industries of two and three digits, four variables."""
    codes = [f"{11 + i // 5}{1 + i % 5}" for i in range(88)]
    return basic_tables(lambda: nested(3_200, 1_000_000, codes), nested(3, 1_000, codes))


def nested(counties: int, records: int, codes: list[str]) -> Callable[[], Any]:
    """Records of counties by industry in memory, and what releases industries of two and three digits."""
    import numpy as np
    import pyarrow as pa

    import recordwise as rw
    from recordwise.noise import Seeded

    places, rng = [f"{i:05d}" for i in range(counties)], np.random.default_rng(1)
    emp = np.minimum(np.floor(rng.pareto(1.1, records) * 4 + 1), 20_000).astype(np.int64)
    sums = {"emp": (1, 100), "payann": (40, 4000), "payqtr1": (10, 1000)}
    table = pa.table(
        {
            "id": np.arange(records),
            **{name: emp * factor for name, (factor, _) in sums.items()},
            "county": rng.choice(places, records),
            "naics": rng.choice(codes, records),
        }
    )
    keys = rw.Keys.product(county=places, naics=codes)
    asked = rw.query().group_by("county").levels(rw.prefix("naics", [2, 3]), keys=keys).count(rw.Gaussian(sigma=5))
    for name, (_, sigma) in sums.items():
        asked = asked.sum(name, rw.Gaussian(sigma=sigma))

    def make() -> Any:
        with rw.Session(table, unit="id", measures=dict.fromkeys(sums, 1), tuned_on="synthetic") as session:
            return session.run(asked, rng=Seeded(1))

    return make


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


VARIED: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "industries": [(f"{n}", {"codes": n}) for n in (72, 145, 290)],
    "places": [(f"{2 * n}", {"counties": n}) for n in (15, 60, 240)],
    "levels": [
        ("1 x 1", {"levels": (1, 1)}),
        ("1 x 3", {"levels": (1, 3)}),
        ("2 x 1", {"levels": (2, 1)}),
        ("2 x 3", {"levels": (2, 3)}),
    ],
    "statistics": [(f"{n}", {"statistics": n}) for n in (1, 2, 3, 6)],
}


def growth() -> dict[str, Any]:
    """The release of two states with one thing varied at a time."""
    found = []
    crossed(1, 2, 1_000, CODES)().basic(complete=True)
    for what, points in VARIED.items():
        for name, more in points:
            codes = CODES[:: len(CODES) // more.get("codes", len(CODES))][: more.get("codes", len(CODES))]
            rest = {key: value for key, value in more.items() if key not in ("codes", "counties")}
            small = crossed(1, 2, 1_000, codes, **rest)
            prepare = partial(crossed, 2, more.get("counties", 60), RECORDS, codes, **rest)
            own = basic_tables(prepare, small)
            found.append({"varied": what, "at": name, **own})
    return {"seconds": 0.0, "points": found}


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    each.__name__: each for each in (two_states, national, million, check, recommend, growth)
}
RELEASES = ("two_states", "national", "million")


def apart(name: str, *, plain: bool = False, source: Path | None = None) -> dict[str, Any]:
    """Return what a part measures in a fresh process; ``plain`` as without the extra ``fast``, ``source`` of another version."""
    hidden = (
        "import sys; sys.modules.update(dict.fromkeys(('numba', 'llvmlite', 'llvmlite.binding')));" if plain else ""
    )
    code = f"{hidden}import json; from benchmarks.agency import PARTS; print(json.dumps(PARTS[{name!r}]()))"
    more = {} if source is None else {"PYTHONPATH": str(source / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | more,
        timeout=None if source is None else LONGEST,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def attempted(name: str, source: Path | None) -> str:
    """What the version before takes for a part, in words."""
    if source is None:
        return "not in this history"
    try:
        return f"{apart(name, source=source)['seconds']:.2f} s"
    except subprocess.TimeoutExpired:
        return f"more than {LONGEST} s by the clock"
    except RuntimeError:
        return "cannot"


def main() -> None:
    earlier: dict[str, str] = {}
    points: list[dict[str, Any]] = []
    with earlier_version() as source:
        for name in PARTS:
            found = apart(name)
            print(name, found, flush=True)
            if name == "growth":
                points = found["points"]
                continue
            record(f"agency_{name}", found["seconds"])
            earlier[f"agency_{name}"] = attempted(name, source)
            print(name, BEFORE, earlier[f"agency_{name}"], flush=True)
            if name in RELEASES:
                record(f"agency_{name}_memory", found["memory"])
                plain = apart(name, plain=True)
                record(f"agency_{name}_plain", plain["seconds"] / found["seconds"])
                print(name, "plain", plain, flush=True)
    write(earlier, points)


STAGES = ("drawing", "fitting", "rounding")


def write(earlier: dict[str, str], points: list[dict[str, Any]]) -> None:
    """Put the tables into the page."""
    load = f"{os.getloadavg()[2]:.1f}"
    named = {goal.what: earlier.get(name, "") for name, goal in read_goals()[1].items()}
    cells = [[cell.strip() for cell in row.split("|")[1:4]] for row in rows("agency_")]
    lines = [f"| {' | '.join([*row, named[row[0]]])} |" for row in cells]
    told = f"Measured {date.today().isoformat()} on two cores, {load} processes running on average."
    page = [told, "", f"| | now | goal | {BEFORE} |", "|---|---|---|---|", *lines, "", *growth_lines(points)]
    before, _, rest = PAGE.read_text().partition(START)
    _, _, after = rest.partition(END)
    PAGE.write_text("\n".join([before + START, "", *page, "", END + after]))


def growth_lines(points: list[dict[str, Any]]) -> list[str]:
    """What costs follow, as a table."""
    if not points:
        return []
    lines = [
        "Two states again, one thing varied at a time, in seconds. Drawing is reading the records, noise and its intervals.",
        "",
        "| varied | cells | drawing | fitting | rounding |",
        "|---|---|---|---|---|",
    ]
    for each in _ends(points):
        times = " | ".join(f"{each[stage]:.2f}" for stage in STAGES)
        lines.append(f"| {each['at']} {each['varied']} | {each['cells']:,} | {times} |")
    slopes = []
    for what in ("industries", "places"):
        own = [each for each in points if each["varied"] == what]
        slopes.append(f"{growth_of(own[0], own[-1]):.1f} with more {what}")
    return [*lines, "", f"Fitting grows with the published cells to the power of {' and '.join(slopes)}."]


def _ends(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first and the last point of what is varied."""
    kinds = [[each for each in points if each["varied"] == kind] for kind in dict.fromkeys(x["varied"] for x in points)]
    return [end for own in kinds for end in (own[0], own[-1])]


def growth_of(first: dict[str, Any], last: dict[str, Any]) -> float:
    """The power of the cells with which fitting grows."""
    from math import log

    return log(last["fitting"] / first["fitting"]) / log(last["cells"] / first["cells"])


if __name__ == "__main__":
    main()
