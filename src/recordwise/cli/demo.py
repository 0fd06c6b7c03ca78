"""``recordwise demo``: a full release of synthetic establishments, from records to published files."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import AsJson, Debug, ends_well

if TYPE_CHECKING:
    from recordwise.cli.screen import Tell

PLAN = Path(__file__).parent / "demo_plan.toml"
DEFAULT_ROWS = 1_000_000
DEFAULT_FOLDER = "demo-release"
STEPS = 8
Rows = Annotated[
    int | None,
    typer.Option(help="Number of establishments to generate (default 1,000,000; try 8,000,000).", show_default=False),
]
Data = Annotated[
    Path | None,
    typer.Option(
        help="A folder of county tables to expand instead of generating; default: RECORDWISE_DATA.", show_default=False
    ),
]
Out = Annotated[Path | None, typer.Option(help=f"A new folder (default {DEFAULT_FOLDER}).", show_default=False)]


@ends_well
def demo(
    establishments: Rows = None, data: Data = None, out: Out = None, as_json: AsJson = False, debug: Debug = False
) -> None:
    """Generate establishments, publish county by industry tables, and show the results."""
    import json

    from recordwise.cli.demo_accuracy import accuracy_by_size
    from recordwise.cli.screen import progress
    from recordwise.plan.file.read import load_plan
    from recordwise.session import Session

    started = time.monotonic()
    tables = county_tables(establishments, data)
    folder = new_folder(out)
    with progress(STEPS, quiet=as_json) as tell:
        write_inputs(folder, establishments or DEFAULT_ROWS, tables, tell)
        tell("checking the plan")
        file = load_plan(folder / "plan.toml")
        with Session.from_plan(file) as session:
            done = session.run(*file.plan.queries, confidence=file.confidence, progress=tell)
        tell("writing files")
        done.save(folder / "release", formats=file.formats)
        accuracy = accuracy_by_size(folder / "establishments.parquet", done.table)
    found = {
        "folder": str(folder),
        "seconds": round(time.monotonic() - started, 1),
        "accuracy": accuracy,
        "losses": losses(file.examples, file.plan),
    }
    if as_json:
        typer.echo(json.dumps(found))
    else:
        show(folder, found)


def county_tables(establishments: int | None, data: Path | None) -> Any | None:
    """The county tables to expand, if a folder is given; a number of establishments means generated ones."""
    from recordwise.errors import ParameterError
    from recordwise.synthetic.county_tables import CountyTable

    if establishments is not None and data is not None:
        raise ParameterError(
            parameter="--establishments",
            problem="applies to generated establishments only",
            advice="With --data, every cell of the county tables is expanded.",
        )
    if establishments is not None and establishments < 1:
        raise ParameterError(parameter="--establishments", problem="must be at least 1")
    named = data or (os.environ.get("RECORDWISE_DATA") if establishments is None else None)
    return CountyTable.read(named) if named else None


def new_folder(out: Path | None) -> Path:
    """The requested folder, which must not exist, or the first unused default name."""
    from recordwise.errors import OutputError

    if out is not None and out.exists():
        raise OutputError(folder=str(out), problem="already exists", advice="Choose a new folder.")
    number, folder = 1, out or Path(DEFAULT_FOLDER)
    while folder.exists():
        number += 1
        folder = Path(f"{DEFAULT_FOLDER}-{number}")
    folder.mkdir(parents=True)
    return folder


def write_inputs(folder: Path, rows: int, tables: Any | None, tell: "Tell") -> None:
    """Write records, public keys and plan: what an agency would provide."""
    import shutil

    import pyarrow as pa
    import pyarrow.parquet as pq

    from recordwise.synthetic.figures import public_keys
    from recordwise.synthetic.synthetic import write_establishments

    shutil.copyfile(PLAN, folder / "plan.toml")
    if tables is None:
        tell(f"generating {rows:,} establishments")
        write_establishments(folder / "establishments.parquet", rows)
        pq.write_table(public_keys(), folder / "keys.parquet")
        return
    tell(f"generating {int(tables.establishments.sum()):,} establishments from the county tables")
    pq.write_table(tables.keys(), folder / "keys.parquet")
    made = tables.batches()
    first: pa.RecordBatch = next(made)
    with pq.ParquetWriter(folder / "establishments.parquet", first.schema) as writer:
        writer.write_batch(first)
        for batch in made:
            writer.write_batch(batch)


def losses(examples: dict[str, dict[str, Any]], plan: Any) -> list[dict[str, Any]]:
    """The cost of each variable, and of all of them, to each example."""
    from recordwise.plan.cost import plan_policy, statistic_policy

    (query,) = plan.queries
    (level,) = query.tables()
    policies = {each.alias: statistic_policy(query, each, level, plan.schema, tight=True) for each in query.statistics}
    whole = plan_policy(plan)
    return [
        {
            "name": name,
            "record": {column: float(value) for column, value in record.items()},
            **{alias: float(policy.loss(record)) for alias, policy in policies.items()},
            "all": float(whole.loss(record)),
        }
        for name, record in examples.items()
    ]


def show(folder: Path, found: dict[str, Any]) -> None:
    from recordwise.cli import lookup, screen
    from recordwise.exact.text import figure, share_text, whole_text

    screen.heading("Median relative error of a cell")
    screen.paragraph("Known only because these establishments are synthetic; a real release cannot show this.")
    rows = found["accuracy"]
    screen.table(
        ["employees in the cell", "cells", *rows[0]["errors"]],
        [[r["size"], f"{r['cells']:,}", *(f"{share_text(error, 1)}" for error in r["errors"].values())] for r in rows],
    )
    screen.heading("Privacy loss of an establishment: emp and emp_slow have the same noise variance")
    names = [name for name in found["losses"][0] if name not in ("name", "record")]
    screen.table(
        ["establishment", "employees", *names],
        [
            [r["name"], f"{whole_text(r['record']['emp'])}", *(figure(r[name]) for name in names)]
            for r in found["losses"]
        ],
    )
    shop = found["losses"][0]["record"]
    words = [f"{name}={round(value)}" for name, value in shop.items()]
    screen.heading("The corner shop looks up its own loss")
    typer.echo(f"  $ recordwise loss {folder}/release/policy.json {' '.join(words)}")
    policy = lookup.read_policy(folder / "release" / "policy.json", "tight")
    lookup.show(lookup.looked_up(policy, lookup.read_record(policy, words), 1e-5))
    screen.heading(f"Done in {found['seconds']} seconds")
    screen.paragraph(
        f"{folder}/release contains the tables (Parquet and CSV), policy.json, release.json, and report.html to open in a browser; "
        f"{folder}/demo.ledger is the ledger."
    )
    typer.echo(f"  $ recordwise check {folder}/plan.toml")
    typer.echo(f"  $ recordwise ledger verify {folder}/demo.ledger --against {folder}/release")
