"""Describes queries before any data is read: schema, builder, SQL text, keys, levels, cost and plan files."""

from recordwise.plan.domains import Domain
from recordwise.plan.fields import Case, DatePart, Field, Group, Prefix, prefix
from recordwise.plan.keys import Keys
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.query import Query, query
from recordwise.plan.schema import Column, Measure, Schema
from recordwise.plan.splitting import Splitting
from recordwise.plan.sql.parse import parse_sql
from recordwise.plan.statistics import SumAndCount

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
