"""``python -m experiments.fits [COUNTIES]``: how far off fitted columns are, and how often their intervals hold."""

import sys
from collections.abc import Sequence

from experiments.fits.releases import KEYS, NOISES, Line
from experiments.fits.run import ALL, LEVELS, RUNS, measured


def coverage_table(found: Sequence[Line]) -> str:
    """One row for each column and noise, one column for each kind of keys and level."""
    places = [(keys, level) for keys in KEYS for level in LEVELS]
    rows = ["| column, noise | " + " | ".join(f"{keys}, {level:g}" for keys, level in places) + " |"]
    rows.append("|---" * (len(places) + 1) + "|")
    for column in ("best", "fit"):
        for noise in NOISES:
            held = {
                (line.keys, line.level): line.coverage
                for line in found
                if (line.column, line.noise, line.size) == (column, noise, ALL)
            }
            rows.append(f"| {column}, {noise} | " + " | ".join(f"{held[place]:.4f}" for place in places) + " |")
    return "\n".join(rows)


def error_table(found: Sequence[Line], keys: str) -> str:
    """Root mean squared errors by the exact total of a cell."""
    chosen = [line for line in found if line.keys == keys and line.level == LEVELS[0] and line.size != ALL]
    sizes = sorted({line.size for line in chosen})
    rows = ["| noise, column | " + " | ".join(f"{size:,}" for size in sizes) + " |", "|---" * (len(sizes) + 1) + "|"]
    for noise in NOISES:
        for column in ("raw", "best", "fit"):
            by_size = {line.size: line.rmse for line in chosen if (line.noise, line.column) == (noise, column)}
            rows.append(f"| {noise}, {column} | " + " | ".join(f"{by_size[size]:.1f}" for size in sizes) + " |")
    return "\n".join(rows)


def main(arguments: list[str]) -> int:
    found = measured(runs=int(arguments[0]) if arguments else RUNS, seed=20211, tell=lambda _: None)
    print(coverage_table(found), end="\n\n")
    print(error_table(found, "rest published"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
