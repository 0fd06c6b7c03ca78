"""How the tables of one query nest: which cell of a coarser table contains a cell of a finer one, and what is left beside them.

Public keys need not list every cell, so a coarser total may include records of no published finer cell: each published coarser
cell gets one unpublished cell for that remainder, unless the keys are declared complete or the remainder is itself published. All
of this is read from the release's own description, so it also works on saved files.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import read_fraction
from recordwise.plan.cost import bands_of_cells
from recordwise.plan.fields import ALL_OTHER
from recordwise.policy.bands import BandTable
from recordwise.postprocess.answer_tree import AnswerTree, tree_of
from recordwise.release.release import Release
from recordwise.release.tables import ReleasedTable

IntArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Groups: TypeAlias = Sequence[Mapping[str, Any]]
"""The ``by`` of a table in release.json: for each group, its name and its column or prefix."""
SEPARATOR = "\x1f"
OUTSIDE = -1


def source_of(group: Mapping[str, Any], finer: Groups) -> str | None:
    """The column of the finer table that determines a group; None if there is none."""
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
    """For each row of the finer table, its row in the coarser one; ``OUTSIDE`` if that cell is not published."""
    if not coarser_by:
        return np.zeros(finer.data.num_rows, dtype=np.int64)
    derived = []
    for group in coarser_by:
        column = finer.data.column(source_of(group, finer_by) or "")
        derived.append(pc.utf8_slice_codeunits(column, 0, group["length"]) if "prefix_of" in group else column)
    # No finer cell lies in an "all other" cell, whose key may look like that of a listed one.
    listed = np.flatnonzero(~rest_rows(coarser))
    own = [coarser.data.column(str(group["name"])).take(pa.array(listed)) for group in coarser_by]
    found = np.asarray(pc.index_in(_joined(derived), value_set=_joined(own)).fill_null(OUTSIDE).to_numpy(), np.int64)
    return np.where(found == OUTSIDE, OUTSIDE, listed[found] if len(listed) else OUTSIDE)


def rest_rows(table: ReleasedTable) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Which rows are the published rest of a coarser cell."""
    if ALL_OTHER not in table.keys:
        return np.zeros(table.data.num_rows, dtype=bool)
    return np.asarray(table.data.column(ALL_OTHER).to_numpy(), bool)


def _joined(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """One text for each cell; a NULL key has a text of its own."""
    texts = [pc.fill_null(pc.cast(column, pa.string()), "\x00") for column in columns]
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, SEPARATOR)


@dataclass(frozen=True, kw_only=True, eq=False)
class Family:
    """The tables of one query, finest first, and its cells: those of the finest table, the "all other" cells of the others, and
    the unpublished remainders."""

    tables: tuple[ReleasedTable, ...]
    rows: Any
    """Every published cell as a sum of cells, table by table."""
    sizes: dict[str, int]
    shares: dict[str, str]
    statistics: tuple[Mapping[str, Any], ...]
    schema: Mapping[str, Any]
    sized: Mapping[str, Mapping[str, Any]]
    """For each table the bands of the statistics whose noise is sized."""
    bands: Mapping[str, BandTable]

    @property
    def own(self) -> int:
        """The number of cells that belong to the finest table."""
        return int(self.tables[0].data.num_rows)

    @cached_property
    def signed(self) -> frozenset[str]:
        """The measures that may be negative."""
        return frozenset(str(each["name"]) for each in self.schema.get("measures", ()) if each.get("signed"))

    @property
    def undetermined(self) -> bool:
        """Whether there are as many unknown cells as answers, so that a linear fit changes nothing."""
        return bool(self.rows.shape[0] == self.rows.shape[1])

    @cached_property
    def tree(self) -> AnswerTree | None:
        """The answers as a tree; None if tables cross."""
        return tree_of(self.rows)

    def column(self, statistic: Mapping[str, Any], end: str) -> FloatArray:
        """A published column of a statistic, table by table; NaN for NULL."""
        name = f"{statistic['name']}{end}"
        return np.concatenate(
            [table.data.column(name).to_numpy(zero_copy_only=False).astype(np.float64) for table in self.tables]
        )

    def by_size(self, name: str) -> Iterator[tuple[IntArray, Fraction, Fraction]]:
        """The answers of a statistic whose noise is sized that share a table and a band, with the table's share and the size."""
        start = 0
        for table in self.tables:
            count, stated = self.sizes[table.name], self.sized[table.name][name]
            bands: IntArray = np.zeros(count, np.int64)
            if stated["bands"] in self.bands:
                found, names = self.bands[stated["bands"]], [each for each in table.keys if each != ALL_OTHER]
                bands = bands_of_cells(found, names, table.data)
            for band, edge in enumerate(stated["edges"]):
                rows = np.flatnonzero(bands == band) + start
                if len(rows):
                    yield rows, Fraction(self.shares[table.name]), read_fraction(edge)
            start += count

    def by_table(self, answers: FloatArray) -> list[FloatArray]:
        """A number for each answer, divided by table."""
        return list(np.split(answers, np.cumsum(list(self.sizes.values()))[:-1]))


