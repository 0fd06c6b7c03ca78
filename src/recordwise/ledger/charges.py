"""A charge that was committed: finding that of a release, and what became of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from recordwise.errors import DRAWING, RELEASED, UNFINISHED, WASTED
from recordwise.ledger.chain import Chain, Event, Head
from recordwise.ledger.drawing import is_drawn_now, tables_of


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

    def charged_as(self, charge: Mapping[str, Any]) -> bool:
        """Whether a charge is for this release, also one of an earlier version."""


def as_charge(event: Event) -> Charge:
    """A committed charge out of its event."""
    return Charge(sequence=event.sequence, head=Head(length=event.sequence, digest=event.digest), time=event.time)


def latest_of(release: Identity, chain: Chain) -> Charge | None:
    """The latest charge for a release: by its digest, and otherwise by what charges with digests of earlier versions say."""
    known = chain.places().releases
    if release.digest in known:
        event = chain.event(known[release.digest])
        return None if event is None else as_charge(event)
    for sequence in sorted((place for digest, place in known.items() if ":" not in digest), reverse=True):
        event = chain.event(sequence)
        if event is not None and release.charged_as(event.body):
            return as_charge(event)
    return None


def state_of(charge: Charge, chain: Chain) -> str:
    """What became of a charge. Whoever draws closes the charge or keeps the tables first and lets go of the lock last."""
    drawn_now = chain.kept and is_drawn_now(chain.place, charge.sequence)
    closed = chain.event(chain.places().closed.get(charge.sequence))
    if drawn_now and closed is None:
        return DRAWING
    if chain.kept and tables_of(chain.place, charge.sequence).is_dir():
        return UNFINISHED
    return WASTED if closed is None or closed.kind == "failed" else RELEASED
