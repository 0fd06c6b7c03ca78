"""SAS files, SAS7BDAT and XPORT, give the totals and refusals of the same records elsewhere."""

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordwise as rw
from build import CODES, COUNTIES, MEASURES, question, records, session
from engines.copied_sources import problems, revealed
from recordwise.engines import DuckDB
from recordwise.engines.sources import stat
from recordwise.errors import ParameterError, SourceError
from recordwise.noise import Seeded
from recordwise.plan import Column, Plan, Schema
from recordwise.plan.sources import StatFiles, open_source

COLUMNS = {"county": "text", "naics": "text"}
SCHEMA = Schema.of(unit="id", firm="firm", measures=MEASURES, columns=COLUMNS)


def lists(table):
    """Columns as SAS has them: numbers are floats."""
    return {
        name: [each if isinstance(each, str) or each is None else float(each) for each in table[name].to_pylist()]
        for name in table.column_names
    }


def write_xport(path, columns, formats=None):
    import pyreadstat

    pyreadstat.write_xport(pd.DataFrame(columns), str(path), file_format_version=8, variable_format=formats or {})
    return path


@pytest.fixture(params=["sas7bdat", "xpt"])
def write(request, tmp_path):
    """Write columns to a SAS file of either kind."""
    writer = request.getfixturevalue("sas7bdat") if request.param == "sas7bdat" else write_xport

    def written(columns, name="t", formats=None):
        return writer(tmp_path / f"{name}.{request.param}", columns, formats)

    return written


def plan():
    asked = rw.query().group_by("county", keys=rw.Keys.product(county=COUNTIES, naics=CODES))
    asked = asked.levels(rw.prefix("naics", 2), rw.prefix("naics", 3)).count(rw.Gaussian(rho=1))
    asked = asked.sum("emp", rw.Gaussian(sigma=1)).sum("pay", rw.Gaussian(sigma=1))
    return Plan(schema=SCHEMA, queries=(asked.count_distinct("firm", rw.Gaussian(rho=1)),))


@pytest.mark.costly
def test_a_sas_file_gives_the_totals_of_the_same_records_in_memory(write):
    table = records(700)
    assert revealed(write(lists(table)), plan()) == revealed(table, plan())


def test_several_files_are_one_table(write, tmp_path):
    table = records(600)
    for number in range(3):
        path = write(lists(table.slice(200 * number, 200)), name=f"part{number}")
    assert revealed(str(tmp_path / f"part*{path.suffix}"), plan()) == revealed(table, plan())


@pytest.mark.parametrize("rows", [1, 7, 100, 101])
def test_chunks_cut_nothing_off_and_repeat_nothing(write, monkeypatch, rows):
    table = records(100)
    path = write(lists(table))
    monkeypatch.setattr(stat, "FEWEST_ROWS", rows)
    monkeypatch.setattr(stat, "MOST_ROWS", rows)
    parts = list(stat.stat_batches(StatFiles((path,)), SCHEMA, stat.stat_columns(StatFiles((path,)), SCHEMA)))
    assert max(part.num_rows for part in parts) == min(rows, 100)
    assert pa.concat_tables(parts)["id"].to_pylist() == list(range(100))


def test_a_chunk_has_fewer_rows_where_rows_are_wide(write):
    head = stat._head(write({"id": [1.0], "a": ["x" * 200], "b": ["y" * 200]}))
    assert stat._rows_at_once(head, ["id"]) == 500_000
    assert stat._rows_at_once(head, ["id", "a", "b"]) < 120_000


def test_missing_values_of_every_kind_are_null_and_padding_is_no_part_of_a_text(write):
    schema = Schema.of(
        unit="id",
        measures={"emp": 1},
        columns={"county": "text", "kind": Column(name="kind", null="category")},
    )
    special = [".A", "._", ".Z"] if write({"id": [1.0]}, name="probe").suffix == ".sas7bdat" else [None, math.nan, None]
    columns = {
        "id": [1.0, 2.0, 3.0, 4.0, 5.0],
        "emp": [3.0, *special, None],
        "county": ["01", "01   ", "", "   ", "0123456"],
        "kind": ["k", "", "k  ", " ", "k"],
    }
    assert problems(write(columns), schema)[0] == {("emp", "is NULL"): 4, ("county", "is NULL"): 2}
    columns |= {"emp": [1.0, 2.0, 3.0, 4.0, 5.0], "county": ["01", "01  ", "01", "02 ", " 02"]}
    keys = rw.Keys.product(county=["01", "02", " 02"], kind=["k", None])
    asked = Plan(
        schema=schema, queries=(rw.query().group_by("county", "kind", keys=keys).sum("emp", rw.Gaussian(sigma=1)),)
    )
    assert sorted(revealed(write(columns, name="good"), asked)[0][0]) == [0, 0, 2, 4, 4, 5]


