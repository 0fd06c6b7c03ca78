"""``recordwise check``, ``preflight`` and ``rehearse``: try a plan before anything is charged."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import BAD_INPUT, BUDGET_REFUSED, AsJson, Debug, ends_well
from recordwise.cli.options import VIEWED, Data, Set, for_owner, loaded

if TYPE_CHECKING:
    from recordwise.errors import BudgetError
    from recordwise.plan.file.read import PlanFile
    from recordwise.planning.simulate.rehearse import Rehearsal
    from recordwise.policy.policy import Policy
    from recordwise.release.release import Release
    from recordwise.session.session import Session


# ``recordwise check PLAN``: what a plan would cost and how accurate it would be, before any record is read.


DELTA = 1e-5
LEAST_SHARE = 0.0005
"""Smaller relative errors are not told apart."""


@ends_well
def check(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.", show_default=False)],
    no_source: Annotated[bool, typer.Option("--no-source", help="Do not look at the source.")] = False,
    given: Set = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Check a plan without reading records: problems, columns of the source, policy, losses and expected errors."""
    import json

    from recordwise.engines.registry import source_state
    from recordwise.plan.file.node import hiding
    from recordwise.release.formats import formats_named

    file = loaded(plan, given)
    formats_named(file.formats)
    source = "not looked at"
    if not no_source:
        with hiding(file.hidden):
            source = source_state(file.source, file.plan.schema, engine=file.engine)
    found = examined(file) | {"source": source}
    if as_json:
        typer.echo(json.dumps(found, default=str))
    else:
        show_check(file, found)
    if found["budget"] == "refused":
        raise typer.Exit(BUDGET_REFUSED)


def examined(file: "PlanFile") -> dict[str, Any]:
    """Everything that can be said about a plan without its records."""
    from recordwise.plan.cost import declared_elsewhere, plan_policy
    from recordwise.planning.expected import expected_errors
    from recordwise.policy.render.text import policy_lines

    file = with_known_sizes(file)
    policy, paper = plan_policy(file.plan), plan_policy(file.plan, tight=False)
    refusal = budget_refusal(file, policy)
    return {
        "plan": str(file.path),
        "dataset": file.dataset,
        "policy": policy.to_json(),
        "formula": policy_lines(policy),
        "words": policy.in_words(),
        "examples": losses(file, policy, paper),
        "expected_error": [
            each.to_json() for each in expected_errors(file.plan, examples=file.examples, last=last_release(file))
        ],
        "budget": "none" if file.budget is None else "covers the plan" if refusal is None else "refused",
        "refusal": None if refusal is None else str(refusal),
        "hierarchies": [each.about() for each in file.plan.schema.hierarchies],
        "declared_elsewhere": [each.to_json() for each in declared_elsewhere(file.plan)],
        **sizes(file),
        "warnings": warnings(file),
    }


def last_release(file: "PlanFile") -> "Release | None":
    """The last of the earlier releases that a plan names."""
    from recordwise.release.files import load_release

    return load_release(file.earlier[-1]) if file.earlier else None


def losses(file: "PlanFile", policy: "Policy", paper: "Policy") -> list[dict[str, Any]]:
    """The loss of each example record, or the error where the policy gives no guarantee."""
    from recordwise.cli.examples import example_records, record_text
    from recordwise.errors import RecordError
    from recordwise.policy.meaning import epsilon

    rows: list[dict[str, Any]] = []
    for name, record in example_records(file, policy).items():
        row: dict[str, Any] = {"name": name, "record": record_text(record)}
        try:
            loss, own = float(policy.loss(record)), float(policy.delta(record))
            row |= {"loss": loss, "paper_loss": float(paper.loss(record))}
            row |= {"epsilon": epsilon(loss, DELTA), "delta": DELTA + own, "selection_delta": own}
        except RecordError as error:
            row["refused"] = str(error)
        rows.append(row)
    return rows


def with_known_sizes(file: "PlanFile") -> "PlanFile":
    """The plan as it would be drawn: sizes of earlier releases are read, and bands raised until the budget covers them."""
    from dataclasses import replace

    from recordwise.errors import BudgetError
    from recordwise.session.session import plan_ledger
    from recordwise.session.sizes import raised, with_sizes

    plan = with_sizes(file.plan)
    if plan is file.plan:
        return file
    with plan_ledger(file) as ledger:
        try:
            plan = raised(plan, ledger)
        except BudgetError:
            # It cannot be covered whatever the bands; that is said about the plan as it stands.
            return replace(file, plan=plan)
    return replace(file, plan=plan)


