"""The baselines of a plan.

Other queries, clamped zCDP, an earlier release, a p%-rule, multiplicative noise. All are drawn. For each
draw a baseline has the values that its tables would publish in the cells of the plan's tables: NaN where it
publishes nothing, 0 where it selects keys and a cell is not among them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from recordwise.disclosure.rules import Coarsening, PercentRule, Ranges, Rounding, Suppression, ThresholdRule
from recordwise.errors import ParameterError, own_argument_errors, own_errors_of
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, positive
from recordwise.exact.text import formula_text, share_text
from recordwise.mechanisms.gaussian import Clamped, Gaussian
from recordwise.noise.randomness import Seeded
from recordwise.plan.keys.cells import Rows
from recordwise.plan.keys.keys import Keys
from recordwise.plan.query import Query
from recordwise.plan.statistics import Drawable
from recordwise.plan.statistics.base import COUNT, SUM
from recordwise.planning.scope import PlanLike, at_level, bare, describes_plan, read_queries
from recordwise.release.dictionary import value_column
from recordwise.release.release import Release
from recordwise.release.tables import BASIC
from recordwise.session.owner import Contributors, OwnerView
from recordwise.session.simulated import SimulatedTable, Simulation
from recordwise.synthetic.establishments import uniforms

# What traditional disclosure rules would do to the same table: withhold cells (p% rule) or distort records (EZS
# noise). Only primary suppression is counted. Complementary suppression, which withholds further cells so that the
# first cannot be recovered by subtraction, often doubles the number. Neither rule has a privacy loss or bounds what
# an insider or a second table can learn.


@own_errors_of
@dataclass(frozen=True, slots=True, init=False)
class MultiplicativeNoise:
    """Multiplicative noise of Evans, Zayatz and Slanta.

    Each contribution times 1 + u or 1 - u, with u uniform between ``low`` and ``high``.
    """

    low: Fraction
    high: Fraction

    def __init__(self, low: Number = "0.1", high: Number = "0.2") -> None:
        object.__setattr__(self, "low", positive(low, parameter="low"))
        object.__setattr__(self, "high", positive(high, parameter="high"))
        if not self.low <= self.high < 1:
            raise ParameterError(parameter="low, high", problem="must satisfy low <= high < 1")

    def relative_deviations(self, found: Contributors) -> FloatArray:
        """Return the relative standard deviation of each nonempty cell.

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
    """The effect of both rules on one table.

    CONFIDENTIAL if the records are.
    """

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
    withheld, deviations = rule.sensitive(found), noise.relative_deviations(found)
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


# What a baseline draws.


CLAMPING, SELECTION, NOISE, FITTING, OTHER = "clamping", "key selection", "noise", "post-processing", "other"
STAGES = (CLAMPING, SELECTION, NOISE, FITTING)
"""In the order of a release: records are clamped and added up, cells selected, noise drawn, and the tables made to fit."""
Place: TypeAlias = tuple[str, str]
"""A table and a variable."""
Stages: TypeAlias = dict[str, FloatArray]
"""The values of the cells after each stage; the last are published."""
Fit: TypeAlias = Callable[[Release], Release]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """The records and the exact tables for comparison.

    CONFIDENTIAL if the records are.
    """

    view: OwnerView
    queries: tuple[Query, ...]
    simulation: Simulation
    tables: tuple[SimulatedTable, ...]
    seed: int


class Rival(Protocol):
    """One way to publish the tables of a plan."""

    def draw(self, case: Case, number: int) -> Mapping[Place, Stages]:
        """The values of one draw, by table and variable, after each stage."""


