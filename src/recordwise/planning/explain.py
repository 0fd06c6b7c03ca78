"""Explain a plan on one page, without formulas, for those who decide about it.

What is published, how reliable the cells would be, what records give away in words, three other amounts of noise, and what
revisions and further years cost. Cells have public sizes, or what the last release published, or the totals of generated
records; the records are generated ones unless others are given. Nothing is drawn and nothing is spent.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from recordwise.errors import BudgetError, ParameterError, RecordwiseError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.text import brief_text, coarse_share_text, digits_text, share_text, whole_text
from recordwise.mechanisms.inference import ValuePolicy, ValueWindow
from recordwise.plan.cost import value_policy
from recordwise.plan.describe import query_names
from recordwise.plan.file.read import PlanFile, load_plan
from recordwise.plan.keys.hierarchies import with_hierarchy_labels
from recordwise.plan.publication import Labels, StatusRules
from recordwise.planning.check import FROM_RELEASE, FROM_SIZES, Known, with_known_sizes
from recordwise.planning.losses import BALANCED, HARDLY, Losses, TenYears, loss_at, policy_names
from recordwise.planning.page import YEARS, Explanation, Group, Option, Status
from recordwise.planning.scope import PlanTotals, Scope, plan_totals, read_origin, scope_of
from recordwise.planning.search.fits import Search, levels_by_place
from recordwise.planning.search.goals import Goals, GoalTable, Target, goals_in
from recordwise.planning.search.reliable import Scalable
from recordwise.planning.simulate.generate import usual_rows
from recordwise.planning.simulate.rehearse import on_other_records
from recordwise.policy.meaning import power_beside_delta, power_gaussian
from recordwise.policy.policy import Policy
from recordwise.progress import reported, steps
from recordwise.release.files import load_release
from recordwise.session import Session
from recordwise.session.owner import OwnerView
from recordwise.session.session import plan_ledger
from recordwise.session.shares import public_sizes

GENERATED = 100_000
"""At most this many records are generated."""
SAMPLE = 20_000
"""The losses of this many of the records are worked out, evenly over their sizes."""
MOST_CLASSES = 5
FEW = 0.001
"""The largest records that are a class of their own, as a share of all."""
OPTIONS = {"cautious": 0.1, "middle": 0.5, "accurate": 2.5}
"""What records may lose under each option: the geometric mean of median and 99th percentile, by which planning ranks."""
NEARLY, TRIES = 0.01, 12
"""How close its loss must come to that, and after how many trials it is taken as it is."""
GENERATED_TOTALS = "the totals of the records below"


# How it is made.


@reported
def explain(
    plan: PlanFile | str | Path,
    *,
    records: str | Path | None = None,
    rows: int | None = None,
    seed: int = 0,
    data: str = "confidential",
    parameters: Mapping[str, str | int] | None = None,
) -> Explanation:
    """Explain a plan to those who decide about it.

    Args:
        plan: The plan, or its file.
        records: A file of records to use instead of generated ones. Unless ``data`` declares them public or synthetic, this is a
            look at confidential records, which the plan's ledger notes first.
        rows: How many records to generate; by default ten for each cell of the largest table, from 10,000 to 100,000.
        seed: The seed of generated records.
        data: What given records are: "public", "synthetic", "past" or "confidential".
        parameters: The values of ``${name}`` in the file.

    Returns:
        The page: ``markdown()``, ``html()``, ``save(path)``, ``sections()``.

    Raises:
        ParameterError: The plan has no count and no sum, or an argument is not valid.

    Example:
        >>> import recordwise as rw
        >>> rw.planning.explain("plan.toml").save("plan.html")  # doctest: +SKIP
    """
    given = plan if isinstance(plan, PlanFile) else load_plan(plan, parameters=dict(parameters or {}))
    step = steps(4)
    step("reading public sizes")
    file = with_known_sizes(given)
    made = min(usual_rows(file.plan), GENERATED) if rows is None and records is None else rows
    step("generating records" if records is None else "opening records")
    with on_other_records(file, records=records, rows=made, seed=seed, data=data, command="explain") as (_, session):
        # A look at confidential records was noted in the plan's ledger before one was read.
        view = session.owner.view(data="synthetic")
        step("expected errors")
        cells = Cells.of(file, view)
        step("losses")
        policy = session.policy_of(*cells.scalable.queries)
        origin = "synthetic" if records is None else read_origin(data)
        return _explanation(file, session, cells, Sample.of(view, policy), origin, generated=records is None)


def _explanation(
    file: PlanFile, session: Session, cells: "Cells", sample: "Sample", data: str, *, generated: bool
) -> Explanation:
    words = with_hierarchy_labels(file.words, file.plan.schema.hierarchies)
    about = _records_word(words)
    policy = sample.policy
    title = words.publication.title or file.dataset
    groups = tuple(_groups(sample, value_policy(file.plan), words))
    found, problem = _options(session, cells, sample)
    return Explanation(
        data=data,
        title=f"{title}: what it shows and what it gives away",
        about=about,
        published=tuple(_published(file, cells, words)),
        variable=called(words, cells.main),
        statuses=cells.rules.names(),
        limits=tuple(limit for _, limit in cells.rules.limits),
        by_size=cells.by_size(1.0),
        by_table=cells.by_table(words),
        by_variable=cells.by_variable(words),
        totals_from=" and ".join(dict.fromkeys(cells.sources)),
        groups=groups,
        hardly=_hardly(sample, about, words),
        options=tuple(found),
        no_options=problem,
        budget=_budget(file, policy),
        years=() if (years := TenYears.of(file)) is None else (*years.notes(), years.by_kind()),
        records=round(sample.number),
        generated=generated,
    )


def _records_word(words: Labels) -> str:
    """Return what readers call the records: the label of their count."""
    return words.labels.get("count", "records").lower()


# Cells: how many have which status.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """The cells of a plan with their totals and errors; CONFIDENTIAL if the records are."""

    scalable: Scalable
    rules: StatusRules
    sources: tuple[str, ...]

    @classmethod
    def of(cls, file: PlanFile, view: OwnerView) -> "Cells":
        """Return the cells of the counts and sums of a plan."""
        scope = scope_of(file.plan, view.schema)
        rules = StatusRules() if file.basic is None else file.basic.rules
        # This is no goal: errors alone are read, and a goal this wide rules out no cell, however small.
        wanted: Goals = {"within": 1000, "confidence": 0.95}
        targets = tuple(Target(asked=each, goal=goal) for each, goal in zip(scope.asked(), goals_in(scope, **wanted)))
        goals = {each.asked.place: each.goal for each in targets}
        known = Known(plan=scope.plan, usual={}, last=load_release(file.earlier[-1]) if file.earlier else None)
        tables, sources = [], []
        for part in plan_totals(view, scope, {}):
            total, source = _public_totals(known, part)
            sources.append(source)
            counted = total > 0
            if counted.any():
                own = replace(part, total=total)
                tables.append(
                    GoalTable(
                        goal=goals[part.asked.place],
                        part=own,
                        counted=counted,
                        totals=total[counted],
                        has_sizes=False,
                        may_miss=0,
                    )
                )
        if not tables:
            raise ParameterError(parameter="plan", problem="has no cell with a record", advice="Check the keys.")
        return cls(
            scalable=Scalable(
                name="today",
                scope=scope,
                queries=scope.plan.queries,
                tables=tuple(tables),
                levels=_fitted_levels(file, view, scope, targets),
                schema=view.schema,
                any_law=True,
            ),
            rules=rules,
            sources=tuple(sources),
        )

    @property
    def main(self) -> Any:
        """The first sum, or the first count."""
        drawn = [each.asked.statistic for each in self.scalable.tables]
        return next((each for each in drawn if each.of is not None), drawn[0])

    def main_tables(self) -> list[GoalTable]:
        """The tables of the main statistic."""
        return [each for each in self.scalable.tables if each.asked.statistic.alias == self.main.alias]

    def edges(self) -> list[float]:
        """Return the sizes that separate cells: powers of ten."""
        return class_ends(np.concatenate([each.totals for each in self.main_tables()]))

    def by_size(self, factor: float) -> tuple[Status, ...]:
        """Return the cells of the main statistic by their totals."""
        tables, edges = self.main_tables(), self.edges()
        totals = np.concatenate([each.totals for each in tables])
        ratios = np.concatenate([self.ratios(each, factor) for each in tables])
        place = np.searchsorted(edges, totals, side="right")
        held = [at for at in range(len(edges) + 1) if np.any(place == at)]
        return tuple(self.status(size_name(edges, at), ratios[place == at]) for at in held)

    def by_table(self, words: Labels) -> tuple[Status, ...]:
        """Return the cells of the main statistic by table."""
        return tuple(self.status(_table_words(each.part, words), self.ratios(each, 1.0)) for each in self.main_tables())

    def by_variable(self, words: Labels) -> tuple[Status, ...]:
        """Return the cells of every statistic."""
        found: dict[str, list[FloatArray]] = {}
        for each in self.scalable.tables:
            statistic = each.asked.statistic
            found.setdefault(called(words, statistic), []).append(self.ratios(each, 1.0))
        return tuple(self.status(name, np.concatenate(own)) for name, own in found.items())

    def ratios(self, table: GoalTable, factor: float) -> FloatArray:
        """Return the relative standard errors of the cells of a table."""
        return np.asarray(self.scalable.errors(table, factor) / table.totals)

    def status(self, name: str, ratios: FloatArray) -> Status:
        """Return how many of some cells have each status."""
        ends = [limit for _, limit in self.rules.limits]
        held = np.bincount(np.searchsorted(ends, ratios, side="left"), minlength=len(ends) + 1)
        return Status(name=name, cells=len(ratios), shares=tuple((held / len(ratios)).tolist()))


def _public_totals(known: Known, part: PlanTotals) -> tuple[FloatArray, str]:
    """Return the cell totals of a table, and what they are."""
    for found, source in (
        (public_sizes(known.plan, part.table, part.asked.statistic), FROM_SIZES),
        (known.published(part.table, part.asked.statistic), FROM_RELEASE),
    ):
        if found is not None and 0 < len(found) <= len(part.total) and np.any(found > 0):
            return np.append(np.maximum(found, 0.0), np.zeros(len(part.total) - len(found))), source
    return part.total, GENERATED_TOTALS


def _fitted_levels(file: PlanFile, view: OwnerView, scope: Scope, targets: Sequence[Target]) -> dict[Any, Any]:
    """Return the levels that basic tables fit together; none where they are not made, or cannot be fitted exactly."""
    if file.basic is None:
        return {}
    try:
        return levels_by_place(
            view, scope, targets, Search(candidates=None, rank_by="median", fitted=True, complete=file.basic.complete)
        )
    except RecordwiseError:
        return {}


def class_ends(values: FloatArray, top: float = 0.005) -> list[float]:
    """Return powers of ten that separate values into at most five classes, the last with about this share of them."""
    positive = values[values > 0]
    if not len(positive):
        return []
    last = math.floor(math.log10(float(np.quantile(positive, 1 - top))))
    first = max(last - MOST_CLASSES + 2, math.floor(math.log10(float(positive.min()))) + 1)
    return [10.0**power for power in range(first, last + 1)]


def size_name(edges: Sequence[float], place: int) -> str:
    """Return a class in words, such as 10 to 99."""
    if not edges:
        return "all"
    if place == 0:
        return f"below {_end(edges[0])}"
    low = _end(edges[place - 1])
    if place == len(edges):
        return f"{low} or more"
    return f"{low} to {_end(edges[place] - 1)}" if edges[place - 1] >= 1 else f"{low} to below {_end(edges[place])}"


def _end(value: float) -> str:
    return brief_text(value) if value >= 1e6 else whole_text(value) if value >= 1 else digits_text(value, 3)


def _table_words(part: PlanTotals, words: Labels) -> str:
    """Return what a table is by, for a reader."""
    return " by ".join(words.label(name) for name in part.level.names()) or "in total"


def _published(file: PlanFile, cells: Cells, words: Labels) -> Iterator[str]:
    """Yield what is published, in sentences."""
    plan = file.plan
    for number, query in enumerate(plan.queries):
        tables = [each for each in plan.tables() if each.query == number]
        names = [called(words, each) + _unit(words, each) for each in query.statistics]
        selected = any(plan.selection(each) is not None for each in tables)
        count = sum(len(each.part.total) for each in cells.main_tables() if each.asked.query == number)
        held = "" if selected or not count else f", {count:,} cells"
        what = f"{query.title}: " if query.title else ""
        by = _by_words([each.shape.names() for each in tables], words)
        noun = "table" if len(tables) == 1 else "tables"
        yield f"{what}{and_list(names)}, {by} ({len(tables)} {noun}{held})."
    if file.basic is not None:
        yield "Tables add up, and every number has a status."
    if file.series is not None:
        yield f"Period {file.series.period} of the series {file.series.name}."


def _by_words(shapes: Sequence[Sequence[str]], words: Labels) -> str:
    """Return what the tables of a query are by; all combinations of two sets of levels as such."""
    pairs = [tuple(each) for each in shapes]
    if len(pairs) > 3 and all(len(each) == 2 for each in pairs):
        first, second = ([words.label(name) for name in dict.fromkeys(own)] for own in zip(*pairs))
        if len(first) * len(second) == len(pairs):
            return f"by {and_list(first)}, each by {and_list(second)}"
    return "; ".join("by " + " and ".join(words.label(name) for name in each) if each else "in total" for each in pairs)


def _unit(words: Labels, statistic: Any) -> str:
    unit = words.unit(statistic.alias, statistic.of)
    return f" ({unit})" if unit and unit != called(words, statistic) else ""


def called(words: Labels, statistic: Any) -> str:
    """Return a statistic's label, or the name of its measure."""
    label = words.label(statistic.alias, statistic.of)
    return statistic.of if label == statistic.alias == f"sum_{statistic.of}" else label


