"""Policies: the public privacy loss of every possible record, as values.

They evaluate, compose, compare and print. Imports exact alone; knows no mechanism and no noise.

In reading order:

- ``columns``: values in conditions, in canonical form, and the measures that a loss is a function of
- ``bands``: which band of sizes a cell is in
- ``conditions``: the public partition that a policy may depend on
- ``atoms``: the building blocks, each a nondecreasing function
- ``policy``: sums of atoms under conditions
- ``constructors``: the policies of mechanisms
- ``evaluate``: losses of records, in four number systems
- ``dominance``: is one policy at least another, for every record?
- ``groups``: several records together, and one replaced by another
- ``firms``: the establishments of a firm, cell by cell
- ``series``: several periods
- ``loss_law``: epsilon at delta from the law that is drawn
- ``meaning``: what a loss means to the one who looks it up
- ``render``: text, LaTeX and charts
- ``json``: reads the saved form
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from recordwise.policy.columns import ConditionColumn, Measure
from recordwise.policy.conditions import Condition, Null, among, both, compare, complement, either
from recordwise.policy.constructors import (
    By,
    additive,
    by,
    clamped_sum,
    constant,
    gaussian_sum,
    gaussian_transform,
    laplace_sum,
    laplace_transform,
    pieces,
    pure_budget,
    pure_constant,
    pure_split,
    selection,
    split,
)
from recordwise.policy.firms import FirmLoss, FirmPolicy
from recordwise.policy.meaning import (
    Meaning,
    delta_at,
    discrete_laplace_zcdp,
    epsilon,
    expected_log_odds,
    gdp_epsilon,
    log_odds_tail,
    meaning,
    power_gaussian,
    power_pure,
    power_zcdp,
    pure_to_zcdp,
    rho_for_epsilon,
)
from recordwise.policy.policy import Policy, maximum
from recordwise.policy.series import Series, history_losses

if TYPE_CHECKING:
    from recordwise.policy.dominance.prove import Verdict, dominates
    from recordwise.policy.groups import (
        GroupPair,
        group_epsilon,
        group_loss,
        group_loss_by_cell,
        group_pair,
        replacement_loss,
    )

__all__ = [
    "By",
    "ConditionColumn",
    "Condition",
    "FirmLoss",
    "FirmPolicy",
    "GroupPair",
    "Meaning",
    "Measure",
    "Null",
    "Policy",
    "Series",
    "Verdict",
    "additive",
    "among",
    "both",
    "by",
    "clamped_sum",
    "compare",
    "complement",
    "constant",
    "delta_at",
    "discrete_laplace_zcdp",
    "dominates",
    "either",
    "epsilon",
    "expected_log_odds",
    "gaussian_sum",
    "gaussian_transform",
    "gdp_epsilon",
    "group_epsilon",
    "group_loss",
    "group_loss_by_cell",
    "group_pair",
    "history_losses",
    "laplace_sum",
    "laplace_transform",
    "log_odds_tail",
    "maximum",
    "meaning",
    "pieces",
    "power_gaussian",
    "power_pure",
    "power_zcdp",
    "pure_budget",
    "pure_constant",
    "pure_split",
    "pure_to_zcdp",
    "replacement_loss",
    "rho_for_epsilon",
    "selection",
    "split",
]
_HOMES = {
    "dominance.prove": ("Verdict", "dominates"),
    "groups": ("GroupPair", "group_epsilon", "group_loss", "group_loss_by_cell", "group_pair", "replacement_loss"),
}


def __getattr__(name: str) -> Any:
    """What few processes need, imported when it is first used."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
