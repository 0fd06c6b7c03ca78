"""What the owner of the data may examine while choosing mechanisms.

Everything here is CONFIDENTIAL, and its repr says only that. Each method reads the records once, for any number of policies or
mechanisms; only counts, bins and cell totals leave the engine.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from recordwise.engines.compile.owner import (
    BIN_EDGES,
    CONTRIBUTORS,
    COUNT,
    FIRM_BOUNDS,
    LARGEST,
    PURE_SUM,
    SECOND,
    SQUARES,
    TIED,
    TOTAL,
)
from recordwise.engines.engine import Engine
from recordwise.engines.owner import (
    DELTA_EDGES,
    EDGES,
    LossSummary,
    firm_tables,
    read_summaries,
    read_summary,
    realized_trees,
)
from recordwise.errors import GroupLossError, ParameterError, RecordwiseError, UnkeptLedgerWarning
from recordwise.exact.arithmetic import FloatArray
from recordwise.ledger.ledger import Ledger
from recordwise.mechanisms.base import Mechanism
from recordwise.plan.arrays import numpy_of
from recordwise.plan.cost import check_policy, firm_policy, plan_policy
from recordwise.plan.describe import plan_json, release_identity, table_name, unrecognizable
from recordwise.plan.expressions import Predicate, listed_cells
from recordwise.plan.keys.keys import Keys, Selection
from recordwise.plan.plan import POSITION, FoundTotals, Plan, PlannedTable, TableTotals
from recordwise.plan.query import Query, read_queries
from recordwise.plan.schema import NO_LOOK, Schema
from recordwise.plan.sources import as_arrow
from recordwise.plan.statistics.totals import Confidential
from recordwise.policy.evaluate.sql import terms_sql
from recordwise.policy.policy import Policy
from recordwise.policy.series import Series, needed_names
from recordwise.session.checks import Coverage, coverage, covered_tables, public_tables, with_sizes
from recordwise.session.session import plan_ledger

if TYPE_CHECKING:
    from recordwise.plan.file.read import PlanFile
    from recordwise.session.simulated import Simulation


# A look: whatever shows a number computed from records that are neither declared public nor generated. It is entered in
# the ledger before, with the day, the command and the digest of the plan.


UNKEPT_LOOK = (
    "this session keeps its ledger in memory only: that confidential records were viewed is forgotten when it closes, and no "
    "release will state it. Pass ledger='FILE' to keep it, or data='public' or 'synthetic' if the records are."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """Enters the looks of a session in its ledger."""

    ledger: Ledger
    schema: Schema
    planned: Plan | None = None
    """The plan that the session was opened for, if any."""

    def enter(self, command: str, queries: Sequence[Query] = (), *, data: str = "confidential") -> None:
        """Enter one look at confidential records.

        At the queries or else at the session's plan; none if the records are declared not confidential.
        """
        if data in NO_LOOK:
            return
        digest = self._digest(queries)
        if digest is None and self.planned is not None:
            digest = plan_digest(self.planned, self.ledger.series)
        if not self.ledger.on_disk:
            warnings.warn(UNKEPT_LOOK, UnkeptLedgerWarning, stacklevel=4)
        self.ledger.look(command, plan=digest)

    def _digest(self, queries: Sequence[Query]) -> str | None:
        """Return the digest of queries; None if they are no plan yet."""
        if not queries:
            return None
        try:
            return plan_digest(Plan(schema=self.schema, queries=tuple(queries)), self.ledger.series)
        except RecordwiseError:
            return None


def plan_digest(plan: Plan, series: Series | None) -> str | None:
    """Return a plan's digest as charges state it; None if unrecognizable."""
    plan = with_sizes(plan)
    if unrecognizable(plan):
        return None
    return release_identity(plan, plan_json(plan), firm_policy(plan).policy(), series).digest


def enter_look(file: "PlanFile", command: str) -> None:
    """Enter a look in the ledger of a plan, created if needed."""
    with plan_ledger(file, create=True) as ledger:
        ledger.look(command, plan=plan_digest(file.plan, ledger.series))
        ledger.settle()


# What the owner sees.


