"""The distribution of policy losses over records or firms, and what is left of a budget."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.engines.owner import LossSummary
from recordwise.errors import BudgetError, ParameterError
from recordwise.exact.arithmetic import FloatArray, largest_allowed
from recordwise.exact.numbers import rational
from recordwise.exact.text import brief_text, digits_text, figure, prose_text, share_text
from recordwise.ledger.chain import Event
from recordwise.ledger.ledger import amount_bounds
from recordwise.mechanisms.base import Mechanism
from recordwise.mechanisms.combined import carried_from
from recordwise.plan.cost import firm_policy
from recordwise.plan.describe import query_names, schema_json
from recordwise.plan.expressions import And, Compare, Field, Predicate
from recordwise.plan.file.read import PlanFile
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.planning.result import Rows
from recordwise.planning.scope import PlanLike, read_queries, with_statistic
from recordwise.policy.dominance.prove import Verdict, complete_witness, witness_words
from recordwise.policy.firms import FirmPolicy
from recordwise.policy.meaning import power_gaussian
from recordwise.policy.policy import Policy
from recordwise.policy.series import CARRY, Step
from recordwise.session import Session
from recordwise.session.carried import check_carriable
from recordwise.session.owner import OwnerView, ValueCounts
from recordwise.session.session import plan_ledger

CURVE_POINTS = 400


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Losses:
    """Distinct losses in ascending order, with their numbers of records."""

    values: FloatArray
    records: FloatArray
    exact: bool
    """False if records were counted in bins; then a value is the upper end of a bin, at most 2.4% above the loss."""

    @classmethod
    def of(cls, losses: FloatArray, records: FloatArray) -> "Losses":
        """Losses and how many records have each.

        Args:
            losses: The different losses.
            records: How many records have each of them.

        Returns:
            The losses, sorted.
        """
        values, places = np.unique(losses, return_inverse=True)
        return cls(
            values=values,
            records=np.asarray(np.bincount(places, weights=records, minlength=len(values)), np.float64),
            exact=True,
        )

    @classmethod
    def of_bins(cls, summary: LossSummary) -> "Losses":
        """Return losses from bins, each at its upper end.

        Args:
            summary: The bins, from the engine.

        Returns:
            The losses, sorted.
        """
        held = np.flatnonzero(summary.counts)
        ends = np.append(summary.edges, np.inf)
        return cls(values=ends[held], records=summary.counts[held].astype(np.float64), exact=False)

    def at_most(self, other: "Losses") -> "Losses":
        """Return the losses, none of whose quantiles is above that of ``other``.

        Of the same records, each of which loses no more than there: what is taken off is the width of bins.

        Args:
            other: The losses of the same records by their policy.

        Returns:
            The losses.
        """
        if self.number != other.number or not self.number:
            return self
        ends = np.unique(np.concatenate([np.cumsum(self.records), np.cumsum(other.records)]))
        own, most = (each.values[np.searchsorted(np.cumsum(each.records), ends)] for each in (self, other))
        held = Losses.of(np.minimum(own, most), np.diff(ends, prepend=0.0))
        return Losses(values=held.values, records=held.records, exact=False)

    @property
    def number(self) -> int:
        """The number of records or firms."""
        return int(self.records.sum())

    def share_above(self, loss: float) -> float:
        """The share with a loss above a number.

        Args:
            loss: A loss.

        Returns:
            The share.
        """
        return float(self.records[self.values > loss].sum() / max(1.0, self.records.sum()))

    def quantile(self, p: float) -> float:
        """The smallest loss that at least a share ``p`` does not exceed.

        Args:
            p: The share of the records.

        Returns:
            The loss.
        """
        if not len(self.values):
            return 0.0
        risen = np.cumsum(self.records)
        place = int(np.searchsorted(risen, p * risen[-1] * (1 - 1e-12)))
        return float(self.values[min(place, len(self.values) - 1)])

    @property
    def maximum(self) -> float:
        """The largest loss."""
        return float(self.values[-1]) if len(self.values) else 0.0

    def curve(self) -> tuple[FloatArray, FloatArray]:
        """Return losses and cumulative shares, thinned for plotting."""
        if not len(self.values):
            return np.zeros(0), np.zeros(0)
        shares = np.cumsum(self.records) / self.records.sum()
        if len(shares) <= CURVE_POINTS:
            return self.values, shares
        body = np.searchsorted(shares, np.linspace(0, 1, CURVE_POINTS // 2))
        tail = np.searchsorted(-(1 - shares), -np.geomspace(1, 1 / self.records.sum(), CURVE_POINTS // 2))
        places = np.unique(np.clip(np.concatenate([body, tail, [len(shares) - 1]]), 0, len(shares) - 1))
        return self.values[places], shares[places]

    def to_json(self) -> dict[str, Any]:
        """The usual quantiles."""
        named = {"median": 0.5, "p90": 0.9, "p99": 0.99}
        return {name: self.quantile(p) for name, p in named.items()} | {"maximum": self.maximum, "exact": self.exact}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class LossPair:
    """The rho of a policy over the records, and any delta."""

    rho: Losses
    delta: Losses | None = None


def policy_losses(
    view: OwnerView, policies: Mapping[str, Policy], *, condition: Predicate | None = None
) -> dict[str, LossPair]:
    """Return the losses of several policies in one pass.

    Exact (T-COUNTED), or in bins if there are too many values.
    """
    counted = view.value_counts(policy_names(policies.values()), condition=condition)
    if counted is None:
        bins = view.loss_bins(list(policies.values()), condition=condition)
        return {name: LossPair(rho=Losses.of_bins(each)) for name, each in zip(policies, bins)}
    return {name: _pair(policy, counted) for name, policy in policies.items()}


def firm_losses(view: OwnerView, plans: Mapping[str, Sequence[Query]]) -> dict[str, LossPair]:
    """Return firms' joint losses under several plans (T-CELLS).

    Cell by cell, in one pass; with selected keys a pair.
    """
    found = {}
    for (name, queries), (rho, delta) in zip(plans.items(), view.firm_loss_bins(list(plans.values()))):
        selected = any(query.selection_of(level) is not None for query in queries for level in query.tables())
        found[name] = LossPair(rho=Losses.of_bins(rho), delta=Losses.of_bins(delta) if selected else None)
    return found


def policy_names(policies: Iterable[Policy]) -> list[str]:
    """The columns the policies look at."""
    listed = list(policies)
    measures = {measure.name for policy in listed for measure in policy.inputs()}
    return sorted(measures | {column.name for policy in listed for column in policy.columns()})


def _evaluated(evaluate: Callable[[Any], Any], counted: ValueCounts) -> FloatArray:
    """Return one number for each combination of values."""
    if counted.columns:
        return np.asarray(evaluate(counted.columns), np.float64)
    return np.full(len(counted.records), float(evaluate({})))


def _pair(policy: Policy, counted: ValueCounts) -> LossPair:
    rho = Losses.of(_evaluated(policy.loss, counted), counted.records)
    if not policy.delta_terms:
        return LossPair(rho=rho)
    return LossPair(rho=rho, delta=Losses.of(np.minimum(_evaluated(policy.delta, counted), 1.0), counted.records))


def realized_losses(
    view: OwnerView, query: Query, measure: str, mechanisms: Mapping[str, Mechanism]
) -> dict[str, LossPair]:
    """Return the realized losses of records from each mechanism alone.

    In one pass; a pair if keys are selected.
    """
    asked = query
    for number, mechanism in enumerate(mechanisms.values()):
        asked = with_statistic(asked, measure, mechanism, alias=f"m{number}")
    bins = view.realized_bins(asked)
    rhos = {name: Losses.of_bins(bins[f"m{number}"]) for number, name in enumerate(mechanisms)}
    delta = realized_deltas(view, query, next(iter(rhos.values())).number)
    return {name: LossPair(rho=rho, delta=delta) for name, rho in rhos.items()}


def realized_deltas(view: OwnerView, query: Query, records: int) -> Losses | None:
    """Return the deltas of records, if keys are selected.

    The probability that a key is listed because of a record that is alone in it; 0 for other records.
    """
    selection = query.selection_of(query.tables()[0])
    if selection is None or not selection.policy(view.schema).delta_terms:
        return None
    pieces, times = np.unique(view.lone_pieces(query), return_counts=True)
    law = selection.law
    tails = (
        np.minimum(law.noise.sf_upper([law.threshold - int(m) for m in pieces]), 1.0) if len(pieces) else np.zeros(0)
    )
    rest = records - times.sum()
    return Losses.of(np.append(tails, 0.0), np.append(times, rest).astype(np.float64))


# By which losses of the records plans are ranked: a quantile of them, or a stated trade-off between two.


QUANTILES = {"median": 0.5, "p99": 0.99, "maximum": 1.0}
BALANCED = "balanced"
RANKS: dict[str, tuple[float, ...]] = {
    BALANCED: (0.5, 0.99),
    **{name: (share,) for name, share in QUANTILES.items()},
}
"""The quantiles whose geometric mean is the loss of a rank."""
RANK_WORDS = {
    BALANCED: "balanced (geometric mean of median and 99th-percentile)",
    "median": "median",
    "p99": "99th-percentile",
    "maximum": "maximum",
}


def read_rank(rank_by: str) -> str:
    """The name of a rank.

    Raises:
        ParameterError: There is no such rank.
    """
    if rank_by not in RANKS:
        raise ParameterError(parameter="rank_by", problem=f"must be one of {', '.join(RANKS)}")
    return rank_by


def loss_at(losses: Losses, name: str) -> float:
    """The loss of a rank."""
    return balance(losses.quantile(share) for share in RANKS[name])


def balance(losses: Iterable[float]) -> float:
    """Return the geometric mean of losses.

    Each may rise by a factor only if the other falls by it. A loss of 0, of records that no query counts,
    leaves nothing to trade: it is left out.
    """
    found = [each for each in losses if each > 0]
    if not found or math.inf in found:
        return math.inf if found else 0.0
    return found[0] if len(found) == 1 else math.exp(math.fsum(map(math.log, found)) / len(found))


# Protection in words: whom a loss hardly protects.


HARDLY = 5.0
"""Above this loss a membership test is nearly always right."""
PARTS = ((0.5, "Half"), (0.25, "A quarter"), (0.1, "A tenth"))


def hardly_protected(losses: Losses) -> str | None:
    """Describe the records that a plan hardly protects.

    None if fewer than a tenth.
    """
    for part, word in PARTS:
        if losses.quantile(1 - part) > HARDLY:
            detected = share_text(power_gaussian(HARDLY), 0)
            return (
                f"{word} of the records lose more than {figure(HARDLY)}: hardly protected. Under Gaussian noise a membership test "
                f"with a 5% false-positive rate detects such a record with a probability of more than {detected}."
            )
    return None


# Losses by the size of a record: tenfold classes of the measure that a policy depends on first.


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
    """Return record losses by tenfold classes of a measure.

    CONFIDENTIAL if the records are.

    Args:
        view: The records.
        policy: What they lose.
        schema: Their schema.
        measure: The measure that the classes are made of; by default the first that the policy depends on.

    Returns:
        The classes that hold records, the smallest first; one for all records if the policy depends on no measure.
    """
    used = {each.name for each in policy.inputs()}
    held = [each.name for each in schema.record_measures()]
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
    """Return binned losses for each class, the first below 1."""
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
    """Return the powers of ten that separate the classes."""
    first = int(np.floor(np.log10(max(smallest, 1e-12))))
    last = int(np.floor(np.log10(max(largest, smallest, 1e-12))))
    return np.asarray(float(FACTOR) ** np.arange(first, last + 1))


def class_name(edges: Sequence[float] | FloatArray, place: int, of: str) -> str:
    """Return a class's name from its measure and size limits."""
    if place == 0:
        return f"{of} 0" if len(edges) else of
    start = prose_text(edges[place - 1])
    return f"{of} from {start}" if place == len(edges) else f"{of} {start} to below {prose_text(edges[place])}"


