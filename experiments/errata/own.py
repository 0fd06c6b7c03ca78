"""Statements of our own notes that did not survive their tests."""

import math
from itertools import pairwise

import numpy as np
from scipy import integrate

import recordwise as rw
from experiments.errata.evidence import Evidence
from experiments.errata.slow import refused


def divergence(shift: float, order: float) -> float:
    """D_a/a of the density exp(-sqrt|z|)/4 and itself moved, by quadrature between the kinks; order 1 is Kullback-Leibler."""

    def loss(z: float) -> float:
        return math.sqrt(abs(z - shift)) - math.sqrt(abs(z))

    def value(z: float) -> float:
        weight = math.exp(-math.sqrt(abs(z))) / 4
        return weight * (loss(z) if order == 1 else math.expm1((order - 1) * loss(z)))

    cuts = [-2000, -50, -1, -shift, 0, shift / 2, shift, 2 * shift, 1, 50, 2000]
    parts = [integrate.quad(value, a, b, limit=400)[0] for a, b in pairwise(cuts)]
    total = math.fsum(parts)
    return total if order == 1 else math.log1p(total) / (order - 1) / order


def order_one() -> Evidence:
    orders = np.geomspace(2, 400, 80)
    ratios = {shift: max(divergence(shift, float(a)) for a in orders) / divergence(shift, 1) for shift in (0.1, 0.01)}
    return Evidence(
        name="order-one",
        source="ours",
        printed="the zCDP loss of additive noise is its Kullback-Leibler divergence",
        shown="shape 1/2, supremum over orders beside the divergence: "
        + ", ".join(f"shift {shift:g} of the scale: {ratio:.2f} times" for shift, ratio in ratios.items()),
        holds=ratios[0.1] > 1.8 and ratios[0.01] > 7,
        correction="Losses are certified over all orders (T-CERTIFIED).",
    )


def laplace_scales() -> Evidence:
    goal = {"variance": 2, "at_total": 2, "noise": "laplace"}
    root = float(rw.RootTransform(degree=4, offset=1, **goal).laplace_scale)  # type: ignore[arg-type]
    log = float(rw.LogTransform(offset=1, **goal).laplace_scale)  # type: ignore[arg-type]
    return Evidence(
        name="laplace-scales",
        source="ours",
        printed="scales of Laplace noise at variance 2 and total 2: fourth root .09964, log .27382",
        shown=f"fourth root {root:.5f}, log {log:.5f}",
        holds=(round(root, 5), round(log, 5)) == (0.09966, 0.27383),
        correction="The notes left out that the estimator is constant at and below total 0.",
    )


def polylog_offset() -> Evidence:
    z = np.arange(0, 5, 0.001)
    rise = np.log(z + 1 + 1.2) ** 2 - np.log(z + 1.2) ** 2
    over = float(rise.max() - rise[0])
    told = refused(lambda: rw.Polylog(power=2, rate=1, offset="1.2", scale=1))
    return Evidence(
        name="polylog-offset",
        source="ours",
        printed="ln(z/s + o)^p can be the exponent of additive noise for any o >= 1",
        shown=f"o = 1.2, p = 2, record 1: the log-ratio reaches {rise.max():.3f}, {over:.3f} above f(1) - f(0)",
        holds=math.isclose(over, 0.143, abs_tol=1e-3) and bool(told),
        correction="The exponent is concave only for o >= e^(p-1); less is refused.",
    )


SHOWN = (order_one, laplace_scales, polylog_offset)
