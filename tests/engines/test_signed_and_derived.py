"""Signed and derived measures in both engines: exact totals, checks, pieces, as plain Python would have them."""

from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import recordwise as rw
from engines.plain_mechanism import Plain
from recordwise.errors import DataError, ParameterError, PlanError
from recordwise.plan import Keys, Measure, Plan, Schema, Splitting
from recordwise.plan.query import query
from recordwise.plan.statistics import Count, CountPieces, SumSteps

M = Plain()
TWO_PARTS = rw.LogTransform(offset=10, sigma="0.1", signed=True)
SCHEMA = Schema.of(
    unit="id",
    measures={
        "emp": 1,
        "pay": "0.25",
        "net": Measure.of("net", signed=True, bound=10**9),
        "gain": Measure.of("gain", step="0.5", signed=True),
        "rest": Measure.of("rest", derive="pay - 45 * emp"),
        "mix": Measure.of("mix", derive="emp / 3 + 2 * gain - net"),
    },
    columns={"county": "text"},
)
TYPES = pa.schema(
    [
        ("id", pa.int64()),
        ("emp", pa.int32()),
        ("pay", pa.decimal128(12, 2)),
        ("net", pa.int8()),
        ("gain", pa.float64()),
        ("county", pa.string()),
    ]
)
row = st.fixed_dictionaries(
    {
        "emp": st.integers(0, 60),
        "pay": st.integers(0, 4000).map(lambda quarters: Decimal(quarters) / 4),
        "net": st.integers(-128, 127),
        "gain": st.integers(-70, 70).map(lambda halves: halves / 2),
        "county": st.sampled_from(["a", "b", "c"]),
    }
)
rows = st.lists(row, min_size=30, max_size=60).map(lambda found: [{"id": i} | each for i, each in enumerate(found)])
"""Ten tables of 45 records on average hold more of them than sixty of five."""


def exact(answer):
    """The first total of a table."""
    return next(iter(answer.exact.reveal().totals.values())).tolist()


def rest(one):
    return Fraction(one["pay"]) - 45 * one["emp"]


def mix(one):
    return Fraction(one["emp"], 3) + 2 * Fraction(one["gain"]) - one["net"]


EXPECTED = {
    SumSteps("net"): lambda one: one["net"],
    SumSteps("net", at_most=20): lambda one: max(-20, min(20, one["net"])),
    SumSteps("net", part="positive"): lambda one: max(0, one["net"]),
    SumSteps("net", part="negative"): lambda one: max(0, -one["net"]),
    SumSteps("gain"): lambda one: 2 * Fraction(one["gain"]),
    SumSteps("rest"): lambda one: 4 * rest(one),
    SumSteps("rest", part="negative"): lambda one: max(0, -4 * rest(one)),
    SumSteps("mix"): lambda one: 3 * mix(one),
}


@pytest.mark.costly
def test_sums_of_signed_and_derived_measures_equal_the_reference(opens):
    keys = Keys.of({"county": ["a", "b", "nowhere"]})
    asked = query().group_by("county", keys=keys).where("net > -100 AND gain <> 1.5")
    for number, name in enumerate(["net", "gain", "rest", "mix"]):
        asked = asked.sum(name, M, alias=f"s{number}")
    asked = asked.sum("net", rw.Clamped(to=20, rho=1), alias="cut")
    asked = asked.sum("net", TWO_PARTS, alias="net2").sum("rest", TWO_PARTS, alias="rest2")

    @settings(max_examples=opens.examples(10), deadline=None)
    @example([])
    @given(rows)
    def check(found):
        with opens(pa.Table.from_pylist(found, TYPES), SCHEMA, threads=1) as engine:
            (answer,) = engine.totals(Plan(schema=SCHEMA, queries=(asked,)))
        kept = [one for one in found if one["net"] > -100 and one["gain"] != 1.5]
        cells = answer.cells.column("county").to_pylist()
        for total, value in EXPECTED.items():
            got = answer.exact.reveal().totals[total].tolist()
            assert got == [sum(value(one) for one in kept if one["county"] == cell) for cell in cells], total

    check()


def test_the_step_bound_and_sign_of_a_derived_measure_are_worked_out():
    found = {name: SCHEMA.measure(name) for name in ("rest", "mix")}
    assert (found["rest"].step, found["rest"].signed) == (Fraction(1, 4), True)
    assert (found["mix"].step, found["mix"].signed) == (Fraction(1, 3), True)
    assert found["rest"].bound == SCHEMA.measure("pay").bound + 45 * SCHEMA.measure("emp").bound
    both = Schema.of(unit="id", measures={"a": "0.5", "b": "0.75", "c": Measure.of("c", derive="a + b * 2")})
    assert (both.measure("c").step, both.measure("c").signed) == (Fraction(1, 2), False)


@pytest.mark.parametrize(
    "measures, message",
    [
        ({"emp": 1, "rest": Measure.of("rest", derive="pay - emp")}, "derived from 'pay', which is not a measure"),
        (
            {"emp": 1, "a": Measure.of("a", derive="2 * emp"), "b": Measure.of("b", derive="a + emp")},
            "derived from 'a'",
        ),
        ({"a": Measure.of("a", bound=2**61), "b": 1, "c": Measure.of("c", derive="45 * a + b")}, "2\\^62"),
    ],
)
def test_what_cannot_be_derived_is_refused_when_the_schema_is_made(measures, message):
    with pytest.raises(ParameterError, match=message):
        Schema.of(unit="id", measures=measures)


