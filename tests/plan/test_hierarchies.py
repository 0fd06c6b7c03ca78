"""Hierarchies from lists of codes: what is refused, the keys they give, and policies that name only what records hold."""

from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordwise as rw
from build import INDUSTRIES, LISTED, PLACES, SECTORS, industries, levels_of, places
from recordwise.errors import KeysError, ParameterError, PlanError, PlanFileError
from recordwise.plan import Column, Plan, Schema
from recordwise.plan.cost import cell_mechanisms, check_policy, firm_policy, plan_policy
from recordwise.plan.describe import plan_json, plan_warnings, used_schema
from recordwise.plan.file.write import plan_text
from recordwise.plan.query import query
from recordwise.policy import constant, maximum, split
from recordwise.policy.conditions import among

SCHEMA = Schema.of(
    unit="id",
    measures={"emp": 1},
    columns={"county": "text", "naics": "text"},
    firm="firm",
    hierarchies=[places(), industries()],
)
NOISE = rw.Gaussian(rho="0.1")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"codes": PLACES | {"county": ["01001", "01001", "02013", "02", "13001"]}},
            "lists 1 code with different .*'01001'",
        ),
        (
            {"codes": PLACES | {"state": ["01", "", None, "02", "13"]}},
            "has no 'state' in 2 of its rows.*leave the code out",
        ),
        ({"codes": PLACES | {"state": [1.5, 2.5, 3.5, 4.5, 5.5]}}, "has double values as 'state'"),
        ({"codes": {name: [] for name in ("region", "state", "county")}}, "is empty|has null values"),
        (
            {"levels": ["nation", "county"], "labels": {"county": "name"}},
            "no column 'name' with the labels of 'county'",
        ),
        ({"levels": ["nation", "province", "county"]}, "no column 'province'. Its columns are region, state, county"),
        ({"levels": ["nation"]}, "needs 2 to 12 different levels"),
        ({"levels": ["nation", "State", "state", "county"]}, "needs 2 to 12 different levels"),
        ({"levels": "county"}, "needs a list of names"),
        ({"source": " "}, "needs a source"),
        ({"titles": {"province": "Province"}}, "has titles of 'province', which is not one of its levels"),
    ],
)
def test_a_list_that_is_no_hierarchy_is_refused(changed, words):
    with pytest.raises(ParameterError, match=words):
        places(**changed)


def test_a_code_may_be_listed_twice_with_the_same_values():
    doubled = {name: [*values, values[0]] for name, values in PLACES.items()}
    assert places(codes=doubled).codes.equals(places().codes)


def test_levels_that_do_not_nest_are_said_to_be():
    place = places()
    assert place.crossing == (("region", "state"),)
    assert place.about()["not_nested"] == [["region", "state"]]
    assert place.determines("county", "region")
    assert not place.determines("state", "region")
    assert not place.determines("region", "county")
    assert "not_nested" not in industries().about()


def test_keys_have_every_level_that_they_determine():
    assert places().keys("state").table.to_pydict() == {"nation": ["US"] * 3, "state": ["01", "02", "13"]}
    county = places().keys("county").table
    assert county.column_names == ["nation", "region", "state", "county"]
    crossed = rw.Keys.crossed(places().keys("state"), industries().keys("sector"))
    assert crossed.table.num_rows == 6
    with pytest.raises(KeysError, match="'province' is not a level of the hierarchy 'place'"):
        places().keys("province")
    with pytest.raises(KeysError, match="'nation' is a column of two lists"):
        rw.Keys.crossed(places().keys("state"), places().keys("county"))


