"""What an attacker learns about a value of a record (T-INFER).

The attacker knows everything else: every other record, and the record but for one measure. Whoever names a range that holds the
value 95 % of the time, whatever it is, tests every other value at 5 %: what is left is the power of the best test between two
values, from the laws of all published numbers taken together.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import product
from statistics import NormalDist
from typing import Any, TypeVar

import numpy as np
from flint import arb

from recordwise.errors import ParameterError, UnknownFormError, value_text
from recordwise.exact.arithmetic import FloatArray, NumpyArithmetic
from recordwise.exact.functions import Function, x
from recordwise.exact.functions import from_json as function_from_json
from recordwise.exact.numbers import Number, ball, constant_ball, fraction_text, rational, read_fraction
from recordwise.exact.text import digits_text
from recordwise.mechanisms.base import Mechanism
from recordwise.noise.laws import ConcaveLaw, DiscreteLaplace, LatticeLaw, discrete_gaussian
from recordwise.policy.atoms import (
    Atom,
    CertifiedSum,
    ClampedSquare,
    GaussianTransform,
    LaplaceSum,
    LaplaceTransform,
    Square,
)
from recordwise.policy.columns import Measure
from recordwise.policy.conditions import EVERY, Condition, holds
from recordwise.policy.evaluate.evaluator import BALLS, Evaluator
from recordwise.policy.evaluate.numpy import signed_record
from recordwise.policy.json import Bands, condition_from_json
from recordwise.policy.loss_law import (
    FINE,
    LARGEST_LOSS,
    RELATIVE,
    RIPPLE,
    PrivacyLoss,
    best_power,
    borrowed_loss,
    convolved,
    on_grid,
    shift_losses,
)
from recordwise.policy.meaning import check_share
from recordwise.policy.policy import Policy, Terms

T = TypeVar("T")
NUMPY = NumpyArithmetic()
CONFIDENCE = 0.95
"""Where pages and ``recordwise loss`` state what is learned about a value."""
HALF = 0.5
"""The power up to which a test of another value leaves it in the window."""
MOST_STEPS = 2**53
OURS = {f"recordwise.mechanisms.{name}" for name in ("gaussian", "fat_tailed", "transforms")}
"""Where mechanisms are defined whose policy states the law that is drawn; a class derived from one elsewhere may draw another."""
NEAR, FAR = 2048, 6000
"""Lattice points near a cusp that are taken one by one, and blocks in geometric progression beyond them."""
TAIL = Fraction(1, 10**9)
"""The probability of noise beyond the last block, on either side."""
WIDTH = 0.005
"""The grid on which losses of several numbers are added."""
MOST_JOINT = 64
"""Combinations of numbers whose joint reach is listed for a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueNumber:
    """One published number that depends on a measure of a record."""

    part: int
    """The statistic of a table that it belongs to; a record changes one number of it at most."""
    measure: Measure
    lattice: Fraction
    """Of its noise, on the scale that noise is added on."""
    sigma: Fraction | None = None
    """Of Gaussian noise, on that scale."""
    exponent: Function | None = None
    """Of any other noise: its density is exp(-exponent(|z|))."""
    condition: Condition = EVERY
    """The records that change it."""
    transform: Function | None = None
    """The scale that noise is added on, unless the measure's own."""
    clamp: Fraction | None = None
    """Where values are cut before they are added."""

    @property
    def scale(self) -> tuple[Any, ...]:
        """What two numbers must share for one gap of both."""
        return self.measure.name, self.transform, self.clamp

    def law(self) -> LatticeLaw:
        """The law that is drawn, in lattice steps."""
        if self.sigma is not None:
            return discrete_gaussian(self.sigma / self.lattice)
        from recordwise.mechanisms.fat_tailed import laplace_scale

        assert self.exponent is not None
        laplace = laplace_scale(self.exponent)
        if laplace is not None:
            return DiscreteLaplace(laplace / self.lattice)
        return ConcaveLaw(self.exponent.after(x * self.lattice))

    def gap(self, evaluator: Evaluator[T], one: T, other: T) -> T:
        """Return how far two values are apart where noise is added.

        The most over all other records: a concave function rises most where nothing else is in the cell, and rounding to the grid
        adds a step (T-GRID).
        """
        if self.clamp is not None:
            most = evaluator.constant(constant_ball(self.clamp))
            return gap(evaluator, evaluator.minimum(one, most), evaluator.minimum(other, most))
        if self.transform is None:
            return gap(evaluator, one, other)
        rise = gap(evaluator, self.transform.increase(evaluator, one), self.transform.increase(evaluator, other))
        moved = evaluator.add(rise, evaluator.constant(constant_ball(self.lattice)))
        return evaluator.if_positive(gap(evaluator, one, other), moved)

    def reach(self, confidence: float) -> float:
        """Return the largest gap that a test misses half the time.

        Half a lattice step more, so that no rounding of a gap decides.
        """
        return (_hidden_steps(self, confidence) + 0.5) * float(self.lattice)

    def weight(self) -> float:
        """Return 1/variance of continuous noise revealing no less, or 0."""
        if self.sigma is None or self.sigma <= self.lattice:
            return 0.0
        exact = borrowed_loss(float(self.sigma / self.lattice)) / float(self.sigma) ** 2
        # Eleven digits, rounded up, so that the page reads the same number.
        return float(digits_text(exact * (1 + 1e-10), 11))

    def is_fine(self) -> bool:
        return self.sigma is not None and self.sigma >= FINE * self.lattice

    def to_json(self) -> dict[str, Any]:
        form: dict[str, Any] = {"part": self.part, "measure": self.measure.to_json()}
        form["grid"] = fraction_text(self.lattice)
        if self.condition != EVERY:
            form["where"] = self.condition.to_json()
        for name in ("sigma", "clamp"):
            if (number := getattr(self, name)) is not None:
                form[name] = fraction_text(number)
        for name in ("exponent", "transform"):
            if (function := getattr(self, name)) is not None:
                form[name] = function.to_json()
        return form

    @classmethod
    def from_json(cls, form: Any, bands: Bands | None) -> "ValueNumber":
        numbers = {name: read_fraction(form[name]) for name in ("sigma", "clamp") if name in form}
        functions = {name: function_from_json(form[name]) for name in ("exponent", "transform") if name in form}
        found = cls(
            part=int(form["part"]),
            measure=Measure.from_json(form["measure"]),
            lattice=read_fraction(form["grid"]),
            condition=condition_from_json(form["where"], bands) if "where" in form else EVERY,
            sigma=numbers.get("sigma"),
            clamp=numbers.get("clamp"),
            exponent=functions.get("exponent"),
            transform=functions.get("transform"),
        )
        if (found.sigma is None) == (found.exponent is None) or found.lattice <= 0:
            raise ValueError("no law")
        return found


