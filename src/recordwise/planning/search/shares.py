"""Which shares of a loss the tables of a plan get.

``best_split`` decides for the levels of one query, whatever should be small; ``fitted_split`` where fitted errors
alone count; ``allocation`` for all tables of a plan or of goals whose mechanisms are kept.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.text import share_text
from recordwise.mechanisms.base import Mechanism
from recordwise.plan.describe import group_json
from recordwise.plan.expressions import Choice
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.planning.losses import LossPair, policy_losses
from recordwise.planning.result import Result, Rows, loss_figure
from recordwise.planning.scope import PlanLike, PlanTotals, level_shares, plan_totals, with_statistic
from recordwise.planning.search.convex import LEAST_SHARE, LevelTree, convex_shares, fitted_shares, split_at
from recordwise.planning.search.goals import (
    Goal,
    GoalTable,
    by_band,
    counted_cells,
    goal_scope,
    goal_tables,
    level_sizes,
    mechanism_for,
    tables_of,
    targets_in,
)
from recordwise.policy.policy import Policy
from recordwise.release.nesting import finest_of
from recordwise.release.published import CodeLists, read_groups
from recordwise.release.tables import ReleasedTable
from recordwise.session import Session
from recordwise.session.owner import OwnerView
from recordwise.session.shares import tree_of_tables, with_axis_shares

UNITS = 10**6
"""Shares have six decimals."""
ROUNDS = 3
"""How often the search starts again from the best found: a simplex can collapse at a kink."""
LEAST_LOGARITHM = -12.0
BUDGET = "budget"
"""The name of the mechanism that is split over tables."""


def best_split(query: Query, cost: Callable[[FloatArray], float], *, starts: Sequence[FloatArray] = ()) -> Query:
    """Return the query with the cheapest split found.

    The cost is a function of the shares of its tables. Shares are first a product over the axes of the query, so that
    a start is the split along each axis that comes closest to it; where axes cross, each table then gets its own, from
    the best product on. The query's present split is always among the starts: the result is never worse.
    """
    lengths = [len(axis) for axis in query.axes]
    if max(lengths, default=1) == 1:
        return query
    best = _searched(cost, lengths, [_logits(each, lengths) for each in (level_shares(query), *starts)])
    rounded = with_axis_shares(query, [exact_shares(each) for each in _axes(best, lengths)])
    if crosses(query):
        count = [math.prod(lengths)]
        free = _searched(cost, count, [np.log(level_shares(rounded)), np.log(level_shares(query))])
        own = query.with_shares(*exact_shares(_axis_levels(free, count)))
        rounded = min(own, rounded, key=lambda each: cost(level_shares(each)))
    return rounded if cost(level_shares(rounded)) < cost(level_shares(query)) * (1 - 1e-9) else query


def crosses(query: Query) -> bool:
    """Return whether levels of several codes cross, so that tables may have shares of their own."""
    return sum(len(axis) > 1 for axis in query.axes) > 1


def _searched(
    cost: Callable[[FloatArray], float], lengths: Sequence[int], candidates: Sequence[FloatArray]
) -> FloatArray:
    """Return the logarithms of shares, a product over some lengths, with the least cost found."""
    from scipy.optimize import minimize

    def value(logits: FloatArray) -> float:
        return float(np.log(cost(_axis_levels(logits, lengths))))

    best = min(candidates, key=value)
    for _ in range(ROUNDS):
        found = minimize(
            value, best, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-7, "maxfev": 150 * len(best)}
        )
        if found.fun >= value(best) - 1e-6:
            break
        best = np.asarray(found.x)
    return best


def _axes(logits: FloatArray, lengths: Sequence[int]) -> list[FloatArray]:
    """The shares along each axis."""
    parts = np.split(logits, np.cumsum(lengths)[:-1])
    raised = [np.exp(np.maximum(each - each.max(), LEAST_LOGARITHM)) for each in parts]
    return [each / each.sum() for each in raised]


def _axis_levels(logits: FloatArray, lengths: Sequence[int]) -> FloatArray:
    """Return the shares of the tables."""
    return reduce(lambda one, other: np.outer(one, other).ravel(), _axes(logits, lengths))


def _logits(shares: FloatArray, lengths: Sequence[int]) -> FloatArray:
    """Logarithms of the sums of some shares along each axis."""
    grid = np.asarray(shares).reshape(lengths)
    others = [tuple(at for at in range(len(lengths)) if at != axis) for axis in range(len(lengths))]
    return np.concatenate([np.log(np.maximum(grid.sum(axis=each), 1e-9)) for each in others])


def exact_shares(shares: FloatArray) -> list[Fraction]:
    """Round shares to six decimals that add up to exactly 1.

    All are rounded up but the largest, which pays for it: a small share would lose much by a millionth.
    """
    parts = [max(Fraction(math.ceil(share * UNITS - 1e-6), UNITS), Fraction(1, UNITS)) for share in shares.tolist()]
    parts[int(np.argmax(shares))] += 1 - sum(parts)
    return parts


# The levels of a goal as one tree of cells, for goals about fitted errors, and the query that releases them with
# given shares.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GoalLevels:
    """The tree of a goal's levels, at a variance of 1.

    CONFIDENTIAL if the records are.
    """

    goal: Goal
    tree: LevelTree
    sizes: FloatArray | None
    """The public sizes of the cells, if the keys have any; 0 for published rests."""

    def at(self, mechanism: Mechanism) -> LevelTree:
        """Return the tree under a Gaussian mechanism, sized or not."""
        variance = np.zeros(len(self.tree.level))
        for each, rows in by_band(mechanism, self.sizes):
            variance[rows] = float(checked_sigma(each)) ** 2
        return replace(self.tree, variance=variance)

    def under(self, mechanism: Mechanism, shares: Sequence[Fraction], step: Fraction) -> LevelTree:
        """Return the tree under additive noise of any law, each level at its own share of the loss.

        Args:
            mechanism: The mechanism, sized or not.
            shares: The share of each level, exactly as in the query.
            step: The step of the data.

        Returns:
            The tree, whose levels then have a share of 1 each.
        """
        variance = np.zeros(len(self.tree.level))
        for number, share in enumerate(shares):
            rows = np.flatnonzero(self.tree.level == number)
            sizes = None if self.sizes is None else self.sizes[rows]
            for each, some in by_band(mechanism.at_share(share), sizes):
                variance[rows[some]] = float(each.variance_of(np.zeros(1), step=step)[0])
        return replace(self.tree, variance=variance)


def checked_sigma(mechanism: Mechanism) -> Fraction:
    """Return the sigma of a mechanism, or raise if not Gaussian."""
    sigma = None if mechanism.to is not None else mechanism.noise_sigma
    if sigma is None:
        raise ParameterError(
            parameter="fitted",
            problem=f"needs Gaussian noise, and {type(mechanism).__name__} has another law or clamps",
            advice="Use Gaussian or UnitSplit, or leave fitted out.",
        )
    return sigma


def can_be_fitted(mechanism: Mechanism) -> bool:
    """Whether shares can be chosen for the fitted errors of a mechanism."""
    if mechanism.group_numbers is not None:
        return False
    try:
        for each in mechanism.inside():
            checked_sigma(each)
    except ParameterError:
        return False
    return True


def goal_levels(view: OwnerView, goals: Sequence[Goal], *, complete: bool) -> list[GoalLevels]:
    """Return the trees of all goals."""
    for goal in goals:
        _check(goal, view.schema, complete=complete)
    scope, _ = goal_scope(goals, view.schema, full=True)
    found = plan_totals(view, scope, {})
    return [
        _levels(view, goal, [each for each in found if each.asked.query == number], complete=complete)
        for number, goal in enumerate(goals)
    ]


def _check(goal: Goal, schema: Schema, *, complete: bool) -> None:
    shapes = [read_groups(group_json(group, schema) for group in each.groups) for each in goal.query.tables()]
    listed = any(group.hierarchy for shape in shapes for group in shape)
    if len(shapes) > 1 and goal.query.all_other is None and not complete and not listed:
        raise ParameterError(parameter="fitted", problem=OPEN, advice=CLOSE)
    if finest_of(shapes) is None:
        names = ", ".join(" x ".join(each.names()) or "the grand total" for each in goal.query.tables())
        raise ParameterError(parameter="fitted", problem=f"needs a table in which all others are nested: {names}")


OPEN = "needs complete levels: below keys that may miss cells a fit changes nothing"
NO_ROOM = 1e-6
"""What is left, in steps, where cells may miss the goal that cannot be met."""
CLOSE = "Give the query all_other='publish', or say complete=True if the keys list every cell."


def _levels(view: OwnerView, goal: Goal, found: Sequence[PlanTotals], *, complete: bool) -> GoalLevels:
    schema = view.schema
    names = [str(each.number) for each in found]
    by = {
        name: read_groups(group_json(group, schema) for group in each.level.groups) for name, each in zip(names, found)
    }
    tables = [
        ReleasedTable(name=name, keys=tuple(each.cells.column_names), variables=(), data=_with_a_column(each))
        for name, each in zip(names, found)
    ]
    known = complete or goal.query.all_other is not None
    tree, order, closed, _ = tree_of_tables(
        tables, by, CodeLists.read(each.to_json() for each in schema.hierarchies), known
    )
    if not closed:
        raise ParameterError(parameter="fitted", problem=OPEN, advice=CLOSE)
    z = NormalDist().inv_cdf((1 + goal.confidence) / 2)
    level, reach, sizes, may_miss = [], [], [], [0] * len(found)
    for n in order:
        total = found[n].total
        counted = counted_cells(view, goal, found[n]) & (n in goal.levels)
        may_miss[n] = int((1 - goal.share) * int(counted.sum()))
        room = _room(goal, found[n], counted, may_miss[n])
        level.append(np.full(len(total), n))
        sizes.append(level_sizes(goal.query, found[n].level, goal.measure, schema, len(total)))
        reach.append(np.where(counted, room / z, np.inf))
    return GoalLevels(
        goal=goal,
        tree=LevelTree(
            tree=tree,
            level=np.concatenate(level),
            variance=np.ones(sum(map(len, level))),
            reach=np.concatenate(reach),
            may_miss=tuple(may_miss),
        ),
        sizes=None
        if any(each is None for each in sizes)
        else np.concatenate([each for each in sizes if each is not None]),
    )


def _room(goal: Goal, part: PlanTotals, counted: Any, may_miss: int) -> FloatArray:
    """Return what the goal leaves for normal noise in each cell: less half a lattice step (T-HALFSTEP).

    The largest weight of an answer in a fit is taken as 1.
    """
    room = float(goal.within) * part.total - float(part.step) / 2
    if int(np.sum(counted & (room <= 0))) > may_miss:
        raise ParameterError(
            parameter="fitted",
            problem="asks for errors of less than half a step of the measure",
            advice="Raise at_least or within, or lower share.",
        )
    return np.maximum(room, NO_ROOM * float(part.step))


def _with_a_column(part: PlanTotals) -> pa.Table:
    """Return the cells with their totals: a table without columns, as of a grand total, would have no rows."""
    return pa.table([*part.cells.columns, pa.array(part.total)], names=[*part.cells.column_names, "_total"])


def fitted_split(query: Query, tree: LevelTree) -> Query:
    """Return the query with the smallest fitted errors (T-FITSHARES).

    Where levels cross, each table has a share of its own.
    """
    return with_free_shares(query, fitted_shares([tree]).shares)


def with_free_shares(query: Query, shares: FloatArray) -> Query:
    """Return the query with these shares of its tables, rounded."""
    parts = exact_shares(shares)
    return query.with_shares(*parts) if crosses(query) else _with_shares(query, parts)


def _with_shares(query: Query, shares: Sequence[Fraction]) -> Query:
    """The query with its loss split over its levels in these proportions."""
    whole = sum(shares, Fraction(0))
    parts = iter(shares)
    axes = [
        tuple(Choice(choice.group, next(parts) / whole if len(axis) > 1 else Fraction(1)) for choice in axis)
        for axis in query.axes
    ]
    return replace(query, axes=tuple(axes))


# How far the tables of one query of a plan are from their goals, as a function of how its loss is split over its
# levels.


class LevelRatios(Protocol):
    """Error divided by goal in the deciding cell of each table."""

    def at(self, query: Query) -> list[float]:
        """At the split that the query has."""

    def best(self, query: Query) -> FloatArray:
        """Return the shares for which the largest ratio is smallest, by what is known at those of a query."""


class RawRatios:
    """Ratios of noisy answers, each depending on its table's share alone."""

    def __init__(self, view: OwnerView, tables: Sequence[GoalTable], *, complete: bool) -> None:
        self._tables = tables
        self._levels = np.array([each.part.number for each in tables])

    def at(self, query: Query, *, smooth: bool = False) -> list[float]:
        shares = [level.share for level in query.tables()]
        return [
            each.ratio(each.asked.statistic.mechanism, shares[each.part.number], name=BUDGET, smooth=smooth)
            for each in self._tables
        ]

    def best(self, query: Query) -> FloatArray:
        # Errors fall with the root of the share: exactly for Gaussian noise, nearly for other noise.
        at, found = level_shares(query), np.array(self.at(query, smooth=True))
        need = np.full(len(at), LEAST_SHARE * found.max() ** 2)
        np.maximum.at(need, self._levels, found**2 * at[self._levels])
        return np.asarray(need / need.sum())


