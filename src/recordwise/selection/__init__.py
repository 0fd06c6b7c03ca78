"""Which keys are published when the keys themselves are confidential: noisy counts against a threshold."""

from recordwise.selection.empty_cells import distinct_below, passing_empty_cells
from recordwise.selection.law import GroupLoss, SelectionLaw
from recordwise.selection.truncated import truncated_deviations, truncated_intervals

__all__ = [
    "GroupLoss",
    "SelectionLaw",
    "distinct_below",
    "passing_empty_cells",
    "truncated_deviations",
    "truncated_intervals",
]
