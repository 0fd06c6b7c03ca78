"""Noise in proportion to public sizes at the levels of hierarchies and in grand totals (T-SIZE, T-HIERARCHY)."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recordwise as rw
from build import INDUSTRIES, LISTED, PLACES, SECTORS, employers, industries, levels_of, places
from divergences import published, zcdp
from recordwise.engines.owner import EDGES
from recordwise.errors import KeysError
from recordwise.noise import Seeded
from recordwise.plan.cost import cell_mechanisms, plan_policy
from recordwise.plan.plan import Plan
from recordwise.planning import Goal, compare, recommend
from recordwise.release.nesting import nesting_of
from recordwise.release.verify import verify

CHANCE = np.random.default_rng(6)
COUNTIES, CODES = list(LISTED), list(SECTORS)
ROWS = [
    {"id": n, "county": str(county), "naics": str(naics), "emp": int(emp)}
    for n, (county, naics, emp) in enumerate(
        zip(CHANCE.choice(COUNTIES, 300), CHANCE.choice(CODES, 300), CHANCE.pareto(1.2, 300) * 8)
    )
]
SIZES = {
    (county, naics): float(40 + 137 * at + 61 * number * at)
    for at, county in enumerate(COUNTIES)
    for number, naics in enumerate(CODES)
}
FRAME = {
    "county": [county for county, _ in SIZES],
    "naics": [naics for _, naics in SIZES],
    "last": list(SIZES.values()),
}
CELLS = rw.Keys.crossed(places().keys("county"), industries().keys("naics"))
KEYS = CELLS.sized(FRAME, size={"emp": "last"}, sized_on="public: last year")
SHARE = Fraction(1, 10)
SIZED = rw.Sized(rw.Gaussian(sigma=SHARE), floor=100)


def session(rows=ROWS, **more):
    given = {"hierarchies": [places(), industries()], "tuned_on": "public", "max_outside": "accept"}
    return employers(pa.Table.from_pylist(rows), "county", "naics", **(given | more))


def levels(keys=KEYS):
    return rw.query().levels("nation", "region", "state", "county").levels("total", "sector", "naics").at(keys)


def plan_of(*queries):
    with session() as opened:
        return Plan(schema=opened.schema, queries=queries)


def edge(size):
    """The least size of a band, by halving."""
    found = Fraction(100)
    while 2 * found <= size:
        found *= 2
    return found


def size_of(cell):
    """The reference: the sizes of the listed finest cells inside a cell, added up."""
    inside = [levels_of({"county": county, "naics": naics}) | {"size": size} for (county, naics), size in SIZES.items()]
    return sum(each["size"] for each in inside if all(each[name] == value for name, value in cell.items()))


def served(plan, table):
    """The mechanism that draws for each cell of a table."""
    cells, (statistic,) = plan.cells(table), plan.queries[0].draws()
    rows = cells.to_pylist() or [{}]
    return [
        (rows[row], each.mechanism)
        for each in cell_mechanisms(plan, table, statistic, cells)
        for row in each.run.rows.tolist()
    ]


@pytest.mark.theorem("T-SIZE")
@pytest.mark.parametrize("query", [levels(), rw.query().levels("state", "county").levels("naics", keys=KEYS)])
def test_every_level_has_the_noise_of_its_own_sizes_and_a_record_pays_for_its_own_cells(query):
    plan = plan_of(query.sum("emp", SIZED))
    sigma = {}
    for table in plan.tables():
        for cell, mechanism in served(plan, table):
            wanted = SHARE * edge(size_of(cell))
            assert float(mechanism.sigma) == pytest.approx(float(wanted / table.shape.share**0.5), rel=1e-9)
            sigma[tuple(cell.items())] = float(mechanism.sigma)
    policy = plan_policy(plan)
    assert {column.name for column in policy.columns()} <= {"county", "naics"}
    for row in ROWS[:60]:
        held = levels_of(row)
        own = [sigma[tuple((name, held[name]) for name in table.shape.names())] for table in plan.tables()]
        assert policy.loss(row) == pytest.approx(sum(row["emp"] ** 2 / (2 * each**2) for each in own), rel=1e-9)


@pytest.mark.theorem("T-SIZE")
@pytest.mark.costly
def test_what_is_drawn_for_a_state_never_costs_more_than_the_policy_says_and_the_next_band_would_say_less():
    plan = plan_of(rw.query().group_by("state", "naics", keys=KEYS).sum("emp", SIZED))
    policy, (table,) = plan_policy(plan), plan.tables()
    (bands,) = policy.bands().values()
    for cell, mechanism in served(plan, table):
        county = next(each for each in COUNTIES if LISTED[each][1] == cell["state"])
        record = {"county": county, "naics": cell["naics"], "emp": 60}
        true = zcdp(published(mechanism, 300, 4000), published(mechanism, 360, 4000))
        assert 0.99 * policy.loss(record) < true <= policy.loss(record) * (1 + 1e-9)
        above = SHARE * 2 * bands.edges[bands.band_of(record)]
        assert float(Fraction(60) ** 2 / (2 * above**2)) < 0.5 * true


def test_a_record_whose_code_is_not_listed_is_charged_as_in_the_lowest_band():
    policy = plan_policy(plan_of(rw.query().group_by("state", keys=KEYS).sum("emp", SIZED)))
    assert policy.loss({"county": "99999", "naics": "311", "emp": 30}) == 30**2 / (2 * 10**2)


@pytest.mark.costly
def test_a_grand_total_has_the_size_of_the_whole_list(tmp_path):
    query = rw.query().levels("county").at(KEYS).sum("emp", SIZED)
    plan = plan_of(rw.query().at(KEYS).sum("emp", SIZED), query)
    (_, mechanism), *_ = served(plan, plan.tables()[0])
    assert mechanism == rw.Gaussian(sigma=SHARE * edge(sum(SIZES.values())))
    assert not plan_policy(plan_of(plan.queries[0])).columns()
    with session(ledger=tmp_path / "a.ledger") as opened:
        (total, _) = opened.run(*plan.queries, rng=Seeded(1)).tables
        assert total.data.column("sum_emp_sd")[0].as_py() == pytest.approx(float(mechanism.sigma), rel=1e-3)


def test_sizes_of_a_coarser_level_can_be_given_instead_of_added_up():
    states = (
        places()
        .keys("state")
        .sized({"state": ["01", "02", "13"], "people": [100, 900, 20_000]}, size="people", sized_on="public: a census")
    )
    plan = plan_of(rw.query().levels("state", "county").at([states, KEYS]).sum("emp", SIZED))
    table = next(each for each in plan.tables() if each.shape.names() == ("state",))
    found = {cell["state"]: float(each.sigma * table.shape.share**0.5) for cell, each in served(plan, table)}
    assert found == pytest.approx({"01": 10, "02": 80, "13": 1280}, rel=1e-3)


@pytest.mark.theorem("T-SIZE")
def test_keys_used_with_another_list_of_codes_have_the_bands_of_that_list():
    """Baldwin moves to the third state: the same keys have other sizes there, and its records pay by them."""
    keys = rw.Keys.of(
        {"county": COUNTIES, "last": [50.0, 3000.0, 50.0, 50.0, 150.0]}, size="last", sized_on="public: x"
    )
    moved = {**PLACES, "state": ["01", "13", "02", "02", "13"]}
    policies = []
    for listed in (places(), places(codes=moved)):
        with session(hierarchies=[listed, industries()]) as opened:
            query = rw.query().group_by("state", keys=keys).sum("emp", SIZED)
            policies.append(plan_policy(Plan(schema=opened.schema, queries=(query,))))
    record = {"emp": 60, "naics": "311"}
    paid = [[each.loss({**record, "county": county}) for county in ("01001", "0103", "13001")] for each in policies]
    small, large = (float(60**2 / (2 * (SHARE * least) ** 2)) for least in (100, 1600))
    assert paid == [pytest.approx([large, large, small]), pytest.approx([small, large, large])]


def test_losses_of_all_records_look_bands_up_by_the_codes_that_records_hold(opens, tmp_path):
    unlisted = [{"id": 1000, "county": "99999", "naics": "311", "emp": 50}]
    with session([*ROWS, *unlisted], ledger=tmp_path / "a.ledger", **opens.session_options()) as opened:
        query = rw.query().levels("nation", "state").levels("naics", keys=KEYS).sum("emp", SIZED)
        policy = opened.policy_of(query)
        wanted = [policy.loss(row) for row in [*ROWS, *unlisted]]
        assert opened.owner.loss_summary(policy).counts.tolist() == _binned(wanted)
        by_state = rw.query().group_by("state", "naics", keys=KEYS).sum("emp", SIZED)
        own = opened.policy_of(by_state)
        assert opened.owner.realized_loss_summary(by_state).counts.tolist() == _binned(
            [*(own.loss(row) for row in ROWS), 0.0]
        )


def _binned(losses):
    return np.bincount(np.searchsorted(EDGES, losses), minlength=len(EDGES) + 1).tolist()


def test_only_combinations_of_bands_that_occur_are_compared():
    """Twelve tables of the same two columns: combined freely their bands would be more than any comparison goes through."""
    policy = plan_policy(plan_of(levels().sum("emp", SIZED)))
    assert len(policy.bands()) >= 6
    assert policy.dominates(policy)
    refused = policy.dominates(policy * Fraction(1001, 1000))
    assert refused.answer == "no"
    assert policy.loss(refused.witness) > 0


@pytest.mark.costly
def test_fits_of_a_saved_release_know_the_noise_of_every_cell(tmp_path):
    with session(ledger=tmp_path / "a.ledger") as opened:
        folder = opened.run(levels().sum("emp", SIZED, alias="emp")).save(tmp_path / "out")
    assert verify(tmp_path / "a.ledger", against=[folder]) == []
    release = rw.read(folder)
    family = nesting_of(release, release.published.queries[0], complete=False)
    found = np.zeros(family.rows.shape[0])
    for rows, share, size in family.by_size("emp"):
        found[rows] = float(SHARE * size) / float(share) ** 0.5
    assert found == pytest.approx(family.column(family.statistics[0], "_sd"), rel=1e-3)
    fitted = release.consistent(method="ols")
    for table in fitted.tables:
        own = table.data
        assert np.all(own.column("emp_best_sd").to_numpy() <= own.column("emp_sd").to_numpy() * (1 + 1e-9))


@pytest.mark.costly
def test_sizes_can_be_from_an_earlier_release_by_the_finest_codes(tmp_path):
    kept = {"ledger": tmp_path / "a.ledger", "budget": rw.policy.gaussian_sum("emp", sigma=1)}
    with session(**kept) as opened:
        year1 = rw.query().levels("state", "county").levels("naics", keys=CELLS).sum("emp", rw.Gaussian(sigma=20))
        folder = opened.run(year1).save(tmp_path / "year1")
    given = rw.FromRelease(release=str(folder), column="sum_emp")
    keys = rw.Keys.of(CELLS.table, size=given)
    query = rw.query().levels("state", "county").levels("naics", keys=keys)
    with session(**kept) as opened:
        release = opened.run(query.sum("emp", SIZED))
        assert "the unconditional promise is the budget" in release.to_json()["sized_noise"]
        assert release.policy.bands()
        found = compare(
            opened, {"sized": SIZED}, measure="emp", query=rw.query().group_by("state", keys=keys), data="public"
        )
        assert np.all(found["sized"].errors > 0)
        goal = Goal("emp", query, within="0.2", at_least=100, share="0.5")
        advice = recommend(opened, goal, candidates={"sized": SIZED}, data="public")
        assert 'release = "' in advice.plan(source="t.parquet", ledger="l").text


@pytest.mark.costly
def test_the_split_for_fitted_errors_takes_sized_noise_by_cell(tmp_path):
    goal = Goal("emp", rw.query().levels("state", "county").levels("naics", keys=KEYS), within="0.1", at_least=50)
    with session(ledger=tmp_path / "a.ledger") as opened:
        raw = recommend(opened, goal, keep_mechanisms=SIZED, data="public")
        found = recommend(opened, goal, keep_mechanisms=SIZED, fitted=True, complete=True, data="public")
        assert found.worst < raw.worst
        (query,) = found.queries()
        release = opened.run(query).consistent(method="ols")
        totals = {
            each.name: each.totals["exact"]
            for each in opened.owner.view(data="public").cell_totals(
                goal.query.sum("emp", rw.Gaussian(sigma=1), alias="exact")
            )
        }
        worst = 0.0
        for table in release.tables:
            counted = totals[table.name] >= 50
            sd = table.data.column("sum_emp_best_sd").to_numpy()[counted]
            worst = max(worst, float(np.max(1.959964 * sd / (0.1 * totals[table.name][counted] - 0.5))))
        assert worst == pytest.approx(found.worst, rel=2e-3)
        advice = recommend(opened, goal, candidates={"sized": SIZED}, fitted=True, complete=True, data="public")
        assert all(each.share_met == 1 for each in advice.best.calibrated)


PLAN = """
dataset = "test"
source = "records.parquet"
ledger = "plan.ledger"
tuned_on = "public"

