"""Each operation of each number system against mpmath, and numbers that are read and rounded by pencil and paper."""

import math
import sys
import threading
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb, arb_series, ctx

from recordwise.errors import ParameterError, UnknownFormError
from recordwise.exact import numbers
from recordwise.exact.arithmetic import BallArithmetic, BallColumns, NumpyArithmetic, largest_allowed
from recordwise.exact.functions import Log, Power, Sum, from_json, log, x

F = Fraction
NUMPY, BALLS = NumpyArithmetic(), BallArithmetic()
POINTS = [1e-30, 1e-12, 1e-5, 0.03, 0.4, 0.999, 1.0, 1.001, 1.718, 3.0, 40.0, 1e4, 1e9, 1e30]
EXPONENTS = [F(1), F(2), F(1, 2), F(1, 3), F(1, 4), F(1, 8), F(2, 3), F(1, 7), F(5, 2), F(3), F(1, 5)]


def near(found: Any, exact: Any, close: float) -> bool:
    return bool(abs(mpmath.mpf(float(found)) / exact - 1) <= close)


@pytest.mark.parametrize("exponent", EXPONENTS, ids=str)
def test_powers_are_those_of_mpmath(exponent: Fraction) -> None:
    with mpmath.workdps(60):
        raised = mpmath.mpf(exponent.numerator) / exponent.denominator
        columns = np.array(POINTS)
        found, less = NUMPY.power(columns, exponent), NUMPY.power_less_one(columns, exponent)
        for at, point in enumerate(POINTS):
            value = mpmath.mpf(point)
            assert near(found[at], value**raised, 3e-14)
            assert near(less[at], mpmath.expm1(raised * mpmath.log1p(value)), 3e-14)
            for ball, exact in (
                (BALLS.power(arb(point), exponent), value**raised),
                (BALLS.power_less_one(arb(point), exponent), mpmath.expm1(raised * mpmath.log1p(value))),
            ):
                assert near(ball.mid(), exact, 1e-12)
    if exponent in (1, 2):
        np.testing.assert_array_equal(found, columns**exponent.numerator)
    if exponent == F(1, 4):
        np.testing.assert_array_equal(found, np.sqrt(np.sqrt(columns)))


@pytest.mark.parametrize("exponent", [F(2, 3), F(1, 7), F(8, 3)], ids=str)
def test_an_exponent_that_is_no_float_never_lowers_a_power(exponent: Fraction) -> None:
    low, high = numbers.float_lower(exponent), numbers.float_upper(exponent)
    assert low < high
    for point, taken in ((0.3, low), (math.nextafter(1.0, 0.0), low), (1.0, high), (2.5, high)):
        assert NUMPY.power(np.array([point]), exponent)[0] == np.power(point, taken)


def test_other_operations_are_those_of_mpmath() -> None:
    columns = np.array(POINTS)
    with mpmath.workdps(80):
        for at, point in enumerate(POINTS):
            value = mpmath.mpf(point)
            remainder = mpmath.expm1(-value) + value
            assert near(NUMPY.exp_remainder(columns)[at], remainder, 2e-15)
            assert near(NUMPY.log1p(columns)[at], mpmath.log1p(value), 1e-15)
            assert near(NUMPY.tanh(columns)[at], mpmath.tanh(value), 1e-15)
            with numbers.working_precision(200):
                assert near(BALLS.exp_remainder(arb(point)).mid(), remainder, 1e-14)
                assert near(BALLS.log1p(arb(point)).mid(), mpmath.log1p(value), 1e-14)
                assert near(BALLS.tanh(arb(point)).mid(), mpmath.tanh(value), 1e-14)
    for numbers_, two, three, less, none in (
        (NUMPY, np.array([2.0]), np.array([3.0]), np.array([-1.0]), np.array([0.0])),
        (BALLS, arb(2), arb(3), arb(-1), arb(0)),
    ):
        each: Any = numbers_
        assert [each.add(two, three), each.multiply(two, three), each.maximum(two, three)] == [5, 6, 3]
        assert [each.minimum(two, three), each.divide(three, two)] == [2, 1.5]
        assert [each.if_positive(test, three) for test in (two, none, less)] == [3, 0, 0]


