"""Several rows of a unit become one record before anything else reads them: on both engines what a few lines of Python make."""

import datetime
import math
from collections import defaultdict
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recordwise as rw
from build import employers
from engines.plain_mechanism import Plain
from recordwise.engines import DuckDB
from recordwise.errors import DataError, LedgerError, ParameterError, PlanFileError
from recordwise.plan import Column, Measure, Plan, Schema
from recordwise.plan.query import query

M = Plain()
SCHEMA = Schema.of(
    unit="plant",
    firm="owner",
    measures={
        "kwh": Measure.of("kwh", step="0.1", bound=10_000),
        "customers": 1,
        "least": 1,
        "fee": Measure.of("fee", null="zero"),
    },
    columns={"state": "text", "rating": "integer", "read": "date", "kind": Column(name="kind", null="category")},
    collapse={
        "kwh": "sum",
        "customers": "max",
        "least": "min",
        "fee": "sum",
        "state": "same",
        "rating": "min",
        "read": "max",
        "kind": "same",
        "owner": "same",
    },
)


def rows_of(seed, units=40):
    rng = Random(seed)
    rows = []
    for unit in range(units):
        fixed = {"state": rng.choice("abc"), "kind": rng.choice(["k", None]), "owner": f"o{rng.randrange(9)}"}
        for _ in range(rng.randint(1, 12)):
            changing = {
                "plant": f"p{unit}",
                "kwh": rng.randrange(1000) / 10,
                "customers": rng.randrange(500),
                "least": rng.randrange(500),
                "fee": rng.choice([None, rng.randrange(90)]),
                "rating": rng.randrange(-3, 4),
                "read": datetime.date(2020 + rng.randrange(3), rng.randint(1, 12), rng.randint(1, 28)),
            }
            rows.append(fixed | changing)
    rng.shuffle(rows)
    return rows


def table_of(rows):
    types = {"fee": pa.int64(), "read": pa.date32(), "kind": pa.string()}
    return pa.table({name: pa.array([row[name] for row in rows], types.get(name)) for name in rows[0]})


def collapsed(rows):
    """What it should be, slowly."""
    units = defaultdict(list)
    for row in rows:
        units[row["plant"]].append(row)
    return [
        {
            "kwh": sum(round(row["kwh"] * 10) for row in each),
            "customers": max(row["customers"] for row in each),
            "least": min(row["least"] for row in each),
            "fee": sum(row["fee"] or 0 for row in each),
            "rating": min(row["rating"] for row in each),
            "read": max(row["read"] for row in each),
            **{name: each[0][name] for name in ("state", "kind", "owner")},
        }
        for each in units.values()
    ]


def totals(opens, source, schema, *queries):
    with opens(source, schema) as engine:
        found = engine.totals(Plan(schema=schema, queries=queries))
    return [[column.tolist() for column in each.exact.reveal().totals.values()] for each in found]


@pytest.mark.theorem("T-COLLAPSE")
@pytest.mark.parametrize("seed", range(2))
def test_totals_are_those_of_one_record_for_each_unit(opens, seed):
    rows = rows_of(seed)
    records = collapsed(rows)
    states = {"state": ["a", "b", "c"]}
    sums = query().group_by("state", keys=states).count(M)
    for name in ("kwh", "customers", "least", "fee"):
        sums = sums.sum(name, M)
    by_kind = query().where("kwh > 30 AND rating < 0").group_by("kind", keys={"kind": ["k", None]}).count(M)
    years = query().group_by(rw.year("read"), keys=[2020, 2021, 2022]).count(M)
    firms = query().count_distinct("owner", M).count_distinct("plant", M)
    found = totals(opens, table_of(rows), SCHEMA, sums, by_kind, years, firms)
    of_state = [[record for record in records if record["state"] == state] for state in "abc"]
    assert found[0] == [
        list(map(len, of_state)),
        *([sum(record[name] for record in each) for each in of_state] for name in ("kwh", "customers", "least", "fee")),
    ]
    large = [record for record in records if record["kwh"] > 300 and record["rating"] < 0]
    assert found[1] == [[sum(record["kind"] == kind for record in large) for kind in ("k", None)]]
    assert found[2] == [[sum(record["read"].year == year for record in records) for year in (2020, 2021, 2022)]]
    assert found[3] == [[len({record["owner"] for record in records})], [len(records)]]


SMALL = Schema.of(
    unit="id", measures={"x": Measure.of("x", bound=100)}, columns={"c": "text"}, collapse={"x": "sum", "c": "same"}
)


def refusal(opens, columns, schema=SMALL):
    source = pa.table(columns) if isinstance(columns, dict) else columns
    with opens(source, schema) as engine, pytest.raises(DataError) as found:
        engine.validate()
    return {(each.column, each.problem): each.count for each in found.value.problems}, str(found.value)


