"""Linear forms with exact coefficients, such as ``payann - 45 * emp``: read from text and written again."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from recordwise.errors import SqlError
from recordwise.plan.sql.gate import read_statement
from recordwise.plan.sql.grammar import column_name, literal, only, refused

Linear: TypeAlias = tuple[tuple[str, Fraction], ...]
"""Names with their coefficients, none of them 0, in the order in which they were written."""
ADVICE = "Write names, numbers, +, -, * and /, as in payann - 45 * emp."
_Affine: TypeAlias = tuple[dict[str, Fraction], Fraction]
"""The coefficient of each name, and a constant."""


def parse_linear(text: str) -> Linear:
    """A linear form given as text, through the same gate as whole statements.

    Example:
        >>> parse_linear("payann - 45 * emp")
        (('payann', Fraction(1, 1)), ('emp', Fraction(-45, 1)))
    """
    try:
        statement = read_statement(f"SELECT {text}")
    except SqlError:
        raise SqlError(construct="cannot parse the linear form", advice=ADVICE) from None
    if type(statement) is not exp.Select:
        raise refused(statement)
    only(statement, "expressions")
    if len(statement.expressions) != 1:
        raise SqlError(construct="more than one linear form", advice=ADVICE)
    return linear(statement.expressions[0], column_name)


def linear(node: exp.Expr, name: Callable[[exp.Expr], str]) -> Linear:
    """A linear form out of the parser's tree; ``name`` reads what stands for a quantity, or refuses it."""
    terms, constant = _affine(node, name)
    kept = {each: share for each, share in terms.items() if share}
    if constant or not kept:
        raise SqlError(construct="a sum with a constant in it" if kept else "a form that is always 0", advice=ADVICE)
    return tuple(kept.items())


def _affine(node: exp.Expr, name: Callable[[exp.Expr], str]) -> _Affine:
    kind = type(node)
    if kind is exp.Paren or kind is exp.Neg:
        only(node, "this")
        return _added(({}, Fraction(0)), _affine(node.this, name), Fraction(1 if kind is exp.Paren else -1))
    if kind is exp.Add or kind is exp.Sub:
        left, right = _sides(node, name)
        return _added(left, right, Fraction(1 if kind is exp.Add else -1))
    if kind is exp.Mul:
        left, right = _sides(node, name)
        (terms, share), (others, factor) = (left, right) if not right[0] else (right, left)
        return _added(({}, Fraction(0)), (terms, share), factor) if not others else _refuse("a product of two names")
    if kind is exp.Div:
        left, (others, divisor) = _sides(node, name)
        return _added(({}, Fraction(0)), left, 1 / divisor) if not others and divisor else _refuse("this division")
    if kind is exp.Literal and not node.is_string:
        number = literal(node)
        assert isinstance(number, Fraction)
        return {}, number
    return {name(node): Fraction(1)}, Fraction(0)


def _refuse(construct: str) -> _Affine:
    raise SqlError(construct=f"{construct} is not linear", advice=ADVICE)


def _sides(node: exp.Expr, name: Callable[[exp.Expr], str]) -> tuple[_Affine, _Affine]:
    only(node, "this", "expression", "typed", "safe")
    return _affine(node.this, name), _affine(node.args["expression"], name)


def _added(left: _Affine, right: _Affine, factor: Fraction) -> _Affine:
    terms = dict(left[0])
    for each, share in right[0].items():
        terms[each] = terms.get(each, Fraction(0)) + factor * share
    return terms, left[1] + factor * right[1]


def linear_text(form: Iterable[tuple[str, Fraction]]) -> str:
    """The form as text that is read again as the same form."""
    text = ""
    for name, share in form:
        sign = (" - " if share < 0 else " + ") if text else ("-" if share < 0 else "")
        size = abs(share)
        factor = "" if size == 1 else f"{size.numerator} * " if size.denominator == 1 else f"{size} * "
        text += sign + factor + _identifier(name)
    return text


def _identifier(name: str) -> str:
    """Bare where that is the same to every parser, else in quotes."""
    plain = name.isascii() and name.isidentifier() and name == name.lower() and len(name) > 1
    return name if plain else '"' + name.replace('"', '""') + '"'
