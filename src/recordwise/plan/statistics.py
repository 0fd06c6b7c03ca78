"""The statistics a query asks for, each with its alias and the mechanism that will protect it."""

from dataclasses import dataclass
from fractions import Fraction

from recordwise.plan.column_types import threshold_problems
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
        if self.column not in (schema.unit, schema.firm):
            return [f"COUNT(DISTINCT {self.column}) is offered for the unit id and the firm id only"]
        return mechanism_problems(self.mechanism, schema)


def mechanism_problems(mechanism: Mechanism, schema: Schema) -> list[str]:
    """Where the thresholds of a mechanism do not fit the schema."""
    return threshold_problems(getattr(mechanism, "at", None), schema)
