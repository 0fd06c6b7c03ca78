"""Draw exact noise on the integers.

Takes a law with exact parameters, returns integers whose law is exactly that one. Imports exact alone.

In reading order:

- ``randomness``: random bits: the only use of the system's entropy
- ``laws``: the laws by name, and the binomial law
- ``lattice``: what every law on the integers can do
- ``probabilities``: probabilities and moments as enclosures
- ``table``: the table from which a law is drawn
- ``sampler``: draws in bulk, and exact decisions for the few that stay open
- ``kernel``: the same attempts as machine code, loaded late
"""

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