# The remaining budget of a plan, and the most of a recommendation that it covers.


HALVINGS = 12
LEAST = Fraction(1, 10**6)
SECONDS = 10.0
"""Processor time that one proof may take."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Left:
    """A budget, and what was charged to it before."""

    budget: Policy | None
    refused: Callable[[Policy], BudgetError | None]
    """The error that a plan with this policy would raise; None if it would not."""
    is_new: bool
    """Whether nothing can have been charged before."""
    reserve: int = 0
    """For how many revisions a recommended plan keeps a reserve that the plan does not state."""

    @property
    def needs_budget(self) -> bool:
        """Whether a plan file needs a proposed budget.

        It has none, and nothing can have been charged before.
        """
        return self.budget is None and self.is_new

    def refusal(self, policy: Policy) -> str | None:
        """Return in words why a plan with this policy would be refused; None if it would not."""
        error = self.refused(policy)
        return None if error is None else budget_words(error)

    def reserve_words(self) -> list[str]:
        """Return what a plan sets aside for revisions without having stated it, as a note; none where it does not."""
        if not self.reserve or self.budget is None:
            return []
        count = "one revision" if self.reserve == 1 else f"each of {self.reserve} revisions"
        return [
            f"The plan sets its full charge aside for {count} (reserve), so that it can be revised; "
            "reserve = { revisions = 0 } in the plan gives that up."
        ]

    def share_covered(self, policy_at: Callable[[Fraction], Policy]) -> Fraction | None:
        """Return the largest covered share of a plan's loss.

        Of two digits; None if not even a millionth is covered.
        """

        def covered(share: Fraction) -> bool:
            return self.refused(policy_at(share)) is None

        if not covered(LEAST):
            return None
        from recordwise.planning.search.goals import two_digits

        return largest_allowed(covered, LEAST, Fraction(1), rounded=two_digits, rounds=HALVINGS)


def left_of(session: Session, plan: PlanLike, *, new_budget: bool = False) -> Left:
    """Return the budget of the session or the plan's ledger; none, if it is to get a new one."""
    reserve = usual_reserve(plan) if isinstance(plan, PlanFile) else 0
    if new_budget:
        return _new_budget(session, plan, reserve)
    if isinstance(plan, PlanFile) and session.budget is None:
        with plan_ledger(plan) as ledger:
            is_new = not _charged(ledger.history())
        return Left(
            budget=plan.budget,
            refused=lambda policy: _refused_by_ledger(plan, policy * (1 + reserve)),
            is_new=is_new,
            reserve=reserve,
        )
    named = "; ".join(", ".join(each.alias for each in query.statistics) for query in read_queries(plan))
    return Left(
        budget=session.budget,
        refused=lambda policy: _refused(session, policy * (1 + reserve), named),
        is_new=not _charged(session.history()),
        reserve=reserve,
    )


