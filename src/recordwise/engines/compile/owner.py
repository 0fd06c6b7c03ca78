"""Confidential summaries for the owner of the data, as SQL trees.

They are value counts, histograms of losses, and contributors of cells. A policy is a function of a few columns that have far
fewer distinct values than there are records, so one pass that counts the values gives the exact distribution of the losses of any
number of policies. Where there are too many values, histograms are computed inside the engine and only the bin counts leave it.
For realized losses (how much a record changed the actual answers), each record is read next to the exact totals of its cell.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
from sqlglot import exp

from recordwise.engines.compile.expressions import (
    ELEMENT,
    RECORDS,
    absolute_tree,
    aliased,
    column,
    constant,
    expression_tree,
    predicate_tree,
)
from recordwise.engines.compile.totals import Base, Names, additive_tree, at_positions, firm_counts_tree, key_columns
from recordwise.errors import ParameterError
from recordwise.plan.expressions import Predicate
from recordwise.plan.plan import POSITION, PlannedTable
from recordwise.plan.schema import Schema
from recordwise.policy.bands import BandTable
from recordwise.policy.columns import Truth, Value
from recordwise.policy.evaluate.sql import bands_in, column_sql

# The band of a record's cell where noise is sized (T-SIZE), as a column joined to the records, and records that count
# the same.


BAND, PLACE, LISTED, ALIKE = "band_number", "band_place", "band_value", "records_alike"
"""Names that no column of the records should have."""


def with_bands(select: exp.Select, tables: Sequence[BandTable]) -> exp.Select:
    """Return records with the band of their cell per table.

    The lowest band where the cell is not listed. Each value is numbered by a join with few rows; the numbers
    add up to the index of the cell, which is joined faster than text.
    """
    for number, table in enumerate(tables):
        lent, place = f"b{number}", constant(0)
        for at, (own, held) in enumerate(zip(table.columns, table.values)):
            coded = f"{lent}v{at}"
            same = _same(_record_column(column_sql(own)), column(LISTED, coded), nulls=None in held)
            select = select.join(exp.to_table(_codes_name(table, at)).as_(coded), on=same, join_type="left")
            place = exp.Add(this=place, expression=column(PLACE, coded)) if at else column(PLACE, coded)
        band = exp.Coalesce(this=column(BAND, lent), expressions=[constant(0)])
        select = select.select(aliased(band, exp.to_identifier(table.key, quoted=True)))
        at_place = exp.EQ(this=place, expression=column(PLACE, lent))
        select = select.join(exp.to_table(table.key).as_(lent), on=at_place, join_type="left")
    return select


def _same(own: exp.Expr, listed: exp.Expr, *, nulls: bool) -> exp.Expr:
    """Return whether a record has a listed value.

    Plain equality joins faster; only a listed NULL rules it out.
    """
    return (exp.NullSafeEQ if nulls else exp.EQ)(this=own, expression=listed)


def _codes_name(table: BandTable, at: int) -> str:
    return f"{table.key}_{at}"


def _record_column(tree: exp.Expr) -> exp.Expr:
    """An expression of the records' columns, named as theirs."""
    found: exp.Expr = tree.copy()
    for node in found.find_all(exp.Column):
        node.set("table", exp.to_identifier(RECORDS))
    return found


def lent_bands(table: BandTable) -> dict[str, pa.Table]:
    """Return the tables that ``with_bands`` joins, by name.

    The numbers of the values of each column, and the bands above the lowest by index.
    """
    above = table.bands > 0
    found = {table.key: pa.table({PLACE: table.places[above], BAND: table.bands[above].astype(np.int16)})}
    for at, (held, stride) in enumerate(zip(table.values, table.strides())):
        values = pa.array([None if value is None else _arrow_value(value) for value in held])
        typed = values.cast(pa.string()) if pa.types.is_null(values.type) else values
        found[_codes_name(table, at)] = pa.table({LISTED: typed, PLACE: np.arange(len(held)) * stride})
    return found


