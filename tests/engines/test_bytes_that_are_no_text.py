"""Bytes that are no text refuse a table on every engine: shown as one sign for all of them, two texts would become one."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engines.plain_mechanism import Plain
from recordwise.errors import RecordwiseError
from recordwise.plan import Plan, Schema
from recordwise.plan.query import query

SCHEMA = Schema.of(unit="id", measures={"emp": 1}, columns={"town": "text"})
SIGN = "\N{REPLACEMENT CHARACTER}"
ASKED = query().group_by("town", keys=["Zq", f"Zq{SIGN}"]).count(Plain()).sum("emp", Plain())


def totals(opens, source):
    with opens(source, SCHEMA) as engine:
        (found,) = engine.totals(Plan(schema=SCHEMA, queries=(ASKED,)))
    return [each.tolist() for each in found.exact.reveal().totals.values()]


@pytest.mark.parametrize("column", ["id", "town"])
@pytest.mark.parametrize("stored", ["parquet", "csv"])
def test_bytes_that_are_no_text_refuse_the_table(opens, tmp_path, stored, column):
    bad, good = [b"Zq\xff", b"Zq\xfe"], [b"Zq", b"Zr"]
    ids, towns = (bad, good) if column == "id" else (good, bad)
    path = tmp_path / f"t.{stored}"
    if stored == "csv":
        lines = [b"id,emp,town", *(b",".join((name, b"1", town)) for name, town in zip(ids, towns)), b""]
        path.write_bytes(b"\n".join(lines))
    else:
        texts = {"id": pa.array(ids).view(pa.string()), "town": pa.array(towns).view(pa.string())}
        pq.write_table(pa.table({**texts, "emp": [1, 1]}), path)
    with pytest.raises(RecordwiseError) as refusal:
        totals(opens, path)
    assert "Zq" not in str(refusal.value)
    if stored == "csv":
        assert "line 2 holds text that is not UTF-8" in str(refusal.value)


def test_the_sign_itself_is_text(opens, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"id,emp,town\n1,5,Zq\n2,7,Zq{SIGN}\n", encoding="utf-8")
    assert totals(opens, path) == [[1, 1], [5, 7]]
