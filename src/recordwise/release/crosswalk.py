"""A public list of codes that were split or merged between two releases, and the sums that both have in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from recordwise.errors import ParameterError
from recordwise.plan.arrays import numpy_of

JOINED = "+"
PARTS, LEAST = "_parts", "_least_sd"
"""How many published cells were added up, and the smallest of their sds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crosswalk:
    """For each column the common code of the earlier and of the later codes; a code that is not named is its own."""

    columns: Mapping[str, tuple[Mapping[Any, str], Mapping[Any, str]]]

    def of(self, keys: Sequence[str]) -> list[str]:
        """The key columns whose codes changed."""
        return [name for name in keys if name in self.columns]


def read_crosswalk(given: Mapping[str, Any]) -> Crosswalk:
    """From pairs of an earlier and a later code for each column: ``{"naics": [("454110", "455110"), ...]}``."""
    return Crosswalk(columns={name: _common(name, pairs) for name, pairs in given.items()})


def _common(name: str, given: Any) -> tuple[dict[Any, str], dict[Any, str]]:
    """Codes that are linked by pairs share one common code: the later codes, joined."""
    pairs = list(given.items()) if isinstance(given, Mapping) else [tuple(pair) for pair in given]
    if not pairs or any(len(pair) != 2 or None in pair for pair in pairs):
        raise ParameterError(parameter=f"crosswalk of '{name}'", problem="must be pairs of an earlier and a later code")
    before, now = (list(dict.fromkeys(pair[side] for pair in pairs)) for side in (0, 1))
    links = [(before.index(old), len(before) + now.index(new)) for old, new in pairs]
    size = len(before) + len(now)
    graph = sparse.coo_array((np.ones(len(links)), tuple(zip(*links))), shape=(size, size))
    _, labels = connected_components(graph, directed=False)
    names: dict[int, list[str]] = {}
    for code, label in zip(now, labels[len(before) :]):
        names.setdefault(int(label), []).append(str(code))
    texts = {label: JOINED.join(sorted(codes)) for label, codes in names.items()}
    return (
        {code: texts[int(label)] for code, label in zip(before, labels)},
        {code: texts[int(label)] for code, label in zip(now, labels[len(before) :])},
    )


def merged(data: pa.Table, keys: Sequence[str], names: Sequence[str], pairs: Crosswalk, side: int) -> pa.Table:
    """The table with codes replaced by common ones and cells of one code added up: values and variances add.

    Intervals stay where a cell is alone in its code; otherwise only Gaussian noise has one, from its sd.
    """
    columns = {}
    for name in keys:
        column = data.column(name)
        if name in pairs.columns:
            common = pairs.columns[name][side]
            distinct = column.combine_chunks().dictionary_encode()
            texts = pa.array(
                [None if each is None else common.get(each, str(each)) for each in distinct.dictionary.to_pylist()]
            )
            column = texts.take(distinct.indices)
        columns[name] = column
    codes = pa.table(columns)
    numbered = codes.append_column("_row", pa.array(np.arange(data.num_rows)))
    cells = numbered.group_by(list(keys), use_threads=False).aggregate([("_row", "min")])
    whole = numbered.join(cells.append_column("_cell", pa.array(np.arange(cells.num_rows))), keys=list(keys)).sort_by(
        "_row"
    )
    place = numpy_of(whole.column("_cell"))
    found = {name: cells.column(name) for name in keys}
    alone = np.bincount(place, minlength=cells.num_rows) == 1
    for name in names:
        found |= _added(data, name, place, cells.num_rows, alone)
    return pa.table(found)


def _added(data: pa.Table, name: str, place: Any, size: int, alone: Any) -> dict[str, pa.Array]:
    def column(end: str) -> Any:
        return numpy_of(data.column(f"{name}{end}")).astype(np.float64)

    def total(values: Any) -> Any:
        return np.bincount(place, weights=values, minlength=size)

    found = {
        name: total(column("")),
        f"{name}_sd": np.sqrt(total(column("_sd") ** 2)),
        f"{name}{PARTS}": total(np.ones(len(place))),
    }
    found[f"{name}{LEAST}"] = np.full(size, np.inf)
    np.minimum.at(found[f"{name}{LEAST}"], place, column("_sd"))
    for end in ("_low", "_high"):
        found[f"{name}{end}"] = np.where(alone, total(column(end)), np.nan)
    return {each: pa.array(values, mask=np.isnan(values)) for each, values in found.items()}
