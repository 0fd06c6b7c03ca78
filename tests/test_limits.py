"""Every limit is where the messages and the documents say: its last value is accepted, the next one refused."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from recordwise import RootTransform, prefix
from recordwise.cli import app
from recordwise.cli.demo import read_number
from recordwise.errors import KeysError, ParameterError, SqlError
from recordwise.exact.functions import Sum, log, x
from recordwise.exact.numbers import float_lower, float_upper, fraction_text, moderate, read_fraction
from recordwise.mechanisms.base import read_step
from recordwise.mechanisms.key_selection import distinct_below
from recordwise.mechanisms.quantile import Grid
from recordwise.noise import Seeded
from recordwise.plan.file.mechanisms import parse_function
from recordwise.plan.keys.cells import Domain, check_cell_count
from recordwise.plan.keys.hierarchies import Hierarchy
from recordwise.plan.keys.keys import Keys
from recordwise.plan.query import check_name
from recordwise.plan.schema import Measure, Schema, prefix_problems
from recordwise.plan.sql.gate import read_statement
from recordwise.policy import Measure as PolicyMeasure
from recordwise.policy.atoms import check_knots, check_steps, check_thresholds
from recordwise.policy.bands import BandTable
from recordwise.policy.columns import ConditionColumn
from recordwise.policy.conditions import among, both, either

BIG = 2**53


def nested_condition(depth: int) -> Any:
    """A condition of so many "and" and "or" in turn, each inside the next."""
    found = among("a", ["x"])
    for level in range(depth):
        found = (both, either)[level % 2](found, among(f"column{level}", ["x"]))
    return found


def nested_function(depth: int) -> Any:
    found: Any = x
    for _ in range(depth):
        found = log(1 + found)
    return found


def hierarchy(levels: int) -> Any:
    names = [f"level{number}" for number in range(levels)]
    table = pa.table({name: ["a" * (number + 1)] for number, name in enumerate(names)})
    return Hierarchy.of("code", table, levels=names, source="public: a list")


def derived(count: int) -> Any:
    return PolicyMeasure.linear("rest", {PolicyMeasure(f"m{number:02}"): Fraction(1) for number in range(count)})


def bands(count: int) -> Any:
    edges = tuple(Fraction(edge) for edge in range(1, count + 1))
    places = np.arange(2, dtype=np.int64)
    return BandTable(columns=(ConditionColumn("a"),), values=(("x", "y"),), edges=edges, places=places, bands=places)


LIMITS: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "bound of a measure": (lambda n: Measure.of("m", bound=n), 2**62, 2**62 + 1),
    "bound of a measure whose step is not 1": (lambda n: Measure.of("m", step="0.25", bound=n), 2**60, 2**60 + 1),
    "least bound": (lambda n: Measure.of("m", step=4, bound=n), 4, 3),
    "numerator of a step": (lambda n: Measure.of("m", step=n, bound=8 * n), BIG, BIG + 1),
    "denominator of a step": (lambda n: Measure.of("m", step=Fraction(1, n)), BIG, BIG + 1),
    "bound of a derived measure": (
        lambda n: Schema(
            unit="id", measures=[Measure.of("a", bound=n), Measure.of("b"), Measure.of("c", derive="a + b")]
        ),
        2**62 - BIG,
        2**62 - BIG + 1,
    ),
    "prefix of a group": (lambda n: prefix("code", n), 64, 65),
    "shortest prefix of a group": (lambda n: prefix("code", n), 1, 0),
    "prefix in a condition": (lambda n: ConditionColumn("code", n), 1000, 1001),
    "shortest prefix in a condition": (lambda n: ConditionColumn("code", n), 1, 0),
    "name of a query": (lambda n: check_name("a" * n), 60, 61),
    "characters of a function": (lambda n: parse_function("x" + " " * (n - 1)), 500, 501),
    "parentheses of a function": (lambda n: parse_function("(" * n + "x" + ")" * n), 40, 41),
    "power of a number in a function": (lambda n: parse_function(f"x + 1 ** {n}"), 100, 101),
    "power of a function": (lambda n: (x + 1) ** Fraction(n), 8, Fraction(81, 10)),
    "summands of a function": (lambda n: Sum(((Fraction(1), x),) * n, Fraction(0)), 32, 33),
    "logarithms of a function": (nested_function, 6, 7),
    "degree of a root": (lambda n: RootTransform(degree=n, offset=1, sigma=1), 16, 17),
    "degree of a root that is not whole": (lambda n: RootTransform(degree=n, offset=1, laplace_scale=1), "7.5", "8.5"),
    "least degree of a root": (lambda n: RootTransform(degree=n, offset=1, sigma=1), 1, "0.5"),
    "bits of a grid": (lambda n: Grid(spacing="linear", low=Fraction(0), high=Fraction(9), bits=n), 12, 13),
    "fewest bits of a grid": (lambda n: Grid(spacing="linear", low=Fraction(0), high=Fraction(9), bits=n), 1, 0),
    "step of a mechanism": (read_step, Fraction(10) ** 100, Fraction(10) ** 100 + 1),
    "finest step of a mechanism": (read_step, Fraction(10) ** -100, 1 / (Fraction(10) ** 100 + 1)),
    "denominator of a step of a mechanism": (
        read_step,
        1 + 1 / Fraction(10) ** 100,
        1 + 1 / (Fraction(10) ** 100 + 1),
    ),
    "levels of a hierarchy": (hierarchy, 12, 13),
    "fewest levels of a hierarchy": (hierarchy, 2, 1),
    "cells of a domain": (lambda n: Domain(columns=("a",), size=n, keys=dict, positions=list), 2**62, 2**62 + 1),
    "fewest cells of a domain": (lambda n: Domain(columns=("a",), size=n, keys=dict, positions=list), 1, 0),
    "threshold of a selection": (
        lambda n: Keys.select_from({"a": ["x"]}, rho=1, threshold=n),
        BIG,
        BIG + 1,
    ),
    "least threshold of a selection": (
        lambda n: Keys.select_from({"a": ["x"]}, rho=1, threshold=n),
        -BIG,
        -BIG - 1,
    ),
    "cells of a query": (check_cell_count, 20_000_000, 20_000_001),
    "fewest cells of a query": (check_cell_count, 1, 0),
    "integers to choose from": (lambda n: distinct_below(n, 1, Seeded(1)), 2**62, 2**62 + 1),
    "integers to choose": (lambda n: distinct_below(4, n, Seeded(1)), 4, 5),
    "least parameter of a policy": (lambda n: moderate(n, parameter="a"), Fraction(2) ** -200, Fraction(2) ** -201),
    "parameter of a policy": (lambda n: moderate(n, parameter="a"), -(Fraction(2) ** 200), -(Fraction(2) ** 200) - 1),
    "threshold of a policy": (
        lambda n: check_thresholds(((PolicyMeasure("m", Fraction(1, 4)), Fraction(n, 4)),)),
        BIG,
        BIG + 1,
    ),
    "least threshold of a policy": (
        lambda n: check_thresholds(((PolicyMeasure("m", Fraction(1, 4)), Fraction(n, 4)),)),
        1,
        0,
    ),
    "count of a table of steps": (lambda n: check_steps([(1, 1), (n, 2)], parameter="steps"), BIG, BIG + 1),
    "first count of a table of steps": (lambda n: check_steps([(n, 1), (9, 2)], parameter="steps"), 1, 0),
    "next count of a table of steps": (lambda n: check_steps([(4, 1), (n, 2)], parameter="steps"), 5, 4),
    "next loss of a table of steps": (lambda n: check_steps([(4, 4), (5, n)], parameter="steps"), 4, 3),
    "first loss of a table of steps": (lambda n: check_steps([(4, n), (5, 4)], parameter="steps"), 0, -1),
    "value of a table of steps": (
        lambda n: check_steps([(4, n)], parameter="steps", most=Fraction(7)),
        7,
        Fraction(71, 10),
    ),
    "last knot": (lambda n: check_knots([(1, Fraction(1)), (n, Fraction(2))]), 2**62, 2**62 + 1),
    "first knot": (lambda n: check_knots([(n, Fraction(1)), (9, Fraction(2))]), 1, 0),
    "next knot": (lambda n: check_knots([(4, Fraction(1)), (n, Fraction(2))]), 5, 4),
    "next loss of a knot": (lambda n: check_knots([(4, Fraction(4)), (5, Fraction(n))]), 4, 3),
    "first loss of a knot": (lambda n: check_knots([(4, Fraction(n)), (5, Fraction(2))]), 1, 0),
    "nested conditions": (nested_condition, 8, 9),
    "measures of a derived one": (derived, 15, 16),
    "multiple of a derived measure": (
        lambda n: PolicyMeasure("rest", derived=((PolicyMeasure("a"), Fraction(n)),)),
        BIG,
        2 * BIG,
    ),
    "bands": (bands, 31, 32),
    "nesting of SQL": (lambda n: read_statement("SELECT 1" + " + (1" * n + ")" * n), 40, 41),
    "establishments of the demo": (read_number, 1, 0),
    "length of SQL": (lambda n: read_statement("SELECT 1" + " " * (n - 8)), 100_000, 100_001),
    "conditions of SQL": (lambda n: read_statement("SELECT 1 WHERE a" + " AND a" * n), 2_000, 2_001),
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_last_value_is_accepted_and_the_next_refused(name: str) -> None:
    make, last, beyond = LIMITS[name]
    make(last)
    with pytest.raises((ParameterError, SqlError, KeysError)):
        make(beyond)


OPTIONS = {
    "audit --list --runs": (1, 0),
    "audit --list --cells": (2000, 1999),
    "postprocess nowhere --out nothing --draws": (1, 0),
}
"""The end of a command, with the last value that it takes and the next. Nothing is read or written."""


@pytest.mark.parametrize("words", OPTIONS)
def test_the_last_value_of_an_option_is_accepted_and_the_next_refused(words: str) -> None:
    last, beyond = (CliRunner().invoke(app, [*words.split(), str(value)]) for value in OPTIONS[words])
    option = words.split()[-1]
    assert option not in last.output
    assert beyond.exit_code == 2
    assert option in beyond.output


def test_the_usual_bound_is_2_to_the_53_steps_of_any_size() -> None:
    assert Measure(name="m").bound == BIG
    assert Measure.of("m", step="0.25").bound == Fraction(BIG, 4)


def test_a_prefix_that_is_too_long_for_a_group_is_a_problem() -> None:
    assert list(prefix_problems("code", 64, "text")) == []
    assert list(prefix_problems("code", 65, "text")) == ["a prefix of 'code' is longer than 64 characters"]


def test_numbers_may_have_so_many_digits_and_such_exponents() -> None:
    assert read_fraction("9" * 4000) == 10**4000 - 1
    assert read_fraction("1e1000") == 10**1000
    for text in ("9" * 4001, "1e1001", "1e-1001", "1_0", "１"):
        with pytest.raises(ValueError):
            read_fraction(text)


@pytest.mark.parametrize("bits", [5999, 6000, 6001, 6002])
def test_long_fractions_are_saved_in_another_way_and_read_back(bits: int) -> None:
    for value in (Fraction(2**bits - 1), Fraction(-1, 2**bits - 1), Fraction(2**bits - 1, 3)):
        assert read_fraction(fraction_text(value)) == value
        assert ("0x" in fraction_text(value)) == (bits > 6000)


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(-1, 3), Fraction(0), Fraction(1, 2), Fraction(10) ** 400])
def test_a_float_is_rounded_the_way_its_name_says_and_no_further(value: Fraction) -> None:
    upper, lower = float_upper(value), float_lower(value)
    assert lower <= value <= upper
    assert (lower == upper) == (abs(value) < 1 and value.denominator in (1, 2))
    assert math.nextafter(upper, -math.inf) < value or lower == upper
    assert math.nextafter(lower, math.inf) > value or lower == upper
