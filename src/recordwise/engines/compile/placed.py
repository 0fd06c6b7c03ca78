"""Where a row lies among the public cells of a table: in a listed one, or in the published rest of its coarser cell (T-REST)."""

from collections.abc import Callable, Sequence

from sqlglot import exp

from recordwise.engines.compile.expressions import aliased, column, constant
from recordwise.plan.fields import Expression
from recordwise.plan.plan import PlannedTable
from recordwise.plan.results import POSITION

PLACED = "placed"
KEYS, RESTS = "keys", "rests"


def rests_name(keys: str) -> str:
    """The table of the keys of coarser cells that have a rest."""
    return f"{keys}_rests"


def key_columns(table: PlannedTable, tree: Callable[[Expression], exp.Expr]) -> list[exp.Expr]:
    """The coordinates of a row: k0, k1... of its cell and, where rests are published, p0, p1... of its coarser cell."""
    above = () if table.rest is None else table.rest.groups
    own = [aliased(tree(group.expression), f"k{i}") for i, group in enumerate(table.shape.groups)]
    return own + [aliased(tree(group.expression), f"p{i}") for i, group in enumerate(above)]


def at_positions(rows: exp.Select, table: PlannedTable, keys: str, names: Sequence[str]) -> exp.Select:
    """The rows of published cells, each with the position of its cell; ``rows`` has the ``key_columns`` and the columns named."""
    if not table.shape.groups:
        return exp.select(aliased(constant(0), POSITION), *(column(name, PLACED) for name in names), copy=False).from_(
            rows.subquery(PLACED, copy=False)
        )
    listed = exp.to_table(keys).as_(KEYS)
    here = _same("k", len(table.shape.groups), KEYS)
    if table.rest is None:
        select = exp.select(column(POSITION, KEYS), *(column(name, PLACED) for name in names))
        return select.from_(rows.subquery(PLACED, copy=False)).join(listed, on=here, join_type="inner")
    # A row in a listed cell is there alone: the rest takes only rows that no listed cell has.
    place = exp.Coalesce(this=column(POSITION, KEYS), expressions=[column(POSITION, RESTS)])
    select = exp.select(aliased(place, POSITION), *(column(name, PLACED) for name in names))
    select = select.from_(rows.subquery(PLACED, copy=False)).join(listed, on=here, join_type="left")
    above = _same("p", len(table.rest.groups), RESTS)
    select = select.join(exp.to_table(rests_name(keys)).as_(RESTS), on=above, join_type="left")
    return select.where(exp.Not(this=exp.Is(this=place.copy(), expression=exp.Null())))


def _same(letter: str, count: int, other: str) -> exp.Expr:
    matches = [
        exp.NullSafeEQ(this=column(f"{letter}{i}", PLACED), expression=column(f"{letter}{i}", other))
        for i in range(count)
    ]
    return exp.and_(*matches) if matches else exp.true()