def sizes(file: "PlanFile") -> dict[str, Any]:
    """Where the public sizes of cells are from, and what that means for the promise over time."""
    from recordwise.session.session import plan_ledger
    from recordwise.session.sizes import check_own_sizes, promise, size_sources

    sources = size_sources(file.plan)
    if not sources:
        return {}
    with plan_ledger(file) as ledger:
        check_own_sizes(file.plan, ledger)
        return {"sizes": [{"sized_on": each, "digest": own} for each, own in sources.items()]} | promise(
            file.plan, ledger
        )


def budget_refusal(file: "PlanFile", policy: "Policy") -> "BudgetError | None":
    """The error that a charge to the ledger would raise, if any, taking earlier charges into account."""
    from recordwise.errors import BudgetError
    from recordwise.session.session import plan_ledger

    with plan_ledger(file) as ledger:
        try:
            ledger.check(policy, query="the plan")
        except BudgetError as error:
            return error
    return None


def looks_of(file: "PlanFile") -> str:
    """The looks at confidential records that the plan's ledger notes, in words; empty where there is none."""
    from recordwise.ledger.ledger import Ledger
    from recordwise.ledger.looks import looks_in_words

    if not file.ledger.exists():
        return ""
    ledger = Ledger.existing(file.ledger)
    found = looks_in_words(ledger.looks())
    ledger.close()
    return found


def looked_warning(looks: str, reason: str | None) -> str:
    """What that means for a release."""
    told = f"the ledger records that the confidential records were viewed ({looks})"
    if reason:
        return f"{told}; the reason given will be published with the release: {reason}"
    return f'{told}: the release will be refused unless the plan gives accept_tuning = "reason", which is published with it'


def warnings(file: "PlanFile") -> list[str]:
    """What the owner should know before a release."""
    from recordwise.engines.engine import missing_extra
    from recordwise.engines.registry import engine_kind
    from recordwise.errors import MissingPartError
    from recordwise.ledger.ledger import FIXED_IN_ADVANCE
    from recordwise.plan.cost import plan_warnings

    found = list(plan_warnings(file.plan))
    clamped = [each.alias for query in file.plan.queries for each in query.draws() if each.mechanism.to is not None]
    for alias in dict.fromkeys(clamped):
        found.append(
            f"{alias} is clamped: besides noise it has a bias from clamping, which is not included in the stated error"
        )
    if file.budget is None:
        found.append(f"no budget is declared: the {FIXED_IN_ADVANCE}")
    if file.tuned_on == "confidential":
        found.append(
            f"tuned on the confidential table; the reason given will be published with the release: {file.accept_tuning}"
        )
    elif looks := looks_of(file):
        found.append(looked_warning(looks, file.accept_tuning))
    for each in file.plan.schema.hierarchies:
        if not each.is_public:
            found.append(
                f"the hierarchy {each.name} is not from a public source; the reason given will be published with the release: "
                f"{file.accept_tuning}"
            )
    missing = missing_extra(file.source, of_engine=engine_kind(file.engine).extra)
    if missing is not None:
        # The command comes first, so that it is not broken across lines.
        found.append(f"run {missing.command}: {missing.what} needs the extra '{missing.extra}', which is not installed")
    try:
        engine_kind(file.engine).check()
    except MissingPartError as error:
        found.append(str(error))
    return found


def show_check(file: "PlanFile", found: dict[str, Any]) -> None:
    """Print the findings."""
    from recordwise.cli import screen

    screen.paragraph(
        f"{file.path}: no problem found. Dataset '{file.dataset}'; no record was read and nothing was spent."
    )
    screen.paragraph(f"The source: {found['source']}.")
    for each in found["hierarchies"]:
        screen.paragraph(_list_words(each))
    for each in found.get("sizes", ()):
        screen.paragraph(f"Sizes of cells: {each['sized_on']}; SHA-256 {each['digest']}.")
    if "sized_noise" in found:
        screen.paragraph(f"Promise over time: {found['sized_noise']}.")
    screen.heading("Privacy loss of a record")
    for number, line in enumerate(found["formula"]):
        typer.echo(("  loss = " if number == 0 else "       + ") + line)
    typer.echo("")
    screen.paragraph(found["words"])
    screen.heading("Losses at example records")
    show_losses(found["examples"])
    screen.heading("Expected error: a value and the standard deviation of its noise, in ...")
    show_expected(found["expected_error"], file)
    screen.heading(f"Budget: {found['budget']}")
    if found["refusal"]:
        screen.note(found["refusal"])
    for warning in found["warnings"]:
        screen.note(warning)


