"""The results on the page: headline numbers, ranked cells, sums and a map."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from recordwise.errors import ParameterError
from recordwise.exact.text import cell_text, meaningful_text
from recordwise.plan.arrays import numpy_of
from recordwise.release.content import Content, DescribedTable
from recordwise.release.dictionary import Entry, value_column
from recordwise.release.published import PublishedQuery, PublishedStatistic

if TYPE_CHECKING:
    from recordwise.release.nesting import Nesting
    from recordwise.release.release import Release

NONE = -1
FEWEST = 4
"""A table of fewer cells is not worth a chart of its largest ones."""
OPEN = "The keys are not declared complete and no rests are published, so that tables say nothing about each other."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tree:
    """Nested tables, finest first, so that sums of cells have a formula of one pass (T-ASK)."""

    tables: tuple[str, ...]
    names: Mapping[str, tuple[str, ...]]
    """For a statistic, what it is called in each table."""
    parents: Mapping[str, Any]
    """For each table, the answer that each cell lies in, counted over all tables; -1 for none."""
    totals: "Mapping[str, Total]" = field(default_factory=dict)
    """For a statistic, the best estimate of what the cells of the coarsest table add up to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """A sum of cells with its error."""

    value: float
    sd: float
    largest: float
    """The largest weight of a noisy number in it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Results:
    """What the page shows of the results besides the tables."""

    trees: tuple[Tree, ...] = ()
    note: str = ""
    """Why tables say nothing about each other, if so."""
    queries: Mapping[str, int] = field(default_factory=dict)
    """The number of the query of each table."""
    complete: bool = False
    """Whether the keys are declared to list every cell, so that finer tables add up to coarser ones."""

    def total(self, table: str, name: str) -> Total | None:
        """Return the best estimate of the whole, by the coarsest table of a tree and the statistic."""
        return next((each.totals.get(name) for each in self.trees if each.tables[-1] == table), None)


def results_of(release: "Release", content: Content) -> Results:
    """Return the trees of a release, as the reader's totals use them."""
    queries = release.published.queries
    numbers = {table.name: at for at, query in enumerate(queries) for table in query.tables}
    if not any(each.halves for each in content.tables):
        return Results(queries=numbers)
    fit = release.published.fit
    complete = fit is not None and fit.complete
    found = [tree for query in queries if (tree := _tree(release, query, content, complete=complete)) is not None]
    joined = any(np.any(up != NONE) for tree in found for up in tree.parents.values())
    several = any(len(query.tables) > 1 for query in queries)
    note = OPEN if several and found and not joined else ""
    return Results(trees=tuple(found), note=note, queries=numbers, complete=complete)


def _tree(release: "Release", query: PublishedQuery, content: Content, *, complete: bool) -> Tree | None:
    """Return the answers of a query as a tree; None if tables cross or nothing is added up."""
    described = {each.name: each for each in content.tables}
    tables = [described[table.name] for table in query.tables]
    chain = sorted(tables, key=lambda each: len(each.coarser), reverse=True)
    in_chain = [len(each.coarser) for each in chain] == list(range(len(chain)))[::-1]
    statistics = [each.name for each in query.statistics if all(each.name in table.halves for table in tables)]
    if not in_chain or not statistics:
        return None
    if len(tables) == 1:
        (only,) = tables
        alone = np.full(only.data.num_rows, NONE)
        return Tree(tables=(only.name,), names={name: (name,) for name in statistics}, parents={only.name: alone})
    from recordwise.release.nesting import nesting_of

    try:
        nesting = nesting_of(release, query, complete=complete)
    except ParameterError:
        return None
    names = tuple(table.name for table in nesting.tables)
    # The page goes through the tables from the finest on.
    if nesting.tree is None or names != tuple(each.name for each in chain):
        return None
    parents = dict(zip(names, nesting.by_table(nesting.tree.parents())))
    # The sum of a table that is alone is its own.
    several = query.statistics if len(names) > 1 else ()
    totals = {each.name: _best_total(nesting, each) for each in several if each.name in statistics}
    called = {name: (name,) * len(names) for name in statistics}
    return Tree(tables=names, names=called, parents=parents, totals=totals)


