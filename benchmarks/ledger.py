"""What one charge costs after many others, under a budget over three measures with joint thresholds: processor and wall time."""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from recordwise.ledger.ledger import Ledger
from recordwise.policy import Policy, among, constant, gaussian_sum, split
from recordwise.policy.series import Series

AT: dict[Any, Any] = {"emp": 20, "payann": 500, "payqtr1": 125}
SCHEMA = {
    "unit": "id",
    "firm": None,
    "columns": [],
    "measures": [{"name": n, "step": "1", "bound": str(2**40)} for n in AT],
}


def charges(kinds: int) -> list[Policy]:
    """Counts, sums of each measure and joint splits, some of them of one group only."""
    found = []
    for kind in range(kinds):
        name, at = list(AT.items())[kind % 3]
        shape = (constant(Fraction(1, 10**6)), gaussian_sum(name, sigma=1000 * at), split(Fraction(1, 10**6), AT))[
            kind // 3 % 3
        ]
        found.append(shape.where(among("state", [f"{kind % 5:02}"])) if kind % 2 else shape)
    return found


def report(count: int, kinds: int) -> None:
    policies = charges(kinds)
    budget = split(10, AT) + constant(1)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.db", dataset="establishments", schema=SCHEMA, budget=budget)
        wall, processor = [], []
        for place in range(count):
            start, used = time.perf_counter(), time.process_time()
            ledger.charge(policies[place % kinds], query=f"q{place}", schema=SCHEMA)
            wall.append(time.perf_counter() - start)
            processor.append(time.process_time() - used)
        ledger.close()
    for name, part in (("first 100", slice(0, 100)), ("last 100", slice(-100, None))):
        median_wall, median_used = (1000 * statistics.median(times[part]) for times in (wall, processor))
        print(
            f"{name} of {count:,} charges of {kinds} kinds, medians: {median_used:.2f} ms of processor, {median_wall:.2f} ms in all"
        )


@dataclass(frozen=True)
class Named:
    """A release that is known by its digest alone."""

    digest: str

    def matches_charge(self, charge: Mapping[str, Any]) -> bool:
        return charge.get("release") == self.digest


def report_series(periods: int, each: int, kinds: int) -> None:
    """A series in one ledger: what a charge and an admission check cost in the last period, and opening the file."""
    policies, budget = charges(kinds), split(10, AT) + constant(1)
    with tempfile.TemporaryDirectory() as folder:
        for period in range(periods):
            series = Series(name="quarters", period=f"{2000 + period // 4}Q{period % 4 + 1}", every_period=budget)
            started = time.perf_counter()
            ledger = Ledger(
                Path(folder) / "series.ledger", dataset="establishments", schema=SCHEMA, budget=budget, series=series
            )
            ledger.check(policies[0], query="first")
            opening = time.perf_counter() - started
            checked: list[tuple[float, float]] = []
            charged: list[tuple[float, float]] = []
            for place in range(each):
                policy, release = policies[place % kinds], Named(f"2:{period}-{place}")
                if period == periods - 1:
                    checked.append(_timed(partial(ledger.check, policy, query="q")))
                charge = partial(ledger.charge, policy, query="q", schema=SCHEMA, release=release, refuse_repeat=True)
                charged.append(_timed(charge))
            ledger.close()
    for name, times in (("charge", charged), ("admission check", checked)):
        used, wall = (1000 * statistics.median(column) for column in zip(*times))
        print(
            f"{name} after {periods} periods of {each} charges: {used:.2f} ms of processor, {wall:.2f} ms in all (medians)"
        )
    print(f"opening the file and the first check: {opening:.2f} s")


def _timed(call: Callable[[], object]) -> tuple[float, float]:
    """Processor and wall time."""
    start, used = time.perf_counter(), time.process_time()
    call()
    return time.process_time() - used, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--periods", type=int, default=0, help="a series of so many periods instead")
    parser.add_argument("--charges", type=int, default=10_100)
    parser.add_argument("--kinds", type=int, default=18)
    asked = parser.parse_args()
    if asked.periods:
        report_series(asked.periods, asked.charges, asked.kinds)
    else:
        report(asked.charges, asked.kinds)


if __name__ == "__main__":
    main()