def _new_budget(session: Session, plan: PlanLike, reserve: int) -> Left:
    """Return no budget for a plan file whose own was never charged."""
    if not isinstance(plan, PlanFile):
        raise ParameterError(
            parameter="new_budget", problem="is for a plan file", advice="Give plan=rw.load_plan(...)."
        )
    with plan_ledger(plan) as ledger:
        charged = _charged(ledger.history())
    if charged or _charged(session.history()):
        raise ParameterError(
            parameter="new_budget",
            problem="is for a budget to which nothing was charged",
            advice="A budget that was charged is raised in public: recordwise ledger amend PLAN --reason TEXT.",
        )
    return Left(budget=None, refused=lambda policy: None, is_new=True, reserve=plan.reserve or reserve)


def usual_reserve(file: PlanFile) -> int:
    """Return for how many revisions a plan gets a reserve that it does not state: one, unless it is a revision."""
    return int(file.reserve is None and (file.series is None or file.series.revision == 0))


def _charged(history: Sequence[Event]) -> bool:
    return any(event.kind == "charged" for event in history)


def _refused_by_ledger(file: PlanFile, policy: Policy) -> BudgetError | None:
    if file.budget is None:
        return None
    try:
        with plan_ledger(file) as ledger:
            ledger.check(policy, query="the plan", named=query_names(file.plan))
    except BudgetError as error:
        return error
    return None


