"""A ledger file: whatever is accepted tells the very events that were written, and nothing is ever found less spent than it was."""

import sqlite3
import struct
from pathlib import Path
from random import Random
from tempfile import mkdtemp

from fuzz.mutation import mutated
from fuzz.target import ACCEPTED, REFUSED, WrongError, clear_refusal
from recordwise.errors import LedgerError, RecordwiseError
from recordwise.ledger.chain import Event
from recordwise.ledger.ledger import Ledger
from recordwise.policy import Policy, constant, gaussian_sum
from recordwise.release.verify import verify

BUDGET = constant(5) + gaussian_sum("emp", sigma="1/10")
CHARGE = constant("1/10") + gaussian_sum("emp", sigma=3)
PAGE = 4096
LENGTH = struct.Struct("<I")
"""An input is the length of the ledger, the ledger, and the log beside it."""


def packed(books: bytes, log: bytes = b"") -> bytes:
    return LENGTH.pack(len(books)) + books + log


def unpacked(data: bytes) -> tuple[bytes, bytes]:
    if len(data) < LENGTH.size:
        return data, b""
    (length,) = LENGTH.unpack_from(data)
    return data[LENGTH.size : LENGTH.size + length], data[LENGTH.size + length :]


class LedgerFile:
    def __init__(self) -> None:
        self._folder = Path(mkdtemp())
        self._path = self._folder / "books.ledger"
        self._histories: list[list[Event]] = []
        self._spent: list[Policy] = []
        self._seeds = [self._written(charges, logged) for charges in (0, 1, 3) for logged in (False, True)]

    def _written(self, charges: int, logged: bool) -> bytes:
        """A ledger with some charges, its last entries in the file or still in the log."""
        ledger = self._open()
        for number in range(charges):
            done = ledger.charge(CHARGE, query=f"q{number}", details=[{"statistics": ["n"]}])
            if number != 1:
                ledger.record_release(done, digest="d" * 64, privacy_label="private")
        self._histories.append(ledger.history())
        self._spent.append(ledger.spent())
        log = self._path.with_name(self._path.name + "-wal")
        if logged:
            data = packed(self._path.read_bytes(), log.read_bytes())
            ledger.close()
        else:
            ledger.close()
            data = packed(self._path.read_bytes())
        self._clear()
        return data

    def _open(self) -> Ledger:
        return Ledger(self._path, dataset="d", schema={"unit": "id"}, budget=BUDGET)

    def _clear(self) -> None:
        for path in self._folder.iterdir():
            path.unlink()

    def seeds(self) -> list[bytes]:
        return self._seeds

    def fresh(self, rng: Random) -> bytes:
        """A seed with one bit, one byte or one page changed: the change a disk makes."""
        books, log = unpacked(rng.choice(self._seeds))
        changed = bytearray(books if rng.random() < 0.8 or not log else log)
        place = rng.randrange(len(changed))
        match rng.randrange(4):
            case 0:
                changed[place] ^= 1 << rng.randrange(8)
            case 1:
                changed[place] = rng.randrange(256)
            case 2:
                start = place // PAGE * PAGE
                changed[start : start + PAGE] = bytes(PAGE)
            case _:
                return self._rewritten(rng, books)
        return packed(bytes(changed), log) if len(changed) == len(books) else packed(books, bytes(changed))

    def _rewritten(self, rng: Random, books: bytes) -> bytes:
        """A file that SQLite itself finds in order, with one thing changed by a statement."""
        self._clear()
        self._path.write_bytes(books)
        connection = sqlite3.connect(self._path, isolation_level=None)
        try:
            for statement in (
                "DROP TRIGGER no_update",
                "DROP TRIGGER no_delete",
                rng.choice(STATEMENTS).format(rng.randint(1, 7), rng.randint(1, 9)),
            ):
                connection.execute(statement)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error:
            pass
        finally:
            connection.close()
        data = packed(self._path.read_bytes())
        self._clear()
        return data

    def mutate(self, rng: Random, data: bytes, other: bytes) -> bytes:
        books, log = unpacked(data)
        if rng.random() < 0.2:
            return packed(books, mutated(rng, log, other))
        return packed(mutated(rng, books, other), log)

    def check(self, data: bytes) -> str:
        self._clear()
        books, log = unpacked(data)
        self._path.write_bytes(books)
        if log:
            self._path.with_name(self._path.name + "-wal").write_bytes(log)
        problems = verify(self._path)
        for problem in problems:
            clear_refusal(LedgerError(path="", problem=problem))
        if not problems:
            self._check_history()
        self._check_charge(emptied=b'"dataset"' not in books)
        return REFUSED if problems else ACCEPTED

    def _check_history(self) -> None:
        """What is accepted is one of the histories that were written, or the beginning of one: no chain can tell a cut tail."""
        ledger = Ledger.existing(self._path)
        history = ledger.history()
        ledger.close()
        if not any(history == known[: len(history)] for known in self._histories) or not history:
            raise WrongError("a changed history was accepted")

    def _check_charge(self, *, emptied: bool) -> None:
        """A charge to the file is refused, or the sum after it is that of an honest history and this charge. A file with nothing in
        it is a new ledger to anybody: only the releases tell."""
        try:
            ledger = self._open()
        except RecordwiseError as error:
            clear_refusal(error)
            return
        try:
            before = ledger.history()
            ledger.charge(CHARGE, query="again")
            if not (emptied and len(before) == 1) and not any(
                before == known[: len(before)] for known in self._histories
            ):
                raise WrongError("a changed history was charged")
            known = [sum([CHARGE] * number, Policy()) for number in range(1, 6)]
            if ledger.spent() not in known:
                raise WrongError("the sum after a charge is not one of whole charges")
        except RecordwiseError as error:
            clear_refusal(error)
        finally:
            ledger.close()


STATEMENTS = [
    "UPDATE events SET body = replace(body, '{1}', '0') WHERE sequence = {0}",
    "UPDATE events SET digest = '{1}' || digest WHERE sequence = {0}",
    "UPDATE events SET kind = 'failed' WHERE sequence = {0}",
    "UPDATE events SET time = '{1}' WHERE sequence = {0}",
    "UPDATE events SET sequence = {1}0 WHERE sequence = {0}",
    "UPDATE events SET body = x'00' WHERE sequence = {0}",
    "UPDATE events SET body = NULL WHERE sequence = {0}",
    "UPDATE events SET body = {1} WHERE sequence = {0}",
    "DELETE FROM events WHERE sequence = {0}",
    "DELETE FROM events",
    "DROP TABLE events",
    "ALTER TABLE events RENAME COLUMN body TO text",
    "ALTER TABLE events ADD COLUMN more TEXT",
    "CREATE VIEW other AS SELECT * FROM events",
    "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events WHERE sequence = {0}; END",
    "PRAGMA user_version = {1}",
    "PRAGMA encoding = 'UTF-16'",
    "PRAGMA application_id = {1}",
    "VACUUM",
]
