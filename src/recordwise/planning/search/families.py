"""The noise scale of mechanisms, which planning sets."""

import math
from collections.abc import Callable, Iterator, Mapping
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray, largest_allowed
from recordwise.exact.numbers import Number, float_upper
from recordwise.exact.text import formula_text
from recordwise.mechanisms.base import Mechanism
from recordwise.mechanisms.calibration import decimal
from recordwise.mechanisms.fat_tailed import GeneralizedGaussian
from recordwise.mechanisms.gaussian import Gaussian
from recordwise.mechanisms.registry import planning_families
from recordwise.mechanisms.sized import Sized
from recordwise.plan.expressions import Level
from recordwise.plan.keys.bands import sizes_at
from recordwise.plan.plan import query_with_levels
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.planning.scope import COUNT


def has_amount(mechanism: Mechanism) -> bool:
    """Return whether the noise scales as a share's inverse square root.

    A share w of its loss is the same noise, larger by w**(-1/2): Gaussian noise, sized or on another scale.
    """
    return all(_is_gaussian(each) for each in mechanism.inside())


def _is_gaussian(mechanism: Mechanism) -> bool:
    if mechanism.noise_scale is not None:
        return getattr(mechanism, "sigma", None) is not None
    try:
        return mechanism.noise_sigma is not None
    except ParameterError:
        # Its thresholds differ by group, and so does its sigma.
        return False


def has_width(mechanism: Mechanism) -> bool:
    """Return whether it is fat-tailed noise with a scale."""
    return mechanism.offers("with_scale_times") and mechanism.coarseness is None


def can_be_scaled(mechanism: Mechanism) -> bool:
    """Return whether scaled noise's cost needs no new policy."""
    return has_amount(mechanism) or has_width(mechanism)


def noise_size(mechanism: Mechanism) -> float:
    """Return the noise size, comparable across scales."""
    return float(mechanism.width) if has_width(mechanism) else amount(mechanism)


def with_noise_size(mechanism: Mechanism, size: float) -> Mechanism:
    """The same mechanism with other noise, rounded down."""
    if has_width(mechanism):
        return mechanism.with_scale_times(decimal(size) / mechanism.width)
    return mechanism.with_amount(decimal(size))


def amount(mechanism: Mechanism) -> float:
    """Return the sigma of the noise.

    In the units of the statistic, on the transformed scale, or as a share of the size.
    """
    first = mechanism.inside()[0]
    scale = first.noise_scale
    return float(first.noise_sigma if scale is None else scale)  # type: ignore[arg-type]


# The size of a cell's error: each mechanism computes it from the law it draws from.


def error_quantiles(
    mechanism: Mechanism,
    totals: FloatArray,
    *,
    confidence: float = 0.95,
    step: Number = 1,
    kept: FloatArray | None = None,
) -> FloatArray:
    """Return the error bound at ``confidence`` for each exact total.

    The bound is on |value - total|, in the measure's units. ``kept`` are the totals of the clamped
    contributions, where the mechanism clamps.

    Args:
        mechanism: The mechanism.
        totals: The exact totals.
        confidence: The probability.
        step: The step of the measure's lattice, in its own units.
        kept: The totals of the clamped contributions, where the mechanism clamps.

    Returns:
        A number for each total.
    """
    return mechanism.error_quantiles(totals, confidence=confidence, step=step, kept=kept)


# The families that a recommendation chooses from, and the best offset of a transform.


SHORT = Context(prec=2)
OFFSETS = 14
"""The most offsets that are tried for one transform and one table."""
CLOSE = 0.02
"""Offsets have two digits: their logarithm need not be known any closer."""


def families(*, offset: Number = 100) -> dict[str, Any]:
    """One mechanism of each family, before its noise is set.

    Args:
        offset: The offset of the transforms, in the measure's units.

    Returns:
        The families by name, those of installed packages among them.
    """
    return planning_families(offset=offset)


def best_offset(cost: Callable[[Fraction], float], *, total: float, step: Number) -> Fraction:
    """Return the two-digit offset at which a cost is smallest.

    Between a step and ten times a total (Brent, on logarithms).
    """
    low, high = math.log(float(Fraction(step))), math.log(max(10 * total, 10 * float(Fraction(step))))
    known = cache(cost)
    found = minimize_scalar(
        lambda log: known(two_digits(math.exp(log))),
        bounds=(low, high),
        method="bounded",
        options={"maxiter": OFFSETS, "xatol": CLOSE},
    )
    return two_digits(math.exp(float(found.x)))


