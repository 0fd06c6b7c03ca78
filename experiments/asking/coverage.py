"""How often intervals of totals, shares, ratios, growth, differences, ranks and slopes hold, through real releases."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import recordwise as rw
from experiments.frame import Tell
from recordwise.noise import Seeded
from recordwise.reader import ReaderRelease
from recordwise.reader.answers import Answer

SIZES = (10, 100, 1000, 10_000)
GROWN = (11, 103, 1050, 9800)
"""The employment of the four counties of every state, before and now."""
TOGETHER = 100
"""States that are asked about in one question."""
NOISES = {
    "Gaussian": rw.Gaussian(sigma=9),
    "Gaussian of 1.4 steps": rw.Gaussian(sigma=1),
    "log": rw.LogTransform(offset=20, sigma="0.12"),
    "root": rw.RootTransform(degree=2, sigma="0.5"),
}
ROWS = 150
RELIABILITIES = (0.9, 0.5, 0.1)
SLOPE = 2.0
LEVEL = 0.95
Row = dict[str, Any]


def released(states: int, totals: Sequence[int], seed: int) -> ReaderRelease:
    """States that are all alike, with their counties: each is a release of a small tree with noise of its own."""
    counties = [f"{state:04d}{place}" for state in range(states) for place in range(len(SIZES))]
    table = pa.table({"id": np.arange(len(counties)), "county": counties, "emp": np.tile(totals, states)})
    asked = rw.query().levels(rw.prefix("county", [4, 5]), keys=rw.Keys.of({"county": counties}))
    for number, noise in enumerate(NOISES.values()):
        asked = asked.sum("emp", noise, alias=f"emp{number}")
    with rw.Session(table, unit="id", measures={"emp": 1}, tuned_on="synthetic", dataset=f"states {seed}") as session:
        return ReaderRelease.of(session.run(asked, rng=Seeded(seed)))


class Tally:
    """How often intervals of each kind and size held."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], list[int]] = {}

    def add(self, kind: str, size: object, held: Any) -> None:
        found = self.held.setdefault((kind, str(size)), [0, 0])
        found[0] += int(np.sum(held))
        found[1] += int(np.size(held))

    def interval(self, kind: str, found: Answer, truth: Any) -> None:
        """Count by the size of the county, which is its last digit."""
        for at, size in enumerate(SIZES):
            chosen = np.array([int(label[4]) == at for label in found.labels])
            if chosen.any():
                held = (found.lows <= truth[at]) & (truth[at] <= found.highs)
                self.add(kind, f"{size:,}", held[chosen])

    def rows(self) -> list[Row]:
        return [
            {"kind": kind, "size": size, "held": held, "of": of, "coverage": round(held / of, 4)}
            for (kind, size), (held, of) in self.held.items()
        ]


def some_states(tally: Tally, now: ReaderRelease, before: ReaderRelease, states: Sequence[str]) -> None:
    """Every kind of interval in some states."""
    where: dict[str, Any] = {"county4": list(states)}
    asked: dict[str, Any] = {"by": "county5", "complete": True}
    found: dict[str, Answer] = {}
    for number, noise in enumerate(NOISES):
        found[noise] = now.total(f"emp{number}", where, **asked)
        tally.interval(f"total, {noise}", found[noise], GROWN)
        part = now.total(f"emp{number}", {"county5": list(_three(states))}, by="county4", complete=True)
        tally.add(f"region, {noise}", "3 counties", (part.lows <= sum(GROWN[:3])) & (sum(GROWN[:3]) <= part.highs))
    clear = {"county5": [f"{state}{at}" for state in states for at in (1, 2, 3)]}
    tally.interval("growth", now.growth("emp0", before, where=clear, **asked), np.divide(GROWN, SIZES) - 1)
    for state in states:
        _one_state(tally, found["Gaussian"].only([f"{state}{at}" for at in range(len(SIZES))]))


def _three(states: Sequence[str]) -> Iterator[str]:
    return (f"{state}{at}" for state in states for at in range(3))


