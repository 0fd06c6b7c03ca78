"""Conditions on a record's columns, the public partition of a policy.

A closed language in negation normal form: membership, comparison with a number, NULL, and, or. Every
condition is two-valued; a comparison with NULL is false, as in a SQL WHERE. ``complement`` includes NULL,
so that a condition and its complement are a partition of all records.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from recordwise.errors import ParameterError, UnknownFormError, own_argument_errors, own_errors_of
from recordwise.exact.numbers import Number, fraction_text, moderate, rational
from recordwise.policy.bands import BandTable
from recordwise.policy.columns import Cell, ConditionColumn, Value, cell, literal, value_json, value_key

ORDERINGS = {"<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MOST_NESTED = 8
"""How deep "and" and "or" may alternate."""


class Condition:
    """A set of records, defined by their columns alone."""

    __slots__ = ()

    def __and__(self, other: "Condition") -> "Condition":
        return both(self, other)

    def __or__(self, other: "Condition") -> "Condition":
        return either(self, other)

    def __invert__(self) -> "Condition":
        return complement(self)

    def to_json(self) -> Any:
        """The saved form."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Among(Condition):
    """Membership of a column's value in ``values``, or not.

    If not ``inside``, the value is present and not one of them.
    """

    column: ConditionColumn
    values: tuple[Value, ...]
    inside: bool = True

    def to_json(self) -> Any:
        name = "in" if self.inside else "not in"
        return {name: self.column.to_json(), "values": [value_json(value) for value in self.values]}


@dataclass(frozen=True, slots=True)
class Compare(Condition):
    """The column's value compares to a number in the given order."""

    column: ConditionColumn
    order: str
    bound: Fraction

    def __post_init__(self) -> None:
        if self.order not in ORDERINGS:
            raise ParameterError(
                parameter="order", problem=f"must be one of {', '.join(ORDERINGS)}, not {self.order!r}"
            )

    def to_json(self) -> Any:
        return {"compare": self.column.to_json(), "order": self.order, "bound": fraction_text(self.bound)}


@own_errors_of
@dataclass(frozen=True, slots=True)
class Null(Condition):
    """The column is NULL (``inside``), or it is not."""

    column: ConditionColumn
    inside: bool = True

    def to_json(self) -> Any:
        """The saved form."""
        return {"null" if self.inside else "not null": self.column.to_json()}


@dataclass(frozen=True, slots=True)
class InBand(Condition):
    """Membership of a record's cell in bands (T-SIZE).

    Every record is in exactly one band.
    """

    table: BandTable
    bands: tuple[int, ...]

    def to_json(self) -> Any:
        """The saved form: the table by its digest."""
        return {"bands": list(self.bands), "of": self.table.digest}


@dataclass(frozen=True, slots=True)
class AllOf(Condition):
    """Every part holds; without parts, every record."""

    parts: tuple[Condition, ...] = ()

    def to_json(self) -> Any:
        return {"all": [part.to_json() for part in self.parts]}


@dataclass(frozen=True, slots=True)
class AnyOf(Condition):
    """At least one part holds; without parts, no record."""

    parts: tuple[Condition, ...] = ()

    def to_json(self) -> Any:
        return {"any": [part.to_json() for part in self.parts]}


EVERY = AllOf()
NONE = AnyOf()


@own_argument_errors
def among(column: ConditionColumn | str, values: Iterable[Any], *, inside: bool = True) -> Condition:
    """Membership in a list of public values, in canonical form.

    Args:
        column: The column that is compared.
        values: The values, in the type of the column.
        inside: Whether the condition is on these values, or on all others.

    Returns:
        The condition.
    """
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ParameterError(parameter="values", problem="must be a list")
    name = column if isinstance(column, ConditionColumn) else ConditionColumn(column)
    canonical = tuple(sorted({literal(value) for value in values}, key=value_key))
    if not canonical:
        return NONE if inside else Null(name, inside=False)
    return Among(name, canonical, inside)


