"""A release by the levels of hierarchies, from records to basic tables that add up: on both engines, saved and loaded again."""

import json

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from build import LISTED, SECTORS, employers, industries, levels_of, places
from recordwise.errors import OutsideError, TuningError, UnkeptLedgerWarning
from recordwise.noise import Seeded

CHANCE = np.random.default_rng(5)
ROWS = [
    {"id": n, "county": str(county), "naics": str(naics), "emp": int(emp), "firm": n // 2}
    for n, (county, naics, emp) in enumerate(
        zip(CHANCE.choice(list(LISTED), 400), CHANCE.choice(list(SECTORS), 400), CHANCE.pareto(1.2, 400) * 8)
    )
]
UNLISTED = [{"id": 1000 + n, "county": "99999", "naics": "311", "emp": 10**6, "firm": n} for n in range(3)]
KEYS = rw.Keys.crossed(places().keys("county"), industries().keys("naics"))


def session(rows, **more):
    listed = [places(titles={"state": "State"}), industries()]
    given = {"firm": "firm", "hierarchies": listed, "tuned_on": "public", "max_outside": "accept"}
    return employers(pa.Table.from_pylist(rows), "county", "naics", **(given | more))


def asked(noise):
    levels = rw.query().levels("nation", "region", "state", "county", share=["0.1", "0.2", "0.2", "0.5"])
    levels = levels.levels("sector", "naics").at(KEYS).named("industry", title="Employment")
    return levels.count(noise).sum("emp", noise, alias="employees")


def total(noise):
    return rw.query().levels("nation", "state").levels("total").at(KEYS).named("all").sum("emp", noise)


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    with session([*ROWS, *UNLISTED], ledger=tmp_path_factory.mktemp("ledger") / "l") as opened:
        yield opened.run(asked(rw.Gaussian(sigma=10)), total(rw.UnitSplit(at=100, rho="0.5")), rng=Seeded(4))


def cells(table, name):
    return dict(
        zip(zip(*(table.data.column(key).to_pylist() for key in table.keys)), table.data.column(name).to_pylist())
    )


def exact(names):
    found = {}
    for record in map(levels_of, ROWS):
        cell = tuple(record[name] for name in names)
        found[cell] = found.get(cell, 0) + record["emp"]
    return found


def test_every_level_is_published_about_the_records_of_listed_codes(opens):
    noise = rw.Gaussian(sigma="0.01")
    with session([*ROWS, *UNLISTED], **opens.session_options()) as opened, pytest.warns(UnkeptLedgerWarning):
        made = opened.run(
            rw.query().levels("region", "county").levels("sector").at(KEYS).sum("emp", noise), rng=Seeded(1)
        )
    for table in made.tables:
        found = cells(table, "sum_emp")
        assert {cell: value for cell, value in found.items() if value} == exact(table.keys)


def test_a_record_whose_code_is_not_listed_is_outside(tmp_path):
    few = [*ROWS[:99], UNLISTED[0]]
    for share, rows, refused in (("0.01", few, False), ("0.005", few, True), (0, ROWS, False)):
        with session(rows, max_outside=share, ledger=tmp_path / f"{share}.ledger") as opened:
            by_nation = rw.query().group_by("nation", keys=["US"]).count(rw.Gaussian(rho=1))
            if refused:
                with pytest.raises(OutsideError):
                    opened.run(by_nation)
                assert not opened.spent().rho
            else:
                opened.run(by_nation)


def sum_below(finest, keys, cell):
    """The sum of the finest cells that lie in a cell."""
    wanted = dict(zip(keys, cell)).items()
    return sum(part for at, part in finest.items() if wanted <= levels_of(dict(zip(("county", "naics"), at))).items())


@pytest.mark.costly
def test_all_levels_of_all_queries_about_a_measure_add_up(release):
    fitted = release.consistent(method="ols")
    assert [len(some) for some in fitted.to_json()["consistent"]["fitted_together"]] == [10]
    tables = {table.name: table for table in fitted.tables}
    finest = cells(tables["industry_county_by_naics"], "employees_fit")
    for name, table in tables.items():
        column = "sum_emp_fit" if name.startswith("all") else "employees_fit"
        for cell, value in cells(table, column).items():
            assert value == pytest.approx(sum_below(finest, table.keys, cell), abs=1e-6)


def test_a_fit_of_all_queries_is_closer_than_each_alone(release):
    best = release.consistent(method="ols")
    for table in best.tables:
        name = "sum_emp" if table.name.startswith("all") else "employees"
        fitted, raw = (table.data.column(f"{name}{end}").to_numpy() for end in ("_best_sd", "_sd"))
        assert np.all(fitted < raw * 0.999)


@pytest.mark.costly
def test_a_table_without_an_industry_may_hold_records_of_unlisted_ones(tmp_path):
    """Records whose industry is not listed are in the total of a state and in no industry of it."""
    rows = [*ROWS, {"id": 5000, "county": "01001", "naics": "999", "emp": 10**6, "firm": 1}]
    by_state = rw.query().group_by("state", keys=["01", "02", "13"]).sum("emp", rw.Gaussian(sigma=10))
    with session(rows, ledger=tmp_path / "ledger") as opened:
        made = opened.run(asked(rw.Gaussian(sigma=10)), by_state, rng=Seeded(4)).consistent(method="ols")
    tables = {table.name: table for table in made.tables}
    whole = cells(tables["q2_state"], "sum_emp_fit")["01",]
    listed = sum(cells(tables["industry_state_by_sector"], "employees_fit")["01", sector] for sector in ("11", "31-33"))
    assert whole - listed == pytest.approx(10**6, abs=300)


def test_a_list_of_some_counties_leaves_a_remainder(tmp_path):
    listed = {"county": ["01001", "02013", "02"]}
    levels = rw.query().levels("state", "county", keys=listed).sum("emp", rw.Gaussian(sigma=1))
    with session(ROWS, ledger=tmp_path / "ledger") as opened:
        made = opened.run(levels, rng=Seeded(2)).consistent(method="ols")
    states, counties = (cells(table, "sum_emp_fit") for table in made.tables)
    assert states["02",] == pytest.approx(counties["02013",] + counties["02",], abs=1e-6)
    assert states["01",] - counties["01001",] == pytest.approx(exact(("county",))["0103",], abs=20)


@pytest.mark.costly
def test_basic_tables_of_all_queries_add_up_exactly(release):
    made = release.basic()
    tables = {table.name: table for table in made.basic_tables}
    finest = cells(tables["industry_county_by_naics_basic"], "employees")
    for name, table in tables.items():
        column = "sum_emp" if name.startswith("all") else "employees"
        for cell, value in cells(table, column).items():
            assert value == sum_below(finest, table.keys, cell)


@pytest.mark.costly
def test_a_release_says_which_lists_it_is_by_and_is_fitted_again_from_its_files(release, tmp_path):
    release.save(tmp_path / "out")
    described = json.loads((tmp_path / "out" / "release.json").read_text())
    place, industry = described["hierarchies"]
    assert (place["name"], place["source"], place["digest"]) == ("place", "public: a list of places", places().digest)
    assert place["not_nested"] == [["region", "state"]]
    assert industry["list"]["naics"]["values"] == sorted(SECTORS)
    page = (tmp_path / "out" / "report.html").read_text()
    assert places().digest in page
    assert "public: a list of industries" in page
    loaded = rw.read(tmp_path / "out")
    again, now = loaded.consistent(method="ols"), release.consistent(method="ols")
    for one, two in zip(again.tables, now.tables):
        for name in two.data.column_names:
            assert one.data.column(name).to_pylist() == two.data.column(name).to_pylist()


def test_titles_of_levels_are_labels(release):
    (table,) = [each for each in release.content().tables if each.name == "all_state_by_total"]
    assert table.columns[0].title == "State"


def test_a_list_that_is_not_public_needs_a_reason(tmp_path):
    private = places(source="made from last year's records")
    by_nation = rw.query().group_by("nation", keys=["US"]).count(rw.Gaussian(rho=1))
    with session(ROWS, hierarchies=[private], ledger=tmp_path / "a") as opened:
        with pytest.raises(TuningError, match="source of the hierarchy 'place' does not begin with 'public'"):
            opened.run(by_nation)
        assert not opened.spent().rho
    with session(ROWS, hierarchies=[private], ledger=tmp_path / "b", tuning_reason="only the list") as opened:
        assert opened.run(by_nation).to_json()["accept_tuning"] == "only the list"


def test_a_code_that_moves_to_another_region_is_charged_in_both(tmp_path):
    """A ledger that named regions would let a moved county pay for one of two releases."""
    moved = {"region": ["West", "South"], "county": ["01001", "0103"]}
    later = rw.Hierarchy.of("place", moved, levels=["region", "county"], source="public: a later list")
    noise = rw.Gaussian(rho=1)
    for listed, region in ((places(), "South"), (later, "West")):
        with session(ROWS, hierarchies=[listed], ledger=tmp_path / "ledger") as opened:
            opened.run(rw.query().where(f"region = '{region}'").count(noise))
            spent = opened.spent()
    assert spent.loss({"county": "01001"}) == 2
    assert spent.loss({"county": "0103"}) == 0


def test_units_of_a_firm_in_one_state_share_a_cell():
    with session(ROWS) as opened, pytest.warns(UnkeptLedgerWarning):
        made = opened.run(
            rw.query().group_by("state", keys=["01", "02", "13"]).count(rw.Gaussian(rho=1)), rng=Seeded(1)
        )
    units = {"county": ["01001", "0103", "02013"]}
    assert made.firms.loss(units).rho == pytest.approx(9, rel=1e-9)
    assert made.firms.loss(units | {"state": ["01", "01", "02"]}).rho == pytest.approx(5, rel=1e-9)