def and_list(parts: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([*([", ".join(parts[:-1])] if parts[:-1] else []), parts[-1]])


# Records: what they lose, and what that means.


def _ranks(column: Any) -> Any:
    """Return the place of each value among those of a column."""
    values = np.asarray(column)
    return np.unique(values.astype(str) if values.dtype.kind == "O" else values, return_inverse=True)[1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """Some records with weights and losses; CONFIDENTIAL if the records are."""

    policy: Policy
    columns: Mapping[str, Any]
    weights: FloatArray
    losses: FloatArray
    deltas: FloatArray
    measure: str | None
    """By which records are called small or large."""
    number: float

    @classmethod
    def of(cls, view: OwnerView, policy: Policy, others: Sequence[Policy] = ()) -> "Sample":
        """Return records evenly over their sizes, with what they lose; the columns are those of other policies too."""
        names = policy_names([policy, *others])
        used = {each.name for each in policy.inputs()}
        measure = next((each.name for each in view.schema.record_measures() if each.name in used), None)
        counted = view.value_counts(names)
        if counted is None:
            raise ParameterError(
                parameter="records", problem="are too many", advice="Leave them out, or give a sample."
            )
        sizes = (
            np.zeros(len(counted.records)) if measure is None else np.abs(np.asarray(counted.columns[measure], float))
        )
        # Records arrive in any order: those of one size are sorted by their other columns, so that a second run takes the same.
        order = np.lexsort((*(_ranks(each) for each in counted.columns.values()), sizes))
        number = float(counted.records.sum())
        if len(order) > SAMPLE:
            risen = np.cumsum(counted.records[order])
            even = np.searchsorted(risen, (np.arange(SAMPLE) + 0.5) * risen[-1] / SAMPLE)
            order, weights = order[np.unique(even)], np.bincount(even)[np.unique(even)] * number / SAMPLE
        else:
            weights = counted.records[order]
        columns = {name: taken(each, order) for name, each in counted.columns.items()}
        found = cls(
            policy=policy,
            columns=columns,
            weights=np.asarray(weights, np.float64),
            losses=np.zeros(0),
            deltas=np.zeros(0),
            measure=measure,
            number=number,
        )
        deltas = found.evaluated(policy.delta) if policy.delta_terms else np.zeros(len(order))
        return replace(found, losses=found.evaluated(policy.loss), deltas=np.minimum(deltas, 1.0))

    def evaluated(self, function: Callable[[Any], Any]) -> FloatArray:
        """Return one number for each record."""
        found = function(self.columns) if self.columns else float(function({}))
        return np.array(np.broadcast_to(np.asarray(found, np.float64), len(self.weights)))

    def sizes(self) -> FloatArray:
        """The size of each record."""
        if self.measure is None:
            return np.ones(len(self.weights))
        return np.abs(np.asarray(self.columns[self.measure], np.float64))

    def middle(self, rows: Any) -> int:
        """Return the record of some whose loss is the middle one."""
        order = np.argsort(self.losses[rows], kind="stable")
        risen = np.cumsum(self.weights[rows][order])
        return int(rows[order[np.searchsorted(risen, risen[-1] / 2)]])

    def median(self, losses: FloatArray) -> float:
        """Return the middle loss of all records."""
        return Losses.of(losses, self.weights).quantile(0.5)

    def balanced(self, losses: FloatArray) -> float:
        """Return the geometric mean of the median and the 99th percentile."""
        return loss_at(Losses.of(losses, self.weights), BALANCED)

    def share(self, rows: Any) -> float:
        """Return the share of some records among all."""
        return float(self.weights[rows].sum() / self.weights.sum())

    def record(self, row: int) -> dict[str, Any]:
        """Return one record."""
        return {
            name: each[row].as_py() if hasattr(each[row], "as_py") else each[row].item()
            for name, each in self.columns.items()
        }


def taken(column: Any, rows: Any) -> Any:
    """Return some rows of a column."""
    import pyarrow as pa

    return column.take(pa.array(rows)) if isinstance(column, pa.ChunkedArray | pa.Array) else np.asarray(column)[rows]


def _groups(sample: Sample, values: ValuePolicy | None, words: Labels) -> Iterator[Group]:
    """Yield what a typical record of each size gives away."""
    sizes = sample.sizes()
    edges = class_ends(sizes, FEW) if sample.measure is not None else []
    place = np.searchsorted(edges, sizes, side="right")
    unit = "" if sample.measure is None else f" {words.label(sample.measure)}"
    for number in np.unique(place):
        rows = np.flatnonzero(place == number)
        row = sample.middle(rows)
        loss, delta = float(sample.losses[row]), float(sample.deltas[row])
        powers = [power_beside_delta(times * loss, min(times * delta, 1.0)) for times in (1, 2, YEARS + 1)]
        told = {} if values is None or loss == 0 else _told(values, sample.record(row), words)
        yield Group(
            name=size_name(edges, int(number)) + (unit if edges else ""),
            share=sample.share(rows),
            loss=loss,
            powers=(powers[0], powers[1], powers[2]),
            told=told,
        )


def _told(values: ValuePolicy, record: Mapping[str, Any], words: Labels) -> dict[str, str]:
    """Return how closely each number of a record is known (T-INFER)."""
    known = [name for name in values.bounds if name in record]
    return {_with_unit(words, name): window_text(values.window(record, name)) for name in known}


def _with_unit(words: Labels, name: str) -> str:
    """Return a measure's name, with its unit unless that repeats it."""
    label, unit = words.label(name), words.unit(name)
    return f"{label} ({unit})" if unit and unit.casefold() != label.casefold() else label


def window_text(window: ValueWindow) -> str:
    """Return in words how closely a value can be known."""
    low, high, value = float(window.low), None if window.high is None else float(window.high), float(window.value)
    if window.is_open():
        return "not at all"
    if low == high:
        return "exactly"
    if high is None:
        return f"as {brief_text(low)} or more"
    reach = max(value - low, high - value)
    if value > 0 and reach < value:
        return f"within {coarse_share_text(reach / value)}"
    return f"as {brief_text(low)} to {brief_text(high)}"


def _hardly(sample: Sample, about: str, words: Labels) -> str:
    """Return who is hardly protected, in words."""
    rows = np.flatnonzero(sample.losses > HARDLY)
    found = share_text(power_gaussian(HARDLY))
    if not len(rows):
        return f"None of these {about}: a test finds none of them more often than {found}."
    share = coarse_share_text(sample.share(rows))
    start = _from_size(sample)
    whom = (
        ""
        if start is None
        else f", and most of those with {brief_text(start)} {words.label(str(sample.measure))} or more"
    )
    return (
        f"{share} of the {about}{whom}: a test finds them with a probability of {found} or more, so that their presence must be "
        "taken as known. What stays hidden about them is how large they are exactly, as said above."
    )


def _from_size(sample: Sample) -> float | None:
    """Return the size from which on most records are hardly protected; None where sizes do not decide."""
    if sample.measure is None:
        return None
    sizes, weights = sample.sizes(), sample.weights
    order = np.argsort(-sizes, kind="stable")
    hard = np.cumsum((weights * (sample.losses > HARDLY))[order]) / np.cumsum(weights[order])
    most = np.flatnonzero(hard > 0.5)
    return float(sizes[order[most[-1]]]) if len(most) else None


# More or less noise, and what the budget says.


def _options(session: Session, cells: Cells, sample: Sample) -> tuple[list[Option], str]:
    """Return today's plan and three others, or why there are none."""
    today = _option("today's plan", 1.0, sample.losses, cells, sample)
    found = []
    for name, target in OPTIONS.items():
        scaled = _scaled_to(session, cells, sample, target)
        if scaled is None:
            return [], "The noise of this plan cannot be changed by one factor."
        factor, losses = scaled
        found.append(_option(name, factor, losses, cells, sample))
    return [today, *found], ""


def _option(name: str, factor: float, losses: FloatArray, cells: Cells, sample: Sample) -> Option:
    by_size = cells.by_size(factor)
    whole = sum(each.cells * each.shares[0] for each in by_size) / sum(each.cells for each in by_size)
    loss = sample.median(losses)
    return Option(
        name=name,
        noise=1 / math.sqrt(factor),
        loss=loss,
        power=power_beside_delta(loss, float(np.median(sample.deltas))),
        hardly=sample.share(np.flatnonzero(losses > HARDLY)),
        reliable=(whole, *(each.shares[0] for each in by_size)),
    )


def _scaled_to(session: Session, cells: Cells, sample: Sample, target: float) -> tuple[float, FloatArray] | None:
    """Return the factor at which records lose ``target``, and their losses; None if there is none.

    Under Gaussian noise losses are in proportion to the factor, under other noise nearly: it is corrected until it fits.
    """
    found = sample.balanced(sample.losses)
    factor, losses = 1.0, sample.losses
    for _ in range(TRIES):
        if not 0 < found < math.inf:
            return None
        factor *= target / found
        queries = cells.scalable.at(factor)
        if queries is None:
            return None
        losses = sample.evaluated(session.policy_of(*queries).loss)
        found = sample.balanced(losses)
        if abs(found / target - 1) <= NEARLY:
            break
    return factor, losses


def _budget(file: PlanFile, policy: Policy) -> str:
    """Return what the budget allows, in words."""
    if file.stage is not None and file.stage.tier_of is not None:
        return "Nothing is charged: noise is added to a release that was charged before."
    if file.budget is None:
        return "No budget is declared, so nothing limits what later releases cost."
    with plan_ledger(file) as ledger:
        # A revision uses the reserve of its own release (T-RESERVE).
        named = query_names(file.plan)
        if not _allows(ledger, policy, named):
            if not ledger.spent().rho:
                return "The budget does not cover this release."
            kept = ", but a reserve is kept for a revision" if ledger.reserved().rho else ""
            return f"The budget was charged before, for this release or another: what is left does not cover it once more{kept}."
        reserved = bool(file.reserve) and (file.series is None or file.series.revision == 0)
        revision = "covers" if reserved or _allows(ledger, policy + policy, named) else "does not cover"
    when = "of the period" if file.series is not None else "of the dataset"
    later = (
        "Every later period has a budget of its own, and no budget limits the sum over the years."
        if file.series is not None
        else "Later years need a series, with a budget for each."
    )
    return f"The budget {when} covers this release and {revision} a revision in full. {later}"


def _allows(ledger: Any, policy: Policy, named: str) -> bool:
    try:
        ledger.check(policy, query="the plan", named=named)
    except BudgetError:
        return False
    return True
