"""The measures that a policy is a function of, and how a value is placed on its measure's lattice."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import floor
from typing import Any

from recordwise.errors import ParameterError, UnknownFormError
from recordwise.exact.numbers import fraction_text, moderate, positive

SNAP = Fraction(1, 2**50)
"""A value this close (relatively, from above) to a lattice point is that point: 2.1 as a float is not exactly 21 steps of 0.1."""
FLOAT_SNAP = 2.0**-51
"""The same for evaluation in floats: above their error on a lattice point, below SNAP by more than that error, so that floats
never count fewer steps (T-OUTWARD)."""
MOST_SCALED_STEPS = 2.0**49
"""From here on a float that was divided by a step can miss its lattice point; its steps are then rounded up."""
MOST_STEPS = 2**53
"""The largest threshold in steps: all integers up to here are floats."""


@dataclass(frozen=True, slots=True, order=True)
class Measure:
    """A column that is summed; its values are multiples of ``step`` (1 employee, 0.01 dollars), negative only if ``signed``."""

    name: str
    step: Fraction = Fraction(1)
    signed: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ParameterError(parameter="measure", problem="needs a name")
        object.__setattr__(self, "step", moderate(positive(self.step, parameter="step"), parameter="step"))
        for part in (self.step.numerator, self.step.denominator):
            if int(float(part)) != part:
                raise ParameterError(parameter="step", problem="must be a ratio of two integers of at most 15 digits")
        if not isinstance(self.signed, bool):
            raise ParameterError(parameter="signed", problem="must be True or False")

    @classmethod
    def of(cls, measure: "Measure | str") -> "Measure":
        """A measure from its name (nonnegative integers), or the measure itself.

        Args:
            measure: A name, or a measure.

        Returns:
            The measure.
        """
        return measure if isinstance(measure, Measure) else cls(measure)

    def on_lattice(self, value: Fraction, *, parameter: str) -> Fraction:
        """The parameter itself if it is a multiple of the step; refused otherwise.

        Args:
            value: A value of the measure.
            parameter: The name to use in an error message.

        Returns:
            The same value, exactly.
        """
        if (value / self.step).denominator != 1:
            raise ParameterError(
                parameter=parameter,
                problem=f"must be a multiple of the step {self.step} of '{self.name}', not {value}",
            )
        return value

    def steps(self, value: Fraction) -> int:
        """The number of steps of a value: its lattice point, or the next one above it.

        Args:
            value: A value of the measure.

        Returns:
            The number of steps.
        """
        exact = value / self.step
        below = floor(exact)
        return below + (exact > below * (1 + SNAP))

    def to_json(self) -> Any:
        """The saved form."""
        return [self.name, fraction_text(self.step), "signed" if self.signed else "nonnegative"]

    @classmethod
    def from_json(cls, form: Any) -> "Measure":
        """Read back what ``to_json`` wrote.

        Args:
            form: The saved form, as read from JSON.

        Returns:
            The measure.
        """
        match form:
            case [str(name), str(step), "signed" | "nonnegative" as sign]:
                return cls(name, positive(step, parameter="step"), sign == "signed")
            case _:
                raise UnknownFormError(what="measure", found=form)


def check_one_measure_a_name(measures: Iterable[Measure]) -> None:
    """Refuse two measures of one name: the policy would be ambiguous."""
    for first, second in pairwise(sorted(measures)):
        if first.name == second.name:
            raise ParameterError(
                parameter=f"measure '{first.name}'", problem="is used with two different steps or signs in one policy"
            )
