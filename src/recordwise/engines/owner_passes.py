"""What the owner looks at while choosing mechanisms, the same way in every engine: one pass each, for any number of policies.

Everything is confidential. Engines hand this out once their records are validated.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from recordwise.engines.passes import Passes, own_name
from recordwise.plan.bases import bases_of
from recordwise.plan.beside import many_beside_tree
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.predicates import Predicate
from recordwise.plan.summaries import firm_histograms_tree, histograms_tree
from recordwise.plan.value_counts import contributions_tree, contributors_tree, value_counts_tree
from recordwise.sensitive import Sensitive


@dataclass(frozen=True, slots=True)
class OwnerPasses:
    """Counts of values, histograms of many losses and contributors of cells."""

    reading: Callable[[], AbstractContextManager[Passes]]
    """The engine's turn at validated records: one pass at a time."""

    def value_counts(
        self, names: Sequence[str], *, at_most: int, condition: Predicate | None = None
    ) -> Sensitive[pa.Table]:
        """How many records have each combination of values, measures in steps; ``at_most`` rows."""
        with self.reading() as passes:
            tree = value_counts_tree(names, passes.schema, condition, at_most=at_most)
            return Sensitive(passes.store.of_records(tree))

    def summarise_many(self, values: Sequence[exp.Expr], *, condition: Predicate | None = None) -> Sensitive[pa.Table]:
        """Histograms of several numbers of each record."""
        with self.reading() as passes:
            return Sensitive(passes.store.of_records(histograms_tree(values, passes.schema, condition)))

    def summarise_many_firms(self, names: Sequence[str], roots: pa.Table, count: int) -> Sensitive[pa.Table]:
        """Histograms of several joint losses of each firm; a table gives the roots of a record's losses by the values of some
        columns."""
        with self.reading() as passes:
            lent = own_name("roots")
            try:
                passes.store.lend(lent, roots)
                tree = firm_histograms_tree(names, count, passes.schema, roots=lent)
                return Sensitive(passes.store.of_records(tree))
            finally:
                passes.store.drop(lent)

    def summarise_many_beside_totals(
        self, plan: Plan, table: PlannedTable, values: Sequence[exp.Expr]
    ) -> Sensitive[pa.Table]:
        """Histograms over the records of public cells of values that may use their cell's ``total0``, ``total1``..."""
        (base,) = bases_of((table,))
        with self.reading() as passes, passes.filled(base) as names:
            passes.lend_keys(names.keys, table, plan.cells(table))
            tree = many_beside_tree(values, base, table, names, names.keys, passes.schema)
            return Sensitive(passes.store.of_records(tree))

    def contributors(self, plan: Plan, table: PlannedTable, measure: str, *, by_firm: bool) -> Sensitive[pa.Table]:
        """Number, total, two largest and squares of the contributions to each public cell that has any."""
        with self.reading() as passes:
            keys, held = own_name("keys"), own_name("held")
            try:
                passes.lend_keys(keys, table, plan.cells(table))
                passes.store.keep_pairs(
                    held, contributions_tree(table, measure, passes.schema, keys=keys, by_firm=by_firm)
                )
                return Sensitive(passes.store.of_records(contributors_tree(held)))
            finally:
                passes.store.drop(keys, held)
