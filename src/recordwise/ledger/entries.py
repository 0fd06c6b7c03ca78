"""What the entries of a ledger say: charges, looks, bands and periods."""

import fcntl
import os
import re
import time
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from recordwise.errors import DRAWING, RELEASED, UNFINISHED, WASTED, LedgerError, ParameterError
from recordwise.ledger.chain import Chain, Event
from recordwise.policy.bands import BandTable
from recordwise.policy.json import Bands, bands_from_json
from recordwise.policy.policy import Policy
from recordwise.policy.series import Head, Series, Step, declared_budget, period_length

# What lies next to a ledger for one of its charges: a lock while its noise is drawn, and the drawn tables until they
# are published. The lock is held from before the charge is committed until the charge is closed or its tables are
# kept. The system frees it when the process ends, however it ends, so that whoever finds an open charge can tell a
# draw that is under way from one that was lost.


DRAWING_SUFFIX, UNFINISHED_SUFFIX = ".drawing-", ".unfinished-"
_held: set[int] = set()
LONGEST_LOOK = 10.0
"""Seconds for which a look may hold the lock of a charge that is about to be made."""


def tables_of(ledger: str, charge: int) -> Path:
    """Return the folder of a charge's drawn tables."""
    return Path(f"{ledger}{UNFINISHED_SUFFIX}{charge}")


@contextmanager
def drawing(ledger: str, charge: int) -> Iterator[None]:
    """Hold the lock of a charge; enter before committing it."""
    place = _lock_of(ledger, charge)
    try:
        handle = _locked(place)
    except BlockingIOError:
        raise LedgerError(
            path=ledger,
            problem=f"has no charge {charge} yet, but another process draws its noise",
            advice="Was the ledger replaced by a copy? End that process first. Nothing was spent.",
        ) from None
    _held.add(handle)
    try:
        yield
    finally:
        # A child that was forked in the meantime has let go, and the lock is not its own to remove.
        if handle in _held:
            _held.remove(handle)
            with suppress(OSError):
                os.unlink(place)
            os.close(handle)
            remove_dead(ledger)


def _locked(place: Path) -> int:
    """Return a locked file under this name: whoever found it between making and locking took it for a dead one."""
    last = time.monotonic() + LONGEST_LOOK
    while True:
        handle = os.open(place, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), os.stat(place)):
                return handle
        except FileNotFoundError:
            pass
        except BlockingIOError:
            # Those who only look let go at once; whoever holds it longer draws for another ledger of this name.
            if time.monotonic() > last:
                os.close(handle)
                raise
            time.sleep(0.001)
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def is_drawn_now(ledger: str, charge: int) -> bool:
    """Return whether a living process or thread holds a charge's lock."""
    place = _lock_of(ledger, charge)
    try:
        handle = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        # It is there, and whether it is held cannot be seen.
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        with suppress(OSError):
            # Only who holds it alone removes it, and only while the name is still that of this file.
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), os.stat(place)):
                os.unlink(place)
        return False
    except OSError:
        return True
    finally:
        os.close(handle)


def remove_dead(ledger: str) -> None:
    """Remove the locks of processes that were killed."""
    folder, name = os.path.split(ledger)
    pattern = re.compile(rf"{re.escape(name + DRAWING_SUFFIX)}(\d+)")
    with suppress(OSError):
        for found in filter(None, map(pattern.fullmatch, os.listdir(folder))):
            is_drawn_now(ledger, int(found[1]))


def _lock_of(ledger: str, charge: int) -> Path:
    return Path(f"{ledger}{DRAWING_SUFFIX}{charge}")


def _let_go() -> None:
    """Release the parent's locks in a forked child, which would outlive it."""
    while _held:
        os.close(_held.pop())


