"""A ledger of a series: each period has its own schema and budget, and what the periods charge adds up for a unit's history."""

import pytest

from recordwise.errors import BudgetError, LedgerError, ParameterError
from recordwise.ledger.ledger import WITHIN_BUDGET, WITHIN_PERIOD, Ledger
from recordwise.ledger.periods import periods_of, series_name
from recordwise.policy import constant, gaussian_sum, split
from recordwise.policy.policy import Policy
from recordwise.policy.series import Series, history_losses, record_at
from recordwise.release.verify import verify

EVERY = gaussian_sum("emp", sigma=10)


def series(period: str, *, every: Policy | None = EVERY, **more) -> Series:
    return Series(name="county patterns", period=period, every_period=every, **more)


def schema(step: str = "1", *names: str) -> dict:
    measures = [{"name": name, "step": step, "bound": "1099511627776"} for name in ("emp", *names)]
    return {"unit": "id", "firm": None, "columns": [], "measures": measures}


def opened(path, stated: Series, form: dict | None = None) -> Ledger:
    return Ledger(
        path, dataset=f"patterns {stated.period}", schema=form or schema(), budget=stated.budget(), series=stated
    )


def charged(path, period: str, *policies: Policy, form: dict | None = None, **more) -> None:
    ledger = opened(path, series(period, **more), form)
    for policy in policies:
        ledger.charge(policy, query="emp", schema=form or schema())
    ledger.close()


def events_of(path) -> list:
    ledger = Ledger.existing(path)
    found = ledger.history()
    ledger.close()
    return found


def test_each_period_has_the_whole_budget_and_no_more(tmp_path) -> None:
    path = tmp_path / "s.ledger"
    for period in ("2025", "2026"):
        charged(path, period, EVERY * "1/2", EVERY * "1/2")
        with pytest.raises(BudgetError):
            charged(path, period, EVERY * "1/1000")
    assert verify(path) == []
    found = periods_of(events_of(path))
    assert [(each.name, each.spent, each.charges, each.at_start) for each in found] == [
        ("2025", EVERY, 2, True),
        ("2026", EVERY, 2, True),
    ]
    assert series_name(events_of(path)) == "county patterns"
    assert {event.body["guarantee"] for event in events_of(path) if event.kind == "opened"} == {WITHIN_PERIOD}


def test_periods_may_be_charged_in_turn_and_their_sums_stay_apart(tmp_path) -> None:
    path = tmp_path / "s.ledger"
    ledgers = {period: opened(path, series(period)) for period in ("2025", "2026")}
    for number in range(6):
        ledgers[("2025", "2026")[number % 2]].charge(EVERY * f"1/{number + 8}", query="q", schema=schema())
    for start, period in enumerate(ledgers):
        shares = [EVERY * f"1/{number + 8}" for number in range(start, 6, 2)]
        assert ledgers[period].spent() == sum(shares, Policy())
        ledgers[period].close()
    assert verify(path) == []


def test_the_loss_of_a_history_is_the_sum_of_the_losses_of_its_records() -> None:
    policies = {"2024": constant("0.1"), "2025": EVERY, "2026": EVERY + split("0.2", {"emp": 5})}
    history = {"2025": {"emp": 4}, "2026": {"emp": 12}}
    found = history_losses(policies, history)
    assert found == {
        "2024": 0.0,
        "2025": float(EVERY.loss({"emp": 4})),
        "2026": float(policies["2026"].loss({"emp": 12})),
    }
    assert sum(found.values()) == pytest.approx(16 / 200 + 144 / 200 + 0.2 * 9)


def test_a_policy_may_depend_on_what_the_unit_was_before() -> None:
    carried = gaussian_sum("emp", sigma=10) + gaussian_sum("emp@2025", sigma=20)
    history = {"2025": {"emp": 40}, "2026": {"emp": 10}}
    assert record_at(history, "2026", carried) == {"emp": 10, "emp@2025": 40}
    assert history_losses({"2026": carried}, history) == {"2026": 100 / 200 + 1600 / 800}