def family_of(release: Release, query: Mapping[str, Any], *, complete: bool) -> Family:
    """The tables of a described query and their cells."""
    by = {table["name"]: table["by"] for table in query["tables"]}
    if any("keys" in table for table in query["tables"]):
        raise ParameterError(
            parameter="release", problem="has privately selected keys, so its tables have no fixed cells to fit"
        )
    tables = sorted(
        (t for t in release.tables if t.name in by), key=lambda t: (len(by[t.name]), t.data.num_rows), reverse=True
    )
    finest = next((t for t in tables if all(nests(by[other.name], by[t.name]) for other in tables)), None)
    if finest is None:
        names = ", ".join(table.name for table in tables)
        raise ParameterError(parameter="release", problem=f"has no table in which all of these are nested: {names}")
    ordered = (finest, *(table for table in tables if table is not finest))
    rests = any(table.get("rest") for table in query["tables"])
    return Family(
        tables=ordered,
        rows=cell_rows(ordered, by, complete=complete or rests),
        sizes={table.name: table.data.num_rows for table in ordered},
        shares={table["name"]: str(table["share"]) for table in query["tables"]},
        statistics=tuple(query["statistics"]),
        schema=release.description.get("schema", {}),
        sized={table["name"]: table.get("sized", {}) for table in query["tables"]},
        bands=release.policy.bands(),
    )


def cell_rows(tables: Sequence[ReleasedTable], by: Mapping[str, Any], *, complete: bool) -> Any:
    """The incidence of published cells and fitted cells: the finest table's cells first, then what every other table has of its
    own: "all other" cells if its remainders are known, a remainder for each cell otherwise."""
    finest, *others = tables
    owners = [(finest, np.arange(finest.data.num_rows))]
    for table in others:
        own = np.flatnonzero(rest_rows(table)) if complete else np.arange(table.data.num_rows)
        owners += [(table, own)] if len(own) else []
    grid = [[_block(table, owner, own, by) for owner, own in owners] for table in tables]
    return sparse.csr_array(sparse.block_array(grid, format="csr"))


def _block(table: ReleasedTable, owner: ReleasedTable, own: IntArray, by: Mapping[str, Any]) -> Any:
    """Which rows of ``table`` contain the cells ``own`` of ``owner``."""
    shape = (table.data.num_rows, len(own))
    if owner is table:
        return sparse.csr_array((np.ones(len(own)), (own, np.arange(len(own)))), shape=shape)
    if not nests(by[table.name], by[owner.name]) or by[table.name] == by[owner.name]:
        return sparse.csr_array(shape)
    up = parents(table, by[table.name], owner, by[owner.name])[own]
    inside = np.flatnonzero(up != OUTSIDE)
    return sparse.csr_array((np.ones(len(inside)), (up[inside], inside)), shape=shape)
