"""Tables of databases and relations, and their copies, by hand: kinds of values, parts, and what is left of a copy."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import recordwise as rw
from build import exact_totals
from engines.copied_sources import problems
from engines.plain_mechanism import Plain
from recordwise.engines import DuckDB
from recordwise.engines.compile.records import StorageType
from recordwise.engines.duckdb import engine as binding
from recordwise.engines.duckdb.connection import Connection
from recordwise.engines.sources import columns, copy, database
from recordwise.engines.sources.columns import csv_options, declared_columns, look_at_columns
from recordwise.errors import DataError, EngineError, RecordwiseError, SourceError
from recordwise.plan import Column, Keys, Measure, Plan, Schema
from recordwise.plan.query import query
from recordwise.plan.sources import ArrowFiles, CsvFiles, Database, Frame, ParquetFiles, Relation, StatFiles

M = Plain()
SCHEMA = Schema.of(unit="id", measures={"emp": 1}, columns={"town": "text", "size": "integer"})
ROWS = {"id": [1, 2, 3], "emp": [5, 6, 7], "town": ["a", "b", "a"], "size": [1, 2, 3]}


def sqlite(path: Path, rows: Sequence[Sequence[Any]], names: str = "id, emp, town, size") -> Database:
    with closing(sqlite3.connect(path)) as made:
        made.execute(f"CREATE TABLE t ({names})")
        made.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows)
        made.commit()
    return Database(path, table="t")


def refusal(call: Any, *given: Any) -> RecordwiseError:
    with pytest.raises(RecordwiseError) as refused:
        call(*given)
    return refused.value


# Databases.


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        (0, 2.5, ("id", database.NO_ID)),
        (0, b"2", ("id", database.NO_ID)),
        (0, "2", ("id", database.MIXED_IDS)),
        (1, b"6", ("emp", "holds bytes")),
        (2, 6, ("town", database.NO_TEXT)),
        (2, 6.5, ("town", database.NO_TEXT)),
        (2, b"6", ("town", database.NO_TEXT)),
        (3, b"6", ("size", "holds bytes")),
    ],
)
def test_a_value_of_sqlite_of_another_kind_is_counted_alone(
    tmp_path: Path, place: int, value: Any, told: tuple[str, str]
) -> None:
    rows = [[1, 5, "a", 1], [2, 6, "b", 2], [3, "7", "a", "3"], [4, 8.0, None, 4.0]]
    rows[1][place] = value
    schema = Schema.of(
        unit="id",
        measures={"emp": 1},
        columns={"town": Column(name="town", null="category"), "size": "integer"},
    )
    assert problems(sqlite(tmp_path / "t.db", rows), schema)[0] == {told: 1}


def test_ids_of_sqlite_may_all_be_texts_or_all_be_numbers() -> None:
    counts = {"integer": 0, "real": 0, "text": 0, "blob": 0}
    assert database._id_problem(counts | {"integer": 5})[1] == 0
    assert database._id_problem(counts | {"text": 5})[1] == 0
    assert database._id_problem(counts | {"text": 5, "integer": 2}) == (database.MIXED_IDS, 2)
    assert database._id_problem(counts | {"text": 5, "real": 2}) == (database.NO_ID, 2)
    assert database._id_problem(counts | {"blob": 3, "real": 2}) == (database.NO_ID, 5)
    assert database._id_problem(counts | {"blob": 3}) == (database.NO_ID, 3)


def test_dates_and_written_numbers_of_sqlite_must_be_texts(tmp_path: Path) -> None:
    schema = Schema.of(
        unit="id",
        measures={"emp": Measure.of("emp", number={"thousands": ","})},
        columns={"day": Column(name="day", type="date")},
    )
    good = sqlite(tmp_path / "good.db", [(1, "1,000", "2024-01-31")], "id, emp, day")
    assert problems(good, schema)[0] == {}
    bad = sqlite(tmp_path / "bad.db", [(1, 1000, 20240131), (2, 1.5, b"x"), (3, "5", "2024-01-31")], "id, emp, day")
    assert problems(bad, schema)[0] == {("emp", database.NO_TEXT): 2, ("day", database.NO_TEXT): 2}


def test_whole_floats_of_sqlite_are_whole_numbers_only_in_columns_of_integers(tmp_path: Path) -> None:
    source = sqlite(tmp_path / "t.db", [(1, 0.1 + 0.2, "a", 4.0), (2, 1e22, "b", 4.5)])
    found = pa.concat_tables(database.database_batches(source, SCHEMA, {}))
    assert found["size"].to_pylist() == ["4", "4.5"]
    assert [float(text) for text in found["emp"].to_pylist()] == [0.1 + 0.2, 1e22]
    assert found["id"].to_pylist() == ["1", "2"]


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_databases_come_in_parts_of_which_the_first_is_empty(
    tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BATCH_ROWS", rows)
    own = sqlite(tmp_path / "t.db", [(number, 1, "a", 1) for number in range(5)])
    parts = list(database.database_batches(own, SCHEMA, {}))
    assert [part.num_rows for part in parts] == [0, *[rows] * (5 // rows), *([5 % rows] if 5 % rows else [])]
    assert pa.concat_tables(parts)["id"].to_pylist() == list("01234")


def duckdb_table(path: Path, table: pa.Table) -> Database:
    with duckdb.connect(str(path)) as made:
        made.register("given", table)
        made.execute("CREATE TABLE t AS SELECT * FROM given")
    return Database(path, table="t")


def test_a_database_without_records_has_its_columns_all_the_same(tmp_path: Path) -> None:
    nobody = pa.table(ROWS).slice(0, 0)
    sources = [duckdb_table(tmp_path / "d.duckdb", nobody), sqlite(tmp_path / "s.db", [(1, 1, "a", 1)])]
    with closing(sqlite3.connect(tmp_path / "s.db")) as made:
        made.execute("DELETE FROM t")
        made.commit()
    for source in sources:
        with DuckDB(source, SCHEMA) as engine:
            (found,) = engine.totals(Plan(schema=SCHEMA, queries=(query().sum("emp", M).count(M),)))
        assert exact_totals(found) == [[0], [0]]


def test_a_file_is_a_database_by_its_first_letters(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for start, told in (
        (b"SQLite format 3\x00", True),
        (b"SQLite format 3\x01", None),
        (b"12345678DUCK", False),
        (b"1234567DUCK", None),
        (b"123456789DUCK", None),
        (b"", None),
    ):
        path.write_bytes(start + b"rest" if start[-4:] != b"DUCK" else start)
        if told is None:
            assert "no database of DuckDB or SQLite" in str(refusal(database._is_sqlite, path))
        else:
            assert database._is_sqlite(path) == told
    path.unlink()
    assert "cannot be read" in str(refusal(database._is_sqlite, path))


def test_tables_of_sqlite_have_no_schema_but_main(tmp_path: Path) -> None:
    sqlite(tmp_path / "t.db", [(1, 1, "a", 1)])
    for name in ("t", "main.t"):
        assert list(database.table_types(Database(tmp_path / "t.db", table=name))) == ["id", "emp", "town", "size"]
    for name in ("other.t", "nothing", "main.nothing"):
        assert "no such table" in str(refusal(database.table_types, Database(tmp_path / "t.db", table=name)))
    assert set(database.table_types(Database(tmp_path / "t.db", table="t")).values()) == {pa.null()}
    held = database.database_head(Database(tmp_path / "t.db", table="t"), SCHEMA)
    assert held == dict.fromkeys(SCHEMA.names(), StorageType("text", untyped=True))


def test_a_database_in_use_or_damaged_is_told_without_its_text(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    path.write_bytes(b"SQLite format 3\x00SECRET" * 100)
    assert str(refusal(database.table_types, Database(path, table="t"))).count("SECRET") == 0
    assert database.FAILED in str(refusal(database.table_types, Database(path, table="t")))
    path.write_bytes(b"12345678DUCKSECRET" * 300)
    assert database.FAILED in str(refusal(database.table_types, Database(path, table="t")))
    with pytest.raises(DataError, match="'town' holds values that are no text"):
        database._texts("town", ["a", b"\xff"])


def test_databases_are_opened_to_be_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with database._sqlite(sqlite(tmp_path / "t.db", [(1, 1, "a", 1)])) as opened:
        asked = ("query_only", "trusted_schema")
        assert [opened.execute(f"PRAGMA {name}").fetchone() for name in asked] == [(1,), (0,)]
        assert opened.in_transaction
    held = duckdb_table(tmp_path / "t.duckdb", pa.table(ROWS))
    found = {name: str(kind) for name, kind in database.table_types(held).items()}
    assert found == {"id": "int64", "emp": "int64", "town": "string", "size": "int64"}
    given: list[Any] = []
    real = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *path, **how: given.append(how) or real(*path, **how))
    with database._duckdb(held) as relation:
        assert relation.columns == list(ROWS)
    assert given[0]["read_only"]
    assert not given[0]["config"]["enable_external_access"]


# Copies.


def test_each_source_is_copied_or_read_in_place(tmp_path: Path) -> None:
    path = (tmp_path / "t",)
    in_place = [CsvFiles(path), ParquetFiles(path), Frame(pa.table(ROWS))]
    assert [copy.copy_method(source) for source in in_place] == [None] * 3
    relation = duckdb.connect().from_arrow(pa.table(ROWS))
    copied = [
        (CsvFiles(path, encoding="cp1252"), "text_columns"),
        (ArrowFiles(path), "arrow_head"),
        (StatFiles(path), "stat_columns"),
        (Database(path[0], table="t"), "database_head"),
        (Relation(relation), "_relation_head"),
        (rw.sources.Postgres("postgresql://host/db", table="t"), "postgres_columns"),
    ]
    for source, name in copied:
        method = copy.copy_method(source)
        assert method is not None
        assert method.columns.__name__ == name


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_a_relation_comes_in_parts_with_its_declared_columns(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy, "BATCH_ROWS", rows)
    with duckdb.connect() as theirs:
        theirs.register("given", pa.table({"other": [0] * 3, **ROWS}))
        source = Relation(theirs.table("given"))
        assert copy._relation_head(source, SCHEMA).num_rows == 0
        parts = list(copy._relation_batches(source, SCHEMA, {}))
        assert parts[0].num_rows == 0
        assert pa.concat_tables(parts).to_pydict() == {name: ROWS[name] for name in SCHEMA.names()}
        assert "no column empl" in str(refusal(copy._relation_head, source, Schema.of(unit="id", measures={"empl": 1})))


def names(connection: Connection) -> set[str]:
    held = "SELECT table_name FROM duckdb_tables() UNION SELECT view_name FROM duckdb_views() WHERE NOT internal"
    return {name for (name,) in connection.duckdb.execute(held).fetchall()}


def test_parts_become_one_table_and_nothing_else_stays() -> None:
    made = Connection(files=(), memory_limit="100MB", threads=1)
    try:
        copy.fill(
            made.duckdb,
            iter([pa.table({"a": pa.array([], pa.int64())}), pa.table({"a": [1, 2]}), pa.table({"a": [3]})]),
        )
        assert sorted(made.duckdb.execute("SELECT a FROM source").fetchall()) == [(1,), (2,), (3,)]
        assert names(made) == {"source"}
        made.duckdb.execute("CREATE TEMPORARY VIEW records AS SELECT * FROM source")
        made.duckdb.execute("CREATE TABLE collapsed AS SELECT 1")
        copy.forget_copy(made)
        assert names(made) == set()
    finally:
        made.close()


@pytest.mark.parametrize("error", [duckdb.Error("SECRET"), SourceError(source="x", problem="y"), KeyboardInterrupt()])
def test_of_a_copy_that_fails_nothing_stays(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def parts(*_: Any) -> Iterator[pa.Table]:
        yield pa.table({"a": [1]})
        raise error

    monkeypatch.setattr(copy, "method_of", lambda kind: copy.CopyMethod(lambda *_: {}, parts))
    made = Connection(files=(), memory_limit="100MB", threads=1)
    try:
        with pytest.raises(EngineError if isinstance(error, duckdb.Error) else type(error)) as failed:
            copy.copy_records(made, object(), SCHEMA, {})
        assert "SECRET" not in str(failed.value)
        assert names(made) == set()
    finally:
        made.close()


def test_a_part_that_does_not_fit_the_first_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [pa.table({"a": [1]}), pa.table({"a": ["SECRET"]})]
    monkeypatch.setattr(copy, "method_of", lambda kind: copy.CopyMethod(lambda *_: {}, lambda *_: iter(parts)))
    made = Connection(files=(), memory_limit="100MB", threads=1)
    try:
        with pytest.raises(EngineError) as failed:
            copy.copy_records(made, object(), SCHEMA, {})
        assert "SECRET" not in str(failed.value)
        with pytest.raises(duckdb.CatalogException):
            made.duckdb.table(copy.INCOMING)
        assert names(made) == set()
    finally:
        made.close()


def test_what_is_copied_may_lie_outside_the_files_that_are_read(tmp_path: Path) -> None:
    """A copy needs no access to files; what is read in place has access to its own files only."""
    pq.write_table(pa.table(ROWS), tmp_path / "t.parquet")
    for source, allowed in (
        (sqlite(tmp_path / "t.db", [(1, 1, "a", 1)]), []),
        (tmp_path / "t.parquet", [str(tmp_path / "t.parquet")]),
    ):
        with DuckDB(source, SCHEMA) as engine:
            found = engine._connection.duckdb.execute("SELECT current_setting('allowed_paths')").fetchone()
        assert found == (allowed,)


# Binding.


def test_a_binding_that_fails_closes_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []
    real = Connection.close
    monkeypatch.setattr(Connection, "close", lambda self: closed.append(True) or real(self))
    assert "no column emp" in str(refusal(DuckDB, pa.table({"id": [1], "town": ["a"], "size": [1]}), SCHEMA))
    assert closed == [True]
    monkeypatch.setattr(binding, "_bind", lambda *_: 1 / 0)
    told = refusal(DuckDB, pa.table(ROWS), SCHEMA)
    assert (type(told), "ZeroDivisionError" in str(told)) == (EngineError, True)


def test_a_table_with_another_column_whose_name_differs_by_case_only_is_refused(tmp_path: Path) -> None:
    other = {"EMP": [100, 100, 100]}
    for both in (pa.table(ROWS | other), pa.table(other | ROWS)):
        assert "the table was refused: it has no column emp that is unique" in str(refusal(DuckDB, both, SCHEMA))
        feather.write_feather(both, str(tmp_path / "t.arrow"))
        assert "t.arrow was refused: it has no column emp that is unique" in str(
            refusal(DuckDB, tmp_path / "t.arrow", SCHEMA)
        )
    with DuckDB(pa.table(ROWS | {"OTHER": [1, 1, 1], "other": [2, 2, 2]}), SCHEMA) as engine:
        assert exact_totals(engine.totals(Plan(schema=SCHEMA, queries=(query().sum("emp", M),)))[0]) == [[18]]


def test_a_comma_is_a_decimal_sign_only_where_it_is_declared(tmp_path: Path) -> None:
    schema = Schema.of(unit="id", measures={"emp": "0.5"})
    (tmp_path / "t.csv").write_text("id;emp\n1;1,5\n")
    (tmp_path / "u.csv").write_text("id;emp\n1;1.5\n")
    for name, decimal, wrong in (("t", ",", False), ("t", ".", True), ("u", ",", True), ("u", ".", False)):
        source = rw.sources.Csv(tmp_path / f"{name}.csv", delimiter=";", decimal=decimal)
        assert bool(problems(source, schema)[0]) == wrong


def test_rows_that_were_refused_may_be_corrected_when_they_are_joined() -> None:
    schema = Schema.of(unit="id", measures={"emp": 1}, collapse={"emp": "sum"})
    with duckdb.connect() as theirs:
        theirs.execute("CREATE TABLE t AS SELECT * FROM (VALUES (1, 5), (1, 4), (2, -1)) AS rows(id, emp)")
        with DuckDB(theirs.table("t"), schema) as engine:
            with pytest.raises(DataError, match="negative"):
                engine.validate()
            assert names(engine._connection) == set()
            theirs.execute("UPDATE t SET emp = 1 WHERE emp < 0")
            (found,) = engine.totals(Plan(schema=schema, queries=(query().sum("emp", M).count(M),)))
    assert exact_totals(found) == [[10], [2]]


def test_lists_of_codes_are_lent_before_the_first_record_is_read() -> None:
    levels = rw.Hierarchy.of(
        "place", {"state": ["x", "y"], "town": ["a", "b"]}, levels=["state", "town"], source="public: a list"
    )
    schema = Schema.of(unit="id", measures={"emp": 1}, columns={"town": "text"}, hierarchies=[levels])
    plan = Plan(schema=schema, queries=(query().group_by("state", keys=Keys.of({"state": ["x", "y"]})).sum("emp", M),))
    with duckdb.connect() as theirs:
        for source in (pa.table(ROWS), theirs.from_arrow(pa.table(ROWS))):
            with DuckDB(source, schema) as engine:
                assert exact_totals(engine.totals(plan)[0]) == [[12, 6]]


# What a first plan is told.


def test_partitions_and_encodings_are_told_to_a_first_plan(tmp_path: Path) -> None:
    path = tmp_path / "p" / "year=2024" / "a.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1], "pay": [0.5]}), path)
    found = declared_columns(tmp_path / "p")
    assert [(each.name, each.kind) for each in found] == [("id", "integer"), ("pay", "number"), ("year", "text")]
    assert [(each.name, each.step) for each in look_at_columns(tmp_path / "p")] == [
        ("id", ""),
        ("pay", "0.1"),
        ("year", ""),
    ]
    (tmp_path / "t.tsv").write_text("a\tb\n1\t2\n")
    assert csv_options(tmp_path / "t.tsv") == {}
    assert csv_options(rw.sources.Csv(tmp_path / "t.tsv", encoding="cp1252")) == {"encoding": "cp1252"}


def test_texts_of_sqlite_suggest_their_types(tmp_path: Path) -> None:
    source = sqlite(tmp_path / "t.db", [(1000 + n, n / 4, "x", 1.0) for n in range(columns.FEWEST_CODED)])
    found = {each.name: (each.kind, each.step, each.coded) for each in look_at_columns(source)}
    assert found == {
        "id": ("integer", "", True),
        "emp": ("number", "0.01", False),
        "town": ("text", "", False),
        "size": ("integer", "", False),
    }


@pytest.mark.parametrize(("least", "coded"), [(99, False), (100, True), (-99, True), (9999, True)])
def test_whole_numbers_of_three_digits_or_more_may_be_codes(tmp_path: Path, least: int, coded: bool) -> None:
    pq.write_table(pa.table({"a": [least] * columns.FEWEST_CODED}), tmp_path / "t.parquet")
    (found,) = look_at_columns(tmp_path / "t.parquet")
    assert found.coded == coded
    pq.write_table(pa.table({"a": [least] * (columns.FEWEST_CODED - 1) + [10 * least]}), tmp_path / "t.parquet")
    assert not look_at_columns(tmp_path / "t.parquet")[0].coded


def test_a_look_at_records_that_cannot_be_read_shows_none(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,emp\n1,2\n3,SECRET,5\n")
    told = refusal(lambda: look_at_columns(tmp_path / "t.csv", headed=True))
    assert "SECRET" not in str(told)
    assert "Nothing was spent" in str(told)


def test_a_first_line_is_no_header_unless_the_owner_says_so(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("id;pay;ort\n1;2.5;Köln\n2;3;Ulm\n".encode("cp1252"))
    source = rw.sources.Csv(tmp_path / "t.csv", encoding="cp1252", delimiter=";")
    for look in (look_at_columns, declared_columns):
        assert "nothing in the file says that it is no record" in str(refusal(look, source))
        assert len(look(source, headed=True)) == 3
    found = {each.name: (each.kind, each.step) for each in look_at_columns(source, headed=True)}
    assert found == {"id": ("integer", ""), "pay": ("number", "0.1"), "ort": ("text", "")}


def test_numbers_that_parquet_holds_as_text_have_a_point(tmp_path: Path) -> None:
    schema = Schema.of(unit="id", measures={"emp": "0.5"})
    for text, wrong in (("1.5", {}), ("1,5", {("emp", "cannot be read as a number"): 1})):
        pq.write_table(pa.table({"id": ["1.0"], "emp": [text]}), tmp_path / "t.parquet")
        assert problems(tmp_path / "t.parquet", schema)[0] == wrong
