"""The expected error of every table at totals that fit it, from the noise laws and from what is public: no record is read.

The totals are those of a small, a middle and a large cell: at the 10th, 50th and 90th percentile of the public sizes of the keys,
or of what the last release published. Sizes that are given without saying of what are taken for those of the statistics whose
noise follows them; other statistics have the totals of as many records of the usual size (``simulate/generate.py``). Where
nothing is known, cells have 10, 100 and 1,000. A combination, ratio or average has the standard deviation that is published with
it (T-RATIO); a quantile is drawn from made-up cells of so many records.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.text import figure
from recordwise.mechanisms.base import Mechanism
from recordwise.noise.randomness import Seeded
from recordwise.plan.cost import CellMechanism, Run, cell_mechanisms, possible_mechanisms
from recordwise.plan.describe import table_name
from recordwise.plan.keys.bands import sized_keys, sizes_at
from recordwise.plan.plan import Plan, PlannedTable, size_names
from recordwise.plan.statistics import BinCounts, Drawable, ExactTable, Statistic
from recordwise.plan.statistics.base import COUNT, SUM, Form
from recordwise.planning.simulate.generate import SKEW, derived_size, usual_sizes

if TYPE_CHECKING:
    from recordwise.release.release import Release

RECORDS = (10, 100, 1_000)
PERCENTILES = (10, 50, 90)
FROM_SIZES, FROM_RELEASE = "public sizes", "the last release"
FROM_OTHERS = "as many usual records as the public sizes stand for"
FROM_RECORDS = "cells of 10, 100 and 1,000 usual records"
MOST_DRAWN, MOST_NODES = 400, 1 << 21
"""A quantile is drawn for this many made-up cells, or fewer where its grid is large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedError:
    """The error of one variable of one table in a small, a middle and a large cell."""

    table: str
    cells: int | None
    """None where keys are selected."""
    variable: str
    mechanism: str
    ratio: float | None
    """The ratio of a ratio or an average in the middle cell."""
    totals: tuple[float, ...]
    """The value of the variable in each of the three cells."""
    least_sd: tuple[float, ...]
    most_sd: tuple[float, ...]
    """The largest standard deviation over the mechanisms that cells of the table may have."""
    source: str
    """Where the totals are from."""
    of: str | None = None
    """The measure that the variable is about."""
    usual: Mapping[str, float] = field(default_factory=dict)
    """The size of a usual record in each measure that the totals were made of."""

    def to_json(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is public about the totals of a plan."""

    plan: Plan
    usual: Mapping[str, float]
    """The usual size of a record in each measure."""
    last: "Release | None"

    def totals(self, table: PlannedTable, part: Drawable) -> tuple[FloatArray, str]:
        """The totals of a statistic in three cells of a table, in whole steps, and where they are from."""
        for found, source in (
            (self._sizes(table, part), FROM_SIZES),
            (self._published(table, part), FROM_RELEASE),
        ):
            known = None if found is None else _positive(found)
            if known is not None:
                return _whole(np.percentile(known, PERCENTILES), part, self.plan), source
        records = self._records(table)
        if records is not None:
            return _whole(records * self._record(part), part, self.plan), FROM_OTHERS
        return _whole(np.array(RECORDS) * self._record(part), part, self.plan), FROM_RECORDS

    def used(self, parts: Sequence[Drawable]) -> dict[str, float]:
        """The usual sizes that the totals of these parts were made of."""
        names = [part.of for part in parts if part.of is not None and self.plan.schema.measure(part.of) is not None]
        return {name: derived_size(name, self.plan, self.usual) for name in names}

    def _records(self, table: PlannedTable) -> FloatArray | None:
        """How many usual records make up the public sizes of another statistic in three cells."""
        for other in self.plan.queries[table.query].draws():
            found = self._sizes(table, other) if other.totals(self.plan.schema) else None
            known = None if found is None else _positive(found)
            if known is not None:
                return np.asarray(np.percentile(known, PERCENTILES) / self._record(other))
        return None

    def _sizes(self, table: PlannedTable, part: Drawable) -> FloatArray | None:
        keys = sized_keys(self.plan.queries[table.query], table.shape, size_names(part))
        if keys is None or keys.sizes is None:
            return None
        if not keys.sizes.named(*size_names(part)) and not part.mechanism.is_sized:
            return None
        return sizes_at(keys, table.shape.groups, self.plan.schema, size_names(part))

    def serving(
        self, table: PlannedTable, part: Drawable, served: Sequence[CellMechanism], totals: FloatArray
    ) -> list[int] | None:
        """Which mechanism serves the cell whose size is nearest to each total; None if noise does not follow sizes."""
        sizes = self._sizes(table, part) if part.mechanism.is_sized else None
        if sizes is None:
            return None
        number = np.zeros(len(sizes), np.int64)
        for place, each in enumerate(served):
            number[each.run.rows[each.run.rows < len(sizes)]] = place
        return [int(number[np.argmin(np.abs(sizes - total))]) for total in totals]

    def _published(self, table: PlannedTable, part: Drawable) -> FloatArray | None:
        name = table_name(self.plan, table)
        for each in self.last.tables if self.last is not None else ():
            if each.name == name and part.alias in each.data.column_names:
                return np.asarray(each.data.column(part.alias).drop_null().to_numpy(), np.float64)
        return None

    def _record(self, part: Drawable) -> float:
        """What a record of the usual size adds."""
        return next(iter(self.used([part]).values()), 1.0) if part.contribution == SUM else 1.0


def _positive(values: FloatArray) -> FloatArray | None:
    found = values[values > 0]
    return found if len(found) else None


def _whole(totals: FloatArray, part: Drawable, plan: Plan) -> FloatArray:
    step = float(part.step(plan.schema))
    return np.asarray(np.maximum(np.rint(totals / step), 1.0) * step)


def expected_errors(
    plan: Plan, *, examples: Mapping[str, Mapping[str, Any]] | None = None, last: "Release | None" = None
) -> tuple[ExpectedError, ...]:
    """The standard deviation of every published variable in three cells of each table.

    Args:
        plan: The plan, with the sizes of earlier releases read.
        examples: Made-up records, by name.
        last: An earlier release, if the plan names one.

    Returns:
        A row for each table and variable.
    """
    known = Known(plan=plan, usual=usual_sizes(plan, examples or {}), last=last)
    found: list[ExpectedError] = []
    for table in plan.tables():
        cells = plan.cells(table) if plan.selection(table) is None else None
        query = plan.queries[table.query]
        drawn = query.draws()
        served = {each: _served(plan, table, each, cells) for each in drawn}
        for statistic in [*query.statistics, *(each for each in drawn if each not in query.statistics)]:
            row = {
                "table": table_name(plan, table),
                "cells": None if cells is None else cells.num_rows if table.shape.groups else 1,
                "variable": statistic.alias,
                "of": statistic.of,
            }
            parts = statistic.parts(drawn)
            if all(each.totals(plan.schema) for each in parts):
                found.append(_of_forms(known, table, statistic, drawn, served, row))
            elif len(parts) == 1 and parts[0].bins():
                found.append(_of_bins(known, table, statistic, parts[0], served[parts[0]][0].mechanism, row))
    return tuple(found)


def _served(plan: Plan, table: PlannedTable, statistic: Drawable, cells: pa.Table | None) -> Sequence[CellMechanism]:
    """The mechanisms that cells of a table may have, with the cells of each where they are known."""
    if cells is None:
        unknown = Run(None, np.empty(0, np.int64))
        return [CellMechanism(each, unknown) for each in possible_mechanisms(plan, table, statistic)]
    return cell_mechanisms(plan, table, statistic, cells)


def _of_forms(
    known: Known,
    table: PlannedTable,
    statistic: Statistic,
    drawn: Sequence[Drawable],
    served: Mapping[Drawable, Sequence[CellMechanism]],
    row: dict[str, Any],
) -> ExpectedError:
    """Of N/D, with r the ratio of the totals: the root of the variance of N - r D, divided by D (T-RATIO); of N alone, its root."""
    top, bottom = statistic.forms(drawn)
    parts = {part: known.totals(table, part) for part, _ in top + bottom}
    totals = {part: found for part, (found, _) in parts.items()}
    over = np.maximum(_total(bottom, totals), 1e-300) if bottom else np.ones(len(RECORDS))
    value = _total(top, totals) / over
    ratio = value if bottom else np.zeros(len(RECORDS))
    least, most = np.zeros(len(RECORDS)), np.zeros(len(RECORDS))
    for part, own in totals.items():
        weight = (_share(top, part) - ratio * _share(bottom, part)) ** 2
        step = part.step(known.plan.schema)
        every = [each.mechanism for each in served[part]]
        spread = np.array([each.variance_of(own, step=step) for each in every])
        serving = known.serving(table, part, served[part], own)
        spread = spread if serving is None else spread[serving, range(len(own))][None]
        least, most = least + weight * spread.min(axis=0), most + weight * spread.max(axis=0)
    return ExpectedError(
        **row,
        mechanism=_words(table, statistic, drawn, float(value[1])),
        ratio=float(value[1]) if bottom else None,
        totals=tuple(value.tolist()),
        least_sd=tuple((np.sqrt(least) / over).tolist()),
        most_sd=tuple((np.sqrt(most) / over).tolist()),
        source=" and ".join(dict.fromkeys(source for _, source in parts.values())),
        usual=known.used([part for part, (_, source) in parts.items() if source in (FROM_RECORDS, FROM_OTHERS)]),
    )


def _share(form: Form, part: Drawable) -> float:
    return float(sum(share for other, share in form if other == part))


def _total(form: Form, totals: Mapping[Drawable, FloatArray]) -> FloatArray:
    return np.asarray(sum((float(share) * totals[part] for part, share in form), np.zeros(len(RECORDS))))


def _words(table: PlannedTable, statistic: Statistic, drawn: Sequence[Drawable], ratio: float) -> str:
    """The mechanism of what is drawn; of everything else, what it is computed as."""
    top, bottom = statistic.forms(drawn)
    if statistic in drawn:
        return top[0][0].mechanism.at_share(table.shape.share).text()
    return f"a ratio of about {figure(ratio)}" if bottom else "a combination of columns"


def _of_bins(
    known: Known, table: PlannedTable, statistic: Statistic, part: Drawable, served: Any, row: dict[str, Any]
) -> ExpectedError:
    """A quantile, drawn for cells with so many made-up records: lognormal around the usual one."""
    counts, source = _counts(known, table)
    values, errors = [], []
    for number in counts:
        exact, drawn = _drawn_bins(known, statistic, part, served, int(number))
        values.append(exact)
        errors.append(float(np.sqrt(np.mean((drawn - exact) ** 2))))
    return ExpectedError(
        **row,
        mechanism=served.text(),
        ratio=None,
        totals=tuple(values),
        least_sd=tuple(errors),
        most_sd=tuple(errors),
        source=f"{source}, with made-up records",
        usual=known.used([part]),
    )


def _counts(known: Known, table: PlannedTable) -> tuple[FloatArray, str]:
    """The numbers of records in three cells of a table."""
    query = known.plan.queries[table.query]
    counted = next((each for each in query.draws() if each.contribution == COUNT), None)
    return (np.array(RECORDS, np.float64), FROM_RECORDS) if counted is None else known.totals(table, counted)


def _drawn_bins(
    known: Known, statistic: Statistic, part: Drawable, mechanism: Mechanism, number: int
) -> tuple[float, FloatArray]:
    """The value of a statistic of bins without noise, and with noise drawn for many cells that hold the same records."""
    from scipy.special import ndtri

    (bins,) = part.bins()
    usual, step = derived_size(bins.measure, known.plan, known.usual), bins_step(known.plan, bins.measure)
    sizes = usual * np.exp(SKEW * ndtri((np.arange(number) + 0.5) / number))
    points = np.array([float(each * step) for each in bins.grid.steps(step)])
    place, held = np.unique(np.minimum(np.searchsorted(points, sizes), len(points) - 1), return_counts=True)
    cells = max(20, min(MOST_DRAWN, MOST_NODES // (2 * len(points))))

    def drawn(count: int, served: Any) -> FloatArray:
        counted = BinCounts(
            position=np.repeat(np.arange(count), len(place)), point=np.tile(place, count), held=np.tile(held, count)
        )
        table = ExactTable(cells=count, totals={}, bins={bins: counted})
        serving = (CellMechanism(served, Run(None, np.arange(count))),)
        answer = part.draw(table, serving, known.plan.schema, Seeded(0), asked=(statistic,), confidence=0.95)
        return np.asarray(statistic.column([answer], confidence=0.95).value, np.float64)

    share = float(getattr(statistic, "p", Fraction(1, 2)))
    exact = float(points[place[np.searchsorted(np.cumsum(held), share * number)]])
    return exact, drawn(cells, mechanism)


def bins_step(plan: Plan, measure: str) -> Fraction:
    """The step of a measure."""
    declared = plan.schema.measure(measure)
    return Fraction(1) if declared is None else declared.step
