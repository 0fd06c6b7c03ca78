"""Simulate a plan's releases and summarize a metric by group of cells.

The result says how far off the tables would be, for which cells and why, next to baselines. Releases are drawn in memory again
and again. The metric is averaged over cells and draws, by groups of cells. Where the error comes from is reported in the order of a
release: the metric after clamping, then with key selection, then with noise, then after post-processing. What each stage adds is
the rise of the metric at that stage, so the parts add up to the whole for any metric; a stage that makes tables better has a
negative part.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.expressions import Expression, Field, Prefix
from recordwise.plan.plan import Plan
from recordwise.plan.schema import Schema
from recordwise.planning.losses import class_edges, class_name
from recordwise.planning.result import Result, Rows, loss_figure
from recordwise.planning.scope import TODAY, PlanLike, read_origin, read_queries, viewed
from recordwise.planning.simulate.baselines import STAGES, Case, Drawn, Fit, Place, Rival, Stages, read_rival
from recordwise.progress import reported, tell, tracked
from recordwise.session import Session
from recordwise.session.simulated import SimulatedTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Metrics of one cell: functions of its exact and its published value, for entire columns at once.


Metric: TypeAlias = Callable[[FloatArray, FloatArray], Any]
"""Takes the exact and the published values of cells and returns a number, or a truth value, for each; NaN counts as none."""
CLOSE = 0.1


def relative_error(exact: FloatArray, published: FloatArray) -> FloatArray:
    """Return the relative error, NaN where the exact value is 0.

    Args:
        exact: The exact values.
        published: The published values.

    Returns:
        A share for each cell.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(exact == 0, np.nan, np.abs(published - exact) / np.abs(exact))


def absolute_error(exact: FloatArray, published: FloatArray) -> FloatArray:
    """The absolute error.

    Args:
        exact: The exact values.
        published: The published values.

    Returns:
        A number for each cell, in units of the variable.
    """
    return np.abs(published - exact)


def squared_error(exact: FloatArray, published: FloatArray) -> FloatArray:
    """The square of the error.

    Args:
        exact: The exact values.
        published: The published values.

    Returns:
        A number for each cell, in squared units of the variable.
    """
    return (published - exact) ** 2


def bias(exact: FloatArray, published: FloatArray) -> FloatArray:
    """The error with its sign, whose mean is the bias.

    Args:
        exact: The exact values.
        published: The published values.

    Returns:
        A number for each cell, in units of the variable.
    """
    return published - exact


def off_by_a_tenth(exact: FloatArray, published: FloatArray) -> FloatArray:
    """Return whether the error exceeds a tenth, NaN at exact 0.

    Args:
        exact: The exact values.
        published: The published values.

    Returns:
        1 or 0 for each cell.
    """
    return np.where(exact == 0, np.nan, (np.abs(published - exact) > CLOSE * np.abs(exact)).astype(np.float64))


METRICS: dict[str, Metric] = {
    "relative_error": relative_error,
    "absolute_error": absolute_error,
    "squared_error": squared_error,
    "bias": bias,
    "off_by_a_tenth": off_by_a_tenth,
}
"""The metrics that have a name."""
METRIC_WORDS = {"off_by_a_tenth": "share off by more than a tenth"}
"""What the mean of a metric is called where that is no mean of its name."""


def read_metric(given: Metric | str) -> tuple[str, Metric]:
    """Return a metric from ``METRICS`` or a function, with its name."""
    if callable(given):
        return getattr(given, "__name__", "metric"), given
    if given not in METRICS:
        raise ParameterError(
            parameter="metric",
            problem=f"is not known: '{given}'",
            advice=f"Use one of {', '.join(METRICS)}, or a function of (exact, published).",
        )
    return given, METRICS[given]


def measured(metric: Metric, name: str, exact: FloatArray, published: FloatArray) -> FloatArray:
    """The metric of each cell that has both values; NaN elsewhere.

    Raises:
        ParameterError: The function fails, or does not return a number for each cell.
    """
    known = np.isfinite(exact) & np.isfinite(published)
    try:
        values = np.asarray(metric(exact[known], published[known]), np.float64)
    except Exception as error:
        # Its text can quote a value of a cell.
        raise ParameterError(parameter="metric", problem=f"'{name}' failed with {type(error).__name__}") from None
    if values.shape != (int(known.sum()),):
        raise ParameterError(parameter="metric", problem=f"'{name}' does not return one number for each cell")
    found = np.full(len(exact), np.nan)
    found[known] = values
    return found


