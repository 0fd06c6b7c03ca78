"""``recordwise ledger``: the books are shown, and what is wrong with them is found."""

import shutil
import sqlite3
from contextlib import closing

import pytest


@pytest.mark.costly
def test_the_books_are_shown(released, run, run_json):
    result = run("ledger", "show", released / "small.ledger")
    assert result.exit_code == 0
    for words in ("Ledger of 'small'", "charged", "released", "0.00125 * emp^2", "Budget"):
        assert words in result.stdout
    told = run_json("ledger", "show", released / "small.ledger")
    assert [event["kind"] for event in told["events"]] == ["opened", "charged", "released"]
    assert told["dataset"] == "small"


def test_books_in_order_are_said_to_be(released, run, run_json):
    result = run("ledger", "verify", released / "small.ledger", "--against", released / "out")
    assert result.exit_code == 0
    assert "in order and agrees with 1 release" in result.stdout
    assert run_json("ledger", "verify", released / "small.ledger")["in_order"] is True


@pytest.mark.costly
def test_several_folders_may_follow(released, run):
    run("release", released / "plan.toml", "--out", released / "second", "--yes", "--again")
    result = run("ledger", "verify", released / "small.ledger", "--against", released / "out", released / "second")
    assert "agrees with 2 releases" in result.stdout
    result = run("ledger", "verify", released / "small.ledger", "--against", released / "out", released / "nowhere")
    assert result.exit_code == 2


def test_a_changed_entry_is_found(released, run):
    with closing(sqlite3.connect(released / "small.ledger")) as books, books:
        books.execute("DROP TRIGGER no_update")
        books.execute("UPDATE events SET body = replace(body, 'sum_emp', 'sum_xxx') WHERE kind = 'charged'")
    books.close()
    result = run("ledger", "verify", released / "small.ledger")
    assert result.exit_code == 2
    assert "event 2 was changed" in result.stderr


def test_a_restored_old_copy_is_found_by_the_release(released, run):
    shutil.copy(released / "small.ledger", released / "old.ledger")
    run("release", released / "plan.toml", "--out", released / "second", "--yes", "--again")
    result = run("ledger", "verify", released / "old.ledger", "--against", released / "second")
    assert result.exit_code == 2
    assert "some were removed" in result.stderr


@pytest.mark.parametrize("command", ["show", "verify"])
@pytest.mark.parametrize("content", [None, b"", b"not a database at all", b"SQLite format 3\x00" + bytes(500)])
def test_what_is_no_ledger_is_refused(tmp_path, run, command, content):
    path = tmp_path / "some.ledger"
    if content is not None:
        path.write_bytes(content)
    result = run("ledger", command, path)
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr
    assert path.exists() == (content is not None)
