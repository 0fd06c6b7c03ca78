"""The documentation site: built offline, every page in its navigation, every link whole, searched without a network."""

import functools
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from build import few

ROOT = Path(__file__).parents[2]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Say nothing."""


class Links(HTMLParser):
    """Where the elements of a page point to, and which of them can be pointed to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.targets += [value for name in ("href", "src") if (value := known.get(name))]
        if known.get("id"):
            self.ids.add(str(known["id"]))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built from a copy, so that nothing is left in the checkout."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "mkdocs.yml", folder)
    words = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def window(chromium: Any) -> Iterator[Any]:
    """A window of a width and color scheme, which stays open: a process for each page costs as much as the page itself."""
    contexts: dict[tuple[int, str], Any] = {}

    def opened(width: int, scheme: str) -> Any:
        if (width, scheme) not in contexts:
            how = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
            contexts[width, scheme] = chromium.new_context(**how)
            contexts[width, scheme].new_page()
        (page,) = contexts[width, scheme].pages
        return page

    yield opened
    for context in contexts.values():
        context.close()


def listed(nav: Any) -> list[str]:
    """The pages of a navigation."""
    if isinstance(nav, str):
        return [nav]
    return [page for part in (nav.values() if isinstance(nav, dict) else nav) for page in listed(part)]


def test_every_page_has_its_place_in_the_navigation() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    inside = {page for page in pages if page.startswith(("gallery/",))}
    assert sorted(listed(nav)) == sorted(pages - inside)


def test_every_link_of_the_site_leads_somewhere_and_none_is_loaded_from_elsewhere(site: Path) -> None:
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert len(pages) > 40
    broken = []
    for page, links in pages.items():
        if page.name == "404.html":
            continue
        for target in links.targets:
            if re.match(r"[a-z]+:", target):
                continue
            path, _, place = target.partition("#")
            found = (page.parent / path.partition("?")[0]).resolve() if path else page
            found = found / "index.html" if found.is_dir() else found
            known = pages.get(found)
            if not found.exists() or (place and known is not None and place not in known.ids):
                broken.append((page.name, target))
    assert broken == []


@pytest.mark.parametrize("width, scheme", few([(1280, "light"), (360, "dark"), (1280, "dark"), (360, "light")], 2))
@pytest.mark.parametrize("name", ["index", "queries", "plan-file", "notebooks/choosing-a-mechanism"])
def test_a_page_fits_its_window_asks_nobody_else_and_axe_finds_nothing_serious(
    name: str, width: int, scheme: str, window: Any, address: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = window(width, scheme)
    asked: list[str] = []

    def note(request: Any) -> None:
        asked.append(request.url)

    page.on("request", note)
    answer = page.goto(f"{address}/{name}.html")
    assert answer.status == 200
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page).response["violations"]
    page.remove_listener("request", note)
    assert f"{address}/{name}.html" in asked
    assert [url for url in asked if not url.startswith(address)] == []
    assert [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")] == []


def test_commands_are_copied_without_prompts_and_output_and_no_line_ends_within_an_option_or_formula(
    window: Any, address: str
) -> None:
    page = window(360, "dark")
    page.goto(f"{address}/worked-example.html")
    page.locator("[data-clipboard-text]").first.wait_for(state="attached")
    (typed,) = page.locator("[data-clipboard-text]").evaluate_all(
        "all => all.slice(0, 1).map(b => b.dataset.clipboardText)"
    )
    assert typed.startswith("recordwise init farms.csv")
    assert "Wrote" not in typed
    for name in ("worked-example", "using-tables", "theory/series"):
        page.goto(f"{address}/{name}.html")
        lines = page.locator(".whole").evaluate_all("all => all.map(each => each.getClientRects().length)")
        assert len(lines) >= 3
        assert set(lines) <= {0, 1}
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_search_finds_pages_without_a_network(chromium: Any, address: str) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{address}/index.html")
    page.wait_for_load_state("networkidle")
    page.keyboard.press("/")
    page.keyboard.type("unit splitting", delay=20)
    page.get_by_text(re.compile(r"^\s*[1-9]\d* results?")).first.wait_for(timeout=60_000)
    context.close()


READERS = ["Publishing", "Deciding", "Using tables", "Trusting", "Researching", "Changing the code"]
ASKED = re.compile(r"^- \[(.+?\?)\]\(([\w/-]+)\.md#([\w-]+)\) (.+)$", re.MULTILINE)
SECTION = """heading => {
    const parts = [heading.innerText], level = heading.tagName;
    for (let next = heading.nextElementSibling; next; next = next.nextElementSibling) {
        if (/^H[1-6]$/.test(next.tagName) && next.tagName <= level) break;
        parts.push(next.innerText);
    }
    const at = heading.getBoundingClientRect();
    return [parts.join(" "), at.height > 0 && at.top >= 0 && at.bottom <= innerHeight];
}"""
"""The text from a heading to the next one of its rank or above it, and whether the heading is in the window."""


def questions() -> dict[str, list[tuple[str, str, str, str]]]:
    """Of each kind of reader: what is asked, the page and the section that answer it, and the answer."""
    parts = re.split(r"^## ", (ROOT / "docs" / "questions.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {part.partition("\n")[0]: ASKED.findall(part) for part in parts}


def test_each_kind_of_reader_has_five_questions_and_short_answers() -> None:
    asked = questions()
    assert list(asked) == READERS
    for each in asked.values():
        assert len({question for question, *_ in each}) == 5
        assert all(len(answer.split()) <= 12 and re.search(r"`.+?`|\*\*.+?\*\*", answer) for *_, answer in each)


@pytest.mark.costly
def test_every_question_is_answered_within_two_clicks_from_the_start(chromium: Any, address: str) -> None:
    """Without scripts, which no link needs. The first click is the same for all; its page is gone back to for each second one."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/index.html", wait_until="domcontentloaded")
    page.locator("a", has_text="Questions and answers").first.click(no_wait_after=True)
    page.wait_for_url("**/questions.html", wait_until="domcontentloaded")
    wrong = []
    for question, name, place, answer in (each for asked in questions().values() for each in asked):
        page.locator("article a", has_text=question).click(no_wait_after=True, force=True)
        page.wait_for_url(f"{address}/{name}.html#{place}", wait_until="commit")
        heading = page.locator(f"article :is(h1, h2, h3)[id='{place}']")
        told, seen = heading.evaluate(SECTION)
        # The window moves to the heading once the page is laid out, which may be after the heading is there.
        late = time.monotonic() + 20
        while not seen and time.monotonic() < late:
            page.wait_for_timeout(50)
            told, seen = heading.evaluate(SECTION)
        (term,) = re.findall(r"^.*?(?:`(.+?)`|\*\*(.+?)\*\*)", answer)
        if not (seen and "".join(term) in " ".join(told.split())):
            wrong.append((question, "".join(term), seen))
        page.go_back(wait_until="commit")
    context.close()
    assert wrong == []
