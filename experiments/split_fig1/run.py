"""Figure 1 of [S] beside ours."""

from typing import Any

import numpy as np

from experiments.frame import Picture, Reproduction, Tell
from experiments.split_fig1.claims import claims
from experiments.split_fig1.drawing import curves, figure
from experiments.split_fig1.theory import RECORDS, RHOS, TAILS, Pareto, optimum, simulated
from recordwise.noise import Seeded

RUNS = 4000
STEPS = 2
SETTING = (
    f"{RECORDS:,} Pareto values (least value 1) are cut at the clamp, added, and get Gaussian noise of variance "
    "clamp^2/(2 rho).",
    "The error is about n E X, so the spread of the values counts; a closed form, checked by simulation at the best "
    "clamps.",
    f"Tails {', '.join(map(str, TAILS))}: the first two are those of the paper's Table 4, 1.8 is ours. The values of rho, "
    f"{', '.join(f'{rho:g}' for rho in RHOS)}, are ours: the text gives none.",
)


def reproduce(*, runs: int, seed: int, tell: Tell) -> Reproduction:
    tell("curves")
    rows = curves()
    optima = [optimum(Pareto(tail=tail), rho) for tail in TAILS for rho in RHOS]
    tell("simulation")
    checks = simulations(optima, runs, seed)
    return Reproduction(
        name="split-fig1",
        title="The error of clamping heavy-tailed values",
        source="[S] Seeman, Sexton, Pujol, Machanavajjhala, section 6.2, Figure 1",
        setting=SETTING,
        data="No data: closed forms and simulated Pareto values.",
        runs=runs,
        seed=seed,
        claims=claims(optima, checks),
        tables={"curves": rows, "optima": optima, "simulation": checks},
        shown=("optima", "simulation"),
        pictures=(
            Picture(
                name="split-fig1",
                figure=figure(rows, optima),
                caption="Above, the squared error over the sum, as printed; below, its root over the sum: a relative "
                "error.",
                alt="Error against the clamp for three tails and three values of rho, on log scales. Each curve has one "
                "valley. In the upper row the valleys lie above 1; below, with the root, at rho 1 they lie at 0.26, 0.09 "
                "and 0.05.",
            ),
        ),
    )


def simulations(optima: list[dict[str, Any]], runs: int, seed: int) -> list[dict[str, Any]]:
    """One simulation at each best clamp, and its distance from the formula in standard errors."""
    rng, noise = np.random.default_rng(seed), Seeded(seed)
    found: list[dict[str, Any]] = []
    for best in optima:
        tail, rho, clamp = (best[name] for name in ("tail", "rho", "best_clamp"))
        made = simulated(Pareto(tail=tail), rho, clamp, runs, rng, noise)
        distance = (made["simulated_mse"] - made["formula_mse"]) / made["standard_error"]
        found.append({"tail": tail, "rho": rho, "clamp": clamp, **made, "distance": distance})
    return found
