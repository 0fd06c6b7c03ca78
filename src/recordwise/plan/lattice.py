"""The noise of a plan as shifts on a lattice, where all of it is discrete Gaussian (T-LOSS-LAW)."""

from collections.abc import Iterator
from fractions import Fraction
from typing import TypeAlias

from recordwise.plan.cost import possible_mechanisms
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.policy.firms import FirmPolicy
from recordwise.policy.lattice import COARSEST, LatticePart, LatticePolicy


def lattice_policy(plan: Plan, firms: FirmPolicy) -> LatticePolicy | None:
    """Every number the plan draws; None where one of them is not a number with discrete Gaussian noise on a lattice.

    ``firms`` has what each of them costs a record (``firm_policy``).
    """
    drawn = [noise for table in plan.tables() for noise in _noises(plan, table)]
    parts = []
    for part, noise in zip(firms.parts, drawn, strict=True):
        if noise is None or part.policy.delta_terms:
            return None
        sigma, times, varies = noise
        parts.append(LatticePart(sigma=sigma, times=times, varies=varies, policy=part.whole() * Fraction(1, times)))
    return LatticePolicy(parts=tuple(parts))


Noise: TypeAlias = tuple[Fraction, int, bool]
"""Sigma in lattice steps, how many such numbers, and whether sigma is the smallest of several."""


def _noises(plan: Plan, table: PlannedTable) -> Iterator[Noise | None]:
    selection = plan.selection(table)
    if selection is not None:
        # Without a delta every cell of a public domain gets its noise, and which of them are shown is read off it.
        yield selection.law.sigma, 1, False
    for statistic in plan.queries[table.query].draws():
        found = [statistic.lattice_noise(each, plan.schema) for each in possible_mechanisms(plan, table, statistic)]
        known = [each for each in found if each is not None]
        varies = len(known) > 1
        if len(known) < len(found) or (varies and min(known)[0] <= COARSEST):
            yield None
        else:
            yield *min(known), varies
