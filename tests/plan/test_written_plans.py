"""Plans that are written and read back: every kind of statistic, condition, level, keys and number comes back the same."""

from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordwise as rw
from recordwise.exact.functions import log, x
from recordwise.mechanisms.base import parameter_json
from recordwise.plan import Plan, Query, Schema
from recordwise.plan.cost import plan_policy
from recordwise.plan.file import load_plan
from recordwise.plan.file.mechanisms import parse_function
from recordwise.plan.file.write import exact_function, plan_text
from recordwise.policy import ConditionColumn

SCHEMA = Schema.of(
    unit="id",
    firm="firm",
    measures={"emp": 1, "pay": "0.01"},
    columns={"county": "text", "naics": "text", "size": "integer", "open": "boolean", "kind": "text"},
)
GIVEN = {"dataset": "d", "source": "r.parquet", "ledger": "l", "tuned_on": "public"}
losses = st.fractions(Fraction(1, 1000), 2, max_denominator=9973)
amounts = st.integers(1, 10**6)
GROUPS = [
    rw.by("county", {"01": 5, "O'Hara": 7}, default=50),
    rw.by(ConditionColumn("naics", 2), {"44": Fraction(20), "72": 3}, default=9),
    rw.by("size", {1: 10, -2: 20}, default=30),
    rw.by("open", {True: 2, False: 4}, default=8),
]
thresholds = amounts | st.sampled_from(GROUPS)
sums = st.one_of(
    st.builds(rw.Gaussian, sigma=losses),
    st.builds(rw.Gaussian, rho=losses, at=amounts),
    st.builds(rw.Clamped, to=amounts, rho=losses),
    st.builds(rw.UnitSplit, at=thresholds, rho=losses),
    st.builds(lambda emp, pay, rho: rw.UnitSplit(at={"emp": emp, "pay": pay}, rho=rho), thresholds, thresholds, losses),
    st.builds(rw.LogTransform, offset=amounts, sigma=losses),
    st.builds(rw.RootTransform, degree=st.integers(2, 4), offset=amounts, laplace_scale=losses),
)
counts = st.builds(rw.Gaussian, rho=losses)
grids = st.builds(rw.mechanisms.Grid.log, losses, st.integers(10, 10**9), bits=st.integers(2, 12)) | st.builds(
    rw.mechanisms.Grid.linear, st.integers(0, 5), st.integers(10, 10**9), bits=st.integers(2, 12)
)
CONDITIONS = [
    "emp > 3 AND NOT (county IN ('01', 'O''Hara') OR left(naics, 2) = '44')",
    "size BETWEEN -3 AND 20 OR kind IS NULL",
    "pay >= 0.25 AND open = TRUE",
]
PIECES = {"emp": 50, "pay": Fraction(1, 2)}


@st.composite
def statistics(draw: st.DrawFn, asked: Query) -> Query:
    """Some statistics, in the order in which a plan file's query publishes them."""
    if draw(st.booleans()):
        asked = asked.count(draw(counts), alias=draw(st.sampled_from(["count", "establishments"])))
    for number in range(draw(st.integers(0, 2))):
        asked = asked.sum(
            draw(st.sampled_from(["emp", "pay"])), draw(sums), alias=draw(st.sampled_from([f"s{number}"]))
        )
    if draw(st.booleans()):
        asked = asked.count_distinct("firm", draw(counts))
    if draw(st.booleans()):
        asked = asked.avg("emp", sum=draw(sums), count=draw(counts), alias="mean")
    grid, rho = draw(grids), draw(losses)
    for p in draw(
        st.lists(st.sampled_from([Fraction(1, 2), Fraction(1, 3), Fraction(9, 10)]), max_size=2, unique=True)
    ):
        asked = asked.quantile("pay", p=p, grid=grid, rho=rho)
    return asked if asked.statistics else asked.sum("emp", draw(sums))


def listed(draw: st.DrawFn) -> rw.Keys:
    many = draw(st.sampled_from([3, 60]))
    return rw.Keys.product(
        county=[f"{i:02d}" for i in range(many)], naics=["441", "722"], size=[1, 2], open=[True, False]
    )


