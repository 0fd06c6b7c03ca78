"""Where the bias of nonnegative tables goes: methods of fitting compared by size class and level.

``python -m experiments.bias`` prints a table of which docs/consistent.md has a part. Three releases of employees, counties by
industries with all levels of both: the published counties of two states, generated establishments, and noise that grows with
public sizes. The best linear estimate is unbiased, so the mean of (fit - best) over draws is the bias of a fit, almost without
noise of its own.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from experiments.frame import data_folder
from recordwise.postprocess import Workload, nnls, ols, reweighted_fit, sequential_fit
from recordwise.synthetic import establishments

top_down: Any = import_module("recordwise.postprocess.top_down")
"""What the study varies is inside it."""

CLASSES = (0.5, 10, 100, 1_000, 10_000, 100_000)
NAMES = ("0", "1-9", "10-99", "100-999", "1,000-9,999", "10,000-99,999", "100,000+")
PLACE_SHARES, INDUSTRY_SHARES = (0.1, 0.2, 0.7), (0.2, 0.3, 0.5)
FINEST_SD = 20 / np.sqrt(2 * 0.5)
"""UnitSplit at 20 employees, rho .5 for all tables: divided by the root of a table's share."""
STATES = ("27", "55")
REGIONS = 200


@dataclass(frozen=True, eq=False)
class Truth:
    """Employees by county and industry, and the levels of both."""

    name: str
    cells: Any
    places: list[Any]
    """From the nation to the counties, the label of every county."""
    industries: list[Any]
    sized: bool = False

    @cached_property
    def levels(self) -> list[tuple[int, int]]:
        """Pairs of levels, the finest first."""
        return [(i, j) for i in (2, 1, 0) for j in range(len(self.industries) - 1, -1, -1)]

    @cached_property
    def labels(self) -> list[Any]:
        joint = (self.places[i][:, None] * (self.industries[j].max() + 1) + self.industries[j] for i, j in self.levels)
        return [np.unique(own, return_inverse=True)[1].ravel() for own in joint]

    @cached_property
    def totals(self) -> Any:
        return np.concatenate([np.bincount(own, weights=self.cells.ravel()) for own in self.labels])

    @cached_property
    def table(self) -> Any:
        """The table of each answer."""
        return np.repeat(np.arange(len(self.labels)), [own.max() + 1 for own in self.labels])

    @cached_property
    def variances(self) -> Any:
        shares = np.array([PLACE_SHARES[i] * INDUSTRY_SHARES[j] for i, j in self.levels])
        flat = (FINEST_SD**2 / shares)[self.table]
        if not self.sized:
            return flat
        size = self.totals * np.exp(np.random.default_rng(3).normal(0, 0.2, len(self.totals)))
        return flat * np.maximum(0.5, 2.0 ** np.floor(np.log2(np.maximum(size, 1.0) / 2_000)))

    @cached_property
    def workload(self) -> Workload:
        places = {f"p{i}": own for i, own in enumerate(self.places)}
        industries = {f"n{j}": own for j, own in enumerate(self.industries)}
        return Workload.hierarchy(
            {"place": places, "industry": industries}, {f"{i}{j}": [f"p{i}", f"n{j}"] for i, j in self.levels}
        )

    @cached_property
    def grid(self) -> Any:
        found = top_down.Grid.of(self.cells.shape, self.labels)
        assert found is not None
        return found


def coded(*columns: Any) -> list[Any]:
    return [np.unique(column, return_inverse=True)[1] for column in columns]


def of_cells(name: str, county: Any, naics: Any, emp: Any, *, sized: bool = False) -> Truth:
    counties, row = np.unique(county, return_inverse=True)
    codes, column = np.unique(naics, return_inverse=True)
    cells = np.zeros((len(counties), len(codes)))
    np.add.at(cells, (row, column), emp)
    cut = [np.array([code[:length] for code in codes]) for length in (0, 2, 3)]
    return Truth(name, cells, coded(*(np.array([c[:k] for c in counties]) for k in (0, 2, 5))), coded(*cut), sized)


def releases() -> Iterator[Truth]:
    """The three releases."""
    folder = data_folder("cbp_county_2017.parquet")
    assert folder is not None, "set RECORDWISE_DATA to the folder of the public files"
    table = pq.read_table(folder / "cbp_county_2017.parquet")
    fips, naics = (np.asarray(table.column(name).cast("string")).astype(str) for name in ("fips", "naics"))
    emp = np.asarray(table.column("employees"), np.float64)
    kept = np.isin(fips.astype("U2"), STATES) & (np.char.str_len(naics) == 6)
    real = fips[kept], naics[kept].astype("U3"), emp[kept]
    yield of_cells("published", *real)
    made = establishments(1_000_000, seed=5)
    counties = np.asarray(made.column("county").cast("string")).astype("U5")
    few = np.isin(counties.astype("U2"), np.unique(counties.astype("U2"))[:6])
    yield of_cells(
        "generated",
        counties[few],
        np.asarray(made.column("naics").cast("string")).astype("U3")[few],
        np.asarray(made.column("emp"), np.float64)[few],
    )
    yield of_cells("sized", *real, sized=True)


Fitter = Callable[[Truth, Any, Any, Any], Any]
"""Cells from a release, its answers, its best linear estimate and the standard errors of that."""


