"""How the losses of the policies are distributed over the establishments, and what the records of real cells lost."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import recordwise as rw
from experiments.slow_cdf.records import Records
from experiments.slow_mechanisms import MEASURE, Entry, entries

EDGES = tuple(float(edge) for edge in 1.00123 * np.geomspace(1e-9, 1e9, 18 * 20 + 1))
"""Twenty bins to a factor of ten, moved off the round losses so that none lies on an edge."""
LEVELS = (0.5, 0.9, 0.99, 0.999, 1.0)
ABOVE = (1.0, 10.0, 100.0)


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """The losses of one policy: sorted, each with the share of establishments that have at most it."""

    entry: Entry
    losses: np.ndarray
    shares: np.ndarray

    def quantile(self, p: float) -> float:
        return float(self.losses[np.searchsorted(self.shares, p * (1 - 1e-12))])

    def above(self, loss: float) -> float:
        place = int(np.searchsorted(self.losses, loss, side="right"))
        return 1.0 - float(self.shares[place - 1]) if place else 1.0

    def row(self) -> dict[str, object]:
        """One line of the table."""
        quantiles = {f"loss_at_{100 * p:g}_percent": self.quantile(p) for p in LEVELS}
        above = {f"share_above_{loss:g}": self.above(loss) for loss in ABOVE}
        who = {"mechanism": self.entry.label, "order": self.entry.order, "kind": self.entry.kind}
        return who | {"addition_of_ours": self.entry.ours} | quantiles | above


def distributions(records: Records) -> list[Distribution]:
    """Exactly, from the different head counts: a policy looks at nothing else."""
    shares = np.cumsum(records.establishments) / records.establishments.sum()
    return [
        Distribution(entry=each, losses=np.asarray(each.policy.loss({MEASURE: records.sizes})), shares=shares)
        for each in entries()
    ]


def engine_differs(session: rw.Session, each: Distribution, records: Records) -> int:
    """How many establishments the engine's histogram, computed where the records are, puts into another bin than we do."""
    counted = session.owner.loss_summary(each.entry.policy, edges=EDGES).counts
    ours = np.bincount(
        np.searchsorted(EDGES, each.losses), weights=records.establishments, minlength=len(EDGES) + 1
    ).astype(np.int64)
    return int(np.abs(counted - ours).sum() // 2)


def realized(session: rw.Session, grouped: Any, each: Entry) -> Any:
    """What the records of the cells really lost to a transformation, beside what else is in their cells."""
    return session.owner.realized_loss_summary(grouped.sum(MEASURE, each.mechanism), edges=EDGES)
