"""Releases in stages: the same tables with less noise, of which only the rest is paid (T-STAGES)."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from recordwise.engines.engine import Engine
from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.ledger.entries import Charge
from recordwise.ledger.ledger import Ledger
from recordwise.mechanisms.base import Mechanism
from recordwise.plan.arrays import table_digest
from recordwise.plan.cost import CellMechanism
from recordwise.plan.describe import plan_json, table_name
from recordwise.plan.plan import FoundTotals, Plan, PlannedTable, TableTotals
from recordwise.plan.query import Query
from recordwise.plan.statistics import Drawable
from recordwise.policy.firms import FirmPolicy
from recordwise.policy.json import PolicyFile
from recordwise.policy.loss_law import LatticePolicy
from recordwise.policy.series import Series
from recordwise.release.draw import PreparedStatistic, PreparedTable
from recordwise.release.published import Refinement
from recordwise.release.release import Release
from recordwise.release.tables import PagePart, digest_of, page_parts, without_fits
from recordwise.session.checks import OWN_PLAN, check_totals, stage_refusal

AS_SAVED = "Use the folder as it was saved."
FIRST_QUERIES = "A refinement has the queries of the first plan, with less noise; others need a plan of their own."
DECLARED = (
    "What was published may decide how much to refine only within a declared budget. If this stage was planned "
    "before the first release, say so: fixed_in_advance = true in [stage], fixed_in_advance=True in Python."
)


# The plan of a further stage: each mechanism becomes the average of what was published and of what is drawn now.


@dataclass(frozen=True, slots=True, kw_only=True)
class Refining:
    """The release that a further one refines, and when that was decided."""

    release: Release
    fixed_in_advance: bool = False
    """Whether its accuracy was decided before the first answers were seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """The release that a further one follows, and the records that it was made from."""

    kind: str
    """``carry`` for the period before, ``revise`` for corrected records of the same period, ``start`` for none."""
    release: Release | None = None
    records: Engine | None = None
    crosswalk: Mapping[str, Any] = field(default_factory=dict)
    """By column, pairs of an earlier and a later code: cells that were only renamed are followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coarsening:
    """The finer release that a public tier is made from."""

    release: Release


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A plan whose tables refine those of a release."""

    refining: Refining
    charge: Charge
    """That of the release that is refined."""
    plan: Plan
    """As described and published: averages of both answers."""
    paid: Plan
    """As charged: the further draws alone."""

    step: None = None
    tier_of: ClassVar[None] = None
    unknown: ClassVar[tuple[str, ...]] = ("stated_values",)
    """How closely a value can be known does not follow from the last of several draws."""

    @property
    def refines(self) -> int:
        """The charge that is refined."""
        return self.charge.sequence

    def check(self, ledger: Ledger, described: Any, exact: Sequence[TableTotals | FoundTotals]) -> None:
        """Refuse other records than those of the first release."""
        check_totals(ledger, self.charge, described, exact)

    def about(self, firms: FirmPolicy, lattice: LatticePolicy | None) -> dict[str, Any]:
        """Return what the release says about the one that it refines."""
        return {"refinement": self.refinement(firms, lattice)}

    def continuing(self, prepared: PreparedTable, table: PlannedTable) -> PreparedTable:
        """Return a table whose draws continue the published answers."""
        return continue_answers(prepared, table, self.plan, self.refining.release)

    def parts(self) -> tuple[PagePart, ...]:
        """Return what the averages tell: the losses of all stages, with the noise that is left."""
        return page_parts(self.plan)

    def refinement(self, firms: FirmPolicy, lattice: LatticePolicy | None) -> Refinement:
        """Return what the release says about the one that it refines, and what all stages cost."""
        earlier, known = self.refining.release, self.refining.release.published.refinement
        before = known.total if known is not None else earlier.policies()
        first, first_lattice = before.firms, before.lattice
        assert first is not None
        all_firms = FirmPolicy(parts=(*first.parts, *firms.parts))
        fixed = self.refining.fixed_in_advance and (known is None or known.fixed_in_advance)
        joint = None
        if fixed and first_lattice is not None and lattice is not None:
            joint = LatticePolicy(parts=(*first_lattice.parts, *lattice.parts))
        policy = all_firms.policy()
        total = PolicyFile.of(policy, policy, privacy_label=earlier.privacy_label, firms=all_firms, lattice=joint)
        stages = (earlier.digest, *(() if known is None else known.digests))
        return Refinement(digests=stages, charge=self.charge.sequence, fixed_in_advance=fixed, total=total)


