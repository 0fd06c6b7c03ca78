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
    "Changes": ("change of",),
    "Changes in percent": ("percentage change of",),
    "Best linear estimates": ("best",),
    "Nonnegative fits": ("fit",),
}
INTRODUCTION = f"""\
# Measured coverage

How often does a published interval hold the exact number? Every interval column of a release, under every mechanism and by
the size of the cell, should hold at least as often as it states and at most two points more often. A row below has all measured
numbers of one column; where some are outside by more than chance explains (three standard errors), the last column says why.
[What an interval means](consistent.md#what-an-interval-means) has the definitions.

Every number with its standard error is in [coverage.csv](assets/coverage.csv). `{COMMAND}` writes both.
`make test-slow PART=experiments` measures everything again with other noise. It fails where a number leaves these bounds, or
those of its reason, or differs from the file, at a false-alarm rate of 1e-9 for each number and side. The tests also fail if a
release publishes an interval column, a statistic or a mechanism that is not measured.
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
    parts = [INTRODUCTION, *(f"- {each}" for each in SETTING), ""]
    for title in GROUPS:
        some = [each for each in numbers if _group(each.column) == title]
        if some:
            parts += [f"## {title}", "", *_table(some), ""]
    parts += ["## Reasons", ""]
    parts += [
        f"- **{mark}**: {words}" for mark, words in sorted(REASONS.items()) if any(x.mark == mark for x in numbers)
    ]
    parts += ["", f"{len(numbers)} numbers, from {runs:,} cells each where a release of that many is cheap."]
    return "\n".join(parts) + "\n"


def _group(column: str) -> str:
    exact = next((title for title, names in GROUPS.items() if column in names), None)
    return exact or next(title for title, names in GROUPS.items() if any(column.startswith(x) for x in names))


def _table(numbers: Sequence[Number]) -> Iterator[str]:
    yield "| column | level | numbers | lowest share | highest share | outside, and why |"
    yield "|---|---|---|---|---|---|"
    for column, level in dict.fromkeys((each.column, each.level) for each in numbers):
        some = [each for each in numbers if (each.column, each.level) == (column, level)]
        lowest, highest = min(some, key=lambda x: x.share), max(some, key=lambda x: x.share)
        marks = [each.mark for each in some if each.mark]
        told = ", ".join(f"{marks.count(mark)} {mark}" for mark in sorted(set(marks)))
        yield f"| {column} | {level:g} | {len(some)} | {_shown(lowest)} | {_shown(highest)} | {told} |"


def _shown(number: Number) -> str:
    return f"{number.share:.3f} ({number.mechanism}, {number.size:,})"