@own_argument_errors
def compare(column: ConditionColumn | str, order: str, bound: Number) -> Condition:
    """An ordering against a number.

    Args:
        column: The column that is compared.
        order: "<", "<=", ">" or ">=".
        bound: The number it is compared with.

    Returns:
        The condition.
    """
    name = column if isinstance(column, ConditionColumn) else ConditionColumn(column)
    return Compare(name, order, moderate(rational(bound, parameter="bound"), parameter="bound"))


def in_band(table: BandTable, bands: Iterable[int]) -> Condition:
    """Return the condition that a record's cell is in some bands.

    Args:
        table: The bands of the cells.
        bands: The numbers of the bands, from 0.

    Returns:
        The condition.
    """
    wanted = tuple(sorted(set(bands)))
    if wanted and not 0 <= wanted[0] <= wanted[-1] < len(table.edges):
        raise ParameterError(parameter="bands", problem=f"must be whole numbers from 0 to {len(table.edges) - 1}")
    return NONE if not wanted else EVERY if len(wanted) == len(table.edges) else InBand(table, wanted)


@own_argument_errors
def both(*parts: Condition) -> Condition:
    """The canonical conjunction.

    Args:
        parts: The conditions that must all hold.

    Returns:
        The condition.
    """
    flat = _flatten(parts, AllOf)
    if NONE in flat or any(complement(part) in flat for part in flat):
        return NONE
    merged = _intersect_memberships(list(flat))
    if NONE in merged:
        return NONE
    ordered = tuple(sorted(merged, key=condition_key))
    return ordered[0] if len(ordered) == 1 else AllOf(ordered)


@own_argument_errors
def either(*parts: Condition) -> Condition:
    """The canonical disjunction.

    Args:
        parts: The conditions of which one must hold.

    Returns:
        The condition.
    """
    flat = _flatten(parts, AnyOf)
    if EVERY in flat or any(complement(part) in flat for part in flat):
        return EVERY
    ordered = tuple(sorted(flat, key=condition_key))
    return ordered[0] if len(ordered) == 1 else AnyOf(ordered)


@own_argument_errors
def complement(condition: Condition) -> Condition:
    """Exactly the records outside, those with NULL included.

    Args:
        condition: A condition.

    Returns:
        The condition that holds for all other records.
    """
    match condition:
        case Among(column, values, inside):
            return AnyOf(tuple(sorted((Among(column, values, not inside), Null(column)), key=condition_key)))
        case Compare(column, order, bound):
            parts = (Compare(column, ORDERINGS[order], bound), Null(column))
            return AnyOf(tuple(sorted(parts, key=condition_key)))
        case Null(column, inside):
            return Null(column, not inside)
        case InBand(table, bands):
            return in_band(table, set(range(len(table.edges))) - set(bands))
        case AllOf(parts):
            return either(*(complement(part) for part in parts))
        case AnyOf(parts):
            return _complement_of_any(parts)
        case _:
            raise UnknownFormError(what="condition", found=type(condition).__name__)


def _complement_of_any(parts: tuple[Condition, ...]) -> Condition:
    """Return the plain opposite of a for ``not (a or NULL)``."""
    for part in parts:
        others = [other for other in parts if other is not part]
        if len(others) == 1 and others[0] == Null(getattr(part, "column", ConditionColumn("none"))):
            match part:
                case Among(column, values, inside):
                    return Among(column, values, not inside)
                case Compare(column, order, bound):
                    return Compare(column, ORDERINGS[order], bound)
    return both(*(complement(part) for part in parts))


def _flatten(parts: tuple[Condition, ...], kind: type[AllOf] | type[AnyOf]) -> dict[Condition, None]:
    flat: dict[Condition, None] = {}
    for part in parts:
        if not isinstance(part, Condition):
            raise ParameterError(parameter="condition", problem=f"must be a Condition, not {type(part).__name__}")
        for inner in part.parts if isinstance(part, kind) else (part,):
            flat[inner] = None
    if any(depth(part) >= MOST_NESTED for part in flat):
        raise ParameterError(parameter="condition", problem=f"nests 'and' and 'or' more than {MOST_NESTED} deep")
    return flat


