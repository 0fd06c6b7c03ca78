"""From accuracy goals to a plan: the least loss that meets them.

The recommendation is explained, compared with the remaining budget, and written as a plan file.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Literal, overload

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.text import figure, share_text
from recordwise.mechanisms.base import Mechanism
from recordwise.plan.cost import plan_policy
from recordwise.plan.describe import table_name
from recordwise.plan.expressions import Predicate
from recordwise.plan.file.write import PlanText, plan_text
from recordwise.plan.plan import Plan
from recordwise.plan.query import Query
from recordwise.plan.schema import NO_LOOK, Schema
from recordwise.plan.sources import Postgres
from recordwise.planning.losses import (
    BALANCED,
    LEAST,
    QUANTILES,
    RANK_WORDS,
    Left,
    LossPair,
    budget_words,
    firm_losses,
    hardly_protected,
    left_of,
    loss_at,
    policy_losses,
    read_rank,
)
from recordwise.planning.new_plan import PlanChange, carried_plan, changes
from recordwise.planning.result import Result, Rows, candidate_named, loss_figure
from recordwise.planning.scope import PlanLike, Scope, read_origin, viewed
from recordwise.planning.search.cheaper import what_would_have_to_give
from recordwise.planning.search.fits import (
    Calibrated,
    FittedGoals,
    InfeasibleError,
    PlanFits,
    Search,
    StatisticFit,
    best_mechanism,
    fit,
    plan_fits,
    ranking_size,
    read_fits,
    reads_complete,
    with_public_shares,
)
from recordwise.planning.search.goals import (
    CLAMPED,
    OWN,
    Goal,
    GoalTable,
    families,
    has_amount,
    level_sizes,
    mechanism_for,
    pure_families,
    read_goals,
    sized_families,
    tables_of,
)
from recordwise.planning.search.shares import Allocation, allocation, can_be_fitted
from recordwise.policy.policy import Policy
from recordwise.progress import reported, tracked
from recordwise.session import Session
from recordwise.session.checks import needs_most
from recordwise.session.owner import OwnerView

# The candidates, each with what it costs.


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class RankedCandidate:
    """A candidate: its mechanism for every table, and the combined cost."""

    name: str
    calibrated: tuple[Calibrated, ...]
    policy: Policy
    losses: LossPair
    firms: LossPair | None
    asked: tuple[Query, ...]

    def queries(self) -> tuple[Query, ...]:
        """Return the queries to release: of a plan, or one for each table, or for fitted errors one for each goal."""
        return self.asked


def ranked(candidates: Sequence[RankedCandidate], rank_by: str) -> tuple[RankedCandidate, ...]:
    """Best first; ties in the chosen rank are broken by the others."""
    order = [rank_by, *(name for name in QUANTILES if name != rank_by)]
    return tuple(sorted(candidates, key=lambda each: [loss_at(each.losses.rho, name) for name in order]))


def with_best_clamp(
    found: Sequence[RankedCandidate], infeasible: Mapping[str, str], rank_by: str
) -> tuple[tuple[RankedCandidate, ...], dict[str, str]]:
    """Keep the best clamp alone or, where none meets the goals, why the last one does not."""
    clamps = [each.name for each in ranked(found, rank_by) if each.name.startswith(CLAMPED)]
    misses = [name for name in infeasible if name.startswith(CLAMPED)]
    left_out = {*clamps[1:], *(misses if clamps else misses[:-1])}
    kept = {name: told for name, told in infeasible.items() if name not in left_out}
    return tuple(each for each in found if each.name not in left_out), kept


def _candidate_json(each: RankedCandidate) -> dict[str, Any]:
    tables = [
        {
            "table": one.table.name,
            "mechanism": one.mechanism.text(),
            "deciding_total": one.deciding,
            "share_met": one.share_met,
        }
        for one in each.calibrated
    ]
    found = {"name": each.name, "losses": each.losses.rho.to_json(), "tables": tables}
    return found if each.firms is None else found | {"firm_losses": each.firms.rho.to_json()}


def _candidate_rows(each: RankedCandidate) -> list[list[str]]:
    rho = each.losses.rho
    numbers = [loss_figure(rho.quantile(0.5)), loss_figure(rho.quantile(0.99)), loss_figure(rho.maximum)]
    numbers += [loss_figure(each.firms.rho.quantile(0.99))] if each.firms else []
    rows = []
    for number, one in enumerate(each.calibrated):
        first = [each.name, *numbers] if number == 0 else [""] * (1 + len(numbers))
        text = one.mechanism.text()
        rows.append(
            [
                *first,
                text if len(each.calibrated) == 1 else f"{one.table.name}: {text}",
                f"{share_text(one.share_met, 1)}",
            ]
        )
    return rows


# Mechanisms for a whole plan: each family for all its statistics, and the best family for each, with the split over
# levels.


MOST_TRIED = 4
"""So many families, the best first, and the plan's own noise, are tried against what is left of a budget; each needs a proof for
every possible record."""
Place = tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PlanAdvice:
    """CONFIDENTIAL if the records are: the candidate for a whole plan that what is left of the budget covers."""

    scope: Scope
    left: Left
    best: RankedCandidate
    notes: Callable[[], tuple[str, ...]]
    """What a reader must know about it, worked out when it is read."""


def plan_advice(
    session: Session,
    view: OwnerView,
    plan: PlanLike,
    goals: Sequence[Goal],
    search: Search,
    *,
    firms: bool,
    new_budget: bool = False,
) -> tuple[tuple[RankedCandidate, ...], dict[str, str], PlanAdvice]:
    """Return every candidate for a whole plan, those that meet no goal, and the one to take."""
    left = left_of(session, plan, new_budget=new_budget)
    pure = left.budget is not None and left.budget.is_pure
    if pure and search.candidates is None:
        search = replace(search, candidates=pure_families())
    fits, infeasible = plan_fits(view, plan, goals, search)
    assigned = fits.assignments()
    splits = {name: fits.split(chosen) for name, chosen in assigned.items()}
    queries = {name: fits.queries(chosen, splits[name]) for name, chosen in assigned.items()}
    calibrated = {name: fits.calibrated(chosen, splits[name]) for name, chosen in assigned.items()}
    found = _measured(session, view, calibrated, queries, None, firms=firms)
    found, infeasible = _pure_ones(found, infeasible) if pure else (found, infeasible)
    found, infeasible = with_best_clamp(found, infeasible, search.rank_by)
    order = ranked(found, search.rank_by)
    refusals: dict[str, str] = {}
    best, own, complete = None, order[0].name, reads_complete(plan, search.complete)
    for each in [*order[:MOST_TRIED], *(each for each in order[MOST_TRIED:] if each.name == OWN)]:
        told = left.refusal(each.policy)
        if told is None:
            best, own = each, each.name
            break
        refusals[each.name] = told
    notes = left.reserve_words()
    notes += [_passed_over(order[0].name, refusals[order[0].name], best)] if refusals else []
    if best is not None:
        parts = (fits, assigned[own], splits[own], best, found, left)
        best, splits[own], found = _with_public_shares(session, view, *parts, complete=complete)
    else:
        own = _largest_part(session, fits, assigned, splits, [each.name for each in order], left)
        splits[own] = with_public_shares(fits, assigned[own], splits[own], complete=complete)
        best, note = _reduced(session, view, fits, assigned[own], splits[own], own, left)
        notes += [note, *([NOT_CHARGED] if left.is_new else [])]
    taken, chosen, split = best, assigned[own], splits[own]

    notes += _kept_shares(fits, chosen)

    def more() -> tuple[str, ...]:
        return (*notes, *_protection_notes(taken, lambda: fits.costs_of(chosen, split)))

    return found, infeasible, PlanAdvice(scope=fits.scope, left=left, best=best, notes=cache(more))


def _pure_ones(
    found: Sequence[RankedCandidate], infeasible: Mapping[str, str]
) -> tuple[tuple[RankedCandidate, ...], dict[str, str]]:
    """Keep what a budget in pure epsilon can cover."""
    kept = tuple(each for each in found if each.policy.pure_problem() is None)
    if not kept:
        raise ParameterError(
            parameter="candidates",
            problem=f"have no pure epsilon, which the budget is stated in: {found[0].policy.pure_problem()}",
            advice="Give all statistics Laplace noise, GeneralizedGaussian(shape=1, ...), or transforms with laplace_scale.",
        )
    others = {each.name: "no pure epsilon, which the budget is stated in" for each in found if each not in kept}
    return kept, {**infeasible, **others}


def _with_public_shares(
    session: Session,
    view: OwnerView,
    fits: PlanFits,
    chosen: Mapping[Place, StatisticFit],
    split: tuple[Query, ...],
    best: RankedCandidate,
    found: tuple[RankedCandidate, ...],
    left: Left,
    *,
    complete: bool,
) -> tuple[RankedCandidate, tuple[Query, ...], tuple[RankedCandidate, ...]]:
    """Return the best candidate with shares that public lists decide where these cost hardly more, in all places."""
    public = with_public_shares(fits, chosen, split, complete=complete)
    if public == split:
        return best, split, found
    own = {best.name: fits.calibrated(chosen, public)}
    (made,) = _measured(
        session, view, own, {best.name: fits.queries(chosen, public)}, None, firms=best.firms is not None
    )
    if left.refusal(made.policy) is not None:
        return best, split, found
    return made, public, tuple(made if each is best else each for each in found)


def _kept_shares(fits: PlanFits, chosen: Mapping[Place, StatisticFit]) -> Iterator[str]:
    """Yield which queries keep the shares that the plan states, and why."""
    for number, cost in fits.costs.items():
        why = cost.kept_because([fit for place, fit in chosen.items() if place[0] == number])
        if why and len(cost.query.tables()) > 1 and cost.query.best is None:
            yield (
                f"The shares of the levels of query {cost.query.name or number + 1} stay as the plan states them, because {why}; "
                'share = "best" finds them from public lists alone.'
            )


def _protection_notes(best: RankedCandidate, costs: Callable[[], dict[str, float]]) -> Iterator[str]:
    """Yield whom the losses hardly protect, and what would have to give."""
    words = hardly_protected(best.losses.rho)
    if words is not None:
        yield words
        sized = any(each.mechanism.is_sized for each in best.calibrated)
        yield from what_would_have_to_give(best.losses.rho, best.calibrated, costs(), sized=sized)


def _measured(
    session: Session,
    view: OwnerView,
    calibrated: Mapping[str, tuple[Calibrated, ...]],
    queries: Mapping[str, tuple[Query, ...]],
    condition: Predicate | None,
    *,
    firms: bool,
) -> tuple[RankedCandidate, ...]:
    """Return candidates with the losses of the records, all in one pass."""
    policies = {name: session.policy_of(*own) for name, own in queries.items()}
    losses = policy_losses(view, policies, condition=condition)
    joint = firm_losses(view, queries) if firms else {}
    return tuple(
        RankedCandidate(
            name=name,
            calibrated=own,
            policy=policies[name],
            losses=losses[name],
            firms=joint.get(name),
            asked=queries[name],
        )
        for name, own in calibrated.items()
    )


def _passed_over(name: str, told: str, best: RankedCandidate | None) -> str:
    if best is None:
        return f"What is left of the budget covers none of the best families: with {name}, {told}."
    return f"{name} costs less at this rank, but what is left of the budget does not cover it: {told}."


NOT_CHARGED = "Nothing was charged to the budget yet: --new-budget (new_budget=True) writes one that covers the goals."


def _largest_part(
    session: Session,
    fits: PlanFits,
    assigned: Mapping[str, Mapping[Place, StatisticFit]],
    splits: Mapping[str, tuple[Query, ...]],
    order: Sequence[str],
    left: Left,
) -> str:
    """Return the candidate of which the remaining budget covers the largest part of the loss.

    Of the best ones, and of the best whose noise does not follow sizes: cells of no listed size lose most.
    """

    def prototypes(name: str) -> list[Mechanism]:
        return [each.prototype for each in assigned[name].values()]

    # Other noise changes its shape with its share of the loss, and may have no law at a small one.
    scalable = [each for each in order if all(map(has_amount, prototypes(each)))] or [order[0]]
    plain = [each for each in scalable if not any(own.is_sized for own in prototypes(each))]
    parts: dict[str, Fraction] = {}
    for name in dict.fromkeys([*scalable[: MOST_TRIED - 1], *plain[:1]]):
        parts[name] = _part_covered(session, fits, assigned[name], splits[name], left) or Fraction(0)
    return max(parts, key=lambda each: parts[each])


def _part_covered(
    session: Session, fits: PlanFits, chosen: Mapping[Place, StatisticFit], split: Sequence[Query], left: Left
) -> Fraction | None:
    """Return the part of a candidate's loss that the remaining budget covers."""
    return left.share_covered(lambda part: session.policy_of(*fits.queries(chosen, split, part)))


