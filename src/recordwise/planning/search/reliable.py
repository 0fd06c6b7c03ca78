"""How many cells a status rule would call reliable, at what loss.

Cells are counted by size, from the law of the noise alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import ndtr

from recordwise.errors import ParameterError, RangeError, RecordError
from recordwise.exact.arithmetic import FloatArray, largest_allowed
from recordwise.exact.text import prose_text
from recordwise.mechanisms.base import Mechanism
from recordwise.plan.cost import records_of, statistic_policy
from recordwise.plan.expressions import Best
from recordwise.plan.publication import StatusRules
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.plan.statistics import Drawable
from recordwise.planning.losses import Losses, RecordSample, loss_at, policy_losses, read_rank
from recordwise.planning.scope import COUNT, TODAY, Scope, level_shares, with_choice
from recordwise.planning.search.fits import Search, levels_by_place, plan_fits, public_split
from recordwise.planning.search.goals import (
    Goals,
    GoalTable,
    Target,
    can_be_scaled,
    goal_tables,
    goals_in,
    has_amount,
    has_width,
    noise_size,
    with_noise_size,
)
from recordwise.planning.search.shares import GoalLevels, can_be_fitted
from recordwise.policy.columns import Measure
from recordwise.policy.policy import Policy
from recordwise.progress import steps, tell, tracked
from recordwise.session import Session
from recordwise.session.owner import OwnerView

CLASSES = 7
"""Cells of 1 to 9, of 10 to 99, and so on, in the units of their statistic; the last class has no upper end."""
Place = tuple[int, str]


def class_names() -> list[str]:
    """The size classes of cells."""
    ends = [10**power for power in range(CLASSES)]
    named = [f"{prose_text(low)} to {prose_text(high - 1)}" for low, high in pairwise(ends)]
    return ["below 1", *named, f"{prose_text(ends[-1])} or more"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Reliability:
    """The expected share of reliable cells.

    CONFIDENTIAL if the records are.
    """

    share: float
    by_class: tuple[float, ...]
    """By the size of the cells; not a number where there is no cell."""
    by_table: dict[str, float]


def reliability(tables: Sequence[GoalTable], errors: Sequence[FloatArray], limit: float) -> Reliability:
    """Return the expected share of cells with small relative error.

    At most the limit. A value is called reliable if it is at least its standard error divided by the limit;
    with normal noise that has the probability Phi(total / sd - 1 / limit).
    """
    chances = [ndtr(each.totals / sd - 1 / limit) for each, sd in zip(tables, errors)]
    totals = np.concatenate([each.totals for each in tables])
    places = np.clip(np.floor(np.log10(np.maximum(totals, 1e-9))).astype(int) + 1, 0, CLASSES)
    whole = np.concatenate(chances)
    held = np.bincount(places, minlength=CLASSES + 1)
    with np.errstate(invalid="ignore"):
        by_class = np.bincount(places, weights=whole, minlength=CLASSES + 1) / held
    return Reliability(
        share=float(whole.mean()),
        by_class=tuple(by_class.tolist()),
        by_table={each.name: float(chance.mean()) for each, chance in zip(tables, chances)},
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Scalable:
    """A plan whose noise changes by one factor.

    Everything else stays. CONFIDENTIAL if the records are.
    """

    name: str
    scope: Scope
    queries: tuple[Query, ...]
    tables: tuple[GoalTable, ...]
    levels: Mapping[Place, GoalLevels]
    """The statistics whose levels are fitted together."""
    schema: Schema
    any_law: bool = False
    """Whether sized noise of fat-tailed laws is scaled and fitted too, by those who evaluate every policy again."""

    def mechanism(self, place: Place, factor: float) -> Any | None:
        """Return a statistic's mechanism at a factor of its loss.

        Noise is divided by the square root of the factor; None if there is no such mechanism.
        """
        own: Any = self.drawn(place).mechanism
        if factor == 1:
            return own
        if not can_be_scaled(own) and not (self.any_law and has_widths(own)):
            return None
        try:
            if not can_be_scaled(own):
                times = Fraction(float(1 / np.sqrt(factor)))
                return own.each(lambda inner: inner.with_scale_times(times))
            return with_noise_size(own, noise_size(own) / np.sqrt(factor))
        except (ParameterError, RangeError):
            # Noise of any law can be too large or too small to be drawn.
            return None

    def drawn(self, place: Place) -> Drawable:
        """Return the drawn statistic, or the one that replaces it."""
        drawn = {each.alias: each for each in self.queries[place[0]].draws()}
        if place[1] in drawn:
            return drawn[place[1]]
        asked = next(each.asked for each in self.tables if each.asked.place == place)
        return next(each for each in drawn.values() if each.planned_as == asked.measure)

    def places(self) -> list[Place]:
        """The statistics that are examined, each once."""
        return list(dict.fromkeys((each.asked.query, self.drawn(each.asked.place).alias) for each in self.tables))

    def ray(self) -> Any:
        """Return a key equal for plans that differ only in noise scale.

        None if that cannot be decided.
        """
        mechanisms = [self.drawn(place).mechanism for place in self.places()]
        if not all(map(can_be_scaled, mechanisms)):
            return None
        sizes = [noise_size(each) for each in mechanisms]
        units = [with_noise_size(each, 1.0) for each in mechanisms]
        return (
            tuple((each.axes, each.table_shares) for each in self.queries),
            units,
            [round(float(np.log(each / sizes[0])), 3) for each in sizes],
        )

    def at(self, factor: float) -> tuple[Query, ...] | None:
        """Return the queries at a multiple of the loss, or None."""
        chosen = {each.asked.place: self.mechanism(each.asked.place, factor) for each in self.tables}
        if any(each is None for each in chosen.values()):
            return None

        plan = replace(self.scope.plan, queries=self.queries)
        return with_choice(plan, [each.asked for each in self.tables], lambda asked: chosen[asked.place])

    def examined(self, queries: Sequence[Query]) -> tuple[Query, ...]:
        """Return the statistics among queries that are examined, without all others."""
        own, found = set(self.places()), []
        for number, query in enumerate(queries):
            kept = tuple(each for each in query.draws() if (number, each.alias) in own)
            found += [replace(query, statistics=kept, median=())] if kept else []
        return tuple(found)

    def others(self) -> tuple[Query, ...]:
        """What the plan draws besides the examined statistics."""
        own = {each.asked.place for each in self.tables}
        found = []
        for number, query in enumerate(self.queries):
            rest = [each for each in query.draws() if (number, each.alias) not in own]
            found += [replace(query, statistics=tuple(rest))] if rest else []
        return tuple(found)

    def is_plain(self, table: GoalTable) -> bool:
        """Return whether standard errors are proportional to the noise."""
        own = self.drawn(table.asked.place).mechanism
        return can_be_scaled(own) and own.inside()[0].noise_scale is None

    def errors(self, table: GoalTable, factor: float) -> FloatArray:
        """Return the standard errors of the counted cells.

        Of the fit, where levels are fitted together.
        """
        place, mechanism = table.asked.place, self.mechanism(table.asked.place, factor)
        query = self.queries[place[0]]
        assert mechanism is not None
        if place in self.levels and can_be_fitted(mechanism):
            tree = self.levels[place].at(mechanism)
            fitted = tree.weights(level_shares(query)).fitted[tree.level == table.part.number]
            return np.asarray(np.sqrt(fitted[table.counted]))
        if place in self.levels and self.any_law and has_widths(mechanism):
            shares = [each.share for each in query.tables()]
            tree = self.levels[place].under(mechanism, shares, table.part.step)
            fitted = tree.weights(np.ones(len(shares))).fitted[tree.level == table.part.number]
            return np.asarray(np.sqrt(fitted[table.counted]))
        part, found = table.part, np.zeros(len(table.part.total))
        for each, rows in part.served(mechanism, query.tables()[part.number].share):
            found[rows] = each.variance_of(part.total[rows], step=part.step)
        return np.asarray(np.sqrt(found[table.counted]))


def has_widths(mechanism: Mechanism) -> bool:
    """Return whether it is sized noise, all fat-tailed with a scale."""
    return mechanism.is_sized and all(map(has_width, mechanism.inside()))


# What records lose under a plan with more or less noise, from one evaluation of its policy. The loss from Gaussian
# noise is proportional to the inverse square of the noise. Fat-tailed noise that is c times as large costs a record
# of size x what the noise itself costs one of x / c, so that one curve, certified for a scale of 1, serves all
# scales. Planning searches with these numbers; what it returns is measured with the policy itself.


FINE = Fraction(1, 1024)
"""The step of sizes at which the curve is certified, in scales; below it, losses follow the slope at the first steps."""
SCALES = 400
LARGEST = 2.0**40
Evaluated = Callable[[Sequence[Policy]], FloatArray]
"""The losses of some records under policies, a column for each."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Curve:
    """The losses of records from one fat-tailed statistic.

    CONFIDENTIAL if the records are.
    """

    sizes: FloatArray
    """The logarithm of each record's size in scales of the noise."""
    weights: FloatArray
    """What the statistic costs a record as a part of the curve: 0 where it does not count the record."""
    knots: tuple[FloatArray, FloatArray]

    def at(self, factor: float) -> FloatArray:
        """The losses at noise divided by the square root of the factor."""
        places, levels = self.knots
        logs = self.sizes + np.log(factor) / 2
        slope = (levels[1] - levels[0]) / (places[1] - places[0])
        below = np.minimum(logs - places[0], 0.0) * slope
        return np.asarray(self.weights * np.exp(np.interp(logs, places, levels) + below))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ScaledLosses:
    """The losses of some records for any noise factor.

    CONFIDENTIAL if the records are.
    """

    rest: FloatArray
    """What the statistics cost that are not examined."""
    proportional: FloatArray
    curves: tuple[Curve, ...]
    is_fixed: bool
    """Whether the losses are known for the noise as it is only, at a factor of 1."""

    def at(self, factor: float) -> FloatArray:
        """The losses at noise divided by the square root of the factor."""
        return np.asarray(sum((each.at(factor) for each in self.curves), self.rest + factor * self.proportional))


