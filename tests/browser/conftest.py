"""A real Chromium without a window, and three pages saved as files. Screenshots are left in tests/artifacts."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import recordwise as rw
from browser.kept_pictures import ARTEFACTS
from build import generous, records, session
from recordwise.synthetic import public_keys, write_establishments
from report_releases import HOSTILE_LABELS, LABELS, OTHERS, by_industry, hostile_release, private_keys

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-pings",
]
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first is Chromium without what draws windows, and needs a quarter less processor time for the same pages."""


@dataclass
class Watched:
    """A page with everything it asked for and everything it complained about."""

    page: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Saved:
    """A release, and the address of the page it was saved with."""

    policy: rw.Policy
    parts: tuple[Any, ...]
    address: str
    firms: Any
    lattice: Any
    release: Any = None
    values: Any = None


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    missing = None if executable else "no chromium on this machine: the policy page is NOT tested in a browser"
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing = "playwright is not installed: the policy page is NOT tested in a browser"
    if missing:
        if os.environ.get("RECORDWISE_REQUIRE_ALL"):
            pytest.fail(f"{missing}, and RECORDWISE_REQUIRE_ALL is set")
        pytest.skip(missing)
    ARTEFACTS.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def saved(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Saved]:
    """A release of county by industry by the command line, thresholds by industry, and private keys."""
    folder = tmp_path_factory.mktemp("pages")
    made = {"industry": by_industry(), "private": private_keys(), "hostile": hostile_release()}
    made |= {name: make() for name, make in OTHERS.items()} | {"years": two_years(folder / "years.ledger")}
    found = {}
    for name, release in made.items():
        release.with_labels(labels=HOSTILE_LABELS if name == "hostile" else LABELS).save(folder / name)
        found[name] = Saved(
            release.policy,
            release.parts,
            (folder / name / "report.html").as_uri(),
            release.firms,
            release.lattice,
            release,
            release.values,
        )
    return found | {"demo": demo_page(folder / "demo")}


def two_years(ledger: Path) -> rw.Release:
    """A second year, with a county that is new, and the year before."""
    releases = []
    for period, counties in (("2025", ["01", "02", "03"]), ("2026", ["01", "02", "03", "04"])):
        with session(records(500), ledger, generous(), series=rw.Series(name="yearly", period=period)) as opened:
            asked = rw.query().group_by("county", keys=rw.Keys.product(county=counties)).count(rw.Gaussian(rho="0.1"))
            releases.append(opened.run(asked.sum("emp", rw.UnitSplit(at=50, rho="0.1"))))
    first, second = releases
    return second.with_history(first)


def demo_page(folder: Path) -> Saved:
    from recordwise.cli import app

    folder.mkdir()
    shutil.copyfile(Path(__file__).parent / "page_plan.toml", folder / "plan.toml")
    write_establishments(folder / "establishments.parquet", 3000)
    pq.write_table(public_keys(), folder / "keys.parquet")
    words = ["release", str(folder / "plan.toml"), "--out", str(folder / "release"), "--yes", "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    release = rw.read(folder / "release")
    return Saved(
        release.policy,
        (),
        (folder / "release" / "report.html").as_uri(),
        release.firms,
        release.lattice,
        release,
        release.values,
    )


@dataclass
class Windows:
    """Windows that stay open from test to test: a new process for each page costs more than the page itself.

    A page is loaded anew for each test, and keeps nothing of an earlier one: it stores nothing, and the pointer is put aside.
    """

    chromium: Any
    saved: dict[str, Saved]
    windows: dict[tuple[str, int], Watched] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)

    def open(self, name: str, **how: Any) -> Any:
        kind = repr(sorted(how.items()))
        self.used[kind] = self.used.get(kind, 0) + 1
        watched = self.windows.get((kind, self.used[kind])) or self._window(kind, how)
        watched.page.emulate_media(media="null")
        watched.page.mouse.move(0, 0)
        watched.requests.clear()
        watched.complaints.clear()
        watched.page.goto(self.saved[name].address)
        return watched.page

    def _window(self, kind: str, how: dict[str, Any]) -> Watched:
        context = self.chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **how})
        watched = self.windows[kind, self.used[kind]] = Watched(context.new_page())
        watched.page.on("request", lambda request: watched.requests.append(request.url))
        watched.page.on("console", lambda message: watched.complaints.append(message.text))
        watched.page.on("pageerror", lambda error: watched.complaints.append(str(error)))
        return watched

    def check(self) -> None:
        """The pages of this test asked for nothing and complained about nothing."""
        seen = [self.windows[kind, place] for kind, times in self.used.items() for place in range(1, times + 1)]
        self.used.clear()
        for watched in seen:
            assert watched.complaints == []
            assert all(address.startswith(("file://", "blob:")) for address in watched.requests)
            assert sum(address.startswith("file://") for address in watched.requests) == 1


@pytest.fixture(scope="session")
def windows(chromium: Any, saved: dict[str, Saved]) -> Windows:
    return Windows(chromium, saved)


@pytest.fixture
def visit(windows: Windows) -> Iterator[Any]:
    yield windows.open
    windows.check()


@pytest.fixture(scope="module")
def demo(chromium: Any, saved: dict[str, Saved]) -> Iterator[Any]:
    """The page of the demo, for tests that leave it as they found it."""
    windows = Windows(chromium, saved)
    yield windows.open("demo")
    windows.check()
