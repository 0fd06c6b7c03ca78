"""The joint loss of several records whose individual losses are pairs (rho, delta), when the mechanism is not known."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from flint import arb

from recordwise.errors import ParameterError, shown
from recordwise.exact.numbers import arb_float_upper, working_precision
from recordwise.policy.conversions import PRECISION, delta_at
from recordwise.policy.groups import checked_loss, group_loss


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPair:
    """For every epsilon the group has that epsilon with ``delta_at(epsilon)`` (T-GROUP); both numbers are rounded up.

    This is weaker than the pair of a single record: it bounds probabilities of events, not divergences conditional on an event.
    """

    rho: float
    delta: float

    def delta_at(self, target: float) -> float:
        """The delta at which the group has an epsilon, rounded up; at most 1."""
        return _sum_upper(arb(self.delta), arb(delta_at(self.rho, target)))


def group_pair(pairs: Iterable[tuple[float, float]]) -> GroupPair:
    """The joint loss of records from their own pairs (rho, delta) alone (T-GROUP).

    If the number of pieces of the records in each key is known, ``SelectionLaw.group_loss`` is smaller and is a true pair.
    """
    single = [GroupPair(rho=checked_loss(rho, parameter="pairs"), delta=_share(delta)) for rho, delta in pairs]
    single.sort(key=lambda pair: (pair.rho, pair.delta))
    # The intermediate tables may be visited in any order, and every order gives a bound.
    delta = min(_one_by_one(single), _one_by_one(single[::-1]))
    return GroupPair(rho=group_loss([pair.rho for pair in single]), delta=delta)


def _one_by_one(pairs: Sequence[GroupPair]) -> float:
    so_far = GroupPair(rho=0.0, delta=0.0)
    for more in pairs:
        delta = max(_lost(so_far, more), _lost(more, so_far))
        if delta == 1:
            return delta
        so_far = GroupPair(rho=group_loss([so_far.rho, more.rho]), delta=delta)
    return so_far.delta


def _lost(near: GroupPair, far: GroupPair) -> float:
    """The mass without a bound at the end of the first step: min over eps of delta_1 + e^eps delta_2 + delta_{rho_1}(eps)."""
    if far.delta == 0 or near.rho == 0:
        return _sum_upper(arb(near.delta), arb(far.delta))
    if math.isinf(near.rho):
        return 1.0
    from scipy.optimize import minimize_scalar

    # Any epsilon gives a valid bound, so the best may be found in floats. Beyond the last one the bound is above 1.
    last = -math.log(far.delta) + 1
    best = minimize_scalar(lambda eps: _lost_at(near, far, float(eps)), bounds=(0.0, last), method="bounded")
    return _lost_at(near, far, float(best.x))


def _lost_at(near: GroupPair, far: GroupPair, epsilon: float) -> float:
    with working_precision(PRECISION):
        return _sum_upper(arb(near.delta), arb(epsilon).exp() * arb(far.delta), arb(delta_at(near.rho, epsilon)))


def _sum_upper(*parts: arb) -> float:
    with working_precision(PRECISION):
        return min(1.0, arb_float_upper(sum(parts, arb(0))))


def _share(delta: float) -> float:
    if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 <= delta <= 1:
        raise ParameterError(parameter="pairs", problem=f"must have deltas from 0 to 1, not {shown(delta)}")
    return float(delta)
