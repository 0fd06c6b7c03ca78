"""The scale of fat-tailed noise: as given, or found from a goal."""

from collections.abc import Callable
from fractions import Fraction

from recordwise.exact.numbers import Number, positive
from recordwise.mechanisms.calibration import calibrate, plain_step
from recordwise.mechanisms.certified_table import ABOVE, COARSE
from recordwise.mechanisms.fat_tailed import FINE, SMALLEST_RECORD, FatTailedNoise, laplace_scale, shift_loss
from recordwise.mechanisms.noisy import read_confidence
from recordwise.noise.lattice import LatticeLaw
from recordwise.policy.measure import Measure


class _ScaleFamily:
    """A fat-tailed mechanism as a function of its scale.

    On a fine lattice, spread and quantiles are proportional to the scale, so they are taken from the law at a thousand lattice
    steps; on a lattice that the user requested, they are those of the law itself.
    """

    def __init__(self, make: Callable[[Fraction], FatTailedNoise], coarse: Fraction | None) -> None:
        self._make, self._coarse = make, coarse
        self._above: float | None = None

    def spread(self, parameter: Fraction, total: Fraction) -> float:
        if self._coarse is not None:
            return self._make(parameter).law_on(self._coarse).variance * float(self._coarse) ** 2
        law, lattice = self._fine()
        return law.variance * float(lattice * parameter) ** 2

    def loss(self, parameter: Fraction, contribution: Fraction) -> float:
        """The certified loss and the room above it that the policy's lines may take."""
        return self._certified(parameter, contribution) * (1 + self._room(parameter, contribution))

    def charged(self, parameter: Fraction, contribution: Fraction) -> float:
        """What the policy of a measure of that step charges."""
        policy = self._make(parameter).policy(Measure("shift", plain_step(contribution)))
        return float(policy.loss({"shift": contribution}))

    def charging_as(self, parameter: Fraction, contribution: Fraction) -> None:
        """From now on leave the room that the policy takes at this parameter, and a little more after each failure."""
        above = self.charged(parameter, contribution) / self._certified(parameter, contribution) - 1
        self._above = above if self._above is None else max(above, self._above) + MORE_ROOM

    def _certified(self, parameter: Fraction, contribution: Fraction) -> float:
        step = plain_step(contribution)
        return shift_loss(self._make(parameter), step, int(contribution / step))

    def _room(self, parameter: Fraction, contribution: Fraction) -> float:
        mechanism = self._make(parameter)
        if self._above is not None or laplace_scale(mechanism.function) is not None:
            return self._above or 0.0
        return ABOVE * (COARSE if contribution * SMALLEST_RECORD < mechanism.width else 1)

    def relative_error(self, parameter: Fraction, total: Fraction, confidence: float) -> float:
        chance = (1 + read_confidence(confidence)) / 2
        if self._coarse is not None:
            return float(self._make(parameter).law_on(self._coarse).quantile(chance) * self._coarse / total)
        law, lattice = self._fine()
        return float(law.quantile(chance) * lattice * parameter / total)

    def _fine(self) -> tuple[LatticeLaw, Fraction]:
        """The law at scale 1 on a fine lattice, and that lattice."""
        mechanism = self._make(Fraction(1))
        return mechanism.law_on(mechanism.width / FINE), mechanism.width / FINE


def fat_tailed_scale(
    make: Callable[[Fraction], FatTailedNoise], coarse: Fraction | None, *, own: Number | None, **goals: Number | None
) -> Fraction:
    """The scale itself, or the one that meets the one goal given."""
    family = _ScaleFamily(make, coarse)
    found = calibrate(family, name="scale", own=own, **goals)
    if goals.get("rho") is None:
        return found
    rho, record = positive(goals["rho"] or 0, parameter="rho"), positive(goals["at"] or 0, parameter="at")
    closer = found
    for _ in range(ATTEMPTS):
        family.charging_as(closer, record)
        closer = calibrate(family, name="scale", own=own, **goals)
        if family.charged(closer, record) <= rho:
            return closer
    return found


MORE_ROOM = 3e-4
ATTEMPTS = 4
"""How often a scale is looked for at which the policy itself is close to a loss: its lines make it jump by a few thousandths."""
