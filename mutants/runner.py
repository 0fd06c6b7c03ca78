"""Runs bugs side by side and counts who was noticed."""

import queue
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from mutants.bench import Bench
from mutants.catalogue import ROOT, Mutant

KILLED = ("failed", "endless", "crashed")


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one bug."""

    mutant: Mutant
    outcome: str
    seconds: float

    @property
    def killed(self) -> bool:
        return self.outcome in KILLED


class Benches:
    """As many copies as may work side by side."""

    def __init__(self, folder: Path, jobs: int, *, root: Path = ROOT) -> None:
        self._free: queue.Queue[Bench] = queue.Queue()
        for number in range(jobs):
            self._free.put(Bench(folder / str(number), root=root))

    @contextmanager
    def one(self) -> Iterator[Bench]:
        bench = self._free.get()
        try:
            yield bench
        finally:
            self._free.put(bench)

    def passes(self, tests: tuple[str, ...]) -> bool:
        with self.one() as bench:
            return bench.passes(tests)

    def result(self, mutant: Mutant) -> Result:
        with self.one() as bench:
            begun = monotonic()
            return Result(mutant, bench.outcome(mutant), monotonic() - begun)


def run(mutants: Sequence[Mutant], *, jobs: int, tell: Callable[[str], None], root: Path = ROOT) -> list[Result]:
    """What became of each; refused where tests fail without any bug, because then they prove nothing."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        benches = Benches(Path(folder), jobs, root=root)
        before = {pool.submit(benches.passes, tests): tests for tests in by_file(mutants, root)}
        failing = [tests for job, tests in _finished(before, "tests without a bug", tell) if not job.result()]
        if failing:
            raise ValueError(f"fail without any bug: {'; '.join(' '.join(tests) for tests in failing)}")
        after = {pool.submit(benches.result, mutant): mutant for mutant in mutants}
        found = {mutant.name: job.result() for job, mutant in _finished(after, "bugs", tell)}
    return [found[mutant.name] for mutant in mutants]


def by_file(mutants: Sequence[Mutant], root: Path = ROOT) -> list[tuple[str, ...]]:
    """All tests that are named, those of one file together and in its order, as the tests of a file may share what they open."""
    named = {test for mutant in mutants for test in mutant.tests}
    files = sorted(set(map(_file, named)))
    return [tuple(sorted((test for test in named if _file(test) == file), key=_place(root / file))) for file in files]


def _file(test: str) -> str:
    return test.partition("::")[0]


def _place(path: Path) -> Callable[[str], int]:
    """Where a test begins in its file."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return lambda test: text.find(f"def {test.partition('::')[2].partition('[')[0]}(")


def _finished(
    jobs: dict[Future[Any], Any], what: str, tell: Callable[[str], None]
) -> Iterator[tuple[Future[Any], Any]]:
    for count, job in enumerate(as_completed(jobs), start=1):
        tell(f"{what}: {count} of {len(jobs)}")
        yield job, jobs[job]
