"""What the files of a release say: its tables, each with a title and a data dictionary, and the words around them.

Every output format, the data package and the page are written from the same content.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from recordwise.plan.describe import safe_name
from recordwise.plan.status import StatusRules
from recordwise.plan.words import Words
from recordwise.release.dictionary import Entry, dictionary_of, title_of
from recordwise.release.page.parts import Part
from recordwise.release.status import signed_variables
from recordwise.release.tables import PRIVATE, ReleasedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTable:
    """A published table with its title and an entry of the dictionary for each column."""

    table: ReleasedTable
    title: str
    columns: tuple[Entry, ...]
    signed: frozenset[str] = frozenset()
    """The variables that may truly be negative."""

    @property
    def name(self) -> str:
        """The name of its files."""
        return self.table.name

    @property
    def data(self) -> pa.Table:
        """The table as Arrow."""
        return self.table.data


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What one file holds, or all files of a release together."""

    dataset: str
    tables: tuple[DescribedTable, ...]
    words: Words
    privacy_label: str
    rules: StatusRules = field(default_factory=StatusRules)
    """How the status of a value follows from its relative error."""
    notes: tuple[str, ...] = ()
    """What every reader of the tables should know."""

    @property
    def title(self) -> str:
        """The title of the release."""
        return self.words.publication.title or self.dataset

    @property
    def file_name(self) -> str:
        """The name of a file that holds all tables."""
        return safe_name(self.dataset) or "tables"

    @property
    def private(self) -> bool:
        """False if the noise was drawn from a seeded generator."""
        return self.privacy_label == PRIVATE

    @property
    def table(self) -> DescribedTable:
        """The only table."""
        (only,) = self.tables
        return only

    def only(self, name: str) -> "Content":
        """The content of the files of one table."""
        return replace(self, tables=tuple(each for each in self.tables if each.name == name))


def content_of(
    description: Mapping[str, Any],
    tables: Sequence[ReleasedTable],
    words: Words,
    *,
    privacy_label: str,
    parts: Sequence[Part] = (),
) -> Content:
    """The content of a release.

    Args:
        description: The release, as in release.json.
        tables: Its tables.
        words: Labels, units and who publishes it.
        privacy_label: Whether it is private.
        parts: Each statistic of each table, with a description of its noise.

    Returns:
        The content.
    """
    described = []
    for table in tables:
        noises = {part.statistic: part.noise for part in parts if part.table == table.name}
        columns = dictionary_of(description, table, words, noises)
        described.append(
            DescribedTable(
                table=table,
                title=title_of(description, table, words),
                columns=columns,
                signed=signed_variables(description, table),
            )
        )
    return Content(
        dataset=str(description.get("dataset", "release")),
        tables=tuple(described),
        words=words,
        privacy_label=privacy_label,
        rules=StatusRules.from_json(description["basic"]["status"]) if "basic" in description else StatusRules(),
        notes=tuple(_notes(description)),
    )


def _notes(description: Mapping[str, Any]) -> list[str]:
    notes = [
        "Noise was added to every number to limit what can be learned from the tables about any one record. How much "
        "can be learned depends on the size of the record, by the public rule in policy.json.",
        "Intervals and standard deviations account for this noise only, not for errors of sampling or reporting.",
        "Negative numbers are due to noise: keep them when you add cells up.",
    ]
    guarantee = description.get("guarantee")
    return [*notes, f"Guarantee: {guarantee}"] if guarantee else notes
