"""Figure 2 of [S] beside ours."""

import numpy as np

from experiments.frame import Reproduction, Tell, data_note
from experiments.split_fig2 import cattle, herds, simulated, smallest
from experiments.split_fig2.claims import claims
from experiments.split_fig2.drawing import pictures
from recordwise.noise import Seeded

RUNS = 100
STEPS = 4
SETTING = (
    f"SIM: {simulated.RECORDS:,} records in {simulated.GROUPS:,} groups (uniform, and Dirichlet(1) shares), HT1 Pareto(1, "
    "1.2) and HT2 Pareto(1, 1.5), independent and rounded to hundredths; sums by group with unit splitting, each with "
    "the whole of rho. The thresholds are ours.",
    "SIM, smallest number of records: the median over groups and noise by formula, over 20 data sets of each size, to "
    "about 1 %.",
    "CIS: rho in four equal parts (ours): State sums and State x District sums by unit splitting, and the clamped sum "
    "and the count of the average number of cows per operation by State; the clamp is the threshold.",
)


def reproduce(*, runs: int, seed: int, tell: Tell) -> Reproduction:
    noise, rng = Seeded(seed), np.random.default_rng(seed)
    tell("simulated values")
    made = [simulated.simulate(kind, simulated.RECORDS, rng) for kind in simulated.KINDS]
    sim = [row for data in made for row in simulated.error_rows(data, runs, noise)]
    sim_losses = simulated.loss_rows(made[0])
    tell("the smallest number of records")
    least = smallest.claim_rows(seed)
    tell("dairy herds")
    cows = herds.herds(seed)
    cis, cis_losses = cattle.error_rows(cows, runs, noise), cattle.loss_rows(cows)
    tell("figures")
    return Reproduction(
        name="split-fig2",
        title="Error against the share of records that pay more than rho",
        source="Seeman, Sexton, Pujol, Machanavajjhala (VLDB 2024), Figure 2",
        setting=SETTING,
        data=data_note(herds.REAL, herds.OPERATIONS, herds.COWS),
        runs=runs,
        seed=seed,
        claims=claims(sim, least, cis),
        tables={"sim": sim, "sim_losses": sim_losses, "smallest": least, "cis": cis, "cis_losses": cis_losses},
        shown=("smallest",),
        pictures=pictures(sim, sim_losses, cis, cis_losses),
        numbers={"operations": len(cows.cows), "cows": int(cows.cows.sum())},
    )
