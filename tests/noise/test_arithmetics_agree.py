"""Complex balls, power series and floats compute the same functions of the same numbers."""

from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest

from recordwise.exact.arithmetic import NumpyArithmetic
from recordwise.noise.probabilities import HolomorphicArithmetic, SeriesArithmetic

POINTS = [0.0, 1e-9, 0.25, 3.0, 1e6]
EXPONENTS = [Fraction(1, 2), Fraction(-1, 3), Fraction(7, 5), Fraction(2), Fraction(-3)]


def of_floats(name: str, point: float, *more: Any) -> float:
    return float(getattr(NumpyArithmetic(), name)(np.array([point]), *more)[0])


def of_balls(name: str, point: float, *more: Any) -> float:
    with flint.ctx.workprec(200):
        return float(getattr(HolomorphicArithmetic(), name)(flint.acb(point), *more).real)


def of_series(name: str, point: float, *more: Any) -> float:
    with flint.ctx.workprec(200):
        return float(getattr(SeriesArithmetic(), name)(flint.arb_series([point, 1]), *more)[0])


@pytest.mark.parametrize("computed", [of_balls, of_series])
@pytest.mark.parametrize("point", POINTS)
def test_logarithms_and_powers_are_those_of_floats(computed: Any, point: float) -> None:
    assert computed("log1p", point) == pytest.approx(of_floats("log1p", point), rel=1e-12, abs=0)
    for exponent in EXPONENTS:
        assert computed("power", point + 1, exponent) == pytest.approx(
            of_floats("power", point + 1, exponent), rel=1e-12, abs=0
        )
        assert computed("power_less_one", point, exponent) == pytest.approx(
            (1 + point) ** float(exponent) - 1, rel=1e-6, abs=1e-15
        )


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_the_second_coefficient_of_a_series_is_the_derivative(point: float, exponent: Fraction) -> None:
    series, at, power = SeriesArithmetic(), flint.arb_series([point, 1]), float(exponent)
    slope = power * (1 + point) ** (power - 1)
    assert float(series.power_less_one(at, exponent)[1]) == pytest.approx(slope, rel=1e-12)
    assert float(series.log1p(at)[1]) == pytest.approx(1 / (1 + point), rel=1e-12)
