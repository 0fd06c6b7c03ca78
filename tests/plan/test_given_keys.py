"""Keys are read where they are given: as Keys, a mapping, a frame or the values of one column; anything else is refused there."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import recordwise as rw
from build import employers
from recordwise.errors import KeysError
from recordwise.noise import Seeded
from recordwise.plan import Keys, Plan, Schema, parse_sql, prefix
from recordwise.plan.query import query

COUNT = rw.Gaussian(rho=1)
SCHEMA = Schema.of(unit="id", columns={"county": "text", "naics": "text", "size": "integer"})
WANTED = Keys.of({"county": ["a", "b"]})
ONE_COLUMN = {
    "a list": ["a", "b"],
    "a tuple": ("a", "b"),
    "a generator": (letter for letter in "ab"),
    "numpy": np.array(["a", "b"]),
    "pandas series": pd.Series(["a", "b"]),
    "pandas index": pd.Index(["a", "b"]),
    "polars series": pl.Series(["a", "b"]),
    "arrow array": pa.array(["a", "b"]),
    "arrow column": pa.chunked_array([["a"], ["b"]]),
    "mapping": {"county": ["a", "b"]},
    "mapping of a series": {"county": pd.Series(["a", "b"])},
    "pandas": pd.DataFrame({"county": ["a", "b"]}),
    "polars": pl.DataFrame({"county": ["a", "b"]}),
    "arrow": pa.table({"county": ["a", "b"]}),
    "keys": WANTED,
    "a list of keys": [WANTED],
    "a list of one mapping": [{"county": ["a", "b"]}],
}


def cells(asked):
    plan = Plan(schema=SCHEMA, queries=(asked.count(COUNT),))
    return [plan.cells(table).to_pydict() for table in plan.tables()]


@pytest.mark.parametrize("given", ONE_COLUMN.values(), ids=ONE_COLUMN)
def test_keys_of_one_column_come_in_any_form(given):
    assert cells(query().group_by("county", keys=given)) == [{"county": ["a", "b"]}]


def test_the_same_in_sql_and_in_a_session():
    table = pa.table({"id": [1], "county": ["a"]})
    text = "SELECT county, COUNT(*) FROM t GROUP BY county"
    assert parse_sql(text, mechanisms={"*": COUNT}, keys=["a"]) == query().group_by("county", keys=["a"]).count(COUNT)
    with employers(table, "county", measures={}) as session:
        released = session.sql(text, mechanisms={"*": COUNT}, keys=["a", "b"], rng=Seeded(1))
    assert released.tables[0].data["county"].to_pylist() == ["a", "b"]


def test_whole_numbers_and_one_level_are_one_column_too():
    assert cells(query().group_by("size", keys=range(2))) == [{"size": [0, 1]}]
    assert cells(query().levels(prefix("naics", 2), keys=["44"])) == [{"naics2": ["44"]}]


def test_several_lists_serve_several_tables():
    asked = query().levels("county", "size", keys=[{"county": ["a"]}, pd.DataFrame({"size": [1]})])
    assert cells(asked) == [{"county": ["a"]}, {"size": [1]}]


WRONG = {
    "a text": ("a", "is a str, not a list of cells"),
    "a number": (5, "is a int, not a list of cells"),
    "a query": (query(), "is a Query, not a list of cells"),
    "an empty list": ([], "is empty"),
    "an empty mapping": ({}, "has no column"),
    "a mixture": (["a", 1], "mixes types"),
    "lists and values": ([WANTED, "a"], "mixes lists of cells with single values"),
    "lists in a list": ([["a"], ["b"]], "has list"),
    "structures": ([{"county": "a"}], "mixes types|cannot be keys|different|is a"),
    "bytes": ([b"a"], "has binary"),
    "pandas objects": (pd.DataFrame({"county": ["a", 1]}), "mixes types"),
    "columns of two lengths": ({"county": ["a"], "size": [1, 2]}, "different lengths"),
    "a column twice": (pa.table([["a"], ["b"]], names=["county", "county"]), "twice"),
}


@pytest.mark.parametrize("given, problem", WRONG.values(), ids=WRONG)
def test_what_is_no_list_of_cells_is_refused_where_it_is_given(given, problem):
    with pytest.raises(KeysError, match=problem):
        query().group_by("county", keys=given)


def test_plain_values_need_exactly_one_column():
    with pytest.raises(KeysError, match="grouped by 2 columns"):
        query().group_by("county", "naics", keys=["a"])
    with pytest.raises(KeysError, match="grouped by no column"):
        query().at(["a"])
    with pytest.raises(KeysError, match="grouped by 2 columns"):
        query().levels(prefix("naics", [2, 3]), keys=["441"])


@pytest.mark.parametrize(
    "column, keys, problem",
    [
        ("county", [True, False], "has bool keys for a column of type text"),
        ("county", [1.5], "has double keys for a column of type text"),
        ("size", ["01"], "do not survive a cast to integer"),
        ("size", [True], "has bool keys for a column of type integer"),
        ("size", [None, 1], "contains NULL"),
    ],
)
def test_keys_of_another_type_are_refused_when_they_join_a_plan(column, keys, problem):
    asked = query().group_by(column, keys=keys).count(COUNT)
    with pytest.raises(KeysError, match=problem):
        Plan(schema=SCHEMA, queries=(asked,))
