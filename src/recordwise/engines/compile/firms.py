"""The joint loss of each firm in one statement (T-CELLS).

The sum over cells of the smallest bound for the firm's units there. Most firms have one unit and lose what
its policy says, so only the units of the others are grouped by cell; those of one unit are counted by the
values that the policies look at. Confidential, for the owner only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from recordwise.engines.compile.expressions import RECORDS, aliased, column, constant, expression_tree, predicate_tree
from recordwise.engines.compile.owner import amounts_tree, bin_tree, float_tree, value_name
from recordwise.errors import ParameterError
from recordwise.plan.describe import schema_of
from recordwise.plan.expressions import leaves, operand_name
from recordwise.plan.plan import PlannedTable
from recordwise.plan.schema import Schema
from recordwise.policy.evaluate.sql import band_sql, evaluator_of, terms_sql
from recordwise.policy.evaluate.sql import number as double
from recordwise.policy.firms import FIRM, NODES, PURE, SIGNS, SUMS, FirmPart
from recordwise.policy.policy import Policy

Units = tuple[exp.Select, list[exp.Expr]]
UNITS, CELLS, EACH = "units", "cells", "each_cell"
ALMOST_SURE = 1 - 2.0**-50
ROUNDING = 2.0**-50


@dataclass(frozen=True, slots=True)
class FirmTable:
    """One table with its parts in each of several plans."""

    table: PlannedTable
    parts: tuple[tuple[FirmPart, ...], ...]
    """One tuple for each plan; empty where the plan does not have the table."""


def several_tree(schema: Schema) -> exp.Select:
    """The firms that have more than one unit."""
    if schema.firm is None:
        raise ParameterError(
            parameter="firm", problem="is not declared in the schema", advice="Declare the column: firm='firm_id'."
        )
    firm = column(schema.firm)
    more = exp.GT(this=exp.Count(this=exp.Star()), expression=constant(1))
    return exp.select(aliased(firm, FIRM_ID)).from_(RECORDS).group_by(firm.copy()).having(more)


def all_firms_tree(
    tables: Sequence[FirmTable], count: int, schema: Schema, *, several: str, dialect: str
) -> exp.Select:
    """Return the rho of each firm under each plan, then deltas.

    Under the names of ``value_name``. A row stands for the number of firms in ``TIMES``. ``several`` is the
    table of the results of ``several_tree``.
    """
    names = [value_name(number) for number in range(2 * count)]
    joined = firm_values_tree(tables, count, schema, several=several, dialect=dialect).subquery("joined", copy=False)
    each = exp.select(*map(column, names), aliased(constant(1), TIMES)).from_(joined)
    alone = single_units_tree(tables, count, schema, several=several, dialect=dialect)
    united = exp.Union(this=each, expression=alone, distinct=False).subquery("firms", copy=False)
    return exp.select(*map(column, [*names, TIMES])).from_(united)


def firm_values_tree(
    tables: Sequence[FirmTable], count: int, schema: Schema, *, several: str, dialect: str
) -> exp.Select:
    """One row for each firm of several units, with its losses."""
    names = [value_name(number) for number in range(2 * count)]
    # A firm that no table is about loses nothing, and it counts.
    nothing = (aliased(float_tree(0.0), name) for name in names)
    united: exp.Expr = exp.select(column(FIRM_ID), *nothing).from_(several)
    for table in tables:
        for branch in _table_branches(table, count, schema, several, dialect):
            united = exp.Union(this=united, expression=branch, distinct=False)
    sums: list[exp.Expr] = [exp.Sum(this=column(name)) for name in names[:count]]
    sums += [least(float_tree(1.0), exp.Sum(this=column(name))) for name in names[count:]]
    select = exp.select(*(aliased(tree, name) for tree, name in zip(sums, names)))
    return select.from_(exp.Subquery(this=united, alias=exp.TableAlias(this=exp.to_identifier("parts")))).group_by(
        column(FIRM_ID)
    )


def single_units_tree(
    tables: Sequence[FirmTable], count: int, schema: Schema, *, several: str, dialect: str
) -> exp.Select:
    """Return the losses of firms of one unit."""
    used = replace(_used_schema(tables, schema), firm=None, collapse=None)
    names = [*used.column_names(), *used.measure_names()]
    counted = exp.select(*map(column, names), aliased(exp.Count(this=exp.Star()), TIMES)).from_(RECORDS)
    counted = counted.where(exp.Not(this=_in_several(schema, several)))
    if names:
        counted = counted.group_by(*map(column, names))
    amounts = amounts_tree(used, _bands(tables)).select(column(TIMES)).from_(counted.subquery(RECORDS, copy=False))
    for number, each in enumerate(tables):
        if each.table.condition is not None:
            amounts = amounts.select(aliased(predicate_tree(each.table.condition, schema), f"table_of_unit_{number}"))
    rho = [sum_tree(_terms(tables, number, dialect, delta=False)) for number in range(count)]
    delta = [sum_tree(_terms(tables, number, dialect, delta=True)) for number in range(count)]
    values = [*rho, *(least(float_tree(1.0), chance) for chance in delta)]
    named = (aliased(tree, value_name(number)) for number, tree in enumerate(values))
    return exp.select(*named, column(TIMES)).from_(amounts.subquery(UNITS, copy=False))


def _bands(tables: Sequence[FirmTable]) -> list[exp.Expr]:
    """Return the bands in the tables' policies, as joined columns."""
    policies = (part.policy for each in tables for plan in each.parts for part in plan)
    return [band_sql(table) for policy in policies for table in policy.bands().values()]


