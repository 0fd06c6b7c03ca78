"""Microdata of a release: records that add up to its tables [A].

A count or sum of a query is fitted to all its tables at once, as for consistent tables, but cell by cell and without intervals.
A cell of weight w becomes one record of weight w, or after controlled rounding so many equal records. Everything is computed from
published numbers: no record is a respondent, and nothing is spent.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.errors import ParameterError, SolverError
from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.keys.cells import plain_column
from recordwise.plan.publication import LABEL
from recordwise.plan.statistics.base import COUNT
from recordwise.policy.policy import Policy, compose
from recordwise.postprocess.rounding import WEIGHT, disjoint_cells, round_tables
from recordwise.postprocess.uncertainty import (
    cell_error_bound_pure,
    cell_error_bound_zcdp,
    least_cell_error,
    sum_error_bound_policy,
    sum_error_bound_pure,
    sum_error_bound_zcdp,
)
from recordwise.progress import reported
from recordwise.release.consistent import Setting, Solution, check_method, order_of, solution_of
from recordwise.release.formats.csv import csv_bytes, label_line, without_formulas
from recordwise.release.nesting import IntArray, Nesting, joint_queries, key_values, nesting_of, rounding_nesting
from recordwise.release.published import PublishedGroup, PublishedQuery, PublishedStatistic
from recordwise.release.release import Release, write_json
from recordwise.release.spread import noise_of
from recordwise.release.staging import new_folder
from recordwise.release.tables import PRIVATE

MOST_RECORDS = 500_000_000
"""More whole records than this are refused; weighted ones say the same."""
FILE = "records"
ROWS = 1_000_000
"""Rows of a CSV file that are written at a time."""
SIZES = 400
"""Sizes of a record at which the bound on sums of a measure is tried."""
MADE = "made of published tables alone, so that no row is a respondent"


@dataclass(frozen=True, slots=True, kw_only=True)
class SumBound:
    """What no private records can do better in one table.

    Root mean squared errors, the worst over all populations (T-UNCERTAIN).
    """

    table: str
    cells: int
    """The finest cells in one of its cells, at most."""
    noise: float
    """The error of its noisy answers, the largest."""
    least_sum_error: float
    """Of records whose finest cells are as good as their noisy answers."""
    least_cell_error: float
    """Of records whose sums in this table are as good as its noisy answers."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Records:
    """Weighted or whole records, and what they are."""

    data: pa.Table
    """A row for each record: the keys of all tables, values, and for weighted ones a weight."""
    whole: bool
    about: Mapping[str, Any]
    """How they were made, as saved next to them."""
    sums: tuple[SumBound, ...] = ()
    """For each table of the query, what its sums over records cannot be."""
    no_bound: str = ""
    """Why there are no bounds, if so."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The records as an Arrow stream."""
        return self.data.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """The records as a pandas frame.

        Returns:
            The frame.
        """
        return self.data.to_pandas()

    def save(self, folder: str | Path, *, formats: Sequence[str] = ("parquet", "csv")) -> Path:
        """Write the records and what they are into a new folder.

        Args:
            folder: The name of a folder that does not exist yet.
            formats: "parquet", "csv" or both.

        Returns:
            The folder, with records.parquet, records.csv and records.json.

        Raises:
            ParameterError: A format is another one.
            OutputError: The folder already exists or could not be written.
        """
        import pyarrow.parquet

        if not formats or set(formats) - {"parquet", "csv"}:
            raise ParameterError(parameter="formats", problem="of records are parquet and csv")
        with new_folder(folder) as staging:
            if "parquet" in formats:
                pyarrow.parquet.write_table(self.data, staging / f"{FILE}.parquet", compression="zstd")
            if "csv" in formats:
                with (staging / f"{FILE}.csv").open("wb") as file:
                    file.write(label_line(self.about.get("mark", PRIVATE)))
                    for piece in self._csv():
                        file.write(piece)
            write_json(self.to_json(), staging / f"{FILE}.json")
        return Path(folder)

    def _csv(self) -> Iterator[pa.Buffer]:
        for start in range(0, max(self.data.num_rows, 1), ROWS):
            part = self.data.slice(start, ROWS)
            plain = [each.cast(_plain(each.type)) for each in part.columns]
            yield csv_bytes(without_formulas(pa.table(plain, names=part.column_names)), header=start == 0)

    def to_json(self) -> dict[str, Any]:
        """Return what they are, as in records.json.

        Returns:
            The entries.
        """
        bounds = {"sums": [asdict(each) for each in self.sums]} if self.sums else {"no_bound": self.no_bound}
        return {**self.about, **bounds}

    def __repr__(self) -> str:
        kind = "whole" if self.whole else "weighted"
        return f"<Records: {self.data.num_rows:,} {kind} records of {self.about['of']}, {self.about['mark']}>"


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


