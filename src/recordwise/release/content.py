"""The content of a release's files: tables, dictionaries and words.

Each table has a title and a data dictionary. Every output format, the data package and the page are written
from the same content.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from recordwise.plan.publication import Labels, Publication, StatusRules
from recordwise.release.dictionary import Entry, dictionary_of, title_of
from recordwise.release.published import LEVEL, Groups, Published, PublishedQuery
from recordwise.release.tables import PRIVATE, PagePart, ReleasedTable, noise_read, with_names

if TYPE_CHECKING:
    from recordwise.plan.plan import Plan, PlannedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTable:
    """A published table with its title and column dictionary."""

    table: ReleasedTable
    title: str
    columns: tuple[Entry, ...]
    signed: frozenset[str] = frozenset()
    """The variables that may truly be negative."""
    halves: Mapping[str, float] = field(default_factory=dict)
    """The variables whose cells may be added up, and half a step of the lattice of Gaussian noise (T-HALFSTEP)."""
    reaches: Mapping[str, float] = field(default_factory=dict)
    """Of those whose noise is not Gaussian: standard errors that hold a sum with at least the confidence (T-UNIMODAL)."""
    coarser: tuple[str, ...] = ()
    """The tables of the same query whose cells contain those of this one."""

    @property
    def name(self) -> str:
        """The name of its files."""
        return self.table.name

    @property
    def data(self) -> pa.Table:
        """The table as Arrow."""
        return self.table.data

    def telling_keys(self) -> tuple[str, ...]:
        """Return the keys with more than one code in the table."""
        return tuple(name for name in self.table.keys if _differs(self.data.column(name)))


def _differs(column: pa.ChunkedArray) -> bool:
    """Return whether a column has more than one value."""
    # Its ends nearly always show it.
    ends_differ = len(column) > 1 and not column[0].equals(column[-1])
    return ends_differ or pc.count_distinct(column, mode="all").as_py() > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What one file holds, or all files of a release together."""

    dataset: str
    tables: tuple[DescribedTable, ...]
    words: Labels
    privacy_label: str
    rules: StatusRules = field(default_factory=StatusRules)
    """How the status of a value follows from its relative error."""
    notes: tuple[str, ...] = ()
    """What every reader of the tables should know."""
    confidence: float = LEVEL
    """That of the intervals."""

    @property
    def title(self) -> str:
        """The title of the release."""
        return self.words.publication.title or self.dataset

    @property
    def file_name(self) -> str:
        """The name of a file that holds all tables."""
        from recordwise.plan.describe import safe_name

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

    def table_named(self, name: str) -> DescribedTable:
        """A table by name."""
        return next(each for each in self.tables if each.name == name)

    def only(self, name: str) -> "Content":
        """The content of the files of one table."""
        return replace(self, tables=tuple(each for each in self.tables if each.name == name))


def content_of(
    published: Published,
    tables: Sequence[ReleasedTable],
    words: Labels,
    *,
    privacy_label: str,
    parts: Sequence[PagePart] = (),
) -> Content:
    """The content of a release.

    Args:
        published: The release, as in release.json.
        tables: Its tables.
        words: Labels, units and who publishes it.
        privacy_label: Whether it is private.
        parts: Each statistic of each table, with a description of its noise.

    Returns:
        The content.
    """
    described = []
    for each in tables:
        table = with_names(each, words) if words.names else each
        noises = {part.statistic: part.noise for part in parts if part.table == table.name}
        columns = dictionary_of(published, table, words, noises)
        halves, reaches = _added_up(published, table)
        described.append(
            DescribedTable(
                table=table,
                title=title_of(published, table, words),
                columns=columns,
                signed=published.signed_variables(table.name),
                halves=halves,
                reaches=reaches,
                coarser=_coarser(published, table),
            )
        )
    return Content(
        dataset=published.dataset,
        tables=tuple(described),
        words=words,
        privacy_label=privacy_label,
        rules=StatusRules() if published.basic is None else published.basic.rules,
        notes=tuple(_notes(published)),
        confidence=published.confidence,
    )


BASIC_END, RESEARCH_END = " (basic)", " (research)"


def basic_first(tables: Sequence[DescribedTable]) -> list[DescribedTable]:
    """Return the tables for most readers first."""
    return sorted(tables, key=lambda each: not each.title.endswith(BASIC_END))


