"""Functions written as text, "(x / 50) ** 0.5 + log(x / 10 + 1)": a grammar of seven rules and no evaluation of code."""

import re
from fractions import Fraction
from typing import TypeAlias

from recordwise.errors import ParameterError
from recordwise.exact.functions import Function, log, x
from recordwise.exact.numbers import read_fraction

LONGEST = 500
DEEPEST = 40
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)|(?P<name>[A-Za-z_]+)|(?P<sign>\*\*|[-+*/^()]))"
)
ADVICE = "Use x, numbers, + * / **, log(...), sqrt(...) and parentheses."
Value: TypeAlias = Function | Fraction


def parse_function(text: str) -> Function:
    """Parse an increasing function of x; anything outside the grammar is refused."""
    if len(text) > LONGEST:
        raise _refused(f"has more than {LONGEST} characters")
    reader = _Reader(_tokens(text))
    found = reader.sum(0)
    if reader.here:
        raise _refused(f"has an unexpected '{reader.here}'")
    if not isinstance(found, Function):
        raise _refused("does not depend on x")
    return found


def _refused(problem: str) -> ParameterError:
    return ParameterError(parameter="function", problem=problem, advice=ADVICE)


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise _refused(f"contains '{text[at:].strip()[0]}', which is not allowed in a function")
        found.append(match[match.lastgroup or 0])
        at = match.end()
    return found


class _Reader:
    """Recursive descent: sum, product, power, atom."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def here(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self.here
        self._at += 1
        return token

    def sum(self, depth: int) -> Value:
        total = self._product(depth)
        while self.here in ("+", "-"):
            if self._take() == "-":
                raise _refused("contains a difference, which may not be increasing")
            total = _added(total, self._product(depth))
        return total

    def _product(self, depth: int) -> Value:
        total = self._power(depth)
        while self.here in ("*", "/"):
            total = _times(total, self._power(depth)) if self._take() == "*" else _over(total, self._power(depth))
        return total

    def _power(self, depth: int) -> Value:
        base = self._atom(depth)
        if self.here not in ("**", "^"):
            return base
        self._take()
        exponent = self._atom(depth)
        if isinstance(exponent, Function):
            raise _refused("has x in an exponent")
        if isinstance(base, Function):
            return base**exponent
        if exponent.denominator != 1 or abs(exponent) > 100 or (base == 0 and exponent < 0):
            raise _refused("raises a number to a power that cannot be computed exactly")
        return base**exponent.numerator

    def _atom(self, depth: int) -> Value:
        token = self._take()
        if depth > DEEPEST:
            raise _refused(f"is nested more than {DEEPEST} levels deep")
        if token == "(":
            return self._closed(depth)
        if token == "x":
            return x
        if token in ("log", "ln", "sqrt") and self._take() == "(":
            inner = self._closed(depth)
            if not isinstance(inner, Function):
                raise _refused(f"takes the {token} of a number; write the number itself")
            return inner ** Fraction(1, 2) if token == "sqrt" else log(inner)
        if token[:1].isdigit() or token[:1] == ".":
            return _number(token)
        raise _refused(f"has an unexpected '{token}'" if token else "ends too early")

    def _closed(self, depth: int) -> Value:
        inner = self.sum(depth + 1)
        if self._take() != ")":
            raise _refused("has an unclosed parenthesis")
        return inner


def _number(token: str) -> Fraction:
    try:
        return read_fraction(token)
    except ValueError:
        raise _refused("contains a number that is too long") from None


def _added(left: Value, right: Value) -> Value:
    if isinstance(left, Fraction) and isinstance(right, Function):
        return right + left
    return left + right


def _times(left: Value, right: Value) -> Value:
    if isinstance(left, Function) and isinstance(right, Function):
        raise _refused("multiplies x by x; write a power")
    return left * right  # type: ignore[operator]


def _over(left: Value, right: Value) -> Value:
    if isinstance(right, Function):
        raise _refused("divides by x, which is not increasing")
    if right == 0:
        raise _refused("divides by 0")
    return left / right
