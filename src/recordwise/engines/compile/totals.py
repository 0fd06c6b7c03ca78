"""The statements that compute a plan's exact totals, as SQL trees.

Tables that can be rolled up from the same finest cells share one pass over the records. The cells are then rolled up to each
table and matched with its public keys, or, where keys are selected privately, kept for every cell that holds records. Records
are counted at the points of a public grid by guessing the point in floats and deciding in whole numbers (T-BIN).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa
from sqlglot import exp

from recordwise.engines.compile.expressions import (
    RECORDS,
    absolute_tree,
    aliased,
    balanced_tree,
    column,
    constant,
    expression_tree,
    greatest,
    least,
    pieces_tree,
    predicate_tree,
    prefix_tree,
    threshold_tree,
)
from recordwise.errors import PlanError
from recordwise.plan.expressions import LONGEST_PREFIX, Expression, Field, Levels, Predicate, Prefix, finer
from recordwise.plan.keys.cells import arrow_type, cell_type
from recordwise.plan.plan import BIN, HELD, POSITION, PlannedTable, total_name
from recordwise.plan.schema import LARGEST_BOUND_STEPS, Schema
from recordwise.plan.statistics import AdditiveTotal, CountBins, CountFirms, CountUnits, SumSteps
from recordwise.plan.statistics.totals import PIECE, Splitting

# Which tables of a plan share one pass over the records: those that roll up from the same finest cells (T-ROLLUP).


@dataclass(frozen=True, slots=True)
class Base:
    """The finest cells of a pass and all their tables (T-ROLLUP).

    The tables roll up from ALL of the cells.
    """

    expressions: tuple[Expression, ...]
    tables: tuple[PlannedTable, ...]
    own: int
    """How many of the expressions tell the cells apart; the others are coarser levels that those determine."""

    def additive(self) -> tuple[tuple[AdditiveTotal, Predicate | None], ...]:
        """Return the sums of the pass with their queries' conditions."""
        wanted = [
            (total, table.condition)
            for table in self.tables
            for total in table.totals
            if not isinstance(total, CountFirms)
        ]
        return tuple(dict.fromkeys(wanted))

    def firm_conditions(self) -> tuple[Predicate | None, ...]:
        """Return the conditions under which firms are counted."""
        counted = [table.condition for table in self.tables if CountFirms() in table.totals]
        return tuple(dict.fromkeys(counted))


def bases_of(tables: tuple[PlannedTable, ...], schema: Schema) -> tuple[Base, ...]:
    """Group tables under the finest of them, greedily from fine to coarse."""
    members: dict[tuple[Expression, ...], list[PlannedTable]] = {}
    levels: dict[tuple[Expression, ...], dict[Expression, None]] = {}
    above = {level: each.determined_by(level) for each in reversed(schema.hierarchies) for level in each.levels}
    for table in sorted(tables, key=lambda table: _fineness(table, schema), reverse=True):
        wanted = tuple(dict.fromkeys(group.expression for group in table.shape.groups))
        home = next((base for base in members if _derivable(wanted, base, above)), wanted)
        members.setdefault(home, []).append(table)
        if schema.hierarchies:
            added = (each for each in wanted if not any(finer(candidate, each) for candidate in home))
            levels.setdefault(home, {}).update(dict.fromkeys(added))
    return tuple(Base((*own, *levels.get(own, ())), tuple(group), len(own)) for own, group in members.items())


def _fineness(table: PlannedTable, schema: Schema) -> tuple[int, int]:
    lengths = [
        group.expression.length if isinstance(group.expression, Prefix) else LONGEST_PREFIX + 1
        for group in table.shape.groups
    ]
    return len(lengths), sum(lengths) - sum(_height(group.expression, schema) for group in table.shape.groups)


def _height(expression: Expression, schema: Schema) -> int:
    """Return a level's height above its hierarchy's finest, or 0."""
    found = schema.hierarchy(expression.name) if schema.hierarchies and isinstance(expression, Field) else None
    return 0 if found is None else len(found.levels) - 1 - found.levels.index(expression.name)  # type: ignore[union-attr]


def _derivable(wanted: tuple[Expression, ...], base: tuple[Expression, ...], above: Levels) -> bool:
    return all(any(finer(own, each, above) for own in base) for each in wanted)


