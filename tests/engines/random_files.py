"""Writes random tables into files, and does to some of them what nobody should."""

import csv
import gzip
import io
import random
import sqlite3
import struct
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from engines.independent_reader import NO_VALUE, Files
from engines.random_sources import Draft, Stored, spelled

TYPES = {
    "text": pa.string(),
    "large": pa.large_string(),
    "coded": pa.dictionary(pa.int8(), pa.string()),
    "decimal0": pa.decimal128(20, 0),
    "decimal2": pa.decimal128(20, 2),
    "bool": pa.bool_(),
    "binary": pa.binary(),
    "null": pa.null(),
    "date32": pa.date32(),
    "date64": pa.date64(),
    "zone": pa.timestamp("us", tz="America/New_York"),
    "int96": pa.timestamp("ns"),
    **{unit: pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")},
    **{name: getattr(pa, name)() for name in ("float32", "float64")},
    **{f"{sign}int{width}": getattr(pa, f"{sign}int{width}")() for sign in ("", "u") for width in (8, 16, 32, 64)},
    "halffloat": pa.float16(),
}


def write(made: Draft, place: Path) -> Files:
    return {"csv": write_csv, "sqlite": write_sqlite}.get(made.kind, write_typed)(made, place)


def arrow_array(column: Stored) -> pa.Array:
    """The values in their type; those that it cannot hold are left out."""
    kind = TYPES[column.style]
    try:
        return pa.array(column.values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array([value if holds(value, kind) else None for value in column.values], kind)


def holds(value: Any, kind: pa.DataType) -> bool:
    try:
        pa.array([value], kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True


def write_typed(made: Draft, place: Path) -> Files:
    paths = []
    for number, part in enumerate(made.parts):
        deeds = [name for where, name in made.deeds if where == number]
        names, arrays = list(part), [arrow_array(column) for column in part.values()]
        for deed in deeds:
            names, arrays = changed(made, deed, names, arrays, number)
        folder = folder_of(made, place, number, deeds)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"part{number}.{'arrow' if made.kind == 'arrow' else 'parquet'}"
        table = pa.Table.from_arrays(arrays, names=names)
        write_arrow(made, table, path, "int96" in {column.style for column in part.values()})
        if "statistics" in deeds:
            falsify(made.chance, path)
        if "damaged" in deeds:
            content = path.read_bytes()
            path.write_bytes(content[: len(content) * 2 // 3])
        paths.append(path)
    return Files(made.kind, place, tuple(paths))


def write_arrow(made: Draft, table: pa.Table, path: Path, int96: bool) -> None:
    chance = made.chance
    if made.kind == "arrow":
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=chance.choice((1, 3, 100)))
        return
    options = {"row_group_size": chance.choice((1, 2, 100)), "use_dictionary": chance.random() < 0.5}
    options |= {"store_schema": chance.random() < 0.7, "version": made.options["version"]}
    halves = [number for number, field in enumerate(table.schema) if pa.types.is_float16(field.type)]
    for number in halves:
        table = table.set_column(number, table.column_names[number], table.column(number).cast(pa.float32()))
    pq.write_table(table, path, use_deprecated_int96_timestamps=int96, **options)


def changed(
    made: Draft, deed: str, names: list[str], arrays: list[pa.Array], number: int
) -> tuple[list[str], list[pa.Array]]:
    """What becomes of the columns of a part."""
    nullable = [names.index(each.name) for each in made.declared if each.null and each.name in names]
    which = (
        made.chance.choice(nullable or range(len(names))) if deed == "missing" else made.chance.randrange(len(names))
    )
    rows = len(arrays[0])
    if deed == "missing":
        return names[:which] + names[which + 1 :], arrays[:which] + arrays[which + 1 :]
    if deed == "extra":
        return ["more", *names], [pa.array(range(rows)), *arrays]
    if deed == "order":
        return names[::-1], arrays[::-1]
    if deed == "case":
        return [name.upper() if place == which else name for place, name in enumerate(names)], arrays
    if deed == "both_cases":
        return [*names, names[which].upper()], [*arrays, arrays[which][::-1]]
    if deed == "same_name":
        return [*names, names[which]], [*arrays, arrays[which][::-1]]
    if deed == "clash" and made.folders:
        name = made.chance.choice(list(made.folders))
        kind = next(each for each in made.declared if each.name == name)
        values = ["Ulm" if kind.role == "text" else 1] * rows
        return [*names, name], [*arrays, pa.array(values)]
    if deed == "no_text" and rows:
        raw = pa.array([b"Zq\xff\xfe" * 2] * rows).view(pa.string())
        texts = [place for place, array in enumerate(arrays) if pa.types.is_string(array.type)]
        if texts:
            arrays = [raw if place == texts[-1] else array for place, array in enumerate(arrays)]
    return names, arrays


def folder_name(text: str, escaped: bool) -> str:
    """What no name of a folder can hold is escaped, and if wanted every letter that is not ASCII."""
    return "".join(quote(letter, safe="") if escaped or letter.isascii() else letter for letter in text)


def folder_of(made: Draft, place: Path, number: int, deeds: list[str]) -> Path:
    for name, values in made.folders.items():
        value = NO_VALUE if values[number] is None else folder_name(spelled(values[number]), "hive_bytes" in deeds)
        value = value.replace("%20", " ") if "hive_space" in deeds else value
        value = "" if "empty_name" in deeds else value
        place = place / f"{name.upper() if 'other_folder' in deeds else name}={value}"
    return place


def stated(code: str, least: Any, most: Any) -> bytes:
    """The largest and the least value as a footer states them, without the byte that names the first."""
    size = bytes([struct.calcsize(code)])
    return size + struct.pack(code, most) + b"\x18" + size + struct.pack(code, least)


def falsify(chance: random.Random, path: Path) -> None:
    """The footer says something else about a column of 64-bit numbers than its values do."""
    content = path.read_bytes()
    length = struct.unpack("<I", content[-8:-4])[0]
    footer = content[-8 - length : -8]
    found = pq.read_metadata(path)
    for group in range(found.num_row_groups):
        for number in range(found.num_columns):
            column = found.row_group(group).column(number)
            code = {"INT64": "<q", "DOUBLE": "<d", "INT32": "<i", "FLOAT": "<f"}.get(column.physical_type)
            told = column.statistics
            if code is None or told is None or not told.has_min_max:
                continue
            other = chance.choice(((0, 0), (1, 1), (2**20, 2**21), (0, 1)))
            old, new = (stated(code, *pair) for pair in ((told.min_raw, told.max_raw), other))
            footer = footer.replace(b"\x18" + old, b"\x18" + new).replace(b"\x28" + old, b"\x28" + new)
            if chance.random() < 0.5:
                footer = footer.replace(new + b"\x16\x02", new + b"\x16\x00")
    path.write_bytes(content[: -8 - length] + footer + content[-8:])


def write_csv(made: Draft, place: Path) -> Files:
    options, paths = made.options, []
    for number, part in enumerate(made.parts):
        deeds = [name for where, name in made.deeds if where == number]
        ending = ".csv.gz" if "gz" in deeds else ".csv"
        path = place / f"part{number}{ending}"
        content = csv_bytes(made, part, deeds)
        path.write_bytes(gzip.compress(content) if "gz" in deeds else content)
        paths.append(path)
    return Files("csv", place, tuple(paths), **options)


def csv_bytes(made: Draft, part: dict[str, Stored], deeds: list[str]) -> bytes:
    chance, encoding = made.chance, made.options["encoding"]
    delimiter = ":" if "other_delimiter" in deeds else made.options["delimiter"]
    rows = [
        ["" if value is None else value for value in row] for row in zip(*(column.values for column in part.values()))
    ]
    header = list(part)
    header = [name.upper() for name in header] if "header_case" in deeds else header
    header = [f" {name}" for name in header] if "spaces" in deeds else header
    if "header_order" in deeds:
        header, rows = header[::-1], [row[::-1] for row in rows]
    if "header_twice" in deeds:
        header, rows = [*header, header[1]], [[*row, row[1]] for row in rows]
    ends = "\r\n" if "crlf" in deeds else "\r" if "cr" in deeds else "\n"
    text = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if "quote_all" in deeds else csv.QUOTE_MINIMAL
    writer = csv.writer(text, delimiter=delimiter, lineterminator=ends, quoting=quoting)
    writer.writerows(([] if "no_header" in deeds else [header]) + rows)
    lines = text.getvalue().split(ends)[:-1]
    spare = [line for line in CSV_LINES if line in deeds]
    for deed in spare:
        where = chance.randrange(1, len(lines)) if len(lines) > 1 else 0
        lines = CSV_LINES[deed](lines, where, delimiter)
    joined = ends.join(lines) + ("" if "no_end" in deeds else ends)
    if "mixed_ends" in deeds:
        joined = joined.replace("\n", "\r\n", 1)
    joined = "" if "empty_file" in deeds else joined
    joined = "".join(letter if encodes(letter, encoding) else "u" for letter in joined)
    content = joined.encode(encoding)
    content = b"\xef\xbb\xbf" + content if "bom" in deeds else content
    if "wrong_byte" in deeds:
        start = len(content) // 3
        letters = [place for place in range(start, len(content)) if content[place : place + 1].isalpha()]
        where = chance.choice(letters or [start])
        content = content[:where] + chance.choice((b"\xff", b"\x81", b"\xc3")) + content[where:]
    return content


def encodes(letter: str, encoding: str) -> bool:
    try:
        letter.encode(encoding)
    except UnicodeError:
        return False
    return True


def at(lines: list[str], where: int, *new: str) -> list[str]:
    return [*lines[:where], *new, *lines[where + 1 :]]


def unclear(line: str, where: int, sign: str) -> str:
    """A line in which a quote stands beside a blank or a letter."""
    head, _, tail = line.rpartition(sign)
    texts = (
        line.replace(sign, f'{sign} "Zq"', 1),
        f'{head}{sign}"{tail}"1',
        f'{head}{sign}"{tail}" ',
        f'{head}{sign} "{tail}"',
    )
    return texts[where % len(texts)]


CSV_LINES = {
    "short": lambda lines, where, sign: at(lines, where, lines[where].rpartition(sign)[0]),
    "long_line": lambda lines, where, sign: at(lines, where, f"{lines[where]}{sign}Zq-more"),
    "open_quote": lambda lines, where, sign: at(lines, where, f'{lines[where]}{sign}"Zq-open'),
    "quote_late": lambda lines, where, sign: at(lines, where, unclear(lines[where], where, sign)),
    "blank_lines": lambda lines, where, sign: at(lines, where, "", lines[where], ""),
    "nul": lambda lines, where, sign: at(lines, where, lines[where].replace(sign, f"\0{sign}", 1)),
    "trailing": lambda lines, where, sign: [line + sign for line in lines],
    "comment": lambda lines, where, sign: at(lines, where, f"#{lines[where]}"),
    "second_header": lambda lines, where, sign: [*lines, lines[0]],
}


def write_sqlite(made: Draft, place: Path) -> Files:
    chance, (part,) = made.chance, made.parts
    deeds = [name for _, name in made.deeds]
    usual = {"int64": "INTEGER", "float64": "REAL", "text": "TEXT"}
    kinds = {name: usual.get(column.style, "") for name, column in part.items()}
    for _ in range(deeds.count("affinity")):
        kinds[chance.choice(list(kinds))] = chance.choice(("", "INTEGER", "REAL", "TEXT", "NUMERIC", "BLOB", "DATE"))
    rows = [list(row) for row in zip(*(column.values for column in part.values()))]
    for _ in range(deeds.count("classes") if rows else 0):
        where, row = chance.randrange(len(kinds)), chance.choice(rows)
        kinds[list(kinds)[where]] = chance.choice(("", "", "BLOB", "TEXT", "NUMERIC"))
        shaped = chance.choice((str, float, int, lambda value: f"{value}.0", lambda value: float(value) + 0.6))
        with suppress(TypeError, ValueError):
            row[where] = shaped(row[where])
    if "blob" in deeds and rows:
        chance.choice(rows)[chance.randrange(len(kinds))] = b"Zq-bytes"
    with closing(sqlite3.connect(place / "firms.db")) as connection:
        columns = ", ".join(f'"{name}" {kind}' for name, kind in kinds.items())
        connection.execute(f"CREATE TABLE held ({columns})")
        fits = [
            [value if not isinstance(value, int) or abs(value) < 2**63 else str(value) for value in row] for row in rows
        ]
        connection.executemany(f"INSERT INTO held VALUES ({', '.join('?' * len(kinds))})", fits)
        if "no_text" in deeds:
            name = chance.choice(list(kinds))
            connection.execute(f"UPDATE held SET \"{name}\" = CAST(x'5a71fffe' AS TEXT) WHERE rowid = 1")
        connection.execute(
            "CREATE VIEW firms AS SELECT * FROM held" if "view" in deeds else "ALTER TABLE held RENAME TO firms"
        )
        connection.commit()
    return Files("sqlite", place)
