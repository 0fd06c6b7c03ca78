"""The loss of several records together (a firm's establishments) and of replacing one record by another."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flint import arb, ctx

from recordwise.errors import GroupLossError, ParameterError
from recordwise.exact import arb_float_upper
from recordwise.policy.policy import Policy

PRECISION = 128


def group_loss(losses: Iterable[float], *, bound: str = "tight", deltas: Iterable[float] = ()) -> float:
    """The loss of records leaving or entering together, from their single losses alone, rounded up (T-GROUP).

    ``"tight"`` is (sum of square roots)**2, at least as good as both bounds of the paper: ``"simple"`` (Lemma 4) and ``"advanced"``
    (Lemma 5, its infimum over k solved). Refused where a record has a delta: no bound from the single losses is valid then.
    """
    if any(delta > 0 for delta in deltas):
        raise GroupLossError(
            reason="private key selection has a delta, for which single losses bound nothing; analyse it directly"
        )
    values = sorted((float(loss) for loss in losses), reverse=True)
    if any(not loss >= 0 for loss in values):
        raise ParameterError(parameter="losses", problem="must not be negative or NaN")
    if bound not in BOUNDS:
        raise ParameterError(parameter="bound", problem=f"must be one of {', '.join(BOUNDS)}, not {bound!r}")
    with ctx.workprec(PRECISION):
        return arb_float_upper(BOUNDS[bound](values))


def _simple(losses: Sequence[float]) -> arb:
    return arb(len(losses)) * sum((arb(loss) for loss in losses), arb(0))


def _tight(losses: Sequence[float]) -> arb:
    return sum((arb(loss).sqrt() for loss in losses), arb(0)) ** 2


def _advanced(losses: Sequence[float]) -> arb:
    """Any k gives a valid bound, so the minimiser may be found in floats and is then evaluated in balls."""
    if len(losses) < 2:
        return _simple(losses)
    from scipy.optimize import minimize_scalar

    best = minimize_scalar(
        lambda log_k: float(_lemma5(losses, arb(log_k).expm1() + 1)), bounds=(1e-9, 50.0), method="bounded"
    )
    return _lemma5(losses, arb(float(best.x)).exp())


def _lemma5(losses: Sequence[float], k: arb) -> arb:
    total, power = arb(0), arb(1)
    for loss in losses:
        power *= k
        total += power * arb(loss)
    return total / (k - 1)


BOUNDS: dict[str, Callable[[Sequence[float]], arb]] = {"simple": _simple, "advanced": _advanced, "tight": _tight}


def group_loss_by_cell(shifts: Iterable[Any], loss_at_shift: Callable[[Any], float]) -> float:
    """The loss of a group where the mechanism is known: what the group changes each cell by, put into ``loss_at_shift`` (T-CELLS).

    A count's shift is the number of the group's rows in the cell, a sum's the sum of their values, pieces for split rows.
    """
    with ctx.workprec(PRECISION):
        return arb_float_upper(sum((arb(loss_at_shift(shift)) for shift in shifts), arb(0)))


def replacement_loss(policy: Policy, record: Any, other: Any) -> float:
    """The loss of a record that might have been another one, wherever both would stand (T-REPLACE).

    In the same cell of one sum the mechanism's ``loss_at_shift(|x - y|)`` is smaller. There is no one-sided shortcut: the paper's
    factor 2 for one-sided policies is wrong, the truth reaches 4.
    """
    losses = [policy.loss(record), policy.loss(other)]
    return group_loss(losses, deltas=[policy.delta(record), policy.delta(other)])
