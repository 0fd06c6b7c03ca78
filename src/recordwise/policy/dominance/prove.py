"""Is a policy within a budget for EVERY possible record? Yes (certified), no (with a record that proves it), or undecided.

The order of attack: cancel equal terms in the normal form; split the universe into regions where conditions are constant; cover
each remaining term by budget terms through proved inequalities; bound what is left measure by measure with branch and bound, the
unbounded end by growth. Undecided counts as a refusal. Proofs: docs/theory/dominance.md.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from recordwise.errors import ParameterError, RecordError
from recordwise.exact.numbers import ball, working_precision
from recordwise.policy.atoms import Outside
from recordwise.policy.conditions import holds
from recordwise.policy.dominance.bounds import Sum, cover, separable_bound
from recordwise.policy.dominance.regions import Region, regions
from recordwise.policy.dominance.supremum import TAIL_EXPONENTS
from recordwise.policy.evaluate.numpy import PRECISION, exact_sum, terms_ball
from recordwise.policy.literals import Value, plain_value
from recordwise.policy.measure import Measure, check_one_measure_a_name
from recordwise.policy.policy import Key, Maximum, Policy, Terms

MOST_ALTERNATIVES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer to "is the policy at most the budget for every record?"; true only for a certified yes."""

    answer: str
    """``"yes"``, ``"no"`` or ``"undecided"``."""
    reason: str
    witness: dict[str, Any] | None = None
    """For a no: a record whose loss is above the budget."""

    def __bool__(self) -> bool:
        return self.answer == "yes"


YES = Verdict(answer="yes", reason="the budget is at least the policy for every possible record")


class DoubtError(Exception):
    """Neither proved nor refuted; carries the reason."""


def dominates(budget: Policy, policy: Policy, *, seconds: float) -> Verdict:
    """Compare rho and delta, each for every possible record.

    Args:
        budget: The policy that must be the larger one.
        policy: The policy that must be within it.
        seconds: How long the proof may take.

    Returns:
        Yes, no with a record that proves it, or undecided; true only for yes.
    """
    if not isinstance(policy, Policy):
        raise ParameterError(parameter="other", problem=f"must be a Policy, not {type(policy).__name__}")
    check_one_measure_a_name({*budget.measures(), *policy.measures()})
    deadline = time.monotonic() + seconds
    with working_precision(PRECISION):
        for name, limit, spent in (("rho", budget.rho, policy.rho), ("delta", budget.delta_terms, policy.delta_terms)):
            try:
                witness = find_excess(spent, limit, deadline)
            except DoubtError as doubt:
                return Verdict(answer="undecided", reason=f"{name}: {doubt}; this counts as a refusal")
            if witness is not None:
                return Verdict(
                    answer="no", reason=f"the {name} of the witness record is above the budget", witness=witness
                )
    return YES


def find_excess(spent: Terms, limit: Terms, deadline: float) -> dict[str, Any] | None:
    """A record for which ``spent`` exceeds ``limit``; None if there provably is none."""
    gains, costs = _net(spent, limit)
    if all(isinstance(atom, Outside) and (condition, atom) in costs for condition, atom in gains):
        return None
    measures = sorted({measure for _, atom in [*gains, *costs] for measure in atom.measures()})
    parts = regions({**gains, **costs}, measures)
    if parts is None:
        raise DoubtError("the conditions have too many combinations of groups")
    for region in parts:
        if time.monotonic() >= deadline:
            raise DoubtError("the time limit was reached")
        if (witness := _excess_in(region, gains, costs, measures, deadline)) is not None:
            return witness
    return None


def _net(spent: Terms, limit: Terms) -> tuple[Terms, Terms]:
    """What is left after equal terms cancel. "No guarantee" does not cancel: where the budget gives none, any loss is allowed."""
    gains: dict[Key, Fraction] = {}
    costs: dict[Key, Fraction] = {}
    for key in {**spent, **limit}:
        more, less = spent.get(key, Fraction(0)), limit.get(key, Fraction(0))
        if isinstance(key[1], Outside):
            gains |= {key: more} if more else {}
            costs |= {key: less} if less else {}
        elif more > less:
            gains[key] = more - less
        elif less > more:
            costs[key] = less - more
    return gains, costs


def _excess_in(
    region: Region, gains: Terms, costs: Terms, measures: list[Measure], deadline: float
) -> dict[str, Any] | None:
    doubts: list[DoubtError] = []
    for gain in alternatives(gains, region.groups):
        try:
            if (amounts := _excess_of(gain, region, gains, costs, measures, deadline)) is not None:
                return _record(region, amounts)
        except DoubtError as doubt:
            doubts.append(doubt)
    if doubts:
        raise doubts[0]
    return None


