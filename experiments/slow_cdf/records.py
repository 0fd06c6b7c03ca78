"""The establishments whose employment is summed, in a file of the run's own; their exact totals and their head counts."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from experiments.frame import data_folder
from recordwise.synthetic import CountyTable, batches

FILE = "cbp_county_2017.parquet"
REAL = (
    "The six-digit county cells of County Business Patterns 2017, read from the data folder, one record for each of 7.25 million "
    "establishments, laid out so that they add up to the published employment. The slides used simulated data of their own."
)
GENERATED = 1_000_000
COLUMNS = ["estab_id", "county", "naics", "emp"]
DATA_SEED = 1


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Where the file is, and what the experiment may know about it because the data is synthetic."""

    path: Path
    sizes: np.ndarray
    """The different head counts."""
    establishments: np.ndarray
    """How many establishments have each."""
    cells: pa.Table
    """County, naics3 and the exact total of every cell that holds an establishment."""


def write_records(folder: Path, limit: int | None = None) -> Records:
    """The establishments of the public files if they are there, else of the generator; at most about ``limit`` of them."""
    path = folder / "establishments.parquet"
    chosen = pa.Table.from_batches(list(_limited(_batches(limit), limit)))
    pq.write_table(chosen, path)
    counted = pc.value_counts(chosen["emp"])
    order = np.argsort(counted.field("values").to_numpy())
    return Records(
        path=path,
        sizes=counted.field("values").to_numpy()[order].astype(np.int64),
        establishments=counted.field("counts").to_numpy()[order],
        cells=_cells(chosen),
    )


def _batches(limit: int | None) -> Iterator[pa.RecordBatch]:
    real = data_folder(FILE)
    if real is not None:
        yield from CountyTable.read(real).batches(seed=DATA_SEED)
    else:
        yield from batches(limit or GENERATED, seed=DATA_SEED)


def _limited(made: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    left = limit
    for batch in made:
        kept = batch.select(COLUMNS)
        yield plain(kept if left is None else kept.slice(0, left))
        if left is not None and (left := left - len(batch)) <= 0:
            return


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Text columns as text: a dictionary may differ from batch to batch."""
    texts = {"county": pa.string(), "naics": pa.string(), "emp": pa.int64(), "estab_id": pa.int64()}
    return pa.record_batch({name: batch[name].cast(texts[name]) for name in COLUMNS})


def _cells(table: pa.Table) -> pa.Table:
    naics3 = pc.utf8_slice_codeunits(table["naics"], 0, 3)
    grouped = pa.table({"county": table["county"], "naics3": naics3, "emp": table["emp"]})
    return grouped.group_by(["county", "naics3"]).aggregate([("emp", "sum")]).sort_by("county")
