"""Public functions: the concavity certificate holds and is not given away, values are right, nothing nests without end."""

from fractions import Fraction
from random import Random

import mpmath
import pytest
from flint import arb

import reference_loss
from random_policies import random_function
from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import BallArithmetic, BallColumns
from recordwise.exact.functions import Function, Sum, log, x
from recordwise.exact.numbers import working_precision
from recordwise.exact.text import latex_number

BALLS = BallArithmetic()


def value(function: Function, at: Fraction) -> arb:
    with working_precision(400):
        return function.value(BALLS, arb(at.numerator) / at.denominator)


def test_a_column_of_points_has_the_very_balls_of_its_points() -> None:
    rng, columns = Random(7), BallColumns()
    points = [0, 1, 2, 7, 1000, 2**40 + 1, 2**62]
    with working_precision(160):
        for _ in range(100):
            function = random_function(rng, 3)
            for compute in (function.value, function.increase):
                found = compute(columns, columns.column(points))
                known = [compute(BALLS, arb(point)) for point in points]
                assert [(each.mid().man_exp(), each.rad().man_exp()) for each in found] == [
                    (each.mid().man_exp(), each.rad().man_exp()) for each in known
                ]


@pytest.mark.theorem("T-CONCAVE")
def test_certified_functions_increase_and_bend_down_everywhere_sampled() -> None:
    """Second differences at triples from 2**-20 to 2**60; a certificate given to a convex stretch would show."""
    rng = Random(1)
    for _ in range(300):
        function = random_function(rng, 3)
        assert function.concave()
        for _ in range(10):
            middle = Fraction(2) ** rng.randint(-20, 60) * rng.randint(1, 9)
            width = middle * Fraction(rng.randint(1, 1000), 1000)
            left, center, right = (value(function, middle + shift) for shift in (-width, 0, width))
            assert not right < center
            assert not left > center
            assert not left + right > 2 * center


@pytest.mark.theorem("T-CONCAVE")
@pytest.mark.parametrize(
    "function",
    [
        x**2,
        (x + 1) ** "1.01",
        (x**3 + 20) ** "1/2",
        log(x**3 + 20),
        log(x**8 + 20) ** 2,
        log((x + 1) ** 2 + x**4 + 50) ** 3,
        log(x + 2) ** 2,
        log(x + Fraction("2.718")) ** 2,
        log(x + 7) ** 3,
        x + x**2,
        log(x + 3) ** 2 + x**2,
    ],
)
def test_what_is_not_concave_or_not_known_to_be_gets_no_certificate(function: Function) -> None:
    with pytest.raises(ParameterError, match="concave"):
        function.concave()


@pytest.mark.theorem("T-CONCAVE")
def test_a_power_of_a_logarithm_is_certified_from_its_threshold_on_and_truly_convex_before() -> None:
    """ln(u)**p is concave exactly for u >= e**(p-1)."""
    assert (log(x + Fraction("2.7182818284591")) ** 2).concave()
    below = log(x + Fraction("2.5")) ** 2
    left, center, right = (value(below, Fraction(k, 100)) for k in (0, 1, 2))
    assert left + right > 2 * center


def test_increase_is_the_difference_from_zero_and_keeps_its_digits() -> None:
    rng = Random(2)
    with working_precision(300):
        for _ in range(200):
            function = random_function(rng, 3)
            for exponent in (-40, -3, 0, 5, 50):
                at = arb(2) ** exponent
                direct = function.value(BALLS, at) - function.at_zero()
                increase = function.increase(BALLS, at)
                assert increase.overlaps(direct)
                assert increase.rel_accuracy_bits() > 150


def test_values_agree_with_plain_formulas() -> None:
    rng = Random(3)
    for _ in range(200):
        function = random_function(rng, 3)
        at = Fraction(rng.randint(0, 10**6), 7)
        exact = reference_loss.function(function.to_json(), reference_loss.number(at))
        found = mpmath.mpf(value(function, at).str(40, radius=False))
        assert abs(found - exact) <= mpmath.mpf(10) ** -30 * (1 + abs(exact))


def test_equal_expressions_are_equal_values() -> None:
    assert x + 1 + 2 == x + 3
    assert 2 * x + 3 * x == 5 * x
    assert (x + 1) * 2 == x * 2 + 2
    assert x * 1 == x
    assert x**1 == x
    assert hash(log(x + 1) + x) == hash(x + log(x + 1))


def test_nesting_and_sums_are_limited() -> None:
    function: Function = x + 3
    for _ in range(6):
        function = log(function + 3)
    with pytest.raises(ParameterError, match="nests"):
        log(function + 3)
    with pytest.raises(ParameterError, match="nests"):
        (function + 3) ** "1/2"
    with pytest.raises(ParameterError, match="sum"):
        Sum(tuple((Fraction(1), (x + k) ** "1/2") for k in range(40)), Fraction(0))
    with pytest.raises(ParameterError, match="exponent"):
        x**9


@pytest.mark.parametrize(
    "number, text",
    [
        (Fraction(1, 10), "0.1"),
        (Fraction(-5, 4), "-1.25"),
        (Fraction(1, 3), r"\frac{1}{3}"),
        (Fraction(0), "0"),
        (Fraction(10**20 + 1), "100000000000000000001"),
        (Fraction(1, 10**9), "0.000000001"),
    ],
)
def test_numbers_in_formulas_are_exact(number: Fraction, text: str) -> None:
    assert latex_number(number) == text


def test_very_long_numbers_in_formulas_are_short_and_rounded_up() -> None:
    assert len(latex_number(Fraction(10**50 + 1, 3**40))) < 40
    assert latex_number(Fraction(10**40 + 1)) == r"1.00000000001\cdot 10^{40}"
    assert latex_number(Fraction(10**40 + 1, 3 * 10**40)) == "0.333333333334"