def gap(evaluator: Evaluator[T], one: T, other: T) -> T:
    """|one - other|."""
    minus = evaluator.constant(arb(-1))
    return evaluator.maximum(
        evaluator.add(one, evaluator.multiply(minus, other)), evaluator.add(other, evaluator.multiply(minus, one))
    )


def value_numbers(
    part: int, policy: Policy, mechanisms: Sequence[Mechanism], measure: Measure
) -> tuple[list[ValueNumber], tuple[str, ...]] | None:
    """Return a sum's numbers, and measures without a stated law.

    None if a mechanism is not one of ours, whose law is known.

    Args:
        part: The number of the statistic and table.
        policy: What it costs, term by term.
        mechanisms: Those of its cells.
        measure: The one that is summed.
    """
    if not all(type(each).__module__ in OURS for each in mechanisms):
        return None
    lattices: dict[Atom, Fraction] = {}
    for mechanism in mechanisms:
        fat = [atom for _, atom in mechanism.policy(measure).rho if isinstance(atom, CertifiedSum)]
        drawn = mechanism.drawn_law(measure.step) if fat else None
        lattices |= {} if drawn is None else dict.fromkeys(fat, drawn[1])
    found: list[ValueNumber] = []
    unstated: list[str] = []
    for (condition, atom), coefficient in policy.rho.items():
        law = _law_of(atom, coefficient, lattices)
        if law is None:
            unstated += [each.name for own in atom.measures() for each in own.inputs()]
        else:
            (own,) = atom.measures()
            found.append(ValueNumber(part=part, measure=own, condition=condition, **law))
    return found, tuple(unstated)


