"""Releases that follow another one on other records: noise carried over to the next period, and corrected records (T-SERIES)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from recordwise.errors import KeysError, ParameterError, PlanError
from recordwise.ledger.entries import Charge
from recordwise.ledger.ledger import Ledger, staying_lines
from recordwise.mechanisms.base import Mechanism
from recordwise.mechanisms.combined import carried_from
from recordwise.mechanisms.registry import mechanism_from_json
from recordwise.plan.arrays import table_digest
from recordwise.plan.cost import CellMechanism, Run, cell_key, firm_policy
from recordwise.plan.describe import plan_json, table_name
from recordwise.plan.expressions import Field, Group, Prefix
from recordwise.plan.keys.hierarchies import Hierarchy
from recordwise.plan.keys.keys import Keys
from recordwise.plan.plan import FoundTotals, Plan, PlannedTable, TableTotals
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.plan.statistics import CountUnits, Drawable, ExactTable
from recordwise.plan.statistics.totals import SumSteps
from recordwise.policy.policy import Policy
from recordwise.policy.series import CARRY, REVISE, START, Renaming, Series, Step, columns_key, renaming
from recordwise.release.change import numbered_cells, rows_in
from recordwise.release.draw import PreparedStatistic, PreparedTable
from recordwise.release.release import Release
from recordwise.release.tables import PagePart, page_parts
from recordwise.session.checks import check_totals, stage_refusal
from recordwise.session.stages import (
    Following,
    bare_form,
    charge_of_release,
    known_mechanisms,
    with_shares_of,
)

IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def _refused(kind: str, problem: str, advice: str) -> ParameterError:
    return stage_refusal(problem, advice, kind)


MOST_FRESH = 5000
"""New cells that a release names; where there are more, all units that stay count as ones that move."""
APART = "Publish it by a plan of its own, with fresh noise."


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedStage:
    """A plan whose tables follow those of a release."""

    following: Following
    plan: Plan
    """As described, published and charged."""
    before: Plan | None
    """The same tables with the cells that were published before."""
    charge: Charge | None
    """That of the release that is followed."""
    step: Step
    _old: dict[tuple[int, int], TableTotals] = field(default_factory=dict, repr=False, compare=False)

    @property
    def paid(self) -> Plan:
        """The plan as charged, for coming and for leaving."""
        return self.plan

    refines: None = None
    tier_of: ClassVar[None] = None
    unknown: ClassVar[tuple[str, ...]] = ("lattice", "stated_values")
    """What leaving costs is drawn later, on another lattice: there is no one law of one release."""

    def check(self, ledger: Ledger, described: Any, exact: Sequence[TableTotals | FoundTotals]) -> None:
        """Read the old records again, and refuse other totals than before."""
        if self.before is None or self.following.records is None or self.following.release is None:
            return
        found = self.following.records.totals(self.before, names=self.plan.schema.declared_names())
        assert self.charge is not None
        assert ledger.series is not None
        own = self.following.release.published.series
        series = replace(ledger.series, period=own.period, revision=own.revision)
        check_totals(ledger, self.charge, plan_json(self.before), found, series=series, kind=self.following.kind)
        self._old.update(
            {(each.table.query, each.table.level): each for each in found if isinstance(each, TableTotals)}
        )

    def continuing(self, prepared: PreparedTable, table: PlannedTable) -> PreparedTable:
        """Return a table whose draws follow the published answers, cell by cell."""
        if self.before is None or self.following.release is None:
            drawn = [replace(each, served=tuple(_afresh(own) for own in each.served)) for each in prepared.drawn]
            return replace(prepared, drawn=tuple(drawn))
        old = self._old[table.query, table.level]
        places = _places(self.plan.cells(table), old.cells, self.step.renamed)
        data, exact = self.following.release[table_name(self.plan, table)], old.exact.reveal()
        drawn = [self._following(each, places, data, exact) for each in prepared.drawn]
        return replace(prepared, drawn=tuple(drawn))

    def _following(
        self, drawn: PreparedStatistic, places: IntArray, data: pa.Table, exact: ExactTable
    ) -> PreparedStatistic:
        """Return a statistic whose cells with an earlier answer follow it; the others are drawn afresh."""
        (own,) = drawn.served
        mechanism = own.mechanism
        (total,) = drawn.statistic.totals(self.plan.schema)
        answers = np.asarray(
            data.column(drawn.statistic.alias).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64
        )
        with_it, without = np.flatnonzero(places >= 0), np.flatnonzero(places < 0)
        earlier = answers[places[with_it]]
        if not np.all(np.isfinite(earlier)):
            raise _refused(self.following.kind, f"has answers of {drawn.statistic.alias} that are missing", APART)
        followed = mechanism.following(earlier, exact.totals[total][places[with_it]])
        served = [CellMechanism(followed, Run(own.run.at, with_it))] if len(with_it) else []
        served += [CellMechanism(mechanism.following(None), Run(own.run.at, without))] if len(without) else []
        return replace(drawn, served=tuple(served))

    def parts(self) -> tuple[PagePart, ...]:
        """Return what the page says about each part."""
        return page_parts(self.plan)

    def about(self, firms: Any, lattice: Any) -> dict[str, Any]:
        """Return what the release says about the one that it follows."""
        release = self.following.release
        if release is None:
            return {"step": self.step}
        return {"step": self.step, "follows": (release.digest, *release.published.follows)}


def _afresh(own: CellMechanism) -> CellMechanism:
    return replace(own, mechanism=own.mechanism.following(None))


def _places(cells: pa.Table, earlier: pa.Table, renamed: Renaming) -> IntArray:
    """Return the row of each cell in an earlier list, -1 where it was not listed."""
    if not cells.num_columns:
        return np.zeros(1, np.int64)
    names = cells.column_names
    known, rows = numbered_cells(earlier.select(names), renamed)
    return rows_in(cells, known, names, rows)


def read_following(plan: Plan, following: Following, ledger: Ledger, *, private: bool | None = None) -> CarriedStage:
    """Match a plan with the release that it follows.

    Args:
        plan: The plan, with the variance that the published answers shall have.
        following: The release, if any, and its records.
        ledger: The one that was charged for it.
        private: Whether the further release is private; None if that is not known yet.

    Raises:
        ParameterError: Something has no proof, or is not the same in both.
    """
    kind, earlier, series = following.kind, following.release, ledger.series
    _check_terms(kind, series, ledger)
    assert series is not None
    check_carriable(plan, kind)
    charge = None
    if earlier is not None:
        if private is not None and earlier.private != private:
            raise _refused(kind, "is private and the further release is not, or the other way round", APART)
        _check_period(earlier, series, kind)
        if kind == REVISE and schema_before(plan.schema, earlier) != plan.schema:
            # A record that did not change would move with its code, and nobody pays for that.
            raise _refused(kind, "has other lists of codes than the release that is revised", "Use the same lists.")
        charge = charge_of_release(earlier, ledger, kind=kind)
    carry = Fraction(1) if kind == REVISE else Fraction(series.carry or 0)
    leave = Fraction(0) if kind == REVISE else Fraction(series.carry or 0)
    plan = plan if earlier is None else with_shares_of(plan, earlier, _shape)
    forms = [None if earlier is None else _counterpart(each, earlier, kind) for each in plan_json(plan)]
    queries = [_with(query, form, carry, leave, kind) for query, form in zip(plan.queries, forms)]
    made = Plan(schema=plan.schema, queries=tuple(queries))
    renamed = _renaming(made, following)
    before = None if earlier is None else _plan_before(made, earlier, kind)
    fresh = Plan(schema=plan.schema, queries=tuple(_further(each) for each in made.queries))
    relisted = before is not None and not all(
        _all_listed(made.cells(each), before.cells(each), renamed) for each in made.tables() if each.shape.groups
    )
    if relisted and kind == REVISE:
        raise _refused(kind, "has other cells than the release that is revised", "List the same cells.")
    step = Step(
        kind=kind,
        noise=firm_policy(fresh),
        carry=Fraction(0) if earlier is None else carry,
        follows=None if charge is None else charge.sequence,
        measures=tuple(each.name for each in plan.schema.record_measures()),
        relisted=relisted,
        fresh=_fresh_cells(made, before, renamed) if relisted and before is not None else None,
        renamed=renamed,
    )
    _check_staying(step, series, kind)
    return CarriedStage(following=following, plan=made, before=before, charge=charge, step=step)


def _all_listed(cells: pa.Table, earlier: pa.Table, renamed: Renaming) -> bool:
    """Return whether both lists have the same cells, but for their names."""
    if not set(renamed) & set(cells.column_names):
        return table_digest(cells) == table_digest(earlier)
    return cells.num_rows == earlier.num_rows and bool(np.all(_places(cells, earlier, renamed) >= 0))


def _fresh_cells(plan: Plan, before: Plan, renamed: Renaming) -> dict[str, frozenset[tuple[str, ...]]] | None:
    """Return the cells that follow no earlier one, by the columns of their tables; None where they are too many to list."""
    found: dict[str, frozenset[tuple[str, ...]]] = {}
    for table in (each for each in plan.tables() if each.shape.groups):
        cells = plan.cells(table)
        new = np.flatnonzero(_places(cells, before.cells(table), renamed) < 0)
        if len(new) > MOST_FRESH:
            return None
        columns = [cells.column(name).take(pa.array(new)).to_pylist() for name in cells.column_names]
        own = columns_key([cell_key(group, plan.schema) for group in table.joined_by()])
        found[own] = found.get(own, frozenset()) | {tuple(map(str, cell)) for cell in zip(*columns)}
    return found if sum(map(len, found.values())) <= MOST_FRESH else None


def _renaming(plan: Plan, following: Following) -> dict[str, dict[Any, Any]]:
    """Return the later code of each earlier code of a crosswalk, in the types of the key columns."""
    from recordwise.plan.keys.codes import code_pairs, whole_code

    made = {}
    groups = {each for table in plan.tables() for each in table.shape.groups}
    for name, given in following.crosswalk.items():
        own = [each for each in groups if name in (each.name, _usual_name(each))]
        if not own or any(each.name != _usual_name(each) for each in own):
            raise _refused(
                "crosswalk",
                f"names '{str(name)[:80]}', which is no column of codes by which tables are published under that name",
                "Use columns of the records and levels of their lists.",
            )
        pairs = code_pairs(given)
        if not pairs:
            raise _refused(
                "crosswalk",
                f"of '{name}' must be pairs of an earlier and a later code",
                "Give all codes that changed.",
            )
        listed = next(
            plan.cells(each).schema for each in plan.tables() if name in [own.name for own in each.shape.groups]
        )
        try:
            whole = pa.types.is_integer(listed.field(name).type)
            read = whole_code if whole else str
            codes = [(read(old), read(new)) for old, new in pairs]
        except (ValueError, TypeError, OverflowError):
            raise _refused(
                "crosswalk", f"of '{name}' has a code that is no whole number", "Write codes as they are."
            ) from None
        made[name] = renaming(codes)
    return made


def _usual_name(group: Group) -> str | None:
    """Return what a group of codes, or of their beginnings, is called unless it has a name of its own."""
    own = group.expression
    return own.name if isinstance(own, Field) else own.default_name() if isinstance(own, Prefix) else None


def _check_terms(kind: str, series: Series | None, ledger: Ledger) -> None:
    if series is None:
        raise _refused(kind, "needs a series", 'State it: [series] name = "...", period = "2026".')
    if ledger.budget is None:
        raise _refused(
            kind,
            "needs a budget that was declared before the first charge",
            "State it: budget = [{ rho = ..., at = ... }].",
        )
    if kind != REVISE and series.carry is None:
        raise _refused(kind, "needs the part of the noise that is carried over", "State it: [series] carry = 0.8.")
    if kind == CARRY and series.revision:
        raise _refused(kind, "is for the first release of a period, and this is a revision", "Use revise.")
    if kind == REVISE and not series.revision:
        raise _refused(kind, "needs the number of the revision", "State it: [series] revision = 1.")


def _check_staying(step: Step, series: Series, kind: str) -> None:
    """Refuse a series without a budget of those who stay; its lines are those of this step."""
    if series.staying is not None:
        return
    wanted = step if kind != START or series.carry is None else replace(step, carry=Fraction(series.carry))
    if kind == START:
        # The next period draws less noise than this one, by 1 - carry squared.
        lines = staying_lines(_stays_next(wanted))
    else:
        lines = staying_lines(wanted.staying())
    raise _refused(
        kind,
        "needs a budget of units that stay in their cells, as a function of what changed",
        f"Paste it into [series], before the first charge: {lines}",
    )


def _stays_next(step: Step) -> Policy:
    """Return what units that stay will pay in each next period."""
    return step.staying() * (1 / (1 - step.carry**2))


def check_carriable(plan: Plan, kind: str) -> None:
    """Refuse by name whatever has no proof."""
    for table in plan.tables():
        if plan.selection(table) is not None:
            raise _refused(kind, "has no proof where keys are selected: which cells are listed is drawn afresh", APART)
        if table.rest is not None:
            raise _refused(kind, "has no proof where all other cells are published together", "Leave all_other out.")
        if table.bins:
            raise _refused(kind, "has no proof for quantiles", APART)
    for _, statistic in plan.drawn():
        totals = statistic.totals(plan.schema)
        if len(totals) != 1 or not isinstance(totals[0], CountUnits | SumSteps):
            raise _refused(kind, f"has no proof for {statistic.alias}: only counts of units and sums", APART)
        measure = None if not isinstance(totals[0], SumSteps) else plan.schema.measure(totals[0].measure)
        if measure is not None and (measure.signed or measure.derive):
            raise _refused(
                kind,
                f"has no proof for {statistic.alias}: what is left by one record may add to what comes by another",
                APART,
            )


def _check_period(earlier: Release, series: Series, kind: str) -> None:
    own = earlier.published.series
    if own.name != series.name:
        raise _refused(kind, "is of another series", "Give the release of this series.")
    if kind == CARRY and not own.period < series.period:
        raise _refused(kind, "is not of an earlier period", "Give the latest release of the period before.")
    if kind == REVISE and (own.period, own.revision) != (series.period, series.revision - 1):
        raise _refused(kind, "is not the revision before", "Give the latest release of this period.")


def _counterpart(form: Mapping[str, Any], earlier: Release, kind: str) -> Mapping[str, Any]:
    """Return the query of a release that is the same but for its mechanisms and its cells."""
    found = [each for each in earlier.published.plan_forms if _shape(each) == _shape(form)]
    if not found:
        names = ", ".join(str(each["name"]) for each in form["tables"])
        raise _refused(
            kind,
            f"has no query with the same condition, tables, shares and statistics as that of {names}",
            "Cells may differ; new tables need a plan of their own, or the first release of another series.",
        )
    return found[0]


def _shape(form: Mapping[str, Any]) -> Any:
    where, tables, statistics = bare_form(form)
    bare = [{name: each[name] for name in each if name not in ("public_cells", "by")} for each in tables]
    # Lists of codes change from year to year; each level is followed by its codes.
    groups = [[{name: own[name] for name in own if name != "digest"} for own in each["by"]] for each in tables]
    return where, bare, groups, statistics


def _with(query: Query, form: Mapping[str, Any] | None, carry: Fraction, leave: Fraction, kind: str) -> Query:
    """Return a query with carried noise."""
    known = {} if form is None else known_mechanisms(form)

    def chosen(statistic: Drawable) -> Mechanism:
        saved = known.get(statistic.alias)
        before = None if saved is None else mechanism_from_json(saved)
        if form is not None and before is None:
            raise _refused(kind, f"has no mechanism of ours for {statistic.alias}", APART)
        try:
            return carried_from(before, statistic.mechanism, carry=carry, leave=leave)
        except ParameterError as error:
            raise _refused(kind, f"is refused for {statistic.alias}: its mechanism {error.problem}", APART) from None

    drawn = query.draws()
    return replace(query, statistics=tuple(each.with_mechanisms(chosen, drawn) for each in query.statistics))


def _further(query: Query) -> Query:
    drawn = query.draws()
    fresh = [each.with_mechanisms(lambda own: own.mechanism.further(), drawn) for each in query.statistics]
    return replace(query, statistics=tuple(fresh))


def _plan_before(plan: Plan, earlier: Release, kind: str) -> Plan:
    """Return the plan with the cells that were published before."""
    schema = schema_before(plan.schema, earlier)
    if schema == plan.schema and _cells_agree(plan, earlier):
        return plan
    queries = []
    for number, query in enumerate(plan.queries):
        names = [table_name(plan, each) for each in plan.tables() if each.query == number and each.shape.groups]
        tables = [each for each in earlier.tables if each.name in names]
        lists = tuple(Keys.of(each.data.select(list(each.keys))) for each in tables)
        queries.append(replace(query, key_lists=lists) if lists else query)
    try:
        made = Plan(schema=schema, queries=tuple(queries))
        agree = _cells_agree(made, earlier)
    except (KeysError, PlanError):
        agree = False
    if not agree:
        raise _refused(kind, "lists other cells in a form that cannot be read back", "List the cells as before.")
    return made


def schema_before(schema: Schema, earlier: Release) -> Schema:
    """Return a schema with the lists of codes of an earlier release.

    Args:
        schema: The schema of now.
        earlier: The release.
    """
    return replace(schema, hierarchies=tuple(_list_before(each, earlier) for each in schema.hierarchies))


def _list_before(own: Hierarchy, earlier: Release) -> Hierarchy:
    """Return a list of codes as the earlier release had it."""
    known = earlier.published.lists.lists.get(own.name)
    if known is None or known.levels != own.levels or known.digest == own.digest:
        return own
    return replace(Hierarchy.of(own.name, known.table(), levels=own.levels, source=known.source), digest=known.digest)


def _cells_agree(plan: Plan, earlier: Release) -> bool:
    """Return whether the cells of all tables are those that were published."""
    known = {table.name: table for table in earlier.tables}
    for table in plan.tables():
        found = known.get(table_name(plan, table))
        if found is None:
            return False
        if table.shape.groups:
            cells = plan.cells(table)
            if tuple(cells.column_names) != found.keys:
                return False
            if table_digest(cells) != table_digest(found.data.select(list(found.keys))):
                return False
    return True
