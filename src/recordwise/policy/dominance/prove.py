"""Decide whether a policy is within a budget for EVERY possible record.

The answer is yes (certified), no (with a witness), or undecided. The steps: cancel equal terms in the normal form; divide the
universe into regions where conditions are constant; cover each remaining term by budget terms through proved inequalities; bound
the rest measure by measure with branch and bound, and the unbounded end by growth. Undecided counts as a refusal. Proofs:
docs/theory/dominance.md.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import ceil, prod
from typing import Any

from recordwise.errors import ParameterError, RecordError, own_argument_errors, own_errors_of
from recordwise.exact.functions import Function, x
from recordwise.exact.numbers import Number, ball, nonnegative, working_precision
from recordwise.policy.atoms import (
    Additive,
    AdditiveTable,
    Atom,
    CertifiedSum,
    ClampedSquare,
    LaplaceSum,
    One,
    Outside,
    PieceCount,
    Pieces,
    PurePieces,
    SelectionDelta,
    Square,
    linear_slope,
)
from recordwise.policy.columns import Cell, Measure, check_one_measure_a_name, plain_value
from recordwise.policy.conditions import AllOf, Among, Condition, holds, split_bands
from recordwise.policy.dominance.boxes import Search, exact_bound, finite
from recordwise.policy.dominance.curves import AtomSum, Comparison, DoubtError, comparison, openings
from recordwise.policy.dominance.regions import MOST_REGIONS, OTHER, Region, regions
from recordwise.policy.dominance.shares import FAR, bound_by_shares
from recordwise.policy.evaluate.evaluator import BALLS, Steps
from recordwise.policy.evaluate.numpy import PRECISION, canonical_record, exact_sum, terms_ball
from recordwise.policy.policy import (
    Key,
    Maximum,
    Policy,
    Terms,
    constants_of,
    guard_columns,
    terms_bands,
    with_plain_constants,
)

# One comparison: likely points first, then bounds measure by measure, then boxes. Undecided is a ``DoubtError``.


Point = dict[str, Fraction]
MOST_PROBES = 10_000
FARTHEST = 2**60
FEW_BATCHES = 10
"""How often boxes are halved before bounds measure by measure are tried: enough where little is to be decided."""
MEASURES_FIRST = 0.4
NEARLY_ALL = 0.9
"""The part of the time that bounds measure by measure may take before boxes are tried, with several measures and with one."""
IN_TIME = "the time limit was reached before a proof or a record that exceeds the budget was found"
MANY_BANDS = 32
"""From this many terms with bands on, it is first tried whether the budget covers every record in the worst band of each table."""
MANY_REGIONS = (
    f"conditions and sizes of cells, with those of earlier charges, distinguish more than {MOST_REGIONS:,} combinations of groups, "
    "too many to compare one by one"
)
NEITHER = "neither a proof nor a record that exceeds the budget was found"


@dataclass(frozen=True, slots=True)
class Excess:
    """A point that exceeds the budget.

    ``simple`` if it consists of ends of ranges and pieces.
    """

    point: Point
    simple: bool = False


def decide(
    problem: Comparison, rests: list[Comparison], confirmed: Callable[[Point], bool], deadline: float
) -> Excess | None:
    """Return a point where the gains exceed the budget.

    None if there provably is none. ``rests`` are further comparisons, any of which proves the first: what is
    left after gains were paid by costs proved to be larger. ``confirmed`` decides about a point in exact
    arithmetic.
    """
    if not problem.measures:
        return _without_measures(problem, confirmed)
    if len(problem.measures) > 1:
        search = Search.of(problem, finite(problem.spans, _far_ends(problem)))
        point = search.probe(_candidates(problem))
        if point is not None and confirmed(point):
            return Excess(point, simple=True)
        quick = search.run(deadline, batches=FEW_BATCHES)
        if quick.certain and _is_bounded(problem):
            return None
        if quick.point is not None and confirmed(quick.point):
            return Excess(quick.point)
    now = time.thread_time()
    soon = now + (MEASURES_FIRST if len(problem.measures) > 1 else NEARLY_ALL) * (deadline - now)
    reaches: list[tuple[Comparison, dict[Measure, int] | None]] = []
    for each in (problem, *rests):
        certain, reach, points = _by_measures(each, soon)
        if certain:
            return None
        if (found := next(filter(confirmed, points), None)) is not None:
            return Excess(found)
        reaches.append((each, reach))
    return _in_boxes(reaches, confirmed, deadline)


def _is_bounded(problem: Comparison) -> bool:
    return all(last is not None for _, last in problem.spans.values())


def _far_ends(problem: Comparison) -> dict[Measure, int]:
    """Where a search ends that nothing else ends."""
    return {
        measure: max([first, *problem.marks(measure), 1]) * FARTHEST if last is None else last
        for measure, (first, last) in problem.spans.items()
    }


def _without_measures(problem: Comparison, confirmed: Callable[[Point], bool]) -> Excess | None:
    """No gain depends on a measure: one number against one number."""
    if exact_bound(problem, {}) <= 0:
        return None
    if confirmed({}):
        return Excess({}, simple=True)
    raise DoubtError(NEITHER)


def _candidates(problem: Comparison) -> dict[Measure, list[int]]:
    """Return ends of ranges and pieces, and points far out."""
    width = max(2, int(MOST_PROBES ** (1 / len(problem.measures))))
    return {measure: _likely(problem, measure)[:width] for measure in problem.measures}


def _likely(problem: Comparison, measure: Measure) -> list[int]:
    first, last = problem.spans[measure]
    marks = problem.marks(measure)
    points = [first, *marks, *([] if last is None else [last]), *(mark + 1 for mark in marks)]
    points += [mark * FAR for mark in marks or [1]] + [mark * times for times in (2, 3, 10) for mark in marks]
    points += [2**exponent for exponent in range(4, 64, 8)]
    return [point for point in dict.fromkeys(points) if first <= point and (last is None or point <= last)]


def _by_measures(problem: Comparison, deadline: float) -> tuple[bool, dict[Measure, int] | None, list[Point]]:
    """Return whether the comparison is certain, else how it may fail."""
    certain, reach, points = True, dict[Measure, int](), list[Point]()
    known = True
    for gains in openings(problem.gains, problem.spans):
        bound = bound_by_shares(problem, gains, deadline)
        if bound.certain:
            continue
        certain = False
        points += _corners(problem, bound.support)
        if bound.reach is None:
            known = False
        else:
            reach = {m: max(steps, reach.get(m, 0)) for m, steps in bound.reach.items()}
    return certain, reach if known else None, points


def _corners(problem: Comparison, support: dict[Measure, list[int]]) -> list[Point]:
    """Combinations of the points that keep the bounds from being smaller."""
    choices = [list(dict.fromkeys(support.get(m) or [problem.spans[m][0]]))[:4] for m in problem.measures]
    return [
        {measure.name: measure.step * steps for measure, steps in zip(problem.measures, chosen)}
        for chosen in (product(*choices) if prod(map(len, choices)) <= 256 else ())
    ]


def _in_boxes(
    reaches: list[tuple[Comparison, dict[Measure, int] | None]], confirmed: Callable[[Point], bool], deadline: float
) -> Excess | None:
    """Search the boxes of each comparison, for its share of the time."""
    for place, (problem, reach) in enumerate(reaches):
        ends = _far_ends(problem) if reach is None else reach
        now = time.thread_time()
        outcome = Search.of(problem, finite(problem.spans, ends)).run(now + (deadline - now) / (len(reaches) - place))
        if outcome.certain and (reach is not None or _is_bounded(problem)):
            return None
        if outcome.point is not None and confirmed(outcome.point):
            return Excess(outcome.point)
    raise DoubtError(IN_TIME if time.thread_time() >= deadline else NEITHER)


# Terms of a policy that terms of a budget provably pay for, whatever the record (T-COVER, docs/theory/dominance.md).


def cover(gain: AtomSum, cost: AtomSum) -> tuple[AtomSum, AtomSum]:
    """Pay for gains from costs proved to be larger.

    Return what is left of both. Gains that few costs can pay for come first, and costs that can pay for few
    others pay first.
    """
    gains, costs = list(gain.values()), list(cost.values())
    ratios = [[ratio_upper(atom, payer) for payer in cost] for atom in gain]
    uses = [sum(row[payer] is not None for row in ratios) for payer in range(len(costs))]
    payers = [[(uses[p], ratio, p) for p, ratio in enumerate(row) if ratio is not None] for row in ratios]
    for own in sorted(range(len(gains)), key=lambda own: len(payers[own])):
        for _, ratio, payer in sorted(payers[own]):
            paid = min(gains[own], costs[payer] / ratio)
            gains[own] -= paid
            costs[payer] -= paid * ratio
    return {a: c for a, c in zip(gain, gains) if c}, {a: c for a, c in zip(cost, costs) if c}


def ratio_upper(atom: Atom, payer: Atom) -> Fraction | None:
    """Return a k with atom <= k * payer, or None (T-COVER)."""
    if atom == payer:
        return Fraction(1)
    match atom, payer:
        case One(), Pieces() | PieceCount():
            return Fraction(1)
        case One(), SelectionDelta(_, steps):
            return 1 / steps[0][1] if steps[0][1] else None
        case SelectionDelta(), One():
            return Fraction(1)
        case Square(measure), Pieces(at):
            return next((threshold**2 for other, threshold in at if other == measure), None)
        case ClampedSquare(), _:
            return _clamped_ratio(atom, payer)
        case PurePieces(at, _, rho), Pieces(at=finer):
            ratio = _pieces_ratio(dict(at), dict(finer))
            return ratio and rho * ratio**2
        case PurePieces(at, epsilon), PieceCount(at=finer):
            ratio = _pieces_ratio(dict(at), dict(finer))
            return ratio and epsilon * ratio
        case Pieces(at), Pieces(at=finer):
            ratio = _pieces_ratio(dict(at), dict(finer))
            return ratio and ratio**2
        case PieceCount(at), Pieces(at=finer) | PieceCount(at=finer):
            return _pieces_ratio(dict(at), dict(finer))
        case Additive() | AdditiveTable(), PieceCount(at):
            return _slope_ratio(atom, dict(at))
        case LaplaceSum(measure, _, scale), PieceCount(at):
            return next((threshold / scale for other, threshold in at if other == measure), None)
        case LaplaceSum(measure, _, scale), Additive(other, same) if (measure, x / scale) == (other, same):
            return Fraction(1)
        case LaplaceSum(measure, grid, scale), LaplaceSum(other, coarser, smaller) if measure == other:
            return smaller / scale if smaller <= scale and grid * smaller <= coarser * scale else None
        case Additive(measure, function, "tanh"), Additive(other, same, "pure") if (measure, function) == (other, same):
            return Fraction(1)
        case AdditiveTable(measure, function, steps), Additive(other, same) if (measure, function) == (other, same):
            return Fraction(1) if _below_tanh(measure, function, steps, None) else None
        case CertifiedSum(measure, function, knots, less), Additive(other, same) if (measure, function) == (
            other,
            same,
        ):
            return Fraction(1) if _below_tanh(measure, function, knots, less) else None
        case _:
            return None


def _clamped_ratio(atom: ClampedSquare, payer: Atom) -> Fraction | None:
    match payer:
        case One():
            return atom.to**2
        case Square(measure) if measure == atom.measure:
            return Fraction(1)
        case ClampedSquare(measure, further) if measure == atom.measure:
            return max(Fraction(1), atom.to / further) ** 2
        case Pieces(at):
            return next((min(threshold, atom.to) ** 2 for other, threshold in at if other == atom.measure), atom.to**2)
        case PieceCount():
            return atom.to**2
        case _:
            return None


def _pieces_ratio(at: dict[Measure, Fraction], finer: dict[Measure, Fraction]) -> Fraction | None:
    """ceil(x/S) <= ceil(T/S) * ceil(x/T), measure by measure."""
    if not set(at) <= set(finer):
        return None
    return Fraction(max((ceil(finer[measure] / at[measure]) for measure in at), default=1))


def _slope_ratio(atom: Additive | AdditiveTable, at: dict[Measure, Fraction]) -> Fraction | None:
    """Return a ratio for a loss of at most w x.

    Such a loss, as of Laplace noise, is at most w T ceil(x/T).
    """
    slope = linear_slope(atom.function)
    if slope is None:
        return None
    linear = isinstance(atom, Additive) or _below_tanh(atom.measure, atom.function, atom.steps, None)
    return slope * at[atom.measure] if linear and atom.measure in at else None


@lru_cache(maxsize=64)
def _below_tanh(measure: Measure, function: Function, steps: Steps, less: Fraction | None) -> bool:
    """Return whether certified losses stay below eps*tanh(eps/2), also beyond the table."""
    simple = Additive(measure, function, "tanh")
    before = 0
    for count, level in steps:
        smallest = simple.value(BALLS, {measure.name: ball(measure.step * (before + 1))})
        if not ball(level) <= smallest:
            return False
        before = count
    # Beyond, eps - less stays below eps*tanh(eps/2) = eps - 2 eps/(e^eps + 1): the last term falls from eps = 2 on.
    rise = function.increase(BALLS, ball(measure.step * before))
    return less is None or bool(rise >= 2 and 2 * rise / (rise.exp() + 1) <= ball(less))


# Counterexamples where measures are derived. A proof lets a derived measure take any value, which covers every
# record; a witness must be a record, with the derived values that follow from what it holds.


UNKNOWN = (
    "a counterexample was found only with derived measures that do not fit the measures they come from; "
    "state the budget in the same derived measures"
)
UNREAL = "a counterexample was found only with bands that no record is known to be in together; state the budget in the same bands"
DOUBLINGS = range(0, 25, 4)


def record_witness(
    witness: Mapping[str, Any] | None, spent: Terms, limit: Terms, bounds: Mapping[str, Fraction]
) -> dict[str, Any] | None:
    """Return the witness, or one near it without derived measures.

    The witness itself where nothing is derived, else a record near it that still exceeds.

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
    blank = dict.fromkeys(_needed_names(spent, limit), 0) if bands else {}
    if not derived:
        if bands and not _exceeds(spent, limit, blank | held):
            raise DoubtError(UNREAL)
        return held
    held = {name: value for name, value in held.items() if name not in {measure.name for measure in derived}}
    inputs: dict[str, Any] = {base.name: 0 for measure in measures for base in measure.inputs()}
    for record in _candidate_records(witness, inputs | held, derived, bounds):
        if _exceeds(spent, limit, blank | record):
            return record
    raise DoubtError(UNKNOWN)


