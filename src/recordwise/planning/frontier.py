"""The frontier between what records lose and how many cells are reliable.

Plans on the frontier are those that a recommendation finds for several accuracy goals, each with more or less noise: the loss is in
proportion to the square of the inverse of the noise, so that one evaluation of each plan gives its whole curve.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number
from recordwise.exact.text import share_text
from recordwise.plan.cost import check_policy
from recordwise.plan.publication import StatusRules
from recordwise.plan.query import Query
from recordwise.plan.schema import NO_LOOK
from recordwise.planning.losses import BALANCED, QUANTILES, RANK_WORDS, Left, hardly_protected, left_of, proof
from recordwise.planning.new_plan import PlanChange, carried_plan, changes
from recordwise.planning.result import Result, Rows, loss_figure
from recordwise.planning.scope import TODAY, PlanLike, read_origin, scope_of, viewed
from recordwise.planning.search.fits import NEAR, Search, public_split, read_fits, reads_complete
from recordwise.planning.search.reliable import FACTORS, FrontierPoint, Plans, Reliability, Scalable, class_names
from recordwise.policy.policy import Policy
from recordwise.progress import reported, steps, tracked
from recordwise.session import Session

# The frontier, with today's plan next to it.


POINTS = 13
DIFFERENT = 0.1


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Frontier(Result):
    """Plans from little loss to much accuracy; confidential if the records are."""

    data: str
    rank_by: str
    status: str
    limit: float
    points: tuple[FrontierPoint, ...]
    today: FrontierPoint | None
    """The plan as it stands; None where the tables have no mechanisms yet."""
    others: tuple[str, ...] = ()
    """What the plan draws besides, whose loss is not in the numbers."""

    def classes(self) -> list[tuple[int, str]]:
        """The size classes that have cells, each with its place."""
        shown = self.points[0].reliable.by_class
        return [(place, name) for place, name in enumerate(class_names()) if not np.isnan(shown[place])]

    def rows(self) -> Rows:
        """Headers and rows of a table to show, today's plan last."""
        names = [name for _, name in self.classes()]
        headers = [
            "plan",
            "median loss",
            "p99 loss",
            "largest loss",
            self.status,
            *(f"{self.status}: {n}" for n in names),
        ]
        every = [*self.points, *([] if self.today is None else [self.today])]
        return headers, [self._row(each) for each in every]

    def _name(self, point: FrontierPoint) -> str:
        return f"{TODAY} with other noise" if point.name == TODAY and point is not self.today else point.name

    def _row(self, point: FrontierPoint) -> list[str]:
        by_class = [share_text(point.reliable.by_class[place], 1) for place, _ in self.classes()]
        return [
            self._name(point),
            *(loss_figure(point.loss(name)) for name in QUANTILES),
            share_text(point.reliable.share, 1),
            *by_class,
        ]

    def curve(self) -> tuple[FloatArray, FloatArray]:
        """Return losses at the rank and shares of reliable cells."""
        return (
            np.array([each.loss(self.rank_by) for each in self.points]),
            np.array([each.reliable.share for each in self.points]),
        )

    def at_loss(self, loss: float) -> float:
        """Return the share of reliable cells at a loss.

        Args:
            loss: A loss of the rank that the frontier shows.

        Returns:
            The share.
        """
        losses, shares = self.curve()
        return float(np.interp(np.log(loss), np.log(losses), shares))

    def at_share(self, share: float) -> float:
        """The loss at which this many cells are reliable.

        Args:
            share: A share of the cells.

        Returns:
            The loss, between the points; infinite if none reaches it.
        """
        losses, shares = self.curve()
        best = np.maximum.accumulate(shares)
        return float("inf") if share > best[-1] else float(np.exp(np.interp(share, best, np.log(losses))))

    def summary(self) -> str:
        """Where today's plan stands, in two sentences."""
        if self.today is None:
            return ""
        loss, share = self.today.loss(self.rank_by), self.today.reliable.share
        better, cheaper = self.at_loss(loss), self.at_share(share)
        return (
            f"Today {share_text(share, 1)} of the cells are {self.status} at a {RANK_WORDS[self.rank_by]} loss of "
            f"{loss_figure(loss)}. "
            f"At the same loss the frontier has {share_text(max(better, share), 1)}; the same share of cells costs "
            f"{loss_figure(min(cheaper, loss))} on it.{self._other_losses(loss)}{self._besides()}"
        )

    def _besides(self) -> str:
        """Say which statistics are not in the losses."""
        names = ", ".join(self.others)
        return f" The losses are those of what is examined; {names} cost more, whatever is chosen." if names else ""

    def _other_losses(self, loss: float) -> str:
        """Describe the losses at the other ranks."""
        losses, told = self.curve()[0], []
        for name in QUANTILES:
            own = np.array([each.loss(name) for each in self.points])
            there = float(np.exp(np.interp(np.log(loss), np.log(losses), np.log(own))))
            today = 0.0 if self.today is None else self.today.loss(name)
            if name != self.rank_by and abs(there / today - 1) > DIFFERENT:
                told.append(f"{RANK_WORDS[name]} loss is {loss_figure(there)} instead of {loss_figure(today)}")
        return f" At the same {RANK_WORDS[self.rank_by]} loss its {' and its '.join(told)}." if told else ""

    def _numbers(self) -> dict[str, Any]:
        return {
            "rank_by": self.rank_by,
            "status": {"name": self.status, "limit": self.limit},
            "points": [each.to_json() for each in self.points],
            "today": None if self.today is None else self.today.to_json(),
            "others": list(self.others),
            "words": self.summary(),
        }

    def _about(self) -> str:
        return f"of {len(self.points)} plans"

    def _title(self) -> str:
        return "Loss and accuracy"


