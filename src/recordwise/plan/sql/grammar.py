"""Conversion of the parser's tree; anything not handled is refused."""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from recordwise.errors import ParameterError, SqlError, expect_kind
from recordwise.plan.expressions import (
    And,
    Case,
    Compare,
    DatePart,
    Expression,
    Field,
    In,
    IsNull,
    Linear,
    Literal,
    Not,
    Operand,
    Or,
    Predicate,
    Prefix,
)
from recordwise.plan.sql.gate import UNKNOWN, read_statement
from recordwise.policy.columns import PARTS, Truth

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
ADVICE = (
    "Allowed are comparisons with constants, IN, BETWEEN, IS NULL, AND, OR, NOT, LEFT(column, n), EXTRACT(YEAR FROM column) "
    "and CASE."
)


def parse_predicate(text: str) -> Predicate:
    """Return a condition from text, screened like a full statement."""
    try:
        statement = read_statement(f"SELECT 1 WHERE {text}")
    except SqlError as error:
        if error.construct != UNKNOWN:
            raise
        raise SqlError(construct="cannot parse the condition", advice=ADVICE) from None
    if type(statement) is not exp.Select:
        raise unsupported(statement)
    only(statement, "expressions", "where")
    where = statement.args.get("where")
    if where is None or statement.expressions != [exp.Literal.number(1)]:
        raise SqlError(construct="text after the condition")
    return predicate(where.this)


def unsupported(node: exp.Expr) -> SqlError:
    """The error for an unsupported node, by name."""
    name = node.name if isinstance(node, exp.Anonymous) else type(node).key
    return SqlError(construct=f"{name.upper()[:40]} is not on the whitelist", advice=ADVICE)


def only(node: exp.Expr, *allowed: str) -> None:
    """Refuse a node with other parts, where modifiers can hide."""
    for part, value in node.args.items():
        if value not in (None, False, []) and part not in allowed:
            raise SqlError(construct=f"{part.strip('_').upper()} in {type(node).key.upper()} is not on the whitelist")


def predicate(node: exp.Expr) -> Predicate:
    """A predicate from the tree."""
    kind = type(node)
    if kind is exp.Paren:
        only(node, "this")
        return predicate(node.this)
    if kind is exp.And or kind is exp.Or:
        return _chain(node)
    if kind is exp.Not:
        only(node, "this")
        return Not(predicate(node.this))
    if kind in _OPERATORS:
        return _compare(node)
    if kind is exp.In:
        only(node, "this", "expressions")
        if not node.expressions:
            raise SqlError(construct="IN without values")
        return In(operand(node.this), tuple(literal(each) for each in node.expressions))
    if kind is exp.Between:
        only(node, "this", "low", "high")
        low, high = Compare(operand(node.this), ">=", literal(node.args["low"])), literal(node.args["high"])
        return And((low, Compare(low.operand, "<=", high)))
    if kind is exp.Is:
        return _is_null(node)
    raise unsupported(node)


def _chain(node: exp.Expr) -> Predicate:
    """Return a run of ANDs or ORs, flattened without recursion."""
    kind, parts = type(node), []
    while type(node) is kind:
        only(node, "this", "expression")
        parts.append(predicate(node.args["expression"]))
        node = node.this
    parts.append(predicate(node))
    return And(tuple(reversed(parts))) if kind is exp.And else Or(tuple(reversed(parts)))


def _compare(node: exp.Expr) -> Compare:
    only(node, "this", "expression")
    operator, left, right = _OPERATORS[type(node)], node.this, node.args["expression"]
    if isinstance(left, exp.Literal | exp.Neg | exp.Boolean):
        return Compare(operand(right), _MIRRORED[operator], literal(left))
    return Compare(operand(left), operator, literal(right))


def _is_null(node: exp.Expr) -> IsNull:
    only(node, "this", "expression")
    if type(node.args["expression"]) is not exp.Null:
        raise unsupported(node)
    return IsNull(operand(node.this))