def _excess_of(
    gain: Sum, region: Region, gains: Terms, costs: Terms, measures: list[Measure], deadline: float
) -> dict[str, Fraction] | None:
    """Try every alternative of the budget's own maxima: one that covers is enough."""
    budgets = list(alternatives(costs, region.groups))
    if not gain or any(isinstance(atom, Outside) for cost in budgets for atom in cost):
        return None
    if any(isinstance(atom, Outside) for atom in gain):
        return {measure.name: measure.step * region.ranges[measure.name][0] for measure in measures}
    candidates: list[dict[str, Fraction]] = []
    for cost in budgets:
        # Covering proves more, but it spends costs that show where the counterexample is; so both are tried.
        for left_gain, left_cost in (cover(gain, cost), (gain, cost)):
            bound = separable_bound(left_gain, left_cost, region, measures, deadline)
            if bound.certain:
                return None
            candidates.append(bound.point)
    for candidate in candidates:
        for amounts in _around(candidate, region, measures):
            if _exceeds(gains, costs, region, amounts, Fraction(0)):
                return _shrunk(amounts, gains, costs, region, measures)
    late = time.monotonic() >= deadline
    raise DoubtError("the time limit was reached" if late else "no certificate and no counterexample was found")


def alternatives(terms: Terms, groups: dict[str, Value | None]) -> Iterator[Sum]:
    """The terms that apply in a region, with one choice made in every maximum."""
    plain: Sum = {}
    choices: list[list[Sum]] = []
    for (condition, atom), coefficient in terms.items():
        if not holds(condition, groups):
            continue
        if isinstance(atom, Maximum):
            inner = [option for policy in atom.policies for option in alternatives(policy.rho, groups)]
            choices.append([{part: coefficient * c for part, c in option.items()} for option in inner])
        else:
            plain[atom] = plain.get(atom, Fraction(0)) + coefficient
    for count, choice in enumerate(product(*choices)):
        if count >= MOST_ALTERNATIVES:
            raise DoubtError("the maxima have too many combinations")
        yield _added([plain, *choice])


def _added(parts: list[Sum]) -> Sum:
    total: Sum = {}
    for part in parts:
        for atom, coefficient in part.items():
            total[atom] = total.get(atom, Fraction(0)) + coefficient
    return total


def _around(point: dict[str, Fraction], region: Region, measures: list[Measure]) -> Iterator[dict[str, Fraction]]:
    """The point, then points further and further out along each unbounded measure, one at a time and all together."""
    yield point
    endless = [measure for measure in measures if region.ranges[measure.name][1] is None]
    for exponent in TAIL_EXPONENTS:
        far = {m.name: m.step * max(region.ranges[m.name][0], 1) * 2**exponent for m in endless}
        for name, amount in far.items():
            yield {**point, name: amount}
        yield {**point, **far}


def _shrunk(
    amounts: dict[str, Fraction], gains: Terms, costs: Terms, region: Region, measures: list[Measure]
) -> dict[str, Fraction]:
    """A smaller counterexample, measure by measure: one a person can read and a float can show, where there is one."""
    margin = NOTICEABLE if _exceeds(gains, costs, region, amounts, NOTICEABLE) else Fraction(0)
    for measure in measures:
        low, high = region.ranges[measure.name][0], int(amounts[measure.name] / measure.step)
        while low < high:
            middle = (low + high) // 2
            smaller = {**amounts, measure.name: measure.step * middle}
            if _exceeds(gains, costs, region, smaller, margin):
                high, amounts = middle, smaller
            else:
                low = middle + 1
    return amounts


NOTICEABLE = Fraction(1, 2**30)


def _exceeds(gains: Terms, costs: Terms, region: Region, amounts: dict[str, Fraction], margin: Fraction) -> bool:
    """Whether the gains are certainly above the costs, by more than a share ``margin`` of them."""
    exact = exact_sum(gains, region.groups, amounts), exact_sum(costs, region.groups, amounts)
    if exact[0] is not None and exact[1] is not None:
        return exact[0] > exact[1] * (1 + margin)
    balls = {name: ball(value) for name, value in amounts.items()}
    try:
        more, less = terms_ball(gains, region.groups, balls), terms_ball(costs, region.groups, balls)
    except RecordError:
        return False
    return bool(more > less * ball(1 + margin))


def _record(region: Region, amounts: dict[str, Fraction]) -> dict[str, Any]:
    """A witness as a user would write it."""
    record: dict[str, Any] = {name: _plain(value) for name, value in region.groups.items()}
    for name, amount in amounts.items():
        seen = region.groups.get(name)
        record[name] = _plain(-amount if isinstance(seen, Fraction) and seen < 0 else amount)
    return record


def _plain(value: Value | None) -> Any:
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return int(value)
        return float(value) if Fraction(repr(float(value))) == value else value
    return None if value is None else plain_value(value)
