"""Whole-column losses are never below the exact ones: the assumption on the C library, and values at every magnitude."""

import math
from contextlib import closing
from fractions import Fraction
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from flint import arb

from random_policies import positive, random_function
from recordwise.exact.arithmetic import NumpyArithmetic
from recordwise.exact.functions import log, x
from recordwise.exact.numbers import ball, working_precision
from recordwise.policy import (
    Measure,
    additive,
    compare,
    constant,
    gaussian_sum,
    gaussian_transform,
    laplace_transform,
    maximum,
    split,
)
from recordwise.policy.atoms import (
    CERTIFIED,
    Additive,
    AdditiveTable,
    CertifiedSum,
    GaussianTransform,
    LaplaceSum,
    LaplaceTransform,
)
from recordwise.policy.columns import FLOAT_SNAP, SNAP
from recordwise.policy.constructors import additive_table, certified_sum
from recordwise.policy.evaluate.evaluator import BallEvaluator, NumpyEvaluator

ULPS = 8
FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "log1p": (np.log1p, lambda v: v.log1p()),
    "expm1": (np.expm1, lambda v: v.expm1()),
    "tanh": (np.tanh, lambda v: v.tanh()),
    "sqrt": (np.sqrt, lambda v: v.sqrt()),
    "power 1/3": (lambda v: np.power(v, 1 / 3), lambda v: v ** ball(Fraction(1 / 3))),
    "power 0.9": (lambda v: np.power(v, 0.9), lambda v: v ** ball(Fraction(0.9))),
}


def magnitudes(rng: Random, count: int, low: float, high: float) -> np.ndarray:
    return np.array([2 ** rng.uniform(low, high) for _ in range(count)])


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_the_c_library_is_within_eight_units_in_the_last_place(name: str) -> None:
    """A-LIBM, for vectors (numpy has its own code for them) over the range each function is used in."""
    fast, exact = FUNCTIONS[name]
    values = magnitudes(Random(1), 20_000, -300, 9 if name == "expm1" else 300)
    found = fast(values)
    with working_precision(160):
        for value, got in zip(values.tolist(), found.tolist()):
            truth = exact(arb(value))
            assert abs(arb(got) - truth) <= ULPS * math.ulp(got)


@pytest.mark.theorem("T-OUTWARD")
@pytest.mark.costly
def test_the_float_error_of_every_concave_atom_is_within_the_certified_bound() -> None:
    rng = Random(2)
    worst = 0.0
    for _ in range(300):
        function, measure = random_function(rng, 3), Measure("v", Fraction(1, 2**20))
        grid, scale = Fraction(1, 2 ** rng.randint(0, 30)), positive(rng)
        table = ((3, Fraction(1, 2**10)),)
        for atom in (
            Additive(measure, function, rng.choice(["pure", "tanh"])),
            AdditiveTable(measure, function, table),
            CertifiedSum(measure, function, table, Fraction(0)),
            LaplaceSum(measure, measure.step, scale),
            GaussianTransform(measure, function, grid),
            LaplaceTransform(measure, function, grid, scale),
        ):
            values = magnitudes(rng, 20, -19, rng.choice([10, 60, 300]))
            found = atom.value(NumpyEvaluator(), {"v": values})
            with working_precision(320):
                for value, got in zip(values.tolist(), found.tolist()):
                    truth = atom.value(BallEvaluator(), {"v": arb(value)})
                    worst = max(worst, float(abs(arb(got) / truth - 1)))
    assert worst <= CERTIFIED / 4


@pytest.mark.theorem("T-OUTWARD")
@pytest.mark.parametrize("exponent", ["1/2", "1/4", "1/8", "1/3", "9/10", "1/1000", "1", "2", "7/3"])
def test_a_power_less_one_keeps_its_digits_everywhere(exponent: str) -> None:
    power = Fraction(exponent)
    values = magnitudes(Random(3), 4000, -200, 200 if power <= 1 else 60)
    found = NumpyArithmetic().power_less_one(values, power)
    with working_precision(400):
        for value, got in zip(values.tolist(), found.tolist()):
            truth = (ball(power) * arb(value).log1p()).expm1()
            assert abs(arb(got) / truth - 1) <= 2.0**-46


