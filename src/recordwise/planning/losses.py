"""The distribution of policy losses over the records or firms of a table, exact if their values can be counted."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordwise.engines.owner import LossSummary
from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.predicates import Predicate
from recordwise.plan.query import Query
from recordwise.planning.shapes import with_statistic
from recordwise.policy.policy import Policy
from recordwise.session.owner import OwnerView, ValueCounts

CURVE_POINTS = 400


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Losses:
    """A distribution of losses: distinct values in ascending order, and how many records (or firms) have each."""

    values: FloatArray
    records: FloatArray
    exact: bool
    """False if records were counted in bins; then a value is the upper end of a bin, at most 2.4% above the loss."""

    @classmethod
    def of(cls, losses: FloatArray, records: FloatArray) -> "Losses":
        """Losses and how many records have each.

        Args:
            losses: The different losses.
            records: How many records have each of them.

        Returns:
            The losses, sorted.
        """
        values, places = np.unique(losses, return_inverse=True)
        return cls(
            values=values,
            records=np.asarray(np.bincount(places, weights=records, minlength=len(values)), np.float64),
            exact=True,
        )

    @classmethod
    def of_bins(cls, summary: LossSummary) -> "Losses":
        """Losses that were counted in bins; each bin counts as its upper end.

        Args:
            summary: The bins, from the engine.

        Returns:
            The losses, sorted.
        """
        held = np.flatnonzero(summary.counts)
        ends = np.append(summary.edges, np.inf)
        return cls(values=ends[held], records=summary.counts[held].astype(np.float64), exact=False)

    @property
    def number(self) -> int:
        """The number of records or firms."""
        return int(self.records.sum())

    def share_above(self, loss: float) -> float:
        """The share with a loss above a number.

        Args:
            loss: A loss.

        Returns:
            The share.
        """
        return float(self.records[self.values > loss].sum() / max(1.0, self.records.sum()))

    def quantile(self, p: float) -> float:
        """The smallest loss that at least a share ``p`` does not exceed.

        Args:
            p: The share of the records.

        Returns:
            The loss.
        """
        if not len(self.values):
            return 0.0
        risen = np.cumsum(self.records)
        place = int(np.searchsorted(risen, p * risen[-1] * (1 - 1e-12)))
        return float(self.values[min(place, len(self.values) - 1)])

    @property
    def maximum(self) -> float:
        """The largest loss."""
        return float(self.values[-1]) if len(self.values) else 0.0

    def curve(self) -> tuple[FloatArray, FloatArray]:
        """Losses and the share with at most each, thinned for plotting: evenly in shares, and evenly in the tail."""
        if not len(self.values):
            return np.zeros(0), np.zeros(0)
        shares = np.cumsum(self.records) / self.records.sum()
        if len(shares) <= CURVE_POINTS:
            return self.values, shares
        body = np.searchsorted(shares, np.linspace(0, 1, CURVE_POINTS // 2))
        tail = np.searchsorted(-(1 - shares), -np.geomspace(1, 1 / self.records.sum(), CURVE_POINTS // 2))
        places = np.unique(np.clip(np.concatenate([body, tail, [len(shares) - 1]]), 0, len(shares) - 1))
        return self.values[places], shares[places]

    def to_json(self) -> dict[str, Any]:
        """The usual quantiles."""
        named = {"median": 0.5, "p90": 0.9, "p99": 0.99}
        return {name: self.quantile(p) for name, p in named.items()} | {"maximum": self.maximum, "exact": self.exact}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class LossPair:
    """The rho of a policy over the records and, if keys are selected privately, also the delta."""

    rho: Losses
    delta: Losses | None = None


def policy_losses(
    view: OwnerView, policies: Mapping[str, Policy], *, condition: Predicate | None = None
) -> dict[str, LossPair]:
    """The losses of several policies over the records in one pass: exact (T-COUNTED), or in bins if there are too many values."""
    counted = view.value_counts(policy_names(policies.values()), condition=condition)
    if counted is None:
        bins = view.loss_bins(list(policies.values()), condition=condition)
        return {name: LossPair(rho=Losses.of_bins(each)) for name, each in zip(policies, bins)}
    return {name: _pair(policy, counted) for name, policy in policies.items()}


def firm_losses(view: OwnerView, plans: Mapping[str, Sequence[Query]]) -> dict[str, LossPair]:
    """What firms would lose together under several plans, cell by cell (T-CELLS), in one pass; with selected keys a pair."""
    found = {}
    for (name, queries), (rho, delta) in zip(plans.items(), view.firm_loss_bins(list(plans.values()))):
        selected = any(query.selection_of(level) is not None for query in queries for level in query.tables())
        found[name] = LossPair(rho=Losses.of_bins(rho), delta=Losses.of_bins(delta) if selected else None)
    return found


def policy_names(policies: Iterable[Policy]) -> list[str]:
    """The columns the policies look at."""
    listed = list(policies)
    measures = {measure.name for policy in listed for measure in policy.inputs()}
    return sorted(measures | {column.name for policy in listed for column in policy.columns()})


def _evaluated(evaluate: Callable[[Any], Any], counted: ValueCounts) -> FloatArray:
    """One number for each combination of values; a policy that uses no column has one number for all."""
    if counted.columns:
        return np.asarray(evaluate(counted.columns), np.float64)
    return np.full(len(counted.records), float(evaluate({})))


def _pair(policy: Policy, counted: ValueCounts) -> LossPair:
    rho = Losses.of(_evaluated(policy.loss, counted), counted.records)
    if not policy.delta_terms:
        return LossPair(rho=rho)
    return LossPair(rho=rho, delta=Losses.of(np.minimum(_evaluated(policy.delta, counted), 1.0), counted.records))


def realized_losses(view: OwnerView, query: Query, measure: str, mechanisms: Mapping[str, Any]) -> dict[str, LossPair]:
    """What the records of the cells would actually lose from each mechanism alone, in one pass; a pair if keys are selected."""
    asked = query
    for number, mechanism in enumerate(mechanisms.values()):
        asked = with_statistic(asked, measure, mechanism, alias=f"m{number}")
    bins = view.realized_bins(asked)
    rhos = {name: Losses.of_bins(bins[f"m{number}"]) for number, name in enumerate(mechanisms)}
    delta = realized_deltas(view, query, next(iter(rhos.values())).number)
    return {name: LossPair(rho=rho, delta=delta) for name, rho in rhos.items()}


def realized_deltas(view: OwnerView, query: Query, records: int) -> Losses | None:
    """If keys are selected: the probability that a key is listed because of a record that is alone in it; 0 for other records."""
    selection = query.selection_of(query.tables()[0])
    if selection is None or not selection.policy(view.schema).delta_terms:
        return None
    pieces, times = np.unique(view.lone_pieces(query), return_counts=True)
    law = selection.law
    tails = (
        np.minimum(law.noise.sf_upper([law.threshold - int(m) for m in pieces]), 1.0) if len(pieces) else np.zeros(0)
    )
    rest = records - times.sum()
    return Losses.of(np.append(tails, 0.0), np.append(times, rest).astype(np.float64))