def _best_total(nesting: "Nesting", statistic: PublishedStatistic) -> Total:
    """The best linear unbiased estimate of what the coarsest table adds up to, from all tables (T-ASK)."""
    from recordwise.postprocess.linear import LinearModel

    answers, spread = nesting.column(statistic, ""), nesting.column(statistic, "_sd") ** 2
    assert nesting.tree is not None
    model = LinearModel(answers, nesting.tree.weights(spread), spread)
    asked = np.zeros((1, len(answers)))
    asked[0, -nesting.tables[-1].data.num_rows :] = 1.0
    found = model.answer(asked)
    return Total(
        value=float(found.estimates[0]),
        sd=float(np.sqrt(max(found.covariance[0, 0], 0.0))),
        largest=float(found.largest[0]),
    )


def on_page(tree: Tree, orders: Mapping[str, Any]) -> dict[str, Any]:
    """Return each table's parents in the order of the page, counted from 1; 0 for none.

    Args:
        tree: The tree.
        orders: For each table, the row at each place of the page.

    Returns:
        The parents by table.
    """
    starts = np.cumsum([0, *(len(tree.parents[name]) for name in tree.tables)])
    place = np.zeros(int(starts[-1]) + 1, np.int64)
    for name, start in zip(tree.tables, starts):
        place[start + orders[name]] = start + 1 + np.arange(len(orders[name]))
    # The last entry stands for none.
    return {name: place[tree.parents[name][orders[name]]] for name in tree.tables}


def results_json(results: Results, content: Content, tables: Sequence[str]) -> dict[str, Any]:
    """Return what the script of the page needs."""
    number = {name: at for at, name in enumerate(tables)}
    trees = []
    for tree in results.trees:
        own = [content.table_named(name) for name in tree.tables]
        names = {
            name: [each.table.variables.index(called) for each, called in zip(own, several)]
            for name, several in tree.names.items()
        }
        trees.append({"tables": [number[name] for name in tree.tables], "names": names})
    return {
        "trees": trees,
        "z": NormalDist().inv_cdf((1 + content.confidence) / 2),
        "note": results.note,
        "complete": results.complete,
        "statistics": _statistics(results, content),
        "ranked": number.get(_ranked(content), 0),
        "map": _map(content, number),
    }


def heading(entry: Entry) -> str:
    """The title of a column with its unit."""
    unit = _own_unit(entry)
    return f"{entry.title} ({unit})" if unit else entry.title


def _statistics(results: Results, content: Content) -> list[dict[str, Any]]:
    """What can be added up: a name in a query, once."""
    found: dict[tuple[int, str], str] = {}
    for table in content.tables:
        titles = {entry.name: heading(entry) for entry in table.columns}
        for name in table.halves:
            found.setdefault((results.queries[table.name], name), titles[name])
    return [{"query": query, "name": name, "title": title} for (query, name), title in found.items()]


def _ranked(content: Content) -> str:
    """The table whose largest cells are shown first."""
    listed = [each for each in content.tables if each.table.variables and each.table.keys]
    shown = [each for each in listed if _has_intervals(each)] or listed
    enough = [each for each in shown if each.data.num_rows >= FEWEST] or shown
    return min(enough, key=lambda each: (len(each.table.keys), each.data.num_rows)).name if enough else ""


def _has_intervals(table: DescribedTable) -> bool:
    return any(f"{name}_low" in table.data.column_names for name in table.table.variables)


# Headline numbers: the best estimate of the whole from all tables, where they form a tree; otherwise the grand total where there
# is one, or the sum of the coarsest table.


def headlines(content: Content, results: Results | None = None) -> list[dict[str, str]]:
    """Return each statistic's total with its interval, where it exists."""
    results = Results() if results is None else results
    told = [each for each in content.tables if each.table.variables]
    by_size = sorted(told, key=lambda each: (each.data.num_rows, not _has_intervals(each)))
    found: dict[str, dict[str, str]] = {}
    for table in by_size:
        for entry in table.columns:
            if entry.name in table.table.variables and entry.name not in found:
                said = _headline(content, table, entry, results)
                if said is not None:
                    found[entry.name] = {"title": entry.title, "unit": _counted(_own_unit(entry)), **said}
    return list(found.values())


