"""Totals on their way to the grid: always the nearest point, never wrapped, never clipped, never through a float that forgets."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

import recordwise as rw
from mechanisms.drawn_laws import laid
from mechanisms.mechanism_catalogue import TRANSFORMS, Entry
from recordwise.exact.functions import Function, log, x
from recordwise.mechanisms.base import integers, noised, times, whole_totals
from recordwise.mechanisms.transformed import FINE_DATA, FINE_NOISE, grid_step, nearest_point, root_of, to_grid
from recordwise.noise import BitSource, DiscreteGaussian, Draws, LatticeLaw, Seeded

FUNCTIONS: list[tuple[Function, object]] = [
    ((x + 1) ** Fraction(1, 2), lambda q: mpmath.sqrt(q + 1)),
    (x ** Fraction(1, 3), lambda q: mpmath.cbrt(q)),
    ((x / 7 + 2) ** Fraction(1, 4), lambda q: mpmath.root(q / 7 + 2, 4)),
    (x / 3 + Fraction(1, 2), lambda q: q / 3 + mpmath.mpf(1) / 2),
    (log(x + 1000), lambda q: mpmath.log(q + 1000)),
    (log(x / 7 + Fraction(1, 3)), lambda q: mpmath.log(q / 7 + mpmath.mpf(1) / 3)),
    (x ** Fraction(2, 5), lambda q: mpmath.power(q, mpmath.mpf(2) / 5)),
]
HUGE = [2**53 + 1, 2**62 - 1, 2**63, 2**100 + 12345]


def mp(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


@pytest.mark.parametrize("function, formula", FUNCTIONS)
@pytest.mark.parametrize("step, noise", [("1", "0.3"), ("0.01", "1e-6"), ("1000", "1e6")])
@pytest.mark.theorem("T-TRANSFORM")
@pytest.mark.costly
def test_every_total_is_laid_on_the_nearest_grid_point(
    function: Function, formula: object, step: str, noise: str
) -> None:
    """Against 120-digit arithmetic; random totals of every size, small ones, and ones beyond 64 bits."""
    data = Fraction(step)
    grid = grid_step(function, data, Fraction(noise))
    random = np.random.default_rng(7)
    totals = [*range(40), *(int(2**e) for e in random.uniform(0, 62, 300)), *HUGE]
    points = to_grid(function, np.array(totals, dtype=object), data, grid)
    with mpmath.workdps(120):
        for total, point in zip(totals, points):
            exact = formula(mp(total * data)) / mp(grid)  # type: ignore[operator]
            assert point == int(mpmath.floor(exact + mpmath.mpf(1) / 2))
            assert nearest_point(function, total * data, grid) == point


def test_a_value_between_two_points_goes_up() -> None:
    """(2.25)**(1/2) = 1.5 on the whole numbers."""
    half = (x + Fraction(9, 4)) ** Fraction(1, 2)
    assert nearest_point(half, Fraction(0), Fraction(1)) == 2
    assert to_grid(half, np.array([0, 4]), Fraction(1), Fraction(1)).tolist() == [2, 3]
    assert nearest_point(x + Fraction(1, 2), Fraction(3), Fraction(1)) == 4


def test_only_roots_of_affine_maps_are_taken_in_whole_numbers() -> None:
    assert root_of((x / 3 + 2) ** Fraction(1, 3)) is not None
    assert root_of(x) is not None
    assert root_of(x ** Fraction(2, 3)) is None
    assert root_of(log(x + 1)) is None
    assert root_of((x**0.5 + x + 1) ** 0.5) is None


@pytest.mark.parametrize("entry", TRANSFORMS, ids=str)
def test_the_grid_is_the_largest_power_of_two_that_is_fine_enough(entry: Entry) -> None:
    grid = entry.mechanism.grid(entry.step)
    noise = entry.mechanism.sigma or entry.mechanism.laplace_scale
    with mpmath.workdps(60):
        rise = mpmath.mpf(0)
        noisy, _ = laid(entry.mechanism, [0, 1], entry.step)
        rise = mp(int(noisy.points[1] - noisy.points[0]) * grid)
        assert grid.numerator == 1 or grid.denominator == 1
        assert noise / grid >= FINE_NOISE
        assert rise / mp(grid) >= FINE_DATA - 1
        assert noise / (2 * grid) < FINE_NOISE or rise / (2 * mp(grid)) < FINE_DATA + 1


def test_an_exact_power_of_two_is_allowed_as_the_grid() -> None:
    assert grid_step(x, Fraction(1), Fraction(2**20)) == Fraction(1, 4096)
    assert grid_step(x, Fraction(4096), Fraction(2**20)) == 1
    assert grid_step(x, Fraction(1), Fraction(1, 10**400)) < Fraction(1, 10**406)


class NoNoise:
    """Bits that are never asked for."""

    def fill(self, words: np.ndarray) -> None:
        raise AssertionError("drew noise")


def fixed_noise(monkeypatch: pytest.MonkeyPatch, values: list[int], extremes: dict[int, int]) -> BitSource:
    drawn = Draws(values=np.array(values, np.int64), extremes=extremes)
    monkeypatch.setattr(LatticeLaw, "draw", lambda law, size, rng=None: drawn)
    return NoNoise()


def test_sums_beyond_64_bits_are_carried_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    source = fixed_noise(monkeypatch, [2**62 - 1, -5, 0], {2: -(2**80)})
    points = np.array([2**62 - 1, 3, 2**70], dtype=object)
    noisy = noised(points, DiscreteGaussian(1), source)
    assert noisy.tolist() == [2**63 - 2, -2, 2**70 - 2**80]


def test_an_extreme_draw_reaches_the_sum_where_everything_else_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The 0 that stands in its place among 64-bit draws is never taken for the noise: the exact total would be published."""
    source = fixed_noise(monkeypatch, [4, 0, -6], {1: 2**70})
    assert noised(np.array([[100], [200], [300]]), DiscreteGaussian(1), source).tolist() == [
        [104],
        [200 + 2**70],
        [294],
    ]