class FittedRatios:
    """Ratios of the best linear fit of all levels.

    They depend on all shares; for Gaussian noise, sized or not.
    """

    def __init__(self, view: OwnerView, tables: Sequence[GoalTable], *, complete: bool) -> None:
        self._tables = tables
        statistics = list({each.asked.place: each for each in tables}.values())
        levels = goal_levels(view, [each.goal for each in statistics], complete=complete)
        self._trees: dict[Any, Any] = {
            each.asked.place: tree.at(each.asked.statistic.mechanism) for each, tree in zip(statistics, levels)
        }

    def at(self, query: Query) -> list[float]:
        return self._ratios(level_shares(query))

    def _ratios(self, shares: FloatArray) -> list[float]:
        squared = {place: tree.squared_ratios(shares) for place, tree in self._trees.items()}
        found = []
        for each in self._tables:
            tree = self._trees[each.asked.place]
            own = squared[each.asked.place][(tree.level == each.part.number) & np.isfinite(tree.reach)]
            found.append(each.worst(np.sqrt(own)))
        return found

    def best(self, query: Query) -> FloatArray:
        return convex_shares(list(self._trees.values()), None, level_shares(query))


# Mechanisms that are kept: one budget over several tables, or each query of a plan over its levels. Every table's
# error falls as its share grows, so at the best split all tables miss or beat their goals by the same factor
# (T-EVEN). It is computed by Newton's method on logarithms: errors are nearly powers of shares, and the exponents are
# estimated along the way.