def _headline(content: Content, table: DescribedTable, entry: Entry, results: Results) -> dict[str, str] | None:
    best = results.total(table.name, entry.name)
    # A single number that was made to add up has an interval of its own.
    if best is not None and (table.data.num_rows > 1 or value_column(table.table, entry.name) == entry.name):
        return _with_reach(content, table, entry.name, best) | {"of": "best estimate from all tables"}
    return _grand_total(table, entry) if table.data.num_rows == 1 else _summed(content, table, entry, results)


def _counted(unit: str) -> str:
    """Return a unit behind a number, multiplied if it begins with one."""
    return f"\N{MULTIPLICATION SIGN} {unit}" if unit[:1].isdigit() else unit


def _own_unit(entry: Entry) -> str:
    return "" if entry.unit.casefold() == entry.title.casefold() else entry.unit


def _grand_total(table: DescribedTable, entry: Entry) -> dict[str, str] | None:
    row = table.data.to_pylist()[0]
    column = value_column(table.table, entry.name)
    value, low, high = (row.get(column + end) for end in ("", "_low", "_high"))
    return None if value is None else _rounded(value, low, high) | {"of": ""}


def _summed(content: Content, table: DescribedTable, entry: Entry, results: Results) -> dict[str, str] | None:
    if entry.name not in table.halves or table.coarser:
        return None
    alike = [table]
    if results.complete:
        # Keys that list every cell: each table adds up to the same, and the most accurate one is taken.
        same = [each for each in content.tables if entry.name in each.halves and each.name in results.queries]
        alike = [each for each in same if results.queries[each.name] == results.queries[table.name]]
    sums = [(_plain_sum(each, entry.name), each) for each in alike]
    total, chosen = min(sums, key=lambda pair: pair[0].sd)
    told = _with_reach(content, chosen, entry.name, total)
    return told | {"of": f"all {chosen.data.num_rows:,} cells of {chosen.title}"}


def _plain_sum(table: DescribedTable, name: str) -> Total:
    values, sds = (numpy_of(table.data.column(name + end)).astype(np.float64) for end in ("", "_sd"))
    return Total(value=float(values.sum()), sd=float(np.sqrt(np.sum(sds**2))), largest=1.0)


def _with_reach(content: Content, table: DescribedTable, name: str, total: Total) -> dict[str, str]:
    errors = table.reaches.get(name, NormalDist().inv_cdf((1 + content.confidence) / 2))
    reach = errors * total.sd + table.halves[name] * total.largest
    return _rounded(total.value, total.value - reach, total.value + reach)


def _rounded(value: float, low: float | None, high: float | None) -> dict[str, str]:
    """Return a number and its interval in the digits that mean something: to a twentieth of the interval."""
    if low is None or high is None:
        return {"value": cell_text(value), "interval": ""}
    told = [meaningful_text(each, (high - low) / 20) for each in (value, low, high)]
    return {"value": told[0], "interval": f"{told[1]} to {told[2]}"}


# Tiles for the states, where the codes of a table are those of the states.


TILES: dict[str, list[Any]] = json.loads(
    files("recordwise.release.page").joinpath("scripts", "tiles.json").read_text("utf-8")
)
"""For each code of a state its letters, name, column and row."""
STATES = ("state", "st", "fipstate", "statefp", "state_code")
MOST_STATES = 56
LEAST_STATES = 8


def _map(content: Content, number: Mapping[str, int]) -> dict[str, Any] | None:
    """Return the table by state and its tiles; codes that are called something else are no states."""
    for table in content.tables:
        keys = table.table.keys
        if (
            len(keys) != 1
            or keys[0].casefold() not in STATES
            or not pa.types.is_string(table.data.column(keys[0]).type)
        ):
            continue
        codes, labels = table.data.column(keys[0]).to_pylist(), content.words.values(keys[0])
        if not (LEAST_STATES <= len(codes) <= MOST_STATES and sum(code in TILES for code in codes) >= len(codes) - 5):
            continue
        tiles = {code: TILES[code] for code in codes if code in TILES}
        if all(labels.get(code, name) in (name, short) for code, (short, name, *_) in tiles.items()):
            places = {code: [short, *place] for code, (short, _, *place) in tiles.items()}
            return {"table": number[table.name], "key": keys[0], "tiles": places}
    return None