def _one_state(tally: Tally, own: Answer) -> None:
    """Differences, ratios, shares and ranks of the counties of a state."""
    last = own.labels[-1]
    for at, (label, size) in enumerate(zip(own.labels[:-1], SIZES)):
        less, ratio = own.difference(label, last), own.ratio(label, last)
        tally.add("difference", f"{size:,}", less.low <= GROWN[at] - GROWN[-1] <= less.high)
        tally.add("ratio", f"{size:,}", ratio.low <= GROWN[at] / GROWN[-1] <= ratio.high)
    whole = own.combined(np.vstack([np.eye(len(own)), np.ones(len(own))]), [*own.labels, "state"])
    tally.interval("share", whole.shares(), np.divide(GROWN, sum(GROWN)))
    ranks, true = own.rank(), np.arange(len(own), 0, -1)
    tally.add("rank, one alone", "each", (ranks.best <= true) & (true <= ranks.worst))
    tally.add("ranks, all at once", "all", bool(np.all((ranks.all_best <= true) & (true <= ranks.all_worst))))


def covered(runs: int, seed: int, tell: Tell) -> list[Row]:
    """How often intervals hold, by kind and size."""
    tally = Tally()
    now, before = released(runs, GROWN, seed), released(runs, SIZES, seed + 1)
    for first in range(0, runs, TOGETHER):
        tell(f"states {first + 1} to {min(first + TOGETHER, runs)} of {runs}")
        some_states(tally, now, before, [f"{state:04d}" for state in range(first, min(first + TOGETHER, runs))])
    return tally.rows()


def slopes(runs: int, seed: int, tell: Tell) -> list[Row]:
    """Slopes of columns with noise, naive and corrected, by reliability."""
    rows = []
    for reliability in RELIABILITIES:
        tell(f"slopes at reliability {reliability:g}")
        rows.append(_slope_row(reliability, list(_regressions(reliability, runs, seed))))
    return rows


def _slope_row(reliability: float, found: Sequence[Any]) -> Row:
    stated = np.array([each.slopes[0] for each in found])
    held = np.array([each.lows[0] <= SLOPE <= each.highs[0] for each in found])
    wald = np.abs(stated - SLOPE) <= 1.959964 * np.array([each.sds[0] for each in found])
    told = np.isfinite(stated)
    return {
        "reliability": reliability,
        "naive": round(float(np.mean([each.naive[0] for each in found])), 3),
        "corrected": round(float(np.median(stated[told])), 3) if told.any() else None,
        "stated": round(float(np.mean(told)), 3),
        "coverage": round(float(np.mean(held)), 4),
        "bounded": round(float(np.mean([np.isfinite(each.lows[0]) for each in found])), 3),
        "wald_where_stated": round(float(np.mean(wald[told])), 4) if told.any() else None,
        "runs": len(found),
    }


def _regressions(reliability: float, runs: int, seed: int) -> Iterator[Any]:
    chance = np.random.default_rng(seed)
    # Noise of different sizes in different rows, as sized noise has it.
    shape = np.linspace(0.5, 1.5, ROWS)
    tau = shape * (1 / reliability - 1) / shape.mean()
    for _ in range(runs):
        x = chance.normal(0, 1, ROWS)
        x *= 1 / np.sqrt(np.mean((x - x.mean()) ** 2))
        y = SLOPE * x + chance.normal(0, 0.5, ROWS)
        noisy = x + chance.normal(0, 1, ROWS) * np.sqrt(tau)
        response = y + chance.normal(0, 0.3, ROWS)
        column = answer_of(noisy, np.diag(tau), "x")
        yield answer_of(response, np.eye(ROWS) * 0.09, "y").regress({"x": column})


def answer_of(values: Any, covariance: Any, name: str) -> Answer:
    """Values with known normal errors, as a release answers them."""
    sds = np.sqrt(np.diagonal(covariance))
    return Answer(
        question=name,
        labels=tuple(map(str, range(len(values)))),
        values=values,
        sds=sds,
        lows=values - 1.96 * sds,
        highs=values + 1.96 * sds,
        covariance=covariance,
        halves=np.zeros(len(values)),
        confidence=LEVEL,
        normal=True,
        clipped=False,
        sources=(),
        notes=(),
        method="simulated",
        of=name,
        release={"title": name, "digest": "", "privacy_label": "", "version": "", "private": ""},
    )
