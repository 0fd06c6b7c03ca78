"""Planning with noise that follows public sizes: errors of cells by their bands, and the most noise that meets a goal (T-SIZE)."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, float_upper
from recordwise.exact.text import formula_text
from recordwise.mechanisms.base import is_sized
from recordwise.mechanisms.gaussian import Gaussian
from recordwise.mechanisms.generalized_gaussian import GeneralizedGaussian
from recordwise.mechanisms.sized import Sized
from recordwise.plan.cell_bands import sized_keys, sizes_at
from recordwise.plan.fields import Level
from recordwise.plan.key_products import query_with_levels
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.planning.candidates import two_digits
from recordwise.planning.errors import ask
from recordwise.planning.shapes import COUNT

HALVINGS = 30
LEAST, MOST = 1e-5, 20.0
"""The errors, as shares of the size, between which the one that meets a goal is searched."""
FLOORS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2))
"""Floors that a recommendation tries, in parts of the smallest total that counts for a goal."""
USUAL_FLOOR = Fraction(100)
FAT_TAILED = GeneralizedGaussian(shape="0.5", scale="0.02")


def sizes_of(query: Query, measure: str, schema: Schema) -> FloatArray | None:
    """The public sizes of the cells of a query's only table; None if it has none."""
    (level,) = query.tables()
    return level_sizes(query, level, measure, schema)


def level_sizes(query: Query, level: Level, measure: str, schema: Schema) -> FloatArray | None:
    """The public sizes of the cells of one table of a query, in the order of its cells; None if it has none."""
    names = (measure, f"sum_{measure}", COUNT if measure == COUNT else None)
    keys = sized_keys(query_with_levels(query, schema), level, names)
    return None if keys is None else sizes_at(keys, level.groups, schema, names)


def by_band(mechanism: Any, sizes: FloatArray | None) -> Iterator[tuple[Any, Any]]:
    """The mechanism of each band with the cells it serves; a mechanism that is not sized serves all."""
    if not is_sized(mechanism):
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


def by_cell(
    ability: str, mechanism: Any, totals: FloatArray, *more: FloatArray, sizes: FloatArray | None, **given: Any
) -> Any:
    """What a mechanism says of each total (``error_quantiles``, ``meets``...), each cell by the mechanism of its band."""
    found: Any = None
    for each, rows in by_band(mechanism, sizes):
        kept = given.get("kept")
        own = given | ({} if kept is None else {"kept": kept[..., rows]})
        part = ask(each, ability)(totals[rows], *(other[rows] for other in more), **own)
        if isinstance(rows, slice):
            return part
        found = np.zeros(len(totals), np.asarray(part).dtype) if found is None else found
        found[rows] = part
    return found


def with_error(mechanism: Sized, error: float, *, confidence: float, step: Number) -> Sized:
    """The same with the most noise that stays within ``error`` times the least size of a band."""

    def at(inner: Any) -> Any:
        whole = inner.resized(mechanism.floor)
        size = float(mechanism.floor)
        return ask(whole, "most_noise")(size, error * size, confidence=confidence, step=step).resized(
            1 / mechanism.floor
        )

    low = None if mechanism.low is None else at(mechanism.low)
    return Sized(at(mechanism.mechanism), floor=mechanism.floor, low=low, low_below=mechanism.low_below)


def most_sized(
    mechanism: Sized,
    totals: FloatArray,
    sizes: FloatArray,
    *,
    within: float,
    confidence: float,
    step: Number,
    may_miss: int,
) -> tuple[Sized, Any]:
    """The most noise for which enough cells are within a share of their totals, and which of them are."""

    def met(error: float) -> tuple[Sized, Any]:
        found = with_error(mechanism, error, confidence=confidence, step=step)
        return found, by_cell("meets", found, totals, within * totals, sizes=sizes, confidence=confidence, step=step)

    low, high, best = LEAST, MOST, met(LEAST)
    if int((~best[1]).sum()) > may_miss:
        raise ParameterError(parameter="goals", problem="cannot be met at these sizes, however small the noise")
    for _ in range(HALVINGS):
        middle = float(np.sqrt(low * high))
        found = met(middle)
        if int((~found[1]).sum()) <= may_miss:
            low, best = middle, found
        else:
            high = middle
        if high / low < 1.002:
            break
    return best


def sized_families(at_least: Fraction) -> Mapping[str, Sized]:
    """Sized noise at several floors, and with fat-tailed noise in the lowest band, for a recommendation to choose from."""
    return {
        name: each
        for part in FLOORS
        for name, each in _at_floor(two_digits(float((at_least or USUAL_FLOOR) * part))).items()
    }


def _at_floor(floor: Fraction) -> dict[str, Sized]:
    return sized_family(f"sized, floor {formula_text(floor)}", floor, low=FAT_TAILED)


def sized_family(name: str, floor: Fraction, *, low: Any | None) -> dict[str, Sized]:
    """Sized noise at one floor, and with other noise in the lowest band if that is given."""
    share = Gaussian(sigma="0.05")
    found = {name: Sized(share, floor=floor)}
    return found if low is None else found | {f"{name}, fat-tailed below": Sized(share, floor=floor, low=low)}
