"""The band of a record's cell where noise is sized (T-SIZE), as a column joined to the records, and records that count alike."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from sqlglot import exp

from recordwise.engines.compile.expressions import RECORDS, aliased, column, constant
from recordwise.plan.schema import Schema
from recordwise.policy.bands import BandTable
from recordwise.policy.evaluate.sql import bands_in, column_sql
from recordwise.policy.literals import Truth, Value

BAND, PLACE, LISTED, ALIKE = "band_number", "band_place", "band_value", "records_alike"
"""Names that no column of the records should have."""


def with_bands(select: exp.Select, tables: Sequence[BandTable]) -> exp.Select:
    """A selection of records with a column for the band of its cell in each table; the lowest where it is not listed.

    Each value is numbered by a join with few rows; the numbers add up to the place of the cell, which is joined faster than text.
    """
    for number, table in enumerate(tables):
        lent, place = f"b{number}", constant(0)
        for at, (own, held) in enumerate(zip(table.columns, table.values)):
            coded = f"{lent}v{at}"
            same = _same(_own_column(column_sql(own)), column(LISTED, coded), nulls=None in held)
            select = select.join(exp.to_table(_codes_name(table, at)).as_(coded), on=same, join_type="left")
            place = exp.Add(this=place, expression=column(PLACE, coded)) if at else column(PLACE, coded)
        band = exp.Coalesce(this=column(BAND, lent), expressions=[constant(0)])
        select = select.select(aliased(band, exp.to_identifier(table.key, quoted=True)))
        at_place = exp.EQ(this=place, expression=column(PLACE, lent))
        select = select.join(exp.to_table(table.key).as_(lent), on=at_place, join_type="left")
    return select


def _same(own: exp.Expr, listed: exp.Expr, *, nulls: bool) -> exp.Expr:
    """Whether a record has a listed value; engines join by plain equality faster, which only a listed NULL rules out."""
    return (exp.NullSafeEQ if nulls else exp.EQ)(this=own, expression=listed)


def _codes_name(table: BandTable, at: int) -> str:
    return f"{table.key}_{at}"


def _own_column(tree: exp.Expr) -> exp.Expr:
    """An expression of the records' columns, named as theirs."""
    found: exp.Expr = tree.copy()
    for node in found.find_all(exp.Column):
        node.set("table", exp.to_identifier(RECORDS))
    return found


def lent_bands(table: BandTable) -> dict[str, pa.Table]:
    """What ``with_bands`` joins, by name: the numbers of the values of each column, and the bands above the lowest by place."""
    above = table.bands > 0
    found = {table.key: pa.table({PLACE: table.places[above], BAND: table.bands[above].astype(np.int16)})}
    for at, (held, stride) in enumerate(zip(table.values, table.strides())):
        values = pa.array([None if value is None else _arrow_value(value) for value in held])
        typed = values.cast(pa.string()) if pa.types.is_null(values.type) else values
        found[_codes_name(table, at)] = pa.table({LISTED: typed, PLACE: np.arange(len(held)) * stride})
    return found


def _arrow_value(value: Value) -> str | bool | int:
    return value.value if isinstance(value, Truth) else value if isinstance(value, str) else int(value)


def counted(records: exp.Select, values: Sequence[exp.Expr], schema: Schema) -> exp.Select:
    """Records that ``values`` cannot tell apart once, with how many there are; all of them where most differ.

    One measure and the band of a cell have far fewer different values than there are records, and counting them is cheaper than
    computing a loss and its bin for each record. Several measures or columns together rarely repeat.
    """
    names = {node.name for value in values for node in value.find_all(exp.Column)}
    bands = {table.key for table in bands_in(values)}
    measures = {name.casefold() for name in schema.measure_names()}
    inputs = [column(name) for name in sorted(names)]
    if not inputs or len(names - bands) > 1 or not all(name.casefold() in measures for name in names - bands):
        return exp.select("*", aliased(constant(1), ALIKE)).from_(records.subquery("each_record", copy=False))
    alike = exp.select(*inputs, aliased(exp.Count(this=exp.Star()), ALIKE)).from_(
        records.subquery("each_record", copy=False)
    )
    return alike.group_by(*(each.copy() for each in inputs))
