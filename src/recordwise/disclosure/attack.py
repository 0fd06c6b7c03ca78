"""Attack published tables: what anybody can compute about cells that were withheld.

Everything is read from published files and a short description of what adds up to what. The tables are taken together: the feasible
interval of a cell uses all of them. What was recovered from a real publication is for the owner's eyes only.
"""

import csv
import math
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa

from recordwise.disclosure.bounds import TOLERANCE, feasible_intervals, unit
from recordwise.disclosure.cells import ROOT, Cells, Dimension
from recordwise.errors import ExtraError, ParameterError, own_argument_errors, own_errors_of
from recordwise.exact.arithmetic import FloatArray
from recordwise.release.formats.csv import without_formulas

if TYPE_CHECKING:
    from recordwise.mechanisms.base import Mechanism

WITHHELD = ("", "D", "(D)", "S", "X", "N")
NEAREST, AT_RANDOM = "nearest", "random"
ABSENT = ("zero", "unknown")
OWNER_ONLY = "OWNER ONLY: values recovered from withheld cells; not for publication"
EXACT, NEAR, OPEN = "disclosed", "nearly disclosed", "protected"
GROUPED = re.compile(r"\d{1,3}(,\d{3})+(\.\d*)?")
"""A number with commas between thousands; other commas could be decimal ones."""


@own_errors_of
@dataclass(frozen=True, slots=True, eq=False)
class Description:
    """What was published, and what adds up to what."""

    cells: Cells
    low: FloatArray
    high: FloatArray
    withheld: Any
    """The positions of cells with a row but no number."""
    number: FloatArray
    """How many contribute to each cell, where that was published; NaN elsewhere."""
    second: FloatArray
    """What the second largest contributor has, where given; NaN elsewhere."""
    percent: float
    absent: str
    assumptions: tuple[str, ...]

    def system(self) -> Any:
        """Return bounds and equations."""
        return self.cells.system(self.low, self.high, absent_is_zero=self.absent == "zero")


@own_errors_of
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Attack:
    """What anybody can compute about the withheld cells.

    For the owner's eyes only.
    """

    names: tuple[str, ...]
    codes: tuple[tuple[str, ...], ...]
    low: FloatArray
    high: FloatArray
    largest_low: FloatArray
    largest_high: FloatArray
    percent: float
    assumptions: tuple[str, ...] = field(default=())

    def counts(self) -> dict[str, int]:
        """Return how many withheld cells have each status."""
        status = self.status
        return {each: status.count(each) for each in (EXACT, NEAR, OPEN)}

    @property
    def status(self) -> tuple[str, ...]:
        """Return for each cell whether it is disclosed.

        Nearly: the middle of the interval is within the percentage of every value in it.
        """
        width, middle = self.high - self.low, (self.low + self.high) / 2
        slack = 10 * TOLERANCE * unit(self.low, self.high)
        near = width / 2 <= self.percent / 100 * np.maximum(self.low, 0.0)
        with np.errstate(invalid="ignore"):
            found = np.where(width <= slack, EXACT, np.where(near & np.isfinite(middle), NEAR, OPEN))
        return tuple(found.tolist())

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Return headers and a row for each withheld cell."""
        headers = [*self.names, "low", "high", "largest low", "largest high", "status"]
        numbers = zip(self.low, self.high, self.largest_low, self.largest_high)
        shown = [
            [*codes, *(_text(each) for each in row), status]
            for codes, row, status in zip(self.codes, numbers, self.status)
        ]
        return headers, shown

    def summary(self) -> str:
        """Return how many withheld cells can be found."""
        counts = self.counts()
        return (
            f"{sum(counts.values()):,} withheld cells: {counts[EXACT]:,} disclosed exactly, {counts[NEAR]:,} to within "
            f"{self.percent:g} %, {counts[OPEN]:,} protected."
        )

    def save(self, path: str | Path) -> Path:
        """Write a row for each withheld cell as CSV that only the owner can read.

        Args:
            path: A new file.

        Returns:
            The file.
        """
        file = Path(path)
        try:
            opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise ParameterError(parameter=str(file), problem="already exists", advice="Choose a new file.") from None
        headers, rows = self.rows()
        # Codes are somebody else's texts, and a spreadsheet must not run them.
        safe, width = iter(_safe([each for row in self.codes for each in row])), len(self.names)
        with open(opened, "w", newline="", encoding="utf-8") as out:
            csv.writer(out).writerows([_safe(headers), *([*islice(safe, width), *row[width:]] for row in rows)])
        return file

    def __repr__(self) -> str:
        return f"<Attack on {len(self.codes):,} withheld cells: {OWNER_ONLY}>"


def _safe(texts: Sequence[str]) -> list[Any]:
    """Return texts none of which a spreadsheet runs as a formula."""
    return list(without_formulas(pa.table({"text": pa.array(texts, pa.string())})).column("text").to_pylist())


def _text(value: float) -> str:
    if math.isnan(value):
        return ""
    return "no limit" if math.isinf(value) else f"{value:.6g}"


@own_argument_errors
def attack(description: Description | str | Path) -> Attack:
    """Compute what anybody can tell about withheld cells.

    Args:
        description: A description file, or what ``read_description`` returned.

    Returns:
        The feasible interval of each withheld cell, and of its largest contributor as the second largest sees it.

    Raises:
        ParameterError: The tables contradict each other, or the description is not valid.
    """
    given = description if isinstance(description, Description) else read_description(description)
    low, high = feasible_intervals(given.system(), given.withheld)
    number, second = given.number[given.withheld], given.second[given.withheld]
    largest_low, largest_high = largest_contributor(low, high, number, second)
    dimensions = given.cells.dimensions
    codes = tuple(
        tuple(each.codes[place] or "all" for each, place in zip(dimensions, row))
        for row in given.cells.codes[given.withheld].tolist()
    )
    names = tuple(each.name for each in dimensions)
    return Attack(names, codes, low, high, largest_low, largest_high, given.percent, given.assumptions)


@own_argument_errors
def largest_contributor(
    low: FloatArray, high: FloatArray, number: FloatArray, second: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the largest contributor's interval, as the second largest sees it.

    What the second largest does not have is at most the largest's, and each of the others has no more than the second.

    Args:
        low: The least feasible total of each cell.
        high: The largest feasible total.
        number: How many contribute; NaN if unknown.
        second: What the second largest has; NaN if unknown, 0 for a single contributor.

    Returns:
        Both ends; NaN where the second largest is unknown and there may be one.
    """
    alone = number == 1
    known = np.where(alone, 0.0, second)
    others = np.where(np.isnan(number), np.inf, np.maximum(number - 2, 0.0))
    with np.errstate(invalid="ignore"):
        small = np.where((others == 0) | (known == 0), 0.0, others * known)
        lower = np.maximum(low - known - small, known)
        return np.where(np.isnan(known), np.nan, lower), np.where(np.isnan(known), np.nan, high - known)


