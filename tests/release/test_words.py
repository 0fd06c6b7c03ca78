"""Names, titles, labels, units and who publishes: in plan files, file names, release.json, the page and the data package."""

import json

import pyarrow as pa
import pytest

import recordwise as rw
from build import employers, generous, keys, question, records, session, write_records
from recordwise.errors import KindError, ParameterError, PlanError
from recordwise.noise import Seeded
from recordwise.plan.file.read import load_plan

ABOUT = {
    "title": "Small business patterns",
    "publisher": "Office of Numbers",
    "contact": "numbers@example.org",
    "period": "2024",
    "license": "CC-BY-4.0",
    "version": "2.1",
    "revision": "County 04 was added.",
    "date": "2026-05-31",
}
PLAN = """
source = "small.parquet"
ledger = "small.ledger"
tuned_on = "synthetic"
max_outside = "accept"

[dataset]
name = "small"
title = "Small business patterns"
publisher = "Office of Numbers"
date = 2026-05-31

[schema]
unit = "id"
measures = { emp = 1, pay = 1 }
columns = { county = "text", naics = "text" }

[labels]
emp = "employment"
county = "county"
"county=01" = "First county"
naics2 = "sector"
n = "establishments"

[units]
emp = "employees"
n = "establishments"

[keys.cells]
rows = { county = ["01", "02"], naics = ["111", "221"] }

[[queries]]
name = "county_industry"
title = "Employment"
group_by = "county"
levels = [{ by = [{ prefix = "naics", length = 2 }, { prefix = "naics", length = 3 }] }]
keys = "cells"
count = { kind = "Gaussian", rho = 0.1, as = "n" }
sum = { emp = { kind = "UnitSplit", at = 50, rho = 0.1 } }

[[queries]]
name = "all"
count = { kind = "Gaussian", rho = 0.1, as = "n" }
"""


@pytest.fixture
def plan(tmp_path):
    write_records(tmp_path / "small.parquet")

    def written(text: str = PLAN):
        (tmp_path / "plan.toml").write_text(text)
        return load_plan(tmp_path / "plan.toml")

    return written


@pytest.mark.costly
def test_the_words_of_a_plan_file_reach_every_file_of_its_release(plan, tmp_path) -> None:
    file = plan()
    assert file.dataset == "small"
    with rw.Session.from_plan(file) as opened:
        release = opened.run(*file.plan.queries)
    assert [table.name for table in release.tables] == [
        *("county_industry_county_by_naics2", "county_industry_county_by_naics3"),
        "all",
    ]
    folder = release.save(tmp_path / "out")
    stated = json.loads((folder / "release.json").read_text())
    assert stated["publication"] == {name: ABOUT[name] for name in ("title", "publisher", "date")}
    assert stated["units"] == {"emp": "employees", "n": "establishments"}
    assert stated["plan"][0]["title"] == "Employment"
    page = (folder / "report.html").read_text()
    for words in ("Small business patterns", "Office of Numbers", "2026-05-31", "Employment, by county and sector"):
        assert words in page
    assert "employment (employees)" in page
    package = json.loads((folder / "datapackage.json").read_text())
    first = package["resources"][0]
    assert (package["title"], first["title"]) == ("Small business patterns", "Employment, by county and sector")
    fields = {each["name"]: each for each in first["schema"]["fields"]}
    assert fields["county"]["type"] == "string"
    assert fields["county"]["value_labels"] == {"01": "First county"}
    assert (fields["sum_emp"]["title"], fields["sum_emp"]["unit"]) == ("employment", "employees")
    assert first["schema"]["primaryKey"] == ["county", "naics2"]
    again = rw.read(folder)
    assert again.words == release.words
    fitted = again.consistent().save(tmp_path / "fitted")
    assert "Office of Numbers" in (fitted / "report.html").read_text()
    kept = json.loads((fitted / "release.json").read_text())
    assert (kept["publication"], kept["units"]) == (stated["publication"], stated["units"])


