"""The noise and split that meet the goals of one statistic.

A query splits the loss of all its statistics over its levels in one way. A statistic whose mechanism has
sigma s for the full loss has s / sqrt(w) at a level with the share w, so that the levels allow it min_l n_l
sqrt(w_l), where n_l is the most noise that meets the goal of level l; for fitted levels, the most at which
the fit meets all goals. The split minimizes what the records lose from all statistics together.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np

from recordwise.errors import KeysError, ParameterError
from recordwise.exact.arithmetic import FloatArray, largest_allowed
from recordwise.exact.numbers import decimal
from recordwise.exact.text import formula_text, share_text
from recordwise.mechanisms.base import Mechanism
from recordwise.mechanisms.gaussian import Gaussian
from recordwise.mechanisms.sized import ByGroup, Sized, as_grouped
from recordwise.plan.cost import records_of, statistic_policy
from recordwise.plan.expressions import Best, Choice
from recordwise.plan.file.read import PlanFile
from recordwise.plan.plan import Plan
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.planning.losses import Losses, RecordSample, loss_at
from recordwise.planning.scope import COUNT, PlanLike, Scope, level_shares, with_choice, with_statistic
from recordwise.planning.search.convex import LevelTree, convex_shares
from recordwise.planning.search.goals import (
    FAT_TAILED,
    FLOORS,
    FULL,
    OWN,
    USUAL_FLOOR,
    Goal,
    GoalTable,
    Target,
    amount,
    best_offset,
    choices_of,
    families,
    goal_tables,
    has_amount,
    level_sizes,
    mechanism_for,
    most_sized,
    share_power,
    sized_family,
    targets_in,
    two_digits,
    with_width,
)
from recordwise.planning.search.shares import (
    GoalLevels,
    best_split,
    can_be_fitted,
    fitted_split,
    goal_levels,
    with_free_shares,
)
from recordwise.policy.columns import Measure
from recordwise.policy.policy import Policy
from recordwise.progress import tracked
from recordwise.session.owner import OwnerView
from recordwise.session.shares import best_shares

# The most noise for which the cells of one table meet its goal (T-MOST-NOISE).


ROUNDS = 20
SCALES = (1e-6, 1e3)
"""How much less and more noise than given is tried for a transform of a signed measure."""
SIGNED_ROUNDS = 22


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Calibrated:
    """The mechanism that meets one table's goal with the most noise."""

    table: GoalTable
    mechanism: Mechanism
    deciding: float
    """The total of the cell that allows the least noise; confidential if the records are."""
    share_met: float
    """The share of the counted cells in which the goal is met."""


class InfeasibleError(Exception):
    """No amount of noise is small enough. It is caught inside ``recommend``."""


def fit(table: GoalTable, name: str, mechanism: Mechanism) -> Calibrated:
    """The most noise for which enough cells meet the goal.

    The smallest counted total decides in every family we know. This is checked on all cells; if another one misses the goal, that
    one decides instead.
    """
    if (grouped := as_grouped(mechanism)) is not None:
        return _by_group([table], name, grouped, lambda own, inner: [fit(own[0], name, inner)])[0]
    kept = table.kept(name)
    if mechanism.is_sized:
        return _fit_sized(table, mechanism)
    if mechanism.to is not None and kept is not None:
        return _fit_clamped(table, name, mechanism, kept)
    if mechanism.signed and kept is not None:
        return _fit_signed(table, name, mechanism)
    deciding = table.deciding()
    for _ in range(ROUNDS):
        found = _most_noise(table, mechanism, deciding)
        met = table.met_by(found, "")
        if table.totals.size - int(met.sum()) <= table.may_miss:
            return Calibrated(table=table, mechanism=found, deciding=deciding, share_met=float(met.mean()))
        late = np.sort(table.totals[~met & (table.totals >= table.deciding())])
        deciding = float(late[-1]) if late.size else float(np.sort(table.totals[~met])[-1])
    raise InfeasibleError(f"{table.name}: no noise was found for {table.goal.words()}")


