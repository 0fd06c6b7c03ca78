"""The building blocks of policies: public, nondecreasing functions of a record's measures.

A policy is a sum of coefficient times atom (``recordwise.policy.policy``). An atom writes its formula once, against
``Evaluator``; numpy, Arb, SQL and JavaScript all run that same formula.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import isfinite
from typing import Any, ClassVar, TypeVar

from flint import arb

from recordwise.errors import ParameterError, value_text
from recordwise.exact.functions import CONSTANT_BITS, Function, Sum, Variable, x
from recordwise.exact.numbers import (
    LARGEST,
    ball,
    constant_ball,
    float_upper,
    fraction_text,
    moderate,
    rational,
    working_precision,
)
from recordwise.policy.columns import MOST_STEPS, Measure
from recordwise.policy.evaluate.evaluator import BALLS, Evaluator, Steps, line_value

T = TypeVar("T")
Thresholds = tuple[tuple[Measure, Fraction], ...]

CERTIFIED = Fraction(1, 2**42)
"""Relative error allowed for a formula with logarithms and powers in float64 (T-OUTWARD, docs/theory/certified-loss.md)."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A public, nonnegative function of a record, nondecreasing in every measure."""

    kind: ClassVar[str]
    relative_error: ClassVar[Fraction] = CERTIFIED
    """How far the float64 value may be off before it is rounded outward; 0 if integer arithmetic makes it exact."""

    def measures(self) -> tuple[Measure, ...]:
        return ()

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        """The atom's contribution to rho, from the absolute values of the measures."""
        raise NotImplementedError

    def pure(self) -> tuple["Atom", Fraction] | None:
        """Return its pure loss as an atom and a factor, or None without one (T-PURE)."""
        return None

    def exactly(self, record: dict[str, Fraction]) -> Fraction | None:
        """The value as a fraction if it is rational, otherwise None."""
        return None

    def constant_from(self) -> int | None:
        """Return the lattice steps from which the atom is constant, or None.

        Only for atoms of one measure.
        """
        return None

    def to_json(self) -> dict[str, Any]:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class One(Atom):
    """The constant 1: a zCDP query costs every record the same."""

    kind = "one"
    relative_error = Fraction(0)

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return evaluator.constant(arb(1))

    def exactly(self, record: dict[str, Fraction]) -> Fraction | None:
        return Fraction(1)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind}


@dataclass(frozen=True, slots=True)
class PureOne(Atom):
    """The loss of a record in a count: a constant with a pure loss (T-PURE)."""

    kind = "pure one"
    relative_error = Fraction(0)
    row_epsilon: Fraction
    row_rho: Fraction

    def __post_init__(self) -> None:
        for parameter, value in (("epsilon", self.row_epsilon), ("rho", self.row_rho)):
            if moderate(value, parameter=parameter) <= 0:
                raise ParameterError(parameter=parameter, problem="must be above 0")

    def pure(self) -> tuple[Atom, Fraction]:
        return One(), self.row_epsilon

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return evaluator.constant(constant_ball(self.row_rho))

    def exactly(self, record: dict[str, Fraction]) -> Fraction | None:
        return self.row_rho

    def to_json(self) -> dict[str, Any]:
        epsilon, rho = fraction_text(self.row_epsilon), fraction_text(self.row_rho)
        return {"kind": self.kind, "row_epsilon": epsilon, "row_rho": rho}


@dataclass(frozen=True, slots=True)
class Outside(Atom):
    """No guarantee, for a record whose group the policy does not list."""

    kind = "outside"
    relative_error = Fraction(0)
    column: str

    def pure(self) -> tuple[Atom, Fraction]:
        return self, Fraction(1)

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return evaluator.constant(arb.pos_inf())

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "column": self.column}