MOST_IDLE = 8
"""After this many rounds without improvement the best split so far is used: errors that stop growing cannot be made equal."""
EVEN = 1e-3
"""Tables are even if their errors, relative to their goals, differ by at most this; a lattice has steps of that order."""
LONGEST_STEP = 1.0
"""The largest step in the logarithm of a share, before shares are rescaled to add up to 1."""
LEAST_EXPONENT, MOST_EXPONENT = 0.1, 4.0
TIMES_SPLIT = 5
"""How often the levels of a plan are split again, at the errors of the split found before."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class TableShare:
    """One table's share and its comparison with the goal."""

    table: GoalTable
    share: Fraction
    mechanism: Mechanism
    """The budget's mechanism at this share."""
    ratio: float
    """Error divided by goal in the deciding cell: at most 1 if the goal is met."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Allocation(Result):
    """A budget split over tables; confidential if the records are."""

    data: str
    shares: tuple[TableShare, ...]
    policy: Policy
    losses: LossPair
    asked: tuple[Query, ...]
    """Those of the plan; without one, one for each table or, for fitted errors, for each goal."""
    equal: float | None = None
    """The variance that equal shares would give the deciding cell, divided by this one; None without a fit."""

    @property
    def worst(self) -> float:
        """The largest error divided by its goal over all tables."""
        return max(each.ratio for each in self.shares)

    def queries(self) -> tuple[Query, ...]:
        """Return the queries to release."""
        return self.asked

    def _numbers(self) -> dict[str, Any]:
        tables = [
            {
                "table": each.table.name,
                "share": float(each.share),
                "mechanism": each.mechanism.text(),
                "error_over_goal": each.ratio,
            }
            for each in self.shares
        ]
        return {"worst": self.worst, "tables": tables, "losses": self.losses.rho.to_json()}

    def rows(self) -> Rows:
        """Headers and rows of a table to show."""
        headers = ["table", "share", "error / goal", "mechanism"]
        return headers, [
            [
                each.table.name,
                f"{share_text(float(each.share), 2)}",
                loss_figure(each.ratio),
                each.mechanism.text(),
            ]
            for each in self.shares
        ]

    def _about(self) -> str:
        told = "" if self.equal is None else f"; equal shares would need {loss_figure(self.equal)} times the variance"
        return f"over {len(self.shares)} tables{told}"

    def _title(self) -> str:
        return "One budget over several tables"


def allocation(
    session: Session,
    view: OwnerView,
    goals: Sequence[Goal],
    plan: PlanLike | None,
    kept: Any,
    origin: str,
    *,
    fitted: bool,
    complete: bool,
) -> Allocation:
    """Return the split with the smallest worst error, relative to goals.

    Of each query of a plan; without one, of the mechanism that a single table would get alone, or one for each
    measure.
    """
    equal = None
    if plan is not None:
        shares, queries = _within_plan(view, goals, plan, fitted=fitted, complete=complete)
    elif fitted:
        shares, queries, equal = _over_goals(view, goals, kept, complete=complete)
    else:
        shares, queries = _over_tables(view, goals, kept)
    policy = session.policy_of(*queries)
    losses = policy_losses(view, {BUDGET: policy})[BUDGET]
    return Allocation(
        data=origin, shares=tuple(shares), policy=policy, losses=losses, asked=tuple(queries), equal=equal
    )


Allocated = tuple[list[TableShare], list[Query]]


def _over_tables(view: OwnerView, goals: Sequence[Goal], kept: Any) -> Allocated:
    """Split one loss over all tables, each a query."""
    tables = tables_of(view, goals, {BUDGET: kept})
    full = [mechanism_for(kept, table.goal) for table in tables]
    found = []
    for table, mechanism, share in zip(tables, full, exact_shares(_even_shares(tables, full))):
        own = mechanism.at_share(share)
        found.append(TableShare(table=table, share=share, mechanism=own, ratio=table.ratio(own, name=BUDGET)))
    return found, [each.table.with_mechanism(each.mechanism) for each in found]


def _over_goals(
    view: OwnerView, goals: Sequence[Goal], kept: Any, *, complete: bool
) -> tuple[list[TableShare], list[Query], float]:
    """Split one loss over all goals' levels for their fitted errors."""
    tables = tables_of(view, goals, {BUDGET: kept})
    full = [mechanism_for(kept, goal) for goal in goals]
    trees = [each.at(own) for each, own in zip(goal_levels(view, goals, complete=complete), full)]
    splits = [fitted_split(goal.query, tree) for goal, tree in zip(goals, trees)]
    # Squared errors are in inverse proportion to the share of a goal, so that at these shares all goals are missed alike.
    alone = [split_at([tree], level_shares(query), 0.0) for query, tree in zip(splits, trees)]
    need = np.array([each.worst**2 for each in alone])
    parts = exact_shares(need / need.sum())
    queries = [
        with_statistic(query, goal.measure, mechanism.at_share(part))
        for goal, mechanism, query, part in zip(goals, full, splits, parts)
    ]
    found = []
    for table in tables:
        at, level = table.asked.query, table.part.number
        share = parts[at] * splits[at].tables()[level].share
        ratio = alone[at].ratios[level] / float(parts[at]) ** 0.5
        found.append(TableShare(table=table, share=share, mechanism=full[at].at_share(share), ratio=ratio))
    count = len(tables)
    equal = split_at(trees, np.full(sum(each.tables for each in trees), 1 / count), 0.0).worst
    return found, queries, (equal / max(each.ratio for each in found)) ** 2


