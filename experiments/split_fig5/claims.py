"""What section 6.4 of [S] says about Figure 5, and what we find."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from experiments.frame import Claim

Row = dict[str, Any]
SAID = "section 6.4"
OURS = "not in the text: our question"


def claims(
    curves: Sequence[Row],
    summary: Sequence[Row],
    gaps: Sequence[Row],
    broken: dict[str, int],
    workloads: Sequence[Row],
) -> list[Claim]:
    return [
        ordered(broken),
        far_below(gaps),
        gap_falls(gaps),
        gap_grows(workloads),
        firms(curves),
        group_bounds(gaps),
        tight_bound(summary),
        most_pay_the_budget(summary),
    ]


def of(summary: Sequence[Row], unit: str, kind: str) -> dict[str, Row]:
    return {row["scheme"]: row for row in summary if row["unit"] == unit and row["kind"] == kind}


def ordered(broken: dict[str, int]) -> Claim:
    worst = sum(broken.values())
    return Claim(
        statement="No establishment and no firm loses more than its policy says, and the order of the bounds is kept by "
        "every one.",
        paper=f"{SAID} and inequality (10): the realized loss is at most the policy loss, by construction",
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
        paper=OURS,
        ours="share at or below 1 by pieces: " + ", ".join(f"{scheme} {part:.1%}" for scheme, part in shares.items()),
        agrees=good,
        why="Under the Median scheme most pay more: a record is one piece only if all three values are below their "
        "medians."
        if good
        else "Fewer do than expected.",
    )


def far_below(gaps: Sequence[Row]) -> Claim:
    least = min(row["share_below_half_of_policy"] for row in gaps)
    return Claim(
        statement="For the majority of establishments the realized loss is well below the policy.",
        paper=f"{SAID}: significantly lower",
        ours="share whose realized loss is below half of the policy: "
        + ", ".join(f"{row['scheme']} {row['share_below_half_of_policy']:.1%}" for row in gaps),
        agrees=least > 0.5,
        why="Counting pieces rounds up, joint pieces charge every sum for the largest, and cells with fewer than 100 "
        "establishments are not asked."
        if least > 0.5
        else "Not under every scheme.",
    )


def gap_falls(gaps: Sequence[Row]) -> Claim:
    """The schemes are listed from large thresholds to small ones."""
    falling = all(low["ratio_50"] > high["ratio_50"] for low, high in pairwise(gaps))
    return Claim(
        statement="The smaller the thresholds, the smaller the gap between policy and realized loss.",
        paper=SAID,
        ours="policy over realized loss, median over establishments in a query: "
        + ", ".join(f"{row['scheme']} {row['ratio_50']:.3g}" for row in gaps),
        agrees=falling,
        why="" if falling else "The medians are not in that order.",
    )


def gap_grows(workloads: Sequence[Row]) -> Claim:
    """Tables are added from coarse to fine."""
    found = {row["scheme"]: [each for each in workloads if each["scheme"] == row["scheme"]] for row in workloads}
    growing = all(low["ratio_50"] < high["ratio_50"] for own in found.values() for low, high in pairwise(own))
    closer = all(own[-1]["ratio_50_with_county_totals"] < own[-1]["ratio_50"] for own in found.values())
    return Claim(
        statement="The gap between policy and realized loss grows with the number of queries in the workload.",
        paper=f"{SAID}: expected for the whole workload, not only county tables",
        ours="policy over realized loss, median over establishments in the first table, with one and with all five levels: "
        + ", ".join(
            f"{scheme} {own[0]['ratio_50']:.3g} and {own[-1]['ratio_50']:.3g}" for scheme, own in found.items()
        ),
        agrees=growing,
        why=(
            "Finer tables have cells that are too small to be asked, for which the policy charges and nothing is lost. "
            + ("Tables that ask of everyone, such as county totals, close the gap instead." if closer else "")
        )
        if growing
        else "It does not grow with every level.",
    )


def firms(curves: Sequence[Row]) -> Claim:
    """The firms' distribution function under Lemma 4 beside the establishments', at every loss."""
    gaps = {}
    for scheme in dict.fromkeys(row["scheme"] for row in curves):
        units, owners = (
            shares(curves, unit, scheme, kind)
            for unit, kind in (("establishment", "policy, pieces"), ("firm", "pieces, simple"))
        )
        gaps[scheme] = [a - b for a, b in zip(units, owners, strict=True)]
    below = all(min(each) >= -CLOSE for each in gaps.values())
    near = all(max(each) < 0.2 for each in gaps.values())
    return Claim(
        statement="The distribution over firms looks like that over establishments and lies slightly below it.",
        paper=f"{SAID}: most establishments have an id of their own",
        ours="establishments less firms, over all losses: "
        + ", ".join(f"{scheme} from {min(each):.1%} to {max(each):.1%}" for scheme, each in gaps.items()),
        agrees=below and near,
        why="Our firms are made up, so how far below is ours."
        if below and near
        else "The firms of our data are made up: chains hold many large establishments, which weigh more among establishments than "
        "among firms.",
    )


CLOSE = 0.005


def shares(curves: Sequence[Row], unit: str, scheme: str, kind: str) -> list[float]:
    return [row["share_at_most"] for row in curves if (row["unit"], row["scheme"], row["kind"]) == (unit, scheme, kind)]


def group_bounds(gaps: Sequence[Row]) -> Claim:
    found = {row["scheme"]: row["chains_where_lemma_5_is_smaller"] for row in gaps}
    good = all(0 < share < 1 for share in found.values())
    return Claim(
        statement="Lemma 5 improves on Lemma 4 for some groups, those with unequal losses, and not for all.",
        paper="appendix A.4: for J = 2, unequal losses and a favorable order; otherwise Lemma 4 is the tighter one",
        ours="Lemma 5 is the smaller for "
        + ", ".join(f"{share:.1%} ({scheme})" for scheme, share in found.items())
        + " of the firms with several establishments",
        agrees=good,
        why="The lemma as printed needs very unequal losses (docs/paper-map.md)."
        if good
        else "It is the same for all.",
    )


def tight_bound(summary: Sequence[Row]) -> Claim:
    means = {scheme: chain_means(summary, scheme) for scheme in of(summary, "firm", "realized")}
    good = all(found["tight"] <= min(found["simple"], found["advanced"]) for found in means.values())
    return Claim(
        statement="Our addition: the square of the sum of roots is the smallest of the three bounds for a firm.",
        paper="not in the text (T-GROUP)",
        ours="geometric mean over firms with several establishments: "
        + "; ".join(
            f"{scheme}: " + ", ".join(f"{kind} {value:.3g}" for kind, value in found.items())
            for scheme, found in means.items()
        ),
        agrees=good,
        why="" if good else "It is not.",
    )


def chain_means(summary: Sequence[Row], scheme: str) -> dict[str, float]:
    found = {
        kind: of(summary, "firm", f"pieces, {kind}")[scheme]["mean_of_chains"]
        for kind in ("simple", "advanced", "tight")
    }
    return found | {"realized": of(summary, "firm", "realized")[scheme]["mean_of_chains"]}
