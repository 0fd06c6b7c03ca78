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
- ``describe``: descriptions for the ledger and release.json, and the digest of a release
- ``publication``: labels, units, status rules and who publishes
- ``external``: plans for mechanisms from elsewhere
- ``arrays``: between numpy and Arrow
- ``file``: plans as TOML files
"""

from typing import TYPE_CHECKING, Any

from recordwise.plan.expressions import Case, DatePart, Field, Group, Prefix, prefix
from recordwise.plan.keys.cells import Domain
from recordwise.plan.keys.keys import Keys
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.query import Query, query
from recordwise.plan.schema import Column, Measure, Schema
from recordwise.plan.statistics import SumAndCount
from recordwise.plan.statistics.totals import Splitting

if TYPE_CHECKING:
    from recordwise.plan.sql.parse import parse_sql

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
    "query",
]


def __getattr__(name: str) -> Any:
    # Reading SQL loads a parser and an engine, which nothing else needs.
    if name == "parse_sql":
        from recordwise.plan.sql.parse import parse_sql

        return parse_sql
    raise AttributeError(f"module 'recordwise.plan' has no attribute {name!r}")
