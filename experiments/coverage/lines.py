"""What is measured: one interval column of one kind of cell, and a record of every interval column that was published."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

import recordwise as rw

SIZES = (0, 1, 3, 10, 100, 10_000)
"""Exact totals or numbers of records of the cells."""
LARGE = (10**7, 10**11)
"""Totals of sums besides, which cost nothing to measure."""
LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """How often one interval column holds in cells of one size."""

    column: str
    mechanism: str
    size: int
    level: float
    """The confidence that the release states for the column."""
    cells: int
    """Independent cells: of one tree at most one of each line."""
    held: int
    inside: int
    """Cells whose exact number is not at an end either: an interval that is shorter by a step at both ends would hold in these."""
    empty: int
    """Cells without either end; a single end that is left empty does not miss."""

    @property
    def coverage(self) -> float:
        return self.held / self.cells

    @property
    def standard_error(self) -> float:
        return float((self.coverage * (1 - self.coverage) / self.cells) ** 0.5)


@dataclass(slots=True)
class Tally:
    """The lines of some releases, and what those releases publish: a column with an interval and without a line is a defect."""

    lines: list[Line] = field(default_factory=list)
    published: set[str] = field(default_factory=set)
    """The interval columns of all tables, as release.variable."""
    measured: set[str] = field(default_factory=set)
    endings: set[str] = field(default_factory=set)
    """What stands between a variable's name and ``_low``."""
    statistics: set[str] = field(default_factory=set)
    """The kinds of the statistics with a measured interval."""
    mechanisms: set[str] = field(default_factory=set)
    """The kinds of their mechanisms."""

    def saw(self, name: str, release: rw.Release) -> None:
        """Every interval column of a release and of its basic tables."""
        for table in (*release.tables, *release.basic_tables):
            self.saw_table(name, table.data, table.variables)
        for query in release.to_json()["plan"]:
            for each in query["statistics"]:
                self.statistics.add(each["kind"])
                self.mechanisms |= kinds_in(each)

    def saw_table(self, name: str, data: pa.Table, variables: Iterable[str]) -> None:
        for column in data.column_names:
            if not column.endswith("_low"):
                continue
            found = column.removesuffix("_low")
            self.published.add(f"{name}.{found}")
            owners = [each for each in variables if found == each or found.startswith(f"{each}_")]
            self.endings.add(found.removeprefix(max(owners, key=len)) if owners else found)

    def line(
        self,
        name: str,
        data: pa.Table,
        variable: str,
        exact: Any,
        *,
        column: str,
        mechanism: str,
        size: int,
        level: float = LEVEL,
        rows: Any = slice(None),
        unbounded: bool = False,
    ) -> None:
        """Measure the interval of a variable in some rows, whose exact number is given.

        A cell without either end counts as missed, unless there may be no bound in either direction (``unbounded``).
        """
        self.measured.add(f"{name}.{variable}")
        low, high = (
            np.asarray(data.column(f"{variable}_{end}").to_numpy(), np.float64)[rows] for end in ("low", "high")
        )
        if not len(low):
            return
        empty = np.isnan(low) & np.isnan(high)
        missed, at_an_end = (low > exact) | (high < exact) | (empty & (not unbounded)), (low == exact) | (high == exact)
        self.lines.append(
            Line(
                column=column,
                mechanism=mechanism,
                size=size,
                level=level,
                cells=len(low),
                held=int(np.sum(~missed)),
                inside=int(np.sum(~missed & ~at_an_end)),
                empty=int(np.sum(empty)),
            )
        )

    def leave(self, name: str, *variables: str) -> None:
        """Columns of a release that lines of another one measure."""
        self.measured |= {f"{name}.{variable}" for variable in variables}

    @property
    def unmeasured(self) -> list[str]:
        return sorted(self.published - self.measured)

    def pooled(self) -> list[Line]:
        """One line for each column, mechanism, size and level: releases that repeat one another are added up."""
        found: dict[tuple[str, str, int, float], list[Line]] = {}
        for line in self.lines:
            found.setdefault((line.column, line.mechanism, line.size, line.level), []).append(line)
        return [_sum(key, some) for key, some in found.items()]


def _sum(key: tuple[str, str, int, float], some: list[Line]) -> Line:
    column, mechanism, size, level = key
    totals = {name: sum(getattr(line, name) for line in some) for name in ("cells", "held", "inside", "empty")}
    return Line(column=column, mechanism=mechanism, size=size, level=level, **totals)


def kinds_in(form: Any) -> set[str]:
    """The kinds of all mechanisms inside the description of a statistic."""
    if isinstance(form, dict):
        own = {str(form["kind"])} if "kind" in form and "name" not in form else set()
        return own.union(*(kinds_in(each) for each in form.values()))
    return set()


def alias(name: str) -> str:
    """The name a column is published under."""
    return "".join(letter for letter in name.lower() if letter.isalnum())
