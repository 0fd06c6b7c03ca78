"""What the audit asks: every subject with its query, keys, records and steps, and those of a plan."""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from recordwise.audit.subjects import Subject, every_subject, plan_subjects
from recordwise.plan.file import load_plan
from recordwise.plan.query import Query
from studio.small_plan import write_plan

Told = Iterator[tuple[str, Any]]
CELLS = ["0000000A", "0000001A", "0000002A"]


def asked(query: Query) -> list[Any]:
    """Its statistics and tables."""
    return [*map(repr, query.statistics), *([str(each.share), *each.names()] for each in query.tables())]


def about(subject: Subject) -> list[tuple[str, Any]]:
    """All that it holds, and what it would publish on three cells."""
    keys = subject.keys_of(CELLS)
    held = {"keys": [subject.keys, str(keys), repr(keys.selection), repr(keys.sizes)], "ask": asked(subject.ask(keys))}
    held["first"] = [] if subject.first is None else asked(subject.first(keys))
    rest = [field.name for field in fields(subject) if field.name not in {*held, "keys_of"}]
    return [*held.items(), *((name, getattr(subject, name)) for name in rest)]


def of_catalogue() -> Told:
    for name, make in every_subject().items():
        yield name, dict(about(make()))


def of_plans() -> Told:
    with TemporaryDirectory() as place:
        file = load_plan(write_plan(Path(place), rows=5))
    for each in plan_subjects(file.plan):
        yield each.name, dict(about(each))


SUBJECTS = {"catalogue": of_catalogue, "plans": of_plans}
