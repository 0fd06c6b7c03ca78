"""The digest by which versions before 0.3 recognized a release, so that what they charged is still known as the same.

It covered titles and the text of the policy, and not what becomes of missing values or of several rows of a unit. Both are made up
for by what the ledger says about the charge: its titles and its policy are put in, and its schema is compared.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from recordwise.plan.domains import ListedDomain, ProductDomain
from recordwise.plan.plan import Plan, PlannedTable

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
        keys = [_keys(self.plan, table) for table in self.plan.tables()]
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


def _keys(plan: Plan, table: PlannedTable) -> Any:
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
    plain = {name: _plain(table.column(name).combine_chunks()) for name in table.column_names}
    sink = pa.BufferOutputStream()
    whole = pa.table(plain).combine_chunks()
    with pa.ipc.new_stream(sink, whole.schema) as writer:
        writer.write_table(whole)
    return hashlib.sha256(memoryview(sink.getvalue())).hexdigest()


def _plain(column: Any) -> Any:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
