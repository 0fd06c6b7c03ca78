"""Whether noise comes twice: a stream used again shows as signs that agree too often at some distance (T-FRESH)."""

import math

import numpy as np

from recordwise.exact.arithmetic import FloatArray

SETTING_ASIDE = 10
"""Of so many samples one helps to find the middle and is then left out."""


def repeated(first: FloatArray, second: FloatArray, *, log_alarms: float) -> bool:
    """Whether two sequences agree at some distance more than independent ones do, but for a chance of exp(-log_alarms).

    Given the same sequence twice, it is compared with itself at every distance but 0.
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
    """How far agreement and the product of the means may stray together, at every distance at once (T-FRESH)."""
    needed = log_alarms + math.log(6 * count + 4)
    return math.sqrt(6 * needed / count) + 2 * math.sqrt(2 * needed / count)


def signs(numbers: FloatArray) -> FloatArray:
    """+1 above the middle, -1 elsewhere; the middle is that of samples set aside."""
    known = np.where(np.isnan(numbers), -np.inf, numbers)
    aside = np.arange(len(known)) % SETTING_ASIDE == 0
    middle = np.median(known[aside]) if len(known) >= SETTING_ASIDE else 0.0
    return np.where(known[~aside] > middle, 1.0, -1.0)
