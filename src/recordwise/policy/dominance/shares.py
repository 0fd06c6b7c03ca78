"""Upper bounds measure by measure, from shares of joint costs.

A linear program suggests how each joint cost is shared among its parts. A maximum is at least any weighted
mean of its parts, so whatever the shares are, the sum of the largest values of one measure each is an upper
bound (T-SHARES, docs/theory/dominance.md). The program works in floats at sampled points; its shares are
then made fractions, and ``curves.supremum`` certifies the bound they give.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from recordwise.exact.arithmetic import FloatArray
from recordwise.policy.atoms import Atom
from recordwise.policy.columns import Measure
from recordwise.policy.dominance.curves import Comparison, Difference, Part, Term, curve, supremum, tail_start

MOST_MARGIN = 0.05
"""By how much, relatively, the shares should cover the gains of very large records, where that is possible."""
FAR = 2**12
"""From this many of the longest pieces on, only growth matters."""
FINEST_SHARE = 10**6
ROUNDING = 1e-12
EVENED = (0.0, 1e-6, 1e-3, 0.05, 0.5)
"""How much of the suggested shares is replaced by equal ones, in turn: a part that gets nothing, because in floats it needs next to
nothing, cannot keep very large records within the budget."""
SUPPORT = 1e-9

Net = dict[Atom, Fraction]


@dataclass(frozen=True, slots=True)
class Shares:
    """A net sum of parts for each measure and a constant.

    Their sum is not below the comparison. Also where each is largest.
    """

    nets: dict[Measure, Net]
    constant: Fraction
    levels: dict[Measure, Fraction]
    """How large each net is at the sampled points."""
    support: dict[Measure, list[int]]
    """Points that keep the bound from being smaller: where a record that exceeds the budget would be."""
    idle: frozenset[Measure]
    """The measures that no gain depends on."""


@dataclass(frozen=True, slots=True)
class Separable:
    """A verdict on a comparison, or steps beyond which it holds."""

    certain: bool
    reach: dict[Measure, int] | None
    support: dict[Measure, list[int]]


def bound_by_shares(problem: Comparison, gains: tuple[Term, ...], deadline: float) -> Separable:
    """Certify a comparison, or bound where it can fail.

    Gains have at most one part each.
    """
    samples = {measure: sample(problem, measure) for measure in problem.measures}
    values = _Values(samples)
    if _plain(problem):
        return _certify(problem, [_shares(problem, gains, values, None, {})], deadline)
    program = _Program(problem, gains, values)
    found, support = program.solve()
    even = program.even()
    mixed = (found + part * (even - found) for part in EVENED)
    return _certify(problem, (_shares(problem, gains, values, each, support) for each in mixed), deadline)


def _plain(problem: Comparison) -> bool:
    """Return whether there is nothing to share.

    One budget, and no cost with two parts or with one that may be below its floor.
    """
    return len(problem.budgets) == 1 and all(_has_one_part(problem, term) for term in problem.budgets[0])


def _has_one_part(problem: Comparison, term: Term) -> bool:
    if len(term.parts) != 1:
        return not term.parts
    ((measure, atom),) = term.parts
    return term.floor <= curve(measure, atom).bounds(problem.spans[measure][0])[0]


def _certify(problem: Comparison, tries: Iterable[Shares], deadline: float) -> Separable:
    """Return the first shares that certify, else those that bound failures."""
    reach: dict[Measure, int] | None = None
    support: dict[Measure, list[int]] = {}
    for shares in tries:
        points = {measure: list(points) for measure, points in shares.support.items()}
        support = support or points
        slack = -sum(shares.levels.values(), shares.constant)
        if slack >= 0:
            goals = {measure: level + slack / len(shares.levels) for measure, level in shares.levels.items()}
            tops = _tops(problem, shares, goals, deadline, points)
            if tops is not None and sum(tops.values(), shares.constant) <= 0:
                return Separable(certain=True, reach=None, support={})
        if len(shares.nets) == 1 and _plain(problem):
            return Separable(certain=False, reach=None, support=support)
        size = sum(map(abs, shares.levels.values()), abs(shares.constant))
        goals = {measure: level + size / 8 for measure, level in shares.levels.items()}
        tops = _tops(problem, shares, goals, deadline, points)
        reach = None if tops is None else _reach(problem, shares, tops)
        if reach is not None:
            break
    return Separable(certain=False, reach=reach, support=support)


def _tops(
    problem: Comparison,
    shares: Shares,
    goals: dict[Measure, Fraction],
    deadline: float,
    support: dict[Measure, list[int]],
) -> dict[Measure, Fraction] | None:
    """Bound each net over its range, or return None.

    Records in ``support`` where each is largest.
    """
    tops: dict[Measure, Fraction] = {}
    for measure, net in shares.nets.items():
        found = supremum(net, measure, problem.spans[measure], enough=goals[measure], deadline=deadline)
        support[measure].append(found.steps)
        if found.upper is not None:
            tops[measure] = found.upper
    return tops if len(tops) == len(shares.nets) else None


def _reach(problem: Comparison, shares: Shares, tops: dict[Measure, Fraction]) -> dict[Measure, int] | None:
    """Return steps beyond which a measure's net outweighs all others.

    And the constant. A measure that no gain depends on is best at its lower end. (A net without gains is not
    enough: a share may have outweighed them.)
    """
    reach: dict[Measure, int] = {}
    for measure, net in shares.nets.items():
        first, last = problem.spans[measure]
        if measure in shares.idle:
            reach[measure] = first
            continue
        level = -(shares.constant + sum((top for other, top in tops.items() if other != measure), Fraction(0)))
        start = tail_start(Difference(net, measure), first, level)
        if start is None and last is None:
            return None
        reach[measure] = min(end for end in (start, last) if end is not None)
    return reach


class _Values:
    """The sampled points of every measure, and parts at them."""

    def __init__(self, samples: dict[Measure, tuple[list[int], int]]) -> None:
        self.points = {measure: points for measure, (points, _) in samples.items()}
        self.far = {measure: far for measure, (_, far) in samples.items()}
        self._known: dict[Part, FloatArray] = {}

    def of(self, part: Part) -> FloatArray:
        if part not in self._known:
            measure, atom = part
            bounds = (curve(measure, atom).bounds(point)[1] for point in self.points[measure])
            self._known[part] = np.array([float(min(bound, LARGEST_FLOAT)) for bound in bounds])
        return self._known[part]

    def net(self, measure: Measure, net: Net) -> FloatArray:
        total = np.zeros(len(self.points[measure]))
        for atom, coefficient in net.items():
            total += float(coefficient) * self.of((measure, atom))
        return total


LARGEST_FLOAT = Fraction(10) ** 280


class _Program:
    """The linear program for the shares.

    Variables: the share of each part in its cost, the weight of each budget, the top of each measure, the
    margin far out.
    """

    def __init__(self, problem: Comparison, gains: tuple[Term, ...], values: _Values) -> None:
        self.problem, self.values = problem, values
        self.measures = list(problem.measures)
        self.terms = [(place, term) for place, budget in enumerate(problem.budgets) for term in budget]
        self.parts = [(row, part) for row, (_, term) in enumerate(self.terms) for part in term.parts]
        self.gains = {measure: values.net(measure, _gain_net(gains, measure)) for measure in self.measures}
        sizes = [float(gain[gain > 0][0]) for gain in self.gains.values() if np.any(gain > 0)]
        self.unit = max([*sizes, abs(float(_constant(gains)))]) or 1.0
        self.first_budget = len(self.parts)
        self.first_top = self.first_budget + len(problem.budgets)
        self.width = self.first_top + len(self.measures) + 1

    def solve(self) -> tuple[FloatArray, dict[Measure, list[int]]]:
        """Return shares, weights and the binding points of the program.

        Where the solver gives up: the next best, or equal shares.
        """
        from scipy.optimize import linprog

        rows, limits, origin = self._rows()
        caps = self._caps()
        whole = np.zeros((1, self.width))
        whole[0, self.first_budget : self.first_top] = 1
        matrix, right = np.concatenate([rows, caps]), np.concatenate([limits, np.zeros(len(caps))])
        best, margin = self.even(), 0.0
        if any(far for *_, far in origin):
            widest = np.zeros(self.width)
            widest[-1] = -1.0
            first = linprog(widest, matrix, right, whole, [1.0], self._bounds((-1.0, MOST_MARGIN)), method="highs")
            if first.status == 0 and first.x is not None:
                best = np.asarray(first.x)
                margin = first.x[-1] / 2 if first.x[-1] > 0 else first.x[-1] - SUPPORT
        found = linprog(self._objective(), matrix, right, whole, [1.0], self._bounds((margin, margin)), method="highs")
        if found.status != 0 or found.x is None:
            return best, {}
        held = -np.asarray(found.ineqlin.marginals)[: len(rows)]
        support: dict[Measure, list[int]] = {measure: [] for measure in self.measures}
        for row in np.flatnonzero(held > SUPPORT).tolist():
            support[origin[row][0]].append(origin[row][1])
        return np.asarray(found.x), support

    def even(self) -> FloatArray:
        """Return equal shares of equally weighted budgets."""
        shares = np.zeros(self.width)
        shares[self.first_budget : self.first_top] = 1 / len(self.problem.budgets)
        needed = [bool(np.any(self.gains[part[0]] > 0)) for _, part in self.parts]
        sharing = [
            sum(own for own, (other, _) in zip(needed, self.parts) if other == row) for row in range(len(self.terms))
        ]
        for column, (owner, _) in enumerate(self.parts):
            shares[column] = needed[column] / (max(1, sharing[owner]) * len(self.problem.budgets))
        return shares

    def _bounds(self, margin: tuple[float, float]) -> list[tuple[float | None, float | None]]:
        tops: list[tuple[float | None, float | None]] = [(None, None)] * len(self.measures)
        return [*[(0.0, 1.0)] * self.first_top, *tops, margin]

    def _rows(self) -> tuple[FloatArray, FloatArray, list[tuple[Measure, int, bool]]]:
        """Return the constraints at every point.

        gain - shared costs - top <= 0; far out, gain * (1 + margin) - shared costs <= 0.
        """
        rows: list[FloatArray] = []
        limits: list[FloatArray] = []
        origin: list[tuple[Measure, int, bool]] = []
        for place, measure in enumerate(self.measures):
            points, gain = self.values.points[measure], self.gains[measure] / self.unit
            lines = np.zeros((len(points), self.width))
            for column, (owner, part) in enumerate(self.parts):
                if part[0] == measure:
                    lines[:, column] = -self.values.of(part) * (float(self.terms[owner][1].coefficient) / self.unit)
            far = np.array([point >= self.values.far[measure] for point in points]) & (gain > 0)
            lines[:, self.first_top + place] = np.where(far, 0.0, -1.0)
            lines[:, -1] = np.where(far, gain, 0.0)
            size = np.maximum(np.abs(lines).max(axis=1), np.maximum(gain, 1e-250))
            rows.append(lines / size[:, None])
            limits.append(-gain / size)
            origin += [(measure, point, bool(is_far)) for point, is_far in zip(points, far)]
        return np.concatenate(rows), np.concatenate(limits), origin

    def _caps(self) -> FloatArray:
        """Return the constraints that shares fit their budget's weight."""
        caps = np.zeros((len(self.terms), self.width))
        for row, (budget, _) in enumerate(self.terms):
            caps[row, self.first_budget + budget] = -1.0
        for column, (owner, _) in enumerate(self.parts):
            caps[owner, column] = 1.0
        return caps

    def _objective(self) -> FloatArray:
        """Return the tops and what sharing loses of costs' lower ends."""
        goal = np.zeros(self.width)
        goal[self.first_top : -1] = 1.0
        ends = [float(term.coefficient * term.floor) / self.unit for _, term in self.terms]
        for column, (owner, _) in enumerate(self.parts):
            goal[column] = ends[owner]
        for (budget, _), end in zip(self.terms, ends):
            goal[self.first_budget + budget] -= end
        return goal


