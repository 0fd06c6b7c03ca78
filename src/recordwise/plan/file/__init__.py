"""Plans as TOML files. A file is checked as a whole, and every problem is reported at once with its line."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recordwise.plan.file.node import Problem
    from recordwise.plan.file.read import PlanFile, load_plan

__all__ = ["PlanFile", "Problem", "load_plan"]
HOMES = {"PlanFile": "read", "Problem": "node", "load_plan": "read"}


def __getattr__(name: str) -> Any:
    """A name is imported when it is first used: a session without a plan file reads none."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
