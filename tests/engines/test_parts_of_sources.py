"""A source of several files, or without types, is read by its declared types or refused; both engines refuse the same."""

import datetime
import sqlite3
from contextlib import closing
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recordwise as rw
from engines.plain_mechanism import Plain
from recordwise.engines import DuckDB, Spark
from recordwise.engines.spark.sources import open_spark_source
from recordwise.errors import DataError, SourceError
from recordwise.plan import Column, Plan, Schema
from recordwise.plan.query import query

M = Plain()
SCHEMA = Schema.of(
    unit="id",
    measures={"emp": 1},
    columns={"county": "text", "size": "integer", "day": Column(name="day", type="date", null="category")},
)
FIRST = {
    "id": pa.array([1, 2]),
    "emp": pa.array([5, 7]),
    "county": pa.array(["a", "b"]),
    "size": pa.array([1, 2]),
    "day": pa.array([datetime.date(2024, 1, 1), None]),
}
SECOND = {**FIRST, "id": pa.array([3, 4])}
ZONED = pa.array([datetime.datetime(2024, 1, 1, 23)] * 2, pa.timestamp("us", "UTC"))
DIFFERENT = {
    "ids that are text": (
        {"id": pa.array(["1", "3"])},
        "column 'id'.*as text, and the first as whole numbers of 64 bits",
    ),
    "ids that are floats": ({"id": pa.array([1.0, 3.0])}, "column 'id'.*as floats of 64 bits"),
    "a measure with a fraction": ({"emp": pa.array([1.6, 2.0])}, "column 'emp'.*as floats of 64 bits"),
    "a measure as decimals": (
        {"emp": pa.array([Decimal("1.60")] * 2)},
        "column 'emp'.*as decimals with 3 digits, 2 of them",
    ),
    "a measure as text": ({"emp": pa.array(["1_000", "0x10"])}, "column 'emp'.*as text"),
    "a measure as truth values": ({"emp": pa.array([True, False])}, "column 'emp'.*as truth values"),
    "a narrower measure": ({"emp": pa.array([1, 2], pa.int32())}, "column 'emp'.*as whole numbers of 32 bits"),
    "an unsigned measure": ({"emp": pa.array([1, 2], pa.uint64())}, "column 'emp'.*of 64 bits, without a sign"),
    "a whole number with a fraction": ({"size": pa.array([1.6, -0.4])}, "column 'size'.*as floats"),
    "a code as a number": ({"county": pa.array([1, 2])}, "column 'county'.*as whole numbers"),
    "a code of missing values": ({"county": pa.nulls(2)}, "column 'county'.*as nothing but missing values"),
    "a day as a time with a zone": ({"day": ZONED}, "column 'day'.*as times in microseconds with a zone"),
    "a day as a time": (
        {"day": ZONED.cast(pa.timestamp("us"))},
        "column 'day'.*as times in microseconds without a zone",
    ),
    "a column in lists": ({"size": pa.array([[1], [2]])}, "column 'size'.*as a nested column"),
    "a column by another name": ({"emp": None, "EMP": FIRST["emp"]}, "it has no column emp"),
    "no column": ({"emp": None}, "it has no column emp"),
    "a column twice but for case": ({"EMP": FIRST["emp"]}, "no column emp that is unique when case is ignored"),
}


def write(folder, changed):
    folder.mkdir()
    columns = {name: column for name, column in {**SECOND, **changed}.items() if column is not None}
    pq.write_table(pa.table(FIRST), folder / "a.parquet")
    pq.write_table(pa.table(columns), folder / "b.parquet")
    return folder


@pytest.mark.parametrize("case", DIFFERENT)
@pytest.mark.parametrize("given", ["folder", "glob", "list"])
@pytest.mark.costly
def test_parts_that_store_a_column_in_different_ways_are_refused_by_name(tmp_path, case, given):
    changed, problem = DIFFERENT[case]
    folder = write(tmp_path / "parts", changed)
    source = {"folder": folder, "glob": folder / "*.parquet", "list": [folder / "a.parquet", folder / "b.parquet"]}[
        given
    ]
    with pytest.raises(SourceError, match=problem) as refusal:
        DuckDB(source, SCHEMA)
    assert "file 2 of 2 ('b.parquet')" in str(refusal.value)
    assert "No record was read" in str(refusal.value)


def test_spark_refuses_the_same_parts_with_the_same_words(spark_session, tmp_path):
    for number, (changed, _) in enumerate(DIFFERENT.values()):
        folder = write(tmp_path / f"parts{number}", changed)
        with pytest.raises(SourceError) as of_duckdb:
            DuckDB(folder, SCHEMA)
        with pytest.raises(SourceError) as of_spark:
            Spark(folder, SCHEMA, spark=spark_session)
        assert str(of_spark.value) == str(of_duckdb.value)


