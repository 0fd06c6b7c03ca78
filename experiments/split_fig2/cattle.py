"""CIS: the four queries of Table 5 on counties: sums of cows with splitting, averages of herds under zCDP."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

import recordwise as rw
from experiments.split_fig2.errors import loss_cdf, relative_errors, released, share_above, spread
from experiments.split_fig2.herds import Survey

RHOS = (0.1, 1.0, 10.0)
THRESHOLDS = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
SHOWN_LOSSES = (1000, 10_000, 50_000)
PARTS = 4
"""The queries of Table 5, a quarter of rho each; an average gives half of its quarter to its count. The division is ours."""
HERD_BOUND = 1000
"""At which the herds of the averages are cut. Ours."""
STEP = Fraction(1)
EDGES = np.geomspace(1e-3, 1e6, 361)
GEOGRAPHIES = ("state", "district")


def part(rho: float) -> Fraction:
    return Fraction(str(rho)) / PARTS


def policy(rho: float, at: int, *, tight: bool) -> rw.Policy:
    """What a county pays: a constant for the averages, pieces (or the tight square) for the two splitting sums."""
    split = rw.UnitSplit(at=at, rho=part(rho)).policy("cows", tight=tight)
    return split + split + rw.policy.constant(2 * part(rho))


def totals(data: Survey, values: np.ndarray) -> dict[str, np.ndarray]:
    """Exact sums by geography."""
    return {name: np.bincount(getattr(data, name), weights=values).astype(np.int64) for name in GEOGRAPHIES}


def error_rows(data: Survey, runs: int, rng: rw.noise.BitSource) -> list[dict[str, Any]]:
    """Every rho and threshold: errors of the sums beside the share of counties above rho. The averages have no threshold."""
    exact = totals(data, data.cows)
    rows = []
    for rho in RHOS:
        for at in THRESHOLDS:
            losses = np.asarray(policy(rho, at, tight=False).loss({"cows": data.cows}))
            setting = {"rho": rho, "at": at, "share_above_rho": share_above(losses, rho)}
            for name, sums in exact.items():
                noisy = released(rw.UnitSplit(at=at, rho=part(rho)), sums, runs, step=STEP, rng=rng)
                rows.append({"query": f"{name} sum", **setting, **spread(relative_errors(noisy, sums))})
        rows += [
            {"query": query, "rho": rho, "at": 0, "share_above_rho": 0.0, **spread(errors)}
            for query, errors in average_errors(data, rho, runs, rng)
        ]
    return rows


def average_errors(data: Survey, rho: float, runs: int, rng: rw.noise.BitSource) -> Iterator[tuple[str, np.ndarray]]:
    """A clamped sum over a count, both with Gaussian noise; a noisy count below 1 says nothing and is taken as 1."""
    half = part(rho) / 2
    cut, exact, counts = (
        totals(data, each) for each in (np.minimum(data.herd, HERD_BOUND), data.herd, data.herd * 0 + 1)
    )
    for name in GEOGRAPHIES:
        sums = released(rw.Clamped(to=HERD_BOUND, rho=half), cut[name], runs, step=STEP, rng=rng)
        sizes = np.maximum(released(rw.Gaussian(rho=half), counts[name], runs, step=STEP, rng=rng), 1)
        yield f"{name} average", relative_errors(sums / sizes, exact[name] / counts[name])


def clamped_rows(data: Survey, runs: int, rng: rw.noise.BitSource) -> list[dict[str, Any]]:
    """The global zCDP counterpart: the same sums, every county cut at a bound."""
    exact, rows = totals(data, data.cows), []
    for rho in RHOS:
        for bound in THRESHOLDS:
            cut = totals(data, np.minimum(data.cows, bound))
            for name, sums in exact.items():
                noisy = released(rw.Clamped(to=bound, rho=part(rho)), cut[name], runs, step=STEP, rng=rng)
                rows.append(
                    {"query": f"{name} sum", "rho": rho, "bound": bound, **spread(relative_errors(noisy, sums))}
                )
    return rows


def loss_rows(data: Survey) -> list[dict[str, Any]]:
    """How the losses are distributed, for every rho and some thresholds."""
    rows = []
    for rho in RHOS:
        for at in SHOWN_LOSSES:
            for name, tight in (("paper", False), ("tight", True)):
                shares = loss_cdf(np.asarray(policy(rho, at, tight=tight).loss({"cows": data.cows})), EDGES)
                rows += [
                    {"rho": rho, "at": at, "policy": name, "loss": edge, "share_at_most": share}
                    for edge, share in zip(EDGES.tolist(), shares.tolist())
                ]
    return rows
