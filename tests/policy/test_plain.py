"""Policies as plain text: every kind of term has one line that says what it is."""

import pytest

import recordwise as rw
from recordwise.exact.functions import log, x
from recordwise.policy import Measure, additive, constant, maximum, pieces, selection, split
from recordwise.policy.render.text import function_text, policy_lines

LINES = [
    (rw.Policy(), ["0"]),
    (constant("0.05"), ["0.05"]),
    (split("0.1", {"emp": 50, "pay": 2000}), ["0.1 * max(1, ceil(emp / 50), ceil(pay / 2000))^2"]),
    (pieces("0.1", {"emp": 50}), ["0.1 * max(1, ceil(emp / 50))"]),
    (rw.Gaussian(sigma=10).policy("emp"), ["0.005 * emp^2"]),
    (rw.LogTransform(offset=1000, sigma="0.2").policy("pay"), ["12.5 * (ln(pay + 1000) - 6.90776)^2"]),
    (rw.RootTransform(degree=2, sigma=1).policy("pay"), ["0.5 * (pay^0.5)^2"]),
    (
        rw.LogTransform(offset=1, laplace_scale="0.1").policy("pay"),
        ["[e - 1 + exp(-e), e = (ln(pay + 1)) / 0.1]"],
    ),
    (additive("emp", (x / 5) ** 0.5, bound="pure"), ["((emp / 5)^0.5)"]),
    (2 * additive("emp", (x / 5) ** 0.5), ["2 * [at most e*tanh(e/2), e = (emp / 5)^0.5]"]),
    (maximum([constant(1), rw.Gaussian(sigma=1).policy("emp")]), ["max(1, 0.5 * emp^2)"]),
    (selection(10, {Measure("emp"): 50}, ((1, 1),)), ["0.005 * max(1, ceil(emp / 50))^2"]),
]


@pytest.mark.parametrize(("policy", "lines"), LINES)
def test_a_policy_is_printed_term_by_term(policy, lines):
    assert policy_lines(policy) == lines


def test_conditions_are_said_in_words():
    at = rw.by(rw.policy.ConditionColumn("naics", 2), {"44": 10})
    first, second = policy_lines(rw.UnitSplit(at=at, rho=1).policy("emp"))
    assert first == "0.01 * emp^2   if the first 2 characters of 'naics' are '44'"
    assert second.startswith("no guarantee (a group of naics that is not listed)   if")


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (x, "v"),
        (2 * log(x / 5 + 3) ** 2, "2 * ln(v / 5 + 3)^2"),
        ((x + 1) ** 0.25, "(v + 1)^0.25"),
        (3 * x + 2, "3 * v + 2"),
    ],
)
def test_functions_are_printed_at_a_named_argument(function, text):
    assert function_text(function, "v") == text


def test_the_repr_of_a_policy_is_a_formula():
    policy = rw.policy.constant("0.05") + rw.policy.gaussian_sum("emp", sigma=10)
    assert repr(policy) == "Policy(0.05 + 0.005 * emp^2)"
    assert repr(rw.Policy()) == "Policy(0)"


def test_the_repr_of_a_long_policy_is_short():
    policy = rw.policy.split("0.1", {"emp": rw.by("sector", {str(code): 10 + code for code in range(50)}, default=5)})
    shown = repr(policy)
    assert shown.startswith("Policy((0.1 * max(1, ceil(emp / 10))^2 if 'sector' is '0') + (")
    assert shown.endswith(" + 47 more terms)")
    assert len(shown) < 4 * 140
