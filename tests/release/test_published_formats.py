"""Every output format, read back by a reader that is not ours: values equal, codes text, labels there, digests in release.json."""

import hashlib
import json
import math
import shutil
import tracemalloc
import zipfile
from dataclasses import replace

import numpy as np
import openpyxl
import pandas
import pyarrow as pa
import pyreadstat
import pytest

import recordwise as rw
from build import generous, records, session
from recordwise.errors import OutputError, ParameterError
from recordwise.noise import Seeded
from recordwise.release.content import content_of
from recordwise.release.dictionary import relative_error
from recordwise.release.formats import known_formats, xlsx
from recordwise.release.formats.csv import meaningful, round_digits
from recordwise.release.formats.statistical import short_names
from recordwise.release.published import Published
from recordwise.release.tables import NOT_PRIVATE, PRIVATE, ReleasedTable
from recordwise.release.verify import verify

ALL = ("parquet", "csv", "xlsx", "sas", "sas8", "stata", "sdmx-csv", "cbp")
PLACES = rw.Keys.product(county=["01001", "02003"], naics=["111", "112", "221"])


def places() -> pa.Table:
    """Establishments with full county codes."""
    table = records()
    county = pa.array([{"01": "01001", "02": "02003", "03": "09009"}[each] for each in table["county"].to_pylist()])
    return table.set_column(table.column_names.index("county"), "county", county)


def asked(name: str = "county_industry") -> rw.Query:
    by = rw.query().named(name, title="Employment").group_by("county", "naics", keys=PLACES)
    by = by.count(rw.Gaussian(rho="0.1"), alias="est").sum("emp", rw.UnitSplit(at=50, rho="0.1"), alias="emp")
    return by.sum("pay", rw.LogTransform(offset=1000, sigma="0.2"), alias="ap")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    place = tmp_path_factory.mktemp("formats")
    words = rw.Labels(labels={"county": "county of =work"}, units={"emp": "employees"})
    with session(places(), ledger=place / "l.ledger", budget=generous(), words=words, max_outside="accept") as opened:
        release = opened.run(asked())
    return place / "l.ledger", release, release.save(place / "out", formats=ALL)


def table_of(release: rw.Release) -> pandas.DataFrame:
    (table,) = release.tables
    return meaningful(table, table.data).to_pandas()


@pytest.mark.costly
def test_every_file_is_listed_with_its_digest_and_a_changed_one_is_found(saved, tmp_path) -> None:
    ledger, _, folder = saved
    listed = json.loads((folder / "release.json").read_text())["sha256"]
    assert set(listed) == {path.name for path in folder.iterdir()} - {"release.json"}
    for name, stated in listed.items():
        assert stated == hashlib.sha256((folder / name).read_bytes()).hexdigest()
    assert verify(ledger, against=[folder]) == []
    copy = shutil.copytree(folder, tmp_path / "copy")
    page = copy / "report.html"
    page.write_text(page.read_text().replace("Noise was added", "No noise was added"))
    assert verify(ledger, against=[copy]) == [f"{copy}: report.html is not the file that was saved"]
    page.unlink()
    assert verify(ledger, against=[copy]) == [f"{copy}: report.html is missing"]


@pytest.mark.parametrize("name", [each for each in ALL if each != "parquet"])
def test_a_file_of_another_table_is_found_by_verify(name, saved, tmp_path) -> None:
    ledger, release, folder = saved
    kind, copy = known_formats()[name], shutil.copytree(folder, tmp_path / "copy")
    file = copy / f"{'small' if kind.whole else 'county_industry'}.{kind.extension}"
    file.unlink()
    (table,) = release.tables
    last = table.data.column_names.index("emp")
    other = table.data.set_column(last, "emp", pa.array(np.asarray(table.data["emp"]) + 1000))
    content = replace(release, tables=(replace(table, data=other),)).content()
    kind.write(content, file)
    assert f"{copy}: {file.name} differs from the Parquet file next to it" in verify(ledger, against=[copy])


