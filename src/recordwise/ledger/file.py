"""The SQLite file of a ledger: opening it, noticing that it was replaced, and its errors in words of our own."""

import os
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

WAIT_SECONDS = 120.0
REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "the file or its folder is read-only",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened or created; its folder may be read-only",
    sqlite3.SQLITE_BUSY: f"other processes locked it for {WAIT_SECONDS:.0f} seconds",
    sqlite3.SQLITE_NOTADB: "it is not a SQLite file",
    sqlite3.SQLITE_CORRUPT: "the file is damaged",
    sqlite3.SQLITE_IOERR: "the disk reported an error",
}
BESIDE = ("-wal", "-shm")
"""The log and its index. SQLite keeps those it opened, beside the file that links resolve to, until the last connection closes."""
Inode = tuple[int, int]


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """The file behind a path and the log beside it, as they were when opened."""

    path: Path
    known: tuple[tuple[str, Inode | None], ...]

    @classmethod
    def of(cls, path: Path) -> "FileIdentity":
        real = os.path.realpath(path)
        names = (str(path), *(real + end for end in BESIDE))
        return cls(path, tuple((name, inode(name)) for name in names))

    def problem(self) -> str | None:
        """What happened to the file since it was opened, if anything."""
        for name, then in self.known:
            now = inode(name)
            if then is not None and now is None:
                return f"was deleted or renamed while it was open ({Path(name).name} is gone)"
            if then is not None and now != then:
                return f"was replaced while it was open ({Path(name).name} is now another file)"
        if self.known[0][1] is not None and os.stat(self.path).st_nlink > 1:
            return "has a second name (a hard link), and sessions that use that name would miss what is in its log"
        return None


def inode(name: str) -> Inode | None:
    """Device and inode of a file, following links; None if it does not exist. The inode is not reused while the file is open."""
    try:
        found = os.stat(name)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def open_to_write(path: Path | None) -> sqlite3.Connection:
    """A connection whose commits are on the disk when they return; in memory without a path."""
    connection = sqlite3.connect(
        ":memory:" if path is None else path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = FULL")
        # This creates the log before the file is used.
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """SQLite does not wait for its turn when it changes the journal mode, so this does."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open for reading only. In a folder that allows no lock files, this works only if no entry is still in the log."""
    address = f"file:{quote(str(path.absolute()))}"
    connection = sqlite3.connect(f"{address}?mode=rw", uri=True, timeout=WAIT_SECONDS, check_same_thread=False)
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        if unread(path):
            raise
        connection = sqlite3.connect(f"{address}?mode=ro&immutable=1", uri=True, check_same_thread=False)
    except BaseException:
        connection.close()
        raise
    return connection


def unread(path: Path) -> bool:
    """Whether a log or journal beside the file that links resolve to may have entries that the file itself lacks."""
    logs = (Path(os.path.realpath(path) + end) for end in ("-wal", "-journal"))
    return any(log.exists() and log.stat().st_size > 0 for log in logs)


def primary_code(error: Exception) -> int | None:
    """SQLite's code without its extension."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else int(code) & 0xFF


def reason(error: Exception) -> str:
    """The reason, without SQLite's own text, which can quote stored data."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    known = REASONS.get(primary_code(error) or 0)
    if known is None and isinstance(error, ValueError):
        return "an entry is malformed"
    return known or str(getattr(error, "sqlite_errorname", type(error).__name__))
