"""The mechanisms of a plan as audit subjects: its queries run on made-up neighboring tables, never on its records."""

from fractions import Fraction
from typing import Any

from recordwise.audit.subjects import CELL, VALUE, Subject, record, statement, sum_subject
from recordwise.plan.cost import possible_mechanisms
from recordwise.plan.plan import Plan
from recordwise.plan.statistics import Drawable
from recordwise.plan.statistics.base import SUM

BY_CELL = f"FROM t GROUP BY {CELL}"


def plan_subjects(plan: Plan) -> list[Subject]:
    """One subject for each mechanism that can serve a cell of a table, with level shares and group thresholds applied."""
    found: dict[tuple[str, Any, Fraction], Subject] = {}
    for table in plan.tables():
        for statistic in plan.queries[table.query].draws():
            for mechanism in possible_mechanisms(plan, table, statistic):
                step = statistic.step(plan.schema)
                if (statistic.alias, mechanism, step) not in found:
                    found[statistic.alias, mechanism, step] = _subject(statistic, mechanism, step)
    return list(found.values())


def _subject(statistic: Drawable, mechanism: Any, step: Fraction) -> Subject:
    name = f"{statistic.alias}: {type(mechanism).__name__}"
    if statistic.contribution == SUM:
        return sum_subject(name, mechanism, step=step)
    asked = statement(f"SELECT {CELL}, {statistic.example_sql(VALUE)} AS answer {BY_CELL}", answer=mechanism)
    return Subject(name=name, ask=asked, records={"any": record(step)}, step=step)