def test_keys_of_finest_codes_are_given_their_levels_when_they_join_a_plan():
    asked = query().levels("nation", "state", "county", keys={"county": ["01001", "02013"]}).count(NOISE)
    plan = Plan(schema=SCHEMA, queries=(asked,))
    assert [plan.cells(table).to_pydict() for table in plan.tables()] == [
        {"nation": ["US"]},
        {"state": ["01", "02"]},
        {"county": ["01001", "02013"]},
    ]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"county": ["01001", "99999"]}, "lists 1 code that the hierarchy 'place' does not have, such as '99999'"),
        ({"state": ["01", "99"]}, "such as '99'"),
        ({"state": ["02"], "county": ["01001"]}, "'state' differs from that of 'county' in the hierarchy 'place'"),
        ({"county": [1001]}, "Write codes as text"),
    ],
)
def test_keys_that_no_listed_code_has_are_refused(keys, words):
    group = list(keys)[-1]
    with pytest.raises(KeysError, match=words):
        Plan(schema=SCHEMA, queries=(query().group_by(group, keys=keys).count(NOISE),))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"naics": "text"}, "has the finest level 'county', which is not a declared column"),
        ({"county": "text", "State": "text"}, "has the level 'state', which is also a column of the records"),
        ({"county": "integer"}, "has text as 'county', declared as integer"),
        ({"county": "date"}, "has text as 'county', declared as date"),
    ],
)
def test_a_schema_refuses_a_hierarchy_that_does_not_fit_its_records(columns, words):
    with pytest.raises(ParameterError, match=words):
        Schema.of(unit="id", columns=columns, hierarchies=[places()])


def test_two_hierarchies_cannot_share_a_level():
    other = rw.Hierarchy.of("other", {"state": ["a"], "naics": ["311"]}, levels=["state", "naics"], source="public: x")
    with pytest.raises(ParameterError, match="gives two roles to state"):
        Schema.of(unit="id", columns={"county": "text", "naics": "text"}, hierarchies=[places(), other])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (query().where("state = '99'"), "'state' is compared with '99', which the hierarchy 'place' does not have"),
        (query().where("state IN ('01', '98')"), "compared with '98'"),
        (query().where("state = 1"), "not of type text"),
        (query().where("state > 1"), "not of type text"),
        (
            query().group_by("state", keys=rw.Keys.select(rho=1, delta="1e-6")),
            "all its values are in a public hierarchy",
        ),
        (
            query().levels("state", "county", keys=places().keys("county"), all_other="publish"),
            "'state' is a level of a hierarchy",
        ),
        (
            query().group_by(rw.plan.Group("state", rw.plan.Prefix("county", 2)), keys=["01"]),
            "the name of another column",
        ),
    ],
)
def test_a_plan_refuses_what_levels_cannot_do(asked, words):
    with pytest.raises(PlanError, match=words):
        Plan(schema=SCHEMA, queries=(asked.count(NOISE),))


def test_nothing_charged_names_a_level():
    asked = query().where("region = 'West' AND NOT sector = '11'").group_by("state", keys=["01", "02"]).count(NOISE)
    plan = Plan(
        schema=SCHEMA, queries=(asked.sum("emp", rw.UnitSplit(at=rw.by("sector", {"11": 5}, default=50), rho=1)),)
    )
    for policy in (plan_policy(plan), plan_policy(plan, tight=False), firm_policy(plan).policy()):
        assert {column.name for column in policy.columns()} == {"county", "naics"}
        assert policy.loss({"emp": 1, "county": "0103", "naics": "311"}) > 0
        assert policy.loss({"emp": 1, "county": "0103", "naics": "111"}) == 0
        assert policy.loss({"emp": 1, "county": "99999", "naics": "311"}) == 0
    assert firm_policy(plan).columns() == ("state",)


def test_a_budget_by_level_is_one_by_codes():
    stated = split(1, {"emp": rw.by("sector", {"11": 5}, default=50)}) + maximum(
        [constant(3).where(among("state", ["01"])), constant(2)]
    )
    held = check_policy(stated, SCHEMA)
    assert {column.name for column in held.columns()} == {"county", "naics"}
    for county in (*LISTED, "99999"):
        for naics in (*SECTORS, "999"):
            record = {"emp": 20, "county": county, "naics": naics}
            assert held.loss(record) == stated.loss(levels_of(record))


thresholds = st.dictionaries(st.sampled_from(["31-33", "11"]), st.integers(1, 9), min_size=1, max_size=2)


