"""A series of releases: its budgets and a unit's loss.

A unit's records of all periods together are protected: the losses of its periods add up (T-SEQ). A policy
of one period is stated in the names of that period. A name with ``@`` and a period in it (``emp@2025``) is
the value of the same unit in that period, so that a later mechanism may charge for what a record was
before.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from recordwise.errors import (
    ParameterError,
    own_errors_of,
)
from recordwise.policy.bands import BandTable
from recordwise.policy.policy import Policy

AT = "@"
FORMS = {
    "year": re.compile("([1-9][0-9]{3})"),
    "half": re.compile("([1-9][0-9]{3})H[12]"),
    "quarter": re.compile("([1-9][0-9]{3})Q[1-4]"),
    "month": re.compile("([1-9][0-9]{3})-(?:0[1-9]|1[0-2])"),
    "week": re.compile("([1-9][0-9]{3})W([0-9]{2})"),
    "day": re.compile("([1-9][0-9]{3})-([0-9]{2})-([0-9]{2})"),
}
"""The spellings of a period, by its length. Each period has one, so that no other spelling of it has a budget of its own."""
WRITTEN = (
    'Write a year ("2026"), a half ("2026H1"), a quarter ("2026Q1"), a month ("2026-01"), a week ("2026W05") or a day '
    '("2026-01-31"); one of them for all periods of a series.'
)


def period_length(text: str) -> str | None:
    """Return the form in ``FORMS`` of a period, or None."""
    for length, form in FORMS.items():
        if found := form.fullmatch(text):
            return length if _exists(length, [int(part) for part in found.groups()]) else None
    return None


def _exists(length: str, parts: list[int]) -> bool:
    try:
        if length == "week":
            date.fromisocalendar(parts[0], parts[1], 1)
        elif length == "day":
            date(*parts)
    except ValueError:
        return False
    return True


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The series of a release, its period and its declared budgets.

    Args:
        name: The name of the series.
        period: The period that is published: "2026", "2026H1", "2026Q1", "2026-01", "2026W05" or "2026-01-31".
        revision: 0 for the first publication of a period, 1 for its first revision, and so on.
        every_period: The budget of every period, as a function of the record in that period.
        more: Further budget for single periods, by their names.
    """

    name: str
    period: str
    revision: int = 0
    every_period: Policy | None = None
    more: Mapping[str, Policy] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (
            not isinstance(self.name, str)
            or not self.name.isprintable()
            or self.name != self.name.strip()
            or not self.name
        ):
            raise ParameterError(parameter="the name of a series", problem="must be a line of text")
        for text in (self.period, *self.more):
            if not isinstance(text, str) or period_length(text) is None:
                raise ParameterError(parameter="period", problem="is not written as one", advice=WRITTEN)
        if isinstance(self.revision, bool) or not isinstance(self.revision, int) or self.revision < 0:
            raise ParameterError(parameter="revision", problem="must be 0, 1, 2, ...")

    def budget(self, period: str | None = None) -> Policy | None:
        """The budget of a period.

        Args:
            period: The name of the period; by default that of this release.

        Returns:
            The budget of every period plus what was added for this one, or None if none is declared for it.
        """
        parts = [self.every_period, self.more.get(self.period if period is None else period)]
        known = [part for part in parts if part is not None]
        return sum(known, Policy()) if known else None

    def budgets_json(self) -> dict[str, Any]:
        """The budgets of all periods, for the ledger."""
        every = None if self.every_period is None else self.every_period.to_json()
        return {"every": every, "periods": {name: self.more[name].to_json() for name in sorted(self.more)}}


def declared_budget(declared: Mapping[str, Any], period: str, bands: Mapping[str, BandTable]) -> Policy | None:
    """Return a period's budget as a ledger declares it.

    See ``Series.budgets_json``.
    """
    forms = [declared.get("every"), declared.get("periods", {}).get(period)]
    parts = [Policy.from_json(form, bands) for form in forms if form is not None]
    return sum(parts, Policy()) if parts else None


def needed_names(policy: Policy) -> list[str]:
    """The measures and columns that a policy depends on."""
    return sorted({each.name for each in policy.inputs()} | {each.name for each in policy.columns()})


def record_at(history: Mapping[str, Mapping[str, Any]], period: str, policy: Policy) -> dict[str, Any] | None:
    """Return the columns a policy needs from a unit's history.

    None if the unit has no record in that period.

    Args:
        history: The records of the unit, by period.
        period: The period of the policy.
        policy: The policy, stated in the names of the period.
    """
    if period not in history:
        return None
    own = dict(history[period])
    for name in needed_names(policy):
        bare, at, other = name.rpartition(AT)
        if at and name not in own and bare in history.get(other, {}):
            own[name] = history[other][bare]
    return own


def history_losses(policies: Mapping[str, Policy], history: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return the loss of a unit in each period.

    They add up. A period in which the unit has no record costs it nothing.

    Args:
        policies: What was charged, by period.
        history: The records of the unit, by period.

    Returns:
        The zCDP loss of each period.
    """
    found = {}
    for period, policy in policies.items():
        record = record_at(history, period, policy)
        found[period] = 0.0 if record is None else float(policy.loss(record))
    return found
