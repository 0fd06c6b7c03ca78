"""Ratios under transforms: coverage by integration over both noises, where the kinds of intervals meet too (T-CURVE)."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import recordwise as rw
from build import employers, few
from recordwise.mechanisms.base import Noisy
from recordwise.plan.statistics import base
from recordwise.plan.statistics.base import Answer, CellAnswers, _radius, radii
from recordwise.plan.statistics.ratio import plain_ratio

LOG = rw.LogTransform(offset=100, sigma="0.3")
WIDE_LOG = rw.LogTransform(offset=20, sigma="1.2")
ROOT = rw.RootTransform(degree=2, offset=4, sigma="0.5")
CUBE = rw.RootTransform(degree=3, offset=8, sigma="0.1")
COUNT = rw.Gaussian(sigma=5)
LEVEL = 0.95
INTEGRATED = 1e-3
"""More than the integration over a grid of .05 sigma is off by at the edge of an interval."""


def law(mechanism, total):
    """Noisy points of a cell with that total, and their masses."""
    if mechanism is COUNT:
        points = np.arange(-45, 46)
        masses = np.exp(-(points**2) / 50.0)
        return points + total, masses / masses.sum(), Fraction(1)
    grid = mechanism.grid(1)
    noise = np.arange(-5.5, 5.5, 0.05) + 0.0251
    exact = float(mechanism._apply_function(np.array([float(total)]))[0])
    points = np.rint((exact + float(mechanism.sigma) * noise) / float(grid)).astype(np.int64)
    masses = np.exp(-(noise**2) / 2)
    return points, masses / masses.sum(), grid


def answer(mechanism, points, grid):
    noisy = Noisy(points=points, grid=grid, step=Fraction(1), private=True)
    return Answer([CellAnswers(slice(None), mechanism, noisy)], len(points))


def covered(mechanisms, totals):
    """P(the interval holds the exact ratio)."""
    (above, chance_above, grid), (below, chance_below, other) = (law(*each) for each in zip(mechanisms, totals))
    top, bottom = (np.ascontiguousarray(each.ravel()) for each in np.meshgrid(above, below, indexing="ij"))
    found = plain_ratio("r", answer(mechanisms[0], top, grid), answer(mechanisms[1], bottom, other), LEVEL)
    exact = totals[0] / totals[1]
    return float(((found.low <= exact) & (exact <= found.high)) @ np.outer(chance_above, chance_below).ravel())


@pytest.mark.theorem("T-CURVE")
@pytest.mark.parametrize(
    "mechanisms", [(LOG, COUNT), (ROOT, COUNT), (LOG, LOG), (ROOT, CUBE), (COUNT, LOG), (WIDE_LOG, COUNT)]
)
@pytest.mark.parametrize("below", few([1, 26, 20, 40, 900], 2))
@pytest.mark.costly
@pytest.mark.sampled
def test_over_all_cells_the_interval_covers_where_the_two_kinds_meet_too(mechanisms, below) -> None:
    for share in (0.2, 30):
        assert covered(mechanisms, (round(share * below), below)) >= LEVEL - INTEGRATED


@pytest.mark.theorem("T-CURVE")
@pytest.mark.parametrize(
    "mechanisms, totals",
    [
        ((LOG, COUNT), (5000, 100)),
        ((LOG, COUNT), (100, 60)),
        ((LOG, LOG), (10**6, 2000)),
        ((ROOT, COUNT), (10**5, 100)),
        ((ROOT, ROOT), (10**5, 10**4)),
        ((ROOT, CUBE), (10**5, 10**5)),
        ((COUNT, LOG), (12, 3000)),
    ],
)
@pytest.mark.costly
def test_large_cells_are_covered_at_the_level_and_less_than_two_points_above_it(mechanisms, totals) -> None:
    """Two intervals at (1 + c)/2 each covered .98 to .998 here, 1.6 times as wide where both sides matter alike."""
    assert LEVEL - INTEGRATED <= covered(mechanisms, totals) <= LEVEL + 0.02


@pytest.mark.theorem("T-CURVE")
def test_a_radius_that_is_too_small_is_caught(monkeypatch) -> None:
    """That of .93 instead of .95."""
    monkeypatch.setattr(base, "radii", lambda bend, level: np.full(bend.shape, 1.812))
    assert covered((LOG, COUNT), (5000, 100)) < LEVEL - 10 * INTEGRATED


@pytest.mark.theorem("T-CURVE")
@pytest.mark.parametrize("bend", [0.002, 0.05, 0.385, 0.6])
def test_the_radius_leaves_a_disk_by_no_more_than_half_of_the_misses(bend) -> None:
    """By integration over the angle at which the noise leaves the center of the disk."""
    z, size = _radius(bend, LEVEL), 1 / bend
    across = np.linspace(-9, 9, 40_001)
    # Outside the disk around (0, -size) of radius size + z: above its edge, or beside it.
    edge = np.sqrt(np.maximum((size + z) ** 2 - across**2, 0.0)) - size
    under = -np.sqrt(np.maximum((size + z) ** 2 - across**2, 0.0)) - size
    outside = stats.norm.sf(edge) + stats.norm.cdf(under)
    chance = float(np.trapezoid(outside * stats.norm.pdf(across), across))
    assert chance == pytest.approx((1 - LEVEL - 0.001) / 2, rel=1e-4)
    assert z >= stats.norm.isf((1 - LEVEL - 0.001) / 2)


def test_radii_are_rounded_up_and_end_where_curves_bend_too_much() -> None:
    found = radii(np.array([0.0, 0.001, 0.3, 0.61, np.nan]), LEVEL)
    assert found[0] == pytest.approx(stats.norm.isf(0.0245), rel=1e-6)
    assert found[1] == pytest.approx(_radius(0.002, LEVEL))
    assert _radius(0.3, LEVEL) <= found[2] <= _radius(0.3, LEVEL) * 1.01
    assert math.isinf(found[3])
    assert math.isinf(found[4])
    assert math.isinf(radii(np.array([0.1]), 0.9995)[0])
    assert _radius(0.59, 0.99) < 3 < _radius(0.59, 0.996)
    assert [math.isinf(radii(np.array([0.59]), level)[0]) for level in (0.99, 0.996)] == [False, True]


@pytest.mark.theorem("T-CURVE")
@pytest.mark.parametrize("mechanism", [LOG, ROOT, CUBE])
def test_the_bend_of_a_transform_is_not_below_that_of_its_curve(mechanism) -> None:
    point = np.array([-3.0, 2.0, 4.7, 6.0, 30.0, 400.0])
    grid = mechanism.grid(1)
    found = mechanism.noisy_curve(
        Noisy(points=np.rint(point / float(grid)).astype(np.int64), grid=grid, step=Fraction(1), private=True)
    )
    for at, bend in zip(point, found.bend):
        near = np.linspace(max(at - 10 * float(mechanism.sigma), found.zero[0]), at + 10 * float(mechanism.sigma), 7)
        near = near[near >= found.zero[0]]
        if len(near) == 0:
            continue
        h = 1e-4 * max(1.0, abs(at))
        slope = (found.back(near + 2 * h) - found.back(near)) / (2 * h)
        turn = (found.back(near + 2 * h) - 2 * found.back(near + h) + found.back(near)) / h**2
        # Of the inverse: g''/g' is |f''|/f'**2.
        assert np.all(float(mechanism.sigma) * turn / slope <= bend * (1 + 2e-3) + 1e-4)


def test_laplace_noise_signed_sums_and_a_denominator_of_the_same_answer_keep_their_own_intervals(tmp_path) -> None:
    for mechanism in (
        rw.LogTransform(offset=10, laplace_scale="0.1"),
        rw.LogTransform(offset=10, sigma="0.1", signed=True),
    ):
        points = np.zeros((2, 3) if mechanism.signed else 3, np.int64)
        assert (
            mechanism.noisy_curve(Noisy(points=points, grid=mechanism.grid(1), step=Fraction(1), private=True)) is None
        )
    points, _, grid = law(LOG, 5000)
    same = answer(LOG, points, grid)
    found = plain_ratio("r", same, same, LEVEL)
    assert np.all(found.low <= 1)
    assert np.all(found.high >= 1)


@pytest.mark.theorem("T-CURVE")
@pytest.mark.parametrize("mechanism", [LOG, rw.RootTransform(degree=2, offset=4, sigma="0.5")], ids=["log", "root"])
def test_published_averages_and_ratios_cover_at_the_level_and_less_than_two_points_above_it(mechanism) -> None:
    """8,000 cells of a release each, false alarm 1e-9 (binomial). Two intervals at (1 + c)/2 each covered .982 and more."""
    cells = 8000
    keys = {"cell": list(range(cells))}
    query = rw.query().group_by("cell", keys=rw.Keys.of(keys)).count(rw.Gaussian(sigma=4))
    query = (
        query.avg("pay", sum=mechanism, alias="mean")
        .sum("pay", mechanism, alias="pay")
        .sum("emp", mechanism, alias="emp")
    )
    query = query.ratio("pay", "2 * emp", alias="rate")
    rows = {"id": np.arange(40 * cells), "cell": np.repeat(np.arange(cells), 40)}
    rows |= {"pay": np.full(40 * cells, 70), "emp": np.full(40 * cells, 30)}
    with employers(pa.table(rows), measures={"pay": 1, "emp": 1}) as session:
        table = session.run(query).table
    for name, exact in (("mean", 70), ("rate", 70 / 60)):
        low, high = (table.column(f"{name}_{end}").to_numpy() for end in ("low", "high"))
        held = int(np.sum((low <= exact) & (exact <= high)))
        assert stats.binom.cdf(held, cells, LEVEL) > 1e-9
        assert stats.binom.sf(held - 1, cells, LEVEL + 0.02) > 1e-9
