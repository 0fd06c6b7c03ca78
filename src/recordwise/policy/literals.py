"""The public values in conditions, in canonical form: text, boolean or exact number."""

from collections.abc import Iterable
from datetime import date
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from recordwise.exact.numbers import fraction_text, moderate, rational


class Truth(Enum):
    """A boolean, kept apart from 1 and 0: in Python ``True == 1``, and two different conditions would become one."""

    TRUE = True
    FALSE = False


Value: TypeAlias = str | Truth | Fraction
"""A literal: text, boolean or exact number."""
Cell: TypeAlias = Value | date
"""What a record can hold in a column: what a literal can be, or a date, of which conditions see the parts."""


def literal(value: Any) -> Value:
    """A public value in canonical form: text, boolean or exact number."""
    if isinstance(value, (str, Truth)):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, (bool, np.bool_)):
        return Truth(bool(value))
    return moderate(rational(value, parameter="value"), parameter="value")


def plain_value(value: Value) -> str | bool | Fraction:
    """A literal as a user would write it."""
    return value.value if isinstance(value, Truth) else value


def value_key(value: Value) -> tuple[str, Any]:
    return (type(value).__name__, value.value if isinstance(value, Truth) else value)


def value_json(value: Value) -> Any:
    if isinstance(value, Truth):
        return value.value
    return {"number": fraction_text(value)} if isinstance(value, Fraction) else value


def float_comparison(order: str, bound: Fraction) -> tuple[str, float]:
    """The same comparison for floats read by their shortest decimal.

    Reading is increasing and ``float`` undoes it, so only the float next to the bound needs care: 0.3333333333333333 is below 1/3.
    """
    near = float(bound)
    read = Fraction(repr(near))
    if read == bound:
        return order, near
    looser = {"<": "<=", "<=": "<=", ">": ">", ">=": ">"}
    stricter = {"<": "<", "<=": "<", ">": ">=", ">=": ">="}
    return (looser if read < bound else stricter)[order], near


def float_members(values: Iterable[Value]) -> list[float]:
    """The floats that, read by their shortest decimal, are among the values."""
    numbers = [value for value in values if isinstance(value, Fraction)]
    return [float(value) for value in numbers if Fraction(repr(float(value))) == value]
