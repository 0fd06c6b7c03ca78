"""Whether a column has more than one value."""

import pyarrow as pa
import pytest

from recordwise.release.content import _differs


@pytest.mark.parametrize(
    "values, differs",
    [
        ([], False),
        ([1], False),
        ([1, 1, 1], False),
        ([1, 2], True),
        ([1, 2, 1], True),
        ([None, None], False),
        ([1, None, 1], True),
    ],
)
def test_a_column_differs_at_its_ends_or_inside(values: list[int | None], differs: bool) -> None:
    assert _differs(pa.chunked_array([pa.array(values, pa.int64())])) is differs
