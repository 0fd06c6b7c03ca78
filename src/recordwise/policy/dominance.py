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
from math import ceil
from typing import Any

from flint import ctx

from recordwise.errors import ParameterError, RecordError
from recordwise.exact import arb_float_upper, ball
from recordwise.policy.atoms import Additive, AdditiveTable, Atom, One, Outside, Pieces, SelectionDelta, Square
from recordwise.policy.conditions import Value, holds
from recordwise.policy.evaluate import PRECISION, terms_ball
from recordwise.policy.evaluators import BallEvaluator
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Maximum, Policy, Terms
from recordwise.policy.regions import Region, regions
from recordwise.policy.supremum import TAIL_EXPONENTS, supremum

BALLS = BallEvaluator()
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
    """Neither proved nor refuted; carries why."""


def dominates(budget: Policy, policy: Policy, *, seconds: float) -> Verdict:
    """Compare rho and delta, each for every possible record."""
    deadline = time.monotonic() + seconds
    with ctx.workprec(PRECISION):
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
    """A record for which ``spent`` is above ``limit``; None if certainly there is none."""
    keys = set(spent) | set(limit)
    net = {key: c for key in keys if (c := spent.get(key, Fraction(0)) - limit.get(key, Fraction(0)))}
    if all(c < 0 for c in net.values()):
        return None
    gains = {key: c for key, c in net.items() if c > 0}
    costs = {key: -c for key, c in net.items() if c < 0}
    measures = sorted({measure for _, atom in net for measure in atom.measures()})
    parts = regions({**gains, **costs}, measures)
    if parts is None:
        raise DoubtError("the conditions make too many combinations of groups")
    for region in parts:
        if (witness := _excess_in(region, gains, costs, measures, deadline)) is not None:
            return witness
    return None


def _excess_in(
    region: Region, gains: Terms, costs: Terms, measures: list[Measure], deadline: float
) -> dict[str, Any] | None:
    if any(isinstance(atom, Outside) and holds(condition, region.groups) for condition, atom in costs):
        return None
    doubts: list[DoubtError] = []
    for gain in alternatives(gains, region.groups):
        if any(isinstance(atom, Outside) for atom in gain):
            return _record(region, {measure.name: Fraction(0) for measure in measures})
        try:
            if (amounts := _excess_of(gain, region, gains, costs, measures, deadline)) is not None:
                return _record(region, amounts)
        except DoubtError as doubt:
            doubts.append(doubt)
    if doubts:
        raise doubts[0]
    return None


def _excess_of(
    gain: dict[Atom, Fraction], region: Region, gains: Terms, costs: Terms, measures: list[Measure], deadline: float
) -> dict[str, Fraction] | None:
    """Try every alternative of the budget's own maxima: one that covers is enough."""
    candidates: list[dict[str, Fraction]] = []
    for cost in alternatives(costs, region.groups):
        left_gain, left_cost = cover(dict(gain), dict(cost))
        if not left_gain:
            return None
        bounded, candidate = separable_bound(left_gain, left_cost, region, measures, deadline)
        if bounded:
            return None
        candidates.append(candidate)
    for candidate in candidates:
        for amounts in _around(candidate, region, measures):
            if _exceeds(gains, costs, region, amounts):
                return _shrunk(amounts, gains, costs, region, measures)
    late = time.monotonic() >= deadline
    raise DoubtError("the time limit was reached" if late else "no certificate and no counterexample was found")


def alternatives(terms: Terms, groups: dict[str, Value | None]) -> Iterator[dict[Atom, Fraction]]:
    """The terms that apply in a region, with one choice made in every maximum."""
    plain: dict[Atom, Fraction] = {}
    choices: list[list[dict[Atom, Fraction]]] = []
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
            raise DoubtError("the maxima make too many combinations")
        yield _added([plain, *choice])


def _added(parts: list[dict[Atom, Fraction]]) -> dict[Atom, Fraction]:
    total: dict[Atom, Fraction] = {}
    for part in parts:
        for atom, coefficient in part.items():
            total[atom] = total.get(atom, Fraction(0)) + coefficient
    return total