@pytest.mark.parametrize(
    "old, new, words",
    [
        ('name = "county_industry"', 'name = "../up"', "must be 1 to 60 letters, digits, - or _"),
        ('name = "all"', 'name = "County_Industry"', "two queries have the name 'county_industry'"),
        ("date = 2026-05-31", 'date = "yesterday"', "must be a date such as 2026-05-31"),
        ("date = 2026-05-31", 'publischer = "x"', "did you mean 'publisher'"),
        ('emp = "employees"', 'county = "x"', "which is not a measure or a published name"),
        ('naics2 = "sector"', 'sector = "x"', "which is not a measure, a column or a published name"),
    ],
)
def test_words_that_cannot_be_are_reported_at_their_line(plan, old, new, words) -> None:
    with pytest.raises(rw.errors.PlanFileError) as caught:
        plan(PLAN.replace(old, new))
    assert words in str(caught.value)
    assert "line " in str(caught.value)


def test_a_plan_file_with_names_is_written_and_read_back(plan) -> None:
    from recordwise.plan.file.write import query_form

    forms = [query_form(query, "cells") for query in plan().plan.queries]
    assert [(form.get("name"), form.get("title")) for form in forms] == [
        ("county_industry", "Employment"),
        ("all", None),
    ]


@pytest.mark.costly
def test_a_release_without_a_date_is_dated_when_it_is_made_and_keeps_that_date(tmp_path) -> None:
    with session(records(), budget=generous()) as opened:
        release = opened.run(question(), rng=Seeded(1))
    assert len(release.words.publication.date) == 10
    folder = release.with_labels(publication=rw.Publication(publisher="A", date="2001-02-03")).save(tmp_path / "out")
    assert rw.read(folder).words.publication.to_json() == {"publisher": "A", "date": "2001-02-03"}


def test_two_queries_of_one_name_and_bad_publications_are_refused() -> None:
    asked = rw.query().named("same", title="Same").group_by("county", keys=keys()).count(rw.Gaussian(rho="0.1"))
    with session(records()) as opened, pytest.raises(PlanError, match="two queries have the name 'same'"):
        opened.run(asked, asked)
    with pytest.raises(ParameterError, match="date must be a date"):
        rw.Publication(date="2026-13-01")
    with pytest.raises(ParameterError, match="must be 1 to 60 letters"):
        rw.query().named("a b")


@pytest.mark.costly
def test_two_sums_of_one_measure_are_told_apart_by_their_titles(tmp_path) -> None:
    records = pa.table({"id": [1, 2], "emp": [4, 9]})
    split, slow = rw.UnitSplit(at=50, rho="0.1"), rw.Gaussian(sigma=20)
    with employers(records) as opened:
        release = opened.run(rw.query().sum("emp", split).sum("emp", slow, alias="emp_slow"))
    folder = release.with_labels(labels={"emp": "employees"}).save(tmp_path / "out")
    (table,) = json.loads((folder / "datapackage.json").read_text())["resources"]
    titles = [each["title"] for each in table["schema"]["fields"]]
    assert {"employees, sum_emp", "employees, emp_slow"} <= set(titles)
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize(
    "given, wanted",
    [
        ({"labels": 5}, "labels must be a mapping of names to text, not int"),
        ({"labels": {"emp": 5}}, "labels must be text for each name, not int"),
        ({"units": 5}, "units must be a mapping of names to text, not int"),
        ({"units": {5: "dollars"}}, "units must be text for each name, not int"),
        ({"publication": 5}, "publication must be an rw.Publication, not int"),
        ({"names": "no"}, "names must be True or False, not str"),
    ],
)
def test_words_of_another_kind_are_refused(given, wanted) -> None:
    with employers(pa.table({"id": [1, 2], "emp": [4, 9]})) as opened:
        release = opened.run(rw.query().sum("emp", rw.Gaussian(sigma=20)))
    with pytest.raises(KindError, match=wanted):
        release.with_labels(**given)
