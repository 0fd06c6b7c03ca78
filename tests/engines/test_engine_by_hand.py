"""Parts of an engine by hand: when records are checked again, sums that fit 64 bits, limits of what is held, and connections."""

import os
import tempfile
import threading
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

from build import exact_totals
from engines.plain_mechanism import Plain
from recordwise.engines import DuckDB
from recordwise.engines import engine as engines
from recordwise.engines.compile.expressions import column
from recordwise.engines.compile.records import Check, StorageType, close, same_names
from recordwise.engines.compile.totals import bases_of
from recordwise.engines.duckdb import connection as connections
from recordwise.engines.duckdb.connection import Connection, all_different
from recordwise.engines.engine import CodedCells, broken_rows, differing_units, file_marks
from recordwise.errors import DataError, EngineError, PlanError, SourceError
from recordwise.plan import Keys, Measure, Plan, Schema, Splitting
from recordwise.plan.query import query
from recordwise.policy import constant, gaussian_sum
from recordwise.policy.evaluate.sql import terms_sql

M = Plain()
SCHEMA = Schema.of(unit="id", measures={"emp": 1, "pay": 1}, columns={"county": "text", "kind": "text"})
ROWS = {"id": [1, 2, 3], "emp": [5, 0, 7], "pay": [1, 2, 3], "county": ["a", "b", "b"], "kind": ["x", "y", "x"]}


class Watched(DuckDB):
    """Notes what is checked."""

    def __init__(self, *given: Any, **more: Any) -> None:
        self.checked: list[list[str]] = []
        super().__init__(*given, **more)

    def _check_records(self, schema: Schema) -> None:
        self.checked.append(sorted({*schema.declared_names()} - {"id"}))
        super()._check_records(schema)


def asked(*measures: str, by: str | None = None) -> Plan:
    made = query() if by is None else query().group_by(by, keys={by: ["a", "b", "c"]})
    for measure in measures:
        made = made.sum(measure, M)
    return Plan(schema=SCHEMA, queries=(made.count(M),))


# When records are checked.


def test_columns_are_checked_when_a_plan_first_uses_them_and_not_again() -> None:
    with Watched(pa.table(ROWS), SCHEMA) as engine:
        engine.totals(asked("emp"))
        engine.totals(asked("emp"))
        engine.totals(asked())
        assert engine.checked == [["emp"]]
        engine.totals(asked("pay", by="county"))
        assert engine.checked == [["emp"], ["county", "emp", "pay"]]
        engine.totals(asked("emp", by="county"))
        assert len(engine.checked) == 2
        engine.totals(asked(), names=["kind"])
        engine.summarize(terms_sql(constant(1).rho, "duckdb"), [1.0])
        assert engine.checked[2:] == [["county", "emp", "kind", "pay"]]
        engine.validate(["emp"])
        assert engine.checked[3:] == [["county", "emp", "kind", "pay"]]


@pytest.mark.parametrize("names", [None, ["emp"], []])
def test_a_validation_checks_all_columns_or_those_that_are_named(names: list[str] | None) -> None:
    with Watched(pa.table(ROWS), SCHEMA) as engine:
        engine.validate(names)
        engine.validate(names)
    assert engine.checked == [["county", "emp", "kind", "pay"] if names is None else names] * 2


def test_a_column_that_no_plan_uses_refuses_nobody_until_it_is_used() -> None:
    table = pa.table(ROWS | {"pay": [1, -2, 3]})
    with DuckDB(table, SCHEMA) as engine:
        assert exact_totals(engine.totals(asked("emp"))[0]) == [[12], [3]]
        with pytest.raises(DataError, match="'pay' is negative"):
            engine.totals(asked("emp", "pay"))
        with pytest.raises(DataError, match="'pay' is negative"):
            engine.summarize(terms_sql(gaussian_sum("emp", sigma=1).rho, "duckdb"), [1.0])
        assert exact_totals(engine.totals(asked("emp"))[0]) == [[12], [3]]


def test_a_plan_of_another_schema_is_refused_before_records_are_checked() -> None:
    other = Schema.of(unit="id", measures={"emp": 1})
    with Watched(pa.table(ROWS), SCHEMA) as engine:
        with pytest.raises(PlanError, match="different schema"):
            engine.totals(Plan(schema=other, queries=(query().count(M),)))
        assert engine.checked == []


def test_a_file_that_changes_during_a_pass_is_noticed_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(ROWS), path)
    with DuckDB(path, SCHEMA) as engine:
        engine.validate()
        before = file_marks([path])
        with engine._reading(SCHEMA):
            pass
        pass_by = engine._reading(SCHEMA)
        pass_by.__enter__()
        pq.write_table(pa.table(ROWS | {"emp": [1, 1, 1]}), tmp_path / "new.parquet")
        os.replace(tmp_path / "new.parquet", path)
        assert file_marks([path]) != before
        with pytest.raises(SourceError, match="changed since they were validated"):
            pass_by.__exit__(None, None, None)
        with pytest.raises(SourceError, match="changed since they were validated"):
            engine.totals(asked())
        engine.validate()
        assert exact_totals(engine.totals(asked("emp"))[0]) == [[3], [3]]
    path.unlink()
    with pytest.raises(SourceError, match="can no longer be read"):
        file_marks([path])