def test_files_that_only_spark_can_find_are_compared_too(spark_session, tmp_path):
    for number, (changed, problem) in enumerate(DIFFERENT.values()):
        folder = write(tmp_path / f"parts{number}", changed)
        with pytest.raises(SourceError, match=problem.partition(".*")[0]) as refusal:
            Spark(folder.as_uri(), SCHEMA, spark=spark_session)
        assert "file 2 of 2" in str(refusal.value)
    folder = write(tmp_path / "good", {})
    with Spark(folder.as_uri(), SCHEMA, spark=spark_session) as engine:
        (found,) = engine.totals(Plan(schema=SCHEMA, queries=(query().sum("emp", M),)))
    assert [column.tolist() for column in found.exact.reveal().totals.values()] == [[24]]


def test_parts_that_differ_only_in_how_text_is_packed_or_in_other_columns_are_one_table(opens, tmp_path):
    packed = {"county": SECOND["county"].dictionary_encode(), "other": pa.array([1.5, 2.5])}
    folder = write(tmp_path / "parts", packed)
    table = pa.table({name: SECOND[name] for name in reversed(SECOND)}).set_column(4, "id", pa.array([5, 6]))
    pq.write_table(table.set_column(2, "county", table["county"].cast(pa.large_string())), folder / "c.parquet")
    asked = query().group_by("county", keys=["a", "b"]).sum("emp", M)
    with opens(folder, SCHEMA) as engine:
        (found,) = engine.totals(Plan(schema=SCHEMA, queries=(asked,)))
    assert [column.tolist() for column in found.exact.reveal().totals.values()] == [[15, 21]]


