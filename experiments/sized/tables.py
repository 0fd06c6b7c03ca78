"""Establishments, the cells they are in, and what was publicly known about the size of each cell a year before."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from experiments.frame import data_folder
from recordwise.synthetic import CountyTable, establishments

CHANGES = "cbp_county_naics4_2017_2021.parquet"
COUNTIES = "cbp_county_2017.parquet"
ORDER = [("county", "ascending"), ("naics", "ascending")]
NOISE = 20.0
"""The standard deviation of the noise of last year's table, in employees."""
LIKE = 400
"""A cell's yearly change is that of one of so many real cells of about its size."""
MADE_UP_CHANGE = 0.25
"""The spread of the logarithm of a change where the real ones are not at hand."""


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Records, the length of the industry code that cells have, and the cells with their sizes."""

    name: str
    records: pa.Table
    digits: int
    cells: pa.Table
    """county, naics (shortened to the digits of the cells), size."""


def generated(rows: int, seed: int) -> Data:
    """The package's establishments by county x three-digit industry; sizes off by real yearly changes and by noise."""
    records = establishments(rows, seed=1)
    cells = _cells(records, 3)
    rng = np.random.default_rng(seed)
    totals = cells["total"].to_numpy().astype(float)
    sizes = totals * _changes(totals, rng) + rng.normal(0, NOISE, len(totals))
    return Data(f"{rows:,} generated establishments, county x NAICS 3", records, 3, _sized(cells, sizes))


def real(rows: int, seed: int) -> Data | None:
    """Real county tables laid out record by record; the size of a cell is its published employment of the year after."""
    folder = data_folder(CHANGES, COUNTIES)
    if folder is None:
        return None
    records = _first(CountyTable.read(folder).batches(seed=1), rows)
    cells = _cells(records, 4)
    later = _year(2018)
    found = cells.join(later, keys=["county", "naics"], join_type="left outer").sort_by(ORDER)
    noise = np.random.default_rng(seed).normal(0, NOISE, found.num_rows)
    sizes = np.nan_to_num(found["emp"].to_numpy(zero_copy_only=False).astype(float)) + noise
    name = f"{records.num_rows:,} establishments of real county tables, county x NAICS 4"
    return Data(name, records, 4, _sized(found, sizes))


def _first(batches: Iterator[pa.RecordBatch], rows: int) -> pa.Table:
    """Whole counties, of about so many records."""
    kept: list[pa.RecordBatch] = []
    for batch in batches:
        kept.append(batch)
        if sum(each.num_rows for each in kept) >= rows:
            break
    table = pa.Table.from_batches(kept)
    last = pc.cast(table["county"], pa.string())[-1]
    return table.filter(pc.not_equal(pc.cast(table["county"], pa.string()), last))


def _cells(records: pa.Table, digits: int) -> pa.Table:
    short = pc.utf8_slice_codeunits(pc.cast(records["naics"], pa.string()), 0, digits)
    keyed = pa.table({"county": pc.cast(records["county"], pa.string()), "naics": short, "emp": records["emp"]})
    found = keyed.group_by(["county", "naics"]).aggregate([("emp", "sum")]).rename_columns(["county", "naics", "total"])
    return found.sort_by(ORDER)


def _sized(cells: pa.Table, sizes: np.ndarray) -> pa.Table:
    return pa.table({"county": cells["county"], "naics": cells["naics"], "size": np.round(np.maximum(sizes, 0))})


def _year(year: int) -> pa.Table:
    folder = data_folder(CHANGES)
    assert folder is not None
    found = pq.read_table(folder / CHANGES, filters=[("year", "=", year)])
    county = pc.utf8_lpad(pc.cast(found["fips"], pa.string()), 5, "0")
    return pa.table({"county": county, "naics": pc.cast(found["naics"], pa.string()), "emp": found["employees"]})


def _changes(totals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """For each total a factor: the change from 2017 to 2018 of a real cell of about the same size."""
    if data_folder(CHANGES) is None:
        return np.exp(rng.normal(0, MADE_UP_CHANGE, len(totals)))
    # A join has no order of its own, and cells of equal size are told apart by it.
    both = (
        _year(2017).join(_year(2018), keys=["county", "naics"], join_type="inner", right_suffix="_after").sort_by(ORDER)
    )
    before, after = (both[name].to_numpy(zero_copy_only=False).astype(float) for name in ("emp", "emp_after"))
    order = np.argsort(before, kind="stable")
    order = order[before[order] > 0]
    place = np.searchsorted(before[order], totals) + rng.integers(-LIKE // 2, LIKE // 2 + 1, len(totals))
    chosen = order[np.clip(place, 0, len(order) - 1)]
    return after[chosen] / before[chosen]
