"""The state of the studio is a value: every control is a pure step, and JSON, digest, undo and redo hold for any events."""

import json
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordwise.errors import ParameterError
from recordwise.studio.state import MOST_KEPT, MOST_TEXT, Event, StudioState, step
from recordwise.studio.trade import Trade
from studio.trade_sample import sample_trade

TRADE = sample_trade()
KEYS = [each.key for each in TRADE.statistics]
NAMES = [each.name for each in TRADE.statistics[0].candidates]
EVENTS = st.builds(
    Event,
    kind=st.sampled_from(["move", "choose", "keep", "drop", "show", "reason", "another_draw", "undo", "redo", "other"]),
    number=st.integers(-1, 9),
    key=st.sampled_from([*KEYS, "position", "nothing"]),
    text=st.sampled_from([*NAMES, "because", "", "ü 漢 😀"]),
)


def after(*events: Event) -> StudioState:
    state = StudioState.first(TRADE)
    for each in events:
        state = step(state, each)
    return state


def test_the_first_state_is_the_plan_as_it_stands() -> None:
    now = StudioState.first(TRADE).now
    assert (now.position, now.draw, now.kept, now.reasons) == (5, 0, (), {})
    assert set(now.mechanisms.values()) == {"as in the plan"}


@pytest.mark.parametrize(
    ("event", "field", "expected"),
    [
        (Event(kind="move", number=3), "position", 3),
        (Event(kind="choose", key=KEYS[1], text="logarithm"), "mechanisms", None),
        (Event(kind="another_draw"), "draw", 1),
        (Event(kind="reason", key=KEYS[0], text="smaller"), "reasons", {KEYS[0]: "smaller"}),
        (Event(kind="reason", key="position", text="all"), "reasons", {"position": "all"}),
    ],
)
def test_an_event_changes_what_it_is_about_and_nothing_else(event: Event, field: str, expected: Any) -> None:
    before, now = StudioState.first(TRADE).now, after(event).now
    changed = {name for name in before.__slots__ if getattr(before, name) != getattr(now, name)}
    assert changed == {field}
    assert expected is None or getattr(now, field) == expected


@pytest.mark.parametrize(
    "event",
    [
        Event(kind="move", number=9),
        Event(kind="move", number=-1),
        Event(kind="choose", key=KEYS[0], text="unknown"),
        Event(kind="choose", key="unknown", text=NAMES[0]),
        Event(kind="drop", number=0),
        Event(kind="show", number=0),
        Event(kind="undo"),
        Event(kind="redo"),
        Event(kind="reason", key="unknown", text="x"),
        Event(kind="unknown"),
    ],
)
def test_an_event_that_means_nothing_changes_nothing(event: Event) -> None:
    state = StudioState.first(TRADE)
    assert step(state, event) is state


def test_four_settings_are_kept_dropped_and_shown_again() -> None:
    state = after(*(Event(kind=kind, number=at, text=f"s{at}") for at in range(6) for kind in ("move", "keep")))
    assert [each.name for each in state.now.kept] == [f"s{at}" for at in range(MOST_KEPT)]
    state = step(state, Event(kind="drop", number=1))
    assert [each.position for each in state.now.kept] == [0, 2, 3]
    assert step(state, Event(kind="show", number=2)).now.position == 3


def test_moves_that_follow_each_other_are_undone_together() -> None:
    state = after(*(Event(kind="move", number=at) for at in (4, 3, 2)), Event(kind="another_draw"))
    assert (state.now.position, len(state.past)) == (2, 2)
    state = step(step(state, Event(kind="undo")), Event(kind="undo"))
    assert (state.now.position, state.now.draw) == (5, 0)
    state = step(step(state, Event(kind="redo")), Event(kind="redo"))
    assert (state.now.position, state.now.draw, state.future) == (2, 1, ())


