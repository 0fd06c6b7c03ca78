"""Seeded random policies and records for property tests: every node of the language, values that sit on and next to every edge."""

from fractions import Fraction
from math import ceil
from random import Random
from typing import Any

from recordwise.exact.functions import Function, log, x
from recordwise.exact.numbers import ball
from recordwise.policy import (
    Condition,
    ConditionColumn,
    Measure,
    Null,
    Policy,
    additive,
    among,
    by,
    clamped_sum,
    compare,
    complement,
    constant,
    gaussian_sum,
    gaussian_transform,
    laplace_sum,
    laplace_transform,
    maximum,
    pieces,
    pure_split,
    selection,
    split,
)
from recordwise.policy.constructors import additive_table, certified_sum
from recordwise.policy.evaluate.evaluator import BALLS

EMP = Measure("emp")
PAY = Measure("pay", Fraction(1, 100))
NET = Measure("net", Fraction(1), True)
MEASURES = (EMP, PAY, NET)
REST = Measure.linear("rest", {PAY: Fraction(1), EMP: Fraction(-45)})
MIX = Measure.linear("mix", {EMP: Fraction(1, 3), NET: Fraction(2), PAY: Fraction(5, 4)})
BOTH = Measure.linear("both", {EMP: Fraction(7, 2), PAY: Fraction(1, 2)})
DERIVED = (*MEASURES, REST, MIX, BOTH)
STATES = ["06", "36", "48", 'it\'s \\ "06"', ""]
NAICS = ["11", "111", "1121", "31", "31-33", "5", "😀1"]


def positive(rng: Random) -> Fraction:
    return Fraction(rng.choice([1, 2, 3, 5, 7, 10, 12]), rng.choice([1, 1, 2, 4, 10, 100]))


def random_function(rng: Random, depth: int = 2) -> Function:
    """A function the library certifies as concave."""
    kind = rng.randrange(7 if depth else 3)
    if kind == 0:
        return x * positive(rng)
    if kind == 1:
        return (
            x * positive(rng) + rng.choice([Fraction(0), Fraction(0), positive(rng), Fraction(1000)])
        ) ** rng.choice(["1/2", "1/4", "1/8", "1/3", "0.3", "0.9"])
    if kind == 2:
        return log(x / positive(rng) + positive(rng)) * positive(rng)
    if kind == 3:
        return log(x * positive(rng) + rng.choice([3, 20, 100])) ** rng.choice([1, 2]) * positive(rng)
    if kind == 4:
        return random_function(rng, depth - 1) + random_function(rng, depth - 1)
    inner = random_function(rng, depth - 1)
    start = positive(rng) + max(0, ceil(-float(inner.at_zero())))
    return log(inner + start + 1) if kind == 5 else (inner + start) ** rng.choice(["1/2", "2/3"])


def random_condition(rng: Random, depth: int = 2) -> Condition:
    kind = rng.randrange(9 if depth else 6)
    if kind == 0:
        return among("state", rng.sample(STATES, rng.randint(1, 3)), inside=rng.random() < 0.7)
    if kind == 1:
        length = rng.randint(1, 3)
        return among(
            ConditionColumn("naics", length),
            [text[:length] for text in rng.sample(NAICS, 2)],
            inside=rng.random() < 0.7,
        )
    if kind == 2:
        return among("flag", [rng.random() < 0.5])
    if kind == 3:
        return compare(
            "size", rng.choice(["<", "<=", ">", ">="]), rng.choice([0, 3, Fraction(1, 10), Fraction(1, 3), -2])
        )
    if kind == 4:
        return Null(ConditionColumn(rng.choice(["state", "naics", "flag", "size"])), rng.random() < 0.5)
    if kind == 5:
        return compare("emp", rng.choice(["<", "<=", ">", ">="]), rng.choice([0, 1, 50, 51, Fraction(5, 2)]))
    if kind == 6:
        return complement(random_condition(rng, depth - 1))
    left, right = random_condition(rng, depth - 1), random_condition(rng, depth - 1)
    return left & right if kind == 7 else left | right