def test_a_sum_beyond_the_bound_is_refused_though_every_row_is_within_it(opens):
    rows = {"id": ["s1", "s1", "s2", "s2", "s3"], "x": [51, 50, 50, 50, 100], "c": ["q"] * 5}
    problems, message = refusal(opens, rows)
    assert problems == {("x", "is beyond its public bound"): 1}
    assert "in 1 unit." in message
    assert "101" not in message
    assert "s1" not in message


def test_a_sum_that_no_64_bits_hold_is_refused_and_does_not_wrap(opens):
    schema = Schema.of(unit="id", measures={"x": Measure.of("x", bound=2**62)}, collapse={"x": "sum"})
    problems, _ = refusal(opens, {"id": [1] * 8 + [2], "x": [2**62] * 8 + [5]}, schema)
    assert problems == {("x", "is beyond its public bound"): 1}


def test_units_whose_rows_differ_are_counted_by_column_missing_values_among_them(opens):
    schema = Schema.of(
        unit="id",
        firm="f",
        measures={"x": 1},
        columns={"c": Column(name="c", null="category"), "b": "boolean"},
        collapse={"x": "same", "c": "same", "b": "same", "f": "same"},
    )
    rows = {
        "id": [1, 1, 2, 2, 3, 3, 4, 4, 5],
        "f": [7, 7, 7, 7, 7, 7, 7, 8, 7],
        "x": [1, 1, 2, 3, 4, 4, 5, 5, 6],
        "c": ["secret", None, "a", "a", "a", "b", None, None, "a"],
        "b": [True] * 9,
    }
    problems, message = refusal(opens, rows, schema)
    differs = "differs between the rows of a unit"
    assert problems == {("c", differs): 2, ("x", differs): 1, ("f", differs): 1}
    assert "in 2 units." in message
    assert "secret" not in message


@pytest.mark.parametrize(
    "columns, problem",
    [
        ({"x": [1.5, 1.0]}, ("x", "is off the lattice of step 1")),
        ({"x": [-1.0, 5.0]}, ("x", "is negative")),
        ({"x": [None, 5.0]}, ("x", "is NULL")),
        ({"x": [math.nan, 5.0]}, ("x", "is not a number (NaN)")),
        ({"x": [101.0, 5.0]}, ("x", "is beyond its public bound")),
        ({"id": [None, 1]}, ("id", "is NULL")),
        ({"c": [None, "a"]}, ("c", "is NULL")),
    ],
)
def test_every_row_is_validated_before_rows_are_joined(opens, columns, problem):
    problems, _ = refusal(opens, {"id": [1, 2], "x": [1.0, 2.0], "c": ["a", "a"]} | columns)
    assert problems == {problem: 1}


def test_a_row_on_which_the_joining_pass_itself_fails_is_told_by_its_check(opens, tmp_path):
    """A text that is no number cannot be added up, and 1e300 is beyond all whole numbers; each is one row of the third unit."""
    path = tmp_path / "rows.csv"
    path.write_text("id,x,c\n1,5,a\n1,6,a\n2,7,a\n3,much,a\n3,1,a\n")
    problems, message = refusal(opens, str(path))
    assert len(problems) == 1
    assert {(column, count) for (column, _), count in problems.items()} == {("x", 1)}
    assert "much" not in message
    problems, _ = refusal(opens, {"id": [1, 2, 3], "x": [1.0, 2.0, 1e300], "c": ["a"] * 3})
    assert problems == {("x", "is beyond its public bound"): 1}


def test_rows_may_have_columns_of_any_name(opens):
    """The pass that joins rows marks broken ones in a column of its own."""
    schema = Schema.of(
        unit="Broken", measures={"broken_": 1}, columns={"c": "text"}, collapse={"broken_": "sum", "c": "same"}
    )
    source = pa.table({"Broken": [1, 1, 2], "broken_": [3, 4, 5], "c": ["a", "a", "b"]})
    asked = query().group_by("c", keys={"c": ["a", "b"]}).count(M).sum("broken_", M)
    assert totals(opens, source, schema, asked) == [[[1, 1], [7, 5]]]
    problems, _ = refusal(opens, {"Broken": [1, 1, 2], "broken_": [3, -4, 5], "c": ["a", "a", "b"]}, schema)
    assert problems == {("broken_", "is negative"): 1}


def test_columns_that_no_query_uses_may_differ_between_rows(opens):
    table = pa.table({"id": [1, 1, 2], "x": [1, 2, 3], "c": ["a", "b", "a"]})
    count = query().count(M).sum("x", M)
    with opens(table, SMALL) as engine:
        for _ in range(2):
            (found,) = engine.totals(Plan(schema=SMALL, queries=(count,)))
            assert [column.tolist() for column in found.exact.reveal().totals.values()] == [[2], [6]]
        with pytest.raises(DataError, match="'c' differs"):
            engine.totals(Plan(schema=SMALL, queries=(query().group_by("c", keys=["a"]).count(M),)))
        (found,) = engine.totals(Plan(schema=SMALL, queries=(query().count(M),)))
        assert next(iter(found.exact.reveal().totals.values())).tolist() == [2]


