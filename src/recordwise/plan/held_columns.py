"""Policies and conditions in terms of the columns that records hold (T-HIERARCHY).

A coarser level of a hierarchy is a public function of the finest code. A condition on it is therefore a list of finest codes, and
nothing that is charged, kept or published about losses names a level: a ledger stays right when a later list moves a code.
"""

from collections.abc import Iterable

from recordwise.errors import PlanError
from recordwise.plan.hierarchies import Hierarchy
from recordwise.plan.schema import Schema
from recordwise.policy.conditions import (
    NONE,
    AllOf,
    AnyOf,
    Condition,
    among,
    both,
    columns_of,
    complement,
    either,
    holds,
)
from recordwise.policy.literals import literal
from recordwise.policy.policy import Maximum, Policy, Terms, maximum, merge


def in_held_columns(policy: Policy, schema: Schema) -> Policy:
    """The same policy, with conditions on finest codes in place of conditions on coarser levels."""
    if not schema.hierarchies or not _coarser({column.name for column in policy.columns()}, schema):
        return policy
    return Policy(_terms(policy.rho, schema), _terms(policy.delta_terms, schema), policy.near_gaussian)


def _terms(terms: Terms, schema: Schema) -> Terms:
    found = []
    for (given, atom), coefficient in terms.items():
        if isinstance(atom, Maximum):
            inner = maximum([in_held_columns(each, schema) for each in atom.policies])
            here = held_condition(given, schema)
            found += [{(both(here, own), part): coefficient * times} for (own, part), times in inner.rho.items()]
        else:
            found.append({(held_condition(given, schema), atom): coefficient})
    return {key: coefficient for key, coefficient in merge(*found).items() if key[0] != NONE}


def held_condition(given: Condition, schema: Schema) -> Condition:
    """The same set of records by the finest codes that they hold; a record whose code is not listed has NULL at coarser levels."""
    names = {column.name for column in columns_of(given)} if schema.hierarchies else set()
    coarser = _coarser(names, schema)
    if not coarser:
        return given
    if isinstance(given, AllOf):
        return both(*(held_condition(part, schema) for part in given.parts))
    if isinstance(given, AnyOf):
        return either(*(held_condition(part, schema) for part in given.parts))
    if len(names) > 1:
        problem = (
            f"'{coarser[0]}' is a level of a hierarchy, which cannot be joined with other columns in one condition"
        )
        raise PlanError(problems=(problem,))
    return _by_codes(given, coarser[0], schema.hierarchy(coarser[0]))


def _by_codes(given: Condition, level: str, hierarchy: Hierarchy | None) -> Condition:
    """A condition on one coarser level as a list of finest codes, or as all but a list where it holds without a listed code."""
    assert hierarchy is not None
    codes, values = (hierarchy.codes.column(name).to_pylist() for name in (hierarchy.finest, level))
    true = {value: holds(given, {level: literal(value)}) for value in dict.fromkeys(values)}
    unlisted = holds(given, {level: None})
    chosen = among(hierarchy.finest, [code for code, value in zip(codes, values) if true[value] != unlisted])
    return complement(chosen) if unlisted else chosen


def _coarser(names: Iterable[str], schema: Schema) -> list[str]:
    return sorted(set(names) & set(schema.coarser_names()))
