"""Reproducible uniform numbers for synthetic data: a hash of (seed, stream, row), the same on every machine and in any batch.

Never for privacy: noise comes from ``recordwise.noise`` and a cryptographic generator.
"""

import numpy as np

from recordwise.exact.arithmetic import FloatArray

_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def uniforms(seed: int, stream: int, start: int, count: int) -> FloatArray:
    """Numbers strictly between 0 and 1 for rows ``start`` to ``start + count`` of one stream."""
    origin = (seed * 1_000_003 + stream * 7_919 + 1) * 0xD1342543DE82EF95 % 2**64
    with np.errstate(over="ignore"):
        state = (np.arange(start, start + count, dtype=np.uint64) + np.uint64(origin)) * _ODD
        state = (state ^ (state >> np.uint64(30))) * _MIX[0]
        state = (state ^ (state >> np.uint64(27))) * _MIX[1]
        state ^= state >> np.uint64(31)
    return ((state >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