# Where a row lies among the public cells of a table: in a listed one, or in the published rest of its coarser cell
# (T-REST).


PLACED = "placed"
KEYS, RESTS = "keys", "rests"


def rests_name(keys: str) -> str:
    """The table of the keys of coarser cells that have a rest."""
    return f"{keys}_rests"


def key_columns(table: PlannedTable, tree: Callable[[Expression], exp.Expr]) -> list[exp.Expr]:
    """Return the coordinates of a row's cell.

    k0, k1... of its cell and, where rests are published, p0, p1... of its coarser cell.
    """
    above = () if table.rest is None else table.rest.groups
    own = [aliased(tree(group.expression), f"k{i}") for i, group in enumerate(table.shape.groups)]
    return own + [aliased(tree(group.expression), f"p{i}") for i, group in enumerate(above)]


def at_positions(rows: exp.Select, table: PlannedTable, keys: str, names: Sequence[str]) -> exp.Select:
    """Return the rows of published cells with their positions."""
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


# The statements: one pass for the finest cells, roll-ups to each table, and the match with its keys.


FIRM = "firm"


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the working tables of one base."""

    cells: str
    firms: tuple[str, ...]
    keys: str


def cells_tree(base: Base, schema: Schema) -> exp.Expr | None:
    """Return the finest cells, in one pass."""
    wanted = base.additive()
    if not wanted:
        return None
    conditions = list(dict.fromkeys(condition for _, condition in wanted))
    select = _group_cells(base, schema, RECORDS)
    for number, (total, condition) in enumerate(wanted):
        value = _additive_tree(total, schema)
        if condition is not None and len(conditions) > 1:
            value = exp.Filter(this=value, expression=exp.Where(this=predicate_tree(condition, schema)))
        select.select(aliased(value, f"a{number}"), copy=False)
    known = [condition for condition in conditions if condition is not None]
    if len(known) == len(conditions):
        select = select.where(balanced_tree(exp.Or, [predicate_tree(condition, schema) for condition in known]))
    return select


def firms_tree(base: Base, condition: Predicate | None, schema: Schema) -> exp.Expr:
    """The distinct pairs of finest cell and firm."""
    select = _columns(base, schema).select(aliased(column(schema.firm or ""), FIRM)).from_(RECORDS).distinct()
    return select if condition is None else select.where(predicate_tree(condition, schema))


def _columns(base: Base, schema: Schema) -> exp.Select:
    return exp.select(*(aliased(expression_tree(e, schema), f"g{i}") for i, e in enumerate(base.expressions)))


def _group_cells(base: Base, schema: Schema, table: str) -> exp.Select:
    select = _columns(base, schema).from_(table)
    return select.group_by(*(expression_tree(each, schema) for each in base.expressions))


def _additive_tree(total: AdditiveTotal, schema: Schema) -> exp.Expr:
    if isinstance(total, CountUnits):
        return exp.Count(this=exp.Star())
    if isinstance(total, SumSteps):
        return exp.Sum(this=_contribution(total, schema))
    return exp.Sum(this=pieces_tree(total.splitting, schema))


def _contribution(total: SumSteps, schema: Schema) -> exp.Expr:
    """Return a record's contribution to a sum, clamped at the cap."""
    whole, declared = column(total.measure), schema.measure(total.measure)
    if total.part is not None:
        whole = greatest(constant(0), whole if total.part == "positive" else exp.Neg(this=whole))
    if total.at_most is None:
        return whole
    cap = min(total.at_most, LARGEST_BOUND_STEPS)
    below = least(whole, constant(cap))
    return greatest(constant(-cap), below) if declared is not None and declared.signed else below


def additive_columns(base: Base, table: PlannedTable) -> dict[str, str]:
    """Return the finest-cell column of each sum and count."""
    additive = [total for total in table.totals if not isinstance(total, CountFirms)]
    return {total_name(table, total): f"a{base.additive().index((total, table.condition))}" for total in additive}