@reported
def frontier(
    session: Session,
    query: PlanLike,
    *,
    tables: Sequence[str] = (),
    statistics: Sequence[str] = (),
    losses: Sequence[float] | None = None,
    rank_by: str = "median",
    rules: StatusRules | None = None,
    at_least: Number | Mapping[str, Number] = 0,
    candidates: Mapping[str, Any] | None = None,
    fitted: bool | None = None,
    complete: bool | None = None,
    data: str = "confidential",
) -> Frontier:
    """Return the most reliable cells for each loss, and today's plan.

    A status rule decides what is reliable. Losses are those of the selected statistics. Plans are made as by
    ``recommend``, for the reliability of half and of nine tenths of the cells, and each is tried with more and less
    noise. Costs no budget.

    Args:
        session: An open session; its records are read, and no budget is spent.
        query: The plan: a query, several, a ``Plan`` or a plan file that was loaded.
        tables: The selected tables, by name or by the number or name of their query; all unless given.
        statistics: The selected statistics, by published name or measure; all unless given.
        losses: The losses at which plans are shown; from a hundredth to a hundred times that of today's plan unless given.
        rank_by: Which loss to use: "median", "p99" or "maximum" of the records, or "balanced", the geometric mean of the first
            two.
        rules: The status rules; the first status is the one that is counted.
        at_least: Cells with a smaller total do not count: one number, or one for each measure or published name.
        candidates: The families to choose from; the usual ones unless given.
        fitted: Whether to use the best linear fit of all levels, where noise is Gaussian; unless given, where keys are complete.
        complete: Whether the keys list every cell, so that levels can be fitted without published rests; unless given, as the basic
            tables of a plan file say.
        data: What the records are: "public", "synthetic", "past" or "confidential". Unless they are declared public or synthetic,
            the ledger notes a look first.

    Returns:
        The plans of the frontier, each with its losses and its reliable cells by size, and today's plan.
    """
    fitted, complete = read_fits(query, fitted, complete)
    origin, view = read_origin(data), viewed(session, data, "plan frontier", query)
    scope = scope_of(query, view.schema, tables=tables, statistics=statistics)
    step = steps(3)
    step("making plans")
    plans = Plans(
        session,
        view,
        scope,
        Search(candidates=candidates, rank_by=rank_by, fitted=fitted, complete=complete),
        rules=rules,
        at_least=at_least,
        alone=True,
    )
    now = plans.loss(plans.plans[0], 1.0, rank_by)
    shown = np.geomspace(now / 100, now * 100, POINTS) if losses is None else np.sort(np.asarray(losses, float))
    chosen = []
    step("the best plan at each loss")
    for loss in tracked(shown.tolist(), "the best plan at each loss"):
        found = plans.best({each: plans.factor_within(each, {rank_by: float(loss)}) for each in plans.plans})
        if found is not None:
            chosen.append(found)
    if not chosen:
        raise ParameterError(parameter="losses", problem="are below what the plan's other statistics cost")
    step("measuring losses")
    today = (plans.plans[0], 1.0, plans.reliable(plans.plans[0], 1.0))
    *points, last = plans.points([*chosen, today])
    others = dict.fromkeys(each.alias for query in plans.plans[0].others() for each in query.statistics)
    return Frontier(
        data=origin,
        rank_by=rank_by,
        status=plans.status,
        limit=plans.limit,
        points=tuple(points),
        today=last,
        others=tuple(others),
    )


