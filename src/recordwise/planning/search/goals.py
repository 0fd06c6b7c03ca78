"""Accuracy goals, the cells that decide them, and the candidates to meet them."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from typing import Any, Required, TypedDict, Unpack, cast

import numpy as np
from scipy.optimize import minimize_scalar

from recordwise.errors import ParameterError, expect_kind, own_argument_errors, own_errors_of
from recordwise.exact.arithmetic import FloatArray, largest_allowed
from recordwise.exact.numbers import Number, decimal, float_upper, moderate, nonnegative, positive
from recordwise.exact.text import digits_text, formula_text, prose_text, share_text
from recordwise.mechanisms.base import Mechanism, read_confidence
from recordwise.mechanisms.fat_tailed import GeneralizedGaussian
from recordwise.mechanisms.gaussian import Clamped, Gaussian
from recordwise.mechanisms.registry import planning_families
from recordwise.mechanisms.sized import Sized
from recordwise.plan.expressions import ALL_OTHER, Level
from recordwise.plan.file.node import suggestion
from recordwise.plan.keys.bands import sizes_at
from recordwise.plan.plan import Plan, query_with_levels
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.planning.scope import (
    COUNT,
    Asked,
    Choice,
    PlanLike,
    PlanTotals,
    Scope,
    at_level,
    bare,
    by_measure,
    check_measure,
    part_name,
    plan_totals,
    reaching,
    scope_of,
    with_statistic,
)
from recordwise.policy.columns import Measure
from recordwise.session import Session
from recordwise.session.checks import query_with_sizes
from recordwise.session.owner import FOR_OWNER, OwnerView

FULL = Fraction(1)


@own_errors_of
@dataclass(frozen=True, slots=True, init=False, eq=False)
class Goal:
    """A bound on the relative error of a table's cells.

    At most ``within`` with probability ``confidence``, in every cell or in a ``share`` of them. Cells with a
    total of 0 or below ``at_least`` have no meaningful relative error and are not counted. A query with levels
    is one goal for each of its tables.

    Args:
        measure: The measure that is summed, or "count".
        query: The tables the goal is about.
        within: The largest relative error.
        confidence: The probability with which a cell stays within it.
        share: The share of the cells that must meet the goal.
        at_least: Totals below this do not count. Or by statistic: ``{"count": 100}`` leaves out cells of fewer records, and
            ``{"pay": 1000}`` those with less of another measure.
        statistic: The published name, where the plan has several statistics of the measure.
        levels: The numbers of the query's tables that the goal is about, from 0; all of them unless given.
    """

    measure: str
    query: Query
    within: Fraction
    confidence: float
    share: Fraction
    at_least: Fraction
    others_at_least: tuple[tuple[str, Fraction], ...]
    """What other statistics of a cell must reach, by measure or "count"."""
    statistic: str | None
    levels: tuple[int, ...]

    def __init__(
        self,
        measure: str,
        query: Query,
        *,
        within: Number,
        confidence: float = 0.95,
        share: Number = 1,
        at_least: Number | Mapping[str, Number] = 0,
        statistic: str | None = None,
        levels: Sequence[int] | None = None,
    ) -> None:
        part = positive(share, parameter="share")
        if part > 1:
            raise ParameterError(parameter="share", problem="must be at most 1")
        shape = bare(query)
        least = by_measure(at_least, [query]) if isinstance(at_least, Mapping) else {measure: at_least}
        least = {
            name: moderate(nonnegative(number, parameter="at_least"), parameter="at_least")
            for name, number in least.items()
        }
        others = {name: number for name, number in least.items() if name != measure}
        values = {
            "measure": measure,
            "query": shape,
            "within": positive(within, parameter="within"),
            "confidence": read_confidence(confidence),
            "share": part,
            "at_least": least.get(measure, Fraction(0)),
            "others_at_least": tuple(others.items()),
            "statistic": statistic,
            "levels": tuple(range(len(shape.tables()))) if levels is None else tuple(levels),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def queries(self) -> tuple[Query, ...]:
        """Return one query for each table, for separate noise."""
        tables = self.query.tables()
        return tuple(at_level(self.query, tables[number]) for number in self.levels)

    def with_query(self, query: Query) -> "Goal":
        """The same goal for another query.

        Args:
            query: The query, with as many tables.

        Returns:
            The goal.
        """
        return Goal(
            self.measure,
            query,
            within=self.within,
            confidence=self.confidence,
            share=self.share,
            at_least={self.measure: self.at_least, **dict(self.others_at_least)},
            statistic=self.statistic,
            levels=self.levels,
        )

    def words(self) -> str:
        """The goal as a reader says it."""
        which = "every cell" if self.share == 1 else f"{share_text(float(self.share))} of the cells"
        least = f" of at least {prose_text(self.at_least)}" if self.at_least else ""
        least += "".join(f" with {name} of at least {prose_text(number)}" for name, number in self.others_at_least)
        error = f"error at most {digits_text(float(self.within), 3)} of the total"
        return f"{self.statistic or self.measure}: {error} with {share_text(self.confidence)} in {which}{least}"


class Goals(TypedDict, total=False):
    """The numbers of a ``Goal``, for several statistics at once.

    One number for all of them, or one for each measure or published name; the defaults are those of ``Goal``.
    """

    within: Required[Number | Mapping[str, Number]]
    confidence: float
    share: Number
    at_least: Number | Mapping[str, Number | Mapping[str, Number]]
    """For one statistic also by others: ``{"emp": {"count": 100}}``."""


@own_argument_errors
def plan_goals(
    session: Session,
    query: PlanLike,
    *,
    tables: Sequence[str] = (),
    statistics: Sequence[str] = (),
    **goals: Unpack[Goals],
) -> tuple[Goal, ...]:
    """Return one goal for every selected count and sum.

    Args:
        session: A session on the table of the plan; its records are not read.
        query: The plan: a query, several, a ``Plan`` or a plan file that was loaded.
        tables: The selected tables, by name or by the number or name of their query; all unless given.
        statistics: The selected statistics, by published name or measure; all unless given.
        **goals: ``within``, ``confidence``, ``share`` and ``at_least`` of ``Goal``. The first and the last may be one number for
            each measure or published name.

    Returns:
        The goals, for ``recommend``.
    """
    return goals_in(scope_of(query, session.schema, tables=tables, statistics=statistics), **goals)


def goals_in(scope: Scope, **goals: Unpack[Goals]) -> tuple[Goal, ...]:
    """The goals of the selected statistics."""

    def own(asked: Asked) -> dict[str, Any]:
        return {name: _own(given, asked, name) for name, given in goals.items()}

    for name, given in goals.items():
        _check_names(name, given, scope)
    return tuple(
        Goal(
            str(each.measure),
            scope.plan.queries[each.query],
            statistic=each.statistic.alias,
            levels=each.levels,
            **own(each),
        )
        for each in scope.asked()
    )


def _check_names(parameter: str, given: Any, scope: Scope) -> None:
    """Refuse a number for a statistic that the plan does not have: it would be left out of account."""
    drawn = [each for query in scope.plan.queries for each in query.draws()]
    known = [name for each in drawn for name in (each.alias, each.planned_as) if name is not None]
    for name in given if isinstance(given, Mapping) else ():
        if name not in known:
            raise ParameterError(
                parameter=parameter, problem=f"names '{name}', which the plan does not publish{suggestion(name, known)}"
            )


def _own(given: Any, asked: Asked, parameter: str) -> Any:
    """The number of one statistic, by its published name or its measure."""
    if not isinstance(given, Mapping):
        return given
    found = given.get(asked.statistic.alias, given.get(asked.measure, 0 if parameter == "at_least" else None))
    if found is None:
        raise ParameterError(parameter=parameter, problem=f"has no number for '{asked.statistic.alias}'")
    return found


def read_goals(goals: Goal | Sequence[Goal]) -> tuple[Goal, ...]:
    found = (goals,) if isinstance(goals, Goal) else tuple(goals)
    if not found or not all(isinstance(each, Goal) for each in found):
        raise ParameterError(parameter="goals", problem="must be a Goal or a sequence of Goals")
    return tuple(each.with_query(query_with_sizes(each.query)) for each in found)


def mechanism_for(family: Any, goal: Goal) -> Any:
    """Return a candidate's mechanism for one goal."""
    if not isinstance(family, Mapping):
        wanted = "mechanisms, or mappings of statistics to mechanisms"
        expect_kind(family, Mechanism, parameter="candidates", wanted=wanted)
        return family
    found = family.get(goal.statistic, family.get(goal.measure))
    if found is None:
        raise ParameterError(parameter="families", problem=f"has no mechanism for '{goal.statistic or goal.measure}'")
    return found


