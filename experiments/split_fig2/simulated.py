"""SIM: 100,000 records, two heavy-tailed values, sums by one of 1,000 groups."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

import recordwise as rw
from experiments.split_fig2.errors import loss_cdf, relative_errors, released, share_above, spread

RECORDS = 100_000
GROUPS = 1_000
TAILS = {"HT1": 1.2, "HT2": 1.5}
KINDS = ("uniform", "Dirichlet(1)")
RHOS = (0.1, 1.0, 10.0)
THRESHOLDS = (2, 5, 10, 20, 30, 50, 100, 200, 500)
CLAMPS = (5, 10, 20, 50, 100, 200, 500, 1000)
"""Of the zCDP counterpart."""
SHOWN_LOSSES = (10, 30, 100)
"""Thresholds whose losses are drawn."""
STEP = Fraction(1, 100)
EDGES = np.geomspace(1e-3, 1e6, 361)


@dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """The records: a group, and each heavy-tailed value in steps."""

    kind: str
    group: np.ndarray
    values: dict[str, np.ndarray]

    def totals(self, name: str) -> np.ndarray:
        """The exact sum of every group, in steps."""
        sums = np.zeros(GROUPS, dtype=np.int64)
        np.add.at(sums, self.group, self.values[name])
        return sums


def group_sizes(kind: str, records: int, rng: np.random.Generator) -> np.ndarray:
    """How many records each group has."""
    shares = np.full(GROUPS, 1 / GROUPS) if kind == "uniform" else rng.dirichlet(np.ones(GROUPS))
    return rng.multinomial(records, shares)


def pareto_steps(tail: float, size: int, rng: np.random.Generator) -> np.ndarray:
    """Pareto values of least value 1, rounded to steps."""
    return np.rint((1 - rng.random(size)) ** (-1 / tail) / float(STEP)).astype(np.int64)


def simulate(kind: str, records: int, rng: np.random.Generator) -> Simulated:
    group = np.repeat(np.arange(GROUPS), group_sizes(kind, records, rng))
    values = {name: pareto_steps(tail, records, rng) for name, tail in TAILS.items()}
    return Simulated(kind, group, values)


def error_rows(data: Simulated, runs: int, rng: rw.noise.BitSource) -> list[dict[str, Any]]:
    """Every threshold and rho: the distribution of the error beside the share of records above rho."""
    rows = []
    for name, values in data.values.items():
        exact = data.totals(name)
        for rho in RHOS:
            for at in THRESHOLDS:
                mechanism = rw.UnitSplit(at=at, rho=rho)
                losses = mechanism.policy(rw.policy.Measure(name, STEP), tight=False).loss(
                    {name: values / STEP.denominator}
                )
                noisy = released(mechanism, exact, runs, step=STEP, rng=rng)
                errors = spread(relative_errors(noisy, exact * float(STEP)))
                setting = {"kind": data.kind, "value": name, "rho": rho, "at": at}
                rows.append({**setting, "share_above_rho": share_above(losses, rho), **errors})
    return rows


def clamped_rows(data: Simulated, runs: int, rng: rw.noise.BitSource) -> list[dict[str, Any]]:
    """The global zCDP counterpart: the same sums of HT1, every value cut at a bound."""
    exact, rows = data.totals("HT1"), []
    for rho in RHOS:
        for bound in CLAMPS:
            cut = Simulated(data.kind, data.group, {"HT1": np.minimum(data.values["HT1"], int(bound / STEP))})
            noisy = released(rw.Clamped(to=bound, rho=rho), cut.totals("HT1"), runs, step=STEP, rng=rng)
            errors = spread(relative_errors(noisy, exact * float(STEP)))
            rows.append({"kind": data.kind, "value": "HT1", "rho": rho, "bound": bound, **errors})
    return rows


def loss_rows(data: Simulated) -> list[dict[str, Any]]:
    """How the losses are distributed, by the paper's policy (rho times pieces squared) and the tight one."""
    rows = []
    for name, values in data.values.items():
        for rho, at, (policy, tight) in product(RHOS, SHOWN_LOSSES, (("paper", False), ("tight", True))):
            measure = rw.policy.Measure(name, STEP)
            split = rw.UnitSplit(at=at, rho=rho).policy(measure, tight=tight)
            shares = loss_cdf(np.asarray(split.loss({name: values / STEP.denominator})), EDGES)
            rows += [
                {"value": name, "rho": rho, "at": at, "policy": policy, "loss": edge, "share_at_most": share}
                for edge, share in zip(EDGES.tolist(), shares.tolist())
            ]
    return rows