def scaled_losses(
    plan: Scalable, policy: Policy, rest: Policy, columns: Mapping[str, Any], evaluated: Evaluated
) -> ScaledLosses:
    """Return the scalable losses of records with these columns."""
    fat = [place for place in plan.places() if has_width(plan.drawn(place).mechanism)]
    is_fixed = not all(_can_be_scaled(plan, place, columns) for place in plan.places())
    policies = [] if is_fixed else [_cost(plan, place) for place in fat]
    losses = evaluated([rest, policy, *policies])
    curves = [
        _curve(plan.drawn(place).mechanism, _sizes(plan, place, columns, len(losses)), own)
        for place, own in zip(fat, losses.T[2:])
    ]
    others = losses[:, 1] - losses[:, 0] - losses[:, 2:].sum(axis=1)
    return ScaledLosses(
        rest=losses[:, 0], proportional=np.maximum(others, 0.0), curves=tuple(curves), is_fixed=is_fixed
    )


def _can_be_scaled(plan: Scalable, place: tuple[int, str], columns: Mapping[str, Any]) -> bool:
    """Return whether scaled noise can be evaluated."""
    own = plan.drawn(place)
    is_known = own.planned_as == COUNT or own.planned_as in columns
    return has_amount(own.mechanism) or (
        has_width(own.mechanism) and is_known and len(plan.queries[place[0]].tables()) == 1
    )


