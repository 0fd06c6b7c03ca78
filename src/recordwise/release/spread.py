"""Noise laws behind the answers, and errors and intervals of fitted columns.

The laws are public and are read from a release's own description: variances, and draws. Draws come from a public seed and cost
nothing: they simulate the law, they do not read a record.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.noise import Seeded
from recordwise.noise.laws import DiscreteGaussian, GeneralizedGaussian, discrete_gaussian
from recordwise.noise.randomness import BitSource
from recordwise.noise.stated import FINE
from recordwise.postprocess.linear import (
    CrossingWeights,
    Largest,
    MovedVariance,
    Weights,
    largest_weights,
    moved_variance,
    rank_of,
)
from recordwise.release.nesting import IntArray, Nesting
from recordwise.release.published import PublishedStatistic
from recordwise.release.tables import noise_read

if TYPE_CHECKING:
    from recordwise.mechanisms.base import Mechanism
    from recordwise.mechanisms.sized import ByGroup
    from recordwise.noise.stated import StatedGroups

NORMAL_STEPS = 1000
"""Lattice steps in one standard deviation of the normal law that stands for Gaussian noise of any sigma."""
NORMAL = discrete_gaussian(Fraction(NORMAL_STEPS))
LEAST_STEPS = 0.5
"""Gaussian noise of at least this many lattice steps is covered by the formula with half a step; with fewer, its law is drawn."""


def noise_of(nesting: Nesting, statistic: PublishedStatistic) -> "AnswerNoise":
    """Return a statistic's noise in every table, by query if joined."""
    if not statistic.own:
        return _noise(nesting, statistic)
    ends = np.cumsum([0, *nesting.sizes.values()])
    places = {table.name: np.arange(start, stop) for table, start, stop in zip(nesting.tables, ends, ends[1:])}
    owns, parts = list(statistic.own.values()), []
    for own in (each for at, each in enumerate(owns) if each not in owns[:at]):
        tables = tuple(table for table in nesting.tables if statistic.own[table.name] == own)
        some = replace(nesting, tables=tables)
        parts.append((np.concatenate([places[table.name] for table in tables]), _noise(some, own)))
    return JoinedNoise(tuple(parts))


def _noise(nesting: Nesting, statistic: PublishedStatistic) -> "AnswerNoise":
    """The noise of a statistic of one query."""
    raw = nesting.column(statistic, "_sd") ** 2
    mechanism = noise_read(statistic)
    step = nesting.published.measure(statistic.of).step
    ends = np.cumsum([0, *nesting.sizes.values()])
    parted = [slice(start, end) for start, end in pairwise(ends.tolist())]
    if mechanism is None or mechanism.signed:
        return FixedNoise(raw, tuple((rows, NORMAL) for rows in parted), known=False)
    if mechanism.group_numbers is not None:
        return _grouped_noise(nesting, mechanism, raw, step)
    if mechanism.is_sized:
        return _sized_noise(nesting, statistic, mechanism, raw, step)
    if mechanism.variance_varies:
        scale = nesting.column(statistic, "_sigma")
        parts = [
            (np.flatnonzero(scale == each), mechanism.with_noise_scale(Fraction(float(each))))
            for each in np.unique(scale)
        ]
        return VaryingNoise(raw, tuple(parts), step)
    served = [mechanism.at_share(nesting.described[name].share) for name in nesting.sizes]
    return _fixed_noise(raw, list(zip(parted, served)), step)


def _grouped_noise(
    nesting: Nesting, mechanism: "ByGroup | StatedGroups", raw: FloatArray, step: Fraction
) -> "JoinedNoise":
    """Return noise by the public group of each cell (T-GROUPED)."""
    parts: list[tuple[Any, AnswerNoise]] = []
    for rows, own in nesting.by_group(mechanism):
        every = np.arange(len(rows))
        varies = VaryingNoise(raw[rows], ((every, own),), step) if own.variance_varies else None
        parts.append((rows, varies or _fixed_noise(raw[rows], [(every, own)], step)))
    return JoinedNoise(tuple(parts))


