"""Begin without a plan: a file of the folder, what its columns are, and public lists; the plan is the one ``init`` would write.

Only names and declared types of columns are read, and public lists; never a record. Files are those of the folder, by name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

from recordwise.errors import ParameterError, RecordwiseError

if TYPE_CHECKING:
    from recordwise.plan.file.first import SourceColumn, Wishes

RECORDS = (".parquet", ".pq", ".csv")
MOST_FILES = 200
NAMES = ("name", "label", "title", "description")
"""Endings of columns that say what a code is called, and are no level."""
UNIT, SUM, GROUP, NOTHING = "unit", "sum", "group", "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a person said about a file of records."""

    records: str
    headed: bool
    """Whether the first line of a CSV file holds names."""
    unit: tuple[str, ...]
    sums: dict[str, str]
    """The columns to sum, each with the value of a usual large record."""
    steps: dict[str, str]
    by: tuple[str, ...]
    codes: dict[str, str]
    """The published codes of columns without a list, as typed."""
    lists: dict[str, str]
    """Files of code lists, each with its levels, as typed."""
    sizes: str
    """The file with the sizes of cells; empty without one."""
    size_columns: dict[str, str]
    tuned_on: str


def read_form(content: Mapping[str, Any]) -> Form:
    """Read a form as the page sends it."""
    from recordwise.studio import form

    return form.read(Form, dict(content), what="form")


def record_files(folder: Path) -> list[dict[str, Any]]:
    """Return the files of the folder that can hold records or codes: Parquet first, then the largest."""
    found = [each for each in folder.iterdir() if each.suffix.lower() in RECORDS and not each.name.startswith(".")]
    inside = [each for each in found if each.is_file() and each.resolve().parent == folder.resolve()]
    sized = sorted((each.suffix.lower() == ".csv", -each.stat().st_size, each.name) for each in inside)
    return [{"name": name, "bytes": -size} for _, size, name in sized[:MOST_FILES]]


def _file(folder: Path, name: str) -> Path:
    """Return a file of the folder; no other name leads anywhere."""
    if name not in {each["name"] for each in record_files(folder)}:
        raise ParameterError(parameter="the file", problem="is not one of the folder", advice="Choose one of the list.")
    return folder / name


def _columns(folder: Path, name: str, headed: bool) -> "list[SourceColumn]":
    from recordwise.engines.sources.columns import declared_columns

    return declared_columns(str(_file(folder, name)), headed=headed)


def propose(folder: Path, records: str, *, headed: bool) -> dict[str, Any]:
    """Return what the columns are taken for, and the public lists and sizes that fit them."""
    from recordwise.engines.sources.columns import is_csv
    from recordwise.plan.file.first import OTHER, roles_of

    found = _columns(folder, records, headed)
    roles = roles_of(found)
    measures = {each.name for each in roles.measures}
    lists = _lists(folder, records, [each.name for each in found])
    grouped = {levels[-1] for levels in lists.values()}

    def role(name: str) -> str:
        return UNIT if name in roles.unit else GROUP if name in grouped else SUM if name in measures else NOTHING

    return {
        "csv": is_csv(str(_file(folder, records))),
        "columns": [
            {"name": each.name, "kind": each.kind, "role": role(each.name), "step": each.step or "1"}
            for each in found
            if each.kind != OTHER
        ],
        "lists": {file: ", ".join(levels) for file, levels in lists.items()},
        "sizes": _sizes(folder, records, {name for levels in lists.values() for name in levels}),
    }


