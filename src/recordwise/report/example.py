"""The record the page starts with and how far its charts reach: made up from the policy alone, never from the data."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from recordwise.errors import RecordError
from recordwise.policy import Measure, Policy
from recordwise.report.fields import AMOUNT, CHOICE, NUMBER, Field

USUAL_LOSS = 0.2
LARGE_LOSS = 1.0
REACH = 1000
"""A chart ends at a thousand times the size at which a measure alone costs ``LARGE_LOSS``."""
MOST = 2.0**53


def start_record(policy: Policy, fields: Sequence[Field]) -> dict[str, Any]:
    """Each measure where it alone costs a usual loss, to one digit; each column at the first value it can have."""
    record: dict[str, Any] = {field.name: _start(field) for field in fields}
    for measure in policy.measures():
        size = size_at_loss(policy, measure, record, USUAL_LOSS)
        record[measure.name] = _on_lattice(_one_digit(size), measure)
    return record


def _start(field: Field) -> Any:
    if field.kind == CHOICE:
        return field.options[0].value
    return 0 if field.kind in (AMOUNT, NUMBER) else ""


def reach_of(policy: Policy, measure: Measure, record: Mapping[str, Any], bound: float) -> float:
    """The right end of a chart, a power of ten, at least four decades above the step."""
    size = size_at_loss(policy, measure, record, LARGE_LOSS)
    step = float(measure.step)
    wanted = max(10 ** math.ceil(math.log10(size * REACH) - 1e-9), step * 1e4)
    return float(min(wanted, max(bound, 10 * step), step * MOST))


def size_at_loss(policy: Policy, measure: Measure, record: Mapping[str, Any], loss: float) -> float:
    """Where the loss due to one measure, all others at 0, passes ``loss``; a hundred steps where it never does."""
    others = {each.name: 0 for each in policy.measures()}
    step = float(measure.step)

    def due(power: float) -> float:
        return loss_or_infinity(policy, {**record, **others, measure.name: step * round(math.exp2(power))}) - base

    base = 0.0
    base = due(-2.0)
    if not due(52) > loss or not math.isfinite(base):
        return 100 * step
    low, high = -1.0, 52.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if due(middle) <= loss else (low, middle)
    return step * max(1.0, round(math.exp2(low)))


def loss_or_infinity(policy: Policy, record: Mapping[str, Any]) -> float:
    """The loss; without limit where the policy says nothing about the record's group."""
    try:
        return float(policy.loss(dict(record)))
    except RecordError:
        return math.inf


def _one_digit(value: float) -> float:
    unit = 10.0 ** math.floor(math.log10(value))
    return math.floor(value / unit) * unit


def _on_lattice(value: float, measure: Measure) -> float:
    steps = max(1, round(value / float(measure.step)))
    found = measure.step * steps
    return int(found) if found.denominator == 1 else float(found)
