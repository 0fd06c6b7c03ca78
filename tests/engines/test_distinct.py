"""Ids are proved unique by numbers that differ, and counted exactly wherever that does not prove it."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from recordwise.engines import DuckDB
from recordwise.engines.compile import records
from recordwise.engines.duckdb import connection as distinct
from recordwise.engines.duckdb.connection import SPREADS, all_different
from recordwise.errors import DataError
from recordwise.plan import Schema

WORD = st.integers(0, 2**64 - 1) | st.integers(0, 5)
REPEATS = "repeats an id that must be unique"


@pytest.mark.theorem("T-UNIQUE")
@settings(max_examples=300, deadline=None)
@given(st.lists(WORD, max_size=60))
@pytest.mark.costly
def test_numbers_are_all_different_exactly_if_no_two_are_equal(drawn):
    assert all_different(np.array(drawn, dtype=np.uint64)) == (len(set(drawn)) == len(drawn))


@pytest.mark.parametrize("kind", ["high bits", "one place", "one place in every round", "shuffled", "in order"])
@pytest.mark.parametrize("rows", [2, 2**18 - 1, 2**18, 2**18 + 1, 600_000])
@pytest.mark.costly
@pytest.mark.sampled
def test_one_repeat_among_many_numbers_is_found_wherever_it_stands(kind, rows, monkeypatch):
    numbers = np.arange(rows, dtype=np.uint64)
    if kind.startswith("one place"):
        # Products so small that all of them have the same leading bits: a round keeps one number.
        numbers = numbers * np.uint64(pow(int(SPREADS[0]), -1, 2**64))
        monkeypatch.setattr(distinct, "SPREADS", SPREADS[:1] * 3 if "every" in kind else SPREADS)
    elif kind == "shuffled":
        numbers = np.random.default_rng(1).permutation(numbers) * np.uint64(0x9E3779B97F4A7C15)
    elif kind == "high bits":
        numbers = numbers << np.uint64(40)
    assert all_different(numbers)
    for place in (1, rows // 2, rows - 1):
        repeated = numbers.copy()
        repeated[place] = repeated[0]
        assert not all_different(repeated)


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 5])
def test_numbers_come_in_batches_up_to_a_limit(rows, monkeypatch):
    monkeypatch.setattr(distinct, "BATCH_ROWS", 2)
    tree = exp.select(exp.column("n")).from_("numbers")
    connection = distinct.Connection(files=(), memory_limit="100MB", threads=1)
    connection.duckdb.register("numbers", pa.table({"n": np.arange(rows, dtype=np.int64) - 1}))
    expected = (np.arange(rows, dtype=np.int64) - 1).view(np.uint64)
    assert np.array_equal(connection.fetch_numbers(tree, at_most=rows), expected)
    assert np.array_equal(connection.fetch_numbers(tree, at_most=rows + 1), expected)
    if rows:
        assert connection.fetch_numbers(tree, at_most=rows - 1) is None
    connection.close()


def repeats(ids, opens=DuckDB):
    with opens(pa.table({"id": ids}), Schema.of(unit="id")) as engine:
        try:
            engine.validate()
        except DataError as error:
            return {each.problem: each.count for each in error.problems}
    return {}


IDS = {
    "whole": pa.array([-(2**63), -1, 0, 1, 2**63 - 1]),
    "small": pa.array([-128, 0, 5, 127], pa.int8()),
    "unsigned": pa.array([0, 2**63, 2**64 - 1], pa.uint64()),
    "text": pa.array(["", "a", "b", "a ", "A", "\u00e4", "a\u0308"]),
    "float": pa.array([0.0, 1.0, -1.0, 1e300]),
    "decimal": pa.array([Decimal("1.00"), Decimal("0.10")]),
    "bytes": pa.array([b"", b"\x00", b"\x00\x00"]),
}


@pytest.mark.parametrize("name", IDS)
def test_ids_of_every_type_are_told_apart_and_repeats_are_counted(name):
    ids = IDS[name]
    assert repeats(ids) == {}
    assert repeats(pa.concat_arrays([ids, ids.take(pa.array([0, 1, 0]))])) == {REPEATS: 3}


NEIGHBORS = [-65, -64, -33, -32, -31, -16, -2, -1, 0, 1, 2, 16, 30, 31, 32, 33, 63, 64, 65]
"""Either side of the ends of words and of their halves, negative ones among them."""


@pytest.mark.theorem("T-UNIQUE")
@pytest.mark.parametrize("apart", [16, -1], ids=["by bits", "by numbers"])
@pytest.mark.costly
def test_whole_numbers_close_together_are_counted_exactly(apart, opens, monkeypatch):
    monkeypatch.setattr(records, "MOST_APART", apart)
    for kind in (pa.int8(), pa.int32(), pa.int64()):
        assert repeats(pa.array(NEIGHBORS, kind), opens) == {}
        assert repeats(pa.array([*NEIGHBORS, -32, 31, 31, None], kind), opens) == {"is NULL": 1, REPEATS: 3}
        assert repeats(pa.array([None, *NEIGHBORS, None], kind), opens) == {"is NULL": 2}


@pytest.mark.parametrize("least", [-(2**63), 2**63 - 100])
def test_ids_at_the_ends_of_64_bits_are_counted_by_bits(least, opens):
    ids = np.arange(100, dtype=np.int64) + np.int64(least)
    assert repeats(pa.array(ids), opens) == {}
    assert repeats(pa.array(np.append(ids, ids[[0, 99]])), opens) == {REPEATS: 2}


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=str)
def test_ids_far_apart_are_counted_exactly_on_every_engine(kind, opens):
    ids = pa.array([value * 10**9 for value in (-7, -1, 0, 3, 8)]).cast(kind)
    assert repeats(ids, opens) == {}
    assert repeats(pa.concat_arrays([ids, ids.take(pa.array([0, 1, 0])), pa.nulls(2, kind)]), opens) == {
        "is NULL": 2,
        REPEATS: 3,
    }


def test_ids_are_counted_by_bits_only_where_they_are_close(monkeypatch):
    counted = []
    bits = distinct.bits_tree
    monkeypatch.setattr(distinct, "bits_tree", lambda *given: counted.append(True) or bits(*given))
    assert repeats(pa.array([1, 2, 10**9])) == {}
    assert not counted
    assert repeats(pa.array([10**9, 10**9 + 2, 10**9 + 40])) == {}
    assert counted


def test_zero_and_negative_zero_are_one_id():
    assert repeats(pa.array([0.0, -0.0])) == {REPEATS: 1}


def test_ids_that_are_null_are_counted_apart_from_repeats():
    assert repeats(pa.array([1, None, None, 1])) == {"is NULL": 2, REPEATS: 1}
    assert repeats(pa.array([0, None, 10**9])) == {"is NULL": 1}
    assert repeats(pa.array([0, None, 10**9, 0])) == {"is NULL": 1, REPEATS: 1}
    assert repeats(pa.array(["a", None, None, "a"])) == {"is NULL": 2, REPEATS: 1}


def test_hashes_that_meet_by_chance_refuse_nobody(monkeypatch):
    """A hash that is the same for all ids proves nothing, so they are counted."""
    same = exp.select(exp.alias_(exp.cast(exp.Literal.number(7), "BIGINT"), "fingerprint")).from_("source")
    monkeypatch.setattr(distinct, "fingerprints_tree", lambda *_: same)
    assert repeats(pa.array(["a", "b", "c"])) == {}
    assert repeats(pa.array(["a", "b", "a"])) == {REPEATS: 1}


def test_too_many_ids_to_hold_are_counted_by_the_engine(monkeypatch):
    monkeypatch.setattr(distinct, "MOST_HELD", 3)
    monkeypatch.setattr(distinct, "all_different", lambda *_: pytest.fail("held too many"))
    assert repeats(pa.array(["1", "2", "3", "4"])) == {}
    assert repeats(pa.array(["1", "2", "3", "1"])) == {REPEATS: 1}


def test_a_repeat_among_many_records_is_counted_exactly():
    ids = np.random.default_rng(1).permutation(300_000)
    assert repeats(pa.array(ids)) == {}
    ids[299_999] = ids[0]
    assert repeats(pa.array(ids)) == {REPEATS: 1}
    assert repeats(pa.array(ids * 1000)) == {REPEATS: 1}
    assert repeats(pa.array(ids).cast(pa.string())) == {REPEATS: 1}


def test_validation_reads_the_records_and_not_what_the_file_says_of_them(tmp_path):
    """A Parquet file whose statistics deny a negative value and a NULL id is refused all the same."""
    path = tmp_path / "t.parquet"
    emp = np.full(5000, 3, dtype=np.int64)
    emp[77] = -424242
    pq.write_table(pa.table({"id": np.arange(5000), "emp": emp}), path, use_dictionary=False, compression="none")
    raw = path.read_bytes()
    size = int.from_bytes(raw[-8:-4], "little")
    footer, lie = raw[-8 - size : -8], (0).to_bytes(8, "little")
    truth = (-424242).to_bytes(8, "little", signed=True)
    assert truth in footer
    path.write_bytes(raw[: -8 - size] + footer.replace(truth, lie) + raw[-8:])
    assert pq.ParquetFile(path).metadata.row_group(0).column(1).statistics.min == 0
    with DuckDB(path, Schema.of(unit="id", measures={"emp": 1})) as engine, pytest.raises(DataError) as caught:
        engine.validate()
    assert [(each.problem, each.count) for each in caught.value.problems] == [("is negative", 1)]