def additive_tree(base: Base, table: PlannedTable, names: Names, keys: str) -> exp.Select | None:
    """Return a table's sums and counts from its stored cells.

    With positions in the keys; cells without records are left out.
    """
    columns = additive_columns(base, table)
    if not columns:
        return None
    if table.rest is not None:
        added = {name: exp.Sum(this=column(source)) for name, source in columns.items()}
        return _totals_by_position(base, table, names.cells, added, list(dict.fromkeys(columns.values())), keys)
    rolled = _finest(base, table, names.cells, columns) if _is_finest(base, table) else None
    sums = {name: exp.Sum(this=column(source)) for name, source in columns.items()}
    return at_keys(table, rolled or _roll_up(base, table, names.cells, sums), keys, list(sums))


def firm_counts_tree(base: Base, table: PlannedTable, names: Names, keys: str) -> exp.Select | None:
    """Return a table's numbers of firms from the stored pairs.

    With positions in the keys; None if it counts no firms.
    """
    if CountFirms() not in table.totals:
        return None
    pairs = names.firms[base.firm_conditions().index(table.condition)]
    firms = {total_name(table, CountFirms()): exp.Count(this=exp.Distinct(expressions=[column(FIRM)]))}
    if table.rest is not None:
        return _totals_by_position(base, table, pairs, firms, [FIRM], keys)
    return at_keys(table, _roll_up(base, table, pairs, firms), keys, list(firms))


def _is_finest(base: Base, table: PlannedTable) -> bool:
    own = set(base.expressions[: base.own])
    return bool(table.shape.groups) and {group.expression for group in table.shape.groups} == own


def _finest(base: Base, table: PlannedTable, source: str, columns: Mapping[str, str]) -> exp.Select:
    """Return the finest cells unchanged, one row each."""
    groups = [rollup_tree(base, group.expression) for group in table.shape.groups]
    select = exp.select(*(aliased(tree, f"k{i}") for i, tree in enumerate(groups)))
    return select.select(*(aliased(column(each), name) for name, each in columns.items())).from_(source)


def _roll_up(base: Base, table: PlannedTable, source: str, totals: Mapping[str, exp.Expr]) -> exp.Select:
    """Roll all finest cells up to a level (T-ROLLUP)."""
    groups = [rollup_tree(base, group.expression) for group in table.shape.groups]
    select = exp.select(*(aliased(tree, f"k{i}") for i, tree in enumerate(groups)))
    select = select.select(*(aliased(tree, name) for name, tree in totals.items())).from_(source)
    return select.group_by(*(tree.copy() for tree in groups)) if groups else select


def _totals_by_position(
    base: Base, table: PlannedTable, source: str, totals: Mapping[str, exp.Expr], used: list[str], keys: str
) -> exp.Select:
    """Return the totals of listed cells and of rests.

    A rest joins several finest cells, so they are placed before they are totaled.
    """
    rows = exp.select(*key_columns(table, lambda each: rollup_tree(base, each)), *map(column, used)).from_(source)
    select = exp.select(column(POSITION), *(aliased(tree, name) for name, tree in totals.items()))
    return select.from_(at_positions(rows, table, keys, used).subquery("located", copy=False)).group_by(
        column(POSITION)
    )


def at_keys(table: PlannedTable, rolled: exp.Select, keys: str, totals: list[str]) -> exp.Select:
    """Return the totals of public cells with their positions."""
    if not table.shape.groups:
        return rolled.select(aliased(constant(0), POSITION))
    matches = [
        exp.NullSafeEQ(this=column(f"k{i}", "rolled"), expression=column(f"k{i}", "keys"))
        for i in range(len(table.shape.groups))
    ]
    select = exp.select(column(POSITION, "keys"), *(column(name, "rolled") for name in totals))
    listed = exp.to_table(keys).as_("keys")
    return select.from_(rolled.subquery("rolled", copy=False)).join(listed, on=exp.and_(*matches), join_type="inner")


def rollup_source(base: Base, wanted: Expression) -> tuple[int, int | None]:
    """Return a group's finest-cell column and prefix length.

    None for the full value.
    """
    number = next(i for i, candidate in enumerate(base.expressions) if finer(candidate, wanted))
    whole = base.expressions[number] == wanted or not isinstance(wanted, Prefix)
    return number, None if whole else wanted.length  # type: ignore[union-attr]


