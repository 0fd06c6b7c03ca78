"""Every interval column at six totals: between the stated level and two points above it, or why not."""

from collections.abc import Sequence

from experiments.coverage.releases import LEVEL, SIZES, TOTALS, Line, of_forms, of_sizes, of_sums
from experiments.frame import Claim, Reproduction, Tell

RUNS = 200_000
STEPS = len(TOTALS) + len(SIZES)
FALSE_ALARM = 1e-9
ABOVE = 0.02
FIELLER_FROM = 100
"""Records of a cell from which on every noisy count drawn here is large enough for Fieller's interval, or that of a curve."""
FIELLER_TOTAL = 10_000
"""The same for ratios: the total that has so many units."""
ONE_INTERVAL = ("Gaussian", "LogTransform", "RootTransform 2")
"""Mechanisms whose ratios have an interval of their own where the denominator is large enough."""
SETTING = (
    "Each line is one column of one release through Session.run: many cells that all have the same exact total, seeded noise, "
    "the share of the cells whose interval holds the exact number. Every published cell counts.",
    "Sums and their averages: one record in each cell, of the value stated (Clamped: of its clamped value). Counts, selected "
    "counts, quantiles and the other averages: so many records in each cell. Quantiles have a twentieth of the cells.",
    "Signed sums: of the negative value, in records that are collapsed from two rows, as those of the next. "
    "Combinations and ratios: the value as rest + 40 units, and divided by the units, of "
    "which there is one to each 40 of the value and one more; rest is derived, and the units have Gaussian noise of sigma 10. "
    "Ratios under transforms: the value to the units, both under the same one.",
    f"Level {LEVEL:g}; counts with rho .05 (sigma 3.2), selection with rho .1 and delta .01, trees of 6 bits with rho .1.",
)


def reason(line: Line) -> str:
    """Why a column may hold more often than two points above its level; empty where it may not."""
    if line.column.startswith("quantile"):
        return "the curve of counts jumps past the quantile by whole records, and from the first to the last crossing"
    if line.column == "selected count":
        return "whole numbers, cut at one record"
    if line.column == "average" and not (line.records >= FIELLER_FROM and line.mechanism in ONE_INTERVAL):
        return "two intervals at (1 + confidence)/2 each"
    if line.column == "ratio" and (line.mechanism not in ONE_INTERVAL or line.total < FIELLER_TOTAL):
        return "two intervals at (1 + confidence)/2 each"
    if line.column == "combination" and line.mechanism != "Gaussian":
        return "intervals of all parts, each at a share of the misses"
    if line.column == "signed sum" and "Transform" in line.mechanism:
        return "two parts at (1 + confidence)/2 each"
    if line.mechanism == "Gaussian, 1 step":
        return "whole numbers: the next narrower interval holds with .87"
    if line.total == 0 and "Transform" in line.mechanism:
        return "cut at 0: no noise is too low"
    return ""


def measured(*, runs: int, seed: int, tell: Tell) -> list[Line]:
    """Every column that published a cell: of very few cells a selection may keep none, which says nothing about its intervals."""
    found: list[Line] = []
    for place, total in enumerate(TOTALS):
        tell(f"sums of {total:,}")
        found += of_sums(total, runs, seed + place)
        found += of_forms(total, runs, seed + place)
    for place, size in enumerate(SIZES):
        tell(f"cells of {size:,} records")
        found += of_sizes(size, runs, seed + len(TOTALS) + place)
    return [line for line in found if line.cells]


def chance(line: Line) -> float:
    """That so few intervals hold if they hold with the level."""
    from scipy import stats

    return float(stats.binom.cdf(line.held, line.cells, LEVEL))


def too_often(line: Line) -> bool:
    """Whether more intervals hold than two points above the level explain, and nothing else explains it."""
    from scipy import stats

    beyond = float(stats.binom.sf(line.held - 1, line.cells, LEVEL + ABOVE))
    return beyond < FALSE_ALARM and not reason(line)


def claims(lines: Sequence[Line]) -> list[Claim]:
    short = [line for line in lines if chance(line) < FALSE_ALARM]
    wide = [line for line in lines if too_often(line)]
    least, most = min(line.coverage for line in lines), max(line.coverage for line in lines)
    return [
        Claim(
            statement=f"Every interval column holds the exact number in at least {LEVEL:.0%} of the cells",
            paper="our promise",
            ours=f"{len(lines)} columns, smallest share {least:.4f}; {len(short)} below the level at a false-alarm rate of 1e-9",
            agrees=not short,
            why=named(short),
        ),
        Claim(
            statement="and in at most two points more, unless a reason is stated",
            paper="our promise",
            ours=f"largest share {most:.4f}; {len(wide)} above without a reason",
            agrees=not wide,
            why=named(wide),
        ),
    ]


def named(lines: Sequence[Line]) -> str:
    return "; ".join(f"{each.column} ({each.mechanism}) at {each.total:,}: {each.coverage:.4f}" for each in lines)


def row(line: Line) -> dict[str, object]:
    above = line.coverage > LEVEL + ABOVE
    return {
        "column": line.column,
        "mechanism": line.mechanism,
        "total": line.total,
        "cells": line.cells,
        "coverage": round(line.coverage, 4),
        "standard_error": round((line.coverage * (1 - line.coverage) / line.cells) ** 0.5, 4),
        "empty_ends": round(line.empty / line.cells, 4),
        "reason": reason(line) if above else "",
    }


def reproduce(*, runs: int, seed: int, tell: Tell) -> Reproduction:
    lines = measured(runs=runs, seed=seed, tell=tell)
    return Reproduction(
        name="coverage",
        title="How often the published intervals hold",
        source="Ours: docs/intervals.md",
        setting=SETTING,
        data="No data: tables made by rule.",
        runs=runs,
        seed=seed,
        claims=claims(lines),
        tables={"coverage": [row(line) for line in lines]},
        shown=("coverage",),
    )
