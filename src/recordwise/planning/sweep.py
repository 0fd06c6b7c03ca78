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
from recordwise.mechanisms.unit_split import UnitSplit
from recordwise.plan.query import Query
from recordwise.planning.losses import Losses, policy_losses
from recordwise.planning.origin import figure, html_table, mark_of, read_origin
from recordwise.planning.shapes import bare, check_measure, step_of, with_statistic
from recordwise.planning.totals import read_totals, totals_query
from recordwise.session import Session
from recordwise.session.owner import OwnerView


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """One threshold at one rho."""

    at: float
    rho: float
    share_above: float
    """The share of the records with a loss above rho."""
    median_error: float
    """Half of the cells have an expected absolute relative error of at most this value."""
    mean_error: float
    p90_error: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Sweep:
    """Results by threshold and rho; confidential if the records are."""

    measure: str
    data: str
    points: tuple[SweepPoint, ...]

    @property
    def privacy_label(self) -> str:
        """What the records are that it was computed from."""
        return mark_of(self.data)

    def curves(self) -> dict[str, tuple[FloatArray, FloatArray, FloatArray]]:
        """For each rho: thresholds, shares of the records with a loss above rho, and median errors."""
        found = {}
        for rho in sorted({point.rho for point in self.points}):
            chosen = sorted((point for point in self.points if point.rho == rho), key=lambda point: point.at)
            columns = [(point.at, point.share_above, point.median_error) for point in chosen]
            at, share, error = (np.array(column) for column in zip(*columns))
            found[f"ρ = {formula_text(rho)}"] = (at, share, error)
        return found

    def to_json(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        points = [{name: getattr(point, name) for name in point.__slots__} for point in self.points]
        return {"privacy_label": self.privacy_label, "measure": self.measure, "points": points}

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Headers and rows of a table to show."""
        headers = ["threshold", "rho", "records above rho", "median error", "mean error", "p90 error"]
        return headers, [
            [
                figure(point.at),
                figure(point.rho),
                f"{share_text(point.share_above, 2)}",
                *(f"{share_text(error, 2)}" for error in (point.median_error, point.mean_error, point.p90_error)),
            ]
            for point in self.points
        ]

    def __repr__(self) -> str:
        return f"<Sweep of {len(self.points)} points for '{self.measure}': {self.privacy_label}>"

    def _repr_html_(self) -> str:
        return html_table(f"Unit splitting of {self.measure}", *self.rows(), privacy_label=self.privacy_label)


def sweep(
    session: Session,
    *,
    measure: str,
    query: Query,
    thresholds: Sequence[Number | Mapping[str, Number]],
    rhos: Sequence[Number],
    tight: bool = True,
    data: str = "confidential",
) -> Sweep:
    """Every threshold at every rho: expected absolute relative error over the cells, and the share of records that lose more.

    The workload is a query; where it has levels, each gets its share of rho, as in a release. A threshold may be a mapping from
    measures to thresholds for joint splitting, whose policy counts the pieces of all (``tight=False``). Two passes in all.

    Args:
        session: An open session; its records are read, and no budget is spent.
        measure: The measure that is summed.
        query: The tables.
        thresholds: The thresholds to try, in the measure's units; for joint splitting a mapping from measures to thresholds.
        rhos: The losses to try.
        tight: Whether the tight policy is meant; otherwise the one printed in the papers.
        data: What the records are: "public", "synthetic", "past" or "confidential". A look at confidential records is noted in the
            ledger.

    Returns:
        Errors and shares for every combination.
    """
    origin, view, shape = read_origin(data), session.owner.view(data=data), bare(query)
    check_measure(measure, view)
    grid = {(at, rho): _splitting(at, rho) for at in map(_read_threshold, thresholds) for rho in map(_read_rho, rhos)}
    if not grid:
        raise ParameterError(parameter="thresholds, rhos", problem="must each contain at least one number")
    tables = _tables(view, shape, measure)
    policies = {
        str(key): session.policy_of(with_statistic(shape, measure, each), tight=tight) for key, each in grid.items()
    }
    losses = policy_losses(view, policies, condition=shape.condition)
    points = [
        _point(own_threshold(at, measure), rho, tables, losses[str((at, rho))].rho, step_of(measure, view))
        for at, rho in grid
    ]
    return Sweep(measure=measure, data=origin, points=tuple(points))


def _point(
    at: Fraction, rho: Fraction, tables: Sequence[tuple[Fraction, FloatArray]], losses: Losses, step: Number
) -> SweepPoint:
    """A record exactly at the threshold loses rho and no more; rounding outward must not count it."""
    mechanism = UnitSplit(at=at, rho=rho)
    errors = [mechanism.shared(share).mean_errors(totals, step=step) / totals for share, totals in tables]
    relative = np.concatenate(errors)
    return SweepPoint(
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


def _tables(view: OwnerView, shape: Query, measure: str) -> list[tuple[Fraction, FloatArray]]:
    """The share of each table, and its positive totals."""
    found = view.cell_totals(totals_query(shape, measure, {}))
    tables = [(each.table.shape.share, read_totals(each, {}).total) for each in found]
    held = [(share, totals[totals > 0]) for share, totals in tables]
    if not any(totals.size for _, totals in held):
        raise ParameterError(parameter="query", problem="has no cell with a total above 0", advice="Check the keys.")
    return held
