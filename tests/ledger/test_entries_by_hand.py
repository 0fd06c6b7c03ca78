"""What entries of a ledger say, one by one: looks, reserves, amendments, periods and steps."""

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import recordwise as rw
from recordwise.errors import DRAWING, RELEASED, UNFINISHED, WASTED, BudgetError, ParameterError, UnknownFormError
from recordwise.ledger import entries
from recordwise.ledger.chain import Event
from recordwise.ledger.entries import Amendment, as_charge, looks_text, periods_of, state_of, terms_before
from recordwise.ledger.ledger import (
    FIXED_IN_ADVANCE,
    WITHIN_BUDGET,
    WITHIN_PERIOD,
    WITHIN_PURE,
    Ledger,
    _digits_up,
    _guarantee,
    _loss_or_delta,
    check_format,
    paid_by,
    staying_lines,
    stepped,
)
from recordwise.policy import by, constant, gaussian_sum, pure_budget
from recordwise.policy.series import CARRY, REVISE, START, Series


def entry(sequence: int, kind: str, *, time: str = "2026-05-06T07:08:09", **body: Any) -> Event:
    return Event(sequence=sequence, time=time, kind=kind, body=body, digest=f"d{sequence}")


# Looks.


def test_looks_are_counted_by_their_command() -> None:
    events = [
        entry(1, "looked", command="explain"),
        entry(2, "preflight"),
        entry(3, "looked", command="explain"),
        entry(4, "charged", command="explain"),
        entry(5, "looked"),
    ]
    found = entries.count_looks(events)
    assert found == {"explain": 2, "preflight": 1, "not stated": 1}
    assert looks_text(found) == "4 looks: explain 2, preflight 1, not stated 1"
    assert looks_text({"explain": 1}) == "1 look: explain 1"
    assert looks_text({"explain": 1234}) == "1,234 looks: explain 1234"
    assert looks_text({}) == ""
    assert entries.look_body("explain", None) == {"command": "explain"}
    assert entries.look_body("explain", "abc") == {"command": "explain", "plan": "abc"}
    with pytest.raises(ParameterError, match="not one that looks at records"):
        entries.look_body("county 01", None)


@pytest.mark.parametrize(
    "body, fine",
    [
        ({}, True),
        ({"command": "plan evaluate", "plan": "0" * 64}, True),
        ({"command": "owner.view", "plan": "2:" + "a" * 64}, True),
        ({"command": "a" * 40}, True),
        ({"command": "a" * 41}, False),
        ({"command": "county 01"}, False),
        ({"command": 5}, False),
        ({"plan": "a" * 63}, False),
        ({"plan": "A" * 64}, False),
        ({"plan": 5}, False),
        ({"command": "explain", "rows": "7"}, False),
    ],
)
def test_a_look_says_a_command_and_a_digest_and_no_more(body: dict[str, Any], fine: bool) -> None:
    told = entries.wrong_looks([entry(7, "looked", **body), entry(8, "charged", rows=7)])
    assert told == ([] if fine else ["event 7 says more about a look than its command and its plan"])


# Charges.


def chain(path: Path, *, on_disk: bool = True, closed: Event | None = None) -> Any:
    index = SimpleNamespace(closed={3: 9} if closed is not None else {})
    return SimpleNamespace(
        on_disk=on_disk, real_path=str(path), event_index=lambda: index, event=lambda place: closed if place else None
    )


