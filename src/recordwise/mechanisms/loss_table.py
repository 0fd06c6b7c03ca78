"""The published table of tight losses: at round numbers of data steps, close enough that the next larger one costs little."""

from collections.abc import Callable
from fractions import Fraction

MOST_ENTRIES = 600
CLOSENESS = 25
"""Successive entries differ by at most one part in 25; up to 50 steps every number has an entry."""
BEYOND_GAP = 0.01
"""The table ends where eps*tanh(eps/2), which holds beyond it, is within this of the tight loss."""


def next_entry(count: int) -> int:
    """The first entry that is not below a number of steps: a multiple of the spacing, or the count at which the spacing grows."""
    unit, wider = spacings(count)
    return min(-(-count // unit) * unit, CLOSENESS * wider)


def spacings(count: int) -> tuple[int, int]:
    """The largest of 1, 2, 5, 10, 20, 50, ... that is at most a 25th of the count (at least 1), and the one after it."""
    decade = 10 ** (len(str(count // CLOSENESS)) - 1)
    units = [decade, 2 * decade, 5 * decade, 10 * decade]
    place = max(i for i, unit in enumerate(units[:3]) if i == 0 or CLOSENESS * unit <= count)
    return units[place], units[place + 1]


def step_table(
    loss_of: Callable[[int], float], closed_form: Callable[[int], float]
) -> tuple[tuple[int, Fraction], ...]:
    """Losses at growing numbers of data steps, until the closed form that holds beyond is as good.

    The true loss never falls as the record grows (T-TABLE), so a bound at one entry may be raised to the largest one before it.
    """
    entries: list[tuple[int, Fraction]] = []
    count, highest = 1, 0.0
    while len(entries) < MOST_ENTRIES:
        closed = closed_form(count)
        highest = max(highest, min(loss_of(count), closed))
        entries.append((count, Fraction(highest)))
        if closed <= highest * (1 + BEYOND_GAP):
            break
        count = next_entry(count + 1)
    return tuple(entries)
