"""Parquet files, which every release has and ``rw.read`` reads."""

from pathlib import Path

import pyarrow as pa

from recordwise.plan.publication import LABEL
from recordwise.release.content import Content
from recordwise.release.formats.format import type_problem

COMPRESSION = "zstd"
ROWS = 250_000
"""Rows that are encoded together, so that memory does not grow with the table."""


class Parquet:
    """Tables with their types and their columns' metadata."""

    name = "parquet"
    extension = "parquet"
    description = "the whole table, with its types"
    whole = False
    needs = ()

    def problem(self, content: Content) -> str | None:
        return type_problem(content)

    def write(self, content: Content, path: Path) -> None:
        import pyarrow.parquet

        labeled = content.table.data.replace_schema_metadata({LABEL: content.privacy_label})
        # Noisy numbers hardly repeat, so a dictionary of them takes time and saves nothing.
        texts = [field.name for field in labeled.schema if pa.types.is_string(field.type)]
        pyarrow.parquet.write_table(labeled, path, compression=COMPRESSION, use_dictionary=texts, row_group_size=ROWS)

    def privacy_label(self, path: Path) -> str:
        import pyarrow.parquet

        metadata: dict[bytes, bytes] = pyarrow.parquet.read_schema(path).metadata or {}
        return metadata.get(LABEL, b"").decode()

    def same(self, content: Content, path: Path) -> bool:
        return bool(read_parquet(path).equals(content.table.data.replace_schema_metadata(None)))


def read_parquet(path: Path) -> pa.Table:
    """The table of a file, without the file's label."""
    import pyarrow.parquet

    # A file alone needs no dataset, which would load pandas.
    with pyarrow.parquet.ParquetFile(path) as file:
        return file.read().replace_schema_metadata(None)


def read_tables(folder: Path) -> dict[str, pa.Table]:
    """Return a release folder's tables by name, from Parquet."""
    return {path.stem: read_parquet(path) for path in sorted(folder.glob(f"*.{Parquet.extension}"))}