def test_the_schema_may_change_with_the_period_and_not_within_it(tmp_path) -> None:
    path = tmp_path / "s.ledger"
    charged(path, "2025", EVERY * "1/4")
    charged(path, "2026", EVERY * "1/4", form=schema("1/10", "pay"))
    with pytest.raises(LedgerError, match="another schema"):
        charged(path, "2026", EVERY * "1/4", form=schema("1"))
    charged(path, "2025", EVERY * "1/4")
    assert verify(path) == []


def test_a_budget_declared_later_is_dated_and_one_of_the_start_is_not(tmp_path) -> None:
    path = tmp_path / "s.ledger"
    charged(path, "2025", EVERY * "1/4", more={"2026": constant(1)})
    charged(path, "2026", EVERY * "1/4", more={"2026": constant(1)})
    charged(path, "2027", EVERY * "1/4", every=EVERY * 2)
    first, second, third = periods_of(events_of(path))
    assert (first.at_start, second.at_start, third.at_start) == (True, True, False)
    assert second.budget == EVERY + constant(1)
    assert third.declared_words() == f"declared on {third.declared}"
    with pytest.raises(LedgerError, match="another budget"):
        charged(path, "2027", EVERY * "1/4")


def test_another_series_or_none_is_refused_once_something_was_charged(tmp_path) -> None:
    path = tmp_path / "s.ledger"
    opened(path, Series(name="another", period="2025")).close()
    charged(path, "2025", EVERY * "1/4")
    with pytest.raises(LedgerError, match="another series"):
        opened(path, Series(name="another", period="2026"))
    with pytest.raises(LedgerError, match="is the ledger of a series"):
        Ledger(path, dataset="patterns 2025", schema=schema(), budget=EVERY)


def test_a_ledger_without_periods_goes_on_as_the_first_period_of_a_series(tmp_path) -> None:
    path = tmp_path / "s.ledger"
    ledger = Ledger(path, dataset="patterns 2024", schema=schema(), budget=EVERY)
    ledger.charge(EVERY * "1/2", query="emp", schema=schema())
    ledger.close()
    assert periods_of(events_of(path))[0].name == "patterns 2024"
    charged(path, "2025", EVERY)
    found = periods_of(events_of(path))
    assert [(each.name, each.spent) for each in found] == [("patterns 2024", EVERY * "1/2"), ("2025", EVERY)]
    assert events_of(path)[0].body["guarantee"] == WITHIN_BUDGET
    assert verify(path) == []


def test_a_charge_whose_sum_belongs_to_another_period_is_found(tmp_path) -> None:
    path = tmp_path / "s.ledger"
    charged(path, "2025", EVERY * "1/2")
    charged(path, "2026", EVERY * "1/4")
    ledger = opened(path, series("2025"))
    body = {"query": "q", "policy": (EVERY * "1/4").to_json(), "spent": (EVERY * "3/4").to_json(), "schema": schema()}
    with ledger._chain.transaction():
        ledger._chain.append("charged", body | {"period": "2026", "revision": 0})
    ledger.close()
    assert verify(path) == ["event 5 states a sum that differs from that of the charges"]


def test_a_period_that_was_never_opened_and_an_overspent_one_are_found(tmp_path) -> None:
    path = tmp_path / "s.ledger"
    charged(path, "2025", EVERY)
    ledger = opened(path, series("2025"))
    body = {"query": "q", "policy": EVERY.to_json(), "spent": EVERY.to_json(), "schema": schema()}
    with ledger._chain.transaction():
        ledger._chain.append("charged", body | {"period": "2026"})
        ledger._chain.append("charged", body | {"period": "2025", "spent": (EVERY * 2).to_json()})
    ledger.close()
    assert verify(path) == ["event 3 charges a period without terms", "the charges of period 2025 exceed the budget"]


@pytest.mark.parametrize(
    "wrong", [{"period": "a@b"}, {"period": ""}, {"name": " x"}, {"revision": -1}, {"revision": True}]
)
def test_a_series_is_checked_where_it_is_stated(wrong) -> None:
    with pytest.raises(ParameterError):
        Series(**({"name": "n", "period": "2026"} | wrong))