def test_balls_of_an_increasing_function_are_the_images_of_their_ends() -> None:
    wide = arb(3, 1)
    with numbers.working_precision(100):
        image = BALLS.power(wide, F(2))
        assert image.contains(arb(4))
        assert image.contains(arb(16))
        assert float(image.rad()) < 6.001
        below = BALLS.log1p(arb(0, 1))
        assert float(below.lower()) > -1e-6
        assert below.contains(arb(2).log())
        assert BALLS.power(arb(-1, "0.5"), F(1, 2)) == 0
    either = BALLS.if_positive(arb(0, 1), arb(5))
    assert either.contains(arb(0))
    assert either.contains(arb(5))
    assert BALLS.if_positive(arb(2, 1), arb(5)) == 5
    assert BALLS.if_positive(arb(-2, 1), arb(5)) == 0
    columns = BallColumns()
    assert [float(each) for each in columns.power(columns.column([0, 4, 9]), F(1, 2))] == [0, 2, 3]


def test_a_search_between_an_allowed_number_and_one_that_is_not() -> None:
    asked: list[float] = []

    def allowed(value: float) -> bool:
        asked.append(value)
        return value <= 10

    assert largest_allowed(allowed, 1.0, 256.0, rounded=float, rounds=3) == 8.0
    assert asked == [16.0, 4.0, 8.0]
    found = largest_allowed(allowed, 1.0, 256.0, rounded=float)
    assert found <= 10 < math.nextafter(found, 11) + 1e-14
    asked.clear()
    assert largest_allowed(allowed, 1.0, 256.0, rounded=float, close=16.0) == 1.0
    assert asked == [16.0]
    asked.clear()
    assert largest_allowed(allowed, 1.0, 256.0, rounded=float, close=15.9) == 4.0
    assert largest_allowed(lambda value: value <= 10, F(1), F(99), rounded=lambda value: F(round(value))) == 10


def polynomial(point: Any) -> Any:
    """What ``MIXED`` is, in mpmath."""
    root = (point / 5 + 3) ** (mpmath.mpf(1) / 2) + 1
    return (
        2 * mpmath.log(root) ** mpmath.mpf("1.5")
        + (point + 1) ** (mpmath.mpf(1) / 4) / 3
        + point / 7
        + mpmath.mpf(11) / 2
    )


MIXED = 2 * log((x / 5 + 3) ** "0.5" + 1) ** "1.5" + (x + 1) ** "0.25" / 3 + x / 7 + "5.5"


def test_a_function_of_every_kind_is_that_of_mpmath() -> None:
    inner = 3 * log(x + 2) + 1
    with mpmath.workdps(50), numbers.working_precision(160):
        for point in (0.0, 1e-9, 0.3, 2.0, 77.0, 1e8):
            value = mpmath.mpf(point)
            column = np.array([point])
            assert near(MIXED.value(BALLS, arb(point)).mid(), polynomial(value), 1e-14)
            assert near(MIXED.value(NUMPY, column)[0], polynomial(value), 1e-14)
            through = polynomial(3 * mpmath.log(value + 2) + 1)
            assert near(MIXED.after(inner).value(BALLS, arb(point)).mid(), through, 1e-14)
            if point:
                rise = polynomial(value) - polynomial(mpmath.mpf(0))
                assert near(MIXED.increase(BALLS, arb(point)).mid(), rise, 1e-13)
                assert near(MIXED.increase(NUMPY, column)[0], rise, 1e-13)
        assert near(MIXED.at_zero().mid(), polynomial(mpmath.mpf(0)), 1e-15)
    assert (x**3).increase(NUMPY, np.array([2.0]))[0] == 8.0
    assert from_json(MIXED.to_json()) == MIXED
    assert MIXED.nesting_depth() == 3
    assert [each.nesting_depth() for each in (x, x + 1, log(x + 1), log(x + 1) ** 2 + x)] == [0, 0, 1, 2]


def test_a_function_of_every_kind_is_written() -> None:
    assert MIXED.to_latex("n") == (
        r"2\,\left(\ln\left(\sqrt{0.2\,n + 3} + 1\right)\right)^{1.5} + \frac{1}{3}\,\sqrt[4]{n + 1} + \frac{1}{7}\,n + 5.5"
    )
    assert (x**2).to_latex("y") == "y^{2}"
    assert (x + 0).to_latex("y") == "y"
    assert (x ** "1/2" + 3).concave() == "a power 1/2 <= 1 of a concave function (x is affine)"
    assert (x + log(x + 1)).concave() == (
        "a positive sum of concave functions: the logarithm of a concave function (x is affine); x is affine"
    )
    assert (log(x + 3) ** 2).concave() == "ln(u)^2 is concave for u >= e^1, which u(0) reaches (x is affine)"


