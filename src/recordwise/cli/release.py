"""``recordwise release PLAN --out DIR``: publishes a plan, once."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import BAD_INPUT, BUDGET_REFUSED, AsJson, Debug, ends_well
from recordwise.cli.plan_parts import Set, loaded

if TYPE_CHECKING:
    from recordwise.plan.file.read import PlanFile
    from recordwise.release.release import Release

STEPS = 5


@ends_well
def release(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="A new folder for the files.", show_default=False)],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Finish the release if it was charged and drawn before; otherwise make it.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Make the release although it was charged before, and pay again.")
    ] = False,
    given: Set = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Run a plan: charge the ledger, draw noise, write the files. A charge is never refunded, and none is made twice by mistake."""
    import json

    from recordwise.cli.rescue import check_room
    from recordwise.errors import ParameterError
    from recordwise.release.files import load_release
    from recordwise.release.formats.registry import formats_named, require_held
    from recordwise.release.planned import planned_content

    if resume and again:
        raise ParameterError(
            parameter="--resume", problem="draws nothing and --again draws anew", advice="Give one of them."
        )
    file = loaded(plan, given)
    before = [load_release(folder) for folder in file.earlier]
    require_held(planned_content(file.plan, dataset=file.dataset, words=file.words), formats_named(file.formats))
    done = resumed(file, out, before) if resume else None
    if done is None:
        check_folder(out)
        check_room(file.plan, out, formats=len(file.formats))
        if not yes:
            confirm(file)
        done = published(file, out, before, quiet=as_json, again=again)
    if as_json:
        typer.echo(json.dumps(told(done, out)))
    else:
        show(file, done, out)


def check_folder(out: Path, *, state: str = "Nothing was spent.") -> None:
    """Refuse a folder that cannot be written, before anything is spent."""
    import tempfile

    from recordwise.errors import OutputError

    if os.path.lexists(out):
        raise OutputError(folder=str(out), problem="already exists", advice=f"{state} Choose a new folder.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent):
            pass
    except OSError as error:
        raise OutputError(folder=str(out), problem=f"cannot be written ({error.strerror})", advice=state) from None


def confirm(file: "PlanFile") -> None:
    """Show what the release will cost and ask; refuse if stdin is not a terminal."""
    from recordwise.cli import screen
    from recordwise.cli.check import examined, show_losses

    if not sys.stdin.isatty():
        print(
            "recordwise: stdin is not a terminal, so the release cannot be confirmed; pass --yes. Nothing was spent.",
            file=sys.stderr,
        )
        raise typer.Exit(BAD_INPUT)
    found = examined(file)
    if found["refusal"]:
        print(f"recordwise: {found['refusal']}", file=sys.stderr)
        raise typer.Exit(BUDGET_REFUSED)
    screen.heading("Losses at example records")
    show_losses(found["examples"])
    for warning in found["warnings"]:
        screen.note(warning)
    typer.confirm(f"Charge this to {file.ledger.name} and publish? This cannot be undone.", abort=True)


def published(file: "PlanFile", out: Path, before: Sequence["Release"], *, quiet: bool, again: bool) -> "Release":
    """The release, drawn and saved. Its tables wait beside the ledger until the folder is complete."""
    from recordwise.cli import screen
    from recordwise.cli.rescue import saved, with_basic, with_history
    from recordwise.session import Session

    queries = file.plan.queries
    with screen.progress(STEPS, quiet=quiet) as tell, Session.from_plan(file) as session:
        done = session.run(*queries, confidence=file.confidence, progress=tell, once=not again, keep=True)
        tell("writing files")
        done = saved(with_history(with_basic(done, file), before), file, out, kept=session.unfinished.waiting(*queries))
        session.unfinished.saved(*queries)
    return done


def resumed(file: "PlanFile", out: Path, before: Sequence["Release"]) -> "Release | None":
    """The release that was charged and drawn before, saved; None if it was never charged."""
    from recordwise.cli.rescue import saved, with_basic, with_history
    from recordwise.session import Session

    queries = file.plan.queries
    with Session.from_plan(file) as session:
        done = session.unfinished.resume(*queries)
        if done is None:
            return None
        if not is_complete(out, done):
            check_folder(out, state="The release is kept beside the ledger.")
            done = saved(
                with_history(with_basic(done, file), before), file, out, kept=session.unfinished.waiting(*queries)
            )
        session.unfinished.saved(*queries)
    return done


def is_complete(out: Path, done: "Release") -> bool:
    """Whether the folder already holds this release: the process ended after the folder had been made."""
    from recordwise.errors import SourceError
    from recordwise.release.files import load_release

    try:
        found = load_release(out)
    except SourceError:
        return False
    return (found.digest, found.head) == (done.digest, done.head)


def told(done: "Release", out: Path) -> dict[str, Any]:
    from recordwise.release.tables import accuracy

    return {
        "folder": str(out),
        "privacy_label": "private" if done.private else "NOT PRIVATE",
        "digest": done.digest,
        "ledger": {"length": done.head.length, "digest": done.head.digest},
        "tables": {table.name: {"cells": table.data.num_rows, "accuracy": accuracy(table)} for table in done.tables},
    }


def show(file: "PlanFile", done: "Release", out: Path) -> None:
    from recordwise.cli import screen
    from recordwise.exact.text import figure, share_text
    from recordwise.release.tables import accuracy

    screen.heading(f"Published in {out}")
    rows = []
    for table in done.tables:
        for name, found in accuracy(table).items():
            below = found["share_cv_below_0.1"]
            share = "none" if below is None else f"{share_text(below)}"
            numbers = [figure(found["median_sd"]), figure(found["median_cv"]), share]
            rows.append([f"{table.name}.parquet", f"{table.data.num_rows:,}", name, *numbers])
    screen.table(["file", "cells", "variable", "median sd", "median cv", "cells with cv below 0.1"], rows)
    if "sized_noise" in done.description:
        screen.paragraph(f"Promise over time: {done.description['sized_noise']}.")
    screen.paragraph(
        f"Recorded in {file.ledger}, entry {done.head.length}. report.html is for readers, policy.json for `recordwise loss`."
    )
