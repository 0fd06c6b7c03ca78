"""What a source is refused for, each reason alone, next to what is just accepted: names, first lines, types, extras and engines."""

import importlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engines.refused import refusal
from recordwise.engines import DuckDB, engine, registry
from recordwise.engines.compile.records import StorageType
from recordwise.engines.engine import (
    MOST_NAMED,
    check_header,
    check_present,
    check_types,
    load_optional,
    missing_extra,
    repeats,
    watched_files,
)
from recordwise.engines.registry import ENGINES, FITS, engine_kind, open_engine, opened_source, source_state
from recordwise.errors import ExtraError, ParameterError
from recordwise.plan import Schema
from recordwise.plan.schema import Measure
from recordwise.plan.sources import Database, ParquetFiles, Postgres, StatFiles

SCHEMA = Schema.of(unit="id", measures={"emp": 1}, columns={"county": "text"})


# Names.


def test_a_source_with_all_declared_names_among_others_is_accepted() -> None:
    check_present(["a", "b"], ["c", "b", "a"])
    check_present([], [])


def test_missing_names_are_told_with_the_nearest_to_the_first_of_them() -> None:
    told = refusal(check_present, ["id", "county", "emp"], ["id", "countee", "employment"])
    assert told.problem == "it has no column county, emp: did you mean 'countee'?"
    assert (told.source, told.advice) == ("the source", "Its columns: id, countee, employment.")
    assert refusal(check_present, ["id"], [], source="file 2").advice == "Its columns: none."
    assert refusal(check_present, ["id"], [], source="file 2").source == "file 2"


@pytest.mark.parametrize(("more", "end"), [(0, "."), (1, " and 1 more."), (7, " and 7 more.")])
def test_so_many_names_are_listed_and_the_others_counted(more: int, end: str) -> None:
    names = [f"c_{number}" for number in range(MOST_NAMED + more)]
    assert MOST_NAMED == 40
    assert refusal(check_present, ["zzz"], names).advice == f"Its columns: {', '.join(names[:40])}{end}"


def test_names_that_look_like_values_are_not_shown() -> None:
    told = refusal(check_present, ["id"], ["17", "Acme"])
    assert "Acme" not in str(told)


@pytest.mark.parametrize(
    ("declared", "line", "shown"),
    [
        ("abcd", "ABxy", True),
        ("abcd", "axyz", False),
        ("abc", "axyz", False),
        ("abcde", "abxyz", False),
        ("abcde", "abcxy", True),
        ("ab", "axyz", True),
    ],
)
def test_a_first_line_is_shown_only_if_it_holds_half_of_the_declared_names(
    declared: str, line: str, shown: bool
) -> None:
    told = refusal(check_header, list(declared), list(line))
    assert (told.advice == f"Its columns: {', '.join(line)}.") == shown
    assert ("may be a record" in told.advice) != shown
    if not shown:
        missing = ", ".join(name for name in declared if name not in line)
        assert told.problem == f"its first line has no column {missing}"
    check_header(list(declared), [*line, *declared])
    check_header(list("a"), list("bcda"))


# Repeated ids and types.


def test_repeated_ids_are_told_with_both_ways_out() -> None:
    assert repeats(SCHEMA, 0) == []
    (told,) = repeats(SCHEMA, 3)
    assert (told.column, told.count) == ("id", 3)
    assert 'collapse = { emp = "sum", county = "same" }' in told.advice
    assert 'unit = ["id", "county"]; then only each combination is protected, not id' in told.advice
    derived = {"emp": Measure.of("emp"), "twice": Measure.of("twice", derive="2 * emp")}
    paired = Schema.of(unit=["id", "year"], measures=derived, columns={"year": "integer", "state": "text"})
    (told,) = repeats(paired, 1)
    assert 'collapse = { emp = "sum", state = "same" }' in told.advice
    assert 'unit = ["id", "year", "state"]' in told.advice
    (told,) = repeats(Schema.of(unit="id"), 1)
    assert 'unit = ["id", "ANOTHER"]' in told.advice


