"""Plans with hierarchies on the command line: checked with their lists, released by level, exported, and problems told."""

import json

import pyarrow.parquet as pq
import pytest

HIERARCHIES = """
[hierarchies.place]
file = "places.csv"
levels = ["nation", "area", "county"]
totals = { nation = "US" }
titles = { area = "Area" }
source = "public: a list of counties"

[keys.all_places]
product = { place = "county" }

[[queries]]
name = "places"
levels = [{ by = ["nation", "area", "county"], share = [0.2, 0.3, 0.5] }]
keys = "all_places"
count = { kind = "Gaussian", rho = 0.1 }

[outputs]
formats = ["parquet", "csv", "xlsx"]
tables = ["research", "basic"]
"""
CODES = "area,county\nwest,06037\nmiddle,17031\nmiddle,17043\n"


@pytest.fixture
def listed(folder):
    (folder / "places.csv").write_text(CODES)
    with (folder / "plan.toml").open("a") as plan:
        plan.write(HIERARCHIES)
    return folder


@pytest.mark.costly
def test_a_check_names_the_lists_with_their_source_and_digest(listed, run, run_json):
    told = " ".join(run("check", listed / "plan.toml").stdout.split())
    assert "The hierarchy place: 3 codes in the levels nation, area, county; source: public: a list of counties" in told
    (found,) = run_json("check", listed / "plan.toml")["hierarchies"]
    assert found["digest"] in told.replace(" ", "")
    assert found["levels"] == ["nation", "area", "county"]


@pytest.mark.costly
def test_a_release_has_every_level_and_its_basic_tables_add_up(listed, run):
    assert run("release", listed / "plan.toml", "--out", listed / "out", "--yes").exit_code == 0
    tables = {
        name: pq.read_table(listed / "out" / f"places_{name}_basic.parquet") for name in ("nation", "area", "county")
    }
    counts = {
        name: dict(zip(*(table.column(each).to_pylist() for each in (name, "count")))) for name, table in tables.items()
    }
    assert counts["area"]["middle"] == counts["county"]["17031"] + counts["county"]["17043"]
    assert counts["nation"]["US"] == sum(counts["county"].values())
    assert (
        json.loads((listed / "out" / "release.json").read_text())["hierarchies"][0]["source"]
        == "public: a list of counties"
    )
    package = json.loads((listed / "out" / "datapackage.json").read_text())
    told = {field["name"]: field["description"] for each in package["resources"] for field in each["schema"]["fields"]}
    assert "a level of the list 'place'" in told["area"]
    assert "the records counted in it have this value" in told["county"]
    result = run("export", listed / "out", "--format", "xlsx", "--out", listed / "all.xlsx")
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        (None, "the file places.csv does not exist"),
        (CODES + "west,17031\n", "lists 1 code with different values, such as '17031'"),
        (CODES + ",55001\n", "has no 'area' in 1 of its rows"),
        ("region,county\nwest,06037\n", "has no column 'area'"),
    ],
)
def test_what_is_wrong_with_a_list_is_told_before_anything_is_read(listed, run, codes, words):
    (listed / "places.csv").unlink()
    if codes is not None:
        (listed / "places.csv").write_text(codes)
    result = run("release", listed / "plan.toml", "--out", listed / "out", "--yes")
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert "hierarchies.place" in result.stderr
    assert not (listed / "small.ledger").exists()


@pytest.mark.costly
def test_a_firm_is_counted_by_the_levels_of_its_codes(listed, run, run_json, tmp_path):
    assert run("release", listed / "plan.toml", "--out", listed / "out", "--yes").exit_code == 0
    measured = "emp,payann,naics"
    units = {"06037": "9,90,441110", "17031": "8,80,441120", "99999": "7,70,722511"}
    plain, given, elsewhere = (tmp_path / name for name in ("plain.csv", "given.csv", "elsewhere.json"))
    plain.write_text(f"county,{measured}\n" + "".join(f"{code},{rest}\n" for code, rest in units.items()))
    above = {"06037": "US,west", "17031": "US,middle", "99999": "none,none"}
    lines = "".join(f"{code},{above[code]},{rest}\n" for code, rest in units.items())
    given.write_text(f"county,nation,area,{measured}\n{lines}")
    elsewhere.write_bytes((listed / "out" / "policy.json").read_bytes())
    derived = run_json("loss", listed / "out" / "policy.json", "--firm", plain)["loss"]
    assert derived == run_json("loss", elsewhere, "--firm", given)["loss"]
    assert derived < run_json("loss", elsewhere, "--firm", plain)["loss"]
    (listed / "out" / "policy.json").write_text((listed / "out" / "policy.json").read_text() + "\n")
    assert derived < run_json("loss", listed / "out" / "policy.json", "--firm", plain)["loss"]