def test_threads_take_turns() -> None:
    with DuckDB(pa.table(ROWS), SCHEMA) as engine:
        engine.validate()
        for call in (engine.validate, lambda: engine.totals(asked("emp"))):
            done: list[Any] = []
            other = threading.Thread(target=lambda done=done, call=call: done.append(call()))
            with engine._turn:
                other.start()
                other.join(0.05)
                assert not done
            other.join()
            assert done


def test_an_engine_is_closed_after_the_pass_in_progress() -> None:
    engine = DuckDB(pa.table(ROWS), SCHEMA)
    spilled = Path(engine._connection._spill.name)
    other = threading.Thread(target=engine.close)
    with engine._turn:
        other.start()
        other.join(0.05)
        assert spilled.exists()
        engine.validate()
    other.join()
    assert not spilled.exists()
    with pytest.raises(EngineError):
        engine.validate()


# What is held.


def coded(values: list[int]) -> CodedCells | None:
    """The finest cells of a sum by county, one for each value."""
    plan = Plan(schema=SCHEMA, queries=(query().group_by("county", keys=Keys.of({"county": ["a"]})).sum("emp", M),))
    (base,) = bases_of(plan.tables(), SCHEMA)
    cells = pa.table(
        {
            "g0": [str(place) for place in range(len(values))],
            "a0": pa.array(values, pa.decimal128(38, 0)),
        }
    )
    return CodedCells.of(cells, base, SCHEMA)


@pytest.mark.parametrize(
    ("values", "held"),
    [
        ([2**62], True),
        ([2**61, -(2**61)], True),
        ([2**62, 2**20], False),
        ([2**62, -(2**62)], False),
        ([-(2**62)], True),
        ([-(2**62), -(2**20)], False),
        ([2**63], False),
        ([-(2**63)], False),
        ([2**64], False),
        ([1, 2**64 + 1], False),
        ([], True),
    ],
)
def test_sums_are_held_in_64_bits_while_all_of_them_together_fit_in_62(values: list[int], held: bool) -> None:
    found = coded(values)
    assert (found is not None) == held
    if found is not None:
        assert found.sums["a0"].tolist() == values
        assert found.cells == len(values)