# Description files.


@own_argument_errors
def read_description(path: str | Path, *more: str | Path) -> Description:
    """Read descriptions of published tables, and the tables.

    Args:
        path: A TOML file: a section for each dimension, one for each table, the file names relative to it.
        more: Further descriptions; their tables have the dimensions of the first.

    Returns:
        Cells, bounds and assumptions. Attacked is each cell that some table withholds and none shows exactly.

    Raises:
        ParameterError: Something in it is not valid, or a file cannot be read.
    """
    top, folder = _opened(path)
    absent, percent = top.get("absent", str, "unknown"), top.get("percent", (int, float), 10.0)
    if absent not in ABSENT:
        raise ParameterError(parameter="absent", problem=f"must be one of {', '.join(ABSENT)}")
    if not 0 < percent < math.inf:
        raise ParameterError(parameter="percent", problem="must be above 0")
    trees = {
        name: _dimension(name, _Section(f"dimension '{name}'", each), folder)
        for name, each in top.need("dimensions", dict).items()
    }
    tables = _tables(top, trees, folder)
    top.finish()
    for each in more:
        section, own = _opened(each)
        section.get("dimensions", dict), section.get("absent", str), section.get("percent", (int, float))
        tables += _tables(section, trees, own)
        section.finish()
    return _joined(tables, trees, absent, float(percent))


def _opened(path: str | Path) -> tuple["_Section", Path]:
    """Return the content of a description file, and its folder."""
    file = Path(path)
    try:
        given = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError:
        raise ParameterError(parameter=f"'{path}'", problem="cannot be read") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(parameter=f"'{path}'", problem=f"is not a TOML file ({error})") from None
    return _Section(f"'{file.name}'", given), file.parent


