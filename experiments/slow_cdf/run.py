"""Privacy-loss CDFs of employment sums by county and NAICS-3."""

import tempfile
from pathlib import Path

import numpy as np

import recordwise as rw
from experiments.frame import Reproduction, Tell, data_note
from experiments.slow_cdf.claims import claims
from experiments.slow_cdf.errors import drawn, error_rows, errors, exact_in_order, standardized_bias
from experiments.slow_cdf.losses import LEVELS, distributions, engine_differs, realized
from experiments.slow_cdf.pictures import pictures
from experiments.slow_cdf.records import FILE, REAL, write_records
from experiments.slow_mechanisms import MEASURE, SOURCE, entry

RUNS = 20
STEPS = 40
REALIZED = ("root", "log")
SETTING = (
    "Sums of employment by county and three-digit industry; a cell for each pair that holds an establishment (taken as public).",
    "Noise of variance 2, of transformations at a total of 2, as on the slides: an additive and a transformation mechanism for "
    "each of three orders. Ours are the offset 1 of the logarithm and the rate 1 and offset e of the polylogarithmic noise.",
    "A policy looks at the head count alone, so its losses are computed exactly from the distinct head counts; the "
    "histogram of the engine is compared with them. Errors come from real releases with a seeded generator.",
)


def reproduce(*, runs: int, seed: int, tell: Tell, limit: int | None = None) -> Reproduction:
    """All of it; ``limit`` takes only the first establishments, for a quick look."""
    tell("laying out establishments")
    with tempfile.TemporaryDirectory() as folder:
        records = write_records(Path(folder), limit)
        found = distributions(records)
        # The same session is looked into and drawn from, which is what the figure is about.
        stated = {"tuned_on": "synthetic", "tuning_reason": "synthetic records", "ledger": Path(folder) / "ledger"}
        with rw.Session(records.path, unit="estab_id", measures={MEASURE: 1}, **stated) as session:
            differs = 0
            for each in found:
                tell(f"losses of {each.entry.label}")
                differs += engine_differs(session, each, records)
            keys = rw.Keys.of(records.cells.select(["county", "naics3"]))
            grouped = rw.query().group_by("county", rw.prefix("naics", 3), keys=keys)
            tell("realized losses")
            lost = {key: realized(session, grouped, entry(key)) for key in REALIZED}
            off = errors(session, grouped, records.cells, runs=runs, seed=seed, tell=tell)
            ordered = session.run(grouped.count(rw.Gaussian(rho=1)), rng=rw.noise.Seeded(0)).tables[0].data
    exact = exact_in_order(ordered, records.cells)
    bias = {each.key: standardized_bias(off[each.key], np.asarray(each.mechanism.variance(exact))) for each in drawn()}
    medians = {key: summary.quantile(0.5) for key, summary in lost.items()}
    return Reproduction(
        name="slow-cdf",
        title="Privacy-loss distributions of slowly scaling mechanisms",
        source=SOURCE,
        setting=SETTING,
        data=data_note(REAL, FILE),
        runs=runs,
        seed=seed,
        claims=claims(found, bias, differs, medians),
        tables={
            "losses": [each.row() for each in found],
            "cdf": curve_rows(found),
            "realized": [{"mechanism": entry(key).label, **quantile_row(each)} for key, each in lost.items()],
            "errors": error_rows(off, exact),
        },
        pictures=pictures(found, lost),
        numbers={
            "establishments": int(records.establishments.sum()),
            "cells": records.cells.num_rows,
            "standardized_bias": bias,
            "engine_differs": differs,
        },
        shown=("losses", "realized", "errors"),
    )


def quantile_row(summary: object) -> dict[str, float]:
    return {f"loss_at_{100 * p:g}_percent": summary.quantile(p) for p in LEVELS}  # type: ignore[attr-defined]


def curve_rows(found: list) -> list[dict[str, object]]:
    """The curves at twenty points to a factor of ten, small enough to plot elsewhere."""
    places = np.geomspace(1e-2, 1e9, 11 * 20 + 1)
    return [{"loss": float(place), **{each.entry.key: 1 - each.above(place) for each in found}} for place in places]