def continue_answers(prepared: PreparedTable, table: PlannedTable, plan: Plan, earlier: Release) -> PreparedTable:
    """Return a table whose draws continue a release's answers."""
    data = earlier[table_name(plan, table)]
    drawn = [
        replace(each, served=tuple(_continuing(each, own, data, single=len(each.served) == 1) for own in each.served))
        for each in prepared.drawn
    ]
    return replace(prepared, drawn=tuple(drawn))


def _continuing(drawn: PreparedStatistic, own: CellMechanism, data: pa.Table, *, single: bool) -> CellMechanism:
    mechanism = own.mechanism
    answers = _answers(mechanism, drawn.statistic.alias, data)
    rows = slice(None) if single else own.run.rows
    earlier = answers[..., rows]
    if not np.all(np.isfinite(earlier)):
        raise stage_refusal(f"has answers of {drawn.statistic.alias} that are missing")
    return replace(own, mechanism=mechanism.continuing(earlier))


def _answers(mechanism: Mechanism, alias: str, data: pa.Table) -> FloatArray:
    """Return the published answers on the scale of their noise."""
    ends = (
        ("",)
        if mechanism.noise_scale is None
        else ("_noisy_positive", "_noisy_negative")
        if mechanism.signed
        else ("_noisy",)
    )
    columns = [
        np.asarray(data.column(alias + end).cast(pa.float64(), safe=False).to_numpy(), np.float64) for end in ends
    ]
    return columns[0] if len(columns) == 1 else np.stack(columns)


def read_stage(plan: Plan, refining: Refining, ledger: Ledger, *, private: bool | None = None) -> Stage:
    """Match a plan with the release that it refines.

    Args:
        plan: The same tables with less noise; its public sizes are known.
        refining: The release.
        ledger: The one that was charged for it.
        private: Whether the further release is private; None if that is not known yet.

    Raises:
        ParameterError: Something has no proof, or is not the same in both.
    """
    earlier = refining.release
    if ledger.budget is None and not refining.fixed_in_advance:
        raise stage_refusal(
            "needs a budget that was declared before the first charge, or an accuracy fixed in advance", DECLARED
        )
    if private is not None and earlier.private != private:
        raise stage_refusal("is private and the further release is not, or the other way round")
    if any(plan.selection(table) is not None for table in plan.tables()):
        raise stage_refusal(
            "cannot be refined where keys are selected: which cells are listed was decided by the first draw"
        )
    check_period(earlier, ledger.series)
    charge = charge_of_release(earlier, ledger)
    plan = with_shares_of(plan, earlier, bare_form)
    forms = [counterpart(each, earlier) for each in plan_json(plan)]
    refined = [_with(query, form, further=False) for query, form in zip(plan.queries, forms)]
    paid = [_with(query, form, further=True) for query, form in zip(plan.queries, forms)]
    stage = Stage(
        refining=refining,
        charge=charge,
        plan=Plan(schema=plan.schema, queries=tuple(refined)),
        paid=Plan(schema=plan.schema, queries=tuple(paid)),
    )
    check_cells(stage.plan, earlier)
    return stage


def check_period(earlier: Release, series: Series | None, *, kind: str = "refine") -> None:
    """Refuse a release of another period or revision."""
    period = (None, 0) if series is None else (series.period, series.revision)
    if (earlier.published.series.period or None, earlier.published.series.revision) != period:
        raise stage_refusal("is of another period or revision", kind=kind)


def charge_of_release(earlier: Release, ledger: Ledger, *, kind: str = "refine") -> Charge:
    """Return the charge of a release of this ledger."""
    events = ledger.history()
    closed = [each for each in events if each.kind == "released" and each.body.get("digest") == earlier.digest]
    if not ledger.on_disk or not closed:
        raise stage_refusal(
            "was not charged to this ledger, which must be a file", "Use the ledger of that release.", kind
        )
    if closed[-1].body.get("mark") != earlier.privacy_label:
        raise stage_refusal("carries another privacy label than in the ledger", OWN_PLAN, kind)
    drawn = {table.name: without_fits(table.data, earlier.published.added) for table in earlier.tables}
    if digest_of(drawn, earlier.policy) != earlier.digest:
        raise stage_refusal("has other tables than those that were released", AS_SAVED, kind)
    charged = events[int(closed[-1].body["charge"]) - 1]
    if "tier" in charged.body:
        raise stage_refusal("is a public tier", "Use the release that it was made from.", kind)
    # The digest of a release is of its tables and its policy. What was drawn, and paid for leaving, is what the ledger says.
    said = [json.dumps(each, sort_keys=True) for each in (charged.body.get("details"), [*earlier.published.plan_forms])]
    if said[0] != said[1]:
        raise stage_refusal("describes other mechanisms than the ledger", AS_SAVED, kind)
    return Charge(sequence=charged.sequence, head=replace(earlier.head, length=charged.sequence, digest=charged.digest))


