"""Exact noise on the integer lattice."""

from recordwise.noise.lattice import LatticeLaw
from recordwise.noise.laws import (
    ConcaveLaw,
    DiscreteGaussian,
    DiscreteLaplace,
    GeneralizedGaussian,
    Polylog,
    binomial_exact,
)
from recordwise.noise.randomness import BitSource, Secure, Seeded, is_private
from recordwise.noise.sampler import Draws

__all__ = [
    "BitSource",
    "ConcaveLaw",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Draws",
    "GeneralizedGaussian",
    "LatticeLaw",
    "Polylog",
    "Secure",
    "Seeded",
    "binomial_exact",
    "is_private",
]
