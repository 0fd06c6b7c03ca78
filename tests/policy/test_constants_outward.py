"""Sums of constants are rounded up, too: a tiny part of a loss is never lost."""

from fractions import Fraction

import pytest

from recordwise.policy import among, constant


@pytest.mark.parametrize("exponent", [50, 52, 53, 54, 70, 200])
def test_a_constant_far_below_another_still_counts(exponent: int) -> None:
    small = Fraction(1, 2**exponent)
    policy = constant(1).where(among("group", ["a", "b"])) + constant(small).where(among("group", ["a"]))
    both, one, none = (Fraction(float(each)) for each in policy.loss({"group": ["a", "b", "c"]}))
    assert 1 + small <= both <= 1 + small + Fraction(1, 2**48)
    assert 1 <= one <= 1 + Fraction(1, 2**48)
    assert none == 0
