"""Records from files as they are found: CSV of every habit, folders, Arrow, Stata, SPSS, databases, and streams of Arrow."""

import gzip
import os
import sqlite3
from contextlib import closing

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import recordwise as rw
from build import employers
from engines.plain_mechanism import Plain
from recordwise.engines import DuckDB
from recordwise.errors import DataError, ParameterError, PlanFileError, RecordwiseError, SourceError
from recordwise.plan import Column, Measure, Plan, Schema
from recordwise.plan.query import query
from recordwise.plan.sources import CsvOptions, open_source

M = Plain()
SCHEMA = Schema.of(
    unit="id",
    measures={"emp": 1, "pay": Measure.of("pay", step="0.01")},
    columns={"town": "text", "size": Column(name="size", type="integer", null="category")},
)
ROWS = {
    "id": [1, 2, 3],
    "emp": [5, 7, 900],
    "pay": [0.25, 1.5, 1234.56],
    "town": ["Köln", "a;b", 'c"d'],
    "size": [1, None, 3],
}
ASKED = query().group_by("town", keys=ROWS["town"]).count(M).sum("emp", M).sum("pay", M)
BY_SIZE = query().group_by("size", keys={"size": [1, 3, None]}).count(M)
WANTED = {"a;b": (1, 7, 150), 'c"d': (1, 900, 123456), "Köln": (1, 5, 25)}


def totals(opens, source, schema=SCHEMA, queries=(ASKED, BY_SIZE)):
    with opens(source, schema) as engine:
        found = engine.totals(Plan(schema=schema, queries=queries))
    return [[column.tolist() for column in each.exact.reveal().totals.values()] for each in found]


EXPECTED = [[list(column) for column in zip(*(WANTED[town] for town in sorted(WANTED)))], [[1, 1, 1]]]


def csv_text(delimiter=",", decimal="."):
    lines = [delimiter.join(ROWS)]
    for row in zip(*ROWS.values()):
        fields = ["" if each is None else str(each) for each in row]
        fields[2] = fields[2].replace(".", decimal)
        quoted = ['"' + each.replace('"', '""') + '"' if any(c in each for c in ';,"\t|') else each for each in fields]
        lines.append(delimiter.join(quoted))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "name, options",
    [
        ("t.csv", {"delimiter": ";"}),
        ("t.csv", {"delimiter": ";", "decimal": ","}),
        ("t.tsv", {"decimal": ","}),
        ("t.csv", {"delimiter": "|", "encoding": "latin-1"}),
        ("t.csv.gz", {}),
        ("t.csv.gz", {"delimiter": ";", "decimal": ",", "encoding": "latin-1"}),
    ],
)
def test_csv_is_read_as_it_is_written(opens, tmp_path, name, options):
    options = {"delimiter": None, "decimal": ".", "encoding": "utf-8"} | options
    if options["delimiter"] is None and name == "t.tsv":
        options["delimiter"] = "\t"
    text = csv_text(options["delimiter"] or ",", options["decimal"]).encode(options["encoding"])
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    assert totals(opens, rw.sources.Csv(tmp_path / name, **options)) == EXPECTED


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "latin-1"])
def test_other_encodings_and_zstandard_are_read(opens, tmp_path, encoding):
    (tmp_path / "t.csv").write_bytes(csv_text().encode(encoding))
    assert totals(opens, rw.sources.Csv(tmp_path / "t.csv", encoding=encoding)) == EXPECTED
    with pa.output_stream(str(tmp_path / "t.csv.zst"), compression="zstd") as packed:
        packed.write(csv_text(";", ",").encode(encoding))
    assert (
        totals(opens, rw.sources.Csv(tmp_path / "t.csv.zst", encoding=encoding, delimiter=";", decimal=",")) == EXPECTED
    )


@pytest.mark.parametrize("pay", ["1.234,56", "1.5", "1,234,5"])
def test_a_number_that_can_be_read_in_two_ways_is_refused(opens, tmp_path, pay):
    (tmp_path / "t.csv").write_text(f"id;emp;pay;town;size\n1;1;{pay};a;1\n")
    source = rw.sources.Csv(tmp_path / "t.csv", delimiter=";", decimal=",")
    problem = "'pay' cannot be read as a number in 1 row"
    with opens(source, SCHEMA) as engine, pytest.raises(DataError, match=problem) as refusal:
        engine.validate()
    assert pay not in str(refusal.value)


