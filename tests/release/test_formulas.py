"""No text of a published file is run by a spreadsheet, whatever stands before its sign without being seen."""

import pyarrow as pa
import pyarrow.csv
import pytest

import recordwise as rw
from recordwise.errors import ParameterError
from recordwise.postprocess.rounding import save_records
from recordwise.release.content import content_of
from recordwise.release.formats.registry import known_formats
from recordwise.release.published import Published
from recordwise.release.tables import PRIVATE, ReleasedTable

UNSEEN = (
    "\u200b", "\ufeff", "\u2060", "\u00ad", "\u200e", "\u202e", "\u061c", "\u034f", "\ufe0f", "\u115f", "\u3164", "\uffa0",
    "\u2800", "\u180e", "\x00", "\x1b", "\x7f", "\u2028", "\U000e0020", "\ufeff\u200b \u2060",
)  # fmt: skip
SIGNS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\ufe66", "\ufe62", "\ufe63", "\ufe6b", "\u2212")
FORMULAS = [f"{unseen}{sign}1+1" for unseen in ("", *UNSEEN) for sign in SIGNS]
PLAIN = ["01", "a=b", "Île", "\u00e9+", "x\u200b=1", "ü-1", "1\ufeff@x", "日本=1"]


def content(keys, words=None):
    columns = {name: pa.array(values, pa.string()) for name, values in keys.items()}
    rows = len(next(iter(columns.values())))
    data = pa.table(columns | {"emp": pa.array([7] * rows), "emp_sd": pa.array([1.0] * rows)})
    table = ReleasedTable(name="t", keys=tuple(keys), variables=("emp",), data=data)
    return content_of(Published({"dataset": "d"}), [table], words or rw.Labels(), privacy_label=PRIVATE)


def test_a_formula_behind_letters_that_are_not_seen_has_an_apostrophe_in_csv(tmp_path) -> None:
    held = content({"county": [*FORMULAS, *PLAIN]})
    kind = known_formats()["csv"]
    kind.write(held, tmp_path / "t.csv")
    options = pyarrow.csv.ConvertOptions(column_types={"county": pa.string()})
    parsing = pyarrow.csv.ParseOptions(newlines_in_values=True)
    found = pyarrow.csv.read_csv(tmp_path / "t.csv", convert_options=options, parse_options=parsing)
    assert found["county"].to_pylist() == [*(f"'{each}" for each in FORMULAS), *PLAIN]
    assert kind.same(held, tmp_path / "t.csv")


@pytest.mark.parametrize("name", ["sdmx-csv", "cbp"])
def test_layouts_without_room_for_an_apostrophe_refuse_a_formula(name) -> None:
    kind = known_formats()[name]
    assert kind.problem(content({"naics": PLAIN})) is None
    for formula in FORMULAS:
        assert "would run some of its values as formulas" in str(kind.problem(content({"naics": ["01", formula]})))


@pytest.mark.parametrize("keys", [{"county": "01=A1"}, {"county": "=1001"}, {"state": "=1"}, {"naics": "-1"}])
def test_no_code_of_that_layout_is_or_becomes_a_formula(keys) -> None:
    """A county is the last three letters of its code and a state the first two, so that a sign in the middle can come first."""
    problem = known_formats()["cbp"].problem(content({name: [value] for name, value in keys.items()}))
    assert "would run some of its values as formulas" in str(problem)


def test_the_total_of_all_industries_is_no_formula() -> None:
    assert known_formats()["cbp"].problem(content({"state": ["01"], "total": ["00"]})) is None


def test_units_in_sdmx_are_no_formulas() -> None:
    words = rw.Labels(units={"emp": "\u200b=employees"})
    problem = known_formats()["sdmx-csv"].problem(content({"county": ["01"]}, words))
    assert "would run some of its values as formulas" in str(problem)


@pytest.mark.parametrize("formula", ["=1+1", "\u200b@x"])
def test_records_as_csv_with_a_formula_are_refused_and_as_parquet_written(tmp_path, formula) -> None:
    records = pa.table({"county": ["01", formula], "n": [1, -2]})
    with pytest.raises(ParameterError, match="a spreadsheet would run some values of 'county'"):
        save_records(records, tmp_path / "t.csv")
    assert not (tmp_path / "t.csv").exists()
    save_records(records, tmp_path / "t.parquet")
    save_records(records.slice(0, 1), tmp_path / "t.csv")
