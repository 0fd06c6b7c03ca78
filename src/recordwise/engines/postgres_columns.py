"""What PostgreSQL is asked for: only the declared columns, and every measure as a whole number of steps, computed there.

A value that is no whole number of steps within the bound becomes one of the negative codes of ``FAULTS``, so that the checks of
every source count the same problems. The server's arithmetic never meets a value it could fail on: CASE tests before it computes.
"""

from sqlglot import exp

from recordwise.errors import SourceError
from recordwise.plan.records import BEYOND, FAULTS, INFINITE, NAN, NEGATIVE, OFF, Stored, largest_steps
from recordwise.plan.schema import Measure, Schema
from recordwise.plan.trees import column, constant

INTEGERS = ("int2", "int4", "int8")
FLOATS = ("float4", "float8")
TEXTS = ("text", "varchar", "bpchar", "name", "enum")
WRITTEN_IDS = ("uuid", "date", "timestamp")
"""Ids that are compared as the text the server writes for them: one text for each value."""
TINY = exp.Literal.number("8.673617379884035e-19")
"""2^-60: less than half of the smallest step there can be, so its nearest whole number of steps is 0 (T-LATTICE)."""


def stored_as(schema: Schema, types: dict[str, str]) -> dict[str, Stored]:
    """How the copy will hold each declared column that the table has."""
    found = {name: _stored(types[name]) for name in schema.column_names() if name in types}
    for name in schema.measure_names():
        if name in types:
            found[name] = _measured(name, types[name])
    for identifier in (schema.unit, schema.firm):
        if identifier in types:
            _id_tree(identifier, types[identifier])
            found[identifier] = Stored("other")
    return found


def _measured(name: str, kind: str) -> Stored:
    if kind in (*INTEGERS, *FLOATS, "numeric"):
        return Stored("steps")
    raise SourceError(
        source=f"column '{name}'",
        problem=f"it is declared measure and stored as {kind}",
        advice="Name a view that casts it to numeric.",
    )


def _stored(kind: str) -> Stored:
    if kind in INTEGERS:
        return Stored("integer")
    if kind in TEXTS:
        return Stored("text")
    return Stored("boolean") if kind == "bool" else Stored("other")


def select_tree(schema: Schema, types: dict[str, str], table: tuple[str, ...]) -> exp.Expr:
    """SELECT ids, steps and conditional columns FROM the table."""
    trees = {schema.unit: _id_tree(schema.unit, types[schema.unit])}
    if schema.firm:
        trees[schema.firm] = _id_tree(schema.firm, types[schema.firm])
    for measure in schema.measures:
        trees[measure.name] = _steps_tree(measure, types[measure.name])
    for name in schema.column_names():
        # Text drops the blanks that pad a CHAR and gives an ENUM its letters.
        trees[name] = cast(column(name), "TEXT") if types[name] in TEXTS else column(name)
    select = exp.select(*(exp.alias_(tree, exp.to_identifier(name, quoted=True)) for name, tree in trees.items()))
    return select.from_(exp.table_(table[1], db=table[0], quoted=True))


def _id_tree(name: str, kind: str) -> exp.Expr:
    """An id such that two are equal in the copy iff they are on the server."""
    if kind in INTEGERS or kind == "bool":
        return column(name)
    if kind == "numeric":
        # 1.0 and 1.00 are the same number.
        return cast(exp.func("TRIM_SCALE", column(name)), "TEXT")
    if kind in (*TEXTS, *WRITTEN_IDS):
        return cast(column(name), "TEXT")
    raise SourceError(
        source=f"column '{name}'",
        problem=f"it is stored as {kind}, which an id cannot be",
        advice="Name a view that casts it to text or to a whole number.",
    )


def _steps_tree(measure: Measure, kind: str) -> exp.Expr:
    if kind in FLOATS:
        return _float_steps(measure, cast(column(measure.name), "DOUBLE"))
    return _exact_steps(measure, column(measure.name), numeric=kind == "numeric")


