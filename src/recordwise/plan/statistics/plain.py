"""Counts and sums: one exact total for each cell, with noise."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from recordwise.errors import SqlError, near_name
from recordwise.plan.schema import Schema, policy_measure
from recordwise.plan.statistics.base import (
    COUNT,
    SUM,
    Drawable,
    EntryReader,
    NamedMechanisms,
    Statistic,
    mechanism_problems,
)
from recordwise.plan.statistics.totals import CountFirms, CountUnits, SumSteps, Total
from recordwise.policy.constructors import By
from recordwise.policy.firms import FIRM, SIGNS, SUMS, Joint
from recordwise.policy.policy import Policy

if TYPE_CHECKING:
    from sqlglot import exp

    from recordwise.mechanisms.base import Mechanism
    from recordwise.plan.file.node import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Count(Drawable):
    """COUNT(*)."""

    word: ClassVar[str] = "count"
    means: ClassVar[str] = "the number of units in the cell"
    names_column: ClassVar[bool] = False
    contribution: ClassVar[str] = COUNT
    fitted: ClassVar[bool] = True
    counts_records: ClassVar[bool] = True

    def default_alias(self) -> str:
        return "count"

    @property
    def planned_as(self) -> str | None:
        return COUNT

    def totals(self, schema: Schema) -> tuple[Total, ...]:
        return (CountUnits(),)

    @classmethod
    def read_entry(cls, column: str, node: "Node", reader: EntryReader) -> Statistic | None:
        alias, mechanism = reader.named(node)
        return None if mechanism is None else cls(alias=alias or "", mechanism=mechanism)

    @classmethod
    def read_sql(cls, node: "exp.Expr", alias: str | None, mechanisms: NamedMechanisms) -> Statistic | None:
        from sqlglot import exp

        from recordwise.plan.sql.grammar import only

        if type(node) is not exp.Count or type(node.this) is not exp.Star:
            return None
        only(node, "this", "big_int")
        only(node.this)
        return cls(alias=alias or "", mechanism=mechanisms.take(alias, "*"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CountDistinct(Drawable):
    """COUNT(DISTINCT unit or firm)."""

    counted: str

    word: ClassVar[str] = "count_distinct"
    means: ClassVar[str] = "the number of distinct values of {of}"
    contribution: ClassVar[str] = COUNT
    fitted: ClassVar[bool] = True

    def default_alias(self) -> str:
        return f"count_distinct_{self.counted}"

    @property
    def of(self) -> str | None:
        return self.counted

    def totals(self, schema: Schema) -> tuple[Total, ...]:
        return (CountUnits(),) if self.counted == schema.unit else (CountFirms(),)

    def problems(self, schema: Schema) -> list[str]:
        if self.counted not in (schema.unit, schema.firm):
            return [f"COUNT(DISTINCT {self.counted}) is available only for the unit id and the firm id"]
        return mechanism_problems([self.mechanism], schema)

    @classmethod
    def adds_up(cls, of: str | None, *, firm: str | None) -> bool:
        return of != firm

    def joint(self, mechanism: "Mechanism", schema: Schema) -> Joint:
        """Return the joint bound: a firm counts once, whatever its units."""
        return Drawable.joint(self, mechanism, schema) if self.counted == schema.unit else Joint(kind=FIRM)

    @classmethod
    def read_entry(cls, column: str, node: "Node", reader: EntryReader) -> Statistic | None:
        alias, mechanism = reader.named(node)
        return None if mechanism is None else cls(alias=alias or "", counted=column, mechanism=mechanism)

    @classmethod
    def read_sql(cls, node: "exp.Expr", alias: str | None, mechanisms: NamedMechanisms) -> Statistic | None:
        from sqlglot import exp

        from recordwise.plan.sql.grammar import aggregated_column, only

        if type(node) is not exp.Count or type(node.this) is exp.Star:
            return None
        only(node, "this", "big_int")
        if type(node.this) is not exp.Distinct or len(node.this.expressions) != 1:
            raise SqlError(construct="COUNT of an expression", advice="Use COUNT(*) or COUNT(DISTINCT column).")
        only(node.this, "expressions")
        column = aggregated_column(node.this.expressions[0])
        return cls(alias=alias or "", counted=column, mechanism=mechanisms.take(alias, column))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum(Drawable):
    """SUM of a measure."""

    measure: str

    word: ClassVar[str] = "sum"
    means: ClassVar[str] = "the sum of {of}"
    contribution: ClassVar[str] = SUM
    fitted: ClassVar[bool] = True

    def default_alias(self) -> str:
        return f"sum_{self.measure}"

    @property
    def of(self) -> str | None:
        return self.measure

    @property
    def planned_as(self) -> str | None:
        return self.measure

    def totals(self, schema: Schema) -> tuple[Total, ...]:
        measure, in_two_parts, clamp = schema.measure(self.measure), self.mechanism.signed, self.mechanism.to
        if in_two_parts:
            return (SumSteps(self.measure, part="positive"), SumSteps(self.measure, part="negative"))
        if measure is None or clamp is None:
            return (SumSteps(self.measure),)
        # No record exceeds the bound, and a constant beyond 64 bits would change the type of the sum.
        return (SumSteps(self.measure, min(int(Fraction(clamp) / measure.step), measure.bound_steps)),)

    def problems(self, schema: Schema) -> list[str]:
        measure, clamp = schema.measure(self.measure), self.mechanism.to
        if measure is None:
            return [f"'{self.measure}' is summed but is not a measure{near_name(self.measure, schema.measure_names())}"]
        if clamp is not None and (Fraction(clamp) / measure.step).denominator != 1:
            return [f"'{self.measure}' is clamped at a bound that is not a multiple of its step {measure.step}"]
        return mechanism_problems([self.mechanism], schema)

    def step(self, schema: Schema) -> Fraction:
        measure = schema.measure(self.measure)
        return Fraction(1) if measure is None else measure.step

    def threshold(self, mechanism: "Mechanism", schema: Schema) -> Fraction | By | None:
        return mechanism.threshold(policy_measure(self.measure, schema))

    def cost(self, mechanism: "Mechanism", schema: Schema, *, tight: bool) -> Policy:
        policy: Policy = mechanism.policy(policy_measure(self.measure, schema), tight=tight)
        return policy

    def joint(self, mechanism: "Mechanism", schema: Schema) -> Joint:
        declared = schema.measure(self.measure)
        # A formula by cell is one of columns that records hold, so a derived measure takes the bound that needs none.
        if not mechanism.loss_of_sum or (declared is not None and declared.derive):
            return Joint()
        # What a group changes in the positive and in the negative part of a signed sum does not cancel.
        return Joint(kind=SIGNS if mechanism.signed else SUMS, measure=self.measure)

    def example_sql(self, column: str) -> str:
        return f"SUM({column})"

    @classmethod
    def read_entry(cls, column: str, node: "Node", reader: EntryReader) -> Statistic | None:
        alias, mechanism = reader.named(node)
        if mechanism is None:
            if reader.schema.measure(column) is None:
                near = near_name(column, reader.schema.measure_names())
                node.problem(f"'{column}' is summed but is not a measure{near}")
            return None
        return cls(alias=alias or "", measure=column, mechanism=mechanism)

    @classmethod
    def read_sql(cls, node: "exp.Expr", alias: str | None, mechanisms: NamedMechanisms) -> Statistic | None:
        from sqlglot import exp

        from recordwise.plan.sql.grammar import aggregated_column, only

        if type(node) is not exp.Sum:
            return None
        only(node, "this")
        column = aggregated_column(node.this)
        return cls(alias=alias or "", measure=column, mechanism=mechanisms.take(alias, column))
