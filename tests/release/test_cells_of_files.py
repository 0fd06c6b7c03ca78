"""What files hold cell by cell, by hand: digits, whole numbers, pieces, rows and names of sheets, codes and statuses."""

import math
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recordwise.plan.expressions import ALL_OTHER
from recordwise.plan.publication import Labels, Publication, StatusRules
from recordwise.release.content import Content, DescribedTable, least_above, short_titles, unimodal_reach
from recordwise.release.dictionary import Entry, headings, relative_error, status_names
from recordwise.release.formats.cbp import Cbp
from recordwise.release.formats.csv import (
    CLOSE,
    _as_integers,
    _may_run,
    _to,
    first_bytes,
    meaningful,
    round_digits,
    same_bytes,
    slices,
    write_pieces,
)
from recordwise.release.formats.sdmx_csv import LongCsv, SdmxCsv, _dimensions, identifier
from recordwise.release.formats.statistical import SAS, STATA, _r_text, _r_texts, cut_bytes, short_names
from recordwise.release.formats.xlsx import (
    ABOVE,
    MOST_ROWS,
    MOST_SUMMED,
    Xlsx,
    _as_read,
    _as_written,
    _cell,
    _column,
    _escape,
    _may_be_summed,
    _quoted,
    _stored_cells,
    _styles,
    named_sheets,
    rows_xml,
    same_sheet,
    sheet_names,
    sheet_ranges,
)
from recordwise.release.tables import NOT_PRIVATE, PRIVATE, ReleasedTable

RULES = StatusRules()


# Digits that mean something.


@pytest.mark.parametrize(
    "value, size, digits, expected",
    [
        (123.456789, 1.0, 2, 123.46),
        (123.456789, 9.99, 2, 123.46),
        (123.456789, 10.0, 2, 123.5),
        (123.456789, 99.0, 2, 123.5),
        (123.456789, 100.0, 2, 123.0),
        (123.456789, 1e6, 2, 123.0),
        (-123.456789, 0.5, 2, -123.457),
        (0.0, 1.0, 2, 0.0),
        (1234.5, 0.001, 2, 1234.5),
        (1.5, math.nan, 1, 1.5),
        (2.0**53, 0.01, 2, 2.0**53),
    ],
)
def test_a_value_has_so_many_digits_after_the_first_of_its_size(
    value: float, size: float, digits: int, expected: float
) -> None:
    assert round_digits(np.array([value]), np.array([size]), digits, np.rint).tolist() == [expected]
    both = round_digits(np.array([value, 7.123]), np.array([size, 100.0]), digits, np.rint)
    assert both[0] == expected


def test_ends_are_rounded_outward_unless_they_are_decimals_already() -> None:
    values, sizes = np.array([1.231, 1.239, 1.23, -1.231, 0.1 + 0.2]), np.ones(5)
    assert round_digits(values, sizes, 2, np.floor).tolist() == [1.23, 1.23, 1.23, -1.24, 0.3]
    assert round_digits(values, sizes, 2, np.ceil).tolist() == [1.24, 1.24, 1.23, -1.23, 0.3]
    # A float just beside a decimal is taken for it, one a little further away is not.
    near, off = 1.23 * (1 + CLOSE / 2), 1.23 * (1 + 8 * CLOSE)
    assert round_digits(np.array([near, off]), np.ones(2), 2, np.ceil).tolist() == [1.23, 1.24]
    below = 1.23 * (1 - 8 * CLOSE)
    assert round_digits(np.array([below]), np.ones(1), 2, np.floor).tolist() == [1.22]


def test_values_without_an_error_have_six_digits() -> None:
    values = np.array([123.456789, 0.00123456789, 1234567.8])
    assert _to(None, 2, np.rint)(values).tolist() == [123.457, 0.00123457, 1234568.0]
    spread = np.array([10.0, 0.0, math.nan])
    assert _to(spread, 2, np.rint)(values).tolist() == [123.5, 0.00123457, 1234568.0]
    assert _to(np.zeros(3), 2, np.rint)(values).tolist() == [123.457, 0.00123457, 1234568.0]
    assert _to(np.full(3, 10.0), 2, np.rint)(values).tolist() == [123.5, 0.0, 1234567.8]


