"""CONFIDENTIAL: what the units of a series lost over its periods, from the records of every period."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.arrays import numpy_of
from recordwise.plan.frames import as_arrow
from recordwise.policy.policy import Policy
from recordwise.policy.series import needed_names


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class HistoryLosses:
    """CONFIDENTIAL: the losses of all units, by period and over all of them; 0 where a unit has no record."""

    by_period: dict[str, FloatArray]
    """In the same order of units for every period."""

    @property
    def total(self) -> FloatArray:
        """The loss of each unit over all periods."""
        return np.asarray(np.sum(list(self.by_period.values()), axis=0))

    def quantile(self, share: float) -> float:
        """The loss over all periods that this share of the units stays within."""
        return float(np.quantile(self.total, share, method="higher"))

    def __repr__(self) -> str:
        return "<HistoryLosses: CONFIDENTIAL>"


def history_losses(policies: Mapping[str, Policy], records: Mapping[str, Any], unit: str) -> HistoryLosses:
    """The losses of all units.

    Args:
        policies: What was charged, by period.
        records: The table of each period, with the column ``unit`` and those that the period's policy depends on.
        unit: The column that identifies a unit, the same in every period.

    Raises:
        ParameterError: A table belongs to no charged period, or the tables lack a period or a column.
    """
    if set(records) != set(policies):
        raise ParameterError(
            parameter="records", problem=f"must have a table for each charged period: {', '.join(policies) or 'none'}"
        )
    tables = {period: as_arrow(records[period]) for period in policies}
    for period, table in tables.items():
        missing = {unit, *needed_names(policies[period])} - set(table.column_names)
        if missing:
            raise ParameterError(parameter=f"the table of {period}", problem=f"lacks {', '.join(sorted(missing))}")
    ids = [numpy_of(table.column(unit)) for table in tables.values()]
    known, places = np.unique(np.concatenate(ids), return_inverse=True)
    ends = np.cumsum([len(each) for each in ids])[:-1]
    found = {}
    for (period, table), place in zip(tables.items(), np.split(places, ends)):
        columns = {name: numpy_of(table.column(name)) for name in needed_names(policies[period])}
        losses = policies[period].loss(columns) if columns else np.full(len(place), float(policies[period].loss({})))
        found[period] = np.asarray(np.bincount(place, weights=losses, minlength=len(known)), np.float64)
    return HistoryLosses(by_period=found)
