"""The budget is a function: a charge is admitted only if it stays below it for every possible record."""

import json
import math
import os
import threading
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordwise.errors import BudgetError, LedgerError, ParameterError, UnknownFormError
from recordwise.exact.functions import x
from recordwise.ledger.ledger import FIXED_IN_ADVANCE, WITHIN_BUDGET, Ledger
from recordwise.mechanisms import Clamped, GeneralizedGaussian
from recordwise.policy import ConditionColumn, Policy, Verdict, among, by, constant, gaussian_sum, split
from recordwise.policy.constructors import additive_table
from recordwise.release.verify import verify


def memory(budget: Policy | None = None) -> Ledger:
    return Ledger(None, dataset="d", budget=budget)


def test_a_budget_is_spent_to_the_last_fraction_and_not_beyond() -> None:
    ledger = memory(constant("0.3"))
    for _ in range(3):
        ledger.charge(constant("0.1"), query="q")
    with pytest.raises(BudgetError):
        ledger.charge(constant("1/1000000000000"), query="q")
    assert ledger.spent() == constant("0.3")


def test_a_ledger_that_is_opened_again_knows_what_was_spent(tmp_path) -> None:
    for spent in ("0.1", "0.2"):
        ledger = Ledger(tmp_path / "l.ledger", dataset="d", budget=constant("0.25"))
        ledger.charge(constant("0.1"), query="q")
        assert ledger.spent() == constant(spent)
        ledger.close()
    ledger = Ledger(tmp_path / "l.ledger", dataset="d", budget=constant("0.25"))
    assert ledger.spent() == constant("0.2")
    with pytest.raises(BudgetError):
        ledger.charge(constant("0.1"), query="q")
    ledger.close()


def test_a_refusal_names_a_witness_that_exceeds_and_what_is_left_and_writes_nothing() -> None:
    budget = gaussian_sum("emp", sigma=10)
    ledger = memory(budget)
    ledger.charge(gaussian_sum("emp", sigma=20), query="first")
    before = ledger.history()
    asked = gaussian_sum("emp", sigma=11)
    with pytest.raises(BudgetError, match="does not cover second: for emp=") as refused:
        ledger.charge(asked, query="second")
    error = refused.value
    assert error.witness is not None
    assert error.needed == asked.loss(error.witness)
    assert error.needed > error.left > 0
    assert "Nothing was spent" in str(error)
    assert ledger.history() == before


def test_a_query_that_is_cheap_for_most_is_refused_for_the_one_group_it_hurts() -> None:
    mining = among(ConditionColumn("industry"), ["Mining"])
    ledger = memory(constant(1))
    with pytest.raises(BudgetError) as refused:
        ledger.charge(constant("0.5") + constant("0.6").where(mining), query="q")
    assert refused.value.witness == {"industry": "Mining"}


def test_a_witness_holds_every_column_of_the_budget_even_those_whose_terms_cancel() -> None:
    ledger = memory(gaussian_sum("emp", sigma=1) * 10 + gaussian_sum("pay", sigma=1))
    ledger.charge(gaussian_sum("pay", sigma=1), query="first")
    with pytest.raises(BudgetError) as refused:
        ledger.charge(gaussian_sum("emp", sigma=1) * 11, query="second")
    assert set(refused.value.witness or {}) == {"emp", "pay"}
    grouped = memory(constant(1) + constant(1).where(among(ConditionColumn("s"), ["a"])))
    grouped.charge(constant(1).where(among(ConditionColumn("s"), ["a"])), query="first")
    with pytest.raises(BudgetError, match="for any s it needs") as refused:
        grouped.charge(constant(2), query="second")
    assert (refused.value.needed, refused.value.left) == (2.0, 1.0)


def test_a_policy_without_a_promise_for_some_group_fits_no_budget() -> None:
    ledger = memory(split("0.2", {"emp": 5}))
    with pytest.raises(BudgetError) as refused:
        ledger.charge(split("0.1", {"emp": by("industry", {"Mining": 5})}), query="q")
    assert math.isinf(refused.value.needed)


def test_checking_says_what_charging_would_say_and_writes_nothing() -> None:
    ledger = memory(constant(1))
    ledger.check(constant(1), query="q")
    with pytest.raises(BudgetError):
        ledger.check(constant(2), query="q")
    assert [event.kind for event in ledger.history()] == ["opened"]


def test_without_a_budget_everything_is_admitted_and_the_books_say_what_that_means() -> None:
    ledger = memory()
    ledger.charge(constant(10**6), query="q")
    assert ledger.history()[0].body["guarantee"] == FIXED_IN_ADVANCE
    assert memory(constant(1)).history()[0].body["guarantee"] == WITHIN_BUDGET


