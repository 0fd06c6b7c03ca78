"""Compare unit splitting and clamping over a grid of thresholds, bounds and losses."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, positive
from recordwise.exact.text import formula_text, share_text
from recordwise.mechanisms.base import BoolArray, Mechanism
from recordwise.mechanisms.gaussian import Clamped, UnitSplit
from recordwise.plan.query import Query
from recordwise.planning.losses import Losses, LossPair, policy_losses
from recordwise.planning.result import Result, Rows, loss_figure
from recordwise.planning.scope import (
    COUNT,
    Least,
    PlanTotals,
    Scope,
    counted_rows,
    plan_totals,
    same_for_all,
)
from recordwise.progress import tracked
from recordwise.session import Session
from recordwise.session.owner import OwnerView

# The result of a grid: unit splitting at each threshold and rho, and clamping at each bound.


SPLIT, CLAMP = "split", "clamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """One threshold, or one clamp, at one rho."""

    measure: str
    mechanism: str
    """"split" or "clamp"."""
    at: float
    """The threshold, or the bound at which contributions are cut."""
    rho: float
    share_above: float
    """The share of the records with a loss above rho."""
    median_error: float
    """Half of the cells have an expected absolute relative error of at most this value."""
    mean_error: float
    p90_error: float


ERRORS = ("mean_error", "median_error", "p90_error")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Sweep(Result):
    """Results by threshold or clamp and rho; confidential if the records are."""

    data: str
    points: tuple[SweepPoint, ...]

    @property
    def measure(self) -> str:
        """What is summed, in words."""
        return ", ".join(self._measures())

    def _measures(self) -> list[str]:
        return list(dict.fromkeys(point.measure for point in self.points))

    def curves(self) -> dict[str, tuple[FloatArray, FloatArray, FloatArray]]:
        """Return thresholds, exceeding shares and median errors for each rho.

        Exceeding is a record with a loss above rho; of several measures, each. Under clamping none is.
        """
        found, several = {}, len(self._measures()) > 1
        for measure in self._measures():
            own = [point for point in self.points if point.measure == measure and point.mechanism == SPLIT]
            for rho in sorted({point.rho for point in own}):
                chosen = sorted((point for point in own if point.rho == rho), key=lambda point: point.at)
                columns = [(point.at, point.share_above, point.median_error) for point in chosen]
                at, share, error = (np.array(column) for column in zip(*columns))
                name = f"ρ = {formula_text(rho)}"
                found[f"{measure}, {name}" if several else name] = (at, share, error)
        return found

    def best_clamps(self, error: str = "mean_error") -> tuple[SweepPoint, ...]:
        """Return the least-error clamp for each rho ([S] figure 1).

        Args:
            error: What is to be small: "mean_error", "median_error" or "p90_error".

        Returns:
            A point for each measure and rho; of equal ones, the smallest bound.
        """
        if error not in ERRORS:
            raise ParameterError(parameter="error", problem=f"must be one of {', '.join(ERRORS)}")
        found: dict[tuple[str, float], SweepPoint] = {}
        for point in sorted(self.points, key=lambda point: (getattr(point, error), point.at)):
            if point.mechanism == CLAMP:
                found.setdefault((point.measure, point.rho), point)
        return tuple(found[place] for place in sorted(found))

    def _numbers(self) -> dict[str, Any]:
        points = [{name: getattr(point, name) for name in point.__slots__} for point in self.points]
        best = [{"measure": each.measure, "rho": each.rho, "at": each.at} for each in self.best_clamps()]
        return {"measure": self.measure, "points": points, "best_clamps": best}

    def rows(self) -> Rows:
        """Headers and rows of a table to show."""
        headers = ["threshold", "rho", "records above rho", "median error", "mean error", "p90 error"]
        several, clamps = len(self._measures()) > 1, any(point.mechanism == CLAMP for point in self.points)
        first = [*(["measure"] if several else []), *(["mechanism"] if clamps else [])]
        return [*first, *(["at", *headers[1:]] if clamps else headers)], [
            [
                *(getattr(point, name) for name in first),
                loss_figure(point.at),
                loss_figure(point.rho),
                f"{share_text(point.share_above, 2)}",
                *(f"{share_text(error, 2)}" for error in (point.median_error, point.mean_error, point.p90_error)),
            ]
            for point in self.points
        ]

    def _about(self) -> str:
        return f"of {len(self.points)} points for '{self.measure}'"

    def words(self) -> str:
        """What the grid is about."""
        kinds = {point.mechanism for point in self.points}
        told = " and ".join(word for kind, word in ((SPLIT, "unit splitting"), (CLAMP, "clamping")) if kind in kinds)
        return f"{told[0].upper()}{told[1:]} of {self.measure}"

    def _title(self) -> str:
        return self.words()


# Unit splitting, and clamping, over a grid of thresholds or bounds and losses.


Threshold = Fraction | tuple[tuple[str, Fraction], ...]
Counted: TypeAlias = tuple[PlanTotals, BoolArray]
"""A table and which of its cells count."""
Thresholds: TypeAlias = Sequence[Number | Mapping[str, Number]] | Mapping[str, Sequence[Number]]
"""For joint splitting a threshold is a mapping from measures; of several measures, a mapping from each to its thresholds."""
GridKey: TypeAlias = tuple[str, Threshold, Fraction]


@dataclass(frozen=True, slots=True, eq=False)
class GridSize:
    """The thresholds, clamps and losses of a grid."""

    thresholds: Thresholds
    clamps: Thresholds
    rhos: tuple[Fraction, ...]

    def mechanisms(self, measure: str, summed: Sequence[str]) -> dict[GridKey, Mechanism]:
        """Return the mechanism of each point of one measure."""
        splits = map(_read_threshold, _thresholds(self.thresholds, measure, summed, "thresholds"))
        bounds = _thresholds(self.clamps, measure, summed, "clamps")
        cuts = [positive(each, parameter="clamps") for each in bounds]
        grid: dict[GridKey, Mechanism] = {(SPLIT, at, rho): _splitting(at, rho) for at in splits for rho in self.rhos}
        grid |= {(CLAMP, to, rho): Clamped(to=to, rho=rho) for to in cuts for rho in self.rhos}
        if not grid:
            raise ParameterError(parameter="thresholds, clamps, rhos", problem="must each contain at least one number")
        return grid


def grid_points(
    session: Session,
    view: OwnerView,
    scope: Scope,
    measure: str | None,
    size: GridSize,
    at_least: Least,
    *,
    tight: bool,
) -> Iterator[SweepPoint]:
    """Yield every point for each summed measure, in two passes for each."""
    summed = [each for each in scope.measures() if each != COUNT or each == measure]
    if not summed:
        raise ParameterError(parameter="query", problem="sums no measure, and a count has no thresholds")
    for each in summed:
        yield from _swept(session, view, scope, each, size.mechanisms(each, summed), at_least, tight=tight)


def _thresholds(given: Any, measure: str, summed: Sequence[str], parameter: str) -> Sequence[Any]:
    """The thresholds, or clamps, of one measure."""
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise ParameterError(parameter=parameter, problem="must be a list of numbers, or one for each measure")
    if not isinstance(given, Mapping):
        if len(summed) > 1 and not all(isinstance(each, Mapping) for each in given):
            raise ParameterError(
                parameter=parameter,
                problem=f"must be given for each of {', '.join(summed)}",
                advice=f"Use a mapping from measures to {parameter}, or choose one statistic.",
            )
        return list(given)
    if measure not in given:
        raise ParameterError(
            parameter=parameter, problem=f"has none for '{measure}'", advice="Give it one, or choose fewer statistics."
        )
    return list(given[measure])


def _swept(
    session: Session,
    view: OwnerView,
    scope: Scope,
    measure: str,
    grid: Mapping[GridKey, Mechanism],
    at_least: Least,
    *,
    tight: bool,
) -> list[SweepPoint]:
    """Return the points of one measure."""
    # One statistic for each query, so that a measure which is published twice is swept once.
    own = {each.query: each for each in reversed(scope.asked()) if each.measure == measure}
    part = Scope(plan=scope.plan, drawn=tuple(own[number] for number in sorted(own)), is_whole=False)
    # What a clamp keeps of each total depends on its bound alone.
    cuts = {str(at): same_for_all(each) for (kind, at, _), each in grid.items() if kind == CLAMP}
    totals = plan_totals(view, part, cuts)
    held = [(each, rows) for each, rows in zip(totals, counted_rows(view, totals, at_least)) if rows.any()]
    if not held:
        raise ParameterError(
            parameter="query",
            problem="has no cell with a total above 0 that reaches at_least",
            advice="Lower at_least, or check the keys.",
        )
    plans = {str(key): part.queries(same_for_all(each)) for key, each in grid.items()}
    losses = plan_losses(session, view, plans, tight=tight)
    return [_point(measure, key, held, losses[str(key)].rho) for key in grid]


def _point(measure: str, key: GridKey, held: Sequence[Counted], losses: Losses) -> SweepPoint:
    """Return one point. A record exactly at the threshold loses rho and no more; rounding outward must not count it."""
    kind, given, rho = key
    at = own_threshold(given, measure)
    mechanism: Mechanism = UnitSplit(at=at, rho=rho) if kind == SPLIT else Clamped(to=at, rho=rho)
    kept = str(at) if kind == CLAMP else ""
    errors = [each.by_cell("mean_errors", mechanism, only=rows, kept=kept) / each.total[rows] for each, rows in held]
    relative = np.concatenate(errors)
    return SweepPoint(
        measure=measure,
        mechanism=kind,
        at=float(at),
        rho=float(rho),
        share_above=losses.share_above(float(rho) * (1 + 1e-9)),
        median_error=float(np.median(relative)),
        mean_error=float(np.mean(relative)),
        p90_error=float(np.quantile(relative, 0.9)),
    )


def _read_threshold(at: Number | Mapping[str, Number]) -> Threshold:
    if isinstance(at, Mapping):
        return tuple((name, positive(value, parameter=f"thresholds['{name}']")) for name, value in at.items())
    return positive(at, parameter="thresholds")


def read_rho(rho: Number) -> Fraction:
    return positive(rho, parameter="rhos")


def own_threshold(at: Threshold, measure: str) -> Fraction:
    """The threshold of the summed measure, among those of a joint splitting."""
    return at if isinstance(at, Fraction) else dict(at)[measure]


def _splitting(at: Threshold, rho: Fraction) -> UnitSplit:
    return UnitSplit(at=at if isinstance(at, Fraction) else dict(at), rho=rho)


def plan_losses(
    session: Session, view: OwnerView, plans: Mapping[str, Sequence[Query]], *, tight: bool = True
) -> dict[str, LossPair]:
    """Return what the records that the queries are about lose under several plans, in one pass."""
    policies = {
        name: session.policy_of(*queries, tight=tight)
        for name, queries in tracked(plans.items(), lambda item: f"the policy of {item[0]}")
    }
    conditions = {each.condition for queries in plans.values() for each in queries}
    return policy_losses(view, policies, condition=conditions.pop() if len(conditions) == 1 else None)