def stored(**kinds: Any) -> dict[str, StorageType]:
    return {name: StorageType(kind) for name, kind in ({"id": "other"} | kinds).items()}


def test_columns_of_wrong_types_are_told_alone_or_together() -> None:
    check_types(SCHEMA, stored(emp="integer", county="text"))
    one = refusal(check_types, SCHEMA, stored(emp="zoned", county="text"))
    assert (one.source, one.advice) == ("column 'emp'", "Store the local day or time, without a zone.")
    assert one.problem == "it is declared as measure but stored as a time with a time zone"
    both = refusal(check_types, SCHEMA, stored(emp="zoned", county="zoned"))
    assert both.source == "the source"
    assert both.problem == (
        "column 'emp': it is declared as measure but stored as a time with a time zone; "
        "column 'county': it is declared as text but stored as a time with a time zone"
    )
    assert both.advice == one.advice
    mixed = refusal(check_types, SCHEMA, stored(emp="boolean", county="zoned"))
    assert mixed.advice == one.advice


@pytest.mark.parametrize(
    ("digits", "scale", "accepted"), [(35, 2, True), (36, 2, False), (37, 0, True), (38, 0, False)]
)
def test_a_decimal_is_a_measure_while_its_digits_and_its_scale_fit(digits: int, scale: int, accepted: bool) -> None:
    table = pa.table({"id": [1], "emp": pa.array([1]).cast(pa.decimal128(digits, scale)), "county": ["a"]})
    if accepted:
        with DuckDB(table, SCHEMA) as opened:
            opened.validate()
        return
    assert "stored as other" in str(refusal(DuckDB, table, SCHEMA))


# Extras.


def test_the_extra_of_a_source_is_told_only_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    server, files = Postgres("postgresql://host/db", table="t"), StatFiles((Path("t.dta"),))
    needing: dict[str, list[Any]] = {
        "postgres": [server],
        "stat": [files, "t.sas7bdat", "T.SAV", ["a.csv", "b.dta"], ("a.xpt", "b.csv")],
    }
    monkeypatch.setattr(engine, "find_spec", lambda name: object())
    for given in (*needing["postgres"], *needing["stat"], "t.csv", []):
        assert missing_extra(given) is None
    assert missing_extra("t.csv", of_engine="spark") is None
    asked: list[str] = []
    monkeypatch.setattr(engine, "find_spec", asked.append)
    for extra, sources in needing.items():
        for given in sources:
            told = missing_extra(given)
            assert told is not None
            assert told.extra == extra
    assert set(asked) == {"adbc_driver_postgresql", "pyreadstat"}
    told = missing_extra("t.dta", of_engine="spark")
    assert told is not None
    assert told.extra == "spark"
    for given in ("t.csv", ["a.csv", "b.parquet"], [], pa.table({"a": [1]})):
        assert missing_extra(given) is None


def test_a_module_that_is_not_there_is_told_by_its_extra() -> None:
    assert load_optional("json", extra="stat").dumps([1]) == "[1]"
    with pytest.raises(ExtraError, match="SAS, Stata or SPSS") as refused:
        load_optional("no_such_module_anywhere", extra="stat")
    assert refused.value.extra == "stat"


# Engines.


def test_what_one_engine_needs_is_refused_for_others_and_may_be_missing() -> None:
    table = pa.table({"id": [1], "emp": [1], "county": ["a"]})
    with open_engine("duckdb", table, SCHEMA, memory_limit="100MB", needs={"spark": None}) as opened:
        assert isinstance(opened, DuckDB)
        assert open_engine(opened, None, SCHEMA, memory_limit="100MB", needs={"spark": None}) is opened
        for engine_given in ("duckdb", opened):
            with pytest.raises(ParameterError, match="does not apply to the engine in use") as refused:
                open_engine(engine_given, table, SCHEMA, memory_limit="100MB", needs={"spark": "local[1]"})
            assert "engine='spark'" in str(refused.value)