def random_thresholds(rng: Random, measures: tuple[Measure, ...] = MEASURES) -> dict[Measure, Fraction]:
    chosen = rng.sample(measures, rng.randint(1, 3))
    return {measure: measure.step * rng.choice([1, 2, 3, 7, 50, 70, 1000]) for measure in chosen}


def random_table(rng: Random) -> tuple[tuple[int, Fraction], ...]:
    counts = sorted(rng.sample(range(1, 60), rng.randint(1, 5)))
    levels = sorted(Fraction(rng.randint(1, 1000), 1001) for _ in counts)
    return tuple(zip(counts, levels))


def random_part(rng: Random, measures: tuple[Measure, ...] = MEASURES) -> Policy:
    """One atom, with or without a condition."""
    measure = rng.choice(measures)
    grid = Fraction(1, 2 ** rng.randint(0, 20))
    kind = rng.randrange(13)
    if kind == 0:
        return constant(positive(rng))
    if kind in (1, 2):
        at: dict[Measure, Any] = random_thresholds(rng, measures)
        if kind == 2:
            first = next(iter(at))
            at[first] = by("state", {"06": first.step * 3, "36": at[first]}, default=first.step * rng.choice([1, 11]))
        return rng.choice([split, split, pieces])(positive(rng), at)
    if kind == 3:
        return gaussian_sum(measure, sigma=positive(rng))
    if kind == 4:
        return additive(measure, random_function(rng), bound=rng.choice(["pure", "tanh"]))
    if kind == 5:
        return additive_table(measure, random_function(rng), random_table(rng))
    if kind == 6:
        return gaussian_transform(measure, random_function(rng), sigma=positive(rng), grid=grid)
    if kind == 7:
        return laplace_transform(measure, random_function(rng), scale=positive(rng), grid=grid)
    if kind == 8:
        return selection(positive(rng), random_thresholds(rng, measures), random_table(rng))
    if kind == 9:
        return clamped_sum(measure, to=measure.step * rng.choice([1, 3, 50, 10**6]), sigma=positive(rng))
    if kind == 10:
        return laplace_sum(measure, scale=positive(rng), grid=measure.step / 2 ** rng.randint(0, 10))
    if kind == 11:
        return pure_split(random_thresholds(rng, measures), epsilon=positive(rng), rho=rng.choice([None, "0.001", 1]))
    function, knots = random_function(rng), random_table(rng)
    rise = float(function.increase(BALLS, ball(measure.step * knots[-1][0])).lower())
    less = Fraction(int(rise * rng.choice([0, 0.1, 0.49]) * 2**20), 2**20)
    return certified_sum(measure, function, knots, less=less)


def random_policy(rng: Random, parts: int = 4, depth: int = 1, measures: tuple[Measure, ...] = MEASURES) -> Policy:
    total = Policy()
    for _ in range(rng.randint(1, parts)):
        part = random_part(rng, measures) * rng.choice([1, 1, 2, 3])
        if depth and rng.random() < 0.15:
            inner = [random_policy(rng, 2, depth - 1, measures) for _ in range(2)]
            part = maximum(Policy(policy.rho, {}, False) for policy in inner)
        total += part.where(random_condition(rng)) if rng.random() < 0.4 else part
    return total


def random_steps(rng: Random) -> int:
    """Lattice steps on and next to small multiples of the thresholds above, and at every magnitude."""
    near = rng.choice([0, 1, 2, 3, 7, 50, 70, 100, 140, 1000, 2000]) * rng.choice([1, 1, 2, 3])
    far = rng.randrange(2 ** rng.randint(1, 45))
    return max(0, rng.choice([near, near + rng.choice([-1, 1]), far]))


def random_record(rng: Random) -> dict[str, Any]:
    return {
        "emp": random_steps(rng),
        "pay": random_steps(rng) / 100,
        "net": random_steps(rng) * rng.choice([-1, 1]),
        "state": rng.choice([*STATES, "99", None]),
        "naics": rng.choice([*NAICS, "1", "311111", "😀", None]),
        "flag": rng.choice([True, False, None]),
        "size": rng.choice([0, -2, 3, 2.5, 0.1, 1 / 3, 1e9, -1e-9, None]),
    }


def columns_of(records: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [record[name] for record in records] for name in records[0]}