def _needed_names(spent: Terms, limit: Terms) -> set[str]:
    """The columns that cancelled terms look at, and the inputs of measures."""
    parts = [key for terms in (spent, limit) for key in terms]
    names = {column.name for condition, atom in parts for column in guard_columns(condition, atom)}
    return names | {base.name for _, atom in parts for measure in atom.measures() for base in measure.inputs()}


def _candidate_records(
    witness: Mapping[str, Any], record: dict[str, Any], derived: list[Measure], bounds: Mapping[str, Fraction]
) -> Iterator[dict[str, Any]]:
    """Yield records near the witness without derived measures.

    First the record as it is, then with one measure large enough for the derived value.
    """
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


# The proof over all regions, and its verdict.


MOST_ALTERNATIVES = 64


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A verdict on a budget for every record, true only if proved."""

    answer: str
    """``"yes"``, ``"no"`` or ``"undecided"``."""
    reason: str
    witness: dict[str, Any] | None = None
    """For a no: a record whose loss is above the budget; None where the policy has no pure epsilon and the budget is one."""
    subject: str = ""
    """``"rho"``, ``"epsilon"`` or ``"delta"``, unless the answer is yes."""

    def __bool__(self) -> bool:
        return self.answer == "yes"


YES = Verdict(answer="yes", reason="the budget is at least the policy for every possible record")


@own_argument_errors
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
    if (problem := _unit_problem(budget, policy)) is not None:
        return Verdict(answer="no", reason=problem, subject=budget.unit)
    policy = policy.in_unit_of(budget)
    pairs = ((budget.unit, budget.rho, policy.rho), ("delta", budget.delta_terms, policy.delta_terms))
    with working_precision(PRECISION):
        for name, *both in pairs:
            limit, spent = map(with_plain_constants, both)
            try:
                witness = record_witness(find_excess(spent, limit, limits, deadline), spent, limit, limits)
            except DoubtError as doubt:
                reason = f"{name}: {doubt}; this counts as a refusal. {ADVICE}"
                return Verdict(answer="undecided", reason=reason, subject=name)
            if witness is not None:
                return _refusal(name, policy, budget, witness)
    return YES


def _unit_problem(budget: Policy, policy: Policy) -> str | None:
    """Return why a policy and a budget's unit do not match."""
    if policy.is_pure and not budget.is_pure:
        return "a pure policy is held against a zCDP budget; give the zCDP policy that it was made from"
    problem = policy.pure_problem() if budget.is_pure else None
    return problem and f"the budget is in pure epsilon, and this has none: {problem}"


