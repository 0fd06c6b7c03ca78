"""Unit splitting over a grid of thresholds and losses: the errors of a workload, and how many records would lose more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, positive
from recordwise.exact.text import formula_text, share_text
from recordwise.mechanisms.gaussian import UnitSplit
from recordwise.planning.losses import Losses, policy_losses
from recordwise.planning.result import Result, Rows, loss_figure
from recordwise.planning.scope import (
    COUNT,
    PlanLike,
    Scope,
    check_measure,
    plan_totals,
    read_origin,
    same_for_all,
    scope_of,
    step_of,
    viewed,
)
from recordwise.progress import reported, tracked
from recordwise.session import Session
from recordwise.session.owner import OwnerView


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """One threshold at one rho."""

    measure: str
    at: float
    rho: float
    share_above: float
    """The share of the records with a loss above rho."""
    median_error: float
    """Half of the cells have an expected absolute relative error of at most this value."""
    mean_error: float
    p90_error: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Sweep(Result):
    """Results by threshold and rho; confidential if the records are."""

    data: str
    points: tuple[SweepPoint, ...]

    @property
    def measure(self) -> str:
        """What is summed, in words."""
        return ", ".join(self._measures())

    def _measures(self) -> list[str]:
        return list(dict.fromkeys(point.measure for point in self.points))

    def curves(self) -> dict[str, tuple[FloatArray, FloatArray, FloatArray]]:
        """For each rho: thresholds, shares of the records with a loss above rho, and median errors; of several measures, each."""
        found, several = {}, len(self._measures()) > 1
        for measure in self._measures():
            own = [point for point in self.points if point.measure == measure]
            for rho in sorted({point.rho for point in own}):
                chosen = sorted((point for point in own if point.rho == rho), key=lambda point: point.at)
                columns = [(point.at, point.share_above, point.median_error) for point in chosen]
                at, share, error = (np.array(column) for column in zip(*columns))
                name = f"ρ = {formula_text(rho)}"
                found[f"{measure}, {name}" if several else name] = (at, share, error)
        return found

    def _numbers(self) -> dict[str, Any]:
        points = [{name: getattr(point, name) for name in point.__slots__} for point in self.points]
        return {"measure": self.measure, "points": points}

    def rows(self) -> Rows:
        """Headers and rows of a table to show."""
        headers = ["threshold", "rho", "records above rho", "median error", "mean error", "p90 error"]
        several = len(self._measures()) > 1
        return (["measure", *headers] if several else headers), [
            [
                *([point.measure] if several else []),
                loss_figure(point.at),
                loss_figure(point.rho),
                f"{share_text(point.share_above, 2)}",
                *(f"{share_text(error, 2)}" for error in (point.median_error, point.mean_error, point.p90_error)),
            ]
            for point in self.points
        ]

    def _about(self) -> str:
        return f"of {len(self.points)} points for '{self.measure}'"

    def _title(self) -> str:
        return f"Unit splitting of {self.measure}"


@reported
def sweep(
    session: Session,
    *,
    query: PlanLike,
    measure: str | None = None,
    tables: Sequence[str] = (),
    statistics: Sequence[str] = (),
    thresholds: Sequence[Number | Mapping[str, Number]] | Mapping[str, Sequence[Number]],
    rhos: Sequence[Number],
    tight: bool = True,
    data: str = "confidential",
) -> Sweep:
    """Every threshold at every rho: expected absolute relative error over the cells, and the share of records that lose more.

    The workload is a query, several, or a plan; where it has levels, each gets its share of rho, as in a release. Every measure
    that it sums is swept by itself. A threshold may be a mapping from measures to thresholds for joint splitting, whose policy
    counts the pieces of all (``tight=False``). Two passes in all.

    Args:
        session: An open session; its records are read, and no budget is spent.
        query: The tables: a query, several, or a plan, with its levels and statistics.
        measure: A measure to sum in all the tables, instead of the statistics of the plan.
        tables: The tables that are meant, by name or by the number or name of their query; all unless given.
        statistics: The statistics that are meant, by published name or measure; all unless given.
        thresholds: The thresholds to try, in the measure's units; for joint splitting a mapping from measures to thresholds. Of
            several measures, a mapping from each to its thresholds.
        rhos: The losses to try.
        tight: Whether the tight policy is meant; otherwise the one printed in the papers.
        data: What the records are: "public", "synthetic", "past" or "confidential". Unless they are declared public or synthetic,
            the ledger notes a look first.

    Returns:
        Errors and shares for every combination.
    """
    origin, view = read_origin(data), viewed(session, data, "plan sweep", query)
    if measure is not None:
        check_measure(measure, view)
    scope = scope_of(query, view.schema, measure=measure, tables=tables, statistics=statistics)
    summed = [each for each in scope.measures() if each != COUNT or each == measure]
    if not summed:
        raise ParameterError(parameter="query", problem="sums no measure, and a count has no thresholds to sweep")
    points: list[SweepPoint] = []
    for each in summed:
        points += _swept(session, view, scope, each, _thresholds(thresholds, each, summed), rhos, tight=tight)
    return Sweep(data=origin, points=tuple(points))


def _thresholds(given: Any, measure: str, summed: Sequence[str]) -> Sequence[Any]:
    """The thresholds of one measure."""
    if not isinstance(given, Mapping):
        if len(summed) > 1 and not all(isinstance(each, Mapping) for each in given):
            raise ParameterError(
                parameter="thresholds",
                problem=f"must be given for each of {', '.join(summed)}",
                advice="Use a mapping from measures to thresholds, or choose one statistic.",
            )
        return list(given)
    if measure not in given:
        raise ParameterError(parameter="thresholds", problem=f"has none for '{measure}'")
    return list(given[measure])


def _swept(
    session: Session,
    view: OwnerView,
    scope: Scope,
    measure: str,
    thresholds: Sequence[Any],
    rhos: Sequence[Number],
    *,
    tight: bool,
) -> list[SweepPoint]:
    """The points of one measure."""
    grid = {(at, rho): _splitting(at, rho) for at in map(_read_threshold, thresholds) for rho in map(_read_rho, rhos)}
    if not grid:
        raise ParameterError(parameter="thresholds, rhos", problem="must each contain at least one number")
    # One statistic for each query, so that a measure which is published twice is swept once.
    own = {each.query: each for each in reversed(scope.asked()) if each.measure == measure}
    part = Scope(plan=scope.plan, drawn=tuple(own[number] for number in sorted(own)), is_whole=False)
    totals = plan_totals(view, part, {})
    held = [(each.level.share, each.total[each.total > 0]) for each in totals]
    if not any(total.size for _, total in held):
        raise ParameterError(parameter="query", problem="has no cell with a total above 0", advice="Check the keys.")
    policies = {
        str(key): session.policy_of(*part.queries(same_for_all(each)), tight=tight)
        for key, each in tracked(grid.items(), "working out policies")
    }
    conditions = {scope.plan.queries[number].condition for number in own}
    losses = policy_losses(view, policies, condition=conditions.pop() if len(conditions) == 1 else None)
    return [
        _point(measure, own_threshold(at, measure), rho, held, losses[str((at, rho))].rho, step_of(measure, view))
        for at, rho in grid
    ]


def _point(
    measure: str,
    at: Fraction,
    rho: Fraction,
    tables: Sequence[tuple[Fraction, FloatArray]],
    losses: Losses,
    step: Number,
) -> SweepPoint:
    """A record exactly at the threshold loses rho and no more; rounding outward must not count it."""
    mechanism = UnitSplit(at=at, rho=rho)
    errors = [mechanism.shared(share).mean_errors(totals, step=step) / totals for share, totals in tables]
    relative = np.concatenate(errors)
    return SweepPoint(
        measure=measure,
        at=float(at),
        rho=float(rho),
        share_above=losses.share_above(float(rho) * (1 + 1e-9)),
        median_error=float(np.median(relative)),
        mean_error=float(np.mean(relative)),
        p90_error=float(np.quantile(relative, 0.9)),
    )


Threshold = Fraction | tuple[tuple[str, Fraction], ...]


def _read_threshold(at: Number | Mapping[str, Number]) -> Threshold:
    if isinstance(at, Mapping):
        return tuple((name, positive(value, parameter=f"thresholds['{name}']")) for name, value in at.items())
    return positive(at, parameter="thresholds")


def _read_rho(rho: Number) -> Fraction:
    return positive(rho, parameter="rhos")


def own_threshold(at: Threshold, measure: str) -> Fraction:
    """The threshold of the summed measure, among those of a joint splitting."""
    return at if isinstance(at, Fraction) else dict(at)[measure]


def _splitting(at: Threshold, rho: Fraction) -> UnitSplit:
    return UnitSplit(at=at if isinstance(at, Fraction) else dict(at), rho=rho)
