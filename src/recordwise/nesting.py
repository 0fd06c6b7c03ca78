"""How the tables of one query nest: which cell of a coarser table each cell of a finer one falls into.

Read off a release's own description, so that it works on saved files as well; nothing here costs privacy (post-processing).
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.published import ReleasedTable

IntArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Groups: TypeAlias = Sequence[Mapping[str, Any]]
"""The ``by`` of a table in release.json: for each group its name and the column or prefix it is."""
SEPARATOR = "\x1f"
OUTSIDE = -1


def source_of(group: Mapping[str, Any], finer: Groups) -> str | None:
    """The column of the finer table that determines a group; None where none does."""
    for candidate in finer:
        if candidate == group:
            return str(candidate["name"])
        if "prefix_of" not in group:
            continue
        if candidate.get("column") == group["prefix_of"]:
            return str(candidate["name"])
        if candidate.get("prefix_of") == group["prefix_of"] and candidate["length"] >= group["length"]:
            return str(candidate["name"])
    return None


def nests(coarser: Groups, finer: Groups) -> bool:
    """Whether every cell of the finer table lies in one cell of the coarser."""
    return all(source_of(group, finer) is not None for group in coarser)


def parents(coarser: ReleasedTable, coarser_by: Groups, finer: ReleasedTable, finer_by: Groups) -> IntArray:
    """For each row of the finer table its row in the coarser; ``OUTSIDE`` where that cell is not published."""
    if not coarser_by:
        return np.zeros(finer.data.num_rows, dtype=np.int64)
    derived = []
    for group in coarser_by:
        column = finer.data.column(source_of(group, finer_by) or "")
        derived.append(pc.utf8_slice_codeunits(column, 0, group["length"]) if "prefix_of" in group else column)
    own = [coarser.data.column(str(group["name"])) for group in coarser_by]
    found = pc.index_in(_joined(derived), value_set=_joined(own))
    return np.asarray(found.fill_null(OUTSIDE).to_numpy(), np.int64)


def _joined(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """One text for each cell; NULL keys get a text of their own."""
    texts = [pc.fill_null(pc.cast(column, pa.string()), "\x00") for column in columns]
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, SEPARATOR)
