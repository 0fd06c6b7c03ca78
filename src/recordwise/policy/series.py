"""A series of releases, one period after another: its budgets, and the loss of a unit over its history.

A unit's records of all periods together are what is protected: the losses of its periods add up (T-SEQ). A policy of one period
is stated in the names of that period. A name with ``@`` and a period in it (``emp@2025``) is the value of the same unit in that
period, so that a later mechanism may charge for what a record was before.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recordwise.errors import ParameterError
from recordwise.policy.bands import BandTable
from recordwise.policy.policy import Policy

AT = "@"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The series that a release belongs to, its period, and the budgets that were declared with it.

    Args:
        name: The name of the series.
        period: The period that is published, such as "2026" or "2026Q1".
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
        for what, text in (("name", self.name), ("period", self.period)):
            if not isinstance(text, str) or not text or not text.isprintable() or text != text.strip():
                raise ParameterError(parameter=f"the {what} of a series", problem="must be a line of text")
        if any(letter in self.period for letter in "@="):
            raise ParameterError(
                parameter="period", problem="must not contain @ or =", advice='Write "2026" or "2026Q1".'
            )
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

    def declared(self) -> dict[str, Any]:
        """The budgets of all periods, for the ledger."""
        every = None if self.every_period is None else self.every_period.to_json()
        return {"every": every, "periods": {name: self.more[name].to_json() for name in sorted(self.more)}}


def declared_budget(declared: Mapping[str, Any], period: str, bands: Mapping[str, BandTable]) -> Policy | None:
    """The budget of a period as a ledger states it (``Series.declared``), and the band tables it names."""
    forms = [declared.get("every"), declared.get("periods", {}).get(period)]
    parts = [Policy.from_json(form, bands) for form in forms if form is not None]
    return sum(parts, Policy()) if parts else None


def needed_names(policy: Policy) -> list[str]:
    """The measures and columns that a policy depends on."""
    return sorted({each.name for each in policy.inputs()} | {each.name for each in policy.columns()})


def record_at(history: Mapping[str, Mapping[str, Any]], period: str, policy: Policy) -> dict[str, Any] | None:
    """What a policy of one period needs from a unit's history; None if the unit has no record in that period.

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
    """The loss of a unit in each period; they add up. A period in which the unit has no record costs it nothing.

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
