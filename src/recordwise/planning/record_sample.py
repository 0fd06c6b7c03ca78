"""Losses of a sample of the records, on which splits and families are tried before they are measured on all of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.exact.arithmetic import FloatArray
from recordwise.planning.losses import Losses, policy_names
from recordwise.planning.ranks import RANKS, balance, loss_at
from recordwise.policy.policy import Policy
from recordwise.session.owner import OwnerView, ValueCounts

RECORDS = 4000
"""Records evenly spaced in the order of their values."""
LARGEST = 50
"""So many of the records largest in each measure are in the sample too, with next to no weight: they decide the maximum."""
NEXT_TO_NOTHING = 1e-3


class RecordSample:
    """CONFIDENTIAL if the records are: some records with their weights; where there are too many values, one typical record."""

    def __init__(self, view: OwnerView, policies: Sequence[Policy], rank_by: str) -> None:
        self._view, self._rank_by = view, rank_by
        self._counted = view.value_counts(policy_names(policies))
        self._rows: Any = np.zeros(1, np.int64)
        self.weights: FloatArray = np.ones(1)
        if self._counted is not None and len(self._counted.records):
            self._rows, self.weights = _chosen(self._counted)
        self.columns = {} if self._counted is None else _taken(self._counted.columns, self._rows)

    def losses(self, policies: Sequence[Policy]) -> FloatArray:
        """The loss of each record under each policy, a column for each."""
        if self._counted is None:
            bins = self._view.loss_bins(list(policies))
            return np.array([[loss_at(Losses.of_bins(each), self._rank_by) for each in bins]])
        return np.stack([self._of(each) for each in policies], axis=1)

    def _of(self, policy: Policy) -> FloatArray:
        found = policy.loss(self.columns) if self.columns else float(policy.loss({}))
        return np.asarray(np.broadcast_to(np.asarray(found, np.float64), len(self._rows)))

    def ranked(self, losses: FloatArray, rank_by: str | None = None) -> float:
        """The loss of a rank: of the one by which plans are compared, unless another is given."""
        order = np.argsort(losses)
        risen = np.cumsum(self.weights[order])
        shares = np.array(RANKS[rank_by or self._rank_by])
        places = np.searchsorted(risen, shares * risen[-1] * (1 - 1e-12))
        return balance(losses[order[np.minimum(places, len(order) - 1)]].tolist())


def _chosen(counted: ValueCounts) -> tuple[Any, FloatArray]:
    """Rows evenly spaced along the measures, and the largest of each measure."""
    measures = [np.asarray(each, np.float64) for each in counted.columns.values() if not _is_text(each)]
    order = np.lexsort(measures[::-1]) if measures else np.arange(len(counted.records))
    risen = np.cumsum(counted.records[order])
    count = int(min(RECORDS, risen[-1]))
    even = order[np.searchsorted(risen, (np.arange(count) + 0.5) * risen[-1] / count)]
    rows, times = np.unique(even, return_counts=True)
    largest = [np.argsort(each)[-LARGEST:] for each in measures]
    more = np.setdiff1d(np.concatenate(largest) if largest else rows[:0], rows)
    return np.append(rows, more), np.append(times.astype(np.float64), np.full(len(more), NEXT_TO_NOTHING))


def _is_text(column: Any) -> bool:
    return isinstance(column, pa.ChunkedArray | pa.Array)


def _taken(columns: dict[str, Any], rows: Any) -> dict[str, Any]:
    return {name: each.take(pa.array(rows)) if _is_text(each) else each[rows] for name, each in columns.items()}
