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

from recordwise.disclosure.attack import Attack, Description, attack, read_description
from recordwise.disclosure.cells import Cells, Dimension
from recordwise.disclosure.rules import Coarsening, PercentRule, Published, Ranges, Rounding, Suppression, ThresholdRule

__all__ = [
    "Attack",
    "Cells",
    "Coarsening",
    "Description",
    "Dimension",
    "PercentRule",
    "Published",
    "Ranges",
    "Rounding",
    "Suppression",
    "ThresholdRule",
    "attack",
    "read_description",
]
