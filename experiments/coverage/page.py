"""docs/coverage.md and docs/assets/coverage.csv: what was measured, summarized by column and number by number."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.coverage.lines import Line
from experiments.coverage.reasons import REASONS
from experiments.coverage.run import RUNS, SETTING, shown_reason

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE, NUMBERS = DOCS / "coverage.md", DOCS / "assets" / "coverage.csv"
COMMAND = "python -m experiments.coverage"
HEAD = ("column", "mechanism", "level", "size", "share", "standard_error", "reason")
GROUPS = {
    "Sums": ("sum", "signed sum", "derived sum", "sum in selected cells"),
    "Counts": ("count", "distinct count", "selected count"),
    "Averages, ratios, combinations, quantiles": (
        *("average", "ratio", "ratio of a combination", "ratio, both transformed", "combination"),
        *("quantile .5", "quantile .9"),
    ),
    "Changes": ("change of", "percentage change of"),
    "Best linear estimates": ("best",),
    "Nonnegative fits": ("fit",),
}
INTRODUCTION = f"""\
# Measured coverage

How often does a published interval hold the exact number? At least as often as it states, and the closer the better. A row has
the lowest and the highest share over all mechanisms and sizes of cells, with standard errors. "Wide" counts the numbers that hold
over two points more often than stated (less is better), with the letter of their [reason](#reasons). None is below its level by
more than three standard errors.

[coverage.csv](assets/coverage.csv) has every number, written by `{COMMAND}`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One measured share, as the file states it."""

    column: str
    mechanism: str
    level: float
    size: int
    share: float
    standard_error: float
    mark: str
    """That of the reason where the share is outside its bounds."""

    @property
    def key(self) -> tuple[str, str, float, int]:
        """What was measured."""
        return self.column, self.mechanism, self.level, self.size


def stated(lines: Sequence[Line]) -> list[Number]:
    """The numbers as the file states them."""
    found = []
    for line in lines:
        why = shown_reason(line)
        found.append(
            Number(
                column=line.column,
                mechanism=line.mechanism,
                level=line.level,
                size=line.size,
                share=round(line.coverage, 4),
                standard_error=round(line.standard_error, 4),
                mark="" if why is None else why.mark,
            )
        )
    return found


def file_text(numbers: Sequence[Number]) -> str:
    """The whole file of numbers."""
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(HEAD)
    for each in numbers:
        measured = (f"{each.share:.4f}", f"{each.standard_error:.4f}", each.mark)
        writer.writerow((each.column, each.mechanism, f"{each.level:g}", each.size, *measured))
    return made.getvalue()


def read_numbers(text: str) -> list[Number]:
    """Read what a file states."""
    rows = csv.reader(io.StringIO(text))
    assert tuple(next(rows)) == HEAD
    return [
        Number(
            column=column,
            mechanism=mechanism,
            level=float(level),
            size=int(size),
            share=float(share),
            standard_error=float(error),
            mark=mark,
        )
        for column, mechanism, level, size, share, error, mark in rows
    ]


def text(numbers: Sequence[Number], runs: int = RUNS) -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for title in GROUPS:
        some = [each for each in numbers if _group(each.column) == title]
        if some:
            parts += [f"## {title}", "", *_table(some), ""]
    parts += ["## Reasons", ""]
    parts += [
        f"- **{mark}**: {words}" for mark, words in sorted(REASONS.items()) if any(x.mark == mark for x in numbers)
    ]
    parts += ["", "## How it is measured", "", *(f"- {each}" for each in SETTING)]
    parts += [f"- {len(numbers):,} numbers, from {runs:,} cells each where a release of that many is cheap."]
    return "\n".join(parts) + "\n"


def _group(column: str) -> str:
    exact = next((title for title, names in GROUPS.items() if column in names), None)
    return exact or next(title for title, names in GROUPS.items() if any(column.startswith(x) for x in names))


def _table(numbers: Sequence[Number]) -> Iterator[str]:
    yield "| column | level | numbers | lowest | highest | wide |"
    yield "|---|---|---|---|---|---|"
    for row, level in dict.fromkeys((_row(each.column), each.level) for each in numbers):
        some = [each for each in numbers if (_row(each.column), each.level) == (row, level)]
        lowest, highest = min(some, key=lambda x: x.share), max(some, key=lambda x: x.share)
        marks = [each.mark for each in some if each.mark]
        counted = ", ".join(f"{marks.count(mark)}{mark}" for mark in sorted(set(marks)))
        yield f"| {row} | {level:g} | {len(some)} | {_shown(lowest)} | {_shown(highest)} | {counted} |"


def _row(column: str) -> str:
    """The columns of all cells of a tree, of both ways to get a variance, or of all changes, share a row."""
    if "change of" in column:
        return column.partition(" of")[0]
    kind, *rest = column.split(", ")
    if not column.startswith(("best", "fit")):
        return column
    return f"{kind}, {rest[0] if rest[0] == 'crossed' else rest[-1]}"


def _shown(number: Number) -> str:
    return f"{number.share:.3f}±{number.standard_error:.3f}"