def handed(power: float) -> Fitter:
    def fit(truth: Truth, answers: Any, best: Any, sd: Any) -> Any:
        kept = top_down.ease_of
        top_down.ease_of = lambda z, s: s**2 / (1 + np.minimum(np.maximum(z, 0) / s, top_down.STIFFEST)) ** power
        try:
            return truth.grid.hand_down(best, sd)[0]
        finally:
            top_down.ease_of = kept

    return fit


METHODS: dict[str, Fitter] = {
    "nnls": lambda truth, answers, best, sd: nnls(truth.workload, answers, truth.variances).x,
    "sequential": lambda truth, answers, best, sd: (
        sequential_fit(
            truth.workload, answers, truth.variances, priority=[f"{i}{j}" for i, j in sorted(truth.levels)]
        ).x
    ),
    "reweighted": lambda truth, answers, best, sd: (
        reweighted_fit(truth.workload, answers, truth.variances, noise="gaussian").x
    ),
    "resisting": lambda truth, answers, best, sd: nnls(truth.workload, best, top_down.ease_of(best, sd)).x,
    "top_down, w = 1": handed(0),
    "top_down, w = 1 + z/sd": handed(1),
    "top_down": handed(2),
    "top_down, fourth power": handed(4),
}


@dataclass(frozen=True, eq=False)
class Measured:
    """Bias and root mean squared error of every answer and region, in standard errors."""

    bias: Any
    rmse: Any
    region_bias: Any


@dataclass(frozen=True, eq=False)
class Regions:
    """Random sets of counties, each with an industry of some level."""

    sums: Any
    totals: Any

    @classmethod
    def of(cls, truth: Truth, rng: Any) -> "Regions":
        counties, width = truth.cells.shape
        sums = np.zeros((REGIONS, counties * width))
        for place in range(REGIONS):
            chosen = rng.random(counties) < rng.uniform(0.02, 0.5)
            level = truth.industries[rng.integers(len(truth.industries))]
            sums[place] = np.outer(chosen, level == rng.integers(level.max() + 1)).ravel()
        return cls(sums, sums @ truth.cells.ravel())


def measure(
    truth: Truth, methods: dict[str, Fitter], draws: int, seed: int
) -> tuple[Any, Regions, dict[str, Measured]]:
    """Return the standard errors, the regions, and what each method does."""
    rng = np.random.default_rng(seed)
    regions = Regions.of(truth, rng)
    noise = np.sqrt(truth.variances)
    trial = ols(truth.workload, rng.normal(size=(200, len(noise))) * noise, truth.variances)
    sd = np.sqrt(np.mean(trial.fitted**2, axis=0))
    region_sd = np.sqrt(np.mean((trial.x @ regions.sums.T) ** 2, axis=0))
    off = {name: [np.zeros(len(sd)), np.zeros(len(sd)), np.zeros(REGIONS)] for name in methods}
    for _ in range(draws):
        answers = truth.totals + rng.normal(size=len(noise)) * noise
        linear = ols(truth.workload, answers, truth.variances)
        for name, fit in methods.items():
            x = fit(truth, answers, linear.fitted, sd)
            fitted = truth.workload.answer(x)
            off[name][0] += (fitted - linear.fitted) / sd / draws
            off[name][1] += ((fitted - truth.totals) / sd) ** 2 / draws
            off[name][2] += (x - linear.x) @ regions.sums.T / region_sd / draws
    return sd, regions, {name: Measured(bias, np.sqrt(square), region) for name, (bias, square, region) in off.items()}


def by_class(values: Any, totals: Any) -> list[str]:
    place = np.searchsorted(CLASSES, totals, side="right")
    return [f"{np.mean(values[place == k]):+.2f}" if np.any(place == k) else "" for k in range(len(NAMES))]


def report(truth: Truth, found: dict[str, Measured], regions: Regions) -> Iterator[str]:
    """The lines of one release."""
    finest, coarse = truth.table == 0, truth.table > 0
    for name, own in found.items():
        for what, values, totals in (
            ("finest cells", own.bias[finest], truth.totals[finest]),
            ("coarser cells", own.bias[coarse], truth.totals[coarse]),
            ("200 regions", own.region_bias, regions.totals),
        ):
            yield f"| {truth.name} | {name} | {what} | " + " | ".join(by_class(values, totals)) + " |"
        root = [np.sqrt(np.mean(own.rmse[where] ** 2)) for where in (finest, coarse)]
        worst = [
            abs(np.mean(own.bias[chosen]))
            for table in range(len(truth.levels))
            for k in range(4, len(NAMES))
            if np.any(chosen := (truth.table == table) & (np.searchsorted(CLASSES, truth.totals, side="right") == k))
        ]
        yield f"|  |  | rmse finest {root[0]:.2f}, coarser {root[1]:.2f}; worst table and class from 1,000 on: {max(worst):.2f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--releases", nargs="*", default=["published", "generated", "sized"])
    asked = parser.parse_args()
    print("| release | method | cells | " + " | ".join(NAMES) + " |\n|" + "---|" * (3 + len(NAMES)))
    for truth in releases():
        if truth.name in asked.releases:
            _, regions, found = measure(truth, {name: METHODS[name] for name in asked.methods}, asked.draws, 11)
            print(*report(truth, found, regions), sep="\n", flush=True)


if __name__ == "__main__":
    main()
