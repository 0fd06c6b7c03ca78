"""The building blocks of policy functions: each a public, nondecreasing function of a record's measures.

A policy is a sum of coefficient times atom (``recordwise.policy.policy``). An atom writes its formula once, against
``Evaluator``; numpy, Arb, SQL and JavaScript all run that same formula.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

from flint import arb, ctx

from recordwise.errors import ParameterError
from recordwise.exact import ball, float_upper, fraction_text
from recordwise.functions import CONSTANT_BITS, Function
from recordwise.policy.evaluators import Evaluator, Steps
from recordwise.policy.measure import Measure

T = TypeVar("T")
Thresholds = tuple[tuple[Measure, Fraction], ...]

CERTIFIED = Fraction(1, 2**42)
"""Relative error allowed to the float64 evaluation of a formula with logarithms and powers (T-OUTWARD, docs/theory/policy.md)."""


@dataclass(frozen=True, slots=True)
class Atom:
    """One public function of a record, at least 0 and nondecreasing in every measure."""

    kind: ClassVar[str]
    relative_error: ClassVar[Fraction] = CERTIFIED
    """How far the float64 value may be off before it is rounded outward; 0 where whole numbers make it exact."""

    def measures(self) -> tuple[Measure, ...]:
        return ()

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        """The atom's contribution to rho, from the absolute values of the measures."""
        raise NotImplementedError

    def epsilon(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T | None:
        """Its pure-DP loss, or None where it has none."""
        return None

    def exactly(self, record: dict[str, Fraction]) -> Fraction | None:
        """The value as a fraction where it is rational, else None."""
        return None

    def to_json(self) -> dict[str, Any]:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class One(Atom):
    """The constant 1: what a zCDP query costs every record alike."""

    kind = "one"
    relative_error = Fraction(0)

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return evaluator.constant(arb(1))

    def exactly(self, record: dict[str, Fraction]) -> Fraction | None:
        return Fraction(1)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind}


@dataclass(frozen=True, slots=True)
class Outside(Atom):
    """No promise at all: the loss of a record whose group the policy was not told about."""

    kind = "outside"
    relative_error = Fraction(0)
    column: str

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return evaluator.constant(arb.pos_inf())

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "column": self.column}