@pytest.mark.parametrize(("most", "in_memory"), [(2, True), (1, False)])
def test_so_many_finest_cells_are_rolled_up_in_memory(
    most: int, in_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = []
    real = CodedCells.of
    monkeypatch.setattr(engines, "MOST_CELLS", most)
    monkeypatch.setattr(CodedCells, "of", lambda *given: used.append(True) or real(*given))
    with DuckDB(pa.table(ROWS), SCHEMA) as engine:
        (found,) = engine.totals(asked("emp", by="county"))
    assert exact_totals(found) == [[5, 7, 0], [1, 2, 0]]
    assert bool(used) == in_memory


@pytest.mark.parametrize(("most", "in_memory"), [(6, True), (5, False)])
def test_so_many_combinations_of_keys_are_looked_up(
    most: int, in_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three counties and two kinds are six combinations, whichever of them are keys."""
    monkeypatch.setattr(engines, "MOST_PLACES", most)
    found: list[Any] = []
    real = CodedCells.totals
    monkeypatch.setattr(CodedCells, "totals", lambda *given: found.append(real(*given)) or found[-1])
    keys = Keys.of({"county": ["a", "b", "c"], "kind": ["x", "y", "x"]})
    plan = Plan(schema=SCHEMA, queries=(query().group_by("county", "kind", keys=keys).sum("emp", M),))
    with DuckDB(pa.table(ROWS), SCHEMA) as engine:
        assert exact_totals(engine.totals(plan)[0]) == [[5, 0, 0]]
    assert (found[0] is not None) == in_memory


def test_the_split_table_has_at_most_so_many_rows() -> None:
    splitting = Splitting.of({"emp": 2})
    with DuckDB(pa.table(ROWS), SCHEMA) as engine:
        # 5 is cut into three pieces, 0 is one, 7 four.
        assert engine.split_table(splitting, at_most=8).reveal().num_rows == 8
        with pytest.raises(PlanError, match="more than 7 rows"):
            engine.split_table(splitting, at_most=7)
        nobody = engine.split_table(splitting, condition=query().where("emp > 99").condition, at_most=0)
        assert nobody.reveal().num_rows == 0
    assert engines.MOST_PIECES == 100_000_000


# Problems of records.


def test_problems_are_counted_once_and_only_where_there_are_any() -> None:
    asked: list[str] = []

    def fetch(tree: exp.Expr) -> pa.Table:
        asked.append(tree.sql("duckdb"))
        return pa.table({"broken": [met], "c0": [0], "c1": [2]})

    met = 0
    assert broken_rows(fetch, []) == []
    assert asked == []
    found = [Check("a", "is odd", column("a"), code="x", advice="do"), Check("b", "is even", column("b"))]
    assert broken_rows(fetch, found) == []
    assert broken_rows(fetch, found, met=0) == []
    assert (len(asked), "FROM source" in asked[0]) == (1, True)
    (told,) = broken_rows(fetch, found, "joined", counted="unit", met=1)
    assert (told.column, told.problem, told.count) == ("b", "is even", 2)
    assert "2 units" in str(told)
    assert (len(asked), "FROM joined" in asked[1]) == (2, True)


def test_columns_that_differ_between_rows_of_a_unit_are_told_with_ways_out() -> None:
    rules: Any = {"emp": "max", "size": "same", "county": "same", "firm": "same"}
    schema = Schema.of(
        unit="id", firm="firm", measures={"emp": 1}, columns={"county": "text", "size": "integer"}, collapse=rules
    )
    table = pa.table({"found": [2], "d0": [0], "d1": [1], "d2": [2]})
    assert same_names(schema) == ("county", "firm", "size")
    firm, size = differing_units(lambda tree: table, schema)
    assert [(each.column, each.count) for each in (size, firm)] == [("size", 2), ("firm", 1)]
    assert "2 units" in str(size)
    assert "give it another rule, size = 'max' or 'min' under collapse; leave it out" in size.advice
    assert 'unit = ["id", "size"]' in size.advice
    assert firm.advice.startswith("Ways out for firm: leave it out of the schema")


# Connections and ids.


@pytest.mark.parametrize(("given", "threads"), [(1, 1), (3, 3), (None, os.cpu_count() or 1)])
def test_a_connection_has_the_threads_and_the_memory_it_is_given(given: int | None, threads: int) -> None:
    made = Connection(files=(), memory_limit="123MB", threads=given)
    try:
        asked = "SELECT current_setting('threads'), current_setting('preserve_insertion_order')"
        assert made.duckdb.execute(asked).fetchone() == (threads, False)
        (memory,) = made.duckdb.execute("SELECT current_setting('memory_limit')").fetchone() or ("",)
        assert memory == "117.3 MiB"
    finally:
        made.close()


def test_a_connection_that_cannot_be_opened_leaves_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    cleaned = []
    spill = SimpleNamespace(name="/nowhere", cleanup=lambda: cleaned.append(True))
    monkeypatch.setattr(tempfile, "TemporaryDirectory", lambda prefix: spill)
    with pytest.raises(EngineError):
        Connection(files=(), memory_limit="much", threads=1)
    assert cleaned == [True]


def test_an_interrupt_while_a_connection_opens_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(exp, "null", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Connection(files=(), memory_limit="100MB", threads=1)
    assert list(tmp_path.iterdir()) == []


def test_numbers_that_are_fetched_stay_when_the_next_ones_are() -> None:
    made = Connection(files=(), memory_limit="100MB", threads=1)
    try:
        asked = [exp.select(exp.cast(exp.Literal.number(each), exp.DType.BIGINT).as_("n")) for each in (3, 5)]
        first, second = (made.fetch_numbers(each, at_most=9) for each in asked)
        assert (first is not None and first.tolist(), second is not None and second.tolist()) == ([3], [5])
    finally:
        made.close()


@pytest.mark.parametrize(
    ("least", "most", "held", "near"),
    [
        (0, 32, 2, True),
        (0, 33, 2, False),
        (-16, 0, 1, True),
        (-17, 0, 1, False),
        (None, None, 0, False),
        (5, 5, 1, True),
    ],
)
def test_ids_are_close_with_at_most_sixteen_numbers_to_each(
    least: int | None, most: int | None, held: int, near: bool
) -> None:
    assert close({"least": least, "most": most, "held": held}) == near  # type: ignore[dict-item]


def test_equal_numbers_are_found_wherever_they_stand() -> None:
    assert all_different(np.array([], np.uint64))
    assert all_different(np.array([3, 1, 2], np.uint64))
    assert not all_different(np.array([3, 1, 3], np.uint64))


def test_ids_of_every_storage_are_counted_in_the_table_that_is_named() -> None:
    made = Connection(files=(), memory_limit="100MB", threads=1)
    schema = Schema.of(unit="id")
    try:
        made.duckdb.register("some", pa.table({"id": [7, 7, 7, None, 10**12]}))
        made.duckdb.register("source", pa.table({"id": [1, 2, 3]}))
        for kind in ("integer", "other"):
            stored: Any = StorageType(kind)  # type: ignore[arg-type]
            assert connections.repeated_ids(made, schema, stored, table="some") == 2
            assert connections.repeated_ids(made, schema, stored) == 0
            span = {"least": 7, "most": 7, "held": 5}
            assert connections.repeated_ids(made, schema, stored, table="some", span=span) == 2
    finally:
        made.close()


def test_a_measure_of_wide_steps_is_held_in_steps() -> None:
    schema = Schema.of(unit="id", measures={"emp": Measure.of("emp", step=Fraction(5, 2), signed=True)})
    table = pa.table({"id": [1, 2], "emp": [7.5, -2.5]})
    with DuckDB(table, schema) as engine:
        (found,) = engine.totals(Plan(schema=schema, queries=(query().sum("emp", M),)))
    assert exact_totals(found) == [[2]]
