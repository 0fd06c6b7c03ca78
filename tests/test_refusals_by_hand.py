"""Refusals of single parts: each condition alone, next to what is just accepted."""

import os
import pickle
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import recordwise as rw
from recordwise.engines.compile.owner import increasing
from recordwise.errors import LedgerError, RecordwiseError
from recordwise.exact.functions import Log, Power, log, x
from recordwise.ledger.chain import Chain, as_event
from recordwise.mechanisms.external import read_external
from recordwise.mechanisms.quantile import Grid
from recordwise.noise import DiscreteGaussian, Seeded
from recordwise.plan.keys.cells import cast_keys
from recordwise.plan.keys.hierarchies import Hierarchy
from recordwise.plan.keys.keys import Keys, as_domain
from recordwise.plan.plan import Sensitive
from recordwise.plan.query import read_queries
from recordwise.plan.schema import DateFormat, Measure, NumberFormat
from recordwise.plan.sources import Postgres, SparkMaster
from recordwise.policy import Measure as PolicyMeasure
from recordwise.policy import Policy, among, by, constant, maximum
from recordwise.policy.atoms import Additive, check_concave, check_knots, check_steps, check_thresholds
from recordwise.policy.constructors import sorted_items
from recordwise.policy.policy import EPSILON

F = Fraction
EMP = PolicyMeasure("emp")


def grid(low: Any = 1, high: Any = 9, **changed: Any) -> Any:
    return Grid(**({"spacing": "linear", "low": F(low), "high": F(high), "bits": 4} | changed))


def hierarchy(codes: list[Any], **more: Any) -> Any:
    table = pa.table({"state": ["a"] * len(codes), "county": pa.array(codes, **more)})
    return Hierarchy.of("place", table, levels=["state", "county"], source="public: a list")


