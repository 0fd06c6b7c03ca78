"""Policies as SQL expression trees.

For losses of millions of records inside DuckDB or Spark. The dialects do not agree on what 0.1 is, so every
constant is written as a double with an exponent.
"""

import math
import sys
from collections.abc import Iterable
from fractions import Fraction

from flint import arb
from sqlglot import exp

from recordwise.errors import ParameterError, value_text
from recordwise.exact.numbers import float_upper
from recordwise.policy.atoms import Atom
from recordwise.policy.bands import BandTable
from recordwise.policy.columns import (
    FLOAT_SNAP,
    LINEAR_ERROR,
    MOST_SCALED_STEPS,
    MOST_STEPS,
    ConditionColumn,
    Measure,
    Truth,
    Value,
    float_comparison,
    float_members,
)
from recordwise.policy.conditions import EVERY, AllOf, Among, AnyOf, Compare, Condition, InBand, Null
from recordwise.policy.evaluate.evaluator import Knots, Steps
from recordwise.policy.policy import Maximum, Terms

E = exp.Expression


def number(value: float) -> E:
    """Return a literal that every dialect reads as a double."""
    if value == float("inf"):
        return as_double(exp.Literal.string("Infinity"))
    text = repr(float(value))
    return exp.Literal.number(text if "e" in text else text + "e0")


def call(name: str, *arguments: E) -> E:
    return exp.Anonymous(this=name, expressions=list(arguments))


def as_double(value: E) -> E:
    """Return CAST(value AS DOUBLE), which sqlglot's own node writes slowly."""
    return call("CAST", exp.Alias(this=value, alias="DOUBLE"))


def _binary(kind: type[exp.Binary], left: E, right: E) -> E:
    return exp.Paren(this=kind(this=left, expression=right))


def case(test: E, then: E, otherwise: E) -> E:
    return exp.Case(ifs=[exp.If(this=test, true=then)], default=otherwise)


