"""What [F] says, and what we find. The slides' own numbers are not at hand: claims are those of the abstract, in our words."""

from collections.abc import Mapping, Sequence

import numpy as np

from experiments.frame import Claim
from experiments.slow_cdf.losses import Distribution

NOT_AT_HAND = "a curve; its numbers are not at hand"
LIMIT = 6.1
"""Standard errors: a standard normal exceeds them once in 10^9."""
STEP = 1.01
"""How far apart the entries of a loss table may be."""


def claims(
    found: Sequence[Distribution], bias: Mapping[str, float], differs: int, realized_medians: Mapping[str, float]
) -> list[Claim]:
    by_key = {each.entry.key: each for each in found}
    return [
        giants(by_key),
        order(by_key),
        small_records(by_key),
        unbiased(bias),
        tight(by_key),
        laplace(by_key),
        realized(by_key, realized_medians),
        engine(differs),
    ]


def told(loss: float) -> str:
    return f"{loss:,.0f}" if loss >= 1000 else f"{loss:.3g}"


def giants(found: Mapping[str, Distribution]) -> Claim:
    square, slow = found["gaussian"].quantile(1), found["polylog"].quantile(1)
    return Claim(
        statement="Existing mechanisms give very large records no meaningful protection; slowly scaling ones at equal variance do.",
        paper="losses that grow with the square are unacceptably high where records vary widely",
        ours=f"largest establishment: {told(square)} with Gaussian noise, {told(slow)} with exponential polylog noise",
        agrees=square > 1000 * slow,
        why=(
            f"A loss of {told(slow)} is {square / slow:,.0f} times smaller, and still too large to be called protection by itself; "
            "larger variances bring it down."
        ),
    )


def order(found: Mapping[str, Distribution]) -> Claim:
    """At the 99.9th percentile the slower order is below the faster one, for additive and transformation mechanisms alike."""
    chains = (("gaussian", "general", "polylog"), ("identity", "root", "log"))
    top = {key: found[key].quantile(0.999) for chain in chains for key in chain}
    good = all(top[a] > top[b] > top[c] for a, b, c in chains)
    return Claim(
        statement="In the tail the curves lie in the order of their growth: square, square root, squared logarithm.",
        paper=NOT_AT_HAND,
        ours="loss of the 99.9th percentile: "
        + "; ".join(" > ".join(f"{found[key].entry.label} {told(top[key])}" for key in chain) for chain in chains),
        agrees=good,
        why="" if good else "Two orders cross beyond the 99.9th percentile of these establishments.",
    )


def small_records(found: Mapping[str, Distribution]) -> Claim:
    slow = ("general", "root", "polylog", "log")
    medians = {key: found[key].quantile(0.5) for key in ("gaussian", *slow)}
    cheaper = [found[key].entry.label for key in slow if medians[key] <= medians["gaussian"]]
    return Claim(
        statement="Small records pay for it: at equal variance the median loss is higher under a slowly scaling mechanism.",
        paper=NOT_AT_HAND,
        ours="median: " + ", ".join(f"{found[key].entry.label} {told(value)}" for key, value in medians.items()),
        agrees=not cheaper,
        why=f"Not for {', '.join(cheaper)}: the median establishment is large enough here." if cheaper else "",
    )


def unbiased(bias: Mapping[str, float]) -> Claim:
    worst = max(bias, key=lambda key: abs(bias[key]))
    good = abs(bias[worst]) < LIMIT
    return Claim(
        statement="The releases are unbiased.",
        paper="accurate, unbiased release",
        ours=f"mean error over all cells and runs: at most {abs(bias[worst]):.1f} standard errors ({len(bias)} mechanisms)",
        agrees=good,
        why=f"Tested at {LIMIT} standard errors: one false alarm in 10^9 a mechanism." if good else f"{worst} is off.",
    )


def tight(found: Mapping[str, Distribution]) -> Claim:
    pairs = [("general", "general_tight"), ("polylog", "polylog_tight")]
    ratios = [found[b].quantile(0.5) / found[a].quantile(0.5) for a, b in pairs]
    highest = max(float(np.max(found[b].losses[1:] / found[a].losses[1:])) for a, b in pairs)
    good = highest <= STEP
    return Claim(
        statement="Our addition: the tight policy of the same additive noise is below the paper's, but for its table's steps.",
        paper="uses the pure loss f(x) - f(0) as the zCDP loss",
        ours=f"median loss {ratios[0]:.2f} (generalized Gaussian) and {ratios[1]:.2f} (polylog) of the paper's",
        agrees=good,
        why=(
            f"At most {highest:.4f} of the paper's for any establishment: between two entries of its table it takes the larger, "
            "which near the end of the table can exceed the paper's number by up to 1 %."
        ),
    )


def laplace(found: Mapping[str, Distribution]) -> Claim:
    pairs = [("root", "root_laplace"), ("log", "log_laplace")]
    tops = [(found[a].quantile(1), found[b].quantile(1)) for a, b in pairs]
    good = all(b < a for a, b in tops)
    return Claim(
        statement="Our addition: Laplace noise under the transform, at the same variance, costs the largest records less.",
        paper="Gaussian noise under the transform",
        ours="largest establishment: "
        + ", ".join(f"{name} {told(a)} to {told(b)}" for name, (a, b) in zip(("4th root", "log"), tops)),
        agrees=good,
        why="" if good else "Not for the largest establishment of this data.",
    )


def realized(found: Mapping[str, Distribution], medians: Mapping[str, float]) -> Claim:
    good = all(medians[key] <= found[key].quantile(0.5) for key in medians)
    return Claim(
        statement="Our addition: inside a filled cell a record changes a transformed total far less than the policy allows for.",
        paper="policies only",
        ours="median loss, policy and realized: "
        + ", ".join(
            f"{found[key].entry.label} {told(found[key].quantile(0.5))} and {value:.1g}"
            for key, value in medians.items()
        ),
        agrees=good,
        why="Realized losses depend on the other records; they are confidential and never a guarantee."
        if good
        else "A realized loss above its policy: a defect.",
    )


def engine(differs: int) -> Claim:
    return Claim(
        statement="A check of ours: the loss histogram computed inside the engine is that of the distinct head counts.",
        paper="none",
        ours=f"{differs} establishments in another bin",
        agrees=differs == 0,
        why="" if differs == 0 else "SQL and numpy disagree about a loss: a defect.",
    )