# The goals of a plan's statistics, table by table.


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class GoalTable:
    """CONFIDENTIAL if the records are: one statistic of one table of a plan, with its goal."""

    goal: Goal
    part: PlanTotals
    counted: Any
    """Which cells count for the goal."""
    totals: FloatArray
    """The totals of the counted cells."""
    has_sizes: bool
    """Whether the keys have public sizes."""
    may_miss: int
    """How many of the counted cells need not meet the goal."""

    @property
    def name(self) -> str:
        return part_name(self.goal.statistic or self.goal.measure, self.part.level)

    @property
    def asked(self) -> Asked:
        return self.part.asked

    @property
    def step(self) -> Fraction:
        return self.part.step

    def kept(self, name: str) -> FloatArray | None:
        """Return the clamped totals, or the parts of signed ones, of the counted cells under a mechanism."""
        held = self.part.kept.get(name)
        return None if held is None else held[..., self.counted]

    def deciding(self) -> float:
        """Return the smallest total that must meet the goal, which decides if relative errors fall as totals grow."""
        return float(np.partition(self.totals, self.may_miss)[self.may_miss])

    @property
    def query(self) -> Query:
        """The groups, keys and condition of this table alone."""
        return at_level(self.goal.query, self.part.level)

    def with_mechanism(self, mechanism: Mechanism) -> Query:
        """Return a query for this table alone."""
        return with_statistic(self.query, self.goal.measure, mechanism)

    def met_by(self, mechanism: Mechanism, name: str, share: Fraction = FULL) -> Any:
        """Return which of the counted cells meet the goal under the mechanism of a candidate of this name."""
        reach = float(self.goal.within) * self.part.total
        return self.part.by_cell(
            "meets", mechanism, reach, share=share, only=self.counted, kept=name, confidence=self.goal.confidence
        )

    def ratio(self, mechanism: Mechanism, share: Fraction = FULL, *, name: str = "", smooth: bool = False) -> float:
        """Return error divided by goal in the deciding cell."""
        errors = self.part.by_cell(
            "smooth_error_quantiles" if smooth else "error_quantiles",
            mechanism,
            share=share,
            only=self.counted,
            kept=name,
            confidence=self.goal.confidence,
        )
        return self.worst(errors / (float(self.goal.within) * self.totals))

    def worst(self, ratios: FloatArray) -> float:
        """Return the ratio of the deciding cell: all cells except those that may miss are at most as bad."""
        place = len(ratios) - 1 - self.may_miss
        return float(np.partition(ratios, place)[place])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Target:
    """A statistic of a plan that has a goal."""

    asked: Asked
    goal: Goal


