"""Every interval column by size of cell and mechanism: between the stated level and two points above it, or why not."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from experiments.coverage import changed, counted, fitted, plain
from experiments.coverage.lines import SIZES, Line, Tally
from experiments.coverage.reasons import ABOVE, Reason, reason
from experiments.frame import Claim, Reproduction, Tell

RUNS = 10_000
FALSE_ALARM = 1e-9
"""Of one line and one side; with some 2,500 lines all of them together raise a false alarm with 5 in a million."""
FEWER = {"trees": 10, "fits": 20, "crossed": 20, "sequential": 100, "other changes": 4}
"""Of the slower kinds, so many times fewer cells."""


class Part(Protocol):
    """One or several releases, measured."""

    def __call__(self, tally: Tally, runs: int, seed: int) -> None: ...


def _trees(tally: Tally, runs: int, seed: int) -> None:
    for place, rest in enumerate((False, True)):
        fitted.trees(tally, _fewer(runs, "trees"), seed + place, method="ols", rest=rest)


def _nonnegative(tally: Tally, runs: int, seed: int) -> None:
    for place, rest in enumerate((False, True)):
        names = fitted.NONNEGATIVE
        fitted.trees(tally, _fewer(runs, "fits"), seed + place, method="top_down", rest=rest, names=names)
    few = fitted.SEQUENTIAL
    fitted.trees(tally, _fewer(runs, "sequential"), seed + 2, method="sequential", names=few)


def _crossed(tally: Tally, runs: int, seed: int) -> None:
    for place, formula in enumerate((True, False)):
        fitted.crossed(tally, _fewer(runs, "crossed"), seed + place * runs, formula=formula)


def _other_changes(tally: Tally, runs: int, seed: int) -> None:
    changed.others(tally, _fewer(runs, "other changes"), seed)


def _fewer(runs: int, kind: str) -> int:
    return max(1, runs // FEWER[kind])


PARTS: Mapping[str, Part] = {
    "sums": plain.sums,
    "signed sums, combinations and ratios": plain.forms,
    "counts, averages and quantiles": counted.all_sizes,
    "changes of sums": changed.sums,
    "changes of other columns": _other_changes,
    "changes of sums of cells": changed.added,
    "best linear estimates": _trees,
    "nonnegative fits": _nonnegative,
    "crossed tables": _crossed,
}
STEPS = len(PARTS)
SETTING = (
    "A number is one column of one release with seeded noise: the share of the cells, all with the same exact number, whose "
    "interval holds it. Every published cell counts.",
    f"Sizes are {', '.join(f'{size:,}' for size in SIZES)}: the total of sums, of one record; elsewhere the number of records, of "
    "50 each (quantiles: evenly from 10 to 9,000).",
    "Trees have six finest cells below two, below one: all of one size, one of them not empty, or of different sizes. One cell of "
    "each tree counts.",
    "Crossed tables are two places by three industries with both margins, one cell of each size.",
)


def measured(
    *, runs: int, seed: int, tell: Tell, parts: Sequence[str] | None = None, tally: Tally | None = None
) -> list[Line]:
    """The lines of all parts, or of some; columns that were published and have no line are an error."""
    found = Tally() if tally is None else tally
    for place, (name, part) in enumerate(PARTS.items()):
        if parts is None or name in parts:
            tell(name)
            part(found, runs, seed + 10**6 * place)
    if found.unmeasured:
        raise AssertionError(f"published with an interval and not measured: {', '.join(found.unmeasured)}")
    return found.pooled()


def short(line: Line) -> float:
    """The chance that so few intervals hold if they hold as often as they should, or as their reason allows."""
    from scipy import stats

    return float(stats.binom.cdf(line.held, line.cells, least(line)))


def wide(line: Line) -> float:
    """The chance that so many hold if they hold two points more often than stated, or as often as their reason allows."""
    from scipy import stats

    return float(stats.binom.sf(line.held - 1, line.cells, most(line)))


def least(line: Line) -> float:
    why = reason(line)
    return line.level if why is None else min(why.least, line.level)


def most(line: Line) -> float:
    why = reason(line)
    return line.level + ABOVE if why is None else max(why.most, line.level + ABOVE)


def outside(line: Line) -> bool:
    """Whether the measured share is not between the level and two points above it."""
    return not line.level <= line.coverage <= line.level + ABOVE


def shown_reason(line: Line) -> Reason | None:
    """The reason that stands next to a number; chance is not one, so that a number within three standard errors has none."""
    above = line.coverage - line.level - ABOVE > 3 * line.standard_error
    below = line.level - line.coverage > 3 * line.standard_error
    return reason(line) if above or below else None


def claims(lines: Sequence[Line]) -> list[Claim]:
    under = [line for line in lines if short(line) < FALSE_ALARM]
    over = [line for line in lines if wide(line) < FALSE_ALARM]
    told = [line for line in lines if shown_reason(line) is not None]
    lowest, highest = min(line.coverage for line in lines), max(line.coverage for line in lines)
    return [
        Claim(
            statement="Every interval column holds the exact number at least as often as it states, unless a reason is stated",
            paper="our promise",
            ours=f"{len(lines)} lines, smallest share {lowest:.4f}; {len(under)} below, at a false-alarm rate of 1e-9 each",
            agrees=not under,
            why=named(under),
        ),
        Claim(
            statement="and in at most two points more, unless a reason is stated",
            paper="our promise",
            ours=f"largest share {highest:.4f}; {len(over)} above; {len(told)} lines have a reason next to the number",
            agrees=not over,
            why=named(over),
        ),
    ]


def named(lines: Sequence[Line]) -> str:
    return "; ".join(f"{each.column} ({each.mechanism}) at {each.size:,}: {each.coverage:.4f}" for each in lines)


def row(line: Line) -> dict[str, object]:
    why = shown_reason(line)
    return {
        "column": line.column,
        "mechanism": line.mechanism,
        "size": line.size,
        "level": line.level,
        "cells": line.cells,
        "coverage": round(line.coverage, 4),
        "standard_error": round(line.standard_error, 4),
        "shorter_by_a_step": round(line.inside / line.cells, 4),
        "without_interval": round(line.empty / line.cells, 4),
        "reason": "" if why is None else why.words,
    }


def reproduce(*, runs: int, seed: int, tell: Tell) -> Reproduction:
    lines = measured(runs=runs, seed=seed, tell=tell)
    return Reproduction(
        name="coverage",
        title="How often the published intervals hold",
        source="Ours: docs/coverage.md",
        setting=SETTING,
        data="No data: tables made by rule.",
        runs=runs,
        seed=seed,
        claims=claims(lines),
        tables={"coverage": [row(line) for line in lines]},
        shown=("coverage",),
    )
