"""``recordwise init FILE``: a first plan with blanks, from the names and declared types of a table."""

from pathlib import Path
from typing import Annotated

import typer

from recordwise.cli.failing import Debug, ends_well

WARNING = "types and steps were proposed from the records, so the plan says that it was tuned on confidential data"


@ends_well
def init(
    file: Annotated[Path, typer.Argument(help="A file of records, or a folder of them.", show_default=False)],
    table: Annotated[str | None, typer.Option("--table", help="The table, if FILE is a database.")] = None,
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="Of a CSV file that is not UTF-8: cp1252, say.")
    ] = None,
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
    from recordwise.plan.sources import Csv, Database

    if os.path.lexists(out):
        raise OutputError(folder=str(out), problem="exists already", advice="Name a new file with --out.")
    given: Path | Database | Csv = file if table is None else Database(file, table=table)
    given = given if encoding is None else Csv(file, encoding=encoding)
    found = looked_at(given) if look else declared(given)
    source = os.path.relpath(file.resolve(), out.resolve().parent)
    name = file.name.partition(".")[0]
    named = {"source": source} if table is None else {"source": source, "table": table}
    text = first_plan(named, found, dataset=name, looked=look, csv=csv_options(given))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    if look:
        screen.note(WARNING)
    screen.paragraph(f"Wrote {out}. Fill its blanks, then run: recordwise check {out}")
