"""A plan file can name a server's table or SAS files, and ``recordwise check`` says which extra is missing."""

import importlib.util
import json
import sys

import pytest
from typer.testing import CliRunner

from build import records
from recordwise.cli import app
from recordwise.engines import DuckDB
from recordwise.engines.registry import source_state
from recordwise.errors import ExtraError, PlanFileError, SourceError
from recordwise.plan import Schema
from recordwise.plan.file import load_plan
from recordwise.plan.sources import Postgres

PLAN = """\
dataset = "small"
{source}
ledger = "small.ledger"
tuned_on = "synthetic"

[schema]
unit = "id"
measures.emp = 1
columns.county = "text"

[[queries]]
group_by = ["county"]
keys = {{ rows = {{ county = ["01", "02", "03", "04"] }} }}
count = {{ kind = "Gaussian", rho = 0.1 }}
sum.emp = {{ kind = "UnitSplit", at = 20, rho = 0.5 }}
"""


def plan_file(folder, source):
    path = folder / "plan.toml"
    path.write_text(PLAN.format(source=source))
    return path


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def absent(monkeypatch, module):
    """As if an optional part were not installed."""
    for name in [each for each in sys.modules if each.split(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    assert importlib.util.find_spec(module) is None


def test_a_plan_publishes_a_table_of_a_server(server, tmp_path):
    server.ingest("planned", records(300))
    path = plan_file(tmp_path, f'source = "{server.uri()}"\ntable = "public.planned"')
    done = run("check", path)
    assert done.exit_code == 0, done.output
    assert "extra" not in done.output
    done = run("release", path, "--out", tmp_path / "out", "--yes")
    assert done.exit_code == 0, done.output
    assert "postgresql" not in (tmp_path / "out" / "release.json").read_text()


def test_a_plan_publishes_sas_files(sas7bdat, tmp_path):
    table = records(300)
    columns = {"id": table["id"], "emp": table["emp"], "county": table["county"]}
    for number in range(2):
        part = {name: column.slice(150 * number, 150).to_pylist() for name, column in columns.items()}
        numbers = {name: [float(each) for each in part[name]] for name in ("id", "emp")}
        sas7bdat(tmp_path / f"part{number}.sas7bdat", part | numbers)
    done = run("release", plan_file(tmp_path, 'source = "part*.sas7bdat"'), "--out", tmp_path / "out", "--yes")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    "source, module, extra",
    [
        ('source = "postgresql://somebody@nowhere/db"\ntable = "t"', "adbc_driver_postgresql", "postgres"),
        ('source = "later/*.sas7bdat"', "pyreadstat", "stat"),
        ('source = ["a.xpt", "b.xpt"]', "pyreadstat", "stat"),
    ],
)
def test_check_names_the_extra_that_is_missing_and_the_command(tmp_path, monkeypatch, source, module, extra):
    path = plan_file(tmp_path, source)
    command = f"pip install 'recordwise[{extra}]'"
    assert command not in run("check", path, "--no-source").stdout
    absent(monkeypatch, module)
    done = run("check", path)
    assert done.exit_code == 0, done.output
    assert f"needs the extra '{extra}'" in done.stdout
    assert command in done.stdout
    (told,) = [each for each in json.loads(run("check", path, "--json").stdout)["warnings"] if "extra" in each]
    assert command in told


def test_a_parquet_plan_needs_no_extra(tmp_path, monkeypatch):
    absent(monkeypatch, "pyreadstat")
    absent(monkeypatch, "adbc_driver_postgresql")
    done = run("check", plan_file(tmp_path, 'source = "a.parquet"'), "--no-source")
    assert done.exit_code == 0, done.output
    assert "extra" not in done.stdout


def test_opening_without_the_extra_is_refused_with_the_command(tmp_path, monkeypatch):
    absent(monkeypatch, "adbc_driver_postgresql")
    absent(monkeypatch, "pyreadstat")
    (tmp_path / "t.sas7bdat").write_bytes(b"")
    schema = Schema.of(unit="id")
    for source, extra in (
        (Postgres("postgresql://nowhere/db", table="t"), "postgres"),
        (tmp_path / "t.sas7bdat", "stat"),
    ):
        with pytest.raises(ExtraError) as caught:
            DuckDB(source, schema)
        assert caught.value.command == f"pip install 'recordwise[{extra}]'"
        assert caught.value.command in str(caught.value)


@pytest.mark.parametrize(
    "source, problem",
    [
        ('source = "postgresql://me@host/db"', 'source: also needs the name of a table: table = "schema.table"'),
        ('source = "a.parquet"\ntable = "t"', "table: is only for a source that starts with postgresql://"),
        ('source = "postgresql://me:s3cret@host/db"\ntable = "t"', "source: contains a password"),
        ('source = "postgresql://me@host/db?password=s3cret"\ntable = "t"', "source: contains a password"),
        ('source = "postgres://me@host/db?sslpassword=s3cret"\ntable = "t"', "source: contains a password"),
        ('source = "postgresql://me@host/db"\ntable = "a.b.c"', "table: table must be a table name"),
        ('source = "postgresql://me@host/db"\ntable = 7', "table: must be text"),
        ('source = "mysql://me:s3cret@host/db"', "source: is an unsupported address"),
        ('source = ["a.parquet", "postgresql://me:s3cret@host/db"]', "source: is an unsupported address"),
    ],
)
def test_a_source_that_makes_no_sense_is_told_with_its_line_and_without_a_password(tmp_path, source, problem):
    with pytest.raises(PlanFileError) as caught:
        load_plan(plan_file(tmp_path, source))
    assert problem in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert str(caught.value.problems[0]).startswith(("line 2", "line 3"))


def test_a_server_that_does_not_answer_says_nothing_about_the_plan(tmp_path):
    schema = load_plan(plan_file(tmp_path, 'source = "x.parquet"')).plan.schema
    state = source_state(Postgres("postgresql://me:s3cret@127.0.0.1:1/db", table="t"), schema, engine="duckdb")
    assert state == "not read: no server answers there"
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 but not really PAR1")
    with pytest.raises(SourceError) as caught:
        source_state(tmp_path / "broken.parquet", schema, engine="duckdb")
    assert not caught.value.unreachable
