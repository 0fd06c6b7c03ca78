"""The mechanisms of the table: the slides' and ours, and the rest of the library at the same variance."""

from functools import cache

import recordwise as rw
from experiments.slow_mechanisms import AT_TOTAL, MEASURE, VARIANCE, Entry, entries, transformation


@cache
def catalogue() -> tuple[Entry, ...]:
    goal = {"variance": VARIANCE, "at_total": AT_TOTAL}
    split = rw.UnitSplit(at=10, variance=VARIANCE)
    pareto = rw.Polylog(power=1, rate=5, offset=1, variance=VARIANCE)
    further = (
        Entry(
            key="split",
            label="unit splitting at 10, the paper's policy",
            order="square",
            kind="additive",
            mechanism=split,
            policy=split.policy(MEASURE, tight=False),
            ours=True,
        ),
        Entry(
            key="pareto",
            label="polylog, power 1, rate 5, tight policy",
            order="logarithm",
            kind="additive",
            mechanism=pareto,
            policy=pareto.policy(MEASURE),
            ours=True,
        ),
        transformation(
            "square_root", "square root, offset 1", "linear", rw.RootTransform(degree=2, offset=1, **goal), ours=True
        ),
    )
    return entries() + further
