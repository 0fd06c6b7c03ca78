"""What the owner looks at while choosing mechanisms, the same way in every engine: one pass each, for any number of policies.

Everything is confidential. Engines hand this out once their records are validated.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from recordwise.engines.passes import KEYS, Passes
from recordwise.plan.bases import bases_of
from recordwise.plan.beside import many_beside_tree
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.predicates import Predicate
from recordwise.plan.summaries import firm_histograms_tree, histograms_tree
from recordwise.plan.value_counts import contributions_tree, contributors_tree, value_counts_tree
from recordwise.sensitive import Sensitive

ROOTS = "loss_roots"
HELD = "held_contributions"


@dataclass(frozen=True, slots=True)
class OwnerPasses:
    """Counts of values, histograms of many losses and contributors of cells."""

    passes: Passes

    def value_counts(
        self, names: Sequence[str], *, at_most: int, condition: Predicate | None = None
    ) -> Sensitive[pa.Table]:
        """How many records have each combination of values, measures in steps; ``at_most`` rows."""
        tree = value_counts_tree(names, self.passes.schema, condition, at_most=at_most)
        return Sensitive(self.passes.store.of_records(tree))

    def summarise_many(self, values: Sequence[exp.Expr], *, condition: Predicate | None = None) -> Sensitive[pa.Table]:
        """Histograms of several numbers of each record."""
        return Sensitive(self.passes.store.of_records(histograms_tree(values, self.passes.schema, condition)))

    def summarise_many_firms(self, names: Sequence[str], roots: pa.Table, count: int) -> Sensitive[pa.Table]:
        """Histograms of several joint losses of each firm; a table gives the roots of a record's losses by the values of some
        columns."""
        store = self.passes.store
        try:
            store.lend(ROOTS, roots)
            return Sensitive(store.of_records(firm_histograms_tree(names, count, self.passes.schema, roots=ROOTS)))
        finally:
            store.drop(ROOTS)

    def summarise_many_beside_totals(
        self, plan: Plan, table: PlannedTable, values: Sequence[exp.Expr]
    ) -> Sensitive[pa.Table]:
        """Histograms over the records of public cells of values that may use their cell's ``total0``, ``total1``..."""
        (base,) = bases_of((table,))
        with self.passes.filled(base, 0) as names:
            self.passes.lend_keys(table, plan.cells(table))
            tree = many_beside_tree(values, base, table, names, KEYS, self.passes.schema)
            return Sensitive(self.passes.store.of_records(tree))

    def contributors(self, plan: Plan, table: PlannedTable, measure: str, *, by_firm: bool) -> Sensitive[pa.Table]:
        """Number, total, two largest and squares of the contributions to each public cell that has any."""
        store, schema = self.passes.store, self.passes.schema
        try:
            self.passes.lend_keys(table, plan.cells(table))
            store.keep_pairs(HELD, contributions_tree(table, measure, schema, keys=KEYS, by_firm=by_firm))
            return Sensitive(store.of_records(contributors_tree(HELD)))
        finally:
            store.drop(KEYS, HELD)
