"""Records that change under the reader's hands, and Parquet files that are damaged: refused, and nothing is charged."""

import os
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import recordwise as rw
from build import generous, question, records, session, write_records
from recordwise.engines import DuckDB
from recordwise.engines.duckdb.connection import Connection
from recordwise.errors import RecordwiseError, SourceError
from recordwise.policy import constant
from recordwise.release.verify import verify


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_records(tmp_path / "records.parquet")


def moved_over(file: Path) -> None:
    """Another file takes the name, with the same size and times."""
    before = file.stat()
    other = file.with_name("other.parquet")
    other.write_bytes(file.read_bytes())
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(other, file)


def written_in_place(file: Path) -> None:
    """One bit changes, and the clock of the file is turned back."""
    before, data = file.stat(), bytearray(file.read_bytes())
    data[len(data) // 3] ^= 1
    file.write_bytes(data)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def cut_short(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


CHANGES = [moved_over, written_in_place, cut_short]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_file_changed_after_it_was_validated_is_refused_and_nothing_is_charged(tmp_path, file, change) -> None:
    with session(file, tmp_path / "l", generous()) as opened:
        opened.validate()
        change(file)
        with pytest.raises(SourceError, match="changed since they were validated"):
            opened.run(question())
        assert [event.kind for event in opened.history()] == ["opened"]
    assert verify(tmp_path / "l") == []


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_file_changed_while_it_is_read_is_refused_and_nothing_is_charged(tmp_path, file, change, monkeypatch) -> None:
    ready = DuckDB._ready

    def changing(engine, schema, names):
        ready(engine, schema, names)
        state["done"] = change(file)

    state: dict[str, object] = {}
    monkeypatch.setattr(DuckDB, "_ready", changing)
    with session(file, tmp_path / "l", generous()) as opened:
        with pytest.raises(RecordwiseError):
            opened.run(question())
        assert "done" in state
        assert [event.kind for event in opened.history()] == ["opened"]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_file_changed_while_it_is_validated_is_refused_and_nothing_is_charged(
    tmp_path, file, change, monkeypatch
) -> None:
    """What was validated is what was there before: the mark is taken first."""
    check = DuckDB._check_records

    def changing(engine, schema) -> None:
        check(engine, schema)
        change(file)

    monkeypatch.setattr(DuckDB, "_check_records", changing)
    with session(file, tmp_path / "l", generous()) as opened:
        opened.validate()
        monkeypatch.setattr(DuckDB, "_check_records", check)
        with pytest.raises(SourceError, match="changed since they were validated"):
            opened.run(question())
        assert "charged" not in [event.kind for event in opened.history()]


READERS = {
    "totals": lambda opened: opened.run(question()),
    "split table": lambda opened: opened.run_external(lambda rows: rows.slice(0, 0), split={"emp": 50}, rho=1),
    "losses": lambda opened: opened.owner.loss_summary(constant(1)),
    "losses of firms": lambda opened: opened.owner.firm_loss_summary(constant(1)),
    "owner": lambda opened: opened.owner.view().loss_bins([constant(1)]),
}


@pytest.mark.parametrize("reader", READERS)
def test_every_pass_looks_at_the_file_once_more_when_it_is_over(tmp_path, file, reader, monkeypatch) -> None:
    """The file changes after the last statement has read it; what was read could be half of each."""
    done = {"count": 0}

    def changing(connection, tree):
        found = fetch(connection, tree)
        moved_over(file)
        done["count"] += 1
        return found

    fetch = Connection.fetch
    with session(file, tmp_path / "l", generous()) as opened:
        opened.validate()
        monkeypatch.setattr(Connection, "fetch", changing)
        with pytest.raises(SourceError, match="changed since they were validated"):
            READERS[reader](opened)
        assert done["count"]
        assert "charged" not in [event.kind for event in opened.history()]


def test_a_file_that_vanishes_after_it_was_opened_is_refused_in_our_own_words(tmp_path, file) -> None:
    with session(file, tmp_path / "l", generous()) as opened:
        file.unlink()
        with pytest.raises(RecordwiseError):
            opened.run(question())
        assert [event.kind for event in opened.history()] == ["opened"]


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Bits flipped, a stretch of zeros, or the end missing."""
    changed = bytearray(data)
    place = rng.randrange(len(changed))
    match rng.randrange(3):
        case 0:
            for _ in range(rng.choice((1, 8))):
                changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        case 1:
            changed[place : place + 64] = bytes(len(changed[place : place + 64]))
        case _:
            del changed[place:]
    return bytes(changed)


@pytest.mark.costly
def test_a_damaged_parquet_file_is_refused_without_a_charge_or_read_as_it_stands(tmp_path, file) -> None:
    """``make fuzz`` does this by the thousand; here are thirty."""
    whole, rng, refused = file.read_bytes(), random.Random(3), 0
    for number in range(30):
        file.write_bytes(damaged(whole, rng))
        ledger = tmp_path / f"l{number}"
        try:
            with session(file, ledger, generous()) as opened:
                opened.run(question())
            assert pq.read_table(file).num_rows == records().num_rows
        except RecordwiseError:
            refused += 1
            assert not ledger.exists() or "charged" not in events(ledger)
    assert refused > 10


def events(path: Path) -> list[str]:
    from recordwise.ledger.ledger import Ledger

    ledger = Ledger.existing(path)
    found = [event.kind for event in ledger.history()]
    ledger.close()
    return found


def test_a_parquet_file_with_column_names_that_are_no_text_is_refused(tmp_path, file) -> None:
    """Found by fuzzing: the names were decoded where nothing caught it."""
    file.write_bytes(file.read_bytes().replace(b"county", b"\xff\xfeunty"))
    with pytest.raises(RecordwiseError):
        rw.Session(file, unit="id", measures={"emp": 1})