ADVICE = (
    "Raise the budget a little where it is close to what is spent, or state it in the terms that the queries charge: "
    "the same measures at the same thresholds"
)


def _refusal(name: str, policy: Policy, budget: Policy, witness: dict[str, Any]) -> Verdict:
    """Return a no with the record's loss and its budget."""
    record = complete_witness(witness, budget, policy)
    reason = f"the {name} of the witness record is above the budget"
    try:
        needed, limit = ((each.delta if name == "delta" else each.loss)(record) for each in (policy, budget))
        reason += f": it needs {needed:.6g} of {limit:.6g}"
    except RecordError:
        reason += ", which gives its group no guarantee"
    return Verdict(answer="no", reason=reason, witness=witness, subject=name)


def complete_witness(witness: dict[str, Any], *policies: Policy) -> dict[str, Any]:
    """Return the witness with any value for columns that cancelled."""
    measures = {measure.name for policy in policies for measure in policy.inputs()}
    columns = {column.name for policy in policies for column in policy.columns()}
    return dict.fromkeys(sorted(columns), None) | dict.fromkeys(sorted(measures), 0) | witness


def witness_words(witness: dict[str, Any], given: dict[str, Any], *policies: Policy) -> str:
    """Describe a record that exceeds a budget.

    Args:
        witness: The record, with a value for every column.
        given: The values that were found; others do not matter.
        policies: Those that were compared, whose texts a value may stand apart from.
    """
    texts = {name: {str(each) for policy in policies for each in constants_of(policy, name)} for name in witness}
    measures = {measure.name for policy in policies for measure in policy.inputs()}

    def words(name: str, value: Any) -> str:
        if name not in given and name not in measures:
            return f"any {name}"
        return f"{name}={_value_words(value, texts[name])}"

    return ", ".join(words(name, value) for name, value in witness.items())