def test_a_derived_measure_has_no_step_of_its_own_and_is_in_no_condition():
    with pytest.raises(ParameterError, match="true or false"):
        Measure.of("net", signed=1)
    with pytest.raises(ParameterError, match="worked out"):
        Measure.of("rest", derive="pay - emp", step="0.5")
    with pytest.raises(PlanError, match="'rest' is a derived measure"):
        Plan(schema=SCHEMA, queries=(query().where("rest > 0").count(M),))


def problems(opens, table, schema):
    with opens(table, schema) as engine, pytest.raises(DataError) as caught:
        engine.validate()
    return {(problem.column, problem.problem): problem.count for problem in caught.value.problems}


SIGNED = Schema.of(unit="id", measures={"net": Measure.of("net", step="0.5", bound=100, signed=True), "emp": 1})


@pytest.mark.parametrize(
    "values",
    [
        [-100.5, 100.5, -0.25, -3.5, 100.0, -100.0],
        [Decimal("-100.5"), Decimal("100.5"), Decimal("-0.25"), Decimal("-3.5"), Decimal(100), Decimal(-100)],
        ["-100.5", "100.5", "-0.25", "-3.5", "100", "-1e2"],
    ],
    ids=["floats", "decimals", "text"],
)
def test_a_signed_measure_is_checked_against_its_bound_in_both_directions(opens, values):
    table = pa.table({"id": range(6), "net": values, "emp": [0, 1, 2, 3, -4, 5]})
    assert problems(opens, table, SIGNED) == {
        ("net", "is beyond its public bound"): 2,
        ("net", "is off the lattice of step 1/2"): 1,
        ("emp", "is negative"): 1,
    }


class CountedPieces(Count):
    def totals(self, schema):
        return (CountPieces(SPLITTING),)


SPLITTING = Splitting.of({"net": 5, "rest": 100})


def pieces(value, at):
    size, sign = abs(value), -1 if value < 0 else 1
    return [sign * max(0, min(at, size - i * at)) for i in range(max(1, -(-size // at)))]


@pytest.mark.theorem("T-SPLIT")
@pytest.mark.costly
def test_a_negative_value_is_split_by_its_size_and_its_pieces_have_its_sign(opens):
    asked = type(query())(statistics=(CountedPieces(alias="pieces", mechanism=M),))

    @settings(max_examples=opens.examples(10), deadline=None)
    @example([])
    @given(rows)
    def check(found):
        with opens(pa.Table.from_pylist(found, TYPES), SCHEMA, threads=1) as engine:
            (lazy,) = engine.totals(Plan(schema=SCHEMA, queries=(asked,)))
            cut = engine.split_table(SPLITTING).reveal().to_pylist()
        assert exact(lazy) == [len(cut)]
        for identifier, one in enumerate(found):
            own = [piece for piece in cut if piece["id"] == identifier]
            nets, rests = pieces(one["net"], 5), pieces(int(4 * rest(one)), 400)
            count = max(len(nets), len(rests))
            assert [piece["net"] for piece in own] == nets + [0] * (count - len(nets))
            assert [piece["rest"] for piece in own] == rests + [0] * (count - len(rests))

    check()


def test_sums_of_the_largest_negative_values_do_not_wrap(opens):
    bound = 2**62
    schema = Schema.of(unit="id", measures={"net": Measure.of("net", bound=bound, signed=True)}, columns={"c": "text"})
    table = pa.table(
        {"id": range(7), "net": pa.array([-bound] * 5 + [bound, 3], pa.int64()), "c": ["a"] * 5 + ["b"] * 2}
    )
    keys = Keys.of({"c": ["a", "b", "none"]})
    with opens(table, schema) as engine:
        asked = (query().group_by("c", keys=keys).sum("net", M), query().sum("net", M))
        by_group, total = engine.totals(Plan(schema=schema, queries=asked))
    assert exact(by_group) == [-5 * bound, bound + 3, 0]
    assert exact(total) == [-4 * bound + 3]


def test_derived_measures_follow_from_collapsed_rows(opens):
    """Missing values are zero and several rows are one record before anything is derived."""
    schema = Schema.of(
        unit="id",
        measures={
            "emp": 1,
            "net": Measure.of("net", signed=True, null="zero", bound=100),
            "rest": Measure.of("rest", derive="net - 45 * emp"),
        },
        collapse={"emp": "max", "net": "sum"},
    )
    table = pa.table({"id": [1, 1, 2, 2], "emp": [2, 3, 1, 1], "net": [-50, -50, None, 7]})
    with opens(table, schema) as engine:
        (answer,) = engine.totals(Plan(schema=schema, queries=(query().sum("rest", M).sum("net", M),)))
    assert exact(answer) == [-100 - 45 * 3 + 7 - 45]
    assert answer.exact.reveal().totals[SumSteps("net")].tolist() == [-93]
    beyond = pa.table({"id": [1, 1], "emp": [2, 3], "net": [-60, -60]})
    assert problems(opens, beyond, schema) == {("net", "is beyond its public bound"): 1}
