"""The plan's trees in Spark's words, where the emitter alone does not find them. Meaning the same as in DuckDB, value for value."""

from sqlglot import exp

WIDE = exp.DataType.build("DECIMAL(38, 0)")
INFINITY = exp.Cast(this=exp.Literal.string("Infinity"), to=exp.DataType.build("DOUBLE"))


def spark_sql(tree: exp.Expr) -> str:
    """The statement as Spark runs it."""
    return tree.transform(_respelled).sql(dialect="spark")


def _respelled(node: exp.Expr) -> exp.Expr:
    match node:
        case exp.TryCast():
            # Without this mark the emitter writes a plain CAST, which fails where DuckDB's gives NULL.
            node.set("safe", True)
        case exp.DataType() if node.is_type("INT128"):
            return WIDE.copy()
        case exp.IsInf():
            return exp.EQ(this=exp.Abs(this=node.this), expression=INFINITY.copy())
        case exp.Round():
            # Spark's ROUND goes through decimals. The nearest whole number of a lattice value is never a tie (T-LATTICE).
            return exp.Anonymous(this="RINT", expressions=[node.this])
    return node