@dataclass(frozen=True, slots=True)
class Pieces(Atom):
    """The square of the largest number of pieces (T-SPLIT).

    At least 1.
    """

    kind = "pieces"
    relative_error = Fraction(0)
    at: Thresholds

    def __post_init__(self) -> None:
        check_thresholds(self.at)

    def measures(self) -> tuple[Measure, ...]:
        return tuple(measure for measure, _ in self.at)

    def count(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        most = evaluator.constant(arb(1))
        for measure, at in self.at:
            most = evaluator.maximum(most, evaluator.pieces(columns[measure.name], measure, at))
        return most

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return evaluator.power(self.count(evaluator, columns), Fraction(2))

    def pieces(self, record: dict[str, Fraction]) -> int:
        """The number of pieces of one record, exactly."""
        needed = (-(-measure.steps(record[measure.name]) // int(at / measure.step)) for measure, at in self.at)
        return max(1, *needed) if self.at else 1

    def exactly(self, record: dict[str, Fraction]) -> Fraction | None:
        return Fraction(self.pieces(record) ** 2)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "at": [[*measure.to_json(), fraction_text(at)] for measure, at in self.at]}


@dataclass(frozen=True, slots=True)
class PieceCount(Atom):
    """The number of pieces, at least 1, for linear policies (T-SPLIT)."""

    kind = "piece count"
    relative_error = Fraction(0)
    at: Thresholds

    def __post_init__(self) -> None:
        check_thresholds(self.at)

    def measures(self) -> tuple[Measure, ...]:
        return tuple(measure for measure, _ in self.at)

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return Pieces(self.at).count(evaluator, columns)

    def exactly(self, record: dict[str, Fraction]) -> Fraction | None:
        return Fraction(Pieces(self.at).pieces(record))

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "at": [[*measure.to_json(), fraction_text(at)] for measure, at in self.at]}


@dataclass(frozen=True, slots=True)
class Square(Atom):
    """The square of a measure.

    A Gaussian sum costs it times 1/(2 sigma**2) (T-GAUSS).
    """

    kind = "square"
    relative_error = Fraction(0)
    measure: Measure

    def measures(self) -> tuple[Measure, ...]:
        return (self.measure,)

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return evaluator.power(columns[self.measure.name], Fraction(2))

    def exactly(self, record: dict[str, Fraction]) -> Fraction | None:
        return record[self.measure.name] ** 2

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "measure": self.measure.to_json()}


@dataclass(frozen=True, slots=True)
class ClampedSquare(Atom):
    """The square of a measure clamped at ``to``.

    A clamped Gaussian sum costs it times 1/(2 sigma**2) (T-CLAMP).
    """

    kind = "clamped square"
    relative_error = Fraction(0)
    measure: Measure
    to: Fraction

    def __post_init__(self) -> None:
        if self.to <= 0:
            raise ParameterError(parameter="to", problem="must be above 0")
        self.measure.on_lattice(moderate(self.to, parameter="to"), parameter="to")

    def measures(self) -> tuple[Measure, ...]:
        return (self.measure,)

    def clamp(self, evaluator: Evaluator[T], amount: T) -> T:
        """What is left of an amount."""
        return evaluator.minimum(amount, evaluator.constant(constant_ball(self.to)))

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return evaluator.power(self.clamp(evaluator, columns[self.measure.name]), Fraction(2))

    def exactly(self, record: dict[str, Fraction]) -> Fraction | None:
        return min(record[self.measure.name], self.to) ** 2

    def constant_from(self) -> int | None:
        return int(self.to / self.measure.step)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "measure": self.measure.to_json(), "to": fraction_text(self.to)}


@dataclass(frozen=True, slots=True)
class PurePieces(Atom):
    """The loss of m pieces under an eps-DP, rho-zCDP mechanism (T-EXTERNAL).

    It is min(rho m**2, m eps tanh(m eps/2)).
    """

    kind = "pure pieces"
    at: Thresholds
    row_epsilon: Fraction
    row_rho: Fraction

    def __post_init__(self) -> None:
        check_thresholds(self.at)
        for parameter, value in (("epsilon", self.row_epsilon), ("rho", self.row_rho)):
            if moderate(value, parameter=parameter) <= 0:
                raise ParameterError(parameter=parameter, problem="must be above 0")

    def measures(self) -> tuple[Measure, ...]:
        return tuple(measure for measure, _ in self.at)

    def pure(self) -> tuple[Atom, Fraction]:
        return PieceCount(self.at) if self.at else One(), self.row_epsilon

    def epsilon(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        one = evaluator.constant(constant_ball(self.row_epsilon))
        return evaluator.multiply(one, Pieces(self.at).count(evaluator, columns))

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        concentrated = evaluator.multiply(
            evaluator.constant(constant_ball(self.row_rho)), Pieces(self.at).value(evaluator, columns)
        )
        return evaluator.minimum(from_pure(evaluator, self.epsilon(evaluator, columns)), concentrated)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "at": [[*measure.to_json(), fraction_text(at)] for measure, at in self.at],
            "row_epsilon": fraction_text(self.row_epsilon),
            "row_rho": fraction_text(self.row_rho),
        }