os.register_at_fork(after_in_child=_let_go)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A charge that has been committed."""

    sequence: int
    head: Head
    time: str = ""


class Identity(Protocol):
    """What a release is about."""

    @property
    def digest(self) -> str:
        """Its digest, which charges of this version state."""

    def matches_charge(self, charge: Mapping[str, Any]) -> bool:
        """Return whether a charge is for this release."""


def as_charge(event: Event) -> Charge:
    """A committed charge out of its event."""
    return Charge(sequence=event.sequence, head=Head(length=event.sequence, digest=event.digest), time=event.time)


def latest_of(release: Identity, chain: Chain) -> Charge | None:
    """Return the latest charge for a release, also of earlier versions."""
    known = chain.event_index().releases
    if release.digest in known:
        event = chain.event(known[release.digest])
        return None if event is None else as_charge(event)
    for sequence in sorted((place for digest, place in known.items() if ":" not in digest), reverse=True):
        event = chain.event(sequence)
        if event is not None and release.matches_charge(event.body):
            return as_charge(event)
    return None


def state_of(charge: Charge, chain: Chain) -> str:
    """Return what became of a charge."""
    drawn_now = chain.on_disk and is_drawn_now(chain.real_path, charge.sequence)
    closed = chain.event(chain.event_index().closed.get(charge.sequence))
    if drawn_now and closed is None:
        return DRAWING
    if chain.on_disk and tables_of(chain.real_path, charge.sequence).is_dir():
        return UNFINISHED
    return WASTED if closed is None or closed.kind == "failed" else RELEASED


# Looks at confidential records, by command and plan, in a ledger.


LOOKED, PREFLIGHT = "looked", "preflight"
KINDS = (LOOKED, PREFLIGHT)
"""The events that are looks; the second is only in ledgers of earlier versions."""
COMMANDS = (
    "init --look",
    "preflight",
    "rehearse",
    "explain",
    "studio",
    *(f"plan {each}" for each in ("compare", "sweep", "fitness", "allocate", "recommend", "frontier", "evaluate")),
    *(f"owner.{each}" for each in ("view", "unmatched", "history_losses", "loss_summary", "firm_loss_summary")),
    "owner.realized_loss_summary",
)
"""What a look may be called; nothing else is written, so that no name can tell what was seen."""
UNSTATED = "not stated"
"""The looks that an earlier version noted, which did not say what they were and counted as one."""


def look_body(command: str, plan: str | None) -> dict[str, str]:
    """What the ledger says about a look."""
    if command not in COMMANDS:
        raise ParameterError(parameter="command", problem="is not one that looks at records")
    return {"command": command} if plan is None else {"command": command, "plan": plan}


def count_looks(events: Iterable[Event]) -> dict[str, int]:
    """Count the looks among events, by command, in order of first look."""
    found: dict[str, int] = {}
    for event in events:
        if event.kind in KINDS:
            command = PREFLIGHT if event.kind == PREFLIGHT else str(event.body.get("command", UNSTATED))
            found[command] = found.get(command, 0) + 1
    return found


def looks_text(looks: Mapping[str, int]) -> str:
    """``3 looks: preflight 2, plan evaluate 1``; empty where there is none."""
    number = sum(looks.values())
    listed = ", ".join(f"{command} {count}" for command, count in looks.items())
    return f"{number:,} look{'' if number == 1 else 's'}: {listed}" if looks else ""


def wrong_looks(events: Iterable[Event]) -> list[str]:
    """Return looks that state more than a command and plan digest."""
    return [
        f"event {event.sequence} says more about a look than its command and its plan"
        for event in events
        if event.kind in KINDS and not _says_no_more(event.body)
    ]


def _says_no_more(body: Mapping[str, Any]) -> bool:
    command, plan = body.get("command", ""), body.get("plan", "0" * 64)
    short = isinstance(command, str) and re.fullmatch(r"[a-z_. -]{0,40}", command) is not None
    digest = isinstance(plan, str) and re.fullmatch(r"(2:)?[0-9a-f]{64}", plan) is not None
    return set(body) <= {"command", "plan"} and short and digest


def enter_first_look(path: Path, opened: Mapping[str, Any], command: str) -> None:
    """Note a look before there is a plan, in its future ledger."""
    chain = Chain(path, writable=True)
    try:
        with chain.transaction(state="Nothing was viewed."):
            chain.lay_out()
            if chain.first() is None:
                chain.append("opened", dict(opened))
            chain.append(LOOKED, look_body(command, None))
        chain.settle()
    finally:
        chain.close()


# The band tables of sized noise (T-SIZE) in a ledger: each is noted with the terms or with the first charge that
# names it.


def band_tables_in(events: Iterable[Event]) -> dict[str, BandTable]:
    """Return the band tables of budgets and charges in events."""
    forms = [form for event in events for name in ("budget_bands", "bands") for form in event.body.get(name) or ()]
    return dict(bands_from_json(forms))


def band_forms(policies: Iterable[Policy | None], known: Iterable[str] = ()) -> list[Any]:
    """Return the saved band tables of policies, except known digests."""
    tables = {digest: each for policy in policies if policy is not None for digest, each in policy.bands().items()}
    return [table.to_json() for digest, table in tables.items() if digest not in set(known)]


def bands_of_budget(budget: Policy | None, series: Series | None) -> dict[str, Any]:
    """Return the band tables that declared budgets name (T-SIZE)."""
    declared = () if series is None else (series.every_period, *series.more.values())
    forms = band_forms((budget, *declared))
    return {"budget_bands": forms} if forms else {}


class NotedBands:
    """The band tables that a chain notes; an event is read once."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._read: dict[str, dict[str, BandTable]] = {}

    def tables(self) -> dict[str, BandTable]:
        """All of them, by their digests."""
        found: dict[str, BandTable] = {}
        # By the digest of the event, because a number is given again after a transaction that failed.
        for sequence, digest in self._chain.event_index().banded:
            if digest not in self._read:
                event = self._chain.event(sequence)
                self._read[digest] = {} if event is None else band_tables_in([event])
            found |= self._read[digest]
        return found

    def new(self, policy: Policy) -> dict[str, Any]:
        """Return the part of a charge that notes newly named tables."""
        forms = band_forms([policy], self.tables())
        return {"bands": forms} if forms else {}


