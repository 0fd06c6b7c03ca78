"""Standard errors and intervals of fitted columns (T-FITVAR, docs/theory/fits.md).

The best linear fit has an error that does not depend on the truth: normal where noise is Gaussian, but for half a lattice step
(T-HALFSTEP), otherwise as wide as draws of the public noise law, sent through the same fit, show. Under transforms it does depend
on the truth, and the interval holds the totals under which the fit is not surprising (T-MOVED). Nonnegative fits are drawn again
at their own fitted values (a parametric bootstrap), which is approximate.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from recordwise.exact.arithmetic import FloatArray
from recordwise.noise.randomness import BitSource
from recordwise.plan.statistics import statistic_kind
from recordwise.postprocess.answer_kin import largest_weights, moved_variance
from recordwise.postprocess.answer_tree import Weights
from recordwise.postprocess.crossing import CrossingWeights
from recordwise.postprocess.order_statistics import Largest, rank_of
from recordwise.progress import tracked
from recordwise.release.families import Family
from recordwise.release.fit_noise import AnswerNoise
from recordwise.release.fit_sets import total_intervals

DRAWS = 400
FEWER_DRAWS = 40
LARGE = 20_000
"""With more answers than this a nonnegative fit is repeated ``FEWER_DRAWS`` times unless told otherwise."""
MOST_VALUES = 4_000_000
"""The numbers that are drawn together."""
ROUNDING = 2.0**-40
FINEST = 2.0**-46
REFITS = 3
"""The number of refits with weights at the fitted totals, where the variance depends on them: bias below a thousandth."""

RAW = "the noisy answer itself"
FORMULA = "formula"
DRAWN = "draws of the noise law"
MOVED = "formula at every possible total, approximate"
BOOTSTRAP = "parametric bootstrap, approximate"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedColumn:
    """A fitted value for each answer with its standard error and interval; NaN where there is none."""

    value: FloatArray
    sd: FloatArray
    low: FloatArray
    high: FloatArray
    how: str
    """Where the standard errors and intervals come from."""
    draws: int = 0


def best_fit(
    family: Family,
    statistic: Mapping[str, Any],
    noise: AnswerNoise,
    *,
    confidence: float,
    draws: int,
    source: BitSource,
) -> FittedColumn:
    """The best linear unbiased estimate of every cell from all tables of its query."""
    answers = family.column(statistic, "")
    if family.undetermined or not adds_up(family, statistic):
        sd, low, high = (family.column(statistic, end) for end in ("_sd", "_low", "_high"))
        return FittedColumn(value=answers, sd=sd, low=low, high=high, how=RAW)
    used = noise.variance(None)
    weights = linear(family, used)
    value = weights.fit(answers)
    for _ in range(REFITS if noise.varies else 0):
        used = noise.variance(value)
        weights = linear(family, used)
        value = weights.fit(answers)
    if noise.varies:
        ends = family.column(statistic, "_low"), family.column(statistic, "_high")
        found = _moved(weights, value, used, noise, ends, confidence=confidence, draws=draws, source=source)
    elif noise.normal and weights.fitted is not None:
        found = _normal(weights, value, float(noise.step), confidence)
    else:
        found = _linear_draws(weights, value, noise, confidence=confidence, draws=draws, source=source)
    return _untouched(family, statistic, weights, found if noise.known else _around(family, statistic, found))


def adds_up(family: Family, statistic: Mapping[str, Any]) -> bool:
    """Whether the exact numbers of finer cells add up to those of coarser ones: a firm may be in several cells."""
    return statistic_kind(statistic["kind"]).adds_up(statistic["of"], firm=family.schema.get("firm"))


def linear(family: Family, variances: FloatArray) -> Weights | CrossingWeights:
    """The best linear fit of a family's answers with these variances."""
    tree = family.tree
    return CrossingWeights.of(family.rows, variances, family.workload) if tree is None else tree.weights(variances)


def _untouched(family: Family, statistic: Mapping[str, Any], weights: Any, found: FittedColumn) -> FittedColumn:
    """An answer that no other one says anything about keeps the interval it was published with."""
    alone = weights.untouched() if family.tree is None else ~family.tree.connected()
    ends = {name: family.column(statistic, f"_{name}") for name in ("sd", "low", "high")}
    kept = {name: np.where(alone, raw, getattr(found, name)) for name, raw in ends.items()}
    return FittedColumn(value=found.value, how=found.how, draws=found.draws, **kept)


