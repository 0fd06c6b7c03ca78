"""Public cells: rows of a list, a product of columns, or functions for a domain too large to list.

Values are first cast to the declared type of their column, by casts that can be undone, and must then be a partition (T-KEYS): an
engine that joins both '01' and '1' to the integer 1 would count a record twice and double its loss. Rows are sorted and compared as
whole numbers: each column by the rank of its value, all columns as the digits of one number.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import KeysError, ParameterError, own_errors_of
from recordwise.plan.arrays import array_of, as_array, numpy_of, single_array, table_digest
from recordwise.plan.expressions import Case, DatePart, Expression, Field, Group, Prefix
from recordwise.plan.schema import Schema

# The columns of keys: casts to a declared type that can be undone, and rows distinguished and sorted by whole
# numbers. A column is stored as the ranks of its values, and all columns of a row are the digits of one number.


def cell_type(expression: Expression, schema: Schema) -> tuple[str, bool]:
    """Return a group's declared type and whether it includes NULL."""
    if isinstance(expression, Case):
        return ("text" if isinstance(expression.default, str) else "integer"), False
    name = expression.name if isinstance(expression, Field) else expression.column
    column = schema.column(name)
    if column is None:
        raise KeysError(column=f"'{name}'", problem="is not a conditional column of the schema")
    kind = "integer" if isinstance(expression, DatePart) else column.type
    return kind, column.null == "category" and name not in schema.coarser_names()


def cast_keys(name: str, values: pa.Array, kind: str, nullable: bool) -> pa.Array:
    """Return the values in the declared type (T-KEYS).

    NULL only if it is a category; every cast must round-trip.
    """
    plain = _plain(values)
    if plain.null_count and not nullable:
        raise KeysError(
            column=f"'{name}'",
            problem="contains NULL",
            advice="Declare null='category' or remove the NULLs.",
        )
    if pa.types.is_null(plain.type):
        return plain.cast(arrow_type(kind))
    cast = _cast(name, plain, kind)
    back = _cast_back(cast, plain.type)
    if back is None or not pc.all(pc.equal(back, plain), min_count=0).as_py():
        raise _no_round_trip(name, kind)
    return cast


def arrow_type(kind: str) -> pa.DataType:
    """How values of a declared type are held."""
    return {"text": pa.string(), "integer": pa.int64(), "boolean": pa.bool_(), "date": pa.date32()}[kind]


def _plain(values: pa.Array) -> pa.Array:
    narrow = pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type)
    return values.cast(pa.string()) if narrow else values


def _cast(name: str, values: pa.Array, kind: str) -> pa.Array:
    given = values.type
    allowed = {
        "text": pa.types.is_string(given),
        "integer": pa.types.is_integer(given) or pa.types.is_floating(given) or pa.types.is_string(given),
        "boolean": pa.types.is_boolean(given),
    }[kind]
    if not allowed:
        raise KeysError(
            column=f"'{name}'", problem=f"has {given} keys for a column of type {kind}", advice=_advice(kind, given)
        )
    try:
        return values.cast(arrow_type(kind), safe=True)
    except pa.ArrowInvalid:
        raise _no_round_trip(name, kind) from None


def _advice(kind: str, given: pa.DataType) -> str:
    """Return advice on a code written as a number, losing its zero."""
    return (
        "Write codes as text, with their leading zeros: '01001'."
        if kind == "text" and pa.types.is_integer(given)
        else ""
    )


def _cast_back(cast: pa.Array, given: pa.DataType) -> pa.Array | None:
    try:
        return cast.cast(given, safe=True)
    except pa.ArrowInvalid:
        return None


def _no_round_trip(name: str, kind: str) -> KeysError:
    return KeysError(
        column=f"'{name}'",
        problem=f"has keys that do not survive a cast to {kind} and back",
        advice="Write the keys exactly as the column's declared type holds them.",
    )


IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class RankedColumn:
    """A column as its rows' ranks among sorted distinct values, NULL last."""

    values: pa.Array
    ranks: IntArray

    def at(self, rows: IntArray) -> pa.Array:
        return self.values.take(array_of(self.ranks[rows]))


def plain_column(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array of its values."""
    plain = single_array(column)
    return plain.dictionary_decode() if pa.types.is_dictionary(plain.type) else plain


def encode_column(column: pa.ChunkedArray) -> pa.Array:
    """Return a column freshly encoded by its distinct values, NULL included."""
    plain = plain_column(column)
    return plain if pa.types.is_null(plain.type) else plain.dictionary_encode(null_encoding="encode")


def ranked(values: pa.Array, indices: IntArray) -> RankedColumn:
    """The column whose rows hold ``values[places]``; values may repeat."""
    different = values.dictionary_encode(null_encoding="encode")
    order = numpy_of(pc.sort_indices(different.dictionary))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return RankedColumn(different.dictionary.take(array_of(order)), rank[numpy_of(different.indices)][indices])


MOST_GAPS = 8
"""Rows are sorted by a look-up table where there are at most this many possible ones for each."""


def sorted_distinct(columns: Sequence[RankedColumn]) -> IntArray:
    """Return the rows that list every distinct row once, in ascending order."""
    rows = len(columns[0].ranks)
    code, size = row_codes(columns)
    if size > MOST_GAPS * rows:
        return np.unique(code, return_index=True)[1]
    # Few of the possible rows are missing: a look-up table of all of them is faster than sorting.
    place = np.full(size, -1, dtype=np.int64)
    place[code] = np.arange(rows)
    return place[place >= 0]


def row_codes(columns: Sequence[RankedColumn]) -> tuple[IntArray, int]:
    """Return an order-preserving number per row, and the number of numbers."""
    rows = len(columns[0].ranks)
    code, size = np.zeros(rows, dtype=np.int64), 1
    for column in columns:
        count = len(column.values)
        if size * count >= 2**63:
            # The distinct rows so far are at most as many as the rows, so the next product fits.
            code, size = np.unique(code, return_inverse=True)[1].astype(np.int64), rows
        code, size = code * count + column.ranks, size * count
    return code, size


MOST_CELLS = 20_000_000


def check_cell_count(rows: int) -> None:
    """Refuse an empty or too long list of cells."""
    if rows == 0:
        raise KeysError(column="the list", problem="is empty: list every cell that is published")
    if rows > MOST_CELLS:
        raise KeysError(
            column="the list",
            problem=f"has {rows:,} cells, more than the {MOST_CELLS:,} one query may publish",
            advice="Use coarser levels, fewer columns, or Keys.select_from for a sparse domain.",
        )


def check_key_type(name: str, kind: pa.DataType) -> None:
    """Refuse a key that is not text, number, truth value or NULL."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not (text or number or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        raise KeysError(column=f"'{name}'", problem=f"has {kind} values, which cannot be keys")


# The cells. Each has a position, and cells and positions are converted into one another.


LARGEST_DOMAIN = 2**62
OUTSIDE = -1
MOST_DIGESTED = 1_000_000
"""The largest domain given by functions that is listed for its digest."""
BLOCK = 1 << 18


class Cells(Protocol):
    """Public cells. Those of a table, ``bound`` to its groups, have their declared types, a position each and a digest."""

    def __hash__(self) -> int: ...

    @property
    def size(self) -> int:
        """How many there are."""

    @property
    def is_recognizable(self) -> bool:
        """Whether they have a digest."""

    def covers(self, groups: tuple[Group, ...]) -> bool:
        """Whether every group of a table can be read from the columns."""

    def bound(self, groups: tuple[Group, ...], schema: Schema) -> "Cells":
        """The cells of one table, in the declared types of its groups."""

    def locate(self, cells: pa.Table) -> IntArray:
        """The position of each cell, or -1 for one that is not among them; different cells have different positions."""

    def keys(self, positions: IntArray) -> pa.Table:
        """The cells at positions."""

    def digest(self) -> Any:
        """The same in every process: of the cells themselves, never of how Python prints an object."""


def _origin(group: Group, names: Iterable[str]) -> str | None:
    """The column from which the values of a group are: its own, or that of which it is a prefix."""
    if group.name in names:
        return group.name
    return (
        group.expression.column if isinstance(group.expression, Prefix) and group.expression.column in names else None
    )


@dataclass(frozen=True, eq=False)
class Rows:
    """Cells of a list, a row each; positions are rows."""

    table: pa.Table
    is_recognizable = True

    @classmethod
    def of(cls, table: pa.Table) -> "Rows":
        """Check a list of cells, and encode its columns."""
        if table.num_columns == 0:
            raise KeysError(column="the list", problem="has no column")
        if len(set(table.column_names)) < table.num_columns:
            raise KeysError(column="the list", problem="names a column twice")
        check_cell_count(table.num_rows)
        for name, column in zip(table.column_names, table.columns):
            check_key_type(name, column.type)
            plain = plain_column(column)
            if pa.types.is_floating(plain.type) and pc.any(pc.is_nan(plain)).as_py():
                raise KeysError(column=f"'{name}'", problem="has keys that are not a number (NaN)")
        return cls(pa.table({name: encode_column(table.column(name)) for name in table.column_names}))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and bool(self.table.equals(other.table))

    def __hash__(self) -> int:
        return hash((self.table.num_rows, *self.table.column_names))

    @property
    def size(self) -> int:
        return int(self.table.num_rows)

    def covers(self, groups: tuple[Group, ...]) -> bool:
        return all(_origin(group, self.table.column_names) is not None for group in groups)

    def check(self, groups: tuple[Group, ...], schema: Schema) -> None:
        """Refuse values that do not fit the declared types; done once for each different value, so that a plan can ask early."""
        for group in groups:
            origin = _origin(group, self.table.column_names)
            if origin is None:
                raise KeysError(column=f"'{group.name}'", problem="is a group but has no column in the keys")
            _typed(group, origin, self.table.column(origin).chunk(0), schema)

    def bound(self, groups: tuple[Group, ...], schema: Schema) -> "Rows":
        """The cells of one table: cast, checked to be distinct, brought to the level, sorted."""
        columns = self.columns_at(groups, schema)
        rows = sorted_distinct(columns)
        names = [group.name for group in groups]
        if len(rows) < self.table.num_rows and not self._is_projection(groups):
            raise _doubled(names, self.table.num_rows - len(rows))
        return Rows(pa.table({name: column.at(rows) for name, column in zip(names, columns)}))

    def columns_at(self, groups: tuple[Group, ...], schema: Schema) -> list[RankedColumn]:
        """The columns for the groups of a table, cast and brought to its level, a row for each cell of the list."""
        self.check(groups, schema)
        origins = [(group, str(_origin(group, self.table.column_names))) for group in groups]
        return [_at_level(group, origin, self.table.column(origin).chunk(0), schema) for group, origin in origins]

    def _is_projection(self, groups: tuple[Group, ...]) -> bool:
        """Whether a level drops columns or shortens codes, so that repeated rows are expected and not a mistake."""
        origins = {group: _origin(group, self.table.column_names) for group in groups}
        shortened = any(
            isinstance(group.expression, Prefix) and group.expression.column == origin
            for group, origin in origins.items()
        )
        return shortened or set(origins.values()) != set(self.table.column_names)

    @cached_property
    def _stages(self) -> tuple[list[tuple[str, pa.Array, IntArray]], IntArray]:
        """A cell is found column by column, with each prefix of columns numbered densely; the last numbers are of rows."""
        stages: list[tuple[str, pa.Array, IntArray]] = []
        number = np.zeros(self.table.num_rows, dtype=np.int64)
        for name in self.table.column_names:
            values = self.table.column(name).unique()
            joined = number * len(values) + positions_of(self.table.column(name), values)
            seen, number = np.unique(joined, return_inverse=True)
            stages.append((name, values, seen))
        return stages, np.argsort(number)

    def locate(self, cells: pa.Table) -> IntArray:
        number = np.zeros(cells.num_rows, dtype=np.int64)
        stages, rows = self._stages
        for name, values, seen in stages:
            place = positions_of(cells.column(name), values)
            joined = np.where((place == OUTSIDE) | (number == OUTSIDE), OUTSIDE, number * len(values) + place)
            near = np.minimum(np.searchsorted(seen, joined), len(seen) - 1)
            number = np.where(seen[near] == joined, near, OUTSIDE)
        return np.where(number == OUTSIDE, OUTSIDE, rows[number])

    def keys(self, positions: IntArray) -> pa.Table:
        return self.table.take(array_of(positions))

    def digest(self) -> str:
        return table_digest(self.table)


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """Every combination of the values of each column; positions are in mixed radix, the last column varying fastest."""

    columns: tuple[tuple[str, pa.Array], ...]

    @classmethod
    def of(cls, columns: Mapping[str, Iterable[Any]]) -> "Product":
        """Read the values of each column."""
        if not columns:
            raise ParameterError(parameter="domain", problem="must name at least one column")
        return cls(tuple((name, as_array(name, values)) for name, values in columns.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Product) and self.columns == other.columns

    def __hash__(self) -> int:
        return hash(tuple(name for name, _ in self.columns))

    @property
    def is_recognizable(self) -> bool:
        return True

    @property
    def size(self) -> int:
        return math.prod(len(values) for _, values in self.columns)

    def covers(self, groups: tuple[Group, ...]) -> bool:
        return all(_origin(group, dict(self.columns)) is not None for group in groups)

    def bound(self, groups: tuple[Group, ...], schema: Schema) -> "Product":
        """The values of each group: with the casts and checks of listed keys, and shortened to the level."""
        found, listed = [], dict(self.columns)
        for group in groups:
            name = str(_origin(group, listed))
            values = Rows.of(pa.table({name: listed[name]})).bound((group,), schema).table.column(0).combine_chunks()
            found.append((group.name, values))
        made = Product(tuple(found))
        if made.size > LARGEST_DOMAIN:
            raise KeysError(column="the domain", problem="has more than 2^62 cells")
        return made

    def locate(self, cells: pa.Table) -> IntArray:
        position = np.zeros(cells.num_rows, dtype=np.int64)
        inside = np.ones(cells.num_rows, dtype=np.bool_)
        for name, values in self.columns:
            place = positions_of(cells.column(name), values)
            inside &= place != OUTSIDE
            position = position * len(values) + place
        return np.where(inside, position, OUTSIDE)

    def keys(self, positions: IntArray) -> pa.Table:
        found, rest = {}, positions
        for name, values in reversed(self.columns):
            rest, place = np.divmod(rest, len(values))
            found[name] = values.take(array_of(place))
        return pa.table({name: found[name] for name, _ in self.columns})

    def digest(self) -> list[str]:
        return [table_digest(pa.table({"": values})) for _, values in self.columns]


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Domain:
    """A domain given by functions: ``keys(positions)`` names cells and ``positions(columns)`` finds them. Both take whole arrays.

    A cell belongs to the domain iff ``keys(positions(cell))`` is that cell again, so a careless inverse loses cells but never
    counts a record twice (T-DOMAIN). Other processes recognize a release by the cells that the functions name, if they are at most
    a million; one with more cannot be made with ``refuse_repeat`` or ``keep``.

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

    @property
    def is_recognizable(self) -> bool:
        """Whether it has a digest, because its cells can be listed."""
        return self.size <= MOST_DIGESTED

    def covers(self, groups: tuple[Group, ...]) -> bool:
        """Whether every group has a function.

        Args:
            groups: The groups of a table.

        Returns:
            True or false.
        """
        return {group.name for group in groups} == set(self.columns)

    def bound(self, groups: tuple[Group, ...], schema: Schema) -> "Domain":
        """Return the domain at a table's groups, in their declared types.

        Args:
            groups: The groups of a table.
            schema: The schema of the plan.

        Returns:
            The domain of that table.
        """

        def cast(positions: IntArray) -> pa.Table:
            given, found = self.keys(positions), {}
            for group in groups:
                kind, nullable = cell_type(group.expression, schema)
                values = pa.chunked_array([as_array(group.name, given[group.name])])
                found[group.name] = cast_keys(group.name, values, kind, nullable)
            return pa.table(found)

        return replace(self, keys=cast)

    def locate(self, cells: pa.Table) -> IntArray:
        """The position of each cell of a table, or -1.

        Args:
            cells: The cells.

        Returns:
            Their positions.
        """
        columns = {name: pa.concat_arrays(cells.column(name).chunks) for name in cells.column_names}
        if not cells.num_rows:
            return np.empty(0, dtype=np.int64)
        given = self._positions(columns)
        known = (given >= 0) & (given < self.size)
        again: Any = self.keys(np.where(known, given, 0))
        for name in cells.column_names:
            known &= same(again.column(name), cells.column(name))
        return np.where(known, given, OUTSIDE)

    def _positions(self, columns: Mapping[str, pa.Array]) -> IntArray:
        """Call the user's function. It sees confidential cells, so its error text is not passed on."""
        try:
            given = np.asarray(self.positions(columns), dtype=np.int64)
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

    def digest(self) -> str:
        """The digest of every cell that the functions of a table name, and of which of them they find again.

        Raises:
            KeysError: There are too many to list.
        """
        if not self.is_recognizable:
            raise KeysError(column="the domain", problem=f"has more than {MOST_DIGESTED:,} cells and so no digest")
        made = hashlib.sha256()
        for start in range(0, self.size, BLOCK):
            positions = np.arange(start, min(start + BLOCK, self.size))
            cells: Any = self.keys(positions)
            made.update(table_digest(cells).encode())
            made.update(np.packbits(self.locate(cells) == positions).tobytes())
        return made.hexdigest()


def positions_of(column: pa.ChunkedArray, values: pa.Array) -> IntArray:
    """Return each value's (also NULL's) index in a list, or -1."""
    found = pc.index_in(column, value_set=values.cast(column.type)).fill_null(OUTSIDE)
    return np.asarray(numpy_of(found), np.int64)


def same(left: pa.ChunkedArray, right: pa.ChunkedArray) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Row-wise equality, with NULL equal to NULL."""
    equal = numpy_of(pc.fill_null(pc.equal(left, right), False))
    both_null = numpy_of(pc.and_(pc.is_null(left), pc.is_null(right)))
    return np.asarray(equal | both_null, np.bool_)


def _at_level(group: Group, origin: str, given: pa.Array, schema: Schema) -> RankedColumn:
    """Return a key column, cast to its type and level."""
    places = numpy_of(given.indices) if pa.types.is_dictionary(given.type) else np.arange(len(given))
    return ranked(_typed(group, origin, given, schema), places)


def _typed(group: Group, origin: str, given: pa.Array, schema: Schema) -> pa.Array:
    """Return a key column's distinct values, cast to type and level."""
    kind, nullable = cell_type(group.expression, schema)
    values = cast_keys(origin, given.dictionary if pa.types.is_dictionary(given.type) else given, kind, nullable)
    if isinstance(group.expression, Prefix):
        shortened = pc.utf8_slice_codeunits(values, 0, group.expression.length)
        if origin == group.name != group.expression.column and not shortened.equals(values):
            raise KeysError(column=f"'{origin}'", problem=f"has keys longer than {group.expression.length} characters")
        values = shortened
    return values


def _doubled(names: list[str], doubled: int) -> KeysError:
    return KeysError(
        column=" x ".join(f"'{name}'" for name in names),
        problem=f"lists {doubled:,} cell{'s' if doubled > 1 else ''} more than once after casting to the declared type",
        advice="A record in such a cell would be counted twice; remove the duplicates.",
    )