@pytest.mark.parametrize("sign", [1, -1])
def test_totals_and_noise_of_either_sign_do_not_wrap(sign: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source = fixed_noise(monkeypatch, [sign * (2**62 - 1), 0], {})
    noisy = noised(np.array([sign * (2**63 - 1), 0]), DiscreteGaussian(1), source)
    assert noisy.tolist() == [sign * (2**63 + 2**62 - 2), 0]
    assert times(np.array([sign * 2**40, 1]), 2**40).tolist() == [sign * 2**80, 2**40]


def test_the_type_of_noisy_points_depends_on_the_noisy_points_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A huge total brought back by huge noise leaves no trace of its size."""
    source = fixed_noise(monkeypatch, [-(2**62)], {})
    assert noised(np.array([2**62 + 7], dtype=object), DiscreteGaussian(1), source).dtype == np.int64
    assert noised(np.array([-7]), DiscreteGaussian(1), source).dtype == object


def test_scaling_never_wraps() -> None:
    assert times(np.array([0, 0]), 2**90).tolist() == [0, 0]
    assert times(np.array([3]), 2**90).tolist() == [3 * 2**90]
    assert times(np.array([2**40]), 2**40).tolist() == [2**80]
    assert times(np.array([5]), 8).dtype == np.int64


def test_totals_are_read_exactly_or_not_at_all() -> None:
    assert whole_totals([2**63, -1]).tolist() == [2**63, -1]
    assert whole_totals(np.array([2**63 + 5], np.uint64)).tolist() == [2**63 + 5]
    assert whole_totals(np.array([np.int64(2**62), 2**65], dtype=object)).tolist() == [2**62, 2**65]
    assert whole_totals([]).dtype == np.int64
    assert whole_totals(np.array(5)).shape == ()
    assert integers([1, 2, 3, 4], (2, 2)).shape == (2, 2)


@pytest.mark.parametrize("total", [2**53 + 1, 10**18, 2**70 + 1])
@pytest.mark.parametrize(
    "mechanism",
    [
        rw.Gaussian(sigma=3),
        rw.GeneralizedGaussian(shape=0.5, scale="1e-6"),
        rw.RootTransform(degree=1, sigma=3),
        rw.RootTransform(degree=2, sigma="1e-3"),
        rw.LogTransform(offset=1, sigma="1e-9"),
    ],
    ids=repr,
)
def test_totals_beyond_float_precision_keep_their_last_digit_until_noise_is_added(
    mechanism: object, total: int
) -> None:
    """Two totals one step apart differ on the grid by what one step is worth there."""
    noisy, _ = laid(mechanism, [total, total + 1])
    difference = int(noisy.points[1]) - int(noisy.points[0])
    if isinstance(mechanism, rw.Gaussian):
        assert difference == 1
    elif isinstance(mechanism, rw.GeneralizedGaussian) or mechanism == rw.RootTransform(degree=1, sigma=3):
        assert difference * noisy.grid == 1
    else:
        with mpmath.workdps(80):
            function = mpmath.sqrt if isinstance(mechanism, rw.RootTransform) else lambda q: mpmath.log(q + 1)
            exact = [int(mpmath.floor(function(mpmath.mpf(q)) / mp(noisy.grid) + 0.5)) for q in (total, total + 1)]
        assert noisy.points.tolist() == exact
    found = mechanism.estimate(noisy)  # type: ignore[attr-defined]
    assert found.median_unbiased[0] == pytest.approx(total, rel=1e-13)
    assert np.all((found.low <= float(total)) & (float(total) <= found.high))


def test_steps_of_a_cent_come_back_as_their_shortest_decimals() -> None:
    mechanism = rw.Gaussian(sigma="0.05")
    noisy, _ = laid(mechanism, list(range(2000)), Fraction(1, 100))
    assert mechanism.estimate(noisy).value.tolist() == [round(i / 100, 2) for i in range(2000)]


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_arrays_of_any_shape_keep_it(shape: tuple[int, ...]) -> None:
    totals = np.full(shape, 12)
    for mechanism in (
        rw.Gaussian(sigma=3),
        rw.Polylog(power=2, rate=1, offset=3, scale=1),
        rw.RootTransform(degree=3, sigma=1),
        rw.LogTransform(offset=1, laplace_scale="0.1"),
        rw.mechanisms.Transform(x**0.4, x**2.5, offset=10, laplace_scale="0.1"),
    ):
        noisy = mechanism.release(totals, rng=Seeded(2))
        found = mechanism.estimate(noisy)
        assert noisy.points.shape == shape
        for column in (found.value, found.median_unbiased, found.standard_error, found.low, found.high):
            assert column.shape == shape
        assert mechanism.variance(totals).shape == mechanism.bias(totals).shape == shape
