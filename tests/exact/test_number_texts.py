"""Every way to write a number, at, just below and just above the sizes at which it changes."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from recordwise.exact import text as texts

F = Fraction
BELOW = math.nextafter
TEXTS: dict[Callable[..., str], list[tuple[Any, str]]] = {
    texts.latex_number: [
        (F(0), "0"),
        (F(7), "7"),
        (F(-7), "-7"),
        (F(5, 2), "2.5"),
        (F(-1, 40), "-0.025"),
        (F(-12345, 1000), "-12.345"),
        (F(1, 10**9), "0.000000001"),
        (F(1, 10**10), r"1.00000000001\cdot 10^{-10}"),
        (F(1, 3), r"\frac{1}{3}"),
        (F(-1, 3), r"\frac{-1}{3}"),
        (F(999_998, 7), r"\frac{999998}{7}"),
        (F(1_000_000, 7), "142857.142858"),
        (F(5, 1_000_000_007), r"4.99999996501\cdot 10^{-9}"),
        (F(5, 999_999), r"\frac{5}{999999}"),
        (F(2**89 - 1), str(2**89 - 1)),
        (F(2**89), r"6.18970019643\cdot 10^{26}"),
    ],
    texts.latex_factor: [(F(1), ""), (F(2), r"2\,"), (F(1, 2), r"0.5\,")],
    texts.exact_text: [
        (F(0), "0"),
        (F(-1234567), "-1,234,567"),
        (F(1, 8), "0.125"),
        (F(1, 5), "0.2"),
        (F(3, 40), "0.075"),
        (F(-5001, 4), "-1,250.25"),
        (F(1, 25), "0.04"),
        (F(10_000, 3), "10,000/3"),
        (F(-1, 6), "-1/6"),
    ],
    texts.formula_text: [(F(1, 3), "0.333333"), (1234567.0, "1.23457e+06")],
    texts.prose_text: [(F(123_456), "123,456"), (0.25, "0.25"), (1234567.0, "1.23457e+06")],
    texts.whole_text: [(1234.5678, "1,235"), (-0.4, "-0")],
    texts.share_text: [(0.126, "13%"), (468.0563, "46,806%")],
    texts.coarse_share_text: [
        (0.0, "0%"),
        (1.0, "100%"),
        (0.0009999, "< 0.1%"),
        (0.001, "0.1%"),
        (0.0094, "0.9%"),
        (0.0095, "1%"),
        (0.12, "12%"),
        (0.995, "100%"),
        (0.9951, "99.5%"),
        (0.99949, "99.9%"),
        (0.9995, "> 99.9%"),
    ],
    texts.tick_text: [(0.5, "50%"), (0.125, "12.5%"), (0.0001, "0.01%"), (1.0, "100%")],
    texts.residual_text: [(0.000123, "1.2e-04")],
    texts.factor_text: [
        (0.0, "1.00"),
        (math.log(99.994), "99.99"),
        (math.log(100.0001), "100"),
        (14.0, "1,202,604"),
        (BELOW(14.0, 15.0), "10⁶"),
        (math.log(10) * 12, "10¹²"),
    ],
    texts.number_text: [
        (math.inf, "without limit"),
        (math.nan, "without limit"),
        (0.0, "0"),
        (1e-4, "0.0001"),
        (BELOW(1e-4, 0.0), "0.0001"),
        (0.00009, "9e-05"),
        (-0.00009, "-9e-05"),
        (0.001234567, "0.001235"),
        (9.87654, "9.877"),
        (-12.3456, "-12.35"),
        (1234.56, "1,235"),
        (BELOW(1e15, 0.0), "1,000,000,000,000,000"),
        (1e15, "1e+15"),
        (-1e15, "-1e+15"),
    ],
    texts.loss_text: [(0.012345, "0.0123"), (math.inf, "without limit"), (1.0, "1")],
    texts.figure: [
        (None, "none"),
        (math.nan, "none"),
        (math.inf, "none"),
        (0.0, "0"),
        (0.001, "0.001"),
        (0.000999, "0.000999"),
        (0.00099987, "0.001"),
        (0.0012345, "0.001234"),
        (999.96, "1000"),
        (-999.44, "-999.4"),
        (1000.0, "1,000"),
        (-1234.5, "-1,234"),
        (1e9 - 1, "999,999,999"),
        (1e9, "1e+09"),
        (0.00012345, "0.000123"),
    ],
    texts.cell_text: [
        (None, ""),
        (0.0, "0"),
        (0.09999, "0.1"),
        (0.05678, "0.0568"),
        (0.1, "0.1"),
        (0.12345, "0.12"),
        (9.996, "10"),
        (9.994, "9.99"),
        (10.0, "10"),
        (10.06, "10.1"),
        (99.94, "99.9"),
        (100.4, "100"),
        (-100.6, "-101"),
        (-3.456, "-3.46"),
        (12345.6, "12,346"),
    ],
    texts.size_text: [
        (999_999, "999,999"),
        (10**6, "1 million"),
        (2_500_000, "2.5 million"),
        (10**9 - 1000, "999.999 million"),
        (10**9, "1 billion"),
        (10**12, "1 trillion"),
        (3 * 10**15, "3,000 trillion"),
        (0.5, "0.5"),
    ],
    texts.brief_text: [
        (616_825_359.0, "617 million"),
        (-1_234.0, "-1,230"),
        (999_500.0, "1 million"),
        (999_400.0, "999,000"),
        (math.inf, "without limit"),
        (0.0, "0"),
    ],
    texts.percent_text: [
        (0.0999, "10.0%"),
        (0.0123, "1.2%"),
        (0.1, "10%"),
        (9.99, "999%"),
        (10.0, "> 1000%"),
    ],
    texts.chance_text: [
        (0.12345, "0.123"),
        (1e-4, "0.0001"),
        (0.000099, "9.9 × 10⁻⁵"),
        (1.234e-12, "1.23 × 10⁻¹²"),
    ],
    texts.screen_number: [
        (0.0, "0"),
        (0.001, "0.001"),
        (0.00099, "< 0.001"),
        (-0.0005, "-< 0.001"),
        (-1234.5, "-1,230"),
        (1225.0, "1,230"),
        (0.125, "0.125"),
        (0.0625, "0.0625"),
        (2.5, "2.5"),
        (1.125, "1.13"),
    ],
    texts.screen_whole: [(2.5, "3"), (-2.5, "-3"), (-0.4, "0"), (1234.49, "1,234"), (0.5, "1"), (-0.5, "-1")],
    texts.screen_share: [
        (0.0, "0%"),
        (1.0, "100%"),
        (0.0009, "< 0.1%"),
        (0.001, "0.1%"),
        (0.00125, "0.1%"),
        (0.999, "99.9%"),
        (0.9991, "> 99.9%"),
        (0.50125, "50.1%"),
        (0.0625, "6.3%"),
    ],
    texts.screen_error: [
        (0.0625, "6.3%"),
        (0.09949, "9.9%"),
        (0.1, "10%"),
        (0.125, "13%"),
        (10.0, "1000%"),
        (10.01, "> 1000%"),
        (0.0, "0.0%"),
    ],
    texts.superscript: [("1234567890", "¹²³⁴⁵⁶⁷⁸⁹⁰")],
}
CASES = [(write, value, text) for write, cases in TEXTS.items() for value, text in cases]


@pytest.mark.parametrize("write", TEXTS, ids=lambda each: each.__name__)
def test_numbers_are_written_as_said(write: Callable[..., str]) -> None:
    found = [(value, write(value)) for value, _ in TEXTS[write]]
    assert str(found) == str(TEXTS[write])


@pytest.mark.parametrize(
    "found, text",
    [
        (texts.digits_text(1234.5678, 3), "1.23e+03"),
        (texts.digits_text(0.0123456, 2), "0.012"),
        (texts.amount_text(F(12345, 8), 2), "1,543.12"),
        (texts.share_text(0.12345, 1), "12.3%"),
        (texts.factor_text(30.0, plain=True), "10^13"),
        (texts.factor_text(3.0, plain=True), "20.09"),
        (texts.figure(math.inf, infinite="no limit"), "no limit"),
        (texts.figure(-math.inf, infinite="no limit"), "no limit"),
        (texts.meaningful_text(12345.6, 10.0), "12,350"),
        (texts.meaningful_text(12345.6, 99.0), "12,350"),
        (texts.meaningful_text(12345.6, 100.0), "12,300"),
        (texts.meaningful_text(12345.6, 1.0), "12,346"),
        (texts.meaningful_text(12345.6, 0.99), "12,346"),
        (texts.meaningful_text(12345.6, math.inf), "12,346"),
        (texts.meaningful_text(12345.6, math.nan), "12,346"),
        (texts.meaningful_text(99.94, 10.0), "99.9"),
        (texts.meaningful_text(-99.94, 10.0), "-99.9"),
        (texts.meaningful_text(-104.0, 10.0), "-100"),
        (texts.meaningful_text(100.0, 10.0), "100"),
    ],
)
def test_numbers_are_written_as_asked(found: str, text: str) -> None:
    assert found == text


@pytest.mark.parametrize(
    "error, decimals",
    [(0.0, 1), (1.0, 1), (2.0, 1), (0.5, 1), (0.1, 1), (0.0999, 1), (0.01, 1), (0.00999, 2), (1e-9, 8), (1e-7, 6)],
)
def test_a_percentage_has_the_decimals_that_its_error_leaves(error: float, decimals: int) -> None:
    assert texts.share_decimals(error) == decimals
