"""What a state of the studio may hold, at the last value that is taken and the first that is not."""

from dataclasses import replace
from typing import Any

import pytest

from recordwise.errors import ParameterError
from recordwise.studio import state as states
from recordwise.studio import texts
from recordwise.studio.state import MOST_KEPT, MOST_STEPS, MOST_TEXT, Event, Kept, StudioState, step
from studio.trade_sample import sample_trade

TRADE = sample_trade()
FIRST = StudioState.first(TRADE)
LIMITS = FIRST.limits
KEY = next(iter(LIMITS.candidates))


def fits(**changed: Any) -> bool:
    return states._fits(replace(FIRST.now, **changed), LIMITS)


@pytest.mark.parametrize(
    ("changed", "taken"),
    [
        ({"position": 0}, True),
        ({"position": -1}, False),
        ({"position": LIMITS.positions - 1}, True),
        ({"position": LIMITS.positions}, False),
        ({"draw": 0}, True),
        ({"draw": -1}, False),
        ({"draw": LIMITS.draws - 1}, True),
        ({"draw": LIMITS.draws}, False),
        ({"reasons": {"position": "because", KEY: "so"}}, True),
        ({"reasons": {"other": "because"}}, False),
        ({"reasons": {"position": "x" * MOST_TEXT}}, True),
        ({"reasons": {"position": "x" * (MOST_TEXT + 1)}}, False),
        ({"mechanisms": {}}, False),
        ({"mechanisms": {**FIRST.now.mechanisms, "other": "a"}}, False),
        ({"mechanisms": {**FIRST.now.mechanisms, KEY: LIMITS.candidates[KEY][-1]}}, True),
        ({"mechanisms": {**FIRST.now.mechanisms, KEY: "nothing"}}, False),
    ],
)
def test_a_setting_is_about_its_trade_file(changed: dict[str, Any], taken: bool) -> None:
    assert fits(**changed) == taken


def kept(**changed: Any) -> Kept:
    given: dict[str, Any] = {"name": "a", "position": 0, "mechanisms": FIRST.now.mechanisms}
    return Kept(**(given | changed))


def test_settings_that_are_kept_are_held_to_the_same() -> None:
    assert fits(kept=(kept(),) * MOST_KEPT)
    assert not fits(kept=(kept(),) * (MOST_KEPT + 1))
    assert not fits(kept=(kept(position=LIMITS.positions),))
    assert not fits(kept=(kept(), kept(mechanisms={})))
    assert not fits(kept=(kept(name="x" * (MOST_TEXT + 1)),))


def test_as_many_settings_are_kept_as_may_be() -> None:
    state = FIRST
    for number in range(MOST_KEPT + 2):
        state = step(step(state, Event(kind="move", number=number)), Event(kind="keep", text=str(number)))
    assert [(each.name, each.position) for each in state.now.kept] == [(str(at), at) for at in range(MOST_KEPT)]
    assert step(state, Event(kind="show", number=MOST_KEPT)) == state
    assert step(state, Event(kind="drop", number=MOST_KEPT)) == state
    assert step(state, Event(kind="show", number=-1)) == state
    dropped = step(state, Event(kind="drop", number=1))
    assert [each.name for each in dropped.now.kept] == ["0", "2", "3"]
    assert step(dropped, Event(kind="show", number=1)).now.position == 2


def test_steps_are_undone_and_done_again_one_by_one() -> None:
    state = FIRST
    for number in range(MOST_STEPS + 3):
        state = step(state, Event(kind="reason", key=(KEY, "position")[number % 2], text=str(number)))
    assert len(state.past) == MOST_STEPS
    back = step(step(state, Event(kind="undo")), Event(kind="undo"))
    assert (len(back.past), len(back.future)) == (MOST_STEPS - 2, 2)
    assert step(step(back, Event(kind="redo")), Event(kind="redo")).now == state.now
    assert step(FIRST, Event(kind="undo")) == FIRST
    assert step(FIRST, Event(kind="redo")) == FIRST


def test_moves_and_the_letters_of_a_reason_are_undone_together_and_others_are_not() -> None:
    moved = step(step(FIRST, Event(kind="move", number=2)), Event(kind="move", number=3))
    assert step(moved, Event(kind="undo")).now == FIRST.now
    told = step(step(FIRST, Event(kind="reason", key=KEY, text="a")), Event(kind="reason", key=KEY, text="ab"))
    assert step(told, Event(kind="undo")).now == FIRST.now
    both = step(step(FIRST, Event(kind="reason", key=KEY, text="a")), Event(kind="reason", key="position", text="b"))
    assert step(both, Event(kind="undo")).now.reasons == {KEY: "a"}
    drawn = step(step(FIRST, Event(kind="another_draw")), Event(kind="another_draw"))
    assert step(drawn, Event(kind="undo")).now.draw == 1
    assert step(told, Event(kind="reason", key=KEY, text="  ")).now.reasons == {}


def test_a_saved_state_of_another_version_or_too_long_is_refused() -> None:
    held = step(FIRST, Event(kind="another_draw")).to_json()
    assert StudioState.from_json(held, TRADE).now.draw == 1
    with pytest.raises(ParameterError, match="another version"):
        StudioState.from_json(held | {"version": states.VERSION + 1}, TRADE)
    one = held["now"]
    StudioState.from_json(held | {"past": [one] * MOST_STEPS, "future": [one] * MOST_STEPS}, TRADE)
    with pytest.raises(ParameterError, match="another version"):
        StudioState.from_json(held | {"past": [one] * MOST_STEPS, "future": [one] * (MOST_STEPS + 1)}, TRADE)
    with pytest.raises(ParameterError, match="another trade file"):
        StudioState.from_json(held | {"past": [one | {"draw": LIMITS.draws}]}, TRADE)


def test_chances_are_told_in_percent_and_stop_at_99() -> None:
    for place, loss in enumerate(TRADE.chances):
        last = place + 1 == len(TRADE.chances)
        assert texts.chance(TRADE, loss) == ("> 99%" if last else f"{place + 6}%")
    assert texts.chance(TRADE, 0.0) == "5%"
