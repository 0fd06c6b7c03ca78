"""The sheet on which readers add up cells: recalculated by LibreOffice, against the reader's own totals."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pyarrow as pa
import pytest

import recordwise as rw
from build import employers
from recordwise.noise import Seeded
from recordwise.reader import ReaderRelease
from recordwise.release.content import unimodal_reach
from recordwise.release.formats.xlsx import ALONE, AREA, CHOICE, LARGE, RESULTS

pytestmark = pytest.mark.process
COUNTIES = ["01001", "01003", "01005", "02013", "02016", "34001", "34003"]
CODES = ["311", "312", "321", "441"]


@pytest.fixture(scope="module")
def office() -> str:
    found = shutil.which("soffice")
    if found is None:
        missing = "no LibreOffice on this machine: the formulas of workbooks are NOT tested"
        if os.environ.get("RECORDWISE_REQUIRE_ALL"):
            pytest.fail(f"{missing}, and RECORDWISE_REQUIRE_ALL is set")
        pytest.skip(missing)
    return found


@pytest.fixture(scope="module")
def release() -> rw.Release:
    chance, rows = np.random.default_rng(4), 600
    emp = np.floor(chance.pareto(1.2, rows) * 4 + 1).astype(np.int64)
    columns: dict[str, Any] = {"id": np.arange(rows), "county": chance.choice(COUNTIES, rows)}
    table = pa.table({**columns, "naics": chance.choice(CODES, rows), "emp": emp})
    words = rw.Labels(labels={"emp": 'Employment "all"'}, units={"emp": "employees"})
    keys = rw.Keys.product(county=COUNTIES, naics=CODES)
    asked = rw.query().levels(rw.prefix("county", [2, 5])).levels(rw.prefix("naics", [1, 3]), keys=keys)
    with employers(table, words=words, dataset="small") as session:
        asked = asked.count(rw.Gaussian(sigma=3)).sum("emp", rw.Gaussian(sigma=9), alias="emp")
        asked = asked.sum("emp", rw.GeneralizedGaussian(shape=1, scale=7), alias="laplace")
        return session.run(asked.sum("emp", rw.LogTransform(offset=10, sigma="0.2"), alias="logs"), rng=Seeded(3))


Lines = list[dict[str, str]]


def recalculated(office: str, folder: Path, typed: dict[str, tuple[str, Lines]], file: Path) -> Any:
    """What each copy of a workbook shows after a table was chosen and codes were typed."""
    for name, (table, lines) in typed.items():
        book = openpyxl.load_workbook(file)
        sheet = book[AREA]
        head = next(row for row in sheet.iter_rows() if any(cell.value == "Found" for cell in row))
        columns = {cell.value: cell.column for cell in head}
        sheet.cell(CHOICE + 1, 2).value = table
        for at, line in enumerate(lines, head[0].row + 1):
            for key, code in line.items():
                assert sheet.cell(at, columns[key]).number_format == "@"
                sheet.cell(at, columns[key]).value = code
        book.save(folder / f"{name}.xlsx")
    made = folder / "made"
    profile = f"-env:UserInstallation=file://{folder / 'profile'}"
    told = [office, profile, "--headless", "--convert-to", "xlsx", "--outdir", str(made)]
    files = [str(folder / f"{name}.xlsx") for name in typed]
    subprocess.run([*told, *files], check=True, capture_output=True, timeout=200)
    return {name: openpyxl.load_workbook(made / f"{name}.xlsx", data_only=True)[AREA] for name in typed}


def test_typed_codes_are_added_up_with_the_error_of_the_reader(
    office: str, release: rw.Release, tmp_path: Path
) -> None:
    file = release.export(tmp_path / "book.xlsx", format="xlsx")
    titles = {table.name: table.title for table in release.content().tables}
    three, cells = ["01001", "01003", "34001"], [("01001", "311"), ("02013", "441"), ("01001", "311"), ("1001", "311")]
    states = [{"county2": state, "naics1": code} for state in ("01", "02", "34") for code in "34"]
    typed: dict[str, tuple[str, Lines]] = {
        "counties": (titles["county5_by_naics1"], [{"county5": each, "naics1": "3"} for each in three]),
        "cells": (titles["county5_by_naics3"], [{"county5": county, "naics3": code} for county, code in cells]),
        "states": (titles["county2_by_naics1"], states),
    }
    sheets = recalculated(office, tmp_path, typed, file)
    reader = ReaderRelease.of(release)
    wanted = {
        "counties": {"county5": three, "naics1": "3"},
        "states": {"county2": ["01", "02", "34"], "naics1": ["3", "4"]},
    }
    for name, where in wanted.items():
        for row, variable in ((RESULTS, "count"), (RESULTS + 1, "emp")):
            asked = reader.total(variable, where)
            shown = [sheets[name].cell(row + 1, column).value for column in (2, 3, 4, 5)]
            # Workbooks have the digits that mean something, a hundredth of the error of each cell.
            assert shown == pytest.approx([asked.value, asked.sd, asked.low, asked.high], abs=asked.sd / 50)
        # Of noise that is not normal the interval is wider than the drawn one, and holds at least as often.
        asked, errors = reader.total("laplace", where), unimodal_reach(0.95, 2 / 1414)
        ends = [asked.value - errors * asked.sd, asked.value + errors * asked.sd]
        shown = [sheets[name].cell(RESULTS + 3, column).value for column in (2, 3, 4, 5)]
        assert shown == pytest.approx([asked.value, asked.sd, *ends], abs=asked.sd / 50)
        assert "holds in at least 95% of cases" in sheets[name].cell(4, 1).value
    found = [cell.value for row in sheets["cells"].iter_rows() for cell in row]
    assert [each for each in found if each in ("yes", "no such cell", "named above")] == [
        *("yes", "yes", "named above", "no such cell")
    ]
    table = release["county5_by_naics3"].to_pandas().set_index(["county5", "naics3"])
    assert sheets["cells"].cell(RESULTS + 2, 2).value == pytest.approx(table.loc[cells[:2], "emp"].sum(), abs=0.5)
    said = {name: str(sheet.cell(RESULTS + 5, 1).value) for name, sheet in sheets.items()}
    assert said["counties"].startswith(LARGE.split("{")[0])
    # Of the coarser tables only those with the smallest errors are named.
    exact = said["cells"].split("coarser table (")[1].split("), which")[0]
    assert exact == titles["county2_by_naics1"]
    assert said["cells"].startswith(LARGE.split("{")[0])
    assert said["states"] == ALONE
