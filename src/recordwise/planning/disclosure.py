"""What traditional disclosure rules would do to the same table: withhold cells (p% rule) or distort records (EZS noise).

Only primary suppression is counted. Complementary suppression, which withholds further cells so that the first cannot be recovered
by subtraction, often doubles the number. Neither rule has a privacy loss or bounds what an insider or a second table can learn.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, positive
from recordwise.exact.text import formula_text, share_text
from recordwise.session.owner import Contributors


@dataclass(frozen=True, slots=True, init=False)
class PercentRule:
    """Withhold a cell if its second largest contributor could estimate the largest to within ``percent`` of it."""

    percent: Fraction

    def __init__(self, percent: Number = 10) -> None:
        object.__setattr__(self, "percent", positive(percent, parameter="percent"))

    def withheld(self, found: Contributors) -> Any:
        """Which cells: all but the two largest contributions are less than the percentage of the largest.

        Args:
            found: The contributors of each cell.

        Returns:
            Whether each cell is withheld.
        """
        rest = found.total - found.largest - found.second
        return (found.number > 0) & (rest < float(self.percent) / 100 * found.largest)


@dataclass(frozen=True, slots=True, init=False)
class MultiplicativeNoise:
    """Evans, Zayatz and Slanta's noise: each contribution times 1 + u or 1 - u, with u uniform between ``low`` and ``high``."""

    low: Fraction
    high: Fraction

    def __init__(self, low: Number = "0.1", high: Number = "0.2") -> None:
        object.__setattr__(self, "low", positive(low, parameter="low"))
        object.__setattr__(self, "high", positive(high, parameter="high"))
        if not self.low <= self.high < 1:
            raise ParameterError(parameter="low, high", problem="must satisfy low <= high < 1")

    def relative_deviations(self, found: Contributors) -> FloatArray:
        """The standard deviation of each cell that has contributors, as a share of its total: exact, multipliers independent.

        Args:
            found: The contributors of each cell.

        Returns:
            A share for each cell.
        """
        held = found.total > 0
        spread = (self.low**2 + self.low * self.high + self.high**2) / 3
        return np.asarray(np.sqrt(float(spread) * found.squares[held]) / found.total[held])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Disclosure:
    """CONFIDENTIAL if the records are: what both rules would do to one table."""

    cells: int
    """Cells with a contribution above 0."""
    withheld: int
    withheld_value: float
    """The share of the grand total that lies in withheld cells."""
    median_deviation: float
    """The median over cells of the standard deviation of multiplicative noise, relative to the cell's total."""
    p90_deviation: float
    distorted: float
    """The share of cells with a relative standard deviation above 5%."""
    lone: int
    """Cells with one contributor, whose value is then known to within ``high``."""
    percent: float
    low: float
    high: float

    @property
    def withheld_cells(self) -> float:
        """The share of cells that would be withheld."""
        return self.withheld / max(1, self.cells)

    def sentences(self) -> str:
        """Both rules in words."""
        withheld, value = share_text(self.withheld_cells, 1), share_text(self.withheld_value, 1)
        low, high = share_text(self.low), share_text(self.high)
        deviation, distorted = share_text(self.median_deviation, 1), share_text(self.distorted, 1)
        return (
            f"A {formula_text(self.percent)}%-rule would withhold {withheld} of the {self.cells:,} cells with contributors, "
            f"{value} of the total (primary suppression only; complementary suppression comes on top).\n"
            f"Multiplicative (EZS) noise of {low} to {high} would distort half of the cells by a standard deviation of "
            f"{deviation} or more, {distorted} of them by more than 5%; the contributor of each of the {self.lone:,} cells with "
            f"only one would be known to within {high}. Neither bounds a loss."
        )

    def to_json(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {name: getattr(self, name) for name in self.__slots__} | {"withheld_cells": self.withheld_cells}


def disclosure(found: Contributors, rule: PercentRule, noise: MultiplicativeNoise) -> Disclosure:
    """Both rules on the contributors of one table."""
    withheld, deviations = rule.withheld(found), noise.relative_deviations(found)
    return Disclosure(
        cells=int((found.number > 0).sum()),
        withheld=int(withheld.sum()),
        withheld_value=float(found.total[withheld].sum() / max(found.total.sum(), 1e-300)),
        median_deviation=float(np.median(deviations)) if len(deviations) else 0.0,
        p90_deviation=float(np.quantile(deviations, 0.9)) if len(deviations) else 0.0,
        distorted=float(np.mean(deviations > 0.05)) if len(deviations) else 0.0,
        lone=int((found.number == 1).sum()),
        percent=float(rule.percent),
        low=float(noise.low),
        high=float(noise.high),
    )