def _sized_noise(
    nesting: Nesting, statistic: PublishedStatistic, mechanism: "Mechanism", raw: FloatArray, step: Fraction
) -> "OwnNoise":
    """Return noise by public sizes, cell by cell (T-SIZE)."""
    served = [(rows, mechanism.at_share(share).at_size(size)) for rows, share, size in nesting.by_size(statistic.name)]
    if any(each.variance_varies for each in mechanism.inside()):
        return VaryingNoise(raw, tuple(served), step)
    return _fixed_noise(raw, served, step)


def _fixed_noise(raw: FloatArray, served: Sequence[tuple[Any, Any]], step: Fraction) -> "FixedNoise":
    """Return noise whose law does not depend on the total."""
    if np.any(raw == 0):
        raise ParameterError(
            parameter="noise",
            problem="of some answers is so small that they are exact, and nothing is left to be fitted",
            advice="Use the answers as they are.",
        )
    laws = [_law(mechanism, step) for _, mechanism in served]
    gaussian = all(mechanism.offers("noise_sigma") for _, mechanism in served)
    fine = bool(np.all(raw >= (LEAST_STEPS * float(step)) ** 2))
    return FixedNoise(
        raw,
        tuple((rows, law or NORMAL) for (rows, _), law in zip(served, laws)),
        known=gaussian or None not in laws,
        normal=gaussian and fine,
        step=float(step),
        laplace=all(mechanism.draws_laplace for _, mechanism in served),
    )


def _law(mechanism: "Mechanism", step: Fraction) -> Any:
    """Return the lattice law of a mechanism, or None if unknown."""
    try:
        drawn = mechanism.drawn_law(step)
    except ParameterError:
        return None
    return None if drawn is None else drawn[0]


@dataclass(frozen=True, slots=True)
class Shape:
    """How the noise of each answer moves with its total."""

    offset: FloatArray
    """Added to totals before they are transformed."""
    log: Any
    """Whether noise is added to logarithms, so that estimates are lognormal rather than normal."""
    reach: float
    """What noise in units of its standard deviation stays within at the confidence; infinite if that is not known."""


def _normal_reach(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)


@dataclass(frozen=True, slots=True)
class FixedNoise:
    """Noise whose law, up to a factor, does not depend on totals."""

    raw: FloatArray
    laws: tuple[tuple[Any, Any], ...]
    """The answers that have a law in common, and the law."""
    known: bool
    """Whether the law is that of the noise; otherwise it is a normal law of the same variance."""
    normal: bool = False
    """Whether the noise is Gaussian on enough steps, so that linear fits have normal errors."""
    varies: bool = False
    """Whether the variance depends on the total."""
    step: float = 0.0
    """The lattice of Gaussian noise."""
    laplace: bool = False
    """Whether the noise is Laplace noise, which reweighting takes as such."""

    def shape(self, confidence: float) -> "Shape":
        """Nothing moves with the total."""
        size, reach = len(self.raw), _normal_reach(confidence)
        return Shape(np.zeros(size), np.zeros(size, dtype=bool), reach if self.normal else math.inf)

    def variance(self, totals: FloatArray | None) -> FloatArray:
        """The variance of each answer."""
        return self.raw

    def variance_at(self, answers: Any, totals: FloatArray) -> FloatArray:
        """The variance of some answers."""
        return np.asarray(self.raw[answers])

    def errors(self, totals: FloatArray, draws: int, source: BitSource) -> FloatArray:
        """Draws of the answers' errors, a row for each draw."""
        found = np.empty((draws, len(self.raw)))
        for rows, law in self.laws:
            size = len(self.raw[rows])
            # Values beyond 64 bits are cut: they are the same order statistic.
            values = law.draw(draws * size, source).values.astype(np.float64).reshape(draws, size)
            found[:, rows] = values * (np.sqrt(self.raw[rows]) / math.sqrt(law.variance))
        return found


