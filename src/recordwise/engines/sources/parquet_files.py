"""Parquet files, which engines read themselves: names and types of every file, from the footers, and no record.

An engine takes the types of one file and converts what the others hold: 1.6 to 2, '1_000' to 1000, a time with a zone to the day
it is where the machine stands. So every file must store a declared column in one and the same way, under one and the same name.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from recordwise.engines.problems import check_present
from recordwise.errors import SourceError
from recordwise.plan.files import ParquetFiles
from recordwise.plan.schema import Schema

OLD_TIME = "a time of the old 96-bit kind, which does not say whether it has a zone"
WORDS = {
    "Int": "whole numbers of {bitWidth} bits{unsigned}",
    "Decimal": "decimals with {precision} digits, {scale} of them after the point",
    "String": "text",
    "Date": "dates",
    "Timestamp": "times in {timeUnit} {zone} a zone",
    "Null": "nothing but missing values",
}
PHYSICAL = {
    "BOOLEAN": "truth values",
    "FLOAT": "floats of 32 bits",
    "DOUBLE": "floats of 64 bits",
    "INT96": OLD_TIME,
    "BYTE_ARRAY": "bytes",
}
NESTED = "a nested column"
ADVICE = "Write its files anew with one type for each column."


def parquet_schema(path: Path) -> pa.Schema:
    """The names and types of a Parquet file; a damaged footer, or one with names that are no text, is refused."""
    return _footer(path)[0]


def check_parquet(source: ParquetFiles, schema: Schema) -> None:
    """Refuse files of which one lacks a declared column or stores it otherwise than the first; reads every footer, no record."""
    folders = named_by_folders(source, schema)
    names, first = schema.names(), dict[str, str]()
    for number, path in enumerate(source.paths, 1):
        where = f"file {number} of {len(source.paths)} ('{path.name}')" if len(source.paths) > 1 else "the source"
        found = _stored_as(path)
        beside_folders(folders, list(found), where)
        check_present([name for name in names if name not in folders], list(found), source=where)
        unique_names(names, list(found), where)
        for name in (name for name in names if name not in folders):
            if found[name] == OLD_TIME:
                raise no_zone(name, where)
            if found[name] != first.setdefault(name, found[name]):
                raise SourceError(
                    source=f"column '{name}'",
                    problem=f"{where} stores it as {found[name]}, and the first as {first[name]}",
                    advice=ADVICE,
                )


def named_by_folders(source: ParquetFiles, schema: Schema) -> tuple[str, ...]:
    """The declared columns that the names of folders hold."""
    return tuple(name for name in source.partitions() if name in schema.names())


def beside_folders(folders: Iterable[str], present: Iterable[str], where: str) -> None:
    """Refuse a column that stands in the names of folders and in the files too: an engine would take the folder's word."""
    folded = {name.casefold() for name in present}
    for name in folders:
        if name.casefold() in folded:
            raise SourceError(
                source=f"column '{name}'",
                problem=f"the names of folders hold it, and {where} holds it too",
                advice="Name the files with a glob ('folder/**/*.parquet'), which leaves the names of folders aside.",
            )


def unique_names(wanted: Iterable[str], present: Iterable[str], where: str) -> None:
    """Refuse a declared column beside another whose name differs by case only: engines take one of them."""
    folded = [name.casefold() for name in present]
    for name in wanted:
        if folded.count(name.casefold()) > 1:
            raise SourceError(source=where, problem=f"it has no column {name} that is unique when case is ignored")


def no_zone(name: str, where: str) -> SourceError:
    """The error for a time of which nobody can say what day it is."""
    return SourceError(
        source=f"column '{name}'",
        problem=f"{where} stores it as {OLD_TIME}",
        advice="Store the local day or time, without a zone.",
    )


def _stored_as(path: Path) -> dict[str, str]:
    """How a file stores each of its columns, in words that are the same where the meaning is."""
    schema, flat = _footer(path)
    if len(set(schema.names)) < len(schema.names):
        raise SourceError(source="the source", problem="two columns of one of its files have the same name")
    return dict.fromkeys(schema.names, NESTED) | flat


def _words(leaf: Any) -> str:
    said: Mapping[str, Any] = json.loads(leaf.logical_type.to_json())
    kind = said["Type"]
    if kind == "None" and leaf.physical_type in ("INT32", "INT64"):
        kind, said = "Int", {"bitWidth": int(leaf.physical_type[3:]), "isSigned": True}
    if kind == "None":
        return PHYSICAL.get(leaf.physical_type, f"bytes, {leaf.length} of them")
    if kind not in WORDS:
        return " ".join(str(each) for each in (f"the type {kind}", leaf.physical_type, leaf.length, *said.values()))
    zone = "with" if said.get("isAdjustedToUTC") else "without"
    unsigned = "" if said.get("isSigned", True) else ", without a sign"
    return WORDS[kind].format(**said, zone=zone, unsigned=unsigned)


def _footer(path: Path) -> tuple[pa.Schema, dict[str, str]]:
    """The schema of a file as Arrow has it, and how Parquet itself describes the columns that are not nested."""
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            schema, plain = file.schema_arrow, file.schema
            _ = schema.names, [str(field.type) for field in schema]
            leaves = [plain.column(number) for number in range(len(plain.names))]
            flat = [leaf for leaf in leaves if leaf.path == leaf.name and leaf.max_repetition_level == 0]
            return schema, {leaf.name: _words(leaf) for leaf in flat}
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise SourceError(source="the source", problem="one of its files is damaged or is not a Parquet file") from None
