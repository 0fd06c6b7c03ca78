"""The mechanisms, one per file with its policy: parameters, policy, release and estimate."""

from recordwise.mechanisms.additive import Additive
from recordwise.mechanisms.base import Estimates, Mechanism
from recordwise.mechanisms.clamped import Clamped
from recordwise.mechanisms.gaussian import Gaussian
from recordwise.mechanisms.generalized_gaussian import GeneralizedGaussian
from recordwise.mechanisms.log_transform import LogTransform
from recordwise.mechanisms.noisy import Noisy
from recordwise.mechanisms.polylog import Polylog
from recordwise.mechanisms.root_transform import RootTransform
from recordwise.mechanisms.sized import Sized
from recordwise.mechanisms.transform import Transform
from recordwise.mechanisms.unit_split import UnitSplit

__all__ = [
    "Additive",
    "Clamped",
    "Estimates",
    "Gaussian",
    "GeneralizedGaussian",
    "LogTransform",
    "Mechanism",
    "Noisy",
    "Polylog",
    "RootTransform",
    "Sized",
    "Transform",
    "UnitSplit",
]
