"""Noise by what is public about a cell: its size, or its group."""

from collections.abc import Callable, Mapping, Sequence
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
from recordwise.policy.atoms import Outside
from recordwise.policy.bands import MOST_BANDS
from recordwise.policy.columns import ConditionColumn, Measure, Value, literal
from recordwise.policy.conditions import among, complement
from recordwise.policy.constructors import By
from recordwise.policy.policy import Policy, compose, maximum, policy_of


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Sized(Mechanism):
    """A mechanism with parameters as shares of a cell's public size.

    Such as ``Sized(Gaussian(sigma="0.05"), floor=100)``.

    Sizes come with the keys (``Keys.of(frame, size=..., sized_on=...)``). They fall into bands, each twice as
    wide as the one below; a cell uses its band's least size, the lowest band ``floor``, so that every cell has
    about the same relative error. Theorem T-SIZE (docs/theory/selection.md): a record pays for its share of its
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
        """The same with Gaussian noise of another share of the size."""
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


# A mechanism for each public group.


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ByGroup(Mechanism):
    """A mechanism for each value of a public column, in one query.

    Such as ``ByGroup("naics", {"21": UnitSplit(at=500, rho="0.1")}, default=UnitSplit(at=50, rho="0.1"), length=2)``.

    The groups partition the records, so a record pays for the mechanism of its group alone ([S] Lemma 3; T-GROUPED,
    docs/theory/splitting.md). Cells that may hold several groups, as those of a total, use ``default``, and all their
    records pay for it.

    Args:
        by: The column that holds the group.
        values: The mechanism of each group.
        default: The mechanism of all other groups, and of cells that may hold several. Without it, both are refused.
        length: The number of characters of a text column that are the group; all unless given.

    Example:
        >>> from recordwise.mechanisms import Gaussian
        >>> split = ByGroup("naics", {"21": Gaussian(sigma=50)}, default=Gaussian(sigma=5), length=2)
        >>> split.policy("emp").loss({"emp": [10, 10], "naics": ["2111", "4451"]}).round(4)
        array([0.02, 2.  ])
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("by", "column that holds the group", read="column", needed=True),
        Parameter("values", "mechanism of each group", read="groups", needed=True),
        Parameter("default", "mechanism of other groups and of cells that may hold several", read="mechanism"),
        Parameter("length", "characters of the column that are the group", read="length"),
    )
    words: ClassVar[str] = "noise of a mechanism for each public group"

    by: str
    values: tuple[tuple[Value, Mechanism], ...]
    default: Mechanism | None
    length: int | None

    @own_argument_errors
    def __init__(
        self,
        by: str,
        values: Mapping[Any, Mechanism] | Sequence[tuple[Any, Mechanism]],
        *,
        default: Mechanism | None = None,
        length: int | None = None,
    ) -> None:
        given = values.items() if isinstance(values, Mapping) else values if isinstance(values, list | tuple) else ()
        pairs = tuple((literal(group), each) for group, each in given)
        if not pairs or len({group for group, _ in pairs}) < len(pairs):
            raise ParameterError(parameter="values", problem="must give each group one mechanism")
        object.__setattr__(self, "by", by)
        object.__setattr__(self, "values", pairs)
        object.__setattr__(self, "default", default)
        object.__setattr__(self, "length", length)
        ConditionColumn(by, length)
        _check_groups(self.inside())

    @property
    def column(self) -> ConditionColumn:
        """The column, or the prefix of it, that is the group."""
        return ConditionColumn(self.by, self.length)

    @property
    def group_numbers(self) -> By:  # type: ignore[override]
        """The number of each group's mechanism among ``inside()``, counted from 1."""
        numbers = tuple((group, Fraction(number)) for number, (group, _) in enumerate(self.values, 1))
        return By(self.column, numbers, None if self.default is None else Fraction(len(numbers) + 1))

    @property
    def groups(self) -> tuple[Value, ...]:
        """The groups that have a mechanism of their own."""
        return tuple(group for group, _ in self.values)

    def inside(self) -> tuple[Mechanism, ...]:
        """The mechanisms of the groups, then the default."""
        own = tuple(each for _, each in self.values)
        return own if self.default is None else (*own, self.default)

    @property
    def signed(self) -> bool:  # type: ignore[override]
        """Whether all of them take both parts of each total."""
        return self.values[0][1].signed

    @property
    def to(self) -> Fraction | None:  # type: ignore[override]
        """Where all of them clamp contributions, if they do."""
        return self.values[0][1].to

    @property
    def loss_of_sum(self) -> bool:
        """Whether the policy at a sum bounds the joint loss in a cell, which has one group."""
        return all(each.loss_of_sum for each in self.inside())

    def shared(self, share: Fraction) -> "ByGroup":
        """The same with each mechanism at a share of its loss."""
        return self.with_inside([each.at_share(share) for each in self.inside()])

    def with_inside(self, mechanisms: Sequence[Mechanism]) -> "ByGroup":
        """The same groups with other mechanisms.

        Args:
            mechanisms: As many as ``inside()`` has, in its order.

        Returns:
            The mechanism for each group.
        """
        values = [(group, each) for (group, _), each in zip(self.values, mechanisms)]
        default = None if self.default is None else mechanisms[-1]
        return ByGroup(self.by, values, default=default, length=self.length)

    def further(self) -> "ByGroup":
        """The same with the further draw of each mechanism."""
        return self.with_inside([each.further() for each in self.inside()])

    def with_amount(self, amount: Fraction) -> "ByGroup":
        """The same with Gaussian noise of this sigma in the first group, in the others in proportion."""
        amounts = [each.noise_scale or each.noise_sigma for each in self.inside()]
        if None in amounts:
            self._lacks("with_amount", "planning")
        return self.with_inside(
            [each.with_amount(amount * own / amounts[0]) for each, own in zip(self.inside(), amounts) if own]  # type: ignore[operator]
        )

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """Return the loss in cells of one group each.

        A record of a group without a mechanism has no guarantee.
        """
        return self._by_group([each.policy(measure, tight=tight) for each in self.inside()])

    def policy_of_count(self) -> Policy:
        """The loss of a count, in cells of one group each."""
        return self._by_group([each.policy_of_count() for each in self.inside()])

    def _by_group(self, policies: Sequence[Policy]) -> Policy:
        groups = [group for group, _ in self.values]
        parts = [each.where(among(self.column, [group])) for group, each in zip(groups, policies)]
        others = policy_of(Outside(self.by), Fraction(1)) if self.default is None else policies[-1]
        return compose([*parts, others.where(complement(among(self.column, groups)))])