@dataclass(frozen=True, slots=True)
class Pieces(Atom):
    """Unit splitting (T-SPLIT): the square of the number of pieces, the largest over the measures, at least 1."""

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
class Square(Atom):
    """The square of a measure: a Gaussian sum costs it times 1/(2 sigma**2) (T-GAUSS)."""

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
class Additive(Atom):
    """Fat-tailed additive noise with density exp(-f): the pure loss is eps = f(x) - f(0) (T-ADD).

    ``bound`` says which zCDP bound is published: ``"pure"`` is eps itself, as in the paper, ``"tanh"`` is eps*tanh(eps/2).
    """

    kind = "additive"
    measure: Measure
    function: Function
    bound: str

    def __post_init__(self) -> None:
        if self.bound not in ("pure", "tanh"):
            raise ParameterError(parameter="bound", problem=f"must be 'pure' or 'tanh', not {self.bound!r}")
        self.function.concave()

    def measures(self) -> tuple[Measure, ...]:
        return (self.measure,)

    def epsilon(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return self.function.increase(evaluator, columns[self.measure.name])

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        epsilon = self.epsilon(evaluator, columns)
        return epsilon if self.bound == "pure" else from_pure(evaluator, epsilon)

    def to_json(self) -> dict[str, Any]:
        function = self.function.to_json()
        return {"kind": self.kind, "measure": self.measure.to_json(), "function": function, "bound": self.bound}


@dataclass(frozen=True, slots=True)
class AdditiveTable(Atom):
    """Fat-tailed additive noise, with losses certified from the lattice law that is drawn (T-TABLE).

    ``steps`` maps a number of lattice steps of the measure to the loss; between two entries the larger one holds, beyond the
    last eps*tanh(eps/2) does.
    """

    kind = "additive table"
    measure: Measure
    function: Function
    steps: Steps

    def __post_init__(self) -> None:
        self.function.concave()
        object.__setattr__(self, "steps", check_steps(self.steps))

    def measures(self) -> tuple[Measure, ...]:
        return (self.measure,)

    def epsilon(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return self.function.increase(evaluator, columns[self.measure.name])

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        x = columns[self.measure.name]
        count = evaluator.pieces(x, self.measure, self.measure.step)
        beyond = from_pure(evaluator, self.epsilon(evaluator, columns))
        return evaluator.if_positive(x, evaluator.step_up(count, self.steps, beyond))

    def to_json(self) -> dict[str, Any]:
        steps = [[count, fraction_text(level)] for count, level in self.steps]
        function = self.function.to_json()
        return {"kind": self.kind, "measure": self.measure.to_json(), "function": function, "steps": steps}


@dataclass(frozen=True, slots=True)
class Transformed(Atom):
    """Noise on the scale of a concave f: the largest change of the rounded f(total), F(x) + grid, where F(x) = f(x) - f(0).

    Rounding to the grid moves either end by half a grid step at most, so the distance of two rounded values is at most F(x) plus
    one grid step (T-GRID).
    """

    kind = "transformed"
    measure: Measure
    function: Function
    grid: Fraction

    def __post_init__(self) -> None:
        if self.grid <= 0:
            raise ParameterError(parameter="grid", problem="must be above 0")
        self.function.concave()

    def measures(self) -> tuple[Measure, ...]:
        return (self.measure,)

    def shift(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        rise = self.function.increase(evaluator, columns[self.measure.name])
        return evaluator.add(rise, evaluator.constant(ball(self.grid)))

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "measure": self.measure.to_json(),
            "function": self.function.to_json(),
            "grid": fraction_text(self.grid),
        }


@dataclass(frozen=True, slots=True)
class GaussianTransform(Transformed):
    """Gaussian noise on f(total): the square of the largest change; its coefficient is 1/(2 sigma**2) (T-TRANSFORM)."""

    kind = "gaussian transform"

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        squared = evaluator.power(self.shift(evaluator, columns), Fraction(2))
        return evaluator.if_positive(columns[self.measure.name], squared)


@dataclass(frozen=True, slots=True)
class LaplaceTransform(Transformed):
    """Lattice Laplace noise on f(total), exactly: eps - (e1/sinh e1)(1 - exp(-eps)), e1 = grid/scale (T-LAPLACE)."""

    kind = "laplace transform"
    scale: Fraction

    def __post_init__(self) -> None:
        # A dataclass with slots is made anew, so the plain two-word super() would look in the wrong class.
        Transformed.__post_init__(self)
        if self.scale <= 0:
            raise ParameterError(parameter="laplace_scale", problem="must be above 0")

    def epsilon(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        scaled = evaluator.divide(self.shift(evaluator, columns), evaluator.constant(ball(self.scale)))
        return evaluator.if_positive(columns[self.measure.name], scaled)

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return laplace_zcdp(evaluator, self.epsilon(evaluator, columns), self.grid / self.scale)

    def to_json(self) -> dict[str, Any]:
        return {**Transformed.to_json(self), "scale": fraction_text(self.scale)}


@dataclass(frozen=True, slots=True)
class SelectionDelta(Atom):
    """The chance that a key appears because of this record alone: lattice tail by number of pieces, 1 beyond the table."""

    kind = "selection delta"
    relative_error = Fraction(0)
    at: Thresholds
    steps: Steps

    def __post_init__(self) -> None:
        check_thresholds(self.at)
        object.__setattr__(self, "steps", check_steps(self.steps))

    def measures(self) -> tuple[Measure, ...]:
        return tuple(measure for measure, _ in self.at)

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        count = Pieces(self.at).count(evaluator, columns)
        return evaluator.step_up(count, self.steps, evaluator.constant(arb(1)))

    def exactly(self, record: dict[str, Fraction]) -> Fraction | None:
        count = Pieces(self.at).pieces(record)
        return next((level for pieces, level in self.steps if pieces >= count), Fraction(1))

    def to_json(self) -> dict[str, Any]:
        at = [[*measure.to_json(), fraction_text(at)] for measure, at in self.at]
        return {"kind": self.kind, "at": at, "steps": [[count, fraction_text(level)] for count, level in self.steps]}


def from_pure(evaluator: Evaluator[T], epsilon: T) -> T:
    """The best zCDP loss that follows from pure epsilon alone: eps*tanh(eps/2) (T-PURE)."""
    half = evaluator.multiply(evaluator.constant(arb(0.5)), epsilon)
    return evaluator.multiply(epsilon, evaluator.tanh(half))


def laplace_zcdp(evaluator: Evaluator[T], epsilon: T, one_step: Fraction) -> T:
    """zCDP loss of lattice Laplace noise shifted by ``epsilon``, ``one_step`` being the loss of one lattice step (T-LAPLACE).

    eps - c(1 - e^-eps) with c = e1/sinh(e1) is written as (e^-eps - 1 + eps) + (1-c)(1 - e^-eps), two terms that are not negative.
    The second is replaced by (1-c)*2*tanh(eps/2)/(1+tanh(eps/2)), the same number from a function every system has.
    """
    with ctx.workprec(2 * CONSTANT_BITS):
        step = ball(one_step)
        gap = arb(1) - step / step.sinh()
    half = evaluator.tanh(evaluator.multiply(evaluator.constant(arb(0.5)), epsilon))
    fall = evaluator.divide(
        evaluator.multiply(evaluator.constant(arb(2)), half), evaluator.add(evaluator.constant(arb(1)), half)
    )
    return evaluator.add(evaluator.exp_remainder(epsilon), evaluator.multiply(evaluator.constant(gap), fall))


def check_thresholds(at: Thresholds) -> None:
    names = [measure.name for measure, _ in at]
    if len(set(names)) != len(names):
        raise ParameterError(parameter="at", problem="names a measure twice")
    for measure, threshold in at:
        if threshold <= 0:
            raise ParameterError(parameter=f"at['{measure.name}']", problem=f"must be above 0, not {threshold}")
        measure.on_lattice(threshold, parameter=f"at['{measure.name}']")


def check_steps(steps: Steps) -> Steps:
    """The table with its values rounded up to floats; refused unless arguments and values increase."""
    if not steps:
        raise ParameterError(parameter="steps", problem="must not be empty")
    rounded = tuple((int(count), Fraction(float_upper(Fraction(level)))) for count, level in steps)
    for (count, level), (next_count, next_level) in pairwise(rounded):
        if count >= next_count or level > next_level:
            raise ParameterError(parameter="steps", problem="must increase in both columns")
    if rounded[0][0] < 1 or rounded[0][1] < 0:
        raise ParameterError(parameter="steps", problem="must start at 1 or above, with a loss that is not negative")
    return rounded