def _refused(session: Session, policy: Policy, named: str) -> BudgetError | None:
    if session.budget is None:
        return None
    is_first = session.series is None or session.series.revision == 0
    policy = policy * (1 + session.reserve if is_first else 1)
    # A revision uses the reserve of its own release (T-RESERVE).
    after = session.spent() + session.reserved(revising=None if is_first else named) + policy
    verdict = proof(session.budget, after, session.schema)
    if verdict:
        return None
    what = "pure epsilon" if session.budget.is_pure else "loss"
    told: dict[str, Any] = {"query": "the plan", "reason": verdict.reason if verdict.witness is None else what}
    if verdict.witness is None:
        return BudgetError(witness=None, needed=math.nan, left=math.nan, **told)
    witness = complete_witness(verdict.witness, session.budget, after)
    needed = float(policy.in_unit_of(session.budget).loss(witness))
    record = witness_words(witness, verdict.witness, session.budget, after)
    return BudgetError(witness=witness, needed=needed, left=session.remaining(witness), record=record, **told)


def proof(budget: Policy, policy: Policy, schema: Schema) -> Verdict:
    """Decide whether a budget covers a policy for every record that the schema allows, as the ledger does."""
    return budget.dominates(policy, bounds=amount_bounds(schema_json(schema)), seconds=SECONDS)


