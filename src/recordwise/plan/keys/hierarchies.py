"""Hierarchies from public lists of codes: the coarser levels of a code.

A county, for example, has a state and a region (T-HIERARCHY). A list has a row for each finest code, which records hold, and a
column for each coarser level, which they do not. A coarser value is thus a public function of the finest code. A record whose
code is not listed has no value at any coarser level.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import KeysError, ParameterError, own_errors_of
from recordwise.plan.arrays import array_of, distinct, null_as, numpy_of, texts_of
from recordwise.plan.publication import Labels
from recordwise.plan.sources import as_public, file_digest, read_code_file

if TYPE_CHECKING:
    from recordwise.plan.keys.keys import Keys


PUBLIC = "public"
MOST_LEVELS = 12
TOTAL = "Total"
"""What the code of a total is called, unless it has a label."""


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Hierarchy:
    """The levels of a code, from a public list of finest codes.

    The list has a row for each finest code. Levels need not be prefixes of codes and need not nest. Make one with
    ``rw.Hierarchy.of`` and pass it to a ``Session``; its coarser levels can then be used in ``where``,
    ``group_by`` and ``levels`` like columns of the records.

    Example:
        >>> import recordwise as rw
        >>> counties = {"nation": ["US", "US", "US"], "state": ["01", "01", "02"], "county": ["01001", "01003", "02013"]}
        >>> place = rw.Hierarchy.of("place", counties, levels=["nation", "state", "county"], source="public: county list")
        >>> place
        <Hierarchy place: nation, state, county; 3 codes; public: county list>
        >>> place.keys("state")
        <Keys: 2 cells of nation x state>
    """

    name: str
    levels: tuple[str, ...]
    """The coarsest first; the last is the column that records hold."""
    codes: pa.Table
    """A row for each finest code, in order, and a column for each level."""
    source: str
    """Where the list is from; ``"public: ..."`` unless it was made with the confidential records."""
    digest: str
    """The SHA-256 digest of the file, or of the list where it is not from a file."""
    titles: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    """What readers call a value, as ``county=01001``."""
    finer: frozenset[tuple[str, str]] = frozenset()
    """Pairs of levels of which the first determines the second."""

    @classmethod
    def of(
        cls,
        name: str,
        codes: Any,
        *,
        levels: Sequence[str],
        source: str,
        titles: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        totals: Mapping[str, str] | None = None,
    ) -> "Hierarchy":
        """A hierarchy from a public list of codes.

        Args:
            name: What it is called, such as ``place``.
            codes: A CSV or Parquet file, a frame or a mapping of columns, with a row for each finest code.
            levels: The columns of the list that are levels, the coarsest first. The last is a column of the records.
            source: Where the list is from, as ``"public: SOURCE"``. Any other source counts as tuned on confidential data.
            titles: What readers call a level, such as ``{"county": "County"}``.
            labels: For a level the column of the list with what readers call each of its values.
            totals: Levels that are no column of the list and have one value for all codes, such as ``{"nation": "US"}``.

        Returns:
            The hierarchy.

        Raises:
            ParameterError: The list cannot be read, a level is missing, empty or of an unsupported type, or a code is listed twice
                with different values.
        """
        about = f"hierarchy '{name}'"
        table, digest = _read_codes(about, codes)
        _check_names(about, name, levels, source)
        table = _with_totals(about, table, totals or {}, levels)
        listed = pa.table({level: _column(about, table, level) for level in levels})
        kept = _one_row_each(about, listed, levels[-1])
        made = cls(
            name=name,
            levels=tuple(levels),
            codes=kept,
            source=source,
            digest=digest or _table_digest(kept),
            titles=_check_levels(about, "titles", titles, levels),
            labels=_total_labels(totals or {}) | _labels(about, table, _check_levels(about, "labels", labels, levels)),
        )
        return replace(made, finer=frozenset(pair for pair in permutations(levels, 2) if made._nests(*pair)))

    def __repr__(self) -> str:
        levels, count = ", ".join(self.levels), self.codes.num_rows
        return f"<Hierarchy {self.name}: {levels}; {count:,} code{'s' * (count != 1)}; {self.source}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hierarchy) and self._identity() == other._identity() and self.codes.equals(other.codes)

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[str, tuple[str, ...], str, str]:
        return self.name, self.levels, self.digest, self.source

    @property
    def finest(self) -> str:
        """The level that records hold."""
        return self.levels[-1]

    @property
    def coarser(self) -> tuple[str, ...]:
        """The levels that records do not hold."""
        return self.levels[:-1]

    @property
    def is_public(self) -> bool:
        """Whether the list is from a public source."""
        return self.source.lstrip().lower().startswith(PUBLIC)

    @property
    def crossing(self) -> tuple[tuple[str, str], ...]:
        """Pairs of levels that do not nest: neither determines the other."""
        pairs = [(one, two) for at, one in enumerate(self.levels) for two in self.levels[at + 1 :]]
        return tuple(pair for pair in pairs if pair not in self.finer and pair[::-1] not in self.finer)

    def determines(self, fine: str, coarse: str) -> bool:
        """Return whether one level determines another.

        Args:
            fine: The level that is known.
            coarse: The level that is asked for.

        Returns:
            True or false.
        """
        return fine == coarse or (fine, coarse) in self.finer

    def determined_by(self, level: str) -> list[str]:
        """The other levels that determine a level.

        Args:
            level: A level of the hierarchy.

        Returns:
            Their names, in order.
        """
        return [each for each in self.levels if each != level and self.determines(each, level)]

    def type_of(self, level: str) -> Literal["text", "integer"]:
        """The type of a level's values.

        Args:
            level: A level of the hierarchy.

        Returns:
            The type, as columns are declared.
        """
        return "text" if self.codes.column(level).type == pa.string() else "integer"

    def keys(self, level: str) -> "Keys":
        """Return every value of a level as public keys.

        With the columns of all levels that it determines.

        Args:
            level: A level of the hierarchy.

        Returns:
            The keys.

        Raises:
            KeysError: The hierarchy has no such level.
        """
        from recordwise.plan.keys.cells import Rows
        from recordwise.plan.keys.keys import Keys

        if level not in self.levels:
            raise KeysError(
                column=f"'{level}'",
                problem=f"is not a level of the hierarchy '{self.name}'",
                advice=f"Its levels are {', '.join(self.levels)}.",
            )
        kept = [each for each in self.levels if self.determines(level, each)]
        return Keys(Rows.of(distinct(self.codes.select(kept))))

    def above(self, level: str, coarse: str) -> tuple[pa.Array, pa.Array]:
        """Return the values of a level and their coarser values.

        Each value once.

        Args:
            level: A level of the hierarchy.
            coarse: A level that it determines.

        Returns:
            Two columns of the same length.
        """
        found = distinct(self.codes, by=[level])
        return _single_array(found.column(level)), _single_array(found.column(coarse))

    def in_record_type(self, kind: str) -> "Hierarchy":
        """Return the hierarchy with finest codes in the records' declared type.

        Args:
            kind: The declared type, text or integer.

        Returns:
            The hierarchy.

        Raises:
            ParameterError: The codes are of another type.
        """
        own = self.codes.column(self.finest)
        wanted = {"text": pa.string(), "integer": pa.int64()}.get(kind)
        if own.type == wanted:
            return self
        problem = f"has {'text' if own.type == pa.string() else 'whole numbers'} as '{self.finest}', declared as {kind}"
        advice = "Write codes as text, with their leading zeros: '01001'." if kind == "text" else ""
        if wanted != pa.int64() or own.type != pa.string():
            raise ParameterError(parameter=f"hierarchy '{self.name}'", problem=problem, advice=advice)
        try:
            cast = own.cast(pa.int64())
        except pa.ArrowInvalid:
            cast = None
        if cast is None or not pc.all(pc.equal(cast.cast(pa.string()), own)).as_py():
            raise ParameterError(parameter=f"hierarchy '{self.name}'", problem=problem)
        return replace(self, codes=self.codes.set_column(len(self.levels) - 1, self.finest, cast))

    def about(self) -> dict[str, Any]:
        """Its levels, source and digest, and which levels do not nest."""
        crossing = {"not_nested": [list(pair) for pair in self.crossing]} if self.crossing else {}
        about = {"name": self.name, "levels": list(self.levels), "source": self.source, "digest": self.digest}
        return {**about, **crossing, "codes": self.codes.num_rows}

    def to_json(self) -> dict[str, Any]:
        """Return ``about`` and every code's values, for release.json."""
        columns = {name: self.codes.column(name).combine_chunks().dictionary_encode() for name in self.levels}
        listed = {
            name: {"values": each.dictionary.to_pylist(), "codes": each.indices.to_pylist()}
            for name, each in columns.items()
        }
        listed[self.finest].pop("codes")
        return {**self.about(), "list": listed}

    def _nests(self, fine: str, coarse: str) -> bool:
        count = distinct(self.codes, by=[fine, coarse]).num_rows
        return bool(count == pc.count_distinct(self.codes.column(fine)).as_py())