@pytest.mark.parametrize(
    "options, problem",
    [
        ({"delimiter": ";;"}, "one character"),
        ({"delimiter": '"'}, "no quote"),
        ({"decimal": "'"}, "'.' or ','"),
        ({"decimal": ","}, "separates fields already"),
        ({"decimal": ",", "delimiter": ","}, "separates fields already"),
        ({"encoding": "klingon"}, "is not known"),
        ({"encoding": "rot13"}, "is not known"),
        ({"encoding": "base64"}, "is not known"),
        ({"encoding": "undefined"}, "is not known"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, problem):
    with pytest.raises(ParameterError, match=problem):
        CsvOptions(**options)


RAGGED = {
    "a field too many": ("id,emp,pay,town,size\n1,1,1,a,1\n2,2,2,SECRET,2,2\n", "line 3 has more or fewer fields"),
    "a field too few": (
        "id,emp,pay,town,size\n1,1,1,a,1\n\n2,2,SECRET\n3,3,3,b,3\n",
        "line 4 has more or fewer fields",
    ),
    "an open quote": ('id,emp,pay,town,size\n1,1,1,"SECRET,1\n', "line 2"),
}


@pytest.mark.parametrize("case", RAGGED)
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_ragged_line_is_named_by_its_number_and_not_shown(opens, tmp_path, case, encoding):
    text, problem = RAGGED[case]
    (tmp_path / "t.csv").write_text(text)
    with (
        opens(rw.sources.Csv(tmp_path / "t.csv", encoding=encoding), SCHEMA) as engine,
        pytest.raises(RecordwiseError) as refusal,
    ):
        engine.validate()
    assert problem in str(refusal.value)
    assert "Nothing was spent" in str(refusal.value)
    assert "SECRET" not in str(refusal.value)


def test_text_that_is_not_of_the_encoding_is_told_by_its_line(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"id,emp,pay,town,size\n1,1,1,a,1\n2,2,2,K\xf6ln,2\n")
    with (
        DuckDB(tmp_path / "t.csv", SCHEMA) as engine,
        pytest.raises(SourceError, match="line 3 holds text that is not UTF-8"),
    ):
        engine.validate()


def folder(tmp_path, name="data"):
    table = pa.table(ROWS)
    for number, (state, year) in enumerate((("06", "2023"), ("06", "2024"), ("__HIVE_DEFAULT_PARTITION__", "2024"))):
        place = tmp_path / name / f"state={state}" / f"year={year}"
        place.mkdir(parents=True)
        pq.write_table(table.slice(number, 1), place / "part.parquet")
    (tmp_path / name / "_SUCCESS").touch()
    return tmp_path / name


PARTITIONED = Schema.of(
    unit="id",
    measures={"emp": 1},
    columns={"state": Column(name="state", null="category"), "year": "integer", "town": "text"},
)


def test_a_folder_is_one_table_and_the_names_of_its_folders_are_columns(opens, tmp_path):
    by = (
        query()
        .group_by("state", "year", keys={"state": ["06", "06", None, "6"], "year": [2023, 2024, 2024, 2023]})
        .sum("emp", M)
    )
    assert totals(opens, folder(tmp_path), PARTITIONED, (by,)) == [[[5, 7, 0, 900]]]
    assert totals(opens, str(tmp_path / "data" / "**" / "*.parquet"), SCHEMA) == EXPECTED


def test_types_of_folders_are_inferred_as_text(tmp_path):
    with employers(folder(tmp_path), measures={"emp": 1, "pay": "0.01"}) as session:
        kinds = {column.name: column.type for column in session.schema.columns}
    assert kinds == {"town": "text", "size": "integer", "state": "text", "year": "text"}


def test_a_folder_that_gains_or_loses_a_file_is_refused(opens, tmp_path):
    place = folder(tmp_path)
    plan = Plan(schema=PARTITIONED, queries=(query().count(M),))
    with opens(place, PARTITIONED) as engine:
        engine.totals(plan)
        (place / "_later").touch()
        engine.totals(plan)
        more = place / "state=06" / "year=2023" / "more.parquet"
        pq.write_table(pa.table(ROWS).slice(0, 1), more)
        with pytest.raises(SourceError, match="changed since they were validated"):
            engine.totals(plan)
        more.unlink()
        engine.totals(plan)
        os.unlink(place / "state=06" / "year=2023" / "part.parquet")
        with pytest.raises(SourceError):
            engine.totals(plan)


def test_folders_that_are_no_plain_tables_are_refused(tmp_path):
    (folder(tmp_path, "delta") / "_delta_log").mkdir()
    (folder(tmp_path, "ice") / "metadata").mkdir()
    (tmp_path / "ice" / "metadata" / "v1.metadata.json").touch()
    pq.write_table(pa.table(ROWS), folder(tmp_path, "uneven") / "top.parquet")
    (folder(tmp_path, "mixed") / "notes.txt").touch()
    (tmp_path / "empty").mkdir()
    problems = {
        "delta": "deleted",
        "ice": "deleted",
        "mixed": "not Parquet",
        "empty": "no Parquet",
        "uneven": "different columns",
    }
    for name, problem in problems.items():
        with pytest.raises(SourceError, match=problem):
            DuckDB(tmp_path / name, SCHEMA)


def test_arrow_files_are_one_table(opens, tmp_path):
    table = pa.table(ROWS)
    coded = table.set_column(3, "town", table["town"].dictionary_encode())
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), coded.schema) as writer:
        writer.write_table(coded.slice(0, 2), max_chunksize=1)
    pyarrow.feather.write_feather(coded.slice(2), str(tmp_path / "b.feather"))
    assert totals(opens, [tmp_path / "a.arrow", tmp_path / "b.feather"]) == EXPECTED
    with employers(tmp_path / "a.arrow", measures={"emp": 1, "pay": "0.01"}) as session:
        assert session.schema.column("town").type == "text"
    pyarrow.feather.write_feather(pa.table({**ROWS, "emp": ["x"] * 3}), str(tmp_path / "c.feather"))
    with pytest.raises(SourceError, match="different columns"):
        opens([tmp_path / "a.arrow", tmp_path / "c.feather"], SCHEMA)
    (tmp_path / "d.feather").write_bytes(b"FEA1 SECRET")
    with pytest.raises(SourceError, match="damaged") as refusal:
        opens(tmp_path / "d.feather", SCHEMA)
    assert "SECRET" not in str(refusal.value)