def _terms(tables: Sequence[FirmTable], plan: int, dialect: str, *, delta: bool) -> list[exp.Expr]:
    """Return one unit's losses by the parts of a plan."""
    found: list[exp.Expr] = []
    for number, each in enumerate(tables):
        for part in each.parts[plan]:
            terms = part.policy.delta_terms if delta else part.policy.rho
            loss = terms_sql(terms, dialect) if terms else None
            if loss is not None and each.table.condition is not None:
                loss = exp.Case(
                    ifs=[exp.If(this=column(f"table_of_unit_{number}"), true=loss)], default=float_tree(0.0)
                )
            found += [] if loss is None else [loss]
    return found


def _used_schema(tables: Sequence[FirmTable], schema: Schema) -> Schema:
    """Return the schema of columns that policies and conditions name."""
    conditions = [each.table.condition for each in tables if each.table.condition is not None]
    names = {operand_name(leaf.operand) for condition in conditions for leaf in leaves(condition)}
    return schema_of(schema, names, *(part.policy for each in tables for plan in each.parts for part in plan))


def _in_several(schema: Schema, several: str) -> exp.Expr:
    """Whether the firm of a record has more than one unit."""
    same = exp.EQ(this=column(FIRM_ID, several), expression=column(schema.firm or "", RECORDS))
    return exp.Exists(this=exp.select(constant(1)).from_(several).where(same))


FIRM_ID, TIMES = "firm_of_unit", "times_of_unit"


def _table_branches(table: FirmTable, count: int, schema: Schema, several: str, dialect: str) -> Iterator[exp.Select]:
    """Yield one branch for joined cells, and one per quantile tree."""
    units = units_tree(table.table, schema, several, _bands([table]))
    cells = FirmCells(units, schema, dialect)
    rho: list[list[exp.Expr]] = [[] for _ in range(count)]
    delta: list[list[exp.Expr]] = [[] for _ in range(count)]
    for number, parts in enumerate(table.parts):
        for part in parts:
            if part.joint.kind == NODES:
                yield _tree_branch(part, number, count, units, schema, dialect)
                continue
            rho[number].append(cells.loss(part))
            if part.tails():
                delta[number].append(cells.chance(part))
    if any(rho):
        yield cells.branch(rho, delta)


