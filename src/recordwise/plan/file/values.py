"""Values as the text of a plan file holds them: numbers, conditions, functions, thresholds and grids, all of them exact."""

from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from recordwise.errors import ParameterError
from recordwise.exact.functions import Function, Log, Power, Sum, Variable
from recordwise.mechanisms.quantile import Grid
from recordwise.plan.fields import DatePart, Prefix
from recordwise.plan.predicates import And, Compare, In, IsNull, Not, Operand, Or, Predicate
from recordwise.policy.constructors import By
from recordwise.policy.literals import Truth, Value


def predicate_text(predicate: Predicate) -> str:
    """A condition as the SQL it was written in."""
    match predicate:
        case And(parts) | Or(parts):
            joined = f" {type(predicate).__name__.upper()} ".join(predicate_text(part) for part in parts)
            return f"({joined})"
        case Not(part):
            return f"NOT ({predicate_text(part)})"
        case IsNull(operand):
            return f"{_operand(operand)} IS NULL"
        case In(operand, literals):
            return f"{_operand(operand)} IN ({', '.join(_literal(each) for each in literals)})"
        case Compare(operand, operator, literal):
            return f"{_operand(operand)} {operator} {_literal(literal)}"


def _operand(operand: Operand) -> str:
    if isinstance(operand, Prefix):
        return f"left({_identifier(operand.column)}, {operand.length})"
    if isinstance(operand, DatePart):
        return f"EXTRACT({operand.part.upper()} FROM {_identifier(operand.column)})"
    return _identifier(operand.name)


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Any) -> str:
    if isinstance(value, Truth):
        return "TRUE" if value.value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    number = exact_number(value)
    return f"{number:f}" if isinstance(number, Decimal) else str(number)


def toml_value(value: Any) -> Any:
    """A value as tomli-w takes it."""
    match value:
        case bool() | str() | Decimal():
            return value
        case int() | Fraction():
            return exact_number(Fraction(value))
        case Function():
            return exact_function(value)
        case By():
            groups = {_group_value(group): number for group, number in value.values}
            given: dict[str, Any] = {"by": value.column.name, "values": groups}
            given |= {"length": value.column.length} if value.column.length else {}
            return toml_value(given | ({"default": value.default} if value.default else {}))
        case Grid():
            return toml_value({value.spacing: [value.low, value.high], "bits": value.bits})
        case dict():
            return {str(getattr(name, "name", name)): toml_value(each) for name, each in value.items()}
        case date():
            return value
        case list() | tuple():
            return [toml_value(each) for each in value]
        case _:
            raise ParameterError(parameter="plan", problem=f"cannot hold a {type(value).__name__}")


def _group_value(value: Value) -> str:
    """A group's value as a key of TOML, which writes every key as text."""
    return str(value.value).lower() if isinstance(value, Truth) else str(value)


def exact_number(value: Fraction) -> int | Decimal | str:
    """The same number as TOML can hold it: whole, as a decimal of as many digits as it needs, or else a fraction in quotes."""
    if value.denominator == 1:
        return value.numerator
    powers, rest = {2: 0, 5: 0}, value.denominator
    for prime in powers:
        while rest % prime == 0:
            rest, powers[prime] = rest // prime, powers[prime] + 1
    if rest != 1:
        return str(value)
    places = max(powers.values())
    digits = str(abs(value.numerator) * 10**places // value.denominator)
    # Built from its digits: arithmetic on decimals would round to the precision of the context.
    return Decimal((int(value < 0), tuple(map(int, digits)), -places))


def exact_function(function: Function) -> str:
    """A function as a plan file writes it, every number in full."""
    match function:
        case Sum(terms, shift):
            parts = [_inner(part) if weight == 1 else f"{_fraction(weight)} * {_inner(part)}" for weight, part in terms]
            return " + ".join([*parts, *([_fraction(shift)] if shift else [])])
        case Power(base, exponent):
            return f"{_inner(base)} ** {_fraction(exponent)}"
        case Log(argument):
            return f"log({exact_function(argument)})"
        case _:
            return "x"


def _inner(function: Function) -> str:
    text = exact_function(function)
    return text if isinstance(function, Log | Variable) else f"({text})"


def _fraction(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"({value.numerator} / {value.denominator})"
