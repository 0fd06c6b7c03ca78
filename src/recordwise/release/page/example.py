"""The record the page starts with and how far its charts reach: made up from the policy alone, never from the data."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from recordwise.errors import RecordError
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Policy
from recordwise.release.page.fields import AMOUNT, CHOICE, NUMBER, Field

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
    """The first size, about, where the loss due to one measure, all others at 0, passes ``loss``; a hundred steps if none does."""
    others = {each.name: 0 for each in policy.measures()}
    sizes = [0.0, *(float(measure.step) * size for size in SIZES)]
    losses = losses_along(policy, {**record, **others}, measure.name, sizes)
    if not math.isfinite(losses[0]):
        return 100 * float(measure.step)
    passing = (size for size, found in zip(sizes, losses) if found - losses[0] > loss)
    return next(passing, 100 * float(measure.step))


SIZES = sorted({round(2 ** (power / 8)) for power in range(8 * 52)})
"""Whole numbers, eight to a doubling."""


def losses_along(policy: Policy, record: Mapping[str, Any], name: str, sizes: Sequence[float]) -> list[float]:
    """The losses of records that differ in one measure; without limit where the policy says nothing about their group."""
    columns: dict[str, Any] = {column: [value] * len(sizes) for column, value in record.items()}
    try:
        return [float(loss) for loss in policy.loss(columns | {name: list(sizes)})]
    except RecordError:
        return [math.inf] * len(sizes)


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