@pytest.mark.parametrize("ending", ["dta", "sav", "zsav"])
def test_files_of_stata_and_spss(opens, tmp_path, ending):
    import pandas as pd
    import pyreadstat

    frame = pd.DataFrame(
        ROWS | {"opened": [pd.Timestamp("2024-12-31").date(), None, pd.Timestamp("1969-01-01").date()]}
    )
    path = tmp_path / f"t.{ending}"
    if ending == "dta":
        pyreadstat.write_dta(frame, str(path))
    else:
        pyreadstat.write_sav(frame, str(path), compress=ending == "zsav")
    assert totals(opens, path) == EXPECTED
    dated = Schema.of(unit="id", columns={"opened": Column(name="opened", type="date", null="category")})
    years = query().group_by(
        rw.year("opened"), rw.quarter("opened"), keys={"opened_year": [1969, 2024], "opened_quarter": [1, 4]}
    )
    assert totals(opens, path, dated, (years.count(M),)) == [[[1, 1]]]
    with pytest.raises(SourceError, match="its format is that of a date"):
        opens(path, Schema.of(unit="id", measures={"opened": 1}))
    with pytest.raises(SourceError, match=r"no column empl \(did you mean emp\?\)|no column empl"):
        opens(path, Schema.of(unit="id", measures={"empl": 1}))


def sqlite_file(path, rows=None, kind="TEXT"):
    with closing(sqlite3.connect(path)) as made:
        made.execute(f'CREATE TABLE "my firms" (id INTEGER, emp INTEGER, pay REAL, town {kind}, size REAL)')
        made.executemany('INSERT INTO "my firms" VALUES (?, ?, ?, ?, ?)', rows or list(zip(*ROWS.values())))
        made.commit()
    return path


