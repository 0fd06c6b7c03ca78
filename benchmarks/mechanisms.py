"""Release, estimate and interval of a million cells by every mechanism, as a ratio to numpy drawing a million normals.

    python -m benchmarks mechanisms

Ratios of processor time are measured side by side in one run, the best of several, so that they mean something on a busy machine
too. The compiled sampler is loaded first, as any draw of 2**20 cells does.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import recordwise as rw
from recordwise.exact.functions import log, x

CELLS = 1_000_000
REPEATS = 5
MECHANISMS: dict[str, Any] = {
    "Gaussian": rw.Gaussian(sigma=30),
    "Clamped": rw.Clamped(to=50, rho=0.1),
    "UnitSplit": rw.UnitSplit(at=50, rho=0.1),
    "GeneralizedGaussian": rw.GeneralizedGaussian(shape=0.5, scale=20),
    "Polylog": rw.Polylog(power=2, rate=1, offset=math.e, scale=20),
    "Additive": rw.mechanisms.Additive((x / 50) ** 0.5 + log(x / 10 + 1)),
    "RootTransform, degree 2": rw.RootTransform(degree=2, offset=1, sigma=1),
    "RootTransform, degree 4": rw.RootTransform(degree=4, offset=1, sigma="0.2"),
    "RootTransform, degree 4, Laplace": rw.RootTransform(degree=4, offset=1, laplace_scale="0.2"),
    "LogTransform": rw.LogTransform(offset=1000, sigma="0.2"),
    "LogTransform, Laplace": rw.LogTransform(offset=1000, laplace_scale="0.2"),
    "Transform": rw.mechanisms.Transform(x**0.4, x**2.5, offset=100, laplace_scale="0.2"),
}


def seconds(work: Callable[[], object]) -> float:
    """The shortest of several runs, the first (tables, compilation) left out."""
    work()
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def measure(cells: int = CELLS) -> dict[str, tuple[float, float]]:
    """For each mechanism, release and estimate in units of the time numpy takes for as many normals."""
    totals = np.random.default_rng(1).lognormal(8, 2, cells).astype(np.int64)
    rw.noise.DiscreteGaussian(1).sample(1 << 20)
    normals = np.random.default_rng(2)
    unit = seconds(lambda: normals.standard_normal(cells))
    found = {}
    for name, mechanism in MECHANISMS.items():
        unit = min(unit, seconds(lambda: normals.standard_normal(cells)))
        noisy = mechanism.release(totals)
        release = seconds(lambda mechanism=mechanism: mechanism.release(totals))
        estimate = seconds(lambda mechanism=mechanism, noisy=noisy: mechanism.estimate(noisy))
        found[name] = (release / unit, estimate / unit)
    return found


def main() -> None:
    print(f"{CELLS:,} cells; 1.0 is the time numpy takes to draw as many normals")
    print(f"{'mechanism':36}{'release':>9}{'estimate':>10}{'together':>10}")
    for name, (release, estimate) in measure().items():
        print(f"{name:36}{release:9.1f}{estimate:10.1f}{release + estimate:10.1f}")


if __name__ == "__main__":
    main()
