"""Fitness for use: the smallest policy that makes tables as accurate as required."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray, largest_allowed
from recordwise.exact.text import figure, formula_text, share_text
from recordwise.mechanisms.base import Mechanism
from recordwise.mechanisms.calibration import decimal
from recordwise.mechanisms.sized import Sized
from recordwise.plan.query import Query
from recordwise.planning.losses import QUANTILES, Losses, LossPair, firm_losses, loss_at, policy_losses
from recordwise.planning.result import Result, Rows, loss_figure
from recordwise.planning.scope import COUNT, read_origin, viewed
from recordwise.planning.search.families import amount, best_offset, by_cell, has_amount, most_sized
from recordwise.planning.search.goals import Goal, GoalTable, goal_tables, mechanism_for, read_goals
from recordwise.policy.meaning import power_gaussian
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Policy
from recordwise.progress import reported, tracked
from recordwise.session import Session
from recordwise.session.owner import OwnerView

ROUNDS = 20
SCALES = (1e-6, 1e3)
"""How much less and more noise than given is tried for a transform of a signed measure."""
SIGNED_ROUNDS = 22


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Fitted:
    """The mechanism that meets the goal of one table with the most noise."""

    table: GoalTable
    mechanism: Mechanism
    deciding: float
    """The total of the cell that allows the least noise; confidential if the records are."""
    share_met: float
    """The share of the counted cells in which the goal is met."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class FamilyFitness:
    """One family: its mechanism for every table, and the combined cost of all of them."""

    name: str
    fitted: tuple[Fitted, ...]
    policy: Policy
    losses: LossPair
    firms: LossPair | None
    asked: tuple[Query, ...] = ()
    """For goals about fitted errors: the queries with their levels."""

    def queries(self) -> tuple[Query, ...]:
        """The queries to release, one for each table; for fitted errors one for each goal."""
        return self.asked or tuple(each.table.with_mechanism(each.mechanism) for each in self.fitted)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Fitness(Result):
    """The smallest policies that meet goals, by family; confidential if the records are."""

    goals: tuple[Goal, ...]
    data: str
    families: tuple[FamilyFitness, ...]
    infeasible: dict[str, str]
    """Families that cannot meet the goals with any amount of noise, and why."""

    def __getitem__(self, name: str) -> FamilyFitness:
        return next(each for each in self.families if each.name == name)

    def curves(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """For each family, losses and the share of the records with at most each loss."""
        return {each.name: each.losses.rho.curve() for each in self.families}

    def _numbers(self) -> dict[str, Any]:
        return {
            "goals": [goal.words() for goal in self.goals],
            "families": [_family_json(each) for each in self.families],
            "infeasible": self.infeasible,
        }

    def rows(self) -> Rows:
        """Headers and rows of a table to show."""
        firms = ["firm p99"] if any(each.firms for each in self.families) else []
        headers = ["family", "median", "p99", "maximum", *firms, "mechanism", "cells met"]
        return headers, [row for each in self.families for row in _family_rows(each)]

    def notes(self) -> tuple[str, ...]:
        """Return the goals, and why some families cannot meet them."""
        return (*(goal.words() for goal in self.goals), *(f"{name}: {why}" for name, why in self.infeasible.items()))

    def _about(self) -> str:
        return f"of {len(self.families)} families"

    def _title(self) -> str:
        return "Losses of the smallest policy of each family that meets the goals"


def _family_json(each: FamilyFitness) -> dict[str, Any]:
    tables = [
        {
            "table": one.table.name,
            "mechanism": one.mechanism.text(),
            "deciding_total": one.deciding,
            "share_met": one.share_met,
        }
        for one in each.fitted
    ]
    found = {"name": each.name, "losses": each.losses.rho.to_json(), "tables": tables}
    return found if each.firms is None else found | {"firm_losses": each.firms.rho.to_json()}


def _family_rows(each: FamilyFitness) -> list[list[str]]:
    rho = each.losses.rho
    numbers = [loss_figure(rho.quantile(0.5)), loss_figure(rho.quantile(0.99)), loss_figure(rho.maximum)]
    numbers += [loss_figure(each.firms.rho.quantile(0.99))] if each.firms else []
    rows = []
    for number, one in enumerate(each.fitted):
        first = [each.name, *numbers] if number == 0 else [""] * (1 + len(numbers))
        text = one.mechanism.text()
        rows.append(
            [*first, text if len(each.fitted) == 1 else f"{one.table.name}: {text}", f"{share_text(one.share_met, 1)}"]
        )
    return rows


@reported
def fitness(
    session: Session,
    families: Mapping[str, Any],
    goals: Goal | Sequence[Goal],
    *,
    firms: bool = False,
    data: str = "confidential",
) -> Fitness:
    """The smallest policy of each family for which every table meets its goal, with the losses of the records under it.

    A family is a mechanism whose noise is set anew while everything else is kept, or a mapping from measures to such mechanisms.
    More noise means a smaller loss for every record, so the most noise that meets a goal is the smallest policy (T-MOST-NOISE).

    Args:
        session: An open session; its records are read, and no budget is spent.
        families: The families by name, as ``families`` returns them.
        goals: The accuracy goal of each table.
        firms: Whether the joint losses of firms are computed too.
        data: What the records are: "public", "synthetic", "past" or "confidential". Unless they are declared public or synthetic,
            the ledger notes a look first.

    Returns:
        Each family at its smallest loss, and those that cannot meet the goals.
    """
    origin, wanted, view = read_origin(data), read_goals(goals), viewed(session, data, "plan fitness")
    tables = goal_tables(view, wanted, families)
    found: dict[str, tuple[Fitted, ...]] = {}
    infeasible: dict[str, str] = {}
    for name, family in tracked(families.items(), lambda item: f"fitting {item[0]}"):
        try:
            found[name] = tuple(fit(table, name, mechanism_for(family, table.goal)) for table in tables)
        except InfeasibleError as error:
            infeasible[name] = str(error)
    return measured(session, view, wanted, found, infeasible, origin, firms=firms)


def measured(
    session: Session,
    view: OwnerView,
    goals: tuple[Goal, ...],
    found: dict[str, tuple[Fitted, ...]],
    infeasible: dict[str, str],
    origin: str,
    *,
    firms: bool,
    levels: Mapping[str, tuple[Query, ...]] | None = None,
) -> Fitness:
    """Fitted families with the losses of the records, all in one pass; ``levels`` are queries instead of one for each table."""
    joined = dict(levels or {})
    asked = {
        name: list(joined.get(name, ())) or [each.table.with_mechanism(each.mechanism) for each in fitted]
        for name, fitted in found.items()
    }
    policies = {name: session.policy_of(*queries) for name, queries in asked.items()}
    conditions = {goal.query.condition for goal in goals}
    condition = conditions.pop() if len(conditions) == 1 else None
    losses = policy_losses(view, policies, condition=condition) if policies else {}
    joint = firm_losses(view, asked) if firms and policies else {}
    families = tuple(
        FamilyFitness(
            name=name,
            fitted=fitted,
            policy=policies[name],
            losses=losses[name],
            firms=joint.get(name),
            asked=joined.get(name, ()),
        )
        for name, fitted in found.items()
    )
    return Fitness(goals=goals, data=origin, families=families, infeasible=infeasible)


class InfeasibleError(Exception):
    """No amount of noise is small enough. It is caught inside ``fitness``."""


def fit(table: GoalTable, name: str, mechanism: Mechanism) -> Fitted:
    """The most noise for which enough cells meet the goal.

    The smallest counted total decides in every family we know. This is checked on all cells; if another one misses the goal, that
    one decides instead.
    """
    goal, kept = table.goal, table.kept.get(name)
    if mechanism.is_sized:
        return _fit_sized(table, mechanism)
    if mechanism.to is not None and kept is not None:
        return _fit_clamped(table, mechanism, kept)
    if mechanism.signed and kept is not None:
        return _fit_signed(table, mechanism, kept)
    deciding = table.deciding()
    for _ in range(ROUNDS):
        found = _most_noise(table, mechanism, deciding)
        met = _met(table, found, None)
        if table.totals.size - int(met.sum()) <= table.may_miss:
            return Fitted(table=table, mechanism=found, deciding=deciding, share_met=float(met.mean()))
        late = np.sort(table.totals[~met & (table.totals >= table.deciding())])
        deciding = float(late[-1]) if late.size else float(np.sort(table.totals[~met])[-1])
    raise InfeasibleError(f"{table.name}: no noise was found for {goal.words()}")


def _fit_signed(table: GoalTable, mechanism: Mechanism, parts: FloatArray) -> Fitted:
    """No single total decides, because the errors of its parts do not cancel: noise is reduced until enough cells meet the goal."""

    def enough(scale: float) -> bool:
        try:
            return int((~_met(table, mechanism.with_noise_scale(decimal(scale)), parts)).sum()) <= table.may_miss
        except ParameterError:
            return False

    low, high = (float(mechanism.noise_scale or 1) * width for width in SCALES)
    if not enough(low):
        raise InfeasibleError(f"{table.name}: no noise was found for {table.goal.words()}")
    scale = largest_allowed(enough, low, high, rounded=float, rounds=SIGNED_ROUNDS)
    found = mechanism.with_noise_scale(decimal(scale))
    met = _met(table, found, parts)
    return Fitted(table=table, mechanism=found, deciding=table.deciding(), share_met=float(met.mean()))


def _fit_sized(table: GoalTable, mechanism: Mechanism) -> Fitted:
    """Sizes are not totals, so no single cell decides: the noise is reduced until enough cells meet the goal."""
    if table.sizes is None:
        raise InfeasibleError(f"{table.name}: the keys give no sizes")
    goal = table.goal
    try:
        found, met = most_sized(
            cast(Sized, mechanism),
            table.totals,
            table.sizes,
            within=float(goal.within),
            confidence=goal.confidence,
            step=table.step,
            may_miss=table.may_miss,
        )
    except ParameterError as error:
        raise InfeasibleError(f"{table.name}: {error}") from None
    return Fitted(table=table, mechanism=found, deciding=table.deciding(), share_met=float(met.mean()))


def _most_noise(table: GoalTable, mechanism: Mechanism, total: float) -> Any:
    goal = table.goal
    try:
        found = mechanism.most_noise(total, float(goal.within) * total, confidence=goal.confidence, step=table.step)
    except ParameterError as error:
        raise InfeasibleError(f"{table.name}: {error}") from None
    return found


def _met(table: GoalTable, mechanism: Mechanism, kept: FloatArray | None) -> Any:
    """Which of the counted cells meet the goal."""
    reach = float(table.goal.within) * table.totals
    return mechanism.meets(table.totals, reach, confidence=table.goal.confidence, step=table.step, kept=kept)


def met_by(table: GoalTable, mechanism: Mechanism, name: str) -> Any:
    """Which of the counted cells of a table meet the goal under a mechanism of the family of this name."""
    reach = float(table.goal.within) * table.totals
    return by_cell(
        "meets",
        mechanism,
        table.totals,
        reach,
        sizes=table.sizes,
        confidence=table.goal.confidence,
        step=table.step,
        kept=table.kept.get(name),
    )


def _fit_clamped(table: GoalTable, mechanism: Mechanism, kept: FloatArray) -> Fitted:
    """Clamping has a bias that differs from cell to cell, so the noise is reduced until enough cells meet the goal."""
    reach = float(table.goal.within) * table.totals
    hopeless = int((np.abs(table.totals - kept) > reach).sum())
    if hopeless > table.may_miss:
        raise InfeasibleError(
            f"{table.name}: clamping at {formula_text(mechanism.to or 0)} alone cuts off more than the goal allows in "
            f"{share_text(hopeless / len(kept), 1)} of the cells"
        )

    def enough(sigma: float) -> bool:
        return int((~_met(table, mechanism.with_sigma(decimal(sigma)), kept)).sum()) <= table.may_miss

    least, most = 1e-6 * float(reach.min()), 10 * float(reach.max())
    found = mechanism.with_sigma(decimal(largest_allowed(enough, least, most, rounded=float, rounds=80)))
    met = _met(table, found, kept)
    return Fitted(table=table, mechanism=found, deciding=table.deciding(), share_met=float(met.mean()))


# The mechanism of a family that suits some tables best: for a transform, at the offset where the ranking record loses
# least.


def ranked(families: Sequence[FamilyFitness], rank_by: str) -> tuple[FamilyFitness, ...]:
    """Best first; ties in the chosen rank are broken by the others."""
    order = [rank_by, *(name for name in QUANTILES if name != rank_by)]
    return tuple(sorted(families, key=lambda each: [loss_at(each.losses.rho, name) for name in order]))


def ranking_size(view: OwnerView, measure: str, rank_by: str) -> float:
    """The record whose loss ranks the families: policies grow with the measure, so it has the loss of the given rank."""
    if measure == COUNT:
        return 1.0
    counted = view.value_counts([measure])
    if counted is None:
        raise ParameterError(parameter="measure", problem=f"'{measure}' has too many distinct values for planning")
    sizes = Losses.of(np.abs(np.asarray(counted.columns[measure], np.float64)), counted.records)
    declared = view.schema.measure(measure)
    return max(loss_at(sizes, rank_by), float(declared.step if declared else 1))


def best_mechanism(tables: Sequence[GoalTable], name: str, mechanism: Mechanism, size: float) -> tuple[Fitted, ...]:
    """The family's mechanism with the most noise for each table; a transform has one offset for all of them."""
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


# Protection in words: whom a loss hardly protects, and what a smaller one would require.


HARDLY = 5.0
"""Above this loss a membership test is nearly always right."""
GOOD = 1.0
PARTS = ((0.5, "Half"), (0.25, "A quarter"), (0.1, "A tenth"))


def hardly_protected(losses: Losses) -> str | None:
    """Which part of the records a plan hardly protects; None if fewer than a tenth."""
    for part, word in PARTS:
        if losses.quantile(1 - part) > HARDLY:
            detected = share_text(power_gaussian(HARDLY), 0)
            return (
                f"{word} of the records lose more than {figure(HARDLY)}: hardly protected. Under Gaussian noise a membership test "
                f"with a 5% false-positive rate detects such a record with a probability of more than {detected}."
            )
    return None


def what_would_have_to_give(
    losses: Losses, fitted: Sequence[Fitted], costs: Mapping[str, float], *, sized: bool
) -> Iterator[str]:
    """How the loss of those who are hardly protected would come down to 1: a looser goal, fewer cells, sizes, fewer statistics."""
    part = next(each for each, _ in PARTS if losses.quantile(1 - each) > HARDLY)
    loss = losses.quantile(1 - part)
    factor = np.sqrt(loss / GOOD)
    widths = sorted({float(each.table.goal.within) for each in fitted})
    wider = ", ".join(f"{figure(each * factor)} instead of {figure(each)}" for each in widths)
    yield f"A looser goal: errors {figure(factor)} times as large (within {wider}) bring that loss to about {figure(GOOD)}."
    fewer = _with_fewer_cells(fitted)
    if fewer is not None and fewer > 1.05:
        yield f"Fewer cells: if only half of them had to meet the goal, the loss would be about {figure(fewer)} times smaller."
    if not sized:
        yield (
            "Sized noise: where something public is known about the size of each cell (Keys.of(..., size=...)), noise in "
            "proportion to it usually costs the least."
        )
    if len(costs) > 1:
        most, share = max(costs.items(), key=lambda each: each[1])[0], max(costs.values()) / sum(costs.values())
        yield f"Fewer statistics or levels: {most} alone takes {share_text(share, 0)} of it."


def _with_fewer_cells(fitted: Sequence[Fitted]) -> float | None:
    """By how much the loss falls where it falls least, if half of the cells of each table may miss the goal."""
    found = []
    for each in fitted:
        half = replace(each.table, may_miss=max(each.table.may_miss, len(each.table.totals) // 2))
        if not has_amount(each.mechanism):
            return None
        try:
            found.append((amount(fit(half, "", each.mechanism).mechanism) / _alone(each)) ** 2)
        except InfeasibleError:
            return None
    return min(found, default=None)


def _alone(each: Fitted) -> float:
    """The noise that the table could have by itself, with the cells that must meet the goal now."""
    return amount(fit(each.table, "", each.mechanism).mechanism)
