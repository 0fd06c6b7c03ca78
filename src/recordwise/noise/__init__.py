"""Draw exact noise on the integers.

Takes a law with exact parameters, returns integers whose law is exactly that one. Imports exact alone.

In reading order:

- ``randomness``: random bits: the only use of the system's entropy
- ``laws``: what every law on the integers can do, the laws by name, and the binomial law
- ``probabilities``: probabilities and moments as enclosures
- ``two_draws``: the sum of two Gaussian draws, and what it tells
- ``sampler``: the table of a law, draws in bulk, and exact decisions for the few that stay open
- ``stated``: noise as a release states it
- ``kernel``: the same attempts as machine code, loaded late
"""

from recordwise.noise.laws import (
    ConcaveLaw,
    DiscreteGaussian,
    DiscreteLaplace,
    GeneralizedGaussian,
    LatticeLaw,
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