@pytest.mark.theorem("T-HIERARCHY")
@pytest.mark.parametrize("by", ["total", "sector", "naics", None])
@given(thresholds, st.integers(1, 9))
@settings(max_examples=10, deadline=None)
def test_cells_are_drawn_with_the_threshold_that_their_records_are_charged_for(by, values, default):
    mechanism = rw.UnitSplit(at=rw.by("sector", values, default=default), rho=1)
    start = query() if by is None else query().group_by(by, keys=industries().keys(by))
    plan = Plan(schema=SCHEMA, queries=(start.sum("emp", mechanism),))
    (table,) = plan.tables()
    cells = plan.cells(table) if by else pa.table({})
    drawn = {}
    for each in cell_mechanisms(plan, table, plan.queries[0].draws()[0], cells):
        for row in each.run.rows.tolist():
            drawn[cells.column(by)[row].as_py() if by else None] = each.mechanism.policy("emp")
    policy = plan_policy(plan)
    for naics in SECTORS:
        record = levels_of({"naics": naics, "county": "01001", "emp": 30})
        own = policy.loss({"naics": naics, "emp": 30})
        assert own == drawn[record[by] if by else None].loss({"emp": 30})
        # Never less than the record's own threshold asks for is drawn: a larger threshold, more noise, a smaller loss.
        assert own <= mechanism.policy("emp").loss({"sector": SECTORS[naics], "emp": 30})


def test_the_owner_is_warned_only_where_thresholds_are_raised():
    mechanism = rw.UnitSplit(at=rw.by("sector", {"11": 5}, default=50), rho=1)
    for by, warned in (("naics", False), ("sector", False), ("total", True)):
        asked = query().group_by(by, keys=industries().keys(by)).sum("emp", mechanism)
        assert bool(plan_warnings(Plan(schema=SCHEMA, queries=(asked,)))) == warned


def test_only_hierarchies_that_a_plan_uses_are_described():
    plan = Plan(schema=SCHEMA, queries=(query().group_by("state", keys=["01"]).count(NOISE),))
    assert [each.name for each in used_schema(plan).hierarchies] == ["place"]
    ((table,),) = [each["tables"] for each in plan_json(plan)]
    assert table["by"] == [
        {
            "name": "state",
            "level": "state",
            "hierarchy": "place",
            "digest": places().digest,
            "determined_by": ["county"],
        }
    ]


PLAN = """\
dataset = "d"
source = "d.parquet"
ledger = "d.ledger"
tuned_on = "public"

[schema]
unit = "id"
measures.emp = 1
columns.county = "text"
columns.naics = "text"

[hierarchies.place]
file = "places.csv"
levels = ["nation", "region", "state", "county"]
totals = { nation = "US" }
titles = { state = "State" }
labels = { county = "county_name" }
source = "public: a list of places"

[hierarchies.industry]
file = "industries.csv"
levels = ["sector", "naics"]
source = "public: a list of industries"

[keys.cells]
product = { place = "county", industry = "naics" }

[[queries]]
where = "region = 'West'"
levels = [{ by = ["nation", "state", "county"], share = [0.2, 0.3, 0.5] }, { by = ["sector", "naics"] }]
keys = "cells"
count = { kind = "Gaussian", rho = 0.1 }
"""


@pytest.fixture
def folder(tmp_path):
    for name, columns in (("places", PLACES), ("industries", INDUSTRIES)):
        lines = [",".join(columns), *(",".join(row) for row in zip(*columns.values()))]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "zips.csv").write_text("zip,county\n10001,01001\n02002,0103\n10001,02013\n")
    return tmp_path


