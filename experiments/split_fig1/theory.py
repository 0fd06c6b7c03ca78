"""The mean squared error of a clamped Gaussian sum of Pareto values, in closed form, and the same by simulation."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import recordwise as rw

RECORDS = 1000
TAILS = (1.2, 1.5, 1.8)
RHOS = (0.1, 1.0, 10.0)
STEP = Fraction(1, 1000)
"""Of the simulated values: clamping and adding are exact on it, and rounding to it is far below every error here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pareto:
    """P(X > x) = x**-tail for x >= 1, 1 < tail < 2: a mean, no variance."""

    tail: float

    @property
    def mean(self) -> float:
        return self.tail / (self.tail - 1)

    def cut_off(self, clamp: np.ndarray) -> np.ndarray:
        """E (X - clamp)+: what clamping takes from the mean."""
        return clamp ** (1 - self.tail) / (self.tail - 1)

    def variance_clamped(self, clamp: np.ndarray) -> np.ndarray:
        """Var min(X, clamp); the second moment is 1 + the integral of 2x P(X > x) from 1 to the clamp."""
        second = 1 + 2 * (clamp ** (2 - self.tail) - 1) / (2 - self.tail)
        return second - (self.mean - self.cut_off(clamp)) ** 2

    def sample(self, rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
        return (1 - rng.random(size)) ** (-1 / self.tail)


def mean_squared_error(law: Pareto, rho: float, clamp: np.ndarray, n: int = RECORDS) -> np.ndarray:
    """Of the clamped noisy sum as an estimate of n E X: noise, squared bias, and the spread of the values themselves."""
    return clamp**2 / (2 * rho) + (n * law.cut_off(clamp)) ** 2 + n * law.variance_clamped(clamp)


def best_clamp(law: Pareto, rho: float, n: int = RECORDS) -> float:
    """The clamp with the least error; the error has one valley, found on the log scale."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda t: math.log(mean_squared_error(law, rho, np.exp(np.asarray(t)), n)),
        bounds=(0.0, math.log(1e9)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return math.exp(float(found.x))


def optimum(law: Pareto, rho: float) -> dict[str, float]:
    """The best clamp of one setting and both ratios there."""
    clamp = best_clamp(law, rho)
    error, expected = float(mean_squared_error(law, rho, np.asarray(clamp))), RECORDS * law.mean
    return {
        "tail": law.tail,
        "rho": rho,
        "best_clamp": clamp,
        "share_clamped": clamp**-law.tail,
        "mse": error,
        "mse_over_sum": error / expected,
        "rmse_over_sum": math.sqrt(error) / expected,
    }


def simulated(
    law: Pareto, rho: float, clamp: float, runs: int, rng: np.random.Generator, noise: rw.noise.Seeded
) -> dict[str, float]:
    """Squared errors of ``rw.Clamped`` on fresh Pareto samples: their mean, its standard error, and what the formula says."""
    bound = round(clamp / STEP)
    values = np.minimum(np.rint(law.sample(rng, (runs, RECORDS)) / float(STEP)), bound).astype(np.int64)
    mechanism = rw.Clamped(to=bound * STEP, rho=rho)
    noisy = mechanism.release(values.sum(axis=1), step=STEP, rng=noise).values()
    squared = (noisy - RECORDS * law.mean) ** 2
    return {
        "simulated_mse": float(squared.mean()),
        "standard_error": float(squared.std(ddof=1) / math.sqrt(runs)),
        "formula_mse": float(mean_squared_error(law, rho, np.asarray(float(bound * STEP)))),
    }