def _lists(folder: Path, records: str, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the files that have a column of the records after a coarser level, each with its levels."""
    found = {}
    for file, columns in _public_files(folder, records):
        held = [number for number, column in enumerate(columns) if column in names]
        levels = [each for each in columns[: held[0] + 1] if not each.lower().endswith(NAMES)] if held else []
        if len(levels) > 1 and len(held) == 1:
            found[file] = tuple(levels)
    return found


def _sizes(folder: Path, records: str, levels: set[str]) -> dict[str, list[str]]:
    """Return the files that may hold sizes of cells: the finest levels, and further columns."""
    return {
        file: [each for each in columns if each not in levels]
        for file, columns in _public_files(folder, records)
        if levels & set(columns) and not set(columns) - levels <= {each for each in columns if each.endswith(NAMES)}
    }


def _public_files(folder: Path, records: str) -> "list[tuple[str, list[str]]]":
    from recordwise.plan.sources import read_code_file

    found = []
    for each in record_files(folder):
        # Lists are small; records of another year are not read.
        if each["name"] == records or each["bytes"] > 50_000_000 or not each["name"].lower().endswith(".csv"):
            continue
        try:
            found.append((each["name"], list(read_code_file(folder / each["name"]).column_names)))
        except RecordwiseError:
            continue
    return found


def _wishes(folder: Path, form: Form, found: "Sequence[SourceColumn]", plan: Path) -> "Wishes":
    from recordwise.plan.file.first import CodeList, SizeList, Wishes, relative_path
    from recordwise.plan.sources import read_code_file

    def split(text: str) -> tuple[str, ...]:
        return tuple(each.strip() for each in text.split(",") if each.strip())

    lists = tuple(
        CodeList(name=Path(file).stem, path=relative_path(_file(folder, file), plan), levels=split(levels))
        for file, levels in form.lists.items()
    )
    for each in lists:
        if not each.levels:
            raise ParameterError(
                parameter=f"the list {each.name}", problem="has no levels", advice="Name its columns, coarsest first."
            )
    held = {level for each in lists for level in each.levels}
    wishes = Wishes(
        unit=form.unit,
        sums=form.sums,
        counts_only=not form.sums,
        steps={name: step for name, step in form.steps.items() if name in form.sums},
        by=tuple(name for name in form.by if name not in held),
        keys={name: split(codes) for name, codes in form.codes.items() if name in form.by and split(codes)},
        tuned_on=form.tuned_on,
        code_lists=lists,
    )
    if form.sizes:
        path = relative_path(_file(folder, form.sizes), plan)
        columns = {name: column for name, column in form.size_columns.items() if name in form.sums and column}
        finest = {*wishes.by, *(each.levels[-1] for each in lists)}
        present = set(read_code_file(_file(folder, form.sizes)).column_names)
        wishes = replace(
            wishes, sizes=SizeList(path=path, columns=columns, all_keys=bool(finest) and finest <= present)
        )
    wishes.check(found)
    return wishes


def plan_text(folder: Path, form: Form, plan: Path) -> str:
    """Return the plan of a form, with blanks where something is missing."""
    from recordwise.engines.sources.columns import csv_options
    from recordwise.plan.file.first import first_plan, relative_path

    found, file = _columns(folder, form.records, form.headed), _file(folder, form.records)
    wishes = _wishes(folder, form, found, plan)
    dataset = file.name.partition(".")[0]
    csv = csv_options(str(file))
    return first_plan(
        {"source": relative_path(file, plan)}, found, dataset=dataset, looked=False, csv=csv, wishes=wishes
    )


def draft(folder: Path, form: Form) -> dict[str, Any]:
    """Return the plan of a form, and the number of cells of each table or what is left to say."""
    from recordwise.plan.describe import table_name
    from recordwise.plan.file.read import load_plan

    text = plan_text(folder, form, folder / "plan.toml")
    try:
        with NamedTemporaryFile("w", dir=folder, suffix=".toml", prefix=".studio-", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            plan = load_plan(file.name).plan
    except RecordwiseError as error:
        return {"text": text, "cells": 0, "tables": [], "problem": _problem(error)}
    counts = [
        (table_name(plan, table), plan.cells(table).num_rows if table.shape.groups else 1)
        for table in plan.tables()
        if plan.selection(table) is None
    ]
    tables = [{"name": name, "cells": count} for name, count in counts]
    return {"text": text, "cells": sum(count for _, count in counts), "tables": tables, "problem": ""}


def _problem(error: RecordwiseError) -> str:
    """Return the first problem of a plan, without its place in a file that nobody sees."""
    listed = getattr(error, "problems", ())
    return str(getattr(listed[0], "message", listed[0])) if listed else str(error)


def write_plan(folder: Path, form: Form) -> Path:
    """Write the plan of a form under the first free name.

    Raises:
        ParameterError: Something is left to say.
    """
    found = draft(folder, form)
    if found["problem"]:
        raise ParameterError(parameter="the plan", problem="is not complete", advice=found["problem"])
    number, file = 1, folder / "plan.toml"
    while file.exists():
        number += 1
        file = folder / f"plan-{number}.toml"
    file.write_text(found["text"], encoding="utf-8")
    return file
