"""The page over all experiments of one ``python -m experiments all``."""

from collections.abc import Mapping
from html import escape
from pathlib import Path

from experiments.frame.page import document, scrolling
from experiments.frame.reproduction import Reproduction

LEAD = "Each page puts the papers' statements beside our results. A statement that does not hold here is listed with its reason."


def write_index(folder: Path, done: Mapping[str, Reproduction | str], seconds: Mapping[str, float]) -> None:
    """``index.html``: by name the result, or, where an experiment failed, why."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text(index_page(done, seconds), encoding="utf-8")


def index_page(done: Mapping[str, Reproduction | str], seconds: Mapping[str, float]) -> str:
    headers = ("Experiment", "What", "Claims that agree", "Seconds")
    head = "".join(f'<th scope="col">{text}</th>' for text in headers)
    rows = "".join(_row(name, each, seconds.get(name)) for name, each in done.items())
    table = f"{scrolling('experiments')}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    return document("Reproductions", f"<h1>The papers' figures and tables, reproduced</h1>\n<p>{LEAD}</p>\n{table}")


def _row(name: str, done: Reproduction | str, seconds: float | None) -> str:
    if isinstance(done, str):
        return f'<tr><th scope="row">{escape(name)}</th><td colspan="3">failed: {escape(done)}</td></tr>'
    link = f'<a href="{escape(name)}/reproduction.html">{escape(name)}</a>'
    agree = sum(claim.agrees is True for claim in done.claims)
    time = "" if seconds is None else f"{seconds:.0f}"
    return (
        f'<tr><th scope="row">{link}</th><td>{escape(done.title)}</td><td>{agree} of {len(done.claims)}</td>'
        f'<td class="number">{time}</td></tr>'
    )