@dataclass(frozen=True, slots=True)
class VaryingNoise:
    """Noise on a transform's scale: variance grows with the total."""

    raw: FloatArray
    parts: tuple[tuple[Any, Any], ...]
    """The answers that have the same scale, and the mechanism at that scale."""
    step: Fraction
    normal: bool = False
    known: bool = True
    varies: bool = True

    def shape(self, confidence: float) -> "Shape":
        """Return offsets, logarithms and, if Gaussian or Laplace, the reach."""
        found = Shape(np.zeros(len(self.raw)), np.zeros(len(self.raw), dtype=bool), _normal_reach(confidence))
        reach = found.reach
        for rows, mechanism in self.parts:
            log = mechanism.logarithmic
            if log is None:
                reach = math.inf
                continue
            found.offset[rows], found.log[rows] = float(mechanism.offset), log
            # The quantile of Laplace noise in units of its standard deviation.
            reach = max(reach, 0.0 if mechanism.sigma is not None else -math.log(1 - confidence) / math.sqrt(2))
        return replace(found, reach=reach)

    def variance(self, totals: FloatArray | None) -> FloatArray:
        """Return each answer's variance, as published or at these totals."""
        if totals is None:
            return self.raw
        spread = np.empty_like(totals)
        for rows, mechanism in self.parts:
            spread[..., rows] = mechanism.variance(np.maximum(totals[..., rows], 0.0))
        return spread

    def variance_at(self, answers: Any, totals: FloatArray) -> FloatArray:
        """The variance of some answers at given totals."""
        if len(self.parts) == 1:
            return np.asarray(self.parts[0][1].variance(np.maximum(totals, 0.0)))
        number, spread = np.empty(len(self.raw), dtype=np.int64), np.empty_like(totals)
        for place, (rows, _) in enumerate(self.parts):
            number[rows] = place
        for place, (_, mechanism) in enumerate(self.parts):
            here = number[answers] == place
            spread[here] = mechanism.variance(np.maximum(totals[here], 0.0))
        return spread

    def errors(self, totals: FloatArray, draws: int, source: BitSource) -> FloatArray:
        """Return draws of the answers' errors at these totals."""
        found = np.empty((draws, len(self.raw)))
        for rows, mechanism in self.parts:
            steps = np.rint(np.maximum(totals[rows], 0.0) / float(self.step)).astype(np.int64)
            noisy = mechanism.release(np.tile(steps, draws), step=self.step, rng=source)
            values = mechanism.estimate(noisy).value.reshape(draws, len(steps))
            found[:, rows] = values - steps * float(self.step)
        return found


OwnNoise: TypeAlias = FixedNoise | VaryingNoise


@dataclass(frozen=True, slots=True)
class JoinedNoise:
    """One statistic's noise in tables of several queries, or of several groups."""

    parts: tuple[tuple[Any, "AnswerNoise"], ...]

    @property
    def normal(self) -> bool:
        """Whether linear fits have normal errors."""
        return all(noise.normal for _, noise in self.parts)

    @property
    def step(self) -> float:
        """The lattice of Gaussian noise."""
        return max(0.0 if isinstance(noise, VaryingNoise) else noise.step for _, noise in self.parts)

    def shape(self, confidence: float) -> "Shape":
        """That of each part."""
        size = sum(len(rows) for rows, _ in self.parts)
        offset, log, reach = np.zeros(size), np.zeros(size, dtype=bool), 0.0
        for rows, noise in self.parts:
            part = noise.shape(confidence)
            offset[rows], log[rows], reach = part.offset, part.log, max(reach, part.reach)
        return Shape(offset, log, reach)

    @property
    def known(self) -> bool:
        """Whether every law is that of the noise."""
        return all(noise.known for _, noise in self.parts)

    @property
    def varies(self) -> bool:
        """Whether a variance depends on the total."""
        return any(noise.varies for _, noise in self.parts)

    def variance(self, totals: FloatArray | None) -> FloatArray:
        """Return each answer's variance, as published or at these totals."""
        sizes = sum(len(rows) for rows, _ in self.parts)
        spread = np.empty(sizes) if totals is None else np.empty_like(totals)
        for rows, noise in self.parts:
            spread[..., rows] = noise.variance(None if totals is None else totals[..., rows])
        return spread

    def variance_at(self, answers: Any, totals: FloatArray) -> FloatArray:
        """The variance of some answers at given totals."""
        part, place, spread = (
            np.empty((2, sum(len(rows) for rows, _ in self.parts)), dtype=np.int64),
            0,
            np.empty_like(totals),
        )
        for place, (rows, _) in enumerate(self.parts):
            part[0, rows], part[1, rows] = place, np.arange(len(rows))
        for place, (_, noise) in enumerate(self.parts):
            here = part[0, answers] == place
            spread[here] = noise.variance_at(part[1, answers][here], totals[here])
        return spread

    def errors(self, totals: FloatArray, draws: int, source: BitSource) -> FloatArray:
        """Return draws of the answers' errors at these totals."""
        found = np.empty((draws, len(totals)))
        for rows, noise in self.parts:
            found[:, rows] = noise.errors(totals[rows], draws, source)
        return found


