"""Mechanisms for a whole plan: each family for all its statistics, and the best family for each, with the split over levels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from recordwise.errors import ParameterError
from recordwise.exact.text import figure, formula_text, share_text
from recordwise.mechanisms.base import is_sized, shared
from recordwise.plan.query import Query
from recordwise.planning.amounts import has_amount, with_amount
from recordwise.planning.candidates import families, two_digits
from recordwise.planning.fitness import FamilyFitness, Fitness, Fitted, InfeasibleError
from recordwise.planning.goals import Goal, GoalTable, goal_tables, mechanism_for
from recordwise.planning.left import Left, left_of
from recordwise.planning.level_shares import level_shares
from recordwise.planning.level_trees import GoalLevels, can_be_fitted, goal_levels
from recordwise.planning.losses import policy_losses
from recordwise.planning.offsets import best_mechanism, ranked, ranking_size
from recordwise.planning.plan_fits import QueryCost, StatisticFit, check_shared
from recordwise.planning.protection import hardly_protected, what_would_have_to_give
from recordwise.planning.record_sample import RecordSample
from recordwise.planning.shapes import COUNT
from recordwise.planning.sized import FAT_TAILED, FLOORS, USUAL_FLOOR, level_sizes, sized_family
from recordwise.planning.targets import Target, targets_in
from recordwise.planning.whole import PlanLike, Scope, with_choice
from recordwise.progress import tracked
from recordwise.session import Session
from recordwise.session.owner import OwnerView

WHOLE = Fraction(1)
MOST_TRIED = 4
"""So many families, the best first, are tried against what is left of a budget; each needs a proof for every possible record."""
EACH = "the best for each statistic"
FEW = Fraction(10)
"""The usual floor of a count."""
Place = tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PlanFits:
    """CONFIDENTIAL if the records are: every family for every statistic of a plan that has a goal."""

    scope: Scope
    targets: tuple[Target, ...]
    fits: dict[Place, dict[str, StatisticFit]]
    costs: dict[int, QueryCost]
    best: dict[Place, StatisticFit]

    def split(self, chosen: Mapping[Place, StatisticFit]) -> tuple[Query, ...]:
        """Each query with the split over its levels that costs least for the families chosen."""
        split = list(self.scope.plan.queries)
        for number, cost in self.costs.items():
            split[number] = cost.split([fit for place, fit in chosen.items() if place[0] == number])
        return tuple(split)

    def queries(
        self, chosen: Mapping[Place, StatisticFit], split: Sequence[Query], part: Fraction = WHOLE
    ) -> tuple[Query, ...]:
        """The whole plan with the families chosen for its statistics, at a part of the loss that their goals need."""
        mechanisms = {place: shared(fit.mechanism(split[place[0]]), part) for place, fit in chosen.items()}
        remade = with_choice(
            self.scope.plan, [each.asked for each in self.targets], lambda asked: mechanisms[asked.place]
        )
        return tuple(_with_split(query, own) for query, own in zip(remade, split))

    def fitted(
        self, chosen: Mapping[Place, StatisticFit], split: Sequence[Query], part: Fraction = WHOLE
    ) -> tuple[Fitted, ...]:
        """What each table gets of it."""
        return tuple(each for place, fit in chosen.items() for each in fit.at(split[place[0]], part))

    def costs_of(self, chosen: Mapping[Place, StatisticFit], split: Sequence[Query]) -> dict[str, float]:
        """What each statistic costs by itself, at the rank by which plans are compared."""
        return {
            fit.target.asked.statistic.alias: self.costs[place[0]].cost([fit])(level_shares(split[place[0]]))
            for place, fit in chosen.items()
        }

    def assignments(self) -> dict[str, dict[Place, StatisticFit]]:
        """One family for all statistics that it can serve, the others with their best one; and the best for each."""
        names = dict.fromkeys(name for own in self.fits.values() for name in own)
        found = {name: {place: own.get(name, self.best[place]) for place, own in self.fits.items()} for name in names}
        if len({fit.family for fit in self.best.values()}) > 1:
            found[EACH] = dict(self.best)
        return found


def _with_split(query: Query, split: Query) -> Query:
    return replace(query, axes=split.axes)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PlanAdvice:
    """CONFIDENTIAL if the records are: every family for a whole plan, and the one that what is left of the budget covers."""

    fitness: Fitness
    scope: Scope
    left: Left
    best: FamilyFitness
    notes: tuple[str, ...]
    """What a reader must know about it."""


def plan_advice(
    session: Session,
    view: OwnerView,
    plan: PlanLike,
    goals: Sequence[Goal],
    candidates: Mapping[str, Any] | None,
    *,
    rank_by: str,
    fitted: bool,
    complete: bool,
    data: str,
) -> PlanAdvice:
    """Every family for a whole plan, with what the records lose from all of it."""
    fits, infeasible = plan_fits(view, plan, goals, candidates, rank_by=rank_by, fitted=fitted, complete=complete)
    assigned = fits.assignments()
    splits = {name: fits.split(chosen) for name, chosen in assigned.items()}
    queries = {name: fits.queries(chosen, splits[name]) for name, chosen in assigned.items()}
    policies = {name: session.policy_of(*own) for name, own in queries.items()}
    losses = policy_losses(view, policies)
    found = {
        name: FamilyFitness(
            name=name,
            fitted=fits.fitted(chosen, splits[name]),
            policy=policies[name],
            losses=losses[name],
            firms=None,
            asked=queries[name],
        )
        for name, chosen in assigned.items()
    }
    left, order = left_of(session, plan), ranked(tuple(found.values()), rank_by)
    refusals: dict[str, str] = {}
    best, own = None, order[0].name
    for each in order[:MOST_TRIED]:
        told = left.refusal(each.policy)
        if told is None:
            best, own = each, each.name
            break
        refusals[each.name] = told
    notes = [_passed_over(order[0].name, refusals[order[0].name], best)] if refusals else []
    if best is None:
        # Other noise changes its shape with its share of the loss, and may have no law at a small one.
        scalable = (
            each.name for each in order if all(has_amount(fit.prototype) for fit in assigned[each.name].values())
        )
        own = next(scalable, own)
        best, note = _reduced(session, view, fits, assigned[own], splits[own], own, left)
        notes.append(note)
    told = hardly_protected(best.losses.rho)
    if told is not None:
        costs = fits.costs_of(assigned[own], splits[own])
        sized = any(is_sized(each.mechanism) for each in best.fitted)
        notes += [told, *what_would_have_to_give(best.losses.rho, best.fitted, costs, sized=sized)]
    fitness = Fitness(goals=tuple(goals), data=data, families=tuple(found.values()), infeasible=infeasible)
    return PlanAdvice(fitness=fitness, scope=fits.scope, left=left, best=best, notes=tuple(notes))


def _passed_over(name: str, told: str, best: FamilyFitness | None) -> str:
    if best is None:
        return f"What is left of the budget covers none of the best families: with {name}, {told}."
    return f"{name} costs less at this rank, but what is left of the budget does not cover it: {told}."


def _reduced(
    session: Session,
    view: OwnerView,
    fits: PlanFits,
    chosen: Mapping[Place, StatisticFit],
    split: Sequence[Query],
    name: str,
    left: Left,
) -> tuple[FamilyFitness, str]:
    """The same with so much more noise that what is left of the budget covers it; the goals are then missed."""

    def at(part: Fraction) -> tuple[Query, ...]:
        return fits.queries(chosen, split, part)

    part = left.share_covered(lambda each: session.policy_of(*at(each)))
    if part is None:
        raise ParameterError(
            parameter="plan",
            problem="asks for more than is left of its budget, whatever the noise of the statistics that have goals",
            advice="Drop queries, or give the others more noise.",
        )
    policy = session.policy_of(*at(part))
    fitted = fits.fitted(chosen, split, part)
    found = FamilyFitness(
        name=f"{name}, within the budget",
        fitted=fitted,
        policy=policy,
        losses=policy_losses(view, {name: policy})[name],
        firms=None,
        asked=at(part),
    )
    met = min(each.share_met for each in fitted)
    words = (
        f"The plan is recommended at {share_text(float(part), 1)} of the loss that the goals need, with errors "
        f"{figure(float(part) ** -0.5)} times as large: in its worst table {share_text(met, 1)} of the cells meet the goal. Loosen "
        "the goals, publish less, or raise the budget."
    )
    return found, words


def plan_fits(
    view: OwnerView,
    plan: PlanLike,
    goals: Sequence[Goal],
    candidates: Mapping[str, Any] | None,
    *,
    rank_by: str,
    fitted: bool,
    complete: bool,
) -> tuple[PlanFits, dict[str, str]]:
    """Every family for every statistic with a goal, and which families can serve none."""
    scope, targets = targets_in(plan, goals, view.schema)
    sized = _sized(scope, targets) if candidates is None else {}
    plain = dict(families()) if candidates is None else dict(candidates)
    read = iter(goal_tables(view, [each.goal for each in targets], plain))
    tables = {each.asked.place: tuple(next(read) for _ in each.goal.levels) for each in targets}
    trees = _trees(view, scope, targets, complete=complete) if fitted else {}
    sizes = {measure: ranking_size(view, measure, rank_by) for measure in {each.goal.measure for each in targets}}
    fits: dict[Place, dict[str, StatisticFit]] = {each.asked.place: {} for each in targets}
    why: dict[str, str] = {}
    for target in tracked(targets, lambda each: f"families for {each.asked.statistic.alias}"):
        place, goal = target.asked.place, target.goal
        own = {name: mechanism_for(each, goal) for name, each in plain.items()} | sized.get(place, {})
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
    costs = _costs(view, scope, fits, rank_by)
    best = {place: costs[place[0]].best(list(own.values())) for place, own in fits.items()}
    served = {name for own in fits.values() for name in own}
    found = PlanFits(scope=scope, targets=targets, fits=fits, costs=costs, best=best)
    return found, {name: told for name, told in why.items() if name not in served}


def _fit(
    name: str,
    mechanism: Any,
    target: Target,
    tables: tuple[GoalTable, ...],
    scope: Scope,
    size: float,
    levels: GoalLevels | None,
) -> StatisticFit:
    check_shared(mechanism, scope.plan.queries[target.asked.query])
    if levels is not None and can_be_fitted(mechanism):
        unit = with_amount(mechanism, 1.0)
        return StatisticFit(family=name, target=target, prototype=unit, tables=tables, needed=(), tree=levels.at(unit))
    needed = best_mechanism(tables, name, mechanism, size)
    return StatisticFit(family=name, target=target, prototype=needed[0].mechanism, tables=tables, needed=needed)


def _costs(
    view: OwnerView, scope: Scope, fits: Mapping[Place, Mapping[str, StatisticFit]], rank_by: str
) -> dict[int, QueryCost]:
    """The cost of each query, with the losses of one sample of the records under all that is tried."""
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


def _trees(view: OwnerView, scope: Scope, targets: Sequence[Target], *, complete: bool) -> dict[Place, GoalLevels]:
    """The levels of each statistic whose query has several, to be fitted together."""
    several = [each for each in targets if len(scope.plan.queries[each.asked.query].tables()) > 1]
    if not several:
        return {}
    found = goal_levels(view, [each.goal for each in several], complete=complete)
    return {each.asked.place: levels for each, levels in zip(several, found)}


def _sized(scope: Scope, targets: Sequence[Target]) -> dict[Place, dict[str, Any]]:
    """Sized noise at several floors for each statistic whose keys have sizes; fat-tailed below where it is one table."""
    found: dict[Place, dict[str, Any]] = {}
    for target in targets:
        query = scope.plan.queries[target.asked.query]
        levels = query.tables()
        if any(level_sizes(query, level, target.goal.measure, scope.plan.schema) is None for level in levels):
            continue
        around = target.goal.at_least or (FEW if target.goal.measure == COUNT else USUAL_FLOOR)
        low = FAT_TAILED if len(levels) == 1 else None
        found[target.asked.place] = {
            name: each
            for part in FLOORS
            for name, each in sized_family(
                f"sized, floor {formula_text(part)} of the least total", two_digits(float(around * part)), low=low
            ).items()
        }
    return found