def _reduced(
    session: Session,
    view: OwnerView,
    fits: PlanFits,
    chosen: Mapping[Place, StatisticFit],
    split: Sequence[Query],
    name: str,
    left: Left,
) -> tuple[RankedCandidate, str]:
    """Return a candidate with as much noise as the remaining budget needs."""
    part = _part_covered(session, fits, chosen, split, left)
    if part is None:
        least = Plan(schema=session.schema, queries=fits.queries(chosen, split, LEAST))
        raise _too_much(least, chosen, left)
    queries = fits.queries(chosen, split, part)
    policy = session.policy_of(*queries)
    calibrated = fits.calibrated(chosen, split, part)
    found = RankedCandidate(
        name=f"{name}, within the budget",
        calibrated=calibrated,
        policy=policy,
        losses=policy_losses(view, {name: policy})[name],
        firms=None,
        asked=queries,
    )
    met = min(each.share_met for each in calibrated)
    words = (
        f"The plan is recommended at {share_text(float(part), 1)} of the loss that the goals need, with errors "
        f"{figure(float(part) ** -0.5)} times as large: in its worst table {share_text(met, 1)} of the cells meet the goal. Loosen "
        "the goals, publish less, or raise the budget."
    )
    return found, words


def _too_much(plan: Plan, chosen: Mapping[Place, StatisticFit], left: Left) -> ParameterError:
    """Refuse a plan whose statistics without goals cost more than is left."""
    others = [each for each in plan.parts() if (each.table.query, each.alias) not in chosen]
    names = ", ".join(dict.fromkeys(f"{each.alias} in {table_name(plan, each.table)}" for each in others))
    error = left.refused(plan_policy(plan))
    most = "" if error is None else f" {budget_words(error).capitalize()}. {needs_most(plan, error)}"
    kept = f"What has no goal keeps its noise: {names}. Give these a goal or more noise, or drop them."
    more = NOT_CHARGED if left.is_new else "A budget that was charged is raised by recordwise ledger amend."
    return ParameterError(
        parameter="plan",
        problem="asks for more than is left of its budget, whatever the amount of noise of the candidates that were tried",
        advice=" ".join(each for each in (kept if names else "", most.strip(), *left.reserve_words(), more) if each),
    )


