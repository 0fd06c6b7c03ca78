"""The expected error of every table, from the noise laws alone: no record is read.

A combination, ratio or average has the standard deviation that is published with it, at totals of its parts in proportion to the
records that its mechanisms are made for: 1 for a count; the threshold, clamping bound or offset for a sum, and 1 without any.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.text import figure
from recordwise.mechanisms.base import clamping_bound, shared, totals_for
from recordwise.mechanisms.described import mechanism_text
from recordwise.plan.cost import cell_mechanisms, possible_mechanisms
from recordwise.plan.describe import table_name
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.statistics import Drawable, Statistic
from recordwise.plan.statistics.base import SUM, Form
from recordwise.policy.constructors import By

TOTALS = (100, 10_000, 1_000_000)


def expected_errors(plan: Plan) -> list[dict[str, Any]]:
    """For each table and variable, its mechanism and its standard deviation at a few totals (least and most over the cells)."""
    found = []
    for table in plan.tables():
        cells = plan.cells(table) if plan.selection(table) is None else None
        query = plan.queries[table.query]
        drawn = query.draws()
        served = {each: _served(plan, table, each, cells) for each in drawn if each.totals(plan.schema)}
        asked = [*query.statistics, *(each for each in drawn if each not in query.statistics)]
        for statistic in asked:
            if set(statistic.parts(drawn)) <= set(served):
                least, most = _deviations(plan, statistic.forms(drawn), served)
                found.append(
                    {
                        "table": table_name(plan, table),
                        "cells": None if cells is None else cells.num_rows if table.shape.groups else 1,
                        "variable": statistic.alias,
                        **_words(plan, table, statistic, drawn),
                        "totals": list(TOTALS),
                        "least_sd": least.tolist(),
                        "most_sd": most.tolist(),
                    }
                )
    return found


def _served(plan: Plan, table: PlannedTable, statistic: Drawable, cells: Any) -> list[Any]:
    """The mechanisms that cells of a table may have."""
    if cells is None:
        return list(possible_mechanisms(plan, table, statistic))
    return [each.mechanism for each in cell_mechanisms(plan, table, statistic, cells)]


def _deviations(
    plan: Plan, forms: tuple[Form, Form], served: dict[Drawable, list[Any]]
) -> tuple[FloatArray, FloatArray]:
    """Of N/D, with r the ratio of the totals: the root of the variance of N - r D, divided by D (T-RATIO); of N alone, its root."""
    top, bottom = forms
    whole = _size(bottom or top, plan)
    totals = {part: _fitting(part, whole, plan) for part, _ in top + bottom}
    over = _total(bottom, totals) if bottom else np.ones(len(TOTALS))
    ratio = _total(top, totals) / over if bottom else np.zeros(len(TOTALS))
    least, most = np.zeros(len(TOTALS)), np.zeros(len(TOTALS))
    for part, own in totals.items():
        weight = (_share(top, part) - ratio * _share(bottom, part)) ** 2
        step = part.step(plan.schema)
        spread = np.array([each.variance(totals_for(each, own), step=step) for each in served[part]])
        least, most = least + weight * spread.min(axis=0), most + weight * spread.max(axis=0)
    return np.sqrt(least) / over, np.sqrt(most) / over


def _fitting(part: Drawable, whole: Fraction, plan: Plan) -> FloatArray:
    """The totals of a part, in whole steps, at the totals of what it is a part of."""
    step = part.step(plan.schema)
    share = _record(part, plan) / (whole * step)
    return np.array([float(max(round(total * share), 1) * step) for total in TOTALS])


def _record(part: Drawable, plan: Plan) -> Fraction:
    """What a record adds to a part, of the size that its mechanism is made for."""
    if part.contribution != SUM:
        return Fraction(1)
    at = part.threshold(part.mechanism, plan.schema)
    if isinstance(at, By):
        at = min(number for _, number in at.values)
    return Fraction(at or clamping_bound(part.mechanism) or getattr(part.mechanism, "offset", None) or 1)


def _size(form: Form, plan: Plan) -> Fraction:
    """What such a record adds to a form, if nothing cancels."""
    return sum((abs(share) * _record(part, plan) for part, share in form), Fraction(0))


def _share(form: Form, part: Drawable) -> float:
    return float(sum(share for other, share in form if other == part))


def _total(form: Form, totals: dict[Drawable, FloatArray]) -> FloatArray:
    """The total of a form, if nothing cancels."""
    return np.asarray(sum(abs(float(share)) * totals[part] for part, share in form))


def _words(plan: Plan, table: PlannedTable, statistic: Statistic, drawn: Sequence[Drawable]) -> dict[str, Any]:
    """The mechanism of what is drawn; of everything else, what it is computed as."""
    top, bottom = statistic.forms(drawn)
    if statistic in drawn:
        return {"mechanism": mechanism_text(shared(top[0][0].mechanism, table.shape.share)), "ratio": None}
    if not bottom:
        return {"mechanism": "a combination of columns", "ratio": None}
    ratio = float(_size(top, plan) / _size(bottom, plan))
    return {"mechanism": f"a ratio of about {figure(ratio)}", "ratio": ratio}
