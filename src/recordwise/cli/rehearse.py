"""``recordwise rehearse PLAN``: the whole way of a release with generated records, at no cost."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recordwise.cli.failing import AsJson, Debug, ends_well
from recordwise.cli.plan_parts import Data, Set, for_owner, loaded

if TYPE_CHECKING:
    from recordwise.planning.rehearse import Rehearsal


@ends_well
def rehearse(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", help="A new folder (default: PLAN-rehearsal).", show_default=False)
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option("--rows", help="How many records to generate (default: ten for each cell).", show_default=False),
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option(
            "--records", help="Records to use instead; confidential unless --data says otherwise.", show_default=False
        ),
    ] = None,
    data: Data = "confidential",
    seed: Annotated[
        int | None, typer.Option("--seed", help="The seed of records and noise.", show_default=False)
    ] = None,
    given: Set = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Rehearse a release: generated records, a ledger that is thrown away, files marked NOT PRIVATE. Costs nothing.

    Shows time, memory, sizes of files, statuses of cells and losses, and makes the page. The plan's source stays closed, and its
    ledger too unless --records are confidential: then it notes the look, and the folder is for its owner only.
    """
    import json

    from recordwise.planning.rehearse import rehearse as rehearsed

    file = loaded(plan, given)
    if records is not None:
        for_owner(data)
    found = rehearsed(file, out=out or unused_folder(plan), records=records, rows=rows, seed=seed, data=data)
    if as_json:
        typer.echo(json.dumps(found.to_json()))
    else:
        show(found)


def unused_folder(plan: Path) -> Path:
    """A folder named after the plan that does not exist yet, in the current one."""
    number, folder = 1, Path(f"{plan.stem}-rehearsal")
    while folder.exists():
        number += 1
        folder = Path(f"{plan.stem}-rehearsal-{number}")
    return folder


def show(found: "Rehearsal") -> None:
    """Print what was found."""
    from recordwise.cli import screen
    from recordwise.cli.plan_parts import VIEWED
    from recordwise.plan.tuning import NO_LOOK

    screen.note(found.privacy_label)
    if found.data not in NO_LOOK:
        screen.note(VIEWED)
    screen.paragraph(f"Rehearsed in {found.folder}: {found.words()}")
    screen.heading("Share of the cells by status")
    screen.table(*found.status_rows())
    screen.heading("Privacy losses by size of the record")
    screen.table(*found.loss_rows())
    if found.coverage:
        screen.heading("Records and published cells")
        rows = [[each.name, f"{each.cells:,}", f"{each.empty:,}", f"{each.outside:,}"] for each in found.coverage]
        screen.table(["table", "cells", "empty", "records outside"], rows)
    screen.heading("Time")
    screen.table(*found.time_rows())
    screen.heading("Files")
    screen.table(*found.file_rows())
    for each in found.notes:
        screen.note(each)
    screen.paragraph(f"Open {found.folder}/report.html to see the page as it would look.")
