"""From counts on a public grid to noisy quantiles, a block of cells at a time."""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pyarrow as pa

from recordwise.arithmetic import FloatArray
from recordwise.drawn.variable import NOT_UNBIASED, Drawn
from recordwise.noise import BitSource
from recordwise.plan import Measure
from recordwise.plan.bin_trees import BIN, HELD
from recordwise.plan.lowering import POSITION
from recordwise.quantiles import QuantileEstimates, TreeQuantile
from recordwise.sensitive import Sensitive

NODES_AT_ONCE = 1 << 22
IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
FIELDS = ("value", "low", "high", "spread_low", "spread_high")


def draw_quantiles(
    shares: Mapping[str, Fraction],
    mechanism: TreeQuantile,
    measure: Measure,
    bins: Sensitive[pa.Table],
    cells: int,
    rng: BitSource,
    *,
    level: float,
) -> dict[str, Drawn]:
    """Quantiles of every cell, by alias, all read off the same noisy trees; a cell without records is drawn like any other."""
    rows = bins.reveal().sort_by(POSITION)
    position, point, held = (np.asarray(rows.column(name).to_numpy(), np.int64) for name in (POSITION, BIN, HELD))
    found: dict[str, list[QuantileEstimates]] = {alias: [] for alias in shares}
    at_once = max(1, NODES_AT_ONCE // (2 * mechanism.grid.size))
    for first in range(0, cells, at_once):
        count = min(at_once, cells - first)
        here = slice(*np.searchsorted(position, [first, first + count]))
        leaves = np.zeros((count, mechanism.grid.size), dtype=np.int64)
        leaves[position[here] - first, point[here]] = held[here]
        noisy = mechanism.release(leaves, rng=rng)
        for alias, p in shares.items():
            found[alias].append(mechanism.estimate(noisy, p=float(p), level=level))
    return {alias: _drawn(alias, _places(parts), mechanism, measure) for alias, parts in found.items()}


def _places(parts: list[QuantileEstimates]) -> dict[str, IntArray]:
    nothing = np.empty(0, dtype=np.int64)
    return {name: np.concatenate([nothing, *(getattr(part, name) for part in parts)]) for name in FIELDS}


def _drawn(alias: str, places: dict[str, IntArray], mechanism: TreeQuantile, measure: Measure) -> Drawn:
    """Grid positions as amounts. Values up to the first point may be 0. An upper end at the last point says nothing and is left
    empty, unless the measure's public bound is no larger."""
    points = np.array([float(steps * measure.step) for steps in mechanism.grid.steps(measure.step)])
    below = np.concatenate([[0.0], points])
    above = np.concatenate([points[:-1], [points[-1] if measure.bound <= points[-1] else np.nan]])
    spread: FloatArray = (points[places["spread_high"]] - below[places["spread_low"] + 1]) / 2
    return Drawn(
        alias=alias,
        value=points[places["value"]],
        standard_error=spread,
        low=below[places["low"] + 1],
        high=above[places["high"]],
        flag=f"{NOT_UNBIASED}: a quantile is read off a public grid",
    )