def short_titles(tables: Sequence[DescribedTable], *, research: str) -> list[str]:
    """Return titles without what all tables share, such as "State by Sector"; the titles where those do not differ.

    Args:
        tables: The tables.
        research: The end of the titles of research tables next to basic ones.

    Returns:
        A title for each table.
    """
    bare = [each.title.removesuffix(BASIC_END).removesuffix(RESEARCH_END) for each in tables]
    short = [_short_title(each, research) for each in tables]
    begins = {"" if title.startswith("By ") else title.partition(", by ")[0] for title in bare}
    alike = len(tables) > 1 and len(begins) == 1
    return short if alike and len(set(short)) == len(short) else [each.title for each in tables]


def _short_title(described: DescribedTable, research: str) -> str:
    """Return by which of its keys a table tells cells apart."""
    titles = {each.name: each.title for each in described.columns}
    words = " by ".join(titles[name] for name in described.telling_keys()) or "Total"
    return words + (research if described.title.endswith(RESEARCH_END) else "")


def _added_up(published: Published, table: ReleasedTable) -> tuple[dict[str, float], dict[str, float]]:
    """Return which variables add up over cells with independent noise: half their step, and reaches if not Gaussian."""
    query, halves, reaches = published.query_of(table.name), dict[str, float](), dict[str, float]()
    if query is None or table.name in published.basic_names or _selected(query, table.name):
        return halves, reaches
    for each in query.statistics:
        sd = f"{each.name}_sd"
        added = each.rules.fitted and each.rules.adds_up(each.of, firm=published.firm)
        if (
            not added
            or sd not in table.data.schema.names
            or (mechanism := noise_read(each)) is None
            or mechanism.signed
        ):
            continue
        inside, half = mechanism.inside(), float(published.measure(each.of).step) / 2
        least = pc.min(table.data.column(sd)).as_py()
        if table.data.column(sd).null_count or any(own.variance_varies for own in inside):
            continue
        if all(own.offers("noise_sigma") for own in inside):
            if least is None or least >= half:
                halves[each.name] = half
        elif least and math.isfinite(least):
            # Only noise that is symmetric with one mode, but not Gaussian, tells it.
            parts = [own.lattice_part(least) for own in inside if hasattr(own, "lattice_part")]
            if len(parts) == len(inside):
                halves[each.name], reaches[each.name] = 0.0, unimodal_reach(published.confidence, max(parts))
    return halves, reaches


ROUNDED = 4.0
"""How far rounding to lattices moves a sum, in roots of the sum of their squares, but for ``MISSED``."""
MISSED = 2 * math.exp(-2 * ROUNDED**2)


def unimodal_reach(confidence: float, part: float) -> float:
    """Return standard errors that hold sums of unimodal noise (T-UNIMODAL).

    Args:
        confidence: How often at least.
        part: The lattice of the noise as a part of its standard deviation, at most.

    Returns:
        The reach of an interval in standard errors of the sum: 2.98 at .95 on a fine lattice.
    """
    miss = max(1 - confidence - MISSED, math.ulp(1.0))
    gauss = 2 / (3 * math.sqrt(miss)) if miss <= 1 / 3 else math.sqrt(3) * (1 - miss)
    return gauss * math.sqrt(1 + part**2 / 12) + ROUNDED * part


def least_above(content: Content, table: DescribedTable, name: str) -> tuple[float, str] | None:
    """The smallest error of a variable in a coarser table's cell, and that table."""
    above = [each for each in content.tables if each.name in table.coarser and name in each.halves]
    errors = [(pc.min(each.data.column(f"{name}_sd")).as_py(), each.name) for each in above]
    found = [(float(least), own) for least, own in errors if least is not None]
    return min(found) if found and name in table.halves else None


def _selected(query: PublishedQuery, name: str) -> bool:
    return any(table.selected for table in query.tables if table.name == name)


def _coarser(published: Published, table: ReleasedTable) -> tuple[str, ...]:
    """The tables of its query that its cells lie in."""
    query = published.query_of(table.name)
    by = {} if query is None or table.name in published.basic_names else {each.name: each.by for each in query.tables}
    own = by.get(table.name, ())

    def above(groups: Groups) -> bool:
        return groups != own and all(any(each.determines(group) for each in own) for group in groups)

    return tuple(name for name, groups in by.items() if above(groups))


def _notes(published: Published) -> list[str]:
    notes = [
        "Noise was added to every number to limit what can be learned from the tables about any one record. How much "
        "can be learned depends on the size of the record, by the public rule in policy.json.",
        "Intervals and standard deviations account for this noise only, not for errors of sampling or reporting.",
        "Negative numbers are due to noise: keep them when you add cells up.",
    ]
    return [*notes, f"Guarantee: {published.guarantee}"] if published.guarantee else notes


