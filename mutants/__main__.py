"""``python -m mutants [--jobs N] [NAME or AREA ...]``: exits 1 where fewer than 95 % of the bugs are noticed."""

import argparse
import sys
from itertools import groupby

from mutants.catalogue import chosen
from mutants.runner import Result, run

ENOUGH = 0.95


def main() -> int:
    asked = argparse.ArgumentParser(
        prog="python -m mutants", description="Put bugs into recordwise and see who notices."
    )
    asked.add_argument("names", nargs="*", metavar="NAME", help="of a bug or of an area; all by default")
    asked.add_argument("--jobs", type=int, default=2, help="side by side (2)")
    given = asked.parse_args()
    try:
        results = run(chosen(given.names), jobs=given.jobs, tell=tell)
    except ValueError as error:
        asked.error(str(error))
    print("\r" + " " * 60 + "\r", end="")
    for line in table(results):
        print(line)
    return 0 if rate(results) >= ENOUGH and not any(misfit(result) for result in results) else 1


def tell(text: str) -> None:
    """Progress, on one line of the terminal."""
    if sys.stderr.isatty():
        print(f"\r{text:60}", end="", file=sys.stderr, flush=True)


def misfit(result: Result) -> bool:
    """A bug that keeps tests from running at all, or one argued away that was noticed: the list is wrong, not the tests."""
    return result.outcome == "broken" or (result.mutant.equivalent is not None and result.killed)


def counted(results: list[Result]) -> list[Result]:
    return [result for result in results if result.mutant.equivalent is None]


def rate(results: list[Result]) -> float:
    """The share of the bugs that was noticed; what is no bug is left out."""
    real = counted(results)
    return sum(result.killed for result in real) / len(real) if real else 1.0


def table(results: list[Result]) -> list[str]:
    """Every bug on a line, then what nobody noticed, then the rates."""
    lines = [f"{each.outcome:8} {each.seconds:6.1f} s  {each.mutant.area:12} {each.mutant.name}" for each in results]
    lines += ["", *(line for each in results if not each.killed for line in survivor(each)), ""]
    for area, group in groupby(results, key=lambda each: each.mutant.area):
        lines.append(summary(area, list(group)))
    return [*lines, summary("all", results)]


def survivor(result: Result) -> list[str]:
    told = f"no bug: {result.mutant.equivalent}" if result.mutant.equivalent else f"NOT NOTICED: {result.mutant.why}"
    return [f"{result.mutant.name} ({result.mutant.file}) {told}"]


def summary(area: str, results: list[Result]) -> str:
    real = counted(results)
    killed = sum(result.killed for result in real)
    return f"{area:12} {killed:4} of {len(real):4} noticed, {rate(results):6.1%}; {len(results) - len(real)} no bug"


if __name__ == "__main__":
    sys.exit(main())
