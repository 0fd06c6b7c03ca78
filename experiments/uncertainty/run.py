"""Error of the sum against the worst cell, as the number of cells grows."""

from dataclasses import asdict

from experiments.frame import Reproduction, Tell
from experiments.uncertainty.claims import claims
from experiments.uncertainty.constructions import DELTA, EPSILON, RHO
from experiments.uncertainty.measuring import CELLS, measured
from experiments.uncertainty.pictures import pictures

RUNS = 400
STEPS = len(CELLS) + 1
SETTING = (
    f"Tables of 10 to 30,000 cells: empty, one cell of ln(d)/epsilon (hard), all full (easy). Privacy: epsilon = {EPSILON:g}, "
    f"rho = {RHO:g}, or epsilon = {EPSILON:g} with delta = {DELTA:g}. These settings are ours.",
    "Cells first: noise on every cell, cut at zero. Sum first: half of the privacy on the sum, half on the cells, then the nearest "
    "nonnegative table with that sum. Bounded noise is our construction for a delta; the paper's is in its supplement.",
    "Lower bounds are T-UNCERTAIN, upper bounds T-POINT-FIRST, T-SUM-FIRST and T-BOUNDED of docs/theory/uncertainty.md.",
)


def reproduce(*, runs: int, seed: int, tell: Tell, sizes: tuple[int, ...] = CELLS) -> Reproduction:
    """All of it; fewer ``sizes`` for a quick look."""
    lines = measured(runs=max(runs, 2), seed=seed, tell=tell, sizes=sizes)
    tell("drawing the pictures")
    return Reproduction(
        name="uncertainty",
        title="A private table cannot be right in every cell and in the sum",
        source="[A] Abowd et al., An Uncertainty Principle is a Price of Privacy-Preserving Microdata (2021), Theorems 3 and 4",
        setting=SETTING,
        data="No data: the tables are made by rule.",
        runs=runs,
        seed=seed,
        claims=claims(lines),
        tables={"errors": [asdict(line) for line in lines]},
        pictures=pictures(lines),
        shown=("errors",),
    )
