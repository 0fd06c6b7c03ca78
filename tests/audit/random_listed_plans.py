"""Random plans about the levels of a public code list, some with sized noise; worlds and outcomes are those of ``random_plans``.

The list misses some codes, its levels need not nest, and its coarser values look like codes, numbers or truth values.
"""

from dataclasses import replace
from random import Random
from typing import Any

import recordwise as rw
from audit import random_plans
from audit.random_plans import Asked, World, condition, made_by
from recordwise.plan import Field, Group, Keys, Prefix
from recordwise.plan.expressions import And, Compare, In, IsNull, Not, Or
from recordwise.plan.query import query
from recordwise.policy import ConditionColumn as Named

COARSE = ["21", "é", "1", "true", "0"]
REGIONS = ["N", "S"]
LEVELS = ("region", "coarse", "text0")
SIZES = [0, 1, 99, 100, 199, 200, 399, 1600, -5, None]
SHARES = {1: ["1"], 2: ["0.2", "0.8"], 3: ["0.1", "0.3", "0.6"]}


def world(chance: Random) -> World:
    """One whose first text column has a public list of codes."""
    while True:
        found = random_plans.world(chance)
        if found.schema.column("text0"):
            return replace(found, hierarchies=(listed(chance),))


def listed(chance: Random) -> rw.Hierarchy:
    codes = [code for code in random_plans.CODES if code and chance.random() < 0.9]
    columns = {"text0": codes, "coarse": [chance.choice(COARSE) for _ in codes]}
    columns["region"] = [chance.choice(REGIONS) for _ in codes]
    return rw.Hierarchy.of("codes", columns, levels=LEVELS, source="public: a list of codes")


def asked(chance: Random, drawn: World) -> Asked:
    """One plan."""
    codes = drawn.hierarchies[0]
    read = query()
    if chance.random() < 0.5:
        read = read.where(_condition(chance, drawn))
    sized = chance.random() < 0.5
    read = _grouped(chance, drawn, codes, read, sized)
    if chance.random() < 0.5:
        read = read.count(_sized(chance) if sized else rw.Gaussian(rho="0.1"))
    measure = chance.choice(["emp", "pay", "net"])
    mechanism = _sized(chance, measure) if sized and chance.random() < 0.9 else _split(chance)
    return Asked(query=read.sum(measure, mechanism))


def _condition(chance: Random, drawn: World) -> Any:
    name, values = chance.choice([("coarse", COARSE), ("region", REGIONS)])
    kind = chance.random()
    if kind < 0.2:
        own: Any = IsNull(Field(name))
    elif kind < 0.4:
        own = In(Field(name), tuple(chance.sample(values, 2)))
    elif kind < 0.5:
        own = Compare(Prefix(name, 1), "=", chance.choice(values)[:1])
    else:
        literal = chance.choice([1, True]) if chance.random() < random_plans.HOW_STRANGE else chance.choice(values)
        own = Compare(Field(name), chance.choice(["=", "<>", "<", ">="]), literal)
    own = Not(own) if chance.random() < 0.2 else own
    if chance.random() < 0.5:
        return own
    return (And if chance.random() < 0.5 else Or)((own, condition(chance, drawn.schema)))


def _grouped(chance: Random, drawn: World, codes: Any, read: Any, sized: bool) -> Any:
    """By one level, or a table for each of several; crossed with another column or not. Or no table at all."""
    if not sized and chance.random() < 0.2:
        return read
    others = [column for column in random_plans.coded(drawn.schema) if column.name != "text0"][:1]
    others = others if chance.random() < 0.4 else []
    levels: list[Any] = [name for name in LEVELS if chance.random() < 0.6] or ["coarse"]
    if sized and chance.random() < 0.6:
        levels = chance.choice([["text0"], [Prefix("text0", 1), "text0"]])
    finest = codes.keys(levels[-1])
    beside = {
        each.name: random_plans._listed(chance, Group(each.name, Field(each.name)), drawn.schema) for each in others
    }
    keys = Keys.crossed(finest, Keys.product(**beside)) if beside else finest
    if sized:
        cells = {name: keys.table.column(name).to_pylist() for name in keys.table.column_names}
        sizes = [chance.choice(SIZES) for _ in range(keys.table.num_rows)]
        keys = Keys.of(cells | {"size": sizes}, size="size", sized_on="public: last year")
    read = read.group_by(*(Group(each.name, Field(each.name)) for each in others))
    if len(levels) == 1 and chance.random() < 0.5:
        return read.group_by(Group(levels[0], Field(levels[0]))).at(keys)
    return read.levels(*levels, share=chance.choice([None, SHARES[len(levels)]])).at(keys)


def _sized(chance: Random, measure: str = "count") -> Any:
    kinds = {
        "gaussian": rw.Gaussian(sigma="0.05"),
        "split": rw.UnitSplit(at="0.1", rho="0.1"),
        "fat": rw.GeneralizedGaussian(shape="0.5", scale="0.02"),
        "root": rw.RootTransform(degree=2, offset="0.2", sigma="0.5", signed=measure == "net"),
    }
    names = ["gaussian", "fat"] if measure == "count" else list(kinds)
    name = chance.choice(names)
    low = kinds["fat"] if name != "root" and chance.random() < 0.3 else None
    return rw.Sized(kinds[name], floor=chance.choice([100, 300]), low=low)


def _split(chance: Random) -> Any:
    """Thresholds for all, by a level or by a prefix of one."""
    if chance.random() < 0.2:
        return rw.UnitSplit(at=chance.choice([1, 20, 1000]), rho="0.1")
    name, values = chance.choice([("coarse", COARSE), ("region", REGIONS), ("text0", random_plans.CODES)])
    length = 1 if chance.random() < 0.3 else None
    strange = [1, True, 0] if chance.random() < random_plans.HOW_STRANGE else []
    values = [*(value[:length] for value in chance.sample(values, 2)), *strange]
    pairs = [(value, chance.choice([1, 5, 20, 300])) for value in values]
    return rw.UnitSplit(at=made_by(Named(name, length), pairs, chance.choice([1, 5, 1000])), rho="0.1")
