"""Attack tables that were published without noise, and the older rules that protect them.

Takes published numbers, or exact totals with their contributors; returns what anybody can compute. Imports release (to read a
private one next to them) and exact; knows no records, no session and no ledger.

In reading order:

- ``bounds``: feasible intervals from equations, by linear programs
- ``cells``: cells over hierarchies and the equations between them
- ``suppress``: complementary suppression
- ``rules``: the older rules and what they publish
- ``attack``: published files, a description of what adds up, and the result
"""

from recordwise.disclosure.attack import Attack, Description, attack, largest_contributor, read_description
from recordwise.disclosure.bounds import feasible_intervals
from recordwise.disclosure.cells import Cells, Dimension
from recordwise.disclosure.rules import (
    Coarsening,
    Contributions,
    PercentRule,
    Published,
    Ranges,
    Rounding,
    Suppression,
    ThresholdRule,
)

__all__ = [
    "Attack",
    "Cells",
    "Coarsening",
    "Contributions",
    "Description",
    "Dimension",
    "PercentRule",
    "Published",
    "Ranges",
    "Rounding",
    "Suppression",
    "ThresholdRule",
    "attack",
    "feasible_intervals",
    "largest_contributor",
    "read_description",
]
