"""Every text of the page: complete, from the chosen points alone, and rounded as JavaScript rounds."""

import re

import pytest

from recordwise.exact.text import screen_error, screen_number, screen_share, screen_whole
from recordwise.studio.state import Event, StudioState, step
from recordwise.studio.texts import quantile, view
from studio.trade_sample import sample_trade

TRADE = sample_trade()


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.0004, "< 0.001"), (0.00125, "0.00125"), (1.125, "1.13"), (1.25, "1.25"), (2.5, "2.5"), (9.996, "10"),
     (12345, "12,300"), (1234.5, "1,230"), (0.125, "0.125"), (-0.5, "-0.5"), (1e7, "10,000,000"), (112.5, "113")],
)  # fmt: skip
def test_numbers_have_three_digits_and_ties_go_up(value: float, text: str) -> None:
    assert screen_number(value) == text


def test_shares_errors_and_whole_numbers_round_ties_up() -> None:
    assert [screen_share(each) for each in (0, 1, 0.0005, 0.9995, 0.0625, 0.00125, 0.3)] == [
        "0%", "100%", "< 0.1%", "> 99.9%", "6.3%", "0.1%", "30.0%",
    ]  # fmt: skip
    assert [screen_error(each) for each in (0, 0.0625, 0.105, 0.125, 11, 0.0996)] == [
        "0.0%", "6.3%", "11%", "13%", "> 1000%", "10.0%",
    ]  # fmt: skip
    assert [screen_whole(each) for each in (0.5, 2.5, -0.4, -2.5, 1234567.5)] == ["1", "3", "0", "-3", "1,234,568"]


def test_quantiles_take_the_first_record_that_reaches_the_share() -> None:
    assert quantile([3.0, 1.0, 2.0], [1.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([3.0, 1.0, 2.0], [1.0, 1.0, 2.0], 0.25) == 1.0
    assert quantile([3.0, 1.0, 2.0], [1.0, 1.0, 2.0], 0.76) == 3.0
    assert quantile([], [], 0.5) == 0.0


def test_a_move_to_more_accuracy_shows_smaller_errors_and_larger_losses() -> None:
    state = StudioState.first(TRADE)
    before, after = view(TRADE, state), view(TRADE, step(state, Event(kind="move", number=8)))
    assert before.keys() == after.keys()
    assert (before["goal"], after["goal"]) == (
        "county cells of 100 employees within 9%",
        "county cells of 100 employees within 4%",
    )
    assert float(before["error/0/2"][:-1]) > float(after["error/0/2"][:-1])
    assert number(before["loss/3/typical"]) < number(after["loss/3/typical"])
    assert number(before["years"]) >= number(after["years"])


def test_a_choice_changes_its_own_statistic_and_the_sums_alone() -> None:
    state = StudioState.first(TRADE)
    before = view(TRADE, state)
    after = view(TRADE, step(state, Event(kind="choose", key=TRADE.statistics[1].key, text="logarithm")))
    changed = {key for key in before if before[key] != after[key]}
    assert changed
    assert not any(re.match(r"(error|status|table|state|mechanism)/[02]/", key) for key in changed)
    assert {"mechanism/1", "side/now/mechanism/1", "side/now/all/1"} <= changed


def test_kept_settings_stand_next_to_what_is_chosen_now() -> None:
    state = step(StudioState.first(TRADE), Event(kind="keep", text="ours"))
    state = step(state, Event(kind="move", number=0))
    found = view(TRADE, state)
    assert found["side/0/name"] == "ours"
    assert found["side/0/goal"] == TRADE.positions[5].goal
    assert found["side/now/goal"] == TRADE.positions[0].goal


def test_a_confidential_view_says_so() -> None:
    assert view(sample_trade(data="past"), StudioState.first(TRADE))["label"].startswith("CONFIDENTIAL")


def number(text: str) -> float:
    return float(text.replace(",", "").removeprefix("more than ").removeprefix("< "))
