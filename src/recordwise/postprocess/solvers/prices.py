r"""Exact solution of a boxed problem whose sums form a forest.

One pass up and one pass down (T-PRICES, docs/theory/postprocess.md). The best amount below a node is a rising
polyline in the price paid for it. The polyline of a cell has a corner where the cell leaves zero; those of
children add up at equal prices; an answer b of weight w moves a corner to price + w (amount - b). The root is
evaluated at price 0; on the way down every node reads its amount at the price inside its parent. A cell that
was not measured takes any amount at price 0: a vertical piece, which children share in proportion. Newton
steps that start here remove the rounding.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recordwise.postprocess.solvers.boxed import BoxedProblem, FloatArray, IntArray, Solution
from recordwise.postprocess.solvers.tree import Level, TreeSystem


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curves:
    """The polyline of every node of a level, by rising price."""

    first: IntArray
    """Where the corners of each node begin, and where the last ones end."""
    price: FloatArray
    amount: FloatArray
    ray: FloatArray
    """The slope beyond a node's last corner; infinite where any amount is taken at its price."""

    @property
    def node(self) -> IntArray:
        return np.repeat(np.arange(len(self.ray)), np.diff(self.first))

    @property
    def last(self) -> IntArray:
        return self.first[1:] - 1

    def with_answers(self, weight: FloatArray, answer: FloatArray) -> "Curves":
        """Return the curves as parents see them, with the nodes' answers."""
        node = self.node
        price = self.price + weight[node] * (self.amount - answer[node])
        with np.errstate(divide="ignore", invalid="ignore"):
            ray = np.where(np.isinf(self.ray), 1.0 / weight, self.ray / (1.0 + weight * self.ray))
        return Curves(first=self.first, price=price, amount=self.amount, ray=ray)

    def fixed(self, where: NDArray[np.bool_], amount: FloatArray) -> "Curves":
        """Return the curves with some nodes fixed at an amount."""
        if not np.any(where):
            return self
        kept = ~where[self.node]
        kept[self.first[:-1]] = True
        price, amounts = self.price.copy(), self.amount.copy()
        price[self.first[:-1][where]], amounts[self.first[:-1][where]] = 0.0, amount[where]
        counts = np.where(where, 1, np.diff(self.first))
        first = np.concatenate([[0], np.cumsum(counts)])
        return Curves(first=first, price=price[kept], amount=amounts[kept], ray=np.where(where, 0.0, self.ray))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Demand:
    """A price for each node, and the share of its vertical piece."""

    price: FloatArray
    share: FloatArray
    """The part taken of a vertical piece with an end."""
    excess: FloatArray
    """The amount taken of one without an end."""


def by_prices(problem: BoxedProblem, system: TreeSystem) -> Solution | None:
    """Return every draw's solution up to rounding; None for unsupported bounds."""
    sums = np.isinf(problem.floor) & np.isinf(problem.ceiling) | (problem.floor == problem.ceiling)
    if system.local.shape[0] != 1 or not np.all(np.isfinite(problem.low)) or not np.all(sums):
        return None
    found = [_one_draw(problem.take(np.array([draw])), system) for draw in range(problem.draws)]
    return Solution(
        x=np.stack([x for x, _ in found]),
        y=np.stack([y for _, y in found]),
        iterations=np.zeros(len(found), dtype=np.int64),
    )


def _one_draw(problem: BoxedProblem, system: TreeSystem) -> tuple[FloatArray, FloatArray]:
    precision, target, low, high, *sums = (part[0] for part in problem.arrays)
    cells = cell_curves(*(np.broadcast_to(part, (system.grid.size,)) for part in (precision, target, low, high)))
    parent = np.empty(system.grid.size, dtype=np.int64)
    parent[system.grid.ravel()] = np.repeat(np.arange(len(system.grid)), system.grid.shape[1])
    way, seen = [], cells
    for level in system.levels:
        if level.nodes == len(parent) and np.all(level.place < 0):
            parent = level.parent[parent]
            continue
        inner = join_curves(seen, parent, level.nodes)
        outer, held = _with_answers(inner, level, sums)
        way.append((level.place[:, 0], parent, seen, inner, outer, held))
        seen, parent = outer.fixed(~np.isnan(held), held), level.parent
    y = np.zeros(system.queries + 1)
    asked = Demand(price=np.zeros(len(seen.ray)), share=np.zeros(len(seen.ray)), excess=np.zeros(len(seen.ray)))
    for place, parent, below, inner, outer, held in reversed(way):
        taken = inside(inner, outer, asked)
        if not np.all(np.isnan(held)):
            taken = _choose(~np.isnan(held), prices_inside(inner, held), taken)
        y[place] = taken.price - asked.price
        asked = demand_of_children(below, parent, taken)
    return amounts(cells, asked), y[:-1]