def test_csv_has_the_digits_that_mean_something_and_codes_as_text(saved) -> None:
    _, release, folder = saved
    found = pandas.read_csv(folder / "county_industry.csv", dtype={"county": str, "naics": str})
    pandas.testing.assert_frame_equal(found, table_of(release), check_dtype=False)
    text = (folder / "county_industry.csv").read_text().splitlines()[1]
    assert max(len(number) for number in text.split(",")) <= 12
    exact = release.table.to_pandas()
    assert (found["ap_low"] <= exact["ap_low"]).all()
    assert (found["ap_high"] >= exact["ap_high"]).all()
    assert (abs(found["ap"] - exact["ap"]) <= exact["ap_sd"] / 100).all()


@pytest.mark.parametrize(
    "value, size, digits, direction, wanted",
    [
        (23086.999999999978, 12.3, 2, np.ceil, 23087.0),
        (23086.123456, 12.3, 2, np.floor, 23086.1),
        (-0.123456, 0.0456, 2, np.rint, -0.1235),
        (123456.7, 45678.0, 2, np.rint, 123457.0),
        (1e300, 1.0, 2, np.rint, 1e300),
        (5.0, 0.0, 2, np.rint, 5.0),
    ],
)
def test_a_number_is_rounded_by_the_size_of_its_error(value, size, digits, direction, wanted) -> None:
    assert round_digits(np.array([value]), np.array([size]), digits, direction)[0] == wanted


def test_a_workbook_has_its_sheets_tables_and_text(saved) -> None:
    _, release, folder = saved
    book = openpyxl.load_workbook(folder / "small.xlsx")
    assert book.sheetnames == ["Cover", "Contents", "Notes", "Dictionary", "county_industry", xlsx.AREA]
    sheet = book["county_industry"]
    assert list(sheet.tables) == ["rw_county_industry"]
    assert sheet.tables["rw_county_industry"].ref == sheet.dimensions.replace("A1:", "A4:")
    assert sheet.merged_cells.ranges == set()
    rows = list(sheet.iter_rows(min_row=4, values_only=True))
    wanted = table_of(release)
    assert rows[0][:3] == ("county of =work", "naics", "est")
    assert "emp, standard deviation of the noise (employees)" in rows[0]
    assert len(rows[0]) == len(wanted.columns)
    for row, expected in zip(rows[1:], wanted.itertuples(index=False), strict=True):
        assert all(each == other or (each is None and math.isnan(other)) for each, other in zip(row, expected))
    assert isinstance(rows[1][0], str)
    assert {cell.data_type for row in book["Dictionary"].iter_rows() for cell in row if cell.value is not None} == {"s"}
    assert any("county of =work" in str(cell.value) for row in book["Dictionary"].iter_rows() for cell in row)


def test_a_table_of_more_rows_than_a_sheet_holds_is_split(saved, tmp_path, monkeypatch) -> None:
    _, release, _ = saved
    monkeypatch.setattr(xlsx, "MOST_ROWS", xlsx.ABOVE + 1 + 4)
    file = release.export(tmp_path / "split.xlsx", format="xlsx")
    book = openpyxl.load_workbook(file)
    assert book.sheetnames[4:-1] == ["county_industry", "county_industry_2"]
    assert [book[name].max_row - xlsx.ABOVE - 1 for name in book.sheetnames[4:-1]] == [4, 2]
    assert known_formats()["xlsx"].same(release.content(), file)


@pytest.mark.parametrize("name, read", [("sas", "xport"), ("sas8", "xport"), ("stata", "dta")])
def test_statistical_packages_read_the_values_and_the_labels(name, read, saved) -> None:
    _, release, folder = saved
    kind = known_formats()[name]
    found, about = getattr(pyreadstat, f"read_{read}")(str(folder / f"county_industry.{kind.extension}"))
    exact = release.table.to_pandas()
    assert list(found.columns) == short_names(list(exact.columns), 8 if name == "sas" else 32)
    for column, own in zip(found.columns, exact.columns):
        assert (found[column] == exact[own]).all()
    assert found.iloc[0, 0] == "01001"
    assert about.column_labels[0] == "county of =work"


