"""The periods of a ledger: cost, budget and when it was declared."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recordwise.ledger.chain import Chain, Event
from recordwise.policy.bands import BandTable
from recordwise.policy.json import Bands, bands_from_json
from recordwise.policy.policy import Policy
from recordwise.policy.series import Series, declared_budget, period_length

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


AT_THE_START = "declared at the start of the series"
DIGITS = str.maketrans("OIL", "011")
ONE_PERIOD = "declared with the ledger"


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

    def declared_text(self) -> str:
        """When the budget was declared."""
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
    names = [event.body.get("series") for event in events if event.kind == "opened"]
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
    terms: Mapping[str, Any] = {} if opened is None else opened.body
    form = terms.get("budget")
    budget = None if form is None else Policy.from_json(form, bands)
    return PeriodState(
        name=str(terms.get("dataset", "")) if period is None else period,
        spent=Policy.from_json(charges[-1].body["spent"], bands),
        budget=budget,
        charges=len(charges),
        declared="" if opened is None else opened.time[:10],
        at_start=budget is not None and (period is None or _from_the_start(start, period, budget, bands)),
    )


def _from_the_start(start: Event | None, period: str, budget: Policy, bands: Bands) -> bool:
    """Return whether the series' first terms stated this period's budget."""
    declared = {} if start is None else start.body.get("declared") or {}
    return declared_budget(declared, period, bands) == budget
