"""The file of a ledger: an append-only chain of events in SQLite.

It is safe for many processes, and knows nothing about policies or budgets. Each event includes the digest of the previous one,
computed over the exact stored text, so a changed or removed entry breaks the chain. A writer needs a transaction with exclusive
access to the file, and writes only after the chain was found unbroken: all of it once per process, then what was added since, and
the latest charge again each time, because the running sum is read from it. A file that was deleted, renamed or replaced while
open accepts no more entries, because nobody else would see them.
"""

import hashlib
import json
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from recordwise.errors import LedgerError, RecordwiseError
from recordwise.policy.series import Head

# The SQLite file: opening it, noticing that it was replaced, and its errors in our own words.


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
"""The log and its index. SQLite keeps those it opened, next to the file that links resolve to, until the last connection closes."""
Inode = tuple[int, int]


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """The opened file of a path and the log next to it."""

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
    """Return a file's device and inode, following links; None if missing."""
    try:
        found = os.stat(name)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def open_to_write(path: Path | None) -> sqlite3.Connection:
    """Open a connection with durable commits; in memory without a path."""
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
    """Set the journal mode, waiting as SQLite does not."""
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
    """Open for reading only.

    In a folder that allows no lock files, this works only if no entry is still in the log.
    """
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
    """Return whether a log may have entries that the file lacks."""
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


# The chain: events with digests, read, checked and appended.


GENESIS = "0" * 64
COLUMNS = "sequence, time, kind, body, digest"
TABLE = """CREATE TABLE events (
    sequence INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, digest TEXT NOT NULL UNIQUE)"""