def two_digits(value: float) -> Fraction:
    return Fraction(SHORT.create_decimal(Decimal(value)))


# Planning with noise that follows public sizes: errors of cells by their bands, and the most noise that meets a goal
# (T-SIZE).


HALVINGS = 30
LEAST, MOST = 1e-5, 20.0
"""The errors, as shares of the size, between which the one that meets a goal is searched."""
FLOORS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2))
"""Floors that a recommendation tries, in parts of the smallest total that counts for a goal."""
USUAL_FLOOR = Fraction(100)
FAT_TAILED = GeneralizedGaussian(shape="0.5", scale="0.02")


def level_sizes(
    query: Query, level: Level, measure: str, schema: Schema, cells: int | None = None
) -> FloatArray | None:
    """Return the public sizes of the cells of one table of a query, in their order, or None if it has none.

    Published rests, which come last, are in the lowest band.
    """
    names = (measure, f"sum_{measure}", COUNT if measure == COUNT else None)
    keys = query_with_levels(query, schema).sized_keys(level, names)
    listed = None if keys is None else sizes_at(keys, level.groups, schema, names)
    return listed if listed is None or cells is None else np.append(listed, np.zeros(cells - len(listed)))


def by_band(mechanism: Mechanism, sizes: FloatArray | None) -> Iterator[tuple[Any, Any]]:
    """Yield the mechanism of each band with its cells."""
    if not mechanism.is_sized:
        yield mechanism, slice(None)
        return
    if sizes is None:
        raise ParameterError(
            parameter="mechanism",
            problem="is sized, but the keys have no sizes",
            advice="Use Keys.of(frame, size=...).",
        )
    edges = mechanism.edges(float(sizes.max(initial=0.0)))
    band = np.maximum(np.searchsorted([float_upper(edge) for edge in edges], sizes, side="right") - 1, 0)
    for number, edge in enumerate(edges):
        rows = np.flatnonzero(band == number)
        if rows.size:
            yield mechanism.at_size(edge), rows


def with_error(mechanism: Sized, error: float, *, confidence: float, step: Number) -> Sized:
    """Return the noisiest mechanism within an error.

    At most ``error`` times the least size of a band.
    """

    size = mechanism.floor

    def at(inner: Mechanism) -> Mechanism:
        reach = error * float(size)
        found = inner.resized(size).most_noise(float(size), reach, confidence=confidence, step=step)
        assert found is not None
        return found.resized(1 / size)

    return mechanism.each(at)


def most_sized(
    mechanism: Sized, met: Callable[[Sized], Any], *, confidence: float, step: Number, may_miss: int
) -> tuple[Sized, Any]:
    """Return the most noise for which enough cells meet a goal, and which of them do."""

    def at(error: float) -> tuple[Sized, Any]:
        found = with_error(mechanism, error, confidence=confidence, step=step)
        return found, met(found)

    def enough(error: float) -> bool:
        return int((~at(error)[1]).sum()) <= may_miss

    if not enough(LEAST):
        raise ParameterError(parameter="goals", problem="cannot be met at these sizes, however small the noise")
    return at(largest_allowed(enough, LEAST, MOST, rounded=float, rounds=HALVINGS, close=1.002))


def sized_families(at_least: Fraction) -> Mapping[str, Sized]:
    """Return sized noise at several floors as candidates."""
    return {
        name: each
        for part in FLOORS
        for name, each in _at_floor(two_digits(float((at_least or USUAL_FLOOR) * part))).items()
    }


def _at_floor(floor: Fraction) -> dict[str, Sized]:
    return sized_family(f"sized, floor {formula_text(floor)}", floor, low=FAT_TAILED)


def sized_family(name: str, floor: Fraction, *, low: Any | None) -> dict[str, Sized]:
    """Return sized noise at one floor as candidates."""
    share = Gaussian(sigma="0.05")
    found = {name: Sized(share, floor=floor)}
    return found if low is None else found | {f"{name}, fat-tailed below": Sized(share, floor=floor, low=low)}
