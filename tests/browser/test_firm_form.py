"""The section about firms in a real browser: what is asked, what is found from lists of codes, and the loss it shows."""

import re
from typing import Any

import pytest

import build
from browser.shown import read


def told(page: Any) -> float:
    found = re.search(r"at most ([\d,.]+)\. ", page.inner_text("#firm-told"))
    assert found is not None
    return read(found[1])


def test_a_firm_has_the_loss_of_its_establishments_by_cell(visit: Any, saved: Any) -> None:
    """Three establishments: nowhere in particular, two of them in one cell, then one removed."""
    page, firms = visit("demo"), saved["demo"].firms
    page.click("#add")
    rows = [("12", "300", "06037", "441110"), ("5", "90", "06037", "441110"), ("40", "1,000", "17031", "722511")]
    columns = ["emp", "payann", *firms.columns()]
    values = [dict(zip(("emp", "payann", "county", "naics"), row)) for row in rows]
    heads = page.locator("#members thead th").all_inner_texts()
    assert set(firms.columns()) <= {"county", "naics"}
    assert len(heads) == len(columns) + 2

    def fill(names: list[str]) -> None:
        for place, row in enumerate(values):
            inputs = page.locator(f"#members tbody tr:nth-child({place + 1}) input")
            for at, name in enumerate(columns):
                inputs.nth(at).fill(row[name] if name in names else "")

    def known(names: list[str], which: list[int]) -> float:
        units = {name: [values[at][name].replace(",", "") for at in which] for name in names}
        return float(
            firms.loss(units | {name: [float(each) for each in units[name]] for name in ("emp", "payann")}).rho
        )

    fill(["emp", "payann"])
    assert told(page) == pytest.approx(known(["emp", "payann"], [0, 1, 2]), rel=1e-3)
    fill(columns)
    assert told(page) == pytest.approx(known(columns, [0, 1, 2]), rel=1e-3)
    assert known(columns, [0, 1, 2]) < known(["emp", "payann"], [0, 1, 2])
    page.locator("#members tbody tr:nth-child(2) button").click()
    assert told(page) == pytest.approx(known(columns, [0, 2]), rel=1e-3)


def test_a_place_that_the_policy_asks_for_is_asked_once_for_a_firm(visit: Any, saved: Any) -> None:
    page, firms = visit("sized"), saved["sized"].firms
    heads = page.locator("#members thead th").all_inner_texts()[:-1]
    assert heads == ["employees", "dollars of payroll", "county", "industry", "loss"]
    losses = []
    for second in ("Mining", "Retail"):
        units = {"emp": [12, 5], "pay": [300, 90], "county": ["01", "01"], "industry": ["Mining", second]}
        for row in range(2):
            inputs = page.locator(f"#members tbody tr:nth-child({row + 1}) input")
            for at, column in enumerate(units.values()):
                inputs.nth(at).fill(str(column[row]))
        losses.append(told(page))
        assert losses[-1] == pytest.approx(firms.loss(units).rho, rel=1e-3)
    assert losses[0] > losses[1]


def test_levels_are_found_from_the_finest_codes(visit: Any, saved: Any) -> None:
    """Two establishments: in one cell, in one state, in one nation, of codes that no list has, and of codes not known."""
    page, firms = visit("hierarchies"), saved["hierarchies"].firms
    heads = page.locator("#members thead th").all_inner_texts()[:-1]
    assert heads == ["employees", "county", "naics", "loss"]
    assert {"nation", "state", "sector", "total"} <= set(firms.columns())
    assert "The page finds nation, state, total, sector from these codes." in page.inner_text("section:has(#members)")
    seen = []
    for county, naics in (("01001", "311"), ("0103", "3121"), ("02013", "111"), (" 02013 ", "111"), ("99", "111")):
        units: list[dict[str, Any]] = [
            {"emp": 120, "county": "01001", "naics": "311"},
            {"emp": 80, "county": county, "naics": naics},
        ]
        fill(page, units)
        placed = [build.levels_of(unit | {"county": unit["county"].strip()}) for unit in units]
        known = {name: [unit[name] or "no cell" for unit in placed] for name in ("emp", *firms.columns())}
        assert told(page) == pytest.approx(firms.loss(known).rho, rel=1e-3)
        seen.append(told(page))
    assert seen[0] > seen[1] > seen[2] == seen[3] > seen[4]
    fill(page, [{"emp": 120, "county": "01001", "naics": "311"}, {"emp": 80, "county": "", "naics": "111"}])
    assert told(page) > seen[0] - 1e-9


def fill(page: Any, units: list[dict[str, Any]]) -> None:
    for row, unit in enumerate(units):
        inputs = page.locator(f"#members tbody tr:nth-child({row + 1}) input")
        for at, value in enumerate(unit.values()):
            inputs.nth(at).fill(str(value))
