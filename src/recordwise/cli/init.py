"""``recordwise init FILE``: a first plan with blanks, from the names and declared types of a table."""

from pathlib import Path
from typing import Annotated

import typer

from recordwise.cli.failing import Debug, ends_well

WARNING = "types and steps were proposed from the records, so the plan says that it was tuned on confidential data"


@ends_well
def init(
    file: Annotated[Path, typer.Argument(help="A CSV, Parquet or Arrow file, or a folder.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="The plan to write.")] = Path("plan.toml"),
    look: Annotated[bool, typer.Option("--look", help="Read the records to propose types and steps.")] = False,
    debug: Debug = False,
) -> None:
    """Write a first plan: roles and types from names and declared types, blanks for what only you can know."""
    import os

    from recordwise.cli import screen
    from recordwise.engines.sources.columns import csv_options, declared, looked_at
    from recordwise.errors import OutputError
    from recordwise.plan.file.first import first_plan

    if os.path.lexists(out):
        raise OutputError(folder=str(out), problem="exists already", advice="Name a new file with --out.")
    found = looked_at(file) if look else declared(file)
    source = os.path.relpath(file.resolve(), out.resolve().parent)
    name = file.name.partition(".")[0]
    text = first_plan({"source": source}, found, dataset=name, looked=look, csv=csv_options(file))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    if look:
        screen.note(WARNING)
    screen.paragraph(f"Wrote {out}. Fill its blanks, then run: recordwise check {out}")
