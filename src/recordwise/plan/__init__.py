"""Describe what will be published, before any record is read.

Takes queries and a schema, returns a checked plan with its policy. Imports mechanisms, policy and exact; knows no engine.

In reading order:

- ``schema``: the roles and types of a table's columns
- ``sources``: where records come from; naming a source opens nothing
- ``expressions``: predicates, groups, levels and "all other" cells
- ``keys``: the cells that are published, their sizes and levels
- ``statistics``: counts, sums, averages, ratios and quantiles
- ``query``: the builder; a query is a frozen value
- ``sql``: SQL text to the same query
- ``plan``: queries bound to a schema and checked as a whole; what an engine returns
- ``cost``: each statistic of each table with all that is known of it, the mechanism of each cell, and the policy of a plan
- ``describe``: descriptions for the ledger and release.json, warnings, and the digest of a release
- ``publication``: labels, units, status rules and who publishes
- ``external``: plans for mechanisms from elsewhere
- ``arrays``: between numpy and Arrow
- ``file``: plans as TOML files
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recordwise.plan.expressions import Case, DatePart, Field, Group, Prefix, prefix
    from recordwise.plan.keys.cells import Domain
    from recordwise.plan.keys.keys import Keys
    from recordwise.plan.plan import Plan, PlannedTable
    from recordwise.plan.query import Query
    from recordwise.plan.schema import Column, Measure, Schema
    from recordwise.plan.sql.parse import parse_sql
    from recordwise.plan.statistics import SumAndCount
    from recordwise.plan.statistics.totals import Splitting

HOMES = {
    "expressions": ("Case", "DatePart", "Field", "Group", "Prefix", "prefix"),
    "keys.cells": ("Domain",),
    "keys.keys": ("Keys",),
    "plan": ("Plan", "PlannedTable"),
    "query": ("Query",),
    "schema": ("Column", "Measure", "Schema"),
    "sql.parse": ("parse_sql",),
    "statistics": ("SumAndCount",),
    "statistics.totals": ("Splitting",),
}
"""Where each name is defined. Readers of a release need few of them, and no mechanism. The function ``query`` is in the module
of its name, which would hide it here."""

__all__ = [
    "Case",
    "Column",
    "DatePart",
    "Domain",
    "Field",
    "Group",
    "Keys",
    "Measure",
    "Plan",
    "PlannedTable",
    "Prefix",
    "Query",
    "Schema",
    "Splitting",
    "SumAndCount",
    "parse_sql",
    "prefix",
]


def __getattr__(name: str) -> Any:
    for home, names in HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module 'recordwise.plan' has no attribute {name!r}")