@settings(max_examples=40, deadline=None)
@given(st.lists(st.fractions(min_value="1/50", max_value=1, max_denominator=50), max_size=12))
@pytest.mark.costly
def test_what_was_admitted_is_the_sum_of_what_was_charged_and_never_above_the_budget(rhos: list) -> None:
    budget, admitted = constant(2), Policy()
    ledger = memory(budget)
    for rho in rhos:
        fits = bool(budget.dominates(admitted + constant(rho)))
        try:
            ledger.charge(constant(rho), query="q")
            assert fits
            admitted += constant(rho)
        except BudgetError:
            assert not fits
        assert ledger.spent() == admitted


@pytest.mark.parametrize(
    "other, named",
    [
        ({"dataset": "other"}, "dataset"),
        ({"schema": {"unit": "key"}}, "schema"),
        ({"budget": constant(2)}, "budget"),
        ({"budget": None}, "budget"),
    ],
)
def test_a_ledger_refuses_another_dataset_schema_or_budget(tmp_path, other: dict, named: str) -> None:
    own = {"dataset": "d", "schema": {"unit": "id"}, "budget": constant(1)}
    first, second = Ledger(tmp_path / "l", **own), Ledger(tmp_path / "l", **(own | other))
    first.charge(constant("0.1"), query="q")
    for attempt in (second.charge, second.check):
        with pytest.raises(LedgerError, match=f"was opened for another {named}"):
            attempt(constant("0.1"), query="q")
    with pytest.raises(LedgerError, match=f"was opened for another {named}"):
        Ledger(tmp_path / "l", **(own | other))
    first.charge(constant("0.1"), query="q")
    first.close(), second.close()


@pytest.mark.parametrize("other", [{"dataset": "other"}, {"schema": {"unit": "key"}}, {"budget": constant(2)}])
def test_a_ledger_is_bound_by_its_first_charge_and_not_by_its_opening(tmp_path, other: dict) -> None:
    own = {"dataset": "d", "schema": {"unit": "id"}, "budget": constant(1)}
    ledger = Ledger(tmp_path / "l", **own)
    with pytest.raises(BudgetError):
        ledger.charge(constant(3), query="q")
    ledger.close()
    corrected = Ledger(tmp_path / "l", **(own | other))
    corrected.charge(constant("0.1"), query="q")
    corrected.close()
    with pytest.raises(LedgerError, match="was opened for another"):
        Ledger(tmp_path / "l", **own)
    assert verify(tmp_path / "l") == []


SCHEMA: dict[str, Any] = {
    "unit": "id",
    "firm": None,
    "measures": [{"name": "emp", "step": "1", "bound": "1000"}],
    "columns": [{"name": "county", "type": "text", "null": "refuse"}],
}
PAY = {"name": "pay", "step": "1/100", "bound": "5000"}
NAICS = {"name": "naics", "type": "text", "null": "category"}


def with_schema(path, schema: dict) -> Ledger:
    return Ledger(path, dataset="d", schema=schema, budget=constant(1))


def test_a_schema_grows_by_new_names_and_a_charge_may_use_fewer(tmp_path) -> None:
    path = tmp_path / "l"
    wider = SCHEMA | {"firm": "firm", "measures": [*SCHEMA["measures"], PAY], "columns": [NAICS, *SCHEMA["columns"]]}
    for schema in (SCHEMA, wider, SCHEMA, SCHEMA | {"measures": []}):
        ledger = with_schema(path, schema)
        ledger.charge(constant("0.1"), query="q")
        ledger.close()
    ledger = Ledger.existing(path)
    events = ledger.history()
    ledger.close()
    assert [event.kind for event in events] == ["opened", "charged", "opened", "charged", "charged", "charged"]
    grown = events[2].body["schema"]
    assert [each["name"] for part in ("measures", "columns") for each in grown[part]] == [
        "emp",
        "pay",
        "county",
        "naics",
    ]
    assert (grown["unit"], grown["firm"]) == ("id", "firm")
    assert verify(path) == []


@pytest.mark.parametrize(
    "change, named",
    [
        ({"measures": [SCHEMA["measures"][0] | {"step": "1/2"}]}, "emp"),
        ({"measures": [SCHEMA["measures"][0] | {"bound": "2000"}]}, "emp"),
        ({"columns": [SCHEMA["columns"][0] | {"type": "integer"}]}, "county"),
        ({"columns": [SCHEMA["columns"][0] | {"null": "category"}]}, "county"),
        ({"measures": [], "columns": [{"name": "emp", "type": "integer", "null": "refuse"}]}, "emp"),
        ({"measures": [{"name": "Emp", "step": "1", "bound": "1000"}]}, "emp"),
        ({"firm": "county", "columns": []}, "county"),
        ({"unit": "other"}, "the unit"),
        ({"measures": "emp"}, "everything"),
    ],
)
def test_a_name_that_was_charged_keeps_its_meaning(tmp_path, change: dict, named: str) -> None:
    ledger = with_schema(tmp_path / "l", SCHEMA)
    ledger.charge(constant("0.1"), query="q")
    ledger.close()
    with pytest.raises(LedgerError, match=f"was opened for another schema: {named}"):
        with_schema(tmp_path / "l", SCHEMA | change)


