"""Basic tables of levels that cross: two states by county and four-digit industry, and a million cells."""

import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import recordwise as rw
from benchmarks.goals import record
from recordwise.noise import Seeded
from recordwise.reader import ReaderRelease
from recordwise.release.nesting import nesting_of
from recordwise.release.spread import best_fit, noise_of, public_seed

CODES = sorted({f"{11 + i // 15}{1 + i // 3 % 5}{i % 3}" + str(i % 7) for i in range(290)})
RECORDS = 157_000


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def release(states: int, counties: int, records: int) -> rw.Release:
    """All levels of states and counties crossed with those of industries, three statistics."""
    rng = np.random.default_rng(1)
    places = [f"{state:02d}{county:03d}" for state in range(states) for county in range(counties)]
    emp = np.minimum(np.floor(rng.pareto(1.1, records) * 4 + 1), 20_000).astype(np.int64)
    table = pa.table(
        {
            "id": np.arange(records),
            "emp": emp,
            "pay": emp * 40,
            "county": rng.choice(places, records),
            "naics": rng.choice(CODES, records),
        }
    )
    keys = rw.Keys.product(county=places, naics=CODES)
    asked = rw.query().levels(rw.prefix("county", [2, 5])).levels(rw.prefix("naics", [2, 3, 4]), keys=keys)
    asked = asked.count(rw.Gaussian(sigma=5)).sum("emp", rw.Gaussian(sigma=100)).sum("pay", rw.Gaussian(sigma=4000))
    with rw.Session(table, unit="id", measures={"emp": 1, "pay": 1}, tuned_on="synthetic") as session:
        return session.run(asked, rng=Seeded(1))


def best(made: rw.Release) -> tuple[int, float]:
    """The best linear estimates of all statistics, with exact standard errors and intervals."""

    def work() -> int:
        family = nesting_of(made, made.published.queries[0], complete=True)
        for statistic in family.statistics:
            noise = noise_of(family, statistic)
            best_fit(family, statistic, noise, confidence=0.95, draws=400, source=public_seed("0" * 64, "benchmark"))
        return int(family.rows.shape[0])

    return timed(work)


def ask(made: rw.Release, regions: int) -> int:
    """The totals of regions made of counties, from all tables."""
    counties = sorted(set(made["county5_by_naics2"]["county5"].to_pylist()))
    zones = {"county5": counties, "region": np.random.default_rng(2).integers(0, regions, len(counties)).tolist()}
    return len(ReaderRelease.of(made).total("emp", regions=zones, complete=True))


def main() -> None:
    made, drawing = timed(lambda: release(2, 60, RECORDS))
    answers, fitting = best(made)
    _, tables = timed(lambda: made.basic(complete=True))
    print(
        f"crossed: {answers:,} published cells of two states, three statistics: drawn in {drawing:.1f} s of processor"
    )
    print(f"  time; best linear estimates with exact standard errors {fitting:.1f} s; basic tables {tables:.1f} s")
    record("crossed_best", fitting)
    record("crossed_basic", drawing + tables)
    made, drawing = timed(lambda: release(51, 60, 1_000_000))
    answers, fitting = best(made)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"  {answers:,} cells, all states: drawn in {drawing:.1f} s, best linear estimates {fitting:.1f} s, peak {peak:,.0f} MB"
    )
    record("crossed_million", fitting)
    regions, asking = timed(lambda: ask(made, 1000))
    print(f"  {regions:,} regions of counties with their covariance {asking:.1f} s")


if __name__ == "__main__":
    main()