def test_equal_sums_are_one_and_keep_their_shifts() -> None:
    assert (x + 1) * 2 + (x + 3) / 2 == Sum(((F(5, 2), x),), F(7, 2))
    assert (x / 2 + 1) * 2 + 0 == x + 2
    assert x / 2 + x / 2 == x
    assert x / 2 + x / 2 + 1 != x
    assert 1 + x == x + 1
    assert x**1 == x
    assert 2 * x == Sum(((F(2), x),), F(0))


@pytest.mark.parametrize(
    "make",
    [
        lambda: x + (-1),
        lambda: x * 0,
        lambda: x / 0,
        lambda: x**0,
        lambda: x ** (-1),
        lambda: Power(Sum(((F(1), x),), F(-1)), F(2)),
        lambda: Log(x),
        lambda: Log(Sum(((F(1), x),), F(-1))),
        lambda: Sum((), F(1)),
        lambda: Sum(((F(1), x),), F(2) ** 201),
        lambda: Sum(((F(2) ** 201, x),), F(1)),
        lambda: log("x"),  # type: ignore[arg-type]
        lambda: (x**2).concave(),
        lambda: (log(x + 2) ** 2).concave(),
        lambda: (log(x + 3) ** "2.2").concave(),
    ],
)
def test_what_is_no_increasing_function_is_refused(make: Any) -> None:
    with pytest.raises(ParameterError):
        make()


def test_a_power_may_start_at_zero_and_a_logarithm_just_above() -> None:
    assert Power(x, F(1, 2)).at_zero() == 0
    assert Log(x + F(1, 2**60)).at_zero() < 0
    assert "e^1" in (log(x + F(27182818285, 10**10)) ** 2).concave()


BAD_FORMS: list[Any] = [
    None,
    "y",
    {"sum": [], "shift": "1"},
    {"sum": [["1", "x"]], "shift": 1},
    {"sum": [["1", "x"]], "shift": "1", "more": 1},
    {"sum": [["1", "x", "x"]], "shift": "1"},
    {"sum": [[1, "x"]], "shift": "1"},
    {"power": "x", "exponent": 2},
    {"power": "x", "exponent": "2", "more": 1},
    {"power": "x"},
    {"log": "x", "more": 1},
]


@pytest.mark.parametrize("form", BAD_FORMS, ids=str)
def test_forms_of_functions_that_nobody_wrote_are_refused(form: Any) -> None:
    with pytest.raises(UnknownFormError):
        from_json(form)


def test_forms_are_read_as_deeply_as_functions_can_be_nested() -> None:
    deep: Any = x + 1
    for _ in range(6):
        deep = log(deep) + 2
    assert from_json(deep.to_json()) == deep
    endless: Any = "x"
    for _ in range(14):
        endless = {"sum": [["1", endless]], "shift": "1"}
    with pytest.raises(UnknownFormError):
        from_json(endless)
    assert from_json(endless["sum"][0][1]) == x + 13


# Numbers.


@pytest.mark.parametrize(
    "text, number",
    [
        ("1" + "0" * 3999, F(10) ** 3999),
        ("1e1000", F(10) ** 1000),
        ("1E-1000", F(10) ** -1000),
        ("-0x1f/0x10", F(-31, 16)),
        ("0x1f/0x10", F(31, 16)),
        (" 7 ", F(7)),
        ("-3/4", F(-3, 4)),
    ],
)
def test_texts_that_are_numbers(text: str, number: Fraction) -> None:
    assert numbers.read_fraction(text) == number


@pytest.mark.parametrize("text", ["1" + "0" * 4000, "1e1001", "1e-1001", "1_0", "١", "0x1f", "0x1F/0x1", "0x1/0x1/"])
def test_texts_that_are_none(text: str) -> None:
    with pytest.raises(ValueError):
        numbers.read_fraction(text)


def test_positive_and_nonnegative_parameters_differ_by_zero() -> None:
    assert numbers.nonnegative(0, parameter="p") == 0
    assert numbers.positive("1e-30", parameter="p") == F(1, 10**30)
    for refuse, bad in ((numbers.positive, 0), (numbers.positive, -1), (numbers.nonnegative, "-1e-30")):
        with pytest.raises(ParameterError, match=r"^p "):
            refuse(bad, parameter="p")  # type: ignore[operator]