def _law_of(atom: Atom, coefficient: Fraction, lattices: Mapping[Atom, Fraction]) -> dict[str, Any] | None:
    """Return a term's lattice, noise and scale, or None."""
    signed = any(measure.signed for measure in atom.measures())
    match atom:
        case Square():
            return {"lattice": atom.measure.step, "sigma": _sigma(coefficient)}
        case ClampedSquare() if not signed:
            return {"lattice": atom.measure.step, "sigma": _sigma(coefficient), "clamp": atom.to}
        case GaussianTransform() if not signed:
            return {"lattice": atom.grid, "sigma": _sigma(coefficient), "transform": atom.function}
        case LaplaceTransform() if not signed and coefficient == 1:
            return {"lattice": atom.grid, "exponent": x / atom.scale, "transform": atom.function}
        case LaplaceSum() if coefficient == 1:
            return {"lattice": atom.grid, "exponent": x / atom.scale}
        case CertifiedSum() if coefficient == 1 and atom in lattices:
            return {"lattice": lattices[atom], "exponent": atom.function}
        case _:
            return None


def _sigma(coefficient: Fraction) -> Fraction:
    """Return the sigma behind a loss, rounded down if irrational."""
    variance = 1 / (2 * coefficient)
    up, down = math.isqrt(variance.numerator), math.isqrt(variance.denominator)
    if up**2 == variance.numerator and down**2 == variance.denominator:
        return Fraction(up, down)
    shift = 128
    return Fraction(math.isqrt(variance.numerator * variance.denominator << 2 * shift), variance.denominator << shift)


@lru_cache(maxsize=256)
def _hidden_steps(number: ValueNumber, confidence: float) -> int:
    """Return the largest shift that the best test misses half the time.

    Log-concave noise is tested by its tail: a shift by n has the power P(Z >= q - n) + share P(Z = q - 1 - n), where the test
    rejects from q on and, with that share, at q - 1. That is one half at most up to n = q - 1 or q - 2 (T-INFER).
    """
    law, level = number.law(), Fraction(str(confidence))
    last = law.quantile(level)
    if isinstance(law, ConcaveLaw):
        return furthest(lambda steps: _fat_power(number, steps, float(1 - level)) <= HALF, 2 * last + 1)
    middle = (float(law.sf_lower(last)) + float(law.sf_lower(last + 1))) / 2
    return last if middle >= 1 - level else max(last - 1, 0)


def _fat_power(number: ValueNumber, steps: int, false_alarm: float) -> float:
    return best_power(*_fat_losses(number, steps), false_alarm) * (1 + RELATIVE)


# Several numbers together: their losses add up (T-LOSS-LAW).


def joint_loss(moved: Sequence[tuple[ValueNumber, float]]) -> PrivacyLoss:
    """Return the pair of laws behind numbers and how far each moves.

    Args:
        moved: Numbers with the gap of each, on its scale.
    """
    laws, smooth, ripples, rho = [], 0.0, 0, 0.0
    for number, gap in moved:
        steps = math.ceil(gap / float(number.lattice) * (1 - 1e-12))
        if steps == 0:
            continue
        if _least_rho(number, steps) > LARGEST_LOSS:
            # Nothing is hidden, and the laws would not fit into memory.
            return PrivacyLoss(losses=np.zeros(1), masses=np.ones(1), mu=0.0, factor=1.0, slack=1.0, rho=math.inf)
        if number.sigma is not None:
            sigma = float(number.sigma / number.lattice)
            rho += steps**2 / (2 * sigma**2)
            if number.is_fine():
                smooth, ripples = smooth + (steps / sigma) ** 2 * borrowed_loss(sigma), ripples + 1
            else:
                laws.append(shift_losses(sigma, steps))
        else:
            losses, masses = _fat_losses(number, steps)
            laws.append((losses, masses))
            rho += float(losses.max()) * math.tanh(float(losses.max()) / 2)
    found = convolved([(*on_grid(*law, WIDTH), 1) for law in laws], WIDTH) if laws else (np.zeros(1), np.ones(1), 0.0)
    return PrivacyLoss(
        losses=found[0],
        masses=found[1],
        mu=math.sqrt(smooth) * (1 + RELATIVE),
        factor=(1 + RIPPLE) ** ripples,
        slack=found[2],
        rho=rho * (1 + RELATIVE),
    )


