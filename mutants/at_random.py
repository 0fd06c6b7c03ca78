"""Bugs drawn at random over the whole package: ``python -m mutants.at_random --seed 1 --count 150``.

Each is one small change at one place (``sites``), run against the tests that reach it (``chosen_tests``) in a process forked from a
warm one (``forked``). What nobody noticed is shown, and counts as real until ``judged.toml`` says
otherwise. Exits 1 below the goals.
"""

import argparse
import difflib
import json
import math
import queue
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

from mutants.bench import Bench
from mutants.catalogue import PACKAGE, ROOT
from mutants.chosen_tests import SPARK_TESTS, Reach, Stage
from mutants.forked import Forked, Job
from mutants.judged import Judgment, entry_for, judgments
from mutants.reach import KEPT, options
from mutants.runner import KILLED
from mutants.sites import Site, all_sites, drawn

GUARDED = ("policy/", "noise/", "mechanisms/", "plan/", "engines/", "session/", "ledger/", "release/draw")
GUARDED_GOAL, GOAL = 0.92, 0.88
"""Of the real ones, in the rooms that the guarantee rests on and over all."""
EXTRA_SECONDS, SLOWER = 45.0, 6.0
"""A stage may take this longer than it did without a bug."""
Z = 1.959963984540054
"""The interval covers 95 %."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one bug."""

    site: Site
    outcome: str
    """``failed``, ``endless``, ``crashed`` or ``passed``."""
    by: str
    """The test that noticed."""
    tests: int
    seconds: float

    @property
    def noticed(self) -> bool:
        return self.outcome in KILLED


