"""The books: every charge, release and failure, in an append-only chain that commits before noise is drawn.

A ledger is one SQLite file for one dataset. Each event holds the digest of the one before, so that a changed or removed entry
breaks the chain; every release carries the head it saw, so that a ledger put back to an older copy is found too. One transaction
reads what was spent, asks the budget and writes the charge: many processes can share a file and never overspend. A crash may waste
budget; it never exceeds it.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recordwise.errors import BudgetError, LedgerError
from recordwise.policy import Policy

FORMAT = 1
WAIT_SECONDS = 120.0
GENESIS = "0" * 64
TABLE = """CREATE TABLE IF NOT EXISTS events (
    sequence INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, digest TEXT NOT NULL UNIQUE)"""
GUARDS = [
    f"CREATE TRIGGER IF NOT EXISTS no_{verb.lower()} BEFORE {verb} ON events BEGIN SELECT RAISE(ABORT, 'append only'); END"
    for verb in ("UPDATE", "DELETE")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of the books."""

    sequence: int
    time: str
    kind: str
    """``opened``, ``charged``, ``released`` or ``failed``."""
    body: dict[str, Any]
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """How long the chain is and what its last digest is; a release carries it as evidence."""

    length: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A charge that has been committed."""

    sequence: int
    head: Head


class Ledger:
    """The budget of one dataset. Without a path it lives in memory and is gone with the process."""

    def __init__(
        self, path: str | Path | None, *, dataset: str, schema: Any = None, budget: Policy | None = None
    ) -> None:
        self.path = "in memory" if path is None else str(path)
        self.budget = budget
        self._connection = self._connect(path)
        identity = {
            "format": FORMAT,
            "dataset": dataset,
            "schema": schema,
            "budget": None if budget is None else budget.to_json(),
        }
        with self._transaction():
            self._open(identity)

    @classmethod
    def existing(cls, path: str | Path) -> "Ledger":
        """Open the books as they are, to read or verify them."""
        if not Path(path).is_file():
            raise LedgerError(path=str(path), problem="does not exist")
        ledger = cls.__new__(cls)
        ledger.path = str(path)
        ledger._connection = ledger._connect(path)
        events = ledger.history()
        if not events or events[0].kind != "opened":
            raise LedgerError(path=ledger.path, problem="is not a recordwise ledger")
        budget = events[0].body.get("budget")
        ledger.budget = None if budget is None else Policy.from_json(budget)
        return ledger

    def _connect(self, path: str | Path | None) -> sqlite3.Connection:
        with self._clear_errors():
            connection = sqlite3.connect(
                ":memory:" if path is None else path,
                timeout=WAIT_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _open(self, identity: dict[str, Any]) -> None:
        self._connection.execute(TABLE)
        for guard in GUARDS:
            self._connection.execute(guard)
        first = self._connection.execute("SELECT body FROM events WHERE sequence = 1").fetchone()
        if first is None:
            self._append("opened", identity)
            return
        known = json.loads(first[0])
        for field, meaning in (
            ("dataset", "another dataset"),
            ("schema", "another schema"),
            ("budget", "another budget"),
        ):
            if known.get(field) != json.loads(canonical(identity))[field]:
                raise LedgerError(
                    path=self.path,
                    problem=f"was opened for {meaning}",
                    advice="A ledger belongs to one dataset, schema and budget. Use its own, or start a new file.",
                )

    def charge(self, policy: Policy, *, query: str, details: Any = None) -> Charge:
        """Commit the policy to the books if the budget covers it for every possible record; nothing is written otherwise."""
        with self._transaction():
            after = self._admitted(policy, query)
            body = {"query": query, "policy": policy.to_json(), "spent": after.to_json(), "details": details}
            event = self._append("charged", body)
        return Charge(sequence=event.sequence, head=Head(length=event.sequence, digest=event.digest))

    def check(self, policy: Policy, *, query: str) -> None:
        """Raise what ``charge`` would raise, and write nothing."""
        self._admitted(policy, query)

    def _admitted(self, policy: Policy, query: str) -> Policy:
        """What will have been spent, if the budget covers it for every possible record."""
        spent = self.spent()
        after = spent + policy
        verdict = None if self.budget is None else self.budget.dominates(after)
        if self.budget is None or verdict:
            return after
        assert verdict is not None
        if verdict.witness is None:
            nothing = float("nan")
            raise BudgetError(query=query, witness=None, needed=nothing, left=nothing, reason=verdict.reason)
        part = "delta" if verdict.reason.startswith("the delta") else "loss"
        of = Policy.delta if part == "delta" else Policy.loss
        left = of(self.budget, verdict.witness) - of(spent, verdict.witness)
        raise BudgetError(
            query=query, witness=verdict.witness, needed=of(policy, verdict.witness), left=left, reason=part
        )

    def released(self, charge: Charge, *, digest: str) -> Head:
        """Note that a charge led to a release with this digest."""
        return self._close(charge, "released", {"charge": charge.sequence, "digest": digest})

    def failed(self, charge: Charge, *, kind: str) -> Head:
        """Note that a charge led to nothing; it stays spent."""
        return self._close(charge, "failed", {"charge": charge.sequence, "kind": kind})

    def _close(self, charge: Charge, kind: str, body: dict[str, Any]) -> Head:
        with self._transaction():
            event = self._append(kind, body)
        return Head(length=event.sequence, digest=event.digest)

    def spent(self) -> Policy:
        """The sum of everything charged."""
        with self._clear_errors():
            row = self._connection.execute(
                "SELECT body FROM events WHERE kind = 'charged' ORDER BY sequence DESC LIMIT 1"
            ).fetchone()
        return Policy() if row is None else Policy.from_json(json.loads(row[0])["spent"])

    def history(self) -> list[Event]:
        """Every event, oldest first."""
        with self._clear_errors():
            rows = self._connection.execute(
                "SELECT sequence, time, kind, body, digest FROM events ORDER BY sequence"
            ).fetchall()
            return [
                Event(sequence=sequence, time=time, kind=kind, body=json.loads(body), digest=digest)
                for sequence, time, kind, body, digest in rows
            ]

    def head(self) -> Head:
        """The end of the chain."""
        with self._clear_errors():
            row = self._connection.execute(
                "SELECT sequence, digest FROM events ORDER BY sequence DESC LIMIT 1"
            ).fetchone()
        return Head(length=row[0], digest=row[1])

    def close(self) -> None:
        self._connection.close()

    def _append(self, kind: str, body: dict[str, Any]) -> Event:
        last = self._connection.execute("SELECT sequence, digest FROM events ORDER BY sequence DESC LIMIT 1").fetchone()
        sequence, previous = (last[0] + 1, last[1]) if last else (1, GENESIS)
        time, text = datetime.now(UTC).isoformat(timespec="milliseconds"), canonical(body)
        digest = chained(previous, sequence, time, kind, text)
        self._connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?)", (sequence, time, kind, text, digest))
        return Event(sequence=sequence, time=time, kind=kind, body=body, digest=digest)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing, alone on the file."""
        with self._clear_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, json.JSONDecodeError) as error:
            raise LedgerError(
                path=self.path,
                problem=f"cannot be read or written ({error})",
                advice="Nothing was drawn. Check the disk and the permissions, or restore the file from a copy.",
            ) from None


def canonical(body: Any) -> str:
    """One text for one value."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def chained(previous: str, sequence: int, time: str, kind: str, body: str) -> str:
    """The digest that ties an event to the one before."""
    return hashlib.sha256(canonical([previous, sequence, time, kind, body]).encode()).hexdigest()
