"""Rows of leaf indexes: each way to be wrong is refused by itself."""

from typing import Any

import numpy as np
import pytest

from recordwise.errors import ParameterError
from recordwise.postprocess.solvers.trees import read_cells

RIGHT = [[0, 2], [1, 0]]


@pytest.mark.parametrize(
    "cells, told",
    [
        ([0, 1], "rows of 2 integer"),
        ([[0, 1, 0]], "rows of 2 integer"),
        (np.zeros((0, 2), np.int64), "rows of 2 integer"),
        (np.array(RIGHT, np.float64), "rows of 2 integer"),
        ([[True, False]], "rows of 2 integer"),
        ([[0, -1]], "outside the trees"),
        ([[2, 0]], "outside the trees"),
        ([[0, 3]], "outside the trees"),
    ],
)
def test_cells_that_are_none_are_refused(cells: Any, told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        read_cells(cells, (2, 3))


def test_cells_are_read_as_they_are() -> None:
    assert read_cells(RIGHT, (2, 3)).tolist() == RIGHT
    assert read_cells(np.array([[1, 2]], np.uint8), (2, 3)).tolist() == [[1, 2]]
