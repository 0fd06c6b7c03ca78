"""Description files line by line: what each entry changes, by hand, and what is refused alone."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordwise as rw
from recordwise.disclosure import Attack, Description, attack, largest_contributor, read_description
from recordwise.disclosure.attack import _known, _numbers, _read_rows, _Section, _text
from recordwise.errors import ParameterError

PLACES = "state,county\nn,a\nn,b\ns,c\n"
DIMENSION = '[dimensions.place]\nfile = "places.csv"\nlevels = ["state", "county"]\ntotal = "US"\n'
CELLS = "place,emp,count,next,least,most\nUS,100,9,4,90,120\nn,60,6,3,60,60\na,D,2,5,1,30\nb,S,3,2,,70\nc,40,3,1,0,99\n"
TABLE = '[[table]]\nfile = "emp.csv"\ncells = { place = "place" }\nvalue = "emp"\n'


def described(folder: Path, top: str = "", table: str = "", cells: str = CELLS, more: str = "") -> Description:
    (folder / "places.csv").write_text(PLACES)
    (folder / "emp.csv").write_text(cells)
    (folder / "tables.toml").write_text(top + DIMENSION + TABLE + table + more)
    return read_description(folder / "tables.toml")


def by_code(found: Description, values: Any) -> dict[str, float]:
    names = found.cells.dimensions[0].codes
    return {names[code]: float(value) for (code,), value in zip(found.cells.codes, values)}


def test_a_plain_table_says_its_numbers_and_nothing_of_withheld_cells(tmp_path: Path) -> None:
    found = described(tmp_path)
    assert by_code(found, found.low) == {"": 100, "n": 60, "a": 0, "b": 0, "c": 40, "s": 0}
    assert by_code(found, found.high) == {"": 100, "n": 60, "a": np.inf, "b": np.inf, "c": 40, "s": np.inf}
    assert [found.cells.codes[at, 0] for at in found.withheld] == list(found.cells.dimensions[0].positions(["a", "b"]))
    assert (found.percent, found.absent) == (10.0, "unknown")
    assert np.isnan(found.number).all()
    assert np.isnan(found.second).all()
    assert found.assumptions[:2] == ("No value is negative.", "Cells that no table lists can have any value.")


def test_ends_contributors_and_the_second_largest_are_read_from_their_columns(tmp_path: Path) -> None:
    found = described(tmp_path, table='low = "least"\nhigh = "most"\nnumber = "count"\nsecond = "next"\n')
    assert by_code(found, found.low) == {"": 100, "n": 60, "a": 1, "b": 0, "c": 40, "s": 0}
    assert by_code(found, found.high) == {"": 100, "n": 60, "a": 30, "b": 70, "c": 40, "s": np.inf}
    assert by_code(found, found.number) == pytest.approx(
        {"": 9, "n": 6, "a": 2, "b": 3, "c": 3, "s": np.nan}, nan_ok=True
    )
    assert by_code(found, found.second) == pytest.approx(
        {"": 4, "n": 3, "a": 5, "b": 2, "c": 1, "s": np.nan}, nan_ok=True
    )
    told = attack(found)
    # a and b add up to 60; a is between 1 and 30, so b is between 30 and 59.
    assert dict(zip(told.codes, zip(told.low, told.high))) == {("a",): (1, 30), ("b",): (30, 59)}
    # Of two, the second has 5: the largest has what is left, and at least as much. Of three with 2, the third has up to 2.
    assert dict(zip(told.codes, zip(told.largest_low, told.largest_high))) == {("a",): (5, 25), ("b",): (26, 57)}


@pytest.mark.parametrize(
    ("table", "low", "high", "said"),
    [
        ("rounded_to = 10\n", 35, 45, "Rounded numbers are off by at most 5."),
        ('rounded_to = 10\nrounded = "nearest"\n', 35, 45, "Rounded numbers are off by at most 5."),
        ('rounded_to = 10\nrounded = "random"\n', 30, 50, "Rounded numbers are off by at most 10."),
        ("rounded_to = 100\n", 0, 90, "Rounded numbers are off by at most 50."),
        ("off_by_percent = 25\n", 30, 50, "Numbers of an earlier vintage are off by at most 25 %."),
        ("off_by_percent = 10\nrounded_to = 20\n", 27, 55, "Numbers of an earlier vintage are off by at most 10 %."),
    ],
)
def test_rounding_and_vintages_widen_a_published_number(
    tmp_path: Path, table: str, low: float, high: float, said: str
) -> None:
    found = described(tmp_path, table=table)
    assert by_code(found, found.low)["c"] == pytest.approx(low)
    assert by_code(found, found.high)["c"] == pytest.approx(high)
    assert by_code(found, found.high)["a"] == np.inf
    assert said in found.assumptions
    assert len(found.assumptions) == 3 + table.count("percent") + table.count("rounded_to")


def test_two_tables_of_a_cell_leave_what_both_allow_and_an_exact_one_ends_the_attack(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("place,emp\na,20\nc,38\n")
    (tmp_path / "new.csv").write_text("place,emp,n\nb,D,4\nc,D,2\nn,60,7\n")
    old = TABLE.replace("emp.csv", "old.csv") + "rounded_to = 10\n"
    found = described(tmp_path, more=old + TABLE.replace("emp.csv", "new.csv") + 'number = "n"\n')
    assert by_code(found, found.low) == {"": 100, "n": 60, "a": 15, "b": 0, "c": 40, "s": 0}
    assert by_code(found, found.high) == {"": 100, "n": 60, "a": 25, "b": np.inf, "c": 40, "s": np.inf}
    # c is withheld by one table and shown by another.
    names = found.cells.dimensions[0].codes
    assert [names[found.cells.codes[at, 0]] for at in found.withheld] == ["a", "b"]
    assert by_code(found, found.number)["b"] == 4
    assert np.isnan(by_code(found, found.number)["a"])


def test_what_no_table_lists_is_zero_if_that_is_said(tmp_path: Path) -> None:
    some = "place,emp\nn,60\na,D\n"
    unknown, zero = described(tmp_path, cells=some), described(tmp_path, 'absent = "zero"\n', cells=some)
    assert unknown.absent == "unknown"
    assert (attack(unknown).low[0], attack(unknown).high[0]) == (0, 60)
    assert (attack(zero).low[0], attack(zero).high[0]) == (60, 60)
    assert zero.assumptions[1] == "Cells that no table lists are zero."


def test_several_lists_of_a_dimension_and_several_descriptions_are_taken_together(tmp_path: Path) -> None:
    """By zones a and c are 70, by states a and b 60 and all is 100: b is 30, a 30 and c 40."""
    (tmp_path / "zones.csv").write_text("zone,county\nz,a\ny,b\nz,c\n")
    cells = "place,emp\nUS,100\nn,60\na,D\nb,D\nc,D\nz,70\ny,D\n"
    (tmp_path / "places.csv").write_text(PLACES)
    (tmp_path / "emp.csv").write_text(cells)
    lists = 'lists = [{ file = "zones.csv", levels = ["zone", "county"] }]\n'
    (tmp_path / "tables.toml").write_text(DIMENSION + lists + TABLE)
    found = attack(tmp_path / "tables.toml")
    assert dict(zip(found.codes, found.low)) == pytest.approx({("a",): 30, ("b",): 30, ("c",): 40, ("y",): 30})
    assert found.high == pytest.approx(found.low)
    both = 'lists = [{ file = "places.csv", levels = ["state", "county"] }, { file = "zones.csv", levels = ["zone", "county"] }]\n'
    (tmp_path / "tables.toml").write_text('[dimensions.place]\ntotal = "US"\n' + both + TABLE)
    assert attack(tmp_path / "tables.toml").low == pytest.approx(found.low)
    (tmp_path / "more.toml").write_text(TABLE.replace("emp.csv", "more.csv"))
    (tmp_path / "more.csv").write_text("place,emp\na,30\n")
    together = read_description(tmp_path / "tables.toml", tmp_path / "more.toml")
    assert len(together.withheld) == 3


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("", "percent = 0\n", "percent must be above 0"),
        ("", "percent = inf\n", "percent must be above 0"),
        ("", "percent = nan\n", "percent must be above 0"),
        ("", "percent = true\n", "must be of the kind int or float"),
        ("", 'absent = "none"\n', "absent must be one of zero, unknown"),
        ("", "size = 3\n", "has an unknown entry 'size'"),
        ('total = "US"\n', "total = 5\n", "must be of the kind str"),
        ('file = "places.csv"\n', "", "needs a file with its codes"),
        ('levels = ["state", "county"]', "levels = []", "must not be empty"),
        ('levels = ["state", "county"]', 'levels = ["state", "town"]', "names a column 'town'"),
        ('total = "US"\n', 'total = "US"\nroot = 1\n', "has an unknown entry 'root'"),
        ("[dimensions.place]\n", "dimensions = 3\n[place]\n", "must be of the kind dict"),
        ('value = "emp"', 'value = "pay"', "has no column 'pay'"),
        ('value = "emp"\n', "", "needs an entry 'value'"),
        ('cells = { place = "place" }', 'cells = { place = "where" }', "has no column 'where'"),
        ('cells = { place = "place" }', 'cells = { town = "place" }', "names an unknown dimension 'town'"),
        ('value = "emp"\n', 'value = "emp"\nrounded = "up"\n', "must be nearest or random"),
        ('value = "emp"\n', 'value = "emp"\nrounded_to = -1\n', "has a negative base"),
        ('value = "emp"\n', 'value = "emp"\noff_by_percent = 100\n', "a percentage outside 0 to 100"),
        ('value = "emp"\n', 'value = "emp"\noff_by_percent = -1\n', "a percentage outside 0 to 100"),
        ('value = "emp"\n', 'value = "emp"\nwithheld = ["S"]\n', "has 1 entries that are no number"),
        ('value = "emp"\n', 'value = "emp"\nlow = "place"\n', "has 5 entries that are no number"),
    ],
)
def test_each_wrong_entry_is_refused_alone(tmp_path: Path, old: str, new: str, problem: str) -> None:
    described(tmp_path)
    text = (tmp_path / "tables.toml").read_text()
    assert old in text
    (tmp_path / "tables.toml").write_text(text.replace(old, new, 1) if old else new + text)
    with pytest.raises(ParameterError, match=problem):
        read_description(tmp_path / "tables.toml")


@pytest.mark.parametrize(
    "entry", ["rounded_to = 0\n", "off_by_percent = 0\n", "off_by_percent = 99\n", "rounded_to = 0.5\n"]
)
def test_the_least_and_the_most_that_entries_can_be_are_read(tmp_path: Path, entry: str) -> None:
    assert len(described(tmp_path, table=entry).withheld) == 2


def test_a_description_without_tables_or_dimensions_is_refused(tmp_path: Path) -> None:
    described(tmp_path)
    for text in (DIMENSION + "table = []\n", "[dimensions]\n" + TABLE):
        # An entry of the top stands before its sections.
        lines = sorted(text.splitlines(keepends=True), key=lambda line: line != "table = []\n")
        (tmp_path / "tables.toml").write_text("".join(lines))
        with pytest.raises(ParameterError, match="needs a dimension and a table"):
            read_description(tmp_path / "tables.toml")
    with pytest.raises(ParameterError, match="cannot be read"):
        read_description(tmp_path / "nothing.toml")


def test_a_section_that_is_none_is_refused_and_a_true_is_no_number() -> None:
    with pytest.raises(ParameterError, match="must be a table of entries"):
        _Section("it", [])
    section = _Section("it", {"a": True, "b": 3})
    assert (section.has("a"), section.has("c")) == (True, False)
    assert (section.get("b", int), section.get("c", int), section.get("d", int, 7)) == (3, None, 7)
    with pytest.raises(ParameterError, match="must be of the kind int"):
        section.get("a", int)
    with pytest.raises(ParameterError, match="needs an entry 'e'"):
        section.need("e", int)
    section.finish()
    left = _Section("it", {"z": 1, "a": 2})
    left.need("a", int)
    with pytest.raises(ParameterError, match=r"has an unknown entry 'z'\. It can have a\."):
        left.finish()


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("1,234", 1234),
        ("12,345,678.5", 12345678.5),
        ("123,456", 123456),
        ("0", 0),
        ("1e3", 1000),
        ("1,23", None),
        ("1234,567", None),
        ("-1", None),
        ("inf", None),
        ("nan", None),
        ("", None),
        ("x", None),
    ],
)
def test_numbers_of_tables_are_read_with_commas_between_thousands_only(text: str, read: float | None) -> None:
    if read is None:
        with pytest.raises(ParameterError, match="has 1 entries that are no number from 0 on"):
            _numbers(["5", text], ["D"], "emp")
    else:
        assert _numbers(["D", text], ["D"], "emp") == pytest.approx([np.nan, read], nan_ok=True)
    assert _numbers(None, [], "emp") is None


@pytest.mark.parametrize(
    ("content", "read"),
    [
        ("a , b\n1,2\n", (["a", "b"], [["1", "2"]])),
        ("\ufeffa,b\n\n1,2\n,\n3,4\n", (["a", "b"], [["1", "2"], ["3", "4"]])),
        ("a,b\n", None),
        ("", None),
        ("a,b\n1,2,3\n", None),
        ("a,a\n1,2\n", None),
    ],
)
def test_files_are_tables_with_one_header_line(tmp_path: Path, content: str, read: Any) -> None:
    file = tmp_path / "t.csv"
    file.write_text(content, encoding="utf-8")
    if read is None:
        with pytest.raises(ParameterError, match="is not a table with one header line and rows"):
            _read_rows(file)
    else:
        assert _read_rows(file) == read


def test_a_workbook_that_is_none_and_a_file_that_is_missing_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.XLSX").write_bytes(b"no zip")
    with pytest.raises(ParameterError, match="is not a workbook"):
        _read_rows(tmp_path / "t.XLSX")
    with pytest.raises(ParameterError, match="does not exist"):
        _read_rows(tmp_path / "none.csv")
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(ParameterError, match="is no workbook"):
        _read_rows(tmp_path / "t.csv", "Sheet")


def test_what_a_number_says_is_nothing_where_it_is_withheld() -> None:
    low, high, said = _known(_Section("it", {"rounded_to": 4, "off_by_percent": 50}), np.array([10.0, np.nan, 1.0]))
    assert (low.tolist(), high.tolist()) == ([4, 0, 0], [18, np.inf, 4.5])
    assert len(said) == 2


def test_the_largest_contributor_as_the_second_sees_it() -> None:
    """The total is between 10 and 20. Each of the others has at most what the second has."""
    none = np.nan
    cases = {
        # number, second: low, high
        (1.0, none): (10, 20),
        (1.0, 3.0): (10, 20),
        (2.0, 3.0): (7, 17),
        (2.0, 6.0): (6, 14),
        (3.0, 3.0): (4, 17),
        (4.0, 3.0): (3, 17),
        (5.0, 1.0): (6, 19),
        (none, 0.0): (10, 20),
        (none, 3.0): (3, 17),
        (4.0, none): (none, none),
        (none, none): (none, none),
    }
    number, second = np.array(list(cases)).T
    count = len(cases)
    low, high = largest_contributor(np.full(count, 10.0), np.full(count, 20.0), number, second)
    assert low == pytest.approx([each for each, _ in cases.values()], nan_ok=True)
    assert high == pytest.approx([each for _, each in cases.values()], nan_ok=True)


def made(low: list[float], high: list[float], percent: float = 10) -> Attack:
    count = len(low)
    ends = np.array(low), np.array(high)
    return Attack(("place",), tuple((f"p{at}",) for at in range(count)), *ends, *ends, percent, ())


def test_a_cell_is_nearly_disclosed_up_to_the_percentage_of_its_lower_end() -> None:
    """The middle of 90 to 110 is within 10 of every value, and 10 % of 90 is 9."""
    cases = {
        (100.0, 100.0): "disclosed",
        (100.0, 100.000009): "disclosed",
        (100.0, 100.000011): "nearly disclosed",
        (100.0, 120.0): "nearly disclosed",
        (100.0, 120.1): "protected",
        (90.0, 110.0): "protected",
        (100.0, np.inf): "protected",
        (0.0, 0.0): "disclosed",
        (0.0, 1.0): "protected",
        (-5.0, 5.0): "protected",
    }
    found = made([low for low, _ in cases], [high for _, high in cases])
    assert found.status == tuple(cases.values())
    assert found.counts() == {"disclosed": 3, "nearly disclosed": 2, "protected": 5}
    assert found.summary() == "10 withheld cells: 3 disclosed exactly, 2 to within 10 %, 5 protected."
    assert made([100.0], [120.0], 9.9).status == ("protected",)
    # The solver is exact to a relative part of large numbers.
    assert made([1e12], [1e12 + 0.05]).status == ("disclosed",)
    assert made([1e12], [1e12 + 0.2]).status == ("nearly disclosed",)


def test_intervals_are_written_with_six_digits_and_saved_once_for_the_owner_alone(tmp_path: Path) -> None:
    assert [_text(each) for each in (np.nan, np.inf, 0.0, 1234567.0, 2.5)] == [
        "",
        "no limit",
        "0",
        "1.23457e+06",
        "2.5",
    ]
    found = made([1.0, 0.0], [1.0, np.inf])
    file = found.save(tmp_path / "found.csv")
    with file.open(newline="") as opened:
        lines = list(csv.reader(opened))
    assert lines == [
        ["place", "low", "high", "largest low", "largest high", "status"],
        ["p0", "1", "1", "1", "1", "disclosed"],
        ["p1", "0", "no limit", "0", "no limit", "protected"],
    ]
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ParameterError, match="already exists"):
        found.save(file)
    assert repr(found).startswith("<Attack on 2 withheld cells: OWNER ONLY")


# Private releases beside published tables.


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two counties with sums of noise below a step, counts with more, and sums of Laplace noise."""
    folder = tmp_path_factory.mktemp("private")
    how: dict[str, Any] = {"unit": "id", "measures": {"emp": 2}, "columns": {"county": "text"}, "tuned_on": "public"}
    with rw.Session(
        {"id": [1, 2], "county": ["a", "b"], "emp": [300, 200]}, **how, ledger=folder / "ledger"
    ) as session:
        asked = rw.query().group_by("county", keys=["a", "b"]).sum("emp", rw.Gaussian(sigma="0.4"))
        asked = asked.count(rw.Gaussian(sigma=10)).sum("emp", rw.GeneralizedGaussian(shape=1, scale=4), alias="fat")
        session.run(asked).save(folder / "out", formats=["parquet"])
    (folder / "places.csv").write_text(PLACES)
    return folder


