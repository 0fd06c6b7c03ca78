"""The scale of fat-tailed noise: given itself, or found from a goal."""

from collections.abc import Callable
from fractions import Fraction

from recordwise.exact.numbers import Number
from recordwise.mechanisms.calibration import calibrate, plain_step
from recordwise.mechanisms.certified_loss import next_entry
from recordwise.mechanisms.fat_tailed import FINE, FatTailedNoise
from recordwise.mechanisms.noisy import read_confidence
from recordwise.noise.lattice import LatticeLaw


class _ScaleFamily:
    """A fat-tailed mechanism as a function of its scale.

    On a fine lattice, spread and quantiles are proportional to the scale, so they are taken from the law at a thousand lattice
    steps; on a lattice the user asked for they are those of the law itself.
    """

    def __init__(self, make: Callable[[Fraction], FatTailedNoise], coarse: Fraction | None) -> None:
        self._make, self._coarse = make, coarse

    def spread(self, parameter: Fraction, total: Fraction) -> float:
        if self._coarse is not None:
            return self._make(parameter).law_on(self._coarse).variance * float(self._coarse) ** 2
        law, lattice = self._fine()
        return law.variance * float(lattice * parameter) ** 2

    def loss(self, parameter: Fraction, contribution: Fraction) -> float:
        """As the policy of a measure of that step charges it: at the next entry of its table."""
        step = plain_step(contribution)
        return self._make(parameter).loss_at_shift(next_entry(int(contribution / step)) * step, step=step)

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
    return calibrate(_ScaleFamily(make, coarse), name="scale", own=own, **goals)
