"""The class of all mechanisms, with their parameters, goals, noisy output and estimates.

One contract suite (tests/mechanisms) runs every mechanism.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Self, TypeAlias, TypedDict

import numpy as np

from recordwise.errors import KindError, ParameterError, PlanError, near_name
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.functions import Function
from recordwise.exact.numbers import Number, fraction_text, positive
from recordwise.exact.text import formula_text
from recordwise.noise.laws import LatticeLaw
from recordwise.noise.randomness import BitSource, Secure
from recordwise.policy.columns import Measure, value_json
from recordwise.policy.constructors import By, constant, pure_constant
from recordwise.policy.policy import Policy

if TYPE_CHECKING:
    from sqlglot import exp

# How a mechanism describes itself: its parameters, its dictionary form, its text, and the words a page uses for its
# noise. A mechanism is a frozen dataclass that lists its constructor's parameters in ``parameters``. The list is used
# to read and write plan files, to recalibrate the noise to a goal, and to turn a description back into the mechanism
# (`recordwise.mechanisms.registry`).


Reading: TypeAlias = Literal["number", "probability", "flag", "function", "thresholds", "word", "grid", "mechanism"]
GroupReading: TypeAlias = Literal["column", "groups", "length"]
Role: TypeAlias = Literal["shape", "noise", "goal"]
Answers: TypeAlias = Literal["totals", "quantiles"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a mechanism's constructor."""

    name: str
    words: str
    """A description with its unit."""
    role: Role = "shape"
    """``shape`` is kept when the noise is recalibrated, ``noise`` is then replaced, and a ``goal`` is given but never stored."""
    read: Reading | GroupReading = "number"
    """How a plan file writes it."""
    needed: bool = False
    field: str = ""
    """The attribute that stores it, if not ``name``."""
    choices: tuple[str, ...] = ()
    """The allowed words."""

    @property
    def stored(self) -> str:
        return self.field or self.name


RELATIVE_ERROR = (
    Parameter("relative_error", "relative error at the total at_total", "goal"),
    Parameter("at_total", "total at which the goal is stated, in the measure's units", "goal"),
    Parameter("confidence", "probability with which the error stays below relative_error", "goal", "probability"),
)
VARIANCE = Parameter("variance", "variance of the noise, in squared units of the measure", "goal")
GAUSSIAN_GOALS = (VARIANCE, *RELATIVE_ERROR, Parameter("step", "step of the measure a relative_error is for", "goal"))
SCALE_AND_GOALS = (
    Parameter("scale", "scale of the noise, in the measure's units", "noise"),
    VARIANCE,
    Parameter("rho", "loss of a record of size at", "goal"),
    Parameter("at", "size of the record that loses rho, in the measure's units", "goal"),
    *RELATIVE_ERROR,
    Parameter("lattice", "lattice on which noise is drawn, in the measure's units", field="coarse_lattice"),
)
TRANSFORM_NOISE = (
    Parameter("sigma", "standard deviation of Gaussian noise, on the transformed scale", "noise"),
    Parameter("laplace_scale", "scale of Laplace noise, on the transformed scale", "noise"),
    Parameter("signed", "whether contributions may be negative", read="flag"),
    VARIANCE,
    Parameter("rho", "loss of a record of size at", "goal"),
    Parameter("at", "size of the record that loses rho, in the measure's units", "goal"),
    *RELATIVE_ERROR,
    Parameter("noise", "law of the noise that meets the goal", "goal", "word", choices=("gaussian", "laplace")),
)


class Goals(TypedDict, total=False):
    """One goal that sets the noise, in place of a parameter of it; it is not stored."""

    variance: Number | None
    """Of the noise, in squared units of the measure."""
    relative_error: Number | None
    """At the total ``at_total``, with probability ``confidence``."""
    at_total: Number | None
    """In the measure's units."""
    confidence: float | None


class GaussianGoals(Goals, total=False):
    """The goals of Gaussian noise on the data's lattice."""

    step: Number | None
    """Of the measure that a ``relative_error`` is for."""


class LossGoals(Goals, total=False):
    """The goals of noise whose loss depends on a record's size."""

    rho: Number | None
    """The loss of a record of size ``at``."""
    at: Number | None
    """In the measure's units."""


