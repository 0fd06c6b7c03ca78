"""The digest of what a release is about, known before anything is read: two runs with the same digest would be the same release.

What changes which numbers are drawn is part of it: what a record is (the meaning of every name that is used), conditions, groups,
cells, shares, bands, selections, statistics with their mechanisms, and the period with its revision. What readers call things is
not: titles, labels, names of tables and columns, the order of queries and statistics, where a public list is from, and how a policy
is written down. Nor are paths, the output folder, formats, the level of intervals, the budget and values from the environment.

The same in every process: cells and codes are digested themselves, never how Python prints an object (``unrecognizable``).
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.exact.functions import Function
from recordwise.exact.numbers import fraction_text
from recordwise.mechanisms.base import Described, parameter_json
from recordwise.plan.cost import band_table
from recordwise.plan.describe import group_json, predicate_json, schema_json, schema_of, used_names
from recordwise.plan.expressions import Group, Level
from recordwise.plan.keys.selection import Domain, ListedDomain, ProductDomain, SelectFrom
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.plan.statistics import Statistic
from recordwise.policy.constructors import By
from recordwise.policy.policy import Policy
from recordwise.policy.series import Series

# The digest by which versions before 0.3 recognized a release, so that what they charged is still known as the same.
# It covered titles and the text of the policy, and not what becomes of missing values or of several rows of a unit.
# Both are made up for by what the ledger says about the charge: its titles and its policy are put in, and its schema
# is compared.


TITLE = "title"


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierIdentity:
    """A release as earlier versions saw it."""

    period: Any
    described: Any
    policy: Any
    records: Any
    """What a record is, as ``schema_json`` states it, as far as the release depends on it."""
    plan: Plan

    def charged_as(self, charge: Mapping[str, Any]) -> bool:
        """Whether an earlier version charged this release, under these or other titles.

        Args:
            charge: What the ledger says about the charge.
        """
        if not self._same_records(charge.get("schema")):
            return False
        keys = [_earlier_keys(self.plan, table) for table in self.plan.tables()]
        described = _titled(self.described, charge.get("details"))
        forms = ([self.period, described, keys, policy] for policy in (self.policy, charge.get("policy")))
        return any(_digest(form) == charge.get("release") for form in forms)

    def _same_records(self, stated: Any) -> bool:
        """Whether the charge's schema gives every name that is used the same meaning."""
        if not isinstance(stated, Mapping):
            return True
        if any(self.records.get(part) != stated.get(part) for part in ("unit", "rows")):
            return False
        known = {each["name"]: each for part in ("measures", "columns") for each in stated.get(part, [])}
        used = [each for part in ("measures", "columns") for each in self.records[part]]
        return all(known.get(each["name"], each) == each for each in used)


