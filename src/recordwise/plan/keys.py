"""Public keys: the cells that will be published whatever the data contains.

Keys are first cast to the declared type of their column, by casts that can be undone, and must then be a partition (T-KEYS): an
engine that joins both '01' and '1' to the integer 1 would count a record twice and double its loss. Rows are sorted and compared as
whole numbers: each column by the rank of its value, all columns as the digits of one number.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import KeysError
from recordwise.exact.numbers import Number
from recordwise.plan.fields import Group, Prefix
from recordwise.plan.frames import as_array, as_arrow
from recordwise.plan.key_columns import Ranked, cast_keys, cell_type, encoded, ranked, sorted_distinct
from recordwise.plan.schema import Schema

if TYPE_CHECKING:
    from recordwise.plan.key_selection import PiecesAt, SelectFrom, SelectKeys

MOST_CELLS = 20_000_000


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

    def __post_init__(self) -> None:
        if self.table.num_columns == 0:
            raise KeysError(column="the list", problem="has no column")
        if len(set(self.table.column_names)) < self.table.num_columns:
            raise KeysError(column="the list", problem="names a column twice")
        _check_size(self.table.num_rows)
        for name, column in zip(self.table.column_names, self.table.columns):
            _check_type(name, column.type)
        columns = {name: encoded(self.table.column(name)) for name in self.table.column_names}
        object.__setattr__(self, "table", pa.table(columns))

    @classmethod
    def of(cls, frame: Any) -> "Keys":
        """Keys from a list with one row for each cell.

        Args:
            frame: An Arrow, pandas or Polars frame, or a mapping of columns.

        Returns:
            The keys.

        Raises:
            KeysError: The list has no column, names a column twice, or contains values of an unsupported type.
        """
        return cls(as_arrow(frame))

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
        _check_size(repeat)
        for name, array in arrays.items():
            repeat //= len(array)
            table[name] = array.take(pa.array(np.tile(np.repeat(np.arange(len(array)), repeat), tile)))
            tile *= len(array)
        return cls(pa.table(table))

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
        return isinstance(other, Keys) and bool(self.table.equals(other.table))

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


def _check_size(rows: int) -> None:
    if rows == 0:
        raise KeysError(column="the list", problem="is empty")
    if rows > MOST_CELLS:
        raise KeysError(
            column="the list",
            problem=f"has {rows:,} cells, more than the {MOST_CELLS:,} one query may publish",
            advice="Use coarser levels, fewer columns, or Keys.select_from for a sparse domain.",
        )


def _check_type(name: str, kind: pa.DataType) -> None:
    """A key is text, a number, a truth value or NULL; whether it fits its column is checked once the schema is known."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not (text or number or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        raise KeysError(column=f"'{name}'", problem=f"has {kind} values, which cannot be keys")
