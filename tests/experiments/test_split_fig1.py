"""Figure 1 of the splitting paper: the closed form, the erratum, and the files."""

import json

import numpy as np
import pytest

from experiments.frame import write
from experiments.split_fig1 import run, theory
from experiments.split_fig1.claims import DISTANCE, RATIOS, claims
from recordwise.noise import Seeded


def test_the_moments_of_the_clamped_law_are_those_of_numerical_integration():
    from scipy.integrate import quad

    for tail in theory.TAILS:
        law, clamp = theory.Pareto(tail=tail), 37.0
        above, _ = quad(lambda x, a=tail: x**-a, clamp, np.inf)
        second, _ = quad(lambda x, a=tail: 2 * x ** (1 - a), 1, clamp)
        first, _ = quad(lambda x, a=tail: x**-a, 1, clamp)
        assert law.cut_off(np.asarray(clamp)) == pytest.approx(above, rel=1e-7)
        assert law.variance_clamped(np.asarray(clamp)) == pytest.approx(1 + second - (1 + first) ** 2, rel=1e-7)


def test_no_clamp_of_a_fine_grid_beats_the_best_clamp():
    grid = np.geomspace(1, 1e6, 20_001)
    for tail in theory.TAILS:
        law = theory.Pareto(tail=tail)
        least = theory.mean_squared_error(law, 1.0, np.asarray(theory.best_clamp(law, 1.0)))
        assert least <= theory.mean_squared_error(law, 1.0, grid).min() * (1 + 1e-12)


def test_the_erratum_has_its_two_numbers():
    """Golden: docs/paper-map.md, RMSE over the sum at the best clamp, rho = 1, n = 1000."""
    for tail, ratio in RATIOS.items():
        assert round(theory.optimum(theory.Pareto(tail=tail), 1.0)["rmse_over_sum"], 2) == ratio


def simulation(rho_of_noise):
    """Squared errors of 4,000 runs against the formula at rho = 1, tail 1.8, with noise of another rho if asked."""
    law, clamp = theory.Pareto(tail=1.8), 200.0
    made = theory.simulated(law, rho_of_noise, clamp, 4000, np.random.default_rng(3), Seeded(3))
    return abs(made["simulated_mse"] - theory.mean_squared_error(law, 1.0, np.asarray(clamp))) / made["standard_error"]


def test_the_simulation_meets_the_formula():
    """False alarm 6e-10 (6.2 standard errors of a mean of 4,000); the next test shows what it catches."""
    assert simulation(1.0) < DISTANCE


def test_the_same_comparison_rejects_noise_of_another_scale():
    """At clamp 200 most error is noise: at rho 0.5 the mean is expected 18 of its standard errors away, 12 beyond the limit."""
    assert simulation(0.5) > DISTANCE


@pytest.mark.costly
def test_the_claims_are_told_and_the_files_written(tmp_path):
    done = run.reproduce(runs=400, seed=5, tell=lambda _: None)
    write(done, tmp_path)
    told = json.loads((tmp_path / "reproduction.json").read_text())["claims"]
    assert [claim["agrees"] for claim in told] == [True, True, True, False, True]
    assert "Erratum" in told[3]["why"]
    assert (tmp_path / "split-fig1.png").stat().st_size > 10_000


def test_a_formula_that_fails_is_reported():
    optima = [theory.optimum(theory.Pareto(tail=tail), 1.0) for tail in theory.TAILS]
    *_, last = claims(optima, [{"distance": 9.0}])
    assert last.agrees is False
    assert last.why


def test_best_clamps_in_another_order_are_reported():
    optima = [theory.optimum(theory.Pareto(tail=tail), rho) for tail in theory.TAILS for rho in theory.RHOS]
    assert [claim.agrees for claim in claims(optima, [{"distance": 0.0}])[:2]] == [True, True]
    upside_down = [row | {"best_clamp": -row["best_clamp"]} for row in optima]
    assert [claim.agrees for claim in claims(upside_down, [{"distance": 0.0}])[:2]] == [False, False]