# Reserves: what a charge keeps for its own revisions, and no other release may use (T-RESERVE). A revision uses up one of
# them, whatever it costs; what remains of a reserve that was not needed in full is free again.


RESERVED = "reserved"
WITH_RESERVES = 3
"""The format of a ledger with reserves or amendments, which earlier versions refuse."""


def reserve_body(charge: Event, revisions: int) -> dict[str, Any]:
    """What the ledger says about a reserve for some revisions."""
    period = {"period": charge.body["period"]} if "period" in charge.body else {}
    return {"reserved_by": charge.sequence, "revisions": revisions, "policy": charge.body["policy"], **period}


def unused_reserves(events: Iterable[Event], used: Mapping[int, int], period: str | None) -> dict[int, int]:
    """Return how many revisions each reserve of a period is still for, by the event that made it."""
    found = {
        event.sequence: int(event.body["revisions"]) - used.get(event.sequence, 0)
        for event in events
        if event.kind == RESERVED and event.body.get("period") == period
    }
    return {sequence: left for sequence, left in found.items() if left > 0}


def sum_of_reserves(events: Iterable[Event], unused: Mapping[int, int], bands: Bands) -> Policy:
    """Return what reserves keep, added up."""
    kept = [event for event in events if event.sequence in unused]
    return sum((Policy.from_json(each.body["policy"], bands) * unused[each.sequence] for each in kept), Policy())


def reserved_in(events: Sequence[Event], period: str | None, bands: Bands) -> Policy:
    """Return what a period keeps for revisions, by all events."""
    uses = [event.body["uses"] for event in events if event.kind == "charged" and "uses" in event.body]
    used = {sequence: uses.count(sequence) for sequence in uses}
    return sum_of_reserves(events, unused_reserves(events, used, period), bands)


# Amendments: the terms of a period list every budget that was promised before, until when, and why it was changed (T-AMEND).


SERIES_NAME = "series_name"
"""The name of the series in an amended ledger, where ``series`` is another text: version 0.2.0 compares that before it opens a
new period, and would state the budgets of the others as they were promised first."""


def series_of(terms: Mapping[str, Any]) -> Any:
    """Return the series that terms name; None without one."""
    return terms.get(SERIES_NAME, terms.get("series"))


def only_for_later_versions(terms: Mapping[str, Any]) -> dict[str, Any]:
    """Return terms of a period that versions without amendments refuse."""
    name = series_of(terms)
    renamed = {} if name is None else {"series": f"{name} (amended: needs version 0.3)", SERIES_NAME: name}
    return {**terms, **renamed, "format": WITH_RESERVES}


