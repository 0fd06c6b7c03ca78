"""How large a record usually is in each measure, as far as that is public: from sizes of cells, made-up examples, mechanisms or
the bound of the measure."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from recordwise.mechanisms.base import clamping_bound, inside
from recordwise.plan.keys import Keys
from recordwise.plan.plan import Plan
from recordwise.plan.schema import DEFAULT_BOUND_STEPS, Measure
from recordwise.plan.statistics import Drawable
from recordwise.policy.constructors import By

COUNT = "count"
STEPS = 10
"""The size of a record, in steps, where nothing says more."""
BELOW_THRESHOLD = 5
"""A threshold or an offset is chosen this many times above the usual record."""


def usual_sizes(plan: Plan, examples: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """The middle size of a record in each measure that records hold, in its own units and at most its bound.

    Args:
        plan: The plan, with the sizes of earlier releases read.
        examples: Made-up records by name.

    Returns:
        A positive size for each measure.
    """
    return {each.name: min(_usual(each, plan, examples), float(each.bound)) for each in plan.schema.held_measures()}


def _usual(measure: Measure, plan: Plan, examples: Mapping[str, Mapping[str, Any]]) -> float:
    known = mean_size(plan, measure.name)
    if known is not None:
        return known
    given = [abs(float(each[measure.name])) for each in examples.values() if measure.name in each]
    if positive := [value for value in given if value > 0]:
        return float(np.exp(np.mean(np.log(positive[: (len(positive) + 1) // 2]))))
    if made_for := [float(each) for each in _made_for(plan, measure.name)]:
        return max(min(made_for) / BELOW_THRESHOLD, float(measure.step))
    stated = measure.bound < DEFAULT_BOUND_STEPS * measure.step
    return float(np.sqrt(float(measure.step) * float(measure.bound))) if stated else STEPS * float(measure.step)


def derived_size(name: str, plan: Plan, usual: Mapping[str, float]) -> float:
    """The usual size in any measure: of a derived one, that of the measures it derives from, in absolute terms.

    Args:
        name: A measure of the plan.
        plan: The plan.
        usual: What ``usual_sizes`` found.

    Returns:
        A positive size.
    """
    if name in usual:
        return usual[name]
    measure = plan.schema.measure(name)
    if measure is None:
        return 1.0
    found = abs(sum(float(share) * usual[base] for base, share in measure.derive))
    return max(found, float(measure.step))


def mean_size(plan: Plan, measure: str) -> float | None:
    """The public total of a measure divided by the public number of records, where keys have both."""
    for query in plan.queries:
        for keys in query.key_lists:
            sizes = keys.sizes if isinstance(keys, Keys) else None
            total, number = (None, None) if sizes is None else (sizes.columns.get(measure), sizes.columns.get(COUNT))
            if total is not None and number is not None and total.sum() > 0 and number.sum() > 0:
                return float(total.sum() / number.sum())
    return None


def _made_for(plan: Plan, measure: str) -> Iterator[Fraction]:
    """The records that mechanisms of a measure are made for: thresholds, bounds, offsets, and the middles of grids."""
    for query in plan.queries:
        for part in query.draws():
            if part.of == measure:
                yield from record_of(part, plan)
            for bins in part.bins():
                if bins.measure == measure:
                    yield Fraction(float(np.sqrt(max(float(bins.grid.low), 1.0) * float(bins.grid.high))))


def record_of(part: Drawable, plan: Plan) -> Iterator[Fraction]:
    """The threshold, clamping bound or offset of a statistic's mechanism."""
    at = part.threshold(part.mechanism, plan.schema)
    if isinstance(at, By):
        yield min(number for _, number in at.values)
    elif at:
        yield at
    for each in inside(part.mechanism):
        found = clamping_bound(each) or getattr(each, "offset", None)
        if found and each is part.mechanism:
            yield Fraction(found)
