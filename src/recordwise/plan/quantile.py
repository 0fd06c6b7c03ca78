"""Quantiles of a measure, from counts on a public grid."""

from dataclasses import dataclass
from fractions import Fraction

from recordwise.plan.schema import Schema
from recordwise.plan.totals import CountBins, Total
from recordwise.quantiles import TreeQuantile


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
