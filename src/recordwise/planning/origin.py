"""The origin of the records used for planning, and the label that results carry."""

import html
from collections.abc import Sequence

from recordwise.errors import ParameterError
from recordwise.exact import text
from recordwise.plan.tuning import TUNINGS

CONFIDENTIAL = "CONFIDENTIAL: computed from the confidential records themselves; not for publication"


def read_origin(data: str) -> str:
    """The origin of the records, one of four."""
    if data not in TUNINGS:
        raise ParameterError(
            parameter="data",
            problem=f"must be one of {', '.join(TUNINGS)}",
            advice="Use 'confidential' unless the records are public, synthetic or from a past release.",
        )
    return data


def mark_of(data: str) -> str:
    """The label above a table or below a figure."""
    return CONFIDENTIAL if data == "confidential" else f"computed from {data} records"


def html_table(
    title: str, headers: Sequence[str], rows: Sequence[Sequence[str]], *, privacy_label: str, notes: str = ""
) -> str:
    """A table for a notebook, with the privacy label in its caption."""
    head = "".join(f"<th scope='col'>{html.escape(each)}</th>" for each in headers)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    caption = f"<caption><b>{html.escape(title)}</b><br>{html.escape(privacy_label)}</caption>"
    after = "".join(f"<p>{html.escape(line)}</p>" for line in notes.splitlines())
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{after}"


def figure(value: float) -> str:
    """A number formatted for a planning table."""
    return text.figure(value, infinite="unbounded")
