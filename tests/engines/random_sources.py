"""Random tables for the tests of sources: what is declared, records that fit it, and what is then done to some of them.

A case is made by its number alone, so a case that fails is made again by that number. A plain case has records of one kind of file
with types that fit; any other has oddities on top: values, types and files as nobody should write them, and somebody does.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from independent_reader import Declared, Files

SEED = 34
KINDS = ("parquet",) * 4 + ("csv",) * 4 + ("hive", "arrow", "sqlite", "sqlite")
TOWNS = ("Ulm", "Köln", "a;b", 'c"d', "x,y", "New York", "01", "1", "Zq-town", "none")
DAYS = tuple(
    map(date.fromisoformat, ("2023-12-31 2024-01-01 2024-02-29 2024-03-31 2024-04-01 1969-12-31 1970-01-01").split())
)
NARROW = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
STYLES = {
    "id": ("int64", "int64", "int32", "uint64", "text", "text", "coded", "float64", "decimal0"),
    "measure": ("int64", "int64", *NARROW, "uint64", "float32", "float64", "decimal0", "decimal2", "text"),
    "fraction": ("float64", "float64", "decimal2", "text"),
    "text": ("text", "text", "large", "coded"),
    "integer": ("int64", *NARROW, "float64", "text"),
    "boolean": ("bool", "bool", "text"),
    "date": ("date32", "ms", "us", "text"),
}
"""How a column may be stored where nothing is odd."""
ODD_STYLES = {
    "id": (*STYLES["id"], "float32", "decimal2", "bool", "date32", "us", "null", "binary"),
    "measure": (*STYLES["measure"], "coded", "bool", "null", "date32", "binary", "halffloat"),
    "fraction": (*STYLES["fraction"], "float32", "int64", "coded", "null", "bool"),
    "text": (*STYLES["text"], "int64", "float64", "binary", "bool", "date32", "null", "decimal2"),
    "integer": (
        *STYLES["integer"],
        "uint64",
        "float32",
        "float64",
        "float64",
        "decimal2",
        "bool",
        "coded",
        "null",
        "date32",
    ),
    "boolean": (*STYLES["boolean"], "int64", "int8", "int8", "float64", "coded", "null"),
    "date": (*STYLES["date"], "date64", "s", "ns", "zone", "zone", "zone", "zone", "coded", "int64", "null", "int96"),
}
NUMBERS = (
    "1_000 0x10 -0.4 1.6 1e3 +5 NaN nan inf -Infinity ５ ٣ 007 -0 1. .5 1e400 1e-400 5d 1f 0b1 1,5 1,000 --1 0x1p3 1E+2 -3 - . e5 "
    "1.0000000000000000000001 9007199254740993 9007199254740992 0.30000000000000004 2.5 1e 1e+ 4503599627370497.5 1__0 ½ ² −5 3% $4 "
    "1_000 1_0 ５ ٣ ７ -0.4 1.6 1.6 92233720368547758070 9223372036854775807 9223372036854775808 -9223372036854775808 4.9999999999999999999 TRUE 1/2 1e22"
).split() + [
    " 7 ",
    "7\t",
    "\t7",
    "7\u00a0",
    "7\n",
    "1 000",
    "9" * 40,
    "0" * 60 + "5",
    "1" + "0" * 400,
    "\ufeff5",
    " ",
    "7\0",
]
ODD = {
    "measure text": NUMBERS,
    "integer text": NUMBERS,
    "id text": [*NUMBERS, "1.0", "01", "1", "1 ", " 1", "é", "e\u0301", "Zq-id", "ZQ-ID"],
    "boolean text": "T F yes Y no N 1 0 2 tRuE on off wahr 10 ｔ 1.0 -1 TRUE\t nil".split() + [" true", "true "],
    "date text": "2024-02-30 2024-1-1 0000-01-01 2024-01-31T23:59 2024-01-31T23:59Z 2024-01-31+02:00 20240131 12024-01-31 infinity "
    "epoch now 2024-12-31T24:00:00 -2024-01-31 2024/01/31 31.01.2024 2024-01 ２０２４-01-31 0001-01-01 9999-12-31".split()
    + [
        "2024-01-31 23:59:59.999999999",
        " 2024-01-31",
        "2024-01-31 ",
        "2024-01-31 BC",
        "0044-03-15 (BC)",
        "2024-03-31 23",
    ],
    "text text": [
        "NULL",
        "null",
        "NA",
        "\\N",
        " Ulm",
        "Ulm ",
        "ULM",
        "é",
        "e\u0301",
        "a\nb",
        "a\r\nb",
        "\ufeffUlm",
        '"',
        '""',
        "#",
        "'",
        "",
    ]
    + [
        " Ulm",
        "Ulm ",
        "x,y ",
        "x\0y",
        "\u200b",
        "a\\b",
        "\\",
        '\\"',
        "İ",
        "ı",
        "ß",
        "NaN",
        "true",
        "\x85",
        "a\u2028b",
        "😀",
        "-",
        "=1+1",
        "\t",
        "a\rb",
        "1.0",
    ],
    "measure float": [
        1.6,
        -0.4,
        float("nan"),
        float("inf"),
        -0.0,
        2.0**53 + 2,
        0.1 + 0.2,
        1e300,
        16777217.0,
        -3.0,
        2.5,
        5e-324,
        1e17,
    ],
    "integer float": [
        1.6,
        2.5,
        1.5,
        0.4,
        1.6,
        -0.4,
        float("nan"),
        float("-inf"),
        -0.0,
        2.0**63,
        -(2.0**63),
        1e300,
        16777217.0,
        0.5,
        2.0**53 + 2,
    ],
    "id float": [1.5, float("nan"), -0.0, 2.0**53, float("inf"), 1.0, 16777217.0, 0.1],
    "measure whole": [-3, 2**53 + 1, 2**62, 127, 255, 2**63 - 1, 2**64 - 1, -(2**63), 1001],
    "integer whole": [-(2**63), 2**63 - 1, 2**64 - 1, 255, -128, 2**53 + 1],
    "id whole": [2**53 + 1, 2**53, -1, 2**63 - 1, 2**64 - 1, 1],
    "measure decimal": ["1.6", "-0.4", "0.01", "-3", "2.5", "9007199254740993"],
    "integer decimal": ["1.6", "-0.4", "2.5", "3.00"],
    "id decimal": ["1.6", "1.00", "2.5", "9007199254740993"],
    "date day": ["0001-01-01", "9999-12-31", "1582-10-10", "1969-12-31"],
}
"""What may stand in a column by its role and how it is stored."""


@dataclass
class Stored:
    """A column of a part: how it is stored, and what is written there."""

    style: str
    values: list[Any]


@dataclass
class Draft:
    """A table on its way into files."""

    chance: random.Random
    kind: str
    declared: tuple[Declared, ...]
    parts: list[dict[str, Stored]]
    options: dict[str, Any]
    deeds: list[Any] = field(default_factory=list)
    """What is still to be done to a file as it is written: its part, a name, and what else it takes."""
    folders: dict[str, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A made table, what is declared about it, and what is asked."""

    number: int
    files: Files
    declared: tuple[Declared, ...]
    keys: dict[str, list[Any]]
    least: Fraction
    """The condition that is asked: emp of at least so much."""
    odd: tuple[str, ...]
    """What was done to it; nothing to a plain case."""
    marks: frozenset[str]
    """Texts from its records that no message may contain."""