def test_floats_off_the_lattice_are_counted_as_in_memory(write):
    pay = [0.07, 2.1, 0.1 + 0.2, math.nextafter(2.1, 3), -0.01, 1e15, 0.005, 12.34]
    columns = {"id": [float(each) for each in range(len(pay))], "pay": pay}
    schema = Schema.of(unit="id", measures={"pay": "0.01"})
    found, _ = problems(write(columns), schema)
    assert found == problems(pa.table(columns), schema)[0]
    assert found[("pay", "is off the lattice of step 1/100")] == 3


@pytest.mark.theorem("T-LATTICE")
@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 2**46), min_size=1, max_size=40), st.sampled_from(["0.01", "1/3", "0.25", "3"]))
@pytest.mark.costly
def test_xport_gives_back_the_steps_it_was_made_of(tmp_path_factory, steps, step):
    """XPORT has another float format; what is on the lattice comes back to the last unit."""
    values = [float(each * Fraction(step)) for each in steps]
    path = write_xport(
        tmp_path_factory.mktemp("x") / "t.xpt", {"id": [float(each) for each in range(len(values))], "x": values}
    )
    schema = Schema.of(unit="id", measures={"x": step})
    asked = Plan(schema=schema, queries=(rw.query().sum("x", rw.Gaussian(sigma=1)),))
    assert revealed(path, asked) == [[[sum(steps)]]]


def test_a_number_column_declared_integer_must_hold_whole_numbers(write):
    schema = Schema.of(unit="id", columns={"size": Column(name="size", type="integer", null="category")})
    columns = {"id": [1.0, 2.0, 3.0, 4.0, 5.0], "size": [7.0, 7.5, 1e30, None, -2.0]}
    assert problems(write(columns), schema)[0] == {("size", "cannot be read as integer"): 2}
    keys = rw.Keys.of({"size": [7, -2, None]})
    asked = Plan(schema=schema, queries=(rw.query().group_by("size", keys=keys).count(rw.Gaussian(rho=1)),))
    columns |= {"size": [7.0, 7.0, -2.0, None, 7.0]}
    assert sorted(revealed(write(columns, name="good"), asked)[0][0]) == [1, 1, 3]


@pytest.mark.parametrize(
    "shown", ["DATE9", "DATETIME20", "TIME8", "YYMMDD10", "YYMMDDN8", "E8601DA10", "MONYY7", "YEAR4", "DTDATE9"]
)
def test_dates_and_times_are_refused_by_name(write, shown):
    path = write({"id": [1.0], "when": [22_000.0]}, formats={"when": shown})
    with pytest.raises(SourceError, match="'when' was refused: its format is that of a date or a time"):
        DuckDB(path, Schema.of(unit="id", measures={"when": 1}))


@pytest.mark.parametrize(
    "shown, number", [("DATE9", 22_000.0), ("YYMMDD10", 22_000.0), ("DATETIME20", 22_000.5 * 86_400)]
)
def test_a_date_is_read_where_the_column_is_declared_one(write, shown, number):
    path = write({"id": [1.0, 2.0], "when": [number, None]}, formats={"when": shown})
    schema = Schema.of(unit="id", columns={"when": Column(name="when", type="date", null="category")})
    years = rw.query().group_by(
        rw.year("when"), rw.month("when"), keys={"when_year": [2020, None], "when_month": [3, None]}
    )
    assert revealed(path, Plan(schema=schema, queries=(years.count(rw.Gaussian(rho=1)),))) == [[[1, 1]]]