@pytest.mark.theorem("T-OUTWARD")
def test_the_remainder_of_the_exponential_keeps_its_digits_everywhere() -> None:
    values = magnitudes(Random(4), 4000, -300, 40)
    found = NumpyArithmetic().exp_remainder(values)
    with working_precision(1000):
        for value, got in zip(values.tolist(), found.tolist()):
            truth = (-arb(value)).expm1() + arb(value)
            assert abs(arb(got) / truth - 1) <= 2.0**-48


def upper_policies() -> list:
    tiny = Measure("v", Fraction(1, 2**150))
    return [
        gaussian_sum(tiny, sigma="1e40"),
        additive(tiny, x * Fraction(1, 2**150)),
        additive(tiny, log(x / 2**100 + 3)) * Fraction(1, 2**100),
        additive_table(tiny, x / 1000, ((1, Fraction(1, 10**50)), (2, Fraction(1, 10**40)))),
        gaussian_transform(tiny, (x + 5) ** "1/3", sigma="1e30", grid=Fraction(1, 2**150)),
        laplace_transform(tiny, log(x + 1), scale="1e20", grid=Fraction(1, 2**150)),
        laplace_transform(tiny, log(x + 1), scale="0.01", grid="0.5"),
        constant("1e-30") + gaussian_sum(tiny, sigma="1e-30"),
    ]


@pytest.mark.theorem("T-OUTWARD")
@pytest.mark.parametrize("place", range(8))
def test_losses_at_the_edges_of_floats_are_not_below_the_exact_ones_and_no_warning_is_given(place: int) -> None:
    policy = upper_policies()[place]
    values = [0.0, 2.0**-150, 2.0**-149, 1e-20, 1.0, 1e10, 1e100, 1e154, 1e200, 1e300, 1.7976931348623157e308]
    losses = policy.loss({"v": np.array(values)})
    for value, many in zip(values, losses):
        single = policy.loss({"v": value})
        assert not math.isnan(many)
        assert many >= math.nextafter(single, 0)
        if 1e-290 < single < 1e290 and value < 1e150:
            assert many <= single * (1 + 1e-12) or single < 2.0**-490
    assert losses[0] == pytest.approx(policy.loss({"v": 0}), rel=1e-14)


