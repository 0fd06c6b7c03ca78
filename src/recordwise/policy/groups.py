"""The joint loss of several records, and the loss of a replacement.

The records may be the establishments of a firm. ``group_loss`` works from zCDP losses,
``group_loss_by_cell`` from a known mechanism, and ``group_pair`` from pairs (rho, delta).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from flint import arb

from recordwise.errors import GroupLossError, ParameterError, own_argument_errors, own_errors_of, value_text
from recordwise.exact.numbers import arb_float_upper, float_upper, nonnegative, working_precision
from recordwise.policy.evaluate.tables import Record, is_record
from recordwise.policy.meaning import PRECISION as PAIR_PRECISION
from recordwise.policy.meaning import check_share, delta_at
from recordwise.policy.policy import Policy

PRECISION = 128


@own_argument_errors
def group_loss(losses: Iterable[float], *, bound: str = "tight", deltas: Iterable[float] = ()) -> float:
    """Return the joint loss of records from their individual losses.

    They enter or leave together; the loss is rounded up (T-GROUP).

    Args:
        losses: The zCDP loss of each record.
        bound: ``"tight"`` is (sum of square roots)**2 and is at least as good as both bounds of the paper: ``"simple"``
            (Lemma 4) and ``"advanced"`` (Lemma 5, minimized over k).
        deltas: The delta of each record; all must be 0.

    Returns:
        The joint loss.

    Raises:
        GroupLossError: If a record has a delta; ``group_pair`` gives a bound of a different kind.

    Example:
        >>> group_loss([0.25, 0.25])
        1.0
    """
    if any(delta != 0 for delta in deltas):
        raise GroupLossError(
            reason="private key selection has a delta, and individual losses then give no bound for a group; use group_pair or the"
            " selection's own group_loss"
        )
    values = sorted((checked_loss(loss, parameter="losses") for loss in losses), reverse=True)
    if bound not in BOUNDS:
        raise ParameterError(parameter="bound", problem=f"must be one of {', '.join(BOUNDS)}, not {value_text(bound)}")
    if math.inf in values:
        return math.inf
    with working_precision(PRECISION):
        return BOUNDS[bound](values)


@own_argument_errors
def group_epsilon(epsilons: Iterable[float]) -> float:
    """Return the joint pure epsilon of records, which is their sum (T-PURE).

    Args:
        epsilons: The pure epsilon of each record.

    Returns:
        The sum, rounded up.

    Example:
        >>> group_epsilon([0.5, 0.25])
        0.75
    """
    with working_precision(PRECISION):
        each = (arb(checked_loss(loss, parameter="epsilons")) for loss in epsilons)
        return arb_float_upper(sum(each, arb(0)))


def checked_loss(loss: float, *, parameter: str) -> float:
    """Return a loss as a float, rounded up, or refuse it."""
    if isinstance(loss, float) and loss >= 0:
        return float(loss)
    return float_upper(nonnegative(loss, parameter=parameter))


def _simple(losses: Sequence[float]) -> float:
    return arb_float_upper(arb(len(losses)) * sum((arb(loss) for loss in losses), arb(0)))


def _tight(losses: Sequence[float]) -> float:
    """Return (sum of square roots)**2, the smallest of the three bounds.

    Where they are equal, rounding must not make it larger.
    """
    tight = arb_float_upper(sum((arb(loss).sqrt() for loss in losses), arb(0)) ** 2)
    return min(tight, _simple(losses), _advanced_composition(losses))


def _advanced_composition(losses: Sequence[float]) -> float:
    """Return Lemma 5's bound at the best k.

    Any k gives a valid bound, so floats choose k; Arb balls then evaluate the bound.
    """
    present = [loss for loss in losses if loss > 0]
    if len(present) < 2:
        return _simple(present)
    from scipy.optimize import minimize_scalar

    # The largest useful k is 1 + sqrt(P_1/P_2), for two records; the smallest is near 1 + 1/J.
    best = minimize_scalar(lambda t: _log_lemma5(present, math.exp(t)), bounds=(-40.0, 40.0), method="bounded")
    return arb_float_upper(_lemma5(present, arb(math.exp(float(best.x))) + 1))


def _log_lemma5(losses: Sequence[float], less_one: float) -> float:
    """Return the logarithm of the bound at k = 1 + less_one."""
    log_k = math.log1p(less_one)
    exponents = [j * log_k + math.log(loss) for j, loss in enumerate(losses, start=1)]
    top = max(exponents)
    return top + math.log(math.fsum(math.exp(e - top) for e in exponents)) - math.log(less_one)


def _lemma5(losses: Sequence[float], k: arb) -> arb:
    total, power = arb(0), arb(1)
    for loss in losses:
        power *= k
        total += power * arb(loss)
    return total / (k - 1)


BOUNDS: dict[str, Callable[[Sequence[float]], float]] = {
    "simple": _simple,
    "advanced": _advanced_composition,
    "tight": _tight,
}


@own_argument_errors
def group_loss_by_cell(shifts: Iterable[Any], loss_at_shift: Callable[[Any], float]) -> float:
    """Return a group's loss from its shift of each cell (T-CELLS).

    The sum of ``loss_at_shift`` over the cells. A count's shift is the number of the group's rows in the cell,
    a sum's the sum of their values, pieces for split rows.

    Args:
        shifts: What the group changes in each cell, in the measure's units.
        loss_at_shift: The loss of a change, such as ``mechanism.loss_at_shift``.

    Returns:
        The joint loss.
    """
    with working_precision(PRECISION):
        losses = (checked_loss(loss_at_shift(shift), parameter="loss_at_shift") for shift in shifts)
        return arb_float_upper(sum((arb(loss) for loss in losses), arb(0)))


@own_argument_errors
def replacement_loss(policy: Policy, record: Record, other: Record) -> float:
    """Return the loss of replacing one record by another (T-REPLACE).

    It holds whichever cells they are in. Of a pure policy, the sum of the two epsilons.

    If both are in the same cell of one sum, the mechanism's ``loss_at_shift(|x - y|)`` is smaller. There is no
    one-sided shortcut: the paper's factor 2 for one-sided policies is wrong; the true factor can reach 4.

    Args:
        policy: The policy of everything that is published.
        record: One record as a mapping of scalars.
        other: The record that replaces it.

    Returns:
        The loss.
    """
    if not (is_record(record) and is_record(other)):
        raise ParameterError(parameter="record", problem="must be one record, not a table")
    losses = [policy.loss(record), policy.loss(other)]
    if policy.is_pure:
        return group_epsilon(losses)
    return group_loss(losses, deltas=[policy.delta(record), policy.delta(other)])


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPair:
    """The joint (epsilon, delta) curve of a group (T-GROUP).

    For every epsilon the group has that epsilon with ``delta_at(epsilon)``; both numbers are rounded up. This
    is weaker than the pair of a single record: it bounds probabilities of events, not divergences conditional
    on an event.
    """

    rho: float
    delta: float

    def delta_at(self, target: float) -> float:
        """Return the group's delta at an epsilon, rounded up, at most 1.

        Args:
            target: The epsilon.

        Returns:
            The delta.
        """
        return _sum_upper(arb(self.delta), arb(delta_at(self.rho, target)))

    def power(self, false_alarm: float) -> float:
        """Return a bound on the power of a membership test.

        e^epsilon times its false-positive rate plus delta, at the best epsilon.

        Args:
            false_alarm: The false-positive rate of the test.

        Returns:
            The bound, at most 1.
        """
        share = check_share(false_alarm, "false_alarm")
        reach = -math.log(share)
        found = (
            share * math.exp(target) + self.delta_at(target) for target in (reach * step / 200 for step in range(201))
        )
        return min(1.0, min(found) * (1 + 1e-12))


@own_argument_errors
def group_pair(pairs: Iterable[tuple[float, float]]) -> GroupPair:
    """Return the joint loss of records from their pairs (rho, delta).

    See T-GROUP. If the number of pieces of the records in each key is known, ``SelectionLaw.group_loss`` is
    smaller and is a true pair.

    Args:
        pairs: The pair (rho, delta) of each record.

    Returns:
        The joint pair.
    """
    single = [GroupPair(rho=checked_loss(rho, parameter="pairs"), delta=_share(delta)) for rho, delta in pairs]
    single.sort(key=lambda pair: (pair.rho, pair.delta))
    # The intermediate tables may be visited in any order, and every order gives a bound.
    delta = min(_one_by_one(single), _one_by_one(single[::-1]))
    return GroupPair(rho=group_loss([pair.rho for pair in single]), delta=delta)


def _one_by_one(pairs: Sequence[GroupPair]) -> float:
    so_far = GroupPair(rho=0.0, delta=0.0)
    for more in pairs:
        delta = max(_unbounded_mass(so_far, more), _unbounded_mass(more, so_far))
        if delta == 1:
            return delta
        so_far = GroupPair(rho=group_loss([so_far.rho, more.rho]), delta=delta)
    return so_far.delta


def _unbounded_mass(near: GroupPair, far: GroupPair) -> float:
    """Return the mass without a bound after the first step.

    min over eps of delta_1 + e^eps delta_2 + delta_{rho_1}(eps).
    """
    if far.delta == 0 or near.rho == 0:
        return _sum_upper(arb(near.delta), arb(far.delta))
    if math.isinf(near.rho):
        return 1.0
    from scipy.optimize import minimize_scalar

    # Any epsilon gives a valid bound, so the best may be found in floats. Beyond the last one the bound is above 1.
    last = -math.log(far.delta) + 1
    best = minimize_scalar(lambda eps: _unbounded_mass_at(near, far, float(eps)), bounds=(0.0, last), method="bounded")
    return _unbounded_mass_at(near, far, float(best.x))


def _unbounded_mass_at(near: GroupPair, far: GroupPair, epsilon: float) -> float:
    with working_precision(PAIR_PRECISION):
        return _sum_upper(arb(near.delta), arb(epsilon).exp() * arb(far.delta), arb(delta_at(near.rho, epsilon)))


def _sum_upper(*parts: arb) -> float:
    with working_precision(PAIR_PRECISION):
        return min(1.0, arb_float_upper(sum(parts, arb(0))))


def _share(delta: float) -> float:
    if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 <= delta <= 1:
        raise ParameterError(parameter="pairs", problem=f"must have deltas from 0 to 1, not {value_text(delta)}")
    return float(delta)
