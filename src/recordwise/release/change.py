"""The change between two releases, cell by cell, with its accuracy.

This is post-processing: nothing is read or spent. Which cells come and go follows from the published lists of cells, never from
whether a cell holds records. Codes that were split or merged are added up to what both releases have in common, by a public list
of pairs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.arrays import numpy_of, row_numbers
from recordwise.plan.keys.codes import code_pairs, one_meaning, typed_codes
from recordwise.plan.publication import Labels, StatusRules
from recordwise.plan.statistics.base import COUNT, STEEPEST, SUM, Side, outward, ratio_interval
from recordwise.plan.statistics.totals import IntArray
from recordwise.policy.series import Renaming, Step, later_code
from recordwise.release.content import Content, DescribedTable
from recordwise.release.dictionary import STATUS, Entry, relative_error, status_names, type_name
from recordwise.release.formats.registry import files_to_write, known_formats, require_packages, require_storable
from recordwise.release.published import PublishedStatistic
from recordwise.release.staging import new_folder
from recordwise.release.tables import NAME, PRIVATE, ReleasedTable, with_names

if TYPE_CHECKING:
    from recordwise.release.release import Release


# A public list of codes that were split or merged between two releases, and the sums that both have in common.


JOINED = "+"
PARTS, LEAST = "_parts", "_least_sd"
"""How many published cells were added up, and the smallest of their sds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crosswalk:
    """The common code of earlier and later codes, by column."""

    columns: Mapping[str, tuple[Mapping[Any, str], Mapping[Any, str]]]

    def of(self, keys: Sequence[str]) -> list[str]:
        """The key columns whose codes changed."""
        return [name for name in keys if name in self.columns]


def read_crosswalk(
    given: Mapping[str, Any], groups: Mapping[str, tuple[Mapping[Any, str], Mapping[Any, str]]] | None = None
) -> Crosswalk:
    """Return a crosswalk from pairs of earlier and later codes, or from the groups of a list.

    ``{"naics": [("454110", "455110"), ...]}``; groups have the codes of both releases.
    """
    both = dict(groups or {})
    if shared := [name for name in both if name in given]:
        raise ParameterError(parameter="groups", problem=f"and the crosswalk both name '{shared[0]}'")
    return Crosswalk(columns={name: _common(name, pairs) for name, pairs in given.items()} | both)


def _common(name: str, given: Any) -> tuple[dict[Any, str], dict[Any, str]]:
    """Return a common code for codes linked by pairs."""
    pairs = code_pairs(given)
    if not pairs:
        raise ParameterError(parameter=f"crosswalk of '{name}'", problem="must be pairs of an earlier and a later code")
    before, now = (list(dict.fromkeys(pair[side] for pair in pairs)) for side in (0, 1))
    links = [(before.index(old), len(before) + now.index(new)) for old, new in pairs]
    size = len(before) + len(now)
    graph = sparse.coo_array((np.ones(len(links)), tuple(zip(*links))), shape=(size, size))
    _, labels = connected_components(graph, directed=False)
    names: dict[int, list[str]] = {}
    for code, label in zip(now, labels[len(before) :]):
        names.setdefault(int(label), []).append(str(code))
    texts = {label: JOINED.join(sorted(codes)) for label, codes in names.items()}
    return (
        {code: texts[int(label)] for code, label in zip(before, labels)},
        {code: texts[int(label)] for code, label in zip(now, labels[len(before) :])},
    )


def _common_codes(data: pa.Table, keys: Sequence[str], pairs: Crosswalk, side: int) -> pa.Table:
    """Return the cells of a table by common code."""
    columns = {}
    for name in keys:
        column = data.column(name)
        if name in pairs.columns:
            common = pairs.columns[name][side]
            distinct = column.combine_chunks().dictionary_encode()
            texts = pa.array(
                [None if each is None else common.get(each, str(each)) for each in distinct.dictionary.to_pylist()],
                pa.string(),
            )
            column = texts.take(distinct.indices)
        columns[name] = column
    return pa.table(columns)


def renamed_cells(cells: pa.Table, renamed: Renaming) -> pa.Table:
    """Return earlier cells under the codes that they have now, without those that have no single counterpart (T-SERIES)."""
    for name in (each for each in cells.column_names if each in renamed):
        distinct = cells.column(name).combine_chunks().dictionary_encode()
        codes = [None if code is None else later_code(renamed[name], code) for code in distinct.dictionary.to_pylist()]
        later = pa.array(codes, cells.schema.field(name).type).take(distinct.indices)
        # No code is a cell of its own, which keeps its name.
        kept = pc.or_(pc.is_valid(later), pc.is_null(distinct.indices))
        cells = cells.set_column(cells.column_names.index(name), name, later).filter(kept)
    return cells


