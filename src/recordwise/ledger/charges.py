"""A committed charge: locating that of a release, and its outcome."""

import fcntl
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from recordwise.errors import DRAWING, RELEASED, UNFINISHED, WASTED
from recordwise.ledger.chain import Chain, Event, Head

# What lies beside a ledger for one of its charges: a lock while its noise is drawn, and the drawn tables until they
# are published. The lock is held from before the charge is committed until the charge is closed or its tables are
# kept. The system frees it when the process ends, however it ends, so that whoever finds an open charge can tell a
# draw that is under way from one that was lost.


DRAWING_SUFFIX, UNFINISHED_SUFFIX = ".drawing-", ".unfinished-"
_held: set[int] = set()


def tables_of(ledger: str, charge: int) -> Path:
    """Return the folder of a charge's drawn tables."""
    return Path(f"{ledger}{UNFINISHED_SUFFIX}{charge}")


@contextmanager
def drawing(ledger: str, charge: int) -> Iterator[None]:
    """Hold the lock of a charge; enter before committing it."""
    place = _lock_of(ledger, charge)
    handle = os.open(place, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
    _held.add(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        # A child that was forked in the meantime has let go, and the lock is not its own to remove.
        if handle in _held:
            _held.remove(handle)
            with suppress(OSError):
                os.unlink(place)
            os.close(handle)
            remove_dead(ledger)


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
