"""What the establishments of a firm lose together, cell by cell (T-CELLS).

A ``FirmPolicy`` is public, like a policy: it says what any set of records loses together, given which of them share a cell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from recordwise.errors import ParameterError, RecordError, UnknownFormError, own_errors_of
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import fraction_text, read_fraction
from recordwise.policy.atoms import SelectionDelta
from recordwise.policy.columns import ConditionColumn, column_from_json
from recordwise.policy.conditions import EVERY, Condition, columns_of
from recordwise.policy.constructors import constant
from recordwise.policy.evaluate.evaluator import Steps
from recordwise.policy.evaluate.tables import (
    CodedColumn,
    Table,
    arrow_array,
    as_array,
    fetch,
    group_column,
    measure_column,
)
from recordwise.policy.json import Bands, condition_from_json
from recordwise.policy.policy import Policy, compose, policy_json_in_order

ROOTS, SUMS, SIGNS, FIRM, PURE, NODES = "roots", "sums", "signs", "firm", "pure", "nodes"
MOST_TREE_LEVELS = 8
"""So many levels of a quantile's tree are counted node by node; a deeper level loses no more than the last of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """A bound on the joint loss of records in one cell.

    In addition to (sum of roots)^2.

    ``roots``: nothing. ``sums``: the policy at the sum of their values. ``signs``: the same for positive and
    negative values apart. ``firm``: the loss of one of them. ``pure``: eps*tanh(eps/2) at the sum eps of their
    pure losses. ``nodes``: a record changes one number at each of ``levels`` levels of a tree, which ``points``
    names.
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
        """The levels whose nodes differ."""
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
    """One coordinate of a record's cell.

    A column, a prefix, or the number of the first condition that holds.
    """

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
        return self.column is not None and self.column.determines(column)

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
    """One statistic of one table, for the joint losses of records."""

    policy: Policy
    condition: Condition = EVERY
    """The records that the table is about."""
    cells: tuple[CellKey, ...] = ()
    """Without any, all records are in one cell."""
    joint: Joint = Joint()

    def __post_init__(self) -> None:
        if self.joint.kind in (SUMS, SIGNS) and not self._is_determined():
            # At a sum of values the policy needs the group of its cell; where the cell does not tell it, roots remain.
            object.__setattr__(self, "joint", Joint())
        if self.joint.kind == PURE:
            self.pure()

    def pure(self) -> "FirmPart":
        """The part in pure epsilon; refused if the policy has none."""
        return self if self.policy.is_pure else replace(self, policy=self.policy.pure())

    def _is_determined(self) -> bool:
        return all(any(key.determines(column) for key in self.cells) for column in self.policy.columns())

    def columns(self) -> set[str]:
        """The columns that say which cell a record is in."""
        return set().union(*(key.names() for key in self.cells))

    def record_policy(self) -> Policy:
        """What the part costs any single record."""
        return self.policy if self.condition == EVERY else self.policy.where(self.condition)

    def tails(self) -> Steps:
        """Return the chance that these pieces alone list a key."""
        steps = {atom.steps for _, atom in self.policy.delta_terms if isinstance(atom, SelectionDelta)}
        if len(steps) > 1 or bool(steps) != bool(self.policy.delta_terms):
            raise ParameterError(parameter="policy", problem="has a delta of an unknown kind")
        return next(iter(steps), ())

    def piece_loss(self) -> Fraction:
        """The loss of one piece, where keys are selected."""
        (weight,) = set(self.policy.rho.values())
        return weight


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class FirmLoss:
    """The joint zCDP loss, delta and pure epsilon of several records."""

    rho: float
    delta: float = 0.0
    epsilon: float | None = None
    """None where some of it has no pure loss."""


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class FirmPolicy:
    """The parts whose losses add up to a firm's loss (T-CELLS)."""

    parts: tuple[FirmPart, ...]

    def policy(self) -> Policy:
        """What all parts cost a single record: the policy of the release."""
        return compose([part.record_policy() for part in self.parts])

    def pure(self) -> "FirmPolicy | None":
        """The same in pure epsilon, or None without a pure loss."""
        if any(part.policy.pure_problem() is not None for part in self.parts):
            return None
        return FirmPolicy(parts=tuple(part.pure() for part in self.parts))

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
            The loss, the delta if keys were selected privately, and the pure epsilon where all noise has one.

        Example:
            >>> from recordwise.policy import ConditionColumn, constant
            >>> from recordwise.policy.firms import CellKey, FirmPart, FirmPolicy
            >>> part = FirmPart(policy=constant("0.01"), cells=(CellKey(column=ConditionColumn("county")),))
            >>> count = FirmPolicy(parts=(part,))
            >>> round(count.loss({"county": ["001", "001", "003"]}).rho, 6)
            0.05
            >>> round(count.loss({"id": [1, 2, 3]}).rho, 6)
            0.09
        """

        found, pure = firm_loss(self.parts, units), self.pure()
        return found if pure is None else replace(found, epsilon=firm_loss(pure.parts, units).rho)

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
            return cls(parts=tuple(_part_from_json(each, policies) for each in form["parts"]))
        except (LookupError, TypeError, ValueError, AttributeError):
            raise UnknownFormError(what="loss of firms", found=type(form).__name__) from None


def _part_from_json(form: Mapping[str, Any], policies: Sequence[Policy]) -> FirmPart:
    return FirmPart(
        policy=policies[form["policy"]],
        condition=condition_from_json(form["condition"]),
        cells=tuple(CellKey.from_json(each) for each in form["cells"]),
        joint=Joint.from_json(form["joint"]),
    )


# The joint loss in numpy: every bound of T-CELLS, the smallest in each cell, added up.


IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Columns = Mapping[str, Any]
OUTWARD = 1 + 1e-12
"""Above the rounding of sums and roots of losses that were themselves rounded up."""


def firm_loss(parts: Sequence[FirmPart], units: Any) -> FirmLoss:
    """Return the sum of the losses of the parts (T-SEQ).

    The delta of a part is that of T-SELECT-GROUP. Of pure parts the sum of epsilons stands in the place of rho.
    """
    rows = _count(units)
    rho, delta = 0.0, 0.0
    for part in parts:
        columns = _select_rows(_columns(part, units), part.condition, rows)
        if columns is not None:
            here = _part_loss(part, columns)
            rho, delta = rho + here.rho, delta + here.delta
    return FirmLoss(rho=rho * OUTWARD, delta=min(1.0, delta * OUTWARD))


def _count(units: Any) -> int:
    if not isinstance(units, Mapping):
        return len(units)
    if not units:
        raise RecordError(column="the establishments", problem="are missing")
    return len(next(iter(units.values())))


def _columns(part: FirmPart, units: Any) -> dict[str, Any]:
    """Return the part's columns as arrays.

    A column that only determines a record's cell may be missing.
    """
    found: dict[str, Any] = {each.name: measure_column(units, each.name) for each in part.policy.measures()}
    for column in part.record_policy().columns():
        found.setdefault(column.name, _array(units, column.name))
    for name in part.columns() - found.keys():
        if _is_there(units, name):
            found[name] = _array(units, name)
    measure = part.joint.measure
    if measure is not None and measure not in found and _is_there(units, measure):
        found[measure] = measure_column(units, measure)
    found[""] = np.arange(_count(units))
    return found


def _is_there(units: Any, name: str) -> bool:
    try:
        fetch(units, name)
    except RecordError:
        return False
    return True


def _array(units: Any, name: str) -> Any:
    column = fetch(units, name)
    array = as_array(column)
    return arrow_array(column, name).to_numpy(zero_copy_only=False) if array is None else array


def _select_rows(columns: dict[str, Any], condition: Condition, rows: int) -> dict[str, Any] | None:
    """The rows that the table is about; None where there is none."""
    if condition != EVERY:
        kept = np.flatnonzero(_holds(condition, columns))
        columns = {name: column[kept] for name, column in columns.items()}
    return columns if len(columns[""]) else None


def _holds(condition: Condition, columns: Columns) -> Any:
    return constant(1).where(condition).loss(columns) > 0


def taken_part(part: FirmPart, record: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return a record that takes part in a table; None where it does not, or where there is none."""
    if record is None or part.condition == EVERY:
        return record
    return record if float(constant(1).where(part.condition).loss(dict(record))) > 0 else None


