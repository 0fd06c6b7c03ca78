"""Inputs that fuzzing found, each once a defect, and each mended."""

from pathlib import Path

import pytest

import recordwise as rw
from recordwise.engines import DuckDB
from recordwise.errors import DataError, SourceError, SqlError
from recordwise.plan import Schema, parse_sql

MECHANISMS = {"*": rw.Gaussian(rho="0.1")}
SCHEMA = Schema.of(unit="id", measures={"emp": 1}, columns={"county": "text", "size": "integer"})
HEADER = "id,emp,county,size\n"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT county, COUNT(*) FROM t GROUP BY, county",
        "SELECT county, , COUNT(*) FROM t GROUP BY county",
        "SELECT COUNT(,*) FROM t",
        "SELECT COUNT(*) FROM t WHERE (,open = FALSE)",
        "SELECT county, COUNT(*) FROM t GROUP BY DISTINCT county",
        "SELECT LEFT(naics, 2 AS g, COUNT(*) FROM t GROUP BY g",
        "SELECT COUNT(*) FROM t WHERE!emp != 1",
        "SELECT COUNT(*) AS ` FROM t",
    ],
)
def test_text_that_only_one_of_two_parsers_takes_for_sql_is_refused(text: str) -> None:
    with pytest.raises(SqlError):
        parse_sql(text, mechanisms=MECHANISMS)


def test_text_that_begins_like_a_command_says_nothing_on_the_screen(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    for text in ("SET(naics, 1) AS g, COUNT(*) FROM t", "COMMENT ON x", "GRANT ALL"):
        with pytest.raises(SqlError):
            parse_sql(text, mechanisms=MECHANISMS)
    assert capfd.readouterr() == ("", "")
    assert caplog.text == ""


def csv_of(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "data, problem",
    [
        (b"id,emp,county,si\xffze\n1,2,a,3\n", "does not start with a line of UTF-8"),
        (b'"id"x,emp,county,size\n1,2,a,3\n', "does not start with a line of UTF-8"),
        (b"id,emp,emp,county,size\n1,2,a,3\n", "names a column twice"),
        (b"id,emp,EMP,county,size\n1,2,2,a,3\n", "names a column twice"),
    ],
)
def test_a_csv_file_with_a_strange_header_is_refused(tmp_path: Path, data: bytes, problem: str) -> None:
    with pytest.raises(SourceError, match=problem):
        DuckDB(csv_of(tmp_path, data), SCHEMA)


@pytest.mark.parametrize(
    "row", ["1,1_000,a,3", "1,9007199254740993,a,3", "1,9007199254740992,a,3", "1,2,a,0.4", "1,2,a,1e2", "1,0x10,a,3"]
)
def test_a_field_that_is_not_the_number_it_would_be_read_as_is_refused(tmp_path: Path, row: str) -> None:
    with DuckDB(csv_of(tmp_path, HEADER + row + "\n"), SCHEMA) as engine, pytest.raises(DataError):
        engine.validate()


def test_the_largest_number_a_csv_file_may_hold_is_read_exactly(tmp_path: Path) -> None:
    with DuckDB(csv_of(tmp_path, f"{HEADER}1,{2**53 - 1},a,3\n"), SCHEMA) as engine:
        engine.validate()
