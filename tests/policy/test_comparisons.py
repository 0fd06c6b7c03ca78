"""The bounds behind a yes: lines, shares, openings and boxes are never below what they bound, at points and in between."""

import time
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from build import few
from policy.several_measures import FOUR, number, random_term
from recordwise.exact.functions import log, x
from recordwise.exact.numbers import working_precision
from recordwise.policy import Measure, Policy, additive, gaussian_sum, gaussian_transform, pieces, selection, split
from recordwise.policy.dominance import shares
from recordwise.policy.dominance.boxes import Search, exact_bound
from recordwise.policy.dominance.curves import AtomSum, Comparison, Term, comparison, curve, openings
from recordwise.policy.dominance.regions import Region
from recordwise.policy.evaluate.numpy import PRECISION


@pytest.mark.theorem("T-SLOPES")
@pytest.mark.parametrize(
    "part",
    [
        gaussian_sum(FOUR[1], sigma=3),
        split(1, {FOUR[1]: 5}),
        split(1, {FOUR[1]: Fraction(1, 10)}),
        pieces(1, {FOUR[1]: 5}),
        additive(FOUR[1], log(x + 1), bound="pure"),
        additive(FOUR[1], log(x + 1), bound="tanh"),
        gaussian_transform(FOUR[1], log(x + 1), sigma=1, grid="0.01"),
    ],
)
def test_lines_lie_above_and_below_their_part(part: Policy) -> None:
    ((_, atom),) = part.rho
    drawn = curve(FOUR[1], atom)
    for first, last in [(0, 0), (0, 7), (1, 1), (1, 2), (3, 400), (49, 52), (50, 51), (51, 301), (100, 1000)]:
        low, low_rise, high, high_rise = drawn.lines(first, last)
        for steps in range(first, last + 1):
            share = Fraction(steps - first, max(1, last - first))
            least, most = drawn.bounds(steps)
            assert low + share * low_rise <= least <= most <= high + share * high_rise


def random_comparison(rng: Random) -> Comparison:
    """Gains and up to two budgets over two or three measures, without conditions."""
    measures = rng.sample(FOUR, rng.choice([2, 3]))
    gain, *budgets = (plain_sum(rng, measures) for _ in range(rng.choice([2, 2, 3])))
    region = Region({}, {measure.name: (rng.choice([0, 0, 3]), None) for measure in FOUR})
    return comparison(gain, budgets, region)


def plain_sum(rng: Random, measures: list[Measure]) -> AtomSum:
    total = sum(
        (random_term(rng, measures) for _ in range(rng.randint(1, 3))), split(number(rng), dict.fromkeys(measures, 50))
    )
    return {atom: coefficient for (_, atom), coefficient in total.rho.items()}


def exact_value(terms: tuple[Term, ...], point: dict[Measure, int], side: int) -> Fraction:
    """The sum of the terms at a point: not above it (side 0) or not below it (side 1)."""
    return sum(
        (
            t.coefficient * max([t.floor, *(curve(m, atom).bounds(point[m])[side] for m, atom in t.parts)])
            for t in terms
        ),
        Fraction(0),
    )


def excess(problem: Comparison, point: dict[Measure, int], side: int = 0) -> Fraction:
    return exact_value(problem.gains, point, side) - max(exact_value(b, point, 1 - side) for b in problem.budgets)


def random_point(rng: Random, problem: Comparison) -> dict[Measure, int]:
    edges = {
        m: [mark * times + more for mark in problem.marks(m) for times in (1, 2, 9) for more in (0, 1)]
        for m in problem.measures
    }
    return {m: max(problem.spans[m][0], rng.choice([*edges[m], rng.randrange(10**6), 0])) for m in problem.measures}


