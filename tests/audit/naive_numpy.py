"""The obvious way to publish noisy sums with numpy, as the target of attacks that ours must survive."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def float_sum(values: Sequence[float]) -> float:
    """Added up one by one in floats, as ``numpy.bincount(cells, weights)`` does for every cell."""
    return float(np.bincount(np.zeros(len(values), np.int64), weights=np.array(values, float), minlength=1)[0])


def integer_sum(values: Sequence[int]) -> int:
    """Added up in 64 bits, which wrap in silence."""
    return int(np.array(values, dtype=np.int64).sum()) if values else 0


def noisy(total: Any, scale: float, size: int, *, law: str, seed: int) -> Floats:
    """The total plus continuous noise, as floats."""
    return np.asarray(total + getattr(np.random.default_rng([26, seed]), law)(0.0, scale, size))
