"""Whether noise is repeated: a reused stream shows as signs that agree too often at some lag (T-FRESH)."""

import math

import numpy as np

from recordwise.exact.arithmetic import FloatArray

SETTING_ASIDE = 10
"""One in this many samples is used to find the median and is then left out."""


def repeated(first: FloatArray, second: FloatArray, *, log_alarms: float) -> bool:
    """Whether two sequences agree at some lag more than independent ones would, with false-alarm rate exp(-log_alarms).

    A sequence given twice is compared with itself at every lag except 0.
    """
    itself = first is second
    left, right = (signs(each) for each in (first, second))
    count = min(len(left), len(right))
    if count < SETTING_ASIDE:
        return False
    left, right = left[:count], right[:count]
    agreement = np.fft.irfft(np.fft.rfft(left).conj() * np.fft.rfft(right), count) / count
    excess = np.abs(agreement - left.mean() * right.mean())
    return bool(np.max(excess[1:] if itself else excess) > tolerance(count, log_alarms))


def tolerance(count: int, log_alarms: float) -> float:
    """How far agreement may deviate from the product of the means, at all lags at once (T-FRESH)."""
    needed = log_alarms + math.log(6 * count + 4)
    return math.sqrt(6 * needed / count) + 2 * math.sqrt(2 * needed / count)


def signs(numbers: FloatArray) -> FloatArray:
    """+1 above the median, -1 elsewhere; the median is that of samples set aside."""
    known = np.where(np.isnan(numbers), -np.inf, numbers)
    aside = np.arange(len(known)) % SETTING_ASIDE == 0
    middle = np.median(known[aside]) if len(known) >= SETTING_ASIDE else 0.0
    return np.where(known[~aside] > middle, 1.0, -1.0)
