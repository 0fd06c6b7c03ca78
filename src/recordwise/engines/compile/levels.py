"""The coarser levels of hierarchies as columns of the view ``records``: a public list of codes joined to each record (T-HIERARCHY).

Each finest code is listed once, so that the join keeps every record exactly once; a record whose code is not listed has NULL at
every coarser level.
"""

from collections.abc import Iterator

import pyarrow as pa
from sqlglot import exp

from recordwise.engines.compile.expressions import aliased, column
from recordwise.plan.schema import Schema

HELD = "held"


def list_name(number: int) -> str:
    """The table that holds the codes of a hierarchy of the schema."""
    return f"codes_of_hierarchy_{number}"


def code_lists(schema: Schema) -> Iterator[tuple[str, pa.Table]]:
    """The public lists that the view joins, by name: the finest code as ``code`` and each coarser level as ``level0``..."""
    for number, each in enumerate(schema.hierarchies):
        names = [*(f"level{place}" for place in range(len(each.coarser))), "code"]
        yield list_name(number), each.codes.rename_columns(names)


def with_levels(records: exp.Select, schema: Schema) -> exp.Select:
    """Records with the coarser levels of their codes beside what they hold; as they are where there is no hierarchy."""
    if not schema.hierarchies:
        return records
    select = exp.select(exp.Column(this=exp.Star(), table=exp.to_identifier(HELD))).from_(
        records.subquery(HELD, copy=False)
    )
    for number, each in enumerate(schema.hierarchies):
        name = list_name(number)
        same = exp.EQ(this=column(each.finest, HELD), expression=column("code", name))
        select = select.join(exp.to_table(name), on=same, join_type="left")
        for place, level in enumerate(each.coarser):
            quoted = exp.to_identifier(level, quoted=True)
            select = select.select(aliased(column(f"level{place}", name), quoted))
    return select
