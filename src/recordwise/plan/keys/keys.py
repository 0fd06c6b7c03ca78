"""Keys: the cells of a query, listed in advance or selected privately.

Public keys are published whatever the data contains. Of selected ones, a cell is published where its noisy count reaches a
threshold.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import KeysError, ParameterError, PlanError, own_errors_of
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, fraction_text, positive, rational
from recordwise.exact.text import whole_text
from recordwise.plan.arrays import array_of, as_array, distinct, null_as, numpy_of
from recordwise.plan.expressions import Group
from recordwise.plan.keys.cells import Cells, Domain, Product, Rows, check_cell_count, plain_column
from recordwise.plan.schema import Schema, policy_measure, threshold_problems
from recordwise.plan.sources import as_public
from recordwise.plan.statistics import CountPieces, CountUnits
from recordwise.plan.statistics.totals import Splitting, threshold_steps
from recordwise.policy.bands import BandTable
from recordwise.policy.columns import Measure
from recordwise.policy.constructors import By, selection
from recordwise.policy.policy import Policy

if TYPE_CHECKING:
    from recordwise.mechanisms.key_selection import SelectionLaw

# Public sizes of cells, by which noise is scaled (T-SIZE): where they are from, and how they are joined to keys. A size
# must not depend on the records: its band, and so the noise of a cell, would publish the total. It comes from somebody
# else's table (``sized_on="public: SOURCE"``) or from an earlier private release of ours, which is verified when it is
# read.


PUBLIC = "public: "
RELEASE = "release "
EVERY_STATISTIC = ""
"""The name of a size that serves every statistic."""


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class FromRelease:
    """A column of an earlier private release, as cell sizes.

    Args:
        release: The folder of the release. It is verified when it is read, and must be private.
        column: The published column, such as ``sum_emp``.
    """

    release: str
    column: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "release", str(self.release))


Given: TypeAlias = str | FromRelease | Mapping[str, str | FromRelease]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sizes:
    """The sizes of keys' cells by statistic, read when needed."""

    columns: Mapping[str, FloatArray]
    waiting: Mapping[str, FromRelease] = field(default_factory=dict)
    read: Mapping[str, FromRelease] = field(default_factory=dict)
    """Where the columns that were waiting came from."""
    sized_on: tuple[str, ...] = ()
    """Where they are from: ``public: SOURCE`` or ``release DIGEST``."""
    raised: Mapping[str, Any] = field(default_factory=dict)
    """The least band of each cell of a table that a budget needs, by the digest of the table without it."""

    def of(self, *names: str | None) -> FloatArray | None:
        """Return a statistic's sizes under its first name with any."""
        for name in (*names, EVERY_STATISTIC):
            if name is not None and name in self.columns:
                return self.columns[name]
        return None

    def named(self, *names: str | None) -> bool:
        """Return whether a statistic has separate sizes."""
        return any(name in self.columns for name in names if name is not None)

    def mentions(self, *names: str | None) -> bool:
        """Whether a statistic has sizes, read or not."""
        return any(name in self.columns or name in self.waiting for name in (*names, EVERY_STATISTIC))

    def joined(self, name: str, sizes: FloatArray, source: str) -> "Sizes":
        """With the sizes of one statistic that were waiting for a release."""
        waiting = {each: given for each, given in self.waiting.items() if each != name}
        sources = tuple(dict.fromkeys((*self.sized_on, source)))
        read = {**self.read, name: self.waiting[name]}
        return replace(self, columns={**self.columns, name: sizes}, waiting=waiting, read=read, sized_on=sources)

    def with_others(self, others: "Sizes") -> "Sizes":
        """Return the sizes with those of other statistics, which take precedence."""
        kept = {name: each for name, each in self.columns.items() if name not in others.waiting}
        waiting = {name: each for name, each in self.waiting.items() if name not in others.columns}
        return replace(
            self,
            columns={**kept, **others.columns},
            waiting={**waiting, **others.waiting},
            sized_on=tuple(dict.fromkeys((*self.sized_on, *others.sized_on))),
        )

    def digest(self) -> str:
        """The fingerprint of all sizes and of where they are from."""
        waiting = sorted([name, each.release, each.column] for name, each in self.waiting.items())
        made = hashlib.sha256(json.dumps([sorted(self.columns), list(self.sized_on), waiting]).encode())
        for name in sorted(self.columns):
            made.update(np.ascontiguousarray(self.columns[name], "<f8").tobytes())
        return made.hexdigest()