ANY_CELL = Selection.of(rho=1, delta="1e-6")
"""Finds every cell that holds records; nothing is drawn with it."""
MOST_VALUES = 4_000_000
"""At most this many combinations of values are fetched; beyond that, losses are binned inside the engine."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ValueCounts(Confidential):
    """CONFIDENTIAL: the number of records with each combination of values."""

    columns: dict[str, Any]
    steps: pa.Table
    """The same values in the engine's representation, measures in steps."""
    records: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class CellTotals(Confidential):
    """CONFIDENTIAL: the exact totals of one table, by statistic."""

    name: str
    table: PlannedTable
    cells: pa.Table
    totals: dict[str, FloatArray]
    """Keyed by the alias of the statistic, or ``selected_on`` where keys are selected; a signed sum in two parts has two rows."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Contributors(Confidential):
    """CONFIDENTIAL: the positive contributions to each public cell; zeros if empty."""

    number: FloatArray
    total: FloatArray
    largest: FloatArray
    second: FloatArray
    squares: FloatArray


def check_edges(edges: Sequence[float]) -> None:
    """Refuse bins that are not ascending finite numbers."""
    listed = list(edges) if isinstance(edges, (list, tuple, np.ndarray)) else []
    numbers = [each for each in listed if isinstance(each, (int, float, np.number)) and not isinstance(each, bool)]
    whole = len(numbers) == len(listed) > 0 and all(map(math.isfinite, numbers))
    if not whole or any(later <= earlier for earlier, later in pairwise(numbers)):
        raise ParameterError(parameter="edges", problem="must be finite numbers in ascending order")


class Owner(Confidential):
    """What only the owner of a session's table may see. Nothing it returns may be published.

    It spends no budget. Every look at confidential records is recorded in the ledger, and a later release then needs a reason
    (``tuning_reason``).
    """

    def __init__(self, engine: Engine, schema: Schema, looks: Looks) -> None:
        self._engine, self._schema, self._looks = engine, schema, looks

    def view(
        self, *, data: str = "confidential", command: str = "owner.view", queries: Sequence[Query] = ()
    ) -> "OwnerView":
        """The table as its owner sees it while choosing mechanisms (``recordwise.planning``).

        Args:
            data: What the records are. Unless they are declared "public" or "synthetic", the ledger records the look first.
            command: What the look is called in the ledger, one of a fixed list.
            queries: The queries that it is about; of a session opened from a plan file, those of the plan unless given.

        Returns:
            The view. Its methods return exact, confidential numbers.
        """
        self._looks.enter(command, queries, data=data)
        return OwnerView(self._engine, self._schema)

    def preflight(self, *queries: Query | Sequence[Query], data: str = "confidential") -> tuple[Coverage, ...]:
        """Return how many records each table's public cells contain.

        A look at confidential records: the ledger notes the look and its plan, not the answer. A release makes the
        same check and reveals no number; see docs/guarantee.md.
        """
        plan = Plan(schema=self._schema, queries=read_queries(queries))
        self._looks.enter("preflight", plan.queries, data=data)
        return coverage(plan, self._engine.totals(plan, tables=covered_tables(plan)))

    def unmatched(
        self, *queries: Query | Sequence[Query], at_most: int = 10, data: str = "confidential"
    ) -> dict[str, list[tuple[tuple[Any, ...], int]]]:
        """Return the fullest cells outside the keys, by table.

        A look at confidential records.

        Returns:
            For each table with public keys its most frequent cells that no key names, each with its number of records.
        """
        plan = Plan(schema=self._schema, queries=read_queries(queries))
        if isinstance(at_most, bool) or not isinstance(at_most, int) or at_most < 0:
            raise ParameterError(parameter="at_most", problem="must be a whole number of at least 0")
        self._looks.enter("owner.unmatched", plan.queries, data=data)
        return {table_name(plan, table): self._unmatched_cells(plan, table, at_most) for table in public_tables(plan)}

    def _unmatched_cells(self, plan: Plan, table: PlannedTable, at_most: int) -> list[tuple[tuple[Any, ...], int]]:
        query = replace(
            plan.queries[table.query],
            groups=table.shape.groups,
            axes=(),
            table_shares=(),
            key_lists=(Keys(selection=ANY_CELL),),
            all_other=None,
        )
        found_plan = Plan(schema=self._schema, queries=(query,))
        (found,) = self._engine.totals(found_plan)
        assert isinstance(found, FoundTotals)
        cells, counts = found.cells.reveal(), found.exact.reveal().totals[ANY_CELL.total()]
        listed = set(zip(*listed_cells(plan.cells(table)).to_pydict().values()))
        rows = zip(zip(*cells.to_pydict().values()), counts.tolist())
        outside = sorted((row for row in rows if row[0] not in listed), key=lambda row: -row[1])
        return outside[:at_most]

    def history_losses(self, records: Mapping[str, Any], *, pure: bool = False) -> "HistoryLosses":
        """Return the units' losses over all charged periods of a series.

        A look at confidential records.

        Args:
            records: The records of each charged period, by its name: frames with the unit and the columns its policy depends on.
            pure: Whether the losses are pure epsilons, which add up over periods too (T-PURE).

        Returns:
            The losses of all units, by period and in all.

        Raises:
            ParameterError: Pure epsilons are asked for, and the charge of a period has none.
        """
        spent = self._looks.ledger.spent_by_period()
        policies = {period: policy.pure() if pure else policy for period, policy in spent.items()}
        self._looks.enter("owner.history_losses")
        return history_losses(policies, records, self._schema.unit_columns)

    def loss_summary(
        self, policy: Policy, *, edges: Sequence[float] = EDGES, data: str = "confidential"
    ) -> LossSummary:
        """Return the distribution of a policy's losses over the records.

        Computed inside the engine.

        Args:
            policy: The policy whose losses are counted; ``policy.pure()`` for pure epsilons.
            edges: The bins of the losses, ascending.
            data: What the records are, as for ``view``.
        """
        terms = check_policy(policy, self._schema).rho
        check_edges(edges)
        self._looks.enter("owner.loss_summary", data=data)
        found = self._engine.summarize(terms_sql(terms, self._engine.dialect), edges)
        return read_summary(found.reveal(), edges)

    def firm_loss_summary(
        self,
        of: Policy | Query,
        *more: Query,
        bound: str = "tight",
        edges: Sequence[float] = EDGES,
        data: str = "confidential",
        pure: bool = False,
    ) -> LossSummary:
        """Return the distribution of firms' total losses.

        By cell for queries (T-CELLS), by a group bound for a policy alone (T-GROUP). Pure epsilons add up.

        Args:
            of: The queries that are published together; or a policy, of which no cells are known.
            more: Further queries.
            bound: For a policy alone: ``"tight"``, ``"simple"`` or ``"advanced"``, as in ``group_loss``.
            edges: The bins of the losses, ascending.
            data: What the records are, as for ``view``.
            pure: Whether the losses are pure epsilons; a policy alone may be pure itself.

        Returns:
            How many firms lose at most each edge; with privately selected keys also ``deltas``.

        Raises:
            GroupLossError: A policy alone has a delta, for which the losses of single records give no bound.
            ParameterError: Pure epsilons are asked for, and something has none.
        """
        if isinstance(of, Policy):
            return self._summarize_firms(of.pure() if pure else of, bound, edges, data)
        plan = Plan(schema=self._schema, queries=read_queries((of, *more)))
        if pure:
            plan_policy(plan).pure()
        check_edges(edges)
        tables, passes = firm_tables([plan], pure=pure), self._engine.owner_passes()
        self._looks.enter("owner.firm_loss_summary", plan.queries, data=data)
        asked = (edges, DELTA_EDGES) if plan_policy(plan).delta_terms else (edges,)
        found = passes.summarize_firms_of_plan(tables, asked, self._engine.dialect).reveal()
        rho, *deltas = read_summaries(found, asked)
        return replace(rho, deltas=deltas[0]) if deltas else rho

    def _summarize_firms(self, policy: Policy, bound: str, edges: Sequence[float], data: str) -> LossSummary:
        if policy.delta_terms:
            raise GroupLossError(
                reason="private key selection has a delta, and a policy does not say which units share a key; give the queries"
            )
        if bound not in FIRM_BOUNDS:
            raise ParameterError(parameter="bound", problem=f"must be one of {', '.join(FIRM_BOUNDS)}")
        terms, joint = check_policy(policy, self._schema).rho, PURE_SUM if policy.is_pure else bound
        check_edges(edges)
        self._looks.enter("owner.firm_loss_summary", data=data)
        found = self._engine.summarize_firms(terms_sql(terms, self._engine.dialect), edges, bound=joint)
        return read_summary(found.reveal(), edges)

    def realized_loss_summary(
        self,
        *queries: Query | Sequence[Query],
        firms: bool = False,
        edges: Sequence[float] = EDGES,
        data: str = "confidential",
    ) -> LossSummary:
        """Return the distribution of the losses that records or firms really incur.

        Over all tables of the queries together, given the other records of each cell ([S] (8) and (9)); never above the policy. A
        look at confidential records.

        Args:
            queries: The queries that are published together, all with public keys.
            firms: Whether firms are counted, each with all its records, instead of records.
            edges: The bins of the losses, ascending.
            data: What the records are, as for ``view``.

        Returns:
            How many records or firms lose at most each edge; 0 if in no public cell.
        """
        plan = public_plan(self._schema, read_queries(queries))
        check_edges(edges)
        self._looks.enter("owner.realized_loss_summary", plan.queries, data=data)
        passes = self._engine.owner_passes()
        found = passes.summarize_realized(plan, edges, self._engine.dialect, firms=firms)
        return read_summary(found.reveal(), edges)


class OwnerView:
    """A session's table as its owner sees it; nothing may be published."""

    def __init__(self, engine: Any, schema: Schema) -> None:
        self._engine, self.schema = engine, schema

    def value_counts(self, names: Sequence[str], *, condition: Predicate | None = None) -> ValueCounts | None:
        """Return how often each combination occurs; None if too many."""
        found = (
            self._engine.owner_passes().value_counts(list(names), at_most=MOST_VALUES + 1, condition=condition).reveal()
        )
        if found.num_rows > MOST_VALUES:
            return None
        columns = {name: self._in_units(name, found.column(name)) for name in names}
        held = found.select(list(names))
        return ValueCounts(columns=columns, steps=held, records=numpy_of(found.column(COUNT)).astype(np.float64))

    def _in_units(self, name: str, column: Any) -> Any:
        measure = self.schema.measure(name)
        if measure is None:
            return column
        steps = numpy_of(column)
        if measure.step == 1:
            return steps
        return steps.astype(np.float64) * float(measure.step.numerator) / float(measure.step.denominator)

    def loss_bins(self, policies: Sequence[Policy], *, condition: Predicate | None = None) -> tuple[LossSummary, ...]:
        """Return the binned distribution of several policies' losses over the records."""
        trees = [terms_sql(check_policy(policy, self.schema).rho, self._engine.dialect) for policy in policies]
        found = self._engine.owner_passes().summarize_many(trees, condition=condition).reveal()
        return read_summaries(found, [BIN_EDGES] * len(trees))

    def firm_loss_bins(self, plans: Sequence[Sequence[Query]]) -> tuple[tuple[LossSummary, LossSummary], ...]:
        """Return firms' total losses under each plan, rho and delta (T-CELLS)."""
        count = len(plans)
        made = [Plan(schema=self.schema, queries=tuple(queries)) for queries in plans]
        passes = self._engine.owner_passes()
        found = passes.summarize_firms_by_cell(firm_tables(made), count, self._engine.dialect).reveal()
        summaries = read_summaries(found, [BIN_EDGES] * 2 * count)
        return tuple(zip(summaries[:count], summaries[count:]))

    def realized_bins(self, query: Query) -> dict[str, LossSummary]:
        """Return the realized losses from each statistic of a query.

        For one table, conditional on the rest of each record's cell. Where keys are selected, each includes the rho
        of the selection; its delta is in ``lone_pieces``.
        """
        plan = Plan(schema=self.schema, queries=(query,))
        selection = plan.selection(one_table(plan))
        extra = Policy() if selection is None else without_delta(selection.policy(self.schema))
        plan = self._with_found_cells(plan)
        (table,) = plan.tables()
        trees = realized_trees(plan, table, extra, self._engine.dialect)
        counted = self._engine.owner_passes().summarize_many_beside_totals(plan, table, list(trees.values())).reveal()
        return dict(zip(trees, read_summaries(counted, [BIN_EDGES] * len(trees))))

    def realized_loss_bins(self, queries: Sequence[Query], *, firms: bool = False) -> LossSummary:
        """Return the realized losses of records or firms over all tables of queries with public keys."""
        plan = public_plan(self.schema, queries)
        passes = self._engine.owner_passes()
        found = passes.summarize_realized(plan, BIN_EDGES, self._engine.dialect, firms=firms)
        return read_summary(found.reveal(), BIN_EDGES)

    def lone_pieces(self, query: Query) -> FloatArray:
        """Return the pieces of records alone in their selected key."""
        counted = query.count(FOR_OWNER, alias="_alone")
        (found,) = self.cell_totals(counted)
        if "selected_on" not in found.totals:
            return np.zeros(0)
        return np.asarray(found.totals["selected_on"][found.totals["_alone"] == 1])

    def simulation(self, *queries: Query) -> "Simulation":
        """Releases of queries, drawn in memory from totals that are read once."""
        from recordwise.session.simulated import Simulation

        return Simulation(self._engine, Plan(schema=self.schema, queries=queries))

    def cell_totals(self, *queries: Query) -> tuple[CellTotals, ...]:
        """Return every table's exact totals, in as few passes as a release."""
        plan = Plan(schema=self.schema, queries=queries)
        return tuple(self._cell_totals(plan, each) for each in self._engine.totals(plan))

    def _cell_totals(self, plan: Plan, exact: TableTotals | FoundTotals) -> CellTotals:
        cells = exact.cells.reveal() if isinstance(exact, FoundTotals) else exact.cells
        wanted: dict[str, tuple[tuple[Any, ...], Fraction]] = {
            each.alias: (each.totals(plan.schema), each.step(plan.schema))
            for _, each in plan.drawn(exact.table)
            if each.totals(plan.schema)
        }
        selection = plan.selection(exact.table)
        if selection is not None:
            wanted["selected_on"] = ((selection.total(),), Fraction(1))
        held = exact.exact.reveal().totals
        rows = {alias: np.stack([held[total] for total in parts]) for alias, (parts, _) in wanted.items()}
        totals = {
            alias: (found if len(found) > 1 else found[0]).astype(np.float64) * float(wanted[alias][1])
            for alias, found in rows.items()
        }
        return CellTotals(name=table_name(plan, exact.table), table=exact.table, cells=cells, totals=totals)

    def _step(self, measure: str | None) -> Fraction:
        declared = None if measure is None else self.schema.measure(measure)
        return declared.step if declared else Fraction(1)

    def contributors(self, query: Query, measure: str, *, by_firm: bool = False) -> Contributors:
        """Return the inputs of contributor rules for each public cell."""
        if by_firm and self.schema.firm is None:
            raise ParameterError(parameter="by_firm", problem="needs a firm in the schema")
        plan = self._with_found_cells(Plan(schema=self.schema, queries=(query,)))
        (table,) = plan.tables()
        found = self._engine.owner_passes().contributors(plan, table, measure, by_firm=by_firm).reveal()
        cells = plan.cells(table).num_rows if table.shape.groups else 1
        return read_contributors(found, cells, float(self._step(measure)))

    def _with_found_cells(self, plan: Plan) -> Plan:
        """Return the plan with observed cells in place of selected keys."""
        if plan.selection(one_table(plan)) is None:
            return plan
        (found,), (query,) = self._engine.totals(plan), plan.queries
        return Plan(schema=self.schema, queries=(replace(query, key_lists=(Keys.of(found.cells.reveal()),)),))