# From losses to accuracy: the plan with the most reliable cells whose losses stay within limits, and its plan file.


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ReliablePlan(FrontierPoint, Result):
    """The plan with the most reliable cells within some losses.

    CONFIDENTIAL if the records are.
    """

    before: tuple[Query, ...]
    """The plan that was examined."""
    data: str
    status: str
    left: Left
    within_budget: bool = False
    """Whether what is left of the plan's own budget was one of the limits."""

    def summary(self) -> str:
        """Its losses and its reliable cells, in one sentence."""
        losses = ", ".join(f"{name} {loss_figure(self.loss(name))}" for name in QUANTILES)
        share = share_text(self.reliable.share, 1)
        return f"{self.name}: {share} of the cells are {self.status}, at losses of the records of {losses}."

    @property
    def needs_budget(self) -> bool:
        """Whether a plan file like the examined one needs a budget."""
        return self.left.needs_budget

    def notes(self) -> tuple[str, ...]:
        """What is set aside, and whom the losses hardly protect."""
        told = hardly_protected(self.losses)
        aside = self.left.reserve_words() if self.within_budget else []
        return (*aside, *(() if told is None else (told,)))

    def changes(self) -> tuple[PlanChange, ...]:
        """Return the differences from the examined plan by statistic and table."""
        return changes(self.before, self.queries)

    def rows(self) -> Rows:
        """Return headers and rows of reliable shares by cell size."""
        known = [(name, each) for name, each in zip(class_names(), self.reliable.by_class) if each == each]
        return ["cells of", self.status], [[name, share_text(each, 1)] for name, each in known]

    def save_like(
        self,
        like: str | Path,
        path: str | Path,
        *,
        tuning_reason: str | None = None,
        parameters: Mapping[str, str | int] | None = None,
    ) -> Path:
        """Write the plan file that was examined with the mechanisms found, and everything else as it is; see
        ``Recommendation.save_like``.

        Args:
            like: The plan to continue, which ``recommend_within`` was given.
            path: The file to write.
            tuning_reason: The reason for a release tuned on confidential records.
            parameters: The values with which ``like`` was read; the new plan has the same parameters.

        Returns:
            The file.
        """
        return carried_plan(
            like,
            path,
            self.before,
            self.queries,
            tuned_on=self.data,
            tuning_reason=tuning_reason,
            # The losses of confidential records must not be in a file that may be shared.
            comment=self.summary() if self.data in NO_LOOK else self.privacy_label,
            parameters=parameters,
            needs_budget=self.needs_budget,
            reserve=self.left.reserve,
        ).save(path)

    to_json = Result.to_json

    def _numbers(self) -> dict[str, Any]:
        return FrontierPoint.to_json(self) | {
            "status": self.status,
            "words": self.summary(),
            "notes": list(self.notes()),
            "changes": [each.to_json() for each in self.changes()],
        }

    def _about(self) -> str:
        return self.name

    def _title(self) -> str:
        return "The most reliable plan"


