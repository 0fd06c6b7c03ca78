"""The exact totals an engine found, opened for a test."""

from typing import Any


def exact_totals(found: Any) -> list[list[int]]:
    """The totals of one table, a list of integers for each, in the order of the plan."""
    return [each.tolist() for each in found.exact.reveal().totals.values()]