def test_each_column_of_a_variable_is_rounded_by_its_own_error() -> None:
    columns = {
        "k": ["a"],
        "n": [123.456789],
        "n_sd": [12.3456789],
        "n_cv": [0.0123456789],
        "n_low": [100.06],
        "n_high": [150.01],
        "n_median": [123.456789],
        "n_noisy": [5.123456789],
        "n_sigma": [0.12345],
        "n_fit": [123.456789],
        "n_fit_low": [1.26],
        "n_best": [123.456789],
        "n_best_sd": [1.23456789],
        "n_best_low": [1.239],
        "n_best_high": [1.231],
        "n_variance": [152.415787],
        "m": [1.23456789],
    }
    table = ReleasedTable(name="t", keys=("k",), variables=("n", "m"), data=pa.table(columns))
    assert meaningful(table, table.data).to_pylist() == [
        {
            "k": "a",
            "n": 123.5,
            "n_sd": 12.35,
            "n_cv": 0.01235,
            "n_low": 100.0,
            "n_high": 150.1,
            "n_median": 123.5,
            "n_noisy": 5.12346,
            "n_sigma": 0.12345,
            "n_fit": 123.5,
            "n_fit_low": 1.2,
            "n_best": 123.46,
            "n_best_sd": 1.235,
            "n_best_low": 1.23,
            "n_best_high": 1.24,
            "n_variance": 152.4,
            "m": 1.23457,
        }
    ]


@pytest.mark.parametrize(
    "values, whole",
    [
        ([1.0, 2.0], True),
        ([1.0, 2.5], False),
        ([2.5, 1.0], False),
        ([0.0, -3.0], True),
        ([-0.0, 1.0], False),
        ([1.0, None], False),
        ([2.0**53 - 1], True),
        ([1.0, -(2.0**53)], False),
        ([], False),
    ],
)
def test_numbers_are_written_as_whole_ones_where_nothing_is_lost(values: list[Any], whole: bool) -> None:
    found = _as_integers(pa.chunked_array([pa.array(values, pa.float64())]))
    assert pa.types.is_integer(found.type) == whole
    assert found.to_pylist() == values


def test_pieces_are_written_in_order_however_many() -> None:
    for count in (0, 1, 6, 7, 20):
        file = BytesIO()
        write_pieces(range(count), file, lambda part: b"%d," % part)
        assert file.getvalue() == b"".join(b"%d," % at for at in range(count))
    data = pa.table({"a": list(range(5))})
    assert [piece.num_rows for piece in slices(data, 2)] == [2, 2, 1]
    assert [piece.num_rows for piece in slices(data, 5)] == [5]
    assert list(slices(data.slice(0, 0), 2)) == []


def test_a_file_is_the_same_where_it_holds_the_pieces_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"head12")
    assert same_bytes(path, b"head", [b"1", b"2"])
    for pieces in ([b"1"], [b"1", b"2", b"3"], [b"1", b"3"], [b"12 "]):
        assert not same_bytes(path, b"head", pieces)
    assert not same_bytes(path, b"heat", [b"12"])


def test_texts_may_run_where_one_begins_with_neither_letter_nor_digit() -> None:
    sliced = pa.array(["=x", "a", "", None, "7"]).slice(1)
    assert first_bytes(sliced).tolist() == [ord("a"), ord("7")]
    assert not _may_run(sliced)
    assert _may_run(pa.array(["a", "=x"]))
    assert _may_run(pa.chunked_array([["a"], ["é"]]))
    assert not _may_run(pa.array([], pa.string()))
    assert first_bytes(pa.array([None], pa.string())).tolist() == []


# Sheets of a workbook.


def test_rows_of_a_sheet_are_written_as_they_stand_here() -> None:
    data = pa.table(
        {
            "t": ["a", "", None, " <&>"],
            "n": [1, None, 3, 4],
            "x": [0.5, math.nan, math.inf, None],
            "b": [True, False, None, True],
        }
    )
    expected = (
        '<row r="5"><c r="A5" s="2" t="inlineStr"><is><t>a</t></is></c><c r="B5" s="3"><v>1</v></c>'
        '<c r="C5"><v>0.5</v></c><c r="D5" t="b"><v>1</v></c></row>'
        '<row r="6"><c r="D6" t="b"><v>0</v></c></row>'
        '<row r="7"><c r="B7" s="3"><v>3</v></c></row>'
        '<row r="8"><c r="A8" s="2" t="inlineStr"><is><t xml:space="preserve"> &lt;&amp;&gt;</t></is></c>'
        '<c r="B8" s="3"><v>4</v></c><c r="D8" t="b"><v>1</v></c></row>'
    )
    assert rows_xml(data, 5, 2, 3).decode() == expected
    assert rows_xml(data, 5, 2).decode() == expected.replace(' s="3"', "")
    assert rows_xml(data.slice(0, 0), 5, 2) == b""
    assert rows_xml(data.slice(2, 1), 1, 2, 3).decode() == '<row r="1"><c r="B1" s="3"><v>3</v></c></row>'