def role_of(declared: Declared) -> str:
    return "fraction" if declared.role == "measure" and declared.step.denominator > 1 else declared.role


def family(style: str) -> str:
    if style in ("text", "large", "coded"):
        return "text"
    known = {"float32": "float", "float64": "float", "halffloat": "float", "decimal0": "decimal", "decimal2": "decimal"}
    days = dict.fromkeys(("date32", "date64", "s", "ms", "us", "ns", "zone", "int96"), "day")
    return (known | days).get(style, "whole" if style.lstrip("u").startswith("int") else style)


def declaration(chance: random.Random) -> tuple[Declared, ...]:
    step = Fraction(chance.choice((1, 1, 1, 1, 2, 5)))
    bound = Fraction(chance.choice((2**53, 2**53, 20_000, 10**17)))
    emp = Declared("emp", "measure", step, bound * step, chance.random() < 0.3, chance.random() < 0.3)
    small = Fraction(chance.choice(("0.01", "0.01", "0.1", "0.05", "1/4", "1/3", "1000")))
    pay = Declared("pay", "measure", small, small * 2**53, chance.random() < 0.3, chance.random() < 0.3)
    roles = {"town": "text", "size": "integer", "flag": "boolean", "opened": "date"}
    chosen = chance.sample(sorted(roles), chance.choice((1, 2, 2, 3)))
    columns = [Declared(name, roles[name], null=chance.random() < 0.5) for name in chosen]
    return (Declared("id", "id"), emp, *([pay] if chance.random() < 0.6 else []), *columns)