class FirmCells:
    """The units of each firm in each cell of a table."""

    def __init__(self, units: Units, schema: Schema, dialect: str) -> None:
        self.units, self.schema, self.dialect = units, schema, dialect
        self.wanted: dict[str, exp.Expr] = {}
        """Aggregates by the SQL text that makes them, so that each is computed once."""

    def aggregate(self, tree: exp.Expr) -> exp.Expr:
        """Return the column of an aggregate over a firm's units."""
        text = tree.sql(dialect=self.dialect)
        if text not in self.wanted:
            self.wanted[text] = tree
        return column(f"a{list(self.wanted).index(text)}", CELLS)

    def roots(self, policy: Policy) -> exp.Expr:
        return self.aggregate(exp.Sum(this=exp.Sqrt(this=terms_sql(policy.rho, self.dialect))))

    def loss(self, part: FirmPart) -> exp.Expr:
        """The smallest bound in one cell."""
        if part.policy.is_pure:
            return self.epsilon(part)
        roots = self.roots(part.policy)
        bound: exp.Expr = exp.Mul(this=roots, expression=roots.copy())
        if part.joint.kind == FIRM:
            return least(bound, self.aggregate(exp.Max(this=terms_sql(part.policy.rho, self.dialect))))
        if part.joint.kind in (SUMS, SIGNS):
            return least(bound, self.at_sums(part))
        if part.joint.kind == PURE:
            sql, added = evaluator_of(self.dialect), exp.Paren(this=self.epsilon(part.pure()))
            return least(bound, sql.multiply(added, sql.tanh(sql.multiply(double(0.5), added.copy()))))
        return exp.Paren(this=bound)

    def epsilon(self, part: FirmPart) -> exp.Expr:
        """The joint epsilon in one cell of a pure part (T-PURE)."""
        one = terms_sql(part.policy.rho, self.dialect)
        if part.joint.kind == FIRM:
            return self.aggregate(exp.Max(this=one))
        added = self.aggregate(exp.Sum(this=one))
        return least(added, self.at_sums(part)) if part.joint.kind in (SUMS, SIGNS) else added

    def at_sums(self, part: FirmPart) -> exp.Expr:
        """Return the policy at the sum, or at sums by sign."""
        name = str(part.joint.measure)
        value: exp.Expr = exp.cast(column(name), exp.DType.DOUBLE)
        zero = float_tree(0.0)
        values = [value] if part.joint.kind == SUMS else [_above(zero, value), _above(zero, exp.Neg(this=value))]
        losses: list[exp.Expr] = []
        for each in values:
            joined = self.aggregate(exp.Sum(this=each))
            loss = self._over_cells(terms_sql(part.policy.rho, self.dialect), {name: joined}, part)
            nothing = exp.EQ(this=joined.copy(), expression=zero.copy())
            losses.append(exp.Case(ifs=[exp.If(this=nothing, true=zero.copy())], default=loss))
        return sum_tree(losses)

    def _over_cells(self, tree: exp.Expr, joined: dict[str, exp.Expr], part: FirmPart) -> exp.Expr:
        """Rewrite a formula over a record's columns for a cell's."""
        names = sorted({each.name for each in part.policy.columns()})
        groups = {each: self.aggregate(exp.Min(this=column(each))) for each in names}
        groups |= {each.key: self.aggregate(exp.Min(this=band_sql(each))) for each in part.policy.bands().values()}
        known = groups | joined
        return tree.transform(lambda node: known[node.name].copy() if isinstance(node, exp.Column) else node)

    def at_total(self, tree: exp.Expr, measure: str) -> exp.Expr:
        """Rewrite a record's loss for a firm that leaves its cell."""
        value = exp.cast(column(measure), exp.DType.DOUBLE)

        def known(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column):
                return node
            return self.aggregate(exp.Sum(this=value) if node.name == measure else exp.Min(this=column(node.name)))

        return tree.transform(known)

    def chance(self, part: FirmPart) -> exp.Expr:
        """Return the chance that a firm's pieces list a key."""
        sql, weight = evaluator_of(self.dialect), float(part.piece_loss())
        pieces = exp.Div(this=self.roots(part.policy), expression=float_tree(weight**0.5))
        whole = exp.cast(exp.Anonymous(this="ROUND", expressions=[pieces]), exp.DType.DOUBLE)
        return sql.step_up(whole, part.tails(), double(1.0))

    def branch(self, rho: Sequence[Sequence[exp.Expr]], delta: Sequence[Sequence[exp.Expr]]) -> exp.Select:
        """Return the firm, its rho under each plan and its deltas."""
        inner, keys = self.units
        firm = aliased(column(self.schema.firm or "", UNITS), FIRM_ID)
        joined = exp.select(firm, *(aliased(tree, f"a{i}") for i, tree in enumerate(self.wanted.values())))
        joined = joined.from_(inner.subquery(UNITS, copy=False)).group_by(column(self.schema.firm or "", UNITS), *keys)
        chances = [each for plan in delta for each in plan]
        each_cell = exp.select(
            column(FIRM_ID, CELLS), *(aliased(sum_tree(list(plan)), f"l{i}") for i, plan in enumerate(rho))
        )
        each_cell = each_cell.select(*(aliased(tree, f"d{i}") for i, tree in enumerate(chances)))
        each_cell = each_cell.from_(joined.subquery(CELLS, copy=False))
        place = iter(range(len(chances)))
        deltas = [sum_tree([_any_of(column(f"d{next(place)}", EACH)) for _ in plan]) for plan in delta]
        values = [*(exp.Sum(this=column(f"l{i}", EACH)) for i in range(len(rho))), *deltas]
        named = (aliased(tree, value_name(number)) for number, tree in enumerate(values))
        select = exp.select(column(FIRM_ID, EACH), *named).from_(each_cell.subquery(EACH, copy=False))
        return select.group_by(column(FIRM_ID, EACH))