@pytest.mark.parametrize(
    "text, expected",
    [
        ("plain", ">plain"),
        ("a\x01b", ">a_x0001_b"),
        ("_x0041_", ">_x005F_x0041_"),
        ("end ", ' xml:space="preserve">end '),
        ("\ufffe", ">_xFFFE_"),
    ],
)
def test_text_that_a_sheet_cannot_hold_is_escaped(text: str, expected: str) -> None:
    assert _escape(text) == expected


def test_columns_of_a_sheet_are_numbered_from_0_by_their_letters() -> None:
    assert [_column(each) for each in ("A1", "B7", "Z10", "AA3", "AZ1", "BA1", "ZZ9", "AAA1")] == [
        0,
        1,
        25,
        26,
        51,
        52,
        701,
        702,
    ]


def test_cells_are_read_by_their_type() -> None:
    from xml.etree import ElementTree

    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'

    def read(text: str) -> Any:
        return _cell(ElementTree.fromstring(text.replace("<c ", f"<c {space} ", 1)), 2)

    assert read('<c r="B2" t="inlineStr"><is><t>x</t></is></c>') == (1, "x")
    assert read('<c r="A2"><v>2.5</v></c>') == (0, 2.5)
    assert read('<c r="C2" t="b"><v>1</v></c>') == (2, True)
    assert read('<c r="C2" t="b"><v>0</v></c>') == (2, False)
    assert read('<c r="C2" s="1"/>') == (2, None)
    assert read('<c r="C3"><v>1</v></c>') == read('<c r="C2"><f>1+1</f></c>') == (-1, False)
    assert _stored_cells(("a", "", None, 0, math.nan, math.inf, False)) == {0: "a", 3: 0, 6: False}


def sheet(rows: str) -> bytes:
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return f'<worksheet xmlns="{space}"><sheetData>{rows}</sheetData></worksheet>'.encode()


HEAD = '<row r="1"><c r="A1" t="inlineStr"><is><t>title</t></is></c></row>'
HEAD += '<row r="2"><c r="A2" t="inlineStr"><is><t>k</t></is></c></row>'
TWO = pa.table({"k": ["a", "b"]})


def test_a_sheet_is_the_same_where_its_rows_are_those_of_the_table_below_its_heads() -> None:
    body = rows_xml(TWO, 3, 1).decode()
    heads: list[dict[int, Any]] = [{0: "Key"}, {0: "k"}]

    def both(rows: str, data: pa.Table = TWO, known: Any = heads) -> tuple[bool, bool]:
        return (
            _as_written(BytesIO(sheet(rows)), data, 1, known),
            _as_read(BytesIO(sheet(rows)), data, 1, known),
        )

    assert both(HEAD + body) == (True, True)
    assert both(HEAD + body.replace(' s="1"', "")) == (False, True)
    for wrong in (
        HEAD.replace("k<", "other<") + body,
        HEAD + body.replace("<t>b<", "<t>c<"),
        HEAD + body + '<row r="5"><c r="A5" t="inlineStr"><is><t>c</t></is></c></row>',
        HEAD + rows_xml(TWO.slice(0, 1), 3, 1).decode(),
        HEAD + rows_xml(TWO, 4, 1).decode().replace('r="5"', 'r="9"').replace("<t>a<", "<t>z<"),
    ):
        assert both(wrong) == (False, False)
    assert both(HEAD, TWO.slice(0, 0)) == (False, True)
    assert _styles(b'<c r="A1" s="7" t="inlineStr"/><c r="B1" s="4"><v>1') == (7, 4)
    assert _styles(b"<c/>") == (0, 0)


