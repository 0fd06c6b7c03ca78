"""Public tiers: noisier tables made from those of a finer release, which was charged in full (T-TIER)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from recordwise.errors import ParameterError
from recordwise.ledger.entries import Charge
from recordwise.ledger.ledger import Ledger
from recordwise.mechanisms.base import Mechanism
from recordwise.mechanisms.combined import coarsen
from recordwise.mechanisms.registry import mechanism_from_json
from recordwise.plan.describe import plan_json
from recordwise.plan.plan import FoundTotals, Plan, PlannedTable, Sensitive, TableTotals
from recordwise.plan.query import Query
from recordwise.plan.statistics import Drawable, ExactTable
from recordwise.release.draw import PreparedTable
from recordwise.release.tables import PagePart, page_parts
from recordwise.session.checks import OWN_PLAN, stage_refusal
from recordwise.session.stages import (
    Coarsening,
    bare_form,
    charge_of_release,
    check_cells,
    check_period,
    continue_answers,
    counterpart,
    known_mechanisms,
    with_shares_of,
)

TIER = "tier_of"
FINER_QUERIES = "A tier has queries of the finer plan, with more noise; others need a plan of their own."


def _refused(problem: str, advice: str = OWN_PLAN) -> ParameterError:
    return stage_refusal(problem, advice, TIER)


@dataclass(frozen=True, slots=True, kw_only=True)
class TierStage:
    """A plan whose tables have more noise than those of a release, and are made from them."""

    coarsening: Coarsening
    charge: Charge
    """That of the finer release."""
    plan: Plan
    """As described and published: the law of both draws."""

    refines: None = None
    step: None = None
    unknown: ClassVar[tuple[str, ...]] = ("lattice", "stated_values")
    """What a value costs, and epsilon, follow from the zCDP loss of the sum of both draws."""

    @property
    def paid(self) -> Plan:
        """The plan whose policy readers of the tier see; nothing of it is charged."""
        return self.plan

    @property
    def tier_of(self) -> int:
        """The charge of the finer release."""
        return self.charge.sequence

    def totals(self) -> tuple[TableTotals, ...]:
        """Return zeros in the place of totals: no record is read."""
        return tuple(self._zeros(table) for table in self.plan.tables())

    def _zeros(self, table: PlannedTable) -> TableTotals:
        cells = self.plan.cells(table)
        count = cells.num_rows if table.shape.groups else 1
        exact = ExactTable(cells=count, totals={each: np.zeros(count, np.int64) for each in table.totals}, bins={})
        return TableTotals(table=table, cells=cells, exact=Sensitive(exact))

    def check(self, ledger: Ledger, described: Any, exact: Sequence[TableTotals | FoundTotals]) -> None:
        """Compare nothing: no record is read."""

    def continuing(self, prepared: PreparedTable, table: PlannedTable) -> PreparedTable:
        """Return a table whose draws are added to the finer answers."""
        return continue_answers(prepared, table, self.plan, self.coarsening.release)

    def parts(self) -> tuple[PagePart, ...]:
        """Return what the tier tells."""
        return page_parts(self.plan)

    def about(self, firms: Any, lattice: Any) -> dict[str, Any]:
        """Return what the tier says about the finer release."""
        return {TIER: {"digest": self.coarsening.release.digest, "charge": self.charge.sequence}}


def read_tier(plan: Plan, coarsening: Coarsening, ledger: Ledger, *, private: bool | None = None) -> TierStage:
    """Match a plan with the finer release of its tables.

    Args:
        plan: Tables of that release with more noise; its public sizes are known.
        coarsening: The finer release.
        ledger: The one that was charged for it.
        private: Whether the tier is private; None if that is not known yet.

    Raises:
        ParameterError: Something has no proof, or is not the same in both.
    """
    finer = coarsening.release
    if private is not None and finer.private != private:
        raise _refused("is private and the tier is not, or the other way round")
    for table in plan.tables():
        if plan.selection(table) is not None:
            raise _refused("has no tiers where keys are selected: which cells are listed was decided by its own draw")
        if table.bins:
            raise _refused("has no tiers of quantiles")
    check_period(finer, ledger.series, kind=TIER)
    charge = charge_of_release(finer, ledger, kind=TIER)
    if finer.published.step is not None:
        raise _refused("carries noise over the years or corrects another release, and its tiers would share that noise")
    plan = with_shares_of(plan, finer, bare_form)
    forms = [counterpart(each, finer, advice=FINER_QUERIES, kind=TIER) for each in plan_json(plan)]
    made = Plan(schema=plan.schema, queries=tuple(map(_coarser, plan.queries, forms)))
    before = Plan(schema=plan.schema, queries=tuple(map(_as_saved, plan.queries, forms)))
    if [_whole_form(each) for each in plan_json(before)] != [_whole_form(each) for each in forms]:
        # The variance of the finer answers is known for the cells, sizes and shares that they were drawn with.
        raise _refused("was drawn with other sizes, bands or parameters", "Use its plan, with more noise.")
    stage = TierStage(coarsening=coarsening, charge=charge, plan=made)
    check_cells(made, finer, kind=TIER)
    return stage


def _whole_form(form: Mapping[str, Any]) -> Any:
    return json.loads(json.dumps([form.get("where"), form.get("tables"), form.get("statistics")]))


def _saved(form: Mapping[str, Any], statistic: Drawable) -> Mechanism:
    saved = known_mechanisms(form).get(statistic.alias)
    before = None if saved is None else mechanism_from_json(saved)
    if before is None:
        raise _refused(f"has no mechanism of ours for {statistic.alias}")
    return before


def _as_saved(query: Query, form: Mapping[str, Any]) -> Query:
    """Return a query with the mechanisms of the finer release."""
    drawn = query.draws()
    made = [each.with_mechanisms(lambda own: _saved(form, own), drawn) for each in query.statistics]
    return replace(query, statistics=tuple(made))


def _coarser(query: Query, form: Mapping[str, Any]) -> Query:
    """Return a query with noise on top of the finer release's."""

    def chosen(statistic: Drawable) -> Mechanism:
        try:
            return coarsen(_saved(form, statistic), statistic.mechanism)
        except ParameterError as error:
            if error.parameter == TIER:
                raise
            raise _refused(f"has no tier of {statistic.alias}: its mechanism {error.problem}") from None

    drawn = query.draws()
    return replace(query, statistics=tuple(each.with_mechanisms(chosen, drawn) for each in query.statistics))