AnswerNoise: TypeAlias = OwnNoise | JoinedNoise
"""The noise of all answers of one statistic."""


# Sums of Laplace and Gaussian errors have a law that is computed and not drawn. For readers, who ask about a few sums: one Fourier
# integral for each. Laws on a thousand lattice steps or more are taken as continuous, but for half a step of the largest weight.


SEPARATE = 64
"""The largest Laplace errors of a sum that are taken one by one; all others are as many equal ones as have their second and fourth
cumulants."""
PERIOD = 64.0
"""The midpoint rule takes an error of x standard deviations for one of x + PERIOD, which no sum has."""
CUT_OFF = 12_700.0
"""The integral ends where what is left is at most a ten-thousandth of the chance of a miss."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SummedErrors:
    """Errors of answers that are nearly Laplace or normal."""

    raw: FloatArray
    laplace: Any
    """Which of them are Laplace."""
    halves: FloatArray
    """Half a step of the lattice of each."""

    @classmethod
    def of(cls, noise: AnswerNoise) -> "SummedErrors | None":
        """Return the errors of noise with these laws; None for all other."""
        found = cls(raw=noise.variance(None), laplace=np.zeros(0, dtype=bool), halves=np.zeros(0))
        found = replace(found, laplace=np.zeros(len(found.raw), dtype=bool), halves=np.zeros(len(found.raw)))
        parts = noise.parts if isinstance(noise, JoinedNoise) else ((np.arange(len(found.raw)), noise),)
        for places, each in parts:
            if not isinstance(each, FixedNoise) or not each.known or not found._place(places, each):
                return None
        return found

    def _place(self, places: IntArray, noise: FixedNoise) -> bool:
        """Note the laws of some answers, or False for other kinds."""
        for rows, law in noise.laws:
            at, raw = places[rows], noise.raw[rows]
            if isinstance(law, GeneralizedGaussian) and law.shape == 1 and law.scale >= FINE:
                self.laplace[at] = True
                self.halves[at] = np.sqrt(raw / 2) / float(2 * law.scale)
            elif isinstance(law, DiscreteGaussian) and np.all(raw >= (LEAST_STEPS * noise.step) ** 2):
                self.halves[at] = noise.step / 2
            else:
                return False
        return True

    def reaches(self, weights: FloatArray, levels: Sequence[float]) -> list[FloatArray]:
        """Return what weighted sums stay within at several levels of confidence."""
        parts, size = weights**2 * self.raw, np.abs(weights) * self.halves
        total = np.sum(parts, axis=1)
        smooth = np.sum(parts[:, ~self.laplace], axis=1) / total
        half = sum(np.max(size[:, kind], axis=1, initial=0.0) for kind in (self.laplace, ~self.laplace))
        shares = parts[:, self.laplace] / total[:, None]
        return [np.asarray(np.sqrt(total) * each + half) for each in sum_reaches(shares, smooth, levels)]


def sum_reaches(shares: FloatArray, smooth: FloatArray, levels: Sequence[float]) -> list[FloatArray]:
    """Return bounds on sums of Laplace and normal errors of variance 1.

    By inversion of their characteristic function: the product over the shares v of 1/(1 + v t^2/2), each for a
    Laplace error, and of exp(-s t^2/2) for the normal part s. It is at most 1/(1 + t^2/2).

    Args:
        shares: The variances of the Laplace errors, a row for each sum.
        smooth: The variance of the normal part of each sum.
        levels: Levels of confidence.

    Returns:
        For each level the quantile of the absolute value of each sum.
    """
    step = 2 * math.pi / PERIOD
    t = (np.arange(math.ceil(math.cbrt(CUT_OFF / (1 - max(levels))) / step), dtype=np.float64) + 0.5) * step
    kept = min(SEPARATE, shares.shape[1])
    ordered = np.partition(shares, shares.shape[1] - kept, axis=1)
    large, small = ordered[:, shares.shape[1] - kept :], ordered[:, : shares.shape[1] - kept]
    rest, squares = np.sum(small, axis=1), np.sum(small**2, axis=1)
    count = np.divide(rest**2, squares, out=np.ones_like(rest), where=squares > 0)
    found, block = np.empty((len(levels), len(shares))), max(1, MOST_VALUES // (max(kept, 1) * len(t)))
    for start in range(0, len(shares), block):
        some, half = slice(start, start + block), t**2 / 2
        equal = count[some, None] * np.log1p(rest[some, None] / count[some, None] * half)
        with np.errstate(over="ignore"):
            others = np.prod(1 + large[some, :, None] * half, axis=1)
        phi = np.exp(-smooth[some, None] * half - equal) / others * (2 / math.pi * step / t)
        found[:, some] = [_first_within(phi, t, 1 - level) for level in levels]
    return list(found)


def _first_within(phi: FloatArray, t: FloatArray, miss: float) -> FloatArray:
    """Return where the chance of a larger sum is at most this."""

    def beyond(reach: FloatArray) -> FloatArray:
        return np.asarray(1 - np.einsum("ij,ij->i", phi, np.sin(reach[:, None] * t)))

    return _crossing(beyond, miss, np.full(len(phi), 2.0))[1]


def in_common(noise: AnswerNoise) -> AnswerNoise:
    """Return noise with one law for all of its fine laws that differ in scale only.

    Its draws are scaled to the variance of each answer, and one table serves them all.
    """
    if isinstance(noise, JoinedNoise):
        return JoinedNoise(tuple((rows, in_common(each)) for rows, each in noise.parts))
    if isinstance(noise, VaryingNoise):
        return noise
    every, places = np.arange(len(noise.raw)), dict[Any, list[IntArray]]()
    for rows, law in noise.laws:
        places.setdefault(_standard(law), []).append(every[rows])
    return replace(noise, laws=tuple((np.concatenate(rows), law) for law, rows in places.items()))


def _standard(law: Any) -> Any:
    """Return the law of the same shape on a thousand steps, if it is on as many."""
    if isinstance(law, GeneralizedGaussian) and law.scale >= FINE:
        return GeneralizedGaussian(scale=FINE, shape=law.shape)
    return NORMAL if isinstance(law, DiscreteGaussian) and law.sigma >= NORMAL_STEPS else law


def public_seed(digest: str, *purpose: str) -> Seeded:
    """Return a repeatable generator, seeded by release digest and purpose."""
    text = ":".join([digest, *purpose])
    return Seeded(int(hashlib.sha256(text.encode()).hexdigest()[:30], 16))


# Intervals of fitted totals whose noise grows with the total: all totals under which the fit is not surprising
# (T-MOVED). Nothing is drawn: the variance of the fit is computed at every total that is tried. Where the relative
# error is large no formula holds as often as it says, so that there the interval contains that of the cell's own
# noisy answer, which does hold.


NEAR = 0.3
"""The relative error at the lower end up to which the formula holds as often as it says. Beyond, the interval also contains that of
the cell's own answer."""
WIDE = 0.5
"""The relative error at the fit from which on the interval is that of the cell's own answer. Between the two it contains both, so
that no cell is given now the one and now the other by chance."""
CLOSE = 2.0**-30
MOST_DOUBLINGS = 60
MOST_TRIES = 200
TRIES_TO_HALF = 3
"""After this many tries the bracket of an end is halved."""


