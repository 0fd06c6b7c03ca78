"""Tests side by side in forked processes: ``pytest --workers 3`` collects once and forks what runs the tests.

With pytest-xdist every process collects for itself, which takes a fifth of the suite's time. A worker asks for the next
group of tests whenever it is done with one, so none waits for another. A worker that dies fails the test it was running,
and another one takes its place.
"""

import os
import traceback
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import groupby
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pytest

Group = tuple[int, ...]


IDLE = ("jemalloc_bg_thd", "polars-ooc-clea")
"""Threads that pyarrow and polars start when they are imported: they hold nothing that a forked process would wait for."""


def other_threads() -> list[str]:
    """The names of further threads, those that Python does not know included; none where nobody can tell."""
    others = [path for path in Path("/proc/self/task").glob("[0-9]*") if path.name != str(os.getpid())]
    return [name for path in others if (name := path.joinpath("comm").read_text().strip()) not in IDLE]


class Sender:
    """In a worker: hands every report to the process that collected."""

    def __init__(self, config: pytest.Config, link: Connection) -> None:
        self._config, self._link = config, link

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        self._link.send(("begun", (nodeid, location)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._link.send(("report", data))

    def pytest_runtest_logfinish(self, nodeid: str, location: Any) -> None:
        self._link.send(("ended", (nodeid, location)))


def handed(link: Connection) -> Iterator[int]:
    """Yield the numbers of tests, as the process that collected hands them out."""
    while True:
        link.send(("next", None))
        group = link.recv()
        if not group:
            return
        yield from group


def work(session: pytest.Session, link: Connection, folder: Path) -> None:
    """Run tests until none is left. Output, temporary folders and reports are the worker's own."""
    config = session.config
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(Sender(config, link))
    config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]
    numbers = handed(link)
    current = next(numbers, None)
    while current is not None:
        following = None if session.shouldfail or session.shouldstop else next(numbers, None)
        upcoming = None if following is None else session.items[following]
        config.hook.pytest_runtest_protocol(item=session.items[current], nextitem=upcoming)
        current = following
    # What was never thrown away complains now, and that counts as a failure.
    config._ensure_unconfigure()


class Worker:
    """A forked process, and what it is doing."""

    def __init__(self, session: pytest.Session, folder: Path) -> None:
        folder.mkdir()
        self.link, theirs = Pipe()
        self.begun: tuple[str, Any] | None = None
        self.left: deque[int] = deque()
        self.pid = os.fork()
        if not self.pid:
            self.link.close()
            self._become(session, theirs, folder)
        theirs.close()

    @staticmethod
    def _become(session: pytest.Session, link: Connection, folder: Path) -> None:
        try:
            work(session, link, folder)
            link.send(("done", None))
        except BaseException:
            link.send(("broken", traceback.format_exc()))
        finally:
            os._exit(0)

    def joined(self) -> str:
        """Wait for its end, and say what ended it."""
        self.link.close()
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return f"signal {-code} ended the process" if code < 0 else f"the process ended with {code}"


class Workers:
    """The plugin: runs what was collected in forked processes, and shows their reports as its own."""

    def __init__(self, config: pytest.Config, count: int, key: Callable[[pytest.Item], Hashable]) -> None:
        self._config, self._count, self._key = config, count, key
        self._waiting: deque[Group] = deque()
        self._running: list[Worker] = []
        self._started = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.config.option.collectonly or session.testsfailed or len(session.items) < 2:
            return None
        if threads := other_threads():
            raise session.Interrupted(
                f"threads run after collecting, which no forked process has: {', '.join(threads)}"
            )
        if terminal := self._config.pluginmanager.getplugin("terminalreporter"):
            # Tests of several files come in turns: a line for each file would be a line for each test.
            terminal.showfspath = False
        self._waiting = deque(groups(session.items, self._key))
        for _ in range(min(self._count, len(self._waiting))):
            self._start(session)
        while self._running:
            for link in wait([worker.link for worker in self._running]):
                worker = next(each for each in self._running if each.link is link)
                try:
                    self._answer(session, worker, *worker.link.recv())
                except EOFError:
                    self._died(session, worker)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        return True

    def _start(self, session: pytest.Session) -> None:
        base = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        self._started += 1
        self._running.append(Worker(session, base / f"worker{self._started}"))

    def _answer(self, session: pytest.Session, worker: Worker, kind: str, told: Any) -> None:
        hook = self._config.hook
        if kind == "next":
            stopped = session.shouldfail or session.shouldstop
            group = () if stopped or not self._waiting else self._waiting.popleft()
            worker.left.extend(group)
            worker.link.send(group)
        elif kind == "begun":
            worker.begun = told
            worker.left.popleft()
            hook.pytest_runtest_logstart(nodeid=told[0], location=told[1])
        elif kind == "report":
            hook.pytest_runtest_logreport(report=hook.pytest_report_from_serializable(config=self._config, data=told))
        elif kind == "ended":
            worker.begun = None
            hook.pytest_runtest_logfinish(nodeid=told[0], location=told[1])
        else:
            self._running.remove(worker)
            worker.joined()
            if kind == "broken":
                self._failed(("a worker", ("tests", None, "a worker")), told)

    def _died(self, session: pytest.Session, worker: Worker) -> None:
        self._running.remove(worker)
        why = worker.joined()
        self._failed(worker.begun or ("a worker", ("tests", None, "a worker")), f"while this test ran, {why}")
        if worker.left:
            self._waiting.appendleft(tuple(worker.left))
        if self._waiting:
            self._start(session)

    def _failed(self, test: tuple[str, Any], why: str) -> None:
        report = pytest.TestReport(test[0], test[1], {}, "failed", why, "call")
        self._config.hook.pytest_runtest_logreport(report=report)


def groups(items: Sequence[pytest.Item], key: Callable[[pytest.Item], Hashable]) -> Iterator[Group]:
    """Yield the numbers of neighbors with one key, which are run by one process."""
    for _, numbers in groupby(range(len(items)), key=lambda number: key(items[number])):
        yield tuple(numbers)
