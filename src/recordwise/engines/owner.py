"""Confidential loss summaries for the owner of the data.

Computed the same way in every engine, where the records are, in one pass for any number of policies; only
bin counts leave the engine, and their repr shows nothing but a warning. Engines offer these summaries once
their records are validated. Never publish them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
from sqlglot import exp

from recordwise.engines.compile.expressions import RECORDS, aliased, column
from recordwise.engines.compile.firms import (
    FIRM_ID,
    TIMES,
    UNITS,
    FirmCells,
    FirmTable,
    all_firms_tree,
    least,
    several_tree,
    sum_tree,
)
from recordwise.engines.compile.owner import (
    COUNT,
    VALUE,
    bin_name,
    bin_tree,
    binned_tree,
    contributions_tree,
    contributors_tree,
    float_tree,
    grouped_bins_tree,
    histograms_tree,
    increasing,
    join_totals,
    many_beside_tree,
    many_binned_tree,
    value_counts_tree,
    value_name,
)
from recordwise.engines.compile.totals import bases_of
from recordwise.engines.engine import Passes, unique_name
from recordwise.errors import ParameterError, value_text
from recordwise.plan.arrays import numpy_of
from recordwise.plan.cost import (
    band_mechanisms,
    band_table,
    mechanisms_by_group,
    possible_mechanisms,
    record_condition,
    statistic_policy,
)
from recordwise.plan.expressions import Predicate
from recordwise.plan.plan import POSITION, Plan, PlannedTable, Sensitive, total_name
from recordwise.plan.statistics import Drawable
from recordwise.plan.statistics.base import SUM
from recordwise.plan.statistics.totals import Confidential
from recordwise.policy.conditions import EVERY, in_band
from recordwise.policy.evaluate.sql import condition_sql, terms_sql
from recordwise.policy.firms import FirmPart
from recordwise.policy.policy import Policy

EDGES = tuple(float(edge) for edge in np.geomspace(1e-6, 1e9, 301))
"""Edges of the loss bins: twenty per factor of ten."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LossSummary(Confidential):
    """CONFIDENTIAL counts of records or firms in each loss bin."""

    edges: tuple[float, ...]
    counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    """One more than edges: the last bin is above all of them."""
    deltas: "LossSummary | None" = None
    """Beside the losses of firms where keys are selected privately: their deltas (T-SELECT-GROUP)."""

    def share_above(self, loss: float) -> float:
        """Return the share with a loss above an edge.

        The smallest edge at or above ``loss``.
        """
        place = int(np.searchsorted(self.edges, loss))
        return float(self.counts[place + 1 :].sum() / max(1, self.counts.sum()))

    def cdf(self) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        """For each edge, the share with a loss at or below it."""
        return np.asarray(np.cumsum(self.counts[:-1]) / max(1, self.counts.sum()))

    def quantile(self, p: float) -> float:
        """Return the smallest edge that covers a share ``p``, maybe infinite."""
        if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
            raise ParameterError(parameter="p", problem=f"must lie between 0 and 1, not {value_text(p)}")
        enough = np.flatnonzero(self.cdf() >= p)
        return self.edges[enough[0]] if len(enough) else float("inf")


def read_summary(found: pa.Table, edges: Sequence[float]) -> LossSummary:
    counts = np.zeros(len(edges) + 1, dtype=np.int64)
    counts[numpy_of(found.column("bin"))] = numpy_of(found.column("records"))
    return LossSummary(edges=tuple(edges), counts=counts)


def read_summaries(found: pa.Table, edges: Sequence[Sequence[float]]) -> tuple[LossSummary, ...]:
    """Several histograms made in one pass, each with its edges."""
    records, summaries = numpy_of(found.column(COUNT)), []
    for place, own in enumerate(edges):
        bins = found.column(bin_name(place))
        counts = np.zeros(len(own) + 1, dtype=np.int64)
        counts[numpy_of(bins.drop_null())] = records[numpy_of(bins.is_valid())]
        summaries.append(LossSummary(edges=tuple(own), counts=counts))
    return tuple(summaries)


