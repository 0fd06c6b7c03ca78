"""Reads public lists of codes from files: keys, and the codes of hierarchies."""

import hashlib
from pathlib import Path

import pyarrow as pa

from recordwise.errors import KeysError
from recordwise.plan.own_tables import refuse_own_file, refuse_own_table


def read_code_file(path: Path) -> pa.Table:
    """A CSV or Parquet file. In CSV every field is text, so that '01' keeps its zero; the declared types are applied later.

    Raises:
        KeysError: The file cannot be read, or is a table of a release of ours.
    """
    import pyarrow.csv
    import pyarrow.parquet

    try:
        refuse_own_file(path)
        if path.suffix.lower() in (".parquet", ".pq"):
            table = pyarrow.parquet.read_table(path)
            refuse_own_table(table, f"the file {path.name}")
            return table
        with pyarrow.csv.open_csv(path) as opened:
            names = opened.schema.names
        as_text = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
        return pyarrow.csv.read_csv(path, convert_options=as_text)
    except FileNotFoundError:
        raise KeysError(column=f"the file {path.name}", problem="does not exist") from None
    except (OSError, pa.ArrowInvalid, pa.ArrowTypeError):
        raise KeysError(column=f"the file {path.name}", problem="cannot be read as CSV or Parquet") from None


def file_digest(path: Path) -> str:
    """The SHA-256 digest of a file's bytes."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