def goal_scope(goals: Sequence[Goal], schema: Schema, *, full: bool = False) -> tuple[Scope, tuple[Target, ...]]:
    """Return a plan of one statistic for each goal, in the tables of the goal or in all of its query."""
    queries = tuple(
        with_statistic(replace(goal.query, name="", title=""), goal.measure, FOR_OWNER, alias=goal.statistic)
        for goal in goals
    )
    plan = Plan(schema=schema, queries=queries)
    targets = []
    for number, (query, goal) in enumerate(zip(plan.queries, goals)):
        levels = tuple(range(len(query.tables()))) if full else goal.levels
        targets.append(Target(asked=Asked(query=number, statistic=query.draws()[0], levels=levels), goal=goal))
    return Scope(plan=plan, drawn=tuple(each.asked for each in targets), is_whole=False), tuple(targets)


def targets_in(plan: PlanLike, goals: Sequence[Goal], schema: Schema) -> tuple[Scope, tuple[Target, ...]]:
    """Return the plan, and the statistic that each goal is about."""
    whole = scope_of(plan, schema)
    found: dict[tuple[int, str], Target] = {}
    for goal in goals:
        own = [each for each in whole.asked() if _means(goal, each, whole.plan.queries[each.query])]
        if not own:
            raise ParameterError(
                parameter="goals",
                problem=f"include one about {goal.statistic or goal.measure} in a table that the plan does not have",
                advice="Make goals with plan_goals.",
            )
        for each in own:
            asked = replace(each, levels=goal.levels)
            found[asked.place] = Target(asked=asked, goal=goal)
    return whole, tuple(found.values())


