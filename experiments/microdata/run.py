"""Tables 1 and 2 of [A] beside ours: five methods, 31 tables, six privacy settings, every run kept."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from experiments.frame import Reproduction, Tell, write
from experiments.microdata.claims import claims
from experiments.microdata.comparing import beside_paper, exact_error, report, summary
from experiments.microdata.measuring import SETTINGS, Line, measure_table, variance_of
from experiments.microdata.picture import picture
from experiments.microdata.tables import SOURCE, all_tables

__all__ = ["RUNS", "SETTINGS", "STEPS", "exact_error", "main", "reproduce", "variance_of"]

RUNS = 1000
STEPS = 31
SETTING = (
    "31 tables: 15 histograms of public-use microdata (9 x 24), 16 made by rule; queries: sum, rows and columns (2-d), cells.",
    "Equal noise on every answer: Laplace at epsilon 1, 0.5 (the printed tables) and 0.1, Gaussian at rho = epsilon^2/2.",
    "The same draws for all methods; no run is dropped; every fit carries the residual of its optimality conditions.",
)


def reproduce(*, runs: int, seed: int, tell: Tell) -> Reproduction:
    """Every table and setting, and what follows from them."""
    tables, missing = all_tables()
    lines = measured(tables, runs, seed, tell)
    rows = beside_paper(lines)
    checks = summary(lines, rows) | {"missing": missing}
    return Reproduction(
        name="microdata",
        title="Nonnegative tables from noisy answers: the sum pays for the zeros",
        source="[A] Abowd et al., An Uncertainty Principle is a Price of Privacy-Preserving Microdata (2021), Tables 1 and 2",
        setting=SETTING,
        data=told_data(missing),
        runs=runs,
        seed=seed,
        claims=claims(lines, rows, checks),
        tables={"figures": [asdict(line) for line in lines], "paper": rows},
        pictures=[picture(rows)],
        numbers=checks,
        shown=("paper",),
    )


def measured(tables: dict[str, np.ndarray], runs: int, seed: int, tell: Tell) -> list[Line]:
    seeds = np.random.SeedSequence(seed).spawn(len(tables) * len(SETTINGS))
    lines: list[Line] = []
    for place, (name, table) in enumerate(tables.items()):
        tell(f"table {name}")
        for number, setting in enumerate(SETTINGS):
            rng = np.random.default_rng(seeds[place * len(SETTINGS) + number])
            lines += measure_table(name, table, setting, runs, rng)
    return lines


def told_data(missing: list[str]) -> str:
    if not missing:
        return (
            "The 15 histograms of 2016 ACS public-use microdata, read from the data folder, and 16 tables made by rule."
        )
    return (
        f"{len(missing)} of 15 real tables are missing below the data folder's puma; they are: {SOURCE}. "
        "Only the tables made by rule run in their place. Set RECORDWISE_DATA to the folder that holds puma/."
    )


def main(runs: int = RUNS, seed: int = 20211, out: Path | str | None = None) -> dict[str, object]:
    """Run everything, print the tables beside the paper's, write the files to ``out``; the checks in a few numbers."""
    done = reproduce(runs=runs, seed=seed, tell=lambda _: None)
    print(done.data)
    print(report(done.tables["paper"]))
    print(json.dumps(done.numbers, indent=1))
    if out is not None:
        write(done, Path(out))
    return dict(done.numbers)