def _around(family: Family, statistic: Mapping[str, Any], found: FittedColumn) -> FittedColumn:
    """Where the law of the noise is not known, the interval contains that of the cell's own answer."""
    low, high = (family.column(statistic, end) for end in ("_low", "_high"))
    return replace(found, low=np.minimum(found.low, low), high=np.maximum(found.high, high))


def _normal(weights: Any, value: FloatArray, step: float, confidence: float) -> FittedColumn:
    """A formula for Gaussian noise, with half a step of its lattice times the largest weight (T-HALFSTEP)."""
    sd = np.sqrt(weights.fitted)
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * sd + step / 2 * largest_weights(weights)
    return FittedColumn(value=value, sd=sd, low=value - reach, high=value + reach, how=FORMULA)


def _linear_draws(
    weights: Any, value: FloatArray, noise: AnswerNoise, *, confidence: float, draws: int, source: BitSource
) -> FittedColumn:
    """The error of a linear fit is the fit of the noise alone."""
    largest = Largest(len(value), draws=draws, rank=rank_of(draws, confidence))
    squares = np.zeros(len(value))
    for some in chunks(draws, len(value)):
        error = weights.fit(noise.errors(value, some, source))
        squares += np.sum(error**2, axis=0)
        largest.add(np.abs(error))
    sd = np.sqrt(squares / draws if weights.fitted is None else weights.fitted)
    # An error on a lattice may be the order statistic itself, and must not be missed by a rounding.
    reach = largest.value() + ROUNDING * (np.abs(value) + largest.value())
    how = DRAWN if noise.known else BOOTSTRAP
    return FittedColumn(value=value, sd=sd, low=value - reach, high=value + reach, how=how, draws=draws)


def _moved(
    weights: Any,
    value: FloatArray,
    used: FloatArray,
    noise: AnswerNoise,
    raw: tuple[FloatArray, FloatArray],
    *,
    confidence: float,
    draws: int,
    source: BitSource,
) -> FittedColumn:
    """Where noise grows with the total: the totals under which the fit is not surprising (T-MOVED). Only large tables that cross
    need draws, for their variances at the fitted totals."""
    drawn = weights.fitted is None
    spread = _drawn_variance(weights, value, noise, draws, source) if drawn else weights.fitted
    moved = moved_variance(weights, value=value, used=used, fitted=spread, variances=noise.variance_at)
    low, high = total_intervals(moved, noise.shape(confidence), *raw)
    made = draws if drawn else 0
    return FittedColumn(value=value, sd=np.sqrt(spread), low=low, high=high, how=MOVED, draws=made)


def _drawn_variance(weights: Any, value: FloatArray, noise: AnswerNoise, draws: int, source: BitSource) -> FloatArray:
    base, squares = np.maximum(value, 0.0), np.zeros(len(value))
    for some in chunks(draws, len(value)):
        squares += np.sum(weights.fit(noise.errors(base, some, source)) ** 2, axis=0)
    return squares / draws


def fit_again(
    refit: Callable[[FloatArray], FloatArray],
    fitted: FloatArray,
    errors: Callable[[int], FloatArray],
    *,
    confidence: float,
    draws: int,
) -> tuple[FloatArray, FloatArray]:
    """The standard error and the reach of a fit at its own fitted values: noise is drawn around them and fitted again."""
    largest = Largest(len(fitted), draws=draws, rank=rank_of(draws, confidence))
    squares = np.zeros(len(fitted))
    for some in tracked(list(chunks(draws, len(fitted))), "fitting noise drawn anew"):
        error = refit(fitted + errors(some)) - fitted
        squares += np.sum(error**2, axis=0)
        largest.add(np.abs(error))
    reach = largest.value()
    # As above, of fitted values that are off by roundings of the largest.
    slack = ROUNDING * (np.abs(fitted) + reach) + FINEST * np.max(np.abs(fitted), initial=0.0)
    return np.sqrt(squares / draws), reach + slack


def chunks(draws: int, answers: int) -> Iterator[int]:
    """How many draws are made at a time."""
    size = max(1, MOST_VALUES // max(answers, 1))
    for start in range(0, draws, size):
        yield min(size, draws - start)


def draws_for(answers: int, confidence: float, asked: int | None) -> int:
    """How often a nonnegative fit is repeated: as asked, or fewer times where a fit takes seconds."""
    if asked is not None:
        rank_of(asked, confidence)
        return asked
    least = int(np.ceil(2 * confidence / (1 - confidence))) + 2
    return DRAWS if answers <= LARGE else max(FEWER_DRAWS, least)