def test_what_became_of_a_charge(tmp_path: Path) -> None:
    path, charge = tmp_path / "own.ledger", as_charge(entry(3, "charged"))
    assert (charge.sequence, charge.head.length, charge.head.digest, charge.time[:4]) == (3, 3, "d3", "2026")
    released, failed = entry(9, "released"), entry(9, "failed")
    assert state_of(charge, chain(path)) == WASTED
    assert state_of(charge, chain(path, closed=failed)) == WASTED
    assert state_of(charge, chain(path, closed=released)) == RELEASED
    with entries.drawing(str(path), 3):
        assert state_of(charge, chain(path)) == DRAWING
        assert state_of(charge, chain(path, closed=released)) == RELEASED
        assert state_of(as_charge(entry(4, "charged")), chain(path)) == WASTED
        assert state_of(charge, chain(path, on_disk=False)) == WASTED
    assert state_of(charge, chain(path)) == WASTED
    entries.tables_of(str(path), 3).mkdir()
    assert state_of(charge, chain(path, closed=released)) == UNFINISHED
    assert state_of(charge, chain(path, on_disk=False, closed=released)) == RELEASED


def test_reserves_are_those_of_the_charge_and_its_period() -> None:
    policy = constant("0.25")
    plain = entry(3, "charged", policy=policy.to_json())
    assert entries.reserve_body(plain, 2) == {"reserved_by": 3, "revisions": 2, "policy": policy.to_json()}
    dated = entry(3, "charged", policy=policy.to_json(), period="2026")
    assert entries.reserve_body(dated, 1)["period"] == "2026"
    events = [
        dated,
        entry(4, "reserved", **entries.reserve_body(dated, 3)),
        entry(5, "charged", period="2026", uses=4),
        entry(6, "released", uses=4),
        entry(7, "reserved", **entries.reserve_body(entry(8, "charged", policy=policy.to_json(), period="2027"), 1)),
    ]
    assert entries.reserved_in(events, "2026", {}) == constant("0.5")
    assert entries.reserved_in(events, "2027", {}) == constant("0.25")
    assert entries.reserved_in(events, None, {}) == constant(0)


# Amendments.


def amended(budget: Any, until: str, releases: int, reason: str) -> Amendment:
    return Amendment(budget=budget, until=until, releases=releases, reason=reason)


def test_amendments_say_what_was_promised_until_when_and_what_is_allowed_since() -> None:
    first = amended(constant(1), "2026-01-02", 1, "too small")
    second = amended(constant(2), "2026-03-04", 3, "again")
    one, two, three = (entries._budget_words(constant(each)) for each in (1, 2, 3))
    assert entries.amendments_text([], constant(3)) == ""
    assert entries.amendments_text([first], constant(3)) == (
        f"promised {one} until 2026-01-02; {three} allowed since, after 1 release (too small); "
        "this total was not fixed in advance"
    )
    assert entries.amendments_text([first, second], constant(3)) == (
        f"promised {one} until 2026-01-02; {two} allowed from 2026-01-02, after 1 release (too small); "
        f"{three} allowed since, after 3 releases (again); this total was not fixed in advance"
    )
    assert entries._budget_words(None) == "no budget"
    form = {"budget": constant(1).to_json(), "until": "2026-01-02", "releases": 1, "reason": "too small"}
    assert Amendment.all_in({"amendments": [form]}, {}) == (first,)
    assert Amendment.all_in({"amendments": [form | {"budget": None}]}, {})[0].budget is None
    assert Amendment.all_in({}, {}) == ()


def test_a_series_that_was_amended_has_another_name_for_earlier_versions() -> None:
    assert entries.series_of({}) is None
    assert entries.series_of({"series": "s"}) == "s"
    terms = entries.only_for_later_versions({"series": "s", "dataset": "d", "format": 2})
    assert (terms["dataset"], terms["format"], entries.series_of(terms)) == ("d", 3, "s")
    assert terms["series"] != "s"
    assert entries.only_for_later_versions({"dataset": "d"}) == {"dataset": "d", "format": 3}
    assert (
        entries.series_name([entry(1, "opened"), entry(2, "opened", **terms), entry(3, "charged", series="t")]) == "s"
    )
    assert entries.series_name([entry(1, "opened", dataset="d")]) is None


# Periods.


def opened(sequence: int, period: str | None, budget: Any, **more: Any) -> Event:
    form = None if budget is None else budget.to_json()
    return entry(
        sequence, "opened", period=period, budget=form, dataset="d", time=f"2026-01-{sequence:02d}T00:00:00", **more
    )


