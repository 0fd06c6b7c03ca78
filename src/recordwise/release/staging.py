"""Atomic creation of a new folder.

Files are written next to it under another name, flushed, and renamed in one step. A process that dies leaves
at most a hidden folder whose lock ends with the process; the next save to the same name removes it.
"""

import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from recordwise.errors import OutputError

OWNER_ONLY, EVERYONE = 0o700, 0o777
"""Modes of new folders, before the process's own mask."""


def require_new(folder: str | Path) -> Path:
    """Refuse a name in use; call this before spending budget."""
    target = Path(folder)
    if os.path.lexists(target):
        raise OutputError(
            folder=str(target), problem="already exists", advice="Choose a new folder; nothing is overwritten."
        )
    return target


@contextmanager
def new_folder(folder: str | Path, *, owner_only: bool = False) -> Iterator[Path]:
    """Yield a folder that becomes ``folder`` if the block succeeds.

    It is removed if the block fails. With ``owner_only`` nobody else may read the folder or its files, from the
    first byte on.
    """
    target = require_new(folder)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_stale(target)
        staging, lock = _lock_new_folder(target, mode=OWNER_ONLY if owner_only else EVERYONE)
    except OSError as error:
        raise _failure(target, error) from None
    try:
        yield staging
        if owner_only:
            for file in staging.iterdir():
                file.chmod(0o600)
        _flush_all(staging)
        os.rename(staging, target)
    except OSError as error:
        raise _failure(target, error) from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        os.close(lock)
    with suppress(OSError):
        # The folder is complete under its name; this only makes the name itself survive a power loss.
        _flush(target.parent)


def try_folder(target: Path) -> None:
    """Make a folder next to a new one and remove it; where a process is killed meanwhile, the next save removes it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_stale(target)
    staging, lock = _lock_new_folder(target, mode=EVERYONE)
    shutil.rmtree(staging, ignore_errors=True)
    os.close(lock)


def remove_stale(target: Path) -> None:
    """Remove what killed processes, but not live ones, left here."""
    for name in os.listdir(target.parent):
        if re.fullmatch(rf"\.{re.escape(target.name)}\.staging-\d+-\d+", name):
            with suppress(OSError):
                lock = _lock(target.parent / name)
                shutil.rmtree(target.parent / name, ignore_errors=True)
                os.close(lock)


def _lock_new_folder(target: Path, *, mode: int) -> tuple[Path, int]:
    """Return a hidden folder locked by this process, retrying if removed."""
    number = 0
    while True:
        number += 1
        staging = target.parent / f".{target.name}.staging-{os.getpid()}-{number}"
        with suppress(FileExistsError):
            staging.mkdir(mode=mode)
            if (lock := _try_lock(staging)) is not None:
                return staging, lock


def _try_lock(staging: Path) -> int | None:
    """Lock a folder; None if another process removed it first."""
    with suppress(FileNotFoundError, BlockingIOError):
        lock = _lock(staging)
        if staging.exists():
            return lock
        os.close(lock)
    return None


def _lock(folder: Path) -> int:
    """A lock held until it is closed or the process ends."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


def _failure(target: Path, error: OSError) -> OutputError:
    why = os.strerror(error.errno) if error.errno else type(error).__name__
    return OutputError(folder=str(target), problem=f"could not be written: {why}")


def _flush_all(folder: Path) -> None:
    """Flush everything to disk before the folder gets its name."""
    for file in folder.iterdir():
        _flush(file)
    _flush(folder)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# The digests of a release's files, which release.json lists, so that a copy can be checked file by file.


def file_digest(path: Path) -> str:
    """The SHA-256 digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_problems(folder: Path, listed: Mapping[str, str]) -> list[str]:
    """Return the files that differ from the saved ones, and how."""
    found = []
    for name, digest in listed.items():
        path = folder / name
        if not path.is_file():
            found.append(f"{name} is missing")
        elif file_digest(path) != digest:
            found.append(f"{name} is not the file that was saved")
    return found
