"""A mechanism for each public group of the records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from recordwise.errors import ParameterError
from recordwise.mechanisms.base import Mechanism, Parameter
from recordwise.policy.atoms import Outside
from recordwise.policy.columns import ConditionColumn, Measure, Value, literal
from recordwise.policy.conditions import among, complement
from recordwise.policy.constructors import By
from recordwise.policy.policy import Policy, compose, policy_of


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
        _check(self.inside())

    @property
    def column(self) -> ConditionColumn:
        """The column, or the prefix of it, that is the group."""
        return ConditionColumn(self.by, self.length)

    @property
    def group_numbers(self) -> By:  # type: ignore[override]
        """The number of each group's mechanism among ``inside()``, counted from 1."""
        numbers = tuple((group, Fraction(number)) for number, (group, _) in enumerate(self.values, 1))
        return By(self.column, numbers, None if self.default is None else Fraction(len(numbers) + 1))

    def inside(self) -> tuple[Mechanism, ...]:
        """The mechanisms of the groups, then the default."""
        own = tuple(each for _, each in self.values)
        return own if self.default is None else (*own, self.default)

    @property
    def signed(self) -> bool:  # type: ignore[override]
        """Whether all of them take a positive and a negative part of each total."""
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


def _check(mechanisms: Sequence[object]) -> None:
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
