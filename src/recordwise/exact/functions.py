r"""Increasing functions of a value x >= 0, as public expressions.

They are powers, logarithms, positive weights, shifts and sums. Mechanisms are built from them: the transform of a transformation
mechanism, the exponent of an additive one. Because they are expressions and not Python callables, they can be published, saved,
printed as LaTeX, and run in SQL and JavaScript, and their concavity is certified by rules on the expression (T-CONCAVE,
docs/theory/policy.md) rather than sampled::

    from recordwise.exact.functions import log, x
    fourth_root = (x + 1) ** 0.25
    polylog = 2 * log(x / 5 + 3) ** 2
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, TypeVar

from flint import arb

from recordwise.errors import ParameterError, UnknownFormError
from recordwise.exact.arithmetic import Arithmetic, BallArithmetic
from recordwise.exact.numbers import (
    Number,
    ball,
    bits_in_force,
    fraction_text,
    moderate,
    nonnegative,
    positive,
    working_precision,
)
from recordwise.exact.text import latex_factor, latex_number

__all__ = ["Function", "from_json", "log", "x"]
T = TypeVar("T")
CONSTANT_BITS = 256
MOST_NESTED = 6
"""The nesting of logarithms and powers that the error bound of whole-column evaluation allows for (T-OUTWARD), and small enough
that the SQL, which must repeat its arguments, stays short."""
MOST_SUMMANDS = 32
LARGEST_POWER = 8


@dataclass(frozen=True)
class Function:
    """An increasing function on [0, inf).

    Build it from ``x`` and ``log`` with ``+``, ``*``, ``/`` and ``**``.
    """

    def _constant(self, name: Hashable, bits: int, make: Callable[[], arb]) -> arb:
        """Return a cached constant of the formula at a precision."""
        known: dict[Hashable, arb] = vars(self).setdefault("_constants", {})
        if (name, bits) not in known:
            with working_precision(bits):
                known[name, bits] = make()
        return known[name, bits]

    def value(self, arithmetic: Arithmetic[T], x: T) -> T:
        """f(x).

        Args:
            arithmetic: The number system to compute in.
            x: The argument.

        Returns:
            The value, in that number system.
        """
        raise NotImplementedError

    def increase(self, arithmetic: Arithmetic[T], x: T) -> T:
        """f(x) - f(0), without cancellation for small x.

        Args:
            arithmetic: The number system to compute in.
            x: The argument.

        Returns:
            The value, in that number system.
        """
        raise NotImplementedError

    def at_zero(self) -> arb:
        """f(0) as a narrow ball."""
        bits = max(CONSTANT_BITS, bits_in_force())
        return self._constant("at zero", bits, lambda: self.value(BallArithmetic(), arb(0)))

    def nesting_depth(self) -> int:
        """How deeply logarithms and powers are nested."""
        return 0

    def concave(self) -> str:
        """Return the rule that certifies concavity on [0, inf).

        Raise ParameterError if there is none.
        """
        raise NotImplementedError

    def after(self, inner: "Function") -> "Function":
        """The composition: this function of ``inner``.

        Args:
            inner: The inner function.

        Returns:
            The function.
        """
        raise NotImplementedError

    def to_json(self) -> Any:
        """The saved form."""
        raise NotImplementedError

    def to_latex(self, argument: str) -> str:
        """The function as LaTeX.

        Args:
            argument: What stands for x.

        Returns:
            The text.
        """
        raise NotImplementedError

    def __add__(self, other: "Function | Number") -> "Function":
        return add(self, other)

    __radd__ = __add__

    def __mul__(self, weight: Number) -> "Function":
        return Sum.of([(positive(weight, parameter="weight"), self)], Fraction(0))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Number) -> "Function":
        return self * (1 / positive(divisor, parameter="divisor"))

    def __pow__(self, exponent: Number) -> "Function":
        power = positive(exponent, parameter="exponent")
        return self if power == 1 else Power(self, power)


@dataclass(frozen=True, slots=True)
class Variable(Function):
    """x itself."""

    def value(self, arithmetic: Arithmetic[T], x: T) -> T:
        return x

    def increase(self, arithmetic: Arithmetic[T], x: T) -> T:
        return x

    def concave(self) -> str:
        return "x is affine"

    def after(self, inner: Function) -> Function:
        return inner

    def to_json(self) -> Any:
        return "x"

    def to_latex(self, argument: str) -> str:
        return argument


@dataclass(frozen=True, slots=True)
class Sum(Function):
    """A constant plus positively weighted functions."""

    terms: tuple[tuple[Fraction, Function], ...]
    shift: Fraction

    def __post_init__(self) -> None:
        if not 1 <= len(self.terms) <= MOST_SUMMANDS:
            raise ParameterError(parameter="function", problem=f"must be a sum of at most {MOST_SUMMANDS} parts")
        moderate(self.shift, parameter="shift")
        for weight, _ in self.terms:
            moderate(weight, parameter="weight")

    def nesting_depth(self) -> int:
        return max(part.nesting_depth() for _, part in self.terms)

    @classmethod
    def of(cls, terms: list[tuple[Fraction, Function]], shift: Fraction) -> "Function":
        """Flatten nested sums and merge equal functions, in a canonical order."""
        merged: dict[Function, Fraction] = {}
        for weight, function in terms:
            inner = function.terms if isinstance(function, Sum) else ((Fraction(1), function),)
            shift += weight * function.shift if isinstance(function, Sum) else 0
            for inner_weight, part in inner:
                merged[part] = merged.get(part, Fraction(0)) + weight * inner_weight
        parts = tuple((weight, part) for part, weight in sorted(merged.items(), key=lambda item: repr(item[0])))
        return parts[0][1] if shift == 0 and len(parts) == 1 and parts[0][0] == 1 else cls(parts, shift)

    def value(self, arithmetic: Arithmetic[T], x: T) -> T:
        *weights, shift = self._balls()
        total = self._weighted_sum(arithmetic, weights, [part.value(arithmetic, x) for _, part in self.terms])
        return total if shift is None else arithmetic.add(total, arithmetic.constant(shift))

    def _balls(self) -> tuple[arb | None, ...]:
        """Return the weights and the shift at the precision in force.

        None for a weight of 1 and for a shift of 0, which comes last.
        """
        known: dict[int, tuple[arb | None, ...]] = vars(self).setdefault("_known_balls", {})
        bits = bits_in_force()
        if bits not in known:
            with working_precision(bits):
                weights = [None if weight == 1 else ball(weight) for weight, _ in self.terms]
                known[bits] = (*weights, ball(self.shift) if self.shift else None)
        return known[bits]

    def increase(self, arithmetic: Arithmetic[T], x: T) -> T:
        return self._weighted_sum(arithmetic, self._balls(), [part.increase(arithmetic, x) for _, part in self.terms])

    def _weighted_sum(self, arithmetic: Arithmetic[T], weights: Iterable[arb | None], values: list[T]) -> T:
        weighted = [
            value if weight is None else arithmetic.multiply(arithmetic.constant(weight), value)
            for weight, value in zip(weights, values)
        ]
        return weighted[0] if len(weighted) == 1 else reduce(arithmetic.add, weighted)

    def concave(self) -> str:
        reasons = [part.concave() for _, part in self.terms]
        return reasons[0] if len(reasons) == 1 else "a positive sum of concave functions: " + "; ".join(reasons)

    def after(self, inner: Function) -> Function:
        return Sum.of([(weight, part.after(inner)) for weight, part in self.terms], self.shift)

    def to_json(self) -> Any:
        parts = [[fraction_text(weight), part.to_json()] for weight, part in self.terms]
        return {"sum": parts, "shift": fraction_text(self.shift)}

    def to_latex(self, argument: str) -> str:
        parts = [f"{latex_factor(weight)}{part.to_latex(argument)}" for weight, part in self.terms]
        return " + ".join(parts + ([latex_number(self.shift)] if self.shift else []))


@dataclass(frozen=True, slots=True)
class Power(Function):
    """A positive power of a nonnegative function."""

    base: Function
    exponent: Fraction

    def __post_init__(self) -> None:
        check_nesting(self.base)
        if not moderate(self.exponent, parameter="exponent") <= LARGEST_POWER:
            raise ParameterError(parameter="exponent", problem=f"must be at most {LARGEST_POWER}")
        if not (self.base.at_zero() > 0 or self.base.at_zero() == 0):
            raise ParameterError(
                parameter="function", problem="raises an expression that is negative at x = 0 to a power"
            )

    def nesting_depth(self) -> int:
        return self.base.nesting_depth() + 1

    def value(self, arithmetic: Arithmetic[T], x: T) -> T:
        return arithmetic.power(self.base.value(arithmetic, x), self.exponent)

    def increase(self, arithmetic: Arithmetic[T], x: T) -> T:
        step = self.base.increase(arithmetic, x)
        start = self.base.at_zero()
        if start == 0:
            return arithmetic.power(step, self.exponent)
        relative = arithmetic.divide(step, arithmetic.constant(start))
        return arithmetic.multiply(
            arithmetic.constant(self.at_zero()), arithmetic.power_less_one(relative, self.exponent)
        )

    def concave(self) -> str:
        if self.exponent <= 1:
            return f"a power {self.exponent} <= 1 of a concave function ({self.base.concave()})"
        if isinstance(self.base, Log):
            inner = self.base.argument.concave()
            with working_precision(CONSTANT_BITS):
                needed = ball(self.exponent - 1).exp()
            if self.base.argument.at_zero() >= needed:
                return f"ln(u)^{self.exponent} is concave for u >= e^{self.exponent - 1}, which u(0) reaches ({inner})"
            raise ParameterError(
                parameter="function",
                problem=f"is not concave: ln(u)^{self.exponent} needs u(0) >= e^{self.exponent - 1} = {float(needed):.6g}",
                advice="Raise the offset.",
            )
        raise ParameterError(parameter="function", problem=f"is not certified concave: power {self.exponent} above 1")

    def after(self, inner: Function) -> Function:
        return Power(self.base.after(inner), self.exponent)

    def to_json(self) -> Any:
        return {"power": self.base.to_json(), "exponent": fraction_text(self.exponent)}

    def to_latex(self, argument: str) -> str:
        base = self.base.to_latex(argument)
        if self.exponent == Fraction(1, 2):
            return rf"\sqrt{{{base}}}"
        if self.exponent.numerator == 1:
            return rf"\sqrt[{self.exponent.denominator}]{{{base}}}"
        wrapped = base if isinstance(self.base, Variable) else rf"\left({base}\right)"
        return rf"{wrapped}^{{{latex_number(self.exponent)}}}"


@dataclass(frozen=True, slots=True)
class Log(Function):
    """The natural logarithm of a function that is positive at 0."""

    argument: Function

    def __post_init__(self) -> None:
        check_nesting(self.argument)
        if not self.argument.at_zero() > 0:
            raise ParameterError(
                parameter="offset", problem="must be above 0 inside a logarithm", advice="Write log(x + offset)."
            )

    def nesting_depth(self) -> int:
        return self.argument.nesting_depth() + 1

    def value(self, arithmetic: Arithmetic[T], x: T) -> T:
        start = self._constant("start", bits_in_force(), lambda: self.argument.at_zero().log())
        return arithmetic.add(arithmetic.constant(start), self.increase(arithmetic, x))

    def increase(self, arithmetic: Arithmetic[T], x: T) -> T:
        step = self.argument.increase(arithmetic, x)
        return arithmetic.log1p(arithmetic.divide(step, arithmetic.constant(self.argument.at_zero())))

    def concave(self) -> str:
        return f"the logarithm of a concave function ({self.argument.concave()})"

    def after(self, inner: Function) -> Function:
        return Log(self.argument.after(inner))

    def to_json(self) -> Any:
        return {"log": self.argument.to_json()}

    def to_latex(self, argument: str) -> str:
        return rf"\ln\left({self.argument.to_latex(argument)}\right)"


def check_nesting(inner: Function) -> None:
    """Refuse a function that is nested too deeply."""
    if not isinstance(inner, Function):
        raise ParameterError(parameter="function", problem=f"must be built from x, not {type(inner).__name__}")
    if inner.nesting_depth() >= MOST_NESTED:
        raise ParameterError(
            parameter="function", problem=f"nests more than {MOST_NESTED} logarithms and powers inside one another"
        )


x = Variable()
"""The value itself: the starting point of every function."""


def log(argument: Function) -> Function:
    """The natural logarithm, ``log(x + offset)``.

    Args:
        argument: An expression of x that is at least 1 at 0.

    Returns:
        The function.
    """
    return Log(argument)


def add(left: Function, right: "Function | Number") -> Function:
    """Return the sum of functions, or of function and nonnegative constant."""
    if isinstance(right, Function):
        return Sum.of([(Fraction(1), left), (Fraction(1), right)], Fraction(0))
    return Sum.of([(Fraction(1), left)], nonnegative(right, parameter="shift"))


def from_json(form: Any) -> Function:
    """Read back what ``to_json`` wrote; an unknown form is refused.

    Args:
        form: The saved form, as read from JSON.

    Returns:
        The function.
    """
    # Sums alternate with the nested layers, so a form that can be built is at most this deep.
    return _from_json(form, 2 * MOST_NESTED + 1)


def _from_json(form: Any, depth: int) -> Function:
    if depth < 0:
        raise UnknownFormError(what="function", found="too deeply nested")
    match form:
        case "x":
            return x
        case {"sum": [*parts], "shift": str(shift), **rest} if parts and not rest:
            terms = [_term_from_json(part, depth - 1) for part in parts]
            return Sum.of(terms, nonnegative(shift, parameter="shift"))
        case {"power": base, "exponent": str(exponent), **rest} if not rest:
            return _from_json(base, depth - 1) ** positive(exponent, parameter="exponent")
        case {"log": argument, **rest} if not rest:
            return Log(_from_json(argument, depth - 1))
        case _:
            raise UnknownFormError(what="function", found=form)


def _term_from_json(form: Any, depth: int) -> tuple[Fraction, Function]:
    match form:
        case [str(weight), part]:
            return positive(weight, parameter="weight"), _from_json(part, depth)
        case _:
            raise UnknownFormError(what="function term", found=form)
