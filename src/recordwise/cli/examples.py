"""Make example records from what a plan and its policy state. None is read from the data."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from recordwise.mechanisms.base import Mechanism
from recordwise.plan.file.read import PlanFile
from recordwise.plan.plan import Plan
from recordwise.plan.schema import Measure, policy_measure
from recordwise.plan.statistics.base import SUM
from recordwise.policy.conditions import AllOf, Among, AnyOf, Compare, Condition, InBand
from recordwise.policy.constructors import By
from recordwise.policy.policy import Maximum, Policy, example_date

# The constants that a policy compares a column with: they determine the column's type and make up examples.


def constants_of(policy: Policy, name: str) -> Iterator[str | bool | Fraction]:
    """Every constant compared with a column, in the order of the terms."""
    for terms in (policy.rho, policy.delta_terms):
        for condition, atom in terms:
            yield from _beside(condition, name)
            for inner in atom.policies if isinstance(atom, Maximum) else ():
                yield from constants_of(inner, name)


def _beside(condition: Condition, name: str) -> Iterator[str | bool | Fraction]:
    match condition:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from _beside(part, name)
        case Among(column, values) if column.name == name:
            yield from (value if isinstance(value, (str, Fraction)) else bool(value.value) for value in values)
        case Compare(column, _, bound) if column.name == name:
            yield bound
        case InBand(table, _):
            for column, held in zip(table.columns, table.values):
                listed = (value for value in held[:FEW] if value is not None and column.name == name)
                yield from (value if isinstance(value, (str, Fraction)) else bool(value.value) for value in listed)
        case _:
            return


FEW = 20
"""So many values of a table of bands are enough to tell its type."""


# Example records that show a policy: the plan's own, or made up from its public thresholds. None is read from the
# data.


SIZES = {
    "very small": Fraction(1, 10),
    "typical": Fraction(1),
    "large": Fraction(10),
    "very large": Fraction(100),
    "giant": Fraction(1000),
}


def example_records(file: PlanFile, policy: Policy) -> dict[str, dict[str, Any]]:
    """The plan's examples, or a series of records from a tenth of the thresholds to a thousand times the thresholds."""
    if file.examples:
        return file.examples
    groups: dict[str, Any] = {
        column.name: next(constants_of(policy, column.name), "") for column in policy.columns() if not column.part
    }
    groups |= {column.name: example_date(policy, column.name) for column in policy.columns() if column.part}
    measures = {measure.name for measure in policy.inputs()}
    return {
        size: groups | {name: _amount(file.plan, name, factor) for name in sorted(measures)}
        for size, factor in SIZES.items()
    }


def _amount(plan: Plan, name: str, factor: Fraction) -> Fraction:
    """A multiple of the measure's threshold, on its lattice, within its bound."""
    declared = plan.schema.measure(name) or Measure(name=name)
    steps = math.ceil(_reference(plan, declared) * factor / declared.step)
    return declared.step * min(max(1, steps), declared.bound_steps)


def _reference(plan: Plan, declared: Measure) -> Fraction:
    for query in plan.queries:
        for statistic in query.draws():
            if statistic.contribution == SUM and statistic.of == declared.name:
                found = _parameter(statistic.mechanism, plan, declared.name)
                if found is not None:
                    return found
    return 100 * declared.step


def _parameter(mechanism: Mechanism, plan: Plan, name: str) -> Fraction | None:
    """The parameter of a mechanism that indicates a typical size: its threshold, clamp, offset or scale."""
    at = mechanism.threshold(policy_measure(name, plan.schema))
    if isinstance(at, By):
        return max([each for _, each in at.values] + ([at.default] if at.default else []))
    for value in (at, *(getattr(mechanism, part, None) for part in ("to", "at", "offset", "scale"))):
        if isinstance(value, Fraction) and value > 0:
            return value
    return None


def record_text(record: dict[str, Any]) -> str:
    """A record as readable text."""
    return ", ".join(f"{name} {_value(value)}" for name, value in record.items())


def _value(value: Any) -> str:
    from recordwise.exact.text import prose_text

    if isinstance(value, Fraction):
        return f"{int(value):,}" if value.denominator == 1 else f"{prose_text(value)}"
    return str(value)
