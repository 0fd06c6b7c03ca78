"""The size of a cell's error: each mechanism computes it from the law it draws from."""

from typing import Any

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number


def ask(mechanism: Any, ability: str) -> Any:
    """A method of a mechanism that planning needs; an error if the mechanism does not have it."""
    found = getattr(mechanism, ability, None)
    if found is None:
        raise ParameterError(
            parameter="mechanism",
            problem=f"{type(mechanism).__name__} has no method '{ability}', which planning needs",
            advice="Derive it from GaussianNoise, FatTailedNoise or TransformedNoise.",
        )
    return found


def error_quantiles(
    mechanism: Any, totals: FloatArray, *, confidence: float = 0.95, step: Number = 1, kept: FloatArray | None = None
) -> FloatArray:
    """The bound on |value - total| that holds with probability ``confidence``, for each exact total, in the measure's units.

    ``kept`` are the totals of the clamped contributions, where the mechanism clamps.

    Args:
        mechanism: The mechanism.
        totals: The exact totals.
        confidence: The probability.
        step: The step of the measure's lattice, in its own units.
        kept: The totals of the clamped contributions, where the mechanism clamps.

    Returns:
        A number for each total.
    """
    found: FloatArray = ask(mechanism, "error_quantiles")(totals, confidence=confidence, step=step, kept=kept)
    return found