def test_a_name_not_charged_yet_is_bound_by_nobody(tmp_path) -> None:
    ledger = with_schema(tmp_path / "l", SCHEMA)
    ledger.charge(constant("0.1"), query="q", schema=SCHEMA | {"columns": []})
    ledger.close()
    ledger = with_schema(tmp_path / "l", SCHEMA | {"columns": [SCHEMA["columns"][0] | {"type": "integer"}]})
    ledger.charge(constant("0.1"), query="q")
    ledger.close()
    assert verify(tmp_path / "l") == []


def test_terms_changed_after_a_charge_are_found_though_the_chain_is_whole(tmp_path) -> None:
    ledger = with_schema(tmp_path / "l", SCHEMA)
    ledger.charge(constant("0.1"), query="q")
    terms = ledger.history()[0].body
    changed = SCHEMA | {"measures": [PAY | {"name": "emp"}]}
    with ledger._chain.transaction():
        ledger._chain.append("opened", terms | {"budget": constant(2).to_json()})
        ledger._chain.append("opened", terms | {"schema": changed})
        body = {"query": "q", "policy": constant(0).to_json(), "spent": ledger.spent().to_json(), "schema": changed}
        ledger._chain.append("charged", body)
        ledger._chain.append("opened", terms | {"schema": SCHEMA | {"measures": [*SCHEMA["measures"], PAY]}})
    ledger.close()
    assert [problem.split(" ")[1] for problem in verify(tmp_path / "l")] == ["3", "4", "5"]


def test_every_look_is_noted_and_every_ledger_on_the_file_knows(tmp_path) -> None:
    first, second = Ledger(tmp_path / "l", dataset="d"), Ledger(tmp_path / "l", dataset="d")
    assert (first.looks(), second.looks()) == ({}, {})
    first.look("owner.view")
    second.look("preflight", plan="ab" * 32)
    second.look("preflight", plan="ab" * 32)
    told = {"owner.view": 1, "preflight": 2}
    assert first.looks() == second.looks() == first.looks() == told
    assert [event.kind for event in second.history()] == ["opened", "looked", "looked", "looked"]
    charge = second.charge(constant(1), query="q")
    first.look("owner.view")
    assert second.looks(before=charge.sequence) == told
    assert second.looks() == told | {"owner.view": 2}
    first.close(), second.close()
    again = Ledger(tmp_path / "l", dataset="d")
    assert again.looks() == told | {"owner.view": 2}
    again.close()
    assert verify(tmp_path / "l") == []


def test_a_look_says_no_more_than_its_command_and_its_plan(tmp_path) -> None:
    with pytest.raises(ParameterError, match="is not one that looks"):
        Ledger(None, dataset="d").look("12 firms in 001")
    ledger = Ledger(tmp_path / "l", dataset="d")
    for body in (
        {"command": "preflight", "records": 12},
        {"command": "preflight", "plan": "12 firms"},
        {"command": "=12"},
    ):
        with ledger._chain.transaction():
            ledger._chain.append("looked", body)
    ledger.close()
    told = verify(tmp_path / "l")
    assert [each.split()[1] for each in told] == ["2", "3", "4"]
    assert all("says more about a look" in each for each in told)


def test_looks_of_earlier_versions_count(tmp_path) -> None:
    """The first look of any kind, noted once without a word, and a preflight, which was no look then."""
    ledger = Ledger(tmp_path / "l", dataset="d")
    with ledger._chain.transaction():
        ledger._chain.append("looked", {})
        ledger._chain.append("preflight", {"plan": "cd" * 32})
    ledger.look("preflight")
    assert ledger.looks() == {"not stated": 1, "preflight": 2}
    ledger.close()
    assert verify(tmp_path / "l") == []


def test_a_charge_is_closed_once_even_if_an_interrupt_comes_between(tmp_path) -> None:
    ledger = Ledger(tmp_path / "l", dataset="d")
    charge = ledger.charge(constant(1), query="q")
    noted = ledger.record_release(charge, digest="0" * 64, privacy_label="private")
    assert ledger.record_failure(charge, kind="KeyboardInterrupt") == noted
    assert [event.kind for event in ledger.history()] == ["opened", "charged", "released"]
    assert verify(tmp_path / "l") == []


