"""The steps of a release: check, read, charge, draw, record."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import pyarrow as pa

from recordwise.engines.engine import Engine
from recordwise.errors import BudgetError, EngineError, ParameterError, RecordwiseError
from recordwise.ledger.chain import Event
from recordwise.ledger.entries import Charge, periods_of
from recordwise.ledger.ledger import Ledger
from recordwise.noise.randomness import BitSource, is_private
from recordwise.plan.cost import firm_policy, lattice_policy, plan_policy, value_policy
from recordwise.plan.describe import (
    ReleaseIdentity,
    declared_elsewhere,
    declared_function,
    plan_json,
    query_names,
    release_identity,
    safe_name,
    schema_json,
    schema_of,
    unrecognizable,
    used_schema,
    versions,
)
from recordwise.plan.plan import FoundTotals, Plan, TableTotals
from recordwise.plan.publication import Labels
from recordwise.plan.schema import Schema
from recordwise.plan.statistics import ExactTable
from recordwise.policy.policy import Policy
from recordwise.release.draw import PreparedTable, dry_run, dry_run_selection, in_turn, prepare_table, publish_table
from recordwise.release.published import AboutPlan, EarlierRevision, Period, Published, PublishedSeries, Tuning
from recordwise.release.release import Release, noted_facts
from recordwise.release.tables import ReleasedTable, digest_of, external_part, page_parts
from recordwise.session.checks import (
    check_coverage,
    check_release_sizes,
    coverage,
    covered_tables,
    explain_refusal,
    note_totals,
    promise,
    raise_bands,
    with_sizes,
    without_counts,
)
from recordwise.session.stages import Coarsening, Following, Refining, Stage, read_stage

if TYPE_CHECKING:
    from recordwise.mechanisms.external import ExternalMechanism
    from recordwise.plan.external import SplitRows
    from recordwise.session.carried import CarriedStage
    from recordwise.session.tiers import TierStage


# What a release says about the series it belongs to: its period and revision, what it revises, and the losses of all
# periods.


def revised_releases(ledger: Ledger) -> tuple[EarlierRevision, ...]:
    """Return the releases that a revision of the same period replaces.

    Those of the revision before, with their days and digests.

    Raises:
        ParameterError: The period has no release of the revision before.
    """
    series = ledger.series
    if series is None or series.revision == 0:
        return ()
    events = ledger.history()
    charges = {
        event.sequence: event
        for event in events
        if event.kind == "charged"
        and event.body.get("period") == series.period
        and event.body.get("revision", 0) == series.revision - 1
    }
    found = tuple(_version(event, charges) for event in events if _closes(event, charges))
    if not found:
        raise ParameterError(
            parameter="revision",
            problem=f"{series.revision} of {series.period} has nothing to revise: no release of revision {series.revision - 1}"
            " is in the ledger",
            advice="Nothing was spent. Count revisions from 1, one after another.",
        )
    return found


def _closes(event: Event, charges: dict[int, Event]) -> bool:
    return event.kind == "released" and event.body.get("charge") in charges


def _version(event: Event, charges: dict[int, Event]) -> EarlierRevision:
    charge = charges[event.body["charge"]]
    return EarlierRevision(
        revision=charge.body.get("revision", 0), date=event.time[:10], digest=str(event.body["digest"])
    )


def published_series(ledger: Ledger, charge: Charge, revises: Sequence[EarlierRevision] = ()) -> PublishedSeries | None:
    """Return what a release says about its series; None outside a series."""
    series = ledger.series
    if series is None:
        return None
    return PublishedSeries(
        name=series.name,
        period=series.period,
        revision=series.revision,
        date=charge.time[:10],
        revises=tuple(revises),
        periods=tuple(
            Period(name=each.name, policy=each.spent, budget=each.budget, declared=each.declared_text())
            for each in periods_of(ledger.history())
        ),
    )


Progress = Callable[[str], object]
Asked: TypeAlias = Refining | Following | Coarsening
"""The release that another one is made with, and how."""
Stages: TypeAlias = "Stage | CarriedStage | TierStage"
"""The same, matched with a plan."""
UNNAMED = (
    "They would pay for it a second time. List the cells or give a product of columns, give parameters values, or run without "
    "refuse_repeat and keep, and see to it yourself that it is run only once."
)
STEPS = 4
"""Reading, charging, drawing, recording."""


def matched_stage(plan: Plan, asked: Asked, ledger: Ledger, *, private: bool | None = None) -> "Stages":
    """Match a plan with the release that it is made with."""
    if isinstance(asked, Coarsening):
        from recordwise.session.tiers import read_tier

        return read_tier(plan, asked, ledger, private=private)
    if isinstance(asked, Refining):
        return read_stage(plan, asked, ledger, private=private)
    from recordwise.session.carried import read_following

    return read_following(plan, asked, ledger, private=private)


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """Makes the releases of a session."""

    engine: Engine
    ledger: Ledger
    schema: Schema
    budget: Policy | None
    dataset: str
    tuning: Tuning
    """What the session says about itself in every release."""
    words: Labels = field(default_factory=Labels)
    """The words of every release."""
    max_outside: Fraction | None = None
    """The share of the records that may be outside the published cells; None: any."""
    kept: list[Path] = field(default_factory=list)
    """The folders of drawn tables that were left next to the ledger."""

    def run(
        self,
        plan: Plan,
        *,
        rng: BitSource,
        confidence: float,
        tell: Progress,
        refuse_repeat: bool = False,
        keep: bool = False,
        refining: Asked | None = None,
    ) -> Release:
        """Publish the queries of a plan; nothing is charged before everything that can be refused was tried.

        ``refuse_repeat`` refuses what the ledger has charged; ``keep`` leaves the drawn tables next to the ledger until ``finish``;
        ``refining`` is a release whose answers are refined or followed.
        """
        private = is_private(rng)
        plan, paid, stage = self._stages(plan, refining, private=private)
        firms, described, name = firm_policy(paid), plan_json(plan), query_names(plan)
        # Bands are raised by what is left of the budget, which is no part of what a release is about.
        policy = firms.policy()
        identity = self._identity(plan, described, policy, needed=refuse_repeat or keep, refining=refining)
        if refuse_repeat and identity is not None and self.ledger.charge_of(identity) is not None:
            raise self.ledger.already(identity)
        if private:
            check_release_sizes(plan, self.ledger)
        if stage is None and (fitting := raise_bands(plan, self.ledger)) is not plan:
            plan, paid, firms, described = fitting, fitting, firm_policy(fitting), plan_json(fitting)
            policy = firms.policy()
        paper, lattice = plan_policy(paid, tight=False), lattice_policy(paid)
        revises = revised_releases(self.ledger)
        tier_of = None if stage is None else stage.tier_of
        self._check_budget(paid, policy, identity, tier_of)
        for table in plan.tables():
            dry_run(plan, table, confidence=confidence)
        tell("reading records")
        with self._reading():
            names = used_schema(plan, policy, paper, self.budget)
            exact = self._totals(plan, names.declared_names(), stage)
            if stage is not None:
                stage.check(self.ledger, described, exact)
            prepared = [(each, _prepare(plan, each, confidence, stage)) for each in exact]
        tell("charging the ledger")
        terms: dict[str, Any] = {"query": name, "details": described, "schema": schema_json(names), "release": identity}
        terms |= {} if stage is None else {"refines": stage.refines, "step": stage.step, "tier_of": tier_of}
        with self.ledger.charging(policy, **terms, refuse_repeat=refuse_repeat) as charge:
            if tier_of is None:
                note_totals(self.ledger, charge, described, exact)
            _tell_safely(tell, "drawing noise")
            tables = in_turn(
                publish_table(plan, each.table, *_reveal(each), ready, rng, confidence=confidence)
                for each, ready in prepared
            )
            _tell_safely(tell, "recording the release")
            published = self._published(
                charge,
                plan=described,
                schema=terms["schema"],
                confidence=confidence,
                promise=promise(plan, self.ledger),
                hierarchies=[each.to_json() for each in names.hierarchies],
                series=published_series(self.ledger, charge, revises),
                declared=declared_elsewhere(plan),
                is_pure=policy.pure_problem() is None,
                **({} if stage is None else stage.about(firms, lattice)),
            )
            drawn = self._make_release(tables, policy, published, charge, private=private)
            parts = page_parts(plan) if stage is None else stage.parts()
            own: Any = {"firms": firms, "lattice": lattice, "stated_values": value_policy(paid), "parts": parts}
            own |= {} if stage is None else dict.fromkeys(stage.unknown)
            drawn = replace(drawn, paper_policy=paper, **own)
            if not (keep and self._keep(drawn, charge)):
                return self._record(drawn, charge)
        # On the disk, the release can be finished whatever happens, so that from here on nothing counts as failed.
        return self._record(drawn, charge)

    def _stages(
        self, plan: Plan, refining: Asked | None, *, private: bool | None = None
    ) -> "tuple[Plan, Plan, Stages | None]":
        """Return the plan as published and as paid, which differ where it refines a release."""
        plan = with_sizes(plan)
        if refining is None:
            return plan, plan, None
        stage = matched_stage(plan, refining, self.ledger, private=private)
        return stage.plan, stage.paid, stage

    def _check_budget(self, plan: Plan, policy: Policy, identity: ReleaseIdentity | None, tier_of: int | None) -> None:
        """Refuse what the budget does not cover, with what would fit; or a second tier, of which nothing is charged."""
        if tier_of is not None:
            return self.ledger.check_tier(tier_of)
        try:
            self.ledger.check(policy, query=query_names(plan), release=identity)
        except BudgetError as refusal:
            raise explain_refusal(refusal, plan, self.ledger) from None

    def resume(self, plan: Plan, refining: Asked | None = None) -> Release | None:
        """Return the charged and drawn release of a plan not yet saved.

        None if the plan was never charged.

        Raises:
            AlreadyReleasedError: It was saved, is being drawn by another process, or did not reach the disk.
        """
        identity = self.identity(plan, refining)
        charge = self.ledger.charge_of(identity)
        if charge is None:
            return None
        if not self.waiting(plan, refining):
            raise self.ledger.already(identity)
        from recordwise.release.files import recover

        release = recover(self.ledger, charge)
        self.ledger.settle()
        return release

    def waiting(self, plan: Plan, refining: Asked | None = None) -> bool:
        """Return whether the latest release's tables wait next to the ledger."""
        from recordwise.release.files import recoverable_folder

        charge = self.ledger.charge_of(self.identity(plan, refining))
        return charge is not None and self.ledger.on_disk and recoverable_folder(self.ledger, charge).is_dir()

    def finish(self, plan: Plan, refining: Asked | None = None) -> None:
        """Remove the tables stored for a release whose folder is complete."""
        from recordwise.release.files import forget

        charge = self.ledger.charge_of(self.identity(plan, refining))
        if charge is not None and self.ledger.on_disk:
            forget(self.ledger, charge)

    def identity(self, plan: Plan, refining: Asked | None = None) -> ReleaseIdentity:
        """What a plan releases."""
        published, paid, _ = self._stages(plan, refining)
        policy = firm_policy(paid).policy()
        found = self._identity(published, plan_json(published), policy, needed=True, refining=refining)
        assert found is not None
        return found

    def _identity(
        self, plan: Plan, described: Any, policy: Policy, *, needed: bool, refining: Asked | None = None
    ) -> ReleaseIdentity | None:
        """Return a plan's release identity; None if unrecognizable and not ``needed``."""
        reason = unrecognizable(plan)
        if reason and needed:
            problem = f"must be recognized by other processes, but {reason}"
            raise ParameterError(parameter="a release that is made once or kept", problem=problem, advice=UNNAMED)
        if reason:
            return None
        refines = None if refining is None or refining.release is None else refining.release.digest
        return release_identity(plan, described, policy, self.ledger.series, refines=refines)

    def _totals(
        self, plan: Plan, names: tuple[str, ...], stage: "Stages | None"
    ) -> "tuple[TableTotals | FoundTotals, ...]":
        """Return the exact totals; a tier is made from noisy answers and reads no record."""
        return self._covered_totals(plan, names) if stage is None or stage.tier_of is None else stage.totals()

    def _covered_totals(self, plan: Plan, names: tuple[str, ...]) -> tuple[TableTotals | FoundTotals, ...]:
        """Return the exact totals if the published cells contain the records."""
        if self.max_outside is None:
            return self.engine.totals(plan, names=names)
        found = self.engine.totals(plan, names=names, tables=covered_tables(plan))
        check_coverage(coverage(plan, found), self.max_outside)
        return without_counts(plan, found)

    def run_external(self, external: "ExternalMechanism", split: "SplitRows", *, private: bool) -> Release:
        """Publish what an external mechanism says about the split rows."""
        from recordwise.release.draw import external_table

        firms, name = split.firms(external, self.schema), external.name
        policy = firms.policy()
        self.ledger.check(policy, query=name)
        with self._reading():
            rows = external.prepare(self.engine.split_table(split.splitting, condition=split.condition).reveal())
        described = [split.to_json(external)]
        seen = set(self.schema.declared_names()) if external.column is None else {external.column}
        used = schema_json(schema_of(self.schema, seen, policy, self.budget))
        with self.ledger.charging(policy, query=name, details=described, schema=used) as charge:
            data = external_table(external.run(rows), name)
            table = ReleasedTable(name=safe_name(name), keys=(), variables=(), data=data)
            published = self._published(
                charge,
                plan=described,
                schema=used,
                series=published_series(self.ledger, charge),
                declared=[declared_function(external.call, name=external.name)],
                is_pure=policy.pure_problem() is None,
            )
            drawn = self._make_release((table,), policy, published, charge, private=private)
            parts = (external_part(table.name, policy),)
            return self._record(replace(drawn, parts=parts, firms=firms), charge)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Report only the type of foreign exceptions while reading records.

        Nothing is spent yet, but their text may quote records.
        """
        try:
            yield
        except RecordwiseError:
            raise
        except Exception as error:
            raise EngineError(engine=self.engine.dialect, kind=type(error).__name__) from None

    def _keep(self, drawn: Release, charge: Charge) -> bool:
        """Leave drawn tables next to the ledger; False where that fails."""
        from recordwise.release.files import recoverable_folder, write_recoverable

        if not self.ledger.on_disk:
            return False
        # Named before it is complete: an interrupt may come right after that.
        self.kept.append(recoverable_folder(self.ledger, charge))
        return write_recoverable(drawn, self.ledger, charge)

    def _record(self, drawn: Release, charge: Charge) -> Release:
        """The release with the head of the ledger that recorded it."""
        facts = noted_facts(drawn)
        head = self.ledger.record_release(charge, digest=drawn.digest, privacy_label=drawn.privacy_label, facts=facts)
        self.ledger.settle()
        return replace(drawn, head=head)

    def _make_release(
        self,
        tables: tuple[ReleasedTable, ...],
        policy: Policy,
        published: Published,
        charge: Charge,
        *,
        private: bool,
    ) -> Release:
        """The release with the head of the ledger at its charge."""
        return Release(
            tables=tables,
            policy=policy,
            paper_policy=policy,
            published=published,
            digest=digest_of({table.name: table.data for table in tables}, policy),
            head=charge.head,
            private=private,
            words=replace(self.words, publication=self.words.publication.with_date(_today())),
        )

    def _published(self, charge: Charge, **about: Unpack[AboutPlan]) -> Published:
        """Return what release.json says: session, ledger, looks, and the plan."""
        return Published.of(
            dataset=self.dataset,
            tuning=self.tuning,
            ledger=self.ledger.statement(),
            looks=self.ledger.looks(before=charge.sequence),
            versions=versions(),
            **about,
        )


def _tell_safely(tell: Progress, doing: str) -> None:
    """Report a step of what is charged already: who can no longer listen, as a closed pipe, does not lose the release."""
    with suppress(Exception):
        tell(doing)


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _prepare(
    plan: Plan, exact: TableTotals | FoundTotals, confidence: float, stage: "Stages | None"
) -> PreparedTable | None:
    """Return the mechanism of every cell; None if keys are selected."""
    if isinstance(exact, TableTotals):
        prepared = prepare_table(plan, exact.table, exact.cells, confidence=confidence)
        return prepared if stage is None else stage.continuing(prepared, exact.table)
    dry_run_selection(plan, exact.table, exact.cells.reveal())
    return None


def _reveal(found: TableTotals | FoundTotals) -> tuple[pa.Table, ExactTable]:
    """Return a table's cells and exact numbers, CONFIDENTIAL.

    Noise is added to them next; nothing else may use them.
    """
    cells = found.cells.reveal() if isinstance(found, FoundTotals) else found.cells
    return cells, found.exact.reveal()
