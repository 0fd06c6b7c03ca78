"""Figure 5 of [S] beside ours."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from experiments import establishments
from experiments.establishments_schemes import DIVISION, SPLITTING, split_policy
from experiments.establishments_tables import LEAST, OUTSIDE, Tables, tables
from experiments.frame import Reproduction, Tell, data_note
from experiments.split_fig2.errors import loss_cdf
from experiments.split_fig5.claims import claims
from experiments.split_fig5.drawing import pictures
from experiments.split_fig5.firms import BOUNDS, firm_starts
from experiments.split_fig5.realized import Changes, firm_changes, record_changes

RUNS = 1
STEPS = 6
BUDGET = 1
EDGES = np.geomspace(1e-5, 1e10, 301)
ROUNDING = 1 + 1e-9
"""Losses are rounded; equal ones may differ in the last digits."""
SETTING = (
    f"The 20 tables of figure 3 (cells with at least {LEAST} establishments) by splitting, total budget {BUDGET}; at "
    "budget 10 every loss is ten times as large.",
    DIVISION,
    "Policy by pieces: the paper's rho times pieces squared, pieces joint over the three measures; tight: what the noise "
    "really costs.",
    "Realized: the squared change of every answer that the record, or the whole firm, makes, over 2 sigma^2. No noise is "
    "drawn, so the number of runs and the seed do not matter.",
)
Curve = tuple[str, str, np.ndarray]
Row = dict[str, Any]


def reproduce(*, runs: int, seed: int, tell: Tell) -> Reproduction:
    tell("establishments")
    made = tables(establishments.records())
    tell("changes of the answers")
    changes = {"establishment": record_changes(made), "firm": firm_changes(made)}
    curves, summary, gaps, broken = all_losses(made, changes, tell)
    tell("workloads")
    workloads = [row for scheme in SPLITTING for row in workload_rows(made, scheme)]
    tell("figure")
    return Reproduction(
        name="split-fig5",
        title="What establishments and firms lose, by policy and in fact",
        source="[S] Seeman, Sexton, Pujol, Machanavajjhala, section 6.4, Figure 5",
        setting=SETTING,
        data=data_note(establishments.REAL, establishments.FILE),
        runs=runs,
        seed=seed,
        claims=claims(curves, summary, gaps, broken, workloads),
        tables={"curves": curves, "summary": summary, "gaps": gaps, "workloads": workloads},
        shown=("gaps", "summary", "workloads"),
        pictures=pictures(curves),
        numbers={"establishments": len(made.records), "firms": len(starts_of(made)), "exceptions": broken},
    )


def all_losses(
    made: Tables, changes: dict[str, Changes], tell: Tell
) -> tuple[list[Row], list[Row], list[Row], dict[str, int]]:
    """The curves, their summary, the gaps, and how often a bound is broken, over all schemes."""
    curves, summary, gaps, broken = [], [], [], dict[str, int]()
    several = np.diff(starts_of(made), append=len(made.records)) > 1
    for scheme in SPLITTING:
        tell(f"{scheme} splitting")
        found = list(scheme_losses(made, changes, scheme))
        for unit, kind, losses in found:
            curves += curve_rows(unit, scheme, kind, losses)
            if unit == "firm":
                curves += curve_rows("chain", scheme, kind, losses[several])
            summary.append(summary_row(unit, scheme, kind, losses, several))
        gaps.append(gap_row(scheme, {(unit, kind): losses for unit, kind, losses in found}, several))
        broken = {name: broken.get(name, 0) + count for name, count in exceptions(found).items()}
    return curves, summary, gaps, broken


def workload_rows(made: Tables, scheme: str) -> Iterator[Row]:
    """How far the policy is above the realized loss as finer tables are added, and as the county totals are.

    The same noise in every table; over the establishments that are in a query of the first one, cells being asked from ``LEAST``.
    The total of a county is asked of every establishment: it closes the gap instead.
    """
    paid = np.asarray(split_policy(scheme, BUDGET, tight=False).loss(made.records.measures))
    inside = made.levels[0].query != OUTSIDE
    one_table = record_changes(made, 1).losses(scheme, BUDGET)
    for levels in range(1, len(made.levels) + 1):
        lost = record_changes(made, levels).losses(scheme, BUDGET)
        promised = paid * levels / len(made.levels)
        totals = paid / len(made.levels)
        yield {
            "scheme": scheme,
            "tables": 4 * levels,
            "ratio_50": float(np.median(promised[inside] / lost[inside])),
            "ratio_50_with_county_totals": float(np.median((promised + totals)[inside] / (lost + one_table)[inside])),
        }


def gap_row(scheme: str, losses: dict[tuple[str, str], np.ndarray], several: np.ndarray) -> Row:
    """How far the policy is above the realized loss, and for how many firms of several establishments Lemma 5 is the smaller."""
    policy, lost = losses["establishment", "policy, pieces"], losses["establishment", "realized"]
    ratio = policy[lost > 0] / lost[lost > 0]
    quantiles = dict(zip(("ratio_25", "ratio_50", "ratio_75"), np.quantile(ratio, (0.25, 0.5, 0.75)).tolist()))
    finer = losses["firm", "pieces, advanced"][several] < losses["firm", "pieces, simple"][several]
    return {
        "scheme": scheme,
        **quantiles,
        "share_below_half_of_policy": float(np.mean(lost < policy / 2)),
        "share_in_no_query": float(np.mean(lost == 0)),
        "chains_where_lemma_5_is_smaller": float(np.mean(finer)) if len(finer) else 0.0,
    }


def starts_of(made: Tables) -> np.ndarray:
    return firm_starts(made.records.firm[made.by_firm])


def scheme_losses(made: Tables, changes: dict[str, Changes], scheme: str) -> Iterator[Curve]:
    """Every loss of one scheme: by unit and kind."""
    policies = {"pieces": False, "tight": True}
    losses = {
        name: np.asarray(split_policy(scheme, BUDGET, tight=tight).loss(made.records.measures))
        for name, tight in policies.items()
    }
    starts = starts_of(made)
    for name, paid in losses.items():
        yield "establishment", f"policy, {name}", paid
        bounds = BOUNDS if name == "pieces" else {"tight": BOUNDS["tight"]}
        for bound, joined in bounds.items():
            yield "firm", f"{name}, {bound}", joined(paid[made.by_firm], starts)
    for unit, changed in changes.items():
        yield unit, "realized", changed.losses(scheme, BUDGET)


def exceptions(found: list[Curve]) -> dict[str, int]:
    """How many units break what must hold for each of them."""
    losses = {(unit, kind): values for unit, kind, values in found}
    pairs = {
        "tight policy above pieces": (
            ("establishment", "policy, tight"),
            ("establishment", "policy, pieces"),
            ROUNDING,
        ),
        "realized above tight policy": (("establishment", "realized"), ("establishment", "policy, tight"), ROUNDING),
        "firm realized above tight bound": (("firm", "realized"), ("firm", "tight, tight"), ROUNDING),
        "tight bound above simple": (("firm", "pieces, tight"), ("firm", "pieces, simple"), ROUNDING),
        "tight bound above advanced": (("firm", "pieces, tight"), ("firm", "pieces, advanced"), ROUNDING),
    }
    return {name: int(np.sum(losses[low] > losses[high] * slack)) for name, (low, high, slack) in pairs.items()}


def curve_rows(unit: str, scheme: str, kind: str, losses: np.ndarray) -> list[Row]:
    setting = {"unit": unit, "scheme": scheme, "kind": kind}
    shares = loss_cdf(losses, EDGES).tolist()
    return [{**setting, "loss": edge, "share_at_most": part} for edge, part in zip(EDGES.tolist(), shares)]


def summary_row(unit: str, scheme: str, kind: str, losses: np.ndarray, several: np.ndarray) -> Row:
    """Quantiles, shares above the budget and ten times it, and for firms the geometric mean over those with several records."""
    quantiles = dict(zip(("loss_50", "loss_90", "loss_99"), np.quantile(losses, (0.5, 0.9, 0.99)).tolist()))
    above = {f"share_above_{limit}": float(np.mean(losses > limit * ROUNDING)) for limit in (1, 10)}
    chains = losses[several] if unit == "firm" else np.array([])
    chains = chains[chains > 0]
    mean = float(np.exp(np.mean(np.log(chains)))) if len(chains) else ""
    return {
        "unit": unit,
        "scheme": scheme,
        "kind": kind,
        **quantiles,
        **above,
        "largest": float(losses.max()),
        "mean_of_chains": mean,
    }
