"""Which tests are run against a bug: those that reach its block, cheapest first; then all of those; then wider.

What the last ``python -m mutants.reach`` found is used for files that have changed since, too: a block that it does not know is
looked up as its function, a function as its file, a file as its room.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mutants.catalogue import PACKAGE, ROOT
from mutants.reach import KEPT, blocks_of
from mutants.sites import Site

FIRST_SECONDS, MORE_SECONDS, WIDER_SECONDS = 6.0, 40.0, 15.0
"""Of tests, as long as they took when they were looked at, in the three stages."""
OF_ONE_FUNCTION = 3
"""So many of the cases of one test in the first stage."""
SPARK = "engines/spark/"
SPARK_TESTS = (
    "tests/engines/test_spark_engine.py",
    "tests/engines/test_spark_quiet.py",
    "tests/engines/test_totals.py",
    "tests/engines/test_sources_in_plans.py",
    "tests/engines/test_code_levels.py",
    "tests/engines/test_collapse.py",
    "tests/engines/test_validation.py",
    "tests/session/test_both_engines.py",
)
"""Java takes long to start: only bugs in Spark's own room are run against tests on Spark."""
SPARK_SECONDS = 120.0

Rows = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Stage:
    """Tests that are run together."""

    tests: tuple[str, ...]
    seconds: float
    spark: bool = False


class Reach:
    """What each test reaches."""

    def __init__(self, kept: Path = KEPT, *, root: Path = ROOT) -> None:
        if not kept.exists():
            raise ValueError(f"{kept} is missing: make it by python -m mutants.reach")
        with np.load(kept) as data:
            blocks = [tuple(each) for each in data["blocks"].tolist()]
            passed = data["passed"]
            self.tests = data["tests"][passed].tolist()
            self.seconds = data["seconds"][passed]
            self._marks = np.unpackbits(data["marks"][passed], axis=1, count=len(blocks)).astype(bool)
        self._root = root
        self._index: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for number, (file, function, line) in enumerate(blocks):
            outer = function.rpartition(".")[0]
            for key in {(file, function, line), (function, line), (file, function), (file, outer, "class"), (file,)}:
                self._index[key].append(number)
            self._index["function", function].append(number)
        self._cost = self.seconds * (1 + self._marks.sum(axis=1) / 300)
        """A test of little is more likely to notice than one of everything."""

    def _reaching(self, blocks: Sequence[int]) -> Rows:
        return np.flatnonzero(self._marks[:, list(blocks)].any(axis=1))

    def _first_known(self, *keys: tuple[str, ...]) -> Rows:
        for key in keys:
            if key in self._index and (rows := self._reaching(self._index[key])).size:
                return rows
        return np.array([], np.int64)

    def near(self, site: Site) -> Rows:
        """Tests that reach the bug, as closely as is known."""
        line = line_in_function(self._root / PACKAGE / site.file, site)
        if line is None:
            rows = self._reaching(self._users(site))
            return rows if rows.size else self._first_known((site.file, site.function, "class"), (site.file,))
        file, function = site.file, site.function
        return self._first_known(
            (file, function, str(line)), (function, str(line)), (file, function), ("function", function)
        )

    def _users(self, site: Site) -> list[int]:
        """Blocks of functions that name what is defined outside of functions."""
        names = {site.function.rpartition(".")[2]} if site.function else assigned(site.statement)
        users = users_of(self._root)
        return [
            number
            for name in names
            for file, function in users.get(name, ())
            for number in self._index.get((file, function), ())
        ]

    def wide(self, site: Site) -> Rows:
        """Tests of its function and file, of its room, and of what reaches its file."""
        room = site.file.partition("/")[0].removesuffix(".py")
        in_room = np.array([test.startswith(f"tests/{room}/") for test in self.tests])
        of_file = self._first_known((site.file,))
        return np.union1d(of_file, np.flatnonzero(in_room)).astype(np.int64)

    def stages(self, site: Site, without: frozenset[str] = frozenset(), *, all_tests: bool = False) -> list[Stage]:
        """Few cheap tests, then those that reach it too, as many as fit or all of them, then wider."""
        near = [row for row in self._cheapest(self.near(site)) if self.tests[row] not in without]
        cases: dict[str, int] = defaultdict(int)
        few: list[int] = []
        more: list[int] = []
        for row in near:
            name = self.tests[row].partition("[")[0]
            (few if cases[name] < OF_ONE_FUNCTION else more).append(row)
            cases[name] += 1
        first, rest = self._within(few, FIRST_SECONDS)
        later = list(self._batches(sorted([*rest, *more], key=lambda row: self._cost[row])))
        known = {*near, *(row for row in range(len(self.tests)) if self.tests[row] in without)}
        third, _ = self._within([row for row in self._cheapest(self.wide(site)) if row not in known], WIDER_SECONDS)
        found = [self._stage(rows) for rows in (first, *(later if all_tests else later[:1]), third) if rows]
        trusted = not any(each.startswith(SPARK_TESTS) for each in without)
        return (
            [*found, Stage(SPARK_TESTS, SPARK_SECONDS, spark=True)]
            if site.file.startswith(SPARK) and trusted
            else found
        )

    def _cheapest(self, rows: Rows) -> list[int]:
        return [int(row) for row in rows[np.argsort(self._cost[rows], kind="stable")]]

    def _within(self, rows: Sequence[int], seconds: float) -> tuple[list[int], list[int]]:
        """As many as fit, at least one, and the rest."""
        total, taken = 0.0, 0
        for row in rows:
            total += float(self.seconds[row]) + 0.01
            if taken and total > seconds:
                break
            taken += 1
        return list(rows[:taken]), list(rows[taken:])

    def _batches(self, rows: Sequence[int]) -> Iterator[list[int]]:
        """All of them, in parts of so many seconds that one that does not end is soon known."""
        while rows:
            part, rows = self._within(rows, MORE_SECONDS)
            yield part

    def _stage(self, rows: Iterable[int]) -> Stage:
        """Tests of one file together and in its order, because they may share what they open."""
        rows = list(rows)
        files: dict[str, list[int]] = defaultdict(list)
        for row in rows:
            files[self.tests[row].partition("::")[0]].append(row)
        ordered = [row for group in files.values() for row in sorted(group)]
        return Stage(tuple(self.tests[row] for row in ordered), float(self.seconds[ordered].sum()))


