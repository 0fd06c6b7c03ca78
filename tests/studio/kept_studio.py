"""What the studio shows and hands over, state by state: every text of its page, its trade file, plan, report and code."""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from recordwise.errors import RecordwiseError
from recordwise.plan.file import load_plan
from recordwise.studio.handover import commands, mechanisms, python_of, report
from recordwise.studio.make import make_trade
from recordwise.studio.state import Event, StudioState, limits_of, step
from recordwise.studio.texts import differences, view
from recordwise.studio.trade import Trade
from studio.small_plan import write_plan
from studio.trade_sample import sample_trade

Told = Iterator[tuple[str, Any]]


def events(trade: Trade) -> list[Event]:
    """One of each kind, at, below and above what it may be."""
    keys = [each.key for each in trade.statistics]
    names = [each.name for each in trade.statistics[0].candidates]
    found = [Event(kind="move", number=at) for at in (-1, 0, 3, len(trade.positions) - 1, len(trade.positions))]
    found += [Event(kind="choose", key=keys[0], text=name) for name in (*names, "nothing")]
    found += [Event(kind="keep"), Event(kind="another_draw"), Event(kind="another_draw"), Event(kind="keep")]
    found += [Event(kind="show", number=at) for at in (-1, 0, 1, 2, 3)]
    return [*found, Event(kind="undo"), Event(kind="undo"), Event(kind="redo"), Event(kind="nothing")]


def of_states() -> Told:
    trade = sample_trade()
    state = StudioState.first(trade)
    shown = view(trade, state)
    yield "first", [shown, state.to_json(), state.text(), state.digest()]
    yield "limits", limits_of(trade)
    for number, event in enumerate(events(trade)):
        try:
            state = step(state, event)
        except (RecordwiseError, ValueError) as refused:
            yield f"{number}, refused", f"{event.kind}: {type(refused).__name__}"
            continue
        texts = view(trade, state)
        yield f"{number}, {event.kind}", {name: text for name, text in texts.items() if shown.get(name) != text}
        yield f"{number}, state", state.to_json()
        yield f"{number}, differences", differences(trade, state, shown)
        shown = texts
    yield "last", shown
    yield "read again", StudioState.from_json(json.loads(json.dumps(state.to_json())), trade) == state
    yield "schema", [StudioState.schema(), Trade.schema() if hasattr(Trade, "schema") else ""]
    yield "trade", trade.to_json()


def of_made() -> Told:
    """A trade file from a plan, and what is handed over of it."""
    with TemporaryDirectory() as name:
        path = write_plan(Path(name), rows=120, short=True)
        made = make_trade(path, rows=120, seed=5)
        for part, value in made.to_json().items():
            yield f"made, {part}", value
        plan, state = load_plan(path), StudioState.first(made)
        for number in (0, len(made.positions) - 1):
            state = step(state, Event(kind="move", number=number))
            yield f"{number}, code", python_of(plan, made, state).splitlines()
            yield f"{number}, report", report(plan, made, state)
            yield f"{number}, mechanisms", {key: repr(each) for key, each in mechanisms(made, state).items()}
            yield f"{number}, texts", view(made, state)
        yield "commands", [commands("plan.toml"), commands("my plan.toml", {"year": "2026"})]


SUBJECTS = {"states": of_states, "made": of_made}
