"""What the slides of [F] say, and what we find. They have curves and no numbers."""

from collections.abc import Mapping, Sequence

import numpy as np

from experiments.frame import Claim
from experiments.slow_cdf.losses import Distribution

CURVES = "slide Privacy Loss CDFs"
CHAINS = {"additive": ("gaussian", "general", "polylog"), "transformation": ("identity", "root", "log")}
"""From the quickest to the slowest."""
LIMIT = 6.1
"""Standard errors: a standard normal exceeds them once in 10^9."""
STEP = 1.01
"""How far apart the entries of a loss table may be."""


def claims(
    found: Sequence[Distribution], bias: Mapping[str, float], differs: int, realized_medians: Mapping[str, float]
) -> list[Claim]:
    by_key = {each.entry.key: each for each in found}
    return [
        quick_then_slow(by_key),
        transformations_lose_more(by_key),
        order(by_key),
        consistent(by_key),
        giants(by_key),
        unbiased(bias),
        tight(by_key),
        laplace(by_key),
        realized(by_key, realized_medians),
        engine(differs),
    ]


def told(loss: float) -> str:
    return f"{loss:,.0f}" if loss >= 1000 else f"{loss:.3g}"


def shares_at(each: Distribution, places: np.ndarray) -> np.ndarray:
    """The share of establishments with at most each loss."""
    return np.append(0.0, each.shares)[np.searchsorted(each.losses, places, side="right")]


def crossing(quick: Distribution, slow: Distribution) -> tuple[float, bool]:
    """The loss from which on the slow curve is the higher one, and whether the quick one is never below before."""
    places = np.unique(np.concatenate([quick.losses, slow.losses]))
    lead = shares_at(slow, places) - shares_at(quick, places)
    behind = np.flatnonzero(lead < 0)
    last = int(behind[-1]) if len(behind) else -1
    return float(places[min(last + 1, len(places) - 1)]), bool(len(behind)) and bool(np.all(lead[:last] <= 0))


def quick_then_slow(found: Mapping[str, Distribution]) -> Claim:
    """In each family every slower curve starts below the quickest one and crosses it once."""
    pairs = [(chain[0], slow) for chain in CHAINS.values() for slow in chain[1:]]
    crossings = {pair: crossing(found[pair[0]], found[pair[1]]) for pair in pairs}
    good = all(once for _, once in crossings.values())
    return Claim(
        statement="At very low losses the quickly scaling mechanisms lead; the slowly scaling ones soon overtake them.",
        paper=CURVES,
        ours="the slow curve is the higher one from a loss of "
        + ", ".join(
            f"{told(at)} on ({found[slow].entry.label}; {1 - found[slow].above(at):.0%} of the establishments are below)"
            for (_, slow), (at, _) in crossings.items()
        ),
        agrees=good,
        why="" if good else "Two curves cross more than once, or not at all.",
    )


def transformations_lose_more(found: Mapping[str, Distribution]) -> Claim:
    """Kind against kind at the same order, from the median on."""
    levels = (0.5, 0.9, 0.99, 0.999, 1.0)
    pairs = list(zip(CHAINS["additive"], CHAINS["transformation"], strict=True))[1:]
    ratios = {
        pair: [found[pair[1]].quantile(level) / found[pair[0]].quantile(level) for level in levels] for pair in pairs
    }
    good = all(min(each) > 1 for each in ratios.values())
    return Claim(
        statement="At the same order transformations cost more than additive noise (from the median establishment on).",
        paper=f"{CURVES}, by the scale of the axis",
        ours="; ".join(
            f"{found[second].entry.label} against {found[first].entry.label}: {min(each):.2f} to {max(each):.2f} times"
            for (first, second), each in ratios.items()
        )
        + "; the identity transform is Gaussian noise",
        agrees=good,
        why="" if good else "An additive mechanism has the larger loss at one of the levels.",
    )


def order(found: Mapping[str, Distribution]) -> Claim:
    """At the 99.9th percentile the slower order is below the faster one, for additive and transformation mechanisms alike."""
    top = {key: found[key].quantile(0.999) for chain in CHAINS.values() for key in chain}
    good = all(top[a] > top[b] > top[c] for a, b, c in CHAINS.values())
    return Claim(
        statement="In the tail the curves lie in the order of their growth: square, square root, squared logarithm.",
        paper="slide Empirical Experiments, its table of orders",
        ours="loss of the 99.9th percentile: "
        + "; ".join(
            " > ".join(f"{found[key].entry.label} {told(top[key])}" for key in chain) for chain in CHAINS.values()
        ),
        agrees=good,
        why="" if good else "Two orders cross beyond the 99.9th percentile of these establishments.",
    )


def consistent(found: Mapping[str, Distribution]) -> Claim:
    """How far the 99.9th percentile is from the median: the slow mechanisms against the quick one of their kind."""
    spans = {key: found[key].quantile(0.999) / found[key].quantile(0.5) for chain in CHAINS.values() for key in chain}
    good = all(spans[quick] > max(spans[slow] for slow in others) for quick, *others in CHAINS.values())
    return Claim(
        statement="Slowly scaling mechanisms have more consistent losses for large and small records.",
        paper="slide Conclusion",
        ours="99.9th percentile over median: "
        + ", ".join(f"{found[key].entry.label} {told(span)}" for key, span in spans.items()),
        agrees=good,
        why="The slides do not rank the slow ones among themselves: at variance 2 the fourth root is here the steadier transform."
        if good and spans["root"] < spans["log"]
        else ""
        if good
        else "A slow mechanism has the wider span.",
    )


def giants(found: Mapping[str, Distribution]) -> Claim:
    square, slow = found["gaussian"].quantile(1), found["polylog"].quantile(1)
    return Claim(
        statement="Protection of large records is weaker, but still meaningful, at equal variance.",
        paper="slide Slowly Scaling Privacy Loss",
        ours=f"largest establishment: {told(square)} with Gaussian noise, {told(slow)} with exponential polylog noise",
        agrees=square > 1000 * slow,
        why=(
            f"A loss of {told(slow)} is {square / slow:,.0f} times smaller, and still too large to be called protection by itself; "
            "larger variances bring it down."
        ),
    )


def unbiased(bias: Mapping[str, float]) -> Claim:
    worst = max(bias, key=lambda key: abs(bias[key]))
    good = abs(bias[worst]) < LIMIT
    return Claim(
        statement="The releases are unbiased.",
        paper="slide Conclusion: unbiased mechanisms",
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
        paper="slide Additive Mechanism - I: f(r) - f(0)",
        ours=f"median loss {ratios[0]:.2f} (generalized Gaussian) and {ratios[1]:.2f} (polylog) of the paper's",
        agrees=good,
        why=(
            f"At most {highest:.4f} of the paper's for any establishment: between two entries of its table it takes the larger, "
            "which near the end of the table can exceed the paper's number by up to 1 %."
        ),
    )


def laplace(found: Mapping[str, Distribution]) -> Claim:
    pairs = [("root_offset", "root_laplace"), ("log", "log_laplace")]
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