# Groups of cells: by a public column, a level of a hierarchy, a prefix, a custom function, or the size of a value.


SIZE, ALL = "size", "all cells"
Grouping: TypeAlias = str | Expression | Callable[[pa.Table], Any] | None


def by_words(by: Grouping) -> str:
    """What the groups are called together."""
    if by is None:
        return "group"
    if isinstance(by, str):
        return "size class" if by == SIZE else by
    return getattr(by, "__name__", None) or getattr(by, "default_name", lambda: "group")()


def labels_of(table: SimulatedTable, by: Grouping, schema: Schema) -> tuple[Any, list[str]]:
    """Return each cell's group number, and the groups' names."""
    rows = table.cells.num_rows if table.cells.num_columns else 1
    column = None if by is None or by == SIZE else column_of(table, by, schema)
    if column is None:
        return np.zeros(rows, np.int64), [ALL]
    made = pa.array(["none" if each is None else str(each) for each in column.to_pylist()]).dictionary_encode()
    order = np.argsort(np.array(made.dictionary.to_pylist(), dtype=object).astype(str))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[made.indices.to_numpy()], [made.dictionary[int(each)].as_py() for each in order]


def column_of(table: SimulatedTable, by: Any, schema: Schema) -> Any:
    """Return the labels of the cells, or None without groups."""
    if isinstance(by, Prefix):
        own = column_of(table, by.column, schema)
        return None if own is None else pc.utf8_slice_codeunits(own.cast(pa.string()), 0, by.length)
    if isinstance(by, Field):
        by = by.name
    if callable(by):
        found = pa.array(by(table.cells))
        if len(found) != max(table.cells.num_rows, 1):
            raise ParameterError(parameter="by", problem="does not return one label for each cell")
        return found
    if by in table.cells.column_names:
        return table.cells.column(by).combine_chunks()
    listed = schema.hierarchy(by)
    for level in reversed(listed.levels) if listed is not None else ():
        if listed is not None and level in table.cells.column_names and listed.determines(level, by):
            fine, coarse = listed.above(level, by)
            return coarse.take(pc.index_in(table.cells.column(level).combine_chunks(), value_set=fine))
    return _of_prefix(table, by)


def _of_prefix(table: SimulatedTable, name: str) -> Any:
    """Return the column of a prefix of the name."""
    groups = {each.name: each.expression for each in table.table.shape.groups}
    for own, expression in groups.items():
        if isinstance(expression, Prefix) and expression.column == name:
            return table.cells.column(own).combine_chunks()
    return None


def size_labels(exact: FloatArray, variable: str) -> tuple[Any, list[str]]:
    """Return tenfold classes of the exact value."""
    size = np.where(np.isfinite(exact), np.abs(exact), 0.0)
    edges = class_edges(float(size.max(initial=0.0)), float(size[size > 0].min(initial=1.0)))
    place = np.searchsorted(edges, size, side="right")
    used, codes = np.unique(place, return_inverse=True)
    return codes, [class_name(edges, int(each), variable) for each in used]


# The evaluation.


