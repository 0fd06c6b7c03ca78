"""What a plan asks of a mechanism: its policy, and what a table with levels or group thresholds must change in it.

How noise is drawn is known to ``recordwise.mechanisms`` alone; the plan holds mechanisms without looking inside.
"""

from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from recordwise.errors import PlanError
from recordwise.policy.constructors import By, constant
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Policy


@runtime_checkable
class Mechanism(Protocol):
    """Anything with a policy can answer a statistic of a plan."""

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """The loss of a record as a function of its contribution to a sum."""


def shared(mechanism: Any, share: Fraction) -> Any:
    """The mechanism for a level that gets a share of the budget; what is charged is its own policy, rounding included."""
    if share == 1:
        return mechanism
    if not hasattr(mechanism, "shared"):
        raise PlanError(
            problems=(f"{type(mechanism).__name__} cannot be shared among levels: give each level its own query",)
        )
    return mechanism.shared(share)


def threshold_of(mechanism: Any, measure: Measure) -> Fraction | By | None:
    """The splitting threshold of a measure, if the mechanism has one."""
    return mechanism.threshold(measure) if hasattr(mechanism, "threshold") else None


def count_policy(mechanism: Any) -> Policy:
    """The loss where every record contributes 1: the mechanism's own word, or its policy at a contribution of 1."""
    if hasattr(mechanism, "policy_of_count"):
        return mechanism.policy_of_count()  # type: ignore[no-any-return]
    unit = Measure("count")
    policy: Policy = mechanism.policy(unit)
    return constant(Fraction(policy.loss({unit.name: 1})), near_gaussian=policy.near_gaussian)
