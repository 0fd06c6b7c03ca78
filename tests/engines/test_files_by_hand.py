"""Parts of the readers of files and frames by hand: footers, CSV in other encodings, quotes, frames and types they declare."""

import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engines.copied_sources import problems
from engines.refused import refusal
from recordwise.engines.compile.records import StorageType
from recordwise.engines.sources import files
from recordwise.engines.sources.declared import inferred_columns
from recordwise.errors import DataError, ParameterError
from recordwise.plan import Column, Measure, Schema
from recordwise.plan.sources import (
    ArrowFiles,
    CsvFiles,
    Database,
    Frame,
    ParquetFiles,
    Postgres,
    StatFiles,
    open_source,
)

SCHEMA = Schema.of(unit="id", measures={"emp": 1}, columns={"town": "text"})


# Footers of Parquet files.


def footer(folder: Path, **columns: Any) -> dict[str, str]:
    pq.write_table(pa.table(columns), folder / "footer.parquet")
    return files._storage_by_column(folder / "footer.parquet")


def test_every_storage_of_parquet_has_its_words(tmp_path: Path) -> None:
    found = footer(
        tmp_path,
        a=pa.array([1], pa.int32()),
        b=pa.array([1], pa.int64()),
        c=pa.array([1], pa.uint8()),
        d=pa.array([1.0], pa.float32()),
        e=pa.array([1.0]),
        f=pa.array([True]),
        g=pa.array(["x"]),
        h=pa.array([b"x"]),
        i=pa.array([b"xyz"], pa.binary(3)),
        j=pa.array([Decimal("1.25")], pa.decimal128(9, 2)),
        k=pa.array([datetime.date(2024, 1, 1)]),
        l=pa.array([0], pa.timestamp("ms")),
        m=pa.array([0], pa.timestamp("us", "UTC")),
        n=pa.nulls(1),
        o=pa.array([[1]]),
        p=pa.array([{"x": 1}]),
        q=pa.array([0], pa.time32("ms")),
    )
    assert found == {
        "a": "whole numbers of 32 bits",
        "b": "whole numbers of 64 bits",
        "c": "whole numbers of 8 bits, without a sign",
        "d": "floats of 32 bits",
        "e": "floats of 64 bits",
        "f": "truth values",
        "g": "text",
        "h": "bytes",
        "i": "bytes, 3 of them",
        "j": "decimals with 9 digits, 2 of them after the point",
        "k": "dates",
        "l": "times in milliseconds without a zone",
        "m": "times in microseconds with a zone",
        "n": "nothing but missing values",
        "o": "a nested column",
        "p": "a nested column",
        "q": found["q"],
    }
    assert found["q"].startswith("the type Time INT32")


def test_a_parquet_file_with_a_name_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table([pa.array([1]), pa.array([2]), pa.array([3])], ["id", "a", "a"]), path)
    assert "have the same name" in refusal(files._storage_by_column, path).problem