def _least_rho(number: ValueNumber, steps: int) -> float:
    """Return a move's zCDP loss under Gaussian noise, and else what its largest loss would give."""
    if number.sigma is not None:
        return float((steps * number.lattice / number.sigma) ** 2 / 2)
    assert number.exponent is not None
    return float(number.exponent.increase(NUMPY, np.array([float(steps * number.lattice)]))[0])


@lru_cache(maxsize=64)
def _fat_blocks(number: ValueNumber) -> tuple[float, int, Function]:
    law = number.law()
    return float(law.pmf(0)), law.quantile(1 - TAIL), law.exponent


def _fat_losses(number: ValueNumber, steps: int) -> tuple[FloatArray, FloatArray]:
    """Return the loss of a shift block by block, and the mass of each, both rounded up.

    With a concave exponent the mass is convex on either side of 0, so that a block holds at most its length times the mean of its
    ends; the loss is monotone between the two cusps, so that it is largest at an end.
    """
    center, reach, exponent = _fat_blocks(number)
    far = np.geomspace(NEAR, max(reach, 2 * NEAR), FAR)
    ends = np.unique(np.concatenate([np.arange(NEAR), np.floor(far)]))
    cuts = np.unique(np.concatenate([-ends, ends, steps - ends, steps + ends]))
    first, last = cuts[:-1], cuts[1:] - 1

    def height(points: FloatArray) -> FloatArray:
        return np.asarray(exponent.increase(NUMPY, np.abs(points)))

    def loss(points: FloatArray) -> FloatArray:
        return height(points - steps) - height(points)

    masses = center * (last - first + 1) * (np.exp(-height(first)) + np.exp(-height(last))) / 2
    losses = np.maximum(loss(first), loss(last))
    below = float(loss(cuts[:1])[0])
    return np.concatenate([losses, [below, 0.0]]), np.concatenate([masses, [float(TAIL), float(TAIL)]])


@lru_cache(maxsize=256)
def joint_reach(numbers: tuple[ValueNumber, ...], confidence: float) -> float:
    """Return the largest common gap that a test misses half the time."""
    unit = float(min(each.lattice for each in numbers) if numbers[0].transform else numbers[0].measure.step)
    extra = 2 * unit if numbers[0].transform else 0.0
    high = math.floor(min(each.reach(confidence) for each in numbers) / unit) + 1
    low = 0
    while high - low > max(1, 1e-6 * high):
        middle = (low + high) // 2
        hidden = is_missed([(each, middle * unit + extra) for each in numbers], confidence)
        low, high = (middle, high) if hidden else (low, middle)
    return (low + 0.5) * unit