MOST_DRAWS = 10_000
NO_ERROR = "no error"
"""The metric of values that are exact, where that is not 0."""
POSSIBLE = "possible"
"""The metric of exact values in all cells, published or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedGroup:
    """The metric of a plan or baseline in one group."""

    table: str
    variable: str
    group: str
    name: str
    """The plan, or the name of a baseline."""
    cells: int
    value: float
    """The mean of the metric over the cells of the group and all draws; NaN if there is none."""
    withheld: float
    """The share of the cells without a published value."""
    withheld_total: float
    """The share of the exact total that lies in those cells."""
    sources: dict[str, float] = field(default_factory=dict)
    """What each stage adds to the metric; the parts add up to ``value``."""

    def to_json(self) -> dict[str, Any]:
        """The numbers, for JSON; null where there is none."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return found | {"value": None if np.isnan(self.value) else self.value}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Evaluation(Result):
    """A metric of a plan and its baselines by groups.

    CONFIDENTIAL if the records are.
    """

    metric: str
    by: str
    data: str
    draws: int
    groups: tuple[EvaluatedGroup, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The plan and the baselines."""
        return tuple(dict.fromkeys(each.name for each in self.groups))

    def places(self) -> tuple[Place, ...]:
        """The tables and variables."""
        return tuple(dict.fromkeys((each.table, each.variable) for each in self.groups))

    def at(self, table: str, variable: str, name: str = TODAY) -> dict[str, EvaluatedGroup]:
        """Return the groups of one variable of one table.

        Args:
            table: The name of a table.
            variable: The name of a variable.
            name: The name of a baseline, or that of the plan.

        Returns:
            The groups by their values.
        """
        wanted = (table, variable, name)
        return {each.group: each for each in self.groups if (each.table, each.variable, each.name) == wanted}

    def _numbers(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "by": self.by,
            "draws": self.draws,
            "groups": [each.to_json() for each in self.groups],
        }

    @property
    def metric_words(self) -> str:
        """What the mean of the metric is, in words."""
        return METRIC_WORDS.get(self.metric, f"mean {self.metric.replace('_', ' ')}")

    def rows(self) -> Rows:
        """Return headers and rows of the metric."""
        names = self.names
        stages = [
            stage for stage in STAGES if any(each.sources.get(stage) for each in self.groups if each.name == TODAY)
        ]
        withheld = [name for name in names if any(each.withheld for each in self.groups if each.name == name)]
        headers = ["table", "variable", self.by, "cells", *names, *(f"{name}: withheld" for name in withheld)]
        found = []
        for table, variable in self.places():
            by_name = {name: self.at(table, variable, name) for name in names}
            for group, own in by_name[TODAY].items():
                others = [by_name[name].get(group) for name in names]
                row = [table, variable, group, f"{own.cells:,}"]
                row += ["" if each is None else loss_figure(each.value) for each in others]
                row += [_share(by_name[name].get(group)) for name in withheld]
                found.append([*row, *(loss_figure(own.sources.get(stage, 0.0)) for stage in stages)])
        return [*headers, *(f"of it {stage}" for stage in stages)], found

    def plot(self, table: str | None = None, variable: str | None = None) -> "Figure":
        """Plot the metric by group, and what each stage adds.

        Args:
            table: The name of a table; the first unless given.
            variable: The name of a variable; the first of the table unless given.

        Returns:
            The figure.

        Raises:
            ParameterError: There is no such variable.
        """
        from recordwise.planning.plots import plot_evaluation

        fitting = [each for each in self.places() if table in (None, each[0]) and variable in (None, each[1])]
        if not fitting:
            raise ParameterError(parameter="variable", problem="is not among those that were evaluated")
        return plot_evaluation(self, *fitting[0])

    def _about(self) -> str:
        return f"of {len(self.places())} variables by {self.metric}"

    def _title(self) -> str:
        return f"{self.metric} by {self.by}"


def _share(each: EvaluatedGroup | None) -> str:
    from recordwise.exact.text import share_text

    return "" if each is None else share_text(each.withheld, 1)


@reported
def evaluate(
    session: Session,
    query: PlanLike,
    *,
    metric: Metric | str = "relative_error",
    by: Grouping = None,
    baselines: Mapping[str, Any] | None = None,
    fit: Fit | None = None,
    tables: Sequence[str] = (),
    statistics: Sequence[str] = (),
    draws: int = 20,
    seed: int = 0,
    data: str = "confidential",
) -> Evaluation:
    """Simulate a plan's releases and summarize a metric by group.

    With baselines, which are drawn too. Costs no budget; the result is confidential unless ``data`` says
    otherwise. Quantiles of signed measures, and of tables whose keys are selected, are left out.

    Args:
        session: An open session; its records are read, and no budget is spent.
        query: The plan: a query, several of them, a ``Plan``, or a plan file that was loaded.
        metric: A function of the exact and the published values of cells, as arrays, that returns a number for each; or the name
            of one of ``METRICS``. It is averaged over cells and draws; cells where it is NaN do not count.
        by: What cells are grouped by: a column of the keys, a level of a hierarchy, ``rw.prefix("county", 2)``, "size" for
            tenfold classes of the exact value, or a function from a table of cells to a label for each. Tables without such a
            column have one group.
        baselines: What to compare with, by name: other queries with the same names (``clamped`` makes those of ordinary zCDP),
            an earlier release, ``PercentRule()`` (with the complementary cells that protect it), ``Suppression``, ``Coarsening``,
            ``Rounding`` or ``Ranges``, or ``MultiplicativeNoise()``, which is drawn for each record.
        fit: What is done to each release before it is published, such as ``lambda release: release.consistent()``.
        tables: The tables to evaluate, by name or by the name or number of their query; all unless given.
        statistics: The statistics to evaluate, by published name or measure, or "count"; all unless given.
        draws: How many releases are drawn of each.
        seed: The seed of all noise.
        data: What the records are: "public", "synthetic", "past" or "confidential". Unless they are declared public or synthetic,
            the ledger notes a look first.

    Returns:
        The metric by table, variable and group.

    Raises:
        ParameterError: An argument is not valid, or the metric fails.

    Example:
        >>> import recordwise as rw
        >>> table = {"id": [1, 2, 3], "county": ["001", "001", "003"], "emp": [4, 20, 900]}
        >>> asked = rw.query().group_by("county", keys=["001", "003"]).sum("emp", rw.UnitSplit(at=50, rho="0.1"))
        >>> with rw.Session(table, unit="id", measures={"emp": 1}, columns={"county": "text"}) as session:
        ...     found = rw.planning.evaluate(session, asked, metric="absolute_error", by="county", data="synthetic")
        >>> sorted(found.at("county", "sum_emp"))
        ['001', '003']
    """
    origin, (name, function) = read_origin(data), read_metric(metric)
    if isinstance(draws, bool) or not isinstance(draws, int) or not 1 <= draws <= MOST_DRAWS:
        raise ParameterError(parameter="draws", problem=f"must be a whole number from 1 to {MOST_DRAWS:,}")
    view = viewed(session, data, "plan evaluate", query)
    tell("reading records")
    simulation = view.simulation(*read_queries(query))
    wanted = _chosen(simulation.plan, simulation.tables(), tables, statistics)
    case = Case(view=view, queries=simulation.plan.queries, simulation=simulation, tables=wanted, seed=seed)
    rivals: dict[str, Rival] = {TODAY: Drawn(simulation, fit)}
    rivals |= {each: read_rival(each, given, view, fit) for each, given in (baselines or {}).items()}
    labels = {table.name: labels_of(table, by, session.schema) for table in wanted}
    found: list[EvaluatedGroup] = []
    for rival in tracked(rivals, lambda each: f"drawing {each}"):
        sums: dict[Place, list[dict[str, FloatArray]]] = {}
        for number in tracked(range(draws), f"drawing {rival}"):
            for place, stages in rivals[rival].draw(case, number).items():
                sums.setdefault(place, []).append(_measured(case, place, stages, function, name))
        for place, drawn in sums.items():
            found += _grouped(case, place, rival, drawn, labels, by)
    return Evaluation(metric=name, by=by_words(by), data=origin, draws=draws, groups=tuple(found))


def _chosen(
    plan: Plan, found: Sequence[SimulatedTable], tables: Sequence[str], statistics: Sequence[str]
) -> tuple[SimulatedTable, ...]:
    """The tables and variables that are asked for."""
    called = {each.name: _table_names(plan, each) for each in found}
    published = {each.name: _variable_names(plan, each) for each in found}
    known = {
        "tables": {name for names in called.values() for name in names},
        "statistics": {name for names in published.values() for own in names.values() for name in own},
    }
    for parameter, given in (("tables", tables), ("statistics", statistics)):
        unknown = [name for name in given if name not in known[parameter]]
        if unknown:
            raise ParameterError(
                parameter=parameter,
                problem=f"has none of the name '{unknown[0]}'",
                advice=f"There are {', '.join(sorted(known[parameter]))}.",
            )
    kept = [each for each in found if not tables or called[each.name] & set(tables)]
    if statistics:
        wanted = {
            each.name: [alias for alias, own in published[each.name].items() if own & set(statistics)] for each in kept
        }
        kept = [replace(each, exact={alias: each.exact[alias] for alias in wanted[each.name]}) for each in kept]
    return tuple(each for each in kept if each.exact)


def _table_names(plan: Plan, table: SimulatedTable) -> set[str]:
    """Return a table's possible names."""
    number = table.table.query
    return {table.name, str(number + 1), *([plan.queries[number].name] if plan.queries[number].name else [])}


def _variable_names(plan: Plan, table: SimulatedTable) -> dict[str, set[str]]:
    """What each variable can be called: its published name, or its measure."""
    query = plan.queries[table.table.query]
    named = {each.alias: {each.of, each.planned_as} - {None} for each in (*query.draws(), *query.statistics)}
    return {alias: {alias, *map(str, named[alias])} for alias in table.exact}


def _measured(case: Case, place: Place, stages: Stages, metric: Metric, name: str) -> dict[str, FloatArray]:
    """Return the metric of every published cell by stage.

    Also before the first stage, and of all cells without error.
    """
    exact = next(each for each in case.tables if each.name == place[0]).exact[place[1]]
    found = {NO_ERROR: measured(metric, name, exact, exact)}
    found |= {stage: measured(metric, name, exact, values) for stage, values in stages.items()}
    told = np.isfinite(found[list(stages)[-1]])
    return {POSSIBLE: found[NO_ERROR]} | {stage: np.where(told, each, np.nan) for stage, each in found.items()}


def _grouped(
    case: Case,
    place: Place,
    rival: str,
    drawn: list[dict[str, FloatArray]],
    labels: Mapping[str, tuple[FloatArray | Any, list[str]]],
    by: Grouping,
) -> list[EvaluatedGroup]:
    """Return means over cells and draws by group and stage."""
    table = next(each for each in case.tables if each.name == place[0])
    codes, names = labels[place[0]] if by != SIZE else size_labels(table.exact[place[1]], place[1])
    stages = [stage for stage in drawn[0] if stage != POSSIBLE]
    means = {stage: _means([each[stage] for each in drawn], codes, len(names)) for stage in stages}
    exact = np.abs(np.nan_to_num(table.exact[place[1]]))
    last, possible = [each[stages[-1]] for each in drawn], [each[POSSIBLE] for each in drawn]
    missing, lost = (_missing(last, possible, codes, len(names), weight) for weight in (np.ones(len(exact)), exact))
    cells = np.bincount(codes, minlength=len(names))
    found = []
    for group, label in enumerate(names):
        after = [float(means[stage][group]) for stage in stages]
        parts = dict(zip(stages[1:], np.diff(after).tolist()))
        parts = {stage: part for stage, part in parts.items() if not np.isnan(part)}
        start = {NO_ERROR: after[0]} if after[0] else {}
        found.append(
            EvaluatedGroup(
                table=place[0],
                variable=place[1],
                group=label,
                name=rival,
                cells=int(cells[group]),
                value=after[-1],
                withheld=float(missing[group]),
                withheld_total=float(lost[group]),
                sources=start | parts,
            )
        )
    return found


def _means(draws: list[FloatArray], codes: Any, groups: int) -> FloatArray:
    total, counted = np.zeros(groups), np.zeros(groups)
    for values in draws:
        known = np.isfinite(values)
        total += np.bincount(codes[known], weights=values[known], minlength=groups)
        counted += np.bincount(codes[known], minlength=groups)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(counted > 0, total / np.maximum(counted, 1), np.nan))


def _missing(
    draws: list[FloatArray], possible: list[FloatArray], codes: Any, groups: int, weight: FloatArray
) -> FloatArray:
    """Return the share of cells, or of their weight, that have no metric as published.

    Of those with a metric without error.
    """
    gone, all_of = np.zeros(groups), np.zeros(groups)
    for values, without in zip(draws, possible):
        known = np.isfinite(without)
        hidden = known & ~np.isfinite(values)
        all_of += np.bincount(codes[known], weights=weight[known], minlength=groups)
        gone += np.bincount(codes[hidden], weights=weight[hidden], minlength=groups)
    return np.asarray(gone / np.where(all_of > 0, all_of, 1))
