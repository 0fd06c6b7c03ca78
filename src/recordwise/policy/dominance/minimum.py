"""The smallest loss any record can have (PolicyMin)."""

from recordwise.errors import ParameterError, RecordError
from recordwise.exact.numbers import arb_float_upper, ball, working_precision
from recordwise.policy.dominance.regions import Region, regions
from recordwise.policy.evaluate.numpy import PRECISION, terms_ball
from recordwise.policy.policy import Policy


def minimum(policy: Policy) -> float:
    """The smallest loss over all regions; every atom is smallest where the amounts are."""
    with working_precision(PRECISION):
        parts = regions(policy.rho, policy.measures())
        if parts is None:
            raise ParameterError(
                parameter="policy", problem="has conditions with too many combinations to find its minimum"
            )
        values = [value for region in parts if (value := _least_in(policy, region)) is not None]
    return min(values, default=float("inf"))


def _least_in(policy: Policy, region: Region) -> float | None:
    amounts = {m.name: ball(m.step * region.ranges[m.name][0]) for m in policy.measures()}
    try:
        return arb_float_upper(terms_ball(policy.rho, region.groups, amounts))
    except RecordError:
        return None
