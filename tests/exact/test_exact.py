"""Numbers are read exactly and rounded to the side their name says."""

import math
import sys
from decimal import Decimal
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from flint import arb

from recordwise.errors import ParameterError
from recordwise.exact.numbers import (
    arb_float_lower,
    arb_float_upper,
    float_lower,
    float_upper,
    fraction_text,
    moderate,
    rational,
    read_fraction,
    sqrt_upper,
)


@pytest.mark.parametrize(
    "given, exact",
    [
        (0.1, Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        (Decimal("2.50"), Fraction(5, 2)),
        (np.float64(0.7), Fraction(7, 10)),
        (np.int8(5), Fraction(5)),
        (5e-324, Fraction(5, 10**324)),
        ("1e-3", Fraction(1, 1000)),
    ],
)
def test_a_parameter_is_read_by_its_shortest_decimal(given: object, exact: Fraction) -> None:
    read = rational(given, parameter="p")  # type: ignore[arg-type]
    assert read == exact
    assert type(read.numerator) is int


def test_a_numpy_integer_does_not_overflow_inside_a_fraction() -> None:
    read = rational(np.int64(2**62), parameter="p")
    assert read * read == Fraction(2**124)


@pytest.mark.parametrize(
    "bad",
    [
        math.nan,
        math.inf,
        "x",
        "1e1001",
        "1e+99999999999",
        "9" * 5000,
        None,
        True,
        1j,
        b"1",
        "1/0",
        "1_000",
        "1,5",
        "\u0663",
    ],
)
def test_what_is_no_finite_number_is_refused(bad: object) -> None:
    with pytest.raises(ParameterError) as caught:
        rational(bad, parameter="rho")  # type: ignore[arg-type]
    assert caught.value.parameter == "rho"
    assert len(str(caught.value)) < 200


def test_floats_are_rounded_to_the_named_side() -> None:
    rng = Random(1)
    for _ in range(2000):
        value = Fraction(rng.randrange(-(10**30), 10**30), rng.randrange(1, 10**30)) * Fraction(2) ** rng.randint(
            -1200, 1200
        )
        upper, lower = float_upper(value), float_lower(value)
        assert upper == math.inf or Fraction(upper) >= value
        assert lower == -math.inf or Fraction(lower) <= value
        assert math.nextafter(lower, math.inf) >= upper
    assert float_upper(Fraction(10) ** 400) == math.inf
    assert float_lower(Fraction(10) ** 400) == sys.float_info.max
    assert float_upper(-(Fraction(10) ** 400)) == -sys.float_info.max


@pytest.mark.parametrize(
    "text", ["1e400", "1e-400", "1e-320", "0.1", "-0.1", "-1e-400", "-1e400", "0", "1e99999999", "-1e-99999999"]
)
def test_balls_are_rounded_to_the_named_side(text: str) -> None:
    value = arb(text)
    upper, lower = arb_float_upper(value), arb_float_lower(value)
    assert arb(upper) >= value.upper()
    assert arb(lower) <= value.lower()
    assert lower != math.inf
    assert upper != -math.inf


def test_balls_that_say_nothing_give_the_safe_end() -> None:
    assert arb_float_upper(arb("nan")) == math.inf
    assert arb_float_lower(arb("nan")) == -math.inf
    assert arb_float_upper(arb.pos_inf()) == math.inf
    assert arb_float_upper(arb(0, "inf")) == math.inf


def test_a_fraction_of_any_length_is_saved_and_read_back() -> None:
    rng = Random(2)
    for bits in (1, 60, 9_000, 11_000, 200_000):
        value = Fraction(rng.getrandbits(bits) + 1, rng.getrandbits(bits) + 1)
        for signed in (value, -value):
            assert read_fraction(fraction_text(signed)) == signed


def test_roots_are_not_below_the_exact_ones_and_short() -> None:
    rng = Random(3)
    for _ in range(500):
        value = Fraction(rng.randrange(1, 10**12), rng.randrange(1, 10**12))
        root = sqrt_upper(value)
        assert root**2 >= value
        assert root**2 <= value * (1 + Fraction(1, 10**15))
    assert sqrt_upper(Fraction(9, 4)) == Fraction(3, 2)


def test_a_number_far_outside_floats_is_not_moderate() -> None:
    assert moderate(Fraction(0), parameter="p") == 0
    for value in (Fraction(2) ** 201, Fraction(1, 2**201), -(Fraction(2) ** 201)):
        with pytest.raises(ParameterError, match="p must"):
            moderate(value, parameter="p")
