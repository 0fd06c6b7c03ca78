"""The studio: choose on a screen what a publication shows and what it gives away.

A plan and records (public, generated or, after a look is entered in the ledger, confidential) come in; a plan file that ``check``
accepts and a report for the committee go out. Nothing is released here. Imports planning and everything below it.

In reading order:

- ``form``: frozen dataclasses as JSON, with a schema
- ``trade``: the trade file, everything the page shows
- ``state``: the state of the page as one value, and its pure step
- ``words``: goals in words, written and read by one grammar
- ``profile``: records, examples and firms that stand for all
- ``places``: states, and three places that are drawn
- ``make``: the computation of a trade file
- ``texts``: every text that the page shows in a state
- ``handover``: plan file, Python code and report of what was chosen
- ``page``: the page's own files, and all of them in one file as a report
- ``begin``: a first plan from a file of the folder, by a form
- ``worker``: one thread for heavy work, with progress and cancel
- ``desk``: what the server does for its page, in one folder
- ``guard``: who may talk to the server
- ``server``: the server for one browser on this machine
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recordwise.studio.handover import Exact, mechanisms, plan_of, python_of, report, save_plan, with_mechanisms
    from recordwise.studio.make import make_trade
    from recordwise.studio.state import Event, StudioState, step
    from recordwise.studio.texts import differences, view
    from recordwise.studio.trade import Trade
    from recordwise.studio.words import Vocabulary, read_goal, write_goal

# Imported when first used: the server shows a page before anything is computed.
HOMES = {
    "handover": ("Exact", "mechanisms", "plan_of", "python_of", "report", "save_plan", "with_mechanisms"),
    "make": ("make_trade",),
    "state": ("Event", "StudioState", "step"),
    "trade": ("Trade",),
    "texts": ("differences", "view"),
    "words": ("Vocabulary", "read_goal", "write_goal"),
}

__all__ = [
    "Event",
    "Exact",
    "StudioState",
    "Trade",
    "Vocabulary",
    "differences",
    "make_trade",
    "mechanisms",
    "plan_of",
    "python_of",
    "read_goal",
    "report",
    "save_plan",
    "step",
    "view",
    "with_mechanisms",
    "write_goal",
]


def __getattr__(name: str) -> Any:
    for home, names in HOMES.items():
        if name in names:
            found = getattr(import_module(f"recordwise.studio.{home}"), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