def test_a_ledger_of_an_unknown_format_or_another_program_is_refused(tmp_path) -> None:
    import sqlite3

    ledger = Ledger(tmp_path / "l", dataset="d")
    body = ledger.history()[0].body | {"format": 99}
    ledger.close()
    connection = sqlite3.connect(tmp_path / "l")
    connection.execute("DROP TRIGGER no_update")
    connection.execute("UPDATE events SET body = ?", (json.dumps(body),))
    connection.commit()
    connection.close()
    with pytest.raises(UnknownFormError, match="99"):
        Ledger(tmp_path / "l", dataset="d")
    connection = sqlite3.connect(tmp_path / "theirs")
    connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()
    with pytest.raises(LedgerError, match="another program"):
        Ledger(tmp_path / "theirs", dataset="d")
    (tmp_path / "text").write_text("no database at all, but long enough to have a header of a hundred bytes" * 3)
    with pytest.raises(LedgerError, match="not a SQLite file"):
        Ledger(tmp_path / "text", dataset="d")


def test_threads_of_one_process_share_a_ledger_without_losing_a_charge(tmp_path) -> None:
    ledger = Ledger(tmp_path / "l", dataset="d", budget=constant(1))
    admitted: list[int] = []

    def spend() -> None:
        while True:
            try:
                admitted.append(ledger.charge(constant("1/40"), query="q").sequence)
            except BudgetError:
                return

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(admitted) == list(range(2, 42))


def test_a_ledger_carried_over_a_fork_is_refused_in_the_child(tmp_path) -> None:
    ledger = Ledger(tmp_path / "l", dataset="d")
    ledger._chain._process = os.getpid() + 1
    with pytest.raises(LedgerError, match="another process"):
        ledger.charge(constant(1), query="q")


def test_the_books_take_no_update_and_no_delete(tmp_path) -> None:
    import sqlite3

    Ledger(tmp_path / "l", dataset="d").close()
    connection = sqlite3.connect(tmp_path / "l")
    for statement in ("UPDATE events SET kind = 'failed'", "DELETE FROM events"):
        with pytest.raises(sqlite3.IntegrityError, match="append only"):
            connection.execute(statement)
    connection.close()


def test_a_charge_that_is_neither_proved_to_fit_nor_refuted_is_refused_and_not_written(monkeypatch) -> None:
    ledger = Ledger(None, dataset="d", budget=constant(1))
    undecided = Verdict(answer="undecided", reason="rho: the time limit was reached; this counts as a refusal")
    monkeypatch.setattr(Policy, "dominates", lambda *_, **__: undecided)
    with pytest.raises(BudgetError, match="time limit"):
        ledger.charge(constant("0.1"), query="q")
    assert ledger.spent() == Policy()


def test_what_was_rolled_back_is_not_taken_for_checked(tmp_path) -> None:
    ledger = Ledger(tmp_path / "l", dataset="d")
    ledger.charge(constant(1), query="first")
    body = ledger.history()[-1].body

    def interrupted() -> None:
        with ledger._chain.transaction():
            for _ in range(3):
                ledger._chain.append("charged", body)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    ledger.charge(constant(1), query="second")
    ledger.close()
    assert verify(tmp_path / "l") == []


def test_a_budget_by_a_mechanism_stays_the_one_a_ledger_was_opened_with(tmp_path) -> None:
    """0.1.0 certified square-root noise by a table; the same noise is charged less today, and the promise stays what it was."""
    function, path = (x / 10) ** "1/2", tmp_path / "old.ledger"
    table = tuple((count, Fraction(count, 50)) for count in range(1, 80))
    old = additive_table("emp", function, table) + constant(2)
    first = Ledger(path, dataset="d", budget=old)
    first.charge(constant(1), query="first")
    first.close()
    noise, clamped = GeneralizedGaussian(shape="1/2", scale=10), Clamped(to=10, rho=2)
    for restated in (noise.policy("emp") + constant(2), noise.policy("emp") + clamped.policy("emp")):
        again = Ledger(path, dataset="d", budget=restated)
        assert again.budget == old != restated
        assert again.statement().budget == old.to_json()
        again.close()
    others = [
        noise.policy("emp") + constant("2.1"),
        GeneralizedGaussian(shape="1/2", scale=11).policy("emp") + constant(2),
    ]
    for other in [*others, noise.policy("pay") + constant(2), noise.policy("emp") * 2 + constant(2)]:
        with pytest.raises(LedgerError, match="another budget"):
            Ledger(path, dataset="d", budget=other)