[schema]
unit = "id"
measures = { emp = 1 }
columns = { county = "text", naics = "text" }

[hierarchies.place]
file = "places.parquet"
levels = ["nation", "region", "state", "county"]
totals = { nation = "US" }
source = "public: a list of places"

[hierarchies.industry]
file = "industries.parquet"
levels = ["sector", "naics"]
source = "public: a list of industries"

[keys.cells]
product = { place = "county", industry = "naics" }
size = SIZE
sized_on = "public: last year"

[[queries]]
levels = [{ by = ["nation", "state", "county"] }, { by = ["sector", "naics"] }]
keys = "cells"
sum.emp = { kind = "Sized", floor = 100, mechanism = { kind = "Gaussian", sigma = "1/10" } }
"""


def test_a_plan_file_takes_the_sizes_of_a_product_from_a_file(tmp_path):
    pq.write_table(pa.table(PLACES), tmp_path / "places.parquet")
    pq.write_table(pa.table(INDUSTRIES), tmp_path / "industries.parquet")
    pq.write_table(pa.table(FRAME), tmp_path / "sizes.parquet")
    policies = []
    for size in (
        '{ file = "sizes.parquet", column = "last" }',
        '{ emp = { file = "sizes.parquet", column = "last" } }',
    ):
        (tmp_path / "plan.toml").write_text(PLAN.replace("SIZE", size))
        policies.append(plan_policy(rw.load_plan(tmp_path / "plan.toml").plan))
    query = rw.query().levels("nation", "state", "county").levels("sector", "naics").at(KEYS).sum("emp", SIZED)
    assert policies == [plan_policy(plan_of(query))] * 2
    (tmp_path / "plan.toml").write_text(PLAN.replace("SIZE", '{ file = "sizes.parquet", column = "no" }'))
    with pytest.raises(rw.errors.PlanFileError, match="'no' is the size of cells but no column of the list"):
        rw.load_plan(tmp_path / "plan.toml")


def test_a_list_of_sizes_that_does_not_tell_the_cells_apart_is_refused():
    with pytest.raises(KeysError, match="is a column of the keys, but not of the list with sizes"):
        CELLS.sized({"county": COUNTIES, "last": [1.0] * len(COUNTIES)}, size="last", sized_on="public: last year")
