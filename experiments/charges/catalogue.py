"""The mechanisms whose charges are compared, each with its law as plain formulas of this folder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

import recordwise as rw
from experiments.charges import truth
from recordwise.exact.functions import log, x

MOST = 2**53
"""The largest record, in steps."""


@dataclass(frozen=True)
class Subject:
    """A mechanism, the sizes of records, and their true loss."""

    name: str
    charged: Callable[[int], float]
    lost: Callable[[int], float]
    sizes: Sequence[int]


def between(first: int, last: int, count: int) -> list[int]:
    """Whole numbers in equal ratios, so crooked that none is likely to be a knot."""
    return sorted({int(size) for size in np.geomspace(first, last, count)} | {first, last})


def policy_of(mechanism: Any) -> Callable[[int], float]:
    """The policy at a number of steps of 1, made when it is first asked for."""
    kept: dict[str, Any] = {}

    def charged(size: int) -> float:
        if "policy" not in kept:
            kept["policy"] = mechanism.policy("emp")
        return float(kept["policy"].loss({"emp": size}))

    return charged


def additive(
    name: str, mechanism: Any, exponent: Callable[[np.ndarray], np.ndarray], count: int, first: int = 1
) -> Subject:
    """Noise on the lattice the mechanism states: ``exponent`` is in the measure's units."""
    lattice = mechanism.lattice(1)
    steps = int(1 / lattice)

    def lost(size: int) -> float:
        return truth.fat_tailed(lambda t: exponent(t * float(lattice)), size * steps)

    return Subject(name, policy_of(mechanism), lost, between(first, MOST, count))