def with_hierarchy_labels(words: Labels, hierarchies: Sequence[Hierarchy]) -> Labels:
    """Return a release's words, with hierarchies' titles and labels as defaults."""
    for each in hierarchies:
        words = words.with_labels({**each.titles, **each.labels})
    return words


def _read_codes(about: str, codes: Any) -> tuple[pa.Table, str]:
    try:
        if isinstance(codes, str | Path):
            return read_code_file(Path(codes)), file_digest(Path(codes))
        return as_public(codes), ""
    except KeysError as error:
        raise ParameterError(
            parameter=about, problem=f"is refused: {error.column} {error.problem}", advice=error.advice
        ) from None


def _table_digest(table: pa.Table) -> str:
    """The same for the same codes in the same order of columns."""
    made = hashlib.sha256()
    for name in table.column_names:
        made.update(repr([name, table.column(name).to_pylist()]).encode())
    return made.hexdigest()


def _check_names(about: str, name: str, levels: Sequence[str], source: str) -> None:
    if not name or not isinstance(name, str):
        raise ParameterError(parameter="hierarchy", problem="needs a name")
    if isinstance(levels, str) or not all(isinstance(level, str) and level for level in levels):
        raise ParameterError(parameter=about, problem="needs a list of names as levels")
    if not 2 <= len(levels) <= MOST_LEVELS or len(set(map(str.casefold, levels))) < len(levels):
        raise ParameterError(parameter=about, problem=f"needs 2 to {MOST_LEVELS} different levels, the coarsest first")
    if not isinstance(source, str) or not source.strip():
        raise ParameterError(parameter=about, problem="needs a source", advice='Say source = "public: ...".')


