"""``recordwise check``, ``explain``, ``preflight`` and ``rehearse``: try a plan before anything is charged."""

import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import BAD_INPUT, BUDGET_REFUSED, AsJson, Debug, ends_well, for_plan
from recordwise.cli.options import VIEWED, Data, Formula, Set, for_owner, load_with_parameters, set_words

if TYPE_CHECKING:
    from recordwise.plan.file.read import PlanFile
    from recordwise.planning.check import Check
    from recordwise.planning.page import Explanation
    from recordwise.planning.simulate.rehearse import Rehearsal
    from recordwise.policy.policy import Policy
    from recordwise.session.session import Session


# ``recordwise check PLAN``: what a plan would cost and how accurate it would be, before any record is read.


@ends_well
def check(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.", show_default=False)],
    no_source: Annotated[bool, typer.Option("--no-source", help="Do not look at the source.")] = False,
    formula: Formula = False,
    given: Set = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Check a plan without reading records.

    Shows problems, columns of the source, policy, losses and expected errors.
    """
    import json

    from recordwise.planning.check import check as checked

    found = checked(load_with_parameters(plan, given), source=not no_source)
    if as_json:
        typer.echo(json.dumps(found.to_json(), default=str))
    else:
        show_check(found, formula=formula)
    if found.refusal is not None:
        raise typer.Exit(BUDGET_REFUSED)


def show_check(found: "Check", *, formula: bool = False) -> None:
    """Print the findings."""
    from recordwise.cli import screen

    file = found.file
    found_text = (
        "no problem found" if found.refusal is None else "a release would be refused, by its budget (see below)"
    )
    screen.paragraph(f"{file.path}: {found_text}. Dataset '{file.dataset}'; no record was read and nothing was spent.")
    screen.paragraph(f"The source: {found.source}.")
    if found.protects:
        screen.paragraph(f"What is protected: {found.protects}.")
    for hierarchy in file.plan.schema.hierarchies:
        screen.paragraph(_code_list_text(hierarchy.about()))
    for each in found.sizes.get("sizes", ()):
        screen.paragraph(f"Sizes of cells: {each['sized_on']}; SHA-256 {each['digest']}.")
    if "sized_noise" in found.sizes:
        screen.paragraph(f"Promise over time: {found.sizes['sized_noise']}.")
    screen.heading("Privacy loss of a record")
    show_formula(found.policy, full=formula)
    screen.paragraph(found.summary())
    show_losses(found)
    if found.years is not None:
        screen.heading("Ten years, by kind of establishment")
        screen.table(*found.years.rows(found.known_examples()))
        for line in found.years.notes():
            screen.paragraph(line)
    screen.heading("Expected error: a value and the standard deviation of its noise, in ...")
    for name, rows in found.expected_rows().items():
        screen.paragraph(name)
        screen.table(*rows)
        typer.echo("")
    for line in found.expected_notes():
        screen.paragraph(line)
    screen.heading(f"Budget: {found.budget}")
    if told := found.reserve_text():
        screen.paragraph(told)
    if found.refusal is not None:
        screen.note(found.refusal.summary)
        for line in found.refusal.ways:
            typer.echo(f"  {for_plan(line, file.path, set_words(file))}")
    for warning in found.warnings:
        screen.note(warning)


def show_formula(policy: "Policy", *, full: bool) -> None:
    """Print the loss as a formula; where noise follows the sizes of many cells, for the smallest and the largest."""
    from recordwise.cli import screen
    from recordwise.policy.render.text import LARGEST, SMALLEST, ends_by_size, policy_lines

    def lines(own: "Policy") -> None:
        for number, line in enumerate(policy_lines(own)):
            typer.echo(("  loss = " if number == 0 else "       + ") + line)
        typer.echo("")

    ends = None if full else ends_by_size(policy)
    if ends is None:
        lines(policy)
        return
    screen.paragraph(f"It depends on the public sizes of the record's cells. {SMALLEST.capitalize()}:")
    lines(ends[0])
    screen.paragraph(f"{LARGEST.capitalize()}:")
    lines(ends[1])
    screen.paragraph(f"--formula prints all {len(policy_lines(policy)):,} terms in between.")


def show_losses(found: "Check") -> None:
    """Print the losses of example records."""
    from recordwise.cli import screen

    screen.heading("Losses at example records")
    screen.table(*found.rows())
    for each in found.example_notes():
        screen.note(each)


def _code_list_text(hierarchy: dict[str, Any]) -> str:
    """What is said about a public list of codes."""
    apart = "".join(f" {one} and {two} do not nest." for one, two in hierarchy.get("not_nested", ()))
    return (
        f"The hierarchy {hierarchy['name']}: {hierarchy['codes']:,} codes in the levels {', '.join(hierarchy['levels'])}; "
        f"source: {hierarchy['source']}; SHA-256 {hierarchy['digest']}.{apart}"
    )


# ``recordwise explain PLAN``: one page without formulas, for those who decide.


@ends_well
def explain(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.", show_default=False)],
    to: Annotated[
        Path | None,
        typer.Option("--to", help="Write the page to a new .html, .md, .json or .csv file.", show_default=False),
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
    given: Set = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Explain a plan on one page, for those who decide.

    What is published, how reliable it is, what records of each size give away in words, more and less noise, revisions
    and further years. From public sizes, the last release or generated records; the source stays closed. With
    --records that are confidential the ledger notes the look, and the page is for their owner only.
    """
    import json

    from recordwise.planning.explain import explain as explained
    from recordwise.planning.page import require_page

    if to is not None:
        require_page(to, "synthetic" if records is None else data)
    file = load_with_parameters(plan, given)
    if records is not None:
        for_owner(data)
    found = explained(file, records=records, rows=rows, data=data)
    if to is not None:
        typer.echo(f"wrote {found.save(to)}")
    elif as_json:
        typer.echo(json.dumps(found.to_json()))
    else:
        show_explanation(found)


def show_explanation(found: "Explanation") -> None:
    """Print the page."""
    from recordwise.cli import screen
    from recordwise.plan.schema import NO_LOOK

    screen.heading(found.title)
    if found.data not in NO_LOOK:
        screen.note(found.privacy_label)
        screen.note(VIEWED)
    for section in found.sections():
        screen.heading(section.title)
        for text in section.before:
            screen.paragraph(text)
        if section.rows is not None:
            screen.table(*section.rows)
        for text in section.after:
            screen.paragraph(text)


# ``recordwise preflight PLAN``: do the keys of a plan match the records? For the owner, on a terminal, never in a
# file.


CLASSES = (0.1, 1.0, 10.0, 100.0)
CHECKED = f'{VIEWED}. Write in the plan, if it is so: tuning_reason = "keys were checked; only codes were corrected"'
VIEWED_WITH_REASON = (
    "this was a look at confidential records, which the ledger notes; the reason that the plan gives will be published with the "
    "release: {reason}"
)


@ends_well
def preflight(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.", show_default=False)],
    show: Annotated[bool, typer.Option("--show", help="Also show unmatched codes and losses.")] = False,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="A new file that only you can read, where there is no terminal.", show_default=False),
    ] = None,
    data: Data = "confidential",
    given: Set = None,
    debug: Debug = False,
) -> None:
    """Count the records outside the published cells: a look at confidential records, for the owner of the data only.

    The ledger notes the look, and a release then needs tuning_reason, a reason that is published with it.
    """
    from recordwise.session.session import Session

    if to is None:
        for_owner(
            data, advice="Name a file that only you can read, --to FILE. A release makes the same check by itself."
        )
    else:
        check_new_file(to)
    file = load_with_parameters(plan, given)
    with Session.from_plan(file, data=data) as session, _printing_to(to):
        passed = show_coverage(file, session, data)
        if show:
            show_looks(file, session, data)
    if to is not None:
        typer.echo(f"Wrote {to}.")
    if not passed:
        raise typer.Exit(BAD_INPUT)


