"""Establishments of one state, the cells of their tables, and who contributes to each."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from experiments.frame import data_folder
from recordwise.disclosure import Cells, Contributions, Dimension
from recordwise.synthetic import CountyTable, establishments

FILE = "cbp_county_2017.parquet"
STATE = "24"
"""Maryland: 24 counties, some with a hundred establishments and some with twenty thousand."""
DIGITS = (2, 3)


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """State and counties by all industries, sectors and three-digit industries."""

    name: str
    records: pa.Table
    """estab_id, county, naics (three digits), emp."""
    cells: Cells
    found: Contributions
    finest: Any
    """The positions of the cells of counties by three-digit industries."""
    within: tuple[Any, ...]
    """For each table the cell of each record."""

    @property
    def emp(self) -> Any:
        """The employment of each record."""
        return self.records["emp"].to_numpy().astype(np.float64)


def generated(rows: int) -> Tables:
    """The state's share of establishments that the package makes up."""
    return tables("generated", _of_state(establishments(rows, seed=1)))


def real() -> Tables | None:
    """The state's county tables as published, laid out record by record; None without the file."""
    folder = data_folder(FILE)
    if folder is None:
        return None
    whole = CountyTable.read(folder)
    own = np.flatnonzero(pc.starts_with(whole.county, STATE).to_numpy(zero_copy_only=False))
    state = CountyTable(
        whole.county.take(own),
        whole.naics.take(own),
        whole.establishments[own],
        whole.employees[own],
        whole.payroll[own],
    )
    return tables("county tables", pa.Table.from_batches(list(state.batches(seed=1))))


def _of_state(records: pa.Table) -> pa.Table:
    return records.filter(pc.starts_with(pc.cast(records["county"], pa.string()), STATE))


def tables(name: str, given: pa.Table) -> Tables:
    """All cells with an establishment that has employees."""
    given = given.filter(pc.greater(given["emp"], 0))
    county = pc.cast(given["county"], pa.string()).combine_chunks()
    naics = pc.utf8_slice_codeunits(pc.cast(given["naics"], pa.string()), 0, DIGITS[-1]).combine_chunks()
    records = pa.table({"estab_id": given["estab_id"], "county": county, "naics": naics, "emp": given["emp"]})
    places, industries = county.to_pylist(), naics.to_pylist()
    trees = (
        Dimension.from_levels("county", [(each,) for each in sorted(set(places))]),
        Dimension.from_levels("naics", [(each[: DIGITS[0]], each) for each in sorted(set(industries))]),
    )
    own = np.stack([trees[0].positions(places), trees[1].positions(industries)], axis=1)
    zero = np.zeros(len(own), np.int64)
    above = trees[1].trees[0][own[:, 1]]
    codes, columns, within, listed = [], [], [], 0
    emp = given["emp"].to_numpy().astype(np.float64)
    for place in (zero, own[:, 0]):
        for industry in (zero, above, own[:, 1]):
            kept, cell, found = contributed(place * len(trees[1].codes) + industry, emp)
            codes.append(np.stack([place, industry], axis=1)[kept])
            columns.append(found)
            within.append(listed + cell)
            listed += len(kept)
    cells = Cells.closed(trees, np.concatenate(codes))
    number, total, largest, second = np.concatenate(columns, axis=1)
    found = Contributions(number, total, largest, second, np.zeros(len(cells), np.bool_))
    return Tables(name, records, cells, found, np.arange(listed - len(codes[-1]), listed), tuple(within))


def contributed(key: Any, emp: Any) -> tuple[Any, Any, Any]:
    """A record of each cell, the cell of each record, and number, total, largest and second largest."""
    _, first, cell = np.unique(key, return_index=True, return_inverse=True)
    order = np.lexsort((-emp, cell))
    number = np.bincount(cell).astype(np.float64)
    start = (np.cumsum(number) - number).astype(np.int64)
    ranked = np.append(emp[order], 0.0)
    second = np.where(number > 1, ranked[start + 1], 0.0)
    return first, cell, np.stack([number, np.bincount(cell, weights=emp), ranked[start], second])
