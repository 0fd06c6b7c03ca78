"""Counterexamples where measures are derived. A proof lets a derived measure take any value, which covers every record; a witness
must be a record, with the derived values that follow from what it holds."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import ceil
from typing import Any

from recordwise.errors import RecordError
from recordwise.exact.numbers import ball
from recordwise.policy.dominance.comparison import DoubtError
from recordwise.policy.evaluate.numpy import canonical_record, exact_sum, terms_ball
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Terms, guard_columns, terms_bands

UNKNOWN = (
    "a counterexample was found only with derived measures that do not fit the measures they come from; "
    "state the budget in the same derived measures"
)
UNREAL = "a counterexample was found only with bands that no record is known to be in together; state the budget in the same bands"
DOUBLINGS = range(0, 25, 4)


def held_witness(
    witness: Mapping[str, Any] | None, spent: Terms, limit: Terms, bounds: Mapping[str, Fraction]
) -> dict[str, Any] | None:
    """The witness itself where nothing is derived, else a record near it that holds no derived measure and still exceeds.

    Raises:
        DoubtError: None of the records tried exceeds.
    """
    if witness is None:
        return None
    measures = {measure for terms in (spent, limit) for _, atom in terms for measure in atom.measures()}
    derived = sorted(measure for measure in measures if measure.derived)
    bands = {table.key for terms in (spent, limit) for table in terms_bands(terms).values()}
    # The band of a record follows from its other columns, as a derived measure follows from the measures.
    held = {name: value for name, value in witness.items() if name not in bands}
    blank = dict.fromkeys(_needed(spent, limit), 0) if bands else {}
    if not derived:
        if bands and not _exceeds(spent, limit, blank | held):
            raise DoubtError(UNREAL)
        return held
    held = {name: value for name, value in held.items() if name not in {measure.name for measure in derived}}
    inputs: dict[str, Any] = {base.name: 0 for measure in measures for base in measure.inputs()}
    for record in _tried(witness, inputs | held, derived, bounds):
        if _exceeds(spent, limit, blank | record):
            return record
    raise DoubtError(UNKNOWN)


def _needed(spent: Terms, limit: Terms) -> set[str]:
    """The columns that cancelled terms look at, and the inputs of measures."""
    parts = [key for terms in (spent, limit) for key in terms]
    names = {column.name for condition, atom in parts for column in guard_columns(condition, atom)}
    return names | {base.name for _, atom in parts for measure in atom.measures() for base in measure.inputs()}


def _tried(
    witness: Mapping[str, Any], record: dict[str, Any], derived: list[Measure], bounds: Mapping[str, Fraction]
) -> Iterator[dict[str, Any]]:
    """The record as it is, then with one measure alone large enough for the derived value, and larger, within its bound."""
    yield record
    for measure in derived:
        wanted = Fraction(str(witness.get(measure.name, 0)))
        for base, share in measure.derived:
            steps = max(1, ceil(abs(wanted / share) / base.step))
            for doublings in DOUBLINGS:
                amount = base.step * steps * 2**doublings
                if amount <= bounds.get(base.name, amount):
                    yield {**record, base.name: int(amount) if amount.denominator == 1 else amount}


def _exceeds(spent: Terms, limit: Terms, record: dict[str, Any]) -> bool:
    """Whether one record certainly loses more than the limit allows."""
    try:
        groups, amounts = canonical_record({**spent, **limit}, record)
        more, less = exact_sum(spent, groups, amounts), exact_sum(limit, groups, amounts)
        if more is not None and less is not None:
            return more > less
        balls = {name: ball(value) for name, value in amounts.items()}
        return bool(terms_ball(spent, groups, balls) > terms_ball(limit, groups, balls))
    except RecordError:
        return False
