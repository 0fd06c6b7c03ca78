"""A second, independent reading of a saved policy: plain formulas in mpmath at 60 digits, sharing no code with the library."""

from fractions import Fraction
from math import ceil
from typing import Any

import mpmath

mpmath.mp.dps = 60


def number(value: Any) -> mpmath.mpf:
    exact = Fraction(str(value)) if not isinstance(value, Fraction) else value
    return mpmath.mpf(exact.numerator) / exact.denominator


def function(form: Any, at: mpmath.mpf) -> mpmath.mpf:
    if form == "x":
        return at
    if "sum" in form:
        return number(form["shift"]) + sum(number(weight) * function(part, at) for weight, part in form["sum"])
    if "power" in form:
        return mpmath.power(function(form["power"], at), number(form["exponent"]))
    return mpmath.log(function(form["log"], at))


def same_kind(left: Any, right: Any) -> bool:
    return type(left) is type(right) and left == right


def cell(record: dict[str, Any], column: Any) -> Any:
    name, length = (column, None) if isinstance(column, str) else column
    value = record[name]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Fraction(str(value))
    return value[:length] if length and isinstance(value, str) else value


def holds(form: dict[str, Any], record: dict[str, Any]) -> bool:
    if "all" in form:
        return all(holds(part, record) for part in form["all"])
    if "any" in form:
        return any(holds(part, record) for part in form["any"])
    if "null" in form:
        return cell(record, form["null"]) is None
    if "not null" in form:
        return cell(record, form["not null"]) is not None
    if "compare" in form:
        value, bound = cell(record, form["compare"]), Fraction(form["bound"])
        if value is None:
            return False
        return {"<": value < bound, "<=": value <= bound, ">": value > bound, ">=": value >= bound}[form["order"]]
    value = cell(record, form["in"] if "in" in form else form["not in"])
    listed = [Fraction(item["number"]) if isinstance(item, dict) else item for item in form["values"]]
    if value is None:
        return False
    return any(same_kind(value, item) for item in listed) == ("in" in form)


def amount(record: dict[str, Any], measure: list[Any]) -> Fraction:
    if len(measure) > 3 and isinstance(measure[3], list):
        return abs(sum((Fraction(share) * Fraction(str(record[name])) for name, *_, share in measure[3]), Fraction(0)))
    return abs(Fraction(str(record[measure[0]])))


def pieces(atom: dict[str, Any], record: dict[str, Any]) -> int:
    return max([1, *(ceil(amount(record, row) / Fraction(row[-1])) for row in atom["at"])])


def table(steps: list[Any], count: int, beyond: mpmath.mpf) -> mpmath.mpf:
    return next((number(level) for argument, level in steps if count <= argument), beyond)


def atom_loss(atom: dict[str, Any], record: dict[str, Any]) -> mpmath.mpf | Fraction:
    """A fraction where that is simple: 60 digits of a loss that is a float exactly may lie above it."""
    kind = atom["kind"]
    if kind == "one":
        return Fraction(1)
    if kind == "pieces":
        return Fraction(pieces(atom, record) ** 2)
    if kind == "piece count":
        return Fraction(pieces(atom, record))
    if kind == "selection delta":
        return table(atom["steps"], pieces(atom, record), mpmath.mpf(1))
    if kind == "maximum":
        return max(loss(policy["rho"], record) for policy in atom["policies"])
    if kind == "pure pieces":
        epsilon = pieces(atom, record) * number(atom["row_epsilon"])
        return min(number(atom["row_rho"]) * pieces(atom, record) ** 2, epsilon * mpmath.tanh(epsilon / 2))
    size = amount(record, atom["measure"])
    if kind == "square":
        return size**2
    if kind == "clamped square":
        return min(size, Fraction(atom["to"])) ** 2
    if kind == "laplace sum":
        return laplace(number(size) / number(atom["scale"]), number(atom["grid"]) / number(atom["scale"]))
    rise = function(atom["function"], number(size)) - function(atom["function"], mpmath.mpf(0))
    if kind.startswith("additive"):
        tanh = rise * mpmath.tanh(rise / 2)
        if kind == "additive":
            return rise if atom["bound"] == "pure" else tanh
        beyond = max(tanh, number(atom["steps"][-1][1]))
        return table(atom["steps"], ceil(size / Fraction(atom["measure"][1])), beyond) if size else mpmath.mpf(0)
    if not size:
        return mpmath.mpf(0)
    if kind == "certified sum":
        knots = [(Fraction(count) * Fraction(atom["measure"][1]), Fraction(level)) for count, level in atom["knots"]]
        return on_lines(size, knots, rise - number(atom["less"]))
    shift = rise + number(atom["grid"])
    if kind == "gaussian transform":
        return shift**2
    return laplace(shift / number(atom["scale"]), number(atom["grid"]) / number(atom["scale"]))


def laplace(epsilon: mpmath.mpf, step: mpmath.mpf) -> mpmath.mpf:
    return epsilon - step / mpmath.sinh(step) * (1 - mpmath.exp(-epsilon))


def on_lines(size: Fraction, knots: list[tuple[Fraction, Fraction]], beyond: mpmath.mpf) -> mpmath.mpf:
    if size > knots[-1][0]:
        return max(beyond, number(knots[-1][1]))
    if size <= knots[0][0]:
        return number(knots[0][1])
    place = next(i for i, knot in enumerate(knots) if knot[0] >= size)
    (left, low), (right, high) = knots[place - 1], knots[place]
    return number(low + (high - low) * (size - left) / (right - left))


def loss(terms: list[Any], record: dict[str, Any]) -> mpmath.mpf:
    """The sum of the terms ``[coefficient, condition, atom]`` of a saved policy."""
    held = [
        (coefficient, atom_loss(atom, record)) for coefficient, condition, atom in terms if holds(condition, record)
    ]
    rational = sum((Fraction(each) * value for each, value in held if isinstance(value, Fraction)), Fraction(0))
    rest = sum((number(each) * value for each, value in held if not isinstance(value, Fraction)), mpmath.mpf(0))
    return number(rational) + rest
