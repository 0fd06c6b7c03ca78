"""The exact numbers that a statistic needs, cell by cell."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from recordwise.errors import ParameterError, PlanError
from recordwise.exact.numbers import Number, positive
from recordwise.plan.schema import Schema
from recordwise.policy.constructors import By

if TYPE_CHECKING:
    from recordwise.mechanisms.quantile import Grid

# Declares unit splitting: which measures are split at which thresholds, fixed or varying by a public group.


Threshold: TypeAlias = Fraction | By
"""One threshold for every record, or one for each public group (``recordwise.policy.by``)."""


PIECE = "piece"
"""The column of the split table that numbers the pieces of a record."""


@dataclass(frozen=True, slots=True)
class Splitting:
    """Joint splitting, by the measure that needs most pieces (T-SPLIT); without any, every record is one piece."""

    thresholds: tuple[tuple[str, Threshold], ...]

    @classmethod
    def of(cls, at: Mapping[str, Number | By]) -> "Splitting":
        """Thresholds in the measures' own units, in a fixed order."""
        if not isinstance(at, Mapping) or not at:
            raise ParameterError(parameter="splitting", problem="needs a threshold for at least one measure")
        read = {name: given if isinstance(given, By) else positive(given, parameter="at") for name, given in at.items()}
        return cls(tuple(sorted(read.items())))

    def measures(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.thresholds)


def check_thresholds(splitting: Splitting, schema: Schema) -> None:
    """Refuse thresholds that are not multiples of every record's step."""
    for measure, at in splitting.thresholds:
        if isinstance(at, By) and at.default is None:
            raise PlanError(problems=(f"the thresholds of '{measure}' by '{at.column.name}' need a default",))
        for each in (at,) if not isinstance(at, By) else (at.default, *(value for _, value in at.values)):
            threshold_steps(each, measure, schema)  # type: ignore[arg-type]


def threshold_steps(at: Fraction, measure: str, schema: Schema) -> int:
    """Return a threshold as an integer number of steps.

    Pieces of another size would leave the lattice. A threshold above a record's bound splits no record, just as
    the bound itself, and might not fit into 64 bits.
    """
    declared = schema.measure(measure)
    if declared is None:
        raise PlanError(problems=(f"'{measure}' is split but is not a measure",))
    steps = at / declared.step
    if steps.denominator != 1 or steps < 1:
        raise PlanError(problems=(f"the threshold of '{measure}' is not a multiple of its step {declared.step}",))
    return min(int(steps), declared.bound_steps)


IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class CountUnits:
    """The number of units, COUNT(*), also COUNT(DISTINCT unit)."""


@dataclass(frozen=True, slots=True)
class SumSteps:
    """The sum of a measure, in integer steps.

    ``at_most`` caps the steps that each record contributes. ``part`` says which values of a signed measure are
    added up, each without its sign: those above or those below 0.
    """

    measure: str
    at_most: int | None = None
    part: Literal["positive", "negative"] | None = None


@dataclass(frozen=True, slots=True)
class CountFirms:
    """COUNT(DISTINCT firm), not additive and so never rolled up."""


@dataclass(frozen=True, slots=True)
class CountPieces:
    """The number of rows of the unit-split table, not created (T-SPLIT)."""

    splitting: Splitting


AdditiveTotal: TypeAlias = CountUnits | SumSteps | CountPieces
Total: TypeAlias = AdditiveTotal | CountFirms


@dataclass(frozen=True, slots=True)
class CountBins:
    """The number of records at each grid point, in non-empty bins."""

    measure: str
    grid: "Grid"


class Confidential:
    """Computed from records without noise: its numbers are never printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: CONFIDENTIAL>"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class BinCounts(Confidential):
    """CONFIDENTIAL: a table's non-empty bins, sorted by cell position."""

    position: IntArray
    point: IntArray
    held: IntArray


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ExactTable(Confidential):
    """CONFIDENTIAL: exact numbers of one table, opened only for noise."""

    cells: int
    totals: Mapping[Total, IntArray]
    bins: Mapping[CountBins, BinCounts]
