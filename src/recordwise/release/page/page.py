"""The page that is saved with a release: one file, no request to anywhere, nothing typed leaves the browser."""

import base64
import hashlib
from collections.abc import Mapping

from recordwise.policy.render.html import Html, element, joined
from recordwise.release.page import sections
from recordwise.release.page.script import model_js, page_file, script_json
from recordwise.release.page.view import Published, View, payload, view_of
from recordwise.release.tables import PRIVATE

NO_REQUESTS = "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:"


def page_html(release: Published, *, files: Mapping[str, str], labels: Mapping[str, str] | None = None) -> str:
    """The whole page. ``files`` are those saved beside it, with what they are; ``labels`` are words for columns and values."""
    view = view_of(release, files, labels or {})
    style = page_file("page.css")
    script = f"const model = {model_js(release.policy, release.parts, view.budget)};\nconst data = {script_json(payload(view))};\n"
    script += page_file("page.js")
    return "<!doctype html>\n" + element(
        "html",
        element("head", *_head(view, style, script)),
        element("body", *_body(view), element("script", Html(script))),
        lang="en",
    )


def _head(view: View, style: str, script: str) -> list[Html]:
    policy = f"{NO_REQUESTS}; style-src {_hash(style)}; script-src {_hash(script)}"
    return [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"{view.description.get('dataset', 'Release')}: privacy and accuracy"),
        element("style", Html(style)),
    ]


def _hash(text: str) -> str:
    """Only this very text may run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _body(view: View) -> list[Html]:
    main = [
        sections.ask(view),
        sections.sizes(view),
        sections.same_for_all(view),
        sections.firm(view),
        sections.released(view),
        sections.spent(view),
        sections.terms(view),
    ]
    banner = (
        [] if view.release.mark == PRIVATE else [element("p", view.release.mark, class_="not-private", role="note")]
    )
    return [
        element("a", "Skip to the question", href="#ask", class_="skip"),
        *banner,
        sections.header(view),
        element("main", joined([each for each in main if each])),
        sections.footer(view),
    ]
