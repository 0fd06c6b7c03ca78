"""The studio's page: its own files as they are served, and all of them in one file for a report."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import recordwise

if TYPE_CHECKING:
    from recordwise.studio.state import StudioState
    from recordwise.studio.trade import Trade

POLICY_PAGE = Path(recordwise.__file__).parent / "release" / "page" / "scripts"
"""Read as files: importing the policy page would take longer than showing the first picture."""
MEDIA_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
IMPORT = re.compile(r"^import (?P<names>\{[^}]*\}) from \"\./(?P<file>[\w-]+\.js)\";$", re.MULTILINE)
EXPORT = re.compile(r"^export (?:const|class) (?P<name>\w+)", re.MULTILINE)
HEAD = re.compile(r"<link rel=\"icon\".*</script>\n", re.DOTALL)
"""What the served page loads; a report holds it instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticFile:
    """A file of the page, and what kind it is."""

    content: str
    media_type: str


@cache
def static_files() -> dict[str, StaticFile]:
    """Return the files that the page may ask for, by name; no other path exists.

    The style and the tiles of states are those of the policy page.
    """
    folder = files("recordwise.studio").joinpath("static")
    own = {each.name: each.read_text(encoding="utf-8") for each in folder.iterdir()}
    own["base.css"] = (POLICY_PAGE / "page.css").read_text(encoding="utf-8")
    own["tiles.js"] = f"export const TILES = {(POLICY_PAGE / 'tiles.json').read_text(encoding='utf-8')};\n"
    return {
        name: StaticFile(content=text, media_type=MEDIA_TYPES[suffix])
        for name, text in own.items()
        if (suffix := f".{name.rpartition('.')[2]}") in MEDIA_TYPES
    }


@cache
def page_html() -> str:
    """Return the empty page; its script asks for everything else."""
    return files("recordwise.studio").joinpath("static", "page.html").read_text(encoding="utf-8")


def report_html(trade: "Trade", state: "StudioState", texts: Mapping[str, Any]) -> str:
    """Return the page as one file that makes no request.

    Args:
        trade: What is looked up.
        state: What was chosen, with its reasons.
        texts: What was handed over: the plan, the same in Python, and the commands.

    Returns:
        The file.
    """
    from recordwise.release.page.page import NO_REQUESTS, script_hash, script_json

    style = static_files()["base.css"].content + static_files()["studio.css"].content
    script = _in_one("report.js")
    policy = f"{NO_REQUESTS}; style-src {script_hash(style)}; script-src {script_hash(script)}"
    data = script_json({"trade": trade.to_json(), "state": state.to_json(), "texts": dict(texts)})
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
    body = f'<script type="application/json" id="data">{data}</script>\n<script>{script}</script>\n</body>'
    # Functions, since the text of a replacement has escapes of its own.
    return HEAD.sub(lambda _: head, page_html()).replace("</body>", body)


def _in_one(name: str) -> str:
    """Return a module and all that it imports as one script, each in a scope of its own."""
    ordered: list[str] = []

    def visit(file: str) -> None:
        for found in IMPORT.finditer(static_files()[file].content):
            visit(found["file"])
        if file not in ordered:
            ordered.append(file)

    visit(name)
    return '"use strict";\nconst modules = {};\n' + "".join(map(_scoped, ordered))


def _scoped(name: str) -> str:
    text = static_files()[name].content
    exported = ", ".join(found["name"] for found in EXPORT.finditer(text))
    inside = IMPORT.sub(lambda found: f'const {found["names"]} = modules["{found["file"]}"];', text)
    inside = re.sub(r"^export ", "", inside, flags=re.MULTILINE)
    return f'modules["{name}"] = (() => {{\n{inside}return {{{exported}}};\n}})();\n'
