"""Parts of the readers of SAS, Stata and SPSS files, without a file: formats, clocks, days, chunks and what is no value."""

import math
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from recordwise.engines.compile.records import StorageType
from recordwise.engines.sources import stat
from recordwise.errors import DataError, EngineError, SourceError
from recordwise.plan import Column, Schema
from recordwise.plan.sources import StatFiles

DATED = Schema.of(unit="id", measures={"emp": 1}, columns={"day": Column(name="day", type="date"), "county": "text"})


def head(texts: dict[str, int] | None = None, **formats: str | None) -> Any:
    """What a reader says of a file: texts by their widths, numbers by their formats."""
    texts = texts or {}
    return SimpleNamespace(
        column_names=[*formats, *texts],
        readstat_variable_types=dict.fromkeys(formats, "double") | dict.fromkeys(texts, "string"),
        original_variable_types=dict(formats),
        variable_storage_width=dict.fromkeys(formats, 8) | texts,
    )


@pytest.mark.parametrize(
    ("ending", "shown", "kind"),
    [
        ("dta", "%td", "days"),
        ("dta", "%-tdD_m_Y", "days"),
        ("dta", "%d", "days"),
        ("dta", "%tc", "milliseconds"),
        ("dta", "%tm", "time"),
        ("dta", "%TD", "number"),
        ("dta", "DATE9", "number"),
        ("dta", "%9.0g", "number"),
        ("dta", None, "number"),
        ("sas7bdat", "DATE9.", "days"),
        ("xpt", "yymmddn8.", "days"),
        ("XPT", "DATETIME20.", "seconds"),
        ("sas7bdat", "TIME8", "time"),
        ("sas7bdat", "YEAR4", "time"),
        ("sas7bdat", "%td", "number"),
        ("sas7bdat", "BEST12", "number"),
        ("sas7bdat", "", "number"),
        ("sav", "DATE11", "spss seconds"),
        ("zsav", "datetime20", "spss seconds"),
        ("por", "TIME8", "time"),
        ("sav", "F8.2", "number"),
    ],
)
def test_the_format_of_a_number_says_what_it_counts(ending: str, shown: str | None, kind: str) -> None:
    assert stat._kind(head(n=shown), "n", Path(f"t.{ending}")) == kind


def test_a_text_is_a_text_whatever_its_format() -> None:
    found = head({"t": 3})
    found.original_variable_types["t"] = "DATE9"
    assert stat._kind(found, "t", Path("t.sas7bdat")) == "text"


def test_a_chunk_has_as_many_rows_as_fit() -> None:
    found = head({"a": 100, "b": 300, "wide": 10**6}, id="", emp="")
    most = 64 * 2**20
    assert stat._rows_at_once(found, ["id", "emp"]) == 500_000
    assert stat._rows_at_once(found, ["id", "a"]) == most // (100 + 120 + 40)
    assert stat._rows_at_once(found, ["id", "emp", "a", "b"]) == most // (400 + 2 * 120 + 2 * 40)
    assert stat._rows_at_once(found, ["id", "wide"]) == 1000


@pytest.mark.parametrize(
    ("clock", "number", "day"),
    [
        ("days", 0.0, date(1960, 1, 1)),
        ("days", -1.0, date(1959, 12, 31)),
        ("days", 365.75, date(1960, 12, 31)),
        ("seconds", 86_399.0, date(1960, 1, 1)),
        ("seconds", 86_400.0, date(1960, 1, 2)),
        ("seconds", -1.0, date(1959, 12, 31)),
        ("milliseconds", 86_399_999.0, date(1960, 1, 1)),
        ("milliseconds", 86_400_000.0, date(1960, 1, 2)),
        ("spss seconds", 0.0, date(1582, 10, 14)),
        ("spss seconds", 2 * 86_400.0, date(1582, 10, 16)),
    ],
)
def test_numbers_are_days_by_their_clock(clock: str, number: float, day: date) -> None:
    assert stat._column("day", [number, None], clock).to_pylist() == [day, None]


def test_a_number_far_from_the_calendar_is_a_day_far_from_it() -> None:
    far = [1e300, math.inf, -1e300, -math.inf, 5e7, 5e7 + 1]
    found = stat._days(pa.array(far), *stat.CLOCKS["days"]).cast(pa.int32()).to_pylist()
    epoch = (date(1960, 1, 1) - date(1970, 1, 1)).days
    assert found == [epoch + 50_000_000] * 2 + [epoch - 50_000_000] * 2 + [epoch + 50_000_000] * 2
    assert stat._days(pa.array([math.nan]), *stat.CLOCKS["days"]).to_pylist() == [date(1960, 1, 1)]


def test_texts_lose_the_blanks_at_their_end_and_blanks_alone_are_missing() -> None:
    assert stat._column("t", ["a  ", " a", "  ", "", None, "a\t"], "text").to_pylist() == [
        "a", " a", None, None, None, "a\t",
    ]  # fmt: skip
    assert stat._column("n", [1.5, math.nan, None], "number").to_pylist() == [1.5, None, None]
    for kind, word in (("text", "no text"), ("number", "no number"), ("days", "no number")):
        with pytest.raises(DataError, match=word):
            stat._column("t", [b"\xff", 5] if kind == "text" else ["x"], kind)


