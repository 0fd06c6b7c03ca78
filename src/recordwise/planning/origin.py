"""The origin of the records used for planning, and the label that results carry."""

import html
from collections.abc import Sequence

from recordwise.errors import ParameterError
from recordwise.exact import text
from recordwise.plan.tuning import NO_LOOK, TUNINGS
from recordwise.planning.whole import PlanLike, read_queries
from recordwise.session import Session
from recordwise.session.owner import OwnerView

CONFIDENTIAL = "CONFIDENTIAL: computed from the confidential records themselves; not for publication"
PAST = "CONFIDENTIAL: computed from past records, which are confidential too; not for publication"


def read_origin(data: str) -> str:
    """The origin of the records, one of four."""
    if data not in TUNINGS:
        raise ParameterError(
            parameter="data",
            problem=f"must be one of {', '.join(TUNINGS)}",
            advice="Use 'confidential' unless the records are public or synthetic; those of an earlier period are 'past'.",
        )
    return data


def viewed(session: Session, data: str, command: str, plan: PlanLike | None = None) -> OwnerView:
    """The records of a session for planning; unless they are declared public or synthetic, a look that the ledger notes first."""
    queries = () if plan is None else read_queries(plan)
    return session.owner.view(data=read_origin(data), command=command, queries=queries)


def mark_of(data: str) -> str:
    """The label above a table or below a figure."""
    if data in NO_LOOK:
        return f"computed from {data} records"
    return PAST if data == "past" else CONFIDENTIAL


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
