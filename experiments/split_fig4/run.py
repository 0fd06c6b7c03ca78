"""Figure 4 of [S] beside ours."""

from fractions import Fraction
from itertools import pairwise
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
COUNTS = ("estab",)
READINGS = {"95 % of the queries": fitness.QUERIES, "every query": fitness.EVERY}
SETTING = (
    f"Queries: county x industry at NAICS levels 2 to 6, cells with at least {LEAST} establishments; ESTAB, EMP, PAYANN, "
    "PAYQTR1 as in Table 6. The goals 5, 10 and 20 % are ours.",
    "Each of the 20 tables gets the most Gaussian noise with which 95 % of its queries (the caption) or all of them (the text) "
    "keep the goal with probability 95 % each. Calibrating table by table is our reading; noise.csv also has the reading over all "
    "errors together. Pictures are those of the caption.",
    "The policies charge the noise by the pieces of a splitting scheme of Table 8; the tight one is the sum of x^2/(2 sigma^2).",
)


def reproduce(*, runs: int, seed: int, tell: Tell) -> Reproduction:
    tell("establishments")
    records = establishments.records()
    tell("exact tables")
    made = tables(records)
    tell("least noise")
    every = {(name, goal): fitness.calibrated(made, goal, share) for name, share in READINGS.items() for goal in GOALS}
    found = {goal: every[CAPTION, goal] for goal in GOALS}
    table_rows = [row for goal in GOALS for row in calibrated_rows(made, found[goal], every[TEXT, goal])]
    limits = fitness.top_coding_limits(made, "0.10")
    tell("losses")
    curves, losses, cheaper = loss_rows(made, every)
    tell("noise")
    tried = drawn_shares(made, found["0.10"], runs, seed)
    return Reproduction(
        name="split-fig4",
        title="The least losses that make the tables fit for use",
        source="[S] Seeman, Sexton, Pujol, Machanavajjhala, section 6.4, Figure 4",
        setting=SETTING,
        data=data_note(establishments.REAL, establishments.FILE),
        runs=runs,
        seed=seed,
        claims=claims(curves, losses, cheaper, table_rows, limits, tried),
        tables={
            "noise": table_rows,
            "curves": curves,
            "losses": losses,
            "smaller_thresholds": cheaper,
            "top_coding_limits": limits,
        },
        shown=("losses", "smaller_thresholds", "top_coding_limits"),
        pictures=pictures(curves),
        numbers={"establishments": len(records), "drawn": tried},
    )


CAPTION, TEXT = READINGS


def calibrated_rows(made: Tables, found: list[Calibrated], strict: list[Calibrated]) -> list[dict[str, Any]]:
    """The noise of every table under both readings of the goal, and whether the law meets it."""
    levels = {level.digits: level for level in made.levels}
    rows = []
    for each, other in zip(found, strict, strict=True):
        totals = levels[each.digits].totals[each.attribute]
        totals = totals[totals > 0]
        rows.append(
            {
                "goal": each.goal,
                "attribute": each.attribute,
                "digits": each.digits,
                "queries": len(totals),
                "at_total": each.at_total,
                "sigma": each.sigma,
                "sigma_if_every_query": other.sigma,
                "sigma_if_pooled": fitness.pooled_sigma(totals, each.goal),
                "queries_met": fitness.met_share(each, totals),
            }
        )
    return rows


Rows = list[dict[str, Any]]


def loss_rows(made: Tables, found: dict[tuple[str, str], list[Calibrated]]) -> tuple[Rows, Rows, Rows]:
    """The curves of the figure, quantiles of the loss by goal and policy, and how many pay less under a finer scheme."""
    curves: Rows = []
    losses: Rows = []
    cheaper: Rows = []
    for (reading, goal), noise in found.items():
        paid = {name: paid_by(made, noise, name, (*COUNTS, *MEASURES)) for name in (FULL, *SPLITTING)}
        setting = {"reading": reading, "goal": goal}
        losses += [{**setting, "policy": name, **summary(each)} for name, each in paid.items()]
        cheaper += [
            {
                **setting,
                "scheme": fine,
                "against": coarse,
                "share_that_pay_less": float(np.mean(paid[fine] < paid[coarse])),
            }
            for coarse, fine in pairwise(SPLITTING)
        ]
        if reading == CAPTION:
            for name, each in paid.items():
                curves += curve_rows({"goal": goal, "policy": name, "part": "all"}, each)
    noise = found[CAPTION, "0.10"]
    for part, attributes in {"counts": COUNTS, **{name: (name,) for name in MEASURES}}.items():
        setting = {"goal": "0.10", "policy": FULL, "part": part}
        curves += curve_rows(setting, paid_by(made, noise, FULL, attributes))
    return curves, losses, cheaper


def paid_by(made: Tables, noise: list[Calibrated], policy: str, attributes: tuple[str, ...]) -> np.ndarray:
    return np.asarray(fitness.policy(noise, policy, attributes).loss(made.records.measures))


def curve_rows(setting: dict[str, Any], paid: np.ndarray) -> Rows:
    shares = loss_cdf(paid, EDGES)
    return [{**setting, "loss": edge, "share_at_most": share} for edge, share in zip(EDGES.tolist(), shares.tolist())]


def summary(paid: np.ndarray) -> dict[str, float]:
    quantiles = dict(zip(("loss_50", "loss_90", "loss_99"), np.quantile(paid, (0.5, 0.9, 0.99)).tolist()))
    above = {f"share_above_{limit}": float(np.mean(paid > limit)) for limit in (1, 10)}
    return {**quantiles, **above, "least": float(paid.min())}


def drawn_shares(made: Tables, found: list[Calibrated], runs: int, seed: int) -> dict[str, float]:
    """The share of errors within the goal, by table, with drawn noise."""
    levels, rng = {level.digits: level for level in made.levels}, Seeded(seed)
    shares = []
    for each in found:
        totals = levels[each.digits].totals[each.attribute]
        totals = totals[totals > 0]
        noisy = each.gaussian.release(np.tile(totals, (runs, 1)), rng=rng).points
        goal = Fraction(each.goal)
        shares.append(float(np.mean(np.abs(noisy - totals) * goal.denominator <= totals * goal.numerator)))
    return {"goal": float(found[0].goal), "worst": min(shares), "mean": float(np.mean(shares))}
