"""The attack on withheld cells and the choice of complementary ones: seconds and memory for 100, 1,000 and 5,000 of them.

python -m benchmarks.disclosure [WITHHELD ...]
"""

import resource
import sys
import time

import numpy as np

from recordwise.disclosure import (
    Cells,
    Contributions,
    Dimension,
    PercentRule,
    Suppression,
    ThresholdRule,
    feasible_intervals,
)

SIZES = (100, 1_000, 5_000)
INDUSTRIES, SECTORS = 20, 5
RULES = (PercentRule(10), ThresholdRule(3))
SHARE = 0.42
"""About so many of the cells of such tables are withheld."""


def publication(places: int) -> tuple[Cells, Contributions]:
    """Places by industries in sectors, each cell with up to eight heavy-tailed contributors, and all totals."""
    rng = np.random.default_rng(places)
    trees = (
        Dimension.from_levels("place", [(f"p{each}",) for each in range(places)]),
        Dimension.from_levels("industry", [(f"s{each % SECTORS}", f"i{each}") for each in range(INDUSTRIES)]),
    )
    count = rng.integers(1, 9, (places, INDUSTRIES))
    own = np.repeat(np.arange(places * INDUSTRIES), count.ravel())
    emp = np.floor(rng.pareto(1.1, count.sum()) * 4) + 1
    place, industry = own // INDUSTRIES, own % INDUSTRIES
    codes, columns = [], []
    for one in (np.zeros_like(place), 1 + place):
        for other in (
            np.zeros_like(industry),
            trees[1].positions([f"s{at}" for at in range(SECTORS)])[industry % SECTORS],
            trees[1].positions([f"i{at}" for at in range(INDUSTRIES)])[industry],
        ):
            key = one * len(trees[1].codes) + other
            _, first, cell = np.unique(key, return_index=True, return_inverse=True)
            ranked = np.append(emp[np.lexsort((-emp, cell))], 0.0)
            held = np.bincount(cell)
            start = np.cumsum(held) - held
            next_one = np.where(held > 1, ranked[start + 1], 0.0)
            codes.append(np.stack([one, other], axis=1)[first])
            columns.append(np.stack([held, np.bincount(cell, weights=emp), ranked[start], next_one]))
    cells = Cells.closed(trees, np.concatenate(codes))
    number, total, largest, second = np.concatenate(columns, axis=1)
    return cells, Contributions(number, total, largest, second, np.zeros(len(cells), np.bool_))


def main() -> None:
    for size in map(int, sys.argv[1:] or SIZES):
        cells, found = publication(max(2, round(size / SHARE / (1 + INDUSTRIES + SECTORS))))
        start = time.perf_counter()
        published = Suppression(RULES).publish(cells, found)
        chosen = time.perf_counter()
        withheld = np.flatnonzero(published.withheld)
        low, high = feasible_intervals(cells.system(published.low, published.high), withheld)
        done = time.perf_counter()
        assert np.all((low <= found.total[withheld] + 1e-3) & (found.total[withheld] <= high + 1e-3))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"disclosure: {len(cells):,} cells, {len(withheld):,} withheld: chosen in {chosen - start:.1f} s, all intervals in "
            f"{done - chosen:.1f} s, peak {peak:,.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
