"""Thresholds that differ by group, where a cell may hold several groups: the largest that can fall into it rules it (T-CELL)."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.plan.fields import Field, Group, Prefix
from recordwise.plan.ranking import encoded
from recordwise.policy import By, Column
from recordwise.policy.literals import Value, literal


def cell_threshold(at: By, groups: Iterable[Group]) -> Fraction | By:
    """T_cell as a function of the cell: the record's own threshold where the cell determines it, else the largest possible one."""
    name, length = at.column.name, at.column.length
    lengths = [
        each.expression.length if isinstance(each.expression, Prefix) else None
        for each in groups
        if (isinstance(each.expression, Field) and each.expression.name == name)
        or (isinstance(each.expression, Prefix) and each.expression.column == name)
    ]
    if None in lengths or (length is not None and any(each >= length for each in lengths if each)):
        return at
    if not lengths:
        return max(_possible(at, "", None))
    known = max(each for each in lengths if each)
    prefixes = sorted({value[:known] for value, _ in at.values if isinstance(value, str)})
    return By(Column(name, known), tuple((p, max(_possible(at, p, known))) for p in prefixes), at.default)


def _possible(at: By, prefix: str, known: int | None) -> list[Fraction]:
    """Every threshold a record of such a cell can have; the default is never ruled out."""
    listed = [t for value, t in at.values if known is None or (isinstance(value, str) and value[:known] == prefix)]
    return listed if at.default is None else [*listed, at.default]


def is_raised(at: By, groups: Iterable[Group]) -> bool:
    """Whether some group gets the noise of another group's larger threshold."""
    return cell_threshold(at, groups) != at


@dataclass(frozen=True, slots=True)
class Run:
    """The cells that share one threshold, by their rows among the public cells; None where no threshold was promised."""

    at: Fraction | None
    rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def cells_by_threshold(at: Fraction | By, groups: tuple[Group, ...], cells: pa.Table) -> tuple[Run, ...]:
    """Which public cell gets which threshold."""
    count = cells.num_rows if groups else 1
    if not isinstance(at, By):
        return (Run(at, np.arange(count)),)
    group = next(each for each in groups if _origin(each) == at.column.name and _long_enough(each, at.column))
    chosen: dict[Value | None, Fraction | None] = dict(at.values)
    coded = encoded(cells.column(group.name))
    of_value = [chosen.get(_literal(value, at.column), at.default) for value in coded.dictionary.to_pylist()]
    different = list(dict.fromkeys(of_value))
    place = np.array([different.index(threshold) for threshold in of_value], dtype=np.int64)[coded.indices.to_numpy()]
    return tuple(Run(threshold, np.flatnonzero(place == number)) for number, threshold in enumerate(different))


def _origin(group: Group) -> str | None:
    value = group.expression
    return value.name if isinstance(value, Field) else value.column if isinstance(value, Prefix) else None


def _long_enough(group: Group, column: Column) -> bool:
    value = group.expression
    return not isinstance(value, Prefix) or (column.length is not None and value.length >= column.length)


def _literal(value: Any, column: Column) -> Value | None:
    """A cell's value as the policy compares it; NULL is in no list."""
    if isinstance(value, str):
        return value[: column.length] if column.length else value
    return None if value is None else literal(value)
