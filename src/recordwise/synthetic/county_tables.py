"""Generated establishments that add up to County Business Patterns.

For every county x industry cell, records with its published employment and payroll.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from recordwise.errors import SourceError, own_errors_of
from recordwise.exact.arithmetic import FloatArray
from recordwise.synthetic.establishments import IntArray, employment, figures, firm, payroll, scrambled_ids, uniforms

FILE = "cbp_county_2017.parquet"
COLUMNS = ["fips", "naics", "digits", "establishments", "employees", "payroll_1000usd"]
BATCH = 1_000_000


@own_errors_of
@dataclass(frozen=True, slots=True, eq=False)
class CountyTable:
    """The six-digit cells: county, industry and totals."""

    county: pa.Array
    naics: pa.Array
    establishments: IntArray
    employees: FloatArray
    payroll: FloatArray

    @classmethod
    def read(cls, directory: str | Path) -> "CountyTable":
        """The cells of the file in a directory.

        Args:
            directory: The folder that holds the file.

        Returns:
            The table.
        """
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        path = Path(directory) / FILE
        if not path.is_file():
            raise SourceError(source=f"'{directory}'", problem=f"it does not contain {FILE}")
        table = pq.read_table(path, columns=COLUMNS)
        table = table.filter(pc.equal(table["digits"], 6)).sort_by([("fips", "ascending"), ("naics", "ascending")])
        return cls(
            county=table["fips"].cast(pa.string()).combine_chunks(),
            naics=table["naics"].cast(pa.string()).combine_chunks(),
            establishments=table["establishments"].to_numpy().astype(np.int64),
            employees=table["employees"].to_numpy().astype(np.float64),
            payroll=table["payroll_1000usd"].to_numpy().astype(np.float64),
        )

    def keys(self) -> pa.Table:
        """The cells as public keys, because they were published."""
        return pa.table({"county": self.county, "naics": self.naics})

    def batches(self, *, seed: int = 1) -> Iterator[pa.RecordBatch]:
        """Yield one record per establishment, about a million at a time.

        Args:
            seed: The seed of the generator; the same seed gives the same rows.

        Returns:
            The batches, in order.
        """
        ends = np.cumsum(self.establishments)
        cuts = np.unique(np.searchsorted(ends, np.arange(BATCH, ends[-1] + BATCH, BATCH), side="left") + 1)
        first = 0
        for last in np.minimum(cuts, len(ends)):
            if last > first:
                yield self._batch(first, int(last), int(ends[-1]), seed)
            first = int(last)

    def _batch(self, first: int, last: int, rows: int, seed: int) -> pa.RecordBatch:
        counts = self.establishments[first:last]
        start, cell = int(self.establishments[:first].sum()), np.repeat(np.arange(first, last), counts)

        def stream(number: int) -> FloatArray:
            return uniforms(seed, number, start, len(cell))

        steps, wages = self._industry(cell)
        emp = employment(steps, stream(2), stream(3))
        paid = payroll(emp, wages, stream(4), stream(5)).astype(np.float64)
        bounds = np.cumsum(counts) - counts
        number = np.arange(start, start + len(cell), dtype=np.int64)
        payann = scale_to_totals(paid, bounds, counts, self.payroll[first:last])
        return pa.record_batch(
            {
                "estab_id": scrambled_ids(number),
                "firm_id": firm(number, rows, stream(8), stream(9)),
                "county": self.county.take(pa.array(cell)),
                "naics": self.naics.take(pa.array(cell)),
                "emp": scale_to_totals(emp, bounds, counts, self.employees[first:last]),
                "payann": payann,
                "payqtr1": np.floor(payann * (0.15 + 0.1 * (stream(6) + stream(7)))).astype(np.int64),
            }
        )

    def _industry(self, cell: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return industries' size classes and wages; the average if missing."""
        known = figures()
        place = {naics: number for number, naics in enumerate(known.industries)}
        codes = self.naics.dictionary_encode()
        rows = np.array([place.get(naics, -1) for naics in codes.dictionary.to_pylist()])
        steps = np.vstack([known.size_steps, known.size_steps.mean(axis=0)])
        wages = np.append(known.wages, known.wages.mean())
        industry = rows[codes.indices.to_numpy()][cell]
        return steps[industry], wages[industry]


def scale_to_totals(values: FloatArray, bounds: IntArray, counts: IntArray, totals: FloatArray) -> IntArray:
    """Return integers in proportion to ``values`` with each cell's total."""
    sums = np.add.reduceat(values, bounds)
    even = np.repeat(sums == 0, counts)
    weights = np.where(even, 1.0, values)
    sums = np.where(sums == 0, counts, sums)
    running = np.cumsum(weights)
    before = np.repeat(running[bounds] - weights[bounds], counts)
    share = (running - before) / np.repeat(sums, counts)
    reached = np.floor(share * np.repeat(totals, counts) + 0.5).astype(np.int64)
    reached[bounds + counts - 1] = totals.astype(np.int64)
    steps = np.diff(reached, prepend=0)
    steps[bounds] = reached[bounds]
    whole: IntArray = np.maximum(steps, 0)
    return whole