def budget_words(error: BudgetError) -> str:
    """Describe where a budget ends, by a possible record."""
    if error.witness is None:
        return f"it could not be proved that the budget covers the plan ({error.reason})"
    return (
        f"for {error.record or 'every record'} the plan needs a {error.reason} of {figure(error.needed)}, and "
        f"{figure(error.left)} is left"
    )


# Losses of a sample of the records, on which splits and families are tried before they are measured on all of them.


RECORDS = 4000
"""Records evenly spaced in the order of their values."""
LARGEST = 50
"""So many of the records largest in each measure are in the sample too, with next to no weight: they decide the maximum."""
NEXT_TO_NOTHING = 1e-3


class RecordSample:
    """Some records with their weights.

    Where there are too many values, one typical record. CONFIDENTIAL if the records are.
    """

    def __init__(self, view: OwnerView, policies: Sequence[Policy], rank_by: str) -> None:
        self._view, self._rank_by = view, rank_by
        self._counted = view.value_counts(policy_names(policies))
        self._rows: Any = np.zeros(1, np.int64)
        self.weights: FloatArray = np.ones(1)
        if self._counted is not None and len(self._counted.records):
            self._rows, self.weights = _chosen(self._counted)
        self.columns = {} if self._counted is None else _taken(self._counted.columns, self._rows)

    def losses(self, policies: Sequence[Policy]) -> FloatArray:
        """The loss of each record under each policy, a column for each."""
        if self._counted is None:
            bins = self._view.loss_bins(list(policies))
            return np.array([[loss_at(Losses.of_bins(each), self._rank_by) for each in bins]])
        return np.stack([self._of(each) for each in policies], axis=1)

    def _of(self, policy: Policy) -> FloatArray:
        found = policy.loss(self.columns) if self.columns else float(policy.loss({}))
        return np.asarray(np.broadcast_to(np.asarray(found, np.float64), len(self._rows)))

    def ranked(self, losses: FloatArray, rank_by: str | None = None) -> float:
        """Return the loss of a rank."""
        return balance(losses[self.places(losses, rank_by)].tolist())

    def places(self, losses: FloatArray, rank_by: str | None = None) -> Any:
        """Return the records whose losses make a rank."""
        order = np.argsort(losses)
        risen = np.cumsum(self.weights[order])
        shares = np.array(RANKS[rank_by or self._rank_by])
        found = np.searchsorted(risen, shares * risen[-1] * (1 - 1e-12))
        return order[np.minimum(found, len(order) - 1)]


