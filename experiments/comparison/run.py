"""Five older rules and three plans on the same tables: usable cells beside what an attacker can tell."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

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
SIGMAS, FLOOR, SHARES = ("0.05", "0.1", "0.2"), 50, ("1/40", "1/40", "1/20", "9/10")
"""The noise of three plans as a share of last year's size, the least size that counts, and what each table gets of the loss."""
CHANGE = 0.15
"""The standard deviation of the yearly change of a cell, on a log scale."""
DRAWS = 5
EDGES = (10.0, 50.0, 250.0, 1000.0)
CLASSES = ("1 to 9", "10 to 49", "50 to 249", "250 to 999", "1,000 or more")
MOST = 60
"""Cells attacked whose largest establishment is of one size."""
CLOSE = 0.1
SLACK, LEAST, SAMPLE = 1e-4, 1e-3, 1_000
SETTING = (
    "Employment of one state by county and sector, county and three-digit industry, with all totals. Cells are those of counties "
    "by three-digit industries with an establishment. A cell is usable if it is published and off by at most a tenth.",
    f"Rules: p% with p = {PERCENT}, and at least three contributors. Suppression with complementary cells; coarsening along "
    "industries; sensitive cells as ranges; one factor of 10 to 20 % up or down for each establishment, the same in all tables.",
    "Two attackers for every method. A competitor: the second largest establishment of the cell, who knows the published tables "
    "and itself. An insider: someone who knows every other record exactly. For the older rules their intervals are certain. For "
    "plans the competitor reads the 95 % interval of the cell, and the insider names the narrowest range that is right with "
    "probability 95 % whatever the value is: nobody does better (T-INFER).",
    f"Plans: Gaussian noise of a share of last year's size of each cell (at least {FLOOR}), nine tenths of the loss for the "
    "finest table, fitted over all tables. Last year's sizes are made up: a yearly change of 15 %. The settings are ours.",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One method."""

    method: str
    usable: float
    withheld: float
    withheld_total: float
    widths: tuple[float, ...]
    """The median width of the competitor's interval relative to the value, by size; NaN without such an establishment."""
    inside: tuple[float, ...]
    """The same for the insider."""
    close: float
    """The share of attacked establishments that the competitor knows to within a tenth."""
    close_inside: float
    """The share that the insider knows."""

    def shown(self) -> dict[str, object]:
        """The row of the table, as shares."""
        head = {"method": self.method, "usable": self.usable, "withheld": self.withheld}
        widths = {
            f"{who}, {size}": width
            for who, own in (("competitor", self.widths), ("insider", self.inside))
            for size, width in zip(CLASSES, own)
        }
        known = {"known to a competitor": self.close, "known to an insider": self.close_inside}
        found = head | {"withheld total": self.withheld_total} | widths | known
        return {key: each if isinstance(each, str) else float(f"{each:.3g}") for key, each in found.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """The cells that are attacked, and the size class of the largest establishment of each."""

    cells: Any
    classes: Any
    largest: Any
    records: Any
    """A record of each cell, and the largest one."""

    @classmethod
    def chosen(cls, given: Tables, seed: int) -> "Targets":
        """At most so many cells of each class, at random."""
        shuffled = np.random.default_rng(seed).permutation(given.finest)
        place = np.searchsorted(EDGES, given.found.largest[shuffled], side="right")
        kept = np.concatenate([np.flatnonzero(place == each)[:MOST] for each in range(len(CLASSES))])
        cells = shuffled[kept]
        return cls(cells, place[kept], given.found.largest[cells], largest_records(given, cells))

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
    inner = insider(given, targets, low, high)
    assert np.all((inner[0] <= targets.largest + SLACK) & (targets.largest <= inner[1] + SLACK)), name
    inside = np.minimum((inner[1] - inner[0]) / targets.largest, width)
    exact, shown = given.found.total[given.finest], value[given.finest]
    usable, gone = np.abs(shown - exact) <= CLOSE * exact, np.isnan(shown)
    row = Row(
        name,
        float(usable.mean()),
        float(gone.mean()),
        float(exact[gone].sum() / exact.sum()),
        targets.medians(width),
        targets.medians(inside),
        float(np.mean(width <= 2 * CLOSE)),
        float(np.mean(inside <= 2 * CLOSE)),
    )
    return row, upper


def insider(given: Tables, targets: Targets, low: Any, high: Any) -> tuple[Any, Any]:
    """What is left of the largest when all other records are subtracted from each cell that has it."""
    lower, upper = np.zeros(len(targets.cells)), np.full(len(targets.cells), np.inf)
    for each in given.within:
        cell = each[targets.records]
        others = given.found.total[cell] - targets.largest
        lower, upper = np.maximum(lower, low[cell] - others), np.minimum(upper, high[cell] - others)
    return lower, upper


def largest_records(given: Tables, cells: Any) -> Any:
    """The largest record of each of some finest cells."""
    own = given.within[-1]
    order = np.lexsort((-given.emp, own))
    return order[np.searchsorted(own[order], cells)]


def multiplied(given: Tables, seed: int) -> Any:
    """All cells after each establishment was multiplied by its factor."""
    rng, emp = np.random.default_rng(seed), given.emp
    away = rng.uniform(*FACTORS, len(emp)) * rng.choice([-1, 1], len(emp))
    return sum(np.bincount(each, weights=emp * (1 + away), minlength=len(given.cells)) for each in given.within)


def plans(given: Tables, targets: Targets, seed: int) -> list[Row]:
    """Three plans with noise by last year's sizes: usable cells, and what either attacker can tell."""
    keys = rw.Keys.of(last_year(given, seed), size="size", sized_on="public: tables of the year before, made up here")
    asked = rw.query().levels(rw.prefix("county", [2, 5])).levels(rw.prefix("naics", list(DIGITS)), keys=keys)
    found = []
    columns = {"county": "text", "naics": "text"}
    with rw.Session(given.records, unit="estab_id", measures={"emp": 1}, columns=columns, tuned_on="public") as session:
        for sigma in SIGMAS:
            noise = rw.Sized(rw.Gaussian(sigma=sigma), floor=FLOOR)
            plan = asked.sum("emp", noise, alias="emp").with_shares(*SHARES)
            release = session.run(plan, rng=Seeded(seed))
            result = evaluate(session, plan, metric="off_by_a_tenth", fit=fitted, draws=DRAWS, seed=seed, data="public")
            usable = 1 - next(iter(result.at(*result.places()[-1]).values())).value
            loss = float(np.median([float(release.policy.loss(each)) for each in sampled(given, seed)]))
            width, inside = competitor(given, targets, release), window(given, targets, release)
            found.append(
                Row(
                    f"noise of {float(sigma):.0%}, median loss {loss:.1g}",
                    usable,
                    0.0,
                    0.0,
                    targets.medians(width),
                    targets.medians(inside),
                    float(np.mean(width <= 2 * CLOSE)),
                    float(np.mean(inside <= 2 * CLOSE)),
                )
            )
    return found


def fitted(release: rw.Release) -> rw.Release:
    """The best linear unbiased estimates from all tables."""
    return release.consistent()


def last_year(given: Tables, seed: int) -> Any:
    """The finest cells with made-up sizes of the year before."""
    change = np.exp(np.random.default_rng(seed + 1).normal(0.0, CHANGE, len(given.finest)))
    places = [
        [tree.codes[at] for at in given.cells.codes[given.finest, axis]]
        for axis, tree in enumerate(given.cells.dimensions)
    ]
    size = np.rint(given.found.total[given.finest] * change).astype(np.int64)
    return pa.table({"county": places[0], "naics": places[1], "size": size})


def sampled(given: Tables, seed: int) -> list[dict[str, Any]]:
    """A thousand records at random."""
    own = np.random.default_rng(seed).permutation(len(given.emp))[:SAMPLE]
    return named(given, own)


def named(given: Tables, own: Any) -> list[dict[str, Any]]:
    """Records as a policy takes them."""
    return given.records.take(own).select(["county", "naics", "emp"]).to_pylist()


def competitor(given: Tables, targets: Targets, release: rw.Release) -> Any:
    """The width of what the second largest reads off the 95 % interval of the cell."""
    data = release.tables[-1].data
    ends = {
        (row["county5"], row["naics3"]): (max(0.0, float(row["emp_low"])), float(row["emp_high"]))
        for row in data.select(["county5", "naics3", "emp_low", "emp_high"]).to_pylist()
    }
    low, high = np.array([ends[each["county"], each["naics"]] for each in named(given, targets.records)]).T
    number, second = given.found.number[targets.cells], given.found.second[targets.cells]
    lower, upper = largest_contributor(low, np.maximum(high, low), number, second)
    return np.maximum(upper - lower, 0.0) / targets.largest


def window(given: Tables, targets: Targets, release: rw.Release) -> Any:
    """The width of the window of each target, relative to its size."""
    assert release.values is not None
    found = [release.values.window(each, "emp") for each in named(given, targets.records)]
    width = [np.inf if each.high is None else float(each.high - each.low) for each in found]
    return np.array(width) / targets.largest


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
    """Widths by size for either attacker, and usable cells."""
    figure, ((first, second, right),) = new_figure(1, 3, size=(15.0, 5.4))
    for axes, who, pick in (
        (first, "A competitor: the second largest", lambda row: row.widths),
        (second, "An insider: knows all other records", lambda row: row.inside),
    ):
        for place, row in enumerate(rows):
            style = {"color": COLORS[place % len(COLORS)], "linestyle": DASHES[place % len(DASHES)]}
            axes.plot(CLASSES, np.maximum(pick(row), LEAST), marker="o", label=row.method, **style)
        axes.set_yscale("log")
        axes.set_ylim(LEAST / 2, 2e3)
        axes.axhline(2 * CLOSE, color="#999999", linewidth=1)
        axes.tick_params(axis="x", labelrotation=20)
        tidy(
            axes,
            title=who,
            xlabel="employees of the largest establishment of a cell",
            ylabel="width of the interval / its employees",
        )
    first.legend(frameon=False, fontsize=7, loc="lower left")
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
    tidy(right, title="What can be used", xlabel="% of the cells", ylabel="")
    caption = (
        "The median width of what an attacker can tell of the largest establishment of a cell, for a competitor and an insider; "
        f"below the gray line it is known to within a tenth, and {LEAST} stands for an exact value. Right: cells within a tenth, "
        "and cells withheld."
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
