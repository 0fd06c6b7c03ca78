"""Fitted tables with their uncertainty at a million cells: the time as a ratio to the fit alone."""

import resource
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import recordwise as rw
from recordwise.noise import Seeded
from recordwise.postprocess import Workload, ols
from recordwise.release.nesting import Nesting, nesting_of
from recordwise.release.spread import best_fit, noise_of, public_seed

COUNTIES, LENGTHS, CODES = 1290, (2, 3, 4, 5, 6), 350
GOAL = 3.0


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def release(counties: int = COUNTIES) -> rw.Release:
    """Counties by NAICS 2 to 6: with 1,290 counties a million published cells."""
    codes = [f"{11 + i // 18}{1 + i // 6 % 3}{i // 3 % 2}{i // 2 % 2}{i % 7}" for i in range(CODES)]
    codes = sorted(set(codes))
    places = [f"{i:05d}" for i in range(counties)]
    table = pa.table({"id": [1], "emp": [5], "county": [places[0]], "naics": [codes[0]]})
    asked = (
        rw.query()
        .group_by("county")
        .levels(rw.prefix("naics", list(LENGTHS)), keys=rw.Keys.product(county=places, naics=codes))
    )
    asked = asked.sum("emp", rw.Gaussian(sigma=30), alias="normal")
    asked = asked.sum("emp", rw.GeneralizedGaussian(scale=3, shape="0.5"), alias="fat")
    with rw.Session(table, unit="id", measures={"emp": 1}, tuned_on="synthetic") as session:
        return session.run(asked, rng=Seeded(1))


def alone(family: Nesting) -> float:
    """The least-squares fit of one variable, without its uncertainty."""
    statistic = family.statistics[0]
    answers, variances = family.column(statistic, ""), family.column(statistic, "_sd") ** 2
    workload, making = timed(lambda: Workload.matrix(family.rows))
    _, fitting = timed(lambda: ols(workload, answers, variances, "gaussian"))
    return making + fitting


def best(family: Nesting, number: int) -> float:
    """The best linear estimate of one variable with standard errors and intervals."""
    statistic = family.statistics[number]
    noise = noise_of(family, statistic)
    return timed(
        lambda: best_fit(
            family, statistic, noise, confidence=0.95, draws=400, source=public_seed("0" * 64, "benchmark")
        )
    )[1]


def main() -> None:
    published = release()
    family, reading = timed(lambda: nesting_of(published, published.published.queries[0], complete=True))
    cells = int(family.rows.shape[0])
    fit = alone(family)
    normal, fat = best(family, 0), best(family, 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    ratio = (reading + fit + normal) / (reading + fit)
    print(
        f"fits: {cells:,} published cells, counties by NAICS 2 to 6, complete keys; reading how they nest {reading:.1f} s"
    )
    print(f"  the fit alone {fit:.1f} s")
    print(f"  Gaussian noise, with standard errors and intervals: {ratio:.2f} x the fit alone (goal: at most {GOAL:g})")
    print(f"  fat-tailed noise, 400 draws: {fat:.1f} s, {fat / fit:.1f} x the fit alone; peak {peak:,.0f} MB")


if __name__ == "__main__":
    main()