def reading(monkeypatch: pytest.MonkeyPatch, **heads: Any) -> StatFiles:
    """Files that exist only by what is said of them."""
    monkeypatch.setattr(stat, "_head", lambda path: heads[path.stem])
    return StatFiles(tuple(Path(f"{name}.sas7bdat") for name in heads))


def test_columns_are_stored_as_their_formats_say(monkeypatch: pytest.MonkeyPatch) -> None:
    one = head({"county": 2}, id="", emp="BEST12", day="DATE9", other="TIME8")
    source = reading(monkeypatch, a=one, b=one)
    assert stat.stat_columns(source, DATED) == {
        "id": StorageType("number"),
        "emp": StorageType("number"),
        "day": StorageType("date"),
        "county": StorageType("text"),
    }
    assert stat.file_kinds(source.paths[0]) == {
        "id": "number",
        "emp": "number",
        "day": "date",
        "other": "time",
        "county": "text",
    }


@pytest.mark.parametrize(
    ("formats", "told"),
    [
        ({"emp": "DATE9", "day": "DATE9"}, "column 'emp'"),
        ({"emp": "", "day": "TIME8"}, "column 'day'"),
        ({"emp": "YEAR4", "day": "DATE9"}, "column 'emp'"),
        ({"id": "DATE9", "emp": "", "day": "DATE9"}, "column 'id'"),
    ],
)
def test_a_date_that_is_not_declared_and_a_time_that_is_none_are_refused(
    monkeypatch: pytest.MonkeyPatch, formats: dict[str, str], told: str
) -> None:
    source = reading(monkeypatch, a=head({"county": 2}, **({"id": ""} | formats)))
    with pytest.raises(SourceError, match="its format is that of a date or a time") as refused:
        stat.stat_columns(source, DATED)
    assert refused.value.source == told
    whole = Schema.of(unit="id", columns={"size": "integer"})
    with pytest.raises(SourceError, match="its format is that of a date or a time"):
        stat.stat_columns(reading(monkeypatch, a=head(id="", size="DATE9")), whole)


@pytest.mark.parametrize("changed", [{"day": "BEST12"}, {"emp": "DATE9"}, {"county": 2, "emp": ""}])
def test_files_of_different_columns_are_refused(monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any]) -> None:
    first = head({"county": 2}, id="", emp="", day="DATE9")
    second = head({"county": 2}, **({"id": "", "emp": "", "day": "DATE9"} | {"day": "", **changed}))
    for heads in ({"a": first, "b": second}, {"a": second, "b": first}, {"a": first, "b": first, "c": second}):
        with pytest.raises(SourceError, match="its files have different columns"):
            stat._kinds(reading(monkeypatch, **heads), DATED)
    with pytest.raises(SourceError, match="no column day"):
        stat._kinds(reading(monkeypatch, a=first, b=head({"county": 2}, id="", emp="")), DATED)


def test_chunks_end_where_no_column_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, Any]] = []
    chunks: list[Any] = [{"a": [1], "b": []}, {"a": [], "b": []}, {}]

    def parsed(path: Path, **options: Any) -> Any:
        given.append(options)
        return chunks[len(given) - 1], None

    monkeypatch.setattr(stat, "_parse", parsed)
    assert [stat._read_chunk(Path("t.dta"), row_limit=5) for _ in chunks] == [chunks[0], None, None]
    assert given[0] == {"disable_datetime_conversion": True, "row_limit": 5}


def batches(monkeypatch: pytest.MonkeyPatch, *, marks: list[int], stored: str = "number") -> list[pa.Table]:
    source = reading(monkeypatch, a=head({}, id=""), b=head({}, id=""))
    held = {"a": [1.0, 2.0, 3.0], "b": [4.0]}
    monkeypatch.setattr(stat, "_rows_at_once", lambda head, names: 2)
    monkeypatch.setattr(stat, "_mark", lambda path: marks.pop(0))

    def chunk(path: Path, *, usecols: list[str], row_offset: int, row_limit: int) -> Any:
        assert usecols == ["id"]
        values = held[path.stem][row_offset : row_offset + row_limit]
        return {"id": values} if values else None

    monkeypatch.setattr(stat, "_read_chunk", chunk)
    kinds: Any = {"id": StorageType(stored)}  # type: ignore[arg-type]
    return list(stat.stat_batches(source, Schema.of(unit="id"), kinds))


def test_files_are_read_chunk_by_chunk_and_must_not_change_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    found = batches(monkeypatch, marks=[1, 1, 2, 2])
    assert [each["id"].to_pylist() for each in found] == [[], [1.0, 2.0], [3.0], [4.0]]
    for marks in ([1, 2, 2, 2], [1, 1, 2, 3]):
        with pytest.raises(SourceError, match=r"changed while they were read\. Nothing was spent"):
            batches(monkeypatch, marks=marks)
    with pytest.raises(SourceError, match="changed while they were read"):
        batches(monkeypatch, marks=[1, 1, 2, 2], stored="text")


def test_what_a_reader_says_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "t.DTA"
    path.write_bytes(b"SECRET")
    with pytest.raises(SourceError, match=r"damaged, or no \.DTA file") as refused:
        stat._head(path)
    assert "SECRET" not in str(refused.value)
    with pytest.raises(EngineError):
        stat._read_chunk(path)


def test_the_head_of_a_file_is_read_without_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(stat, "_parse", lambda path, **options: given.append(options) or ("rows", "head", "more"))
    assert stat._head(Path("t.dta")) == "head"
    assert given == [{"metadataonly": True}]
