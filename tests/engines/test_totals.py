"""Exact totals: equal to a plain Python reference, whatever the table, the plan, the order of rows and the threads."""

from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build import few
from engines.plain_mechanism import Plain
from engines.reference_totals import OPERATORS, plain, totals, truth, value_of
from recordwise.engines import DuckDB, integers
from recordwise.plan import Case, Column, Field, Group, Keys, Plan, Prefix, Schema, prefix
from recordwise.plan.expressions import And, Compare, In, IsNull, Not, Or
from recordwise.plan.keys.cells import Rows
from recordwise.plan.query import query
from recordwise.plan.statistics import CountFirms, CountUnits, SumSteps

pytestmark = pytest.mark.usefixtures("spark_as_installed")

M = Plain()
PLACES = ["01", "1", "1 ", "a", "A", "é", "e\u0301", "", "x'y", '"q"', "\\", None]
CODES = ["311111", "311112", "3121", "32", "44", "4"]
SCHEMA = Schema.of(
    unit="id",
    measures={"emp": 1, "pay": "0.25"},
    columns={
        "place": Column(name="place", null="category"),
        "code": "text",
        "size": Column(name="size", type="integer", null="category"),
        "open": "boolean",
    },
    firm="firm",
)
TYPES = pa.schema(
    [
        ("id", pa.int64()),
        ("emp", pa.int32()),
        ("pay", pa.decimal128(12, 2)),
        ("place", pa.string()),
        ("code", pa.string()),
        ("size", pa.int16()),
        ("open", pa.bool_()),
        ("firm", pa.string()),
    ]
)

row = st.fixed_dictionaries(
    {
        "emp": st.integers(0, 60),
        "pay": st.integers(0, 4000).map(lambda quarters: Decimal(quarters) / 4),
        "place": st.sampled_from(PLACES),
        "code": st.sampled_from(CODES),
        "size": st.sampled_from([None, -1, 0, 3]),
        "open": st.booleans(),
        "firm": st.sampled_from(["f", "g", "h"]),
    }
)
rows = st.lists(row, max_size=25).map(lambda found: [{"id": i} | each for i, each in enumerate(found)])
numbers = st.integers(-8, 200).map(lambda quarters: Fraction(quarters, 3))
orders = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
leaves = st.one_of(
    st.builds(Compare, st.sampled_from([Field("emp"), Field("size"), Field("pay")]), orders, numbers),
    st.builds(
        Compare, st.sampled_from([Field("place"), Prefix("code", 2)]), orders, st.sampled_from(["1", "31", "é", "44"])
    ),
    st.builds(Compare, st.just(Field("open")), st.sampled_from(["=", "<>"]), st.booleans()),
    st.builds(In, st.just(Field("pay")), st.lists(numbers, min_size=1, max_size=3).map(tuple)),
    st.builds(In, st.just(Field("place")), st.lists(st.sampled_from(PLACES[:-1]), min_size=1, max_size=4).map(tuple)),
    st.builds(IsNull, st.sampled_from([Field("place"), Field("size")])),
)
predicates = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)
cases = st.builds(lambda test, other: Case(((test, "small"), (other, "middle")), "large"), predicates, predicates)
group_lists = st.lists(
    st.one_of(
        st.sampled_from(
            [Group(n, Field(n)) for n in ("place", "code", "size", "open")] + [Group("code2", Prefix("code", 2))]
        ),
        cases.map(lambda case: Group("class", case)),
    ),
    max_size=3,
    unique_by=lambda group: group.name,
)


def all_cells(groups, found):
    """Some cells with records and some without."""
    extra = {"place": "nowhere", "code": "99", "code2": "99", "size": 77, "open": True, "class": "small"}
    present = [tuple(plain(value_of(group.expression, row)) for group in groups) for row in found]
    return list(dict.fromkeys([*present[::2], tuple(extra[group.name] for group in groups)]))


def keys_of(groups, cells):
    types = {"size": pa.int64(), "open": pa.bool_()}
    return Keys(
        Rows.of(
            pa.table(
                {g.name: pa.array([c[i] for c in cells], types.get(g.name, pa.string())) for i, g in enumerate(groups)}
            )
        )
    )


