"""Decides whether a policy is within a budget for EVERY possible record: yes (certified), no (with a witness), or undecided.

The steps: cancel equal terms in the normal form; divide the universe into regions where conditions are constant; cover each
remaining term by budget terms through proved inequalities; bound the rest measure by measure with branch and bound, and the
unbounded end by growth. Undecided counts as a refusal. Proofs: docs/theory/dominance.md.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from itertools import product
from typing import Any

from recordwise.errors import ParameterError, RecordError
from recordwise.exact.numbers import Number, ball, nonnegative, working_precision
from recordwise.policy.atoms import Outside
from recordwise.policy.conditions import AllOf, Among, Condition, holds
from recordwise.policy.dominance.comparison import DoubtError, Sum, comparison
from recordwise.policy.dominance.cover import cover
from recordwise.policy.dominance.decide import IN_TIME, decide
from recordwise.policy.dominance.derived import held_witness
from recordwise.policy.dominance.regions import Region, regions
from recordwise.policy.evaluate.numpy import PRECISION, exact_sum, terms_ball
from recordwise.policy.literals import Cell, plain_value
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


def dominates(budget: Policy, policy: Policy, *, bounds: Mapping[str, Number] | None = None, seconds: float) -> Verdict:
    """Compare rho and delta, each for every possible record.

    Args:
        budget: The policy that must be the larger one.
        policy: The policy that must be within it.
        bounds: The largest amount, in absolute value, that a record can have in a measure. Without one a measure is unbounded.
        seconds: Processor time the proof may take; a busy machine does not shorten it.

    Returns:
        Yes, no with a record that proves it, or undecided; true only for yes.
    """
    if not isinstance(policy, Policy):
        raise ParameterError(parameter="other", problem=f"must be a Policy, not {type(policy).__name__}")
    check_one_measure_a_name({*budget.measures(), *policy.measures()})
    limits = {name: nonnegative(bound, parameter=f"bounds['{name}']") for name, bound in (bounds or {}).items()}
    deadline = time.thread_time() + seconds
    with working_precision(PRECISION):
        for name, limit, spent in (("rho", budget.rho, policy.rho), ("delta", budget.delta_terms, policy.delta_terms)):
            try:
                witness = held_witness(find_excess(spent, limit, limits, deadline), spent, limit, limits)
            except DoubtError as doubt:
                return Verdict(answer="undecided", reason=f"{name}: {doubt}; this counts as a refusal. {ADVICE}")
            if witness is not None:
                return _refused(name, policy, budget, witness)
    return YES


ADVICE = (
    "Raise the budget a little where it is close to what is spent, or state it in the terms that the queries charge: "
    "the same measures at the same thresholds"
)


def _refused(name: str, policy: Policy, budget: Policy, witness: dict[str, Any]) -> Verdict:
    """A no, with what the record needs and what the budget has for it."""
    record = completed(witness, budget, policy)
    reason = f"the {name} of the witness record is above the budget"
    try:
        needed, limit = ((each.loss if name == "rho" else each.delta)(record) for each in (policy, budget))
        reason += f": it needs {needed:.6g} of {limit:.6g}"
    except RecordError:
        reason += ", which gives its group no guarantee"
    return Verdict(answer="no", reason=reason, witness=witness)


def completed(witness: dict[str, Any], *policies: Policy) -> dict[str, Any]:
    """The witness with every column the policies look at. Terms that cancel do not decide, so any value of theirs will do."""
    measures = {measure.name for policy in policies for measure in policy.inputs()}
    columns = {column.name for policy in policies for column in policy.columns()}
    return dict.fromkeys(sorted(columns), None) | dict.fromkeys(sorted(measures), 0) | witness


def find_excess(spent: Terms, limit: Terms, bounds: Mapping[str, Fraction], deadline: float) -> dict[str, Any] | None:
    """A record for which ``spent`` exceeds ``limit``; None if there provably is none."""
    gains, costs = _net(spent, limit)
    if all(isinstance(atom, Outside) and (condition, atom) in costs for condition, atom in gains):
        return None
    measures = sorted({measure for _, atom in [*gains, *costs] for measure in atom.measures()})
    parts = regions({**gains, **costs}, measures, bounds)
    if parts is None:
        raise DoubtError("the conditions have too many combinations of groups")
    question = _Question(gains, costs, measures, Anchored.of(gains), Anchored.of(costs))
    doubts: list[DoubtError] = []
    found = list(parts)
    for region in found:
        if (now := time.thread_time()) >= deadline:
            raise DoubtError(IN_TIME)
        try:
            # A region that is hard to decide leaves half of the time to the others, one of which may be a clear no.
            witness = question.excess_in(region, deadline if region is found[-1] else now + (deadline - now) / 2)
        except DoubtError as doubt:
            doubts.append(doubt)
            continue
        if witness is not None:
            return witness
    if doubts:
        raise doubts[0]
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


@dataclass(slots=True)
class _Question:
    """What is left of policy and budget after equal terms cancel, and which comparisons are settled already."""

    gains: Terms
    costs: Terms
    measures: list[Measure]
    anchored_gains: "Anchored"
    anchored_costs: "Anchored"
    settled: set[tuple[object, ...]] = field(default_factory=set)

    def excess_in(self, region: Region, deadline: float) -> dict[str, Any] | None:
        """A record in the region that exceeds the budget; None if there provably is none."""
        budgets = list(alternatives(self.anchored_costs.terms(region.groups), region.groups))
        if any(isinstance(atom, Outside) for budget in budgets for atom in budget):
            return None
        doubts: list[DoubtError] = []
        for gain in alternatives(self.anchored_gains.terms(region.groups), region.groups):
            # Regions that differ only in conditions that do not matter ask the same question again.
            key = (_frozen(gain), *map(_frozen, budgets), *sorted(region.ranges.items()))
            if not gain or key in self.settled:
                continue
            try:
                if (amounts := self.excess_of(gain, budgets, region, deadline)) is not None:
                    return _record(region, amounts)
                self.settled.add(key)
            except DoubtError as doubt:
                doubts.append(doubt)
        if doubts:
            raise doubts[0]
        return None

    def excess_of(self, gain: Sum, budgets: list[Sum], region: Region, deadline: float) -> dict[str, Fraction] | None:
        """The amounts of a record for which these gains exceed the largest budget; None if there provably is none."""
        lowest = {measure.name: measure.step * region.ranges[measure.name][0] for measure in self.measures}
        if any(isinstance(atom, Outside) for atom in gain):
            return lowest
        covered = [cover(gain, budget) for budget in budgets]
        if any(not left for left, _ in covered):
            return None
        problem = comparison(gain, budgets, region)
        rests = [comparison(left, [budget], region) for left, budget in covered if left != gain]

        def confirmed(point: dict[str, Fraction]) -> bool:
            return self.exceeds(region, lowest | point, Fraction(0))

        found = decide(problem, rests, confirmed, deadline)
        if found is None:
            return None
        amounts = lowest | found.point
        return amounts if found.simple else self.shrunk(amounts, region)

    def shrunk(self, amounts: dict[str, Fraction], region: Region) -> dict[str, Fraction]:
        """A smaller counterexample, measure by measure: one a person can read and a float can show, where there is one."""
        margin = NOTICEABLE if self.exceeds(region, amounts, NOTICEABLE) else Fraction(0)
        for measure in self.measures:
            low, high = region.ranges[measure.name][0], int(amounts[measure.name] / measure.step)
            while low < high:
                middle = (low + high) // 2
                smaller = {**amounts, measure.name: measure.step * middle}
                low, high = (low, middle) if self.exceeds(region, smaller, margin) else (middle + 1, high)
            amounts = {**amounts, measure.name: measure.step * high}
        return amounts

    def exceeds(self, region: Region, amounts: dict[str, Fraction], margin: Fraction) -> bool:
        """Whether the gains are certainly above the costs, by more than a share ``margin`` of them."""
        spent, limit = (exact_sum(terms, region.groups, amounts) for terms in (self.gains, self.costs))
        if spent is not None and limit is not None:
            return spent > limit * (1 + margin)
        balls = {name: ball(value) for name, value in amounts.items()}
        try:
            more, less = (terms_ball(terms, region.groups, balls) for terms in (self.gains, self.costs))
        except RecordError:
            return False
        return bool(more > less * ball(1 + margin))


@dataclass(frozen=True, slots=True)
class Anchored:
    """Terms by a value that a column must hold for them to apply, so that a region asks only for those that may."""

    anywhere: Terms
    by_value: dict[str, dict[Cell, Terms]]

    @classmethod
    def of(cls, terms: Terms) -> "Anchored":
        """The terms, each under the values of its first list of whole values."""
        anywhere: dict[Key, Fraction] = {}
        by_value: dict[str, dict[Cell, dict[Key, Fraction]]] = {}
        for key, coefficient in terms.items():
            anchor = _anchor(key[0])
            if anchor is None:
                anywhere[key] = coefficient
                continue
            held = by_value.setdefault(anchor.column.name, {})
            for value in anchor.values:
                held.setdefault(value, {})[key] = coefficient
        return cls(anywhere, {name: dict(held) for name, held in by_value.items()})

    def terms(self, groups: dict[str, Cell | None]) -> Terms:
        """All terms that apply in a region, and perhaps others."""
        found = dict(self.anywhere)
        for name, held in self.by_value.items():
            value = groups[name]
            found |= held.get(value, {}) if value is not None else {}
        return found


def _anchor(condition: Condition) -> Among | None:
    parts = condition.parts if isinstance(condition, AllOf) else (condition,)
    listed = (part for part in parts if isinstance(part, Among) and part.inside)
    return next((part for part in listed if part.column.length is None and not part.column.part), None)


def _frozen(terms: Sum) -> frozenset[tuple[object, Fraction]]:
    return frozenset(terms.items())


NOTICEABLE = Fraction(1, 2**30)


def alternatives(terms: Terms, groups: dict[str, Cell | None]) -> Iterator[Sum]:
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


def _record(region: Region, amounts: dict[str, Fraction]) -> dict[str, Any]:
    """A witness as a user would write it."""
    record: dict[str, Any] = {name: _plain(value) for name, value in region.groups.items()}
    for name, amount in amounts.items():
        seen = region.groups.get(name)
        record[name] = _plain(-amount if isinstance(seen, Fraction) and seen < 0 else amount)
    return record


def _plain(value: Cell | None) -> Any:
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return int(value)
        return float(value) if Fraction(repr(float(value))) == value else value
    return value if value is None or isinstance(value, date) else plain_value(value)