def from_pure(evaluator: Evaluator[T], epsilon: T) -> T:
    """The best zCDP loss implied by a pure epsilon alone: eps*tanh(eps/2) (T-PURE)."""
    half = evaluator.multiply(evaluator.constant(arb(0.5)), epsilon)
    return evaluator.multiply(epsilon, evaluator.tanh(half))


@dataclass(frozen=True, slots=True)
class SelectionDelta(Atom):
    """The probability that a record alone makes a key appear.

    The lattice tail by number of pieces, 1 beyond the table.
    """

    kind = "selection delta"
    relative_error = Fraction(0)
    at: Thresholds
    steps: Steps

    def __post_init__(self) -> None:
        check_thresholds(self.at)
        object.__setattr__(self, "steps", check_steps(self.steps, parameter="deltas", most=Fraction(1)))

    def measures(self) -> tuple[Measure, ...]:
        return tuple(measure for measure, _ in self.at)

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        count = Pieces(self.at).count(evaluator, columns)
        return evaluator.step_up(count, self.steps, evaluator.constant(arb(1)))

    def exactly(self, record: dict[str, Fraction]) -> Fraction | None:
        count = Pieces(self.at).pieces(record)
        return next((level for pieces, level in self.steps if pieces >= count), Fraction(1))

    def constant_from(self) -> int | None:
        ((measure, at),) = self.at
        return int(at / measure.step) * self.steps[-1][0] + 1

    def to_json(self) -> dict[str, Any]:
        at = [[*measure.to_json(), fraction_text(at)] for measure, at in self.at]
        return {"kind": self.kind, "at": at, "steps": [[count, fraction_text(level)] for count, level in self.steps]}


def check_thresholds(at: Thresholds) -> None:
    names = [measure.name for measure, _ in at]
    if len(set(names)) != len(names):
        raise ParameterError(parameter="at", problem="names a measure twice")
    for measure, threshold in at:
        if threshold <= 0:
            raise ParameterError(parameter=f"at['{measure.name}']", problem="must be above 0")
        measure.on_lattice(threshold, parameter=f"at['{measure.name}']")
        if threshold > MOST_STEPS * measure.step:
            raise ParameterError(parameter=f"at['{measure.name}']", problem="must be at most 2^53 steps of the measure")


MOST_COUNT = 2**53


def check_steps(steps: Steps, *, parameter: str, most: Fraction = LARGEST) -> Steps:
    """Return increasing steps with values rounded up, or refuse them."""
    if not isinstance(steps, (tuple, list)) or not steps:
        raise ParameterError(parameter=parameter, problem="must be a nonempty list of pairs of an integer and a loss")
    rounded = tuple(_step(row, parameter) for row in steps)
    for (count, level), (next_count, next_level) in pairwise(rounded):
        if count >= next_count or level > next_level:
            raise ParameterError(parameter=parameter, problem="must increase in both columns")
    if rounded[-1][0] > MOST_COUNT or rounded[-1][1] > most:
        raise ParameterError(parameter=parameter, problem=f"must not exceed 2^53 steps or a value of {float(most):.4g}")
    if rounded[0][0] < 1 or rounded[0][1] < 0:
        raise ParameterError(parameter=parameter, problem="must start at 1 or above with a nonnegative value")
    return rounded


def check_knots(knots: Steps) -> Steps:
    """Knots as given; refused unless steps and losses increase."""
    if not isinstance(knots, (tuple, list)) or not knots:
        raise ParameterError(parameter="knots", problem="must be a nonempty list of pairs of an integer and a loss")
    for row in knots:
        if not (
            isinstance(row, (tuple, list)) and len(row) == 2 and type(row[0]) is int and isinstance(row[1], Fraction)
        ):
            raise ParameterError(parameter="knots", problem="must be pairs of an integer and a loss")
    exact = tuple((count, moderate(level, parameter="knots")) for count, level in knots)
    if exact[0][0] < 1 or exact[0][1] <= 0 or exact[-1][0] > MOST_KNOT:
        raise ParameterError(parameter="knots", problem="must start at 1 or above with a loss above 0, and end by 2^62")
    for (count, level), (next_count, next_level) in pairwise(exact):
        if count >= next_count or level > next_level:
            raise ParameterError(parameter="knots", problem="must increase in both columns")
    return exact