def tabulated(engine, plan):
    """Every table of the plan as (cells, totals by kind)."""
    result = []
    for table in engine.totals(plan):
        cells = list(zip(*(table.cells.column(name).to_pylist() for name in table.cells.column_names))) or [()]
        revealed = table.exact.reveal().totals
        result.append(
            (
                cells,
                {total: revealed[total].tolist() for total in table.table.totals},
            )
        )
    return result


def expected(found, asked, level, cells):
    return {
        CountUnits(): totals(found, asked, level, cells, len),
        SumSteps("emp"): totals(found, asked, level, cells, lambda rows: sum(row["emp"] for row in rows)),
        SumSteps("pay"): totals(found, asked, level, cells, lambda rows: int(sum(row["pay"] for row in rows) * 4)),
        CountFirms(): totals(found, asked, level, cells, lambda rows: len({row["firm"] for row in rows})),
    }


def ask(groups=(), keys=None):
    return query().group_by(*groups, keys=keys).count(M).sum("emp", M).sum("pay", M).count_distinct("firm", M)


@pytest.mark.theorem("T-COMPARE")
@pytest.mark.parametrize("operand, schema_step", [("pay", Fraction(1, 4)), ("emp", Fraction(1)), ("size", Fraction(1))])
def test_every_comparison_with_every_constant_on_and_between_lattice_points_is_exact(opens, operand, schema_step):
    found = [
        {"id": i, "emp": i, "pay": Decimal(i) / 4, "place": "a", "code": "31", "size": i - 3, "open": True, "firm": "f"}
        for i in range(9)
    ]
    literals = [schema_step * Fraction(n, 2) for n in range(-8, 19)]
    tests = opens.some([Compare(Field(operand), operator, each) for operator in OPERATORS for each in literals])
    queries = tuple(query().where(test).count(M) for test in tests)
    with opens(pa.Table.from_pylist(found, TYPES), SCHEMA, threads=1) as engine:
        answers = tabulated(engine, Plan(schema=SCHEMA, queries=queries))
    assert [answer[CountUnits()] for _, answer in answers] == [
        [sum(truth(test, row) for row in found)] for test in tests
    ]


@pytest.mark.parametrize("examples", few([40, 120], 1))
@pytest.mark.costly
def test_totals_of_random_plans_equal_the_reference(opens, examples):
    @settings(max_examples=opens.examples(examples), deadline=None)
    @given(rows, st.one_of(st.none(), predicates), group_lists)
    def check(found, condition, groups):
        cells = all_cells(groups, found)
        asked = ask(groups, keys_of(groups, cells) if groups else None)
        asked = asked if condition is None else asked.where(condition)
        with opens(pa.Table.from_pylist(found, TYPES), SCHEMA, threads=1) as engine:
            ((at, answer),) = tabulated(engine, Plan(schema=SCHEMA, queries=(asked,)))
        assert sorted(at, key=repr) == sorted(cells if groups else [()], key=repr)
        assert answer == expected(found, asked, asked.tables()[0], at)

    check()


@pytest.mark.theorem("T-ROLLUP")
@pytest.mark.parametrize("examples", few([20, 60], 1))
@pytest.mark.costly
def test_levels_and_queries_rolled_up_together_equal_the_reference_one_by_one(opens, examples):
    @settings(max_examples=opens.examples(examples), deadline=None)
    @given(rows, st.one_of(st.none(), predicates), predicates)
    def check(found, first, second):
        keys = Keys.of(
            {"place": ["01", "a", "é", "A"] * 3, "code": ["311111", "3121", "32", "44"] + ["311112"] * 4 + ["9"] * 4}
        )
        base = ask(("place",), keys).levels(prefix("code", [1, 2, 3, 6]), "code")
        other = (
            ask()
            .levels("open", "size", keys=[Keys.of({"open": [True, False]}), Keys.of({"size": [3, 0]})])
            .where(second)
        )
        queries = (base if first is None else base.where(first), other, base.where(second))
        with opens(pa.Table.from_pylist(found, TYPES), SCHEMA, threads=1) as engine:
            answers = tabulated(engine, Plan(schema=SCHEMA, queries=queries))
        wanted = [(asked, level) for asked in queries for level in asked.tables()]
        assert len(answers) == len(wanted) == 12
        for (cells, answer), (asked, level) in zip(answers, wanted):
            assert answer == expected(found, asked, level, cells)

    check()


