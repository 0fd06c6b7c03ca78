"""The change from an earlier release to a later one, cell by cell, with its accuracy. Post-processing: nothing is read or spent.

Which cells come and go follows from the published lists of cells, never from whether a cell holds records. Codes that were split or
merged are added up to what both releases have in common, by a public list of pairs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.mechanisms.base import gaussian_sigma, inside
from recordwise.mechanisms.registry import mechanism_from_json
from recordwise.plan.arrays import null_as, numpy_of
from recordwise.plan.statistics import statistic_kind
from recordwise.plan.statistics.base import COUNT, SUM
from recordwise.plan.statistics.ratios import STEEPEST, Side, outward, ratio_interval
from recordwise.plan.status import StatusRules
from recordwise.release.crosswalk import LEAST, PARTS, Crosswalk, merged, read_crosswalk
from recordwise.release.lattice_reach import exact_reach, gaussian_reach
from recordwise.release.status import STATUS, named, relative_error

if TYPE_CHECKING:
    from recordwise.release.release import Release
    from recordwise.release.tables import ReleasedTable

BOTH, ONLY_NOW, ONLY_BEFORE = "both", "only now", "only before"
PRESENCE = "listed"
"""The column that says in which of the two releases a cell is listed."""
WHOLE = 2.0**52
"""Sums and differences of whole numbers below it are exact floats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One published variable of both releases."""

    name: str
    gaussian: bool
    """Whether its noise is Gaussian on the data's own scale in both."""
    additive: bool
    """Whether it is a count or a sum, so that cells may be added up."""
    nonnegative: bool
    step: float
    """The coarser of the two lattices."""
    one_lattice: bool
    """Whether both are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """A variable in one release, cell by cell; NaN where a cell is not listed."""

    value: FloatArray
    sd: FloatArray
    low: FloatArray
    high: FloatArray
    parts: FloatArray
    """How many published cells it is the sum of."""
    least_sd: FloatArray
    """The smallest sd among them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Change:
    """The change of every table and variable that two releases have in common."""

    tables: dict[str, pa.Table]
    confidence: dict[str, float]
    """The confidence of the intervals, by table and variable: the releases' own c where noise is Gaussian, 2 c - 1 elsewhere."""
    before: str
    now: str
    """The digests of the two releases."""

    def __getitem__(self, name: str) -> pa.Table:
        """A table by its name."""
        return self.tables[name]

    def to_json(self) -> dict[str, Any]:
        """What is known about the change, without the tables themselves."""
        cells = {name: table.num_rows for name, table in self.tables.items()}
        return {"before": self.before, "now": self.now, "confidence": self.confidence, "cells": cells}


def change(now: "Release", before: "Release", crosswalk: Mapping[str, Any] | None = None) -> Change:
    """The change from ``before`` to ``now``; see ``Release.change``."""
    _check(now, before)
    pairs = read_crosswalk(crosswalk or {})
    level = min(float(each.description.get("interval_level", 0.95)) for each in (now, before))
    known, rules = {table.name: table for table in before.tables}, now.content().rules
    tables: dict[str, pa.Table] = {}
    confidence: dict[str, float] = {}
    for table in now.tables:
        earlier = known.get(table.name)
        if earlier is None or earlier.keys != table.keys:
            continue
        found = _variables(now, before, table, earlier)
        columns, levels = _changed(table, earlier, found, pairs, level, rules)
        tables[table.name] = columns
        confidence |= {f"{table.name}.{name}": each for name, each in levels.items()}
    if not tables:
        raise ParameterError(
            parameter="previous",
            problem="has no table with the same name and the same key columns",
            advice="Compare like plans.",
        )
    return Change(tables=tables, confidence=confidence, before=before.digest, now=now.digest)


def _check(now: "Release", before: "Release") -> None:
    if not (now.private and before.private):
        raise ParameterError(parameter="previous", problem="and this release must both be private, and one is not")
    if now.digest == before.digest:
        raise ParameterError(parameter="previous", problem="is this release itself, whose noise is not independent")