GUARDS = [
    f"CREATE TRIGGER no_{verb.lower()} BEFORE {verb} ON events BEGIN SELECT RAISE(ABORT, 'append only'); END"
    for verb in ("UPDATE", "DELETE")
]
ADVICE = "Check the disk and the permissions, or restore the file from a copy and verify it against the releases."
NOTHING_DRAWN = "Nothing was drawn."
PUT_BACK = "Put the file and its log back under this path, verify it against the releases, and open a new session."


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One entry of the chain."""

    sequence: int
    time: str
    kind: str
    """``opened``, ``looked``, ``charged``, ``reserved``, ``released`` or ``failed``; in earlier versions also ``preflight``."""
    body: dict[str, Any]
    digest: str


START = Head(length=0, digest=GENESIS)
PLACES = """SELECT sequence, kind, json_extract(body, '$.period'), json_extract(body, '$.release'), json_extract(body, '$.charge'),
        json_extract(body, '$.uses'),
        CASE WHEN coalesce(json_type(body, '$.bands'), json_type(body, '$.budget_bands')) IS NULL THEN NULL ELSE digest END
    FROM (SELECT sequence, kind, CASE WHEN json_valid(body) THEN body ELSE '{}' END AS body, digest FROM events WHERE sequence > ?)
    WHERE kind IN ('opened', 'charged', 'released', 'failed') ORDER BY sequence"""


@dataclass(slots=True)
class EventIndex:
    """Positions of events in the searched part of the chain."""

    searched: int = 0
    opened: dict[str | None, int] = field(default_factory=dict)
    """The latest terms of each period."""
    charged: dict[str | None, int] = field(default_factory=dict)
    """The latest charge of each period."""
    releases: dict[str, int] = field(default_factory=dict)
    """The latest charge for each digest of what is released."""
    closed: dict[int, int] = field(default_factory=dict)
    """What became of a charge: the event that closed it."""
    used: dict[int, int] = field(default_factory=dict)
    """How many charges used each reserve, by the event that made it."""
    banded: list[tuple[int, str]] = field(default_factory=list)
    """The events that note band tables, with their digests."""

    def add(
        self,
        sequence: int,
        kind: str,
        period: str | None,
        release: str | None,
        charge: int | None,
        uses: int | None,
        banded: str | None,
    ) -> None:
        self.searched = sequence
        if banded is not None:
            self.banded.append((sequence, banded))
        if kind == "opened":
            self.opened[period] = sequence
        elif kind == "charged":
            self.charged[period] = sequence
            if release is not None:
                self.releases[release] = sequence
            if uses is not None:
                self.used[uses] = self.used.get(uses, 0) + 1
        elif charge is not None:
            self.closed.setdefault(charge, sequence)


class Chain:
    """The chain of one file, or of one process without a path."""

    def __init__(self, path: str | Path | None, *, writable: bool) -> None:
        self.on_disk = path is not None
        self.path = str(path) if self.on_disk else "in memory"
        self.real_path = os.path.realpath(self.path) if self.on_disk else ""
        self._turn = threading.RLock()
        self._process = os.getpid()
        self._checked = START
        self._searched: dict[tuple[str, ...], tuple[int, list[Event]]] = {}
        self._places = EventIndex()
        self._identity: FileIdentity | None = None
        with self._guard(NOTHING_DRAWN):
            # Absolute, so that a change of the working folder does not matter and SQLite cannot interpret the name.
            place = None if path is None else Path(path).absolute()
            self._connection = self._connect(place) if writable else open_to_read(Path(str(path)))
        # A chain that is no longer referenced is closed too, but never by a forked child when it exits.
        weakref.finalize(self, self._connection.close).atexit = False

    def _connect(self, path: Path | None) -> sqlite3.Connection:
        before = None if path is None else inode(str(path))
        connection = open_to_write(path)
        try:
            if path is not None:
                self._identity = FileIdentity.of(path)
                self._check_path(NOTHING_DRAWN, replaced=before not in (None, inode(str(path))))
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_path(self, state: str, *, replaced: bool = False) -> None:
        """Refuse a file that its path no longer names.

        Nobody else would see charges to it.
        """
        problem = self._identity.problem() if self._identity else None
        if replaced or problem:
            found = problem or "was replaced while it was opened"
            raise LedgerError(path=self.path, problem=found, advice=f"{state} {PUT_BACK}".strip())

    def tables(self) -> set[str]:
        """The tables of the file; none before the first entry."""
        with self._guard(""):
            return {row[0] for row in self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def lay_out(self) -> None:
        """Create the table in a new file; refuse another program's file."""
        if (names := self.tables()) and "events" not in names:
            raise LedgerError(path=self.path, problem="belongs to another program", advice="Correct the path.")
        # A file that was just created has one page; more pages without a table once contained something.
        if not names and self._connection.execute("PRAGMA page_count").fetchone()[0] > 1:
            raise LedgerError(path=self.path, problem="is damaged: its entries cannot be found", advice=ADVICE)
        for statement in () if names else (TABLE, *GUARDS):
            self._connection.execute(statement)
        self.check_layout()

    def check_layout(self) -> None:
        """Refuse a file with another layout or triggers, which hide events."""
        with self._guard(NOTHING_DRAWN):
            rows = self._connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        if not {TABLE} <= {row[0] for row in rows} <= {TABLE, *GUARDS}:
            raise LedgerError(path=self.path, problem="is damaged: its layout was changed", advice=ADVICE)

    @contextmanager
    def transaction(self, *, state: str = NOTHING_DRAWN) -> Iterator[None]:
        """Run an exclusive transaction; errors mention ``state``."""
        with self._guard(state):
            self._connection.execute("BEGIN IMMEDIATE")
            checked = self._checked
            try:
                yield
                self._connection.execute("COMMIT")
                self._check_path(state)
            except BaseException:
                # Anything checked or found in here may be rolled back.
                self._checked = checked
                self._searched.clear()
                self._places = EventIndex()
                # When the disk is full, SQLite rolls back by itself.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def settle(self) -> None:
        """Copy committed entries from the log, which completes the file."""
        with self._guard(""), suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def append(self, kind: str, body: dict[str, Any]) -> Event:
        """Add an event to an unbroken chain; call this in a transaction."""
        rows = self._unbroken()
        sequence, previous = (rows[-1][0] + 1, rows[-1][4]) if rows else (1, GENESIS)
        now, text = datetime.now(UTC).isoformat(timespec="milliseconds"), canonical(body)
        digest = link_digest(previous, sequence, now, kind, text)
        self._connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?)", (sequence, now, kind, text, digest))
        return Event(sequence=sequence, time=now, kind=kind, body=json.loads(text), digest=digest)

    def check_chain(self) -> None:
        """Raise if the chain is broken; call before locking to save time."""
        with self._guard(NOTHING_DRAWN):
            self._unbroken()

    def _unbroken(self) -> list[tuple[Any, ...]]:
        """Return the rows after the last checked one, verified as unbroken."""
        rows = self._rows(after=self._checked.length)
        problems = broken_links(rows, since=self._checked)
        if self._checked != START and not rows:
            problems = [f"event {self._checked.length + 1} is missing"]
        if problems:
            raise LedgerError(path=self.path, problem=f"is damaged: {problems[0]}", advice=ADVICE)
        charges = [place for place, row in enumerate(rows) if row[2] == "charged"]
        if charges and charges[-1]:
            sequence, *_, digest = rows[charges[-1] - 1]
            self._checked = Head(length=sequence, digest=digest)
        return rows

    def _rows(self, *, after: int = 0) -> list[tuple[Any, ...]]:
        statement = f"SELECT {COLUMNS} FROM events WHERE sequence > ? ORDER BY sequence"
        return self._connection.execute(statement, (after,)).fetchall()

    def events(self, *, after: int = 0) -> list[Event]:
        """Every event, oldest first, or those after a given one."""
        with self._guard(""):
            return [as_event(row) for row in self._rows(after=after)]

    def first(self) -> Event | None:
        """The first event."""
        return self._one(f"SELECT {COLUMNS} FROM events ORDER BY sequence LIMIT 1")

    def last(self, kind: str) -> Event | None:
        """The latest event of a kind."""
        return self._one(f"SELECT {COLUMNS} FROM events WHERE kind = ? ORDER BY sequence DESC LIMIT 1", kind)

    def rare(self, *kinds: str) -> list[Event]:
        """Return every event of some rare kinds, oldest first."""
        searched, known = self._searched.get(kinds, (0, []))
        marks = ", ".join("?" * len(kinds))
        statement = (
            f"SELECT {COLUMNS} FROM events WHERE kind IN ({marks}) AND sequence BETWEEN ? AND ? ORDER BY sequence"
        )
        with self._guard(""):
            (length,) = self._connection.execute("SELECT coalesce(max(sequence), 0) FROM events").fetchone()
            rows = self._connection.execute(statement, (*kinds, searched + 1, length)).fetchall()
            found = [*known, *map(as_event, rows)]
        self._searched[kinds] = (length, found)
        return found

    def event_index(self) -> EventIndex:
        """Where events are; rows searched before are not searched again."""
        with self._guard(""):
            for row in self._connection.execute(PLACES, (self._places.searched,)).fetchall():
                self._places.add(*row)
        return self._places

    def event(self, sequence: int | None) -> Event | None:
        """One event by its number."""
        if sequence is None:
            return None
        return self._one(f"SELECT {COLUMNS} FROM events WHERE sequence = ?", sequence)

    def _one(self, statement: str, *values: str | int) -> Event | None:
        with self._guard(""):
            row = self._connection.execute(statement, values).fetchone()
            return None if row is None else as_event(row)

    def problems(self) -> list[str]:
        """Return problems of the file or chain, whatever the events say."""
        with self._guard(""):
            found = [row[0] for row in self._connection.execute("PRAGMA integrity_check")]
            damage = [] if found == ["ok"] else ["the file is damaged"]
            return damage + broken_links(self._rows())

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _guard(self, state: str) -> Iterator[None]:
        """Admit one thread of the opening process, and hide SQLite's text."""
        if os.getpid() != self._process:
            raise LedgerError(
                path=self.path, problem="was opened in another process", advice="Open it in each process."
            )
        with self._turn:
            try:
                self._check_path(state)
                yield
            except RecordwiseError:
                raise
            except (sqlite3.Error, ValueError, OSError) as error:
                raise LedgerError(
                    path=self.path,
                    problem=f"cannot be read or written: {reason(error)}",
                    advice=f"{state} {ADVICE}".strip(),
                ) from None