def charged(sequence: int, period: str | None, spent: str) -> Event:
    return entry(sequence, "charged", period=period, spent=constant(spent).to_json())


def test_terms_are_the_latest_up_to_an_event_of_any_or_of_one_period() -> None:
    events = [opened(1, "2025", None), entry(2, "charged"), opened(3, "2026", None), opened(4, "2025", None)]

    def place(*given: Any, **more: Any) -> int | None:
        found = terms_before(events, *given, **more)
        return None if found is None else found.sequence

    assert [place(each) for each in range(5)] == [None, 1, 1, 3, 4]
    assert place(4, period="2026") == 3
    assert place(2, period="2026") is None
    assert place(4, period=None) is None


def test_periods_have_their_sums_budgets_and_days() -> None:
    declared = Series(name="s", period="2025", every_period=constant(1)).budgets_json()
    events = [
        opened(1, "2025", constant(1), declared=declared),
        charged(2, "2025", "0.25"),
        opened(3, "2026", constant(1)),
        charged(4, "2026", "0.5"),
        opened(5, "2027", constant(2)),
        charged(6, "2027", "0.75"),
        charged(7, "2025", "0.5"),
    ]
    first, second, third = periods_of(events)
    assert [each.name for each in (first, second, third)] == ["2025", "2026", "2027"]
    assert [each.charges for each in (first, second, third)] == [2, 1, 1]
    assert [each.spent for each in (first, second, third)] == [constant("0.5"), constant("0.5"), constant("0.75")]
    assert [each.declared for each in (first, second, third)] == ["2026-01-01", "2026-01-03", "2026-01-05"]
    assert [each.at_start for each in (first, second, third)] == [True, True, False]
    assert second.declared_text() == "declared at the start of the series"
    assert third.declared_text() == "declared on 2026-01-05"
    assert periods_of([opened(1, "2025", None)]) == ()
    (alone,) = periods_of([opened(1, None, None), charged(2, None, "0.25")])
    assert (alone.name, alone.budget, alone.at_start, alone.declared_text()) == ("d", None, False, "no budget")
    (own,) = periods_of([opened(1, None, constant(1)), charged(2, None, "0.25")])
    assert own.at_start
    form = {"budget": constant(1).to_json(), "until": "2026-01-02", "releases": 1, "reason": "why"}
    terms = opened(3, None, constant(2), amendments=[form])
    (later,) = periods_of([opened(1, None, constant(1)), charged(2, None, "0.25"), terms])
    assert (later.at_start, later.budget) == (False, constant(2))
    assert later.declared_text().startswith("promised ")


def test_a_unit_pays_by_its_record_of_each_version() -> None:
    policy = gaussian_sum("emp", sigma=1).to_json()
    events = [
        entry(1, "charged", period="2025", policy=policy),
        entry(2, "charged", period="2025", revision=1, policy=policy),
        entry(3, "charged", period="2026", policy=policy),
        entry(4, "released", period="2026", policy=policy),
    ]
    found = entries.unit_losses(events, {"2025": {"emp": 2}, "2025/1": {"emp": 4}})
    assert found == pytest.approx({"2025": 2 + 8, "2026": 0}, rel=1e-12)


# Steps.


def test_steps_are_charges_and_what_failed_is_lost() -> None:
    events = [
        entry(1, "charged", step={"kind": START}),
        entry(2, "charged"),
        entry(3, "failed", charge=1),
        entry(4, "released", charge=2, step={}),
    ]
    drawn, lost = stepped(events)
    assert (list(drawn), lost) == ([1], {1})


def test_corrections_share_what_the_first_release_paid_for_leaving() -> None:
    drawn: dict[int, Any] = {
        1: {"step": {"kind": START}},
        2: {"step": {"kind": REVISE, "follows": 1}},
        3: {"step": {"kind": REVISE, "follows": 2}},
        4: {"step": {"kind": CARRY, "follows": 3}},
    }
    assert [paid_by(drawn, drawn[each]["step"]) for each in drawn] == [None, 1, 1, 1]
    assert paid_by(drawn, {"kind": CARRY, "follows": 4}) == 4
    assert paid_by(drawn, {"kind": CARRY, "follows": 9}) == 9