def counterpart(
    form: Mapping[str, Any], earlier: Release, *, advice: str = FIRST_QUERIES, kind: str = "refine"
) -> Mapping[str, Any]:
    """Return a release's query that is the same but for mechanisms."""
    found = [each for each in earlier.published.plan_forms if bare_form(each) == bare_form(form)]
    if not found:
        names = ", ".join(str(each["name"]) for each in form["tables"])
        raise stage_refusal(
            f"has no query with the same condition, tables, shares, sizes and statistics as that of {names}",
            advice,
            kind,
        )
    return found[0]


def bare_form(form: Mapping[str, Any]) -> Any:
    """Return what two stages of a query have in common."""
    tables = [
        {name: entry for name, entry in each.items() if name not in ("sized_on", "sizes")}
        for each in form.get("tables", ())
    ]
    statistics = [
        {name: entry for name, entry in each.items() if not (isinstance(entry, Mapping) and "kind" in entry)}
        for each in form.get("statistics", ())
    ]
    return json.loads(json.dumps([form.get("where"), tables, statistics]))


def with_shares_of(plan: Plan, earlier: Release, shape: Callable[[Mapping[str, Any]], Any]) -> Plan:
    """Return the plan with the shares of an earlier release in the queries for which both have the best ones.

    They may have been found from other lists, or by another version.
    """
    made = []
    for query, form in zip(plan.queries, plan_json(plan)):
        known = [] if query.best is None or "shares" not in form else list(earlier.published.plan_forms)
        same = [each for each in known if each.get("shares") == form["shares"]]
        if any(shape(each) == shape(form) for each in same):
            same = []
        same = [each for each in same if shape(_without_shares(each)) == shape(_without_shares(form))]
        if same and query.best is not None:
            found = tuple(tuple(each.share for each in axis) for axis in query.axes)
            stated = query.with_shares(*(Fraction(each["share"]) for each in same[0]["tables"]))
            query = replace(stated, best=replace(query.best, found=found, tables=stated.table_shares))
        made.append(query)
    return replace(plan, queries=tuple(made))


def _without_shares(form: Mapping[str, Any]) -> dict[str, Any]:
    tables = [{name: entry for name, entry in each.items() if name != "share"} for each in form["tables"]]
    return {**form, "tables": tables}


def known_mechanisms(form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the saved mechanisms of a query, by the names of what they were drawn for."""
    known: dict[str, Any] = {}
    for each in form["statistics"]:
        for entry, end in (("mechanism", ""), ("sum", "_sum"), ("count", "_count")):
            if isinstance(each.get(entry), Mapping):
                known[f"{each['name']}{end}"] = each[entry]
    return known


def _with(query: Query, form: Mapping[str, Any], *, further: bool) -> Query:
    """Return a query with refined mechanisms, or with further draws."""
    from recordwise.mechanisms.combined import refine
    from recordwise.mechanisms.registry import mechanism_from_json

    known = known_mechanisms(form)

    def chosen(statistic: Drawable) -> Mechanism:
        saved = known.get(statistic.alias)
        before = None if saved is None else mechanism_from_json(saved)
        if before is None:
            raise stage_refusal(f"has no mechanism of ours for {statistic.alias}")
        try:
            made = refine(before, statistic.mechanism)
        except ParameterError as error:
            raise stage_refusal(f"cannot be refined in {statistic.alias}: its mechanism {error.problem}") from None
        return made.further() if further else made

    drawn = query.draws()
    return replace(query, statistics=tuple(each.with_mechanisms(chosen, drawn) for each in query.statistics))


def check_cells(plan: Plan, earlier: Release, *, kind: str = "refine") -> None:
    """Refuse tables whose cells are not those that were published."""
    known = {table.name: table for table in earlier.tables}
    for table in plan.tables():
        name = table_name(plan, table)
        cells, found = plan.cells(table), known[name]
        same = not table.shape.groups or (
            tuple(cells.column_names) == found.keys
            and table_digest(cells) == table_digest(found.data.select(list(found.keys)))
        )
        if not same:
            raise stage_refusal(f"has other cells in {name}", kind=kind)
