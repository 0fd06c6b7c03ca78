"""From accuracy goals to a plan: the least loss that meets them.

The recommendation is explained, compared with the remaining budget, and written as a plan file.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from recordwise.errors import BudgetError, ParameterError
from recordwise.exact.arithmetic import FloatArray, largest_allowed
from recordwise.exact.text import figure, formula_text, share_text
from recordwise.ledger.chain import Event
from recordwise.ledger.ledger import amount_bounds
from recordwise.mechanisms.base import Mechanism
from recordwise.plan.describe import schema_json
from recordwise.plan.file.read import PlanFile
from recordwise.plan.file.write import PlanText, plan_text
from recordwise.plan.query import Query
from recordwise.plan.schema import NO_LOOK, Schema
from recordwise.plan.sources import Postgres
from recordwise.planning.losses import BALANCED, QUANTILES, RANK_WORDS, loss_at, policy_losses, read_rank
from recordwise.planning.new_plan import PlanChange, carried_plan, changes
from recordwise.planning.result import Result, Rows, loss_figure
from recordwise.planning.scope import COUNT, PlanLike, Scope, read_origin, viewed, with_choice
from recordwise.planning.search.families import (
    FAT_TAILED,
    FLOORS,
    USUAL_FLOOR,
    families,
    has_amount,
    level_sizes,
    sized_families,
    sized_family,
    two_digits,
)
from recordwise.planning.search.fitness import (
    FamilyFitness,
    Fitness,
    Fitted,
    InfeasibleError,
    best_mechanism,
    hardly_protected,
    measured,
    ranked,
    ranking_size,
    what_would_have_to_give,
)
from recordwise.planning.search.fits import QueryCost, RecordSample, StatisticFit, check_shared
from recordwise.planning.search.goals import Goal, GoalTable, Target, goal_tables, mechanism_for, read_goals, targets_in
from recordwise.planning.search.shares import (
    GoalLevels,
    LevelSplits,
    can_be_fitted,
    fitted_family,
    goal_levels,
    level_shares,
)
from recordwise.policy.policy import Policy
from recordwise.progress import reported, tracked
from recordwise.session import Session
from recordwise.session.owner import OwnerView
from recordwise.session.session import plan_ledger

# The remaining budget of a plan, and the most of a recommendation that it covers.


HALVINGS = 12
LEAST = Fraction(1, 10**6)
SECONDS = 10.0
"""Processor time that one proof may take."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Left:
    """A budget, and what was charged to it before."""

    budget: Policy | None
    refusal: Callable[[Policy], str | None]
    """Why a plan with this policy would be refused, in words; None if it would not."""
    is_new: bool
    """Whether nothing can have been charged before."""

    @property
    def needs_budget(self) -> bool:
        """Whether a plan file needs a proposed budget: it has none, and nothing can have been charged before."""
        return self.budget is None and self.is_new

    def share_covered(self, policy_at: Callable[[Fraction], Policy]) -> Fraction | None:
        """The largest share of a plan's loss that is covered, of two digits; None if not even a millionth is."""

        def covered(share: Fraction) -> bool:
            return self.refusal(policy_at(share)) is None

        if not covered(LEAST):
            return None
        return largest_allowed(covered, LEAST, Fraction(1), rounded=two_digits, rounds=HALVINGS)


def left_of(session: Session, plan: PlanLike) -> Left:
    """The budget of the session; of a plan file that the session leaves alone, that in the plan's own ledger."""
    if isinstance(plan, PlanFile) and session.budget is None:
        with plan_ledger(plan) as ledger:
            is_new = not _charged(ledger.history())
        return Left(budget=plan.budget, refusal=lambda policy: _refused_by_ledger(plan, policy), is_new=is_new)
    return Left(
        budget=session.budget,
        refusal=lambda policy: _refused(session, policy),
        is_new=not _charged(session.history()),
    )


def _charged(history: Sequence[Event]) -> bool:
    return any(event.kind == "charged" for event in history)


