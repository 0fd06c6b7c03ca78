"""Public keys: the cells that will be published whatever the data contains.

Keys are first cast to the declared type of their column, by casts that can be undone, and must then be a partition (T-KEYS): an
engine that joins both '01' and '1' to the integer 1 would count a record twice and double its loss. Rows are sorted and compared as
whole numbers: each column by the rank of its value, all columns as the digits of one number.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import KeysError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number
from recordwise.plan.arrays import array_of, null_as, numpy_of, whole
from recordwise.plan.expressions import Case, DatePart, Expression, Field, Group, Prefix
from recordwise.plan.keys.sizes import Given, Sizes, read_sizes
from recordwise.plan.schema import Schema
from recordwise.plan.sources import as_array, as_public
from recordwise.policy.bands import BandTable

if TYPE_CHECKING:
    from recordwise.plan.keys.selection import PiecesAt, SelectFrom, SelectKeys


# The columns of keys: casts to a declared type that can be undone, and rows distinguished and sorted by whole
# numbers. A column is stored as the ranks of its values, and all columns of a row are the digits of one number.


def cell_type(expression: Expression, schema: Schema) -> tuple[str, bool]:
    """The declared type of a group's values and whether NULL is one of them."""
    if isinstance(expression, Case):
        return ("text" if isinstance(expression.default, str) else "integer"), False
    name = expression.name if isinstance(expression, Field) else expression.column
    column = schema.column(name)
    if column is None:
        raise KeysError(column=f"'{name}'", problem="is not a conditional column of the schema")
    kind = "integer" if isinstance(expression, DatePart) else column.type
    return kind, column.null == "category" and name not in schema.coarser_names()


def cast_keys(name: str, values: pa.Array, kind: str, nullable: bool) -> pa.Array:
    """The values in the declared type; NULL only if it is a category; every cast must round-trip (T-KEYS)."""
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
    """1001 is a number, '01001' a code: written as a number it would match no record."""
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
class Ranked:
    """A column as the ranks of its rows among its distinct values, which are sorted with NULL last."""

    values: pa.Array
    ranks: IntArray

    def at(self, rows: IntArray) -> pa.Array:
        return self.values.take(array_of(self.ranks[rows]))


