"""Limits of files and pages: their last value on one side, the next one on the other."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow as pa
import pytest

import recordwise as rw
from build import employers
from recordwise.errors import ParameterError
from recordwise.exact.text import GREAT_LOG_ODDS, factor_text
from recordwise.noise import Seeded
from recordwise.policy import constant, gaussian_sum
from recordwise.release.formats import records, xlsx
from recordwise.release.formats.csv import LARGEST, _as_integers
from recordwise.release.page import page, results
from recordwise.release.page.charts import MOST_DIGITS, _brief
from recordwise.release.page.questions import LIMITLESS, SENTENCES, Band, details, lead
from release.rich_releases import plain, rich


def one_variable(codes: Sequence[str] = ("01", "02", "04"), labels: Mapping[str, str] | None = None) -> rw.Release:
    """A table by state with one count."""
    asked = rw.query().named("lone").group_by("state", keys=rw.Keys.product(state=list(codes)))
    rows = {"id": [1, 2, 3], "state": ["01", "01", "02"], "emp": [1, 2, 3]}
    words = rw.Labels(labels=labels or {})
    with employers(rows, "state", tuned_on="public", words=words) as session:
        return replace(session.run(asked.count(rw.Gaussian(rho=1)), rng=Seeded(1)), private=True)


CODES = sorted(results.TILES)


@pytest.mark.parametrize(
    ("codes", "labels", "drawn"),
    [
        (CODES[: results.LEAST_STATES], {}, True),
        (CODES[: results.LEAST_STATES - 1], {}, False),
        ([*CODES[:10], "90", "91", "92", "93", "94"], {}, True),
        ([*CODES[:10], "90", "91", "92", "93", "94", "95"], {}, False),
        (CODES[:9], {f"state={CODES[0]}": results.TILES[CODES[0]][1]}, True),
        (CODES[:9], {f"state={CODES[0]}": "Elsewhere"}, False),
        ([*CODES, "90", "91", "92", "93", "94"][: results.MOST_STATES], {}, True),
        ([*CODES, "90", "91", "92", "93", "94", "95"][: results.MOST_STATES + 1], {}, False),
    ],
)
@pytest.mark.costly
def test_a_map_is_drawn_of_as_many_states_as_are_states(codes: list[str], labels: dict[str, str], drawn: bool) -> None:
    content = one_variable(codes, labels).content()
    found = results._map(content, {"lone": 0})
    assert (found is not None) == drawn
    if found is not None:
        assert found["table"] == 0
        assert found["key"] == "state"
        assert list(found["tiles"]) == [code for code in codes if code in results.TILES]


@pytest.mark.parametrize("format", ["csv", "long", "sdmx-csv"])
def test_a_table_with_one_variable_is_written(format: str, tmp_path: Path) -> None:
    found = one_variable().export(tmp_path / "lone.csv", format=format, table="lone")
    assert len(found.read_text().splitlines()) >= 4


@pytest.mark.costly
def test_basic_tables_are_made_once() -> None:
    made = plain().basic()
    with pytest.raises(ParameterError, match="already has basic tables"):
        made.basic()


def test_names_of_sheets_are_shortened_and_kept_apart() -> None:
    long = "a" * xlsx.LONGEST_NAME
    assert xlsx.sheet_names([long, f"{long}b", "A" * 40]) == [long, f"{long[:-2]}_2", f"{'A' * 29}_3"]
    assert xlsx.sheet_names(["a[b]:c", "", "Cover"]) == ["a_b__c", "table", "Cover_2"]
    # Excel keeps one name for itself.
    assert xlsx.sheet_names(["history", "History"]) == ["history_2", "History_3"]


def test_areas_of_sheets_whose_names_differ_in_a_sign_have_names_of_their_own(tmp_path: Path) -> None:
    cells = rw.query().group_by("state", keys=["01", "02"]).count(rw.Gaussian(rho=1))
    with employers({"id": [1], "state": ["01"], "emp": [1]}, "state") as session:
        made = session.run([cells.named(name) for name in ("a-b", "a_b")], rng=Seeded(1))
    book = openpyxl.load_workbook(made.export(tmp_path / "book.xlsx", format="xlsx"))
    marks = [mark for sheet in book.worksheets for mark in sheet.tables]
    assert [mark for mark in marks if mark.casefold().startswith("rw_a_b")] == ["rw_a_b", "rw_a_b_2"]
    assert len({mark.casefold() for mark in marks}) == len(marks)


@pytest.mark.costly
@pytest.mark.parametrize("places, listed", [(2, 8), (4, 0)], ids=["all fit", "some do not"])
def test_the_sheet_that_adds_up_offers_as_many_tables_as_formulas_have_room_for(
    places: int, listed: int, tmp_path: Path
) -> None:
    county, naics = ["01001", "02013"], ["111110", "221110"]
    columns = {"county": county, "naics": naics, "size": ["1", "2"]}
    lengths = [2, 3, 4, 5][:places]
    asked = rw.query().named("employment", title="Employment and payroll of establishments")
    keys = rw.Keys.product(county=county, naics=naics)
    asked = asked.levels(rw.prefix("county", lengths)).levels(rw.prefix("naics", [2, 3, 4, 6]), keys=keys)
    asked = asked.count(rw.Gaussian(sigma=3)).sum("emp", rw.Gaussian(sigma=9))
    with employers({"id": [1, 2], "emp": [1, 2], **columns}, *columns, dataset="small") as session:
        content = session.run(asked, rng=Seeded(1)).content()
    area = xlsx.Area.of(content, {each.name: each.name[: xlsx.LONGEST_NAME] for each in content.tables})
    assert area is not None
    formulas = [text for _, _, _, text, known in area.cells() if known is not None]
    assert max(map(len, formulas)) <= xlsx.LONGEST_FORMULA
    assert max(map(len, formulas)) == area.longest_formula()
    texts = [text for *_, text, _ in area.cells()]
    assert len(area.tables) + area.left_out == len(content.tables)
    assert (f"(recordwise ask adds up {area.left_out} more)" in texts) == (area.left_out > 0)
    if listed:
        assert len(area.tables) == listed
    else:
        assert 8 < len(area.tables) < len(content.tables)
        whole = replace(area, tables=tuple(content.tables), left_out=0)
        assert whole.longest_formula() > xlsx.LONGEST_FORMULA


@pytest.mark.parametrize("room", [xlsx.LONGEST_FORMULA, 200])
def test_the_contents_link_to_the_sheet_that_adds_up_only_if_it_has_room(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xlsx, "LONGEST_FORMULA", room)
    book = openpyxl.load_workbook(one_variable().export(tmp_path / "book.xlsx", format="xlsx"))
    listed = [row[0] for row in book["Contents"].iter_rows(min_row=5, values_only=True) if row[0]]
    assert set(listed) <= set(book.sheetnames)
    assert (xlsx.AREA in listed) == (xlsx.AREA in book.sheetnames) == (room > 200)


@pytest.mark.costly
def test_a_table_goes_to_a_second_sheet_when_the_first_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    table = next(each for each in rich().content().tables if each.data.num_rows == 6)
    for most, ranges in ((10, [(0, 6)]), (9, [(0, 5), (5, 1)]), (7, [(0, 3), (3, 3)])):
        monkeypatch.setattr(xlsx, "MOST_ROWS", most)
        assert list(xlsx.sheet_ranges(table)) == ranges


def test_tables_of_one_cell_or_too_many_are_not_added_up_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = {each.data.num_rows: each for each in plain().content().tables}
    assert not xlsx._may_be_summed(tables[1])
    assert xlsx._may_be_summed(tables[2])
    for most, fits in ((20, True), (19, False)):
        monkeypatch.setattr(xlsx, "MOST_SUMMED", most)
        assert xlsx._may_be_summed(tables[20]) == fits


def test_texts_of_formulas_are_cut_where_a_program_would_refuse_them() -> None:
    assert xlsx._quoted("x" * 240) == f'"{"x" * 240}"'
    assert xlsx._quoted("x" * 241) == f'"{"x" * 240}"&"x"'
    assert xlsx._quoted('say "a"') == '"say ""a"""'