def _choose(where: NDArray[np.bool_], one: "Demand", other: "Demand") -> "Demand":
    return Demand(**{name: np.where(where, getattr(one, name), getattr(other, name)) for name in Demand.__slots__})


def _with_answers(inner: Curves, level: Level, sums: list[FloatArray]) -> tuple[Curves, FloatArray]:
    """Return the next level's curves, and fixed amounts or NaN."""
    weight, answer, floor, ceiling = sums
    place = level.place[:, 0]
    own, fixed = place >= 0, (floor == ceiling)[place] & (place >= 0)
    free = own & ~fixed
    outer = inner.with_answers(np.where(free, weight[place], 0.0), np.where(free, answer[place], 0.0))
    return outer, np.where(fixed, floor[place], np.nan)


def cell_curves(precision: FloatArray, target: FloatArray, low: FloatArray, high: FloatArray) -> Curves:
    """Return cell curves that rise with the price between their bounds."""
    two = np.isfinite(high) & (high > low)
    first = np.concatenate([[0], np.cumsum(1 + two)])
    price, amount = np.empty(first[-1]), np.empty(first[-1])
    price[first[:-1]], amount[first[:-1]] = precision * (low - target), low
    price[first[1:][two] - 1], amount[first[1:][two] - 1] = precision[two] * (high - target)[two], high[two]
    with np.errstate(divide="ignore"):
        ray = np.where(np.isfinite(high), 0.0, 1.0 / precision)
    return Curves(first=first, price=price, amount=amount, ray=ray)


def join_curves(children: Curves, parent: IntArray, nodes: int) -> Curves:
    """Return the parents' curves: children's amounts add up at equal prices."""
    slope, jump = pieces(children)
    before = np.concatenate([[0.0], slope[:-1]])
    before[children.first[:-1]] = 0.0
    owner = parent[children.node]
    endless = np.isinf(children.ray)
    cutoff = np.full(nodes, np.inf)
    np.minimum.at(cutoff, parent[endless], children.price[children.last[endless]])
    order = np.lexsort((children.price, owner))
    order = order[children.price[order] <= cutoff[owner[order]]]
    price, place = children.price[order], owner[order]
    # Corners at one price are one: a vertical piece is shared as a whole.
    new = np.flatnonzero((np.diff(price, prepend=np.nan) != 0.0) | (np.diff(place, prepend=-1) != 0))
    bend, jumps = (np.add.reduceat(values[order], new) for values in (slope - before, jump))
    price, first = price[new], np.searchsorted(place[new], np.arange(nodes + 1))
    base = np.bincount(parent, weights=children.amount[children.first[:-1]], minlength=nodes).astype(np.float64)
    amount, ray = scan(first, price, bend, jumps, base)
    ray[np.isfinite(cutoff)] = np.inf
    copies = 1 + (jumps > 0)
    amount, price = np.repeat(amount, copies), np.repeat(price, copies)
    ends = np.cumsum(copies)
    amount[ends[jumps > 0] - 1] += jumps[jumps > 0]
    return Curves(first=np.concatenate([[0], ends])[first], price=price, amount=amount, ray=ray)


def pieces(curves: Curves) -> tuple[FloatArray, FloatArray]:
    """Return the slope after each corner, or the length if vertical."""
    run = np.diff(curves.price, append=np.inf)
    rise = np.diff(curves.amount, append=0.0)
    vertical = run <= 0
    slope = np.where(vertical, 0.0, rise / np.where(vertical, 1.0, run))
    jump = np.where(vertical, rise, 0.0)
    slope[curves.last], jump[curves.last] = np.where(np.isinf(curves.ray), 0.0, curves.ray), 0.0
    return slope, jump