def _exact_steps(measure: Measure, raw: exp.Expr, *, numeric: bool) -> exp.Expr:
    """Whole numbers and decimals, in the server's exact decimal arithmetic: value * q / p for the step p/q."""
    step, steps = measure.step, measure.bound_steps
    limit = step * steps
    ceiling = constant(-(-limit.numerator // limit.denominator))
    if not numeric and step == 1:
        return cast(
            _case(raw, [(_negative(raw), NEGATIVE), (exp.GT(this=raw, expression=ceiling), BEYOND)], raw), "BIGINT"
        )
    up = exp.Mul(this=cast(raw, "DECIMAL"), expression=cast(constant(step.denominator), "DECIMAL"))
    rest = exp.Mod(this=exp.Paren(this=up), expression=cast(constant(step.numerator), "DECIMAL"))
    tests = [
        # A value far beyond the bound is told before it is multiplied.
        *([(exp.EQ(this=raw, expression=_special("NaN", "DECIMAL")), NAN)] if numeric else []),
        *([(_written(raw, "Infinity", "-Infinity"), INFINITE)] if numeric else []),
        (_negative(raw), NEGATIVE),
        (exp.GT(this=raw, expression=ceiling), BEYOND),
        (exp.GT(this=up, expression=constant(steps * step.numerator)), BEYOND),
        (exp.NEQ(this=rest, expression=constant(0)), OFF),
    ]
    whole = exp.Anonymous(this="DIV", expressions=[up.copy(), cast(constant(step.numerator), "DECIMAL")])
    return cast(_case(raw, tests, whole), "BIGINT")


def _float_steps(measure: Measure, raw: exp.Expr) -> exp.Expr:
    """Floats by T-LATTICE, in the server's double arithmetic, which is the same IEEE arithmetic."""
    step = measure.step
    limit = largest_steps(measure, Stored("float")) * step
    scaled = exp.Div(
        this=exp.Paren(this=exp.Mul(this=raw, expression=_double(step.denominator))), expression=_double(step.numerator)
    )
    # PostgreSQL refuses a quotient that underflows.
    steps = exp.Case(
        ifs=[exp.If(this=exp.LT(this=raw.copy(), expression=TINY.copy()), true=_double(0))],
        default=exp.func("ROUND", scaled),
    )
    whole = exp.Mul(this=steps, expression=_double(step.numerator))
    nearest = exp.Div(this=exp.Paren(this=whole), expression=_double(step.denominator))
    beyond = exp.Div(this=_double(limit.numerator), expression=_double(limit.denominator))
    tests = [
        (exp.EQ(this=raw, expression=_special("NaN", "DOUBLE")), NAN),
        (exp.In(this=raw, expressions=[_special("Infinity", "DOUBLE"), _special("-Infinity", "DOUBLE")]), INFINITE),
        (_negative(raw), NEGATIVE),
        (exp.GT(this=raw, expression=exp.Paren(this=beyond)), BEYOND),
        (exp.NEQ(this=nearest, expression=raw), OFF),
    ]
    return cast(_case(raw, tests, steps), "BIGINT")


def _case(raw: exp.Expr, tests: list[tuple[exp.Expr, str]], value: exp.Expr) -> exp.Expr:
    """NULL, else the code of the first test that is true, else the value."""
    unknown = exp.If(this=exp.Is(this=raw.copy(), expression=exp.null()), true=exp.null())
    faults = [exp.If(this=test.copy(), true=constant(FAULTS[fault])) for test, fault in tests]
    return exp.Case(ifs=[unknown, *faults], default=value.copy())


def _negative(raw: exp.Expr) -> exp.Expr:
    return exp.LT(this=raw.copy(), expression=constant(0))


def _written(raw: exp.Expr, *texts: str) -> exp.Expr:
    """Older servers have no infinite decimals and refuse to read the word: the value is compared as text, and only if huge."""
    words = exp.In(this=cast(raw.copy(), "TEXT"), expressions=[exp.Literal.string(text) for text in texts])
    huge = exp.or_(_negative(raw), exp.GT(this=raw.copy(), expression=exp.Literal.number("1" + 40 * "0")))
    return exp.and_(huge, words)


def _special(word: str, kind: str) -> exp.Expr:
    return cast(exp.Literal.string(word), kind)


def _double(value: int) -> exp.Expr:
    return cast(constant(value), "DOUBLE")


def cast(tree: exp.Expr, to: str) -> exp.Expr:
    return exp.Cast(this=tree.copy(), to=exp.DataType.build(to))
