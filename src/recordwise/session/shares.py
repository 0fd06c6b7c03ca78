"""The best shares of a loss over the tables of a query, from public lists and sizes alone (T-FITSHARES).

A cell counts by its relative error in the best linear fit of all tables of its query. Cells of one table and one size class
(a power of ten) count together, by the mean of their relative variances over what the goal allows their class; the shares make the
largest of these means as small as possible (``split``). No record is read.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, positive
from recordwise.exact.text import digits_text, share_text
from recordwise.plan.cost import cell_mechanisms
from recordwise.plan.describe import group_json
from recordwise.plan.expressions import ALL_OTHER, Choice
from recordwise.plan.keys.bands import sizes_at
from recordwise.plan.plan import Plan, PlannedTable, size_names
from recordwise.plan.query import Query
from recordwise.plan.statistics import Drawable
from recordwise.postprocess.linear import AnswerTree, Crossing, tree_of
from recordwise.release.nesting import cell_axes, finest_of, fitted_cells
from recordwise.release.published import CodeLists, Groups, read_groups
from recordwise.release.tables import ReleasedTable
from recordwise.session.split import Split, least_product, least_split, product_of

LEAST_SHARE = Fraction(1, 1000)
"""No level gets less, so that its own answers stay of use; it costs the others a thousandth."""
LEAST_TABLE = Fraction(1, 10_000)
"""The same for a table of its own share, of which there are more."""
DIGITS = 3
"""Of every share but the largest, which takes what is left."""
NEARLY = 1.05
"""A variance this much larger is not worth a change."""
PRODUCT = 1.005
"""Nor is one this much larger worth a share for each table, instead of one for each level of each axis."""

Sizes = Callable[[PlannedTable, Drawable], FloatArray | None]
Goal = Mapping[Number, Number]
"""The relative error that cells of at least some size may have, by this size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BestShares:
    """The shares of one query that need the least noise."""

    query: int
    """The number of the query in its plan."""
    variables: tuple[str, ...]
    """What decided: counts and sums, by published name."""
    axes: tuple[tuple[Fraction, ...], ...]
    """The shares along each axis of the query, each adding up to 1."""
    tables: tuple[Fraction, ...] = ()
    """The share of each table, where levels cross and products of ``axes`` need more; else empty."""
    now: float
    """The variance that the query's own shares need for the goal, divided by that of these."""
    equal: float
    """The same for equal shares."""
    sized: bool
    """Whether sizes were public; else all cells of the finest table were taken as alike."""

    def applied(self, query: Query) -> Query:
        """Return the query with these shares.

        Args:
            query: The query.

        Returns:
            A new query.
        """
        best = None if query.best is None else replace(query.best, found=self.axes, tables=self.tables)
        return replace(with_axis_shares(query, self.axes), table_shares=self.tables, best=best)

    def text(self) -> str:
        """In words."""
        named = [("table_share", self.tables)] if self.tables else [("share", own) for own in self.axes if len(own) > 1]
        lists = " and ".join(
            f"{name} = [{', '.join(share_text(float(each), 2) for each in own)}]" for name, own in named
        )
        own = "" if self.now < NEARLY else f"; those of the plan need {digits_text(self.now, 3)} times as much"
        alike = "" if self.sized else ", taking the cells of the finest table as alike"
        return (
            f"{', '.join(self.variables)}: for the same relative errors of fitted cells by size class, equal shares would "
            f"need {digits_text(self.equal, 3)} times the variance of {lists}{own}{alike}."
        )

    def to_json(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        shares = [[float(each) for each in own] for own in self.axes if len(own) > 1]
        return {
            "query": self.query,
            "variables": list(self.variables),
            "now": self.now,
            "equal": self.equal,
            "shares": shares,
            **({"table_shares": [float(each) for each in self.tables]} if self.tables else {}),
            "sized": self.sized,
        }


def best_shares(
    plan: Plan, query: int = 0, *, goal: Goal | None = None, complete: bool = False, sizes: Sizes | None = None
) -> BestShares:
    """Return the shares over the tables of a query that need the least noise for a goal.

    Errors are those of the best linear fit of all tables, by its exact variances, at sizes that are public. The shares
    are the best there are, up to a hundredth of the variance; where levels cross, one for each table, unless products of
    one for each level do. Where statistics differ, none needs much more than with shares of its own. They follow from
    the plan alone.

    Args:
        plan: The plan, with the sizes of earlier releases read.
        query: The number of the query in it, from 0.
        goal: The relative error that cells of at least some size may have, by this size: ``{100: "0.2", 1000: "0.1"}``;
            smaller cells do not count. Unless given, the same error in every size class from the middle cell of the
            finest table on.
        complete: Whether the keys list every cell that can hold records, so that finer cells add up to coarser ones.
        sizes: The sizes of the cells of a table for a statistic, or None; those of the keys unless given.

    Returns:
        The shares as exact fractions, and what equal ones would need.

    Raises:
        ParameterError: Keys are selected from the records, or a goal by size is given and no sizes are public.
    """
    tables = [each for each in plan.tables() if each.query == query]
    if any(plan.selection(each) is not None for each in tables):
        raise ParameterError(
            parameter="share",
            problem="cannot be chosen before keys are selected",
            advice="State the shares, or give public keys.",
        )
    own = plan.queries[query]
    lengths = [len(axis) for axis in own.axes]
    drawn = [each for each in own.draws() if each.totals(plan.schema)]
    parts = _costs(plan, tables, drawn, goal, complete, sizes or _public(plan)) if len(tables) > 1 and drawn else []
    if not parts:
        even = tuple(tuple(Fraction(1, length) for _ in range(length)) for length in lengths)
        return BestShares(query=query, variables=(), axes=even, now=1.0, equal=1.0, sized=False)
    least = float(LEAST_TABLE if _crosses(lengths) else LEAST_SHARE)
    found = [least_split(each, _alone(each), least) for each in parts]
    worst, best = _Worst(parts, [1.0] if len(parts) == 1 else [each.cost for each in found]), found[0]
    if len(parts) > 1:
        known = [each.tangents * each.cost for each in found]
        best = least_split(worst.costs, found[0].shares, least, known)
    axes, free = _exact(best, lengths, worst)
    needed = worst(_shares(replace(with_axis_shares(own, axes), table_shares=free)))
    return BestShares(
        query=query,
        variables=tuple(name for each in parts for name in each.variables),
        axes=axes,
        tables=free,
        now=worst(_shares(own)) / needed,
        equal=worst(np.full(len(tables), 1 / len(tables))) / needed,
        sized=any(each.sized for each in parts),
    )


def _crosses(lengths: Sequence[int]) -> bool:
    return sum(length > 1 for length in lengths) > 1


@dataclass(frozen=True, slots=True, eq=False)
class _Worst:
    """The largest cost of shares for all statistics, each next to the least that it needs by itself."""

    parts: "Sequence[ShareCost]"
    scale: Sequence[float]
    known: dict[bytes, float] = field(default_factory=dict)

    def costs(self, shares: FloatArray) -> FloatArray:
        return np.concatenate([each(shares) / by for each, by in zip(self.parts, self.scale)])

    def __call__(self, shares: FloatArray) -> float:
        if (at := shares.tobytes()) not in self.known:
            self.known[at] = float(np.max(self.costs(shares)))
        return self.known[at]


Axes = tuple[tuple[Fraction, ...], ...]


def _exact(best: Split, lengths: Sequence[int], worst: _Worst) -> tuple[Axes, tuple[Fraction, ...]]:
    """Return the best shares as exact fractions: along each axis, and of the tables where these need measurably less."""
    if not _crosses(lengths):
        own = rounded_shares(best.shares, LEAST_SHARE)
        return tuple(own if length > 1 else (Fraction(1),) for length in lengths), ()
    axes = tuple(rounded_shares(each, LEAST_SHARE) for each in least_product(best, lengths, float(LEAST_SHARE)))
    free = rounded_shares(best.shares, LEAST_TABLE)
    by_axis = product_of([np.array(each, np.float64) for each in axes])
    return axes, () if worst(by_axis) <= PRODUCT * worst(np.array(free, np.float64)) else free


def public_sizes(plan: Plan, table: PlannedTable, part: Drawable) -> FloatArray | None:
    """Return the public sizes of the cells of a table, as totals of a statistic; None where they are of something else.

    Args:
        plan: The plan.
        table: One of its tables.
        part: One of its statistics.

    Returns:
        A size for each listed cell.
    """
    keys = plan.queries[table.query].sized_keys(table.shape, size_names(part))
    if keys is None or keys.sizes is None:
        return None
    if not keys.sizes.named(*size_names(part)) and not part.mechanism.is_sized:
        return None
    return sizes_at(keys, table.shape.groups, plan.schema, size_names(part))


def _public(plan: Plan) -> Sizes:
    return lambda table, part: public_sizes(plan, table, part)


# What shares cost a statistic: for each table and size class the mean of the relative variances of its fitted cells.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShareCost:
    """The cost of shares for statistics with proportional noise."""

    variables: tuple[str, ...]
    tree: AnswerTree | Crossing
    level: Any
    """The number of the table of each answer."""
    variance: FloatArray
    """The variance of each answer that gets the whole loss."""
    group: Any
    """The table and size class of each answer, numbered; -1 if it does not count."""
    scale: FloatArray
    """What the variance of each answer counts for in its group."""
    sized: bool

    def __call__(self, shares: FloatArray) -> FloatArray:
        """Return the mean relative variance of each table and size class, at these shares of the tables."""
        fitted = self.tree.weights(self.variance / shares[self.level]).fitted
        return self.means(np.asarray(fitted))

    def means(self, variance: FloatArray) -> FloatArray:
        """Return the mean of each table and size class."""
        counted = self.group >= 0
        return np.asarray(np.bincount(self.group[counted], (variance * self.scale)[counted]), np.float64)


def _costs(
    plan: Plan,
    tables: Sequence[PlannedTable],
    drawn: Sequence[Drawable],
    goal: Goal | None,
    complete: bool,
    sizes: Sizes,
) -> list[ShareCost]:
    """Return what shares cost each statistic; those that always agree are one."""
    tree, order, counts, covered = public_tree(plan, tables, complete=complete)
    level = np.concatenate([np.full(counts[n], n) for n in order])
    listed = np.concatenate([_listed(plan, tables[n], counts[n]) for n in order])
    known = {each: _sizes_in_order(tables, each, order, counts, sizes) for each in drawn}
    usable = next((own for own in known.values() if own is not None), None)
    if goal is not None and usable is None:
        raise ParameterError(
            parameter="goal", problem="is by size, and no sizes are public", advice="Give keys with sizes, or no goal."
        )
    found: list[ShareCost] = []
    for each in drawn:
        own = known[each]
        size = own if own is not None else usable if usable is not None else covered
        group, scale = _classes(np.where(listed, size, 0.0), level, order[0], goal)
        variance = np.concatenate([_full_variance(plan, tables[n], each, size[level == n]) for n in order])
        if not np.all(np.isfinite(variance)) or not np.any(group >= 0):
            continue
        made = ShareCost(
            variables=(each.alias,),
            tree=tree,
            level=level,
            variance=variance,
            group=group,
            scale=scale,
            sized=usable is not None,
        )
        same = next((n for n, other in enumerate(found) if _proportional(other, made)), None)
        if same is None:
            found.append(made)
        else:
            found[same] = replace(found[same], variables=(*found[same].variables, each.alias))
    return found


def public_tree(
    plan: Plan, tables: Sequence[PlannedTable], *, complete: bool = False
) -> tuple[AnswerTree | Crossing, list[int], list[int], FloatArray]:
    """Return the answers of a query, the order of its tables, their numbers of cells, and the finest cells of each answer."""
    named = [str(number) for number in range(len(tables))]
    by = {
        name: read_groups(group_json(group, plan.schema) for group in table.shape.groups)
        for name, table in zip(named, tables)
    }
    cells = [plan.cells(each) if each.shape.groups else pa.table({"all": [True]}) for each in tables]
    counts = [own.num_rows for own in cells]
    if finest_of(list(by.values())) is None:
        # No table tells the cells of all others: every answer is by itself.
        alone = np.concatenate([np.full(count, 1 / count) for count in counts])
        return AnswerTree.of(np.full(sum(counts), -1)), list(range(len(tables))), counts, alone
    made = [
        ReleasedTable(name=name, keys=tuple(own.column_names) if table.shape.groups else (), variables=(), data=own)
        for name, own, table in zip(named, cells, tables)
    ]
    lists = CodeLists.read(each.to_json() for each in plan.schema.hierarchies)
    tree, order, _, rows = tree_of_tables(
        made, by, lists, complete or plan.queries[tables[0].query].all_other is not None
    )
    return tree, order, counts, np.diff(rows.indptr).astype(np.float64)


def tree_of_tables(
    tables: Sequence[ReleasedTable], by: Mapping[str, Groups], lists: CodeLists, known: bool
) -> tuple[AnswerTree | Crossing, list[int], bool, Any]:
    """Return tables as answers, their order, finest first, whether no record can be in coarser cells only, and the cells."""
    order = sorted(range(len(tables)), key=lambda n: (len(by[tables[n].name]), tables[n].data.num_rows), reverse=True)
    finest = finest_of([by[tables[n].name] for n in order])
    assert finest is not None
    order.insert(0, order.pop(finest))
    ordered = [tables[n] for n in order]
    rows = fitted_cells(ordered, by, complete=known, lists=lists).rows(ordered, by, lists)
    tree = tree_of(rows) or Crossing.of(rows, [each.data.num_rows for each in ordered], cell_axes(ordered, by, lists))
    return tree, order, known or rows.shape[1] == ordered[0].data.num_rows, rows


def _listed(plan: Plan, table: PlannedTable, count: int) -> Any:
    """Return which cells are no published rest."""
    rest = np.zeros(count, bool)
    if table.rest is not None:
        rest = np.asarray(plan.cells(table).column(ALL_OTHER).to_numpy(zero_copy_only=False), bool)
    return ~rest


def _sizes_in_order(
    tables: Sequence[PlannedTable], part: Drawable, order: Sequence[int], counts: Sequence[int], sizes: Sizes
) -> FloatArray | None:
    """Return the size of each answer, 0 for published rests; None if a table has none."""
    found = [sizes(tables[n], part) for n in order]
    if any(each is None or not np.any(each > 0) for each in found):
        return None
    return np.concatenate(
        [np.append(each, np.zeros(counts[n] - len(each))) for n, each in zip(order, found) if each is not None]
    )


def _full_variance(plan: Plan, table: PlannedTable, part: Drawable, size: FloatArray) -> FloatArray:
    """Return the variance of each answer of a table if it got the whole loss."""
    step = part.step(plan.schema)
    totals = np.maximum(np.rint(size / float(step)), 1.0) * float(step)
    variance = np.full(len(size), np.nan)
    for each in cell_mechanisms(plan, table, part, plan.cells(table)):
        rows = each.run.rows
        variance[rows] = each.mechanism.variance_of(totals[rows], step=step)
    return variance * float(table.shape.share)


def _classes(size: FloatArray, level: Any, finest: int, goal: Goal | None) -> tuple[Any, FloatArray]:
    """Return the group of each answer, a table and a size class, and what its variance counts for there."""
    if goal is None:
        own = size[(level == finest) & (size > 0)]
        middle = float(np.median(own)) if len(own) else np.inf
        counted = size >= middle
        number = np.floor(np.log10(np.where(counted, size, 1.0) / (middle if np.isfinite(middle) else 1.0)) + 1e-9)
        allowed = np.ones(len(size))
    else:
        bounds = sorted(
            (float(positive(at, parameter="goal")), float(positive(to, parameter="goal"))) for at, to in goal.items()
        )
        number = np.searchsorted([at for at, _ in bounds], size, side="right") - 1.0
        counted = number >= 0
        allowed = np.array([to for _, to in bounds])[np.maximum(number, 0).astype(np.int64)]
    pairs = np.stack([level, np.where(counted, number, 0).astype(np.int64)], axis=1)
    group = np.full(len(size), -1)
    if not np.any(counted):
        return group, np.zeros(len(size))
    group[counted] = np.unique(pairs[counted], axis=0, return_inverse=True)[1].ravel()
    members = np.bincount(group[counted])
    scale = np.zeros(len(size))
    scale[counted] = 1 / (size[counted] * allowed[counted]) ** 2 / members[group[counted]]
    return group, scale


def _proportional(one: ShareCost, other: ShareCost) -> bool:
    """Return whether two statistics rank all shares alike."""
    same = np.array_equal(one.group, other.group)
    return same and all(
        np.allclose(a * b.max(), b * a.max(), rtol=1e-9, atol=0)
        for a, b in ((one.variance, other.variance), (one.scale, other.scale))
    )


def _shares(query: Query) -> FloatArray:
    return np.array([float(level.share) for level in query.tables()])


def _alone(cost: ShareCost) -> FloatArray:
    """Return the shares that are best without a fit."""
    means = cost.means(cost.variance)
    table = np.zeros(len(means), np.int64)
    counted = cost.group >= 0
    table[cost.group[counted]] = cost.level[counted]
    need = np.zeros(int(cost.level.max()) + 1)
    np.maximum.at(need, table, means)
    need = np.maximum(need, 1e-6 * need.max())
    return np.asarray(need / need.sum())


def rounded_shares(shares: FloatArray, least: Fraction) -> tuple[Fraction, ...]:
    """Return shares with three digits that add up to exactly 1; the largest takes what is left."""
    parts = [max(Fraction(f"{share:.{DIGITS}g}"), least) for share in shares.tolist()]
    parts[int(np.argmax(shares))] += 1 - sum(parts)
    return tuple(parts)


def with_axis_shares(query: Query, shares: Sequence[Sequence[Fraction]]) -> Query:
    """Return the query with these shares along each of its axes."""
    axes = [
        tuple(Choice(choice.group, share) for choice, share in zip(axis, own)) for axis, own in zip(query.axes, shares)
    ]
    return replace(query, axes=tuple(axes), table_shares=())
