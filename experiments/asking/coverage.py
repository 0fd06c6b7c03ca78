"""How often intervals of totals, shares, ratios, growth, differences, ranks and slopes hold."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import recordwise as rw
from experiments.frame import Tell
from recordwise.noise import Seeded
from recordwise.reader import Answer, ReaderRelease

SIZES = (10, 100, 1000, 10_000)
GROWN = (11, 103, 1050, 9800)
"""The employment of the four counties of every state, before and now."""
PAY = 40
"""The pay of each worker."""
TOGETHER = 100
"""States that are asked about in one question."""
NOISES = {
    "Gaussian": rw.Gaussian(sigma=9),
    "Gaussian of 1.4 steps": rw.Gaussian(sigma=1),
    "Gaussian of .4 steps": rw.Gaussian(sigma="0.3"),
    "log": rw.LogTransform(offset=20, sigma="0.12"),
    "root": rw.RootTransform(degree=2, sigma="0.5"),
    "Laplace": rw.GeneralizedGaussian(shape=1, scale=4),
}
LAPLACE = f"emp{list(NOISES).index('Laplace')}"
RANKED, CLOSE = 20, 60.0
"""Counties that are ranked, and the standard error of each."""
ROWS = 150
RELIABILITIES = (0.9, 0.5, 0.1)
SLOPE = 2.0
LEVEL, NORMAL = 0.95, 1.959964
Row = dict[str, Any]


def released(states: int, totals: Sequence[int], seed: int) -> ReaderRelease:
    """States that are all alike, with their counties: each is a release of a small tree with noise of its own."""
    counties = [f"{state:04d}{place}" for state in range(states) for place in range(len(SIZES))]
    emp = np.tile(totals, states)
    table = pa.table({"id": np.arange(len(counties)), "county": counties, "emp": emp, "pay": PAY * emp})
    levels = rw.prefix("county", [4, 5])
    asked = rw.query().levels(levels, keys=rw.Keys.of({"county": counties})).sum("pay", rw.Gaussian(sigma=200))
    for number, noise in enumerate(NOISES.values()):
        asked = asked.sum("emp", noise, alias=f"emp{number}")
    sizes = rw.Keys.of({"county": counties, "size": emp}, size="size", sized_on="public: last year")
    sized = (
        rw.query().levels(levels, keys=sizes).sum("emp", rw.Sized(rw.Gaussian(sigma="0.1"), floor=100), alias="sized")
    )
    measures = {"emp": 1, "pay": 1}
    with rw.Session(table, unit="id", measures=measures, tuned_on="synthetic", dataset=f"states {seed}") as session:
        return ReaderRelease.of(session.run([asked, sized], rng=Seeded(seed)))


class Tally:
    """How often intervals of each kind and size held."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], list[int]] = {}
        self.told: dict[tuple[str, str], int] = {}

    def add(self, kind: str, size: object, held: Any) -> None:
        found = self.held.setdefault((kind, str(size)), [0, 0])
        found[0] += int(np.sum(held))
        found[1] += int(np.size(held))

    def interval(self, kind: str, found: Answer, truth: Any, asked: int = 0) -> None:
        """Count by the size of the county, which is its last digit.

        Of ``asked`` ratios those that are not told hold: their sets have no end.
        """
        places = np.array([int(label[4]) for label in found.labels])
        held = (found.lows <= np.asarray(truth)[places]) & (np.asarray(truth)[places] <= found.highs)
        for at, size in enumerate(SIZES):
            told = held[places == at]
            if len(told) or asked:
                self.add(kind, f"{size:,}", np.append(told, np.ones(max(asked - len(told), 0), bool)))
                self.told[kind, f"{size:,}"] = self.told.get((kind, f"{size:,}"), 0) + len(told)

    def rows(self) -> list[Row]:
        return [
            {
                "kind": kind,
                "size": size,
                "told": self.told.get((kind, size), of),
                "of": of,
                "held": held,
                "coverage": round(held / of, 4),
            }
            for (kind, size), (held, of) in self.held.items()
        ]


