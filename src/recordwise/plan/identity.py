"""The digest of what a release is about, known before anything is read: two runs with the same digest would be the same release.

It covers the queries, their keys and sizes, the mechanisms, the policy, and the period with its revision. Titles, labels, paths,
the output folder and values from the environment are no part of it.
"""

import hashlib
import json
from typing import Any

import pyarrow as pa

from recordwise.plan.domains import ListedDomain, ProductDomain
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.policy.policy import Policy
from recordwise.policy.series import Series


def release_identity(plan: Plan, described: Any, policy: Policy, series: Series | None) -> str:
    """The digest of a plan's queries with everything that is charged for them.

    Args:
        plan: The queries, bound to their schema.
        described: The plan as the ledger states it (``plan_json``): conditions, tables, statistics and mechanisms.
        policy: What they cost.
        series: The series with its period and revision; None outside a series.

    Returns:
        A SHA-256 digest in hexadecimal digits.
    """
    period = None if series is None else [series.name, series.period, series.revision]
    keys = [_keys(plan, table) for table in plan.tables()]
    text = json.dumps([period, described, keys, policy.to_json()], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _keys(plan: Plan, table: PlannedTable) -> Any:
    """The digest of the public cells of a table, or of the domain that its cells are selected from."""
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
    """The same for the same values, however they are chunked or encoded."""
    plain = {name: _plain(table.column(name).combine_chunks()) for name in table.column_names}
    sink = pa.BufferOutputStream()
    whole = pa.table(plain).combine_chunks()
    with pa.ipc.new_stream(sink, whole.schema) as writer:
        writer.write_table(whole)
    return hashlib.sha256(memoryview(sink.getvalue())).hexdigest()


def _plain(column: Any) -> Any:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
