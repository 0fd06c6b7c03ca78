"""Rewrites the plan's trees for Spark where the emitter alone does not, so that every value is the same as in DuckDB."""

from sqlglot import exp

from recordwise.engines.compile.expressions import ELEMENT

WIDE = exp.DataType.build("DECIMAL(38, 0)")
INFINITY = exp.Cast(this=exp.Literal.string("Infinity"), to=exp.DataType(this=exp.DType.DOUBLE))


OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
BRACKETED = (exp.Func, exp.Case, exp.Column, exp.Literal)


def spark_sql(tree: exp.Expr) -> str:
    """The statement in Spark's SQL."""
    return _prefixed(tree.transform(_respelled)).sql(dialect="spark", copy=False)


def _prefixed(node: exp.Expr) -> exp.Expr:
    """Operators as functions: Spark's parser takes a minute for a long policy in nested parentheses, and seconds for this form."""
    for name, value in list(node.args.items()):
        if isinstance(value, exp.Expression):
            node.set(name, _prefixed(value))
        elif isinstance(value, list):
            node.set(name, [_prefixed(each) if isinstance(each, exp.Expression) else each for each in value])
    if type(node) in OPERATORS:
        return exp.Anonymous(this=f"`{OPERATORS[type(node)]}`", expressions=[node.this, node.args["expression"]])
    return node.this if isinstance(node, exp.Paren) and _stands_alone(node.this) else node


def _stands_alone(node: exp.Expr) -> bool:
    """Whether an expression needs no parentheses. sqlglot classes AND and OR as functions, but they do need them."""
    return isinstance(node, BRACKETED) and not isinstance(node, exp.Binary)


def _respelled(node: exp.Expr) -> exp.Expr:
    match node:
        case exp.TryCast():
            # Without this flag the emitter writes a plain CAST, which fails where DuckDB's gives NULL.
            node.set("safe", True)
        case exp.DataType() if node.this == exp.DType.INT128:
            return WIDE.copy()
        case exp.IsInf():
            return exp.EQ(this=exp.Abs(this=node.this), expression=INFINITY.copy())
        case exp.Anonymous() if node.this == ELEMENT:
            node.set("this", "ELEMENT_AT")
        case exp.Round():
            # Spark's ROUND uses decimals. Rounding a lattice value to the nearest whole number is never a tie (T-LATTICE).
            return exp.Anonymous(this="RINT", expressions=[node.this])
    return node
