"""What lies beside a ledger for one of its charges: a lock while its noise is drawn, and the drawn tables until they are published.

The lock is held from before the charge is committed until the charge is closed or its tables are kept. The system frees it when
the process ends, however it ends, so that whoever finds an open charge can tell a draw that is under way from one that was lost.
"""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DRAWING, UNFINISHED = ".drawing-", ".unfinished-"
_held: set[int] = set()


def tables_of(ledger: str, charge: int) -> Path:
    """The folder of the drawn tables of a charge; the ledger by the path that links resolve to."""
    return Path(f"{ledger}{UNFINISHED}{charge}")


@contextmanager
def drawing(ledger: str, charge: int) -> Iterator[None]:
    """Hold the lock of a charge; enter it before the charge is committed."""
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
    """Whether a living process, or another thread of this one, holds the lock of a charge; what a dead one left is removed."""
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
    pattern = re.compile(rf"{re.escape(name + DRAWING)}(\d+)")
    with suppress(OSError):
        for found in filter(None, map(pattern.fullmatch, os.listdir(folder))):
            is_drawn_now(ledger, int(found[1]))


def _lock_of(ledger: str, charge: int) -> Path:
    return Path(f"{ledger}{DRAWING}{charge}")


def _let_go() -> None:
    """A forked child holds no lock of its parent, which it would keep beyond the parent's death."""
    while _held:
        os.close(_held.pop())


os.register_at_fork(after_in_child=_let_go)