def test_coarse_totals_hold_records_whose_fine_cell_has_no_key(opens):
    table = pa.table({"id": [1, 2], "emp": [3, 4], "code": ["3111", "3112"]})
    schema = Schema.of(unit="id", measures={"emp": 1}, columns={"code": "text"})
    asked = query().levels(prefix("code", [2, 4]), keys=Keys.of({"code": ["3111"]})).sum("emp", M)
    with opens(table, schema) as engine:
        (coarse, fine) = tabulated(engine, Plan(schema=schema, queries=(asked,)))
    assert coarse == ([("31",)], {SumSteps("emp"): [7]})
    assert fine == ([("3111",)], {SumSteps("emp"): [3]})


def test_text_in_a_dictionary_is_ordered_as_text_and_not_by_its_place_there(opens):
    schema = Schema.of(unit="id", columns={"code": "text"})
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), pa.array(["z", "m", "a"]))
    asked = query().where("code <= 'm'").count(M)
    with opens(pa.table({"id": [1, 2, 3], "code": codes}), schema) as engine:
        (found,) = tabulated(engine, Plan(schema=schema, queries=(asked,)))
    assert found[1] == {CountUnits(): [2]}


def test_a_firm_counts_once_in_a_coarser_cell_and_null_is_a_cell_of_its_own(opens):
    code = Column(name="code", type="text", null="category")
    schema = Schema.of(unit="id", firm="firm", columns={"code": code})
    table = pa.table({"id": [1, 2, 3, 4], "firm": [7, 7, 7, 8], "code": ["a1", "a2", None, None]})
    asked = query().levels(prefix("code", [1, 2]), keys=Keys.of({"code": ["a1", "a2", None]})).count_distinct("firm", M)
    with opens(table, schema) as engine:
        coarse, fine = tabulated(engine, Plan(schema=schema, queries=(asked,)))
    assert dict(zip(coarse[0], coarse[1][CountFirms()])) == {("a",): 1, (None,): 2}
    assert dict(zip(fine[0], fine[1][CountFirms()])) == {("a1",): 1, ("a2",): 1, (None,): 2}


def test_two_queries_over_the_same_cells_see_the_records_of_their_own_conditions(opens):
    schema = Schema.of(unit="id", measures={"emp": 1}, columns={"code": "text"})
    table = pa.table({"id": range(4), "emp": [1, 2, 30, 40], "code": ["a", "b", "a", "b"]})
    cells = query().group_by("code", keys=Keys.of({"code": ["a", "b"]})).sum("emp", M)
    asked = [cells.where(text) for text in ("emp < 10", "emp > 30")]
    with opens(table, schema) as engine:
        small, large = tabulated(engine, Plan(schema=schema, queries=tuple(asked)))
    assert (small[1], large[1]) == ({SumSteps("emp"): [1, 2]}, {SumSteps("emp"): [0, 40]})


def test_a_constant_off_the_lattice_is_in_no_list_and_equals_nothing(opens):
    schema = Schema.of(unit="id", measures={"emp": 1})
    table = pa.table({"id": range(3), "emp": [2, 3, 7]})
    texts = {"emp IN (2.5, 7)": 1, "emp IN (2.5)": 0, "NOT emp IN (2.5)": 3, "emp = 2.5": 0, "emp <> 2.5": 3}
    with opens(table, schema) as engine:
        found = tabulated(engine, Plan(schema=schema, queries=tuple(query().where(text).count(M) for text in texts)))
    assert [totals[CountUnits()] for _, totals in found] == [[count] for count in texts.values()]