NEXT_TO_NOTHING = 1e-12
"""The part of a variance below which an answer's own does not move with the sum."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MovedSums:
    """The variances of weighted sums of answers if the sums were different.

    All totals then move with the sum as their estimates do: by their covariance with it over its variance.
    """

    value: FloatArray
    """The estimates of the sums."""
    fitted: FloatArray
    """Their variances at the fitted totals."""
    place: IntArray
    """Which sum each pair of a sum and a noisy answer is of."""
    answer: IntArray
    """Which noisy answer it is of."""
    weight: FloatArray
    """The weight of the answer in the sum."""
    totals: FloatArray
    """The fitted total of the answer."""
    rate: FloatArray
    """How far that total moves with the sum."""
    rest: FloatArray
    """What answers with next to no weight add to each variance; they stay as they are."""
    variances: Callable[[IntArray, FloatArray], FloatArray]
    """The variances of some answers at given totals."""

    @classmethod
    def of(
        cls,
        weights: FloatArray,
        used: FloatArray,
        *,
        value: FloatArray,
        totals: FloatArray,
        variances: Callable[[IntArray, FloatArray], FloatArray],
    ) -> "MovedSums":
        """Return the pairs of sums and answers that matter.

        Args:
            weights: The weight of each noisy answer, a row for each sum.
            used: The variances of the answers that the weights were made of.
            value: The estimates of the sums.
            totals: The fitted totals of all answers.
            variances: The variances of some answers at given totals.
        """
        parts = weights**2 * used
        fitted = np.sum(parts, axis=1)
        place, answer = np.nonzero(parts > NEXT_TO_NOTHING * fitted[:, None])
        weight = weights[place, answer]
        kept = np.bincount(place, weight**2 * used[answer], minlength=len(fitted))
        return cls(
            value=value,
            fitted=fitted,
            place=place,
            answer=answer,
            weight=weight,
            totals=totals[answer],
            rate=weight * used[answer] / fitted[place],
            rest=np.maximum(fitted - kept, 0.0),
            variances=variances,
        )

    def at(self, totals: FloatArray) -> FloatArray:
        """The variances of the sums, each at its total of these."""
        moved = np.maximum(self.totals + self.rate * (totals - self.value)[self.place], 0.0)
        own = self.weight**2 * self.variances(self.answer, moved)
        found = np.bincount(self.place, own, minlength=len(self.value)) + self.rest
        return np.asarray(np.maximum(found, np.finfo(np.float64).tiny))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Surprise:
    """A fit's distance above a total, in standard errors."""

    moved: MovedVariance | MovedSums
    shape: Shape

    def __call__(self, totals: FloatArray) -> FloatArray:
        """Return the normal or lognormal surprise of the fit at totals."""
        value, spread = self.moved.value, self.moved.at(totals)
        found = (value - totals) / np.sqrt(spread)
        log = self.shape.log
        if np.any(log):
            point, offset = totals[log] + self.shape.offset[log], self.shape.offset[log]
            squared = np.log1p(spread[log] / point**2)
            with np.errstate(divide="ignore"):
                ratio = np.log(np.maximum(value[log] + offset, 0.0) / point)
            found[log] = ratio / np.sqrt(squared) + np.sqrt(squared) / 2
        return found

    def relative(self, totals: FloatArray) -> FloatArray:
        """The fit's relative error at these totals."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.sqrt(self.moved.at(totals)) / (totals + self.shape.offset))


def total_intervals(
    moved: MovedVariance | MovedSums, shape: Shape, raw_low: FloatArray, raw_high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return both ends of every interval; NaN for a missing end."""
    low, high = raw_low, raw_high
    if math.isfinite(shape.reach):
        surprise = Surprise(moved=moved, shape=shape)
        start = np.maximum(moved.value, 0.0) + (1 + shape.reach) * np.sqrt(moved.fitted)
        with np.errstate(over="ignore", invalid="ignore"):
            low = _crossing(surprise, shape.reach, start)[0]
            high = _crossing(surprise, -shape.reach, start)[1]
            near = surprise.relative(low) <= NEAR
            wide = surprise.relative(np.maximum(moved.value, 0.0)) > WIDE
        low = np.where(wide, raw_low, np.where(near, low, np.minimum(low, raw_low)))
        high = np.where(wide, raw_high, np.where(near, high, np.maximum(high, raw_high)))
    low, high = np.minimum(low, moved.value), np.maximum(high, moved.value)
    return low, np.where(np.isfinite(high), high, np.nan)


