"""From accuracy goals to a plan: finds the family that meets them with the least loss, explains why, and writes the plan file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.file.write import PlanText, plan_text
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.plan.sources import Postgres
from recordwise.plan.tuning import NO_LOOK
from recordwise.planning.candidates import families
from recordwise.planning.carried import carried_plan
from recordwise.planning.changes import PlanChange, changes
from recordwise.planning.fitness import FamilyFitness, Fitness, Fitted, InfeasibleError, measured
from recordwise.planning.fitted_goals import LevelSplits, fitted_family
from recordwise.planning.goals import Goal, goal_tables, mechanism_for, read_goals
from recordwise.planning.level_trees import can_be_fitted
from recordwise.planning.offsets import best_mechanism, ranked, ranking_size
from recordwise.planning.origin import figure, html_table, read_origin, viewed
from recordwise.planning.plan_recommend import PlanAdvice, plan_advice
from recordwise.planning.protection import hardly_protected
from recordwise.planning.ranks import BALANCED, QUANTILES, RANK_WORDS, loss_at, read_rank
from recordwise.planning.sized import level_sizes, sized_families
from recordwise.planning.whole import PlanLike
from recordwise.progress import reported, tracked
from recordwise.session import Session


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Recommendation:
    """Families ranked by the loss at which they meet the goals; confidential if the records are."""

    fitness: Fitness
    rank_by: str
    session: Session
    advice: PlanAdvice | None = None
    """What was found for a whole plan."""

    @property
    def privacy_label(self) -> str:
        """What the records are that it was computed from."""
        return self.fitness.privacy_label

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

    def why(self) -> str:
        """The recommendation explained in two sentences."""
        best = self.best
        others = [each for each in self.ranking() if each.name != best.name]
        rho = best.losses.rho
        loss = figure(loss_at(rho, self.rank_by))
        if self.advice is not None and best is not self.ranking()[0]:
            first = f"{best.name} is recommended, with a {RANK_WORDS[self.rank_by]} loss of {loss}"
        else:
            first = f"{best.name} meets the goals with the smallest {RANK_WORDS[self.rank_by]} loss, {loss}"
        if others:
            first += (
                f", against {figure(loss_at(others[0].losses.rho, self.rank_by))} for {others[0].name}, the next best"
            )
        rest = [name for name in QUANTILES if name != self.rank_by]
        numbers = " and ".join(f"its {RANK_WORDS[name]} loss is {figure(loss_at(rho, name))}" for name in rest)
        better = [
            f"{least.name} has the smallest {RANK_WORDS[name]} loss ({figure(loss_at(least.losses.rho, name))})"
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
        accept_tuning: str | None = None,
    ) -> PlanText:
        """A plan file that releases the recommended mechanisms; ``recordwise check`` accepts it.

        It says what it was tuned on. Tuned on the confidential records, it needs a reason, ``accept_tuning``, to be released.

        Args:
            source: The table of records, as ``Session`` takes it.
            ledger: The file of the ledger.
            dataset: The name of the dataset; that of the session unless given.
            accept_tuning: The reason for a release tuned on confidential records.

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
            accept_tuning=accept_tuning,
            comment=self._comment(),
        )

    def save(
        self, path: str | Path, *, source: str | Sequence[str] | Postgres, ledger: str, accept_tuning: str | None = None
    ) -> Path:
        """Write the plan file, and beside it the public keys where they are too many for it.

        Args:
            path: The file to write.
            source: The table of records, as ``Session`` takes it.
            ledger: The file of the ledger.
            accept_tuning: The reason for a release tuned on confidential records.

        Returns:
            The file.
        """
        return self.plan(source=source, ledger=ledger, accept_tuning=accept_tuning).save(path)

    def save_like(
        self,
        like: str | Path,
        path: str | Path,
        *,
        accept_tuning: str | None = None,
        parameters: Mapping[str, str | int] | None = None,
    ) -> Path:
        """Write the plan file that was examined with the recommended mechanisms, and everything else as it is: every query with its
        keys, levels and other statistics, the table, the ledger, the budget, labels, examples and outputs; and what they were
        tuned on.

        A plan that has no budget, and whose ledger does not exist yet, gets one that covers the recommended plan once.

        Args:
            like: The plan to continue, which ``recommend`` was given.
            path: The file to write.
            accept_tuning: The reason for a release tuned on confidential records.
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
            accept_tuning=accept_tuning,
            comment=self._comment(),
            parameters=parameters,
            needs_budget=self.needs_budget,
        ).save(path)

    def _comment(self) -> str:
        # The losses of confidential records must not be in a file that may be shared.
        return self.why() if self.fitness.data in NO_LOOK else self.privacy_label

    def curves(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """For each family, the share of records above every loss."""
        return {each.name: each.losses.rho.curve() for each in self.ranking()}

    def to_json(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        ranking = [each.name for each in self.ranking()]
        return self.fitness.to_json() | {
            "ranking": ranking,
            "rank_by": self.rank_by,
            "best": self.best.name,
            "why": self.why(),
            "notes": list(self.notes()),
            "changes": [each.to_json() for each in self.changes()],
        }

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Headers and rows of a table to show, best first."""
        return Fitness(
            goals=self.fitness.goals,
            data=self.fitness.data,
            families=self.ranking(),
            infeasible=self.fitness.infeasible,
        ).rows()

    def __repr__(self) -> str:
        return f"<Recommendation from {len(self.fitness.families)} families: {self.privacy_label}>"

    def _repr_html_(self) -> str:
        return html_table(
            "Families that meet the goals, best first",
            *self.rows(),
            privacy_label=self.privacy_label,
            notes="\n".join([self.why(), *self.notes()]),
        )


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
    chosen = {**families(), **_sized(wanted, view.schema)} if candidates is None else dict(candidates)
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


def _sized(goals: Sequence[Goal], schema: Schema) -> Mapping[str, Any]:
    """Sized families, where the keys of every table of every goal have sizes."""
    tables = [(goal, goal.query.tables()[number]) for goal in goals for number in goal.levels]
    if any(level_sizes(goal.query, level, goal.measure, schema) is None for goal, level in tables):
        return {}
    return sized_families(max(goal.at_least for goal in goals))