def test_a_float_may_have_sixteen_digits_in_a_sheet(tmp_path: Path) -> None:
    path, data = tmp_path / "book.xlsx", pa.table({"x": [0.1 + 0.2]})
    for text, same in (("0.3", True), ("0.30000000000000004", True), ("0.3000000000000001", False)):
        with zipfile.ZipFile(path, "w") as book:
            rows = '<row r="1"><c r="A1" t="inlineStr"><is><t>x</t></is></c></row>'
            rows += f'<row r="2"><c r="A2"><v>{text}</v></c></row>'
            book.writestr("xl/worksheets/sheet4.xml", sheet(rows))
        assert same_sheet(path, 4, data, skip=0) == same


def entry(name: str, title: str = "", unit: str = "") -> Entry:
    return Entry(name=name, title=title or name, unit=unit, type="number", meaning="m", computed="c", missing="x")


def described(name: str = "t", rows: int = 2, *, keys: Any = ("k",), title: str = "", **more: Any) -> DescribedTable:
    columns: dict[str, Any] = {key: [f"{key}{at}" for at in range(rows)] for key in keys if key != ALL_OTHER}
    columns |= {ALL_OTHER: [False] * rows} if ALL_OTHER in keys else {}
    columns |= {"n": np.arange(rows) * 1.0, "n_sd": np.full(rows, 2.0)}
    given: dict[str, Any] = {"halves": {"n": 0.5}} | more
    table = ReleasedTable(name=name, keys=tuple(keys), variables=("n",), data=pa.table(columns))
    return DescribedTable(table=table, title=title or name, columns=tuple(map(entry, columns)), **given)


def content(*tables: DescribedTable, label: str = PRIVATE, **more: Any) -> Content:
    words = more.pop("words", Labels())
    return Content(dataset="d", tables=tables, words=words, privacy_label=label, notes=("A note.",), **more)


def test_names_of_sheets_are_short_distinct_and_none_of_ours() -> None:
    assert sheet_names(["a", "A", "Notes", "x" * 40, "x" * 33, "a/b:c", ""]) == [
        "a",
        "A_2",
        "Notes_2",
        "x" * 31,
        "x" * 29 + "_2",
        "a_b_c",
        "table",
    ]


def test_long_tables_are_divided_over_sheets_below_three_rows_and_a_header() -> None:
    room = 1_048_576 - 3 - 1
    assert (MOST_ROWS, ABOVE) == (1_048_576, 3)
    for rows, ranges in (
        (0, [(0, 0)]),
        (room, [(0, room)]),
        (room + 1, [(0, room), (room, 1)]),
        (2 * room + 5, [(0, room), (room, room), (2 * room, 5)]),
    ):
        table = ReleasedTable(name="t", keys=(), variables=(), data=pa.table({"x": pa.nulls(rows)}))
        assert list(sheet_ranges(DescribedTable(table=table, title="t", columns=()))) == ranges


def test_sheets_are_named_after_files_or_in_words_where_those_are_too_long() -> None:
    long = "q" * 32
    short = [described("b", title="B (research)"), described("a", title="A (basic)")]
    assert [name for name, _ in named_sheets(content(*short))] == ["a", "b"]
    assert [name for name, _ in named_sheets(content(*short), by_file=True)] == ["b", "a"]
    named = [described(long, keys=("k",), title="T, by k"), described("a", keys=("m",), title="T, by m")]
    assert [name for name, _ in named_sheets(content(*named))] == ["k", "m"]
    fits = [described("q" * 31, title="T, by k"), described("a", keys=("m",), title="T, by m")]
    assert [name for name, _ in named_sheets(content(*fits))] == ["q" * 31, "a"]
    assert named_sheets(content()) == []


def test_cells_may_be_added_up_by_codes_of_text_or_whole_numbers_in_tables_of_several_but_not_too_many() -> None:
    assert _may_be_summed(described(rows=2))
    assert not _may_be_summed(described(rows=1))
    assert _may_be_summed(described(rows=MOST_SUMMED))
    assert not _may_be_summed(described(rows=MOST_SUMMED + 1))
    assert not _may_be_summed(described(halves={}))
    assert not _may_be_summed(described(keys=()))
    assert not _may_be_summed(described(keys=(ALL_OTHER,)))
    for column, may in ((pa.array([1, 2]), True), (pa.array([0.5, 1.0]), False)):
        data = pa.table({"k": column, "n": [1.0, 2.0]})
        table = ReleasedTable(name="t", keys=("k",), variables=("n",), data=data)
        assert _may_be_summed(DescribedTable(table=table, title="", columns=(), halves={"n": 0.0})) == may


