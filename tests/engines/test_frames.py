"""Frames at the door: an error names the column and no value, and what is released is what was opened."""

import traceback
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import recordwise as rw
from build import employers
from engine_choice import need_java
from engines.plain_mechanism import Plain
from recordwise.engines.sources import stat
from recordwise.errors import DataError, RecordwiseError, SourceError
from recordwise.plan import Plan, Schema
from recordwise.plan.query import query

pytestmark = pytest.mark.filterwarnings("ignore::recordwise.errors.UnkeptLedgerWarning")
SECRET = "Ferrum Castings of Gary"
COUNTIES = ["01", "02"]
ROWS = {"id": [1, 2], "county": ["01", "02"], "emp": [10, 1000]}


def opened(source, **how) -> rw.Session:
    return employers(source, "county", **how)


class Untellable:
    """A value that Arrow has no type for and whose text is a secret."""

    def __repr__(self) -> str:
        return SECRET


BROKEN = {
    "text among numbers": ("emp", [10, SECRET]),
    "an object": ("emp", [10, Untellable()]),
    "a number beyond every type": ("emp", [10, 12345678901234567890123456789012345678901234567890]),
    "text that is no Unicode": ("county", ["01", SECRET + "\ud800"]),
    "a number among texts": ("county", [SECRET, 7]),
}


def columns(broken: str) -> dict:
    name, values = BROKEN[broken]
    return ROWS | {name: values}


def pandas_of(given: dict) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in given.items()})


def says_nothing_of_records(error: BaseException, column: str) -> None:
    """Neither in its text nor in whatever hangs on it."""
    shown = "".join(traceback.format_exception(error))
    assert f"column '{column}'" in str(error)
    for secret in (SECRET, "1234567890", "ud800"):
        assert secret not in str(error) + repr(error.args) + shown
    assert error.__cause__ is None
    assert error.__context__ is None


@pytest.mark.parametrize("made", [pandas_of, dict], ids=["pandas", "dict"])
@pytest.mark.parametrize("broken", BROKEN)
def test_a_frame_that_arrow_cannot_hold_is_refused_by_its_column_alone(broken: str, made) -> None:
    with pytest.raises(DataError, match="Nothing was spent") as refused:
        opened(made(columns(broken)))
    says_nothing_of_records(refused.value, BROKEN[broken][0])


def test_spark_refuses_such_a_frame_in_the_same_words() -> None:
    need_java()
    with pytest.raises(DataError) as refused:
        opened(pandas_of(columns("text among numbers")), engine="spark", spark="local[2]")
    says_nothing_of_records(refused.value, "emp")


@pytest.mark.parametrize(
    "source",
    [
        pl.DataFrame({"id": [1], "county": ["01"], "emp": pl.Series([Untellable()], dtype=pl.Object)}),
        pl.Series([1]),
        ROWS | {"emp": [1]},
        pd.DataFrame([[1, 2, 3]], columns=["id", "emp", "emp"]),
        pa.table([[1], [2], [3]], ["id", "emp", "emp"]),
        pa.table({"other": [SECRET]}),
    ],
    ids=["polars objects", "series", "uneven", "pandas twice", "arrow twice", "nothing declared"],
)
def test_what_is_no_table_of_the_declared_columns_is_refused_in_our_own_words(source) -> None:
    with pytest.raises(SourceError) as refused:
        opened(source)
    assert SECRET not in "".join(traceback.format_exception(refused.value))
    assert refused.value.__context__ is None


def test_an_error_of_a_library_while_records_are_validated_is_told_by_its_kind(monkeypatch) -> None:
    with opened(ROWS) as session:
        monkeypatch.setattr(type(session._engine), "_check_records", lambda engine, schema: int(SECRET))
        readers: tuple[Any, ...] = (
            session.validate,
            session.owner.view().loss_bins,
            session._engine.owner_passes().summarize_many,
        )
        for read in readers:
            with pytest.raises(RecordwiseError, match="duckdb failed with ValueError") as refused:
                read() if read == session.validate else read([])
            assert SECRET not in "".join(traceback.format_exception(refused.value))
            assert refused.value.__context__ is None


@pytest.mark.parametrize("text", [True, False])
def test_a_sas_value_of_another_type_is_told_by_its_column(text: bool) -> None:
    """A damaged file: the head says one type, the rows hold another."""
    values = [b"\xff" + SECRET.encode()] if text else [SECRET]
    with pytest.raises(DataError) as refused:
        stat._batch_table({"county": values}, {"county": "text" if text else "number"})
    says_nothing_of_records(refused.value, "county")


