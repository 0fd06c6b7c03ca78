"""What a release says about the series it belongs to: its period and revision, what it revises, and the losses of all periods."""

from collections.abc import Sequence
from typing import Any

from recordwise.errors import ParameterError
from recordwise.ledger.bands import band_forms
from recordwise.ledger.chain import Event
from recordwise.ledger.charges import Charge
from recordwise.ledger.ledger import Ledger
from recordwise.ledger.periods import periods_of


def revised(ledger: Ledger) -> tuple[dict[str, Any], ...]:
    """The releases of the same period that a revision replaces: those of the revision before, with their days and digests.

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


def _version(event: Event, charges: dict[int, Event]) -> dict[str, Any]:
    charge = charges[event.body["charge"]]
    return {"revision": charge.body.get("revision", 0), "date": event.time[:10], "digest": event.body["digest"]}


def series_stated(ledger: Ledger, charge: Charge, revises: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The part of release.json about the series; nothing outside a series. Everything in it is in the ledger too."""
    series = ledger.series
    if series is None:
        return {}
    known = periods_of(ledger.history())
    periods = [
        {
            "period": each.name,
            "policy": each.spent.to_json(),
            "budget": None if each.budget is None else each.budget.to_json(),
            "budget_declared": each.declared_words(),
        }
        for each in known
    ]
    stated = {
        "name": series.name,
        "period": series.period,
        "revision": series.revision,
        "date": charge.time[:10],
        "revises": list(revises),
        "periods": periods,
    }
    if forms := band_forms(policy for each in known for policy in (each.spent, each.budget)):
        stated["bands"] = forms
    return {"series": stated}