def check_new_file(path: Path) -> None:
    """Refuse a file that exists or lies in a release's folder."""
    from recordwise.errors import OutputError
    from recordwise.planning.result import outside_releases

    if os.path.lexists(path):
        raise OutputError(folder=str(path), problem="exists already", advice="Name a new file with --to.")
    if not path.absolute().parent.is_dir():
        raise OutputError(folder=str(path), problem="lies in a folder that does not exist", advice="Make it first.")
    outside_releases(path)


@contextmanager
def _printing_to(path: Path | None) -> Iterator[None]:
    """Print into an owner-only file, complete or not at all."""
    if path is None:
        yield
        return
    with redirect_stdout(io.StringIO()) as printed:
        yield
    # A file that mkstemp makes can be read by its owner only.
    opened, unfinished = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(opened, "w", encoding="utf-8") as file:
            file.write(printed.getvalue())
            file.flush()
            os.fsync(file.fileno())
        os.link(unfinished, path)
    finally:
        os.unlink(unfinished)


def label(data: str) -> str:
    """What stands above numbers computed from the records."""
    from recordwise.plan.schema import NO_LOOK

    return f"computed from {data} records: " if data in NO_LOOK else "CONFIDENTIAL: "


def show_coverage(file: "PlanFile", session: "Session", data: str) -> bool:
    """Show each table's records and cells, and whether it would release."""
    from recordwise.cli import screen
    from recordwise.exact.text import digits_text
    from recordwise.plan.schema import NO_LOOK
    from recordwise.session.checks import too_many_outside

    found = session.owner.preflight(*file.plan.queries, data=data)
    screen.heading(f"{label(data)}records and published cells")
    columns = {"records": "records", "outside": "outside", "cells": "cells", "empty cells": "empty"}
    if any(query.all_other for query in file.plan.queries):
        columns["in an all other cell"] = "in_rests"
    rows = [[each.name, *(f"{getattr(each, value):,}" for value in columns.values())] for each in found]
    screen.table(["table", *columns], rows)
    failed = file.max_outside is not None and too_many_outside(found, file.max_outside)
    if failed:
        screen.note(
            f"more than {digits_text(float(file.max_outside or 0), 3)} of the records of a table are outside: the release will be "
            'refused. Correct codes that are written differently, or state max_outside = "accept" in the plan.'
        )
    else:
        screen.paragraph("The release will be made as far as the keys are concerned.")
    if data not in NO_LOOK:
        screen.note(CHECKED if file.tuning_reason is None else VIEWED_WITH_REASON.format(reason=file.tuning_reason))
    return not failed


