"""A clock that jumps: the order of the books, what is spent and what is admitted do not depend on it."""

from datetime import UTC, datetime, timedelta

import pytest

from build import generous, question, records, session
from recordwise.errors import BudgetError
from recordwise.ledger import chain as books
from recordwise.ledger.ledger import Ledger
from recordwise.policy import constant
from recordwise.release.verify import verify

START = datetime(2026, 3, 29, 2, 30, tzinfo=UTC)
JUMPS = [0, -3600, -86400 * 400, 7200, 7200, 0, -1, 86400 * 3650]


class JumpingClock:
    """Says another time at each call, mostly an earlier one."""

    def __init__(self) -> None:
        self.asked = 0

    def now(self, zone: object) -> datetime:
        assert zone is UTC
        self.asked += 1
        return START + timedelta(seconds=JUMPS[self.asked % len(JUMPS)] - self.asked)


@pytest.fixture
def clock(monkeypatch) -> JumpingClock:
    jumping = JumpingClock()
    monkeypatch.setattr(books, "datetime", jumping)
    return jumping


def test_charges_keep_their_order_and_their_sum_when_the_clock_jumps_back(tmp_path, clock) -> None:
    ledger = Ledger(tmp_path / "l", dataset="d", budget=constant(1))
    for number in range(10):
        done = ledger.charge(constant("1/10"), query=f"q{number}")
        ledger.record_release(done, digest="d", privacy_label="private")
    with pytest.raises(BudgetError):
        ledger.charge(constant("1/10"), query="one too many")
    history = ledger.history()
    assert [event.sequence for event in history] == list(range(1, 22))
    assert [event.body["query"] for event in history if event.kind == "charged"] == [f"q{n}" for n in range(10)]
    assert sorted(event.time for event in history) != [event.time for event in history]
    assert ledger.spent() == constant(1)
    ledger.close()
    assert verify(tmp_path / "l") == []


@pytest.mark.costly
def test_a_release_made_before_the_last_one_by_the_clock_is_verified_all_the_same(tmp_path, clock) -> None:
    with session(records(), tmp_path / "l", generous()) as opened:
        for name in ("a", "b", "c"):
            opened.run(question()).save(tmp_path / name)
    assert verify(tmp_path / "l", against=[tmp_path / name for name in ("a", "b", "c")]) == []


def test_waiting_for_a_ledger_is_not_measured_with_the_clock_that_jumps(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("time.time", lambda: pytest.fail("the wall clock was asked how long something took"))
    with session(records(), tmp_path / "l", generous()) as opened:
        opened.run(question()).save(tmp_path / "out")
    assert verify(tmp_path / "l", against=[tmp_path / "out"]) == []