class _Section:
    """A table of a description, read key by key; what is left over is refused."""

    def __init__(self, name: str, content: Any) -> None:
        if not isinstance(content, dict):
            raise ParameterError(parameter=name, problem="must be a table of entries")
        self.name, self._content, self._known = name, content, set[str]()

    def get(self, key: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        self._known.add(key)
        value = self._content.get(key, default)
        if value is not default and (not isinstance(value, kind) or isinstance(value, bool)):
            kinds = " or ".join(each.__name__ for each in (kind if isinstance(kind, tuple) else (kind,)))
            raise ParameterError(parameter=f"{key} of {self.name}", problem=f"must be of the kind {kinds}")
        return value

    def has(self, key: str) -> bool:
        """Return whether there is such an entry."""
        return key in self._content

    def need(self, key: str, kind: type | tuple[type, ...]) -> Any:
        if key not in self._content:
            raise ParameterError(parameter=self.name, problem=f"needs an entry '{key}'")
        return self.get(key, kind)

    def finish(self) -> None:
        unknown = sorted(set(self._content) - self._known)
        if unknown:
            known = ", ".join(sorted(self._known))
            raise ParameterError(
                parameter=self.name, problem=f"has an unknown entry '{unknown[0]}'", advice=f"It can have {known}."
            )


def _tables(top: _Section, trees: Mapping[str, "_Tree"], folder: Path) -> list["_Table"]:
    given = [_Section(f"table {number} of {top.name}", each) for number, each in enumerate(top.need("table", list), 1)]
    if not given or not trees:
        raise ParameterError(parameter=top.name, problem="needs a dimension and a table")
    together = sum(each.has("release") for each in given)
    return [
        _private(each, trees, folder, together) if each.has("release") else _table(each, trees, folder)
        for each in given
    ]


def _joined(tables: Sequence["_Table"], trees: Mapping[str, "_Tree"], absent: str, percent: float) -> Description:
    """Return what all tables together say of each cell."""
    dimensions = tuple(each.dimension for each in trees.values())
    codes = np.concatenate([each.codes for each in tables])
    _, first, same = np.unique(Cells(dimensions, codes).keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.argsort(order)[same.ravel()]
    cells = Cells.closed(dimensions, codes[first[order]])
    low, high = np.zeros(len(cells)), np.full(len(cells), np.inf)
    number, second = np.full(len(cells), np.nan), np.full(len(cells), np.nan)
    shown, withheld = np.zeros(len(cells), np.bool_), np.zeros(len(cells), np.bool_)
    np.maximum.at(low, place, np.concatenate([each.low for each in tables]))
    np.minimum.at(high, place, np.concatenate([each.high for each in tables]))
    np.logical_or.at(shown, place, np.concatenate([each.shown for each in tables]))
    np.logical_or.at(withheld, place, np.concatenate([each.withheld for each in tables]))
    for found, own in ((number, [each.number for each in tables]), (second, [each.second for each in tables])):
        values = np.concatenate(own)
        found[place[~np.isnan(values)]] = values[~np.isnan(values)]
    said = list(dict.fromkeys(text for each in tables for text in each.assumptions))
    said.append("No value is negative.")
    said.append(
        "Cells that no table lists are zero." if absent == "zero" else "Cells that no table lists can have any value."
    )
    said.append("Intervals allow fractions; where values are whole, they can be wider than necessary, not narrower.")
    targets = np.flatnonzero(withheld & ~shown)
    return Description(cells, low, high, targets, number, second, percent, absent, tuple(said))


@dataclass(frozen=True, slots=True)
class _Tree:
    dimension: Dimension
    total: str | None


def _dimension(name: str, given: _Section, folder: Path) -> _Tree:
    """Return a tree of codes from a list or from prefixes."""
    lists = given.get("lists", list, [])
    file, levels = given.get("file", str), given.get("levels", list)
    total = given.get("total", str)
    given.finish()
    if file is not None:
        lists = [{"file": file, "levels": levels or []}, *lists]
    if not lists:
        raise ParameterError(parameter=f"dimension '{name}'", problem="needs a file with its codes")
    trees = []
    for number, each in enumerate(lists, start=1):
        own = _Section(f"list {number} of dimension '{name}'", each)
        columns, rows = _read_rows(folder / own.need("file", str))
        wanted = own.need("levels", list)
        own.finish()
        missing = [level for level in wanted if level not in columns]
        if missing or not wanted:
            what = f"names a column '{missing[0]}' that its file does not have" if missing else "must not be empty"
            raise ParameterError(parameter=f"levels of dimension '{name}'", problem=what)
        places = [columns.index(level) for level in wanted]
        trees.append([tuple(row[place].strip() for place in places) for row in rows])
        if not all(code for row in trees[-1] for code in row):
            raise ParameterError(
                parameter=f"dimension '{name}'", problem="has rows without a code", advice="Fill in every level."
            )
    return _Tree(Dimension.from_levels(name, *trees), total)


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    codes: Any
    low: FloatArray
    high: FloatArray
    shown: Any
    withheld: Any
    number: FloatArray
    second: FloatArray
    assumptions: tuple[str, ...]


def _cell_codes(columns: Mapping[str, Sequence[str]], trees: Mapping[str, _Tree], count: int, what: str) -> Any:
    """Return the positions of the codes of cells; the root where a table has no column of a dimension."""
    unknown = [name for name in columns if name not in trees]
    if unknown:
        raise ParameterError(parameter=f"cells of {what}", problem=f"names an unknown dimension '{unknown[0]}'")
    codes = np.zeros((count, len(trees)), np.int64)
    for place, (name, tree) in enumerate(trees.items()):
        if name in columns:
            codes[:, place] = tree.dimension.positions(
                ROOT if code in (tree.total, ROOT) else code for code in columns[name]
            )
    return codes


CONFIDENCE = 0.999


def _private(given: _Section, trees: Mapping[str, _Tree], folder: Path, together: int) -> _Table:
    """Read a table of a private release as bounds that hold together with a stated confidence.

    Discrete Gaussian noise exceeds t with a probability of at most 2 exp(-t^2 / 2 sigma^2), for each cell; what may go wrong is
    divided among the private tables of the description.
    """
    from recordwise.release.files import load_release

    release = load_release(folder / given.need("release", str))
    name, value = given.need("name", str), given.need("value", str)
    named = given.need("cells", dict)
    confidence = given.get("confidence", float, CONFIDENCE)
    given.finish()
    if not 0 < confidence < 1:
        raise ParameterError(parameter=f"confidence of {given.name}", problem="must be between 0 and 1")
    query = release.published.query_of(name)
    statistic = None if query is None else query.statistic(value)
    mechanism = None if statistic is None else statistic.mechanism()
    table = next((each for each in release.tables if each.name == name), None)
    if table is None or statistic is None or mechanism is None:
        raise ParameterError(parameter=given.name, problem=f"has no table '{name}' with a statistic '{value}'")
    if not mechanism.offers("noise_sigma") or mechanism.variance_varies or _is_clamped(mechanism):
        raise ParameterError(
            parameter=given.name,
            problem=f"has '{value}' clamped or with other than Gaussian noise, for which there are no bounds of totals here",
        )
    missing = [own for own in named.values() if own not in table.data.column_names]
    if missing:
        raise ParameterError(parameter=given.name, problem=f"has no column '{missing[0]}'")
    columns = {each: [str(code) for code in table.data.column(own).to_pylist()] for each, own in named.items()}
    codes = _cell_codes(columns, trees, table.data.num_rows, given.name)
    centers, sd = (np.asarray(table.data.column(each).to_numpy(), np.float64) for each in (value, f"{value}_sd"))
    step = float(release.published.measure(statistic.of).step)
    reach = np.maximum(sd, step) * math.sqrt(2 * math.log(2 * together * len(sd) / (1 - confidence)))
    blank, none = np.full(len(sd), np.nan), np.zeros(len(sd), np.bool_)
    said = f"All bounds from the noise of private tables hold together with {100 * confidence:g} % confidence."
    return _Table(codes, np.maximum(centers - reach, 0.0), centers + reach, none, none, blank, blank, (said,))


def _is_clamped(mechanism: "Mechanism") -> bool:
    """Whether contributions are cut before they are added up, so that totals can be far above what is published."""
    return any(each.to is not None for each in mechanism.inside())


def _table(given: _Section, trees: Mapping[str, _Tree], folder: Path) -> _Table:
    """Read one table of a description."""
    columns, rows = _read_rows(folder / given.need("file", str), given.get("sheet", str))
    named, value = given.need("cells", dict), given.need("value", str)
    flags = tuple(given.get("withheld", list, list(WITHHELD)))

    def column(name: str | None) -> list[str] | None:
        if name is None:
            return None
        if name not in columns:
            raise ParameterError(
                parameter=given.name, problem=f"has no column '{name}'", advice=f"There are {', '.join(columns)}."
            )
        place = columns.index(name)
        return [row[place].strip() for row in rows]

    own = {name: column(header) or [] for name, header in named.items()}
    codes = _cell_codes(own, trees, len(rows), given.name)
    values = _numbers(column(value) or [], flags, f"{value} of {given.name}")
    low, high, said = _known(given, values)
    ends = [_numbers(column(given.get(end, str)), flags, f"{end} of {given.name}") for end in ("low", "high")]
    number, second = (
        _numbers(column(given.get(name, str)), flags, f"{name} of {given.name}") for name in ("number", "second")
    )
    given.finish()
    blank = np.full(len(rows), np.nan)
    low = np.fmax(low, blank if ends[0] is None else ends[0])
    high = np.fmin(high, blank if ends[1] is None else ends[1])
    return _Table(
        codes,
        low,
        high,
        low == high,
        np.isnan(values),
        blank if number is None else number,
        blank if second is None else second,
        said,
    )


def _known(given: _Section, values: FloatArray) -> tuple[FloatArray, FloatArray, tuple[str, ...]]:
    """Return what a published number says about the exact one."""
    base, how = given.get("rounded_to", (int, float), 0), given.get("rounded", str, NEAREST)
    off = given.get("off_by_percent", (int, float), 0)
    if how not in (NEAREST, AT_RANDOM):
        raise ParameterError(parameter=f"rounded of {given.name}", problem=f"must be {NEAREST} or {AT_RANDOM}")
    if base < 0 or not 0 <= off < 100:
        raise ParameterError(parameter=given.name, problem="has a negative base, or a percentage outside 0 to 100")
    reach = base / 2 if how == NEAREST else float(base)
    low, high = (values - reach) * (1 - off / 100), (values + reach) * (1 + off / 100)
    said = []
    if base:
        said.append(f"Rounded numbers are off by at most {reach:g}.")
    if off:
        said.append(f"Numbers of an earlier vintage are off by at most {off:g} %.")
    blank = np.isnan(values)
    return np.where(blank, 0.0, np.maximum(low, 0.0)), np.where(blank, np.inf, high), tuple(said)


def _numbers(texts: list[str] | None, flags: Sequence[str], what: str) -> Any:
    """Return the numbers of a column, NaN where a flag stands."""
    if texts is None:
        return None
    found = np.full(len(texts), np.nan)
    for place, text in enumerate(texts):
        if text not in flags:
            try:
                read = float(text.replace(",", "") if GROUPED.fullmatch(text) else text)
            except ValueError:
                read = math.nan
            found[place] = np.inf if math.isnan(read) else read
    if np.isinf(found).any() or (found < 0).any():
        raise ParameterError(
            parameter=what,
            problem=f"has {int((np.isinf(found) | (found < 0)).sum()):,} entries that are no number from 0 on",
            advice='Name what stands for a withheld value: withheld = ["D", ""].',
        )
    return found


def _read_rows(file: Path, sheet: str | None = None) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a CSV file or of a sheet, the first by default, as text."""
    if not file.is_file():
        raise ParameterError(parameter=f"'{file.name}'", problem="does not exist")
    if file.suffix.lower() == ".xlsx":
        try:
            from openpyxl import load_workbook
            from openpyxl.utils.exceptions import InvalidFileException
        except ImportError:
            raise ExtraError(what="reading a workbook", extra="attack") from None
        try:
            book = load_workbook(file, read_only=True, data_only=True)
        except (BadZipFile, InvalidFileException, KeyError):
            raise ParameterError(parameter=f"'{file.name}'", problem="is not a workbook") from None
        if sheet is not None and sheet not in book.sheetnames:
            names = ", ".join(book.sheetnames)
            raise ParameterError(
                parameter=f"'{file.name}'", problem=f"has no sheet '{sheet}'", advice=f"It has {names}."
            )
        own = book.worksheets[0] if sheet is None else book[sheet]
        lines = [["" if each is None else str(each) for each in row] for row in own.iter_rows(values_only=True)]
        book.close()
    elif sheet is not None:
        raise ParameterError(parameter=f"'{file.name}'", problem="is no workbook, so it has no sheets")
    else:
        with file.open(newline="", encoding="utf-8-sig") as opened:
            try:
                lines = list(csv.reader(opened))
            except (UnicodeDecodeError, csv.Error):
                raise ParameterError(parameter=f"'{file.name}'", problem="is not CSV in UTF-8") from None
    lines = [line for line in lines if any(line)]
    if len(lines) < 2 or len({len(line) for line in lines}) != 1 or len(set(lines[0])) != len(lines[0]):
        raise ParameterError(parameter=f"'{file.name}'", problem="is not a table with one header line and rows")
    return [each.strip() for each in lines[0]], lines[1:]
