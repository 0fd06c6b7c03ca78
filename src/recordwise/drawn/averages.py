"""A noisy sum over a noisy count (T-AVG, docs/theory/averages.md)."""

import numpy as np

from recordwise.drawn.variable import NOT_UNBIASED, Drawn


def average(alias: str, total: Drawn, count: Drawn) -> Drawn:
    """The ratio, with an interval of level 1 - a where both parts have intervals of level 1 - a/2.

    Where the count may be 0 there is no interval, and no value where the noisy count is not positive.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = np.where(count.value > 0, total.value / count.value, np.nan)
        spread = np.sqrt(total.standard_error**2 + value**2 * count.standard_error**2) / count.value
        low = total.low / np.where(total.low >= 0, count.high, count.low)
        high = total.high / np.where(total.high >= 0, count.low, count.high)
    known = count.low > 0
    return Drawn(
        alias=alias,
        value=value,
        standard_error=spread,
        low=np.where(known, np.nextafter(low, -np.inf), np.nan),
        high=np.where(known, np.nextafter(high, np.inf), np.nan),
        flag=f"{NOT_UNBIASED}: a ratio of two noisy numbers",
    )