def duckdb_file(path):
    with duckdb.connect(str(path)) as made:
        made.register("given", pa.table(ROWS))
        made.execute('CREATE TABLE "my firms" AS SELECT * FROM given')
        made.execute('CREATE VIEW few AS SELECT * FROM "my firms" WHERE emp < 10')
    return path


@pytest.mark.parametrize("make", [sqlite_file, duckdb_file])
def test_a_table_of_a_database_file(opens, tmp_path, make):
    path = make(tmp_path / "t.db")
    before = path.read_bytes()
    assert totals(opens, rw.sources.Database(path, table='main."my firms"')) == EXPECTED
    assert path.read_bytes() == before
    with pytest.raises(SourceError, match="no such table"):
        opens(rw.sources.Database(path, table="nothing"), SCHEMA)
    with pytest.raises(SourceError, match="Its columns: id, emp, pay, town, size"):
        opens(rw.sources.Database(path, table='"my firms"'), Schema.of(unit="ident"))
    with pytest.raises(SourceError, match="needs the name of a table"):
        open_source(path)
    with opens(rw.sources.Database(path, table='"my firms"'), SCHEMA) as engine:
        engine.validate()
        os.utime(path)
        with pytest.raises(SourceError, match="changed"):
            engine.totals(Plan(schema=SCHEMA, queries=(ASKED,)))


def test_a_view_of_a_database_file_and_one_that_is_written_to(tmp_path):
    path = duckdb_file(tmp_path / "t.duckdb")
    assert totals(DuckDB, rw.sources.Database(path, table="few"), SCHEMA, (query().count(M),)) == [[[2]]]
    (tmp_path / "n.duckdb").write_bytes(b"nothing at all SECRET")
    with pytest.raises(SourceError, match="no database of DuckDB or SQLite"):
        DuckDB(rw.sources.Database(tmp_path / "n.duckdb", table="t"), SCHEMA)
    with pytest.raises(SourceError, match="there is no such file"):
        DuckDB(rw.sources.Database(tmp_path / "none.duckdb", table="t"), SCHEMA)
    with pytest.raises(ParameterError, match="must be a table name"):
        rw.sources.Database(path, table="a.b.c")


def test_what_sqlite_holds_in_a_column_is_read_value_by_value(opens, tmp_path):
    rows = [(1, 5, 0.1 + 0.2, "a", 1.0), (2, "7", "0.25", "a", "2")]
    path = sqlite_file(tmp_path / "odd.db", rows)
    schema = Schema.of(unit="id", measures={"emp": 1}, columns={"size": "integer"})
    asked = query().group_by("size", keys=[1, 2]).sum("emp", M)
    assert totals(opens, rw.sources.Database(path, table="my firms"), schema, (asked,)) == [[[5, 7]]]
    with opens(rw.sources.Database(path, table="my firms"), SCHEMA) as engine, pytest.raises(DataError) as refusal:
        engine.validate()
    # 0.1 + 0.2 is not the float nearest to 0.3: its last digit came over.
    assert {(each.column, each.problem) for each in refusal.value.problems} == {
        ("pay", "is off the lattice of step 1/100")
    }
    strange = sqlite_file(tmp_path / "strange.db", [(1, b"x", 1.0, "a", 1), (2, 1, 1.0, "17", 1)], kind="")
    with closing(sqlite3.connect(strange)) as made:
        made.execute('UPDATE "my firms" SET town = 17 WHERE id = 1')
        made.commit()
    with opens(rw.sources.Database(strange, table="my firms"), SCHEMA) as engine, pytest.raises(DataError) as refusal:
        engine.validate()
    assert {each.column: each.count for each in refusal.value.problems} == {"emp": 1, "town": 1}