def _arrow_value(value: Value) -> str | bool | int:
    return value.value if isinstance(value, Truth) else value if isinstance(value, str) else int(value)


def distinct_records(records: exp.Select, values: Sequence[exp.Expr], schema: Schema) -> exp.Select:
    """Return distinct records with their counts.

    Distinct in ``values``; all records where most differ. One measure and the band of a cell have far fewer
    distinct values than there are records, and counting them is cheaper than a loss and its bin for each
    record. Several measures or columns together rarely repeat.
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


# The summaries: distributions of losses, and realized losses of single records.


BIN, COUNT, VALUE = "bin", "records", "value"
FIRM_BOUNDS, PURE_SUM = ("tight", "simple", "advanced"), "sum of pure epsilons"
LARGEST_LOG = 600.0
RATIOS = (*(1 + Fraction(1, 2**i) for i in range(13)), *(Fraction(1 + 2**i) for i in (1, 2, 3, 5, 30)))
"""The values of k tried in Lemma 5. Each gives a valid bound; large ones help firms with one or two establishments."""
PER_DECADE, LEAST_DECADE, MOST_DECADE = 100, -9, 15
BIN_EDGES = tuple(
    10.0 ** (place / PER_DECADE) for place in range(LEAST_DECADE * PER_DECADE, MOST_DECADE * PER_DECADE + 1)
)
"""Bin edges when several histograms are made in one pass."""
FEW_EDGES = 24
EVENLY = 0.25
"""How far an edge may be from its place in units of the distance of edges; the nearest edge is found below a half."""


def amounts_tree(schema: Schema, values: Sequence[exp.Expr] = ()) -> exp.Select:
    """Return records with measures as floats in their units.

    And with the bands that ``values`` use.
    """
    chosen = [column(name) for name in (*schema.column_names(), schema.firm) if name]
    for measure in schema.measures:
        steps: exp.Expr = _double(column(measure.name))
        if measure.step.numerator != 1:
            steps = exp.Mul(this=steps, expression=_double(constant(measure.step.numerator)))
        if measure.step.denominator != 1:
            steps = exp.Div(this=steps, expression=_double(constant(measure.step.denominator)))
        chosen.append(aliased(steps, exp.to_identifier(measure.name, quoted=True)))
    return with_bands(exp.select(*chosen).from_(RECORDS), bands_in(values))


def histogram_tree(
    value: exp.Expr, edges: Sequence[float], schema: Schema, condition: Predicate | None = None
) -> exp.Expr:
    """Count the records in each bin.

    Bin i holds edges[i-1] < value <= edges[i].
    """
    inner = distinct_records(_select_records(schema, [value], condition), [value], schema)
    valued = exp.select(aliased(value.copy(), VALUE), column(ALIKE)).from_(inner.subquery("amounts", copy=False))
    return binned_tree(valued, edges, ALIKE)


def _select_records(schema: Schema, values: Sequence[exp.Expr], condition: Predicate | None) -> exp.Select:
    """The records of a condition as ``amounts_tree`` has them."""
    inner = amounts_tree(schema, values)
    return inner if condition is None else inner.where(predicate_tree(condition, schema))


def histograms_tree(values: Sequence[exp.Expr], schema: Schema, condition: Predicate | None = None) -> exp.Expr:
    """Several histograms in one pass; see ``many_binned_tree``."""
    inner = distinct_records(_select_records(schema, values, condition), values, schema)
    valued = named_values(values).select(column(ALIKE)).from_(inner.subquery("amounts", copy=False), copy=False)
    return many_binned_tree(valued, len(values), ALIKE)


def named_values(values: Sequence[exp.Expr]) -> exp.Select:
    """Expressions under the names that ``many_binned_tree`` reads."""
    return exp.select(*(aliased(value.copy(), value_name(i)) for i, value in enumerate(values)))


def value_name(number: int) -> str:
    return f"{VALUE}{number}"


def bin_name(number: int) -> str:
    """The column that holds the bins of one of several histograms."""
    return f"{BIN}{number}"


def firm_histogram_tree(value: exp.Expr, edges: Sequence[float], schema: Schema, *, bound: str) -> exp.Expr:
    """Count the firms by joint loss in each bin (T-GROUP).

    The loss is (sum of roots)^2, J times the sum, or Lemma 5; of pure epsilons (``PURE_SUM``) their sum.
    """
    if schema.firm is None:
        raise ParameterError(parameter="firm", problem="is not declared in the schema")
    if bound not in (*FIRM_BOUNDS, PURE_SUM):
        raise ParameterError(parameter="bound", problem=f"must be one of {', '.join(FIRM_BOUNDS)}")
    firm, loss = column(schema.firm), column(VALUE)
    valued = exp.select(firm, aliased(value.copy(), VALUE)).from_(
        amounts_tree(schema, [value]).subquery("amounts", copy=False)
    )
    if bound == "advanced":
        order = exp.Order(expressions=[exp.Ordered(this=value.copy(), desc=True, nulls_first=False)])
        rank = exp.Window(this=exp.RowNumber(), partition_by=[firm.copy()], order=order)
        valued = valued.select(aliased(rank, "place"))
    joint = _joint_loss(bound, loss)
    grouped = exp.select(aliased(joint, VALUE)).from_(valued.subquery("valued", copy=False)).group_by(firm.copy())
    return binned_tree(grouped, edges)


def _joint_loss(bound: str, loss: exp.Expr) -> exp.Expr:
    if bound == "tight":
        roots = exp.Sum(this=exp.Sqrt(this=loss))
        return exp.Mul(this=roots, expression=roots.copy())
    if bound == PURE_SUM:
        return exp.Sum(this=loss)
    if bound == "simple":
        return exp.Mul(this=exp.Count(this=exp.Star()), expression=exp.Sum(this=loss))
    return exp.Least(
        this=_lemma5(RATIOS[0], loss), expressions=[_lemma5(k, loss) for k in RATIOS[1:]], ignore_nulls=True
    )


def _lemma5(ratio: Fraction, loss: exp.Expr) -> exp.Expr:
    """Return the sum of k^j/(k-1) P_j.

    Infinite where k^j leaves the floats; a smaller ratio then decides.
    """
    power = exp.Pow(this=float_tree(float(ratio)), expression=column("place"))
    last = exp.GT(this=column("place"), expression=constant(int(LARGEST_LOG / math.log(ratio))))
    capped = exp.Case(ifs=[exp.If(this=last, true=float_tree(math.inf))], default=power)
    return exp.Div(
        this=exp.Sum(this=exp.Mul(this=capped, expression=loss.copy())), expression=float_tree(float(ratio - 1))
    )


def many_binned_tree(valued: exp.Select, count: int, times: str | None = None) -> exp.Expr:
    """Count the rows in each bin of each value, in one pass.

    A hundred bins per factor of ten: bin i holds values above BIN_EDGES[i-1] and up to BIN_EDGES[i]. Each
    result row belongs to the one histogram whose bin column is not NULL. ``times`` names a column with each
    row's multiplicity.
    """
    return grouped_bins_tree(valued, [_decade_bin(column(value_name(i))) for i in range(count)], times)


def grouped_bins_tree(valued: exp.Select, bins: Sequence[exp.Expr], times: str | None = None) -> exp.Expr:
    """Count the rows in each bin of several values, in one pass."""
    names = [bin_name(i) for i in range(len(bins))]
    numbered = exp.select(*(aliased(tree, name) for tree, name in zip(bins, names)))
    numbered = numbered.select(*([] if times is None else [column(times)]))
    numbered = numbered.from_(valued.subquery("valued", copy=False), copy=False)
    rows = exp.select(*map(column, names), aliased(_row_count(times), COUNT))
    rows = rows.from_(numbered.subquery("numbered", copy=False), copy=False)
    sets = exp.GroupingSets(expressions=[exp.Tuple(expressions=[column(name)]) for name in names])
    rows.set("group", exp.Group(grouping_sets=[sets]))
    return rows


def _decade_bin(value: exp.Expr) -> exp.Expr:
    """Return the bin from a logarithm.

    Cheaper than a tree of comparisons; edges are exact to the last digit or two.
    """
    log = exp.Anonymous(this="LOG10", expressions=[value.copy()])
    place = exp.Anonymous(this="CEIL", expressions=[exp.Mul(this=float_tree(float(PER_DECADE)), expression=log)])
    shifted = exp.Sub(this=exp.cast(place, exp.DType.BIGINT), expression=constant(PER_DECADE * LEAST_DECADE))
    least = exp.LTE(this=value.copy(), expression=float_tree(10.0**LEAST_DECADE))
    most = exp.LTE(this=value.copy(), expression=float_tree(10.0**MOST_DECADE))
    ifs = [exp.If(this=least, true=constant(0)), exp.If(this=most, true=shifted)]
    return exp.Case(ifs=ifs, default=constant(len(BIN_EDGES)))


def increasing(edges: Sequence[float]) -> list[float]:
    """Edges of bins as floats; refused unless they increase."""
    ordered = [float(edge) for edge in edges]
    if not ordered or any(a >= b for a, b in pairwise(ordered)):
        raise ParameterError(parameter="edges", problem="must be increasing numbers")
    return ordered


def binned_tree(valued: exp.Select, edges: Sequence[float], times: str | None = None) -> exp.Expr:
    """Count the rows of a selection of ``value`` in each bin.

    ``times`` names a column with each row's multiplicity.
    """
    ordered = increasing(edges)
    # Nothing is copied on the way: the tree of comparisons has hundreds of nodes.
    counted_as = [] if times is None else [column(times)]
    numbered = exp.select(aliased(bin_tree(column(VALUE), ordered), BIN), *counted_as, copy=False)
    numbered = numbered.from_(valued.subquery("valued", copy=False), copy=False)
    rows = exp.select(column(BIN), aliased(_row_count(times), COUNT))
    rows = rows.from_(numbered.subquery("numbered", copy=False), copy=False)
    return rows.group_by(column(BIN), copy=False).order_by(column(BIN), copy=False)


def _row_count(times: str | None) -> exp.Expr:
    """Under a cast no engine cuts the sum in two."""
    return exp.Count(this=exp.Star()) if times is None else exp.cast(exp.Sum(this=column(times)), exp.DType.BIGINT)


def bin_tree(value: exp.Expr, edges: Sequence[float]) -> exp.Expr:
    """How many of the increasing edges are below a value."""
    scale = _edges_per_decade(edges)
    return _bin(value, edges, 0) if scale is None else _nearest_bin(value, edges, scale)


def _edges_per_decade(edges: Sequence[float]) -> float | None:
    """Return the number of edges per factor of ten.

    None if they are few, or not evenly spaced on a logarithmic scale.
    """
    if len(edges) < FEW_EDGES or edges[0] <= 0 or math.isinf(edges[-1]):
        return None
    first, last = math.log10(edges[0]), math.log10(edges[-1])
    scale = (len(edges) - 1) / (last - first)
    even = all(abs((math.log10(edge) - first) * scale - place) < EVENLY for place, edge in enumerate(edges))
    return scale if even else None


def _nearest_bin(value: exp.Expr, edges: Sequence[float], scale: float) -> exp.Expr:
    """Return the bin from the nearest of evenly spaced edges.

    A logarithm finds the edge and a comparison decides exactly. A tree of comparisons with hundreds of edges
    takes Spark a second to compile.
    """
    log = exp.Anonymous(this="LOG10", expressions=[value.copy()])
    along = exp.Paren(this=exp.Sub(this=log, expression=float_tree(math.log10(edges[0]))))
    nearest = exp.Cast(
        this=exp.Round(this=exp.Mul(this=along, expression=float_tree(scale))), to=exp.DataType(this=exp.DType.INT)
    )
    listed = exp.Array(expressions=[float_tree(edge) for edge in edges])
    edge = exp.Anonymous(this=ELEMENT, expressions=[listed, exp.Add(this=nearest, expression=constant(1))])
    above = exp.Case(
        ifs=[exp.If(this=exp.LTE(this=value.copy(), expression=edge), true=constant(0))], default=constant(1)
    )
    least = exp.LTE(this=value.copy(), expression=float_tree(edges[0]))
    most = exp.LTE(this=value.copy(), expression=float_tree(edges[-1]))
    inside = exp.Add(this=nearest.copy(), expression=exp.Paren(this=above))
    return exp.Case(
        ifs=[exp.If(this=least, true=constant(0)), exp.If(this=most, true=inside)], default=constant(len(edges))
    )


def _bin(value: exp.Expr, edges: Sequence[float], first: int) -> exp.Expr:
    """Return the bin from a balanced tree of comparisons."""
    if not edges:
        return constant(first)
    middle = len(edges) // 2
    test = exp.LTE(this=value.copy(), expression=float_tree(edges[middle]))
    below = _bin(value, edges[:middle], first)
    above = _bin(value, edges[middle + 1 :], first + middle + 1)
    return exp.Case(ifs=[exp.If(this=test, true=below)], default=above)


def float_tree(value: float) -> exp.Expr:
    """A constant as a double in every dialect."""
    if math.isinf(value):
        return _double(exp.Literal.string("Infinity"))
    text = repr(value)
    return exp.Literal.number(text if "e" in text else text + "e0")


def _double(tree: exp.Expr) -> exp.Expr:
    return exp.Cast(this=tree, to=exp.DataType(this=exp.DType.DOUBLE))


def many_beside_tree(
    values: Sequence[exp.Expr], base: Base, table: PlannedTable, names: Names, keys: str, schema: Schema
) -> exp.Expr:
    """Several such histograms in one pass over the records."""
    return many_binned_tree(join_totals(named_values(values), values, base, table, names, keys, schema), len(values))


def join_totals(
    select: exp.Select,
    values: Sequence[exp.Expr],
    base: Base,
    table: PlannedTable,
    names: Names,
    keys: str,
    schema: Schema,
    ids: Sequence[str] = (),
) -> exp.Select:
    totals = additive_tree(base, table, names, keys) or firm_counts_tree(base, table, names, keys)
    assert totals is not None
    cell_totals = totals.subquery("cell", copy=False)
    same = exp.EQ(this=column(POSITION, "located"), expression=column(POSITION, "cell"))
    located = _locate_records(table, keys, schema, values, ids).subquery("located", copy=False)
    return select.from_(located, copy=False).join(cell_totals, on=same, join_type="inner", copy=False)


def _locate_records(
    table: PlannedTable, keys: str, schema: Schema, values: Sequence[exp.Expr] = (), ids: Sequence[str] = ()
) -> exp.Select:
    """Return records of public cells with the positions of those."""
    ids = [name for name in ids if name not in schema.column_names()]
    inner = amounts_tree(schema, values).select(*map(column, ids))
    if table.condition is not None:
        inner = inner.where(predicate_tree(table.condition, schema))
    inner = inner.select(*key_columns(table, lambda each: expression_tree(each, schema)))
    names = [*schema.column_names(), *([schema.firm] if schema.firm else []), *schema.measure_names()]
    names += [*(each.key for each in bands_in(values)), *ids]
    return at_positions(inner, table, keys, names)


CONTRIBUTORS, TOTAL, LARGEST, TIED, SECOND, SQUARES = "contributors", "total", "largest", "tied", "second", "squares"
AMOUNT, TIMES = "amount", "times"


def value_counts_tree(names: Sequence[str], schema: Schema, condition: Predicate | None, *, at_most: int) -> exp.Select:
    """Count the records with each combination of values.

    Measures in steps; at most ``at_most`` rows.
    """
    select = exp.select(*(column(name) for name in names), aliased(exp.Count(this=exp.Star()), COUNT)).from_(RECORDS)
    if condition is not None:
        select = select.where(predicate_tree(condition, schema))
    return select.group_by(*(column(name) for name in names)).limit(at_most)


def contributions_tree(table: PlannedTable, measure: str, schema: Schema, *, keys: str, by_firm: bool) -> exp.Select:
    """Count each nonzero contribution in each public cell.

    Far fewer rows than records where values repeat. Contributions are those of records, or of firms with all
    they have in a cell; negative ones without their sign.
    """
    amounts = _amounts(table, measure, schema, keys=keys, by_firm=by_firm).subquery("amounts", copy=False)
    counted = aliased(exp.Count(this=exp.Star()), TIMES)
    select = exp.select(column(POSITION, "amounts"), column(AMOUNT, "amounts"), counted).from_(amounts)
    return select.group_by(column(POSITION, "amounts"), column(AMOUNT, "amounts"))


def contributors_tree(contributions: str) -> exp.Select:
    """Return statistics of the contributions to each cell.

    Their number, total, two largest distinct values, how often the largest occurs, and the sum of squares.
    """
    largest = aliased(exp.Max(this=column(AMOUNT)), LARGEST)
    tops = exp.select(column(POSITION), largest).from_(contributions).group_by(column(POSITION))
    amount, times = column(AMOUNT, "held"), column(TIMES, "held")
    is_top = exp.EQ(this=amount, expression=column(LARGEST, "tops"))
    size = exp.cast(amount.copy(), exp.DType.DOUBLE)
    weighted = exp.Mul(this=size, expression=exp.cast(times, exp.DType.DOUBLE))
    # Float sums under a cast, so that an engine that splits integer sums in two leaves these alone.
    found = {
        CONTRIBUTORS: exp.cast(exp.Sum(this=times.copy()), exp.DType.DOUBLE),
        TOTAL: exp.cast(exp.Sum(this=weighted), exp.DType.DOUBLE),
        LARGEST: exp.Max(this=column(LARGEST, "tops")),
        TIED: exp.Max(this=exp.Case(ifs=[exp.If(this=is_top, true=times.copy())])),
        SECOND: exp.Max(
            this=exp.Case(ifs=[exp.If(this=exp.Not(this=exp.Paren(this=is_top.copy())), true=amount.copy())])
        ),
        SQUARES: exp.cast(exp.Sum(this=exp.Mul(this=weighted.copy(), expression=size.copy())), exp.DType.DOUBLE),
    }
    same = exp.EQ(this=column(POSITION, "held"), expression=column(POSITION, "tops"))
    select = exp.select(column(POSITION, "held"), *(aliased(tree, name) for name, tree in found.items()))
    select = select.from_(exp.to_table(contributions).as_("held")).join(
        tops.subquery("tops", copy=False), on=same, join_type="inner"
    )
    return select.group_by(column(POSITION, "held"))


def _amounts(table: PlannedTable, measure: str, schema: Schema, *, keys: str, by_firm: bool) -> exp.Select:
    """Return nonzero contributions, unsigned, with their cells' positions."""
    size = absolute_tree(measure, schema)
    used = [measure, *([schema.firm or ""] if by_firm else [])]
    rows = exp.select(*key_columns(table, lambda each: expression_tree(each, schema)), *map(column, used)).from_(
        RECORDS
    )
    if table.condition is not None:
        rows = rows.where(predicate_tree(table.condition, schema))
    rows = rows.where(exp.GT(this=size, expression=constant(0)))
    select = exp.select(column(POSITION)).from_(at_positions(rows, table, keys, used).subquery("located", copy=False))
    if not by_firm:
        return select.select(aliased(size.copy(), AMOUNT))
    joint: exp.Expr = exp.Sum(this=column(measure))
    if isinstance(size, exp.Abs):
        # Under a function no engine cuts the sum in two, so it is one of floats.
        joint = exp.Abs(this=exp.Sum(this=_double(column(measure))))
    select = select.select(aliased(joint, AMOUNT))
    return select.group_by(column(POSITION), column(schema.firm or ""))
