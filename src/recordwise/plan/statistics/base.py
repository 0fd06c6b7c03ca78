"""The base of statistics, their noisy answers, and intervals of ratios.

A new statistic subclasses ``Drawable`` and joins ``KINDS``.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from recordwise.errors import SqlError
from recordwise.exact.arithmetic import FloatArray, normal_cdf
from recordwise.noise.randomness import BitSource, Secure
from recordwise.plan.arrays import array_of
from recordwise.plan.schema import Schema, threshold_problems
from recordwise.plan.statistics.totals import CountBins, ExactTable, Total
from recordwise.policy.columns import Truth, Value
from recordwise.policy.constructors import By
from recordwise.policy.firms import PURE, Joint
from recordwise.policy.policy import Policy

if TYPE_CHECKING:
    from sqlglot import exp

    from recordwise.mechanisms.base import Mechanism, Noisy, NoisyCurve
    from recordwise.plan.cost import CellMechanism
    from recordwise.plan.file.node import Node


# Intervals of ratios where noise was drawn on the scale of a transform (T-CURVE, docs/theory/statistics.md). In the
# plane of both noisy scales, in units of their sigmas, pairs of totals with the same ratio lie on a rising curve. An
# interval has the ratios whose curves pass the noisy point within some radius: that of straight lines, and a little
# more the more a curve bends.


BoolArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
STEEPEST_BEND = 2 / 3**1.5
"""The largest w**2/(1 + w**2)**1.5: by how much a bend of one scale bends a curve in the plane at most."""
MOST_BENT = 0.6
"""Beyond it two separate intervals are no wider."""
LONGEST_RADIUS = 3.0
"""In sigmas: bends are bounded within ``NEARBY`` of a point, which is enough for radii up to this one."""
BENDS = np.concatenate([[0.0], 0.002 * 1.05 ** np.arange(118)])
"""Curvatures are rounded up to one of these."""
COARSE_POINTS, GOLDEN_STEPS = 9, 18
GOLDEN = (math.sqrt(5) - 1) / 2
SLACK = 1e-6
"""Of the width of an interval: more than the search for its ends leaves out."""
INVERSE_ERROR = 2.0**-42
ACROSS = np.linspace(-9.0, 9.0, 8001)
NEAR = 1e-5
"""More than a radius is off by, from sums in place of integrals."""


def curved_interval(
    top: "NoisyCurve", bottom: "NoisyCurve", *, confidence: float
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return both ends, and the cells where they apply.

    Where a curve bends, but little, and the denominator is well above 0.
    """
    bend = STEEPEST_BEND * np.maximum(top.bend, bottom.bend)
    if not np.any(bend > 0):
        return bend, bend, np.zeros(bend.shape, np.bool_)
    radius = radii(bend, confidence)
    width, depth = top.sigma * radius + top.half, bottom.sigma * radius + bottom.half
    narrow = (bend > 0) & np.isfinite(width) & np.isfinite(depth) & (bottom.point - 2 * depth > bottom.zero)
    # Other cells take part in the arithmetic, at a point where nothing goes wrong.
    width, depth = np.where(narrow, width, 0.0), np.where(narrow, depth, 0.0)
    start = np.where(top.bend > 0, 0.0, -np.pi / 2)

    def end(side: float) -> FloatArray:
        def ratio(angle: FloatArray) -> FloatArray:
            above = top.back(top.point + side * width * np.cos(angle))
            below = bottom.back(bottom.point - side * depth * np.sin(angle))
            return np.where(narrow, side * above / below, 0.0)

        return side * _largest(ratio, start)

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        low, high = end(-1.0), end(1.0)
        slack = SLACK * (high - low) + INVERSE_ERROR * np.maximum(np.abs(low), np.abs(high))
        low, high = low - slack, high + slack
        low = np.where(top.bend > 0, np.maximum(low, 0.0), low)
        return low, high, np.asarray(narrow & np.isfinite(low) & np.isfinite(high))