def test_the_least_error_above_a_table_is_that_of_its_coarser_tables() -> None:
    fine, lone = described("f", coarser=("c", "d")), described("f", halves={}, coarser=("c",))
    coarse, other, apart = described("c"), described("d"), described("e")
    assert least_above(content(fine, coarse, apart), fine, "n") == (2.0, "c")
    assert least_above(content(fine, apart), fine, "n") is None
    assert least_above(content(fine, described("c", halves={})), fine, "n") is None
    assert least_above(content(lone, coarse), lone, "n") is None
    assert least_above(content(fine, other), fine, "n") == (2.0, "d")


def test_a_text_in_a_formula_is_cut_into_pieces_and_its_quotes_are_doubled() -> None:
    assert _quoted('a "b"') == '"a ""b"""'
    assert _quoted("x" * 240) == f'"{"x" * 240}"'
    assert _quoted("x" * 241) == f'"{"x" * 240}"&"x"'
    assert _quoted("") == ""


def test_a_workbook_differs_from_another_content_and_says_whether_it_is_private(tmp_path: Path) -> None:
    pytest.importorskip("xlsxwriter", reason="the xlsx extra is not installed: no workbook is written here")
    format, path = Xlsx(), tmp_path / "book.xlsx"
    own = content(described("a"), described("b", rows=3))
    format.write(own, path)
    assert format.same(own, path)
    assert format.privacy_label(path) == PRIVATE
    assert not format.same(content(described("a"), described("b", rows=2)), path)
    assert not format.same(content(described("a"), described("c", rows=3)), path)
    format.write(content(described("a"), label=NOT_PRIVATE), path)
    assert format.privacy_label(path) == NOT_PRIVATE


# Long files, statistical packages and county business patterns.


def test_names_of_dimensions_are_capitals_that_no_other_column_has() -> None:
    assert [identifier(each) for each in ("naics", "a b", "1st", "é", "")] == ["NAICS", "A_B", "X1ST", "X_", "X"]
    assert _dimensions(("status", "SD", "a", "A")) == ["STATUS_", "SD_", "A", "A_"]


def lines(format: Any, own: Content, path: Path) -> list[str]:
    format.write(own, path)
    assert format.same(own, path)
    return path.read_text().replace('"', "").splitlines()


def test_a_long_file_has_a_line_for_each_number_and_our_columns_are_not_taken_for_keys(tmp_path: Path) -> None:
    table = described(keys=("k", "unit"), rows=2)
    assert lines(LongCsv(), content(table), tmp_path / "f") == [
        "k,unit_,statistic,title,unit,value,sd,low,high,status",
        "k0,unit0,n,n,,0,2,,,unreliable",
        "k1,unit1,n,n,,1,2,,,unreliable",
    ]
    assert lines(LongCsv(), content(table, label=NOT_PRIVATE), tmp_path / "g")[0] == f"# {NOT_PRIVATE}"


def test_an_sdmx_file_has_its_structure_its_period_and_a_code_for_each_status(tmp_path: Path) -> None:
    data = pa.table({"k": ["a", "b", None, "d"], "n": [100.0, 8.0, None, 4.0], "n_sd": [1.0, 2.0, 2.0, 2.0]})
    table = ReleasedTable(name="my table", keys=("k",), variables=("n",), data=data)
    one = DescribedTable(table=table, title="t", columns=(entry("k"), entry("n", unit="firms"), entry("n_sd")))
    said = Labels(publication=Publication(publisher="An Office", period="2024", version="2.1"))
    found = lines(SdmxCsv(), content(one, words=said), tmp_path / "f")
    head = (
        "STRUCTURE,STRUCTURE_ID,ACTION,K,INDICATOR,TIME_PERIOD,OBS_VALUE,OBS_STATUS,CONF_STATUS,STATUS,UNIT_MEASURE,SD"
    )
    start = "dataflow,AN_OFFICE:MY_TABLE(2.1),I"
    assert found == [
        head,
        f"{start},a,N,2024,100,A,F,reliable,firms,1",
        f"{start},b,N,2024,8,U,F,use with caution,firms,2",
        f"{start},_U,N,2024,,Q,F,unreliable,firms,2",
        f"{start},d,N,2024,4,U,F,unreliable,firms,2",
    ]
    plain = lines(SdmxCsv(), content(one), tmp_path / "g")
    assert plain[0] == head.replace("TIME_PERIOD,", "")
    assert plain[1] == "dataflow,RECORDWISE:MY_TABLE(1.0),I,a,N,100,A,F,reliable,firms,1"