@pytest.mark.parametrize("shown", ["BEST12", "COMMA12", "DOLLAR10", "EUROX10", "F8", "Z5", "DATUM9", "YEARS4", "TIMES"])
def test_other_formats_are_no_dates(shown):
    assert stat.CALENDAR.fullmatch(shown) is None


def test_a_role_a_column_cannot_have_is_refused(write):
    path = write({"id": [1.0], "n": [2.0], "t": ["a"]})
    with pytest.raises(SourceError, match="declared as text but stored as number"):
        DuckDB(path, Schema.of(unit="id", columns={"n": "text"}))
    with pytest.raises(SourceError, match="declared as boolean but stored as number"):
        DuckDB(path, Schema.of(unit="id", columns={"n": "boolean"}))
    with pytest.raises(SourceError, match="no column N"):
        DuckDB(path, Schema.of(unit="id", measures={"N": 1}))
    with pytest.raises(ParameterError, match="must be declared for SAS, Stata and SPSS"):
        rw.Session(path, unit="id")


def test_files_with_different_columns_and_of_different_kinds_are_refused(write, tmp_path):
    write({"id": [1.0], "x": [2.0]}, name="p1")
    path = write({"id": [2.0], "x": ["a"]}, name="p2")
    with pytest.raises(SourceError, match="different columns"):
        DuckDB(str(tmp_path / f"p*{path.suffix}"), Schema.of(unit="id", measures={"x": 1}))
    (tmp_path / "other.csv").write_text("id\n1\n")
    with pytest.raises(SourceError, match="not all of one kind"):
        open_source([path, tmp_path / "other.csv"])


@pytest.mark.costly
def test_a_damaged_file_is_told_without_its_text_and_nothing_is_charged(write, tmp_path):
    path = write(lists(records(200)))
    with session(path, tmp_path / "small.ledger", columns=COLUMNS) as opened:
        whole = path.read_bytes()
        path.write_bytes(b"")
        with pytest.raises(SourceError, match="damaged") as caught:
            opened.run(question())
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__
        assert [event.kind for event in opened.history()] == ["opened"]
        path.write_bytes(whole)
        opened.run(question())
        assert [event.kind for event in opened.history()].count("charged") == 1


def test_a_file_that_changes_while_it_is_read_is_refused(write, monkeypatch):
    path = write(lists(records(50)))
    monkeypatch.setattr(stat, "FEWEST_ROWS", 20)
    monkeypatch.setattr(stat, "MOST_ROWS", 20)
    source = StatFiles((path,))
    parts = stat.stat_batches(source, SCHEMA, stat.stat_columns(source, SCHEMA))
    next(parts), next(parts)
    path.write_bytes(path.read_bytes())
    with pytest.raises(SourceError, match="changed while they were read"):
        list(parts)


def test_a_table_without_records_has_totals_of_zero(write):
    schema = Schema.of(unit="id", measures={"emp": 1})
    asked = rw.query().count(rw.Gaussian(rho=1)).sum("emp", rw.Gaussian(sigma=1))
    empty = {"id": np.array([], dtype=float), "emp": np.array([], dtype=float)}
    assert revealed(write(empty), Plan(schema=schema, queries=(asked,))) == [[[0], [0]]]


def test_a_release_from_sas_is_the_release_from_the_same_records(write):
    table = records(400)
    with session(write(lists(table)), columns=COLUMNS) as one, session(table, columns=COLUMNS) as other:
        theirs, ours = one.run(question(), rng=Seeded(5)), other.run(question(), rng=Seeded(5))
    assert [each.data for each in theirs.tables] == [each.data for each in ours.tables]


@pytest.mark.process
def test_pandas_and_polars_are_not_needed(write):
    """The extra brings pyreadstat only."""
    path = write(lists(records(50)))
    code = f"""
import sys
class Absent:
    def find_spec(name, path=None, target=None):
        if name in ("pandas", "polars"):
            raise ImportError(name)
sys.meta_path.insert(0, Absent)
from recordwise.engines import DuckDB
from recordwise.plan import Schema
with DuckDB({str(path)!r}, Schema.of(unit="id", measures={{"emp": 1}}, columns={{"county": "text"}})) as engine:
    engine.validate()
print("validated")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "validated\n", done.stderr