def units_tree(table: PlannedTable, schema: Schema, several: str, bands: Sequence[exp.Expr] = ()) -> Units:
    """Return the records of firms with several units."""
    inner = amounts_tree(schema, bands).where(_in_several(schema, several))
    if table.condition is not None:
        inner = inner.where(predicate_tree(table.condition, schema))
    groups = [expression_tree(group.expression, schema) for group in table.joined_by()]
    inner = inner.select(*(aliased(tree, key_name(i)) for i, tree in enumerate(groups)))
    return inner, [column(key_name(i), UNITS) for i in range(len(groups))]


def key_name(number: int) -> str:
    """A name that no column of the records should have."""
    return f"key_of_cell_{number}"


def _above(zero: exp.Expr, value: exp.Expr) -> exp.Expr:
    return exp.Greatest(this=value.copy(), expressions=[zero.copy()], ignore_nulls=False)


def least(first: exp.Expr, second: exp.Expr) -> exp.Expr:
    """The smaller of two numbers that are never NULL."""
    return exp.Least(this=first, expressions=[second], ignore_nulls=False)


def sum_tree(trees: Sequence[exp.Expr]) -> exp.Expr:
    if not trees:
        return float_tree(0.0)
    total = trees[0]
    for tree in trees[1:]:
        total = exp.Add(this=total, expression=tree)
    return exp.Paren(this=total)


def _any_of(chance: exp.Expr) -> exp.Expr:
    """Return the probability of any independent event, rounded up."""
    kept = exp.Sub(this=float_tree(1.0), expression=least(chance, float_tree(ALMOST_SURE)))
    none = exp.Exp(this=exp.Sum(this=exp.Ln(this=exp.Paren(this=kept))))
    product = exp.Sub(this=float_tree(1.0 + ROUNDING), expression=none)
    sure = exp.GTE(this=exp.Max(this=chance.copy()), expression=float_tree(1.0))
    smaller = least(exp.Sum(this=chance.copy()), exp.Paren(this=product))
    return exp.Case(ifs=[exp.If(this=sure, true=float_tree(1.0))], default=smaller)


def _tree_branch(part: FirmPart, number: int, count: int, units: Units, schema: Schema, dialect: str) -> exp.Select:
    """Return the firm's rho by the tree of one quantile."""
    inner, keys = units
    joint = part.joint
    levels = range(1, joint.counted_levels + 1)
    value = exp.cast(column(str(joint.measure), UNITS), exp.DType.DOUBLE)
    points = [float(point) for point in joint.points]
    nodes = [
        bin_tree(value, points[(1 << joint.counted_levels - level) - 1 :: 1 << joint.counted_levels - level])
        for level in levels
    ]
    firm, loss = column(schema.firm or "", UNITS), terms_sql(part.policy.rho, dialect)
    placed = exp.select(
        aliased(firm, FIRM_ID), aliased(loss, "loss"), *(aliased(key, f"k{i}") for i, key in enumerate(keys))
    )
    placed = placed.select(*(aliased(tree, f"n{level}") for level, tree in zip(levels, nodes))).from_(
        inner.subquery(UNITS, copy=False)
    )
    fixed = [column(FIRM_ID), *(column(f"k{i}") for i in range(len(keys)))]
    held = exp.cast(exp.Count(this=exp.Star()), exp.DType.DOUBLE)
    of_last = exp.Case(
        ifs=[exp.If(this=exp.Not(this=exp.Is(this=column(f"n{levels[-1]}"), expression=exp.null())), true=constant(1))],
        default=constant(0),
    )
    counted = exp.select(column(FIRM_ID), aliased(held, "held"), aliased(exp.Max(this=column("loss")), "loss"))
    counted = counted.select(aliased(of_last, "last")).from_(placed.subquery("placed", copy=False))
    sets = exp.GroupingSets(
        expressions=[exp.Tuple(expressions=[*(each.copy() for each in fixed), column(f"n{level}")]) for level in levels]
    )
    counted.set("group", exp.Group(grouping_sets=[sets]))
    repeated = exp.Case(
        ifs=[
            exp.If(
                this=exp.EQ(this=column("last"), expression=constant(1)),
                true=float_tree(1.0 + joint.levels - len(levels)),
            )
        ],
        default=float_tree(1.0),
    )
    square = exp.Mul(this=exp.Mul(this=column("held"), expression=column("held")), expression=repeated)
    one = exp.Div(this=column("loss"), expression=float_tree(float(joint.levels)))
    total = exp.Sum(this=exp.Mul(this=one, expression=square))
    values = [total if place == number else float_tree(0.0) for place in range(2 * count)]
    named = (aliased(tree, value_name(place)) for place, tree in enumerate(values))
    return exp.select(column(FIRM_ID), *named).from_(counted.subquery("counted", copy=False)).group_by(column(FIRM_ID))