@pytest.mark.theorem("T-SHARES")
@pytest.mark.costly
def test_shares_bound_the_comparison_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, found = Random(31), []

    def kept(problem, tries, deadline):
        found.extend((problem, tried) for tried in tries)

    monkeypatch.setattr(shares, "_certify", kept)
    with working_precision(PRECISION):
        for _ in range(15):
            problem = random_comparison(rng)
            for gains in openings(problem.gains, problem.spans):
                shares.bound_by_shares(replace(problem, gains=gains), gains, 0.0)
        for problem, tried in found:
            for _ in range(20):
                point = random_point(rng, problem)
                nets = (
                    c * curve(m, atom).bounds(point[m])[int(c > 0)]
                    for m in tried.nets
                    for atom, c in tried.nets[m].items()
                )
                assert excess(problem, point) <= sum(nets, tried.constant)
    assert len(found) > 30


@pytest.mark.theorem("T-SHARES")
@pytest.mark.parametrize("comparisons", few([25, 60], 1))
@pytest.mark.costly
def test_no_record_beyond_the_reach_exceeds_the_budget(comparisons: int) -> None:
    """Two measures that are each within the budget alone and exceed it together: the reach must allow for the other."""
    # Of these, the first two already have a record that a reach without the other measure would leave out.
    rng, reached = Random(50), 0
    with working_precision(PRECISION):
        for _ in range(comparisons):
            problem = random_comparison(rng)
            for gains in openings(problem.gains, problem.spans):
                opened = replace(problem, gains=gains)
                bound = shares.bound_by_shares(opened, gains, time.thread_time() + 0.1)
                reached += bound.reach is not None
                for measure, end in (bound.reach or {}).items():
                    # A measure without a gain is best at its lower end, which is its reach; larger amounts help nobody.
                    for _ in range(10 if _gains_in(gains, measure) else 0):
                        point = random_point(rng, opened) | {measure: end + 1 + rng.choice([0, end, end * 100])}
                        assert excess(opened, point) <= 0
    assert reached > 10


def _gains_in(gains: tuple[Term, ...], measure: Measure) -> bool:
    return any(own == measure for gain in gains for own, _ in gain.parts)


@pytest.mark.theorem("T-PARTS")
def test_openings_are_the_joint_gain() -> None:
    rng = Random(33)
    with working_precision(PRECISION):
        for _ in range(60):
            problem = random_comparison(rng)
            point = random_point(rng, problem)
            opened = [exact_value(gains, point, 1) for gains in openings(problem.gains, problem.spans)]
            assert max(opened) == exact_value(problem.gains, point, 1)


@pytest.mark.theorem("T-PARTS")
def test_a_gain_that_still_rises_keeps_its_range() -> None:
    deltas = Policy({}, selection(1, {"emp": 10}, ((2, Fraction(1, 10)),)).delta_terms, False)
    ((_, stops),) = deltas.delta_terms
    ((_, rises),) = gaussian_sum("emp", sigma=1).rho
    for gain, last in (({stops: Fraction(1)}, 21), ({stops: Fraction(1), rises: Fraction(1)}, None)):
        assert comparison(gain, [{}], Region({}, {"emp": (0, None)})).spans == {Measure("emp"): (0, last)}


@pytest.mark.theorem("T-BOXES")
@pytest.mark.theorem("T-SLOPES")
@pytest.mark.costly
def test_bounds_of_boxes_hold_inside_them() -> None:
    rng = Random(34)
    with working_precision(PRECISION):
        for _ in range(60):
            problem = random_comparison(rng)
            corners = [random_point(rng, problem) for _ in range(2)]
            ends = {m: (min(c[m] for c in corners), max(c[m] for c in corners)) for m in problem.measures}
            search = Search.of(problem, ends)
            bound = search._by_lines(search.open)[0]
            inside = [{m: rng.randint(*ends[m]) for m in ends} for _ in range(30)] + corners
            assert max(float(excess(problem, point)) for point in inside) <= bound * (1 + 1e-9) + 1e-9 * abs(bound)
            assert max(excess(problem, point) for point in inside) <= exact_bound(problem, ends)