def rollup_tree(base: Base, wanted: Expression) -> exp.Expr:
    """The group of a level, computed from the finest cells."""
    number, length = rollup_source(base, wanted)
    source = column(f"g{number}")
    return source if length is None else prefix_tree(source, length)


GUESS, BELOW, HERE = "guess", "below", "here"
LEAST, LARGEST = -(2**63), 2**63 - 1


def grid_table(bins: CountBins, step: Fraction) -> pa.Table:
    """Return each guess's previous grid point and its own, in steps."""
    points = bins.grid.steps(step)
    return pa.table(
        {
            GUESS: pa.array(range(bins.grid.size), pa.int64()),
            BELOW: pa.array([LEAST, *points[:-1]], pa.int64()),
            HERE: pa.array([*points[:-1], LARGEST], pa.int64()),
        }
    )


def bins_tree(table: PlannedTable, bins: CountBins, schema: Schema, *, grid: str, keys: str) -> exp.Expr:
    """Return the numbers of records in a table's nonempty bins."""
    declared = schema.measure(bins.measure)
    step = declared.step if declared else Fraction(1)
    groups = [expression_tree(group.expression, schema) for group in table.shape.groups]
    guessed = exp.select(
        *key_columns(table, lambda each: expression_tree(each, schema)),
        aliased(column(bins.measure), "amount"),
        aliased(guess_tree(bins, step), GUESS),
    ).from_(RECORDS)
    if table.condition is not None:
        guessed = guessed.where(predicate_tree(table.condition, schema))
    ours = [column(f"k{i}", "guessed") for i in range(len(groups))]
    if table.rest is not None:
        guessed, ours = at_positions(guessed, table, keys, ["amount", GUESS]), [column(POSITION, "guessed")]
    placed = (
        exp.select(*ours, aliased(_corrected_guess(), BIN), aliased(exp.Count(this=exp.Star()), HELD))
        .from_(guessed.subquery("guessed", copy=False))
        .join(
            exp.to_table(grid).as_("grid"), on=exp.EQ(this=column(GUESS, "guessed"), expression=column(GUESS, "grid"))
        )
        .group_by(*(tree.copy() for tree in ours), _corrected_guess())
    )
    return placed if table.rest is not None else at_keys(table, placed, keys, [BIN, HELD])


def guess_tree(bins: CountBins, step: Fraction) -> exp.Expr:
    """A grid position within one of the true position, from float64 arithmetic."""
    grid, amount = bins.grid, column(bins.measure)
    last = grid.size - 1
    low, high = grid.low / step, grid.high / step
    first = exp.LTE(this=amount, expression=constant(grid.steps(step)[0]))
    real = exp.Cast(this=amount.copy(), to=exp.DataType(this=exp.DType.DOUBLE))
    if grid.spacing == "log":
        along: exp.Expr = exp.Ln(this=exp.Div(this=real, expression=_float(float(low))))
        scale = last / math.log(float(high / low))
    else:
        along = exp.Paren(this=exp.Sub(this=real, expression=_float(float(low))))
        scale = last / float(high - low)
    # Take the smaller value first: Spark's CEIL is a 64-bit integer, which a value far above the grid would overflow.
    place = exp.Ceil(this=least(_float(float(last)), exp.Mul(this=along, expression=_float(scale))))
    whole = exp.Cast(this=greatest(_float(0.0), place), to=exp.DataType(this=exp.DType.BIGINT))
    # Values up to the first point are handled without a logarithm, because 0 has none.
    return exp.Case(ifs=[exp.If(this=first, true=constant(0))], default=whole)


def _corrected_guess() -> exp.Expr:
    guess, amount = column(GUESS, "guessed"), column("amount", "guessed")
    one = constant(1)
    before = exp.LTE(this=amount, expression=column(BELOW, "grid"))
    here = exp.LTE(this=amount.copy(), expression=column(HERE, "grid"))
    return exp.Case(
        ifs=[exp.If(this=before, true=exp.Sub(this=guess, expression=one)), exp.If(this=here, true=guess.copy())],
        default=exp.Add(this=guess.copy(), expression=one.copy()),
    )


def _float(value: float) -> exp.Expr:
    text = repr(value)
    return exp.Literal.number(text if "e" in text else text + "e0")


