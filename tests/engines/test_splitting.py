"""Unit splitting: lazy pieces equal the materialized rows, exactly."""

from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engines.plain_mechanism import Plain
from recordwise.errors import PlanError
from recordwise.plan import Plan, Schema, Splitting
from recordwise.plan.query import query
from recordwise.plan.sql.grammar import parse_predicate
from recordwise.plan.statistics import Count, CountPieces
from recordwise.policy import ConditionColumn as PolicyColumn
from recordwise.policy import by, split
from recordwise.policy.evaluate.sql import terms_sql

pytestmark = pytest.mark.usefixtures("spark_as_installed")


class CountedPieces(Count):
    """A statistic that asks for the number of pieces: what key selection on pieces will ask for."""

    def totals(self, schema):
        return (CountPieces(SPLITTING),)


SPLITTING = Splitting.of({"emp": 5, "pay": "0.7"})
SCHEMA = Schema.of(unit="id", measures={"emp": 1, "pay": "0.1", "rest": 1}, columns={"industry": "text"}, firm="firm")

records = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 60), st.integers(0, 9), st.sampled_from(["mining", "retail", "farm"])),
    min_size=30,
    max_size=60,
)
"""A record is cut by itself, and opening a table takes longer than cutting sixty: a dozen tables of 45 records on average hold more
of them than the eighty of five that were drawn before. A table without records is always among them."""


def table_of(found):
    return pa.table(
        {
            "id": pa.array(range(len(found)), pa.int64()),
            "emp": pa.array([r[0] for r in found], pa.int32()),
            "pay": pa.array([r[1] / 10 for r in found], pa.float64()),
            "rest": pa.array([r[2] for r in found], pa.int64()),
            "industry": pa.array([r[3] for r in found], pa.string()),
            "firm": pa.array(["f"] * len(found), pa.string()),
        }
    )


