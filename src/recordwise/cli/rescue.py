"""Saves a release elsewhere if it cannot be saved as requested, because the budget is already spent, and reports where."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recordwise.errors import OutputError, ParameterError, RecordwiseError

if TYPE_CHECKING:
    from recordwise.plan.file.read import PlanFile
    from recordwise.plan.plan import Plan
    from recordwise.release.release import Release

BYTES_A_VALUE = 40
"""The size of a number in Parquet and CSV together, generously estimated."""
COLUMNS_A_VARIABLE = 6
SMALLEST = 1_000_000
MEGABYTE = 1_000_000
KEPT = (
    "The charge stands, and what was drawn is kept beside the ledger: run the same command with --resume and a folder that can be "
    "written. That costs nothing."
)


def check_room(plan: "Plan", out: Path, *, formats: int = 2) -> None:
    """Refuse a disk too small for the tables before anything is spent. Selected keys are not counted; their number is unknown."""
    import shutil

    from recordwise.exact.text import whole_text

    # The tables also wait beside the ledger, usually on the same disk, until their folder is complete.
    needed = SMALLEST + expected_bytes(plan) * (max(2, formats) + 1) // 2
    free = shutil.disk_usage(out.parent).free
    if free < needed:
        raise OutputError(
            folder=str(out),
            problem=f"needs about {whole_text(needed / MEGABYTE)} MB, and only {whole_text(free / MEGABYTE)} MB are free",
            advice="Nothing was spent. Free some space or name a folder on another disk.",
        )


def expected_bytes(plan: "Plan") -> int:
    """The approximate size of a plan's public cells in bytes."""
    total = 0
    for table in plan.tables():
        if plan.selection(table) is None and table.shape.groups:
            variables = len(plan.queries[table.query].statistics)
            columns = len(table.shape.groups) + COLUMNS_A_VARIABLE * variables
            total += plan.cells(table).num_rows * columns * BYTES_A_VALUE
    return total


def writable(done: "Release", formats: tuple[str, ...]) -> tuple[str, ...]:
    """The formats that can hold the release. Selected keys are known only now, so only now can one refuse them."""
    from recordwise.release.formats.registry import formats_named, require_held

    content, kept = done.content(), []
    for each in formats_named(formats):
        try:
            require_held(content, (each,))
            kept.append(each.name)
        except ParameterError as error:
            print(f"recordwise: {error} The release is saved without it.", file=sys.stderr)
    return tuple(kept)


def with_basic(done: "Release", file: "PlanFile") -> "Release":
    """The release with the basic tables that the plan asks for. The charge stands, so a failure leaves the research tables."""
    if file.basic is None:
        return done
    asked = file.basic
    try:
        return done.basic(fit=asked.fit, complete=asked.complete, units=asked.units, rules=asked.rules)
    except RecordwiseError as error:
        print(f"recordwise: {error} The release is saved without basic tables.", file=sys.stderr)
        return done


def with_history(done: "Release", before: Sequence["Release"]) -> "Release":
    """The release whose page shows the cells of earlier periods, too. A failure leaves it without them."""
    try:
        return done.with_history(*before)
    except RecordwiseError as error:
        print(f"recordwise: {error} The page is saved without earlier periods.", file=sys.stderr)
        return done


def saved(done: "Release", file: "PlanFile", out: Path, *, kept: bool) -> "Release":
    """Save as requested. If that fails, what was drawn is ``kept`` beside the ledger, or else saved there or in the temporary
    folder; the error says so.
    """
    formats = writable(done, file.formats)
    try:
        done.save(out, formats=formats)
        return done
    except OutputError as error:
        if kept:
            raise OutputError(folder=error.folder, problem=error.problem, advice=KEPT) from None
        for place in (file.ledger.resolve().parent, Path(tempfile.gettempdir())):
            folder = _unused(place / f"{out.name}-rescued")
            try:
                done.save(folder, formats=formats)
            except OutputError:
                continue
            raise OutputError(
                folder=error.folder,
                problem=error.problem,
                advice=f"The charge stands, and the complete release was saved in {folder} instead. Move it from there.",
            ) from None
        raise OutputError(
            folder=error.folder,
            problem=error.problem,
            advice="The charge stands and the release is lost: the ledger's folder and the temporary folder also failed.",
        ) from None


def _unused(folder: Path) -> Path:
    """A name that is not in use."""
    number, found = 1, folder
    while found.exists():
        number += 1
        found = folder.with_name(f"{folder.name}-{number}")
    return found
