"""A CSV file: whatever is accepted has the totals that Python's own reader and decimal numbers find in it."""

import csv
import io
import re
from collections import Counter
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import recordwise as rw
from fuzz.mutation import mutated
from fuzz.target import ACCEPTED, WrongError
from recordwise.engines import DuckDB
from recordwise.plan import Column, Measure, Plan, Schema

SCHEMA = Schema.of(
    unit="id",
    firm="firm",
    measures={"emp": 1, "pay": "0.01", "tax": Measure.of("tax", null="zero")},
    columns={
        "county": Column(name="county", null="category"),
        "size": Column(name="size", type="integer", null="category"),
        "open": Column(name="open", type="boolean", null="category"),
        "day": Column(name="day", type="date", null="category"),
    },
)
NAMES = ["id", "firm", "county", "size", "open", "day", "emp", "pay", "tax"]
NOISE = rw.Gaussian(sigma=10)
WORDS = [word.encode() for word in (
    "1e3", "0.1", "-1", "+5", " 7 ", "1_000", "1,000", "0x1F", "NaN", "inf", "1.5", "9007199254740993", '"a""b"',
    '"x\ny"', '""', "NULL", "true", "T", "\\N",
    "2024-02-29", "2023-02-29", "2024-12-31 10:00", "2024-12-31Z", "31.12.2024", "0000-01-01", "2024-1-1",
    "1.005", "0.30", "1E-2", "١", "－1", ".5", "5.", "1e", "00012", "id,firm", "\ufeff", "#", "2.50000000000000000001",
)]  # fmt: skip
PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class CsvTable:
    def __init__(self) -> None:
        self._path = Path(mkdtemp()) / "records.csv"

    def seeds(self) -> list[bytes]:
        return [self.fresh(Random(f"seed {number}")) for number in range(30)]

    def fresh(self, rng: Random) -> bytes:
        text = io.StringIO()
        out = csv.writer(
            text,
            lineterminator=rng.choice(("\n", "\n", "\r\n")),
            quoting=rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)),
        )
        out.writerow(NAMES)
        for number in range(rng.randint(0, 12)):
            county, emp = (
                rng.choice(("01", "1", "é", "a,b", 'q"q', "")),
                rng.choice(("0", "7", "49", "50", "1000000", str(rng.randrange(2**53)))),
            )
            pay = f"{rng.randrange(10**6) / 100:.2f}"
            out.writerow(
                [
                    number,
                    rng.randrange(5),
                    county,
                    rng.choice(("", "3", "-1", "0")),
                    rng.choice(("true", "false", "")),
                    rng.choice(("", "2024-12-31", "2005-01-01", "0001-01-01", "2020-02-29T23:59:59.5")),
                    emp,
                    pay,
                    rng.choice(("", "0", "12")),
                ]
            )
        return text.getvalue().encode()

    def mutate(self, rng: Random, data: bytes, other: bytes) -> bytes:
        if rng.random() < 0.4:
            return _other_field(rng, data)
        return mutated(rng, data, other, WORDS)

    def check(self, data: bytes) -> str:
        self._path.write_bytes(data)
        with DuckDB(self._path, SCHEMA, threads=1) as engine:
            found = [self._totals(each) for each in engine.totals(PLAN)]
        known = reference(data)
        for ours, theirs in zip(found, known):
            if ours != theirs:
                raise WrongError("the totals differ from those of the csv module and decimal numbers")
        return ACCEPTED

    def _totals(self, found: Any) -> tuple[int, ...]:
        return tuple(int(values[0]) for values in found.exact.reveal().totals.values())


def _asked(condition: str | None) -> Any:
    asked = rw.query() if condition is None else rw.query().where(condition)
    return asked.count(NOISE).sum("emp", NOISE).sum("pay", NOISE).sum("tax", NOISE)


CONDITIONS = (
    None,
    "county = '01' OR size > 0 OR open = TRUE OR county IS NULL AND emp > 49",
    "EXTRACT(ISOYEAR FROM day) = 2004 OR EXTRACT(MONTH FROM day) = 2 OR tax = 0",
)
PLAN = Plan(schema=SCHEMA, queries=tuple(_asked(condition) for condition in CONDITIONS))


def reference(data: bytes) -> list[tuple[int, ...]]:
    """Count, sum of emp, sum of pay in cents and sum of tax, for each of the queries."""
    try:
        rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))
    except (csv.Error, UnicodeDecodeError):
        raise WrongError("a file was accepted that Python's reader takes for no CSV") from None
    header = rows[0]
    filled = [row for row in rows[1:] if row]
    # One empty field at the end of a line is a delimiter at the end of a line, which changes nothing.
    if any(len(row) != len(header) and row[len(header) :] != [""] for row in filled):
        raise WrongError("a table with a row of another length was accepted")
    records = [dict(zip(header, row)) for row in filled]
    if any(count > 1 for count in Counter(record["id"] for record in records).values()):
        raise WrongError("a table with a repeated id was accepted")
    return [_sums(records), *(_sums([each for each in records if test(each)]) for test in (chosen, dated))]


def chosen(record: dict[str, str]) -> bool:
    """The second condition, read plainly."""
    size = record["size"] != "" and whole(record["size"]) > 0
    true = record["open"].lower() in ("true", "t", "1", "yes", "y")
    return record["county"] == "01" or size or true or (record["county"] == "" and steps(record["emp"], 1) > 49)


def dated(record: dict[str, str]) -> bool:
    """The third condition; a date is ten characters, a time after it is cut off."""
    text, tax = record["day"], steps(record["tax"] or "0", 1)
    if text and not re.fullmatch(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?", text, re.ASCII):
        raise WrongError("a field was read as a date that is none")
    try:
        day = date.fromisoformat(text[:10]) if text else None
    except ValueError:
        raise WrongError("a day was accepted that no calendar has") from None
    return tax == 0 or (day is not None and (day.isocalendar().year == 2004 or day.month == 2))


def _sums(rows: list[dict[str, str]]) -> tuple[int, ...]:
    return (
        len(rows),
        sum(steps(each["emp"], 1) for each in rows),
        sum(steps(each["pay"], 100) for each in rows),
        sum(steps(each["tax"] or "0", 1) for each in rows),
    )


def steps(text: str, a_unit: int) -> int:
    """The whole number of steps whose nearest float is the float nearest to the text (T-LATTICE)."""
    if not PLAIN.fullmatch(text.strip(" ")):
        raise WrongError("a field was read as a number that is none")
    value = float(text)
    found = round(Fraction(value) * a_unit)
    if (
        found / a_unit != value
        or not 0 <= found < 2**53
        or (a_unit == 1 and "e" not in text.lower() and Decimal(text) > 2**53)
    ):
        raise WrongError("a number off its lattice or beyond its bound was accepted")
    return found


def whole(text: str) -> int:
    if not re.fullmatch(r" *[+-]?[0-9]+ *", text):
        raise WrongError("a field was read as a whole number that is none")
    return int(text)


def _other_field(rng: Random, data: bytes) -> bytes:
    """Another word in one field."""
    lines = data.split(b"\n")
    place = rng.randrange(len(lines))
    fields = lines[place].split(b",")
    fields[rng.randrange(len(fields))] = rng.choice(WORDS)
    lines[place] = b",".join(fields)
    return b"\n".join(lines)