SLIGHTLY_LESS = 1 - 2.0**-50
"""Takes back what roots and squares are rounded up by, so that no realized loss is in a bin above its policy's."""
DELTA_EDGES = tuple(float(edge) for edge in np.geomspace(1e-15, 1.0, 301))
"""Bins of a delta: twenty to a factor of ten."""


def firm_tables(plans: Sequence[Plan], *, pure: bool = False) -> tuple[FirmTable, ...]:
    """Return the tables of several plans, without duplicates; their losses in pure epsilon if ``pure``."""
    found: dict[tuple[Any, Any], tuple[PlannedTable, list[list[FirmPart]]]] = {}
    for number, plan in enumerate(plans):
        for table in plan.tables():
            cells = (tuple(group.expression for group in table.joined_by()), table.condition)
            _, parts = found.setdefault(cells, (table, [[] for _ in plans]))
            own = (part.of_firms() for part in plan.parts(table))
            parts[number].extend(part.pure() if pure else part for part in own)
    return tuple(FirmTable(table, tuple(map(tuple, parts))) for table, parts in found.values())


def realized_trees(plan: Plan, table: PlannedTable, extra: Policy, dialect: str) -> dict[str, exp.Expr]:
    """Return a record's realized loss from each statistic of a table.

    Each with an ``extra`` policy added. Noise that is the same for every cell costs its tight policy, whatever
    else is in the cell. A transform costs the change in f of the cell's total with and without the record, plus
    one grid step (T-GRID).
    """
    parts: dict[str, exp.Expr] = {}
    for statistic in plan.queries[table.query].statistics:
        if statistic.derived:
            raise ParameterError(
                parameter="query", problem="has a statistic computed from others; ask for those instead"
            )
        part = _realized_loss(plan, table, cast(Drawable, statistic), dialect)
        if extra.rho:
            part = exp.Add(this=part, expression=exp.Paren(this=terms_sql(extra.rho, dialect)))
        parts[statistic.alias] = exp.Paren(this=part)
    return parts


def _realized_loss(plan: Plan, table: PlannedTable, statistic: Drawable, dialect: str) -> exp.Expr:
    """Return a record's realized loss from a statistic, by the mechanism of its cell; without one, that of the policy."""
    query = plan.queries[table.query]
    policy = statistic_policy(query, statistic, table.shape, plan.schema, tight=True)
    promised: exp.Expr = exp.Paren(this=terms_sql(policy.rho, dialect))
    if statistic.contribution != SUM:
        return promised
    total, step = _cell_total(plan, table, statistic), statistic.step(plan.schema)

    def realized(each: Any) -> exp.Expr:
        found: exp.Expr = each.realized_sql(str(statistic.of), total.copy(), step=step, dialect=dialect)
        return found

    bands = band_table(query, statistic, table.shape, plan.schema)
    if bands is None:
        places = mechanisms_by_group(statistic, table.shape, plan.schema)
    else:
        served = band_mechanisms(statistic, table.shape, bands, plan.schema)
        places = [(in_band(bands, [band]), each) for band, each in enumerate(served)]
    known = [(here, realized(each)) for here, each in places if each.offers("realized_sql")]
    if not known or known[0][0] == EVERY:
        return known[0][1] if known else promised
    ifs = [exp.If(this=condition_sql(record_condition(here, plan.schema)), true=tree) for here, tree in known]
    return exp.Paren(this=exp.Case(ifs=ifs, default=promised))


def _cell_total(plan: Plan, table: PlannedTable, statistic: Drawable) -> exp.Expr:
    """Return the total of the record's cell or its part."""
    first, *second = (exp.column(total_name(table, each), quoted=True) for each in statistic.totals(plan.schema))
    if not second:
        return first
    negative = exp.LT(this=exp.column(statistic.of or "", quoted=True), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=negative, true=second[0])], default=first)


def _record_values(plan: Plan, table: PlannedTable, dialect: str) -> list[exp.Expr]:
    """Return a record's realized loss from each part of a table, never above its policy."""
    found = []
    for part, statistic in plan.drawn(table):
        promised: exp.Expr = exp.Paren(this=terms_sql(part.policy.rho, dialect))
        found.append(least(_realized_loss(plan, table, statistic, dialect), promised))
    return found