@pytest.mark.parametrize(
    "collapse, problem",
    [
        ({"x": "sum"}, "no rule for 'c'"),
        ({"x": "sum", "c": "max"}, "collapse of 'c' must be 'same'"),
        ({"x": "mean", "c": "same"}, "must be 'sum' or 'max'"),
        ({"x": "sum", "c": "same", "d": "same"}, "a rule for 'd', which is not declared"),
    ],
)
def test_every_declared_column_needs_a_rule_it_can_have(collapse, problem):
    with pytest.raises(ParameterError, match=problem):
        Schema.of(unit="id", measures={"x": 1}, columns={"c": "text"}, collapse=collapse)


def session(tmp_path, table, **options):
    given = {"measures": {"x": 1}, "collapse": {"x": "sum", "c": "same"}, "ledger": tmp_path / "l"}
    return employers(table, "c", **(given | options))


ROWS = {"id": [1, 1, 2], "x": [1, 2, 900], "c": ["a", "a", "b"]}


@pytest.mark.costly
def test_a_release_and_the_owners_view_see_records_and_not_rows(opens, tmp_path):
    asked = (
        rw.query()
        .group_by("c", keys=["a", "b"])
        .count(rw.Gaussian(rho=10**6))
        .sum("x", rw.UnitSplit(at=1000, rho=10**9))
    )
    with session(tmp_path, pa.table(ROWS), **opens.session_options()) as opened:
        release = opened.run(asked)
        assert release.tables[0].data["count"].to_pylist() == [1, 1]
        assert release.tables[0].data["sum_x"].to_pylist() == [3, 900]
        assert release.to_json()["schema"]["rows"] == "several for a unit, made one record"
        opened.tuning_reason = "a test"
        assert opened.owner.loss_summary(release.policy).counts.sum() == 2
        split = opened.run_external(lambda rows: pa.table({"n": [len(rows)]}), split={"x": 100}, rho=1, seeded=True)
        assert split.tables[0].data["n"].to_pylist() == [1 + 9]


def test_a_ledger_keeps_the_rules(tmp_path):
    with session(tmp_path, pa.table(ROWS)) as opened:
        opened.run(rw.query().sum("x", rw.Gaussian(sigma=10)))
    with pytest.raises(LedgerError, match="x had a different meaning"):
        session(tmp_path, pa.table(ROWS), collapse={"x": "max", "c": "same"})
    with pytest.raises(LedgerError, match="the rows of a unit"):
        session(tmp_path, pa.table(ROWS), collapse=None)


def test_types_that_a_file_declares_are_taken_for_the_columns_with_a_rule(tmp_path):
    pq.write_table(pa.table(ROWS | {"other": ["q"] * 3}), tmp_path / "t.parquet")
    with session(tmp_path, tmp_path / "t.parquet", columns=None) as opened:
        assert opened.schema.column_names() == ("c",)


PLAN = """
dataset = "plants"
source = "t.parquet"
ledger = "l"
tuned_on = "synthetic"
[schema]
unit = "id"
measures.x = 1
columns.c = "text"
[schema.collapse]
x = "sum"
c = "same"
[[queries]]
group_by = ["c"]
keys = { rows = { c = ["a", "b"] } }
sum.x = { kind = "Gaussian", sigma = 10 }
"""


def test_a_plan_file_states_the_rules(tmp_path):
    pq.write_table(pa.table(ROWS), tmp_path / "t.parquet")
    (tmp_path / "plan.toml").write_text(PLAN)
    file = rw.load_plan(tmp_path / "plan.toml")
    assert dict(file.plan.schema.collapse) == {"x": "sum", "c": "same"}
    with rw.Session.from_plan(file) as opened:
        assert opened.run(*file.plan.queries).tables[0].data.num_rows == 2
    (tmp_path / "bad.toml").write_text(PLAN.replace('x = "sum"\n', 'x = "average"\n'))
    with pytest.raises(PlanFileError, match=r"line 11.*is not a valid choice; choose from sum, max, min, same"):
        rw.load_plan(tmp_path / "bad.toml")
    (tmp_path / "bad.toml").write_text(PLAN.replace('c = "same"\n', ""))
    with pytest.raises(PlanFileError, match="no rule for 'c'"):
        rw.load_plan(tmp_path / "bad.toml")


def test_a_file_changed_after_rows_were_joined_is_refused(tmp_path):
    pq.write_table(pa.table(ROWS), tmp_path / "t.parquet")
    with DuckDB(tmp_path / "t.parquet", SMALL.of(unit="id", measures={"x": 1}, collapse={"x": "sum"})) as engine:
        engine.validate()
        pq.write_table(pa.table(ROWS | {"x": [1, 2, 3]}), tmp_path / "t.parquet")
        with pytest.raises(rw.errors.SourceError, match="changed"):
            engine.totals(Plan(schema=engine.schema, queries=(query().sum("x", M),)))