NOT_IN_ADVANCE = "this total was not fixed in advance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Amendment:
    """A budget that was promised until it was amended."""

    budget: Policy | None
    until: str
    """The day of the amendment."""
    releases: int
    """How many were charged before it."""
    reason: str

    @classmethod
    def all_in(cls, terms: Mapping[str, Any], bands: Bands) -> tuple["Amendment", ...]:
        """Read the amendments that terms state, oldest first."""
        return tuple(
            cls(
                budget=None if each["budget"] is None else Policy.from_json(each["budget"], bands),
                until=each["until"],
                releases=each["releases"],
                reason=each["reason"],
            )
            for each in terms.get("amendments", ())
        )


def amendments_text(amendments: Sequence[Amendment], budget: Policy | None) -> str:
    """Say what was promised, until when, and what is allowed since; empty where nothing was amended."""
    if not amendments:
        return ""
    later = [*(each.budget for each in amendments[1:]), budget]
    told = []
    for number, (each, then) in enumerate(zip(amendments, later)):
        count = f"{each.releases} release{'' if each.releases == 1 else 's'}"
        first = f"promised {_budget_words(each.budget)} until {each.until}; " if number == 0 else ""
        since = "since" if number == len(amendments) - 1 else f"from {each.until}"
        told.append(f"{first}{_budget_words(then)} allowed {since}, after {count} ({each.reason})")
    return f"{'; '.join(told)}; {NOT_IN_ADVANCE}"


def _budget_words(budget: Policy | None) -> str:
    from recordwise.policy.render.text import policy_lines

    return "no budget" if budget is None else " + ".join(policy_lines(budget))


# Series with carried noise or corrected records: what each draw really cost a unit, by its records before and now (T-SERIES).


def steps_of(events: Iterable[Event]) -> dict[int, Step]:
    """Return the steps of a series by their charges."""
    charged = [each for each in events if each.kind == "charged" and "step" in each.body]
    return {each.sequence: Step.from_json(each.body["step"]) for each in charged}