def test_an_engine_is_told_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    own = registry.EngineKind(
        name="own", open_source=str, open=lambda *found, **more: given.append((found, more)), needs=("spark",)
    )
    monkeypatch.setitem(ENGINES, "own", own)
    open_engine("own", "t", "s", memory_limit="1MB", needs={"spark": "x", "other": None})
    assert given == [(("t", "s"), {"memory_limit": "1MB", "spark": "x"})]
    own.check()


def test_engines_are_found_by_name_and_only_spark_finds_tables_itself() -> None:
    assert engine_kind("duckdb").extra is None
    assert not engine_kind("duckdb").finds("catalog.table")
    assert engine_kind("spark").extra == "spark"
    with pytest.raises(ParameterError, match="'duck'"):
        engine_kind("duck")


def test_the_engine_of_spark_is_imported_when_it_is_named_and_nothing_else_is() -> None:
    room = importlib.import_module("recordwise.engines")
    assert room.__getattr__("Spark").dialect == "spark"
    with pytest.raises(AttributeError, match="no attribute 'Sparc'"):
        room.__getattr__("Sparc")


def test_java_is_looked_for_before_spark_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr("recordwise.engines.spark.session.check_java", lambda: asked.append(True))
    engine_kind("spark").check()
    engine_kind("duckdb").check()
    assert asked == [True]


def test_a_frame_without_types_is_opened_once_the_schema_is_known(tmp_path: Path) -> None:
    given = {"id": [1]}
    assert opened_source("duckdb", given) is given
    pq.write_table(pa.table(given), tmp_path / "t.parquet")
    for chosen in ("duckdb", object()):
        assert isinstance(opened_source(chosen, tmp_path / "t.parquet"), ParquetFiles)  # type: ignore[arg-type]


def test_the_state_of_a_source_is_told_without_reading_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"id": [1, 1], "emp": [-5, 1], "county": ["a", "b"]}), tmp_path / "t.parquet")
    assert source_state(tmp_path / "t.parquet", SCHEMA, engine="duckdb") == FITS
    (tmp_path / "t.csv").write_text("id,emp,county\n1,x,a\n")
    told = source_state(tmp_path / "t.csv", SCHEMA, engine="duckdb")
    assert "Stored as text: emp; no value was read" in told
    assert source_state("hdfs://cluster/t.parquet", SCHEMA, engine="spark") == (
        "not read, because only Spark can find it"
    )
    monkeypatch.setattr(engine, "find_spec", lambda name: None)
    assert source_state("t.dta", SCHEMA, engine="duckdb") == "not read, because the extra 'stat' is not installed"


def test_text_is_unread_only_where_another_type_is_declared(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,emp,county,size,open,day\n")
    columns: dict[str, Any] = {"county": "text", "size": "integer", "open": "boolean", "day": "date"}
    schema = Schema.of(unit="id", measures={"emp": 1}, columns=columns)
    with DuckDB(tmp_path / "t.csv", schema) as opened:
        assert sorted(opened.unread()) == ["day", "emp", "open", "size"]
    with DuckDB(pa.table({"id": ["1"], "emp": [1], "county": ["a"]}), SCHEMA) as opened:
        assert opened.unread() == ()


def test_files_that_must_not_change_are_those_of_the_source_and_its_folder(tmp_path: Path) -> None:
    paths = (tmp_path / "a.parquet", tmp_path / "b.parquet")
    assert watched_files(ParquetFiles(paths)) == paths
    assert watched_files(ParquetFiles(paths, folder=tmp_path)) == (tmp_path, *paths)
    assert watched_files(Database(tmp_path / "t.db", table="t")) == (tmp_path / "t.db",)
    assert watched_files(pa.table({"a": [1]})) == ()
