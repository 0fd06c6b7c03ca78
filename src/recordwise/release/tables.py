"""Published tables as Parquet and CSV files, and back. Every file of a seeded run says NOT PRIVATE.

The fingerprint of published tables: the same for a release in memory and for its Parquet files.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import ParameterError
from recordwise.policy.policy import Policy


def digest_of(tables: Mapping[str, pa.Table], policy: Policy) -> str:
    """SHA-256 over the policy and over names, types, lengths and contents of all columns, tables by name."""
    names = sorted(tables)
    columns = [(name, column) for name in names for column in tables[name].column_names]
    with ThreadPoolExecutor() as pool:
        found = pool.map(lambda place: column_digest(tables[place[0]].column(place[1])), columns)
        parts = [[*place, digest] for place, digest in zip(columns, found)]
    rows = [[name, tables[name].num_rows] for name in names]
    return hashlib.sha256(json.dumps([policy.to_json(), rows, parts], sort_keys=True).encode()).hexdigest()


def column_digest(column: pa.ChunkedArray) -> str:
    """Of one column, however it is cut into chunks: where it is NULL, then its values; for text, lengths and letters."""
    if not publishable(column.type):
        raise ParameterError(
            parameter="a column", problem=f"of type {column.type} is neither numbers, text nor truth values"
        )
    total = hashlib.sha256(f"{column.type}".encode())
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if array.null_count:
        total.update(np.packbits(array.is_null().to_numpy(zero_copy_only=False)).data)
        array = array.fill_null(
            "" if pa.types.is_string(array.type) else False if pa.types.is_boolean(array.type) else 0
        )
    if pa.types.is_string(array.type):
        total.update(pc.binary_length(array).to_numpy().data)
        total.update(_letters(array))
    else:
        total.update(np.ascontiguousarray(array.to_numpy(zero_copy_only=False)).data)
    return total.hexdigest()


def publishable(kind: pa.DataType) -> bool:
    """Whether a column of this type is the same after a trip through Parquet and CSV."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_string(kind) or types.is_boolean(kind))


def _letters(array: pa.StringArray) -> memoryview:
    _, offsets, letters = array.buffers()
    if letters is None or not len(array):
        return memoryview(b"")
    ends = np.frombuffer(offsets, dtype=np.int32)
    return memoryview(letters)[ends[array.offset] : ends[array.offset + len(array)]]


PRIVATE = "private"
NOT_PRIVATE = "NOT PRIVATE: drawn from a seeded generator, for tests and simulation only"
METADATA = b"recordwise"
FLAG = b"recordwise_flag"
COMPRESSION = "zstd"
FORMULA = r"^['\t\r\n]|^[\s\p{Z}]*[=+\-@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}]"
"""Texts that a spreadsheet takes for a formula, the wide forms of its signs among them, and those that begin with an apostrophe."""
BANNER = 'class="not-private"'
"""What the page of a seeded run alone has; names and values are escaped on it and cannot spell it."""
FITTED = "_fit"
"""The end of the name of a column that was fitted to add up, beside the one that was drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedTable:
    """One published table: cell keys, then for each variable value, sd, cv and noise interval."""

    name: str
    keys: tuple[str, ...]
    variables: tuple[str, ...]
    data: pa.Table
    """A column that must not be taken for an unbiased estimate says so in its metadata."""

    def flags(self) -> dict[str, str]:
        """The variables that are not unbiased, and why."""
        known = {field.name: field.metadata or {} for field in self.data.schema}
        return {name: found[FLAG].decode() for name, found in known.items() if FLAG in found}


def flagged(table: pa.Table, flags: Mapping[str, str]) -> pa.Table:
    """The table with a flag in the metadata of some columns."""
    fields = [
        field.with_metadata({FLAG: flags[field.name]}) if field.name in flags else field for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def write_parquet(table: ReleasedTable, folder: Path, *, mark: str) -> None:
    """One table; what it is marked as stands in the file's metadata."""
    import pyarrow.parquet

    marked = table.data.replace_schema_metadata({METADATA: mark})
    pyarrow.parquet.write_table(marked, folder / f"{table.name}.parquet", compression=COMPRESSION)


def write_csv(table: ReleasedTable, folder: Path, *, mark: str) -> None:
    """One table with a header line, below a comment where it is not private; no text in it is a spreadsheet's formula."""
    import pyarrow.csv

    with (folder / f"{table.name}.csv").open("wb") as file:
        if mark != PRIVATE:
            file.write(f"# {mark}\n".encode())
        pyarrow.csv.write_csv(without_formulas(table.data), file)


def without_formulas(table: pa.Table) -> pa.Table:
    """An apostrophe before each text a spreadsheet would run as a formula, and before each that begins with one already, so that
    ``with_formulas`` can take it away again. Names of columns count as texts; numbers stay as they are."""
    return _each_text(table, lambda texts: pc.if_else(pc.match_substring_regex(texts, FORMULA), _quoted(texts), texts))


def with_formulas(table: pa.Table) -> pa.Table:
    """What ``without_formulas`` was given."""
    return _each_text(table, lambda texts: pc.replace_substring_regex(texts, "^'", "", max_replacements=1))


def _quoted(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise("'", texts, "")


def _each_text(table: pa.Table, change: Callable[[Any], Any]) -> pa.Table:
    columns = [change(column) if pa.types.is_string(column.type) else column for column in table.columns]
    return pa.table(columns, names=change(pa.array(table.column_names, pa.string())).to_pylist())


def read_tables(folder: Path) -> dict[str, pa.Table]:
    """Every table of a folder by name, as its Parquet file holds it."""
    import pyarrow.parquet

    return {path.stem: pyarrow.parquet.read_table(path, partitioning=None) for path in sorted(folder.glob("*.parquet"))}


def marks(folder: Path, tables: Mapping[str, pa.Table]) -> dict[str, str]:
    """What every file of a release but the two in JSON says about itself, by name."""
    found = {
        f"{name}.parquet": (table.schema.metadata or {}).get(METADATA, b"").decode() for name, table in tables.items()
    }
    found |= {path.name: _csv_mark(path) for path in sorted(folder.glob("*.csv"))}
    page = folder / "report.html"
    if page.exists():
        found[page.name] = NOT_PRIVATE if BANNER in page.read_text(encoding="utf-8") else PRIVATE
    return found


def _csv_mark(path: Path) -> str:
    """The comment above the header, or that there is none; a header is quoted and cannot be taken for one."""
    with path.open("rb") as file:
        first = file.readline().decode(errors="replace")
    return first.removeprefix("# ").removesuffix("\n") if first.startswith("# ") else PRIVATE


def same_in_csv(table: pa.Table, path: Path) -> bool:
    """Whether a CSV file holds exactly this table, whatever its mark; texts may stand there with or without the apostrophe."""
    import pyarrow.csv

    plain = table.replace_schema_metadata(None)
    names = plain.column_names + without_formulas(plain.slice(0, 0)).column_names
    types = dict(zip(names, plain.schema.types * 2))
    convert = pyarrow.csv.ConvertOptions(
        column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
    )
    read = pyarrow.csv.ReadOptions(skip_rows=int(_csv_mark(path) != PRIVATE))
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    found = pyarrow.csv.read_csv(path, read_options=read, parse_options=parse, convert_options=convert)
    return bool(found.equals(plain) or with_formulas(found).equals(plain))
