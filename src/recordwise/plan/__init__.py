"""Describes queries before any data is read: schema, builder, SQL text, keys, levels, cost and plan files."""

from recordwise.plan.expressions import Case, DatePart, Field, Group, Prefix, prefix
from recordwise.plan.keys.keys import Keys
from recordwise.plan.keys.selection import Domain
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.query import Query, query
from recordwise.plan.schema import Column, Measure, Schema
from recordwise.plan.sql.parse import parse_sql
from recordwise.plan.statistics import SumAndCount
from recordwise.plan.statistics.totals import Splitting

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