# datapackage.json: the release as a Data Package, each table with a Table Schema, so that codes stay text and units
# are known.


NAME = "datapackage.json"
PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
MEDIA_TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}


def datapackage_json(content: Content, files: Collection[str]) -> dict[str, Any]:
    """Return the data package.

    It depends on the plan and the words alone, so the digests of files are in release.json only.

    Args:
        content: What the release says.
        files: The names of the files of the tables.

    Returns:
        The content of datapackage.json.
    """
    return {
        "$schema": PROFILE,
        "name": _plain(content.file_name),
        "title": content.title,
        "description": " ".join(content.notes),
        "privacy_label": content.privacy_label,
        **_about(content.words.publication),
        "resources": [_resource(each, content, files) for each in content.tables],
    }


def _plain(name: str) -> str:
    """A name as data packages allow it."""
    return re.sub(r"[^a-z0-9._-]", "_", name.lower())


def _about(said: Publication) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if said.version:
        found["version"] = said.version
    if said.date:
        found["created"] = f"{said.date}T00:00:00Z"
    if said.publisher:
        contact = {"email": said.contact} if "@" in said.contact and " " not in said.contact else {}
        found["contributors"] = [{"title": said.publisher, "roles": ["publisher"], **contact}]
    if said.license:
        address = said.license.startswith(("http://", "https://"))
        found["licenses"] = [{"path": said.license} if address else {"name": said.license, "title": said.license}]
    others = {"contact": said.contact, "period": said.period, "revision": said.revision}
    return found | {name: text for name, text in others.items() if text}


def _resource(table: DescribedTable, content: Content, files: Collection[str]) -> dict[str, Any]:
    """Return a table's CSV file, or its Parquet file without one."""
    kind = next((each for each in ("csv", "parquet") if f"{table.name}.{each}" in files), "parquet")
    path = f"{table.name}.{kind}"
    commented = {} if content.private or kind != "csv" else {"dialect": {"commentChar": "#"}}
    return {
        "name": _plain(table.name),
        "type": "table",
        "title": table.title,
        "path": path,
        "format": kind,
        "mediatype": MEDIA_TYPES[kind],
        "encoding": "utf-8",
        **commented,
        "schema": {
            "fields": [
                _field(field, entry, content) for field, entry in zip(table.data.schema, table.columns, strict=True)
            ],
            "missingValues": [""],
            **({"primaryKey": list(table.table.keys)} if table.table.keys else {}),
        },
    }


def _field(field: pa.Field, entry: Entry, content: Content) -> dict[str, Any]:
    labels = content.words.values(entry.name) if pa.types.is_string(field.type) else {}
    return {
        "name": entry.name,
        "type": _type(field.type),
        "title": entry.title,
        "description": f"{entry.meaning}. {entry.computed}. Missing: {entry.missing}.",
        **({"unit": entry.unit} if entry.unit else {}),
        **({"value_labels": labels} if labels else {}),
    }


def _type(kind: pa.DataType) -> str:
    if pa.types.is_string(kind):
        return "string"
    if pa.types.is_boolean(kind):
        return "boolean"
    return "integer" if pa.types.is_integer(kind) else "number"


# The content of a release before it is made, as far as the plan decides it, so that a format can refuse before budget
# is spent.


def planned_content(plan: "Plan", *, dataset: str, words: Labels) -> Content:
    """The tables of a plan with their public cells and without numbers.

    Args:
        plan: The plan.
        dataset: The name of the dataset.
        words: Labels, units and who publishes.

    Returns:
        The content; a table whose keys will be selected has no rows.
    """
    tables = [_table(plan, each) for each in plan.tables()]
    return content_of(Published.of(dataset=dataset), tables, words, privacy_label=PRIVATE)


def _table(plan: "Plan", table: "PlannedTable") -> ReleasedTable:
    from recordwise.plan.describe import table_name

    query, names = plan.queries[table.query], table.shape.names()
    if plan.selection(table) is None:
        cells = plan.cells(table)
    else:
        cells = pa.table({name: pa.array([], pa.string()) for name in names})
    rows = cells.num_rows if names else 1
    variables = tuple(each.alias for each in query.statistics)
    columns = {name: cells.column(name) for name in cells.column_names}
    columns |= {name: pa.nulls(rows, pa.float64()) for name in variables}
    return ReleasedTable(
        name=table_name(plan, table), keys=tuple(cells.column_names), variables=variables, data=pa.table(columns)
    )
