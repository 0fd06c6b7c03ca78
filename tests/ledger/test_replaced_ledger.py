"""A ledger that is deleted, renamed, replaced or linked anew while it is open takes no further charge."""

import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from recordwise.errors import LedgerError
from recordwise.ledger.chain import unread
from recordwise.ledger.ledger import Ledger
from recordwise.policy import constant

BUDGET = constant("0.2")
SPEND = constant("0.2")


def opened(path: Path | str) -> Ledger:
    return Ledger(path, dataset="d", budget=BUDGET)


def deleted(path: Path) -> None:
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()


def renamed(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def replaced_by_a_new_ledger(path: Path) -> None:
    deleted(path)
    opened(path).close()


def replaced_by_a_copy_of_itself(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    os.replace(path.with_name("copy"), path)


def log_deleted(path: Path) -> None:
    path.with_name(path.name + "-wal").unlink()


def log_replaced(path: Path) -> None:
    log = path.with_name(path.name + "-wal")
    shutil.copy(log, path.with_name("copy"))
    os.replace(path.with_name("copy"), log)


def index_deleted(path: Path) -> None:
    path.with_name(path.name + "-shm").unlink()


def folder_replaced(path: Path) -> None:
    path.parent.rename(path.parent.with_name("old"))
    path.parent.mkdir()
    opened(path).close()


def linked_twice(path: Path) -> None:
    os.link(path, path.with_name("second"))


WAYS = [
    (deleted, "was deleted or renamed"),
    (renamed, "was deleted or renamed"),
    (replaced_by_a_new_ledger, "was replaced"),
    (replaced_by_a_copy_of_itself, "was replaced"),
    (log_deleted, "was deleted or renamed"),
    (log_replaced, "was replaced"),
    (index_deleted, "was deleted or renamed"),
    (folder_replaced, "was replaced"),
    (linked_twice, "has a second name"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "books").mkdir()
    return tmp_path / "books" / "l"


@pytest.mark.parametrize("change, told", WAYS, ids=lambda each: getattr(each, "__name__", ""))
def test_a_ledger_that_is_no_longer_where_it_was_takes_no_charge_and_no_other_entry(path, change, told) -> None:
    ledger = opened(path)
    charge = ledger.charge(constant("0.1"), query="first")
    change(path)
    for attempt in (
        lambda: ledger.charge(constant("0.1"), query="second"),
        lambda: ledger.check(constant("0.1"), query="second"),
        lambda: ledger.record_release(charge, digest="0" * 64, privacy_label="private"),
        lambda: ledger.record_failure(charge, kind="KeyboardInterrupt"),
        ledger.spent,
    ):
        with pytest.raises(LedgerError, match=told):
            attempt()
    ledger.close()


@pytest.mark.parametrize("change", [deleted, folder_replaced])
def test_two_sessions_cannot_spend_the_budget_twice_by_a_ledger_made_anew(path, change) -> None:
    first = opened(path)
    change(path)
    second = opened(path)
    second.charge(SPEND, query="q")
    with pytest.raises(LedgerError, match=r"Nothing was drawn.*open a new session"):
        first.charge(SPEND, query="q")
    first.close()
    second.close()


def test_a_link_that_leads_elsewhere_is_noticed_and_one_that_stays_is_none_of_our_business(path, tmp_path) -> None:
    opened(path).close()
    other = tmp_path / "books" / "other"
    opened(other).close()
    link = tmp_path / "link"
    link.symlink_to(path)
    ledger = opened(link)
    ledger.charge(constant("0.1"), query="q")
    link.unlink()
    link.symlink_to(other)
    with pytest.raises(LedgerError, match="was replaced while it was open"):
        ledger.charge(constant("0.1"), query="q")
    link.unlink()
    link.symlink_to(path)
    ledger.charge(constant("0.1"), query="q")
    ledger.close()


def test_the_log_of_a_linked_ledger_is_watched_where_it_really_is(path, tmp_path) -> None:
    link = tmp_path / "link"
    link.symlink_to(path)
    ledger = opened(link)
    ledger.charge(constant("0.1"), query="q")
    log_deleted(path)
    with pytest.raises(LedgerError, match="l-wal is gone"):
        ledger.charge(constant("0.1"), query="q")
    ledger.close()


def test_a_ledger_replaced_while_its_charge_is_committed_lets_nothing_be_drawn(path, monkeypatch) -> None:
    ledger = opened(path)
    append = ledger._chain.append

    def replaced_meanwhile(kind, body):
        event = append(kind, body)
        replaced_by_a_new_ledger(path)
        return event

    monkeypatch.setattr(ledger._chain, "append", replaced_meanwhile)
    with pytest.raises(LedgerError, match="was replaced"):
        ledger.charge(SPEND, query="q")
    ledger.close()


def test_a_relative_path_means_the_same_file_after_a_change_of_folder(path, monkeypatch) -> None:
    monkeypatch.chdir(path.parent)
    ledger = opened("l")
    monkeypatch.chdir(path.parent.parent)
    ledger.charge(SPEND, query="q")
    ledger.close()
    again = opened(path)
    assert again.spent() == SPEND
    again.close()


def test_no_name_makes_a_ledger_that_only_looks_kept(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    opened(":memory:").close()
    assert (tmp_path / ":memory:").is_file()
    with pytest.raises(LedgerError):
        opened("")


def test_many_sessions_that_come_and_go_leave_an_open_ledger_where_it_is(path) -> None:
    ledger = opened(path)
    for _ in range(4):
        other = opened(path)
        other.charge(constant("0.01"), query="q")
        other.settle()
        other.close()
        ledger.charge(constant("0.01"), query="q")
    ledger.close()


def without_lock_files(folder: Path) -> Path:
    """A copy of a ledger with a charge in its log, in a folder where SQLite cannot make the log's index, as on a read-only disk."""
    folder.mkdir()
    with closing(opened(folder.with_name("original"))) as ledger:
        ledger.charge(SPEND, query="q")
        for end in ("", "-wal"):
            shutil.copy(folder.with_name(f"original{end}"), folder / f"copy{end}")
    (folder / "copy-shm").symlink_to("nowhere/index")
    assert (folder / "copy-wal").stat().st_size > 0
    return folder / "copy"


@pytest.mark.parametrize("linked", [False, True], ids=["itself", "by a link"])
def test_a_charge_that_is_only_in_the_log_is_never_left_out_where_the_log_cannot_be_read(tmp_path, linked) -> None:
    path = without_lock_files(tmp_path / "disk")
    if linked:
        (tmp_path / "link").symlink_to(path)
        path = tmp_path / "link"
    with pytest.raises(LedgerError, match="read"):
        Ledger.existing(path)


@pytest.mark.parametrize("emptied", [False, True], ids=["no log", "an empty log"])
def test_a_ledger_whose_log_was_written_back_is_read_without_lock_files(tmp_path, emptied) -> None:
    path = tmp_path / "whole"
    with closing(opened(path)) as ledger:
        ledger.charge(SPEND, query="q")
    (tmp_path / "whole-shm").symlink_to("nowhere/index")
    if emptied:
        (tmp_path / "whole-wal").touch()
    with closing(Ledger.existing(path)) as ledger:
        assert ledger.spent() == SPEND


def test_a_journal_that_was_not_rolled_back_counts_as_unread(tmp_path) -> None:
    path = tmp_path / "whole"
    opened(path).close()
    assert not unread(path)
    (tmp_path / "whole-journal").write_bytes(b"hot")
    assert unread(path)