def pieces_of(steps, at):
    return [max(0, min(at, steps - i * at)) for i in range(max(1, -(-steps // at)))]


@pytest.mark.theorem("T-SPLIT")
@pytest.mark.costly
def test_pieces_counted_lazily_are_the_rows_of_the_split_table(opens):
    @settings(max_examples=opens.examples(12), deadline=None)
    @example([])
    @given(records)
    def check(found):
        asked = query().count(Plain())
        counted = CountedPieces(alias="pieces", mechanism=Plain())
        plan = Plan(schema=SCHEMA, queries=(type(asked)(statistics=(counted,)),))
        with opens(table_of(found), SCHEMA, threads=1) as engine:
            (lazy,) = engine.totals(plan)
            rows = engine.split_table(SPLITTING).reveal()
        assert lazy.exact.reveal().totals[CountPieces(SPLITTING)].tolist() == [rows.num_rows]
        needed = [max(len(pieces_of(emp, 5)), len(pieces_of(pay, 7))) for emp, pay, _, _ in found]
        assert rows.num_rows == sum(needed)

    check()


@pytest.mark.theorem("T-SPLIT")
@pytest.mark.costly
def test_the_pieces_of_a_record_add_up_to_it_and_stay_below_the_threshold(opens):
    @settings(max_examples=opens.examples(12), deadline=None)
    @example([])
    @given(records)
    def check(found):
        with opens(table_of(found), SCHEMA, threads=1) as engine:
            rows = engine.split_table(SPLITTING).reveal().to_pylist()
        for identifier, (emp, pay, rest, industry) in enumerate(found):
            own = [row for row in rows if row["id"] == identifier]
            count = max(len(pieces_of(emp, 5)), len(pieces_of(pay, 7)))
            assert [row["piece"] for row in own] == list(range(1, count + 1))
            assert [row["emp"] for row in own] == pieces_of(emp, 5) + [0] * (count - len(pieces_of(emp, 5)))
            assert [row["pay"] for row in own] == pieces_of(pay, 7) + [0] * (count - len(pieces_of(pay, 7)))
            assert [row["rest"] for row in own] == [rest] + [0] * (count - 1)
            assert {row["industry"] for row in own} == {industry}

    check()


def test_a_measure_without_a_threshold_stands_whole_on_the_first_piece(opens):
    with opens(table_of([(12, 0, 7, "farm")]), SCHEMA) as engine:
        rows = engine.split_table(Splitting.of({"emp": 5})).reveal()
    assert rows["rest"].to_pylist() == [7, 0, 0]


def test_twelve_at_five_is_five_five_two(opens):
    with opens(table_of([(12, 0, 0, "farm")]), SCHEMA) as engine:
        rows = engine.split_table(Splitting.of({"emp": 5})).reveal()
    assert rows["emp"].to_pylist() == [5, 5, 2]


def test_three_times_seven_tenths_makes_three_pieces_not_four(opens):
    """In floats 2.1/0.7 is above 3; whole steps know better."""
    assert 2.1 / 0.7 > 3
    with opens(table_of([(0, 21, 0, "farm")]), SCHEMA) as engine:
        rows = engine.split_table(Splitting.of({"pay": "0.7"})).reveal()
    assert rows["pay"].to_pylist() == [7, 7, 7]


THRESHOLDS = by("industry", {"mining": 20, "retail": 2}, default=10)


@pytest.mark.costly
def test_thresholds_by_group_cut_each_record_at_its_own(opens):
    @settings(max_examples=opens.examples(8), deadline=None)
    @example([])
    @given(records)
    def check(found):
        with opens(table_of(found), SCHEMA, threads=1) as engine:
            rows = engine.split_table(Splitting.of({"emp": THRESHOLDS})).reveal().to_pylist()
        own = {"mining": 20, "retail": 2, "farm": 10}
        for identifier, (emp, _, _, industry) in enumerate(found):
            assert [row["emp"] for row in rows if row["id"] == identifier] == pieces_of(emp, own[industry])

    check()


@pytest.mark.theorem("T-SPLIT")
@pytest.mark.costly
def test_the_policys_own_sql_counts_the_same_pieces(opens):
    """The loss of the split policy, binned inside the engine, is rho times the square of the pieces."""

    @settings(max_examples=opens.examples(8), deadline=None)
    @example([])
    @given(records)
    def check(found):
        policy = split(1, {_measure("emp"): 5, _measure("pay"): Fraction(7, 10)})
        edges = [k * k + 0.5 for k in range(12)]
        with opens(table_of(found), SCHEMA, threads=1) as engine:
            bins = engine.summarize(terms_sql(policy.rho, engine.dialect), edges).reveal().to_pydict()
        needed = [max(len(pieces_of(emp, 5)), len(pieces_of(pay, 7))) for emp, pay, _, _ in found]
        assert dict(zip(bins["bin"], bins["records"])) == {count: needed.count(count) for count in set(needed)}

    check()


def _measure(name):
    from recordwise.plan.schema import policy_measure

    return policy_measure(name, SCHEMA)


def test_conditions_see_the_unsplit_record(opens):
    with opens(table_of([(12, 0, 0, "farm"), (4, 0, 0, "farm")]), SCHEMA) as engine:
        rows = engine.split_table(Splitting.of({"emp": 5}), condition=parse_predicate("emp > 5")).reveal()
    assert rows["id"].to_pylist() == [0, 0, 0]


@pytest.mark.parametrize(
    "at, problem",
    [
        ({"pay": "0.75"}, "not a multiple of its step"),
        ({"industry": 5}, "not a measure"),
        ({"emp": by("industry", {"mining": 5})}, "need a default"),
        ({"emp": by(PolicyColumn("industry", 2), {"mi": Fraction(1, 2)}, default=5)}, "not a multiple of its step"),
    ],
)
def test_thresholds_that_leave_the_lattice_are_refused(opens, at, problem):
    with opens(table_of([]), SCHEMA) as engine, pytest.raises(PlanError, match=problem):
        engine.split_table(Splitting.of(at))


def test_a_split_table_that_would_not_fit_is_refused_without_telling_its_size(opens):
    with opens(table_of([(40, 0, 0, "farm")]), SCHEMA) as engine, pytest.raises(PlanError, match="more than 7 rows"):
        engine.split_table(Splitting.of({"emp": 5}), at_most=7)
