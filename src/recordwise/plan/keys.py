"""Public keys: the cells that will be published whatever the data holds.

They are cast to the declared type of their column first and must be a partition afterwards (T-KEYS): an engine that joins '01'
and '1' both to the integer 1 would count a record twice and double its loss.

Casting public keys to a column's declared type: only casts that can be undone.
Sorting and telling rows apart by whole numbers: a column by the rank of its value, all columns as digits of one number.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import KeysError
from recordwise.exact.numbers import Number
from recordwise.plan.fields import Case, Expression, Field, Group, Prefix
from recordwise.plan.schema import Schema

if TYPE_CHECKING:
    from recordwise.plan.key_selection import PiecesAt, SelectFrom, SelectKeys


def cast_keys(name: str, values: pa.Array, kind: str, nullable: bool) -> pa.Array:
    """The values in the declared type; NULL only where it is a category; every cast must round-trip (T-KEYS)."""
    plain = _plain(values)
    if plain.null_count and not nullable:
        raise KeysError(
            column=f"'{name}'",
            problem="holds NULL",
            advice="Declare null='category' or remove them.",
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
    return {"text": pa.string(), "integer": pa.int64(), "boolean": pa.bool_()}[kind]


def _plain(values: pa.Array) -> pa.Array:
    narrow = pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type)
    return values.cast(pa.string()) if narrow else values


def _cast(name: str, values: pa.Array, kind: str) -> pa.Array:
    given = values.type
    allowed = {
        "text": pa.types.is_string(given) or pa.types.is_integer(given),
        "integer": pa.types.is_integer(given) or pa.types.is_floating(given) or pa.types.is_string(given),
        "boolean": pa.types.is_boolean(given),
    }[kind]
    if not allowed:
        raise KeysError(column=f"'{name}'", problem=f"holds {given} keys for a column of type {kind}")
    try:
        return values.cast(arrow_type(kind), safe=True)
    except pa.ArrowInvalid:
        raise _no_round_trip(name, kind) from None


def _cast_back(cast: pa.Array, given: pa.DataType) -> pa.Array | None:
    try:
        return cast.cast(given, safe=True)
    except pa.ArrowInvalid:
        return None


def _no_round_trip(name: str, kind: str) -> KeysError:
    return KeysError(
        column=f"'{name}'",
        problem=f"holds keys that do not survive a cast to {kind} and back",
        advice="Write the keys exactly as the column's declared type holds them.",
    )


IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """A column as the ranks of its rows among its different values, which are sorted, NULL last."""

    values: pa.Array
    ranks: IntArray

    def at(self, rows: IntArray) -> pa.Array:
        return self.values.take(pa.array(self.ranks[rows]))


def encoded(column: pa.ChunkedArray) -> pa.Array:
    """A column as a dictionary of its different values, NULL among them; a dictionary given by somebody else is not trusted."""
    plain = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(plain.type):
        plain = plain.dictionary_decode()
    return plain if pa.types.is_null(plain.type) else plain.dictionary_encode(null_encoding="encode")


def ranked(values: pa.Array, places: IntArray) -> Ranked:
    """The column whose rows hold ``values[places]``; values may repeat."""
    different = values.dictionary_encode(null_encoding="encode")
    order = pc.sort_indices(different.dictionary).to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Ranked(different.dictionary.take(pa.array(order)), rank[different.indices.to_numpy()][places])


def sorted_distinct(columns: Sequence[Ranked]) -> IntArray:
    """The rows to take so that every different row stands once, in ascending order."""
    rows = len(columns[0].ranks)
    code, size = np.zeros(rows, dtype=np.int64), 1
    for column in columns:
        count = len(column.values)
        if size * count >= 2**63:
            # The different rows so far are at most as many as rows, so the next product fits.
            code, size = np.unique(code, return_inverse=True)[1].astype(np.int64), rows
        code, size = code * count + column.ranks, size * count
    return np.unique(code, return_index=True)[1]


MOST_CELLS = 20_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """A public list of cells. It must not depend on the records: every listed cell is published, empty or not.

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

        Raises:
            KeysError: The list has no column, names one twice, or holds values of an unsupported type.
        """
        return cls(as_arrow(frame))

    @classmethod
    def product(cls, **columns: Iterable[Any]) -> "Keys":
        """Every combination of the values given for each column."""
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
        """Keys found in the data: those whose noisy number of rows, or of split pieces, reaches a threshold (T-SELECT)."""
        from recordwise.plan.key_selection import SelectKeys

        return SelectKeys.of(rho=rho, delta=delta, pieces=pieces)

    @staticmethod
    def select_from(domain: Any, *, rho: Number, threshold: int, pieces: "PiecesAt | None" = None) -> "SelectFrom":
        """Keys of a public domain whose noisy count reaches a threshold; empty cells take part, so there is no delta (T-EMPTY).

        The domain is a mapping of value lists (their product), ``Keys``, or a ``Domain`` of functions.
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
        """Whether every group is a column of the keys or can be derived from one."""
        return all(self._origin(group) is not None for group in groups)

    def _origin(self, group: Group) -> str | None:
        if group.name in self.table.column_names:
            return group.name
        if isinstance(group.expression, Prefix) and group.expression.column in self.table.column_names:
            return group.expression.column
        return None

    def check(self, groups: tuple[Group, ...], schema: Schema) -> None:
        """Refuse keys that do not fit the declared types; done once for each different value, so that a plan can ask early."""
        for group in groups:
            origin = self._origin(group)
            if origin is None:
                raise KeysError(column=f"'{group.name}'", problem="is grouped by but has no column in the keys")
            _typed(group, origin, self.table.column(origin).chunk(0), schema)

    def cells(self, groups: tuple[Group, ...], schema: Schema) -> pa.Table:
        """The cells of one table: cast, checked to be distinct, brought to the level, sorted."""
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
        """Whether a level leaves columns out or shortens codes: then equal rows are wanted, not a mistake."""
        shortened = any(
            isinstance(group.expression, Prefix) and group.expression.column == origin
            for group, origin in origins.items()
        )
        return shortened or set(origins.values()) != set(self.table.column_names)