def _value_words(value: Any, named: set[str]) -> str:
    """Describe a value; a letter in no list stands for all texts that nothing names."""
    if value is None:
        return "NULL"
    text = str(value)
    if not isinstance(value, str) or text[-1:] < OTHER or any(text[-1] in each for each in named):
        return text
    known = text.rstrip(text[-1])
    return f"(any that begins with {known} and is not listed)" if known else "(any that is not listed)"


def find_excess(spent: Terms, limit: Terms, bounds: Mapping[str, Fraction], deadline: float) -> dict[str, Any] | None:
    """Return a record that exceeds ``limit``, or None if proved impossible."""
    gains, costs = _net(spent, limit)
    if all(isinstance(atom, Outside) and (condition, atom) in costs for condition, atom in gains):
        return None
    if sum(bool(split_bands(condition)[0]) for condition, _ in gains) >= MANY_BANDS:
        try:
            unbanded = {key: each for key, each in costs.items() if not split_bands(key[0])[0]}
            if _excess(_in_any_band(gains), unbanded, bounds, deadline) is None:
                return None
        except DoubtError:
            # Only what each band costs can decide.
            pass
    return _excess(gains, costs, bounds, deadline)


def _excess(gains: Terms, costs: Terms, bounds: Mapping[str, Fraction], deadline: float) -> dict[str, Any] | None:
    """Return a record whose gains exceed its costs, None if impossible."""
    measures = sorted({measure for _, atom in [*gains, *costs] for measure in atom.measures()})
    parts = regions({**gains, **costs}, measures, bounds)
    if parts is None:
        raise DoubtError(MANY_REGIONS)
    question = _Question(gains, costs, measures, AnchoredTerms.of(gains), AnchoredTerms.of(costs))
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