@reported
def records_of(
    release: Release,
    *,
    weighted: bool,
    whole: bool,
    of: str | None,
    values: Sequence[str],
    method: str,
    priority: Sequence[str] | None,
    complete: bool,
    gamma: float,
    slack: float,
) -> Records:
    """Make records of a release; see ``Release.records``."""
    if not isinstance(weighted, bool) or not isinstance(whole, bool) or weighted == whole:
        raise ParameterError(
            parameter="records", problem="are weighted or whole", advice="Give weighted=True or whole=True."
        )
    if method == "ols":
        raise ParameterError(
            parameter="method", problem="ols has negative cells, which cannot become records", advice="Use nnls."
        )
    check_method(release, method, priority)
    query, statistic = chosen_variable(release, of)
    nesting = nesting_of(release, query, complete=complete)
    if nesting.cells.shared:
        raise ParameterError(
            parameter="complete",
            problem="is needed: keys do not list every pair of their codes, so that records in unlisted pairs are in two "
            "tables and in no cell that a record could be made of",
            advice="Say complete=True if no record is in an unlisted pair.",
        )
    setting = Setting(
        method=method,
        order=order_of(nesting, priority),
        zero_counts=False,
        rules={},
        confidence=release.published.confidence,
        draws=None,
        digest=release.digest,
        count=iter(()),
        gamma=gamma,
        slack=slack,
    )
    noises = [noise_of(nesting, statistic)]
    kept = np.ones(nesting.rows.shape[1], dtype=bool)
    found = solution_of(nesting, [statistic], setting, kept, noises)
    cells = FittedCells(nesting=nesting)
    changes: dict[str, Any] = {}
    sizes: Any = np.asarray(found.fit.x, np.float64)
    if whole:
        sizes, changes = whole_cells(nesting, found, float(release.published.measure(statistic.of).step))
    named = _values(release, query, statistic, values)
    columns = {each.name: _per_record(nesting, each, setting, sizes) for each in named}
    about = _about(release, query, statistic, setting, found, whole=whole, complete=complete) | changes
    made = cells.table(sizes, columns, whole=whole)
    about |= {"records": made.num_rows, "total": float(sizes.sum()), "columns": made.column_names}
    label = {LABEL: release.privacy_label, "recordwise_records": json.dumps(about, allow_nan=False)}
    bounds, reason = sum_bounds(release, nesting, statistic, found)
    data = made.replace_schema_metadata(label)
    return Records(data=data, whole=whole, about=about, sums=bounds, no_bound=reason)


# Which count or sum becomes records, or why none does.


def chosen_variable(release: Release, of: str | None) -> tuple[PublishedQuery, PublishedStatistic]:
    """Return the query and the count or sum that a name means."""
    found = list(_variables(release))
    if of is None:
        counts = [each for each in found if each[1].rules.counts_records]
        found = counts or found
    else:
        number = re.match(r"q([1-9]\d*):", of)
        plain = of[number.end() :] if number else of
        found = [
            (query, each)
            for query, each in found
            if plain in (*each.names, each.of) and (number is None or int(number[1]) in query.numbers)
        ]
    if len(found) == 1:
        return _positive(release, *found[0])
    known = [f"q{query.numbers[0]}:{each.name}" for query, each in _variables(release)]
    if not known:
        raise ParameterError(
            parameter="release",
            problem="publishes no count and no sum: averages, ratios and quantiles do not say how many records there are",
            advice="Publish a count too.",
        )
    problem = (
        "must name one count or sum of the release" if of is None else f"names no count or sum, or several: {of!r}"
    )
    raise ParameterError(parameter="of", problem=problem, advice=f"Choose one of {', '.join(known)}.")


def _variables(release: Release) -> Iterator[tuple[PublishedQuery, PublishedStatistic]]:
    for query in joint_queries(release.published.queries, at_most={}, zero_counts=False):
        yield from ((query, each) for each in query.statistics if each.rules.fitted)


def _positive(
    release: Release, query: PublishedQuery, statistic: PublishedStatistic
) -> tuple[PublishedQuery, PublishedStatistic]:
    if statistic.of is not None and release.published.measure(statistic.of).signed:
        raise ParameterError(
            parameter="of",
            problem=f"'{statistic.name}' may be negative, and records have no negative weights",
            advice="Make records of a count, with values=.",
        )
    if not statistic.rules.adds_up(statistic.of, firm=release.published.firm):
        raise ParameterError(
            parameter="of",
            problem=f"'{statistic.name}' counts a firm in each of its cells, so that no records have all these counts",
            advice="Make records of the units.",
        )
    return query, statistic