def unit_losses(events: Sequence[Event], history: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return what each period cost a unit, from all its records.

    Where nothing follows anything this is the policy of the period. A corrected record is under ``PERIOD/REVISION``; without it
    the record did not change.

    Args:
        events: Those of the ledger.
        history: The records of the unit, by period.
    """
    bands, steps, found = band_tables_in(events), steps_of(events), dict[str, float]()
    versions = {each.sequence: (each.body.get("period"), each.body.get("revision", 0)) for each in events}
    for event in (each for each in events if each.kind == "charged"):
        period, step = str(event.body.get("period")), steps.get(event.sequence)
        now = _record_of(history, *versions[event.sequence])
        if step is not None:
            before = None if step.follows is None else _record_of(history, *versions[step.follows])
            cost = step.loss(now, before)
        else:
            cost = 0.0 if now is None else float(Policy.from_json(event.body["policy"], bands).loss(dict(now)))
        found[period] = found.get(period, 0.0) + cost
    return found


def _record_of(history: Mapping[str, Mapping[str, Any]], period: Any, revision: int) -> Mapping[str, Any] | None:
    """Return the record of a unit in a version of a period, the latest one up to it."""
    names = [f"{period}/{each}" for each in range(revision, 0, -1)] + [str(period)]
    return next((history[name] for name in names if name in history), None)


AT_THE_START = "declared at the start of the series"
DIGITS = str.maketrans("OIL", "011")


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodState:
    """What a ledger says about one period."""

    name: str
    """The period; the dataset in a ledger without periods."""
    spent: Policy
    budget: Policy | None
    charges: int
    declared: str
    """The day on which the terms of the period were recorded."""
    at_start: bool
    """Whether the budget was declared before the first charge of the series, so that it belongs to an unconditional total."""
    reserved: Policy = field(default_factory=Policy)
    """What is kept for revisions."""
    amendments: tuple[Amendment, ...] = ()
    """The budgets that were promised before."""

    def declared_text(self) -> str:
        """When the budget was declared, and what was promised before."""
        if self.amendments:
            return amendments_text(self.amendments, self.budget)
        if self.budget is None:
            return "no budget"
        return AT_THE_START if self.at_start else f"declared on {self.declared}"


def period_problem(period: str, charged: Collection[str | None], *, before: str | None, dataset: str) -> str | None:
    """Return why a period is not a new one of a series.

    Its budget would be a second one for the same records.

    Args:
        period: The period to be charged for the first time.
        charged: The periods that were charged; None among them for what was charged without one.
        before: The dataset of what was charged without a period.
        dataset: The dataset of the period.
    """
    named = [each for each in charged if each is not None]
    if None in charged:
        own = [word for word in re.split("[^0-9A-Za-z-]+", before or "") if period_length(word)]
        if not named and (len(own) != 1 or before == dataset):
            return "was charged without periods, and its dataset has no other name that says which period that was"
        named += own
    if period in named:
        return f"was charged for {period} before its periods had names"
    for each in named:
        if (length := period_length(each)) not in (None, period_length(period)):
            return f"is charged by the {length}, and {period} has another length"
        if length is None and _may_be(each, period):
            return f"was charged for '{each}', written by an earlier version, which may be {period}"
    return None


def _may_be(text: str, period: str) -> bool:
    """Return whether an earlier version's period may overlap one of today's.

    It surely does not if it names another year, or of the same year another half, quarter, month or week by its
    number.
    """
    plain = _plain(text)
    years = re.findall("(?<![0-9])[0-9]{4}(?![0-9])", plain)
    if not plain.isascii() or len(years) != 1:
        return True
    own = re.fullmatch("-?([HQW]?)0*([0-9]+)", period[4:])
    other = re.fullmatch("[^0-9A-Z]*([HQW]?)[^0-9A-Z]*0*([0-9]{1,2})[^0-9A-Z]*", plain.replace(years[0], " "))
    apart = own is not None and other is not None and own[1] == other[1] and own[2] != other[2]
    return years[0] == period[:4] and not apart


def _plain(text: str) -> str:
    """Return a text in capital letters and common digits."""
    common = "".join(str(unicodedata.decimal(each, each)) for each in unicodedata.normalize("NFKC", text).upper())
    visible = "".join(each for each in common if unicodedata.category(each) not in ("Cf", "Cc"))
    return re.sub("(?<=[0-9])[OIL]+(?=[0-9])|(?<=[0-9])[OIL]+$", lambda found: found[0].translate(DIGITS), visible)


def series_name(events: Sequence[Event]) -> str | None:
    """The name of the series; None for a ledger without periods."""
    names = [series_of(event.body) for event in events if event.kind == "opened"]
    known = [name for name in names if name is not None]
    return str(known[-1]) if known else None


def periods_of(events: Sequence[Event]) -> tuple[PeriodState, ...]:
    """Return every charged period, in order of first charges."""
    charges: dict[str | None, list[Event]] = {}
    for event in events:
        if event.kind == "charged":
            charges.setdefault(event.body.get("period"), []).append(event)
    first = min((listed[0].sequence for listed in charges.values()), default=0)
    start = terms_before(events, first)
    bands = band_tables_in(events)
    return tuple(_state(events, period, listed, start, bands) for period, listed in charges.items())


def terms_before(events: Sequence[Event], sequence: int, *, period: Any = ...) -> Event | None:
    """Return the latest terms at an event, or a period's latest."""
    found = [
        event
        for event in events
        if event.kind == "opened"
        and event.sequence <= sequence
        and (period is ... or event.body.get("period") == period)
    ]
    return found[-1] if found else None


def _state(
    events: Sequence[Event], period: str | None, charges: list[Event], start: Event | None, bands: Bands
) -> PeriodState:
    opened = terms_before(events, charges[0].sequence, period=period)
    latest = terms_before(events, events[-1].sequence, period=period)
    terms: Mapping[str, Any] = {} if latest is None else latest.body
    form = terms.get("budget")
    amendments = Amendment.all_in(terms, bands)
    budget = None if form is None else Policy.from_json(form, bands)
    return PeriodState(
        name=str(terms.get("dataset", "")) if period is None else period,
        spent=Policy.from_json(charges[-1].body["spent"], bands),
        budget=budget,
        charges=len(charges),
        declared="" if opened is None else opened.time[:10],
        at_start=not amendments
        and budget is not None
        and (period is None or _from_the_start(start, period, budget, bands)),
        reserved=reserved_in(events, period, bands),
        amendments=amendments,
    )


def _from_the_start(start: Event | None, period: str, budget: Policy, bands: Bands) -> bool:
    """Return whether the series' first terms stated this period's budget."""
    declared = {} if start is None else start.body.get("declared") or {}
    return declared_budget(declared, period, bands) == budget