def _variables(now: "Release", before: "Release", table: "ReleasedTable", earlier: "ReleasedTable") -> list[Variable]:
    found = []
    for name in table.variables:
        ours, theirs = _statistic(now, table, name), _statistic(before, earlier, name)
        if name not in earlier.variables or ours is None or theirs is None or ours["kind"] != theirs["kind"]:
            continue
        kind = statistic_kind(ours["kind"]).contribution if "mechanism" in ours else None
        steps = [_step(each, of.get("of")) for each, of in ((now, ours), (before, theirs))]
        found.append(
            Variable(
                name=name,
                # A quantile is read off counts with Gaussian noise, but its own error is not Gaussian.
                gaussian=kind in (SUM, COUNT) and _gaussian(ours) and _gaussian(theirs),
                additive=kind in (SUM, COUNT) and ours["kind"] != "CountDistinct",
                nonnegative=not any(_signed(each, ours.get("of")) for each in (now, before)),
                step=max(steps),
                one_lattice=min(steps) == max(steps),
            )
        )
    return found


def _statistic(release: "Release", table: "ReleasedTable", name: str) -> Mapping[str, Any] | None:
    """The description of a variable in release.json."""
    for query in release.description["plan"]:
        if any(each.get("name") == table.name for each in query.get("tables", ())):
            return next((each for each in query["statistics"] if each["name"] == name), None)
    return None


def _gaussian(statistic: Mapping[str, Any]) -> bool:
    form = statistic.get("mechanism")
    mechanism = None if form is None else mechanism_from_json(form)
    return mechanism is not None and all(gaussian_sigma(each) is not None for each in inside(mechanism))


def _measure(release: "Release", name: str | None) -> Mapping[str, Any]:
    measures = release.description.get("schema", {}).get("measures", ())
    return next((each for each in measures if each["name"] == name), {})


def _step(release: "Release", name: str | None) -> float:
    return float(Fraction(_measure(release, name).get("step", "1")))


def _signed(release: "Release", name: str | None) -> bool:
    form = _measure(release, name)
    return bool(form.get("signed")) or "derive" in form


def _changed(
    now: "ReleasedTable",
    before: "ReleasedTable",
    variables: Sequence[Variable],
    pairs: Crosswalk,
    level: float,
    rules: StatusRules,
) -> tuple[pa.Table, dict[str, float]]:
    keys = now.keys
    used = pairs.of(keys)
    kept = [each for each in variables if each.additive or not used]
    ours, theirs = now.data, before.data
    if used:
        names = [each.name for each in kept]
        ours, theirs = (merged(data, keys, names, pairs, side) for data, side in ((ours, 1), (theirs, 0)))
    cells, rows, earlier_rows = _joined(ours, theirs, keys)
    columns: dict[str, Any] = {name: cells.column(name) for name in cells.column_names}
    levels = {}
    for each in kept:
        first, second = _numbers(ours, each.name, rows), _numbers(theirs, each.name, earlier_rows)
        columns |= _differences(each, first, second, level, rules)
        levels[each.name] = level if each.gaussian else max(0.0, 2 * level - 1)
    return pa.table(columns), levels


def _joined(ours: pa.Table, theirs: pa.Table, keys: Sequence[str]) -> tuple[pa.Table, Any, Any]:
    """The cells of either table with where they are listed, and the row of each in both tables, -1 for none."""
    if not keys:
        one = np.zeros(1, np.int64)
        return pa.table({PRESENCE: [BOTH]}), one, one
    marked = [
        table.select(list(keys)).append_column(name, pa.array(np.arange(table.num_rows)))
        for table, name in ((ours, "_now"), (theirs, "_before"))
    ]
    joined = marked[0].join(marked[1], keys=list(keys), join_type="full outer", coalesce_keys=True)
    joined = joined.sort_by([(name, "ascending") for name in keys])
    rows, earlier = (null_as(joined.column(name), -1) for name in ("_now", "_before"))
    listed = np.where(rows < 0, ONLY_BEFORE, np.where(earlier < 0, ONLY_NOW, BOTH))
    return joined.select(list(keys)).append_column(PRESENCE, pa.array(listed)), rows, earlier


def _numbers(table: pa.Table, name: str, rows: Any) -> Numbers:
    def taken(end: str) -> FloatArray:
        column = pc.cast(table.column(f"{name}{end}"), pa.float64(), safe=False)
        values = np.append(numpy_of(column), np.nan)
        return np.asarray(values[rows], np.float64)

    found = {"value": taken(""), "sd": taken("_sd"), "low": taken("_low"), "high": taken("_high")}
    added = f"{name}{PARTS}" in table.column_names
    parts = taken(PARTS) if added else np.ones(len(rows))
    return Numbers(**found, parts=parts, least_sd=taken(LEAST) if added else found["sd"])


