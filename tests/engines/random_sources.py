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

from engines.independent_reader import Declared, Files
from engines.odd_values import words

SEED = 34
KINDS = ("parquet",) * 4 + ("csv",) * 4 + ("hive", "arrow", "sqlite", "sqlite")
TOWNS = ("Ulm", "Köln", "a;b", 'c"d', "x,y", "New York", "01", "1", "Zq-town", "none")
EDGES = words("2023-12-31 2024-01-01 2024-02-29 2024-03-31 2024-04-01 1969-12-31 1970-01-01")
DAYS = tuple(map(date.fromisoformat, EDGES))
"""A day too early or too late is in another month."""
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
    version = chance.choice(("1.0", "2.4", "2.6"))
    options = csv_options(chance, declared) if kind == "csv" else {"version": version}
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