def _fit_signed(table: GoalTable, name: str, mechanism: Mechanism) -> Calibrated:
    """Reduce the noise until enough signed cells meet the goal.

    No single total decides, because the errors of its parts do not cancel.
    """

    def enough(scale: float) -> bool:
        try:
            return int((~table.met_by(mechanism.with_noise_scale(decimal(scale)), name)).sum()) <= table.may_miss
        except ParameterError:
            return False

    low, high = (float(mechanism.noise_scale or 1) * width for width in SCALES)
    if not enough(low):
        raise InfeasibleError(f"{table.name}: no noise was found for {table.goal.words()}")
    scale = largest_allowed(enough, low, high, rounded=float, rounds=SIGNED_ROUNDS)
    found = mechanism.with_noise_scale(decimal(scale))
    met = table.met_by(found, name)
    return Calibrated(table=table, mechanism=found, deciding=table.deciding(), share_met=float(met.mean()))


def _fit_sized(table: GoalTable, mechanism: Mechanism) -> Calibrated:
    """Reduce the noise until enough sized cells meet the goal."""
    if not table.has_sizes:
        raise InfeasibleError(f"{table.name}: the keys give no sizes")
    try:
        found, met = most_sized(
            cast(Sized, mechanism),
            lambda each: table.met_by(each, ""),
            confidence=table.goal.confidence,
            step=table.step,
            may_miss=table.may_miss,
        )
    except ParameterError as error:
        raise InfeasibleError(f"{table.name}: {error}") from None
    return Calibrated(table=table, mechanism=found, deciding=table.deciding(), share_met=float(met.mean()))


def _most_noise(table: GoalTable, mechanism: Mechanism, total: float) -> Any:
    goal = table.goal
    try:
        found = mechanism.most_noise(total, float(goal.within) * total, confidence=goal.confidence, step=table.step)
    except ParameterError as error:
        raise InfeasibleError(f"{table.name}: {error}") from None
    return found


def _fit_clamped(table: GoalTable, name: str, mechanism: Mechanism, kept: FloatArray) -> Calibrated:
    """Reduce the noise until enough clamped cells meet the goal.

    Clamping has a bias that differs from cell to cell.
    """
    reach = float(table.goal.within) * table.totals
    hopeless = int((np.abs(table.totals - kept) > reach).sum())
    if hopeless > table.may_miss:
        raise InfeasibleError(
            f"{table.name}: clamping at {formula_text(mechanism.to or 0)} alone cuts off more than the goal allows in "
            f"{share_text(hopeless / len(kept), 1)} of the cells"
        )

    def enough(sigma: float) -> bool:
        return int((~table.met_by(mechanism.with_sigma(decimal(sigma)), name)).sum()) <= table.may_miss

    least, most = 1e-6 * float(reach.min()), 10 * float(reach.max())
    found = mechanism.with_sigma(decimal(largest_allowed(enough, least, most, rounded=float, rounds=80)))
    met = table.met_by(found, name)
    return Calibrated(table=table, mechanism=found, deciding=table.deciding(), share_met=float(met.mean()))


# A mechanism for each public group: the cells of a group decide its noise, and no others pay for it (T-GROUPED).


def cells_of_groups(table: GoalTable, mechanism: ByGroup) -> Any:
    """Return which inner mechanism draws for each cell of a table."""
    numbered = mechanism.with_inside([Gaussian(sigma=number + 1) for number in range(len(mechanism.inside()))])
    found = np.zeros(len(table.part.total), np.int64)
    for each, rows in table.part.served(numbered, FULL):
        found[rows] = int(each.noise_sigma) - 1
    return found


def _by_group(
    tables: Sequence[GoalTable],
    name: str,
    mechanism: ByGroup,
    best: Callable[[Sequence[GoalTable], Mechanism], Sequence[Calibrated]],
) -> tuple[Calibrated, ...]:
    """Return the most noise of each group in each table; groups without a counted cell keep theirs.

    As many cells of each group must meet the goal as of the table, so that enough do in all.
    """
    groups = [cells_of_groups(table, mechanism) for table in tables]
    inside = [list(mechanism.inside()) for _ in tables]
    for number, inner in enumerate(mechanism.inside()):
        parts = [_only(table, own == number) for table, own in zip(tables, groups)]
        held = [place for place, part in enumerate(parts) if part.totals.size]
        for place, each in zip(held, best([parts[place] for place in held], inner) if held else ()):
            inside[place][number] = each.mechanism
    found = []
    for table, own in zip(tables, inside):
        made = mechanism.with_inside(own)
        met = table.met_by(made, name)
        found.append(Calibrated(table=table, mechanism=made, deciding=table.deciding(), share_met=float(met.mean())))
    return tuple(found)