class SqlEvaluator:
    """Formulas as trees of doubles.

    A tree repeats an argument it uses twice, so formulas that use it once are preferred.
    """

    guarded = True
    """Whether FLOOR and CEIL fail on large numbers."""

    def constant(self, value: arb) -> E:
        return number(float(value))

    def add(self, left: E, right: E) -> E:
        return _binary(exp.Add, left, right)

    def multiply(self, left: E, right: E) -> E:
        return _binary(exp.Mul, left, right)

    def divide(self, left: E, right: E) -> E:
        return exp.Paren(this=exp.Div(this=left, expression=right, typed=True, safe=False))

    def maximum(self, left: E, right: E) -> E:
        return call("GREATEST", left, right)

    def minimum(self, left: E, right: E) -> E:
        """LEAST would hide a NaN, which counts as larger than every number."""
        smaller = exp.LT(this=right, expression=left.copy())
        present = exp.LTE(this=left.copy(), expression=number(LARGEST_FLOAT))
        return case(exp.Paren(this=exp.and_(smaller, present, copy=False)), right.copy(), left)

    def power(self, base: E, exponent: Fraction) -> E:
        if exponent == Fraction(1, 2):
            return call("SQRT", base)
        if exponent == 2 and sum(1 for _ in base.walk()) < FEW_NODES:
            return self.multiply(base, base.copy())
        return base if exponent == 1 else call("POWER", base, number(float(exponent)))

    def power_less_one(self, value: E, exponent: Fraction) -> E:
        return call("EXPM1", self.multiply(number(float(exponent)), self.log1p(value)))

    def log1p(self, value: E) -> E:
        return call("LOG1P", value)

    def tanh(self, value: E) -> E:
        return call("TANH", value)

    def exp_remainder(self, value: E) -> E:
        small: E = number(1.0)
        for k in range(SMALL_TERMS, 2, -1):
            share = self.multiply(self.divide(value.copy(), number(float(k))), small)
            small = _binary(exp.Sub, number(1.0), share)
        series = self.multiply(self.multiply(number(0.5), self.power(value.copy(), Fraction(2))), small)
        direct = self.add(_binary(exp.Sub, value.copy(), number(1.0)), call("EXP", exp.Neg(this=value.copy())))
        return case(exp.LT(this=value, expression=number(SMALL)), series, direct)

    def if_positive(self, test: E, then: E) -> E:
        return case(exp.GT(this=test.copy(), expression=number(0.0)), then, number(0.0))

    def floor_or_ceil(self, name: str, argument: E) -> E:
        """Return FLOOR or CEIL of a number below 2^63, as a double.

        In Spark they give a 64-bit integer and fail beyond it.
        """
        return as_double(call(name, argument))

    def ceiling(self, argument: E) -> E:
        """Return CEIL of any number.

        From 2^52 on every float is whole. CEIL is not below its argument, so the larger of the two is the argument
        only where it was cut; NaN sorts last.
        """
        cut = call("LEAST", argument, number(MOST_WITH_FRACTIONS))
        return call("GREATEST", self.floor_or_ceil("CEIL", cut), argument.copy())

    def pieces(self, value: E, measure: Measure, at: Fraction) -> E:
        steps: E = value
        most, beyond = MOST_WITH_FRACTIONS, steps
        if measure.step != 1:
            scaled = self.multiply(value, number(float(measure.step.denominator)))
            steps = self.divide(scaled, number(float(measure.step.numerator)))
            most, beyond = MOST_SCALED_STEPS, self.ceiling(self.multiply(steps.copy(), number(1 + 2 * FLOAT_SNAP)))
        below = self.floor_or_ceil("FLOOR", steps)
        above = exp.GT(this=steps.copy(), expression=self.multiply(below.copy(), number(1 + FLOAT_SNAP)))
        count = self.add(below, case(above, number(1.0), number(0.0)))
        if self.guarded or measure.step != 1:
            count = case(exp.LT(this=steps.copy(), expression=number(most)), count, beyond.copy())
        return count if at == measure.step else self.ceiling(self.divide(count, number(float(at / measure.step))))

    def step_up(self, count: E, steps: Steps, beyond: E) -> E:
        """Return the step function as a balanced tree of comparisons."""
        if not steps:
            return beyond
        if len(steps) == 1:
            argument, level = steps[0]
            test = exp.LTE(this=count.copy(), expression=number(float(argument)))
            return case(test, number(float(level)), beyond)
        middle = len(steps) // 2
        test = exp.LTE(this=count.copy(), expression=number(float(steps[middle - 1][0])))
        return case(test, self._inside(count, steps[:middle]), self.step_up(count, steps[middle:], beyond))

    def _inside(self, count: E, steps: Steps) -> E:
        return self.step_up(count, steps[:-1], number(float(steps[-1][1])))

    def on_lines(self, value: E, measure: Measure, knots: Knots, beyond: E) -> E:
        """Return the step tree with a line at each leaf."""
        scaled = value.copy()
        if measure.step != 1:
            scaled = self.multiply(scaled, number(float(measure.step.denominator)))
            scaled = self.divide(scaled, number(float(measure.step.numerator)))
        # At most 2^62 steps where this is used, so that the whole number of Spark does not overflow.
        count = as_double(call("CEIL", self.multiply(scaled, number(1 - FLOAT_SNAP))))
        line = self._on_line(value, count, measure, knots)
        first = case(_up_to(value, measure, knots[0][0]), number(float(knots[0][1])), line)
        return case(_up_to(value, measure, knots[-1][0]), first, beyond)

    def _on_line(self, value: E, count: E, measure: Measure, knots: Knots) -> E:
        if len(knots) == 1:
            return number(float(knots[0][1]))
        if len(knots) == 2:
            (left, low), (right, high) = knots
            away = _binary(exp.Sub, count.copy(), number(float(left)))
            return self.add(number(float(low)), self.multiply(number(float((high - low) / (right - left))), away))
        middle = len(knots) // 2
        lower, upper = (self._on_line(value, count, measure, part) for part in (knots[: middle + 1], knots[middle:]))
        return case(_up_to(value, measure, knots[middle][0]), lower, upper)


def _up_to(value: E, measure: Measure, steps: int) -> E:
    """Return whether an amount is at most some steps, excluding NaN."""
    return exp.LTE(this=value.copy(), expression=number(float(measure.step * steps) * (1 + FLOAT_SNAP)))


MOST_WITH_FRACTIONS = 2.0**52
"""From here on a float has no fraction."""
FEW_NODES = 80
"""A tree this small is squared by repeating it: engines compute a repeated part once, and a product is faster than POWER."""
FEW_PARTS = 8
LARGEST_FLOAT = sys.float_info.max
SMALL = 0.1
SMALL_TERMS = 11
"""Below SMALL the series of exp(-y) - 1 + y needs no more terms; above it the direct sum keeps 13 digits."""