def test_names_for_sas_are_short_and_different() -> None:
    assert short_names(["sum_payann", "sum_payann_sd", "2x", "a-b"], 8) == ["sum_paya", "sum_pay2", "_2x", "a_b"]


def test_sdmx_has_an_observation_on_each_line_with_both_statuses(saved) -> None:
    _, release, folder = saved
    found = pandas.read_csv(folder / "county_industry.sdmx.csv", dtype=str)
    assert list(found.columns)[:3] == ["STRUCTURE", "STRUCTURE_ID", "ACTION"]
    assert set(found["STRUCTURE_ID"]) == {"RECORDWISE:COUNTY_INDUSTRY(1.0)"}
    assert set(found["CONF_STATUS"]) == {"F"}
    assert {"STATUS", "UNIT_MEASURE", "SD"} <= set(found.columns)
    wanted, exact = table_of(release), release.table.to_pandas()
    for name in ("est", "emp", "ap"):
        part = found[found["INDICATOR"] == name.upper()].reset_index()
        assert part["OBS_VALUE"].astype(float).tolist() == wanted[name].astype(float).tolist()
        assert part["COUNTY"].tolist() == exact["county"].tolist()
        errors = relative_error(exact[name].to_numpy(), exact[f"{name}_sd"].to_numpy())
        assert part["OBS_STATUS"].tolist() == ["A" if each <= 0.165 else "U" for each in errors]


def test_the_layout_of_county_business_patterns(saved) -> None:
    _, release, folder = saved
    found = pandas.read_csv(folder / "county_industry.cbp.csv", dtype={"FIPSTATE": str, "FIPSCTY": str})
    assert list(found.columns) == [
        *("FIPSTATE", "FIPSCTY", "NAICS", "EMP_NF", "EMP", "QP1_NF", "QP1", "AP_NF", "AP", "EST"),
    ]
    exact = release.table.to_pandas()
    assert (found["FIPSTATE"] + found["FIPSCTY"]).tolist() == exact["county"].tolist()
    assert found["NAICS"].tolist() == [f"{code}///" for code in exact["naics"]]
    assert found["EMP"].tolist() == exact["emp"].round().astype(int).tolist()
    assert found["EST"].tolist() == exact["est"].tolist()
    errors = relative_error(exact["emp"].to_numpy(), exact["emp_sd"].to_numpy())
    assert found["EMP_NF"].tolist() == ["G" if e <= 0.165 else "J" if e <= 0.333 else "S" for e in errors]


@pytest.mark.parametrize(
    "place, codes",
    [
        ({"nation": "US", "total": "00"}, ("00", "000", "------")),
        ({"state": "01", "sector": "31-33"}, ("01", "000", "31----")),
        ({"county": "01001", "naics3": "113"}, ("01", "001", "113///")),
    ],
)
def test_levels_of_hierarchies_have_their_codes_in_that_layout(place, codes, tmp_path) -> None:
    data = pa.table({name: [value] for name, value in place.items()} | {"emp": [7], "emp_sd": [1.0]})
    table = ReleasedTable(name="t", keys=tuple(place), variables=("emp",), data=data)
    content = content_of(Published({"dataset": "d"}), [table], rw.Labels(), privacy_label=PRIVATE)
    kind = known_formats()["cbp"]
    assert kind.problem(content) is None
    kind.write(content, tmp_path / "t.csv")
    found = pandas.read_csv(tmp_path / "t.csv", dtype=str)
    assert tuple(found.iloc[0, :3]) == codes


def test_the_relative_error_does_not_make_a_negative_cell_look_precise() -> None:
    values, sd = np.array([-9.0, 100.0, 10.0, 0.0]), np.array([3.0, 3.0, 10.0, 0.0])
    assert relative_error(values, sd).tolist() == [0.5, 0.03, 0.5, 0.0]
    assert relative_error(values, sd, signed=True).tolist() == [3 / 9, 0.03, 0.5, 0.0]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.costly