def _values(
    release: Release, query: PublishedQuery, statistic: PublishedStatistic, names: Sequence[str]
) -> list[PublishedStatistic]:
    """Return the sums of the query that records have values of."""
    known = {
        each.name: each
        for each in query.statistics
        if each.rules.fitted and each is not statistic and each.rules.adds_up(each.of, firm=release.published.firm)
    }
    found = []
    for name in names:
        own = known.get(name) or next((each for each in known.values() if each.of == name), None)
        if own is None:
            raise ParameterError(
                parameter="values",
                problem=f"name '{name}', which is no other sum of the same tables",
                advice=f"Available are {', '.join(known) or 'none'}.",
            )
        found.append(own)
    return found


# The cells as rows.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedCells:
    """The cells of a fit: those of the finest table, then what only coarser tables have."""

    nesting: Nesting

    def groups(self) -> list[PublishedGroup]:
        """Return every key column once, those of the finest table first."""
        by = _by(self.nesting)
        listed = [group for table in self.nesting.tables for group in by[table.name]]
        return list({group.name: group for group in reversed(listed)}.values())[::-1]

    def key(self, group: PublishedGroup) -> pa.Array:
        """Return a key column of all cells; NULL where only a coarser cell is published."""
        lists, parts = self.nesting.published.lists, []
        for table, rows in self.nesting.cells.owners:
            column = key_values(table, self.nesting.tables, _by(self.nesting), group, lists)
            plain = None if column is None else plain_column(_chunked(column)).take(pa.array(rows))
            parts.append(pa.nulls(len(rows)) if plain is None else plain)
        kind = next(part.type for part in parts if not pa.types.is_null(part.type))
        joined = pa.concat_arrays([part.cast(kind) for part in parts])
        return joined.dictionary_encode() if pa.types.is_string(kind) else joined

    def table(self, sizes: Any, values: Mapping[str, FloatArray], *, whole: bool) -> pa.Table:
        """Return a row for each record of cells of these sizes."""
        chosen = np.flatnonzero(sizes > 0)
        if whole:
            total = int(sizes.sum())
            if total > MOST_RECORDS:
                raise ParameterError(
                    parameter="whole", problem=f"would make {total:,} records", advice="Use weighted=True."
                )
            chosen = np.repeat(np.arange(len(sizes)), sizes)
        places = pa.array(chosen)
        columns: dict[str, Any] = {group.name: self.key(group).take(places) for group in self.groups()}
        columns |= {name: pa.array(each[chosen]) for name, each in values.items()}
        if not whole:
            columns[_free(WEIGHT, columns)] = pa.array(np.asarray(sizes, np.float64)[chosen])
        return pa.table(columns) if columns else pa.table({"record": pa.nulls(len(chosen))})


def _by(nesting: Nesting) -> dict[str, tuple[PublishedGroup, ...]]:
    return {table.name: table.by for table in nesting.query.tables}


def _chunked(column: Any) -> pa.ChunkedArray:
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _free(name: str, taken: Mapping[str, Any]) -> str:
    while name in taken:
        name = f"record_{name}"
    return name


def whole_cells(nesting: Nesting, found: Solution, step: float) -> tuple[IntArray, dict[str, Any]]:
    """Return whole cells whose sums round the fitted ones, with changes.

    Every published number is rounded up or down where the tables are at most two chains of nested ones (T-ROUND).
    """
    fits = [part / step for part in nesting.by_table(found.totals[0])]
    nested = rounding_nesting(nesting)
    rounded = round_tables(fits, nested, rests=nesting.remainders)
    own = dict(enumerate(rounded[:1]))
    if nesting.remainders:
        split = disjoint_cells([np.asarray(each, np.float64) for each in rounded], nested)
        own = {at: np.rint(each).astype(np.int64) for at, each in split.items()}
    names = [table.name for table in nesting.tables]
    sizes = np.concatenate([own[names.index(table.name)][rows] for table, rows in nesting.cells.owners])
    left = sum(int(each.sum()) for each in own.values()) - int(sizes.sum())
    if left or np.any(sizes < 0):
        raise SolverError(problem="the rounding to whole records", status="a cell is negative or without an owner")
    changes = {name: np.abs(new - old) for name, new, old in zip(names, rounded, fits)}
    return sizes, {
        "unit": step,
        "largest_change": {name: float(np.max(each, initial=0.0)) for name, each in changes.items()},
        "moved_more": {name: int(np.sum(each >= 1)) for name, each in changes.items()},
    }


