"""What a Parquet footer states about its columns decides nothing: every record counts by what it holds."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engines.false_statistics import NO_NULLS, whole, write_false
from engines.plain_mechanism import Plain
from recordwise.errors import DataError
from recordwise.plan import Column, Measure, Plan, Schema
from recordwise.plan.query import query

M = Plain()
TABLE = pa.table({"id": [11, 12, 13], "firm": [7, 7, 8], "county": ["bb"] * 3, "size": [70007] * 3, "emp": [60006] * 3})
FALSE = ((b"bb", b"aa"), (whole(70007), whole(5)), (whole(60006), whole(4)), (whole(13), whole(11)))
SCHEMA = Schema.of(
    unit="id",
    firm="firm",
    measures={"emp": Measure.of("emp", step=1, bound=10**6)},
    columns={"county": "text", "size": "integer"},
)
KEYS = ["aa", "bb"]
QUERIES = (
    *(query().where(f"county = '{key}'").count(M).sum("emp", M) for key in KEYS),
    *(
        query().where(test).count(M)
        for test in ("size = 5", "size < 10", "size > 100", "size IN (70007, 3)", "emp < 10")
    ),
    query().where("NOT county = 'aa' AND size <> 5").count(M).count_distinct("firm", M),
    query().group_by("county", keys=KEYS).count(M).sum("emp", M).count_distinct("firm", M),
    query().group_by("size", keys=[5, 70007]).count(M).sum("emp", M),
)
TRUTH = [[[0], [0]], [[3], [180018]], [[0]], [[0]], [[3]], [[3]], [[0]], [[3], [2]]]
TRUTH += [[[0, 3], [0, 180018], [0, 2]], [[0, 3], [0, 180018]]]


def totals(opens, path, schema=SCHEMA):
    """Each query by itself: conditions of queries in one pass are decided by what it found, not by the file."""
    with opens(path, schema) as engine:
        found = [engine.totals(Plan(schema=schema, queries=(each,)))[0] for each in QUERIES]
    return [[column.tolist() for column in each.exact.reveal().totals.values()] for each in found]


def test_no_condition_and_no_group_is_decided_by_what_a_footer_states(opens, tmp_path):
    write_false(TABLE, tmp_path / "t.parquet", FALSE)
    stated = pq.ParquetFile(tmp_path / "t.parquet").metadata.row_group(0)
    assert (stated.column(2).statistics.min, stated.column(3).statistics.max) == ("aa", 5)
    assert totals(opens, tmp_path / "t.parquet") == TRUTH


BROKEN = {
    "a missing value where none is stated": ("emp", [1, None, 3], NO_NULLS, "is NULL"),
    "a negative value where none is stated": ("emp", [1, -60006, 3], [(whole(-60006), whole(1))], "is negative"),
    "a value beyond the bound": (
        "emp",
        [1, 2, 7 * 10**6],
        [(whole(7 * 10**6), whole(3))],
        "is beyond its public bound",
    ),
    "an id twice where few are stated": ("id", [1, 70007, 70007], [(whole(70007), whole(2))], "repeats an id"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_no_check_is_decided_by_what_a_footer_states(opens, tmp_path, case):
    name, values, swaps, problem = BROKEN[case]
    place = TABLE.column_names.index(name)
    table = TABLE.set_column(place, name, pa.array(values, pa.int64()))
    write_false(table, tmp_path / "t.parquet", swaps)
    with opens(tmp_path / "t.parquet", SCHEMA) as engine, pytest.raises(DataError, match=problem) as refusal:
        engine.validate()
    assert [each.count for each in refusal.value.problems] == [1]


def test_records_with_missing_values_in_groups_count_where_none_are_stated(opens, tmp_path):
    schema = Schema.of(unit="id", columns={"size": Column(name="size", type="integer", null="category")})
    table = pa.table({"id": [1, 2], "size": [5, None]})
    write_false(table, tmp_path / "t.parquet", NO_NULLS)
    asked = query().group_by("size", keys={"size": [5, None]}).count(M)
    with opens(tmp_path / "t.parquet", schema) as engine:
        (found,) = engine.totals(Plan(schema=schema, queries=(asked,)))
    assert [column.tolist() for column in found.exact.reveal().totals.values()] == [[1, 1]]