def fitting(made: Draft, declared: Declared) -> Any:
    """A value that the column may hold."""
    chance = made.chance
    if declared.null and chance.random() < 0.15:
        return None
    if declared.role == "measure":
        steps = chance.choice((0, 1, 2, 3, 7, 40, 120, 999, 7703))
        if declared.bound > declared.step * 2**53 and made.kind not in ("csv", "sqlite") and chance.random() < 0.1:
            steps = 2**53 + 1
        return declared.step * steps * (chance.choice((1, -1)) if declared.signed else 1)
    pools = {"text": TOWNS, "integer": (0, 1, 2, 3, 12, -4), "boolean": (True, False), "date": DAYS}
    return chance.choice(pools[declared.role])


def spelled(value: Any, comma: bool = False) -> str:
    """A value as text, as most programs write it."""
    if isinstance(value, Fraction):
        text = str(value.numerator) if value.denominator == 1 else repr(float(value))
        return text.replace(".", ",") if comma else text
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_stored(chance: random.Random, value: Any, style: str, comma: bool = False) -> Any:
    """A fitting value in the form that a style holds; what the style cannot hold is left to the writer."""
    kind = family(style)
    if value is None or style == "null":
        return None
    if kind == "text":
        return spelled(value, comma)
    if kind == "day" and isinstance(value, date):
        when = chance.choice((time(0), time(23, 59, 59), time(12, 30)))
        return value if style in ("date32", "date64") else datetime.combine(value, when)
    if isinstance(value, (Fraction, int)) and not isinstance(value, bool):
        exact = Fraction(value)
        whole = int(exact) if exact.denominator == 1 else None
        decimal = Decimal(exact.numerator) / Decimal(exact.denominator)
        return {"whole": whole, "float": float(exact), "decimal": decimal, "bool": bool(exact)}.get(kind, value)
    if isinstance(value, bool):
        return {"whole": int(value), "float": float(value)}.get(kind, value)
    return {"binary": str(value).encode(), "bool": bool(value)}.get(style, value)


def draft(chance: random.Random, kind: str) -> Draft:
    """Records that fit, in one to four parts, each column stored in one way."""
    declared = declaration(chance)
    options = csv_options(chance, declared) if kind == "csv" else {}
    sizes = [chance.randrange(1, 6) for _ in range(1 if kind == "sqlite" else chance.choice((1, 2, 2, 3, 3, 4)))]
    numbers = (
        list(range(1, sum(sizes) + 1)) if chance.random() < 0.7 else chance.sample(range(40_000, 48_000), sum(sizes))
    )
    chance.shuffle(numbers)
    made = Draft(chance, kind, declared, [], options)
    styles = {each.name: style_for(made, each) for each in declared}
    prefix = "Zq" if family(styles["id"]) == "text" and chance.random() < 0.3 else ""
    made.parts = [{} for _ in sizes]
    for each in declared:
        if each.role == "id":
            values = [f"{prefix}{number}" if prefix else number for number in numbers]
        else:
            values = [fitting(made, each) for _ in numbers]
        whole, start = stored(made, each, values, styles[each.name]), 0
        for part, size in zip(made.parts, sizes):
            part[each.name] = Stored(whole.style, whole.values[start : start + size])
            start += size
    if kind == "hive":
        lay_out(made)
    return made


