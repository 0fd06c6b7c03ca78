"""The formulas of the atoms bound the divergences of the lattice laws themselves, computed from their probabilities."""

from fractions import Fraction
from random import Random

import mpmath
import numpy as np
import pytest

import reference_loss
from random_policies import random_function
from recordwise.exact.functions import Function, log, x
from recordwise.policy import additive, discrete_laplace_zcdp, gaussian_sum, gaussian_transform, laplace_transform
from recordwise.policy.constructors import additive_table

mpmath.mp.dps = 60
ORDERS = [mpmath.mpf(order) for order in ("1.001", "1.5", "2", "5", "40")]


def divergence(weights: dict[int, mpmath.mpf], shift: int, order: mpmath.mpf) -> mpmath.mpf:
    """Renyi divergence of a law on whole numbers from itself moved by ``shift``; the far tails, equal in both, are left out."""
    total = mpmath.fsum(weights.values())
    terms = (weights[k] ** order * weights[k - shift] ** (1 - order) for k in weights if k - shift in weights)
    return mpmath.log(mpmath.fsum(terms) / total) / (order - 1)


def gaussian(sigma: mpmath.mpf, reach: int) -> dict[int, mpmath.mpf]:
    return {k: mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * sigma**2)) for k in range(-reach, reach + 1)}


@pytest.mark.theorem("T-GAUSS")
@pytest.mark.parametrize("sigma", ["0.4", "1", "3.7"])
@pytest.mark.costly
def test_lattice_gaussian_noise_costs_the_square_exactly(sigma: str) -> None:
    policy = gaussian_sum("emp", sigma=sigma)
    law = gaussian(mpmath.mpf(sigma), 400)
    for shift in (1, 2, 5):
        loss = mpmath.mpf(policy.loss({"emp": shift}))
        for order in ORDERS:
            assert divergence(law, shift, order) <= order * loss * (1 + mpmath.mpf("1e-14"))
        assert divergence(law, shift, mpmath.mpf(2)) == pytest.approx(float(2 * loss), rel=1e-12)


@pytest.mark.theorem("T-GAUSS")
def test_the_check_rejects_a_sigma_that_is_five_percent_too_small() -> None:
    law = gaussian(mpmath.mpf("0.95"), 200)
    assert divergence(law, 2, mpmath.mpf(2)) > 2 * gaussian_sum("emp", sigma=1).loss({"emp": 2})


def lattice_law(function: Function, reach: int) -> dict[int, mpmath.mpf]:
    """exp(-f(|k|)) on the whole numbers from -reach to reach: itself a symmetric law with the same ratios."""
    exact = [mpmath.exp(-mpmath.mpf(function_value(function, k))) for k in range(reach + 1)]
    return {k: exact[abs(k)] for k in range(-reach, reach + 1)}


def function_value(function: Function, at: int) -> str:
    return mpmath.nstr(reference_loss.function(function.to_json(), mpmath.mpf(at)), 40)


FUNCTIONS = [(x / 3) ** "1/2", x / 2, 2 * log(x / 5 + 3) ** 2, 3 * log(x + 1), (x / 2) ** "1/2" + log(x + 2)]


@pytest.mark.theorem("T-ADD")
@pytest.mark.parametrize("place", range(len(FUNCTIONS)))
def test_the_largest_log_ratio_of_additive_noise_is_the_rise_of_its_exponent(place: int) -> None:
    function = FUNCTIONS[place]
    law, policy = lattice_law(function, 300), additive("emp", function, bound="pure")
    for shift in (1, 3, 20):
        worst = max(abs(mpmath.log(law[k] / law[k - shift])) for k in range(-200, 201))
        assert worst == pytest.approx(policy.loss({"emp": shift}), rel=1e-12)
        assert worst <= policy.loss({"emp": shift}) * (1 + mpmath.mpf("1e-30"))


@pytest.mark.theorem("T-ADD")
def test_an_exponent_that_is_not_concave_exceeds_its_rise() -> None:
    """ln(z + 1.2)**2 at shift 1: the published policy would be exceeded by 0.143, so it is refused."""

    def value(z: float) -> mpmath.mpf:
        return mpmath.log(z + mpmath.mpf("1.2")) ** 2

    excess = max(value(k / 1000 + 1) - value(k / 1000) for k in range(5000)) - (value(1) - value(0))
    assert excess == pytest.approx(0.143, abs=1e-3)


@pytest.mark.theorem("T-TABLE")
@pytest.mark.parametrize("place", range(len(FUNCTIONS)))
@pytest.mark.costly
@pytest.mark.sampled
def test_the_divergence_never_falls_with_the_shift_and_stays_below_the_bound_from_epsilon(place: int) -> None:
    """The window is wide enough that what lies beyond it changes no digit that matters."""
    function = FUNCTIONS[place]
    law, policy = lattice_law(function, 1200), additive("emp", function, bound="tanh")
    for order in ORDERS[1:3]:
        values = [divergence(law, shift, order) for shift in (1, 2, 3, 5, 9, 15)]
        assert values == sorted(values)
        for shift, value in zip((1, 2, 3, 5, 9, 15), values):
            assert value <= order * policy.loss({"emp": shift})