def scan(
    first: IntArray, price: FloatArray, bend: FloatArray, jump: FloatArray, base: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the amount at every corner, and every node's last slope."""
    try:
        from recordwise.postprocess.solvers import kernel as tree_kernel
    except ImportError:
        return scan_numpy(first, price, bend, jump, base)
    amount, ray = np.empty_like(price), np.zeros(len(base))
    tree_kernel.scan_corners(first, price, bend, jump, base, amount, ray)
    return amount, ray


def scan_numpy(
    first: IntArray, price: FloatArray, bend: FloatArray, jump: FloatArray, base: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Compute ``scan`` by sums over all nodes."""
    node = np.repeat(np.arange(len(base)), np.diff(first))
    slope = _restarting_sums(bend, first, node)
    run = np.diff(price, append=0.0)
    gained = _restarting_sums(slope * run + jump, first, node)
    amount = base[node] + gained - slope * run - jump
    return amount, slope[first[1:] - 1]


def _restarting_sums(values: FloatArray, first: IntArray, node: IntArray) -> FloatArray:
    """Running sums that start over at every node."""
    total = np.cumsum(values)
    return np.asarray(total - np.concatenate([[0.0], total])[first[:-1]][node])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spot:
    """Where a price lies on the polyline of each node."""

    below: IntArray
    """The first corner at the price, or the one after it."""
    at: IntArray
    """The last corner not beyond the price, or the node's first."""
    then: IntArray
    """The corner after that, or the node's last."""
    part: FloatArray
    """How far between these two; 0 before the first corner and beyond the last."""
    before: NDArray[np.bool_]
    beyond: NDArray[np.bool_]

    @classmethod
    def of(cls, values: FloatArray, first: IntArray, wanted: FloatArray) -> "Spot":
        """Locate wanted prices or amounts in each node's rising run."""
        start, last = first[:-1], first[1:] - 1
        above = bisect_corners(values, first, wanted, past_equal=True) - 1
        at, before, beyond = np.maximum(above, start), above < start, above >= last
        then = np.minimum(at + 1, last)
        run = values[then] - values[at]
        inside = ~before & ~beyond & (run > 0)
        part = np.where(inside, (wanted - values[at]) / np.where(run > 0, run, 1.0), 0.0)
        below = np.minimum(bisect_corners(values, first, wanted, past_equal=False), last)
        return cls(below=below, at=at, then=then, part=part, before=before, beyond=beyond)

    def between(self, values: FloatArray) -> FloatArray:
        return values[self.at] + self.part * (values[self.then] - values[self.at])


def bisect_corners(values: FloatArray, first: IntArray, wanted: FloatArray, *, past_equal: bool) -> IntArray:
    """Return each node's first corner above, or not below, the wanted value."""
    low, high = first[:-1].copy(), first[1:].copy()
    left = np.flatnonzero(low < high)
    while len(left):
        middle = (low[left] + high[left]) >> 1
        passed = (values[middle] <= wanted[left]) if past_equal else (values[middle] < wanted[left])
        low[left[passed]] = middle[passed] + 1
        high[left[~passed]] = middle[~passed]
        left = left[low[left] < high[left]]
    return low


def amounts(cells: Curves, demand: Demand) -> FloatArray:
    """The amount of every cell at the price asked."""
    spot = Spot.of(cells.price, cells.first, demand.price)
    endless = np.isinf(cells.ray)
    further = np.where(endless, 0.0, cells.ray) * (demand.price - cells.price[cells.last])
    found = spot.between(cells.amount) + np.where(spot.beyond, further, 0.0)
    low = cells.amount[spot.below]
    found = np.where(spot.below < spot.at, low + demand.share * (cells.amount[spot.at] - low), found)
    return np.where(endless & (demand.price == cells.price[cells.last]), found + demand.excess, found)


def inside(inner: Curves, outer: Curves, demand: Demand) -> Demand:
    """Return the children's prices at the prices of their nodes."""
    spot = Spot.of(outer.price, outer.first, demand.price)
    past = demand.price - outer.price[spot.at]
    endless = np.isinf(inner.ray)
    # Beyond the last corner the price inside rises by what the answer leaves of it; before the first, nothing is taken.
    gained = np.where(np.isinf(outer.ray), 0.0, outer.ray) * past
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.where(endless, 0.0, np.where(inner.ray > 0, gained / inner.ray, past))
    price = spot.between(inner.price) + np.where(spot.before, past, np.where(spot.beyond, rest, 0.0))
    upright = ~spot.beyond & (inner.price[spot.then] == inner.price[spot.at])
    share = np.where(spot.below < spot.at, demand.share, np.where(upright, spot.part, 1.0))
    excess = np.where(spot.beyond & endless, np.where(np.isinf(outer.ray), demand.excess, gained), 0.0)
    return Demand(price=price, share=share, excess=excess)


def prices_inside(inner: Curves, amount: FloatArray) -> Demand:
    """Return the prices at which nodes take their fixed amounts."""
    spot = Spot.of(inner.amount, inner.first, amount)
    past = np.where(spot.beyond, np.maximum(amount - inner.amount[inner.last], 0.0), 0.0)
    endless = np.isinf(inner.ray)
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.where(endless | (inner.ray == 0.0), 0.0, past / inner.ray)
    upright = ~spot.beyond & ~spot.before & (inner.price[spot.then] == inner.price[spot.at])
    share = np.where(upright, spot.part, np.where(spot.before, 0.0, 1.0))
    return Demand(price=spot.between(inner.price) + rest, share=share, excess=np.where(endless, past, 0.0))


def demand_of_children(children: Curves, parent: IntArray, taken: Demand) -> Demand:
    """Return the children's prices; flat children share the excess equally."""
    price = taken.price[parent]
    endless = np.isinf(children.ray) & (children.price[children.last] == price)
    takers = np.bincount(parent[endless], minlength=len(taken.price))
    excess = np.where(endless, taken.excess[parent] / np.maximum(takers[parent], 1), 0.0)
    return Demand(price=price, share=taken.share[parent], excess=excess)
