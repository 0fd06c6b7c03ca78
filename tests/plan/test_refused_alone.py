"""Each refusal of a plan by itself: what is wrong alone is refused by its words, and its nearest neighbor is accepted."""

from collections.abc import Callable
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from build import industries, places
from recordwise.errors import RecordwiseError
from recordwise.mechanisms.quantile import Grid
from recordwise.plan import Case, Domain, Group, Keys, Plan
from recordwise.plan.expressions import Compare, DatePart, Field, In, Not, Prefix, check_axes
from recordwise.plan.keys.cells import LARGEST_DOMAIN, MOST_DIGESTED, Product, Rows
from recordwise.plan.keys.keys import MOST_EMPTY_CELLS, FromRelease, Selection, Sizes, as_domain, read_keys
from recordwise.plan.plan import Sensitive, cross_keys
from recordwise.plan.publication import Publication, StatusRules
from recordwise.plan.schema import Column, Measure, NumberFormat, Schema, check_tuned_on, check_tuning
from recordwise.plan.sql.grammar import parse_linear, parse_predicate
from recordwise.plan.sql.parse import parse_sql
from recordwise.plan.statistics.ratio import Combination, Ratio, SumAndCount
from recordwise.plan.statistics.totals import Splitting
from recordwise.policy.columns import ConditionColumn
from recordwise.policy.constructors import by

NOISE = rw.Gaussian(sigma=5)
GRID = Grid.log(1, 100, bits=3)
TREE = rw.TreeQuantile(grid=GRID, rho=1)
SCHEMA = Schema.of(
    unit="id",
    firm="firm",
    measures={
        "emp": 1,
        "pay": "0.5",
        "net": Measure.of("net", signed=True),
        "rest": Measure.of("rest", derive="pay - 45 * emp"),
    },
    columns={"county": "text", "naics": "text", "size": "integer", "open": "boolean", "since": "date"},
    hierarchies=[places(), industries()],
)
LISTED = {"county": ["01001", "02013"]}
BY = rw.query().group_by("county", keys=LISTED)
LEVELS = rw.query().levels("county", "state", keys=[LISTED, {"state": ["01", "02"]}])
CODES = rw.query().levels(rw.prefix("naics", [1, 2]), keys=[{"naics1": ["3"]}, {"naics2": ["31"]}])


def planned(*queries: Any) -> Plan:
    return Plan(schema=SCHEMA, queries=queries)


def counted(query: Any) -> Plan:
    return planned(query.count(NOISE))


def where(text: str) -> Plan:
    return counted(rw.query().where(text))


def selected(**pieces: Any) -> Plan:
    keys = Keys.select(rho=1, delta="1e-6", pieces=pieces)
    return counted(rw.query().group_by("county", keys=keys))


def listed(rows: int, threshold: int) -> Plan:
    domain = Domain(columns=("size",), size=rows, keys=lambda at: {"size": at}, positions=lambda held: held["size"])
    return counted(rw.query().group_by("size", keys=Keys.select_from(domain, rho=1, threshold=threshold)))


def located(positions: Callable[[Any], Any]) -> Any:
    domain = Domain(columns=("size",), size=5, keys=lambda at: {"size": at}, positions=positions)
    bound = domain.bound((Group("size", Field("size")),), SCHEMA)
    return bound.locate(pa.table({"size": pa.chunked_array([pa.array([1, 2, 9])])}))


def sql(text: str, **mechanisms: Any) -> Any:
    """By default with noise for what is called n, and for the measure emp."""
    usual = {name: NOISE for name in ("n", "emp") if f"AS {name} " in f"{text} " or f"({name})" in text}
    return parse_sql(text, mechanisms=mechanisms or usual)


def rules(**changed: Any) -> StatusRules:
    return StatusRules(**({"limits": (("good", 0.1), ("fair", 0.3)), "otherwise": "bad"} | changed))


def with_default(default: Any) -> Plan:
    at = by("naics", {"311": 5}, default)
    return planned(
        rw.query().group_by("naics", keys=Keys.select(rho=1, delta="1e-6")).sum("emp", rw.UnitSplit(at=at, rho=1))
    )