def read_sizes(table: pa.Table, size: Any, sized_on: str | None) -> tuple[pa.Table, Sizes | None]:
    """Return a frame's key columns and its sizes."""
    if size is None:
        if sized_on is not None:
            raise KeysError(column="'sized_on'", problem="says where sizes are from, but no size was given")
        return table, None
    given = {EVERY_STATISTIC: size} if isinstance(size, str | FromRelease) else size
    if not isinstance(given, Mapping) or not all(isinstance(each, str | FromRelease) for each in given.values()):
        raise KeysError(column="'size'", problem="must be a column, or a mapping from each statistic to its column")
    waiting = {name: each for name, each in given.items() if isinstance(each, FromRelease)}
    named = {name: each for name, each in given.items() if isinstance(each, str)}
    source = _source(sized_on, bool(named))
    columns = {name: _numbers(table, column) for name, column in named.items()}
    kept = table.drop_columns(sorted(set(named.values())))
    return kept, Sizes(columns=columns, waiting=waiting, sized_on=source)


def _source(sized_on: str | None, named: bool) -> tuple[str, ...]:
    if not named:
        return ()
    if not isinstance(sized_on, str) or not sized_on.startswith(PUBLIC) or not sized_on.removeprefix(PUBLIC).strip():
        raise KeysError(
            column="'sized_on'",
            problem="must say which public table the sizes are from, as 'public: SOURCE'",
            advice="Sizes must never be read off the confidential records. For an earlier release give FromRelease.",
        )
    return (sized_on,)


def _numbers(table: pa.Table, name: str) -> FloatArray:
    """Return a column of sizes, with 0 for missing or negative ones."""
    if name not in table.column_names:
        raise KeysError(column=f"'{name}'", problem="is the size of cells but no column of the list")
    return as_sizes(name, table.column(name))


def as_sizes(name: str, column: Any) -> FloatArray:
    """Sizes as numbers, 0 where they are missing, negative or no number."""
    try:
        floats = column.cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise KeysError(column=f"'{name}'", problem="is the size of cells but does not hold numbers") from None
    found = numpy_of(pc.fill_null(floats, 0.0))
    return np.where(np.isfinite(found) & (found > 0), found, 0.0)


# The selection of keys.


