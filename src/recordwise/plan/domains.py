"""Public domains too large to list: each cell has a position, and arithmetic converts between cells and positions."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import KeysError, ParameterError
from recordwise.plan.arrays import array_of, numpy_of
from recordwise.plan.fields import Group, Prefix
from recordwise.plan.frames import as_array
from recordwise.plan.key_columns import cast_keys, cell_type
from recordwise.plan.keys import Keys
from recordwise.plan.schema import Schema

IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
LARGEST_DOMAIN = 2**62
OUTSIDE = -1


class Cells(Protocol):
    """A domain bound to the groups of one table."""

    @property
    def size(self) -> int: ...

    def locate(self, cells: pa.Table) -> IntArray:
        """The position of each cell, or -1 for a cell outside the domain; different cells have different positions."""

    def keys(self, positions: IntArray) -> pa.Table:
        """The cells at the given positions, in the declared types."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Domain:
    """A domain given by functions: ``keys(positions)`` names cells and ``positions(columns)`` finds them. Both take whole arrays.

    A cell belongs to the domain iff ``keys(positions(cell))`` is that cell again, so a careless inverse loses cells but never
    counts a record twice (T-DOMAIN). Other processes recognize a release by the cells that the functions name, if they are at most
    a million; one with more cannot be made ``once`` or with ``keep``.

    Args:
        columns: The names of the columns.
        size: The number of cells.
        keys: From positions to the columns of the cells there.
        positions: From the columns of cells to their positions, -1 for none.
    """

    columns: tuple[str, ...]
    size: int
    keys: Callable[[IntArray], Mapping[str, Any]]
    positions: Callable[[Mapping[str, pa.Array]], Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        if isinstance(self.size, bool) or not isinstance(self.size, int) or not 1 <= self.size <= LARGEST_DOMAIN:
            raise ParameterError(parameter="size", problem="must be a whole number from 1 to 2^62")

    def covers(self, groups: tuple[Group, ...]) -> bool:
        """Whether every group has a function.

        Args:
            groups: The groups of a table.

        Returns:
            True or false.
        """
        return {group.name for group in groups} == set(self.columns)

    def bound(self, groups: tuple[Group, ...], schema: Schema) -> Cells:
        """The domain at the groups of a table, with values in their declared types.

        Args:
            groups: The groups of a table.
            schema: The schema of the plan.

        Returns:
            The domain of that table.
        """
        return _FunctionCells(self, groups, schema)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProductDomain:
    """Every combination of the values listed for each column."""

    columns: tuple[tuple[str, pa.Array], ...]

    @classmethod
    def of(cls, columns: Mapping[str, Iterable[Any]]) -> "ProductDomain":
        if not columns:
            raise ParameterError(parameter="domain", problem="must name at least one column")
        return cls(columns=tuple((name, as_array(name, values)) for name, values in columns.items()))

    def covers(self, groups: tuple[Group, ...]) -> bool:
        return all(self._origin(group) is not None for group in groups)

    def _origin(self, group: Group) -> pa.Array | None:
        listed = dict(self.columns)
        if group.name in listed:
            return listed[group.name]
        return listed.get(group.expression.column) if isinstance(group.expression, Prefix) else None

    def bound(self, groups: tuple[Group, ...], schema: Schema) -> Cells:
        return _ProductCells(groups, self.values_of(groups, schema))

    def values_of(self, groups: tuple[Group, ...], schema: Schema) -> tuple[pa.Array, ...]:
        """The values of each group: with the casts and checks of listed keys, and shortened to the level."""
        found = []
        for group in groups:
            values = self._origin(group)
            name = group.name if group.name in dict(self.columns) else getattr(group.expression, "column", group.name)
            found.append(Keys.of({name: values}).cells((group,), schema).column(0).combine_chunks())
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ListedDomain:
    """A domain of listed cells."""

    listed: Keys

    def covers(self, groups: tuple[Group, ...]) -> bool:
        return self.listed.covers(groups)

    def bound(self, groups: tuple[Group, ...], schema: Schema) -> Cells:
        return _ListedCells(self.listed.cells(groups, schema))


AnyDomain: TypeAlias = Domain | ProductDomain | ListedDomain


def as_domain(given: Any) -> AnyDomain:
    """A domain from a mapping of value lists, from listed keys, or unchanged."""
    if isinstance(given, Domain | ProductDomain | ListedDomain):
        return given
    if isinstance(given, Keys):
        return ListedDomain(listed=given)
    if isinstance(given, Mapping):
        return ProductDomain.of(given)
    raise ParameterError(
        parameter="domain",
        problem=f"is a {type(given).__name__}",
        advice="Give a mapping of value lists, Keys, or a Domain of functions.",
    )


class _ProductCells:
    """Positions in mixed radix, with the last column varying fastest."""

    def __init__(self, groups: tuple[Group, ...], columns: tuple[pa.Array, ...]) -> None:
        self._names, self._columns = [group.name for group in groups], columns
        self.size = math.prod(len(column) for column in columns)
        if self.size > LARGEST_DOMAIN:
            raise KeysError(column="the domain", problem="has more than 2^62 cells")

    def locate(self, cells: pa.Table) -> IntArray:
        position = np.zeros(cells.num_rows, dtype=np.int64)
        inside = np.ones(cells.num_rows, dtype=np.bool_)
        for name, values in zip(self._names, self._columns):
            place = places(cells.column(name), values)
            inside &= place != OUTSIDE
            position = position * len(values) + place
        return np.where(inside, position, OUTSIDE)

    def keys(self, positions: IntArray) -> pa.Table:
        found, rest = {}, positions
        for name, values in reversed(list(zip(self._names, self._columns))):
            rest, place = np.divmod(rest, len(values))
            found[name] = values.take(array_of(place))
        return pa.table({name: found[name] for name in self._names})


class _ListedCells:
    """Positions are rows of the sorted list; a cell is found column by column, with each prefix of columns numbered densely."""

    def __init__(self, listed: pa.Table) -> None:
        self._listed, self.size = listed, listed.num_rows
        self._stages: list[tuple[str, pa.Array, IntArray]] = []
        number = np.zeros(listed.num_rows, dtype=np.int64)
        for name in listed.column_names:
            values = listed.column(name).unique()
            joined = number * len(values) + places(listed.column(name), values)
            seen, number = np.unique(joined, return_inverse=True)
            self._stages.append((name, values, seen))
        self._row = np.argsort(number)

    def locate(self, cells: pa.Table) -> IntArray:
        number = np.zeros(cells.num_rows, dtype=np.int64)
        for name, values, seen in self._stages:
            place = places(cells.column(name), values)
            joined = np.where((place == OUTSIDE) | (number == OUTSIDE), OUTSIDE, number * len(values) + place)
            near = np.minimum(np.searchsorted(seen, joined), len(seen) - 1)
            number = np.where(seen[near] == joined, near, OUTSIDE)
        return np.where(number == OUTSIDE, OUTSIDE, self._row[number])

    def keys(self, positions: IntArray) -> pa.Table:
        return self._listed.take(array_of(positions))


class _FunctionCells:
    """A domain given by functions, with its results checked and cast."""

    def __init__(self, domain: Domain, groups: tuple[Group, ...], schema: Schema) -> None:
        self._domain, self._groups, self._schema, self.size = domain, groups, schema, domain.size

    def locate(self, cells: pa.Table) -> IntArray:
        columns = {name: pa.concat_arrays(cells.column(name).chunks) for name in cells.column_names}
        if not cells.num_rows:
            return np.empty(0, dtype=np.int64)
        given = self._positions(columns)
        known = (given >= 0) & (given < self.size)
        again = self.keys(np.where(known, given, 0))
        for name in cells.column_names:
            known &= same(again.column(name), cells.column(name))
        return np.where(known, given, OUTSIDE)

    def _positions(self, columns: Mapping[str, pa.Array]) -> IntArray:
        """Call the user's function. It sees confidential cells, so its error text is not passed on."""
        try:
            given = np.asarray(self._domain.positions(columns), dtype=np.int64)
        except Exception as error:
            problem = f"has a positions() function that failed with {type(error).__name__}"
            raise KeysError(
                column="the domain",
                problem=problem,
                advice="It must accept any cell and return -1 for one outside the domain.",
            ) from None
        if given.shape != (len(next(iter(columns.values()))),):
            raise KeysError(
                column="the domain", problem="has a positions() function that does not return one number for each cell"
            )
        return given

    def keys(self, positions: IntArray) -> pa.Table:
        given = self._domain.keys(positions)
        cast = {}
        for group in self._groups:
            kind, nullable = cell_type(group.expression, self._schema)
            values = pa.chunked_array([as_array(group.name, given[group.name])])
            cast[group.name] = cast_keys(group.name, values, kind, nullable)
        return pa.table(cast)


def places(column: pa.ChunkedArray, values: pa.Array) -> IntArray:
    """The index of each value in a list, or -1 if it is not listed; NULL is a value like any other."""
    found = pc.index_in(column, value_set=values.cast(column.type)).fill_null(OUTSIDE)
    return np.asarray(numpy_of(found), np.int64)


def same(left: pa.ChunkedArray, right: pa.ChunkedArray) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Row-wise equality, with NULL equal to NULL."""
    equal = numpy_of(pc.fill_null(pc.equal(left, right), False))
    both_null = numpy_of(pc.and_(pc.is_null(left), pc.is_null(right)))
    return np.asarray(equal | both_null, np.bool_)