def _means(goal: Goal, asked: Asked, query: Query) -> bool:
    """Return whether a goal applies to a statistic of a query."""
    shapes = [(each.condition, each.groups, each.axes, each.all_other, each.name) for each in (goal.query, query)]
    return shapes[0] == shapes[1] and asked.measure == goal.measure and goal.statistic in (None, asked.statistic.alias)


def goal_tables(
    view: OwnerView, scope: Scope, targets: Sequence[Target], choices: Mapping[str, Choice]
) -> tuple[GoalTable, ...]:
    """Return every table of every target, with its totals read in as few passes as a release would take."""
    goals = {each.asked.place: each.goal for each in targets}
    part = Scope(plan=scope.plan, drawn=tuple(each.asked for each in targets), is_whole=False)
    return tuple(_goal_table(view, goals[each.asked.place], each) for each in plan_totals(view, part, choices))


def tables_of(view: OwnerView, goals: Sequence[Goal], candidates: Mapping[str, Any]) -> tuple[GoalTable, ...]:
    """Return every table of goals that are about no plan."""
    for goal in goals:
        check_measure(goal.measure, view.schema)
    scope, targets = goal_scope(goals, view.schema)
    return goal_tables(view, scope, targets, choices_of(candidates, targets))


def choices_of(candidates: Mapping[str, Any], targets: Sequence[Target]) -> dict[str, Choice]:
    """Return each candidate's mechanism for each statistic with a goal."""
    goals = {each.asked.place: each.goal for each in targets}

    def choice(candidate: Any) -> Choice:
        return lambda asked: mechanism_for(candidate, goals[asked.place])

    return {name: choice(each) for name, each in candidates.items()}


def _goal_table(view: OwnerView, goal: Goal, part: PlanTotals) -> GoalTable:
    counted = counted_cells(view, goal, part)
    if not counted.any():
        groups = " x ".join(part.level.names()) or "the grand total"
        raise ParameterError(
            parameter=f"the goal of {goal.measure}",
            problem=f"has no cell of {groups} to which it applies",
            advice="Lower at_least for it, leave it out (statistics, --statistic), or check the keys.",
        )
    query = part.plan.queries[part.asked.query]
    return GoalTable(
        goal=goal,
        part=part,
        counted=counted,
        totals=part.total[counted],
        has_sizes=level_sizes(query, part.level, goal.measure, part.plan.schema) is not None,
        may_miss=int((1 - goal.share) * int(counted.sum())),
    )


def counted_cells(view: OwnerView, goal: Goal, part: PlanTotals) -> Any:
    """Return which cells count for a goal: no published rest, and none whose total is 0 or below ``at_least``."""
    least = {goal.measure: goal.at_least, **dict(goal.others_at_least)}
    (reached,) = reaching(view, [part], least)
    counted = (part.total > 0) & reached
    if ALL_OTHER in part.cells.column_names:
        counted &= ~np.asarray(part.cells.column(ALL_OTHER).to_numpy(zero_copy_only=False), bool)
    return counted


# How much noise a mechanism has, and the same mechanism with another amount.


def has_amount(mechanism: Mechanism) -> bool:
    """Return whether the noise scales as a share's inverse square root.

    A share w of its loss is the same noise, larger by w**(-1/2): Gaussian noise, sized or on another scale.
    """
    return all(_is_gaussian(each) for each in mechanism.inside())


def _is_gaussian(mechanism: Mechanism) -> bool:
    if mechanism.noise_scale is not None:
        return getattr(mechanism, "sigma", None) is not None
    try:
        return mechanism.noise_sigma is not None
    except ParameterError:
        # Its thresholds differ by group, and so does its sigma.
        return False


def has_width(mechanism: Mechanism) -> bool:
    """Return whether it is fat-tailed noise with a scale."""
    return mechanism.offers("with_scale_times") and mechanism.coarseness is None


def share_power(mechanism: Mechanism) -> float | None:
    """Return the power of a share by whose inverse noise grows.

    Noise of a share w of the loss is the same noise, larger by w to minus this power; None if it changes its shape.
    """
    shapes = {getattr(each, "shape", None) if has_width(each) else None for each in mechanism.inside()}
    shape = shapes.pop() if len(shapes) == 1 else None
    return 0.5 if has_amount(mechanism) else None if shape is None else float(1 / shape)


