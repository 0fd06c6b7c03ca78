"""Hostile zips, descriptions and arguments of readers: each is refused by name, and nothing is written elsewhere."""

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import recordwise as rw
from build import employers
from recordwise.cli import app
from recordwise.errors import RecordwiseError, SourceError
from recordwise.noise import Seeded

LABEL = '=HYPERLINK("http://example.org","x")'
CODES = ["@SUM(1)", "02"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("hostile") / "out"
    table = pa.table({"id": [1, 2, 3], "county": [*CODES, "02"], "emp": [3, 4, 5]})
    words = rw.Labels(labels={"county": LABEL, "emp": "=1+2", "county=02": LABEL})
    with employers(table, words=words, dataset="small") as session:
        asked = rw.query().group_by("county", keys={"county": CODES}).sum("emp", rw.Gaussian(sigma=3), alias="emp")
        session.run(asked, rng=Seeded(1)).save(place, formats=("parquet", "xlsx"))
    return place


def packed(folder: Path, file: Path, *others: tuple[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(file, "w", how) as made:
        for each in folder.iterdir():
            made.write(each, each.name)
        for name, content in others:
            made.writestr(name, content)
    return file


@pytest.mark.parametrize("name", ["..", "x" * 300])
@pytest.mark.costly
def test_a_zip_with_names_that_no_folder_has_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceError, match="neither a folder nor a zip"):
        rw.read(packed(folder, tmp_path / "a.zip", (name, b"x")))


def test_a_zip_with_a_name_in_no_encoding_is_refused(folder: Path, tmp_path: Path) -> None:
    file = packed(folder, tmp_path / "a.zip", ("\u00e9.txt", b"x"))
    file.write_bytes(file.read_bytes().replace("\u00e9".encode(), b"\xff\xfe"))
    with pytest.raises(SourceError, match="neither a folder nor a zip"):
        rw.read(file)


def test_a_list_whose_codes_lead_nowhere_is_refused_when_it_is_read(tmp_path: Path) -> None:
    places = rw.Hierarchy.of(
        "place", {"state": ["A", "A", "B"], "county": ["01", "02", "03"]}, levels=["state", "county"], source="public"
    )
    rows = {"id": [1, 2], "county": ["01", "03"], "emp": [3, 4]}
    with employers(rows, "county", hierarchies=[places], dataset="small") as session:
        asked = rw.query().group_by("county", keys=["01", "02", "03"]).count(rw.Gaussian(sigma=3))
        session.run(asked, rng=Seeded(1)).save(tmp_path / "out", formats=("parquet",))
    assert rw.read(tmp_path / "out").total("count", {"state": "A"})
    path = tmp_path / "out" / "release.json"
    form = json.loads(path.read_text())
    form["hierarchies"][0]["list"]["state"]["codes"][1] = -1
    path.write_text(json.dumps(form))
    with pytest.raises(SourceError, match="damaged"):
        rw.read(tmp_path / "out")


@pytest.mark.parametrize("how", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_whose_bytes_were_changed_is_refused(folder: Path, tmp_path: Path, how: int) -> None:
    file = packed(folder, tmp_path / "a.zip", how=how)
    entry = zipfile.ZipFile(file).infolist()[0]
    start = entry.header_offset + 30 + len(entry.filename) + 9
    content = bytearray(file.read_bytes())
    content[start : start + 31] = b"\xff" * 31
    file.write_bytes(content)
    with pytest.raises(SourceError, match="neither a folder nor a zip"):
        rw.read(file)


@pytest.mark.costly
def test_a_zip_that_grows_beyond_measure_is_refused_before_it_is_unpacked(folder: Path, tmp_path: Path) -> None:
    file = packed(folder, tmp_path / "a.zip", ("zeros.csv", bytes(100_000_000)))
    assert file.stat().st_size < 500_000
    with pytest.raises(SourceError, match="too large"):
        rw.read(file)


@pytest.mark.parametrize("wrong", ["plan", "tables", "statistics", "name", "measures"])
def test_a_damaged_description_is_refused_when_it_is_read(folder: Path, tmp_path: Path, wrong: str) -> None:
    place = Path(shutil.copytree(folder, tmp_path / "out"))
    form = json.loads((place / "release.json").read_text())
    query = form["plan"][0]
    damaged: dict[str, Any] = {
        "plan": lambda: form.update(plan=["x"]),
        "tables": lambda: query.update(tables=[[]]),
        "statistics": lambda: query.update(statistics=[None]),
        "name": lambda: query["tables"][0].pop("name"),
        "measures": lambda: form["schema"]["measures"][0].pop("name"),
    }
    damaged[wrong]()
    (place / "release.json").write_text(json.dumps(form))
    with pytest.raises(SourceError, match="damaged"):
        rw.read(place)


def test_a_mechanism_that_is_no_table_is_refused_when_it_is_asked_for(folder: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(folder, tmp_path / "out"))
    form = json.loads((place / "release.json").read_text())
    for each in form["plan"][0]["statistics"]:
        each["mechanism"] = "Gaussian"
    (place / "release.json").write_text(json.dumps(form))
    with pytest.raises(RecordwiseError):
        rw.read(place).total(form["plan"][0]["statistics"][0]["name"])


@pytest.mark.parametrize(
    "given",
    [
        {"where": 3},
        {"where": "county = '\ud800'"},
        {"where": {"county": ["\ud800"]}},
        {"confidence": "x"},
        {"confidence": 1 - 1e-16},
        {"regions": 3},
        {"regions": {"county": 3, "region": ["a"]}},
        {"regions": {"county": ["02"], "region": ["\ud800"]}},
        {"regions": {"county": ["02"], "region": ["a"], "share": [[1]]}},
    ],
)
def test_arguments_of_the_wrong_kind_get_our_own_errors(folder: Path, given: dict[str, Any]) -> None:
    with pytest.raises(RecordwiseError, match=r"where|confidence|regions"):
        rw.read(folder).total("emp", **given)


def test_labels_and_codes_are_no_formulas_in_what_readers_print_and_save(folder: Path, tmp_path: Path) -> None:
    printed = CliRunner().invoke(app, ["ask", str(folder), "emp", "--by", "county", "--csv"])
    assert printed.exit_code == 0
    rw.read(folder).total("emp", by="county").replicates(20).save(tmp_path / "emp.csv")
    for text in (printed.output, (tmp_path / "emp.csv").read_text()):
        lines = [line for line in text.splitlines() if not line.startswith("# NOT PRIVATE")]
        assert [line.lstrip('"')[0] for line in lines] == ["l", "'", "'"], text
    assert (tmp_path / "emp.csv").read_text().startswith("# NOT PRIVATE")


def test_labels_are_no_formulas_on_the_sheet_that_adds_up(folder: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.load_workbook(next(folder.glob("*.xlsx")))
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    texts = [cell.value for cell in cells if cell.data_type == "s"]
    assert {LABEL, "=1+2"} <= set(texts)
    assert not [cell for cell in cells if cell.data_type == "f" and cell.value in (LABEL, "=1+2")]
    assert [cell for cell in cells if cell.data_type == "f"]