Case = tuple[Callable[[], Any], Callable[[], Any], str]
CASES: dict[str, Case] = {
    "spacing of a grid": (grid, lambda: grid(spacing="even"), "linear or log"),
    "bits that are a truth value": (grid, lambda: grid(bits=True), "whole number"),
    "bits that are a text": (grid, lambda: grid(bits="4"), "whole number"),
    "a grid without a width": (lambda: grid(1, 2), lambda: grid(2, 2), "above low"),
    "a grid from above": (lambda: grid(1, 2), lambda: grid(2, 1), "above low"),
    "a grid too narrow": (
        lambda: grid(10**6 - 1, 10**6),
        lambda: grid(10**30, 10**30 + 1),
        "too close to low",
    ),
    "a threshold of draws": (
        lambda: DiscreteGaussian(F(2)).sample_above(3, 2, Seeded(1)),
        lambda: DiscreteGaussian(F(2)).sample_above(2**62 + 1, 2, Seeded(1)),
        "within 2\\^62",
    ),
    "a threshold far below": (
        lambda: DiscreteGaussian(F(2)).sample_above(-(2**62), 2, Seeded(1)),
        lambda: DiscreteGaussian(F(2)).sample_above(-(2**62) - 1, 2, Seeded(1)),
        "within 2\\^62",
    ),
    "what is no mechanism": (
        lambda: read_external(len, name="own", rho=1, epsilon=None, column=None),
        lambda: read_external(5, name="own", rho=1, epsilon=None, column=None),
        "neither callable",
    ),
    "a callable without a loss": (
        lambda: read_external(len, name="own", rho=None, epsilon=1, column=None),
        lambda: read_external(len, name="own", rho=None, epsilon=None, column=None),
        "declared for a callable",
    ),
    "queries in lists": (
        lambda: read_queries([rw.query(), [rw.query()], (rw.query(),)]),
        lambda: read_queries([rw.query(), [rw.query(), "q"]]),
        "must be queries, not str",
    ),
    "a date without a day": (lambda: DateFormat("%d.%m.%Y"), lambda: DateFormat("%m.%Y"), "once each"),
    "a date with two months": (lambda: DateFormat("%d %b %Y"), lambda: DateFormat("%d %b %m %Y"), "once each"),
    "a derived measure with a step": (
        lambda: Measure.of("m", derive="a + b"),
        lambda: Measure.of("m", derive="a + b", step=2),
        "is derived",
    ),
    "a derived measure with a bound": (
        lambda: Measure.of("m", derive="a + b"),
        lambda: Measure.of("m", derive="a + b", bound=2),
        "is derived",
    ),
    "a derived measure with a sign": (
        lambda: Measure.of("m", derive="a + b"),
        lambda: Measure.of("m", derive="a + b", signed=True),
        "is derived",
    ),
    "a derived measure with a rule for gaps": (
        lambda: Measure.of("m", derive="a + b"),
        lambda: Measure.of("m", derive="a + b", null="zero"),
        "is derived",
    ),
    "a derived measure with a format": (
        lambda: Measure.of("m", derive="a + b"),
        lambda: Measure.of("m", derive="a + b", number=NumberFormat()),
        "is derived",
    ),
    "a rule for gaps of a measure": (lambda: Measure.of("m", null="zero"), lambda: Measure.of("m", null="no"), "zero"),
    "a sign that is a number": (
        lambda: Measure.of("m", signed=True),
        lambda: Measure.of("m", signed=1),
        "true or false",
    ),
    "a server": (
        lambda: Postgres("postgres://host/db", table="t"),
        lambda: Postgres("http://host/db", table="t"),
        "postgresql://",
    ),
    "a server that is no text": (
        lambda: Postgres("postgresql://host/db", table="t"),
        lambda: Postgres(5, table="t"),  # type: ignore[arg-type]
        "postgresql://|uri",
    ),
    "Spark without ANSI": (
        lambda: SparkMaster(url="local[2]", options={"spark.sql.ansi.enabled": "true", "a": "false"}),
        lambda: SparkMaster(url="local[2]", options={"spark.sql.ansi.enabled": "false"}),
        "cannot be off",
    ),
    "a domain": (lambda: as_domain({"a": ["x"]}), lambda: as_domain(["x"]), "is a list"),
    "a domain of selected keys": (
        lambda: as_domain(Keys.of({"a": ["x"]})),
        lambda: as_domain(Keys.select_from({"a": ["x"]}, rho=1, threshold=5)),
        "is a Keys",
    ),
    "a NUL in a code": (lambda: hierarchy(["a1", "a2"]), lambda: hierarchy(["a1", "a\x002"]), "NUL character"),
    "an empty code": (lambda: hierarchy(["a1", "a2"]), lambda: hierarchy(["a1", ""]), "in 1 of its rows"),
    "a missing code": (lambda: hierarchy([1, 2]), lambda: hierarchy([1, None, None]), "in 2 of its rows"),
    "codes that are numbers": (lambda: hierarchy([1, 2]), lambda: hierarchy([1.5, 2.5]), "text or whole numbers"),
    "NULL among keys": (
        lambda: cast_keys("a", pa.array(["x", None]), "text", True),
        lambda: cast_keys("a", pa.array(["x", None]), "text", False),
        "contains NULL",
    ),
    "edges of bins": (lambda: increasing([1, 2, 3.5]), lambda: increasing([1, 2, 2]), "increasing"),
    "no edges of bins": (lambda: increasing([1]), lambda: increasing([]), "increasing"),
    "edges of bins that fall": (lambda: increasing([1, 2]), lambda: increasing([2, 1]), "increasing"),
    "two thresholds of a measure": (
        lambda: check_thresholds(((EMP, F(2)), (PolicyMeasure("pay"), F(3)))),
        lambda: check_thresholds(((EMP, F(2)), (EMP, F(3)))),
        "names a measure twice",
    ),
    "steps that are no list": (
        lambda: check_steps([(1, 1)], parameter="s"),
        lambda: check_steps({1: 1}, parameter="s"),  # type: ignore[arg-type]
        "nonempty list",
    ),
    "no steps": (
        lambda: check_steps(((1, 1),), parameter="s"),
        lambda: check_steps([], parameter="s"),
        "nonempty list",
    ),
    "a count of steps that is a truth value": (
        lambda: check_steps([(1, 1)], parameter="s"),
        lambda: check_steps([(True, 1)], parameter="s"),
        "pairs of an integer",
    ),
    "a step of three": (
        lambda: check_steps([(1, 0.5)], parameter="s"),
        lambda: check_steps([(1, 1, 1)], parameter="s"),  # type: ignore[list-item]
        "pairs of an integer",
    ),
    "a value of steps": (
        lambda: check_steps([(1, F(2) ** 200)], parameter="s"),
        lambda: check_steps([(1, F(2) ** 200 + 1)], parameter="s"),
        "above 2\\^200",
    ),
    "knots that are no list": (
        lambda: check_knots([(1, F(1))]),
        lambda: check_knots({1: F(1)}),  # type: ignore[arg-type]
        "nonempty list",
    ),
    "no knots": (lambda: check_knots(((1, F(1)),)), lambda: check_knots(()), "nonempty list"),
    "a knot with a truth value": (lambda: check_knots([(1, F(1))]), lambda: check_knots([(True, F(1))]), "pairs of an"),
    "a knot with a float": (
        lambda: check_knots([(1, F(1))]),
        lambda: check_knots([(1, 1.0)]),  # type: ignore[list-item]
        "pairs of an",
    ),
    "a knot of three": (
        lambda: check_knots([(1, F(1))]),
        lambda: check_knots([(1, F(1), F(1))]),  # type: ignore[list-item]
        "pairs of an",
    ),
    "a bound of fat-tailed noise": (
        lambda: Additive(EMP, log(1 + x), "tanh"),
        lambda: Additive(EMP, log(1 + x), "sinh"),
        "'pure' or 'tanh'",
    ),
    "a function that is none": (
        lambda: check_concave(log(1 + x)),
        lambda: check_concave(len),  # type: ignore[arg-type]
        "built from x",
    ),
    "a power above 1": (lambda: (x**1).concave(), lambda: (x**2).concave(), "not certified concave"),
    "a power of what is below 0": (
        lambda: Power(log(1 + x), F(1, 2)),
        lambda: Power(log(F(1, 2) + x), F(1, 2)),
        "negative at x = 0",
    ),
    "a logarithm of 0": (lambda: Log(x + F(1, 10**6)), lambda: Log(x), "above 0 inside a logarithm"),
    "a sign of a measure": (
        lambda: PolicyMeasure("m", signed=True),
        lambda: PolicyMeasure("m", signed=1),  # type: ignore[arg-type]
        "True or False",
    ),
    "a derived sign": (
        lambda: PolicyMeasure("m", signed=True, derived=((EMP, F(-1)),)),
        lambda: PolicyMeasure("m", derived=((EMP, F(-1)),)),
        "wrong sign",
    ),
    "a derived sign of a positive form": (
        lambda: PolicyMeasure("m", derived=((EMP, F(1)),)),
        lambda: PolicyMeasure("m", signed=True, derived=((EMP, F(1)),)),
        "wrong sign",
    ),
    "thresholds by group": (lambda: by("naics", {"11": 5, "22": 6}), lambda: by("naics", {}), "at least one group"),
    "thresholds that are no mapping": (
        lambda: sorted_items({"emp": 5}),
        lambda: sorted_items([("emp", 5)]),
        "must map",
    ),  # type: ignore[arg-type]
    "a unit of a policy": (
        lambda: Policy(constant(1).rho, {}, False, EPSILON),
        lambda: Policy(constant(1).rho, {}, False, "nats"),
        "'rho' or 'epsilon'",
    ),
    "a maximum of nothing": (lambda: maximum([constant(1)]), lambda: maximum([]), "must not be empty"),
    "a condition that is none": (
        lambda: constant(1).where(among("a", ["x"])),
        lambda: constant(1).where("a = x"),  # type: ignore[arg-type]
        "Condition",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_refused_is_refused_alone(name: str) -> None:
    accepted, refused, told = CASES[name]
    accepted()
    with pytest.raises((RecordwiseError, TypeError), match=told):
        refused()


def test_a_sensitive_value_is_neither_compared_nor_pickled_nor_shown() -> None:
    held = Sensitive(12345)
    assert "12345" not in repr(held)
    for attempt in (lambda: pickle.dumps(held), lambda: held == Sensitive(12345), lambda: held != 5):
        with pytest.raises(TypeError, match="sensitive"):
            attempt()
    assert held.reveal() == 12345


def test_a_ledger_is_no_other_program_s_file_and_of_one_process(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE songs (name TEXT)")
    connection.close()
    with pytest.raises(LedgerError, match="another program"):
        Chain(other, writable=True).lay_out()
    own = Chain(tmp_path / "own.ledger", writable=True)
    own.lay_out()
    assert "events" in own.tables()
    own._process = os.getpid() + 1
    with pytest.raises(LedgerError, match="another process"):
        own.tables()
    own._process = os.getpid()
    own.close()


@pytest.mark.parametrize(
    "row",
    [
        (1, "t", "k", "[]", "d"),
        (1, "t", "k", "5", "d"),
        (1, "t", None, "{}", "d"),
        (1, 5, "k", "{}", "d"),
        (1, "t", "k", b"{}", "d"),
        (1, "t", "k", "{}", None),
    ],
    ids=str,
)
def test_a_row_that_is_no_event_is_refused(row: tuple[Any, ...]) -> None:
    assert as_event((7, "t", "k", '{"a": 1}', "d")).body == {"a": 1}
    with pytest.raises(ValueError, match="not an event"):
        as_event(row)