def test_as_many_whole_records_are_made_as_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    made = plain().records(whole=True, of="n", complete=True)
    count = (made.table if hasattr(made, "table") else made.data).num_rows
    monkeypatch.setattr(records, "MOST_RECORDS", count)
    plain().records(whole=True, of="n", complete=True)
    monkeypatch.setattr(records, "MOST_RECORDS", count - 1)
    with pytest.raises(ParameterError, match=f"would make {count:,} records"):
        plain().records(whole=True, of="n", complete=True)


def test_whole_numbers_are_written_as_such_up_to_the_largest() -> None:
    for values, kind in (
        ([1.0, LARGEST - 1], pa.int64()),
        ([1.0, LARGEST], pa.float64()),
        ([1.0, -LARGEST], pa.float64()),
        ([1.0, 2.5], pa.float64()),
        ([0.0, 2.0], pa.int64()),
        ([2.0, -0.0], pa.float64()),
        ([2.0, None], pa.float64()),
    ):
        assert _as_integers(pa.chunked_array([pa.array(values, pa.float64())])).type == kind, values
    assert [_brief(each) for each in (float("inf"), 2.0, 2.5, MOST_DIGITS - 1.0)] == [None, 2, 2.5, MOST_DIGITS - 1]
    assert isinstance(_brief(float(MOST_DIGITS)), float)
    assert isinstance(_brief(-float(MOST_DIGITS)), float)


@pytest.mark.parametrize(
    ("rho", "sentence"),
    [
        (GREAT_LOG_ODDS, "odds"),
        (np.nextafter(GREAT_LOG_ODDS, 99), "great odds"),
        (LIMITLESS, "great odds"),
        (np.nextafter(LIMITLESS, 999), "no limit"),
    ],
)
def test_the_first_sentence_changes_with_the_loss(rho: float, sentence: str) -> None:
    assert lead(rho, ()) == SENTENCES[sentence].format(mean=factor_text(rho)) + "."
    assert len({SENTENCES[each] for each in ("odds", "great odds", "no limit")}) == 3
    assert len(details(rho, 0.0)) == (2 if rho <= LIMITLESS else 1)


def test_sentences_for_nothing_and_for_no_promise() -> None:
    assert lead(0, ()) == SENTENCES["nothing"]
    assert lead(float("inf"), ()) == SENTENCES["no promise"]
    assert len(details(0, 0.0)) == 1
    assert len(details(1.0, 0.01, "told", 2.0)) == 4
    bands = [
        Band(label="emp", low="3", high="3"),
        Band(label="pay", low="1", high="9"),
        Band(label="net", low="2", high=None),
    ]
    said = lead(1.0, bands, 0.01)
    assert SENTENCES["exactly"].format(label="emp") in said
    assert SENTENCES["one band"].format(low="1", high="9", label="pay") in said
    assert SENTENCES["open band"].format(low="2", label="net") in said


def test_a_long_policy_refers_to_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = constant(1) + gaussian_sum("emp", sigma=3)
    words = policy.in_words()
    monkeypatch.setattr(page, "LONGEST", len(words))
    assert page.policy_text(policy) == words
    monkeypatch.setattr(page, "LONGEST", len(words) - 1)
    assert page.policy_text(policy).endswith("; and further parts, all listed in policy.json.")
