"""Keys are a partition after the cast to the declared type, or they are refused."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from recordwise.errors import KeysError, KindError
from recordwise.mechanisms import Gaussian
from recordwise.plan import Column, Field, Group, Keys, Plan, Prefix, Schema
from recordwise.plan.keys import cells as cells_module
from recordwise.plan.query import query

SCHEMA = Schema.of(
    unit="id",
    columns={
        "text": "text",
        "number": "integer",
        "flag": "boolean",
        "maybe": Column(name="maybe", null="category"),
        "count": Column(name="count", type="integer", null="category"),
    },
)


def cells(values, name):
    return Keys.of({name: values}).cells((Group(name, Field(name)),), SCHEMA)[name].to_pylist()


@pytest.mark.theorem("T-KEYS")
@pytest.mark.parametrize(
    "name, values, expected",
    [
        ("text", ["b", "a", "B"], ["B", "a", "b"]),
        ("text", ["01", "1", "1 ", " 1"], [" 1", "01", "1", "1 "]),
        ("text", ["é", "e\u0301"], ["e\u0301", "é"]),
        ("number", [3, -1], [-1, 3]),
        ("number", ["3", "-1"], [-1, 3]),
        ("number", [3.0, 1.0], [1, 3]),
        ("flag", [True, False], [False, True]),
        ("maybe", ["a", None], ["a", None]),
        ("count", [None, 1], [1, None]),
        ("maybe", [None], [None]),
    ],
)
def test_keys_are_cast_and_sorted(name, values, expected):
    assert cells(values, name) == expected


@pytest.mark.theorem("T-KEYS")
@pytest.mark.parametrize(
    "name, values, problem",
    [
        ("number", ["01", "1"], "do not survive"),
        ("number", ["1 "], "do not survive"),
        ("number", ["1.0"], "do not survive"),
        ("number", ["+1"], "do not survive"),
        ("number", [1.5], "do not survive"),
        ("number", [float("nan")], "not a number"),
        ("number", [2.0**80], "do not survive"),
        ("number", [1, 1.0], "twice"),
        ("number", [True], "bool keys"),
        ("text", ["a", "a"], "twice"),
        ("text", [1.0], "double keys"),
        ("text", [1001], "with their leading zeros: '01001'"),
        ("text", [True, False], "bool keys"),
        ("text", ["a", None], "NULL"),
        ("flag", ["true"], "string keys"),
        ("flag", [1], "int64 keys"),
        ("maybe", [None, None], "twice"),
    ],
)
def test_keys_that_are_no_partition_are_refused(name, values, problem):
    with pytest.raises(KeysError, match=problem):
        cells(values, name)


def test_a_mixture_of_types_is_refused():
    with pytest.raises(KeysError, match="mixes types"):
        Keys.of({"text": ["1", 1]})


def test_a_product_has_every_combination_once():
    made = Keys.product(text=["b", "a"], number=[2, 1, 3])
    table = made.cells((Group("text", Field("text")), Group("number", Field("number"))), SCHEMA)
    assert table.to_pydict() == {"text": ["a"] * 3 + ["b"] * 3, "number": [1, 2, 3] * 2}


def test_levels_come_from_the_finest_keys_without_repeats():
    made = Keys.of({"text": ["3111", "3112", "3221", "32"], "number": [1, 1, 1, 2]})
    table = made.cells((Group("text2", Prefix("text", 2)),), SCHEMA)
    assert table.to_pydict() == {"text2": ["31", "32"]}
    table = made.cells((Group("number", Field("number")), Group("text3", Prefix("text", 3))), SCHEMA)
    assert table.to_pydict() == {"number": [1, 1, 2], "text3": ["311", "322", "32"]}


def test_keys_given_at_a_level_must_not_be_longer_than_it():
    group = (Group("text2", Prefix("text", 2)),)
    assert Keys.of({"text2": ["31", "4"]}).cells(group, SCHEMA)["text2"].to_pylist() == ["31", "4"]
    with pytest.raises(KeysError, match="longer than 2"):
        Keys.of({"text2": ["311"]}).cells(group, SCHEMA)


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame, dict])
def test_keys_come_from_any_frame(make):
    frame = make({"text": ["a", "b"], "number": [1, 2]})
    assert Keys.of(frame) == Keys.of({"text": ["a", "b"], "number": [1, 2]}) or make is not dict
    assert Keys.of(frame).cells((Group("text", Field("text")),), SCHEMA)["text"].to_pylist() == ["a", "b"]


def test_too_many_cells_and_none_are_refused_before_they_are_made():
    with pytest.raises(KeysError, match="10,000,000,000 cells"):
        Keys.product(a=range(100_000), b=range(100_000))
    with pytest.raises(KeysError, match="empty"):
        Keys.product(a=[], b=["x"])
    with pytest.raises(KeysError, match="no column"):
        Keys.of({})
    with pytest.raises(KeysError, match="not a frame"):
        Keys.of(7)


def test_rows_of_many_columns_are_told_apart_beyond_64_bits():
    """Eight columns of 400 values have more combinations than a 64-bit number; rows that differ in one column only stay two."""
    names = [f"c{i}" for i in range(8)]
    schema = Schema.of(unit="id", columns=dict.fromkeys(names, "integer"))
    columns = {name: [*range(400), 7] for name in names}
    columns["c7"][-1] = 8
    groups = tuple(Group(name, Field(name)) for name in names)
    table = Keys.of(columns).cells(groups, schema)
    assert table.num_rows == 401
    assert table["c0"].to_pylist() == sorted([*range(400), 7])
    columns["c7"][-1] = 7
    with pytest.raises(KeysError, match="1 cell more than once"):
        Keys.of(columns).cells(groups, schema)


@pytest.mark.parametrize("gaps", [8, 0], ids=["by a look-up table", "by sorting"])
def test_cells_are_sorted_and_different_either_way(gaps, monkeypatch):
    monkeypatch.setattr(cells_module, "MOST_GAPS", gaps)
    rng = np.random.default_rng(4)
    rows = sorted({(f"{a:02d}", int(b)) for a, b in rng.integers(0, 30, (700, 2))})
    order = rng.permutation(len(rows))
    given = {"text": [rows[i][0] for i in order], "number": [rows[i][1] for i in order]}
    groups = (Group("text", Field("text")), Group("number", Field("number")))
    table = Keys.of(given).cells(groups, SCHEMA)
    assert list(zip(table["text"].to_pylist(), table["number"].to_pylist())) == rows
    shorter = Keys.of(given).cells((Group("text", Prefix("text", 1)), groups[1]), SCHEMA)
    assert list(zip(*shorter.to_pydict().values())) == sorted({(text[0], number) for text, number in rows})


def test_each_table_of_a_plan_has_its_own_cells_made_once():
    keys = Keys.of({"flag": [True, True, True], "text": ["11a", "11b", "22a"]})
    fine = query().group_by("flag", keys=keys).levels(Prefix("text", 2), Prefix("text", 3)).count(Gaussian(rho=1))
    other = query().group_by("text", keys=["11a"]).count(Gaussian(rho=1))
    plan = Plan(schema=SCHEMA, queries=(fine, other))
    again = Plan(schema=SCHEMA, queries=(other, fine))
    found = [plan.cells(table).column(-1).to_pylist() for table in plan.tables()]
    assert found == [["11", "22"], ["11a", "11b", "22a"], ["11a"]]
    assert [again.cells(table).column(-1).to_pylist() for table in again.tables()] == [found[2], *found[:2]]
    assert all(plan.cells(table) is plan.cells(table) for table in plan.tables())
    assert plan == Plan(schema=SCHEMA, queries=(fine, other))
    assert hash(plan) == hash(Plan(schema=SCHEMA, queries=(fine, other)))


def test_keys_that_are_not_a_number_are_refused():
    encoded = pa.table({"county": pa.array([1.0, float("nan")]).dictionary_encode()})
    for make in (
        lambda: Keys.product(county=[float("nan")]),
        lambda: Keys.of({"county": [1.0, float("nan")]}),
        lambda: Keys.of(encoded),
    ):
        with pytest.raises(KeysError, match=r"'county' has keys that are not a number \(NaN\)"):
            make()


def test_medians_are_asked_for_by_name():
    with pytest.raises(KindError, match="names must be published names of counts and sums, not int"):
        query().count(Gaussian(rho=1)).with_median(5)