def _shares(
    problem: Comparison,
    gains: tuple[Term, ...],
    values: _Values,
    found: FloatArray | None,
    support: dict[Measure, list[int]],
) -> Shares:
    """Return shares as fractions that never exceed the amount to share."""
    nets = {measure: _gain_net(gains, measure) for measure in problem.measures}
    idle = frozenset(measure for measure, net in nets.items() if not net)
    constant, column = _constant(gains), 0
    parts = sum(len(term.parts) for budget in problem.budgets for term in budget)
    weights = [Fraction(1)] if found is None else _weights(found[parts : parts + len(problem.budgets)])
    for weight, budget in zip(weights, problem.budgets):
        for term in budget:
            left = weight
            for measure, atom in term.parts:
                share = left if found is None else min(left, _fraction(found[column]))
                nets[measure][atom] = nets[measure].get(atom, Fraction(0)) - share * term.coefficient
                left, column = left - share, column + 1
            constant -= left * term.coefficient * term.floor
    nets = {measure: {atom: c for atom, c in net.items() if c} for measure, net in nets.items()}
    tops = {measure: values.points[measure][int(values.net(measure, net).argmax())] for measure, net in nets.items()}
    levels = {measure: Difference(net, measure).upper(tops[measure], tops[measure]) for measure, net in nets.items()}
    return Shares(nets, constant, levels, {m: [*support.get(m, []), tops[m]] for m in nets}, idle)


