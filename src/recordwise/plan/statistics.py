"""The statistics a query asks for, each with its alias and the mechanism that will protect it."""

from dataclasses import dataclass
from fractions import Fraction

from recordwise.plan.mechanism import Mechanism
from recordwise.plan.schema import Schema
from recordwise.plan.totals import CountFirms, CountUnits, SumSteps, Total


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """COUNT(*)."""

    alias: str
    mechanism: Mechanism

    def totals(self, schema: Schema) -> tuple[Total, ...]:
        return (CountUnits(),)

    def problems(self, schema: Schema) -> list[str]:
        return []


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
        return (SumSteps(self.measure, int(clamp / measure.step)),)

    def problems(self, schema: Schema) -> list[str]:
        measure, clamp = schema.measure(self.measure), self._clamp()
        if measure is None:
            return [f"'{self.measure}' is summed but is not a measure"]
        if clamp is not None and (clamp / measure.step).denominator != 1:
            return [f"'{self.measure}' is clamped at a bound that is not a whole number of its step {measure.step}"]
        return []

    def _clamp(self) -> Fraction | None:
        """A clamping mechanism names its bound ``to``: then the engine adds up clamped contributions."""
        clamp = getattr(self.mechanism, "to", None)
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
        known = self.column in (schema.unit, schema.firm)
        return [] if known else [f"COUNT(DISTINCT {self.column}) is offered for the unit id and the firm id only"]
