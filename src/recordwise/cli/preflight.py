"""``recordwise preflight PLAN``: do the keys of a plan match the records? For the owner, on a terminal, never in a file."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recordwise.cli.failing import BAD_INPUT, Debug, ends_well
from recordwise.cli.plan_parts import Set, loaded

if TYPE_CHECKING:
    from recordwise.plan.file.read import PlanFile
    from recordwise.session.session import Session

CLASSES = (0.1, 1.0, 10.0, 100.0)


@ends_well
def preflight(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.", show_default=False)],
    show: Annotated[
        bool, typer.Option("--show", help="Show unmatched codes and losses: a look at the records.")
    ] = False,
    given: Set = None,
    debug: Debug = False,
) -> None:
    """Count the records outside the published cells. Confidential: for the owner of the data only."""
    from recordwise.cli import screen
    from recordwise.session.session import Session

    if not screen.on_terminal():
        print(
            "recordwise: what preflight shows is confidential and goes to a terminal only. Nothing was read.",
            file=sys.stderr,
        )
        raise typer.Exit(BAD_INPUT)
    file = loaded(plan, given)
    with Session.from_plan(file) as session:
        passed = coverage_shown(file, session)
        if show:
            look_shown(file, session)
    if not passed:
        raise typer.Exit(BAD_INPUT)


def coverage_shown(file: "PlanFile", session: "Session") -> bool:
    """The records and cells of each table, and whether a release would be made."""
    from recordwise.cli import screen
    from recordwise.exact.text import digits_text
    from recordwise.session.coverage import too_many_outside

    found = session.owner.preflight(*file.plan.queries)
    screen.heading("CONFIDENTIAL: records and published cells")
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
        screen.paragraph(
            "The release will be made as far as the keys are concerned. The ledger notes that this was checked."
        )
    return not failed


def look_shown(file: "PlanFile", session: "Session") -> None:
    """Unmatched codes and losses; the ledger notes the look, and a release then needs a reason."""
    from recordwise.cli import screen
    from recordwise.exact.text import formula_text, share_text
    from recordwise.plan.cost import plan_policy
    from recordwise.session.sizes import with_sizes

    for name, rows in session.owner.unmatched(*file.plan.queries).items():
        screen.heading(f"CONFIDENTIAL: most frequent cells of {name} that no key names")
        screen.table(["cell", "records"], [[", ".join(map(str, cell)), f"{count:,}"] for cell, count in rows])
    summary = session.owner.loss_summary(plan_policy(with_sizes(file.plan)))
    screen.heading("CONFIDENTIAL: records by their loss")
    screen.table(
        ["loss above", "share of the records"],
        [[formula_text(loss), share_text(summary.share_above(loss), 3)] for loss in CLASSES],
    )
    screen.note("this was a look at confidential records: a release now needs accept_tuning")