def numbered_cells(cells: pa.Table, renamed: Renaming) -> tuple[pa.Table, IntArray]:
    """Return ``renamed_cells`` and the row that each had."""
    numbers = "row" + "".join(cells.column_names)
    kept = renamed_cells(cells.append_column(numbers, pa.array(np.arange(cells.num_rows))), renamed)
    return kept.select(cells.column_names), np.asarray(numpy_of(kept.column(numbers)), np.int64)


def rows_in(cells: pa.Table, listed: pa.Table, keys: Sequence[str], rows: IntArray) -> IntArray:
    """Return the row of each cell in a list, of whose cells the rows are given; -1 where it is not listed."""
    numbers, known = row_numbers(cells, listed, by=keys)
    found = np.full(len(numbers) + len(known), -1, np.int64)
    found[known] = rows
    return np.asarray(found[numbers])


def merge_codes(data: pa.Table, keys: Sequence[str], names: Sequence[str], pairs: Crosswalk, side: int) -> pa.Table:
    """Return the table with cells added up by common code.

    Values and variances add. Intervals stay where a cell is alone in its code; otherwise only Gaussian noise has
    one, from its sd.
    """
    codes = _common_codes(data, keys, pairs, side)
    (numbers,) = row_numbers(codes, by=keys)
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    # In the order in which cells come first.
    place, cells = np.argsort(np.argsort(first))[inverse], codes.take(pa.array(np.sort(first)))
    found = {name: cells.column(name) for name in keys}
    alone = np.bincount(place, minlength=cells.num_rows) == 1
    for name in names:
        found |= _add_cells(data, name, place, cells.num_rows, alone)
    return pa.table(found)


def _add_cells(data: pa.Table, name: str, index: Any, size: int, alone: Any) -> dict[str, pa.Array]:
    def column(end: str) -> Any:
        return numpy_of(data.column(f"{name}{end}")).astype(np.float64)

    def total(values: Any) -> Any:
        return np.bincount(index, weights=values, minlength=size)

    found = {
        name: total(column("")),
        f"{name}_sd": np.sqrt(total(column("_sd") ** 2)),
        f"{name}{PARTS}": total(np.ones(len(index))),
    }
    found[f"{name}{LEAST}"] = np.full(size, np.inf)
    np.minimum.at(found[f"{name}{LEAST}"], index, column("_sd"))
    for end in ("_low", "_high"):
        found[f"{name}{end}"] = np.where(alone, total(column(end)), np.nan)
    return {each: pa.array(values, mask=np.isnan(values)) for each, values in found.items()}


# The reach of a sum of several discrete Gaussian noises, from the law of that sum itself (T-COARSE).


COARSE = 64.0
"""Lattice steps of the sd of a sum below which its law is computed point by point; beyond, half a step is next to nothing."""
FINEST = 3.0
"""From this many steps on, sd and sigma of a discrete Gaussian are the same to 14 digits."""
LEAST_COARSE = 0.2
"""In steps: a smaller sigma is taken to be this. Such noise is 0 but for a chance below 1e-5."""
SLACK = 1e-6
"""Relative, above the error of an sd that was read from a file."""
FAR = 10.0
"""Standard deviations after which noise is left out: less than 1e-22 of its mass."""
ROUNDING = 1e-12
"""Above the error of sums of probabilities in float64."""
Noises: TypeAlias = tuple[tuple[float, int], ...]
"""Sigmas in lattice steps, and how many numbers have each."""


def sigma_of(sd: FloatArray) -> FloatArray:
    """Return discrete Gaussian sigmas in steps from sds, slightly above."""
    different, places = np.unique(np.nan_to_num(sd, nan=FINEST), return_inverse=True)
    low, high = np.full(different.shape, LEAST_COARSE), np.maximum(different, LEAST_COARSE) + 1.0
    steps = np.arange(1.0, 64.0)[:, None]
    for _ in range(60):
        middle = (low + high) / 2
        weights = np.exp(-(steps**2) / (2 * np.minimum(middle, FINEST + 1) ** 2))
        spread = 2 * (steps**2 * weights).sum(axis=0) / (1 + 2 * weights.sum(axis=0))
        above = spread >= different**2
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    found = np.where(different < FINEST, high, different) * (1 + SLACK)
    return np.where(np.isnan(sd), np.nan, found[places].reshape(sd.shape))


