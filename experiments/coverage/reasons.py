"""Why a column may hold less often than it states, or more than two points more often: the words beside the number, and how far."""

from dataclasses import dataclass

from experiments.coverage.lines import Line

ABOVE = 0.02


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
    words="whole numbers: shorter by one step at both ends, the interval holds less often than stated",
    most=1.0,
)
CUT = Reason(mark="0", words="cut at 0: an exact number at or near 0 cannot be missed from below", most=0.985)
CORNERS = Reason(mark="c", words="two intervals at (1 + level)/2 each: it misses only if one of them does", most=1.0)
PARTS = Reason(mark="p", words="intervals of all parts, each at a share of the misses, added up", most=1.0)
BOX = Reason(
    mark="b", words="two intervals at (1 + level)/2 each, subtracted: it misses only if one of them does", most=1.0
)
CURVE = Reason(
    mark="q", words="from the first to the last crossing of a noisy curve, and ends are points of a grid", most=1.0
)
BOOTSTRAP = Reason(
    mark="f",
    words="approximate: noise is drawn around the fitted value, which nonnegativity pulls",
    least=0.3,
    most=1.0,
)


def reason(line: Line) -> Reason | None:
    """Why the line may be outside the promise; None where it may not."""
    column, transform = line.column, "Transform" in line.mechanism
    if column.startswith("fit"):
        return BOOTSTRAP
    if column.startswith("best"):
        return None
    if "quantile" in column:
        return CURVE
    if "change of" in column:
        return STEPS if line.inside < line.level * line.cells else BOX
    if column in ("average", "ratio", "ratio of a combination"):
        return CORNERS
    if column == "combination" and "Gaussian, s" not in line.mechanism:
        return PARTS
    if column == "signed sum" and transform:
        return CORNERS
    if transform and line.size <= 10:
        return CUT
    return STEPS if line.inside < line.level * line.cells else None
