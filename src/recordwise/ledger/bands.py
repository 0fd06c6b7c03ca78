"""The band tables of sized noise (T-SIZE) in a ledger: each is noted with the terms or with the first charge that names it."""

from collections.abc import Iterable
from typing import Any

from recordwise.ledger.chain import Chain, Event
from recordwise.policy.bands import BandTable
from recordwise.policy.json import bands_from_json
from recordwise.policy.policy import Policy
from recordwise.policy.series import Series


def noted_bands(events: Iterable[Event]) -> dict[str, BandTable]:
    """The band tables in events: those of a budget, and those of charges."""
    forms = [form for event in events for name in ("budget_bands", "bands") for form in event.body.get(name) or ()]
    return dict(bands_from_json(forms))


def band_forms(policies: Iterable[Policy | None], known: Iterable[str] = ()) -> list[Any]:
    """The saved forms of the band tables that policies name, except those of known digests."""
    tables = {digest: each for policy in policies if policy is not None for digest, each in policy.bands().items()}
    return [table.to_json() for digest, table in tables.items() if digest not in set(known)]


def bands_of_budget(budget: Policy | None, series: Series | None) -> dict[str, Any]:
    """The band tables that declared budgets name. They are fixed before the first charge, as the budgets are (T-SIZE)."""
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
        for sequence, digest in self._chain.places().banded:
            if digest not in self._read:
                event = self._chain.event(sequence)
                self._read[digest] = {} if event is None else noted_bands([event])
            found |= self._read[digest]
        return found

    def new(self, policy: Policy) -> dict[str, Any]:
        """The part of a charge that notes the tables it is the first to name."""
        forms = band_forms([policy], self.tables())
        return {"bands": forms} if forms else {}
