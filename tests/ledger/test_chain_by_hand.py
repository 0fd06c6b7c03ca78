"""The parts of a chain by hand: where events are found, which links are broken, and what is told about a file."""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recordwise.errors import LedgerError
from recordwise.ledger.chain import (
    GENESIS,
    START,
    Chain,
    EventIndex,
    FileIdentity,
    as_event,
    broken_links,
    canonical,
    inode,
    link_digest,
    primary_code,
    reason,
    unread,
)
from recordwise.policy.series import Head


@pytest.fixture
def chain() -> Iterator[Chain]:
    made = Chain(None, writable=True)
    with made.transaction():
        made.lay_out()
    yield made
    made.close()


def append(chain: Chain, kind: str, **body: Any) -> int:
    with chain.transaction():
        return chain.append(kind, body).sequence


def test_events_are_numbered_from_1_and_each_links_to_the_one_before(chain: Chain) -> None:
    assert [append(chain, kind) for kind in ("opened", "charged", "released")] == [1, 2, 3]
    previous = GENESIS
    for event in chain.events():
        assert event.digest == link_digest(previous, event.sequence, event.time, event.kind, canonical(event.body))
        previous = event.digest
    assert [each.sequence for each in chain.events(after=1)] == [2, 3]
    first, last = chain.first(), chain.last("charged")
    assert first is not None
    assert last is not None
    assert (first.sequence, last.sequence, chain.last("failed")) == (1, 2, None)
    assert chain.event(None) is None
    assert chain.event(9) is None
    assert chain.problems() == []


def test_what_was_checked_ends_before_the_latest_charge(chain: Chain) -> None:
    """The latest charge is read again each time, because the running sum is read from it."""
    append(chain, "charged")
    chain.check_chain()
    assert chain._checked == START
    for kind in ("released", "charged", "looked"):
        append(chain, kind)
    chain.check_chain()
    assert chain._checked.length == 2
    assert [row[0] for row in chain._unbroken()] == [3, 4]
    append(chain, "charged")
    chain.check_chain()
    assert chain._checked == Head(length=4, digest=chain.events()[3].digest)


def test_an_event_that_is_gone_since_is_missing(chain: Chain) -> None:
    for kind in ("opened", "opened", "charged"):
        append(chain, kind)
    chain.check_chain()
    chain._connection.execute("DROP TRIGGER no_delete")
    chain._connection.execute("DELETE FROM events WHERE sequence = 3")
    with pytest.raises(LedgerError, match="is damaged: event 3 is missing"):
        chain.check_chain()


def rows(*kinds: str) -> list[tuple[Any, ...]]:
    made: list[tuple[Any, ...]] = []
    previous = GENESIS
    for place, kind in enumerate(kinds, 1):
        previous = link_digest(previous, place, "t", kind, "{}")
        made.append((place, "t", kind, "{}", previous))
    return made


def test_links_are_broken_where_a_row_is_missing_or_was_changed() -> None:
    whole = rows("a", "b", "c", "d")
    assert broken_links(whole) == []
    assert broken_links([]) == []
    assert broken_links(whole[1:]) == ["event 1 is missing"]
    assert broken_links([whole[0], *whole[2:]]) == ["event 2 is missing"]
    changed = [whole[0], (2, "t", "x", "{}", whole[1][4]), *whole[2:]]
    assert broken_links(changed) == ["event 2 was changed after it was written"]
    assert broken_links([whole[0], (2, "t", "b", 5, whole[1][4]), *whole[2:]]) == [
        "event 2 was changed after it was written"
    ]
    assert broken_links([*changed[:2], whole[3]]) == ["event 2 was changed after it was written", "event 3 is missing"]
    assert broken_links(whole[2:], since=Head(length=2, digest=whole[1][4])) == []
    assert broken_links(whole[2:], since=Head(length=2, digest=whole[0][4])) == [
        "event 3 was changed after it was written"
    ]


@pytest.mark.parametrize("row", [(1, "t", "k", "[]", "d"), (1, 5, "k", "{}", "d"), (1, "t", "k", "{}", None)])
def test_a_row_that_is_no_event_is_a_value_error(row: tuple[Any, ...]) -> None:
    assert as_event((1, "t", "k", '{"a":1}', "d")).body == {"a": 1}
    with pytest.raises(ValueError, match="not an event"):
        as_event(row)


def test_texts_are_unique_and_keep_their_letters() -> None:
    assert canonical({"b": 1, "a": ["é", None]}) == '{"a":["é",null],"b":1}'
    with pytest.raises(ValueError, match="JSON"):
        canonical(float("nan"))


