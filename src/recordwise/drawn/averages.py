"""A noisy sum over a noisy count (T-AVG, docs/theory/averages.md)."""

import numpy as np

from recordwise.drawn.variable import NOT_UNBIASED, Drawn
from recordwise.mechanisms import Estimates


def average(alias: str, total: Estimates, count: Estimates, *, level: float) -> Drawn:
    """The ratio, with an interval of at least ``level`` if both parts have intervals of (1 + level)/2.

    Where the count may be 0 there is no interval, and no value where the noisy count is not positive.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = np.where(count.value > 0, total.value / count.value, np.nan)
        spread = np.sqrt(total.standard_error**2 + value**2 * count.standard_error**2) / count.value
        low = total.low / np.where(total.low >= 0, count.high, count.low)
        high = total.high / np.where(total.high >= 0, count.low, count.high)
    known = count.low > 0
    estimates = Estimates(
        value=value,
        median_unbiased=value,
        standard_error=spread,
        variance_unbiased=spread**2,
        low=np.where(known, np.nextafter(low, -np.inf), np.nan),
        high=np.where(known, np.nextafter(high, np.inf), np.nan),
        level=level,
    )
    return Drawn(alias=alias, estimates=estimates, flag=f"{NOT_UNBIASED}: a ratio of two noisy numbers")
