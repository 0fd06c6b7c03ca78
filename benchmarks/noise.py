"""Exact draws per second on one core, beside numpy's inexact normal and another exact sampler, in one run: ratios, not seconds.

    python -m benchmarks noise

numpy's draws and ours are made in turns, one thread each, and the median of the ratios of their processor times counts, which a
busy neighbor changes little. Small requests are measured before any machine code is loaded, as in a process that makes no others.
The first start is measured in fresh processes.
"""

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from benchmarks.goals import record, table
from recordwise.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    GeneralizedGaussian,
    LatticeLaw,
    Polylog,
    Seeded,
    binomial_exact,
    sampler,
)
from recordwise.noise.randomness import random_words
from recordwise.noise.sampler import Side, attempt, table_for

SIZE = 10_000_000
OTHER_SIZE = 50_000
REPEATS = 3
SIZES = (100_000, 2_000_000, 10_000_000)
"""The sizes with a goal, which holds for the slowest law."""
SCALES = (1, 50, 10**6, 10**12)
FAMILIES: dict[str, Callable[[int], LatticeLaw]] = {
    "discrete Gaussian": DiscreteGaussian,
    "discrete Laplace": DiscreteLaplace,
    "generalized Gaussian, shape 1/2": lambda scale: GeneralizedGaussian(scale, "0.5"),
    "polylog, rate 1.5, offset 3, power 2": lambda scale: Polylog(scale, "1.5", 3, 2),
}
START = "import time; t = time.perf_counter()\n{code}\nprint(time.perf_counter() - t)"
DRAW = "from recordwise.noise import DiscreteGaussian\nDiscreteGaussian(50).sample({size})"


def rate(size: int, run: Callable[[], object]) -> float:
    """Draws per second, the best of a few runs."""
    best = 0.0
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        best = max(best, size / (time.perf_counter() - start))
    return best


def numpy_rate(size: int) -> float:
    generator = np.random.default_rng(1)
    return rate(size, lambda: generator.normal(size=size))


def report_sizes() -> None:
    """The slowest law at each size, the small sizes first."""
    laws = {f"{family}, scale {scale:.0e}": make(scale) for family, make in FAMILIES.items() for scale in SCALES}
    worth = sampler.WORTH_COMPILING
    for size in SIZES:
        sampler.WORTH_COMPILING = worth if size >= worth else sys.maxsize
        ratios = {name: against_numpy(law, size) for name, law in laws.items()}
        for name, ratio in ratios.items():
            print(f"{size:>10,} draws: {name:52} {ratio:.2f} x numpy's speed")
        slowest = min(ratios, key=lambda name: ratios[name])
        record(f"noise_{size}", ratios[slowest])
        median = sorted(ratios.values())[len(ratios) // 2]
        print(f"{size:,} draws: {slowest} is the slowest, the median law has {median:.2f} x numpy's speed", flush=True)
    print(table(only_measured=True))


def against_numpy(law: LatticeLaw, size: int) -> float:
    """Our draws per second over numpy's: the median of turns."""
    law.sample(size)
    generator = np.random.default_rng(1)
    turns = max(7, 5_000_000 // size)
    return float(
        np.median([used(lambda: generator.normal(size=size)) / used(lambda: law.sample(size)) for _ in range(turns)])
    )


def other_rate() -> float | None:
    """OpenDP's discrete Gaussian, where it is installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    mechanism = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=int), scale=50.0)
    zeros = [0] * OTHER_SIZE
    return rate(OTHER_SIZE, lambda: mechanism(zeros))


def open_share(law: LatticeLaw) -> float:
    """The share of attempts that integers leave to arbitrary precision."""
    table = table_for(Side(exponent=law.exponent, inflection=law.inflection))
    _, undecided = attempt(table, random_words(Seeded(1), 2_000_000), np.empty(1_000_000, dtype=np.int64))
    return len(undecided) / 1_000_000


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def used(run: Callable[[], object]) -> float:
    """Seconds of processor time."""
    start = time.process_time()
    run()
    return time.process_time() - start


def started(code: str) -> float:
    """Seconds that some code takes in a fresh process."""
    command = [sys.executable, "-c", START.format(code=code)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def report_laws() -> None:
    other = other_rate()
    print(f"{'law':38} {'scale':>6} {'M draws/s':>10} {'x numpy':>8} {'x OpenDP':>9} {'open':>8} {'table ms':>9}")
    for family, make in FAMILIES.items():
        for scale in SCALES:
            print(f"{family:38} {scale:>6.0e} {measured(make(scale), other)}", flush=True)
    print(
        f"numpy normal {numpy_rate(SIZE) / 1e6:.0f} M/s" + ("" if other is None else f", OpenDP {other / 1e6:.3f} M/s")
    )


def measured(law: LatticeLaw, other: float | None) -> str:
    build = seconds(lambda: law.sample(1))
    law.sample(SIZE)
    normal, ours = numpy_rate(SIZE), rate(SIZE, lambda: law.sample(SIZE))
    beside = "" if other is None else f"{ours / other:.0f}"
    return f"{ours / 1e6:>10.0f} {ours / normal:>8.2f} {beside:>9} {open_share(law):>8.0e} {build * 1e3:>9.0f}"


def report_start() -> None:
    codes = {
        "import recordwise.noise": "import recordwise.noise",
        "import and 1000 draws, no machine code": DRAW.format(size=1000),
        "import and 5 M draws, machine code compiled": DRAW.format(size=5_000_000),
    }
    for name, code in codes.items():
        print(f"{name}: {min(started(code) for _ in range(REPEATS)):.2f} s")


def report_counts() -> None:
    law = DiscreteGaussian(50)
    for n, threshold in [(10**6, 150), (10**12, 300), (10**18, 400)]:
        first = seconds(lambda n=n, threshold=threshold: binomial_exact(n, law, threshold))
        later = min(seconds(lambda n=n, threshold=threshold: binomial_exact(n, law, threshold)) for _ in range(20))
        print(
            f"how many of {n:.0e} draws pass {threshold}: {first * 1e3:.1f} ms the first time, {later * 1e3:.2f} ms at best later"
        )


def main() -> None:
    report_sizes()
    report_laws()
    report_start()
    report_counts()


if __name__ == "__main__":
    main()