@pytest.mark.theorem("T-OUTWARD")
@pytest.mark.parametrize("step", ["1", "0.01", "1/3", "0.7", "1000"])
def test_floats_near_lattice_points_never_count_fewer_steps_than_the_exact_rule(step: str) -> None:
    measure = Measure("v", Fraction(step))
    rng = Random(5)
    values = []
    for _ in range(3000):
        value = float(measure.step * rng.randrange(1, 2 ** rng.randint(1, 53)))
        for _ in range(rng.randint(0, 12)):
            value = math.nextafter(value, rng.choice([0, math.inf]))
        values.append(value)
    for at in (measure.step, 7 * measure.step):
        found = NumpyEvaluator().pieces(np.array(values), measure, at)
        exact = [-(-measure.steps(Fraction(repr(value))) // int(at / measure.step)) for value in values]
        assert all(int(count) >= least for count, least in zip(found, exact))
        assert all(int(count) <= least + 1 for count, least in zip(found, exact) if least < 2**47)


@pytest.mark.theorem("T-OUTWARD")
@pytest.mark.parametrize(("step", "last"), [("0.01", 22), ("1/3", 5), ("0.7", 3), ("1", 4)])
def test_a_record_on_the_last_knot_has_the_loss_of_the_knot_and_not_of_what_lies_beyond(step: str, last: int) -> None:
    """Also beside a term that is no fraction and in a maximum; 0.22 and 5/3 lie on a knot but are no floats, nor Arb balls."""
    measure = Measure("v", Fraction(step))
    alone = certified_sum(measure, x * 1000, ((1, Fraction(1, 8)), (last, Fraction(1, 4))), less=0)
    beside = alone + additive("w", log(x + 1), bound="pure")
    value = float(measure.step * last)
    for policy, exact in (
        (alone, 0.25),
        (beside, 0.25 + math.log(2)),
        (maximum([beside, constant("0.1")]), 0.25 + math.log(2)),
    ):
        one, (many,) = policy.loss({"v": value, "w": 1}), policy.loss({"v": [value], "w": [1]})
        assert one == pytest.approx(exact, rel=1e-15, abs=0)
        assert math.nextafter(one, 0) <= many <= one * (1 + 1e-12)
        past = value + 0.1 * float(measure.step)
        assert min(policy.loss({"v": past, "w": 1}), *policy.loss({"v": [past], "w": [1]})) > 1


@pytest.mark.theorem("T-OUTWARD")
@pytest.mark.parametrize("step", ["1", "0.01", "1/3", "0.7", "1/1048576"])
def test_losses_on_steep_lines_far_from_zero_are_not_below_the_exact_ones(step: str) -> None:
    """The rounding of an amount of a million steps is many times what the record loses just after the first knot."""
    rng, measure = Random(6), Measure("v", Fraction(step))
    for bits in (20, 30, 40, 48, 55, 60):
        first = rng.randrange(2**bits, 2 ** (bits + 1))
        knots = ((first, Fraction(1, 2**90)), (first + 1000, Fraction(1, 7)), (first + 1003, Fraction(8, 7)))
        policy = certified_sum(measure, x, knots, less=0)
        counts = [first - 1, first, *(first + rng.randint(1, 1003) for _ in range(100)), first + 1003, first + 1004]
        values = [float(measure.step * count) for count in counts]
        for value, many in zip(values, policy.loss({"v": np.array(values)}).tolist()):
            one = policy.loss({"v": value})
            assert many >= math.nextafter(one, 0)
            assert many <= one * (1 + 1e-12) or bits >= 48


@pytest.mark.theorem("T-OUTWARD")
def test_whole_numbers_that_no_float_is_near_are_not_charged_below_a_knot_they_have_passed() -> None:
    knots = ((2**60 + 200, Fraction(1, 10)), (2**60 + 900, Fraction(3, 10)), (2**61 + 500, Fraction(2, 5)))
    policy = certified_sum("v", x, knots, less=0)
    values = [count + off for count, _ in knots for off in (-1, 0, 1, 2, 300)]
    for value, many in zip(values, policy.loss({"v": np.array(values)}).tolist()):
        assert many >= math.nextafter(policy.loss({"v": value}), 0)


def test_the_snap_of_floats_lies_between_their_error_and_the_exact_snap() -> None:
    unit = Fraction(1, 2**53)
    assert 3 * unit < Fraction(FLOAT_SNAP) < SNAP - 3 * unit


def test_one_record_is_rounded_up_once() -> None:
    """A rational loss is the next float above the exact fraction; an irrational one the next above an enclosure."""
    assert split("0.1", {"emp": 1}).loss({"emp": 3}) == 0.9000000000000000222044604925031308
    assert gaussian_sum("emp", sigma=50).loss({"emp": 50}) == 0.5
    policy = additive("emp", log(x + 1), bound="pure")
    assert policy.loss({"emp": 1}) in (math.log(2), math.nextafter(math.log(2), 1))


OVERFLOWS = log((x * "7/4" + "3/10") ** "1/2" + "1.07")
"""Beyond about 1e307 the square root is computed as infinity less infinity."""


@pytest.mark.theorem("T-OUTWARD")
@pytest.mark.parametrize(
    "policy",
    [
        gaussian_transform("emp", OVERFLOWS, sigma=1, grid="0.001"),
        laplace_transform("emp", OVERFLOWS, scale=1, grid="0.001"),
        additive("emp", OVERFLOWS),
        additive_table("emp", OVERFLOWS, ((1, Fraction(1, 100)),)),
    ],
    ids=["gaussian", "laplace", "additive", "table"],
)
def test_a_loss_that_overflows_on_the_way_is_infinite_not_a_nan_and_not_less(policy) -> None:
    """A NaN compares as not above any budget, so it must not come out. The rows beside it keep their losses."""
    losses = policy.loss({"emp": [1e308, 7.0]})
    assert losses[0] == math.inf
    assert policy.loss({"emp": 7}) <= losses[1] <= policy.loss({"emp": 7}) * (1 + 1e-9)
    assert (policy + constant(1)).where(compare("emp", ">", 5)).loss({"emp": [1e308]})[0] == math.inf


TINY = Fraction(1, 2**200)


@pytest.mark.theorem("T-OUTWARD")
@pytest.mark.parametrize(
    "policy",
    [
        additive(Measure("emp", TINY), x * Fraction(1, 2**190)) * Fraction(1, 2**480),
        additive(Measure("emp", TINY), OVERFLOWS * Fraction(1, 2**100)) * Fraction(1, 2**480),
    ],
    ids=["line", "beside an overflow"],
)
def test_a_loss_too_small_for_a_float_does_not_vanish_but_that_of_nothing_does(policy) -> None:
    """The product of value and coefficient is below the smallest float; the record still loses something."""
    for large in (1.0, 1e308):
        losses = policy.loss({"emp": [float(TINY), 0.0, large]})
        assert losses[0] > 0
        assert losses[0] >= policy.loss({"emp": TINY}) > 0
        assert losses[1] == 0


@pytest.mark.parametrize("rho", ["0.3", "0.7", "1/3", "2/3", "0.1"])
def test_the_loss_of_one_record_is_the_next_float_above_its_fraction(rho: str) -> None:
    exact, found = Fraction(rho), constant(rho).loss({})
    assert Fraction(np.nextafter(found, 0.0).item()) < exact <= Fraction(found)


def test_a_value_clearly_above_a_lattice_point_is_the_next_one() -> None:
    point = Fraction(10**6)
    assert Measure("emp").steps(point * (1 + Fraction(1, 10**13))) == 10**6 + 1
    assert Measure("emp").steps(point * (1 + Fraction(1, 2**51))) == 10**6


@pytest.mark.theorem("T-OUTWARD")
def test_a_linear_form_of_any_magnitude_is_never_below_the_exact_one() -> None:
    """Values on the lattice, beside it and far beyond 2^53 steps, with parts that nearly cancel."""
    rng, cent = Random(12), Measure("pay", Fraction(1, 100))
    form = Measure.linear(
        "rest", {cent: Fraction(1), Measure("emp"): Fraction(-45), Measure("net", signed=True): Fraction(1, 3)}
    )
    policy, off = gaussian_sum(form, sigma=1), 0
    emp = [rng.randrange(2 ** rng.randint(1, 52)) for _ in range(3000)]
    pay = [45 * each + rng.choice([0.0, 0.01, 0.005, 3.37, 1e9]) for each in emp]
    net = [rng.choice([0, 1, -1, 7, 2**53 + 1, -(2**60)]) for _ in emp]
    many = policy.loss({"emp": emp, "pay": pay, "net": net})
    for row, value in enumerate(many.tolist()):
        shown = Fraction(repr(pay[row])) - 45 * emp[row] + Fraction(net[row], 3)
        exact = form.value({"emp": Fraction(emp[row]), "pay": Fraction(repr(pay[row])), "net": Fraction(net[row])})
        # A value is taken for the lattice point that it is as good as on.
        assert abs(exact - shown) <= SNAP * Fraction(pay[row])
        assert Fraction(value) >= exact**2 / 2
        off += value > float(exact**2 / 2) * (1 + 1e-12)
    assert off < 2500


@pytest.mark.theorem("T-OUTWARD")
@pytest.mark.parametrize("share", [1, -1, -3])
def test_sql_never_rounds_a_linear_form_of_many_steps_inward_whatever_the_sign_of_its_parts(share: int) -> None:
    """From 2^48 cents on, of a part that is added and of one that is taken off, alone and where a part of whole units nearly
    cancels it; the last digits of SQL are those of floats (1e-12)."""
    rng, cent, whole = Random(13), Measure("pay", Fraction(1, 100)), Measure("net", signed=True)
    form = Measure.linear("rest", {cent: Fraction(share), whole: Fraction(1)})
    pay = [rng.randrange(2 ** rng.randint(46, 53)) / 100 for _ in range(600)]
    net = [-share * int(each) + rng.randint(-9, 9) if row % 2 else 0 for row, each in enumerate(pay)]
    with closing(duckdb.connect()) as connection:
        connection.register("records", pa.table({"pay": pay, "net": net}))
        query = f"SELECT {gaussian_sum(form, sigma=1).to_sql('duckdb')} FROM records"
        found = [value for (value,) in connection.execute(query).fetchall()]
    assert any(each * 100 > 2**49 for each in pay)
    for row, value in enumerate(found):
        exact = form.value({"pay": Fraction(repr(pay[row])), "net": Fraction(net[row])})
        assert Fraction(value) * (1 + Fraction(1, 10**12)) >= exact**2 / 2