def _cost(plan: Scalable, place: tuple[int, str]) -> Policy:
    """Return the policy of one statistic of a one-table query."""
    query, schema = plan.queries[place[0]], plan.schema
    (level,), statistic = query.tables(), plan.drawn(place)
    return statistic_policy(query, statistic, level, schema, tight=True).where(records_of(query.condition, schema))


def _sizes(plan: Scalable, place: tuple[int, str], columns: Mapping[str, Any], records: int) -> FloatArray:
    """The size of each record in a measure; 1 for a count."""
    measure = plan.drawn(place).planned_as
    if measure == COUNT:
        return np.ones(records)
    return np.abs(np.asarray(columns[str(measure)], np.float64))


def _curve(mechanism: Mechanism, sizes: FloatArray, losses: FloatArray) -> Curve:
    unit = mechanism.resized(1 / mechanism.width)
    knots = _knots(unit)
    with np.errstate(divide="ignore"):
        logs = np.where(sizes > 0, np.log(sizes * float(unit.width) / float(mechanism.width)), knots[0][0])
    plain = Curve(sizes=logs, weights=np.ones(len(logs)), knots=knots).at(1.0)
    return Curve(sizes=logs, weights=losses / plain, knots=knots)


@lru_cache(maxsize=32)
def _knots(unit: Any) -> tuple[FloatArray, FloatArray]:
    """Return log sizes in scales, and their log losses."""
    steps = np.unique(np.round(np.geomspace(1, LARGEST, SCALES)))
    sizes = steps * float(FINE)
    losses = unit.policy(Measure("size", FINE)).loss({"size": sizes})
    return np.log(sizes), np.log(np.asarray(losses, np.float64))