def _chosen(counted: ValueCounts) -> tuple[Any, FloatArray]:
    """Rows evenly spaced along the measures, and the largest of each measure."""
    measures = [np.asarray(each, np.float64) for each in counted.columns.values() if not _is_text(each)]
    order = np.lexsort(measures[::-1]) if measures else np.arange(len(counted.records))
    risen = np.cumsum(counted.records[order])
    count = int(min(RECORDS, risen[-1]))
    even = order[np.searchsorted(risen, (np.arange(count) + 0.5) * risen[-1] / count)]
    rows, times = np.unique(even, return_counts=True)
    largest = [np.argsort(each)[-LARGEST:] for each in measures]
    more = np.setdiff1d(np.concatenate(largest) if largest else rows[:0], rows)
    return np.append(rows, more), np.append(times.astype(np.float64), np.full(len(more), NEXT_TO_NOTHING))


def _is_text(column: Any) -> bool:
    return isinstance(column, pa.ChunkedArray | pa.Array)


def _taken(columns: dict[str, Any], rows: Any) -> dict[str, Any]:
    return {name: each.take(pa.array(rows)) if _is_text(each) else each[rows] for name, each in columns.items()}


# Ten years by kind of establishment: fresh noise in every year compared with noise that is carried on, a revision of corrected
# records with one that is charged in full, and a refined release with two separate ones (T-SERIES, T-REVISE, T-STAGES).