def _refused_by_ledger(file: PlanFile, policy: Policy) -> str | None:
    if file.budget is None:
        return None
    try:
        with plan_ledger(file) as ledger:
            ledger.check(policy, query="the plan")
    except BudgetError as error:
        return _words(error.witness, error.needed, error.left)
    return None


def _refused(session: Session, policy: Policy) -> str | None:
    if session.budget is None:
        return None
    bounds = amount_bounds(schema_json(session.schema))
    verdict = session.budget.dominates(session.spent() + policy, bounds=bounds, seconds=SECONDS)
    if verdict:
        return None
    witness = verdict.witness
    if witness is None:
        return _words(None, 0.0, 0.0)
    return _words(witness, float(policy.loss(witness)), session.remaining(witness))


def _words(witness: dict[str, Any] | None, needed: float, left: float) -> str:
    """Where a budget ends. A witness is a possible record, not one of the table."""
    if witness is None:
        return "it could not be proved that the budget covers the plan"
    record = ", ".join(f"{name}={value}" for name, value in witness.items()) or "every record"
    return f"for {record} the plan needs a loss of {figure(needed)}, and {figure(left)} is left"


# Mechanisms for a whole plan: each family for all its statistics, and the best family for each, with the split over
# levels.


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
        mechanisms = {place: fit.mechanism(split[place[0]]).at_share(part) for place, fit in chosen.items()}
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
        sized = any(each.mechanism.is_sized for each in best.fitted)
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
    sized = _sized_statistics(scope, targets) if candidates is None else {}
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
    mechanism: Mechanism,
    target: Target,
    tables: tuple[GoalTable, ...],
    scope: Scope,
    size: float,
    levels: GoalLevels | None,
) -> StatisticFit:
    check_shared(mechanism, scope.plan.queries[target.asked.query])
    if levels is not None and can_be_fitted(mechanism):
        unit = mechanism.with_amount(Fraction(1))
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


def _sized_statistics(scope: Scope, targets: Sequence[Target]) -> dict[Place, dict[str, Any]]:
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


