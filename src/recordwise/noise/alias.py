"""Walker's alias table in integers: a slot and a coin pick row j with probability exactly ``weights[j] / 2**32``."""

import numpy as np

from recordwise.noise.bits import WordArray

SLOT_BITS = 10
COIN_BITS = 22
SLOTS = 1 << SLOT_BITS
CAPACITY = 1 << COIN_BITS
TOTAL = SLOTS * CAPACITY


def alias_slots(weights: list[int]) -> WordArray:
    """One word per slot, ``threshold << 10 | other``: the slot's own row below the threshold, the other row from it on (T-ALIAS).

    A slot that holds its own row only names itself as the other, so that no threshold has to be the full 2**22.
    """
    if len(weights) != SLOTS or sum(weights) != TOTAL or min(weights) < 0:
        raise ValueError("alias weights must be 1024 integers that add up to 2**32")
    left = list(weights)
    small = [row for row in range(SLOTS) if left[row] < CAPACITY]
    large = [row for row in range(SLOTS) if left[row] > CAPACITY]
    threshold, other = [0] * SLOTS, list(range(SLOTS))
    while small:
        row, donor = small.pop(), large[-1]
        threshold[row], other[row] = left[row], donor
        left[donor] -= CAPACITY - left[row]
        if left[donor] <= CAPACITY:
            large.pop()
            if left[donor] < CAPACITY:
                small.append(donor)
    return np.array([t << SLOT_BITS | o for t, o in zip(threshold, other)], dtype=np.uint32).astype(np.uint64)
