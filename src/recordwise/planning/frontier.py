"""The frontier between what records lose and how many cells are reliable, and today's plan beside it.

Plans on the frontier are those that a recommendation finds for several accuracy goals, each with more or less noise: the loss is in
proportion to the square of the inverse of the noise, so that one evaluation of each plan gives its whole curve.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number
from recordwise.exact.text import share_text
from recordwise.plan.status import StatusRules
from recordwise.planning.frontier_plans import FrontierPoint, Plans
from recordwise.planning.origin import figure, html_table, mark_of, read_origin, viewed
from recordwise.planning.ranks import QUANTILES, RANK_WORDS
from recordwise.planning.reliable import class_names
from recordwise.planning.whole import PlanLike, scope_of
from recordwise.progress import reported, steps, tracked
from recordwise.session import Session

POINTS = 13
DIFFERENT = 0.1


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Frontier:
    """Plans from little loss to much accuracy; confidential if the records are."""

    data: str
    rank_by: str
    status: str
    limit: float
    points: tuple[FrontierPoint, ...]
    today: FrontierPoint | None
    """The plan as it stands; None where the tables have no mechanisms yet."""

    @property
    def privacy_label(self) -> str:
        """What the records are that it was computed from."""
        return mark_of(self.data)

    def classes(self) -> list[tuple[int, str]]:
        """The size classes that have cells, each with its place."""
        shown = self.points[0].reliable.by_class
        return [(place, name) for place, name in enumerate(class_names()) if not np.isnan(shown[place])]

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Headers and rows of a table to show, today's plan last."""
        names = [name for _, name in self.classes()]
        headers = [
            "plan",
            "median loss",
            "p99 loss",
            "largest loss",
            self.status,
            *(f"{self.status}: {n}" for n in names),
        ]
        every = [*self.points, *([] if self.today is None else [self.today])]
        return headers, [self._row(each) for each in every]

    def _row(self, point: FrontierPoint) -> list[str]:
        by_class = [share_text(point.reliable.by_class[place], 1) for place, _ in self.classes()]
        return [
            point.name,
            *(figure(point.loss(name)) for name in QUANTILES),
            share_text(point.reliable.share, 1),
            *by_class,
        ]

    def curve(self) -> tuple[FloatArray, FloatArray]:
        """The losses at the rank, and the share of the cells that is reliable at each."""
        return (
            np.array([each.loss(self.rank_by) for each in self.points]),
            np.array([each.reliable.share for each in self.points]),
        )

    def at_loss(self, loss: float) -> float:
        """The share of the cells that is reliable at a loss, between the points on a logarithmic scale.

        Args:
            loss: A loss of the rank that the frontier shows.

        Returns:
            The share.
        """
        losses, shares = self.curve()
        return float(np.interp(np.log(loss), np.log(losses), shares))

    def at_share(self, share: float) -> float:
        """The loss at which so many cells are reliable.

        Args:
            share: A share of the cells.

        Returns:
            The loss, between the points; infinite if none reaches it.
        """
        losses, shares = self.curve()
        best = np.maximum.accumulate(shares)
        return float("inf") if share > best[-1] else float(np.exp(np.interp(share, best, np.log(losses))))

    def words(self) -> str:
        """Where today's plan stands, in two sentences."""
        if self.today is None:
            return ""
        loss, share = self.today.loss(self.rank_by), self.today.reliable.share
        better, cheaper = self.at_loss(loss), self.at_share(share)
        return (
            f"Today {share_text(share, 1)} of the cells are {self.status} at a {RANK_WORDS[self.rank_by]} loss of {figure(loss)}. "
            f"At the same loss the frontier has {share_text(max(better, share), 1)}; the same share of cells costs "
            f"{figure(min(cheaper, loss))} on it.{self._other_losses(loss)}"
        )

    def _other_losses(self, loss: float) -> str:
        """What the frontier costs by the other ranks at a loss: a smaller median may be paid for by the largest records."""
        losses, told = self.curve()[0], []
        for name in QUANTILES:
            own = np.array([each.loss(name) for each in self.points])
            there = float(np.exp(np.interp(np.log(loss), np.log(losses), np.log(own))))
            today = 0.0 if self.today is None else self.today.loss(name)
            if name != self.rank_by and abs(there / today - 1) > DIFFERENT:
                told.append(f"{RANK_WORDS[name]} loss is {figure(there)} instead of {figure(today)}")
        return f" At the same {RANK_WORDS[self.rank_by]} loss its {' and its '.join(told)}." if told else ""

    def to_json(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {
            "privacy_label": self.privacy_label,
            "rank_by": self.rank_by,
            "status": {"name": self.status, "limit": self.limit},
            "points": [each.to_json() for each in self.points],
            "today": None if self.today is None else self.today.to_json(),
            "words": self.words(),
        }

    def __repr__(self) -> str:
        return f"<Frontier of {len(self.points)} plans: {self.privacy_label}>"

    def _repr_html_(self) -> str:
        return html_table("Loss and accuracy", *self.rows(), privacy_label=self.privacy_label, notes=self.words())


@reported
def frontier(
    session: Session,
    query: PlanLike,
    *,
    tables: Sequence[str] = (),
    statistics: Sequence[str] = (),
    losses: Sequence[float] | None = None,
    rank_by: str = "median",
    rules: StatusRules | None = None,
    at_least: Number | Mapping[str, Number] = 0,
    candidates: Mapping[str, Any] | None = None,
    fitted: bool = False,
    complete: bool = False,
    data: str = "confidential",
) -> Frontier:
    """The most cells that a status rule calls reliable, for each loss of the records, and where today's plan is.

    Plans are made as ``recommend`` makes them, for the reliability of half and of nine tenths of the cells, and each is tried with
    more and less noise. Costs no budget.

    Args:
        session: An open session; its records are read, and no budget is spent.
        query: The plan: a query, several, a ``Plan`` or a plan file that was loaded.
        tables: The tables that are meant, by name or by the number or name of their query; all unless given.
        statistics: The statistics that are meant, by published name or measure; all unless given.
        losses: The losses at which plans are shown; from a hundredth to a hundred times that of today's plan unless given.
        rank_by: Which loss is meant: "median", "p99" or "maximum" of the records, or "balanced", the geometric mean of the first
            two.
        rules: The status rules; the first status is the one that is counted.
        at_least: Cells with a smaller total do not count: one number, or one for each measure or published name.
        candidates: The families to choose from; the usual ones unless given.
        fitted: Whether the best linear fit of all levels is meant, where noise is Gaussian.
        complete: Whether the keys list every cell, so that levels can be fitted without published rests.
        data: What the records are: "public", "synthetic", "past" or "confidential". Unless they are declared public or synthetic,
            the ledger notes a look first.

    Returns:
        The plans of the frontier, each with its losses and its reliable cells by size, and today's plan.
    """
    origin, view = read_origin(data), viewed(session, data, "plan frontier", query)
    scope = scope_of(query, view.schema, tables=tables, statistics=statistics)
    step = steps(3)
    step("making plans")
    plans = Plans(
        session,
        view,
        scope,
        candidates=candidates,
        rules=rules or StatusRules(),
        rank_by=rank_by,
        at_least=at_least,
        fitted=fitted,
        complete=complete,
    )
    now = plans.loss(plans.plans[0], 1.0, rank_by)
    shown = np.geomspace(now / 100, now * 100, POINTS) if losses is None else np.sort(np.asarray(losses, float))
    chosen = []
    step("the best plan at each loss")
    for loss in tracked(shown.tolist(), "the best plan at each loss"):
        found = plans.best({each: plans.factor_within(each, {rank_by: float(loss)}) for each in plans.plans})
        if found is not None:
            chosen.append(found)
    if not chosen:
        raise ParameterError(parameter="losses", problem="are below what the plan's other statistics cost")
    step("measuring losses")
    today = (plans.plans[0], 1.0, plans.reliable(plans.plans[0], 1.0))
    *points, last = plans.points([*chosen, today])
    return Frontier(
        data=origin, rank_by=rank_by, status=plans.status, limit=plans.limit, points=tuple(points), today=last
    )