Refusal = tuple[Callable[[], Any], str, Callable[[], Any]]
REFUSALS: dict[str, Refusal] = {
    "case without a branch": (
        lambda: Case((), "x"),
        "at least one branch",
        lambda: Case(((Compare(Field("emp"), ">", 1), "y"),), "x"),
    ),
    "case without a name": (
        lambda: rw.query().group_by(Case(((Compare(Field("emp"), ">", 1), "y"),), "x")),  # type: ignore[arg-type]
        "needs a name for a CASE",
        lambda: rw.query().group_by(Group("c", Case(((Compare(Field("emp"), ">", 1), "y"),), "x"))),
    ),
    "no level": (lambda: rw.query().levels(), "at least one level", lambda: rw.query().levels(())),
    "group of another type": (
        lambda: rw.query().group_by(Not(Compare(Field("emp"), ">", 1))),  # type: ignore[arg-type]
        "must be columns, prefixes or parts of dates, not Not",
        lambda: rw.query().group_by(Field("county")),
    ),
    "operator": (lambda: Compare(Field("emp"), "==", 1), "must be one of", lambda: Compare(Field("emp"), "=", 1)),
    "values of IN": (lambda: In(Field("emp"), ()), "at least one value", lambda: In(Field("emp"), (1,))),
    "shares that do not add up": (
        lambda: rw.query().levels("county", "state", share=["1/2", "1/3"]),
        "add up to 1",
        lambda: rw.query().levels("county", "state", share=["2/3", "1/3"]),
    ),
    "too many shares": (
        lambda: rw.query().levels("county", "state", share=["1/2", "1/4", "1/4"]),
        "add up to 1",
        lambda: rw.query().levels("county", "state", share=["1/2", "1/2"]),
    ),
    "share in other words": (
        lambda: rw.query().levels("county", share="worst"),
        'numbers that add up to 1, or "best"',
        lambda: rw.query().levels("county", share="best"),
    ),
    "best for some levels": (
        lambda: rw.query().levels("county", share="best").levels("naics"),
        'is "best" for some levels of a query only',
        lambda: rw.query().levels("county", share="best").levels("naics", share="best"),
    ),
    "levels after shares of tables": (
        lambda: rw.query().levels("county", "state").with_shares("1/4", "3/4").levels("naics"),
        "before the shares of tables",
        lambda: rw.query().levels("county", "state").levels("naics").with_shares("1/4", "3/4"),
    ),
    "shares of other tables": (
        lambda: rw.query().levels("county", "state").with_shares("1/2", "1/4", "1/4"),
        "must be 2 numbers that add up to 1",
        lambda: rw.query().levels("county", "state").with_shares("1/2", "1/2"),
    ),
    "shares of tables below 1": (
        lambda: rw.query().levels("county", "state").with_shares("1/2", "1/4"),
        "must be 2 numbers that add up to 1",
        lambda: rw.query().levels("county", "state").with_shares("1/4", "3/4"),
    ),
    "goal without best": (
        lambda: rw.query().levels("county").with_share_goal({10: "0.1"}),
        'for levels with share = "best"',
        lambda: rw.query().levels("county", share="best").with_share_goal({10: "0.1"}),
    ),
    "empty goal": (
        lambda: rw.query().levels("county", share="best").with_share_goal({}),
        "must name a size and an error",
        lambda: rw.query().levels("county", share="best").with_share_goal({1: 1}),
    ),
    "levels of one code crossed": (
        lambda: check_axes([rw.query().levels(rw.prefix("naics", 2)).axes[0], rw.query().levels("naics").axes[0]]),
        "levels of one code",
        lambda: check_axes([rw.query().levels(rw.prefix("naics", 2)).axes[0], rw.query().levels("county").axes[0]]),
    ),
    "mechanism of averages": (
        lambda: rw.query().sum("emp", SumAndCount(sum=NOISE)),  # type: ignore[arg-type]
        "is for averages only",
        lambda: rw.query().sum("emp", NOISE),
    ),
    "no statistic": (lambda: planned(BY), "asks for no statistic", lambda: counted(BY)),
    "no query": (lambda: Plan(schema=SCHEMA, queries=()), "has no query", lambda: counted(BY)),
    "names of two queries": (
        lambda: planned(BY.count(NOISE).named("Ab"), BY.count(NOISE).named("aB")),
        "two queries have the name 'ab'",
        lambda: planned(BY.count(NOISE).named("ab"), BY.count(NOISE).named("abc")),
    ),
    "median of nothing": (
        lambda: planned(BY.count(NOISE, alias="n").with_median("m")),
        "median names 'm'",
        lambda: planned(BY.count(NOISE, alias="n").with_median("n")),
    ),
    "median of two parts": (
        lambda: planned(BY.sum("net", rw.LogTransform(offset=9, sigma=1, signed=True), alias="n").with_median("n")),
        "whose positive and negative part",
        lambda: planned(BY.sum("net", NOISE, alias="n").with_median("n")),
    ),
    "no keys": (
        lambda: counted(rw.query().group_by("county")),
        "no public keys for county: no list is given; give keys from a public source",
        lambda: counted(rw.query()),
    ),
    "other keys": (
        lambda: counted(rw.query().group_by("county", keys={"naics": ["311"]})),
        "no public keys for county: the list has naics",
        lambda: counted(rw.query().group_by("naics", keys={"naics": ["311"]})),
    ),
    "sized without sizes": (
        lambda: planned(BY.sum("emp", rw.Sized(NOISE, floor=5))),
        "the noise of 'sum_emp' is sized, but the keys of county",
        lambda: planned(
            rw.query()
            .group_by("county", keys=Keys.of({**LISTED, "s": [5, 9]}, size="s", sized_on="public: x"))
            .sum("emp", rw.Sized(NOISE, floor=5))
        ),
    ),
    "one level with rests": (
        lambda: counted(rw.query().levels("county", keys=LISTED, all_other="publish")),
        "at least two levels",
        lambda: counted(rw.query().levels(rw.prefix("county", 2), "county", keys=LISTED, all_other="publish")),
    ),
    "rests of a hierarchy": (
        lambda: counted(rw.query().levels((), "state", keys={"state": ["01"]}, all_other="publish")),
        "'state' is a level of a hierarchy",
        lambda: counted(rw.query().levels((), "county", keys=LISTED, all_other="publish")),
    ),
    "rests of selected keys": (
        lambda: counted(
            rw.query().levels((), "county", keys=Keys.select(rho=1, delta="1e-6"), all_other="publish")
        ),
        "needs public keys, and some keys are selected",
        lambda: counted(rw.query().levels((), "county", keys=LISTED, all_other="publish")),
    ),
    "name of a rest": (
        lambda: counted(
            rw.query()
            .levels((), Group("all_other", Prefix("county", 2)), keys={"all_other": ["01"]}, all_other="publish")
        ),
        "the column that marks a published rest",
        lambda: counted(
            rw.query().levels((), Group("others", Prefix("county", 2)), keys={"others": ["01"]}, all_other="publish")
        ),
    ),
    "rests in other words": (
        lambda: rw.query().levels("county", keys=LISTED, all_other="yes"),
        "must be 'publish' or left out",
        lambda: rw.query().levels("county", keys=LISTED, all_other=None),
    ),
    "selected levels": (
        lambda: counted(rw.query().group_by("state", keys=Keys.select(rho=1, delta="1e-6"))),
        "all its values are in a public hierarchy",
        lambda: counted(rw.query().group_by("county", keys=Keys.select(rho=1, delta="1e-6"))),
    ),
    "threshold without a default": (
        lambda: with_default(None),
        "the thresholds of 'sum_emp' need a default",
        lambda: with_default(7),
    ),
    "pieces without a default": (
        lambda: selected(emp=by("county", {"01001": 5})),
        "need a default, because keys are selected on its pieces",
        lambda: selected(emp=by("county", {"01001": 5}, 7)),
    ),
    "pieces off the steps": (lambda: selected(pay="0.75"), "(?i)step", lambda: selected(pay="1.5")),
    "default off the steps": (
        lambda: selected(pay=by("county", {"01001": 5}, "0.75")),
        "(?i)step",
        lambda: selected(pay=by("county", {"01001": 5}, "0.5")),
    ),
    "pieces of no measure": (lambda: selected(county=5), "'county' is split but is not a measure", lambda: selected(emp=5)),
    "threshold of pieces": (
        lambda: Selection.of(rho=1, threshold=2**53 + 1),
        "whole number of pieces or rows",
        lambda: Selection.of(rho=1, threshold=-(2**53)),
    ),
    "threshold that is true": (
        lambda: Selection.of(rho=1, threshold=True),
        "whole number of pieces or rows",
        lambda: Selection.of(rho=1, threshold=1),
    ),
    "too many empty cells": (
        lambda: listed(MOST_EMPTY_CELLS + 10, -60),
        "empty cells would reach the threshold -60",
        lambda: listed(MOST_EMPTY_CELLS, -60),
    ),
    "group named as another column": (
        lambda: counted(rw.query().group_by(Group("naics", Prefix("county", 2)), keys={"naics": ["311"]})),
        "has the name of another column",
        lambda: counted(rw.query().group_by(Group("naics", Prefix("naics", 2)), keys={"naics": ["311"]})),
    ),
    "group of a measure": (
        lambda: counted(rw.query().group_by("emp", keys={"emp": [1]})),
        "to group by a measure, use a CASE",
        lambda: counted(rw.query().group_by("size", keys={"size": [1]})),
    ),
    "group that is misspelled": (
        lambda: counted(rw.query().group_by("count", keys={"count": ["1"]})),
        "did you mean 'county'|county",
        lambda: counted(BY),
    ),
    "prefix of a number": (
        lambda: counted(rw.query().group_by(rw.prefix("size", 1), keys={"size1": ["1"]})),
        "needs a column of type text",
        lambda: counted(rw.query().group_by(rw.prefix("county", 1), keys={"county1": ["1"]})),
    ),
    "part of a text": (
        lambda: counted(rw.query().group_by(DatePart("county", "year"), keys={"county_year": [1]})),
        "needs a column of type date",
        lambda: counted(rw.query().group_by(DatePart("since", "year"), keys={"since_year": [1]})),
    ),
    "group of a date": (
        lambda: counted(rw.query().group_by("since", keys={"since": [1]})),
        "is a date: group by its year",
        lambda: counted(rw.query().group_by(rw.year("since"), keys={"since_year": [1]})),
    ),
    "labels of two types": (
        lambda: counted(
            rw.query().group_by(Group("c", Case(((Compare(Field("emp"), ">", 1), "y"),), 5)), keys={"c": ["y"]})
        ),
        "all text or all 64-bit whole numbers",
        lambda: counted(
            rw.query().group_by(Group("c", Case(((Compare(Field("emp"), ">", 1), 6),), 5)), keys={"c": [5, 6]})
        ),
    ),
    "condition on nothing": (lambda: where("emq > 1"), "neither a conditional column nor a measure", lambda: where("emp > 1")),
    "condition on a derived measure": (lambda: where("rest > 1"), "is a derived measure", lambda: where("net > 1")),
    "condition on a prefix of a number": (
        lambda: where("SUBSTR(size, 1, 2) = '1'"),
        "needs a column of type text",
        lambda: where("SUBSTR(naics, 1, 2) = '1'"),
    ),
    "condition on a part of a number": (
        lambda: where("EXTRACT(YEAR FROM size) = 1"),
        "needs a column of type date",
        lambda: where("EXTRACT(YEAR FROM since) = 1"),
    ),
    "condition on a date": (lambda: where("since = '2020-01-01'"), "compare its year", lambda: where("since IS NOT NULL")),
    "constant of another type": (lambda: where("county > 1"), "not of type text", lambda: where("county > '1'")),
    "one constant of another type": (
        lambda: where("county IN ('1', 2)"),
        "not of type text",
        lambda: where("county IN ('1', '2')"),
    ),
    "order of truth": (lambda: where("open < TRUE"), "boolean and cannot be ordered", lambda: where("open <> TRUE")),
    "value that a list lacks": (
        lambda: where("state IN ('01', '77')"),
        "'77', which the hierarchy 'place' does not have",
        lambda: where("state IN ('01', '02')"),
    ),
    "order of a level": (lambda: where("state = '77'"), "does not have", lambda: where("state < '77'")),
    "clamped between steps": (
        lambda: planned(BY.sum("pay", rw.Clamped(to="1.25", rho=1))),
        "not a multiple of its step",
        lambda: planned(BY.sum("pay", rw.Clamped(to="1.5", rho=1))),
    ),
    "sum of no measure": (
        lambda: planned(BY.sum("emq", NOISE)),
        "'emq' is summed but is not a measure",
        lambda: planned(BY.sum("emp", NOISE)),
    ),
    "average of no measure": (
        lambda: planned(BY.count(NOISE).avg("emq", sum=NOISE)),
        "'emq' is averaged but is not a measure",
        lambda: planned(BY.count(NOISE).avg("emp", sum=NOISE)),
    ),
    "average without a count": (
        lambda: planned(BY.avg("emp", sum=NOISE)),
        "needs a count",
        lambda: planned(BY.avg("emp", sum=NOISE, count=NOISE)),
    ),
    "distinct values of a column": (
        lambda: planned(BY.count_distinct("county", NOISE)),
        "only for the unit id and the firm id",
        lambda: planned(BY.count_distinct("firm", NOISE)),
    ),
    "quantile of no measure": (
        lambda: planned(BY.quantile("emq", p="0.5", grid=GRID, rho=1)),
        "'emq', which is not a measure",
        lambda: planned(BY.quantile("emp", p="0.5", grid=GRID, rho=1)),
    ),
    "quantile at 1": (
        lambda: planned(BY.quantile("emp", p=1, grid=GRID, rho=1)),
        "is not between 0 and 1",
        lambda: planned(BY.quantile("emp", p="0.999", grid=GRID, rho=1)),
    ),
    "quantile at 0": (
        lambda: planned(BY.quantile("emp", p=0, grid=GRID, rho=1)),
        "is not between 0 and 1",
        lambda: planned(BY.quantile("emp", p="0.001", grid=GRID, rho=1)),
    ),
    "grid below a step": (
        lambda: planned(BY.quantile("emp", p="0.5", grid=Grid.log("0.01", "0.9", bits=2), rho=1)),
        "ends below one step",
        lambda: planned(BY.quantile("emp", p="0.5", grid=Grid.log("0.01", 1, bits=2), rho=1)),
    ),
    "combination without a name": (
        lambda: Combination(terms=(("emp", Fraction(1)),)),
        "a combination has no name of its own",
        lambda: Combination(alias="a", terms=(("emp", Fraction(1)),)),
    ),
    "ratio of a form without a name": (
        lambda: Ratio.read("2 * emp", "pay", alias=None),
        "needed for a ratio of linear forms",
        lambda: Ratio.read("emp", "pay", alias=None),
    ),
    "ratio to a form without a name": (
        lambda: Ratio.read("emp", "pay + emp", alias=None),
        "needed for a ratio of linear forms",
        lambda: Ratio.read("emp", "pay + emp", alias="a"),
    ),
    "ratio to what may be negative": (
        lambda: planned(BY.sum("emp", NOISE).sum("net", NOISE).ratio("emp", "net")),
        "may be negative",
        lambda: planned(BY.sum("emp", NOISE).sum("net", NOISE).ratio("net", "emp")),
    ),
    "combination of what is not asked": (
        lambda: planned(BY.sum("emp", NOISE).combine("emp + pay", alias="a")),
        "'a' uses 'pay': ask for its sum",
        lambda: planned(BY.sum("emp", NOISE).sum("pay", NOISE).combine("emp + pay", alias="a")),
    ),
    "combination of one of two": (
        lambda: planned(BY.sum("emp", NOISE, alias="a").sum("emp", NOISE, alias="b").combine("2 * emp", alias="c")),
        "which can be any of 'a', 'b'",
        lambda: planned(BY.sum("emp", NOISE, alias="a").sum("emp", NOISE, alias="b").combine("2 * a", alias="c")),
    ),
    "one statistic twice": (
        lambda: planned(BY.sum("emp", NOISE, alias="a").combine("a + emp", alias="c")),
        "names one statistic twice",
        lambda: planned(BY.sum("emp", NOISE, alias="a").count(NOISE).combine("a + count", alias="c")),
    ),
    "list without a column": (lambda: Rows.of(pa.table({})), "has no column", lambda: Rows.of(pa.table({"a": [1]}))),
    "list with a column twice": (
        lambda: Rows.of(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])),
        "names a column twice",
        lambda: Rows.of(pa.table([pa.array([1]), pa.array([2])], names=["a", "A"])),
    ),
    "group without a column": (
        lambda: Rows.of(pa.table({"county": ["1"]})).check((Group("naics", Field("naics")),), SCHEMA),
        "is a group but has no column",
        lambda: Rows.of(pa.table({"naics": ["1"]})).check((Group("naics", Field("naics")),), SCHEMA),
    ),
    "cell twice": (
        lambda: Keys.of({"county": ["1", "1"]}).cells((Group("county", Field("county")),), SCHEMA),
        "(?i)twice|more than once|repeat",
        lambda: Keys.of({"county": ["1", "2"]}).cells((Group("county", Field("county")),), SCHEMA),
    ),
    "empty product": (lambda: Product.of({}), "at least one column", lambda: Product.of({"a": [1]})),
    "domain of another type": (lambda: as_domain(5), "is a int", lambda: as_domain({"a": [1]})),
    "selected keys as a domain": (
        lambda: as_domain(Keys.select(rho=1, delta="1e-6")),
        "is a Keys",
        lambda: as_domain(Keys.of({"a": [1]})),
    ),
    "domain without a cell": (lambda: domain_of(0), "from 1 to", lambda: domain_of(1)),
    "domain beyond whole numbers": (
        lambda: domain_of(LARGEST_DOMAIN + 1),
        "from 1 to",
        lambda: domain_of(LARGEST_DOMAIN),
    ),
    "domain of size true": (lambda: domain_of(True), "from 1 to", lambda: domain_of(2)),
    "digest of too many": (
        lambda: domain_of(MOST_DIGESTED + 1).digest(),
        "so no digest",
        lambda: domain_of(MOST_DIGESTED).is_recognizable,
    ),
    "positions that fail": (
        lambda: located(lambda held: 1 / 0),
        "failed with ZeroDivisionError",
        lambda: located(lambda held: held["size"]),
    ),
    "positions of too few": (
        lambda: located(lambda held: [1]),
        "one number for each cell",
        lambda: located(lambda held: [1, 2, -1]),
    ),
    "keys that are a text": (lambda: read_keys("01", ("a",)), "is a str, not a list", lambda: read_keys(["01"], ("a",))),
    "keys that are bytes": (lambda: read_keys(b"01", ("a",)), "is a bytes, not a list", lambda: read_keys([1], ("a",))),
    "keys that are a number": (lambda: read_keys(5, ("a",)), "is a int, not a list", lambda: read_keys((5,), ("a",))),
    "keys of two kinds": (
        lambda: read_keys([{"a": [1]}, 5], ("a",)),
        "mixes lists of cells with single values",
        lambda: read_keys([{"a": [1]}, {"a": [5]}], ("a",)),
    ),
    "values of two columns": (
        lambda: read_keys([1], ("a", "b")),
        "grouped by 2 columns",
        lambda: read_keys([1], ("a",)),
    ),
    "values of no column": (lambda: read_keys([1], ()), "grouped by no column", lambda: read_keys([1], ("b",))),
    "product without a list": (lambda: cross_keys([]), "has no list", lambda: cross_keys([Keys.of({"a": [1]})])),
    "sizes of another type": (
        lambda: Keys.of({"a": [1], "s": [1]}, size=5, sized_on="public: x"),  # type: ignore[arg-type]
        "a column, or a mapping",
        lambda: Keys.of({"a": [1], "s": [1]}, size={"emp": "s"}, sized_on="public: x"),
    ),
    "one size of another type": (
        lambda: Keys.of({"a": [1], "s": [1]}, size={"emp": "s", "pay": 5}, sized_on="public: x"),  # type: ignore[dict-item]
        "a column, or a mapping",
        lambda: Keys.of({"a": [1], "s": [1]}, size={"emp": "s", "pay": "s"}, sized_on="public: x"),
    ),
    "source of no sizes": (
        lambda: Keys.of({"a": [1]}, sized_on="public: x"),
        "no size was given",
        lambda: Keys.of({"a": [1]}),
    ),
    "sizes without a source": (
        lambda: Keys.of({"a": [1], "s": [1]}, size="s", sized_on="public:  "),
        "which public table the sizes are from",
        lambda: Keys.of({"a": [1], "s": [1]}, size=FromRelease(release="r", column="s")),
    ),
    "sizes of a source that is not public": (
        lambda: Keys.of({"a": [1], "s": [1]}, size="s", sized_on="ours: x"),
        "which public table the sizes are from",
        lambda: Keys.of({"a": [1], "s": [1]}, size="s", sized_on="public: x"),
    ),
    "sizes of no column": (
        lambda: Keys.of({"a": [1], "s": [1]}, size="t", sized_on="public: x"),
        "no column of the list",
        lambda: Keys.of({"a": [1], "s": [1]}, size="s", sized_on="public: x"),
    ),
    "sizes that are no numbers": (
        lambda: Keys.of({"a": [1], "s": ["x"]}, size="s", sized_on="public: x"),
        "does not hold numbers",
        lambda: Keys.of({"a": [1], "s": ["7"]}, size="s", sized_on="public: x"),
    ),
    "sizes of a cell twice": (
        lambda: sized({"a": [1, 2, 1], "s": [5, 6, 7]}),
        "lists a cell twice",
        lambda: sized({"a": [1, 2, 9, 9], "s": [5, 6, 7, 8]}),
    ),
    "sizes without a needed column": (
        lambda: sized({"b": [1], "s": [5]}),
        "is a column of the keys, but not of the list",
        lambda: sized({"a": [1], "s": [5]}),
    ),
    "sizes without columns": (
        lambda: sized({"c": [1], "s": [5]}),
        "is a column of the keys, but not of the list",
        lambda: sized({"a": [1], "b": [1], "c": [1], "s": [5]}),
    ),
    "sensitive values compared": (lambda: Sensitive(1) == Sensitive(1), "cannot be compared", lambda: Sensitive(1).reveal()),
    "text of a publication": (
        lambda: Publication(publisher=5),  # type: ignore[arg-type]
        "must be text",
        lambda: Publication(publisher="5"),
    ),
    "day of a publication": (
        lambda: Publication(date="2026-13-01"),
        "must be a date",
        lambda: Publication(date=date(2026, 12, 1).isoformat()),
    ),
    "limits that fall": (
        lambda: rules(limits=(("good", 0.3), ("fair", 0.1))),
        "positive and increase",
        lambda: rules(limits=(("good", 0.1), ("fair", 0.11))),
    ),
    "limits that stay": (lambda: rules(limits=(("a", 0.3), ("b", 0.3))), "positive and increase", rules),
    "a limit of 0": (lambda: rules(limits=(("a", 0.0),)), "positive and increase", lambda: rules(limits=(("a", 1e-9),))),
    "a status twice": (lambda: rules(otherwise="good"), "a name of its own", lambda: rules(otherwise="poor")),
    "an unknown status": (lambda: rules(withheld=("worse",)), "worse|status", lambda: rules(withheld=("bad",))),
    "format of numbers": (
        lambda: Measure(name="m", number={"prefix": "$"}),  # type: ignore[arg-type]
        "must be a NumberFormat",
        lambda: Measure(name="m", number=NumberFormat(prefix="$")),
    ),
    "missing values": (
        lambda: Measure.of("m", null="none"),  # type: ignore[arg-type]
        "must be refuse or zero",
        lambda: Measure.of("m", null="zero"),
    ),
    "sign of a measure": (
        lambda: Measure.of("m", signed=1),  # type: ignore[arg-type]
        "must be true or false",
        lambda: Measure.of("m", signed=True),
    ),
    "derived with a step": (
        lambda: Measure.of("m", step=2, derive="a + b"),
        "worked out",
        lambda: Measure.of("m", step=1, derive="a + b"),
    ),
    "derived with a bound": (lambda: Measure.of("m", bound=2, derive="a"), "worked out", lambda: Measure.of("m", bound=2)),
    "derived with a sign": (lambda: Measure.of("m", signed=True, derive="a"), "worked out", lambda: Measure.of("m", derive="a")),
    "derived with missing values": (
        lambda: Measure.of("m", null="zero", derive="a"),
        "worked out",
        lambda: Measure.of("m", derive="a"),
    ),
    "derived with a format": (
        lambda: Measure.of("m", number={"prefix": "$"}, derive="a"),
        "worked out",
        lambda: Measure.of("m", number={"prefix": "$"}),
    ),
    "type of a column": (
        lambda: Column(name="c", type="float"),  # type: ignore[arg-type]
        "must be text, integer, boolean or date",
        lambda: Column(name="c", type="boolean"),
    ),
    "dates in a text": (
        lambda: Column(name="c", date="%d.%m.%Y"),
        "is for columns of type date",
        lambda: Column(name="c", type="date", date="%d.%m.%Y"),
    ),
    "blanks around a number": (
        lambda: Column(name="c", type="integer", trim=True),
        "for columns of type text",
        lambda: Column(name="c", trim=True),
    ),
    "blanks of another type": (
        lambda: Column(name="c", trim=1),  # type: ignore[arg-type]
        "is true or false",
        lambda: Column(name="c", type="integer", trim=False),
    ),
    "NULL of a column": (
        lambda: Column(name="c", null="zero"),  # type: ignore[arg-type]
        "must be refuse or category",
        lambda: Column(name="c", null="category"),
    ),
    "measure under another name": (
        lambda: Schema.of(unit="id", measures={"a": Measure.of("b")}),
        "declared under another name, 'b'",
        lambda: Schema.of(unit="id", measures={"b": Measure.of("b")}),
    ),
    "column under another name": (
        lambda: Schema.of(unit="id", columns={"a": Column(name="b")}),
        "declared under another name, 'b'",
        lambda: Schema.of(unit="id", columns={"b": Column(name="b")}),
    ),
    "two roles": (lambda: Schema.of(unit="id", measures={"ID": 1}), "two roles", lambda: Schema.of(unit="id", measures={"ide": 1})),
    "unit twice": (lambda: Schema.of(unit=["a", "A"]), "names a column twice", lambda: Schema.of(unit=["a", "b"])),
    "unit of nothing": (lambda: Schema.of(unit=[]), "the name of a column", lambda: Schema.of(unit=["a"])),
    "unit of numbers": (
        lambda: Schema.of(unit=["a", 5]),  # type: ignore[list-item]
        "the name of a column",
        lambda: Schema.of(unit=("a", "b")),
    ),
    "firm that is no name": (
        lambda: Schema.of(unit="a", firm=5),  # type: ignore[arg-type]
        "the name of a column",
        lambda: Schema.of(unit="a", firm="b"),
    ),
    "rule for the unit": (
        lambda: Schema.of(unit="a", measures={"m": 1}, collapse={"m": "sum", "a": "same"}),
        "is part of the id",
        lambda: Schema.of(unit="a", measures={"m": 1}, collapse={"m": "sum"}),
    ),
    "rule for nothing": (
        lambda: Schema.of(unit="a", measures={"m": 1}, collapse={"m": "sum", "b": "same"}),
        "is not declared",
        lambda: Schema.of(unit="a", measures={"m": 1}, firm="b", collapse={"m": "sum", "b": "same"}),
    ),
    "no rule": (
        lambda: Schema.of(unit="a", measures={"m": 1}, columns={"c": "text"}, collapse={"m": "sum"}),
        "has no rule for 'c'",
        lambda: Schema.of(unit="a", measures={"m": 1}, columns={"c": "text"}, collapse={"m": "sum", "c": "same"}),
    ),
    "rule of a text": (
        lambda: Schema.of(unit="a", columns={"c": "text"}, collapse={"c": "max"}),
        "collapse of 'c' must be 'same'",
        lambda: Schema.of(unit="a", columns={"c": "integer"}, collapse={"c": "max"}),
    ),
    "rule of a number": (
        lambda: Schema.of(unit="a", columns={"c": "date"}, collapse={"c": "sum"}),
        "collapse of 'c' must be 'max' or 'min' or 'same'",
        lambda: Schema.of(unit="a", measures={"c": 1}, collapse={"c": "sum"}),
    ),
    "derived from a derived one": (
        lambda: Schema(
            unit="a", measures=(Measure.of("m"), Measure.of("n", derive="2 * m"), Measure.of("o", derive="n"))
        ),
        "is derived from 'n', which is not a measure that records hold",
        lambda: Schema(unit="a", measures=(Measure.of("m"), Measure.of("n", derive="2 * m"))),
    ),
    "hierarchy of no column": (
        lambda: Schema.of(unit="a", columns={"state": "text"}, hierarchies=[industries()]),
        "is not a declared column",
        lambda: Schema.of(unit="a", columns={"naics": "text"}, hierarchies=[industries()]),
    ),
    "level that is a column": (
        lambda: Schema.of(unit="a", columns={"naics": "text", "SECTOR": "text"}, hierarchies=[industries()]),
        "which is also a column of the records",
        lambda: Schema.of(unit="a", columns={"naics": "text", "sectors": "text"}, hierarchies=[industries()]),
    ),
    "tuned on something else": (lambda: check_tuned_on("nothing"), "must be one of", lambda: check_tuned_on(None)),
    "tuned on nothing": (lambda: check_tuning(None, "x"), "tuned_on is not stated", lambda: check_tuning("past", None)),
    "tuned on the records": (
        lambda: check_tuning("confidential", " "),
        "tuned on the confidential table",
        lambda: check_tuning("confidential", "needed"),
    ),
    "tuned after a look": (
        lambda: check_tuning("public", None, looks="1 look"),
        "viewed before this release .1 look.",
        lambda: check_tuning("public", None, looks=""),
    ),
    "tuned on a list of unknown source": (
        lambda: check_tuning("public", None, hierarchies=[places(source="ours")]),
        "the source of the hierarchy 'place'",
        lambda: check_tuning("public", None, hierarchies=[places()]),
    ),
    "splitting by nothing": (lambda: Splitting.of({}), "(?i)at least one|threshold", lambda: Splitting.of({"emp": 5})),
    "condition with more text": (lambda: parse_predicate("emp > 1; emp"), "SQL was refused", lambda: parse_predicate("(emp > 1)")),
    "prefix from the second letter": (
        lambda: parse_predicate("SUBSTR(naics, 2, 2) = '1'"),
        "SQL was refused",
        lambda: parse_predicate("SUBSTR(naics, 1, 2) = '1'"),
    ),
    "prefix without a length": (
        lambda: parse_predicate("SUBSTR(naics, 1) = '1'"),
        "SQL was refused",
        lambda: parse_predicate("LEFT(naics, 1) = '1'"),
    ),
    "form that is no form": (lambda: parse_linear("emp +"), "SQL was refused", lambda: parse_linear("emp + pay")),
    "two forms": (lambda: parse_linear("emp, pay"), "SQL was refused", lambda: parse_linear("emp - pay")),
    "form with a comma": (lambda: parse_linear("emp + a, b"), "cannot parse the linear form", lambda: parse_linear('emp + "a, b"')),
    "form with an open quote": (lambda: parse_linear('"emp'), "cannot parse the linear form", lambda: parse_linear('"emp"')),
    "form with a semicolon": (lambda: parse_linear("emp; pay"), "cannot parse the linear form", lambda: parse_linear('"emp; pay"')),
    "form with a constant": (lambda: parse_linear("emp + 2"), "SQL was refused", lambda: parse_linear("emp * 2")),
    "form of a product": (lambda: parse_linear("emp * pay"), "is not linear", lambda: parse_linear("3 * pay")),
    "form of a quotient": (lambda: parse_linear("2 / emp"), "is not linear", lambda: parse_linear("emp / 2")),
    "form over 0": (lambda: parse_linear("emp / 0"), "SQL was refused", lambda: parse_linear("emp / 4")),
    "form of a text": (lambda: parse_linear("'2' * emp"), "SQL was refused", lambda: parse_linear("2 * emp")),
    "form of nothing": (lambda: parse_linear("emp - emp"), "SQL was refused", lambda: parse_linear("emp - 2 * emp")),
    "case without a name in SQL": (
        lambda: sql("SELECT CASE WHEN emp > 1 THEN 'a' ELSE 'b' END, COUNT(*) AS n FROM t GROUP BY 1", n=NOISE),
        "SQL was refused",
        lambda: sql("SELECT CASE WHEN emp > 1 THEN 'a' ELSE 'b' END AS c, COUNT(*) AS n FROM t GROUP BY c", n=NOISE),
    ),
    "quantile without a grid": (
        lambda: sql("SELECT MEDIAN(emp) FROM t"),
        "a quantile without a grid",
        lambda: sql("SELECT MEDIAN(emp) FROM t", emp=TREE),
    ),
    "quantile at a share of 1": (
        lambda: sql("SELECT QUANTILE_CONT(emp, 1) AS q FROM t", q=TREE),
        "share is not a number between 0 and 1",
        lambda: sql("SELECT QUANTILE_CONT(emp, 0.9) AS q FROM t", q=TREE),
    ),
    "quantile in falling order": (
        lambda: sql("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY emp DESC) AS q FROM t", q=TREE),
        "SQL was refused",
        lambda: sql("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY emp) AS q FROM t", q=TREE),
    ),
    "distinct pairs": (
        lambda: sql("SELECT COUNT(DISTINCT firm, id) AS n FROM t"),
        "SQL was refused",
        lambda: sql("SELECT COUNT(DISTINCT firm) AS n FROM t"),
    ),
    "count of a column": (
        lambda: sql("SELECT COUNT(emp) AS n FROM t"),
        "COUNT of an expression",
        lambda: sql("SELECT COUNT(*) AS n FROM t"),
    ),
    "combination without a name in SQL": (
        lambda: sql("SELECT COUNT(*) AS n , SUM(emp), SUM(emp) + COUNT(*) FROM t"),
        "a combination of aggregates without a name",
        lambda: sql("SELECT COUNT(*) AS n , SUM(emp), SUM(emp) + COUNT(*) AS c FROM t"),
    ),
    "ratio without a name in SQL": (
        lambda: sql("SELECT COUNT(*) AS n , SUM(emp), SUM(emp) / COUNT(*) FROM t"),
        "a ratio of aggregates without a name",
        lambda: sql("SELECT COUNT(*) AS n , SUM(emp), (SUM(emp) / COUNT(*)) AS c FROM t"),
    ),
    "average in a combination": (
        lambda: sql("SELECT COUNT(*) AS n , SUM(emp), AVG(emp) + COUNT(*) AS c FROM t"),
        "AVG in an expression of aggregates",
        lambda: sql("SELECT COUNT(*) AS n , SUM(emp), 2 * SUM(emp) - COUNT(*) AS c FROM t"),
    ),
    "mechanism that is missing": (
        lambda: sql("SELECT SUM(pay) FROM t"),
        "no mechanism for 'pay'",
        lambda: sql("SELECT SUM(pay) AS n FROM t"),
    ),
}  # fmt: skip


