"""The chain, computed here once more from what is stored; and a connection that waits for the disk, whatever was done with it."""

import hashlib
import json
import sqlite3
from pathlib import Path

import pytest

from recordwise.ledger.chain import Chain
from recordwise.ledger.ledger import Ledger
from recordwise.policy import constant
from recordwise.release.verify import verify

FULL = 2


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with three charges, of which two led to a release and one failed."""
    ledger = Ledger(tmp_path / "l", dataset="d", budget=constant(1))
    for number in range(3):
        charge = ledger.charge(constant("0.1"), query=f"q{number}")
        if number == 1:
            ledger.record_failure(charge, kind="KeyboardInterrupt")
        else:
            ledger.record_release(charge, digest=f"{number}" * 64, privacy_label="private")
    ledger.close()
    return tmp_path / "l"


def rows_of(path: Path) -> list[tuple]:
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT sequence, time, kind, body, digest FROM events ORDER BY sequence").fetchall()
    connection.close()
    return rows


def link(previous: str, sequence: int, at: str, kind: str, body: str) -> str:
    """SHA-256 over a JSON list of the digest before and the stored row, without spaces."""
    parts = [json.dumps(each, ensure_ascii=False) for each in (previous, sequence, at, kind, body)]
    return hashlib.sha256(f"[{','.join(parts)}]".encode()).hexdigest()


def rewritten(path: Path, rows: list[tuple]) -> None:
    connection = sqlite3.connect(path)
    for name in ("no_update", "no_delete"):
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("DELETE FROM events")
    connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()


def test_every_digest_is_that_of_its_row_and_of_the_digest_before(path) -> None:
    rows = rows_of(path)
    assert len(rows) == 7
    previous = "0" * 64
    for *row, digest in rows:
        assert digest == link(previous, *row)
        previous = digest


def test_an_earlier_row_rewritten_with_a_digest_of_its_own_breaks_the_chain(path) -> None:
    """Each digest alone is right; only the link to the one before tells."""
    rows = rows_of(path)
    before, (sequence, at, kind, body, _) = rows[2][4], rows[3]
    changed = body.replace("q1", "qX")
    assert changed != body
    rows[3] = (sequence, at, kind, changed, link(before, sequence, at, kind, changed))
    rewritten(path, rows)
    assert any("event 5 was changed" in problem for problem in verify(path))


def test_two_rows_that_changed_places_break_the_chain_though_each_has_a_digest_of_its_own(path) -> None:
    rows = rows_of(path)
    first, second = rows[3], rows[5]
    for place, other in ((3, second), (5, first)):
        before, sequence = rows[place - 1][4], rows[place][0]
        at, kind, body = other[1:4]
        rows[place] = (sequence, at, kind, body, link(before, sequence, at, kind, body))
    rewritten(path, rows)
    assert any("was changed after it was written" in problem for problem in verify(path))


def synchronous(books: Chain) -> int:
    return books._connection.execute("PRAGMA synchronous").fetchone()[0]


def test_every_commit_waits_for_the_disk_from_the_opening_to_the_end(tmp_path) -> None:
    ledger = Ledger(tmp_path / "l", dataset="d", budget=constant(1))
    books = ledger._chain
    assert synchronous(books) == FULL
    charge = ledger.charge(constant("0.1"), query="q")
    assert synchronous(books) == FULL
    ledger.record_release(charge, digest="0" * 64, privacy_label="private")
    ledger.settle()
    assert synchronous(books) == FULL
    with pytest.raises(RuntimeError), books.transaction():
        raise RuntimeError
    ledger.history(), ledger.problems(), ledger.check(constant("0.1"), query="q")
    assert synchronous(books) == FULL
    ledger.close()
    again = Ledger(tmp_path / "l", dataset="d", budget=constant(1))
    assert synchronous(again._chain) == FULL
    again.close()


def test_the_setting_is_made_and_not_only_what_this_sqlite_begins_with(tmp_path, monkeypatch) -> None:
    connect = sqlite3.connect

    def relaxed(*given, **more):
        connection = connect(*given, **more)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    monkeypatch.setattr(sqlite3, "connect", relaxed)
    ledger = Ledger(tmp_path / "l", dataset="d")
    assert synchronous(ledger._chain) == FULL
    ledger.close()