def as_event(row: tuple[Any, ...]) -> Event:
    """Return a stored row as an event; raise ValueError if malformed."""
    sequence, at, kind, text, digest = row
    body = json.loads(text) if all(isinstance(part, str) for part in (at, kind, text, digest)) else None
    if not isinstance(body, dict):
        raise ValueError("not an event")
    return Event(sequence=sequence, time=at, kind=kind, body=body, digest=digest)


def broken_links(rows: list[tuple[Any, ...]], *, since: Head = START) -> list[str]:
    """The places where the chain of stored rows is broken."""
    problems: list[str] = []
    previous = since.digest
    for place, (sequence, at, kind, body, digest) in enumerate(rows, start=since.length + 1):
        if sequence != place:
            return [*problems, f"event {place} is missing"]
        texts = all(isinstance(part, str) for part in (at, kind, body, digest))
        if not texts or link_digest(previous, sequence, at, kind, body) != digest:
            problems.append(f"event {place} was changed after it was written")
        previous = digest
    return problems


def canonical(body: Any) -> str:
    """The unique text of a value."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def link_digest(previous: str, sequence: int, at: str, kind: str, body: str) -> str:
    """The digest that links an event to the previous one."""
    return hashlib.sha256(canonical([previous, sequence, at, kind, body]).encode()).hexdigest()
