"""Reserves and amendments: no sequence of charges, revisions, amendments and crashes exceeds what is stated."""

import json
import sqlite3
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from build import few
from recordwise.errors import BudgetError, LedgerError, ParameterError, UnknownFormError
from recordwise.ledger import ledger as module
from recordwise.ledger.chain import Chain
from recordwise.ledger.entries import NOT_IN_ADVANCE, WITH_RESERVES, periods_of, series_name
from recordwise.ledger.ledger import FORMAT, Ledger
from recordwise.policy import Policy, constant, gaussian_sum
from recordwise.policy.series import Series
from recordwise.release.verify import verify


def series(period: str, budget: Policy, revision: int = 0) -> Series:
    return Series(name="s", period=period, revision=revision, every_period=budget)


def opened(path: Path, budget: Policy, *, revision: int = 0, period: str = "2025", **more: Any) -> Ledger:
    return Ledger(path, dataset="d", budget=budget, series=series(period, budget, revision), **more)


def charge(path: Path, policy: Policy, budget: Policy, **more: Any) -> None:
    ledger = opened(path, budget, **more)
    try:
        ledger.charge(policy, query="q")
    finally:
        ledger.close()


def amend(path: Path, budget: Policy, reason: str = "more is asked for", **more: Any) -> None:
    opened(path, budget, amendment=reason, **more).close()


@pytest.mark.theorem("T-RESERVE")
def test_only_a_revision_may_use_what_a_charge_reserved(tmp_path: Path) -> None:
    path, budget, cost = tmp_path / "l", constant(1) + gaussian_sum("emp", sigma=10) * 2, gaussian_sum("emp", sigma=10)
    charge(path, cost, budget, reserve=1)
    with pytest.raises(BudgetError, match="1 is left"):
        charge(path, cost * Fraction(1, 1000), budget)
    charge(path, constant(1), budget)
    charge(path, cost, budget, revision=1)
    with pytest.raises(BudgetError):
        charge(path, cost * Fraction(1, 1000), budget, revision=1)
    ledger = Ledger.existing(path)
    assert [event.kind for event in ledger.history()] == [
        "opened",
        "opened",
        "charged",
        "reserved",
        "charged",
        "charged",
    ]
    assert ledger.history()[-1].body["uses"] == 4
    ledger.close()
    assert verify(path) == []


def test_what_a_revision_does_not_need_is_free_again(tmp_path: Path) -> None:
    path, budget = tmp_path / "l", constant(1)
    charge(path, constant("0.5"), budget, reserve=1)
    charge(path, constant("0.1"), budget, revision=1)
    charge(path, constant("0.4"), budget)
    with pytest.raises(BudgetError):
        charge(path, constant("0.1"), budget, revision=2)


def test_a_revision_uses_the_reserve_of_its_own_release_and_no_other(tmp_path: Path) -> None:
    path, budget = tmp_path / "l", constant(10)
    for name, cost in (("large", 4), ("small", 1)):
        ledger = opened(path, budget, reserve=1)
        ledger.charge(constant(cost), query=name)
        ledger.close()
    for revision in (1, 2):
        ledger = opened(path, budget, revision=revision)
        if revision == 1:
            ledger.charge(constant(1), query="small")
            ledger.close()
            continue
        with pytest.raises(BudgetError, match="0 is left"):
            ledger.charge(constant(1), query="small")
        with pytest.raises(BudgetError, match="0 is left"):
            charge(path, constant(1), budget)
        ledger.charge(constant(4), query="large")
        ledger.close()
    assert verify(path) == []


def test_a_first_charge_is_refused_if_its_reserve_does_not_fit(tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match=r"needs loss 1.2 and 1 is left"):
        charge(tmp_path / "l", constant("0.6"), constant(1), reserve=1)
    charge(tmp_path / "l", constant("0.6"), constant(1))
    assert verify(tmp_path / "l") == []


def test_each_period_has_reserves_of_its_own(tmp_path: Path) -> None:
    path, budget = tmp_path / "l", constant(1)
    charge(path, constant("0.5"), budget, reserve=1)
    charge(path, constant("0.5"), budget, period="2026")
    charge(path, constant("0.5"), budget, period="2026", revision=1)
    charge(path, constant("0.5"), budget, revision=1)
    assert [each.reserved for each in periods_of(Ledger.existing(path).history())] == [Policy(), Policy()]


class Same:
    """A release that is recognized."""

    digest = "2:same"

    def matches_charge(self, charge: Any) -> bool:
        return False