def test_formats_without_a_place_for_something_say_so() -> None:
    bare = DescribedTable(
        table=ReleasedTable(name="t", keys=(), variables=(), data=pa.table({"x": [1]})),
        title="t",
        columns=(entry("x"),),
    )
    running = ReleasedTable(
        name="t", keys=("k",), variables=("n",), data=pa.table({"k": ["=1"], "n": [1.0], "n_sd": [1.0]})
    )
    formula = DescribedTable(table=running, title="t", columns=(entry("k"), entry("n"), entry("n_sd")))
    assert SdmxCsv().problem(content(described())) is None
    assert "NOT PRIVATE" in str(SdmxCsv().problem(content(described(), label=NOT_PRIVATE)))
    assert "whose columns are not known" in str(SdmxCsv().problem(content(bare)))
    assert "whose columns are not known" in str(LongCsv().problem(content(described(), bare)))
    assert LongCsv().problem(content(described())) is None
    assert "column 'k': a spreadsheet would run" in str(SdmxCsv().problem(content(formula)))
    period = Labels(publication=Publication(period="=2024"))
    assert "TIME_PERIOD" in str(SdmxCsv().problem(content(described(), words=period)))
    assert "knows no other keys" in str(Cbp().problem(content(described())))
    assert "finds no emp" in str(Cbp().problem(content(described(keys=("state",)))))
    assert "NOT PRIVATE" in str(Cbp().problem(content(described(keys=("state",)), label=NOT_PRIVATE)))


def business(keys: dict[str, list[str]], **columns: Any) -> Content:
    data = pa.table(keys | columns)
    variables = tuple(name for name in columns if not name.endswith("_sd"))
    table = ReleasedTable(name="t", keys=tuple(keys), variables=variables, data=data)
    return content(DescribedTable(table=table, title="t", columns=tuple(map(entry, data.column_names))))


def test_county_business_patterns_have_codes_of_their_width_flags_and_whole_numbers(tmp_path: Path) -> None:
    numbers: dict[str, Any] = {"emp": [100.4, 8.0, None], "emp_sd": [1.0, 2.0, 2.0], "count": [3.0, 2.5, -1.0]}
    by_county = business({"county": ["01001", "02013", "3"], "naics": ["311", "00", "44-45"]}, **numbers)
    assert lines(Cbp(), by_county, tmp_path / "a") == [
        "FIPSTATE,FIPSCTY,NAICS,EMP_NF,EMP,QP1_NF,QP1,AP_NF,AP,EST",
        "01,001,311///,G,100,,,,,3",
        "02,013,------,J,8,,,,,2",
        "00,3,44----,S,0,,,,,-1",
    ]
    states = business({"state": ["01", "02", "03"]}, **numbers)
    found = lines(Cbp(), states, tmp_path / "b")
    assert [line.split(",")[:3] for line in found[1:]] == [
        ["01", "000", "------"],
        ["02", "000", "------"],
        ["03", "000", "------"],
    ]


def test_names_for_statistical_packages_are_short_and_distinct() -> None:
    assert short_names(["employment", "employees", "Employmen", "a b", "1x", "_y", "é"], 8) == [
        "employme",
        "employee",
        "Employm2",
        "a_b",
        "_1x",
        "_y",
        "_",
    ]
    assert short_names(["x" * 9] * 11, 8)[-1] == "xxxxxx11"
    assert cut_bytes("aé", 2) == "a"
    assert cut_bytes("aé", 3) == "aé"


