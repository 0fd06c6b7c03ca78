"""CIS: sums of cows by State and by State x District with splitting, cows per operation by State with clamping."""

from fractions import Fraction
from typing import Any

import numpy as np

import recordwise as rw
from experiments.split_fig2.errors import loss_cdf, relative_errors, released, share_above, spread
from experiments.split_fig2.herds import Herds

RHOS = (0.1, 1.0, 10.0)
THRESHOLDS = (20, 50, 100, 200, 500, 1000, 2000, 5000)
SHOWN_LOSSES = (100, 500, 2000)
PARTS = 4
"""State sums, district sums, and the clamped sum and the count of the averages: a quarter of rho each. The division is ours."""
STEP = Fraction(1)
EDGES = np.geomspace(1e-3, 1e6, 361)


def policy(rho: float, at: int, *, tight: bool) -> rw.Policy:
    """What an operation pays: constants for the average, pieces (or the tight square) for the two splitting sums."""
    part = Fraction(str(rho)) / PARTS
    split = rw.UnitSplit(at=at, rho=part).policy("cows", tight=tight)
    return split + split + rw.Clamped(to=at, rho=part).policy("cows") + rw.Gaussian(rho=part).policy_of_count()


def totals(data: Herds, at: int) -> dict[str, np.ndarray]:
    """The exact sums, and what the average is made of."""
    return {
        "state": np.bincount(data.state, weights=data.cows).astype(np.int64),
        "district": np.bincount(data.district, weights=data.cows).astype(np.int64),
        "clamped": np.bincount(data.state, weights=np.minimum(data.cows, at)).astype(np.int64),
        "count": np.bincount(data.state),
    }


def error_rows(data: Herds, runs: int, rng: rw.noise.BitSource) -> list[dict[str, Any]]:
    """Every threshold and rho: errors of the three tables beside the share of operations above rho."""
    rows = []
    for rho in RHOS:
        for at in THRESHOLDS:
            losses = np.asarray(policy(rho, at, tight=False).loss({"cows": data.cows}))
            setting = {"rho": rho, "at": at, "share_above_rho": share_above(losses, rho)}
            for table, errors in errors_of(totals(data, at), rho, at, runs, rng).items():
                rows.append({"table": table, **setting, **spread(errors)})
    return rows


def errors_of(
    exact: dict[str, np.ndarray], rho: float, at: int, runs: int, rng: rw.noise.BitSource
) -> dict[str, np.ndarray]:
    part = Fraction(str(rho)) / PARTS
    split, clamped, counted = rw.UnitSplit(at=at, rho=part), rw.Clamped(to=at, rho=part), rw.Gaussian(rho=part)
    sums = released(clamped, exact["clamped"], runs, step=STEP, rng=rng)
    # A noisy count below 1 says nothing; the user of such a table would take 1.
    counts = np.maximum(released(counted, exact["count"], runs, step=STEP, rng=rng), 1)
    found = {
        name: relative_errors(released(split, exact[name], runs, step=STEP, rng=rng), exact[name])
        for name in ("state", "district")
    }
    return found | {"average": relative_errors(sums / counts, exact["state"] / exact["count"])}


def loss_rows(data: Herds, rho: float = 1.0) -> list[dict[str, Any]]:
    rows = []
    for at in SHOWN_LOSSES:
        for name, tight in (("paper", False), ("tight", True)):
            shares = loss_cdf(np.asarray(policy(rho, at, tight=tight).loss({"cows": data.cows})), EDGES)
            rows += [
                {"rho": rho, "at": at, "policy": name, "loss": edge, "share_at_most": share}
                for edge, share in zip(EDGES.tolist(), shares.tolist())
            ]
    return rows