def _per_record(nesting: Nesting, statistic: PublishedStatistic, setting: Setting, sizes: Any) -> FloatArray:
    """Return the value of each record of a cell, so that a fitted sum is that over its records."""
    kept = np.asarray(sizes > 0)
    signed = statistic.of in nesting.signed
    own = replace(setting, method="ols") if signed else setting
    found = np.zeros(len(kept))
    if np.any(kept):
        found[kept] = (
            np.asarray(solution_of(nesting, [statistic], own, kept, [noise_of(nesting, statistic)]).fit.x) / sizes[kept]
        )
    return found


def _about(
    release: Release,
    query: PublishedQuery,
    statistic: PublishedStatistic,
    setting: Setting,
    found: Solution,
    *,
    whole: bool,
    complete: bool,
) -> dict[str, Any]:
    """Return what a reader of the records must know."""
    kind = "one row for each whole record" if whole else f"one row for each cell, with a positive {WEIGHT}"
    options = {"reweighted": {"gamma": setting.gamma}, "max_fit": {"slack": setting.slack}}
    return {
        "recordwise_records": 1,
        "mark": release.privacy_label,
        "what": f"{kind}; {MADE}. Sums over rows add up to all tables below, and are biased upward where cells are small.",
        "dataset": release.published.dataset,
        "release": release.digest,
        "of": statistic.name,
        "kind": "whole" if whole else "weighted",
        "tables": [table.name for table in query.tables],
        "method": setting.method,
        **options.get(setting.method, {}),
        "complete": complete,
        "kkt": float(np.max(found.fit.kkt)),
        "primal": float(np.max(found.fit.primal)),
        "converged": bool(np.all(found.fit.converged)),
    }


# What no private records can do better (T-UNCERTAIN), with the losses of the user's own plan.


def sum_bounds(
    release: Release, nesting: Nesting, statistic: PublishedStatistic, found: Solution
) -> tuple[tuple[SumBound, ...], str]:
    """Return the bounds of each table, or why there are none."""
    noise, names = (
        found.problem.noises[0],
        {table.name: statistic.in_table(table.name).name for table in nesting.tables},
    )
    used = [part.policy for part in release.parts if names.get(part.table) == part.statistic]
    policy = compose(used)
    if len(used) < len(names):
        return (), "the release does not say what each of its tables costs"
    if noise.varies:
        return (), "the noise grows with the total, so that no cell has one error"
    if policy.columns():
        return (), "the loss of a record depends on its columns"
    spreads = [np.sqrt(part) for part in nesting.by_table(noise.variance(None))]
    inside = nesting.rows[:, : nesting.finest_count]
    counts = nesting.by_table(np.diff(inside.tocsr().indptr))
    cell = float(np.max(spreads[0]))
    if not np.isfinite(cell):
        return (), "the noise has no variance"
    made = []
    for table, own, spread in zip(nesting.tables, counts, spreads):
        size, worst = int(np.max(own, initial=0)), float(np.max(spread))
        if size:
            least = _bounds(policy, statistic, size, cell, worst, float(release.published.measure(statistic.of).step))
            known = {"least_sum_error": least[0], "least_cell_error": least[1]}
            made.append(SumBound(table=table.name, cells=size, noise=worst, **known))
    return tuple(made), ""


def _bounds(
    policy: Policy, statistic: PublishedStatistic, cells: int, cell_error: float, sum_error: float, step: float
) -> tuple[float, float]:
    """Return the least errors of the sum and of a cell."""
    if statistic.rules.contribution == COUNT:
        rho = float(policy.loss({}))
        least = sum_error_bound_zcdp(cells=cells, cell_error=cell_error, rho=rho)
        below = cell_error_bound_zcdp(cells=cells, sum_error=sum_error, rho=rho)
        with suppress(ParameterError):
            # A pure loss, where all noise has one, gives a bound of its own; both hold.
            epsilon = float(policy.epsilon_pure({}))
            least = max(least, sum_error_bound_pure(cells=cells, cell_error=cell_error, epsilon=epsilon))
            below = max(below, cell_error_bound_pure(cells=cells, sum_error=sum_error, epsilon=epsilon))
        return least, below
    reach = np.unique(np.ceil(np.geomspace(1.0, 1e6, SIZES) * max(cell_error / step, 1.0) / 10)) * step
    losses = np.asarray(policy.loss({str(statistic.of): reach}))

    def bound(error: float) -> float:
        return sum_error_bound_policy(cells=cells, cell_error=error, sizes=reach, losses=losses)

    return bound(cell_error), least_cell_error(bound, sum_error)