def test_places_of_events_are_the_latest_and_a_charge_is_closed_by_the_first() -> None:
    index = EventIndex()
    index.add(1, "opened", None, None, None, None, None)
    index.add(2, "opened", "2026", None, None, None, "band")
    index.add(3, "charged", "2026", "abc", None, None, None)
    index.add(4, "charged", "2026", None, None, 7, None)
    index.add(5, "charged", None, "abc", None, 7, None)
    index.add(6, "released", None, "xyz", 3, 7, None)
    index.add(7, "failed", None, None, 3, None, None)
    index.add(8, "released", None, None, None, None, None)
    assert index.searched == 8
    assert index.opened == {None: 1, "2026": 2}
    assert index.charged == {"2026": 4, None: 5}
    assert index.releases == {"abc": 5}
    assert index.used == {7: 2}
    assert index.closed == {3: 6}
    assert index.banded == [(2, "band")]


def test_the_index_of_a_chain_grows_with_it(chain: Chain) -> None:
    append(chain, "opened", period="2026", budget_bands=[1])
    append(chain, "charged", period="2026", release="abc", bands=[2])
    append(chain, "looked", period="2027")
    found = chain.event_index()
    assert (found.opened, found.charged, found.releases) == ({"2026": 1}, {"2026": 2}, {"abc": 2})
    assert [place for place, _ in found.banded] == [1, 2]
    append(chain, "released", charge=2)
    assert chain.event_index().closed == {2: 4}
    assert len(chain.event_index().banded) == 2


def test_rare_events_are_found_once_and_those_added_since(chain: Chain) -> None:
    assert chain.rare("looked") == []
    for kind in ("looked", "opened", "looked"):
        append(chain, kind)
    assert [each.sequence for each in chain.rare("looked")] == [1, 3]
    append(chain, "looked")
    assert [each.sequence for each in chain.rare("looked")] == [1, 3, 4]
    assert [each.sequence for each in chain.rare("looked")] == [1, 3, 4]
    assert [each.sequence for each in chain.rare("looked", "opened")] == [1, 2, 3, 4]


def test_what_was_rolled_back_is_searched_for_again(chain: Chain) -> None:
    def fail() -> None:
        with chain.transaction():
            chain.append("looked", {})
            assert len(chain.rare("looked")) == 2
            raise KeyError

    append(chain, "looked")
    with pytest.raises(KeyError):
        fail()
    assert len(chain.rare("looked")) == 1
    assert append(chain, "looked") == 2


# The file.


def test_a_file_is_watched_by_its_name_and_its_log(tmp_path: Path) -> None:
    path = tmp_path / "own.ledger"
    assert inode(str(path)) is None
    assert FileIdentity.of(path).problem() is None
    path.write_text("a")
    (tmp_path / "own.ledger-wal").write_text("b")
    own = FileIdentity.of(path)
    assert own.problem() is None
    (tmp_path / "own.ledger-shm").write_text("later")
    assert own.problem() is None
    kept = tmp_path / "kept"
    os.rename(path, kept)
    assert own.problem() == "was deleted or renamed while it was open (own.ledger is gone)"
    path.write_text("c")
    assert own.problem() == "was replaced while it was open (own.ledger is now another file)"
    os.replace(kept, path)
    assert own.problem() is None
    os.link(path, tmp_path / "second")
    assert "has a second name" in str(own.problem())
    os.unlink(tmp_path / "second")
    os.unlink(tmp_path / "own.ledger-wal")
    assert own.problem() == "was deleted or renamed while it was open (own.ledger-wal is gone)"


@pytest.mark.parametrize("end", ["-wal", "-journal"])
def test_a_log_with_something_in_it_is_unread(end: str, tmp_path: Path) -> None:
    path = tmp_path / "own.ledger"
    assert not unread(path)
    log = tmp_path / f"own.ledger{end}"
    log.write_bytes(b"")
    assert not unread(path)
    log.write_bytes(b"x")
    assert unread(path)


def test_errors_are_told_in_our_own_words() -> None:
    assert reason(OSError(28, "No space left on device")) == "No space left on device"
    assert reason(OSError()) == "OSError"
    assert reason(ValueError("county 01")) == "an entry is malformed"
    full = sqlite3.OperationalError("county 01")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    assert reason(full) == "the disk is full"
    extended = sqlite3.OperationalError("county 01")
    extended.sqlite_errorcode = sqlite3.SQLITE_IOERR | (3 << 8)
    assert primary_code(extended) == sqlite3.SQLITE_IOERR
    assert reason(extended) == "the disk reported an error"
    other = sqlite3.OperationalError("county 01")
    assert primary_code(other) is None
    assert reason(other) == "OperationalError"


def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE own (a)")
    connection.close()
    chain = Chain(path, writable=True)
    with pytest.raises(LedgerError, match="belongs to another program"), chain.transaction():
        chain.lay_out()
    assert chain.tables() == {"own"}
    chain.close()
