"""The statistics a query asks for, each with its alias and the mechanism that will protect it.

The exact numbers an engine computes for a cell. An engine knows these and no mechanism.
Averages: a noisy sum over a noisy count, either of them taken from the query where it is there already.
Quantiles of a measure, from counts on a public grid.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from recordwise.errors import ParameterError
from recordwise.mechanisms.base import Mechanism, clamping_bound
from recordwise.mechanisms.quantile import Grid, TreeQuantile
from recordwise.plan.column_types import threshold_problems
from recordwise.plan.schema import Schema
from recordwise.plan.splitting import Splitting


@dataclass(frozen=True, slots=True)
class CountUnits:
    """The number of units, COUNT(*): ids are unique, so also COUNT(DISTINCT unit)."""


@dataclass(frozen=True, slots=True)
class SumSteps:
    """The sum of a measure, as a whole number of its steps; with ``at_most``, of what each record has up to so many steps."""

    measure: str
    at_most: int | None = None


@dataclass(frozen=True, slots=True)
class CountFirms:
    """COUNT(DISTINCT firm): not additive over cells, so it never cascades from counts."""


@dataclass(frozen=True, slots=True)
class CountPieces:
    """The number of rows the unit-split table would have (T-SPLIT), counted without making them."""

    splitting: Splitting


AdditiveTotal: TypeAlias = CountUnits | SumSteps | CountPieces
Total: TypeAlias = AdditiveTotal | CountFirms


@dataclass(frozen=True, slots=True)
class CountBins:
    """The number of records at each point of a public grid, cell by cell; only non-empty bins are returned."""

    measure: str
    grid: Grid


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """COUNT(*)."""

    alias: str
    mechanism: Mechanism

    def totals(self, schema: Schema) -> tuple[Total, ...]:
        return (CountUnits(),)

    def problems(self, schema: Schema) -> list[str]:
        return mechanism_problems(self.mechanism, schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """SUM of a measure."""

    alias: str
    measure: str
    mechanism: Mechanism

    def totals(self, schema: Schema) -> tuple[Total, ...]:
        measure, clamp = schema.measure(self.measure), self._clamp()
        if measure is None or clamp is None:
            return (SumSteps(self.measure),)
        # No record exceeds the bound, and a constant beyond 64 bits would change the type of the sum.
        return (SumSteps(self.measure, min(int(clamp / measure.step), measure.bound_steps)),)

    def problems(self, schema: Schema) -> list[str]:
        measure, clamp = schema.measure(self.measure), self._clamp()
        if measure is None:
            return [f"'{self.measure}' is summed but is not a measure"]
        if clamp is not None and (clamp / measure.step).denominator != 1:
            return [f"'{self.measure}' is clamped at a bound that is not a whole number of its step {measure.step}"]
        return mechanism_problems(self.mechanism, schema)

    def _clamp(self) -> Fraction | None:
        """A clamping mechanism names its bound ``to``: then the engine adds up clamped contributions."""
        clamp = clamping_bound(self.mechanism)
        return None if clamp is None else Fraction(clamp)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountDistinct:
    """COUNT(DISTINCT unit or firm)."""

    alias: str
    column: str
    mechanism: Mechanism

    def totals(self, schema: Schema) -> tuple[Total, ...]:
        return (CountUnits(),) if self.column == schema.unit else (CountFirms(),)

    def problems(self, schema: Schema) -> list[str]:
        if self.column not in (schema.unit, schema.firm):
            return [f"COUNT(DISTINCT {self.column}) is offered for the unit id and the firm id only"]
        return mechanism_problems(self.mechanism, schema)


def mechanism_problems(mechanism: Mechanism, schema: Schema) -> list[str]:
    """Where the thresholds of a mechanism do not fit the schema."""
    return threshold_problems(getattr(mechanism, "at", None), schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class SumAndCount:
    """The two mechanisms of an average, where SQL text names one: ``mechanisms={"emp": SumAndCount(sum=..., count=...)}``."""

    sum: Mechanism
    count: Mechanism | None = None

    def policy(self, measure: Any, *, tight: bool = True) -> Any:
        raise ParameterError(parameter="SumAndCount", problem="is for averages only")


StatisticMechanism: TypeAlias = Mechanism | TreeQuantile | SumAndCount
"""What SQL text may name for a statistic: a mechanism, the tree of a quantile, or the two mechanisms of an average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """AVG of a measure. Both parts are paid for ([S] prints the sum alone), unless the query has them already (T-AVG)."""

    alias: str
    measure: str
    sum: Mechanism
    count: Mechanism | None

    def parts(self, drawn: Sequence[Any]) -> tuple[Sum, Count] | None:
        """The sum and the count to divide: those of ``drawn`` with the same mechanism, else its own; None without any count."""
        sums = [s for s in drawn if isinstance(s, Sum) and s.measure == self.measure and s.mechanism == self.sum]
        counts = [s for s in drawn if isinstance(s, Count) and self.count in (None, s.mechanism)]
        if not counts and self.count is None:
            return None
        own_sum = Sum(alias=f"{self.alias}_sum", measure=self.measure, mechanism=self.sum)
        count = counts[0] if counts else Count(alias=f"{self.alias}_count", mechanism=self.count)  # type: ignore[arg-type]
        return (sums[0] if sums else own_sum), count

    def needs_count(self) -> str:
        """The problem of an average without any count."""
        return f"'{self.alias}' needs a count: give count=, or ask for a count in the same query"

    def problems(self, schema: Schema) -> list[str]:
        if schema.measure(self.measure) is None:
            return [f"'{self.measure}' is averaged but is not a measure"]
        parts = [self.sum] if self.count is None else [self.sum, self.count]
        return [problem for part in parts for problem in mechanism_problems(part, schema)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """QUANTILE of a measure: zCDP before splitting, the same loss for every record (T-QUANTILE)."""

    alias: str
    measure: str
    p: Fraction
    mechanism: TreeQuantile

    def totals(self, schema: Schema) -> tuple[Total, ...]:
        return ()

    def problems(self, schema: Schema) -> list[str]:
        problems = []
        measure = schema.measure(self.measure)
        if measure is None:
            problems.append(f"a quantile of '{self.measure}' is asked for, which is not a measure")
        elif self.mechanism.grid.steps(measure.step)[-1] < 1:
            problems.append(f"the grid of '{self.alias}' ends below one step of '{self.measure}'")
        if not 0 < self.p < 1:
            problems.append(f"the p of '{self.alias}' does not lie between 0 and 1")
        return problems

    def shares_tree(self, other: object) -> bool:
        """Whether both can be read off the same noisy counts."""
        return isinstance(other, Quantile) and (self.measure, self.mechanism) == (other.measure, other.mechanism)

    def bins(self) -> CountBins:
        """What an engine counts."""
        return CountBins(self.measure, self.mechanism.grid)