# The recommendation: the family that meets the goals with the least loss, and why.


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Recommendation(Result):
    """Families ranked by the loss at which they meet the goals; confidential if the records are."""

    fitness: Fitness
    rank_by: str
    session: Session
    advice: PlanAdvice | None = None
    """What was found for a whole plan."""

    @property
    def data(self) -> str:
        """What the records are that it was computed from."""
        return self.fitness.data

    def ranking(self) -> tuple[FamilyFitness, ...]:
        """Best first; ties in the chosen quantile are broken by the others."""
        return ranked(self.fitness.families, self.rank_by)

    @property
    def best(self) -> FamilyFitness:
        """The family that is recommended: the first or, of a plan with a budget, the first that what is left of it covers."""
        return self.ranking()[0] if self.advice is None else self.advice.best

    def queries(self) -> tuple[Query, ...]:
        """The queries to release: those of the whole plan, if one was examined."""
        return self.best.queries()

    def changes(self) -> tuple[PlanChange, ...]:
        """What differs from the plan that was examined, for each statistic of each table; nothing without a plan."""
        return () if self.advice is None else changes(self.advice.scope.plan.queries, self.queries())

    @property
    def needs_budget(self) -> bool:
        """Whether a plan file like the one that was examined gets a proposed budget."""
        return self.advice is not None and self.advice.left.needs_budget

    def notes(self) -> tuple[str, ...]:
        """What a reader must know: whom the losses hardly protect, what would have to give, and where the budget ends."""
        if self.advice is not None:
            return self.advice.notes
        told = hardly_protected(self.best.losses.rho)
        return () if told is None else (told,)

    def summary(self) -> str:
        """The recommendation explained in two sentences."""
        best = self.best
        others = [each for each in self.ranking() if each.name != best.name]
        rho = best.losses.rho
        loss = loss_figure(loss_at(rho, self.rank_by))
        if self.advice is not None and best is not self.ranking()[0]:
            first = f"{best.name} is recommended, with a {RANK_WORDS[self.rank_by]} loss of {loss}"
        else:
            first = f"{best.name} meets the goals with the smallest {RANK_WORDS[self.rank_by]} loss, {loss}"
        if others:
            first += f", against {loss_figure(loss_at(others[0].losses.rho, self.rank_by))} for {others[0].name}, the next best"
        rest = [name for name in QUANTILES if name != self.rank_by]
        numbers = " and ".join(f"its {RANK_WORDS[name]} loss is {loss_figure(loss_at(rho, name))}" for name in rest)
        better = [
            f"{least.name} has the smallest {RANK_WORDS[name]} loss ({loss_figure(loss_at(least.losses.rho, name))})"
            for name in rest
            if loss_at(
                (least := min(self.fitness.families, key=lambda each: loss_at(each.losses.rho, name))).losses.rho, name
            )
            < loss_at(rho, name)
        ]
        second = f"{numbers[0].upper()}{numbers[1:]}"
        if better:
            second += f"; {' and '.join(better)}"
        return f"{first}. {second}."

    def plan(
        self,
        *,
        source: str | Sequence[str] | Postgres,
        ledger: str,
        dataset: str | None = None,
        tuning_reason: str | None = None,
    ) -> PlanText:
        """A plan file that releases the recommended mechanisms; ``recordwise check`` accepts it.

        It says what it was tuned on. Tuned on the confidential records, it needs a reason, ``tuning_reason``, to be released.

        Args:
            source: The table of records, as ``Session`` takes it.
            ledger: The file of the ledger.
            dataset: The name of the dataset; that of the session unless given.
            tuning_reason: The reason for a release tuned on confidential records.

        Returns:
            The plan as text, with its key lists.
        """
        return plan_text(
            self.best.queries(),
            self.session.schema,
            dataset=dataset or self.session.dataset,
            source=source,
            ledger=ledger,
            tuned_on=self.fitness.data,
            tuning_reason=tuning_reason,
            comment=self._comment(),
        )

    def save_like(
        self,
        like: str | Path,
        path: str | Path,
        *,
        tuning_reason: str | None = None,
        parameters: Mapping[str, str | int] | None = None,
    ) -> Path:
        """Write the plan file that was examined with the recommended mechanisms, and everything else as it is: every query with its
        keys, levels and other statistics, the table, the ledger, the budget, labels, examples and outputs; and what they were
        tuned on.

        A plan that has no budget, and whose ledger does not exist yet, gets one that covers the recommended plan once.

        Args:
            like: The plan to continue, which ``recommend`` was given.
            path: The file to write.
            tuning_reason: The reason for a release tuned on confidential records.
            parameters: The values with which ``like`` was read; the new plan has the same parameters.

        Returns:
            The file.
        """
        if self.advice is None:
            raise ParameterError(
                parameter="like", problem="needs a recommendation for its plan", advice="Call recommend(..., plan=...)."
            )
        return carried_plan(
            like,
            path,
            self.advice.scope.plan.queries,
            self.queries(),
            tuned_on=self.fitness.data,
            tuning_reason=tuning_reason,
            comment=self._comment(),
            parameters=parameters,
            needs_budget=self.needs_budget,
        ).save(path)

    def _comment(self) -> str:
        # The losses of confidential records must not be in a file that may be shared.
        return self.summary() if self.fitness.data in NO_LOOK else self.privacy_label

    def curves(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """For each family, the share of records above every loss."""
        return {each.name: each.losses.rho.curve() for each in self.ranking()}

    def _numbers(self) -> dict[str, Any]:
        ranking = [each.name for each in self.ranking()]
        return self.fitness._numbers() | {
            "ranking": ranking,
            "rank_by": self.rank_by,
            "best": self.best.name,
            "why": self.summary(),
            "notes": list(self.notes()),
            "changes": [each.to_json() for each in self.changes()],
        }

    def rows(self) -> Rows:
        """Headers and rows of a table to show, best first."""
        return Fitness(
            goals=self.fitness.goals,
            data=self.fitness.data,
            families=self.ranking(),
            infeasible=self.fitness.infeasible,
        ).rows()

    def _about(self) -> str:
        return f"from {len(self.fitness.families)} families"

    def _title(self) -> str:
        return "Families that meet the goals, best first"


@reported
def recommend(
    session: Session,
    goals: Goal | Sequence[Goal],
    *,
    plan: PlanLike | None = None,
    candidates: Mapping[str, Any] | None = None,
    rank_by: str = BALANCED,
    fitted: bool = False,
    complete: bool = False,
    data: str = "confidential",
) -> Recommendation:
    """Rank families by the loss at which they meet accuracy goals; the offsets of transforms are chosen for each table.

    ``candidates`` are mechanisms by name, as in ``fitness``; the usual families otherwise.
    Without a plan each table gets its own mechanism. With one, every query stays as it is but for the mechanisms of the statistics
    that have goals and the split of its loss over its levels; everything else in the plan is charged too.

    Args:
        session: An open session; its records are read, and no budget is spent.
        goals: The accuracy goals; ``plan_goals`` makes them for a whole plan.
        plan: The plan whose statistics the goals are about: a query, several, a ``Plan`` or a plan file that was loaded. Of a plan
            file, the budget that is left in its ledger must cover the recommendation.
        candidates: The families to choose from; those of ``families`` unless given.
        rank_by: What is to be small: "balanced", the geometric mean of the median and the 99th percentile of the records' losses,
            or "median", "p99" or "maximum" alone. By the median alone the search moves loss to the largest records.
        fitted: Whether goals are about the best linear fit of all levels of a goal's query (``NAME_best``). Families with
            Gaussian noise then need less loss (T-FITSHARES); the others meet the goals with their noisy answers.
        complete: Whether the keys list every cell, so that levels can be fitted without published rests.
        data: What the records are: "public", "synthetic", "past" or "confidential". Unless they are declared public or synthetic,
            the ledger notes a look first.

    Returns:
        The families, the best first, and the plan to release with.
    """
    read_rank(rank_by)
    origin, wanted, view = read_origin(data), read_goals(goals), viewed(session, data, "plan recommend", plan)
    if plan is not None:
        advice = plan_advice(
            session, view, plan, wanted, candidates, rank_by=rank_by, fitted=fitted, complete=complete, data=origin
        )
        return Recommendation(fitness=advice.fitness, rank_by=rank_by, session=session, advice=advice)
    chosen = {**families(), **_sized_families(wanted, view.schema)} if candidates is None else dict(candidates)
    tables = goal_tables(view, wanted, chosen)
    sizes = {measure: ranking_size(view, measure, rank_by) for measure in {goal.measure for goal in wanted}}
    found: dict[str, tuple[Fitted, ...]] = {}
    infeasible: dict[str, str] = {}
    levels: dict[str, tuple[Query, ...]] = {}
    splits = LevelSplits(view, wanted, complete=complete) if fitted else None
    for name, family in tracked(chosen.items(), lambda item: f"fitting {item[0]}"):
        whole = [mechanism_for(family, goal) for goal in wanted]
        if splits and all(map(can_be_fitted, whole)):
            found[name], levels[name] = fitted_family(splits, tables, whole)
            continue
        try:
            found[name] = tuple(
                each
                for table in tables
                for each in best_mechanism((table,), name, mechanism_for(family, table.goal), sizes[table.goal.measure])
            )
        except InfeasibleError as error:
            infeasible[name] = str(error)
    if not found:
        raise ParameterError(
            parameter="goals", problem="cannot be met by any family", advice="; ".join(infeasible.values())
        )
    fitness = measured(session, view, wanted, found, infeasible, origin, firms=False, levels=levels)
    return Recommendation(fitness=fitness, rank_by=rank_by, session=session)


def _sized_families(goals: Sequence[Goal], schema: Schema) -> Mapping[str, Any]:
    """Sized families, where the keys of every table of every goal have sizes."""
    tables = [(goal, goal.query.tables()[number]) for goal in goals for number in goal.levels]
    if any(level_sizes(goal.query, level, goal.measure, schema) is None for goal, level in tables):
        return {}
    return sized_families(max(goal.at_least for goal in goals))
