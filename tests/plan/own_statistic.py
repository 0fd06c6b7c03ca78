"""A statistic of a user's own, complete: the number of records whose measure is above 0."""

from dataclasses import dataclass
from typing import ClassVar

from recordwise.plan.schema import Schema
from recordwise.plan.statistics import Drawable, Statistic, SumSteps, Total
from recordwise.plan.statistics.base import COUNT


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPositive(Drawable):
    """The number of records with a positive value of a measure that is never negative."""

    measure: str

    word: ClassVar[str] = "count_positive"
    contribution: ClassVar[str] = COUNT

    def default_alias(self) -> str:
        return f"positive_{self.measure}"

    @property
    def of(self) -> str | None:
        return self.measure

    def totals(self, schema: Schema) -> tuple[Total, ...]:
        return (SumSteps(self.measure, at_most=1),)

    def problems(self, schema: Schema) -> list[str]:
        found = Drawable.problems(self, schema)
        return found if schema.measure(self.measure) else [*found, f"'{self.measure}' is not a measure"]

    @classmethod
    def read_entry(cls, column, node, reader) -> Statistic | None:
        alias, mechanism = reader.named(node)
        return None if mechanism is None else cls(alias=alias or "", measure=column, mechanism=mechanism)