class Stream:
    """A table of a library nobody has heard of."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def test_anything_that_streams_arrow_is_a_source_and_a_list_of_keys(opens):
    assert totals(opens, Stream(pa.table(ROWS))) == EXPECTED
    assert totals(opens, pa.RecordBatchReader.from_stream(pa.table(ROWS))) == EXPECTED
    assert totals(opens, pa.table(ROWS).to_batches()[0]) == EXPECTED
    keys = rw.Keys.of(Stream(pa.table({"town": ["a"]})))
    assert keys == rw.Keys.of(pa.table({"town": ["a"]}))


def test_a_relation_of_duckdb_is_read_by_both_engines(opens):
    with duckdb.connect() as connection:
        connection.register("given", pa.table(ROWS))
        assert totals(opens, connection.sql("SELECT * FROM given")) == EXPECTED


def test_a_table_that_was_refused_is_read_again_once_it_is_corrected(opens, tmp_path):
    """What is carried over to an engine is forgotten with its refusal."""
    pyarrow.feather.write_feather(pa.table(ROWS | {"emp": [5, -7, 900]}), str(tmp_path / "t.feather"))
    plan = Plan(schema=SCHEMA, queries=(query().sum("emp", M),))
    with opens(tmp_path / "t.feather", SCHEMA) as engine:
        with pytest.raises(DataError, match="is negative"):
            engine.validate()
        pyarrow.feather.write_feather(pa.table(ROWS), str(tmp_path / "t.feather"))
        (found,) = engine.totals(plan)
    assert [each.tolist() for each in found.exact.reveal().totals.values()] == [[912]]


def test_a_file_whose_name_looks_like_a_glob_is_that_file(tmp_path):
    for name in ("t[1].csv", "t1.csv"):
        (tmp_path / name).write_text(csv_text())
    assert open_source(tmp_path / "t[1].csv").paths == (tmp_path / "t[1].csv",)
    assert open_source(str(tmp_path / "t[123].csv")).paths == (tmp_path / "t1.csv",)


def test_a_missing_column_lists_those_there_are(opens, tmp_path):
    pq.write_table(pa.table(ROWS), tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text(csv_text())
    for source in (tmp_path / "t.parquet", tmp_path / "t.csv", pa.table(ROWS), pl.DataFrame(ROWS)):
        with pytest.raises(SourceError, match=r"it has no column empl.*Its columns: id, emp, pay, town, size"):
            opens(source, Schema.of(unit="id", measures={"empl": 1}))
    wide = pa.table({f"c{number}": [1] for number in range(100)})
    with pytest.raises(SourceError, match="and 60 more"):
        opens(wide, Schema.of(unit="id"))


PLAN = """
dataset = "firms"
{}
ledger = "l"
tuned_on = "synthetic"
[schema]
unit = "id"
measures.emp = 1
[[queries]]
sum.emp = {{ kind = "Gaussian", sigma = 10 }}
{}
"""


@pytest.mark.parametrize(
    "source, options",
    [
        ('source = "t.csv"', '[csv]\ndelimiter = ";"\ndecimal = ","\nencoding = "cp1252"'),
        ('source = "t.db"\ntable = "my firms"', ""),
        ('source = "data"', ""),
    ],
)
def test_plan_files_name_every_kind_of_source(tmp_path, source, options):
    (tmp_path / "t.csv").write_text(csv_text(";", ","), encoding="cp1252")
    sqlite_file(tmp_path / "t.db")
    folder(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN.format(source, options))
    file = rw.load_plan(tmp_path / "plan.toml")
    with rw.Session.from_plan(file) as session:
        assert session.run(*file.plan.queries).tables[0].data.num_rows == 1


@pytest.mark.parametrize(
    "source, options, problem",
    [
        ('source = "t.db"', "", "source: needs the name of a table next to it"),
        ('source = "t.csv"', '[csv]\ndelimiter = ";;"', "csv: delimiter must be one character"),
        ('source = "t.csv"', '[csv]\nquote = "x"', "quote"),
        (
            'source = "t.csv"\ntable = "t"',
            "",
            "table: is only for a source that starts with postgresql:// or is a file of DuckDB",
        ),
    ],
)
def test_sources_in_plan_files_that_make_no_sense_are_told_with_their_line(tmp_path, source, options, problem):
    (tmp_path / "plan.toml").write_text(PLAN.format(source, options))
    with pytest.raises(PlanFileError, match="line") as refusal:
        rw.load_plan(tmp_path / "plan.toml")
    assert problem in str(refusal.value)


def test_options_of_csv_are_refused_for_other_files(tmp_path):
    pq.write_table(pa.table(ROWS), tmp_path / "t.parquet")
    with pytest.raises(SourceError, match="not all CSV"):
        open_source(rw.sources.Csv(tmp_path / "t.parquet", delimiter=";"))
