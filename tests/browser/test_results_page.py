"""The results on the page in a real browser: sums of cells equal to the reader's, ranked cells, and a map of states."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from browser.kept_pictures import ARTEFACTS
from build import employers
from recordwise.noise import Seeded
from recordwise.reader import ReaderRelease
from recordwise.release.content import unimodal_reach

STATES = {"01": "Alabama", "02": "Alaska", "04": "Arizona", "05": "Arkansas", "06": "California", "08": "Colorado"}
STATES |= {"09": "Connecticut", "10": "Delaware", "12": "Florida"}
COUNTIES = {state: [f"{state}00{number}" for number in (1, 3, 5, 7)] for state in STATES}
SECTORS = {"11": "Farming", "31-33": "Manufacturing"}


def made(folder: Path) -> rw.Release:
    """A tree of places, and places crossed with sectors."""
    (folder / "places.csv").write_text(
        "state,county,name,short\n"
        + "".join(f"{s},{c},{c} County,{name}\n" for s, name in STATES.items() for c in COUNTIES[s])
    )
    told: dict[str, Any] = {
        "levels": ["nation", "state", "county"],
        "totals": {"nation": "US"},
        "source": "public: a list",
    }
    place = rw.Hierarchy.of("place", folder / "places.csv", labels={"county": "name", "state": "short"}, **told)
    chance, rows = np.random.default_rng(5), 3000
    emp = np.floor(chance.pareto(1.2, rows) * 40 + 1).astype(np.int64)
    counties = [county for each in COUNTIES.values() for county in each]
    columns: dict[str, Any] = {"county": chance.choice(counties, rows), "sector": chance.choice(list(SECTORS), rows)}
    table = pa.table({"id": np.arange(rows), **columns, "emp": emp})
    labels = {f"sector={code}": name for code, name in SECTORS.items()} | {"emp": "Employment"}
    words = rw.Labels(labels=labels, units={"emp": "employees"})
    tree = rw.query().named("tree").levels("nation", "state", "county", share=["1/10", "1/5", "7/10"])
    tree = tree.at(place.keys("county")).sum("emp", rw.Gaussian(sigma=9)).count(rw.Gaussian(sigma=2))
    tree = tree.sum("emp", rw.GeneralizedGaussian(shape=1, scale=8), alias="laplace")
    (folder / "sectors.csv").write_text("sector\n" + "".join(f"{sector}\n" for sector in SECTORS))
    totals: dict[str, Any] = {"levels": ["all", "sector"], "totals": {"all": "00"}, "source": "public: a list"}
    industry = rw.Hierarchy.of("industry", folder / "sectors.csv", **totals)
    crossed = rw.query().named("crossed").levels("state", "county").levels("all", "sector")
    keys = rw.Keys.crossed(place.keys("county"), industry.keys("sector"))
    crossed = crossed.at(keys).sum("emp", rw.Gaussian(sigma=9), alias="both")
    with employers(table, words=words, hierarchies=[place, industry], dataset="places") as session:
        return session.run([tree, crossed], rng=Seeded(8))


@pytest.fixture(scope="module")
def opened(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("results")
    release = made(folder)
    release.save(folder / "out")
    page = chromium.new_context(viewport={"width": 1280, "height": 900}).new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto((folder / "out" / "report.html").as_uri())
    page.evaluate("window.recordwise.ready")
    yield page, release
    assert problems == []
    page.context.close()


WHERE = "data.fields.findIndex(field => field.name === 'county')"
SUM = """([name, query, where]) => {
  const sets = Object.fromEntries(Object.entries(where).map(([key, codes]) => [key, new Set(codes)]));
  const {value, sd, low, high, exact, better} = window.recordwise.sumOf(name, query, sets);
  return [value, sd, low, high, exact, better];
}"""


@pytest.mark.theorem("T-ASK")
@pytest.mark.parametrize(
    "where",
    [
        {"county": ["01001", "01003", "02001"]},
        {"county": COUNTIES["01"]},
        {"county": [county for state in ("01", "02") for county in COUNTIES[state]][:7]},
        {"state": ["01", "04", "12"]},
        {"county": [county for each in COUNTIES.values() for county in each][:-1]},
        {},
    ],
)
def test_sums_in_a_tree_are_those_of_the_reader(where: dict[str, list[str]], opened: Any) -> None:
    page, release = opened
    reader = ReaderRelease.of(release)
    for name in ("sum_emp", "count"):
        *found, exact, better = page.evaluate(SUM, [name, 0, where])
        asked = reader.total(name, where)
        # The page has six digits of each number.
        np.testing.assert_allclose(
            found, [asked.value, asked.sd, asked.low, asked.high], rtol=3e-5, atol=asked.sd / 1000
        )
        assert exact
        assert better


@pytest.mark.theorem("T-ASK")
def test_codes_with_a_single_code_below_them_have_its_sum(chromium: Any, tmp_path: Path) -> None:
    """Two nations, of which one has one state of one county."""
    tree = {"01": ["01001", "01003"], "11": ["11001"], "72": ["72001"]}
    nations = {"01": "US", "11": "US", "72": "PR"}
    lines = [f"{nations[state]},{state},{county}\n" for state, each in tree.items() for county in each]
    (tmp_path / "places.csv").write_text("nation,state,county\n" + "".join(lines))
    place = rw.Hierarchy.of("place", tmp_path / "places.csv", levels=["nation", "state", "county"], source="public: it")
    counties = [county for each in tree.values() for county in each]
    records = pa.table({"id": np.arange(40), "county": counties * 10, "emp": np.arange(40) * 7 % 31})
    asked = rw.query().levels("nation", "state", "county").at(place.keys("county")).sum("emp", rw.Gaussian(sigma=9))
    with employers(records, hierarchies=[place], dataset="places") as session:
        release = session.run([asked], rng=Seeded(3))
    release.save(tmp_path / "out")
    page, reader = chromium.new_context().new_page(), ReaderRelease.of(release)
    page.goto((tmp_path / "out" / "report.html").as_uri())
    page.evaluate("window.recordwise.ready")
    wheres: list[dict[str, list[str]]] = [{}, {"nation": ["US"]}, {"nation": ["PR"]}]
    wheres += [{"state": [state]} for state in tree] + [{"county": [county]} for county in counties]
    for where in wheres:
        *found, _, _ = page.evaluate(SUM, ["sum_emp", 0, where])
        own = reader.total("sum_emp", where)
        np.testing.assert_allclose(found, [own.value, own.sd, own.low, own.high], rtol=3e-5, atol=own.sd / 1000)
    page.context.close()


@pytest.mark.theorem("T-UNIMODAL")
def test_sums_of_noise_that_is_not_normal_hold_at_least_as_often(opened: Any) -> None:
    page, release = opened
    where = {"county": ["01001", "01003", "02001"]}
    value, sd, low, high, exact, _ = page.evaluate(SUM, ["laplace", 0, where])
    asked = ReaderRelease.of(release).total("laplace", where)
    assert exact
    assert (value, sd) == pytest.approx((asked.value, asked.sd), rel=3e-5)
    reach = unimodal_reach(0.95, 2 / 1414) * asked.sd
    assert (high - value, value - low) == pytest.approx((reach, reach), rel=1e-4)
    assert low < asked.low
    assert asked.high < high
    page.select_option("#area-of", index=2)
    assert page.inner_text("#area-told").startswith("Employment, laplace (employees): ")
    assert "holds in at least 95% of cases" in page.inner_text("#area-how")
    page.select_option("#area-of", index=0)
    assert "holds in at least" not in page.inner_text("#area-how")


def test_sums_of_tables_that_cross_are_those_of_one_table(opened: Any) -> None:
    page, release = opened
    where = {"county": ["01001", "02003"], "sector": ["31-33"]}
    *found, exact, _ = page.evaluate(SUM, ["both", 1, where])
    rows = release["crossed_county_by_sector"].to_pandas()
    own = rows[rows["county"].isin(where["county"]) & rows["sector"].isin(where["sector"])]
    assert found[0] == pytest.approx(own["both"].sum(), rel=1e-5)
    assert found[1] == pytest.approx(np.sqrt((own["both_sd"] ** 2).sum()), rel=1e-5)
    assert not exact


def test_columns_that_no_table_has_together_are_named(opened: Any) -> None:
    page, _ = opened
    where = "Object.fromEntries(columns.map(each => [each, new Set()]))"
    asked = f"([name, query, columns]) => window.recordwise.sumOf(name, query, {where}).problem"
    told = page.evaluate(asked, ["both", 1, ["state", "county", "sector"]])
    assert told == (
        "No single table has all of these columns. One has them without state, or without county: remove those codes."
    )
    nothing = page.evaluate(asked, ["sum_emp", 0, ["nation", "state", "county"]])
    assert nothing == "No single table has all of these columns."


def test_where_keys_are_complete_the_most_accurate_of_the_tables_that_cross_is_added_up(
    chromium: Any, tmp_path: Path
) -> None:
    release = made(tmp_path).consistent(method="ols", complete=True)
    release.save(tmp_path / "out")
    page = chromium.new_context().new_page()
    page.goto((tmp_path / "out" / "report.html").as_uri())
    page.evaluate("window.recordwise.ready")
    value, sd, *_ = page.evaluate(SUM, ["both", 1, {}])
    tables = [each.data.to_pandas() for each in release.tables if each.name.startswith("crossed")]
    errors = [float(np.sqrt((rows["both_sd"] ** 2).sum())) for rows in tables]
    best = int(np.argmin(errors))
    assert min(errors) < 0.9 * max(errors)
    assert sd == pytest.approx(errors[best], rel=1e-4)
    assert value == pytest.approx(tables[best]["both"].sum(), rel=1e-4)
    two = "window.recordwise.sumOf('both', 1, {county: new Set(['01001', '02003']), sector: new Set(['11'])}).fits"
    cells = release["crossed_county_by_sector"].to_pandas()
    asked = cells[cells["county"].isin(["01001", "02003"]) & (cells["sector"] == "11")]
    assert page.evaluate(two) == pytest.approx(asked["both_fit"].sum(), rel=1e-4)
    page.select_option("#area-of", label=page.eval_on_selector_all("#area-of option", "all => all.at(-1).textContent"))
    for label, codes in (("county", "01001 02003"), ("sector", "11")):
        field = page.get_by_label(label, exact=True).first
        field.fill(codes)
        field.press("Enter")
    assert "from numbers that were made to add up." in page.inner_text("#area-told")
    told = page.inner_text("#area-how")
    assert told.startswith("recordwise ask FOLDER both --where")
    assert '--where "county=01001,02003" tells how exact it is. As drawn, one table alone gives' in told
    page.context.close()


def test_codes_are_chosen_by_name_and_told_in_a_sentence(opened: Any) -> None:
    page, release = opened
    field = page.get_by_label("county", exact=True).first
    field.fill("01001 county")
    field.press("Enter")
    field.fill("02001, 02003 99999")
    field.press("Enter")
    assert page.locator(".chip").all_inner_texts() == [
        "01001 01001 County ×",
        "02001 02001 County ×",
        "02003 02003 County ×",
    ]
    assert "Not found: 99999" in page.inner_text("#area-columns")
    field.fill("9")
    field.fill("")
    assert "Not found" not in page.inner_text("#area-columns")
    asked = ReaderRelease.of(release).total("sum_emp", {"county": ["01001", "02001", "02003"]})
    told = page.inner_text("#area-told")
    assert told.startswith(f"Employment, sum_emp (employees): {asked.value:,.0f}, with a standard error of ")
    assert "recordwise ask gives the same" in page.inner_text("#area-how")
    page.locator(".chip").first.click()
    assert page.locator(".chip").count() == 2
    assert page.inner_text("#area-told") != told
    page.screenshot(path=ARTEFACTS / "results-light.png", full_page=True)


def test_an_establishments_codes_are_understood_by_name_and_unlisted_ones_told(opened: Any, visit: Any) -> None:
    page, _ = opened
    told = "text => window.recordwise.listedAs('county', text)"
    for text in ("01001", "01001 county", "01001 01001 COUNTY"):
        assert page.evaluate(told, text) == ["01001", True]
    for text, known in (("County", False), ("99", False), ("01001 Coun", False), ("010017", True), ("", True)):
        assert page.evaluate(told, text) == [text, known]
    # One name of two codes stands for none.
    named = {"size": 2, "all": 2, "texts": [True], "names": ["place"], "keys": ["place"]}
    double = "named => { named.labels = [new Map([['1', 'Troy'], ['2', 'Troy']])]; named.columns = [row => ['1', '2'][row]]; "
    double += "window.recordwise.tables.push(named); const found = window.recordwise.listedAs('place', 'Troy'); "
    assert page.evaluate(double + "window.recordwise.tables.pop(); return found; }", named) == ["Troy", False]
    sized = visit("sized")
    sized.evaluate("window.recordwise.ready")
    field, hint = (sized.locator(f"#q{sized.evaluate(WHERE)}{end}") for end in ("", "-hint"))
    usual = hint.inner_text()
    field.fill("99")
    assert hint.inner_text() == "Not a published code: 99. The loss shown is that of a code that is not listed."
    assert field.get_attribute("aria-invalid") is None
    field.fill("01")
    assert hint.inner_text() == usual


def test_the_largest_cells_are_ranked_with_their_reliability(opened: Any) -> None:
    page, release = opened
    listed = page.locator("#rank-table option").all_inner_texts()
    assert page.locator("#rank-table option:checked").inner_text() == next(each for each in listed if "state" in each)
    table = release["tree_state"].to_pandas().sort_values("sum_emp", ascending=False)
    cells = page.locator("#ranking tbody th").all_inner_texts()
    assert cells == [STATES[state] for state in table["state"]]
    values = [float(text.replace(",", "")) for text in page.locator("#ranking tbody td:nth-child(3)").all_inner_texts()]
    assert values == pytest.approx(table["sum_emp"].to_list(), rel=1e-5)
    assert page.locator("#ranking svg").count() == len(STATES)
    assert "Of 9 cells: " in page.inner_text("#rank-told")
    page.fill("#rank-find", "ala")
    assert page.locator("#ranking tbody th").all_inner_texts() == [cell for cell in cells if "Ala" in cell]
    page.fill("#rank-find", "")


def test_headlines_and_tiles_show_the_total_and_the_states(opened: Any) -> None:
    page, release = opened
    reader, shown = ReaderRelease.of(release), page.inner_text(".headlines")
    for name in ("sum_emp", "count"):
        asked = reader.total(name)
        assert f"{asked.value:,.0f}" in shown
        assert f"{asked.low:,.0f} to {asked.high:,.0f}" in shown
    assert page.locator("#map .tile").count() == len(STATES)
    assert "CA" in page.locator("#map").text_content()