def _largest(value: Callable[[FloatArray], FloatArray], start: FloatArray) -> FloatArray:
    """Return the largest value between ``start`` and a right angle."""
    step = (np.pi / 2 - start) / (COARSE_POINTS - 1)
    tried = np.stack([value(start + at * step) for at in range(COARSE_POINTS)])
    best = start + np.argmax(tried, axis=0) * step
    low, high = np.maximum(best - step, start), np.minimum(best + step, np.pi / 2)
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = value(left), value(right)
    found = np.maximum(tried.max(axis=0), np.maximum(at_left, at_right))
    for _ in range(GOLDEN_STEPS):
        keep = at_left > at_right
        low, high = np.where(keep, low, left), np.where(keep, right, high)
        angle = np.where(keep, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        new = value(angle)
        left, right = np.where(keep, angle, right), np.where(keep, left, angle)
        at_left, at_right = np.where(keep, new, at_right), np.where(keep, at_left, new)
        found = np.maximum(found, new)
    return np.asarray(found)


def radii(bend: FloatArray, confidence: float) -> FloatArray:
    """The radius for each curvature; infinite where it bends too much or the radius is too long."""
    place = np.searchsorted(BENDS, np.where(bend <= MOST_BENT, bend, 0.0))
    needed = np.unique(place)
    known = np.zeros(len(BENDS))
    known[needed] = [_radius(float(BENDS[each]), confidence) for each in needed]
    found = known[place]
    return np.where((bend <= MOST_BENT) & (found <= LONGEST_RADIUS), found, np.inf)


@lru_cache(maxsize=4096)
def _radius(bend: float, confidence: float) -> float:
    """Return the z that covers a curve of this bend.

    A pair of normal noises that starts on the edge of a disk of radius 1/bend is further than z from the disk
    with half of the chance to miss; a straight line has its normal quantile. A part of the chance is left to
    points far away.
    """
    from recordwise.mechanisms.base import OUTSIDE

    miss = (1 - confidence - OUTSIDE) / 2
    if 1 - miss >= 1:
        # Nothing is left, or less than a float tells apart from nothing, as at a confidence of 0.999.
        return math.inf
    if bend == 0:
        return NormalDist().inv_cdf(1 - miss)
    size = 1 / bend
    # The disk holds no more than a half plane, and no less than its only point.
    low, high = NormalDist().inv_cdf(1 - miss), math.sqrt(-2 * math.log(miss))
    density = np.exp(-(ACROSS**2) / 2) / math.sqrt(2 * math.pi) * (ACROSS[1] - ACROSS[0])
    while high - low > NEAR / 2:
        middle = (low + high) / 2
        edge = np.sqrt(np.maximum((size + middle) ** 2 - ACROSS**2, 0.0))
        beyond = float(density @ (normal_cdf(size - edge) + normal_cdf(-size - edge)))
        low, high = (middle, high) if beyond > miss else (low, middle)
    return high + NEAR


# An interval for the ratio of two independent noisy answers, in every cell (T-RATIO, docs/theory/statistics.md).


STEEPEST = 0.25
"""Fieller's set is used where (reach/value)**2 of the denominator is below this."""
ROUNDINGS = 2.0**-46
"""Relative slack for the rounding of a ratio's ends."""
DIGITS = 3
"""Ends keep this many digits below the first digit of the interval's width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A numerator or denominator, cell by cell."""

    value: FloatArray
    """Unbiased."""
    low: FloatArray
    high: FloatArray
    """The interval contains the exact total with probability (1 + confidence)/2, for the ``confidence`` of the ratio."""
    reach: FloatArray
    """``gaussian_reach`` where Gaussian noise was added on the total's own scale, NaN elsewhere."""
    curve: "NoisyCurve | None" = None
    """Where Gaussian noise was added on any scale, to an answer that the other side does not contain."""


def gaussian_reach(sigma: Fraction, step: Fraction, *, confidence: float) -> float:
    """Return a bound on lattice Gaussian noise, alone or mixed (T-RATIO)."""
    return NormalDist().inv_cdf((1 + confidence) / 2) * float(sigma) + float(step) / 2


def ratio_interval(
    top: Side, bottom: Side, *, least: float, shared: FloatArray | float = 0.0, confidence: float | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return ends that contain the exact ratio with this confidence.

    Assuming that the exact denominator is at least ``least``. ``shared`` is what correlated answers have in
    common: the sum of the products of their coefficients with squared reaches. The ``confidence`` is needed where
    noise was drawn on the scale of a transform.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        steepness = (bottom.reach / bottom.value) ** 2
        narrow = (bottom.value > 0) & (steepness < STEEPEST) & ~np.isnan(top.reach)
        # Where noise is 0 at the confidence, which its law alone decides, the ratio is a point.
        known = ~np.isnan(top.reach) & ~np.isnan(bottom.reach) & (bottom.low >= least)
        exact = known & (top.low == top.high) & (bottom.low == bottom.high) & (bottom.low > 0)
        fieller = _fieller(top, bottom, steepness, shared / bottom.value**2)
        corners = _corners(top, bottom, least)
        low, high = (np.where(narrow, one, other) for one, other in zip(fieller, corners))
        if confidence is not None and top.curve is not None and bottom.curve is not None:
            *curved, bent = curved_interval(top.curve, bottom.curve, confidence=confidence)
            low, high = (np.where(bent, one, other) for one, other in zip(curved, (low, high)))
        low, high = _round_outward(low, high)
        return np.where(exact, top.low / bottom.low, low), np.where(exact, top.low / bottom.low, high)


def _fieller(top: Side, bottom: Side, steepness: FloatArray, shared: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the roots of the Fieller quadratic, divided by D**2.

    The r with (N - r D)**2 <= reach(N)**2 - 2 r shared + r**2 reach(D)**2.
    """
    ratio, own = top.value / bottom.value, top.reach / bottom.value
    root = own**2 * (1 - steepness) + steepness * ratio**2 + shared * (shared - 2 * ratio)
    half = np.sqrt(np.maximum(root, 0.0))
    # A difference of nearly equal numbers can be off by as much as the roundings of the larger ones.
    lost = np.sqrt(ROUNDINGS * np.abs(shared * (np.abs(shared) + 2 * np.abs(ratio)))) if np.any(shared) else 0.0
    slack = ROUNDINGS * (np.abs(ratio) + half) + lost
    middle = ratio - shared
    return (middle - half - slack) / (1 - steepness), (middle + half + slack) / (1 - steepness)


def _corners(top: Side, bottom: Side, least: float) -> tuple[FloatArray, FloatArray]:
    """Return the extreme quotients of both intervals' ends."""
    smallest, largest = np.maximum(bottom.low, least), np.maximum(bottom.high, least)
    low = top.low / np.where(top.low >= 0, largest, smallest)
    high = top.high / np.where(top.high >= 0, smallest, largest)
    return low - ROUNDINGS * np.abs(low), high + ROUNDINGS * np.abs(high)


def outward(low: FloatArray, high: FloatArray, size: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Move ends apart by possible roundings, then to meaningful digits."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slack = ROUNDINGS * size
        return _round_outward(low - slack - ROUNDINGS * np.abs(low), high + slack + ROUNDINGS * np.abs(high))


def _round_outward(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Round outward to meaningful digits, within a hundredth of the width."""
    places = DIGITS - 1 - np.floor(np.log10(high - low))
    # Powers of ten with a whole exponent up to 22 are exact floats, so this produces the shortest decimals.
    fine = np.where(np.isfinite(places), np.clip(places, -22, 22), 0)
    up, down = 10.0 ** np.maximum(fine, 0), 10.0 ** np.maximum(-fine, 0)
    lower, upper = np.floor(low * up / down) / up * down, np.ceil(high * up / down) / up * down
    sure = np.isfinite(lower) & np.isfinite(upper) & (lower <= low) & (upper >= high) & (fine == places)
    return np.where(sure, lower, low), np.where(sure, upper, high)


# The noisy answers of a table, and the columns they are published as.


NOT_UNBIASED = "not unbiased"
FIELDS = ("value", "median_unbiased", "standard_error", "variance_unbiased", "low", "high")
"""The estimates that are published."""
MEDIAN = "_median"
"""The suffix of a median-unbiased estimate, published on request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyColumn:
    """A variable with its accuracy, and noisy points on another scale."""

    alias: str
    value: Any
    """Floats, or whole numbers if every value is whole, as for a count."""
    standard_error: FloatArray
    low: FloatArray
    high: FloatArray
    noisy: FloatArray | None = None
    """Of a sum of two parts, that of the positive part."""
    noisy_negative: FloatArray | None = None
    sigma: FloatArray | None = None
    variance_unbiased: FloatArray | None = None
    """Published next to ``noisy`` and ``sigma``."""
    median_unbiased: FloatArray | None = None
    with_median: bool = False
    """Whether the median-unbiased estimate is published."""
    flag: str | None = None
    """What a reader must know before using the value as an unbiased estimate; saved with the column and in release.json."""

    def columns(self) -> dict[str, pa.Array]:
        """Return the published columns, with NULL for numbers that do not exist."""
        columns = {
            self.alias: _array(self.value),
            f"{self.alias}_sd": _array(self.standard_error),
            f"{self.alias}_cv": _relative(self.standard_error, self.value),
            f"{self.alias}_low": _array(self.low),
            f"{self.alias}_high": _array(self.high),
        }
        if self.noisy is not None:
            if self.noisy_negative is None:
                columns[f"{self.alias}_noisy"] = _array(self.noisy)
            else:
                columns[f"{self.alias}_noisy_positive"] = array_of(self.noisy)
                columns[f"{self.alias}_noisy_negative"] = array_of(self.noisy_negative)
            columns[f"{self.alias}_sigma"] = _array(self.sigma)
            columns[f"{self.alias}_variance"] = array_of(self.variance_unbiased)
        if self.with_median:
            columns[self.alias + MEDIAN] = _array(np.asarray(self.median_unbiased, np.float64))
        return columns


def _array(values: Any) -> pa.Array:
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(0, np.bool_)
    return array_of(values, missing)


def _relative(error: FloatArray, value: Any) -> pa.Array:
    """Return the coefficient of variation, or NULL."""
    cv = np.abs(np.asarray(value, dtype=np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        np.divide(error, cv, out=cv)
    finite = np.isfinite(cv)
    return array_of(cv, ~finite)


@dataclass(frozen=True, slots=True)
class CellAnswers:
    """The cells for which one mechanism is used, and its noisy answers."""

    rows: Any
    mechanism: "Mechanism"
    noisy: "Noisy"


@dataclass(frozen=True, slots=True)
class Answer:
    """The noisy answers to one statistic, drawn once."""

    parts: Sequence[CellAnswers]
    cells: int
    _estimated: dict[float, dict[str, Any]] = field(default_factory=dict, compare=False, repr=False)
    """Estimates by confidence: ratios and combinations ask for them again."""

    def column(self, alias: str, confidence: float) -> NoisyColumn:
        """Estimates and intervals of every cell."""
        if confidence not in self._estimated:
            self._estimated[confidence] = self._estimates(confidence)
        return NoisyColumn(alias=alias, **self._estimated[confidence])

    def _estimates(self, confidence: float) -> dict[str, Any]:
        """Return the estimates in the order of the cells."""
        found = [(part.rows, _values(part, confidence)) for part in self.parts]
        if len(found) == 1:
            return found[0][1]
        full: dict[str, Any] = {}
        for name in dict.fromkeys(name for _, columns in found for name in columns):
            held = [(rows, columns[name]) for rows, columns in found if name in columns]
            # Noise on whole numbers in some cells and on a finer lattice in others: all are floats.
            kind = np.result_type(*(column.dtype for _, column in held))
            # Noise on a transformed scale in some cells only: the others have no such answer.
            full[name] = np.empty(self.cells, kind) if len(held) == len(found) else np.full(self.cells, np.nan)
            for rows, column in held:
                full[name][rows] = column
        return full

    def side(self, confidence: float) -> Side:
        """Return what a ratio needs to know about this answer."""
        found = self.column("", (1 + confidence) / 2)
        value = np.asarray(found.value, np.float64)
        return Side(value=value, low=found.low, high=found.high, reach=self.reach(confidence), curve=self.curve())

    def curve(self) -> "NoisyCurve":
        """Return the points and sigmas of Gaussian noise; NaN for other noise."""
        from recordwise.mechanisms.base import NoisyCurve

        columns = {name: np.full(self.cells, np.nan) for name in ("point", "sigma", "half", "zero", "bend")}
        found = [(part.rows, part.mechanism.noisy_curve(part.noisy)) for part in self.parts]
        known = [(rows, curve) for rows, curve in found if curve is not None]
        for rows, curve in known:
            for name, column in columns.items():
                column[rows] = getattr(curve, name)

        def back(points: FloatArray) -> FloatArray:
            totals = np.full(self.cells, np.nan)
            for rows, curve in known:
                totals[rows] = curve.back(points[rows])
            return totals

        return NoisyCurve(**columns, back=back)

    def reach(self, confidence: float) -> FloatArray:
        """Return each cell's Gaussian reach on the total's scale, or NaN."""
        reach = np.full(self.cells, np.nan)
        for part in self.parts:
            sigma = part.mechanism.noise_sigma
            if sigma is not None:
                reach[part.rows] = gaussian_reach(sigma, part.noisy.grid, confidence=confidence)
        return reach


def _values(part: CellAnswers, confidence: float) -> dict[str, Any]:
    estimates = part.mechanism.estimate(part.noisy, confidence=confidence)
    columns = {name: getattr(estimates, name) for name in FIELDS}
    scale = part.mechanism.noise_scale
    if scale is not None:
        noisy = part.noisy.values()
        columns |= {"noisy": noisy} if noisy.ndim == 1 else {"noisy": noisy[0], "noisy_negative": noisy[1]}
        columns["sigma"] = np.full(noisy.shape[-1], float(scale))
    elif part.noisy.grid == 1 and part.noisy.combined is None:
        columns["value"] = _fitting(part.noisy.points)
    return columns


def _fitting(points: Any) -> Any:
    """Return noisy integers, clipped only after noise to 64 bits (T-RANGE)."""
    return points if points.dtype == np.int64 else np.clip(points, -(2**63), 2**63 - 1).astype(np.int64)


# The interface between a statistic and the rest of the package.


COUNT, SUM, OTHER = "count", "sum", "other"


class EntryReader(Protocol):
    """A plan-file reader's context: the schema and the named mechanisms."""

    @property
    def schema(self) -> Schema:
        """The schema of the plan."""

    def mechanism(self, node: "Node") -> Any | None:
        """Return a mechanism, by name or inline; None with a recorded problem."""

    def build_mechanism(self, kind: Any, node: "Node", entries: "Mapping[str, Node]") -> Any | None:
        """Return a mechanism of a kind from a node's entries."""

    def named(self, node: "Node") -> tuple[str | None, Any | None]:
        """The published name of a statistic (``as``), and its mechanism."""


@dataclass(slots=True)
class NamedMechanisms:
    """A SQL statement's mechanisms, and which of them were used."""

    given: Mapping[str, Any]
    used: set[str] = field(default_factory=set)

    def take(self, alias: str | None, default: str) -> Any:
        """Return a statistic's mechanism, by alias or else by column."""
        name = alias if alias in self.given else default
        if name is None or name not in self.given:
            raise SqlError(construct=f"no mechanism for '{(alias or default)[:40]}'", advice="Add it to mechanisms.")
        self.used.add(name)
        return self.given[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic(ABC):
    """A statistic of a query, as other modules use it."""

    alias: str = ""
    """The published name."""

    word: ClassVar[str]
    """Its key in a plan file."""
    names_column: ClassVar[bool] = True
    """Whether its key in a plan file is followed by a column, or by its own name."""
    names_itself: ClassVar[bool] = False
    """Whether what follows the key is the name it is published under."""
    sql_key: ClassVar[str | None] = None
    """The parameter that identifies a plan file's mechanism for SQL text as belonging to this statistic."""
    contribution: ClassVar[str] = OTHER
    """``count``: a record changes it by 1 or not at all; ``sum``: by its value; ``other``: neither."""
    fitted: ClassVar[bool] = False
    """Whether a consistent release fits it to the tables it adds up in."""
    counts_records: ClassVar[bool] = False
    """Whether a cell where it is 0 holds no record."""
    means: ClassVar[str] = "a statistic of {of}"
    """What it is, for the data dictionary; ``of`` is the label of what it is about."""
    derived: ClassVar[bool] = False
    """Whether it is computed from other noisy statistics instead of being drawn itself."""

    def __post_init__(self) -> None:
        if not self.alias:
            object.__setattr__(self, "alias", self.default_alias())

    @abstractmethod
    def default_alias(self) -> str:
        """The published name unless another is given."""

    @property
    def of(self) -> str | None:
        """The measure or id that the statistic uses."""
        return None

    @classmethod
    def adds_up(cls, of: str | None, *, firm: str | None) -> bool:
        """Return whether exact values of finer cells add up."""
        return True

    @property
    def planned_as(self) -> str | None:
        """Its name in planning: "count", a measure's name, or None."""
        return None

    @abstractmethod
    def mechanisms(self) -> tuple[Any, ...]:
        """The mechanisms given for it."""

    @abstractmethod
    def problems(self, schema: Schema) -> list[str]:
        """Problems with the schema, as sentences without a final period."""

    def with_mechanisms(self, chosen: "Chosen", drawn: Sequence["Drawable"]) -> "Statistic":
        """Return the statistic with chosen mechanisms for what ``drawn`` has now."""
        return self

    def among(self, others: Sequence["Statistic"]) -> "Statistic":
        """The statistic as it joins a query that asks for others already."""
        return self

    def missing(self, drawn: Sequence["Drawable"], schema: Schema) -> list[str]:
        """What it lacks next to the statistics its query draws."""
        return []

    @abstractmethod
    def parts(self, drawn: Sequence["Drawable"]) -> tuple["Drawable", ...]:
        """Return its parts: those of ``drawn`` that fit, otherwise new ones."""

    def bins(self) -> tuple[CountBins, ...]:
        """The counts along a grid it needs from an engine."""
        return ()

    def forms(self, drawn: Sequence["Drawable"]) -> tuple["Form", "Form"]:
        """Return its linear form of parts and its divisor, possibly empty."""
        return tuple((part, Fraction(1)) for part in self.parts(drawn)), ()

    @abstractmethod
    def column(self, answers: Sequence[Any], *, confidence: float) -> NoisyColumn:
        """The published column, computed from the noisy answers of its parts."""

    def confidence_of_parts(self, confidence: float) -> float:
        """Return its parts' confidence for an interval of ``confidence``."""
        return confidence

    def description(self) -> dict[str, Any]:
        """Return the statistic as in release.json and the ledger."""
        return {"name": self.alias, "kind": type(self).__name__, "of": self.of}

    def entry(self) -> Any:
        """Return its plan-file entry, without its name."""
        raise NotImplementedError

    @classmethod
    def read_entry(cls, column: str, node: "Node", reader: EntryReader) -> "Statistic | None":
        """Return a plan-file entry's statistic; None with a recorded problem."""
        return None

    @classmethod
    def read_sql_mechanism(cls, node: "Node", reader: EntryReader) -> Any | None:
        """Read a plan file's mechanism for SQL, if it has ``sql_key``."""
        return reader.mechanism(node)

    @classmethod
    def read_sql(cls, node: "exp.Expr", alias: str | None, mechanisms: NamedMechanisms) -> "Statistic | None":
        """Return a SQL aggregate's statistic; None if it is a different one."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawable(Statistic):
    """A statistic that noise is drawn for.

    The defaults fit a total to which every record contributes at most 1.
    """

    mechanism: "Mechanism"

    def mechanisms(self) -> tuple[Any, ...]:
        return (self.mechanism,)

    def with_mechanisms(self, chosen: "Chosen", drawn: Sequence["Drawable"]) -> "Statistic":
        return replace(self, mechanism=chosen(self))

    def description(self) -> dict[str, Any]:
        """Return it with all its fields: a release is recognized by them."""
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("alias", "mechanism")}
        stated = {name: value for name, value in own.items() if value != self.of}
        return Statistic.description(self) | stated | {"mechanism": self.mechanism}

    def entry(self) -> dict[str, Any]:
        return mechanism_entry(self.mechanism)

    def problems(self, schema: Schema) -> list[str]:
        return mechanism_problems([self.mechanism], schema)

    def parts(self, drawn: Sequence["Drawable"]) -> tuple["Drawable", ...]:
        return (self,)

    @abstractmethod
    def totals(self, schema: Schema) -> tuple[Total, ...]:
        """Return the exact totals it needs: one, two if signed, or none."""

    def step(self, schema: Schema) -> Fraction:
        """The unit of its total."""
        return Fraction(1)

    def threshold(self, mechanism: "Mechanism", schema: Schema) -> Fraction | By | None:
        """The threshold at which its mechanism splits records, if any."""
        return None

    def cost(self, mechanism: "Mechanism", schema: Schema, *, tight: bool) -> Policy:
        """Return its cost to a record of a cell using ``mechanism``."""
        return mechanism.policy_of_count()

    def joint(self, mechanism: "Mechanism", schema: Schema) -> Joint:
        """Return a further bound on records' joint loss in a cell (T-CELLS).

        Of counts with a pure loss, which adds up: eps tanh(eps/2) at their sum.
        """
        is_pure = self.contribution == COUNT and mechanism.policy_of_count().pure_problem() is None
        return Joint(kind=PURE) if is_pure else Joint()

    def lattice_noise(self, mechanism: "Mechanism", schema: Schema) -> tuple[Fraction, int] | None:
        """Return Gaussian sigma in steps, and numbers a record changes, or None."""
        steps = mechanism.noise_steps(self.step(schema))
        return None if steps is None else (steps, 1)

    def example_sql(self, column: str) -> str:
        """Return the same statistic in SQL, for the audit."""
        return "COUNT(*)"

    def dry_run(self, mechanism: "Mechanism", schema: Schema, *, confidence: float) -> None:
        """Draw for one empty cell to trigger refusals before spending.

        The noise is that of a release and is thrown away; numpy's generators would be imported for this alone.
        """
        parts = len(self.totals(schema))
        empty = np.zeros((parts, 1) if parts > 1 else 1, dtype=np.int64)
        tried = mechanism.release(empty, step=self.step(schema), rng=Secure())
        mechanism.estimate(tried, confidence=confidence)

    def draw(
        self,
        exact: ExactTable,
        served: Sequence["CellMechanism"],
        schema: Schema,
        rng: BitSource,
        *,
        asked: Sequence[Statistic],
        confidence: float,
    ) -> Any:
        """Add noise, once.

        ``asked`` are the statistics of the query, ``confidence`` that of their intervals.
        """
        held, step = [exact.totals[each] for each in self.totals(schema)], self.step(schema)
        totals = held[0] if len(held) == 1 else np.stack(held)
        parts = []
        for each in served:
            rows = each.run.rows if len(served) > 1 else slice(None)
            parts.append(
                CellAnswers(rows, each.mechanism, each.mechanism.release(totals[..., rows], step=step, rng=rng))
            )
        return Answer(parts, exact.cells)

    def column(self, answers: Sequence[Any], *, confidence: float) -> NoisyColumn:
        (answer,) = answers
        column: NoisyColumn = answer.column(self.alias, confidence)
        return column


Chosen: TypeAlias = Callable[[Drawable], Any]
"""The mechanism of each drawn statistic."""
Form: TypeAlias = tuple[tuple[Drawable, Fraction], ...]
"""Drawn statistics with their coefficients."""


def mechanism_entry(mechanism: "Mechanism") -> dict[str, Any]:
    """Return a mechanism as a plan file writes it."""
    from recordwise.mechanisms.base import Mechanism

    given = mechanism.given_parameters()
    inner = {name: mechanism_entry(value) for name, value in given.items() if isinstance(value, Mechanism)}
    groups = {name: _group_entries(value) for name, value in given.items() if isinstance(value, tuple)}
    return {"kind": type(mechanism).__name__, **given, **inner, **groups}


def _group_entries(values: "Iterable[tuple[Value, Mechanism]]") -> dict[str, Any]:
    """Return each group's mechanism, by the group as a TOML key."""
    return {
        str(group.value).lower() if isinstance(group, Truth) else str(group): mechanism_entry(each)
        for group, each in values
    }


def mechanism_problems(mechanisms: "Iterable[Mechanism]", schema: Schema) -> list[str]:
    """Where the thresholds of mechanisms do not fit the schema."""
    every = [one for each in mechanisms for one in each.inside()]
    found = [problem for each in every for problem in threshold_problems(each.at, schema)]
    groups = [problem for each in mechanisms for problem in threshold_problems(each.group_numbers, schema)]
    return found + [problem.replace("thresholds", "mechanisms") for problem in groups]


def published_columns(
    statistics: Sequence[Statistic],
    drawn: Sequence[Drawable],
    answers: Mapping[str, Any],
    *,
    confidence: float,
    median: Sequence[str] = (),
) -> tuple[NoisyColumn, ...]:
    """Return a query's statistics, then the others drawn for them.

    From the noisy answers by alias, those of ``median`` with their median-unbiased estimates. All noise is drawn, so
    that they can be computed in parallel.
    """

    def column(statistic: Statistic) -> NoisyColumn:
        found = statistic.column([answers[part.alias] for part in statistic.parts(drawn)], confidence=confidence)
        return replace(found, with_median=True) if statistic.alias in median else found

    with ThreadPoolExecutor() as pool:
        return tuple(pool.map(column, (*statistics, *(each for each in drawn if each not in statistics))))
