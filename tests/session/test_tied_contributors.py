"""The two largest contributions to a cell, where several are tied for the largest."""

import pyarrow as pa

from recordwise.engines.compile.owner import CONTRIBUTORS, LARGEST, SECOND, SQUARES, TIED, TOTAL
from recordwise.plan.plan import POSITION
from recordwise.session.owner import read_contributors


def test_a_second_that_is_tied_with_the_largest_is_as_large() -> None:
    """Cells with one, two and three largest contributions of 8 steps of a half, one without a second, and one without any."""
    found = pa.table(
        {
            POSITION: [4, 0, 1, 2],
            CONTRIBUTORS: [3, 3, 4, 1],
            TOTAL: [19, 19, 27, 8],
            LARGEST: [8, 8, 8, 8],
            TIED: [1, 2, 3, 1],
            SECOND: [6, 3, 3, None],
            SQUARES: [125.0, 137.0, 201.0, 64.0],
        }
    )
    made = read_contributors(found, 5, 0.5)
    assert made.number.tolist() == [3, 4, 1, 0, 3]
    assert made.total.tolist() == [9.5, 13.5, 4.0, 0.0, 9.5]
    assert made.largest.tolist() == [4.0, 4.0, 4.0, 0.0, 4.0]
    assert made.second.tolist() == [4.0, 4.0, 0.0, 0.0, 3.0]
    assert made.squares.tolist() == [34.25, 50.25, 16.0, 0.0, 31.25]
