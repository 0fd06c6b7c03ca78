"""What is published about a table, and whether it is taken, depends on what was declared and never on how its values are held."""

import json
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import recordwise as rw
from build import employers, exact_totals
from recordwise.errors import DataError, ParameterError, RecordwiseError
from recordwise.noise import Seeded
from recordwise.plan import Column
from recordwise.policy import among, constant, gaussian_sum

COLUMNS = {
    "county": "text",
    "size": Column(name="size", type="integer", null="category"),
    "open": Column(name="open", type="boolean", null="category"),
    "kind": Column(name="kind", null="category"),
}
ROWS = [
    {"id": 1, "emp": 3, "county": "a", "size": 5, "open": True, "kind": "k", "note": "x"},
    {"id": 2, "emp": 4, "county": "b", "size": 7, "open": False, "kind": "l", "note": 7},
]
LAST = {"id": 3, "emp": 5, "county": "a", "size": None, "open": None, "kind": None, "note": object()}
NEIGHBOURS = {"both": ROWS, "with a missing value": [*ROWS, LAST], "only missing values": [LAST], "none": []}


def asked():
    sizes = rw.Keys.of({"size": [5, 7, None]})
    return rw.query().group_by("size", keys=sizes).sum("emp", rw.UnitSplit(at=5, rho=1))


def frame(rows):
    return pd.DataFrame(rows, columns=list(LAST))


def published(source, question=None, **more):
    with employers(source, **({"columns": COLUMNS, "tuned_on": "public"} | more)) as session:
        return session.run(question or asked(), rng=Seeded(1))


@pytest.mark.parametrize("make", [frame, lambda rows: frame(rows).to_dict("list")], ids=["pandas", "mapping"])
def test_neighboring_frames_are_all_taken_and_described_alike(make):
    """One record without a size makes a column of pandas a column of floats; a column of missing values has no type."""
    found = {name: published(make(rows)) for name, rows in NEIGHBOURS.items()}
    told = {json.dumps(each.published.form, sort_keys=True, default=str) for each in found.values()}
    assert len(told) == 1
    assert {tuple(each.tables[0].data["size"].to_pylist()) for each in found.values()} == {(5, 7, None)}


def test_values_arrive_whatever_the_frame_makes_of_them():
    with rw.Session(
        frame(NEIGHBOURS["with a missing value"]), unit="id", measures={"emp": 1}, columns=COLUMNS
    ) as session:
        found = session._engine.totals(session._plan([asked()]))[0]
    assert exact_totals(found)[0] == [3, 4, 5]


@pytest.mark.parametrize("make", [frame, lambda rows: frame(rows).to_dict("list")], ids=["pandas", "mapping"])
def test_a_frame_whose_types_follow_from_its_values_needs_declared_columns(make):
    with pytest.raises(ParameterError, match="columns must be declared for a pandas frame or a mapping"):
        rw.Session(make(ROWS), unit="id", measures={"emp": 1})


@pytest.mark.parametrize("table", [pa.table({"id": [1], "a": [None]}), pl.DataFrame({"id": [1], "a": [None]})])
def test_a_column_without_a_type_must_be_declared_and_then_is_of_that_type(table):
    with pytest.raises(ParameterError, match="'a' has no type of its own"):
        rw.Session(table, unit="id")
    keys = rw.query().group_by("a", keys=rw.Keys.of({"a": pa.array([1, None])})).count(rw.Gaussian(rho=1))
    columns = {"a": Column(name="a", type="integer", null="category")}
    with rw.Session(table, unit="id", columns=columns) as session:
        assert len(exact_totals(session._engine.totals(session._plan([keys]))[0])[0]) == 2


TYPED = {
    "categories": pd.Series(["5", "7"], dtype="category"),
    "whole numbers that may be missing": pd.Series([5, 7], dtype="Int64"),
    "objects": pd.Series([5, 7], dtype=object),
    "floats": pd.Series([5.0, 7.0]),
    "small": np.array([5, 7], dtype=np.int16),
}


@pytest.mark.parametrize("values", TYPED.values(), ids=TYPED)
def test_every_way_to_hold_a_whole_number_is_read(values):
    data = pd.DataFrame({"id": [1, 2], "emp": [1, 2], "size": values})
    assert published(data, columns={"size": COLUMNS["size"]}).tables[0].data.num_rows == 3


def test_decimals_are_read_on_the_lattice_of_their_measure_whatever_their_digits():
    for values in ([Decimal("1.5"), Decimal("2")], [Decimal("1.50000000000000000000000000000"), Decimal(10) ** 12]):
        data = pd.DataFrame({"id": [1, 2], "pay": values})
        question = rw.query().sum("pay", rw.UnitSplit(at=5, rho=1))
        published(data, question, measures={"pay": "0.01"}, columns={})
    with pytest.raises(DataError, match="'pay' is off the lattice"):
        published(pd.DataFrame({"id": [1], "pay": [Decimal("0.001")]}), question, measures={"pay": "0.01"}, columns={})


BROKEN = {
    "a mixture": {"size": [5, "Jane 31337"]},
    "a fraction": {"size": [5.5, 31337.25]},
    "beyond 64 bits": {"size": [31337 * 10**20, 1]},
    "an object": {"kind": [object(), "Jane 31337"]},
}


@pytest.mark.parametrize("columns", BROKEN.values(), ids=BROKEN)
def test_what_no_column_of_the_declared_type_holds_is_refused_by_the_columns_name_alone(columns):
    data = frame(ROWS).assign(**columns)
    with pytest.raises(RecordwiseError, match=f"'{next(iter(columns))}'") as told:
        published(data)
    assert "31337" not in str(told.value)
    assert told.value.__cause__ is None


def test_a_release_names_the_columns_its_plan_uses_and_no_others(tmp_path):
    table = pa.table({**frame(ROWS).drop(columns=["note"]).to_dict("list"), "secret_plan": ["a", "b"]})
    question = rw.query().where("county = 'a'").sum("emp", rw.UnitSplit(at=rw.by("kind", {"k": 2}, default=5), rho=1))
    found = published(table, question, measures={"emp": 1, "size": 1}, columns=None)
    assert [each["name"] for each in found.to_json()["schema"]["columns"]] == ["county", "kind"]
    assert [each["name"] for each in found.to_json()["schema"]["measures"]] == ["emp"]
    found.save(tmp_path / "out")
    assert not any(b"secret_plan" in path.read_bytes() for path in (tmp_path / "out").iterdir())
    budget = constant(100) + gaussian_sum("emp", sigma="0.01") + constant(1).where(among("open", [True]))
    told = published(table, question, measures={"emp": 1, "size": 1}, columns=None, budget=budget).to_json()
    assert [each["name"] for each in told["schema"]["columns"]] == ["county", "open", "kind"]
