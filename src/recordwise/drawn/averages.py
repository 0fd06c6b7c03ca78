"""A noisy sum over a noisy count (T-AVG, docs/theory/averages.md)."""

import numpy as np

from recordwise.drawn.ratios import Side, ratio_interval
from recordwise.drawn.variable import NOT_UNBIASED, Drawn

ONE_RECORD = 1.0


def average(alias: str, total: Drawn, count: Drawn, *, sides: tuple[Side, Side]) -> Drawn:
    """The ratio with its interval in every cell (T-RATIO); no value and no error where the noisy count is not positive."""
    known = count.value > 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = np.where(known, total.value / count.value, np.nan)
        error = np.sqrt(total.standard_error**2 + value**2 * count.standard_error**2) / count.value
    low, high = ratio_interval(*sides, least=ONE_RECORD)
    flag = f"{NOT_UNBIASED}: a ratio of two noisy numbers"
    return Drawn(alias=alias, value=value, standard_error=error, low=low, high=high, flag=flag)
