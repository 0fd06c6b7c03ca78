"""``recordwise preflight PLAN``: do the keys of a plan match the records? For the owner, on a terminal, never in a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recordwise.cli.failing import BAD_INPUT, Debug, ends_well
from recordwise.cli.plan_parts import VIEWED, Data, Set, for_owner, loaded

if TYPE_CHECKING:
    from recordwise.plan.file.read import PlanFile
    from recordwise.session.session import Session

CLASSES = (0.1, 1.0, 10.0, 100.0)
CHECKED = f'{VIEWED}. Write in the plan, if it is so: accept_tuning = "keys were checked; only codes were corrected"'
VIEWED_WITH_REASON = (
    "this was a look at confidential records, which the ledger notes; the reason that the plan gives will be published with the "
    "release: {reason}"
)


@ends_well
def preflight(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.", show_default=False)],
    show: Annotated[bool, typer.Option("--show", help="Also show unmatched codes and losses.")] = False,
    data: Data = "confidential",
    given: Set = None,
    debug: Debug = False,
) -> None:
    """Count the records outside the published cells: a look at confidential records, for the owner of the data only.

    The ledger notes the look, and a release then needs accept_tuning, a reason that is published with it.
    """
    from recordwise.session.session import Session

    for_owner(data, advice="A release makes the same check by itself, before the charge, and tells no number.")
    file = loaded(plan, given)
    with Session.from_plan(file, data=data) as session:
        passed = coverage_shown(file, session, data)
        if show:
            look_shown(file, session, data)
    if not passed:
        raise typer.Exit(BAD_INPUT)


def label(data: str) -> str:
    """What stands above numbers computed from the records."""
    from recordwise.plan.tuning import NO_LOOK

    return f"computed from {data} records: " if data in NO_LOOK else "CONFIDENTIAL: "


def coverage_shown(file: "PlanFile", session: "Session", data: str) -> bool:
    """The records and cells of each table, and whether a release would be made."""
    from recordwise.cli import screen
    from recordwise.exact.text import digits_text
    from recordwise.plan.tuning import NO_LOOK
    from recordwise.session.coverage import too_many_outside

    found = session.owner.preflight(*file.plan.queries, data=data)
    screen.heading(f"{label(data)}records and published cells")
    columns = {"records": "records", "outside": "outside", "cells": "cells", "empty cells": "empty"}
    if any(query.rest for query in file.plan.queries):
        columns["in an all other cell"] = "in_rests"
    rows = [[each.name, *(f"{getattr(each, value):,}" for value in columns.values())] for each in found]
    screen.table(["table", *columns], rows)
    failed = file.outside is not None and too_many_outside(found, file.outside)
    if failed:
        screen.note(
            f"more than {digits_text(float(file.outside or 0), 3)} of the records of a table are outside: the release will be "
            'refused. Correct codes that are written differently, or state outside = "accept" in the plan.'
        )
    else:
        screen.paragraph("The release will be made as far as the keys are concerned.")
    if data not in NO_LOOK:
        screen.note(CHECKED if file.accept_tuning is None else VIEWED_WITH_REASON.format(reason=file.accept_tuning))
    return not failed


def look_shown(file: "PlanFile", session: "Session", data: str) -> None:
    """Unmatched codes and losses: further looks."""
    from recordwise.cli import screen
    from recordwise.exact.text import formula_text, share_text
    from recordwise.plan.cost import plan_policy
    from recordwise.session.sizes import with_sizes

    for name, rows in session.owner.unmatched(*file.plan.queries, data=data).items():
        screen.heading(f"{label(data)}most frequent cells of {name} that no key names")
        screen.table(["cell", "records"], [[", ".join(map(str, cell)), f"{count:,}"] for cell, count in rows])
    summary = session.owner.loss_summary(plan_policy(with_sizes(file.plan)), data=data)
    screen.heading(f"{label(data)}records by their loss")
    screen.table(
        ["loss above", "share of the records"],
        [[formula_text(loss), share_text(summary.share_above(loss), 3)] for loss in CLASSES],
    )
