"""What DuckDB makes of records that it copies from elsewhere: the totals of a plan, or what validation counts."""

from typing import Any

from build import exact_totals
from recordwise.engines import DuckDB
from recordwise.errors import DataError
from recordwise.plan import Plan, Schema

Counts = dict[tuple[str, str], int | None]


def revealed(source: Any, asked: Plan, **options: Any) -> list[list[list[int]]]:
    """The exact totals of every table of the plan, column by column."""
    with DuckDB(source, asked.schema, **options) as engine:
        answers = engine.totals(asked)
    return [exact_totals(answer) for answer in answers]


def problems(source: Any, schema: Schema) -> tuple[Counts, str]:
    """The problems that validation counts, and its message; nothing where the records are valid."""
    with DuckDB(source, schema) as engine:
        try:
            engine.validate()
        except DataError as error:
            return {(each.column, each.problem): each.count for each in error.problems}, str(error)
    return {}, ""