class Notes:
    """A plugin of pytest that tells which test failed first, and whether a file of tests could not be imported."""

    def __init__(self, out: str) -> None:
        self._out = Path(out)

    def _tell(self, what: str, where: str) -> None:
        if not self._out.exists():
            self._out.write_text(json.dumps([what, where]))

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._tell("import", report.nodeid)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._out.with_suffix(".now").write_text(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._tell("test", report.nodeid)


class WarmBench(Bench):
    """A copy of the package whose tests run in forked processes."""

    def __init__(self, folder: Path, *, root: Path = ROOT) -> None:
        super().__init__(folder, root=root)
        self._forked = Forked(root)

    def close(self) -> None:
        self._forked.close()

    def staged(self, site: Site, stages: Sequence[Stage]) -> tuple[str, str, int]:
        """The outcome, who noticed, and how many tests were asked."""
        asked = 0
        with self.planted(site) as compile_anew:
            for stage in stages:
                asked += len(stage.tests)
                outcome, by = self.stage(stage, compile_anew=compile_anew)
                if outcome != "passed":
                    return outcome, by, asked
        return "passed", "", asked

    def stage(self, stage: Stage, *, compile_anew: bool = False) -> tuple[str, str]:
        """Run tests against the copy as it is now, up to the first that fails."""
        with tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as name:
            scratch = Path(name)
            out = scratch / "told"
            code = self._pytest(stage, scratch, out, compile_anew=compile_anew)
            what, where = json.loads(out.read_text()) if out.exists() else ("", "")
            if code == 4 and what != "import":
                # Cases are named after what the package says, and the bug changed that: whole tests are named instead.
                tests = tuple(dict.fromkeys(test.partition("[")[0] for test in stage.tests))
                whole = replace(stage, tests=tests, seconds=3 * stage.seconds)
                code = self._pytest(whole, scratch, out, compile_anew=compile_anew)
                what, where = json.loads(out.read_text()) if out.exists() else ("", "")
            with suppress(FileNotFoundError):
                where = where or out.with_suffix(".now").read_text()
        if code is None:
            return "endless", where
        if code < 0:
            return "crashed", where
        return ("passed", "") if code in (0, 5) else ("failed", where)

    def _pytest(self, stage: Stage, scratch: Path, out: Path, *, compile_anew: bool) -> int | None:
        source = self._folder / "src"
        return self._forked.run(
            Job(
                words=("-x", *options(source, scratch, spark=stage.spark), *stage.tests),
                source=str(source),
                seconds=EXTRA_SECONDS + SLOWER * stage.seconds,
                environment=self._ours(str(scratch), compile_anew=compile_anew),
                plugin="mutants.at_random:Notes",
                options={"out": str(out)},
            )
        )


class Runner:
    """As many copies as work side by side, and the tests that cannot be trusted."""

    def __init__(self, folder: Path, jobs: int, reach: Reach, *, root: Path = ROOT, all_tests: bool = False) -> None:
        self._reach, self._all_tests = reach, all_tests
        self._free: queue.Queue[WarmBench] = queue.Queue()
        for number in range(jobs):
            self._free.put(WarmBench(folder / str(number), root=root))
        self._trusted: dict[str, bool] = {}

    @contextmanager
    def one(self) -> Iterator[WarmBench]:
        bench = self._free.get()
        try:
            yield bench
        finally:
            self._free.put(bench)

    def close(self) -> None:
        while not self._free.empty():
            self._free.get().close()

    def result(self, site: Site) -> Result:
        """What became of a bug. A test that fails without it, too, has noticed nothing."""
        begun = monotonic()
        without: frozenset[str] = frozenset()
        with self.one() as bench:
            while True:
                stages = self._reach.stages(site, without, all_tests=self._all_tests)
                outcome, by, asked = bench.staged(site, stages)
                if outcome == "passed" or self._trust(bench, by):
                    return Result(site, outcome, by, asked, monotonic() - begun)
                without |= {by}

    def _trust(self, bench: WarmBench, test: str) -> bool:
        """Whether a test passes without a bug, by itself."""
        if "::" not in test:
            return True
        if test not in self._trusted:
            spark = test.startswith(SPARK_TESTS) and "spark" in test
            self._trusted[test] = bench.stage(Stage((test,), 60.0, spark=spark))[0] == "passed"
        return self._trusted[test]

    @property
    def untrusted(self) -> list[str]:
        return sorted(test for test, passes in self._trusted.items() if not passes)


def run(
    sites: Sequence[Site],
    *,
    jobs: int,
    reach: Reach,
    tell: Callable[[Result, int], None],
    root: Path = ROOT,
    all_tests: bool = False,
) -> list[Result]:
    """What became of each; with ``all_tests`` every test that reaches it is asked, however long they take."""
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        runner = Runner(Path(folder), jobs, reach, root=root, all_tests=all_tests)
        try:
            with ThreadPoolExecutor(jobs) as pool:
                results = []
                for count, result in enumerate(pool.map(runner.result, sites), start=1):
                    tell(result, count)
                    results.append(result)
            for test in runner.untrusted:
                print(f"fails without any bug, so not asked: {test}")
        finally:
            runner.close()
    return results


def wilson(noticed: int, of: int) -> tuple[float, float]:
    """The interval for a share at 95 %."""
    if not of:
        return 0.0, 1.0
    share, square = noticed / of, Z**2
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = Z * math.sqrt(share * (1 - share) / of + square / (4 * of**2)) / (1 + square / of)
    return (0.0 if noticed == 0 else middle - half), (1.0 if noticed == of else middle + half)


Judged = dict[tuple[str, str, str, str, int], Judgment]


def counted(results: Iterable[Result], judged: Judged) -> list[Result]:
    """Those that are bugs: all that were noticed, and survivors unless they are judged to be none."""
    return [each for each in results if each.noticed or each.site.key not in judged or judged[each.site.key].counts]


def room(file: str) -> str:
    return file.partition("/")[0] if "/" in file else "top"


def rate_line(name: str, results: Sequence[Result], judged: Judged) -> str:
    real = counted(results, judged)
    noticed = sum(each.noticed for each in real)
    low, high = wilson(noticed, len(real))
    share = f"{noticed / len(real):6.1%} ({low:.0%} to {high:.0%})" if real else "    no bug"
    return f"{name:12} {noticed:4} of {len(real):4} noticed, {share}; {len(results) - len(real)} no bug"


def guarded(results: Iterable[Result]) -> list[Result]:
    return [each for each in results if each.site.file.startswith(GUARDED)]


def enough(results: Sequence[Result], judged: Judged) -> bool:
    """Whether both goals are reached."""
    for chosen, goal in ((guarded(results), GUARDED_GOAL), (results, GOAL)):
        real = counted(chosen, judged)
        if real and sum(each.noticed for each in real) / len(real) < goal:
            return False
    return True


def report(results: Sequence[Result], judged: Judged, root: Path = ROOT) -> Iterator[str]:
    """Survivors with their change, then the rates by room."""
    for each in results:
        known = judged.get(each.site.key)
        if not each.noticed:
            verdict = f"{known.verdict}: {known.why}" if known else "NOT JUDGED"
            yield f"{each.site.file}:{each.site.line} {each.site.function} [{each.site.operator}] {verdict}"
            yield from difference(each.site, root)
            yield ""
        elif known and not known.counts:
            yield f"{each.site.file}:{each.site.line} {each.site.function} was judged {known.verdict}, but {each.by} noticed"
    rooms: dict[str, list[Result]] = {}
    for each in results:
        rooms.setdefault(room(each.site.file), []).append(each)
    for name, group in sorted(rooms.items()):
        yield rate_line(name, group, judged)
    yield rate_line("guarded", guarded(results), judged)
    yield rate_line("all", results, judged)


def difference(site: Site, root: Path = ROOT) -> Iterator[str]:
    text = (root / PACKAGE / site.file).read_bytes().decode()
    lines = difflib.unified_diff(text.splitlines(), site.applied(text).splitlines(), lineterm="", n=1)
    yield from (f"    {line}" for line in list(lines)[3:])


def main() -> int:
    asked = argparse.ArgumentParser(
        prog="python -m mutants.at_random", description="Put random bugs into recordwise and see who notices."
    )
    asked.add_argument("--seed", type=int, required=True, help="equal seeds draw equal bugs")
    asked.add_argument("--count", type=int, default=150, help="how many (150)")
    asked.add_argument("--jobs", type=int, default=2, help="side by side (2)")
    asked.add_argument(
        "--only",
        default="",
        metavar="PREFIX",
        help="of a path below src/recordwise, such as policy/; several with commas",
    )
    asked.add_argument("--reach", type=Path, default=KEPT, help="what python -m mutants.reach found")
    asked.add_argument("--again", action="store_true", help="only what the last run of this seed did not notice")
    asked.add_argument(
        "--all-tests", action="store_true", help="with --again: ask every test that reaches it, however long they take"
    )
    asked.add_argument("--entries", type=Path, help="write unjudged survivors to this file, to be judged")
    given = asked.parse_args()
    if given.all_tests and not given.again:
        asked.error("--all-tests needs --again: it takes minutes for each bug")
    judged = judgments()
    last = KEPT.parent / f"seed-{given.seed}{given.only.replace('/', '-').replace(',', '')}.json"
    sites = [site for site in all_sites() if site.file.startswith(tuple(given.only.split(",")))]
    if given.again:
        missed = {tuple(key) for key in json.loads(last.read_text())["survived"]}
        chosen = [site for site in sites if site.key in missed]
    else:
        chosen = drawn(sites, seed=given.seed, count=given.count)
    try:
        reach = Reach(given.reach)
    except ValueError as error:
        asked.error(str(error))
    results = run(chosen, jobs=given.jobs, reach=reach, tell=tell, all_tests=given.all_tests)
    last.parent.mkdir(exist_ok=True)
    survived = [each for each in results if not each.noticed]
    last.write_text(json.dumps({"count": len(results), "survived": [each.site.key for each in survived]}))
    if given.entries:
        unjudged = [each.site for each in survived if each.site.key not in judged]
        given.entries.write_text("\n".join(map(entry_for, unjudged)))
    for line in report(results, judged):
        print(line)
    return 0 if enough(results, judged) else 1


def tell(result: Result, count: int) -> None:
    """One line for each bug as it is done."""
    site = result.site
    print(
        f"{count:4} {result.outcome:8} {result.seconds:6.1f} s {result.tests:5} tests  {site.file}:{site.line} "
        f"[{site.operator}] {site.change[:60]}  {result.by[-60:]}",
        file=sys.stderr,
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