def test_a_seeded_release_is_labeled_in_every_format_or_refused(name, tmp_path) -> None:
    with session(places(), budget=generous(), max_outside="accept") as opened:
        release = opened.run(asked(), rng=Seeded(1))
    kind, file = known_formats()[name], tmp_path / f"t.{known_formats()[name].extension}"
    if name in ("sdmx-csv", "cbp"):
        with pytest.raises(ParameterError, match="has no place for the label NOT PRIVATE"):
            release.export(file, format=name)
        assert not file.exists()
    else:
        release.export(file, format=name)
        assert kind.privacy_label(file) == NOT_PRIVATE


@pytest.mark.parametrize("name", ALL)
def test_a_private_file_is_labeled_private(name, saved) -> None:
    _, _, folder = saved
    kind = known_formats()[name]
    stem = "small" if kind.whole else "county_industry"
    assert kind.privacy_label(folder / f"{stem}.{kind.extension}") == PRIVATE


def test_a_fitted_release_is_exported_and_an_existing_file_stays(saved, tmp_path) -> None:
    _, _, folder = saved
    fitted = rw.read(folder).consistent().save(tmp_path / "fitted")
    file = rw.read(fitted).export(tmp_path / "t.csv", format="csv")
    assert "emp_fit" in pandas.read_csv(file).columns
    with pytest.raises(OutputError, match="already exists"):
        rw.read(fitted).export(file, format="csv")
    with pytest.raises(ParameterError, match="is unknown: 'ods'"):
        rw.read(fitted).export(tmp_path / "t.ods", format="ods")


def test_two_equal_workbooks_are_equal_bytes(saved, tmp_path) -> None:
    _, release, folder = saved
    again = release.export(tmp_path / "again.xlsx", format="xlsx")
    assert again.read_bytes() == (folder / "small.xlsx").read_bytes()
    assert zipfile.ZipFile(again).testzip() is None


@pytest.mark.costly
def test_a_workbook_is_written_in_memory_that_hardly_grows_with_its_rows(tmp_path) -> None:
    """A writer that keeps its rows takes hundreds of bytes for each; this one keeps a few pieces of some thousand rows."""
    peaks = []
    for rows in (10, 50_000, 100_000):
        data = pa.table({"code": [f"{each:05}" for each in range(rows)], "n": range(rows), "n_sd": [2.0] * rows})
        table = ReleasedTable(name="t", keys=("code",), variables=("n",), data=data)
        content = content_of(Published({}), [table], rw.Labels(), privacy_label=PRIVATE)
        tracemalloc.start()
        known_formats()["xlsx"].write(content, tmp_path / f"{rows}.xlsx")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # The first workbook also pays for what is imported.
    assert peaks[2] - peaks[1] < 40 * 50_000


def test_a_workbook_holds_text_that_xml_would_read_otherwise_and_leaves_out_what_is_no_number(tmp_path) -> None:
    data = pa.table(
        {
            "code": ["a & <b>", " blank ", None, "", "_x0041_", "tab\tinside"],
            "n": pa.array([1.5, None, float("inf"), -2.0, 1e300, 0.1]),
            "yes": [True, False, None, True, True, False],
        }
    )
    table = ReleasedTable(name="t", keys=("code",), variables=("n",), data=data)
    content = content_of(Published({}), [table], rw.Labels(), privacy_label=PRIVATE)
    known_formats()["xlsx"].write(content, tmp_path / "t.xlsx")
    rows = list(openpyxl.load_workbook(tmp_path / "t.xlsx")["t"].iter_rows(min_row=5, values_only=True))
    assert [row[0] for row in rows] == ["a & <b>", " blank ", None, None, "_x005F_x0041_", "tab\tinside"]
    assert [row[1] for row in rows] == [1.5, None, None, -2.0, 1e300, 0.1]
    assert [row[2] for row in rows] == [True, False, None, True, True, False]
