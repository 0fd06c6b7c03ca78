"""What [S] shows in Figure 5, and what we find."""

from collections.abc import Sequence
from typing import Any

from experiments.frame import Claim

Row = dict[str, Any]
READING = "our reading of what the figure is to show"


def claims(summary: Sequence[Row], broken: dict[str, int]) -> list[Claim]:
    return [ordered(broken), most_pay_the_budget(summary), far_below(summary), firms(summary), group_bounds(summary)]


def of(summary: Sequence[Row], unit: str, kind: str) -> dict[str, Row]:
    return {row["scheme"]: row for row in summary if row["unit"] == unit and row["kind"] == kind}


def ordered(broken: dict[str, int]) -> Claim:
    worst = sum(broken.values())
    return Claim(
        statement="No establishment and no firm loses more than its policy says, and the order of the bounds is kept by "
        "every one.",
        paper="the policy bounds the realized loss",
        ours="; ".join(f"{name}: {count} exceptions" for name, count in broken.items()),
        agrees=worst == 0,
        why="" if worst == 0 else "A bound is exceeded: this would be an error of ours.",
    )


def most_pay_the_budget(summary: Sequence[Row]) -> Claim:
    found = of(summary, "establishment", "policy, pieces")
    shares = {scheme: 1 - row["share_above_1"] for scheme, row in found.items()}
    good = shares["Conservative"] > 0.95 and shares["Moderate"] > 0.5
    return Claim(
        statement="At budget 1 most establishments pay no more than 1 under the Conservative and the Moderate scheme.",
        paper=READING,
        ours="share at or below 1 by pieces: " + ", ".join(f"{scheme} {part:.1%}" for scheme, part in shares.items()),
        agrees=good,
        why="Under the Median scheme most pay more: a record is one piece only if all three values are below their "
        "medians."
        if good
        else "Fewer do than expected.",
    )


def far_below(summary: Sequence[Row]) -> Claim:
    paper, realized = of(summary, "establishment", "policy, pieces"), of(summary, "establishment", "realized")
    pairs = {scheme: (row["loss_50"], realized[scheme]["loss_50"]) for scheme, row in paper.items()}
    good = all(policy > fact for policy, fact in pairs.values())
    return Claim(
        statement="Realized losses are well below the policy.",
        paper=READING,
        ours="median loss by policy and in fact: "
        + ", ".join(f"{scheme} {policy:.2g} and {fact:.2g}" for scheme, (policy, fact) in pairs.items()),
        agrees=good,
        why="Counting pieces rounds up, and cells with fewer than 100 establishments are not asked."
        if good
        else "They are not.",
    )


def firms(summary: Sequence[Row]) -> Claim:
    units, owners = of(summary, "establishment", "policy, pieces"), of(summary, "firm", "pieces, tight")
    told = ", ".join(
        f"{scheme} {units[scheme]['share_above_10']:.1%} of establishments and {owners[scheme]['share_above_10']:.1%} of "
        "firms"
        for scheme in units
    )
    close = all(abs(owners[name]["share_above_10"] - units[name]["share_above_10"]) < 0.05 for name in units)
    largest = max(owners.values(), key=lambda row: row["largest"])
    return Claim(
        statement="Most firms are one establishment, so the distribution over firms is close to that over "
        "establishments; chains pay far more.",
        paper=READING,
        ours=f"loss above 10: {told}; the largest firm loss is {largest['largest']:.2g} ({largest['scheme']})",
        agrees=close,
        why="" if close else "The shares above 10 differ by more than five points.",
    )


def group_bounds(summary: Sequence[Row]) -> Claim:
    means = {scheme: chain_means(summary, scheme) for scheme in of(summary, "firm", "realized")}
    good = all(found["tight"] <= min(found["simple"], found["advanced"]) for found in means.values())
    told = "; ".join(
        f"{scheme}: " + ", ".join(f"{kind} {value:.3g}" for kind, value in found.items())
        for scheme, found in means.items()
    )
    worse = [scheme for scheme, found in means.items() if found["advanced"] > found["simple"]]
    limits = f"Not under {' and '.join(worse)}: where losses are nearly equal Lemma 5 is the larger. " if worse else ""
    return Claim(
        statement="For firms with several establishments Lemma 5 (advanced) improves on Lemma 4 (simple).",
        paper="Lemma 5 is introduced as the finer bound; the square of the sum of roots (tight) is ours",
        ours=f"geometric mean over those firms: {told}",
        agrees=not worse,
        why=limits
        + ("The tight bound is the smallest of the three." if good else "The tight bound is not the smallest."),
    )


def chain_means(summary: Sequence[Row], scheme: str) -> dict[str, float]:
    found = {
        kind: of(summary, "firm", f"pieces, {kind}")[scheme]["mean_of_chains"]
        for kind in ("simple", "advanced", "tight")
    }
    return found | {"realized": of(summary, "firm", "realized")[scheme]["mean_of_chains"]}
