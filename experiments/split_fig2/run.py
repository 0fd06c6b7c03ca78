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
    f"SIM: {simulated.RECORDS:,} records (ours: the text gives no number) in {simulated.GROUPS:,} groups (uniform, and "
    "Dirichlet(1) shares, ours), HT1 Pareto(1, 1.2) and HT2 Pareto(1, 1.5) as in Table 4, independent and rounded to hundredths; "
    "sums by group with univariate unit splitting, each with the whole of rho. Figure 2 shows HT1. The thresholds are ours.",
    "SIM, smallest number of records: the median over groups and noise by formula, over 20 data sets of each size, to "
    "about 1 %.",
    "CIS: the four queries of Table 5 with a quarter of rho each (ours): sums of cows by State and by State x District with unit "
    "splitting, averages by State and by State x District under zCDP. Averages are of herds, because pasture rents are in no file "
    f"of ours; they are cut at {cattle.HERD_BOUND:,} and share their quarter with a count.",
)


def reproduce(*, runs: int, seed: int, tell: Tell) -> Reproduction:
    noise, rng = Seeded(seed), np.random.default_rng(seed)
    tell("simulated values")
    made = [simulated.simulate(kind, simulated.RECORDS, rng) for kind in simulated.KINDS]
    sim = [row for data in made for row in simulated.error_rows(data, runs, noise)]
    sim_clamped = [row for data in made for row in simulated.clamped_rows(data, runs, noise)]
    sim_losses = simulated.loss_rows(made[0])
    tell("the smallest number of records")
    least = smallest.claim_rows(seed)
    tell("counties")
    survey = herds.survey(seed)
    cis, cis_losses = cattle.error_rows(survey, runs, noise), cattle.loss_rows(survey)
    cis_clamped = cattle.clamped_rows(survey, runs, noise)
    tell("figures")
    shown = [row for row in sim_losses if row["value"] == "HT1"]
    return Reproduction(
        name="split-fig2",
        title="Error against the share of records that pay more than rho",
        source="[S] Seeman, Sexton, Pujol, Machanavajjhala, section 6.3, Figure 2 and Tables 4 and 5",
        setting=SETTING,
        data=data_note(herds.REAL, herds.OPERATIONS, herds.COWS),
        runs=runs,
        seed=seed,
        claims=claims(sim, least, cis, [*sim_clamped, *cis_clamped], shown),
        tables={
            "sim": sim,
            "sim_clamped": sim_clamped,
            "sim_losses": sim_losses,
            "smallest": least,
            "cis": cis,
            "cis_clamped": cis_clamped,
            "cis_losses": cis_losses,
        },
        shown=("smallest",),
        pictures=pictures(sim, sim_losses, cis, cis_losses),
        numbers={"counties": len(survey.cows), "cows": int(survey.cows.sum())},
    )