def cell_type(expression: Expression, schema: Schema) -> tuple[str, bool]:
    """The declared type of a group's values and whether NULL is one of them."""
    if isinstance(expression, Case):
        return ("text" if isinstance(expression.default, str) else "integer"), False
    name = expression.name if isinstance(expression, Field) else expression.column
    column = schema.column(name)
    if column is None:
        raise KeysError(column=f"'{name}'", problem="is not a conditional column of the schema")
    return column.type, column.null == "category"


def _at_level(group: Group, origin: str, given: pa.Array, schema: Schema) -> Ranked:
    """A column of the keys cast to its declared type and cut to the level."""
    places = given.indices.to_numpy() if pa.types.is_dictionary(given.type) else np.arange(len(given))
    return ranked(_typed(group, origin, given, schema), places)


def _typed(group: Group, origin: str, given: pa.Array, schema: Schema) -> pa.Array:
    """The different values of a column of the keys, cast to its declared type and cut to the level."""
    kind, nullable = cell_type(group.expression, schema)
    values = cast_keys(origin, given.dictionary if pa.types.is_dictionary(given.type) else given, kind, nullable)
    if isinstance(group.expression, Prefix):
        shortened = pc.utf8_slice_codeunits(values, 0, group.expression.length)
        if origin == group.name != group.expression.column and not shortened.equals(values):
            raise KeysError(
                column=f"'{origin}'", problem=f"holds keys longer than {group.expression.length} characters"
            )
        values = shortened
    return values


def _doubled(names: list[str], doubled: int) -> KeysError:
    return KeysError(
        column=" x ".join(f"'{name}'" for name in names),
        problem=f"lists {doubled:,} cell{'s' if doubled > 1 else ''} twice after casting to the declared type",
        advice="A record in such a cell would be counted twice: remove the repeats.",
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
    """A key is text, a number, a truth value or NULL; what does not fit its column is told when the schema is known."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not (text or number or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        raise KeysError(column=f"'{name}'", problem=f"holds {kind} values, which are no keys")


def as_array(name: str, values: Iterable[Any]) -> pa.Array:
    """Key values as one Arrow column; a mixture of types is refused here, and a text, which is a list of letters to Python."""
    if isinstance(values, str | bytes):
        raise KeysError(column=f"'{name}'", problem=f"is a {type(values).__name__}, not a list of keys")
    try:
        array = pa.array(values if hasattr(values, "__arrow_array__") else list(values))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError):
        raise KeysError(column=f"'{name}'", problem="mixes types or holds values that are no keys") from None
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def as_arrow(frame: Any) -> pa.Table:
    """An Arrow table out of Arrow, Polars, pandas or a mapping, without importing any of them."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, Mapping):
        return _in_rows({name: as_array(name, values) for name, values in frame.items()})
    if hasattr(frame, "to_arrow") and hasattr(frame, "columns"):
        return frame.to_arrow()
    if hasattr(frame, "to_numpy") and hasattr(frame, "columns"):
        return _from_pandas(frame)
    raise KeysError(
        column="the list", problem=f"is a {type(frame).__name__}, not a frame", advice="Give a frame or a mapping."
    )


def _in_rows(columns: Mapping[str, pa.Array]) -> pa.Table:
    if len({len(column) for column in columns.values()}) > 1:
        raise KeysError(
            column="the list",
            problem="has columns of different lengths",
            advice="One row is one cell. For every combination of the values use Keys.product.",
        )
    return pa.table(dict(columns))


def _from_pandas(frame: Any) -> pa.Table:
    """What Arrow says where it cannot read a column quotes the value, so it is not passed on."""
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise KeysError(
            column="a column of the frame", problem="mixes types or holds values that are no keys"
        ) from None