# The plans on a frontier, each with more or less noise: what a sample of the records loses, and which cells are
# reliable.


GOALS = (0.5, 0.9)
"""The shares of the cells for whose reliability plans are made; each plan is then tried with more and less noise."""
TIMES_SD = 1.959963985
CONFIDENCE = 0.95
FACTORS = (1e-9, 1e9)
STRIDE = 8.0
"""By how much a factor changes until one is found that is allowed and one that is not."""
MOST_TRIES = 6
ROUNDED = 1 - 1e-5


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class FrontierPoint:
    """One plan with its losses and number of reliable cells."""

    name: str
    losses: Losses
    reliable: Reliability
    queries: tuple[Query, ...]

    def loss(self, rank_by: str) -> float:
        """The loss of a rank.

        Args:
            rank_by: "median", "p99" or "maximum" of the records, or "balanced", the geometric mean of the first two.

        Returns:
            The loss.
        """
        return loss_at(self.losses, rank_by)

    def to_json(self) -> dict[str, Any]:
        """Return the numbers for JSON, null for sizes without cells."""
        by_class = zip(class_names(), self.reliable.by_class)
        return {
            "name": self.name,
            "losses": self.losses.to_json(),
            "share": self.reliable.share,
            "by_class": {name: None if np.isnan(each) else each for name, each in by_class},
            "by_table": self.reliable.by_table,
        }


