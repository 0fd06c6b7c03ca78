"""From accuracy goals to a plan: finds the family that meets them with the least loss, explains why, and writes the plan file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.file.write import PlanText, plan_text
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.plan.sources import Postgres
from recordwise.planning.candidates import best_offset, families
from recordwise.planning.carried import carried_plan
from recordwise.planning.fitness import FamilyFitness, Fitness, Fitted, InfeasibleError, fit, measured
from recordwise.planning.fitted_goals import LevelSplits, fitted_family
from recordwise.planning.goals import Goal, GoalTable, goal_tables, mechanism_for, read_goals
from recordwise.planning.level_trees import can_be_fitted
from recordwise.planning.losses import Losses
from recordwise.planning.origin import figure, html_table, read_origin
from recordwise.planning.shapes import COUNT
from recordwise.planning.sized import level_sizes, sized_families
from recordwise.policy.measure import Measure
from recordwise.progress import reported, tracked
from recordwise.session import Session
from recordwise.session.owner import OwnerView

RANKS = {"median": 0.5, "p99": 0.99, "maximum": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Recommendation:
    """Families ranked by the loss at which they meet the goals; confidential if the records are."""

    fitness: Fitness
    rank_by: str
    session: Session

    @property
    def privacy_label(self) -> str:
        """What the records are that it was computed from."""
        return self.fitness.privacy_label

    def ranking(self) -> tuple[FamilyFitness, ...]:
        """Best first; ties in the chosen quantile are broken by the others."""
        order = [self.rank_by, *(name for name in RANKS if name != self.rank_by)]
        return tuple(sorted(self.fitness.families, key=lambda each: [loss_at(each.losses.rho, name) for name in order]))

    @property
    def best(self) -> FamilyFitness:
        """The family that comes first."""
        return self.ranking()[0]

    def why(self) -> str:
        """The recommendation explained in two sentences."""
        best, *others = self.ranking()
        rho = best.losses.rho
        words = {"median": "median", "p99": "99th-percentile", "maximum": "maximum"}
        first = f"{best.name} meets the goals with the smallest {words[self.rank_by]} loss, {figure(loss_at(rho, self.rank_by))}"
        if others:
            first += (
                f", against {figure(loss_at(others[0].losses.rho, self.rank_by))} for {others[0].name}, the next best"
            )
        rest = [name for name in RANKS if name != self.rank_by]
        numbers = " and ".join(f"its {words[name]} loss is {figure(loss_at(rho, name))}" for name in rest)
        better = [
            f"{least.name} has the smallest {words[name]} loss ({figure(loss_at(least.losses.rho, name))})"
            for name in rest
            if (least := min(self.fitness.families, key=lambda each: loss_at(each.losses.rho, name))) is not best
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
        query: int = 1,
        accept_tuning: str | None = None,
        parameters: Mapping[str, str | int] | None = None,
    ) -> Path:
        """Write the plan ``like`` with the recommended mechanisms for its query of this number. Its table, ledger, budget,
        labels,
        examples, outputs and all other statistics are carried over; so is what they were tuned on.

        Args:
            like: The plan to continue.
            path: The file to write.
            query: The number of the query, from 1.
            accept_tuning: The reason for a release tuned on confidential records.
            parameters: The values with which ``like`` was read; the new plan has the same parameters.

        Returns:
            The file.
        """
        return carried_plan(
            like,
            path,
            self.best.queries(),
            number=query,
            measures={goal.measure for goal in self.fitness.goals},
            tuned_on=self.fitness.data,
            accept_tuning=accept_tuning,
            comment=self._comment(),
            parameters=parameters,
        ).save(path)

    def _comment(self) -> str:
        # The losses of confidential records must not be in a file that may be shared.
        return self.why() if self.fitness.data != "confidential" else self.privacy_label

    def curves(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """For each family, the share of records above every loss."""
        return {each.name: each.losses.rho.curve() for each in self.ranking()}

    def to_json(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        ranking = [each.name for each in self.ranking()]
        return self.fitness.to_json() | {"ranking": ranking, "rank_by": self.rank_by, "why": self.why()}

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
            notes=self.why(),
        )


def loss_at(losses: Losses, name: str) -> float:
    return losses.quantile(RANKS[name])


@reported
def recommend(
    session: Session,
    goals: Goal | Sequence[Goal],
    *,
    candidates: Mapping[str, Any] | None = None,
    rank_by: str = "p99",
    fitted: bool = False,
    complete: bool = False,
    data: str = "confidential",
) -> Recommendation:
    """Rank families by the loss at which they meet accuracy goals; the offsets of transforms are chosen for each table.

    ``rank_by`` is median, p99 or maximum. ``candidates`` are mechanisms by name, as in ``fitness``; the usual families otherwise.

    Args:
        session: An open session; its records are read, and no budget is spent.
        goals: The accuracy goals.
        candidates: The families to choose from; those of ``families`` unless given.
        rank_by: "median", "p99" or "maximum" of the records' losses.
        fitted: Whether goals are about the best linear fit of all levels of a goal's query (``NAME_best``). Families with
            Gaussian noise then need less loss (T-FITSHARES); the others meet the goals with their noisy answers.
        complete: Whether the keys list every cell, so that levels can be fitted without published rests.
        data: What the records are: "public", "synthetic", "past" or "confidential". A look at confidential records is noted in the
            ledger.

    Returns:
        The families, the best first, and the plan to release with.
    """
    if rank_by not in RANKS:
        raise ParameterError(parameter="rank_by", problem=f"must be one of {', '.join(RANKS)}")
    origin, wanted, view = read_origin(data), read_goals(goals), session.owner.view(data=data)
    chosen = {**families(), **_sized(wanted, view.schema)} if candidates is None else dict(candidates)
    tables = goal_tables(view, wanted, chosen)
    sizes = {measure: _size(view, measure, rank_by) for measure in {goal.measure for goal in wanted}}
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
                _fitted(table, name, mechanism_for(family, table.goal), sizes[table.goal.measure]) for table in tables
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


def _size(view: OwnerView, measure: str, rank_by: str) -> float:
    """The record whose loss ranks the families: policies grow with the measure, so it has the loss of the given rank."""
    if measure == COUNT:
        return 1.0
    counted = view.value_counts([measure])
    if counted is None:
        raise ParameterError(parameter="measure", problem=f"'{measure}' has too many distinct values for planning")
    sizes = Losses.of(np.asarray(counted.columns[measure], np.float64), counted.records)
    return max(loss_at(sizes, rank_by), float(Fraction(_step(view, measure))))


def _step(view: OwnerView, measure: str) -> Fraction:
    declared = view.schema.measure(measure)
    return declared.step if declared else Fraction(1)


def _fitted(table: GoalTable, name: str, mechanism: Any, size: float) -> Fitted:
    """The family's best mechanism for one table; for a transform, at the offset where the ranking record loses least."""
    if not hasattr(mechanism, "with_offset") or table.goal.measure == COUNT:
        return fit(table, name, mechanism)
    measure = Measure(table.goal.measure, Fraction(table.step))

    def cost(offset: Fraction) -> float:
        try:
            fitted = fit(table, name, mechanism.with_offset(offset))
        except InfeasibleError:
            return float("inf")
        return float(fitted.mechanism.policy(measure).loss({measure.name: np.array([size])})[0])

    return fit(table, name, mechanism.with_offset(best_offset(cost, total=table.deciding(), step=table.step)))
