"""The default subjects of an audit: every mechanism, every statistic, every kind of keys."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from recordwise.audit.subjects import CELL, FIRM, KIND, SECOND, VALUE, KeysOf, Subject, record, statement, sum_subject
from recordwise.exact.functions import log, x
from recordwise.mechanisms.additive import Additive
from recordwise.mechanisms.clamped import Clamped
from recordwise.mechanisms.gaussian import Gaussian
from recordwise.mechanisms.generalized_gaussian import GeneralizedGaussian
from recordwise.mechanisms.log_transform import LogTransform
from recordwise.mechanisms.polylog import Polylog
from recordwise.mechanisms.quantile import Grid, TreeQuantile
from recordwise.mechanisms.root_transform import RootTransform
from recordwise.mechanisms.transform import Transform
from recordwise.mechanisms.unit_split import UnitSplit
from recordwise.plan.fields import prefix
from recordwise.plan.given_keys import KeyList
from recordwise.plan.keys import Keys
from recordwise.plan.query import Query, query
from recordwise.plan.statistics import SumAndCount
from recordwise.policy.constructors import by

CENT = Fraction(1, 100)
BY_CELL = f"FROM t GROUP BY {CELL}"
ANYBODY = {"any": record(5, 300)}
"""Where a statistic costs every record the same."""


def counted(what: str) -> Subject:
    """A statistic to which every record contributes 1."""
    asked = statement(f"SELECT {CELL}, COUNT({what}) AS answer {BY_CELL}", answer=Gaussian(rho=1))
    return Subject(name="count" if what == "*" else "count of firms", ask=asked, records=ANYBODY)


def clamped() -> Subject:
    """A giant record must lose no more than any other."""
    mechanism = Clamped(to=20, rho=1)
    sizes = {"small": record(2), "large": record(20), "giant": record(10**9)}
    return replace(sum_subject("clamped", mechanism), records=sizes)


def by_group() -> Subject:
    """Cells that mix groups of different thresholds: the largest one sets the noise."""
    mechanism = UnitSplit(at=by(KIND, {"plain": 50, "large": 500}, default=5), rho="0.1")
    sizes = {"small": record(100, kind="plain"), "large": record(1500, kind="large"), "giant": record(10**8)}
    return Subject(
        name="unit split by group",
        ask=statement(f"SELECT {CELL}, SUM({VALUE}) AS answer {BY_CELL}", answer=mechanism),
        records=sizes,
    )


def several(name: str, text: str, **mechanisms: Any) -> Subject:
    """Several statistics of one query, whose losses add up."""
    sizes = {"small": record(3, 100), "large": record(30, 1000), "giant": record(10**8, 10**9)}
    return Subject(name=name, ask=statement(f"SELECT {CELL}, {text} {BY_CELL}", **mechanisms), records=sizes)


def levels() -> Subject:
    """The same sum at two levels of a code, a quarter of the budget for the coarser."""
    return replace(several("two levels", "", answer=None), ask=two_levels)


def two_levels(keys: KeyList) -> Query:
    asked = query().levels(prefix(CELL, [7, 8]), share=["1/4", "3/4"], keys=keys)
    return asked.sum(VALUE, UnitSplit(at=30, rho=1), alias="answer")


PIECES = {VALUE: 50}


def selected(name: str, keys: str, keys_of: KeysOf) -> Subject:
    """Cells that appear because of their records or because of noise."""
    sizes = {"one piece": record(50), "two pieces": record(100), "giant": record(10**6)}
    asked = statement(f"SELECT {CELL}, COUNT(*) AS n {BY_CELL}", n=Gaussian(rho="0.1"))
    return Subject(name=name, ask=asked, records=sizes, keys=keys, keys_of=keys_of)


def alone() -> Subject:
    """Without the record its key does not exist."""
    return selected("found keys, alone", "selected", lambda _: Keys.select(rho="0.1", delta="0.2", pieces=PIECES))


def beside_others() -> Subject:
    """With or without the record, the key nearly always appears."""
    found = selected("", "selected", lambda _: Keys.select(rho="0.4", delta="0.001", pieces=PIECES))
    return found.with_others("found keys, beside others", record(1000))


def domain_keys(cells: Sequence[str]) -> KeyList:
    return Keys.select_from({CELL: list(cells)}, rho="0.4", threshold=0, pieces=PIECES)


THIRD, SPLIT, SECOND_SPLIT = Gaussian(rho="0.33"), UnitSplit(at=30, rho="0.33"), UnitSplit(at=1000, rho="0.33")
HALVES = SumAndCount(sum=UnitSplit(at=30, rho="0.5"), count=Gaussian(rho="0.5"))
GRID = Grid.linear(0, 60, bits=2)
EVERYTHING = f"COUNT(*) AS n, SUM({VALUE}) AS total, AVG({VALUE}) AS mean, MEDIAN({VALUE}) AS middle"

CATALOGUE: dict[str, Callable[[], Subject]] = {
    "count": lambda: counted("*"),
    "count of firms": lambda: counted(f"DISTINCT {FIRM}"),
    "gaussian": lambda: sum_subject("gaussian", Gaussian(sigma=20)),
    "gaussian on few steps": lambda: sum_subject("gaussian on few steps", Gaussian(sigma="0.8")),
    "gaussian in cents": lambda: sum_subject("gaussian in cents", Gaussian(sigma="0.37"), step=CENT),
    "clamped": clamped,
    "unit split": lambda: sum_subject("unit split", UnitSplit(at=50, rho="0.1")),
    "unit split of two measures": lambda: sum_subject(
        "unit split of two measures", UnitSplit(at={VALUE: 50, SECOND: 2000}, rho="0.1")
    ),
    "unit split by group": by_group,
    "generalized gaussian": lambda: sum_subject("generalized gaussian", GeneralizedGaussian(shape=0.5, scale=2)),
    "laplace": lambda: sum_subject("laplace", GeneralizedGaussian(shape=1, scale=30)),
    "polylog": lambda: sum_subject("polylog", Polylog(power=2, rate=1, offset=math.e, scale=20)),
    "pareto": lambda: sum_subject("pareto", Polylog(power=1, rate=6, offset=1, scale=80)),
    "additive": lambda: sum_subject("additive", Additive((x / 50) ** 0.5 + log(x / 100 + 1))),
    "square root": lambda: sum_subject("square root", RootTransform(degree=2, offset=10, sigma=2)),
    "fourth root, laplace": lambda: sum_subject(
        "fourth root, laplace", RootTransform(degree=4, offset=10, laplace_scale="0.2")
    ),
    "logarithm": lambda: sum_subject("logarithm", LogTransform(offset=100, sigma="0.3")),
    "logarithm, laplace": lambda: sum_subject("logarithm, laplace", LogTransform(offset=100, laplace_scale="0.3")),
    "transform of one's own": lambda: sum_subject(
        "transform of one's own", Transform(2 * x**0.5, (x / 2) ** 2, offset=40, sigma=4)
    ),
    "count and two sums": lambda: several(
        "count and two sums",
        f"COUNT(*) AS n, SUM({VALUE}) AS total, SUM({SECOND}) AS other",
        n=THIRD,
        total=SPLIT,
        other=SECOND_SPLIT,
    ),
    "average": lambda: several("average", f"AVG({VALUE}) AS answer", answer=HALVES),
    "median": lambda: several("median", f"MEDIAN({VALUE}) AS answer", answer=TreeQuantile(grid=GRID, rho=1)),
    "count, sum, average and median": lambda: several(
        "count, sum, average and median",
        EVERYTHING,
        n=THIRD,
        total=SPLIT,
        mean=SumAndCount(sum=SPLIT, count=THIRD),
        middle=TreeQuantile(grid=GRID, rho="0.33"),
    ),
    "two levels": levels,
    "found keys, alone": alone,
    "found keys, beside others": beside_others,
    "keys of a domain": lambda: selected("keys of a domain", "domain", domain_keys),
}
"""Subjects by name, built when needed because the certified policy of fat-tailed noise takes seconds."""