def is_missed(moved: Sequence[tuple[ValueNumber, float]], confidence: float) -> bool:
    """Return whether the best test of a move misses it half the time or more."""
    return joint_loss(moved).power(1 - confidence) <= HALF


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueWindow:
    """The values that no attacker leaves out more often than not.

    The attacker names a range that is right with probability ``confidence``, whatever the value is.
    """

    measure: str
    value: Fraction
    low: Fraction
    high: Fraction | None
    """None if nothing limits it."""
    step: Fraction
    least: Fraction
    """The smallest value that was possible before."""
    confidence: float

    def is_open(self) -> bool:
        """Whether nothing at all is learned, within the public bounds."""
        return self.high is None and self.low == self.least

    @property
    def reach(self) -> Fraction | None:
        """The attacker's ±, or None where the window is off center."""
        if self.high is None:
            return None
        below, above = self.value - self.low, self.high - self.value
        return max(below, above) if abs(below - above) <= self.step else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaches:
    """How far numbers hide a value at one confidence, alone and together."""

    single: tuple[float, ...]
    joint: Mapping[tuple[int, ...], float]
    """By the numbers that a record changes, where one gap is the gap of all of them."""
    squares: float
    """What weighted squares of gaps may add up to under Gaussian noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuePolicy:
    """All published numbers that depend on the measures of a record."""

    numbers: tuple[ValueNumber, ...]
    bounds: Mapping[str, Fraction] = field(default_factory=dict)
    """Of the measures, which are public; a measure without one has no stated window."""

    def of(self, name: str) -> tuple[ValueNumber, ...]:
        """The numbers that depend on a measure."""
        return tuple(each for each in self.numbers if any(own.name == name for own in each.measure.inputs()))

    def loss(self, record: Mapping[str, Any], other: Mapping[str, Any]) -> PrivacyLoss:
        """Return the pair of laws of two records that differ in measures.

        The worst over all other records, jointly over all tables and statistics. ``power`` of it is that of the best test between
        the two values, and ``delta_at(0)`` their distance.

        Args:
            record: One record.
            other: The same record with other values.

        Raises:
            ParameterError: If a measure that differs has no stated law.
        """
        for name in record:
            if name in other and record[name] != other[name] and name not in self.bounds:
                raise ParameterError(
                    parameter=name, problem="has no law of its noise here", advice="Ask for the loss instead."
                )
        return joint_loss([(each, _number_gap(each, record, other)) for each in self.numbers if _changes(each, record)])

    def window(
        self,
        record: Mapping[str, Any],
        name: str,
        *,
        confidence: float = CONFIDENCE,
        prior: tuple[Number, Number] | None = None,
    ) -> ValueWindow:
        """Return how closely an attacker knowing all else knows a value (T-INFER).

        Args:
            record: The record.
            name: The measure that the attacker does not know.
            confidence: The probability of being right, whatever the value is; above one half.
            prior: What the attacker knows before: the smallest and the largest value. By default the public bounds.

        Returns:
            The values of which each is in what is named at least half the time, whoever names it; one attacker leaves out
            every other value more often than not.

        Raises:
            ParameterError: If the measure has no stated law, or the prior range does not hold the value.

        Example:
            >>> number = ValueNumber(part=0, measure=Measure("emp"), lattice=Fraction(1), sigma=Fraction(16))
            >>> policy = ValuePolicy(numbers=(number,), bounds={"emp": Fraction(10**6)})
            >>> int(policy.window({"emp": 5000}, "emp").reach)
            26
            >>> near = policy.window({"emp": 10}, "emp")
            >>> int(near.low), int(near.high)
            (0, 36)
        """
        if check_share(confidence, "confidence") <= HALF:
            raise ParameterError(parameter="confidence", problem="must be above 0.5")
        if not isinstance(name, str) or name not in self.bounds:
            raise ParameterError(parameter="name", problem=f"{value_text(name)} has no law of its noise here")
        if np.ndim(record.get(name, 0)):
            raise ParameterError(parameter="record", problem="must be one record, with a number for each measure")
        for number in self.of(name):
            signed_record({(EVERY, Square(number.measure)): Fraction(1)}, record)
        step, least, most = self._range(name, prior)
        own = int(Fraction(str(record[name])) / step)
        if not least <= own <= most:
            whose = "public bound" if prior is None else "prior range"
            raise ParameterError(parameter="record", problem=f"has a value of '{name}' outside its {whose}")
        hidden = self._hidden(record, name, step, own, confidence)
        high = own + furthest(lambda away: hidden(own + away), most - own)
        return ValueWindow(
            measure=name,
            value=step * own,
            low=step * (own - furthest(lambda away: hidden(own - away), own - least)),
            high=None if prior is None and high >= most else step * high,
            step=step,
            least=step * least,
            confidence=confidence,
        )

    def _range(self, name: str, prior: tuple[Number, Number] | None) -> tuple[Fraction, int, int]:
        """Return a measure's step, and the smallest and largest value in steps."""
        inputs = {own.name: own for each in self.numbers for own in each.measure.inputs()}
        step = inputs[name].step
        most = min(int(self.bounds[name] / step), MOST_STEPS)
        least = -most if inputs[name].signed else 0
        if prior is None:
            return step, least, most
        if not isinstance(prior, tuple | list) or len(prior) != 2:
            raise ParameterError(parameter="prior", problem="must be the smallest and the largest value")
        low, high = (rational(end, parameter="prior") for end in prior)
        return step, max(least, math.ceil(low / step)), min(most, math.floor(high / step))

    def _hidden(
        self, record: Mapping[str, Any], name: str, step: Fraction, own: int, confidence: float
    ) -> Callable[[int], bool]:
        """Return whether tests miss a change of a value, in steps."""
        numbers = self.of(name)
        active = tuple(at for at, each in enumerate(numbers) if _changes(each, record))
        reaches = self.reaches(name, confidence)
        weights = [numbers[at].weight() for at in active]

        def hidden(tested: int) -> bool:
            one, other = ({**record, name: step * end} for end in (own, tested))
            gaps = [_number_gap(numbers[at], one, other) for at in active]
            told = is_hidden(active, gaps, weights, reaches)
            if told is not None or any(gap > reaches.single[at] for at, gap in zip(active, gaps)):
                return bool(told)
            return is_missed([(numbers[at], gap) for at, gap in zip(active, gaps)], confidence)

        return hidden

    def reaches(self, name: str, confidence: float = CONFIDENCE) -> Reaches:
        """Return how far a measure is hidden, number by number and jointly."""
        return _reaches(self.of(name), confidence)

    def to_json(self) -> dict[str, Any]:
        """The saved form."""
        bounds = {name: fraction_text(bound) for name, bound in self.bounds.items()}
        return {"numbers": [each.to_json() for each in self.numbers], "bounds": bounds}

    @classmethod
    def from_json(cls, form: Any, bands: Bands | None = None) -> "ValuePolicy":
        """Read back what ``to_json`` wrote; an unknown form is refused."""
        try:
            numbers = tuple(ValueNumber.from_json(each, bands) for each in form["numbers"])
            bounds = {str(name): read_fraction(bound) for name, bound in form["bounds"].items()}
        except (LookupError, TypeError, ValueError, AttributeError):
            raise UnknownFormError(what="laws of values", found=type(form).__name__) from None
        return cls(numbers=numbers, bounds=bounds)


