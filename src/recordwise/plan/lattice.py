"""The noise of a plan as shifts on a lattice, where all of it is discrete Gaussian (T-LOSS-LAW)."""

from collections.abc import Iterator
from fractions import Fraction
from typing import TypeAlias

from recordwise.plan.cost import band_table, possible_mechanisms
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.policy.bands import BandTable
from recordwise.policy.firms import FirmPolicy
from recordwise.policy.lattice import COARSEST, LatticePart, LatticePolicy
from recordwise.policy.policy import Policy


def lattice_policy(plan: Plan, firms: FirmPolicy) -> LatticePolicy | None:
    """Every number the plan draws; None where one of them is not a number with discrete Gaussian noise on a lattice.

    ``firms`` has what each of them costs a record (``firm_policy``).
    """
    drawn = [noise for table in plan.tables() for noise in _noises(plan, table)]
    parts = []
    for part, noise in zip(firms.parts, drawn, strict=True):
        if noise is None or part.policy.delta_terms:
            return None
        parts.append(_part(part.whole(), *noise))
    return LatticePolicy(parts=tuple(parts))


Noise: TypeAlias = tuple[tuple[Fraction, ...], int, BandTable | None]
"""Sigmas in lattice steps, how many such numbers, and the bands that say which cells have which sigma, if any do."""


def _part(policy: Policy, sigmas: tuple[Fraction, ...], times: int, bands: BandTable | None) -> LatticePart:
    known = {"sigma": min(sigmas), "times": times, "policy": policy * Fraction(1, times)}
    # Where no cell is told apart from another by the policy, neither is its noise.
    if bands is None or len(sigmas) == 1 or bands.digest not in policy.bands():
        return LatticePart(**known, varies=len(sigmas) > 1)  # type: ignore[arg-type]
    return LatticePart(**known, bands=bands, sigmas=sigmas)  # type: ignore[arg-type]


def _noises(plan: Plan, table: PlannedTable) -> Iterator[Noise | None]:
    selection = plan.selection(table)
    if selection is not None:
        # Without a delta every cell of a public domain gets its noise, and which of them are shown is read off it.
        yield (selection.law.sigma,), 1, None
    query = plan.queries[table.query]
    for statistic in query.draws():
        found = [statistic.lattice_noise(each, plan.schema) for each in possible_mechanisms(plan, table, statistic)]
        known = [each for each in found if each is not None]
        bands = band_table(query, statistic, table.shape, plan.schema)
        sigmas, times = tuple(sigma for sigma, _ in known), {each for _, each in known}
        unsaid = bands is None and len(known) > 1
        if len(known) < len(found) or len(times) > 1 or (unsaid and min(sigmas) <= COARSEST):
            yield None
        else:
            yield sigmas, times.pop(), bands