MOST_KNOT = 2**62


def _step(row: Any, parameter: str) -> tuple[int, Fraction]:
    match row:
        case (int(count), level) if not isinstance(count, bool):
            exact = (
                Fraction(level)
                if isinstance(level, float) and isfinite(level)
                else rational(level, parameter=parameter)
            )
            if exact > LARGEST:
                raise ParameterError(parameter=parameter, problem="must not contain a value above 2^200")
            # Tails too small to matter are rounded up with the rest.
            return count, Fraction(float_upper(max(exact, 1 / LARGEST) if exact > 0 else exact))
        case _:
            raise ParameterError(parameter=parameter, problem="must be pairs of an integer and a loss")


# Atoms that come from a concave function: fat-tailed additive noise, and noise on a root or logarithm of a total.


LARGEST_GRID = 100


@dataclass(frozen=True, slots=True)
class Additive(Atom):
    """Fat-tailed additive noise with density exp(-f) (T-ADD).

    The pure loss is eps = f(x) - f(0). ``bound`` is the published zCDP bound: ``"pure"`` is eps, as in the
    paper, ``"tanh"`` is eps*tanh(eps/2).
    """

    kind = "additive"
    measure: Measure
    function: Function
    bound: str

    def __post_init__(self) -> None:
        if self.bound not in ("pure", "tanh"):
            raise ParameterError(parameter="bound", problem=f"must be 'pure' or 'tanh', not {value_text(self.bound)}")
        check_concave(self.function)

    def measures(self) -> tuple[Measure, ...]:
        return (self.measure,)

    def pure(self) -> tuple[Atom, Fraction]:
        return Additive(self.measure, self.function, "pure"), Fraction(1)

    def epsilon(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return self.function.increase(evaluator, columns[self.measure.name])

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        epsilon = self.epsilon(evaluator, columns)
        return epsilon if self.bound == "pure" else from_pure(evaluator, epsilon)

    def exactly(self, record: dict[str, Fraction]) -> Fraction | None:
        slope = linear_slope(self.function) if self.bound == "pure" else None
        return None if slope is None else slope * record[self.measure.name]

    def to_json(self) -> dict[str, Any]:
        function = self.function.to_json()
        return {"kind": self.kind, "measure": self.measure.to_json(), "function": function, "bound": self.bound}


@dataclass(frozen=True, slots=True)
class AdditiveTable(Atom):
    """Fat-tailed additive noise with certified lattice losses (T-TABLE).

    ``steps`` maps lattice steps of the measure to losses of the law that is drawn. Between two entries the
    larger holds; beyond the last eps*tanh(eps/2) does, or the last entry if larger, so that the loss never
    falls.
    """

    kind = "additive table"
    measure: Measure
    function: Function
    steps: Steps

    def __post_init__(self) -> None:
        check_concave(self.function)
        object.__setattr__(self, "steps", check_steps(self.steps, parameter="steps"))

    def measures(self) -> tuple[Measure, ...]:
        return (self.measure,)

    def pure(self) -> tuple[Atom, Fraction]:
        return Additive(self.measure, self.function, "pure"), Fraction(1)

    def epsilon(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return self.function.increase(evaluator, columns[self.measure.name])

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        x = columns[self.measure.name]
        count = evaluator.pieces(x, self.measure, self.measure.step)
        last = evaluator.constant(constant_ball(self.steps[-1][1]))
        beyond = evaluator.maximum(last, from_pure(evaluator, self.epsilon(evaluator, columns)))
        return evaluator.if_positive(x, evaluator.step_up(count, self.steps, beyond))

    def to_json(self) -> dict[str, Any]:
        steps = [[count, fraction_text(level)] for count, level in self.steps]
        function = self.function.to_json()
        return {"kind": self.kind, "measure": self.measure.to_json(), "function": function, "steps": steps}


@dataclass(frozen=True, slots=True)
class CertifiedSum(Atom):
    """Fat-tailed additive noise with lattice losses certified at knots (T-KNOTS).

    ``knots`` maps steps of the measure to losses of the law that is drawn. Between two knots the loss is
    linear, and an amount between two steps has the loss of the larger. Beyond the last knot it is f(x) - f(0)
    less a constant (T-BEYOND), or the last loss if larger.
    """

    kind = "certified sum"
    measure: Measure
    function: Function
    knots: Steps
    less: Fraction

    def __post_init__(self) -> None:
        check_concave(self.function)
        object.__setattr__(self, "knots", check_knots(self.knots))
        if moderate(self.less, parameter="less") < 0:
            raise ParameterError(parameter="less", problem="must not be negative")
        with working_precision():
            rise = self.function.increase(BALLS, ball(self.measure.step * self.knots[-1][0]))
            if not rise >= 2 * ball(self.less):
                # Half of the rise must be left, so that taking the constant off loses no digits (T-OUTWARD).
                raise ParameterError(parameter="less", problem="must be at most half of the rise at the last knot")

    def measures(self) -> tuple[Measure, ...]:
        return (self.measure,)

    def pure(self) -> tuple[Atom, Fraction]:
        return Additive(self.measure, self.function, "pure"), Fraction(1)

    def epsilon(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return self.function.increase(evaluator, columns[self.measure.name])

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        x = columns[self.measure.name]
        last = evaluator.constant(constant_ball(self.knots[-1][1]))
        taken_off = evaluator.constant(constant_ball(-self.less))
        beyond = evaluator.maximum(last, evaluator.add(self.epsilon(evaluator, columns), taken_off))
        return evaluator.if_positive(x, evaluator.on_lines(x, self.measure, self.knots, beyond))

    def exactly(self, record: dict[str, Fraction]) -> Fraction | None:
        count = self.measure.steps(record[self.measure.name])
        if count > self.knots[-1][0]:
            return None
        return line_value(Fraction(count), self.knots) if count else Fraction(0)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "measure": self.measure.to_json(),
            "function": self.function.to_json(),
            "knots": [[count, fraction_text(level)] for count, level in self.knots],
            "less": fraction_text(self.less),
        }


@dataclass(frozen=True, slots=True)
class LaplaceSum(Atom):
    """The exact loss of a sum with lattice Laplace noise (T-LAPLACE).

    eps - (c/sinh c)(1 - exp(-eps)) with eps = x/scale and c = grid/scale.
    """

    kind = "laplace sum"
    measure: Measure
    grid: Fraction
    """The lattice the noise is drawn on; it divides the measure's step."""
    scale: Fraction

    def __post_init__(self) -> None:
        for parameter, value in (("grid", self.grid), ("laplace_scale", self.scale)):
            if moderate(value, parameter=parameter) <= 0:
                raise ParameterError(parameter=parameter, problem="must be above 0")
        if (self.measure.step / self.grid).denominator != 1:
            raise ParameterError(parameter="grid", problem="must divide the measure's step")

    def measures(self) -> tuple[Measure, ...]:
        return (self.measure,)

    def pure(self) -> tuple[Atom, Fraction]:
        return Additive(self.measure, x / self.scale, "pure"), Fraction(1)

    def epsilon(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return evaluator.multiply(evaluator.constant(constant_ball(1 / self.scale)), columns[self.measure.name])

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return laplace_zcdp(evaluator, self.epsilon(evaluator, columns), self.grid / self.scale)

    def to_json(self) -> dict[str, Any]:
        measure, grid = self.measure.to_json(), fraction_text(self.grid)
        return {"kind": self.kind, "measure": measure, "grid": grid, "scale": fraction_text(self.scale)}


@dataclass(frozen=True, slots=True)
class Transformed(Atom):
    """The largest change of a rounded concave f(total) that gets noise.

    It is F(x) + grid with F(x) = f(x) - f(0): rounding moves either end by at most half a grid step (T-GRID).
    """

    kind = "transformed"
    measure: Measure
    function: Function
    grid: Fraction

    def __post_init__(self) -> None:
        if moderate(self.grid, parameter="grid") <= 0:
            raise ParameterError(parameter="grid", problem="must be above 0")
        check_concave(self.function)

    def measures(self) -> tuple[Measure, ...]:
        return (self.measure,)

    def shift(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        rise = self.function.increase(evaluator, columns[self.measure.name])
        return evaluator.add(rise, evaluator.constant(constant_ball(self.grid)))

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "measure": self.measure.to_json(),
            "function": self.function.to_json(),
            "grid": fraction_text(self.grid),
        }


@dataclass(frozen=True, slots=True)
class GaussianTransform(Transformed):
    """The squared largest change of f(total) under Gaussian noise (T-TRANSFORM).

    Its coefficient is 1/(2 sigma**2).
    """

    kind = "gaussian transform"

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        squared = evaluator.power(self.shift(evaluator, columns), Fraction(2))
        return evaluator.if_positive(columns[self.measure.name], squared)


@dataclass(frozen=True, slots=True)
class LaplaceTransform(Transformed):
    """The exact loss of lattice Laplace noise on f(total) (T-LAPLACE).

    eps - (e1/sinh e1)(1 - exp(-eps)) with e1 = grid/scale.
    """

    kind = "laplace transform"
    scale: Fraction

    def __post_init__(self) -> None:
        # A dataclass with slots is recreated, so a bare super() would refer to the wrong class.
        Transformed.__post_init__(self)
        if moderate(self.scale, parameter="laplace_scale") <= 0:
            raise ParameterError(parameter="laplace_scale", problem="must be above 0")
        if self.grid > LARGEST_GRID * self.scale:
            raise ParameterError(parameter="grid", problem=f"must be at most {LARGEST_GRID} times laplace_scale")

    def pure(self) -> tuple[Atom, Fraction]:
        return PureTransform(self.measure, self.function, self.grid, self.scale), Fraction(1)

    def epsilon(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        scaled = evaluator.divide(self.shift(evaluator, columns), evaluator.constant(constant_ball(self.scale)))
        return evaluator.if_positive(columns[self.measure.name], scaled)

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return laplace_zcdp(evaluator, self.epsilon(evaluator, columns), self.grid / self.scale)

    def to_json(self) -> dict[str, Any]:
        return {**Transformed.to_json(self), "scale": fraction_text(self.scale)}


@dataclass(frozen=True, slots=True)
class PureTransform(LaplaceTransform):
    """The pure loss of lattice Laplace noise on f(total) (T-PURE)."""

    kind = "pure transform"

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return self.epsilon(evaluator, columns)


def laplace_zcdp(evaluator: Evaluator[T], epsilon: T, one_step: Fraction) -> T:
    """Return the zCDP loss of lattice Laplace noise shifted by ``epsilon`` (T-LAPLACE).

    ``one_step`` is the loss of one lattice step. eps - c(1 - e^-eps) with c = e1/sinh(e1) is written as (e^-eps
    - 1 + eps) + (1-c)(1 - e^-eps), two nonnegative terms. The second becomes
    (1-c)*2*tanh(eps/2)/(1+tanh(eps/2)), the same number from a function every system has.
    """
    gap = _laplace_gap(one_step)
    half = evaluator.tanh(evaluator.multiply(evaluator.constant(arb(0.5)), epsilon))
    fall = evaluator.divide(
        evaluator.multiply(evaluator.constant(arb(2)), half), evaluator.add(evaluator.constant(arb(1)), half)
    )
    return evaluator.add(evaluator.exp_remainder(epsilon), evaluator.multiply(evaluator.constant(gap), fall))


@lru_cache(maxsize=1024)
def _laplace_gap(one_step: Fraction) -> arb:
    """Return 1 - e1/sinh(e1), or 1 where they agree to 40 digits."""
    if one_step > LARGEST_GRID:
        return arb(1)
    with working_precision(2 * CONSTANT_BITS):
        step = ball(one_step)
        return arb(1) - step / step.sinh()


def linear_slope(function: Function) -> Fraction | None:
    """Return w where the function rises by w x, else None."""
    match function:
        case Variable():
            return Fraction(1)
        case Sum(((weight, Variable()),)):
            return weight
        case _:
            return None


def check_concave(function: Function) -> None:
    if not isinstance(function, Function):
        raise ParameterError(parameter="function", problem=f"must be built from x, not {type(function).__name__}")
    function.concave()