def with_width(mechanism: Mechanism, width: float) -> Mechanism:
    """The same fat-tailed noise, sized or not, with another scale, rounded down."""
    factor = decimal(width) / mechanism.inside()[0].width
    if mechanism.is_sized:
        return cast(Sized, mechanism).each(lambda inner: inner.with_scale_times(factor))
    return mechanism.with_scale_times(factor)


def can_be_scaled(mechanism: Mechanism) -> bool:
    """Return whether scaled noise's cost needs no new policy."""
    return has_amount(mechanism) or has_width(mechanism)


def noise_size(mechanism: Mechanism) -> float:
    """Return the noise size, comparable across scales."""
    return float(mechanism.width) if has_width(mechanism) else amount(mechanism)


def with_noise_size(mechanism: Mechanism, size: float) -> Mechanism:
    """The same mechanism with other noise, rounded down."""
    if has_width(mechanism):
        return mechanism.with_scale_times(decimal(size) / mechanism.width)
    return mechanism.with_amount(decimal(size))


def amount(mechanism: Mechanism) -> float:
    """Return the sigma of the noise.

    In the units of the statistic, on the transformed scale, or as a share of the size.
    """
    first = mechanism.inside()[0]
    scale = first.noise_scale
    return float(first.noise_sigma if scale is None else scale)  # type: ignore[arg-type]


# The families that a recommendation chooses from, and the best offset of a transform.


SHORT = Context(prec=2)
OFFSETS = 14
"""The most offsets that are tried for one transform and one table."""
CLOSE = 0.02
"""Offsets have two digits: their logarithm need not be known any closer."""


CLAMPED = "clamped at "
CLAMPS = tuple(factor * 10**power for power in range(1, 6) for factor in (1, 3))
"""The usual bounds at which contributions are cut, from 10 to 300,000: public, whatever the records are."""


@own_argument_errors
def families(*, offset: Number = 100, clamps: Sequence[Number] | bool = ()) -> dict[str, Any]:
    """One mechanism of each family, before its noise is set.

    Args:
        offset: The offset of the transforms, in the measure's units.
        clamps: Bounds at which contributions are cut, the zCDP baseline of [S] 6.2, or True for the usual ones, from 10 to
            300,000: a candidate for each, of which ``recommend`` ranks the best one next to the others. A bound that cuts too
            much meets no goal.

    Returns:
        The families by name, those of installed packages among them.
    """
    bounds = (CLAMPS if clamps else ()) if isinstance(clamps, bool) else clamps
    if not isinstance(bounds, Sequence) or isinstance(bounds, str):
        raise ParameterError(parameter="clamps", problem="must be a list of bounds, or True for the usual ones")
    cut = {f"{CLAMPED}{prose_text(positive(to, parameter='clamps'))}": Clamped(to=to, rho=1) for to in bounds}
    return planning_families(offset=offset) | cut


def pure_families() -> dict[str, Any]:
    """Return the families whose losses are pure, for budgets in pure epsilon, and Laplace noise itself."""
    laplace = {"Laplace": GeneralizedGaussian(shape=1, scale=1)}
    return laplace | {
        name: each for name, each in families().items() if each.policy(Measure("x")).pure_problem() is None
    }


def best_offset(cost: Callable[[Fraction], float], *, total: float, step: Number) -> Fraction:
    """Return the two-digit offset at which a cost is smallest.

    Between a step and ten times a total (Brent, on logarithms).
    """
    low, high = math.log(float(Fraction(step))), math.log(max(10 * total, 10 * float(Fraction(step))))
    known = cache(cost)
    found = minimize_scalar(
        lambda log: known(two_digits(math.exp(log))),
        bounds=(low, high),
        method="bounded",
        options={"maxiter": OFFSETS, "xatol": CLOSE},
    )
    return two_digits(math.exp(float(found.x)))


def two_digits(value: float) -> Fraction:
    return Fraction(SHORT.create_decimal(Decimal(value)))


# Planning with noise that follows public sizes: errors of cells by their bands, and the most noise that meets a goal
# (T-SIZE).


HALVINGS = 30
LEAST, MOST = 1e-5, 20.0
"""The errors, as shares of the size, between which the one that meets a goal is searched."""
FLOORS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2))
"""Floors that a recommendation tries, in parts of the smallest total that counts for a goal."""
USUAL_FLOOR = Fraction(100)
FAT_TAILED = GeneralizedGaussian(shape="0.5", scale="0.02")