def same_cell(part: FirmPart, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two records are known to share a cell."""
    names = part.columns()
    if not (names <= one.keys() and names <= other.keys()):
        return False
    units = {name: [one[name], other[name]] for name in names}
    places = _cell_numbers(part.cells, {name: _array(units, name) for name in names} | {"": np.arange(2)})
    return places is not None and bool(places[0] == places[1])


def _part_loss(part: FirmPart, columns: Columns) -> FirmLoss:
    rows = len(columns[""])
    losses = np.broadcast_to(np.asarray(part.policy.loss(columns), np.float64), rows)
    places, tails = _cell_numbers(part.cells, columns), part.tails()
    if part.policy.is_pure:
        return FirmLoss(rho=_pure_loss(part, columns, losses, places))
    if places is None:
        return FirmLoss(rho=float(np.sqrt(losses).sum() ** 2), delta=_anywhere(part, losses, tails) if tails else 0.0)
    first, cell = np.unique(places, return_index=True, return_inverse=True)[1:]
    bound = cell_sums(cell, np.sqrt(losses)) ** 2
    other = _second_bound(part, columns, losses, first, cell)
    rho = float((bound if other is None else np.minimum(bound, other)).sum())
    if not tails:
        return FirmLoss(rho=rho)
    pieces = np.rint(np.sqrt(losses / float(part.piece_loss())))
    chances = tail_at(cell_sums(cell, pieces), tails)
    return FirmLoss(rho=rho, delta=any_of(chances))


def _pure_loss(part: FirmPart, columns: Columns, losses: FloatArray, places: IntArray | None) -> float:
    """Return the joint epsilon: the sum over records, in known cells at most that of their sum (T-PURE)."""
    if places is None or part.joint.kind not in (SUMS, SIGNS, FIRM):
        return float(losses.sum())
    first, cell = np.unique(places, return_index=True, return_inverse=True)[1:]
    other = _second_bound(part, columns, losses, first, cell)
    return float(losses.sum() if other is None else np.minimum(cell_sums(cell, losses), other).sum())


def _second_bound(
    part: FirmPart, columns: Columns, losses: FloatArray, first: IntArray, cell: IntArray
) -> FloatArray | None:
    """The second bound of each cell, where the statistic has one."""
    joint = part.joint
    if joint.kind == FIRM:
        return max_by_cell(losses, cell)
    if joint.kind == PURE:
        epsilon = cell_sums(cell, np.broadcast_to(np.asarray(part.policy.epsilon_pure(columns), np.float64), len(cell)))
        return np.asarray(epsilon * np.tanh(epsilon / 2), np.float64)
    if joint.kind in (SUMS, SIGNS):
        values = np.asarray(columns[str(joint.measure)], np.float64)
        parts = (values,) if joint.kind == SUMS else (np.maximum(values, 0.0), np.maximum(-values, 0.0))
        sums = [cell_sums(cell, each) for each in parts]
        return sum(
            (_policy_at_sum(part.policy, columns, str(joint.measure), each, first) for each in sums), np.zeros(1)
        )
    if joint.kind == NODES and joint.measure in columns:
        return node_losses(part, np.asarray(columns[str(joint.measure)], np.float64), losses, cell)
    return None


def cell_sums(cell: IntArray, values: FloatArray) -> FloatArray:
    """The sum of the values in each cell."""
    return np.asarray(np.bincount(cell, weights=values), np.float64)


def max_by_cell(losses: FloatArray, cell: IntArray) -> FloatArray:
    """The largest loss in each cell."""
    most = np.zeros(int(cell.max()) + 1)
    np.maximum.at(most, cell, losses)
    return most


def _policy_at_sum(policy: Policy, columns: Columns, measure: str, sums: FloatArray, first: IntArray) -> FloatArray:
    """Return the policy at records with the sums of each cell."""
    joined = {name: column[first] for name, column in columns.items()} | {measure: sums}
    found = np.asarray(policy.loss(joined), np.float64)
    return np.where(sums == 0, 0.0, found)


def node_losses(part: FirmPart, values: FloatArray, losses: FloatArray, cell: IntArray) -> FloatArray:
    """Return the joint loss in each cell of a tree statistic (T-CELLS).

    One level's loss times the squared number of records in each node.
    """
    joint, cells = part.joint, int(cell.max()) + 1
    counted = joint.counted_levels
    leaf = np.searchsorted(np.array([float(point) for point in joint.points]), values, side="left")
    total, squares = np.zeros(cells), np.zeros(cells)
    for level in range(1, counted + 1):
        node = cell * (1 << level) + (leaf >> (counted - level))
        held = np.bincount(node, minlength=cells << level).astype(np.float64)
        squares = (held**2).reshape(cells, 1 << level).sum(axis=1)
        total += squares
    total += (joint.levels - counted) * squares
    return max_by_cell(losses, cell) / joint.levels * total


def _cell_numbers(keys: Sequence[CellKey], columns: Columns) -> IntArray | None:
    """Return a number for the cell of each row, None if unknown."""
    place = np.zeros(len(columns[""]), np.int64)
    for key in keys:
        coordinate = _coordinate(key, columns)
        if coordinate is None:
            return None
        place = np.unique(place * (int(coordinate.max()) + 1) + coordinate, return_inverse=True)[1]
    return place


def _coordinate(key: CellKey, columns: Columns) -> IntArray | None:
    if not key.names() <= columns.keys():
        return None
    if key.column is None:
        label = np.full(len(columns[""]), -1, np.int64)
        for condition, number in reversed(key.cases):
            label[_holds(condition, columns)] = number
        return label + 1
    coded = group_column(columns, key.column.name)
    if not isinstance(coded, CodedColumn):
        return None if coded.missing.any() else np.unique(coded.values, return_inverse=True)[1]
    shown = [value[: key.column.length] if isinstance(value, str) else value for value in coded.values]
    if any(shown[place] is None for place in np.unique(coded.places)):
        return None
    numbers = {value: number for number, value in enumerate(dict.fromkeys(shown))}
    return np.array([numbers[value] for value in shown], np.int64)[coded.places]


def tail_at(pieces: FloatArray, tails: Steps) -> FloatArray:
    """Return the tail at each number of pieces.

    The next table entry not below it, 1 beyond the last, 0 for no piece.
    """
    counts, levels = np.array([count for count, _ in tails]), np.array([*(float(level) for _, level in tails), 1.0])
    return np.where(pieces > 0, levels[np.searchsorted(counts, pieces, side="left")], 0.0)


def any_of(chances: FloatArray) -> float:
    """The probability that any of independent events happens, rounded up."""
    if np.any(chances >= 1):
        return 1.0
    return min(float(chances.sum()), float(-np.expm1(np.log1p(-chances).sum())) * OUTWARD)


def _anywhere(part: FirmPart, losses: FloatArray, tails: Steps) -> float:
    """Bound the delta however pieces are spread over keys (T-CELLS)."""
    pieces = float(np.rint(np.sqrt(losses / float(part.piece_loss()))).sum())
    counts = np.array([1.0, *(count + 1.0 for count, _ in tails)])
    each = np.array([*(float(level) for _, level in tails), 1.0]) / counts
    return min(1.0, pieces * float(each[counts <= pieces].max(initial=0.0)))