def power(scale: float, shape: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda t: (t / scale) ** shape


def polylog(rate: float, offset: float, scale: float, degree: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda t: rate * (np.log(offset + t / scale) ** degree - np.log(offset) ** degree)


def transformed(name: str, mechanism: Any, inverse: Callable[[Any], Any], count: int) -> Subject:
    """The shift is the largest found over totals from 0 on, each rounded to the grid at 40 digits."""
    grid = mechanism.grid(1)
    sigma = mechanism.sigma

    def point(total: int) -> int:
        with mpmath.workdps(40):
            return int(mpmath.nint(inverse(mpmath.mpf(total)) * grid.denominator / grid.numerator))

    def lost(size: int) -> float:
        shift = max(point(total + size) - point(total) for total in (0, 1, 2, 3, 5, 8, 13))
        if sigma is not None:
            return truth.gaussian(float(sigma / grid), shift)
        scale = float(mechanism.laplace_scale / grid)
        return truth.fat_tailed(lambda t: t / scale, shift)

    return Subject(name, policy_of(mechanism), lost, between(1, 10**9, count))


def subjects(count: int) -> list[Subject]:
    """All of them, with about ``count`` sizes each."""
    counted, summed = rw.Gaussian(rho="0.05"), rw.Gaussian(sigma=30)
    split, clamped = rw.UnitSplit(at=50, rho="0.1"), rw.Clamped(to=1000, rho="0.5")
    few = between(1, 10**7, count)
    root, logarithm = rw.RootTransform(degree=4, offset=1, sigma="0.15"), rw.LogTransform(offset=1, sigma="0.2")
    laplace = rw.LogTransform(offset=1, laplace_scale="0.25")
    return [
        Subject(
            "count, `Gaussian`",
            lambda _: float(counted.policy_of_count().loss({})),
            lambda _: truth.gaussian(float(counted.noise_sigma), 1),
            [1],
        ),
        Subject("sum, `Gaussian`", policy_of(summed), lambda size: truth.gaussian(30.0, size), few),
        Subject("`UnitSplit`", policy_of(split), lambda size: truth.gaussian(float(split.noise_sigma), size), few),
        Subject(
            "`Clamped`",
            policy_of(clamped),
            lambda size: truth.gaussian(float(clamped.noise_sigma), min(size, 1000)),
            few,
        ),
        *fat_tailed_subjects(count),
        quantile(),
        *selection_subjects(),
        transformed("`RootTransform`, degree 4, Gaussian", root, lambda q: (q + 1) ** mpmath.mpf("0.25"), count),
        transformed("`LogTransform`, Gaussian", logarithm, lambda q: mpmath.log(q + 1), count),
        transformed("`LogTransform`, Laplace", laplace, lambda q: mpmath.log(q + 1), count),
    ]


def quantile() -> Subject:
    """A record is counted in one node of each level, and the nodes have noise of their own: divergences add up."""
    tree = rw.TreeQuantile(grid=rw.mechanisms.Grid.log(1, 10**6, bits=12), rho="0.2")
    lost = truth.gaussian(float(tree.noise_sigma), 1)
    return Subject(
        "`TreeQuantile`", lambda _: float(tree.policy_of_count().loss({})), lambda _: tree.grid.bits * lost, [1]
    )


def selection_subjects() -> list[Subject]:
    """The loss of a record whose keys are listed anyway, and the chance that a key is listed for its sake alone."""
    select = rw.Keys.select(rho="0.1", delta="1e-6", pieces={"emp": 50}).selection
    schema = rw.plan.Schema.of(unit="id", measures={"emp": 1})
    policy, sigma, least = select.policy(schema), float(select.law.sigma), select.law.threshold
    pieces = list(range(1, 41))
    return [
        Subject(
            "`Keys.select`, rho",
            lambda count: float(policy.loss({"emp": 50 * count})),
            lambda count: truth.gaussian(sigma, count),
            pieces,
        ),
        Subject(
            "`Keys.select`, delta",
            lambda count: float(policy.delta({"emp": 50 * count})),
            lambda count: truth.gaussian_tail(sigma, least - count),
            pieces,
        ),
    ]


def fat_tailed_subjects(count: int) -> list[Subject]:
    """One step is a thousandth of the scale, so that the smallest record is the smallest that is promised 1 %."""
    made = rw.GeneralizedGaussian
    found = [
        additive(
            f"`GeneralizedGaussian`, shape {shape}", made(shape=shape, scale=1000), power(1000.0, float(shape)), count
        )
        for shape in ("0.3", "0.5", "0.7", "0.9")
    ]
    found.append(additive("Laplace, scale 1000", made(shape=1, scale=1000), power(1000.0, 1.0), count))
    found.append(
        additive("Laplace, scale 3 on whole numbers", made(shape=1, scale=3, lattice=1), power(3.0, 1.0), count)
    )
    offset = Fraction("2.7182818285")
    for degree, rate, start in ((1, 4, Fraction(1)), (2, 1, offset), (3, Fraction(1, 2), offset**2)):
        noise = rw.Polylog(power=degree, rate=rate, offset=start, scale=1000)
        law = polylog(float(rate), float(start), 1000.0, float(degree))
        found.append(additive(f"`Polylog`, power {degree}", noise, law, count))
    own = rw.mechanisms.Additive((x / 800) ** Fraction(1, 2) + log(x / 500 + 1))
    law = lambda t: np.sqrt(t / 800) + np.log1p(t / 500)  # noqa: E731
    found.append(additive("`Additive`, root plus logarithm", own, law, count))
    return found


def external(count: int) -> Subject:
    """A count of rows with Laplace noise of scale 1, which is 1-DP for one row."""

    def charged(rows: int) -> float:
        build = getattr(rw.policy, "pure_split", None)
        if build is None:
            return rows**2 * float(rw.policy.pure_to_zcdp(1.0))
        return float(build({"emp": 1}, epsilon=1).loss({"emp": rows}))

    def lost(rows: int) -> float:
        return truth.fat_tailed(lambda t: t, rows)

    return Subject("external, pure epsilon 1 a row: Laplace noise on a count", charged, lost, between(1, 300, count))