def as_grouped(mechanism: Mechanism) -> ByGroup | None:
    """Return a mechanism if it is one for each group, else None."""
    return mechanism if isinstance(mechanism, ByGroup) else None


def _check_groups(mechanisms: Sequence[object]) -> None:
    """Refuse what cannot be drawn for some cells of a table and not for others.

    Clamps are accepted if they are the same: then the totals are those of one clamped sum (T-CLAMP, T-GROUPED).
    """
    for each in mechanisms:
        if not isinstance(each, Mechanism) or each.answers != "totals":
            raise ParameterError(parameter="values", problem="must be mechanisms for counts and sums")
        if each.is_sized:
            raise _apart("has noise that follows sizes, whose bands are those of a whole table and not of a group")
        if each.group_numbers is not None or isinstance(each.at, By):
            raise _apart("differs by a second column within a group, and one column decides for a cell")
        if each.to != mechanisms[0].to:  # type: ignore[attr-defined]
            raise _apart("clamps sums at different bounds, and all totals of a table are clamped at one")
        if each.signed != mechanisms[0].signed:  # type: ignore[attr-defined]
            raise ParameterError(parameter="values", problem="must be all signed or none")


def _apart(problem: str) -> ParameterError:
    return ParameterError(parameter="values", problem=problem, advice="Give each group its own query.")
