"""What [A] says, and what we find."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import recordwise as rw
from experiments.frame import Claim
from experiments.uncertainty import printed
from experiments.uncertainty.constructions import DELTA, EPSILON, RHO, constructions
from experiments.uncertainty.measuring import Line

SLACK = 6.1
"""Standard errors granted to a measured error: about one false alarm in 10^9."""


def claims(lines: Sequence[Line]) -> list[Claim]:
    return [
        principle(lines),
        as_printed(promises()),
        alone(),
        point_first(lines),
        sum_first(lines),
        logarithm(lines),
        bounded(lines),
        simultaneous(lines),
    ]


def of(lines: Sequence[Line], name: str, noise: str) -> list[Line]:
    return [line for line in lines if line.construction == name and line.noise == noise]


def slope(first: float, last: float, cells: tuple[int, int]) -> float:
    return math.log(last / first) / math.log(cells[1] / cells[0])


def principle(lines: Sequence[Line]) -> Claim:
    """Measured errors are maxima over three tables, hence lower than the C and D of the theorem, which are over all tables."""
    broken = [
        f"{line.construction} ({line.noise}), {line.cells} cells"
        for line in lines
        if line.sum_upper < line.sum_lower or line.sum_error + SLACK * line.sum_error_se < line.sum_lower
    ]
    binding = sum(line.sum_lower > 0 for line in lines)
    return Claim(
        statement="No nonnegative table is right in every cell and in the sum: the lower bounds hold for every construction.",
        paper="Theorem 3, section 3.1, for pure, approximate and zero-concentrated privacy; our constants are sharper",
        ours=f"{len(lines)} settings, {binding} with a positive bound, {len(broken)} below it",
        agrees=not broken,
        why="; ".join(broken),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What one construction promises at one number of cells, beside the least D of the text and ours, all by formula."""

    name: str
    cells: int
    sum_upper: float
    as_printed: float
    ours: float


def promises() -> list[Promise]:
    """The constructions of pure and approximate privacy, at numbers of cells for which the printed bound says something."""
    found = []
    for each in constructions():
        if each.noise != "laplace":
            continue
        delta = DELTA if "bounded" in each.name else 0.0
        for cells in MANY_CELLS:
            upper = each.promised(cells)
            found.append(
                Promise(
                    name=each.name,
                    cells=cells,
                    sum_upper=upper.sum,
                    as_printed=printed.least_sum_error(
                        cells=cells, cell_error=upper.cell, epsilon=EPSILON, delta=delta
                    ),
                    ours=each.least_sum_error(cells, upper.cell),
                )
            )
    return found


MANY_CELLS = (10_000, 100_000, 1_000_000)


def as_printed(found: Sequence[Promise]) -> Claim:
    """The inequality of the text at the promised errors of the constructions, and our bound beside it."""
    broken = [each for each in found if each.sum_upper < each.as_printed]
    weaker = [each for each in found if each.ours < each.as_printed]
    binding = [each for each in found if each.as_printed > 0]
    good = bool(binding) and not broken and not weaker
    return Claim(
        statement="The printed trade-off between C and D holds for every construction, and ours implies it.",
        paper="Theorem 3, items for pure and approximate privacy; that for zCDP is in the supplement, not in the text",
        ours=f"{len(found)} settings of up to {MANY_CELLS[-1]:,} cells, by formula: the printed bound binds in {len(binding)}, "
        f"{len(broken)} promises are below it, and {len(weaker)} of our bounds",
        agrees=good,
        why="Where cells have a large error it is 0 and forbids nothing; those cases show nothing either way."
        if good
        else "A promise below the bound, a bound of ours below the printed one, or no case in which it binds.",
    )


def alone() -> Claim:
    """One record moves its cell and the sum by 1 each."""
    gaussian = 2 * float(rw.Gaussian(variance=1 / Fraction(str(RHO))).loss_at_shift(1))
    laplace = printed.answers_alone(EPSILON)
    good = math.isclose(gaussian, RHO, rel_tol=1e-6) and math.isclose(laplace, 8 / EPSILON**2)
    return Claim(
        statement="Without microdata the sum and every cell can be answered with squared error 8/epsilon^2, or 1/rho.",
        paper="sections 1 and 3.1: Delta_1 = 2, Delta_2^2 = 2",
        ours=f"Laplace noise of scale 2/epsilon has variance {laplace:g} at epsilon {EPSILON:g}; Gaussian noise of variance 1/rho "
        f"on two answers costs {gaussian:.3f} at rho = {RHO:g}",
        agrees=good,
        why="" if good else "The costs are others.",
    )