MOST_EMPTY_CELLS = 10_000_000
PiecesAt: TypeAlias = Mapping[str, Number | By]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The loss of one piece, what counts as a piece, and when a cell is published.

    Keys found in the data have a delta (T-SELECT). Those of a public domain have a threshold: every cell gets noise, even an empty
    one, so there is no delta (T-EMPTY).
    """

    rho: Fraction
    splitting: Splitting | None = None
    """None if whole records are counted, each as one piece."""
    delta: Fraction | None = None
    """The largest probability that a key appears because of a single piece; None for a public domain."""
    threshold: int | None = None
    """The noisy count from which a cell of a public domain is listed."""

    @classmethod
    def of(
        cls, *, rho: Number, delta: Number | None = None, threshold: int | None = None, pieces: PiecesAt | None = None
    ) -> "Selection":
        """Check the parameters of a selection."""
        if delta is None and (isinstance(threshold, bool) or not isinstance(threshold, int) or abs(threshold) > 2**53):
            raise ParameterError(parameter="threshold", problem="must be a whole number of pieces or rows")
        built = cls(
            rho=positive(rho, parameter="rho"),
            splitting=None if pieces is None else Splitting.of(pieces),
            delta=None if delta is None else rational(delta, parameter="delta"),
            threshold=threshold,
        )
        _ = built.law
        return built

    @property
    def law(self) -> "SelectionLaw":
        """The noise of the counts, and the threshold."""
        from recordwise.mechanisms.key_selection import SelectionLaw, selection_sigma

        if self.delta is not None:
            return SelectionLaw.for_delta(rho=self.rho, delta=self.delta)
        assert self.threshold is not None
        return SelectionLaw(sigma=selection_sigma(self.rho), threshold=self.threshold)

    @property
    def alias(self) -> str:
        """The name of the noisy counts used for the selection."""
        return "rows_selected_on" if self.splitting is None else "pieces_selected_on"

    def total(self) -> CountUnits | CountPieces:
        """The total that an engine counts in each cell."""
        return CountUnits() if self.splitting is None else CountPieces(self.splitting)

    def shared(self, share: Fraction) -> "Selection":
        """Return the selection with a table's share of rho and delta; a threshold is unchanged."""
        if self.delta is None:
            return replace(self, rho=self.rho * share)
        return replace(self, rho=self.rho * share, delta=self.delta * share)

    def policy(self, schema: Schema) -> Policy:
        """Return what the selection costs a record."""
        law = self.law
        if self.delta is None:
            return selection(law.sigma, self.piece_thresholds(schema), ())
        return selection(law.sigma, self.piece_thresholds(schema), law.deltas())

    def piece_thresholds(self, schema: Schema) -> dict[Measure | str, Fraction | By]:
        """The thresholds in the policy language."""
        found: dict[Measure | str, Fraction | By] = {}
        for name, at in self.splitting.thresholds if self.splitting else ():
            found[policy_measure(name, schema)] = at
        return found

    def problems(self, schema: Schema, cells: int | None) -> list[str]:
        """Find problems before any record is read.

        They are those of the thresholds of pieces, and a threshold so low that noise alone would publish more of the ``cells`` of a
        domain than a table may have.
        """
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
        expected = 0.0 if cells is None else cells * float(self.law.noise.sf(self.law.threshold))
        if expected > MOST_EMPTY_CELLS:
            problems.append(
                f"about {whole_text(expected)} empty cells would reach the threshold {self.threshold}; "
                f"at most {MOST_EMPTY_CELLS:,} may: raise it"
            )
        return problems

    def to_json(self) -> dict[str, Any]:
        """Return the public parameters."""
        found: dict[str, Any] = {"selected": "from a public domain"}
        if self.delta is not None:
            found = {"selected": "from the data", "delta": fraction_text(self.delta)}
        listed = self.splitting.thresholds if self.splitting else ()
        pieces = {name: fraction_text(at) if isinstance(at, Fraction) else str(at) for name, at in listed}
        return found | {
            "rho": fraction_text(self.rho),
            "sigma": fraction_text(self.law.sigma),
            "threshold": self.law.threshold,
            "pieces": pieces if self.splitting else None,
            "counts": self.alias,
        }


