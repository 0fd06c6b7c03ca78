"""What attacks and older rules find on small tables, and what the studio shows of a small plan."""

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from disclosure.small_publications import contributions, made_cells, two_trees
from kept.leaves import leaves
from recordwise.disclosure import Description, attack, feasible_intervals
from recordwise.disclosure.rules import (
    Coarsening,
    PercentRule,
    Ranges,
    Rounding,
    Suppression,
    ThresholdRule,
    sensitive_cells,
)
from recordwise.plan.file import load_plan
from recordwise.studio.handover import mechanisms, python_of
from recordwise.studio.make import make_trade
from recordwise.studio.state import Event, StudioState, step
from recordwise.studio.texts import differences, view
from studio.small_plan import write_plan
from studio.trade_sample import sample_trade

RULES = (PercentRule(15), ThresholdRule(3))


def figures(text: str) -> list[str]:
    """The numbers of a sentence."""
    return re.findall(r"[0-9][0-9.,]*[0-9%]|[0-9]", text)


def of_older_rules() -> Iterator[tuple[str, Any]]:
    """What is withheld, rounded or coarser, and what can be computed of it."""
    for seed in range(6):
        rng = np.random.default_rng(500 + seed)
        cells = made_cells(two_trees(rng, 3, 4))
        found = contributions(rng, cells, most=5)
        marked, distance = sensitive_cells(RULES, found)
        yield f"{seed}, sensitive", leaves([marked, distance])
        methods: dict[str, Any] = {
            "primary": Suppression(RULES, complementary=False),
            "suppressed": Suppression(RULES),
            "coarser": Coarsening(RULES),
            "coarser places": Coarsening(RULES, along="place"),
            "rounded": Rounding(5),
            "rounded at random": Rounding(10, at_random=True),
            "ranges": Ranges(RULES),
            "few ranges": Ranges(RULES, edges=(1.0, 10.0, 100.0)),
        }
        for name, method in methods.items():
            published = method.publish(cells, found, seed=3)
            yield f"{seed}, {name}", leaves([published.value, published.low, published.high, published.unprotected])
            low, high = feasible_intervals(cells.system(published.low, published.high), np.arange(len(cells)))
            yield f"{seed}, {name}, intervals", [f"{each:.6g}" for each in (*low, *high)]
        suppressed = Suppression(RULES).publish(cells, found)
        made = Description(
            cells=cells,
            low=suppressed.low,
            high=suppressed.high,
            withheld=suppressed.withheld,
            number=found.number,
            second=np.where(found.number > 1, found.second, 0.0),
            percent=10.0,
            absent="zero",
            assumptions=(),
        )
        attacked = attack(made)
        yield f"{seed}, attacked", [*leaves(attacked.counts()), *attacked.status]
        yield f"{seed}, largest", [f"{each:.6g}" for each in (*attacked.largest_low, *attacked.largest_high)]


def of_studio() -> Iterator[tuple[str, Any]]:
    """A trade file and the texts of its page, state by state."""
    trade = sample_trade()
    state = StudioState.first(trade)
    keys = [each.key for each in trade.statistics]
    shown = view(trade, state)
    for number, event in enumerate(
        (
            Event(kind="move", number=8),
            Event(kind="choose", key=keys[0], text=trade.statistics[0].candidates[1].name),
            Event(kind="keep"),
            Event(kind="move", number=1),
            Event(kind="another_draw"),
            Event(kind="choose", key=keys[-1], text=trade.statistics[-1].candidates[-1].name),
            Event(kind="show", number=0),
            Event(kind="undo"),
        )
    ):
        state = step(state, event)
        texts = view(trade, state)
        yield (
            f"{number}, texts",
            {name: figures(text) for name, text in sorted(texts.items()) if shown.get(name) != text},
        )
        yield f"{number}, differences", sorted(differences(trade, state, shown))
        yield f"{number}, mechanisms", {name: repr(each) for name, each in mechanisms(trade, state).items()}
        shown = texts
    with TemporaryDirectory() as name:
        path = write_plan(Path(name), rows=300, short=True)
        made = make_trade(path, rows=300, seed=5)
        for part, value in made.to_json().items():
            if part not in ("plan", "digest", "version"):
                held = leaves(value)
                yield f"made, {part}", [len(held), *held[:: 1 + len(held) // 400]]
        first = StudioState.first(made)
        yield "made, code", python_of(load_plan(path), made, first).splitlines()


SUBJECTS = {"older rules": of_older_rules, "studio": of_studio}