# The recommendation: the family that meets the goals with the least loss, and why.


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Recommendation(Result):
    """Candidates ranked by the loss at which they meet goals.

    CONFIDENTIAL if the records are.
    """

    goals: tuple[Goal, ...]
    data: str
    candidates: tuple[RankedCandidate, ...]
    infeasible: dict[str, str]
    """Candidates that cannot meet the goals with any amount of noise, and why."""
    rank_by: str
    session: Session
    advice: PlanAdvice | None = None
    """What was found for a full plan."""

    def __getitem__(self, name: str) -> RankedCandidate:
        return candidate_named(self.candidates, name, self.infeasible)

    def ranking(self) -> tuple[RankedCandidate, ...]:
        """Best first; ties in the chosen quantile are broken by the others."""
        return ranked(self.candidates, self.rank_by)

    @property
    def best(self) -> RankedCandidate:
        """The recommended candidate.

        The first or, of a plan with a budget, the first that the remaining budget covers.
        """
        return self.ranking()[0] if self.advice is None else self.advice.best

    def queries(self) -> tuple[Query, ...]:
        """Return the queries to release."""
        return self.best.queries()

    def changes(self) -> tuple[PlanChange, ...]:
        """Return the differences from the examined plan by statistic and table."""
        return () if self.advice is None else changes(self.advice.scope.plan.queries, self.queries())

    @property
    def needs_budget(self) -> bool:
        """Whether a plan file like the examined one needs a budget."""
        return self.advice is not None and self.advice.left.needs_budget

    def notes(self) -> tuple[str, ...]:
        """Return warnings and advice for readers.

        Whom the losses hardly protect, what would have to give, and where the budget ends.
        """
        if self.advice is not None:
            return self.advice.notes()
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
                (least := min(self.candidates, key=lambda each: loss_at(each.losses.rho, name))).losses.rho, name
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
            tuned_on=self.data,
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

        A plan without a budget whose ledger does not exist yet gets one that covers the recommended plan and a revision.

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
            tuned_on=self.data,
            tuning_reason=tuning_reason,
            comment=self._comment(),
            parameters=parameters,
            needs_budget=self.needs_budget,
            reserve=self.advice.left.reserve,
        ).save(path)

    def _comment(self) -> str:
        # The losses of confidential records must not be in a file that may be shared.
        return self.summary() if self.data in NO_LOOK else self.privacy_label

    def curves(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """For each family, the share of records above every loss."""
        return {each.name: each.losses.rho.curve() for each in self.ranking()}

    def _numbers(self) -> dict[str, Any]:
        return {
            "goals": [goal.words() for goal in self.goals],
            "families": [_candidate_json(each) for each in self.candidates],
            "infeasible": self.infeasible,
            "ranking": [each.name for each in self.ranking()],
            "rank_by": self.rank_by,
            "best": self.best.name,
            "why": self.summary(),
            "notes": list(self.notes()),
            "changes": [each.to_json() for each in self.changes()],
        }

    def rows(self) -> Rows:
        """Headers and rows of a table to show, best first."""
        firms = ["firm p99"] if any(each.firms for each in self.candidates) else []
        headers = ["family", "median", "p99", "maximum", *firms, "mechanism", "cells met"]
        return headers, [row for each in self.ranking() for row in _candidate_rows(each)]

    def _about(self) -> str:
        return f"from {len(self.candidates)} families"

    def _title(self) -> str:
        return "Families that meet the goals, best first"


@overload
def recommend(
    session: Session,
    goals: Goal | Sequence[Goal],
    *,
    keep_mechanisms: Literal[True] | Mechanism | Mapping[str, Mechanism],
    plan: PlanLike | None = None,
    fitted: bool | None = None,
    complete: bool | None = None,
    data: str = "confidential",
) -> Allocation: ...


@overload
def recommend(
    session: Session,
    goals: Goal | Sequence[Goal],
    *,
    plan: PlanLike | None = None,
    candidates: Mapping[str, Any] | None = None,
    rank_by: str = BALANCED,
    fitted: bool | None = None,
    complete: bool | None = None,
    keep_offsets: bool = False,
    firms: bool = False,
    new_budget: bool = False,
    data: str = "confidential",
) -> Recommendation: ...


@reported
def recommend(
    session: Session,
    goals: Goal | Sequence[Goal],
    *,
    plan: PlanLike | None = None,
    candidates: Mapping[str, Any] | None = None,
    keep_mechanisms: bool | Mechanism | Mapping[str, Mechanism] = False,
    rank_by: str = BALANCED,
    fitted: bool | None = None,
    complete: bool | None = None,
    keep_offsets: bool = False,
    firms: bool = False,
    new_budget: bool = False,
    data: str = "confidential",
) -> Recommendation | Allocation:
    """Rank candidates by the loss at which they meet accuracy goals.

    A candidate is a mechanism whose noise is set again while everything else is kept, or a mapping from measures to such
    mechanisms. More noise means a smaller loss for every record, so the most noise that meets a goal is the smallest policy
    (T-MOST-NOISE). Without a plan each table gets its own mechanism. With one, every query stays as it is but for the mechanisms
    of the statistics that have goals and the split of its loss over its levels (``share = "best"`` where that costs at most a
    tenth more); everything else in the plan is charged too.

    With ``keep_mechanisms`` nothing is chosen but shares: the loss stays, and is split so that the worst table, measured against
    its goal, is as good as possible (T-EVEN). Each query of a plan splits its loss over its levels, in one way for all its
    statistics; without a plan, one loss is split over all tables.

    Args:
        session: An open session; its records are read, and no budget is spent.
        goals: The accuracy goals; ``plan_goals`` makes them for a whole plan.
        plan: The plan whose statistics the goals are about: a query, several, a ``Plan`` or a plan file that was loaded. Of a plan
            file, the budget that is left in its ledger must cover the recommendation.
        candidates: The families to choose from; those of ``families`` unless given.
        keep_mechanisms: True to keep those of the plan; without a plan, the mechanism that a single table would get alone, or one
            for each measure.
        rank_by: What is to be small: "balanced", the geometric mean of the median and the 99th percentile of the records' losses,
            or "median", "p99" or "maximum" alone. By the median alone the search moves loss to the largest records.
        fitted: Whether goals are about the best linear fit of all levels of a goal's query (``NAME_best``); unless given, where
            keys are complete. Families with Gaussian noise then need less loss (T-FITSHARES); the others meet the goals with
            their noisy answers.
        complete: Whether the keys list every cell, so that levels can be fitted without published rests; unless given, as the basic
            tables of a plan file say.
        keep_offsets: Whether transforms keep their offsets; otherwise the best is chosen for each table. Without a plan only.
        firms: Whether the joint losses of firms are computed too.
        new_budget: Whether the plan file gets a budget that covers the recommendation and its reserve, instead of its own, to
            which nothing may have been charged.
        data: What the records are: "public", "synthetic", "past" or "confidential". Unless they are declared public or synthetic,
            the ledger notes a look first.

    Returns:
        The families, the best first, and the plan to release with; with ``keep_mechanisms``, the share and the error of each table.
    """
    read_rank(rank_by)
    fitted, complete = read_fits(plan, fitted, complete)
    if keep_mechanisms is not False:
        others = {"candidates": candidates, "keep_offsets": keep_offsets, "firms": firms, "new_budget": new_budget}
        _check_kept(plan, keep_mechanisms, **others)
    origin, wanted, view = read_origin(data), read_goals(goals), viewed(session, data, "plan recommend", plan)
    if keep_mechanisms is not False:
        kept = keep_mechanisms if plan is None else None
        return allocation(session, view, wanted, plan, kept, origin, fitted=fitted, complete=complete)
    search = Search(candidates=candidates, rank_by=rank_by, fitted=fitted, complete=complete)
    advice = None
    if plan is not None:
        found, infeasible, advice = plan_advice(session, view, plan, wanted, search, firms=firms, new_budget=new_budget)
    else:
        chosen = {**families(), **_sized_families(wanted, view.schema)} if candidates is None else dict(candidates)
        tables = tables_of(view, wanted, chosen)
        sizes = None if keep_offsets else {each: ranking_size(view, each, rank_by) for each in _measures(wanted)}
        levels = FittedGoals(view, wanted, complete=complete) if fitted else None
        calibrated, queries, infeasible = _by_table(chosen, wanted, tables, sizes, levels)
        conditions = {goal.query.condition for goal in wanted}
        condition = conditions.pop() if len(conditions) == 1 else None
        found = _measured(session, view, calibrated, queries, condition, firms=firms)
        found, infeasible = with_best_clamp(found, infeasible, rank_by)
    return Recommendation(
        goals=wanted,
        data=origin,
        candidates=found,
        infeasible=infeasible,
        rank_by=rank_by,
        session=session,
        advice=advice,
    )


def _check_kept(plan: PlanLike | None, kept: Any, **others: Any) -> None:
    """Refuse what makes no sense together with mechanisms that are kept."""
    for name, given in others.items():
        if given:
            raise ParameterError(
                parameter=name, problem="is for mechanisms that are chosen, and keep_mechanisms keeps them"
            )
    if (plan is None) == (kept is True):
        raise ParameterError(
            parameter="keep_mechanisms",
            problem="must be True with a plan, and the mechanisms to keep without one",
            advice="Give plan=..., or keep_mechanisms={'NAME': rw.Gaussian(rho='0.1')}.",
        )


def _measures(goals: Sequence[Goal]) -> set[str]:
    return {goal.measure for goal in goals}


def _by_table(
    candidates: Mapping[str, Any],
    goals: Sequence[Goal],
    tables: Sequence[GoalTable],
    sizes: Mapping[str, float] | None,
    levels: FittedGoals | None,
) -> tuple[dict[str, tuple[Calibrated, ...]], dict[str, tuple[Query, ...]], dict[str, str]]:
    """Return each candidate with its own noise for each table, its queries, and why others cannot meet the goals."""
    found: dict[str, tuple[Calibrated, ...]] = {}
    queries: dict[str, tuple[Query, ...]] = {}
    infeasible: dict[str, str] = {}
    for name, candidate in tracked(candidates.items(), lambda item: f"fitting {item[0]}"):
        own = [mechanism_for(candidate, goal) for goal in goals]
        if levels and all(map(can_be_fitted, own)):
            found[name], queries[name] = levels.calibrated(name, own, tables)
            continue
        try:
            found[name] = tuple(_for_table(table, name, own[table.asked.query], sizes) for table in tables)
        except InfeasibleError as error:
            infeasible[name] = str(error)
            continue
        queries[name] = tuple(each.table.with_mechanism(each.mechanism) for each in found[name])
    if not found:
        raise ParameterError(
            parameter="goals", problem="cannot be met by any family", advice="; ".join(infeasible.values())
        )
    return found, queries, infeasible


def _for_table(table: GoalTable, name: str, mechanism: Mechanism, sizes: Mapping[str, float] | None) -> Calibrated:
    if sizes is None:
        return fit(table, name, mechanism)
    (found,) = best_mechanism((table,), name, mechanism, sizes[table.goal.measure])
    return found


def _sized_families(goals: Sequence[Goal], schema: Schema) -> Mapping[str, Any]:
    """Return sized candidates if all keys of all goals have sizes."""
    tables = [(goal, goal.query.tables()[number]) for goal in goals for number in goal.levels]
    if any(level_sizes(goal.query, level, goal.measure, schema) is None for goal, level in tables):
        return {}
    return sized_families(max(goal.at_least for goal in goals))
