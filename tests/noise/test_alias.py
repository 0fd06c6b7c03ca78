"""The alias table in integers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordwise.noise.sampler import CAPACITY, SLOTS, TOTAL, alias_slots


def realized(slots) -> list[int]:
    """How many of the 2**32 pairs (slot, coin) pick each row."""
    counts = [0] * SLOTS
    for slot, entry in enumerate(slots.tolist()):
        threshold, other = entry >> 10, entry & 1023
        counts[slot] += threshold
        counts[other] += CAPACITY - threshold
    return counts


def weights_of(parts: list[int]) -> list[int]:
    """1024 weights that add up to 2**32, the given parts first and the rest in the row after them."""
    return [*parts, TOTAL - sum(parts)] + [0] * (SLOTS - len(parts) - 1)


@pytest.mark.theorem("T-ALIAS")
@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 2**23), min_size=0, max_size=500))
@pytest.mark.costly
def test_every_row_gets_exactly_its_weight(parts):
    weights = weights_of(parts)
    assert realized(alias_slots(weights)) == weights


@pytest.mark.theorem("T-ALIAS")
@pytest.mark.parametrize(
    "weights", [[TOTAL] + [0] * 1023, [CAPACITY] * 1024, [0] * 1023 + [TOTAL], [1] * 1023 + [TOTAL - 1023]]
)
def test_extreme_weights_come_out_exactly(weights):
    assert realized(alias_slots(weights)) == weights


@pytest.mark.parametrize("weights", [[1] * 1024, [TOTAL], [TOTAL + 1, -1] + [0] * 1022])
def test_weights_that_are_no_distribution_are_refused(weights):
    with pytest.raises(ValueError, match="2\\*\\*32"):
        alias_slots(weights)


def test_entries_fit_thirty_two_bits():
    assert alias_slots([1] * 1023 + [TOTAL - 1023]).max() <= np.uint64(2**32 - 1)
