"""Checking the books: the chain, the sums, the budget, and the releases that say what they saw."""

import json
import sqlite3
from pathlib import Path
from typing import Any

from recordwise.errors import LedgerError, RecordwiseError
from recordwise.ledger import GENESIS, Event, Ledger, canonical, chained
from recordwise.policy import Policy


def verify(path: str | Path, *, against: list[Path] | None = None) -> list[str]:
    """Every problem found; an empty list means the books are in order."""
    try:
        ledger = Ledger.existing(path)
        problems = _damage(path)
        events = ledger.history()
    except LedgerError as error:
        return [str(error)]
    problems += _broken_links(events)
    if not problems:
        problems += _wrong_sums(events, ledger.budget)
    for folder in against or []:
        problems += _release_problems(folder, events)
    return problems


def _damage(path: str | Path) -> list[str]:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        rows = connection.execute("PRAGMA integrity_check").fetchall()
    except sqlite3.Error as error:
        return [f"the file is damaged: {error}"]
    finally:
        connection.close()
    return [] if rows == [("ok",)] else [f"the file is damaged: {rows[0][0]}"]


def _broken_links(events: list[Event]) -> list[str]:
    problems: list[str] = []
    previous = GENESIS
    for place, event in enumerate(events, start=1):
        if event.sequence != place:
            return [*problems, f"event {place} is missing"]
        if chained(previous, event.sequence, event.time, event.kind, canonical(event.body)) != event.digest:
            problems.append(f"event {place} was changed after it was written")
        previous = event.digest
    return problems


def _wrong_sums(events: list[Event], budget: Policy | None) -> list[str]:
    problems: list[str] = []
    spent = Policy()
    for event in events:
        if event.kind != "charged":
            continue
        try:
            spent = spent + Policy.from_json(event.body["policy"])
            if Policy.from_json(event.body["spent"]) != spent:
                problems.append(f"event {event.sequence} states another sum than its charges add up to")
        except (RecordwiseError, KeyError) as error:
            problems.append(f"event {event.sequence} holds a policy that cannot be read: {error}")
    if budget is not None and not problems and not budget.dominates(spent):
        problems.append("the charges exceed the budget")
    return problems


def _release_problems(folder: Path, events: list[Event]) -> list[str]:
    """A release carries the length and digest of the chain it saw; an older or another ledger does not have them."""
    try:
        seen: dict[str, Any] = json.loads((folder / "release.json").read_text())["ledger"]
        length, digest = int(seen["length"]), str(seen["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return [f"{folder}: release.json cannot be read or names no ledger"]
    if length > len(events):
        return [
            f"{folder}: was released when the ledger had {length} events; it has {len(events)} now, so some were removed"
        ]
    if events[length - 1].digest != digest:
        return [
            f"{folder}: saw another event {length} than the ledger holds, so the ledger was replaced or rolled back"
        ]
    return []
