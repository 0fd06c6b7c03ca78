"""Averages: a noisy sum over a noisy count, either of them taken from the query where it is there already."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recordwise.errors import ParameterError
from recordwise.plan.mechanism import Mechanism
from recordwise.plan.schema import Schema
from recordwise.plan.statistics import Count, Sum, mechanism_problems


@dataclass(frozen=True, slots=True, kw_only=True)
class SumAndCount:
    """The two mechanisms of an average, where SQL text names one: ``mechanisms={"emp": SumAndCount(sum=..., count=...)}``."""

    sum: Mechanism
    count: Mechanism | None = None

    def policy(self, measure: Any, *, tight: bool = True) -> Any:
        raise ParameterError(parameter="SumAndCount", problem="is for averages only")


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
