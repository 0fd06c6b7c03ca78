"""Random budgets and policies of up to four measures, and a search for records that exceed a budget which shares nothing with the
proof: whole columns of losses at thresholds, one step beside them, at multiples, at ends of conditions and far out."""

from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import numpy as np

from recordwise.exact.functions import log, x
from recordwise.exact.numbers import ball, working_precision
from recordwise.policy import (
    Measure,
    Policy,
    among,
    compare,
    constant,
    gaussian_sum,
    gaussian_transform,
    maximum,
    selection,
    split,
)
from recordwise.policy.evaluate.numpy import canonical_record, terms_ball

FOUR = (Measure("emp"), Measure("pay", Fraction(1, 10)), Measure("quarter"), Measure("net", Fraction(1), True))
THRESHOLDS = {"emp": [5, 20, 50], "pay": [50, 500, 1200], "quarter": [12, 125, 300], "net": [7, 30, 1000]}
FAR = (10**4, 10**7, 10**10)


def number(rng: Random) -> Fraction:
    return Fraction(rng.choice([1, 2, 3, 5, 7, 10, 13]), rng.choice([1, 2, 4, 10, 100]))


def random_thresholds(rng: Random, measures: list[Measure]) -> dict[Measure, Any]:
    chosen = rng.sample(measures, rng.randint(1, len(measures)))
    return {measure: rng.choice(THRESHOLDS[measure.name]) for measure in chosen}


def random_term(rng: Random, measures: list[Measure]) -> Policy:
    """A term of a plan: pieces of several measures more often than not."""
    measure = rng.choice(measures)
    kind = rng.randrange(10)
    if kind < 5:
        return split(number(rng), random_thresholds(rng, measures))
    if kind < 8:
        return gaussian_sum(measure, sigma=rng.choice(THRESHOLDS[measure.name]) * number(rng))
    if kind == 8:
        scale = rng.choice(THRESHOLDS[measure.name])
        return gaussian_transform(measure, log(x / scale + 1), sigma=number(rng), grid="0.001")
    return constant(number(rng))


def random_sum(rng: Random, measures: list[Measure], most: int = 4) -> Policy:
    total = Policy()
    for _ in range(rng.randint(1, most)):
        term = random_term(rng, measures)
        if rng.random() < 0.2:
            term = term.where(rng.choice([among("state", ["06"]), compare("emp", ">=", 20), compare("emp", "<", 50)]))
        total += term
    return total


def random_pair(rng: Random) -> tuple[str, Policy, Policy]:
    """A kind, a budget and a policy. Most pairs are close to the edge: the budget is scaled to what search finds to be needed."""
    measures = rng.sample(FOUR, rng.randint(1, 4))
    policy = random_sum(rng, measures)
    kind = rng.choice(["own", "close", "close", "close", "free", "maximum", "delta"])
    if kind == "own":
        return kind, policy * rng.choice(["0.5", "0.999", "1", "1.001", "2", "3.7"]), policy
    if kind == "delta":
        at = random_thresholds(rng, measures)
        first, second = (selection(number(rng), at, random_deltas(rng)) for _ in range(2))
        return kind, first + random_sum(rng, measures), second
    budget = random_sum(rng, measures) + split(number(rng), random_thresholds(rng, measures))
    if kind == "maximum":
        budget = maximum([budget, random_sum(rng, measures)]) + constant(number(rng))
    if kind == "free":
        return kind, budget, policy
    needed = largest_ratio(policy, budget)
    edge = Fraction(rng.choice(["0.9", "0.99", "0.999", "1.001", "1.01", "1.1"]))
    return kind, budget * (Fraction(needed).limit_denominator(10**6) * edge + Fraction(1, 10**6)), policy


def random_deltas(rng: Random) -> tuple[tuple[int, Fraction], ...]:
    counts = sorted(rng.sample(range(1, 12), rng.randint(1, 4)))
    return tuple(zip(counts, sorted(Fraction(rng.randint(1, 1000), 1001) for _ in counts)))


def points(measure: Measure, size: int, rng: Random | None = None) -> list[float]:
    """Thresholds, one step on either side, small multiples; fewer where there are many measures."""
    step = float(measure.step)
    edges = [multiple * at for at in THRESHOLDS[measure.name] for multiple in (1, 2, 3, 5, 11)]
    near = [edge + more * step for edge in edges for more in (0.0, 1.0, -1.0)]
    every = [0.0, step, *near, 19.0, 20.0, 49.0, 50.0, *map(float, FAR)]
    fixed = [0.0, float(edges[0]), float(edges[5]), edges[5] + step, float(edges[10]), float(FAR[1])]
    chosen = every if rng is None else rng.sample(every, min(size, len(every)))
    return sorted({round(value, 1) for value in [*fixed, *chosen][:size]})


def grid(policies: tuple[Policy, ...], rng: Random | None = None, most: int = 20_000) -> dict[str, Any]:
    """Columns of records: all combinations of points of the measures, for each group."""
    measures = sorted({measure for policy in policies for measure in policy.measures()} | {FOUR[0]})
    size = max(3, int((most / 2) ** (1 / len(measures))))
    sides = [points(measure, size, rng) for measure in measures]
    rows = np.array(list(product(*sides)))
    columns = {measure.name: np.tile(rows[:, place], 2) for place, measure in enumerate(measures)}
    return {**columns, "state": ["06"] * len(rows) + ["36"] * len(rows)}


def largest_ratio(policy: Policy, budget: Policy) -> float:
    records = grid((policy, budget), Random(3), most=4000)
    spent, limit = policy.loss(records), budget.loss(records)
    inside = limit > 0
    return float((spent[inside] / limit[inside]).max(initial=0.0)) or 1.0


def surely_above(policy: Policy, budget: Policy, record: dict[str, Any]) -> bool:
    """Whether the record's rho or delta is above the budget, decided in 400 bits."""
    with working_precision(400):
        return any(
            bool(_ball(of(policy), record) > _ball(of(budget), record))
            for of in (lambda each: each.rho, lambda each: each.delta_terms)
        )


def _ball(terms: Any, record: dict[str, Any]) -> Any:
    groups, amounts = canonical_record(terms, record)
    return terms_ball(terms, groups, {name: ball(value) for name, value in amounts.items()})


def exceeding(policy: Policy, budget: Policy, rng: Random, most: int = 20_000) -> dict[str, Any] | None:
    """A record of the grid that exceeds the budget: columns find suspects, balls judge them."""
    records = grid((policy, budget), rng, most)
    for one, other in ((policy.loss, budget.loss), (policy.delta, budget.delta)):
        spent, limit = one(records), other(records)
        for row in np.flatnonzero(spent >= limit * (1 - 1e-12))[:200].tolist():
            record = {name: column[row] for name, column in records.items()}
            record = {name: float(value) if name != "state" else value for name, value in record.items()}
            if surely_above(policy, budget, record):
                return record
    return None
