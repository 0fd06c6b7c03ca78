"""What is done to a random table before it is written, or as it is written: the oddities, each by its name."""

import random
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from engines.odd_values import ODD, words
from engines.random_sources import ODD_STYLES, Draft, Stored, as_stored, family, role_of


def columns_of(made: Draft) -> list[Any]:
    return [each for each in made.declared if each.name in made.parts[0]]


def odd_values(made: Draft) -> None:
    """One value, or two, as nobody should write it."""
    chance = made.chance
    for _ in range(chance.choice((1, 1, 2))):
        each, part = chance.choice(columns_of(made)), chance.choice(made.parts)
        column = part[each.name]
        pool = ODD.get(f"{each.role} {family(column.style)}")
        if pool is None or not column.values:
            continue
        column.values[chance.randrange(len(column.values))] = shaped(chance.choice(pool), column.style)


def odd_type(made: Draft) -> None:
    """A column is stored in another way, in one part or in all."""
    chance = made.chance
    each = chance.choice(columns_of(made))
    style = chance.choice(ODD_STYLES[role_of(each)])
    for part in made.parts if chance.random() < 0.3 else [chance.choice(made.parts)]:
        values = [restyled(chance, value, style) for value in part[each.name].values]
        part[each.name] = Stored(style, values)
        pool = ODD.get(f"{each.role} {family(style)}")
        if pool and values and chance.random() < 0.5:
            values[chance.randrange(len(values))] = shaped(chance.choice(pool), style)


def shaped(value: Any, style: str) -> Any:
    """An odd value in the form that a style holds."""
    if family(style) == "day":
        return date.fromisoformat(value) if style in ("date32", "date64") else datetime.fromisoformat(value)
    return Decimal(value) if family(style) == "decimal" else value


def restyled(chance: random.Random, value: Any, style: str) -> Any:
    """A stored value in another style, where that makes sense."""
    try:
        if isinstance(value, str) and family(style) == "day":
            value = date.fromisoformat(value[:10])
        elif value in ("true", "false"):
            value = value == "true"
        elif isinstance(value, str) and family(style) in ("whole", "float", "decimal"):
            value = Decimal(value)
        if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
            value = Fraction(value)
        return as_stored(chance, value, style)
    except (ValueError, ArithmeticError):
        return None


def twice(made: Draft) -> None:
    """An id stands in two records, the second time perhaps in another spelling."""
    chance = made.chance
    first, second = made.parts[0]["id"], chance.choice(made.parts[1:] or made.parts)["id"]
    if not first.values or not second.values:
        return
    value, place = first.values[0], chance.randrange(len(second.values))
    if made.kind == "sqlite":
        second.style = chance.choice((second.style, "none", "none", "none"))
        value = chance.choice((str(value), value, float(value), f"{value}.0")) if str(value).isdigit() else value
    elif family(second.style) == "text":
        value = chance.choice((str(value), str(value), str(value), f"{value} ", f"0{value}"))
    elif chance.random() < 0.6 and str(value).isdigit():
        style = chance.choice(("text", "float64", "decimal2", "int32", "uint64", "decimal0"))
        second.style = style
        second.values = [restyled(chance, each, style) for each in second.values]
        value = restyled(chance, value, style)
    second.values[place] = value


def no_rows(made: Draft) -> None:
    for column in made.chance.choice(made.parts).values():
        column.values.clear()


def later(name: str) -> Any:
    """Something that is done to one part as it is written."""

    def do(made: Draft) -> None:
        made.deeds.append((made.chance.randrange(len(made.parts)), name))
        if name == "statistics" and made.chance.random() < 0.5:
            odd_values(made)

    do.__name__ = name
    return do


TABLE = ("missing", "missing", "case", "both_cases", "same_name")
FILE = {
    "parquet": (*TABLE, *["statistics"] * 10, "no_text", "damaged"),
    "hive": (*TABLE, *["statistics"] * 4, *["clash"] * 4, "other_folder", "empty_name", "hive_space", "hive_bytes"),
    "arrow": (*TABLE, "no_text", "damaged"),
    "csv": (
        *words(
            "header_case header_order header_twice no_header short long_line open_quote blank_lines cr mixed_ends bom"
        ),
        *words("nul other_delimiter trailing spaces comment quote_late empty_file second_header"),
        *["wrong_byte"] * 4,
    ),
    "sqlite": ("affinity", "affinity", "affinity", "classes", "classes", "classes", "view", "no_text", "blob"),
}


HARMLESS = {
    "csv": ("bom", "crlf", "quote_all", "gz", "no_end"),
    "parquet": ("order", "extra"),
    "hive": ("order", "extra"),
}
"""What leaves a table plain."""


def spoil(made: Draft) -> list[str]:
    """What is done to a draft, by name; nothing odd to every fourth."""
    for deed in HARMLESS.get(made.kind, ()):
        if made.chance.random() < 0.15 and (deed != "bom" or made.options["encoding"] == "utf-8"):
            later(deed)(made)
    count = made.chance.choice((0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 3))
    common: list[Any] = [odd_values] * 6 + [twice] * 3 + [no_rows]
    common += [] if made.kind in ("csv", "sqlite") else [odd_type] * 16
    done = []
    for _ in range(count):
        weight = len(common) // 2
        deed = made.chance.choice(common + [later(made.chance.choice(FILE[made.kind])) for _ in range(weight)])
        deed(made)
        done.append(deed.__name__)
    return done
