"""``python -m fuzz [--inputs N] [--seed TEXT] [--findings DIR] [TARGET...]``: exits 1 if anything was found."""

import argparse
import sys
from pathlib import Path

from fuzz.runner import Summary, fuzz
from fuzz.targets import SHARES

MILLION = 1_000_000


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m fuzz", description="Feed hostile inputs to recordwise.")
    asked.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(SHARES)}; all by default")
    asked.add_argument("--inputs", type=int, default=MILLION, help="in total over the targets (1,000,000)")
    asked.add_argument("--seed", default="1", help="another seed, other inputs")
    asked.add_argument("--findings", type=Path, default=Path("fuzz-findings"), help="a folder for what is found")
    given = asked.parse_args()
    if unknown := set(given.targets) - set(SHARES):
        asked.error(f"unknown: {', '.join(sorted(unknown))}")
    names = given.targets or list(SHARES)
    whole = sum(SHARES[name] for name in names)
    given.findings.mkdir(parents=True, exist_ok=True)
    summaries = []
    for name in names:
        done = fuzz(name, given.inputs * SHARES[name] // whole, seed=given.seed, folder=given.findings)
        summaries.append(done)
        print(line(done), flush=True)
    found = sum(done.findings for done in summaries)
    print(
        f"{sum(done.inputs for done in summaries):,} inputs, {found} findings"
        + (f" in {given.findings}" if found else "")
    )
    return 1 if found else 0


def line(done: Summary) -> str:
    parts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(done.counts.items()))
    return (
        f"{done.target:8} {done.inputs:9,} inputs in {done.seconds:6.0f} s: {parts}; slowest {done.slowest:.2f} s, "
        f"peak memory {done.peak:.0f} MB, {done.lines:,} lines reached"
    )


if __name__ == "__main__":
    sys.exit(main())
