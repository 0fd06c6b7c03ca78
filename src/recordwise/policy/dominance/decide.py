"""Decide one comparison: likely points first, then bounds measure by measure, then boxes. Undecided is a ``DoubtError``."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod

from recordwise.policy.dominance.boxes import Search, exact_bound, finite
from recordwise.policy.dominance.comparison import Comparison, DoubtError, openings
from recordwise.policy.dominance.weights import FAR, bound_by_shares
from recordwise.policy.measure import Measure

Point = dict[str, Fraction]
MOST_PROBES = 10_000
FARTHEST = 2**60
FEW_BATCHES = 10
"""How often boxes are halved before bounds measure by measure are tried: enough where little is to be decided."""
MEASURES_FIRST = 0.4
NEARLY_ALL = 0.9
"""The part of the time that bounds measure by measure may take before boxes are tried, with several measures and with one."""
IN_TIME = "the time limit was reached before a proof or a record that exceeds the budget was found"
NEITHER = "neither a proof nor a record that exceeds the budget was found"


@dataclass(frozen=True, slots=True)
class Excess:
    """A point where the budget is exceeded; ``simple`` if it is made of ends of ranges and pieces, as a person would choose it."""

    point: Point
    simple: bool = False


def decide(
    problem: Comparison, rests: list[Comparison], confirmed: Callable[[Point], bool], deadline: float
) -> Excess | None:
    """A point where the gains exceed the budget; None if there provably is none.

    ``rests`` are further comparisons, any of which proves the first: what is left after gains were paid for by costs that are
    proved to be larger. ``confirmed`` decides about a point in exact arithmetic.
    """
    if not problem.measures:
        return _without_measures(problem, confirmed)
    if len(problem.measures) > 1:
        search = Search.of(problem, finite(problem.spans, _far_ends(problem)))
        point = search.probe(_candidates(problem))
        if point is not None and confirmed(point):
            return Excess(point, simple=True)
        quick = search.run(deadline, batches=FEW_BATCHES)
        if quick.certain and _bounded(problem):
            return None
        if quick.point is not None and confirmed(quick.point):
            return Excess(quick.point)
    now = time.thread_time()
    soon = now + (MEASURES_FIRST if len(problem.measures) > 1 else NEARLY_ALL) * (deadline - now)
    reaches: list[tuple[Comparison, dict[Measure, int] | None]] = []
    for each in (problem, *rests):
        certain, reach, points = _by_measures(each, soon)
        if certain:
            return None
        if (found := next(filter(confirmed, points), None)) is not None:
            return Excess(found)
        reaches.append((each, reach))
    return _in_boxes(reaches, confirmed, deadline)


def _bounded(problem: Comparison) -> bool:
    return all(last is not None for _, last in problem.spans.values())


def _far_ends(problem: Comparison) -> dict[Measure, int]:
    """Where a search ends that nothing else ends."""
    return {
        measure: max([first, *problem.marks(measure), 1]) * FARTHEST if last is None else last
        for measure, (first, last) in problem.spans.items()
    }


def _without_measures(problem: Comparison, confirmed: Callable[[Point], bool]) -> Excess | None:
    """No gain depends on a measure: one number against one number."""
    if exact_bound(problem, {}) <= 0:
        return None
    if confirmed({}):
        return Excess({}, simple=True)
    raise DoubtError(NEITHER)


def _candidates(problem: Comparison) -> dict[Measure, list[int]]:
    """Ends of ranges and pieces, and points far out; fewer of each measure where there are many measures."""
    width = max(2, int(MOST_PROBES ** (1 / len(problem.measures))))
    return {measure: _likely(problem, measure)[:width] for measure in problem.measures}


def _likely(problem: Comparison, measure: Measure) -> list[int]:
    first, last = problem.spans[measure]
    marks = problem.marks(measure)
    points = [first, *marks, *([] if last is None else [last]), *(mark + 1 for mark in marks)]
    points += [mark * FAR for mark in marks or [1]] + [mark * times for times in (2, 3, 10) for mark in marks]
    points += [2**exponent for exponent in range(4, 64, 8)]
    return [point for point in dict.fromkeys(points) if first <= point and (last is None or point <= last)]


def _by_measures(problem: Comparison, deadline: float) -> tuple[bool, dict[Measure, int] | None, list[Point]]:
    """Whether the comparison is certain, and else how far it may fail and where it is likely to."""
    certain, reach, points = True, dict[Measure, int](), list[Point]()
    known = True
    for gains in openings(problem.gains, problem.spans):
        bound = bound_by_shares(problem, gains, deadline)
        if bound.certain:
            continue
        certain = False
        points += _corners(problem, bound.support)
        if bound.reach is None:
            known = False
        else:
            reach = {m: max(steps, reach.get(m, 0)) for m, steps in bound.reach.items()}
    return certain, reach if known else None, points


def _corners(problem: Comparison, support: dict[Measure, list[int]]) -> list[Point]:
    """Combinations of the points that keep the bounds from being smaller."""
    choices = [list(dict.fromkeys(support.get(m) or [problem.spans[m][0]]))[:4] for m in problem.measures]
    return [
        {measure.name: measure.step * steps for measure, steps in zip(problem.measures, chosen)}
        for chosen in (product(*choices) if prod(map(len, choices)) <= 256 else ())
    ]


def _in_boxes(
    reaches: list[tuple[Comparison, dict[Measure, int] | None]], confirmed: Callable[[Point], bool], deadline: float
) -> Excess | None:
    """Search the boxes of each comparison, for its share of the time."""
    for place, (problem, reach) in enumerate(reaches):
        ends = _far_ends(problem) if reach is None else reach
        now = time.thread_time()
        outcome = Search.of(problem, finite(problem.spans, ends)).run(now + (deadline - now) / (len(reaches) - place))
        if outcome.certain and (reach is not None or _bounded(problem)):
            return None
        if outcome.point is not None and confirmed(outcome.point):
            return Excess(outcome.point)
    raise DoubtError(IN_TIME if time.thread_time() >= deadline else NEITHER)