@reported
def recommend_within(
    session: Session,
    query: PlanLike,
    *,
    median: float | None = None,
    p99: float | None = None,
    maximum: float | None = None,
    at: Sequence[tuple[Mapping[str, Any], float]] = (),
    budget: Policy | bool | None = None,
    tables: Sequence[str] = (),
    statistics: Sequence[str] = (),
    rules: StatusRules | None = None,
    at_least: Number | Mapping[str, Number] = 0,
    candidates: Mapping[str, Any] | None = None,
    fitted: bool | None = None,
    complete: bool | None = None,
    data: str = "confidential",
) -> ReliablePlan:
    """The plan with the most reliable cells whose losses stay within limits: the other direction of ``recommend``.

    Args:
        session: An open session; its records are read, and no budget is spent.
        query: The plan: a query, several, a ``Plan`` or a plan file that was loaded.
        median: The largest median loss of the records.
        p99: The largest 99th percentile.
        maximum: The largest loss of any record of the table.
        at: Records with the largest loss that each may have, such as ``({"emp": 100, "payann": 4000}, 1)``.
        budget: A policy that must cover the plan for every possible record; True: what is left of the plan's budget.
        tables: The selected tables, by name or by the number or name of their query; all unless given.
        statistics: The selected statistics, by published name or measure; all unless given.
        rules: The status rules; the first status is the one that is counted.
        at_least: Cells with a smaller total do not count: one number, or one for each measure or published name.
        candidates: The families to choose from; the usual ones unless given.
        fitted: Whether to use the best linear fit of all levels, where noise is Gaussian; unless given, where keys are complete.
        complete: Whether the keys list every cell, so that levels can be fitted without published rests; unless given, as the basic
            tables of a plan file say.
        data: What the records are: "public", "synthetic", "past" or "confidential". Unless they are declared public or synthetic,
            the ledger notes a look first.

    Returns:
        The plan, with its losses, its reliable cells by size, and what changes.

    Raises:
        ParameterError: No limit is stated, or none of the families can keep all of them.
    """
    limits = {"median": median, "p99": p99, "maximum": maximum}
    wanted = {name: float(each) for name, each in limits.items() if each is not None}
    if not wanted and not at and budget in (None, False):
        raise ParameterError(parameter="median, p99, maximum, at, budget", problem="must state at least one limit")
    view = viewed(session, data, "plan frontier", query)
    scope = scope_of(query, session.schema, tables=tables, statistics=statistics)
    fitted, complete = read_fits(query, fitted, complete)
    left = left_of(session, query)
    covered = _covered(session, left, budget)
    step = steps(3)
    step("making plans")
    rank_by = next(iter(wanted)) if len(wanted) == 1 else BALANCED
    search = Search(candidates=candidates, rank_by=rank_by, fitted=fitted, complete=complete)
    plans = Plans(session, view, scope, search, rules=rules, at_least=at_least)
    limits_kept = _Limits(plans=plans, wanted=wanted, at=at, covered=covered)
    step("as much noise as the limits need")
    tried = tracked(plans.plans, lambda each: f"how much noise {each.name} needs")
    factors = {each: limits_kept.factor(each) for each in tried}
    step("measuring losses")
    point, found = None, plans.best(factors)
    while found is not None and point is None:
        point = plans.exactly(found, wanted)
        if point is None:
            factors[found[0]] = None
            found = plans.best(factors)
    if point is None or found is None:
        raise ParameterError(
            parameter="losses", problem="cannot be kept, whatever the noise", advice="Allow more, or publish less."
        )
    point = limits_kept.with_public_shares(found, point, complete=reads_complete(query, complete))
    return ReliablePlan(
        name=point.name,
        losses=point.losses,
        reliable=point.reliable,
        queries=point.queries,
        before=scope.plan.queries,
        data=data,
        status=plans.status,
        left=left,
        within_budget=budget is True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    """The limits that a plan must keep."""

    plans: Plans
    wanted: Mapping[str, float]
    at: Sequence[tuple[Mapping[str, Any], float]]
    covered: Callable[[Policy], bool] | None

    def factor(self, plan: Scalable) -> float | None:
        """Return the largest factor of a plan's loss that keeps them all."""
        within = [self.plans.factor_within(plan, self.wanted)] if self.wanted else []
        within += [self.plans.factor_at_record(plan, record, float(limit)) for record, limit in self.at]
        known = [factor for factor in within if factor is not None]
        most = min(known, default=FACTORS[1]) if len(known) == len(within) else None
        return self.plans.factor_covered(plan, most, self.covered)

    def with_public_shares(
        self, found: tuple[Scalable, float, Reliability], point: FrontierPoint, *, complete: bool
    ) -> FrontierPoint:
        """Return the point with ``share = "best"`` if that costs hardly more and reading the plan finds the same shares."""
        plan, factor, _ = found
        made = replace(plan, queries=point.queries)
        public = self.plans.with_public_shares(made, plan.scope.plan.queries, complete=complete)
        most = None if public is None else self.factor(public)
        if public is None or most is None or public.at(most) is None or plan.at(factor / NEAR) is None:
            return point
        reliable = self.plans.reliable(public, most)
        if reliable.share < self.plans.reliable(plan, factor / NEAR).share:
            return point
        kept = self.plans.exactly((public, most, reliable), self.wanted)
        if kept is None:
            return point
        again = [
            query.best is None or public_split(plan.scope.plan, kept.queries, number, replace(query.best, found=None))
            for number, query in enumerate(kept.queries)
        ]
        same = all(each is True or each == query for each, query in zip(again, kept.queries))
        return kept if same else point


def _covered(session: Session, left: Left, budget: Policy | bool | None) -> Callable[[Policy], bool] | None:
    """Return whether a budget covers a policy, or None without budget.

    For every record that the schema allows, as the ledger proves it.
    """
    if budget is None or budget is False:
        return None
    if isinstance(budget, Policy):
        given = check_policy(budget, session.schema)
        return lambda policy: bool(proof(given, policy, session.schema))
    if budget is not True:
        raise ParameterError(parameter="budget", problem="must be a policy, or True for what is left of the plan's own")
    if left.budget is None:
        raise ParameterError(parameter="budget", problem="is to be kept, but the plan has none")
    return lambda policy: left.refusal(policy) is None
