"""The expected error of every table, from the noise laws alone: no record is read."""

from typing import Any

import numpy as np

from recordwise.mechanisms.base import shared, totals_for
from recordwise.mechanisms.described import mechanism_text
from recordwise.plan.cost import cell_mechanisms, possible_mechanisms
from recordwise.plan.describe import table_name
from recordwise.plan.plan import Plan

TOTALS = (100, 10_000, 1_000_000)


def expected_errors(plan: Plan) -> list[dict[str, Any]]:
    """For each table and variable, its mechanism and its standard deviation at a few totals (least and most over the cells)."""
    found = []
    for table in plan.tables():
        public = plan.selection(table) is None
        cells = plan.cells(table) if public else None
        for statistic in plan.queries[table.query].draws():
            if not statistic.totals(plan.schema):
                continue
            served = (
                [each.mechanism for each in cell_mechanisms(plan, table, statistic, cells)]
                if public
                else possible_mechanisms(plan, table, statistic)
            )
            spread = [each.variance(totals_for(each, TOTALS), step=statistic.step(plan.schema)) for each in served]
            deviations = np.sqrt(np.array(spread))
            found.append(
                {
                    "table": table_name(plan, table),
                    "cells": None if cells is None else cells.num_rows if table.shape.groups else 1,
                    "variable": statistic.alias,
                    "mechanism": mechanism_text(shared(statistic.mechanism, table.shape.share)),
                    "totals": list(TOTALS),
                    "least_sd": deviations.min(axis=0).tolist(),
                    "most_sd": deviations.max(axis=0).tolist(),
                }
            )
    return found