def _in_any_band(terms: Terms) -> Terms:
    """Return terms that are at least as large, and ask for no band of a table (T-SIZE).

    A record is in one band of each table: of terms that differ in the band alone it pays those of one band, at most the
    largest sum. Laplace noise that differs by band counts as that of the smallest scale.
    """
    found: dict[Key, Fraction] = {}
    by_band: dict[tuple[Condition, Atom, str], dict[int, Fraction]] = {}
    largest = _largest_laplace(terms)
    for (condition, atom), coefficient in terms.items():
        bands, rest = split_bands(condition)
        if not bands:
            found[condition, atom] = found.get((condition, atom), Fraction(0)) + coefficient
            continue
        above = largest.get((rest, bands[0].table.digest, atom.measure), atom) if isinstance(atom, LaplaceSum) else atom
        sums = by_band.setdefault((rest, above, bands[0].table.digest), {})
        for band in bands[0].bands:
            sums[band] = sums.get(band, Fraction(0)) + coefficient
    for (rest, atom, _), sums in by_band.items():
        found[rest, atom] = found.get((rest, atom), Fraction(0)) + max(sums.values())
    return found


def _largest_laplace(terms: Terms) -> dict[tuple[Condition, str, Measure], LaplaceSum]:
    """Return for each table a Laplace loss that is at least that of every band (T-COVER), where there is one."""
    by_table: dict[tuple[Condition, str, Measure], list[LaplaceSum]] = {}
    for condition, atom in terms:
        bands, rest = split_bands(condition)
        if bands and isinstance(atom, LaplaceSum):
            by_table.setdefault((rest, bands[0].table.digest, atom.measure), []).append(atom)
    found = {}
    for key, atoms in by_table.items():
        least = min(atoms, key=lambda atom: atom.scale)
        # Of a coarser lattice the loss is larger; lattices are halved, so the coarser ones are doubles.
        doubles = (replace(least, grid=least.grid * 2**power) for power in range(DOUBLED) if _divides(least, 2**power))
        over = (each for each in doubles if all(ratio_upper(atom, each) is not None for atom in atoms))
        if (largest := next(over, None)) is not None:
            found[key] = largest
    return found


