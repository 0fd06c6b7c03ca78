"""Parquet files. Every release has them: they keep all types, and ``load_release`` and ``verify`` read tables from them."""

from pathlib import Path

import pyarrow as pa

from recordwise.release.tables import publishable

METADATA = b"recordwise"
"""The key of the privacy label in a file's metadata."""
COMPRESSION = "zstd"


class Parquet:
    """Tables with their types and their columns' metadata."""

    name = "parquet"
    extension = "parquet"
    description = "the whole table, with its types"

    def holds(self, kind: pa.DataType) -> bool:
        return publishable(kind)

    def write(self, data: pa.Table, path: Path, *, privacy_label: str) -> None:
        import pyarrow.parquet

        labeled = data.replace_schema_metadata({METADATA: privacy_label})
        # Noisy numbers hardly repeat, so a dictionary of them takes time and saves nothing.
        texts = [field.name for field in data.schema if pa.types.is_string(field.type)]
        pyarrow.parquet.write_table(labeled, path, compression=COMPRESSION, use_dictionary=texts)

    def privacy_label(self, path: Path) -> str:
        import pyarrow.parquet

        metadata: dict[bytes, bytes] = pyarrow.parquet.read_schema(path).metadata or {}
        return metadata.get(METADATA, b"").decode()

    def same(self, data: pa.Table, path: Path) -> bool:
        return bool(read_parquet(path).equals(data.replace_schema_metadata(None)))


def read_parquet(path: Path) -> pa.Table:
    """The table of a file, without the file's label."""
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path, partitioning=None).replace_schema_metadata(None)


def read_tables(folder: Path) -> dict[str, pa.Table]:
    """Every table of a release folder by name, as stored in its Parquet file."""
    return {path.stem: read_parquet(path) for path in sorted(folder.glob(f"*.{Parquet.extension}"))}