def depth(condition: Condition) -> int:
    """How deep "and" and "or" are nested."""
    parts = condition.parts if isinstance(condition, (AllOf, AnyOf)) else ()
    return 1 + max(map(depth, parts)) if parts else 0


def _intersect_memberships(parts: list[Condition]) -> list[Condition]:
    """Merge lists for the same column, removing excluded values."""
    allowed: dict[ConditionColumn, set[Value]] = {}
    excluded: dict[ConditionColumn, set[Value]] = {}
    banded: dict[BandTable, set[int]] = {}
    rest: list[Condition] = []
    for part in parts:
        match part:
            case InBand(table, bands):
                banded[table] = banded.get(table, set(bands)) & set(bands)
            case Among(column, values, True):
                allowed[column] = allowed[column] & set(values) if column in allowed else set(values)
            case Among(column, values, False):
                excluded[column] = excluded.get(column, set()) | set(values)
            case _:
                rest.append(part)
    rest += [in_band(table, bands) for table, bands in banded.items()]
    for column, wanted in allowed.items():
        rest.append(among(column, wanted - excluded.pop(column, set())))
    return rest + [among(column, unwanted, inside=False) for column, unwanted in excluded.items()]


def condition_key(condition: Condition) -> str:
    return json.dumps(condition.to_json(), sort_keys=True)


def columns_of(condition: Condition) -> set[ConditionColumn]:
    """The columns a condition uses."""
    match condition:
        case AllOf(parts) | AnyOf(parts):
            return {column for part in parts for column in columns_of(part)}
        case Among(column=column) | Compare(column=column) | Null(column=column):
            return {column}
        case InBand(table, _):
            return set(table.columns)
        case _:
            raise UnknownFormError(what="condition", found=type(condition).__name__)


def band_tables(conditions: Iterable[Condition]) -> dict[str, BandTable]:
    """The tables whose bands conditions look at, by digest."""
    found: dict[str, BandTable] = {}
    for condition in conditions:
        match condition:
            case AllOf(parts) | AnyOf(parts):
                found |= band_tables(parts)
            case InBand(table, _):
                found[table.digest] = table
    return found


def holds(condition: Condition, record: dict[str, Cell | None]) -> bool:
    """Return whether a record with canonical columns satisfies the condition."""
    match condition:
        case AllOf(parts):
            return all(holds(part, record) for part in parts)
        case AnyOf(parts):
            return any(holds(part, record) for part in parts)
        case Null(column, inside):
            return (record[column.name] is None) == inside
        case InBand(table, bands):
            held = record.get(table.key)
            return (table.band_of(record) if held is None else held) in bands
        case Among(column, values, inside):
            value = cell(record, column)
            return value is not None and (value in values) == inside
        case Compare(column, order, bound):
            value = cell(record, column)
            if value is None or not isinstance(value, Fraction):
                return False
            return {"<": value < bound, "<=": value <= bound, ">": value > bound, ">=": value >= bound}[order]
        case _:
            raise UnknownFormError(what="condition", found=type(condition).__name__)


def compared_columns(condition: Condition) -> set[str]:
    """Return the names of the columns compared with a number.

    They must contain numbers or NULL, or the parts are not a partition.
    """
    match condition:
        case AllOf(parts) | AnyOf(parts):
            return {name for part in parts for name in compared_columns(part)}
        case Compare(column=column):
            return set() if column.part else {column.name}
        case _:
            return set()


def split_bands(condition: Condition) -> tuple[tuple[InBand, ...], Condition]:
    """Split a condition into its bands of cells and the rest."""
    parts = condition.parts if isinstance(condition, AllOf) else (condition,)
    bands = tuple(part for part in parts if isinstance(part, InBand))
    rest = tuple(part for part in parts if not isinstance(part, InBand))
    if not bands:
        return (), condition
    return bands, rest[0] if len(rest) == 1 else AllOf(rest) if rest else EVERY
