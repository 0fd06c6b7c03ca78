"""Levels of hierarchies in the engines: every record is in its one cell of every level, and conditions mean what policies say."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordwise as rw
from build import LISTED, industries, levels_of, places
from engine_choice import Choice
from engines.plain_mechanism import Plain
from recordwise.engines import engine as engine_totals
from recordwise.engines.compile.totals import bases_of
from recordwise.plan import Column, Plan, Schema
from recordwise.plan.cost import records_of
from recordwise.plan.expressions import And, Compare, Field, In, IsNull, Not, Or, Prefix
from recordwise.plan.query import query
from recordwise.plan.statistics import CountFirms, CountUnits, SumSteps
from recordwise.policy.constructors import constant

M = Plain()
PLACE, INDUSTRY = places(), industries()
SCHEMA = Schema.of(
    unit="id",
    measures={"emp": 1},
    columns={"county": Column(name="county", null="category"), "naics": "text"},
    firm="firm",
    hierarchies=[PLACE, INDUSTRY],
)
TYPES = pa.schema(
    [("id", pa.int64()), ("emp", pa.int64()), ("county", pa.string()), ("naics", pa.string()), ("firm", pa.string())]
)
KEYS = rw.Keys.crossed(PLACE.keys("county"), INDUSTRY.keys("naics"))
row = st.fixed_dictionaries(
    {
        "emp": st.integers(0, 60),
        "county": st.sampled_from([*LISTED, "99999", "01", None]),
        "naics": st.sampled_from(["311", "3121", "332", "111", "31", "999"]),
        "firm": st.sampled_from(["f", "g"]),
    }
)
rows = st.lists(row, max_size=25).map(lambda found: [{"id": i, **each} for i, each in enumerate(found)])


def asked(places=("nation", "region", "state", "county"), industries=("total", "sector", "naics")):
    start = query().levels(*places).levels(*industries).at(KEYS)
    return start.count(M).sum("emp", M).count_distinct("firm", M)


def found_by(engine, plan):
    """For each table, its groups and by cell what the engine found there."""
    for each in engine.totals(plan):
        cells = list(zip(*each.cells.to_pydict().values()))
        exact = each.exact.reveal().totals
        yield each.table.shape.names(), {total: dict(zip(cells, values.tolist())) for total, values in exact.items()}


def expected(found, names, cells):
    records = [levels_of(record) for record in found]
    inside = [(cell, each) for each in records if None not in (cell := tuple(each[name] for name in names))]
    inside = [(cell, each) for cell, each in inside if cell in cells]
    counts, sums = Counter(cell for cell, _ in inside), Counter()
    for cell, each in inside:
        sums[cell] += each["emp"]
    firms = {cell: {each["firm"] for other, each in inside if other == cell} for cell in cells}
    return {
        CountUnits(): {cell: counts[cell] for cell in cells},
        SumSteps("emp"): {cell: sums[cell] for cell in cells},
        CountFirms(): {cell: len(firms[cell]) for cell in cells},
    }


@pytest.mark.theorem("T-HIERARCHY")
@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.costly
def test_every_cell_of_every_level_has_its_records_and_no_others(in_memory, monkeypatch):
    monkeypatch.setattr(engine_totals, "MOST_CELLS", engine_totals.MOST_CELLS if in_memory else -1)

    @settings(max_examples=8, deadline=None)
    @given(rows)
    def check(found):
        compare(Choice("duckdb"), found, asked())

    check()


def compare(opens, found, asked_for):
    with opens(pa.Table.from_pylist(found, TYPES), SCHEMA, threads=1) as engine:
        for names, answer in found_by(engine, Plan(schema=SCHEMA, queries=(asked_for,))):
            assert answer == expected(found, names, list(answer[CountUnits()]))


def test_engines_agree_on_the_cells_of_levels(opens):
    found = [{**each, "firm": "fg"[number % 2]} for number, each in enumerate(EVERYBODY)]
    compare(opens, found, asked(places=("region", "state"), industries=("sector",)))


def test_all_levels_of_crossed_hierarchies_take_one_pass():
    (base,) = bases_of(Plan(schema=SCHEMA, queries=(asked(),)).tables(), SCHEMA)
    assert base.expressions[: base.own] == (Field("county"), Field("naics"))
    assert {each.name for each in base.expressions[base.own :]} == {"nation", "region", "state", "total", "sector"}


def test_levels_that_cross_take_a_pass_each_where_no_finer_level_is_asked_for():
    asked_for = query().levels("region", "state", keys=PLACE.keys("county")).count(M)
    assert len(bases_of(Plan(schema=SCHEMA, queries=(asked_for,)).tables(), SCHEMA)) == 2


LEVELS = {"region": ["South", "West"], "state": ["01", "02", "13"], "nation": ["US"], "sector": ["31-33", "11"]}
leaf = st.one_of(
    *(
        st.one_of(
            st.builds(Compare, st.just(Field(name)), st.sampled_from(["=", "<>", "<", ">="]), st.sampled_from(values)),
            st.builds(In, st.just(Field(name)), st.lists(st.sampled_from(values), min_size=1).map(tuple)),
            st.just(IsNull(Field(name))),
            st.builds(
                Compare, st.just(Prefix(name, 1)), st.sampled_from(["=", "<>"]), st.sampled_from(["0", "S", "3"])
            ),
        )
        for name, values in LEVELS.items()
    ),
    st.builds(Compare, st.just(Field("emp")), st.sampled_from(["<", ">="]), st.integers(0, 60).map(Fraction)),
    st.builds(Compare, st.just(Field("county")), st.sampled_from(["=", "<>"]), st.sampled_from(["01001", "99999"])),
)
predicates = st.recursive(
    leaf,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, min_size=2, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=5,
)


def truth(predicate, record):
    """The reference: SQL's three-valued logic over what a record has at every level."""
    match predicate:
        case Not(part):
            inner = truth(part, record)
            return None if inner is None else not inner
        case And(parts) | Or(parts):
            found, wins = [truth(part, record) for part in parts], isinstance(predicate, Or)
            return wins if wins in found else None if None in found else not wins
        case IsNull(operand):
            return record[operand.name] is None
    value = record[getattr(predicate.operand, "name", None) or predicate.operand.column]
    if value is None:
        return None
    value = value[: predicate.operand.length] if isinstance(predicate.operand, Prefix) else value
    if isinstance(predicate, In):
        return value in predicate.literals
    other = predicate.literal
    return {"=": value == other, "<>": value != other, "<": value < other, ">=": value >= other}[predicate.operator]


