"""Losses of one record and of whole tables.

One record exactly, then rounded up once; tables in float64, rounded outward (T-OUTWARD).
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from recordwise.errors import RecordError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import arb_float_upper, ball, float_upper, working_precision
from recordwise.policy.atoms import Atom, One, Outside, SelectionDelta
from recordwise.policy.columns import Cell
from recordwise.policy.conditions import (
    EVERY,
    AllOf,
    Among,
    AnyOf,
    Condition,
    InBand,
    columns_of,
    compared_columns,
    holds,
)
from recordwise.policy.evaluate.evaluator import BALLS, NumpyEvaluator
from recordwise.policy.evaluate.tables import (
    NEGATIVE,
    NOT_NUMBERS,
    BoolArray,
    GroupColumn,
    IntArray,
    Numbers,
    Record,
    Table,
    absolute_measure_upper,
    amount_of,
    band_column,
    cell_of,
    check_amounts,
    group_column,
    is_record,
    measure_column,
)
from recordwise.policy.policy import Maximum, Terms, guard_columns, terms_bands, with_plain_constants

ROWS_AT_ONCE = 1 << 15
"""Few enough rows that every intermediate column stays in the processor's cache."""
PRECISION = 192
NUMPY = NumpyEvaluator()


def evaluate_upper(terms: Terms, records: Record | Table) -> float | FloatArray:
    """Return the sum of the terms, never below the exact value."""
    if is_record(records):
        groups, amounts = canonical_record(terms, records)
        if (exact := exact_sum(terms, groups, amounts)) is not None:
            return float_upper(exact)
        with working_precision(PRECISION):
            return arb_float_upper(terms_ball(terms, groups, {name: ball(value) for name, value in amounts.items()}))
    return _Table(terms, records).losses()


def canonical_record(terms: Terms, record: Mapping[str, Any]) -> tuple[dict[str, Cell | None], dict[str, Fraction]]:
    """The columns used in conditions, and the absolute amounts of the measures."""
    groups, amounts = signed_record(terms, record)
    return groups, {name: abs(value) for name, value in amounts.items()}


def signed_record(terms: Terms, record: Mapping[str, Any]) -> tuple[dict[str, Cell | None], dict[str, Fraction]]:
    """Return a record's columns in conditions, and its signed amounts."""
    measures = {measure for _, atom in terms for measure in atom.measures()}
    inputs = {each for measure in measures for each in measure.inputs()}
    held = {each.name: amount_of(record, each.name) for each in inputs}
    for each in inputs:
        if held[each.name] < 0 and not each.signed:
            raise RecordError(column=each.name, problem=NEGATIVE)
    names = {column.name for condition, atom in terms for column in guard_columns(condition, atom)}
    groups = {name: cell_of(record, name) for name in names}
    for name in compared_names(terms):
        if not (groups[name] is None or isinstance(groups[name], Fraction)):
            raise RecordError(column=name, problem=NOT_NUMBERS)
    return groups, {measure.name: measure.value(held) for measure in measures}


def compared_names(terms: Terms) -> set[str]:
    """The columns compared with a number, including those inside maxima."""
    inner = (compared_names(policy.rho) for _, atom in terms if isinstance(atom, Maximum) for policy in atom.policies)
    return set().union(*(compared_columns(condition) for condition, _ in terms), *inner)


def exact_sum(terms: Terms, groups: dict[str, Cell | None], amounts: dict[str, Fraction]) -> Fraction | None:
    """Return the exact sum if all terms are rational, else None."""
    total = Fraction(0)
    for (condition, atom), coefficient in terms.items():
        if holds(condition, groups):
            value = atom.exactly(amounts)
            if value is None:
                return None
            total += coefficient * value
    return total


def terms_ball(terms: Terms, groups: dict[str, Cell | None], amounts: dict[str, arb]) -> arb:
    """Return an enclosure of the sum for amounts or intervals."""
    total = arb(0)
    for (condition, atom), coefficient in terms.items():
        if holds(condition, groups):
            total += ball(coefficient) * atom_ball(atom, groups, amounts)
    return total


def atom_ball(atom: Atom, groups: dict[str, Cell | None], amounts: dict[str, arb]) -> arb:
    if isinstance(atom, Outside):
        raise RecordError(column=atom.column, problem="contains a group that is not covered by this policy")
    if not isinstance(atom, Maximum):
        return atom.value(BALLS, amounts)
    values = [terms_ball(policy.rho, groups, amounts) for policy in atom.policies]
    return arb(0) if not values else _largest(values)


def _largest(values: list[arb]) -> arb:
    most = values[0]
    for value in values[1:]:
        most = most.max(value)
    return most