def _crossing(
    surprise: Callable[[FloatArray], FloatArray], level: float, start: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return totals just below and above a crossing of the level.

    Where the surprise falls to it: both 0 if it is below it there, and without an upper one if it never falls so
    far.
    """
    left, right = np.zeros(len(start)), start.copy()
    above, below = surprise(left) - level, surprise(right) - level
    none = above <= 0
    for _ in range(MOST_DOUBLINGS):
        if not np.any(far := (below > 0) & ~none & np.isfinite(right)):
            break
        left, above = np.where(far, right, left), np.where(far, below, above)
        right = np.where(far, 2 * right, right)
        below = surprise(right) - level
    right = np.where(none, 0.0, np.where(below > 0, np.inf, right))
    return _narrow(surprise, level, left, right, above, below)


def _narrow(
    surprise: Callable[[FloatArray], FloatArray],
    level: float,
    left: FloatArray,
    right: FloatArray,
    above: FloatArray,
    below: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Narrow a crossing's bracket by secants (Illinois) and halving."""
    for number in range(MOST_TRIES):
        open_ended = np.isfinite(right) & (right - left > CLOSE * right)
        if not np.any(open_ended):
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            secant = (left * -below + right * above) / (above - below)
        half = (number % TRIES_TO_HALF == TRIES_TO_HALF - 1) | ~((secant > left) & (secant < right))
        point = np.where(half, (left + right) / 2, secant)
        point = np.where(open_ended, point, left)
        found = surprise(point) - level
        high = found > 0
        above, below = (
            np.where(open_ended, np.where(high, found, above / 2), above),
            np.where(open_ended, np.where(high, below / 2, found), below),
        )
        left, right = np.where(open_ended & high, point, left), np.where(open_ended & ~high, point, right)
    return left, right


# Standard errors and intervals of fitted columns (T-FITVAR, docs/theory/fits.md). The best linear fit has an error
# that does not depend on the truth. It is normal where noise is Gaussian, except for half a lattice step
# (T-HALFSTEP); otherwise it is as wide as draws of the public noise law, sent through the same fit, show. Under
# transforms the error does depend on the truth, and the interval holds the totals under which the fit is not
# surprising (T-MOVED). Nonnegative fits have the same intervals, cut at 0 (T-CUT).


DRAWS = 400
FEWER_DRAWS = 40
LARGE = 20_000
"""With more answers than this noise is drawn ``FEWER_DRAWS`` times unless told otherwise."""
MOST_VALUES = 4_000_000
"""The numbers that are drawn together."""
ROUNDING = 2.0**-40
REFITS = 3
"""The number of refits with weights at the fitted totals, where the variance depends on them: bias below a thousandth."""

RAW = "the noisy answer itself"
FORMULA = "formula"
AT_MOST = "formula, with the variances of the noisy answers as upper bounds"
DRAWN = "draws of the noise law"
MOVED = "formula at every possible total, approximate"
BOOTSTRAP = "parametric bootstrap, approximate"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedColumn:
    """Fitted values with standard errors and intervals, or NaN."""

    value: FloatArray
    sd: FloatArray
    low: FloatArray
    high: FloatArray
    how: str
    """Where the standard errors and intervals come from."""
    draws: int = 0


def best_fit(
    nesting: Nesting,
    statistic: PublishedStatistic,
    noise: AnswerNoise,
    *,
    confidence: float,
    draws: int,
    source: BitSource,
) -> FittedColumn:
    """Return each cell's best linear unbiased estimate."""
    answers = nesting.column(statistic, "")
    if nesting.undetermined or not adds_up(nesting, statistic):
        sd, low, high = (nesting.column(statistic, end) for end in ("_sd", "_low", "_high"))
        return FittedColumn(value=answers, sd=sd, low=low, high=high, how=RAW)
    used = noise.variance(None)
    weights = linear(nesting, used)
    value = weights.fit(answers)
    for _ in range(REFITS if noise.varies else 0):
        used = noise.variance(value)
        weights = linear(nesting, used)
        value = weights.fit(answers)
    if noise.varies:
        ends = nesting.column(statistic, "_low"), nesting.column(statistic, "_high")
        found = _moved_column(weights, value, used, noise, ends, confidence)
    elif noise.normal:
        found = _normal(weights, value, float(noise.step), confidence)
    else:
        found = _linear_draws(weights, value, noise, confidence=confidence, draws=draws, source=source)
    return _with_published_intervals(
        nesting, statistic, weights, found if noise.known else _around(nesting, statistic, found)
    )


def adds_up(nesting: Nesting, statistic: PublishedStatistic) -> bool:
    """Return whether exact numbers of finer cells add up."""
    return statistic.rules.adds_up(statistic.of, firm=nesting.published.firm)


def linear(nesting: Nesting, variances: FloatArray) -> Weights | CrossingWeights:
    """The best linear fit of a family's answers with these variances."""
    tree = nesting.tree
    return nesting.crossing.weights(variances) if tree is None else tree.weights(variances)


def _with_published_intervals(
    nesting: Nesting, statistic: PublishedStatistic, weights: Any, found: FittedColumn
) -> FittedColumn:
    """Keep the published interval of answers that no other informs."""
    alone = weights.untouched() if nesting.tree is None else ~nesting.tree.connected()
    ends = {name: nesting.column(statistic, f"_{name}") for name in ("sd", "low", "high")}
    kept = {name: np.where(alone, raw, getattr(found, name)) for name, raw in ends.items()}
    return FittedColumn(value=found.value, how=found.how, draws=found.draws, **kept)


def _around(nesting: Nesting, statistic: PublishedStatistic, found: FittedColumn) -> FittedColumn:
    """Widen intervals of unknown laws to contain the answers' intervals."""
    low, high = (nesting.column(statistic, end) for end in ("_low", "_high"))
    return replace(found, low=np.minimum(found.low, low), high=np.maximum(found.high, high))


def _normal(weights: Any, value: FloatArray, step: float, confidence: float) -> FittedColumn:
    """Return intervals by formula for Gaussian noise (T-HALFSTEP)."""
    sd = np.sqrt(weights.fitted)
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * sd + step / 2 * largest_weights(weights)
    how = FORMULA if getattr(weights, "exact", True) else AT_MOST
    return FittedColumn(value=value, sd=sd, low=value - reach, high=value + reach, how=how)


def _linear_draws(
    weights: Any, value: FloatArray, noise: AnswerNoise, *, confidence: float, draws: int, source: BitSource
) -> FittedColumn:
    """Return the spread from fits of the noise alone."""
    largest = Largest(len(value), draws=draws, rank=rank_of(draws, confidence))
    for some in chunks(draws, len(value)):
        largest.add(np.abs(weights.fit(noise.errors(value, some, source))))
    sd = np.sqrt(weights.fitted)
    # An error on a lattice may be the order statistic itself, and must not be missed by a rounding.
    reach = largest.value() + ROUNDING * (np.abs(value) + largest.value())
    how = DRAWN if noise.known else BOOTSTRAP
    return FittedColumn(value=value, sd=sd, low=value - reach, high=value + reach, how=how, draws=draws)


def _moved_column(
    weights: Any,
    value: FloatArray,
    used: FloatArray,
    noise: AnswerNoise,
    raw: tuple[FloatArray, FloatArray],
    confidence: float,
) -> FittedColumn:
    """Return the totals under which the fit is not surprising (T-MOVED).

    Where noise grows with the total.
    """
    moved = moved_variance(weights, value=value, used=used, fitted=weights.fitted, variances=noise.variance_at)
    low, high = total_intervals(moved, noise.shape(confidence), *raw)
    return FittedColumn(value=value, sd=np.sqrt(weights.fitted), low=low, high=high, how=MOVED)


def chunks(draws: int, answers: int) -> Iterator[int]:
    """How many draws are made at a time."""
    size = max(1, MOST_VALUES // max(answers, 1))
    for start in range(0, draws, size):
        yield min(size, draws - start)


def draws_for(answers: int, confidence: float, draws: int | None) -> int:
    """Return how often noise is drawn for intervals without a formula."""
    if draws is not None:
        rank_of(draws, confidence, given=True)
        return draws
    least = int(np.ceil(2 * confidence / (1 - confidence))) + 2
    return DRAWS if answers <= LARGE else max(FEWER_DRAWS, least)
