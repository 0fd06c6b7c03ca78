"""Neighboring tables side by side: every cell acts as its own table, and half of the cells of a comparison contain the record."""

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from recordwise.audit.subjects import CELL, FIRM, KIND, SECOND, VALUE, Record, Subject

WIDTH = 7
"""Digits of a cell's number in its code; a letter follows, so that the number is a level of its own."""
STRAYS = 5
DIGITS = 6
"""Behind the point, where the measure has a step below 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Which cell contains what: cells cycle through the groups, the first of which lacks the record."""

    subject: Subject
    cells: int
    """In each group."""

    @property
    def groups(self) -> tuple[str | None, ...]:
        return (None, *self.subject.records)

    @property
    def count(self) -> int:
        return self.cells * len(self.groups)

    def codes(self) -> list[str]:
        """Of every public cell, sorted."""
        return [code(number) for number in range(self.count)]

    def write(self, path: Path) -> None:
        """The records, as a Parquet file."""
        import pyarrow.parquet

        pyarrow.parquet.write_table(self.table(), path)

    def table(self) -> pa.Table:
        """One row per record; some are in cells outside the public keys, unless keys are found in the data."""
        blocks = [self._block(record, self._cells_of(place)) for place, record in self._placed()]
        if self.subject.lists_every_cell:
            giant = list(self.subject.records.values())[-1]
            blocks.append(self._block(giant, [code(10**WIDTH - 1 - stray) for stray in range(STRAYS)]))
        rows = pa.concat_tables(blocks)
        numbers = pa.array(range(rows.num_rows), pa.int64())
        return rows.append_column("id", numbers).append_column(FIRM, numbers)

    def _placed(self) -> list[tuple[int, Record]]:
        """Which record is in which group of cells."""
        beside = [(place, other) for place in range(len(self.groups)) for other in self.subject.others]
        return beside + list(enumerate(self.subject.records.values(), start=1))

    def _cells_of(self, place: int) -> list[str]:
        return [code(number) for number in range(place, self.count, len(self.groups))]

    def _block(self, record: Record, cells: list[str]) -> pa.Table:
        """The same record in each of several cells."""
        amount = record[VALUE]
        kind = pa.int64() if self.subject.step == 1 else pa.decimal128(30, DIGITS)
        stored = int(amount) if self.subject.step == 1 else Decimal(int(amount * 10**DIGITS)).scaleb(-DIGITS)
        constants = {
            KIND: pa.scalar(str(record[KIND])),
            VALUE: pa.scalar(stored, kind),
            SECOND: pa.scalar(record[SECOND]),
        }
        return pa.table({CELL: cells} | {name: pa.repeat(value, len(cells)) for name, value in constants.items()})


def code(number: int) -> str:
    return f"{number:0{WIDTH}d}A"
