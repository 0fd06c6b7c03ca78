"""docs/coverage.md: every line with its standard error, its level and, where it is outside the promise, the reason."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.coverage.lines import SIZES, Line
from experiments.coverage.run import RUNS, SETTING, shown_reason

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coverage.md"
COMMAND = "python -m experiments.coverage"
GROUPS = {
    "Sums": ("sum", "signed sum", "derived sum", "sum in selected cells"),
    "Counts": ("count", "distinct count", "selected count"),
    "Averages, ratios, combinations, quantiles": (
        *("average", "ratio", "ratio of a combination", "ratio, both transformed", "combination"),
        *("quantile .5", "quantile .9"),
    ),
    "Changes": ("change of",),
    "Changes in percent": ("percentage change of",),
    "Best linear estimates": ("best",),
    "Nonnegative fits": ("fit",),
}
INTRODUCTION = f"""\
# Measured coverage

`{COMMAND}` writes this page; `python -m experiments coverage` measures the same and adds a page of claims.
A row is a published interval column under one mechanism, by the size of the cell. A number is the share of cells whose interval
holds the exact number, with its standard error. It should lie between the level that the release states and two points above it.
Where it is outside by more than chance explains (three standard errors), a mark follows it, and the last column says why.
[What an interval means](intervals.md) has the definitions.

`make test-slow PART=experiments` measures everything again with other noise. It fails where a number leaves these bounds, or
those of its reason, or where it differs from this page, at a false-alarm rate of 1e-9 for each number and side. The tests also
fail if a release publishes an interval column, a statistic or a mechanism of a kind that is not here.
"""


def text(lines: Sequence[Line], runs: int = RUNS) -> str:
    """The whole page."""
    parts = [INTRODUCTION, *(f"- {each}" for each in SETTING), ""]
    for title in GROUPS:
        some = [line for line in lines if _group(line) == title]
        if some:
            parts += [f"## {title}", "", *_table(some), ""]
    parts.append(f"{len(lines)} numbers, from {runs:,} cells each where a release of that many is cheap.")
    return "\n".join(parts) + "\n"


def _group(line: Line) -> str:
    exact = next((title for title, names in GROUPS.items() if line.column in names), None)
    return exact or next(title for title, names in GROUPS.items() if any(line.column.startswith(x) for x in names))


def _table(lines: Sequence[Line]) -> Iterator[str]:
    sizes = sorted({*SIZES, *(line.size for line in lines)})
    yield "| column | mechanism | level | " + " | ".join(f"{size:,}" for size in sizes) + " | outside because |"
    yield "|---" * (len(sizes) + 4) + "|"
    for column, mechanism, level in dict.fromkeys((line.column, line.mechanism, line.level) for line in lines):
        found = {x.size: x for x in lines if (x.column, x.mechanism, x.level) == (column, mechanism, level)}
        cells = " | ".join(_number(found[size]) if size in found else "" for size in sizes)
        why = {each.mark: each.words for each in map(shown_reason, found.values()) if each is not None}
        words = "; ".join(f"{mark}: {each}" for mark, each in sorted(why.items()))
        yield f"| {column} | {mechanism} | {level:g} | {cells} | {words} |"


def _number(line: Line) -> str:
    why = shown_reason(line)
    mark = f" {why.mark}" if why else ""
    return f"{line.coverage:.4f} ± {line.standard_error:.4f}{mark}"


def numbers(page: str) -> dict[tuple[str, str, float, int], tuple[float, float, str]]:
    """What a page says: share, standard error and mark of each column, mechanism, level and size."""
    found, sizes = {}, list(SIZES)
    for row in page.splitlines():
        parts = [part.strip() for part in row.strip("|").split("|")]
        if parts[0] == "column":
            sizes = [int(size.replace(",", "")) for size in parts[3:-1]]
        if len(parts) != len(sizes) + 4 or not re.fullmatch(r"0\.\d+", parts[2]):
            continue
        for size, number in zip(sizes, parts[3:-1]):
            if number:
                share, _, error, *mark = number.split(" ")
                found[parts[0], parts[1], float(parts[2]), size] = (float(share), float(error), "".join(mark))
    return found
