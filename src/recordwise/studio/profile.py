"""Records that stand for all: some of each size, the named examples, firms made of them, and the largest possible record."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.interpolate import PchipInterpolator

from recordwise.errors import RecordError
from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.cost import firm_policy
from recordwise.plan.file.read import PlanFile
from recordwise.plan.plan import Plan
from recordwise.plan.publication import Labels
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.planning.check import example_records
from recordwise.planning.explain import FEW, Cells, Sample, class_ends, size_name, taken
from recordwise.planning.result import record_text
from recordwise.planning.search.goals import has_amount
from recordwise.planning.search.reliable import Scalable, has_widths, scaled_losses
from recordwise.policy.policy import Policy
from recordwise.session import Session
from recordwise.session.owner import OwnerView
from recordwise.session.session import plan_ledger
from recordwise.studio.trade import Budget, Example, PointLosses, SampledRecord, short

EACH = 12
"""Records of each size."""
TOGETHER = 10
"""Establishments of a firm in one place."""
KNOTS, LEAST = 7, 1e-300
ROUND, BETWEEN = (1.0, 2.0, 5.0, 10.0), (2**0.5, 10**0.5, 50**0.5)
"""Round numbers of a decade, and where one is as near as the next."""
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Profile:
    """Records that stand for all; CONFIDENTIAL if they are."""

    schema: Schema
    columns: Mapping[str, Any]
    classes: tuple[tuple[str, float], ...]
    records: tuple[SampledRecord, ...]
    examples: tuple[Example, ...]
    firms: tuple[Example, ...]
    budget: Budget | None
    rows: tuple[Record, ...]
    """The examples, and then the largest possible record."""
    firm_units: tuple[Mapping[str, list[Any]], ...]

    @classmethod
    def of(
        cls,
        file: PlanFile,
        session: Session,
        view: OwnerView,
        cells: Cells,
        words: Labels,
        others: Sequence[Policy] = (),
        *,
        is_exact: bool,
    ) -> "Profile":
        """Return records evenly over their sizes and losses; round numbers of their sizes unless they may be exact."""
        policy = session.policy_of(*cells.scalable.queries)
        left = _left(file)
        sample = Sample.of(view, policy, [*others, *([] if left is None else left)])
        sizes = sample.sizes()
        edges = class_ends(sizes, FEW) if sample.measure is not None else []
        place = np.searchsorted(edges, sizes, side="right")
        unit = "" if sample.measure is None else f" {words.label(sample.measure)}"
        classes, rows, weights, held = [], [], [], []
        for number, at in enumerate(np.unique(place)):
            own = np.flatnonzero(place == at)
            classes.append((size_name(edges, int(at)) + (unit if edges else ""), sample.share(own)))
            chosen = _even(sample, own)
            rows += chosen
            weights += [float(sample.weights[own].sum()) / len(chosen)] * len(chosen)
            held += [number] * len(chosen)
        columns = {name: taken(each, np.array(rows)) for name, each in sample.columns.items()}
        columns = columns if is_exact else _with_round_sizes(columns, view.schema)
        named = _examples(file, policy)
        extreme = _extreme(view.schema, next(iter(named.values())))
        budgets = _of_columns(left, columns, len(rows))
        firms = _firms(named, policy)
        return cls(
            schema=view.schema,
            columns=columns,
            classes=tuple(classes),
            records=tuple(
                SampledRecord(size_class=own, weight=short(weight), budget=each)
                for own, weight, each in zip(held, weights, budgets)
            ),
            examples=tuple(
                Example(name=name, record=record_text(dict(each)), budget=_of_record(left, each))
                for name, each in named.items()
            ),
            firms=tuple(Example(name=name, record=told, budget=None) for name, told, _ in firms),
            budget=None if left is None else _budget(file, _of_record(left, extreme)),
            rows=(*named.values(), extreme),
            firm_units=tuple(units for _, _, units in firms),
        )

    def usual(self, measure: str) -> float:
        """Return the middle size of the records in a measure."""
        if measure not in self.columns:
            return 1.0
        sizes = np.abs(np.asarray(self.columns[measure], np.float64))
        order = np.argsort(sizes, kind="stable")
        risen = np.cumsum(np.array([each.weight for each in self.records])[order])
        declared = self.schema.measure(measure)
        return max(
            float(sizes[order[np.searchsorted(risen, risen[-1] / 2)]]), float(declared.step) if declared else 1.0
        )

    def losses(self, session: Session, plan: Scalable, factors: Sequence[float]) -> tuple[PointLosses, ...] | None:
        """Return one statistic's cost at each factor, None where unknown."""
        if any(has_widths(plan.drawn(place).mechanism) for place in plan.places()):
            records, rows = self._interpolated(session, plan, factors)
        else:
            policy = session.policy_of(*plan.examined(plan.queries))
            curves = scaled_losses(plan, policy, Policy(), self.columns, self._evaluated)
            single = [
                scaled_losses(plan, policy, Policy(), {name: [each] for name, each in row.items()}, _evaluated_at(row))
                for row in self.rows
            ]
            if any(each.is_fixed for each in (curves, *single)):
                return None
            records = np.stack([curves.at(each) for each in factors])
            rows = np.array([[float(own.at(each)[0]) for own in single] for each in factors])
        firms = self._firm_losses(plan, factors)
        found = tuple(
            _losses(records[at], rows[at].tolist()[:-1], firms[at], rows[at].tolist()[-1:])
            for at in range(len(factors))
        )
        return found if all(map(_is_finite, found)) else None

    def _interpolated(
        self, session: Session, plan: Scalable, factors: Sequence[float]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the losses of records, from the policy at a few factors."""
        tried = _few(factors)
        policies = [session.policy_of(*plan.examined(plan.at(each) or plan.queries)) for each in tried]
        rows = np.array([[float(policy.loss(dict(row))) for row in self.rows] for policy in policies])
        return _between(factors, tried, self._evaluated(policies).T), _between(factors, tried, rows)

    def others(self, session: Session, queries: Sequence[Query]) -> PointLosses:
        """Return what statistics cost whose mechanism is not chosen."""
        if not queries:
            rows = [0.0] * len(self.rows)
            return _losses(np.zeros(len(self.records)), rows[:-1], [0.0] * len(self.firm_units), rows[-1:])
        policy = session.policy_of(*queries)
        rows = [float(policy.loss(dict(each))) for each in self.rows]
        firms = firm_policy(Plan(schema=self.schema, queries=tuple(queries)))
        together = [float(firms.loss(each).rho) for each in self.firm_units]
        return _losses(self._evaluated([policy])[:, 0], rows[:-1], together, rows[-1:])

    def _evaluated(self, policies: Sequence[Policy]) -> FloatArray:
        count = len(self.records)
        found = [policy.loss(self.columns) if self.columns else float(policy.loss({})) for policy in policies]
        return np.stack([np.broadcast_to(np.asarray(each, np.float64), count) for each in found], axis=1)

    def _firm_losses(self, plan: Scalable, factors: Sequence[float]) -> list[list[float]]:
        """Return what firms lose: in proportion to the factor under Gaussian noise, otherwise worked out at a few."""
        if not self.firm_units:
            return [[] for _ in factors]
        if all(has_amount(plan.drawn(place).mechanism) for place in plan.places()):
            base = self._firms_of(plan.examined(plan.queries))
            return [[each * factor for each in base] for factor in factors]
        tried = _few(factors)
        known = np.array([self._firms_of(plan.examined(plan.at(each) or plan.queries)) for each in tried])
        found: list[list[float]] = _between(factors, tried, known).tolist()
        return found

    def _firms_of(self, queries: Sequence[Query]) -> list[float]:
        policy = firm_policy(Plan(schema=self.schema, queries=tuple(queries)))
        return [float(policy.loss(each).rho) for each in self.firm_units]


def _few(factors: Sequence[float]) -> list[float]:
    """Return a few of some factors, the first, the last and that of today's plan among them."""
    order = sorted(set(factors))
    places = np.linspace(0, len(order) - 1, min(KNOTS, len(order))).round().astype(int)
    return sorted({*(order[each] for each in places), *(each for each in order if each == 1)})


def _between(factors: Sequence[float], tried: Sequence[float], known: FloatArray) -> FloatArray:
    """Return losses at all factors, a row for each.

    The logarithm of a loss bends little in that of the noise, and rises with it: it is interpolated.
    """
    if len(tried) == 1:
        return np.repeat(known, len(factors), axis=0)
    curve = PchipInterpolator(np.log(tried), np.log(np.maximum(known, LEAST)), axis=0)
    return np.asarray(np.where(known.max(axis=0) > 0, np.exp(curve(np.log(factors))), 0.0))


def _even(sample: Sample, rows: Any) -> list[int]:
    """Return some of the records of a class, evenly over their losses."""
    order = rows[np.argsort(sample.losses[rows], kind="stable")]
    risen = np.cumsum(sample.weights[order])
    count = min(EACH, len(order))
    places = np.searchsorted(risen, (np.arange(count) + 0.5) * risen[-1] / count)
    return [int(order[each]) for each in places]


def round_sizes(values: Any, step: Fraction) -> FloatArray:
    """Return round numbers near values, with their signs: 1, 2 or 5 times a power of ten, from two steps on."""
    sizes = np.abs(np.asarray(values, np.float64))
    power = 10.0 ** np.floor(np.log10(np.where(sizes > 0, sizes, 1.0)))
    near = np.array(ROUND)[np.searchsorted(BETWEEN, sizes / power)] * power
    steps = np.maximum(np.rint(near / float(step)), 2)
    return np.asarray(np.where(sizes > 0, np.sign(values) * steps * float(step), 0.0))


def _with_round_sizes(columns: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Return records whose measures are round: the loss of a record under plain noise is its size in another form."""
    found = dict(columns)
    for each in schema.record_measures():
        if each.name in found:
            largest = float(each.step * each.bound_steps)
            sizes = np.clip(round_sizes(found[each.name], each.step), -largest, largest)
            found[each.name] = sizes.astype(np.asarray(found[each.name]).dtype)
    return found


def _evaluated_at(row: Record) -> Any:
    def evaluated(policies: Sequence[Policy]) -> FloatArray:
        return np.array([[float(each.loss(dict(row))) for each in policies]])

    return evaluated


def _examples(file: PlanFile, policy: Policy) -> dict[str, Record]:
    """Return the plan's examples for which its policy gives a loss."""
    found: dict[str, Record] = {}
    for name, record in example_records(file, policy).items():
        try:
            policy.loss(record)
        except RecordError:
            continue
        found[name] = record
    return found or {"a record": {}}


def _extreme(schema: Schema, like: Record) -> Record:
    """Return the largest allowed record in the groups of another."""
    largest = {each.name: each.step * each.bound_steps for each in schema.record_measures()}
    return {name: largest.get(name, each) for name, each in like.items()}


def _firms(examples: Mapping[str, Record], policy: Policy) -> list[tuple[str, str, Mapping[str, list[Any]]]]:
    """Return firms made of the examples: each of them once, and ten of the usual one in one place."""
    rows = list(examples.values())
    if not all(row.keys() == rows[0].keys() for row in rows) or not rows[0]:
        return []
    order = sorted(examples, key=lambda name: float(policy.loss(dict(examples[name]))))
    usual = order[(len(order) - 1) // 2]
    together = {name: [examples[usual][name]] * TOGETHER for name in rows[0]}
    found: list[tuple[str, str, Mapping[str, list[Any]]]] = [
        (f"{TOGETHER} of '{usual}' in one place", f"{TOGETHER} times {record_text(dict(examples[usual]))}", together)
    ]
    if len(rows) > 1:
        each = {name: [row[name] for row in rows] for name in rows[0]}
        found.append(("all examples as one firm", ", ".join(examples), each))
    return found


# The budget: what is left of it for a record.


Left = tuple[Policy, Policy]
"""The budget, and what was charged or reserved before."""


def _left(file: PlanFile) -> Left | None:
    if file.budget is None or file.budget.is_pure:
        return None
    with plan_ledger(file) as ledger:
        return file.budget, ledger.spent() + ledger.reserved()


def _of_record(left: Left | None, record: Record) -> float | None:
    if left is None:
        return None
    try:
        return short(max(float(left[0].loss(dict(record))) - float(left[1].loss(dict(record))), 0.0))
    except RecordError:
        return None


def _of_columns(left: Left | None, columns: Mapping[str, Any], count: int) -> list[float | None]:
    if left is None:
        return [None] * count
    budget, spent = (
        np.broadcast_to(np.asarray(each.loss(columns) if columns else float(each.loss({})), np.float64), count)
        for each in left
    )
    return [short(max(each, 0.0)) for each in (budget - spent).tolist()]


def _budget(file: PlanFile, extreme: float | None) -> Budget:
    left = () if extreme is None else (extreme,)
    if file.series is not None:
        return Budget(
            words="Each period has a budget of its own: so often it covers this release, revisions among them.",
            noun="releases in a period",
            extremes=left,
        )
    return Budget(
        words="So many years the budget lasts if each costs as much as this release.", noun="years", extremes=left
    )


def _losses(
    records: FloatArray, examples: Sequence[float], firms: Sequence[float], extremes: Sequence[float]
) -> PointLosses:
    return PointLosses(
        records=tuple(short(each) for each in records.tolist()),
        examples=tuple(map(short, examples)),
        firms=tuple(map(short, firms)),
        extremes=tuple(map(short, extremes)),
    )


def _is_finite(losses: PointLosses) -> bool:
    return all(map(math.isfinite, (*losses.records, *losses.examples, *losses.firms, *losses.extremes)))