def operand(node: exp.Expr) -> Operand:
    """A column, a prefix of one, or a part of a date."""
    kind = type(node)
    if kind is exp.Paren:
        only(node, "this")
        return operand(node.this)
    if kind is exp.Column:
        return Field(column_name(node))
    if kind is exp.Extract:
        return _date_part(node)
    if kind is exp.Left:
        only(node, "this", "expression")
        return _prefix(node.this, node.args["expression"])
    if kind is exp.Substring:
        only(node, "this", "start", "length")
        if node.args.get("start") != exp.Literal.number(1) or node.args.get("length") is None:
            raise SqlError(
                construct="SUBSTRING that does not start at 1 with a length", advice="Write LEFT(column, n)."
            )
        return _prefix(node.this, node.args["length"])
    raise unsupported(node)


def _date_part(node: exp.Expr) -> DatePart:
    only(node, "this", "expression")
    part, column = str(node.this.name).lower(), node.args["expression"]
    if part not in PARTS or type(column) is not exp.Column:
        raise SqlError(
            construct="EXTRACT of something other than a part of a column",
            advice="Write EXTRACT(YEAR FROM column); QUARTER, MONTH, WEEK and ISOYEAR work too.",
        )
    return DatePart(column_name(column), part)


def _prefix(column: exp.Expr, length: exp.Expr) -> Prefix:
    number = literal(length)
    if type(column) is not exp.Column or not isinstance(number, Fraction) or number.denominator != 1:
        raise SqlError(
            construct="a prefix of something other than a column, or a prefix length that is not a whole number"
        )
    try:
        return Prefix(column_name(column), int(number))
    except ParameterError as error:
        raise SqlError(construct=str(error).rstrip(".")) from None


def column_name(node: exp.Expr) -> str:
    """The bare name of a column; qualified names and stars are refused."""
    parts = [node.args[part].name for part in ("catalog", "db", "table") if node.args.get(part) is not None]
    if parts and type(node.this) is exp.Identifier:
        dotted = ".".join((*parts, node.this.name))
        raise SqlError(
            construct="a dot outside of double quotes",
            advice=f'A column of this name is written "{dotted[:80]}", in double quotes.',
        )
    only(node, "this")
    identifier = node.this
    if type(identifier) is not exp.Identifier:
        raise unsupported(identifier)
    return str(identifier.this)


def literal(node: exp.Expr) -> Literal:
    """A constant."""
    kind = type(node)
    if kind is exp.Boolean:
        return Truth(bool(node.this))
    if kind is exp.Neg and type(node.this) is exp.Literal and not node.this.is_string:
        return -_number(node.this.this)
    if kind is exp.Literal:
        return str(node.this) if node.is_string else _number(node.this)
    raise SqlError(construct=f"{type(node).key.upper()} where a constant is expected")


def _number(text: str) -> Fraction:
    """Return a number from its digits; refuse long or exponent forms."""
    if len(text) > 60 or not text.replace(".", "", 1).isdigit() or not text.isascii():
        raise SqlError(construct="a number that is not written in plain decimal digits")
    return Fraction(text)


def expression(node: exp.Expr) -> Expression:
    """An expression that GROUP BY may contain."""
    if type(node) is exp.Case:
        return _case(node)
    return operand(node)


def _case(node: exp.Expr) -> Case:
    only(node, "ifs", "default")
    if node.args.get("default") is None:
        raise SqlError(construct="CASE without ELSE", advice="Every record needs a cell: add ELSE.")
    branches = []
    for branch in node.args["ifs"]:
        only(branch, "this", "true")
        branches.append((predicate(branch.this), literal(branch.args["true"])))
    return Case(tuple(branches), literal(node.args["default"]))


def aggregated_column(node: exp.Expr) -> str:
    """The column that an aggregate refers to."""
    if type(node) is not exp.Column:
        raise SqlError(construct=f"an aggregate of {type(node).key.upper()}", advice="Aggregate a plain column.")
    return column_name(node)


# Linear forms with exact coefficients, such as ``payann - 45 * emp``: read from text and written again.


LINEAR_ADVICE = (
    'Write names, numbers, +, -, * and /; a name with one of these signs stands in double quotes: "net-profit".'
)
_PIECE = re.compile(r'"(?:[^"]|"")*"|[-+*/()]|[^-+*/()"]+')
_Affine: TypeAlias = tuple[dict[str, Fraction], Fraction]
"""The coefficient of each name, and a constant."""


