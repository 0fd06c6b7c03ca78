"""Figure 4 of [S] beside ours."""

from fractions import Fraction
from typing import Any

import numpy as np

from experiments import establishments
from experiments.establishments import MEASURES
from experiments.establishments_schemes import SPLITTING
from experiments.establishments_tables import LEAST, Tables, tables
from experiments.frame import Reproduction, Tell, data_note
from experiments.split_fig2.errors import loss_cdf
from experiments.split_fig4 import fitness
from experiments.split_fig4.claims import claims
from experiments.split_fig4.drawing import pictures
from experiments.split_fig4.fitness import FULL, GOALS, Calibrated
from recordwise.noise import Seeded

RUNS = 20
STEPS = 5
EDGES = np.geomspace(1e-4, 1e8, 361)
COUNTS = ("estab", "firm")
SETTING = (
    f"Queries: county x industry at NAICS levels 2 to 6, cells with at least {LEAST} establishments; ESTAB, FIRM, EMP, "
    "PAYANN, PAYQTR1.",
    "Each of the 25 tables gets the most Gaussian noise with which 95 % of its queries keep the goal with probability 95 "
    "% each. Calibrating table by table is our reading of 'on 95 % of the workload'; noise.csv has the reading over all "
    "errors together too.",
    "The tight policy is the sum of x^2/(2 sigma^2); the others charge the same noise by the pieces of a splitting "
    "scheme.",
)


def reproduce(*, runs: int, seed: int, tell: Tell) -> Reproduction:
    tell("establishments")
    records = establishments.records()
    tell("exact tables")
    made = tables(records)
    tell("least noise")
    found = {goal: fitness.calibrated(made, goal) for goal in GOALS}
    table_rows = [row for goal in GOALS for row in calibrated_rows(made, found[goal])]
    limits = fitness.top_coding_limits(made, "0.10")
    tell("losses")
    curves, losses = loss_rows(made, found)
    tell("noise")
    tried = drawn_shares(made, found["0.10"], runs, seed)
    return Reproduction(
        name="split-fig4",
        title="The least losses that make the tables fit for use",
        source="Seeman, Sexton, Pujol, Machanavajjhala (VLDB 2024), Figure 4",
        setting=SETTING,
        data=data_note(establishments.REAL, establishments.FILE),
        runs=runs,
        seed=seed,
        claims=claims(table_rows, losses, limits, tried),
        tables={"noise": table_rows, "curves": curves, "losses": losses, "top_coding_limits": limits},
        shown=("losses", "top_coding_limits"),
        pictures=pictures(curves),
        numbers={"establishments": len(records), "drawn": tried},
    )


def calibrated_rows(made: Tables, found: list[Calibrated]) -> list[dict[str, Any]]:
    """The noise of every table under both readings of the goal, and whether the law meets it."""
    levels = {level.digits: level for level in made.levels}
    rows = []
    for each in found:
        totals = levels[each.digits].totals[each.attribute]
        rows.append(
            {
                "goal": each.goal,
                "attribute": each.attribute,
                "digits": each.digits,
                "queries": len(totals),
                "at_total": each.at_total,
                "sigma": each.sigma,
                "sigma_if_pooled": fitness.pooled_sigma(totals, each.goal),
                "queries_met": fitness.met_share(each, totals),
            }
        )
    return rows


def loss_rows(made: Tables, found: dict[str, list[Calibrated]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The curves of the figure, and quantiles of the loss by goal and policy."""
    curves, losses = [], []
    for goal, policy, part, attributes in settings():
        paid = np.asarray(fitness.policy(found[goal], policy, attributes).loss(made.records.measures))
        setting = {"goal": goal, "policy": policy, "part": part}
        shares = loss_cdf(paid, EDGES)
        curves += [
            {**setting, "loss": edge, "share_at_most": share} for edge, share in zip(EDGES.tolist(), shares.tolist())
        ]
        if part == "all":
            quantiles = dict(zip(("loss_50", "loss_90", "loss_99"), np.quantile(paid, (0.5, 0.9, 0.99)).tolist()))
            above = {f"share_above_{limit}": float(np.mean(paid > limit)) for limit in (1, 10)}
            losses.append({"goal": goal, "policy": policy, **quantiles, **above, "least": float(paid.min())})
    return curves, losses


def settings() -> list[tuple[str, str, str, tuple[str, ...]]]:
    """What is drawn: every goal and policy over all attributes, and each attribute by itself at 10 %."""
    everything = (*COUNTS, *MEASURES)
    whole = [(goal, policy, "all", everything) for goal in GOALS for policy in (FULL, *SPLITTING)]
    parts = [("0.10", FULL, name, (name,)) for name in MEASURES]
    return [*whole, ("0.10", FULL, "counts", COUNTS), *parts]


def drawn_shares(made: Tables, found: list[Calibrated], runs: int, seed: int) -> dict[str, float]:
    """The share of errors within the goal, by table, with drawn noise."""
    levels, rng = {level.digits: level for level in made.levels}, Seeded(seed)
    shares = []
    for each in found:
        totals = levels[each.digits].totals[each.attribute]
        noisy = each.gaussian.release(np.tile(totals, (runs, 1)), rng=rng).points
        goal = Fraction(each.goal)
        shares.append(float(np.mean(np.abs(noisy - totals) * goal.denominator <= totals * goal.numerator)))
    return {"goal": float(found[0].goal), "worst": min(shares), "mean": float(np.mean(shares))}