def _differences(
    variable: Variable, now: Numbers, before: Numbers, level: float, rules: StatusRules
) -> dict[str, pa.Array]:
    """Both values, their difference with its status and the percentage change, each with sd and interval; NULL where a cell is
    listed once.
    """
    with np.errstate(all="ignore"):
        difference, sd = now.value - before.value, np.hypot(now.sd, before.sd)
        reaches = [_reach(variable, each, level) for each in (now, before)]
        low, high = _ends(variable, now, before, reaches, level)
        name = variable.name
        columns = {
            f"{name}_before": before.value,
            f"{name}_now": now.value,
            f"{name}_change": difference,
            f"{name}_change_sd": sd,
            f"{name}_change_low": low,
            f"{name}_change_high": high,
        }
        if variable.nonnegative:
            columns |= _percentages(variable, now, before, reaches, level)
    found = {each: pa.array(column, mask=~np.isfinite(column)) for each, column in columns.items()}
    status = named(relative_error(difference, sd, signed=True), rules)
    return found | {f"{name}_change{STATUS}": pc.if_else(pa.array(np.isfinite(difference)), status, None)}


def _ends(
    variable: Variable, now: Numbers, before: Numbers, reaches: Sequence[FloatArray], level: float
) -> tuple[FloatArray, FloatArray]:
    """Both ends of a difference: by the law of the two noises where it is coarse (T-COARSE), by their reaches where it is fine, and
    from the ends of both sides where it is not Gaussian."""
    difference = now.value - before.value
    # An average without a value has ends all the same.
    size = np.nan_to_num(np.abs(now.value)) + np.nan_to_num(np.abs(before.value))
    around, exact = np.hypot(*reaches), np.full(difference.shape, np.nan)
    if variable.gaussian and variable.one_lattice:
        exact = variable.step * exact_reach([_in_steps(variable, each) for each in (now, before)], level)
    around = np.where(np.isnan(exact), around, exact)
    narrow = np.isfinite(around)
    low = np.where(narrow, difference - around, now.low - before.high)
    high = np.where(narrow, difference + around, now.high - before.low)
    # Differences of whole numbers need no rounding.
    whole = np.isfinite(exact) & (size + around < WHOLE) & (variable.step == np.rint(variable.step))
    return tuple(np.where(whole, one, other) for one, other in zip((low, high), outward(low, high, size)))  # type: ignore[return-value]


def _in_steps(variable: Variable, numbers: Numbers) -> tuple[FloatArray, FloatArray, FloatArray]:
    return numbers.sd / variable.step, numbers.parts, numbers.least_sd / variable.step


def _percentages(
    variable: Variable, now: Numbers, before: Numbers, reaches: Sequence[FloatArray], level: float
) -> dict[str, FloatArray]:
    """The change in percent of the earlier total, given that the exact earlier total is at least one step (T-RATIO)."""
    sides = [_side(variable, each, reach, level) for each, reach in zip((now, before), reaches)]
    low, high = ratio_interval(*sides, least=variable.step)
    low, high = outward(100 * (low - 1), 100 * (high - 1), 100 * (1 + np.abs(low) + np.abs(high)))
    ratio = np.where(before.value > 0, now.value / before.value, np.nan)
    steady = (before.value > 0) & ((sides[1].high - sides[1].low) ** 2 / 4 < STEEPEST * before.value**2)
    spread = np.where(steady, np.hypot(now.sd, ratio * before.sd) / before.value, np.nan)
    name = f"{variable.name}_percent"
    return {
        name: 100 * (ratio - 1),
        f"{name}_sd": 100 * spread,
        f"{name}_low": low,
        f"{name}_high": high,
    }


def _reach(variable: Variable, numbers: Numbers, level: float) -> FloatArray:
    """What Gaussian noise stays within with this confidence, alone or mixed (T-RATIO); NaN for other noise."""
    if not variable.gaussian:
        return np.full(numbers.sd.shape, np.nan)
    return variable.step * gaussian_reach(*_in_steps(variable, numbers), level)


def _side(variable: Variable, numbers: Numbers, reach: FloatArray, level: float) -> Side:
    """A side of the ratio: where noise is Gaussian, with an interval wide enough for two that must hold together."""
    wider = _reach(variable, numbers, (1 + level) / 2)
    known = np.isfinite(wider)
    low = np.where(known, numbers.value - wider, numbers.low)
    high = np.where(known, numbers.value + wider, numbers.high)
    return Side(value=numbers.value, low=low, high=high, reach=reach)
