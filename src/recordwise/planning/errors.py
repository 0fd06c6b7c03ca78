"""How large the error of a cell is: quantiles of |value - total| from the noise laws that are drawn, without simulation.

Additive noise: the quantile of the lattice law, the same in every cell. Transforms: the closed form of ``value_laws``, solved by
bisection. Clamping adds what it cuts off. A user's own transform and roots of a degree above 4 are integrated numerically.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number
from recordwise.mechanisms.clamped import Clamped
from recordwise.mechanisms.fat_tailed import FatTailedNoise
from recordwise.mechanisms.gaussian import GaussianNoise
from recordwise.mechanisms.noisy import read_confidence, read_step
from recordwise.mechanisms.transformed import TransformedNoise
from recordwise.noise.laws import DiscreteGaussian, LatticeLaw
from recordwise.planning.value_laws import ValueLaw, has_closed_form

MOST_POINTS = 1024
"""So many different totals are solved one by one; of more, this many spread over their range, with lines between on log scales."""
BISECTIONS = 60
MOST_SUMMED = 1000
QUADRATURE = 1 << 14
ROUNDING = 1e-9
"""Of probabilities and products in float64, when they are held against a goal."""
BoolArray = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


def error_quantiles(
    mechanism: Any, totals: FloatArray, *, confidence: float = 0.95, step: Number = 1, kept: FloatArray | None = None
) -> FloatArray:
    """What |value - total| stays at or below with probability ``confidence``, for each exact total, in the measure's units.

    ``kept`` are the totals of the clamped contributions, where the mechanism clamps.
    """
    chance = read_confidence(confidence)
    exact = np.asarray(totals, np.float64)
    if isinstance(mechanism, Clamped) and kept is not None:
        return _clamped(mechanism, exact - kept, chance, step)
    if isinstance(mechanism, TransformedNoise):
        return _over_totals(lambda points: _transformed(mechanism, points, chance, step), exact)
    law, lattice = drawn_law(mechanism, step)
    return np.full(exact.shape, law.quantile((1 + chance) / 2) * float(lattice))


def mean_errors(mechanism: Any, totals: FloatArray, *, step: Number = 1) -> FloatArray:
    """E |value - total| for additive noise, from the law that is drawn."""
    law, lattice = drawn_law(mechanism, step)
    return np.full(np.shape(totals), law.mean_abs * float(lattice))


def drawn_law(mechanism: Any, step: Number) -> tuple[LatticeLaw, Fraction]:
    """The lattice law of additive noise and its lattice."""
    if isinstance(mechanism, FatTailedNoise):
        lattice = mechanism.lattice(step)
        return mechanism.law_on(lattice), lattice
    if not isinstance(mechanism, GaussianNoise):
        raise ParameterError(
            parameter="mechanism", problem=f"{type(mechanism).__name__} is not one planning knows the noise of"
        )
    data = read_step(step)
    return DiscreteGaussian(mechanism.noise_sigma / data), data


def meets(
    mechanism: Any,
    totals: FloatArray,
    reach: FloatArray,
    *,
    confidence: float,
    step: Number = 1,
    kept: FloatArray | None = None,
) -> BoolArray:
    """Whether |value - total| <= ``reach`` with probability ``confidence``, cell by cell."""
    if isinstance(mechanism, TransformedNoise) or (isinstance(mechanism, Clamped) and kept is not None):
        return np.asarray(chances(mechanism, totals, reach, step=step, kept=kept) >= confidence - ROUNDING)
    law, lattice = drawn_law(mechanism, step)
    return np.asarray(reach * (1 + ROUNDING) >= law.quantile((1 + confidence) / 2) * float(lattice))


def chances(
    mechanism: Any, totals: FloatArray, reach: FloatArray, *, step: Number = 1, kept: FloatArray | None = None
) -> FloatArray:
    """P(|value - total| <= reach) for each cell, for transforms and clamped sums."""
    if isinstance(mechanism, Clamped) and kept is not None:
        return _clamped_chances(mechanism, totals - kept, reach, step)
    if has_closed_form(mechanism):
        return _closed_chances(ValueLaw.of(mechanism), totals, reach)
    return _integrated_chances(mechanism, totals, reach)


def _closed_chances(law: ValueLaw, totals: FloatArray, reach: FloatArray) -> FloatArray:
    below = np.nextafter(totals - reach, -np.inf)
    return law.cdf(totals, totals + reach) - law.cdf(totals, below)


def _over_totals(solve: Callable[[FloatArray], FloatArray], totals: FloatArray) -> FloatArray:
    """A smooth function of the total at every cell, solved at no more points than needed."""
    different, places = np.unique(totals, return_inverse=True)
    if len(different) <= MOST_POINTS:
        return np.asarray(solve(different)[places])
    inside = different[different > 0]
    knots = np.unique(np.concatenate([different[:1], np.geomspace(inside[0], inside[-1], MOST_POINTS)]))
    logs = np.log(solve(knots))
    return np.asarray(np.exp(np.interp(np.log1p(different), np.log1p(knots), logs))[places])


def _transformed(mechanism: TransformedNoise, totals: FloatArray, confidence: float, step: Number) -> FloatArray:
    if mechanism.signed:
        raise ParameterError(parameter="mechanism", problem="is signed, and measures of a table are not")
    if not has_closed_form(mechanism):
        return _integrated(mechanism, totals, confidence)
    law = ValueLaw.of(mechanism)

    def inside(reach: FloatArray) -> FloatArray:
        return _closed_chances(law, totals, reach)

    with np.errstate(over="ignore", invalid="ignore"):
        start = np.nan_to_num(np.sqrt(mechanism.variance(totals, step=step)), nan=1.0, posinf=1e300)
    return _smallest(inside, confidence, np.maximum(start, 1e-12 * (1 + totals)))


def _smallest(inside: Callable[[FloatArray], FloatArray], confidence: float, start: FloatArray) -> FloatArray:
    """The smallest reach with a probability of at least ``confidence`` inside, for each total; never below it."""
    high = start.copy()
    while (short := inside(high) < confidence).any():
        high[short] *= 2
    low = np.where(inside(high / 2) < confidence, high / 2, 0.0)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        enough = inside(middle) >= confidence
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def _integrated(mechanism: TransformedNoise, totals: FloatArray, confidence: float) -> FloatArray:
    """The quantile over equally likely points of the noise, for a transform without a closed form."""
    place = min(int(np.ceil(confidence * QUADRATURE)), QUADRATURE - 1)
    return np.array([np.partition(each, place)[place] for each in _sampled_errors(mechanism, totals)])


def _integrated_chances(mechanism: TransformedNoise, totals: FloatArray, reach: FloatArray) -> FloatArray:
    pairs, places = np.unique(np.stack([totals, reach]), axis=1, return_inverse=True)
    found = [np.mean(each <= r) for each, r in zip(_sampled_errors(mechanism, pairs[0]), pairs[1])]
    return np.array(found)[places.ravel()]


def _sampled_errors(mechanism: TransformedNoise, totals: FloatArray) -> Iterator[FloatArray]:
    chances = (np.arange(QUADRATURE) + 0.5) / QUADRATURE
    laplace = np.where(chances < 0.5, np.log(2 * chances), -np.log(2 - 2 * chances))
    noise = np.asarray(ndtri(chances)) if mechanism.sigma is not None else laplace
    for total in totals:
        yield np.abs(mechanism.values_under(float(total), noise) - total)


def _clamped(mechanism: Clamped, cut_off: FloatArray, confidence: float, step: Number) -> FloatArray:
    """The quantile of |Z - what was cut off|."""
    start = float(mechanism.noise_sigma)

    def solve(biases: FloatArray) -> FloatArray:
        return _smallest(
            lambda reach: _clamped_chances(mechanism, biases, reach, step), confidence, np.abs(biases) + start
        )

    return _over_totals(solve, np.maximum(cut_off, 0.0))


def _clamped_chances(mechanism: Clamped, biases: FloatArray, reach: FloatArray, step: Number) -> FloatArray:
    """P(|Z - bias| <= reach) under the lattice law."""
    lattice, sigma = float(read_step(step)), float(mechanism.noise_sigma)
    low, high = np.ceil((biases - reach) / lattice), np.floor((biases + reach) / lattice)
    return np.maximum(_lattice_cdf(high, sigma / lattice) - _lattice_cdf(low - 1, sigma / lattice), 0.0)


def _lattice_cdf(k: FloatArray, sigma: float) -> FloatArray:
    """P(Z <= k) of the discrete Gaussian in float64; beyond a thousand steps a sigma, half a step makes the normal law do."""
    if sigma > MOST_SUMMED:
        return np.asarray(ndtr((k + 0.5) / sigma))
    reach = int(np.ceil(10 * sigma)) + 1
    below = np.cumsum(np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2))
    place = np.clip(k, -reach - 1, reach).astype(np.int64) + reach
    return np.where(place < 0, 0.0, below[np.maximum(place, 0)] / below[-1])
