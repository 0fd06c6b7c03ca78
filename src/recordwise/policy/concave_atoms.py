"""Atoms that come from a concave function: fat-tailed additive noise, and noise on a root or logarithm of a total."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

from flint import arb

from recordwise.errors import ParameterError, shown
from recordwise.exact.functions import CONSTANT_BITS, Function
from recordwise.exact.numbers import ball, constant_ball, fraction_text, moderate, working_precision
from recordwise.policy.atoms import Atom, check_knots, check_steps, from_pure
from recordwise.policy.evaluate.evaluator import BALLS, Evaluator, Steps, line_value
from recordwise.policy.measure import Measure

T = TypeVar("T")
LARGEST_GRID = 100


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
            raise ParameterError(parameter="bound", problem=f"must be 'pure' or 'tanh', not {shown(self.bound)}")
        check_concave(self.function)

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
    last eps*tanh(eps/2) does, or the last entry where that is larger, so that the loss never falls.
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
    """Fat-tailed additive noise, by knots certified from the lattice law that is drawn (T-KNOTS).

    ``knots`` maps numbers of steps of the measure to losses; between two of them the loss is on a straight line, and an amount
    between two steps has the loss of the larger. Beyond the last knot it is f(x) - f(0) less a constant (T-BEYOND), or the last
    loss where that is larger.
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
    """A sum with lattice Laplace noise, exactly: eps - (c/sinh c)(1 - exp(-eps)), eps = x/scale, c = grid/scale (T-LAPLACE)."""

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

    def epsilon(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return evaluator.multiply(evaluator.constant(constant_ball(1 / self.scale)), columns[self.measure.name])

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return laplace_zcdp(evaluator, self.epsilon(evaluator, columns), self.grid / self.scale)

    def to_json(self) -> dict[str, Any]:
        measure, grid = self.measure.to_json(), fraction_text(self.grid)
        return {"kind": self.kind, "measure": measure, "grid": grid, "scale": fraction_text(self.scale)}


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
        # A dataclass with slots is recreated, so a bare super() would refer to the wrong class.
        Transformed.__post_init__(self)
        if moderate(self.scale, parameter="laplace_scale") <= 0:
            raise ParameterError(parameter="laplace_scale", problem="must be above 0")
        if self.grid > LARGEST_GRID * self.scale:
            raise ParameterError(parameter="grid", problem=f"must be at most {LARGEST_GRID} times laplace_scale")

    def epsilon(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        scaled = evaluator.divide(self.shift(evaluator, columns), evaluator.constant(constant_ball(self.scale)))
        return evaluator.if_positive(columns[self.measure.name], scaled)

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return laplace_zcdp(evaluator, self.epsilon(evaluator, columns), self.grid / self.scale)

    def to_json(self) -> dict[str, Any]:
        return {**Transformed.to_json(self), "scale": fraction_text(self.scale)}


def laplace_zcdp(evaluator: Evaluator[T], epsilon: T, one_step: Fraction) -> T:
    """zCDP loss of lattice Laplace noise shifted by ``epsilon``, ``one_step`` being the loss of one lattice step (T-LAPLACE).

    eps - c(1 - e^-eps) with c = e1/sinh(e1) is written as (e^-eps - 1 + eps) + (1-c)(1 - e^-eps), two nonnegative terms.
    The second is replaced by (1-c)*2*tanh(eps/2)/(1+tanh(eps/2)), the same number from a function every system has.
    """
    gap = _laplace_gap(one_step)
    half = evaluator.tanh(evaluator.multiply(evaluator.constant(arb(0.5)), epsilon))
    fall = evaluator.divide(
        evaluator.multiply(evaluator.constant(arb(2)), half), evaluator.add(evaluator.constant(arb(1)), half)
    )
    return evaluator.add(evaluator.exp_remainder(epsilon), evaluator.multiply(evaluator.constant(gap), fall))


@lru_cache(maxsize=1024)
def _laplace_gap(one_step: Fraction) -> arb:
    """1 - e1/sinh(e1); where that is 1 but for its 40th digit, 1."""
    if one_step > LARGEST_GRID:
        return arb(1)
    with working_precision(2 * CONSTANT_BITS):
        step = ball(one_step)
        return arb(1) - step / step.sinh()


def check_concave(function: Function) -> None:
    if not isinstance(function, Function):
        raise ParameterError(parameter="function", problem=f"must be built from x, not {type(function).__name__}")
    function.concave()
