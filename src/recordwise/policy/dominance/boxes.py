"""Branch and bound over boxes of several measures.

It proves that no record in any box exceeds the budget, or finds one that does. Every part is nondecreasing,
so in a box the gains are at most those of its upper corner and the budget is at least that of its lower
corner (T-BOXES, docs/theory/dominance.md). Values at lattice points are exact fractions or ball ends,
rounded outward to floats once; arrays then bound whole batches of boxes, and fractions decide what floats
leave open.
"""

import time
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt

import numpy as np
import numpy.typing as npt

from recordwise.exact.arithmetic import FloatArray
from recordwise.policy.atoms import Atom
from recordwise.policy.columns import Measure
from recordwise.policy.dominance.curves import Comparison, Term, curve, outward
from recordwise.policy.dominance.regions import Range

Boxes = npt.NDArray[np.int64]
"""A row for each box, a column for each measure: places in the tree of that measure's intervals."""
BoolArray = npt.NDArray[np.bool_]
Point = dict[str, Fraction]

BATCH = 4096
MOST_BOXES = 2_000_000
MOST_EXACT = 256
"""How many boxes of a batch are looked at in fractions."""
NEAR = 1e-11
"""Where floats put gains and budget this close, relatively, fractions decide."""
NOTICEABLE = 1e-6
"""An excess of less than this share is shown only where there is no larger one."""
SMALLEST = 1e-250
FIRST, LAST = 0, 1
LOW, UP = 0, 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a search over boxes.

    ``certain``: no record in the boxes exceeds the budget. ``point``: a record that does. Neither: undecided in
    time.
    """

    certain: bool
    point: Point | None = None


class Axis:
    """One measure as a binary tree of intervals, with part values."""

    def __init__(self, measure: Measure, span: tuple[int, int], atoms: list[Atom], marks: list[int]) -> None:
        self.measure = measure
        self.marks = marks
        self.curves = [curve(measure, atom) for atom in atoms]
        self.ends: list[tuple[int, int]] = []
        self.children: list[int] = []
        self.values = np.empty((2, 2, 64, len(atoms)))
        self.lines = np.empty((4, 64, len(atoms)))
        self.wide = np.zeros(64, np.bool_)
        self._at = lru_cache(maxsize=None)(self._ends_of_atoms)
        self._add(span)

    def _ends_of_atoms(self, steps: int) -> FloatArray:
        """Return lower and upper bounds of each part at a lattice point."""
        bounds = [each.bounds(steps) for each in self.curves]
        return np.array([[outward(low)[0] for low, _ in bounds], [outward(high)[1] for _, high in bounds]])

    def _add(self, ends: tuple[int, int]) -> None:
        place = len(self.ends)
        if place == self.values.shape[2]:
            self.values = np.concatenate([self.values, np.empty_like(self.values)], axis=2)
            self.lines = np.concatenate([self.lines, np.empty_like(self.lines)], axis=1)
            self.wide = np.concatenate([self.wide, np.zeros_like(self.wide)])
        self.wide[place] = ends[1] > ends[0]
        self.values[FIRST, :, place], self.values[LAST, :, place] = self._at(ends[0]), self._at(ends[1])
        for column, each in enumerate(self.curves):
            low, low_rise, high, high_rise = each.lines(*ends)
            rounded = outward(low)[0], outward(low_rise)[0], outward(high)[1], outward(high_rise)[1]
            self.lines[:, place, column] = rounded
        self.ends.append(ends)
        self.children.append(-1)

    def points(self, steps: list[int]) -> list[int]:
        """Single lattice points, each as an interval of its own."""
        for step in steps:
            self._add((step, step))
        return list(range(len(self.ends) - len(steps), len(self.ends)))

    def halves(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the index of the first half of each interval."""
        for place in np.unique(indices).tolist():
            if self.children[place] < 0:
                first, last = self.ends[place]
                middle = self._middle(first, last)
                self.children[place] = len(self.ends)
                self._add((first, middle))
                self._add((middle + 1, last))
        return np.array(self.children, np.int64)[indices]

    def _middle(self, first: int, last: int) -> int:
        """Return where to cut an interval, preferably at a piece's end."""
        low = max(first, 1)
        middle = isqrt(low * last) if last > 4 * low else (first + last) // 2
        for length in self.marks:
            near = max(1, (2 * middle + length) // (2 * length)) * length
            if near >= last:
                near -= length
            if first <= near < last and near > 0:
                return near
        return min(middle, last - 1)


@dataclass(slots=True)
class PlacedTerm:
    """A term with parts as (axis, column) and float bounds."""

    coefficient: tuple[float, float]
    floor: tuple[float, float]
    places: list[tuple[int, int]]

    @classmethod
    def of(cls, term: Term, axes: dict[Measure, int], columns: dict[tuple[Measure, Atom], int]) -> "PlacedTerm":
        places = [(axes[measure], columns[measure, atom]) for measure, atom in term.parts]
        return cls(outward(term.coefficient), outward(term.floor), places)


@dataclass(slots=True)
class Search:
    """The boxes of one comparison that are still open."""

    problem: Comparison
    axes: list[Axis]
    gains: list[PlacedTerm]
    budgets: list[list[PlacedTerm]]
    open: Boxes
    above: FloatArray

    @classmethod
    def of(cls, problem: Comparison, spans: dict[Measure, tuple[int, int]]) -> "Search":
        terms = [*problem.gains, *(term for budget in problem.budgets for term in budget)]
        atoms: dict[Measure, list[Atom]] = {measure: [] for measure in problem.measures}
        for measure, atom in dict.fromkeys(part for term in terms for part in term.parts):
            atoms[measure].append(atom)
        columns = {(measure, atom): place for measure, own in atoms.items() for place, atom in enumerate(own)}
        order = {measure: place for place, measure in enumerate(problem.measures)}
        axes = [Axis(measure, spans[measure], atoms[measure], problem.marks(measure)) for measure in problem.measures]
        gains = [PlacedTerm.of(term, order, columns) for term in problem.gains]
        budgets = [[PlacedTerm.of(term, order, columns) for term in budget] for budget in problem.budgets]
        return cls(problem, axes, gains, budgets, np.zeros((1, len(axes)), np.int64), np.array([np.inf]))

    def probe(self, candidates: dict[Measure, list[int]]) -> Point | None:
        """Return a combination of candidates that exceeds the budget, or None."""
        places = [np.array(axis.points(candidates[axis.measure])) for axis in self.axes]
        grid = np.stack([side.ravel() for side in np.meshgrid(*places, indexing="ij")], axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            return self._exceeding(grid, ends=(FIRST,))

    def run(self, deadline: float, batches: int | None = None) -> Outcome:
        """Bound, drop and halve the worst boxes first until decided.

        A second call continues where the first ended.
        """
        while len(self.open):
            if time.thread_time() >= deadline or len(self.open) > MOST_BOXES or batches == 0:
                return Outcome(certain=False)
            left, point = self._judge(self._batch())
            if point is not None:
                return Outcome(certain=False, point=point)
            if len(left[0]):
                halves = self._halve(left[0])
                if halves is None:
                    return Outcome(certain=False)
                self.open = np.concatenate([self.open, halves])
                self.above = np.concatenate([self.above, np.repeat(left[1], 2)])
            batches = None if batches is None else batches - 1
        return Outcome(certain=True)

    def _batch(self) -> Boxes:
        """Take out the boxes with the largest bounds."""
        if len(self.open) <= BATCH:
            batch, self.open, self.above = self.open, self.open[:0], self.above[:0]
            return batch
        order = np.argpartition(-self.above, BATCH)
        batch, rest = self.open[order[:BATCH]], order[BATCH:]
        self.open, self.above = self.open[rest], self.above[rest]
        return batch

    def _judge(self, boxes: Boxes) -> tuple[tuple[Boxes, FloatArray], Point | None]:
        """Return undecided boxes with their possible excess, or a counterexample."""
        with np.errstate(over="ignore", invalid="ignore"):
            most, least = self._gain(boxes, LAST, UP), self._budget(boxes, FIRST, LOW)
            # A NaN (two infinities) is not covered; numbers so small that products could vanish are left to fractions.
            left = np.flatnonzero(~((most <= least) & (least >= SMALLEST)))
            sloped = self._by_lines(boxes[left])
            left = left[~((sloped <= 0) & (least[left] >= SMALLEST))]
            boxes, most, least = boxes[left], most[left], least[left]
            if (point := self._exceeding(boxes)) is not None:
                return (boxes, most), point
            near = np.flatnonzero((most - least <= NEAR * most) | (least < SMALLEST))[:MOST_EXACT]
            near = np.union1d(near, np.flatnonzero(~self._wide(boxes).any(axis=1)))
        covered = [row for row in near.tolist() if self._is_covered_exactly(boxes[row])]
        keep = np.ones(len(boxes), np.bool_)
        keep[covered] = False
        return (boxes[keep], (most - least)[keep]), None

    def _by_lines(self, boxes: Boxes) -> FloatArray:
        """Bound gains less budget in each box by straight lines."""
        start, rise, size = self._lines(self.gains, boxes, above=True)
        lowest = np.full(len(boxes), np.inf)
        for budget in self.budgets:
            low, low_rise, low_size = self._lines(budget, boxes, above=False)
            slack = (size + low_size) * (4 * (len(self.gains) + len(budget)) + 16) * 2.0**-52
            lowest = np.minimum(lowest, start - low + np.maximum(rise - low_rise, 0.0).sum(axis=1) + slack)
        return lowest

    def _lines(
        self, terms: list[PlacedTerm], boxes: Boxes, *, above: bool
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return start and slopes of lines above or below the sum."""
        start, rises, size = np.zeros(len(boxes)), np.zeros(boxes.shape), np.zeros(len(boxes))
        side = UP if above else LOW
        for term in terms:
            flat = self._largest(term, boxes, LAST if above else FIRST, side)
            base, climb = flat, np.zeros(boxes.shape)
            for axis, column in term.places:
                alone = self._alone(term, boxes, axis, column, above=above)
                line = self.axes[axis].lines[:, boxes[:, axis], column]
                low, up = (line[2], line[3]) if above else (line[0], line[1])
                base = np.where(alone, low, base)
                climb[:, axis] = np.where(alone, up, 0.0)
            start += term.coefficient[side] * base
            rises += term.coefficient[side] * climb
            size += term.coefficient[UP] * (np.abs(base) + climb.sum(axis=1))
        return start, rises, size

    def _alone(self, term: PlacedTerm, boxes: Boxes, axis: int, column: int, *, above: bool) -> BoolArray:
        """Return the boxes where one part may stand for the term.

        Above, because it is the largest throughout the box. Below, any part may, and the one that is largest at the
        lower corner does.
        """
        own = self.axes[axis].values[FIRST, LOW, boxes[:, axis], column]
        result: BoolArray = np.asarray(own >= (term.floor[UP] if above else term.floor[LOW]), np.bool_)
        end, side = (LAST, UP) if above else (FIRST, LOW)
        before = not above
        for other, other_column in term.places:
            if (other, other_column) == (axis, column):
                before = False
                continue
            rival = self.axes[other].values[end, side, boxes[:, other], other_column]
            result &= own > rival if before else own >= rival
        return result

    def _exceeding(self, boxes: Boxes, ends: tuple[int, ...] = (LAST, FIRST)) -> Point | None:
        """A corner of a box that certainly exceeds the budget."""
        for end in ends:
            gain = self._gain(boxes, end, LOW)
            excess = gain - self._budget(boxes, end, UP)
            rows = np.flatnonzero(excess > 0)
            if not len(rows):
                continue
            # Of those with a clear excess the first in the order of their intervals; candidates are listed simplest first.
            clear = rows[excess[rows] > NOTICEABLE * gain[rows]]
            row = clear[boxes[clear].sum(axis=1).argmin()] if len(clear) else rows[excess[rows].argmax()]
            return {
                axis.measure.name: axis.measure.step * axis.ends[place][end]
                for axis, place in zip(self.axes, boxes[row].tolist())
            }
        return None

    def _gain(self, boxes: Boxes, end: int, side: int) -> FloatArray:
        return self._sum(self.gains, boxes, end, side)

    def _budget(self, boxes: Boxes, end: int, side: int) -> FloatArray:
        largest = self._sum(self.budgets[0], boxes, end, side)
        for budget in self.budgets[1:]:
            largest = np.maximum(largest, self._sum(budget, boxes, end, side))
        return largest

    def _sum(self, terms: list[PlacedTerm], boxes: Boxes, end: int, side: int) -> FloatArray:
        total = np.zeros(len(boxes))
        for term in terms:
            total += term.coefficient[side] * self._largest(term, boxes, end, side)
        # One rounding for each product and each addition of numbers that are not negative, twice over.
        slack = (2 * len(terms) + 2) * 2.0**-52
        return total * (1 + slack) if side == UP else total * (1 - slack)

    def _largest(self, term: PlacedTerm, boxes: Boxes, end: int, side: int) -> FloatArray:
        value = np.full(len(boxes), term.floor[side])
        for axis, column in term.places:
            np.maximum(value, self.axes[axis].values[end, side, boxes[:, axis], column], out=value)
        return value

    def _halve(self, boxes: Boxes) -> Boxes | None:
        """Halve each box along the measure that loosens its bound most.

        None where only equal balls are left.
        """
        spread = np.zeros(boxes.shape)
        for term in [*self.gains, *(term for budget in self.budgets for term in budget)]:
            base = self._largest(term, boxes, FIRST, LOW)
            for own, column in term.places:
                reach = self.axes[own].values[LAST, UP, boxes[:, own], column]
                spread[:, own] += term.coefficient[UP] * np.maximum(reach - base, 0.0)
        wide = self._wide(boxes)
        if not wide.any(axis=1).all():
            return None
        spread = np.where(wide, np.nan_to_num(spread, nan=1e300, posinf=1e300) + 1e-300, -1.0)
        chosen = spread.argmax(axis=1)
        result = np.repeat(boxes, 2, axis=0)
        for place, axis in enumerate(self.axes):
            rows = np.flatnonzero(chosen == place)
            if len(rows):
                halves = axis.halves(boxes[rows, place])
                result[2 * rows, place], result[2 * rows + 1, place] = halves, halves + 1
        return result

    def _wide(self, boxes: Boxes) -> npt.NDArray[np.bool_]:
        """Return which measures of each box span several lattice points."""
        return np.stack([axis.wide[boxes[:, place]] for place, axis in enumerate(self.axes)], axis=1)

    def _is_covered_exactly(self, box: Boxes) -> bool:
        """The bound of one box in fractions."""
        ends = {axis.measure: axis.ends[place] for axis, place in zip(self.axes, box.tolist())}
        return exact_bound(self.problem, ends) <= 0


def exact_bound(problem: Comparison, ends: dict[Measure, tuple[int, int]]) -> Fraction:
    """Return upper-corner gains less lower-corner budget, rounded up."""
    most = sum((_value(term, ends, LAST) for term in problem.gains), Fraction(0))
    least = max(sum((_value(term, ends, FIRST) for term in budget), Fraction(0)) for budget in problem.budgets)
    return most - least


def _value(term: Term, ends: dict[Measure, tuple[int, int]], end: int) -> Fraction:
    """Bound the term at one corner, outward."""
    values = (curve(measure, atom).bounds(ends[measure][end])[end] for measure, atom in term.parts)
    return term.coefficient * max([term.floor, *values])


def finite(spans: dict[Measure, Range], reach: dict[Measure, int]) -> dict[Measure, tuple[int, int]]:
    """The ranges, each ended at the reach where that is nearer."""
    return {
        measure: (first, max(first, reach[measure] if last is None else min(last, reach[measure])))
        for measure, (first, last) in spans.items()
    }