@st.composite
def keys(draw: st.DrawFn) -> object:
    kind = draw(st.sampled_from(["listed", "select", "product", "rows"]))
    pieces = draw(st.sampled_from([None, PIECES]))
    if kind == "listed":
        return listed(draw)
    if kind == "select":
        return rw.Keys.select(rho=draw(losses), delta=Fraction(1, 10**6), pieces=pieces)
    values = {"county": ["01", "02"], "naics": ["441", "722"], "size": [1, 2], "open": [True, False]}
    domain = values if kind == "product" else listed(draw)
    return rw.Keys.select_from(domain, rho=draw(losses), threshold=draw(st.integers(5, 100)), pieces=pieces)


@st.composite
def queries(draw: st.DrawFn) -> Query:
    asked = rw.query()
    if draw(st.booleans()):
        asked = asked.where(draw(st.sampled_from(CONDITIONS)))
    if draw(st.booleans()):
        given_keys = draw(keys())
        asked = asked.group_by("county", "size", "open")
        if draw(st.booleans()):
            asked = asked.levels(rw.prefix("naics", [2, 3]), share=draw(st.sampled_from([None, ["1/3", "2/3"]])))
        else:
            asked = asked.group_by(rw.prefix("naics", 2))
        asked = asked.at(given_keys)
    return draw(statistics(asked))


def read_back(asked: list[Query], folder: Path) -> tuple[Query, ...]:
    return load_plan(plan_text(asked, SCHEMA, **GIVEN).save(folder / "plan.toml")).plan.queries


def same(read: Query, wanted: Query) -> None:
    """Equal in everything a release depends on."""
    assert (read.condition, read.groups, read.axes) == (wanted.condition, wanted.groups, wanted.axes)
    assert [parameter_json(each.description()) for each in read.statistics] == [
        parameter_json(each.description()) for each in wanted.statistics
    ]
    before, after = (Plan(schema=SCHEMA, queries=(each,)) for each in (wanted, read))
    assert plan_policy(after) == plan_policy(before)
    for one, other in zip(before.tables(), after.tables(), strict=True):
        assert one.shape == other.shape
        if before.selection(one) is None and one.shape.groups:
            assert before.cells(one).equals(after.cells(other))
        elif one.shape.groups:
            assert before.selection(one).to_json() == after.selection(other).to_json()


@settings(max_examples=40, deadline=None)
@given(st.lists(queries(), min_size=1, max_size=2))
@pytest.mark.costly
def test_a_plan_reads_back_as_the_same_queries(asked: list[Query]) -> None:
    with TemporaryDirectory() as folder:
        for read, wanted in zip(read_back(asked, Path(folder)), asked, strict=True):
            same(read, wanted)


def test_keys_that_text_would_change_are_kept_in_files(tmp_path: Path) -> None:
    """A NULL has no word in TOML, and a short integer would become a long one."""
    columns = {"size": pa.array([1, 2, None], pa.int16()), "county": ["01", None, "03"]}
    nullable = Schema.of(
        unit="id",
        columns={
            name: rw.Column(name=name, type=kind, null="category")
            for name, kind in (("size", "integer"), ("county", "text"))
        },
    )
    wanted = rw.query().group_by("size", "county", keys=rw.Keys.of(columns)).count(rw.Gaussian(rho=1))
    text = plan_text([wanted], nullable, **GIVEN)
    assert list(text.key_files) == ["keys1.parquet"]
    (read,) = load_plan(text.save(tmp_path / "plan.toml")).plan.queries
    assert read == wanted


def test_each_query_keeps_the_order_of_its_key_lists(tmp_path: Path) -> None:
    one, other = rw.Keys.of({"county": ["01"]}), rw.Keys.of({"county": ["01", "02"]})
    asked = [
        rw.query().group_by("county").at([first, second]).count(rw.Gaussian(rho=1))
        for first, second in ((one, other), (other, one))
    ]
    assert [each.key_lists for each in read_back(asked, tmp_path)] == [(one, other), (other, one)]


FUNCTIONS = [
    x,
    3 * x + Fraction(1, 3),
    (x / Fraction(7, 3) + Fraction("0.1234567891")) ** Fraction(1, 3),
    2 * log(x / 5 + 3) ** 2 + (x / 50) ** "0.5" + Fraction(1, 7),
    log((x + 1) ** "0.25" + log(x / 10**9 + 1)),
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_a_function_reads_back_exactly(function: object) -> None:
    assert parse_function(exact_function(function)) == function