def is_hidden(active: Sequence[int], gaps: Sequence[float], weights: Sequence[float], reaches: Reaches) -> bool | None:
    """Return whether gaps hide two values from each other; None if only the laws can tell.

    The page decides by the same rule, in the same order.
    """
    if not active:
        return True
    if len(active) == 1:
        return gaps[0] <= reaches.single[active[0]]
    if tuple(active) in reaches.joint:
        return gaps[0] <= reaches.joint[tuple(active)]
    if all(weights):
        return sum(weight * gap**2 for weight, gap in zip(weights, gaps)) <= reaches.squares
    return None


@lru_cache(maxsize=256)
def _reaches(numbers: tuple[ValueNumber, ...], confidence: float) -> Reaches:
    single = tuple(each.reach(confidence) for each in numbers)
    joint = {active: joint_reach(tuple(numbers[at] for at in active), confidence) for active in _combinations(numbers)}
    # Each number's ripples may raise the power.
    normal, share = NormalDist(), HALF / ((1 + RIPPLE) ** len(numbers) * (1 + RELATIVE))
    apart = normal.inv_cdf(share) + normal.inv_cdf(confidence)
    return Reaches(single=single, joint=joint, squares=max(apart, 0.0) ** 2)


def _combinations(numbers: tuple[ValueNumber, ...]) -> list[tuple[int, ...]]:
    """Return which numbers a record may change together, where their laws matter.

    None are listed if there are too many: then Gaussian noise is taken as continuous.
    """
    choices: dict[int, list[int | None]] = {}
    for at, each in enumerate(numbers):
        choices.setdefault(each.part, []).append(at)
    for own in choices.values():
        if len(own) > 1 or numbers[own[0] or 0].condition != EVERY:
            own.append(None)
    if math.prod(len(own) for own in choices.values()) > MOST_JOINT:
        return []
    found = []
    for chosen in product(*choices.values()):
        active = tuple(at for at in chosen if at is not None)
        alike = len({numbers[at].scale for at in active}) == 1
        if len(active) > 1 and alike and not all(numbers[at].is_fine() for at in active):
            found.append(active)
    return found


def _changes(number: ValueNumber, record: Mapping[str, Any]) -> bool:
    """Return whether a record changes a number."""
    if number.condition == EVERY:
        return True
    groups, _ = signed_record({(number.condition, Square(number.measure)): Fraction(1)}, record)
    return holds(number.condition, groups)


def _number_gap(number: ValueNumber, record: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    terms: Terms = {(EVERY, Square(number.measure)): Fraction(1)}
    (_, one), (_, two) = signed_record(terms, record), signed_record(terms, other)
    own = number.measure.name
    return float(number.gap(BALLS, ball(one[own]), ball(two[own])).mid())


def furthest(holds_at: Callable[[int], bool], most: int) -> int:
    """Return the largest number up to ``most`` before a condition fails."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2 if low else min(high - 1, max(1, high // 2**16))
        if holds_at(middle):
            low = middle
        else:
            high = middle
    return low