class Plans:
    """The plans of a frontier and today's, with sampled losses: of all that a plan draws, or (``alone``) of what is examined.

    CONFIDENTIAL if the records are.
    """

    def __init__(
        self,
        session: Session,
        view: OwnerView,
        scope: Scope,
        search: Search,
        *,
        rules: StatusRules | None,
        at_least: Any,
        alone: bool = False,
    ) -> None:
        self._session, self._view, self._alone = session, view, alone
        read_rank(search.rank_by)
        self.status, self.limit = (rules or StatusRules()).limits[0]
        step = steps(2)
        step("making plans")
        self.plans = self._made(scope, search, at_least)
        step("working out policies")
        policies = tracked(self.plans, lambda each: f"the policy of {each.name}")
        self._policies = {each: self._policy(each, each.queries) for each in policies}
        others = () if alone else self.plans[0].others()
        self._others = session.policy_of(*others) if others else Policy()
        self._sample = RecordSample(view, [self._others, *self._policies.values()], search.rank_by)
        self._kept: dict[tuple[Scalable, int], FloatArray] = {}
        self._losses = {
            each: scaled_losses(each, policy, self._others, self._sample.columns, self._sample.losses)
            for each, policy in self._policies.items()
        }

    def _made(self, scope: Scope, search: Search, at_least: Any) -> list[Scalable]:
        view, whole = self._view, scope.plan.queries
        wanted: Goals = {"within": self.limit * TIMES_SD, "confidence": CONFIDENCE, "at_least": at_least}
        targets = tuple(Target(asked=each, goal=goal) for each, goal in zip(scope.asked(), goals_in(scope, **wanted)))
        tables = goal_tables(view, scope, targets, {})
        levels = levels_by_place(view, scope, targets, search)
        schema = view.schema
        found = [Scalable(name=TODAY, queries=whole, scope=scope, tables=tables, levels=levels, schema=schema)]
        for share in tracked(GOALS, "making plans"):
            own: Goals = {**wanted, "share": str(share)}
            fits, _ = plan_fits(view, scope.plan, goals_in(scope, **own), search)
            for name, chosen in fits.assignments().items():
                queries = fits.queries(chosen, fits.split(chosen))
                found.append(
                    Scalable(name=name, queries=queries, scope=scope, tables=tables, levels=levels, schema=schema)
                )
        return _different(found)

    def with_public_shares(self, plan: Scalable, before: Sequence[Query], *, complete: bool) -> Scalable | None:
        """Return a plan with ``share = "best"`` where the search split a loss again; None where it changed no shares.

        Such shares follow from public lists and sizes, and are found again when the plan is read (T-FITSHARES).
        """
        whole, made = plan.scope.plan, list(plan.queries)
        for number, old in enumerate(before):
            if level_shares(old).tolist() != level_shares(made[number]).tolist():
                made[number] = public_split(whole, made, number, Best(complete=complete)) or made[number]
        if tuple(made) == plan.queries:
            return None
        found = replace(plan, queries=tuple(made))
        policy = self._policies[found] = self._policy(found, found.queries)
        self._losses[found] = scaled_losses(found, policy, self._others, self._sample.columns, self._sample.losses)
        return found

    def _policy(self, plan: Scalable, queries: Sequence[Query]) -> Policy:
        """Return the cost of a plan, or of the examined part."""
        return self._session.policy_of(*(plan.examined(queries) if self._alone else queries))

    def loss(self, plan: Scalable, factor: float, rank_by: str) -> float:
        """Return the sampled loss of a rank at a noise factor.

        Noise is divided by the square root of the factor.
        """
        return self._sample.ranked(self._losses[plan].at(factor), rank_by)

    def factor_within(self, plan: Scalable, limits: Mapping[str, float]) -> float | None:
        """Return the largest factor whose losses stay within limits, or None."""

        def within(factor: float) -> bool:
            return all(self.loss(plan, factor, name) <= limits[name] for name in limits)

        return _factor(self._losses[plan], within)

    def factor_at_record(self, plan: Scalable, record: Mapping[str, Any], limit: float) -> float | None:
        """Return the largest factor that keeps one record's loss limited."""

        def evaluated(policies: Sequence[Policy]) -> FloatArray:
            return np.array([[float(each.loss(dict(record))) for each in policies]])

        columns = {name: [each] for name, each in record.items()}
        try:
            losses = scaled_losses(plan, self._policies[plan], self._others, columns, evaluated)
        except RecordError as error:
            raise ParameterError(parameter="at", problem=f"has a record whose loss is not known: {error}") from None
        found = _factor(losses, lambda factor: float(losses.at(factor)[0]) <= limit)
        # A sigma is rounded down to a few digits, which costs a little more.
        return found if found is None or losses.is_fixed else ROUNDED * found

    def factor_covered(
        self, plan: Scalable, most: float | None, covered: Callable[[Policy], bool] | None
    ) -> float | None:
        """Return the largest factor whose policy a budget covers."""
        if most is None or covered is None:
            return most
        tell(f"how much of {plan.name} the budget covers")

        def allowed(factor: float) -> bool:
            queries = plan.at(factor)
            if factor > most or queries is None:
                return False
            try:
                return covered(self._session.policy_of(*queries))
            except (ParameterError, RangeError):
                # Noise that large cannot be drawn.
                return False

        return most if most < FACTORS[1] and allowed(most) else _factor(self._losses[plan], allowed, close=1.02)

    def best(self, factors: Mapping[Scalable, float | None]) -> tuple[Scalable, float, Reliability] | None:
        """The plan with the most reliable cells, each at its own factor."""
        found = []
        for plan, factor in factors.items():
            if factor is None or plan.at(factor) is None:
                continue
            found.append((plan, factor, self.reliable(plan, factor)))
        return max(found, key=lambda each: each[2].share, default=None)

    def reliable(self, plan: Scalable, factor: float) -> Reliability:
        """How many cells are reliable at a factor."""
        errors = [self._errors(plan, number, factor) for number in range(len(plan.tables))]
        return reliability(plan.tables, errors, self.limit)

    def _errors(self, plan: Scalable, number: int, factor: float) -> FloatArray:
        table = plan.tables[number]
        if not plan.is_plain(table):
            return plan.errors(table, factor)
        if (plan, number) not in self._kept:
            self._kept[plan, number] = plan.errors(table, 1.0)
        return np.asarray(self._kept[plan, number] / np.sqrt(factor))

    def exactly(self, found: tuple[Scalable, float, Reliability], limits: Mapping[str, float]) -> FrontierPoint | None:
        """Return the plan with all records' losses within the limits."""
        plan, factor, reliable = found
        for _ in range(MOST_TRIES):
            (point,) = self.points([(plan, factor, reliable)])
            over = max((point.loss(name) / limit for name, limit in limits.items()), default=0.0)
            if over <= 1:
                return point
            factor /= over * (1 + 1e-3)
            if plan.at(factor) is None:
                break
            reliable = self.reliable(plan, factor)
        return None

    def points(self, chosen: Sequence[tuple[Scalable, float, Reliability]]) -> list[FrontierPoint]:
        """The plans chosen, with the losses of all records."""
        queries = [plan.at(factor) or plan.queries for plan, factor, _ in chosen]
        asked = tracked(list(enumerate(queries)), lambda item: f"the losses of {chosen[item[0]][0].name}")
        policies = {str(at): self._policy(chosen[at][0], own) for at, own in asked}
        losses = policy_losses(self._view, policies)
        return [
            FrontierPoint(name=plan.name, losses=losses[str(at)].rho, reliable=found, queries=own)
            for at, ((plan, _, found), own) in enumerate(zip(chosen, queries))
        ]


def _different(plans: Sequence[Scalable]) -> list[Scalable]:
    """Return the plans without rescaled duplicates."""
    found: list[tuple[Scalable, Any]] = []
    for each in plans:
        ray = each.ray()
        if not found or ray is None or all(ray != other for _, other in found[1:]):
            found.append((each, ray))
    return [each for each, _ in found]


def _factor(losses: ScaledLosses, allowed: Callable[[float], bool], *, close: float = 1.001) -> float | None:
    """Return the largest allowed factor, or None.

    All between 1 and it must be allowed.
    """
    if losses.is_fixed:
        return 1.0 if allowed(1.0) else None
    least, most = FACTORS
    low = 1.0
    while not allowed(low):
        low /= STRIDE
        if low < least:
            return None
    high = low * STRIDE
    while high <= most and allowed(high):
        low, high = high, high * STRIDE
    return largest_allowed(allowed, low, high, rounded=float, close=close)