@own_errors_of
@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """The cells of a query: a public list, or a private selection.

    A list must not depend on the records: every listed cell is published, even if it is empty. A selection (``select``,
    ``select_from``) publishes the cells whose noisy count reaches a threshold.

    Example:
        >>> import recordwise as rw
        >>> rw.Keys.of({"county": ["001", "003"]})
        <Keys: 2 cells of county>
        >>> rw.Keys.product(county=["001", "003"], size=[1, 2, 3])
        <Keys: 6 cells of county x size>
    """

    domain: Cells | None = None
    """The public cells; None for any that occur."""
    selection: Selection | None = None
    """How some of the cells are selected; None where all are published."""
    sizes: Sizes | None = None
    """The public sizes of the cells, if noise may be scaled by them (T-SIZE)."""
    made_bands: dict[Any, BandTable] = field(default_factory=dict)
    """The bands of the cells of each table, made once."""

    @property
    def rows(self) -> Rows:
        """The list of public keys."""
        assert isinstance(self.domain, Rows)
        return self.domain

    @property
    def table(self) -> pa.Table:
        """The listed cells, a row each."""
        return self.rows.table

    @classmethod
    def of(cls, frame: Any, *, size: Given | None = None, sized_on: str | None = None) -> "Keys":
        """Return keys from a list of cells, with public sizes.

        One row for each cell.

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
        return cls(Rows.of(table), sizes=sizes)

    def sized(self, frame: Any, *, size: Given, sized_on: str | None = None) -> "Keys":
        """Return the same keys with sizes from another list.

        Matched by the columns of the keys; cells it does not list have none.

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
        columns = {name: self.match_values(table, each) for name, each in sizes.columns.items()}
        found = replace(sizes, columns=columns)
        return Keys(self.domain, sizes=found if self.sizes is None else self.sizes.with_others(found))

    def match_values(self, table: pa.Table, values: FloatArray) -> FloatArray:
        """Return another list's numbers at the cells of these keys.

        0 where it does not list one.

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
            raise KeysError(
                column="the list with sizes",
                problem="lists a cell twice",
                advice="Give it one row for each cell: add up rows that are finer than the keys, and leave out other years.",
            )
        if not len(listed):
            return np.zeros(len(ours))
        at = np.minimum(np.searchsorted(listed, ours), len(listed) - 1)
        return np.where(listed[at] == ours, values[known][first][at], 0.0)

    def _matching(self, table: pa.Table) -> list[str]:
        """Return the columns by which another list matches all cells."""
        shared = [name for name in self.table.column_names if name in table.column_names]
        missing = [name for name in self.table.column_names if name not in shared]
        if missing and (not shared or not self.are_distinct_by(shared)):
            problem = "is a column of the keys, but not of the list with sizes"
            raise KeysError(column=f"'{missing[0]}'", problem=problem)
        return shared

    def are_distinct_by(self, names: Iterable[str]) -> bool:
        """Return whether these columns distinguish all cells.

        As where all others are coarser levels of them.

        Args:
            names: Columns of the keys.

        Returns:
            True or false.
        """
        return bool(distinct(self.table, by=list(names)).num_rows == self.table.num_rows)

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
        check_cell_count(repeat)
        for name, array in arrays.items():
            repeat //= len(array)
            table[name] = array.take(array_of(np.tile(np.repeat(np.arange(len(array)), repeat), tile)))
            tile *= len(array)
        return cls(Rows.of(pa.table(table)))

    @staticmethod
    def crossed(*lists: "Keys") -> "Keys":
        """Return every combination of the cells of several lists.

        Such as places and industries of two hierarchies.

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
        from recordwise.plan.plan import cross_keys

        return cross_keys(lists)

    @staticmethod
    def select(*, rho: Number, delta: Number, pieces: PiecesAt | None = None) -> "Keys":
        """Keys found in the data: those whose noisy number of rows, or of split pieces, reaches a threshold (T-SELECT).

        Args:
            rho: The loss of one piece.
            delta: The largest probability that a key is listed because of one piece alone.
            pieces: The threshold of each measure at which records are split into pieces; whole records are counted unless given.

        Returns:
            The keys.
        """
        return Keys(selection=Selection.of(rho=rho, delta=delta, pieces=pieces))

    @staticmethod
    def select_from(domain: Any, *, rho: Number, threshold: int, pieces: PiecesAt | None = None) -> "Keys":
        """Keys of a public domain whose noisy count reaches a threshold; empty cells are included, so there is no delta (T-EMPTY).

        The domain is a mapping of value lists (their product), ``Keys``, or a ``Domain`` of functions.

        Args:
            domain: A mapping of value lists, ``Keys``, or a ``Domain`` of functions.
            rho: The loss of one piece.
            threshold: The noisy count from which a cell is listed.
            pieces: The threshold of each measure at which records are split into pieces; whole records are counted unless given.

        Returns:
            The keys.
        """
        return Keys(as_domain(domain), Selection.of(rho=rho, threshold=threshold, pieces=pieces))

    def __repr__(self) -> str:
        if self.domain is None:
            return "<Keys: selected from the data>"
        if self.selection is not None:
            return f"<Keys: selected from {self.domain.size:,} cells>"
        return f"<Keys: {self.table.num_rows:,} cell{'s' * (self.table.num_rows != 1)} of {' x '.join(self.table.column_names)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Keys) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((self.domain, self.selection))

    def _identity(self) -> tuple[Any, ...]:
        return self.selection, None if self.sizes is None else self.sizes.digest(), self.domain

    def column_names(self) -> tuple[str, ...]:
        """The columns of the public cells; none if cells are selected.

        Returns:
            Their names.
        """
        match self.domain:
            case Rows(table=table):
                return tuple(table.column_names)
            case Product(columns=columns):
                return tuple(name for name, _ in columns)
            case Domain(columns=names):
                return names
        return ()

    def covers(self, groups: tuple[Group, ...]) -> bool:
        """Whether every group is a column of the keys or can be derived from one; any can be selected from the data.

        Args:
            groups: The groups of a table.

        Returns:
            True or false.
        """
        return self.domain is None or self.domain.covers(groups)

    def cells(self, groups: tuple[Group, ...], schema: Schema) -> pa.Table:
        """The listed cells of one table: cast, checked to be distinct, brought to the level, sorted.

        Args:
            groups: The groups of a table.
            schema: The schema of the plan.

        Returns:
            The cells, a row each.
        """
        return self.rows.bound(groups, schema).table


