"""Random tables in random files: every one that is accepted has the totals that an independent reader finds, cell by cell.

A table may be refused; then the message quotes nothing of its records. One that the independent reader cannot read must be.
"""

import shutil
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from independent_reader import Reader, Refused
from plain_mechanism import Plain
from random_files import spoil, write
from random_sources import SEED, Case, make

import recordwise as rw
from recordwise.errors import RecordwiseError
from recordwise.plan import Column, Measure, Plan, Schema, query

M = Plain()


@dataclass(frozen=True)
class Outcome:
    """What became of a case: totals by table and cell without empty cells, or why it was refused."""

    totals: Any = None
    refused: str = ""
    error: BaseException | None = None


def made(number: int, place: Path) -> Case:
    folder = place / f"case{number}"
    folder.mkdir()
    return make(number, folder, write, spoil)


def expected(case: Case, reader: Reader) -> Outcome:
    """What the independent reader finds."""
    try:
        records = reader.records(case.files, case.declared)
    except Refused as refusal:
        return Outcome(refused=str(refusal))
    except Exception as error:
        return Outcome(refused=f"unreadable: {type(error).__name__}")
    measures = [each for each in case.declared if each.role == "measure"]
    (step,) = (each.step for each in measures if each.name == "emp")
    found: list[dict[Any, list[int]]] = [{}, {}, {}]
    for record in records:
        cell = tuple(record[name].month if name == "opened" and record[name] else record[name] for name in case.keys)
        numbers = [1, *(record[each.name] for each in measures)]
        listed = all(value in case.keys[name] for name, value in zip(case.keys, cell))
        above = record["emp"] * step >= case.least
        for table, place, counts in ((0, (), True), (1, cell, listed), (2, (), above)):
            if counts:
                found[table][place] = [a + b for a, b in zip(found[table].get(place, [0] * len(numbers)), numbers)]
    return Outcome(totals=[without_empty(each) for each in found])


def without_empty(cells: dict[Any, list[int]]) -> dict[Any, list[int]]:
    return {cell: numbers for cell, numbers in cells.items() if any(numbers)}


def schema_of(case: Case) -> Schema:
    return Schema.of(
        unit="id",
        measures={
            each.name: Measure.of(
                each.name, step=each.step, bound=each.bound, null="zero" if each.null else "refuse", signed=each.signed
            )
            for each in case.declared
            if each.role == "measure"
        },
        columns={
            each.name: Column(name=each.name, type=each.role, null="category" if each.null else "refuse")
            for each in case.declared
            if each.role not in ("id", "measure")
        },
    )


def source_of(case: Case) -> Any:
    files = case.files
    if files.kind == "csv":
        return rw.Csv(files.paths, delimiter=files.delimiter, decimal=files.decimal, encoding=files.encoding)
    if files.kind == "sqlite":
        return rw.Database(files.place / "firms.db", table=files.table)
    return files.place if files.kind == "hive" else list(files.paths)


def questions(case: Case, mechanism: Any = M) -> list[Any]:
    """Everything, everything by cell, and what a condition selects."""
    groups = [rw.month(name) if name == "opened" else name for name in case.keys]
    listed = list(product(*case.keys.values()))
    names = ["opened_month" if name == "opened" else name for name in case.keys]
    keys = {name: [row[place] for row in listed] for place, name in enumerate(names)}
    asked = [query(), query().group_by(*groups, keys=keys), query().where(f"emp >= {case.least}")]
    measures = [each.name for each in case.declared if each.role == "measure"]
    found = []
    for each in asked:
        each = each.count(mechanism)
        for name in measures:
            each = each.sum(name, mechanism)
        found.append(each)
    return found


def outcome(case: Case, opens: Any) -> Outcome:
    """What an engine finds."""
    schema = schema_of(case)
    try:
        with opens(source_of(case), schema) as engine:
            answers = engine.totals(Plan(schema=schema, queries=tuple(questions(case))))
    except RecordwiseError as error:
        return Outcome(refused=str(error), error=error)
    found = []
    for answer in answers:
        columns = [each.tolist() for each in answer.exact.reveal().totals.values()]
        cells = zip(*(column.to_pylist() for column in answer.cells.columns)) if answer.cells.num_columns else [()]
        found.append(without_empty(dict(zip(cells, map(list, zip(*columns))))))
    return Outcome(totals=found)


def faults(case: Case, wanted: Outcome, got: Outcome) -> list[str]:
    """What is wrong with an outcome."""
    told = [] if got.error is None else [str(got.error), repr(got.error.args), repr(got.error.__cause__)]
    quoted = sorted(mark for mark in case.marks if any(mark in text for text in told))
    if quoted:
        return [f"its message quotes {quoted}: {got.refused}"]
    if got.error is not None:
        return [f"a plain table is refused: {got.refused}"] if wanted.totals is not None and not case.odd else []
    if wanted.totals is None:
        return [f"it must be refused ({wanted.refused}), and has {got.totals}"]
    return [f"{got.totals} instead of {wanted.totals}"] if got.totals != wanted.totals else []
