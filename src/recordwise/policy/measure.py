"""The measures of a policy, and their lattices."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import floor, gcd, lcm
from typing import Any

from recordwise.errors import ParameterError, UnknownFormError
from recordwise.exact.numbers import fraction_text, moderate, positive, read_fraction

SNAP = Fraction(1, 2**50)
"""A value this close (relatively, from above) to a lattice point is that point: 2.1 as a float is not exactly 21 steps of 0.1."""
FLOAT_SNAP = 2.0**-51
"""The same for evaluation in floats: above their error on a lattice point, below SNAP by more than that error, so that floats
never count fewer steps (T-OUTWARD)."""
MOST_SCALED_STEPS = 2.0**49
"""From here on a float that was divided by a step can miss its lattice point; its steps are then rounded up."""
MOST_STEPS = 2**53
"""The largest threshold in steps: all integers up to here are floats."""
LINEAR_ERROR = 2.0**-47
"""How far a linear form of many steps may be off in floats, as a share of the sum of the absolute values of its parts."""
MOST_DERIVED_FROM = 15
"""So few that the roundings of a sum of floats stay within what is added for them (T-OUTWARD)."""


@dataclass(frozen=True, slots=True, order=True)
class Measure:
    """A column that is summed, on a lattice.

    Its values are multiples of ``step`` (1 employee, 0.01 dollars), negative only if ``signed``. A measure may
    be ``derived``: a linear form of others with public coefficients. A record then holds the others, and the
    loss is looked up in them (T-JOINT).
    """

    name: str
    step: Fraction = Fraction(1)
    signed: bool = False
    derived: tuple[tuple["Measure", Fraction], ...] = ()
    """The measures it is a linear form of, sorted, each with its coefficient; empty for a measure that records hold."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ParameterError(parameter="measure", problem="needs a name")
        object.__setattr__(self, "step", moderate(positive(self.step, parameter="step"), parameter="step"))
        for part in (self.step.numerator, self.step.denominator):
            if int(float(part)) != part:
                raise ParameterError(parameter="step", problem="must be a ratio of two integers of at most 15 digits")
        if not isinstance(self.signed, bool):
            raise ParameterError(parameter="signed", problem="must be True or False")
        if self.derived:
            self._check_derived()

    def _check_derived(self) -> None:
        """Refuse a form with values off the lattice or unexpectedly negative."""
        bases, multiples = self.inputs(), [share * base.step / self.step for base, share in self.derived]
        if any(base.derived for base in bases) or list(bases) != sorted({base.name: base for base in bases}.values()):
            problem = "must name measures that records hold, each once and in order"
            raise ParameterError(parameter=f"derived '{self.name}'", problem=problem)
        if len(bases) > MOST_DERIVED_FROM:
            problem = f"must name at most {MOST_DERIVED_FROM} measures"
            raise ParameterError(parameter=f"derived '{self.name}'", problem=problem)
        if any(each.denominator != 1 or not 0 < abs(each) <= MOST_STEPS for each in multiples):
            problem = "must have steps that divide those of its measures, at most 2^53 to one"
            raise ParameterError(parameter=f"derived '{self.name}'", problem=problem)
        if self.signed != any(share < 0 or base.signed for base, share in self.derived):
            raise ParameterError(parameter=f"derived '{self.name}'", problem="has the wrong sign")

    @classmethod
    def linear(cls, name: str, form: Mapping["Measure", Fraction]) -> "Measure":
        """Return a linear form of other measures as a measure.

        Its step is the greatest common step of their products with the coefficients.

        Args:
            name: The name of the form.
            form: The coefficient of each measure.

        Returns:
            The derived measure.

        Raises:
            ParameterError: The form is always 0, has too many measures, or a measure is derived itself.

        Example:
            >>> pay, emp = Measure("pay", Fraction(1, 2)), Measure("emp")
            >>> Measure.linear("rest", {pay: Fraction(1), emp: Fraction(-45)}).step
            Fraction(1, 2)
        """
        kept = {base: share for base, share in form.items() if share}
        if not kept:
            raise ParameterError(parameter=f"derived '{name}'", problem="must not be 0 for every record")
        signed = any(share < 0 or base.signed for base, share in kept.items())
        step = common_step([abs(share) * base.step for base, share in kept.items()])
        return cls(name, step, signed, tuple(sorted(kept.items())))

    def inputs(self) -> tuple["Measure", ...]:
        """Return the measures that a record holds."""
        return tuple(base for base, _ in self.derived) or (self,)

    def multiples(self) -> tuple[tuple["Measure", int], ...]:
        """Return the derived measure's steps per step of each input."""
        return tuple((base, int(share * base.step / self.step)) for base, share in self.derived)

    def value(self, record: Mapping[str, Fraction]) -> Fraction:
        """The value of a record, with its sign.

        Args:
            record: The amounts of the measures that the record holds.

        Returns:
            The exact value.
        """
        if not self.derived:
            return record[self.name]
        return sum((share * base.snap(record[base.name]) for base, share in self.derived), Fraction(0))

    def snap(self, value: Fraction) -> Fraction:
        """A value, or the lattice point it is as good as on.

        Args:
            value: An amount of this measure.

        Returns:
            The lattice point if the value is within 2^-50 of it, relatively; else the value.
        """
        point = self.step * round(value / self.step)
        return point if abs(value - point) <= SNAP * abs(value) else value

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
        """Return the value, or refuse it if off the lattice.

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
        """Return the value's number of steps, rounded up.

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
        form = [self.name, fraction_text(self.step), "signed" if self.signed else "nonnegative"]
        if not self.derived:
            return form
        return [*form, [[*base.to_json(), fraction_text(share)] for base, share in self.derived]]

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
            case [str(name), str(step), "signed" | "nonnegative" as sign, [*rows]] if rows:
                return cls(name, positive(step, parameter="step"), sign == "signed", tuple(map(_share_from_json, rows)))
            case _:
                raise UnknownFormError(what="measure", found=form)


def _share_from_json(row: Any) -> tuple[Measure, Fraction]:
    match row:
        case [name, step, sign, str(share)]:
            return Measure.from_json([name, step, sign]), _coefficient(share)
        case _:
            raise UnknownFormError(what="measure", found=row)


def _coefficient(text: str) -> Fraction:
    try:
        return read_fraction(text)
    except (ValueError, ZeroDivisionError):
        raise UnknownFormError(what="number", found=text) from None


def common_step(steps: Sequence[Fraction]) -> Fraction:
    """The greatest number that every step is a whole multiple of."""
    whole = lcm(*(step.denominator for step in steps))
    return Fraction(gcd(*(int(step * whole) for step in steps)), whole)


def check_one_measure_a_name(measures: Iterable[Measure]) -> None:
    """Refuse two measures of one name: the policy would be ambiguous."""
    for first, second in pairwise(sorted({each for measure in measures for each in (measure, *measure.inputs())})):
        if first.name == second.name:
            raise ParameterError(
                parameter=f"measure '{first.name}'",
                problem="is used with different steps, signs or derivations in one policy",
            )