def point_first(lines: Sequence[Line]) -> Claim:
    """On the empty table E max(0, z) = b/2 and E max(0, z)^2 = b^2 for Laplace noise, so that D is known exactly."""
    ours = of(lines, "point first", "laplace")
    exact = [math.sqrt(0.75 * line.cells + line.cells**2 / 4) for line in ours]
    away = max(abs(line.sum_error - value) / line.sum_error_se for line, value in zip(ours, exact))
    power = slope(ours[0].sum_error, ours[-1].sum_error, (ours[0].cells, ours[-1].cells))
    good = away < SLACK and power > 0.9 and all(printed.tight_constants(line.cells, EPSILON) for line in ours)
    return Claim(
        statement="Cells first: the worst cell stays at 2/epsilon^2, the error of the sum grows with the number of cells.",
        paper="Theorem 4, items 1 and 2: C^2 <= 2/epsilon^2, D^2 <= 2 d^2/epsilon^2 (1/(2 rho), d^2/(2 rho))",
        ours=f"D = {ours[0].sum_error:.1f} at {ours[0].cells} cells, {ours[-1].sum_error:,.0f} at {ours[-1].cells:,} "
        f"(power {power:.2f}); within {away:.1f} standard errors of its closed form",
        agrees=good,
        why="" if good else "The measured error is not that of the closed form.",
    )


def sum_first(lines: Sequence[Line]) -> Claim:
    ours = [line for line in lines if line.construction == "sum first"]
    over = [line for line in ours if line.sum_error - SLACK * line.sum_error_se > line.sum_upper]
    return Claim(
        statement="Sum first: the error of the sum does not grow with the number of cells.",
        paper="Theorem 4, items 3 and 4: D^2 = O(1/epsilon^2) or O(1/rho)",
        ours=f"D at most {max(line.sum_error / line.sum_upper for line in ours):.3f} of its promise over {len(ours)} settings",
        agrees=not over,
        why="; ".join(f"{line.noise}, {line.cells} cells" for line in over),
    )


def logarithm(lines: Sequence[Line]) -> Claim:
    found = {noise: of(lines, "sum first", noise) for noise in ("laplace", "gaussian")}
    kept = all(line.cell_lower <= line.cell_upper for line in lines) and all(
        line.cell_error - SLACK * line.cell_error_se <= line.cell_upper for line in lines
    )
    grows = all(
        ours[-1].cell_error - ours[0].cell_error > SLACK * math.hypot(ours[0].cell_error_se, ours[-1].cell_error_se)
        for ours in found.values()
    )
    told = "; ".join(
        f"{noise} {ours[0].cell_error:.2f} to {ours[-1].cell_error:.2f} (least possible {ours[-1].cell_lower:.2f}, promised "
        f"{ours[-1].cell_upper:.1f})"
        for noise, ours in found.items()
    )
    cells = [line.cells for line in found["laplace"]]
    return Claim(
        statement="Sum first: the worst cell grows with the logarithm of the number of cells, between the bounds.",
        paper="Theorem 4, items 3 and 4: C^2 = O(log^2 d/epsilon^2) or O(log d/rho)",
        ours=f"C from {cells[0]} to {cells[-1]:,} cells: {told}",
        agrees=kept and grows,
        why="" if kept and grows else "An error outside its bounds, or no growth.",
    )


def bounded(lines: Sequence[Line]) -> Claim:
    ours = of(lines, "sum first, bounded noise", "laplace")
    good = len({line.cell_upper for line in ours}) == 1 and all(
        line.cell_error <= line.cell_upper and line.sum_error - SLACK * line.sum_error_se <= line.sum_upper
        for line in ours
    )
    return Claim(
        statement="With a delta both errors can be bounded whatever the number of cells.",
        paper="Theorem 4, item 5: C^2 = O(log^2(1/delta)/epsilon^2 + 1), D^2 = O(1/epsilon^2)",
        ours=f"C promised {ours[-1].cell_upper:.1f}, measured {ours[0].cell_error:.2f} to {ours[-1].cell_error:.2f} at delta 1e-6",
        agrees=good,
        why="The construction is ours (noise cut off on both sides), the paper's is in its supplement; the bound shows only beyond "
        "1/delta cells."
        if good
        else "Outside.",
    )


def simultaneous(lines: Sequence[Line]) -> Claim:
    ours = {name: of(lines, name, "laplace")[-1] for name in ("point first", "sum first")}
    ratios = {name: line.simultaneous / line.cell_error for name, line in ours.items()}
    good = ratios["point first"] > 2 * ratios["sum first"]
    return Claim(
        statement="The largest mean squared error of a query is the criterion, not the mean of the largest squared error.",
        paper="section 1, equation (1): simultaneous error cannot tell systematic errors from outliers",
        ours=", ".join(
            f"{name}: per query {line.cell_error:.2f}, simultaneous {line.simultaneous:.2f}"
            for name, line in ours.items()
        )
        + f" at {ours['point first'].cells:,} cells",
        agrees=good,
        why=(
            "Some cell is always far off: the simultaneous error grows with log d even where each cell is as good as can be."
            if good
            else "The two criteria do not differ."
        ),
    )
