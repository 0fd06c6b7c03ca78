"""What the establishments of a firm lose together, statistic by statistic and cell by cell (T-CELLS).

A ``FirmPolicy`` is public, like a policy: it says what any set of records loses together, given which of them share a cell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from recordwise.errors import ParameterError, UnknownFormError
from recordwise.exact.numbers import fraction_text, read_fraction
from recordwise.policy.atoms import SelectionDelta
from recordwise.policy.condition_columns import column_from_json
from recordwise.policy.conditions import EVERY, Condition, ConditionColumn, columns_of
from recordwise.policy.conversions import pure_terms
from recordwise.policy.evaluate.evaluator import Steps
from recordwise.policy.evaluate.tables import Table
from recordwise.policy.json import Bands, condition_from_json, policy_json_in_order
from recordwise.policy.policy import Policy, Terms, composed

ROOTS, SUMS, SIGNS, FIRM, PURE, NODES = "roots", "sums", "signs", "firm", "pure", "nodes"
MOST_TREE_LEVELS = 8
"""So many levels of a quantile's tree are counted node by node; a deeper level loses no more than the last of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """What else than (sum of roots)^2 bounds the loss of several records in one cell of a statistic.

    ``roots``: nothing. ``sums``: the policy at the sum of their values. ``signs``: the same for positive and negative values apart.
    ``firm``: the loss of one of them. ``pure``: eps*tanh(eps/2) at the sum eps of their pure losses. ``nodes``: a record changes
    one number at each of ``levels`` levels of a tree, which ``points`` says.
    """

    kind: str = ROOTS
    measure: str | None = None
    points: tuple[Fraction, ...] = ()
    """What separates the nodes of the last level that is counted, in the measure's units."""
    levels: int = 0

    def __post_init__(self) -> None:
        if self.kind not in (ROOTS, SUMS, SIGNS, FIRM, PURE, NODES):
            raise UnknownFormError(what="joint loss", found=self.kind)
        if (self.measure is None) != (self.kind in (ROOTS, FIRM, PURE)):
            raise UnknownFormError(what="joint loss", found=self.kind)
        if self.kind == NODES and (self.counted_levels < 1 or len(self.points) != (1 << self.counted_levels) - 1):
            raise UnknownFormError(what="joint loss", found="nodes")

    @property
    def counted_levels(self) -> int:
        """The levels whose nodes are told apart."""
        return min(self.levels, MOST_TREE_LEVELS)

    def to_json(self) -> dict[str, Any]:
        """The saved form."""
        points = [fraction_text(point) for point in self.points]
        found = {"kind": self.kind, "measure": self.measure, "points": points, "levels": self.levels}
        return {name: value for name, value in found.items() if value}

    @classmethod
    def from_json(cls, form: Any) -> "Joint":
        """Read back what ``to_json`` wrote.

        Args:
            form: The saved form.

        Returns:
            The joint loss.

        Raises:
            UnknownFormError: If the form is not one that this version knows.
        """
        match form:
            case {"kind": str(kind), **rest} if set(rest) <= {"measure", "points", "levels"}:
                given: dict[Any, Any] = dict(rest)
                points = tuple(read_fraction(point) for point in given.get("points", ()))
                return cls(kind=kind, measure=given.get("measure"), points=points, levels=int(given.get("levels", 0)))
            case _:
                raise UnknownFormError(what="joint loss", found=form)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellKey:
    """One coordinate of a record's cell: a column or a prefix of one, or the number of the first condition that holds."""

    column: ConditionColumn | None = None
    cases: tuple[tuple[Condition, int], ...] = ()
    """Conditions in order, each with the number of its label; a record that meets none of them has the label -1."""

    def __post_init__(self) -> None:
        if (self.column is None) == (not self.cases):
            raise UnknownFormError(what="cell", found="neither a column nor cases")

    def names(self) -> set[str]:
        """The columns it looks at."""
        if self.column is not None:
            return {self.column.name}
        return {column.name for condition, _ in self.cases for column in columns_of(condition)}

    def determines(self, column: ConditionColumn) -> bool:
        """Whether records that agree here agree on a column.

        Args:
            column: The column, or a prefix of one.

        Returns:
            True if they must agree on it.
        """
        own = self.column
        if own is None or own.name != column.name:
            return False
        return own.length is None or (column.length is not None and column.length <= own.length)

    def to_json(self) -> Any:
        """The saved form."""
        if self.column is not None:
            return {"column": self.column.to_json()}
        return {"cases": [[condition.to_json(), label] for condition, label in self.cases]}

    @classmethod
    def from_json(cls, form: Any) -> "CellKey":
        """Read back what ``to_json`` wrote.

        Args:
            form: The saved form.

        Returns:
            The coordinate.

        Raises:
            UnknownFormError: If the form is not one that this version knows.
        """
        match form:
            case {"column": column, **rest} if not rest:
                return cls(column=column_from_json(column))
            case {"cases": [*cases], **rest} if not rest:
                return cls(cases=tuple((condition_from_json(condition), int(label)) for condition, label in cases))
            case _:
                raise UnknownFormError(what="cell", found=form)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirmPart:
    """One statistic of one table: the loss of a record of that table, which records share a cell, and what they lose there."""

    policy: Policy
    condition: Condition = EVERY
    """The records that the table is about."""
    cells: tuple[CellKey, ...] = ()
    """Without any, all records are in one cell."""
    joint: Joint = Joint()

    def __post_init__(self) -> None:
        if self.joint.kind in (SUMS, SIGNS) and not self._determined():
            # At a sum of values the policy needs the group of its cell; where the cell does not tell it, roots remain.
            object.__setattr__(self, "joint", Joint())
        if self.joint.kind == PURE:
            self.pure()

    def pure(self) -> Terms:
        """The pure loss of a record; refused if the policy has none."""
        return pure_terms(self.policy)

    def _determined(self) -> bool:
        return all(any(key.determines(column) for key in self.cells) for column in self.policy.columns())

    def columns(self) -> set[str]:
        """The columns that say which cell a record is in."""
        return set().union(*(key.names() for key in self.cells))

    def whole(self) -> Policy:
        """What the part costs any single record."""
        return self.policy if self.condition == EVERY else self.policy.where(self.condition)

    def tails(self) -> Steps:
        """The chance that a key is listed because of so many pieces alone, where keys are selected."""
        steps = {atom.steps for _, atom in self.policy.delta_terms if isinstance(atom, SelectionDelta)}
        if len(steps) > 1 or bool(steps) != bool(self.policy.delta_terms):
            raise ParameterError(parameter="policy", problem="has a delta of an unknown kind")
        return next(iter(steps), ())

    def piece_loss(self) -> Fraction:
        """The loss of one piece, where keys are selected."""
        (weight,) = set(self.policy.rho.values())
        return weight