def test_numbers_are_rounded_outward_at_the_ends_of_floats() -> None:
    largest = F(sys.float_info.max)
    assert numbers.float_upper(largest) == sys.float_info.max
    assert numbers.float_upper(largest + 1) == math.inf
    assert numbers.float_lower(largest + 1) == sys.float_info.max
    assert numbers.float_lower(-largest - 1) == -math.inf
    assert numbers.float_upper(F(1, 10)) == 0.1
    assert numbers.float_lower(F(1, 10)) == math.nextafter(0.1, 0)
    tiny = F(2) ** -1074
    assert numbers.float_upper(tiny / 3) == 5e-324
    assert numbers.float_lower(tiny / 3) == 0.0
    for up, low, high in (("1e-700", 0.0, 5e-324), ("1e700", sys.float_info.max, math.inf)):
        for sign in (1, -1):
            value = sign * arb(up)
            ends = (numbers.arb_float_lower(value), numbers.arb_float_upper(value))
            assert ends == ((low, high) if sign > 0 else (-high, -low))
    assert numbers.arb_float_upper(arb(0.3)) == numbers.arb_float_lower(arb(0.3)) == 0.3
    assert numbers.arb_float_lower(arb.neg_inf()) == -math.inf
    assert numbers.arb_float_upper(arb.neg_inf()) == -math.inf
    assert numbers.arb_float_lower(arb.pos_inf()) == math.inf
    assert 3.0 <= numbers.arb_float_upper(arb(1, 2)) < 3.0001
    assert -1.0001 < numbers.arb_float_lower(arb(1, 2)) <= -1.0


def test_short_decimals_are_on_their_side_and_have_fourteen_digits() -> None:
    assert numbers.decimal(0.5) == numbers.decimal(0.5, up=True) == F(1, 2)
    third = 1 / 3
    assert numbers.decimal(third) == F(33333333333333, 10**14)
    assert numbers.decimal(third, up=True) == F(33333333333334, 10**14)
    assert numbers.decimal(-third) == F(-33333333333334, 10**14)
    assert numbers.decimal(12345678.123456789) == F(12345678123456, 10**6)


def test_powers_and_roots_are_rounded_up_and_exact_where_they_can_be() -> None:
    assert numbers.power_upper(F(3, 2), F(3)) == F(27, 8)
    assert numbers.power_upper(F(2), F(1, 2)) == F(14142135623731, 10**13)
    assert numbers.power_upper(F(2), F(-1, 2)) == F(70710678118655, 10**14)
    assert numbers.sqrt_upper(F(2)) == F(14142135623730951, 10**16)
    assert numbers.sqrt_upper(F(2), digits=4) == F(1415, 1000)
    assert numbers.sqrt_upper(F(1, 200), digits=4) == F(7072, 10**5)
    assert numbers.sqrt_upper(F(1, 50), digits=2) == F(15, 100)
    assert numbers.sqrt_upper(F(20_000), digits=3) == 142
    assert numbers.sqrt_upper(F(25, 49)) == F(5, 7)
    assert numbers.sqrt_upper(F(8, 9), digits=3) == F(943, 1000)


def test_long_numbers_are_saved_in_hexadecimal_and_short_ones_are_not() -> None:
    assert numbers.fraction_text(F(2**6000 - 1)) == str(2**6000 - 1)
    assert numbers.fraction_text(F(2**6000)) == f"{2**6000:#x}/0x1"
    assert numbers.fraction_text(F(1, 2**6000 - 1)) == f"1/{2**6000 - 1}"
    assert numbers.fraction_text(F(-1, 2**6000)) == f"-0x1/{2**6000:#x}"


def test_the_precision_in_force_is_that_of_the_innermost_block_and_of_its_thread() -> None:
    usual, length = ctx.prec, ctx.cap
    assert numbers.bits_in_force() == 53
    with numbers.working_precision(200):
        assert (numbers.bits_in_force(), ctx.prec) == (200, 200)
        with numbers.working_precision():
            assert (numbers.bits_in_force(), ctx.prec) == (200, 200)
        with numbers.working_precision(90):
            assert (numbers.bits_in_force(), ctx.prec) == (90, 90)
            assert numbers.constant_ball(F(1, 3)).rel_accuracy_bits() < 95
        assert numbers.constant_ball(F(1, 3)).rel_accuracy_bits() > 190
        assert numbers.bits_in_force() == 200
        elsewhere: list[int] = []
        other = threading.Thread(target=lambda: elsewhere.append(numbers.bits_in_force()))
        other.start()
        other.join()
        assert elsewhere == [53]
    assert (numbers.bits_in_force(), ctx.prec) == (53, usual)
    with numbers.working_length(3):
        assert len(list(arb_series([1, 1]).exp())) == 3
    assert ctx.cap == length
    assert numbers.midpoint(arb("0.375")) == F(3, 8)
    assert numbers.midpoint(arb(-3, 1)) == -3
    assert numbers.ball(7) == 7