class TransformGoals(LossGoals, total=False):
    """The goals of noise on a transformed scale."""

    noise: Literal["gaussian", "laplace"] | None
    """The law of the noise that meets the goal."""


def read_goals(kind: type[Goals], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return every goal of a kind by name, None where it is not given; refuse other names."""
    names = kind.__annotations__
    for name in given:
        if name not in names:
            near = near_name(name, (*names, "rho", "sigma", "scale", "laplace_scale", "offset", "at", "noise"))
            raise KindError(parameter=f"'{name}'", problem=f"is no parameter of this mechanism{near}")
    return {name: given.get(name) for name in names}


def _parameter_text(value: Any) -> str:
    if isinstance(value, Fraction):
        return f"{formula_text(value)}"
    if isinstance(value, By):
        return f"by {value.column.name}"
    if isinstance(value, tuple):
        return "{" + ", ".join(f"{group}: {each}" for group, each in value) + "}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_name(key)}: {_parameter_text(each)}" for key, each in value.items()) + "}"
    if isinstance(value, Function):
        from recordwise.policy.render.text import function_text

        return function_text(value, "x")
    return str(value)


def _name(key: Any) -> str:
    return str(getattr(key, "name", key))


def parameter_json(value: Any) -> Any:
    """Return a mechanism or parameter as JSON, fractions as text."""
    if isinstance(value, Fraction):
        return fraction_text(value)
    if isinstance(value, Function):
        return value.to_json()
    if isinstance(value, By):
        return {"by": value.column.to_json(), "values": _groups_json(value), "default": parameter_json(value.default)}
    if isinstance(value, tuple) and value and all(isinstance(each, tuple) for each in value):
        return [[value_json(group), parameter_json(each)] for group, each in value]
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: parameter_json(getattr(value, each.name)) for each in fields(value)}
        return {"kind": type(value).__name__, **{name: part for name, part in parts.items() if part is not None}}
    if isinstance(value, Mapping):
        return {_name(key): parameter_json(part) for key, part in value.items()}
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _groups_json(value: By) -> Any:
    """Return values by group as JSON, as pairs if not text."""
    groups = [(value_json(group), fraction_text(number)) for group, number in value.values]
    return dict(groups) if all(isinstance(group, str) for group, _ in groups) else [list(pair) for pair in groups]


# The output of a mechanism: noisy grid points, computed from exact totals without overflow or rounding, and interval
# ends that are exact lattice points or decimals rounded outward to the meaningful digits (T-INTERVAL).


IntArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[Any]]
"""Whole numbers: int64, or Python integers in an object array where 64 bits could overflow."""
BoolArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

SAFE = 2**61
"""Two numbers below it add up to less than 2**62, so that a noise quantile (below 2**62) can be added within 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noisy:
    """Noisy answers as whole multiples of ``grid``.

    In the measure's units or on a transformed scale.
    """

    points: IntArray
    grid: Fraction
    step: Fraction
    """The measure's step, which determined the grid."""
    private: bool
    """False if a seeded generator drew the noise: suitable for tests and simulation, never for publication."""
    combined: FloatArray | None = None
    """Averages of these answers and earlier ones (T-STAGES), which are on no lattice."""

    def values(self) -> FloatArray:
        """The answers as floats."""
        return to_floats(self.points, self.grid) if self.combined is None else self.combined


def whole_totals(totals: Any) -> IntArray:
    """Exact totals in lattice steps, as whole numbers; anything else is refused."""
    array = np.asarray(totals)
    if array.size == 0:
        return np.zeros(array.shape, np.int64)
    if array.dtype.kind == "i" or (array.dtype.kind == "u" and array.max() < SAFE):
        return array.astype(np.int64, copy=False)
    if array.dtype.kind == "f" and not isinstance(totals, np.ndarray):
        # numpy converts a list with both -1 and 2**63 to floats.
        array = np.array(totals, dtype=object)
    if array.dtype.kind in "uO" and all(
        isinstance(total, (int, np.integer)) and not isinstance(total, bool) for total in array.flat
    ):
        return integers([int(total) for total in array.flat], array.shape)
    raise ParameterError(
        parameter="totals", problem="must be whole numbers of lattice steps", advice="Never pass float sums."
    )


def integers(numbers: list[int], shape: tuple[int, ...]) -> IntArray:
    """Return whole numbers as an array.

    64-bit if all are below 2**62, otherwise Python integers.
    """
    fits = all(-2 * SAFE < number < 2 * SAFE for number in numbers)
    return np.array(numbers, dtype=np.int64 if fits else object).reshape(shape)


def times(points: IntArray, factor: int) -> IntArray:
    """Multiply whole numbers, as Python integers where 64 bits could overflow."""
    if points.dtype != object and max(largest(points), 1) * factor < SAFE:
        return np.asarray(points * np.int64(factor))
    return integers([int(point) * factor for point in points.flat], points.shape)


def noised(points: IntArray, law: LatticeLaw, source: BitSource) -> IntArray:
    """Exact points plus noise, neither wrapped nor clipped.

    The sums are Python integers if one needs more than 62 bits; that depends on the noisy sums alone, so it reveals nothing more.
    """
    drawn, flat = law.draw(points.size, source), points.ravel()
    if flat.dtype != object and not drawn.extremes and max(largest(flat), largest(drawn.values)) < SAFE:
        # In place: fresh memory would cost as much as the noise.
        return np.add(flat, drawn.values, out=drawn.values).reshape(points.shape)
    noise = drawn.values.tolist()
    for place, value in drawn.extremes.items():
        noise[place] = value
    return integers([int(point) + z for point, z in zip(flat, noise)], points.shape)


def largest(points: IntArray) -> int:
    """The largest absolute value; 0 for an empty array."""
    return max(abs(int(points.max())), abs(int(points.min()))) if points.size else 0


def to_floats(points: IntArray, grid: Fraction) -> FloatArray:
    """Return multiples of the grid as floats.

    Dividing by a whole number last keeps 0.1 steps at their shortest decimals.
    """
    found: FloatArray = points.astype(np.float64)
    found *= float(grid.numerator)
    found /= float(grid.denominator)
    return found


def read_step(step: Number) -> Fraction:
    """Return a measure's step, within the safe range of floats."""
    exact = positive(step, parameter="step")
    if not LARGEST_STEP >= exact >= 1 / LARGEST_STEP or exact.denominator > LARGEST_STEP:
        raise ParameterError(parameter="step", problem="must lie between 1e-100 and 1e100, with as short a denominator")
    return exact


def read_confidence(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ParameterError(parameter="confidence", problem="must lie between 0 and 1")
    return float(confidence)


LARGEST_STEP = Fraction(10) ** 100
ROUNDINGS = 2.0**-50
"""Relative slack for the four roundings between whole numbers and the end of an interval."""


def source_of(rng: BitSource | None) -> BitSource:
    """The generator given, or the secure one."""
    return Secure() if rng is None else rng


EXACT = 2.0**53
"""Whole numbers below it are exact floats, and their quotients are rounded correctly."""
POWERS = 10.0 ** np.arange(-40, 309)
FIRST = -40
MOST_DECIMALS = 22
"""Powers of ten up to this one are exact floats."""
DIGITS = 2
"""A unit of the last digit is at most this many powers of ten below the effect of one scale of noise."""
ExponentArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def lattice_ends(points: IntArray, half_width: int, grid: Fraction) -> tuple[FloatArray, FloatArray]:
    """Return both ends as floats nearest to their lattice points.

    Rounded outward if the points are too large to be exact floats.
    """
    return _lattice_end(points - half_width, grid, -ROUNDINGS), _lattice_end(points + half_width, grid, ROUNDINGS)


def _lattice_end(points: IntArray, grid: Fraction, outward: float) -> FloatArray:
    value = to_floats(points, grid)
    if largest(points) * grid.numerator < EXACT and grid.denominator < EXACT:
        return value
    exact = np.abs(points.astype(np.float64)) * float(grid.numerator) < EXACT
    return np.where(exact & (grid.denominator < EXACT), value, value + outward * np.abs(value))


def last_digits(worth: Callable[[FloatArray], FloatArray]) -> ExponentArray:
    """Return the power of ten of each decade's last digit.

    From the effect of one scale of noise at the decade's start. A decade's unit divides its first number, so
    rounding never reverses the order of two ends.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        wanted = np.floor(np.log10(worth(np.concatenate([[0.0], POWERS])))) - DIGITS
    exponents = np.nan_to_num(wanted, nan=FIRST, neginf=FIRST, posinf=len(POWERS)).astype(np.int64)
    decades = np.arange(FIRST, FIRST + len(POWERS))
    return np.asarray(np.minimum(exponents[1:], np.maximum(decades, exponents[0])))


def rounded(ends: FloatArray, exponents: ExponentArray, *, up: bool) -> FloatArray:
    """Round nonnegative ends at the last digit of their decade."""
    decade = np.maximum(np.searchsorted(POWERS, ends, side="right") - 1, 0)
    last = exponents[decade]
    above, below = 10.0 ** np.maximum(last, 0), 10.0 ** np.clip(-last, 0, MOST_DECIMALS)
    whole = (np.ceil if up else np.floor)(ends / above * below)
    fits = (last >= -MOST_DECIMALS) & (whole < EXACT)
    return np.where(fits, whole / below * above, ends)


def clean_difference(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return left - right without spurious float digits of decimals."""
    larger = np.maximum(np.maximum(np.abs(left), np.abs(right)), POWERS[0])
    decimals = 14 - np.floor(np.log10(larger)).clip(-200, 300)
    difference, unit = left - right, 10.0 ** np.clip(decimals, 0, MOST_DECIMALS)
    return np.where(np.isfinite(difference), np.rint(difference * unit) / unit, difference)


# The estimates that a mechanism returns.


BLOCK = 1 << 14
"""Few enough cells that every intermediate column stays in the processor's cache."""
Fields: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]
"""value, median_unbiased, standard_error, variance_unbiased, low, high."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """What is published about each total, computed from the noisy answer alone."""

    value: FloatArray
    """Mean-unbiased."""
    median_unbiased: FloatArray
    """As often above the exact total as below; for a signed sum, the difference of two such values, which may not be."""
    standard_error: FloatArray
    """The standard error of ``value`` due to noise; infinite if the noise has no variance."""
    variance_unbiased: FloatArray
    """An unbiased estimate of the variance, sometimes negative; use this one to add up over cells."""
    low: FloatArray
    high: FloatArray
    """A noise interval: it contains the exact total with at least the stated ``confidence``."""
    confidence: float


def by_blocks(points: IntArray, confidence: float, fields: Callable[[IntArray], Fields]) -> Estimates:
    """Estimates of every cell, in the shape of the noisy points."""
    value, median, error, spread, low, high = filled(points, 6, fields)
    return Estimates(
        value=value,
        median_unbiased=median,
        standard_error=error,
        variance_unbiased=spread,
        low=low,
        high=high,
        confidence=confidence,
    )


def filled(points: IntArray, count: int, fields: Callable[[IntArray], Sequence[FloatArray]]) -> list[FloatArray]:
    """Return ``count`` numbers per cell in the shape of the points."""
    flat = points.ravel()
    found = np.empty((count, flat.size))
    for start in range(0, flat.size, BLOCK):
        part = slice(start, start + BLOCK)
        # Noise so large that its exponential overflows a float is reported as infinite.
        with np.errstate(over="ignore"):
            for row, column in zip(found, fields(flat[part])):
                row[part] = column
    return [row.reshape(points.shape) for row in found]


def difference(positive: Estimates, negative: Estimates, *, confidence: float) -> Estimates:
    """Return positive part minus negative part.

    Each interval holds at a confidence that allows half of the misses.
    """
    return Estimates(
        value=positive.value - negative.value,
        median_unbiased=positive.median_unbiased - negative.median_unbiased,
        standard_error=np.hypot(positive.standard_error, negative.standard_error),
        variance_unbiased=positive.variance_unbiased + negative.variance_unbiased,
        low=clean_difference(positive.low, negative.high),
        high=clean_difference(positive.high, negative.low),
        confidence=confidence,
    )


# The scale on which Gaussian noise was drawn, and the way back from there to totals: needed for an interval of a
# ratio (T-CURVE).


NEARBY = 10.0
"""Sigmas around a noisy point within which its bend is bounded, but for a chance of ``OUTSIDE``."""
OUTSIDE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyCurve:
    """Noisy points of some cells on a transformed scale."""

    point: FloatArray
    sigma: FloatArray
    half: FloatArray
    """Half a step of the lattice of the noise."""
    zero: FloatArray
    """The point of the total 0."""
    bend: FloatArray
    """Not below sigma |f''|/f'**2 within ``NEARBY`` of the point; 0 where noise was added to the totals themselves."""
    back: Callable[[FloatArray], FloatArray]
    """From points to totals, increasing."""


# The class. What a mechanism does not define has the default stated here.


class Mechanism:
    """Parameters, policy, release and estimate of one way to add noise.

    It reads no table and spends no budget; all numbers are in the measure's units. Only ``policy`` is needed before noise is drawn.
    ``GaussianNoise``, ``FatTailedNoise`` and ``TransformedNoise`` define everything that releases and planning ask for.
    """

    __slots__ = ()

    parameters: ClassVar[tuple[Parameter, ...]] = ()
    words: ClassVar[str] = "noise from a custom mechanism"
    """The description of the noise on the policy page."""
    answers: ClassVar[Answers] = "totals"
    """What it is for: counts and sums, or quantiles."""
    variance_varies: ClassVar[bool] = False
    """Whether fits weight an answer by the variance at its fitted total rather than by the published variance."""
    logarithmic: ClassVar[bool | None] = None
    """Whether total plus offset is lognormal under Gaussian noise; None where noise is not on a transformed scale."""

    at: Any = None
    """A size or threshold, which may differ by group or measure."""
    to: Fraction | None = None
    """The bound to which contributions are clamped before they are summed."""
    signed: bool = False
    """Whether ``release`` takes two rows of totals: the sum of the values above 0, and of those below 0 without their sign."""

    @property
    def loss_of_sum(self) -> bool:
        """Whether the policy at the sum of several contributions bounds their joint loss in a cell (T-CELLS).

        Of a ``signed`` sum: at the sum of its positive and of its negative part.
        """
        return False

    @property
    def noise_sigma(self) -> Fraction | None:
        """The sigma of Gaussian noise on the data's own lattice, if that is what is drawn."""
        return None

    @property
    def noise_scale(self) -> Fraction | None:
        """The scale of noise drawn on a transformed scale, which is published with the noisy points."""
        return None

    @property
    def width(self) -> Fraction:
        """The scale of fat-tailed noise, in the measure's units."""
        self._lacks("width", "planning")

    @property
    def coarseness(self) -> Fraction | None:
        """The lattice requested for fat-tailed noise; None for a fine one."""
        return None

    @property
    def is_sized(self) -> bool:
        """Whether its noise follows the public sizes of cells (T-SIZE)."""
        return self.offers("at_size")

    @property
    def draws_laplace(self) -> bool:
        """Whether Laplace noise is added to totals."""
        return False

    group_numbers: ClassVar[By | None] = None
    """For a mechanism for each public group: which of ``inside()`` is that of a group, counted from 1."""

    def offers(self, name: str) -> bool:
        """Return whether a member is its own, not the default."""
        return getattr(type(self), name) is not getattr(Mechanism, name)

    def _lacks(self, name: str, user: str = "a release") -> NoReturn:
        raise ParameterError(
            parameter="mechanism",
            problem=f"{type(self).__name__} has no method '{name}', which {user} needs",
            advice="Derive it from GaussianNoise, FatTailedNoise or TransformedNoise.",
        )

    # What a release asks.

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """Return the public loss of a record.

        The tight one, or with ``tight=False`` the one printed in the papers.

        Args:
            measure: The measure that is summed.
            tight: Whether to return the tight policy; otherwise the one printed in the papers.

        Returns:
            The policy.
        """
        self._lacks("policy", "a plan")

    def policy_of_count(self) -> Policy:
        """The loss if every record contributes 1: by default the policy at a contribution of 1."""
        unit = Measure("count")
        policy = self.policy(unit)
        rho = Fraction(policy.loss({unit.name: 1}))
        if rho == 0 or policy.pure_problem() is not None:
            return constant(rho, near_gaussian=policy.near_gaussian)
        return pure_constant(policy.pure().exact_loss({unit.name: 1}), rho=rho)

    def release(self, totals: Any, *, step: Number = 1, rng: BitSource | None = None) -> Noisy:
        """Add noise to exact totals, given as whole numbers of lattice steps.

        Args:
            totals: The exact totals.
            step: The step of the measure's lattice, in its own units.
            rng: A source of random bits; the secure source unless given.

        Returns:
            The noisy totals.
        """
        self._lacks("release")

    def estimate(self, noisy: Noisy, *, confidence: float = 0.95) -> Estimates:
        """Unbiased values, standard errors and noise intervals, from the noisy answers alone.

        Args:
            noisy: What ``release`` returned.
            confidence: The confidence of the intervals.

        Returns:
            The estimates of every cell.
        """
        self._lacks("estimate")

    def loss_at_shift(self, shift: Number, *, step: Number = 1) -> float:
        """The largest loss when a cell's total changes by ``shift``, rounded up.

        Args:
            shift: The change, in the measure's units.
            step: The step of the measure's lattice, in its own units.

        Returns:
            The loss.
        """
        self._lacks("loss_at_shift")

    def realized_loss(self, total_without: Number, contribution: Number, *, step: Number = 1) -> float:
        """Return the loss of a contribution to a known total.

        Rounded up. CONFIDENTIAL, always.

        Args:
            total_without: The exact total of the cell without the record.
            contribution: What the record contributes.
            step: The step of the measure's lattice, in its own units.

        Returns:
            The loss.
        """
        self._lacks("realized_loss")

    def realized_sql(self, measure: str, total: "exp.Expr", *, step: Fraction, dialect: str) -> "exp.Expr":
        """The SQL of the loss a record really incurred. Without it the loss of the policy is reported."""
        self._lacks("realized_sql")

    def variance(self, total: Any, *, step: Number = 1) -> FloatArray:
        """The variance of ``value`` at an exact total.

        Args:
            total: An exact total, in the measure's units.
            step: The step of the measure's lattice, in its own units.

        Returns:
            The variance, in squared units of the measure.
        """
        self._lacks("variance")

    def variance_of(self, totals: Any, *, step: Number = 1) -> FloatArray:
        """The variance at totals with nothing in the negative part."""
        given = np.asarray(totals, np.float64)
        return self.variance(np.stack([given, np.zeros_like(given)]) if self.signed else given, step=step)

    def bias(self, total: Any, *, step: Number = 1) -> FloatArray:
        """The bias of ``value`` at an exact total.

        Args:
            total: An exact total, in the measure's units.
            step: The step of the measure's lattice, in its own units.

        Returns:
            The bias, in the measure's units.
        """
        self._lacks("bias")

    def noise_steps(self, step: Number) -> Fraction | None:
        """The sigma of discrete Gaussian noise in steps of its lattice, if that is what is drawn (T-LOSS-LAW).

        A loss P is then a shift of at most sqrt(2 P) sigma.
        """
        return None

    def drawn_law(self, step: Number) -> tuple[LatticeLaw, Fraction] | None:
        """The law that is drawn in every cell, in lattice steps, and its lattice; None where cells differ."""
        return None

    def noisy_curve(self, noisy: Noisy) -> NoisyCurve | None:
        """The scale of the Gaussian noise and the way back, if known."""
        return None

    # The same mechanism for other cells.

    def at_share(self, share: Fraction) -> "Mechanism":
        """The mechanism for a level with a share of the budget; its own policy is charged, including any rounding."""
        return self if share == 1 else self.shared(share)

    def shared(self, share: Fraction) -> "Mechanism":
        """The same mechanism at a share of its loss, for levels."""
        raise PlanError(
            problems=(f"{type(self).__name__} cannot be shared among levels; give each level its own query",)
        )

    def resized(self, size: Fraction) -> "Mechanism":
        """The mechanism whose parameters are those of this one, which are then shares, times a size."""
        raise PlanError(problems=(f"{type(self).__name__} cannot be in shares of a size",))

    def at_size(self, size: Fraction) -> "Mechanism":
        """The mechanism of the cells of a band, by its least size."""
        return self

    def edges(self, largest: float) -> tuple[Fraction, ...]:
        """The least size of each band, if it is sized."""
        return ()

    def inside(self) -> tuple["Mechanism", ...]:
        """The mechanisms that draw: inside a sized one, or itself."""
        return (self,)

    def further(self) -> "Mechanism":
        """The mechanism of the further draws of a refined answer (T-STAGES)."""
        self._lacks("further", "a refinement")

    def continuing(self, earlier: FloatArray) -> "Mechanism":
        """The mechanism that draws only the further answers and averages them with published ones (T-STAGES)."""
        self._lacks("continuing", "a refinement")

    def following(self, earlier: FloatArray | None, totals: Any = None) -> "Mechanism":
        """The mechanism that follows published answers of other totals; without any, that of new cells (T-SERIES)."""
        self._lacks("following", "carried noise")

    def threshold(self, measure: Measure | str) -> Fraction | By | None:
        """The splitting threshold of a measure, if any, for ``resolved``."""
        return None

    def resolved(self, at: Any) -> "Mechanism":
        """The same with one plain threshold, for cells whose group is known."""
        self._lacks("resolved")

    # What planning asks.

    def recalibrated(self, **goals: Any) -> Self:
        """The same mechanism with its noise recalibrated to a goal or to a noise parameter of its constructor."""
        kept = {each.name: getattr(self, each.stored) for each in self.parameters if each.role == "shape"}
        return type(self)(**{name: value for name, value in kept.items() if value is not None}, **goals)

    def error_quantiles(
        self, totals: FloatArray, *, confidence: float = 0.95, step: Number = 1, kept: FloatArray | None = None
    ) -> FloatArray:
        """The bound on |value - total| that holds with probability ``confidence``, for each exact total.

        ``kept`` are the totals of clamped contributions, or both parts of a signed sum.
        """
        self._lacks("error_quantiles", "planning")

    def smooth_error_quantiles(
        self, totals: FloatArray, *, confidence: float, step: Number = 1, kept: FloatArray | None = None
    ) -> FloatArray:
        """The same for a search that follows slopes."""
        return self.error_quantiles(totals, confidence=confidence, step=step, kept=kept)

    def mean_errors(self, totals: FloatArray, *, step: Number = 1) -> FloatArray:
        """E |value - total|."""
        self._lacks("mean_errors", "planning")

    def meets(
        self,
        totals: FloatArray,
        reach: FloatArray,
        *,
        confidence: float,
        step: Number = 1,
        kept: FloatArray | None = None,
    ) -> BoolArray:
        """Whether |value - total| <= ``reach`` with probability ``confidence``, cell by cell."""
        self._lacks("meets", "planning")

    def most_noise(
        self, total: float, reach: float, *, confidence: float, step: Number = 1, kept: float | None = None
    ) -> "Mechanism | None":
        """The same with the most noise for which |value - total| <= ``reach`` with probability ``confidence``."""
        self._lacks("most_noise", "planning")

    def with_sigma(self, sigma: Fraction) -> "Mechanism":
        """The same at a very slightly smaller sigma, with six digits in the parameter that expresses it."""
        self._lacks("with_sigma", "planning")

    def with_noise_scale(self, scale: Fraction) -> "Mechanism":
        """The same at another scale of noise on a transformed scale."""
        self._lacks("with_noise_scale", "planning")

    def with_amount(self, amount: Fraction) -> "Mechanism":
        """The same with Gaussian noise of another sigma, on the scale it is drawn on; rounded down."""
        return self.with_sigma(amount) if self.noise_scale is None else self.with_noise_scale(amount)

    def with_scale_times(self, factor: Fraction) -> "Mechanism":
        """The same fat-tailed law with its scale multiplied."""
        self._lacks("with_scale_times", "planning")

    def with_offset(self, offset: Fraction) -> "Mechanism":
        """The same noise at another offset, where planning may choose one."""
        self._lacks("with_offset", "planning")

    @classmethod
    def planning_families(cls, *, offset: Number) -> Mapping[str, "Mechanism"]:
        """Mechanisms of this class, by name, that planning chooses from, their noise still to be set.

        Args:
            offset: The offset of a transform, in the measure's units.
        """
        return {}

    @classmethod
    def audit_examples(cls) -> Mapping[str, "Mechanism"]:
        """Mechanisms of this class, by name, that ``recordwise audit`` attacks."""
        return {}

    # How it describes itself.

    def given_parameters(self) -> dict[str, Any]:
        """The parameters that rebuild the mechanism, by the names of its constructor; those that are not set are left out."""
        names = {each.stored: each.name for each in self.parameters}
        stored: tuple[Any, ...] = fields(self) if is_dataclass(self) else ()
        given = {names.get(each.name, each.name): getattr(self, each.name) for each in stored}
        return {name: value for name, value in given.items() if value is not None and value is not False}

    def text(self) -> str:
        """The mechanism as Python code, with numbers shortened to six digits."""
        given = ", ".join(f"{name}={_parameter_text(value)}" for name, value in self.given_parameters().items())
        return f"{type(self).__name__}({given})"

    def __repr__(self) -> str:
        return self.text()
