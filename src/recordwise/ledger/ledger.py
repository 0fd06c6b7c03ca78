"""The budget of a dataset or series, and every charge to it.

A charge is committed before noise is drawn. A ledger is one file of chained events (``ledger/chain.py``) for one dataset and one
budget, bound to them by its first charge. A ledger of a series has such terms for each of its periods; what its periods charge
adds up for a unit's history. A schema may grow by new names; a name that was charged keeps its meaning within its period. The
transaction that writes a charge has exclusive access to the file and compares it with what is spent at that moment, so many
processes never overspend together. A crash may waste budget but never exceeds it. Every release carries the head of the chain, so
that restoring an older copy of a ledger is detected.

A charge may keep a reserve for its own revisions, which counts as spent for every other release (T-RESERVE). A budget is amended
only by an entry that states the old one and a reason, never below what is spent and reserved, and every later release says so
(T-AMEND). Versions that know neither refuse such a ledger by its format.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_UP, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from recordwise.errors import (
    WASTED,
    AlreadyReleasedError,
    BudgetError,
    DrawingError,
    LedgerError,
    ParameterError,
    RecordError,
    RecordwiseError,
    UnknownFormError,
)
from recordwise.ledger.chain import ADVICE, Chain, Event, canonical
from recordwise.ledger.entries import (
    KINDS,
    LOOKED,
    RESERVED,
    SERIES_NAME,
    WITH_RESERVES,
    Amendment,
    Charge,
    Identity,
    NotedBands,
    amendments_text,
    as_charge,
    band_tables_in,
    bands_of_budget,
    count_looks,
    drawing,
    latest_of,
    look_body,
    only_for_later_versions,
    period_problem,
    periods_of,
    reserve_body,
    series_of,
    state_of,
    sum_of_reserves,
    tables_of,
    unused_reserves,
)
from recordwise.policy.policy import Policy, restates
from recordwise.policy.series import CARRY, CONTINUITY, REVISE, START, Head, Series, Step

# Schemas as a ledger states them: which names changed their meaning, and which were added.


PARTS = ("measures", "columns")


def changed_names(known: Any, wanted: Any) -> list[str]:
    """Return the names whose meaning differs in the second schema.

    Both in JSON as written by ``plan.describe.schema_json``. Names that differ only in case are the same name. A
    schema may leave out names and the firm.
    """
    if not known or not wanted:
        return []
    try:
        before, after = _meanings(known), _meanings(wanted)
    except (AttributeError, KeyError, TypeError):
        return ["everything (it is not a valid schema)"]
    changed = [name for name in before if name in after and before[name] != after[name]]
    for role in ("unit", "firm"):
        first, second = known.get(role), wanted.get(role)
        if first != second and (role == "unit" or None not in (first, second)):
            changed.append(f"the {role}")
    if known.get("rows") != wanted.get("rows"):
        changed.append("the rows of a unit")
    return sorted(changed)


def combined_schema(known: Any, wanted: Any) -> Any:
    """Return both schemas combined, the first one's names first."""
    if not known or not wanted:
        return known or wanted
    before = _meanings(known)
    new = {part: [each for each in wanted.get(part, []) if each["name"].casefold() not in before] for part in PARTS}
    merged = {part: [*known.get(part, []), *new[part]] for part in PARTS if part in known or new[part]}
    firm = {"firm": known.get("firm") or wanted.get("firm")} if "firm" in known or "firm" in wanted else {}
    return known | firm | merged


def within(smaller: Any, larger: Any) -> bool:
    """Return whether a larger schema contains a smaller one."""
    return not smaller or (not changed_names(larger, smaller) and combined_schema(larger, smaller) == larger)


def _meanings(schema: dict[str, Any]) -> dict[str, Any]:
    """Return each name's kind with its step, bound, type or NULL rule.

    The columns of an id of several may be columns as well; that they are the id is compared with the unit.
    """
    named = {role: schema[role] for role in ("unit", "firm") if schema.get(role)}
    roles = {name.casefold(): (role, name) for role, name in named.items() if not isinstance(name, list)}
    return roles | {each["name"].casefold(): (part, each) for part in PARTS for each in schema.get(part, [])}