def _firm_values(plan: Plan, table: PlannedTable, cells: FirmCells, dialect: str) -> list[exp.Expr]:
    """Return a firm's realized loss in a cell, by part.

    Additive noise sees the sum of its units. Under a transform of an unsigned measure it is the change of f at the cell's total.
    """
    found = []
    for part, statistic in plan.drawn(table):
        mechanisms = possible_mechanisms(plan, table, statistic)
        loss = cells.loss(part.of_firms())
        sums = len(statistic.totals(plan.schema)) == 1 and all(each.loss_of_sum for each in mechanisms)
        sums = sums and any(each.offers("realized_sql") for each in mechanisms)
        if statistic.contribution == SUM and sums:
            loss = least(loss, cells.at_total(_realized_loss(plan, table, statistic, dialect), str(statistic.of)))
        found.append(loss)
    return found


@dataclass(frozen=True, slots=True)
class OwnerPasses:
    """Value counts, histograms of many losses, and the contributors of cells."""

    reading: Callable[[], AbstractContextManager[Passes]]
    """Gives the engine's validated records to one pass at a time."""

    def value_counts(
        self, names: Sequence[str], *, at_most: int, condition: Predicate | None = None
    ) -> Sensitive[pa.Table]:
        """Count the records with each combination of values.

        Measures in steps; at most ``at_most`` rows.
        """
        with self.reading() as passes:
            tree = value_counts_tree(names, passes.schema, condition, at_most=at_most)
            return Sensitive(passes.store.of_records(tree))

    def summarize_many(self, values: Sequence[exp.Expr], *, condition: Predicate | None = None) -> Sensitive[pa.Table]:
        """Histograms of several numbers of each record."""
        with self.reading() as passes, passes.lend_bands(values):
            return Sensitive(passes.store.of_records(histograms_tree(values, passes.schema, condition)))

    def summarize_firms_by_cell(self, tables: Sequence[FirmTable], count: int, dialect: str) -> Sensitive[pa.Table]:
        """Return histograms of firms' joint losses under several plans.

        rho first, then delta.
        """
        with self._firms(tables, count, dialect) as (passes, firms):
            return Sensitive(passes.store.of_records(many_binned_tree(firms, 2 * count, TIMES)))

    def summarize_firms_of_plan(
        self, tables: Sequence[FirmTable], edges: Sequence[Sequence[float]], dialect: str
    ) -> Sensitive[pa.Table]:
        """Return histograms of each firm's rho under one plan.

        With a second list of edges, of its delta too.
        """
        bins = [bin_tree(column(value_name(place)), increasing(own)) for place, own in enumerate(edges)]
        with self._firms(tables, 1, dialect) as (passes, firms):
            return Sensitive(passes.store.of_records(grouped_bins_tree(firms, bins, TIMES)))

    @contextmanager
    def _firms(self, tables: Sequence[FirmTable], count: int, dialect: str) -> Iterator[tuple[Passes, exp.Select]]:
        """Yield the passes and a statement for all firms' losses."""
        several = unique_name("several")
        with self.reading() as passes:
            try:
                passes.store.store_pairs(several, several_tree(passes.schema))
                firms = all_firms_tree(tables, count, passes.schema, several=several, dialect=dialect)
                with passes.lend_bands([firms]):
                    yield passes, firms
            finally:
                passes.store.drop(several)

    def summarize_many_beside_totals(
        self, plan: Plan, table: PlannedTable, values: Sequence[exp.Expr]
    ) -> Sensitive[pa.Table]:
        """Return histograms over the records of public cells.

        Values may use their cell's ``total0``, ``total1``...
        """
        (base,) = bases_of((table,), plan.schema)
        with self.reading() as passes, passes.working_tables(base) as names, passes.lend_bands(values):
            passes.lend_keys(names.keys, table, plan.cells(table))
            tree = many_beside_tree(values, base, table, names, names.keys, passes.schema)
            return Sensitive(passes.store.of_records(tree))

    def summarize_realized(
        self, plan: Plan, edges: Sequence[float], dialect: str, *, firms: bool = False
    ) -> Sensitive[pa.Table]:
        """Return a histogram of realized losses over all tables of a plan.

        Of every record, or of every firm with all its records; 0 for one that is in no public cell.
        """
        if firms and plan.schema.firm is None:
            raise ParameterError(parameter="firms", problem="need a firm in the schema")
        own_ids = (plan.schema.firm or "",) if firms else plan.schema.unit_columns
        names_of = {name: FIRM_ID if not place else f"{FIRM_ID}_{place}" for place, name in enumerate(own_ids)}
        values = {table: _record_values(plan, table, dialect) for table in plan.tables()}
        with ExitStack() as stack:
            passes = stack.enter_context(self.reading())
            stack.enter_context(passes.lend_bands([tree for own in values.values() for tree in own]))
            every = [aliased(column(name), given) for name, given in names_of.items()]
            united: exp.Expr = exp.select(*every, aliased(float_tree(0.0), VALUE)).from_(RECORDS)
            for table, own in values.items():
                (base,) = bases_of((table,), plan.schema)
                names = stack.enter_context(passes.working_tables(base))
                passes.lend_keys(names.keys, table, plan.cells(table))
                ids = () if firms else own_ids
                joined = partial(join_totals, values=own, base=base, table=table, names=names, keys=names.keys)
                joined = partial(joined, schema=passes.schema, ids=ids)
                if firms:
                    branch = self._firm_branch(plan, table, joined, dialect)
                else:
                    located = [aliased(column(name, "located"), given) for name, given in names_of.items()]
                    branch = joined(exp.select(*located, aliased(sum_tree(own), VALUE)))
                united = exp.Union(this=united, expression=branch, distinct=False)
            parts = exp.Subquery(this=united, alias=exp.TableAlias(this=exp.to_identifier("parts")))
            total = exp.Mul(this=exp.Sum(this=column(VALUE)), expression=float_tree(SLIGHTLY_LESS))
            valued = exp.select(aliased(total, VALUE)).from_(parts).group_by(*map(column, names_of.values()))
            return Sensitive(passes.store.of_records(binned_tree(valued, edges)))

    def _firm_branch(
        self, plan: Plan, table: PlannedTable, joined: Callable[[exp.Select], exp.Select], dialect: str
    ) -> exp.Select:
        """Return each firm's realized loss in one table."""
        totals = [column(total_name(table, each), "cell") for each in table.totals]
        inner = joined(exp.select(exp.Column(this=exp.Star(), table=exp.to_identifier("located")), *totals))
        cells = FirmCells((inner, [column(POSITION, UNITS)]), plan.schema, dialect)
        branch = cells.branch([_firm_values(plan, table, cells, dialect)], [[]])
        named = exp.select(column(FIRM_ID), aliased(column(value_name(0)), VALUE))
        return named.from_(branch.subquery("branch", copy=False))

    def contributors(self, plan: Plan, table: PlannedTable, measure: str, *, by_firm: bool) -> Sensitive[pa.Table]:
        """Return statistics of the contributions to each nonempty public cell.

        Their number, total, two largest values and squares.
        """
        with self.reading() as passes:
            keys, held = unique_name("keys"), unique_name("held")
            try:
                passes.lend_keys(keys, table, plan.cells(table))
                passes.store.store_pairs(
                    held, contributions_tree(table, measure, passes.schema, keys=keys, by_firm=by_firm)
                )
                return Sensitive(passes.store.of_records(contributors_tree(held)))
            finally:
                passes.store.drop(keys, held)

    def contributions(self, plan: Plan, table: PlannedTable, measure: str) -> Sensitive[pa.Table]:
        """Count each nonzero contribution in each public cell.

        Without its sign and in steps.
        """
        with self.reading() as passes:
            keys = unique_name("keys")
            try:
                passes.lend_keys(keys, table, plan.cells(table))
                tree = contributions_tree(table, measure, passes.schema, keys=keys, by_firm=False)
                return Sensitive(passes.store.of_records(tree))
            finally:
                passes.store.drop(keys)