@cache
def blocks_in(path: Path) -> list[tuple[str, int, int, int]]:
    """Function, first line of the block in it, and the lines it covers."""
    covered = []
    tree = ast.parse(path.read_bytes())
    starts = defaultdict(list)
    found = blocks_of(tree, path.name)
    for _, body, place in found:
        starts[id(body)].append(place)
    for block, body, place in found:
        later = [each for each in starts[id(body)] if each > place]
        last = body[min(later, default=len(body)) - 1]
        covered.append((block.function, block.line, body[place].lineno, last.end_lineno or last.lineno))
    return covered


def line_in_function(path: Path, site: Site) -> int | None:
    """Of the block that holds a site, counted from its function; none outside of functions."""
    inside = [each for each in blocks_in(path) if each[0] == site.function]
    if not inside:
        return None
    holding = [each for each in inside if not site.header and each[2] <= site.line <= each[3]]
    return min(holding or inside[:1], key=lambda each: each[3] - each[2])[1]


def assigned(statement: str) -> set[str]:
    """The names that a statement gives a value."""
    node = ast.parse(statement).body[0] if not statement.startswith(("class ", "def ")) else None
    targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
    return {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}


@cache
def users_of(root: Path) -> dict[str, set[tuple[str, str]]]:
    """By name, the functions in which it stands."""
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for path in sorted((root / PACKAGE).rglob("*.py")):
        file = path.relative_to(root / PACKAGE).as_posix()
        for block, body, place in blocks_of(ast.parse(path.read_bytes()), file):
            for node in (each for statement in body[place:] for each in ast.walk(statement)):
                if isinstance(node, ast.Name | ast.Attribute):
                    found[node.id if isinstance(node, ast.Name) else node.attr].add((file, block.function))
    return found
