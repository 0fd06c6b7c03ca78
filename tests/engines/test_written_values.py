"""Numbers, dates and headers as files write them: what Python's own parsers read, or refused, and never something near."""

import csv
import io
import random
from collections.abc import Iterator
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from sqlglot import exp

from recordwise.engines import DuckDB
from recordwise.engines.compile.expressions import column
from recordwise.engines.compile.records import SOURCE, any_broken, checks, rows_select
from recordwise.errors import DataError, ParameterError, SourceError
from recordwise.plan import Column, Measure, Schema
from recordwise.plan.schema import DateFormat, NumberFormat

SEED = 38
STEP, BOUND = Fraction(1, 100), 10**9
FORMATS: list[dict[str, str]] = [
    {"thousands": ",", "prefix": "$"},
    {"thousands": ".", "decimal": ",", "suffix": "€"},
    {"thousands": "'", "prefix": "Fr."},
    {"thousands": " ", "decimal": ","},
    {"thousands": "\N{NARROW NO-BREAK SPACE}", "decimal": ",", "suffix": "EUR"},
    {"decimal": ",", "prefix": "(a|b)[c]"},
    {"thousands": "_", "prefix": "R$", "suffix": "%"},
]
DATES = ["%d.%m.%Y", "%m/%d/%Y", "%Y%m%d", "%d-%b-%Y", "%Y-%m-%d %H:%M:%S", "%d %m %Y", "%m|%d|%Y (x)"]
LETTERS = "0123456789.,'$€ +-eExX_%()inf\t\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{ARABIC-INDIC DIGIT FIVE}/:|\\"


def python_number(text: str, written: dict[str, str]) -> int | None:
    """The steps of a number by Python's float, letter by letter and without a pattern; None if it is none, or out of range."""
    form = {"thousands": "", "decimal": ".", "prefix": "", "suffix": ""} | written
    rest = text.strip(" ")
    signs = ""
    if rest[:1] in ("+", "-"):
        signs, rest = rest[0], rest[1:]
    if form["prefix"] and rest.startswith(form["prefix"]):
        rest = rest[len(form["prefix"]) :].lstrip(" ")
        if not signs and rest[:1] in ("+", "-"):
            signs, rest = rest[0], rest[1:]
    if form["suffix"] and rest.endswith(form["suffix"]):
        rest = rest[: -len(form["suffix"])].rstrip(" ")
    whole, point, part = rest.partition(form["decimal"])
    groups = whole.split(form["thousands"]) if form["thousands"] else [whole]
    if not all(each in "0123456789" for each in "".join(groups) + part) or not (whole + part):
        return None
    if point and not whole and not part:
        return None
    if len(groups) > 1 and (not 1 <= len(groups[0]) <= 3 or any(len(each) != 3 for each in groups[1:])):
        return None
    value = float(f"{signs}{''.join(groups) or '0'}.{part or '0'}")
    steps = round(Fraction(value) / STEP)
    return steps if abs(value) <= BOUND and float(steps * STEP) == value else None


def python_date(text: str, written: str) -> date | None:
    """The date by Python's strptime, which must have read plain digits and no other blanks."""
    try:
        return datetime.strptime(text.strip(" "), written).date()
    except ValueError:
        return None


def numbers(made: random.Random, written: dict[str, str], count: int) -> Iterator[str]:
    """Half of them well written, the others with one to three letters changed."""
    for _ in range(count):
        digits = f"{made.randrange(10 ** made.randrange(1, 11)):,}".replace(",", written.get("thousands", ""))
        part = made.choice(["", "5", "50", "00", "125", "000000000000000000001"])
        signs, before = made.choice(["", "", "-", "+"]), made.choice(["", written.get("prefix", "")])
        after = made.choice(["", written.get("suffix", "")])
        blank = made.choice(["", "", " "])
        text = f"{signs}{before}{blank if before else ''}{digits}"
        text += (written.get("decimal", ".") + part if part else "") + (blank + after if after else "")
        yield made.choice(["", "  "]) + changed(made, text) + made.choice(["", " "])


def misgrouped(written: dict[str, str]) -> list[str]:
    """Thousands that are no groups of three digits."""
    sign = written.get("thousands")
    return [text.replace(",", sign) for text in ("1,23", "1,2345", "12,34,567", "1,,234", "1,234,")] if sign else []


