"""What one charge costs after many others, under a budget over three measures with joint thresholds: processor and wall time."""

import argparse
import statistics
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

from recordwise.ledger.ledger import Ledger
from recordwise.policy import Policy, among, constant, gaussian_sum, split

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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--charges", type=int, default=10_100)
    parser.add_argument("--kinds", type=int, default=18)
    asked = parser.parse_args()
    report(asked.charges, asked.kinds)


if __name__ == "__main__":
    main()
