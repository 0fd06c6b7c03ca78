"""Order statistics of many draws without keeping all of them: the few largest values of each column (T-FITVAR)."""

import math

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray


def rank_of(draws: int, confidence: float) -> int:
    """The order statistic of ``draws`` values that a further one stays below with at least this probability."""
    # In floats the product can be just above the whole number that it is.
    rank = math.ceil((draws + 1) * confidence - 1e-9)
    if rank > draws:
        least = math.ceil(confidence / (1 - confidence) - 1e-9)
        raise ParameterError(
            parameter="draws", problem=f"must be at least {least} for intervals of {confidence:g}, not {draws}"
        )
    return rank


class Largest:
    """The order statistic of rank ``rank`` among ``draws`` values, column by column, from rows given a few at a time."""

    __slots__ = ("_kept", "_rows", "_size")

    def __init__(self, columns: int, *, draws: int, rank: int) -> None:
        self._size = draws - rank + 1
        self._kept: list[FloatArray] = [np.empty((0, columns))]
        self._rows = 0

    def add(self, rows: FloatArray) -> None:
        """Take some more draws; the smallest are dropped once there are twice as many as needed."""
        self._kept.append(rows)
        self._rows += len(rows)
        if self._rows >= 2 * self._size:
            self._drop()

    def value(self) -> FloatArray:
        """The order statistic, once all draws were added."""
        self._drop()
        return np.asarray(self._kept[0].min(axis=0))

    def _drop(self) -> None:
        together = np.concatenate(self._kept)
        if len(together) > self._size:
            together = np.partition(together, len(together) - self._size, axis=0)[-self._size :].copy()
        self._kept, self._rows = [together], len(together)
