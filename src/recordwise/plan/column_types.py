"""Checks that a constant fits the declared type of the column it is compared with, by one rule everywhere.

A policy compares only values of the same type, while an engine would cast one side; where they could disagree, the plan is
refused (T-TYPES).
"""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from recordwise.plan.fields import LONGEST_PREFIX
from recordwise.plan.schema import Schema
from recordwise.policy.bands import BandTable
from recordwise.policy.conditions import AllOf, Among, AnyOf, Compare, Condition, ConditionColumn, InBand, Null
from recordwise.policy.constructors import By
from recordwise.policy.literals import Truth, Value
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Maximum, Policy, Terms

LEAST_INTEGER, LARGEST_INTEGER = -(2**63), 2**63 - 1


def fits(value: Value, kind: str) -> bool:
    """Whether a constant is of a column's type. A number need not be whole: an integer may be compared with 2.5.

    No constant is a date: a date is compared by its parts.
    """
    if kind == "date":
        return False
    if kind == "text":
        return isinstance(value, str) and is_plain_text(value)
    return isinstance(value, Truth if kind == "boolean" else Fraction)


def is_value(value: Value, kind: str) -> bool:
    """Whether a column of this type can hold the constant."""
    if kind != "integer":
        return fits(value, kind)
    return isinstance(value, Fraction) and value.denominator == 1 and LEAST_INTEGER <= value <= LARGEST_INTEGER


def is_plain_text(text: str) -> bool:
    """Whether every engine can store the text: no NUL character and no unpaired surrogate."""
    return "\x00" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def prefix_problems(name: str, length: int | None, kind: str) -> Iterator[str]:
    """A prefix requires a text column and must not be longer than a group may be."""
    if length is not None and kind != "text":
        yield f"a prefix of '{name}' needs a column of type text"
    if length is not None and length > LONGEST_PREFIX:
        yield f"a prefix of '{name}' is longer than {LONGEST_PREFIX} characters"


def part_problems(name: str, part: str, kind: str) -> Iterator[str]:
    """A part is of a date."""
    if part and kind != "date":
        yield f"the {part} of '{name}' needs a column of type date"


def threshold_problems(at: Any, schema: Schema) -> list[str]:
    """The problems of a threshold, of thresholds by group, or of thresholds by measure."""
    if isinstance(at, Mapping):
        unknown = [name for name in map(_measure_name, at) if schema.measure(name) is None]
        found = [f"'{name}' is split but is not a measure" for name in unknown]
        return found + [problem for each in at.values() for problem in threshold_problems(each, schema)]
    return list(_by_problems(at, schema)) if isinstance(at, By) else []


def _measure_name(key: Measure | str) -> str:
    return key.name if isinstance(key, Measure) else key


def _by_problems(at: By, schema: Schema) -> Iterator[str]:
    name, length = at.column.name, at.column.length
    declared = schema.column(name)
    if declared is None:
        yield f"thresholds differ by '{name}', which is not a conditional column"
        return
    yield from prefix_problems(name, length, declared.type)
    if at.column.part:
        yield f"thresholds differ by a part of '{name}'; thresholds by dates are not supported"
    elif not all(is_value(value, declared.type) for value, _ in at.values):
        yield f"thresholds by '{name}' name a group that is not a value of type {declared.type}"
    elif length is not None and any(isinstance(value, str) and len(value) > length for value, _ in at.values):
        yield f"thresholds by the first {length} characters of '{name}' name a group longer than that"


def policy_problems(policy: Policy, schema: Schema) -> list[str]:
    """Conditions of a policy that do not fit the columns they name."""
    tables: dict[str, BandTable] = {}
    parts = (policy.rho, policy.delta_terms)
    found = [problem for terms in parts for problem in _terms_problems(terms, schema, tables)]
    for table in tables.values():
        for column, held in zip(table.columns, table.values):
            found += _column_problems(column, [value for value in held if value is not None], schema)
    return list(dict.fromkeys(found))


def _terms_problems(terms: Terms, schema: Schema, tables: dict[str, BandTable]) -> Iterator[str]:
    for condition in dict.fromkeys(condition for condition, _ in terms):
        yield from condition_problems(condition, schema, tables)
    for atom in (atom for _, atom in terms if isinstance(atom, Maximum)):
        for policy in atom.policies:
            yield from policy_problems(policy, schema)


def condition_problems(condition: Condition, schema: Schema, tables: dict[str, BandTable]) -> Iterator[str]:
    """Unknown columns, prefixes of columns that are not text, and constants of the wrong type. Tables of bands, which are in many
    conditions, are collected, to be checked once."""
    match condition:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from condition_problems(part, schema, tables)
        case Among(column, values, _):
            yield from _column_problems(column, values, schema)
        case Compare(column, _, bound):
            yield from _column_problems(column, (bound,), schema)
        case Null(column, _):
            yield from _column_problems(column, (), schema)
        case InBand(table, _):
            tables[table.digest] = table


def _column_problems(column: ConditionColumn, values: Iterable[Value], schema: Schema) -> Iterator[str]:
    kind = kind_of(column.name, schema)
    if kind is None:
        yield f"'{column.name}' is in a condition of the policy but is neither a conditional column nor a measure"
        return
    if kind == DERIVED:
        yield derived_problem(column.name)
        return
    yield from prefix_problems(column.name, column.length, kind)
    yield from part_problems(column.name, column.part, kind)
    if column.part:
        kind = "number"
    if not all(fits(value, kind) for value in values):
        yield f"a condition of the policy compares '{column.name}' with a constant that is not of type {kind}"


DERIVED = "derived"


def kind_of(name: str, schema: Schema) -> str | None:
    """The type of a column's values; a measure holds numbers, of which some need not be whole. No record holds a derived one."""
    column, measure = schema.column(name), schema.measure(name)
    if measure is not None and measure.derive:
        return DERIVED
    return column.type if column else "number" if measure else None


def derived_problem(name: str) -> str:
    """Why a derived measure cannot be in a condition."""
    return f"'{name}' is a derived measure, which conditions cannot use; use the measures it comes from"