def test_a_time_of_the_old_kind_is_refused(opens, tmp_path):
    table = pa.table({**FIRST, "day": ZONED.cast(pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "t.parquet", use_deprecated_int96_timestamps=True)
    with pytest.raises(SourceError, match=r"column 'day'.*does not say whether it has a zone"):
        opens(tmp_path / "t.parquet", SCHEMA)


BY_COUNTY = query().group_by("county", keys={"county": ["a", "a b", "a/b", "zz", "ü", None]}).sum("emp", M)
FOLDERS = Schema.of(unit="id", measures={"emp": 1}, columns={"county": Column(name="county", null="category")})


def partitioned(root, name, *, own=None):
    (root / name).mkdir(parents=True)
    columns = {"id": FIRST["id"], "emp": FIRST["emp"]} | ({} if own is None else {own: FIRST["county"]})
    pq.write_table(pa.table(columns), root / name / "p.parquet")
    return root


def county_totals(opens, source):
    with opens(source, FOLDERS) as engine:
        (found,) = engine.totals(Plan(schema=FOLDERS, queries=(BY_COUNTY,)))
    return next(column.tolist() for column in found.exact.reveal().totals.values())


@pytest.mark.parametrize("own", ["county", "County"])
def test_the_name_of_a_folder_does_not_override_a_column_of_its_files(opens, tmp_path, own):
    root = partitioned(tmp_path / "t", "county=zz", own=own)
    with pytest.raises(SourceError, match="the names of folders hold it, and the source holds it too"):
        opens(root, FOLDERS)


def test_files_named_by_a_glob_are_read_without_the_names_of_their_folders(opens, tmp_path):
    root = partitioned(tmp_path / "t", "county=zz", own="county")
    assert county_totals(opens, str(root / "**" / "*.parquet")) == [5, 0, 0, 0, 0, 0]


def test_addresses_with_folders_named_after_a_column_of_their_files_are_refused(spark_session, tmp_path):
    root = partitioned(tmp_path / "t", "county=zz", own="county")
    with pytest.raises(SourceError, match="the names of folders hold it"):
        Spark(root.as_uri(), FOLDERS, spark=spark_session)


@pytest.mark.parametrize(
    "value, expected",
    {"a b": 1, "a%2Fb": 2, "zz": 3, "ü": 4, "__HIVE_DEFAULT_PARTITION__": 5}.items(),
)
def test_what_the_name_of_a_folder_says_is_one_value_to_every_engine(opens, tmp_path, value, expected):
    root = partitioned(tmp_path / "a space [x]", f"county={value}")
    found = county_totals(opens, root)
    assert found == [12 if place == expected else 0 for place in range(6)]


@pytest.mark.parametrize("name", ["county=", "county=a=b", "county=a%", "county=%c3%bc", "county=a?", "county=a\\b"])
def test_names_of_folders_that_engines_read_differently_are_refused(tmp_path, name):
    with pytest.raises(SourceError, match="cannot be read as columns"):
        DuckDB(partitioned(tmp_path / "t", name), FOLDERS)


def test_a_column_that_two_folders_state_is_refused(tmp_path):
    with pytest.raises(SourceError, match="cannot be read as columns"):
        DuckDB(partitioned(tmp_path / "t", "county=a/County=b"), FOLDERS)


@pytest.mark.parametrize("name", ["a[b].parquet", "a*.parquet", "?b.parquet"])
def test_a_file_that_is_named_like_a_glob_for_another_is_refused(tmp_path, name):
    for number, each in enumerate((name, "ab.parquet")):
        pq.write_table(pa.table({"id": [number], "emp": [number], "county": ["a"]}), tmp_path / each)
    for source in (tmp_path, [tmp_path / name, tmp_path / "ab.parquet"]):
        with pytest.raises(SourceError, match="is a glob for another"):
            DuckDB(source, FOLDERS)


def test_a_file_that_is_named_twice_is_refused(tmp_path):
    pq.write_table(pa.table(FIRST), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match="named twice"):
        DuckDB([tmp_path / "a.parquet", tmp_path / ".." / tmp_path.name / "a.parquet"], FOLDERS)


IDS = Schema.of(unit="id", measures={"emp": 1})


def sqlite_table(path, ids):
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE t (id, emp)")
        made.executemany("INSERT INTO t VALUES (?, ?)", [(each, 1) for each in ids])
        made.commit()
    return rw.sources.Database(path, table="t")


@pytest.mark.parametrize(
    "ids, problem, count",
    [
        ([1, 1.0], "floats or bytes", 1),
        ([1, "1"], "whole numbers in some rows and text in others", 1),
        (["1", "1.0"], "written as a float", 1),
        ([b"1", 2, 3.5], "floats or bytes", 2),
    ],
)
def test_ids_of_sqlite_that_may_be_one_id_in_two_spellings_are_refused(opens, tmp_path, ids, problem, count):
    source = sqlite_table(tmp_path / "t.db", ids)
    with opens(source, IDS) as engine, pytest.raises(DataError, match=problem) as refusal:
        engine.validate()
    assert [(each.column, each.count) for each in refusal.value.problems] == [("id", count)]


SPELLED = ["1.0", "1.", "-1.00", "1e+05", "1.5E+10", " 1", "1 ", "a\t"]
PLAIN = ["1", "01", "-1", "1.5", "1E5", "1e-5", "a 1", "v1.0", "1.0.0"]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_ids_of_csv_that_may_be_another_spelling_of_an_id_are_refused(opens, tmp_path, encoding):
    lines = ["id,emp", *(f"{each},1" for each in SPELLED + PLAIN)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    source = rw.sources.Csv(tmp_path / "t.csv", encoding=encoding)
    with opens(source, IDS) as engine, pytest.raises(DataError, match="written as a float, or has blanks") as refusal:
        engine.validate()
    assert [(each.column, each.count) for each in refusal.value.problems] == [("id", len(SPELLED))]
    (tmp_path / "t.csv").write_text("\n".join(["id,emp", *(f"{each},1" for each in PLAIN)]) + "\n")
    with opens(source, IDS) as engine:
        engine.validate()


def test_a_first_line_that_may_be_a_record_is_not_shown(opens, tmp_path):
    (tmp_path / "t.csv").write_text("Acme Holding,Kent,retail\nOther,Essex,mining\n")
    schema = Schema.of(unit="firm_id", columns={"county": "text", "branch": "text"})
    for encoding in ("utf-8", "cp1252"):
        with pytest.raises(SourceError, match="its first line has no column firm_id, county, branch") as refusal:
            opens(rw.sources.Csv(tmp_path / "t.csv", encoding=encoding), schema)
        assert not any(value in str(refusal.value) for value in ("Acme", "Kent", "retail"))
    (tmp_path / "t.csv").write_text("firm_id,County,branch\nx,y,z\n")
    with pytest.raises(SourceError, match="Its columns: firm_id, County, branch"):
        opens(tmp_path / "t.csv", schema)


def test_addresses_and_files_of_this_machine_are_not_one_source(tmp_path):
    """Paths that only a cluster can find may be listed together, but not with files that are read here."""
    pq.write_table(pa.table(FIRST), tmp_path / "a.parquet")
    far, near = "hdfs://cluster/b.parquet", str(tmp_path / "a.parquet")
    assert open_spark_source([far, far.replace("b.", "c.")]).paths == (far, far.replace("b.", "c."))
    for given in ([far, near], [near, far], (near, far, near)):
        with pytest.raises(SourceError):
            open_spark_source(given)
