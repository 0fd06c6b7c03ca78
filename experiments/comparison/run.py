"""Five older rules and three plans on the same tables: usable cells beside what an attacker can tell."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import recordwise as rw
from experiments.comparison.tables import DIGITS, FILE, Tables, generated, real
from experiments.frame import COLORS, DASHES, Claim, Picture, Reproduction, Tell, data_note, new_figure, tidy
from recordwise.disclosure import (
    Coarsening,
    PercentRule,
    Ranges,
    Rounding,
    Suppression,
    ThresholdRule,
    feasible_intervals,
    largest_contributor,
)
from recordwise.noise import Seeded
from recordwise.planning import evaluate

RUNS, FEWEST, STEPS = 500_000, 20_000, 13
"""Generated establishments of all states, and the fewest that fill some cells."""
PERCENT = 10
RULES = (PercentRule(PERCENT), ThresholdRule(3))
SUPPRESSION, MULTIPLIED = "suppression", "multiplicative noise"
METHODS: Mapping[str, Any] = {
    SUPPRESSION: Suppression(RULES),
    "coarsening": Coarsening(RULES, along="naics"),
    "rounding to 10": Rounding(10),
    "ranges": Ranges(RULES),
}
FACTORS = (0.1, 0.2)
OFFSET, SIGMAS = 100, ("0.02", "0.05", "0.15")
DRAWS = 5
EDGES = (10.0, 50.0, 250.0, 1000.0)
CLASSES = ("1 to 9", "10 to 49", "50 to 249", "250 to 999", "1,000 or more")
MOST = 60
"""Cells attacked whose largest establishment is of one size."""
CLOSE = 0.1
SLACK = 1e-4
SETTING = (
    "Employment of one state by county and sector, county and three-digit industry, with all totals. Cells are those of counties "
    "by three-digit industries with an establishment. A cell is usable if it is published and off by at most a tenth.",
    f"Rules: p% with p = {PERCENT}, and at least three contributors. Suppression with complementary cells; coarsening along "
    "industries; sensitive cells as ranges; one factor of 10 to 20 % up or down for each establishment, the same in all tables.",
    "The attacker of an older rule is the second largest establishment of a cell, who knows its own employment and all "
    "published tables; its interval for the largest one is certain. The attacker of a plan knows all other records, and names "
    "a range that is right with probability 95 % whatever the value is: no one does better than the window shown (T-INFER).",
    f"Plans: noise on a logarithmic scale (offset {OFFSET}), the loss divided equally among four tables. The settings are ours.",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One method."""

    method: str
    usable: float
    withheld: float
    withheld_total: float
    widths: tuple[float, ...]
    """The median width of the attacker's interval relative to the value, by size; NaN without such an establishment."""
    close: float
    """The share of attacked establishments that are known to within a tenth."""

    def shown(self) -> dict[str, object]:
        """The row of the table, as shares."""
        head = {"method": self.method, "usable": self.usable, "withheld": self.withheld}
        widths = dict(zip((f"width, {each}" for each in CLASSES), self.widths))
        found = head | {"withheld total": self.withheld_total} | widths | {"known to a tenth": self.close}
        return {key: each if isinstance(each, str) else float(f"{each:.3g}") for key, each in found.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """The cells that are attacked, and the size class of the largest establishment of each."""

    cells: Any
    classes: Any
    largest: Any

    @classmethod
    def chosen(cls, given: Tables, seed: int) -> "Targets":
        """At most so many cells of each class, at random."""
        shuffled = np.random.default_rng(seed).permutation(given.finest)
        place = np.searchsorted(EDGES, given.found.largest[shuffled], side="right")
        kept = np.concatenate([np.flatnonzero(place == each)[:MOST] for each in range(len(CLASSES))])
        return cls(shuffled[kept], place[kept], given.found.largest[shuffled[kept]])

    def medians(self, values: Any) -> tuple[float, ...]:
        """The median of each class; NaN if it is empty."""
        own = [values[self.classes == each] for each in range(len(CLASSES))]
        return tuple(float(np.median(each)) if len(each) else float("nan") for each in own)


def older(given: Tables, targets: Targets, name: str, seed: int) -> tuple[Row, Any]:
    """What a method publishes and leaves to be told; every interval holds the truth."""
    if name == MULTIPLIED:
        value = multiplied(given, seed)
        low, high = value / (1 + FACTORS[1]), value / (1 - FACTORS[1])
    else:
        published = METHODS[name].publish(given.cells, given.found, seed)
        value, low, high = published.value, published.low, published.high
    ends = feasible_intervals(given.cells.system(low, high), targets.cells)
    number, second = given.found.number[targets.cells], given.found.second[targets.cells]
    lower, upper = largest_contributor(*ends, number, second)
    assert np.all((lower <= targets.largest + SLACK) & (targets.largest <= upper + SLACK)), name
    width = (upper - lower) / targets.largest
    exact, shown = given.found.total[given.finest], value[given.finest]
    usable, gone = np.abs(shown - exact) <= CLOSE * exact, np.isnan(shown)
    row = Row(
        name,
        float(usable.mean()),
        float(gone.mean()),
        float(exact[gone].sum() / exact.sum()),
        targets.medians(width),
        float(np.mean(width <= 2 * CLOSE)),
    )
    return row, upper


def multiplied(given: Tables, seed: int) -> Any:
    """All cells after each establishment was multiplied by its factor."""
    rng, emp = np.random.default_rng(seed), given.emp
    away = rng.uniform(*FACTORS, len(emp)) * rng.choice([-1, 1], len(emp))
    return sum(np.bincount(each, weights=emp * (1 + away), minlength=len(given.cells)) for each in given.within)


def plans(given: Tables, targets: Targets, seed: int) -> list[Row]:
    """Three plans: the share of usable cells, and windows for the median establishment of each class."""
    pairs = given.records.group_by(["county", "naics"]).aggregate([]).select(["county", "naics"])
    keys = rw.Keys.of(pairs)
    asked = rw.query().levels(rw.prefix("county", [2, 5])).levels(rw.prefix("naics", list(DIGITS)), keys=keys)
    found = []
    columns = {"county": "text", "naics": "text"}
    with rw.Session(given.records, unit="estab_id", measures={"emp": 1}, columns=columns, tuned_on="public") as session:
        for sigma in SIGMAS:
            plan = asked.sum("emp", rw.LogTransform(offset=OFFSET, sigma=sigma), alias="emp")
            release = session.run(plan, rng=Seeded(seed))
            result = evaluate(session, plan, metric="off_by_a_tenth", draws=DRAWS, seed=seed, data="public")
            usable = 1 - next(iter(result.at(*result.places()[-1]).values())).value
            loss = float(release.policy.loss({"emp": float(np.median(given.emp))}))
            widths = np.array([window(release, size) for size in targets.medians(targets.largest)])
            close = float(np.mean(widths[targets.classes] <= 2 * CLOSE))
            found.append(Row(f"noise, median loss {loss:.2g}", usable, 0.0, 0.0, tuple(widths.tolist()), close))
    return found


def window(release: rw.Release, size: float) -> float:
    """The width of the window for an establishment of a size, relative to the size."""
    if np.isnan(size):
        return size
    assert release.values is not None
    found = release.values.window({"emp": int(size)}, "emp")
    return float("inf") if found.high is None else float(found.high - found.low) / int(size)


def compared(given: Tables, seed: int, tell: Tell) -> tuple[list[Row], list[Claim]]:
    """All methods on the same tables."""
    targets, rows = Targets.chosen(given, seed), list[Row]()
    upper: dict[str, Any] = {}
    for name in (*METHODS, MULTIPLIED):
        tell(f"{given.name}: {name}")
        row, upper[name] = older(given, targets, name, seed)
        rows.append(row)
    tell(f"{given.name}: plans")
    rows += plans(given, targets, seed)
    kept = int(np.sum(upper[SUPPRESSION] >= (1 + PERCENT / 100) * targets.largest - SLACK))
    count = len(targets.cells)
    return rows, [
        Claim(
            statement=f"{given.name}: every interval of the attack holds the truth (ours)",
            paper="ours, not from a paper",
            ours=f"{count * len(upper):,} of {count * len(upper):,}",
            agrees=True,
        ),
        Claim(
            statement=f"{given.name}: after suppression nobody's upper estimate of the largest is within {PERCENT} % of it (ours)",
            paper="the p% rule",
            ours=f"{kept:,} of {count:,}",
            agrees=kept == count,
            why="" if kept == count else "some cells have no pattern that protects them",
        ),
    ]


def picture(name: str, rows: list[Row]) -> Picture:
    """Widths by size on the left, usable cells on the right."""
    figure, ((left, right),) = new_figure(1, 2, size=(12.0, 5.2))
    for place, row in enumerate(rows):
        style = {"color": COLORS[place % len(COLORS)], "linestyle": DASHES[place % len(DASHES)]}
        left.plot(CLASSES, np.maximum(row.widths, 1e-3), marker="o", label=row.method, **style)
    left.set_yscale("log")
    left.axhline(2 * CLOSE, color="#999999", linewidth=1)
    left.legend(frameon=False, fontsize=8)
    left.tick_params(axis="x", labelrotation=20)
    tidy(
        left,
        title="How closely an attacker can tell",
        xlabel="employees of the largest establishment of a cell",
        ylabel="width of the interval / its employees",
    )
    names = [row.method for row in rows][::-1]
    right.barh(names, [100 * row.usable for row in rows][::-1], color=COLORS[0], label="usable")
    right.barh(
        names,
        [100 * row.withheld for row in rows][::-1],
        left=[100 * row.usable for row in rows][::-1],
        color="#BBBBBB",
        label="withheld",
    )
    right.legend(frameon=False, fontsize=8)
    tidy(right, title="What can be used", xlabel="% of the cells", ylabel="method")
    caption = (
        "Left: the median width of what an attacker can tell of the largest establishment of a cell; below the gray line it is "
        "known to within a tenth. That of the plans is for someone who knows all other records; that of the older rules for the "
        "second largest of the cell. Right: cells within a tenth, and cells withheld."
    )
    return Picture(name=name.replace(" ", "_"), figure=figure, caption=caption, alt=caption)


def reproduce(*, runs: int, seed: int, tell: Tell) -> Reproduction:
    """The table and the picture, of generated establishments and of county tables if they are there."""
    runs = max(runs, FEWEST)
    shown: dict[str, list[dict[str, object]]] = {}
    claims: list[Claim] = []
    pictures: list[Picture] = []
    tell("making tables")
    for given in (generated(runs), real()):
        if given is None:
            continue
        rows, own = compared(given, seed, tell)
        claims += own
        shown[given.name.replace(" ", "_")] = [row.shown() for row in rows]
        pictures.append(picture(given.name, rows))
    return Reproduction(
        name="comparison",
        title="Suppress, round, or add noise?",
        source="ours, of no paper",
        setting=SETTING,
        data=data_note(
            "Generated establishments, and the county tables of one state with published cells as the truth.", FILE
        ),
        runs=runs,
        seed=seed,
        claims=claims,
        tables=shown,
        pictures=pictures,
        shown=tuple(shown),
    )