@dataclass(frozen=True, slots=True, kw_only=True)
class FirmLoss:
    """What records lose together: a zCDP loss and, where keys are selected privately, a delta beside it; both rounded up."""

    rho: float
    delta: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FirmPolicy:
    """The parts of a release whose losses add up to what a firm loses (T-CELLS)."""

    parts: tuple[FirmPart, ...]

    def policy(self) -> Policy:
        """What all parts cost a single record: the policy of the release."""
        return composed([part.whole() for part in self.parts])

    def columns(self) -> tuple[str, ...]:
        """The columns that say which establishments share a cell, sorted."""
        return tuple(sorted(set().union(*(part.columns() for part in self.parts))))

    def loss(self, units: Table) -> FirmLoss:
        """The loss of all rows of ``units`` together, rounded up.

        Args:
            units: The establishments of the firm: a mapping of columns, an Arrow table or a frame, with the columns of the policy.
                Where a column of ``columns()`` is missing or NULL it is not known which establishments share a cell, and the
                loss holds however they are spread. The measure of a quantile may be missing too.

        Returns:
            The loss, and the delta if keys were selected privately.

        Example:
            >>> from recordwise.policy import FirmPart, FirmPolicy, CellKey, constant
            >>> from recordwise.policy import ConditionColumn
            >>> part = FirmPart(policy=constant("0.01"), cells=(CellKey(column=ConditionColumn("county")),))
            >>> count = FirmPolicy(parts=(part,))
            >>> round(count.loss({"county": ["001", "001", "003"]}).rho, 6)
            0.05
            >>> round(count.loss({"id": [1, 2, 3]}).rho, 6)
            0.09
        """
        from recordwise.policy.evaluate.firms import firm_loss

        return firm_loss(self.parts, units)

    def to_json(self) -> dict[str, Any]:
        """The saved form; policies that parts share are written once."""
        policies: list[Any] = []
        parts = []
        for part in self.parts:
            policy = policy_json_in_order(part.policy)
            if policy not in policies:
                policies.append(policy)
            form = {"policy": policies.index(policy), "cells": [key.to_json() for key in part.cells]}
            form |= {"condition": part.condition.to_json(), "joint": part.joint.to_json()}
            parts.append(form)
        return {"parts": parts, "policies": policies}

    @classmethod
    def from_json(cls, form: Any, bands: Bands | None = None) -> "FirmPolicy":
        """Read back what ``to_json`` wrote; an unknown form is refused.

        Args:
            form: The saved form.
            bands: The band tables that it names, by digest.

        Returns:
            The policy of firms.

        Raises:
            UnknownFormError: If the form is not one that this version knows.
        """
        try:
            policies = [Policy.from_json(each, bands) for each in form["policies"]]
            return cls(parts=tuple(_part(each, policies) for each in form["parts"]))
        except (LookupError, TypeError, ValueError, AttributeError):
            raise UnknownFormError(what="loss of firms", found=type(form).__name__) from None


def _part(form: Mapping[str, Any], policies: Sequence[Policy]) -> FirmPart:
    return FirmPart(
        policy=policies[form["policy"]],
        condition=condition_from_json(form["condition"]),
        cells=tuple(CellKey.from_json(each) for each in form["cells"]),
        joint=Joint.from_json(form["joint"]),
    )
