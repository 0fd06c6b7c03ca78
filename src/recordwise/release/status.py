"""The status of published values, from released values and the law of the noise alone, never from exact totals."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.arrays import array_of, numpy_of, texts_of
from recordwise.plan.statistics import statistic_kind
from recordwise.plan.status import StatusRules
from recordwise.release.dictionary import query_of
from recordwise.release.tables import FITTED, ReleasedTable

if TYPE_CHECKING:
    from recordwise.release.content import Content, DescribedTable

STATUS = "_status"
"""The suffix of the column with the status of a value."""


def relative_error(value: FloatArray, sd: FloatArray, *, signed: bool = False) -> FloatArray:
    """The error of each value as a share of it, at most one half: a value below twice its error is not taken for its size.

    Args:
        value: Published values.
        sd: Their standard deviations.
        signed: Whether the measure may be negative; otherwise a negative value is due to noise and counts as small.

    Returns:
        ``sd / max(value, 2 sd)``, of the absolute value where the measure is signed; infinite where there is no sd.
    """
    size = np.abs(value) if signed else value
    with np.errstate(invalid="ignore", divide="ignore"):
        found = sd / np.maximum(size, 2 * sd)
    return np.where(sd == 0, 0.0, np.where(np.isfinite(found), found, np.inf))


def value_column(table: ReleasedTable, variable: str) -> str:
    """The column that holds the value to publish: the fitted one where there is one."""
    fitted = variable + FITTED
    return fitted if fitted in table.data.column_names else variable


def sd_column(table: ReleasedTable, variable: str) -> str:
    """The column with the standard deviation of the value to publish: the one of the fit where there is one."""
    candidates = (f"{value_column(table, variable)}_sd", f"{variable}_sd")
    return next(name for name in candidates if name in table.data.column_names)


def has_status(table: ReleasedTable, variable: str) -> bool:
    """Whether a standard deviation is published with a variable."""
    return f"{variable}_sd" in table.data.column_names


def statuses(table: ReleasedTable, variable: str, rules: StatusRules, *, signed: bool) -> pa.Array:
    """The status of every value of a variable, as text."""
    value, sd = (_floats(table, name) for name in (value_column(table, variable), sd_column(table, variable)))
    return named(relative_error(value, sd, signed=signed), rules)


def named(errors: FloatArray, rules: StatusRules) -> pa.Array:
    """The status of each relative error."""
    places = np.searchsorted(np.array([limit for _, limit in rules.limits]), errors, side="left")
    return texts_of(rules.names()).take(array_of(places))


def status_words(content: "Content", table: "DescribedTable", piece: pa.Table, variable: str) -> pa.Array:
    """The status of a variable in some rows of a table: as published, or by the rules; empty text where neither is known."""
    published = variable + STATUS
    if published in piece.column_names:
        return piece.column(published).combine_chunks()
    part = replace(table.table, data=piece)
    if not has_status(part, variable):
        return texts_of([""]).take(array_of(np.zeros(piece.num_rows, np.int64)))
    return statuses(part, variable, content.rules, signed=variable in table.signed)


def signed_variables(description: Mapping[str, Any], table: ReleasedTable) -> frozenset[str]:
    """The variables that may truly be negative: statistics of a signed measure, and what is computed from others."""
    declared = description.get("schema", {}).get("measures", ())
    signed = {each["name"] for each in declared if each.get("signed")}
    stated = query_of(description, table.name).get("statistics", ())
    return frozenset(each["name"] for each in stated if each.get("of") in signed or _computed(each))


def _computed(statistic: Mapping[str, Any]) -> bool:
    """Whether it is a combination or ratio of other columns, whose sign is not known."""
    return statistic.get("of") is None and statistic_kind(statistic["kind"]).derived


def _floats(table: ReleasedTable, name: str) -> FloatArray:
    return np.asarray(numpy_of(table.data.column(name)), np.float64)