def as_domain(given: Any) -> Cells:
    """Make public cells from value lists or listed keys."""
    if isinstance(given, Domain | Product | Rows):
        return given
    if isinstance(given, Keys) and given.selection is None:
        return given.rows
    if isinstance(given, Mapping):
        return Product.of(given)
    raise ParameterError(
        parameter="domain",
        problem=f"is a {type(given).__name__}",
        advice="Give a mapping of value lists, Keys, or a Domain of functions.",
    )


# Keys in the forms users give them: lists of keys, mappings, frames, or the values of one column.


GivenKeys: TypeAlias = Keys | Mapping[str, Any] | Iterable[Any]
"""Also any pandas, Polars or Arrow frame."""
ADVICE = "Give Keys, a mapping of columns, a frame, or the values of the only grouping column."


def read_keys(given: Any, columns: tuple[str, ...]) -> tuple[Keys, ...]:
    """The key lists; plain values belong to the only column in ``columns``."""
    if _names_columns(given):
        return (_whole(given),)
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise KeysError(column="keys", problem=f"is a {type(given).__name__}, not a list of cells", advice=ADVICE)
    listed = given if hasattr(given, "__arrow_array__") or hasattr(given, "__arrow_c_stream__") else list(given)
    if not isinstance(listed, list) or not any(map(_names_columns, listed)):
        return (_of_values(listed, columns),)
    if not all(map(_names_columns, listed)):
        raise KeysError(column="keys", problem="mixes lists of cells with single values", advice=ADVICE)
    return tuple(map(_whole, listed))


def _names_columns(given: Any) -> bool:
    """Return whether a value names its columns, as a frame does."""
    return isinstance(given, Keys | Mapping | pa.Table) or (
        hasattr(given, "columns") and (hasattr(given, "to_arrow") or hasattr(given, "to_numpy"))
    )


def _whole(given: Any) -> Keys:
    return given if isinstance(given, Keys) else Keys.of(given)


def _of_values(values: Any, columns: tuple[str, ...]) -> Keys:
    if len(columns) != 1:
        grouped = f"{len(columns)} columns" if columns else "no column"
        raise KeysError(
            column="keys", problem=f"is a plain list of values, but the query is grouped by {grouped}", advice=ADVICE
        )
    return Keys.of({columns[0]: values})
