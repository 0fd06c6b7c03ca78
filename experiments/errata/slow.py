"""Errata of [F] Finley et al., Slowly Scaling Per-Record Differential Privacy, and of its slides."""

import math

import numpy as np
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
        source="[F], slides",
        printed="the PRzCDP condition with 1/(a-1) times the integral of p^a q^(1-a)",
        shown=f"order 2: equal laws give {same:.3f}, not 0; N(0,1) and N(1,1) {apart:.3f}, logarithm {math.log(apart):.3f} = a/2",
        holds=math.isclose(same, 1, rel_tol=1e-9) and math.isclose(math.log(apart), 1.0, rel_tol=1e-7),
        correction="D_a = ln(integral)/(a - 1).",
    )


def refused(make: object) -> str:
    try:
        make()  # type: ignore[operator]
    except ParameterError as error:
        return str(error)
    return ""


def gaussian_additive() -> Evidence:
    told = refused(lambda: rw.Additive(x**2))
    return Evidence(
        name="gaussian-additive",
        source="[F], slides",
        printed="Gaussian noise is an instance of the additive theorem",
        shown=f"its exponent z^2 is convex: (z+1)^2 - z^2 is 1, 21, 201 at 0, 10, 100, f(1) - f(0) is 1. Refused: {told[:50]}...",
        holds="concave" in told,
        correction="The theorem needs a concave exponent (T-ADD); Gaussian noise has no pure loss.",
    )


def additive_pure() -> Evidence:
    noise = rw.GeneralizedGaussian(shape=0.5, variance=2)
    pure = float(noise.policy("emp", tight=False).loss({"emp": 1}))
    closed, tight = float(noise.closed_policy("emp").loss({"emp": 1})), float(noise.policy("emp").loss({"emp": 1}))
    return Evidence(
        name="additive-pure",
        source="[F]",
        printed="the zCDP loss of additive noise is f(x) - f(0)",
        shown=f"generalized Gaussian, shape 1/2, variance 2, x = 1: {pure:.2f} pure, {closed:.2f} by tanh, {tight:.3f} certified",
        holds=tight < closed < pure,
        correction="That is a pure loss; as zCDP it is at most eps tanh(eps/2) (T-PURE), and less by T-CERTIFIED.",
    )


def polylog_offset() -> Evidence:
    z = np.arange(0, 5, 0.001)
    rise = np.log(z + 1 + 1.2) ** 2 - np.log(z + 1.2) ** 2
    over = float(rise.max() - rise[0])
    told = refused(lambda: rw.Polylog(power=2, rate=1, offset="1.2", scale=1))
    return Evidence(
        name="polylog-offset",
        source="[F]",
        printed="ln(z/s + o)^p as the exponent for any o >= 1",
        shown=f"o = 1.2, p = 2, record 1: the log-ratio reaches {rise.max():.3f}, {over:.3f} above f(1) - f(0)",
        holds=math.isclose(over, 0.143, abs_tol=1e-3) and bool(told),
        correction="The exponent is concave only for o >= e^(p-1); less is refused.",
    )


SHOWN = (integral, gaussian_additive, additive_pure, polylog_offset)