def gaussian_reach(sd: FloatArray, parts: FloatArray, least_sd: FloatArray, level: float) -> FloatArray:
    """Return a bound on the sum of ``parts`` noises, in steps (T-RATIO).

    Alone or mixed with others: the root of the sum of the squares of z sigma + 1/2 is at most this (Minkowski), a
    sigma being no further above its sd than that of the smallest sd is.
    """
    above = np.maximum(sigma_of(least_sd) - least_sd, 0.0)
    return np.asarray(
        NormalDist().inv_cdf((1 + level) / 2) * (sd * (1 + SLACK) + np.sqrt(parts) * above) + np.sqrt(parts) / 2
    )


def exact_reach(sides: Sequence[tuple[FloatArray, FloatArray, FloatArray]], level: float) -> FloatArray:
    """Return the exact reach of all noises' sum, in steps.

    An integer that the sum stays within with this confidence, cell by cell. Each side has the sd of the sum of
    its noises, how many they are and the smallest sd among them. NaN where noise is fine, or where the noises of
    a side have different sds.
    """
    known = np.sqrt(sum(sd**2 for sd, _, _ in sides)) < COARSE
    for sd, parts, least_sd in sides:
        known &= parts * least_sd**2 >= sd**2 * (1 - SLACK)
    reach = np.full(known.shape, np.nan)
    if known.any():
        columns = [column[known] for sd, parts, least_sd in sides for column in (sigma_of(least_sd), parts)]
        different, places = np.unique(np.stack(columns), axis=1, return_inverse=True)
        noises = [
            tuple((float(row[at]), int(row[at + 1])) for at in range(0, len(row), 2)) for row in different.T.tolist()
        ]
        reach[known] = np.array([quantile(each, level) for each in noises])[places.ravel()]
    return reach


