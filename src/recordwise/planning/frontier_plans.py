"""The plans that a frontier is made of, each with more or less noise: what a sample of the records loses, and which cells are
reliable."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordwise.errors import ParameterError, RangeError, RecordError
from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.query import Query
from recordwise.plan.status import StatusRules
from recordwise.planning.goals import goals_in
from recordwise.planning.level_trees import goal_levels
from recordwise.planning.losses import Losses, policy_losses
from recordwise.planning.plan_recommend import plan_fits
from recordwise.planning.ranks import loss_at, read_rank
from recordwise.planning.record_sample import RecordSample
from recordwise.planning.reliable import Reliability, Scalable, class_names, reliability
from recordwise.planning.scaled_losses import ScaledLosses, scaled_losses
from recordwise.planning.targets import Target, target_tables
from recordwise.planning.whole import TODAY, Scope
from recordwise.policy.policy import Policy
from recordwise.progress import steps, tell, tracked
from recordwise.session import Session
from recordwise.session.owner import OwnerView

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
    """One plan: what the records lose under it, and how many cells are reliable."""

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
        """The numbers, for JSON; null for sizes of which there is no cell."""
        by_class = zip(class_names(), self.reliable.by_class)
        return {
            "name": self.name,
            "losses": self.losses.to_json(),
            "share": self.reliable.share,
            "by_class": {name: None if np.isnan(each) else each for name, each in by_class},
            "by_table": self.reliable.by_table,
        }


class Plans:
    """CONFIDENTIAL if the records are: the plans that a frontier is made of, and today's, each with the loss of a sample."""

    def __init__(
        self,
        session: Session,
        view: OwnerView,
        scope: Scope,
        *,
        candidates: Mapping[str, Any] | None,
        rules: StatusRules,
        rank_by: str,
        at_least: Any,
        fitted: bool,
        complete: bool,
    ) -> None:
        self._session, self._view, self._rank_by = session, view, read_rank(rank_by)
        self.status, self.limit = rules.limits[0]
        step = steps(2)
        step("making plans")
        self.plans = self._made(scope, candidates, at_least, fitted=fitted, complete=complete)
        step("working out policies")
        policies = tracked(self.plans, lambda each: f"the policy of {each.name}")
        self._policies = {each: session.policy_of(*each.queries) for each in policies}
        others = self.plans[0].others()
        self._others = session.policy_of(*others) if others else Policy()
        self._sample = RecordSample(view, [self._others, *self._policies.values()], rank_by)
        self._kept: dict[tuple[Scalable, int], FloatArray] = {}
        self._losses = {
            each: scaled_losses(each, policy, self._others, self._sample.columns, self._sample.losses)
            for each, policy in self._policies.items()
        }

    def _made(
        self, scope: Scope, candidates: Mapping[str, Any] | None, at_least: Any, *, fitted: bool, complete: bool
    ) -> list[Scalable]:
        view, whole = self._view, scope.plan.queries
        asked = goals_in(scope, within=self.limit * TIMES_SD, confidence=CONFIDENCE, share=1, at_least=at_least)
        targets = tuple(Target(asked=each, goal=goal) for each, goal in zip(scope.asked(), asked))
        tables = target_tables(view, scope, targets, {})
        several = [each for each in targets if len(whole[each.asked.query].tables()) > 1] if fitted else []
        read = goal_levels(view, [each.goal for each in several], complete=complete) if several else []
        levels = {each.asked.place: own for each, own in zip(several, read)}
        schema = view.schema
        found = [Scalable(name=TODAY, queries=whole, scope=scope, tables=tables, levels=levels, schema=schema)]
        for share in tracked(GOALS, "making plans"):
            goals = goals_in(
                scope, within=self.limit * TIMES_SD, confidence=CONFIDENCE, share=str(share), at_least=at_least
            )
            fits, _ = plan_fits(
                view, scope.plan, goals, candidates, rank_by=self._rank_by, fitted=fitted, complete=complete
            )
            for name, chosen in fits.assignments().items():
                queries = fits.queries(chosen, fits.split(chosen))
                found.append(
                    Scalable(name=name, queries=queries, scope=scope, tables=tables, levels=levels, schema=schema)
                )
        return _different(found)

    def loss(self, plan: Scalable, factor: float, rank_by: str) -> float:
        """The loss of a rank on the sample, at noise divided by the square root of a factor."""
        return self._sample.ranked(self._losses[plan].at(factor), rank_by)

    def factor_within(self, plan: Scalable, limits: Mapping[str, float]) -> float | None:
        """The largest factor at which the losses of some ranks stay within limits; None if none is small enough."""

        def within(factor: float) -> bool:
            return all(self.loss(plan, factor, name) <= limits[name] for name in limits)

        return _factor(self._losses[plan], within)

    def factor_at_record(self, plan: Scalable, record: Mapping[str, Any], limit: float) -> float | None:
        """The largest factor at which one record loses no more than a limit."""

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
        """The largest factor of at most a number whose policy a budget covers."""
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
        """The plan with the losses of all records within the limits: those of the sample may be a little smaller."""
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
        policies = {str(at): self._session.policy_of(*own) for at, own in asked}
        losses = policy_losses(self._view, policies)
        return [
            FrontierPoint(name=plan.name, losses=losses[str(at)].rho, reliable=found, queries=own)
            for at, ((plan, _, found), own) in enumerate(zip(chosen, queries))
        ]


def _different(plans: Sequence[Scalable]) -> list[Scalable]:
    """The plans without those that are others with more or less noise; the first one stays as it is."""
    found: list[tuple[Scalable, Any]] = []
    for each in plans:
        ray = each.ray()
        if not found or ray is None or all(ray != other for _, other in found[1:]):
            found.append((each, ray))
    return [each for each, _ in found]


def _factor(losses: ScaledLosses, allowed: Callable[[float], bool], *, close: float = 1.001) -> float | None:
    """The largest factor that is allowed, if all between 1 and it are; None if none is."""
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
    while high / low > close:
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low