def found_cells_tree(base: Base, table: PlannedTable, names: Names, counted: AdditiveTotal) -> exp.Expr:
    """Return every cell with a record that satisfies the query's condition.

    A finest cell may exist only because of another query; publishing it would reveal a record that this query
    must not see.
    """
    groups = [rollup_tree(base, group.expression) for group in table.shape.groups]
    pieces = exp.Sum(this=column(f"a{base.additive().index((counted, table.condition))}"))
    return (
        exp.select(*(aliased(tree, f"k{i}") for i, tree in enumerate(groups)))
        .from_(names.cells)
        .group_by(*(tree.copy() for tree in groups))
        .having(exp.GT(this=pieces, expression=constant(0)))
    )


def typed_cells(found: pa.Table, table: PlannedTable, schema: Schema) -> pa.Table:
    """Return selected cells in their declared types, sorted.

    Under the groups' names; the order of the records must not be published.
    """
    columns = {
        group.name: found.column(f"k{i}").cast(arrow_type(cell_type(group.expression, schema)[0]))
        for i, group in enumerate(table.shape.groups)
    }
    cells = pa.table(columns)
    return cells.sort_by([(name, "ascending") for name in cells.column_names]).combine_chunks()


# The unit-split table, as a tree. Only an external mechanism needs it: sums and counts use the whole records.


def pieces_count_tree(splitting: Splitting, condition: Predicate | None, schema: Schema) -> exp.Expr:
    """The number of rows the split table will have."""
    select = exp.select(aliased(exp.Sum(this=pieces_tree(splitting, schema)), "rows")).from_(RECORDS)
    return select if condition is None else select.where(predicate_tree(condition, schema))


def split_rows_tree(splitting: Splitting, condition: Predicate | None, schema: Schema) -> exp.Expr:
    """Return one row for each piece (T-SPLIT).

    Ids and conditional columns are copied, measures divided. Piece i of a measure is max(0, min(T, x - (i-1)
    T)): the pieces add up to x, and where another measure needs more pieces they are zero. A negative value is
    cut by its absolute value, and each piece has its sign. A measure without a threshold stays whole on the
    first piece.
    """
    names = [*schema.id_columns(), *schema.column_names(), *schema.measure_names()]
    if PIECE in {name.casefold() for name in names}:
        raise PlanError(problems=(f"the split table reserves the column name '{PIECE}'; rename that column",))
    numbered = exp.select(exp.Star(), aliased(_piece_numbers(splitting, schema), PIECE)).from_(RECORDS)
    if condition is not None:
        numbered = numbered.where(predicate_tree(condition, schema))
    copied = dict.fromkeys((*schema.id_columns(), *schema.column_names()))
    select = exp.select(*(column(name) for name in copied), column(PIECE)).from_(
        numbered.subquery("numbered", copy=False)
    )
    thresholds = dict(splitting.thresholds)
    for measure in schema.measure_names():
        if measure in thresholds:
            cut = _piece_tree(measure, threshold_tree(measure, thresholds[measure], schema), schema)
        else:
            first = exp.EQ(this=column(PIECE), expression=constant(1))
            cut = exp.Case(ifs=[exp.If(this=first, true=column(measure))], default=constant(0))
        select = select.select(aliased(cut, exp.to_identifier(measure, quoted=True)))
    return select.order_by(*map(column, schema.unit_columns), column(PIECE))


def _piece_numbers(splitting: Splitting, schema: Schema) -> exp.Expr:
    return exp.Explode(this=exp.GenerateSeries(start=constant(1), end=pieces_tree(splitting, schema)))


def _piece_tree(measure: str, at: exp.Expr, schema: Schema) -> exp.Expr:
    before = exp.Mul(this=exp.Paren(this=exp.Sub(this=column(PIECE), expression=constant(1))), expression=at)
    rest = exp.Paren(this=exp.Sub(this=absolute_tree(measure, schema), expression=before))
    piece = greatest(constant(0), least(rest, at.copy()))
    declared = schema.measure(measure)
    if declared is None or not declared.signed:
        return piece
    negative = exp.LT(this=column(measure), expression=constant(0))
    return exp.Case(ifs=[exp.If(this=negative, true=exp.Neg(this=exp.Paren(this=piece)))], default=piece.copy())
