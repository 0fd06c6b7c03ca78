"""Wherever a literal meets a column it is of the column's declared type, or the plan is refused before a record is read."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from build import employers, exact_totals
from recordwise.engines import DuckDB
from recordwise.errors import PlanError, PlanFileError
from recordwise.mechanisms.base import Mechanism
from recordwise.noise import Seeded
from recordwise.plan import Case, Column, Field, Group, Keys, Plan, Prefix, Schema
from recordwise.plan.cost import cells_by_threshold, check_policy, plan_policy
from recordwise.plan.expressions import Compare, In
from recordwise.plan.file import load_plan
from recordwise.plan.query import query
from recordwise.plan.schema import policy_problems
from recordwise.plan.statistics.totals import Splitting
from recordwise.policy import ConditionColumn as Named
from recordwise.policy import Policy, among, by, compare, constant, maximum

SCHEMA = Schema.of(
    unit="id",
    measures={"emp": 1, "pay": "0.5"},
    columns={
        "open": "boolean",
        "size": Column(name="size", type="integer", null="category"),
        "naics": "text",
    },
)
TABLE = pa.table(
    {
        "id": [1, 2, 3],
        "emp": [1000, 3, 2**53],
        "pay": [1.5, 2.0, 0.0],
        "open": [True, False, True],
        "size": [44, None, 2**53],
        "naics": ["4411", "21", "4"],
    }
)
WRONG = {
    "numbers for truth values": (by("open", {1: 20, 0: 20}, default=1000), "not a value of type boolean"),
    "text for truth values": (by("open", {"true": 20}, default=1000), "not a value of type boolean"),
    "text for whole numbers": (by("size", {"44": 20}, default=1000), "not a value of type integer"),
    "truth values for whole numbers": (by("size", {True: 20}, default=1000), "not a value of type integer"),
    "a number between two whole ones": (by("size", {2.5: 20}, default=1000), "not a value of type integer"),
    "a number beyond 64 bits": (by("size", {2**63: 20}, default=1000), "not a value of type integer"),
    "whole numbers for text": (by("naics", {44: 20}, default=1000), "not a value of type text"),
    "half a character": (by("naics", {"\ud800": 20}, default=1000), "not a value of type text"),
    "a prefix of a number": (by(Named("size", 1), {4: 20}, default=1000), "needs a column of type text"),
    "a group longer than the prefix": (by(Named("naics", 2), {"441": 20}, default=1000), "a group longer than that"),
    "a prefix longer than any group": (by(Named("naics", 65), {"4": 20}, default=1000), "longer than 64"),
    "an unknown column": (by("county", {"a": 20}, default=1000), "not a conditional column"),
    "a measure": (by("emp", {20: 20}, default=1000), "not a conditional column"),
}
RIGHT = {
    "truth values": by("open", {True: 20, False: 30}, default=1000),
    "whole numbers": by("size", {44: 20, -1: 30}, default=1000),
    "text": by("naics", {"44": 20}, default=1000),
    "prefixes": by(Named("naics", 2), {"44": 20, "4": 30}, default=1000),
}


@pytest.fixture(scope="module")
def session():
    columns = {column.name: column for column in SCHEMA.columns}
    with employers(TABLE, measures={"emp": 1, "pay": "0.5"}, columns=columns) as opened:
        yield opened


def asked_with(at):
    """Every way a threshold that differs by group gets into a plan."""
    one, split = rw.Gaussian(rho=1), rw.UnitSplit(at=at, rho="0.001")
    yield query().sum("emp", split)
    yield query().avg("emp", sum=split, count=one)
    yield query().sum("pay", rw.UnitSplit(at={"pay": 1000, "emp": at}, rho="0.001"))
    keys = [
        Keys.select(rho="0.01", delta="1e-6", pieces={"emp": at}),
        Keys.select_from({"naics": ["21"]}, rho="0.01", threshold=3, pieces={"emp": at}),
    ]
    yield from (query().group_by("naics", keys=each).count(one) for each in keys)


@pytest.mark.theorem("T-TYPES")
@pytest.mark.parametrize("at, problem", WRONG.values(), ids=WRONG)
def test_a_threshold_of_the_wrong_type_is_refused_wherever_it_stands(session, at, problem):
    counts = [query().count(rw.UnitSplit(at=at, rho=1)), query().count_distinct("id", rw.UnitSplit(at=at, rho=1))]
    parts = query().avg("emp", sum=rw.Gaussian(rho=1), count=rw.UnitSplit(at=at, rho=1))
    for asked in (*asked_with(at), *counts, parts):
        with pytest.raises(PlanError, match=problem):
            session.policy_of(asked)
        with pytest.raises(PlanError, match=problem):
            session.run(asked, rng=Seeded(1))
    with pytest.raises(PlanError, match=problem):
        session.run_external(lambda rows: 1, split={"emp": at}, rho="0.01")
    assert session.spent() == Policy()


@pytest.mark.parametrize("at", RIGHT.values(), ids=RIGHT)
def test_a_threshold_of_the_right_type_is_taken(session, at):
    at_44 = {"emp": 1000, "pay": 0, "open": True, "size": 44, "naics": "44"}
    losses = [session.policy_of(asked).loss(at_44) for asked in asked_with(at)]
    assert losses[3:] == [26, 26]


def test_joint_splitting_of_what_is_no_measure_is_refused():
    with pytest.raises(PlanError, match="'wages' is split but is not a measure"):
        Plan(schema=SCHEMA, queries=(query().sum("emp", rw.UnitSplit(at={"emp": 20, "wages": 3}, rho=1)),))


WRONG_CONDITIONS = {
    "a number for a truth value": among("open", [1]),
    "text for a whole number": among("size", ["44"]),
    "a whole number for text": among("naics", [44]),
    "one of several": among("naics", ["44", 44]),
    "an order of truth values": compare("open", "<", 1),
    "a prefix of a number": among(Named("size", 1), [4]),
    "an unknown column": among("county", ["a"]),
    "inside and and or": (among("naics", ["44"]) | among("open", [1])) & compare("emp", "<", 5),
    "text for a measure": among("emp", ["5"]),
}


@pytest.mark.parametrize("condition", WRONG_CONDITIONS.values(), ids=WRONG_CONDITIONS)
def test_a_policy_whose_own_condition_has_the_wrong_type_is_refused_where_it_meets_the_schema(session, condition):
    limited = constant(1).where(condition)
    for policy in (limited, maximum([limited, constant(2)])):
        with pytest.raises(PlanError, match="Nothing was read"):
            rw.Session(TABLE, unit="id", measures={"emp": 1, "pay": "0.5"}, columns={"open": "boolean"}, budget=policy)
        with pytest.raises(PlanError):
            check_policy(policy, SCHEMA)
        with pytest.raises(PlanError):
            session.owner.loss_summary(policy)
        with pytest.raises(PlanError):
            session.owner.firm_loss_summary(policy)
        with pytest.raises(PlanError):
            session.owner.view().loss_bins([policy])


def test_a_mechanism_of_ones_own_is_refused_with_its_policy():
    class Own(Mechanism):
        def policy(self, measure, *, tight=True):
            return constant(1).where(among("open", [1]))

    with pytest.raises(PlanError, match="'open'"):
        plan_policy(Plan(schema=SCHEMA, queries=(query().sum("emp", Own()),)))


def test_conditions_of_the_right_type_are_no_problem():
    fine = (
        among("naics", ["44"]) & among(Named("naics", 2), ["44"]) & compare("size", "<", "2.5") & compare("pay", ">", 3)
    )
    assert policy_problems(constant(1).where(fine | among("open", [True])), SCHEMA) == []


@pytest.mark.parametrize(
    "labels", [("a", 1), (True, False), (Fraction(1, 2), 1), (2**63, 1), ("\x00", "a"), ("\ud800", "a")]
)
def test_labels_that_no_column_of_one_type_holds_are_refused(labels):
    case = Case(((Compare(Field("emp"), "<", 5), labels[0]),), labels[1])
    asked = query().group_by(Group("kind", case), keys=Keys.of({"kind": ["a"]})).count(rw.Gaussian(rho=1))
    with pytest.raises(PlanError, match="labels of 'kind'"):
        Plan(schema=SCHEMA, queries=(asked,))


def test_a_truth_value_is_never_a_number_in_any_literal():
    assert Compare(Field("open"), "=", True) != Compare(Field("open"), "=", 1)
    assert In(Field("open"), (True,)) != In(Field("open"), (1,))
    assert by("open", {True: 1}) != by("open", {1: 1})
    assert Case(((Compare(Field("emp"), "<", 5), True),), 0) != Case(((Compare(Field("emp"), "<", 5), 1),), 0)


def test_drawing_looks_thresholds_up_as_the_policy_compares_them():
    """Even where the schema did not get a word in: True is not 1, and 1 is not True."""
    group = (Group("g", Field("g")),)
    for given, cells in (({1: 20}, [True, False]), ({True: 20}, [1, 0]), ({"1": 20}, [1, 0])):
        (run,) = cells_by_threshold(by("g", given, default=7), group, pa.table({"g": cells}))
        assert (run.at, run.rows.tolist()) == (7, [0, 1])


def test_the_group_that_knows_enough_of_a_code_decides_its_threshold():
    """Of two prefixes the shorter one does not determine the threshold, though it stands first."""
    groups = (Group("n1", Prefix("naics", 1)), Group("n3", Prefix("naics", 3)))
    cells = pa.table({"n1": ["4", "4", "2"], "n3": ["441", "451", "211"]})
    runs = cells_by_threshold(by(Named("naics", 2), {"44": 500, "21": 50}, default=5), groups, cells)
    found = {run.at: run.rows.tolist() for run in runs}
    assert found == {500: [0], 5: [1], 50: [2]}


def test_cells_of_many_thresholds_come_back_whole_and_in_order():
    values = [None, 3, 1, 2, 3, 1, None]
    runs = cells_by_threshold(
        by("size", {1: 10, 2: 20}, default=30), (Group("size", Field("size")),), pa.table({"size": values})
    )
    assert {run.at: run.rows.tolist() for run in runs} == {30: [0, 1, 4, 6], 10: [2, 5], 20: [3]}
    assert sorted(np.concatenate([run.rows for run in runs]).tolist()) == list(range(7))


def counted(*queries, total=0):
    with DuckDB(TABLE, SCHEMA) as engine:
        found = engine.totals(Plan(schema=SCHEMA, queries=queries))
    return [exact_totals(each)[total] for each in found]


@pytest.mark.costly
def test_a_constant_beyond_64_bits_in_a_list_does_not_make_its_neighbors_floats():
    """As floats 2^53 and 2^53 + 1 are one number: the query would select a record that its policy charges 0."""
    for name in ("emp", "size"):
        for far in (10**25, 10**45):
            test = In(Field(name), (2**53 + 1, far))
            policy = plan_policy(Plan(schema=SCHEMA, queries=(query().where(test).count(rw.Gaussian(rho=1)),)))
            assert policy.loss({"emp": 2**53, "size": 2**53}) == 0
            assert counted(query().where(test).count(rw.Gaussian(rho=1))) == [[0]]


def test_a_clamp_or_threshold_beyond_every_record_leaves_sums_and_pieces_exact():
    far = 10**45
    clamped = query().sum("emp", rw.Clamped(to=far, rho=1))
    assert counted(clamped) == [[2**53 + 1003]]
    with DuckDB(TABLE, SCHEMA) as engine:
        rows = engine.split_table(Splitting.of({"emp": far})).reveal()
        assert rows.sort_by("id")["emp"].to_pylist() == [1000, 3, 2**53]


PLAN = """
dataset = "small"
source = "records.parquet"
ledger = "books"
tuned_on = "public"
[schema]
unit = "id"
measures = { emp = 1 }
columns = { open = "boolean", size = "integer", naics = "text" }
[[queries]]
sum.emp = { kind = "UnitSplit", rho = 0.1, at = { by = "%s", values = { %s }, default = 5%s } }
"""


@pytest.mark.parametrize(
    "example", ["open = 1", 'open = "true"', 'size = "44"', "size = 4.5", "naics = 44", "open = []"]
)
def test_an_example_record_of_another_type_is_refused(tmp_path, example):
    """Its loss would be shown as that of a record in none of the groups."""
    given = PLAN % ("open", "true = 20", "") + f"[examples.one]\nemp = 5\n{example}\n"
    (tmp_path / "plan.toml").write_text(given)
    with pytest.raises(PlanFileError, match=r"examples\.one"):
        load_plan(tmp_path / "plan.toml")
    (tmp_path / "plan.toml").write_text(given.replace(example, "open = true"))
    assert load_plan(tmp_path / "plan.toml").examples["one"]["open"] is True


@pytest.mark.parametrize(
    "column, values, more, problem",
    [
        ("size", '"007" = 20, "7" = 30', "", "'007' is not a value of a column of type integer"),
        ("size", '"4.5" = 20', "", "not a value of a column of type integer"),
        ("size", '"9223372036854775808" = 20', "", "not a value of type integer"),
        ("size", '"4" = 20', ", length = 1", "needs a column of type text"),
        ("open", '"1" = 20', "", "'1' is not a value of a column of type boolean"),
        ("open", '"True" = 20', "", "'True' is not a value of a column of type boolean"),
        ("naics", '"441" = 20', ", length = 2", "a group longer than that"),
    ],
)
def test_a_plan_file_reads_groups_in_the_columns_type_or_not_at_all(tmp_path, column, values, more, problem):
    (tmp_path / "plan.toml").write_text(PLAN % (column, values, more))
    with pytest.raises(PlanFileError, match=problem):
        load_plan(tmp_path / "plan.toml")
