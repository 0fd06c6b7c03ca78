"""recordwise: statistics about skewed data, with a privacy guarantee that is a public function of each record's value.

import recordwise as rw
rw.UnitSplit(at=50, rho=0.1).policy("emp").loss({"emp": 1000})
"""

from recordwise import functions, mechanisms, noise, policy
from recordwise.mechanisms import (
    Additive,
    Clamped,
    Gaussian,
    GeneralizedGaussian,
    LogTransform,
    Polylog,
    RootTransform,
    Transform,
    UnitSplit,
)
from recordwise.policy import Measure, Policy, by

__version__ = "0.1.0"

__all__ = [
    "Additive",
    "Clamped",
    "Gaussian",
    "GeneralizedGaussian",
    "LogTransform",
    "Measure",
    "Policy",
    "Polylog",
    "RootTransform",
    "Transform",
    "UnitSplit",
    "by",
    "functions",
    "mechanisms",
    "noise",
    "policy",
]
