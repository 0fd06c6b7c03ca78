"""Fitted columns on complete and incomplete trees: how often their intervals hold, and how far off they are beside the raw ones."""

from collections.abc import Sequence

from experiments.fits.releases import KEYS, LINEAR, Line, lines
from experiments.frame import Claim, Reproduction, Tell

RUNS = 2000
LEVELS = (0.95, 0.9)
STEPS = len(KEYS) * len(LEVELS)
POINT = 0.01
ENOUGH = 20_000
ALL = -1
SETTING = (
    "Every county is a release of the same tree: 2 sectors, 5 industries of 3 digits and 12 of 4 digits with totals from 0 to "
    "10,000, of which incomplete keys leave out three. The shares of the three levels are equal. Noise is drawn anew in every "
    "cell, so that 2,000 counties are 2,000 releases.",
    "sized: noise follows public sizes of the finest cells, 0.7 to 1.4 times their totals from 50 on.",
    "best: the best linear estimate. fit: nonnegative least squares, with intervals from 40 draws at the fitted values. raw: the "
    "noisy answer.",
)


def measured(*, runs: int, seed: int, tell: Tell) -> list[Line]:
    found: list[Line] = []
    for number, level in enumerate(LEVELS):
        for place, keys in enumerate(KEYS):
            tell(f"{keys} keys at {level:g}")
            found += lines(keys, level, runs, seed + number * len(KEYS) + place)
    return found


def slack(line: Line) -> float:
    """What chance alone may add to a point where there are few cells: errors of one county's cells are correlated. With 20,000
    cells a column that holds exactly as often as it says is a point off with probability below 1e-6."""
    if line.cells >= ENOUGH:
        return 0.0
    correlated = 4.0
    return float(5.0 * (line.level * (1 - line.level) * correlated / line.cells) ** 0.5)


def off(line: Line) -> bool:
    """Whether a column holds less often than it should by more than a point, or more often, where half a lattice step is little."""
    wide = line.noise in ("Gaussian, 2 steps", "Gaussian, sized") or line.noise not in LINEAR
    return line.coverage < line.level - POINT - slack(line) or (
        not wide and line.coverage > line.level + POINT + slack(line)
    )


def claims(found: Sequence[Line]) -> list[Claim]:
    linear = [line for line in found if line.column == "best" and line.noise in LINEAR and line.size == ALL]
    changed = [line for line in linear if line.keys != "incomplete"]
    wrong = [line for line in changed if off(line)]
    moved = [line for line in found if line.column == "best" and line.noise not in LINEAR and line.size == ALL]
    missed = [line for line in moved if off(line)]
    fits = [line for line in found if line.column == "fit" and line.size == ALL]
    both = [(line, raw_of(found, line)) for line in changed]
    worse = [line for line, raw in both if line.squares > raw.squares]
    return [
        Claim(
            statement="Intervals of the best linear estimate hold as often as they say, to a point",
            paper="our promise",
            ours=f"{len(changed)} columns, from {_least(changed):+.4f} to {_most(changed):+.4f} beside their level",
            agrees=not wrong,
            why="; ".join(f"{line.noise}, {line.keys}: {line.coverage:.4f} at {line.level:g}" for line in wrong),
        ),
        Claim(
            statement="Under transforms they hold at least as often as they say, to a point",
            paper="our promise",
            ours=f"{len(moved)} columns, from {_least(moved):+.4f} to {_most(moved):+.4f} beside their level",
            agrees=not missed,
            why="; ".join(f"{line.noise}, {line.keys}: {line.coverage:.4f} at {line.level:g}" for line in missed),
        ),
        Claim(
            statement="Intervals of the nonnegative fit are approximate; this is how often they hold",
            paper="measured, not promised",
            ours=f"{len(fits)} columns, from {_least(fits):+.4f} to {_most(fits):+.4f} beside their level",
            agrees=True,
        ),
        Claim(
            statement="On complete trees the best linear estimate has a smaller error than the raw answer",
            paper="T-FITVAR",
            ours=f"mean squared error {_ratio(both, min):.2f} to {_ratio(both, max):.2f} times that of the raw answers",
            agrees=not worse,
            why="; ".join(f"{line.noise}, {line.keys}" for line in worse),
        ),
    ]


def raw_of(found: Sequence[Line], line: Line) -> Line:
    """The raw answers of the same cells."""
    same = (line.keys, line.noise, line.level, line.size)
    return next(
        each for each in found if each.column == "raw" and (each.keys, each.noise, each.level, each.size) == same
    )


def _least(found: Sequence[Line]) -> float:
    return min((line.coverage - line.level for line in found), default=0.0)


def _most(found: Sequence[Line]) -> float:
    return max((line.coverage - line.level for line in found), default=0.0)


def _ratio(both: Sequence[tuple[Line, Line]], which: object) -> float:
    return float(which(line.squares / raw.squares for line, raw in both))  # type: ignore[operator]


def row(line: Line) -> dict[str, object]:
    return {
        "keys": line.keys,
        "noise": line.noise,
        "column": line.column,
        "level": line.level,
        "total": "all" if line.size == ALL else line.size,
        "cells": line.cells,
        "coverage": round(line.coverage, 4),
        "rmse": round(line.rmse, 2),
    }


def reproduce(*, runs: int, seed: int, tell: Tell) -> Reproduction:
    found = measured(runs=runs, seed=seed, tell=tell)
    return Reproduction(
        name="fits",
        title="How far fitted columns are off, and how often their intervals hold",
        source="Ours: docs/consistent.md",
        setting=SETTING,
        data="No data: tables made by rule.",
        runs=runs,
        seed=seed,
        claims=claims(found),
        tables={"fits": [row(line) for line in found]},
        shown=("fits",),
    )