DOUBLED = 4
"""How often a lattice is doubled to be as coarse, relative to the scale, as those of all bands."""


def _divides(atom: LaplaceSum, times: int) -> bool:
    return (atom.measure.step / (atom.grid * times)).denominator == 1


def _net(spent: Terms, limit: Terms) -> tuple[Terms, Terms]:
    """Cancel equal terms of both sides.

    "No guarantee" does not cancel: where the budget gives none, any loss is allowed.
    """
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
    """Policy and budget without their equal terms, and comparisons already settled."""

    gains: Terms
    costs: Terms
    measures: list[Measure]
    anchored_gains: "AnchoredTerms"
    anchored_costs: "AnchoredTerms"
    settled: set[tuple[object, ...]] = field(default_factory=set)

    def excess_in(self, region: Region, deadline: float) -> dict[str, Any] | None:
        """Return a record over budget in the region, or None if impossible."""
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

    def excess_of(
        self, gain: AtomSum, budgets: list[AtomSum], region: Region, deadline: float
    ) -> dict[str, Fraction] | None:
        """Return amounts whose gains exceed the budgets, or None if impossible."""
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
        """Shrink a counterexample measure by measure to make it readable."""
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
        """Return whether the gains certainly exceed the costs."""
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
class AnchoredTerms:
    """Terms indexed by a column value that they require."""

    anywhere: Terms
    by_value: dict[str, dict[Cell, Terms]]

    @classmethod
    def of(cls, terms: Terms) -> "AnchoredTerms":
        """Index terms by the values of their first full-value list."""
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


def _frozen(terms: AtomSum) -> frozenset[tuple[object, Fraction]]:
    return frozenset(terms.items())


NOTICEABLE = Fraction(1, 2**30)


def alternatives(terms: Terms, groups: dict[str, Cell | None]) -> Iterator[AtomSum]:
    """Yield the terms that apply, with one choice in every maximum."""
    plain: AtomSum = {}
    choices: list[list[AtomSum]] = []
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
        yield _add_sums([plain, *choice])


def _add_sums(parts: list[AtomSum]) -> AtomSum:
    total: AtomSum = {}
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