def domain_of(size: Any) -> Domain:
    return Domain(columns=("a",), size=size, keys=lambda at: {"a": at}, positions=lambda held: held["a"])


def sized(frame: dict[str, list[Any]]) -> Keys:
    """Keys whose column a tells their cells apart, and whose column b does not."""
    return Keys.of({"a": [1, 2], "b": [1, 1]}).sized(pa.table(frame), size="s", sized_on="public: x")


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_wrong_alone_is_refused_by_its_words_and_its_neighbor_is_not(name: str) -> None:
    wrong, told, right = REFUSALS[name]
    right()
    with pytest.raises((RecordwiseError, TypeError), match=told):
        wrong()


def test_sizes_are_found_by_name_and_matched_by_the_columns_that_tell_cells_apart() -> None:
    some = Sizes(
        columns={"emp": np.array([1.0]), "": np.array([2.0])}, waiting={"pay": FromRelease(release="r", column="c")}
    )
    for names, found in ((("emp",), 1.0), (("x", "emp"), 1.0), ((None, "x"), 2.0), ((None,), 2.0)):
        assert some.of(*names) is not None
        assert some.of(*names)[0] == found  # type: ignore[index]
    assert Sizes(columns={"emp": np.array([1.0])}).of("pay", None) is None
    assert [some.named(*names) for names in (("emp",), ("pay",), (None,))] == [True, False, False]
    alone = Sizes(columns={"emp": np.array([1.0])}, waiting={"pay": FromRelease(release="r", column="c")})
    assert [alone.mentions(name) for name in ("emp", "pay", "net")] == [True, True, False]
    matched = sized({"a": [2, 7, None], "s": [5, 6, 9]}).sizes
    assert matched is not None
    assert matched.columns[""].tolist() == [0.0, 5.0]
    assert sized({"a": [7], "s": [5]}).sizes.columns[""].tolist() == [0.0, 0.0]  # type: ignore[union-attr]
    doubled = Keys.of({"a": [1, 1]}).sized(pa.table({"a": [1], "s": [5]}), size="s", sized_on="public: x").sizes
    assert doubled is not None
    assert doubled.columns[""].tolist() == [5.0, 5.0]
    both = Keys.of({"a": [1, 2, 1], "b": [1, 1, 2]}).sized(
        pa.table({"b": [2, 1, 1], "a": [1, 1, 9], "s": [-5, 6, 9]}), size={"emp": "s"}, sized_on="public: x"
    )
    assert both.sizes is not None
    assert both.sizes.columns["emp"].tolist() == [6.0, 0.0, 0.0]


