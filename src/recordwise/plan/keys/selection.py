"""Keys that no list states: selected privately, or from a public domain."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import KeysError, ParameterError, PlanError
from recordwise.exact.numbers import Number, fraction_text, positive, rational
from recordwise.exact.text import whole_text
from recordwise.mechanisms.key_selection import SelectionLaw, selection_sigma
from recordwise.plan.arrays import array_of, numpy_of
from recordwise.plan.expressions import Group, Prefix
from recordwise.plan.keys.keys import Keys, cast_keys, cell_type
from recordwise.plan.schema import Schema, policy_measure, threshold_problems
from recordwise.plan.sources import as_array
from recordwise.plan.statistics import CountPieces, CountUnits
from recordwise.plan.statistics.totals import Splitting, threshold_steps
from recordwise.policy.constructors import By, selection
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Policy

# Public domains too large to list: each cell has a position, and arithmetic converts between cells and positions.


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


MOST_EMPTY_CELLS = 10_000_000
PiecesAt: TypeAlias = Mapping[str, Number | By]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What both kinds of selection share: the loss of one piece, and what counts as a piece."""

    rho: Fraction
    splitting: Splitting | None
    """None if whole records are counted, each as one piece."""

    @property
    def law(self) -> SelectionLaw:
        raise NotImplementedError

    @property
    def alias(self) -> str:
        """The name of the noisy counts used for the selection; its ending says so."""
        return "rows_selected_on" if self.splitting is None else "pieces_selected_on"

    def total(self) -> CountUnits | CountPieces:
        """The total that an engine counts in each cell."""
        return CountUnits() if self.splitting is None else CountPieces(self.splitting)

    def piece_thresholds(self, schema: Schema) -> dict[Measure | str, Fraction | By]:
        """The thresholds in the policy language."""
        found: dict[Measure | str, Fraction | By] = {}
        for name, at in self.splitting.thresholds if self.splitting else ():
            found[policy_measure(name, schema)] = at
        return found

    def piece_problems(self, schema: Schema) -> list[str]:
        """The problems of the thresholds, found before any record is read."""
        problems = threshold_problems(dict(self.splitting.thresholds), schema) if self.splitting else []
        for name, at in self.splitting.thresholds if self.splitting else ():
            if isinstance(at, By) and at.default is None:
                problems.append(
                    f"the thresholds of '{name}' by '{at.column.name}' need a default, because keys are selected on its pieces"
                )
            numbers = [number for _, number in at.values] if isinstance(at, By) else [at]
            for number in numbers + ([at.default] if isinstance(at, By) and at.default else []):
                try:
                    threshold_steps(number, name, schema)
                except PlanError as error:
                    problems += error.problems
        return problems


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectKeys(Selection):
    """Keys found in the data: a key is published if and only if its noisy number of pieces reaches a threshold (T-SELECT)."""

    delta: Fraction
    """The largest probability that a key appears because of a single piece."""

    @classmethod
    def of(cls, *, rho: Number, delta: Number, pieces: PiecesAt | None) -> "SelectKeys":
        built = cls(
            rho=positive(rho, parameter="rho"),
            delta=rational(delta, parameter="delta"),
            splitting=None if pieces is None else Splitting.of(pieces),
        )
        _ = built.law
        return built

    @property
    def law(self) -> SelectionLaw:
        return SelectionLaw.for_delta(rho=self.rho, delta=self.delta)

    def covers(self, groups: tuple[Group, ...]) -> bool:
        """Any group can be selected from the data."""
        return True

    def shared(self, share: Fraction) -> "SelectKeys":
        """The same selection with a level's share of the budget, applied to both rho and delta."""
        return replace(self, rho=self.rho * share, delta=self.delta * share)

    def policy(self, schema: Schema) -> Policy:
        law = self.law
        return selection(law.sigma, self.piece_thresholds(schema), law.deltas())

    def problems(self, groups: tuple[Group, ...], schema: Schema) -> list[str]:
        return self.piece_problems(schema)

    def to_json(self) -> dict[str, Any]:
        return {"selected": "from the data", "delta": fraction_text(self.delta), **described(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectFrom(Selection):
    """Keys selected from a public domain: every cell gets noise, even an empty one, so there is no delta (T-EMPTY)."""

    threshold: int
    domain: AnyDomain

    @classmethod
    def of(cls, domain: Any, *, rho: Number, threshold: int, pieces: PiecesAt | None) -> "SelectFrom":
        if isinstance(threshold, bool) or not isinstance(threshold, int) or abs(threshold) > 2**53:
            raise ParameterError(parameter="threshold", problem="must be a whole number of pieces or rows")
        splitting = None if pieces is None else Splitting.of(pieces)
        return cls(
            rho=positive(rho, parameter="rho"), threshold=threshold, splitting=splitting, domain=as_domain(domain)
        )

    @property
    def law(self) -> SelectionLaw:
        return SelectionLaw(sigma=selection_sigma(self.rho), threshold=self.threshold)

    def covers(self, groups: tuple[Group, ...]) -> bool:
        return self.domain.covers(groups)

    def shared(self, share: Fraction) -> "SelectFrom":
        """The same selection with a level's share of the budget; the threshold is unchanged."""
        return replace(self, rho=self.rho * share)

    def policy(self, schema: Schema) -> Policy:
        return selection(self.law.sigma, self.piece_thresholds(schema), ())

    def problems(self, groups: tuple[Group, ...], schema: Schema) -> list[str]:
        """Also refuses a threshold so low that noise alone would publish more cells than a table may have."""
        problems = self.piece_problems(schema)
        expected = self.domain.bound(groups, schema).size * float(self.law.noise.sf(self.threshold))
        if expected > MOST_EMPTY_CELLS:
            problems.append(
                f"about {whole_text(expected)} empty cells would reach the threshold {self.threshold}; "
                f"at most {MOST_EMPTY_CELLS:,} may: raise it"
            )
        return problems

    def to_json(self) -> dict[str, Any]:
        return {"selected": "from a public domain", **described(self)}


KeySelection: TypeAlias = SelectKeys | SelectFrom


def described(keys: KeySelection) -> dict[str, Any]:
    """The public parameters of a selection."""
    law = keys.law
    pieces = None
    if keys.splitting is not None:
        pieces = {
            name: fraction_text(at) if isinstance(at, Fraction) else str(at) for name, at in keys.splitting.thresholds
        }
    return {
        "rho": fraction_text(keys.rho),
        "sigma": fraction_text(law.sigma),
        "threshold": law.threshold,
        "pieces": pieces,
        "counts": keys.alias,
    }


# Keys in the forms users give them: lists of keys, mappings, frames, or the values of one column.


KeyList: TypeAlias = Keys | SelectKeys | SelectFrom
GivenKeys: TypeAlias = KeyList | Mapping[str, Any] | Iterable[Any]
"""Also any pandas, Polars or Arrow frame."""
ADVICE = "Give Keys, a mapping of columns, a frame, or the values of the only grouping column."


def read_keys(given: Any, columns: tuple[str, ...]) -> tuple[KeyList, ...]:
    """The key lists; plain values belong to the only column in ``columns``."""
    if _is_whole(given):
        return (_whole(given),)
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise KeysError(column="keys", problem=f"is a {type(given).__name__}, not a list of cells", advice=ADVICE)
    listed = given if hasattr(given, "__arrow_array__") or hasattr(given, "__arrow_c_stream__") else list(given)
    if not isinstance(listed, list) or not any(map(_is_whole, listed)):
        return (_of_values(listed, columns),)
    if not all(map(_is_whole, listed)):
        raise KeysError(column="keys", problem="mixes lists of cells with single values", advice=ADVICE)
    return tuple(map(_whole, listed))


def _is_whole(given: Any) -> bool:
    """Whether a value names its own columns, as a frame of any library does and an Arrow array does not."""
    return isinstance(given, KeyList | Mapping | pa.Table) or (
        hasattr(given, "columns") and (hasattr(given, "to_arrow") or hasattr(given, "to_numpy"))
    )


def _whole(given: Any) -> KeyList:
    return given if isinstance(given, KeyList) else Keys.of(given)


def _of_values(values: Any, columns: tuple[str, ...]) -> Keys:
    if len(columns) != 1:
        grouped = f"{len(columns)} columns" if columns else "no column"
        raise KeysError(
            column="keys", problem=f"is a plain list of values, but the query is grouped by {grouped}", advice=ADVICE
        )
    return Keys.of({columns[0]: values})
