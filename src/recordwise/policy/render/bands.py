"""Which public size a record's cell has, in words: for somebody who looks up a loss that depends on it (T-SIZE)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recordwise.policy.bands import BandTable
from recordwise.policy.conditions import ConditionColumn, band_tables
from recordwise.policy.evaluate.tables import cell_of
from recordwise.policy.policy import Policy
from recordwise.policy.render.text import PART_WORDS, band_words


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeOfCell:
    """A table of bands that a loss depends on: what it is about, and the sizes of each band in words."""

    about: str
    table: BandTable
    words: tuple[str, ...]

    def found(self, record: Mapping[str, Any]) -> str:
        """The words for the cell of a record."""
        shown = {column.name: cell_of(dict(record), column.name) for column in self.table.columns}
        return self.words[self.table.band_of(shown)]


def sizes_of_cells(policy: Policy, labels: Mapping[str, str] | None = None) -> tuple[SizeOfCell, ...]:
    """The tables of bands of a policy in the order of its terms; each names the measures whose noise follows it."""
    known, measures = labels or {}, dict[str, list[str]]()
    for condition, atom in policy.rho:
        for digest in band_tables([condition]):
            named = [known.get(measure.name, measure.name) for measure in atom.measures()] or ["count"]
            measures.setdefault(digest, []).extend(named)
    return tuple(_size(table, measures.get(digest, []), known) for digest, table in policy.bands().items())


def _size(table: BandTable, measures: Sequence[str], labels: Mapping[str, str]) -> SizeOfCell:
    level = [labels.get(name, name) for name in table.level]
    cells = " and ".join(level or (_column(column, labels) for column in table.columns))
    about = f"{', '.join(dict.fromkeys(measures)) or 'all'} by {cells}"
    words = tuple(band_words(table, band) for band in range(len(table.edges)))
    return SizeOfCell(about=about, table=table, words=words)


def _column(column: ConditionColumn, labels: Mapping[str, str]) -> str:
    name = labels.get(column.name, column.name)
    if column.part:
        return f"{PART_WORDS.get(column.part, column.part)} of {name}"
    return name if column.length is None else f"the first {column.length} characters of {name}"