def test_sizes_of_others_take_precedence_and_sources_are_named_once() -> None:
    release = FromRelease(release="r", column="c")
    one = Sizes(columns={"a": np.array([1.0]), "b": np.array([2.0])}, waiting={"c": release}, sized_on=("public: x",))
    two = Sizes(columns={"c": np.array([3.0])}, waiting={"b": release}, sized_on=("public: y", "public: x"))
    both = one.with_others(two)
    assert {name: float(each[0]) for name, each in both.columns.items()} == {"a": 1.0, "c": 3.0}
    assert both.waiting == {"b": release}
    assert both.sized_on == ("public: x", "public: y")
    read = both.joined("b", np.array([9.0]), "release abc")
    assert (read.columns["b"][0], dict(read.waiting), dict(read.read)) == (9.0, {}, {"b": release})
    assert read.sized_on == ("public: x", "public: y", "release abc")
    digests = {
        one.digest(),
        two.digest(),
        both.digest(),
        read.digest(),
        both.joined("b", np.array([8.0]), "release abc").digest(),
    }
    assert len(digests) == 5


def test_cells_of_lists_and_products_are_found_where_they_stand() -> None:
    groups = (Group("county", Field("county")), Group("size", Field("size")))
    listed = Rows.of(pa.table({"county": ["y", "x", "x"], "size": [1, 2, 1]})).bound(groups, SCHEMA)
    asked = pa.table({"county": ["y", "x", "z", "y", "x"], "size": [1, 2, 1, 2, 7]})
    assert listed.locate(asked).tolist() == [2, 1, -1, -1, -1]
    assert listed.keys(np.array([2, 0])).to_pydict() == {"county": ["y", "x"], "size": [1, 1]}
    product = Product.of({"county": ["x", "w", "y"], "size": [1, 2]}).bound(groups, SCHEMA)
    assert product.size == 6
    assert product.locate(asked).tolist() == [4, 3, -1, 5, -1]
    assert product.keys(np.array([5, 0, 3])).to_pydict() == {"county": ["y", "w", "x"], "size": [2, 1, 2]}
    assert located(lambda held: [1, 3, 9]).tolist() == [1, -1, -1]
    assert located(lambda held: [-1, 2, 4]).tolist() == [-1, 2, -1]
    groups = groups[:1]  # type: ignore[assignment]
    assert [Keys.of(each).covers(groups) for each in (LISTED, {"naics": ["1"]})] == [True, False]
    assert as_domain({"county": ["1"], "naics": ["2"]}).covers(groups)
    assert [domain_of(5).covers((Group(name, Field(name)),)) for name in ("a", "b")] == [True, False]
    assert repr(Keys.of({"a": [1]})) == "<Keys: 1 cell of a>"
    assert repr(Keys.product(a=[1, 2], b=[1])) == "<Keys: 2 cells of a x b>"
    assert repr(Keys.select_from({"a": [1, 2]}, rho=1, threshold=5)) == "<Keys: selected from 2 cells>"
    assert repr(Keys.select(rho=1, delta="1e-6")) == "<Keys: selected from the data>"
    assert Keys.product(a=[1, 2], b=["x", "y", "z"]).table.to_pydict() == {
        "a": [1, 1, 1, 2, 2, 2],
        "b": ["x", "y", "z"] * 2,
    }
    names = [Keys.of({"a": [1]}), Keys.select_from({"b": [1]}, rho=1, threshold=5), Keys.select(rho=1, delta="1e-6")]
    assert [each.column_names() for each in names] == [("a",), ("b",), ()]
    assert Keys.select_from(domain_of(3), rho=1, threshold=5).column_names() == ("a",)


def test_selections_share_what_they_cost_and_say_what_they_are() -> None:
    found = Selection.of(rho="0.5", delta="1e-6", pieces={"emp": 50}).shared(Fraction(1, 2))
    assert (found.rho, found.delta) == (Fraction(1, 4), Fraction(1, 2_000_000))
    public = Selection.of(rho="0.5", threshold=7).shared(Fraction(1, 2))
    assert (public.rho, public.delta, public.threshold) == (Fraction(1, 4), None, 7)
    assert (found.alias, public.alias) == ("pieces_selected_on", "rows_selected_on")
    assert found.to_json()["pieces"] == {"emp": "50"}
    assert (public.to_json()["selected"], public.to_json()["threshold"], public.to_json()["pieces"]) == (
        "from a public domain",
        7,
        None,
    )
    at = by(ConditionColumn("naics", 2), {"31": 20}, 9)
    assert list(Selection.of(rho=1, threshold=7, pieces={"emp": at}).piece_thresholds(SCHEMA).values()) == [at]
