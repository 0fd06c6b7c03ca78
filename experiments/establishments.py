"""The establishments of figures 3 to 5: County Business Patterns laid out record by record, or generated without the file.

The expansion itself is the package's (``recordwise.synthetic.CountyTable``): every county x industry cell becomes its
establishments, which add up to the cell's published employment and payroll.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from experiments.frame import data_folder
from recordwise.synthetic import CountyTable, establishments

FILE = "cbp_county_2017.parquet"
REAL = (
    "The six-digit cells of County Business Patterns 2017, read from the data folder and expanded to one record for each "
    "of 7.25 million establishments, which add up to the published employment and payroll; firms are made up. The paper "
    "used a synthetic file of its own."
)
GENERATED_ROWS = 2_000_000
"""Without the file; enough that more than a thousand cells hold a hundred establishments."""
SAMPLE_ROWS = 200_000
DATA_SEED = 1
"""Of the records. They are the same whatever seed the noise has."""
MEASURES = ("emp", "payann", "payqtr1")
PAPER_PERCENTILES = {
    "emp": {2: 0.47, 5: 0.66, 100: 0.97},
    "payann": {104: 0.50, 500: 0.79, 10_000: 0.99},
    "payqtr1": {24: 0.50, 125: 0.80, 2_500: 0.99},
}
"""Table 8, of the paper's synthetic establishments: the share at or below each value; payroll in $1,000."""


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """One entry for each establishment, sorted by county and industry, so that the cells of every level are contiguous."""

    county: np.ndarray
    """The county's number in the alphabetical list of counties."""
    naics: np.ndarray
    """The six-digit code as a number."""
    firm: np.ndarray
    measures: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.firm)

    def percentiles(self) -> list[dict[str, object]]:
        """The share at or below the paper's values, beside the paper's."""
        return [
            {
                "measure": name,
                "value": value,
                "paper": share,
                "ours": float(np.mean(self.measures[name] <= value)),
            }
            for name, shares in PAPER_PERCENTILES.items()
            for value, share in shares.items()
        ]


@lru_cache(maxsize=1)
def real_records() -> Records:
    """The expanded county tables; kept, because three figures look at them."""
    folder = data_folder(FILE)
    if folder is None:
        raise FileNotFoundError(FILE)
    return sorted_records(pa.Table.from_batches(list(CountyTable.read(folder).batches(seed=DATA_SEED))))


def generated_records() -> Records:
    """What the package's generator makes without any file; a sample is enough for its percentiles."""
    return sorted_records(establishments(SAMPLE_ROWS, seed=DATA_SEED))


def records() -> Records:
    """The real ones where the file is there, the generator's otherwise."""
    if data_folder(FILE) is not None:
        return real_records()
    return sorted_records(establishments(GENERATED_ROWS, seed=DATA_SEED))


def sorted_records(table: pa.Table) -> Records:
    county = numbers(table["county"])
    naics = pc.cast(table["naics"], pa.string()).cast(pa.int64()).to_numpy().astype(np.int32)
    cell = county.astype(np.int64) * 1_000_000 + naics
    order = slice(None) if np.all(cell[1:] >= cell[:-1]) else np.argsort(cell, kind="stable")
    return Records(
        county=county[order],
        naics=naics[order],
        firm=table["firm_id"].to_numpy()[order],
        measures={name: table[name].to_numpy().astype(np.int64)[order] for name in MEASURES},
    )


def numbers(names: pa.ChunkedArray) -> np.ndarray:
    """The place of each name in the sorted list of names."""
    coded = pc.cast(names, pa.string()).combine_chunks().dictionary_encode()
    places = np.argsort(np.argsort(np.array(coded.dictionary.to_pylist())))
    return places[coded.indices.to_numpy()].astype(np.int32)