def amount_bounds(schema: Any) -> dict[str, str]:
    """Return the bound of every measure of a schema."""
    measures = schema.get("measures", []) if isinstance(schema, dict) else []
    return {measure["name"]: measure["bound"] for measure in measures if {"name", "bound"} <= set(measure)}


# The ledger.


FORMAT, OF_SERIES = 1, 2
"""The format of a ledger, and that of a ledger of a series, which version 0.1.0 refuses."""
ADMISSION_SECONDS = 60.0
"""How long proving that the budget covers a charge may take before it is refused as undecided; most proofs take milliseconds."""
FIXED_IN_ADVANCE = "guarantee holds only if this list of queries was fixed in advance"
WITHIN_BUDGET = "the sum of all charges is at most the budget, for every possible record"
WITHIN_PURE = f"{WITHIN_BUDGET}, in pure differential privacy: epsilon at delta 0"
WITHIN_PERIOD = (
    "in each period the sum of all charges is at most the budget of the period, for every possible record; over the periods the "
    "losses of a unit add up"
)
IN_A_FILE = "kept in a file"
IN_MEMORY = "in memory only: lost when the process ends, so this release cannot be verified"
UNKEPT = (
    "this session keeps its ledger in memory only: what it spends is forgotten when it closes, and another session can spend the "
    "same budget again. Pass ledger='FILE' to keep it."
)
CHARGE_STANDS = "The charge stands and nothing was published."
ONE_SERIES = "A ledger belongs to one series: name the series as before, or give the ledger of this series."
ONE_BUDGET = "Nothing was spent: a period has one budget. Name the period as before."
ONE_DATASET = "A ledger belongs to one dataset: name it as before, or give the ledger of this dataset."
ONE_MEANING = (
    "Names of a schema that were charged keep their meaning. Declare them as before, or give what changed another name."
)
AMEND = (
    "Nothing was spent: a budget is a promise. State it as before, or change it in public, which every later release says: "
    "recordwise ledger amend PLAN --reason TEXT."
)
MOVE_TABLES = (
    "Nothing was spent. Move that folder elsewhere, and the ledger it belongs to, or restore that ledger and finish its release "
    "by --resume."
)
LONGEST_REASON = 500
ONE_TIER = (
    "Nothing was drawn. A tier is made once, with all its tables: those who see several lose more than each of them says. Finish "
    "that one by --resume, or publish other tables by a plan of their own."
)
FOLLOWED = "Nothing was spent. Finish that release (--resume), or publish this one with fresh noise."
DECLARE = (
    "Nothing was spent: carry and staying of [series] are part of the budget, declared before the first charge. State them as "
    "before, or begin another series with a ledger of its own."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerStatement:
    """What a release says about its ledger: guarantee, budget and storage."""

    guarantee: str
    budget: Any
    """The budget, as the ledger states it; None without one."""
    bands: Any = None
    """The band tables that the budget names; None without any."""
    storage: str


class Ledger:
    """The budget of one dataset, or of one period of a series.

    Without a path it is in memory and lost when the process ends. With the reason for an ``amendment`` the budget replaces the one
    that was promised.
    """

    def __init__(
        self,
        path: str | Path | None,
        *,
        dataset: str,
        schema: Any = None,
        budget: Policy | None = None,
        series: Series | None = None,
        reserve: int = 0,
        amendment: str | None = None,
    ) -> None:
        self.budget = budget
        self.series = series
        self.reserve = reserve
        """For how many revisions the first release of a period keeps a reserve."""
        self.period = None if series is None else series.period
        self._summed: tuple[str, Policy] | None = None
        self._chain = Chain(path, writable=True)
        self._bands = NotedBands(self._chain)
        self._identity = {
            "format": FORMAT if series is None else OF_SERIES,
            "dataset": dataset,
            "schema": schema,
            "budget": None if budget is None else budget.to_json(),
            "guarantee": _guarantee(budget, series),
            **bands_of_budget(budget, series),
        }
        if series is not None:
            self._identity |= {"series": series.name, "period": series.period, "declared": series.budgets_json()}
        try:
            with self._chain.transaction():
                self._chain.lay_out()
                if amendment is not None:
                    self._amend(schema, amendment)
                self._use_recorded_budget()
                terms = self._terms(schema)
                self._state_amendments(terms)
                if self._chain.first() is None:
                    self._chain.append("opened", terms)
            self._chain.settle()
        except BaseException:
            self._chain.close()
            raise

    @classmethod
    def existing(cls, path: str | Path) -> "Ledger":
        """Open an existing ledger to read or verify it; nothing is written."""
        if not Path(path).is_file():
            raise LedgerError(path=str(path), problem="does not exist")
        ledger = cls.__new__(cls)
        ledger._summed = None
        ledger._chain = Chain(path, writable=False)
        ledger._bands = NotedBands(ledger._chain)
        first = None
        if "events" in ledger._chain.tables():
            ledger._chain.check_layout()
            first = ledger._chain.first()
        opened = ledger._chain.last("opened") if first is not None and first.kind == "opened" else None
        if opened is None:
            raise LedgerError(path=str(path), problem="is not a recordwise ledger")
        check_format(opened.body)
        budget = opened.body.get("budget")
        ledger.budget = None if budget is None else Policy.from_json(budget, band_tables_in([opened]))
        ledger.series, ledger.period, ledger.reserve = None, opened.body.get("period"), 0
        return ledger

    @property
    def path(self) -> str:
        """The path of the file, or "in memory"."""
        return self._chain.path

    @property
    def on_disk(self) -> bool:
        """Whether it is kept in a file."""
        return self._chain.on_disk

    @property
    def real_path(self) -> str:
        """The path that links resolve to; empty in memory."""
        return self._chain.real_path

    def statement(self) -> LedgerStatement:
        """Return what a release says about the ledger that was charged."""
        return LedgerStatement(
            guarantee=str(self._identity["guarantee"]),
            budget=self._identity["budget"],
            bands=self._identity.get("budget_bands"),
            storage=IN_A_FILE if self.on_disk else IN_MEMORY,
        )

    def _latest_terms(self) -> Event | None:
        """The latest terms of the period."""
        return self._chain.event(self._chain.event_index().opened.get(self.period))

    def _latest_charge(self) -> Event | None:
        """The latest charge of the period, which states its running sum."""
        last = self._chain.last("charged")
        if last is None or last.body.get("period") == self.period:
            return last
        return self._chain.event(self._chain.event_index().charged.get(self.period))

    def _use_recorded_budget(self) -> None:
        """Keep the ledger's opening budget if this version computes another."""
        known = self._latest_terms()
        if self.budget is None or known is None or self._latest_charge() is None:
            return
        check_format(known.body)
        bands = band_tables_in([known])
        kept = Policy.from_json(known.body["budget"], bands) if known.body.get("budget") else self.budget
        if kept != self.budget and restates(kept, self.budget):
            self.budget = kept
            self._identity |= {"budget": kept.to_json(), **bands_of_budget(kept, self.series)}

    def _terms(self, schema: Any) -> dict[str, Any]:
        """Return the terms to charge; raise if something has other terms.

        Dataset, budget and schema. Only a charge is binding.
        """
        wanted: dict[str, Any] = json.loads(canonical(self._identity | {"schema": schema}))
        known = self._latest_terms()
        if known is not None:
            check_format(known.body)
        self._check_series()
        if self._latest_charge() is None:
            return wanted
        if known is None:
            raise LedgerError(path=self.path, problem="is damaged: its first entry is missing", advice=ADVICE)
        for field, advice in (("dataset", ONE_DATASET), ("budget", AMEND)):
            if known.body.get(field) != wanted[field]:
                raise LedgerError(path=self.path, problem=f"was opened for another {field}", advice=advice)
        if names := changed_names(known.body.get("schema"), wanted["schema"]):
            problem = f"was opened for another schema: {', '.join(names)} had a different meaning"
            raise LedgerError(path=self.path, problem=problem, advice=ONE_MEANING)
        return known.body | {"schema": combined_schema(known.body.get("schema"), wanted["schema"])}

    def _check_series(self) -> None:
        """Refuse another series' ledger, and a period with an earlier budget."""
        if self._chain.last("charged") is None:
            return
        places = self._chain.event_index()
        named = [place for period, place in places.opened.items() if period is not None and period in places.charged]
        if self.series is None and named:
            raise LedgerError(
                path=self.path, problem="is the ledger of a series", advice="State the series and the period: [series]."
            )
        first = self._chain.event(min(named)) if named else None
        if self.series is not None and first is not None and series_of(first.body) != self.series.name:
            raise LedgerError(path=self.path, problem="is the ledger of another series", advice=ONE_SERIES)
        if self.series is not None and first is not None:
            self._check_continuity(first.body)
        if self.series is not None and self.series.period not in places.charged:
            unnamed = self._chain.event(places.opened.get(None))
            before = None if unnamed is None else str(unnamed.body.get("dataset"))
            own = str(self._identity["dataset"])
            if problem := period_problem(self.series.period, places.charged, before=before, dataset=own):
                raise LedgerError(path=self.path, problem=problem, advice=ONE_BUDGET)

    def _check_continuity(self, known: Mapping[str, Any]) -> None:
        """Refuse another part of carried noise, or another budget of those who stay, than was declared (T-SERIES)."""
        wanted = json.loads(canonical({} if self.series is None else self.series.continuity_json()))
        declared = known.get("declared") or {}
        if wanted and wanted != {name: declared[name] for name in CONTINUITY if name in declared}:
            problem = "was opened for another carry, or another budget of units that stay"
            raise LedgerError(path=self.path, problem=problem, advice=DECLARE)

    def _bind(self, schema: Any, *, reserves: bool = False) -> None:
        """Record the terms, in a transaction, unless the ledger states them."""
        terms, known = self._terms(schema), self._latest_terms()
        latest = self._chain.last("opened")
        if reserves or (latest is not None and latest.body.get("format") == WITH_RESERVES):
            terms = terms | {"format": WITH_RESERVES}
        if known is None or known.body != terms:
            self._chain.append("opened", terms)

    def _amend(self, schema: Any, reason: str) -> None:
        """Replace the budget of the period, in a transaction, by terms that state the old one (T-AMEND)."""
        if not reason.strip() or not reason.isprintable() or len(reason) > LONGEST_REASON:
            raise ParameterError(parameter="reason", problem=f"must be a line of at most {LONGEST_REASON} letters")
        known, wanted = self._latest_terms(), self._identity
        if known is None or self._latest_charge() is None:
            problem = "has no charge yet" if self.period is None else f"has no charge for {self.period} yet"
            raise LedgerError(
                path=self.path, problem=problem, advice="Nothing is to be amended: state the budget in the plan."
            )
        check_format(known.body)
        if self.budget is None or known.body.get("budget") == wanted["budget"]:
            problem = "would lose its budget" if self.budget is None else "has this budget already"
            raise LedgerError(path=self.path, problem=problem, advice="Nothing was amended. State a new budget.")
        self._check_continuity(known.body)
        self._admit(self.spent(), Policy(), "what was charged and reserved", bounds_of=known.body.get("schema") or {})
        events = self._chain.events()
        charges = sum(event.kind == "charged" and event.body.get("period") == self.period for event in events)
        entry = {"budget": known.body.get("budget"), "until": _today(), "releases": charges, "reason": reason.strip()}
        amended = {"amendments": [*known.body.get("amendments", ()), entry]}
        changed = ("budget", "budget_bands", "declared", "guarantee")
        stated = {name: wanted[name] for name in changed if name in wanted}
        terms = {name: value for name, value in known.body.items() if name not in changed} | stated | amended
        told = Amendment.all_in(terms, self._bands.tables())
        terms["guarantee"] = f"{wanted['guarantee']}; {amendments_text(told, self.budget)}"
        places = self._chain.event_index()
        others = [
            place for period, place in places.opened.items() if period in places.charged and period != self.period
        ]
        again = [event.body for place in sorted(others) if (event := self._chain.event(place)) is not None]
        for each in (*again, terms):
            if each is terms or SERIES_NAME not in each:
                self._chain.append("opened", only_for_later_versions(each))

    def _state_amendments(self, terms: dict[str, Any]) -> None:
        """Let later releases say what was promised before."""
        if "amendments" in terms:
            self._identity |= {"guarantee": terms["guarantee"], "amendments": terms["amendments"]}

    def amendments(self) -> tuple[Amendment, ...]:
        """The budgets of the period that were promised before, oldest first."""
        known = self._latest_terms()
        return () if known is None else Amendment.all_in(known.body, self._bands.tables())

    def reserved(self, *, revising: str | None = None) -> Policy:
        """What is kept for revisions of the period, next to the one that a revision of the named query uses."""
        taken = None if revising is None else self._taken(revising)
        return self._kept({each: left - (each == taken) for each, left in self._unused().items()})

    def _unused(self) -> dict[int, int]:
        return unused_reserves(self._chain.rare(RESERVED), self._chain.event_index().used, self.period)

    def _taken(self, query: str) -> int | None:
        """Return the reserve that a revision uses: that of the same query, or the oldest if no such query made one."""
        unused, made = self._unused(), dict[int, str]()
        for each in self._chain.rare(RESERVED):
            charged = self._chain.event(each.body["reserved_by"])
            if each.body.get("period") == self.period and charged is not None:
                made[each.sequence] = str(charged.body["query"])
        own = [sequence for sequence, name in made.items() if name == query]
        return min((each for each in own or unused if each in unused), default=None)

    def _kept(self, unused: Mapping[int, int]) -> Policy:
        return sum_of_reserves(self._chain.rare(RESERVED), unused, self._bands.tables()) if unused else Policy()

    def _is_revision(self, release: Identity | None) -> bool:
        """Return whether a charge may use a reserve: a revision, or the same release again outside a series."""
        if self.series is not None:
            return self.series.revision > 0
        return release is not None and self.charge_of(release) is not None

    def charge(
        self,
        policy: Policy,
        *,
        query: str,
        details: Any = None,
        schema: Any = None,
        release: Identity | None = None,
        refuse_repeat: bool = False,
        refines: int | None = None,
        step: Step | None = None,
        tier_of: int | None = None,
        locks: ExitStack | None = None,
    ) -> Charge:
        """Commit a charge if the budget covers it for every possible record; otherwise nothing is written.

        ``schema`` is the part of the ledger's schema that the charge is stated in, if not all of it; ``release`` what will be
        released, and ``refuse_repeat`` refuses one that was charged before; ``refines`` the charge whose answers are refined;
        ``step`` what a unit pays by its records before and now (T-SERIES); ``tier_of`` the charge whose answers a public tier is
        made from, whose policy is stated and nothing charged (T-TIER); ``locks`` keeps the lock of whoever draws it.
        """
        told, policy = policy, policy if tier_of is None else Policy()
        # A long check or proof runs before the file is locked, and again only if another charge was made in the meantime.
        self._chain.check_chain()
        known = self.spent(), self.reserved(), self._is_revision(release)
        after = self._admit(known[0], policy, query, revision=known[2])
        with self._chain.transaction(state="Nothing was drawn; unless this charge was committed, nothing was spent."):
            if refuse_repeat and release is not None and self.charge_of(release) is not None:
                raise self.already(release)
            self.check_step(step, query=query)
            self.check_tier(tier_of)
            now = self.spent(), self.reserved(), self._is_revision(release)
            if now != known:
                after = self._admit(now[0], policy, query, revision=now[2])
            revisions = 0 if now[2] or self.budget is None or tier_of is not None else self.reserve
            stated = self._identity["schema"] if schema is None else schema
            self._bind(stated, reserves=revisions > 0)
            body = {"query": query, "policy": policy.to_json(), "spent": after.to_json(), "details": details}
            body |= {"schema": stated, **self._bands.new(told)} | (
                {} if release is None else {"release": release.digest}
            )
            if self.series is not None:
                body |= {"period": self.series.period, "revision": self.series.revision}
            body |= {} if refines is None else {"refines": refines}
            body |= {} if step is None else {"step": step.to_json()}
            body |= {} if tier_of is None else {"tier": {"of": tier_of, "policy": told.to_json()}}
            if now[2] and tier_of is None and (taken := self._taken(query)) is not None:
                body["uses"] = taken
            event = self._chain.append("charged", body)
            self._refuse_left_tables(event)
            if revisions:
                self._chain.append(RESERVED, reserve_body(event, revisions))
            if locks is not None and self.on_disk:
                locks.enter_context(drawing(self.real_path, event.sequence))
        self._summed = (event.digest, after)
        return as_charge(event)

    def _refuse_left_tables(self, event: Event) -> None:
        """Refuse a charge, in its transaction, whose tables another ledger left."""
        place = tables_of(self.real_path, event.sequence)
        if self.on_disk and os.path.lexists(place):
            raise LedgerError(
                path=self.path,
                problem=f"has {place.name} next to it, where another ledger of this name left the tables of a release",
                advice=MOVE_TABLES,
            )

    def charge_of(self, release: Identity) -> Charge | None:
        """The latest charge for a release, whichever version wrote it."""
        return latest_of(release, self._chain)

    def closing(self, charge: Charge) -> Event | None:
        """Return the event that closed a charge; None while open."""
        return self._chain.event(self._chain.event_index().closed.get(charge.sequence))

    def already(self, release: Identity) -> AlreadyReleasedError:
        """The refusal of what was charged before, with what became of it."""
        charge = self.charge_of(release)
        assert charge is not None
        state = state_of(charge, self._chain)
        return AlreadyReleasedError(ledger=self.path, charge=charge.sequence, date=charge.time[:10], state=state)

    @contextmanager
    def charging(
        self,
        policy: Policy,
        *,
        query: str,
        details: Any,
        schema: Any,
        release: Identity | None = None,
        refuse_repeat: bool = False,
        refines: int | None = None,
        step: Step | None = None,
        tier_of: int | None = None,
    ) -> Iterator[Charge]:
        """Charge, then let the caller draw.

        The budget is spent from here on; a failure is noted if the file still accepts it. Of exceptions that are not
        ours only the type is passed on: their text may quote records.
        """
        with ExitStack() as locks:
            terms: dict[str, Any] = {"query": query, "details": details, "schema": schema, "release": release}
            terms |= {"refuse_repeat": refuse_repeat, "refines": refines, "step": step, "tier_of": tier_of}
            charge = self.charge(policy, **terms, locks=locks)
            kept = tables_of(self.real_path, charge.sequence) if self.on_disk else None
            try:
                yield charge
            except BaseException as error:
                # Drawn tables that are on the disk can be finished: their charge led to something.
                if kept is None or not kept.is_dir():
                    with suppress(LedgerError):
                        self.record_failure(charge, kind=type(error).__name__)
                if isinstance(error, Exception) and not isinstance(error, RecordwiseError):
                    raise DrawingError(kind=type(error).__name__) from None
                raise

    def check_tier(self, of: int | None) -> None:
        """Refuse a second public tier of a charge: readers of several lose more than each of them says."""
        for event in self._chain.events() if of is not None else ():
            if event.kind == "charged" and event.body.get("tier", {}).get("of") == of:
                state = state_of(as_charge(event), self._chain)
                if state != WASTED:
                    problem = f"has a public tier of charge {of} already (entry {event.sequence}): {state}"
                    raise LedgerError(path=self.path, problem=problem, advice=ONE_TIER)

    def check_step(self, step: Step | None, *, query: str) -> None:
        """Refuse a draw that follows a release a second time, or that costs those who stay more than was declared."""
        if step is None:
            return
        assert self.series is not None
        drawn, lost = stepped(self._chain.events())
        if step.kind == CARRY and any(
            each["step"]["kind"] == CARRY and paid_by(drawn, each["step"]) == paid_by(drawn, step.to_json())
            for sequence, each in drawn.items()
            if sequence not in lost
        ):
            problem = f"has a charge that carries the noise of charge {step.follows} already, and leaving was paid once"
            raise LedgerError(path=self.path, problem=problem, advice=FOLLOWED)
        if step.kind == START:
            return
        known = (self.series.period, self.series.revision)
        same = [each for each in drawn.values() if (each["period"], each["revision"]) == known]
        after = sum((Step.from_json(each["step"]).staying() for each in same), step.staying())
        staying = Policy() if self.series.staying is None else self.series.staying
        bounds = amount_bounds(self._terms(self._identity["schema"])["schema"])
        verdict = staying.dominates(after, bounds=bounds, seconds=ADMISSION_SECONDS)
        if not verdict:
            raise ParameterError(
                parameter="staying",
                problem=f"does not cover what units that stay in their cells pay for {query}",
                advice=f"Nothing was spent. The series must declare, before its first charge: {staying_lines(after)}",
            )

    def check(
        self,
        policy: Policy,
        *,
        query: str,
        release: Identity | None = None,
        reserve: int | None = None,
        named: str | None = None,
    ) -> None:
        """Raise what ``charge`` would raise, and write nothing.

        ``named`` is the query of the charge, where a refusal shall call it otherwise.
        """
        self._chain.check_chain()
        self._terms(self._identity["schema"])
        revision = self._is_revision(release)
        self._admit(self.spent(), policy, query, revision=revision, reserve=reserve, named=named)

    def _admit(
        self,
        spent: Policy,
        policy: Policy,
        query: str,
        *,
        revision: bool = False,
        reserve: int | None = None,
        bounds_of: Any = None,
        named: str | None = None,
    ) -> Policy:
        """Return the new sum of charges, if the budget covers it next to all reserves (T-RESERVE).

        A revision may use a reserve; any other release makes one, if the ledger is asked to.
        """
        if self.budget is None:
            return spent + policy
        unused, taken = self._unused(), self._taken(named or query) if revision else None
        kept = self._kept({each: left - (each == taken) for each, left in unused.items()})
        reserve = self.reserve if reserve is None else reserve
        charged, policy = spent + policy, policy if revision else policy * (1 + reserve)
        after = spent + kept + policy
        schema = bounds_of if bounds_of is not None else self._terms(self._identity["schema"])["schema"]
        verdict = self.budget.dominates(after, bounds=amount_bounds(schema), seconds=ADMISSION_SECONDS)
        if verdict:
            return charged
        if verdict.witness is None:
            raise BudgetError(query=query, witness=None, needed=math.nan, left=math.nan, reason=verdict.reason)
        from recordwise.policy.dominance.prove import complete_witness, witness_words

        part = {"delta": "delta", "epsilon": "pure epsilon"}.get(verdict.subject, "loss")
        witness = complete_witness(verdict.witness, self.budget, after)
        held, needed = (_loss_or_delta(each.in_unit_of(self.budget), part, witness) for each in (spent + kept, policy))
        left = _loss_or_delta(self.budget, part, witness) - held
        left = max(0.0, left) if left == left else 0.0
        record = witness_words(witness, verdict.witness, self.budget, after)
        raise BudgetError(query=query, witness=witness, needed=needed, left=left, reason=part, record=record)

    def record_release(
        self, charge: Charge, *, digest: str, privacy_label: str, facts: Mapping[str, Any] | None = None
    ) -> Head:
        """Record that a charge led to a release with this digest; ``facts`` has that of what it says about itself."""
        body = {"charge": charge.sequence, "digest": digest, "mark": privacy_label}
        return self._close(charge, "released", body if facts is None else {**body, "facts": facts})

    def record_failure(self, charge: Charge, *, kind: str) -> Head:
        """Record that a charge led to nothing; it stays spent."""
        return self._close(charge, "failed", {"charge": charge.sequence, "kind": kind})

    def _close(self, charge: Charge, kind: str, body: dict[str, Any]) -> Head:
        with self._chain.transaction(state=CHARGE_STANDS):
            # An interrupt can come after the release was recorded; a charge is closed only once.
            since = self._chain.events(after=charge.sequence)
            closings = (event for event in since if event.body.get("charge") == charge.sequence)
            event = next(closings, None) or self._chain.append(kind, body)
        return Head(length=event.sequence, digest=event.digest)

    def look(self, command: str, *, plan: str | None = None) -> None:
        """Record a look before it happens, since it may tune releases."""
        with self._chain.transaction(state="Nothing was viewed."):
            self._bind(self._identity["schema"])
            self._chain.append(LOOKED, look_body(command, plan))

    def looks(self, *, before: int | None = None) -> dict[str, int]:
        """Return how often confidential records were viewed, by command."""
        return count_looks(each for each in self._chain.rare(*KINDS) if before is None or each.sequence < before)

    def settle(self) -> None:
        """Make the file complete without its log, to copy it while open."""
        self._chain.settle()

    def spent(self) -> Policy:
        """The sum of everything charged, in this period of a series."""
        last = self._latest_charge()
        if last is None:
            return Policy()
        if self._summed is None or self._summed[0] != last.digest:
            self._summed = (last.digest, Policy.from_json(last.body["spent"], self._bands.tables()))
        return self._summed[1]

    def spent_by_period(self) -> dict[str, Policy]:
        """Return the sum of charges by period, or else by dataset."""
        return {each.name: each.spent for each in periods_of(self.history())}

    def history(self) -> list[Event]:
        """Every event, oldest first."""
        return self._chain.events()

    def problems(self) -> list[str]:
        """Return problems of the file or its chain."""
        return self._chain.problems()

    def close(self) -> None:
        self._chain.close()


def stepped(events: Sequence[Event]) -> tuple[dict[int, dict[str, Any]], set[int]]:
    """Return the charges of a series that follow one another or begin it, by number, and those that failed."""
    lost = {int(each.body["charge"]) for each in events if each.kind == "failed"}
    return {each.sequence: each.body for each in events if each.kind == "charged" and "step" in each.body}, lost


def paid_by(drawn: Mapping[int, Mapping[str, Any]], step: Mapping[str, Any]) -> int | None:
    """Return the charge that paid in advance for leaving; corrections of a period share what it paid."""
    place: int | None = step.get("follows")
    while place is not None and place in drawn and drawn[place]["step"]["kind"] == REVISE:
        place = drawn[place]["step"].get("follows")
    return place


def staying_lines(needed: Policy) -> str:
    """Return the lines of a plan that declare a budget of those who stay: constants, and Gaussian sums of measures."""
    from recordwise.policy.atoms import Square

    constants, measures = Fraction(0), dict[str, Fraction]()
    for (_, atom), coefficient in needed.rho.items():
        if isinstance(atom, Square):
            measures[atom.measure.name] = measures.get(atom.measure.name, Fraction(0)) + coefficient
        else:
            constants += coefficient
    lines = [f"{{ rho = {_digits_up(constants)} }}"] if constants else []
    lines += [
        f'{{ measure = "{name}", mechanism = {{ kind = "Gaussian", rho = {_digits_up(each * 10_000)}, at = 100 }} }}'
        for name, each in sorted(measures.items())
    ]
    return f"staying = [{', '.join(lines)}]"


def _digits_up(value: Fraction) -> str:
    """Return a number of six digits, not below."""
    return f"{Context(prec=6, rounding=ROUND_UP).divide(Decimal(value.numerator), Decimal(value.denominator)):f}"


def _guarantee(budget: Policy | None, series: Series | None) -> str:
    if budget is None:
        return FIXED_IN_ADVANCE
    if series is None:
        return WITHIN_PURE if budget.is_pure else WITHIN_BUDGET
    return f"{WITHIN_PERIOD}; all of it in pure differential privacy" if budget.is_pure else WITHIN_PERIOD


def check_format(opened: dict[str, Any]) -> None:
    """Refuse a ledger format that this version does not know."""
    if opened.get("format") not in (FORMAT, OF_SERIES, WITH_RESERVES):
        raise UnknownFormError(what="ledger format", found=opened.get("format"))


def _loss_or_delta(policy: Policy, part: str, record: dict[str, Any]) -> float:
    """Return a record's loss or delta; infinite without a guarantee."""
    try:
        return float(policy.delta(record) if part == "delta" else policy.loss(record))
    except RecordError:
        return math.inf


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
