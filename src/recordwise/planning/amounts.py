"""The amount of noise of a mechanism, which planning sets, while everything else about it stays."""

from typing import Any

from recordwise.errors import ParameterError
from recordwise.mechanisms.base import gaussian_sigma, inside, is_sized, transformed_scale
from recordwise.mechanisms.calibration import decimal
from recordwise.mechanisms.sized import Sized


def has_amount(mechanism: Any) -> bool:
    """Whether a share w of its loss is the same noise, larger by a factor w**(-1/2): Gaussian noise, sized or on another scale."""
    return all(_is_gaussian(each) for each in inside(mechanism))


def _is_gaussian(mechanism: Any) -> bool:
    if transformed_scale(mechanism) is not None:
        return getattr(mechanism, "sigma", None) is not None
    try:
        return gaussian_sigma(mechanism) is not None
    except ParameterError:
        # Its thresholds differ by group, and so does its sigma.
        return False


def has_width(mechanism: Any) -> bool:
    """Whether it is fat-tailed noise of a scale, which can be stretched: c times as large, it costs x what it costs x / c now."""
    return hasattr(mechanism, "with_scale_times") and mechanism.coarseness is None


def can_be_scaled(mechanism: Any) -> bool:
    """Whether more or less of its noise is known to cost less or more without its policy being computed anew."""
    return has_amount(mechanism) or has_width(mechanism)


def noise_size(mechanism: Any) -> float:
    """How large its noise is, in units that are the same for all amounts of it."""
    return float(mechanism.width) if has_width(mechanism) else amount(mechanism)


def with_noise_size(mechanism: Any, size: float) -> Any:
    """The same mechanism with other noise, rounded down."""
    if has_width(mechanism):
        return mechanism.with_scale_times(decimal(size) / mechanism.width)
    return with_amount(mechanism, size)


def amount(mechanism: Any) -> float:
    """The sigma of its noise: in the units of the statistic, on the transformed scale, or as a share of the size."""
    first = inside(mechanism)[0]
    scale = transformed_scale(first)
    return float(gaussian_sigma(first) if scale is None else scale)  # type: ignore[arg-type]


def with_amount(mechanism: Any, sigma: float) -> Any:
    """The same mechanism with another sigma, rounded down."""
    if is_sized(mechanism):
        low = None if mechanism.low is None else with_amount(mechanism.low, sigma)
        return Sized(
            with_amount(mechanism.mechanism, sigma), floor=mechanism.floor, low=low, low_below=mechanism.low_below
        )
    if transformed_scale(mechanism) is not None:
        return mechanism.with_noise_scale(decimal(sigma))
    return mechanism.with_sigma(decimal(sigma))