@pytest.mark.theorem("T-TABLE")
def test_a_table_holds_its_next_entry_and_then_the_formula() -> None:
    function = (x / 3) ** "1/2"
    table = additive_table("emp", function, ((2, Fraction(1, 4)), (5, Fraction(1, 2))))
    formula = additive("emp", function, bound="tanh")
    assert [table.loss({"emp": k}) for k in (0, 1, 2, 3, 5)] == [0, 0.25, 0.25, 0.5, 0.5]
    assert table.loss({"emp": 40}) == formula.loss({"emp": 40})
    assert table.loss({"emp": 6}) == max(0.5, formula.loss({"emp": 6}))


@pytest.mark.theorem("T-GRID")
@pytest.mark.theorem("T-TRANSFORM")
def test_the_rounded_transform_moves_by_at_most_the_rise_plus_one_grid_step() -> None:
    """For random totals, contributions and grids the shift on the grid, and so the loss, stays within the policy."""
    rng = Random(1)
    tightest = mpmath.mpf(0)
    for _ in range(400):
        function, grid = random_function(rng, 2), Fraction(1, 2 ** rng.randint(0, 12))
        scale = Fraction(rng.randint(1, 30), 10)
        before, added = rng.choice([0, 1, 7, 1000, 10**6]), rng.choice([0, 1, 2, 50, 10**5])
        form, h = function.to_json(), mpmath.mpf(grid.numerator) / grid.denominator
        ends = [mpmath.nint(reference_loss.function(form, mpmath.mpf(q)) / h) for q in (before, before + added)]
        steps = int(ends[1] - ends[0])
        gauss = gaussian_transform("emp", function, sigma=scale, grid=grid)
        laplace = laplace_transform("emp", function, scale=scale, grid=grid)
        spent = Fraction(steps**2) * grid**2 / (2 * scale**2)
        assert spent <= gauss.loss({"emp": added})
        assert discrete_laplace_zcdp(scale / grid, steps) <= laplace.loss({"emp": added}) * (1 + 1e-15)
        if added:
            tightest = max(tightest, mpmath.mpf(float(spent)) / gauss.loss({"emp": added}))
    assert tightest > 0.9


@pytest.mark.theorem("T-TRANSFORM")
def test_reference_losses_of_the_transforms_at_variance_two() -> None:
    """The reference table at variance 2: log with a = 1, sigma**2 = ln(11/9), and the fourth root with sigma**2 = .022695."""
    sigma = str(mpmath.nstr(mpmath.sqrt(mpmath.log(mpmath.mpf(11) / 9)), 20))
    logarithm = gaussian_transform("emp", log(x + 1), sigma=sigma, grid=Fraction(1, 2**40))
    root = gaussian_transform(
        "emp", (x + 1) ** "1/4", sigma=mpmath.nstr(mpmath.sqrt("0.022695"), 20), grid=Fraction(1, 2**40)
    )
    sizes = [1, 2, 10, 100, 1000, 10000]
    assert logarithm.loss({"emp": sizes}) == pytest.approx([1.197, 3.007, 14.33, 53.1, 118.9, 211.4], rel=2e-3)
    assert root.loss({"emp": sizes}) == pytest.approx([0.789, 2.201, 14.86, 103.8, 471, 1785], rel=2e-3)


@pytest.mark.theorem("T-LAPLACE")
def test_reference_losses_of_laplace_noise_on_a_transform_at_variance_two() -> None:
    fine = Fraction(1, 2**40)
    logarithm = laplace_transform("emp", log(x + 1), scale="0.27383", grid=fine)
    root = laplace_transform("emp", (x + 1) ** "1/4", scale="0.09966", grid=fine)
    sizes = [1, 2, 10, 100, 1000, 10000]
    assert logarithm.loss({"emp": sizes}) == pytest.approx([1.61, 3.03, 7.76, 15.9, 24.2, 32.6], rel=4e-3)
    assert root.loss({"emp": sizes}) == pytest.approx([1.05, 2.21, 7.24, 20.8, 45.4, 89.3], rel=6e-3)


@pytest.mark.theorem("T-LAPLACE")
@pytest.mark.parametrize("steps", [1, 2, 5, 12])
def test_the_zeros_behind_the_laplace_formula_lie_on_the_unit_circle(steps: int) -> None:
    """z**n + ... with ends 1/(1-p): the proof's Blaschke factor says every zero has size 1."""
    for p in (0.05, 0.5, 0.97):
        end = 1 / (1 - p)
        zeros = np.roots([end, *[1.0] * (steps - 1), end])
        assert len(zeros) == steps
        assert np.abs(zeros) == pytest.approx(np.ones(steps), abs=1e-9)