def test_lines_of_a_budget_of_those_who_stay_are_not_below_what_is_needed() -> None:
    assert _digits_up(Fraction(1, 3)) == "0.333334"
    assert _digits_up(Fraction(1, 4)) == "0.25"
    assert _digits_up(Fraction(2_000_001, 1)) == "2000010"
    needed = constant("0.25") + gaussian_sum("pay", sigma=100) + gaussian_sum("emp", sigma=10) * 2 + constant("0.5")
    assert staying_lines(needed) == (
        'staying = [{ rho = 0.75 }, { measure = "emp", mechanism = { kind = "Gaussian", rho = 100, at = 100 } }, '
        '{ measure = "pay", mechanism = { kind = "Gaussian", rho = 0.5, at = 100 } }]'
    )
    assert staying_lines(constant(0)) == "staying = []"


def test_guarantees_follow_from_the_budget_and_the_series() -> None:
    series = Series(name="s", period="2026")
    assert _guarantee(None, None) == _guarantee(None, series) == FIXED_IN_ADVANCE
    assert (_guarantee(constant(1), None), _guarantee(pure_budget(1), None)) == (WITHIN_BUDGET, WITHIN_PURE)
    assert _guarantee(constant(1), series) == WITHIN_PERIOD
    assert _guarantee(pure_budget(1), series) == f"{WITHIN_PERIOD}; all of it in pure differential privacy"


def test_formats_of_ledgers_are_one_two_and_three() -> None:
    for known in (1, 2, 3):
        check_format({"format": known})
    for unknown in (0, 4, None, "1"):
        with pytest.raises(UnknownFormError):
            check_format({"format": unknown})


def test_a_record_without_a_group_has_no_promise() -> None:
    grouped = rw.UnitSplit(at=by("county", {"01": 10}), rho=1).policy("emp")
    assert _loss_or_delta(grouped, "loss", {"emp": 10, "county": "02"}) == float("inf")
    assert _loss_or_delta(grouped, "loss", {"emp": 10, "county": "01"}) == pytest.approx(1, rel=1e-9)
    assert _loss_or_delta(constant(1), "loss", {}) == 1
    assert _loss_or_delta(constant(1), "delta", {}) == 0


# A ledger.


def test_a_reserve_is_kept_next_to_the_charge_and_the_last_fraction_fits() -> None:
    ledger = Ledger(None, dataset="d", budget=constant(1), reserve=1)
    ledger.check(constant("0.5"), query="q")
    ledger.charge(constant("0.5"), query="q")
    assert (ledger.spent(), ledger.reserved()) == (constant("0.5"), constant("0.5"))
    with pytest.raises(BudgetError) as refused:
        ledger.check(constant("0.125"), query="q", reserve=0)
    assert (refused.value.needed, refused.value.left) == (0.125, 0)
    ledger.close()
    short = Ledger(None, dataset="d", budget=constant("0.75"), reserve=1)
    with pytest.raises(BudgetError) as refused:
        short.check(constant("0.5"), query="q")
    assert (refused.value.needed, refused.value.left) == (1, 0.75)
    short.check(constant("0.75"), query="q", reserve=0)
    short.check(constant("0.375"), query="q")
    assert [event.kind for event in short.history()] == ["opened"]
    short.close()


def test_looks_before_a_charge_are_told_apart_from_later_ones() -> None:
    ledger = Ledger(None, dataset="d")
    ledger.look("explain")
    place = ledger.history()[-1].sequence
    ledger.look("explain")
    assert ledger.looks() == {"explain": 2}
    assert ledger.looks(before=place + 1) == {"explain": 1}
    assert ledger.looks(before=place) == {}
    ledger.close()