def _only(table: GoalTable, chosen: Any) -> GoalTable:
    """Return a table of which only some cells count."""
    counted = table.counted & chosen
    totals = table.part.total[counted]
    return replace(table, counted=counted, totals=totals, may_miss=int((1 - table.goal.share) * len(totals)))


def in_proportion(each: Calibrated, prototype: Mechanism) -> Calibrated:
    """Return the most noise in proportion to a prototype's that no group of a table forbids."""
    grouped = as_grouped(prototype)
    if grouped is None or as_grouped(each.mechanism) is None:
        return each
    counted = np.unique(cells_of_groups(each.table, grouped)[each.table.counted])
    pairs = [(each.mechanism.inside()[number], prototype.inside()[number]) for number in counted.tolist()]
    factor = min(amount(needed) / amount(given) for needed, given in pairs)
    return replace(each, mechanism=prototype.with_amount(decimal(amount(prototype) * factor)))


# The mechanism of a candidate that suits some tables best: for a transform, at the offset where the ranking record loses
# least.


def ranking_size(view: OwnerView, measure: str, rank_by: str) -> float:
    """Return the size of the record whose loss ranks candidates."""
    if measure == COUNT:
        return 1.0
    counted = view.value_counts([measure])
    if counted is None:
        raise ParameterError(parameter="measure", problem=f"'{measure}' has too many distinct values for planning")
    sizes = Losses.of(np.abs(np.asarray(counted.columns[measure], np.float64)), counted.records)
    declared = view.schema.measure(measure)
    return max(loss_at(sizes, rank_by), float(declared.step if declared else 1))


def best_mechanism(tables: Sequence[GoalTable], name: str, mechanism: Mechanism, size: float) -> tuple[Calibrated, ...]:
    """Return the candidate's noisiest mechanism for each table.

    A transform has one offset for all.
    """
    if (grouped := as_grouped(mechanism)) is not None:
        return _by_group(tables, name, grouped, lambda own, inner: best_mechanism(own, name, inner, size))
    goal = tables[0].goal
    if not mechanism.offers("with_offset") or goal.measure == COUNT:
        return tuple(fit(table, name, mechanism) for table in tables)
    measure = Measure(goal.measure, Fraction(tables[0].step))

    def cost(offset: Fraction) -> float:
        try:
            found = [fit(table, name, mechanism.with_offset(offset)) for table in tables]
        except InfeasibleError:
            return float("inf")
        record = {measure.name: np.array([size])}
        return float(sum(each.mechanism.policy(measure).loss(record)[0] for each in found))

    total = max(table.deciding() for table in tables)
    chosen = mechanism.with_offset(best_offset(cost, total=total, step=tables[0].step))
    return tuple(fit(table, name, chosen) for table in tables)


# One candidate for one statistic of a plan, and the split of a query for all of them.


