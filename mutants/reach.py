"""Which test reaches which block of the package, and how long it takes: ``python -m mutants.reach`` runs all tests once.

A copy of the package marks every block that is entered in a file that all processes share, so commands that a test starts count as
well. What a fixture reaches counts for all tests that ask for it. The answer is kept in ``.mutants/reach.npz``, outside git.
"""

import argparse
import ast
import json
import mmap
import queue
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest

from mutants.catalogue import PACKAGE, ROOT
from mutants.forked import Forked, Job

KEPT = ROOT / ".mutants" / "reach.npz"
MARKER = "recordwise_seen"
COMPILED = "njit"
"""A file with this word is compiled by numba, which knows no marks."""
LEFT_OUT = ("tests/mutants", "tests/browser", "tests/load", "tests/supply")
ON_SPARK, NOT_SPARK = "spark", "not spark"
SECONDS = 1200.0


@dataclass(frozen=True, slots=True)
class Block:
    """Statements that are entered together."""

    file: str
    function: str
    """The qualified name; empty for a module."""
    line: int
    """Of the first statement, counted from the first line of the function."""


def blocks_of(tree: ast.Module, file: str) -> list[tuple[Block, list[ast.stmt], int]]:
    """Every block with the list of statements it is in and where in that list it begins."""
    found: list[tuple[Block, list[ast.stmt], int]] = []

    def function(node: ast.FunctionDef | ast.AsyncFunctionDef, outer: str) -> None:
        name = f"{outer}{node.name}"
        documented = ast.get_docstring(node, clean=False) is not None and len(node.body) > 1
        statements(node.body, int(documented), name, node.lineno)
        inside(node.body, f"{name}.<locals>.")

    def statements(body: list[ast.stmt], start: int, name: str, first: int) -> None:
        found.append((Block(file, name, body[start].lineno - first), body, start))
        for place, statement in enumerate(body):
            lists = list(nested(statement))
            for each in lists:
                statements(each, 0, name, first)
            if lists and leaves(statement) and place + 1 < len(body):
                found.append((Block(file, name, body[place + 1].lineno - first), body, place + 1))

    def inside(body: Sequence[ast.AST], outer: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                function(node, outer)
            elif isinstance(node, ast.ClassDef):
                inside(node.body, f"{outer}{node.name}.")
            else:
                inside(list(ast.iter_child_nodes(node)), outer)

    inside(tree.body, "")
    return found


def nested(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The lists of statements in a statement, of which not every one is entered with it."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for name in ("body", "orelse", "finalbody"):
        if body := getattr(statement, name, []):
            yield body
    for part in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
        yield part.body


def leaves(statement: ast.stmt) -> bool:
    """Whether the statements behind it may not be reached although it was."""
    return any(isinstance(node, ast.Return | ast.Raise | ast.Break | ast.Continue) for node in ast.walk(statement))


def marked(text: str, file: str, first: int) -> tuple[str, list[Block]]:
    """The text of a file in which the blocks, numbered from ``first``, are marked when they are entered."""
    tree = ast.parse(text)
    if COMPILED in text:
        return text, []
    found = blocks_of(tree, file)
    # Later places of a list first, so that the earlier ones stay where they are.
    for number, (_, body, place) in sorted(enumerate(found, start=first), key=lambda each: -each[1][2]):
        body.insert(place, ast.parse(f"__seen__[{number}] = 1").body[0])
    start = int(ast.get_docstring(tree, clean=False) is not None)
    while (
        start < len(tree.body) and isinstance(node := tree.body[start], ast.ImportFrom) and node.module == "__future__"
    ):
        start += 1
    tree.body.insert(start, ast.parse(f"from {MARKER} import __seen__").body[0])
    return ast.unparse(ast.fix_missing_locations(tree)), [block for block, _, _ in found]


def marked_copy(folder: Path, root: Path = ROOT) -> list[Block]:
    """A copy of ``src`` in ``folder`` that marks what is entered, in the file ``seen`` beside it."""
    shutil.copytree(root / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    blocks: list[Block] = []
    package = folder / PACKAGE
    for path in sorted(package.rglob("*.py")):
        text, more = marked(path.read_text(encoding="utf-8"), path.relative_to(package).as_posix(), len(blocks))
        path.write_text(text, encoding="utf-8")
        blocks += more
    return blocks


def with_marks(folder: Path, name: str, size: int) -> Path:
    """A file of marks."""
    path = folder / name
    path.write_bytes(bytes(size))
    (folder / "src" / f"{MARKER}.py").write_text(
        "import mmap, os\n"
        f"with open(os.environ.get('RECORDWISE_SEEN', {str(path)!r}), 'r+b') as file:\n"
        "    __seen__ = mmap.mmap(file.fileno(), 0)\n"
    )
    return path


class Recorder:
    """A plugin of pytest: after each test, which blocks it and its fixtures reached."""

    def __init__(self, seen: str, out: str) -> None:
        with open(seen, "r+b") as file:
            self._seen = mmap.mmap(file.fileno(), 0)
        self._out = Path(out)
        self._fixtures: dict[str, Any] = {}
        self._passed: dict[str, bool] = {}
        self._begun = 0.0
        self._found: dict[str, tuple[float, list[int]]] = {}

    def _taken(self) -> np.ndarray[Any, Any]:
        marks = np.frombuffer(bytes(self._seen), np.uint8).copy()
        self._seen[:] = bytes(len(marks))
        return marks

    def pytest_runtest_logstart(self) -> None:
        self._begun = monotonic()
        self._taken()

    @staticmethod
    def _name(definition: Any) -> str:
        return f"{definition.baseid}::{definition.argname}"

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        before = self._taken()
        try:
            return (yield)
        finally:
            marks = self._taken()
            if fixturedef.scope != "function":
                name = self._name(fixturedef)
                self._fixtures[name] = self._fixtures.get(name, 0) | marks
            self._seen[:] = (before | marks).tobytes()

    def pytest_runtest_logreport(self, report: Any) -> None:
        passed = report.outcome == "passed"
        self._passed[report.nodeid] = self._passed.get(report.nodeid, True) and passed

    def pytest_runtest_teardown(self, item: Any) -> None:
        marks = self._taken()
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            for definition in definitions:
                marks |= self._fixtures.get(self._name(definition), 0)
        seconds = monotonic() - self._begun
        self._found[item.nodeid] = seconds, np.flatnonzero(marks).tolist()

    def pytest_sessionfinish(self) -> None:
        told = [
            {"test": test, "seconds": seconds, "passed": self._passed.get(test, False), "blocks": blocks}
            for test, (seconds, blocks) in self._found.items()
        ]
        self._out.write_text(json.dumps(told))


def options(source: Path, scratch: Path, *, spark: bool = False) -> list[str]:
    """What every run of pytest against another copy of the package is told."""
    # Libraries are imported before pytest could rewrite their assertions; it need not say so.
    quiet = ["-W", "ignore::pytest.PytestAssertRewriteWarning", "--hypothesis-seed=0", f"--basetemp={scratch}/tests"]
    chosen = ON_SPARK if spark else NOT_SPARK
    return ["-q", "-n0", "-p", "no:cacheprovider", "-o", f"pythonpath={source} tests .", "-k", chosen, *quiet]


class Collector:
    """Runs files of tests, each in a process of its own, and gathers what they reach."""

    def __init__(self, folder: Path, jobs: int, root: Path) -> None:
        self._folder, self._root = folder, root
        self.blocks = marked_copy(folder, root)
        self._free: queue.Queue[tuple[int, Forked, Path]] = queue.Queue()
        for number in range(jobs):
            seen = with_marks(folder, f"seen{number}", len(self.blocks))
            self._free.put((number, Forked(root), seen))

    def close(self) -> None:
        while not self._free.empty():
            self._free.get()[1].close()

    def file(self, path: Path) -> list[dict[str, Any]]:
        """What each test of a file reaches; nothing if none could run."""
        number, forked, seen = self._free.get()
        try:
            scratch = self._folder / f"scratch{number}"
            scratch.mkdir(exist_ok=True)
            out = self._folder / f"out{number}.json"
            out.unlink(missing_ok=True)
            name = path.relative_to(self._root).as_posix()
            source = self._folder / "src"
            environment = {
                "PYTHONPATH": str(source),
                "RECORDWISE_SEEN": str(seen),
                "HYPOTHESIS_STORAGE_DIRECTORY": f"{scratch}/hypothesis",
            }
            told = {"seen": str(seen), "out": str(out)}
            words = (*options(source, scratch), name)
            plugin = "mutants.reach:Recorder"
            forked.run(
                Job(
                    words=words,
                    source=str(source),
                    seconds=SECONDS,
                    environment=environment,
                    plugin=plugin,
                    options=told,
                )
            )
            shutil.rmtree(scratch, ignore_errors=True)
            return list(json.loads(out.read_text())) if out.exists() else []
        finally:
            self._free.put((number, forked, seen))


def collect(kept: Path = KEPT, *, root: Path = ROOT, jobs: int = 2, only: Sequence[str] = ()) -> list[str]:
    """Run all tests, or anew those of some files, keep what they reach, and say which files of tests told nothing."""
    files = [root / name for name in only] or [
        path
        for path in sorted((root / "tests").rglob("test_*.py"))
        if not path.relative_to(root).as_posix().startswith(LEFT_OUT)
    ]
    silent: list[str] = []
    tests: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="reach-", ignore_cleanup_errors=True) as folder:
        collector = Collector(Path(folder), jobs, root)
        if only and kept.exists():
            names = {path.relative_to(root).as_posix() for path in files}
            tests = [each for each in read(kept, collector.blocks) if each["test"].partition("::")[0] not in names]
        with ThreadPoolExecutor(jobs) as pool:
            for count, (path, told) in enumerate(zip(files, pool.map(collector.file, files)), start=1):
                name, seconds = path.relative_to(root).as_posix(), sum(each["seconds"] for each in told)
                failed = [f"NOT PASSED: {each['test']}" for each in told if not each["passed"]]
                print(f"{count} of {len(files)}: {name}: {len(told)} tests, {seconds:.0f} s", *failed, flush=True)
                tests += told
                silent += [] if told else [name]
        collector.close()
    write(kept, tests, collector.blocks)
    return silent


def write(kept: Path, tests: list[dict[str, Any]], blocks: list[Block]) -> None:
    marks = np.zeros((len(tests), len(blocks)), bool)
    for row, each in enumerate(tests):
        marks[row, each["blocks"]] = True
    kept.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        kept,
        marks=np.packbits(marks, axis=1),
        tests=np.array([each["test"] for each in tests]),
        seconds=np.array([each["seconds"] for each in tests]),
        passed=np.array([each["passed"] for each in tests]),
        blocks=np.array([(block.file, block.function, str(block.line)) for block in blocks]),
    )


def read(kept: Path, blocks: list[Block]) -> list[dict[str, Any]]:
    """What is kept, by the numbers that blocks have now; blocks that are gone are left out."""
    numbers = {(block.file, block.function, str(block.line)): number for number, block in enumerate(blocks)}
    with np.load(kept) as data:
        now = np.array([numbers.get(tuple(each), -1) for each in data["blocks"].tolist()])
        marks = np.unpackbits(data["marks"], axis=1, count=len(now)).astype(bool)
        told = zip(data["tests"].tolist(), data["seconds"].tolist(), data["passed"].tolist(), marks)
        return [
            {
                "test": test,
                "seconds": seconds,
                "passed": passed,
                "blocks": [each for each in now[row].tolist() if each >= 0],
            }
            for test, seconds, passed, row in told
        ]


def main() -> int:
    asked = argparse.ArgumentParser(
        prog="python -m mutants.reach", description="Run the tests to see what each reaches."
    )
    asked.add_argument("--jobs", type=int, default=2, help="side by side (2)")
    asked.add_argument("--out", type=Path, default=KEPT, help="where the answer is kept")
    asked.add_argument(
        "files", nargs="*", help="of tests that are run anew, such as tests/noise/test_bits.py; all by default"
    )
    given = asked.parse_args()
    for name in collect(given.out, jobs=given.jobs, only=given.files):
        print(f"told nothing: {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
