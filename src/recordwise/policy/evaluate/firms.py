"""The joint loss of a firm's establishments in numpy: every bound of T-CELLS, the smallest in each cell, added up."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recordwise.errors import RecordError
from recordwise.exact.arithmetic import FloatArray
from recordwise.policy.conditions import EVERY, Condition
from recordwise.policy.constructors import constant
from recordwise.policy.evaluate.evaluator import Steps
from recordwise.policy.evaluate.tables import Coded, arrow_array, as_array, fetch, group_column, measure_column
from recordwise.policy.firms import FIRM, NODES, PURE, SIGNS, SUMS, CellKey, FirmLoss, FirmPart
from recordwise.policy.policy import Policy

IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Columns = Mapping[str, Any]
OUTWARD = 1 + 1e-12
"""Above the rounding of sums and roots of losses that were themselves rounded up."""


def firm_loss(parts: Sequence[FirmPart], units: Any) -> FirmLoss:
    """The losses of the parts added up (T-SEQ); the delta of a part is that of T-SELECT-GROUP."""
    rows = _count(units)
    rho, delta = 0.0, 0.0
    for part in parts:
        columns = _selected(_columns(part, units), part.condition, rows)
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
    """What the part looks at, as arrays; a column that only says which cell a record is in may be missing."""
    found: dict[str, Any] = {each.name: measure_column(units, each.name) for each in part.policy.measures()}
    for column in part.whole().columns():
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


def _selected(columns: dict[str, Any], condition: Condition, rows: int) -> dict[str, Any] | None:
    """The rows that the table is about; None where there is none."""
    if condition != EVERY:
        kept = np.flatnonzero(_holds(condition, columns))
        columns = {name: column[kept] for name, column in columns.items()}
    return columns if len(columns[""]) else None


def _holds(condition: Condition, columns: Columns) -> Any:
    return constant(1).where(condition).loss(columns) > 0


def _part_loss(part: FirmPart, columns: Columns) -> FirmLoss:
    rows = len(columns[""])
    losses = np.broadcast_to(np.asarray(part.policy.loss(columns), np.float64), rows)
    places, tails = _places(part.cells, columns), part.tails()
    if places is None:
        return FirmLoss(rho=float(np.sqrt(losses).sum() ** 2), delta=_anywhere(part, losses, tails) if tails else 0.0)
    first, cell = np.unique(places, return_index=True, return_inverse=True)[1:]
    bound = added(cell, np.sqrt(losses)) ** 2
    other = _known(part, columns, losses, first, cell)
    rho = float((bound if other is None else np.minimum(bound, other)).sum())
    if not tails:
        return FirmLoss(rho=rho)
    pieces = np.rint(np.sqrt(losses / float(part.piece_loss())))
    chances = tail_at(added(cell, pieces), tails)
    return FirmLoss(rho=rho, delta=any_of(chances))


def _known(part: FirmPart, columns: Columns, losses: FloatArray, first: IntArray, cell: IntArray) -> FloatArray | None:
    """The second bound of each cell, where the statistic has one."""
    joint = part.joint
    if joint.kind == FIRM:
        return losses_at(losses, cell)
    if joint.kind == PURE:
        epsilon = added(cell, np.broadcast_to(np.asarray(part.policy.epsilon_pure(columns), np.float64), len(cell)))
        return np.asarray(epsilon * np.tanh(epsilon / 2), np.float64)
    if joint.kind in (SUMS, SIGNS):
        values = np.asarray(columns[str(joint.measure)], np.float64)
        parts = (values,) if joint.kind == SUMS else (np.maximum(values, 0.0), np.maximum(-values, 0.0))
        sums = [added(cell, each) for each in parts]
        return sum((_at_sum(part.policy, columns, str(joint.measure), each, first) for each in sums), np.zeros(1))
    if joint.kind == NODES and joint.measure in columns:
        return node_losses(part, np.asarray(columns[str(joint.measure)], np.float64), losses, cell)
    return None


def added(cell: IntArray, values: FloatArray) -> FloatArray:
    """The sum of the values in each cell."""
    return np.asarray(np.bincount(cell, weights=values), np.float64)


def losses_at(losses: FloatArray, cell: IntArray) -> FloatArray:
    """The largest loss in each cell."""
    most = np.zeros(int(cell.max()) + 1)
    np.maximum.at(most, cell, losses)
    return most


def _at_sum(policy: Policy, columns: Columns, measure: str, sums: FloatArray, first: IntArray) -> FloatArray:
    """The policy at a record that has the sums; its group is that of the cell, so that of any record there."""
    joined = {name: column[first] for name, column in columns.items()} | {measure: sums}
    found = np.asarray(policy.loss(joined), np.float64)
    return np.where(sums == 0, 0.0, found)


def node_losses(part: FirmPart, values: FloatArray, losses: FloatArray, cell: IntArray) -> FloatArray:
    """One level's loss for each square of a number of records in a node (T-CELLS)."""
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
    return losses_at(losses, cell) / joint.levels * total


def _places(keys: Sequence[CellKey], columns: Columns) -> IntArray | None:
    """A number for the cell of each row; None where it is not known."""
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
    if not isinstance(coded, Coded):
        return None if coded.missing.any() else np.unique(coded.values, return_inverse=True)[1]
    shown = [value[: key.column.length] if isinstance(value, str) else value for value in coded.values]
    if any(shown[place] is None for place in np.unique(coded.places)):
        return None
    numbers = {value: number for number, value in enumerate(dict.fromkeys(shown))}
    return np.array([numbers[value] for value in shown], np.int64)[coded.places]


def tail_at(pieces: FloatArray, tails: Steps) -> FloatArray:
    """The tail at each number of pieces: the entry of the table that is not below it, 1 beyond the last, 0 for no piece."""
    counts, levels = np.array([count for count, _ in tails]), np.array([*(float(level) for _, level in tails), 1.0])
    return np.where(pieces > 0, levels[np.searchsorted(counts, pieces, side="left")], 0.0)


def any_of(chances: FloatArray) -> float:
    """The probability that any of independent events happens, rounded up."""
    if np.any(chances >= 1):
        return 1.0
    return min(float(chances.sum()), float(-np.expm1(np.log1p(-chances).sum())) * OUTWARD)


def _anywhere(part: FirmPart, losses: FloatArray, tails: Steps) -> float:
    """A delta however the pieces are spread over keys: the pieces times the largest tail for one of them (T-CELLS)."""
    pieces = float(np.rint(np.sqrt(losses / float(part.piece_loss()))).sum())
    counts = np.array([1.0, *(count + 1.0 for count, _ in tails)])
    each = np.array([*(float(level) for _, level in tails), 1.0]) / counts
    return min(1.0, pieces * float(each[counts <= pieces].max(initial=0.0)))