class _Table:
    """The columns that a policy needs, evaluated in blocks of rows."""

    def __init__(self, terms: Terms, records: Any) -> None:
        self.terms = terms
        self.measures = sorted({measure for _, atom in terms for measure in atom.measures()})
        inputs = sorted({each for measure in self.measures for each in measure.inputs()})
        self.amounts = {each.name: measure_column(records, each.name) for each in inputs}
        for each in inputs:
            check_amounts(self.amounts[each.name], each)
        wanted = {column.name for condition, atom in terms for column in guard_columns(condition, atom)}
        self.groups = {name: group_column(records, name) for name in sorted(wanted)}
        for name in compared_names(terms):
            if not self.groups[name].numeric():
                raise RecordError(column=name, problem=NOT_NUMBERS)
        self.rows = self._count_rows(records)
        # The band of a record is a column like any other, read off those of its cell once.
        self.groups |= {table.key: band_column(table, self.groups) for table in terms_bands(terms).values()}

    def _count_rows(self, records: Any) -> int:
        sizes = {name: len(column) for name, column in self.amounts.items()}
        sizes |= {name: len(column) for name, column in self.groups.items()}
        if len(set(sizes.values())) > 1:
            raise RecordError(column=min(sizes), problem="differs in length from the other columns")
        if sizes:
            return next(iter(sizes.values()))
        return len(next(iter(records.values()))) if isinstance(records, Mapping) else len(records)

    def losses(self) -> FloatArray:
        result = np.empty(self.rows)
        # Values near the largest float may overflow in between; the result is then infinity, never less.
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, self.rows, ROWS_AT_ONCE):
                part = slice(start, start + ROWS_AT_ONCE)
                held = {name: column[part] for name, column in self.amounts.items()}
                amounts = {measure.name: absolute_measure_upper(measure, held) for measure in self.measures}
                groups = {name: column[part] for name, column in self.groups.items()}
                block = terms_array(self.terms, groups, amounts, len(result[part]))
                result[part] = np.where(np.isnan(block), np.inf, block) if np.isnan(block.max()) else block
        return result


def terms_array(terms: Terms, groups: dict[str, GroupColumn], amounts: dict[str, FloatArray], rows: int) -> FloatArray:
    """The sum of the terms for a block of rows, rounded outward."""
    total, terms = np.zeros(rows), with_plain_constants(terms)
    # One unit for the product, one for the factor, one for each addition, twice over.
    slack = (
        Fraction(len(terms) + 3, 2**52) if any(atom != One() for _, atom in terms) or len(terms) > 1 else Fraction(0)
    )
    for (condition, atom), coefficient in terms.items():
        factor = float_upper(coefficient * (1 + atom.relative_error + slack))
        if condition == EVERY:
            total += factor * atom_array(atom, groups, amounts, rows)
            continue
        inside = rows_where(condition, groups)
        if inside.size:
            narrow = {measure.name: amounts[measure.name][inside] for measure in atom.measures()}
            seen = {column.name for column in guard_columns(EVERY, atom)}
            seen |= {table.key for table in terms_bands({(EVERY, atom): coefficient}).values()}
            coded = {name: groups[name][inside] for name in seen}
            total[inside] += factor * atom_array(atom, coded, narrow, len(inside))
    return total


def atom_array(atom: Atom, groups: dict[str, GroupColumn], amounts: dict[str, FloatArray], rows: int) -> FloatArray:
    if isinstance(atom, Outside):
        raise RecordError(column=atom.column, problem="contains a group that is not covered by this policy", count=rows)
    if not isinstance(atom, Maximum):
        return _not_vanished(atom.value(NUMPY, amounts), atom, amounts)
    values = [terms_array(policy.rho, groups, amounts, rows) for policy in atom.policies]
    largest: FloatArray = np.maximum.reduce(values)
    return largest


SMALLEST = 2.0**-500


def _not_vanished(value: FloatArray, atom: Atom, amounts: dict[str, FloatArray]) -> FloatArray:
    """Raise tiny positive losses so that products cannot underflow."""
    if isinstance(atom, SelectionDelta) or not (value.ndim and value.size):
        return value
    # An overflow elsewhere in the block is a NaN, which the ordinary minimum would return.
    if not np.fmin.reduce(value) < SMALLEST:
        return value
    present = np.logical_or.reduce([amounts[measure.name] > 0 for measure in atom.measures()])
    return np.where(present & (value < SMALLEST), SMALLEST, value)


def rows_where(condition: Condition, groups: dict[str, GroupColumn]) -> IntArray:
    """The rows of a block where the condition holds."""
    if isinstance(condition, Among) and condition.inside:
        return groups[condition.column.name].rows_among(condition)
    return np.flatnonzero(holds_array(condition, groups))


def holds_array(condition: Condition, groups: dict[str, GroupColumn]) -> BoolArray:
    """For each row of a block, whether the condition holds."""
    if isinstance(condition, (AllOf, AnyOf)):
        parts = [holds_array(part, groups) for part in condition.parts]
        combine = np.logical_and if isinstance(condition, AllOf) else np.logical_or
        return np.asarray(combine.reduce(parts), np.bool_)
    if isinstance(condition, InBand):
        held = groups[condition.table.key]
        assert isinstance(held, Numbers)
        return np.isin(held.values, condition.bands)
    (column,) = columns_of(condition)
    return groups[column.name].test(condition, column.name)
