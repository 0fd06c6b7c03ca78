"""Errata of [F], the slides of Finley et al., Slowly Scaling Per-Record Differential Privacy."""

import math

from scipy import integrate

import recordwise as rw
from experiments.errata.evidence import Evidence
from recordwise.errors import ParameterError
from recordwise.exact.functions import x


def moment(shift: float, order: float) -> float:
    """The integral of p^a q^(1-a) for two normal laws of variance 1."""

    def value(z: float) -> float:
        return math.exp(-order * z * z / 2 - (1 - order) * (z - shift) ** 2 / 2) / math.sqrt(2 * math.pi)

    return float(integrate.quad(value, -40, 40, points=(0, shift * (1 - order)))[0])


def integral() -> Evidence:
    """With the logarithm a record that changes nothing costs 0, and a shift of 1 costs a/2."""
    same, apart = moment(0.0, 2.0), moment(1.0, 2.0)
    return Evidence(
        name="missing-logarithm",
        source="[F] slide Very Quick Intro to Formal Privacy - III",
        printed="PRzCDP: the largest 1/(a (a-1)) times the integral of p^a q^(1-a) is at most P(r)",
        shown=f"order 2: the integral is {same:.3f} for equal laws, which cost 0; for N(0,1) and N(1,1) it is {apart:.3f}, its "
        f"logarithm over a (a-1) {math.log(apart) / 2:.3f} = 1/2",
        holds=math.isclose(same, 1, rel_tol=1e-9) and math.isclose(math.log(apart), 1.0, rel_tol=1e-7),
        correction="The logarithm of the integral: D_a/a = ln(integral)/(a (a - 1)).",
    )


def refused(make: object) -> str:
    try:
        make()  # type: ignore[operator]
    except ParameterError as error:
        return str(error)
    return ""


def gaussian_additive() -> Evidence:
    told = refused(lambda: rw.mechanisms.Additive(x**2))
    return Evidence(
        name="gaussian-additive",
        source="[F] slide Empirical Experiments",
        printed="Gaussian noise stands among the additive mechanisms, whose f is concave and whose policy is f(r) - f(0)",
        shown=f"its exponent z^2 is convex: (z+1)^2 - z^2 is 1, 21, 201 at 0, 10, 100, f(1) - f(0) is 1. Refused: {told[:50]}...",
        holds="concave" in told,
        correction="The theorem needs a concave exponent (T-ADD); Gaussian noise has no pure loss.",
    )


SHOWN = (integral, gaussian_additive)
