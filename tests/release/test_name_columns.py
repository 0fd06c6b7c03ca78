"""Names next to codes in every file: on by default, taken out when a release is read, and checked against its labels."""

import csv
import json
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recordwise as rw
from build import generous, records, session
from recordwise.errors import SourceError
from recordwise.release.files import load_release
from recordwise.release.verify import verify

FORMATS = ("parquet", "csv", "xlsx", "long", "stata", "sas")
LABELS = {
    "county": "County",
    "county=01": "Autauga",
    "county=02": "=Baldwin",
    "naics2=11": "Farming " * 40,
    "emp": "Employment",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    place = tmp_path_factory.mktemp("names")
    words = rw.Labels(labels=LABELS, units={"emp": "employees"})
    listed = rw.Keys.product(county=["01", "02", "03"], naics=["11", "22"])
    with session(records(), ledger=place / "l.ledger", budget=generous(), words=words, max_outside="accept") as opened:
        asked = rw.query().group_by("county", rw.prefix("naics", 2), keys=listed)
        release = opened.run(asked.count(rw.Gaussian(rho="0.1")).sum("emp", rw.UnitSplit(at=50, rho="0.1")))
    return place / "l.ledger", release, release.save(place / "out", formats=FORMATS)


@pytest.mark.costly
def test_each_code_has_its_name_next_to_it_in_every_file(made: Any) -> None:
    ledger, release, folder = made
    (table,) = release.tables
    assert table.data.column_names[:3] == ["county", "naics2", "count"]
    stored = pq.read_table(folder / f"{table.name}.parquet")
    assert stored.column_names[:5] == ["county", "county_name", "naics2", "naics2_name", "count"]
    assert stored.column("county_name").to_pylist() == [
        LABELS.get(f"county={code}") for code in stored.column("county").to_pylist()
    ]
    with (folder / f"{table.name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["county"], row["county_name"]) for row in rows} == {("01", "Autauga"), ("02", "'=Baldwin"), ("03", "")}
    entries = json.loads((folder / "datapackage.json").read_text())["resources"][0]["schema"]["fields"]
    assert [each["name"] for each in entries] == stored.column_names
    assert verify(ledger, against=[folder]) == []


def test_a_release_is_read_without_them_and_saved_with_them_again(made: Any, tmp_path: Path) -> None:
    _, release, folder = made
    loaded = load_release(folder)
    assert loaded.digest == release.digest
    assert loaded.table.equals(release.table)
    again = loaded.save(tmp_path / "again", formats=FORMATS)
    # Files for Stata and SAS carry the time of writing, and release.json their digests.
    for file in (each for each in folder.iterdir() if each.suffix not in (".dta", ".xpt") and each.stem != "release"):
        assert (again / file.name).read_bytes() == file.read_bytes(), file.name
    bare = loaded.with_labels(names=False).save(tmp_path / "bare")
    assert pq.read_schema(next(bare.glob("*.parquet"))).names == release.table.column_names
    assert load_release(bare).words.names is False
    assert "name_columns" not in json.loads((bare / "release.json").read_text())


def test_another_name_is_found(made: Any, tmp_path: Path) -> None:
    _, release, _ = made
    folder = release.save(tmp_path / "out", formats=["parquet"])
    file = next(folder.glob("*.parquet"))
    stored = pq.read_table(file)
    changed = stored.set_column(1, "county_name", pa.array(["Elsewhere"] * stored.num_rows))
    pq.write_table(changed.replace_schema_metadata(stored.schema.metadata), file)
    with pytest.raises(SourceError, match="names of codes"):
        load_release(folder)


def test_workbooks_have_headings_in_words_and_a_sheet_of_codes(made: Any) -> None:
    _, release, folder = made
    book = openpyxl.load_workbook(next(folder.glob("*.xlsx")))
    head = [cell.value for cell in book[release.tables[0].name][4]]
    assert head[:5] == ["County", "County, name", "naics2", "naics2, name", "count"]
    assert "Employment (employees)" in head
    assert "Employment, standard deviation of the noise (employees)" in head
    codes = [tuple(cell.value for cell in row) for row in book["Codes"].iter_rows(min_row=4)]
    assert codes[:3] == [("Column", "Code", "Name"), ("county", "01", "Autauga"), ("county", "02", "=Baldwin")]
    assert not any("Autauga" in str(cell.value) for row in book["Notes"].iter_rows() for cell in row)
    pairs = {(row[1].value, row[2].value) for row in book["Dictionary"].iter_rows(min_row=5)}
    assert ("Employment, interval from (employees)", "sum_emp_low") in pairs


def test_long_files_have_a_number_on_each_line(made: Any) -> None:
    _, release, folder = made
    with next(folder.glob("*.long.csv")).open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * release.table.num_rows
    assert list(rows[0]) == [
        *("county", "county_name", "naics2", "naics2_name"),
        *("statistic", "title", "unit", "value", "sd", "low", "high", "status"),
    ]
    wide = {(row["county"], row["naics2"]): row for row in release.table.to_pylist()}
    for row in rows:
        own = wide[row["county"], row["naics2"]]
        assert float(row["value"]) == pytest.approx(own[row["statistic"]], abs=0.01 * own[f"{row['statistic']}_sd"])
        assert row["unit"] == ("employees" if row["statistic"] == "sum_emp" else "")


def test_the_code_of_a_total_has_a_name() -> None:
    codes = {"county": ["01001", "01003"]}
    place = rw.Hierarchy.of("place", codes, levels=["all", "county"], totals={"all": "00"}, source="public: a list")
    assert place.labels == {"all=00": "Total"}
    nation = rw.Hierarchy.of(
        "place", codes, levels=["nation", "county"], totals={"nation": "US"}, source="public: a list"
    )
    assert nation.labels == {}