def test_outside_a_series_the_same_release_again_is_its_revision(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l", dataset="d", budget=constant(1), reserve=1)
    ledger.charge(constant("0.5"), query="q", release=Same())
    with pytest.raises(BudgetError):
        ledger.charge(constant("0.5"), query="other")
    ledger.charge(constant("0.5"), query="q", release=Same())
    ledger.close()
    assert verify(tmp_path / "l") == []


@pytest.mark.theorem("T-AMEND")
def test_an_amendment_states_what_was_promised_and_old_promises_stay(tmp_path: Path) -> None:
    path = tmp_path / "l"
    charge(path, constant("0.9"), constant(1))
    with pytest.raises(LedgerError, match="ledger amend PLAN --reason"):
        charge(path, constant("0.9"), constant(2))
    amend(path, constant(2))
    charge(path, constant("0.9"), constant(2))
    amend(path, constant(3), "and again")
    (state,) = periods_of(Ledger.existing(path).history())
    text = state.declared_text()
    assert text.startswith("promised 1 until 20")
    assert "2 allowed from 20" in text
    assert "after 1 release (more is asked for)" in text
    assert "3 allowed since, after 2 releases (and again)" in text
    assert text.endswith(NOT_IN_ADVANCE)
    assert not state.at_start
    assert NOT_IN_ADVANCE in opened(path, constant(3)).statement().guarantee
    assert verify(path) == []


def test_an_amendment_is_never_below_what_is_spent_and_reserved(tmp_path: Path) -> None:
    path = tmp_path / "l"
    charge(path, constant("0.5"), constant(2), reserve=2)
    for low in ("0.4", "1.4"):
        with pytest.raises(BudgetError, match="what was charged and reserved"):
            amend(path, constant(low))
    amend(path, constant("1.5"))
    charge(path, constant("0.5"), constant("1.5"), revision=1)
    assert verify(path) == []


@pytest.mark.parametrize(
    ("budget", "reason", "error"),
    [(constant(1), "why", LedgerError), (constant(2), " ", ParameterError), (constant(2), "a\nb", ParameterError)],
)
def test_an_amendment_needs_another_budget_and_a_line_of_reason(tmp_path: Path, budget, reason, error) -> None:
    path = tmp_path / "l"
    charge(path, constant("0.5"), constant(1))
    before = Ledger.existing(path).history()
    with pytest.raises(error):
        amend(path, budget, reason)
    assert Ledger.existing(path).history() == before


def test_nothing_is_amended_before_the_first_charge(tmp_path: Path) -> None:
    opened(tmp_path / "l", constant(1)).close()
    with pytest.raises(LedgerError, match="has no charge for 2025 yet"):
        amend(tmp_path / "l", constant(2))


def test_earlier_versions_refuse_a_ledger_with_reserves_or_amendments(tmp_path: Path, monkeypatch) -> None:
    """They know the formats 1 and 2, and compare the series before they open a new period of an amended one."""
    paths = [tmp_path / "reserved", tmp_path / "amended"]
    charge(paths[0], constant("0.1"), constant(1), reserve=1)
    for period in ("2024", "2025"):
        charge(paths[1], constant("0.1"), constant(1), period=period)
    amend(paths[1], constant(2))
    charge(paths[1], constant("0.1"), constant(1), period="2026")
    assert series_name(Ledger.existing(paths[1]).history()) == "s"
    assert verify(paths[1]) == []

    def as_before(terms: dict[str, Any]) -> None:
        if terms.get("format") not in (1, 2):
            raise UnknownFormError(what="ledger format", found=terms.get("format"))

    monkeypatch.setattr(module, "check_format", as_before)
    for path, budget in zip(paths, (constant(1), constant(2))):
        with pytest.raises(UnknownFormError):
            Ledger.existing(path)
        with pytest.raises(UnknownFormError):
            opened(path, budget)
    monkeypatch.setattr(module, "series_of", lambda terms: terms.get("series"))
    with pytest.raises(LedgerError, match="another series"):
        opened(paths[1], constant(1), period="2027")


def test_a_ledger_without_either_has_the_format_that_it_had(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l", dataset="d", budget=constant(1))
    ledger.charge(constant("0.1"), query="q")
    assert {event.body["format"] for event in ledger.history() if event.kind == "opened"} == {FORMAT}
    assert WITH_RESERVES == 3


def rewritten(path: Path, kind: str, changed: Any) -> None:
    """Change the bodies of some events, and their chain with them, as a forger with the whole file could."""
    from recordwise.ledger.chain import GENESIS, canonical, link_digest

    connection = sqlite3.connect(path)
    connection.executescript("DROP TRIGGER no_update;")
    previous = GENESIS
    for sequence, at, own, body in connection.execute("SELECT sequence, time, kind, body FROM events").fetchall():
        text = canonical(changed(json.loads(body))) if own == kind else body
        previous = link_digest(previous, sequence, at, own, text)
        connection.execute("UPDATE events SET body = ?, digest = ? WHERE sequence = ?", (text, previous, sequence))
    connection.execute("CREATE TRIGGER no_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'append only'); END")
    connection.commit()
    connection.close()


def test_verify_finds_an_amendment_that_hides_the_old_budget(tmp_path: Path) -> None:
    path = tmp_path / "l"
    charge(path, constant("0.9"), constant(1))
    amend(path, constant(2))
    rewritten(path, "opened", lambda body: {name: value for name, value in body.items() if name != "amendments"})
    assert any("changes the terms of earlier charges" in each for each in verify(path))


def test_verify_finds_a_charge_that_used_a_reserve_without_being_a_revision(tmp_path: Path) -> None:
    path = tmp_path / "l"
    charge(path, constant("0.5"), constant(1), reserve=1)
    charge(path, constant("0.5"), constant(1), revision=1)
    rewritten(path, "charged", lambda body: {name: value for name, value in body.items() if name != "uses"})
    assert any("next to the reserve for revisions" in each for each in verify(path))


def test_a_crash_between_a_charge_and_its_reserve_leaves_neither(tmp_path: Path, monkeypatch) -> None:
    path, append = tmp_path / "l", Chain.append

    def dying(self: Chain, kind: str, body: dict[str, Any]) -> Any:
        if kind == "reserved":
            raise KeyboardInterrupt
        return append(self, kind, body)

    monkeypatch.setattr(Chain, "append", dying)
    with pytest.raises(KeyboardInterrupt):
        charge(path, constant("0.5"), constant(1), reserve=1)
    monkeypatch.undo()
    assert [event.kind for event in Ledger.existing(path).history()] == ["opened"]
    charge(path, constant("0.5"), constant(1), reserve=1)
    assert verify(path) == []


@dataclass
class Books:
    """The reference: budgets, sums and reserves of one period, kept by hand in exact numbers."""

    budget: Fraction
    spent: Fraction = Fraction(0)
    reserves: list[Fraction] = field(default_factory=list)
    charges: int = 0

    def admit(self, cost: Fraction, *, revision: bool, reserve: int) -> "Books | None":
        kept = self.reserves[1:] if revision else [*self.reserves, *[cost] * reserve]
        fits = self.spent + cost + sum(kept) <= self.budget
        return replace(self, spent=self.spent + cost, reserves=kept, charges=self.charges + 1) if fits else None


@pytest.mark.theorem("T-RESERVE")
@pytest.mark.parametrize("seed", few(range(4), 2))
@pytest.mark.costly
def test_no_sequence_exceeds_what_is_stated(tmp_path: Path, seed: int, monkeypatch) -> None:
    """Charges, revisions, reserves, amendments and crashes at random, against books that are kept by hand.

    After every step the sum and the reserves are those of the books, within the budget in force, and a revision at the cost of a
    reserve is never refused. Each seed meets every kind of step.
    """
    chance, path, append = Random(seed), tmp_path / "l", Chain.append
    books, met = Books(Fraction(2)), set()
    for _ in range(45):
        step, cost, reserve = chance.choice(STEPS), Fraction(chance.randint(1, 12), 20), chance.choice((0, 0, 1, 2))
        budget, then = constant(books.budget), None
        if step == "amend":
            new = books.budget + Fraction(chance.randint(-10, 12), 20)
            if books.charges and new > 0 and new != books.budget:
                fits = books.spent + sum(books.reserves) <= new
                try:
                    amend(path, constant(new))
                    assert fits
                    books = replace(books, budget=new)
                except BudgetError:
                    assert not fits
                met.add((step, fits))
        else:
            revision = step == "revise" and books.charges > 0
            cost = books.reserves[0] if revision and books.reserves and chance.random() < 0.5 else cost
            then = books.admit(cost, revision=revision, reserve=reserve)
            crash = chance.random() < 0.15
            if crash:
                monkeypatch.setattr(Chain, "append", dying_after(append, chance.randint(0, 1)))
            try:
                charge(path, constant(cost), budget, revision=int(revision), reserve=reserve)
                assert then is not None
                books = then
            except BudgetError:
                assert then is None
                assert not (revision and books.reserves and books.reserves[0] == cost)
            except KeyboardInterrupt:
                assert crash
            monkeypatch.undo()
            met.add((step, then is not None))
        ledger = opened(path, constant(books.budget))
        assert (ledger.spent(), ledger.reserved()) == (constant(books.spent), constant(sum(books.reserves)))
        assert books.spent + sum(books.reserves) <= books.budget
        ledger.close()
    assert verify(path) == []
    assert met >= {("charge", True), ("charge", False), ("revise", True), ("amend", True), ("amend", False)}


STEPS = ("charge", "charge", "revise", "revise", "amend")


def dying_after(append: Any, times: int) -> Any:
    """An append that is interrupted after some that went well."""
    done = [0]

    def dying(self: Chain, kind: str, body: dict[str, Any]) -> Any:
        if done[0] == times and kind != "opened":
            raise KeyboardInterrupt
        done[0] += kind != "opened"
        return append(self, kind, body)

    return dying
