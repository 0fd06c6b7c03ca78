"""Read and write plans as TOML files.

A file is checked as a whole, and every problem is reported at once with its line. A new entry is a row of a table
(``Entry``); docs/architecture.md says of which, and what it becomes.

In reading order:

- ``node``: an entry with its line, tables by their entries, and parameters
- ``sections``: the source, the engine, the schema and the budget
- ``keys``: listed keys, products, files and selected keys
- ``mechanisms``: kinds and parameters, named as in Python
- ``queries``: queries in the builder's words or as SQL
- ``read``: the whole file, checked
- ``write``: queries as a file that reads back as the same plan
- ``first``: a first plan with blanks, from names and types alone
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recordwise.plan.file.node import Problem
    from recordwise.plan.file.read import PlanFile, load_plan

__all__ = ["PlanFile", "Problem", "load_plan"]
HOMES = {"PlanFile": "read", "Problem": "node", "load_plan": "read"}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
