"""Why a column may hold less often than stated, or over two points more often: the words next to it, and how far."""

from dataclasses import dataclass

from experiments.coverage.lines import LEVEL, Line

ABOVE = 0.02
NEAR_ZERO = 10
"""Totals up to this are near 0 under the transforms of the README and the tutorial, whose offsets are in the thousands."""
SELECTED_NEAR = 10
"""Counts up to this are near the thresholds of the selections here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """What is printed next to a number outside the promise, and what the slow test still holds it to."""

    mark: str
    words: str
    least: float = 1.0
    """The lowest share that the reason covers; the level where this is above it."""
    most: float = 0.0
    """The highest share that the reason covers; two points above the level where this is below it."""


STEPS = Reason(
    mark="w",
    words="whole numbers: one step shorter, it would hold less often than stated",
    most=1.0,
)
CUT = Reason(
    mark="z",
    words="cut at 0: a number at or near 0 is never missed from below",
    most=0.99,
)
CORNERS = Reason(
    mark="c",
    words="made of two intervals, of which one must miss",
    most=1.0,
)
PARTS = Reason(mark="p", words="intervals of all parts, each at a share of the misses, added up", most=1.0)
BOX = Reason(
    mark="b",
    words="two intervals end to end: where one misses, both together mostly hold",
    most=1.0,
)
CURVE = Reason(
    mark="q",
    words="counts pass a quantile by whole records, at grid points, from the first to the last crossing",
    most=1.0,
)
TWO_SIDES = Reason(mark="s", words="positive and negative part, each at (1 + level)/2", most=1.0)
FIRST_RECORD = Reason(
    mark="k", words="given that the key is published: whole numbers, cut at the first record", most=1.0
)
HALF_STEP = Reason(
    mark="h",
    words="half a lattice step is added ([T-HALFSTEP](theory/fits.md))",
    most=1.0,
)
NOT_SURPRISING = Reason(
    mark="t",
    words="the totals under which the fit is not surprising, none of them below 0 ([T-MOVED](theory/fits.md))",
    most=1.0,
)
OWN_ANSWER = Reason(
    mark="o",
    words="contains the interval of the cell's own answer",
    most=1.0,
)
NO_LESS = Reason(
    mark="f",
    words="that of the best estimate, cut at 0 and widened to hold the value ([T-CUT](theory/postprocess.md))",
    most=1.0,
)
REASONS = {
    each.mark: each.words
    for each in (
        *(STEPS, CUT, CORNERS, PARTS, BOX, CURVE, TWO_SIDES),
        *(FIRST_RECORD, HALF_STEP, NOT_SURPRISING, OWN_ANSWER, NO_LESS),
    )
}
"""The words of every mark."""
ONE_SET = (
    *("Gaussian, sigma 1", "Gaussian, sigma 30", "UnitSplit at 20 (demo, tutorial)"),
    *("LogTransform, offset 10, sigma .2", "RootTransform 2, sigma .5"),
)
"""Noise under which a ratio has one set of its own where the denominator is large enough; fat-tailed noise has none."""
ONE_SET_FROM = {"average": 100, "ratio": 10_000, "ratio of a combination": 10_000, "ratio, both transformed": 10_000}
"""The sizes from which on the denominators here are large enough: of a hundred records, or of 251 units."""
COARSE = ("Gaussian, sigma .365", "Gaussian, sigma 1", "Gaussian, sigma 2")


def reason(line: Line) -> Reason | None:
    """Why the line may be outside the promise; None where it may not."""
    if line.column.startswith("fit"):
        return NO_LESS
    if line.column.startswith("best"):
        return _of_best(line)
    if line.column.startswith("quantile"):
        return CURVE
    if "change of" in line.column:
        return _of_change(line)
    return _of_drawn(line)


def _of_best(line: Line) -> Reason | None:
    if line.mechanism in COARSE:
        return HALF_STEP
    if line.mechanism == "Transform":
        return OWN_ANSWER
    return NOT_SURPRISING if "Transform" in line.mechanism else None


def _of_change(line: Line) -> Reason | None:
    if line.level < LEVEL:
        return BOX
    if line.column.startswith("percentage") and line.size < ONE_SET_FROM["ratio"]:
        return CORNERS
    if line.column.startswith("percentage") and line.mechanism in COARSE:
        return HALF_STEP
    return STEPS if _short_by_a_step(line) else None


def _of_drawn(line: Line) -> Reason | None:
    transform = "Transform" in line.mechanism
    if line.column == "average" or line.column.startswith("ratio"):
        return CORNERS if line.mechanism not in ONE_SET or line.size < ONE_SET_FROM[line.column] else None
    if line.column == "combination" and "Gaussian, sigma" not in line.mechanism:
        return PARTS
    if line.column == "signed sum" and transform:
        return TWO_SIDES
    if line.column == "selected count":
        return FIRST_RECORD if line.size <= SELECTED_NEAR else None
    if transform and line.size <= NEAR_ZERO:
        return CUT
    return STEPS if _short_by_a_step(line) else None


def _short_by_a_step(line: Line) -> bool:
    """Whether an interval that is shorter by a step at both ends would be too short."""
    return line.inside < line.level * line.cells
