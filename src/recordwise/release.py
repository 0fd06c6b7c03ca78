"""The result of a run: published tables with their accuracy, the policy, and the files they are saved as."""

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.errors import OutputError, ParameterError
from recordwise.ledger import Head
from recordwise.policy import Policy

FORMAT = 1
FLAG = b"recordwise_flag"
FIXED_IN_ADVANCE = "guarantee holds only if this list of queries was fixed in advance"
NOT_PRIVATE = "NOT PRIVATE: drawn from a seeded generator, for tests and simulation only"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Published tables. Everything in it is public; what it cost is in ``policy``."""

    tables: tuple[ReleasedTable, ...]
    policy: Policy
    """The tight policy, which the ledger was charged."""
    paper_policy: Policy
    """The same mechanisms, bounded as in the papers."""
    description: dict[str, Any]
    """Plan, mechanisms, parameters, versions and budget, as saved in release.json."""
    head: Head
    """The end of the ledger's chain when the release was booked."""
    private: bool

    @property
    def table(self) -> pa.Table:
        """The only table, as Arrow; with several, use ``tables``."""
        if len(self.tables) != 1:
            names = ", ".join(table.name for table in self.tables)
            raise ParameterError(
                parameter="table", problem=f"is one of several here: {names}", advice="Use release[name]."
            )
        return self.tables[0].data

    def __getitem__(self, name: str) -> pa.Table:
        for table in self.tables:
            if table.name == name:
                return table.data
        raise ParameterError(parameter="name", problem=f"is not a table of this release: {name!r}")

    def to_pandas(self, name: str | None = None) -> Any:
        """A pandas frame."""
        return (self.table if name is None else self[name]).to_pandas()

    def to_polars(self, name: str | None = None) -> Any:
        """A Polars frame."""
        import polars

        return polars.from_arrow(self.table if name is None else self[name])

    def digest(self) -> str:
        """A fingerprint of tables and policy; the ledger holds it."""
        return digest_of({table.name: table.data for table in self.tables}, self.policy)

    def save(self, folder: str | Path, *, csv: bool = True) -> Path:
        """Write everything into a new folder, all or nothing."""
        target = Path(folder)
        if target.exists():
            raise OutputError(
                folder=str(target), problem="exists already", advice="Name a new folder; nothing is overwritten."
            )
        staging: Path | None = None
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
            self._write(staging, csv=csv)
            staging.chmod(0o755)
            os.rename(staging, target)
        except OSError as error:
            raise OutputError(folder=str(target), problem=f"could not be written ({error.strerror})") from None
        finally:
            if staging is not None and staging.exists():
                shutil.rmtree(staging, ignore_errors=True)
        return target

    def _write(self, folder: Path, *, csv: bool) -> None:
        import pyarrow.csv
        import pyarrow.parquet

        for table in self.tables:
            marked = table.data.replace_schema_metadata({"recordwise": self._mark()})
            pyarrow.parquet.write_table(marked, folder / f"{table.name}.parquet", compression="zstd")
            if csv:
                self._write_csv(table, folder / f"{table.name}.csv")
        policies = {"mark": self._mark(), "tight": self.policy.to_json(), "paper": self.paper_policy.to_json()}
        (folder / "policy.json").write_text(json.dumps(policies, indent=1) + "\n")
        (folder / "release.json").write_text(json.dumps(self.to_json(), indent=1) + "\n")
        for file in folder.iterdir():
            _flush(file)
        _flush(folder)

    def _write_csv(self, table: ReleasedTable, path: Path) -> None:
        import pyarrow.csv

        with path.open("wb") as file:
            if not self.private:
                file.write(f"# {NOT_PRIVATE}\n".encode())
            pyarrow.csv.write_csv(table.data, file)

    def _mark(self) -> str:
        return "private" if self.private else NOT_PRIVATE

    def to_json(self) -> dict[str, Any]:
        """What release.json says: no row count, no number of non-empty cells, nothing from exact totals."""
        return {
            "recordwise_release": FORMAT,
            "mark": self._mark(),
            "digest": self.digest(),
            "ledger": {"length": self.head.length, "digest": self.head.digest},
            **self.description,
            "flags": {table.name: table.flags() for table in self.tables},
            "accuracy": {table.name: accuracy(table) for table in self.tables},
        }

    def _repr_html_(self) -> str:
        shown = "".join(
            f"<h4>{table.name}</h4>{table.data.slice(0, 8).to_pandas().to_html(index=False)}" for table in self.tables
        )
        return f"<div><b>recordwise release ({self._mark()})</b>{shown}{self.policy._repr_html_()}</div>"


def flagged(table: pa.Table, flags: dict[str, str]) -> pa.Table:
    """The table with a flag in the metadata of some columns."""
    fields = [
        field.with_metadata({FLAG: flags[field.name]}) if field.name in flags else field for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def accuracy(table: ReleasedTable) -> dict[str, dict[str, float]]:
    """How accurate each variable is, from the noise laws and the released values alone."""
    found = {}
    for name in table.variables:
        sd, cv = (table.data.column(f"{name}{end}").drop_null().to_numpy() for end in ("_sd", "_cv"))
        found[name] = {
            "median_sd": float(np.median(sd)) if len(sd) else float("nan"),
            "median_cv": float(np.median(cv)) if len(cv) else float("nan"),
            "share_cv_below_0.1": float(np.mean(cv < 0.1)) if len(cv) else 0.0,
        }
    return found


def digest_of(tables: dict[str, pa.Table], policy: Policy) -> str:
    """SHA-256 over names, types and contents in order: the same for a table and for its Parquet copy."""
    total = hashlib.sha256(json.dumps(policy.to_json(), sort_keys=True).encode())
    for name, table in sorted(tables.items()):
        total.update(name.encode())
        for column in table.column_names:
            total.update(f"{column}:{table.schema.field(column).type}".encode())
            _add_column(total, table.column(column))
    return total.hexdigest()


def _add_column(total: Any, column: pa.ChunkedArray) -> None:
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    total.update(np.packbits(array.is_valid().to_numpy(zero_copy_only=False)).tobytes())
    if pa.types.is_floating(array.type) or pa.types.is_integer(array.type) or pa.types.is_boolean(array.type):
        total.update(np.ascontiguousarray(array.fill_null(0).to_numpy(zero_copy_only=False)).tobytes())
    else:
        total.update("\x1f".join(map(str, array.to_pylist())).encode())


def _flush(path: Path) -> None:
    """Make sure the disk has it before the folder takes its name."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
