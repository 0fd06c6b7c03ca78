"""The older rules: what they withhold, round or coarsen, and what they leave everybody to know.

A rule says which cells reveal a contributor, and how far from the truth the best estimate must stay. A method applies rules to
exact tables and returns what would be published, together with the bounds that everybody can put on each cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from recordwise.disclosure.cells import Cells
from recordwise.disclosure.suppress import complementary_suppression
from recordwise.errors import ParameterError, own_errors_of
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, positive
from recordwise.synthetic.establishments import uniforms


class Contributors(Protocol):
    """The contributions to each cell; zeros if it is empty."""

    @property
    def number(self) -> FloatArray: ...
    @property
    def total(self) -> FloatArray: ...
    @property
    def largest(self) -> FloatArray: ...
    @property
    def second(self) -> FloatArray: ...


@own_errors_of
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Contributions:
    """CONFIDENTIAL: the contributions to the first cells of a list, and the totals of all.

    Cells after those are never published.
    """

    number: FloatArray
    total: FloatArray
    largest: FloatArray
    second: FloatArray
    hidden: Any
    """Whether each cell is never published."""

    @classmethod
    def over(cls, cells: Cells, found: Contributors) -> "Contributions":
        """Add the totals that are in the list of cells only because something lies below them."""
        listed, more = len(found.total), len(cells) - len(found.total)
        hidden = np.arange(len(cells)) >= listed
        total = np.concatenate([found.total, np.full(more, np.nan)])
        for _ in range(sum(int(each.depth.max()) for each in cells.dimensions)):
            cells.add_up(total)
        own = [np.concatenate([each, np.zeros(more)]) for each in (found.number, found.largest, found.second)]
        return cls(own[0], total, own[1], own[2], hidden)

    def __repr__(self) -> str:
        return "<Contributions: CONFIDENTIAL>"


@own_errors_of
@dataclass(frozen=True, slots=True)
class ThresholdRule:
    """Withhold cells with fewer contributors than ``at_least``.

    Nobody may be able to tell their total to within ``percent`` of it.
    """

    at_least: int = 3
    percent: float = 10.0

    def __post_init__(self) -> None:
        positive(self.at_least, parameter="at_least")
        positive(self.percent, parameter="percent")

    def sensitive(self, found: Contributors) -> Any:
        """Return the cells that the rule withholds.

        Args:
            found: The contributions to each cell.

        Returns:
            Whether each cell is withheld.
        """
        return (found.number > 0) & (found.number < self.at_least)

    def protection(self, found: Contributors) -> FloatArray:
        """Return how far off the total everybody must be left.

        Args:
            found: The contributions to each cell.

        Returns:
            A number for each cell, 0 where the rule withholds nothing.
        """
        return np.where(self.sensitive(found), self.percent / 100 * found.total, 0.0)


@own_errors_of
@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """What a method publishes of each cell, and what that implies."""

    value: FloatArray
    """The published number; NaN where there is none."""
    low: FloatArray
    high: FloatArray
    unprotected: Any
    """The positions of cells that a rule withholds and no pattern protects."""

    @property
    def withheld(self) -> Any:
        """Return which cells have no published number."""
        return np.isnan(self.value)


class Method(Protocol):
    """One of the older ways to publish tables."""

    def publish(self, cells: Cells, found: Contributions, seed: int) -> Published:
        """Return what is published of exact tables.

        Args:
            cells: The cells of all tables.
            found: The contributions to them.
            seed: The seed of what is drawn.

        Returns:
            The published values and their bounds.
        """


def _check_rules(rules: Any) -> None:
    """Refuse anything but some rules."""
    if not isinstance(rules, tuple) or not rules or not all(hasattr(each, "sensitive") for each in rules):
        raise ParameterError(
            parameter="rules", problem="must be a tuple of rules", advice="Such as (PercentRule(10), ThresholdRule(3))."
        )


def sensitive_cells(rules: Sequence[Any], found: Contributors) -> tuple[Any, FloatArray]:
    """Return which cells any rule withholds, and the protection they need."""
    marked = np.any([rule.sensitive(found) for rule in rules], axis=0)
    return marked, np.max([rule.protection(found) for rule in rules], axis=0)


@own_errors_of
@dataclass(frozen=True, slots=True)
class Suppression:
    """Withhold what the rules say, and more until none can be computed."""

    rules: tuple[Any, ...]
    complementary: bool = True

    def __post_init__(self) -> None:
        _check_rules(self.rules)

    def publish(self, cells: Cells, found: Contributions, seed: int = 0) -> Published:
        """Return exact values, NaN where they are withheld.

        Args:
            cells: The cells of all tables.
            found: The contributions to them.
            seed: The seed of what is drawn.

        Returns:
            The published values and their bounds.
        """
        marked, distance = sensitive_cells(self.rules, found)
        withheld, unprotected = marked, np.empty(0, np.int64)
        if self.complementary:
            equations = cells.equations(absent_is_zero=True)
            pattern = complementary_suppression(equations, found.total, marked, distance, distance, hidden=found.hidden)
            withheld, unprotected = pattern.withheld, pattern.unprotected
        return _withheld(found, withheld, unprotected)


def _withheld(found: Contributions, withheld: Any, unprotected: Any = ()) -> Published:
    """Return exact values but for those withheld."""
    return _shown(found, withheld, found.total, found.total, found.total, unprotected)


def _shown(
    found: Contributions, withheld: Any, value: FloatArray, low: FloatArray, high: FloatArray, unprotected: Any = ()
) -> Published:
    """Return values with their bounds; unpublished cells are unknown."""
    gone = withheld | found.hidden
    return Published(
        np.where(gone, np.nan, value),
        np.where(gone, 0.0, low),
        np.where(gone, np.inf, high),
        np.asarray(unprotected, np.int64),
    )


@own_errors_of
@dataclass(frozen=True, slots=True)
class Coarsening:
    """Publish a place's cells down to the level at which all of them pass the rules.

    Rolls up along one dimension; which cells can still be computed by differences is for the attack to say.
    """

    rules: tuple[Any, ...]
    along: str | None = None
    """The dimension; the one with the most levels unless given."""

    def __post_init__(self) -> None:
        _check_rules(self.rules)

    def publish(self, cells: Cells, found: Contributions, seed: int = 0) -> Published:
        """Return exact values, NaN below the level that is published.

        Args:
            cells: The cells of all tables.
            found: The contributions to them.
            seed: The seed of what is drawn.

        Returns:
            The published values and their bounds.
        """
        names = [each.name for each in cells.dimensions]
        if self.along is not None and self.along not in names:
            raise ParameterError(parameter="along", problem=f"must be one of {', '.join(names)}")
        levels = [int(each.depth.max()) for each in cells.dimensions]
        column = int(np.argmax(levels)) if self.along is None else names.index(self.along)
        depth = cells.dimensions[column].depth[cells.codes[:, column]]
        marked, _ = sensitive_cells(self.rules, found)
        others = cells.codes.copy()
        others[:, column] = 0
        _, place = np.unique(cells.keys_of(others), return_inverse=True)
        finest = np.full(place.max() + 1, depth.max() + 1)
        np.minimum.at(finest, place[marked], depth[marked])
        return _withheld(found, depth >= finest[place])


@own_errors_of
@dataclass(frozen=True, slots=True)
class Rounding:
    """Round every cell to a multiple of ``base``: to the nearest one, or up or down at random."""

    base: int = 10
    at_random: bool = False

    def __post_init__(self) -> None:
        positive(self.base, parameter="base")

    def publish(self, cells: Cells, found: Contributions, seed: int = 0) -> Published:
        """Return rounded values, off by half the base at most.

        Args:
            cells: The cells of all tables.
            found: The contributions to them.
            seed: The seed of what is drawn.

        Returns:
            The published values and their bounds.
        """
        below = np.floor(found.total / self.base)
        part = found.total / self.base - below
        if self.at_random:
            up = uniforms(seed, 0, 0, len(part)) < part
            value, reach = (below + up) * self.base, float(self.base)
        else:
            value, reach = np.floor(found.total / self.base + 0.5) * self.base, self.base / 2
        return _shown(found, np.isnan(value), value, np.maximum(value - reach, 0.0), value + reach)


EDGES = (1.0, 5.0, 10.0, 20.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10000.0, 25000.0, 50000.0, 100000.0)


@own_errors_of
@dataclass(frozen=True, slots=True)
class Ranges:
    """Publish the class of each sensitive cell, and all others exactly."""

    rules: tuple[Any, ...]
    edges: tuple[float, ...] = EDGES

    def __post_init__(self) -> None:
        _check_rules(self.rules)
        if not self.edges or np.any(np.diff([0.0, *self.edges]) <= 0):
            raise ParameterError(parameter="edges", problem="must increase from above 0")

    def publish(self, cells: Cells, found: Contributions, seed: int = 0) -> Published:
        """Return the middle of the class where a rule withholds the value.

        Args:
            cells: The cells of all tables.
            found: The contributions to them.
            seed: The seed of what is drawn.

        Returns:
            The published values and their bounds.
        """
        marked, _ = sensitive_cells(self.rules, found)
        ends = np.array([0.0, *self.edges, np.inf])
        place = np.searchsorted(ends, found.total, side="right") - 1
        low, high = ends[place], ends[place + 1]
        middle = np.where(np.isfinite(high), (low + high) / 2, low)
        value, low, high = (np.where(marked, each, found.total) for each in (middle, low, high))
        return _shown(found, np.zeros(len(value), np.bool_), value, low, high)


@own_errors_of
@dataclass(frozen=True, slots=True, init=False)
class PercentRule:
    """The p%-rule, which withholds cells that reveal their largest contributor.

    The second largest could estimate the largest to within ``percent`` of it.
    """

    percent: Fraction

    def __init__(self, percent: Number = 10) -> None:
        object.__setattr__(self, "percent", positive(percent, parameter="percent"))

    def sensitive(self, found: Contributors) -> Any:
        """Return the cells that the rule withholds.

        All but the two largest contributions are below ``percent`` of the largest.

        Args:
            found: The contributions to each cell.

        Returns:
            Whether each cell is withheld.
        """
        return (found.number > 0) & (self._lacking(found) > 0)

    def protection(self, found: Contributors) -> FloatArray:
        """Return how far off the total everybody must be left.

        The second largest then misses the largest by ``percent`` of it.

        Args:
            found: The contributions to each cell.

        Returns:
            A number for each cell, 0 where the rule withholds nothing.
        """
        return np.where(self.sensitive(found), self._lacking(found), 0.0)

    def _lacking(self, found: Contributors) -> FloatArray:
        others = found.total - found.largest - found.second
        return np.asarray(float(self.percent) / 100 * found.largest - others)
