"""A policy as a notebook shows it: its formula, a description, and a chart of losses by record size."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from recordwise.errors import RecordError
from recordwise.policy.cases import example_date, tests_of
from recordwise.policy.conditions import Among
from recordwise.policy.literals import plain_value
from recordwise.policy.render.html import Html, Line, element, small_chart, spread
from recordwise.policy.render.text import policy_words, value_words

if TYPE_CHECKING:
    from recordwise.policy.policy import Policy

MOST_LINES = 4
POINTS = 49
DECADES = 6
ENDS = ("almost nothing can be learned", "hardly any protection")


def policy_html(policy: "Policy") -> str:
    """Markup in which every name is escaped."""
    lines = list(_lines(policy))[:MOST_LINES]
    pictures = [_picture(policy, lines)] if lines else []
    return element("div", element("p", f"$${policy.to_latex()}$$"), element("p", policy_words(policy)), *pictures)


def _picture(policy: "Policy", lines: list[Line]) -> Html:
    measures = policy.inputs()
    across = measures[0].name if len(measures) == 1 or policy.columns() else "the measure, the others at 0"
    key = ", ".join(f"{style} {line.name}" for style, line in zip(STYLES, lines)) if len(lines) > 1 else ""
    chart = small_chart(lines, ends=ENDS, across_name=across, up_name="privacy loss ρ")
    return element("figure", chart, element("figcaption", key))


STYLES = ("solid:", "dashed:", "dotted:", "dash and dot:")


def _lines(policy: "Policy") -> Iterator[Line]:
    """One line for each measure; if the policy depends on one group column, one line for each group, for the first measure."""
    measures = policy.inputs()
    columns = {column.name for column in policy.columns()} - {measure.name for measure in measures}
    if not measures or len(columns) > 1:
        return
    record: dict[str, Any] = {measure.name: 0 for measure in measures}
    if not columns:
        for measure in measures:
            yield from _line(policy, record, measure.name, float(measure.step), measure.name)
        return
    (name,) = columns
    if any(column.part for column in policy.columns()):
        yield from _line(
            policy, record | {name: example_date(policy, name)}, measures[0].name, float(measures[0].step), name
        )
        return
    values = dict.fromkeys(value for test in tests_of(policy) if isinstance(test, Among) for value in test.values)
    for value in values:
        step = float(measures[0].step)
        yield from _line(policy, record | {name: plain_value(value)}, measures[0].name, step, value_words(value))


def _line(policy: "Policy", record: dict[str, Any], measure: str, step: float, name: str) -> Iterator[Line]:
    sizes = spread(step, step * 10**DECADES, POINTS)
    try:
        losses = [float(policy.loss(record | {measure: size})) for size in sizes]
    except RecordError:
        return
    if all(math.isfinite(loss) for loss in losses):
        yield Line(name=name, x=sizes, y=losses)