@lru_cache(maxsize=4096)
def quantile(noises: Noises, level: float) -> float:
    """The smallest k with P(|sum| <= k) >= level."""
    reach = 1 + int(sum(times * np.ceil(FAR * sigma) for sigma, times in noises))
    # Point k is at place k mod length, so that sums of both signs have their place.
    length = 1 << (2 * reach + 1).bit_length()
    point = np.fft.fftfreq(length, 1 / length)
    product = np.ones(length // 2 + 1, np.complex128)
    for sigma, times in noises:
        weights = np.exp(-(point**2) / (2 * sigma**2))
        product *= np.fft.rfft(weights / weights.sum()) ** times
    masses = np.fft.irfft(product, length)
    inside = masses[0] + 2 * np.cumsum(np.concatenate([[0.0], masses[1:reach]]))
    return float(np.searchsorted(inside, level + ROUNDING))


# The change.


BOTH, ONLY_NOW, ONLY_BEFORE = "both", "only now", "only before"
PRESENCE = "listed"
"""The column that says in which of the two releases a cell is listed."""
WHOLE = 2.0**52
"""Sums and differences of whole numbers below it are exact floats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrying:
    """The law of a change where noise is carried over: errors are carry e_before + fresh noise."""

    carry: FloatArray | float
    reach: FloatArray | float
    """A bound on the error of the change, at the confidence of the releases."""

    def only(self, cells: Any) -> "Carrying":
        """Return the law where some cells are drawn afresh."""
        return Carrying(carry=np.where(cells, self.carry, 0.0), reach=np.where(cells, self.reach, np.nan))


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One published variable of both releases."""

    name: str
    gaussian: bool
    """Whether its noise is Gaussian on the data's own scale in both."""
    additive: bool
    """Whether it is a count or a sum, so that cells may be added up."""
    nonnegative: bool
    step: float
    """The coarser of the two lattices."""
    one_lattice: bool
    """Whether both are the same, and each number has one draw on it."""
    carried: "Carrying | None" = None
    """What both have in common, where the later one carries the noise of the earlier (T-SERIES)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """A variable in one release by cell; NaN if not listed."""

    value: FloatArray
    sd: FloatArray
    low: FloatArray
    high: FloatArray
    parts: FloatArray
    """How many published cells it is the sum of."""
    least_sd: FloatArray
    """The smallest sd among them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Change:
    """The changes of tables and variables common to two releases."""

    tables: dict[str, pa.Table]
    confidence: dict[str, float]
    """The confidence of the intervals, by table and variable: the releases' own c where noise is Gaussian, 2 c - 1 elsewhere."""
    before: str
    now: str
    """The digests of the two releases."""
    words: Labels = field(default_factory=Labels)
    """Those of the later release."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """The title of each table, and of each variable as ``TABLE.VARIABLE``."""
    dataset: str = "change"
    noise: str = "Both have noise of their own."
    """What their noise has in common."""

    def __getitem__(self, name: str) -> pa.Table:
        """A table by its name."""
        return self.tables[name]

    def to_json(self) -> dict[str, Any]:
        """What is known about the change, without the tables themselves."""
        cells = {name: table.num_rows for name, table in self.tables.items()}
        return {"before": self.before, "now": self.now, "confidence": self.confidence, "cells": cells}

    def content(self) -> Content:
        """Return the tables with titles, labels and a dictionary, for files."""
        tables = tuple(self._described(name, data) for name, data in self.tables.items())
        notes = (f"Changes from release {self.before} to release {self.now}. {self.noise}",)
        return Content(
            dataset=f"{self.dataset}_change", tables=tables, words=self.words, privacy_label=PRIVATE, notes=notes
        )

    def save(self, folder: str | Path, *, formats: Sequence[str] = ("csv",)) -> Path:
        """Write the changes into a new folder, in any release format.

        CSV files and workbooks have the digits that mean something, and a name next to each code that has one.

        Args:
            folder: The name of a folder that does not exist yet.
            formats: The formats by name.

        Returns:
            The folder.

        Raises:
            ParameterError: A format is unknown or cannot hold the changes.
        """
        known, content = known_formats(), self.content()
        unknown = [name for name in formats if name not in known]
        if unknown or not formats:
            raise ParameterError(
                parameter="formats", problem=f"name no format: {unknown}", advice=f"Choose from {', '.join(known)}."
            )
        chosen = [known[name] for name in dict.fromkeys(formats)]
        require_packages(chosen)
        require_storable(content, chosen)
        with new_folder(folder) as staging:
            for each, name, part in files_to_write(content, chosen):
                each.write(part, staging / name)
        return Path(folder)

    def _described(self, name: str, data: pa.Table) -> DescribedTable:
        place = data.column_names.index(PRESENCE)
        variables = tuple(each for each in data.column_names if each.endswith(tuple(CHANGES)))
        bare = ReleasedTable(name=name, keys=tuple(data.column_names[:place]), variables=variables, data=data)
        table = with_names(bare, self.words) if self.words.names else bare
        columns = tuple(self._entry(name, field) for field in table.data.schema)
        return DescribedTable(table=table, title=self.titles.get(name, name), columns=columns)

    def _entry(self, table: str, field: pa.Field) -> Entry:
        """What a column of changes means."""
        unit, title, meaning = "", self.words.label(field.name), "identifies the cell"
        if field.name == PRESENCE:
            meaning = "whether the cell is listed in both releases, only now or only before"
        elif field.name.endswith(NAME):
            title, meaning = f"{self.words.label(field.name.removesuffix(NAME))}, name", "what the code is called"
        for end, said in CHANGES.items():
            own, found, error = field.name.partition(end)
            if found and (not error or error in ("_sd", "_low", "_high", "_status")):
                unit = "percent" if end == "_percent" else self.words.unit(own)
                title = f"{self.titles.get(f'{table}.{own}', own)}, {said}{error.replace('_', ', ')}"
                meaning = f"{said} of {own}" + (f": {error[1:]}" if error else "")
        about = {"computed": "from both releases alone", "missing": "empty: the cell is listed in one release only"}
        return Entry(name=field.name, title=title, unit=unit, type=type_name(field.type), meaning=meaning, **about)


CHANGES = {"_before": "before", "_now": "now", "_change": "change", "_percent": "change in percent"}
"""The ends of the names of variables, and what they are."""


def change(
    now: "Release",
    before: "Release",
    crosswalk: Mapping[str, Any] | None = None,
    groups: Mapping[str, Mapping[Any, str]] | None = None,
) -> Change:
    """The change from ``before`` to ``now``; see ``Release.change``."""
    _check(now, before)
    pairs = read_crosswalk(_checked_crosswalk(now, before, crosswalk or {}), _checked_groups(now, before, groups or {}))
    step = now.published.step if _follows(now, before) else None
    level = min(each.published.confidence for each in (now, before))
    known, rules = {table.name: table for table in before.tables}, now.content().rules
    tables: dict[str, pa.Table] = {}
    confidence: dict[str, float] = {}
    for table in now.tables:
        earlier = known.get(table.name)
        if earlier is None or earlier.keys != table.keys:
            continue
        found = _variables(now, before, table, earlier, level)
        columns, levels = _change_table(table, earlier, found, pairs, level, rules, step)
        tables[table.name] = columns
        confidence |= {f"{table.name}.{name}": each for name, each in levels.items()}
    if not tables:
        raise ParameterError(
            parameter="previous",
            problem="has no table with the same name and the same key columns",
            advice="Compare like plans.",
        )
    content = now.content()
    titles = {each.name: each.title for each in content.tables} | {
        f"{each.name}.{entry.name}": entry.title for each in content.tables for entry in each.columns
    }
    return Change(
        tables=tables,
        confidence=confidence,
        before=before.digest,
        now=now.digest,
        words=now.words,
        titles=titles,
        dataset=now.published.dataset,
        **({"noise": "The later one carries noise of the earlier one."} if _follows(now, before) else {}),
    )


def _checked_crosswalk(now: "Release", before: "Release", given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a crosswalk in the types of its columns; refuse one without effect."""
    found: dict[str, Any] = {}
    for name, codes in given.items():
        pairs = code_pairs(codes)
        sides = [typed_side(release, name, [pair[at] for pair in pairs]) for at, release in enumerate((before, now))]
        if pairs and not any(occurs for _, occurs in sides):
            raise ParameterError(
                parameter=f"crosswalk of '{name}'", problem="has no code that occurs in a column of this name"
            )
        found[name] = list(zip(*(side for side, _ in sides)))
        old, new = (side for side, _ in sides)
        one_meaning(f"crosswalk of '{name}'", [pair[0] for pair in pairs], old, new)
        one_meaning(f"crosswalk of '{name}'", [pair[1] for pair in pairs], new, old)
    return found


def _checked_groups(now: "Release", before: "Release", given: Mapping[str, Mapping[Any, str]]) -> dict[str, Any]:
    """Return groups of codes in the types of their columns; refuse those without effect."""
    found: dict[str, Any] = {}
    for name, groups in given.items():
        listed = dict(groups)
        if None in listed.values():
            raise ParameterError(parameter=f"groups of '{name}'", problem="must name the group of each code")
        sides = [typed_side(release, name, list(listed)) for release in (before, now)]
        if not any(occurs for _, occurs in sides):
            raise ParameterError(
                parameter=f"groups of '{name}'", problem="have no code that occurs in a column of this name"
            )
        for side, _ in sides:
            one_meaning(f"groups of '{name}'", list(listed), side, list(listed.values()))
        found[name] = tuple(dict(zip(side, listed.values())) for side, _ in sides)
    return found


def typed_side(release: "Release", name: str, codes: Sequence[Any]) -> tuple[list[Any], bool]:
    """Return codes in the type of a release's column, and whether one occurs."""
    columns = [table.data.column(name) for table in release.tables if name in table.keys]
    typed = typed_codes(name, codes, columns[0].type) if columns else list(codes)
    listed = {code for column in columns for code in pc.unique(column).to_pylist()}
    return typed, any(code in listed for code in typed)


def _check(now: "Release", before: "Release") -> None:
    if not (now.private and before.private):
        raise ParameterError(parameter="previous", problem="and this release must both be private, and one is not")
    if now.digest == before.digest:
        raise ParameterError(parameter="previous", problem="is this release itself, whose noise is not independent")
    if now.published.lineage(now.digest) & before.published.lineage(before.digest) and not _follows(now, before):
        raise ParameterError(
            parameter="previous",
            problem="and this release refine or follow one another, or the same release, so that their noise is not independent",
            advice="Compare the latest stages of two periods; of carried noise, each release with the one that it follows.",
        )


def _follows(now: "Release", before: "Release") -> bool:
    """Return whether a release carries or corrects another (T-SERIES)."""
    return now.published.follows[:1] == (before.digest,)


def _carrying(release: "Release", statistic: PublishedStatistic, table: str, step: float, level: float) -> Carrying:
    """Return the joint law of a variable and its earlier answers."""
    query = release.published.query_of(table)
    share = next(each.share for each in query.tables if each.name == table) if query is not None else Fraction(1)
    mechanism = statistic.mechanism()
    assert mechanism is not None
    own = mechanism.at_share(share)
    return Carrying(carry=float(own.carry), reach=own.change_reach(Fraction(step), level))


def _variables(
    now: "Release", before: "Release", table: "ReleasedTable", earlier: "ReleasedTable", level: float
) -> list[Variable]:
    found, follows = [], _follows(now, before)
    for name in table.variables:
        ours, theirs = _statistic(now, table, name), _statistic(before, earlier, name)
        if name not in earlier.variables or ours is None or theirs is None or ours.kind != theirs.kind:
            continue
        kind = ours.rules.contribution if ours.noise is not None else None
        declared = [each.published.measure(of.of) for each, of in ((now, ours), (before, theirs))]
        steps = [float(each.step) for each in declared]
        # A quantile is read off counts with Gaussian noise, but its own error is not Gaussian.
        gaussian = kind in (SUM, COUNT) and _gaussian(ours) and _gaussian(theirs)
        found.append(
            Variable(
                name=name,
                gaussian=gaussian,
                additive=kind in (SUM, COUNT) and ours.kind != "CountDistinct",
                nonnegative=not any(each.signed or each.derived for each in declared),
                step=max(steps),
                one_lattice=min(steps) == max(steps) and not (_several(ours) or _several(theirs)),
                carried=_carrying(now, ours, table.name, max(steps), level) if follows and gaussian else None,
            )
        )
    return found


def carried_reaches(
    now: "Release", before: "Release", table: "ReleasedTable", earlier: "ReleasedTable"
) -> dict[str, float]:
    """Return a bound on the error of the change of each variable whose noise is carried on.

    Args:
        now: The later release.
        before: The one that it follows.
        table: A table of the later one.
        earlier: The same table of the earlier one.
    """
    level = min(each.published.confidence for each in (now, before))
    found = _variables(now, before, table, earlier, level)
    return {each.name: float(each.carried.reach) for each in found if each.carried is not None}


def _statistic(release: "Release", table: "ReleasedTable", name: str) -> PublishedStatistic | None:
    """The description of a variable in release.json."""
    query = release.published.query_of(table.name)
    return None if query is None else query.statistic(name)


def _gaussian(statistic: PublishedStatistic) -> bool:
    mechanism = statistic.mechanism()
    return mechanism is not None and all(each.noise_sigma is not None for each in mechanism.inside())


def _several(statistic: PublishedStatistic) -> bool:
    """Return whether answers are made of several draws."""
    mechanism = statistic.mechanism()
    return mechanism is not None and any(each.offers("further") for each in mechanism.inside())


def _change_table(
    now: "ReleasedTable",
    before: "ReleasedTable",
    variables: Sequence[Variable],
    pairs: Crosswalk,
    level: float,
    rules: StatusRules,
    step: Step | None = None,
) -> tuple[pa.Table, dict[str, float]]:
    """Return the changes of a table; ``step`` is that of a release which follows the earlier one."""
    keys = now.keys
    used = pairs.of(keys)
    _check_types(now, before, [name for name in keys if name not in used])
    kept = [each for each in variables if each.additive or not used]
    ours, theirs = now.data, before.data
    if used:
        names = [each.name for each in kept]
        ours, theirs = (merge_codes(data, keys, names, pairs, side) for data, side in ((ours, 1), (theirs, 0)))
    cells, rows, earlier_rows = _join_cells(ours, theirs, keys, {} if step is None or used else step.renamed)
    carried = (rows >= 0) & (earlier_rows >= 0)
    if step is not None and used:
        carried &= _carried_alone(now, before, pairs, step, cells)
    columns: dict[str, Any] = {name: cells.column(name) for name in cells.column_names}
    levels = {}
    for each in kept:
        first, second = _numbers(ours, each.name, rows), _numbers(theirs, each.name, earlier_rows)
        own = each if each.carried is None else replace(each, carried=each.carried.only(carried))
        columns |= _differences(own, first, second, level, rules)
        levels[each.name] = level if each.gaussian else max(0.0, 2 * level - 1)
    return pa.table(columns), levels


def _check_types(now: "ReleasedTable", before: "ReleasedTable", names: Sequence[str]) -> None:
    """Refuse keys of another type than before, whose codes cannot be compared."""
    for name in names:
        kinds = [each.data.schema.field(name).type for each in (before, now)]
        if kinds[0] != kinds[1]:
            words = [type_name(kind) for kind in kinds]
            raise ParameterError(
                parameter="previous",
                problem=f"has '{name}' of {now.name} as {words[0]}, and this release as {words[1]}",
                advice="Declare the column alike in both plans, or give a crosswalk of its codes.",
            )


def _carried_alone(
    now: "ReleasedTable", before: "ReleasedTable", pairs: Crosswalk, step: Step, cells: pa.Table
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return which cells by common code are one cell of each release, whose noise was carried on.

    Raises:
        ParameterError: Cells with carried noise are added up.
    """
    keys = list(now.keys)
    _, rows, earlier = _join_cells(now.data, before.data, keys, step.renamed)
    both = np.flatnonzero((rows >= 0) & (earlier >= 0))
    codes = [_common_codes(one.data, keys, pairs, side) for one, side in ((now, 1), (before, 0))]
    found, *sides = row_numbers(cells.select(keys), *codes, by=keys)
    same = sides[0][rows[both]] == sides[1][earlier[both]]
    inside = sides[0][rows[both]][same]
    if any(np.any(np.bincount(each, minlength=inside.max(initial=0) + 1)[inside] > 1) for each in sides):
        raise ParameterError(
            parameter="crosswalk",
            problem="adds up cells whose noise the later release carries on, for which there is no joint law here",
            advice="Give pairs of codes that were renamed, or add up by the reader.",
        )
    return np.asarray(np.isin(found, inside))


def _join_cells(ours: pa.Table, theirs: pa.Table, keys: Sequence[str], renamed: Renaming) -> tuple[pa.Table, Any, Any]:
    """Return either table's cells, where listed, and rows or -1; cells without a counterpart are listed once."""
    if not keys:
        one = np.zeros(1, np.int64)
        return pa.table({PRESENCE: [BOTH]}), one, one
    names = list(keys)
    kept, own = numbered_cells(theirs.select(names), renamed)
    now, before = np.arange(ours.num_rows), rows_in(ours, kept, names, own)
    left = np.flatnonzero(rows_in(kept, ours, names, now) < 0)
    # Cells without a single counterpart are listed by the codes they had.
    gone = np.setdiff1d(np.arange(theirs.num_rows), own)
    parts = [ours.select(names), kept.take(pa.array(left)), theirs.select(names).take(pa.array(gone))]
    rows = np.concatenate([now, np.full(len(left) + len(gone), -1)])
    earlier = np.concatenate([before, own[left], gone])
    joined = pa.concat_tables(parts, promote_options="default")
    order = numpy_of(pc.sort_indices(joined, [(name, "ascending") for name in names]))
    joined, rows, earlier = joined.take(pa.array(order)), rows[order], earlier[order]
    listed = np.where(rows < 0, ONLY_BEFORE, np.where(earlier < 0, ONLY_NOW, BOTH))
    return joined.append_column(PRESENCE, pa.array(listed)), rows, earlier


def _numbers(table: pa.Table, name: str, rows: Any) -> Numbers:
    def taken(end: str) -> FloatArray:
        column = pc.cast(table.column(f"{name}{end}"), pa.float64(), safe=False)
        values = np.append(numpy_of(column), np.nan)
        return np.asarray(values[rows], np.float64)

    found = {"value": taken(""), "sd": taken("_sd"), "low": taken("_low"), "high": taken("_high")}
    added = f"{name}{PARTS}" in table.column_names
    parts = taken(PARTS) if added else np.ones(len(rows))
    return Numbers(**found, parts=parts, least_sd=taken(LEAST) if added else found["sd"])


def _differences(
    variable: Variable, now: Numbers, before: Numbers, level: float, rules: StatusRules
) -> dict[str, pa.Array]:
    """Return both values, their difference and the percentage change.

    Each with sd and interval, the difference with its status; NULL where a cell is listed once.
    """
    with np.errstate(all="ignore"):
        difference, sd = now.value - before.value, _joint_sd(variable, now, before, 1.0)
        reaches = [_reach(variable, each, level) for each in (now, before)]
        low, high = _ends(variable, now, before, reaches, level)
        name = variable.name
        columns = {
            f"{name}_before": before.value,
            f"{name}_now": now.value,
            f"{name}_change": difference,
            f"{name}_change_sd": sd,
            f"{name}_change_low": low,
            f"{name}_change_high": high,
        }
        if variable.nonnegative:
            columns |= _percentages(variable, now, before, reaches, level)
    found = {each: pa.array(column, mask=~np.isfinite(column)) for each, column in columns.items()}
    status = status_names(relative_error(difference, sd, signed=True), rules)
    return found | {f"{name}_change{STATUS}": pc.if_else(pa.array(np.isfinite(difference)), status, None)}


def _joint_sd(variable: Variable, now: Numbers, before: Numbers, ratio: FloatArray | float) -> FloatArray:
    """Return the sd of now - ratio before, from their joint law."""
    kept = 0.0 if variable.carried is None else variable.carried.carry
    return np.asarray(np.sqrt(np.maximum(now.sd**2 + (ratio**2 - 2 * ratio * kept) * before.sd**2, 0.0)))


def _ends(
    variable: Variable, now: Numbers, before: Numbers, reaches: Sequence[FloatArray], level: float
) -> tuple[FloatArray, FloatArray]:
    """Return both ends of a difference.

    By the law of the two noises where it is coarse (T-COARSE), by their reaches where it is fine, and from the
    ends of both sides where it is not Gaussian.
    """
    difference = now.value - before.value
    # An average without a value has ends all the same.
    size = np.nan_to_num(np.abs(now.value)) + np.nan_to_num(np.abs(before.value))
    around, exact = np.hypot(*reaches), np.full(difference.shape, np.nan)
    if variable.carried is not None:
        around = np.where(np.isfinite(around) & np.isfinite(variable.carried.reach), variable.carried.reach, around)
    elif variable.gaussian and variable.one_lattice:
        exact = variable.step * exact_reach([_in_steps(variable, each) for each in (now, before)], level)
    around = np.where(np.isnan(exact), around, exact)
    narrow = np.isfinite(around)
    low = np.where(narrow, difference - around, now.low - before.high)
    high = np.where(narrow, difference + around, now.high - before.low)
    # Differences of whole numbers need no rounding.
    whole = np.isfinite(exact) & (size + around < WHOLE) & (variable.step == np.rint(variable.step))
    return tuple(np.where(whole, one, other) for one, other in zip((low, high), outward(low, high, size)))  # type: ignore[return-value]


def _in_steps(variable: Variable, numbers: Numbers) -> tuple[FloatArray, FloatArray, FloatArray]:
    return numbers.sd / variable.step, numbers.parts, numbers.least_sd / variable.step


def _percentages(
    variable: Variable, now: Numbers, before: Numbers, reaches: Sequence[FloatArray], level: float
) -> dict[str, FloatArray]:
    """Return the change in percent of an earlier total (T-RATIO)."""
    sides = [_side(variable, each, reach, level) for each, reach in zip((now, before), reaches)]
    shared = 0.0 if variable.carried is None else variable.carried.carry * reaches[1] ** 2
    low, high = ratio_interval(*sides, least=variable.step, shared=shared)
    low, high = outward(100 * (low - 1), 100 * (high - 1), 100 * (1 + np.abs(low) + np.abs(high)))
    ratio = np.where(before.value > 0, now.value / before.value, np.nan)
    steady = (before.value > 0) & ((sides[1].high - sides[1].low) ** 2 / 4 < STEEPEST * before.value**2)
    spread = np.where(steady, _joint_sd(variable, now, before, ratio) / before.value, np.nan)
    name = f"{variable.name}_percent"
    return {
        name: 100 * (ratio - 1),
        f"{name}_sd": 100 * spread,
        f"{name}_low": low,
        f"{name}_high": high,
    }


def _reach(variable: Variable, numbers: Numbers, level: float) -> FloatArray:
    """Return the reach of Gaussian noise, alone or mixed, or NaN (T-RATIO)."""
    if not variable.gaussian:
        return np.full(numbers.sd.shape, np.nan)
    return variable.step * gaussian_reach(*_in_steps(variable, numbers), level)


def _side(variable: Variable, numbers: Numbers, reach: FloatArray, level: float) -> Side:
    """Return a side of the ratio, wide enough for two intervals."""
    wider = _reach(variable, numbers, (1 + level) / 2)
    known = np.isfinite(wider)
    low = np.where(known, numbers.value - wider, numbers.low)
    high = np.where(known, numbers.value + wider, numbers.high)
    return Side(value=numbers.value, low=low, high=high, reach=reach)
