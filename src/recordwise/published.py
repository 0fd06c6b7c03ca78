"""Published tables as Parquet and CSV files, and back. Every file of a seeded run says NOT PRIVATE."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

PRIVATE = "private"
NOT_PRIVATE = "NOT PRIVATE: drawn from a seeded generator, for tests and simulation only"
METADATA = b"recordwise"
FLAG = b"recordwise_flag"
COMPRESSION = "zstd"
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
    """One table with a header line, below a comment where it is not private."""
    import pyarrow.csv

    with (folder / f"{table.name}.csv").open("wb") as file:
        if mark != PRIVATE:
            file.write(f"# {mark}\n".encode())
        pyarrow.csv.write_csv(table.data, file)


def read_tables(folder: Path) -> dict[str, pa.Table]:
    """Every table of a folder by name, as its Parquet file holds it."""
    import pyarrow.parquet

    return {path.stem: pyarrow.parquet.read_table(path, partitioning=None) for path in sorted(folder.glob("*.parquet"))}


def marks(tables: Mapping[str, pa.Table]) -> set[str]:
    """What the Parquet files say about themselves."""
    return {(table.schema.metadata or {}).get(METADATA, b"").decode() for table in tables.values()}


def same_in_csv(table: pa.Table, path: Path, *, mark: str) -> bool:
    """Whether a CSV file holds exactly this table and the same mark."""
    import pyarrow.csv

    with path.open("rb") as file:
        first = file.readline().decode(errors="replace")
    commented = first.startswith("# ")
    if commented != (mark != PRIVATE) or (commented and first != f"# {mark}\n"):
        return False
    types = {field.name: field.type for field in table.schema}
    convert = pyarrow.csv.ConvertOptions(
        column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
    )
    read = pyarrow.csv.ReadOptions(skip_rows=int(commented))
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
    found = pyarrow.csv.read_csv(path, read_options=read, parse_options=parse, convert_options=convert)
    return bool(found.equals(table.replace_schema_metadata(None)))
