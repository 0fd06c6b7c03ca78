"""Losses by the size of a record: tenfold classes of the measure that a policy depends on first."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.text import prose_text
from recordwise.plan.fields import Field
from recordwise.plan.predicates import And, Compare
from recordwise.plan.schema import Schema
from recordwise.planning.losses import Losses
from recordwise.policy.policy import Policy
from recordwise.session.owner import OwnerView

FACTOR = 10
ALL = "all records"
BINNED = (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeClass:
    """The records of one class of sizes, and what they lose."""

    name: str
    records: int
    median: float
    p99: float
    maximum: float

    def to_json(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def losses_by_size(
    view: OwnerView, policy: Policy, schema: Schema, *, measure: str | None = None
) -> tuple[SizeClass, ...]:
    """The losses of the records by tenfold classes of a measure; CONFIDENTIAL where the records are.

    Args:
        view: The records.
        policy: What they lose.
        schema: Their schema.
        measure: The measure that the classes are made of; by default the first that the policy depends on.

    Returns:
        The classes that hold records, the smallest first; one for all records if the policy depends on no measure.
    """
    used = {each.name for each in policy.inputs()}
    held = [each.name for each in schema.held_measures()]
    sized = measure or next((name for name in held if name in used), None)
    names = used | {each.name for each in policy.columns()}
    counted = view.value_counts(sorted({*names, *([sized] if sized else [])}))
    if sized is None:
        return _of_all(view, policy, counted)
    if counted is None:
        return _binned(view, policy, sized)
    size = np.abs(np.asarray(counted.columns[sized], np.float64))
    losses = np.asarray(policy.loss(counted.columns), np.float64)
    edges = class_edges(float(size.max(initial=0.0)), float(size[size > 0].min(initial=1.0)))
    place = np.searchsorted(edges, size, side="right")
    found = []
    for number in np.unique(place):
        rows = place == number
        found.append(_class(class_name(edges, int(number), sized), Losses.of(losses[rows], counted.records[rows])))
    return tuple(found)


def _of_all(view: OwnerView, policy: Policy, counted: Any) -> tuple[SizeClass, ...]:
    if counted is None:
        return (_class(ALL, Losses.of_bins(view.loss_bins([policy])[0])),)
    losses = np.asarray(policy.loss(counted.columns)) if counted.columns else np.full(1, float(policy.loss({})))
    return (_class(ALL, Losses.of(np.broadcast_to(losses, counted.records.shape), counted.records)),)


def _binned(view: OwnerView, policy: Policy, sized: str) -> tuple[SizeClass, ...]:
    """Where there are too many different values to fetch: one count of bins for each class, the first below 1."""
    found, field = [], Field(sized)
    for place in range(len(BINNED) + 1):
        tests = [Compare(field, ">=", Fraction(BINNED[place - 1]))] if place else []
        tests += [Compare(field, "<", Fraction(BINNED[place]))] if place < len(BINNED) else []
        (bins,) = view.loss_bins([policy], condition=And(tuple(tests)))
        name = class_name(BINNED, place, sized) if place else f"{sized} below {prose_text(BINNED[0])}"
        found.append(_class(name, Losses.of_bins(bins)))
    return tuple(each for each in found if each.records)


def _class(name: str, losses: Losses) -> SizeClass:
    return SizeClass(
        name=name,
        records=losses.number,
        median=losses.quantile(0.5),
        p99=losses.quantile(0.99),
        maximum=losses.maximum,
    )


def class_edges(largest: float, smallest: float) -> FloatArray:
    """The smallest positive power of ten that begins a class, and all others up to the largest value."""
    first = int(np.floor(np.log10(max(smallest, 1e-12))))
    last = int(np.floor(np.log10(max(largest, smallest, 1e-12))))
    return np.asarray(float(FACTOR) ** np.arange(first, last + 1))


def class_name(edges: Sequence[float] | FloatArray, place: int, of: str) -> str:
    """What a class is called: its measure, and from which size on to below which."""
    if place == 0:
        return f"{of} 0" if len(edges) else of
    start = prose_text(edges[place - 1])
    return f"{of} from {start}" if place == len(edges) else f"{of} {start} to below {prose_text(edges[place])}"
