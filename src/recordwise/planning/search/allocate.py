"""A split of one budget that minimizes the worst relative error.

Over several tables and levels; errors are relative to goals. Every table's error falls as its share grows,
so at the best split all tables miss or beat their goals by the same factor (T-EVEN). It is computed by
Newton's method on logarithms: errors are nearly powers of shares, and the exponents are estimated along the
way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import brentq

from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.text import share_text
from recordwise.mechanisms.base import Mechanism
from recordwise.plan.query import Query
from recordwise.planning.losses import LossPair, policy_losses
from recordwise.planning.result import Result, Rows, loss_figure
from recordwise.planning.scope import (
    PlanLike,
    describes_plan,
    read_origin,
    viewed,
    with_statistic,
)
from recordwise.planning.search.goals import (
    Goal,
    GoalTable,
    goal_tables,
    mechanism_for,
    read_goals,
    tables_of,
    targets_in,
)
from recordwise.planning.search.shares import (
    BUDGET,
    FittedRatios,
    RawRatios,
    best_split,
    exact_shares,
    fitted_shares,
    goal_levels,
    level_shares,
    with_shares,
)
from recordwise.policy.policy import Policy
from recordwise.progress import reported
from recordwise.session import Session
from recordwise.session.owner import OwnerView

MOST_IDLE = 8
"""After this many rounds without improvement the best split so far is used: errors that stop growing cannot be made equal."""
EVEN = 1e-3
"""Tables are even if their errors, relative to their goals, differ by at most this; a lattice has steps of that order."""
LONGEST_STEP = 1.0
"""The largest step in the logarithm of a share, before shares are rescaled to add up to 1."""
LEAST_EXPONENT, MOST_EXPONENT = 0.1, 4.0
ROUNDS = 3
"""How often the levels of a plan are split anew, at the errors of the split found before."""


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
    asked: tuple[Query, ...] = ()
    """The queries with their levels, where they are kept: those of a plan, or for fitted errors one for each goal."""

    @property
    def worst(self) -> float:
        """The largest error divided by its goal over all tables."""
        return max(each.ratio for each in self.shares)

    def queries(self) -> tuple[Query, ...]:
        """Return the queries to release, one for each table."""
        return self.asked or tuple(each.table.with_mechanism(each.mechanism) for each in self.shares)

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
        return f"over {len(self.shares)} tables"

    def _title(self) -> str:
        return "One budget over several tables"


@reported
def allocate(
    session: Session,
    budget: Any,
    goals: Goal | Sequence[Goal],
    *,
    fitted: bool = False,
    complete: bool = False,
    data: str = "confidential",
) -> Allocation:
    """Split a budget so that the worst relative error is smallest.

    Errors are relative to goals. ``budget`` is the mechanism that a single table would get alone, or a mapping
    from measures to such mechanisms; each table gets the mechanism at its share of the loss. Or it is a plan:
    then every statistic keeps its loss, and each query splits it again over its levels, in one way for all its
    statistics.

    Args:
        session: An open session; its records are read, and no budget is spent.
        budget: The mechanism a single table would get if it were alone, one for each measure, or a plan (a query, several, a
            ``Plan`` or a plan file) whose statistics the goals are about (``plan_goals``).
        goals: The goal of each table.
        fitted: Whether goals are about the best linear fit of all levels of a goal's query (``NAME_best``) instead of the noisy
            answers; for Gaussian noise, by an exact convex program (T-FITSHARES).
        complete: Whether the keys list every cell, so that levels can be fitted without published rests.
        data: What the records are: "public", "synthetic", "past" or "confidential". Unless they are declared public or synthetic,
            the ledger notes a look first.

    Returns:
        The shares, the error of each table, and the losses of the records.
    """
    planned = budget if describes_plan(budget) else None
    origin, wanted, view = read_origin(data), read_goals(goals), viewed(session, data, "plan recommend", planned)
    if planned is not None:
        return _within_plan(session, view, budget, wanted, origin, fitted=fitted, complete=complete)
    tables = tables_of(view, wanted, {BUDGET: budget})
    whole = [mechanism_for(budget, table.goal) for table in tables]
    if fitted:
        return _for_fits(session, view, wanted, tables, whole, origin, complete=complete)
    shares = exact_shares(_even_shares(tables, whole))
    parts = [mechanism.at_share(share) for mechanism, share in zip(whole, shares)]
    policy = session.policy_of(*(table.with_mechanism(part) for table, part in zip(tables, parts)))
    losses = policy_losses(view, {BUDGET: policy})[BUDGET]
    found = tuple(
        TableShare(table=table, share=share, mechanism=part, ratio=table.ratio(part, name=BUDGET))
        for table, share, part in zip(tables, shares, parts)
    )
    return Allocation(data=origin, shares=found, policy=policy, losses=losses)


def _within_plan(
    session: Session,
    view: OwnerView,
    plan: PlanLike,
    goals: Sequence[Goal],
    origin: str,
    *,
    fitted: bool,
    complete: bool,
) -> Allocation:
    """Split every query of a plan to improve its worst table."""
    scope, targets = targets_in(plan, goals, view.schema)
    tables = goal_tables(view, scope, targets, {BUDGET: lambda asked: asked.statistic.mechanism})
    queries, ratios = list(scope.plan.queries), dict[GoalTable, float]()
    for number, query in enumerate(queries):
        own = [each for each in tables if each.asked.query == number]
        if not own:
            continue
        use = FittedRatios if fitted and len(query.tables()) > 1 else RawRatios
        errors = use(view, own, complete=complete)
        for _ in range(ROUNDS):
            at = level_shares(queries[number])
            found = errors.at(queries[number])
            worst = errors.nearby(found, at)
            queries[number] = best_split(queries[number], worst)
        ratios |= dict(zip(own, errors.at(queries[number])))
    policy = session.policy_of(*queries)
    shares = tuple(_table_share(each, queries[each.asked.query], ratio) for each, ratio in ratios.items())
    return Allocation(
        data=origin,
        shares=shares,
        policy=policy,
        losses=policy_losses(view, {BUDGET: policy})[BUDGET],
        asked=tuple(queries),
    )


def _table_share(table: GoalTable, query: Query, ratio: float) -> TableShare:
    share = query.tables()[table.part.number].share
    mechanism = table.asked.statistic.mechanism.at_share(share)
    return TableShare(table=table, share=share, mechanism=mechanism, ratio=ratio)


def _for_fits(
    session: Session,
    view: OwnerView,
    goals: Sequence[Goal],
    tables: Sequence[GoalTable],
    whole: Sequence[Any],
    origin: str,
    *,
    complete: bool,
) -> Allocation:
    """Return the split that makes fitted errors smallest."""
    levels = goal_levels(view, goals, complete=complete)
    ends = np.cumsum([0, *(each.tree.tables for each in levels)])
    trees = [each.at(whole[start]) for each, start in zip(levels, ends)]
    split = fitted_shares(trees)
    shares = exact_shares(split.shares)
    asked = []
    for each, start, end in zip(levels, ends, ends[1:]):
        own = shares[start:end]
        part = whole[start].at_share(sum(own, Fraction(0)))
        asked.append(with_statistic(with_shares(each.goal.query, own), each.goal.measure, part))
    policy = session.policy_of(*asked)
    found = tuple(
        TableShare(table=table, share=share, mechanism=mechanism.at_share(share), ratio=ratio)
        for table, share, mechanism, ratio in zip(tables, shares, whole, split.ratios)
    )
    losses = policy_losses(view, {BUDGET: policy})[BUDGET]
    return Allocation(data=origin, shares=found, policy=policy, losses=losses, asked=tuple(asked))


def _even_shares(tables: Sequence[GoalTable], whole: Sequence[Any]) -> FloatArray:
    """Return shares that equalize errors relative to goals."""
    shares: FloatArray = np.full(len(tables), 1 / len(tables))
    exponents: FloatArray = np.full(len(tables), 0.5)
    best, before, idle = (np.inf, shares), None, 0
    while idle < MOST_IDLE:
        parts = [each.at_share(_fraction(share)) for each, share in zip(whole, shares)]
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

    def at(log_level: float) -> FloatArray:
        return np.asarray(shares * np.exp((np.log(ratios) - log_level) / exponents))

    low, high = float(np.log(ratios).min()) - 50, float(np.log(ratios).max()) + 50
    level = brentq(lambda each: float(np.log(at(each).sum())), low, high, xtol=1e-14)
    step = np.clip(np.log(at(level) / shares), -LONGEST_STEP, LONGEST_STEP)
    found = shares * np.exp(step)
    return np.asarray(found / found.sum())


def _fraction(share: float) -> Fraction:
    return Fraction(Decimal(repr(float(share)))) if share < 1 else Fraction(1)
