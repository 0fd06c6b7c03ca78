"""Where the records planning looks at come from, and how results say so."""

import html
from collections.abc import Sequence

from recordwise.errors import ParameterError
from recordwise.exact import text
from recordwise.plan.tuning import TUNINGS

CONFIDENTIAL = "CONFIDENTIAL: computed from the confidential records themselves; not for publication"


def read_origin(data: str) -> str:
    """One of the four things records can be."""
    if data not in TUNINGS:
        raise ParameterError(
            parameter="data",
            problem=f"must say what the records are: one of {', '.join(TUNINGS)}",
            advice="Say 'confidential' unless they are public, synthetic or of a past release.",
        )
    return data


def mark_of(data: str) -> str:
    """What stands above a table or below a picture."""
    return CONFIDENTIAL if data == "confidential" else f"computed from {data} records"


def html_table(
    title: str, headers: Sequence[str], rows: Sequence[Sequence[str]], *, privacy_label: str, notes: str = ""
) -> str:
    """A table for a notebook, the privacy label in its caption."""
    head = "".join(f"<th scope='col'>{html.escape(each)}</th>" for each in headers)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    caption = f"<caption><b>{html.escape(title)}</b><br>{html.escape(privacy_label)}</caption>"
    after = "".join(f"<p>{html.escape(line)}</p>" for line in notes.splitlines())
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{after}"


def figure(value: float) -> str:
    """A number in a table of planning."""
    return text.figure(value, infinite="unbounded")
