"""What every mechanism offers. There is no base class; one contract suite runs them all."""

from typing import Any, Protocol, runtime_checkable

from recordwise.arithmetic import FloatArray
from recordwise.exact import Number
from recordwise.mechanisms.estimates import Estimates
from recordwise.mechanisms.noisy import Noisy
from recordwise.noise import BitSource
from recordwise.policy import Measure, Policy


@runtime_checkable
class Mechanism(Protocol):
    """Parameters, policy, release, estimate. It reads no table and spends no budget; all numbers are in the measure's units."""

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """The public loss of a record: the tight one, or with ``tight=False`` the one printed in the papers."""

    def release(self, totals: Any, *, step: Number = 1, rng: BitSource | None = None) -> Noisy:
        """Add noise to exact totals, given as whole numbers of lattice steps."""

    def estimate(self, noisy: Noisy, *, level: float = 0.95) -> Estimates:
        """Unbiased values, standard errors and noise intervals, from the noisy answers alone."""

    def loss_at_shift(self, shift: Number, *, step: Number = 1) -> float:
        """The largest loss when a cell's total changes by ``shift``, rounded up."""

    def realised_loss(self, total_without: Number, contribution: Number, *, step: Number = 1) -> float:
        """The loss of a contribution to a cell of known total, rounded up. Confidential, always."""

    def variance(self, total: Any, *, step: Number = 1) -> FloatArray:
        """The variance of ``value`` at an exact total."""

    def bias(self, total: Any, *, step: Number = 1) -> FloatArray:
        """The bias of ``value`` at an exact total."""
