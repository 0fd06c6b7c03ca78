"""What records lose under a plan with more or less noise, from one evaluation of its policy.

The loss from Gaussian noise is in proportion to the square of the inverse of the noise. Fat-tailed noise that is c times as large
costs a record of size x what the noise itself costs one of x / c, so that one curve, certified for a scale of 1, serves all scales.
Planning searches with these numbers; what it returns is measured with the policy itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.cost import records_of, statistic_policy
from recordwise.planning.amounts import has_amount, has_width
from recordwise.planning.reliable import Scalable
from recordwise.planning.shapes import COUNT
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Policy

FINE = Fraction(1, 1024)
"""The step of sizes at which the curve is certified, in scales; below it, losses follow the slope at the first steps."""
POINTS = 400
LARGEST = 2.0**40
Evaluated = Callable[[Sequence[Policy]], FloatArray]
"""The losses of some records under policies, a column for each."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Curve:
    """CONFIDENTIAL if the records are: what records lose from one statistic with fat-tailed noise."""

    sizes: FloatArray
    """The logarithm of each record's size in scales of the noise."""
    weights: FloatArray
    """What the statistic costs a record as a part of the curve: 0 where it does not count the record."""
    knots: tuple[FloatArray, FloatArray]

    def at(self, factor: float) -> FloatArray:
        """The losses at noise divided by the square root of the factor."""
        places, levels = self.knots
        logs = self.sizes + np.log(factor) / 2
        slope = (levels[1] - levels[0]) / (places[1] - places[0])
        below = np.minimum(logs - places[0], 0.0) * slope
        return np.asarray(self.weights * np.exp(np.interp(logs, places, levels) + below))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ScaledLosses:
    """CONFIDENTIAL if the records are: the losses of some records under a plan, for any factor of its noise."""

    rest: FloatArray
    """What the statistics cost that are not examined."""
    proportional: FloatArray
    curves: tuple[Curve, ...]
    is_fixed: bool
    """Whether the losses are known for the noise as it is only, at a factor of 1."""

    def at(self, factor: float) -> FloatArray:
        """The losses at noise divided by the square root of the factor."""
        return np.asarray(sum((each.at(factor) for each in self.curves), self.rest + factor * self.proportional))


def scaled_losses(
    plan: Scalable, policy: Policy, rest: Policy, columns: Mapping[str, Any], evaluated: Evaluated
) -> ScaledLosses:
    """The losses of records with these columns: from fat-tailed noise by a curve, from the others in proportion."""
    fat = [place for place in plan.places() if has_width(plan.drawn(place).mechanism)]
    is_fixed = not all(_can_be_scaled(plan, place, columns) for place in plan.places())
    policies = [] if is_fixed else [_cost(plan, place) for place in fat]
    losses = evaluated([rest, policy, *policies])
    curves = [
        _curve(plan.drawn(place).mechanism, _sizes(plan, place, columns, len(losses)), own)
        for place, own in zip(fat, losses.T[2:])
    ]
    others = losses[:, 1] - losses[:, 0] - losses[:, 2:].sum(axis=1)
    return ScaledLosses(
        rest=losses[:, 0], proportional=np.maximum(others, 0.0), curves=tuple(curves), is_fixed=is_fixed
    )


def _can_be_scaled(plan: Scalable, place: tuple[int, str], columns: Mapping[str, Any]) -> bool:
    """Whether other noise can be evaluated; of fat-tailed noise only where the sizes of records are known."""
    own = plan.drawn(place)
    is_known = own.planned_as == COUNT or own.planned_as in columns
    return has_amount(own.mechanism) or (
        has_width(own.mechanism) and is_known and len(plan.queries[place[0]].tables()) == 1
    )


def _cost(plan: Scalable, place: tuple[int, str]) -> Policy:
    """What one statistic of a query with one table costs the records it counts."""
    query, schema = plan.queries[place[0]], plan.schema
    (level,), statistic = query.tables(), plan.drawn(place)
    return statistic_policy(query, statistic, level, schema, tight=True).where(records_of(query.condition, schema))


def _sizes(plan: Scalable, place: tuple[int, str], columns: Mapping[str, Any], records: int) -> FloatArray:
    """The size of each record in a measure; 1 for a count."""
    measure = plan.drawn(place).planned_as
    if measure == COUNT:
        return np.ones(records)
    return np.abs(np.asarray(columns[str(measure)], np.float64))


def _curve(mechanism: Any, sizes: FloatArray, losses: FloatArray) -> Curve:
    unit = mechanism.resized(1 / mechanism.width)
    knots = _knots(unit)
    with np.errstate(divide="ignore"):
        logs = np.where(sizes > 0, np.log(sizes * float(unit.width) / float(mechanism.width)), knots[0][0])
    plain = Curve(sizes=logs, weights=np.ones(len(logs)), knots=knots).at(1.0)
    return Curve(sizes=logs, weights=losses / plain, knots=knots)


@lru_cache(maxsize=32)
def _knots(unit: Any) -> tuple[FloatArray, FloatArray]:
    """Logarithms of sizes in scales, and of what the noise costs a record of each: public, the same for all data."""
    steps = np.unique(np.round(np.geomspace(1, LARGEST, POINTS)))
    sizes = steps * float(FINE)
    losses = unit.policy(Measure("size", FINE)).loss({"size": sizes})
    return np.log(sizes), np.log(np.asarray(losses, np.float64))
