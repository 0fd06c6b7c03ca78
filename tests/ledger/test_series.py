"""A ledger of a series: each period has its own schema and budget, and what the periods charge adds up for a unit's history."""

import pytest

from recordwise.errors import BudgetError, LedgerError, ParameterError
from recordwise.ledger.entries import period_problem, periods_of, series_name
from recordwise.ledger.ledger import WITHIN_BUDGET, WITHIN_PERIOD, Ledger
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
    assert third.declared_text() == f"declared on {third.declared}"
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


@pytest.mark.parametrize(
    "dataset, then",
    [
        ("patterns 2024", series("2025")),  # the same dataset under the name of a new period
        ("patterns", Series(name="county patterns", period="2025", every_period=EVERY)),  # nobody knows its period
        ("patterns 2025", series("2025")),  # the period was charged before it had a name
        ("patterns 2024Q1", series("2025")),  # periods of two lengths
    ],
)
def test_a_spent_ledger_without_periods_gives_no_second_budget_to_a_series(tmp_path, dataset, then) -> None:
    path = tmp_path / "s.ledger"
    ledger = Ledger(path, dataset=dataset, schema=schema(), budget=EVERY)
    ledger.charge(EVERY, query="emp", schema=schema())
    ledger.close()
    called = dataset if dataset == "patterns 2024" else "patterns, the next one"
    with pytest.raises(LedgerError, match="Nothing was spent"):
        Ledger(path, dataset=called, schema=schema(), budget=EVERY, series=then)
    assert periods_of(events_of(path))[0].spent == EVERY


ODD = [
    "2026/",
    "2O26",
    "２０２６",
    "٢٠٢٦",
    "2026q1",
    "2026Q5",
    "2026Q",
    "26",
    "2026-13",
    "2026-02-30",
    "2026W54",
    "2026 ",
    "FY2026",
]
ODD += ["2026\u200b", "2026-1", "2026H3", "+2026", "2_026", "02026", "0000", "2026Q1 ", "2026-Q1", "spring"]


@pytest.mark.parametrize("period", ODD)
def test_a_period_has_one_spelling_and_the_refusal_names_the_forms(period) -> None:
    for stated in ({"period": period}, {"period": "2026", "more": {period: EVERY}}):
        with pytest.raises(ParameterError, match=r'"2026".*"2026H1".*"2026Q1".*"2026-01".*"2026W05".*"2026-01-31"'):
            Series(**({"name": "n"} | stated))


@pytest.mark.parametrize("period", ["2026", "2026H2", "2026Q4", "2026-12", "2026W53", "2024-02-29"])
def test_every_form_of_a_period_is_taken(period) -> None:
    assert Series(name="n", period=period).period == period


@pytest.mark.parametrize("first, then", [("2026", "2026Q1"), ("2026Q1", "2026-01"), ("2026-01", "2026-01-01")])
def test_the_periods_of_a_series_have_one_length(tmp_path, first, then) -> None:
    """A year and its quarters are about the same records: each would have a full budget."""
    path = tmp_path / "s.ledger"
    charged(path, first, EVERY)
    with pytest.raises(LedgerError, match="another length"):
        charged(path, then, EVERY)
    assert len(periods_of(events_of(path))) == 1


@pytest.mark.parametrize("old", ["2026/", "2O26", "２０２６", "٢٠٢٦", "2026\u200b", "Year 2026"])
def test_a_period_that_an_earlier_version_wrote_otherwise_is_not_a_new_one(tmp_path, old) -> None:
    """0.2.0 took any line of text. What it wrote stays readable, and the same period in today's spelling is not charged again."""
    path = tmp_path / "s.ledger"
    charged(path, "2025", EVERY)
    ledger = opened(path, series("2025"))
    terms = ledger._terms(schema()) | {"period": old}
    body = {"query": "q", "policy": EVERY.to_json(), "spent": EVERY.to_json(), "schema": schema(), "period": old}
    with ledger._chain.transaction():
        ledger._chain.append("opened", terms)
        ledger._chain.append("charged", body)
    ledger.close()
    assert verify(path) == []
    assert [(each.name, each.spent) for each in periods_of(events_of(path))] == [("2025", EVERY), (old, EVERY)]
    with pytest.raises(LedgerError, match="2026"):
        charged(path, "2026", EVERY)
    charged(path, "2027", EVERY)
    assert verify(path) == []


@pytest.mark.parametrize(
    "old, period, second",
    [
        ("Q1 2026", "2026Q1", True),
        ("2026 Q01", "2026Q1", True),
        ("2026/1", "2026-01", True),
        ("1.2026", "2026-01", True),
        ("January 2026", "2026-01", True),
        ("2026 I", "2026Q1", True),
        ("2\u041e26", "2026", True),  # a Cyrillic letter
        ("26", "2026", True),
        ("spring", "2026", True),
        ("2025/2026", "2026", True),
        ("2026 Q1", "2026", True),
        ("2026", "2026Q1", True),
        ("Q1 2026", "2026Q2", False),
        ("2026/1", "2026-02", False),
        ("W5 2026", "2026W06", False),
        ("Q1 2026", "2027Q1", False),
        ("2O26", "2027", False),
    ],
)
def test_only_what_is_surely_another_period_than_an_odd_one_of_an_earlier_version_has_a_budget(old, period, second):
    refused = period_problem(period, [old], before=None, dataset="patterns")
    assert (refused is not None) == second


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