SLACK, TRANSFORM_SLACK = 1e-6, 5e-4
"""So much less noise than the most: shares have six decimals, sigmas are rounded, and a shared transform has a little more noise
because its grid is coarser (T-GRID)."""
UNSHARED = (
    "its loss cannot be split over levels without changing the shape of its noise; give each level a query of its own"
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class StatisticFit:
    """One candidate for one statistic of a plan.

    CONFIDENTIAL if the records are.
    """

    family: str
    target: Target
    prototype: Any
    """The mechanism, whose amount of noise is still to be set; of a query with one table, the mechanism itself."""
    tables: tuple[GoalTable, ...]
    needed: tuple[Calibrated, ...]
    """For each table of the goal, the mechanism it would need by itself; empty where the levels are fitted together."""
    tree: LevelTree | None = None
    """The levels to be fitted together, at an amount of 1 for the whole loss."""

    def most(self, shares: FloatArray) -> float:
        """Return the most noise for the full loss at these shares."""
        if self.tree is not None:
            return 1 / self._worst(self.tree.squared_ratios(shares))
        power = share_power(self.prototype) or 0.5
        size = amount if has_amount(self.prototype) else lambda each: float(each.inside()[0].width)
        return float(min(size(each.mechanism) * shares[each.table.part.number] ** power for each in self.needed))

    def needs(self, tables: int) -> LevelTree | FloatArray:
        """Return the need of all tables as a function of shares."""
        if self.tree is not None:
            return self.tree
        found = np.zeros(tables)
        for each in self.needed:
            found[each.table.part.number] = 1 / amount(each.mechanism) ** 2
        return found

    def _worst(self, squared: FloatArray) -> float:
        assert self.tree is not None
        found = []
        for level in self.target.goal.levels:
            own = squared[(self.tree.level == level) & np.isfinite(self.tree.reach)]
            place = len(own) - 1 - self.tree.may_miss[level]
            found.append(float(np.partition(own, place)[place]))
        return float(np.sqrt(max(found)))

    def mechanism(self, query: Query) -> Any:
        """The mechanism of the statistic, at the split that the query has."""
        if len(query.tables()) == 1 and self.tree is None:
            return self.needed[0].mechanism
        if not has_amount(self.prototype):
            return with_width(self.prototype, self.most(level_shares(query)) * (1 - SLACK))
        slack = SLACK if self.prototype.inside()[0].noise_scale is None else TRANSFORM_SLACK
        return self.prototype.with_amount(decimal(self.most(level_shares(query)) * (1 - slack)))

    def at(self, query: Query, part: Fraction) -> list[Calibrated]:
        """Return each table's mechanism and its cells that meet the goal.

        At a part of the loss that the goal needs.
        """
        levels, mechanism = query.tables(), self.mechanism(query).at_share(part)
        squared = None
        if self.tree is not None:
            squared = self.tree.squared_ratios(level_shares(query)) * amount(mechanism) ** 2
        found = []
        for table in self.tables:
            number = table.part.number
            own = mechanism.at_share(levels[number].share)
            if squared is None or self.tree is None:
                met = table.met_by(own, self.family)
            else:
                met = squared[(self.tree.level == number) & np.isfinite(self.tree.reach)] <= 1
            found.append(
                Calibrated(table=table, mechanism=own, deciding=table.deciding(), share_met=float(np.mean(met)))
            )
        return found


def level_policies(fit: StatisticFit, query: Query, schema: Schema) -> list[Policy]:
    """Return the prototype's cost at each table with the full loss; of noise that is not Gaussian, at the shares given."""
    scaled = has_amount(fit.prototype)
    statistic = replace(fit.target.asked.statistic, mechanism=fit.prototype if scaled else fit.mechanism(query))
    condition = records_of(query.condition, schema)
    levels = [replace(level, share=Fraction(1)) if scaled else level for level in query.tables()]
    return [statistic_policy(query, statistic, each, schema, tight=True).where(condition) for each in levels]


def check_shared(mechanism: Mechanism, query: Query) -> None:
    """Refuse a mechanism that cannot share noise over several levels."""
    if len(query.tables()) > 1 and not has_amount(mechanism):
        raise InfeasibleError(f"{type(mechanism).__name__}: {UNSHARED}")


class QueryCost:
    """The loss of one query as a function of candidates and split."""

    def __init__(self, query: Query, fits: Sequence[StatisticFit], schema: Schema) -> None:
        self.query, self.fits = query, list(fits)
        self._places, self.policies = {}, list[Policy]()
        for each in self.fits:
            own = level_policies(each, query, schema)
            self._places[each] = range(len(self.policies), len(self.policies) + len(own))
            self.policies += own
        self._losses: dict[StatisticFit, FloatArray] = {}

    def measured(self, sample: RecordSample, losses: FloatArray) -> None:
        """Take the losses of the sampled records under ``policies``, a column each."""
        self._sample = sample
        for each in self.fits:
            scale = amount(each.prototype) ** 2 if has_amount(each.prototype) else 1.0
            self._losses[each] = losses[:, list(self._places[each])] * scale

    def cost(self, fits: Sequence[StatisticFit]) -> Callable[[FloatArray], float]:
        """Return the loss at the rank as a function of shares."""

        def at(shares: FloatArray) -> float:
            total = np.zeros(len(self._sample.weights))
            for each in fits:
                scaled = has_amount(each.prototype)
                total += (
                    self._losses[each] @ shares / each.most(shares) ** 2 if scaled else self._losses[each].sum(axis=1)
                )
            return max(self._sample.ranked(total), 1e-300)

        return at

    def split(self, fits: Sequence[StatisticFit]) -> Query:
        """Return the query with its cheapest split, if all have goals."""
        return self._cheapest(fits) if self.may_split(fits) else self.query

    def _cheapest(self, fits: Sequence[StatisticFit]) -> Query:
        """Return the query with its cheapest split: of one statistic the best there is, of several the best that is found.

        For one record the losses of all statistics add up to a convex function of the shares (T-FITSHARES); shares
        that are best for the records of the rank are where the search for several statistics starts.
        """
        cost, own = self.cost(fits), level_shares(self.query)
        losses = np.stack([self._losses[each].mean(axis=1) for each in fits], axis=1)
        total = np.stack([self._losses[each] @ own / each.most(own) ** 2 for each in fits])
        places = self._sample.places(total.sum(axis=0))
        needs = [each.needs(len(own)) for each in fits]
        starts = [convex_shares(needs, losses[place], own) for place in dict.fromkeys(places.tolist())]
        made = [with_free_shares(self.query, each) for each in starts]
        if len(fits) > 1:
            made.append(best_split(self.query, cost, starts=starts))
        best = min(made, key=lambda each: cost(level_shares(each)))
        return best if cost(level_shares(best)) < cost(own) * (1 - 1e-9) else self.query

    def may_split(self, fits: Sequence[StatisticFit]) -> bool:
        """Return whether all that is drawn has goals at all levels, so that nothing else depends on the shares."""
        return len(self.query.tables()) > 1 and not self.kept_because(fits)

    def kept_because(self, fits: Sequence[StatisticFit]) -> str:
        """Return why the shares of the levels stay as they are; empty if they may change."""
        others = {each.alias for each in self.query.draws()} - {each.target.asked.statistic.alias for each in fits}
        if others:
            return f"{', '.join(sorted(others))} {'has' if len(others) == 1 else 'have'} no goal"
        if any(len(each.target.goal.levels) < len(self.query.tables()) for each in fits):
            return "some of its tables have no goal"
        return "" if all(has_amount(each.prototype) for each in fits) else "its noise is not Gaussian"

    def best(self, fits: Sequence[StatisticFit]) -> StatisticFit:
        """The family that costs least for one statistic by itself."""

        def alone(fit: StatisticFit) -> float:
            return self.cost([fit])(level_shares(self.split_alone(fit)))

        return min(fits, key=alone)

    def split_alone(self, fit: StatisticFit) -> Query:
        levels = len(self.query.tables())
        if levels == 1 or len(fit.target.goal.levels) < levels or not has_amount(fit.prototype):
            return self.query
        return self._cheapest([fit])


# The least loss at which the fitted levels of goals without a plan meet them: a query for each goal.


class FittedGoals:
    """Goals about fitted levels, and the best split for each.

    A split is computed once for all mechanisms whose noise is in proportion. CONFIDENTIAL if the records are.
    """

    def __init__(self, view: OwnerView, goals: Sequence[Goal], *, complete: bool) -> None:
        self._levels = goal_levels(view, goals, complete=complete)
        self._splits: dict[Any, Query] = {}

    def calibrated(
        self, name: str, mechanisms: Sequence[Mechanism], tables: Sequence[GoalTable]
    ) -> tuple[tuple[Calibrated, ...], tuple[Query, ...]]:
        """Return a Gaussian candidate with the most noise that meets the goals, by table and as queries."""
        found: list[Calibrated] = []
        queries: list[Query] = []
        for number, (mechanism, levels) in enumerate(zip(mechanisms, self._levels)):
            own = tuple(each for each in tables if each.asked.query == number)
            fit = fitted_statistic(name, mechanism, Target(asked=own[0].asked, goal=levels.goal), own, levels)
            kind = (number, mechanism.edges(0.0))
            if kind not in self._splits:
                assert fit.tree is not None
                self._splits[kind] = fitted_split(levels.goal.query, fit.tree)
            query = self._splits[kind]
            found += fit.at(query, FULL)
            queries.append(with_statistic(query, levels.goal.measure, fit.mechanism(query)))
        return tuple(found), tuple(queries)


def fitted_statistic(
    name: str, mechanism: Mechanism, target: Target, tables: tuple[GoalTable, ...], levels: GoalLevels
) -> StatisticFit:
    """Return a Gaussian candidate for a statistic whose levels are fitted together."""
    unit = mechanism.with_amount(Fraction(1))
    return StatisticFit(family=name, target=target, prototype=unit, tables=tables, needed=(), tree=levels.at(unit))


# Every candidate for every statistic of a plan that has a goal, and the best of them, with the split over levels.


EACH = "the best for each statistic"
FEW = Fraction(10)
"""The usual floor of a count."""
Place = tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Search:
    """What a search chooses from, and what is to be small."""

    candidates: Mapping[str, Any] | None
    """None for the usual ones."""
    rank_by: str
    fitted: bool
    """Whether goals are about the best linear fit of all levels."""
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PlanFits:
    """All candidates for every statistic of a plan with goals.

    CONFIDENTIAL if the records are.
    """

    scope: Scope
    targets: tuple[Target, ...]
    fits: dict[Place, dict[str, StatisticFit]]
    costs: dict[int, QueryCost]
    best: dict[Place, StatisticFit]

    def split(self, chosen: Mapping[Place, StatisticFit]) -> tuple[Query, ...]:
        """Return each query with its cheapest split over levels."""
        split = list(self.scope.plan.queries)
        for number, cost in self.costs.items():
            split[number] = cost.split([fit for place, fit in chosen.items() if place[0] == number])
        return tuple(split)

    def queries(
        self, chosen: Mapping[Place, StatisticFit], split: Sequence[Query], part: Fraction = FULL
    ) -> tuple[Query, ...]:
        """Return the full plan with the candidates chosen."""
        mechanisms = {place: fit.mechanism(split[place[0]]).at_share(part) for place, fit in chosen.items()}
        remade = with_choice(
            self.scope.plan, [each.asked for each in self.targets], lambda asked: mechanisms[asked.place]
        )
        return tuple(_with_split(query, own) for query, own in zip(remade, split))

    def calibrated(
        self, chosen: Mapping[Place, StatisticFit], split: Sequence[Query], part: Fraction = FULL
    ) -> tuple[Calibrated, ...]:
        """What each table gets of it."""
        return tuple(each for place, fit in chosen.items() for each in fit.at(split[place[0]], part))

    def costs_of(self, chosen: Mapping[Place, StatisticFit], split: Sequence[Query]) -> dict[str, float]:
        """Return each statistic's loss alone, at the comparison's rank."""
        return {
            fit.target.asked.statistic.alias: self.costs[place[0]].cost([fit])(level_shares(split[place[0]]))
            for place, fit in chosen.items()
        }

    def assignments(self) -> dict[str, dict[Place, StatisticFit]]:
        """Return assignments of candidates to statistics.

        One candidate for all statistics that it suits, the others with their best; and the best for each.
        """
        names = dict.fromkeys(name for own in self.fits.values() for name in own)
        found = {name: {place: own.get(name, self.best[place]) for place, own in self.fits.items()} for name in names}
        if len({fit.family for fit in self.best.values()}) > 1:
            found[EACH] = dict(self.best)
        return found


def _with_split(query: Query, split: Query) -> Query:
    return replace(query, axes=split.axes, table_shares=split.table_shares, best=split.best)


NEAR = 1.1
"""Shares that public lists decide are taken where they cost at most this much more."""
TRIES = 3


def with_public_shares(
    fits: PlanFits, chosen: Mapping[Place, StatisticFit], split: Sequence[Query], *, complete: bool
) -> tuple[Query, ...]:
    """Return the split with ``share = "best"`` in each query where it costs hardly more (T-FITSHARES).

    Such shares follow from public lists and sizes, and are found again when the plan is read.
    """
    made = tuple(split)
    for number, cost in fits.costs.items():
        own = [fit for place, fit in chosen.items() if place[0] == number]
        if not cost.may_split(own):
            continue
        price = cost.cost(own)
        found = [
            each
            for goal in _share_goals(own)
            if (each := _public_split(fits, chosen, made, number, Best(complete=complete, goal=goal))) is not None
        ]
        best = min(found, key=lambda each: price(level_shares(each)), default=None)
        if best is not None and price(level_shares(best)) <= NEAR * price(level_shares(made[number])):
            made = (*made[:number], best, *made[number + 1 :])
    return made


def _share_goals(own: Sequence[StatisticFit]) -> list[tuple[tuple[Fraction, Fraction], ...]]:
    """Return the goals that best shares may state: none, and that of all statistics where they have one."""
    stated = {(Fraction(each.target.goal.at_least), Fraction(each.target.goal.within)) for each in own}
    return [(), *([tuple(stated)] if len(stated) == 1 and min(stated)[0] > 0 else [])]


def _public_split(
    fits: PlanFits, chosen: Mapping[Place, StatisticFit], split: Sequence[Query], number: int, best: Best
) -> Query | None:
    """Return a query with its best shares, if they are the same for the noise that these shares need."""
    last, found = split[number], None
    for _ in range(TRIES):
        queries = fits.queries(chosen, (*split[:number], last, *split[number + 1 :]))
        made = public_split(fits.scope.plan, queries, number, best)
        if made is None or made.best == found:
            return None if made is None else last
        last, found = _with_split(last, made), made.best
    return None


def public_split(plan: Plan, queries: Sequence[Query], number: int, best: Best) -> Query | None:
    """Return a query with the shares that reading a plan with its noise finds; None where nothing decides them."""
    own, made = queries[number], list(queries)
    equal = [tuple(Choice(each.group, Fraction(1, len(axis))) for each in axis) for axis in own.axes]
    made[number] = replace(own, axes=tuple(equal), table_shares=(), best=best)
    try:
        asked = replace(plan, queries=tuple(made))
        shares = best_shares(asked, number, goal=dict(best.goal) or None, complete=best.complete)
    except (KeysError, ParameterError):
        return None
    if not shares.variables:
        return None
    return shares.applied(made[number])


def read_fits(plan: PlanLike | None, fitted: bool | None, complete: bool | None) -> tuple[bool, bool]:
    """Return whether errors are those of fitted levels, and whether keys are complete; by default as a plan's basic tables say."""
    basic = plan.basic if isinstance(plan, PlanFile) else None
    known = bool(complete) or (basic is not None and basic.complete and complete is None)
    return known if fitted is None else fitted, known


def reads_complete(plan: PlanLike | None, complete: bool) -> bool:
    """Return whether best shares are found for complete keys: of a plan file, as reading it again will say."""
    if isinstance(plan, PlanFile):
        return plan.basic is not None and plan.basic.complete
    return complete


def plan_fits(
    view: OwnerView, plan: PlanLike, goals: Sequence[Goal], search: Search
) -> tuple[PlanFits, dict[str, str]]:
    """Return all candidates for statistics with goals, and the unusable ones."""
    scope, targets = targets_in(plan, goals, view.schema)
    more = _more_families(scope, targets) if search.candidates is None else {}
    plain = dict(families() if search.candidates is None else search.candidates)
    read = goal_tables(view, scope, targets, choices_of(plain, targets))
    tables = {
        each.asked.place: tuple(table for table in read if table.asked.place == each.asked.place) for each in targets
    }
    trees = levels_by_place(view, scope, targets, search)
    sizes = {each: ranking_size(view, each, search.rank_by) for each in {target.goal.measure for target in targets}}
    fits: dict[Place, dict[str, StatisticFit]] = {each.asked.place: {} for each in targets}
    why: dict[str, str] = {}
    for target in tracked(targets, lambda each: f"families for {each.asked.statistic.alias}"):
        place, goal = target.asked.place, target.goal
        own = {name: mechanism_for(each, goal) for name, each in plain.items()} | more.get(place, {})
        for name, mechanism in own.items():
            try:
                fits[place][name] = _fit(
                    name, mechanism, target, tables[place], scope, sizes[goal.measure], trees.get(place)
                )
            except InfeasibleError as error:
                why[name] = str(error)
        if not fits[place]:
            raise ParameterError(
                parameter="goals", problem="cannot be met by any family", advice="; ".join(why.values())
            )
    costs = _costs(view, scope, fits, search.rank_by)
    best = {place: costs[place[0]].best(list(own.values())) for place, own in fits.items()}
    served = {name for own in fits.values() for name in own}
    found = PlanFits(scope=scope, targets=targets, fits=fits, costs=costs, best=best)
    return found, {name: told for name, told in why.items() if name not in served}


def _fit(
    name: str,
    mechanism: Mechanism,
    target: Target,
    tables: tuple[GoalTable, ...],
    scope: Scope,
    size: float,
    levels: GoalLevels | None,
) -> StatisticFit:
    if name != OWN:
        check_shared(mechanism, scope.plan.queries[target.asked.query])
    if levels is not None and can_be_fitted(mechanism):
        return fitted_statistic(name, mechanism, target, tables, levels)
    needed = best_mechanism(tables, name, mechanism, size)
    prototype = needed[0].mechanism
    if len(scope.plan.queries[target.asked.query].tables()) > 1:
        needed = tuple(in_proportion(each, prototype) for each in needed)
    return StatisticFit(family=name, target=target, prototype=prototype, tables=tables, needed=needed)


def _costs(
    view: OwnerView, scope: Scope, fits: Mapping[Place, Mapping[str, StatisticFit]], rank_by: str
) -> dict[int, QueryCost]:
    """Return the cost of each query."""
    numbers = dict.fromkeys(place[0] for place in fits)
    costs = {
        number: QueryCost(
            scope.plan.queries[number],
            [fit for place, own in fits.items() if place[0] == number for fit in own.values()],
            view.schema,
        )
        for number in numbers
    }
    policies = [policy for each in costs.values() for policy in each.policies]
    sample = RecordSample(view, policies, rank_by)
    losses, start = sample.losses(policies), 0
    for each in costs.values():
        each.measured(sample, losses[:, start : start + len(each.policies)])
        start += len(each.policies)
    return costs


def levels_by_place(
    view: OwnerView, scope: Scope, targets: Sequence[Target], search: Search
) -> dict[Place, GoalLevels]:
    """Return the levels to fit together, for each statistic."""
    several = [each for each in targets if len(scope.plan.queries[each.asked.query].tables()) > 1]
    if not several or not search.fitted:
        return {}
    found = goal_levels(view, [each.goal for each in several], complete=search.complete)
    return {each.asked.place: levels for each, levels in zip(several, found)}


def _more_families(scope: Scope, targets: Sequence[Target]) -> dict[Place, dict[str, Any]]:
    """Return sized noise at several floors for each sized statistic, and the plan's own where it is none of the usual.

    Noise that is not Gaussian, as Laplace noise, keeps the shares of the plan.
    """
    found: dict[Place, dict[str, Any]] = {}
    for target in targets:
        query, own = scope.plan.queries[target.asked.query], target.asked.statistic.mechanism
        levels = query.tables()
        unusual = own.is_sized or len(levels) > 1
        if unusual and not has_amount(own) and share_power(own) is not None:
            found[target.asked.place] = {OWN: own}
        if any(level_sizes(query, level, target.goal.measure, scope.plan.schema) is None for level in levels):
            continue
        around = target.goal.at_least or (FEW if target.goal.measure == COUNT else USUAL_FLOOR)
        low = FAT_TAILED if len(levels) == 1 else None
        found[target.asked.place] = found.get(target.asked.place, {}) | {
            name: each
            for part in FLOORS
            for name, each in sized_family(
                f"sized, floor {formula_text(part)} of the least total", two_digits(float(around * part)), low=low
            ).items()
        }
    return found
