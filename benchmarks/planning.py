"""``compare`` with twenty mechanisms beside plain aggregate scans of the same records, in one run: ratios, not seconds.

    python -m benchmarks.planning [--rows 8000000] [--only levels|one|rehearse|evaluate]

The plain scan is what a release reads: sums of the measure for county x three-digit industry, by hand in DuckDB. Policies of
fat-tailed mechanisms have tables that are certified once for each mechanism, whatever the data; the time with tables still to be
made is shown apart. Parts are shown too: the exact losses of all records, the cells and their errors, the older rules. Five levels
are compared with five plain scans, one for each. A rehearsal of a million rows and an evaluation on 100,000 records are shown in
seconds, because a person waits for them.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.goals import record

ROUNDS = 3
REHEARSED, EVALUATED = 1_000_000, 100_000
PLAN = """\
dataset = "rehearsed"
source = "not read"
ledger = "not.ledger"
tuned_on = "synthetic"

[schema]
unit = "estab_id"
firm = "firm_id"
measures.emp = 1
measures.payann = 1
columns.county = "text"
columns.naics = "text"

[keys.cells]
file = "keys.csv"

[[queries]]
name = "patterns"
group_by = "county"
levels = { by = [{ prefix = "naics", length = 2 }, { prefix = "naics", length = 3 }], share = [0.4, 0.6] }
keys = "cells"
count = { kind = "Gaussian", rho = 0.1, as = "n" }
sum.emp = { kind = "UnitSplit", at = 20, rho = 0.5, as = "emp" }
sum.payann = { kind = "UnitSplit", at = 1000, rho = 0.5, as = "payann" }
"""
LEVELS = [2, 3, 4, 5, 6]
SHAPES = "SELECT county, substring(naics, 1, 3) AS code, count(*) AS n, sum(emp) AS emp FROM read_parquet('{path}') GROUP BY ALL"


def twenty() -> dict[str, Any]:
    """Twenty mechanisms of every family, all of about the same error at a total of 1,000."""
    import recordwise as rw

    found: dict[str, Any] = {f"splitting at {at}": rw.UnitSplit(at=at, variance=400) for at in (5, 10, 20, 50, 100)}
    found |= {f"clamped at {to}": rw.Clamped(to=to, variance=400) for to in (100, 1000)}
    found |= {
        f"root {degree}, offset {offset}": rw.RootTransform(degree=degree, offset=offset, variance=400, at_total=1000)
        for degree in (2, 4)
        for offset in (10, 100)
    }
    found |= {
        f"logarithm, {noise}, offset {offset}": rw.LogTransform(offset=offset, variance=400, at_total=1000, noise=noise)
        for noise in ("gaussian", "laplace")
        for offset in (10, 100, 1000)
    }
    found["generalized Gaussian"] = rw.GeneralizedGaussian(shape="0.5", variance=400)
    found["Laplace"] = rw.GeneralizedGaussian(shape=1, variance=400)
    found["polylog"] = rw.Polylog(power=2, rate=1, offset=3, variance=400)
    return found


def best(action: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    times = []
    for _ in range(ROUNDS):
        started = clock()
        action()
        times.append(clock() - started)
    return min(times)


@contextmanager
def opened(path: str) -> Iterator[tuple[Any, Any]]:
    """A session on the records, and a plain connection."""
    import duckdb

    import recordwise as rw

    columns = {"county": "text", "naics": "text"}
    with rw.Session(path, unit="estab_id", measures={"emp": 1}, columns=columns, firm="firm_id") as session:
        session.validate()
        yield session, duckdb.connect(config={"memory_limit": "700MB"})


def measure(path: str) -> None:
    """One table."""

    import recordwise as rw
    from recordwise.planning import compare
    from recordwise.planning.losses import policy_losses
    from recordwise.planning.scope import plan_totals, same_for_all, scope_of
    from recordwise.synthetic import public_keys

    mechanisms = twenty()
    assert len(mechanisms) == 20
    by = rw.query().group_by("county", rw.prefix("naics", 3), keys=rw.Keys.of(public_keys()))
    with opened(path) as (session, connection):
        started = time.perf_counter()
        compare(session, mechanisms, measure="emp", query=by, data="synthetic")
        first = time.perf_counter() - started
        policies = {name: session.policy_of(by.sum("emp", each)) for name, each in mechanisms.items()}
        view = session.owner.view()
        scope = scope_of(by, session.schema, measure="emp")
        choices = {name: same_for_all(each) for name, each in mechanisms.items()}
        parts: dict[str, Callable[[], object]] = {
            "compare, 20 mechanisms": lambda: compare(session, mechanisms, measure="emp", query=by, data="synthetic"),
            "  exact losses of all records": lambda: policy_losses(view, policies),
            "  totals of the cells": lambda: plan_totals(view, scope, choices),
            "  contributors, for the older rules": lambda: view.contributors(
                by.sum("emp", rw.Gaussian(sigma=1)), "emp"
            ),
        }
        plain = best(lambda: connection.sql(SHAPES.format(path=path)).to_arrow_table())
        for name, action in parts.items():
            print(f"{name:40} / one plain scan {best(action) / plain:6.1f}   (goal 10)")
        plain = min(plain, best(lambda: connection.sql(SHAPES.format(path=path)).to_arrow_table()))
        print(f"{'compare, tables still to be certified':40} / one plain scan {first / plain:6.1f}")
        firms = best(lambda: compare(session, mechanisms, measure="emp", query=by, firms=True, data="synthetic"))
        print(f"{'compare with joint losses of firms':40} / one plain scan {firms / plain:6.1f}")
        print(f"(for orientation: the plain scan took {plain:.2f} s here)")


def five_levels(path: str) -> None:
    """The same twenty at five levels of the industry code, beside a plain scan for each level."""
    import recordwise as rw
    from recordwise.planning import compare
    from recordwise.synthetic import public_keys

    mechanisms = twenty()
    by = rw.query().group_by("county").levels(rw.prefix("naics", LEVELS), keys=rw.Keys.of(public_keys()))
    scans = [SHAPES.replace("1, 3", f"1, {digits}").format(path=path) for digits in LEVELS]
    with opened(path) as (session, connection):
        started = time.perf_counter()
        compare(session, mechanisms, measure="emp", query=by, data="synthetic")
        first = time.perf_counter() - started
        second = time.perf_counter()
        compare(session, mechanisms, measure="emp", query=by, data="synthetic")
        second = time.perf_counter() - second
        # Processor time, because other work on the machine slows scans with two threads and numpy with one differently.
        clock = time.process_time
        plain = best(lambda: [connection.sql(each).to_arrow_table() for each in scans], clock)
        ours = best(lambda: compare(session, mechanisms, measure="emp", query=by, data="synthetic"), clock)
    record("compare_levels", ours / plain)
    print(f"{'compare, 20 mechanisms, five levels':40} / five plain scans {ours / plain:4.1f}   ({plain:.2f} s)")
    print(f"{'the first call, by the clock':40} {first:.1f} s, the second {second:.1f} s")


def rehearsed(folder: Path) -> None:
    """A rehearsal of a million rows."""
    import pyarrow.csv as pv

    from recordwise.planning import rehearse
    from recordwise.synthetic import public_keys

    pv.write_csv(public_keys(), folder / "keys.csv")
    (folder / "plan.toml").write_text(PLAN)
    started = time.perf_counter()
    found = rehearse(folder / "plan.toml", out=folder / "rehearsal", rows=REHEARSED, seed=1)
    print(f"{'rehearse, 1,000,000 rows':40} {time.perf_counter() - started:6.1f} s")
    for name, seconds in found.seconds.items():
        print(f"  {name:38} {seconds:6.1f} s")
    print(f"  {'memory':38} {(found.peak_memory or 0) / 1e6:6.0f} MB")


def evaluated() -> None:
    """An evaluation with baselines that are all drawn."""
    import recordwise as rw
    from recordwise.planning import MultiplicativeNoise, PercentRule, clamped, evaluate
    from recordwise.synthetic import establishments, public_keys

    asked = (
        rw.query()
        .group_by(rw.prefix("county", 2))
        .levels(rw.prefix("naics", [2, 3]), keys=rw.Keys.of(public_keys()))
        .count(rw.Gaussian(rho="0.1"), alias="n")
        .sum("emp", rw.UnitSplit(at=20, rho="0.5"), alias="emp")
    )
    columns = {"county": "text", "naics": "text"}
    baselines: dict[str, Any] = {
        "clamped": clamped(asked, to={"emp": 500}, rho="0.5"),
        "p%-rule": PercentRule(),
        "multiplicative": MultiplicativeNoise(),
    }
    table = establishments(EVALUATED)
    with rw.Session(table, unit="estab_id", measures={"emp": 1}, columns=columns, max_outside="accept") as session:
        for name, given, fit in (
            ("evaluate, 20 draws", {}, None),
            ("evaluate, 20 draws, 3 baselines", baselines, None),
            ("evaluate, 20 draws, fitted", {}, lambda release: release.consistent(draws=40)),
        ):
            started = time.perf_counter()
            evaluate(session, asked, by="size", baselines=given, fit=fit, data="synthetic")
            print(f"{name:40} {time.perf_counter() - started:6.1f} s")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--only", choices=("one", "levels", "rehearse", "evaluate"))
    chosen = parser.parse_args(arguments)
    wanted = [chosen.only] if chosen.only else ["one", "levels", "rehearse", "evaluate"]
    from recordwise.synthetic import write_establishments

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "establishments.parquet"
        if {"one", "levels"} & set(wanted):
            write_establishments(path, chosen.rows)
        actions: dict[str, Callable[[], None]] = {
            "one": lambda: measure(str(path)),
            "levels": lambda: five_levels(str(path)),
            "rehearse": lambda: rehearsed(Path(directory)),
            "evaluate": evaluated,
        }
        for each in wanted:
            actions[each]()


if __name__ == "__main__":
    main()