def _digest(form: Any) -> str:
    return hashlib.sha256(json.dumps(form, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _titled(described: Any, stated: Any) -> Any:
    """The queries with the titles of a charge."""
    listed = stated if isinstance(stated, list) and len(stated) == len(described) else described
    return [
        {name: part for name, part in own.items() if name != TITLE}
        | ({TITLE: other[TITLE]} if isinstance(other, Mapping) and TITLE in other else {})
        for own, other in zip(described, listed)
    ]


def _earlier_keys(plan: Plan, table: PlannedTable) -> Any:
    selection = plan.selection(table)
    if selection is None:
        return _table_digest(plan.cells(table))
    match getattr(selection, "domain", None):
        case ListedDomain(listed=listed):
            return _table_digest(listed.table)
        case ProductDomain(columns=columns):
            return [[name, _table_digest(pa.table({name: values}))] for name, values in columns]
        case domain:
            return repr(domain)


def _table_digest(table: pa.Table) -> str:
    plain = {name: _decoded(table.column(name).combine_chunks()) for name in table.column_names}
    sink = pa.BufferOutputStream()
    whole = pa.table(plain).combine_chunks()
    with pa.ipc.new_stream(sink, whole.schema) as writer:
        writer.write_table(whole)
    return hashlib.sha256(memoryview(sink.getvalue())).hexdigest()


def _decoded(column: Any) -> Any:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


VERSION = "2:"
"""How a digest begins. Those of earlier versions are bare; ``charged_as`` recognizes them."""
MOST_CELLS = 1_000_000
"""The largest domain given by functions that is listed for its digest."""
BLOCK = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseIdentity:
    """What a release is about, to find its charge in a ledger."""

    digest: str
    earlier: EarlierIdentity = field(compare=False, repr=False)

    def charged_as(self, charge: Mapping[str, Any]) -> bool:
        """Whether a charge is for this release: by its digest, or by the one that an earlier version wrote.

        Args:
            charge: What the ledger says about the charge.
        """
        stated = charge.get("release")
        return stated == self.digest or (_is_earlier(stated) and self.earlier.charged_as(charge))


def _is_earlier(stated: Any) -> bool:
    return isinstance(stated, str) and ":" not in stated


def release_identity(plan: Plan, described: Any, policy: Policy, series: Series | None) -> ReleaseIdentity:
    """The digest of a plan's queries with everything that is charged for them.

    Args:
        plan: The queries, bound to their schema; one that ``unrecognizable`` has nothing against.
        described: The plan as the ledger states it (``plan_json``), by which charges of earlier versions are recognized.
        policy: What they cost.
        series: The series with its period and revision; None outside a series.

    Returns:
        The identity, with a SHA-256 digest.
    """
    period = None if series is None else [series.name, series.period, series.revision]
    names = used_names(plan, policy)
    records = _records(plan.schema, names)
    queries = sorted(_text(_query(plan, number)) for number in range(len(plan.queries)))
    digest = hashlib.sha256(_text([period, records, _codes(plan.schema, names), queries]).encode()).hexdigest()
    earlier = EarlierIdentity(period=period, described=described, policy=policy.to_json(), records=records, plan=plan)
    return ReleaseIdentity(digest=VERSION + digest, earlier=earlier)


def unrecognizable(plan: Plan) -> str | None:
    """Why no other process could tell that a plan is the same, so that it cannot be released once only; None if it could."""
    for table in plan.tables():
        domain = getattr(plan.selection(table), "domain", None)
        if isinstance(domain, Domain) and domain.size > MOST_CELLS:
            return f"its keys are given by functions, which name more than {MOST_CELLS:,} cells"
    for query in plan.queries:
        for mechanism in (each for statistic in query.statistics for each in statistic.mechanisms()):
            if found := _unnamed(mechanism):
                return f"{type(mechanism).__name__} has a parameter without a value that can be written down ({found})"
    return None


def _text(form: Any) -> str:
    return json.dumps(form, sort_keys=True, separators=(",", ":"))


def _records(schema: Schema, names: set[str]) -> Any:
    """What a record is: its unit, and the measures and columns that are used, in any order."""
    used = schema_of(schema, names)
    if used.firm not in names:
        rules = None if used.collapse is None else tuple(each for each in used.collapse if each[0] != used.firm)
        used = replace(used, firm=None, collapse=rules)
    form = schema_json(used)
    return form | {part: sorted(form[part], key=lambda each: str(each["name"])) for part in ("measures", "columns")}


def _codes(schema: Schema, names: set[str]) -> Any:
    """The digest of every list of codes, as far as its coarser levels are used."""
    found = []
    for hierarchy in schema.hierarchies:
        levels = sorted(names & set(hierarchy.coarser))
        if levels:
            found.append([*levels, hierarchy.finest, table_digest(hierarchy.codes.select([*levels, hierarchy.finest]))])
    return sorted(found)


def _query(plan: Plan, number: int) -> Any:
    query = plan.queries[number]
    tables = [_table(plan, query, table) for table in plan.tables() if table.query == number]
    return {
        "where": None if query.condition is None else predicate_json(query.condition),
        "tables": sorted(map(_text, tables)),
        "statistics": sorted(_text(_statistic(each, query)) for each in query.statistics),
    }


def _table(plan: Plan, query: Query, table: PlannedTable) -> Any:
    level = table.shape
    return {
        "by": [_group(group, plan.schema) for group in level.groups],
        "share": fraction_text(level.share),
        "rest": None if table.rest is None else [_group(group, plan.schema) for group in table.rest.groups],
        "keys": _keys(plan, table),
        "bands": sorted(_bands(plan, query, level)),
    }


def _group(group: Group, schema: Schema) -> Any:
    """What a group is; for a level of a hierarchy its name, because its codes are digested for all tables together."""
    form = group_json(group, schema)
    return {"level": form["level"]} if "level" in form else {name: form[name] for name in form if name != "name"}


def _bands(plan: Plan, query: Query, level: Level) -> list[list[Any]]:
    """The bands of the cells, of which the noise of each statistic follows, whatever sizes they come from (T-SIZE)."""
    found = ((each, band_table(query, each, level, plan.schema)) for each in query.draws())
    return [[_text(_nameless(each)), table.digest] for each, table in found if table is not None]


def _statistic(statistic: Statistic, query: Query) -> Any:
    """A statistic without its name; what it is computed from is stated itself, so that the names of that do not matter either."""
    form = _nameless(statistic)
    if statistic.names_itself:
        form = {"kind": form["kind"]}
    sides = statistic.forms(query.draws())
    return form | {
        "from": [sorted([_text(_nameless(part)), fraction_text(share)] for part, share in side) for side in sides]
    }


def _nameless(statistic: Statistic) -> dict[str, Any]:
    return {name: _mechanism(value) for name, value in statistic.description().items() if name != "name"}


def _mechanism(value: Any) -> Any:
    """A mechanism by its parameters, also where it lists them without being a dataclass; a word as it is."""
    if value is None or isinstance(value, str):
        return value
    if is_dataclass(value) or not getattr(value, "parameters", ()):
        return parameter_json(value)
    parts = {each.name: parameter_json(getattr(value, each.stored, None)) for each in value.parameters}
    return {"kind": type(value).__name__, **parts}


def _unnamed(value: Any) -> str | None:
    """The type of a part of a mechanism that only Python's own text stands for, which names an address in memory."""
    if value is None or isinstance(value, str | int | float | Fraction | Decimal | Function | By | np.generic):
        return None
    parts: Any = None
    if is_dataclass(value):
        parts = [getattr(value, each.name) for each in fields(value)]
    elif isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, tuple | list | set | frozenset):
        parts = list(value)
    elif getattr(value, "parameters", ()):
        parts = [getattr(value, each.stored, None) for each in value.parameters]
    if parts is not None:
        return next((found for part in parts if (found := _unnamed(part))), None)
    # Python's own text names an address, and ours names the parameters, of which none are listed here.
    unsaid: tuple[Any, ...] = (object.__repr__, Described.__repr__)
    return type(value).__name__ if callable(value) or type(value).__repr__ in unsaid else None


def _keys(plan: Plan, table: PlannedTable) -> Any:
    """The digest of the public cells of a table, or how they are selected and the digest of the domain they are selected from."""
    selection = plan.selection(table)
    if selection is None:
        return table_digest(plan.cells(table))
    form = selection.to_json()
    return [form, _domain(selection, table.shape.groups, plan.schema)] if isinstance(selection, SelectFrom) else form


def _domain(selection: SelectFrom, groups: tuple[Group, ...], schema: Schema) -> Any:
    match selection.domain:
        case ListedDomain(listed=listed):
            return table_digest(listed.cells(groups, schema))
        case ProductDomain() as domain:
            return [table_digest(pa.table({"": values})) for values in domain.values_of(groups, schema)]
        case domain:
            return _listed(domain, groups, schema)


@lru_cache(maxsize=8)
def _listed(domain: Domain, groups: tuple[Group, ...], schema: Schema) -> str:
    """The digest of every cell that functions name, and of which of them they find again."""
    bound, made = domain.bound(groups, schema), hashlib.sha256()
    for start in range(0, min(domain.size, MOST_CELLS), BLOCK):
        positions = np.arange(start, min(start + BLOCK, domain.size))
        cells = bound.keys(positions)
        made.update(table_digest(cells).encode())
        made.update(np.packbits(bound.locate(cells) == positions).tobytes())
    return made.hexdigest()


def table_digest(table: pa.Table) -> str:
    """The same for the same values in the same order of columns, whatever these are called and however they are encoded."""
    plain = [_plain(table.column(place)) for place in range(table.num_columns)]
    whole = pa.table(plain, names=[str(place) for place in range(len(plain))]).combine_chunks()
    made = hashlib.sha256(f"{whole.num_rows}:{[str(each) for each in whole.schema.types]}".encode())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, whole.schema) as writer:
        writer.write_table(whole)
    made.update(memoryview(sink.getvalue()))
    return made.hexdigest()


def _plain(column: pa.ChunkedArray) -> Any:
    whole = column.combine_chunks()
    return whole.dictionary_decode() if pa.types.is_dictionary(whole.type) else whole