def _list_words(hierarchy: dict[str, Any]) -> str:
    """What is said about a public list of codes."""
    apart = "".join(f" {one} and {two} do not nest." for one, two in hierarchy.get("not_nested", ()))
    return (
        f"The hierarchy {hierarchy['name']}: {hierarchy['codes']:,} codes in the levels {', '.join(hierarchy['levels'])}; "
        f"source: {hierarchy['source']}; SHA-256 {hierarchy['digest']}.{apart}"
    )


def show_losses(examples: list[dict[str, Any]]) -> None:
    from recordwise.cli import screen
    from recordwise.exact.text import digits_text, figure, formula_text

    titles = {"loss": "loss", "epsilon": f"epsilon at {formula_text(DELTA)}", "paper_loss": "loss as in the papers"}
    if any(each.get("selection_delta") for each in examples):
        titles |= {"epsilon": f"epsilon at {formula_text(DELTA)} + delta", "selection_delta": "delta"}
    rows = []
    for each in examples:
        numbers = [figure(each[key]) if key in each else "-" for key in titles]
        rows.append([each["name"], each["record"], *numbers])
    screen.table(["record", "", *titles.values()], rows)
    for each in examples:
        if "refused" in each:
            screen.note(f"{each['name']}: {each['refused']}")
        elif each["selection_delta"]:
            screen.note(
                f"{each['name']}: keys are selected, so epsilon holds at delta {digits_text(each['delta'], 3)}, of which "
                f"{digits_text(each['selection_delta'], 3)} is the chance that its key is listed because of it alone"
            )


def show_expected(expected: list[dict[str, Any]], file: "PlanFile") -> None:
    from recordwise.cli import screen
    from recordwise.exact.text import brief_text

    tables: dict[str, list[list[str]]] = {}
    for each in expected:
        numbers = zip(each["totals"], each["least_sd"], each["most_sd"])
        cells = "selected" if each["cells"] is None else f"{each['cells']:,}"
        unit = file.words.unit(each["variable"], each["of"])
        name = f"{each['variable']} ({unit})" if unit else each["variable"]
        row = [name, each["mechanism"], *(error_text(*three) for three in numbers)]
        tables.setdefault(f"{each['table']} (cells: {cells})", []).append(row)
    for name, rows in tables.items():
        screen.paragraph(name)
        screen.table(["", "noise", "a small cell", "a middle cell", "a large cell"], rows)
        typer.echo("")
    for source in dict.fromkeys(each["source"] for each in expected):
        names = dict.fromkeys(each["variable"] for each in expected if each["source"] == source)
        screen.paragraph(f"{', '.join(names)}: {source}.")
    if any(each["usual"] for each in expected):
        usual = {name: size for each in expected for name, size in each["usual"].items()}
        told = ", ".join(f"{name} {brief_text(size)}" for name, size in usual.items())
        screen.paragraph(f"A usual record, as the examples or the mechanisms suggest: {told}.")


def error_text(value: float, least: float, most: float) -> str:
    """A value, its error in the same unit, and as a share."""
    from recordwise.exact.text import brief_text, percent_text

    error = brief_text(most) if least == most else f"{brief_text(least)} to {brief_text(most)}"
    share = most / abs(value) if value else 0.0
    words = percent_text(share) if share >= LEAST_SHARE else "< 0.1%"
    return f"{brief_text(value)} ± {error}" + (f" ({words})" if value else "")


# ``recordwise preflight PLAN``: do the keys of a plan match the records? For the owner, on a terminal, never in a
# file.


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
    from recordwise.plan.schema import NO_LOOK

    return f"computed from {data} records: " if data in NO_LOOK else "CONFIDENTIAL: "


def coverage_shown(file: "PlanFile", session: "Session", data: str) -> bool:
    """The records and cells of each table, and whether a release would be made."""
    from recordwise.cli import screen
    from recordwise.exact.text import digits_text
    from recordwise.plan.schema import NO_LOOK
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
    """Rehearse a release: generated records, a ledger that is thrown away, files marked NOT PRIVATE. Costs nothing.

    Shows time, memory, sizes of files, statuses of cells and losses, and makes the page. The plan's source stays closed, and its
    ledger too unless --records are confidential: then it notes the look, and the folder is for its owner only.
    """
    import json

    from recordwise.planning.simulate.rehearse import rehearse as rehearsed

    file = loaded(plan, given)
    if records is not None:
        for_owner(data)
    found = rehearsed(file, out=out or unused_folder(plan), records=records, rows=rows, seed=seed, data=data)
    if as_json:
        typer.echo(json.dumps(found.to_json()))
    else:
        show_rehearsal(found)


def unused_folder(plan: Path) -> Path:
    """A folder named after the plan that does not exist yet, in the current one."""
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
