"""Public keys: the cells that will be published whatever the data contains.

Keys are first cast to the declared type of their column, by casts that can be undone, and must then be a partition (T-KEYS): an
engine that joins both '01' and '1' to the integer 1 would count a record twice and double its loss. Rows are sorted and compared as
whole numbers: each column by the rank of its value, all columns as the digits of one number.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import KeysError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, float_upper
from recordwise.plan.fields import DatePart, Field, Group, Prefix
from recordwise.plan.frames import as_array, as_arrow
from recordwise.plan.key_columns import (
    Ranked,
    cast_keys,
    cell_type,
    check_key_type,
    check_size,
    encoded,
    plain_column,
    ranked,
    row_codes,
    sorted_distinct,
)
from recordwise.plan.schema import Schema
from recordwise.plan.sizes import Given, Sizes, read_sizes
from recordwise.policy.bands import BandTable
from recordwise.policy.condition_columns import ConditionColumn

if TYPE_CHECKING:
    from recordwise.plan.key_selection import PiecesAt, SelectFrom, SelectKeys

Edges: TypeAlias = Callable[[float], tuple[Fraction, ...]]
"""The edges of bands, given the largest size."""


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
    _bands: dict[Any, BandTable] = field(default_factory=dict)

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
                is not stated.
        """
        table, sizes = read_sizes(as_arrow(frame), size, sized_on)
        return cls(table, sizes)

    def sized(self, frame: Any, *, size: Given, sized_on: str | None = None) -> "Keys":
        """The same keys with sizes from another list, matched by the columns of the keys; cells it does not list have none.

        Args:
            frame: A list with the columns of the keys and one or more columns of sizes.
            size: As ``of`` takes it.
            sized_on: As ``of`` takes it.

        Returns:
            The keys.

        Raises:
            KeysError: The list lacks a column of the keys, or lists a cell twice.
        """
        table, sizes = read_sizes(as_arrow(frame), size, sized_on)
        assert sizes is not None
        columns = {name: self.matched(table, each) for name, each in sizes.columns.items()}
        return Keys(self.table, replace(sizes, columns=columns))

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
        for name in self.table.column_names:
            if name not in table.column_names:
                raise KeysError(column=f"'{name}'", problem="is a column of the keys, but not of the list with sizes")
            own = self.table.column(name).chunk(0)
            distinct = own.dictionary if pa.types.is_dictionary(own.type) else own
            places = own.indices.to_numpy() if pa.types.is_dictionary(own.type) else np.arange(len(own))
            other = plain_column(table.column(name)).cast(distinct.type)
            rank = pc.index_in(other, value_set=distinct).fill_null(-1).to_numpy().astype(np.int64)
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

    def bands(
        self, groups: tuple[Group, ...], schema: Schema, names: tuple[str | None, ...], edges: Edges
    ) -> BandTable | None:
        """The bands of the cells of one table by the sizes of a statistic; None if its sizes are not known yet.

        The size of a cell of a coarser level is the sum of the sizes of the cells listed in it.

        Args:
            groups: The groups of the table.
            schema: The schema of the plan.
            names: The names of the statistic, by which its sizes are found.
            edges: The edges of the bands, given the largest size.

        Returns:
            The table of bands.
        """
        given = None if self.sizes is None else self.sizes.of(*names)
        if given is None:
            return None
        made = (groups, id(given), edges(float(np.inf))[0])
        if made not in self._bands:
            cells, sizes = self._sized_cells(groups, schema, given)
            limits = edges(float(sizes.max()))
            found = np.maximum(np.searchsorted([float_upper(each) for each in limits], sizes, side="right") - 1, 0)
            columns = [_condition_column(group) for group in groups]
            coded = [encoded(cells.column(group.name)) for group in groups]
            values = [(each.dictionary.to_pylist(), each.indices.to_numpy()) for each in coded]
            table = BandTable.of(columns, limits, values, found)
            self._bands[made] = self.sizes.raised.get(table.digest, table) if self.sizes is not None else table
        return self._bands[made]

    def sizes_at(self, groups: tuple[Group, ...], schema: Schema, names: tuple[str | None, ...]) -> FloatArray | None:
        """The sizes of the cells of one table, in the order of ``cells``; None if a statistic of these names has none.

        Args:
            groups: The groups of the table.
            schema: The schema of the plan.
            names: The names of the statistic.

        Returns:
            A size for each cell.
        """
        given = None if self.sizes is None else self.sizes.of(*names)
        return None if given is None else self._sized_cells(groups, schema, given)[1]

    def _sized_cells(self, groups: tuple[Group, ...], schema: Schema, sizes: FloatArray) -> tuple[pa.Table, FloatArray]:
        cells = self.cells(groups, schema)
        columns = [_at_level(group, str(self._origin(group)), self._column(group), schema) for group in groups]
        place = np.unique(row_codes(columns)[0], return_inverse=True)[1]
        return cells, np.asarray(np.bincount(place, weights=sizes, minlength=cells.num_rows), np.float64)

    def _column(self, group: Group) -> pa.Array:
        return self.table.column(str(self._origin(group))).chunk(0)

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
            table[name] = array.take(pa.array(np.tile(np.repeat(np.arange(len(array)), repeat), tile)))
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
        from recordwise.plan.key_products import crossed

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
        from recordwise.plan.key_selection import SelectKeys

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
        from recordwise.plan.key_selection import SelectFrom

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
        self.check(groups, schema)
        origins = {group: self._origin(group) for group in groups}
        columns = [
            _at_level(group, origin, self.table.column(origin).chunk(0), schema)
            for group, origin in origins.items()
            if origin is not None
        ]
        rows = sorted_distinct(columns)
        names = [group.name for group in groups]
        if len(rows) < self.table.num_rows and not self._is_projection(origins):
            raise _doubled(names, self.table.num_rows - len(rows))
        return pa.table({name: column.at(rows) for name, column in zip(names, columns)})

    def _is_projection(self, origins: dict[Group, str | None]) -> bool:
        """Whether a level drops columns or shortens codes, so that repeated rows are expected and not a mistake."""
        shortened = any(
            isinstance(group.expression, Prefix) and group.expression.column == origin
            for group, origin in origins.items()
        )
        return shortened or set(origins.values()) != set(self.table.column_names)


def _condition_column(group: Group) -> ConditionColumn:
    """What a policy sees of a group."""
    value = group.expression
    if isinstance(value, Prefix):
        return ConditionColumn(value.column, value.length)
    if isinstance(value, DatePart):
        return ConditionColumn(value.column, part=value.part)
    if not isinstance(value, Field):
        raise KeysError(
            column=f"'{group.name}'", problem="is a CASE, by which cells have no size", advice="Group by columns."
        )
    return ConditionColumn(value.name)


def _at_level(group: Group, origin: str, given: pa.Array, schema: Schema) -> Ranked:
    """A column of the keys, cast to its declared type and shortened to the level."""
    places = given.indices.to_numpy() if pa.types.is_dictionary(given.type) else np.arange(len(given))
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
