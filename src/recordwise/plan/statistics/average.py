"""Averages: the ratio of a noisy sum to a noisy count, each reused from the query where it is already there (T-AVG)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from recordwise.errors import ParameterError
from recordwise.mechanisms.base import Mechanism
from recordwise.plan.schema import Schema
from recordwise.plan.sql.grammar import aggregated_column, only
from recordwise.plan.statistics.answers import NoisyColumn
from recordwise.plan.statistics.base import (
    Chosen,
    Drawable,
    EntryReader,
    Form,
    NamedMechanisms,
    Statistic,
    mechanism_entry,
    mechanism_problems,
)
from recordwise.plan.statistics.plain import Count, Sum
from recordwise.plan.statistics.ratio import ONE, plain_ratio

if TYPE_CHECKING:
    from recordwise.plan.file.node import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class SumAndCount:
    """The two mechanisms of an average, where SQL text names one: ``mechanisms={"emp": SumAndCount(sum=..., count=...)}``.

    Args:
        sum: The mechanism of the sum.
        count: The mechanism of the count; without it any count of the statement is used.
    """

    sum: Mechanism
    count: Mechanism | None = None

    def policy(self, measure: Any, *, tight: bool = True) -> Any:
        """Refused: an average has a policy by its sum and its count.

        Args:
            measure: The measure.
            tight: Whether the tight policy is meant; otherwise the one printed in the papers.

        Returns:
            Nothing; it raises.
        """
        raise ParameterError(parameter="SumAndCount", problem="is for averages only")


@dataclass(frozen=True, slots=True, kw_only=True)
class Average(Statistic):
    """AVG of a measure. Both parts are paid for ([S] prints the sum alone), unless the query already has them (T-AVG)."""

    measure: str
    sum: Mechanism
    count: Mechanism | None

    word: ClassVar[str] = "avg"
    means: ClassVar[str] = "the average of {of}"
    sql_key: ClassVar[str | None] = "sum"
    derived: ClassVar[bool] = True

    def default_alias(self) -> str:
        return f"avg_{self.measure}"

    @property
    def of(self) -> str | None:
        return self.measure

    def mechanisms(self) -> tuple[Any, ...]:
        return (self.sum,) if self.count is None else (self.sum, self.count)

    def parts(self, drawn: Sequence[Drawable]) -> tuple[Drawable, ...]:
        """The sum and the count to divide: those of ``drawn`` with the same mechanism, otherwise its own; empty without a count."""
        sums = [s for s in drawn if isinstance(s, Sum) and s.measure == self.measure and s.mechanism == self.sum]
        counts = [s for s in drawn if isinstance(s, Count) and self.count in (None, s.mechanism)]
        if not counts and self.count is None:
            return ()
        own_sum = Sum(alias=f"{self.alias}_sum", measure=self.measure, mechanism=self.sum)
        count = counts[0] if counts else Count(alias=f"{self.alias}_count", mechanism=self.count)
        return (sums[0] if sums else own_sum), count

    def with_mechanisms(self, chosen: Chosen, drawn: Sequence[Drawable]) -> Statistic:
        of_sum, of_count = self.parts(drawn)
        count = None if self.count is None else chosen(of_count)
        return replace(self, sum=chosen(of_sum), count=count)

    def forms(self, drawn: Sequence[Drawable]) -> tuple[Form, Form]:
        of_sum, of_count = self.parts(drawn)
        return ((of_sum, ONE),), ((of_count, ONE),)

    def missing(self, drawn: Sequence[Drawable], schema: Schema) -> list[str]:
        if self.parts(drawn):
            return []
        return [f"'{self.alias}' needs a count; pass count=, or ask for a count in the same query"]

    def problems(self, schema: Schema) -> list[str]:
        if schema.measure(self.measure) is None:
            return [f"'{self.measure}' is averaged but is not a measure"]
        return mechanism_problems(self.mechanisms(), schema)

    def confidence_of_parts(self, confidence: float) -> float:
        return (1 + confidence) / 2

    def column(self, answers: Sequence[Any], *, confidence: float) -> NoisyColumn:
        of_sum, of_count = answers
        return plain_ratio(self.alias, of_sum, of_count, confidence)

    def description(self) -> dict[str, Any]:
        return Statistic.description(self) | {"sum": self.sum, "count": self.count, "unbiased": False}

    def entry(self) -> dict[str, Any]:
        parts = {"sum": self.sum} | ({} if self.count is None else {"count": self.count})
        return {name: mechanism_entry(each) for name, each in parts.items()}

    @classmethod
    def read_entry(cls, column: str, node: "Node", reader: EntryReader) -> Statistic | None:
        """``avg.emp = { sum = "split", count = "counts", as = "mean" }``."""
        entries = node.table("sum", "count", "as", needed=("sum",))
        alias = entries["as"].text() if "as" in entries else ""
        parts = _both(entries, reader)
        if parts is None or alias is None:
            return None
        return cls(alias=alias, measure=column, sum=parts.sum, count=parts.count)

    @classmethod
    def read_sql_mechanism(cls, node: "Node", reader: EntryReader) -> Any | None:
        return _both(node.table("sum", "count"), reader)

    @classmethod
    def read_sql(cls, node: exp.Expr, alias: str | None, mechanisms: NamedMechanisms) -> Statistic | None:
        if type(node) is not exp.Avg:
            return None
        only(node, "this")
        column = aggregated_column(node.this)
        given = mechanisms.take(alias, column)
        parts = given if isinstance(given, SumAndCount) else SumAndCount(sum=given)
        return cls(alias=alias or "", measure=column, sum=parts.sum, count=parts.count)


def _both(entries: "Mapping[str, Node]", reader: EntryReader) -> SumAndCount | None:
    """The two mechanisms of an average; the count may be left to the query."""
    found: dict[str, Any] = {name: reader.mechanism(entries[name]) for name in ("sum", "count") if name in entries}
    return None if "sum" not in found or None in found.values() else SumAndCount(**found)