def _within_plan(view: OwnerView, goals: Sequence[Goal], plan: PlanLike, *, fitted: bool, complete: bool) -> Allocated:
    """Split the loss of each query of a plan over its levels."""
    scope, targets = targets_in(plan, goals, view.schema)
    tables = goal_tables(view, scope, targets, {BUDGET: lambda asked: asked.statistic.mechanism})
    queries, found = list(scope.plan.queries), list[TableShare]()
    for number in dict.fromkeys(each.asked.query for each in tables):
        own = [each for each in tables if each.asked.query == number]
        use = FittedRatios if fitted and len(queries[number].tables()) > 1 else RawRatios
        errors = use(view, own, complete=complete)
        queries[number] = _least_ratio(queries[number], errors)
        shares = [level.share for level in queries[number].tables()]
        for table, ratio in zip(own, errors.at(queries[number])):
            share = shares[table.part.number]
            mechanism = table.asked.statistic.mechanism.at_share(share)
            found.append(TableShare(table=table, share=share, mechanism=mechanism, ratio=ratio))
    return found, queries


def _least_ratio(query: Query, errors: LevelRatios) -> Query:
    """Return the query with the shares best for its worst table."""
    tried, least = query, max(errors.at(query))
    for _ in range(TIMES_SPLIT if len(query.tables()) > 1 else 0):
        last, tried = tried, with_free_shares(query, errors.best(tried))
        worst = max(errors.at(tried))
        if worst < least * (1 - 1e-9):
            query, least = tried, worst
        if tried == last:
            break
    return query