def cover(gain: dict[Atom, Fraction], cost: dict[Atom, Fraction]) -> tuple[dict[Atom, Fraction], dict[Atom, Fraction]]:
    """Pay for each gain from costs that are proved to be at least a multiple of it; what is left of both."""
    for atom in list(gain):
        for payer in sorted(cost, key=lambda payer: payer != atom):
            ratio = ratio_upper(atom, payer)
            if ratio is None or not cost[payer]:
                continue
            paid = min(gain[atom], cost[payer] / ratio)
            gain[atom] -= paid
            cost[payer] -= paid * ratio
    return {a: c for a, c in gain.items() if c}, {a: c for a, c in cost.items() if c}


def ratio_upper(atom: Atom, payer: Atom) -> Fraction | None:
    """A number k with atom <= k * payer for every record, where one is proved (T-COVER); None otherwise."""
    if atom == payer:
        return Fraction(1)
    match atom, payer:
        case One(), Pieces():
            return Fraction(1)
        case One(), SelectionDelta(_, steps):
            return 1 / steps[0][1] if steps[0][1] else None
        case SelectionDelta(), One():
            return Fraction(1)
        case Square(measure), Pieces(at):
            return next((threshold**2 for other, threshold in at if other == measure), None)
        case Pieces(at), Pieces(at=finer):
            return _pieces_ratio(dict(at), dict(finer))
        case Additive(measure, function, "tanh"), Additive(other, same, "pure") if (measure, function) == (other, same):
            return Fraction(1)
        case AdditiveTable(measure, function), Additive(other, same) if (measure, function) == (other, same):
            return Fraction(1) if _table_below_tanh(atom) else None
        case _:
            return None


def _pieces_ratio(at: dict[Measure, Fraction], finer: dict[Measure, Fraction]) -> Fraction | None:
    """ceil(x/S) <= ceil(T/S) * ceil(x/T), measure by measure."""
    if not set(at) <= set(finer):
        return None
    return Fraction(max((ceil(finer[measure] / at[measure]) for measure in at), default=1) ** 2)


def _table_below_tanh(table: Atom) -> bool:
    assert isinstance(table, AdditiveTable)
    simple = Additive(table.measure, table.function, "tanh")
    before = 0
    for count, level in table.steps:
        smallest = simple.value(BALLS, {table.measure.name: ball(table.measure.step * (before + 1))})
        if not ball(level) <= smallest:
            return False
        before = count
    return True


def separable_bound(
    gain: dict[Atom, Fraction], cost: dict[Atom, Fraction], region: Region, measures: list[Measure], deadline: float
) -> tuple[bool, dict[str, Fraction]]:
    """Whether the sum of the largest values, measure by measure, is at most 0; and where they are attained."""
    wanted = {measure for atom in gain for measure in atom.measures()}
    alone, constant = _separate(gain, cost, wanted)
    upper: Fraction | None = constant
    point = {measure.name: measure.step * region.ranges[measure.name][0] for measure in measures}
    for measure, net in alone.items():
        enough = -constant if len(alone) == 1 else None
        found = supremum(net, measure, region.ranges[measure.name], enough=enough, deadline=deadline)
        upper = None if upper is None or found.upper is None else upper + found.upper
        point[measure.name] = measure.step * found.steps
    return upper is not None and upper <= 0, point


def _separate(
    gain: dict[Atom, Fraction], cost: dict[Atom, Fraction], wanted: set[Measure]
) -> tuple[dict[Measure, dict[Atom, Fraction]], Fraction]:
    """Net coefficients by measure, and the constant. Joint pieces are bounded by sums: at most sum(m_i**2) - (k - 1) as a gain,
    at least any weighted mean of the m_i**2 as a cost."""
    alone: dict[Measure, dict[Atom, Fraction]] = {}
    constant = Fraction(0)
    for atoms, sign in ((gain, 1), (cost, -1)):
        for atom, coefficient in atoms.items():
            named = atom.measures() if sign > 0 else [measure for measure in atom.measures() if measure in wanted]
            if not named:
                constant += sign * coefficient * _least(atom)
                continue
            if sign > 0 and isinstance(atom, Pieces):
                constant -= coefficient * (len(named) - 1)
            for measure in named:
                share = coefficient if sign > 0 else coefficient / len(named)
                part = _only(atom, measure)
                row = alone.setdefault(measure, {})
                row[part] = row.get(part, Fraction(0)) + sign * share
    return alone, constant