@settings(max_examples=60, deadline=None)
@given(st.lists(EVENTS, max_size=25))
def test_json_holds_everything_and_undo_leads_back_to_the_beginning(events: list[Event]) -> None:
    state = after(*events)
    again = StudioState.from_json(json.loads(json.dumps(state.to_json())), TRADE)
    assert again == state
    assert again.digest() == state.digest()
    while state.past:
        state = step(state, Event(kind="undo"))
    assert state.now == StudioState.first(TRADE).now
    while state.future:
        state = step(state, Event(kind="redo"))
    assert state.now == again.now or again.future


def test_a_state_is_frozen_and_its_digest_depends_on_it() -> None:
    state = after(Event(kind="move", number=1))
    with pytest.raises(FrozenInstanceError):
        state.now.position = 2  # type: ignore[misc]
    assert len({state.digest(), after().digest(), after(Event(kind="move", number=2)).digest()}) == 3
    assert len(state.digest()) == 16


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"now": {}},
        {"more": 1},
        {"past": [1]},
        {"last": None},
    ],
)
def test_another_form_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="state"):
        StudioState.from_json(StudioState.first(TRADE).to_json() | change, TRADE)


@pytest.mark.parametrize(
    "change",
    [
        {"position": 99},
        {"position": True},
        {"draw": -1},
        {"mechanisms": {}},
        {"reasons": {"nobody": "x"}},
        {"reasons": {"position": "x" * (MOST_TEXT + 1)}},
    ],
)
def test_a_setting_outside_its_trade_file_is_refused(change: dict[str, Any]) -> None:
    form = StudioState.first(TRADE).to_json()
    with pytest.raises(ParameterError):
        StudioState.from_json(form | {"now": form["now"] | change}, TRADE)


def test_a_long_reason_is_cut_where_javascript_cuts_it() -> None:
    told = after(Event(kind="reason", key="position", text="😀" * MOST_TEXT)).now.reasons["position"]
    assert told == "😀" * (MOST_TEXT // 2)
    odd = after(Event(kind="reason", key="position", text="x" + "😀" * MOST_TEXT)).now.reasons["position"]
    assert odd == "x" + "😀" * (MOST_TEXT // 2 - 1)


def test_events_are_read_from_json() -> None:
    assert Event.from_json({"kind": "move", "number": 3}) == Event(kind="move", number=3)
    cases: list[Any] = [[], {"kind": 3}, {"kind": "move", "number": "3"}, {"kind": "move", "more": 1}]
    for wrong in cases:
        with pytest.raises(ParameterError):
            Event.from_json(wrong)


def test_the_schemas_describe_what_is_written() -> None:
    for schema, written in ((StudioState.schema(), after().to_json()), (Trade.schema(), TRADE.to_json())):
        json.dumps(schema)
        assert conforms(written, schema, schema)
        assert not conforms({**written, "version": "1"}, schema, schema)
        assert not conforms({**written, "more": 1}, schema, schema)


def conforms(value: Any, schema: Any, top: Any) -> bool:
    """As much of JSON Schema as the schemas use."""
    if "$ref" in schema:
        return conforms(value, top["$defs"][schema["$ref"].rpartition("/")[2]], top)
    if "anyOf" in schema:
        return any(conforms(value, each, top) for each in schema["anyOf"])
    kinds: dict[str, Any] = {"string": str, "integer": int, "boolean": bool, "null": type(None), "array": list}
    kinds |= {"number": (int, float), "object": dict}
    if "type" in schema and (
        not isinstance(value, kinds[schema["type"]]) or (isinstance(value, bool) and schema["type"] != "boolean")
    ):
        return False
    if isinstance(value, list):
        return all(conforms(each, schema["items"], top) for each in value)
    if isinstance(value, dict) and "properties" in schema:
        known = schema["properties"]
        return set(schema["required"]) <= set(value) <= set(known) and all(
            conforms(each, known[name], top) for name, each in value.items()
        )
    if isinstance(value, dict) and "additionalProperties" in schema:
        return all(conforms(each, schema["additionalProperties"], top) for each in value.values())
    return True