def _even_shares(tables: Sequence[GoalTable], full: Sequence[Any]) -> FloatArray:
    """Return shares that equalize errors relative to goals."""
    shares: FloatArray = np.full(len(tables), 1 / len(tables))
    exponents: FloatArray = np.full(len(tables), 0.5)
    best, before, idle = (np.inf, shares), None, 0
    while idle < MOST_IDLE:
        parts = [each.at_share(_fraction(share)) for each, share in zip(full, shares)]
        ratios = np.array([table.ratio(part, name=BUDGET, smooth=True) for table, part in zip(tables, parts)])
        idle = 0 if ratios.max() < best[0] * (1 - EVEN) else idle + 1
        best = min(best, (float(ratios.max()), shares), key=lambda each: each[0])
        if ratios.max() <= ratios.min() * (1 + EVEN):
            break
        if before is not None:
            exponents = _learnt(exponents, shares, ratios, *before)
        before = (shares, ratios)
        shares = _rescaled(shares, ratios, exponents)
    return best[1]


def _learnt(
    exponents: FloatArray, shares: FloatArray, ratios: FloatArray, last_shares: FloatArray, last_ratios: FloatArray
) -> FloatArray:
    moved = np.log(shares / last_shares)
    with np.errstate(divide="ignore", invalid="ignore"):
        secant = -np.log(ratios / last_ratios) / moved
    usable = (np.abs(moved) > 1e-9) & np.isfinite(secant)
    return np.where(usable, np.clip(secant, LEAST_EXPONENT, MOST_EXPONENT), exponents)


def _rescaled(shares: FloatArray, ratios: FloatArray, exponents: FloatArray) -> FloatArray:
    """Return the shares that would make all ratios equal."""

    from scipy.optimize import brentq

    def at(log_level: float) -> FloatArray:
        return np.asarray(shares * np.exp((np.log(ratios) - log_level) / exponents))

    low, high = float(np.log(ratios).min()) - 50, float(np.log(ratios).max()) + 50
    level = brentq(lambda each: float(np.log(at(each).sum())), low, high, xtol=1e-14)
    step = np.clip(np.log(at(level) / shares), -LONGEST_STEP, LONGEST_STEP)
    found = shares * np.exp(step)
    return np.asarray(found / found.sum())


def _fraction(share: float) -> Fraction:
    return Fraction(Decimal(repr(float(share)))) if share < 1 else Fraction(1)