def test_a_plan_file_names_hierarchies_and_crosses_their_levels(folder, load):
    file = load(PLAN)
    place, _ = file.plan.schema.hierarchies
    assert place.codes.equals(places().codes)
    assert place.titles == {"state": "State"}
    assert place.labels["county=0103"] == "Baldwin"
    assert place.digest != places().digest
    assert [level.names() for level in file.plan.queries[0].tables()][::5] == [
        ("nation", "sector"),
        ("county", "naics"),
    ]
    assert [file.plan.cells(table).num_rows for table in file.plan.tables()] == [2, 4, 6, 12, 10, 20]
    assert sum(level.share for level in file.plan.queries[0].tables()) == 1
    assert file.plan.queries[0].tables()[0].share == Fraction("0.1")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"places.csv"', '"nowhere.csv"', "the file nowhere.csv does not exist"),
        ('source = "public: a list of places"', "", "line 1[0-9].*'source' is missing"),
        ('"public: a list of places"', '"made from the records"', "needs tuning_reason"),
        ('levels = ["nation", "region"', 'levels = ["nation", "province"', "no column 'province'"),
        ('columns.county = "text"', 'columns.county = "text"\ncolumns.state = "text"', "also a column of the records"),
        ('place = "county"', 'place = "province"', "'province' is not a level of the hierarchy 'place'"),
        ('place = "county"', 'places = "county"', "a level of a hierarchy by its name: did you mean 'place'"),
        ('place = "county"', 'county = { file = "zips.csv" }', "'column' is missing"),
        ('place = "county"', 'county = { file = "zips.csv", column = "zap" }', "'zap' is not a column of zips.csv"),
        ("'West'", "'East'", "compared with 'East'"),
    ],
)
def test_problems_are_told_at_their_place(folder, load, old, new, words):
    assert PLAN.count(old) == 1
    with pytest.raises(PlanFileError, match=words):
        load(PLAN.replace(old, new))


def test_lists_of_a_product_come_from_files(folder, load):
    given = PLAN.replace('place = "county"', 'county = { file = "zips.csv", column = "county" }')
    file = load(
        given.replace('"nation", "state", "county"', '"nation", "county"').replace("[0.2, 0.3, 0.5]", "[0.5, 0.5]")
    )
    assert file.plan.cells(file.plan.tables()[2]).column("county").to_pylist()[::2] == ["01001", "0103", "02013"]


def test_a_list_made_with_the_records_needs_a_reason(folder, load):
    private = PLAN.replace('"public: a list of places"', '"the records of 2024"')
    file = load(private.replace('tuned_on = "public"', 'tuned_on = "public"\naccept_tuning = "an old list"'))
    assert not file.plan.schema.hierarchies[0].is_public


def test_levels_of_a_selected_domain_come_from_hierarchies(folder, load):
    chosen = PLAN.replace(
        'product = { place = "county", industry = "naics" }',
        'select_from = { product = { place = "state", industry = "naics" }, rho = 0.1, threshold = 5 }',
    )
    chosen = chosen.replace('by = ["nation", "state", "county"], share = [0.2, 0.3, 0.5]', 'by = ["state"]')
    file = load(chosen.replace('["sector", "naics"] }]', '["naics"] }]'))
    (keys,) = file.plan.queries[0].key_lists
    assert [name for name, _ in keys.domain.columns] == ["state", "naics"]


def test_a_written_plan_brings_its_lists(folder, load, tmp_path):
    file = load(PLAN)
    written = plan_text(
        file.plan.queries, file.plan.schema, dataset="d", source="d.parquet", ledger="d.ledger", tuned_on="public"
    )
    written.save(tmp_path / "new" / "plan.toml")
    again = rw.load_plan(tmp_path / "new" / "plan.toml")
    assert [each.codes for each in again.plan.schema.hierarchies] == [
        each.codes for each in file.plan.schema.hierarchies
    ]
    assert plan_policy(again.plan) == plan_policy(file.plan)
    assert [
        again.plan.cells(one).equals(file.plan.cells(two)) for one, two in zip(again.plan.tables(), file.plan.tables())
    ]


def test_a_hierarchy_of_a_nullable_column_leaves_null_out():
    schema = Schema.of(unit="id", columns={"county": Column(name="county", null="category")}, hierarchies=[places()])
    with pytest.raises(KeysError, match="lists 1 code that the hierarchy"):
        Plan(schema=schema, queries=(query().group_by("county", keys=["01001", None]).count(NOISE),))
    with pytest.raises(KeysError, match="NULL"):
        Plan(schema=schema, queries=(query().group_by("state", keys=["01", None]).count(NOISE),))