YEARS, HALF = 10, 5
GROWTH = Fraction(21, 20)
USUAL_CARRY = Fraction(4, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class TenYears:
    """What ten years of a plan cost, by kind of establishment."""

    carry: Fraction
    declared: bool
    """Whether the plan carries noise on; otherwise this is what it could."""
    noise: FirmPolicy
    """What one fresh year costs."""

    @classmethod
    def of(cls, file: PlanFile) -> "TenYears | None":
        """Return the comparison for a plan of a series; None where noise cannot be carried on.

        Args:
            file: The plan.
        """
        if file.series is None:
            return None
        try:
            check_carriable(file.plan, CARRY)
            every = [each for query in file.plan.queries for each in query.draws()]
            for each in every:
                carried_from(None, each.mechanism, carry=Fraction(0), leave=USUAL_CARRY)
        except ParameterError:
            return None
        known = file.series.carry
        carry = USUAL_CARRY if known is None else Fraction(known)
        return cls(carry=carry, declared=known is not None, noise=firm_policy(file.plan))

    def losses(self, record: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
        """Return ten years' losses with fresh and carried noise, by kind.

        Args:
            record: The establishment in the first year.
        """
        step = Step(kind=CARRY, noise=self.noise, carry=self.carry)
        coming = 1 / float(1 - self.carry**2)
        leaving = float(self.carry**2) * coming
        fresh = float(self.noise.policy().loss(dict(record)))
        stays = step.unchanged(record) * coming
        sizes = [self._times(record, GROWTH**year) for year in range(YEARS)]
        changes = [self._times(record, GROWTH ** (year - 1) * (GROWTH - self.carry)) for year in range(1, YEARS)]
        grown = sum(float(self.noise.policy().loss(each)) for each in sizes)
        carried = fresh + coming * sum(float(step.staying().loss(each)) for each in changes)
        return {
            "stable": (YEARS * fresh, fresh + (YEARS - 1) * stays),
            "growing by 5 % a year": (grown, carried),
            "moves once": (YEARS * fresh, fresh * (1 + coming + leaving) + (YEARS - 2) * stays),
            "enters after 5 years": (HALF * fresh, fresh * coming + (HALF - 1) * stays),
            "leaves after 5 years": (HALF * fresh, fresh * (1 + leaving) + (HALF - 1) * stays),
        }

    def _times(self, record: Mapping[str, Any], factor: Fraction) -> dict[str, Any]:
        measures = {each.name for each in self.noise.policy().inputs()}
        return {
            name: factor * rational(value, parameter=name) if name in measures else value
            for name, value in record.items()
        }

    def rows(self, examples: Mapping[str, Mapping[str, Any]]) -> Rows:
        """Return headers and rows for example records.

        Args:
            examples: The records by name.
        """
        headers = ["over ten years", "", "fresh noise", f"carry = {brief_text(float(self.carry))}"]
        rows = [
            [name, kind, figure(fresh), figure(carried)]
            for name, record in examples.items()
            for kind, (fresh, carried) in self.losses(record).items()
        ]
        return headers, rows

    def notes(self) -> tuple[str, ...]:
        """Say what carrying, revising and refining change, whoever it is."""
        carry = float(self.carry)
        less = digits_text(math.sqrt(2 * (1 - carry)), 2)
        stays, moves = (digits_text(each, 3) for each in ((1 - carry) / (1 + carry), (1 + carry**2) / (1 - carry**2)))
        first = "Noise is carried on" if self.declared else f"With carry = {brief_text(carry)} in [series]"
        return (
            f"{first}: a change between two years has {less} of the standard deviation of a level instead of 1.41. A year costs "
            f"one that stays as it is {stays} of a fresh year, one that moves {moves}.",
            "Records corrected by [stage] revise, with the same noise once more: who did not change pays nothing, who changed by "
            "a tenth 0.01 of a release, who moved two; a revision with fresh noise costs everybody one.",
            "A preliminary release with twice the variance, refined by [stage] refine, costs one release for both instead of 1.5.",
        )

    def by_kind(self) -> str:
        """Say what ten years cost each kind, in multiples of one."""
        coming = 1 / float(1 - self.carry**2)
        leaving, stays = float(self.carry**2) * coming, float((1 - self.carry) ** 2) * coming
        sizes = [float(GROWTH) ** year for year in range(YEARS)]
        changes = [each / float(GROWTH) * float(GROWTH - self.carry) for each in sizes[1:]]
        costs = {
            "one that stays as it is": (1 + (YEARS - 1) * stays, YEARS),
            "one that grows by 5 % a year (its sums)": (
                1 + coming * sum(each**2 for each in changes),
                sum(each**2 for each in sizes),
            ),
            "one that moves once": (1 + coming + leaving + (YEARS - 2) * stays, YEARS),
            "one that enters after five years": (coming + (HALF - 1) * stays, HALF),
            "one that leaves after five years": (1 + leaving + (HALF - 1) * stays, HALF),
        }
        told = [f"{who} {digits_text(own, 3)} instead of {digits_text(each, 3)}" for who, (own, each) in costs.items()]
        return f"Ten years with carried noise cost, in fresh years: {', '.join(told)}."

    def to_json(self, examples: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return the numbers, for JSON.

        Args:
            examples: The records by name.
        """
        found = {
            name: {kind: {"fresh": fresh, "carried": carried} for kind, (fresh, carried) in self.losses(record).items()}
            for name, record in examples.items()
        }
        return {"carry": str(self.carry), "declared": self.declared, "examples": found}