def _weights(found: FloatArray) -> list[Fraction]:
    weights = [_fraction(weight) for weight in found]
    total = sum(weights, Fraction(0))
    return [weight / max(total, Fraction(1)) for weight in weights]


def _fraction(share: float) -> Fraction:
    """Return a simple fraction near a share."""
    exact = Fraction(min(1.0, float(share))) if share > ROUNDING else Fraction(0)
    simple = exact.limit_denominator(FINEST_SHARE)
    return simple if abs(simple - exact) * FINEST_SHARE <= exact else exact


def _gain_net(gains: tuple[Term, ...], measure: Measure) -> Net:
    net: Net = {}
    for gain in gains:
        for own, atom in gain.parts:
            if own == measure:
                net[atom] = net.get(atom, Fraction(0)) + gain.coefficient
    return net


def _constant(gains: tuple[Term, ...]) -> Fraction:
    return sum((gain.coefficient * gain.floor for gain in gains if not gain.parts), Fraction(0))


def sample(problem: Comparison, measure: Measure) -> tuple[list[int], int]:
    """Return sample points, and where only growth matters."""
    first, last = problem.spans[measure]
    marks = problem.marks(measure)
    far = max([first, *marks, 1]) * FAR
    points = {first, *(2**exponent for exponent in range(0, 54, 3)), *(far * 2**exponent for exponent in (0, 8, 20))}
    for mark in marks:
        points |= {mark * times + more for times in (1, 2, 3, 4, 5, 7, 10, 20, 50) for more in (0, 1)}
    points |= set() if last is None else {last}
    return sorted(point for point in points if first <= point and (last is None or point <= last)), far