def orders_texts(predicate):
    match predicate:
        case Not(part):
            return orders_texts(part)
        case And(parts) | Or(parts):
            return any(map(orders_texts, parts))
        case Compare(_, operator, literal):
            return operator in "<>=" and operator != "=" and isinstance(literal, str)
    return False


EVERYBODY = [
    {"id": number, "emp": emp, "county": county, "naics": naics, "firm": "f"}
    for number, (emp, county, naics) in enumerate(
        (emp, county, naics) for emp in (0, 30) for county in (*LISTED, "99999", None) for naics in ("311", "111", "x")
    )
]


@pytest.mark.theorem("T-HIERARCHY")
@pytest.mark.costly
def test_an_engine_selects_by_levels_the_records_that_the_policy_charges(opens):
    with opens(pa.Table.from_pylist(EVERYBODY, TYPES), SCHEMA, threads=1) as engine:

        @settings(max_examples=opens.examples(30), deadline=None)
        @given(st.lists(predicates, min_size=4, max_size=4))
        def check(some):
            queries = tuple(replace(query().count(M), condition=each) for each in some)
            found = [
                each.exact.reveal().totals[CountUnits()].item()
                for each in engine.totals(Plan(schema=SCHEMA, queries=queries))
            ]
            for predicate, count in zip(some, found):
                selected = [truth(predicate, levels_of(record)) is True for record in EVERYBODY]
                condition = records_of(predicate, SCHEMA)
                charged = [constant(1).where(condition).loss(record) == 1 for record in EVERYBODY]
                assert count == sum(selected)
                if orders_texts(predicate):
                    assert all(pays for pays, inside in zip(charged, selected) if inside)
                else:
                    assert charged == selected

        check()


def test_whole_numbers_can_be_codes(opens):
    codes = {"area": [1, 1, 2], "zip": ["1001", "1002", "2001"]}
    listed = rw.Hierarchy.of("post", codes, levels=["area", "zip"], source="public: post")
    schema = Schema.of(unit="id", columns={"zip": "integer"}, hierarchies=[listed])
    asked_for = query().where("area >= 1").levels("area", "zip", keys=schema.hierarchies[0].keys("zip")).count(M)
    table = pa.table({"id": [1, 2, 3, 4], "zip": [1001, 2001, 2001, 7]})
    with opens(table, schema) as engine:
        found = {
            names: answer[CountUnits()] for names, answer in found_by(engine, Plan(schema=schema, queries=(asked_for,)))
        }
    assert found == {("area",): {(1,): 1, (2,): 2}, ("zip",): {(1001,): 1, (1002,): 0, (2001,): 2}}


def test_levels_are_those_of_collapsed_records(opens):
    schema = replace(SCHEMA, firm=None, collapse=(("emp", "sum"), ("county", "same"), ("naics", "same")))
    table = pa.table({"id": [1, 1, 2], "emp": [3, 4, 5], "county": ["01001", "01001", "9"], "naics": ["311"] * 3})
    asked_for = query().where("sector = '31-33'").levels("state", "county", keys=PLACE.keys("county")).sum("emp", M)
    with opens(table, schema) as engine:
        found = dict(found_by(engine, Plan(schema=schema, queries=(asked_for,))))
    assert found["state",][SumSteps("emp")] == {("01",): 7, ("02",): 0, ("13",): 0}