def published(session: rw.Session) -> list[int]:
    """Sums without noise to speak of: sigma 1/100 on whole numbers."""
    asked = rw.query().group_by("county", keys=rw.Keys.of({"county": COUNTIES})).sum("emp", rw.Gaussian(sigma="1/100"))
    return session.run(asked).tables[0].data.column(1).to_pylist()


def borrowed():
    """Frames that lend their memory, and the array that still writes to it."""
    values = np.array([10, 1000])
    yield "arrow", pa.table({"id": [1, 2], "county": COUNTIES, "emp": values}), values
    frame = pd.DataFrame({"id": [1, 2], "county": COUNTIES, "emp": [10, 1000]})
    inside = frame["emp"].values
    inside.flags.writeable = True
    yield "pandas", frame, inside
    stored = bytearray(np.array([10, 1000]).tobytes())
    column = pa.Array.from_buffers(pa.int64(), 2, [None, pa.py_buffer(stored)])
    yield "buffer", pa.table({"id": [1, 2], "county": COUNTIES, "emp": column}), np.frombuffer(stored, dtype=np.int64)
    values = np.array([1000, 10])
    indices = pa.DictionaryArray.from_arrays(pa.array(np.array([1, 0])), pa.array(values))
    yield "dictionary", pa.table({"id": [1, 2], "county": COUNTIES, "emp": indices}), values


@pytest.mark.parametrize("lent", list(borrowed()), ids=lambda lent: lent[0])
def test_a_frame_changed_after_it_was_opened_is_released_as_it_was(lent, opens) -> None:
    _, frame, memory = lent
    kept = memory.copy()
    with opened(frame, **opens.session_options()) as session:
        memory[:] = 2**62
        session.validate()
        memory[:] = 0
        found = published(session)
    memory[:] = kept
    assert found == [10, 1000]


def test_only_declared_columns_are_copied() -> None:
    table = pa.table(ROWS | {"rest": ["x" * 1000] * 2})
    with opened(table) as session:
        held = vars(session._engine)["_connection"].duckdb.table("source").columns
    assert sorted(held) == ["county", "emp", "id"]


def test_after_a_refused_validation_nothing_is_published(opens, monkeypatch) -> None:
    with opened(ROWS, **opens.session_options()) as session:
        session.validate()
        check = type(session._engine)._check_records
        refusal = DataError(problems=())

        def refuse(engine, schema) -> None:
            raise refusal

        monkeypatch.setattr(type(session._engine), "_check_records", refuse)
        for read in (session.validate, lambda: published(session)):
            with pytest.raises(DataError):
                read()
        assert "charged" not in [event.kind for event in session.history()]
        monkeypatch.setattr(type(session._engine), "_check_records", check)
        assert published(session) == [10, 1000]


def in_pieces(*sizes):
    """A table whose rows come in pieces, some of which have none."""
    whole = pa.record_batch({"id": range(sum(sizes)), "emp": [1] * sum(sizes), "county": ["01"] * sum(sizes)})
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    return pa.Table.from_batches([whole.slice(start, size) for start, size in zip(starts, sizes)])


@pytest.mark.parametrize("sizes", [(0, 0, 2, 0, 1), (2, 0, 3)])
@pytest.mark.parametrize("stored", ["frame", "arrow", "csv"])
def test_a_piece_without_rows_loses_none_of_those_after_it(opens, tmp_path, stored, sizes):
    source = in_pieces(*sizes)
    if stored == "arrow":
        with pa.ipc.new_file(str(tmp_path / "t.arrow"), source.schema) as writer:
            for batch in source.to_batches():
                writer.write_batch(batch)
        source = tmp_path / "t.arrow"
    elif stored == "csv":
        for number, batch in enumerate(source.to_batches()):
            lines = ["id,emp,county", *(",".join(map(str, row.values())) for row in batch.to_pylist()), ""]
            (tmp_path / f"t{number}.csv").write_bytes("\n".join(lines).encode("utf-16"))
        source = rw.sources.Csv(tmp_path / "t*.csv", encoding="utf-16")
    schema = Schema.of(unit="id", measures={"emp": 1}, columns={"county": "text"})
    asked = query().group_by("county", keys=COUNTIES).count(Plain()).sum("emp", Plain())
    with opens(source, schema) as engine:
        (found,) = engine.totals(Plan(schema=schema, queries=(asked,)))
    totals = [each.tolist() for each in found.exact.reveal().totals.values()]
    assert totals == [[sum(sizes), 0], [sum(sizes), 0]]