def style_for(made: Draft, declared: Declared) -> str:
    if made.kind == "csv":
        return "text"
    if made.kind == "sqlite":
        usual = {"id": ("int64", "text"), "measure": ("int64", "float64", "text"), "fraction": ("float64", "text")}
        usual |= {"text": ("text",), "integer": ("int64", "float64"), "boolean": ("int64", "text"), "date": ("text",)}
        return made.chance.choice(usual[role_of(declared)])
    styles = STYLES[role_of(declared)]
    if declared.role == "measure" and declared.step.denominator in (3, 4):
        styles = ("float64", "text")
    return made.chance.choice(styles)


def stored(made: Draft, declared: Declared, values: list[Any], style: str) -> Stored:
    """The values in that style, or in one that holds them all."""
    if family(style) in ("whole", "float") and style not in ("int64", "float64"):
        numbers = [value for value in values if isinstance(value, (Fraction, int))]
        if any(not -128 <= value <= 127 or (value < 0 and style.startswith("u")) for value in numbers):
            style = "int64"
    if style in ("float64", "text") and any(isinstance(value, Fraction) and abs(value) > 2**53 for value in values):
        style = "int64"
    if style == "uint64" and any(isinstance(value, (Fraction, int)) and value < 0 for value in values):
        style = "int64"
    comma = made.options.get("decimal") == ","
    return Stored(style, [as_stored(made.chance, value, style, comma) for value in values])


def csv_options(chance: random.Random, declared: tuple[Declared, ...]) -> dict[str, Any]:
    delimiter = chance.choice((",", ",", ";", "\t", "|"))
    encodings = ("utf-8",) * 5 + ("latin-1", "cp1252", "utf-16", "utf-16-le", "utf-8-sig")
    decimal = "," if delimiter != "," and chance.random() < 0.3 else "."
    return {"delimiter": delimiter, "decimal": decimal, "encoding": chance.choice(encodings)}


def lay_out(made: Draft) -> None:
    """One or two conditional columns move from the files into the names of folders, one value a part."""
    moved = [each for each in made.declared if each.role in ("text", "integer", "boolean", "date")]
    moved = moved[: made.chance.choice((1, 1, 2))]
    for each in moved:
        made.folders[each.name] = [fitting(made, each) for _ in made.parts]
        for part in made.parts:
            del part[each.name]


def make(number: int, place: Path, write: Callable[[Draft, Path], Files], spoil: Callable[[Draft], list[str]]) -> Case:
    """The case of that number, written into an empty folder."""
    chance = random.Random(f"{SEED} {number}")
    made = draft(chance, chance.choice(KINDS))
    odd = spoil(made)
    files = write(made, place)
    seen = {
        each.name: [value for part in made.parts if each.name in part for value in part[each.name].values]
        for each in made.declared
    }
    for name, values in made.folders.items():
        seen[name] += values
    texts = {str(value) for values in seen.values() for value in values if value is not None}
    public = {"true", "false", "null", "none", *(str(each.step) for each in made.declared)}
    marks = {text for text in texts if len(text) >= 4 and text.lower() not in public}
    emp = next(each for each in made.declared if each.name == "emp")
    least = emp.step * chance.choice((0, 1, 2, 7, 40))
    keys = {each.name: keys_of(each, seen[each.name]) for each in made.declared if each.role not in ("id", "measure")}
    return Case(number, files, made.declared, keys, least, tuple(odd), frozenset(marks))


def keys_of(declared: Declared, values: list[Any]) -> list[Any]:
    """Cells for what is there and for what it might be mistaken for."""
    missing = [None] if declared.null else []
    if declared.role == "boolean":
        return [False, True, *missing]
    if declared.role == "date":
        return [*range(1, 13), *missing]
    if declared.role == "integer":
        return [-4, -1, 0, 1, 2, 3, 5, 7, 10, 12, 16, 100, 255, 1000, *missing]
    texts = {str(value) for value in values if value is not None and "\0" not in str(value)}
    return sorted(texts | {text.strip() for text in texts} | {text.upper() for text in texts} | {"", "none"}) + missing
