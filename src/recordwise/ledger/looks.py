"""Looks at confidential records, by command and plan, in a ledger.

A ledger is public and never states what was seen: no number, no condition and no digest of a file; the digest
of its plan is the one that a charge for the same plan states. Earlier versions noted the first look only,
without saying what it was, and a preflight under a separate name: both count.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from recordwise.errors import ParameterError
from recordwise.ledger.chain import Chain, Event

LOOKED, PREFLIGHT = "looked", "preflight"
KINDS = (LOOKED, PREFLIGHT)
"""The events that are looks; the second is only in ledgers of earlier versions."""
COMMANDS = (
    "init --look",
    "preflight",
    "rehearse",
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