def dates(made: random.Random, written: str, count: int) -> Iterator[str]:
    for _ in range(count):
        day = date.fromordinal(made.randrange(1, date.max.toordinal()))
        text = datetime(day.year, day.month, day.day, made.randrange(24), made.randrange(60)).strftime(written)
        text = text.replace(f"{day.year}", f"{day.year:04}") if day.year < 1000 else text
        text = text.upper() if made.random() < 0.2 else text.replace("0", "", 1) if made.random() < 0.2 else text
        text = text.replace(f"{day.day:02}", f"{made.randrange(28, 33)}", 1) if made.random() < 0.2 else text
        yield changed(made, text)


def changed(made: random.Random, text: str) -> str:
    for _ in range(made.choice([0, 0, 0, 1, 1, 2, 3])):
        at = made.randrange(len(text) + 1)
        text = text[:at] + made.choice(["", *LETTERS]) + text[at + made.randrange(2) :]
    return text or "0"


def read(opens: Any, folder: Path, schema: Schema, values: list[str]) -> list[tuple[Any, bool]]:
    """What an engine makes of each value, and whether it refuses it."""
    with (folder / "v.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([["id", "v"], *enumerate(values)])
    with opens(folder / "v.csv", schema) as engine:
        with pytest.raises(DataError) as caught:
            engine.validate()
        assert not any(value in str(caught.value) for value in values if len(value) > 6)
        broken = exp.Coalesce(this=any_broken(list(checks(schema, engine._stored))), expressions=[exp.false()])
        tree = rows_select(schema, engine._stored).select(exp.alias_(broken, "broken")).from_(SOURCE)
        rows = engine._passes.store.of_records(tree).to_pylist()
    assert len(rows) == len(values)
    rows.sort(key=lambda row: int(row["id"]))
    return [(row["v"], row["broken"]) for row in rows]


def compare_numbers(opens: Any, folder: Path, count: int) -> None:
    made = random.Random(SEED)
    for written in FORMATS:
        values = [*misgrouped(written), *numbers(made, written, count)]
        measure = Measure.of("v", step=STEP, bound=BOUND, signed=True, number=written)
        found = read(opens, folder, Schema.of(unit="id", measures={"v": measure}), values)
        wanted = [python_number(value, written) for value in values]
        for value, (steps, broken), expected in zip(values, found, wanted, strict=True):
            assert (None if broken else steps) == expected, (written, value)
        known = sum(each is not None for each in wanted)
        assert count / 5 < known < count  # well written and not, or nothing was compared


def compare_dates(opens: Any, folder: Path, count: int) -> None:
    made = random.Random(SEED)
    for written in DATES:
        values = list(dates(made, written, count))
        opened = Column(name="v", type="date", date=written)
        found = read(opens, folder, Schema.of(unit="id", columns={"v": opened}), values)
        both = 0
        for value, (day, broken) in zip(values, found, strict=True):
            expected = python_date(value, written)
            assert broken or day == expected, (written, value)
            both += not broken
        assert count / 5 < both < count


@pytest.mark.costly
def test_hostile_numbers_are_read_as_python_reads_them_or_refused(tmp_path):
    compare_numbers(DuckDB, tmp_path, 150)


@pytest.mark.costly
def test_hostile_dates_are_read_as_python_reads_them_or_refused(tmp_path):
    compare_dates(DuckDB, tmp_path, 100)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_thousand_hostile_values_on_both_engines(opens, tmp_path):
    compare_numbers(opens, tmp_path, 900)
    compare_dates(opens, tmp_path, 600)


NAMES = [
    "a",
    "NET.PROFIT",
    "net profit",
    "Net income (EUR)",
    "x-y",
    "Größe",
    'say "x"',
    "a;b",
    "select",
    "1st",
    "é",
    "a,b",
]


def compare_headers(opens: Any, folder: Path, count: int) -> None:
    """The column that a name means, as Python's csv module reads the line; blanks around names do not count."""
    made = random.Random(SEED)
    read_ones = 0
    for _ in range(count):
        names = [made.choice(NAMES) for _ in range(3)]
        written = [
            made.choice(["", " ", "\t", "\N{NO-BREAK SPACE}"]) + name + made.choice(["", "  "]) for name in names
        ]
        written = [changed(made, name) if made.random() < 0.2 else name for name in written]
        text = io.StringIO()
        csv.writer(text, quoting=csv.QUOTE_ALL).writerows([["id", *written], [7, 1, 10, 100]])
        (folder / "h.csv").write_text(text.getvalue(), encoding="utf-8")
        _, *header = next(csv.reader(io.StringIO(text.getvalue())))
        meant = [name.strip() for name in header]
        alone = len({each.casefold() for each in ("id", *meant)}) == 4
        for name, value in zip(names, (1, 10, 100), strict=True):
            try:
                with opens(folder / "h.csv", Schema.of(unit="id", measures={name: 1})) as engine:
                    engine.validate()
                    (row,) = engine._passes.store.of_records(exp.select(column(name)).from_("records")).to_pylist()
            except (SourceError, ParameterError):
                continue
            assert alone
            assert row[name] == (1, 10, 100)[meant.index(name)], header
            read_ones += row[name] == value
    assert read_ones > count / 2


@pytest.mark.costly
def test_hostile_headers_mean_the_column_that_python_finds_or_are_refused(tmp_path):
    compare_headers(DuckDB, tmp_path, 12)


@pytest.mark.slow
def test_many_hostile_headers(opens, tmp_path):
    compare_headers(opens, tmp_path, opens.examples(170))


def test_a_name_that_was_declared_with_its_blanks_is_still_found(tmp_path):
    (tmp_path / "h.csv").write_text("id, emp \n1,5\n")
    for name in (" emp ", "emp"):
        with DuckDB(tmp_path / "h.csv", Schema.of(unit="id", measures={name: 1})) as engine:
            engine.validate()
            assert engine._connection.duckdb.sql("SELECT * FROM records").fetchall() == [("1", 5)]


@pytest.mark.parametrize(
    "written, told",
    [
        ({"thousands": ","} | {"decimal": ","}, "is the decimal sign"),
        ({"thousands": "-"}, "must be a comma"),
        ({"decimal": ";"}, "must be '.' or ','"),
        ({"prefix": "1$"}, "no digit"),
        ({"prefix": "-"}, "no digit"),
        ({"prefix": " $"}, "without blanks"),
        ({"suffix": "."}, "not only separators"),
        ({"prefix": 5}, "must be text"),
    ],
)
def test_a_number_format_that_reads_a_text_in_two_ways_is_refused(written, told):
    with pytest.raises(ParameterError, match=told):
        NumberFormat(**written)


@pytest.mark.parametrize(
    "written, told",
    [
        ("%d.%m.%y", "century"),
        ("%d.%m", "once each"),
        ("%d.%m.%Y %Y", "once each"),
        ("%d.%m.%b.%Y", "once each"),
        ("%j %Y", "may hold"),
        (5, "may hold"),
    ],
)
def test_a_date_format_that_does_not_say_the_day_is_refused(written, told):
    with pytest.raises(ParameterError, match=told):
        DateFormat(written)


def test_what_cannot_be_read_is_counted_and_the_message_says_what_to_declare(tmp_path):
    (tmp_path / "v.csv").write_text("id,amount,opened\n1,$5.00,31.12.2024\n2,$7.00,1.1.2025\n3,,\n")
    schema = Schema.of(
        unit="id",
        measures={"amount": Measure.of("amount", null="zero")},
        columns={"opened": Column(name="opened", type="date", null="category")},
    )
    with DuckDB(tmp_path / "v.csv", schema) as engine, pytest.raises(DataError) as caught:
        engine.validate()
    told = str(caught.value)
    assert "'amount' cannot be read as a number in 2 rows" in told
    assert "'opened' cannot be read as date in 2 rows" in told
    assert 'number = { thousands = ",", decimal = ".", prefix = "$" }' in told
    assert 'date = "%d.%m.%Y"' in told
    assert "$5" not in told.replace('"$"', "")


def test_numbers_of_sqlite_are_not_read_by_a_format_for_text(tmp_path):
    """As text 1.125 would be 1,125 where a point separates thousands."""
    import sqlite3

    from recordwise.plan.sources import Database

    with sqlite3.connect(tmp_path / "t.sqlite") as made:
        made.execute("CREATE TABLE t (id INTEGER, v)")
        made.executemany("INSERT INTO t VALUES (?, ?)", [(1, "1.125"), (2, 1.125), (3, 7)])
    made.close()
    measure = Measure.of("v", step="0.001", number={"thousands": ".", "decimal": ","})
    schema = Schema.of(unit="id", measures={"v": measure})
    with DuckDB(Database(tmp_path / "t.sqlite", table="t"), schema) as engine, pytest.raises(DataError) as caught:
        engine.validate()
    assert [(each.column, each.count) for each in caught.value.problems] == [("v", 2)]