def show_looks(file: "PlanFile", session: "Session", data: str) -> None:
    """Unmatched codes and losses: further looks."""
    from recordwise.cli import screen
    from recordwise.exact.text import formula_text, share_text
    from recordwise.plan.cost import plan_policy
    from recordwise.session.checks import with_sizes

    for name, rows in session.owner.unmatched(*file.plan.queries, data=data).items():
        screen.heading(f"{label(data)}most frequent cells of {name} that no key names")
        screen.table(["cell", "records"], [[", ".join(map(str, cell)), f"{count:,}"] for cell, count in rows])
    summary = session.owner.loss_summary(plan_policy(with_sizes(file.plan)), data=data)
    screen.heading(f"{label(data)}records by their loss")
    screen.table(
        ["loss above", "share of the records"],
        [[formula_text(loss), share_text(summary.share_above(loss), 3)] for loss in CLASSES],
    )


# ``recordwise rehearse PLAN``: a release from beginning to end with generated records, at no cost.


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
    """Rehearse a release with generated records, at no cost.

    The ledger is thrown away, and files are marked NOT PRIVATE. Shows time, memory, sizes of files, statuses of
    cells and losses, and makes the page. The plan's source stays closed, and its ledger too unless --records are
    confidential: then it notes the look, and the folder is for its owner only.
    """
    import json

    from recordwise.planning.simulate.rehearse import rehearse as rehearsed

    file = load_with_parameters(plan, given)
    if records is not None:
        for_owner(data)
    found = rehearsed(file, out=out or unused_folder(plan), records=records, rows=rows, seed=seed, data=data)
    if as_json:
        typer.echo(json.dumps(found.to_json()))
    else:
        show_rehearsal(found)


def unused_folder(plan: Path) -> Path:
    """Return an unused folder name after the plan, in the current folder."""
    number, folder = 1, Path(f"{plan.stem}-rehearsal")
    while folder.exists():
        number += 1
        folder = Path(f"{plan.stem}-rehearsal-{number}")
    return folder


def show_rehearsal(found: "Rehearsal") -> None:
    """Print what was found."""
    from recordwise.cli import screen
    from recordwise.cli.options import VIEWED
    from recordwise.plan.schema import NO_LOOK

    screen.note(found.privacy_label)
    if found.data not in NO_LOOK:
        screen.note(VIEWED)
    screen.paragraph(f"Rehearsed in {found.folder}: {found.summary()}")
    screen.heading("Share of the cells by status")
    screen.table(*found.rows())
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
    for each in found.notes():
        screen.note(each)
    screen.paragraph(f"Open {found.folder}/report.html to see the page as it would look.")
