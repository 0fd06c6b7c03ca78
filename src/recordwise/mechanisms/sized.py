"""Noise in proportion to the public size of a cell."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from recordwise.errors import ParameterError, own_argument_errors
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, moderate, positive
from recordwise.mechanisms.base import (
    Estimates,
    Mechanism,
    Noisy,
    Parameter,
)
from recordwise.noise.randomness import BitSource
from recordwise.policy.bands import MOST_BANDS
from recordwise.policy.columns import Measure
from recordwise.policy.policy import Policy, maximum


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Sized(Mechanism):
    """A mechanism with parameters as shares of a cell's public size.

    Such as ``Sized(Gaussian(sigma="0.05"), floor=100)``.

    Sizes come with the keys (``Keys.of(frame, size=..., sized_on=...)``). They fall into bands, each twice as
    wide as the one below; a cell uses its band's least size, the lowest band ``floor``, so that every cell has
    about the same relative error. Theorem T-SIZE (docs/theory/sized.md): a record pays for its share of its
    cell, by the policy of the cell's band. Where no sizes are known, the policy is the largest of any band.

    Args:
        mechanism: The mechanism; its noise, thresholds and offsets are shares of the size.
        floor: The smallest size, in the units of the statistic. A smaller or unknown size counts as the floor.
        low: Another mechanism for the lowest bands, also in shares of the size: fat-tailed noise bounds the loss
            of a record that is large in a cell that was small.
        low_below: The size below which ``low`` is used; by default it is used in the lowest band alone.

    Example:
        >>> from recordwise.mechanisms import Gaussian
        >>> Sized(Gaussian(sigma="0.05"), floor=100).at_size(Fraction(400))
        Gaussian(sigma=20)
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("mechanism", "mechanism whose parameters are shares of the size", read="mechanism", needed=True),
        Parameter("floor", "smallest size, in the units of the statistic", needed=True),
        Parameter("low", "mechanism of the lowest bands, in shares of the size", read="mechanism"),
        Parameter("low_below", "size below which low is used, in the units of the statistic"),
    )
    words: ClassVar[str] = "noise in proportion to the public size of the cell"

    mechanism: Mechanism
    floor: Fraction
    low: Mechanism | None
    low_below: Fraction | None

    @own_argument_errors
    def __init__(
        self, mechanism: Mechanism, *, floor: Number, low: Mechanism | None = None, low_below: Number | None = None
    ) -> None:
        least = moderate(positive(floor, parameter="floor"), parameter="floor")
        below = None if low_below is None else positive(low_below, parameter="low_below")
        for name, each in (("mechanism", mechanism), ("low", low)):
            if each is not None:
                _check(name, each)
        if low is None and below is not None:
            raise ParameterError(parameter="low_below", problem="needs low, the mechanism that is used below it")
        if low is not None and (
            low.signed != mechanism.signed or (low.noise_scale is None) != (mechanism.noise_scale is None)
        ):
            raise ParameterError(
                parameter="low", problem="must answer on the same scale as the mechanism, and be signed if that is"
            )
        object.__setattr__(self, "mechanism", mechanism)
        object.__setattr__(self, "floor", least)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "low_below", below)
        self.at_size(least)

    def at_size(self, size: Fraction) -> Mechanism:
        """The mechanism of the cells of a band.

        Args:
            size: The least size of the band.

        Returns:
            The mechanism, in the units of the statistic.
        """
        below = 2 * self.floor if self.low_below is None else self.low_below
        return (self.mechanism if self.low is None or size >= below else self.low).resized(size)

    def inside(self) -> tuple[Mechanism, ...]:
        """Return the mechanism and that of the lowest bands, if any."""
        return (self.mechanism,) if self.low is None else (self.mechanism, self.low)

    def edges(self, largest: float) -> tuple[Fraction, ...]:
        """Return the least size of each band.

        The floor and its doubles, up to the largest size.

        Args:
            largest: The largest size of a cell.

        Returns:
            The edges, increasing.
        """
        edges = [self.floor]
        while len(edges) < MOST_BANDS and edges[-1] * 2 <= largest:
            edges.append(edges[-1] * 2)
        return tuple(edges)

    @property
    def _floored(self) -> Mechanism:
        return self.at_size(self.floor)

    @property
    def signed(self) -> bool:  # type: ignore[override]
        """Whether it takes a positive and a negative part of each total."""
        return self.mechanism.signed

    @property
    def loss_of_sum(self) -> bool:
        """Whether the policy at a sum bounds the joint loss."""
        return all(each.loss_of_sum for each in self.inside())

    def recalibrated(self, **goals: Any) -> "Sized":
        """Return the mechanism recalibrated to a goal.

        In a cell whose size is the total of the goal; without one, at the floor.
        """
        total = goals.get("at_total")
        size = self.floor if total is None else self.edges(float(positive(total, parameter="at_total")))[-1]

        return self.each(lambda inner: inner.resized(size).recalibrated(**goals).resized(1 / size))

    def each(self, change: Callable[[Mechanism], Mechanism]) -> "Sized":
        """The same with its mechanisms changed.

        Args:
            change: Makes one mechanism of another, both in shares of a size.

        Returns:
            A sized mechanism with the same floor.
        """
        low = None if self.low is None else change(self.low)
        return Sized(change(self.mechanism), floor=self.floor, low=low, low_below=self.low_below)

    def with_amount(self, amount: Fraction) -> "Sized":
        """The same with Gaussian noise of another sigma, as a share of the size."""
        return self.each(lambda inner: inner.with_amount(amount))

    def further(self) -> "Sized":
        """Return the mechanism of the further draws."""
        return self.each(lambda inner: inner.further())

    def shared(self, share: Fraction) -> "Sized":
        """Return the mechanism at a share of the loss."""
        return self.each(lambda inner: inner.at_share(share))

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """Return the loss where no size is known.

        The largest of any band, which is that of the floor unless ``low`` applies there.
        """
        return maximum([each.policy(measure, tight=tight) for each in self._costliest()])

    def policy_of_count(self) -> Policy:
        """The loss of a count where no size is known."""
        return maximum([each.policy_of_count() for each in self._costliest()])

    def _costliest(self) -> list[Mechanism]:
        """Return the mechanisms at the least size of each."""
        if self.low is None:
            return [self._floored]
        edge = self.floor
        while edge < (2 * self.floor if self.low_below is None else self.low_below):
            edge *= 2
        return [self._floored, self.at_size(edge)]

    def release(self, totals: Any, *, step: Number = 1, rng: BitSource | None = None) -> Noisy:
        """Draw noise of cells at the floor.

        Other cells are drawn by the mechanism of their band.
        """
        return self._floored.release(totals, step=step, rng=rng)

    def estimate(self, noisy: Noisy, *, confidence: float = 0.95) -> Estimates:
        """Estimates of cells at the floor."""
        return self._floored.estimate(noisy, confidence=confidence)

    def loss_at_shift(self, shift: Number, *, step: Number = 1) -> float:
        """Return the largest loss at a shift: that at the floor."""
        return self._floored.loss_at_shift(shift, step=step)

    def realized_loss(self, total_without: Number, contribution: Number, *, step: Number = 1) -> float:
        """The loss of a contribution to a cell at the floor."""
        return self._floored.realized_loss(total_without, contribution, step=step)

    def variance(self, total: Any, *, step: Number = 1) -> FloatArray:
        """The variance at the floor."""
        return self._floored.variance(total, step=step)

    def bias(self, total: Any, *, step: Number = 1) -> FloatArray:
        """The bias at the floor."""
        return self._floored.bias(total, step=step)


def _check(name: str, mechanism: object) -> None:
    if not isinstance(mechanism, Mechanism) or not mechanism.offers("resized"):
        raise ParameterError(
            parameter=name,
            problem=f"cannot be in shares of a size ({type(mechanism).__name__})",
            advice="Use Gaussian, UnitSplit, GeneralizedGaussian, Polylog, Additive, LogTransform or RootTransform.",
        )
    if mechanism.to is not None:
        raise ParameterError(parameter=name, problem="clamps records, which one bound for all cells must do")
