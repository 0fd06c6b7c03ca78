"""What the sum of several discrete Gaussian noises stays within, from the law of that sum itself (T-COARSE)."""

from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import TypeAlias

import numpy as np

from recordwise.exact.arithmetic import FloatArray

COARSE = 64.0
"""Lattice steps of the sd of a sum below which its law is computed point by point; beyond, half a step is next to nothing."""
FINEST = 3.0
"""From so many steps on, sd and sigma of a discrete Gaussian are the same to 14 digits."""
LEAST = 0.2
"""In steps: a smaller sigma is taken to be this. Such noise is 0 but for a chance below 1e-5."""
SLACK = 1e-6
"""Relative, above the error of an sd that was read from a file."""
FAR = 10.0
"""Standard deviations after which noise is left out: less than 1e-22 of its mass."""
ROUNDING = 1e-12
"""Above the error of sums of probabilities in float64."""
Noises: TypeAlias = tuple[tuple[float, int], ...]
"""Sigmas in lattice steps, and how many numbers have each."""


def sigma_of(sd: FloatArray) -> FloatArray:
    """The sigma, in steps, of discrete Gaussian noise that has such sds; very slightly above it."""
    different, places = np.unique(np.nan_to_num(sd, nan=FINEST), return_inverse=True)
    low, high = np.full(different.shape, LEAST), np.maximum(different, LEAST) + 1.0
    steps = np.arange(1.0, 64.0)[:, None]
    for _ in range(60):
        middle = (low + high) / 2
        weights = np.exp(-(steps**2) / (2 * np.minimum(middle, FINEST + 1) ** 2))
        spread = 2 * (steps**2 * weights).sum(axis=0) / (1 + 2 * weights.sum(axis=0))
        above = spread >= different**2
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    found = np.where(different < FINEST, high, different) * (1 + SLACK)
    return np.where(np.isnan(sd), np.nan, found[places].reshape(sd.shape))


def gaussian_reach(sd: FloatArray, parts: FloatArray, least_sd: FloatArray, level: float) -> FloatArray:
    """A bound on the sum of so many noises, alone or mixed with others (T-RATIO), in steps: the root of the sum of the squares of
    z sigma + 1/2 is at most this (Minkowski), a sigma being no further above its sd than that of the smallest sd is."""
    above = np.maximum(sigma_of(least_sd) - least_sd, 0.0)
    return np.asarray(
        NormalDist().inv_cdf((1 + level) / 2) * (sd * (1 + SLACK) + np.sqrt(parts) * above) + np.sqrt(parts) / 2
    )


def exact_reach(sides: Sequence[tuple[FloatArray, FloatArray, FloatArray]], level: float) -> FloatArray:
    """The whole number of steps that the sum of all noises stays within with this confidence, cell by cell.

    Each side has the sd of the sum of its noises, how many they are and the smallest sd among them. NaN where noise is fine, or
    where the noises of a side have different sds.
    """
    known = np.sqrt(sum(sd**2 for sd, _, _ in sides)) < COARSE
    for sd, parts, least_sd in sides:
        known &= parts * least_sd**2 >= sd**2 * (1 - SLACK)
    reach = np.full(known.shape, np.nan)
    if known.any():
        columns = [column[known] for sd, parts, least_sd in sides for column in (sigma_of(least_sd), parts)]
        different, places = np.unique(np.stack(columns), axis=1, return_inverse=True)
        noises = [
            tuple((float(row[at]), int(row[at + 1])) for at in range(0, len(row), 2)) for row in different.T.tolist()
        ]
        reach[known] = np.array([quantile(each, level) for each in noises])[places.ravel()]
    return reach


@lru_cache(maxsize=4096)
def quantile(noises: Noises, level: float) -> float:
    """The smallest k with P(|sum| <= k) >= level."""
    reach = 1 + int(sum(times * np.ceil(FAR * sigma) for sigma, times in noises))
    # Point k is at place k mod length, so that sums of both signs have their place.
    length = 1 << (2 * reach + 1).bit_length()
    point = np.fft.fftfreq(length, 1 / length)
    product = np.ones(length // 2 + 1, np.complex128)
    for sigma, times in noises:
        weights = np.exp(-(point**2) / (2 * sigma**2))
        product *= np.fft.rfft(weights / weights.sum()) ** times
    masses = np.fft.irfft(product, length)
    inside = masses[0] + 2 * np.cumsum(np.concatenate([[0.0], masses[1:reach]]))
    return float(np.searchsorted(inside, level + ROUNDING))