def _only(atom: Atom, measure: Measure) -> Atom:
    """A joint atom looked at through one of its measures."""
    match atom:
        case Pieces(at):
            return Pieces(tuple(item for item in at if item[0] == measure))
        case SelectionDelta(at, steps):
            return SelectionDelta(tuple(item for item in at if item[0] == measure), steps)
        case _:
            return atom


def _least(atom: Atom) -> Fraction:
    """The atom at a record whose measures are all 0: its smallest value."""
    return atom.exactly({measure.name: Fraction(0) for measure in atom.measures()}) or Fraction(0)


def _around(point: dict[str, Fraction], region: Region, measures: list[Measure]) -> Iterator[dict[str, Fraction]]:
    """The point, then points ever further out along each measure whose range has no end, alone and all together."""
    yield point
    endless = [measure for measure in measures if region.ranges[measure.name][1] is None]
    for exponent in TAIL_EXPONENTS:
        for measure in endless:
            yield {**point, measure.name: measure.step * 2**exponent}
        yield {**point, **{measure.name: measure.step * 2**exponent for measure in endless}}


def _shrunk(
    amounts: dict[str, Fraction], gains: Terms, costs: Terms, region: Region, measures: list[Measure]
) -> dict[str, Fraction]:
    """A smaller counterexample, measure by measure: one a person can read."""
    for measure in measures:
        low, high = region.ranges[measure.name][0], int(amounts[measure.name] / measure.step)
        while low < high:
            middle = (low + high) // 2
            smaller = {**amounts, measure.name: measure.step * middle}
            if _exceeds(gains, costs, region, smaller):
                high, amounts = middle, smaller
            else:
                low = middle + 1
    return amounts


def _exceeds(gains: Terms, costs: Terms, region: Region, amounts: dict[str, Fraction]) -> bool:
    exact = _exact_sum(gains, region, amounts), _exact_sum(costs, region, amounts)
    if exact[0] is not None and exact[1] is not None:
        return exact[0] > exact[1]
    balls = {name: ball(value) for name, value in amounts.items()}
    try:
        return bool(terms_ball(gains, region.groups, balls) > terms_ball(costs, region.groups, balls))
    except RecordError:
        return False


def _exact_sum(terms: Terms, region: Region, amounts: dict[str, Fraction]) -> Fraction | None:
    total = Fraction(0)
    for (condition, atom), coefficient in terms.items():
        if holds(condition, region.groups):
            value = atom.exactly(amounts)
            if value is None:
                return None
            total += coefficient * value
    return total


def _record(region: Region, amounts: dict[str, Fraction]) -> dict[str, Any]:
    """A witness as a user would write it."""
    record: dict[str, Any] = {name: _plain(value) for name, value in region.groups.items()}
    for name, amount in amounts.items():
        seen = region.groups.get(name)
        record[name] = _plain(-amount if isinstance(seen, Fraction) and seen < 0 else amount)
    return record


def _plain(value: Value | None) -> Any:
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value


def minimum(policy: Policy) -> float:
    """The smallest loss over all regions; every atom is smallest where the amounts are."""
    with ctx.workprec(PRECISION):
        parts = regions(policy.rho, policy.measures())
        if parts is None:
            raise ParameterError(
                parameter="policy", problem="has conditions with too many combinations to find its minimum"
            )
        values = [value for region in parts if (value := _least_in(policy, region)) is not None]
    return min(values, default=float("inf"))


def _least_in(policy: Policy, region: Region) -> float | None:
    amounts = {m.name: ball(m.step * region.ranges[m.name][0]) for m in policy.measures()}
    try:
        return arb_float_upper(terms_ball(policy.rho, region.groups, amounts))
    except RecordError:
        return None
