"""What a reader of the files sees of each cell: its numbers, and whether the cell is there at all."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.audit.pairs import WIDTH, Layout
from recordwise.exact.arithmetic import FloatArray
from recordwise.policy.policy import Policy

BITS = 53


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Published:
    """The features of every cell, the policy stated in the files, and any defects of the rows."""

    features: dict[str, FloatArray]
    policy: Policy
    problems: tuple[str, ...]


def read_published(folder: Path, layout: Layout, *, csv: bool) -> Published:
    """Read the files of a release back, tables from Parquet or from CSV."""
    features: dict[str, FloatArray] = {}
    problems: list[str] = []
    for path in sorted(folder.glob("*.csv" if csv else "*.parquet")):
        table = _table(path)
        cells = pc.utf8_slice_codeunits(table.column(0), 0, WIDTH).cast(pa.int64()).to_numpy()
        problems += [f"{path.stem}: {problem}" for problem in row_problems(cells, layout)]
        known = (cells >= 0) & (cells < layout.count)
        for name, numbers in features_of(table.drop_columns([table.column_names[0]])).items():
            full = np.full(layout.count, np.nan)
            full[cells[known]] = numbers[known]
            features[f"{path.stem}.{name}"] = full
        if known.sum() < layout.count:
            features[f"{path.stem} is there"] = np.where(np.isin(np.arange(layout.count), cells), 0.0, np.nan)
    policy = json.loads((folder / "policy.json").read_text(encoding="utf-8"))["tight"]
    return Published(features=features, policy=Policy.from_json(policy), problems=tuple(dict.fromkeys(problems)))


def _table(path: Path) -> pa.Table:
    import pyarrow.csv
    import pyarrow.parquet

    if path.suffix == ".parquet":
        return pyarrow.parquet.read_table(path, partitioning=None)
    with path.open(encoding="utf-8") as lines:
        first = lines.readline().split(",")[0].strip().strip('"')
    return pyarrow.csv.read_csv(path, convert_options=pyarrow.csv.ConvertOptions(column_types={first: pa.string()}))


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
    """Whether a feature differs between cells at all."""
    return bool(len(numbers)) and not bool(np.all(numbers == numbers[0]))


def lowest_bit(numbers: FloatArray) -> FloatArray:
    """The exponent of the last nonzero binary digit of a float, which continuous noise cannot hide (Mironov 2012)."""
    fraction, exponent = np.frexp(np.where(np.isfinite(numbers) & (numbers != 0), numbers, 1.0))
    whole = np.abs(fraction * 2.0**BITS).astype(np.int64)
    trailing = np.log2((whole & -whole).astype(np.float64))
    place = exponent - BITS + trailing
    return np.where(numbers == 0, 2.0 * BITS, np.where(np.isfinite(numbers), place, np.nan))
