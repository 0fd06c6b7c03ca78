"""The building blocks of policy functions: each a public, nondecreasing function of a record's measures.

A policy is a sum of coefficient times atom (``recordwise.policy.policy``). An atom writes its formula once, against
``Evaluator``; numpy, Arb, SQL and JavaScript all run that same formula.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import isfinite
from typing import Any, ClassVar, TypeVar

from flint import arb

from recordwise.errors import ParameterError
from recordwise.exact.numbers import LARGEST, constant_ball, float_upper, fraction_text, moderate, rational
from recordwise.policy.evaluate.evaluator import Evaluator, Steps
from recordwise.policy.measure import MOST_STEPS, Measure

T = TypeVar("T")
Thresholds = tuple[tuple[Measure, Fraction], ...]

CERTIFIED = Fraction(1, 2**42)
"""Relative error allowed for the float64 evaluation of a formula with logarithms and powers (T-OUTWARD, docs/theory/outward.md)."""


@dataclass(frozen=True, slots=True)
class Atom:
    """One public function of a record, at least 0 and nondecreasing in every measure."""

    kind: ClassVar[str]
    relative_error: ClassVar[Fraction] = CERTIFIED
    """How far the float64 value may be off before it is rounded outward; 0 if integer arithmetic makes it exact."""

    def measures(self) -> tuple[Measure, ...]:
        return ()

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        """The atom's contribution to rho, from the absolute values of the measures."""
        raise NotImplementedError

    def epsilon(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T | None:
        """Its pure-DP loss, or None if it has none."""
        return None

    def exactly(self, record: dict[str, Fraction]) -> Fraction | None:
        """The value as a fraction if it is rational, otherwise None."""
        return None

    def constant_from(self) -> int | None:
        """Lattice steps of its measure from which on it no longer rises, or None if it always may. Only for one measure."""
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
class Outside(Atom):
    """No guarantee: the loss of a record whose group is not listed in the policy."""

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
class PieceCount(Atom):
    """The number of pieces itself, at least 1: a policy that is linear in pieces (T-SPLIT)."""

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
class ClampedSquare(Atom):
    """The square of a measure cut at ``to``: a clamped Gaussian sum costs it times 1/(2 sigma**2) (T-CLAMP)."""

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

    def kept(self, evaluator: Evaluator[T], amount: T) -> T:
        """What is left of an amount."""
        return evaluator.minimum(amount, evaluator.constant(constant_ball(self.to)))

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return evaluator.power(self.kept(evaluator, columns[self.measure.name]), Fraction(2))

    def exactly(self, record: dict[str, Fraction]) -> Fraction | None:
        return min(record[self.measure.name], self.to) ** 2

    def constant_from(self) -> int | None:
        return int(self.to / self.measure.step)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "measure": self.measure.to_json(), "to": fraction_text(self.to)}


@dataclass(frozen=True, slots=True)
class PurePieces(Atom):
    """A mechanism that is eps-DP and rho-zCDP for one of m pieces: min(rho m**2, m eps tanh(m eps/2)) (T-EXTERNAL)."""

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
    """The probability that a key appears because of this record alone: lattice tail by number of pieces, 1 beyond the table."""

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
    """The table with its values rounded up to floats; refused unless arguments and values increase."""
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