def parse_linear(text: str) -> Linear:
    """Return a linear form from text, screened like a full statement.

    A name may have dots and blanks in it.

    Example:
        >>> parse_linear("payann - 45 * emp")
        (('payann', Fraction(1, 1)), ('emp', Fraction(-45, 1)))
        >>> parse_linear("NET.PROFIT")
        (('NET.PROFIT', Fraction(1, 1)),)
    """
    expect_kind(text, str, parameter="a formula", wanted='text such as "NAME - 2 * OTHER"')
    try:
        statement = read_statement(f"SELECT {_quoted_names(text)}")
    except SqlError:
        raise SqlError(construct="cannot parse the linear form", advice=LINEAR_ADVICE) from None
    if type(statement) is not exp.Select:
        raise unsupported(statement)
    only(statement, "expressions")
    if len(statement.expressions) != 1:
        raise SqlError(construct="more than one linear form", advice=LINEAR_ADVICE)
    return linear(statement.expressions[0], column_name)


def _quoted_names(text: str) -> str:
    """Return the text with its names in quotes, so that none is taken for anything else."""
    pieces = _PIECE.findall(text)
    if "".join(pieces) != text:
        raise SqlError(construct="a quote that is not closed")
    return " ".join(_quoted_name(piece.strip()) for piece in pieces if piece.strip())


def _quoted_name(piece: str) -> str:
    if piece[0] != '"' and re.search("[,;'`]", piece):
        raise SqlError(construct="a sign that no name has outside double quotes", advice=LINEAR_ADVICE)
    whole = piece[0] in '"-+*/()' or re.fullmatch(r"[0-9]*[.]?[0-9]+[.]?", piece)
    return piece if whole else '"' + piece + '"'


def linear(node: exp.Expr, name: Callable[[exp.Expr], str]) -> Linear:
    """Return a linear form of what ``name`` reads or refuses."""
    terms, constant = _affine(node, name)
    kept = {each: share for each, share in terms.items() if share}
    if constant or not kept:
        raise SqlError(
            construct="a sum with a constant in it" if kept else "a form that is always 0", advice=LINEAR_ADVICE
        )
    return tuple(kept.items())


def _affine(node: exp.Expr, name: Callable[[exp.Expr], str]) -> _Affine:
    kind = type(node)
    if kind is exp.Paren or kind is exp.Neg:
        only(node, "this")
        return _add(({}, Fraction(0)), _affine(node.this, name), Fraction(1 if kind is exp.Paren else -1))
    if kind is exp.Add or kind is exp.Sub:
        left, right = _sides(node, name)
        return _add(left, right, Fraction(1 if kind is exp.Add else -1))
    if kind is exp.Mul:
        left, right = _sides(node, name)
        (terms, share), (others, factor) = (left, right) if not right[0] else (right, left)
        return _add(({}, Fraction(0)), (terms, share), factor) if not others else _refuse("a product of two names")
    if kind is exp.Div:
        left, (others, divisor) = _sides(node, name)
        return _add(({}, Fraction(0)), left, 1 / divisor) if not others and divisor else _refuse("this division")
    if kind is exp.Literal and not node.is_string:
        number = literal(node)
        assert isinstance(number, Fraction)
        return {}, number
    return {name(node): Fraction(1)}, Fraction(0)


def _refuse(construct: str) -> _Affine:
    raise SqlError(construct=f"{construct} is not linear", advice=LINEAR_ADVICE)


def _sides(node: exp.Expr, name: Callable[[exp.Expr], str]) -> tuple[_Affine, _Affine]:
    only(node, "this", "expression", "typed", "safe")
    return _affine(node.this, name), _affine(node.args["expression"], name)


def _add(left: _Affine, right: _Affine, factor: Fraction) -> _Affine:
    terms = dict(left[0])
    for each, share in right[0].items():
        terms[each] = terms.get(each, Fraction(0)) + factor * share
    return terms, left[1] + factor * right[1]
