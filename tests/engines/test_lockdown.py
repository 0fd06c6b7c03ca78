"""The connection reads the given files and nothing else, whatever would be run on it, and tells nothing."""

import subprocess
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

from recordwise.engines import DuckDB
from recordwise.engines.duckdb.connection import Connection
from recordwise.errors import EngineError
from recordwise.plan import Schema


@pytest.fixture
def connection(tmp_path):
    (tmp_path / "other.txt").write_text("other")
    pq.write_table(pa.table({"id": [1]}), tmp_path / "given.parquet")
    made = Connection(files=[tmp_path / "given.parquet"], memory_limit="200MB", threads=1)
    yield made
    made.close()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('{}/other.txt')",
        "SELECT * FROM read_csv('{}/other.txt')",
        "SELECT * FROM glob('{}/*')",
        "COPY (SELECT 1) TO '{}/out.csv'",
        "ATTACH '{}/new.db'",
        "EXPORT DATABASE '{}/dump'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '100GB'",
        "SET allowed_paths = ['{}/other.txt']",
        "PRAGMA threads = 9",
        "SELECT * FROM 'http://localhost/x.parquet'",
    ],
)
def test_a_locked_connection_refuses(connection, tmp_path, statement):
    with pytest.raises(duckdb.Error):
        connection.duckdb.execute(statement.replace("{}", str(tmp_path)))


def test_the_given_file_can_be_read(connection, tmp_path):
    assert connection.duckdb.read_parquet(str(tmp_path / "given.parquet")).fetchall() == [(1,)]


def test_python_variables_are_no_tables(connection):
    secret = pa.table({"x": [1]})
    with pytest.raises(duckdb.Error):
        connection.duckdb.execute("SELECT * FROM secret")
    assert secret.num_rows == 1


def test_engine_errors_carry_no_text(connection):
    tree = exp.select(exp.Cast(this=exp.Literal.string("record of Jane"), to=exp.DataType.build("INT"))).from_(
        exp.values([(1,)], alias="v")
    )
    with pytest.raises(EngineError) as caught:
        connection.fetch(tree)
    assert "Jane" not in str(caught.value) + repr(caught.value) + repr(caught.value.__cause__)
    assert caught.value.__suppress_context__
    assert caught.value.kind == "ConversionException"


@pytest.mark.costly
def test_large_work_spills_and_the_spilled_pages_are_removed(tmp_path):
    import os

    ids = pa.array(range(3_000_000), pa.int64())
    pq.write_table(pa.table({"id": ids, "emp": ids, "tag": ids.cast(pa.string())}), tmp_path / "t.parquet")
    schema = Schema.of(unit="tag", measures={"emp": 1})
    engine = DuckDB(str(tmp_path / "t.parquet"), schema, memory_limit="120MB", threads=1)
    spill = engine._connection._spill.name
    assert oct(os.stat(spill).st_mode & 0o777) == "0o700"
    engine.validate()
    engine.close()
    assert not os.path.exists(spill)


@pytest.mark.process
def test_a_long_statement_draws_no_bar_on_standard_output():
    """The engine draws one after two seconds in a Python that runs no file, such as this one."""
    code = """
import duckdb
from recordwise.engines.duckdb.connection import Connection
asked = "SELECT value FROM duckdb_settings() WHERE name = 'enable_progress_bar'"
made = Connection(files=[], memory_limit="200MB", threads=1)
print(duckdb.connect().execute(asked).fetchone()[0], made.duckdb.execute(asked).fetchone()[0])
made.close()
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["true", "false"]


def test_a_notebook_where_duckdb_can_draw_no_bar_is_locked_like_any_other_place(tmp_path, monkeypatch):
    """DuckDB refuses the setting in Jupyter without ipywidgets. A slow test of the wheel starts a kernel."""
    pq.write_table(pa.table({"id": [1]}), tmp_path / "given.parquet")
    asked = Connection._set

    def without_widgets(self, name, value):
        if name == "enable_progress_bar":
            raise duckdb.InvalidInputException("required package 'ipywidgets' is missing")
        asked(self, name, value)

    monkeypatch.setattr(Connection, "_set", without_widgets)
    made = Connection(files=[tmp_path / "given.parquet"], memory_limit="200MB", threads=1)
    try:
        with pytest.raises(duckdb.Error):
            made.duckdb.execute("SET enable_external_access = true")
        with pytest.raises(duckdb.Error):
            made.duckdb.execute(f"COPY (SELECT 1) TO '{tmp_path}/out.csv'")
    finally:
        made.close()
