"""Fixtures for every folder: the engines, by one parameter."""

import functools
import gc
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import typer.testing

# Before numpy is imported: with a worker on each core, threads of its linear algebra would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# A hundred commands that tests start find the package compiled, instead of compiling it each.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# They write as they would anywhere: without a buffer, Python forgets what could not be written.
os.environ.pop("PYTHONUNBUFFERED", None)

import build
from engine_choice import EVERYWHERE, Choice, as_installed, local_spark
from recordwise.plan.sql.gate import _parser
from warm_process import Warm
from workers import Workers

NEEDS = {
    "browser": {"chromium"},
    "process": {"warm", "installed_package", "server", "own_server"},
}
"""Which marker a test gets by the fixtures that it uses; Spark is recognized by a parameter too."""
CASES: Counter[tuple[str, str]] = Counter()
"""Of each test, by what they need, as far as they are collected."""
typer.testing._get_command = functools.cache(typer.testing._get_command)  # type: ignore[attr-defined]
"""The command line is made of its forty commands once, and not for each of the thousands that tests run."""
gc.disable()
"""Nothing is thrown away while tests are collected, and a million objects are looked through 28 times: a third of the time."""


def pytest_collection_finish() -> None:
    """The tests themselves stay until the end: the collector need not look at them again.

    The parser of SQL has threads, which no forked process would have; each makes its own.
    """
    _parser.cache_clear()
    gc.freeze()
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """What is not looked at would be reported as leaked when Python ends; pytest's own two looks through everything come before."""
    config.add_cleanup(gc.unfreeze)
    if (count := config.getoption("--workers")) > 1:
        config.pluginmanager.register(Workers(config, count, together))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workers", type=int, default=1, metavar="N", help="run tests in N forked processes")
    parser.addoption(
        "--shuffled", type=int, metavar="SEED", help="run what needs no Spark in the random order of a seed"
    )


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.getoption("--shuffled")
    return None if seed is None else f"random order; for the same again: --shuffled {seed}"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what needs more than this process."""
    used = set(getattr(item, "fixturenames", ()))
    for name, fixtures in NEEDS.items():
        if fixtures & used:
            item.add_marker(name)
    if item.path.parent.name == "browser":
        item.add_marker("browser")
    if needs_spark(item):
        item.add_marker("spark")
    if not item.get_closest_marker("slow") and is_one_of_many(item):
        item.add_marker("slow")


def is_one_of_many(item: pytest.Item) -> bool:
    """Whether ``make test`` leaves a case to ``make test-slow``: all but one on Spark, two thirds of a sampled test.

    A case that is asked for by its name runs.
    """
    if any("[" in asked for asked in item.config.args):
        return False
    own = item.nodeid.partition("[")[0]
    if item.get_closest_marker("spark"):
        CASES[own, "spark"] += 1
        return CASES[own, "spark"] > 1 and not os.environ.get(EVERYWHERE)
    if item.get_closest_marker("sampled"):
        # Of each test another third, so that every mechanism and law is in some of them.
        CASES[own, "sampled"] += 1
        return (CASES[own, "sampled"] + len(own)) % 3 > 0
    return False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let no test start a process that is not marked for it: ``make check`` leaves those out by their marks."""
    if any(item.get_closest_marker(name) for name in ("slow", "spark", "browser", "process")):
        return (yield)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(subprocess, "Popen", Refused)
        if hasattr(os, "fork"):
            patched.setattr(os, "fork", Refused)
        return (yield)


class Refused(subprocess.Popen):
    """Instead of a process, in a test that is not marked.

    On a new machine, whichever test draws first has matplotlib ask for the machine's fonts.
    """

    FONTS = ("fc-list", "system_profiler")

    def __init__(self, *given: Any, **more: Any) -> None:
        self.started = bool(given) and given[0][0] in self.FONTS
        if not self.started:
            pytest.fail("this test starts a process: mark it with pytest.mark.process")
        super().__init__(*given, **more)

    def __del__(self) -> None:
        if self.started:
            super().__del__()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes long comes first, so that nobody waits for it at the end."""
    costly = {item.path for item in items if item.get_closest_marker("costly") or item.get_closest_marker("process")}
    first = ("spark", "warm", "browser")
    items.sort(key=lambda item: first.index(key) if (key := together(item)) in first else 4 - (item.path in costly))
    if (seed := config.getoption("--shuffled")) is not None:
        left_out = [item for item in items if needs_spark(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = items[len(left_out) :]
        Random(seed).shuffle(items)


def together(item: pytest.Item) -> object:
    """Equal for tests that one process should run, because they share what takes long to start."""
    if needs_spark(item):
        return "spark"
    if "warm" in getattr(item, "fixturenames", ()):
        return "warm"
    return "browser" if item.get_closest_marker("browser") else item.path


def needs_spark(item: pytest.Item) -> bool:
    chosen = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return "spark_session" in getattr(item, "fixturenames", ()) or any(
        isinstance(value, str) and value == "spark" for value in chosen
    )


@pytest.fixture(scope="session")
def spark_session():
    """One Spark for the whole test process, started when a test first asks for it."""
    session = local_spark()
    yield session
    session.stop()


@pytest.fixture
def spark_as_installed(request):
    """Where compiled statements and several partitions are the point: Spark has the settings it is installed with."""
    if needs_spark(request.node):
        with as_installed(request.getfixturevalue("spark_session")):
            yield
    else:
        yield


@pytest.fixture(scope="session", params=["duckdb", "spark"])
def opens(request):
    """Opens a table: ``opens(source, schema)``. What is asked of it must have one answer."""
    spark = request.getfixturevalue("spark_session") if request.param == "spark" else None
    return Choice(request.param, spark)


@pytest.fixture
def on_both_engines(opens, monkeypatch):
    """``build.session`` opens its tables on each engine in turn."""
    monkeypatch.setattr(build, "HOW", opens.session_options())


@pytest.fixture(scope="session")
def warm():
    """Scripts in processes of their own that need not import anything first."""
    found = Warm()
    yield found
    found.close()


@pytest.fixture(scope="session")
def installed_package(tmp_path_factory) -> Path:
    """``tests/own_package``, installed into a folder of its own."""
    folder = tmp_path_factory.mktemp("installed")
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", str(folder)]
    source = Path(__file__).parent / "own_package"
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(source)], check=True, timeout=120)
    return folder


@pytest.fixture
def own_package(installed_package, monkeypatch) -> Path:
    """A package of a user's own is installed for the length of one test."""
    monkeypatch.syspath_prepend(installed_package)
    return installed_package