def bounds_of(folder: Path, tmp_path: Path, **changed: str) -> Description:
    entries = {"release": f"'{folder}/out'", "name": "'county'", "cells": "{ place = 'county' }", "value": "'sum_emp'"}
    entries |= changed
    text = "".join(f"{name} = {value}\n" for name, value in entries.items())
    (tmp_path / "places.csv").write_text(PLACES)
    (tmp_path / "tables.toml").write_text(DIMENSION + "[[table]]\n" + text)
    return read_description(tmp_path / "tables.toml")


@pytest.mark.parametrize(("confidence", "level"), [("", 0.999), ("0.5", 0.5), ("0.9", 0.9)])
@pytest.mark.costly
def test_noise_bounds_totals_by_its_size_or_a_step(
    private: Path, tmp_path: Path, confidence: str, level: float
) -> None:
    """Two cells: each may be off by so much with half of what may go wrong, on either side."""
    given = {"confidence": confidence} if confidence else {}
    reach = np.sqrt(2 * np.log(2 * 2 / (1 - level)))
    data = rw.read(private / "out")["county"].to_pydict()
    for name, size in (("sum_emp", 2.0), ("count", data["count_sd"][0])):
        found = bounds_of(private, tmp_path, value=f"'{name}'", **given)
        assert len(found.withheld) == 0
        for code in "ab":
            value = data[name][data["county"].index(code)]
            assert by_code(found, found.high)[code] == pytest.approx(value + size * reach)
            assert by_code(found, found.low)[code] == pytest.approx(max(value - size * reach, 0))
        assert f"hold together with {100 * level:g} % confidence." in found.assumptions[0]
    assert data["count_sd"][0] > 2 > data["sum_emp_sd"][0]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"confidence": "0.0"}, "must be between 0 and 1"),
        ({"confidence": "1.0"}, "must be between 0 and 1"),
        ({"confidence": "1"}, "must be of the kind float"),
        ({"name": "'town'"}, "has no table 'town' with a statistic 'sum_emp'"),
        ({"value": "'pay'"}, "has no table 'county' with a statistic 'pay'"),
        ({"value": "'fat'"}, "clamped or with other than Gaussian noise"),
        ({"cells": "{ place = 'town' }"}, "has no column 'town'"),
        ({"cells": "{ town = 'county' }"}, "names an unknown dimension 'town'"),
        ({"more": "1"}, "has an unknown entry 'more'"),
    ],
)
def test_a_private_table_is_refused_alone_for_each_reason(
    private: Path, tmp_path: Path, changed: dict[str, str], problem: str
) -> None:
    with pytest.raises(ParameterError, match=problem):
        bounds_of(private, tmp_path, **changed)