class DuckDbEvaluator(SqlEvaluator):
    """The formulas of DuckDB, which lacks log1p and expm1.

    asinh and sinh, which lose no digits near zero, replace them.
    """

    guarded = False

    def floor_or_ceil(self, name: str, argument: E) -> E:
        return call(name, argument)

    def ceiling(self, argument: E) -> E:
        return call("CEIL", argument)

    def log1p(self, value: E) -> E:
        root = call("SQRT", self.add(number(1.0), value.copy()))
        return self.multiply(number(2.0), call("ASINH", self.divide(self.multiply(number(0.5), value), root)))

    def power_less_one(self, value: E, exponent: Fraction) -> E:
        half = self.multiply(number(float(exponent / 2)), self.log1p(value))
        rise = self.power(self.add(number(1.0), value.copy()), exponent / 2)
        return self.multiply(self.multiply(number(2.0), call("SINH", half)), rise)


ORDERS: dict[str, type[E]] = {"<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE}


EVALUATORS = {"duckdb": DuckDbEvaluator(), "spark": SqlEvaluator()}


def terms_sql(terms: Terms, dialect: str = "duckdb") -> E:
    """Return the sum of the terms as one tree of the dialect."""
    return _sum(terms, evaluator_of(dialect))


def evaluator_of(dialect: str) -> SqlEvaluator:
    """The evaluator for a dialect."""
    if dialect not in EVALUATORS:
        raise ParameterError(
            parameter="dialect", problem=f"must be one of {', '.join(EVALUATORS)}, not {value_text(dialect)}"
        )
    return EVALUATORS[dialect]


def _sum(terms: Terms, evaluator: SqlEvaluator) -> E:
    values = []
    for (condition, atom), coefficient in terms.items():
        value = evaluator.multiply(number(float_upper(coefficient)), atom_sql(atom, evaluator))
        values.append(value if condition == EVERY else case(condition_sql(condition), value, number(0.0)))
    return _sum_tree(values, evaluator) if values else number(0.0)


def atom_sql(atom: Atom, evaluator: SqlEvaluator) -> E:
    if isinstance(atom, Maximum):
        return call("GREATEST", *(_sum(policy.rho, evaluator) for policy in atom.policies))
    return atom.value(evaluator, {measure.name: absolute_sql(measure, evaluator) for measure in atom.measures()})


def absolute_sql(measure: Measure, evaluator: SqlEvaluator) -> E:
    """Return the absolute value of a measure.

    Of a derived one, from its inputs, added up in whole steps (T-OUTWARD).
    """
    if not measure.derived:
        return amount_sql(measure.name)
    parts = [(base, float(multiple), _steps_sql(base, evaluator)) for base, multiple in measure.multiples()]
    total = _sum_tree([evaluator.multiply(number(many), steps) for _, many, steps in parts], evaluator)
    size = _sum_tree([evaluator.multiply(number(abs(many)), _absolute(steps)) for _, many, steps in parts], evaluator)
    # From 2^53 steps in all, and 2^49 of a measure whose steps were rounded, no less is added than may have been lost.
    lost = [_beyond(size, MOST_STEPS / 2, 2 * LINEAR_ERROR)]
    lost += [
        _beyond(_absolute(s), MOST_SCALED_STEPS / 2, abs(many) * FLOAT_SNAP * 2) for b, many, s in parts if b.step != 1
    ]
    found = _sum_tree([_absolute(total), *lost], evaluator)
    up, down = float(measure.step.numerator), float(measure.step.denominator)
    return found if up == down else evaluator.divide(evaluator.multiply(found, number(up)), number(down))


def _sum_tree(parts: list[E], evaluator: SqlEvaluator) -> E:
    """Return the sum as a shallow tree."""
    if len(parts) <= FEW_PARTS:
        total = parts[0]
        for part in parts[1:]:
            total = evaluator.add(total, part)
        return total
    middle = len(parts) // 2
    return evaluator.add(_sum_tree(parts[:middle], evaluator), _sum_tree(parts[middle:], evaluator))


def _absolute(value: E) -> E:
    return call("ABS", value.copy())


def _beyond(value: E, start: float, share: float) -> E:
    """A share of what is beyond a number."""
    return _binary(exp.Mul, call("GREATEST", _binary(exp.Sub, value, number(start)), number(0.0)), number(share))


def _steps_sql(measure: Measure, evaluator: SqlEvaluator) -> E:
    """Return a record's measure in signed steps, NaN where missing."""
    held: E = call(
        "COALESCE",
        as_double(_identifier(measure.name)),
        as_double(exp.Literal.string("NaN")),
    )
    if measure.step == 1:
        return held
    up, down = float(measure.step.denominator), float(measure.step.numerator)
    return exp.Round(this=evaluator.divide(evaluator.multiply(held, number(up)), number(down)))


def amount_sql(name: str) -> E:
    """Return the size of a measure, NaN for NULL.

    No later operation hides a NaN, as GREATEST would hide a NULL.
    """
    size = call("ABS", as_double(_identifier(name)))
    return call("COALESCE", size, as_double(exp.Literal.string("NaN")))


def condition_sql(condition: Condition) -> E:
    """A condition as a tree that is never NULL."""
    match condition:
        case AllOf(parts):
            return exp.Paren(this=exp.and_(*(condition_sql(part) for part in parts))) if parts else exp.true()
        case AnyOf(parts):
            return exp.Paren(this=exp.or_(*(condition_sql(part) for part in parts))) if parts else exp.false()
        case Null(column, inside):
            test = exp.Is(this=column_sql(column), expression=exp.null())
            return exp.Paren(this=test if inside else exp.not_(test))
        case InBand(table, bands):
            literals = [exp.Literal.number(band) for band in bands]
            return exp.Paren(this=exp.In(this=band_sql(table), expressions=literals))
        case Among(column, values, inside):
            listed = members_sql(column, values)
            return _never_null(listed if inside else exp.not_(listed))
        case Compare(column, order, bound) if (
            bound.denominator != 1 and MOST_WITH_FRACTIONS < abs(bound) < LARGEST_WHOLE
        ):
            # A whole number, as in columns of integers and of floats so large, is beyond it as it is beyond the next one.
            rounded = math.ceil if order.startswith(">") else math.floor
            return condition_sql(Compare(column, f"{order[0]}=", Fraction(rounded(bound))))
        case Compare(column, order, bound) if bound.denominator == 1 and abs(bound) < LARGEST_WHOLE:
            compared = ORDERS[order](this=column_sql(column), expression=exp.Literal.number(int(bound)))
            return _never_null(_corrected(compared, column, order, int(bound)))
        case Compare(column, order, bound):
            order, near = float_comparison(order, bound)
            left = as_double(column_sql(column))
            return _never_null(ORDERS[order](this=left, expression=number(near)))
        case _:
            raise TypeError(type(condition).__name__)


def band_sql(table: BandTable) -> E:
    """Return the band of a record as a column.

    Whoever runs the expression joins it to the records; its node carries the table.
    """
    node = _identifier(table.key)
    node.meta[BAND_TABLE] = table
    return node


BAND_TABLE = "band table"


def bands_in(trees: Iterable[exp.Expr]) -> list[BandTable]:
    """The band tables whose columns expressions use, each once."""
    found = (node.meta[BAND_TABLE] for tree in trees for node in tree.find_all(exp.Column) if BAND_TABLE in node.meta)
    return list({table.digest: table for table in found}.values())


def members_sql(column: ConditionColumn, values: tuple[Value, ...]) -> E:
    """Return membership in values of one type.

    A SQL column has one type, so a list of several types has no meaning there.
    """
    if len({type(value) for value in values}) > 1:
        raise ParameterError(
            parameter=f"values of '{column.name}'",
            problem="mix text, numbers and booleans, which no SQL column can",
        )
    readable = [value for value in values if not _unreadable(value)]
    # Doubles are on a list of their own: next to them an engine compares whole numbers as doubles, too.
    plain, doubles, rounded = list[Value](), list[Value](), dict[int, list[int]]()
    for value in readable:
        if isinstance(value, Fraction) and not _is_whole(value):
            doubles.append(value)
        elif isinstance(value, Fraction) and (near := _neighbors(int(value))):
            rounded[int(value)] = near
        else:
            plain.append(value)
    tests: list[exp.Expr] = [_among(column, map(value_sql, each)) for each in (plain, doubles) if each]
    if rounded:
        # A column of floats equals the float next to such a number, which is another number.
        others = {near for each in rounded.values() for near in each} - set(rounded)
        tests.append(exp.and_(_any_of(column, rounded), exp.not_(_any_of(column, sorted(others)))))
    if tests:
        return exp.Paren(this=exp.or_(*tests) if len(tests) > 1 else tests[0])
    # False, and NULL where the column is.
    return exp.Paren(this=exp.and_(exp.Is(this=column_sql(column), expression=exp.null()), exp.null()))


def _unreadable(value: Value) -> bool:
    """Return whether no column can hold the number.

    No integer or decimal column holds it and no float is read as it, so it never occurs.
    """
    return isinstance(value, Fraction) and not _is_whole(value) and not float_members([value])


def _is_whole(value: Value) -> bool:
    """Return whether the value is written as an integer."""
    return isinstance(value, Fraction) and value.denominator == 1 and abs(value) < LARGEST_WHOLE


def _neighbors(value: int) -> list[int]:
    """Return the floats that engines may compare with in place of a whole number, doubles before singles."""
    double = float(value)
    # Engines round what has more than 64 bits twice.
    around = [double] if abs(value) < 2**63 else [double, *(math.nextafter(double, end) for end in (-INF, INF))]
    found = dict.fromkeys([*map(int, around), _single(value), _single(int(double))])
    return [] if _single(value) == value else [near for near in found if near != value]


def _single(value: int) -> int:
    """Return the float of 32 bits next to a whole number, even where two are as near."""
    shift = max(0, value.bit_length() - SINGLE_BITS)
    return round(Fraction(value, 1 << shift)) << shift


def _among(column: ConditionColumn, listed: Iterable[E]) -> E:
    return exp.In(this=column_sql(column), expressions=list(listed))


def _any_of(column: ConditionColumn, wholes: Iterable[int]) -> E:
    return _among(column, map(exp.Literal.number, wholes))


def _corrected(test: E, column: ConditionColumn, order: str, bound: int) -> E:
    """Return a comparison that holds for floats too, which are compared with the float next to the bound."""
    nears = _neighbors(bound)
    # A double that is no single is another number in a column of singles, whose own neighbors come after it.
    for single in (False, True):
        own = [near for near in nears if (_single(near) == near) == single]
        passing = [near for near in own if (near > bound) == order.startswith(">")]
        failing = [near for near in own if near not in passing]
        test = exp.Paren(this=exp.or_(test, _any_of(column, passing))) if passing else test
        test = exp.Paren(this=exp.and_(test, exp.not_(_any_of(column, failing)))) if failing else test
    return test


def _never_null(test: E) -> E:
    return exp.Coalesce(this=test, expressions=[exp.false()])


def column_sql(column: ConditionColumn) -> E:
    name = _identifier(column.name)
    if column.part:
        return date_part_sql(name, column.part)
    if column.length is None:
        return name
    return exp.Substring(this=name, start=exp.Literal.number(1), length=exp.Literal.number(column.length))


def date_part_sql(day: exp.Expr, part: str) -> E:
    """Return a part of a date.

    The dialects have no common word for the ISO year, so it is the year, moved by one around New Year.
    """
    if part != "isoyear":
        return exp.Extract(this=exp.Var(this=part.upper()), expression=day.copy())
    year, month, week = (date_part_sql(day, each) for each in ("year", "month", "week"))
    before = exp.and_(_is(month, 1), exp.GT(this=week, expression=exp.Literal.number(50)))
    after = exp.and_(_is(month.copy(), 12), _is(week.copy(), 1))
    one = exp.Literal.number(1)
    ifs = [
        exp.If(this=before, true=exp.Paren(this=exp.Sub(this=year, expression=one))),
        exp.If(this=after, true=exp.Paren(this=exp.Add(this=year.copy(), expression=one.copy()))),
    ]
    return exp.Case(ifs=ifs, default=year.copy())


def _is(value: E, wanted: int) -> E:
    return exp.EQ(this=value, expression=exp.Literal.number(wanted))


def _identifier(name: str) -> E:
    return exp.column(exp.to_identifier(name, quoted=True))


def value_sql(value: Value) -> E:
    if isinstance(value, Truth):
        return exp.true() if value.value else exp.false()
    if isinstance(value, str):
        return exp.Literal.string(value)
    return exp.Literal.number(int(value)) if _is_whole(value) else number(float(value))


LARGEST_WHOLE = 2**126
"""Below this, an integer is written as one, and an integer column is compared without rounding."""
SINGLE_BITS = 24
"""The precision of floats of 32 bits."""
INF = math.inf
