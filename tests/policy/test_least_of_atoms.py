"""The least that an atom is in a region: exact where it can be, else next to the exact value and never above it."""

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from recordwise.exact.functions import log, x
from recordwise.policy import Measure
from recordwise.policy.atoms import Additive, One, Square
from recordwise.policy.dominance.curves import _least

EMP, PAY = Measure("emp"), Measure("pay", Fraction(1, 4))


def region(**ranges: int) -> Any:
    return SimpleNamespace(ranges={name: (first, None) for name, first in ranges.items()})


@pytest.mark.parametrize("first", [0, 1, 5, 10**6])
def test_a_logarithm_is_bounded_closely_from_below(first: int) -> None:
    found = _least(Additive(EMP, log(1 + x), "pure"), region(emp=first))
    assert math.log1p(first) * (1 - 1e-9) <= found <= math.log1p(first) * (1 + 1e-15)
    steps = _least(Additive(PAY, log(1 + x), "pure"), region(pay=first))
    assert float(steps) == pytest.approx(math.log1p(first / 4), rel=1e-9)


def test_what_is_exact_stays_exact() -> None:
    assert _least(Square(PAY), region(pay=6)) == Fraction(9, 4)
    assert _least(One(), region()) == 1
