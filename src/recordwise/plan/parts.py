"""The parts of a plan: statistics by table, and key selections.

A part has everything that is known about it before any data is opened: what it costs a record, which records
share a cell, what they lose there together, the mechanism of every cell and its noise on the lattice.
``Plan.parts`` makes them once, in one walk. The policy of a release, that of firms, that of its noise, its
page and what is drawn are views of them: no two lists are matched.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from recordwise.plan.cost import (
    CellMechanism,
    band_table,
    in_held_columns,
    mechanisms_of_cells,
    mechanisms_of_table,
    records_of,
    statistic_policy,
)
from recordwise.plan.expressions import Case, Compare, Field, Group, Predicate, Prefix, leaves
from recordwise.plan.keys.keys import Selection
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.plan.statistics import Drawable
from recordwise.policy.bands import BandTable
from recordwise.policy.columns import ConditionColumn
from recordwise.policy.conditions import EVERY, Condition
from recordwise.policy.firms import CellKey, FirmPart, Joint
from recordwise.policy.loss_law import COARSEST, LatticePart
from recordwise.policy.policy import Policy

Noise: TypeAlias = tuple[tuple[Fraction, ...], int]
"""Sigmas in lattice steps, of each mechanism, and how many such numbers a record changes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """One statistic of one table, or the selection of the table's keys."""

    schema: Schema
    query: Query
    table: PlannedTable
    statistic: Drawable | None = None
    """None for a selection."""
    selection: Selection | None = None
    condition: Condition = EVERY
    """The records that the table is about."""

    @cached_property
    def cells(self) -> tuple[CellKey, ...]:
        """Which records share a cell."""
        return tuple(cell_key(group, self.schema) for group in self.table.joined_by())

    @property
    def alias(self) -> str:
        """The name under which its numbers are published."""
        drawn = self.selection if self.statistic is None else self.statistic
        assert drawn is not None
        return drawn.alias

    @cached_property
    def policy(self) -> Policy:
        """The tight policy of a record of the table, which is charged."""
        return self._cost(tight=True)

    @cached_property
    def paper_policy(self) -> Policy:
        """A record's policy as printed in the papers."""
        return self._cost(tight=False)

    def _cost(self, *, tight: bool) -> Policy:
        if self.statistic is not None:
            return statistic_policy(self.query, self.statistic, self.table.shape, self.schema, tight=tight)
        assert self.selection is not None
        return in_held_columns(self.selection.policy(self.schema), self.schema)

    def record_policy(self, *, tight: bool = True) -> Policy:
        """Return what it costs any record, of the table or not."""
        policy = self.policy if tight else self.paper_policy
        return policy if self.condition == EVERY else policy.where(self.condition)

    @cached_property
    def bands(self) -> BandTable | None:
        """The bands of the cells, if the noise is sized (T-SIZE)."""
        if self.statistic is None:
            return None
        return band_table(self.query, self.statistic, self.table.shape, self.schema)

    @cached_property
    def mechanisms(self) -> tuple[Any, ...]:
        """Every mechanism that a cell may have, none for a selection."""
        if self.statistic is None:
            return ()
        return mechanisms_of_table(self.statistic, self.table.shape, self.bands, self.schema)

    def mechanisms_of(self, cells: pa.Table) -> tuple[CellMechanism, ...]:
        """Return the mechanism of each of some cells, none for a selection."""
        if self.statistic is None:
            return ()
        return mechanisms_of_cells(self.statistic, self.table.shape, self.bands, cells, self.schema)

    @property
    def joint(self) -> Joint:
        """What the units of a firm in one cell lose together.

        A rest joins units of different unlisted cells, which conditions cannot tell from those of listed ones: below one coarser
        cell all are then bounded as in any group.
        """
        if self.statistic is None or self.table.rest is not None:
            return Joint()
        return self.statistic.joint(self.statistic.mechanism.at_share(self.table.shape.share), self.schema)

    def of_firms(self) -> FirmPart:
        """Return the part as the establishments of a firm meet it (T-CELLS)."""
        return FirmPart(policy=self.policy, condition=self.condition, cells=self.cells, joint=self.joint)

    @property
    def noise(self) -> Noise | None:
        """The noise on the lattice, if it is discrete Gaussian and known."""
        if self.selection is not None:
            # Without a delta every cell of a public domain gets its noise, and which of them are shown is read off it.
            return (self.selection.law.sigma,), 1
        assert self.statistic is not None
        found = [self.statistic.lattice_noise(each, self.schema) for each in self.mechanisms]
        known = [each for each in found if each is not None]
        sigmas, times = tuple(sigma for sigma, _ in known), {each for _, each in known}
        unsaid = self.bands is None and len(known) > 1
        if len(known) < len(found) or len(times) > 1 or (unsaid and min(sigmas) <= COARSEST):
            return None
        return sigmas, times.pop()

    def on_lattice(self) -> LatticePart | None:
        """Return the part as shifts on a lattice, or None (T-LOSS-LAW)."""
        noise = None if self.policy.delta_terms else self.noise
        if noise is None:
            return None
        (sigmas, times), policy, bands = noise, self.record_policy(), self.bands
        known: dict[str, Any] = {"sigma": min(sigmas), "times": times, "policy": policy * Fraction(1, times)}
        # Where no cell is told apart from another by the policy, neither is its noise.
        if bands is None or len(sigmas) == 1 or bands.digest not in policy.bands():
            return LatticePart(**known, varies=len(sigmas) > 1)
        return LatticePart(**known, bands=bands, sigmas=sigmas)


def plan_parts(plan: Plan) -> Iterator[Part]:
    """Walk over the tables of a plan.

    In each, the selection of its keys comes first, then what is drawn: a sum that several averages share once (T-AVG).
    """
    for table in plan.tables():
        known: dict[str, Any] = {"schema": plan.schema, "query": plan.queries[table.query], "table": table}
        known |= {"condition": records_of(table.condition, plan.schema)}
        selection = plan.selection(table)
        if selection is not None:
            yield Part(**known, selection=selection)
        for statistic in plan.queries[table.query].draws():
            yield Part(**known, statistic=statistic)


def cell_key(group: Group, schema: Schema) -> CellKey:
    """Return a group as the coordinate of a cell.

    A label that several branches of a CASE have is one coordinate. What the language of conditions does not say
    exactly (a part of a date, a CASE by the order of texts) goes by the name of the group, as a separate column.
    So does a coarser level of a hierarchy.
    """
    expression = group.expression
    if isinstance(expression, Field):
        return CellKey(column=ConditionColumn(expression.name))
    if isinstance(expression, Prefix):
        return CellKey(column=ConditionColumn(expression.column, expression.length))
    if not isinstance(expression, Case) or any(_by_order_of_texts(test) for test, _ in expression.branches):
        return CellKey(column=ConditionColumn(group.name))
    numbers = {expression.default: -1}
    for _, label in expression.branches:
        numbers.setdefault(label, len(numbers))
    return CellKey(cases=tuple((records_of(test, schema), numbers[label]) for test, label in expression.branches))


def _by_order_of_texts(predicate: Predicate) -> bool:
    """Return whether a predicate compares texts by order."""
    compared = (leaf for leaf in leaves(predicate) if isinstance(leaf, Compare))
    return any(isinstance(leaf.literal, str) and leaf.operator not in ("=", "<>") for leaf in compared)
