"""What a first plan is told about the columns of a source: types as they are stored, and what a look at the records suggests."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recordwise.engines.sources.columns import (
    FEWEST_CODED,
    MOST_DIGITS,
    _kind,
    csv_options,
    declared_columns,
    is_csv,
    look_at_columns,
)
from recordwise.engines.sources.files import _digits, _table, is_untyped, open_typed, plain_table
from recordwise.errors import DataError, SourceError
from recordwise.plan.schema import Measure, Schema
from recordwise.plan.sources import Database, Frame, open_source

TYPES: list[tuple[pa.DataType, str]] = [
    (pa.null(), ""),
    (pa.int8(), "integer"),
    (pa.uint64(), "integer"),
    (pa.float32(), "number"),
    (pa.decimal128(9, 2), "number"),
    (pa.bool_(), "boolean"),
    (pa.date32(), "date"),
    (pa.timestamp("s"), "date"),
    (pa.timestamp("s", tz="UTC"), "other"),
    (pa.string(), "text"),
    (pa.large_string(), "text"),
    (pa.string_view(), "text"),
    (pa.binary(), "other"),
    (pa.list_(pa.int64()), "other"),
    (pa.dictionary(pa.int32(), pa.string()), "text"),
    (pa.dictionary(pa.int32(), pa.int64()), "integer"),
]


@pytest.mark.parametrize(("stored", "kind"), TYPES, ids=str)
def test_a_stored_type_has_one_word(stored: pa.DataType, kind: str) -> None:
    assert _kind(stored) == kind


ROWS = FEWEST_CODED
TABLE = pa.table(
    {
        "whole": pa.array([1.0, -250.0] * (ROWS // 2) + [3.0] * (ROWS % 2)),
        "cents": pa.array([0.25, 7.0] + [1.0] * (ROWS - 2)),
        "tenths": pa.array([0.5, 7.0] + [1.0] * (ROWS - 2)),
        "none": pa.array([1 / 3] * ROWS),
        "code": pa.array([100 + place for place in range(ROWS)]),
        "short": pa.array([10] * ROWS),
        "number": pa.array([7, *([100] * (ROWS - 1))]),
        "name": pa.array(["x"] * ROWS),
    }
)
SUGGESTED = {
    "whole": ("number", "1", False),
    "cents": ("number", "0.01", False),
    "tenths": ("number", "0.1", False),
    "none": ("number", "", False),
    "code": ("integer", "", True),
    "short": ("integer", "", False),
    "number": ("integer", "", False),
    "name": ("text", "", False),
}


def told(found: list[Any]) -> dict[str, tuple[str, str, bool]]:
    return {each.name: (each.kind, each.step, each.coded) for each in found}


def test_a_look_at_stored_numbers_suggests_steps_and_codes(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as file, pa.ipc.new_file(file, TABLE.schema) as writer:
        writer.write_table(TABLE)
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.register("held", TABLE)
        connection.execute("CREATE TABLE t AS SELECT * FROM held")
    sources = [tmp_path / "t.parquet", tmp_path / "t.arrow", Database(tmp_path / "t.duckdb", table="t")]
    for source in sources:
        assert told(look_at_columns(source)) == SUGGESTED
        kinds = {each.name: (each.kind, each.step, each.coded) for each in declared_columns(source)}
        assert kinds == {name: (kind, "", False) for name, (kind, _, _) in SUGGESTED.items()}
        assert not is_csv(source)
        assert csv_options(source) == {}
    few = TABLE.slice(0, ROWS - 1)
    pq.write_table(few, tmp_path / "few.parquet")
    assert told(look_at_columns(tmp_path / "few.parquet"))["code"] == ("integer", "", False)
    with pytest.raises(SourceError, match="made from files"):
        declared_columns(TABLE)


def test_a_look_at_text_suggests_types_and_keeps_leading_zeros(tmp_path: Path) -> None:
    columns = {
        "id": [str(1000 + place) for place in range(ROWS)],
        "size": [str(place % 9) for place in range(ROWS)],
        "zeros": ["01", *["11"] * (ROWS - 1)],
        "open": ["true", *["FALSE"] * (ROWS - 1)],
        "day": ["2024-01-31"] * ROWS,
        "pay": ["1.5", *["2"] * (ROWS - 1)],
        "mixed": ["x", *["2"] * (ROWS - 1)],
        "empty": [""] * ROWS,
    }
    lines = [";".join(columns), *(";".join(row) for row in zip(*columns.values()))]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    assert is_csv(path)
    assert csv_options(path) == {"delimiter": ";"}
    assert told(look_at_columns(path, headed=True)) == {
        "id": ("integer", "", True),
        "size": ("integer", "", False),
        "zeros": ("text", "", False),
        "open": ("boolean", "", False),
        "day": ("date", "", False),
        "pay": ("number", "0.1", False),
        "mixed": ("text", "", False),
        "empty": ("text", "", False),
    }
    assert [each.kind for each in declared_columns(path, headed=True)] == [""] * len(columns)
    with pytest.raises(SourceError, match="nothing in the file says that it is no record"):
        declared_columns(path)
    (tmp_path / "values.csv").write_text("1,2\n3,4\n")
    with pytest.raises(SourceError, match="it has no header line"):
        declared_columns(tmp_path / "values.csv", headed=True)
    (tmp_path / "plain.csv").write_text("a,b\n3,4\n")
    assert csv_options(tmp_path / "plain.csv") == {}
    (tmp_path / "old.csv").write_bytes("a,b\n3,\xe9\n".encode("latin-1"))
    assert set(csv_options(tmp_path / "old.csv")) <= {"encoding"}


@pytest.mark.parametrize("digits", [0, 1, MOST_DIGITS, MOST_DIGITS + 1])
def test_steps_are_found_up_to_a_number_of_digits(digits: int, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [3.0, 10.0**-digits]}), tmp_path / "t.parquet")
    (found,) = look_at_columns(tmp_path / "t.parquet")
    expected = "1" if not digits else "0." + "0" * (digits - 1) + "1"
    assert found.step == ("" if digits > MOST_DIGITS else expected)


SCHEMA = Schema.of(unit="id", measures={"emp": 1, "pay": "0.25"}, columns={"county": "text", "size": "integer"})


def test_frames_without_types_are_read_by_the_declared_ones() -> None:
    given = {
        "id": [1, 2],
        "emp": [None, None],
        "pay": pa.array([Decimal("1.5"), None]),
        "county": pa.array(["a", "b"]).dictionary_encode(),
        "size": [1.0, float("nan")],
        "more": [object(), 5],
    }
    found = _table(given, SCHEMA)
    assert [str(each) for each in found.schema.types] == ["int64", "int64", "decimal128(35, 2)", "string", "int64"]
    assert found.to_pydict() == {
        "id": [1, 2],
        "emp": [None, None],
        "pay": [Decimal("1.50"), None],
        "county": ["a", "b"],
        "size": [1, None],
    }
    frame = pd.DataFrame({"id": [1], "emp": [2], "pay": [1.5], "county": ["a"], "size": [3]})
    assert [is_untyped(each) for each in (given, frame, found, "t.csv")] == [True, True, False, False]
    assert isinstance(open_typed(frame, SCHEMA, open_source), Frame)
    nulls = open_typed(found.set_column(3, "county", pa.nulls(2)), SCHEMA, open_source).table
    assert str(nulls.schema.field("county").type) == "string"
    for wrong, told_of, error in (
        ({"size": [1.5, 2.0]}, "cannot be read as integer", DataError),
        ({"pay": pa.array([Decimal("1.505"), None])}, "off the lattice", DataError),
        ({"county": ["a", 5]}, "several types", DataError),
        ({"emp": [1, 2, 3]}, "different lengths", SourceError),
    ):
        with pytest.raises(error, match=told_of):
            _table(given | wrong, SCHEMA)
    twice = pd.DataFrame([[1, 2, 3, "a", 5, 6]], columns=["id", "emp", "pay", "county", "size", "size"])
    with pytest.raises(SourceError, match="two of its columns have the same name"):
        _table(twice, SCHEMA)
    coded = pa.table({"a": pa.array(["x", "y"]).dictionary_encode(), "b": [1, 2]})
    assert [str(each) for each in plain_table(coded).schema.types] == ["string", "int64"]


def test_digits_of_a_step() -> None:
    steps = {"1": 0, "0.25": 2, "0.001": 3, "10": 0, "1/3": None, "1/8": 3}
    assert {step: _digits(Measure.of("m", step=Fraction(step))) for step in steps} == steps
