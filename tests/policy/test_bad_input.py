"""Bad parameters are refused when an object is built, with the parameter named; bad records when they are read, never quoted."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from recordwise.errors import ParameterError, RecordError, UnknownFormError
from recordwise.exact.functions import log, x
from recordwise.policy import (
    ConditionColumn,
    Measure,
    Policy,
    additive,
    among,
    by,
    compare,
    constant,
    gaussian_sum,
    gaussian_transform,
    laplace_transform,
    maximum,
    selection,
    split,
)
from recordwise.policy.constructors import additive_table

SECRET = 987654321
NO_NUMBERS: list[Any] = [math.nan, math.inf, -math.inf, "nan", "abc", "", None, [], True, 1j, "1e999999"]
NO_NUMBERS += [pytest.param(10**5000, id="huge")]


@pytest.mark.parametrize("bad", [*NO_NUMBERS, -1, "-0.1", 1e-300])
def test_a_loss_that_is_no_number_is_refused_by_name(bad: Any) -> None:
    for build in (lambda: constant(bad), lambda: split(bad, {"emp": 5})):
        with pytest.raises(ParameterError) as caught:
            build()
        assert caught.value.parameter == "rho"
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize("bad", [*NO_NUMBERS, 0, -5, 0.0])
def test_scales_and_thresholds_that_are_not_positive_are_refused_by_name(bad: Any) -> None:
    builders = {
        "at['emp']": lambda: split(1, {"emp": bad}),
        "by('g')": lambda: by("g", {"a": bad}),
        "sigma": lambda: gaussian_sum("emp", sigma=bad),
        "grid": lambda: gaussian_transform("emp", x, sigma=1, grid=bad),
        "laplace_scale": lambda: laplace_transform("emp", x, scale=bad, grid=1),
        "step": lambda: Measure("emp", bad),
        "weight": lambda: x * bad,
        "exponent": lambda: x**bad,
    }
    for name, build in builders.items():
        with pytest.raises(ParameterError) as caught:
            build()
        assert caught.value.parameter == name


@pytest.mark.parametrize("threshold, step", [("2.5", 1), ("0.7", "0.5"), ("1/3", "0.01"), (2**60, 1)])
def test_a_threshold_off_the_step_or_beyond_exact_floats_is_refused(threshold: Any, step: Any) -> None:
    with pytest.raises(ParameterError, match=r"at\['emp'\]"):
        split(1, {Measure("emp", step): threshold})
    with pytest.raises(ParameterError, match=r"at\['emp'\]"):
        split(1, {Measure("emp", step): by("g", {"a": threshold})})


@pytest.mark.parametrize("step", [Fraction(1, 10**30 + 7), Fraction(10**30 + 7, 3), "1e-200"])
def test_a_step_that_floats_cannot_hold_is_refused(step: Any) -> None:
    with pytest.raises(ParameterError, match="step"):
        Measure("emp", step)


@pytest.mark.parametrize(
    "build",
    [
        lambda: split(1, {}),
        lambda: split(1, 5),
        lambda: split(1, {5: 5}),
        lambda: split(1, {"": 5}),
        lambda: split(1, {"emp": 5, Measure("emp", "0.1"): 5}),
        lambda: by("g", {}),
        lambda: by("g", 5),
        lambda: by("", {"a": 1}),
        lambda: by("g", {"a": 1}, default=0),
        lambda: by("g", {None: 1}),
        lambda: ConditionColumn("g", 0),
        lambda: ConditionColumn("g", True),
        lambda: ConditionColumn("g", 2.0),
        lambda: among("g", "abc"),
        lambda: among("g", 5),
        lambda: among("g", [math.nan]),
        lambda: among("g", [object()]),
        lambda: compare("g", "=", 1),
        lambda: compare("g", "<", "a"),
        lambda: constant(1).where("state = 6"),
        lambda: constant(1).where(None),
        lambda: constant(1).dominates(1),
        lambda: additive("emp", math.log),
        lambda: additive("emp", x**2),
        lambda: additive("emp", log(x + 2) ** 3),
        lambda: additive("emp", x, bound="best"),
        lambda: additive_table("emp", x, ()),
        lambda: additive_table("emp", x, ((0, 1),)),
        lambda: additive_table("emp", x, ((1, -1),)),
        lambda: additive_table("emp", x, ((1, math.nan),)),
        lambda: additive_table("emp", x, ((1.0, 1),)),
        lambda: selection(1, {"emp": 5}, ((1, 2),)),
        lambda: selection(0, {"emp": 5}, ((1, "0.5"),)),
        lambda: log(x),
        lambda: log(5),
        lambda: x + -1,
        lambda: maximum([]),
        lambda: constant(1).to_sql("cobol"),
        lambda: constant("1e59") * "1e59" * "1e59" * "1e59",
        lambda: Measure("emp", 1, "yes"),
    ],
)
def test_what_makes_no_sense_is_refused_at_construction(build: Any) -> None:
    with pytest.raises(ParameterError):
        build()


def everything() -> Policy:
    """A policy that reads two measures, a group and a size."""
    policy = split(1, {"emp": by("industry", {"Mining": 50})}) + gaussian_sum(Measure("pay", "0.01"), sigma=3)
    return policy + constant(1).where(compare("size", ">", 5))


GOOD: dict[str, Any] = {"emp": 10, "pay": 2.5, "industry": "Mining", "size": 3}
BAD: list[tuple[str, Any]] = [
    ("emp", math.nan),
    ("emp", None),
    ("emp", math.inf),
    ("emp", -SECRET),
    ("emp", f"{SECRET} employees"),
    ("emp", True),
    ("emp", b"1"),
    ("pay", -0.01),
    ("industry", f"Retail {SECRET}"),
    ("industry", None),
    ("industry", SECRET),
    ("size", f"{SECRET}"),
    ("size", True),
    ("size", math.inf),
]


@pytest.mark.parametrize("column, value", BAD)
def test_a_bad_record_is_refused_naming_its_column_and_quoting_nothing(column: str, value: Any) -> None:
    for records in ({**GOOD, column: value}, {name: [cell, cell] for name, cell in {**GOOD, column: value}.items()}):
        with pytest.raises(RecordError) as caught:
            everything().loss(records)
        assert caught.value.column == column
        assert_quotes_nothing(caught.value)


def assert_quotes_nothing(error: BaseException | None) -> None:
    """Neither the message nor anything it was raised from holds the value."""
    while error is not None:
        assert str(SECRET) not in repr(error)
        assert str(SECRET) not in str(error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("column", list(GOOD))
def test_a_missing_column_is_refused_by_name(column: str) -> None:
    left = {name: value for name, value in GOOD.items() if name != column}
    for records in (left, {name: [value] for name, value in left.items()}):
        with pytest.raises(RecordError) as caught:
            everything().loss(records)
        assert caught.value.column == column
        assert "missing" in str(caught.value)


@pytest.mark.parametrize("column", list(GOOD))
@pytest.mark.parametrize(
    "value", [[1, 2, 3], [[1], [2]], 5, np.zeros((2, 2)), object(), [object(), object()], [SECRET, f"a{SECRET}"]]
)
def test_a_column_of_another_shape_or_type_is_refused(column: str, value: Any) -> None:
    records = {name: [cell, cell] for name, cell in GOOD.items()} | {column: value}
    with pytest.raises(RecordError) as caught:
        everything().loss(records)
    assert_quotes_nothing(caught.value)


def test_a_count_of_bad_rows_is_told_and_no_more() -> None:
    with pytest.raises(RecordError, match="2 rows"):
        gaussian_sum("emp", sigma=1).loss({"emp": np.array([1.0, -SECRET, -2.0])})


def test_an_unknown_group_is_refused_only_where_it_is_met() -> None:
    policy = split(1, {"emp": by("industry", {"Mining": 50})})
    assert list(policy.loss({"emp": [60], "industry": ["Mining"]})) == pytest.approx([4])
    with pytest.raises(RecordError, match="not covered by this policy"):
        policy.loss({"emp": [60, 1], "industry": ["Mining", "Retail"]})
    assert split(1, {"emp": by("industry", {"Mining": 50}, default=10)}).loss({"emp": 20, "industry": "Retail"}) == 4


def test_a_table_of_losses_without_bound_is_refused_when_it_is_read() -> None:
    """Found by fuzzing: a loss of 10^400 in a saved policy was an OverflowError."""
    form = additive_table("emp", x, ((1, 1),)).to_json()
    form["rho"][0][2]["steps"] = [[1, "1" + "0" * 400]]
    with pytest.raises(UnknownFormError):
        Policy.from_json(form)