def some_states(tally: Tally, now: ReaderRelease, before: ReaderRelease, states: Sequence[str]) -> None:
    """Every kind of interval in some states."""
    where: dict[str, Any] = {"county4": list(states)}
    asked: dict[str, Any] = {"by": "county5", "complete": True}
    three = {"county5": [f"{state}{at}" for state in states for at in range(3)]}
    for name, noise in (*((f"emp{number}", noise) for number, noise in enumerate(NOISES)), ("sized", "sized Gaussian")):
        tally.interval(f"total, {noise}", now.total(name, where, **asked), GROWN)
        part = now.total(name, three, by="county4", complete=True)
        tally.add(f"three counties, {noise}", "1,164", (part.lows <= sum(GROWN[:3])) & (sum(GROWN[:3]) <= part.highs))
    totals = now.total("emp0", where, **asked)
    tally.interval("total, cut at 0", now.total("emp0", where, nonnegative=True, **asked), GROWN)
    tally.interval("growth", now.growth("emp0", before, where=where, **asked), np.divide(GROWN, SIZES) - 1, len(states))
    fat = now.growth(LAPLACE, before, where=where, **asked)
    tally.interval("growth, Laplace", fat, np.divide(GROWN, SIZES) - 1, len(states))
    fat = now.total(LAPLACE, where, **asked)
    for state in states:
        less = fat.difference(f"{state}0", f"{state}2")
        tally.add("difference, Laplace", f"{SIZES[0]:,}", less.low <= GROWN[0] - GROWN[2] <= less.high)
    paid = now.total("pay", where, **asked).per(totals)
    tally.interval("pay per worker", paid, np.full(len(SIZES), float(PAY)), len(states))
    for state in states:
        _one_state(tally, totals.only([f"{state}{at}" for at in range(len(SIZES))]))


def _one_state(tally: Tally, own: Answer) -> None:
    """Differences, ratios and shares of the counties of a state."""
    last = own.labels[-1]
    for at, (label, size) in enumerate(zip(own.labels[:-1], SIZES)):
        less, ratio = own.difference(label, last), own.ratio(label, last)
        tally.add("difference", f"{size:,}", less.low <= GROWN[at] - GROWN[-1] <= less.high)
        tally.add("ratio", f"{size:,}", ratio.low <= GROWN[at] / GROWN[-1] <= ratio.high)
    whole = own.combined(np.vstack([np.eye(len(own)), np.ones(len(own))]), [*own.labels, "state"])
    tally.interval("share", whole.shares(), np.divide(GROWN, sum(GROWN)))


def covered(runs: int, seed: int, tell: Tell) -> list[Row]:
    """How often intervals hold, by kind and size."""
    tally = Tally()
    now, before = released(runs, GROWN, seed), released(runs, SIZES, seed + 1)
    for first in range(0, runs, TOGETHER):
        tell(f"states {first + 1} to {min(first + TOGETHER, runs)} of {runs}")
        some_states(tally, now, before, [f"{state:04d}" for state in range(first, min(first + TOGETHER, runs))])
    return tally.rows()


def ranks(runs: int, seed: int, tell: Tell) -> list[Row]:
    """Rank sets of counties whose errors overlap: of growing sizes, and all of one size, where every rank is right."""
    tell("ranks")
    place, every = np.arange(RANKED, 0, -1), np.full(RANKED, RANKED)
    growing = np.round(np.exp(np.linspace(6.0, 9.5, RANKED)))
    cases = {"growing": (growing, place, place), "all alike": (np.full(RANKED, 1000.0), np.ones(RANKED), every)}
    rows = []
    for name, (sizes, first, last) in cases.items():
        chance, tally, widths = np.random.default_rng(seed), Tally(), []
        for number in range(runs):
            noisy = sizes + chance.normal(0, CLOSE, RANKED)
            drawn = answer_of(noisy, np.eye(RANKED) * CLOSE**2, f"run {number}").rank()
            tally.add("rank, one alone", name, (drawn.best <= first) & (last <= drawn.worst))
            tally.add("ranks, all at once", name, bool(np.all((drawn.all_best <= first) & (last <= drawn.all_worst))))
            widths.append((float(np.mean(drawn.worst - drawn.best)), float(np.mean(drawn.all_worst - drawn.all_best))))
        mean = np.mean(widths, axis=0) + 1
        rows += [{**row, "ranks in a set": round(float(size), 2)} for row, size in zip(tally.rows(), mean)]
    return rows


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
    wald = np.abs(stated - SLOPE) <= NORMAL * np.array([each.sds[0] for each in found])
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
        lows=values - NORMAL * sds,
        highs=values + NORMAL * sds,
        covariance=covariance,
        halves=np.zeros(len(values)),
        confidence=LEVEL,
        normal=True,
        clipped=False,
        sources=(),
        notes=(),
        method="simulated",
        of=name,
        release={"title": name, "digest": "", "privacy_label": "", "version": "", "private": "", "stages": ""},
        errors=lambda draws, purpose: np.zeros((draws, len(values))),
    )
