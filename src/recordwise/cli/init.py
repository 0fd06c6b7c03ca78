"""``recordwise init FILE``: a first plan with blanks, from the names and declared types of a table."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from recordwise.cli.failing import Debug, ends_well

WARNING = (
    "types and steps were proposed from the records: the plan says that it was tuned on confidential data, and its ledger "
    "notes the look"
)


@ends_well
def init(
    file: Annotated[
        str,
        typer.Argument(help="A file of records, a folder of them, or a PostgreSQL address.", show_default=False),
    ],
    table: Annotated[
        str | None, typer.Option("--table", help="The table, if FILE is a database or an address.")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="Of a CSV file that is not UTF-8: cp1252, say.")
    ] = None,
    header: Annotated[
        bool,
        typer.Option("--header", help="The first line of a CSV file holds the names of columns, and is no record."),
    ] = False,
    out: Annotated[Path, typer.Option("--out", help="The plan to write.")] = Path("plan.toml"),
    look: Annotated[bool, typer.Option("--look", help="Read the records to propose types and steps.")] = False,
    debug: Debug = False,
) -> None:
    """Write a first plan: roles and types from names and declared types, blanks for what only you can know."""
    import os

    from recordwise.cli import screen
    from recordwise.engines.sources.columns import csv_options, declared, is_csv, looked_at
    from recordwise.errors import OutputError
    from recordwise.plan.file.first import first_plan

    if os.path.lexists(out):
        raise OutputError(folder=str(out), problem="exists already", advice="Name a new file with --out.")
    given = named(file, table, encoding)
    headed = header or (is_csv(given) and confirmed(file))
    address = "://" in file
    source = {"source": file if address else os.path.relpath(Path(file).resolve(), out.resolve().parent)}
    source |= {} if table is None else {"table": table}
    dataset = table.rpartition(".")[2].strip('"') if address and table else Path(file).name.partition(".")[0]
    found = declared(given, headed=headed)
    if look:
        note_look(out.resolve().parent / f"{dataset}.ledger", dataset)
        found = looked_at(given, headed=headed)
    text = first_plan(source, found, dataset=dataset, looked=look, csv=csv_options(given))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    if look:
        screen.note(WARNING)
    screen.paragraph(f"Wrote {out}. Fill its blanks, then run: recordwise check {out}")


def confirmed(file: str) -> bool:
    """Whether a person at a terminal says that the first line holds names. It is not shown: it may be a record."""
    question = f"The plan will contain the first line of {file}. Does it hold the names of the columns, and no record?"
    return sys.stdin.isatty() and typer.confirm(question)


def note_look(ledger: Path, dataset: str) -> None:
    """Enter the look in the ledger that the plan will name, before a record is read; there is no plan yet, so it names none."""
    from recordwise.ledger.ledger import FIXED_IN_ADVANCE, FORMAT
    from recordwise.ledger.looks import enter_first_look

    ledger.parent.mkdir(parents=True, exist_ok=True)
    terms = {"format": FORMAT, "dataset": dataset, "schema": None, "budget": None, "guarantee": FIXED_IN_ADVANCE}
    enter_first_look(ledger, terms, "init --look")


def named(file: str, table: str | None, encoding: str | None) -> Any:
    """The source that the arguments name. A password would stand in the plan, so an address with one is refused."""
    import re

    from recordwise.errors import SourceError
    from recordwise.plan.sources import POSTGRES_SCHEMES, Csv, Database, Postgres, found_by_spark

    if file.startswith(POSTGRES_SCHEMES) and table is not None:
        if re.search(r"://[^/@]*:[^/@]*@|[?&]password=", file):
            raise SourceError(
                source="a PostgreSQL address",
                problem="it contains a password, which the plan would contain too",
                advice="Leave it out, and use a password file or the environment variable PGPASSWORD.",
            )
        return Postgres(file, table=table)
    if table is not None:
        return Database(file, table=table)
    if found_by_spark(file) and not file.startswith(POSTGRES_SCHEMES) and not Path(file).exists():
        raise SourceError(
            source=f"'{file}'" if "://" not in file else "an address",
            problem="there is no such file",
            advice="Of a table that only Spark can find, write one without rows to Parquet (table.limit(0)) and name that.",
        )
    return file if encoding is None else Csv(file, encoding=encoding)