def plain_column(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array of its values."""
    plain = whole(column)
    return plain.dictionary_decode() if pa.types.is_dictionary(plain.type) else plain


def encoded(column: pa.ChunkedArray) -> pa.Array:
    """A column as a dictionary of its different values, NULL among them; a dictionary that was given is not trusted."""
    plain = plain_column(column)
    return plain if pa.types.is_null(plain.type) else plain.dictionary_encode(null_encoding="encode")


def ranked(values: pa.Array, places: IntArray) -> Ranked:
    """The column whose rows hold ``values[places]``; values may repeat."""
    different = values.dictionary_encode(null_encoding="encode")
    order = numpy_of(pc.sort_indices(different.dictionary))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Ranked(different.dictionary.take(array_of(order)), rank[numpy_of(different.indices)][places])


MOST_GAPS = 8
"""Rows are sorted by a look-up table where there are at most this many possible ones for each."""


def sorted_distinct(columns: Sequence[Ranked]) -> IntArray:
    """The rows to take so that every distinct row appears once, in ascending order."""
    rows = len(columns[0].ranks)
    code, size = row_codes(columns)
    if size > MOST_GAPS * rows:
        return np.unique(code, return_index=True)[1]
    # Few of the possible rows are missing: a look-up table of all of them is faster than sorting.
    place = np.full(size, -1, dtype=np.int64)
    place[code] = np.arange(rows)
    return place[place >= 0]


def row_codes(columns: Sequence[Ranked]) -> tuple[IntArray, int]:
    """A number for each row, in the order of the rows, and how many numbers there can be."""
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


def check_size(rows: int) -> None:
    """Refuse an empty list of cells, and one of more cells than a query may publish."""
    if rows == 0:
        raise KeysError(column="the list", problem="is empty")
    if rows > MOST_CELLS:
        raise KeysError(
            column="the list",
            problem=f"has {rows:,} cells, more than the {MOST_CELLS:,} one query may publish",
            advice="Use coarser levels, fewer columns, or Keys.select_from for a sparse domain.",
        )


def check_key_type(name: str, kind: pa.DataType) -> None:
    """A key is text, a number, a truth value or NULL; whether it fits its column is checked once the schema is known."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not (text or number or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        raise KeysError(column=f"'{name}'", problem=f"has {kind} values, which cannot be keys")


# The keys.


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """A public list of cells. It must not depend on the records: every listed cell is published, even if it is empty.

    Example:
        >>> import recordwise as rw
        >>> rw.Keys.of({"county": ["001", "003"]})
        <Keys: 2 cells of county>
        >>> rw.Keys.product(county=["001", "003"], size=[1, 2, 3])
        <Keys: 6 cells of county x size>
    """

    table: pa.Table
    sizes: Sizes | None = None
    """The public sizes of the cells, if noise may be scaled by them (T-SIZE)."""
    made_bands: dict[Any, BandTable] = field(default_factory=dict)
    """The bands of the cells of each table, made once."""

    def __post_init__(self) -> None:
        if self.table.num_columns == 0:
            raise KeysError(column="the list", problem="has no column")
        if len(set(self.table.column_names)) < self.table.num_columns:
            raise KeysError(column="the list", problem="names a column twice")
        check_size(self.table.num_rows)
        for name, column in zip(self.table.column_names, self.table.columns):
            check_key_type(name, column.type)
        columns = {name: encoded(self.table.column(name)) for name in self.table.column_names}
        object.__setattr__(self, "table", pa.table(columns))

    @classmethod
    def of(cls, frame: Any, *, size: Given | None = None, sized_on: str | None = None) -> "Keys":
        """Keys from a list with one row for each cell, and what is publicly known about the size of each.

        Args:
            frame: An Arrow, pandas or Polars frame, or a mapping of columns.
            size: For ``Sized`` mechanisms: the column of the frame with the size of each cell, for all statistics, or a mapping
                from each statistic ("count", or the name of a measure) to its column. Instead of a column, ``FromRelease``
                names one of an earlier private release.
            sized_on: Where the column is from: ``"public: SOURCE"``. Sizes must not depend on the records.

        Returns:
            The keys.

        Raises:
            KeysError: The list has no column, names a column twice, contains values of an unsupported type, or sizes whose source
                is not stated; or it was read from a Parquet file of a release of ours, which is no public list.
        """
        table, sizes = read_sizes(as_public(frame), size, sized_on)
        return cls(table, sizes)

    def sized(self, frame: Any, *, size: Given, sized_on: str | None = None) -> "Keys":
        """The same keys with sizes from another list, matched by the columns of the keys; cells it does not list have none.

        Args:
            frame: A list with one or more columns of sizes, and columns of the keys that tell all cells apart.
            size: As ``of`` takes it. Sizes that the keys have for other statistics are kept.
            sized_on: As ``of`` takes it.

        Returns:
            The keys.

        Raises:
            KeysError: The list lacks a column of the keys, or lists a cell twice.
        """
        table, sizes = read_sizes(as_public(frame), size, sized_on)
        assert sizes is not None
        columns = {name: self.matched(table, each) for name, each in sizes.columns.items()}
        found = replace(sizes, columns=columns)
        return Keys(self.table, found if self.sizes is None else self.sizes.with_others(found))

    def matched(self, table: pa.Table, values: FloatArray) -> FloatArray:
        """Numbers of another list of cells at the cells of these keys; 0 where it does not list one.

        Args:
            table: The other list, with at least the columns of the keys.
            values: A number for each of its rows.

        Returns:
            A number for each cell of the keys.

        Raises:
            KeysError: The list lacks a column of the keys, or lists a cell twice.
        """
        ours, theirs = np.zeros(self.table.num_rows, np.int64), np.zeros(table.num_rows, np.int64)
        known = np.ones(table.num_rows, np.bool_)
        for name in self._matching(table):
            own = self.table.column(name).chunk(0)
            distinct = own.dictionary if pa.types.is_dictionary(own.type) else own
            places = numpy_of(own.indices) if pa.types.is_dictionary(own.type) else np.arange(len(own))
            other = plain_column(table.column(name)).cast(distinct.type)
            rank = null_as(pc.index_in(other, value_set=distinct), -1).astype(np.int64)
            known &= rank >= 0
            ours = ours * (len(distinct) + 1) + places
            theirs = theirs * (len(distinct) + 1) + rank
        listed, first, counts = np.unique(theirs[known], return_index=True, return_counts=True)
        if np.any(counts > 1):
            raise KeysError(column="the list with sizes", problem="lists a cell twice")
        if not len(listed):
            return np.zeros(len(ours))
        at = np.minimum(np.searchsorted(listed, ours), len(listed) - 1)
        return np.where(listed[at] == ours, values[known][first][at], 0.0)

    def _matching(self, table: pa.Table) -> list[str]:
        """The columns by which another list is matched: all of the keys, or those it has where they tell all cells apart."""
        shared = [name for name in self.table.column_names if name in table.column_names]
        missing = [name for name in self.table.column_names if name not in shared]
        if missing and (not shared or not self.told_apart(shared)):
            problem = "is a column of the keys, but not of the list with sizes"
            raise KeysError(column=f"'{missing[0]}'", problem=problem)
        return shared

    def told_apart(self, names: Iterable[str]) -> bool:
        """Whether no two cells have the same values in these columns, as where all others are coarser levels of them.

        Args:
            names: Columns of the keys.

        Returns:
            True or false.
        """
        different = self.table.group_by(list(names), use_threads=False).aggregate([]).num_rows
        return bool(different == self.table.num_rows)

    @classmethod
    def product(cls, **columns: Iterable[Any]) -> "Keys":
        """Every combination of the values given for each column.

        Args:
            columns: The values of each column, by its name.

        Returns:
            The keys.
        """
        arrays = {name: as_array(name, values) for name, values in columns.items()}
        repeat, tile, table = math.prod(len(array) for array in arrays.values()), 1, {}
        check_size(repeat)
        for name, array in arrays.items():
            repeat //= len(array)
            table[name] = array.take(array_of(np.tile(np.repeat(np.arange(len(array)), repeat), tile)))
            tile *= len(array)
        return cls(pa.table(table))

    @staticmethod
    def crossed(*lists: "Keys") -> "Keys":
        """Every combination of the cells of several lists, such as places and industries of two hierarchies.

        Args:
            lists: The lists; no two have a column in common.

        Returns:
            The keys.

        Raises:
            KeysError: Two lists have a column in common, or there are too many combinations.

        Example:
            >>> import recordwise as rw
            >>> rw.Keys.crossed(rw.Keys.of({"county": ["001", "003"]}), rw.Keys.of({"sector": ["11", "31-33"]}))
            <Keys: 4 cells of county x sector>
        """
        from recordwise.plan.plan import crossed

        return crossed(lists)

    @staticmethod
    def select(*, rho: Number, delta: Number, pieces: "PiecesAt | None" = None) -> "SelectKeys":
        """Keys found in the data: those whose noisy number of rows, or of split pieces, reaches a threshold (T-SELECT).

        Args:
            rho: The loss of one piece.
            delta: The largest probability that a key is listed because of one piece alone.
            pieces: The threshold of each measure at which records are split into pieces; whole records are counted unless given.

        Returns:
            The selection, to be given as keys.
        """
        from recordwise.plan.keys.selection import SelectKeys

        return SelectKeys.of(rho=rho, delta=delta, pieces=pieces)

    @staticmethod
    def select_from(domain: Any, *, rho: Number, threshold: int, pieces: "PiecesAt | None" = None) -> "SelectFrom":
        """Keys of a public domain whose noisy count reaches a threshold; empty cells are included, so there is no delta (T-EMPTY).

        The domain is a mapping of value lists (their product), ``Keys``, or a ``Domain`` of functions.

        Args:
            domain: A mapping of value lists, ``Keys``, or a ``Domain`` of functions.
            rho: The loss of one piece.
            threshold: The noisy count from which a cell is listed.
            pieces: The threshold of each measure at which records are split into pieces; whole records are counted unless given.

        Returns:
            The selection, to be given as keys.
        """
        from recordwise.plan.keys.selection import SelectFrom

        return SelectFrom.of(domain, rho=rho, threshold=threshold, pieces=pieces)

    def __repr__(self) -> str:
        return f"<Keys: {self.table.num_rows:,} cell{'s' * (self.table.num_rows != 1)} of {' x '.join(self.table.column_names)}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Keys) or (self.sizes is None) != (other.sizes is None):
            return False
        same = self.sizes is None or other.sizes is None or self.sizes.digest() == other.sizes.digest()
        return same and bool(self.table.equals(other.table))

    def __hash__(self) -> int:
        return hash((self.table.num_rows, *self.table.column_names))

    def covers(self, groups: tuple[Group, ...]) -> bool:
        """Whether every group is a column of the keys or can be derived from one.

        Args:
            groups: The groups of a table.

        Returns:
            True or false.
        """
        return all(self._origin(group) is not None for group in groups)

    def _origin(self, group: Group) -> str | None:
        if group.name in self.table.column_names:
            return group.name
        if isinstance(group.expression, Prefix) and group.expression.column in self.table.column_names:
            return group.expression.column
        return None

    def check(self, groups: tuple[Group, ...], schema: Schema) -> None:
        """Refuse keys that do not fit the declared types; done once for each different value, so that a plan can ask early.

        Args:
            groups: The groups of a table.
            schema: The schema of the plan.
        """
        for group in groups:
            origin = self._origin(group)
            if origin is None:
                raise KeysError(column=f"'{group.name}'", problem="is a group but has no column in the keys")
            _typed(group, origin, self.table.column(origin).chunk(0), schema)

    def cells(self, groups: tuple[Group, ...], schema: Schema) -> pa.Table:
        """The cells of one table: cast, checked to be distinct, brought to the level, sorted.

        Args:
            groups: The groups of a table.
            schema: The schema of the plan.

        Returns:
            The cells, a row each.
        """
        columns = self.columns_at(groups, schema)
        rows = sorted_distinct(columns)
        names = [group.name for group in groups]
        if len(rows) < self.table.num_rows and not self._is_projection(groups):
            raise _doubled(names, self.table.num_rows - len(rows))
        return pa.table({name: column.at(rows) for name, column in zip(names, columns)})

    def columns_at(self, groups: tuple[Group, ...], schema: Schema) -> list[Ranked]:
        """The columns of the list for the groups of a table, cast and brought to its level, a row for each cell of the list.

        Args:
            groups: The groups of a table.
            schema: The schema of the plan.

        Returns:
            The columns.
        """
        self.check(groups, schema)
        origins = [(group, str(self._origin(group))) for group in groups]
        return [_at_level(group, origin, self.table.column(origin).chunk(0), schema) for group, origin in origins]

    def _is_projection(self, groups: tuple[Group, ...]) -> bool:
        """Whether a level drops columns or shortens codes, so that repeated rows are expected and not a mistake."""
        origins = {group: self._origin(group) for group in groups}
        shortened = any(
            isinstance(group.expression, Prefix) and group.expression.column == origin
            for group, origin in origins.items()
        )
        return shortened or set(origins.values()) != set(self.table.column_names)


def _at_level(group: Group, origin: str, given: pa.Array, schema: Schema) -> Ranked:
    """A column of the keys, cast to its declared type and shortened to the level."""
    places = numpy_of(given.indices) if pa.types.is_dictionary(given.type) else np.arange(len(given))
    return ranked(_typed(group, origin, given, schema), places)


def _typed(group: Group, origin: str, given: pa.Array, schema: Schema) -> pa.Array:
    """The distinct values of a column of the keys, cast to its declared type and shortened to the level."""
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