class ForOwner(Mechanism):
    """A mechanism for the owner's totals; no release can use it."""

    def policy(self, measure: Any, *, tight: bool = True) -> Policy:
        return Policy()


FOR_OWNER = ForOwner()


def one_table(plan: Plan) -> PlannedTable:
    """The only table of a plan; an error if there are several."""
    if len(plan.tables()) != 1:
        raise ParameterError(
            parameter="query",
            problem="has several levels",
            advice="Ask for one table at a time: a query without levels.",
        )
    return plan.tables()[0]


def public_plan(schema: Schema, queries: Sequence[Query]) -> Plan:
    """Return a plan of queries with public keys."""
    plan = Plan(schema=schema, queries=tuple(queries))
    if not queries or any(plan.selection(table) is not None for table in plan.tables()):
        raise ParameterError(parameter="queries", problem="must have public keys for realized losses")
    return plan


def without_delta(policy: Policy) -> Policy:
    """The rho part of a policy."""
    return Policy(policy.rho, {}, policy.near_gaussian)


def read_contributors(found: pa.Table, cells: int, step: float) -> Contributors:
    """Numbers aligned with their cells, in the measure's own units."""
    at = numpy_of(found.column(POSITION))
    scales: Mapping[str, float] = {
        CONTRIBUTORS: 1.0,
        TOTAL: step,
        LARGEST: step,
        TIED: 1.0,
        SECOND: step,
        SQUARES: step**2,
    }
    full = {name: np.zeros(cells) for name in scales}
    for name, scale in scales.items():
        values = numpy_of(found.column(name).cast(pa.float64()).fill_null(0.0))
        full[name][at] = values * scale
    second = np.where(full[TIED] > 1, full[LARGEST], full[SECOND])
    return Contributors(
        number=full[CONTRIBUTORS], total=full[TOTAL], largest=full[LARGEST], second=second, squares=full[SQUARES]
    )


