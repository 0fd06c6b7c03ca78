"""Neighboring tables side by side, and what a reader of the published files sees of them.

Every cell acts as its own table, and half of the cells of a comparison contain the record.
"""

import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.audit.subjects import CELL, FIRM, KIND, SECOND, VALUE, Record, Subject
from recordwise.exact.arithmetic import FloatArray
from recordwise.policy.json import bands_from_json
from recordwise.policy.policy import Policy

WIDTH = 7
"""Digits of a cell's number in its code; a letter follows, so that the number can be a level of its own."""
STRAYS = 5
DIGITS = 6
"""Digits after the decimal point, if the measure has a step below 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Which cell contains what: cells cycle through the groups, the first of which lacks the record."""

    subject: Subject
    cells: int
    """The number in each group."""

    @property
    def groups(self) -> tuple[str | None, ...]:
        return (None, *self.subject.records)

    @property
    def count(self) -> int:
        return self.cells * len(self.groups)

    def codes(self) -> list[str]:
        """The codes of all public cells, sorted."""
        return [code(number) for number in range(self.count)]

    def write(self, path: Path) -> None:
        """Write the records to a Parquet file."""
        import pyarrow.parquet

        pyarrow.parquet.write_table(self.table(), path)

    def table(self) -> pa.Table:
        """Every record in its row or rows; some are in cells outside the public keys, unless keys are found in the data."""
        blocks = [self._block(record, self._cells_of(place)) for place, record in self._placed()]
        if self.subject.lists_every_cell:
            giant = list(self.subject.records.values())[-1]
            blocks.append(self._block(giant, [code(10**WIDTH - 1 - stray) for stray in range(STRAYS)]))
        rows = pa.concat_tables(blocks)
        numbers = pa.array(range(rows.num_rows), pa.int64())
        records = rows.append_column("id", numbers).append_column(FIRM, numbers)
        nothing = pa.repeat(pa.scalar(0, rows.schema.field(SECOND).type), rows.num_rows)
        further = records.set_column(records.column_names.index(SECOND), SECOND, nothing)
        return pa.concat_tables([records, *[further] * (self.subject.rows - 1)])

    def _placed(self) -> list[tuple[int, Record]]:
        """The group of cells that each record is in."""
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


BITS = 53


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Published:
    """The features of every cell, the policy stated in the files, and any defects of the rows."""

    features: dict[str, FloatArray]
    policy: Policy
    problems: tuple[str, ...]


def read_published(folder: Path, layout: Layout) -> Published:
    """Read the files of a release back, tables from Parquet, which holds every digit."""
    import pyarrow.parquet

    features: dict[str, FloatArray] = {}
    problems: list[str] = []
    for path in sorted(folder.glob("*.parquet")):
        table = pyarrow.parquet.read_table(path, partitioning=None)
        cells = pc.utf8_slice_codeunits(table.column(0), 0, WIDTH).cast(pa.int64()).to_numpy()
        problems += [f"{path.stem}: {problem}" for problem in row_problems(cells, layout)]
        known = (cells >= 0) & (cells < layout.count)
        for name, numbers in features_of(table.drop_columns([table.column_names[0]])).items():
            full = np.full(layout.count, np.nan)
            full[cells[known]] = numbers[known]
            features[f"{path.stem}.{name}"] = full
        if known.sum() < layout.count:
            features[f"{path.stem} is there"] = np.where(np.isin(np.arange(layout.count), cells), 0.0, np.nan)
    policies = json.loads((folder / "policy.json").read_text(encoding="utf-8"))
    policy = Policy.from_json(policies["tight"], bands_from_json(policies.get("bands")))
    return Published(features=features, policy=policy, problems=tuple(dict.fromkeys(problems)))


def row_problems(cells: np.ndarray[Any, np.dtype[np.int64]], layout: Layout) -> list[str]:
    """Rows that reveal something by their presence, absence or order."""
    problems = []
    if np.any((cells < 0) | (cells >= layout.count)):
        problems.append("publishes a cell that is not among the public keys")
    if len(np.unique(cells)) < len(cells):
        problems.append("publishes a cell twice")
    if np.any(np.diff(cells) < 0):
        problems.append("its rows are not in the order of their keys")
    if layout.subject.lists_every_cell and len(np.setdiff1d(np.arange(layout.count), cells)):
        problems.append("leaves a public cell out")
    return problems


def features_of(table: pa.Table) -> dict[str, FloatArray]:
    """Every published number, its lowest bit, and the differences between variables."""
    found: dict[str, FloatArray] = {}
    for name in table.column_names:
        column = table.column(name)
        numbers = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)
        # CSV does not distinguish whole floats from integers, so the feature covers both.
        found |= {name: numbers, f"lowest bit of {name}": lowest_bit(numbers)}
    variables = [name for name in table.column_names if f"{name}_sd" in table.column_names]
    for place, first in enumerate(variables):
        for second in variables[place + 1 :]:
            found[f"{first} - {second}"] = found[first] - found[second]
    return {name: numbers for name, numbers in found.items() if tells(numbers)}


def tells(numbers: FloatArray) -> bool:
    """Whether a feature differs between cells."""
    return bool(len(numbers)) and not bool(np.all(numbers == numbers[0]))


def lowest_bit(numbers: FloatArray) -> FloatArray:
    """The exponent of the last nonzero binary digit of a float, which continuous noise cannot hide (Mironov 2012)."""
    fraction, exponent = np.frexp(np.where(np.isfinite(numbers) & (numbers != 0), numbers, 1.0))
    whole = np.abs(fraction * 2.0**BITS).astype(np.int64)
    trailing = np.log2((whole & -whole).astype(np.float64))
    place = exponent - BITS + trailing
    return np.where(numbers == 0, 2.0 * BITS, np.where(np.isfinite(numbers), place, np.nan))