def test_files_are_told_by_their_number_only_where_there_are_several(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.parquet", "b.parquet", "c.parquet")]
    for path in paths:
        pq.write_table(pa.table({"id": [1], "emp": [1], "town": ["x"]}), path)
    files.check_parquet(ParquetFiles(tuple(paths)), SCHEMA)
    pq.write_table(pa.table({"id": [1], "emp": [1.0], "town": ["x"]}), paths[2])
    told = refusal(files.check_parquet, ParquetFiles(tuple(paths)), SCHEMA)
    assert told.source == "column 'emp'"
    assert told.problem == (
        "file 3 of 3 ('c.parquet') stores it as floats of 64 bits, and the first as whole numbers of 64 bits"
    )
    pq.write_table(pa.table({"id": [1], "town": ["x"]}), paths[1])
    assert (
        refusal(files.check_parquet, ParquetFiles((paths[0], paths[1])), SCHEMA).source == "file 2 of 2 ('b.parquet')"
    )
    assert refusal(files.check_parquet, ParquetFiles((paths[1],)), SCHEMA).source == "the source"


@pytest.mark.parametrize(
    "names", [("id", "emp", "EMP", "town"), ("id", "EMP", "emp", "town"), ("ID", "id", "emp", "town")]
)
def test_a_declared_name_that_another_differs_from_by_case_only_is_refused(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    columns = {name: ["x"] if name == "town" else [1] for name in names}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    told = refusal(files.check_parquet, ParquetFiles((tmp_path / "t.parquet",)), SCHEMA)
    assert "that is unique when case is ignored" in told.problem
    pq.write_table(pa.table({"id": [1], "emp": [1], "town": ["x"], "a": [1], "A": [1]}), tmp_path / "t.parquet")
    files.check_parquet(ParquetFiles((tmp_path / "t.parquet",)), SCHEMA)


def test_columns_in_names_of_folders_are_those_that_are_declared(tmp_path: Path) -> None:
    path = tmp_path / "town=x" / "year=2024" / "a.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1], "emp": [1], "YEAR": [5]}), path)
    source = ParquetFiles((path,), folder=tmp_path)
    assert files.named_by_folders(source, SCHEMA) == ("town",)
    files.check_parquet(source, SCHEMA)
    both = Schema.of(unit="id", columns={"year": "text"})
    assert "the names of folders hold it, and the source holds it too" in str(
        refusal(files.check_parquet, source, both)
    )


# Arrow files.


def arrow(folder: Path, name: str, **columns: Any) -> Path:
    table = pa.table(columns)
    with pa.ipc.new_file(str(folder / f"{name}.arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=1)
    return folder / f"{name}.arrow"


def test_arrow_files_of_the_same_columns_come_batch_by_batch(tmp_path: Path) -> None:
    towns = pa.array(["a", "b"]).dictionary_encode()
    one = arrow(tmp_path, "one", other=[0, 0], id=[1, 2], emp=[3, 4], town=towns)
    two = arrow(tmp_path, "two", id=[5], emp=[6], town=pa.array(["c"]).dictionary_encode(), more=[True])
    parts = list(files.arrow_batches(ArrowFiles((one, two)), SCHEMA, {}))
    assert [part.num_rows for part in parts] == [0, 1, 1, 1]
    assert pa.concat_tables(parts).to_pydict() == {"id": [1, 2, 5], "emp": [3, 4, 6], "town": ["a", "b", "c"]}
    for wrong, told in (
        (arrow(tmp_path, "other", id=[5], emp=[6.0], town=["c"]), "its files have different columns"),
        (arrow(tmp_path, "none", id=[5], emp=[6]), "it has no column town"),
    ):
        for paths in ((one, wrong), (wrong, one), (one, two, wrong)):
            assert told in str(refusal(files.arrow_head, ArrowFiles(paths), SCHEMA))


# CSV that is not UTF-8.


def csv(folder: Path, *texts: str, encoding: str = "utf-16", **options: Any) -> CsvFiles:
    paths = [folder / f"{place}.csv" for place in range(len(texts))]
    for path, text in zip(paths, texts):
        path.write_bytes(text.encode(encoding))
    return CsvFiles(tuple(paths), encoding=encoding, **options)


def rows(source: CsvFiles) -> list[tuple[Any, ...]]:
    found = pa.concat_tables(files.text_batches(source, SCHEMA, {}))
    return list(zip(*(found.column(name).to_pylist() for name in ("id", "emp", "town"))))


def test_csv_of_another_encoding_comes_as_text_without_its_first_lines(tmp_path: Path) -> None:
    first = 'id;x;emp;town\n1;;5;"a\nb"\n2;q;"";NULL\n'
    source = csv(tmp_path, first, "id;x;emp;town\n3;z; 7 ;\n", delimiter=";", decimal=",")
    assert rows(source) == [("1", "5", "a\nb"), ("2", None, "NULL"), ("3", " 7 ", None)]
    assert files.text_columns(source, SCHEMA) == dict.fromkeys(
        ("id", "emp", "town"), StorageType("text", comma=True, untyped=True)
    )
    plain = csv(tmp_path, "id,emp,town\n1,2,x\n")
    assert files.text_columns(plain, SCHEMA)["emp"] == StorageType("text", untyped=True)
    assert "no column town" in str(refusal(files.text_columns, csv(tmp_path, "id,emp,city\n"), SCHEMA))


def test_csv_of_another_encoding_comes_in_blocks_of_which_only_the_first_has_names(tmp_path: Path) -> None:
    lines = [f"{number},{number % 9},{'t' * 90}" for number in range(12_000)]
    source = csv(tmp_path, "\n".join(["id,emp,town", *lines, ""]), encoding="latin-1")
    parts = list(files.text_batches(source, SCHEMA, {}))
    assert len(parts) > 2
    assert parts[0].num_rows == 0
    assert pa.concat_tables(parts).column("id").to_pylist() == [str(number) for number in range(12_000)]


def test_a_torn_line_of_another_encoding_is_told_by_its_number(tmp_path: Path) -> None:
    source = csv(tmp_path, "id,emp,town\n1,2,x\n2,3\n", encoding="cp1252")
    told = refusal(lambda: list(files.text_batches(source, SCHEMA, {})))
    assert "line 3" in told.problem
    assert "Nothing was spent" in str(told)


# Quotes.


@pytest.mark.parametrize(("text", "ends"), [("", 0), ("a", 0), ("a\n", 1), ("a\r\nb\r\n", 2), ("a\rb\n\r", 3)])
def test_ends_of_lines_are_counted(text: str, ends: int) -> None:
    assert files._ends(text) == ends


@pytest.mark.parametrize(
    ("text", "clear"),
    [("a\nb", 2), ("ab", 0), ("a\rb\nc", 4), ("a\nb\rc", 4), ('"a\n"\nb', 5), ('a\n"b', 2), ('"a" \n', 0)],
)
def test_a_text_is_clear_as_far_as_its_whole_lines(text: str, clear: int) -> None:
    lines, _ = files._grammar(",")
    assert files._clear(text, lines) == clear


@pytest.mark.parametrize("letters", [20, 21])
def test_a_record_may_be_so_long_and_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, letters: int) -> None:
    """A record is looked at whenever a block is read; the last block is its end."""
    monkeypatch.setattr(files, "BLOCK", letters)
    monkeypatch.setattr(files, "LONGEST", 20)
    (tmp_path / "t.csv").write_text('"' + "x" * (letters - 1) + '"\n')
    source = CsvFiles((tmp_path / "t.csv",))
    if letters == 20:
        files.check_quotes(source)
    else:
        assert "line 1 has a quote" in refusal(files.check_quotes, source).problem


def test_a_file_with_an_unclear_quote_is_told_by_its_number_only_among_several(tmp_path: Path) -> None:
    for name, text in (("a", '"1"\n'), ("b", 'x\n"1" \n')):
        (tmp_path / f"{name}.csv").write_text(text)
    both = CsvFiles((tmp_path / "a.csv", tmp_path / "b.csv"))
    assert refusal(files.check_quotes, both).problem.startswith("line 2 of file 2 has a quote")
    assert refusal(files.check_quotes, CsvFiles((tmp_path / "b.csv",))).problem.startswith("line 2 has a quote")
    assert (files.BLOCK, files.LONGEST) == (2**20, 2**25)


@pytest.mark.parametrize(("delimiter", "clear"), [("\t", True), (",", False), (";", False)])
def test_a_tab_before_a_quote_is_a_blank_unless_it_separates(tmp_path: Path, delimiter: str, clear: bool) -> None:
    (tmp_path / "t.csv").write_text('a\t"b"\n')
    source = CsvFiles((tmp_path / "t.csv",), delimiter)
    files.check_quotes(source)
    (tmp_path / "t.csv").write_text(f'a{delimiter}\t"b"\n')
    if clear:
        files.check_quotes(source)
    else:
        assert "line 1" in refusal(files.check_quotes, source).problem


# Frames without types.


@pytest.mark.parametrize(("step", "digits"), [("1", 0), (f"1/{10**17}", 17), (f"1/{10**18}", None), ("1/7", None)])
def test_a_step_has_up_to_seventeen_decimal_places(step: str, digits: int | None) -> None:
    measure: Any = SimpleNamespace(step=Fraction(step))
    assert files._digits(measure) == digits


MIXED = Schema.of(
    unit="id",
    measures={"pay": Measure.of("pay", step="0.25"), "third": Measure.of("third", step="1/3")},
    columns={"size": "integer", "town": "text", "day": Column(name="day", type="date")},
)


def declared(array: Any, name: str) -> pa.Array:
    return files._declared_array(array, name, MIXED)


def test_a_column_has_a_type_that_does_not_depend_on_its_values() -> None:
    nulls = {name: str(declared(pa.nulls(2), name).type) for name in ("id", "pay", "size", "town", "day")}
    assert nulls == {"id": "int64", "pay": "int64", "size": "int64", "town": "string", "day": "date32[day]"}
    assert str(declared(pa.array([1.0, None]), "size").type) == "int64"
    assert str(declared(pa.array([1.0, None], pa.float32()).dictionary_encode(), "size").type) == "int64"
    assert str(declared(pa.array([1.0, None]), "pay").type) == "double"
    assert str(declared(pa.array([1.0]), "id").type) == "double"
    assert str(declared(pa.array([1, 2], pa.int8()), "size").type) == "int8"
    amounts = pa.array([Decimal("1.5")])
    assert str(declared(amounts, "pay").type) == "decimal128(35, 2)"
    assert str(declared(amounts, "third").type) == str(amounts.type)
    assert str(declared(amounts, "id").type) == str(amounts.type)
    for array, name, told in ((pa.array([1.5]), "size", "integer"), (pa.array([Decimal("0.125")]), "pay", "lattice")):
        with pytest.raises(DataError, match=told):
            declared(array, name)


def test_a_frame_is_read_by_its_declared_columns_alone() -> None:
    frame = pd.DataFrame({"id": [1, 2], "emp": [1.0, None], "town": ["a", None], 7: [1, 2]})
    found = files._table(frame, SCHEMA)
    assert found.column_names == list(SCHEMA.names())
    assert found.to_pydict() == {"id": [1, 2], "emp": [1.0, None], "town": ["a", None]}
    assert files.is_untyped(frame)
    assert not files.is_untyped(frame["id"])
    assert not files.is_untyped(pa.table({"a": [1]}))
    chunked = {
        "id": pa.chunked_array([[1], [2]]),
        "emp": pa.chunked_array([], pa.int64()),
        "town": pa.array(["x", "y"]),
    }
    assert "different lengths" in refusal(files._table, chunked, SCHEMA).problem
    chunked["emp"] = pa.chunked_array([[3], [4]])
    assert files._table(chunked, SCHEMA).to_pydict() == {"id": [1, 2], "emp": [3, 4], "town": ["x", "y"]}


def test_columns_of_arrow_s_null_type_get_their_declared_type_only_if_declared() -> None:
    table = pa.table({"other": pa.nulls(2), "id": [1, 2], "emp": pa.nulls(2), "town": pa.nulls(2)})
    found = files.open_typed(table, SCHEMA, open_source).table
    assert [str(each) for each in found.schema.types] == ["null", "int64", "int64", "string"]
    assert found.column_names == table.column_names
    assert problems(table, SCHEMA)[0] == {("emp", "is NULL"): 2, ("town", "is NULL"): 2}


# Types that a source declares.

TYPED = pa.table(
    {
        "id": [1],
        "a": ["x"],
        "b": pa.array(["x"], pa.large_string()),
        "c": pa.array(["x"], pa.string_view()),
        "d": pa.array([1], pa.uint8()),
        "e": [True],
        "f": [datetime.date(2024, 1, 1)],
        "g": pa.array([0], pa.timestamp("s")),
        "h": pa.array([0], pa.timestamp("s", "UTC")),
        "i": [1.5],
        "j": [b"x"],
        "k": pa.array(["x"]).dictionary_encode(),
    }
)
KINDS = dict.fromkeys("abck", "text") | {"d": "integer", "e": "boolean", "f": "date", "g": "date"}


def test_columns_are_inferred_from_the_types_a_source_declares(tmp_path: Path) -> None:
    assert inferred_columns(Frame(TYPED), {"id", None}) == KINDS
    with pa.ipc.new_file(str(tmp_path / "t.arrow"), TYPED.schema) as writer:
        writer.write_table(TYPED)
    assert inferred_columns(ArrowFiles((tmp_path / "t.arrow",)), {"id"}) == KINDS
    path = tmp_path / "p" / "d=5" / "year=2024" / "t.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(TYPED.drop_columns(["c"]), path)
    found = inferred_columns(ParquetFiles((path,), folder=tmp_path / "p"), {"id", "a"})
    assert found == {name: kind for name, kind in KINDS.items() if name not in "ac"} | {"year": "text"}
    with pytest.raises(ParameterError, match="'n' has no type of its own"):
        inferred_columns(Frame(pa.table({"id": [1], "n": pa.nulls(1)})), {"id"})
    assert inferred_columns(Frame(pa.table({"id": [1], "n": pa.nulls(1)})), {"id", "n"}) == {}


@pytest.mark.parametrize(
    ("source", "word"),
    [
        (CsvFiles((Path("t.csv"),)), "for CSV"),
        (StatFiles((Path("t.dta"),)), "SAS, Stata and SPSS"),
        (Postgres("postgresql://host/db", table="t"), "PostgreSQL"),
        (Database("t.db", table="t"), "a database file"),
        (object(), "a relation, a table's name"),
        ({"id": [1], "town": ["x"]}, "a pandas frame or a mapping"),
    ],
    ids=lambda given: given if isinstance(given, str) else type(given).__name__,
)
def test_columns_of_other_sources_must_be_declared(source: Any, word: str) -> None:
    with pytest.raises(ParameterError, match="must be declared for") as refused:
        inferred_columns(source, {"id"})
    assert word in str(refused.value)
    shown = '"town": "text"' if isinstance(source, dict) else '"NAME": "text"'
    assert f"Give columns={{{shown}}}" in str(refused.value)


def test_a_frame_of_an_id_and_measures_needs_no_columns() -> None:
    assert inferred_columns({"id": [1], "emp": [2]}, {"id", "emp", None}) == {}  # type: ignore[arg-type]
    assert inferred_columns(pd.DataFrame({"id": [1]}), {"id", "emp"}) == {}  # type: ignore[arg-type]
    wide = {f"column_{number}": [1] for number in range(100)}
    with pytest.raises(ParameterError) as refused:
        inferred_columns(wide, {"column_0"})  # type: ignore[arg-type]
    told = str(refused.value).partition("Give columns={")[2].partition("}, each")[0]
    assert len(told) == 300
    assert told.startswith('"column_1": "text", "column_2": "text"')