def test_text_up_to_the_limit_of_a_package_is_stored_and_a_longer_code_refused() -> None:
    for format, limit in ((SAS, 200), (STATA, 2045)):
        for length, refused in ((limit, False), (limit + 1, True)):
            data = pa.table({"k": ["x" * length], "k_name": ["y" * 3000], "n": [1.0]})
            table = ReleasedTable(name="t", keys=("k",), variables=("n",), data=data)
            own = content(DescribedTable(table=table, title="t", columns=tuple(map(entry, data.column_names))))
            assert (format.problem(own) is not None) == refused
    named = ReleasedTable(
        name="t", keys=("k_name",), variables=("n",), data=pa.table({"k_name": ["y" * 201], "n": [1.0]})
    )
    keyed = content(DescribedTable(table=named, title="t", columns=(entry("k_name"), entry("n"))))
    assert "longer than 200 bytes" in str(SAS.problem(keyed))


def test_texts_of_r_have_their_quotes_and_letters_escaped() -> None:
    assert _r_text('a"\\') == '"a\\"\\\\"'
    assert _r_text("\x1f ~\x7f\x00é") == '"\\U{0000001f} ~\\U{0000007f}\\U{000000e9}"'
    assert (_r_texts([]), _r_texts(["a", "b"])) == ("character(0)", 'c("a", "b")')


# Statuses, headings and titles.


def test_a_relative_error_is_at_most_a_half_and_its_limits_belong_to_the_better_status() -> None:
    value, sd = (
        np.array([100.0, 4.0, 3.0, -100.0, 0.0, 5.0, math.nan]),
        np.array([10.0, 2.0, 2.0, 10.0, 0.0, math.nan, 1.0]),
    )
    found = relative_error(value, sd)
    assert found.tolist() == [0.1, 0.5, 0.5, 0.5, 0.0, math.inf, math.inf]
    assert relative_error(value, sd, signed=True).tolist()[3] == 0.1
    limits = [limit for _, limit in RULES.limits]
    assert status_names(
        np.array([limits[0], limits[0] + 1e-9, limits[1], limits[1] + 1e-9, math.inf]), RULES
    ).to_pylist() == [
        "reliable",
        "use with caution",
        "use with caution",
        "unreliable",
        "unreliable",
    ]


def test_headings_say_ends_in_words_and_names_where_they_are_shared() -> None:
    columns = [entry("n", "Firms", "firms"), entry("n_sd", "Firms, sd", "firms"), entry("x", "A, b", "kg")]
    assert headings(columns) == ["Firms", "Firms, standard deviation of the noise (firms)", "A, b (kg)"]
    assert headings([entry("a", "Same"), entry("b", "same"), entry("c")]) == ["Same [a]", "same [b]", "c"]


def test_short_titles_are_given_where_tables_share_the_rest_and_still_differ() -> None:
    one, two = described("a", title="T, by k"), described("b", keys=("m",), title="T, by m (research)")
    assert short_titles([one, two], research="!") == ["k", "m!"]
    assert short_titles([one], research="!") == ["T, by k"]
    assert short_titles([one, described("b", keys=("m",), title="Other, by m")], research="!") == [
        "T, by k",
        "Other, by m",
    ]
    assert short_titles([one, described("b", title="T, by x")], research="!") == ["T, by k", "T, by x"]
    total = described("t", rows=1, title="T, total")
    assert short_titles([one, replace_title(total, "T, by z")], research="") == ["k", "Total"]


def replace_title(table: DescribedTable, title: str) -> DescribedTable:
    return DescribedTable(table=table.table, title=title, columns=table.columns)


def test_the_reach_of_noise_with_one_mode_is_gauss_s_bound_with_what_lattices_add() -> None:
    """2 / (3 sqrt(miss)) up to a miss of a third, sqrt(3) (1 - miss) beyond."""
    missed = 2 * math.exp(-32)
    for confidence, part in ((0.95, 0.0), (0.9, 0.2), (0.5, 0.1), (0.6667, 0.0)):
        miss = 1 - confidence - missed
        gauss = 2 / (3 * math.sqrt(miss)) if miss <= 1 / 3 else math.sqrt(3) * (1 - miss)
        assert unimodal_reach(confidence, part) == pytest.approx(
            gauss * math.sqrt(1 + part**2 / 12) + 4 * part, rel=1e-12
        )
    assert unimodal_reach(0.95, 0.0) == pytest.approx(2.981, abs=0.001)
    assert unimodal_reach(1 - 1e-15, 0.0) == pytest.approx(2 / 3 / math.sqrt(math.ulp(1.0)))