def test_no_working_table_outlives_its_pass():
    schema = Schema.of(unit="id", firm="firm", measures={"emp": 1}, columns={"code": "text"})
    table = pa.table({"id": range(2), "firm": [1, 2], "emp": [2, 3], "code": ["a", "b"]})
    asked = query().group_by("code", keys=Keys.of({"code": ["a", "b"]})).sum("emp", M).count_distinct("firm", M)
    with DuckDB(table, schema) as engine:
        engine.totals(Plan(schema=schema, queries=(asked,)))
        held = "SELECT table_name FROM duckdb_tables() UNION SELECT view_name FROM duckdb_views() WHERE NOT internal"
        names = {name for (name,) in engine._connection.duckdb.execute(held).fetchall()}
    assert names <= {"source", "records"}


def test_sums_beyond_64_bits_never_wrap(opens):
    bound = 2**62
    schema = Schema.of(unit="id", measures={"emp": _measure("emp", bound)}, columns={"code": "text"})
    table = pa.table({"id": range(9), "emp": pa.array([bound] * 9, pa.int64()), "code": ["31"] * 8 + ["32"]})
    asked = query().levels(prefix("code", [1, 2]), keys=Keys.of({"code": ["31", "32"]})).sum("emp", M)
    with opens(table, schema) as engine:
        coarse, fine = tabulated(engine, Plan(schema=schema, queries=(asked,)))
    assert coarse[1] == {SumSteps("emp"): [9 * bound]}
    assert fine[1] == {SumSteps("emp"): [8 * bound, bound]}
    assert 8 * bound > 2**63


def test_totals_of_any_size_and_sign_come_out_of_their_words():
    numbers = [0, -1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63) - 1, 3 * 2**64 + 2**63 + 7]
    column = pa.chunked_array([pa.array(map(Decimal, numbers), pa.decimal128(38, 0))])
    assert integers(column).tolist() == numbers
    assert integers(column.slice(3, 2)).tolist() == numbers[3:5]
    assert integers(column.slice(0, 3)).dtype.kind == "i"


def _measure(name, bound):
    from recordwise.plan import Measure

    return Measure.of(name, bound=bound)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_row_order_and_thread_count_do_not_change_totals(opens, threads, tmp_path):
    import random

    generator = random.Random(7)
    found = [
        {
            "id": i,
            "emp": generator.randrange(10**6),
            "pay": generator.randrange(10**6) / 4,
            "code": generator.choice(CODES),
        }
        for i in range(20_000)
    ]
    schema = Schema.of(unit="id", measures={"emp": 1, "pay": "0.25"}, columns={"code": "text"})
    asked = query().levels(prefix("code", [2, 6]), keys=Keys.of({"code": CODES})).sum("emp", M).sum("pay", M)
    plan = Plan(schema=schema, queries=(asked,))
    answers = []
    for order in range(2):
        with opens(pa.Table.from_pylist(found), schema, threads=threads) as engine:
            answers.append(tabulated(engine, plan))
        generator.shuffle(found)
        assert order in (0, 1)
    level = asked.tables()[1]
    cells = answers[0][1][0]
    assert answers[0] == answers[1]
    assert answers[0][1][1][SumSteps("pay")] == totals(
        found, asked, level, cells, lambda rows: sum(int(row["pay"] * 4) for row in rows)
    )


def test_clamped_sums_add_up_clamped_contributions(opens):
    class Clamped(Plain):
        to = Fraction(5)

    table = pa.table({"id": [1, 2, 3], "emp": [3, 9, 5]})
    schema = Schema.of(unit="id", measures={"emp": 1})
    asked = query().sum("emp", Clamped()).sum("emp", M, alias="whole")
    with opens(table, schema) as engine:
        ((_, answer),) = tabulated(engine, Plan(schema=schema, queries=(asked,)))
    assert answer == {SumSteps("emp", 5): [13], SumSteps("emp"): [17]}


def test_totals_print_nothing(opens):
    schema = Schema.of(unit="id", measures={"emp": 1})
    with opens(pa.table({"id": [1], "emp": [424242]}), schema) as engine:
        found = engine.totals(Plan(schema=schema, queries=(query().sum("emp", M),)))
    assert "424242" not in repr(found)
    assert "424242" not in str(found[0])