class Drawn:
    """Releases of queries, with noise drawn each time, and fitted if asked."""

    def __init__(self, simulation: Simulation, fit: Fit | None) -> None:
        self._simulation, self._fit, self._tables = simulation, fit, simulation.tables()

    def draw(self, case: Case, number: int) -> Mapping[Place, Stages]:
        """One release: exact, clamped, selected, noisy and fitted values."""
        noisy = self._simulation.draw(Seeded(case.seed * 100_003 + number))
        fitted = noisy if self._fit is None else self._fit(noisy)
        found: dict[Place, Stages] = {}
        for table in case.tables:
            own = next((each for each in self._tables if each.name == table.name), None)
            if own is None:
                continue
            for variable in [name for name in own.kept if name in table.exact]:
                kept, listed = at_cells(table, own.cells, own.kept[variable]), is_listed(noisy, table)
                values = {
                    CLAMPING: kept,
                    SELECTION: np.where(listed, kept, 0.0),
                    NOISE: np.where(listed, published(noisy, table, variable), 0.0),
                    FITTING: np.where(listed, published(fitted, table, variable), 0.0),
                }
                found[table.name, variable] = values
        return found


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier release, as it was published.

    What has changed since is part of its error.
    """

    release: Release

    def draw(self, case: Case, number: int) -> Mapping[Place, Stages]:
        """The published values, the same for every draw."""
        return {
            (table.name, variable): {OTHER: published(self.release, table, variable)}
            for table in case.tables
            for variable in table.exact
            if any(each.name == table.name and variable in each.data.column_names for each in self.release.tables)
        }


class Multiplied:
    """Every contribution times a random 1 + u or 1 - u.

    Drawn for each record, again in each table: the error of a cell has the same law as with one factor for each record.
    """

    def __init__(self, noise: MultiplicativeNoise) -> None:
        self.noise = noise
        self._read: dict[Place, Any] = {}

    def draw(self, case: Case, number: int) -> Mapping[Place, Stages]:
        """The totals of the multiplied contributions."""
        found: dict[Place, Stages] = {}
        for place, (table, part) in enumerate(sums(case)):
            declared = case.view.schema.measure(str(part.of))
            if declared is None or declared.signed:
                continue
            key = (table.name, part.alias)
            if key not in self._read:
                held = case.simulation.contributions(table.table, str(part.of))
                self._read[key] = np.repeat(held.position, held.times), np.repeat(held.amount, held.times)
            position, amount = self._read[key]
            stream = 2 * (number * 1_000 + place)
            spread, sign = (uniforms(case.seed, stream + each, 0, len(amount)) for each in (0, 1))
            low, high = float(self.noise.low), float(self.noise.high)
            factor = 1 + np.where(sign < 0.5, -1, 1) * (low + (high - low) * spread)
            total = np.bincount(position, weights=amount * factor, minlength=len(table.exact[part.alias]))
            found[key] = {NOISE: np.asarray(total, np.float64)}
        return found


def sums(case: Case) -> list[tuple[SimulatedTable, Drawable]]:
    """The sums of tables with public keys: what traditional rules are for."""
    return [
        (table, part)
        for table in case.tables
        if case.simulation.plan.selection(table.table) is None
        for part in case.queries[table.table.query].draws()
        if part.contribution == SUM and part.alias in table.exact
    ]


def one_level(case: Case, table: SimulatedTable) -> Query:
    """A query for one table alone, without statistics."""
    return at_level(bare(case.queries[table.table.query]), table.table.shape)


def at_cells(table: SimulatedTable, cells: pa.Table, values: FloatArray) -> FloatArray:
    """Return listed cells' numbers at a table's cells, else 0."""
    if not table.cells.num_columns or table.cells is cells or table.cells.equals(cells):
        return values
    return Keys(Rows.of(table.cells)).match_values(cells, values)


def is_listed(release: Release, table: SimulatedTable) -> Any:
    """Which cells of a table a release lists."""
    data = next(each.data for each in release.tables if each.name == table.name)
    if not table.cells.num_columns:
        return np.ones(1, np.bool_)
    return at_cells(table, data.select(table.cells.column_names), np.ones(data.num_rows)) > 0


def published(release: Release, table: SimulatedTable, variable: str) -> FloatArray:
    """Return the value to publish in each cell of a table.

    Basic, fitted, or as drawn; NaN where a cell is not published.
    """
    basic = next((each for each in release.basic_tables if each.name == table.name + BASIC), None)
    research = next((each for each in release.tables if each.name == table.name), None)
    if basic is not None and variable in basic.variables:
        data, name = basic.data, variable
    elif research is not None and variable in research.data.column_names:
        data, name = research.data, value_column(research, variable)
    else:
        return np.full(table.cells.num_rows if table.cells.num_columns else 1, np.nan)
    values = np.asarray(data.column(name).cast(pa.float64()).fill_null(np.nan).to_numpy(), np.float64)
    if not table.cells.num_columns:
        return values
    cells = data.select(table.cells.column_names)
    if cells.equals(table.cells):
        return values
    listed = at_cells(table, cells, np.ones(len(values)))
    return np.where(listed > 0, at_cells(table, cells, values), np.nan)


def read_rival(name: str, given: Any, view: OwnerView, fit: Fit | None) -> Rival:
    """What is given as a baseline, as something that can be drawn."""
    from recordwise.planning.simulate.older_rules import Ruled

    if isinstance(given, Release):
        return Earlier(given)
    if isinstance(given, (PercentRule, ThresholdRule)):
        given = Suppression((given,))
    if isinstance(given, (Suppression, Coarsening, Rounding, Ranges)):
        return Ruled(given)
    if isinstance(given, MultiplicativeNoise):
        return Multiplied(given)
    if not describes_plan(given):
        raise ParameterError(
            parameter=f"baselines['{name}']",
            problem="is neither a plan, a release, one of the older rules nor MultiplicativeNoise",
        )
    return Drawn(view.simulation(*read_queries(given)), fit)


@own_argument_errors
def clamped(query: PlanLike, *, to: Mapping[str, Number], rho: Number) -> tuple[Query, ...]:
    """Return the queries with the usual kind of zCDP.

    Sums clamped to a bound, Gaussian noise, the same loss for every record.

    Args:
        query: A plan.
        to: The bound of each measure that is summed.
        rho: The loss of each count and sum.

    Returns:
        The queries, with the same names for what they publish.

    Raises:
        ParameterError: A measure that is summed has no bound.
    """
    return tuple(_clamped(each, to, rho) for each in read_queries(query))


def _clamped(query: Query, to: Mapping[str, Number], rho: Number) -> Query:
    made = bare(query)
    for part in query.draws():
        if part.contribution == COUNT:
            made = made.ask(replace(part, mechanism=Gaussian(rho=rho)))
        elif part.contribution == SUM:
            if part.of not in to:
                raise ParameterError(parameter="to", problem=f"has no bound for '{part.of}'")
            made = made.ask(replace(part, mechanism=Clamped(to=to[str(part.of)], rho=rho)))
    return made
