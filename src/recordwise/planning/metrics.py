"""Metrics of one cell: functions of its exact and its published value, for whole columns at once."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray

Metric: TypeAlias = Callable[[FloatArray, FloatArray], Any]
"""Takes the exact and the published values of cells and returns a number, or a truth value, for each; NaN counts as none."""
CLOSE = 0.1


def relative_error(exact: FloatArray, published: FloatArray) -> FloatArray:
    """The absolute error as a share of the exact value; NaN where that is 0.

    Args:
        exact: The exact values.
        published: The published values.

    Returns:
        A share for each cell.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(exact == 0, np.nan, np.abs(published - exact) / np.abs(exact))


def absolute_error(exact: FloatArray, published: FloatArray) -> FloatArray:
    """The absolute error.

    Args:
        exact: The exact values.
        published: The published values.

    Returns:
        A number for each cell, in units of the variable.
    """
    return np.abs(published - exact)


def squared_error(exact: FloatArray, published: FloatArray) -> FloatArray:
    """The square of the error.

    Args:
        exact: The exact values.
        published: The published values.

    Returns:
        A number for each cell, in squared units of the variable.
    """
    return (published - exact) ** 2


def bias(exact: FloatArray, published: FloatArray) -> FloatArray:
    """The error with its sign, whose mean is the bias.

    Args:
        exact: The exact values.
        published: The published values.

    Returns:
        A number for each cell, in units of the variable.
    """
    return published - exact


def off_by_a_tenth(exact: FloatArray, published: FloatArray) -> FloatArray:
    """Whether the error is more than a tenth of the exact value, whose mean is the share of such cells; NaN where that is 0.

    Args:
        exact: The exact values.
        published: The published values.

    Returns:
        1 or 0 for each cell.
    """
    return np.where(exact == 0, np.nan, (np.abs(published - exact) > CLOSE * np.abs(exact)).astype(np.float64))


METRICS: dict[str, Metric] = {
    "relative_error": relative_error,
    "absolute_error": absolute_error,
    "squared_error": squared_error,
    "bias": bias,
    "off_by_a_tenth": off_by_a_tenth,
}
"""The metrics that have a name."""


def read_metric(given: Metric | str) -> tuple[str, Metric]:
    """A metric with its name: one of ``METRICS``, or any function of (exact, published)."""
    if callable(given):
        return getattr(given, "__name__", "metric"), given
    if given not in METRICS:
        raise ParameterError(
            parameter="metric",
            problem=f"is not known: '{given}'",
            advice=f"Use one of {', '.join(METRICS)}, or a function of (exact, published).",
        )
    return given, METRICS[given]


def measured(metric: Metric, name: str, exact: FloatArray, published: FloatArray) -> FloatArray:
    """The metric of each cell that has both values; NaN elsewhere.

    Raises:
        ParameterError: The function fails, or does not return a number for each cell.
    """
    known = np.isfinite(exact) & np.isfinite(published)
    try:
        values = np.asarray(metric(exact[known], published[known]), np.float64)
    except Exception as error:
        # Its text can quote a value of a cell.
        raise ParameterError(parameter="metric", problem=f"'{name}' failed with {type(error).__name__}") from None
    if values.shape != (int(known.sum()),):
        raise ParameterError(parameter="metric", problem=f"'{name}' does not return one number for each cell")
    found = np.full(len(exact), np.nan)
    found[known] = values
    return found
