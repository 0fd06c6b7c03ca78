"""Functions as text: what the grammar allows is what Python would build, and nothing else gets through."""

import contextlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordwise.errors import ParameterError
from recordwise.exact.functions import log, x
from recordwise.plan.file.mechanisms import parse_function

SAME = {
    "x": x,
    "x ** 0.25": x ** Fraction(1, 4),
    "(x + 1) ^ (1/4)": (x + 1) ** Fraction(1, 4),
    "sqrt(x / 50)": (x / 50) ** Fraction(1, 2),
    "(x / 50) ** 0.5 + log(x / 10 + 1)": (x / 50) ** Fraction(1, 2) + log(x / 10 + 1),
    "2 * log(x/5 + 3) ** 2": 2 * log(x / 5 + 3) ** 2,
    "2 * ln(3 + x/5)**2": 2 * log(x / 5 + 3) ** 2,
    "3 + x * 2": x * 2 + 3,
    "(1 + 2) * 4 / 2 * x": x * 6,
    "x * 1e-3": x / 1000,
    ".5 * x": x / 2,
    "2 ** 3 * x": x * 8,
}
REFUSED = [
    "",
    "3",
    "y",
    "x - 1",
    "x *",
    "(x",
    "x)",
    "x x",
    "x ** x",
    "1 / x",
    "x / 0",
    "x * x",
    "log(x)",
    "log(3) * x",
    "exp(x)",
    "sqrt x",
    "0 * x",
    "x ** 0",
    "x; import os",
    "__import__('os').system('true')",
    "x.__class__",
    "x[0]",
    "lambda x: x",
    "x ** 1e999999999",
    "2 ** 1000 * x",
    "(" * 200 + "x" + ")" * 200,
    "x + " * 400 + "x",
    "1e",
    "x ** -1",
]


@pytest.mark.parametrize("text", SAME)
def test_text_and_python_build_the_same_function(text):
    assert parse_function(text) == SAME[text]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_an_increasing_function_of_x_is_refused(text):
    with pytest.raises(ParameterError):
        parse_function(text)


@given(st.text("x0123456789.+-*/^() eElogsqrtn\n_'", max_size=40))
@pytest.mark.costly
def test_no_text_does_anything_but_parse_or_be_refused(text):
    with contextlib.suppress(ParameterError):
        parse_function(text)