def level_sizes(
    query: Query, level: Level, measure: str, schema: Schema, cells: int | None = None
) -> FloatArray | None:
    """Return the public sizes of the cells of one table of a query, in their order, or None if it has none.

    Published rests, which come last, are in the lowest band.
    """
    names = (measure, f"sum_{measure}", COUNT if measure == COUNT else None)
    keys = query_with_levels(query, schema).sized_keys(level, names)
    listed = None if keys is None else sizes_at(keys, level.groups, schema, names)
    return listed if listed is None or cells is None else np.append(listed, np.zeros(cells - len(listed)))


def by_band(mechanism: Mechanism, sizes: FloatArray | None) -> Iterator[tuple[Any, Any]]:
    """Yield the mechanism of each band with its cells."""
    if not mechanism.is_sized:
        yield mechanism, slice(None)
        return
    if sizes is None:
        raise ParameterError(
            parameter="mechanism",
            problem="is sized, but the keys have no sizes",
            advice="Use Keys.of(frame, size=...).",
        )
    edges = mechanism.edges(float(sizes.max(initial=0.0)))
    band = np.maximum(np.searchsorted([float_upper(edge) for edge in edges], sizes, side="right") - 1, 0)
    for number, edge in enumerate(edges):
        rows = np.flatnonzero(band == number)
        if rows.size:
            yield mechanism.at_size(edge), rows


def with_error(mechanism: Sized, error: float, *, confidence: float, step: Number) -> Sized:
    """Return the noisiest mechanism within an error.

    At most ``error`` times the least size of a band.
    """

    size = mechanism.floor

    def at(inner: Mechanism) -> Mechanism:
        reach = error * float(size)
        found = inner.resized(size).most_noise(float(size), reach, confidence=confidence, step=step)
        assert found is not None
        return found.resized(1 / size)

    return mechanism.each(at)


def most_sized(
    mechanism: Sized, met: Callable[[Sized], Any], *, confidence: float, step: Number, may_miss: int
) -> tuple[Sized, Any]:
    """Return the most noise for which enough cells meet a goal, and which of them do."""

    def at(error: float) -> tuple[Sized, Any]:
        found = with_error(mechanism, error, confidence=confidence, step=step)
        return found, met(found)

    def enough(error: float) -> bool:
        return int((~at(error)[1]).sum()) <= may_miss

    if not enough(LEAST):
        raise ParameterError(parameter="goals", problem="cannot be met at these sizes, however small the noise")
    return at(largest_allowed(enough, LEAST, MOST, rounded=float, rounds=HALVINGS, close=1.002))


def sized_families(at_least: Fraction) -> Mapping[str, Sized]:
    """Return sized noise at several floors as candidates."""
    return {
        name: each
        for part in FLOORS
        for name, each in _at_floor(two_digits(float((at_least or USUAL_FLOOR) * part))).items()
    }


def _at_floor(floor: Fraction) -> dict[str, Sized]:
    return sized_family(f"sized, floor {formula_text(floor)}", floor, low=FAT_TAILED)


def sized_family(name: str, floor: Fraction, *, low: Any | None) -> dict[str, Sized]:
    """Return sized noise at one floor as candidates."""
    share = Gaussian(sigma="0.05")
    found = {name: Sized(share, floor=floor)}
    return found if low is None else found | {f"{name}, fat-tailed below": Sized(share, floor=floor, low=low)}


# The candidates for the tables of a plan: its own mechanisms, and the usual ones for its measures.


USUAL_OFFSET = 100
OWN = "as in the plan"


def usual_families(plan: Plan, offset: Any = None) -> dict[str, Any]:
    """Return the usual candidates for a plan."""
    if not isinstance(offset, Mapping):
        return families(offset=offset or USUAL_OFFSET)
    names = {each.planned_as for query in plan.queries for each in query.draws() if each.planned_as}
    by_measure = {name: families(offset=offset.get(name, USUAL_OFFSET)) for name in sorted(names)}
    return {kind: {name: own[kind] for name, own in by_measure.items()} for kind in families()}


def own_family(plan: Plan, goals: Sequence[Goal]) -> dict[str, Any]:
    """The plan's own mechanisms as one family, whose noise is set again."""
    wanted = {goal.statistic for goal in goals}
    found = {each.alias: each.mechanism for query in plan.queries for each in query.draws() if each.alias in wanted}
    return {OWN: found}