def _with_totals(about: str, table: pa.Table, totals: Mapping[str, str], levels: Sequence[str]) -> pa.Table:
    for level, value in _check_levels(about, "totals", totals, levels).items():
        if level in table.column_names or level == levels[-1]:
            raise ParameterError(parameter=about, problem=f"has '{level}' as a total, but the list has such a column")
        table = table.append_column(level, texts_of([value] * table.num_rows))
    return table


def _total_labels(totals: Mapping[str, str]) -> dict[str, str]:
    """Name the codes of totals that are no words, such as 00."""
    return {f"{level}={code}": TOTAL for level, code in totals.items() if not any(map(str.isalpha, code))}


def _column(about: str, table: pa.Table, level: str) -> pa.Array:
    """A level as text or whole numbers, none of them empty."""
    if level not in table.column_names:
        listed = ", ".join(table.column_names)
        raise ParameterError(parameter=about, problem=f"has no column '{level}'", advice=f"Its columns are {listed}.")
    values = _single_array(table.column(level))
    if pa.types.is_integer(values.type):
        values = values.cast(pa.int64())
    elif pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type):
        values = values.cast(pa.string())
    if values.type not in (pa.string(), pa.int64()) or not len(values):
        problem = (
            f"has {values.type} values as '{level}'; codes are text or whole numbers" if len(values) else "is empty"
        )
        raise ParameterError(parameter=about, problem=problem)
    if values.type == pa.string() and pc.any(pc.match_substring(values, "\x00"), min_count=0).as_py():
        raise ParameterError(parameter=about, problem=f"has a NUL character in '{level}'")
    # An empty text is no code either.
    texts = values.type == pa.string()
    missing = int((null_as(pc.binary_length(values), 0) == 0).sum()) if texts else values.null_count
    if missing:
        raise ParameterError(
            parameter=about,
            problem=f"has no '{level}' in {missing:,} of its rows",
            advice="Give every code a value at every level, or leave the code out.",
        )
    return values


def _single_array(column: pa.ChunkedArray) -> pa.Array:
    values = pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _one_row_each(about: str, listed: pa.Table, finest: str) -> pa.Table:
    """Check that each finest code is listed once, so records count once."""
    different = distinct(listed)
    counts = pc.value_counts(different.column(finest))
    twice = counts.field("values").filter(array_of(numpy_of(counts.field("counts")) > 1))
    if len(twice):
        raise ParameterError(
            parameter=about,
            problem=f"lists {len(twice):,} code{'s' * (len(twice) > 1)} with different values, such as '{twice[0]}'",
            advice=f"Every '{finest}' has one value at each level.",
        )
    return different.take(pc.sort_indices(different.column(finest))).combine_chunks()


def _check_levels(about: str, what: str, given: Mapping[str, str] | None, levels: Sequence[str]) -> dict[str, str]:
    unknown = [level for level in given or {} if level not in levels]
    if unknown:
        raise ParameterError(parameter=about, problem=f"has {what} of '{unknown[0]}', which is not one of its levels")
    return dict(given or {})


def _labels(about: str, table: pa.Table, columns: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a level's values: each first row's text."""
    found: dict[str, str] = {}
    for level, column in columns.items():
        if column not in table.column_names:
            raise ParameterError(parameter=about, problem=f"has no column '{column}' with the labels of '{level}'")
        pairs = zip(_single_array(table.column(level)).to_pylist(), _single_array(table.column(column)).to_pylist())
        for value, label in pairs:
            if label:
                found.setdefault(f"{level}={value}", str(label))
    return found