# CONFIDENTIAL: losses of the units of a series over its periods, from the records of every period.


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class HistoryLosses(Confidential):
    """CONFIDENTIAL: the losses of all units, by period and in total."""

    by_period: dict[str, FloatArray]
    """In the same order of units for every period."""

    @property
    def total(self) -> FloatArray:
        """The loss of each unit over all periods."""
        return np.asarray(np.sum(list(self.by_period.values()), axis=0))

    def quantile(self, share: float) -> float:
        """Return the total loss that this share of units stays within."""
        return float(np.quantile(self.total, share, method="higher"))


def _unit_places(tables: Sequence[Any], unit: Sequence[str]) -> tuple[int, Any]:
    """Return how many units there are, and each row's unit."""
    places: Any = 0
    for name in unit:
        ids = np.concatenate([numpy_of(table.column(name)) for table in tables])
        known, own = np.unique(ids, return_inverse=True)
        # Numbers below the number of rows, so that the product of two stays within 64 bits.
        known, places = np.unique(places * len(known) + own, return_inverse=True)
    return len(known), places


def history_losses(policies: Mapping[str, Policy], records: Mapping[str, Any], unit: Sequence[str]) -> HistoryLosses:
    """The losses of all units.

    Args:
        policies: What was charged, by period.
        records: The table of each period, with the columns ``unit`` and those that the period's policy depends on.
        unit: The columns that identify a unit, the same in every period.

    Raises:
        ParameterError: A table belongs to no charged period, or the tables lack a period or a column.
    """
    if set(records) != set(policies) or not policies:
        raise ParameterError(
            parameter="records", problem=f"must have a table for each charged period: {', '.join(policies) or 'none'}"
        )
    tables = {period: as_arrow(records[period]) for period in policies}
    for period, table in tables.items():
        missing = {*unit, *needed_names(policies[period])} - set(table.column_names)
        if missing:
            raise ParameterError(parameter=f"the table of {period}", problem=f"lacks {', '.join(sorted(missing))}")
    known, places = _unit_places(list(tables.values()), unit)
    ends = np.cumsum([table.num_rows for table in tables.values()])[:-1]
    found = {}
    for (period, table), place in zip(tables.items(), np.split(places, ends)):
        columns = {name: numpy_of(table.column(name)) for name in needed_names(policies[period])}
        losses = policies[period].loss(columns) if columns else np.full(len(place), float(policies[period].loss({})))
        found[period] = np.asarray(np.bincount(place, weights=losses, minlength=known), np.float64)
    return HistoryLosses(by_period=found)
